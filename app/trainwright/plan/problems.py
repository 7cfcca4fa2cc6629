"""From what the schema refused to one sentence that names file, key and remedy."""

from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from trainwright.messages import Message, UserError
from trainwright.messages.nearest import nearest
from trainwright.plan.schema import Plan
from trainwright.quoting import dotted, one_line
from trainwright.yamltext import Place

Details = dict[str, Any]
"""One entry of ``ValidationError.errors()``."""


def refusal(error: ValidationError, where: Callable[[Place], str]) -> UserError:
    """Return the error for a person; of several, the one to put right first.

    ``where`` names the place of a key: file and line, or the option it came from. What is the key
    itself, or a part of it, is not said twice.
    """
    details: list[Any] = error.errors(include_url=False)
    first = min(details, key=_urgency)
    place = _place(first["loc"])
    named, key = where(place), dotted(place) or "plan"
    return UserError.of(
        "plan.invalid-key" if key.startswith(named) else "plan.invalid",
        where=named,
        key=key,
        problem=_problem(first, place),
        more=Message.of("plan.more", count=len(details) - 1) if len(details) > 1 else "",
    )


def _urgency(details: Details) -> int:
    """Put unknown keys first: a typing error also makes the right key missing."""
    return {"extra_forbidden": 0, "missing": 1}.get(details["type"], 2)


def _place(location: Sequence[str | int]) -> Place:
    """Return the location without the tag that a union's chosen member adds below its key."""
    tags = ("files", "synthetic")
    pairs = zip(("", *location), location, strict=False)
    return tuple(part for above, part in pairs if not (above == "dataset" and part in tags))


def _inside(kind: Any, part: str | int) -> Any:
    """Return the type below a key or list position, None where there is none."""
    if (model := _model(kind)) is not None and isinstance(part, str):
        field = model.model_fields.get(part)
        return field.annotation if field is not None else None
    arguments = get_args(_plain(kind))
    return arguments[-1 if isinstance(part, str) else 0] if arguments else None


def _plain(kind: Any) -> Any:
    """Return the type without ``Annotated`` and without ``| None``."""
    while hasattr(kind, "__metadata__"):
        kind = kind.__origin__
    if get_origin(kind) in (Union, UnionType):
        members = [member for member in get_args(kind) if member is not type(None)]
        return _plain(members[0])
    return kind


def _model(kind: Any) -> type[BaseModel] | None:
    kind = _plain(kind)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def known_keys(place: Place) -> tuple[str, ...]:
    """Return the keys that the schema has at a place; empty where it has none of its own."""
    kind: Any = Plan
    for part in place:
        kind = _inside(kind, part)
    model = _model(kind)
    return tuple(model.model_fields) if model is not None else ()


def closest(word: str, words: Sequence[str]) -> str | None:
    """Return the word that was probably meant."""
    return next(iter(nearest(word, words, count=1)), None)


def unknown_key(place: Place) -> Message:
    """Return the problem of a key that the schema does not have."""
    *above, key = place
    keys = known_keys(tuple(above))
    if (elsewhere := _elsewhere(str(key), str(above[0]) if above else "")) is not None:
        return Message.of("plan.problem.key-elsewhere", right=elsewhere)
    if (near := closest(str(key), keys)) is not None:
        return Message.of("plan.problem.unknown-key-near", near=near)
    if not keys:
        return Message.of("plan.problem.no-keys-here")
    return Message.of("plan.problem.unknown-key", keys=keys)


def _elsewhere(key: str, section: str) -> str | None:
    """Return where a key that stands in a section belongs: below the same one, if it may."""
    nested = {"num_workers": "settings.loader", "rank": "workload.lora"}
    nested |= dict.fromkeys(known_keys(("workload", "inputs")), "workload.inputs")
    for part in ("wishes", "rates"):
        nested |= dict.fromkeys(known_keys(("limits", part)), f"limits.{part}")
    below = nested.get(key, "")
    if not below.startswith(f"{section}."):
        for other in ("model", "workload", "machine", "settings", "limits"):
            if key in known_keys((other,)):
                return f"{other}.{key}"
    return f"{below}.{key}" if below else None


_KINDS = {
    "int": "plan.kind.whole",
    "float": "plan.kind.number",
    "bool": "plan.kind.switch",
    "string": "plan.kind.text",
    "tuple": "plan.kind.list",
    "list": "plan.kind.list",
    "model": "plan.kind.mapping",
    "dict": "plan.kind.mapping",
}
_FOUR_BITS = ("awq", "gptq")
"""What checkpoints of int4 weights are often named after."""
_EXAMPLES = {
    "budget": "3000 USD, 4500000 KRW",
    "cloud": "0.79 USD, 1100 KRW, 0.79 USD/GPU",
    "checkpointing": "none, full, every-2, selective",
    "frozen": "embed_tokens, layers.0-11",
}


def _problem(details: Details, place: Place) -> Message:
    kind, context = details["type"], details.get("ctx", {})
    found = shown(details.get("input"))
    key = next((part for part in reversed(place) if isinstance(part, str)), "")
    match kind:
        case "extra_forbidden":
            return unknown_key(place)
        case "missing":
            return missing(place)
        case "literal_error":
            if place[-1:] == ("quantization",) and str(details["input"]).lower() in _FOUR_BITS:
                return Message.of("plan.problem.four-bits", found=found)
            return _choice(str(context["expected"]), details["input"], found)
        case "string_type" if place[-2:] in (
            ("limits", "budget"),
            ("rates", "cloud"),
        ):  # 3000: the currency is missing
            return Message.of("plan.problem.form", examples=_EXAMPLES[key], found=found)
        case "string_pattern_mismatch":
            examples = _EXAMPLES.get(key, context["pattern"])
            return Message.of("plan.problem.form", examples=examples, found=found)
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            if place[-1:] == ("tensor_degree",) and details["input"] == 1:
                return Message.of("plan.problem.one-is-none", found=found)
            limit = next(iter(context.values()))
            limit = int(limit) if isinstance(limit, float) and limit.is_integer() else limit
            return Message.of(f"plan.problem.{kind.replace('_', '-')}", limit=limit, found=found)
        case "string_too_long":
            return Message.of("plan.problem.too-long", limit=context["max_length"])
    if "." in kind:  # one of ours: the type is a message id
        return Message.of(kind, **context)
    if (wanted := _KINDS.get(kind.partition("_")[0])) is not None:
        return Message.of("plan.problem.type", wanted=Message.of(wanted), found=found)
    return Message.of("plan.problem.other", reason=details["msg"])


def missing(place: Place) -> Message:
    """Return the problem of a key that must be there."""
    examples: dict[Place, str] = {
        ("trainwright",): "trainwright: 1",
        ("model",): "model: {preset: gpt2}",
        ("workload",): "workload: {task: pretrain, effective_batch: 32}",
        ("workload", "task"): "task: full",
        ("machine",): "machine: {gpus: [{id: rtx-4090}]}",
    }
    example = examples.get(place, f"{place[-1]}: ...")
    return Message.of("plan.problem.missing", example=example)


def _choice(expected: str, value: Any, found: Any) -> Message:
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    if len(words) == 1:
        return Message.of("plan.problem.must-be", choice=words[0], found=found)
    near = closest(value, words) if isinstance(value, str) else None
    if near is not None:
        return Message.of("plan.problem.choice-near", choices=words, found=found, near=near)
    return Message.of("plan.problem.choice", choices=words, found=found)


def shown(value: Any) -> Any:
    """Return a value as an error may quote it: short, on one line, and with its kind."""
    if isinstance(value, str):
        return Message.of("plan.found.text", value=one_line(value))
    if isinstance(value, dict):
        return Message.of("plan.found.mapping")
    if isinstance(value, (list, tuple)):
        return Message.of("plan.found.list")
    if value is None:
        return Message.of("plan.found.nothing")
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
