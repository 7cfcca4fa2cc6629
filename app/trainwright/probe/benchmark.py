"""What every benchmark of this computer has: choices, what it takes, what comes of it."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trainwright.messages import Message
from trainwright.probe.measurements import Measurement

Name = Literal["disk", "cpu", "gpu", "link"]
Progress = Callable[[float, str], None]
"""Told (share that is done, id of the message that says what is being done)."""

SECONDS = 3.0
"""Of one test where nobody chooses; assumed: medians of shorter ones scatter."""


SILENCE_S = 120.0
"""Without a word of a child until it is ended, beside ten times what a test may take; assumed, for
a hard disk that fills a GiB and a torch that starts from one."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person may choose of a benchmark."""

    folder: Path | None = None
    """Where the drive is measured; None for the user's own folder."""
    size: int | None = None
    """Bytes of the test file; None for a size that suits the drive."""
    seconds: float = SECONDS
    """Of one test."""
    writes: bool = False
    """Whether the drive is measured writing too."""
    method: Literal["auto", "own", "fio"] = "auto"
    interpreter: str = sys.executable
    """The Python whose torch and Pillow are measured."""
    force: bool = False
    """Whether on battery, and beside other programs on the GPU, too."""

    @property
    def patience_s(self) -> float:
        """Seconds without a word until a child is taken for hung."""
        return SILENCE_S + 10 * self.seconds


@dataclass(frozen=True, slots=True)
class Cost:
    """What a benchmark takes; said before it starts."""

    seconds: float
    disk_bytes: int = 0
    """Written to the drive, in a file that nothing remains of."""
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a benchmark measured."""

    measurements: tuple[Measurement, ...]
    notes: tuple[Message, ...] = ()
    """What was left out, and why; how it was measured."""


Run = Callable[[Choices, Progress | None, Callable[[], bool] | None], Outcome]
