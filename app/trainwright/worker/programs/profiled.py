"""Steps under torch's profiler: a trace file, and what it says in a few figures."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from memorylog import living_bytes

TRACE = "trainwright.pt.trace.json.gz"
"""The ending by which TensorBoard's profiler plugin finds traces; Perfetto opens any name."""
MOST_POINTS = 2000
"""Of the memory's timeline; assumed, more than a screen has pixels."""
TOP = 20

Span = tuple[int, int]


def traced(run: Callable[[], Any], steps: int, folder: str, cuda: bool) -> dict[str, Any]:
    """Run the steps under the profiler, write the trace below the folder, return a summary."""
    kinds = torch.profiler.ProfilerActivity
    activities = [kinds.CPU, kinds.CUDA] if cuda else [kinds.CPU]
    live = torch.cuda.memory_allocated() if cuda else 0
    with torch.profiler.profile(
        activities=activities, profile_memory=True, record_shapes=True
    ) as profile:
        for number in range(steps):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                run()
        if cuda:
            torch.cuda.synchronize()
    path = Path(folder) / TRACE
    profile.export_chrome_trace(str(path))
    return summary(profile, steps, cuda, live) | {"trace": TRACE, "size": path.stat().st_size}


def summary(profile: Any, steps: int, cuda: bool, live: int) -> dict[str, Any]:
    """Return what the trace says.

    ``busy`` is the device's: kernels on a GPU; operators on a CPU, whose idle share is what Python
    takes between them.
    """
    events = [e for e in profile.profiler.kineto_results.events() if e.name() != "[memory]"]
    marks = [e for e in events if e.name().startswith("ProfilerStep#") and _on(e, "CPU")]
    start, end = min(e.start_ns() for e in marks), max(e.end_ns() for e in marks)
    device = "CUDA" if cuda else "CPU"
    work = [e for e in events if _on(e, device) and not e.name().startswith("ProfilerStep")]
    if cuda:
        end = max([end, *(e.end_ns() for e in work)])
    else:
        work = [e for e in work if e.name().startswith(("aten::", "autograd::", "Optimizer"))]
    spans = [(e.start_ns(), e.end_ns()) for e in work]
    window = end - start
    table = _operators(profile, cuda)
    found: dict[str, Any] = {
        "steps": steps,
        "step_seconds": window / steps / 1e9,
        "idle": max(0.0, 1 - _covered(spans, start, end) / window),
        "operators": table,
        "memory": _timeline(living_bytes(profile, live, device), start),
    }
    if cuda:
        lengths = [last - first for first, last in spans]
        found["kernels_a_step"] = len(spans) / steps
        found["kernel_median_seconds"] = statistics.median(lengths) / 1e9 if lengths else None
    return found


def _on(event: Any, device: str) -> bool:
    return bool(event.device_type().name == device)


def _covered(spans: Iterable[Span], start: int, end: int) -> int:
    """Return how much of a stretch of time the spans cover together."""
    covered, reached = 0, start
    for first, last in sorted(spans):
        first, last = max(first, reached), min(last, end)
        if last > first:
            covered += last - first
            reached = last
    return covered


def _operators(profile: Any, cuda: bool) -> list[dict[str, Any]]:
    """Return the operators with the longest own time, longest first."""
    name = "self_device_time_total" if cuda else "self_cpu_time_total"
    rows = [
        (row.key, row.count, float(getattr(row, name)))
        for row in profile.key_averages()
        if not row.key.startswith(("ProfilerStep", "[memory]"))
    ]
    total = sum(each for _, _, each in rows) or 1.0
    rows.sort(key=lambda row: -row[2])
    return [
        {"name": key[:500], "calls": count, "seconds": microseconds / 1e6,
         "share": microseconds / total}
        for key, count, microseconds in rows[:TOP]
        if microseconds > 0
    ]  # fmt: skip


def _timeline(living: Sequence[tuple[int, int]], start: int) -> list[tuple[float, int]]:
    """Return (seconds, bytes): of each stretch the highest, so that no peak is lost."""
    if not living:
        return []
    stretch = -(-len(living) // MOST_POINTS)
    parts = (living[at : at + stretch] for at in range(0, len(living), stretch))
    tops = (max(part, key=lambda point: point[1]) for part in parts)
    return [((moment - start) / 1e9, nbytes) for moment, nbytes in tops]
