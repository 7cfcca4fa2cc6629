"""A replay of torch's CUDA caching allocator for one stream.

The rules are those of ``c10/cuda/CUDACachingAllocator.cpp`` (native backend); constants are
those of ``c10/core/AllocatorConfig.h`` in torch 2.10 to 2.13. With default settings there is
no ``max_split_size``, no garbage collection, and no rounding to powers of two, so that the
step that frees oversize blocks first never finds any, and is left out.

``allocator.c`` is the same replay, some thirty times as fast. An installation builds it where
it finds a compiler. Where it did not, the Python below gives the same answer.
"""

import ctypes
import sys
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np

from trainwright.profile.profile import Ints

MIN_BLOCK = 512
"""``kMinBlockSize``: sizes are rounded up to multiples of it."""
SMALL = 1 << 20
"""``kSmallSize``: the largest request that the small pool serves."""
SMALL_SEGMENT = 2 << 20
"""``kSmallBuffer``: a segment of the small pool; the page of its expandable segment."""
LARGE_SEGMENT = 20 << 20
"""``large_segment_size``: a segment for requests below ``MIN_LARGE``; the page of the large
pool's expandable segment."""
MIN_LARGE = 10 << 20
"""``kMinLargeAlloc``: from here on a request gets a segment of its own size."""
ROUND_LARGE = 2 << 20
"""``kRoundLarge``: multiple of such segments."""

_ENDLESS = 1 << 60
"""Address space of an expandable segment; torch takes 9/8 of the card, which never ends
before the memory does unless segments are unmapped again and again."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What the allocator counted."""

    allocated: Ints
    """Bytes of the blocks in use after each event, as ``memory_allocated`` counts; (n,)."""
    block: Ints
    """Bytes of the block that each birth got, or that each death gave back; (n,)."""
    requested_peak: int
    """Most bytes asked for at one time."""
    reserved_peak: int
    """Most bytes of segments held, as ``max_memory_reserved`` counts."""
    failed: int | None
    """Event at which torch would raise ``OutOfMemoryError``; what follows is not replayed."""
    releases: int
    """Times that cached segments were given back to make room; each one is slow."""

    @property
    def out_of_memory(self) -> bool:
        """Whether the sequence did not fit."""
        return self.failed is not None

    @property
    def peak(self) -> int:
        """Event at which allocated bytes are highest, the first of them."""
        return int(np.argmax(self.allocated))

    @property
    def allocated_peak(self) -> int:
        """Most bytes of blocks in use, as ``max_memory_allocated`` counts."""
        return int(self.allocated.max(initial=0))


def rounded(size: Ints) -> Ints:
    """Return sizes as the allocator rounds them; an empty tensor has no storage."""
    result: Ints = -(-size // MIN_BLOCK) * MIN_BLOCK
    return result


def replay(
    storage: Ints, size: Ints, *, expandable: bool = False, limit: int | None = None
) -> Replay:
    """Return what the allocator does with a sequence of births and deaths.

    Args:
        storage: Positive at a birth, negative at the death of the same id; (n,).
        size: Bytes asked for; (n,).
        expandable: ``expandable_segments:True``.
        limit: Bytes that segments may take in all; ``None`` is not a limit.
    """
    key = np.ascontiguousarray(storage, dtype=np.int64)
    nbytes = np.ascontiguousarray(rounded(size), dtype=np.int64)
    run = compiled()
    given = (key, nbytes, expandable, limit)
    answer = _interpreted(*given) if run is None else _by_library(run, *given)
    block, reserved_peak, releases, failed = answer
    requested = np.cumsum(np.where(key > 0, size, -size)[:failed])
    return Replay(
        np.cumsum(block),
        np.abs(block),
        int(requested.max(initial=0)),
        reserved_peak,
        failed,
        releases,
    )


_Answer = tuple[Ints, int, int, int | None]
"""(bytes got or given back at each event, most reserved, releases, event that failed)."""


def _interpreted(key: Ints, size: Ints, expandable: bool, limit: int | None) -> _Answer:
    allocator = _Expandable(limit) if expandable else _Native(limit)
    live: dict[int, Block] = {}
    block = np.zeros(len(key), dtype=np.int64)
    for event, (storage, nbytes) in enumerate(zip(key.tolist(), size.tolist(), strict=True)):
        if storage < 0:
            if (dead := live.pop(-storage, None)) is not None:
                block[event] = -dead.size
                allocator.free(dead)
        elif nbytes:
            if (born := allocator.malloc(nbytes)) is None:
                return block, allocator.reserved_peak, allocator.releases, event
            live[storage] = born
            block[event] = born.size
    return block, allocator.reserved_peak, allocator.releases, None


def _by_library(
    run: Callable[..., int], key: Ints, size: Ints, expandable: bool, limit: int | None
) -> _Answer:
    block, out = np.zeros(len(key), dtype=np.int64), np.zeros(3, dtype=np.int64)
    room = 2 * len(key) + 64  # blocks: nearly always enough, and pages never touched cost nothing
    keys = int(np.abs(key).max(initial=0)) + 1
    while True:
        live = np.zeros(keys, dtype=np.int64)
        memory = np.empty(_WORDS_A_BLOCK * room, dtype=np.int64)
        at = (array.ctypes.data for array in (block, live, memory))
        bound = -1 if limit is None else limit
        pointers = (key.ctypes.data, size.ctypes.data, expandable, bound, *at)
        if not run(len(key), *pointers, room, out.ctypes.data):
            reserved_peak, releases, failed = out.tolist()
            return block, reserved_peak, releases, None if failed < 0 else failed
        block[:] = 0
        room *= 4


_WORDS_A_BLOCK = 11
"""Six of ``Block`` in ``allocator.c``, and a place in each of its five lists."""
_SUFFIX = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")


@cache
def compiled() -> Callable[..., int] | None:
    """Return the replay of ``allocator.c``; None where this very source is not built."""
    source = Path(__file__).with_suffix(".c")
    try:
        name = f"liballocator-{crc32(source.read_bytes()):08x}.{_SUFFIX}"
        run = ctypes.CDLL(str(source.with_name(name))).trainwright_replay
    except (OSError, AttributeError):
        return None
    word, array = ctypes.c_int64, ctypes.c_void_p
    run.argtypes = (word, array, array, ctypes.c_int, word, array, array, array, word, array)
    run.restype = ctypes.c_int
    return run


class Block:
    """A stretch of a segment, in use or free; neighbours are linked."""

    __slots__ = ("address", "free", "mapped", "next", "pool", "prev", "size")

    def __init__(self, pool: "Pool", address: int, size: int) -> None:
        self.pool = pool
        self.address = address
        self.size = size
        self.free = True
        self.mapped = True
        self.prev: Block | None = None
        self.next: Block | None = None

    def split(self, size: int) -> "Block":
        """Cut the block to ``size`` and return what is left behind it."""
        rest = Block(self.pool, self.address + size, self.size - size)
        rest.mapped = self.mapped
        rest.prev, rest.next = self, self.next
        if self.next is not None:
            self.next.prev = rest
        self.next = rest
        self.size = size
        return rest

    def swallow_next(self) -> None:
        """Take in the block behind."""
        swallowed = self.next
        assert swallowed is not None
        self.size += swallowed.size
        self.next = swallowed.next
        if self.next is not None:
            self.next.prev = self


class Pool:
    """Free blocks in the order in which best fit looks at them: by size, then address."""

    __slots__ = ("blocks", "page")

    def __init__(self, page: int) -> None:
        self.page = page
        self.blocks: list[tuple[int, int, Block]] = []

    def add(self, block: Block) -> None:
        """Put a free block in."""
        insort(self.blocks, (block.size, block.address, block))

    def remove(self, block: Block) -> None:
        """Take a free block out."""
        del self.blocks[bisect_left(self.blocks, (block.size, block.address))]

    def add_merged(self, block: Block) -> Block:
        """Join a freed block with its free neighbours, put it in, and return it."""
        before, after = block.prev, block.next
        if after is not None and after.free and after.mapped:
            self.remove(after)
            block.swallow_next()
        if before is not None and before.free and before.mapped:
            self.remove(before)
            before.swallow_next()
            block = before
        self.add(block)
        return block


class _Allocator(ABC):
    """Two pools, and the bytes that are held for them."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.reserved = self.reserved_peak = self.releases = 0
        self.small = Pool(SMALL_SEGMENT)
        self.large = Pool(LARGE_SEGMENT)

    @abstractmethod
    def malloc(self, size: int) -> Block | None:
        """Return a block of at least ``size``, a multiple of 512; None when out of memory."""

    def free(self, block: Block) -> None:
        """Take a block back."""
        block.free = True
        block.pool.add_merged(block)

    def over(self, nbytes: int) -> bool:
        """Return whether so many bytes more are more than the limit."""
        return self.limit is not None and self.reserved + nbytes > self.limit

    def reserve(self, nbytes: int) -> None:
        """Count bytes that the driver gave."""
        self.reserved += nbytes
        self.reserved_peak = max(self.reserved_peak, self.reserved)


class _Native(_Allocator):
    """Segments from ``cudaMalloc``, split and joined within themselves."""

    def __init__(self, limit: int | None) -> None:
        super().__init__(limit)
        self._end = 0

    def malloc(self, size: int) -> Block | None:
        """Return a block, cut to size where enough is left to be worth it."""
        pool = self.small if size <= SMALL else self.large
        found = bisect_left(pool.blocks, (size,))
        block: Block | None
        if found < len(pool.blocks):
            block = pool.blocks.pop(found)[2]
        else:
            block = self._segment(pool, size)
            if block is None:
                return None
        rest = block.size - size
        # A large block keeps a tail of up to 1 MiB: ``should_split``.
        if rest > SMALL or (rest and pool is self.small):
            pool.add(block.split(size))
        block.free = False
        return block

    def _segment(self, pool: Pool, size: int) -> Block | None:
        if pool is self.large and size >= MIN_LARGE:
            nbytes = -(-size // ROUND_LARGE) * ROUND_LARGE
        else:
            nbytes = pool.page
        if self.over(nbytes):
            self._release()
            if self.over(nbytes):
                return None
        block = Block(pool, self._end, nbytes)
        self._end += nbytes
        self.reserve(nbytes)
        return block

    def _release(self) -> None:
        """Give back segments of which no part is in use: ``release_cached_blocks``."""
        self.releases += 1
        for pool in (self.large, self.small):
            whole = [entry for entry in pool.blocks if not (entry[2].prev or entry[2].next)]
            self.reserved -= sum(entry[0] for entry in whole)
            pool.blocks = [entry for entry in pool.blocks if entry[2].prev or entry[2].next]


class _Expandable(_Allocator):
    """One segment a pool, mapped page by page at its lowest gap that is large enough."""

    def __init__(self, limit: int | None) -> None:
        super().__init__(limit)
        self._gaps = {self.small: [_gap(self.small)], self.large: [_gap(self.large)]}

    def malloc(self, size: int) -> Block | None:
        """Return a block of exactly the size."""
        pool = self.small if size <= SMALL else self.large
        block = self._best_fit(pool, size) or self._expand(pool, size)
        if block is None:
            self._release()
            block = self._expand(pool, size)
        if block is None:
            return None
        pool.remove(block)
        if block.size > size:
            pool.add(block.split(size))
        block.free = False
        return block

    def _best_fit(self, pool: Pool, size: int) -> Block | None:
        found = bisect_left(pool.blocks, (size,))
        if found == len(pool.blocks):
            return None
        block = pool.blocks[found][2]
        # A block before a gap counts as long as it could grow, so that it is taken last.
        while found + 1 < len(pool.blocks):
            other = pool.blocks[found + 1][2]
            if _reach(other) >= _reach(block):
                break
            block, found = other, found + 1
        return block

    def _expand(self, pool: Pool, size: int) -> Block | None:
        """Map pages until a free block of ``size`` stands at the lowest address that can."""
        block: Block | None = _place(self._gaps[pool], size)
        if block is not None and not block.mapped:
            block = self._map(block, min(block.size, size))
        while block is not None and block.size < size:
            assert block.next is not None
            block = self._map(block.next, min(size - block.size, block.next.size))
        return block

    def _map(self, gap: Block, size: int) -> Block | None:
        """Back the first ``size`` bytes of a gap, whole pages, and return the free block."""
        pool = gap.pool
        nbytes = -(-size // pool.page) * pool.page
        if self.over(nbytes):
            return None
        gaps = self._gaps[pool]
        place = gaps.index(gap)
        if nbytes < gap.size:
            gaps[place] = gap.split(nbytes)
        else:
            del gaps[place]
        gap.mapped = True
        self.reserve(nbytes)
        return pool.add_merged(gap)

    def _release(self) -> None:
        """Unmap every page of which no part is in use: ``unmap_block``."""
        self.releases += 1
        for pool in (self.large, self.small):
            for _, _, block in list(pool.blocks):
                self._unmap(block)

    def _unmap(self, block: Block) -> None:
        pool = block.pool
        begin = -(-block.address // pool.page) * pool.page
        end = (block.address + block.size) // pool.page * pool.page
        if begin >= end:
            return
        pool.remove(block)
        if begin > block.address:
            front = block
            block = front.split(begin - front.address)
            pool.add(front)
        if block.size > end - begin:
            pool.add(block.split(end - begin))
        block.mapped = False
        self.reserved -= end - begin
        self._add_gap(block)

    def _add_gap(self, gap: Block) -> None:
        gaps = self._gaps[gap.pool]
        if gap.next is not None and not gap.next.mapped:
            gaps.remove(gap.next)
            gap.swallow_next()
        if gap.prev is not None and not gap.prev.mapped:
            gap.prev.swallow_next()
        else:
            insort(gaps, gap, key=lambda block: block.address)


def _gap(pool: Pool) -> Block:
    gap = Block(pool, 0, _ENDLESS)
    gap.mapped = False
    return gap


def _reach(block: Block) -> int:
    """Return the size to which a free block could grow in place."""
    if block.next is not None and not block.next.mapped:
        return block.size + block.next.size
    return block.size


def _place(gaps: list[Block], size: int) -> Block | None:
    """Return the lowest gap, or the free block before it, from which ``size`` has room."""
    for gap in gaps:
        before = gap.prev
        block = before if before is not None and before.free else gap
        if _room(block, size):
            return block
    return None


def _room(block: Block, size: int) -> bool:
    """Return whether free and unmapped stretches from here on add up to ``size``."""
    total = 0
    at: Block | None = block
    while at is not None and at.free and total < size:
        total += at.size
        at = at.next
    return total >= size
