"""Where a step changes with the length: at the sliding window of a model's layers.

Below the window transformers leaves the mask out, and attention takes the fast kernel. From
the window on the layers that see only a part get a mask, and with it another kernel and copies
of their own (``transformers/masking_utils.py``, ``_ignore_causal_mask_sdpa``); a cache of keys
and values then keeps the window only. So a fit on one side says nothing of the other.
"""

from collections.abc import Mapping
from typing import Any

_PARTIAL = ("sliding_attention", "chunked_attention")

_NEVER_FUSED = ("gemma2", "gpt_oss")
"""Model types without ``scaled_dot_product_attention`` in transformers (``_supports_sdpa`` is
false): they take a mask at every length."""

ROTARY = (
    "cohere", "falcon_h1", "gemma", "gemma2", "gpt_neox", "granite", "llama", "mistral", "mixtral",
    "olmo", "olmo2", "phi", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "stablelm",
)  # fmt: skip
"""Model types whose positions are angles, where the configuration may leave them to a default."""


def always_masked(config: Mapping[str, Any]) -> bool:
    """Whether a pass without a cache makes the same masks at every length."""
    return _text(config).get("model_type") in _NEVER_FUSED


def first_partial(config: Mapping[str, Any]) -> int:
    """Return the tokens from which on some layer sees only a part; 0 where none ever does.

    ModernBERT's window counts both sides, and transformers compares its half with the length.
    """
    config = _text(config)
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and not any(kind in _PARTIAL for kind in kinds):
        return 0
    if config.get("use_sliding_window") is False:
        return 0
    if config.get("model_type") == "modernbert":
        return _positive(config.get("local_attention")) // 2
    found = (_positive(config.get(key)) for key in ("sliding_window", "attention_chunk_size"))
    return min((window for window in found if window), default=0)


def _text(config: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = config.get("text_config")
    return inner if isinstance(inner, dict) else config


def _positive(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def rotates(config: dict[str, Any]) -> bool:
    """Return whether positions are angles, which have no end, and not rows of a table."""
    stated = any(key in config for key in ("rope_theta", "rope_scaling", "rope_parameters"))
    return stated or config.get("model_type") in ROTARY
