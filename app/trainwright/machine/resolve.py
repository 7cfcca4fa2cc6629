"""From the ids in a plan to the machine that they name."""

from dataclasses import dataclass, replace

from trainwright.catalog import GpuRecord, find_cpu, find_drive, find_memory
from trainwright.catalog.instances import Instance, find_instance, instance
from trainwright.catalog.query import Match, find_gpu
from trainwright.explain import Kind
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.capacity import capacity, held
from trainwright.machine.choice import GpuChoice, MachineChoice
from trainwright.machine.machine import Gpu, Machine, System
from trainwright.machine.named import named, questions, slots_of
from trainwright.machine.network import Network, with_ports
from trainwright.machine.possible import check_possible
from trainwright.machine.shared import installed, seen_bytes, shared, sizes, sold
from trainwright.machine.slice import sliced
from trainwright.messages import Message, UserError

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Resolved:
    """A machine, and what must be said about how its ids were understood."""

    machine: Machine
    notes: tuple[Message, ...]


def catalogued(choice: MachineChoice) -> Resolved:
    """Return the machine made of catalog ids.

    Apple's GPUs are in Macs: the default system means macOS there. A part beside GPUs that
    the catalog does not have stays a name: nothing is known of it, and a note asks what it is.

    Raises:
        UserError: an id is unknown, or something about it is not planned yet; names the
            key and the nearest ids.
    """
    processor = find_cpu(choice.cpu) if choice.cpu else None
    rented = instance(choice.cloud) if choice.cloud else None
    found = [_found(gpu, number) for number, gpu in enumerate(choice.gpus)]
    check_possible(choice, tuple(each.record for each in found), processor)
    resolved = [_gpu(choice, number, each) for number, each in enumerate(found)]
    apple = any(gpu.record.vendor == "Apple" for gpu, _ in resolved)
    gpus = tuple(gpu for gpu, _ in resolved)
    cards = tuple(BuildGpu(gpu.record, gpu.count, gpu.power_limit_w) for gpu in gpus)
    parts = named(choice, cards, processor)
    network, ports = with_ports(choice.network, choice.nodes, [(g.record, g.count) for g in gpus])
    machine = Machine(
        gpus=_in_slots(gpus, parts),
        cpu=choice.cpu,
        cores=processor.cores if processor else rented.cores if rented else None,
        memory_bytes=_memory_bytes(choice, gpus),
        drives=tuple(drive.id for drive in choice.drives),
        system="macos" if apple and choice.system == "linux" else choice.system,
        local=False,
        processor=processor,
        storage=tuple(find_drive(drive.id) for drive in choice.drives),
        parts=parts,
        nodes=choice.nodes,
        network=network,
        cloud=rented,
    )
    notes = tuple(note for _, found in resolved for note in found)
    said = () if rented is None else (_rented(rented, machine.gpu.record),)
    return Resolved(machine, (*said, *notes, *ports, *questions(choice)))


def _rented(one: Instance, gpu: GpuRecord) -> Message:
    """Return what a cloud's computer has, as its owner says."""
    disks, joined = one.disks, one.network
    unknown = Message.of("machine.cloud-unknown")
    local = disks and Message.of("machine.cloud-disks", number=disks.count, gb=disks.gb)
    return Message.of(
        "machine.cloud",
        name=one.name,
        provider=one.provider,
        number=one.gpus,
        gpu=gpu.name,
        vcpus=one.vcpus,
        gib=one.memory_gib,
        disks=local or unknown,
        network=_gbit(joined.model_dump()) if joined else unknown,
    )


def _gbit(network: dict[str, object]) -> Message:
    rate = Network.model_validate(network).bytes_per_s * 8 / 1e9
    return Message.of("machine.cloud-network", gbit=rate)


def _in_slots(gpus: tuple[Gpu, ...], parts: Build | None) -> tuple[Gpu, ...]:
    """Return the GPUs with the lanes that the board gives them."""
    if parts is None or parts.board is None:
        return gpus
    return tuple(
        replace(gpu, slots=slots_of(parts, card))
        for gpu, card in zip(gpus, parts.gpus, strict=True)
    )


def _memory_bytes(choice: MachineChoice, gpus: tuple[Gpu, ...]) -> int | None:
    """Return what the system sees of the memory: of the plan's, or of that which its GPU shares."""
    stated = _stated_bytes(choice)
    shared_ones = [gpu.record for gpu in gpus if gpu.record.unified_memory]
    if stated is None and shared_ones:
        stated = round(installed(shared_ones[0], None).value)
    if shared_ones and stated is not None:
        return round(seen_bytes(shared_ones[0], choice.system, stated))
    return stated


def _stated_bytes(choice: MachineChoice) -> int | None:
    """Return what the plan states, or else what its kits have; None where neither is known."""
    if choice.memory_gib is not None:
        return round(choice.memory_gib * GIB)
    kits = [(find_memory(kit.id), kit.count) for kit in choice.memory]
    known = [kit.gib * count for kit, count in kits if kit is not None]
    return round(sum(known) * GIB) if kits and len(known) == len(kits) else None


def _found(choice: GpuChoice, number: int) -> Match:
    """Return the record that a plan's GPU means.

    Raises:
        UserError: its id is unknown, or its card has no such instance; names the key.
    """
    key = f"machine.gpus[{number}]"
    try:
        found = find_gpu(choice.id)
    except UserError as error:
        problem = error.message
        if (rented := find_instance(choice.id)) is not None:
            values = {"id": rented.gpu, "number": rented.gpus}
            problem = Message.of("machine.instance", name=rented.name, **values)
        raise UserError.of("machine.at-key", key=f"{key}.id", problem=problem) from None
    if not choice.mig:
        return found
    return replace(found, record=_instance(choice, found.record, f"{key}.mig"))


def _gpu(choice: MachineChoice, number: int, found: Match) -> tuple[Gpu, tuple[Message, ...]]:
    """Return a GPU of the plan, and what was assumed of it."""
    record, chosen = found.record, choice.gpus[number]
    notes = [] if found.note is None else [found.note]
    if record.unified_memory and not chosen.mig:
        memory = installed(record, _stated_bytes(choice))
        system: System = "macos" if record.vendor == "Apple" else choice.system
        offer, taken = shared(record, system, memory, chosen.reserved_mib)
        if memory.kind is Kind.ASSUMED and len(sizes(record)) > 1:
            values = {"gpu": record.name, "assumed": memory.value / GIB}
            notes.append(Message.of("machine.smallest-memory", **values, sizes=sold(record)))
    else:
        offer = capacity(record, choice.system)
        taken = held(record, choice.system, chosen.reserved_mib)
    gpu = Gpu(
        record=record,
        count=chosen.count,
        total=offer,
        held=taken,
        power_limit_w=chosen.power_limit_w,
        bridged=choice.bridge_slots is not None and record.nvlink_bytes_per_s is not None,
    )
    if gpu.held.value >= gpu.total.value:
        key = f"machine.gpus[{number}].reserved_mib"
        raise UserError.of("machine.all-held", key=key, gpu=record.name)
    return gpu, tuple(notes)


def _instance(choice: GpuChoice, record: GpuRecord, key: str) -> GpuRecord:
    """Return the instance that a program gets, which sees no other one."""
    if choice.count > 1:
        raise UserError.of("machine.mig-one", key=key)
    try:
        return sliced(record, choice.mig or "").record
    except UserError as error:
        raise UserError.of("machine.at-key", key=key, problem=error.message) from None
