"""Runs of known cause: what the diagnosis says of them, and how the held-out part was drawn."""

import hashlib
from collections import defaultdict

import pytest
from situationrows import Situation, judged, kept, situations, table

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


def test_there_are_enough_situations_of_every_cause_and_origin() -> None:
    rows = [row for row in situations() if not row.dropped]
    assert len(rows) >= 40
    assert sum(row.origin == "real-run" for row in rows) >= 15
    assert {row.cause for row in rows} == CAUSES
    assert all(row.source.startswith("https://") for row in rows if row.origin == "public")


def test_the_held_out_third_is_the_one_that_the_rule_draws() -> None:
    by_cause: dict[str, list[str]] = defaultdict(list)
    for row in situations():
        by_cause[row.cause].append(row.id)
    drawn = {
        name
        for names in by_cause.values()
        for name in sorted(names, key=_digest)[: max(1, round(len(names) / 3))]
    }
    assert {row.id for row in situations() if row.held_out} == drawn


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


ALL = [*kept(held_out=False), *kept(held_out=True)]


@pytest.mark.parametrize(
    "row", [each for each in ALL if each.origin == "public"], ids=lambda row: row.id
)
def test_what_a_source_states_is_a_record_that_names_its_source(row: Situation) -> None:
    assert row.evidence.source == row.source
    assert row.evidence.made_by == "hand"


def test_verdicts_on_the_situations_that_may_guide_thresholds() -> None:
    rows = judged(kept(held_out=False))
    print("\n" + table(rows))
    assert all(row.verdict.signals for row in rows if row.verdict.cause not in ("none", "unknown"))
