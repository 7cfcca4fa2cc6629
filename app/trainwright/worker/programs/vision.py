"""Models of timm by name."""

import contextlib
from collections.abc import Iterator
from typing import Any

import step
from refusal import Refusal
from subject import Subject, first_line, images, package
from torch import nn

CLASSES = 1000
"""Of ImageNet."""


def build(name: str, spec: dict[str, Any]) -> Subject:
    """Return the model of that name.

    Raises:
        Refusal: there is none, or it does not take that size of image.
    """
    timm = package("timm", "timm")
    if ":" in name or not timm.is_model(name):
        raise Refusal("worker.timm-unknown", name=name)
    timm.layers.set_fused_attn(spec["kernel"] != "eager")
    size, default = spec["image_size"], _usual(timm, name)
    usual = timm.get_pretrained_cfg(name)
    # Weights without a classifier are trained further with one, as ours on ImageNet.
    headless = usual is not None and not usual.num_classes
    options = {"num_classes": CLASSES} if headless else {}
    model = None
    if size and size != default:
        try:
            model = timm.create_model(name, pretrained=False, img_size=size, **options)
        except TypeError:
            model = None  # a convolutional network takes any size
    try:
        model = model or timm.create_model(name, pretrained=False, **options)
    except Exception as error:
        raise Refusal("worker.build-failed", name=name, reason=first_line(error)) from error
    pixels = size or default
    _check_patches(name, model, pixels)
    head = model.get_classifier() if hasattr(model, "get_classifier") else None
    facts = {"stack": "timm", "family": name, "image_size": pixels}
    head = head if isinstance(head, nn.Module) else None
    return Subject(model, images("x", 3, pixels), step.token_loss, facts, head)


@contextlib.contextmanager
def blaming(spec: dict[str, Any]) -> Iterator[None]:
    """Turn what goes wrong while a model of timm runs into a line about the size of its images.

    Raises:
        Refusal: in place of an exception, where the images have not the size that it was made for.
    """
    try:
        yield
    except (Refusal, MemoryError):
        raise
    except Exception as error:
        name, size = spec["model"].get("timm"), spec["image_size"]
        usual = _usual(package("timm", "timm"), name) if name and size else size
        if size == usual:
            raise
        raise Refusal("worker.image-refused", name=name, size=size, usual=usual) from error


def _usual(timm: Any, name: str) -> int:
    """Return the side of the images that a model was made for."""
    usual = timm.get_pretrained_cfg(name)
    return int(usual.input_size[-1]) if usual is not None else 224


def _check_patches(name: str, model: nn.Module, pixels: int) -> None:
    """Refuse what timm would do without a word: leave out what does not fill a patch.

    Raises:
        Refusal: the image is not a multiple of the patches.
    """
    patch = getattr(getattr(model, "patch_embed", None), "patch_size", None)
    side = patch[0] if isinstance(patch, tuple) else 1
    if pixels % side:
        near = max(side, pixels // side * side)
        raise Refusal("worker.image-patches", name=name, patch=side, size=pixels, near=near)
