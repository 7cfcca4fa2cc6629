"""Models of timm by name."""

from typing import Any

import step
from refusal import Refusal
from subject import Subject, first_line, images, package
from torch import nn


def build(name: str, spec: dict[str, Any]) -> Subject:
    """Return the model of that name.

    Raises:
        Refusal: there is none, or it does not take that size of image.
    """
    timm = package("timm", "timm")
    if ":" in name or not timm.is_model(name):
        raise Refusal("worker.timm-unknown", name=name)
    timm.layers.set_fused_attn(spec["kernel"] != "eager")
    size = spec["image_size"]
    usual = timm.get_pretrained_cfg(name)
    default = usual.input_size[-1] if usual is not None else 224
    model = None
    if size and size != default:
        try:
            model = timm.create_model(name, pretrained=False, img_size=size)
        except TypeError:
            model = None  # a convolutional network takes any size
    try:
        model = model or timm.create_model(name, pretrained=False)
    except Exception as error:
        raise Refusal("worker.build-failed", name=name, reason=first_line(error)) from error
    pixels = size or default
    head = model.get_classifier() if hasattr(model, "get_classifier") else None
    facts = {"stack": "timm", "family": name, "image_size": pixels}
    head = head if isinstance(head, nn.Module) else None
    return Subject(model, images("x", 3, pixels), step.token_loss, facts, head)
