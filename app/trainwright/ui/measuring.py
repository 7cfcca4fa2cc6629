"""What the benchmark cards ask of the core; see ``trainwright.ui.core``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainwright.probe.benchmark import Choices, Cost, Name

if TYPE_CHECKING:
    from trainwright.probe.measurements import Kept


def _cost(name: Name, choices: Choices) -> Cost:
    from trainwright.probe import benchmarks  # loads the drivers' libraries

    return benchmarks.cost(name, choices)


def _run(
    name: Name,
    choices: Choices,
    on_progress: Callable[[float, str], None],
    cancelled: Callable[[], bool],
) -> object:
    from trainwright.probe import benchmarks

    return benchmarks.run(name, choices, on_progress, cancelled)


def _kept() -> "Kept":
    from trainwright.probe import measurements

    return measurements.load()


def _interpreter() -> str:
    from trainwright.profile import interpreter

    return interpreter.chosen()


@dataclass(frozen=True, slots=True)
class Measuring:
    """What the cards ask of the core; a test may answer instead."""

    cost: Callable[[Name, Choices], Cost] = _cost
    run: Callable[..., Any] = _run
    kept: "Callable[[], Kept]" = _kept
    interpreter: Callable[[], str] = _interpreter
    home: Path = field(default_factory=Path.home)
