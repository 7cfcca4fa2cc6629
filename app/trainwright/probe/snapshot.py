"""This computer at one moment, and the machine that it is for a plan."""

from dataclasses import dataclass

from trainwright.catalog import find_cpu
from trainwright.catalog.query import find_gpu
from trainwright.explain import Kind, Quantity, Unit, total
from trainwright.machine.capacity import held, nominal_total
from trainwright.machine.machine import Gpu, Machine
from trainwright.messages import Message, UserError
from trainwright.probe import host, nvml
from trainwright.probe.host import Host
from trainwright.probe.nvml import GpuReading, Memory, Nvidia
from trainwright.probe.reading import Missing


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Every reading is a value or says why there is none."""

    host: Host
    nvidia: Nvidia | Missing


def take() -> Snapshot:
    """Return this computer's readings."""
    return Snapshot(host.read(), nvml.read())


def machine_of(snapshot: Snapshot) -> Machine:
    """Return the computer as a machine that plans can be made for.

    Raises:
        UserError: it has no GPU that the catalog knows; says why and what to do.
    """
    if isinstance(snapshot.nvidia, Missing):
        raise UserError.of("probe.no-gpu", reason=snapshot.nvidia.reason)
    if not snapshot.nvidia.gpus:
        raise UserError.of("probe.no-gpu", reason=Message.of("probe.empty"))
    found = snapshot.host
    gpus = tuple(_gpu(reading, found) for reading in snapshot.nvidia.gpus)
    return Machine(
        gpus=_grouped(gpus),
        cpu=found.cpu if isinstance(found.cpu, str) else None,
        cores=found.cores if isinstance(found.cores, int) else None,
        memory_bytes=found.memory_bytes if isinstance(found.memory_bytes, int) else None,
        drives=(),
        system=found.system,
        local=True,
        processor=find_cpu(found.cpu) if isinstance(found.cpu, str) else None,
    )


def _gpu(reading: GpuReading, around: Host) -> Gpu:
    if isinstance(reading.name, Missing):
        raise UserError.of("probe.unreadable-gpu", index=reading.index, reason=reading.name.reason)
    memory = reading.memory
    known = memory.total if isinstance(memory, Memory) else None
    try:
        record = find_gpu(reading.name, memory_bytes=known).record
    except UserError:
        raise UserError.of("probe.uncatalogued", name=reading.name) from None
    limit = reading.power_limit_w if isinstance(reading.power_limit_w, float) else None
    if isinstance(memory, Missing):
        return Gpu(record, 1, nominal_total(record), held(record, around.system, None), limit)
    return Gpu(record, 1, _measured("machine.total", memory.total, "total"), _held(memory), limit)


def _held(memory: Memory) -> Quantity:
    parts = [
        _measured("machine.held.others", memory.used),
        _measured("machine.held.driver", memory.reserved),
    ]
    return total(Message.of("machine.held"), parts, role="held")


def _measured(id: str, value: int, role: str = "") -> Quantity:
    source = "NVML: nvmlDeviceGetMemoryInfo_v2"
    return Quantity(Message.of(id), value, Unit.BYTES, Kind.MEASURED, source=source, role=role)


def _grouped(gpus: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """Return one entry a model, with its count; the fullest card stands for its equals."""
    groups: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        groups.setdefault(gpu.record.id, []).append(gpu)
    fullest = (max(group, key=lambda gpu: gpu.held.value) for group in groups.values())
    return tuple(
        Gpu(gpu.record, len(group), gpu.total, gpu.held, gpu.power_limit_w)
        for gpu, group in zip(fullest, groups.values(), strict=True)
    )
