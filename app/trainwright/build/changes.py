"""What may be changed of a computer: one thing at a time, or two together.

A processor alone fits the socket that is there; another socket takes the board and, where its kind
of memory is another one, the memory along, which is one change. What else must change with it
(power supply, case, cooler, board) is for ``mending`` to say.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Literal

from trainwright.build.feeds import Feeds
from trainwright.build.money import amount
from trainwright.build.offers import Market
from trainwright.build.request import Wishes
from trainwright.build.ruling import errs
from trainwright.build.sites import Around, Frame, link_of
from trainwright.build.sizing import GIB
from trainwright.build.speeds import Cards, Speeds
from trainwright.catalog import CpuRecord, DriveRecord, GpuRecord, MemoryRecord
from trainwright.machine import rules_memory, rules_processor
from trainwright.machine.build import Build, BuildGpu, Check
from trainwright.machine.placement import form
from trainwright.messages import Message
from trainwright.prices import Currency

Kind = Literal["gpu", "more-gpus", "cpu", "platform", "memory", "drive"]
Step = Callable[[Build], Build]
Kits = tuple[tuple[MemoryRecord, int], ...]

KINDS: tuple[Kind, ...] = ("gpu", "more-gpus", "cpu", "platform", "memory", "drive")
FEEDING: tuple[Kind, ...] = ("cpu", "platform", "memory", "drive")
"""What makes samples faster, and nothing else."""
_AXES: tuple[tuple[Kind, ...], ...] = (
    ("gpu", "more-gpus"),
    ("cpu", "platform"),
    ("memory",),
    ("drive",),
)
"""Of each there is one change: a platform has a processor already."""
COUNTS = (1, 2, 3, 4)
UNNAMED_SLOTS = 2
"""Cards that a board takes of which nobody says more; assumed: most boards have slots for two."""
MOST_TIMES = 4
"""By which memory grows; assumed: what is kept in it is seldom larger."""


@dataclass(frozen=True, slots=True)
class Option:
    """One change."""

    kind: Kind
    step: Step
    """Makes it."""
    cost: float
    """Of what must be bought for it alone."""


@dataclass(frozen=True, slots=True)
class Change:
    """One or two options, made."""

    kinds: tuple[Kind, ...]
    build: Build
    cost: float
    """At least: what must change along is left aside."""
    seconds: float
    """Of a step, at a quick look."""


class Changes:
    """All changes of a computer, each with its time at a quick look."""

    def __init__(self, now: Build, market: Market, speeds: Speeds, wishes: Wishes) -> None:
        self._now = now
        self._market = market
        self._speeds = speeds
        self._feeds = Feeds(speeds)
        self._around = Around(market, wishes)
        self._memories: dict[int, tuple[float, Kits | None]] = {}
        self.fed = self._is_fed()
        """Whether samples come from a data set, so that the parts around the cards count."""
        self.known = now.cpu is not None and bool(now.drives)
        """Whether it can be said how fast they come."""

    def _is_fed(self) -> bool:
        own = self._now.gpus[0]
        speed = self._speeds.quick(Cards(own.record, own.count))
        return speed is not None and speed.feeding is not None

    def seconds(self, build: Build) -> float | None:
        """Return the seconds of a step at a quick look; None where the work does not fit.

        Those of cards whose times rest on data sheets alone are the upper end of their interval.
        """
        cards = Cards(build.gpus[0].record, build.gpus[0].count)
        speed = self._speeds.quick(cards)
        if speed is None:
            return None
        link = link_of(build) if build.board is not None else None
        if speed.feeding is None or build.cpu is None or not build.drives:
            return self._speeds.seconds(cards, speed, link) * speed.margin
        drive, cpu, gib = build.drives[0], build.cpu, build.memory_gib
        return self._feeds.seconds(cards, speed, link, cpu, gib, drive) * speed.margin

    def all(self) -> list[Change]:
        """Return all single changes and pairs with which the work fits, fastest first."""
        options = list(self._options())
        axes = [[one for one in options if one.kind in kinds] for kinds in _AXES]
        some = [(one,) for one in options]
        for left, right in combinations(axes, 2):
            some += product(left, right)  # type: ignore[arg-type]
        found = [change for chosen in some if (change := self._made(chosen)) is not None]
        return sorted(found, key=lambda one: (one.seconds, one.cost))

    def _made(self, chosen: tuple[Option, ...]) -> Change | None:
        build = self._now
        for option in chosen:
            build = option.step(build)
        seconds = self.seconds(build)
        if seconds is None:
            return None
        cost = sum(option.cost for option in chosen)
        return Change(tuple(option.kind for option in chosen), build, cost, seconds)

    def _options(self) -> Iterator[Option]:
        yield from self._cards()
        if self.fed and self.known:
            yield from self._processors()
            yield from self._drives()
        if self._now.cpu is not None:
            yield from self._platforms()
        if self.fed or self.seconds(self._now) is None:
            yield from self._memory()

    def _cards(self) -> Iterator[Option]:
        own = self._now.gpus[0]
        board = self._now.board
        most = COUNTS[-1] if board is not None else max(UNNAMED_SLOTS, own.count + 1)
        counts = tuple(count for count in COUNTS if count <= most) if self._speeds.several else (1,)
        if wished := self._around.wishes.gpus:
            counts = (wished,)
        for record in self._market.cards():
            for count in counts:
                alike = record.id == own.record.id
                bought = count - own.count if alike else count
                cost = self._market.offer("gpu", record).anew.cost(max(bought, 0))
                if bought <= 0 or cost is None:
                    continue
                if self._speeds.quick(Cards(record, count)) is None:
                    continue
                if not alike and record.id in self._speeds.unproven:
                    continue
                limit = own.power_limit_w if alike else None
                cards = (BuildGpu(record, count, limit),)
                price, kits = self._enough(record)
                step = _with(gpus=cards) if kits is None else _with(gpus=cards, memory=kits)
                yield Option("more-gpus" if alike else "gpu", step, cost + price)

    def _enough(self, record: GpuRecord) -> tuple[float, Kits | None]:
        """Return memory that holds what one such card does, and its price; None: it is there.

        Models pass through it on their way to the card. Nothing is changed where nobody says what
        there is, or nothing fits.
        """
        now, need = self._now, round(record.memory_bytes.value / GIB)
        if not now.memory or now.memory_gib >= need or now.cpu is None or now.board is None:
            return 0.0, None
        if need not in self._memories:
            larger = (one for one in self._memory() if one.step(now).memory_gib >= need)
            best = min(larger, key=lambda one: one.cost, default=None)
            self._memories[need] = (best.cost, best.step(now).memory) if best else (0.0, None)
        return self._memories[need]

    def _processors(self) -> Iterator[Option]:
        """Yield processors for the socket that is there."""
        own, board = self._now.cpu, self._now.board
        for offer in self._market.offers("cpu"):
            cpu, cost = offer.record, offer.cost(1)
            if not isinstance(cpu, CpuRecord) or own is None or cost is None:
                continue
            if cpu.id == own.id or cpu.socket != own.socket:
                continue
            if not errs(rules_processor.RULES, Build(cpu=cpu, board=board)):
                yield Option("cpu", _with(cpu=cpu), cost)

    def _platforms(self) -> Iterator[Option]:
        """Yield each processor of another socket with the cheapest board, and memory for it.

        Where no samples are made, any processor will do: more slots may be wanted, though.
        """
        own, seen = self._now.cpu, set[str]()
        for frame in self._around.frames:
            new = own is not None and frame.cpu.socket != own.socket
            alike = frame.cpu.id if self.fed else frame.board.socket
            if not new or alike in seen or self._market.gone(frame.board):
                continue
            made = self._platform(frame)
            if made is not None:
                seen.add(alike)
                yield made

    def _platform(self, frame: Frame) -> Option | None:
        """Return the processor on the board with the memory that is there, or else with other."""
        cpu, board, now = frame.cpu, frame.board, self._now
        kept = Build(cpu=cpu, board=board, memory=now.memory)
        if now.memory and not errs((rules_memory.kind, rules_memory.amount), kept):
            return Option("platform", _with(cpu=cpu, board=board), frame.cost)
        memories = self._around.stores.memory(cpu, board, now.memory_gib)
        if not memories:
            return None
        kits = ((memories[0].kit, memories[0].count),)
        step = _with(cpu=cpu, board=board, memory=kits, stated_memory_gib=None)
        return Option("platform", step, frame.cost + memories[0].cost)

    def _memory(self) -> Iterator[Option]:
        """Yield more kits like those that are there, and larger ones in their place."""
        now = self._now
        for kit, count in now.memory if len(now.memory) == 1 else ():
            for times in range(2, MOST_TIMES + 1):
                cost = self._market.offer("memory", kit).anew.cost(count * (times - 1))
                if cost is not None:
                    yield Option("memory", _with(memory=((kit, count * times),)), cost)
        if now.cpu is None or now.board is None:
            return
        for memory in self._around.stores.memory(now.cpu, now.board, now.memory_gib + 1):
            if memory.gib <= MOST_TIMES * now.memory_gib:
                kits = ((memory.kit, memory.count),)
                yield Option("memory", _with(memory=kits, stated_memory_gib=None), memory.cost)

    def _drives(self) -> Iterator[Option]:
        """Yield drives for the data set that hold as much as its present one."""
        own = self._now.drives[0]
        for offer in self._market.offers("storage"):
            drive, cost = offer.record, offer.anew.cost(1)
            if not isinstance(drive, DriveRecord) or cost is None or form(drive) != "m.2":
                continue
            if (drive.capacity_gb or 0.0) >= (own.capacity_gb or 0.0) and drive.id != own.id:
                yield Option("drive", _on_top(drive), cost)


def _with(**parts: object) -> Step:
    return lambda build: replace(build, **parts)  # type: ignore[arg-type]


def _on_top(drive: DriveRecord) -> Step:
    return lambda build: replace(build, drives=(drive, *build.drives))


class Tally:
    """Why changes are not among the answers, kind by kind; pairs speak for none."""

    def __init__(self) -> None:
        self._beaten: set[Kind] = set()
        self._dear: dict[Kind, float] = {}
        self._forbidden: dict[Kind, tuple[float, Check]] = {}
        self._little: dict[Kind, float] = {}

    def beaten(self, change: Change) -> None:
        """Note that as much is had for less."""
        if len(change.kinds) == 1:
            self._beaten.add(change.kinds[0])

    def dear(self, change: Change, cost: float) -> None:
        """Note what it costs at least."""
        if len(change.kinds) == 1:
            kind = change.kinds[0]
            self._dear[kind] = min(cost, self._dear.get(kind, cost))

    def forbidden(self, change: Change, check: Check) -> None:
        """Note the rule that forbids it."""
        if len(change.kinds) == 1:
            known = self._forbidden.get(change.kinds[0])
            if known is None or change.cost < known[0]:
                self._forbidden[change.kinds[0]] = change.cost, check

    def little(self, change: Change, gain: float) -> None:
        """Note what it gains."""
        if len(change.kinds) == 1:
            kind = change.kinds[0]
            self._little[kind] = max(gain, self._little.get(kind, gain))

    def reason(self, kind: Kind, currency: Currency) -> Message:
        """Return why."""
        if kind in self._beaten:
            return Message.of("planner.upgrade.why.beaten")
        barred, check = self._forbidden.get(kind, (float("inf"), None))
        if check is not None and barred < self._dear.get(kind, float("inf")):
            return forbidden(check)
        if kind in self._dear:
            price = amount(currency, self._dear[kind])
            return Message.of("planner.upgrade.why.dear", amount=price)
        if kind in self._little:
            return Message.of("planner.upgrade.why.little", gain=self._little[kind])
        return Message.of("planner.upgrade.why.none")


def forbidden(check: Check) -> Message:
    """Return that a rule forbids a change."""
    return Message.of("planner.upgrade.why.forbidden", rule=check.rule, because=check.message)
