"""What likely recipes hold beyond the plain step, where a plan says not who runs it.

An upper bound by rule, from sizes of the model alone, so that it costs no trace. Each part is what
``workload/recipes.py`` says of a library, and none is of all: a recipe that is stated is traced.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainwright.estimate.memory.device_memory import MemoryEstimate
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings

SOURCE = (
    "transformers 4.46, ForCausalLMLoss: an fp32 copy of the scores and a shifted one; loops that "
    "hold the output until the next; torch.optim.AdamW: foreach by default; peft, "
    "prepare_model_for_kbit_training: embeddings, head and hidden states in fp32"
)


@dataclass(frozen=True, slots=True)
class More:
    """Bytes beyond the plain step, by where they add to the peak."""

    step: int
    """Through forward and backward."""
    always: int
    """In every phase."""
    update: int
    """While the optimizer moves the weights."""


def more(
    profile: Profile,
    settings: FullSettings,
    task: str,
    batch: int,
    sequence: int,
    *,
    tied: bool,
    shares: int = 1,
) -> More:
    """Return what the hungriest likely recipe of a task holds beyond the plain step.

    ``tied`` says whether the head's weights are the embedding's; each GPU's optimizer moves one
    of so many ``shares`` of what trains.
    """
    known: Mapping[str, Any] = profile.model
    width = 4 if settings.precision in ("fp32", "tf32") else 2
    scores = batch * sequence * known.get("vocabulary", 0)
    if settings.cross_entropy != "full":  # none are held, whoever runs it
        scores = 0
    shifted, held = 4 * scores, width * scores
    copied = 0
    if settings.update == "adamw":  # fused; foreach makes a copy of what it moves
        of_weights = 2 if task == "full" and settings.precision in ("bf16", "fp16") else 4
        copied = of_weights * known.get("trainable", 0) // shares
    if task != "qlora" or settings.kbit_preparation != "none":
        return More(shifted + held, 0, copied)
    hidden, layers = known.get("hidden", 0), known.get("layers", 0)
    wider = 4 - width
    kept = wider * batch * sequence * hidden * (layers + 1)
    ends = wider * hidden * known.get("vocabulary", 0) * (1 if tied else 2)
    return More(shifted + held + wider * scores + kept, ends, copied)


def highest(memory: MemoryEstimate, extra: More) -> float:
    """Return the most bytes of the device that a likely recipe may take."""
    peaks = {"optimizer": 0, "step": 0}
    living = memory.curve.live.sum(axis=0)
    for phase, first, after in memory.curve.phases:
        key = "optimizer" if phase == "optimizer" else "step"
        peaks[key] = max(peaks[key], int(living[first:after].max(initial=0)))
    most = extra.always + max(peaks["step"] + extra.step, peaks["optimizer"] + extra.update)
    return float(memory.device_used.value) + max(most - max(peaks.values()), 0)
