"""YAML as people write it: plain data in, plain data out, and nothing that can hurt.

The reader builds data from the parser's events, one pass: so tags, anchors, duplicate keys,
depth and size are refused before anything is made of them, and every key knows its line.
Scalars follow YAML 1.2: ``1e-4`` is a number, ``no`` and ``010`` are not surprises.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from trainwright import ranges
from trainwright.messages import UserError

MAX_BYTES = 1 << 20
MAX_DEPTH = 32
MAX_NODES = 20_000
_MAX_DIGITS = 18
"""Whole numbers that 64 bits hold."""

_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"([-+]?\.(inf|Inf|INF))|(\.(nan|NaN|NAN))")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Event = Any
"""A parser event; the published types leave out most of its attributes."""

Place = tuple[str | int, ...]
"""Keys and list positions from the root."""


@dataclass(frozen=True, slots=True)
class Document:
    """Parsed text: data of dict, list, str, int, float, bool and None, and where it stood."""

    data: Any
    lines: dict[Place, int]
    """Line of each key or list item, from 1."""

    def line(self, place: Place) -> int | None:
        """Return the line of the key, or of the nearest key above it that is there."""
        for length in range(len(place), 0, -1):
            if (line := self.lines.get(place[:length])) is not None:
                return line
        return None


def parse(text: str, name: str, *, above: Place = ()) -> Document:
    """Return the one document in the text; ``name`` is what errors call it.

    ``above`` is the key whose value the text is, where it is no file: errors then name
    keys below it, and no lines.

    Raises:
        UserError: not YAML, or YAML that our files do without.
    """
    try:
        return _Builder(yaml.parse(text, Loader=_LOADER), name, above).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        last = max(1, len(text.splitlines()))
        where = _at(name, min(mark.line + 1, last) if mark is not None and not above else None)
        if "nesting depth" in (error.problem or ""):  # libyaml's own limit
            raise UserError.of("yaml.too-deep", where=where, limit=MAX_DEPTH) from None
        raise UserError.of("yaml.not-yaml", where=where, problem=error.problem or "") from None
    except (yaml.YAMLError, UnicodeError):
        raise UserError.of("yaml.binary", where=name) from None


def _at(name: str, line: int | None) -> str:
    return f"{name}:{line}" if line else name


class _Builder:
    """Builds data from parser events."""

    def __init__(self, events: Iterator[Event], name: str, above: Place) -> None:
        self._events = events
        self._name = name
        self._above = above
        self._lines: dict[Place, int] = {}
        self._nodes = 0

    def document(self) -> Document:
        data: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse("yaml.several-documents", event)
            elif isinstance(event, yaml.NodeEvent):
                data = self._node(event, ())
        return Document(data, self._lines)

    def _refuse(self, id: str, event: Event, **values: Any) -> NoReturn:
        line = None if self._above else event.start_mark.line + 1
        raise UserError.of(id, where=_at(self._name, line), **values)

    def _node(self, event: Event, place: Place) -> Any:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            self._refuse("yaml.too-many-values", event, limit=MAX_NODES)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            self._refuse("yaml.anchor", event)
        if getattr(event, "tag", None) not in (None, "!"):
            self._refuse("yaml.tag", event, tag=one_line(str(event.tag)))
        if len(place) > MAX_DEPTH:
            self._refuse("yaml.too-deep", event, limit=MAX_DEPTH)
        self._lines.setdefault(place, event.start_mark.line + 1)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(place)
        return self._scalar(event, place)

    def _mapping(self, place: Place) -> dict[str, Any]:
        data: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event)
            if key in data:
                self._refuse("yaml.duplicate-key", event, key=dotted((*place, key)))
            self._lines[(*place, key)] = event.start_mark.line + 1
            data[key] = self._node(next(self._events), (*place, key))
        return data

    def _key(self, event: Event) -> str:
        if not isinstance(event, yaml.ScalarEvent) or event.anchor or event.tag not in (None, "!"):
            self._refuse("yaml.odd-key", event)
        return str(event.value)

    def _sequence(self, place: Place) -> list[Any]:
        data: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            data.append(self._node(event, (*place, len(data))))
        return data

    def _scalar(self, event: Event, place: Place) -> str | int | float | bool | None:
        if not event.implicit[0]:  # quoted, or a block of text
            return str(event.value)
        try:
            return scalar(event.value)
        except ValueError:
            key = dotted((*self._above, *place)) or "?"
            self._refuse("yaml.not-a-number", event, key=key, value=one_line(event.value))


def scalar(text: str) -> str | int | float | bool | None:
    """Return what unquoted text stands for.

    Raises:
        ValueError: not a number, one that is not believed, or more digits than one can have.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        if len(text.lstrip("+-")) > _MAX_DIGITS:
            raise ValueError(text)
        return int(text)
    if _NOT_FINITE.fullmatch(text):
        raise ValueError(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not ranges.believed(number):
            raise ValueError(text)
        return number
    return text


def dotted(place: Place) -> str:
    """Return a place as people write it, ``machine.gpus[0].count``, fit to stand in a line."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{one_line(part)}" if text else one_line(part)
    return text


def one_line(text: str, limit: int = 40) -> str:
    """Return text as an error may quote it: printable, on one line, and short."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def dump(data: dict[str, Any], sections: frozenset[str] = frozenset()) -> str:
    """Return data as YAML text: a line for each key, and for each key within a section."""
    return "".join(_lines(data, sections))


def _lines(data: dict[str, Any], sections: frozenset[str], indent: str = "") -> Iterator[str]:
    for key, value in data.items():
        if key in sections and isinstance(value, dict) and value:
            yield f"{indent}{_text(key)}:\n"
            yield from _lines(value, frozenset(), indent + "  ")
        else:
            yield f"{indent}{_text(key)}: {_flow(value)}\n"


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


_PLAIN = re.compile(r"[\w./][\w./+@-]*( [\w./+@-]+)*")


def _text(value: str) -> str:
    """Return the text plain where it reads back as itself, else in double quotes."""
    plain = _PLAIN.fullmatch(value) is not None and value.isprintable()
    if plain and isinstance(_reads_as(value), str):
        return value
    return '"' + "".join(map(_escaped, value)) + '"'


def _reads_as(value: str) -> object:
    try:
        return scalar(value)
    except ValueError:
        return None


_ESCAPES: dict[str, str] = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character == " " or character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
