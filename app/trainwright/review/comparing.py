"""What a run with an objective of its own compares with, and who writes its answers."""

from typing import Any

from trainwright.review.facts import Facts


def compared(facts: Facts, objective: str, kind: str) -> dict[str, Any]:
    """Return what the files compare with, where that is not the objective's default."""
    if objective == "grpo":
        own = "adapter-off" if kind in ("lora", "qlora") else "model"
        return {"reference": own} if facts.value("beta") else {}
    return {"reference": "precomputed"} if facts.value("precomputed") else {}


def generation(facts: Facts, objective: str | None) -> dict[str, Any]:
    """Return what writes the answers of grpo, where that is not the trained model."""
    if objective != "grpo" or not facts.value("uses_vllm"):
        return {}
    if facts.value("vllm_mode") == "server":
        return {"generation": "vllm-server"}
    kind = "vllm-sleep" if facts.value("vllm_sleeps") else "vllm"
    return {"generation": kind, "memory_share": facts.value("vllm_share")}
