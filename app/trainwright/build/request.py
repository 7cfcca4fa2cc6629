"""What is asked: a workload, money, and wishes."""

from dataclasses import dataclass, field
from datetime import date

from trainwright.build.money import Money
from trainwright.catalog import PartKind
from trainwright.catalog.part_records import FormFactor
from trainwright.machine.build import CircuitName
from trainwright.machine.machine import System
from trainwright.plan.schema import Plan

QUIET_W = 600.0
"""At the wall: what large, slow fans carry out of a case without being heard much; assumed, from
cases and coolers that are reviewed as quiet."""


@dataclass(frozen=True, slots=True)
class Owned:
    """Parts that a person has already: they cost nothing more."""

    kind: PartKind
    id: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a build must keep to, beside the money; None is free."""

    used: bool = False
    """Whether used parts may be chosen; otherwise new ones only."""
    form: FormFactor | None = None
    """Of the board: ``mini-itx`` for a small computer."""
    quiet: bool = False
    """Whether it stands beside somebody: little heat, and no blowers."""
    power_w: float | None = None
    """At the wall, at most."""
    gpus: int | None = None
    """Exactly so many cards."""
    owned: tuple[Owned, ...] = ()
    only: tuple[Owned, ...] = ()
    """Of the kind of each, no others are chosen."""
    without: frozenset[str] = frozenset()
    """Ids of parts, and makers of GPUs, that are not chosen."""
    circuit: CircuitName | None = None
    """That the room has. Default: of the currency's country."""
    system: System = "linux"
    expired: bool = False
    """Whether prices that are too old count nevertheless."""

    @property
    def wall_w(self) -> float | None:
        """Watts at the wall that the wishes leave; None: no end."""
        caps = [cap for cap in (self.power_w, QUIET_W if self.quiet else None) if cap is not None]
        return min(caps, default=None)


@dataclass(frozen=True, slots=True)
class Work:
    """Another workload for the same computer."""

    plan: Plan
    """Its workload, model and fixed settings count; its machine and limits do not."""
    times: float = 1.0
    """How often its run is done for one of the request's plan; 0: it has to fit, and no more."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the planner."""

    plan: Plan
    """Its workload, model and fixed settings; its machine plays no part."""
    budget: Money | None = None
    """None: whatever it costs."""
    wishes: Wishes = Wishes()
    today: date = field(default_factory=date.today)
    """For the age of prices."""
    top: int = 5
    """Builds wanted."""
    also: tuple[Work, ...] = ()
    """What the computer must do beside the plan."""
