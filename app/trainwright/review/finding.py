"""What a review finds, and the changes of files that would put it right."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

from trainwright.messages import Message
from trainwright.workload.settings import Effect
from trainwright.yamltext import Place

Level = Literal["error", "risk", "way", "gain"]
"""``error``: it will not run as the files say. ``risk``: it may not, or not as meant.
``way``: a way out of a run that does not fit."""


class Removed(Enum):
    """The value of a key that is taken out."""

    KEY = "removed"


@dataclass(frozen=True, slots=True)
class Renamed:
    """The value of a key that gets another name in its place, and keeps what it says."""

    name: str


@dataclass(frozen=True, slots=True)
class Change:
    """One key of one file, set, renamed or taken out."""

    file: str
    place: Place
    value: Any
    """A plain value, ``Renamed`` or ``Removed.KEY``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to know about the files of a run."""

    rule: str
    level: Level
    message: Message
    file: str = ""
    line: int | None = None
    key: str = ""
    changes: tuple[Change, ...] = ()
    """What would put it right in the files; nothing where a person must decide."""
    effect: Effect = Effect.SAME
    """Of the changes on what is trained."""
    gain: float | None = None
    """Samples a second, after over before, less 1."""
    memory_bytes: float | None = None
    """Difference of device use."""
    beyond: tuple[str, ...] = ()
    """Of a change: ``key=value`` that is set by hand: in a script, in the environment, or anywhere
    else, then under the plan's key."""

    @property
    def where(self) -> str:
        """File and line, as errors write them."""
        return f"{self.file}:{self.line}" if self.line else self.file
