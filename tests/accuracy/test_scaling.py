"""Scaling over several GPUs, predicted and measured: rows kept out of the fit, and known cases."""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from scaling import (
    BUILT_FOR_GPUS,
    ScalingRow,
    collective_rows,
    predicted,
    predicted_seconds,
    scaling_rows,
)

from trainwright.estimate.parallel.communication import load

SCRIPTS = Path(__file__).parents[2] / "scripts"
NOTHING_GAINED = 0.005
"""A second GPU adds nothing where the measured gain rounds to 0 % or less. Such a case is called
strictly where the predicted gain is at most 0, so that the report says "slower" or "probably
slower"; and loosely where the predicted range reaches 0: "faster or slower". A false alarm is a
case that gains something and of which the report says "slower" or "probably slower"."""
LITTLE = 0.4
"""Gain of a second GPU, as a share of the first, up to which a case is listed as one of little
gain."""
UNSTATED = {"dev.to-ddp"}
"""Cases of little gain that are not foreseen, and why. A model of 4 M parameters on two rented T4:
11 ms for 16 MB of gradients, where PCIe takes 2; the virtual machine's bus is not described."""


def _error(row: ScalingRow) -> float:
    return predicted(row, load()) - row.efficiency


def _line(title: str, errors: Iterable[float]) -> str:
    points = 100 * np.array(list(errors))
    size = np.abs(points)
    return (
        f"  {title:44} {len(points):4} rows: median {np.median(size):4.1f}  mean {size.mean():4.1f}"
        f"  p90 {np.quantile(size, 0.9):4.1f}  bias {np.median(points):+5.1f}"
    )


def _groups(
    rows: Iterable[ScalingRow], key: Callable[[ScalingRow], str]
) -> dict[str, list[ScalingRow]]:
    found: defaultdict[str, list[ScalingRow]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return dict(sorted(found.items()))


def test_scaling_is_predicted_within_six_points_on_rows_kept_out_of_the_fit() -> None:
    fitted = [row for row in scaling_rows() if not row.held]
    held = [row for row in scaling_rows() if row.held]
    usual = float(np.median([row.efficiency for row in fitted]))
    print("\nError of the scaling efficiency, in points")
    print(_line("rows of the fit", map(_error, fitted)))
    print(_line("kept out", map(_error, held)))
    always = [usual - row.efficiency for row in held]
    print(_line(f"kept out, were it always {usual:.2f}", always))
    hard = [row for row in held if row.efficiency < 0.9]
    print(_line("kept out, measured below 0.90", map(_error, hard)))
    print(_line("the same, were it always that", (usual - row.efficiency for row in hard)))
    for title, key in (
        ("source", lambda row: row.source),
        ("workload", lambda row: row.workload),
        ("GPU", lambda row: row.gpu),
        ("number", lambda row: f"{row.gpus:2} GPUs"),
    ):
        print(f"  kept out, by {title}")
        for name, rows in _groups(held, key).items():
            print(_line(f"  {name}", map(_error, rows)))
    errors = np.abs([_error(row) for row in held])
    assert len(held) >= 100
    assert np.median(errors) <= 0.06
    assert np.median(errors) < np.median(np.abs(always)) + 0.01
    hard_errors = np.abs([_error(row) for row in hard])
    assert np.median(hard_errors) < np.median([usual - row.efficiency for row in hard])
    within = errors <= load().efficiency_spread.value
    print(f"  within the stated range: {within.mean():.1%} of the rows kept out")
    assert 0.85 <= within.mean() <= 0.95


def _gains(row: ScalingRow) -> tuple[float, float]:
    """Return the gain that is predicted for a row of two GPUs, and the lower end of its range."""
    share = predicted(row, load())
    return 2 * share - 1, 2 * max(share - load().efficiency_spread.value, 0) - 1


def test_cases_in_which_a_second_gpu_adds_nothing_are_called() -> None:
    pairs = [row for row in scaling_rows() if row.gpus == 2]
    documented = [row for row in pairs if not row.source.startswith(("lambda", "nvidia"))]
    print("\nWhat a second GPU adds, documented cases")
    for row in sorted(documented, key=lambda row: row.gain):
        gain, low = _gains(row)
        said = "slower" if gain <= 0 else "faster or slower" if low <= 0 else ""
        print(
            f"  {row.source:24} {row.workload:20} {row.machine:28} {row.joined or 'card':6}"
            f" measured {row.gain:+5.0%} predicted {gain:+5.0%} (from {low:+5.0%})"
            f"  {'kept out' if row.held else 'fitted  '} {said}"
        )
    nothing = [row for row in documented if row.gain <= NOTHING_GAINED]
    strict = [row for row in nothing if _gains(row)[0] <= 0]
    loose = [row for row in nothing if _gains(row)[1] <= 0]
    wide = [row for row in nothing if 2 * predicted(_in_wide_slots(row), load()) - 1 <= 0]
    alarms = [row for row in pairs if row.gain > NOTHING_GAINED and _gains(row)[0] <= 0]
    held = sum(row.held for row in nothing)
    print(f"  nothing gained: {len(nothing)}, {held} of them kept out of the fit")
    print(f"  called strictly: {len(strict)} ({sum(row.held for row in strict)} kept out)")
    print(f"  called loosely: {len(loose)} ({sum(row.held for row in loose)} kept out)")
    print(f"  called strictly, were all slots as wide as the cards: {len(wide)}")
    print(f"  false alarms, of {len(pairs) - len(nothing)} other pairs: {len(alarms)}")
    assert len(nothing) >= 7
    assert strict == nothing
    assert loose == nothing
    assert not alarms
    little = [row for row in documented if row.gain <= LITTLE]
    missed = {row.source for row in little if _gains(row)[0] > LITTLE}
    assert missed <= UNSTATED


def _in_wide_slots(row: ScalingRow) -> ScalingRow:
    return replace(row, source=f"{BUILT_FOR_GPUS[0]} instead of {row.source}")


def test_bridges_are_told_from_pcie_on_the_same_cards() -> None:
    rows = [row for row in scaling_rows() if row.source == "transformers-9371"]
    pairs = _groups(rows, lambda row: f"{row.workload} {row.machine}")
    for with_and_without in pairs.values():
        faster, slower = sorted(with_and_without, key=lambda row: -row.efficiency)
        assert predicted(faster, load()) > predicted(slower, load()) + 0.15


def test_times_of_all_reduces() -> None:
    """Kept out: Hopper, and everything on PCIe of the generations after Ampere."""
    print("\nTime of an all-reduce, predicted over measured")
    groups: defaultdict[tuple[bool, str, int], list[float]] = defaultdict(list)
    for row in collective_rows():
        ratio = predicted_seconds(row, load()) / row.seconds
        groups[row.held, f"{row.source[:32]} {row.gpu}", row.gpus].append(ratio)
    for (held, name, count), ratios in sorted(groups.items()):
        low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
        title = f"{'kept out' if held else 'fitted'} {name}, {count} GPUs"
        print(f"  {title:76} {len(ratios):3}: {middle:4.2f} ({low:4.2f} to {high:4.2f})")
    large = [row for row in collective_rows() if row.nbytes >= 16e6]
    wrong = [abs(np.log(predicted_seconds(row, load()) / row.seconds)) for row in large]
    print(f"  from 16 MB on: median factor {np.exp(np.median(wrong)):.2f} of {len(large)} rows")
    assert np.median(wrong) < np.log(1.25)


def test_the_fit_gives_the_shipped_constants() -> None:
    sys.path.insert(0, str(SCRIPTS))
    import fit_communication

    shipped = json.loads(fit_communication.FILE.read_text(encoding="utf-8"))
    assert fit_communication.fitted(shipped) == shipped
