"""The workloads that a computer is for, timed together on any cards.

Of one workload the time is that of a step; of several it is that of all their runs, each as often
as it is asked for. One whose run has no known length, and serving, must fit and adds no time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainwright.build.feeds import Feed, Feeds
from trainwright.build.request import Request
from trainwright.build.run import Run, run_of
from trainwright.build.sizing import LEAST_GB, Needs, needs, use_of
from trainwright.build.speeds import Cards, Key, Link, Speed, Speeds, spreads
from trainwright.catalog import CpuRecord, DriveRecord, GpuRecord
from trainwright.machine.build import Use, Way
from trainwright.plan.schema import Plan
from trainwright.workload.settings import Effect

_ASKING: tuple[Way, ...] = ("single", "inference", "layer-split", "data-parallel", "sharded")
"""What asks more of a computer comes later."""


@dataclass(frozen=True, slots=True)
class Load:
    """One workload on some cards."""

    cards: Cards
    speeds: Speeds
    speed: Speed
    feed: Feed | None
    """Of samples; None: nothing is asked of the computer around."""
    steps: float
    """That count."""

    def seconds(self, link: Link | None, cpu: CpuRecord, gib: float, drive: DriveRecord) -> float:
        """Return the seconds of its steps in a computer."""
        device = self.speeds.seconds(self.cards, self.speed, link)
        if self.feed is None:
            return self.steps * device
        return self.steps * self.feed.step(device, self.speed.samples, cpu, gib, drive)

    def least(self, link: Link | None, cpu: CpuRecord | None = None) -> float:
        """Return what no computer with the link, and the processor, takes less than."""
        device = self.speeds.seconds(self.cards, self.speed, link)
        if self.feed is None or cpu is None:
            return self.steps * device
        return self.steps * self.feed.least(device, self.speed.samples, cpu)


@dataclass(frozen=True, slots=True)
class Together:
    """All workloads on some cards."""

    loads: tuple[Load, ...]

    @property
    def seconds(self) -> float:
        """Of all steps, were samples always there."""
        return sum(load.steps * load.speed.seconds for load in self.loads)

    @property
    def effect(self) -> Effect:
        """The gravest of the settings' effects on a training."""
        return max(load.speed.effect for load in self.loads)

    @property
    def margin(self) -> float:
        """As ``Speed.margin``."""
        late = sum(load.steps * load.speed.seconds * load.speed.margin for load in self.loads)
        return late / self.seconds

    @property
    def fed(self) -> bool:
        """Whether the computer around the cards makes samples for them."""
        return any(load.feed is not None for load in self.loads)

    def needs(self) -> Needs:
        """Return the least that the computer around the cards must have for all of them."""
        return together([_needs(load) for load in self.loads])

    def use(self, needed: Needs) -> Use:
        """Return what the computer is for: the most that any of them asks."""
        each = [use_of(load.cards, load.speed, needed, load.speeds.plan) for load in self.loads]
        written = [one.written_gb_a_day for one in each if one.written_gb_a_day is not None]
        return replace(
            max(each, key=lambda one: _ASKING.index(one.way)),
            offloads=any(one.offloads for one in each),
            written_gb_a_day=max(written, default=None),
        )


class Works:
    """The workloads of a request; each time is worked out once."""

    def __init__(self, each: Sequence[tuple[Speeds, float]]) -> None:
        self.each = [(speeds, Feeds(speeds), steps) for speeds, steps in each]
        self._known: dict[Key, Together | None] = {}

    def quick(self, cards: Cards) -> Together | None:
        """Return them at the first look; None where one does not fit or run."""
        if cards.key not in self._known:
            self._known[cards.key] = self._timed(cards)
        return self._known[cards.key]

    def _timed(self, cards: Cards) -> Together | None:
        loads = []
        for speeds, feeds, steps in self.each:
            speed = speeds.quick(cards)
            if speed is None:
                return None
            loads.append(Load(cards, speeds, speed, feeds.of(speed), steps))
        return Together(tuple(loads))

    def trial(self, record: GpuRecord) -> bool:
        """Return whether one of them runs on the card only as a trial."""
        return any(speeds.trial(record) for speeds, _, _ in self.each)

    def spreads(self, record: GpuRecord) -> bool:
        """Return whether several such cards may do what one of them cannot."""
        return any(spreads(speeds.plan, record) for speeds, _, _ in self.each)

    @property
    def copies(self) -> bool:
        """Whether for any of them each of several cards may hold a copy of its own."""
        return any(speeds.copies for speeds, _, _ in self.each)

    @property
    def several(self) -> bool:
        """Whether several cards are any use."""
        return any(speeds.several for speeds, _, _ in self.each)

    @property
    def unproven(self) -> set[str]:
        """Cards that one of them runs on only as a trial."""
        return {card for speeds, _, _ in self.each for card in speeds.unproven}

    @property
    def untraced(self) -> set[str]:
        """Cards for which the profile of one of them is not at hand."""
        return {card for speeds, _, _ in self.each for card in speeds.untraced}


def works_of(request: Request, speeds: Sequence[Speeds]) -> tuple[Works, Run]:
    """Return the workloads and how long all of them take, from the speeds of each."""
    own = run_of(request.plan)
    if not request.also:
        return Works([(speeds[0], 1.0)]), own
    steps = [own.steps or 0.0]
    steps += [(run_of(one.plan).steps or 0.0) * one.times for one in request.also]
    timed = any(steps)
    if not timed:
        steps[0] = 1.0
    run = Run(1.0 if timed else None, own.deadline)
    return Works(list(zip(speeds, steps, strict=True))), run


def times_of(request: Request) -> tuple[float, ...]:
    """Return how often the run of each workload is done."""
    return 1.0, *(one.times for one in request.also)


def plans_of(request: Request) -> tuple[Plan, ...]:
    """Return the plans of all workloads, the request's own first."""
    return request.plan, *(one.plan for one in request.also)


def _needs(load: Load) -> Needs:
    facts = load.speeds.facts(load.cards)
    assert facts is not None, "cards with a speed have facts"
    return needs(load.speeds.plan, facts, load.cards, load.speed)


def together(each: Sequence[Needs]) -> Needs:
    """Return what a computer needs that does several workloads, one at a time.

    Their files lie beside one another; cores and memory serve them in turn.
    """
    first, *others = each
    if not others:
        return first
    data = [one.dataset_bytes for one in each if one.dataset_bytes is not None]
    return Needs(
        cores=max(one.cores for one in each),
        memory_gib=max(one.memory_gib for one in each),
        drive_gb=LEAST_GB + sum(one.drive_gb - LEAST_GB for one in each),
        endurance_tb=sum(one.endurance_tb for one in each),
        checkpoint_bytes=max(one.checkpoint_bytes for one in each),
        dataset_bytes=sum(data) if data else None,
        generation=max(one.generation for one in each),
    )
