"""Work off the UI thread: closing what asked for it never takes the program down."""

import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref

from trainwright.ui.garbage import Collector
from trainwright.ui.tasks import Cancellable, Latest

CLOSED_WHILE_REPORTED_TO = """
    import time
    from PySide6.QtCore import QCoreApplication, QEvent
    from PySide6.QtWidgets import QApplication
    from trainwright.ui.tasks import Cancellable

    app = QApplication([])

    def job(report, cancelled):
        for step in range(3000):
            report(step)

    for _ in range(20):
        asked = [Cancellable() for _ in range(3)]
        for one in asked:
            one.progressed.connect(lambda _step: None)
            one.start(job)
        until = time.monotonic() + 0.004
        while time.monotonic() < until:
            app.processEvents()
        for one in asked:
            one.cancel()
            one.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    print("still here")
"""


def test_closing_in_the_middle_of_a_report_does_no_harm():
    """In a program of its own: a crash would end the tests' one."""
    program = textwrap.dedent(CLOSED_WHILE_REPORTED_TO)
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "still here"), ran.stderr


class Cycle:
    """Is freed by the collector alone, and notes on which thread."""

    freed: set[int]

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        self.freed.add(threading.get_ident())


def test_what_grew_old_is_collected_as_soon_as_much_is_new(qapp):
    """As screens are that a change of theme replaces; a minute's worth of them filled memory."""
    collector = Collector()
    meanwhile: list[list[list[int]]] = []

    def work(rounds):
        for _ in range(rounds):
            meanwhile.append([[] for _ in range(2000)])
            collector.collect()

    Cycle.freed = set()
    old = Cycle()
    alive = weakref.ref(old)
    work(14)  # so that it is looked at rarely
    del old
    work(40)
    assert alive() is None


def test_cycles_are_freed_on_the_window_s_thread(qapp, qtbot):
    Cycle.freed = set()
    over = threading.Event()

    def allocate() -> None:
        while not over.is_set():
            [[number] for number in range(2000)]
            time.sleep(0.0005)

    collector = Collector()
    worker = threading.Thread(target=allocate)
    worker.start()
    try:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            Cycle()
            qapp.processEvents()
    finally:
        over.set()
        worker.join()
        collector.deleteLater()
    assert Cycle.freed == {threading.get_ident()}


class Shown:
    """Stands for a widget that a job refers to, and notes on which thread it dies."""

    freed: list[int]

    def __del__(self) -> None:
        self.freed.append(threading.get_ident())


def test_what_a_job_refers_to_dies_on_the_windows_thread(qtbot):
    """Each job and its answer hold the last reference to something shown."""
    Shown.freed = []
    latest, single = Latest(), [Cancellable() for _ in range(200)]

    def job_of(shown):
        return lambda *_reports: id(shown)

    for one in single:
        latest.submit(job_of(Shown()))
        one.start(job_of(Shown()))
        qtbot.wait(1)
    latest.wait()
    qtbot.waitUntil(lambda: len(Shown.freed) == 400)
    assert set(Shown.freed) == {threading.get_ident()}


ASKED_FOR_ITS_WIDGETS = """
    from PySide6.QtCore import QCoreApplication, QEvent
    from PySide6.QtWidgets import QApplication, QLabel, QVBoxLayout, QWidget
    from trainwright.ui.widgets.base import widgets_of

    app = QApplication([])
    window = QWidget()
    column = QVBoxLayout(window)
    for _ in range(300):
        labels = [QLabel() for _ in range(40)]
        for label in labels:
            column.addWidget(label)
        assert widgets_of(column) == labels
        for label in labels:
            label.deleteLater()
        del labels, label
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    print("still here")
"""


def test_a_layout_that_was_asked_for_its_widgets_may_lose_them():
    """With ``itemAt`` in place of ``widgets_of`` this crashes: glibc is told to reuse memory."""
    program = textwrap.dedent(ASKED_FOR_ITS_WIDGETS)
    eager = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0"}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | eager,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "still here"), ran.stderr
