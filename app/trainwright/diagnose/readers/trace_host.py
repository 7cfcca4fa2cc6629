"""A step of a run on the processor: what its training thread did at each moment."""

from typing import Any

import numpy as np

from trainwright.diagnose.budget import Use
from trainwright.diagnose.measures.names import family
from trainwright.diagnose.readers.found import profile_rows, share, without_absent
from trainwright.diagnose.readers.trace_device import MICRO
from trainwright.diagnose.readers.trace_events import (
    LOADER,
    OPTIMIZER,
    Events,
    Trace,
    Window,
    by_start,
)

_OUTER: tuple[Use, ...] = ("input", "optimizer", "communication")
"""Uses that hold for all that is called within."""
_COMPUTING: tuple[Use, ...] = ("matrix", "compute", "waiting", "optimizer")
_MATRIX = ("matrix", "plain-matrix", "tensor-core", "attention", "direct", "fallback")
_FAMILIES: dict[str | None, Use] = {
    **{"communication": "communication", "waiting": "waiting"},
    **dict.fromkeys(_MATRIX, "matrix"),
}


def operator_use(name: str) -> Use | None:
    """Return what an operator or annotation is; None: a bracket around others, like a step's."""
    if name.startswith(LOADER):
        return "input"
    if name.startswith((OPTIMIZER, "Optimizer.zero_grad#")):
        return "optimizer"
    if name.startswith(("ProfilerStep#", "## ", "nn.Module:")):
        return None
    return _FAMILIES.get(family(name), "compute")


def read(trace: Trace, window: Window) -> tuple[dict[Use, float], dict[str, Any]]:
    """Return the seconds of a window by use, each moment once, and the parts of a record."""
    spent, by_name = _own_times(trace, window)
    whole, steps = (window.end - window.start) * MICRO, window.steps
    has_loader = any(name.startswith(LOADER) for name in trace.names)
    a_step = {
        "seconds": whole,
        "data_wait": spent.get("input", 0.0) if has_loader else None,
        "compute": sum(spent.get(use, 0.0) for use in _COMPUTING),
        "optimizer": spent.get("optimizer"),
        "communication": spent.get("communication"),
    }
    rows = ((trace.names[name], seconds, calls) for name, (seconds, calls) in by_name.items()
            if not trace.names[name].startswith((LOADER, "ProfilerStep#")))  # fmt: skip
    profile = {
        "step_seconds": whole / steps,
        "data_loader": share(spent.get("input", 0.0) / whole) if has_loader else None,
        "top": profile_rows(rows, whole, steps),
    }
    return spent, {"steps": window.timed(a_step), "profile": without_absent(profile)}


def _own_times(trace: Trace, window: Window) -> tuple[dict[Use, float], dict[int, list[float]]]:
    """Return the training thread's seconds by use, and by name with the calls.

    An operator's own time leaves out those that it calls. Where nothing was recorded, Python ran.
    """
    events = _training_thread(trace, window)
    uses = [operator_use(name) for name in trace.names]
    spent: dict[Use, float] = {}
    by_name: dict[int, list[float]] = {}
    stack: list[tuple[float, int, Use | None]] = []
    at = window.start

    def spend(until: float) -> None:
        nonlocal at
        if until > at:
            use = (stack[-1][2] if stack else None) or "launch"
            spent[use] = spent.get(use, 0.0) + (until - at) * MICRO
            if stack:
                by_name[stack[-1][1]][0] += (until - at) * MICRO
            at = until

    def end_until(start: float) -> None:
        while stack and stack[-1][0] <= start:
            spend(stack[-1][0])
            stack.pop()

    for start, end, name in events[["start", "end", "name"]].tolist():
        end_until(start)
        spend(start)
        outer = stack[-1][2] if stack else None
        stack.append((end, name, outer if outer in _OUTER else uses[name]))
        by_name.setdefault(name, [0.0, 0])[1] += 1
    end_until(window.end)
    spend(window.end)
    return spent, by_name


def _training_thread(trace: Trace, window: Window) -> Events:
    """Return the events of the thread that has the optimizer's steps or the longest operators."""
    events = np.concatenate((trace.host, trace.annotations))
    events = events[(events["end"] > window.start) & (events["start"] < window.end)]
    if not len(events):
        return events
    lane = np.bincount(events["lane"], events["end"] - events["start"]).argmax()
    events = events[events["lane"] == lane]
    events["start"] = np.maximum(events["start"], window.start)
    events["end"] = np.minimum(events["end"], window.end)
    return by_start(events)
