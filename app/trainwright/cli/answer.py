"""What a command returns: one value that prints as JSON or for people."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen  # loads rich, which --json does without


class Exit(IntEnum):
    """Exit codes; scripts depend on them."""

    DONE = 0
    NO = 1
    """The honest answer is no: nothing fits, a check failed."""
    BAD_INPUT = 2
    INTERRUPTED = 130
    """128 + SIGINT, as shells report it."""
    NO_READER = 141
    """128 + SIGPIPE: whoever read standard output went away."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a command; both forms are made from the same values."""

    document: Mapping[str, Any]
    """What ``--json`` prints."""
    show: "Callable[[Screen], None]"
    """Prints the same for people."""
    exit: Exit = Exit.DONE
