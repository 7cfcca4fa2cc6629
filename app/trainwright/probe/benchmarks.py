"""The benchmarks of this computer by name: what they take, and their runs; all are asked for."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from trainwright.messages import Message, UserError
from trainwright.probe import benchmark_cpu, benchmark_disk, benchmark_gpu, measurements, occupied
from trainwright.probe.benchmark import Choices, Cost, Name, Outcome, Progress, Run

NAMES: tuple[Name, ...] = get_args(Name)
MOST_SECONDS = 60.0
"""Of one test; assumed: longer ones wear and heat for nothing."""
PREFIXES: dict[Name, tuple[str, ...]] = {
    "disk": ("drive",),
    "cpu": ("decode",),
    "gpu": ("product", "copy"),
    "link": ("link", "reduce"),
}
"""First words of the measurements that each benchmark makes."""


@dataclass(frozen=True, slots=True)
class _Benchmark:
    cost: Callable[[Choices], Cost]
    run: Run
    on_gpu: bool = False


_ALL: dict[Name, _Benchmark] = {
    "disk": _Benchmark(benchmark_disk.cost, benchmark_disk.run),
    "cpu": _Benchmark(benchmark_cpu.cost, benchmark_cpu.run),
    "gpu": _Benchmark(benchmark_gpu.gpu_cost, benchmark_gpu.run_gpu, on_gpu=True),
    "link": _Benchmark(benchmark_gpu.link_cost, benchmark_gpu.run_link, on_gpu=True),
}


def cost(name: Name, choices: Choices) -> Cost:
    """Return what a benchmark takes.

    Raises:
        UserError: a choice is out of bounds, or the drive has no room.
    """
    if not (math.isfinite(choices.seconds) and 0 < choices.seconds <= MOST_SECONDS):
        raise UserError.of("bench.seconds", most=MOST_SECONDS)
    return _ALL[name].cost(choices)


def said(name: Name, cost: Cost, choices: Choices) -> Message:
    """Return what a benchmark takes as a sentence, whole seconds rounded up."""
    return Message.of(
        f"bench.takes.{name}",
        seconds=math.ceil(cost.seconds),
        disk=cost.disk_bytes,
        memory=cost.memory_bytes,
        folder=str(choices.folder),
    )


def hindrance(name: Name, choices: Choices) -> Message | None:
    """Return why figures would not hold now; None where nothing speaks against it."""
    if choices.force:
        return None
    return occupied.on_battery() or (occupied.busy_gpu() if _ALL[name].on_gpu else None)


def run(
    name: Name,
    choices: Choices,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Outcome:
    """Run a benchmark, keep what it measured for this computer, and return it.

    Raises:
        UserError: it cannot be run now, failed, was cancelled; or the results cannot be kept.
    """
    cost(name, choices)
    hindered = hindrance(name, choices)
    if hindered is not None:
        raise UserError(hindered)
    outcome = _ALL[name].run(choices, on_progress, cancelled)
    note = measurements.keep(outcome.measurements).note
    return outcome if note is None else Outcome(outcome.measurements, (*outcome.notes, note))
