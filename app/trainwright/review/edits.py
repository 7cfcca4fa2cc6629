"""Changes of a file in its own format: what is not changed stays byte for byte."""

import json
from collections.abc import Sequence
from typing import Any

from trainwright.messages import UserError
from trainwright.quoting import dotted, json_text
from trainwright.review.finding import Change, Removed, Renamed
from trainwright.review.spans import SPANS, Span
from trainwright.yamltext import Place, dump


def edited(text: str, format: str, changes: Sequence[Change]) -> str:
    """Return the text with the changes.

    Raises:
        UserError: a change cannot be made in this file without touching others.
    """
    for change in changes:
        text = _changed(text, format, change)
    return text


def _changed(text: str, format: str, change: Change) -> str:
    spans = SPANS[format](text)
    span = spans.get(change.place)
    if change.value is Removed.KEY:
        return text if span is None else _without(text, format, change.place, spans)
    if isinstance(change.value, Renamed):
        if (*change.place[:-1], change.value.name) in spans:
            raise _refused(change.place)  # both names are there, and a person must choose
        return text if span is None else _renamed(text, format, change.place, change.value, span)
    if span is not None:
        start, end = span
        return f"{text[:start]}{_value(change.value, format)}{text[end:]}"
    return _with(text, format, change, spans)


def _value(value: Any, format: str) -> str:
    if format == "yaml":
        return dump({"k": value})[3:].rstrip("\n")
    if format == "toml" and isinstance(value, float):
        return repr(value)
    return json_text(value)


def _without(text: str, format: str, place: Place, spans: dict[Place, Span]) -> str:
    """Return the text without a key; in YAML and TOML its whole lines go."""
    start, end = spans[place]
    if format != "json":
        first = text.rfind("\n", 0, start) + 1
        name = text[first:start].strip().rstrip(":=").strip().strip("\"'")
        if name != str(place[-1]) and not name.endswith(f".{place[-1]}"):
            raise _refused(place)
        last = text.find("\n", max(start, end - 1))
        return text[:first] + (text[last + 1 :] if last >= 0 else "")
    begin = text.rfind(json.dumps(str(place[-1])), 0, start)
    rest = text[end:].lstrip()
    if rest.startswith(","):
        return text[:begin] + rest[1:].lstrip()
    return text[:begin].rstrip().removesuffix(",") + text[end:]


def _renamed(text: str, format: str, place: Place, new: Renamed, span: Span) -> str:
    """Return the text with another name before the value."""
    old = str(place[-1])
    name = json.dumps(old) if format == "json" else old
    begin = text.rfind(name, 0, span[0])
    between = text[begin + len(name) : span[0]].strip().strip("\"'").strip()
    if begin < 0 or between not in (":", "="):
        raise _refused(place)
    written = json.dumps(new.name) if format == "json" else new.name
    return f"{text[:begin]}{written}{text[begin + len(name) :]}"


def _with(text: str, format: str, change: Change, spans: dict[Place, Span]) -> str:
    """Return the text with a key that it did not have, at the end of its section."""
    *above, key = change.place
    value = _value(change.value, format)
    if format == "json":
        return _in_json(text, tuple(above), str(key), change.value, spans)
    if format == "toml":
        return _in_toml(text, tuple(above), f"{key} = {value}", change.place)
    if not above:
        return f"{text.rstrip()}\n{key}: {value}\n" if text.strip() else f"{key}: {value}\n"
    inner = [place for place in spans if place[:-1] == tuple(above)]
    if not inner:
        if len(above) == 1 and tuple(above) not in spans:
            return f"{text.rstrip()}\n{above[0]}:\n  {key}: {value}\n"
        raise _refused(change.place)
    start = spans[inner[0]][0]
    first = text.rfind("\n", 0, start) + 1
    if "{" in text[first:start]:
        raise _refused(change.place)
    return f"{text[:first]}{_indent(text[first:start])}{key}: {value}\n{text[first:]}"


def _in_json(text: str, above: Place, key: str, value: Any, spans: dict[Place, Span]) -> str:
    if above not in spans:
        if not above:
            raise _refused((key,))
        return _in_json(text, above[:-1], str(above[-1]), {key: value}, spans)
    start, end = spans[above]
    inner = [span for place, span in spans.items() if place[:-1] == above and place]
    pair = f"{json.dumps(key)}: {json_text(value)}"
    if not inner:
        return f"{text[: start + 1]}{pair}{text[end - 1 :]}"
    last = max(span[1] for span in inner)
    first = min(span[0] for span in inner)
    line = text.rfind("\n", start, first)
    lead = "\n" + _indent(text[line + 1 : first]) if line >= 0 else " "
    return f"{text[:last]},{lead}{pair}{text[last:]}"


def _indent(line: str) -> str:
    """Return the white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def _in_toml(text: str, above: Place, line: str, place: Place) -> str:
    if not above:
        return f"{line}\n{text}"
    name, at = f"[{'.'.join(map(str, above))}]", 0
    for each in text.splitlines(keepends=True):
        at += len(each)
        if each.partition("#")[0].strip() == name:
            head = text[:at] if each.endswith("\n") else f"{text[:at]}\n"
            return f"{head}{line}\n{text[at:]}"
    return f"{text.rstrip()}\n\n{name}\n{line}\n"


def _refused(place: Place) -> UserError:
    return UserError.of("review.cannot-edit", key=dotted(place))
