"""A file with code: asked about before it runs, and never run without consent."""

import os
import sys
from dataclasses import replace

import fakes
import pytest
from PySide6.QtWidgets import QDialog

from trainwright.messages import LANGUAGES, Message, render
from trainwright.plan import file
from trainwright.plan.evaluate import Pending
from trainwright.profile import interpreter
from trainwright.ui import asking, i18n
from trainwright.ui.widgets.codedialog import CodeDialog
from trainwright.ui.yourcode import Code, factories

NET = """import torch

class Net(torch.nn.Module):
    pass

def build(width=3):
    return Net()
"""


@pytest.fixture
def net(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(NET)
    return path


@pytest.fixture
def tracing():
    """Return a core that must trace everything, and the models that it was asked to trace."""
    base, traced = fakes.core(), []

    class Untraced(Pending):
        def answered(self, profile):
            return profile

        point = (2, 0)

    def resolve(plan):
        facts = base.resolve(plan)
        return Untraced(facts.machine, facts.settings, plan.model, facts.inputs, ())

    def trace(model, at, _on_progress, _cancelled):
        traced.append(model)
        return base.resolve(file.read(fakes.EXAMPLE))

    return replace(base, resolve=resolve, trace=trace), traced


def test_chosen_file_becomes_the_model_and_runs(opened, qtbot, net, tracing, monkeypatch):
    core, traced = tracing
    monkeypatch.setattr(asking, "code_to_run", lambda _, path: Code(path, "build", "images", 64))
    window = opened(plan=None, core=core)
    window.open_path(net)
    qtbot.waitUntil(lambda: window.session.report is not None)
    plan = window.session.plan
    assert plan.model.python.file == str(net)
    assert plan.model.python.factory == "build"
    assert plan.workload.task == "full"
    assert plan.workload.inputs.image_size == 64
    assert plan.workload.inputs.sequence_length is None
    assert traced[0] == plan.model
    assert window.place == "plan"


def test_file_that_was_not_consented_to_changes_nothing(opened, net, monkeypatch):
    monkeypatch.setattr(asking, "code_to_run", lambda *_: None)
    window = opened()
    before = window.session.plan
    window.open_path(net)
    assert window.session.plan == before


def test_a_pipe_is_refused_before_anybody_is_asked_to_trust_it(opened, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(asking, "code_to_run", lambda *_: asked.append(True))
    os.mkfifo(tmp_path / "net.pt2")
    window = opened()
    before = window.session.plan
    window.open_path(tmp_path / "net.pt2")
    assert not asked
    assert window.session.plan == before


def test_plan_with_code_waits_for_consent(opened, qtbot, net, tracing, tmp_path):
    core, traced = tracing
    plan = tmp_path / "mine.plan.yaml"
    plan.write_text(
        "trainwright: 1\nmodel: {python: {file: net.py, factory: build}}\n"
        "workload: {task: full, effective_batch: 8, inputs: {image_size: 64}}\n"
        "machine: {gpus: [{id: rtx-4090}]}\n"
    )
    window = opened(plan=None, core=core)
    window.open_path(plan)
    qtbot.waitUntil(lambda: window.session.unconsented is not None)
    screen = window.screen_named("plan")
    assert screen.consent.isVisible()
    assert str(net) in screen.consent.label.text()
    assert traced == []
    window.session.set_key("settings.micro_batch", 4)  # an edit does not run it either
    qtbot.waitUntil(lambda: window.session.unconsented is not None)
    assert traced == []
    window.session.allow_code()
    qtbot.waitUntil(lambda: window.session.report is not None)
    assert not screen.consent.isVisible()
    assert traced


def test_dialog_proposes_what_the_file_defines_and_asks_before_running(qtbot, net, opened):
    window = opened(plan=None)
    for language in LANGUAGES:
        i18n.use(language)
        dialog = CodeDialog(window, net)
        qtbot.addWidget(dialog)
        dialog.show()
        assert dialog.factory.currentData() == "build"
        assert dialog.code == Code(net, "build", "images", 224)
        dialog.takes.chosen.emit("tokens")
        assert dialog.code == Code(net, "build", "tokens", 1024)
        assert dialog.code.inputs.sequence_length == 1024
        dialog.takes.chosen.emit("neither")
        assert not dialog.amount.isVisible()
        assert dialog.code.inputs.model_dump(exclude_none=True) == {}
        dialog.cancel.click()
        assert dialog.result() == QDialog.DialogCode.Rejected


def test_exported_program_has_no_factory(qtbot, tmp_path, opened):
    window = opened(plan=None)
    dialog = CodeDialog(window, tmp_path / "net.pt2")
    qtbot.addWidget(dialog)
    assert dialog.factory is None
    assert dialog.code.source.pt2 == str(tmp_path / "net.pt2")


def test_names_are_read_and_nothing_is_run(tmp_path, net):
    assert factories(net) == ["build", "Net"]
    net.write_text("raise SystemExit\ndef late(): pass\n  def inner(): pass\n")
    assert factories(net) == ["late"]
    assert factories(tmp_path / "gone.py") == []
    assert factories(tmp_path) == []


def test_interpreter_is_taken_once_it_can_trace(opened, qtbot, monkeypatch, preferences):
    monkeypatch.delenv(interpreter.VARIABLE, raising=False)
    mine = interpreter.Interpreter("/mine/python", (("torch", "2.11.0"),))
    monkeypatch.setattr(interpreter, "checked", lambda _path: mine)
    window = opened()
    screen = window.screen_named("settings")
    screen.look_at("/mine/python")
    qtbot.waitUntil(lambda: preferences.python == "/mine/python")
    assert screen.python.text() == "/mine/python"
    assert "torch 2.11.0" in screen.python_says.text()
    screen.own_python.click()
    assert preferences.python is None
    assert screen.python.text() == sys.executable


def test_interpreter_that_cannot_trace_is_not_taken(opened, qtbot, preferences):
    window = opened()
    screen = window.screen_named("settings")
    screen.look_at("/no/such/python")
    problem = render(Message.of("worker.cannot-start", interpreter="/no/such/python"), "en")
    qtbot.waitUntil(lambda: screen.python_says.text() == problem)
    assert preferences.python is None
    assert interpreter.chosen() == sys.executable
