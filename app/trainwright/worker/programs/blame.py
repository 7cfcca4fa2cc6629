"""Names the key of a ``config.json`` for which a model cannot be built or run.

Libraries complain in words of Python, and seldom about the key that a person has to correct. So
the keys are left out one at a time, those that the complaint names first: the one without which
the model works is to blame.
"""

import copy
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import MISSING
from typing import Any

from refusal import Refusal

Attempt = Callable[[dict[str, Any]], object]
"""Builds the model of some fields, or runs it; raises whatever its library does."""
PATIENCE_S = 20.0
"""Longest search; assumed. Most models are built in less than a second without their weights."""
MOST_SHOWN = 60
"""Characters of a value that are shown; assumed."""
SIZES = {
    "hidden_size", "d_model", "n_embd", "num_hidden_layers", "num_layers", "n_layer",
    "num_attention_heads", "num_heads", "n_head", "num_key_value_heads", "vocab_size",
    "intermediate_size", "d_ff", "d_kv", "head_dim", "image_size", "patch_size",
    "num_channels", "max_position_embeddings", "n_positions", "encoder_attention_heads",
    "decoder_attention_heads", "encoder_ffn_dim", "decoder_ffn_dim",
}  # fmt: skip
"""Keys whose values are whole numbers of at least 1. Others are more often the one to correct,
where a size and another key do not fit together."""
_KINDS = {
    "int": "integer", "float": "number", "bool": "boolean", "str": "string", "list": "array",
    "tuple": "array", "dict": "object", "None": "null",
}  # fmt: skip
"""What JSON (RFC 8259) calls the types of an annotation."""


def of_key(
    error: Exception, fields: dict[str, Any], file: str, known: Any, attempt: Attempt
) -> Refusal | None:
    """Return what a person reads of a key that is to blame; None where no single one is.

    ``known`` is the library's class of the fields, ``attempt`` what raised the error.
    """
    key = _culprit(error, fields, attempt)
    if key is None:
        return None
    declared = getattr(known, "__dataclass_fields__", {}).get(key)
    values = {"file": file, "field": key, "value": shown(fields[key])}
    if declared is None:
        return Refusal("worker.config-key", **values)
    kinds = _expected(declared.type)
    kind = _KINDS[type(fields[key]).__name__ if fields[key] is not None else "None"]
    if kinds and kind not in kinds and not (kind == "integer" and "number" in kinds):
        return Refusal("worker.config-kind", **values, expected=", ".join(kinds))
    if declared.default is MISSING:
        return Refusal("worker.config-key", **values)
    return Refusal("worker.config-value", **values, usual=shown(declared.default))


def of_values(error: Exception, file: str) -> Refusal:
    """Return what a person reads where no single key is to blame.

    The text of a ValueError is meant to be read; that of other errors is for programmers.
    """
    told = error if isinstance(error, ValueError) else error.__cause__
    if isinstance(told, ValueError) and (lines := str(told).strip().splitlines()):
        return Refusal("worker.config-values", file=file, text=lines[0][:200])
    return Refusal("worker.config-odd", file=file)


def shown(value: Any) -> str:
    """Return a value as a file writes it, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except TypeError:
        text = str(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"


def _expected(annotation: Any) -> list[str]:
    """Return the kinds of values that an annotation allows; none where it says nothing."""
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    while (outer := re.sub(r"\[[^\[\]]*\]", "", text)) != text:
        text = outer
    names = re.findall(r"\b(int|float|bool|str|list|tuple|dict|None)\b", text)
    return list(dict.fromkeys(_KINDS[name] for name in names))


def _culprit(error: Exception, fields: dict[str, Any], attempt: Attempt) -> str | None:
    """Return the key without which it works; else the one that the error names in quotes."""
    end = time.monotonic() + PATIENCE_S
    named = list(_named(str(error), fields))
    left = {"model_type"}
    if all(isinstance(name, str) for name in fields.get("architectures") or ()):
        left.add("architectures")  # without its class another one is built, which says nothing
    others = sorted(fields.keys() - left, key=lambda key: (key in SIZES, key))
    for key in dict.fromkeys((*named, *others)):
        if time.monotonic() > end:
            break
        try:
            attempt(copy.deepcopy({name: each for name, each in fields.items() if name != key}))
        except Exception:
            continue
        return key
    return next(iter(named), None)


def _named(text: str, fields: dict[str, Any]) -> Iterator[str]:
    """Yield the keys that stand in quotes in a text."""
    yield from (key for key in re.findall(r"['`\"](\w+)['`\"]", text) if key in fields)
