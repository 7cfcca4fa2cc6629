"""What is wrong with a catalog file, told as file, key and remedy."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trainwright.catalog.gpu_file import Entry, Provenance, Stated, Values
from trainwright.catalog.part_records import PartRecord
from trainwright.catalog.records import FlopKey
from trainwright.messages import Message
from trainwright.quoting import dotted
from trainwright.yamltext import Document

_FORMS = {
    "id": Message.of("catalog.expects-id"),
    "compute_capability": Message.of("catalog.expects-capability"),
    "launch": Message.of("catalog.expects-date"),
}
"""Texts of a form that a pattern would not explain."""
SHOWN = 20
"""Problems that one file may report; assumed, so that rubbish does not fill the screen."""


def of_validation(error: ValidationError, file: str, document: Document) -> tuple[Message, ...]:
    """Return one message for each thing wrong in a file, with its line."""
    errors = error.errors()
    # A list whose every entry is wrong counts as too short on top: that says nothing new.
    told = [one for one in errors if one["type"] != "too_short"] or errors
    return tuple(_problem(one, file, document) for one in told[:SHOWN])


def _problem(error: ErrorDetails, name: str, document: Document) -> Message:
    location = [part for part in error["loc"] if part != "[key]"]
    file = document.where(name, tuple(location))
    key = _readable(location, document.data)
    match error["type"]:
        case "extra_forbidden":
            return unknown_key(str(location[-1]), key, file, _allowed(location))
        case "missing":
            return Message.of("catalog.missing-key", file=file, key=key)
        case "literal_error" if "[key]" in error["loc"]:
            return unknown_key(str(location[-1]), key, file, get_args(FlopKey))
        case _:
            given = brief(error["input"])
            return Message.of(
                "catalog.bad-value", file=file, key=key, given=given, expected=expected(error)
            )


def unknown_key(key: str, place: str, file: str, allowed: Iterable[str]) -> Message:
    """Return that a key is none of those allowed, with the nearest of them."""
    near = get_close_matches(key[:60], list(allowed), n=1, cutoff=0.6)
    if near:
        return Message.of("catalog.unknown-key-near", file=file, key=place, near=near[0])
    return Message.of("catalog.unknown-key", file=file, key=place, allowed=sorted(allowed))


def _allowed(location: list[int | str]) -> set[str]:
    """Return the keys that may stand where an unknown one stands."""
    match location:
        case ["gpus", int(), _]:
            return set(Entry.model_fields)
        case ["defaults", _]:
            return set(Values.model_fields)
        case [_]:
            return {"schema", "defaults", "gpus"}
        case [*_, "sources", _, _]:
            return set(Provenance.model_fields)
        case _:
            return set(Stated.model_fields)


def _readable(location: list[int | str], data: Any) -> str:
    """Return ``gpus[3].tdp_w`` as a person knows it: ``rtx-4090.tdp_w``."""
    if len(location) > 1 and location[0] == "gpus" and isinstance(location[1], int):
        identity = _id(data, location[1]) or f"gpus[{location[1]}]"
        location = [identity, *location[2:]]
    if location and location[-1] == "value":
        location = location[:-1]
    return dotted([part if isinstance(part, int) else brief(part) for part in location]) or "gpus"


def _id(data: Any, index: int) -> str | None:
    try:
        identity = data["gpus"][index]["id"]
    except (KeyError, IndexError, TypeError):
        return None
    return identity if isinstance(identity, str) else None


def expected(error: ErrorDetails) -> Message:
    """Return what should have stood where an error is."""
    context = error.get("ctx", {})
    named = [part for part in error["loc"] if isinstance(part, str)]
    if named and (form := _FORMS.get(named[-1])):
        return form
    match error["type"]:
        case "literal_error":
            choices = str(context.get("expected", "")).replace(" or ", ", ").replace("'", "")
            return Message.of("catalog.expects-one-of", choices=choices)
        case "greater_than" | "finite_number" | "float_type" | "float_parsing":
            return Message.of("catalog.expects-positive")
        case "less_than_equal":
            return Message.of("catalog.expects-at-most", limit=context.get("le", 0))
        case "greater_than_equal":
            return Message.of("catalog.expects-at-least", limit=context.get("ge", 0))
        case "int_type" | "int_parsing" | "int_from_float":
            return Message.of("catalog.expects-whole")
        case "bool_type" | "bool_parsing":
            return Message.of("catalog.expects-bool")
        case "tuple_type" | "list_type" | "too_short":
            return Message.of("catalog.expects-list")
        case "model_type" | "dict_type" | "model_attributes_type":
            return Message.of("catalog.expects-mapping")
        case "value_error":
            return Message.of("catalog.expects-source-and-confidence")
        case _:
            return Message.of("catalog.expects-text")


def brief(value: Any) -> str:
    """Return a value in one short line, however it was written."""
    text = str(value) if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 40 else text[:39] + "…"


def contradicted(part: PartRecord, key: str, stated: object, because: Message) -> Message:
    """Return that the value stated under a key of a part cannot be true, and why."""
    if isinstance(stated, float):
        stated = f"{stated:g}"
    return Message.of("catalog.contradicts", part=part.id, key=key, stated=stated, because=because)
