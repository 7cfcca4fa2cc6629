"""Passes that no update needs: evaluation beside the steps, and what backward computes again."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from trainwright.diagnose.decide import judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.recorder.clock import BatchClock
from trainwright.diagnose.recorder.passes import Passes
from trainwright.diagnose.verdict import Cause, Diagnosis


def given(*, updated: bool = False, trains: bool = True) -> BatchClock:
    """Return a loader's clock with a batch in work."""
    clock = BatchClock()
    clock.given_at, clock.trains = 1.0, trains
    clock.optimized_at = 2.0 if updated else None
    return clock


def test_what_follows_the_update_is_evaluation_and_what_comes_before_it_is_the_steps_own() -> None:
    passes, block = Passes(), object()
    before = given()
    passes.began(block, before)
    assert not passes.beside(before)
    passes.ended(block, before)
    passes.over(before)
    assert (passes.count, passes.seconds) == (0, 0)
    after = given(updated=True)
    passes.began(block, after)
    assert passes.beside(after)
    passes.ended(block, after)
    assert passes.count == 1
    assert passes.seconds > 0


def test_the_batches_of_a_loader_that_trains_nothing_are_evaluated() -> None:
    passes, block, held = Passes(), object(), given(trains=False)
    passes.began(block, held)
    passes.ended(block, held)
    passes.over(held)
    assert passes.count == 1
    first = given(trains=False)  # of an epoch: its update is still to come
    passes.began(block, first)
    passes.ended(block, first)
    first.trains = True
    passes.over(first)
    assert passes.count == 1


def test_a_block_that_loads_batches_of_its_own_is_evaluation_wherever_it_begins() -> None:
    passes, block, inner = Passes(), object(), object()
    passes.began(block, None)
    passes.asked()
    passes.began(inner, None)
    passes.ended(inner, None)
    assert passes.count == 0  # it is a part of the block around it
    passes.ended(block, None)
    assert passes.count == 1
    passes.began(block, None)  # a policy that plays between two epochs, say
    passes.ended(block, None)
    assert passes.count == 1


def judged(host: dict[str, Any], **counters: float) -> Diagnosis:
    """Return the diagnosis of a run on the processor, of a hundred steps of 50 ms."""
    record = {
        "trainwright_record": 1,
        "made_by": "callback",
        "watched_seconds": 7.0,
        "steps": {"steps": 100, "seconds": 0.05, "data_wait": 0.0, "compute": 0.05, "other": 0.0},
        "counters": {"steps": 100, **counters},
        "setup": {"device": "cpu", "strategy": "single"},
        "host": host,
    }
    return judge(Evidence.model_validate_json(json.dumps(record), strict=True))


def test_activations_are_computed_again_in_vain_where_memory_is_left() -> None:
    roomy = {"memory_total_bytes": 64e9, "memory_available_bytes": 58e9}
    first = judged(roomy, recomputations=400, recomputation_seconds=1.0).first
    assert (first.cause, first.variant) == (Cause.MEMORY, "recomputation")
    assert first.gain == pytest.approx(1 / 7)  # of all the time, not of the steps alone
    assert first.fixes[0].patch == {"settings.checkpointing": "none"}
    tight = roomy | {"memory_available_bytes": 8e9}
    full = judged(tight, recomputations=400, recomputation_seconds=1.0)
    assert "recomputation" not in [each.variant for each in full.verdicts]


def test_evaluation_counts_against_all_the_time_that_was_watched() -> None:
    first = judged({}, evaluations=100, evaluation_seconds=1.8).first
    assert first.cause is Cause.MONITORING
    seen = {each.reading: each.value for each in first.signals}
    assert seen["counters.evaluation_seconds"] == pytest.approx(1.8 / 7)


PROGRAM = """
import sys, torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader
from trainwright.diagnose.recorder.callback import Recorder

def net(width, depth):
    return nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)])

model, teacher = net(128, 4), net(128, 4)
parts = [model[:2], model[2:]]
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
data, held = torch.randn(4096, 128), torch.randn(2048, 128)
recorder = Recorder(sys.argv[1])
recorder.start()

def taught(x):
    with torch.no_grad():
        return teacher(x)

def evaluated():
    with torch.inference_mode():
        for x in DataLoader(held, 256):
            model(x)

def averaged():
    with torch.no_grad():
        for _ in range(40):
            for mine, other in zip(teacher.parameters(), model.parameters()):
                mine.lerp_(other, 0.1)

def again(x, reentrant):
    x.requires_grad_()
    for part in parts:
        x = checkpoint(part, x, use_reentrant=reentrant)
    return x

for _ in range({epochs}):
    for x in DataLoader(data, 64):
        found = {forward}
        loss = (found - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {after}
recorder.stop()
assert not recorder.broken, recorder.broken
assert torch.no_grad.__enter__.__module__ == "torch.autograd.grad_mode"
assert torch.autograd.backward.__module__ == "torch.autograd"
assert "__wrapped__" not in vars(torch.autograd.backward)
"""


def counted(folder: Path, forward: str = "model(x)", after: str = "pass", epochs: int = 4) -> Any:
    """Return the counters, and the parts of the step, of a real training."""
    path = folder / "run.record.json"
    text = PROGRAM.replace("{forward}", forward).replace("{after}", after)
    text = textwrap.dedent(text.replace("{epochs}", str(epochs)))
    # On one thread: two that other programs keep apart wait for each other at each operator.
    alone = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", text, str(path)], check=True, timeout=120, env=alone)
    found = json.loads(path.read_text())
    return found["counters"] | {"watched": found["watched_seconds"], "step": found["steps"]}


@pytest.mark.slow
def test_a_real_evaluation_between_the_steps_is_timed(tmp_path: Path) -> None:
    found = counted(tmp_path, after="evaluated()", epochs=20)
    assert found["evaluations"] == pytest.approx(found["steps"], abs=2)
    assert 0.3 * found["watched"] < found["evaluation_seconds"] < found["watched"]


@pytest.mark.slow
def test_a_teacher_and_an_average_of_weights_are_no_evaluation(tmp_path: Path) -> None:
    teacher = counted(tmp_path, forward="model(x) - taught(x)", epochs=20)
    assert "evaluations" not in teacher
    assert "evaluations" not in counted(tmp_path, after="averaged()", epochs=20)


@pytest.mark.slow
@pytest.mark.parametrize("reentrant", [True, False])
def test_what_backward_computes_again_is_timed(tmp_path: Path, reentrant: bool) -> None:
    found = counted(tmp_path, forward=f"again(x, {reentrant})")
    assert found["recomputations"] == pytest.approx(2 * found["steps"], abs=2)
    again = found["recomputation_seconds"] / found["steps"]
    assert 0 < again < found["step"]["backward"] < found["step"]["compute"]


@pytest.mark.slow
def test_a_run_that_keeps_its_activations_computes_none_again(tmp_path: Path) -> None:
    found = counted(tmp_path)
    assert (found["recomputations"], found["recomputation_seconds"]) == (0, 0)
