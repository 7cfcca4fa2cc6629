"""What verified runs change in the estimates of this computer."""

import json
from dataclasses import replace
from math import log

import pytest

from trainwright.catalog.query import find_gpu
from trainwright.data import resources
from trainwright.estimate import correction
from trainwright.estimate.correction import Verified
from trainwright.estimate.memory.outside import bytes_outside
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.operator_clock import Situation
from trainwright.explain import Kind
from trainwright.machine.choice import GpuChoice, MachineChoice
from trainwright.machine.resolve import catalogued
from trainwright.messages import UserError, render
from trainwright.plan.evaluate import evaluate, resolve
from trainwright.plan.file import read
from trainwright.probe import measurements

MIB = 1 << 20
RUN = Verified(
    device="rtx-3060-12gb", driver="580.1", torch="2.13.0", date="2026-11-01T00:00:00+00:00",
    plan="a", steps=10, context_bytes=250 * MIB, workspace_bytes=9 * MIB, ratio=1.3, scatter=0.02,
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(measurements, "folder", lambda: tmp_path / "data")


@pytest.fixture
def machine():
    return catalogued(MachineChoice(gpus=(GpuChoice(id="rtx-3060-12gb"),))).machine


def slowness(*runs):
    return correction.correction(runs, "rtx-3060-12gb", "580.1", "2.13.0").slowness


def test_factor_is_shrunk_towards_none():
    assert 1 < slowness(RUN).value < 1.3


def test_more_steps_and_more_plans_are_more_evidence():
    few = replace(RUN, steps=1, scatter=0.3)
    many = replace(RUN, steps=100, scatter=0.3)
    assert log(slowness(few).value) < log(slowness(many).value)
    plans = [replace(RUN, plan=name) for name in "abcdef"]
    assert log(slowness(*plans).value) > log(slowness(RUN).value)
    assert slowness(*plans).value < 1.3


def test_other_drivers_and_versions_are_other_computers():
    found = correction.correction([RUN], "rtx-3060-12gb", "581.0", "2.13.0")
    assert found == correction.Correction()


def test_times_compared_before_the_last_benchmark_count_no_more():
    found = correction.correction([RUN], *RUN.key, since="2026-11-05T00:00:00+00:00")
    assert found.slowness is None
    assert found.context.value == RUN.context_bytes


def test_later_run_of_the_same_plan_takes_the_place_of_the_earlier():
    correction.keep(RUN)
    correction.keep(replace(RUN, ratio=0.9, date="2026-11-02T00:00:00+00:00"))
    (only,), problem = correction.load()
    assert only.ratio == 0.9
    assert problem is None


def test_forgetting_removes_all():
    correction.keep(RUN)
    assert correction.forget() == 1
    assert correction.load() == ((), None)


def test_damaged_file_is_set_aside_with_a_line():
    correction.path().parent.mkdir(parents=True)
    correction.path().write_text("{not json")
    runs, problem = correction.load()
    assert runs == ()
    assert "set aside" in render(problem, "en") or ".damaged" in render(problem, "en")
    correction.keep(RUN)
    assert correction.load() == ((RUN,), None)


@pytest.mark.parametrize("value", [float("nan"), "much", 0, -1, -(10**400)])
def test_values_that_are_none_are_not_believed(value):
    correction.keep(RUN)
    document = json.loads(correction.path().read_text())
    document["records"][0]["ratio"] = value
    correction.path().write_text(json.dumps(document))
    runs, problem = correction.load()
    assert runs == ()
    assert problem is not None


def test_read_only_folder_is_told(tmp_path):
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(UserError):
        correction.keep(RUN)


def test_measured_context_takes_the_place_of_the_assumed(machine):
    before = bytes_outside(machine.gpu)
    corrected = correction.applied(machine, [RUN], "580.1", "2.13.0")
    held = machine.gpu.held.value
    assert bytes_outside(corrected.gpu) == int(250 * MIB + held)
    assert bytes_outside(corrected.gpu) != before


def test_report_shows_what_was_calibrated_here(machine):
    plan = read(str(resources("examples", "resnet50-rtx3060.plan.yaml")))
    facts = resolve(plan)
    corrected = correction.applied(facts.machine, [RUN], "580.1", "2.13.0")
    before = evaluate(plan, facts)
    after = evaluate(plan, replace(facts, machine=corrected))
    context = next(part for _, part in after.memory.device_used.walk() if part.role == "context")
    assert context.kind is Kind.MEASURED
    assert "calibrated here on 2026-11-01" in context.source
    factor = slowness(RUN).value
    kernels = {stage.name: stage.seconds.value for stage in before.time.stages}
    for stage in after.time.stages:
        if stage.name in ("forward", "backward"):
            assert stage.seconds.value == pytest.approx(factor * kernels[stage.name])
    assert "calibrated here" in render(after.time.step_seconds.note, "en")


def test_corrected_clock_is_slower_by_the_factor(machine):
    plan = read(str(resources("examples", "resnet50-rtx3060.plan.yaml")))
    facts = resolve(plan)
    workload = plan.workload.model_copy(update={"inputs": facts.inputs})
    corrected = correction.applied(machine, [RUN], "580.1", "2.13.0")
    one, other = (
        Clock(Situation(gpu, 1, workload, 0)).terms(facts.profile, facts.settings, 64)
        for gpu in (machine.gpu, corrected.gpu)
    )
    assert sum(other.gpu.values()) == pytest.approx(slowness(RUN).value * sum(one.gpu.values()))
    assert find_gpu("rtx-3060-12gb").record == machine.gpu.record
