"""A whole run as the allocator will see it: storages by their births and deaths.

A layout holds for every batch and sequence length; sizes are looked up in ``bytes_of``.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate import cuda
from trainwright.estimate.cuda import Hidden
from trainwright.profile.profile import CATEGORIES, Ints, Profile, evaluate
from trainwright.profile.structure import Structure

TERMS = (*CATEGORIES, "buckets", "gathered", "engine", "rounding")
"""``buckets`` are those that gradients are exchanged in, ``gathered`` weights of other GPUs while
they are used, ``engine`` what another engine in the same process holds; ``rounding`` is what the
allocator gives beyond what was asked."""

TERM = {name: number for number, name in enumerate(TERMS)}

POOL = "kv-pool"
"""Rule of the storage that holds an engine's cache; its bytes depend on the requests."""


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Births and deaths of one run; arrays align."""

    profile: Profile
    storage: Ints
    """Positive at a birth, negative at a death."""
    size: NDArray[np.int32]
    """Row of what ``bytes_of`` returns."""
    op: NDArray[np.int32]
    phase: NDArray[np.uint8]
    term: NDArray[np.uint8]
    """Index into ``TERMS``."""
    steady: int
    """First event of the last step; of the prefill for inference."""
    hidden: tuple[Hidden, ...]
    """What size rows beyond those of the profile stand for."""
    channels_last: bool = False
    aside: tuple[tuple[str, int], ...] = ()
    """(role, bytes) of what is kept outside torch's allocator: ``paged`` state that the driver
    moves, ``host-...`` what lies in system memory."""
    windows: tuple[int, ...] = ()
    """Sliding windows of layers whose cache stops growing; shortest first."""

    @property
    def rows(self) -> int:
        """Number of the profile's size rows; they come again for each of ``lengths``."""
        return len(self.profile.sizes)

    @property
    def first_hidden(self) -> int:
        """The first row that is not the profile's."""
        return (2 + len(self.windows)) * self.rows

    def bytes_of(
        self, batch: int, sequence: int, context: int | None = None, pool: int = 0
    ) -> Ints:
        """Return the bytes of each size row.

        Args:
            batch: Samples a micro-batch, or requests at once.
            sequence: Tokens a sample or a prompt; 0 where there is none.
            context: Tokens before the last one decoded; only for inference.
            pool: Bytes of the engine's cache, where the layout has one.
        """
        late = sequence if context is None else context
        sizes = self.profile.sizes
        hidden = [
            pool
            if one.rule == POOL
            else cuda.hidden_bytes(
                one, self.profile, batch, sequence, channels_last=self.channels_last
            )
            for one in self.hidden
        ]
        return np.concatenate(
            [
                evaluate(sizes, batch, sequence),
                *(evaluate(sizes, batch, length) for length in self.late_lengths(late)),
                np.array(hidden, dtype=np.int64),
            ]
        )

    def late_lengths(self, late: int) -> tuple[int, ...]:
        """Return the tokens before the last one, of all layers and of each window.

        A window holds the new token and those before it that it looks back on.
        """
        return late, *(min(late, window - 1) for window in self.windows)


@dataclass(frozen=True, slots=True)
class Insert:
    """Hidden storages born before an event; those that do not last die at once."""

    event: int
    hidden: tuple[Hidden, ...]
    term: str
    lasts: bool


def inserted(layout: Layout, inserts: Sequence[Insert]) -> Layout:
    """Return the layout with hidden storages; the same ``Hidden`` shares a size row."""
    if not inserts:
        return layout
    known = {one: row for row, one in enumerate(layout.hidden)}
    first_row, fresh = layout.first_hidden, int(np.abs(layout.storage).max(initial=0))
    at: list[int] = []
    storage: list[int] = []
    size: list[int] = []
    term: list[int] = []
    for insert in sorted(inserts, key=lambda one: one.event):
        born = range(fresh + 1, fresh + 1 + len(insert.hidden))
        fresh += len(insert.hidden)
        sizes = [first_row + known.setdefault(one, len(known)) for one in insert.hidden]
        ids = [*born] if insert.lasts else [*born, *(-key for key in born)]
        times = len(ids) // len(insert.hidden)
        at += [insert.event] * len(ids)
        storage += ids
        size += sizes * times
        term += [TERM[insert.term]] * len(ids)
    before = np.maximum(np.array(at) - 1, 0)
    early = int(np.count_nonzero(np.array(at) <= layout.steady))
    return replace(
        layout,
        storage=np.insert(layout.storage, at, storage),
        size=np.insert(layout.size, at, size),
        op=np.insert(layout.op, at, layout.op[before]),
        phase=np.insert(layout.phase, at, layout.phase[before]),
        term=np.insert(layout.term, at, term),
        steady=layout.steady + early,
        hidden=tuple(known),
    )


def joined(profile: Profile, parts: Sequence[Structure], *, steady: int) -> Layout:
    """Return parts one after the other; those up to ``steady`` come before the last step."""
    storage, size, op, phase, term = (
        np.concatenate([getattr(part, field) for part in parts])
        for field in ("storage", "size", "op", "phase", "term")
    )
    first = sum(len(part.storage) for part in parts[:steady])
    return Layout(profile, storage, size, op, phase, term, first, ())


def without(layout: Layout, storages: Collection[int]) -> Layout:
    """Return the layout as if the storages had never been."""
    keep = ~np.isin(np.abs(layout.storage), list(storages))
    return replace(
        layout,
        storage=layout.storage[keep],
        size=layout.size[keep],
        op=layout.op[keep],
        phase=layout.phase[keep],
        term=layout.term[keep],
        steady=int(np.count_nonzero(keep[: layout.steady])),
    )
