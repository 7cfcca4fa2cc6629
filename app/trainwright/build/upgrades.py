"""What to change of a computer: single parts and what must change with them.

Each change is put around what stays, made to work with another supply or case where rules want
one, and evaluated like the plan itself. What the plan does not name stays as it is, and rules
that need it say that they cannot check.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from trainwright.advise.choose import STORED
from trainwright.advise.search import Sources
from trainwright.build.answer import Part
from trainwright.build.assemble import best_settings, chosen_machine, rows
from trainwright.build.money import Money
from trainwright.build.offers import Market, Offer, Record, summed
from trainwright.build.request import Owned, Request, Wishes
from trainwright.build.speeds import Cards, Speeds
from trainwright.catalog import (
    CaseRecord,
    CpuRecord,
    DriveRecord,
    MemoryRecord,
    PartKind,
    PsuRecord,
)
from trainwright.machine.build import Build, BuildGpu, Check, Use
from trainwright.machine.checks import checks
from trainwright.machine.machine import Machine
from trainwright.machine.power import power
from trainwright.machine.resolve import catalogued
from trainwright.messages import Message, UserError
from trainwright.plan.evaluate import Facts, Pending, resolve
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.prices import Total

Kind = Literal["gpu", "more-gpus", "memory", "drive", "cpu"]

WORTH = 0.05
"""Least gain that pays; assumed, as for the next step of money."""
TRIED = 12
"""Cards whose time is worked out in full, best first by the quick look; assumed."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A change, what it costs and what it gains."""

    kind: Kind
    change: Message
    parts: tuple[Part, ...]
    """To buy, with what must change along."""
    total: Total
    plan: Plan
    """With the change."""
    report: Report
    gain: float | None
    """In rate; None: the work did not fit before, and does now."""
    checks: tuple[Check, ...]
    """Of the changed computer."""


@dataclass(frozen=True, slots=True)
class Upgrades:
    """The answer: upgrades, best first; none where nothing pays."""

    upgrades: tuple[Upgrade, ...]
    before: Report | None
    """With the best settings; None: the work does not fit."""
    budget: Money | None
    notes: tuple[Message, ...] = ()


def upgrades(
    request: Request, sources: Sources = STORED, *, market: Market | None = None
) -> Upgrades:
    """Return the best upgrades of the plan's machine within the budget.

    Raises:
        UserError: the machine is not known, or has several kinds of GPUs.
    """
    return _Upgrading(request, sources, market).answer()


class _Upgrading:
    """One look at a computer, and what it has worked out."""

    def __init__(self, request: Request, sources: Sources, market: Market | None) -> None:
        found = resolve(request.plan)
        if isinstance(found, Pending):
            raise UserError.of("planner.upgrade-untraced")
        self.plan, self.facts, self.request = request.plan, found, request
        self.now = present(found.machine)
        self.market = market or Market.of(with_owned(request, self.now))
        self.speeds = Speeds(request.plan, sources, found.machine.system)
        self.limit = request.budget.amount if request.budget else float("inf")
        self.before = best_settings(request.plan, found, self.speeds)

    def answer(self) -> Upgrades:
        """Return the answer."""
        found = [one for kind, build in self._changes() if (one := self._upgrade(kind, build))]
        paying = [one for one in found if one.gain is None or one.gain >= WORTH]
        paying.sort(key=lambda one: (one.gain is not None, -_rate(one.report), _cost(one)))
        kept: list[Upgrade] = []
        for one in paying:
            if not any(_cost(other) <= _cost(one) for other in kept):
                kept.append(one)
        top = tuple(kept[: self.request.top])
        return Upgrades(top, self.before, self.request.budget, self.market.notes)

    def _changes(self) -> Iterator[tuple[Kind, Build]]:
        now = self.now
        yield from self._cards()
        for memory in self._larger_memory():
            yield "memory", replace(now, memory=memory)
        for drive in self._faster_drives():
            yield "drive", replace(now, drives=(drive, *now.drives))
        yield from self._processors()

    def _processors(self) -> Iterator[tuple[Kind, Build]]:
        """Yield processors with more cores for the same board, where samples are made."""
        own = self.now.cpu
        if own is None or not self._fed:
            return
        for offer in self.market.offers("cpu"):
            cpu = offer.record
            if isinstance(cpu, CpuRecord) and cpu.socket == own.socket and cpu.cores > own.cores:
                yield "cpu", replace(self.now, cpu=cpu)

    @property
    def _fed(self) -> bool:
        return self.before is not None and self.before.time.pipeline is not None

    def _cards(self) -> Iterator[tuple[Kind, Build]]:
        """Yield the cards that are fastest at a quick look."""
        own = self.now.gpus[0]
        quick: list[tuple[float, Kind, Build]] = []
        for record in sorted(self.market.cards(), key=lambda one: -one.memory_bytes.value):
            for count in range(1, 5) if self.plan.workload.trains else (1,):
                more = record.id == own.record.id and count > own.count
                if record.id == own.record.id and not more:
                    continue
                cost = self.market.offer("gpu", record).cost(count)
                if cost is None or cost > self.limit:
                    continue
                cards = Cards(record, count)
                speed = self.speeds.quick(cards)
                if speed is None or record.id in self.speeds.unproven - {own.record.id}:
                    break
                build = replace(self.now, gpus=(BuildGpu(record, count),))
                quick.append((speed.seconds, "more-gpus" if more else "gpu", build))
        quick.sort(key=lambda one: one[0])
        for _, kind, build in quick[:TRIED]:
            yield kind, build

    def _larger_memory(self) -> Iterator[tuple[tuple[MemoryRecord, int], ...]]:
        """Yield twice the kits, where the page cache or what is offloaded may gain."""
        if self._fed and self.now.memory:
            yield tuple((kit, 2 * count) for kit, count in self.now.memory)

    def _faster_drives(self) -> Iterator[DriveRecord]:
        if not self._fed:
            return
        slow = self.now.drives[0].read_mb_s if self.now.drives else 0.0
        size = (self.now.drives[0].capacity_gb or 0.0) if self.now.drives else 0.0
        for offer in self.market.offers("storage"):
            drive = offer.record
            if not isinstance(drive, DriveRecord) or drive.form != "m.2":
                continue
            holds = (drive.capacity_gb or 0.0) >= size and drive.read_mb_s > slow
            if holds and (offer.cost(1) or 0.0) <= self.limit:
                yield drive

    def _upgrade(self, kind: Kind, build: Build) -> Upgrade | None:
        """Return the change with its figures; None where it is forbidden or too dear."""
        whole = self._mended(build)
        if whole is None:
            return None
        bought = self._bought(whole)
        total = summed([(offer, count) for _, offer, count in bought], self.market.currency)
        if (total.expected or 0.0) > self.limit or total.unpriced:
            return None
        report = self._report(whole)
        if report is None:
            return None
        gain = _rate(report) / _rate(self.before) - 1 if self.before else None
        parts = tuple(
            Part(one, offer.record.id, offer.record.name, count, offer.price)
            for one, offer, count in bought
        )
        names = [f"{part.count} × {part.name}" for part in parts]
        machine = chosen_machine(whole, self.plan)
        return Upgrade(
            kind,
            Message.of("planner.upgrade.buy", parts=names),
            parts,
            total,
            self.plan.model_copy(update={"machine": machine}),
            report,
            gain,
            self._checks(whole),
        )

    def _report(self, build: Build) -> Report | None:
        gpu = build.gpus[0]
        facts = self.facts
        if (gpu.record.id, gpu.count) != (self.now.gpus[0].record.id, self.now.gpus[0].count):
            other = self.speeds.facts(Cards(gpu.record, gpu.count))
            if other is None:
                return None
            facts = other
        machine = catalogued(chosen_machine(build, self.plan)).machine
        known = replace(facts, machine=_kept(machine, self.facts, build))
        return best_settings(self.plan, known, self.speeds)

    def _checks(self, build: Build) -> tuple[Check, ...]:
        way = "inference" if not self.plan.workload.trains else "data-parallel"
        return checks(build, Use(way=way if build.gpu_count > 1 else "single"))  # type: ignore[arg-type]

    def _mended(self, build: Build) -> Build | None:
        """Return the build with another supply or case where it needs one; None: nothing helps."""
        if build.psu is not None and build.psu.watts < power(build).recommended_psu_w:
            build = replace(build, psu=self._supply(build))
            if build.psu is None:
                return None
        wrong = self._errors(build)
        if any(rule.startswith("W") for rule in wrong) and build.psu is not None:
            build = replace(build, psu=self._supply(build))
        if any(rule.startswith("G") for rule in self._errors(build)) and build.case is not None:
            build = replace(build, case=self._case(build) or build.case)
        return None if (build.psu is None and self.now.psu) or self._errors(build) else build

    def _errors(self, build: Build) -> set[str]:
        return {check.rule for check in self._checks(build) if check.verdict == "error"}

    def _supply(self, build: Build) -> PsuRecord | None:
        offers = [o for o in self.market.offers("psu") if o.cost(1) is not None]
        for offer in sorted(offers, key=lambda one: one.cost(1) or 0.0):
            psu = offer.record
            if isinstance(psu, PsuRecord) and psu.watts >= power(build).recommended_psu_w:
                wrong = self._errors(replace(build, psu=psu))
                if not any(rule.startswith("W") for rule in wrong):
                    return psu
        return None

    def _case(self, build: Build) -> CaseRecord | None:
        offers = [o for o in self.market.offers("case") if o.cost(1) is not None]
        for offer in sorted(offers, key=lambda one: one.cost(1) or 0.0):
            case = offer.record
            if isinstance(case, CaseRecord) and not self._errors(replace(build, case=case)):
                return case
        return None

    def _bought(self, build: Build) -> list[tuple[PartKind, Offer[Record], int]]:
        """Return what the build has beyond the present one."""
        have = {(kind, record.id): count for kind, record, count in rows(self.now)}
        found = []
        for kind, record, count in rows(build):
            more = count - have.get((kind, record.id), 0)
            if more > 0:
                offer = replace(self.market.offer(kind, record), owned=0)
                found.append((kind, offer, more))
        return found


def present(machine: Machine) -> Build:
    """Return the computer that a plan names, or that was probed, as parts.

    Raises:
        UserError: it has no GPUs, or several kinds.
    """
    if len(machine.gpus) != 1:
        raise UserError.of("planner.upgrade-mixed", kinds=len(machine.gpus))
    if machine.parts is not None:
        return machine.parts
    gpu = machine.gpu
    return Build(
        gpus=(BuildGpu(gpu.record, gpu.count, gpu.power_limit_w),),
        cpu=machine.processor,
        drives=tuple(drive for drive in machine.storage if drive is not None),
    )


def with_owned(request: Request, build: Build) -> Request:
    """Return the request with the computer's parts as those that are there."""
    owned = tuple(Owned(kind, record.id, count) for kind, record, count in rows(build))
    wishes: Wishes = replace(request.wishes, owned=(*request.wishes.owned, *owned))
    return replace(request, wishes=wishes)


def _kept(machine: Machine, facts: Facts, build: Build) -> Machine:
    """Return the machine with what the plan says of it beside parts."""
    memory = machine.memory_bytes if build.memory else facts.machine.memory_bytes
    return replace(
        machine,
        memory_bytes=memory,
        cores=machine.cores or facts.machine.cores,
        processor=machine.processor or facts.machine.processor,
    )


def _rate(report: Report) -> float:
    time = report.time
    rate = time.tokens_per_second if report.serving else time.samples_per_second
    return rate.value if rate is not None else 0.0


def _cost(upgrade: Upgrade) -> float:
    return upgrade.total.expected or 0.0
