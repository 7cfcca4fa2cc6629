"""Changes of a file in its own format: what is not changed stays byte for byte."""

import json
import re
from collections.abc import Sequence
from typing import Any

from trainwright.messages import UserError
from trainwright.quoting import dotted, json_text
from trainwright.review.finding import Change, Removed
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
        key = re.escape(str(place[-1]))
        if not re.match(rf"""\s*["']?({key}|[\w.-]+\.{key})["']?\s*[:=]""", text[first:start]):
            raise _refused(place)
        last = text.find("\n", max(start, end - 1))
        return text[:first] + (text[last + 1 :] if last >= 0 else "")
    begin = text.rfind(json.dumps(str(place[-1])), 0, start)
    after = re.compile(r"\s*,\s*").match(text, end)
    if after is not None:
        return text[:begin] + text[after.end() :]
    return re.sub(r",?\s*$", "", text[:begin]) + text[end:]


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
    head = re.match(r"\s*", text[first:])
    if "{" in text[first:start]:
        raise _refused(change.place)
    return f"{text[:first]}{head[0] if head else ''}{key}: {value}\n{text[first:]}"


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
    lead = re.search(r"\n[ \t]*(?=\"[^\"\n]*\"\s*:\s*$)", text[start:first])
    return f"{text[:last]},{lead[0] if lead else ' '}{pair}{text[last:]}"


def _in_toml(text: str, above: Place, line: str, place: Place) -> str:
    if not above:
        return f"{line}\n{text}"
    header = re.compile(rf"(?m)^\s*\[{re.escape('.'.join(map(str, above)))}\][^\n]*\n?")
    found = header.search(text)
    if found is None:
        return f"{text.rstrip()}\n\n[{'.'.join(map(str, above))}]\n{line}\n"
    return f"{text[: found.end()]}{line}\n{text[found.end() :]}"


def _refused(place: Place) -> UserError:
    return UserError.of("review.cannot-edit", key=dotted(place))
