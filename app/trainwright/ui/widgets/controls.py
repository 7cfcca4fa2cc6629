"""Choosing a value: combo box, stepper, segments, switch. Each may be fixed or free."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QMouseEvent, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLineEdit,
    QRadioButton,
    QSizePolicy,
    QSpinBox,
    QWidget,
)

from trainwright.messages.units import number
from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.undokeys import left_to_window

Choice = tuple[str, Text]
"""(value in the plan, what people read)."""


class Combo(QComboBox):
    """A combo box that paints its own face and reports the value chosen by the user."""

    chosen = Signal(str)

    def __init__(self, choices: Sequence[Choice], value: str, *, name: Text) -> None:
        super().__init__()
        self.free = False
        for key, text in choices:
            self.addItem(say(text), key)
        self.setAccessibleName(say(name))
        self.setFixedHeight(tokens.CONTROL_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.show_value(value)
        self.activated.connect(self._tell)

    def show_value(self, value: str, *, free: bool = False) -> None:
        """Show a value without telling anybody."""
        if value == self.currentData() and free == self.free:
            return
        self.free = free
        index = self.findData(value)
        self.setCurrentIndex(max(index, 0))
        self.update()

    def minimumSizeHint(self) -> QSize:
        texts = [self.itemText(i) for i in range(self.count())]
        widest = max((tokens.width(text) for text in texts), default=0)
        return QSize(int(widest) + 40, tokens.CONTROL_HEIGHT)

    sizeHint = minimumSizeHint

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the panel scrolls; a value must not change in passing

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            d.field(w, h, free=self.free, focus=self.hasFocus(), hover=self.underMouse())
            d.write(10, 0, w - 38, h, self.currentText(), colour="accent" if self.free else "text")
            d.icon("caret-down", w - 23, (h - 12) / 2, 12, "text3")

    def _tell(self, index: int) -> None:
        self.chosen.emit(self.itemData(index))


class Stepper(QSpinBox):
    """A number with a minus and a plus; the editor shows only while it has the focus."""

    chosen = Signal(int)

    def __init__(
        self,
        value: int,
        *,
        name: Text,
        unit: Text = "",
        low: int = 1,
        high: int = 2_000_000_000,
        doubling: bool = False,
        absent: Text = "",
    ) -> None:
        super().__init__()
        self.free = False
        self._absent = say(absent)
        self._unit = say(unit)
        self._doubling = doubling
        self._told = value
        self.setRange(low, high)
        self.setKeyboardTracking(False)
        self.setButtonSymbols(QSpinBox.ButtonSymbols.NoButtons)
        self.setFrame(False)
        self.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.setAccessibleName(say(name))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedHeight(tokens.CONTROL_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        editor = self.lineEdit()
        editor.setFont(tokens.font(tokens.BODY, 500))
        editor.setStyleSheet("background:transparent;border:0")
        editor.hide()
        self.show_value(value)
        self.valueChanged.connect(self._tell)

    def show_value(self, value: int, *, free: bool = False) -> None:
        """Show a value without telling anybody."""
        if value == self.value() and free == self.free:
            return
        self.free = free
        self.blockSignals(True)
        self.setValue(value)
        self.blockSignals(False)
        self._told = self.value()
        self.updateGeometry()
        self.update()

    def event(self, event: QEvent) -> bool:
        typing = self.lineEdit().text() != self.textFromValue(self.value())
        if left_to_window(event, typing=typing):
            event.ignore()
            return False
        return super().event(event)

    def stepBy(self, steps: int) -> None:
        if not self._doubling:
            super().stepBy(steps)
            return
        value = self.value()
        if steps > 0:
            more = value << steps if value else 1 << (steps - 1)
            self.setValue(min(self.maximum(), more))  # Qt takes no more than 31 bits
        else:
            self.setValue(max(self.minimum(), value >> -steps))

    def sizeHint(self) -> QSize:
        return QSize(int(self._text_width()) + 2 * 28 + 14, tokens.CONTROL_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(int(self._text_width()) + 2 * 22 + 12, tokens.CONTROL_HEIGHT)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        zone = self._zone()
        self.lineEdit().setGeometry(zone, 1, self.width() - 2 * zone, self.height() - 2)

    def focusInEvent(self, event: QFocusEvent) -> None:
        self.lineEdit().show()
        super().focusInEvent(event)
        self.selectAll()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.lineEdit().hide()
        self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        x = event.position().x()
        if x < self._zone():
            self.stepBy(-1)
        elif x > self.width() - self._zone():
            self.stepBy(1)
        self.setFocus(Qt.FocusReason.MouseFocusReason)
        self.update()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h, zone = self.width(), self.height(), self._zone()
        with Drawing(self) as d:
            d.field(w, h, free=self.free, focus=self.hasFocus(), hover=self.underMouse())
            edge = "accentLine" if self.free else "line"
            d.rule(zone, 1, zone, h - 1, edge)
            d.rule(w - zone - 1, 1, w - zone - 1, h - 1, edge)
            d.icon("minus", zone / 2 - 6, (h - 12) / 2, 12, "text2")
            d.icon("plus", w - zone / 2 - 6, (h - 12) / 2, 12, "text2")
            if not self.lineEdit().isVisible():
                self._write_value(d, w, h)

    def _write_value(self, d: Drawing, w: int, h: int) -> None:
        if self._absent and self.value() == 0:
            d.write(self._zone() + 2, 0, w - 2 * self._zone() - 4, h, self._absent,
                    px=tokens.LABEL, colour="text3", align="centre")  # fmt: skip
            return
        text = number(self.value())
        wide = tokens.width(text, tokens.BODY, 500)
        unit = f" {self._unit}" if self._unit else ""
        more = tokens.width(unit, tokens.LABEL)
        x = (w - wide - more) / 2
        ink = "accent" if self.free else "text"
        d.write(x, 0, wide + 1, h, text, weight=500, colour=ink)
        d.write(x + wide, 0, more + 1, h, unit, px=tokens.LABEL, colour="text3")

    def _text_width(self) -> float:
        unit = tokens.width(f" {self._unit}", tokens.LABEL) if self._unit else 0
        value = tokens.width(number(max(self.value(), 9999)), tokens.BODY, 500) + unit
        return max(value, tokens.width(self._absent, tokens.LABEL))

    def _zone(self) -> int:
        roomy = self.width() > max(112, self._text_width() + 2 * 28 + 12)
        return 28 if roomy else 22

    def _tell(self, value: int) -> None:
        if value != self._told:
            self._told = value
            self.chosen.emit(value)


class Segment(QRadioButton):
    """One of the choices of ``Segmented``."""

    def __init__(self, text: str, box: "Segmented") -> None:
        super().__init__(text)
        self._box = box
        self.setSizePolicy(QSizePolicy.Policy.MinimumExpanding, QSizePolicy.Policy.Expanding)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(text)

    def sizeHint(self) -> QSize:
        return QSize(int(tokens.width(self.text(), tokens.LABEL, 600)) + 14, 24)

    minimumSizeHint = sizeHint

    def hitButton(self, _position: object) -> bool:
        return True

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h, on, free = self.width(), self.height(), self.isChecked(), self._box.free
        with Drawing(self) as d:
            if on:
                face = "surface" if tokens.theme() == "light" else "line"
                d.box(0, 0, w, h, face, "accentLine" if free else "line2", radius=tokens.CHIP)
            ink = ("accent" if free else "text") if on else "text2"
            d.write(
                0, 0, w, h, self.text(),
                px=tokens.LABEL, weight=600 if on else 400, colour=ink, align="centre",
            )  # fmt: skip
            if self.hasFocus():
                d.focus_ring(w, h, tokens.CHIP)


class Segmented(QWidget):
    """A few choices side by side: radio buttons in one box."""

    chosen = Signal(str)

    def __init__(self, choices: Sequence[Choice], value: str, *, name: Text) -> None:
        super().__init__()
        self.free = False
        self.setAccessibleName(say(name))
        self.setFixedHeight(tokens.CONTROL_HEIGHT)
        self._group = QButtonGroup(self)
        self._keys = [key for key, _ in choices]
        layout = QHBoxLayout(self)
        layout.setContentsMargins(2, 2, 2, 2)
        layout.setSpacing(0)
        for index, (_, text) in enumerate(choices):
            segment = Segment(say(text), self)
            segment.setAccessibleDescription(say(name))
            self._group.addButton(segment, index)
            layout.addWidget(segment, segment.sizeHint().width())
        self.show_value(value)
        self._group.idClicked.connect(self._tell)

    @property
    def value(self) -> str:
        """The choice that is shown."""
        shown = self._group.checkedId()
        return self._keys[shown] if shown >= 0 else ""

    def show_value(self, value: str, *, free: bool = False) -> None:
        """Show a value without telling anybody."""
        shown = self._group.checkedId()
        if shown >= 0 and value == self._keys[shown] and free == self.free:
            return
        self.free = free
        if value in self._keys:
            self._group.button(self._keys.index(value)).setChecked(True)
        self.update()
        for segment in self._group.buttons():
            segment.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        fill = "accentWash" if self.free else "canvas"
        line = "accentLine" if self.free else "line"
        with Drawing(self) as d:
            d.box(0, 0, self.width(), self.height(), fill, line, dashed=self.free)

    def _tell(self, index: int) -> None:
        self.chosen.emit(self._keys[index])


class Switch(QCheckBox):
    """On or off, with the state in words beside it."""

    chosen = Signal(bool)

    def __init__(self, value: bool, *, name: Text, on: Text, off: Text) -> None:
        super().__init__()
        self.free = False
        self._words = (say(off), say(on))
        self.setAccessibleName(say(name))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedHeight(tokens.CONTROL_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.show_value(value)
        self.clicked.connect(self.chosen)

    def show_value(self, value: bool, *, free: bool = False) -> None:
        """Show a value without telling anybody."""
        if value == self.isChecked() and free == self.free:
            return
        self.free = free
        self.setChecked(value)
        self.update()

    def sizeHint(self) -> QSize:
        widest = max(tokens.width(word, tokens.LABEL) for word in self._words)
        return QSize(int(widest) + 44, tokens.CONTROL_HEIGHT)

    minimumSizeHint = sizeHint

    def hitButton(self, _position: object) -> bool:
        return True

    def paintEvent(self, _event: QPaintEvent) -> None:
        h, on = self.height(), self.isChecked()
        y = (h - 18) / 2
        with Drawing(self) as d:
            if self.free:
                d.box(0, y, 32, 18, "accent" if on else "accentWash", "accentLine",
                      radius=9, dashed=True)  # fmt: skip
            else:
                d.box(0, y, 32, 18, "accent" if on else "line2", radius=9)
            knob = "accentInk" if on else "surface" if tokens.theme() == "light" else "text"
            if self.free and not on:
                knob = "accent"
            d.box(23 - 6.5 if on else 9 - 6.5, h / 2 - 6.5, 13, 13, knob, radius=6.5)
            ink = "accent" if self.free else "text2"
            d.write(40, 0, self.width() - 40, h, self._words[on], px=tokens.LABEL, colour=ink)
            if self.hasFocus():
                d.box(0, y - 1, 32, 20, None, "accent", radius=10, width=2)


class Decimal(QLineEdit):
    """A positive number such as a learning rate; emptied, it is left to the default."""

    chosen = Signal(object)
    """The number, or None where the field was emptied."""

    def __init__(self, *, name: Text, absent: Text) -> None:
        self._value = 0.0  # before: Qt sends events while it is made
        super().__init__()
        self.free = False
        self.setFrame(False)
        self.setFont(tokens.font(tokens.BODY, 500))
        self.setStyleSheet("background:transparent;border:0")
        self.setTextMargins(8, 0, 8, 0)
        self.setAccessibleName(say(name))
        self.setPlaceholderText(say(absent))
        self.setFixedHeight(tokens.CONTROL_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.editingFinished.connect(self._tell)

    def show_value(self, value: float, *, free: bool = False) -> None:
        """Show a value without telling anybody; 0 is none."""
        if value != self._value:
            self._value = value
            self._write()

    def _write(self) -> None:
        self.setText(self._written())

    def _written(self) -> str:
        return f"{self._value:g}" if self._value else ""

    def event(self, event: QEvent) -> bool:
        if left_to_window(event, typing=self.text() != self._written()):
            event.ignore()
            return False
        return super().event(event)

    def minimumSizeHint(self) -> QSize:
        return QSize(int(tokens.width(self.placeholderText())) + 26, tokens.CONTROL_HEIGHT)

    sizeHint = minimumSizeHint

    def paintEvent(self, event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.field(self.width(), self.height(), free=False, focus=self.hasFocus(),
                    hover=self.underMouse())  # fmt: skip
        super().paintEvent(event)

    def _tell(self) -> None:
        """Report what was typed; what is not a positive number goes back to what it was."""
        text = self.text().strip().replace(",", ".")
        try:
            value = float(text) if text else 0.0
        except ValueError:
            value = -1.0
        if not 0 <= value <= 100 or value == self._value:
            self._write()
            return
        self._value = value
        self._write()
        self.chosen.emit(value or None)


Control = Combo | Stepper | Segmented | Switch | Decimal
