"""What would change it: a card for each change, with what it does; one click applies it."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from trainwright.messages import Message
from trainwright.plan.report import Verdict
from trainwright.ui import tokens
from trainwright.ui.figures import signed
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import STATE_ICON, Drawing
from trainwright.ui.whatif import Change
from trainwright.ui.widgets.base import Heading
from trainwright.ui.widgets.verdict import STATE


class ChangeCard(QAbstractButton):
    """One change."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self._change = change
        self._title = say(change.title)
        self._memory = signed(change.memory_bytes)
        self._speed = self._speed_text()
        self.setAccessibleName(f"{self._title}: {self._memory}, {self._speed}")
        self.setAccessibleDescription(tr("ui.change.apply"))
        self.setToolTip(tr("ui.change.apply"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedHeight(52)
        self.setSizePolicy(QSizePolicy.Policy.MinimumExpanding, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        title = tokens.width(self._title, tokens.BODY, 500)
        below = tokens.width(self._memory, tokens.LABEL, 600) + tokens.width(
            self._speed, tokens.MICRO
        )
        return QSize(int(max(title, below + 8)) + 44, 52)

    sizeHint = minimumSizeHint

    def _speed_text(self) -> str:
        if self._change.verdict in (Verdict.NO, Verdict.SPILLS):
            return tr("ui.change.no")
        if abs(self._change.speed - 1) < 0.005:
            return tr("ui.change.same")
        change = round((self._change.speed - 1) * 100)
        return tr("ui.change.speed", change=f"{'+' if change > 0 else '−'}{abs(change)}")

    def paintEvent(self, _event: object) -> None:
        w, h = self.width(), self.height()
        state = STATE[self._change.verdict]
        with Drawing(self) as d:
            face = "sunken" if self.underMouse() or self.isDown() else "surface"
            d.box(0, 0, w, h, face, "line", radius=8)
            d.icon(STATE_ICON[state], 11, 9, 16, f"{state}Fill")
            d.write(34, 7, w - 40, 20, self._title, weight=500)
            used = d.write(34, 27, w - 40, 18, self._memory,
                           px=tokens.LABEL, weight=600, colour=state)  # fmt: skip
            d.write(34 + used + 7, 27, w - 47 - used, 18, self._speed,
                    px=tokens.MICRO, colour="text2" if state != "no" else "no")  # fmt: skip
            if self.hasFocus():
                d.focus_ring(w, h, 8)


class ChangeCards(QWidget):
    """The heading and its cards; as many cards as have room."""

    applied = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(Heading(Message.of("ui.change.heading")))
        self._row = QHBoxLayout()
        self._row.setSpacing(tokens.S)
        column.addLayout(self._row)
        self._cards: list[ChangeCard] = []
        self.setFixedHeight(76)

    def minimumSizeHint(self) -> QSize:
        return QSize(200, 76)

    def show_changes(self, changes: list[Change]) -> None:
        """Show other changes."""
        for card in self._cards:
            self._row.removeWidget(card)
            card.hide()
            card.deleteLater()
        self._cards = [ChangeCard(change) for change in changes]
        room = self.width() or 680
        for index, card in enumerate(self._cards):
            room -= card.minimumSizeHint().width() + tokens.S
            card.clicked.connect(self._apply)
            if room < -tokens.S and index:
                card.hide()
                continue
            self._row.addWidget(card, 1)

    def _apply(self) -> None:
        card = self.sender()
        if isinstance(card, ChangeCard):
            self.applied.emit(self._cards.index(card))
