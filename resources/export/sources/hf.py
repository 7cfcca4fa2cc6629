"""Models of transformers that read text."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from dataset import Text, collator, open_text
from made import MadeTokens
from networks import Network, saver
from plan_file import Plan
from step import ChunkedLoss, Loss, next_token_loss, token_loss
from strict import HERE, InputError
from transformer import transformer


def _transformers(plan: Plan, options: argparse.Namespace) -> Network:
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(HERE / plan.model.where)
    model = transformer(plan, options, config)
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


def _split(samples: list[Any], collate: Any) -> dict[str, Any]:
    """Collate, and set the labels apart from the model's inputs."""
    inputs = collate(samples)
    return {"labels": inputs.pop("labels"), "inputs": inputs}


MAKERS = {"hf": _transformers}
"""Kind of model in plan.json -> what builds it."""
