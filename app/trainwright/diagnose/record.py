"""Record files: evidence as one JSON document, read with care and saved whole or not at all."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from trainwright import __version__, ranges, reading, saving
from trainwright.diagnose.commandline import command
from trainwright.diagnose.evidence import RECORD, Evidence
from trainwright.diagnose.recorder.redact import Private, cleaned, here
from trainwright.messages import Message, UserError
from trainwright.messages.nearest import nearest
from trainwright.plan.problems import shown
from trainwright.quoting import dotted, json_text, one_line

SUFFIX = ".record.json"
MAX_BYTES = 1 << 20
"""Largest record that is read; assumed, the callback's are below 10 KB."""


def read(source: Path | str) -> Evidence:
    """Return the evidence in a record file, or on standard input where ``source`` is ``-``.

    Raises:
        UserError: the file cannot be read, or is not a valid record; names file, key and remedy.
    """
    name = reading.STDIN if str(source) == "-" else one_line(str(source), 300)
    return parsed(reading.text(source, MAX_BYTES, name, or_stdin=True), name)


def parsed(text: str, name: str) -> Evidence:
    """Return the evidence in a text; ``name`` is what errors call it.

    Raises:
        UserError: the text is not a valid record.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = f"{name}:{line}" if line else name
        raise UserError.of("diagnose.not-json", where=where) from None
    if (odd := ranges.first_odd(data)) is not None:
        raise reading.odd_number(name, *odd)
    version = data.get("trainwright_record") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool):
        raise UserError.of("diagnose.not-a-record", where=name, version=RECORD)
    if version > RECORD:
        raise UserError.of(
            "diagnose.newer", where=name, version=version, known=RECORD, program=__version__
        )
    try:
        # As JSON, because there strict means what a person expects: lists are tuples, whole
        # numbers are numbers, and text is never a number.
        return Evidence.model_validate_json(text, strict=True)
    except ValidationError as error:
        raise _refusal(error, name) from None


def _refusal(error: ValidationError, name: str) -> UserError:
    details: list[Any] = error.errors(include_url=False)
    first = min(details, key=lambda each: each["type"] != "extra_forbidden")
    place = tuple(first["loc"])
    alone = len(details) == 1
    return UserError.of(
        "diagnose.record-invalid-alone" if alone else "diagnose.record-invalid",
        where=name,
        key=dotted(place) or "trainwright_record",
        problem=_problem(first, place),
        count=len(details) - 1,
    )


def _problem(details: dict[str, Any], place: tuple[str | int, ...]) -> Message:
    if details["type"] == "extra_forbidden":
        near = next(iter(nearest(str(place[-1]), _keys(place[:-1]), count=1)), None)
        if near is None:
            return Message.of("diagnose.problem.unknown-key")
        return Message.of("plan.problem.unknown-key-near", near=near)
    if details["type"].startswith("diagnose."):
        return Message.of(details["type"], **details.get("ctx", {}))
    return Message.of(
        "diagnose.problem.value", reason=details["msg"], found=shown(details.get("input"))
    )


def _keys(place: tuple[str | int, ...]) -> tuple[str, ...]:
    """Return the keys that the format has at a place."""
    model: Any = Evidence
    for part in place:
        if isinstance(part, str) and isinstance(model, type) and issubclass(model, BaseModel):
            field = model.model_fields.get(part)
            model = _model_in(field.annotation) if field is not None else None
    return tuple(model.model_fields) if model is not None else ()


def _model_in(kind: Any) -> type[BaseModel] | None:
    """Return the model inside ``X | None`` or ``tuple[X, ...]``."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    inner = getattr(kind, "__args__", ()) or ((kind.__origin__,) if _annotated(kind) else ())
    return next((found for each in inner if (found := _model_in(each)) is not None), None)


def _annotated(kind: Any) -> bool:
    return hasattr(kind, "__metadata__")


def document(evidence: Evidence) -> dict[str, Any]:
    """Return the evidence as plain data without anything private; what is absent is left out."""
    data = evidence.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return without_private({"trainwright_record": evidence.trainwright_record} | data, here())


def without_private(data: dict[str, Any], known: Private) -> dict[str, Any]:
    """Return a record's document without anything private; of its command, the options' names."""
    words = str(data.get("command", "")).split()
    return cleaned(data, known) | ({"command": command(words)} if words else {})


def text_of(evidence: Evidence) -> str:
    """Return the evidence as a record's text; what is absent is left out."""
    return json_text(document(evidence), indent=1) + "\n"


def write(evidence: Evidence, path: Path) -> None:
    """Save the evidence; the file is replaced in one step.

    Raises:
        UserError: the file cannot be written.
    """
    saving.write(path, text_of(evidence))
