"""A model of transformers as plan.json has it."""

import argparse
from typing import Any

import torch
from hf_models import EXPANDED, Weights, build_transformer
from networks import frozen_dtype
from plan_file import Plan
from strict import InputError
from tuning import tuned


def _implementation(plan: Plan) -> str:
    """Return transformers' name of the attention; flash is torch's own kernel, and no other."""
    if plan.settings.attention == "sdpa" and plan.settings.expanded_heads:
        return EXPANDED
    return "eager" if plan.settings.attention == "eager" else "sdpa"


def transformer(plan: Plan, options: argparse.Namespace, config: Any) -> Any:
    """Return the model, its weights loaded or random, with adapters where the task has them.

    Raises:
        InputError: the task starts from trained weights, and none are named.
    """
    trained = plan.model.weights is not None
    if not trained and plan.settings.quantization != "none":
        raise InputError("quantized weights are made from trained ones: name them with --weights")
    if (
        not trained
        and plan.task != "pretrain"
        and not (options.synthetic or options.random_weights)
    ):
        raise InputError(
            f"task {plan.task} starts from trained weights: name them with --weights "
            "FOLDER-OR-HUB-ID, or say --random-weights"
        )
    weights = Weights(
        plan.model.weights,
        torch.float32 if plan.task in ("pretrain", "full") else frozen_dtype(plan),
        _implementation(plan),
        plan.settings.quantization,
        plan.settings.double_quantization,
        plan.settings.kbit_preparation,
        plan.settings.strategy == "fsdp2",
    )
    return tuned(build_transformer(config, weights), plan)
