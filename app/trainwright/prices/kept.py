"""A person's own prices: a file in their data folder that lines are only ever added to.

One JSON object a line. A price that turns out wrong is withdrawn by a line of its own; what was
once written stays.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import platformdirs
from pydantic import TypeAdapter

from trainwright import locks, reading, saving
from trainwright.messages import Message, UserError
from trainwright.prices.observation import Observation
from trainwright.quoting import json_text

FORMAT = 1
MOST_BYTES = 128 << 20
"""Largest file that is read; assumed, a price takes 300 bytes and an import has 100,000."""
_WITHDRAWN = "withdrawn"

_OBSERVATION = TypeAdapter(Observation)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kept:
    """A person's own prices, in the order in which they came."""

    observations: tuple[Observation, ...] = ()
    note: Message | None = None
    """What is wrong with the file."""


def path() -> Path:
    """Return the file, in the user's data folder."""
    return Path(platformdirs.user_data_dir("trainwright", appauthor=False)) / "prices.jsonl"


def load() -> Kept:
    """Return the prices kept; a damaged file is set aside, and the note says so."""
    source = path()
    return _load(source, stamp(source)) or Kept(note=set_aside(source))


def add(new: Iterable[Observation]) -> Kept:
    """Add prices to the file, those that it has already left out; return all of it.

    Raises:
        UserError: the file cannot be written, is in use, or a later version wrote it.
    """
    with changing(path()):
        before = load()
        known = set(before.observations)
        added = [one for one in dict.fromkeys(new) if one not in known]
        _append([_data(one) for one in added])
    return replace(before, observations=(*before.observations, *added))


def withdraw(gone: Iterable[Observation]) -> Kept:
    """Add lines that take prices back; return what is left.

    Raises:
        UserError: as ``add`` does.
    """
    out = set(gone)
    with changing(path()):
        before = load()
        _append([{_WITHDRAWN: _data(one)} for one in before.observations if one in out])
    return replace(before, observations=tuple(o for o in before.observations if o not in out))


def _data(observation: Observation) -> dict[str, Any]:
    data: dict[str, Any] = _OBSERVATION.dump_python(observation, mode="json", exclude_defaults=True)
    return data


def as_json(observations: Iterable[Observation]) -> list[dict[str, Any]]:
    """Return prices as plain data."""
    return [_OBSERVATION.dump_python(one, mode="json") for one in observations]


Stamp = tuple[int, int, int]


def stamp(source: Path) -> Stamp:
    """Return what changes when somebody writes the file, or puts another in its place."""
    try:
        status = source.stat()
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


@contextmanager
def changing(goal: Path) -> Iterator[None]:
    """Keep other programs from a file between reading and writing it.

    Raises:
        UserError: the folder cannot be written, or another program keeps the file too long.
    """
    try:
        with locks.held(goal):
            yield
    except OSError as error:
        raise UserError.of(
            "prices.unwritable", file=str(goal), reason=saving.reason(error)
        ) from error


@lru_cache(maxsize=2)
def _load(source: Path, _stamp: Stamp) -> Kept | None:
    """Return what a file holds; None where it is damaged."""
    return read(source, FORMAT, _told, lambda note: Kept(note=note))


def read(
    source: Path,
    version: int,
    told: Callable[[Iterator[Any]], T],
    silent: Callable[[Message | None], T],
) -> T | None:
    """Return what the lines of a file tell; None where it is damaged.

    Args:
        source: the file; none is an empty one.
        version: the latest format that can be read.
        told: makes the answer of the objects in the lines after the first.
        silent: makes it of a note on why the file cannot be read.
    """
    if not os.path.lexists(source):
        return silent(None)
    try:
        content = reading.content(source, MOST_BYTES)
    except UserError as error:
        return silent(error.message)
    try:
        head, *lines = content.decode().split("\n")
        written = json.loads(head)["format"]
        if isinstance(written, int) and written > version:
            return silent(Message.of("prices.later", file=str(source)))
        return told(json.loads(line) for line in lines if line)
    except (ValueError, KeyError, TypeError, RecursionError):  # pydantic's and JSON's among them
        return None


def _told(entries: Iterable[Any]) -> Kept:
    found: dict[Observation, None] = {}
    for entry in entries:
        if _WITHDRAWN in entry:
            found.pop(_OBSERVATION.validate_python(entry[_WITHDRAWN]), None)
        else:
            found[_OBSERVATION.validate_python(entry)] = None
    return Kept(tuple(found))


def _append(entries: list[dict[str, Any]]) -> None:
    """Write the file anew with more lines, whole or not at all."""
    goal = path()
    if not entries:
        return
    found = _load(goal, stamp(goal))
    if found is not None and found.note is not None:
        raise UserError(found.note)
    text = "".join(json_text(entry) + "\n" for entry in entries)
    before = reading.content(goal, MOST_BYTES) if os.path.lexists(goal) else b""
    head = before or json.dumps({"format": FORMAT}).encode() + b"\n"
    write(goal, head + text.encode())


def write(goal: Path, content: bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        UserError: the folder cannot be written.
    """
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        saving.replace(goal, content)
    except OSError as error:
        raise UserError.of(
            "prices.unwritable", file=str(goal), reason=saving.reason(error)
        ) from error


def set_aside(source: Path) -> Message:
    """Rename a damaged file, so that nothing overwrites it; return what is to be said of it."""
    try:
        aside = saving.set_aside(source)
    except OSError as error:
        return Message.of("prices.unreadable", file=str(source), reason=saving.reason(error))
    return Message.of("prices.set-aside", file=str(source), aside=str(aside))
