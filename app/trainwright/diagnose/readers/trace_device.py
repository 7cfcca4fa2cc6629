"""A step of a run on a GPU: what the device did at each moment, or why it did nothing."""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from trainwright.diagnose.budget import Use
from trainwright.diagnose.measures.names import family
from trainwright.diagnose.readers import intervals as times
from trainwright.diagnose.readers.found import without_absent
from trainwright.diagnose.readers.intervals import Intervals
from trainwright.diagnose.readers.trace_columns import Events, Trace
from trainwright.diagnose.readers.trace_steps import LOADER, Window, launch_of, named

MICRO = 1e-6
LONG_SILENCE = 1000.0
"""Microseconds without an operator on the host that are more than Python between two of them;
assumed: a hundred times what an operator takes to call."""
_COPY = re.compile(r"^memcpy (htod|dtoh)", re.IGNORECASE)
_HOST_COPY = re.compile(r"host|pageable|pinned", re.IGNORECASE)
_ALLOCATION = re.compile(r"^(cuda|hip)(Malloc|Free|HostAlloc|MallocHost|FreeHost)")
_LAUNCH = re.compile(r"^(cuda|cu|hip)(Ext)?(Module|Graph)?Launch")
_WAIT = re.compile(r"^(cuda|hip)(Stream|Device|Event)Synchronize")
MOST_ROWS = 50
"""Rows that a record holds."""


def kernel_use(name: str) -> Use:
    """Return what a device's event is, from its name."""
    if name.lower().startswith(("memcpy", "memset")):
        moved = _COPY.match(name) or ("->" in name and _HOST_COPY.search(name))
        return "transfer" if moved else "memory-bound"
    match family(name):
        case "communication":
            return "communication"
        case "tensor-core":
            return "tensor-core"
        case "attention":
            return "tensor-core" if re.search(r"flash|bf16|f16", name.lower()) else "matrix"
        case "matrix" | "plain-matrix" | "double-matrix":
            return "matrix"
        case "elementwise" | "layout" | "optimizer" | "scores":
            return "memory-bound"
    return "kernels"


_KERNELS: tuple[Use, ...] = ("tensor-core", "matrix", "memory-bound", "kernels")
"""Where two run at once, the time is the first's."""


def parts(trace: Trace, window: Window) -> dict[Use, float]:
    """Return the seconds of all steps of a window by use; each moment counts once.

    Kernels come before collectives and these before copies: what is hidden behind something else
    costs nothing. While the device does nothing, the host says why.
    """
    by_use = _by_use(trace, window)
    parts: dict[Use, float] = {}
    taken = times.NOTHING
    for use in (*_KERNELS, "communication", "transfer"):
        alone = times.minus(by_use[use], taken)
        parts[use] = times.length(alone) * MICRO
        taken = times.either(taken, by_use[use])
    idle = times.minus(np.array([[window.start, window.end]]), taken)
    return parts | _why_idle(trace, idle)


def _by_use(trace: Trace, window: Window) -> dict[Use, Intervals]:
    uses = [kernel_use(name) for name in trace.names]
    found: dict[Use, Intervals] = {}
    for use in (*_KERNELS, "communication", "transfer"):
        held = np.array([each == use for each in uses], dtype=bool)
        found[use] = _spans(trace.named(trace.device, held), window)
    return found


def _spans(events: Events, window: Window) -> Intervals:
    return times.within(times.union(events.start, events.end), window.start, window.end)


def _why_idle(trace: Trace, idle: Intervals) -> dict[Use, float]:
    """Return the idle time by what the host did meanwhile."""
    loading = _union(named(trace, LOADER))
    allocating = _union(trace.named(trace.launches, _named(trace, _ALLOCATION)))
    busy = times.either(_union(trace.host), _union(trace.launches))
    rest = times.minus(times.minus(idle, loading), allocating)
    silent = times.minus(rest, busy)
    long = silent[silent[:, 1] - silent[:, 0] >= LONG_SILENCE]
    unknown = times.length(long) if len(busy) else times.length(rest)
    return {
        "input": times.length(times.both(idle, loading)) * MICRO,
        "allocator": times.length(times.minus(times.both(idle, allocating), loading)) * MICRO,
        "launch": (times.length(rest) - unknown) * MICRO,
        "unknown": unknown * MICRO,
    }


def _union(events: Events) -> Intervals:
    return times.union(events.start, events.end)


def _named(trace: Trace, words: re.Pattern[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.array([words.search(name) is not None for name in trace.names], dtype=bool)


def facts(trace: Trace, window: Window, spent: dict[Use, float]) -> dict[str, Any]:
    """Return the parts of a record: step times, and the profile of the device."""
    whole = (window.end - window.start) * MICRO
    kernels = sum(spent[use] for use in _KERNELS)
    mean = {use: seconds / window.steps for use, seconds in spent.items()}
    steps = {
        "steps": window.steps,
        "seconds": whole / window.steps,
        "unit": "step" if window.found != "none" else "part",
        "data_wait": mean["input"] if len(named(trace, LOADER)) else None,
        "transfer": mean["transfer"],
        "compute": kernels / window.steps,
        "communication": mean["communication"],
        "device_seconds": (kernels + spent["communication"]) / window.steps,
        "synchronised": True,
    }
    return {"steps": without_absent(steps), "profile": _profile(trace, window, spent, whole)}


def _profile(trace: Trace, window: Window, spent: dict[Use, float], whole: float) -> dict[str, Any]:
    device = _starting_within(trace.device, window)
    launches = _starting_within(trace.launches, window)
    launched = launches.where(_named(trace, _LAUNCH)[launches.name])
    by_use = _by_use(trace, window)
    collective = times.length(by_use["communication"]) * MICRO
    kernels = sum(spent[use] for use in _KERNELS) + spent["communication"]
    loading = times.within(_union(named(trace, LOADER)), window.start, window.end)
    calls = {words: int(_named(trace, words)[launches.name].sum()) / window.steps
             for words in (_WAIT, _ALLOCATION)}  # fmt: skip
    lasting = launched.end - launched.start
    return without_absent({
        "step_seconds": whole / window.steps,
        "kernels_a_step": len(device) / window.steps,
        "kernel_median_seconds": _median(device.end - device.start),
        "short_kernels": _short(trace, window),
        "launches_a_step": len(launched) / window.steps if len(launches) else None,
        "launch_seconds": float(lasting.sum()) * MICRO / window.steps if len(launches) else None,
        "launch_median_seconds": _median(lasting),
        "idle": _share(1 - kernels / whole),
        "host_wait": _share(spent["launch"] / whole),
        "copies": _share(spent["transfer"] / whole),
        "data_loader": _share(times.length(loading) * MICRO / whole),
        "communication": _share(collective / whole),
        "communication_hidden": _share(1 - spent["communication"] / collective)
        if collective > 0 else None,
        "synchronise_calls": calls[_WAIT] if len(launches) else None,
        "allocation_calls": calls[_ALLOCATION] if len(launches) else None,
    } | _of_busy(trace, device, window.steps))  # fmt: skip


def _starting_within(events: Events, window: Window) -> Events:
    return events.where((events.start >= window.start) & (events.start < window.end))


def _of_busy(trace: Trace, device: Events, steps: int) -> dict[str, Any]:
    """Return shares of the device's busy time by kind of kernel, and its largest rows."""
    lasting = device.end - device.start
    total = float(lasting.sum())
    if total <= 0:
        return {}
    by_name = np.bincount(device.name, weights=lasting, minlength=len(trace.names))
    calls = np.bincount(device.name, minlength=len(trace.names))
    families = [family(name) if by_name[at] else None for at, name in enumerate(trace.names)]
    uses = [kernel_use(name) if by_name[at] else None for at, name in enumerate(trace.names)]

    def share(held: Iterable[bool]) -> float:
        return _share(float(by_name[np.fromiter(held, dtype=bool)].sum()) / total)

    return {
        "tensor_core": share(each == "tensor-core" for each in uses),
        "tensor_core_eligible": share(each in ("tensor-core", "matrix") for each in uses),
        "layout": share(each == "layout" for each in families),
        "elementwise": share(each == "elementwise" for each in families),
        "top": [
            {
                "name": trace.names[at][:500],
                "share": _share(float(by_name[at]) / total),
                "calls": int(calls[at]) / steps,
                "seconds": float(by_name[at]) * MICRO / int(calls[at]),
            }
            for at in np.argsort(-by_name)[:MOST_ROWS]
            if calls[at]
        ],
    }


def _short(trace: Trace, window: Window) -> float | None:
    """Return the share of kernels that were shorter than the call that launched them."""
    found = launch_of(trace)
    held = (found >= 0) & (trace.device.start >= window.start) & (trace.device.start < window.end)
    if not held.any():
        return None
    launches = found[held]
    launching = trace.launches.end[launches] - trace.launches.start[launches]
    return float(np.mean(trace.device.end[held] - trace.device.start[held] < launching))


def _median(lasting: np.ndarray[Any, np.dtype[np.float64]]) -> float | None:
    return float(np.median(lasting)) * MICRO if len(lasting) else None


def _share(value: float) -> float:
    return min(1.0, max(0.0, value))
