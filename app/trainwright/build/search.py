"""The search for the best computers: cards decide time and memory, then all around them is chosen.

For each kind and number of cards the answer is exact over the catalog: the cheapest of the fastest
computers within the budget. They are ranked by time, a time that no measurement confirms by its
upper end; of those that another one beats in time, price and watts nothing is shown.

Exact is meant of what is weighed: one to four cards of one kind, two or more of them on boards
whose lanes are all known; parts with a price; memory that fills its channels at full rate, drives
that do not stall and coolers that carry the heat, where such are sold; several drives where none
alone is large enough; times within one percent of one another count as the same.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from trainwright.advise.choose import STORED
from trainwright.advise.search import Sources
from trainwright.build import wishing
from trainwright.build.answer import Builds, Candidate, Point, Step
from trainwright.build.around import Around
from trainwright.build.assemble import assembled
from trainwright.build.choosing import Choosing, Least, Outcome, level
from trainwright.build.doubt import counted, doubted
from trainwright.build.offers import Market
from trainwright.build.request import Request
from trainwright.build.run import Run
from trainwright.build.sizing import steps
from trainwright.build.speeds import Cards, Speeds, shares
from trainwright.build.works import Together, Works, plans_of, works_of
from trainwright.catalog import GpuRecord
from trainwright.machine.build import CircuitName
from trainwright.machine.power import CIRCUITS
from trainwright.messages import Message
from trainwright.prices import Currency
from trainwright.workload.settings import Effect

COUNTS = (1, 2, 3, 4)
"""Cards worth weighing in one case; assumed: beyond four, servers begin."""
BEYOND = 2.0
"""Budgets up to which the trade of money against time is shown; assumed."""
LOOKED = 5
"""Computers that are worked out in full at least: their times are others than at the first look, so
that the fewest asked for are the first of the same list; assumed."""
STEP = 0.05
"""Least gain that is worth naming as the next step of money; assumed."""
_HOUSE: dict[Currency, CircuitName] = {"USD": "us-120v-15a", "KRW": "kr-220v-16a"}
"""Usual circuit of a room in the currency's country."""
_LAID: CircuitName = "us-240v-20a"
LAID_FROM = 20_000.0
"""USD from which a circuit of 240 V is laid for the computer; assumed: an electrician costs a
twentieth of it."""
TENTH = 1.1
"""The budget and a tenth of it: the answer says what that much money would bring."""


_ANY = Least(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """Cards that may do the work."""

    cards: Cards
    cost: float
    """Of the cards alone."""
    least: Least
    work: Together | None
    """None: not timed yet."""
    place: tuple[int, int]
    """Among all: by memory, then by count."""


def search(request: Request, sources: Sources = STORED, *, market: Market | None = None) -> Builds:
    """Return the best computers for a request.

    Raises:
        UserError: the wishes contradict one another, or the plan is none that can be answered.
    """
    wishing.agree(request)
    market = market or Market.of(request)
    system = request.wishes.system
    speeds = [Speeds(plan, sources, system) for plan in plans_of(request)]
    works, run = works_of(request, speeds)
    found = _Search(request, market, works, run).answer()
    # Where nothing that is proven and can be checked is within reach, less is better than nothing.
    if not found.builds and works.unproven:
        found = _Search(request, market, works, run, trial=True).answer()
    if not found.builds:
        found = _Search(request, market, works, run, trial=True, sound=False).answer()
    return found


class _Search:
    """One search, and what it has worked out so far."""

    def __init__(
        self,
        request: Request,
        market: Market,
        works: Works,
        run: Run,
        *,
        sound: bool = True,
        trial: bool = False,
    ) -> None:
        """Take what no rule forbids; ``trial``: cards too that PyTorch runs on only as one."""
        wishes = request.wishes
        self.request = request
        self.run = run
        self.limit = request.budget.amount if request.budget else math.inf
        self.market = market
        self.works = works
        self.trial = trial
        self.around = Around(market, wishes, sound=sound)
        self.circuit = wishes.circuit or self._circuit()
        self.choosing = Choosing(self.around, self.circuit)

    def _circuit(self) -> CircuitName:
        """Return the circuit where nobody names one."""
        if self.market.currency == "USD" and LAID_FROM <= self.limit < math.inf:
            return _LAID
        return _HOUSE[self.market.currency]

    def answer(self) -> Builds:
        """Return the answer."""
        choices = list(self._choices())
        far, within = self._unchanged(*self._proven(*self._outcomes(choices)))
        ladder = _undominated([*within, *far])
        timely = [one for one in within if self.run.in_time(one.seconds)]
        most = max(self.request.top, LOOKED)
        builds = self._candidates(_undominated(timely or within), ladder, most)
        punctual = [one for one in builds if self.run.ends(one.seconds)]
        late = self._late(builds, ladder) if builds and not punctual else ()
        builds = punctual or builds
        builds = doubted(sorted(builds, key=counted))
        cheapest = None if builds else self._cheapest(choices, [*within, *far], ladder)
        return Builds(
            builds=tuple(builds[: self.request.top]),
            front=tuple(self._points(ladder, builds)),
            cheapest=cheapest,
            budget=self.request.budget,
            currency=self.market.currency,
            notes=(*self._notes(within), *late, *self._tenth(builds, ladder)),
            considered=self.choosing.considered,
        )

    def _outcomes(
        self, choices: list[_Choice], *, every: bool = False
    ) -> tuple[list[Outcome], list[Outcome]]:
        """Return (the best with each choice of cards whatever the budget, the best within).

        Choices that a computer rules out are left alone, unless ``every`` one is wanted. It comes
        before them here: it is faster. Several cards are timed only when their turn comes.
        """
        far: dict[tuple[int, int], Outcome] = {}
        within: dict[tuple[int, int], Outcome] = {}
        waiting = [(one.least.seconds, one.place, one) for one in choices]
        heapify(waiting)
        while waiting:
            _, place, choice = heappop(waiting)
            known = (*within.values(), *far.values())
            if choice.least.cost > BEYOND * self.limit:
                continue
            if not every and any(self._rules_out(one, choice) for one in known):
                continue
            if choice.work is None:
                if (timed := self._timed(choice)) is not None:
                    heappush(waiting, (timed.least.seconds, place, timed))
                continue
            best = self._best(choice, BEYOND * self.limit)
            if best is not None and best.cost > self.limit:
                far[place] = best
                best = self._best(choice, self.limit)
            if best is not None:
                within[place] = best
        if not (far or within):
            return self._descending(choices), []
        return [far[one] for one in sorted(far)], [within[one] for one in sorted(within)]

    def _rules_out(self, one: Outcome, choice: _Choice) -> bool:
        """Return whether a computer beats all that there are with some cards.

        One that is left out where others do the work speaks against none of those.
        """
        unproven, least = self.works.unproven, choice.least
        if self._effect(one.cards) > (choice.work.effect if choice.work else Effect.SAME):
            return False
        if one.cards.record.id in unproven and choice.cards.record.id not in unproven:
            return False
        return one.counted < least.seconds and one.cost <= least.cost and one.watts <= least.watts

    def _proven(
        self, far: list[Outcome], within: list[Outcome]
    ) -> tuple[list[Outcome], list[Outcome]]:
        """Leave cards out that PyTorch runs on as a trial, where another computer is within."""
        proven = [
            [one for one in some if one.cards.record.id not in self.works.unproven]
            for some in (far, within)
        ]
        return (far, within) if within and not proven[1] else (proven[0], proven[1])

    def _unchanged(
        self, far: list[Outcome], within: list[Outcome]
    ) -> tuple[list[Outcome], list[Outcome]]:
        """Keep the cards within the budget that change least of the training."""
        least = min((self._effect(one.cards) for one in within), default=None)
        if least is None:
            return far, within
        kept = [[one for one in some if self._effect(one.cards) <= least] for some in (far, within)]
        return kept[0], kept[1]

    def _effect(self, cards: Cards) -> Effect:
        work = self.works.quick(cards)
        return work.effect if work is not None else Effect.SAME

    def _descending(self, choices: list[_Choice]) -> list[Outcome]:
        """Return computers that do the work, each cheaper than the one before, the cheapest last.

        Nothing is within reach of the budget, so that only this is worth knowing.
        """
        found: list[Outcome] = []
        timed = [one for choice in choices if (one := self._timed(choice)) is not None]
        for choice in sorted(timed, key=lambda one: one.cost):
            best = self._best(choice, found[-1].cost if found else math.inf)
            found += [best] if best is not None else []
        return found

    def _cheapest(
        self, choices: list[_Choice], found: list[Outcome], ladder: list[Outcome]
    ) -> Candidate | None:
        """Return the cheapest computer that does the work."""
        by_cost = sorted(found, key=lambda one: one.cost)
        if known := self._candidates(by_cost[:1], ladder, 1):
            return known[0]
        # What it ruled out counts again, for the work does not fit on it after all.
        far, within = self._proven(*self._outcomes(choices, every=True))
        by_cost = sorted([*within, *far], key=lambda one: one.cost)
        return next(iter(self._candidates(by_cost, ladder, 1)), None)

    def _best(self, choice: _Choice, limit: float) -> Outcome | None:
        if choice.least.cost > limit or choice.work is None:
            return None
        return self.choosing.best(choice.cards, choice.work, choice.cost, limit)

    def _choices(self) -> Iterator[_Choice]:
        """Yield cards that do the work, those with the most memory first, and several of them."""
        wishes = self.request.wishes
        first, *others = (wishes.gpus,) if wishes.gpus else COUNTS
        trains = self.works.trains
        if not self.works.several:
            others = []
        for number, record in enumerate(sorted(self.market.cards(), key=_memory, reverse=True)):
            if not self.trial and self.works.trial(record):
                continue
            choice = self._choice(record, first, number)
            if choice is not None:
                yield choice
            if choice is not None and (self._whole(choice) or not shares(record)):
                # One card serves where the model fits on it: more of them work in turn.
                yield from self._several(choice, others if trains else ())
            elif shares(record):
                several = (self._choice(record, count, number) for count in others)
                yield from (one for one in several if one is not None)

    def _whole(self, choice: _Choice) -> bool:
        """Return whether more of the cards would do the same work, each on a copy of its own."""
        work = choice.work
        return work is not None and work.effect is Effect.SAME

    def _choice(self, record: GpuRecord, count: int, number: int) -> _Choice | None:
        cost = self._cost(record, count)
        if cost is None:
            return None
        return self._timed(_Choice(Cards(record, count), cost, _ANY, None, (number, count)))

    def _cost(self, record: GpuRecord, count: int) -> float | None:
        """Return what so many cards cost; None where nobody knows, and money plays a part."""
        cost = self.market.offer("gpu", record).cost(count)
        return 0.0 if cost is None and self.request.budget is None else cost

    def _several(self, one: _Choice, counts: Iterable[int]) -> Iterator[_Choice]:
        """Yield more of the same cards, not timed, bounded by a single one.

        So many take at least its time over their number, and around them nothing is cheaper
        or thriftier than around it.
        """
        record, (number, _) = one.cards.record, one.place
        for count in counts:
            cost = self._cost(record, count)
            if cost is None:
                continue
            least = Least(
                one.least.cost + cost - one.cost,
                one.least.seconds / count,
                self.choosing.least_watts(one.least, one.cards, count),
            )
            yield _Choice(Cards(record, count), cost, least, None, (number, count))

    def _timed(self, choice: _Choice) -> _Choice | None:
        """Return the choice with its time; None where the work does not run on the cards."""
        if choice.work is not None:
            return choice
        work = self.works.quick(choice.cards)
        least = self.choosing.least(choice.cards, work, choice.cost) if work else None
        return replace(choice, work=work, least=least) if least is not None else None

    def _candidates(
        self, outcomes: list[Outcome], ladder: list[Outcome], most: int
    ) -> list[Candidate]:
        """Return the first so many with their figures; what does not fit after all is left out."""
        found: list[Candidate] = []
        for outcome in outcomes:
            if len(found) == most:
                break
            candidate = assembled(self._finished(outcome), self.works, self.request, self.market)
            if candidate is not None:
                step = self._next(outcome, ladder)
                found.append(replace(candidate, next_step=step))
        return found

    def _finished(self, outcome: Outcome) -> Outcome:
        """Return the same cards with what experts take around them, as far as money is left."""
        cards, work = outcome.cards, self.works.quick(outcome.cards)
        cost = self._cost(cards.record, cards.count)
        if outcome.cost > self.limit or work is None or cost is None:
            return outcome
        least = self.choosing.needs(cards, work)
        best, taken = outcome, least
        for wanted in steps(least, cards):
            needed = wanted(taken)
            found = self.choosing.best(cards, work, cost, self.limit, needed)
            if found is not None and level(found.seconds) <= level(outcome.seconds):
                best, taken = found, needed
        return best

    def _tenth(self, builds: list[Candidate], ladder: list[Outcome]) -> Iterator[Message]:
        """Yield what a tenth more of money would bring."""
        if not builds or math.isinf(self.limit):
            return
        now = min(map(counted, builds))
        near = [one for one in ladder if self.limit < one.cost <= TENTH * self.limit]
        best = min(near, key=lambda one: one.counted, default=None)
        gain = now / self.run.seconds(best.counted) - 1 if best is not None else 0.0
        if best is None or gain < STEP:
            yield Message.of("planner.note.tenth-nothing")
            return
        price = Message.of(f"planner.amount.{self.market.currency.lower()}", amount=best.cost)
        name, count = best.cards.record.name, best.cards.count
        yield Message.of("planner.note.tenth", gpu=name, count=count, price=price, gain=gain)

    def _next(self, outcome: Outcome, ladder: list[Outcome]) -> Step | None:
        """Return the cheapest computer that is faster by something that one notices."""
        goal = outcome.counted / (1 + STEP)
        better = [one for one in ladder if one.counted <= goal and one.cost > outcome.cost]
        if not better:
            return None
        next_one = min(better, key=lambda one: one.cost)
        return Step(
            _change(outcome, next_one),
            next_one.cost - outcome.cost,
            outcome.counted / next_one.counted - 1,
        )

    def _points(self, ladder: list[Outcome], builds: list[Candidate]) -> Iterator[Point]:
        known = {(c.build.gpus[0].record.id, c.build.gpu_count): c for c in builds}
        for one in sorted(ladder, key=lambda one: one.cost):
            candidate = known.get(one.cards.key) if one.cost <= self.limit else None
            yield Point(
                gpu=one.cards.record.id,
                count=one.cards.count,
                price=one.cost,
                seconds=self.run.seconds(one.seconds),
                watts=one.watts,
                within=one.cost <= self.limit,
                candidate=candidate,
            )

    def _late(self, builds: list[Candidate], ladder: list[Outcome]) -> Iterator[Message]:
        """Yield what there is to say of a deadline that no computer within the budget keeps."""
        deadline = self.run.deadline
        if self.run.steps is None:
            yield Message.of("planner.note.deadline-unknown", deadline=deadline)
            return
        seconds = min(one.seconds or math.inf for one in builds)
        yield Message.of("planner.note.late", deadline=deadline, seconds=seconds)
        timely = [one for one in ladder if self.run.in_time(one.seconds)]
        if timely:
            yield self._in_time(min(timely, key=lambda one: one.cost))

    def _in_time(self, one: Outcome) -> Message:
        price = Message.of(f"planner.amount.{self.market.currency.lower()}", amount=one.cost)
        cards = one.cards
        return Message.of(
            "planner.note.in-time", gpu=cards.record.name, count=cards.count, price=price
        )

    def _notes(self, within: list[Outcome]) -> Iterator[Message]:
        yield from self.market.notes
        if self.circuit == _LAID and self.request.wishes.circuit is None:
            line = CIRCUITS[_LAID]
            yield Message.of("planner.note.circuit", volts=line.volts, amps=line.amps)
        if self.works.untraced:
            yield Message.of("planner.note.untraced", gpus=sorted(self.works.untraced))
        if any(one.cards.record.id in self.works.unproven for one in within):
            yield Message.of("planner.note.only-unproven")
        elif self.works.unproven:
            yield Message.of("planner.note.unproven", gpus=sorted(self.works.unproven))


def _memory(record: GpuRecord) -> float:
    return record.memory_bytes.value


def _undominated(outcomes: list[Outcome]) -> list[Outcome]:
    """Return those that none beats in time, price and watts together, in their rank."""
    ordered = sorted(outcomes, key=lambda one: (one.counted, one.cost, one.unknown, one.watts))
    kept: list[Outcome] = []
    for one in ordered:
        if not any(_beats(other, one) for other in kept):
            kept.append(one)
    return kept


def _beats(one: Outcome, other: Outcome) -> bool:
    return one.seconds <= other.seconds and one.cost <= other.cost and one.watts <= other.watts


def _change(before: Outcome, after: Outcome) -> Message:
    """Return what the dearer computer has in place of something."""
    old, new = before.cards, after.cards
    if old.key == new.key:
        return Message.of("planner.step.around", parts=_differing(before, after))
    return Message.of(
        "planner.step.cards",
        old=old.record.name,
        new=new.record.name,
        old_count=old.count,
        new_count=new.count,
    )


def _differing(before: Outcome, after: Outcome) -> list[str]:
    pairs = [
        (before.build.cpu, after.build.cpu),
        (before.build.board, after.build.board),
        (before.build.psu, after.build.psu),
    ]
    return [new.name for old, new in pairs if new is not None and (old is None or old.id != new.id)]
