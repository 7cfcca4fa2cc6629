"""Runs of known cause: what the diagnosis says of them, and that their truth is proven."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from situationrows import HELD_OUT, SEEN, Situation, figures, judged, kept, situations

from trainwright.diagnose import decide, record
from trainwright.diagnose.verdict import Cause

CAUSES = {
    *("parallelism", "input", "tuning", "memory", "communication", "scheduling", "monitoring"),
    *("none", "unknown"),
}
EVERY = kept([*SEEN, *HELD_OUT])
PUBLIC = [row for row in EVERY if row.origin == "public"]


def test_there_are_enough_runs_of_every_cause_and_origin() -> None:
    assert {row.cause for row in EVERY} == CAUSES
    assert len({row.id for row in situations()}) == len(situations()) == 2290
    assert len(EVERY) == 2187


def test_what_a_source_states_is_a_record_that_names_its_source() -> None:
    for row in PUBLIC:
        assert row.source.startswith(("https://", "http://")), row.id
        assert row.evidence.source == row.source
        assert row.evidence.made_by == "hand"


def test_no_public_run_of_the_held_out_batches_was_known_before() -> None:
    before = {row.source for row in PUBLIC if row.batch in SEEN}
    assert not {row.source for row in PUBLIC if row.batch in HELD_OUT} & before


def test_every_real_run_is_proven_by_the_same_run_without_its_fault() -> None:
    for row in EVERY:
        if row.origin != "real-run" or row.cause == "unknown":
            continue
        assert row.times_faster is not None, row.id
        assert row.times_faster < 1.1 if row.cause == "none" else row.times_faster > 1.2, row.id


BUSY = 0.2
"""Share of its time that a run may wait for cores before it says more of others than of itself."""


@pytest.mark.slow
def test_runs_made_anew_have_the_cause_that_was_put_in(tmp_path: Path) -> None:
    causes = {
        "run-preprocessing-main": "input",
        "run-garbage-each-step": "memory",
        "run-checkpoint-each-step": "monitoring",
    }
    generate = Path(__file__).parent / "situations" / "generate.py"
    command = [sys.executable, str(generate), "--rounds", "1", "--into", str(tmp_path)]
    subprocess.run([*command, *causes], check=True, timeout=600)
    proofs = json.loads((tmp_path / "proof.json").read_text())
    for name, cause in causes.items():
        evidence = record.read(tmp_path / f"{name}.record.json")
        starved = evidence.host and evidence.host.starved_share
        if starved is not None and starved > BUSY:
            pytest.skip(f"other programs take the cores: {name} waited {starved:.0%} for them")
        assert decide.judge(evidence).first.cause == cause
        assert proofs[name] > 1.2


@pytest.fixture
def rows() -> list[Situation]:
    return kept(HELD_OUT)


def test_verdicts_on_the_held_out_batches_are_as_good_as_stated(rows: list[Situation]) -> None:
    found = judged(rows)
    print("\n" + figures(found))
    rights = {
        origin: sum(row.right for row in found if row.situation.origin == origin)
        for origin in ("real-run", "public")
    }
    assert rights["real-run"] >= 400
    assert rights["public"] >= 155
    assert sum(row.sure and not row.right for row in found) <= 1


CHANGES = {
    "settings.compile": "compile",
    "settings.channels_last": "channels-last",
    "settings.attention": "attention",
    "settings.loader.num_workers": "workers",
    "settings.loader.pin_memory": "pinned-memory",
    "settings.allocator": "allocator",
    "settings.checkpointing": "checkpointing",
}
"""Key of a plan -> the trial that says what changing it brings."""
LATER = (Cause.SCHEDULING, Cause.MEMORY)
"""Causes for which fewer workers are a remedy."""


def brought_nothing(changed: str, trials: list[dict[str, Any]]) -> bool:
    """Return whether something was tried, and no trial of it was faster by more than 3 %."""
    tried = [each for each in trials if each["changed"] == changed and not each.get("factor")]
    rates = [each.get("rate_times") or 1 / each.get("step_times", math.inf) for each in tried]
    return bool(rates) and 0 < max(rates) < 1.03


@pytest.mark.slow
def test_advice_never_contradicts_what_was_read() -> None:
    for row in judged(EVERY):
        setup, trials = (
            row.situation.record.get("setup") or {},
            row.situation.record.get("trials", []),
        )
        for verdict in row.verdicts:
            for fix in verdict.fixes:
                for key, value in fix.patch.items():
                    now, place = setup.get(key.rpartition(".")[2]), (row.situation.id, key, value)
                    assert now is None or len(fix.patch) > 1 or now != value, place
                    assert not brought_nothing(CHANGES.get(key, ""), trials), place
                    if key == "settings.loader.num_workers" and now is not None:
                        assert value > now or verdict.cause in LATER, place
                if setup.get("device") == "cpu":
                    assert "settings.loader.pin_memory" not in fix.patch, row.situation.id
