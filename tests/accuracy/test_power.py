"""What power limits leave, against published sweeps."""

import csv
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from trainwright.catalog import find_gpu
from trainwright.estimate.power import limit_share, sustained_share

ROWS = Path(__file__).parent / "rows" / "power.csv"


def rows() -> list[dict[str, str]]:
    with ROWS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def predicted(row: dict[str, str]) -> float:
    record, limit = find_gpu(row["gpu"]).record, float(row["limit_w"])
    if row["what"] == "board":
        return sustained_share(record)
    return limit_share(record, limit) / limit_share(record, float(row["against_w"]))


def off(row: dict[str, str]) -> float:
    return predicted(row) / float(row["share"]) - 1


def test_table_is_printed(capsys: Any) -> None:
    with capsys.disabled():
        print("\n\nArithmetic left under a power limit:")
        for row in rows():
            print(
                f"  {row['gpu']:25} {row['limit_w']:>4} W {row['what']:9}"
                f" published {float(row['share']):5.2f} predicted {predicted(row):5.2f}"
                f"  {row['source'][:60]}"
            )


@pytest.mark.parametrize("what", ["clock", "training", "board"])
def test_clocks_and_training_speed_fall_as_published(what: str) -> None:
    errors = [abs(off(row)) for row in rows() if row["what"] == what]
    assert median(errors) <= 0.04
    assert max(errors) <= 0.07


def test_what_waits_for_memory_loses_less_than_the_arithmetic() -> None:
    """Serving keeps its memory's clock: the share of arithmetic is a bound from below."""
    for row in rows():
        if row["what"] in ("serving", "decode"):
            assert predicted(row) <= float(row["share"]) + 0.03
