"""Reads or writes with a number of requests under way at once, and counts what was answered.

On Linux the kernel's own asynchronous requests (io_submit(2)) keep the queue full from one
thread, as fio's ``libaio`` does; elsewhere, and where they are refused, as many threads do.
"""

import ctypes
import mmap
import os
import platform
import random
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

CALLS = {
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
    "riscv64": (0, 1, 4, 2),
}
"""io_setup, io_destroy, io_getevents, io_submit in the kernel's tables of system calls."""
_REQUEST = struct.Struct("=QIIHhIQQqQII")
"""``struct iocb`` of ``linux/aio_abi.h``, little endian."""
_OFFSET_WORD = 5
"""Which of its 64-bit words is the offset in the file."""
_ANSWER_WORDS = 4
"""``struct io_event``: data, object, result, second result; 64 bits each."""
READ, WRITE = 0, 1
"""IOCB_CMD_PREAD and IOCB_CMD_PWRITE."""


@dataclass(frozen=True)
class Pattern:
    """What is asked of the drive."""

    block: int
    """Bytes of a request."""
    depth: int
    """Requests that are under way at once."""
    random: bool
    size: int
    """Bytes of the file that they may touch."""
    start: int = 0
    """Where in it they begin."""
    writes: bool = False


@dataclass
class Count:
    """What was answered between the ramp and the end."""

    requests: int = 0
    seconds: float = 0.0
    waits: list[float] = field(default_factory=list)
    """Seconds of single requests, where they go one at a time."""


class Clock:
    """When counting starts and when it ends."""

    def __init__(self, ramp: float, seconds: float, budget: int | None = None) -> None:
        self.begin = time.perf_counter() + ramp
        self.end = self.begin + seconds
        self.budget = budget
        """Requests that may be made in all; None for no limit."""

    def goes_on(self, now: float, counted: bool, made: int) -> bool:
        """Return whether to ask again: until the end, and until something was counted."""
        return (now < self.end or not counted) and (self.budget is None or made < self.budget)


def measure(descriptor: int, pattern: Pattern, clock: Clock) -> Count:
    """Return what the drive answered.

    Raises:
        OSError: a request failed, or fell short.
    """
    if pattern.depth == 1:
        return _one_by_one(descriptor, pattern, clock)
    ring = _Ring.open(pattern.depth)
    if ring is None:
        return _by_threads(descriptor, pattern, clock)
    try:
        return _by_ring(ring, descriptor, pattern, clock)
    finally:
        ring.close()


def offsets(pattern: Pattern) -> Callable[[], int]:
    """Return a function that gives the offset of the next request, each time it is called."""
    blocks, block, start = pattern.size // pattern.block, pattern.block, pattern.start
    if pattern.random:
        choose = random.Random().random
        return lambda: start + int(choose() * blocks) * block
    position = -1

    def following() -> int:
        nonlocal position
        position = (position + 1) % blocks
        return start + position * block

    return following


def buffer(size: int) -> memoryview:
    """Return memory at the start of a page, as direct requests need, with no repeated content.

    Of huge pages where the system has them: a large request in scattered small pages is hundreds
    of pieces, which take a virtual computer longer than its drive.
    """
    found = _huge(size) if hasattr(mmap, "MADV_HUGEPAGE") else memoryview(mmap.mmap(-1, size))
    found[:] = os.urandom(size)
    return found


HUGE_PAGE = 2 << 20
"""Of x86-64, and of arm64 with pages of 4 KiB; others take what comes."""


def _huge(size: int) -> memoryview:
    """Return memory that begins where a huge page does, and asks for them as long as it lasts."""
    whole = -(-size // HUGE_PAGE) * HUGE_PAGE
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    found = mmap.mmap(-1, whole + HUGE_PAGE, flags=private)
    with suppress(OSError):  # a kernel without them
        found.madvise(mmap.MADV_HUGEPAGE)
    start = -ctypes.addressof(ctypes.c_char.from_buffer(found)) % HUGE_PAGE
    return memoryview(found)[start : start + size]


def _one_by_one(descriptor: int, pattern: Pattern, clock: Clock) -> Count:
    memory, following = buffer(pattern.block), offsets(pattern)
    call = _write_at if pattern.writes else _read_at
    count, made, now = Count(), 0, time.perf_counter()
    first = None
    while clock.goes_on(now, bool(count.waits), made):
        if call(descriptor, memory, following()) != pattern.block:
            raise OSError(0, "short answer")
        before, now, made = now, time.perf_counter(), made + 1
        if before >= clock.begin:
            first = before if first is None else first
            count.waits.append(now - before)
    count.requests = len(count.waits)
    count.seconds = now - first if first is not None else 0.0
    return count


if sys.platform == "win32":
    _place = threading.Lock()

    def _read_at(descriptor: int, memory: memoryview, offset: int) -> int:
        with _place:
            os.lseek(descriptor, offset, os.SEEK_SET)
            return len(os.read(descriptor, len(memory)))

    def _write_at(descriptor: int, memory: memoryview, offset: int) -> int:
        with _place:
            os.lseek(descriptor, offset, os.SEEK_SET)
            return os.write(descriptor, memory)

else:

    def _read_at(descriptor: int, memory: memoryview, offset: int) -> int:
        return os.preadv(descriptor, [memory], offset)

    def _write_at(descriptor: int, memory: memoryview, offset: int) -> int:
        return os.pwritev(descriptor, [memory], offset)


def _by_threads(descriptor: int, pattern: Pattern, clock: Clock) -> Count:
    """Keep the queue full with one thread a request; Python lets them wait side by side."""
    following, turn, failures = offsets(pattern), threading.Lock(), []
    counts = [0] * pattern.depth
    call = _write_at if pattern.writes else _read_at
    left = [clock.budget if clock.budget is not None else sys.maxsize]

    def work(number: int) -> None:
        memory = buffer(pattern.block)
        try:
            while (now := time.perf_counter()) < clock.end:
                with turn:
                    offset, left[0] = following(), left[0] - 1
                    if left[0] < 0:
                        return
                if call(descriptor, memory, offset) != pattern.block:
                    raise OSError(0, "short answer")
                counts[number] += now >= clock.begin
        except OSError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(pattern.depth)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return Count(sum(counts), time.perf_counter() - clock.begin)


class _Ring:
    """A queue of the kernel's asynchronous requests."""

    def __init__(self, depth: int, numbers: tuple[int, ...], context: ctypes.c_ulong) -> None:
        self.depth, self.context = depth, context
        _, self._destroy, self._getevents, self._submit = numbers
        self._call = ctypes.CDLL(None, use_errno=True).syscall

    @classmethod
    def open(cls, depth: int) -> "_Ring | None":
        """Return a queue; None where the system has none for us."""
        numbers = CALLS.get(platform.machine())
        if sys.platform != "linux" or sys.byteorder != "little" or numbers is None:
            return None
        context = ctypes.c_ulong(0)
        if ctypes.CDLL(None).syscall(numbers[0], depth, ctypes.byref(context)):
            return None
        return cls(depth, numbers, context)

    def submit(self, pointers: ctypes.Array[ctypes.c_longlong], count: int) -> None:
        taken = self._call(self._submit, self.context, ctypes.c_long(count), pointers)
        if taken != count:
            error = ctypes.get_errno() if taken < 0 else 0
            raise OSError(error, os.strerror(error) if error else "short answer")

    def answers(self, events: ctypes.Array[ctypes.c_longlong]) -> int:
        found = self._call(
            self._getevents, self.context, ctypes.c_long(1), ctypes.c_long(self.depth), events, None
        )
        if found < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return int(found)

    def close(self) -> None:
        """Wait for what is under way, and give the queue back."""
        self._call(self._destroy, self.context)


def _by_ring(ring: _Ring, descriptor: int, pattern: Pattern, clock: Clock) -> Count:
    """Keep the kernel's queue full.

    What is done for each request is as little as Python allows, so that the drive is measured:
    of a request only its offset changes, and the kernel hands back where it lies.
    """
    following, depth, block = offsets(pattern), pattern.depth, pattern.block
    memory = buffer(block * depth)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    kind = WRITE if pattern.writes else READ
    requests = bytearray()
    for slot in range(depth):
        offset_word = slot * _REQUEST.size // 8 + _OFFSET_WORD
        requests += _REQUEST.pack(
            offset_word, 0, 0, kind, 0, descriptor, place + slot * block, block,
            following(), 0, 0, 0,
        )  # fmt: skip
    words = memoryview(requests).cast("q")
    table = ctypes.addressof(ctypes.c_char.from_buffer(requests))
    places = range(table, table + len(requests), _REQUEST.size)
    pointers = (ctypes.c_longlong * depth)(*places)
    events = (ctypes.c_longlong * (_ANSWER_WORDS * depth))()
    ring.submit(pointers, depth)
    made = under_way = depth
    answered, last = 0, time.perf_counter()
    first = last if last >= clock.begin else None
    whole = [[block] * count for count in range(depth + 1)]
    while under_way:
        count = ring.answers(events)
        now = time.perf_counter()
        under_way -= count
        if first is not None:
            answered, last = answered + count, now
        elif now >= clock.begin:
            first = last = now
        told = events[: _ANSWER_WORDS * count]
        if told[2::_ANSWER_WORDS] != whole[count]:
            raise OSError(0, "short answer")
        if clock.goes_on(now, answered > 0, made):
            for at in range(count):
                words[told[_ANSWER_WORDS * at]] = following()
                pointers[at] = told[_ANSWER_WORDS * at + 1]
            ring.submit(pointers, count)
            made, under_way = made + count, under_way + count
    return Count(answered, last - first if first is not None else 0.0)
