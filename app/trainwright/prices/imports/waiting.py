"""Rows of lists that no part is known for yet: kept until somebody matches or discards them.

A file beside a person's own prices, one JSON object a line, in the order in which rows came.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pydantic import TypeAdapter

from trainwright.messages import Message, UserError
from trainwright.prices import kept
from trainwright.prices.imports.rows import Row

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
    before, out = _writable(), set(gone)
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
        lines.append(json.dumps(entry, ensure_ascii=False))
    kept.write(path(), ("\n".join(lines) + "\n").encode())


@lru_cache(maxsize=2)
def _load(source: Path, _stamp: tuple[int, int]) -> Waiting | None:
    """Return what a file holds; None where it is damaged."""
    try:
        with source.open("rb") as file:
            content = file.read(kept.MOST_BYTES + 1)
    except FileNotFoundError:
        return Waiting()
    except OSError as error:
        said = kept.said(error)
        return Waiting(note=Message.of("prices.unreadable", file=str(source), reason=said))
    try:
        return _read(content.decode(), source) if len(content) <= kept.MOST_BYTES else None
    except (ValueError, KeyError, TypeError, RecursionError):  # pydantic's and JSON's among them
        return None


def _read(text: str, source: Path) -> Waiting:
    head, *lines = text.split("\n")
    version = json.loads(head)["format"]
    if isinstance(version, int) and version > FORMAT:
        return Waiting(note=Message.of("prices.later", file=str(source)))
    rows = (_ROW.validate_python(json.loads(line)) for line in lines if line)
    return Waiting(tuple(dict.fromkeys(rows)))
