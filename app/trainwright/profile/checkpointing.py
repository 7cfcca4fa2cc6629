"""Events of a checkpointed run, written from one trace of the plain run.

The tracer keeps, for each tensor that autograd saves, only a small holder. Its log
therefore says when a storage dies *without* autograd, which blocks saved it, and when
backward asks for it. From that follows the run in which chosen blocks stand under
``torch.utils.checkpoint(use_reentrant=False)``:

* a storage made inside a checkpointed block dies in the forward as if autograd did not look;
* the block's inputs live until its last holder is released;
* at the first request for one of its saved tensors the block's forward runs again, up to
  its last save (early stop), and those storages die with their unpacked copies.

With no block chosen the result is the plain run. Where blocks' inputs wait in system memory
(``torch.autograd.graph.save_on_cpu`` around each block), they die on the device as if autograd
did not look, and are born again before the block's second forward.

Under ``use_reentrant=True`` the second forward runs to its end. What it returns lives until the
block's backward is done, and so do the gradients that came in for it:
``CheckpointFunction.backward`` holds both.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.profile import Ints, Segment
from trainwright.profile.trace import (
    ALLOC,
    BEGIN,
    COPY_DEAD,
    END,
    FREE,
    PACK,
    RELEASE,
    UNPACK,
)


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """Births and deaths in order, for one segment and one choice of blocks."""

    storage: NDArray[np.int64]
    """Positive at a birth, negative at a death; recomputed storages have ids of their own."""
    size: NDArray[np.int32]
    """Row of ``Profile.sizes`` on both."""
    op: NDArray[np.int32]
    """Number of the op in the segment; -1 at deaths."""
    recomputed: NDArray[np.bool_]
    """Births that happen again in the backward pass."""
    recomputed_ops: NDArray[np.int32]
    """Numbers of the ops that run twice."""


OFFLOAD = "+offload"
"""Ending of a policy whose blocks' inputs wait in system memory."""
REENTRANT = "+reentrant"
"""Ending of a policy that runs blocks again by ``use_reentrant=True``; before the other."""


def chosen_blocks(policy: str, blocks: int) -> frozenset[int]:
    """Return the blocks that a policy checkpoints: ``none``, ``full``, ``every-K``.

    ``every-K`` checkpoints blocks 0, K, 2K and so on, as transformers' ``every_n_layers``
    and torchtitan's ``selective_ac_option`` do. Its endings change no block.

    Raises:
        ValueError: another policy; ``selective`` is traced, not derived.
    """
    policy = policy.partition("+")[0]
    if policy == "none":
        return frozenset()
    if policy == "full":
        return frozenset(range(blocks))
    if policy.startswith("every-"):
        return frozenset(range(0, blocks, int(policy.removeprefix("every-"))))
    raise ValueError(policy)


@dataclass(frozen=True, slots=True, eq=False)
class _Holders:
    """The saved tensors, in the order in which autograd took them; arrays align."""

    packed: Ints
    """Position in the log, as all that follows; -1 where it never happens."""
    storage: Ints
    """What each keeps alive."""
    block: Ints
    """The block that saved it; -1 outside any."""
    released: Ints
    unpacked: Ints
    copy_dead: Ints

    def of(self, block: int) -> "_Holders":
        """Return those that one block saved."""
        mine = self.block == block
        fields = ("packed", "storage", "block", "released", "unpacked", "copy_dead")
        return _Holders(*(getattr(self, name)[mine] for name in fields))


@dataclass(frozen=True, slots=True)
class _Block:
    """One checkpointed block's span in the log."""

    number: int
    begin: int
    end: int
    holders: _Holders

    @property
    def last_release(self) -> int:
        """Position from which autograd holds nothing of the block."""
        return int(self.holders.released.max(initial=-1))

    @property
    def first_unpack(self) -> int:
        """Position at which backward asks for the first saved tensor; -1 if it never does."""
        asked = self.holders.unpacked[self.holders.unpacked >= 0]
        return int(asked.min()) if asked.size else -1


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Births and deaths to be put in order; arrays align."""

    place: Ints
    """Three for each position of the log: before its event, the event itself, after it."""
    storage: NDArray[np.signedinteger]
    size: NDArray[np.signedinteger]
    op: NDArray[np.signedinteger]
    again: bool = False


_BEFORE, _AT, _AFTER = range(3)


def derive(
    segment: Segment,
    checkpointed: Collection[int] = frozenset(),
    fresh: int = 0,
    *,
    offload: bool = False,
    reentrant: bool = False,
) -> Log:
    """Return the segment's births and deaths with the given blocks checkpointed.

    Recomputed storages take ids above ``fresh`` and above all of the segment's own. With
    ``offload`` the blocks' own inputs wait in system memory; with ``reentrant`` second forwards
    run to their end.
    """
    return _Derivation(segment, checkpointed, fresh, offload, reentrant).log()


def offloaded(segment: Segment, checkpointed: Collection[int]) -> Ints:
    """Return the size rows of what waits in system memory at the end of the forward pass."""
    return _Derivation(segment, checkpointed, 0, True).offloaded()


class _Derivation:
    """The reading of one segment: where each storage, holder and block begins and ends."""

    def __init__(
        self,
        segment: Segment,
        checkpointed: Collection[int],
        fresh: int,
        offload: bool,
        reentrant: bool = False,
    ) -> None:
        self._segment = segment
        self._ids = 1 + max(
            int(segment.a.max(initial=0)),
            int(segment.b.max(initial=0)),
            *(max(storages, default=0) for _, storages in segment.inputs),
            0,
        )
        self._births = np.flatnonzero(segment.code == ALLOC)
        self._born, self._dead = self._when(ALLOC), self._when(FREE)
        self._size = np.full(self._ids, -1, dtype=np.int64)
        self._size[segment.a[self._births]] = segment.b[self._births]
        self._holders = self._all_holders()
        self._blocks = self._chosen(frozenset(checkpointed))
        self._fresh = max(int(segment.a[self._births].max(initial=0)), fresh)
        self._moved = self._own_inputs() if offload else {}
        self._reentrant = reentrant

    def _when(self, code: int) -> Ints:
        """Return the position at which something happens to each id; -1 where it does not."""
        at = np.flatnonzero(self._segment.code == code)
        position = np.full(self._ids, -1, dtype=np.int64)
        position[self._segment.a[at]] = at
        return position

    def _all_holders(self) -> _Holders:
        packed = np.flatnonzero(self._segment.code == PACK)
        holder = self._segment.a[packed]
        return _Holders(
            packed,
            self._segment.b[packed].astype(np.int64),
            self._segment.c[packed].astype(np.int64),
            *(self._when(code)[holder] for code in (RELEASE, UNPACK, COPY_DEAD)),
        )

    def _chosen(self, checkpointed: frozenset[int]) -> list[_Block]:
        """Return the checkpointed blocks in the order in which they run."""
        if not checkpointed:
            return []
        end = self._when(END)
        begun = np.flatnonzero(self._segment.code == BEGIN)
        return [
            _Block(number, position, int(end[number]), self._holders.of(number))
            for position, number in zip(
                begun.tolist(), self._segment.a[begun].tolist(), strict=True
            )
            if number in checkpointed
        ]

    def _own_inputs(self) -> dict[int, Ints]:
        """Return what each block that runs again takes and no other does, born in the segment.

        Masks and positions, which all blocks take, are not arguments that a checkpoint saves:
        the library passes them by name.
        """
        taken = [storage for _, storages in self._segment.inputs for storage in set(storages)]
        times = np.bincount(np.array(taken, dtype=np.int64), minlength=self._ids)
        again = {block.number for block in self._blocks if block.first_unpack >= 0}
        found = {}
        for number, storages in self._segment.inputs:
            mine = np.array(storages, dtype=np.int64)
            if number in again:
                found[number] = mine[(times[mine] == 1) & (self._born[mine] >= 0)]
        return found

    def offloaded(self) -> Ints:
        """Return the size rows of what waits in system memory."""
        rows: Ints = self._size[np.concatenate([np.zeros(0, np.int64), *self._moved.values()])]
        return rows

    def log(self) -> Log:
        """Return the events, those of second forwards at their places."""
        rows = [self._traced_births(), self._deaths()]
        ops: list[int] = []
        for block in self._blocks:
            if block.first_unpack >= 0:
                again, after = self._recomputed(block)
                rows += [*self._returned(block), again, after]
                ran = again.op[again.op >= 0]
                ops += range(int(ran.min()), int(ran.max()) + 1) if ran.size else ()
        return _written(rows, ops)

    def _traced_births(self) -> _Rows:
        at, segment = self._births, self._segment
        return _Rows(3 * at + _AT, segment.a[at], segment.b[at], segment.c[at])

    def _deaths(self) -> _Rows:
        """Return when storages die with what autograd keeps; those born earlier, as traced."""
        death, holders = self._dead.copy(), self._holders
        until = np.maximum(holders.released, holders.copy_dead)
        born = self._born[holders.storage]
        for block in self._blocks:
            inside = (block.begin < born) & (born < block.end)
            moved = np.isin(holders.storage, self._moved.get(block.number, ()))
            until = np.where(
                holders.block == block.number,
                np.where(inside | moved, -1, block.last_release),
                until,
            )
        np.maximum.at(death, holders.storage, until)
        last_release = {block.number: block.last_release for block in self._blocks}
        for number, storages in self._segment.inputs:
            kept = np.setdiff1d(storages, self._moved.get(number, ()))
            np.maximum.at(death, kept.astype(np.int64), last_release.get(number, -1))
        if self._reentrant:
            for block in self._blocks:
                np.maximum.at(death, self._gradients(block), block.last_release)
        storage = self._segment.a[self._segment.code == FREE]
        at = np.where(self._born[storage] >= 0, death[storage], self._dead[storage])
        return _Rows(3 * at + _AFTER, -storage, self._size[storage], np.full(len(at), -1))

    def _returned(self, block: _Block) -> tuple[_Rows, ...]:
        """Return the births of the inputs that come back before the second forward, and deaths."""
        moved = self._moved.get(block.number)
        if moved is None or not moved.size:
            return ()
        name = self._fresh + 1 + np.arange(len(moved))
        self._fresh += len(moved)
        none, size = np.full(len(moved), -1), self._size[moved]
        back = np.full(len(moved), 3 * self._restart(block) + _BEFORE)
        gone = np.full(len(moved), 3 * block.last_release + _AFTER)
        return _Rows(back, name, size, none, again=True), _Rows(gone, -name, size, none)

    def _recomputed(self, block: _Block) -> tuple[_Rows, _Rows]:
        """Return the births and deaths of the block's second forward, and the later deaths."""
        stop = block.end if self._reentrant else int(block.holders.packed.max())
        births = self._births[(self._births >= block.begin) & (self._births <= stop)]
        storage = self._segment.a[births]
        name = self._fresh + 1 + np.arange(len(births))
        self._fresh += len(births)
        last = self._last_use(block)
        held = self._held(block)[storage]
        if self._reentrant:
            returned = self._outputs(block)[storage]
            last[storage[returned]] = max(int(last.max()), block.last_release)
            held |= returned
        # What is not saved dies where it did, or at the stop after the last save.
        dead = self._dead[storage[~held]]
        dead = np.where((dead >= 0) & (dead <= stop), dead, stop + 1)
        again = np.argsort(np.concatenate([births, dead]), kind="stable")
        segment, count = self._segment, int(np.count_nonzero(~held))
        second = _Rows(
            np.full(len(again), 3 * self._restart(block) + _BEFORE),
            np.concatenate([name, -name[~held]])[again],
            np.concatenate([segment.b[births], self._size[storage[~held]]])[again],
            np.concatenate([segment.c[births], np.full(count, -1)])[again],
            again=True,
        )
        kept = storage[held]
        return second, _Rows(
            3 * last[kept] + _AFTER,
            -name[held],
            self._size[kept],
            np.full(len(kept), -1),
        )

    def _restart(self, block: _Block) -> int:
        """Return the position before which the second forward runs.

        Mostly that is the block's first request. A re-entrant one runs before all of the block's
        backward, so before what was made of its gradients since the last death.
        """
        first, unpacked = block.first_unpack, self._holders.unpacked
        if not self._reentrant:
            return first
        since = int(unpacked[unpacked < first].max(initial=block.end))
        freed = np.flatnonzero(self._segment.code[since:first] == FREE)
        return since + 1 + int(freed.max(initial=0))

    def _outputs(self, block: _Block) -> NDArray[np.bool_]:
        """Return which storages the block returns; (ids,)."""
        inside = (block.begin <= self._born) & (self._born <= block.end)
        return inside & ~self._held(block) & ((self._dead < 0) | (self._dead > block.end))

    def _gradients(self, block: _Block) -> Ints:
        """Return the gradients of what the block returns.

        Each is as large and is born in the backward pass. It is the oldest such that lives at the
        block's first request, as what is scaled or summed from it comes later. Where all are dead
        by then, it was cast: it is the youngest.
        """
        first, unpacked = block.first_unpack, self._holders.unpacked
        backward = int(unpacked[unpacked >= 0].min())
        born = self._segment.a[self._births[(self._births > backward) & (self._births < first)]]
        found = [np.zeros(0, np.int64)]
        for size in np.unique(self._size[self._outputs(block)]):
            equal = born[self._size[born] == size]
            alive = equal[(self._dead[equal] < 0) | (self._dead[equal] > first)]
            found.append(alive[:1] if alive.size else equal[-1:])
        return np.concatenate(found).astype(np.int64)

    def _held(self, block: _Block) -> NDArray[np.bool_]:
        """Return which storages the block saves; (ids,)."""
        held = np.zeros(self._ids, dtype=np.bool_)
        held[block.holders.storage] = True
        return held

    def _last_use(self, block: _Block) -> Ints:
        """Return the position at which the copies of each saved storage are dead."""
        last, holders = np.full(self._ids, -1, dtype=np.int64), block.holders
        dead = np.where(holders.copy_dead >= 0, holders.copy_dead, block.last_release)
        np.maximum.at(last, holders.storage, dead)
        return last


def _written(rows: list[_Rows], recomputed_ops: list[int]) -> Log:
    """Return the rows in the order of their places; at the same place, as they were given."""
    order = np.argsort(np.concatenate([row.place for row in rows]), kind="stable")
    storage, size, op = (
        np.concatenate([getattr(row, name) for row in rows])[order]
        for name in ("storage", "size", "op")
    )
    again = np.repeat([row.again for row in rows], [len(row.place) for row in rows])[order]
    return Log(
        storage=storage.astype(np.int64),
        size=size.astype(np.int32),
        op=op.astype(np.int32),
        recomputed=again.astype(np.bool_),
        recomputed_ops=np.array(recomputed_ops, dtype=np.int32),
    )
