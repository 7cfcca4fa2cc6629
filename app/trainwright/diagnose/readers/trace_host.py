"""A step of a run on the processor: what its training thread did at each moment."""

from typing import Any

import numpy as np

from trainwright.diagnose.budget import Use
from trainwright.diagnose.measures.names import family
from trainwright.diagnose.readers.found import without_absent
from trainwright.diagnose.readers.trace_columns import Events, Trace
from trainwright.diagnose.readers.trace_device import MICRO, MOST_ROWS
from trainwright.diagnose.readers.trace_steps import LOADER, OPTIMIZER, Window

_OUTER: tuple[Use, ...] = ("input", "optimizer", "communication")
"""Uses that hold for all that is called within."""


def operator_use(name: str) -> Use | None:
    """Return what an operator or annotation is; None: a bracket around others, like a step's."""
    if name.startswith(LOADER):
        return "input"
    if name.startswith((OPTIMIZER, "Optimizer.zero_grad#")):
        return "optimizer"
    if name.startswith(("ProfilerStep#", "## ", "nn.Module:")):
        return None
    match family(name):
        case "communication":
            return "communication"
        case "matrix" | "plain-matrix" | "tensor-core" | "attention" | "direct" | "fallback":
            return "matrix"
        case "waiting":
            return "waiting"
    return "compute"


def own_times(trace: Trace, window: Window) -> tuple[dict[Use, float], dict[int, list[float]]]:
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
            use = stack[-1][2] if stack else None
            spent[use or "launch"] = spent.get(use or "launch", 0.0) + (until - at) * MICRO
            if stack:
                by_name[stack[-1][1]][0] += (until - at) * MICRO
            at = until

    starts, ends = events.start.tolist(), events.end.tolist()
    for start, end, name in zip(starts, ends, events.name.tolist(), strict=True):
        while stack and stack[-1][0] <= start:
            spend(stack[-1][0])
            stack.pop()
        spend(start)
        outer = stack[-1][2] if stack else None
        stack.append((end, name, outer if outer in _OUTER else uses[name]))
        by_name.setdefault(name, [0.0, 0])[1] += 1
    while stack:
        spend(stack[-1][0])
        stack.pop()
    spend(window.end)
    return spent, by_name


def _training_thread(trace: Trace, window: Window) -> Events:
    """Return the events of the thread that has the optimizer's steps or the longest operators."""
    both = [np.concatenate((getattr(trace.host, each), getattr(trace.annotations, each)))
            for each in ("start", "end", "name", "lane", "linked")]  # fmt: skip
    events = Events(*both)
    held = (events.end > window.start) & (events.start < window.end)
    lasting = np.where(held, events.end - events.start, 0.0)
    lane = int(np.bincount(events.lane, weights=lasting).argmax())
    events = events.where(held & (events.lane == lane))
    start, end = np.maximum(events.start, window.start), np.minimum(events.end, window.end)
    order = np.lexsort((-end, start))
    return Events(start, end, events.name, events.lane, events.linked).where(order)


def facts(trace: Trace, window: Window, spent: dict[Use, float],
          by_name: dict[int, list[float]]) -> dict[str, Any]:  # fmt: skip
    """Return the parts of a record: step times, and the profile of the operators."""
    whole = (window.end - window.start) * MICRO
    mean = {use: seconds / window.steps for use, seconds in spent.items()}
    has_loader = any(name.startswith(LOADER) for name in trace.names)
    computing = sum(mean.get(use, 0.0) for use in ("matrix", "compute", "waiting", "optimizer"))
    steps = {
        "steps": window.steps,
        "seconds": whole / window.steps,
        "unit": "step" if window.found != "none" else "part",
        "data_wait": mean.get("input", 0.0) if has_loader else None,
        "compute": computing,
        "optimizer": mean.get("optimizer"),
        "communication": mean.get("communication"),
    }
    largest = sorted(by_name.items(), key=lambda each: -each[1][0])[:MOST_ROWS]
    profile = {
        "step_seconds": whole / window.steps,
        "data_loader": min(1.0, spent.get("input", 0.0) / whole) if has_loader else None,
        "top": [
            {
                "name": trace.names[name][:500],
                "share": min(1.0, seconds / whole),
                "calls": calls / window.steps,
                "seconds": seconds / calls,
            }
            for name, (seconds, calls) in largest
            if seconds > 0 and not trace.names[name].startswith((LOADER, "ProfilerStep#"))
        ],
    }
    return {"steps": without_absent(steps), "profile": without_absent(profile)}
