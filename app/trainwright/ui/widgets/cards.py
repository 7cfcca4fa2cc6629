"""What other settings and parts would do: a small card each; one click applies it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from trainwright.advise.whatif import NEXT_TO_NOTHING, WhatIf
from trainwright.messages import Message
from trainwright.plan.schema import Plan
from trainwright.ui import tokens
from trainwright.ui.figures import signed
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import STATE_ICON, Drawing
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Heading
from trainwright.ui.widgets.verdict import STATE

_HEIGHT = 46
_COLUMNS = 4
_ROWS = {4: 2, 3: 2, 2: 3, 1: 4}
"""Rows by columns: narrow windows show about as many cards as wide ones."""
_PAD = 10
_ICON = 20
"""Width that the icon of what does not fit takes."""


class WhatIfCard(QAbstractButton):
    """One change: what it is called, its gain, and what it does to the memory."""

    def __init__(self, whatif: WhatIf, shown: Callable[[], Plan | None], parent: QWidget) -> None:
        super().__init__(parent)
        self._base, self._shown = whatif.base, shown
        self._title = say(whatif.change)
        self._state = STATE[whatif.verdict] if whatif.verdict is not None else "na"
        self._gain = gain_text(whatif)
        remark = whatif.remark if whatif.fits else None
        self._beside = say(remark) if remark is not None else _memory_text(whatif)
        because = say(whatif.because)
        if whatif.interval is not None:
            low, high = whatif.interval.low, whatif.interval.high
            because += " " + tr("advise.whatif.spread", low=low, high=high)
        spoken = ", ".join(text for text in (self._gain, self._beside) if text)
        self.setAccessibleName(f"{self._title}: {spoken}")
        self.setAccessibleDescription(f"{because} {tr('ui.change.apply')}")
        self.setToolTip(plain_tip(f"{because}\n{tr('ui.change.apply')}"))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.MinimumExpanding, QSizePolicy.Policy.Fixed)
        self._faster = whatif.fits and not whatif.same and (whatif.gain or 0) > 0

    @property
    def current(self) -> bool:
        """Whether the card speaks of the plan that is shown."""
        return self._base is self._shown()

    def compare(self) -> None:
        """Be grey, and not to be pressed, where the plan has changed."""
        self.setEnabled(self.current)
        self.update()

    @property
    def _marked(self) -> bool:
        """Whether the state must be seen: what fits well needs no word."""
        return self._state in ("no", "tight")

    def minimumSizeHint(self) -> QSize:
        title = tokens.width(self._title, tokens.LABEL, 500) + self._marked * _ICON
        below = tokens.width(self._gain, tokens.BODY, 600)
        if self._beside:
            below += tokens.width(self._beside, tokens.MICRO) + 8
        return QSize(int(max(title, below)) + 2 * _PAD + 2, _HEIGHT)

    sizeHint = minimumSizeHint

    def paintEvent(self, _event: object) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            current = self.current  # asked at every repaint: an old card never looks like a new one
            pressed = current and (self.underMouse() or self.isDown())
            face = "sunken" if pressed or not current else "surface"
            d.box(0, 0, w, h, face, "line", radius=8)
            room = w - 2 * _PAD
            if self._marked and current:
                d.icon(STATE_ICON[self._state], w - _PAD - 14, 7, 14, f"{self._state}Fill")
                room -= _ICON
            d.write(_PAD, 5, room, 18, self._title, px=tokens.LABEL, weight=500,
                    colour="text" if current else "text3")  # fmt: skip
            ink = "no" if self._state == "no" else "fits" if self._faster else "text2"
            known = self._state != "na"
            ink = ink if current else "text3"
            used = d.write(_PAD, 23, w - 2 * _PAD, 18, self._gain, weight=600 if known else 400,
                           px=tokens.BODY if known else tokens.MICRO,
                           colour=ink if known else "text3")  # fmt: skip
            d.write(_PAD + used + 8, 23, w - 2 * _PAD - used - 8, 18, self._beside,
                    px=tokens.MICRO, colour="text3", align="right")  # fmt: skip
            if self.hasFocus():
                d.focus_ring(w, h, 8)


def gain_text(whatif: WhatIf) -> str:
    """Return the gain as people say it, or why there is none."""
    if whatif.verdict is None:
        return tr("ui.change.untraced")
    if not whatif.fits:
        return tr("ui.change.no")
    if whatif.gain is None:
        return tr("ui.figure.absent")
    if whatif.same:
        return "±0 %"
    change = abs(whatif.gain) * 100
    digits = 0 if change >= 10 else 1
    return f"{'+' if whatif.gain > 0 else '−'}{change:.{digits}f} %"


def _memory_text(whatif: WhatIf) -> str:
    """Return the change of device use where it is one."""
    if whatif.memory_bytes is None or abs(whatif.memory_bytes) < NEXT_TO_NOTHING:
        return ""
    return signed(whatif.memory_bytes)


class WhatIfCards(QWidget):
    """The heading and its cards, the most useful first; as many as a few rows hold."""

    applied = Signal(int)

    def __init__(self, shown: Callable[[], Plan | None]) -> None:
        """``shown`` returns the plan that the window shows."""
        super().__init__()
        self._shown = shown
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(Heading(Message.of("ui.change.heading"), Message.of("ui.change.note")))
        self._area = QWidget()
        column.addWidget(self._area)
        self._cards: list[WhatIfCard] = []

    def show_whatifs(self, found: Sequence[WhatIf]) -> None:
        """Show other changes."""
        for card in self._cards:
            card.hide()
            card.deleteLater()
        self._cards = [WhatIfCard(whatif, self._shown, self._area) for whatif in found]
        self.compare()
        for card in self._cards:
            card.clicked.connect(self._apply)
        self._place()

    def compare(self) -> None:
        """Grey the cards of another plan than the one that is shown."""
        for card in self._cards:
            card.compare()

    def minimumSizeHint(self) -> QSize:
        widest = max((card.minimumSizeHint().width() for card in self._cards), default=120)
        return QSize(widest, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        """Lay the cards into columns of one width."""
        if not self._cards:
            return
        columns = self._columns()
        shown = min(len(self._cards), columns * _ROWS[columns])
        wide, gap = (self.width() + tokens.S) // columns, tokens.S
        for index, card in enumerate(self._cards):
            card.setVisible(index < shown)
            row, column = divmod(index, columns)
            card.setGeometry(column * wide, row * (_HEIGHT + gap), wide - gap, _HEIGHT)
        self._area.setFixedHeight(-(-shown // columns) * (_HEIGHT + gap) - gap)

    def _columns(self) -> int:
        """Return the most columns that are wide enough for every card they would show."""
        wide = [card.minimumSizeHint().width() for card in self._cards]
        for columns in range(min(_COLUMNS, len(wide)), 1, -1):
            widest = max(wide[: columns * _ROWS[columns]])
            if columns * (widest + tokens.S) - tokens.S <= self.width():
                return columns
        return 1

    def _apply(self) -> None:
        card = self.sender()
        if isinstance(card, WhatIfCard):
            self.applied.emit(self._cards.index(card))
