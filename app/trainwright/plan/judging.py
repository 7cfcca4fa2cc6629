"""What follows from memory and time: the verdict, and what system memory and loader add to it."""

from collections.abc import Iterator

from trainwright.estimate.memory.device_memory import MemoryEstimate
from trainwright.estimate.time.steptime import TimeEstimate
from trainwright.machine.larger import larger
from trainwright.machine.machine import Machine, System
from trainwright.messages import Message
from trainwright.plan.report import HEADROOM, Verdict
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

OPEN = "plan.note.open"
"""The note of defaults that do not fit where a search may find settings that do."""
SECOND_GPU = "time.note.scaling-offer-"
"""Notes that say what a second GPU would do."""


def verdict(
    memory: MemoryEstimate,
    system: System,
    memory_bytes: int | None = None,
    loader: float = 0.0,
) -> Verdict:
    """Return whether it fits, decided on the p95 of device memory and on the replay.

    Windows moves what does not fit into system memory (NVIDIA's sysmem fallback policy):
    it runs, and crawls. What is offloaded, and what the loader takes (``loader`` bytes), must
    fit ``memory_bytes``, the system's memory.
    """
    need = loader + (memory.host.value if memory.host is not None else 0.0)
    if memory_bytes is not None and need > memory_bytes:
        return Verdict.NO
    total, p95 = memory.device_total.value, memory.device_used_p95.value
    if memory.out_of_memory or memory.device_used.value > total:
        return Verdict.SPILLS if system == "windows" else Verdict.NO
    return Verdict.FITS if p95 <= total * (1 - HEADROOM) else Verdict.TIGHT


SYSTEM_HOLDS = 2 << 30
"""Bytes of system memory that the system and a desktop hold; assumed."""
PROCESS_HOLDS = 2 << 30
"""Bytes of system memory that Python, torch and CUDA hold in each process; assumed: torch with its
CUDA libraries alone is above 1 GiB."""


def host_room(machine: Machine, memory: MemoryEstimate) -> int | None:
    """Return the bytes of system memory that the CPU's side may take; None where not known.

    Where something is offloaded, it is what the system and the processes leave, for then it is
    filled. Where the GPU shares that memory, it is what the GPU's peak leaves: offloading gains
    nothing.
    """
    if machine.memory_bytes is None:
        return None
    shared = memory.device_used.value if machine.gpu.record.unified_memory else 0.0
    held = SYSTEM_HOLDS + PROCESS_HOLDS * machine.gpus_each if memory.host is not None else 0
    return max(0, round(machine.memory_bytes - max(shared, held)))


def open_notes(plan: Plan, settings: FullSettings, decided: Verdict) -> Iterator[Message]:
    """Yield that the search may find what fits, where a plan leaves to it what decides."""
    if _lacks(plan, decided) and _open(plan):
        values = {"micro": settings.micro_batch, "checkpointing": settings.checkpointing}
        yield Message.of(OPEN, **values)


def ways_notes(plan: Plan, decided: Verdict) -> Iterator[Message]:
    """Yield where the ways out are, of a plan that leaves open nothing that decides."""
    if _lacks(plan, decided) and not _open(plan):
        yield Message.of("plan.note.ways-out")


def _lacks(plan: Plan, decided: Verdict) -> bool:
    return plan.workload.trains and decided in (Verdict.NO, Verdict.SPILLS)


def _open(plan: Plan) -> bool:
    return plan.settings.micro_batch is None and not plan.chosen


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


def loader_bytes(clock: TimeEstimate) -> float:
    """Return the system memory that the loader takes; 0 without a data set."""
    return clock.pipeline.loader.host_bytes if clock.pipeline is not None else 0.0


def time_notes(clock: TimeEstimate, machine: Machine, decided: Verdict) -> Iterator[Message]:
    """Yield what the time rests on; a second GPU is for work that runs, where there is one."""
    useful = decided is not Verdict.NO and machine.gpu_count == 1
    for note in clock.notes:
        if useful or not note.id.startswith(SECOND_GPU):
            yield note


def waiting_share(clock: TimeEstimate) -> float | None:
    """Return the share of a step that the cards wait for one another; None without a time."""
    step = clock.step_seconds
    if step is None or not step.value:
        return None
    waiting = sum(one.seconds.value for one in clock.stages if one.name == "communication")
    return waiting / step.value
