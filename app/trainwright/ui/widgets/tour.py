"""The tour: five marks on the window, one after the other, each with a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QKeyEvent,
    QMouseEvent,
    QPaintEvent,
    QRegion,
)
from PySide6.QtWidgets import QHBoxLayout, QWidget
from shiboken6 import isValid

from trainwright.messages import Message
from trainwright.ui import tokens
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Label, Surface
from trainwright.ui.widgets.buttons import Button

_ARROWS = (Qt.Key.Key_Left, Qt.Key.Key_Right, Qt.Key.Key_Up, Qt.Key.Key_Down)
_WIDTH, _GAP, _FRAME = 380, 14, 4
"""Of the card; between it and what is marked; around what is marked. In pixels, assumed."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What is shown: a part of the window, and the name of the sentence about it."""

    name: str
    widget: QWidget


class Tour(QWidget):
    """Lies over all of a window's contents, and is deleted with them, at the end or by Escape."""

    ended = Signal()

    def __init__(self, contents: QWidget, marks: Sequence[Mark]) -> None:
        super().__init__(contents)
        self._contents, self._marks, self._at = contents, marks, 0
        self.card = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=tokens.S)
        self.card.setParent(self)
        self._title = Label(px=tokens.SECTION, weight=600, wrap=True)
        self._text = Label(colour="text2", wrap=True)
        self._count = Label(px=tokens.LABEL, colour="text3")
        self.skip = Button(Message.of("ui.tour.skip"), "ghost", small=True)
        self.back = Button(Message.of("ui.tour.back"), "secondary", small=True)
        self.next = Button(Message.of("ui.tour.next"), "primary", small=True)
        self.done = Button(Message.of("ui.tour.done"), "primary", small=True)
        self._lay_out()
        self.skip.clicked.connect(self.end)
        self.done.clicked.connect(self.end)
        self.back.clicked.connect(lambda: self.show_mark(self._at - 1))
        self.next.clicked.connect(lambda: self.show_mark(self._at + 1))
        for button in (self.skip, self.back, self.next, self.done):
            button.installEventFilter(self)
        contents.installEventFilter(self)
        contents.window().installEventFilter(self)
        self.show()
        self.raise_()
        self.show_mark(0)

    def _lay_out(self) -> None:
        self.card.setFixedWidth(_WIDTH)
        self.card.column.addWidget(self._title)
        self.card.column.addWidget(self._text)
        line = QHBoxLayout()
        line.addWidget(self._count)
        line.addStretch(1)
        for button in (self.skip, self.back, self.next, self.done):
            line.addWidget(button)
        self.card.column.addLayout(line)

    def show_mark(self, number: int) -> None:
        """Go to a mark; beyond the ends nothing happens."""
        if not 0 <= number < len(self._marks):
            return
        self._at = number
        name, last = self._marks[number].name, number == len(self._marks) - 1
        self._title.tell(Message.of(f"ui.tour.{name}"))
        self._text.tell(Message.of(f"ui.tour.{name}.text"))
        self._count.tell(Message.of("ui.tour.step", step=number + 1, steps=len(self._marks)))
        self.back.setVisible(number > 0)
        self.skip.setVisible(not last)
        self.next.setVisible(not last)
        self.done.setVisible(last)
        (self.done if last else self.next).setFocus()
        self.setAccessibleName(f"{self._title.text()}. {self._text.text()}")
        QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))
        self._place()

    def end(self) -> None:
        """Take the tour away; the window has the focus again."""
        self.hide()
        self.deleteLater()
        self.ended.emit()

    def _place(self) -> None:
        """Cover the contents, and put the card where it hides nothing of the mark."""
        self.setGeometry(self._contents.rect())
        self.card.setFixedHeight(self.card.column.heightForWidth(_WIDTH))
        marked, high = self._marked(), self.card.height()
        below = QPoint(max(_GAP, marked.right() - _WIDTH), marked.bottom() + _GAP)
        right = QPoint(marked.right() + _GAP, max(_GAP, marked.top() + _GAP))
        within = marked.center() - QPoint(_WIDTH // 2, high // 2)
        fit = (each for each in (below, right)
               if self.rect().contains(QRect(each, self.card.size())))  # fmt: skip
        self.card.move(next(fit, within))
        self.update()

    def _marked(self) -> QRect:
        widget = self._marks[self._at].widget
        at = widget.mapTo(self._contents, QPoint())
        return QRect(at, widget.size()).adjusted(-_FRAME, -_FRAME, _FRAME, _FRAME) & self.rect()

    def paintEvent(self, _event: QPaintEvent) -> None:
        marked = self._marked()
        with Drawing(self) as d:
            d.setClipRegion(QRegion(self.rect()) - QRegion(marked))
            d.fillRect(self.rect(), tokens.colour("rail", 0.55))
            d.setClipping(False)
            place = marked.x(), marked.y(), marked.width(), marked.height()
            d.box(*place, None, "accentLine", radius=tokens.CONTROL, width=2)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Go by the arrow keys; Escape ends the tour."""
        match event.key():
            case Qt.Key.Key_Escape:
                self.end()
            case Qt.Key.Key_Right | Qt.Key.Key_Down:
                self.show_mark(self._at + 1)
            case Qt.Key.Key_Left | Qt.Key.Key_Up:
                self.show_mark(self._at - 1)
            case _:
                super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """End the tour where a person clicks on what lies below it."""
        self.end()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Keep Tab on the card's buttons: what lies below cannot be used now."""
        shown = [each for each in (self.skip, self.back, self.next, self.done) if each.isVisible()]
        if not shown:  # while the tour is taken away
            return super().focusNextPrevChild(forward)
        focused = [number for number, each in enumerate(shown) if each.hasFocus()]
        step = 1 if forward else -1
        shown[(focused[0] + step if focused else 0) % len(shown)].setFocus()
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the window's size, give way to a dialog, and take the arrows from buttons."""
        if not (isValid(self) and self.isVisible()):
            return False
        if event.type() == QEvent.Type.Resize and watched is self._contents:
            self._place()
        elif event.type() == QEvent.Type.WindowBlocked:
            self.end()
        elif isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress and (
            isinstance(watched, Button) and event.key() in _ARROWS
        ):  # fmt: skip
            self.keyPressEvent(event)
            return True
        return super().eventFilter(watched, event)
