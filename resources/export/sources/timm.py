"""Image models of timm."""

import argparse

from folders import stacked
from networks import Network, pictures, save_weights
from plan_file import Plan
from step import token_loss


def _timm(plan: Plan, options: argparse.Namespace) -> Network:
    import timm

    if plan.settings.attention == "eager":
        timm.layers.set_fused_attn(False)
    dataset = pictures(plan, options, "x", classes=1000)
    arguments = {
        "pretrained": plan.model.weights == "pretrained",
        "num_classes": len(dataset.classes),
    }
    try:
        size = plan.inputs.image_size or 224
        model = timm.create_model(plan.model.where, img_size=size, **arguments)
    except TypeError:  # convolutional networks take any size
        model = timm.create_model(plan.model.where, **arguments)
    return Network(model, token_loss, dataset, stacked, save_weights)


MAKERS = {"timm": _timm}
"""Kind of model in plan.json -> what builds it."""
