"""Runs of known cause: what the diagnosis says of them, and that their truth is proven."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from situationrows import HELD_OUT, SEEN, Situation, figures, judged, kept, situations

from trainwright.diagnose import decide, record
from trainwright.diagnose.verdict import Fix

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
OLDER = re.compile(r"\b(GTX|RTX 20|TITAN|[PV]100|T4|P40|K80)")
"""GPUs without bf16: compute capability below 8.0, by NVIDIA's table."""


def rate(trial: dict[str, Any]) -> float:
    """Return the samples a second of a trial over those of the run; 0 where it does not say."""
    if "rate_times" in trial:
        return float(trial["rate_times"])
    times = trial.get("step_times")
    grows = trial["changed"] == "batch"
    return float(trial.get("factor") or 1) ** grows / times if times else 0.0


def brought_nothing(changed: str, trials: list[dict[str, Any]]) -> bool:
    """Return whether more of it was tried, and no trial was faster by more than 3 %."""
    unsaid = 1 if changed == "batch" else 2  # a batch of no stated size may be a smaller one
    of_it = [each for each in trials if each["changed"] == changed]
    more = [each for each in of_it if (each.get("factor") or unsaid) > 1]
    return 0 < max((rate(each) for each in more), default=0) < 1.03


def below_its_limit(gpu: dict[str, Any]) -> bool:
    """Return whether a GPU's clock is held down though it takes less power than it may."""
    held = gpu.get("throttled") or {}
    power = (gpu.get("power_w") or {}).get("mean", math.inf)
    braked = max(held.get("power-brake", 0), held.get("hardware-slowdown", 0)) >= 0.1
    capped = held.get("power-cap", 0) > 0.1
    return braked or (capped and power < 0.8 * gpu.get("power_limit_w", 0))


def contradictions(fix: Fix, record: dict[str, Any]) -> Iterator[str]:
    """Yield each reading of a record that a line of advice does not take into account."""
    setup, trials = record.get("setup") or {}, record.get("trials", [])
    gpus, counters = record.get("gpus") or [], record.get("counters") or {}
    kind, patch = fix.says.id.removeprefix("diagnose.fix."), fix.patch
    for key, value in patch.items():
        if value is not None and setup.get(key.rpartition(".")[2]) == value:
            yield f"{key} is {value} already"
        if kind != "fewer-workers" and brought_nothing(CHANGES.get(key, ""), trials):
            yield f"{key} was tried in vain"
    if kind == "power" and any(map(below_its_limit, gpus)):
        yield "a limit that is raised where another one holds"
    workers, now = patch.get("settings.loader.num_workers"), setup.get("num_workers")
    if kind.startswith("workers") and workers is not None:
        if now is None and not record.get("loading"):
            yield "a number of workers where nobody knows how many there are"
        if now is not None and workers <= now:
            yield "more workers that are not"
    if kind == "fewer-workers" and now is not None and workers >= now:
        yield "fewer workers that are not"
    if kind.startswith("larger-batch"):
        if brought_nothing("batch", trials):
            yield "a larger batch was tried in vain"
        if counters.get("out_of_memory") or counters.get("alloc_retries"):
            yield "a larger batch in a full memory"
        if patch.get("settings.micro_batch", math.inf) <= setup.get("batch", 0):
            yield "a larger batch that is smaller"
    if str(patch.get("settings.precision")).startswith("bf16") and any(
        OLDER.search(gpu.get("name", "")) for gpu in gpus
    ):
        yield "bf16 on a GPU that has none"
    if setup.get("device") == "cpu" and kind in ("pin", "non-blocking", "power", "mig", "link"):
        yield "a GPU's setting for a run without one"


@pytest.mark.slow
def test_advice_never_contradicts_what_was_read() -> None:
    found = [
        (row.situation.id, verdict.cause, fix.says.id, what)
        for row in judged(EVERY)
        for verdict in row.verdicts
        for fix in verdict.fixes
        for what in contradictions(fix, row.situation.record)
    ]
    assert found == []
