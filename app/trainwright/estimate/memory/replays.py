"""Replays of a layout at a point, under several limits: made once, and only where they bind."""

from dataclasses import dataclass
from functools import lru_cache

from trainwright.estimate.memory.allocator import Replay, replay
from trainwright.estimate.memory.breakdown import Curve, curve, peak_terms
from trainwright.estimate.memory.layout import Layout
from trainwright.estimate.serving.served import Served
from trainwright.explain import Quantity
from trainwright.profile.profile import Ints


@dataclass(frozen=True, slots=True)
class Point:
    """Where a layout is looked at."""

    batch: int
    sequence: int
    context: int | None = None
    """Tokens before the last generated one."""
    pool: int = 0
    """Bytes of the engine's cache."""

    @classmethod
    def of(
        cls, batch: int, sequence: int, new_tokens: int | None, served: Served | None
    ) -> "Point":
        """Return the point of a plan's inputs."""
        if new_tokens is None:
            return cls(batch, sequence)
        if served is None or served.traced:
            return cls(batch, sequence, max(sequence + new_tokens - 1, 1))
        pool = served.pool_bytes(batch, sequence + new_tokens)
        return cls(*served.computed(batch, sequence), pool=pool)

    def bytes_of(self, layout: Layout) -> Ints:
        """Return the bytes of the layout's size rows."""
        return layout.bytes_of(self.batch, self.sequence, self.context, self.pool)


@dataclass(frozen=True, slots=True)
class Held:
    """Who holds the memory in a replay."""

    terms: tuple[Quantity, ...]
    """What the allocated peak is made of, largest first."""
    curve: Curve
    """Live bytes over the steady step."""


class Run:
    """One sequence of events, replayed under several limits and only where they bind."""

    def __init__(self, layout: Layout, sizes: Ints, expandable: bool) -> None:
        self.sizes = sizes
        """Bytes of each size row."""
        self.layout = layout
        self._expandable = expandable
        self._known: dict[int | None, Replay] = {}
        self._held: dict[int, Held] = {}

    def within(self, limit: int | None) -> Replay:
        """Return the replay with so many bytes for segments."""
        free = self._known.get(None)
        if free is not None and (limit is None or free.reserved_peak <= limit):
            return free
        if limit not in self._known:
            found = self._known[limit] = self._replay(limit if limit is None else max(limit, 0))
            if not (found.releases or found.out_of_memory):
                self._known[None] = found  # the limit did not bind
        return self._known[limit]

    def held(self, replay: Replay) -> Held:
        """Return who holds the memory in one of these replays; found once, as the replay is."""
        key = id(replay)  # it is kept here, so that its id stays its own
        if key not in self._held:
            terms = peak_terms(self.layout, self.sizes, replay)
            self._held[key] = Held(terms, curve(self.layout, self.sizes, replay.block))
        return self._held[key]

    def _replay(self, limit: int | None) -> Replay:
        events = self.layout.storage, self.sizes[self.layout.size]
        return replay(*events, expandable=self._expandable, limit=limit)


@lru_cache(maxsize=4)
def run_at(layout: Layout, point: Point, expandable: bool) -> Run:
    """Return the replays at a point: another GPU, or an edit taken back, needs no new one."""
    return Run(layout, point.bytes_of(layout), expandable)
