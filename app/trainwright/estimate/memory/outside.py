"""What a run holds outside torch's allocator: context, NCCL, paged state, system memory."""

from trainwright.estimate import cuda
from trainwright.estimate.calibration import Range, memory_calibration
from trainwright.estimate.memory.layout import Layout
from trainwright.explain import Interval, Kind, Quantity, Unit, total
from trainwright.machine.machine import Gpu
from trainwright.messages import Message

PAGED_SOURCE = "bitsandbytes: optim/optimizer.py, get_state_buffer; cudaMallocManaged"


def outside(gpu: Gpu, gpu_count: int) -> tuple[Quantity, ...]:
    """Return what is held outside the allocator."""
    known = memory_calibration()
    parts = [gpu.context or _ranged("context", cuda.context(gpu.record), known.context_source)]
    if gpu_count > 1:
        parts.append(_ranged("nccl", known.nccl, known.source))
    parts.append(gpu.held)
    return tuple(parts)


def paged_state(layout: Layout, room: float) -> tuple[Quantity, ...]:
    """Return the paged state that stays on the device: what the rest leaves room for."""
    paged = dict(layout.aside).get("paged", 0)
    if not paged:
        return ()
    resident = max(0.0, min(float(paged), room))
    quantity = Quantity(
        Message.of("memory.paged"),
        resident,
        Unit.BYTES,
        Kind.ESTIMATED,
        source=PAGED_SOURCE,
        note=Message.of("memory.note.paged", moved=paged - resident) if resident < paged else None,
        role="paged",
    )
    return (quantity,)


def host_memory(
    layout: Layout, paged: tuple[Quantity, ...], activations: int, nodes: int
) -> Quantity | None:
    """Return the system memory that the plan takes on purpose, of one of the computers."""
    parts = [
        Quantity(
            Message.of(f"memory.{role}"), nbytes / nodes, Unit.BYTES, Kind.ESTIMATED, role=role
        )
        for role, nbytes in layout.aside
        if role.startswith("host-") and nbytes
    ]
    if activations:
        name = Message.of("memory.host-activations")
        source = "torch: ATen/core/CachingHostAllocator.h"
        kept = Quantity(name, activations / nodes, Unit.BYTES, Kind.ESTIMATED, source=source,
                        role="host-activations")  # fmt: skip
        parts.append(kept)
    moved = dict(layout.aside).get("paged", 0) - sum(part.value for part in paged)
    if moved > 0:
        name = Message.of("memory.host-paged")
        parts.append(Quantity(name, moved, Unit.BYTES, Kind.ESTIMATED, role="host-paged"))
    return total(Message.of("memory.host"), parts, role="host") if parts else None


def _ranged(name: str, value: Range, source: str) -> Quantity:
    return Quantity(
        Message.of(f"memory.{name}"),
        value.middle,
        Unit.BYTES,
        Kind.ASSUMED,
        source=source,
        interval=Interval(value.low, value.high),
        role=name,
    )


def bytes_outside(gpu: Gpu, gpu_count: int = 1) -> int:
    """Return what the device holds outside torch's allocator: context, NCCL, others."""
    return int(sum(part.value for part in outside(gpu, gpu_count)))
