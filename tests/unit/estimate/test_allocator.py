"""The replay against hand-worked sequences and against slow allocators written from the rules."""

import shutil
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.estimate.memory import allocator
from trainwright.estimate.memory.allocator import replay, rounded

KIB, MIB = 2**10, 2**20


@pytest.fixture(params=("compiled", "interpreted"), autouse=True, scope="module")
def _form(request):
    """Run every test with the library of allocator.c, and again with the Python of the module."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "interpreted":
            patch.setattr(allocator, "compiled", lambda: None)
        elif allocator.compiled() is None:
            assert shutil.which("cc") is None, "a compiler is here, and allocator.c was not built"
            pytest.skip("no compiler is here")
        yield


def run(*events, **options):
    """Replay (id, bytes) pairs; a negative id frees."""
    sizes = {}
    rows = []
    for event in events:
        key, nbytes = event if isinstance(event, tuple) else (event, sizes.get(-event, 0))
        sizes[key] = nbytes
        rows.append((key, nbytes))
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return replay(table[:, 0], table[:, 1], **options)


@pytest.mark.parametrize(
    ("nbytes", "allocated", "reserved"),
    [
        (1, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB, MIB, 2 * MIB),
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB, 10 * MIB),
        # 1 MiB stays unsplit, and max_memory_allocated counts it; more than 1 MiB is split off.
        (11 * MIB, 12 * MIB, 12 * MIB),
        (11 * MIB - 512, 11 * MIB - 512, 12 * MIB),
        (0, 0, 0),
    ],
)
def test_one_request(nbytes, allocated, reserved):
    result = run((1, nbytes))
    assert (result.allocated_peak, result.reserved_peak) == (allocated, reserved)
    assert result.requested_peak == nbytes


def test_small_requests_share_a_segment():
    result = run(*((key, 100 * KIB) for key in range(1, 21)))
    assert result.reserved_peak == 2 * MIB
    assert run(*((key, 100 * KIB) for key in range(1, 22))).reserved_peak == 4 * MIB


def test_a_freed_block_serves_the_next_request():
    result = run((1, 50 * MIB), -1, (2, 50 * MIB), -2, (3, 49 * MIB))
    assert result.reserved_peak == 50 * MIB
    assert result.allocated.tolist()[-1] == 50 * MIB  # 1 MiB is not split off.


def test_best_fit_takes_the_smallest_block_that_holds_it():
    # 30 is placed in the 40, not in the 60, so that 55 still finds the 60.
    result = run((1, 60 * MIB), (2, 40 * MIB), -1, -2, (3, 30 * MIB), (4, 55 * MIB))
    assert result.reserved_peak == 100 * MIB


def test_neighbours_are_joined():
    # Two halves of a 20 MiB segment come back as one block of 20.
    result = run((1, 9 * MIB), (2, 9 * MIB), -1, -2, (3, 19 * MIB))
    assert result.reserved_peak == 20 * MIB


def test_at_the_limit_unused_segments_are_given_back():
    events = [(1, 12 * MIB), -1, (2, 14 * MIB)]
    assert run(*events).reserved_peak == 26 * MIB
    tight = run(*events, limit=20 * MIB)
    assert (tight.out_of_memory, tight.releases, tight.reserved_peak) == (False, 1, 14 * MIB)
    assert run(*events, limit=13 * MIB).failed == 2


def test_a_segment_in_use_cannot_be_given_back():
    # 5 of 20 MiB are in use; 15 are free but not in one piece with a new segment.
    events = [(1, 5 * MIB), (2, 5 * MIB), -1, (3, 16 * MIB)]
    assert run(*events, limit=35 * MIB).out_of_memory
    assert not run(*events, limit=36 * MIB).out_of_memory


def test_expandable_segments_grow_in_place():
    native = run((1, 30 * MIB), -1, (2, 44 * MIB))
    expandable = run((1, 30 * MIB), -1, (2, 44 * MIB), expandable=True)
    assert native.reserved_peak == 74 * MIB
    assert expandable.reserved_peak == 60 * MIB  # Three pages of 20 MiB.


def test_expandable_segments_unmap_free_pages_at_the_limit():
    # The small pool's page is given back to the large pool's need.
    events = [(1, 1 * MIB), -1, (2, 20 * MIB)]
    result = run(*events, expandable=True, limit=20 * MIB)
    assert (result.out_of_memory, result.releases) == (False, 1)


def test_what_follows_a_failure_is_not_replayed():
    result = run((1, 5 * MIB), (2, 50 * MIB), -1, limit=30 * MIB)
    assert result.failed == 1
    assert result.allocated.tolist() == [5 * MIB] * 3


sizes = st.one_of(
    st.integers(1, 3 * MIB),
    st.integers(1, 60 * MIB),
    st.sampled_from([512, MIB, MIB + 1, 2 * MIB, 10 * MIB, 11 * MIB, 20 * MIB, 40 * MIB]),
)


@st.composite
def runs(draw):
    """Return births and deaths in an order that can happen."""
    live, rows = [], []
    for key, nbytes in enumerate(draw(st.lists(sizes, max_size=40)), start=1):
        while live and draw(st.integers(0, 2)) == 0:
            dead = live.pop(draw(st.integers(0, len(live) - 1)))
            rows.append((-dead[0], dead[1]))
        live.append((key, nbytes))
        rows.append((key, nbytes))
    table = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


limits = st.one_of(st.none(), st.integers(0, 600).map(lambda mib: mib * MIB))


@given(runs(), st.booleans(), limits)
def test_reserved_covers_allocated_covers_requested(events, expandable, limit):
    storage, size = events
    result = replay(storage, size, expandable=expandable, limit=limit)
    end = len(storage) if result.failed is None else result.failed
    live = np.cumsum(np.where(storage > 0, rounded(size), -rounded(size)))[:end]
    assert result.reserved_peak >= result.allocated_peak >= live.max(initial=0)
    assert result.requested_peak <= live.max(initial=0)
    if expandable:  # Blocks of an expandable segment are cut exactly.
        assert result.allocated[:end].tolist() == live.tolist()
    if limit is not None:
        assert result.reserved_peak <= limit


@given(runs(), st.booleans())
def test_a_limit_that_is_never_reached_changes_nothing(events, expandable):
    free = replay(*events, expandable=expandable)
    same = replay(*events, expandable=expandable, limit=free.reserved_peak)
    assert not same.out_of_memory
    assert same.releases == 0
    assert same.allocated.tolist() == free.allocated.tolist()


@given(runs())
def test_native_equals_a_slow_allocator_written_from_the_rules(events):
    storage, size = (column.tolist() for column in events)
    for limit in (None, 150 * MIB, 60 * MIB):
        slow = SlowNative(limit)
        expected = slow.run(storage, size)
        result = replay(*events, limit=limit)
        assert result.allocated.tolist()[: len(expected)] == expected
        assert (result.failed, result.reserved_peak) == (slow.failed, slow.reserved_peak)


@given(runs())
def test_expandable_equals_a_slow_allocator_written_from_the_rules(events):
    storage, size = (column.tolist() for column in events)
    for limit in (None, 150 * MIB, 60 * MIB):
        slow = SlowExpandable(limit)
        expected = slow.run(storage, size)
        result = replay(*events, expandable=True, limit=limit)
        assert result.allocated.tolist()[: len(expected)] == expected
        assert (result.failed, result.reserved_peak) == (slow.failed, slow.reserved_peak)


@pytest.mark.parametrize("expandable", [False, True])
def test_both_forms_replay_a_long_run_alike(expandable, monkeypatch):
    drawn = np.random.default_rng(0)
    sizes, live, rows = np.exp(drawn.uniform(6, 19, 6000)).astype(int).tolist(), [], []
    for key, nbytes in enumerate(sizes, start=1):
        rows.append((key, nbytes))
        live.append(rows[-1])
        while len(live) > 200 or (live and drawn.random() < 0.45):
            dead = live.pop(int(drawn.integers(len(live))))
            rows.append((-dead[0], dead[1]))
    events = np.array(rows, dtype=np.int64).T
    free = replay(*events, expandable=expandable)
    for share in (None, 1.0, 0.9, 0.8, 0.5):  # releases begin below 1, memory runs out at some
        limit = share and int(share * free.reserved_peak)
        one = replay(*events, expandable=expandable, limit=limit)
        with monkeypatch.context() as patch:
            patch.setattr(allocator, "compiled", lambda: None)
            other = replay(*events, expandable=expandable, limit=limit)
        assert one.allocated.tolist() == other.allocated.tolist()
        assert one.block.tolist() == other.block.tolist()
        assert (one.reserved_peak, one.releases, one.failed) == (
            (other.reserved_peak, other.releases, other.failed)
        )


class Slow:
    """Counting that both slow allocators share."""

    def __init__(self, limit):
        self.limit = limit
        self.reserved_peak, self.failed = 0, None

    def run(self, storage, size):
        seen, given_out = [], {}
        for event, (key, nbytes) in enumerate(zip(storage, size, strict=True)):
            if key < 0:
                self.free(-key)
                del given_out[-key]
            else:
                block = self.malloc(key, -(-nbytes // 512) * 512)
                if block is None:
                    self.failed = event
                    break
                given_out[key] = block
            self.reserved_peak = max(self.reserved_peak, self.reserved())
            seen.append(sum(given_out.values()))
        return seen


class SlowNative(Slow):
    """Segments as lists of [bytes, owner]; searched from end to end each time."""

    def __init__(self, limit):
        super().__init__(limit)
        self.segments = []  # (is small, blocks), in order of address.

    def reserved(self):
        return sum(size for _, blocks in self.segments for size, _ in blocks)

    def malloc(self, key, nbytes):
        small = nbytes <= MIB
        found = min(
            (
                (block[0], place, index)
                for place, (kind, blocks) in enumerate(self.segments)
                if kind == small
                for index, block in enumerate(blocks)
                if block[1] is None and block[0] >= nbytes
            ),
            default=None,
        )
        if found is None:
            found = self.segment(small, nbytes)
            if found is None:
                return None
        size, place, index = found
        blocks = self.segments[place][1]
        left = size - nbytes
        if left >= 512 if small else left > MIB:
            blocks[index : index + 1] = [[nbytes, key], [left, None]]
        else:
            blocks[index][1] = key
        return blocks[index][0]

    def segment(self, small, nbytes):
        if small:
            size = 2 * MIB
        elif nbytes < 10 * MIB:
            size = 20 * MIB
        else:
            size = -(-nbytes // (2 * MIB)) * 2 * MIB
        if self.limit is not None and self.reserved() + size > self.limit:
            self.segments = [
                (kind, blocks)
                for kind, blocks in self.segments
                if any(owner is not None for _, owner in blocks)
            ]
            if self.reserved() + size > self.limit:
                return None
        self.segments.append((small, [[size, None]]))
        return size, len(self.segments) - 1, 0

    def free(self, key):
        for _, blocks in self.segments:
            for block in blocks:
                if block[1] == key:
                    block[1] = None
            joined = []
            for size, owner in blocks:
                if joined and owner is None and joined[-1][1] is None:
                    joined[-1][0] += size
                else:
                    joined.append([size, owner])
            blocks[:] = joined


class SlowExpandable(Slow):
    """Each pool is a set of mapped pages and a map of what is in use where."""

    END = 2**50

    def __init__(self, limit):
        super().__init__(limit)
        self.pages = {True: set(), False: set()}
        self.used = {True: {}, False: {}}  # address -> (bytes, owner)

    @staticmethod
    def page(small):
        return 2 * MIB if small else 20 * MIB

    def reserved(self):
        return sum(len(pages) * self.page(small) for small, pages in self.pages.items())

    def stretches(self, small):
        """Return (address, bytes, kind) of used, free and gap stretches in order."""
        page, used = self.page(small), self.used[small]
        edges = {0, self.END}
        for number in self.pages[small]:
            edges |= {number * page, (number + 1) * page}
        for address, (size, _) in used.items():
            edges |= {address, address + size}
        cuts, out = sorted(edges), []
        inside = None
        for begin, end in pairwise(cuts):
            if begin in used:
                inside = begin + used[begin][0]
                out.append([begin, used[begin][0], "used"])
            if inside is not None and begin < inside:
                continue
            kind = "free" if begin // page in self.pages[small] else "gap"
            if out and out[-1][2] == kind:
                out[-1][1] += end - begin
            else:
                out.append([begin, end - begin, kind])
        return out

    def malloc(self, key, nbytes):
        small = nbytes <= MIB
        address = self.best_fit(small, nbytes)
        if address is None:
            address = self.expand(small, nbytes)
        if address is None:
            self.release()
            address = self.expand(small, nbytes)
        if address is None:
            return None
        self.used[small][address] = (nbytes, key)
        return nbytes

    def best_fit(self, small, nbytes):
        stretches = self.stretches(small)
        free = []
        for index, (begin, size, kind) in enumerate(stretches):
            if kind == "free" and size >= nbytes:
                after = stretches[index + 1] if index + 1 < len(stretches) else None
                grows = after[1] if after and after[2] == "gap" else 0
                free.append((size, begin, size + grows))
        if not free:
            return None
        free.sort()
        at = 0
        while at + 1 < len(free) and free[at + 1][2] < free[at][2]:
            at += 1
        return free[at][1]

    def expand(self, small, nbytes):
        page = self.page(small)
        stretches = self.stretches(small)
        for index, (_, _, kind) in enumerate(stretches):
            if kind != "gap":
                continue
            first = index - 1 if index and stretches[index - 1][2] == "free" else index
            room, last = 0, first
            while room < nbytes and last < len(stretches) and stretches[last][2] != "used":
                room += stretches[last][1]
                last += 1
            if room < nbytes:
                continue
            start = stretches[first][0]
            for _, (gap, size, what) in enumerate(stretches[first:last]):
                if what != "gap":
                    continue
                need = min(size, start + nbytes - gap)
                if need <= 0:
                    break
                new = set(range(gap // page, -(-(gap + need) // page)))
                over = self.reserved() + len(new) * page
                if self.limit is not None and over > self.limit:
                    return None
                self.pages[small] |= new
                self.reserved_peak = max(self.reserved_peak, self.reserved())
            return start
        raise AssertionError("the last gap has no end")

    def release(self):
        for small in (False, True):
            page = self.page(small)
            busy = {
                number
                for address, (size, _) in self.used[small].items()
                for number in range(address // page, -(-(address + size) // page))
            }
            self.pages[small] &= busy

    def free(self, key):
        for used in self.used.values():
            for address in [a for a, (_, owner) in used.items() if owner == key]:
                del used[address]
