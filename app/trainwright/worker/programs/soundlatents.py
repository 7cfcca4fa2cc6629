"""What a denoiser of sound in diffusers is fed: latents along time, whose number is the sequence.

A parameter of forward whose name is known has a form, which the configuration sizes.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import known
import torch
from pipelines import Usual

WORDS = 128
"""Tokens of a text: those of Stable Audio Open's tokenizer; assumed for the others."""
CHANNELS = ("audio_acoustic_hidden_dim", "latent_dim", "io_channels", "in_channels")
STEPS_FIRST = ("audio_acoustic_hidden_dim", "latent_dim")
"""Keys of the channels, and of those classes whose channels come after the steps."""
TEXT = ("condition_dim", "cross_attention_input_dim", "dit_text_dim", "cond_token_dim",
        "encoder_hidden_size", "hidden_size")  # fmt: skip
"""Keys of a text's width, of ``MiniMaxMusic3Transformer1DModel`` whose text has as many steps."""


@dataclass(frozen=True)
class Sound:
    """A micro-batch of sounds that is to be fed."""

    config: Any
    batch: int
    length: int
    """Steps."""

    def size(self, *keys: str) -> int:
        """Return the first of the keys that the configuration gives as a whole number, or 0."""
        return next((v for key in keys if type(v := self.config.get(key)) is int), 0)

    def latents(self, channels: int = 0) -> torch.Tensor:
        """Return what is denoised, or as many other channels beside it."""
        shape = (channels or self.size(*CHANNELS), self.length)
        first = any(key in self.config for key in STEPS_FIRST)
        return torch.zeros((self.batch, *(reversed(shape) if first else shape)))

    @property
    def words(self) -> int:
        """Tokens of a sample's text."""
        return self.length if "condition_dim" in self.config else WORDS


def is_sound(name: str) -> bool:
    """Return whether a class denoises sounds; ``plan/model.py`` has the same."""
    return "1D" in name or "Audio" in name


def _whole(sound: Sound) -> torch.Tensor:
    """Return one vector of the length of the sound, that Stable Audio puts before the steps."""
    if width := sound.size("global_states_input_dim"):
        return torch.zeros((sound.batch, 1, width))
    return torch.zeros((sound.batch, sound.size("global_cond_dim")))


def _context(sound: Sound) -> torch.Tensor:
    """Return ACE-Step's source and mask, which fill the channels up."""
    return sound.latents(sound.size("in_channels") - sound.size(*CHANNELS))


def _turned(sound: Sound) -> list[torch.Tensor]:
    """Return the cosine and sine of each step and of the vector before them."""
    width = sound.size("attention_head_dim") // 2
    return [torch.zeros((sound.length + 1, width)) for _ in range(2)]


FEEDS: dict[str, Callable[[Sound], Any]] = {
    "hidden_states": Sound.latents,
    "sample": Sound.latents,
    "timestep": lambda sound: torch.zeros((sound.batch,)),
    "timestep_r": lambda sound: torch.zeros((sound.batch,)),
    "encoder_hidden_states": lambda sound: torch.zeros(
        (sound.batch, sound.words, sound.size(*TEXT))
    ),
    "encoder_attention_mask": lambda sound: known.whole([[True] * sound.words] * sound.batch),
    "global_hidden_states": _whole,
    "context_latents": _context,
    "latent_cond": Sound.latents,
    "local_add_cond": lambda sound: sound.latents(sound.size("local_add_cond_dim")),
    "rotary_embedding": _turned,
}
"""Parameter of forward -> what it is given; an optional one where the pipeline gives it."""
ALWAYS = ("timestep",)
"""What Stable Audio's forward calls optional and cannot do without."""


def feed(model: Any, usual: Usual, sound: Sound) -> dict[str, Any]:
    """Return the arguments of forward."""
    taken = inspect.signature(model.forward).parameters.values()
    given = [each for each in taken if each.name in FEEDS]
    given = [e for e in given if e.default is e.empty or e.name in ALWAYS or usual.gives(e.name)]
    return {each.name: FEEDS[each.name](sound) for each in given}
