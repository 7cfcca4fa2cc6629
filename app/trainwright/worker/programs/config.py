"""Reads a ``config.json`` that may be broken or hostile, and checks what libraries do not."""

import json
from pathlib import Path
from typing import Any

from blame import SIZES, shown
from refusal import Refusal

CONFIG_BYTES = 4 * 2**20
"""Assumed: no honest ``config.json`` is larger."""
LARGEST = {"layers": 2048, "experts": 65536, "number": 10**9}
"""Assumed bounds on what is built: blocks, experts of a layer, and any integer of a
configuration."""


def read_config(path: Path) -> dict[str, Any]:
    """Return the fields of a ``config.json``, given as the file or its folder.

    Raises:
        Refusal: it is missing, too large, not JSON, or not an object.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        if file.exists() and not file.is_file():  # a pipe would be waited for
            raise Refusal("worker.config-unreadable", file=str(file))
        if file.stat().st_size > CONFIG_BYTES:
            raise Refusal("worker.config-too-large", file=str(file))
        fields = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Refusal("worker.config-missing", file=str(file)) from error
    except (ValueError, RecursionError) as error:
        raise Refusal("worker.config-unreadable", file=str(file)) from error
    if not isinstance(fields, dict):
        raise Refusal("worker.config-unreadable", file=str(file))
    return _with_floats(fields)  # type: ignore[no-any-return]


_FLOATS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}


def _with_floats(value: Any) -> Any:
    """Return fields with the numbers that JSON lacks, as transformers 5 write them.

    They are objects: ``{"__float__": "Infinity"}`` (``configuration_utils.py``).
    """
    if isinstance(value, list):
        return [_with_floats(each) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"__float__"} and str(value["__float__"]) in _FLOATS:
        return _FLOATS[str(value["__float__"])]
    return {key: _with_floats(each) for key, each in value.items()}


def without_code(value: Any) -> Any:
    """Return fields without every ``auto_map``, which names code that comes with a model."""
    if isinstance(value, dict):
        return {key: without_code(each) for key, each in value.items() if key != "auto_map"}
    return [without_code(each) for each in value] if isinstance(value, list) else value


_EXPERTS = {
    "num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts",
    "num_experts_per_tok", "moe_intermediate_size",
}  # fmt: skip
"""Dense members of a family of mixtures say 0."""


def check_config(fields: dict[str, Any], file: str, kinds: Any = ()) -> None:
    """Check what libraries do not: sizes are sane, and heads divide.

    What a library's own class of ``kinds``, by model type, has as its default need not divide:
    that of GLM-4.5 does not.

    Raises:
        Refusal: names the field and what it must be.
    """
    for key, value in fields.items():
        if value != value:  # NaN, which JSON's readers in Python take; infinity is used as a limit
            raise Refusal("worker.config-nan", file=file, field=key)
        known = key in SIZES or key in _EXPERTS
        if known and value is not None and not isinstance(value, (list, dict)):
            least = 0 if key in _EXPERTS else 1
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise Refusal("worker.config-field", file=file, field=key, value=shown(value))
            if value > _limit(key):
                raise Refusal("worker.config-absurd", file=file, field=key, value=value)
        elif isinstance(value, dict):
            check_config(value, file, kinds)
    width: Any = fields.get("hidden_size") or fields.get("n_embd")
    heads: Any = fields.get("num_attention_heads") or fields.get("n_head")
    shared: Any = fields.get("num_key_value_heads")
    free = any(key in fields for key in ("head_dim", "qk_nope_head_dim", "attention_head_size"))
    free = free or (width, heads) == _usual(fields.get("model_type"), kinds)
    if _ints(width, heads) and not free and width % heads:
        raise Refusal("worker.heads-divide", file=file, width=width, heads=heads)
    if _ints(heads, shared) and heads % shared:
        raise Refusal("worker.kv-heads-divide", file=file, heads=heads, kv_heads=shared)


def _usual(model_type: Any, kinds: Any) -> tuple[Any, Any]:
    """Return the width and the heads that a type has by default; None where that is unknown."""
    known = isinstance(model_type, str) and model_type in kinds
    own = kinds[model_type].__dataclass_fields__ if known else {}
    width, heads = (own.get(key) for key in ("hidden_size", "num_attention_heads"))
    return getattr(width, "default", None), getattr(heads, "default", None)


def _limit(key: str) -> int:
    if key.endswith(("layers", "layer")):
        return LARGEST["layers"]
    return LARGEST["experts" if "experts" in key else "number"]


def _ints(*values: Any) -> bool:
    return all(isinstance(value, int) for value in values)
