"""Jobs onto the instances of one or several GPUs: exact, by the bags of instances that fit.

First as many jobs as possible, the more urgent ones first; then the earliest finish or the highest
total rate; then the largest profile still free; then as few destroyed instances as possible;
then the least idle processors. A bag says how many instances of each profile there are, on all GPUs
together; there are some thousand for two GPUs, and every job takes one instance.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Literal

from trainwright.catalog.mig import MigTable, Profile
from trainwright.messages import UserError
from trainwright.mig.layout import Instance, Layout, layouts, room

Goal = Literal["finish", "rate"]
MOST_JOBS = 200
"""Jobs of one question, assumed: more than any few GPUs hold."""
MOST_BAGS = 60_000
"""Bags that are looked through, assumed: about four GPUs of one kind."""


@dataclass(frozen=True, slots=True)
class Job:
    """What wants an instance of its own."""

    name: str
    seconds: Mapping[str, float]
    """Until it is finished, by the profile that it may run on: those that its memory fits."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """What it does in a second, by profile; empty where nobody knows."""
    priority: int = 0
    """Higher is more urgent."""


@dataclass(frozen=True, slots=True)
class Board:
    """A GPU, and what it is cut into now."""

    table: MigTable
    current: Layout = ()


@dataclass(frozen=True, slots=True)
class Packed:
    """Where each job runs."""

    layouts: tuple[Layout, ...]
    """Of each board, in the boards' order."""
    jobs: tuple[tuple[int, Instance] | None, ...]
    """Board and instance of each job, in the jobs' order; None: no place."""
    finish: float
    """Seconds of the longest; 0 where nobody knows any."""
    rate: float
    room: int
    """Units of the largest profile that could still be placed on one of the boards."""
    destroyed: int
    """Instances of the current layouts that must go."""

    @property
    def placed(self) -> int:
        """Jobs that have a place."""
        return sum(place is not None for place in self.jobs)


Bag = tuple[int, ...]
"""Instances by kind; a kind is a profile of a table."""
_Kind = tuple[MigTable, str]


def pack(jobs: Sequence[Job], boards: Sequence[Board], goal: Goal = "finish") -> Packed:
    """Return the best way to put jobs onto boards.

    Raises:
        UserError: ``mig.too-many-jobs`` or ``mig.too-many-gpus``.
    """
    if len(jobs) > MOST_JOBS:
        raise UserError.of("mig.too-many-jobs", asked=len(jobs), most=MOST_JOBS)
    tables = tuple(board.table for board in boards)
    kinds, bags = _kinds(tables), _bags(tables)
    reached = _assigned(jobs, kinds, bags, goal)
    best = max(key for key, _ in reached.values())
    chosen = [(bag, taken) for bag, (key, taken) in reached.items() if key == best]
    laid = max((_laid(bag, boards, kinds) for bag, _ in chosen), key=lambda each: each[0])
    taken = next(taken for bag, taken in chosen if bag == laid[1])
    return _packed(jobs, taken, laid, kinds, boards)


def _kinds(tables: Sequence[MigTable]) -> tuple[tuple[_Kind, Profile], ...]:
    """Return the plain profiles of the tables, each once."""
    return tuple(
        ((table, profile.name), profile)
        for table in dict.fromkeys(tables)
        for profile in table.profiles
        if profile.plain and profile.starts
    )


# Bags that fit


@lru_cache(maxsize=4)
def _bags(tables: tuple[MigTable, ...]) -> frozenset[Bag]:
    """Return what boards of these tables can hold together."""
    kinds = _kinds(tables)
    found: set[Bag] = {(0,) * len(kinds)}
    for table in tables:
        alone = [_spread(bag, table, kinds) for bag in _alone(table)]
        found = {tuple(map(sum, zip(*pair, strict=True))) for pair in product(found, alone)}
        if len(found) > MOST_BAGS:
            raise UserError.of("mig.too-many-gpus", asked=len(tables))
    return frozenset(found)


@lru_cache(maxsize=32)
def _alone(table: MigTable) -> Mapping[Bag, tuple[Layout, ...]]:
    """Return the layouts of one GPU by bag, over its own plain profiles."""
    names = [profile.name for profile in table.profiles if profile.plain and profile.starts]
    bags: dict[Bag, list[Layout]] = {}
    for layout in layouts(table):
        counts = Counter(instance.profile for instance in layout)
        bags.setdefault(tuple(counts[name] for name in names), []).append(layout)
    return {bag: tuple(each) for bag, each in bags.items()}


def _spread(bag: Bag, table: MigTable, kinds: Sequence[tuple[_Kind, Profile]]) -> Bag:
    """Return a table's own bag over the kinds of all tables."""
    counts = iter(bag)
    return tuple(next(counts) if of == table else 0 for (of, _), _ in kinds)


# Jobs onto bags

_Key = tuple[int, float]
_Taken = tuple[tuple[int, int], ...]
"""(job, kind) pairs."""


def _assigned(
    jobs: Sequence[Job],
    kinds: Sequence[tuple[_Kind, Profile]],
    bags: frozenset[Bag],
    goal: Goal,
) -> dict[Bag, tuple[_Key, _Taken]]:
    """Return the best use of every bag that the jobs fill exactly.

    Job by job: what is best for a bag holds the best for the bag without its last instance.
    """
    worth = _worth(jobs)
    reached: dict[Bag, tuple[_Key, _Taken]] = {(0,) * len(kinds): ((0, 0.0), ())}
    for number, job in enumerate(jobs):
        uses = [
            (kind, _gain(job, name, goal)) for kind, ((_, name), _) in enumerate(kinds)
            if name in job.seconds
        ]  # fmt: skip
        after = dict(reached)  # without this job
        for bag, ((placed, value), taken) in reached.items():
            for kind, gain in uses:
                more = (*bag[:kind], bag[kind] + 1, *bag[kind + 1 :])
                if more not in bags:
                    continue
                total = min(value, gain) if goal == "finish" else value + gain
                key = (placed + worth[number], total)
                if more not in after or key > after[more][0]:
                    after[more] = (key, (*taken, (number, kind)))
        reached = after
    return reached


def _worth(jobs: Sequence[Job]) -> list[int]:
    """Return what placing each job is worth: one urgent job is more than all less urgent ones."""
    ranks = {priority: rank for rank, priority in enumerate(sorted({j.priority for j in jobs}))}
    return [(len(jobs) + 1) ** ranks[job.priority] for job in jobs]


def _gain(job: Job, profile: str, goal: Goal) -> float:
    """Return what is to be high: the rate, or the finish with its sign turned."""
    return job.rates.get(profile, 0.0) if goal == "rate" else -job.seconds[profile]


# Bags onto boards

_Laid = tuple[tuple[int, int, float], Bag, tuple[Layout, ...]]


def _laid(bag: Bag, boards: Sequence[Board], kinds: Sequence[tuple[_Kind, Profile]]) -> _Laid:
    """Return the best layouts of the boards that make up a bag."""
    best: _Laid | None = None
    idle = _idle(bag, kinds)
    for chosen in _shares(bag, boards, kinds):
        options = [
            _best_layouts(board.table, board.current, share)
            for board, share in zip(boards, chosen, strict=True)
        ]
        for picked in product(*options):
            largest = max(each[0] for each in picked)
            destroyed = sum(each[1] for each in picked)
            key = (largest, -destroyed, -idle)
            if best is None or key > best[0]:
                best = (key, bag, tuple(each[2] for each in picked))
    assert best is not None
    return best


def _shares(
    bag: Bag, boards: Sequence[Board], kinds: Sequence[tuple[_Kind, Profile]]
) -> Iterator[tuple[Bag, ...]]:
    """Yield the ways to divide a bag among the boards, as bags of their own tables."""
    if not boards:
        if not any(bag):
            yield ()
        return
    first, *rest = boards
    mine = [at for at, ((of, _), _) in enumerate(kinds) if of == first.table]
    for own in _alone(first.table):
        left = list(bag)
        for at, count in zip(mine, own, strict=True):
            left[at] -= count
        if min(left, default=0) >= 0:
            for others in _shares(tuple(left), rest, kinds):
                yield (own, *others)


@lru_cache(maxsize=4096)
def _best_layouts(
    table: MigTable, current: Layout, bag: Bag
) -> tuple[tuple[int, int, Layout], ...]:
    """Return (units of the largest profile left, instances destroyed, layout), the best ones."""
    best: dict[int, tuple[int, int, Layout]] = {}
    for layout in _alone(table)[bag]:
        gone = len(set(current) - set(layout))
        left = room(table, layout)[0]
        if gone not in best or left > best[gone][0]:
            best[gone] = (left, gone, layout)
    return tuple(best.values())


def _idle(bag: Bag, kinds: Sequence[tuple[_Kind, Profile]]) -> float:
    """Return slices that instances have; the fewer, the more is left for others."""
    return float(
        sum(count * profile.slices for count, (_, profile) in zip(bag, kinds, strict=True))
    )


def _packed(
    jobs: Sequence[Job],
    taken: _Taken,
    laid: _Laid,
    kinds: Sequence[tuple[_Kind, Profile]],
    boards: Sequence[Board],
) -> Packed:
    """Return the answer: each job takes an instance of its kind."""
    (largest, kept, _), _, found = laid
    waiting: dict[_Kind, list[tuple[int, Instance]]] = {}
    for number, (board, layout) in enumerate(zip(boards, found, strict=True)):
        for instance in layout:
            waiting.setdefault((board.table, instance.profile), []).append((number, instance))
    places: list[tuple[int, Instance] | None] = [None] * len(jobs)
    for job, kind in taken:
        places[job] = waiting[kinds[kind][0]].pop(0)
    at = [(jobs[job], kinds[kind][0][1]) for job, kind in taken]
    return Packed(
        layouts=found,
        jobs=tuple(places),
        finish=max((job.seconds[name] for job, name in at), default=0.0),
        rate=sum(job.rates.get(name, 0.0) for job, name in at),
        room=largest,
        destroyed=-kept,
    )
