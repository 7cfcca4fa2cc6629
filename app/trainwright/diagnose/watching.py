"""Live readings of a run, summed up as evidence."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from trainwright.diagnose.evidence import RECORD, Evidence
from trainwright.diagnose.evidence_readings import GpuReadings, HostReadings, Spread, Throttle
from trainwright.diagnose.recorder import surroundings
from trainwright.messages import Message, UserError, render
from trainwright.probe.monitor.sampler import Reader, Sampler
from trainwright.probe.monitor.session import GpuSession
from trainwright.probe.reading import Missing
from trainwright.probe.sample import SLOWING, GpuSample, HostSample, Sample

HZ = 2.0
"""Samples a second; assumed: a driver's utilisation is a mean over up to a second."""
IDLE = 0.1
"""Utilisation below which a sample counts as idle, as ``GpuReadings.idle_share`` says."""
LOOK_S = 5.0
"""That a single look at the GPUs' processes may take; assumed, starting its child takes 0.3 s."""
MOST_SAMPLES = 20_000
"""The latest samples that are kept: hours at two a second."""

T = TypeVar("T")


class Watch:
    """Reads this computer in the background until it is asked what it saw."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._samples: list[Sample] = []
        self._before = surroundings.observed(pid or os.getpid())
        self._started = time.monotonic()
        self._sampler = Sampler(Reader, self._heard, HZ)
        self._sampler.start()

    def _heard(self, sample: Sample) -> None:
        self._samples.append(sample)
        del self._samples[:-MOST_SAMPLES]

    @property
    def seconds(self) -> float:
        """How long it has been watching."""
        return time.monotonic() - self._started

    def seen(self) -> Evidence:
        """Return what has been seen until now."""
        after = surroundings.observed(self._pid or os.getpid())
        return summed_up(list(self._samples), self._before, after, self._pid, self.seconds)

    def stop(self) -> None:
        """Read no more."""
        self._sampler.stop()


def summed_up(
    samples: Sequence[Sample],
    before: dict[str, object],
    after: dict[str, object],
    pid: int | None,
    seconds: float,
) -> Evidence:
    """Return samples and two observations of the surroundings as evidence."""
    around = surroundings.host_between(before, after)
    if pid is None:  # nobody's run: only what holds for the whole computer
        around = {key: value for key, value in around.items() if key not in _OF_A_RUN}
    tree = {int(each) for each in after["tree"]} if pid is not None else None  # type: ignore[attr-defined]
    gpus = [sample.gpus for sample in samples if not isinstance(sample.gpus, Missing)]
    unavailable = _why_not(samples)
    indices = sorted({gpu.index for each in gpus for gpu in each})
    readings = []
    for index in indices:
        own = [gpu for each in gpus for gpu in each if gpu.index == index]
        readings.append(_gpu(own, tree))
        unavailable |= _missing(own)
    host = HostReadings.model_validate(_host([sample.host for sample in samples]) | around)
    return Evidence(
        trainwright_record=RECORD,
        made_by="readings",
        watched_seconds=seconds,
        readings=len(samples),
        gpus=tuple(readings) if readings else None,
        host=host,
        unavailable=unavailable,
    )


_OF_A_RUN = (
    "run_cores",
    "main_process_cores",
    "foreign_cores",
    "foreign_top",
    "starved_share",
    "run_read_bytes_s",
)


def _values(items: Iterable[T], read: Callable[[T], object]) -> list[float]:
    found = (read(item) for item in items)
    return [float(value) for value in found if isinstance(value, (int, float))]


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    return Spread(mean=sum(values) / len(values), low=min(values), high=max(values))


def _last(values: Sequence[float]) -> float | None:
    return values[-1] if values else None


def _gpu(samples: Sequence[GpuSample], tree: set[int] | None) -> GpuReadings:
    utilisation = _values(samples, lambda each: each.utilisation)
    busy = [each for each in samples if _busy(each)] or list(samples)
    generation = _values(busy, lambda each: each.pcie_generation)
    width = _values(busy, lambda each: each.pcie_width)
    idle = sum(value < IDLE for value in utilisation) / len(utilisation) if utilisation else None
    clocks = _values(samples, lambda each: each.sm_clock_max_mhz)
    used = _values(samples, lambda each: each.memory_used)
    others, memory = _foreign(samples, tree)
    return GpuReadings(
        name=_word(samples[-1].name),
        utilisation=_spread(utilisation),
        idle_share=idle,
        sm_active=_spread(_values(samples, lambda each: each.activity.sm_active)),
        sm_occupancy=_spread(_values(samples, lambda each: each.activity.sm_occupancy)),
        tensor_active=_spread(_values(samples, lambda each: each.activity.tensor_active)),
        dram_active=_spread(_values(samples, lambda each: each.activity.dram_active)),
        power_w=_spread(_values(samples, lambda each: each.power_w)),
        power_limit_w=_last(_values(samples, lambda each: each.power_limit_w)),
        power_limit_default_w=_last(_values(samples, lambda each: each.power_limit_default_w)),
        temperature_c=_spread(_values(samples, lambda each: each.temperature_c)),
        sm_clock_mhz=_spread(_values(busy, lambda each: each.sm_clock_mhz)),
        sm_clock_max_mhz=_last(clocks),
        throttled=_throttled(busy),
        memory_used_bytes=max(used) if used else None,
        memory_total_bytes=_last(_values(samples, lambda each: each.memory_total)),
        foreign_processes=others,
        foreign_memory_bytes=memory,
        mig_profile=_slice(samples, tree),
        link_generation=int(max(generation)) if any(generation) else None,
        link_generation_max=_whole(_values(samples, lambda each: each.pcie_generation_max)),
        link_width=int(max(width)) if any(width) else None,
        link_width_max=_whole(_values(samples, lambda each: each.pcie_width_max)),
        received_bytes_s=_mean(_values(samples, lambda each: each.pcie_received)),
        sent_bytes_s=_mean(_values(samples, lambda each: each.pcie_sent)),
    )


def _busy(sample: GpuSample) -> bool:
    """Whether the GPU worked: clocks and links are judged under load only."""
    return isinstance(sample.utilisation, float) and sample.utilisation >= 0.5


def _word(value: str | Missing) -> str | None:
    return value[:200] if isinstance(value, str) else None


def _whole(values: Sequence[float]) -> int | None:
    return int(values[-1]) or None if values else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _throttled(samples: Sequence[GpuSample]) -> dict[Throttle, float] | None:
    known = [each.throttle for each in samples if not isinstance(each.throttle, Missing)]
    if not known:
        return None
    found: dict[Throttle, float] = {}
    for reason in SLOWING:
        share = sum(reason in each for each in known) / len(known)
        if share:
            found[reason] = share  # type: ignore[index]
    return found


def _foreign(
    samples: Sequence[GpuSample], tree: set[int] | None
) -> tuple[int | None, float | None]:
    """Return how many others are on the GPU and what they hold.

    None where no process of the run is among them: the driver counts processes as the host does,
    and in a container the run has another number.
    """
    known = [each.processes for each in samples if not isinstance(each.processes, Missing)]
    if tree is None or not any(process.pid in tree for each in known for process in each):
        return None, None
    others = [[process for process in each if process.pid not in tree] for each in known]
    held = [
        sum(each.memory_bytes for each in present if isinstance(each.memory_bytes, int))
        for present in others
        if all(isinstance(each.memory_bytes, int) for each in present)
    ]
    return max(map(len, others)), float(max(held)) if held else None


def _slice(samples: Sequence[GpuSample], tree: set[int] | None) -> str | None:
    """Return the name of the MIG slice that the run is on."""
    for sample in reversed(samples):
        for each in sample.slices:
            processes = () if isinstance(each.processes, Missing) else each.processes
            if tree and any(process.pid in tree for process in processes):
                return _word(each.name)
    return None


def _host(samples: Sequence[HostSample]) -> dict[str, object]:
    """Return what samples know of the computer; the surroundings know the run's share."""
    busy = _values(samples, lambda each: each.cpu)
    found: dict[str, object] = {
        "utilisation": _spread(busy),
        "pressure_cpu": _mean(_values(samples, lambda each: each.pressure_cpu)),
        "pressure_io": _mean(_values(samples, lambda each: each.pressure_io)),
        "pressure_memory": _mean(_values(samples, lambda each: each.pressure_memory)),
        "read_bytes_s": _mean(_values(samples, lambda each: each.disk_read)),
    }
    return {key: value for key, value in found.items() if value is not None}


def _why_not(samples: Sequence[Sample]) -> dict[str, str]:
    """Return why there are no GPUs, where nobody says any."""
    reasons = [each.gpus.reason for each in samples if isinstance(each.gpus, Missing)]
    return {"gpus": _reason(reasons[-1])} if reasons and len(reasons) == len(samples) else {}


def _missing(samples: Sequence[GpuSample]) -> dict[str, str]:
    """Return the readings that a GPU never gave, with the reasons."""
    found = {}
    for name in ("utilisation", "power_w", "throttle", "processes", "sm_clock_mhz"):
        values = [getattr(each, name) for each in samples]
        reasons = [value.reason for value in values if isinstance(value, Missing)]
        if reasons and len(reasons) == len(values):
            found[f"gpus.{name}"] = _reason(reasons[-1])
    return found


def _reason(message: Message) -> str:
    """Return a reason as records hold it: an id where that says all, else English text."""
    return message.id if not message.values else render(message, "en")[:200]


def likely_run() -> int | None:
    """Return the process that holds most of a GPU's memory, where it can be seen from here."""
    with contextlib.closing(GpuSession(LOOK_S)) as session:
        gpus = session.read()
    held: dict[int, int] = {}
    for gpu in () if isinstance(gpus, Missing) else gpus:
        for process in () if isinstance(gpu.processes, Missing) else gpu.processes:
            known = isinstance(process.memory_bytes, int) and process.kind == "compute"
            if known and _exists(process.pid):
                held[process.pid] = held.get(process.pid, 0) + int(process.memory_bytes)  # type: ignore[arg-type]
    return max(held, key=lambda pid: held[pid], default=None)


def check_process(pid: int | None) -> None:
    """Refuse a process that cannot be watched.

    Raises:
        UserError: there is none of the number, or it is this program itself.
    """
    if pid is not None and (pid == os.getpid() or not _exists(pid)):
        raise UserError.of("diagnose.no-process", pid=pid)


def watched(
    pid: int | None, seconds: float, cancelled: Callable[[], bool] = lambda: False
) -> Evidence:
    """Return what is seen within the seconds of a process, or of the whole computer.

    Raises:
        UserError: there is no such process.
    """
    check_process(pid)
    watch = Watch(pid)
    try:
        while watch.seconds < seconds and not cancelled():
            time.sleep(min(0.2, max(0.0, seconds - watch.seconds)))
        return watch.seen()
    finally:
        watch.stop()


def _exists(pid: int) -> bool:
    """Return whether there is a process of that number; True where the system does not tell."""
    return not Path("/proc/self").exists() or Path(f"/proc/{pid}").is_dir()
