"""What lies on the board of instances: the ruler, blocks that are dragged, and their ghost."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from trainwright.mig.board import Sketch, plain_name
from trainwright.mig.layout import Instance
from trainwright.ui import tokens
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Painted

_FILLS = ("weights", "input", "act", "optim", "work", "data")


def fill(sketch: Sketch, profile: str) -> str:
    """Return a profile's colour: the same on the whole board, variants alike."""
    plain = [each.name for each in sketch.table.profiles if each.plain]
    base = plain_name(profile)
    at = plain.index(base) if base in plain else 0
    return _FILLS[(len(plain) - 1 - at) % len(_FILLS)]


@dataclass(frozen=True, slots=True)
class Ruler:
    """Where units lie, in pixels of a widget that begins at the strip's left edge."""

    left: float
    width: float
    units: int

    def x(self, unit: float) -> float:
        """Return where a unit begins."""
        return self.left + unit * self.width / self.units

    def unit(self, x: float) -> float:
        """Return the unit at a place."""
        return (x - self.left) * self.units / self.width if self.width else 0.0


class Piece(QAbstractButton):
    """Something that is clicked, or dragged onto the strip."""

    dragged = Signal(QPoint)
    """Where the pointer is, on the screen."""
    dropped = Signal(QPoint)
    left = Signal()
    """The drag ended elsewhere or was given up."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._pressed: QPoint | None = None
        self.pressed_at = QPoint()
        """Where it was taken, from its upper left corner."""
        self.dragging = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.OpenHandCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = event.globalPosition().toPoint()
            self.pressed_at = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            super().mouseMoveEvent(event)
            return
        here = event.globalPosition().toPoint()
        far = (here - self._pressed).manhattanLength() >= QApplication.startDragDistance()
        if self.dragging or far:
            self.dragging = True
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.dragged.emit(here)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        dragging = self.dragging
        self._stop()
        if not dragging:
            super().mouseReleaseEvent(event)
            return
        self.setDown(False)
        self.dropped.emit(event.globalPosition().toPoint())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.dragging:
            self._stop()
            self.setDown(False)
            self.left.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def _stop(self) -> None:
        self._pressed, self.dragging = None, False
        self.setCursor(Qt.CursorShape.OpenHandCursor)


class Block(Piece):
    """An instance on the strip: dragged or moved by the arrow keys, removed by Delete."""

    stepped = Signal(int)
    crossed = Signal(int)
    """To the GPU below (1) or above (-1)."""
    removed = Signal()
    focused = Signal()

    def __init__(self, parent: QWidget, instance: Instance) -> None:
        super().__init__(parent)
        self.instance = instance
        self._lines: tuple[str, ...] = ()
        self._fill = "weights"

    def describe(self, fill: str, lines: Sequence[str]) -> None:
        """Show the profile and what the instance has."""
        self._fill, self._lines = fill, tuple(lines)
        spoken = tr("ui.mig.instance", profile=self.instance.profile, start=self.instance.start)
        self.setAccessibleName(", ".join((spoken, *lines[1:])))
        self.setAccessibleDescription(tr("ui.mig.instance.keys"))
        self.setToolTip(plain_tip("\n".join((spoken, *lines[1:]))))
        self.update()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.stepped.emit(-1 if event.key() == Qt.Key.Key_Left else 1)
        elif event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.crossed.emit(-1 if event.key() == Qt.Key.Key_Up else 1)
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.removed.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            d.box(0, 0, w, h, self._fill)
            ink = tokens.ink(self._fill)
            room, top = w - 12, 7.0
            for number, line in enumerate(self._lines):
                weight = 600 if number == 0 else 500
                for part in _broken(line, room, weight):
                    if top + 16 > h:
                        break  # the tooltip has all of it
                    text = tokens.metrics(tokens.MICRO, weight).elidedText(
                        part, Qt.TextElideMode.ElideRight, round(room)
                    )
                    d.write(7, top, room, 16, text, px=tokens.MICRO, weight=weight, colour=ink)
                    top += 16
            if self.hasFocus():
                d.box(0, 0, w, h, None, "surface", width=2)
                d.box(2, 2, w - 4, h - 4, None, "text", radius=4, width=2)


def _broken(line: str, room: float, weight: int) -> list[str]:
    """Return a line in pieces that fit: at spaces, and profiles before their memory."""
    if tokens.width(line, tokens.MICRO, weight) <= room:
        return [line]
    for mark in ("+", ".", "-"):
        head, found, tail = line.partition(mark)
        if found and " " not in line:
            return [head, *_broken(found + tail, room, weight)]
    return tokens.wrapped(line, room, tokens.MICRO, weight)


class Ghost(Painted):
    """What would lie there if it were dropped now."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent=parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.legal, self.text = True, ""
        self.hide()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        edge = "fits" if self.legal else "no"
        d.box(0, 0, w, h, "fitsWash" if self.legal else "noWash", edge, width=2, dashed=True)
        d.icon("check-circle-fill" if self.legal else "x-circle-fill", w / 2 - 9, h / 2 - 24, 18,
               edge)  # fmt: skip
        if tokens.width(self.text, tokens.MICRO, 600) <= w - 4:
            d.write(2, h / 2, w - 4, 18, self.text, px=tokens.MICRO, weight=600, colour=edge,
                    align="centre")  # fmt: skip
