"""The best computer around given cards: exact over everything on sale.

Parts are weighed in the order of a bound of their price, and a whole computer is put to all rules
before it counts. A choice is dropped unseen only where even its bound is no better than what
was found.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainwright.build.around import Around, Base, Core, Drives, Frame, link_of
from trainwright.build.feeds import Feeds
from trainwright.build.sizing import Needs, needs, use_of
from trainwright.build.speeds import Cards, Link, Speed, Speeds, widest
from trainwright.catalog import CaseRecord, CoolerRecord, PsuRecord
from trainwright.machine import rules_power
from trainwright.machine.build import Build, BuildGpu, Check, CircuitName, Use
from trainwright.machine.checks import checks
from trainwright.machine.facts import Facts
from trainwright.machine.placement import Placement
from trainwright.machine.power import COMFORTABLE, MODULE_W, efficiency_of, power

SAME = 0.01
"""Relative width of a level of time: of computers on one level the cheaper one is the better.
Assumed; no time here is known that well."""


CENT = 0.01
"""Of either currency: less is no difference. Of computers that cost the same, the one of whose
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
    speed: Speed
    cost: float
    """Of the cards."""
    limit: float
    """Of the whole computer."""
    needed: Needs
    use: Use


class Choosing:
    """The search around cards, with everything that it has worked out."""

    def __init__(self, around: Around, speeds: Speeds, circuit: CircuitName | None) -> None:
        self.considered = 0
        """Combinations of parts that were weighed."""
        self._around = around
        self._speeds = speeds
        self._feeds = Feeds(speeds)
        self._circuit = circuit
        self._needs: dict[tuple[str, int], Needs] = {}
        self._bounds: dict[tuple[object, ...], float] = {}
        self._thrifty: dict[tuple[int, float], Build] = {}
        self._least_watts: dict[tuple[object, ...], float] = {}
        self._powers: dict[tuple[str, tuple[object, ...]], bool] = {}

    def least(self, cards: Cards, speed: Speed, cost: float) -> Least | None:
        """Return what no computer with the cards is below; None where there is none at all.

        ``cost`` is that of the cards. At best a slot gives each of them its own link, samples
        are always there, and the cheapest and the thriftiest of all other parts go together.
        """
        task = self._task(cards, speed, cost, math.inf)
        base, drives = next(self._bases(task), None), self._around.drives(task.needed)
        if base is None or not drives:
            return None
        link = widest(cards.record)
        return Least(
            cost=cost + base.cost + drives[0].cost + self._least_tail(task) - CENT,  # for rounding
            seconds=min(speed.seconds, self._speeds.seconds(cards, speed, link)),
            watts=self._least_watts_of(task),
        )

    def best(self, cards: Cards, speed: Speed, cost: float, limit: float) -> Outcome | None:
        """Return the cheapest computer on the fastest level within the limit, if there is one.

        ``cost`` is that of the cards.
        """
        task = self._task(cards, speed, cost, limit)
        bases = list(self._bases(task))
        self.considered += len(bases)
        if not bases:
            return None
        drives = self._around.drives(task.needed) or [Drives((), math.inf)]
        links = {self._link(task, base.frame) for base in bases}
        ideal = min(self._speeds.seconds(cards, speed, link) for link in links)
        if (best := self._on_level(task, bases, level(ideal))) is not None:
            return best
        fastest = min(self._fastest(task, base, drives) for base in bases)
        if (best := self._on_level(task, bases, level(fastest))) is not None:
            return best
        some = self._on_level(task, bases, _NEVER)
        if some is None:
            return None
        low, high = level(fastest), level(some.seconds)
        while high - low > 1:  # what is within the limit on one level is so on slower ones
            middle = (low + high) // 2
            found = self._on_level(task, bases, middle)
            if found is None:
                low = middle
            else:
                some, high = found, min(middle, level(found.seconds))
        return self._on_level(task, bases, high)

    def needs(self, cards: Cards, speed: Speed) -> Needs:
        """Return the least that the computer around the cards must have."""
        if cards.key not in self._needs:
            facts = self._speeds.facts(cards)
            assert facts is not None, "cards with a speed have facts"
            self._needs[cards.key] = needs(self._speeds.plan, facts, cards, speed)
        return self._needs[cards.key]

    def _task(self, cards: Cards, speed: Speed, cost: float, limit: float) -> Task:
        needed = self.needs(cards, speed)
        use = use_of(cards, speed, needed, self._speeds.plan)
        return Task(cards, speed, cost, limit, needed, use)

    def _bases(self, task: Task) -> Iterator[Base]:
        """Yield what may stand around the cards within the limit, cheapest first."""
        around = self._around
        if not around.supplies(None, task.cards):
            return
        room = task.limit - task.cost - self._least_tail(task)
        for base in around.bases(task.needed):
            if base.cost > room:
                break
            if around.seats(base.frame, task.cards):
                yield base

    def _least_tail(self, task: Task) -> float:
        """Return what cooler, case and power supply cost at least."""
        around, tdp = self._around, task.cards.record.tdp_w
        watts = (tdp.value if tdp else 0.0) * task.cards.count / COMFORTABLE
        psus = (around.cost("psu", psu) for psu in around.psus if psu.watts >= watts)
        case = around.cost("case", around.cases[0]) if around.cases else math.inf
        cooler = around.cost("cooler", around.coolers[0]) if around.coolers else math.inf
        return min(psus, default=math.inf) + case + cooler

    def _least_watts_of(self, task: Task) -> float:
        """Return what the cards and the thriftiest parts around them draw from the wall."""
        around, key = self._around, (task.needed.cores, task.needed.memory_gib)
        if key not in self._thrifty:
            frames = (base.frame for base in around.bases(task.needed))
            frame = min(frames, key=lambda one: one.cpu.max_power_w or one.cpu.tdp_w or 0.0)
            kit = min(around.kits, key=lambda one: MODULE_W[one.module] * one.modules)
            self._thrifty[key] = Build(cpu=frame.cpu, board=frame.board, memory=((kit, 1),))
        gpus = (BuildGpu(task.cards.record, task.cards.count),)
        drawn = power(replace(self._thrifty[key], gpus=gpus)).sustained.value
        return drawn / max((efficiency_of(psu, self._circuit) for psu in around.psus), default=1.0)

    # Times

    def _fastest(self, task: Task, base: Base, drives: list[Drives]) -> float:
        """Return a bound: the seconds of a step with the most memory and any of the drives."""
        link, cpu = self._link(task, base.frame), base.frame.cpu
        if task.speed.feeding is None:
            return self._speeds.seconds(task.cards, task.speed, link)
        gib = base.memories[-1].gib
        key = (*task.cards.key, link, cpu.id, gib)
        if key not in self._bounds:
            self._bounds[key] = min(
                self._feeds.seconds(task.cards, task.speed, link, cpu, gib, one.records[0])
                for one in drives
            )
        return self._bounds[key]

    def _link(self, task: Task, frame: Frame) -> Link | None:
        if not self._speeds.linked(Link(4, 16), task.cards.count):
            return None
        return self._around.link(frame, task.cards)

    def _seconds(self, task: Task, core: Core, link: Link | None) -> float:
        cpu, gib, drive = core.frame.cpu, core.memory.gib, core.drives.records[0]
        return self._feeds.seconds(task.cards, task.speed, link, cpu, gib, drive)

    def _on_level(self, task: Task, bases: list[Base], wanted: int) -> Outcome | None:
        """Return the cheapest on the level or a faster one."""
        best: Outcome | None = None
        drives = self._around.drives(task.needed)
        if not drives:
            return None
        tail = self._least_tail(task) + task.cost
        for base in bases:
            bound = task.limit if best is None else best.cost - CENT
            if base.cost + drives[0].cost + tail > bound:
                break
            if level(self._fastest(task, base, drives)) > wanted:
                continue
            if not self._around.encased(base.frame, task.cards):
                continue
            for core in self._cores(task, base, drives, wanted):
                bound = task.limit if best is None else best.cost - CENT
                if core.cost + tail <= bound:
                    best = self._completed(task, core, bound, wanted) or best
        return best

    def _cores(self, task: Task, base: Base, drives: list[Drives], wanted: int) -> Iterator[Core]:
        """Yield memory and drives that reach the level, with each memory the cheapest drives."""
        frame = base.frame
        if task.speed.feeding is None:
            memory, drive = base.memories[0], drives[0]
            yield Core(frame, memory, drive, frame.cost + memory.cost + drive.cost)
            return
        link = self._link(task, frame)
        for memory in base.memories:
            for drive in drives:
                core = Core(frame, memory, drive, frame.cost + memory.cost + drive.cost)
                if level(self._seconds(task, core, link)) <= wanted:
                    yield core

    # Cooler, case and power supply

    def _completed(self, task: Task, core: Core, limit: float, wanted: int) -> Outcome | None:
        """Return the cheapest whole computer with the core."""
        around, room = self._around, limit - task.cost - core.cost
        coolers = around.coolers_of(core.frame)
        powering = next(self._powering(task, core), None)
        if not coolers or powering is None:
            return None
        best: Outcome | None = None
        least = around.cost("cooler", coolers[0]) + around.cost("psu", powering)
        for case in around.cases:
            housed = around.cost("case", case)
            if housed + least > room:
                break
            if self._keeps(task, core, case, wanted):
                found = self._encased(task, core, case, room, wanted)
                if found is not None:
                    best, room = found, found.cost - CENT - task.cost - core.cost
        return best

    def _encased(
        self, task: Task, core: Core, case: CaseRecord, room: float, wanted: int
    ) -> Outcome | None:
        """Return the cheapest computer in a case.

        Cooler and supply have to do with the case and nothing with one another, so that it is
        nearly always that with the cheapest of either.
        """
        around, housed = self._around, self._around.cost("case", case)
        best: Outcome | None = None
        for cooler in around.coolers_of(core.frame):
            if housed + around.cost("cooler", cooler) > room:
                break
            if not around.holds(case, cooler):
                continue
            for psu in self._powering(task, core):
                cost = housed + around.cost("cooler", cooler) + around.cost("psu", psu)
                if cost > room:
                    break
                if around.holds(case, psu):
                    build = self._build(task, core, cooler, case, psu)
                    found = self._whole(task, core, build, task.cost + core.cost + cost)
                    if found is not None and level(found.seconds) <= wanted:
                        best, room = found, cost - CENT
                        break
        return best

    def _keeps(self, task: Task, core: Core, case: CaseRecord, wanted: int) -> bool:
        """Return whether the case takes all, with lanes for the cards that keep the level.

        Drives take lanes of cards on some boards, and in a low case the best slot is no use.
        """
        around, frame = self._around, core.frame
        if not around.houses(case, frame, task.cards):
            return False
        seats = around.seated(case, frame, task.cards, core.drives.records)
        if seats is None:
            return False
        link = self._link(task, frame)
        if link is None or link == seats.link:
            return True
        return level(self._seconds(task, core, seats.link)) <= wanted

    def _powering(self, task: Task, core: Core) -> Iterator[PsuRecord]:
        """Yield supplies with the plugs, a fifth to spare and an outlet for it, cheapest first."""
        cpu, memory = core.frame.cpu, core.memory
        kinds = tuple(drive.interface for drive in core.drives.records)
        modules = memory.kit.modules * memory.count
        key = (*task.cards.key, cpu.max_power_w, cpu.tdp_w, memory.kit.module, modules, kinds)
        if key not in self._least_watts:
            self._least_watts[key] = power(self._build(task, core)).recommended_psu_w
        for psu in self._around.psus:
            if psu.watts < self._least_watts[key] or not self._around.supplies(psu, task.cards):
                continue
            if (psu.id, key) not in self._powers:
                build = self._build(task, core, psu=psu)
                self._powers[psu.id, key] = self._allowed(task, build)
            if self._powers[psu.id, key]:
                yield psu

    def _allowed(self, task: Task, build: Build) -> bool:
        """Return whether the build draws what its supply, its outlet and the wishes allow."""
        budget, cap = power(build), self._around.wishes.wall_w
        watts = budget.wall_w or budget.sustained.value
        if build.psu is None or build.psu.watts < budget.recommended_psu_w:
            return False
        if cap is not None and watts > cap:
            return False
        facts = Facts(build, task.use, Placement(), budget)
        said = (check for rule in rules_power.RULES for check in rule(facts))
        return all(check.verdict != "error" for check in said)

    def _build(
        self,
        task: Task,
        core: Core,
        cooler: CoolerRecord | None = None,
        case: CaseRecord | None = None,
        psu: PsuRecord | None = None,
    ) -> Build:
        return Build(
            gpus=(BuildGpu(task.cards.record, task.cards.count),),
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
        said = checks(build, task.use)
        if said and said[0].verdict == "error":
            return None
        budget = power(build)
        watts = budget.wall_w or budget.sustained.value
        linked = self._link(task, core.frame) is not None
        seconds = self._seconds(task, core, link_of(build) if linked else None)
        return Outcome(task.cards, build, said, task.use, cost, seconds, watts)
