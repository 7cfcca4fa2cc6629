"""A plan with pipeline stages in the window: a bar for each, and the batch as it comes about."""

from dataclasses import replace

import fakes
import pytest
from walk import problems, settle, settled

from trainwright.explain import Unit
from trainwright.messages import Message
from trainwright.ui import paint

GIB = 1 << 30
PLAN = """trainwright: 1
name: stages
model: {preset: llama-3.1-8b}
workload: {task: full, inputs: {sequence_length: 2048}, effective_batch: 64}
machine: {gpus: [{id: a100-80gb-pcie, count: 8}]}
settings: {strategy: pp, pipeline_stages: 4, micro_batch: 1}
"""


def staged(plan, facts):
    """Return a made-up report of a plan, whose four stages need 12 to 15 GiB."""
    stages = facts.settings.pipeline_stages or 0
    return replace(
        fakes.report(plan, facts, 1.0),
        stages=tuple(
            replace(
                fakes.quantity("memory.stage", (15 - n) * GIB, Unit.BYTES),
                name=Message.of("memory.stage", stage=n + 1, first=8 * n + 1, last=8 * n + 8),
            )
            for n in range(stages)
        ),
    )


@pytest.mark.parametrize("language", ["en", "ko"])
def test_no_word_of_the_stages_is_cut_in_a_small_window(opened, preferences, tmp_path, language):
    preferences.language = language
    core = fakes.core(evaluate=staged, look=lambda plan, facts, _: staged(plan, facts))
    window = opened(plan=fakes.file_in(tmp_path, PLAN), core=core)
    window.resize(1024, 640)
    settle(window)
    assert list(problems(window, "plan")) == []


def test_a_bar_for_each_stage_and_the_batch_of_its_copies(opened, qtbot, tmp_path):
    core = fakes.core(evaluate=staged, look=lambda plan, facts, _: staged(plan, facts))
    window = opened(plan=fakes.file_in(tmp_path, PLAN), core=core)
    plan = window.screen_named("plan")
    rows = plan.stages.rows()
    assert [value for _, value in rows] == ["~15.0", "~14.0", "~13.0", "~12.0"]
    assert rows[1][0] == "Stage 2: layers 9 to 16"
    assert plan.stages.isVisibleTo(plan)
    # 8 GPUs are two copies of four stages: 1 × 32 × 2 samples.
    assert plan.form._equation.accessibleName().endswith("GPU groups 2 = 64")
    window.session.set_keys({"settings.strategy": "ddp", "settings.pipeline_stages": None})
    qtbot.waitUntil(lambda: settled(window))
    assert not plan.stages.isVisibleTo(plan)
    assert plan.form._equation.accessibleName().endswith("8 GPU = 64")


def test_a_part_that_mostly_does_not_fit_has_no_label_that_the_limit_cuts(opened):
    far = fakes.core(evaluate=lambda plan, facts: fakes.report(plan, facts, 40.0))
    window = opened(core=replace(far, look=lambda plan, facts, _: fakes.report(plan, facts, 40.0)))
    paint.runs = []
    window.grab()
    runs, paint.runs = paint.runs, None
    card = window.screen_named("plan").verdict
    labels = [run for run in runs if run.widget is card and run.text == "Weights"]
    assert labels == []
