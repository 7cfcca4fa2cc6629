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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from trainwright.advise.choose import STORED
from trainwright.advise.walk import Sources
from trainwright.build import wishing
from trainwright.build.answer import Builds, Candidate, Point, Step
from trainwright.build.assemble import assembled
from trainwright.build.choosing import Choosing, Least, Outcome, level
from trainwright.build.circuits import LAID, usual
from trainwright.build.doubt import checked, counted, doubted
from trainwright.build.idle import idle
from trainwright.build.ladder import change, tardy, undominated
from trainwright.build.money import amount
from trainwright.build.offers import Market
from trainwright.build.reasons import limited_said
from trainwright.build.request import Request
from trainwright.build.rooms import roomier, without_adapters
from trainwright.build.run import Run
from trainwright.build.shortfall import shortfall, surer, without_a_wish
from trainwright.build.sites import Around
from trainwright.build.sizing import steps
from trainwright.build.speeds import COUNTS, Cards, Speeds
from trainwright.build.systems import beside
from trainwright.build.thrift import simpler, thrifty
from trainwright.build.tracing import Trace, at_hand, shared_out
from trainwright.build.watching import Watch, around, in_turn, unwatched
from trainwright.build.works import Together, Works, plans_of, works_of
from trainwright.catalog import GpuRecord
from trainwright.machine.power import CIRCUITS
from trainwright.messages import Message
from trainwright.workload.settings import Effect

BEYOND = 2.0
"""Budgets up to which the trade of money against time is shown; assumed."""
LOOKED = 5
"""Fewest computers that are worked out in full, which changes their times: with fewer asked for,
the answer is the head of the same list. Assumed."""
STEP = 0.05
"""Least gain that is worth naming as the next step of money; assumed."""
SOFTWARE = {"AMD", "Intel"}
"""Makers on whose cards CUDA's libraries do not run as they are. Sources: PyTorch, HIP, XPU."""
LEFT = 0.05
"""Share of a budget that is not left over without a word; assumed."""
TENTH = 1.1
"""Of the budget: the answer says what that much money would bring."""
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


def search(
    request: Request,
    sources: Sources = STORED,
    *,
    market: Market | None = None,
    trace: Trace | None = None,
    watch: Watch = unwatched,
) -> Builds:
    """Return the best computers for a request.

    Where there is none, what else may do the work is traced by ``trace``, if that is given.
    ``watch`` shows the progress, card by card.

    Raises:
        UserError: the wishes contradict one another, or the plan is none that can be answered.
    """
    wishing.agree(request)
    market = market or Market.of(request)
    system = request.wishes.system
    speeds = [Speeds(plan, sources, system) for plan in plans_of(request)]
    works, run = works_of(request, speeds)

    def lowest(asked: Request) -> Candidate | None:
        """Return the cheapest computer for another request."""
        plans = [Speeds(plan, sources, system) for plan in plans_of(asked)]
        timed = (works, run) if asked.plan is request.plan else works_of(asked, plans)
        return _Search(asked, market.wishing(asked.wishes), *timed, watch=watch).lowest()

    found = _Search(request, market, works, run, watch=watch).answer()
    if found.builds:
        given_up = without_a_wish(request, found, lowest)
        return replace(found, notes=(*found.notes, *given_up))
    unshared = [plan for one in speeds for plan in shared_out(one, market)]
    if [plan for plan in unshared if at_hand(plan, trace)]:  # traced now
        return search(request, sources, market=market, trace=trace, watch=watch)
    # Where nothing that is proven and can be checked is within reach, less is better than nothing.
    for sound in (True, False) if works.unproven else (False,):
        tried = _Search(request, market, works, run, sound=sound, trial=True, watch=watch)
        less = tried.answer()
        if less.builds:
            notes = (*less.notes, *surer(found, request, lowest))
            return replace(less, cheapest=found.cheapest, notes=notes)
        found = found if found.cheapest is not None else less
    untraced = (Message.of("planner.untraced.shared"),) if unshared else ()
    short = shortfall(found, request, market, works, lowest, trace)
    return replace(found, notes=(*found.notes, *short, *untraced))


class _Search:  # Long: what one step works out, the others look up.
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
        watch: Watch = unwatched,
    ) -> None:
        """Take what no rule forbids; ``trial``: cards too that PyTorch runs on only as one."""
        wishes = request.wishes
        self.request = request
        self.run = run
        self.limit = request.budget.amount if request.budget else math.inf
        self.market = market
        self.works = works
        self.trial = trial
        self.watch = watch
        self.around = Around(market, wishes, sound=sound)
        self.circuit = wishes.circuit or usual(market.currency, self.limit)
        self.choosing = Choosing(self.around, self.circuit)
        self.barred: list[tuple[_Choice, Together]] = []
        """Cards that do the work, and around which no computer can be built."""
        self.shown: dict[tuple[str, int], tuple[Outcome, float]] = {}
        """Of each candidate's cards: the computer without what is left of the money, and what it
        costs with it."""

    def answer(self) -> Builds:
        """Return the answer."""
        choices = list(self._choices())
        far, within = self._unchanged(*self._proven(*self._outcomes(choices)))
        ladder = undominated([*within, *far])
        timely = [one for one in within if self.run.in_time(one.seconds)]
        most = max(self.request.top, LOOKED)
        builds = self._candidates(undominated(timely or within), ladder, most)
        punctual = [one for one in builds if self.run.ends(one.seconds)]
        late = bool(builds) and not punctual
        builds = punctual or builds
        builds = simpler(thrifty(doubted(sorted(builds, key=counted))))[: self.request.top]
        systems = [
            one
            for one in beside(builds, self.request, self.works, self.market)
            if self.run.ends(one.seconds)
        ]
        shown, unsure = checked(builds, systems)
        cheapest = None if builds or systems else self._cheapest(choices, ladder)
        return Builds(
            builds=shown,
            front=tuple(self._points(ladder, shown)),
            cheapest=cheapest,
            budget=self.request.budget,
            currency=self.market.currency,
            notes=(
                *self._notes(within, builds),
                *(tardy(self.run, builds, ladder, self.market.currency) if late else ()),
                *(() if builds or systems or cheapest else self._stuck()),
                *unsure,
                *idle(next(iter(shown), cheapest), self.request.wishes.owned),
                *self._money(builds, ladder),
            ),
            considered=self.choosing.considered,
        )

    def _outcomes(self, choices: list[_Choice]) -> tuple[list[Outcome], list[Outcome]]:
        """Return (the best with each choice of cards whatever the budget, the best within).

        Choices that a computer rules out are left alone. It comes before them here: it is faster.
        Several cards are timed only when their turn comes.
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
            if any(self._rules_out(one, choice) for one in known):
                continue
            self.watch(1.0, around(choice.cards))
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
        return [far[one] for one in sorted(far)], [within[one] for one in sorted(within)]

    def _rules_out(self, one: Outcome, choice: _Choice) -> bool:
        """Return whether a computer beats all that there are with some cards.

        One that is left out, or comes later, where others do the work speaks against none.
        """
        unproven, least = self.works.unproven, choice.least
        if self._effect(one.cards) > (choice.work.effect if choice.work else Effect.SAME):
            return False
        if one.unknown or (
            one.cards.record.id in unproven and choice.cards.record.id not in unproven
        ):
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

    def lowest(self) -> Candidate | None:
        """Return the cheapest computer that does the work, whatever the budget."""
        return self._cheapest(list(self._choices()), [])

    def _cheapest(self, choices: list[_Choice], ladder: list[Outcome]) -> Candidate | None:
        """Return the cheapest computer that does the work."""
        best: Candidate | None = None
        limit = math.inf
        for choice in sorted(choices, key=lambda one: one.least.cost):
            if choice.least.cost >= limit:
                break
            timed = self._timed(choice)
            if timed is None or timed.work is None:
                continue
            found = self.choosing.cheapest(timed.cards, timed.work, timed.cost, limit)
            made = self._candidates([found], ladder, 1) if found is not None else []
            if found is not None and made and found.cost < limit:
                best, limit = made[0], found.cost
        return best

    def _best(self, choice: _Choice, limit: float) -> Outcome | None:
        if choice.least.cost > limit or choice.work is None:
            return None
        return self.choosing.best(choice.cards, choice.work, choice.cost, limit)

    def _choices(self) -> Iterator[_Choice]:
        """Yield cards that do the work, those with the most memory first, and several of them."""
        wishes = self.request.wishes
        first, *others = (wishes.gpus,) if wishes.gpus else COUNTS
        copies = self.works.copies
        if not self.works.several:
            others = []
        for number, record in in_turn(self._records(), self.watch):
            if not self.trial and self.works.trial(record):
                continue
            choice = self._choice(record, first, number)
            if choice is not None:
                yield choice
            if choice is not None and (self._whole(choice) or not self.works.spreads(record)):
                # Where layers are spread, one card serves what fits on it: more work in turn.
                yield from self._several(choice, others if copies else ())
            elif self.works.spreads(record):
                several = (self._choice(record, count, number) for count in others)
                yield from (one for one in several if one is not None)

    def _records(self) -> list[GpuRecord]:
        """Return the cards on sale, the largest first: those with a price, where any has one."""
        cards = sorted(self.market.cards(), key=lambda one: -one.memory_bytes.value)
        priced = [one for one in cards if self.market.offer("gpu", one).cost(1) is not None]
        return priced or cards

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
        cards = choice.cards
        work = self.works.quick(cards)
        least = self.choosing.least(cards, work, choice.cost) if work else None
        limited = self.choosing.limited(cards, work) if work and least is None else None
        if limited is not None and work is not None:
            cards, work = limited, self.works.quick(limited) or work
            least = self.choosing.least(cards, work, choice.cost)
        if work is not None and least is None:
            self.barred.append((choice, work))
        return replace(choice, cards=cards, work=work, least=least) if least is not None else None

    def _candidates(
        self, outcomes: list[Outcome], ladder: list[Outcome], most: int
    ) -> list[Candidate]:
        """Return the first so many with their figures; what does not fit after all is left out."""
        found: list[Candidate] = []
        for outcome in outcomes:
            if len(found) == most:
                break
            whole = self._finished(outcome)
            candidate = assembled(whole, self.works, self.request, self.market)
            if candidate is not None:
                self.shown[outcome.cards.kind] = outcome, whole.cost
                step = self._next(outcome, whole.cost, ladder)
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
        fed = without_adapters(best, self.around, self.limit)
        return roomier(fed, self.around, self.limit)

    def _money(self, builds: list[Candidate], ladder: list[Outcome]) -> Iterator[Message]:
        """Yield what is left of the money, and what more of it would bring."""
        if builds:
            yield from self._left(builds[0])
            yield from self._tenth(builds[0], ladder)

    def _tenth(self, first: Candidate, ladder: list[Outcome]) -> Iterator[Message]:
        """Yield what a tenth more of money would bring, counted as the next step is."""
        if math.isinf(self.limit):
            return
        outcome, cost = self.shown[first.cards]
        near = [one for one in ladder if self.limit < one.cost <= TENTH * self.limit]
        faster = (one for one in near if one.counted < outcome.counted)
        best = min(faster, key=lambda one: one.counted, default=None)
        step = self._step(outcome, cost, best) if best is not None else None
        if step is None or step.gain < STEP or not step.worth or best is None:
            yield Message.of("planner.note.tenth-nothing")
            return
        name, count = best.cards.record.name, best.cards.count
        price = amount(self.market.currency, step.price)
        yield Message.of("planner.note.tenth", gpu=name, count=count, price=price, gain=step.gain)

    def _left(self, first: Candidate) -> Iterator[Message]:
        """Yield why much of the budget is not spent."""
        spent = first.total.expected or 0.0
        if math.isinf(self.limit) or spent > (1 - LEFT) * self.limit:
            return
        yield Message.of("planner.note.left", left=amount(self.market.currency, self.limit - spent))
        goal = self.shown[first.cards][0].counted / (1 + STEP)
        faster = [one for one in self.barred if one[1].seconds * one[1].margin <= goal]
        for choice, work in sorted(faster, key=lambda one: one[0].cost)[:1]:
            name, count = choice.cards.record.name, choice.cards.count
            why = self.choosing.barred(choice.cards, work)
            if choice.cost <= self.limit:
                yield Message.of(f"planner.barred.{why}", gpu=name, count=count)

    def _next(self, outcome: Outcome, cost: float, ladder: list[Outcome]) -> Step | None:
        """Return the cheapest computer that is faster by something that one notices.

        Those whose speed is worth its price come before the others.
        """
        better = [one for one in ladder if one.counted < outcome.counted and one.cost > cost]
        found = [self._step(outcome, cost, one) for one in better]
        noticed = [step for step in found if step.gain >= STEP]
        return min(noticed, key=lambda step: (not step.worth, step.price), default=None)

    def _step(self, outcome: Outcome, cost: float, next_one: Outcome) -> Step:
        """Return what a dearer computer has more than one that is bought for ``cost``.

        Expected times are compared, also where one of them is ranked by its upper end.
        """
        gain = outcome.seconds / next_one.seconds - 1
        return Step(change(outcome, next_one), next_one.cost - cost, next_one.cost, gain)

    def _points(self, ladder: list[Outcome], builds: Sequence[Candidate]) -> list[Point]:
        """Return the builds as they are listed, and what else trades money for time or watts."""
        known = {one.cards for one in builds}
        found = [one.point for one in builds]
        found += [
            Point(
                gpu=one.cards.record.id,
                count=one.cards.count,
                price=one.cost,
                seconds=self.run.seconds(one.seconds),
                watts=one.watts,
                within=one.cost <= self.limit,
            )
            for one in ladder
            if one.cost > self.limit or one.cards.kind not in known
        ]
        return sorted(found, key=lambda one: one.price)

    def _stuck(self) -> Iterator[Message]:
        """Yield why nothing can be built around the cheapest cards that do the work."""
        proven = [one for one in self.barred if one[0].cards.record.id not in self.works.unproven]
        for choice, work in sorted(proven or self.barred, key=lambda one: one[0].cost)[:1]:
            why = self.choosing.barred(choice.cards, work)
            name, count = choice.cards.record.name, choice.cards.count
            yield Message.of(f"planner.stuck.{why}", gpu=name, count=count)

    def _notes(self, within: list[Outcome], builds: list[Candidate]) -> Iterator[Message]:
        yield from self.market.notes
        shown = builds[: self.request.top]
        yield from map(limited_said, (one for one in shown if one.build.gpus[0].power_limit_w))
        vendors = {one.build.gpus[0].record.vendor for one in shown}
        for vendor in sorted(vendors & SOFTWARE):
            yield Message.of(f"planner.software.{vendor.lower()}")
        if self.circuit == LAID and self.request.wishes.circuit is None:
            line = CIRCUITS[LAID]
            yield Message.of("planner.note.circuit", volts=line.volts, amps=line.amps)
        if self.works.untraced:
            yield Message.of("planner.note.untraced", gpus=sorted(self.works.untraced))
        if self.market.unrated:
            yield Message.of("planner.note.unrated", gpus=sorted(self.market.unrated))
        if any(one.cards.record.id in self.works.unproven for one in within):
            yield Message.of("planner.note.only-unproven")
        elif self.works.unproven:
            yield Message.of("planner.note.unproven", gpus=sorted(self.works.unproven))
