"""Rows of lists that no part is known for yet: kept until somebody matches or discards them.

A file beside a person's own prices, one JSON object a line, in the order in which rows came.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from trainwright.messages import Message, UserError
from trainwright.prices import kept
from trainwright.prices.imports.rows import Row
from trainwright.quoting import json_text

FORMAT = 1

_ROW = TypeAdapter(Row)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The rows, oldest first."""

    rows: tuple[Row, ...] = ()
    note: Message | None = None
    """What is wrong with the file."""


def path() -> Path:
    """Return the file, in the user's data folder."""
    return kept.path().with_name("waiting.jsonl")


def load() -> Waiting:
    """Return the rows that wait; a damaged file is set aside, and the note says so."""
    source = path()
    return _load(source, kept.stamp(source)) or Waiting(note=kept.set_aside(source))


def add(new: Iterable[Row]) -> int:
    """Let rows wait, those that do already left out; return how many came.

    Raises:
        UserError: the file cannot be read or written, or a later version wrote it.
    """
    with kept.changing(path()):
        before = _writable()
        known = set(before)
        added = [row for row in dict.fromkeys(new) if row not in known]
        if added:
            _write((*before, *added))
    return len(added)


def drop(gone: Iterable[Row]) -> int:
    """Let rows wait no longer: they were matched, or nobody wants them; return how many went.

    Raises:
        UserError: as ``add`` does.
    """
    out = set(gone)
    with kept.changing(path()):
        before = _writable()
        left = [row for row in before if row not in out]
        if len(left) < len(before):
            _write(left)
    return len(before) - len(left)


def _writable() -> tuple[Row, ...]:
    found = load()
    if found.note is not None and path().exists():  # what was set aside is no longer there
        raise UserError(found.note)
    return found.rows


def _write(rows: Iterable[Row]) -> None:
    lines = [json.dumps({"format": FORMAT})]
    for row in rows:
        entry = _ROW.dump_python(row, mode="json", exclude_defaults=True)
        lines.append(json_text(entry))
    kept.write(path(), ("\n".join(lines) + "\n").encode())


@lru_cache(maxsize=2)
def _load(source: Path, _stamp: kept.Stamp) -> Waiting | None:
    """Return what a file holds; None where it is damaged."""
    return kept.read(source, FORMAT, _told, lambda note: Waiting(note=note))


def _told(entries: Iterable[Any]) -> Waiting:
    return Waiting(tuple(dict.fromkeys(_ROW.validate_python(entry) for entry in entries)))
