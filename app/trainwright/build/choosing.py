"""The best computer around given cards: exact over everything on sale.

Parts are weighed in the order of a bound of their price, and a whole computer is put to all rules
before it counts. A choice is dropped unseen only where even its bound is no better than what
was found.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from trainwright.build.ruling import forbidden
from trainwright.build.sites import Around, Base, Core, Housing, Pace, Site, Sites, slowest_link
from trainwright.build.sizing import Needs
from trainwright.build.speeds import Cards, Key, Link, widest
from trainwright.build.stores import Drives, lighter, mounted_apart
from trainwright.build.supplies import LEAST_LIMIT, Supplies, limits
from trainwright.build.works import Together
from trainwright.catalog import CaseRecord, CoolerRecord, CpuRecord, PsuRecord
from trainwright.machine.build import Build, Check, CircuitName, Use
from trainwright.machine.checks import checks_of, facts_of
from trainwright.machine.power import MODULE_W, power

SAME = 0.01
"""Relative width of a level of time: of computers on one level the cheaper one is the better.
Assumed; no time here is known that well."""


CENT = 0.01
"""Of either currency: less is not a difference. Of computers that cost the same, the one of whose
parts more is known comes first, for they are weighed in that order."""
_NEVER = 1 << 31


def level(seconds: float) -> int:
    """Return the level that a time is on; the smaller the faster."""
    return math.floor(math.log(seconds) / math.log1p(SAME)) if seconds < math.inf else _NEVER


@dataclass(frozen=True, slots=True)
class Outcome:
    """A whole computer that no rule forbids."""

    cards: Cards
    build: Build
    checks: tuple[Check, ...]
    use: Use
    cost: float
    """Expected, of what must be bought."""
    seconds: float
    """Of a step."""
    watts: float
    """At the wall."""
    margin: float = 1.0
    """As ``Speed.margin``."""
    asked: Needs | None = None
    """What was asked of it: what the work needs, or more where money was left."""

    @property
    def counted(self) -> float:
        """Seconds by which it is ranked."""
        return self.seconds * self.margin

    @property
    def unknown(self) -> int:
        """Rules that cannot be checked."""
        return sum(check.verdict == "unknown" for check in self.checks)


@dataclass(frozen=True, slots=True)
class Least:
    """What no computer with some cards is below, in any figure."""

    cost: float
    seconds: float
    watts: float


@dataclass(frozen=True, slots=True)
class Task:
    """Cards to build around."""

    cards: Cards
    work: Together
    """To do on them."""
    cost: float
    """Of the cards."""
    limit: float
    """Of the whole computer."""
    needed: Needs
    use: Use
    tail: float
    """That cooler, case and power supply cost at least."""


class Choosing:
    """The search around cards, with everything that it has worked out."""

    def __init__(self, around: Around, circuit: CircuitName | None) -> None:
        self.considered = 0
        """Combinations of parts that were weighed."""
        self._around = around
        self._supplies = Supplies(around, circuit)
        self._circuit = circuit
        self._needs: dict[Key, Needs] = {}
        self._tails: dict[Key, float] = {}
        self._fed: dict[tuple[object, ...], bool] = {}
        self._thrifty: dict[tuple[int, float, int], Build | None] = {}

    def least(self, cards: Cards, work: Together, cost: float) -> Least | None:
        """Return what no computer with the cards is below; None where there is none at all.

        ``cost`` is that of the cards. At best a slot gives each of them its own link, samples
        are always there, and the cheapest and the thriftiest of all other parts go together.
        """
        task = self._task(cards, work, cost, math.inf)
        costs, drives = self._sites(task).costs, self._around.stores.drives(task.needed)
        if not costs or not drives:
            return None
        link = widest(cards.record)
        return Least(
            cost=cost + costs[0] + drives[0].cost + task.tail - CENT,  # for rounding
            seconds=min(work.seconds, _least(task, link)),
            watts=self._least_watts(task),
        )

    def least_watts(self, one: Least, cards: Cards, count: int) -> float:
        """Return what so many cards draw at least, by what one does with all around it."""
        each = cards.gpus[0].watts or 0.0
        return one.watts + each * (LEAST_LIMIT * count - cards.count) / self._supplies.efficiency

    def limited(self, cards: Cards, work: Together) -> Cards | None:
        """Return the cards with the highest power limit at which there is a computer.

        None where there is none, or power is not what they lack.
        """
        if self.barred(cards, work) == "board":
            return None
        fed = (one for one in limits(cards) if self._fed_at_all(one, work))
        return next((one for one in fed if self.cheapest(one, work, 0.0, math.inf)), None)

    def _fed_at_all(self, cards: Cards, work: Together) -> bool:
        task = self._task(cards, work, 0.0, math.inf)
        return self._around.supplies(None, cards) and not math.isinf(task.tail)

    def best(
        self,
        cards: Cards,
        work: Together,
        cost: float,
        limit: float,
        needed: Needs | None = None,
    ) -> Outcome | None:
        """Return the cheapest computer on the fastest level within the limit, if there is one.

        ``cost`` is that of the cards. ``needed`` of it may be more than the work asks.
        """
        task = self._task(cards, work, cost, limit)
        task = replace(task, needed=needed or task.needed)
        levels = self._levels(task)
        if not levels:
            return None
        fastest = min(levels.values())
        if (best := self._on_level(task, levels, fastest)) is not None:
            return best
        some = self._on_level(task, levels, _NEVER)
        if some is None:
            return None
        low, high = fastest, level(some.seconds)
        while high - low > 1:  # what is within the limit on one level is so on slower ones
            middle = (low + high) // 2
            found = self._on_level(task, levels, middle)
            if found is None:
                low = middle
            else:
                some, high = found, min(middle, level(found.seconds))
        return self._on_level(task, levels, high)

    def cheapest(self, cards: Cards, work: Together, cost: float, limit: float) -> Outcome | None:
        """Return the cheapest computer within the limit, however slow what is around the cards."""
        task = self._task(cards, work, cost, limit)
        return self._on_level(task, self._levels(task), _NEVER)

    def barred(self, cards: Cards, work: Together) -> Literal["supply", "watts", "board"]:
        """Return why no computer can be built around the cards."""
        if self._fed_at_all(cards, work):
            return "board"
        return "supply" if self._around.wishes.wall_w is None else "watts"

    def needs(self, cards: Cards, work: Together) -> Needs:
        """Return the least that the computer around the cards must have."""
        if cards.key not in self._needs:
            self._needs[cards.key] = work.needs()
        return self._needs[cards.key]

    def _task(self, cards: Cards, work: Together, cost: float, limit: float) -> Task:
        needed = self.needs(cards, work)
        use = work.use(needed)
        return Task(cards, work, cost, limit, needed, use, self._least_tail(cards, needed, use))

    def _sites(self, task: Task) -> Sites:
        """Return what may stand around the cards."""
        if not self._around.supplies(None, task.cards) or math.isinf(task.tail):
            return Sites((), (), {})
        return self._around.sites(task.needed, task.cards)

    def _least_tail(self, cards: Cards, needed: Needs, use: Use) -> float:
        """Return what cooler, case and power supply cost at least; infinite where there are none.

        The supply is enough for the thriftiest parts around the cards, at least.
        """
        if cards.key not in self._tails:
            around, spare = self._around, self._thriftiest(cards, needed)
            cost = around.shelves.cost
            if spare is None or not (around.cases and around.coolers):
                return math.inf
            psu = next(self._supplies.enough(spare, use), None)
            beside = cost("case", around.cases[0]) + cost("cooler", around.coolers[0])
            self._tails[cards.key] = beside + (cost("psu", psu) if psu else math.inf)
        return self._tails[cards.key]

    def _thriftiest(self, cards: Cards, needed: Needs) -> Build | None:
        """Return the cards with the processor and the memory on sale that draw the least."""
        around, key = self._around, (needed.cores, needed.memory_gib, needed.generation)
        if key not in self._thrifty:
            frames = (base.frame for base in around.bases(needed))
            frame = min(
                frames, key=lambda one: one.cpu.max_power_w or one.cpu.tdp_w or 0.0, default=None
            )
            kits = around.stores.kits
            kit = min(kits, key=lambda one: MODULE_W[one.module] * one.modules, default=None)
            self._thrifty[key] = (
                None
                if frame is None or kit is None
                else Build(cpu=frame.cpu, board=frame.board, memory=((kit, 1),))
            )
        found = self._thrifty[key]
        return None if found is None else replace(found, gpus=cards.gpus)

    def _least_watts(self, task: Task) -> float:
        """Return what the cards and the thriftiest parts around them draw from the wall."""
        spare = self._thriftiest(task.cards, task.needed)
        return power(spare).sustained.value / self._supplies.efficiency if spare else 0.0

    def _powered(self, task: Task, base: Base, drives: Drives) -> bool:
        """Return whether a supply is enough with the base's memory that draws the least.

        Where none is with such drives, none is with more.
        """
        memory = min(base.memories, key=lambda one: one.watts)
        key = (*task.cards.key, base.frame.cpu.id, memory.watts, drives.watts)
        if key not in self._fed:
            core = Core(base.frame, None, memory, drives, 0.0)
            self._fed[key] = any(self._supplies.enough(self._build(task, core), task.use))
        return self._fed[key]

    # Times

    def _levels(self, task: Task) -> dict[Pace, int]:
        """Return a bound of each pace's level, of sites within the limit: nothing is read."""
        sites, room = self._sites(task), task.limit - task.cost - task.tail
        self.considered += bisect_right(sites.costs, room)
        linked: dict[Link | None, float] = {}
        found = {}
        fed = task.work.fed
        for pace, site in sites.first.items():
            if site.base.cost > room:
                continue
            if site.link not in linked:
                linked[site.link] = _least(task, site.link)
            cpu = site.base.frame.cpu
            found[pace] = level(_least(task, site.link, cpu) if fed else linked[site.link])
        return found

    def _seconds(self, task: Task, core: Core, link: Link | None) -> float:
        cpu, gib, drive = core.frame.cpu, core.memory.gib, core.drives.records[0]
        return sum(load.seconds(link, cpu, gib, drive) for load in task.work.loads)

    def _on_level(self, task: Task, levels: dict[Pace, int], wanted: int) -> Outcome | None:
        """Return the cheapest on the level or a faster one."""
        best: Outcome | None = None
        drives = self._around.stores.drives(task.needed)
        if not drives:
            return None
        thriftiest = min(drives, key=lambda one: one.watts)
        room = task.limit - task.cost - task.tail
        paces = {pace for pace, least in levels.items() if least <= wanted}
        for site in self._sites(task).sorted:
            if site.base.cost + drives[0].cost > room:
                break
            if site.pace not in paces or not self._around.encased(site.base.frame, task.cards):
                continue
            if not self._powered(task, site.base, thriftiest):
                continue
            for core in self._cores(task, site, drives):
                if core.cost > room:
                    continue
                if task.work.fed and level(self._seconds(task, core, core.link)) > wanted:
                    continue
                bound = task.limit if best is None else best.cost - CENT
                if (found := self._completed(task, core, bound, wanted)) is not None:
                    best, room = found, found.cost - CENT - task.cost - task.tail
        return best

    def _cores(self, task: Task, site: Site, drives: list[Drives]) -> Iterator[Core]:
        """Yield the site with each memory and each of the drives that may matter."""
        frame = site.base.frame
        memories = site.base.memories
        if not task.work.fed:  # what is dearer serves by drawing less or by sitting elsewhere
            memories, drives = tuple(lighter(memories)), list(mounted_apart(drives))
        for memory, drive in product(memories, drives):
            yield Core(frame, site.link, memory, drive, frame.cost + memory.cost + drive.cost)

    # Cooler, case and power supply

    def _completed(self, task: Task, core: Core, limit: float, wanted: int) -> Outcome | None:
        """Return the cheapest whole computer with the core."""
        around, room = self._around, limit - task.cost - core.cost
        if not around.stands(self._build(task, core), task.use):
            return None
        coolers = around.coolers_of(core.frame)
        powering = next(self._supplies.enough(self._build(task, core), task.use), None)
        if not coolers or powering is None:
            return None
        best: Outcome | None = None
        least = around.shelves.cost("cooler", coolers[0]) + around.shelves.cost("psu", powering)
        for housing in around.housing(core.frame, task.cards, core.drives):
            if housing.cost + least > room:
                break
            if self._keeps(task, core, housing.link, wanted):
                found = self._encased(task, core, housing, room, wanted)
                if found is not None:
                    best, room = found, found.cost - CENT - task.cost - core.cost
        return best

    def _encased(
        self, task: Task, core: Core, housing: Housing, room: float, wanted: int
    ) -> Outcome | None:
        """Return the cheapest computer in a case.

        Cooler and supply have to do with the case and nothing with one another, so that it is
        nearly always that with the cheapest of either.
        """
        around, case = self._around, housing.case
        best: Outcome | None = None
        for cooler in around.coolers_of(core.frame):
            cooled = housing.cost + around.shelves.cost("cooler", cooler)
            if cooled > room:
                break
            if not around.holds(case, cooler):
                continue
            for psu in self._supplies.enough(self._build(task, core), task.use):
                cost = cooled + around.shelves.cost("psu", psu)
                if cost > room:
                    break
                if around.holds(case, psu):
                    build = self._build(task, core, cooler, case, psu)
                    found = self._whole(task, core, build, task.cost + core.cost + cost)
                    if found is not None and level(found.seconds) <= wanted:
                        best, room = found, cost - CENT
                        break
        return best

    def _keeps(self, task: Task, core: Core, link: Link | None, wanted: int) -> bool:
        """Return whether a link in some case keeps the level.

        Drives take lanes of cards on some boards, and in a low case the best slot is of no use.
        """
        if core.link is None or core.link == link:
            return True
        return level(self._seconds(task, core, link)) <= wanted

    def _build(
        self,
        task: Task,
        core: Core,
        cooler: CoolerRecord | None = None,
        case: CaseRecord | None = None,
        psu: PsuRecord | None = None,
    ) -> Build:
        return Build(
            gpus=task.cards.gpus,
            cpu=core.frame.cpu,
            board=core.frame.board,
            memory=((core.memory.kit, core.memory.count),),
            drives=core.drives.records,
            psu=psu,
            case=case,
            cooler=cooler,
            circuit=self._circuit,
        )

    def _whole(self, task: Task, core: Core, build: Build, cost: float) -> Outcome | None:
        """Return the whole computer; None where a rule forbids it."""
        self.considered += 1
        facts = facts_of(build, task.use)
        said = checks_of(facts)
        if forbidden(said, sound=self._around.sound):
            return None
        budget = facts.power
        watts = budget.wall_w or budget.sustained.value
        link = slowest_link(facts.placement) if core.link is not None else None
        seconds = self._seconds(task, core, link)
        return Outcome(
            *(task.cards, build, said, task.use, cost, seconds, watts, task.work.margin),
            asked=task.needed,
        )


def _least(task: Task, link: Link | None, cpu: CpuRecord | None = None) -> float:
    """Return what the work takes at least with a link, and a processor."""
    return sum(load.least(link, cpu) for load in task.work.loads)
