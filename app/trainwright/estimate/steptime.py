"""Time of a training step: a roofline over the traced ops, with stated efficiencies."""

from dataclasses import dataclass
from typing import Literal

from trainwright.explain import Quantity

Bottleneck = Literal["gpu", "launch", "storage", "decode", "transfer", "communication"]


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the step."""

    name: str
    """forward | recompute | backward | optimizer | communication | load | decode | transfer."""
    seconds: Quantity
    hidden: bool
    """Whether it runs beside another stage and adds nothing to the step."""


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """The time side of a report."""

    step_seconds: Quantity
    """One optimizer step: all micro-batches and the update."""
    samples_per_second: Quantity
    """Over all GPUs; its interval is 90 %."""
    tokens_per_second: Quantity | None
    """None where the model has no sequence."""
    run_seconds: Quantity | None
    """None where samples or epochs are not given."""
    bottleneck: Bottleneck
    stages: tuple[Stage, ...]
