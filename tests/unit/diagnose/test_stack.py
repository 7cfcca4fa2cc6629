"""The looks at the training thread's stack: which of the script's functions hold it."""

import json
import sys
import threading
import time
import weakref
from collections.abc import Callable

import pytest

from trainwright.diagnose.recorder import surroundings
from trainwright.diagnose.recorder.stack import StackSample

ENOUGH = 50
"""Looks at the stack; a computer that others use as well gives a thread few in a second."""


def watched(work: Callable[[], object], patience_s: float = 60.0) -> dict[str, float]:
    """Return the functions and shares that are seen while the work is done again and again."""
    stack = StackSample(threading.get_ident())
    stack.start()
    until = time.monotonic() + patience_s
    while stack._looks < ENOUGH and time.monotonic() < until:
        work()
    stack.stop()
    return {row["name"]: row["share"] for row in stack.rows()}


def write_histogram() -> None:
    until = time.perf_counter() + 0.03
    while time.perf_counter() < until:
        json.dumps(list(range(1000)))


def forward() -> None:
    until = time.perf_counter() + 0.06
    while time.perf_counter() < until:
        pass


def test_functions_have_their_share_and_what_holds_the_whole_loop_has_none() -> None:
    def work() -> None:
        write_histogram()
        forward()

    found = watched(work)
    share = next(share for name, share in found.items() if name.endswith(":write_histogram"))
    assert 0.1 < share < 0.6  # a third, on a computer that others use as well
    assert not any("watched" in name or "forward" in name for name in found)


def test_a_call_of_what_is_no_python_is_named_as_the_source_has_it() -> None:
    def work() -> None:
        time.sleep(0.05)
        forward()

    found = watched(work)
    assert 0.1 < found["time.sleep()"] < 0.8


class Tensor:
    """Something that a function works on."""


def test_what_a_function_works_on_dies_with_it_as_it_does_unwatched() -> None:
    """torch refuses some work on tensors of two owners: a look must never be one."""

    def work() -> weakref.ref[Tensor]:
        own = Tensor()
        forward_on(own)
        return weakref.ref(own)

    def forward_on(_own: Tensor) -> None:
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until:
            pass

    alive = 0

    def step() -> None:
        nonlocal alive
        alive += sum(work()() is not None for _ in range(50))
        forward()

    assert watched(step), "nothing was seen"
    assert not alive


def test_methods_are_named_with_their_class() -> None:
    class Writer:
        def write(self) -> None:
            until = time.perf_counter() + 0.02
            while time.perf_counter() < until:
                json.dumps(list(range(1000)))

    def work() -> None:
        Writer().write()
        forward()

    assert any(name.endswith("Writer.write") for name in watched(work))


def test_a_few_looks_say_nothing() -> None:
    assert watched(lambda: time.sleep(0.01), patience_s=0.1) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_memory_that_is_taken_anew_is_counted_in_pages() -> None:
    before = surroundings.observed()
    kept = bytearray(64 << 20)  # the system gives its pages as they are written
    found = surroundings.host_between(before, surroundings.observed())
    wall = surroundings.observed()["time"] - before["time"]
    assert found["main_minor_faults_s"] * wall >= 0.5 * len(kept) / 4096 / 512  # large pages may do
    assert 0 <= found["main_system_share"] <= 1
