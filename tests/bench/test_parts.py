"""Filter and sort of 10,000 parts as somebody types; printed, never judged by the clock."""

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter, process_time

import pytest

from trainwright.catalog import list_parts
from trainwright.catalog.table import Filter, table

ROWS = 10_000
BUDGET_S = 0.016
"""One frame; of issue 6."""


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Return seconds of the wall and of the processor."""
    wall, busy = perf_counter(), process_time()
    work()
    return perf_counter() - wall, process_time() - busy


def test_filter_and_sort_of_ten_thousand_parts(capsys: pytest.CaptureFixture[str]) -> None:
    shipped = list_parts("psu")
    parts = [shipped[number % len(shipped)] for number in range(ROWS)]
    made = timed(lambda: table(parts))
    known = table(parts)
    at_least = [Filter("watts", ">=", "850")]
    known.find(sort="watts")
    words = ["corsair rm1000"[:end] for end in range(1, 15)]
    typed = [timed(partial(known.find, text)) for text in words]
    asked = [timed(lambda: known.find("", at_least, "watts", descending=True)) for _ in range(9)]
    both = [timed(lambda: known.find("gold", at_least, "watts")) for _ in range(9)]
    assert len(known.find("", at_least).parts) > ROWS / 2
    with capsys.disabled():
        print(f"\n{ROWS} parts; budget {BUDGET_S * 1e3:g} ms")
        print(
            f"  making the table, once         {made[0] * 1e3:7.1f} ms, {made[1] * 1e3:6.1f} ms CPU"
        )
        for name, runs in {
            "a letter more": typed,
            "filter and sort": asked,
            "word, filter and sort": both,
        }.items():
            wall, busy = (1e3 * median(column) for column in zip(*runs, strict=True))
            print(f"  {name:30} {wall:7.1f} ms, {busy:6.1f} ms CPU")
