"""Steps measured on AMD's GPUs, which no constant of the clock was fitted on.

NeuSight's transformers in fp32 (``rows/workloads.csv``); the MI210 is kept out by
``rows/held_out.csv``. Their products run on the matrix cores, at twice the rate of the others.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np
from optables import as_ops, tables
from textrows import FILES, TextRow, rows

from trainwright.catalog import catalog
from trainwright.estimate.support import widening
from trainwright.estimate.time import efficiency
from trainwright.estimate.time.roofline import classify, op_times, rates
from trainwright.profile import shipped

FILE = "workloads.csv"
MEDIAN = 0.25


def test_an_instinct_takes_about_the_predicted_time() -> None:
    ratios = defaultdict(list)
    for row in rows(FILE):
        if catalog().record(row.gpu).vendor == "AMD":
            ratios[row.gpu].append(predicted(row) / row.seconds)
    for gpu, found in sorted(ratios.items()):
        errors = np.abs(np.array(found) - 1)
        median, p90 = np.median(errors), np.quantile(errors, 0.9)
        print(f"{gpu:8} {len(found):3} rows, median {median:.1%}, p90 {p90:.1%}")
        assert median <= MEDIAN
    for gpu, found in ratios.items():
        factor = widening(catalog().record(gpu))
        assert all(1 / factor <= ratio <= factor for ratio in found)
    assert sum(map(len, ratios.values())) == 25


def predicted(row: TextRow) -> float:
    """Return the seconds of a row's kernels, on the product's own clock."""
    table, constants = tables(FILES[FILE])[row.key], efficiency.load()
    stored = shipped.profile("bert-large", "full-fp32-efficient")
    assert stored is not None
    profile = replace(stored, ops=as_ops(table))
    reached = rates(catalog().record(row.gpu), constants, tf32=False)
    times = op_times(classify(profile), reached, constants, batch=row.batch, sequence=0)
    runs = table.count * np.isin(table.phase, row.phases)
    return float(times.seconds @ runs) * row.accumulation
