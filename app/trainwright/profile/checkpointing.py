"""Events of a checkpointed run, written from one trace of the plain run.

The tracer keeps, for each tensor that autograd saves, only a small holder. Its log
therefore says when a storage dies *without* autograd, which blocks saved it, and when
backward asks for it. From that follows the run in which chosen blocks stand under
``torch.utils.checkpoint(use_reentrant=False)``:

* a storage made inside a checkpointed block dies in the forward as if autograd did not look;
* the block's inputs live until its last holder is released;
* at the first request for one of its saved tensors the block's forward runs again, up to
  its last save (early stop), and those storages die with their unpacked copies.

With no block chosen the result is the plain run.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.profile import Segment
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


def chosen_blocks(policy: str, blocks: int) -> frozenset[int]:
    """Return the blocks that a policy checkpoints: ``none``, ``full``, ``every-K``.

    ``every-K`` checkpoints blocks 0, K, 2K and so on, as transformers' ``every_n_layers``
    and torchtitan's ``selective_ac_option`` do.

    Raises:
        ValueError: another policy; ``selective`` is traced, not derived.
    """
    if policy == "none":
        return frozenset()
    if policy == "full":
        return frozenset(range(blocks))
    if policy.startswith("every-"):
        return frozenset(range(0, blocks, int(policy.removeprefix("every-"))))
    raise ValueError(policy)


@dataclass(slots=True)
class _Holder:
    """A saved tensor: what it keeps, for which block, and when it is asked for."""

    storage: int
    block: int
    packed: int
    released: int = -1
    unpacked: int = -1
    copy_dead: int = -1


@dataclass(slots=True)
class _Block:
    """One checkpointed block's span in the log."""

    begin: int
    end: int = -1
    last_pack: int = -1
    first_unpack: int = -1
    last_release: int = -1
    holders: list[_Holder] = field(default_factory=list)


def derive(segment: Segment, checkpointed: Collection[int] = frozenset(), fresh: int = 0) -> Log:
    """Return the segment's births and deaths with the given blocks checkpointed.

    Recomputed storages take ids above ``fresh`` and above all of the segment's own.
    """
    return _Derivation(segment, checkpointed, fresh).log()


class _Derivation:
    """The reading of one segment: where each storage, holder and block begins and ends."""

    def __init__(self, segment: Segment, checkpointed: Collection[int], fresh: int) -> None:
        self._code = segment.code.tolist()
        self._a = segment.a.tolist()
        self._b = segment.b.tolist()
        self._c = segment.c.tolist()
        self._born: dict[int, int] = {}
        self._dead: dict[int, int] = {}
        self._size: dict[int, int] = {}
        self._holders: dict[int, _Holder] = {}
        self._of_storage: defaultdict[int, list[_Holder]] = defaultdict(list)
        self._blocks: dict[int, _Block] = {}
        self._read(frozenset(checkpointed))
        self._takers: defaultdict[int, list[_Block]] = defaultdict(list)
        for number, storages in segment.inputs:
            if number in self._blocks:
                for storage in storages:
                    self._takers[storage].append(self._blocks[number])
        # What the log inserts before and after the event at a position.
        self._before: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
        self._after: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
        self._fresh = max(max(self._born, default=0), fresh)
        self._recomputed_ops: list[int] = []

    def _read(self, checkpointed: frozenset[int]) -> None:
        for position, code in enumerate(self._code):
            operand = self._a[position]
            if code == ALLOC:
                self._born[operand] = position
                self._size[operand] = self._b[position]
            elif code == FREE:
                self._dead[operand] = position
            elif code == PACK:
                holder = _Holder(self._b[position], self._c[position], position)
                self._holders[operand] = holder
                self._of_storage[holder.storage].append(holder)
                if (block := self._blocks.get(holder.block)) is not None:
                    block.holders.append(holder)
                    block.last_pack = position
            elif code == RELEASE:
                self._holders[operand].released = position
            elif code == UNPACK:
                self._holders[operand].unpacked = position
            elif code == COPY_DEAD:
                self._holders[operand].copy_dead = position
            elif code == BEGIN and operand in checkpointed:
                self._blocks[operand] = _Block(position)
            elif code == END and operand in self._blocks:
                self._blocks[operand].end = position
        for block in self._blocks.values():
            block.last_release = max((h.released for h in block.holders), default=-1)
            asked = [h.unpacked for h in block.holders if h.unpacked >= 0]
            block.first_unpack = min(asked, default=-1)

    def log(self) -> Log:
        """Return the events, the insertions at their places."""
        for storage, position in self._dead.items():
            if storage not in self._born:  # Born in an earlier segment: dies as it did.
                self._after[position].append((-storage, -1, -1))
            else:
                self._after[self._death(storage)].append((-storage, self._size[storage], -1))
        for block in self._blocks.values():
            if block.first_unpack >= 0:
                self._recompute(block)
        return self._written()

    def _death(self, storage: int) -> int:
        """Return the position at which a storage of this segment dies."""
        position = self._dead[storage]
        born = self._born[storage]
        for holder in self._of_storage.get(storage, ()):
            block = self._blocks.get(holder.block)
            if block is None:
                position = max(position, holder.released, holder.copy_dead)
            elif not block.begin < born < block.end:
                position = max(position, block.last_release)
        for block in self._takers.get(storage, ()):
            position = max(position, block.last_release)
        return position

    def _recompute(self, block: _Block) -> None:
        """Insert the block's second forward before its first request."""
        renamed: dict[int, int] = {}
        again: list[tuple[int, int, int]] = []
        held = {h.storage for h in block.holders}
        for position in range(block.begin, block.last_pack + 1):
            storage = self._a[position]
            if self._code[position] == ALLOC:
                self._fresh += 1
                renamed[storage] = self._fresh
                again.append((self._fresh, self._b[position], self._c[position]))
            elif self._code[position] == FREE and storage in renamed and storage not in held:
                again.append((-renamed.pop(storage), self._size[storage], -1))
        if again:
            ops = [op for name, _, op in again if name > 0 and op >= 0]
            if ops:
                self._recomputed_ops.extend(range(min(ops), max(ops) + 1))
        for storage, name in renamed.items():
            size = self._size[storage]
            if storage not in held:
                again.append((-name, size, -1))
                continue
            copies = [h for h in block.holders if h.storage == storage]
            last = max(h.copy_dead if h.copy_dead >= 0 else block.last_release for h in copies)
            self._after[last].append((-name, size, -1))
        self._before[block.first_unpack].extend(again)

    def _written(self) -> Log:
        """Return the log; a RELEASE or COPY_DEAD leaves only what was inserted there."""
        out: list[tuple[int, int, int]] = []
        again: list[bool] = []
        for position, code in enumerate(self._code):
            before = self._before.get(position, ())
            out += before
            again += [True] * len(before)
            if code == ALLOC:
                out.append((self._a[position], self._b[position], self._c[position]))
                again.append(False)
            after = self._after.get(position, ())
            out += after
            again += [False] * len(after)
        table = np.array(out, dtype=np.int64).reshape(-1, 3)
        return Log(
            storage=table[:, 0].copy(),
            size=table[:, 1].astype(np.int32),
            op=table[:, 2].astype(np.int32),
            recomputed=np.array(again, dtype=np.bool_),
            recomputed_ops=np.array(self._recomputed_ops, dtype=np.int32),
        )
