"""Where steps begin and end in a trace, with annotations of them or without."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trainwright.diagnose.readers.trace_columns import Events, Trace

LOADER = "enumerate(DataLoader)#"
OPTIMIZER = "Optimizer.step#"
ENOUGH = 3
"""With as many steps or more, the first is left out as warm-up; assumed."""


@dataclass(frozen=True, slots=True)
class Window:
    """Whole steps on end, in the trace's microseconds."""

    start: float
    end: float
    steps: int
    found: Literal["annotated", "optimizer", "loader", "none"]
    """What tells the steps apart; ``none``: it is the whole trace."""


def named(trace: Trace, *starts: str) -> Events:
    """Return the annotations whose name begins in one of these ways."""
    held = np.array([name.startswith(starts) for name in trace.names], dtype=bool)
    return trace.named(trace.annotations, held)


def window(trace: Trace) -> Window | None:
    """Return the steady steps of a trace; None where it has no events."""
    bounds, found = _bounds(trace)
    if len(bounds) < 2:
        return _whole(trace)
    if len(bounds) > ENOUGH:
        bounds = bounds[1:]
    start, end = (_on_device(trace, bounds[at]) for at in (0, -1))
    return Window(start, end, len(bounds) - 1, found)


def _bounds(
    trace: Trace,
) -> tuple[NDArray[np.float64], Literal["annotated", "optimizer", "loader"]]:
    steps = named(trace, "ProfilerStep#")
    if len(steps):
        return np.append(np.unique(steps.start), steps.end.max()), "annotated"
    updates = _most_common(named(trace, OPTIMIZER))
    if len(updates) > 1:
        return np.sort(updates.end), "optimizer"
    return named(trace, LOADER).start, "loader"


def _most_common(events: Events) -> Events:
    """Return the events of the name that occurs most: of several optimizers, one."""
    if not len(events):
        return events
    names, counts = np.unique(events.name, return_counts=True)
    return events.where(events.name == names[counts.argmax()])


def _whole(trace: Trace) -> Window | None:
    places = [each for each in (trace.device, trace.launches, trace.host, trace.annotations)
              if len(each)]  # fmt: skip
    if not places:
        return None
    start = min(float(each.start[0]) for each in places)
    end = max(float(each.end.max()) for each in places)
    return Window(start, end, 1, "none") if end > start else None


def _on_device(trace: Trace, bound: float) -> float:
    """Return when the device had done what the host launched before ``bound``.

    The host runs ahead of the device by much of a step; the step ends where its last kernel does.
    """
    launched = launch_starts(trace)
    before = trace.device.end[launched <= bound]
    return max(bound, float(before.max())) if before.size else bound


def launch_of(trace: Trace) -> NDArray[np.int64]:
    """Return the place in ``launches`` of what launched each device event; -1: not recorded."""
    launches, device = trace.launches.linked, trace.device.linked
    if not len(launches) or not len(device):
        return np.full(len(device), -1)
    order = np.argsort(launches, kind="stable")
    at = np.minimum(np.searchsorted(launches[order], device), len(order) - 1)
    found = order[at]
    return np.where((launches[found] == device) & (device >= 0), found, -1)


def launch_starts(trace: Trace) -> NDArray[np.float64]:
    """Return when each device event was launched; its own start where nothing says."""
    found = launch_of(trace)
    starts = trace.launches.start[found] if len(trace.launches) else trace.device.start
    return np.where(found >= 0, starts, trace.device.start)
