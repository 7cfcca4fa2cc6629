"""A step of a run on a GPU: what the device did at each moment, or why it did nothing."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.diagnose.budget import Use
from trainwright.diagnose.measures.names import family
from trainwright.diagnose.readers.found import profile_rows, share, without_absent
from trainwright.diagnose.readers.trace_events import LOADER, Events, Trace, Window, launch_of

MICRO = 1e-6
LONG_SILENCE = 1000.0
"""Microseconds without an operator on the host that are more than Python between two of them;
assumed: a hundred times what an operator takes to call."""
_COPY = re.compile(r"^memcpy (htod|dtoh)", re.IGNORECASE)
_HOST_COPY = re.compile(r"host|pageable|pinned", re.IGNORECASE)
_HALF = re.compile(r"flash|bf16|f16")
ALLOCATION = re.compile(r"^(cuda|hip)(Malloc|Free|HostAlloc|MallocHost|FreeHost)")
LAUNCH = re.compile(r"^(cuda|cu|hip)(Ext)?(Module|Graph)?Launch")
WAIT = re.compile(r"^(cuda|hip)(Stream|Device|Event)Synchronize")
"""Calls of CUDA's and HIP's runtimes and drivers, as profilers name them."""
_KERNELS: tuple[Use, ...] = ("tensor-core", "matrix", "memory-bound", "kernels")
_USES: tuple[Use, ...] = (*_KERNELS, "communication", "transfer")
"""What a device does; where it does two at once, the time is the first's: what is hidden behind
something else costs nothing."""

_FAMILIES: dict[str | None, Use] = {
    **{"communication": "communication", "tensor-core": "tensor-core"},
    **dict.fromkeys(("matrix", "plain-matrix", "double-matrix"), "matrix"),
    **dict.fromkeys(("elementwise", "layout", "optimizer", "scores"), "memory-bound"),
}


def kernel_use(name: str) -> Use:
    """Return what a device's event is, from its name."""
    if name.lower().startswith(("memcpy", "memset")):
        moved = _COPY.match(name) or ("->" in name and _HOST_COPY.search(name))
        return "transfer" if moved else "memory-bound"
    if (kind := family(name)) == "attention":
        return "tensor-core" if _HALF.search(name.lower()) else "matrix"
    return _FAMILIES.get(kind, "kernels")


@dataclass(frozen=True, slots=True)
class Pieces:
    """A window cut wherever something begins or ends: in a piece, each thing is on or off."""

    cuts: NDArray[np.float64]

    @classmethod
    def of(cls, window: Window, *events: Events) -> "Pieces":
        """Return the pieces of a window."""
        ends = [each[side] for each in events for side in ("start", "end")]
        cuts = np.concatenate(([window.start, window.end], *ends))
        return cls(np.unique(np.clip(cuts, window.start, window.end)))

    def during(self, events: Events) -> "Held":
        """Return the pieces in which any of the events is on."""
        begun, ended = (
            np.bincount(np.searchsorted(self.cuts, np.clip(events[side], *self.cuts[[0, -1]])),
                        minlength=len(self.cuts))
            for side in ("start", "end")
        )  # fmt: skip
        on: Held = np.cumsum(begun - ended)[:-1] > 0
        return on

    def seconds(self, held: "Held") -> float:
        """Return how long the pieces are, all together."""
        return float(np.diff(self.cuts)[held].sum()) * MICRO

    def long(self, held: "Held") -> float:
        """Return how long those pieces are that follow each other for a long time."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], held, [False]))))
        runs = self.cuts[edges[1::2]] - self.cuts[edges[::2]]
        return float(runs[runs >= LONG_SILENCE].sum()) * MICRO


Held = NDArray[np.bool_]
"""Which of the pieces."""


def read(trace: Trace, window: Window) -> tuple[dict[Use, float], dict[str, Any]]:
    """Return the seconds of a window by use, each moment once, and the parts of a record."""
    loader = trace.annotated(LOADER)
    pieces = Pieces.of(window, trace.device, trace.launches, trace.host, loader)
    of_names = np.array([_USES.index(kernel_use(name)) for name in trace.names], dtype=int)
    uses = of_names[trace.device["name"]]
    busy = {use: pieces.during(trace.device[uses == at]) for at, use in enumerate(_USES)}
    idle, spent = np.ones(len(pieces.cuts) - 1, dtype=bool), dict[Use, float]()
    for use in _USES:
        spent[use] = pieces.seconds(busy[use] & idle)
        idle &= ~busy[use]
    # While the device does nothing, the host says why.
    loading = pieces.during(loader)
    allocating = pieces.during(trace.named(trace.launches, ALLOCATION.search)) & ~loading
    rest = idle & ~loading & ~allocating
    silent = rest & ~pieces.during(trace.host) & ~pieces.during(trace.launches)
    seen = len(trace.host) + len(trace.launches) > 0
    unknown = pieces.long(silent) if seen else pieces.seconds(rest)
    spent |= {
        "input": pieces.seconds(idle & loading),
        "allocator": pieces.seconds(idle & allocating),
        "launch": pieces.seconds(rest) - unknown,
        "unknown": unknown,
    }
    kernels = sum(spent[use] for use in _KERNELS)
    a_step = {
        "seconds": (window.end - window.start) * MICRO,
        "data_wait": spent["input"] if len(loader) else None,
        "transfer": spent["transfer"],
        "compute": kernels,
        "communication": spent["communication"],
        "device_seconds": kernels + spent["communication"],
    }
    profile = _shares(window, spent, pieces.seconds(loading), pieces.seconds(busy["communication"]))
    profile |= _kernels(trace, window)
    return spent, {"steps": window.timed(a_step, synchronised=True), "profile": profile}


def _shares(
    window: Window, spent: dict[Use, float], loading: float, collective: float
) -> dict[str, Any]:
    """Return shares of the step, from seconds in it, in the loader and in collectives."""
    whole, shown = (window.end - window.start) * MICRO, spent["communication"]
    busy = sum(spent[use] for use in _KERNELS) + shown
    shares = {
        "idle": whole - busy,
        "host_wait": spent["launch"],
        "copies": spent["transfer"],
        "data_loader": loading,
        "communication": collective,
    }
    hidden = {"communication_hidden": share(1 - shown / collective)} if collective > 0 else {}
    return {name: share(each / whole) for name, each in shares.items()} | hidden


def _kernels(trace: Trace, window: Window) -> dict[str, Any]:
    """Return what the window's kernels and launches were."""
    steps = window.steps
    device, launches = _within(trace.device, window), _within(trace.launches, window)
    launched = trace.named(launches, LAUNCH.search)
    of_host = {
        "launches_a_step": len(launched) / steps,
        "launch_seconds": float(_lasting(launched).sum()) * MICRO / steps,
        "synchronise_calls": len(trace.named(launches, WAIT.search)) / steps,
        "allocation_calls": len(trace.named(launches, ALLOCATION.search)) / steps,
    }
    return without_absent({
        "step_seconds": (window.end - window.start) * MICRO / steps,
        "kernels_a_step": len(device) / steps,
        "kernel_median_seconds": _median(device),
        "short_kernels": _short(trace, window),
        "launch_median_seconds": _median(launched),
    }) | (of_host if len(launches) else {}) | _of_busy(trace, device, steps)  # fmt: skip


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
