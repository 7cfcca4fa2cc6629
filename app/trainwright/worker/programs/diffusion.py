"""Denoisers of diffusers from their ``config.json``.

What is trained is the denoiser. The inputs are latents and text embeddings: where they are not
computed ahead, the VAE and the text encoders are on the GPU too, frozen, and come on top.
"""

import contextlib
import inspect
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import blame
import latents
import pipelines
import soundlatents
import step
import torch
import torch.nn.functional as F  # noqa: N812
from config import check_config, read_config
from latents import Canvas, Scene
from refusal import Refusal
from subject import Subject, check_multiple, first_line, package

KINDS = ("diffusers.models.transformers.", "diffusers.models.unets.")
"""Modules of denoisers; VAEs, text encoders and ControlNets live elsewhere."""


def build(path: str, spec: dict[str, Any]) -> Subject:
    """Return the denoiser of a ``config.json``.

    Raises:
        Refusal: the file is broken, its class does not denoise or takes what is not known here, or
            it does not take images of that size or videos of that length.
    """
    fields = read_config(Path(path))
    diffusers = package("diffusers", "diffusers")
    name = str(fields.get("_class_name", "UNet2DConditionModel"))
    kind: Any = getattr(diffusers, name, None)
    if not _denoises(kind):
        raise Refusal("worker.denoiser-unknown", architecture=name)
    check_config(fields, path)
    try:
        model = kind.from_config(fields)
    except MemoryError:
        raise
    except Exception as error:
        found = blame.of_key(error, fields, path, None, kind.from_config)
        raise found or blame.of_values(error, path) from error
    feeds = soundlatents if soundlatents.is_sound(name) else latents
    if lacks := _lacking(model, feeds.FEEDS):
        raise Refusal("worker.class-wants", name=name, inputs=", ".join(lacks))
    if spec["kernel"] == "eager":
        _be_eager(model, name)
    usual = pipelines.usual(diffusers, name)
    if feeds is soundlatents:
        return _of_sound(model, name, usual)
    return _subject(model, name, usual, spec)


def _lacking(model: Any, feeds: Collection[str]) -> list[str]:
    """Return the parameters that forward needs and nobody here knows how to feed."""
    taken = inspect.signature(model.forward).parameters.values()
    return [each.name for each in taken if each.default is each.empty and each.name not in feeds]


@contextlib.contextmanager
def blaming(spec: dict[str, Any]) -> Iterator[None]:
    """Turn what goes wrong while a denoiser runs into a line about its class.

    Raises:
        Refusal: in place of any exception of the class itself.
    """
    try:
        yield
    except (Refusal, MemoryError):
        raise
    except Exception as error:
        if (path := spec["model"].get("diffusers")) is None:
            raise
        raise Refusal("worker.class-fails", file=path, reason=first_line(error)) from error


def _denoises(kind: Any) -> bool:
    """Return whether a class denoises: its forward takes a time step, or codes."""
    if not inspect.isclass(kind) or not kind.__module__.startswith(KINDS):
        return False
    taken = inspect.signature(kind.forward).parameters  # type: ignore[attr-defined]
    return any(name == "t" or name.startswith(("timestep", "micro_conds")) for name in taken)


def _subject(model: Any, name: str, usual: pipelines.Usual, spec: dict[str, Any]) -> Subject:
    config = model.config
    channels = int(next((config[key] for key in latents.CHANNELS if key in config), 0))
    layout = latents.layout(model, channels)
    pixels = spec["image_size"] or _usual_pixels(config, usual)
    canvas = _canvas(config, usual, layout, pixels, spec.get("frames", 0))
    out = channels if layout == latents.TOKENS else _predicted(config, channels)

    def batch(size: int, length: int) -> step.Batch:
        scene = Scene(config, usual, layout, canvas, size)
        inputs = latents.feed(model, scene)
        codes = inputs.get("input_ids")
        return step.Batch(inputs, scene.latents(out) if codes is None else torch.zeros_like(codes))

    coded = "input_ids" in inspect.signature(model.forward).parameters
    facts = {"stack": "diffusers", "family": name, "image_size": pixels}
    return Subject(model, batch, code_loss if coded else denoised_loss, facts, counts=not coded)


def _of_sound(model: Any, name: str, usual: pipelines.Usual) -> Subject:
    """Return a denoiser of sounds: a sequence is the steps of its latents."""

    def batch(size: int, length: int) -> step.Batch:
        sound = soundlatents.Sound(model.config, size, length)
        return step.Batch(soundlatents.feed(model, usual, sound), sound.latents())

    facts = {"stack": "diffusers", "family": name}
    assumed = {"profile.assumed.sound": soundlatents.WORDS}
    return Subject(model, batch, denoised_loss, facts, counts=True, assumed=assumed)


def _predicted(config: Any, channels: int) -> int:
    """Return the channels of the noise, which leave out a learned variance.

    That doubles the channels (``train_text_to_image.py`` of diffusers and PixArt's own script).
    """
    out = next((config[k] for k in ("out_channels", "out_visual_dim") if config.get(k)), channels)
    return channels if out == 2 * channels else int(out)


def _be_eager(model: Any, name: str) -> None:
    """Let attention keep its scores; the joint attention of newer models cannot."""
    from diffusers.models.attention_processor import AttnProcessor

    if name not in ("UNet2DConditionModel", "UVit2DModel"):
        raise Refusal("worker.no-eager", architecture=name)
    model.set_attn_processor(AttnProcessor())


# Sizes


def _usual_pixels(config: Any, usual: pipelines.Usual) -> int:
    """Return the height that the model was trained at."""
    side = config.get("sample_height") or config.get("sample_size") or 1024 // usual.pixels
    return int(side) * usual.pixels


def _canvas(config: Any, usual: pipelines.Usual, layout: str, pixels: int, frames: int) -> Canvas:
    """Return the latents of an image of that height, square, or of the config's proportions.

    Raises:
        Refusal: the size is not whole in latents or patches, or beyond the position table.
    """
    patch = latents.packing(config, usual) if layout == latents.TOKENS else latents.patch(config)
    unit = usual.pixels * patch
    check_multiple(pixels, unit)
    side = pixels // usual.pixels
    largest = config.get("pos_embed_max_size")
    if largest and side > largest * patch:
        raise Refusal("worker.image-too-large", size=pixels, largest=largest * unit)
    wide = side
    if config.get("sample_width") and config.get("sample_height"):
        wide = round(side * config.sample_width / config.sample_height / patch) * patch
    return Canvas(side, wide, _latent_frames(config, usual, frames))


def _latent_frames(config: Any, usual: pipelines.Usual, frames: int) -> int:
    """Return the frames in latents: the first alone, then one for each few.

    Raises:
        Refusal: frames are left over.
    """
    ratio = config.get("temporal_compression_ratio") or usual.frames
    own = config.get("sample_frames") if "temporal_compression_ratio" in config else 0
    frames = frames or own or 1
    if (frames - 1) % ratio:
        below = (frames - 1) // ratio * ratio + 1
        near = f"{below}, {below + ratio}"
        raise Refusal("worker.frames", frames=frames, ratio=ratio, near=near)
    return int((frames - 1) // ratio + 1)


# Losses


def denoised_loss(output: Any, noise: torch.Tensor, count: float) -> torch.Tensor:
    """Squared error of predicted noise, in fp32, without a variance that comes behind it."""
    found = step.scores(output)
    if isinstance(found, list):  # Z-Image's samples
        found = torch.stack(found).view(noise.shape)
    if found.shape != noise.shape:
        found = found.chunk(2, dim=1)[0]
    return step.noise_loss(found, noise, count)


def code_loss(output: Any, codes: torch.Tensor, count: float) -> torch.Tensor:
    """Cross-entropy of each masked code, whose scores lie along the second dimension."""
    scores = step.scores(output).flatten(2)
    summed = F.cross_entropy(scores, codes.flatten(1), ignore_index=step.IGNORED, reduction="sum")
    return summed / count
