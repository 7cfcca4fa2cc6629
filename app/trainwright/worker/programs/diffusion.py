"""Denoisers of diffusers from their ``config.json``."""

from pathlib import Path
from typing import Any

import step
import torch
from config import read_config
from refusal import Refusal
from subject import Subject, first_line, package

TEXT_TOKENS = 77
"""Length of CLIP's text context, which the diffusion models here are given."""


def build(path: str, spec: dict[str, Any]) -> Subject:
    """Return the denoiser of a ``config.json``.

    Raises:
        Refusal: the file is broken, or of a class that is not known here.
    """
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
