"""Classes of transformers whose samples are images or videos alone."""

import inspect
from typing import Any

import architectures
import step
import torch
import torch.nn.functional as F  # noqa: N812
from subject import Subject
from torch import nn


def subject(model: nn.Module, config: Any, spec: dict[str, Any], facts: dict[str, Any]) -> Subject:
    """Return a model of images with what it is fed and judged by."""
    name, taken = type(model).__name__, str(model.main_input_name)
    size = spec["image_size"] or getattr(config, "image_size", 0) or _SIDE
    pixels = int(size if isinstance(size, int) else size[0])
    frames = getattr(config, "num_frames", 0) or getattr(config, "frames_per_clip", 0)
    sample = ((frames,) if frames else ()) + (getattr(config, "num_channels", 3), pixels, pixels)
    loss, shape, dtype = _judged(model, name, pixels)
    patches = _masked_patches(model, config, pixels, frames)

    def batch(size: int, length: int) -> step.Batch:
        inputs = {taken: torch.zeros((size, *sample))}
        if patches:
            inputs["bool_masked_pos"] = torch.ones((size, patches), dtype=torch.bool)
        return step.Batch(inputs, torch.zeros((size, *shape), dtype=dtype))

    return Subject(
        model,
        batch,
        loss,
        facts | {"image_size": pixels} | ({"frames": frames} if frames else {}),
        head=getattr(model, "classifier", None),
        assumed=_assumed(model, name),
    )


_SIDE = 224
"""Pixels of an image whose configuration gives no size: ImageNet's usual crop."""


def _judged(model: nn.Module, name: str, pixels: int) -> tuple[step.Loss, tuple[int, ...], Any]:
    """Return the loss of a class, and the shape and type of a sample's label."""
    if architectures.bare(model):
        return step.embedding_loss, (), torch.int64
    if name.endswith(("ForMaskedImageModeling", architectures.OWN)):
        return step.own_loss, (), torch.int64
    if name.endswith("ForDepthEstimation"):
        return depth_loss, (pixels, pixels), torch.float32
    if not name.endswith("ForSemanticSegmentation"):
        return step.token_loss, (), torch.int64
    return step.segmentation_loss, (pixels, pixels), torch.int64


def _masked_patches(model: nn.Module, config: Any, pixels: int, frames: int) -> int:
    """Return the patches of a sample where the class is told which are masked; else 0."""
    if not type(model).__name__.endswith(("ForMaskedImageModeling", architectures.OWN)):
        return 0
    if "bool_masked_pos" not in inspect.signature(model.forward).parameters:
        return 0
    deep = frames // getattr(config, "tubelet_size", 1) if frames else 1
    return int(deep * (pixels // config.patch_size) ** 2)


def _assumed(model: nn.Module, name: str) -> dict[str, int]:
    if architectures.bare(model):
        return {"profile.assumed.embeds-images": 1}
    return {"profile.assumed.depth": 1} if name.endswith("ForDepthEstimation") else {}


def depth_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Absolute error a pixel, of depths brought to the labels' size; no class has a loss."""
    depths = output.predicted_depth[:, None]
    found = F.interpolate(depths, size=labels.shape[-2:], mode="bilinear")[:, 0]
    return F.l1_loss(found, labels, reduction="sum") / count
