"""Builds the model that a spec names, without data, and the batches that it takes."""

from typing import Any

import builtin
import detection
import diffusion
import exported
import factory
import huggingface
import torch
import vision
from refusal import Refusal
from subject import Subject

BUILDERS = {
    "hf": huggingface.build,
    "timm": vision.build,
    "torchvision": detection.build,
    "diffusers": diffusion.build,
    "builtin": builtin.build,
    "python": factory.build,
    "pt2": exported.build,
}


def build(spec: dict[str, Any]) -> Subject:
    """Return the model on ``meta``, in fp32, and what belongs to it.

    Raises:
        Refusal: the source cannot be used; says why.
    """
    source, name = next(iter(spec["model"].items()))
    if source not in BUILDERS:
        raise Refusal("worker.unknown-source", source=source)
    with torch.device("meta"):
        subject = BUILDERS[source](name, spec)
    if source not in ("python", "pt2"):  # they say themselves what is frozen
        subject.model.requires_grad_(True)
    for parameter in subject.fixed:
        parameter.requires_grad_(False)
    return subject
