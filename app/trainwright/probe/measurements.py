"""What was measured on this computer, kept from run to run in one file of the user's data folder.

Corrections of estimates lie in a file of their own and are read and written by the same functions.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import platformdirs
from pydantic import ConfigDict, TypeAdapter, with_config

from trainwright import ranges, reading, saving
from trainwright.explain import Unit
from trainwright.messages import Message, UserError
from trainwright.quoting import json_text

FORMAT = 1
"""Of the files; one that says more was written by a later version, and is left alone."""
MOST_BYTES = 8 << 20
"""Largest file that is read; assumed, a measurement takes some hundred bytes."""

T = TypeVar("T")


@with_config(ConfigDict(allow_inf_nan=False, extra="forbid"))
@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured value, and all that it holds for."""

    what: str
    """Dotted, the benchmark first: ``drive.read.seq1m-q8t1``."""
    value: float
    """The median, in base units."""
    unit: Unit
    on: str
    """The device: the name that a GPU, processor or drive gives itself; no serial."""
    date: str
    """ISO 8601, UTC, to the second."""
    low: float | None = None
    """The lowest of several runs."""
    high: float | None = None
    conditions: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Sizes, counts, filesystem, clocks: what would have to be the same for the same value."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Of what took part: driver, torch, fio."""
    flags: tuple[str, ...] = ()
    """Why the value is not what it seems: ``cached``, ``tmpfs``, ``throttled``."""

    @property
    def key(self) -> tuple[object, ...]:
        """What a later measurement must share to take this one's place."""
        return (self.what, self.on, tuple(sorted(self.versions.items())))


@dataclass(frozen=True, slots=True)
class Kept:
    """The measurements of this computer, oldest first."""

    measurements: tuple[Measurement, ...] = ()
    note: Message | None = None
    """What is wrong with the file that they come from."""

    def latest(self, what: str, on: str | None = None) -> Measurement | None:
        """Return the last one of its kind, on a device or on any; None where there is none."""
        fitting = (one for one in self.measurements if one.what == what and on in (None, one.on))
        return max(fitting, key=lambda one: one.date, default=None)

    def below(self, prefix: str) -> tuple[Measurement, ...]:
        """Return those whose name starts with ``prefix`` and a dot."""
        return tuple(one for one in self.measurements if one.what.startswith(f"{prefix}."))


_MEASUREMENTS = TypeAdapter(tuple[Measurement, ...])


def folder() -> Path:
    """Return the user's data folder: that of their own hardware records too."""
    return Path(platformdirs.user_data_dir("trainwright", appauthor=False))


def path() -> Path:
    """Return the file of the measurements."""
    return folder() / "measurements.json"


def now() -> str:
    """Return the present moment as measurements are dated."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def load() -> Kept:
    """Return what was measured here; a damaged file is set aside, and the note says so."""
    return Kept(*read(path(), _MEASUREMENTS))


def keep(new: Iterable[Measurement]) -> Kept:
    """Add measurements to the file, in place of earlier ones of the same; return all of it.

    Raises:
        UserError: the file cannot be written, is in use, or a later version wrote it.
    """
    added = {one.key: one for one in new}
    with saving.changing(path(), "kept.unwritable"):
        before = load()
        stayed = tuple(one for one in before.measurements if one.key not in added)
        whole = (*stayed, *added.values())
        write(path(), _MEASUREMENTS, whole)
    return Kept(whole, before.note)


def as_json(measurements: tuple[Measurement, ...]) -> list[dict[str, Any]]:
    """Return measurements as plain data."""
    return list(_MEASUREMENTS.dump_python(measurements, mode="json"))


def forget(prefix: str = "") -> None:
    """Remove the measurements of a benchmark, or all of them.

    Raises:
        UserError: as ``keep`` does.
    """
    with saving.changing(path(), "kept.unwritable"):
        found = load()
        gone = found.below(prefix) if prefix else found.measurements
        write(path(), _MEASUREMENTS, tuple(one for one in found.measurements if one not in gone))


def read(source: Path, form: TypeAdapter[tuple[T, ...]]) -> tuple[tuple[T, ...], Message | None]:
    """Return the records of a file, and what is wrong with it; no file, no records.

    A file that is no such file is renamed, so that the next one does not overwrite it.
    """
    if not os.path.lexists(source):
        return (), None
    try:
        text = reading.content(source, MOST_BYTES)
    except UserError as error:
        return (), error.message
    try:
        document = json.loads(text)
        if ranges.first_odd(document) is not None:
            document = None
        if isinstance(document, dict) and _later(document):
            return (), Message.of("kept.later", file=str(source))
        if isinstance(document, dict) and document.get("format") == FORMAT:
            return form.validate_python(document.get("records")), None
    except (ValueError, RecursionError):  # includes pydantic's ValidationError
        pass
    return (), _set_aside(source)


def write(goal: Path, form: TypeAdapter[tuple[T, ...]], records: tuple[T, ...]) -> None:
    """Write the records, whole or not at all.

    Raises:
        UserError: the folder cannot be written, or a later version wrote the file.
    """
    if _written_later(goal):
        raise UserError.of("kept.later", file=str(goal))
    document = {"format": FORMAT, "records": form.dump_python(records, mode="json")}
    text = json_text(document, indent=1) + "\n"
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        saving.replace(goal, text.encode())
    except OSError as error:
        raise UserError.of(
            "kept.unwritable", file=str(goal), reason=saving.reason(error)
        ) from error


def _later(document: dict[str, object]) -> bool:
    number = document.get("format")
    return isinstance(number, int) and number > FORMAT


def _written_later(goal: Path) -> bool:
    try:
        document = json.loads(reading.content(goal, MOST_BYTES))
    except (UserError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and _later(document)


def _set_aside(source: Path) -> Message:
    try:
        aside = saving.set_aside(source)
    except OSError as error:
        return Message.of("kept.unreadable", file=str(source), reason=saving.reason(error))
    return Message.of("kept.damaged", file=str(source), aside=str(aside))
