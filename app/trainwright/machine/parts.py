"""The parts of a plan's machine as a build of catalog records, and a machine with other parts."""

from trainwright.catalog import (
    PartKind,
    find_board,
    find_case,
    find_cooler,
    find_cpu,
    find_drive,
    find_gpu,
    find_memory,
    find_psu,
)
from trainwright.catalog.instances import find_instance
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.choice import Drive, GpuChoice, Kit, MachineChoice
from trainwright.machine.machine import Machine
from trainwright.machine.possible import foreign_parts, most_of
from trainwright.messages import UserError

GIB = 1 << 30


def build_of(choice: MachineChoice) -> Build:
    """Return the parts that a plan names; those that the catalog does not know are left out."""
    kits = ((find_memory(kit.id), kit.count) for kit in choice.memory)
    drives = (find_drive(drive.id) for drive in choice.drives)
    return Build(
        gpus=tuple(gpu for gpu in map(_gpu, choice.gpus) if gpu is not None),
        cpu=find_cpu(choice.cpu) if choice.cpu else None,
        board=find_board(choice.board) if choice.board else None,
        memory=tuple((kit, count) for kit, count in kits if kit is not None),
        drives=tuple(drive for drive in drives if drive is not None),
        psu=find_psu(choice.psu) if choice.psu else None,
        case=find_case(choice.case) if choice.case else None,
        cooler=find_cooler(choice.cooler) if choice.cooler else None,
        stated_memory_gib=choice.memory_gib,
        circuit=choice.circuit,
        risers=choice.risers,
        bridge_slots=choice.bridge_slots,
    )


def _gpu(choice: GpuChoice) -> BuildGpu | None:
    try:
        return BuildGpu(find_gpu(choice.id).record, choice.count, choice.power_limit_w)
    except UserError:
        return None


def unknown_parts(choice: MachineChoice) -> tuple[str, ...]:
    """Return the names in a plan that the catalog does not know."""
    lookups = (
        (choice.cpu, find_cpu),
        (choice.board, find_board),
        (choice.psu, find_psu),
        (choice.case, find_case),
        (choice.cooler, find_cooler),
        *((kit.id, find_memory) for kit in choice.memory),
        *((drive.id, find_drive) for drive in choice.drives),
    )
    return tuple(text for text, find in lookups if text and find(text) is None)


def with_part(
    choice: MachineChoice, kind: PartKind, id: str, *, instead: str = ""
) -> MachineChoice:
    """Return the machine with a part of the catalog.

    Drives and kits of memory come beside those that are there, or in place of ``instead``. Of
    all others there is one: it is replaced. New graphics cards keep their number, and nothing of
    the limits that were the old ones'. A GPU that comes with its computer takes the place of the
    parts of another one, and so does a computer that a cloud rents out, of all.
    """
    match kind:
        case "gpu":
            return _with_gpu(choice, id)
        case "memory":
            kits = {kit.id: kit.count for kit in choice.memory if kit.id != instead}
            kits[id] = kits.get(id, 0) + 1
            named = tuple(Kit(id=name, count=count) for name, count in kits.items())
            return _changed(choice, memory=named, memory_gib=None)
        case "storage":
            kept = list(choice.drives)
            places = [number for number, drive in enumerate(kept) if drive.id == instead]
            if places:
                kept[places[0]] = Drive(id=id)
            else:
                kept.append(Drive(id=id))
            return _changed(choice, drives=tuple(kept))
    return _changed(choice, **{kind: id})


def _with_gpu(choice: MachineChoice, id: str) -> MachineChoice:
    if (rented := find_instance(id)) is not None:
        return MachineChoice(cloud=rented.name, system=choice.system)
    number = choice.gpus[0].count if len(choice.gpus) == 1 else 1
    try:
        record = find_gpu(id).record
    except UserError:  # the plan then says so, with the nearest names
        return _changed(choice, gpus=(GpuChoice(id=id, count=number),), local=False)
    processor = find_cpu(choice.cpu) if choice.cpu else None
    dropped: dict[str, object] = dict.fromkeys(foreign_parts(choice, record, processor))
    if record.unified_memory:
        dropped |= {"memory": (), "memory_gib": None}
    gpu = GpuChoice(id=id, count=min(number, most_of(record)))
    return _changed(choice, gpus=(gpu,), local=False, **dropped)


def left_out(before: MachineChoice, after: MachineChoice) -> tuple[str, ...]:
    """Return the keys of parts that the one names and the other does not."""
    keys = ("cpu", "board", "psu", "case", "cooler", "memory_gib", "memory")
    return tuple(key for key in keys if getattr(before, key) and not getattr(after, key))


def without_part(choice: MachineChoice, kind: PartKind, id: str) -> MachineChoice:
    """Return the machine without a part; the last graphics card stays, a plan needs one."""
    owned = tuple(one for one in choice.owned if one != id)
    match kind:
        case "gpu":
            left = tuple(gpu for gpu in choice.gpus if gpu.id != id)
            return _changed(choice, gpus=left, owned=owned) if left else choice
        case "memory":
            kits = tuple(kit for kit in choice.memory if kit.id != id)
            return _changed(choice, memory=kits, owned=owned)
        case "storage":
            drives = tuple(drive for drive in choice.drives if drive.id != id)
            return _changed(choice, drives=drives, owned=owned)
    return _changed(choice, **{kind: None}, owned=owned)


def with_count(choice: MachineChoice, kind: PartKind, id: str, count: int) -> MachineChoice:
    """Return the machine with so many graphics cards, kits or drives of a kind, one at least."""
    match kind:
        case "gpu":
            gpus = (
                gpu.model_copy(update={"count": count}) if gpu.id == id else gpu
                for gpu in choice.gpus
            )
            return _changed(choice, gpus=tuple(gpus))
        case "memory":
            kits = (
                kit.model_copy(update={"count": count}) if kit.id == id else kit
                for kit in choice.memory
            )
            return _changed(choice, memory=tuple(kits))
        case "storage":
            others = tuple(drive for drive in choice.drives if drive.id != id)
            return _changed(choice, drives=(*others, *(Drive(id=id),) * count))
    return choice


def with_owned(choice: MachineChoice, id: str, owned: bool) -> MachineChoice:
    """Return the machine with a part marked as one that is there already, or not."""
    others = tuple(one for one in choice.owned if one != id)
    return _changed(choice, owned=(*others, id) if owned else others)


def from_machine(machine: Machine) -> MachineChoice:
    """Return a probed computer as parts of the catalog, all of them owned.

    What the catalog does not know keeps its name; case, cooler and power supply tell no program
    who they are.
    """
    gpus = tuple(GpuChoice(id=gpu.record.id, count=gpu.count) for gpu in machine.gpus)
    cpu = machine.processor.id if machine.processor else machine.cpu
    drives = tuple(
        Drive(id=record.id if record is not None else name)
        for name, record in zip(machine.drives, machine.storage, strict=False)
    )
    owned = (*(gpu.id for gpu in gpus), *((cpu,) if cpu else ()), *(drive.id for drive in drives))
    memory = machine.memory_bytes
    return MachineChoice(
        gpus=gpus,
        cpu=cpu,
        memory_gib=round(memory / GIB, 1) if memory else None,
        drives=drives,
        owned=tuple(dict.fromkeys(owned)),
        system=machine.system,
    )


def _changed(choice: MachineChoice, **values: object) -> MachineChoice:
    return choice.model_copy(update=values)
