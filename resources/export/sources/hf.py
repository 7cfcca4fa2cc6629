"""Models of transformers: text or pictures."""

import argparse
import dataclasses
from functools import partial
from pathlib import Path
from typing import Any

import torch
from dataset import Text, collator, open_text
from folders import stacked
from hf_models import Adapters, Weights, adapted, build_transformer, prompted
from made import MadeTokens
from networks import Network, frozen_dtype, pictures, saver
from plan_file import Plan
from step import ChunkedLoss, Loss, next_token_loss, token_loss
from strict import HERE, InputError


def _transformers(plan: Plan, options: argparse.Namespace) -> Network:
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(HERE / plan.model.where)
    model = _language_or_vision(plan, options, config)
    if model.main_input_name == "pixel_values":
        dataset = pictures(plan, options, "pixel_values", config.num_labels)
        return Network(model, token_loss, dataset, stacked, saver(model))
    tokenizer = None
    if plan.data.tokenizer is not None and not options.synthetic:
        tokenizer = AutoTokenizer.from_pretrained(plan.data.tokenizer)
    text = Text.of(config, tokenizer)
    length = plan.inputs.sequence_length
    if length is None:
        raise InputError("inputs.sequence_length: missing; a language model needs it")
    if options.synthetic:
        dataset = MadeTokens(text, length, plan.run.seed)
    else:
        dataset = open_text(
            Path(plan.data.path), length, text, tokenizer, packed=plan.inputs.packed
        )
    loss = _loss(plan, model, text)
    return Network(model, loss, dataset, partial(_split, collate=collator(text)), saver(model))


def _loss(plan: Plan, model: Any, text: Text) -> Loss:
    if text.form != "causal":
        return token_loss
    if plan.settings.cross_entropy == "chunked":
        return ChunkedLoss(model.get_output_embeddings())
    return next_token_loss


def _language_or_vision(plan: Plan, options: argparse.Namespace, config: Any) -> Any:
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
        # The flash kernel that torch itself has: the run allows no other.
        "eager" if plan.settings.attention == "eager" else "sdpa",
        plan.settings.quantization,
        plan.settings.double_quantization,
        plan.settings.kbit_preparation,
    )
    model = build_transformer(config, weights)
    if plan.virtual_tokens:
        return prompted(model, plan.task, plan.virtual_tokens)
    if plan.lora is None:
        return model
    adapters = Adapters(
        **dataclasses.asdict(plan.lora),
        dtype=plan.settings.adapter_dtype,
        input_gradients=plan.settings.input_gradients,
    )
    return adapted(model, adapters)


def _split(samples: list[Any], collate: Any) -> dict[str, Any]:
    """Collate, and set the labels apart from the model's inputs."""
    inputs = collate(samples)
    return {"labels": inputs.pop("labels"), "inputs": inputs}


MAKERS = {"hf": _transformers}
"""Kind of model in plan.json -> what builds it."""
