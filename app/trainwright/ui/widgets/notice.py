"""Messages that lie over the window without stopping the work."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleEvent, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QWidget

from trainwright.ui import tokens
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Label
from trainwright.ui.widgets.buttons import Button

_STAYS_MS = 12_000


class Notice(QFrame):
    """One line at the lower edge; goes by itself, or by its button."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._label = Label(px=tokens.BODY, weight=500, wrap=True, colour="surface")
        close = Button("", "ghost", "x", name=tr("ui.notice.close"), small=True)
        close.clicked.connect(self.hide)
        line = QHBoxLayout(self)
        line.setContentsMargins(44, 6, 8, 6)
        line.addWidget(self._label, 1)
        line.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)
        self._stays = False
        self._timer = QTimer(self, singleShot=True, interval=_STAYS_MS)
        self._timer.timeout.connect(self.hide)
        self.hide()

    @property
    def text(self) -> str:
        """What is said; empty while nothing is shown."""
        return self._label.text() if self.isVisible() else ""

    def pass_by(self) -> None:
        """Hide what an edit takes back."""
        if not self._stays:
            self.hide()

    def say(self, text: str, *, stays: bool = False) -> None:
        """Show a message; one that ``stays`` is not taken back by the next edit."""
        self._stays = stays
        self._label.paint_in("surface")
        self._label.setText(text)
        self.setAccessibleName(text)
        self.place()
        self.show()
        self.raise_()
        self._timer.start()
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def place(self) -> None:
        """Take the lower middle of the window."""
        parent = self.parentWidget()
        if parent is None:
            return
        wide = min(parent.width() - 160, max(360, self._label.sizeHint().width() + 110))
        room = wide - 44 - 8 - 36
        high = max(28, self._label.heightForWidth(room)) + 14
        self.setGeometry(
            tokens.RAIL_WIDTH + (parent.width() - tokens.RAIL_WIDTH - wide) // 2,
            parent.height() - high - 44, wide, high,
        )  # fmt: skip

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.box(0, 0, self.width(), self.height(), "text", radius=8)
            d.icon("info", 16, 12, 17, "surface")


class Strip(QFrame):
    """A line with an offer: restore, cancel; stays until it is answered."""

    answered = Signal(str)

    def __init__(self, icon: str, state: str = "tight") -> None:
        super().__init__()
        self._icon, self._state = icon, state
        self.label = Label(colour="text", wrap=True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(44, 8, 10, 8)
        self._line.setSpacing(tokens.S)
        self._line.addWidget(self.label, 1)

    def look(self, icon: str, state: str) -> None:
        """Take another look, for another kind of message."""
        self._icon, self._state = icon, state
        self.update()

    def offer(self, button: Button, answer: str) -> None:
        """Add a button that answers."""
        button.setProperty("answer", answer)
        button.clicked.connect(self._answer)
        self._line.addWidget(button)

    def _answer(self) -> None:
        self.answered.emit(str(self.sender().property("answer")))

    def paintEvent(self, _event: QPaintEvent) -> None:
        h = self.height()
        with Drawing(self) as d:
            wash, line = f"{self._state}Wash", tokens.colour(f"{self._state}Fill", 0.4)
            d.box(0, 0, self.width(), h, wash, line, radius=8)
            d.icon(self._icon, 16, (h - 17) / 2, 17, f"{self._state}Fill")
