"""Tabs: one line of places within a screen, with an underline below the one that is shown."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton, QSizePolicy

from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Surface

HEIGHT = 42


class Tab(QRadioButton):
    """One of them; arrow keys go from one to the next."""

    def __init__(self, text: str, icon: str) -> None:
        super().__init__(text)
        self._icon = icon
        self.setAccessibleName(text)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(HEIGHT)

    def _ink(self) -> float:
        return tokens.width(self.text(), tokens.BODY, 600)

    def minimumSizeHint(self) -> QSize:
        return QSize(int(self._ink()) + 17, HEIGHT)

    def sizeHint(self) -> QSize:
        return QSize(int(self._ink()) + 22 + (22 if self._icon else 0), HEIGHT)

    def hitButton(self, _position: object) -> bool:
        return True

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h, on = self.width(), self.height(), self.isChecked()
        with Drawing(self) as d:
            if self.underMouse() and not on:
                d.box(2, 6, w - 4, h - 12, "sunken")
            ink = "text" if on else "text2"
            icon = self._icon if w >= self._ink() + 38 else ""
            wide = self._ink() + (22 if icon else 0)
            x = (w - wide) / 2
            if icon:
                d.icon(icon, x, (h - 16) / 2, 16, "accent" if on else "text3")
                x += 22
            d.write(x, 0, w - x, h, self.text(), weight=600 if on else 500, colour=ink)
            if on:
                d.box(6, h - 3, w - 12, 3, "accent", radius=1.5)
            if self.hasFocus():
                d.focus_ring(w, h)


class Tabs(Surface):
    """The line of tabs."""

    chosen = Signal(str)

    def __init__(self, tabs: Sequence[tuple[str, Text, str]], value: str, *, name: Text) -> None:
        super().__init__("bottom", padding=(tokens.S, 0, tokens.S, 0), gap=0)
        self.setAccessibleName(say(name))
        self._keys = [key for key, _, _ in tabs]
        self._group = QButtonGroup(self)
        line = QHBoxLayout()
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        for number, (_, text, icon) in enumerate(tabs):
            tab = Tab(say(text), icon)
            tab.setAccessibleDescription(say(name))
            self._group.addButton(tab, number)
            line.addWidget(tab)
        line.addStretch(1)
        self.column.addLayout(line)
        self.show_value(value)
        self._group.idClicked.connect(self._tell)

    @property
    def value(self) -> str:
        """The key of the tab that is shown."""
        return self._keys[self._group.checkedId()]

    def show_value(self, value: str) -> None:
        """Show a tab without telling anybody."""
        self._group.button(self._keys.index(value)).setChecked(True)

    def _tell(self, number: int) -> None:
        self.chosen.emit(self._keys[number])
