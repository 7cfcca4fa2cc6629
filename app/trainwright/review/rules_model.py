"""Rules about the model: the layers that adapters name, lengths, and types that overflow."""

from collections.abc import Iterator
from typing import Any

from trainwright.review.case import Case, found
from trainwright.review.derived import task
from trainwright.review.finding import Finding

_SEPARATE = frozenset({"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"})
_FUSED = frozenset({"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"})
_LAYERS = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text"),
                    _SEPARATE),
    **dict.fromkeys(("gpt_neox", "bloom", "falcon"), _FUSED),
    "gpt2": frozenset({"c_attn", "c_proj", "c_fc"}),
    "phi3": frozenset({"qkv_proj", "o_proj", "gate_up_proj", "down_proj"}),
    "bert": frozenset({"query", "key", "value", "dense"}),
}  # fmt: skip
"""``model_type`` -> names of the linear layers of its blocks: transformers 5.24, modeling_*.py."""
_BLOCKS = {
    **{
        kind.lower(): f"{kind}DecoderLayer"
        for kind in ("Llama", "Mistral", "Mixtral", "Qwen2", "Qwen3", "Gemma", "Gemma2", "Phi",
                     "Phi3", "Falcon", "OPT", "StableLm")
    },
    **{"qwen2_moe": "Qwen2MoeDecoderLayer", "qwen3_moe": "Qwen3MoeDecoderLayer"},
    **{"gemma3_text": "Gemma3DecoderLayer", "gpt2": "GPT2Block", "gptj": "GPTJBlock"},
    **{"gpt_neo": "GPTNeoBlock", "gpt_neox": "GPTNeoXLayer", "bloom": "BloomBlock"},
}  # fmt: skip
"""``model_type`` -> class of a block: transformers 5.24, _no_split_modules."""
_WORDS = frozenset({"all-linear", "lm_head", "embed_tokens", "wte"})
"""Targets that any of these models has."""
_OVERFLOWING = ("gemma2", "gemma3", "gemma3_text", "t5", "mt5", "umt5")
"""Model types whose activations are known to leave the range of fp16: their own documentation."""


def rules(case: Case) -> Iterator[Finding]:
    """Yield what does not go together with the model that is trained."""
    if task(case.facts) == "infer":
        return
    kind, targets = case.model_type, case.given("targets")
    layers = _LAYERS.get(kind or "")
    if targets is not None and layers is not None:
        named = {str(name).rpartition(".")[2] for name in targets.value}
        plain = all(name.isidentifier() or name in _WORDS for name in named)  # not a pattern
        if plain and not named & (layers | _WORDS):
            names, known = sorted(named), sorted(layers)
            values: dict[str, Any] = {"model": kind, "targets": names, "layers": known}
            yield found("targets-absent", "error", targets, **values)
        elif plain and (names := sorted(named - layers - _WORDS)):
            values = {"model": kind, "targets": names, "layers": sorted(layers)}
            yield found("targets-partly", "risk", targets, **values)
    wrapped, block = case.given("wrapped"), _BLOCKS.get(kind or "")
    family = (block or "").removesuffix("DecoderLayer").removesuffix("Block")
    # Its other classes, such as MixtralSparseMoeBlock, may be wrapped too.
    own = wrapped is not None and any(str(name).startswith(family) for name in wrapped.value)
    if wrapped is not None and block is not None and not own:
        classes = list(wrapped.value)
        changes = case.rewriting(wrapped, block)
        yield found("wrap-absent", "error", wrapped, changes, classes=classes, block=block)
    precision = case.facts.first("precision")
    half = precision is not None and precision.value in ("fp16-mixed", "fp16")
    if half and kind in _OVERFLOWING:
        yield found("fp16-model", "risk", case.given("precision"), model=str(kind))
    length, most = case.given("length"), case.of_model("positions")
    if length is not None and most is not None and length.value > most:
        yield found("length-long", "risk", length, length=length.value, most=most)
