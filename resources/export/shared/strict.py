"""Strict reading of JSON settings: what is misspelt is refused with the nearest name."""

import dataclasses
import difflib
import json
import math
import types
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

FORMAT = 1
HERE = Path(__file__).parent
Record = TypeVar("Record")


class InputError(Exception):
    """Something that the person who started the run can put right; one sentence."""

    def line(self) -> str:
        """Return the sentence as a terminal shows it, whatever a path in it holds."""
        text = str(self).strip().splitlines()[-1]
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def read(kind: type[Record], path: Path) -> Record:
    """Return the file's content as the dataclass.

    Raises:
        InputError: not readable, not JSON, an unknown or missing key, or a value of the wrong kind.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON: {error}") from error
    if isinstance(document, dict) and document.get("format", FORMAT) != FORMAT:
        raise InputError(f"{path}: format {document['format']}, but this program reads {FORMAT}")
    try:
        record: Record = _record(kind, document, "")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return record


def _value(kind: Any, value: Any, key: str) -> Any:
    if dataclasses.is_dataclass(kind):
        return _record(kind, value, key)
    if get_origin(kind) in (Union, types.UnionType):
        return None if value is None else _value(get_args(kind)[0], value, key)
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            choices = ", ".join(map(str, get_args(kind)))
            raise InputError(f"{key}: {value!r} is not one of {choices}")
        return value
    if get_origin(kind) is list:
        if not isinstance(value, list):
            raise InputError(f"{key}: {value!r} is not a list")
        return [_value(get_args(kind)[0], item, key) for item in value]
    kind = get_origin(kind) or kind
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is float and number and math.isfinite(value):
        return float(value)
    if type(value) is not kind or kind is float:
        raise InputError(f"{key}: {value!r} is not {_NAMES[kind]}")
    return value


_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    dict: "an object {...}",
}


def _record(kind: Any, value: Any, key: str) -> Any:
    if not isinstance(value, dict):
        raise InputError(f"{key or 'the file'}: not an object {{...}}")
    hints = get_type_hints(kind)
    for name in value:
        if name not in hints:
            near = difflib.get_close_matches(name, hints, n=1, cutoff=0)
            raise InputError(f"{_below(key, name)}: unknown key; did you mean {near[0]}?")
    for name in hints:
        if name not in value:
            raise InputError(f"{_below(key, name)}: missing")
    return kind(**{name: _value(hints[name], value[name], _below(key, name)) for name in hints})


def _below(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
