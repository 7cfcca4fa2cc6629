"""Another trainer's file, opened in the window: a plan, and what is wrong with the file."""

import pytest

from trainwright.ui.widgets.questiondialog import QuestionDialog

AXOLOTL = """\
base_model: meta-llama/Llama-3.2-1B
adapter: lora
sequence_len: 1024
micro_batch_size: 2
gradient_accumulation_steps: 4
bf16: true
fp16: true
mystery: 1
"""


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_trainers_file_opens_as_a_plan_with_its_review(opened, preferences, tmp_path, language):
    preferences.language = language
    (tmp_path / "run.yml").write_text(AXOLOTL, encoding="utf-8")
    window = opened(plan=None)
    window.open_path(tmp_path / "run.yml")
    plan = window.session.plan
    assert (plan.model.preset, plan.workload.effective_batch) == ("llama-3.2-1b", 8)
    assert window.session.unsaved
    (dialog,) = window.findChildren(QuestionDialog)
    assert "mystery" in dialog.shown.toPlainText()
    assert "run.yml:7" in dialog.shown.toPlainText()
    dialog.buttons["close"].click()
    assert not dialog.isVisible()


def test_what_a_file_does_not_say_comes_from_the_open_plan(opened, tmp_path):
    (tmp_path / "args.json").write_text(
        '{"per_device_train_batch_size": 3, "gradient_accumulation_steps": 2, "output_dir": "o"}',
        encoding="utf-8",
    )
    window = opened()
    model = window.session.plan.model
    window.open_path(tmp_path / "args.json")
    assert window.session.plan.model == model
    assert window.session.plan.workload.effective_batch == 6
    (dialog,) = window.findChildren(QuestionDialog)
    dialog.close()


def test_a_run_that_does_not_fit_lists_its_ways_out(opened, preferences, tmp_path, qtbot):
    preferences.language = "ko"
    text = AXOLOTL.replace("3.2-1B", "3.1-8B").replace("_size: 2", "_size: 8")
    (tmp_path / "run.yml").write_text(text.replace(": 1024", ": 4096"), encoding="utf-8")
    window = opened()
    window.open_path(tmp_path / "run.yml")
    (dialog,) = window.findChildren(QuestionDialog)
    before = dialog.shown.toPlainText()
    assert "micro_batch_size" not in before
    qtbot.waitUntil(lambda: dialog.shown.toPlainText() != before, timeout=20_000)
    after = dialog.shown.toPlainText()
    assert after.startswith(before)
    assert "gradient_checkpointing: true" in after
    assert "들어가게 하는 방법" in after
    dialog.close()
