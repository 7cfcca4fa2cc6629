"""``--try``: the command runs once more with one thing changed, and the script stays as it is."""

import json
import sys
from pathlib import Path

import pytest

from trainwright.diagnose import running
from trainwright.diagnose.decide import judge
from trainwright.diagnose.deciding import deciding
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.recorder.trial import RUNNABLE
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
