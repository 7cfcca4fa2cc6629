"""What a report says of the room that a plan needs: on the GPU, and in the system's memory."""

from collections.abc import Iterator

from trainwright.estimate.memory import MemoryEstimate
from trainwright.estimate.steptime import TimeEstimate
from trainwright.machine.larger import larger
from trainwright.machine.machine import Machine
from trainwright.messages import Message
from trainwright.plan.report import HEADROOM, Verdict
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings


def open_notes(plan: Plan, settings: FullSettings, decided: Verdict) -> Iterator[Message]:
    """Yield that the search may find what fits, where a plan leaves to it what decides."""
    opened = plan.settings.micro_batch is None and not plan.chosen
    if plan.workload.trains and decided in (Verdict.NO, Verdict.SPILLS) and opened:
        values = {"micro": settings.micro_batch, "checkpointing": settings.checkpointing}
        yield Message.of("plan.note.open", **values)


def larger_notes(machine: Machine, memory: MemoryEstimate, decided: Verdict) -> Iterator[Message]:
    """Yield which computer would have room, where this one's memory cannot be extended."""
    if decided is Verdict.FITS:
        return
    need = memory.device_used_p95.value - machine.gpu.held.value
    found = larger(machine, need / (1 - HEADROOM))
    if found is not None:
        yield found


def host_notes(memory: MemoryEstimate, memory_bytes: int | None) -> Iterator[Message]:
    """Yield what the system's memory is needed for, where it is too small or not known."""
    if memory.host is None:
        return
    need = memory.host.value
    if memory_bytes is None:
        yield Message.of("plan.note.host-unknown", need=need)
    elif need > memory_bytes:
        yield Message.of("plan.note.host-short", need=need, total=memory_bytes)
    else:
        yield Message.of("plan.note.host", need=need, total=memory_bytes)


DOCKER_SHM = 64 << 20
"""Bytes of /dev/shm that a container gets unless it is told otherwise."""


def loader_notes(
    memory: MemoryEstimate, clock: TimeEstimate, memory_bytes: int | None
) -> Iterator[Message]:
    """Yield what the loader's workers take of the system's memory, where that matters."""
    if clock.pipeline is None:
        return
    loader = clock.pipeline.loader
    need = loader.host_bytes + (memory.host.value if memory.host is not None else 0.0)
    if memory_bytes is not None and need > memory_bytes:
        yield Message.of("pipeline.note.loader-short", need=need, total=memory_bytes)
    elif loader.shared_memory_bytes > DOCKER_SHM:
        shared = loader.shared_memory_bytes
        yield Message.of("pipeline.note.loader-memory", need=loader.host_bytes, shared=shared)
    if loader.num_workers and not loader.persistent_workers and loader.start_seconds >= 1:
        yield Message.of("pipeline.note.restarts", seconds=loader.start_seconds)
