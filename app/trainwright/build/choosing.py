"""The best computer around given cards: exact over everything on sale.

Parts are weighed in the order of a bound of their price, and a whole computer is put to all rules
before it counts. A choice is dropped unseen only where even its bound is no better than what
was found.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from trainwright.build.around import Around, Base, Core, Drives, Frame, link_of
from trainwright.build.feeds import Feeds
from trainwright.build.sizing import Needs, needs, use_of
from trainwright.build.speeds import Cards, Link, Speed, Speeds
from trainwright.catalog import CaseRecord, CoolerRecord, PsuRecord
from trainwright.machine.build import Build, BuildGpu, Check, CircuitName, Use
from trainwright.machine.checks import checks
from trainwright.machine.power import COMFORTABLE, power

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
        self._supplies: dict[tuple[object, ...], list[PsuRecord]] = {}

    def best(self, cards: Cards, speed: Speed, cost: float, limit: float) -> Outcome | None:
        """Return the cheapest computer on the fastest level within the limit, if there is one.

        ``cost`` is that of the cards.
        """
        needed = self.needs(cards, speed)
        use = use_of(cards, speed, needed, self._speeds.plan)
        task = Task(cards, speed, cost, limit, needed, use)
        bases = self._bases(task) if self._around.supplies(None, cards) else []
        self.considered += len(bases)
        if not bases:
            return None
        drives = self._around.drives(needed) or [Drives((), math.inf)]
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

    def _bases(self, task: Task) -> list[Base]:
        """Return what may stand around the cards within the limit, cheapest first."""
        around = self._around
        room = task.limit - task.cost - self._least_tail(task)
        found = []
        for base in around.bases(task.needed):
            if base.cost > room:
                break
            if around.seats(base.frame, task.cards):
                found.append(base)
        return found

    def _least_tail(self, task: Task) -> float:
        """Return what cooler, case and power supply cost at least."""
        around, tdp = self._around, task.cards.record.tdp_w
        watts = (tdp.value if tdp else 0.0) * task.cards.count / COMFORTABLE
        psus = (around.cost("psu", psu) for psu in around.psus if psu.watts >= watts)
        case = around.cost("case", around.cases[0]) if around.cases else math.inf
        cooler = around.cost("cooler", around.coolers[0]) if around.coolers else math.inf
        return min(psus, default=math.inf) + case + cooler

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
        best: Outcome | None = None
        wrong: set[frozenset[str]] = set()
        cases = [
            (around.cost("case", case), case)
            for case in around.cases
            if around.houses(case, core.frame, task.cards)
        ]
        psus = [(around.cost("psu", psu), psu) for psu in self._enough(task, core)]
        for cooler in around.coolers_of(core.frame):
            cooled = around.cost("cooler", cooler)
            for housed, case in tuple(cases):
                if not psus or cooled + housed + psus[0][0] > room:
                    break
                if frozenset((cooler.id, case.id)) in wrong:
                    continue
                for supplied, psu in tuple(psus):
                    cost = cooled + housed + supplied
                    if cost > room:
                        break
                    if frozenset((case.id, psu.id)) in wrong:
                        continue
                    build = self._build(task, core, cooler, case, psu)
                    found = self._whole(task, core, build, task.cost + core.cost + cost)
                    if isinstance(found, Outcome):
                        if level(found.seconds) > wanted:
                            continue  # drives take lanes of the cards
                        best, room = found, cost - CENT
                        break
                    if not found:
                        return best
                    wrong.add(found)
                    psus = [one for one in psus if {one[1].id} != found]
                    cases = [one for one in cases if {one[1].id} != found]
                    if psu.id not in found:
                        break
            if not cases or not psus or cooled + cases[0][0] + psus[0][0] > room:
                break
        return best

    def _enough(self, task: Task, core: Core) -> list[PsuRecord]:
        """Return supplies with a fifth to spare, cheapest first."""
        cpu, memory = core.frame.cpu, core.memory
        drawn = cpu.max_power_w or cpu.tdp_w
        kinds = tuple(drive.interface for drive in core.drives.records)
        modules = memory.kit.modules * memory.count
        key = (*task.cards.key, drawn, memory.kit.module, modules, kinds)
        if key not in self._supplies:
            least = power(self._build(task, core)).recommended_psu_w
            self._supplies[key] = [
                psu
                for psu in self._around.psus
                if psu.watts >= least and self._around.supplies(psu, task.cards)
            ]
        return self._supplies[key]

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

    def _whole(self, task: Task, core: Core, build: Build, cost: float) -> Outcome | frozenset[str]:
        """Return the whole computer, or what of cooler, case and supply does not go together.

        That is nothing of them where the rest alone is forbidden.
        """
        self.considered += 1
        budget = power(build)
        watts = budget.wall_w or budget.sustained.value
        cap = self._around.wishes.wall_w
        small = build.psu is not None and build.psu.watts < budget.recommended_psu_w
        if small or (cap is not None and watts > cap):
            return _blamed(build, "W")
        said = checks(build, task.use)
        if said and said[0].verdict == "error":
            return _blamed(build, said[0].rule)
        linked = self._link(task, core.frame) is not None
        seconds = self._seconds(task, core, link_of(build) if linked else None)
        return Outcome(task.cards, build, said, task.use, cost, seconds, watts)


_BLAME = {"G6": ("case", "psu"), "G7": ("cooler", "case"), "S4": ("case",)}
"""Rules that look at several of cooler, case and power supply."""
_BLAME_BY_AREA = {"G": ("case",), "W": ("psu",)}


def _blamed(build: Build, rule: str) -> frozenset[str]:
    """Return the ids of cooler, case and supply that a rule looks at beside the rest."""
    kinds = _BLAME.get(rule, _BLAME_BY_AREA.get(rule[:1], ()))
    parts = {"case": build.case, "psu": build.psu, "cooler": build.cooler}
    return frozenset(part.id for kind in kinds if (part := parts[kind]) is not None)
