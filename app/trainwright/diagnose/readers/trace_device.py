"""A step of a run on a GPU: what the device did at each moment, or why it did nothing."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.diagnose.budget import Use
from trainwright.diagnose.measures.names import family
from trainwright.diagnose.readers import intervals as times
from trainwright.diagnose.readers.found import profile_rows, share, without_absent
from trainwright.diagnose.readers.intervals import Intervals
from trainwright.diagnose.readers.trace_events import LOADER, Events, Trace, Window, launch_of

MICRO = 1e-6
LONG_SILENCE = 1000.0
"""Microseconds without an operator on the host that are more than Python between two of them;
assumed: a hundred times what an operator takes to call."""
_COPY = re.compile(r"^memcpy (htod|dtoh)", re.IGNORECASE)
_HOST_COPY = re.compile(r"host|pageable|pinned", re.IGNORECASE)
_HALF = re.compile(r"flash|bf16|f16")
_ALLOCATION = re.compile(r"^(cuda|hip)(Malloc|Free|HostAlloc|MallocHost|FreeHost)")
_LAUNCH = re.compile(r"^(cuda|cu|hip)(Ext)?(Module|Graph)?Launch")
_WAIT = re.compile(r"^(cuda|hip)(Stream|Device|Event)Synchronize")
_KERNELS: tuple[Use, ...] = ("tensor-core", "matrix", "memory-bound", "kernels")
_USES: tuple[Use, ...] = (*_KERNELS, "communication", "transfer")
"""What a device does; where it does two at once, the time is the first's: what is hidden behind
something else costs nothing."""


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
            return "tensor-core" if _HALF.search(name.lower()) else "matrix"
        case "matrix" | "plain-matrix" | "double-matrix":
            return "matrix"
        case "elementwise" | "layout" | "optimizer" | "scores":
            return "memory-bound"
    return "kernels"


def read(trace: Trace, window: Window) -> tuple[dict[Use, float], dict[str, Any]]:
    """Return the seconds of a window by use, each moment once, and the parts of a record."""
    busy = _busy(trace, window)
    spent: dict[Use, float] = {}
    taken = times.NOTHING
    for use in _USES:
        spent[use] = times.length(times.minus(busy[use], taken)) * MICRO
        taken = times.either(taken, busy[use])
    spent |= _idle(trace, times.minus(np.array([[window.start, window.end]]), taken))
    kernels = sum(spent[use] for use in _KERNELS)
    loader = trace.annotated(LOADER)
    a_step = {
        "seconds": (window.end - window.start) * MICRO,
        "data_wait": spent["input"] if len(loader) else None,
        "transfer": spent["transfer"],
        "compute": kernels,
        "communication": spent["communication"],
        "device_seconds": kernels + spent["communication"],
    }
    steps = window.timed(a_step, synchronised=True)
    collective = times.length(busy["communication"]) * MICRO
    profile = _profile(trace, window, spent, collective)
    return spent, {"steps": steps, "profile": without_absent(profile)}


def _busy(trace: Trace, window: Window) -> dict[Use, Intervals]:
    """Return when the device did what."""
    of_names = np.array([_USES.index(kernel_use(name)) for name in trace.names], dtype=int)
    uses = of_names[trace.device["name"]]
    return {
        use: times.within(_union(trace.device[uses == at]), window.start, window.end)
        for at, use in enumerate(_USES)
    }


def _idle(trace: Trace, idle: Intervals) -> dict[Use, float]:
    """Return the idle time by what the host did meanwhile."""
    loading = _union(trace.annotated(LOADER))
    allocating = _union(trace.named(trace.launches, _ALLOCATION.search))
    calling = times.either(_union(trace.host), _union(trace.launches))
    rest = times.minus(times.minus(idle, loading), allocating)
    silent = times.minus(rest, calling)
    long = silent[silent[:, 1] - silent[:, 0] >= LONG_SILENCE]
    unknown = times.length(long) if len(calling) else times.length(rest)
    return {
        "input": times.length(times.both(idle, loading)) * MICRO,
        "allocator": times.length(times.minus(times.both(idle, allocating), loading)) * MICRO,
        "launch": (times.length(rest) - unknown) * MICRO,
        "unknown": unknown * MICRO,
    }


def _union(events: Events) -> Intervals:
    return times.union(events["start"], events["end"])


def _profile(
    trace: Trace, window: Window, spent: dict[Use, float], collective: float
) -> dict[str, Any]:
    whole, steps = (window.end - window.start) * MICRO, window.steps
    device, launches = _within(trace.device, window), _within(trace.launches, window)
    launched = trace.named(launches, _LAUNCH.search)
    loading = times.within(_union(trace.annotated(LOADER)), window.start, window.end)
    busy = sum(spent[use] for use in _KERNELS) + spent["communication"]
    of_host = {
        "launches_a_step": len(launched) / steps,
        "launch_seconds": float(_lasting(launched).sum()) * MICRO / steps,
        "synchronise_calls": len(trace.named(launches, _WAIT.search)) / steps,
        "allocation_calls": len(trace.named(launches, _ALLOCATION.search)) / steps,
    }
    return {
        "step_seconds": whole / steps,
        "kernels_a_step": len(device) / steps,
        "kernel_median_seconds": _median(device),
        "short_kernels": _short(trace, window),
        "launch_median_seconds": _median(launched),
        "idle": share(1 - busy / whole),
        "host_wait": share(spent["launch"] / whole),
        "copies": share(spent["transfer"] / whole),
        "data_loader": share(times.length(loading) * MICRO / whole),
        "communication": share(collective / whole),
        "communication_hidden": share(1 - spent["communication"] / collective)
        if collective > 0 else None,
    } | (of_host if len(launches) else {}) | _of_busy(trace, device, steps)  # fmt: skip


def _within(events: Events, window: Window) -> Events:
    return events[(events["start"] >= window.start) & (events["start"] < window.end)]


def _lasting(events: Events) -> NDArray[np.float64]:
    lasting: NDArray[np.float64] = events["end"] - events["start"]
    return lasting


def _median(events: Events) -> float | None:
    return float(np.median(_lasting(events))) * MICRO if len(events) else None


def _of_busy(trace: Trace, device: Events, steps: int) -> dict[str, Any]:
    """Return shares of the device's busy time by kind of kernel, and its largest rows."""
    lasting = np.bincount(device["name"], _lasting(device), len(trace.names)) * MICRO
    calls = np.bincount(device["name"], minlength=len(trace.names))
    rows = [(trace.names[at], float(lasting[at]), int(calls[at])) for at in calls.nonzero()[0]]
    total = float(lasting.sum())
    if total <= 0:
        return {}

    def of(kind: Callable[[str], object], *kinds: str) -> float:
        return share(sum(seconds for name, seconds, _ in rows if kind(name) in kinds) / total)

    return {
        "tensor_core": of(kernel_use, "tensor-core"),
        "tensor_core_eligible": of(kernel_use, "tensor-core", "matrix"),
        "layout": of(family, "layout"),
        "elementwise": of(family, "elementwise"),
        "top": profile_rows(rows, total, steps),
    }


def _short(trace: Trace, window: Window) -> float | None:
    """Return the share of kernels that were shorter than the call that launched them."""
    found, starts = launch_of(trace), trace.device["start"]
    held = (found >= 0) & (starts >= window.start) & (starts < window.end)
    if not held.any():
        return None
    launching = _lasting(trace.launches[found[held]])
    return float(np.mean(_lasting(trace.device[held]) < launching))
