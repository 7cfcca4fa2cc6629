"""Push buttons: one primary in a view; green only applies a fix."""

from typing import Literal

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QPushButton, QSizePolicy

from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.tips import plain_tip

ButtonKind = Literal["primary", "secondary", "ghost", "fix"]

_FACE: dict[ButtonKind, tuple[str | None, str | None, str]] = {
    "primary": ("accent", None, "accentInk"),
    "secondary": ("surface", "line2", "text"),
    "ghost": (None, None, "text2"),
    "fix": ("fitsFill", None, "fitsInk"),
}


class Button(QPushButton):
    """A button with an icon, a text or both; without a text it needs a name."""

    def __init__(
        self,
        text: Text = "",
        kind: ButtonKind = "secondary",
        icon: str = "",
        *,
        name: Text = "",
        tip: Text = "",
        small: bool = False,
    ) -> None:
        super().__init__()
        self._kind = kind
        self._icon = icon
        self._height = 28 if small else tokens.BUTTON_HEIGHT
        self._px = tokens.LABEL if small else tokens.BODY
        self.setText(say(text).replace("&", "&&"))
        self._label = say(text)
        self.setAccessibleName(say(name or text))
        if tip:
            self.setToolTip(plain_tip(say(tip)))
            self.setAccessibleDescription(say(tip))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setFixedSize(self.sizeHint())

    def sizeHint(self) -> QSize:
        if not self._label:
            return QSize(self._height, self._height)
        wide = tokens.width(self._label, self._px, 500) + 24 + (22 if self._icon else 0)
        return QSize(int(wide + 0.99), self._height)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        fill, line, ink = _FACE[self._kind]
        if not self.isEnabled():
            fill, line, ink = ("sunken" if fill else None), ("line" if fill else None), "text3"
        elif self.isChecked():
            fill, ink = "accentWash", "accent"
        elif self.isDown():
            fill = "accentHover" if self._kind == "primary" else fill and "line"
        elif self.underMouse():
            fill = {"primary": "accentHover", "fix": "fits"}.get(self._kind, "sunken")
            if self._kind == "fix" and tokens.theme() == "dark":
                fill = "fits"
        with Drawing(self) as d:
            d.box(0, 0, w, h, fill, line)
            x = 12.0 if self._label else (w - 18) / 2
            if self._icon:
                d.icon(self._icon, x - (1 if self._label else 0), (h - 18) / 2, 18, ink)
                x += 22
            if self._label:
                d.write(x, 0, w - x, h, self._label, px=self._px, weight=500, colour=ink)
            if self.hasFocus():
                d.focus_ring(w, h)


class HelpMark(QAbstractButton):
    """A small question mark beside what it explains."""

    WIDTH = 18

    def __init__(self, name: Text) -> None:
        super().__init__()
        self.setAccessibleName(say(name))
        self.setToolTip(plain_tip(say(name)))
        self.setFixedSize(self.WIDTH, self.WIDTH)
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            lit = self.underMouse() or self.hasFocus()
            d.icon("question", 2, 2, 14, "accent" if lit else "text3")
            if self.hasFocus():
                d.focus_ring(self.WIDTH, self.WIDTH)


class Lock(QPushButton):
    """Fixed or free. A free setting is for the search to choose."""

    def __init__(self, name: Text, *, free: bool) -> None:
        super().__init__()
        self._name = say(name)
        self._shown: tuple[bool, str] | None = None
        self.setCheckable(True)
        self.setFixedSize(24, tokens.CONTROL_HEIGHT)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.set_free(free)

    def set_free(self, free: bool, chosen: str = "") -> None:
        """Show the state without telling anybody; ``chosen`` is why the search chose the value."""
        if (free, chosen) == self._shown:
            return
        self._shown = (free, chosen)
        self.blockSignals(True)
        self.setChecked(free)
        self.blockSignals(False)
        state = "chosen" if chosen else "free" if free else "fixed"
        self.setAccessibleName(tr(f"ui.lock.{state}", name=self._name))
        tip = tr(f"ui.lock.{state}.tip")
        self.setToolTip(plain_tip(f"{tip}\n{chosen}" if chosen else tip))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        free = self.isChecked()
        with Drawing(self) as d:
            if self.underMouse():
                d.box(0, 0, self.width(), self.height(), "sunken", radius=tokens.CHIP)
            chosen = self._shown is not None and bool(self._shown[1])
            glyph = "magic-wand" if chosen else "lock-simple-open" if free else "lock-simple-fill"
            d.icon(glyph, 5, (self.height() - 15) / 2, 15, "accent" if free else "text3")
            if self.hasFocus():
                d.focus_ring(self.width(), self.height(), tokens.CHIP)
