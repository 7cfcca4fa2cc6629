"""Start: this computer, recent plans, examples, and a place to drop a file."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QHBoxLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from trainwright.messages import Message
from trainwright.messages.units import duration, gib
from trainwright.ui import tokens
from trainwright.ui.core import Core
from trainwright.ui.i18n import language, say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.preferences import Preferences
from trainwright.ui.tasks import Latest
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets import base as kit
from trainwright.ui.widgets.base import Heading, Label, Scroll, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.notice import Strip

_MOST_OFFERED = 3
"""Unsaved documents shown at once; the others follow as these are restored or discarded."""
GPU = "cpu"
"""Icon of a GPU's line."""


class StartScreen(Scroll):
    """What a person sees first. It is painted before the core is loaded."""

    chosen = Signal(str, object)
    """(file | example | local | computer | buy | new | browse | recover, path or plan found)."""

    def __init__(self, core: Core, preferences: Preferences, snapshot: Any = None) -> None:
        body = QWidget()
        super().__init__(body)
        self._core = core
        self._preferences = preferences
        self._snapshot = snapshot
        self._probe = Latest(self)
        self._probe.done.connect(self._probed)
        self._probe.failed.connect(self._not_probed)
        self._recovered: list[Any] = []
        outer = QHBoxLayout(body)
        outer.setContentsMargins(tokens.XXL, tokens.XXL, tokens.XXL, tokens.XXL)
        inner = QWidget()
        inner.setMaximumWidth(1120)
        outer.addStretch(1)
        outer.addWidget(inner, 100)
        outer.addStretch(1)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.L)
        column.addWidget(Label(Message.of("ui.start.title"), px=tokens.DISPLAY, weight=600))
        column.addWidget(Label(Message.of("ui.start.lead"), px=tokens.SECTION, colour="text2",
                               wrap=True))  # fmt: skip
        column.addSpacing(tokens.XS)
        self._recovery = QVBoxLayout()
        column.addLayout(self._recovery)
        sides = QHBoxLayout()
        sides.setSpacing(tokens.L)
        left = kit.column(
            self._buying_card(), self._computer_card(), self._drop_zone(), None, gap=tokens.L
        )
        right = kit.column(self._recent_card(), self._examples_card(), None, gap=tokens.L)
        sides.addWidget(left, 5)
        sides.addWidget(right, 6)
        column.addLayout(sides)
        column.addStretch(1)

    def wake(self) -> None:
        """Probe this computer and look for unsaved plans, now that the window is painted."""
        self._offer_recovery()
        self._fill_examples()
        if self._snapshot is not None:
            self._probed(self._snapshot)
        else:
            self._probe.submit(self._core.snapshot)

    def _buying_card(self) -> Surface:
        card = Surface(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.S)
        card.column.addWidget(Heading(Message.of("ui.start.buying")))
        lead = Message.of("ui.start.buying.lead")
        card.column.addWidget(Label(lead, px=tokens.LABEL, colour="text2", wrap=True))
        self.buy = Button(Message.of("ui.place.build"), "secondary", "shopping-cart")
        self.buy.clicked.connect(self._emitter("buy", None))
        card.column.addWidget(self.buy)
        return card

    # This computer

    def _computer_card(self) -> Surface:
        card = Surface(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.S)
        card.column.addWidget(Heading(Message.of("ui.place.computer")))
        self._readings = QVBoxLayout()
        self._readings.setSpacing(6)
        self._readings.addWidget(
            Label(Message.of("ui.start.probing"), colour="text3", px=tokens.LABEL)
        )
        card.column.addLayout(self._readings)
        card.column.addStretch(1)
        self._plan_here = Button(Message.of("ui.start.plan-here"), "primary", "desktop-tower")
        self._plan_here.clicked.connect(self._wants_local)
        self._plan_here.hide()
        self._plannable = False
        self._look_closer = Button(
            Message.of("ui.start.look-closer"), "secondary", "magnifying-glass"
        )
        self._look_closer.clicked.connect(lambda: self.chosen.emit("computer", None))
        self._plan_new = Button(Message.of("ui.start.plan-new"), "secondary", "file-plus")
        self._plan_new.clicked.connect(lambda: self.chosen.emit("new", None))
        line = QVBoxLayout()
        line.setContentsMargins(0, tokens.S, 0, 0)
        line.setSpacing(tokens.S)
        line.addWidget(self._plan_here)
        line.addWidget(self._plan_new)
        line.addWidget(self._look_closer)
        card.column.addLayout(line)
        return card

    def _probed(self, snapshot: Any) -> None:
        self._snapshot = snapshot
        clear(self._readings)
        found = False
        for icon, text, note, present in readings(snapshot):
            self._readings.addWidget(Reading(icon, text, note, present=present))
            found = found or (icon == GPU and present)
        self._plan_here.setVisible(found)
        self._plannable = found and plannable(snapshot)

    def _wants_local(self) -> None:
        """Plan for this computer; where that cannot be, its own screen says why and offers help."""
        self.chosen.emit("local" if self._plannable else "computer", None)

    def _not_probed(self, problem: Message) -> None:
        clear(self._readings)
        self._readings.addWidget(Label(problem, colour="text2", px=tokens.LABEL, wrap=True))

    # Lists

    def _recent_card(self) -> Surface:
        card = Surface(padding=(tokens.L, tokens.L, tokens.L, tokens.M), gap=2)
        card.column.addWidget(Heading(Message.of("ui.start.recent")))
        recent = [path for path in self._preferences.recent if path.is_file()]
        if not recent:
            card.column.addWidget(
                Label(Message.of("ui.start.no-recent"), px=tokens.LABEL, colour="text3", wrap=True)
            )
        for path in recent[:6]:
            title = path.name.removesuffix(".plan.yaml")
            entry = Entry("file-text", title, str(path.parent), _age(path))
            entry.clicked.connect(self._emitter("file", path))
            card.column.addWidget(entry)
        card.column.addStretch(1)
        return card

    def _examples_card(self) -> Surface:
        card = Surface(padding=(tokens.L, tokens.L, tokens.L, tokens.M), gap=2)
        card.column.addWidget(Heading(Message.of("ui.start.examples")))
        self._examples = QVBoxLayout()
        self._examples.setSpacing(2)
        card.column.addLayout(self._examples)
        card.column.addStretch(1)
        return card

    def _fill_examples(self) -> None:
        clear(self._examples)
        for path in self._core.examples():
            title = path.name.removesuffix(".plan.yaml")
            entry = Entry("cube", title, example_line(path), "")
            entry.clicked.connect(self._emitter("example", path))
            self._examples.addWidget(entry)

    def _emitter(self, what: str, value: object) -> Callable[[], None]:
        def emit() -> None:
            self.chosen.emit(what, value)

        return emit

    def _drop_zone(self) -> "DropZone":
        zone = DropZone()
        zone.clicked.connect(self._emitter("browse", None))
        return zone

    # Recovery

    def _offer_recovery(self) -> None:
        from trainwright.mig import drawings
        from trainwright.plan import file
        from trainwright.plan.recovery import offered
        from trainwright.plan.schema import Plan

        clear(self._recovery)
        left = offered(file.SUFFIX, file.read), offered(drawings.SUFFIX, drawings.read)
        newest = sorted((one for kind in left for one in kind.found), key=lambda one: -one.kept_at)
        self._recovered = newest[:_MOST_OFFERED]
        for note in (note for kind in left for note in kind.notes):
            strip = Strip("warning-fill")
            strip.label.tell(note)
            self._recovery.addWidget(strip)
        for index, recovered in enumerate(self._recovered):
            strip = Strip("clock-counter-clockwise")
            age = duration(max(60, time.time() - recovered.kept_at), language())
            said = Message.of("ui.start.recovered.board", age=age)
            if isinstance(recovered.document, Plan):
                name = recovered.document.name
                said = Message.of("ui.start.recovered", name=name, age=age)
            strip.label.tell(said)
            strip.offer(
                Button(Message.of("ui.start.restore"), "fix", small=True), f"restore {index}"
            )
            strip.offer(Button(Message.of("ui.start.discard"), small=True), f"discard {index}")
            strip.answered.connect(self._recovery_answered)
            self._recovery.addWidget(strip)

    def _recovery_answered(self, answer: str) -> None:
        word, _, index = answer.partition(" ")
        recovered = self._recovered[int(index)]
        if word == "restore":
            self.chosen.emit("recover", recovered)
        else:
            recovered.discard()
        self._offer_recovery()


class Reading(QWidget):
    """One line about this computer; a missing reading says why."""

    def __init__(self, icon: str, text: str, note: str, *, present: bool) -> None:
        super().__init__()
        line = QHBoxLayout(self)
        line.setContentsMargins(28, 2, 0, 2)
        column = QVBoxLayout()
        column.setSpacing(1)
        line.addLayout(column)
        self._icon, self._present = icon, present
        weight = 500 if present else 400
        colour = "text" if present else "text2"
        column.addWidget(Label(text, weight=weight, colour=colour, wrap=True))
        if note:
            column.addWidget(Label(note, px=tokens.LABEL, colour="text3", wrap=True))

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            glyph = self._icon if self._present else "question-fill"
            d.icon(glyph, 0, 2, 18, "text2" if self._present else "naFill")


def readings(snapshot: Any) -> list[tuple[str, str, str, bool]]:
    """Return (icon, text, note, whether it is present) for each reading of a snapshot."""
    from trainwright.probe.reading import Missing

    lines: list[tuple[str, str, str, bool]] = list(_other_gpus(snapshot))
    if isinstance(snapshot.nvidia, Missing):
        if not lines:
            lines.append((GPU, tr("ui.start.no-gpu"), say(snapshot.nvidia.reason), False))
    else:
        driver = snapshot.nvidia.driver
        note = tr("ui.start.driver", version=driver) if isinstance(driver, str) else ""
        for gpu in snapshot.nvidia.gpus:
            name = say(gpu.name.reason) if isinstance(gpu.name, Missing) else gpu.name
            memory = gpu.memory
            if not isinstance(memory, Missing):
                name = f"{name} · {gib(memory.total)}"
            lines.append((GPU, name, note, not isinstance(gpu.name, Missing)))
        if not lines:
            lines.append((GPU, tr("ui.start.no-gpu"), "", False))
    host = snapshot.host
    for value, icon, text in (
        (host.cpu, "desktop-tower", lambda v: v),
        (host.cores, "stack", lambda v: tr("ui.start.cores", count=v)),
        (host.memory_bytes, "hard-drive", lambda v: tr("ui.start.memory", value=v)),
    ):
        if isinstance(value, Missing):
            lines.append((icon, say(value.reason), "", False))
        else:
            lines.append((icon, text(value), "", True))
    return lines


def _other_gpus(snapshot: Any) -> Iterator[tuple[str, str, str, bool]]:
    """Yield the lines of AMD's and Apple's GPUs."""
    from trainwright.probe.reading import Missing

    amds = () if isinstance(snapshot.amd, Missing) else snapshot.amd
    for gpu in amds:
        named = isinstance(gpu.name, str)
        name = gpu.name if named else say(gpu.name.reason)
        if not isinstance(gpu.memory, Missing):
            name = f"{name} · {gib(gpu.memory.total)}"
        yield GPU, name, "", named
    if not isinstance(snapshot.apple, Missing):
        yield GPU, snapshot.apple.name, "", True


def plannable(snapshot: Any) -> bool:
    """Return whether a plan can be made for the computer."""
    from trainwright.messages import UserError
    from trainwright.probe.snapshot import resolved

    try:
        resolved(snapshot)
    except UserError:
        return False
    return True


def example_line(path: Path) -> str:
    """Return what an example plans, in a line; nothing where it cannot be read."""
    from trainwright.messages import UserError
    from trainwright.plan.file import read
    from trainwright.plan.sentences import model_name
    from trainwright.ui.names import gpu_name

    try:
        plan = read(path)
    except UserError as error:
        return say(error.message)
    task = tr(f"ui.task.{plan.workload.task}")
    gpus = plan.machine.gpus
    machine = gpu_name(gpus[0].id)[0] if gpus else tr("ui.form.this-computer")
    return f"{model_name(plan)} · {task} · {machine}"


def _age(path: Path) -> str:
    age = time.time() - path.stat().st_mtime
    if age < 86400:
        return tr("ui.start.today")
    return tr("ui.start.days-ago", count=int(age // 86400))


class Entry(QAbstractButton):
    """A plan in a list: name, what it is, when."""

    def __init__(self, icon: str, title: str, below: str, note: str) -> None:
        super().__init__()
        self._icon, self._title, self._below, self._note = icon, title, below, note
        self.setAccessibleName(", ".join(text for text in (title, below, note) if text))
        self.setToolTip(plain_tip(below))
        self.setFixedHeight(44)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def sizeHint(self) -> QSize:
        wide = max(tokens.width(self._below, tokens.LABEL), tokens.width(self._title)) + 60
        return QSize(int(min(wide, 420)), 44)

    def minimumSizeHint(self) -> QSize:
        return QSize(240, 44)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            if self.underMouse():
                d.box(0, 0, w, h, "sunken")
            d.icon(self._icon, 8, 13, 18, "text2")
            note = tokens.width(self._note, tokens.LABEL) if self._note else 0
            d.write(36, 4, w - 56 - note, 20, self._title, weight=500)
            below = tokens.metrics(tokens.LABEL).elidedText(
                self._below, Qt.TextElideMode.ElideMiddle, w - 46
            )
            d.write(36, 22, w - 44, 18, below, px=tokens.LABEL, colour="text3")
            if self._note:
                d.write(w - note - 8, 4, note + 1, 20, self._note, px=tokens.LABEL, colour="text3")
            if self.hasFocus():
                d.focus_ring(w, h)


class DropZone(QAbstractButton):
    """Says what may be dropped on the window; a click asks for a file."""

    def __init__(self) -> None:
        super().__init__()
        self._title = tr("ui.start.drop")
        self._below = tr("ui.start.drop.below")
        self.setAccessibleName(self._title)
        self.setAccessibleDescription(self._below)
        self.setFixedHeight(190)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            hover = self.underMouse()
            d.box(0, 0, w, h, "accentWash" if hover else None, "accentLine",
                  radius=tokens.CARD, dashed=True)  # fmt: skip
            lines = tokens.wrapped(self._below, w - 48, tokens.LABEL)
            top = (h - 60 - 17 * len(lines)) / 2
            d.icon("download-simple", w / 2 - 14, top, 28, "accent")
            d.write(0, top + 34, w, 22, self._title, weight=500, align="centre")
            for number, line in enumerate(lines):
                d.write(0, top + 57 + 17 * number, w, 17, line,
                        px=tokens.LABEL, colour="text3", align="centre")  # fmt: skip
            if self.hasFocus():
                d.focus_ring(w, h, tokens.CARD)
