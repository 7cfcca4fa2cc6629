"""Lessons: a page with the numbers of the plan that is open."""

import pytest
from PySide6.QtWidgets import QPlainTextEdit
from walk import spin

from trainwright.data import resources
from trainwright.messages import LANGUAGES, render
from trainwright.plan import file
from trainwright.plan.evaluate import evaluate, resolve
from trainwright.plan.lessons import LESSONS
from trainwright.ui.widgets.questiondialog import QuestionDialog


def lesson(name, example, language="en"):
    plan = file.read(resources("examples", f"{example}.plan.yaml"))
    facts = resolve(plan)
    report = evaluate(plan, facts)
    return report, " ".join(render(line, language) for line in LESSONS[name](plan, facts, report))


def test_sizes_of_the_weights_are_those_of_the_model():
    # 8,030,261,248 parameters: 29.9 GiB in fp32, 15.0 in bf16, and 4.127 bits each in NF4: 3.86.
    _, said = lesson("quantisation", "llama-8b-lora")
    for figure in ("8.03 B", "29.9 GiB", "15.0 GiB", "3.86 GiB"):
        assert figure in said


def test_the_second_gpu_is_that_of_the_scaling_chart():
    report, said = lesson("second-gpu", "llama-1b-full-rtx3090")
    point = next(each for each in report.time.scaling if each.gpus == 2)
    assert f"{point.efficiency.value * 100:.0f} %" in said
    assert "GeForce RTX 3090" in said


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_opens_from_the_menu_with_whole_sentences(opened, preferences, name, language):
    preferences.language = language
    window = opened()
    window.actions_by_id[f"learn-{name}"].trigger()
    spin(50)
    (dialog,) = window.findChildren(QuestionDialog)
    text = dialog.findChild(QPlainTextEdit).toPlainText()
    assert len(text.split("\n\n")) >= 3
    assert "{" not in text
    assert "lesson." not in text
    dialog.buttons["close"].click()
