"""What a process takes outside torch's allocator, against public readings of such GPUs.

The readings are differences that torch's out-of-memory errors state: what the process has in use
less what torch holds, to 10 MiB. Where the text does not name the card (``named`` is no), its
capacity tells it, between cards of one size the likeliest. Left out are several processes' sums
and runs whose other libraries allocate for themselves.
"""

from statistics import median

import numpy as np
import pytest
from rows import table

from trainwright.catalog import catalog
from trainwright.estimate import cuda
from trainwright.estimate.calibration import MIB, memory_calibration


def readings() -> list[tuple[str, float, float]]:
    """Return (GPU, threads that it holds in millions, MiB)."""
    known = memory_calibration().context
    found = []
    for row in table("rows/context.csv"):
        middle = cuda.context(catalog().record(row["gpu"])).middle
        threads = (middle - known.base) / known.per_thread
        found.append((row["gpu"], threads / 1e6, float(row["mib"])))
    return found


def fitted(rows: list[tuple[str, float, float]]) -> tuple[float, float]:
    """Return (MiB, bytes a thread) with the least sum of relative errors."""
    threads, mib = (np.array([row[at] for row in rows]) for at in (1, 2))
    base, each = np.meshgrid(np.arange(0, 155, 5), np.arange(1000, 3050, 50), indexing="ij")
    said = base[..., None] + each[..., None] * threads * 1e6 / MIB
    errors = np.abs(np.log(mib / said)).sum(axis=-1)
    best = np.unravel_index(errors.argmin(), errors.shape)
    return float(base[best]), float(each[best])


def test_context_is_the_fit_of_its_readings() -> None:
    known = memory_calibration().context
    base, each = fitted(readings())
    assert known.base == pytest.approx(base * MIB)
    assert known.per_thread == pytest.approx(each, rel=0.01)


def test_readings_of_a_gpu_that_is_left_out_lie_in_the_range_of_the_others() -> None:
    rows, known = readings(), memory_calibration().context
    ratios = []
    for gpu in dict.fromkeys(row[0] for row in rows):
        base, each = fitted([row for row in rows if row[0] != gpu])
        own = [row for row in rows if row[0] == gpu]
        ratios += [mib / (base + each * threads * 1e6 / MIB) for _, threads, mib in own]
    inside = np.mean([known.least <= ratio <= known.most for ratio in ratios])
    error = median(abs(ratio - 1) for ratio in ratios)
    print(f"context, GPUs left out one at a time: median error {error:.1%}, in range {inside:.1%}")
    assert error < 0.15
    assert inside >= 0.9


def test_readings_of_cards_that_the_text_names_lie_in_the_range() -> None:
    named = [row for row in table("rows/context.csv") if row["named"] == "yes"]
    assert len(named) >= 10
    for row in named:
        span = cuda.context(catalog().record(row["gpu"]))
        assert span.low <= float(row["mib"]) * MIB <= span.high, row


def test_context_of_a_t4_is_what_its_runs_say() -> None:
    found = cuda.context(catalog().record("t4"))
    assert found.low <= 140.9 * MIB <= found.high
    assert found.high < 250 * MIB
