"""From a folder of YAML of processors, drives and other parts to records and names.

One record at a time: a broken one is left out and told with its line, and the rest loads.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from trainwright.catalog import problems
from trainwright.catalog.compiled import Compiled, sources_hash, yaml_files
from trainwright.catalog.names import part_key, without_vendor
from trainwright.catalog.part_kinds import KINDS, Kind, OtherKind
from trainwright.catalog.part_records import PartRecord
from trainwright.catalog.yaml_file import read_document
from trainwright.messages import Message, UserError
from trainwright.quoting import dotted
from trainwright.yamltext import Document, Place

SCHEMA = 1


def compile_parts(folder: Path, kind: OtherKind) -> Compiled:
    """Return the folder's records; what is left out is told in ``problems``."""
    wrong: list[Message] = []
    found: dict[str, PartRecord] = {}
    for path in yaml_files(folder):
        for at, record in _file_records(path, KINDS[kind], wrong):
            if record.id in found:
                wrong.append(Message.of("catalog.repeated-id", file=at, key=record.id))
            found.setdefault(record.id, record)
    names, clashes = _names(found.values())
    return Compiled(
        sources=sources_hash(folder),
        records={
            id: record.model_dump(mode="json", exclude_defaults=True)
            for id, record in found.items()
        },
        names=names,
        problems=(*wrong, *clashes),
    )


def _file_records(path: Path, kind: Kind, wrong: list[Message]) -> Iterator[tuple[str, PartRecord]]:
    """Yield a file's records, each with its place as messages name it."""
    name = f"{kind.folder}/{path.name}"
    try:
        document = read_document(path, name)
    except UserError as error:
        wrong.append(error.message)
        return
    file = _File(name, document, kind)
    wrong.extend(file.problems())
    for index, entry in enumerate(file.entries()):
        try:
            yield file.at(index, "id"), kind.record.model_validate(file.filled(entry))
        except ValidationError as error:
            told = error.errors()[: problems.SHOWN]
            wrong.extend(file.problem(one, index) for one in told)


class _File:
    """A parsed file of one kind of part; tells what is wrong with it by line and key."""

    def __init__(self, name: str, document: Document, kind: Kind) -> None:
        self._name = name
        self._document = document
        self._kind = kind
        data = document.data
        self._data: dict[str, Any] = data if isinstance(data, dict) else {}

    def entries(self) -> list[Any]:
        found = self._data.get(self._kind.key)
        return found if isinstance(found, list) else []

    def filled(self, entry: Any) -> Any:
        """Return an entry with what it leaves to the file's defaults, sources field by field.

        What the defaults say of one field holds for every entry that says nothing of it: launch
        dates are recalled, whichever page an entry's other values come from.
        """
        defaults = self._defaults()
        if not isinstance(entry, dict) or not defaults:
            return entry
        filled = defaults | entry
        shared, own = defaults.get("sources", {}), entry.get("sources", {})
        if isinstance(shared, dict) and isinstance(own, dict):
            filled["sources"] = shared | own
        return filled

    def at(self, index: int, key: str) -> str:
        """Return where a record's key stands: ``psu/mine.yaml:3``."""
        return self._at((self._kind.key, index, key))

    def problems(self) -> Iterator[Message]:
        """Yield what is wrong with the file beside its records."""
        known = ("schema", "defaults", self._kind.key)
        if self._document.data is not None and not isinstance(self._document.data, dict):
            yield self._bad((), self._document.data, Message.of("catalog.expects-mapping"))
        elif self._kind.key not in self._data:
            yield Message.of("catalog.missing-key", file=self._name, key=self._kind.key)
        elif not self.entries():
            given = self._data[self._kind.key]
            yield self._bad((self._kind.key,), given, Message.of("catalog.expects-list"))
        for key in self._data:
            if key not in known:
                yield problems.unknown_key(key, key, self._at((key,)), known)
        if self._data.get("schema", SCHEMA) != SCHEMA:
            expected = Message.of("catalog.expects-one-of", choices=str(SCHEMA))
            yield self._bad(("schema",), self._data["schema"], expected)
        if not isinstance(self._data.get("defaults", {}), dict):
            given = self._data["defaults"]
            yield self._bad(("defaults",), given, Message.of("catalog.expects-mapping"))

    def problem(self, error: ErrorDetails, index: int) -> Message:
        """Return what one error of a record says to its writer."""
        location: Place = tuple(part for part in error["loc"] if part != "[key]")
        at = self._at(self._place(location, index))
        key = self._readable(location, index)
        match error["type"]:
            case "extra_forbidden":
                allowed = _fields(self._kind.record, location[:-1])
                return problems.unknown_key(str(location[-1]), key, at, allowed)
            case "missing":
                return Message.of("catalog.missing-key", file=at, key=key)
            case _:
                given = problems.brief(error["input"])
                expected = problems.expected(error)
                return Message.of(
                    "catalog.bad-value", file=at, key=key, given=given, expected=expected
                )

    def _defaults(self) -> dict[str, Any]:
        found = self._data.get("defaults")
        return found if isinstance(found, dict) else {}

    def _place(self, location: Place, index: int) -> Place:
        entry = self.entries()[index]
        ours = isinstance(entry, dict) and location and location[0] in entry
        if location and not ours and location[0] in self._defaults():
            return ("defaults", *location)
        return (self._kind.key, index, *location)

    def _readable(self, location: Place, index: int) -> str:
        """Return a place as a person knows it: ``rm850x.watts``."""
        entry = self.entries()[index]
        identity = entry.get("id") if isinstance(entry, dict) else None
        head = identity if isinstance(identity, str) else f"{self._kind.key}[{index}]"
        return dotted((problems.brief(head), *location))

    def _bad(self, place: Place, given: Any, expected: Message) -> Message:
        return Message.of(
            "catalog.bad-value",
            file=self._at(place),
            key=dotted(place) or self._kind.key,
            given=problems.brief(given),
            expected=expected,
        )

    def _at(self, place: Place) -> str:
        return self._document.where(self._name, place)


def _fields(model: type[BaseModel], location: Place) -> set[str]:
    """Return the keys of the record, or of the value within it, that a location leads to."""
    for part in location:
        if isinstance(part, str) and (field := model.model_fields.get(part)):
            model = next(_models(field.annotation), model)
    return set(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models within an annotation such as ``tuple[Slot, ...] | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


def _names(found: Iterable[PartRecord]) -> tuple[dict[str, list[str]], list[Message]]:
    """Return ids by name key: own names and aliases, then names without their vendor."""
    own: dict[str, str] = {}
    short: dict[str, list[str]] = defaultdict(list)
    clashes: list[Message] = []
    for record in found:
        for name in (record.id, record.name, *record.aliases):
            key = part_key(name)
            if own.setdefault(key, record.id) != record.id:
                values = {"alias": name, "first": own[key], "second": record.id}
                clashes.append(Message.of("catalog.same-name", **values))
        bare = part_key(without_vendor(record.name, record.vendor))
        if record.id not in short[bare]:
            short[bare].append(record.id)
    alone = {key: ids for key, ids in short.items() if len(ids) == 1 and key}
    return alone | {key: [id] for key, id in own.items()}, clashes
