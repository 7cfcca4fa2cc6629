"""YAML as people write it: plain data in, plain data out, and nothing that can hurt.

The reader builds data from the parser's events, one pass: so tags, anchors, duplicate keys,
depth and size are refused before anything is made of them, and every key knows its line.
Scalars follow YAML 1.2: ``1e-4`` is a number, ``no`` and ``010`` are not surprises.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from trainwright import ranges
from trainwright.messages import UserError
from trainwright.quoting import dotted, one_line

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
_YAML_1_1 = tuple(
    dict.fromkeys(
        pattern for tags in yaml.SafeLoader.yaml_implicit_resolvers.values() for _, pattern in tags
    )
)
"""What readers of YAML 1.1 take for no text: ``no``, ``1:30``, ``2026-01-01``."""
_TAGS = tuple(
    f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")
)
"""Types that YAML itself has; a tagged scalar stays text."""
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

    def where(self, name: str, place: Place) -> str:
        """Return file and line of the key as errors write them, ``name:3``."""
        return _at(name, self.line(place))


def parse(text: str, name: str, *, above: Place = (), foreign: bool = False) -> Document:
    """Return the one document in the text; ``name`` is what errors call it.

    ``above`` is the key whose value the text is, where it is not a file: errors then name
    keys below it, and no lines. ``foreign`` is a file of other tools, which may name a value and
    use it again: ``&name``, ``*name``, ``<<: *name``, and say its type by YAML's own tags.

    Raises:
        UserError: not YAML, or YAML that our files do without.
    """
    try:
        events = yaml.parse(text, Loader=_LOADER)
        return _Builder(events, name, above, foreign=foreign).document()
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

    def __init__(
        self, events: Iterator[Event], name: str, above: Place, *, foreign: bool = False
    ) -> None:
        self._events = events
        self._foreign = foreign
        self._named: dict[str, tuple[Any, int]] = {}
        """Anchor -> the value, and how many values it holds."""
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
        self._count(1, event)
        if event.anchor and not self._foreign:
            self._refuse("yaml.anchor", event)
        self._lines.setdefault(place, event.start_mark.line + 1)
        if isinstance(event, yaml.AliasEvent):
            return self._again(event)
        tags = (None, "!", *(_TAGS if self._foreign else ()))
        if event.tag not in tags:
            self._refuse("yaml.tag", event, tag=one_line(str(event.tag)))
        if len(place) > MAX_DEPTH:
            self._refuse("yaml.too-deep", event, limit=MAX_DEPTH)
        before = self._nodes
        data = self._data(event, place)
        if event.anchor:
            self._named[event.anchor] = (data, self._nodes - before)
        return data

    def _count(self, more: int, event: Event) -> None:
        self._nodes += more
        if self._nodes > MAX_NODES:
            self._refuse("yaml.too-many-values", event, limit=MAX_NODES)

    def _again(self, event: Event) -> Any:
        """Return a copy of a value that was named before; it counts as often as it is used."""
        if event.anchor not in self._named:
            self._refuse("yaml.no-anchor", event, name=one_line(event.anchor))
        data, nodes = self._named[event.anchor]
        self._count(nodes, event)
        return deepcopy(data)

    def _data(self, event: Event, place: Place) -> Any:
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(place)
        return self._scalar(event, place)

    def _mapping(self, place: Place) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: list[Any] = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event)
            if key == "<<" and self._foreign:
                below = self._node(next(self._events), (*place, key))
                merged += below if isinstance(below, list) else [below]
                continue
            if key in data:
                self._refuse("yaml.duplicate-key", event, key=dotted((*place, key)))
            self._lines[(*place, key)] = event.start_mark.line + 1
            data[key] = self._node(next(self._events), (*place, key))
        for below in merged:  # a key of the mapping itself holds, then that of the first
            data = {**below, **data} if isinstance(below, Mapping) else data
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


def dump(data: dict[str, Any], sections: frozenset[str] = frozenset()) -> str:
    """Return data as YAML text: a line for each key, and for each key within a section.

    A section is a mapping, or a list of mappings. Readers of YAML 1.1 and 1.2 get the same data.
    """
    return "".join(f"{line}\n" for line in _lines(data, sections))


def _lines(data: dict[str, Any], sections: frozenset[str]) -> Iterator[str]:
    for key, value in data.items():
        inner = _inner(value, sections) if key in sections else []
        head = f"{_text(key)}:"
        if _needs_mark(head):
            yield f"? {_text(key)}"
            head = ":"
        yield head if inner else f"{head} {_flow(value)}"
        yield from (f"  {line}" for line in inner)


def _inner(value: Any, sections: frozenset[str]) -> list[str]:
    """Return the lines of a section; none where it is empty, or holds more than mappings."""
    if isinstance(value, dict):
        return list(_lines(value, sections))
    items = value if isinstance(value, (list, tuple)) else ()
    if not all(isinstance(item, dict) and item for item in items):
        return []
    return [
        f"{'  ' if number else '- '}{line}"
        for item in items
        for number, line in enumerate(_lines(item, sections))
    ]


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow_key(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    number = repr(value)
    # To YAML 1.1, 1e-05 is text.
    return number if "e" not in number or "." in number else number.replace("e", ".0e")


def _flow_key(key: str) -> str:
    text = _text(key)
    return f"? {text} " if _needs_mark(text) else text


def _needs_mark(key: str) -> bool:
    """Return whether parsers need not look so far ahead for the colon (YAML 1.2, 7.4.2)."""
    return len(key.encode()) > 1000


_PLAIN = re.compile(r"[\w./][\w./+@-]*( [\w./+@-]+)*")


def _text(value: str) -> str:
    """Return the text plain where it reads back as itself, else in double quotes."""
    if _PLAIN.fullmatch(value) and value.isprintable() and _is_text(value):
        return value
    return '"' + "".join(map(_escaped, value)) + '"'


def _is_text(value: str) -> bool:
    """Return whether unquoted text is text to us, and to readers of YAML 1.1."""
    try:
        ours = isinstance(scalar(value), str)
    except ValueError:
        return False
    return ours and not any(pattern.match(value) for pattern in _YAML_1_1)


_ESCAPES: dict[str, str] = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character == " " or character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
