"""Lessons: a page with the numbers of the plan that is open."""

import pytest
from PySide6.QtWidgets import QLabel

from trainwright.data import resources
from trainwright.messages import LANGUAGES, Message, render
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import evaluate, resolve
from trainwright.plan.lessons import LESSON_OF, LESSONS, Figures
from trainwright.ui.core import Core
from trainwright.ui.widgets.buttons import HelpMark
from trainwright.ui.widgets.lessonpage import LessonPage
from trainwright.ui.widgets.table import RowTable


def lesson(name, example, **keys):
    """Return the report, the sentences and the tables of a lesson on an example."""
    plan = with_keys(file.read(resources("examples", f"{example}.plan.yaml")), keys)
    facts = resolve(plan)
    report = evaluate(plan, facts)
    lines = list(LESSONS[name](plan, facts, report))
    said = " ".join(render(line, "en") for line in lines if isinstance(line, Message))
    return report, said, [line for line in lines if isinstance(line, Figures)]


def test_sizes_of_the_weights_are_those_of_the_model():
    # 8,030,261,248 parameters: 29.9 GiB in fp32, 15.0 in bf16, and 4.127 bits each in NF4: 3.86.
    _, said, _ = lesson("quantisation", "llama-8b-lora")
    for figure in ("8.03 B", "29.9 GiB", "15.0 GiB", "3.86 GiB"):
        assert figure in said


def test_the_second_gpu_is_that_of_the_scaling_chart():
    report, said, _ = lesson("second-gpu", "llama-1b-full-rtx3090")
    point = next(each for each in report.time.scaling if each.gpus == 2)
    assert f"{point.efficiency.value * 100:.0f} %" in said
    assert "GeForce RTX 3090" in said


def test_more_checkpointing_takes_less_memory_and_more_time_and_the_lesson_says_if_it_pays():
    _, said, (table,) = lesson("checkpointing", "gpt2-rtx4070")
    memory = [row[1].value for row in table.rows]
    assert memory == sorted(memory, reverse=True)
    assert len(memory) >= 2
    assert table.rows[0][2].value > table.rows[-1][2].value
    assert "fits without checkpointing" in said
    tight = {"settings.micro_batch": 8, "settings.accumulation": 60}
    _, said, _ = lesson("checkpointing", "gpt2-rtx4070", **tight)
    assert "Here it pays" in said


def test_accumulation_keeps_the_effective_batch_in_every_row():
    _, _, (table,) = lesson("accumulation", "gpt2-rtx4070")
    split = [[int(part) for part in row[0].split(" × ")] for row in table.rows]
    assert {micro * steps for micro, steps in split} == {480}
    assert len(split) > 2


def test_copies_that_fit_at_once_fit():
    report, said, _ = lesson("sharing", "resnet50-rtx3060")
    copies = int(report.memory.device_total.value / report.memory.device_used_p95.value)
    assert copies > 1
    assert f"{copies} such jobs fit at once" in said


def test_the_slowest_stage_is_in_the_table_of_the_loader():
    report, _, (table,) = lesson("loader", "resnet50-rtx3060")
    assert len(table.rows) >= len(report.time.pipeline.stages)
    _, said, tables = lesson("loader", "llama-1b-full-rtx3090")
    assert "names no dataset" in said
    assert tables == []


def visible(page):
    return [label.text() for label in page.findChildren(QLabel) if label.isVisible()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_lesson_is_a_page_of_whole_sentences(opened, preferences, qtbot, language):
    preferences.language = language
    window = opened(core=Core(), plan=resources("examples", "gpt2-rtx4070.plan.yaml"))
    window.actions_by_id["learn"].trigger()
    (page,) = window.findChildren(LessonPage)
    for name in LESSONS:
        page.lessons[name].click()
        qtbot.waitUntil(lambda: len(visible(page)) >= 4, timeout=20_000)
        said = visible(page)
        said += [text for table in page.findChildren(RowTable) for row in table.texts()
                 for text in row]  # fmt: skip
        assert not [text for text in said if "{" in text or text.startswith("lesson.")]
    page.done_reading.click()


def test_a_mark_beside_a_setting_opens_its_lesson(opened):
    window = opened()
    marks = window.screen_named("plan").findChildren(HelpMark)
    assert len(marks) >= len(set(LESSON_OF.values()))
    mark = next(each for each in marks if each.accessibleName().startswith("Checkpointing"))
    mark.click()
    (page,) = window.findChildren(LessonPage)
    assert page.lesson == "checkpointing"
    page.done_reading.click()


def test_the_palette_finds_lessons(opened):
    window = opened()
    assert "lesson:accumulation" in [option.key for option in window._find_things("accumulation")]
