"""Images within the text of language models: as many tokens as the library's processor writes.

``image_size`` is the side of a square image before the processor, which rounds it to whole
patches (Qwen), scales it to one size (Gemma, LLaVA) or cuts it into tiles (Llama 4, InternVL).
"""

import inspect
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import known
import step
import torch
from refusal import Refusal
from subject import Subject

GRIDS = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe")
"""Model types whose images become a grid of patches, by ``smart_resize`` of Qwen2-VL."""
SCALED = ("gemma3", "llava", "paligemma")
"""Model types whose images are all scaled to the size of the configuration."""
TILES = 16
"""Most tiles of an image: ``max_patches`` of Llama 4's processor."""
PIECES = 12
"""The same of InternVL's: ``max_patches`` of ``GotOcr2ImageProcessor``."""
USUAL = 448
"""Pixels a side where the plan and the configuration give none; assumed."""
PIXELS = 56 * 56, 28 * 28 * 1280
"""Fewest and most pixels of an image: the defaults of ``Qwen2VLImageProcessor``; what lies
beside the configuration in ``preprocessor_config.json`` comes first."""


@dataclass(frozen=True)
class Seen:
    """What images become."""

    tokens: int
    """Of the text, for each image."""
    inputs: Callable[[int], step.Tensors]
    """Number of images -> arguments of forward."""


def added(subject: Subject, spec: dict[str, Any], path: str) -> Subject:
    """Return the subject with as many images in each sample as the spec says.

    Raises:
        Refusal: how its processor cuts images is not known here, or they do not fit in the text.
    """
    model, config, count = subject.model, subject.config, int(spec["images"])
    seen = _seen(model, config, spec["image_size"], path)
    token = next(int(v) for n in _TOKENS if (v := getattr(config, n, None)) is not None)
    taken = inspect.signature(model.forward).parameters
    types = [name for name in ("mm_token_type_ids", "token_type_ids") if name in taken]
    text = int(token == 0)
    words, least = subject.batch, count * (seen.tokens + 2)

    def batch(size: int, length: int) -> step.Batch:
        if length < least:
            values = {"asked": length, "images": count, "each": seen.tokens, "least": least}
            raise Refusal("worker.images-beyond-text", **values)
        marks = ([0] + [1] * seen.tokens + [0]) * count + [0] * (length - least)
        ids = known.whole([[token if mark else text for mark in marks]] * size)
        inputs = {"input_ids": ids, **seen.inputs(size * count)}
        for name in types:
            inputs[name] = known.whole([marks] * size)
        return step.Batch(inputs, words(size, length).labels)

    assumed = {key: n for key, n in subject.assumed.items() if key != "profile.assumed.text-alone"}
    assumed |= {"profile.assumed.image-tokens": seen.tokens}
    return replace(subject, batch=batch, counts=True, assumed=assumed)


_TOKENS = ("image_token_id", "image_token_index")


def _seen(model: Any, config: Any, pixels: int, path: str) -> Seen:
    vision = getattr(config, "vision_config", None)
    size = getattr(vision, "image_size", 0)
    size = size[0] if isinstance(size, (list, tuple)) and size else size
    size = size if isinstance(size, int) else 0
    pixels = pixels or size or USUAL
    if config.model_type in GRIDS:
        return _grid(vision, pixels, path)
    if config.model_type == "llama4":
        return _scaled(model, vision, size, _tiles(pixels, size))
    if config.model_type == "internvl":
        return _scaled(model, vision, size, _pieces(pixels, size))
    if config.model_type in SCALED:
        return _scaled(model, vision, size, 1)
    raise Refusal("worker.images-unknown", name=type(model).__name__)


def _grid(vision: Any, pixels: int, path: str) -> Seen:
    """Return the patches of images, and as many tokens as patches are merged into."""
    side = resized(pixels, vision.patch_size * vision.spatial_merge_size, *_limits(path))
    patches = side // vision.patch_size
    channels = getattr(vision, "in_channels", 3)
    width = channels * vision.temporal_patch_size * vision.patch_size**2

    def inputs(images: int) -> step.Tensors:
        return {
            "pixel_values": torch.zeros((images * patches**2, width)),
            "image_grid_thw": known.whole([[1, patches, patches]] * images),
        }

    return Seen(patches**2 // vision.spatial_merge_size**2, inputs)


def resized(pixels: int, unit: int, least: int, most: int) -> int:
    """Return the side that ``smart_resize`` gives a square image: whole units, within limits."""
    side = round(pixels / unit) * unit
    if side * side > most:
        return max(unit, math.floor(math.sqrt(most) / unit) * unit)
    return math.ceil(math.sqrt(least) / unit) * unit if side * side < least else side


def _limits(path: str) -> tuple[int, int]:
    """Return the fewest and most pixels that a processor's own file gives, or the usual ones."""
    file = Path(path)
    file = (file if file.is_dir() else file.parent) / "preprocessor_config.json"
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
        size = given.get("size") or {}
        found = (
            size.get("shortest_edge", given.get("min_pixels", PIXELS[0])),
            size.get("longest_edge", given.get("max_pixels", PIXELS[1])),
        )
    except (OSError, ValueError, AttributeError, RecursionError):
        return PIXELS
    fits = all(isinstance(each, int) and 0 < each < 2**31 for each in found)
    return found if fits else PIXELS


def _tiles(pixels: int, side: int) -> int:
    """Return the tiles of a square image, with the whole of it beside several.

    The processor takes the smallest canvas into which the image need not be scaled down.
    """
    across = min(-(-pixels // side), math.isqrt(TILES))
    return across**2 + (across > 1)


def _pieces(pixels: int, side: int) -> int:
    """Return the pieces of a square image, with the whole of it beside several.

    Of the grids of its shape, the processor takes the finest that it fills by more than half.
    """
    grids = range(2, math.isqrt(PIECES) + 1)
    across = max([1, *(n for n in grids if 2 * pixels**2 > (n * side) ** 2)])
    return across**2 + (across > 1)


def _scaled(model: Any, vision: Any, side: int, tiles: int) -> Seen:
    """Return images of the size of the configuration; the model itself tells their tokens."""
    shape = (getattr(vision, "num_channels", 3), side, side)
    with torch.no_grad():
        found = model.get_image_features(pixel_values=torch.zeros((1, *shape), device="meta"))
    features = found.pooler_output if found.pooler_output is not None else found[0]
    return Seen(
        tiles * sum(each.numel() // each.size(-1) for each in features),
        lambda images: {"pixel_values": torch.zeros((images * tiles, *shape))},
    )
