"""What happened between two samples: throttling, memory run out, a GPU or a driver lost, sleep."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainwright.messages import Message
from trainwright.probe.monitor.session import STARTING
from trainwright.probe.reading import Missing
from trainwright.probe.sample import SLOWING, GpuProcess, GpuSample, Sample, Throttle

NEARLY_FULL = 0.97
"""Share of a GPU's memory from which on the next allocation is likely to fail. Assumed."""
WAS_FULL = 0.90
"""Share above which a process that holds most of the memory and then is gone probably ran out of
it: torch-tb-profiler warns of peaks above 0.9 of the total."""
MOST_OF_IT = 0.5
"""Share of the used memory that such a process held. Assumed."""
CALM_S = 5.0
"""Time without a reason until throttling counts as over: power caps come and go within a second.
Assumed."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened; ``kind`` is stable, the message is for people."""

    wall_s: float
    kind: str
    message: Message
    gpu: int | None = None
    bad: bool = True
    """Whether it needs attention; the end of something bad does not."""


class Witness:
    """Compares each sample with the one before."""

    def __init__(self) -> None:
        self._before: Sample | None = None
        self._throttled: dict[tuple[int, Throttle], float] = {}
        """When each reason was last seen, of those that go on."""
        self._full: set[int] = set()

    def see(self, sample: Sample) -> tuple[Event, ...]:
        """Return what happened since the sample before."""
        before, self._before = self._before, sample
        events = list(self._of_gpus(sample))
        if before is not None:
            events = [
                *_sleep(sample),
                *_killed(before, sample),
                *_driver(before, sample),
                *(e for pair in _pairs(before, sample) for e in _between(*pair, sample.wall_s)),
                *events,
            ]
        return tuple(events)

    def _of_gpus(self, sample: Sample) -> Iterator[Event]:
        for gpu in () if isinstance(sample.gpus, Missing) else sample.gpus:
            yield from self._throttling(gpu, sample)
            yield from self._filling(gpu, sample.wall_s)

    def _throttling(self, gpu: GpuSample, sample: Sample) -> Iterator[Event]:
        reasons = frozenset() if isinstance(gpu.throttle, Missing) else gpu.throttle & SLOWING
        for reason in sorted(reasons):
            if (gpu.index, reason) not in self._throttled:
                yield _of_gpu(sample.wall_s, "throttle-start", gpu, reason=_reason(reason))
            self._throttled[gpu.index, reason] = sample.monotonic_s
        for (index, reason), last in list(self._throttled.items()):
            if index == gpu.index and sample.monotonic_s - last >= CALM_S:
                del self._throttled[index, reason]
                text = _reason(reason)
                yield _of_gpu(sample.wall_s, "throttle-end", gpu, bad=False, reason=text)

    def _filling(self, gpu: GpuSample, wall_s: float) -> Iterator[Event]:
        share = _fullness(gpu)
        if share is None or share < NEARLY_FULL:
            self._full.discard(gpu.index)
        elif gpu.index not in self._full:
            self._full.add(gpu.index)
            yield _of_gpu(wall_s, "memory-full", gpu, share=share)


def is_lost(gpu: GpuSample) -> bool:
    """Return whether a GPU has fallen off the bus."""
    used = gpu.memory_used
    return isinstance(used, Missing) and used.reason.id == "probe.gpu-lost"


def _reason(throttle: Throttle) -> Message:
    return Message.of(f"monitor.throttle.{throttle}")


def _of_gpu(
    wall_s: float, kind: str, gpu: GpuSample, *, bad: bool = True, **values: object
) -> Event:
    message = Message.of(f"monitor.event.{kind}", gpu=gpu.index, **values)
    return Event(wall_s, kind, message, gpu.index, bad)


def _fullness(gpu: GpuSample) -> float | None:
    if isinstance(gpu.memory_used, Missing) or isinstance(gpu.memory_total, Missing):
        return None
    return gpu.memory_used / gpu.memory_total if gpu.memory_total else None


def _sleep(sample: Sample) -> Iterator[Event]:
    if sample.slept_s:
        message = Message.of("monitor.event.slept", time=sample.slept_s)
        yield Event(sample.wall_s, "slept", message, bad=False)


def _killed(before: Sample, now: Sample) -> Iterator[Event]:
    """Tell of processes that the kernel ended: it counts them."""
    earlier, later = before.host.oom_kills, now.host.oom_kills
    if isinstance(earlier, int) and isinstance(later, int) and later > earlier:
        message = Message.of("monitor.event.killed", count=later - earlier)
        yield Event(now.wall_s, "killed", message)


def _driver(before: Sample, now: Sample) -> Iterator[Event]:
    if isinstance(now.gpus, Missing):
        if not isinstance(before.gpus, Missing):
            message = Message.of("monitor.event.driver-gone", reason=now.gpus.reason)
            yield Event(now.wall_s, "driver-gone", message)
    elif isinstance(before.gpus, Missing) and before.gpus != STARTING:
        message = Message.of("monitor.event.driver-back")
        yield Event(now.wall_s, "driver-back", message, bad=False)


def _pairs(before: Sample, now: Sample) -> Iterator[tuple[GpuSample | None, GpuSample]]:
    if isinstance(now.gpus, Missing):
        return
    earlier = () if isinstance(before.gpus, Missing) else before.gpus
    by_index = {gpu.index: gpu for gpu in earlier}
    for gpu in now.gpus:
        yield by_index.get(gpu.index), gpu


def _between(before: GpuSample | None, now: GpuSample, wall_s: float) -> Iterator[Event]:
    """Tell what happened to one GPU."""
    if before is None:
        return
    if is_lost(before) != is_lost(now):
        lost = is_lost(now)
        yield _of_gpu(wall_s, "gpu-lost" if lost else "gpu-back", now, bad=lost)
    victim = _ran_out(before, now)
    if victim is not None:
        name = Message.of("monitor.process", pid=victim.pid)
        yield _of_gpu(
            wall_s,
            "out-of-memory",
            now,
            name=name if isinstance(victim.name, Missing) else victim.name,
            held=victim.memory_bytes,
            total=before.memory_total,
        )


def _ran_out(before: GpuSample, now: GpuSample) -> GpuProcess | None:
    """Return the process that held most of a full GPU's memory and is gone."""
    if isinstance(before.processes, Missing) or isinstance(now.processes, Missing):
        return None
    share = _fullness(before)
    if share is None or share < WAS_FULL or is_lost(now):
        return None
    left = {process.pid for process in now.processes}
    most = MOST_OF_IT * before.memory_used if isinstance(before.memory_used, int) else 0
    gone = (process for process in before.processes if process.pid not in left)
    return next((each for each in gone if _held(each) >= most), None)


def _held(process: GpuProcess) -> int:
    return process.memory_bytes if isinstance(process.memory_bytes, int) else -1
