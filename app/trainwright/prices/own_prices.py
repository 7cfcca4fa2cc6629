"""A person's own prices: a file in their data folder that lines are only ever added to.

One JSON object a line. A price that turns out wrong is withdrawn by a line of its own; what was
once written stays.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import TypeAdapter

from trainwright import reading, saving
from trainwright.messages import Message, UserError
from trainwright.prices import lines
from trainwright.prices.observation import Observation
from trainwright.quoting import json_text

FORMAT = 1
_WITHDRAWN = "withdrawn"

_OBSERVATION = TypeAdapter(Observation)


@dataclass(frozen=True, slots=True)
class Kept:
    """A person's own prices, in the order in which they came."""

    observations: tuple[Observation, ...] = ()
    note: Message | None = None
    """What is wrong with the file."""
    closed: bool = False
    """Whether nobody may write it."""


def path() -> Path:
    """Return the file, in the user's data folder."""
    return Path(platformdirs.user_data_dir("trainwright", appauthor=False)) / "prices.jsonl"


def load() -> Kept:
    """Return the prices kept, without the lines that cannot be read; the note names those.

    A file of which no line can be read is set aside.
    """
    source = path()
    return _load(source, stamp(source)) or Kept(note=set_aside(source))


def add(new: Iterable[Observation]) -> Kept:
    """Add prices to the file, those that it has already left out; return all of it.

    Raises:
        UserError: the file cannot be written, is in use, or a later version wrote it.
    """
    with saving.changing(path(), "prices.unwritable"):
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
    with saving.changing(path(), "prices.unwritable"):
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


@lru_cache(maxsize=2)
def _load(source: Path, _stamp: Stamp) -> Kept | None:
    """Return what a file holds; None where it is damaged."""
    found = lines.read(source, FORMAT, _entry)
    if found is None:
        return None
    prices: dict[Observation, None] = {}
    for withdrawn, price in found.entries:
        if withdrawn:
            prices.pop(price, None)
        else:
            prices[price] = None
    return Kept(tuple(prices), found.note, found.closed)


def _entry(data: Any) -> tuple[bool, Observation]:
    """Return whether a line takes a price back, and that price."""
    if _WITHDRAWN in data:
        return True, _OBSERVATION.validate_python(data[_WITHDRAWN])
    return False, _OBSERVATION.validate_python(data)


def _append(entries: list[dict[str, Any]]) -> None:
    """Write the file again with more lines, whole or not at all."""
    goal = path()
    if not entries:
        return
    found = _load(goal, stamp(goal))
    if found is not None and found.closed and found.note is not None:
        raise UserError(found.note)
    text = "".join(json_text(entry) + "\n" for entry in entries)
    before = reading.content(goal, lines.MOST_BYTES) if os.path.lexists(goal) else b""
    head = before or json.dumps({"format": FORMAT}).encode()
    write(goal, head.removesuffix(b"\n") + b"\n" + text.encode())


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
