"""About, with versions and licences, and the archive for a fault report."""

import zipfile
from importlib import metadata

import pytest
from PySide6.QtWidgets import QFileDialog, QPlainTextEdit
from walk import spin

from trainwright import __version__, crashes
from trainwright.ui.licences import parts
from trainwright.ui.widgets.questiondialog import QuestionDialog


def test_every_package_that_is_needed_is_named_with_a_version_and_a_licence():
    found = {part.name.lower().replace("_", "-"): part for part in parts()}
    assert {"pyside6-essentials", "numpy", "pydantic", "torch", "rich"} <= set(found)
    assert all(part.version == metadata.version(name) for name, part in found.items())
    assert "LGPL" in found["pyside6-essentials"].licence
    assert [part.name for part in found.values() if not part.licence] == []


def test_about_shows_them(opened):
    window = opened(plan=None)
    window.actions_by_id["about"].trigger()
    spin(50)
    (dialog,) = window.findChildren(QuestionDialog)
    assert __version__ in dialog.windowTitle()
    shown = dialog.findChild(QPlainTextEdit).toPlainText()
    assert "PySide6" in shown
    assert "LGPL" in shown
    dialog.buttons["close"].click()


def test_diagnostics_are_read_first_and_hold_nobodys_name_folder_or_secret(
    opened, preferences, monkeypatch, tmp_path
):
    home = tmp_path / "home" / "kim-minji"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(crashes, "folder", lambda: tmp_path / "crashes")
    (tmp_path / "crashes").mkdir()
    (tmp_path / "crashes" / "20261129-native.txt").write_text(
        f"Fatal Python error: Aborted\n  File {home}/secret-project/train.py line 3\n"
        "HF_TOKEN=hf_abcdefghijklmnopqrstuvwx\n"
    )
    preferences.python = str(home / "venv" / "bin" / "python")
    preferences.opened(home / "secret-project" / "a.plan.yaml")
    window = opened(plan=None)
    goal, shown = tmp_path / "diagnostics.zip", []

    def answered(dialog):
        shown.append(dialog.findChild(QPlainTextEdit).toPlainText())
        dialog.buttons["save"].click()

    monkeypatch.setattr(QuestionDialog, "exec", answered)
    monkeypatch.setattr(QFileDialog, "exec", lambda dialog: 1)
    monkeypatch.setattr(QFileDialog, "selectedFiles", lambda dialog: [str(goal)])
    window.actions_by_id["diagnostics"].trigger()
    with zipfile.ZipFile(goal) as saved:
        files = {name: saved.read(name).decode() for name in saved.namelist()}
    assert set(files) == {"versions.txt", "settings.txt", "crashes/20261129-native.txt"}
    assert all(text.strip() in shown[0] for text in files.values())
    everything = "".join(files.values())
    for private in ("kim-minji", "secret-project", "hf_abc", str(tmp_path)):
        assert private not in everything
    assert "Fatal Python error" in everything
    assert f"trainwright: {__version__}" in everything
    assert "PySide6" in everything


@pytest.mark.parametrize("answer", ["cancel", ""])
def test_diagnostics_that_nobody_wants_are_not_written(opened, monkeypatch, answer):
    window = opened(plan=None)
    monkeypatch.setattr(
        QuestionDialog, "exec", lambda dialog: answer and dialog.buttons[answer].click()
    )
    monkeypatch.setattr(QFileDialog, "exec", lambda dialog: pytest.fail("asked where to save"))
    window.actions_by_id["diagnostics"].trigger()
