"""Speech models of transformers: what they hear, and what their loss reads.

A sequence is what the model's own length is counted in: tokens of Whisper's decoder, whose
encoder always hears thirty seconds; steps of wav2vec 2.0's encoder, one for each 20 ms.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import step
import torch
import torch.nn.functional as F  # noqa: N812
from refusal import Refusal
from subject import Subject
from torch import nn

AUTO = {
    "whisper": "AutoModelForSpeechSeq2Seq",
    "wav2vec2": "AutoModelForCTC",
    "hubert": "AutoModelForCTC",
    "wavlm": "AutoModelForCTC",
    "unispeech": "AutoModelForCTC",
    "unispeech-sat": "AutoModelForCTC",
    "data2vec-audio": "AutoModelForCTC",
}
"""Model type -> the class that its training needs."""

STEPS_A_CHARACTER = 4
"""Assumed: 12.5 characters a second, at 50 steps; English read aloud has 12 to 15."""


def subject(model: nn.Module, config: Any, facts: dict[str, Any]) -> Subject | None:
    """Return a speech model with what it is fed; None where its configuration does not say."""
    name = type(model).__name__
    if name.endswith("ForConditionalGeneration"):
        return _whisper(model, config, facts)
    if name.endswith("ForCTC"):
        return _ctc(model, config, facts) if hasattr(config, "conv_stride") else None
    return _labelled(model, config, facts)


def _labelled(model: Any, config: Any, facts: dict[str, Any]) -> Subject | None:
    """A class that labels recordings, or each step of one; the convolutions stay as they are."""
    name, taken = type(model).__name__, str(model.main_input_name)
    own = name.endswith(("ForXVector", "ForAudioFrameClassification"))
    frames = name.endswith("ForAudioFrameClassification")
    recording = _recording(config)
    if recording is None:
        return None
    fixed: tuple[nn.Parameter, ...] = ()
    if hasattr(model, "freeze_feature_encoder"):
        model.freeze_feature_encoder()
        fixed = tuple(p for p in model.parameters() if not p.requires_grad)

    def batch(size: int, length: int) -> step.Batch:
        inputs = {taken: torch.zeros((size, *recording(length)))}
        if own:
            shape = (size, length, config.num_labels) if frames else (size,)
            inputs["labels"] = torch.zeros(shape, dtype=torch.int64)
        return step.Batch(inputs, torch.zeros((size,), dtype=torch.int64))

    loss = step.own_loss if own else step.token_loss
    return Subject(model, batch, loss, facts, config=config, fixed=fixed)


def _recording(config: Any) -> Callable[[int], tuple[int, ...]] | None:
    """Return the shape of what a model hears by its steps; None where nobody says."""
    if hasattr(config, "conv_stride"):
        return lambda length: (samples(config, length),)
    if config.model_type == "whisper":
        return lambda length: (config.num_mel_bins, 2 * config.max_source_positions)
    if hasattr(config, "max_length") and hasattr(config, "num_mel_bins"):  # the spectrogram's
        return lambda length: (config.max_length, config.num_mel_bins)
    if (width := getattr(config, "feature_projection_input_dim", None)) is not None:
        return lambda length: (length, width)
    return None


def samples(config: Any, length: int) -> int:
    """Return the samples of a waveform from which the convolutions make so many steps.

    Raises:
        Refusal: the steps do not suffice for a span of the training's mask.
    """
    least = config.mask_time_length + 1 if getattr(config, "mask_time_prob", 0) > 0 else 1
    if length < least:
        raise Refusal("worker.audio-too-short", asked=length, least=least)
    field = 1
    for kernel, stride in zip(config.conv_kernel[::-1], config.conv_stride[::-1], strict=True):
        field = (field - 1) * stride + kernel
    return int(field + prod(config.conv_stride) * (length - 1))


def _whisper(model: nn.Module, config: Any, facts: dict[str, Any]) -> Subject:
    window = 2 * config.max_source_positions  # the second convolution has stride 2
    config.use_cache = False

    def batch(size: int, length: int) -> step.Batch:
        tokens = torch.zeros((size, length), dtype=torch.int64)
        heard = torch.zeros((size, config.num_mel_bins, window))
        inputs = {"input_features": heard, "decoder_input_ids": tokens}
        return step.Batch(inputs, torch.zeros_like(tokens))

    return Subject(
        model,
        batch,
        step.token_loss,
        facts,
        head=model.get_output_embeddings(),
        config=config,
        longest=config.max_target_positions,
        fixed=tuple(p for p in model.parameters() if not p.requires_grad),
    )


def _ctc(model: Any, config: Any, facts: dict[str, Any]) -> Subject:
    """The convolutions stay as they are, as in the paper and in transformers' own script."""
    model.freeze_feature_encoder()

    def batch(size: int, length: int) -> step.Batch:
        characters = max(1, length // STEPS_A_CHARACTER)
        inputs = {"input_values": torch.zeros((size, samples(config, length)))}
        return step.Batch(inputs, torch.ones((size, characters), dtype=torch.int64))

    fixed = tuple(model.base_model.feature_extractor.parameters())
    return Subject(model, batch, ctc_loss, facts, head=model.lm_head, config=config, fixed=fixed)


def ctc_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Connectionist temporal classification with blank 0; every label counts."""
    scores = step.scores(output)
    logs = F.log_softmax(scores, dim=-1, dtype=torch.float32).transpose(0, 1)
    heard, written = ([length] * len(labels) for length in (len(logs), labels.size(1)))
    summed = F.ctc_loss(logs, labels, heard, written, reduction="sum", zero_infinity=True)
    return summed / count
