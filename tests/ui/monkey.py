"""Uses a window at random, as a person in a hurry would: real clicks, keys and actions by a seed.

Run as a program it prints what it saw: ``python monkey.py --actions 1000 --seed 27 [--fake]``.
Estimates are the real ones unless ``--fake``; what would train, measure or trace is made up.
"""

import argparse
import faulthandler
import gc
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
from PySide6.QtCore import QEvent, QEventLoop, QPoint, Qt, QTimer, qInstallMessageHandler
from PySide6.QtGui import QDesktopServices, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QDialog,
    QFileDialog,
    QHeaderView,
    QLineEdit,
    QMenu,
    QTableView,
    QWidget,
)
from shiboken6 import isValid

from trainwright.data import resources
from trainwright.ui.actions import ACTIONS

MIB = 1 << 20
STALL_MS = 50
"""From here on a person sees that the window stands still; assumed."""
SIZES = ((1440, 900), (1024, 640), (1280, 800), (1920, 1080))
KEYS = (
    Qt.Key.Key_Tab, Qt.Key.Key_Backtab, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Left,
    Qt.Key.Key_Right, Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_Escape, Qt.Key.Key_Home,
    Qt.Key.Key_End, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown, Qt.Key.Key_Delete, Qt.Key.Key_F1,
)  # fmt: skip
WORDS = ("4090", "rtx", "128", "0", "-1", "1e9", "8.5", "lora", "no such", " ")
HANGUL = "지포스"
EXPECTED = "This plugin does not support"
"""What the offscreen platform says of popups."""


@dataclass(slots=True)
class Seen:
    """What a run saw."""

    actions: int = 0
    mib_at_start: int = 0
    mib: list[int] = field(default_factory=list)
    """At rest, after each 1,000 actions."""
    exceptions: list[str] = field(default_factory=list)
    crash_files: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    busy_workers: int = 0
    children: list[str] = field(default_factory=list)
    stalls: int = 0
    """How often the window took no events for longer than ``STALL_MS``."""
    stalls_of_work: int = 0
    """Those in which this thread computed for as long: the others waited for the computer."""
    longest: list[tuple[int, int, str]] = field(default_factory=list)
    """The longest: milliseconds of computing, in all, and the actions before."""
    seconds: float = 0
    seconds_to_close: float = 0
    kinds: dict[str, int] = field(default_factory=dict)
    last: list[str] = field(default_factory=list)


class Pulse(QTimer):
    """Ticks in the window's event loop, and notes when a tick comes late."""

    def __init__(self, seen: Seen, parent: QWidget) -> None:
        super().__init__(parent, interval=5, timerType=Qt.TimerType.PreciseTimer)
        self._seen = seen
        self.timeout.connect(self._tick)

    def begin(self) -> None:
        self._last = time.perf_counter(), time.thread_time()
        self.start()

    def _tick(self) -> None:
        before, self._last = self._last, (time.perf_counter(), time.thread_time())
        whole, work = (
            round((now - then) * 1000) for now, then in zip(self._last, before, strict=True)
        )
        if whole > STALL_MS:
            seen = self._seen
            seen.stalls += 1
            seen.stalls_of_work += work > STALL_MS
            after = " < ".join(reversed(seen.last[-2:]))
            seen.longest = sorted([*seen.longest, (work, whole, after)], reverse=True)[:30]


class Monkey:
    """Does one thing at a time, also in the loops that modal questions and menus run."""

    def __init__(self, window: Any, seed: int, folder: Path) -> None:
        self.window = window
        self.dice = random.Random(seed)
        self.folder = folder
        self.seen = Seen()
        examples = resources("examples").glob("*.plan.yaml")
        self.files = [Path(shutil.copy(one, folder)) for one in sorted(examples)]  # it saves, too
        self._goal = 0
        self._pulse = Pulse(self.seen, window)
        self._loop = QEventLoop()
        window.actions_by_id["quit"].setEnabled(False)  # closing is measured at the end
        self._usual = (
            (26, self.click), (10, self.press), (9, self.act), (8, self.visit), (8, self.edit),
            (7, self.tables), (5, self.tabs), (4, self.type_), (4, self.drag), (3, self.scroll),
            (3, self.theme), (2, self.language), (3, self.fit), (5, self.undo), (2, self.open),
            (1, self.resize), (2, self.palette),
        )  # fmt: skip

    def run(self, actions: int) -> None:
        """Do so many more actions, then come back."""
        self._goal = self.seen.actions + actions
        self._soon()
        self._pulse.begin()
        self._loop.exec()
        self._pulse.stop()

    def _soon(self) -> None:
        QTimer.singleShot(self.dice.choice((0, 0, 0, 1, 5, 20)), self._step)

    def _step(self) -> None:
        if self.seen.actions >= self._goal:
            while (popup := QApplication.activePopupWidget()) is not None:
                popup.close()
            if (modal := QApplication.activeModalWidget()) is not None:
                modal.close()
                self._soon()
                return
            self._loop.quit()
            return
        self._soon()  # before the action, which may not return until a later one lets it
        self.seen.actions += 1
        popup, modal = QApplication.activePopupWidget(), QApplication.activeModalWidget()
        if popup is not None:
            self._do(self.in_popup, popup)
        elif modal is not None:
            self._do(self.in_dialog, modal)
        else:
            weights, whats = zip(*self._usual, strict=True)
            self._do(self.dice.choices(whats, weights)[0])

    def _do(self, what: Callable[..., None], *on: Any) -> None:
        name = what.__name__.strip("_")
        self.seen.kinds[name] = self.seen.kinds.get(name, 0) + 1
        self.note(name)
        what(*on)

    def note(self, text: str) -> None:
        """Remember what is done, for when it goes wrong."""
        self.seen.last = [*self.seen.last[-7:], text]

    # Anything

    def click(self) -> None:
        """Click on something, most often on what looks clickable."""
        self._click_in(self.window)

    def _click_in(self, top: QWidget) -> None:
        place = self._spot(top)
        child = top.childAt(place) or top
        self.note(f"click {type(child).__name__} {child.accessibleName()!r} in {self.window.place}")
        for _ in range(1 if self.dice.random() < 0.9 else 2):
            _click(child, child.mapFrom(top, place))

    def _spot(self, top: QWidget) -> QPoint:
        for _ in range(12):
            place = QPoint(self.dice.randrange(max(1, top.width())),
                           self.dice.randrange(max(1, top.height())))  # fmt: skip
            child = top.childAt(place)
            if child is not None and child.isEnabled() and (
                child.focusPolicy() != Qt.FocusPolicy.NoFocus
                or child.cursor().shape() == Qt.CursorShape.PointingHandCursor
            ):  # fmt: skip
                return place
        return place

    def press(self) -> None:
        """Press keys on what has the focus."""
        target = QApplication.focusWidget() or self.window
        for _ in range(self.dice.randint(1, 4)):
            alt = Qt.KeyboardModifier.AltModifier
            modifier = alt if self.dice.random() < 0.15 else Qt.KeyboardModifier.NoModifier
            QTest.keyClick(target, self.dice.choice(KEYS), modifier)
            target = QApplication.focusWidget() or self.window

    def type_(self) -> None:
        """Type into a field."""
        fields = [one for one in self.window.findChildren(QLineEdit) if one.isVisible()]
        if fields:
            one = self.dice.choice(fields)
            one.setFocus()
            if self.dice.random() < 0.5:
                one.selectAll()
            if self.dice.random() < 0.2:  # QTest's keys are ASCII
                composed = QInputMethodEvent()
                composed.setCommitString(HANGUL)
                QApplication.sendEvent(one, composed)
            else:
                QTest.keyClicks(one, self.dice.choice(WORDS))
            if self.dice.random() < 0.5 and isValid(one):
                QTest.keyClick(one, Qt.Key.Key_Return)

    def drag(self) -> None:
        """Drag from one place to another, as on a chart or the board of instances."""
        start = self._spot(self.window)
        child = self.window.childAt(start) or self.window
        left = Qt.MouseButton.LeftButton
        QTest.mousePress(child, left, pos=child.mapFrom(self.window, start))
        for _ in range(3):
            end = QPoint(self.dice.randrange(self.window.width()),
                         self.dice.randrange(self.window.height()))  # fmt: skip
            if isValid(child):
                QTest.mouseMove(child, child.mapFrom(self.window, end))
        if isValid(child):
            QTest.mouseRelease(child, left, pos=child.mapFrom(self.window, start))

    def scroll(self) -> None:
        """Turn the wheel over something."""
        screen = self.window._screens[self.window.place]
        for bar in screen.findChildren(QAbstractItemView)[:2]:
            bar.scrollToBottom() if self.dice.random() < 0.5 else bar.scrollToTop()
        QTest.keyClick(screen, Qt.Key.Key_PageDown)

    # What the window offers

    def act(self) -> None:
        """Trigger any action but quitting."""
        action = self.dice.choice([one for one in ACTIONS if one.id != "quit"])
        self.note(f"act {action.id}")
        self.window.actions_by_id[action.id].trigger()

    def visit(self) -> None:
        """Go to a place."""
        place = self.dice.choice([one.id for one in ACTIONS if one.id.startswith("go-")])
        self.note(place)
        self.window.actions_by_id[place].trigger()

    def theme(self) -> None:
        """Turn from light to dark, or back."""
        self.window.actions_by_id["theme"].trigger()

    def language(self) -> None:
        """Turn from English to Korean, or back."""
        self.window.actions_by_id["language"].trigger()

    def fit(self) -> None:
        """Let the search choose."""
        self.window.actions_by_id["make-it-fit"].trigger()

    def undo(self) -> None:
        """Undo, now and then redo."""
        what = self.dice.choice(("undo", "undo", "redo"))
        self.window.actions_by_id[what].trigger()

    def edit(self) -> None:
        """Set a key of the plan."""
        key, values = self.dice.choice((
            ("settings.micro_batch", (1, 2, 4, 16, 64, None)),
            ("settings.checkpointing", ("none", "full", "selective", None)),
            ("settings.precision", ("fp32", "bf16", "bf16-mixed", "fp16-mixed", None)),
            ("settings.optimizer", ("adamw", "sgd", "lion", "adamw-8bit", None)),
            ("workload.effective_batch", (8, 32, 256)),
            ("workload.inputs.sequence_length", (256, 1024, 4096, 8192)),
        ))  # fmt: skip
        value = self.dice.choice(values)
        self.note(f"set {key} {value}")
        self.window.session.set_key(key, value)

    def open(self) -> None:
        """Open an example, as one that is dropped on the window."""
        path = self.dice.choice(self.files)
        self.note(f"open {path.name}")
        self.window.open_path(path)

    def resize(self) -> None:
        """Make the window larger or smaller."""
        self.window.resize(*self.dice.choice(SIZES))

    def palette(self) -> None:
        """Open the palette."""
        self.window.actions_by_id["palette"].trigger()

    def tabs(self) -> None:
        """Show a kind of part in the catalog."""
        from trainwright.ui.screens.catalog import KINDS

        kind = self.dice.choice((*KINDS, "guide"))
        self.note(f"tab {kind}")
        self.window.screen_named("catalog").show_tab(kind)

    def tables(self) -> None:
        """Sort a table by a heading, and move in it."""
        shown = [one for one in self.window.findChildren(QTableView) if one.isVisible()]
        if not shown:
            self.window.go("catalog")
            return
        table = self.dice.choice(shown)
        head: QHeaderView = table.horizontalHeader()
        if head.count():
            section = self.dice.randrange(head.count())
            x = head.sectionViewportPosition(section) + 8
            _click(head.viewport(), QPoint(x, 8))
        table.setFocus()
        for _ in range(self.dice.randint(0, 5)):
            alt = self.dice.random() < 0.3
            modifier = Qt.KeyboardModifier.AltModifier if alt else Qt.KeyboardModifier.NoModifier
            QTest.keyClick(table, self.dice.choice(KEYS[2:6] + KEYS[9:13]), modifier)

    # What lies over the window

    def in_popup(self, popup: QWidget) -> None:
        """Choose from a list or a menu, or close it."""
        roll = self.dice.random()
        if isinstance(popup, QMenu):
            choices = [one for one in popup.actions() if one.isEnabled() and not one.isSeparator()]
            if roll < 0.5 and choices:
                choice = self.dice.choice(choices)
                self.note(f"menu {choice.text()}")
                popup.close()
                choice.trigger()
            else:
                popup.close()
        elif roll < 0.3:
            QTest.keyClick(popup, Qt.Key.Key_Escape)
        elif roll < 0.5:
            QTest.keyClicks(popup.focusWidget() or popup, self.dice.choice(WORDS[:6]))
        elif roll < 0.75:
            self._click_in(popup)
        else:
            key = self.dice.choice((Qt.Key.Key_Down, Qt.Key.Key_Up, Qt.Key.Key_Return))
            QTest.keyClick(popup.focusWidget() or popup, key)

    def in_dialog(self, dialog: QWidget) -> None:
        """Answer a question, by any of its buttons."""
        self.note(f"dialog {type(dialog).__name__} {dialog.windowTitle()!r}")
        if isinstance(dialog, QFileDialog):
            if self.dice.random() < 0.6:
                dialog.reject()
            elif dialog.acceptMode() == QFileDialog.AcceptMode.AcceptSave:
                name = f"{self.dice.choice('abc')}{self.dice.choice(('.plan.yaml', '.txt', ''))}"
                self._accept(dialog, self.folder / name)
            else:
                nothing = self.folder / "nothing.yaml"
                self._accept(dialog, self.dice.choice([*self.files, nothing, self.folder]))
            return
        buttons = [one for one in dialog.findChildren(QAbstractButton)
                   if one.isVisible() and one.isEnabled()]  # fmt: skip
        if buttons and self.dice.random() < 0.7:
            button = self.dice.choice(buttons)
            _click(button, button.rect().center())
        elif isinstance(dialog, QDialog):
            dialog.reject()
        else:
            dialog.close()

    def _accept(self, dialog: QFileDialog, path: Path) -> None:
        dialog.setOption(QFileDialog.Option.DontConfirmOverwrite)
        dialog.selectFile(str(path))
        dialog.accept()
        if dialog.isVisible():  # it wanted another file than that
            dialog.reject()


def _click(widget: QWidget, place: QPoint) -> None:
    """Press and let go, unless pressing it ended the widget: ``QTest.mouseClick`` would crash.

    A menu runs a loop of its own until it closes, and by then there may be other screens.
    """
    for step in (QTest.mousePress, QTest.mouseRelease):
        if isValid(widget):
            step(widget, Qt.MouseButton.LeftButton, pos=place)


def mib() -> int:
    """Return what the process holds in memory."""
    return int(psutil.Process().memory_info().rss / MIB)


def watch(seen: Seen, monkey: Monkey) -> None:
    """Note exceptions wherever they end, and what Qt warns of."""

    def note(kind: str, error: BaseException | None) -> None:
        lines = traceback.format_exception(error) if error is not None else []
        after = " < ".join(reversed(seen.last))
        seen.exceptions.append(f"{kind} at {seen.actions} after {after}: {''.join(lines)}")

    shown = sys.excepthook

    def hook(kind: Any, error: BaseException, trace: Any) -> None:
        note("uncaught", error)
        shown(kind, error, trace)

    sys.excepthook = hook
    threading.excepthook = lambda args: note("thread", args.exc_value)
    sys.unraisablehook = lambda args: note("unraisable", args.exc_value)

    def heard(_kind: Any, _context: Any, text: str) -> None:
        if EXPECTED not in text:
            seen.warnings.append(
                f"at {seen.actions} after {' < '.join(reversed(seen.last))}: {text}"
            )

    qInstallMessageHandler(heard)


def core(*, fake: bool) -> Any:
    """Return the real estimates, or made-up ones, with no run, measurement or trace in earnest."""
    import fakes

    from trainwright.messages import UserError
    from trainwright.ui.core import Core

    def refused(*_args: Any, **_more: Any) -> Any:
        time.sleep(0.3)
        raise UserError.of("ui.advise.cancelled")

    apart: dict[str, Any] = {"verify": refused, "watch": refused, "trace": refused}
    if fake:
        return fakes.core("tight", **apart)
    return Core(
        measuring=fakes.measuring, snapshot=fakes.snapshot, reader=lambda: fakes.live,
        framework=fakes.core().framework, **apart,
    )  # fmt: skip


def busy(window: Any) -> int:
    """Return how many workers still run."""
    from trainwright.ui.tasks import Cancellable, Latest

    owners = (window, window.session)
    return sum(one.busy for owner in owners for one in owner.findChildren(Latest)) + sum(
        one.running for owner in owners for one in owner.findChildren(Cancellable)
    )


def come_to_rest(window: Any) -> None:
    """Wait until no search is under way, which may take half a minute, and collect garbage."""
    import walk

    until = time.monotonic() + 120
    while busy(window) and time.monotonic() < until:
        walk.spin(100)
    walk.settle(window)
    gc.collect()


def spree(actions: int, seed: int, *, fake: bool) -> Seen:
    """Use a window of this process, close it, and return what was seen."""
    import walk

    from trainwright import crashes
    from trainwright.ui import heap
    from trainwright.ui.app import prepared
    from trainwright.ui.faults import Faults
    from trainwright.ui.preferences import Preferences
    from trainwright.ui.warming import warm

    home = Path(tempfile.mkdtemp())
    os.environ["TRAINWRIGHT_STATE"] = str(home / "state")
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        os.environ[f"XDG_{name}_HOME"] = str(home / name.lower())
    os.chdir(home)
    heap.limit()
    app = QApplication([])
    QDesktopServices.openUrl = lambda _url: True  # type: ignore[method-assign, assignment]
    QApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
    preferences = Preferences(home / "window.ini")
    preferences.language, preferences.theme = "en", "light"
    window = prepared(app, core(fake=fake), preferences)
    app.setQuitOnLastWindowClosed(False)
    window.show()
    while window.session is None:
        walk.spin(20)
    Faults(window)
    warm(window)
    monkey = Monkey(window, seed, home)
    window.open_path(monkey.files[0])
    walk.settle(window)
    seen = monkey.seen
    watch(seen, monkey)
    seen.mib_at_start, began = mib(), time.monotonic()
    while seen.actions < actions:
        monkey.run(min(1000, actions - seen.actions))
        busy_mib = mib()
        come_to_rest(window)
        seen.mib.append(mib())
        line = f"{seen.actions} actions: {seen.mib[-1]} MiB at rest, {busy_mib} at work"
        line += f"; {seen.stalls} stalls, {seen.stalls_of_work} of work"
        print(line, file=sys.stderr, flush=True)
    seen.seconds = time.monotonic() - began
    seen.crash_files = [path.read_text(encoding="utf-8") for path in crashes.folder().glob("*")]
    return _closed(seen, window)


def _closed(seen: Seen, window: Any) -> Seen:
    import walk

    for draft in (window.session.draft, window.session.board):
        draft.discard()  # nobody is left to answer what becomes of the edits
    began = time.monotonic()
    window.close()
    seen.seconds_to_close = time.monotonic() - began
    walk.spin(500)
    seen.busy_workers = busy(window)
    seen.children = [one.name() for one in psutil.Process().children(recursive=True)]
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    return seen


def main() -> int:
    """Print what a run saw, as JSON."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--actions", type=int, default=1000)
    reader.add_argument("--seed", type=int, default=27)
    reader.add_argument("--fake", action="store_true")
    asked = reader.parse_args()
    faulthandler.enable()
    sys.path.insert(0, str(Path(__file__).parent))
    print(json.dumps(asdict(spree(asked.actions, asked.seed, fake=asked.fake)), indent=1))
    return 0


if __name__ == "__main__":
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    sys.exit(main())
