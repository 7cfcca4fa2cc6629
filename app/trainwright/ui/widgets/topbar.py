"""Top and status bar: the document's name and state, the palette, and what is going on."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QWidget

from trainwright.ui import tokens
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Painted, Surface


class DocumentTitle(Painted):
    """Name of the plan, whether it is saved, and the machine below."""

    def __init__(self) -> None:
        super().__init__()
        self._name, self._state, self._below, self._saved = "", "", "", True
        self.setFixedHeight(tokens.TOP_HEIGHT - 1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, tokens.TOP_HEIGHT - 1)

    def show_document(self, name: str, state: str, below: str, *, saved: bool) -> None:
        """Show another document."""
        if (name, state, below, saved) == (self._name, self._state, self._below, self._saved):
            return
        self._name, self._state, self._below, self._saved = name, state, below, saved
        self.setAccessibleName(", ".join(text for text in (name, state, below) if text))
        self.setToolTip(plain_tip(f"{name}\n{below}" if below else name))
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if not self._below:
            d.write(0, 0, w, h, self._name, px=tokens.TITLE, weight=600)
            return
        used = d.write(0, 8, w, 22, self._name, px=tokens.TITLE, weight=600)
        state_width = tokens.width(self._state, tokens.LABEL)
        if self._state and used + 30 + state_width < w:
            glyph, ink = ("check", "text3") if self._saved else ("pencil-simple", "text3")
            d.icon(glyph, used + 12, 14, 12, ink)
            d.write(used + 28, 9, state_width + 1, 22, self._state,
                    px=tokens.LABEL, colour="text3")  # fmt: skip
        d.write(0, 29, w, 18, self._below, px=tokens.LABEL, colour="text2")


class SearchButton(QAbstractButton):
    """Opens the palette; looks like the field that it opens."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("ui.action.palette"))
        self.setToolTip(plain_tip(tr("ui.action.palette.tip")))
        self.setFixedSize(self.sizeHint())
        self.setCursor(Qt.CursorShape.PointingHandCursor)

    def sizeHint(self) -> QSize:
        return QSize(max(220, int(tokens.width(tr("ui.palette.hint"))) + 104), 32)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            d.box(0, 0, w, h, "sunken", "line2" if self.underMouse() else "line")
            d.icon("magnifying-glass", 10, 8, 16, "text3")
            d.write(34, 0, w - 92, h, tr("ui.palette.hint"), colour="text3")
            d.box(w - 50, 7, 42, h - 14, "surface", "line", radius=tokens.CHIP)
            d.write(w - 50, 7, 42, h - 14, "Ctrl K", px=10, weight=500, colour="text3",
                    align="centre")  # fmt: skip
            if self.hasFocus():
                d.focus_ring(w, h)


class TopBar(Surface):
    """One line above every screen."""

    def __init__(self, *tools: QWidget) -> None:
        super().__init__("bottom", padding=(tokens.XL, 0, tokens.L, 0), gap=0)
        self.setFixedHeight(tokens.TOP_HEIGHT)
        self.title = DocumentTitle()
        self.search = SearchButton()
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        line.addWidget(self.title, 1)
        line.addWidget(self.search)
        for tool in tools:
            line.addWidget(tool)
        self.column.addLayout(line)


class StatusBar(Painted):
    """What was found and what is going on, in short."""

    clicked = Signal()

    def __init__(self) -> None:
        super().__init__(height=tokens.STATUS_HEIGHT)
        self._items: list[tuple[str, str, str]] = []
        self._version = ""

    def show_items(self, items: list[tuple[str, str, str]], version: str) -> None:
        """Show (icon, text, colour) items at the left, the version at the right."""
        if (items, version) == (self._items, self._version):
            return
        self._items, self._version = items, version
        self.setAccessibleName(", ".join(text for _, text, _ in items))
        self.setToolTip(plain_tip("\n".join(text for _, text, _ in items)))
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.fillRect(self.rect(), tokens.colour("surface"))
        d.rule(0, 0, w, 0)
        right = w - tokens.L - tokens.width(self._version, tokens.LABEL)
        d.write(right, 1, w - right, h, self._version, px=tokens.LABEL, colour="text3")
        x = float(tokens.XL)
        for icon, text, ink in self._items:
            wide = tokens.width(text, tokens.LABEL)
            if x + 20 + wide > right - tokens.L:
                break
            d.icon(icon, x, (h - 14) / 2 + 0.5, 14, ink)
            d.write(x + 20, 1, wide + 1, h, text, px=tokens.LABEL, colour="text2")
            x += wide + 20 + tokens.XL
