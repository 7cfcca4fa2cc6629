"""What must change along with a part: power supply, case, cooler, board.

The cheapest of them that the rules of the resulting computer allow, those that are there before
all. What nobody knows of the computer stays unknown, and is said to be.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from trainwright.build.offers import Market
from trainwright.catalog import (
    BoardRecord,
    CaseRecord,
    CoolerRecord,
    PartKind,
    PartRecord,
    PsuRecord,
)
from trainwright.machine.build import Build, Check, Use
from trainwright.machine.checks import checks
from trainwright.machine.power import power
from trainwright.messages import Message

P = TypeVar("P", bound=PartRecord)
PLACES = "PGS"
"""Areas of rules that another board may please: slots, what lies beside them, drives."""
POLICY = "policy: what nobody names cannot be checked"


@dataclass(frozen=True, slots=True)
class Mended:
    """A changed computer that works, as far as rules can see."""

    build: Build
    cost: float
    """Of what changes along."""
    along: tuple[PartKind, ...]


class Mending:
    """The rules asked about changes of one computer."""

    def __init__(
        self, now: Build, market: Market, use: Callable[[Build], Use], wall_w: float | None
    ) -> None:
        self._now = now
        self._wall_w = wall_w
        self._market = market
        self._use = use
        self._already = {
            (check.rule, check.message.id) for check in checks(now, use(now)) if _forbids(check)
        }
        """What is wrong with the computer as it is speaks against no change."""
        self._least_psu = power(now).recommended_psu_w

    def errors(self, build: Build) -> list[Check]:
        """Return what forbids the changed computer and did not forbid the present one."""
        return [
            check
            for check in checks(build, self._use(build))
            if _forbids(check) and (check.rule, check.message.id) not in self._already
        ]

    def mended(self, build: Build, limit: float) -> Mended | Check | None:
        """Return the cheapest computer with the change that works.

        A check where a rule forbids all of them; None where what must change along costs more
        than ``limit``.
        """
        boards = list(self._boards(build))
        if not boards:
            bare = replace(build, psu=None, case=None, cooler=None)
            return next(iter(self.errors(bare)), self._no_supply(build))
        best: Mended | None = None
        refused: Check | None = None
        dear = False
        for cost, board in boards:
            room = limit if best is None else best.cost
            if cost > room:
                dear = True
                break
            found = self._around(replace(build, board=board), room - cost)
            if isinstance(found, Mended) and (best is None or found.cost + cost < best.cost):
                swapped = board is not build.board and build.board is self._now.board
                along = ("board", *found.along) if swapped else found.along
                best = Mended(found.build, found.cost + cost, along)
            refused = found if isinstance(found, Check) else refused
            dear = dear or found is None
        return best or (None if dear else refused)

    def _boards(self, build: Build) -> Iterator[tuple[float, BoardRecord | None]]:
        """Yield the board, or boards for the same processor and memory where it has no places."""
        bare = replace(build, psu=None, case=None, cooler=None)
        wrong = self.errors(bare) if build.board is not None else []
        if not wrong:
            yield 0.0, build.board
            return
        placed = all(check.rule[0] in PLACES for check in wrong)
        if build.board is None or not placed:
            return
        counted = 0.0
        if build.board is not self._now.board:  # of another socket: it is bought in any case
            counted = self._market.offer("board", build.board).anew.cost(1) or 0.0
        for cost, board in self._offers("board", BoardRecord):
            same = board.socket == build.board.socket and board.lanes_complete
            if same and cost >= counted and not self.errors(replace(bare, board=board)):
                yield cost - counted, board

    def _around(self, build: Build, limit: float) -> Mended | Check | None:
        """Return the cheapest supply, case and cooler."""
        psus = list(self._supplies(build))
        if not psus:
            return self._no_supply(build)
        cases = list(self._cases(build))
        if not cases:
            return self.errors(replace(build, psu=None, cooler=None))[0]
        coolers = list(self._coolers(build))
        best: Mended | None = None
        dear = False
        room = limit
        for housed, case in cases:
            for supplied, psu in psus:
                for cooled, cooler in coolers:
                    cost = housed + supplied + cooled
                    if cost > room or (best is not None and cost >= room):
                        dear = True
                        break
                    whole = replace(build, case=case, psu=psu, cooler=cooler)
                    if not self.errors(whole):
                        best, room = Mended(whole, cost, _along(build, whole)), cost
                        break
        if best is None and not dear:
            return next(iter(self.errors(build)), self._no_supply(build))
        return best

    def _supplies(self, build: Build) -> Iterator[tuple[float, PsuRecord | None]]:
        yield from self._fitting(build, "psu", PsuRecord, self._feeds, case=None, cooler=None)

    def _cases(self, build: Build) -> Iterator[tuple[float, CaseRecord | None]]:
        yield from self._fitting(build, "case", CaseRecord, self._allows, psu=None, cooler=None)

    def _coolers(self, build: Build) -> Iterator[tuple[float, CoolerRecord | None]]:
        """Yield the cooler; others where it does not fit or carry a new processor."""
        if build.cpu is self._now.cpu or self._now.cooler is None:
            yield 0.0, build.cooler
            return
        yield from self._fitting(build, "cooler", CoolerRecord, self._cools, case=None, psu=None)

    def _fitting(
        self,
        build: Build,
        kind: PartKind,
        made: type[P],
        fits: Callable[[Build], bool],
        **without: None,
    ) -> Iterator[tuple[float, P | None]]:
        """Yield the part that is there, at no cost, and others; the parts ``without`` left out."""
        own = getattr(self._now, kind)
        if own is None:
            yield 0.0, None
            return
        for cost, part in ((0.0, own), *self._offers(kind, made)):
            if fits(replace(build, **{kind: part}, **without)):  # type: ignore[arg-type]
                yield cost, part

    def _offers(self, kind: PartKind, made: type[P]) -> Iterator[tuple[float, P]]:
        found = [
            (cost, offer.record)
            for offer in self._market.offers(kind)
            if isinstance(offer.record, made) and (cost := offer.anew.cost(1)) is not None
        ]
        yield from sorted(found, key=lambda one: (one[0], one[1].id))

    def _allows(self, build: Build) -> bool:
        return not self.errors(build)

    def _cools(self, build: Build) -> bool:
        """Return whether the cooler is mounted and strong enough."""
        said = checks(replace(build, gpus=()), self._use(build))
        return not any(one.rule == "G7" and one.verdict in ("error", "warning") for one in said)

    def _feeds(self, build: Build) -> bool:
        """Return whether the supply has a fifth to spare, or no less than it had."""
        psu, budget = build.psu, power(build)
        need, watts = budget.recommended_psu_w, budget.wall_w or budget.sustained.value
        enough = psu is None or psu.watts >= need
        kept = psu is self._now.psu and need <= self._least_psu
        capped = self._wall_w is not None and watts > self._wall_w
        return (enough or kept) and not capped and not self.errors(build)

    def _no_supply(self, build: Build) -> Check:
        need = power(build).recommended_psu_w
        message = Message.of("planner.upgrade.no-supply", need=need)
        return Check("W6", "error", message, {"need": need}, POLICY)


def _forbids(check: Check) -> bool:
    return check.verdict == "error"


def _along(build: Build, whole: Build) -> tuple[PartKind, ...]:
    kinds: tuple[PartKind, ...] = ("psu", "case", "cooler")
    return tuple(kind for kind in kinds if getattr(build, kind) is not getattr(whole, kind))


def unnamed(now: Build, build: Build) -> Iterator[Check]:
    """Yield what cannot be checked of a change, for nobody names a part of the computer."""
    cards = build.gpus[0]
    more = cards.record.id != now.gpus[0].record.id or cards.count != now.gpus[0].count
    name = f"{cards.count} × {cards.record.name}"
    if now.psu is None and (more or build.cpu is not now.cpu):
        yield _unnamed("W6", "psu", need=power(build).recommended_psu_w, gpu=name)
    if now.case is None and (more or build.board is not now.board):
        yield _unnamed("G1", "case", gpu=name)
    if now.board is None and build.board is None:
        if cards.count > now.gpus[0].count:  # as many take the slots that are in use
            yield _unnamed("P3", "board", gpu=name)
        if build.cpu is not now.cpu and build.cpu is not None:
            yield _unnamed("C1", "board-cpu", cpu=build.cpu.name)
        if len(build.drives) > len(now.drives):
            yield _unnamed("S1", "board-drive", drive=build.drives[0].name)
    if now.cooler is None and build.cpu is not now.cpu and build.cpu is not None:
        yield _unnamed("G7", "cooler", cpu=build.cpu.name)


def _unnamed(rule: str, what: str, **values: object) -> Check:
    part = what.partition("-")[0]
    message = Message.of(f"planner.upgrade.unnamed-{what}", **values)
    return Check(rule, "unknown", message, values, POLICY, None, (part,))
