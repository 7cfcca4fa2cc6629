"""A slider that paints its own face; keys and screen readers work as Qt's own."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QMouseEvent, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QSlider, QStyle

from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say
from trainwright.ui.paint import Drawing

_KNOB = 16


class Slider(QSlider):
    """A horizontal slider; a click moves the knob there at once."""

    def __init__(self, low: int, high: int, value: int, *, name: Text, step: int = 1) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self.setRange(low, high)
        self.setSingleStep(step)
        self.setPageStep(step * 5)
        self.setValue(value)
        self.setAccessibleName(say(name))
        self.setFixedHeight(tokens.CONTROL_HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def show_value(self, value: int) -> None:
        """Show a value without telling anybody."""
        if value != self.value():
            self.blockSignals(True)
            self.setValue(value)
            self.blockSignals(False)
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(160, tokens.CONTROL_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(100, tokens.CONTROL_HEIGHT)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.setSliderDown(True)
            self._follow(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.isSliderDown():
            self._follow(event)

    def mouseReleaseEvent(self, _event: QMouseEvent) -> None:
        self.setSliderDown(False)

    def _follow(self, event: QMouseEvent) -> None:
        room = self.width() - _KNOB
        at = round(event.position().x() - _KNOB / 2)
        value = QStyle.sliderValueFromPosition(self.minimum(), self.maximum(), at, room)
        step = self.singleStep()
        value = self.minimum() + round((value - self.minimum()) / step) * step
        self.setValue(min(value, self.maximum()))

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        span = max(1, self.maximum() - self.minimum())
        x = (self.value() - self.minimum()) / span * (w - _KNOB)
        with Drawing(self) as d:
            d.box(_KNOB / 2, h / 2 - 2, w - _KNOB, 4, "line", radius=2)
            on = "accent" if self.isEnabled() else "line2"
            d.box(_KNOB / 2, h / 2 - 2, x, 4, on, radius=2)
            d.box(x, (h - _KNOB) / 2, _KNOB, _KNOB, "surface", on, radius=_KNOB / 2, width=2)
            if self.hasFocus():
                d.box(x - 3, (h - _KNOB) / 2 - 3, _KNOB + 6, _KNOB + 6, None, "accent",
                      radius=_KNOB / 2 + 3, width=2)  # fmt: skip
