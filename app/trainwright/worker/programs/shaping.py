"""Gives a built model the types, adapters, layout and checkpoints that its spec asks for."""

from dataclasses import replace
from typing import Any

import step
import torch
from adapters import add_lora
from quantized import quantize
from refusal import Refusal
from subject import Subject

COMPUTE = {
    "bf16": torch.bfloat16,
    "bf16-mixed": torch.bfloat16,
    "fp16-mixed": torch.float16,
}
"""Type of frozen and of served weights by precision; fp32 for the others."""


def shape(subject: Subject, spec: dict[str, Any]) -> step.StepSettings:
    """Change the model, still on ``meta``, and return the settings of its step.

    Trained weights are fp32 but for ``bf16``; frozen and served ones have the compute type.
    Adapters are fp32 always.

    Raises:
        Refusal: no layer has a name among the adapters' targets.
    """
    model, task = subject.model, spec["task"]
    method = spec.get("method", {})
    dtype = COMPUTE.get(spec["precision"], torch.float32)
    settings = step.StepSettings(
        precision=spec["precision"],
        checkpointing=spec["checkpointing"],
        channels_last=spec["channels_last"],
    )
    with torch.device("meta"):
        if task != "full":
            model.to(dtype)
        if kind := _weights(spec):
            quantize(model, kind, dtype, subject.head)
        if task in ("lora", "qlora"):
            rank, targets = spec["lora"]
            dora, dropout = method.get("dora", False), method.get("dropout", False)
            if not add_lora(model, rank, targets, subject.head, dora=dora, dropout=dropout):
                raise Refusal("worker.no-targets", targets=", ".join(targets))
    pure_bf16 = settings.precision == "bf16" and task == "full"
    prepared = replace(settings, precision="bf16" if pure_bf16 else "fp32")
    step.prepare(model, prepared, "meta")
    if task == "infer":
        model.eval()
    return settings


def _weights(spec: dict[str, Any]) -> str:
    """Return the type of quantised weights, empty where they are not quantised."""
    if spec["quantization"] == "int8":
        return "int8"
    four_bits = spec["task"] == "qlora" or spec["quantization"] in ("nf4", "int4")
    return "nf4" if four_bits else ""
