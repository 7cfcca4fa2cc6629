"""Another trainer's files, opened in the window: a plan, and what is wrong with the files."""

import pytest

from trainwright.messages import render
from trainwright.ui import foreign
from trainwright.ui.widgets.base import Label
from trainwright.ui.widgets.buttons import Button

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
LARGE = (
    AXOLOTL.replace("fp16: true\nmystery: 1\n", "dataloader_num_workers: 4\n")
    .replace("3.2-1B", "3.1-8B")
    .replace("_size: 2", "_size: 8")
    .replace(": 1024", ": 4096")
)


def said(screen) -> str:
    return "\n".join(label.text() for label in screen.findChildren(Label))


def reviewed(window, path, qtbot):
    window.open_path(path)
    screen = window.screen_named("review")
    qtbot.waitUntil(lambda: screen._complete, timeout=30_000)
    return screen


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_trainers_file_opens_as_a_plan_with_its_review(
    opened, preferences, tmp_path, language, qtbot
):
    preferences.language = language
    (tmp_path / "run.yml").write_text(AXOLOTL, encoding="utf-8")
    window = opened(plan=None)
    screen = reviewed(window, tmp_path / "run.yml", qtbot)
    plan = window.session.plan
    assert (plan.model.preset, plan.workload.effective_batch) == ("llama-3.2-1b", 8)
    assert window.session.unsaved
    assert window.place == "review"
    assert "mystery" in said(screen)
    assert "run.yml:7" in said(screen)


def test_what_a_file_does_not_say_comes_from_the_open_plan(opened, tmp_path, qtbot):
    (tmp_path / "args.json").write_text(
        '{"per_device_train_batch_size": 3, "gradient_accumulation_steps": 2, "output_dir": "o"}',
        encoding="utf-8",
    )
    window = opened()
    model = window.session.plan.model
    reviewed(window, tmp_path / "args.json", qtbot)
    assert window.session.plan.model == model
    assert window.session.plan.workload.effective_batch == 6


def test_a_way_out_is_taken_into_the_diff_and_written_with_a_copy(
    opened, preferences, tmp_path, qtbot
):
    preferences.language = "ko"
    path = tmp_path / "run.yml"
    path.write_text(LARGE, encoding="utf-8")
    window = opened()
    screen = reviewed(window, path, qtbot)
    assert "gradient_checkpointing: true" in said(screen)
    take = next(b for b in screen.findChildren(Button) if b.isCheckable())
    assert "gradient_checkpointing" not in path.read_text(encoding="utf-8")
    take.click()
    screen.write.click()
    assert "gradient_checkpointing: true" in path.read_text(encoding="utf-8")
    assert (tmp_path / "run.yml.before-review").read_text(encoding="utf-8") == LARGE
    qtbot.waitUntil(lambda: screen._complete, timeout=30_000)
    assert window.session.plan.settings.checkpointing == "full"


def test_another_language_shows_the_same_review(opened, tmp_path, qtbot):
    (tmp_path / "run.yml").write_text(AXOLOTL, encoding="utf-8")
    window = opened(plan=None)
    reviewed(window, tmp_path / "run.yml", qtbot)
    window.switch_language()
    assert "run.yml:7" in said(window.screen_named("review"))


def test_what_the_name_of_a_served_model_says_is_an_assumption(tmp_path):
    path = tmp_path / "serve.sh"
    path.write_text("vllm serve Qwen/Qwen2.5-7B-AWQ --max-num-seqs 8\n", encoding="utf-8")
    said = [render(note, "en") for note in foreign.notes(foreign.read([path], None))]
    assert "settings.quantization: int4 is taken, as a word of the model's name says." in said
    assert not any("not in the files" in note and "concurrent" in note for note in said)
