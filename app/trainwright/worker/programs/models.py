"""Builds the model that a spec names, without data, and the batches that it takes."""

from pathlib import Path
from typing import Any

import huggingface
import nets
import step
import torch
from config import read_config
from refusal import Refusal
from subject import Subject, first_line, images, package
from torch import nn


def build(spec: dict[str, Any]) -> Subject:
    """Return the model on ``meta``, in fp32, and what belongs to it.

    Raises:
        Refusal: the source cannot be used; says why.
    """
    source, name = next(iter(spec["model"].items()))
    builders = {
        "hf": huggingface.build,
        "timm": _timm,
        "diffusers": _diffusers,
        "builtin": _builtin,
    }
    if source not in builders:
        raise Refusal("worker.unknown-source", source=source)
    with torch.device("meta"):
        subject = builders[source](name, spec)
    subject.model.requires_grad_(True)
    return subject


def _timm(name: str, spec: dict[str, Any]) -> Subject:
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


TEXT_TOKENS = 77
"""Length of CLIP's text context, which the diffusion models here are given."""


def _diffusers(path: str, spec: dict[str, Any]) -> Subject:
    fields = read_config(Path(path))
    diffusers = package("diffusers", "diffusers")
    name = str(fields.get("_class_name", "UNet2DConditionModel"))
    if name != "UNet2DConditionModel":
        raise Refusal("worker.architecture-unknown", architecture=name)
    try:
        model = diffusers.UNet2DConditionModel.from_config(fields)
    except Exception as error:
        raise Refusal("worker.config-invalid", file=path, reason=first_line(error)) from error
    if spec["kernel"] == "eager":
        from diffusers.models.attention_processor import AttnProcessor

        model.set_attn_processor(AttnProcessor())
    config = model.config
    side = (spec["image_size"] or config.sample_size * 8) // 8
    pooled = int(config.projection_class_embeddings_input_dim or 0)
    times = int(config.addition_time_embed_dim or 0)

    def batch(size: int, length: int) -> step.Batch:
        latents = (size, config.in_channels, side, side)
        inputs: dict[str, Any] = {
            "sample": torch.zeros(latents),
            "timestep": torch.zeros((size,), dtype=torch.int64),
            "encoder_hidden_states": torch.zeros((size, TEXT_TOKENS, config.cross_attention_dim)),
        }
        if config.addition_embed_type == "text_time":
            inputs["added_cond_kwargs"] = {
                "text_embeds": torch.zeros((size, pooled - 6 * times)),
                "time_ids": torch.zeros((size, 6)),
            }
        return step.Batch(inputs, torch.zeros(latents))

    facts = {"stack": "diffusers", "family": name, "image_size": side * 8}
    return Subject(model, batch, step.noise_loss, facts)


def _builtin(name: str, spec: dict[str, Any]) -> Subject:
    if name == "unet":
        pixels = spec["image_size"] or 256

        def pictures(size: int, length: int) -> step.Batch:
            images = torch.zeros((size, 3, pixels, pixels))
            masks = torch.zeros((size, pixels, pixels), dtype=torch.int64)
            return step.Batch({"x": images}, masks)

        facts = {"stack": "plain", "family": "unet", "image_size": pixels}
        return Subject(nets.UNet(), pictures, step.token_loss, facts)
    if name == "nature-cnn-ppo":

        def rollout(size: int, length: int) -> step.Batch:
            names = ("log_probabilities", "advantages", "returns")
            labels = {"actions": torch.zeros((size,), dtype=torch.int64)}
            labels |= {key: torch.zeros((size,)) for key in names}
            frames = torch.zeros((size, 4, 84, 84), dtype=torch.uint8)
            return step.Batch({"x": frames}, labels)

        facts = {"stack": "plain", "family": "nature-cnn", "image_size": 84}
        return Subject(nets.NatureActorCritic(), rollout, nets.ppo_loss, facts)
    raise Refusal("worker.builtin-unknown", name=name)
