"""From the ids in a plan to the machine that they name."""

from dataclasses import dataclass, replace

from trainwright.catalog import GpuRecord, find_cpu, find_drive, find_memory
from trainwright.catalog.query import find_gpu
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.capacity import capacity, held
from trainwright.machine.choice import GpuChoice, MachineChoice
from trainwright.machine.machine import Gpu, Machine, System
from trainwright.machine.named import named, questions, slots_of
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
    bridged = choice.bridge_slots is not None
    resolved = [
        _gpu(gpu, number, choice.system, bridged=bridged) for number, gpu in enumerate(choice.gpus)
    ]
    apple = any(gpu.record.vendor == "Apple" for gpu, _ in resolved)
    processor = find_cpu(choice.cpu) if choice.cpu else None
    gpus = tuple(gpu for gpu, _ in resolved)
    cards = tuple(BuildGpu(gpu.record, gpu.count, gpu.power_limit_w) for gpu in gpus)
    parts = named(choice, cards, processor)
    machine = Machine(
        gpus=_in_slots(gpus, parts),
        cpu=choice.cpu,
        cores=processor.cores if processor else None,
        memory_bytes=_memory_bytes(choice),
        drives=tuple(drive.id for drive in choice.drives),
        system="macos" if apple and choice.system == "linux" else choice.system,
        local=False,
        processor=processor,
        storage=tuple(find_drive(drive.id) for drive in choice.drives),
        parts=parts,
    )
    notes = tuple(note for _, note in resolved if note is not None)
    return Resolved(machine, (*notes, *questions(choice)))


def _in_slots(gpus: tuple[Gpu, ...], parts: Build | None) -> tuple[Gpu, ...]:
    """Return the GPUs with the lanes that the board gives them."""
    if parts is None or parts.board is None:
        return gpus
    return tuple(
        replace(gpu, slots=slots_of(parts, card))
        for gpu, card in zip(gpus, parts.gpus, strict=True)
    )


def _memory_bytes(choice: MachineChoice) -> int | None:
    """Return what the plan states, or else what its kits have; None where neither is known."""
    if choice.memory_gib is not None:
        return round(choice.memory_gib * GIB)
    kits = [(find_memory(kit.id), kit.count) for kit in choice.memory]
    known = [kit.gib * count for kit, count in kits if kit is not None]
    return round(sum(known) * GIB) if kits and len(known) == len(kits) else None


def _gpu(
    choice: GpuChoice, number: int, system: System, *, bridged: bool
) -> tuple[Gpu, Message | None]:
    key = f"machine.gpus[{number}]"
    try:
        found = find_gpu(choice.id)
    except UserError as error:
        raise UserError.of("machine.at-key", key=f"{key}.id", problem=error.message) from None
    record = _instance(choice, found.record, f"{key}.mig") if choice.mig else found.record
    gpu = Gpu(
        record=record,
        count=choice.count,
        total=capacity(record, system),
        held=held(record, system, choice.reserved_mib),
        power_limit_w=choice.power_limit_w,
        bridged=bridged and record.nvlink_bytes_per_s is not None,
    )
    if gpu.held.value >= gpu.total.value:
        raise UserError.of("machine.all-held", key=f"{key}.reserved_mib", gpu=record.name)
    return gpu, found.note


def _instance(choice: GpuChoice, record: GpuRecord, key: str) -> GpuRecord:
    """Return the instance that a program gets, which sees no other one."""
    if choice.count > 1:
        raise UserError.of("machine.mig-one", key=key)
    try:
        return sliced(record, choice.mig or "").record
    except UserError as error:
        raise UserError.of("machine.at-key", key=key, problem=error.message) from None
