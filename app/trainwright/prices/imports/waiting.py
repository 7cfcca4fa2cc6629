"""Rows of lists that no part is known for yet: kept until somebody matches or discards them.

A file beside a person's own prices, one JSON object a line, in the order in which rows came.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter

from trainwright import saving
from trainwright.messages import Message, UserError
from trainwright.prices import lines, own_prices
from trainwright.prices.imports.rows import Row
from trainwright.quoting import json_text

FORMAT = 1

_ROW = TypeAdapter(Row)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The rows, oldest first."""

    rows: tuple[Row, ...] = ()
    unread: tuple[bytes, ...] = ()
    """Lines that cannot be read, as they are written."""
    note: Message | None = None
    """What is wrong with the file."""
    closed: bool = False
    """Whether nobody may write it."""


def path() -> Path:
    """Return the file, in the user's data folder."""
    return own_prices.path().with_name("waiting.jsonl")


def load() -> Waiting:
    """Return the rows that wait, without the lines that cannot be read; the note names those.

    A file of which no line can be read is set aside.
    """
    source = path()
    return _load(source, own_prices.stamp(source)) or Waiting(note=own_prices.set_aside(source))


def add(new: Iterable[Row]) -> int:
    """Let rows wait, those that do already left out; return how many came.

    Raises:
        UserError: the file cannot be read or written, or a later version wrote it.
    """
    with saving.changing(path(), "prices.unwritable"):
        before = _writable()
        known = set(before.rows)
        added = [row for row in dict.fromkeys(new) if row not in known]
        if added:
            _write((*before.rows, *added), before.unread)
    return len(added)


def drop(gone: Iterable[Row]) -> int:
    """Let rows wait no longer: they were matched, or nobody wants them; return how many went.

    Raises:
        UserError: as ``add`` does.
    """
    out = set(gone)
    with saving.changing(path(), "prices.unwritable"):
        before = _writable()
        left = [row for row in before.rows if row not in out]
        if len(left) < len(before.rows):
            _write(left, before.unread)
    return len(before.rows) - len(left)


def _writable() -> Waiting:
    found = load()
    if found.closed and found.note is not None:
        raise UserError(found.note)
    return found


def _write(rows: Iterable[Row], unread: Iterable[bytes]) -> None:
    """Write the rows, and after them the lines that could not be read, as they were."""
    entries = (_ROW.dump_python(row, mode="json", exclude_defaults=True) for row in rows)
    texts = [json.dumps({"format": FORMAT}), *map(json_text, entries)]
    content = b"\n".join((*(text.encode() for text in texts), *unread))
    own_prices.write(path(), content + b"\n")


@lru_cache(maxsize=2)
def _load(source: Path, _stamp: own_prices.Stamp) -> Waiting | None:
    """Return what a file holds; None where it is damaged."""
    found = lines.read(source, FORMAT, _ROW.validate_python)
    if found is None:
        return None
    return Waiting(tuple(dict.fromkeys(found.entries)), found.unread, found.note, found.closed)
