"""A fault of ours in a callback: the plan is kept, a file has the details, a page says so."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any, Generic, TypeVar

import fakes
import pytest
import walk
from PySide6.QtCore import QAbstractListModel, QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QListView, QPushButton, QWidget

from trainwright import crashes
from trainwright.plan import recovery
from trainwright.ui.faults import Faults
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.crashpage import CrashPage


class SkyFellError(Exception):
    """A fault of ours."""


def fail(*_: object) -> Any:
    raise SkyFellError("it was 3 o'clock")


class Failing(QWidget):
    paintEvent = fail  # noqa: N815


class FailingModel(QAbstractListModel):
    def rowCount(self, _parent=None):  # noqa: N802
        return 2

    data = fail


class FailingFilter(QObject):
    def eventFilter(self, _watched, event):  # noqa: N802
        return fail() if event.type() == QEvent.Type.User else False


def slot(window):
    button = QPushButton(window)
    button.clicked.connect(fail)
    QTimer.singleShot(0, button.click)


def override(window):
    widget = Failing(window)
    widget.resize(20, 20)
    widget.show()
    QTimer.singleShot(0, widget.update)


def model(window):
    view = QListView(window)
    view.model_ = FailingModel(window)
    view.setModel(view.model_)
    QTimer.singleShot(0, view.show)


def event_filter(window):
    window.watching = FailingFilter()
    window.installEventFilter(window.watching)
    QApplication.postEvent(window, QEvent(QEvent.Type.User))


def timer(_window):
    QTimer.singleShot(0, fail)


def answer(window):
    asked = Latest(window)
    asked.done.connect(fail)
    asked.submit(lambda: 1)


def thread(_window):
    threading.Thread(target=fail).start()


@pytest.fixture
def watched(opened, monkeypatch):
    for module, hook in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(module, hook, getattr(module, hook))
    window = opened()
    Faults(window)
    return window


def page_of(window):
    shown = [page for page in window.findChildren(CrashPage) if page.isVisible()]
    return shown[0] if shown else None


@pytest.mark.parametrize("place", [slot, override, model, event_filter, timer, answer, thread])
def test_an_exception_anywhere_keeps_the_plan_and_says_so(watched, qtbot, place):
    watched.session.set_key("settings.micro_batch", 3)
    place(watched)
    qtbot.waitUntil(lambda: page_of(watched) is not None)
    (copy,) = recovery.folder().glob("*.plan.yaml")
    assert "micro_batch: 3" in copy.read_text(encoding="utf-8")
    (file,) = crashes.folder().glob("*.txt")
    text = file.read_text(encoding="utf-8")
    assert "SkyFellError: " in text
    assert "it was 3 o'clock" in text
    page = page_of(watched)
    page.copy.click()
    assert "it was 3 o'clock" in QApplication.clipboard().text()
    page.on.click()
    watched.session.set_key("settings.micro_batch", 2)
    qtbot.waitUntil(lambda: walk.settled(watched))


def test_a_fault_at_every_repaint_is_told_once(watched, qtbot):
    override(watched)
    qtbot.waitUntil(lambda: page_of(watched) is not None)
    page_of(watched).on.click()
    for _ in range(5):
        watched.findChild(Failing).update()
        qtbot.wait(20)
    assert page_of(watched) is None
    assert len(list(crashes.folder().glob("*.txt"))) == 1


def test_the_page_offers_to_end_the_program(watched, qtbot):
    timer(watched)
    qtbot.waitUntil(lambda: page_of(watched) is not None)
    page_of(watched).end.click()
    assert not watched.isVisible()


def test_a_fault_in_a_job_leaves_a_crash_file(opened, qtbot):
    opened(plan=None, core=fakes.core(evaluate=fail)).open_path(fakes.EXAMPLE)
    qtbot.waitUntil(lambda: list(crashes.folder().glob("*.txt")) != [])


def run(program: str, home: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {"XDG_STATE_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip


NATIVE = """
    import os
    from trainwright import crashes
    crashes.watch_native()
    os.abort()
"""

STARTED = """
    import os, signal, sys
    from PySide6.QtCore import QTimer
    from PySide6.QtWidgets import QApplication
    from trainwright.__main__ import open_window
    from trainwright.cli.run import run
    from trainwright.ui import app

    make = app.prepared

    def prepared(*how):
        window = make(*how)
        QTimer.singleShot(1500, lambda: then(window))
        return window

    app.prepared = prepared
"""

NEXT = """
    def then(window):
        print(window.notice.text)
        QApplication.exit(0)

    run([], open_window)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="abort() asks a question there")
def test_a_crash_of_native_code_leaves_its_stack_and_is_told_at_the_next_start_once(tmp_path):
    assert run(NATIVE, tmp_path).returncode == -signal.SIGABRT
    first, second = (run(STARTED + NEXT, tmp_path).stdout.strip() for _ in range(2))
    (left,) = tmp_path.rglob("*-native.txt")
    assert str(left) in first
    assert "<module>" in left.read_text(encoding="utf-8")
    assert second == ""


TERMINATED = """
    from trainwright.__main__ import main

    def then(window):
        window.go("plan")
        window.session.set_key("settings.micro_batch", 3)
        os.kill(os.getpid(), signal.SIGTERM)

    sys.argv[1:] = []
    sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a program at once there")
def test_sigterm_ends_the_window_and_keeps_the_edits(tmp_path):
    ran = run(STARTED + TERMINATED, tmp_path)
    assert (ran.returncode, "Traceback" in ran.stderr) == (130, False), ran.stderr
    (copy,) = recovery.folder().glob("*.plan.yaml")
    assert "micro_batch: 3" in copy.read_text(encoding="utf-8")


FILTERED = """
    from PySide6.QtCore import QObject
    from trainwright.__main__ import main

    class Watching(QObject):
        asked = False

        def eventFilter(self, watched, event):
            if not self.asked:
                self.asked = True
                os.kill(os.getpid(), signal.SIGTERM)
            return False

    def then(window):
        window.watching = Watching(window)
        QApplication.instance().installEventFilter(window.watching)

    sys.argv[1:] = []
    sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGTERM ends a program at once there")
def test_sigterm_ends_the_window_also_where_c_code_calls_python(tmp_path):
    """An exception there is lost, or takes the program down."""
    ran = run(STARTED + FILTERED, tmp_path)
    assert (ran.returncode, "Error calling" in ran.stderr) == (130, False), ran.stderr


UNFINISHED = """
    from PySide6.QtCore import QAbstractListModel, QCoreApplication, QEvent, QObject
    import trainwright.ui

    class Asked(QObject):
        def event(self, event):
            return ()[0] if event.type() == QEvent.Type.User else super().event(event)

    app = QCoreApplication([])
    try:
        QCoreApplication.sendEvent(Asked(), QEvent(QEvent.Type.User))
    except IndexError as error:
        print(error)
"""


def test_what_c_code_raises_in_an_override_does_not_end_the_program(tmp_path):
    """PySide6 6.8 to 6.11 crash on Python 3.11; in a program of its own."""
    ran = run(UNFINISHED, tmp_path)
    assert (ran.returncode, "tuple index out of range" in ran.stdout) == (0, True), ran.stderr


def test_classes_that_are_made_safe_can_still_be_generic(watched):
    item = TypeVar("item")

    class Box(QObject, Generic[item]):
        pass

    assert isinstance(Box[int](), QObject)
