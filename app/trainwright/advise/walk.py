"""Points of the space in the order of their worth, each looked at only when its turn comes."""

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Protocol

from trainwright.advise.space import Candidate, Space, obeys
from trainwright.plan.evaluate import Facts
from trainwright.plan.schema import Plan
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings
from trainwright.workload.settings import Effect


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the search finds profiles and other plans' facts; neither ever traces."""

    find: Callable[[Plan, Facts, FullSettings], Profile | None]
    """Settings -> the profile of their structure, or None where it is not at hand."""
    resolve: Callable[[Plan], Facts | None]
    """Plan -> its facts; None where it cannot be, or would have to be traced."""


class Weighing(Protocol):
    """What a search knows of a candidate, worked out when it is asked for."""

    def compares(self, group: Sequence[Candidate], /) -> bool:
        """Whether any of the candidates, which differ in the batch, or any point below has a
        profile.
        """

    def profile(self, candidate: Candidate, /) -> Profile | None:
        """The profile of its structure; None where it is not at hand."""

    def weighed(self, candidate: Candidate, /) -> bool:
        """Whether the quick peak of its layout is known at any batch."""

    def may_be_lean(self, candidate: Candidate, /) -> bool:
        """Whether it may fit, as far as a profile tells."""

    def may_fit(self, candidate: Candidate, /) -> bool:
        """Whether a lower bound of its p95 is within the device."""

    def peak(self, candidate: Candidate, /) -> int:
        """Bytes of its quick allocated peak."""

    def seconds(self, candidate: Candidate, /) -> float | None:
        """Seconds of a step; infinite where no time is predicted."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A candidate with the seconds of a step."""

    candidate: Candidate
    seconds: float
    """For the whole effective batch: the same number of samples for every candidate; infinite
    where no time is predicted."""
    peak: int = 0
    """Bytes of the quick allocated peak, by which candidates without a time are ranked."""

    @property
    def rank(self) -> tuple[float, ...]:
        """Return the sort key: the smaller the better."""
        chosen = self.candidate
        least = self.seconds, self.peak, chosen.surprise, -chosen.micro_batch
        return (*chosen.departs, *least)


class Walk:
    """The points of a space, best first; each is worked out when it is asked for.

    A point below another in the lattice takes no less time. So each point waits with the least
    seconds that it can take. Its memory, which takes longer to know, is looked at in its turn.
    """

    def __init__(self, search: Weighing, space_: Space) -> None:
        self._search, self.space = search, space_
        self._found: list[Timed] = []
        self._waiting: list[tuple[tuple[float, ...], int, Candidate | Timed]] = []
        """By the least rank: candidates not yet looked at, and those that may fit."""
        self._effects = deque(Effect)
        self._order = count()

    def __iter__(self) -> Iterator[Timed]:
        return self.within(max(Effect))

    def within(self, most: Effect, *, after: int = 0) -> Iterator[Timed]:
        """Yield the points whose effect is not greater; memory of no others is looked at.

        ``after`` so many, which are known already.
        """
        at = after
        while at < len(self._found) or self._next(most):
            if self._found[at].candidate.effect > most:
                return
            yield self._found[at]
            at += 1

    def _next(self, most: Effect) -> bool:
        """Find the next best point; return whether there is one within the effect."""
        while True:
            while not self._waiting:
                if not self._effects or self._effects[0] > most:
                    return False
                for root in chain.from_iterable(self._roots(self._effects.popleft())):
                    self._wait(root, self._search.seconds(root) or 0.0)
            if self._waiting[0][0][0] > most:
                return False
            (*_, least), _, first = heapq.heappop(self._waiting)
            if isinstance(first, Timed):
                if first.seconds != math.inf:
                    for point in self.space.below(first.candidate):
                        self._wait(point, first.seconds)
                self._found.append(first)
                return True
            self._look(first, least)

    def _roots(self, effect: Effect) -> Iterator[list[Candidate]]:
        for group in self.space.roots(effect):
            if self._search.compares(group):
                yield group

    def _wait(self, point: Candidate, least: float) -> None:
        """Let a point wait, that takes so many seconds at least."""
        heapq.heappush(self._waiting, ((*point.departs, least), next(self._order), point))

    def _look(self, point: Candidate, least: float) -> None:
        """Let a point wait with its time if it may fit and counts, else what is below it."""
        search, obeyed = self._search, self.space.obeyed
        if not search.weighed(point) and (search.seconds(point) or 0.0) > least:
            self._wait(point, search.seconds(point) or 0.0)  # its time first: that is known sooner
            return
        if point == self.space.root(point) and not search.may_be_lean(self.space.leanest(point)):
            return  # nor is anything below it
        fits = search.profile(point) is not None and search.may_fit(point)
        seconds = search.seconds(point) if fits else None
        if seconds is not None and (obeyed is None or not obeys(point, *obeyed)):
            peak = search.peak(point) if seconds == math.inf else 0
            timed = Timed(point, seconds, peak)
            heapq.heappush(self._waiting, (timed.rank, next(self._order), timed))
            if seconds != math.inf:
                return  # what is below waits until this point is reached
        for below in self.space.below(point, saving=not fits):
            self._wait(below, least)

    def leanest(self, *effects: Effect) -> Iterator[Candidate]:
        """Yield the points that take the least memory, whether they fit or not; of any effect."""
        for root in chain.from_iterable(chain.from_iterable(map(self._roots, effects or Effect))):
            if (lean := self.below(root)) is not None:
                yield lean

    def below(self, root: Candidate) -> Candidate | None:
        """Return the leanest point of a lattice that counts and whose profile is at hand."""
        lean, obeyed = self.space.leanest(root), self.space.obeyed
        whole = replace(lean, cross_entropy=root.cross_entropy)  # chunks may not be traced
        for point in (lean, whole, root):
            wanted = obeyed is None or not obeys(point, *obeyed)
            if wanted and self._search.profile(point) is not None:
                return point
        return None
