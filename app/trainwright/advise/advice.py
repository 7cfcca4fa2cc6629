"""What the search answers: ranked settings with reasons, and what would help if nothing fits."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainwright.messages import Message
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import verdict
from trainwright.plan.serving import TENSOR_PARALLEL
from trainwright.workload import FullSettings
from trainwright.workload.settings import Effect


def what_becomes(effect: Effect, *, trains: bool) -> Message:
    """Return what an effect does to a training, or to the answers of a served model."""
    served = "-served" if effect is Effect.DIFFERENT and not trains else ""
    return Message.of(f"advise.effect.{effect.name.lower()}{served}")


SAME = 0.005
"""Gains below this are not a difference: no clock here is that sharp."""


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


def reason(
    setting: str, value: Any, id: str, source: str, flips: Message | None, /, **values: Any
) -> Reason:
    """Return a reason whose sentence has the values."""
    return Reason(setting, value, Message.of(id, **values), source, flips)


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings that fit, with what they cost and why."""

    settings: FullSettings
    estimate: Report
    reasons: tuple[Reason, ...]
    effect: Effect = Effect.SAME
    """The greatest of the values that the search chose."""


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
    """A way out: a change of what was asked for or fixed, after which the plan fits."""

    change: Message
    """What to change, with what it then takes."""
    plan: Plan
    """The plan with the change, and with the best choice for its open keys."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Dotted key -> new value of everything that becomes different, chosen values among them."""
    effect: Effect = Effect.SAME
    """Of the change and of all values chosen with it."""
    estimate: Report | None = None
    """Of the plan with the change; None where it was not worked out by a search."""
    buys: bool = False
    """Whether it takes other hardware, and so money."""

    @property
    def caution(self) -> Message | None:
        """Its verdict, where it fits only just or requests wait."""
        if self.estimate is None or self.estimate.verdict not in (Verdict.QUEUES, Verdict.TIGHT):
            return None
        return verdict(self.estimate)


BETTER = (
    *("advise.fewer-nodes", "advise.early-step", "advise.sharding", "advise.worth-compiling"),
    *("advise.engine", "advise.generation"),
    TENSOR_PARALLEL,
)
"""How the ids of the notes begin that people should read first."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer to a plan whose settings are partly free."""

    choices: tuple[Choice, ...]
    """Best first; empty where nothing fits."""
    pareto: tuple[Point, ...]
    """Fastest first."""
    nothing_fits: tuple[Relaxation, ...]
    """Ways out, the cheapest first: by money, effect, then time. Empty where something fits."""
    notes: tuple[Message, ...]
    """Common mistakes among the fixed settings, structures that could not be considered,
    rounding of the effective batch."""
    considered: int
    """Settings that were compared; 0 where the first choice alone was asked for."""
    short_by_bytes: float | None = field(default=None)
    """Where nothing fits: what the smallest settings lack on the device at p95."""

    @property
    def first_notes(self) -> tuple[Message, ...]:
        """Notes of what would be better than every choice or way out that was compared."""
        return tuple(note for note in self.notes if note.id.startswith(BETTER))

    @property
    def other_notes(self) -> tuple[Message, ...]:
        """The rest of the notes."""
        return tuple(note for note in self.notes if not note.id.startswith(BETTER))
