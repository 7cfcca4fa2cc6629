"""What the pipeline of a denoiser takes for granted, read from its source, which is not run."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLIP_TOKENS = 77
"""Context of CLIP, the text encoder of pipelines that name no length."""
PIXELS = {"UNet2DConditionModel": 8, "UVit2DModel": 16, "BriaTransformer2DModel": 8}
"""Pixels a latent: of a class that pipelines with and without latents share (the VAE of Stable
Diffusion), and of two whose pipelines count otherwise: aMUSEd's VQ-GAN, and Bria's packed ones."""

_LENGTHS = tuple(
    re.compile(rf"{key}(?:: int)? ?= ?(\d+)")
    for key in ("max_sequence_length", "tokenizer_max_length", "max_length")
)
_SECOND = re.compile(r"tokenizer_2_max_length = (\d+)")
_SCALE = re.compile(
    r"self\.(vae_\w*(?:scale|compression)\w*) ?= ?(?:[^=]{0,200}?\belse )?(\d+)\s*[\n)]"
)
_DECODES = re.compile("vae|movq")
_BOTH = "[clip_prompt_embeds, t5_prompt_embed]"
"""How the pipeline of Stable Diffusion 3 puts two encoders' texts behind each other."""


@dataclass(frozen=True)
class Usual:
    """What a pipeline takes where nothing else is asked for."""

    text: int = CLIP_TOKENS
    """Tokens."""
    pixels: int = 8
    """Of a latent's side, 1 where pixels themselves are denoised."""
    frames: int = 1
    """For each latent frame after the first."""
    packing: int = 2
    """Latents a side of a token, where the pipeline and not the model makes tokens of latents: two
    of those that stand for 8 pixels, one of those that stand for more."""
    second: int = 256
    """Tokens of a second text encoder; HunyuanVideo 1.5's where the source says nothing."""
    source: str = ""

    def gives(self, name: str) -> bool:
        """Return whether the pipeline gives a parameter of forward by its name."""
        return f"{name}=" in self.source


def usual(diffusers: Any, name: str) -> Usual:
    """Return what the pipeline that denoises with a class takes for granted."""
    source = _source(Path(diffusers.__file__).parent, name)
    lengths = next((got for each in _LENGTHS if (got := each.findall(source))), [])
    named = bool(_LENGTHS[0].search(source))
    scales = _SCALE.findall(source)
    spatial = [int(number) for key, number in scales if "temporal" not in key]
    temporal = [int(number) for key, number in scales if "temporal" in key]
    pixels = spatial[0] if spatial else 8 if _DECODES.search(source) or not source else 1
    second = _SECOND.search(source)
    return Usual(
        text=int(lengths[-named] if lengths else CLIP_TOKENS) + CLIP_TOKENS * (_BOTH in source),
        pixels=PIXELS.get(name, pixels),
        frames=temporal[0] if temporal else 1,
        packing=2 if PIXELS.get(name, pixels) == 8 else 1,
        second=int(second[1]) if second else Usual.second,
        source=source,
    )


def _source(root: Path, name: str) -> str:
    """Return the source of the plainest pipeline that names a class; empty where none does.

    The plainest has the shortest file name: variants of it only add words.
    """
    whole = re.compile(rf"\b{name}\b")
    for folder in ("pipelines", "modular_pipelines"):
        for file in sorted((root / folder).rglob("*.py"), key=lambda each: (len(each.name), each)):
            if "pipeline" in file.name or folder == "modular_pipelines":
                text = file.read_text(encoding="utf-8")
                if name in text and whole.search(text) and file.name != "__init__.py":
                    return text
    return ""
