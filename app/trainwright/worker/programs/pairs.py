"""Classes that embed texts and images: each pair is told from the other pairs of its batch."""

from functools import partial
from typing import Any

import step
import torch
from subject import Subject
from torch import nn


def subject(model: nn.Module, config: Any, facts: dict[str, Any]) -> Subject:
    """Return such a model, which computes its own loss of the pairs, and what it is fed.

    A sequence is the text of a pair; the image has the size of the configuration.
    """
    vision = config.vision_config
    side = getattr(vision, "image_size", 0) or _SIDE
    shape = (getattr(vision, "num_channels", 3), side, side)
    model.forward = partial(model.forward, return_loss=True)

    def batch(size: int, length: int) -> step.Batch:
        inputs = {
            "input_ids": torch.zeros((size, length), dtype=torch.int64),
            "pixel_values": torch.zeros((size, *shape)),
        }
        return step.Batch(inputs, torch.zeros((size,), dtype=torch.int64))

    return Subject(
        model,
        batch,
        step.own_loss,
        facts | {"image_size": side},
        config=config,
        longest=int(getattr(config.text_config, "max_position_embeddings", 0) or 0),
        assumed={"profile.assumed.pairs": side},
    )


_SIDE = 224
"""Pixels of an image whose configuration gives no size: ImageNet's usual crop."""
