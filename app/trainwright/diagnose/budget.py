"""Where the time of one step goes: exclusive shares that sum to the step, each with its source."""

from dataclasses import dataclass
from typing import Literal

from trainwright.diagnose.evidence import Evidence, StepTimes
from trainwright.messages import Message

Use = Literal[
    "input", "transfer", "launch", "tensor-core", "matrix", "memory-bound", "kernels",
    "communication", "waiting", "allocator", "optimizer", "compute", "other", "unknown",
]  # fmt: skip
"""What a share of the step is spent on."""


@dataclass(frozen=True, slots=True)
class Share:
    """One use of the step's time."""

    use: Use
    seconds: float
    """A step, mean."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The mean step, divided; the shares sum to its length."""

    seconds: float
    shares: tuple[Share, ...]
    """The longest first; what nobody measured is the share ``unknown``."""
    source: Message
    """What was read, and how the shares were told apart."""
    of_step: bool = True
    """False: no step was found, and it is the whole profile that is divided."""
    on_device: bool = False
    """Whether a device's own clock tells its kernels from the time it waited for launches."""


def divided(
    seconds: float,
    parts: dict[Use, float],
    source: Message,
    *,
    of_step: bool = True,
    on_device: bool = False,
) -> Budget:
    """Return a budget whose shares sum to ``seconds``: the rest is unknown, rounding is scaled."""
    known = {use: spent for use, spent in parts.items() if spent > 0}
    total = sum(known.values())
    if total > seconds:
        known = {use: spent * seconds / total for use, spent in known.items()}
    elif seconds - total > ROUNDING * seconds:
        known["unknown"] = known.get("unknown", 0.0) + seconds - total
    shares = (Share(use, spent) for use, spent in known.items())
    ranked = tuple(sorted(shares, key=lambda each: -each.seconds))
    return Budget(seconds, ranked, source, of_step, on_device)


ROUNDING = 1e-6
"""Of the step: what floating-point sums leave over; assumed."""


def of(evidence: Evidence) -> Budget | None:
    """Return the budget of the steps that a record has timed; None where it timed none."""
    steps = evidence.steps
    if steps is None or steps.unit != "step":
        return None
    parts = _parts(steps)
    return divided(steps.seconds, parts, Message.of("diagnose.budget.steps")) if parts else None


def _parts(steps: StepTimes) -> dict[Use, float]:
    optimizer = steps.optimizer or 0.0
    parts: dict[Use, float | None] = {
        "input": steps.data_wait,
        "transfer": steps.transfer,
        "communication": steps.communication,
        "optimizer": steps.optimizer,
        "compute": steps.compute - optimizer if steps.compute is not None else None,
        "other": steps.other,
    }
    return {use: seconds for use, seconds in parts.items() if seconds is not None}
