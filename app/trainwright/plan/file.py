"""Plan files: read with care, saved whole or not at all."""

import copy
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from trainwright import __version__, reading, saving
from trainwright.messages import UserError
from trainwright.plan import overrides, problems
from trainwright.plan.schema import SCHEMA, Plan
from trainwright.quoting import one_line
from trainwright.yamltext import MAX_BYTES, Document, Place, dump, parse

SUFFIX = ".plan.yaml"
_SECTIONS = frozenset({"workload", "machine", "settings", "chosen", "limits"})
_PATHS: tuple[tuple[str, ...], ...] = (
    ("model", "hf"),
    ("model", "python", "file"),
    ("model", "pt2"),
    ("workload", "dataset", "path"),
)
"""Keys that hold paths, beside those of ``limits.also``: relative to the plan's folder in the file,
absolute in a Plan."""

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Schema version -> how data of it becomes data of the next; there is only version 1."""


Changes = Sequence[str | overrides.Change]
"""Changes of a plan: ``key=value`` as the command line takes them, or read already."""


def read(source: Path | str, changes: Changes = ()) -> Plan:
    """Return the plan in a file, or on standard input where ``source`` is ``-``.

    ``changes`` are overrides. Paths among them are relative to the working directory, those in the
    file to its folder.

    Raises:
        UserError: the file cannot be read, or is not a valid plan; one line with file, key
            and remedy.
    """
    name = _name(source)
    text = reading.text(source, MAX_BYTES, name, or_stdin=True)
    folder = None if str(source) == "-" else Path(source).parent
    return parsed(text, name, folder=folder, changes=changes)


def _name(source: Path | str) -> str:
    """Return what errors call a plan's file."""
    return reading.STDIN if str(source) == "-" else one_line(str(source), 300)


_STARTS_WITH_KEY = re.compile(r"(model|workload|machine|settings|limits)[a-z_.\[\]0-9]*: ")


@contextmanager
def naming(source: Path | str) -> Iterator[None]:
    """Put the plan's name before errors that name only its key, as looking things up does.

    ``with naming(path): resolve(plan)`` gives a sentence with file, key and remedy.
    """
    try:
        yield
    except UserError as error:
        if "where" in error.message.values or not _STARTS_WITH_KEY.match(str(error)):
            raise
        raise UserError.of("plan.in-file", where=_name(source), problem=error.message) from None


def parsed(text: str, name: str, *, folder: Path | None = None, changes: Changes = ()) -> Plan:
    """Return the plan in a text; ``name`` is what errors call it.

    Raises:
        UserError: the text is not a valid plan.
    """
    document = parse(text, name)
    if document.data is None:
        raise UserError.of("plan.empty", where=name)
    if not isinstance(document.data, dict):
        raise UserError.of("plan.not-a-plan", where=name)
    return _built(document, name, folder, _parsed(changes))


def from_data(
    data: Mapping[str, Any],
    name: str,
    *,
    folder: Path | None = None,
    changes: Changes = (),
) -> Plan:
    """Return the plan in plain data, as ``json.loads`` gives it; the data stay as they are.

    ``changes`` and the paths in ``data`` are read as ``read`` does; without a folder, paths are
    relative to the working directory.

    Raises:
        UserError: the data are not a valid plan; ``name`` is what errors call it.
    """
    document = Document(copy.deepcopy(dict(data)), {})
    return _built(document, name, folder, _parsed(changes))


def _parsed(changes: Changes) -> list[overrides.Change]:
    return [overrides.parse_change(each) if isinstance(each, str) else each for each in changes]


def _built(
    document: Document, name: str, folder: Path | None, changes: Sequence[overrides.Change]
) -> Plan:
    data = _migrated(document, name)
    _anchor(data, folder or Path.cwd())
    for change in changes:
        overrides.apply(data, change)
    _anchor(data, Path.cwd())

    def where(place: Place) -> str:
        for change in reversed(changes):
            if change.touches(place):
                return change.text
        return document.where(name, place)

    return validated(data, where)


def validated(data: dict[str, Any], where: Callable[[Place], str]) -> Plan:
    """Return the plan in plain data.

    Raises:
        UserError: naming the key; ``where`` tells the place that it came from.
    """
    try:
        # As JSON, because there strict means what a person expects: lists are tuples,
        # whole numbers are numbers, and text is never a number.
        return Plan.model_validate_json(json.dumps(data, default=_plain), strict=True)
    except ValidationError as error:
        raise problems.refusal(error, where) from None


def _plain(value: object) -> object:
    """Return a value of Python's own as plain data: a path, or a number of numpy's."""
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, np.generic):
        return value.item()
    raise UserError.of("plan.not-plain", kind=type(value).__name__)


def _migrated(document: Document, name: str) -> dict[str, Any]:
    data: dict[str, Any] = document.data
    if "trainwright" not in data:
        problem = problems.missing(("trainwright",))
        raise UserError.of("plan.invalid", where=name, key="trainwright", problem=problem, more="")
    version = data.get("trainwright")
    if isinstance(version, int) and not isinstance(version, bool):
        if version > SCHEMA:
            raise UserError.of(
                "plan.newer", where=name, version=version, known=SCHEMA, program=__version__
            )
        while version in MIGRATIONS:
            data = MIGRATIONS[version](data)
            version = data["trainwright"]
    return data


def _anchor(data: dict[str, Any], folder: Path) -> None:
    """Make the paths in the data absolute, in place; wrong types are left to the schema."""
    for holder, key in _paths(data):
        if text := holder[key]:
            path = os.path.expanduser(text)
            holder[key] = os.path.normpath(os.path.abspath(os.path.join(folder, path)))


def _paths(data: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each mapping of the data that holds a path, and its key."""
    places = [(_holder(data, above), key) for *above, key in _PATHS]
    also = (_holder(data, ("limits",)) or {}).get("also")
    works = also if isinstance(also, list) else []
    places += [(work, "plan") for work in works if isinstance(work, dict)]
    yield from (
        (holder, key)
        for holder, key in places
        if holder is not None and isinstance(holder.get(key), str)
    )


def _holder(data: dict[str, Any], above: Sequence[str]) -> dict[str, Any] | None:
    holder: Any = data
    for part in above:
        holder = holder.get(part) if isinstance(holder, dict) else None
    return holder if isinstance(holder, dict) else None


def text_of(plan: Plan, folder: Path | None = None) -> str:
    """Return the plan as the text of a file; paths below ``folder`` become relative to it."""
    data = text_data(plan)
    data = {key: value if key == "model" else _tidy(value) for key, value in data.items()}
    if folder is not None:
        _relate(data, folder)
    return dump(data, _SECTIONS)


def text_data(plan: Plan) -> dict[str, Any]:
    """Return the plain data of a file, in the schema's order.

    What was given is there even where it equals the default: a given key is fixed.
    """
    data = plan.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    data |= {"trainwright": plan.trainwright, "name": plan.name}
    for section in ("wishes", "rates"):
        if data.get("limits", {}).get(section) == {}:  # every key of it was taken back
            del data["limits"][section]
    if not data.get("chosen"):
        data.pop("chosen", None)
    return {key: data[key] for key in Plan.model_fields if key in data}


def _tidy(value: Any) -> Any:
    """Return numbers as people write them: ``32``, not ``32.0``."""
    if isinstance(value, dict):
        return {key: _tidy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value


def _relate(data: dict[str, Any], folder: Path) -> None:
    base = Path(os.path.abspath(folder))
    for holder, key in _paths(data):
        if Path(holder[key]).is_relative_to(base):
            holder[key] = Path(holder[key]).relative_to(base).as_posix()


def write(plan: Plan, path: Path) -> Plan:
    """Save the plan and return it as saved, with the versions that made its figures.

    The file is replaced in one step: a crash leaves the old one or the new one.

    Raises:
        UserError: the file cannot be written, or could not be read again.
    """
    saved = plan.model_copy(update={"made_with": _versions()})
    text = text_of(saved, path.parent)
    try:
        parsed(text, one_line(str(path), 300), folder=path.parent)
    except UserError as error:
        raise UserError.of("plan.would-not-read", problem=error.message) from None
    saving.write(path, text)
    return saved


def _versions() -> dict[str, str]:
    from trainwright.profile import interpreter  # loads numpy, which reading a plan does not need

    versions = {"trainwright": __version__, "torch": interpreter.torch_version()}
    return {name: version for name, version in versions.items() if version != "none"}
