"""What is kept of a trace: its events as sorted arrays, and where its steps begin and end."""

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

LOADER = "enumerate(DataLoader)#"
OPTIMIZER = "Optimizer.step#"
ENOUGH = 3
"""With as many steps or more, the first is left out as warm-up; assumed."""
MOST_EVENTS = 6_000_000
"""That are kept, which takes 0.2 GiB, and as much to sort; assumed: a trace of 2 GB."""
BELIEVED = 1e18
"""Microseconds in a trace that are believed; assumed: 30,000 years."""
_PLACES = {
    "kernel": "device", "gpu_memcpy": "device", "gpu_memset": "device", "memcpy": "device",
    "memset": "device", "cuda_runtime": "launch", "cuda_driver": "launch", "runtime": "launch",
    "driver": "launch", "xpu_runtime": "launch", "hip_runtime": "launch",
    "privateuse1_runtime": "launch", "cpu_op": "host", "operator": "host",
    "user_annotation": "annotation",
}  # fmt: skip
"""Categories of kineto, old spellings with capitals included."""
_EVENT = np.dtype(
    [("start", "f8"), ("end", "f8"), ("name", "i4"), ("lane", "i4"), ("linked", "i8")]
)
"""Microseconds; places in ``Trace.names`` and among threads and streams; the correlation of a
launch with what it launched, -1 where there is none."""
_PACKED = struct.Struct("=ddiiq")

Events = NDArray[np.void]
"""Of ``_EVENT``, by their start; the outer of two that start together first."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The events of a trace by place."""

    names: tuple[str, ...]
    device: Events
    launches: Events
    host: Events
    annotations: Events
    odd: int
    """Events without a time that is believed."""
    left_out: int
    """Events beyond those that are kept."""
    processes: int
    """Processes whose operators were recorded."""

    def named(self, events: Events, fits: Callable[[str], object]) -> Events:
        """Return the events whose name fits."""
        held = np.array([bool(fits(name)) for name in self.names], dtype=bool)
        fitting: Events = events[held[events["name"]]]
        return fitting

    def annotated(self, start: str) -> Events:
        """Return the annotations whose name begins so."""
        return self.named(self.annotations, lambda name: name.startswith(start))


def collected(events: Iterable[dict[str, Any]]) -> Trace:
    """Return what is kept of the events of a trace."""
    held = {place: bytearray() for place in ("device", "launch", "host", "annotation")}
    names: dict[str, int] = {}
    lanes: dict[tuple[object, object], int] = {}
    processes: set[object] = set()
    odd = kept = left_out = 0
    for event in events:
        if event.get("ph") != "X":
            continue
        place = _PLACES.get(str(event.get("cat", "")).lower())
        if place is None:
            continue
        start, duration, name = event.get("ts"), event.get("dur", 0), event.get("name")
        if not (_number(start) and _number(duration) and duration >= 0 and isinstance(name, str)):
            odd += 1
            continue
        if kept >= MOST_EVENTS:
            left_out += 1
            continue
        kept += 1
        lane = (_plain(event.get("pid")), _plain(event.get("tid")))
        held[place] += _PACKED.pack(
            start,
            start + duration,
            names.setdefault(name, len(names)),
            lanes.setdefault(lane, len(lanes)),
            _correlation(event) if place in ("device", "launch") else -1,
        )
        if place == "host":
            processes.add(lane[0])
    device, launches, host, annotations = (
        by_start(np.frombuffer(each, _EVENT)) for each in held.values()
    )
    return Trace(tuple(names), device, launches, host, annotations, odd, left_out, len(processes))


def by_start(events: Events) -> Events:
    """Return the events in order."""
    return events[np.lexsort((-events["end"], events["start"]))]


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < BELIEVED


def _plain(value: object) -> object:
    return value if isinstance(value, int | str) else None


def _correlation(event: dict[str, Any]) -> int:
    arguments = event.get("args")
    value = arguments.get("correlation") if isinstance(arguments, dict) else None
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else -1


def launch_of(trace: Trace) -> NDArray[np.int64]:
    """Return the place in ``launches`` of what launched each device event; -1: not recorded."""
    launches, device = trace.launches["linked"], trace.device["linked"]
    if not len(launches) or not len(device):
        return np.full(len(device), -1)
    order = np.argsort(launches, kind="stable")
    found = order[np.minimum(np.searchsorted(launches[order], device), len(order) - 1)]
    return np.where((launches[found] == device) & (device >= 0), found, -1)


def _launched(trace: Trace) -> NDArray[np.float64]:
    """Return when each device event was launched; its own start where nothing says."""
    found, starts = launch_of(trace), trace.device["start"].copy()
    starts[found >= 0] = trace.launches["start"][found[found >= 0]]
    return starts


@dataclass(frozen=True, slots=True)
class Window:
    """Whole steps on end, in the trace's microseconds."""

    start: float
    end: float
    steps: int
    found: Literal["annotated", "optimizer", "loader", "none"]
    """What tells the steps apart; ``none``: it is the whole trace."""

    def timed(self, seconds: dict[str, float | None], **more: object) -> dict[str, Any]:
        """Return the times of a step, as a record holds them, from those of all steps."""
        unit = "step" if self.found != "none" else "part"
        known = {name: each / self.steps for name, each in seconds.items() if each is not None}
        return {"steps": self.steps, "unit": unit} | known | more


def window(trace: Trace) -> Window | None:
    """Return the steady steps of a trace; None where it has no events."""
    bounds, found = _bounds(trace)
    if len(bounds) < 2:
        return _whole(trace)
    if len(bounds) > ENOUGH:
        bounds = bounds[1:]
    # The host runs ahead of the device by much of a step: the step ends where its last kernel does.
    launched = _launched(trace)
    start, end = (trace.device["end"][launched <= bound].max(initial=bound)
                  for bound in (bounds[0], bounds[-1]))  # fmt: skip
    return Window(float(start), float(end), len(bounds) - 1, found)


def _bounds(
    trace: Trace,
) -> tuple[NDArray[np.float64], Literal["annotated", "optimizer", "loader"]]:
    steps = trace.annotated("ProfilerStep#")
    if len(steps):
        return np.append(np.unique(steps["start"]), steps["end"].max()), "annotated"
    updates = trace.annotated(OPTIMIZER)
    names, counts = np.unique(updates["name"], return_counts=True)
    if len(names) and counts.max() > 1:  # of several optimizers, the one that steps most
        return np.sort(updates["end"][updates["name"] == names[counts.argmax()]]), "optimizer"
    return trace.annotated(LOADER)["start"], "loader"


def _whole(trace: Trace) -> Window | None:
    places = [each for each in (trace.device, trace.launches, trace.host, trace.annotations)
              if len(each)]  # fmt: skip
    start = min((float(each["start"][0]) for each in places), default=0.0)
    end = max((float(each["end"].max()) for each in places), default=0.0)
    return Window(start, end, 1, "none") if end > start else None
