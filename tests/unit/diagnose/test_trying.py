"""``--try``: the command runs once more with one thing changed, and the script stays as it is."""

import json
import sys
from pathlib import Path

import pytest

from trainwright.diagnose import running
from trainwright.diagnose.changing import RUNNABLE
from trainwright.diagnose.decide import judge
from trainwright.diagnose.deciding import deciding
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.trying import trial_of, tried
from trainwright.diagnose.verdict import Cause

SCRIPT = """
import gc, json, pathlib, time, torch

class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, at):
        time.sleep(0.15)
        return torch.tensor([float(at)])

model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
seen = []
for _ in range(2):
    for batch in torch.utils.data.DataLoader(Samples(), batch_size=1):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        seen.append(batch.item())
pathlib.Path("seen.json").write_text(json.dumps([seen, gc.collect()]))
"""
WAITS = {
    "trainwright_record": 1,
    "steps": {"steps": 50, "seconds": 0.3, "data_wait": 0.09, "compute": 0.2},
}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    return [sys.executable, "train.py"]


@pytest.mark.slow
def test_the_same_batch_comes_as_often_as_the_loader_has_batches(command: list[str]) -> None:
    outcome = running.run(command, quiet=True, trial="synthetic-data")
    assert outcome.exit_code == 0
    seen, _ = json.loads(Path("seen.json").read_text(encoding="utf-8"))
    assert seen == [0, 1, *[2] * 10] * 2


@pytest.mark.slow
def test_a_loader_that_is_slow_is_found_by_the_second_run(command: list[str]) -> None:
    evidence = running.run(command, quiet=True).evidence
    trial = deciding(judge(Evidence.model_validate(WAITS)), Evidence.model_validate(WAITS))
    assert trial is not None
    found = tried(trial, evidence, command, seconds=60, quiet=True)
    (one,) = found.trials
    assert one.changed == "synthetic-data"
    assert one.step_times is not None
    assert one.step_times < 0.8
    assert judge(found).first.cause is Cause.INPUT


def test_only_what_needs_no_change_of_the_script_is_run() -> None:
    waits = Evidence.model_validate(WAITS)
    trial = trial_of(waits)
    assert trial is not None
    assert trial.changed in RUNNABLE
    assert trial_of(waits.model_copy(update={"steps": None})) is None


@pytest.mark.parametrize(
    ("code", "stopped", "interrupted", "again"),
    [
        (0, False, False, True),
        (-2, True, False, True),  # the time was over
        (-2, True, True, False),  # Ctrl-C
        (1, False, False, False),
    ],
)
def test_a_run_that_failed_or_that_somebody_ended_is_not_started_again(
    code: int, stopped: bool, interrupted: bool, again: bool
) -> None:
    evidence = Evidence.model_validate(WAITS)
    outcome = running.Outcome(evidence, code, stopped, interrupted)
    assert outcome.went_well is again


SHAPES = """
import json, os, pathlib, torch

torch.set_num_threads(1)
layer = torch.nn.Conv2d(3, 8, 3)
found = layer(torch.zeros(1, 3, 8, 8)).is_contiguous(memory_format=torch.channels_last)
cores = len(os.sched_getaffinity(0))
pathlib.Path("seen.json").write_text(json.dumps([found, torch.get_num_threads() == cores]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("trial", "at"), [("channels-last", 0), ("threads", 1)])
def test_a_trial_holds_against_what_the_script_says(
    command: list[str], trial: str, at: int
) -> None:
    Path("train.py").write_text(SHAPES, encoding="utf-8")
    assert running.run(command, quiet=True, trial=trial).exit_code == 0
    assert json.loads(Path("seen.json").read_text(encoding="utf-8"))[at]


def test_freed_memory_that_is_kept_tells_whether_its_pages_cost() -> None:
    """Pages that are taken again are one explanation of a slow step, and a trial decides."""
    host = {"cores": 2, "run_cores": 1.9, "main_minor_faults_s": 3e5, "main_system_share": 0.35}
    found = {**WAITS, "setup": {"device": "cpu"}, "host": host}
    found["steps"] = {"steps": 50, "seconds": 0.3, "data_wait": 0.0, "compute": 0.3}
    for times, right in ((0.7, True), (1.0, False)):
        tried_it = {**found, "trials": [{"changed": "allocator", "step_times": times}]}
        first = judge(Evidence.model_validate(tried_it)).first
        assert ((first.cause, first.variant) == (Cause.MEMORY, "heap")) is right
