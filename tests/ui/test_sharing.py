"""A report in one click: a page or a PDF of the answer that is on screen."""

import re
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog

from trainwright.data import resources
from trainwright.ui.core import Core


@pytest.mark.parametrize(("suffix", "begins"), [("html", b"<!DOCTYPE html>"), ("pdf", b"%PDF-")])
def test_the_answer_is_written_as_a_page_or_a_pdf(
    opened, preferences, qtbot, tmp_path, monkeypatch, suffix, begins
):
    preferences.language = "ko"
    goal = tmp_path / f"report.{suffix}"
    monkeypatch.setattr(QFileDialog, "exec", lambda dialog: 1)
    monkeypatch.setattr(QFileDialog, "selectedFiles", lambda dialog: [str(goal)])
    window = opened(core=Core(), plan=resources("examples", "llama-8b-lora.plan.yaml"))
    share = window.actions_by_id["share"]
    qtbot.waitUntil(share.isEnabled)
    share.trigger()
    written = Path(goal).read_bytes()
    assert written.startswith(begins)
    assert len(written) > 5_000
    if suffix == "pdf":  # laid out in a printer's dots it was one page of specks
        assert len(re.findall(rb"/Type\s*/Page\b", written)) >= 3
    else:
        assert "들어갑니다" in written.decode("utf-8")


def test_without_an_answer_there_is_nothing_to_share(opened):
    window = opened(plan=None)
    assert not window.actions_by_id["share"].isEnabled()


def test_the_summary_names_model_gpu_and_length_and_settings_as_people_do(opened):
    window = opened()
    window.actions_by_id["copy-summary"].trigger()
    copied = QGuiApplication.clipboard().text()
    for words in ("Llama 3.1 8B", "GeForce RTX 4090", "2,048 tokens", "Micro-batch 1"):
        assert words in copied
    assert "micro" not in copied.replace("Micro-batch", "")
