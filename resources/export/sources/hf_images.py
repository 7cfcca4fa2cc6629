"""Models of transformers that see pictures."""

import argparse

from folders import stacked
from networks import Network, pictures, saver
from plan_file import Plan
from step import token_loss
from strict import HERE
from transformer import transformer


def _transformers(plan: Plan, options: argparse.Namespace) -> Network:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(HERE / plan.model.where)
    model = transformer(plan, options, config)
    dataset = pictures(plan, options, "pixel_values", config.num_labels)
    return Network(model, token_loss, dataset, stacked, saver(model))


MAKERS = {"hf": _transformers}
"""Kind of model in plan.json -> what builds it."""
