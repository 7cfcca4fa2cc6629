"""Runs of known cause: what the diagnosis says of them, and how the held-out part was drawn."""

import csv
import hashlib
from collections import defaultdict
from pathlib import Path

import pytest

from trainwright.diagnose import record

HERE = Path(__file__).parent / "situations"

CAUSES = {
    "parallelism",
    "input",
    "tuning",
    "memory",
    "communication",
    "scheduling",
    "monitoring",
    "none",
    "unknown",
}


def index() -> list[dict[str, str]]:
    """Return the situations' lines."""
    with (HERE / "index.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_there_are_enough_situations_of_every_cause_and_origin() -> None:
    rows = [row for row in index() if not row["dropped"]]
    assert len(rows) >= 40
    assert sum(row["origin"] == "real-run" for row in rows) >= 15
    assert {row["cause"] for row in rows} == CAUSES
    assert all(row["source"].startswith("https://") for row in rows if row["origin"] == "public")


def test_the_held_out_third_is_the_one_that_the_rule_draws() -> None:
    by_cause: dict[str, list[str]] = defaultdict(list)
    for row in index():
        by_cause[row["cause"]].append(row["id"])
    drawn = {
        name
        for names in by_cause.values()
        for name in sorted(names, key=_digest)[: max(1, round(len(names) / 3))]
    }
    assert {row["id"] for row in index() if row["held_out"] == "yes"} == drawn


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _public() -> list[dict[str, str]]:
    return [row for row in index() if row["origin"] == "public" and not row["dropped"]]


@pytest.mark.parametrize("row", _public(), ids=lambda row: row["id"])
def test_what_a_source_states_is_a_record_that_names_its_source(row: dict[str, str]) -> None:
    evidence = record.read(HERE / "records" / f"{row['id']}.record.json")
    assert evidence.source == row["source"]
    assert evidence.made_by == "hand"
