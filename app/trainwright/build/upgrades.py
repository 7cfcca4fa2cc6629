"""What to change of a computer: one thing or two, and what must change along.

Every change and every pair of them is timed at a quick look. From the fastest on, what is cheaper
than all that are faster is put to the rules, made to work with another supply, case, cooler or
board where they want one, and evaluated like the plan itself. What the plan does not name stays
as it is, and what cannot be checked for that reason is said.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from trainwright.advise.choose import STORED
from trainwright.advise.taking import with_settings
from trainwright.advise.walk import Sources
from trainwright.build import owning
from trainwright.build.adding import with_parts
from trainwright.build.answer import Part
from trainwright.build.assemble import Row, best_settings, chosen_machine, rows
from trainwright.build.changes import FEEDING, KINDS, Change, Changes, Kind, Tally, forbidden
from trainwright.build.mending import Mended, Mending, unnamed
from trainwright.build.money import Money, amount
from trainwright.build.offers import Market, Offer, Record, summed
from trainwright.build.request import Owned, Request
from trainwright.build.speeds import Cards, Speeds
from trainwright.catalog import GpuRecord, PartKind, find_part
from trainwright.estimate.support import measured
from trainwright.explain import Quantity
from trainwright.machine.build import Build, Check, Use, Way
from trainwright.machine.checks import SEVERITY, checks
from trainwright.machine.choice import MachineChoice
from trainwright.machine.machine import Machine
from trainwright.machine.resolve import catalogued
from trainwright.messages import Message, UserError
from trainwright.plan.evaluate import Facts, Pending, resolve
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.prices import Item, Total, total

WORTH = 0.05
"""Least gain that pays; assumed, as for the next step of money."""
NOTHING = 0.005
"""Change of the rate that is none: less is not shown."""
ALIKE = 0.05
"""Of the price: what is slower must cost so much less to be a choice of its own; assumed."""


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
    """Of the changed computer, gravest first."""
    kinds: tuple[Kind, ...] = ()
    """Both, where two things change together."""
    along: tuple[PartKind, ...] = ()
    """Of the parts, those that must change with them."""
    freed: tuple[Part, ...] = ()
    """What is no longer needed, with what such used parts are sold for, where anyone knows."""
    resale: Total | None = None
    """Of them; None: not asked for, and not counted."""
    idle: Message | None = None
    """Why it brings this work nothing; None where it does."""

    @property
    def replaced(self) -> Message | None:
        """That other cards take the place of the person's own, and why; None where they do not."""
        old = next((part for part in self.freed if part.kind == "gpu"), None)
        new = next((part for part in self.parts if part.kind == "gpu"), None)
        if old is None or new is None:
            return None
        names = {"old": old.name, "old_count": old.count, "new": new.name, "new_count": new.count}
        return Message.of("planner.upgrade.replaced", **names)

    @property
    def paid(self) -> float:
        """What is spent at last."""
        back = self.resale.low if self.resale is not None else None
        return (self.total.expected or 0.0) - (back or 0.0)


@dataclass(frozen=True, slots=True)
class Declined:
    """A kind of change that is not among the answers, and why."""

    kind: Kind
    reason: Message

    @property
    def message(self) -> Message:
        """Both, as one line."""
        kind = Message.of(f"planner.upgrade.kind.{self.kind}")
        return Message.of("planner.upgrade.declined", kind=kind, reason=self.reason)


@dataclass(frozen=True, slots=True)
class Upgrades:
    """The answer: upgrades, best first; none where nothing pays."""

    upgrades: tuple[Upgrade, ...]
    before: Report | None
    """With the best settings; None: the work does not fit."""
    budget: Money | None
    notes: tuple[Message, ...] = ()
    declined: tuple[Declined, ...] = ()
    """Why no change of the other kinds, for itself, is among them."""


def upgrades(
    request: Request,
    sources: Sources = STORED,
    *,
    market: Market | None = None,
    sell: bool = False,
) -> Upgrades:
    """Return the best upgrades of the plan's machine within the budget.

    Whether what is replaced is sold, and so adds to the budget, is for ``sell`` to say: at the
    lowest price that such used parts are known for.

    Raises:
        UserError: the machine is not known, or has several kinds of GPUs.
    """
    return _Upgrading(request, sources, market, sell=sell).answer()


def added(
    request: Request,
    parts: Iterable[Owned],
    sources: Sources = STORED,
    *,
    market: Market | None = None,
    sell: bool = False,
) -> Upgrades:
    """Return what parts bring to the plan's machine: one upgrade, or why there is none.

    Raises:
        UserError: as ``upgrades`` and ``with_parts`` do.
    """
    return _Upgrading(request, sources, market, sell=sell).adding(tuple(parts))


class _Upgrading:
    """One look at a computer, and what it has worked out."""

    def __init__(
        self, request: Request, sources: Sources, market: Market | None, *, sell: bool
    ) -> None:
        found = resolve(request.plan)
        if isinstance(found, Pending):
            raise UserError.of("planner.upgrade-untraced")
        self.plan, self.facts, self.request = request.plan, found, request
        self.now = owning.present(found.machine, request.wishes)
        self.market = market or Market.of(owning.with_owned(request, self.now))
        self.speeds = Speeds(request.plan, sources, found.machine.system)
        self.limit = request.budget.amount if request.budget else float("inf")
        self.before = best_settings(request.plan, found, self.speeds)
        self.changes = Changes(self.now, self.market, self.speeds, request.wishes)
        self.mending = Mending(self.now, self.market, self._use, request.wishes.wall_w)
        self.sell = sell
        self.tally = Tally()

    def answer(self) -> Upgrades:
        """Return the answer."""
        if (declined := self._built_in("gpu")) is not None:
            return declined
        kept = sorted(_undominated(self._kept()), key=_unplaced)
        top = _varied(kept, self.request.top)
        return Upgrades(
            top,
            self.before,
            self.request.budget,
            self.market.notes,
            tuple(self._declined(top)),
        )

    def adding(self, parts: tuple[Owned, ...]) -> Upgrades:
        """Return the computer with the parts and what must change along, whatever it gains."""
        build, kinds = with_parts(self.now, parts)
        if (declined := self._built_in(kinds[0])) is not None:
            return declined
        offers = [(self.market.offer(one.kind, find_part(one.kind, one.id)), one) for one in parts]
        cost = sum(offer.anew.cost(one.count) or 0.0 for offer, one in offers)
        change = Change(kinds, build, cost, self.changes.seconds(build) or float("inf"))
        found = self._whole(change)
        best = (found,) if isinstance(found, Upgrade) else ()
        why = (Declined(kinds[0], found),) if isinstance(found, Message) else ()
        notes = (*self.market.notes, *self._only_used(offer for offer, _ in offers))
        return Upgrades(best, self.before, self.request.budget, notes, why)

    def _built_in(self, kind: Kind) -> Upgrades | None:
        """Return that no card goes in, if so: it is a laptop, a Mac, or a server of modules."""
        record = self.now.gpus[0].record
        takes = record.form in (None, "card") and record.segment not in ("laptop", "integrated")
        if takes or kind not in ("gpu", "more-gpus"):
            return None
        reason = Message.of("planner.upgrade.why.built-in", gpu=record.name)
        declined = (Declined(kind, reason),)
        return Upgrades((), self.before, self.request.budget, declined=declined)

    def _only_used(self, offers: Iterable[Offer[Record]]) -> Iterator[Message]:
        """Yield which parts have a price only as used ones, which are not wished for."""
        for offer in offers:
            used = self.market.used(offer.record) if offer.price is None else None
            if used is not None:
                price = amount(self.market.currency, used.expected)
                yield Message.of("planner.note.only-used", part=offer.record.name, price=price)

    def _whole(self, change: Change) -> Upgrade | Message:
        """Return the change with its figures, or why it cannot or should not be."""
        mended = self.mending.mended(change.build, self.limit - change.cost)
        if mended is None:
            return Message.of("planner.upgrade.why.above")
        if isinstance(mended, Check):
            return forbidden(mended)
        report = self._report(mended.build)
        if report is None:
            return self._unfit(change.kinds[0], mended.build.gpu_count)
        gain = _rate(report) / _rate(self.before) - 1 if self.before else None
        if gain is not None and gain <= -NOTHING:
            return self._slower(mended.build, -gain)
        found = self._upgrade(change, mended, report, gain)
        still = gain is not None and gain < NOTHING
        return replace(found, idle=self._idle(change, report)) if still else found

    def _idle(self, change: Change, report: Report) -> Message | None:
        """Return why a part brings nothing, where that is known."""
        kind = change.kinds[0]
        if kind in FEEDING and not self.changes.fed:
            return Message.of("planner.upgrade.why.not-fed")
        if kind == "more-gpus" and not self.plan.workload.trains:
            return Message.of("planner.upgrade.idle.serving", engine=report.settings.engine)
        return None

    def _unfit(self, kind: Kind, count: int) -> Message:
        """Return why the work does not run with a change."""
        work = self.plan.workload
        if kind != "more-gpus" or not work.trains or self.before is None:
            return Message.of("planner.upgrade.why.no-fit")
        if (whole := work.effective_batch or 1) % count:
            return Message.of("planner.upgrade.why.batch", effective=whole, count=count)
        return Message.of("planner.upgrade.why.copies", count=count)

    def _slower(self, build: Build, loss: float) -> Message:
        """Return that a change makes the work slower, and what it would replace."""
        new, old = build.gpus[0], self.now.gpus[0]
        if new.record.id == old.record.id:
            return Message.of("planner.upgrade.why.slower", loss=loss)
        names = {"new": new.record.name, "old": old.record.name}
        return Message.of("planner.upgrade.why.slower-card", loss=loss, **names)

    def _kept(self) -> Iterator[Upgrade]:
        """Yield what is cheaper than all that is faster."""
        base = self.changes.seconds(self.now) if self.before is not None else None
        cheapest = float("inf")
        for change in self.changes.all():
            gain = base / change.seconds - 1 if base is not None else None
            if gain is not None and gain < WORTH:
                self.tally.little(change, gain)
                continue
            found = self._weighed(change, cheapest)
            if isinstance(found, Upgrade):
                cheapest = found.paid
                yield found

    def _weighed(self, change: Change, cheapest: float) -> Upgrade | None:
        """Return the change with its figures, where it is allowed, paid for and worth it."""
        back = self._resale(change.build)
        spare = (back.low or 0.0) if back is not None else 0.0
        room = self.limit + spare
        enough = (1 - ALIKE) * cheapest + spare
        if change.cost > room:
            self.tally.dear(change, change.cost - spare)
            return None
        if change.cost >= enough:
            self.tally.beaten(change)
            return None
        mended = self.mending.mended(change.build, min(room, enough) - change.cost)
        if isinstance(mended, Check):
            self.tally.forbidden(change, mended)
            return None
        if mended is None:
            beaten = enough < room
            self.tally.beaten(change) if beaten else self.tally.dear(change, change.cost - spare)
            return None
        report = self._report(mended.build)
        gain = _rate(report) / _rate(self.before) - 1 if report and self.before else None
        if report is None or (gain is not None and gain < WORTH):
            self.tally.little(change, gain or 0.0)
            return None
        self.tally.beaten(change)  # as far as others crowd it out
        return self._upgrade(change, mended, report, gain)

    def _upgrade(
        self, change: Change, mended: Mended, report: Report, gain: float | None
    ) -> Upgrade:
        build = mended.build
        bought = list(self._bought(build))
        parts = tuple(
            Part(kind, offer.record.id, offer.record.name, count, offer.price)
            for kind, offer, count in bought
        )
        names = [f"{part.count} × {part.name}" for part in parts]
        machine = _chosen(build, self.now, self.plan)
        said = (*checks(build, self._use(build)), *unnamed(self.now, build))
        more = build.memory != self.now.memory and set(change.kinds) <= {"gpu", "more-gpus"}
        added: tuple[PartKind, ...] = ("memory",) if more else ()
        return Upgrade(
            kind=change.kinds[0],
            change=Message.of("planner.upgrade.buy", parts=names),
            parts=parts,
            total=summed([(offer, count) for _, offer, count in bought], self.market.currency),
            plan=with_settings(
                self._planned(build).model_copy(update={"machine": machine}), report.settings
            ),
            report=report,
            gain=gain,
            checks=tuple(sorted(said, key=lambda check: SEVERITY.index(check.verdict))),
            kinds=change.kinds,
            along=(*added, *mended.along),
            freed=tuple(self._freed(build)),
            resale=self._resale(build),
        )

    def _report(self, build: Build) -> Report | None:
        """Return the work on the changed computer with the best settings; None: does not fit."""
        gpu, facts, plan = build.gpus[0], self.facts, self._planned(build)
        same = _cards(build) == _cards(self.now)
        if not same:
            other = self.speeds.facts(Cards(gpu.record, gpu.count))
            if other is None:
                return None
            facts = other
        machine = catalogued(_chosen(build, self.now, self.plan)).machine
        if same and build.board is self.now.board:
            machine = replace(machine, gpus=self.facts.machine.gpus)
        known = replace(facts, machine=_kept_of(machine, self.facts, build))
        return best_settings(plan, known, self.speeds)

    def _planned(self, build: Build) -> Plan:
        """Return the plan as it runs on the build's cards."""
        if _cards(build) == _cards(self.now):
            return self.plan
        return self.speeds.planned(Cards(build.gpus[0].record, build.gpu_count))

    def _use(self, build: Build) -> Use:
        way: Way = "single"
        if build.gpu_count > 1:
            way = "data-parallel" if self.plan.workload.trains else "inference"
        return Use(way=way, system=self.plan.machine.system)

    def _bought(self, build: Build) -> Iterator[tuple[PartKind, Offer[Record], int]]:
        """Yield what the build has beyond the present one."""
        for kind, record, count in _beyond(build, self.now):
            yield kind, self.market.offer(kind, record).anew, count

    def _freed(self, build: Build) -> Iterator[Part]:
        for kind, record, count in _beyond(self.now, build):
            yield Part(kind, record.id, record.name, count, self.market.used(record))

    def _resale(self, build: Build) -> Total | None:
        if not self.sell:
            return None
        freed = (Item(one.id, one.count, one.price) for one in self._freed(build))
        return total(freed, self.market.currency)

    def _declined(self, top: tuple[Upgrade, ...]) -> Iterator[Declined]:
        """Yield why changes of a kind are not among the answers for themselves."""
        shown = {one.kinds[0] for one in top if len(one.kinds) == 1}
        for kind in KINDS:
            if kind in shown or (kind == "more-gpus" and not self.plan.workload.trains):
                continue
            if kind in FEEDING and not self.changes.fed:
                yield Declined(kind, Message.of("planner.upgrade.why.not-fed"))
            elif kind in FEEDING and not (self.changes.known and self._named(kind)):
                yield Declined(kind, Message.of("planner.upgrade.why.unknown"))
            else:
                reason = self.tally.reason(kind, self.market.currency)
                yield Declined(kind, reason)

    def _named(self, kind: Kind) -> bool:
        """Return whether it is known what the change would have to fit."""
        return kind != "memory" or bool(self.now.memory) or self.now.board is not None


def _undominated(found: Iterable[Upgrade]) -> list[Upgrade]:
    """Return those that no faster one undercuts, fastest first."""
    kept: list[Upgrade] = []
    for one in sorted(found, key=lambda one: (-_sure(one), one.paid)):
        if not kept or one.paid < kept[-1].paid:
            kept.append(one)
    return kept


def _unplaced(one: Upgrade) -> bool:
    """Return whether cards may have no slot of the processor's each: such a change comes later."""
    slots = [check for check in one.checks if check.rule in ("P3", "P6", "P7")]
    starved = any(check.rule != "P3" and check.verdict == "warning" for check in slots)
    return starved or any(check.verdict == "unknown" for check in slots)


def _varied(kept: list[Upgrade], most: int) -> tuple[Upgrade, ...]:
    """Return the first so many, one of each kind before others, in their order."""
    first: dict[tuple[Kind, ...], Upgrade] = {}
    for one in kept:
        first.setdefault(one.kinds, one)
    others = [one for one in kept if one is not first[one.kinds]]
    chosen = [*first.values(), *others][:most]
    return tuple(one for one in kept if one in chosen)


def _chosen(build: Build, now: Build, plan: Plan) -> MachineChoice:
    """Return the changed computer as a plan names it, what was there marked as owned."""
    there = {record.id for _, record, _ in rows(now)}
    stated = build.stated_memory_gib if not build.memory else None
    return chosen_machine(build, plan).model_copy(
        update={
            "memory_gib": stated,
            "circuit": build.circuit,
            "risers": build.risers,
            "bridge_slots": build.bridge_slots,
            "owned": tuple(record.id for _, record, _ in rows(build) if record.id in there),
        }
    )


def _beyond(build: Build, other: Build) -> Iterator[Row]:
    """Yield what the one build has more than the other."""
    have = {(kind, record.id): count for kind, record, count in rows(other)}
    for kind, record, count in rows(build):
        more = count - have.get((kind, record.id), 0)
        if more > 0:
            yield kind, record, more


def _cards(build: Build) -> tuple[str, int]:
    return build.gpus[0].record.id, build.gpus[0].count


def _kept_of(machine: Machine, facts: Facts, build: Build) -> Machine:
    """Return the machine with what the plan says of it beside parts."""
    memory = machine.memory_bytes if build.memory else facts.machine.memory_bytes
    return replace(
        machine,
        memory_bytes=memory,
        cores=machine.cores or facts.machine.cores,
        processor=machine.processor or facts.machine.processor,
    )


def _rate(report: Report) -> float:
    rate = _of_all(report)
    return rate.value if rate is not None else 0.0


def _sure(one: Upgrade) -> float:
    """Return the rate that ranks: the lower end where times rest on data sheets alone."""
    rate, found = _of_all(one.report), find_part("gpu", one.plan.machine.gpus[0].id)
    guessed = isinstance(found, GpuRecord) and not measured(found)
    if rate is None or rate.interval is None or not guessed:
        return rate.value if rate is not None else 0.0
    return rate.interval.low


def _of_all(report: Report) -> Quantity | None:
    time = report.time
    return time.tokens_per_second if report.serving else time.samples_per_second
