"""What the search answers: ranked settings with reasons, and what would help if nothing fits."""

from dataclasses import dataclass, field
from typing import Any

from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings


@dataclass(frozen=True, slots=True)
class Reason:
    """Why one setting has its value."""

    setting: str
    """``precision``, ``loader.num_workers``: the key below ``settings`` in the plan file."""
    value: Any
    because: Message
    """With this model's numbers."""
    source: str
    """Where the rule comes from; ``estimate`` where it is the numbers of this search."""
    flips: Message | None = None
    """What would make another value better."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings that fit, with what they cost and why."""

    settings: FullSettings
    estimate: Report
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A trade of memory against time: nothing considered is better in both."""

    settings: FullSettings
    step_seconds: float
    allocated_bytes: int
    """Quick allocated peak of one GPU; not replayed."""
    fits: bool
    """Whether the quick peak leaves room; the replay of a choice decides finally."""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A change outside the free settings that would make the plan fit, and does."""

    change: Message
    """What to change, with what it then takes."""
    plan: Plan


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer to a plan whose settings are partly free."""

    choices: tuple[Choice, ...]
    """Best first; empty where nothing fits."""
    pareto: tuple[Point, ...]
    """Fastest first."""
    nothing_fits: tuple[Relaxation, ...]
    """Smallest change first; empty where something fits."""
    notes: tuple[Message, ...]
    """Common mistakes among the fixed settings, structures that could not be considered,
    rounding of the effective batch."""
    considered: int
    """Settings that were compared."""
    short_by_bytes: float | None = field(default=None)
    """Where nothing fits: what the smallest settings lack on the device at p95."""
