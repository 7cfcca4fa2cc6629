"""This computer: every device with its readings, or why there are none."""

from dataclasses import replace
from functools import partial
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.messages import Message, UserError
from trainwright.probe.privacy import from_home
from trainwright.probe.reading import Missing
from trainwright.probe.records import Draft, drafts, offer, write
from trainwright.probe.shown import Card, Part, Row, cards
from trainwright.probe.snapshot import Snapshot, resolved
from trainwright.ui import tokens
from trainwright.ui.core import Core
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.screens.benchmarks import BenchmarkPanel
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import Heading, Label, Scroll, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.notice import Strip

LEFT: tuple[Part, ...] = ("gpu", "driver")
"""Parts at the left, above torch: what trains. The computer around it stands at the right."""


class ComputerScreen(Scroll):
    """Readings by device; read when the screen is first entered, and on demand."""

    chosen = Signal(str, object)
    """(local, None): a plan for this computer is wanted."""

    def __init__(self, core: Core) -> None:
        body = QWidget()
        super().__init__(body)
        self._core = core
        self._snapshot: Snapshot | None = None
        self._reading = Latest(self)
        self._reading.done.connect(self._read)
        self._reading.failed.connect(self._not_read)
        self._asking = Latest(self)
        self._asking.done.connect(self._torch_told)
        self._asking.failed.connect(self._not_read)
        outer = QHBoxLayout(body)
        outer.setContentsMargins(tokens.XXL, tokens.XXL, tokens.XXL, tokens.XXL)
        inner = QWidget()
        inner.setMaximumWidth(1240)
        outer.addStretch(1)
        outer.addWidget(inner, 100)
        outer.addStretch(1)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.L)
        column.addWidget(Label(Message.of("ui.place.computer"), px=tokens.DISPLAY, weight=600))
        self.says = Label(Message.of("ui.computer.lead"), px=tokens.SECTION, colour="text2",
                          wrap=True)  # fmt: skip
        column.addWidget(self.says)
        column.addLayout(self._buttons())
        self._notes = QVBoxLayout()
        self._notes.setSpacing(tokens.S)
        column.addLayout(self._notes)
        sides = QHBoxLayout()
        sides.setSpacing(tokens.L)
        self._left, self._right, self._torch = _side(), _side(), _side()
        sides.addLayout(self._left, 1)
        sides.addLayout(self._right, 1)
        column.addLayout(sides)
        self.benchmarks = BenchmarkPanel(core.measuring())
        column.addWidget(self.benchmarks)
        column.addStretch(1)

    def _buttons(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        self.plan_here = Button(Message.of("ui.start.plan-here"), "primary", "desktop-tower")
        self.plan_here.clicked.connect(self._plan_here)
        self.plan_here.hide()
        self.again = Button(Message.of("ui.computer.again"), "secondary", "arrows-clockwise")
        self.again.clicked.connect(self.refresh)
        line.addWidget(self.plan_here)
        line.addWidget(self.again)
        line.addStretch(1)
        return line

    def entered(self) -> None:
        """Read, the first time."""
        self.benchmarks.entered()
        if self._snapshot is None and not self._reading.busy:
            self.refresh()

    def refresh(self) -> None:
        """Read everything again; what is shown stays until then."""
        self.again.setEnabled(False)
        self.says.tell(Message.of("ui.start.probing"))
        self._reading.submit(self._core.snapshot)

    def _plan_here(self) -> None:
        self.chosen.emit("local", None)

    def _read(self, snapshot: Any) -> None:
        """Show the readings; torch, which takes seconds to start, is asked after them."""
        known = self._snapshot.framework if self._snapshot is not None else snapshot.framework
        self._snapshot = replace(snapshot, framework=known)
        self.again.setEnabled(True)
        self.says.tell(Message.of("ui.computer.lead"))
        self._show()
        self._asking.submit(self._core.framework)

    def _torch_told(self, framework: Any) -> None:
        if self._snapshot is not None:
            self._snapshot = replace(self._snapshot, framework=framework)
            self._show_torch(self._snapshot)

    def _not_read(self, problem: Message) -> None:
        self.again.setEnabled(True)
        self.says.tell(problem)

    # What is shown

    def _show(self) -> None:
        snapshot = self._snapshot
        if snapshot is None:
            return
        for layout in (self._torch, self._notes, self._left, self._right):
            clear(layout)
        self._show_notes(snapshot)
        for card in cards(snapshot):
            if card.part != "torch":
                side = self._left if card.part in LEFT else self._right
                side.addWidget(DeviceCard(card))
        self._torch = _side()
        self._left.addLayout(self._torch)
        self._show_torch(snapshot)
        for side in (self._left, self._right):
            side.addStretch(1)

    def _show_torch(self, snapshot: Snapshot) -> None:
        """Show torch's card; what stands already keeps its place."""
        clear(self._torch)
        asked = Missing(Message.of("ui.computer.asking"))
        waiting = Card("torch", Message.of("probe.card.torch"), (), asked)
        found = [card for card in cards(snapshot) if card.part == "torch"]
        for card in found or [waiting]:
            self._torch.addWidget(DeviceCard(card))

    def _show_notes(self, snapshot: Snapshot) -> None:
        """Say what keeps plans from being made for this computer, and offer what helps."""
        notes: tuple[Message, ...]
        try:
            notes = resolved(snapshot).notes
            self.plan_here.show()
        except UserError as error:
            notes = (error.message,)
            self.plan_here.hide()
        for note in notes:
            self._notes.addWidget(_strip(note))
        for draft in drafts(snapshot):
            offered = DraftCard(draft)
            offered.accepted.connect(partial(self._keep, draft))
            self._notes.addWidget(offered)

    def _keep(self, draft: Draft) -> None:
        try:
            write(draft)
        except UserError as error:
            self.says.tell(error.message)
            return
        self._show()
        self.says.tell(Message.of("probe.kept", path=from_home(draft.path)))


def _side() -> QVBoxLayout:
    column = QVBoxLayout()
    column.setSpacing(tokens.L)
    return column


def _strip(note: Message) -> Strip:
    strip = Strip("info")
    strip.label.tell(note)
    return strip


ICONS: dict[Part, str] = {
    "gpu": "cpu", "driver": "link", "torch": "flame", "processor": "gauge",
    "memory": "stack", "drive": "hard-drive", "computer": "desktop-tower",
}  # fmt: skip


class DeviceCard(Surface):
    """A device: its name, and a row for each reading."""

    def __init__(self, card: Card) -> None:
        super().__init__(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.S)
        head = QHBoxLayout()
        head.setSpacing(tokens.S)
        head.addWidget(Glyph(ICONS[card.part], "text2"), 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(Label(card.title, px=tokens.SECTION, weight=600, wrap=True), 1)
        self.column.addLayout(head)
        if card.reason is not None:
            self.column.addWidget(_absent(card.reason))
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.M)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(0, 2)
        grid.setColumnStretch(1, 3)
        for line, row in enumerate(card.rows):
            label = Label(row.label, px=tokens.LABEL, colour="text3", wrap=True)
            grid.addWidget(label, line, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(_value(row), line, 1, Qt.AlignmentFlag.AlignTop)
        self.column.addLayout(grid)


def _value(row: Row) -> QWidget:
    if isinstance(row.value, Missing):
        return _absent(row.value)
    return Label(row.value, px=tokens.LABEL, weight=500, wrap=True)


def _absent(missing: Missing) -> QWidget:
    """Return why something is not there; it never looks like a value."""
    holder = QWidget()
    line = QHBoxLayout(holder)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(6)
    line.addWidget(Glyph("question-fill", "naFill", 14), 0, Qt.AlignmentFlag.AlignTop)
    line.addWidget(Label(missing.reason, px=tokens.LABEL, colour="text3", wrap=True), 1)
    return holder


class Glyph(QWidget):
    """An icon that only decorates: what it means stands beside it."""

    def __init__(self, icon: str, colour: str, px: int = 18) -> None:
        super().__init__()
        self._icon, self._colour, self._px = icon, colour, px
        self.setFixedSize(px, px)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.icon(self._icon, 0, 0, self._px, self._colour)


class DraftCard(Surface):
    """A record of the person's own that the readings would fill; written on demand only."""

    accepted = Signal()

    def __init__(self, draft: Draft) -> None:
        super().__init__(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.S)
        self.column.addWidget(Heading(Message.of("ui.computer.draft")))
        self.column.addWidget(Label(offer(draft), colour="text2", wrap=True))
        self._text = Label(draft.text, px=tokens.LABEL, mono=True, wrap=True)
        self._text.setAccessibleName(say(offer(draft)))
        self._text.hide()
        self.column.addWidget(self._text)
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        self.keep = Button(Message.of("ui.computer.keep"), "fix", "plus", small=True)
        self.keep.clicked.connect(self.accepted)
        self.look = Button(Message.of("ui.computer.look"), "secondary", "file-text", small=True)
        self.look.setCheckable(True)
        self.look.toggled.connect(self._text.setVisible)
        line.addWidget(self.keep)
        line.addWidget(self.look)
        line.addStretch(1)
        self.column.addLayout(line)
        self.setAccessibleName(tr("ui.computer.draft"))
