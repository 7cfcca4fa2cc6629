"""About: the version, and the licences of what the app depends on."""

from importlib import metadata

from PySide6.QtWidgets import QPlainTextEdit
from walk import spin

from trainwright import __version__
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
