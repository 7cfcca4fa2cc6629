"""What every estimate of a model takes for granted, by the type that its configuration names."""

from collections.abc import Mapping
from typing import Any

from trainwright.messages import Message

_AUDIO_STEPS = ("data2vec-audio", "hubert", "unispeech", "unispeech-sat", "wav2vec2", "wavlm")
_STATE_SPACES = ("bamba", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "mamba",
                 "mamba2", "nemotron_h", "zamba", "zamba2")  # fmt: skip
_LINEAR_ATTENTION = ("kimi_linear", "olmo_hybrid", "qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text",
                     "qwen3_5_text", "qwen3_next")  # fmt: skip
NOTES: Mapping[str, tuple[str, ...]] = {
    "deberta-v2": ("plain-attention",),
    "gemma2": ("plain-attention",),
    "gemma3_text": ("window-masks",),
    "modernbert": ("window-masks",),
    "whisper": ("audio-window",),
    **dict.fromkeys(_AUDIO_STEPS, ("audio-steps", "frozen-encoder")),
    **dict.fromkeys(_STATE_SPACES, ("plain-scan",)),
    **dict.fromkeys(_LINEAR_ATTENTION, ("plain-delta",)),
}
"""Model type -> ``preset.note.<name>``."""
NOTES_OF_DENOISERS = ("cached-latents",)


def taken_for_granted(config: Mapping[str, Any], own: tuple[str, ...] = ()) -> tuple[Message, ...]:
    """Return what every estimate of the model takes for granted; ``own`` are a preset's names."""
    known = (
        NOTES_OF_DENOISERS
        if "_class_name" in config
        else NOTES.get(str(config.get("model_type")), ())
    )
    return tuple(Message.of(f"preset.note.{name}") for name in (*known, *own))
