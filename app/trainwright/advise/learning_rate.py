"""What the learning rate should do where the effective batch changes."""

from math import sqrt

from trainwright.messages import Message
from trainwright.workload.settings import MOST_SAMPLES

LORA_CAP = 2.0
"""Assumed: fine-tuning of few parameters stays near what was tried."""
LONG_WARMUP_FROM = 4.0
"""Assumed: factor of the batch from which warm-up should be longer."""
WARMUP_SHARE = (0.03, 0.05)
"""Of all steps; assumed after common recipes."""


def factor(optimizer: str, task: str, old_batch: int, new_batch: int) -> float:
    """Return what to multiply the learning rate by.

    Linear for SGD (Goyal et al. 2017, arXiv 1706.02677), the square root for Adam and its
    kin (Malladi et al. 2022, arXiv 2205.10287), at most 2 for LoRA.
    """
    ratio = new_batch / old_batch
    scaled = ratio if optimizer == "sgd" else sqrt(ratio)
    return min(scaled, LORA_CAP) if task in ("lora", "qlora") else scaled


def learning_rate_advice(
    optimizer: str, task: str, old_batch: int, new_batch: int, rate: float | None = None
) -> Message | None:
    """Return what to do with learning rate and warm-up, or None where the batch is kept."""
    if old_batch == new_batch:
        return None
    times = factor(optimizer, task, old_batch, new_batch)
    rule = "linear" if optimizer == "sgd" else "root"
    if task in ("lora", "qlora") and times == LORA_CAP:
        rule = "capped"
    low, high = WARMUP_SHARE
    if new_batch / old_batch > LONG_WARMUP_FROM:
        low, high = high, 2 * high
    values = {"old": old_batch, "new": new_batch, "factor": times, "low": low, "high": high}
    if rate is not None:
        return Message.of(f"advise.rate.{rule}-from", rate=rate, scaled=rate * times, **values)
    return Message.of(f"advise.rate.{rule}", **values)


def whole_batch(effective: int, gpus: int) -> int:
    """Return the nearest effective batch that the GPUs share evenly; the larger of two.

    Not more than a plan may have. One smaller than the number of GPUs stays as it is: no batch
    near it is shared evenly.
    """
    below = effective // gpus * gpus
    above = below + gpus
    if below in (0, effective):
        return effective
    lower = effective - below < above - effective or above > MOST_SAMPLES
    return below if lower else above
