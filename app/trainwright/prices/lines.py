"""Files with one JSON object a line: a line that cannot be read costs nobody the others."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from trainwright import reading
from trainwright.messages import Message, UserError
from trainwright.quoting import dotted, one_line

MOST_BYTES = 128 << 20
"""Largest file that is read; assumed, a price takes 300 bytes and an import has 100,000."""
_MOST_SHOWN = 40
"""Characters of a wrong value that are shown; assumed."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Lines(Generic[T]):
    """What a file holds."""

    entries: tuple[T, ...] = ()
    unread: tuple[bytes, ...] = ()
    """Lines that cannot be read, as they are written."""
    note: Message | None = None
    """What is wrong with the file."""
    closed: bool = False
    """Whether nobody may write it: it cannot be read, or a later version wrote it."""


def read(source: Path, version: int, entry: Callable[[Any], T]) -> Lines[T] | None:
    """Return what a file holds; None where no line of it can be read.

    Args:
        source: the file; none is an empty one.
        version: the latest format that can be read; the first line names that of the file.
        entry: makes an entry of the object in a later line.
    """
    if not os.path.lexists(source):
        return Lines()
    try:
        head, *lines = reading.content(source, MOST_BYTES).split(b"\n")
    except UserError as error:
        return Lines(note=error.message, closed=True)
    wrong: list[tuple[int, bytes, Message]] = []
    try:
        written = _object(head)["format"]
        if isinstance(written, int) and written > version:
            return Lines(note=Message.of("prices.later", file=str(source)), closed=True)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        wrong.append((1, head, _problem(error)))
    entries: list[T] = []
    for number, line in enumerate(lines, 2):
        if not line.strip():
            continue
        try:
            entries.append(entry(_object(line)))
        except (ValueError, KeyError, TypeError, RecursionError) as error:  # pydantic's among them
            wrong.append((number, line, _problem(error)))
    if wrong and not entries:
        return None
    return Lines(tuple(entries), tuple(line for _, line, _ in wrong), _note(source, wrong))


def _object(line: bytes) -> Any:
    found = json.loads(line.decode())
    if not isinstance(found, dict):
        raise TypeError
    return found


def _note(source: Path, wrong: list[tuple[int, bytes, Message]]) -> Message | None:
    """Return what is to be said of the lines that cannot be read: the first and how many more."""
    if not wrong:
        return None
    number, _, problem = wrong[0]
    values = {"file": str(source), "line": number, "problem": problem}
    if len(wrong) == 1:
        return Message.of("prices.bad-line", **values)
    return Message.of("prices.bad-lines", **values, count=len(wrong) - 1)


def _problem(error: Exception) -> Message:
    if not isinstance(error, ValidationError):
        return Message.of("prices.line.not-json")
    first = error.errors(include_url=False)[0]
    key = dotted(first["loc"]) or "?"
    if first["type"] in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return Message.of("prices.line.missing", key=one_line(key, _MOST_SHOWN))
    if first["type"] == "unexpected_keyword_argument":
        return Message.of("prices.line.unknown", key=one_line(key, _MOST_SHOWN))
    given = one_line(str(first["input"]), _MOST_SHOWN)
    return Message.of("prices.line.bad-value", key=one_line(key, _MOST_SHOWN), given=given)
