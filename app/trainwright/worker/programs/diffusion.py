"""Denoisers of diffusers from their ``config.json``.

What is trained is the denoiser. The inputs are latents and text embeddings: where they are not
computed ahead, the VAE and the text encoders are on the GPU too, frozen, and come on top.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import blame
import step
import torch
import torch.nn.functional as F  # noqa: N812
from config import check_config, read_config
from refusal import Refusal
from subject import Subject, check_multiple, package

CLIP_TOKENS, T5_TOKENS, SD3_TOKENS, AURA_TOKENS, GLM_TOKENS = 77, 512, 77 + 256, 256, 1024
"""Text that a sample carries: CLIP's context; the default ``max_sequence_length`` of diffusers'
FluxPipeline and Flux2Pipeline, that of StableDiffusion3Pipeline beside CLIP's, AuraFlowPipeline's
and CogView4Pipeline's."""

VAE_FACTOR, VQ_FACTOR = 8, 16
"""Pixels a latent stands for: VAEs of SD, SDXL, SD 3, FLUX and CogVideoX; VQ-GAN of aMUSEd."""

Sample = tuple[dict[str, Any], torch.Tensor]


@dataclass(frozen=True)
class Canvas:
    """Size of what is denoised."""

    height: int
    width: int
    """In latents."""
    frames: int = 1
    """In latents; 1 for images."""


@dataclass(frozen=True)
class Denoiser:
    """How denoisers of one class are fed."""

    inputs: Callable[[Any, Canvas, int], Sample]
    """(config, canvas, batch) -> arguments of forward, and what they are compared with."""
    factor: int = VAE_FACTOR
    """Pixels a latent."""
    patch: int = 1
    """Latents a side of what becomes one token; a size is a multiple of both."""
    loss: step.Loss = step.noise_loss


def build(path: str, spec: dict[str, Any]) -> Subject:
    """Return the denoiser of a ``config.json``.

    Raises:
        Refusal: the file is broken, of a class that is not known here, or does not take
            images of that size or videos of that length.
    """
    fields = read_config(Path(path))
    diffusers = package("diffusers", "diffusers")
    name = str(fields.get("_class_name", "UNet2DConditionModel"))
    if name not in DENOISERS:
        raise Refusal("worker.denoiser-unknown", architecture=name, known=", ".join(DENOISERS))
    check_config(fields, path)
    made = getattr(diffusers, name).from_config
    try:
        model = made(fields)
    except MemoryError:
        raise
    except Exception as error:
        found = blame.of_key(error, fields, path, None, made)
        raise found or blame.of_values(error, path) from error
    if spec["kernel"] == "eager":
        _be_eager(model, name)
    kind, config = DENOISERS[name], model.config
    pixels = spec["image_size"] or _usual_pixels(config, kind)
    canvas = _canvas(config, kind, pixels, spec.get("frames", 0))

    def batch(size: int, length: int) -> step.Batch:
        return step.Batch(*kind.inputs(config, canvas, size))

    facts = {"stack": "diffusers", "family": name, "image_size": pixels}
    return Subject(model, batch, kind.loss, facts)


def _be_eager(model: Any, name: str) -> None:
    """Let attention keep its scores; the joint attention of newer models cannot."""
    from diffusers.models.attention_processor import AttnProcessor

    if name not in ("UNet2DConditionModel", "UVit2DModel"):
        raise Refusal("worker.no-eager", architecture=name)
    model.set_attn_processor(AttnProcessor())


# Sizes


def _usual_pixels(config: Any, kind: Denoiser) -> int:
    """Return the height that the model was trained at."""
    side = config.get("sample_height") or config.get("sample_size") or 1024 // kind.factor
    return int(side) * kind.factor


def _canvas(config: Any, kind: Denoiser, pixels: int, frames: int) -> Canvas:
    """Return the latents of an image of that height, square, or of the config's proportions.

    Raises:
        Refusal: the size is not whole in latents or patches, or beyond the position table.
    """
    unit = kind.factor * kind.patch
    check_multiple(pixels, unit)
    side = pixels // kind.factor
    largest = config.get("pos_embed_max_size")
    if largest and side > largest * kind.patch:
        largest = largest * unit
        raise Refusal("worker.image-too-large", size=pixels, largest=largest)
    if "sample_frames" not in config:
        return Canvas(side, side)
    wide = round(side * config.sample_width / config.sample_height / kind.patch) * kind.patch
    return Canvas(side, wide, _latent_frames(config, frames))


def _latent_frames(config: Any, frames: int) -> int:
    """Return the frames in latents: the first alone, then one for each few.

    Raises:
        Refusal: frames are left over.
    """
    ratio = config.temporal_compression_ratio
    frames = frames or config.sample_frames
    if (frames - 1) % ratio:
        below = (frames - 1) // ratio * ratio + 1
        near = f"{below}, {below + ratio}"
        raise Refusal("worker.frames", frames=frames, ratio=ratio, near=near)
    return int((frames - 1) // ratio + 1)


# Inputs


def _unet(config: Any, canvas: Canvas, batch: int) -> Sample:
    latents = (batch, config.in_channels, canvas.height, canvas.width)
    inputs: dict[str, Any] = {
        "sample": torch.zeros(latents),
        "timestep": torch.zeros((batch,), dtype=torch.int64),
        "encoder_hidden_states": torch.zeros((batch, CLIP_TOKENS, config.cross_attention_dim)),
    }
    if config.addition_embed_type == "text_time":
        times = int(config.addition_time_embed_dim or 0)
        pooled = int(config.projection_class_embeddings_input_dim or 0)
        inputs["added_cond_kwargs"] = {
            "text_embeds": torch.zeros((batch, pooled - 6 * times)),
            "time_ids": torch.zeros((batch, 6)),
        }
    return inputs, torch.zeros(latents)


def _uvit(config: Any, canvas: Canvas, batch: int) -> Sample:
    """Codes of the VQ-GAN, some masked; five numbers tell size, crop and taste."""
    codes = torch.zeros((batch, canvas.height, canvas.width), dtype=torch.int64)
    width = config.encoder_hidden_size
    inputs = {
        "input_ids": codes,
        "encoder_hidden_states": torch.zeros((batch, CLIP_TOKENS, width)),
        "pooled_text_emb": torch.zeros((batch, config.cond_embed_dim)),
        "micro_conds": torch.zeros((batch, 5)),
    }
    return inputs, torch.zeros_like(codes)


def _flux(config: Any, canvas: Canvas, batch: int) -> Sample:
    """Latents packed two by two into tokens; positions have three coordinates."""
    tokens = canvas.height // 2 * (canvas.width // 2)
    packed = (batch, tokens, config.in_channels)
    inputs = {
        "hidden_states": torch.zeros(packed),
        "encoder_hidden_states": torch.zeros((batch, T5_TOKENS, config.joint_attention_dim)),
        "pooled_projections": torch.zeros((batch, config.pooled_projection_dim)),
        "timestep": torch.zeros((batch,)),
        "img_ids": torch.zeros((tokens, 3)),
        "txt_ids": torch.zeros((T5_TOKENS, 3)),
    }
    if config.guidance_embeds:
        inputs["guidance"] = torch.zeros((batch,))
    return inputs, torch.zeros(packed)


def _flux2(config: Any, canvas: Canvas, batch: int) -> Sample:
    """Latents packed as FLUX's; positions have four coordinates, of each sample."""
    tokens = canvas.height // 2 * (canvas.width // 2)
    packed = (batch, tokens, config.in_channels)
    inputs = {
        "hidden_states": torch.zeros(packed),
        "encoder_hidden_states": torch.zeros((batch, T5_TOKENS, config.joint_attention_dim)),
        "timestep": torch.zeros((batch,)),
        "img_ids": torch.zeros((batch, tokens, 4)),
        "txt_ids": torch.zeros((batch, T5_TOKENS, 4)),
    }
    if config.guidance_embeds:
        inputs["guidance"] = torch.zeros((batch,))
    return inputs, torch.zeros(packed)


def _aura(config: Any, canvas: Canvas, batch: int) -> Sample:
    latents = (batch, config.in_channels, canvas.height, canvas.width)
    inputs = {
        "hidden_states": torch.zeros(latents),
        "encoder_hidden_states": torch.zeros((batch, AURA_TOKENS, config.joint_attention_dim)),
        "timestep": torch.zeros((batch,)),
    }
    return inputs, torch.zeros(latents)


def _cogview(config: Any, canvas: Canvas, batch: int) -> Sample:
    """Six numbers a sample tell its size before and after, and where it was cropped."""
    latents = (batch, config.in_channels, canvas.height, canvas.width)
    inputs = {
        "hidden_states": torch.zeros(latents),
        "encoder_hidden_states": torch.zeros((batch, GLM_TOKENS, config.text_embed_dim)),
        "timestep": torch.zeros((batch,), dtype=torch.int64),
        **{name: torch.zeros((batch, 2)) for name in ("original_size", "target_size")},
        "crop_coords": torch.zeros((batch, 2)),
    }
    return inputs, torch.zeros(latents)


def _sd3(config: Any, canvas: Canvas, batch: int) -> Sample:
    latents = (batch, config.in_channels, canvas.height, canvas.width)
    inputs = {
        "hidden_states": torch.zeros(latents),
        "encoder_hidden_states": torch.zeros((batch, SD3_TOKENS, config.joint_attention_dim)),
        "pooled_projections": torch.zeros((batch, config.pooled_projection_dim)),
        "timestep": torch.zeros((batch,)),
    }
    return inputs, torch.zeros(latents)


def _video(config: Any, canvas: Canvas, batch: int) -> Sample:
    latents = (batch, canvas.frames, config.in_channels, canvas.height, canvas.width)
    text = (batch, config.max_text_seq_length, config.text_embed_dim)
    inputs = {
        "hidden_states": torch.zeros(latents),
        "encoder_hidden_states": torch.zeros(text),
        "timestep": torch.zeros((batch,), dtype=torch.int64),
    }
    return inputs, torch.zeros(latents)


def code_loss(output: Any, codes: torch.Tensor, count: float) -> torch.Tensor:
    """Cross-entropy of each masked code, whose scores lie along the second dimension."""
    scores = step.scores(output).flatten(2)
    summed = F.cross_entropy(scores, codes.flatten(1), ignore_index=step.IGNORED, reduction="sum")
    return summed / count


DENOISERS = {
    "UNet2DConditionModel": Denoiser(_unet),
    "UVit2DModel": Denoiser(_uvit, factor=VQ_FACTOR, loss=code_loss),
    "FluxTransformer2DModel": Denoiser(_flux, patch=2),
    "Flux2Transformer2DModel": Denoiser(_flux2, patch=2),
    "SD3Transformer2DModel": Denoiser(_sd3, patch=2),
    "AuraFlowTransformer2DModel": Denoiser(_aura, patch=2),
    "CogView4Transformer2DModel": Denoiser(_cogview, patch=2),
    "CogVideoXTransformer3DModel": Denoiser(_video, patch=2),
}
"""Classes of diffusers that are known here."""
