"""What the planner answers: builds with prices, times, checks, and what more money buys."""

from dataclasses import dataclass, replace

from trainwright.build.money import Money
from trainwright.catalog import PartKind
from trainwright.explain import Interval, Quantity, total
from trainwright.machine.build import Build, Check
from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.prices import Currency, Price, Total
from trainwright.workload import FullSettings


@dataclass(frozen=True, slots=True)
class Part:
    """One row of a list of parts."""

    kind: PartKind
    id: str
    name: str
    count: int
    price: Price | None
    """Of one piece; None: nobody knows one."""
    owned: int = 0
    """Of them, those that are there already."""
    why: Message | None = None
    """Which need it answers; None where there is nothing to say."""

    @property
    def used(self) -> bool:
        """Whether a used one is to be bought."""
        return self.owned < self.count and self.price is not None and self.price.second_hand


FAIR = 0.25
"""Share of a price's growth by which speed must grow to be worth it: twice the price for a quarter
more speed. Assumed; cards of one generation seldom give less."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the next step of money buys."""

    change: Message
    """What becomes another: ``RTX 4070 SUPER -> RTX 5070 Ti``."""
    more: float
    """Money above this build's expected price, in its currency."""
    price: float
    """Of the whole computer."""
    gain: float
    """By which the work is expected to go faster: 0.4 is 40 %."""

    @property
    def worth(self) -> bool:
        """Whether the speed is worth its price."""
        return self.gain * (self.price - self.more) >= FAIR * self.more


def _times(run: Quantity, times: float) -> Quantity:
    """Return the seconds of so many runs."""
    if times == 1:
        return run
    span = run.interval and Interval(run.interval.low * times, run.interval.high * times)
    return replace(run, value=run.value * times, interval=span, formula="n · t", parts=(run,))


def _all(runs: list[Quantity]) -> Quantity:
    """Return the seconds of all runs: on one computer their errors are taken to go together."""
    whole = total(Message.of("planner.together"), runs)
    spans = [run.interval for run in runs if run.interval is not None]
    if len(spans) < len(runs):
        return whole
    low, high = sum(span.low for span in spans), sum(span.high for span in spans)
    return replace(whole, interval=Interval(low, high))


@dataclass(frozen=True, slots=True)
class Done:
    """A workload on a computer."""

    plan: Plan
    """On this computer with the best settings: opens as it is."""
    report: Report
    times: float
    """How often its run is done; 0: it only has to fit."""

    @property
    def rate(self) -> Quantity | None:
        """Samples a second of training, generated tokens a second of serving."""
        time = self.report.time
        return time.tokens_per_second if self.report.serving else time.samples_per_second

    @property
    def run(self) -> Quantity | None:
        """Seconds of all its runs; None where they add none to the others'."""
        run = self.report.time.run_seconds
        return None if run is None or not self.times else _times(run, self.times)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A computer that does the work."""

    build: Build
    parts: tuple[Part, ...]
    total: Total
    plan: Plan
    """The request's workload on this computer with these settings: opens as it is."""
    settings: FullSettings
    """The best ones, as ``advise`` chooses them."""
    report: Report
    """Time and memory with them."""
    checks: tuple[Check, ...]
    dc_watts: float
    """That the parts draw for long."""
    wall_watts: float
    """At the outlet, under load."""
    bottleneck: Message
    """What limits, in one sentence."""
    next_step: Step | None = None
    doubt: Message | None = None
    """That another of the answer is expected to be faster, and why it does not lead."""
    thrift: Message | None = None
    """That a faster one costs more than its lead is worth, where it comes first for that."""
    others: tuple[Done, ...] = ()
    """The other workloads of the request, in its order."""

    @property
    def works(self) -> tuple[Done, ...]:
        """All workloads, the request's own plan first."""
        return Done(self.plan, self.report, 1.0), *self.others

    @property
    def rate(self) -> Quantity | None:
        """Samples or generated tokens a second of the request's own plan."""
        return self.works[0].rate

    @property
    def run(self) -> Quantity | None:
        """Seconds of all runs of all workloads; None where nobody says how long one is."""
        runs = [run for one in self.works if (run := one.run) is not None]
        return _all(runs) if len(runs) > 1 else next(iter(runs), None)

    @property
    def time(self) -> Quantity | None:
        """The same; seconds of one step where nobody says more."""
        return self.run or self.report.time.step_seconds

    @property
    def seconds(self) -> float | None:
        """The value of ``time``."""
        return self.time.value if self.time is not None else None

    @property
    def unknown(self) -> tuple[Check, ...]:
        """Rules that cannot be checked."""
        return tuple(check for check in self.checks if check.verdict == "unknown")

    @property
    def warnings(self) -> tuple[Check, ...]:
        """What is worth knowing before buying."""
        return tuple(check for check in self.checks if check.verdict == "warning")

    @property
    def cards(self) -> tuple[str, int]:
        """Id and number of its cards, which tell it from the others."""
        return self.build.gpus[0].record.id, self.build.gpu_count

    @property
    def point(self) -> "Point":
        """What it trades: price, time and watts."""
        price, seconds = self.total.expected or 0.0, self.seconds or 0.0
        return Point(*self.cards, price, seconds, self.wall_watts, within=True, candidate=self)


@dataclass(frozen=True, slots=True)
class Point:
    """A trade of price, time and watts: no other build is better in all three."""

    gpu: str
    """Id of the cards."""
    count: int
    price: float
    """Expected, in the request's currency."""
    seconds: float
    """As ``Candidate.seconds``."""
    watts: float
    """At the wall."""
    within: bool
    """Whether the budget reaches that far."""
    candidate: Candidate | None = None
    """None of points that are not worked out in full."""


@dataclass(frozen=True, slots=True)
class Builds:
    """The answer to a request."""

    builds: tuple[Candidate, ...]
    """Within the budget at the expected price, fastest first as far as that is sure (``doubt``);
    one for each choice of cards; empty where there is none."""
    front: tuple[Point, ...]
    """Cheapest first, beyond the budget too."""
    cheapest: Candidate | None
    """Where nothing is within the budget that is proven and can be checked: the cheapest such
    computer that does the work, or else any that does."""
    budget: Money | None
    currency: Currency
    notes: tuple[Message, ...]
    """Assumed prices, cards that could not be considered."""
    considered: int
    """Combinations of parts that were weighed, those seen to be worse together included."""
