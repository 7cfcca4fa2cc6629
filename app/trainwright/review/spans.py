"""Where each value stands in a text, so that it can be replaced and all else stays."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from trainwright.yamltext import MAX_DEPTH, Place

Span = tuple[int, int]
"""First character, and the one after the last."""

_SPACE = re.compile(r"[ \t\r\n]*")


def json_spans(text: str) -> dict[Place, Span]:
    """Return the span of each value of a JSON text that is valid, comments aside.

    Raises:
        RecursionError: it is nested too deep.
    """
    text = bare(text)
    return dict(_json(text, _space(text, 0), ()))


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _json(text: str, at: int, place: Place) -> Iterator[tuple[Place, Span]]:
    _, end = json.JSONDecoder(strict=False).raw_decode(text, at)
    if len(place) > MAX_DEPTH:
        raise RecursionError
    yield place, (at, end)
    if text[at] not in "{[":
        return
    mapping, number = text[at] == "{", 0
    at = _space(text, at + 1)
    while text[at] not in "}]":
        name: str | int = number
        if mapping:
            name, at = json.JSONDecoder(strict=False).raw_decode(text, at)
            at = _space(text, _space(text, at) + 1)
        yield from _json(text, at, (*place, name))
        _, at = json.JSONDecoder(strict=False).raw_decode(text, at)
        at = _space(text, at)
        if text[at] == ",":
            at = _space(text, at + 1)
        number += 1


def yaml_spans(text: str) -> dict[Place, Span]:
    """Return the span of each value of a YAML text that is valid."""
    events: Any = yaml.parse(text, Loader=yaml.SafeLoader)
    return {
        place: (_named(text, start), end)
        for event in events
        if isinstance(event, yaml.NodeEvent)
        for place, (start, end) in _yaml(event, events, ())
    }


_NAME = re.compile(r"([&!]\S*[ \t]+)+")


def _named(text: str, at: int) -> int:
    """Return where a value begins, behind the name and the type that may stand before it."""
    found = _NAME.match(text, at)
    return found.end() if found else at


def _yaml(event: Any, events: Any, place: Place) -> Iterator[tuple[Place, Span]]:
    start, end = event.start_mark.index, event.end_mark.index
    if isinstance(event, yaml.MappingStartEvent):
        while not isinstance(inner := next(events), yaml.MappingEndEvent):
            yield from _yaml(next(events), events, (*place, str(inner.value)))
        end = _end(inner)
    elif isinstance(event, yaml.SequenceStartEvent):
        number = 0
        while not isinstance(inner := next(events), yaml.SequenceEndEvent):
            yield from _yaml(inner, events, (*place, number))
            number += 1
        end = _end(inner)
    yield place, (start, end)


def _end(event: Any) -> int:
    return int(event.end_mark.index)


def toml_spans(text: str) -> dict[Place, Span]:
    """Return the span of each value that stands on one line of a TOML text that is valid."""
    found: dict[Place, Span] = {}
    section: Place = ()
    at = 0
    for line in text.splitlines(keepends=True):
        body = _uncommented(line)
        name, equals, value = body.partition("=")
        if body.lstrip().startswith("["):
            section = tuple(body.strip().strip("[]").replace('"', "").replace(" ", "").split("."))
        elif equals:
            begin = at + len(name) + 1 + len(value) - len(value.lstrip())
            place = (*section, *name.strip().replace('"', "").split("."))
            found[place] = (begin, begin + len(value.strip()))
        at += len(line)
    return found


def _uncommented(line: str) -> str:
    """Return a line of TOML up to the sign that begins its comment."""
    quote = ""
    escaped = False
    for number, sign in enumerate(line):
        if escaped:
            escaped = False
        elif quote == '"' and sign == "\\":
            escaped = True
        elif sign in "\"'" and quote in ("", sign):
            quote = "" if quote else sign
        elif sign == "#" and not quote:
            return line[:number]
    return line


SPANS: Mapping[str, Callable[[str], dict[Place, Span]]] = {
    "json": json_spans,
    "yaml": yaml_spans,
    "toml": toml_spans,
}
"""By format: those that are changed in place."""


# JSON with comments and commas after the last value, as DeepSpeed reads it

# What is never closed is taken to its end: each of many such would else be looked for in vain.
_STRING = r'"(?:\\.|[^"\\\n])*+"?'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|#[^\n]*|/\*(?:.*?\*/|.*)", re.DOTALL)
_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])")


def bare(text: str) -> str:
    """Return plain JSON of the same length: each character stays where it is."""
    for pattern in (_COMMENT, _COMMA):
        text = pattern.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)
    return text


def twice(text: str) -> tuple[str, ...]:
    """Return the keys that stand twice in one object, of which the last one holds."""
    found: list[str] = []

    def pairs(given: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in given]
        found.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)
        return dict(given)

    json.loads(bare(text), object_pairs_hook=pairs)
    return tuple(found)
