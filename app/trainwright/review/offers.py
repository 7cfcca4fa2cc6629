"""Titles of ways out and gains: all that changes, in words of the files' tool."""

from collections.abc import Mapping
from typing import Any

from trainwright.messages import Message
from trainwright.profile.hub import HUB
from trainwright.quoting import json_text
from trainwright.review.case import Case

_CHECKPOINTS = {
    "int4": (4, ["AWQ", "GPTQ"]),
    "int8": (8, ["W8A8", "GPTQ"]),
    "mxfp4": (4, ["MXFP4"]),
}
"""Weights that vLLM and SGLang do not make of whole ones: bits, and forms of a checkpoint."""
_LARGEST = ("task", "micro_batch", "sequence_length", "checkpointing", "cross_entropy", "optimizer")
"""Changes in the order of what they usually free; assumed."""
_MAIN = {
    "advise.relax.sequence": ("sequence_length", "context"),
    "advise.relax.task": ("task",),
}
"""Way out -> keys that its sentence names."""


def takes_checkpoint(case: Case, key: str, value: Any) -> bool:
    """Return whether a setting is that of another checkpoint of the served model."""
    engine = case.facts.value("engine")
    by_option = case.by_hand("weights", value) is not None
    packed = key == "quantization" and value in _CHECKPOINTS
    return packed and engine in ("vllm", "sglang") and not by_option


def other_model(case: Case, preset: str) -> str:
    """Return what a server's file says for another model; the plan's key for other files."""
    said = case.by_hand("model", HUB[preset]) if preset in HUB else None
    serves = case.plan is not None and not case.plan.workload.trains
    return said if said and serves else f"model.preset={preset}"


def title(case: Case, change: Message, patch: Mapping[str, Any]) -> Message:
    """Return the sentence of an offer, with every setting of the patch, the largest first."""
    named = _LARGEST
    ranked = sorted(patch, key=lambda key: named.index(key) if key in named else len(named))
    figures = {name: change.values[name] for name in ("used", "total") if name in change.values}
    if (weights := patch.get("quantization")) and takes_checkpoint(case, "quantization", weights):
        bits, forms = _CHECKPOINTS[weights]
        id = "review.offer.checkpoint" + ("" if figures else "-gain")
        change = Message.of(id, bits=bits, forms=forms, **figures)
        ranked.remove("quantization")
    elif change.id == "advise.relax.setting":
        if len(ranked) < 2:
            return change
        return Message.of("review.offer.settings", settings=_said(ranked, patch), **figures)
    rest = [key for key in ranked if key not in _MAIN.get(change.id, ())]
    if not rest or not figures:
        return change
    return Message.of("review.offer.with", change=change, settings=_said(rest, patch))


def _said(keys: list[str], patch: Mapping[str, Any]) -> list[str]:
    """Return the settings as a plan has them: ``micro_batch=2``."""
    values = {key: patch[key] for key in keys}
    return [f"{k}={v if isinstance(v, str) else json_text(v)}" for k, v in values.items()]
