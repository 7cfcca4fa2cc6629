"""This computer at one moment, and the machine that it is for a plan."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from trainwright.catalog import CpuRecord, DriveRecord, GpuRecord, find_cpu, find_drive
from trainwright.catalog.query import find_gpu
from trainwright.explain import Kind, Quantity, Unit, total
from trainwright.machine.capacity import capacity, held, less_kept
from trainwright.machine.machine import Gpu, Machine
from trainwright.machine.resolve import Resolved
from trainwright.machine.shared import installed, shared
from trainwright.messages import Message, UserError
from trainwright.probe import amd, apple, disks, framework, host, nvml
from trainwright.probe.amd import AmdGpu
from trainwright.probe.apple import AppleGpu
from trainwright.probe.disks import DriveReading
from trainwright.probe.driver import PATIENCE_S
from trainwright.probe.framework import Framework
from trainwright.probe.host import Host
from trainwright.probe.nvml import GpuReading, Memory, Mig, Nvidia, NvLink
from trainwright.probe.pci import Link
from trainwright.probe.reading import Missing
from trainwright.probe.sample import NOT_READ


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every reading is a value or says why there is none."""

    host: Host
    nvidia: Nvidia | Missing
    amd: tuple[AmdGpu, ...] | Missing = NOT_READ
    apple: AppleGpu | Missing = NOT_READ
    drives: tuple[DriveReading, ...] | Missing = NOT_READ
    framework: Framework | Missing = NOT_READ
    """The torch of the chosen interpreter; read only where it is asked for."""


def take(
    *,
    identifiers: bool = False,
    interpreter: str | None = None,
    patience_s: float = PATIENCE_S,
    anew: bool = True,
    root: Path = Path("/"),
) -> Snapshot:
    """Return this computer's readings. Nothing is changed, and no call can hang it.

    Args:
        identifiers: whether serial numbers and the names of people and computers are read too.
        interpreter: the Python whose torch is asked what it can use; it takes seconds.
        patience_s: seconds that one call of a driver may take.
        anew: whether GPUs are asked again whose driver did not answer before.
        root: where Linux's ``proc``, ``sys`` and ``dev`` are found.
    """
    return Snapshot(
        host=host.read(root, identifiers=identifiers),
        nvidia=nvml.read(identifiers=identifiers, patience_s=patience_s, anew=anew),
        amd=amd.read(root, identifiers=identifiers),
        apple=apple.read(),
        drives=disks.read(root, identifiers=identifiers),
        framework=NOT_READ if interpreter is None else framework.read(interpreter),
    )


def machine_of(snapshot: Snapshot) -> Machine:
    """Return the computer as a machine that plans can be made for.

    Raises:
        UserError: it has no GPU that a plan can be made for; says why and what to do.
    """
    return resolved(snapshot).machine


def resolved(snapshot: Snapshot) -> Resolved:
    """Return the computer as a machine, and what is left out of it.

    A GPU that does not answer, is divided, or is in no catalog is left out where another is
    left; so are GPUs of another maker beside NVIDIA's, which torch takes first.

    Raises:
        UserError: no GPU is left; says why and what to do.
    """
    gpus, left_out = _usable(snapshot)
    if not gpus:
        raise left_out[0] if left_out else UserError.of("probe.no-gpu", reason=_absence(snapshot))
    around, drives = snapshot.host, snapshot.drives
    known = () if isinstance(drives, Missing) else drives
    machine = Machine(
        gpus=_grouped(tuple(gpus)),
        cpu=around.cpu if isinstance(around.cpu, str) else None,
        cores=around.cores if isinstance(around.cores, int) else None,
        memory_bytes=around.memory_bytes if isinstance(around.memory_bytes, int) else None,
        drives=tuple(drive_name(drive) for drive in known),
        system=around.system,
        local=True,
        processor=cpu_record(around),
        storage=tuple(drive_record(drive) for drive in known),
    )
    return Resolved(machine, tuple(error.message for error in left_out))


def _absence(snapshot: Snapshot) -> Message:
    """Return why there is no GPU: in the driver's words where there is one."""
    found = snapshot.nvidia
    return found.reason if isinstance(found, Missing) else Message.of("probe.empty")


def _usable(snapshot: Snapshot) -> tuple[list[Gpu], list[UserError]]:
    """Return the GPUs of the first maker that has one, and why others are left out."""
    nvidia, amds, unified = snapshot.nvidia, snapshot.amd, snapshot.apple
    found: list[tuple[Callable[..., Gpu], object]] = []
    if not isinstance(nvidia, Missing):
        found += [(_nvidia, reading) for reading in nvidia.gpus]
    if not isinstance(amds, Missing) and not found:
        found += [(_amd, reading) for reading in amds]
    if not isinstance(unified, Missing) and not found:
        found.append((_apple, unified))
    gpus: list[Gpu] = []
    left_out: list[UserError] = []
    for made, reading in found:
        try:
            gpus.append(made(reading, snapshot.host))
        except UserError as error:
            left_out.append(error)
    return gpus, left_out


def gpu_record(name: str, memory: Memory | Missing) -> GpuRecord:
    """Return the catalog's record of a GPU.

    Raises:
        UserError: it has none.
    """
    known = memory.total if isinstance(memory, Memory) else None
    try:
        return find_gpu(name, memory_bytes=known).record
    except UserError:
        raise UserError.of("probe.uncatalogued", name=name) from None


def cpu_record(around: Host) -> CpuRecord | None:
    """Return the catalog's record of the processor, or None."""
    return find_cpu(around.cpu) if isinstance(around.cpu, str) else None


def drive_record(drive: DriveReading) -> DriveRecord | None:
    """Return the catalog's record of a drive, or None; some models leave their size out."""
    if isinstance(drive.model, Missing):
        return None
    if found := find_drive(drive.model):
        return found
    if isinstance(drive.size_bytes, Missing):
        return None
    return find_drive(f"{drive.model} {drive.size_bytes / 1e12:.0f}TB")


def drive_name(drive: DriveReading) -> str:
    """Return what a drive is called: its model, else the system's name for it."""
    return drive.name if isinstance(drive.model, Missing) else drive.model


def _nvidia(reading: GpuReading, around: Host) -> Gpu:
    if isinstance(reading.name, Missing):
        raise UserError.of("probe.unreadable-gpu", index=reading.index, reason=reading.name.reason)
    if isinstance(reading.mig, Mig) and reading.mig.on:
        raise _divided(reading.name, reading.index, reading.memory, reading.mig)
    made = _made(reading, around, "NVML: nvmlDeviceGetMemoryInfo_v2")
    return replace(made, bridged=isinstance(reading.nvlink, NvLink) and reading.nvlink.active > 0)


def _divided(name: str, index: int, memory: Memory | Missing, mig: Mig) -> UserError:
    """Return the refusal of a divided GPU, with how to name one of its instances."""
    known = (
        each.name.rpartition("MIG ")[2] for each in mig.instances if isinstance(each.name, str)
    )
    try:
        id = gpu_record(name, memory).id
    except UserError:
        id = "..."
    return UserError.of("probe.divided", index=index, gpu=name, id=id, mig=next(known, "..."))


def _amd(reading: AmdGpu, around: Host) -> Gpu:
    if isinstance(reading.name, Missing):
        raise UserError.of("probe.unreadable-gpu", index=reading.index, reason=reading.name.reason)
    return _made(reading, around, "amdgpu: mem_info_vram_total, mem_info_vram_used")


def _made(reading: GpuReading | AmdGpu, around: Host, source: str) -> Gpu:
    """Return the GPU of a reading that has a name: what it told, and the catalog for the rest."""
    memory = reading.memory
    known, read = _linked(gpu_record(str(reading.name), memory), reading.link)
    limit = reading.power_limit_w if isinstance(reading.power_limit_w, float) else None
    if known.unified_memory:
        whole, taken = _shared(known, around, reading)
    elif isinstance(memory, Missing) or not memory.total:
        whole, taken = capacity(known, around.system), held(known, around.system, None)
    else:
        whole, taken = _offered(known, memory, around, source)
    return Gpu(known, 1, whole, taken, limit, link_read=read)


def _offered(
    record: GpuRecord, memory: Memory, around: Host, source: str
) -> tuple[Quantity, Quantity]:
    """Return what CUDA offers of a GPU, and what others hold of that.

    CUDA's total lacks what NVML calls reserved; on Windows it has it, and nobody gets it.
    """
    whole = _measured("machine.total", memory.total, source, "total")
    kept = _measured("machine.held.driver", memory.reserved, source)
    held = [_measured("machine.held.others", memory.used, source)]
    if memory.reserved and record.vendor == "NVIDIA" and around.system != "windows":
        whole = less_kept(whole, kept)
    else:
        held.append(kept)
    return whole, total(Message.of("machine.held"), held, role="held")


def _shared(
    record: GpuRecord, around: Host, reading: GpuReading | AmdGpu
) -> tuple[Quantity, Quantity]:
    """Return what the GPU is offered of the computer's memory, and what others hold of that.

    NVIDIA's driver tells none of it (``not supported``, or 0). AMD's tells the part that firmware
    sets aside and the part that it may map; ROCm takes the larger (kernel 6.10 and later).
    """
    if isinstance(reading, AmdGpu) and isinstance(reading.shared_bytes, int):
        apart = reading.memory.total if isinstance(reading.memory, Memory) else 0
        source = "amdgpu: mem_info_gtt_total, mem_info_vram_total"
        most = max(reading.shared_bytes, apart)
        return _measured("machine.total", most, source, "total"), held(record, around.system, None)
    return shared(record, around.system, _installed(record, around), None)


def _installed(record: GpuRecord, around: Host) -> Quantity:
    """Return the computer's memory: a container's limit does not count for its GPU."""
    for found in (around.installed_bytes, around.memory_bytes):
        if isinstance(found, int):
            return _measured("machine.installed", found, "psutil: virtual_memory().total")
    return installed(record, None)


def _apple(reading: AppleGpu, around: Host) -> Gpu:
    record = gpu_record(reading.name, Missing(Message.of("probe.not-supported")))
    if isinstance(reading.memory_bytes, Missing):
        memory = _installed(record, around)
    else:
        memory = _measured("machine.installed", reading.memory_bytes, "sysctl hw.memsize")
    return Gpu(record, 1, *shared(record, around.system, memory, None))


def _linked(record: GpuRecord, link: Link) -> tuple[GpuRecord, bool]:
    """Return the record with the link that this computer gives the card, and whether it told it.

    Generation by what card and slot reach together, since it falls while nothing moves; width
    by what there is now, since drivers tell the card's own as the most.
    """
    lanes = link.most_width if isinstance(link.width, Missing) else link.width
    found = {"pcie_generation": link.most_generation, "pcie_lanes": lanes}
    read = {key: value for key, value in found.items() if isinstance(value, int)}
    return (record.model_copy(update=read) if read else record), len(read) == len(found)


def _measured(id: str, value: int, source: str, role: str = "") -> Quantity:
    return Quantity(Message.of(id), value, Unit.BYTES, Kind.MEASURED, source=source, role=role)


def _grouped(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return one entry a model, with its count.

    The fullest card stands for its equals, with the narrowest of their links: data-parallel
    steps wait for the slowest.
    """
    groups: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        groups.setdefault(gpu.record.id, []).append(gpu)
    return tuple(_standing_for(group) for group in groups.values())


def _standing_for(group: list[Gpu]) -> Gpu:
    fullest = max(group, key=lambda gpu: gpu.held.value)
    slowest = min((gpu.record for gpu in group), key=_reach)
    return replace(fullest, record=slowest, count=len(group))


def _reach(record: GpuRecord) -> float:
    """Return a link's relative speed: each generation doubles it."""
    return float((record.pcie_lanes or 16) * 2 ** (record.pcie_generation or 4))
