"""Surfaces, labels, headings and doors: what the other widgets are made of."""

from collections.abc import Iterable
from typing import Literal

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QPalette
from PySide6.QtWidgets import (
    QAbstractButton,
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QScrollBar,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say
from trainwright.ui.paint import Drawing

SCROLL_BAR = 10
"""Width of a scroll bar."""

Edge = Literal["card", "left", "right", "bottom", "top", "none"]


class Painted(QWidget):
    """A widget that draws itself in tokens; its accessible name says what it shows."""

    def __init__(self, name: Text = "", *, height: int = 0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(say(name))
        if height:
            self.setFixedHeight(height)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        """Draw the widget; subclasses answer."""
        raise NotImplementedError

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            self.draw(d, self.width(), self.height())


class Surface(QFrame):
    """A card on the canvas, or a full-height panel with a hairline at one edge."""

    def __init__(
        self,
        edge: Edge = "card",
        *,
        padding: tuple[int, int, int, int] = (tokens.L, tokens.M, tokens.L, tokens.M),
        gap: int = tokens.S,
        fill: str = "surface",
        line: str = "line",
    ) -> None:
        super().__init__()
        self._edge = edge
        self._fill = fill
        self._line = line
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(*padding)
        self.column.setSpacing(gap)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            if self._edge == "card":
                d.box(0, 0, w, h, self._fill, self._line, radius=tokens.CARD)
                return
            d.fillRect(self.rect(), tokens.colour(self._fill))
            match self._edge:
                case "right":
                    d.rule(w - 1, 0, w - 1, h, self._line)
                case "left":
                    d.rule(0, 0, 0, h, self._line)
                case "bottom":
                    d.rule(0, h - 1, w, h - 1, self._line)
                case "top":
                    d.rule(0, 0, w, 0, self._line)


class Label(QLabel):
    """Text in a token's colour; takes a further text later."""

    def __init__(
        self,
        text: Text = "",
        *,
        px: int = tokens.BODY,
        weight: int = 400,
        colour: str = "text",
        wrap: bool = False,
        mono: bool = False,
    ) -> None:
        super().__init__(say(text))
        self.setFont(tokens.font(px, weight, mono))
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wrap)
        self.paint_in(colour)

    def paint_in(self, colour: str) -> None:
        """Give the text another colour."""
        palette = QPalette(self.palette())
        palette.setColor(QPalette.ColorRole.WindowText, tokens.colour(colour))
        self.setPalette(palette)

    def tell(self, text: Text) -> None:
        """Show another text."""
        self.setText(say(text))


class Heading(Painted):
    """A section's title, with its unit or scope at the right."""

    def __init__(self, title: Text, note: Text = "") -> None:
        super().__init__(title, height=22)
        self._title = say(title)
        self._note = say(note)

    def entitle(self, title: Text) -> None:
        """Show another title."""
        if say(title) != self._title:
            self._title = say(title)
            self.setAccessibleName(self._title)
            self.updateGeometry()
            self.update()

    def annotate(self, note: Text) -> None:
        """Show another note at the right."""
        if say(note) != self._note:
            self._note = say(note)
            self.updateGeometry()
            self.update()

    def minimumSizeHint(self) -> QSize:
        note = tokens.width(self._note, tokens.LABEL) + tokens.M if self._note else 0
        return QSize(int(tokens.width(self._title, tokens.SECTION, 600) + note) + 2, 22)

    sizeHint = minimumSizeHint

    def draw(self, d: Drawing, w: int, h: int) -> None:
        used = d.write(0, 0, w, h, self._title, px=tokens.SECTION, weight=600)
        room = w - used - tokens.S
        if self._note and room > 0:
            d.write(
                used + tokens.S, 0, room, h, self._note,
                px=tokens.LABEL, colour="text3", align="right",
            )  # fmt: skip


class Door(QAbstractButton):
    """Something that opens where a figure comes from: by click, Enter, Space or F1.

    ``address`` names the figure within the report; see ``trainwright.ui.addresses``.
    """

    radius: float = tokens.CONTROL

    def __init__(self, address: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.address = address
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        """Draw the face; a bare door has none, and lies over what another widget painted."""

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            if self.underMouse() and self.isEnabled():
                d.box(0, 0, w, h, tokens.colour("accent", 0.06), radius=self.radius)
            self.draw(d, w, h)
            if self.hasFocus():
                d.focus_ring(w, h, self.radius)


def row(*items: QWidget | None, gap: int = tokens.S) -> QWidget:
    """Return widgets side by side; ``None`` takes up what is left."""
    return _laid_out(QHBoxLayout(), items, gap)


def column(*items: QWidget | None, gap: int = tokens.S) -> QWidget:
    """Return widgets one below the other; ``None`` takes up what is left."""
    return _laid_out(QVBoxLayout(), items, gap)


def _laid_out(layout: QBoxLayout, items: Iterable[QWidget | None], gap: int) -> QWidget:
    holder = QWidget()
    holder.setLayout(layout)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setSpacing(gap)
    for item in items:
        if item is None:
            layout.addStretch(1)
        else:
            layout.addWidget(item)
    return holder


class Hairline(Painted):
    """A horizontal rule between groups."""

    def __init__(self) -> None:
        super().__init__(height=1)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.rule(0, 0, w, 0)


class Scroll(QScrollArea):
    """A column that scrolls when it must, with a slim bar, and is never cut at its sides."""

    fitted = Signal()
    """The least width changed."""

    def __init__(self, body: QWidget) -> None:
        super().__init__()
        self._body = body
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self.setWidget(body)
        body.setAutoFillBackground(False)
        slim(self.verticalScrollBar())
        body.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._body and event.type() == QEvent.Type.LayoutRequest:
            self.fit()
        return super().eventFilter(watched, event)

    def fit(self) -> None:
        """Be as wide as the content needs."""
        wide = self._body.minimumSizeHint().width() + SCROLL_BAR
        if wide != self.minimumWidth():
            self.setMinimumWidth(wide)
            self.fitted.emit()


class Pane(QScrollArea):
    """One screen at a time; where the window is smaller than it, it scrolls.

    So no screen makes the window grow, and a person may make it as small as they like.
    """

    def __init__(self, body: QWidget) -> None:
        super().__init__()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.viewport().setAutoFillBackground(False)
        self.setWidget(body)
        body.setAutoFillBackground(False)
        slim(self.verticalScrollBar())
        slim(self.horizontalScrollBar())


def slim(bar: QScrollBar) -> None:
    """Make a scroll bar as quiet as the rest."""
    handle, over = tokens.colour("line2").name(), tokens.colour("text3").name()
    side = "width" if bar.orientation() == Qt.Orientation.Vertical else "height"
    bar.setStyleSheet(
        f"QScrollBar{{background:transparent;border:0;margin:0;{side}:{SCROLL_BAR}px}}"
        f"QScrollBar::handle{{background:{handle};border-radius:3px;margin:2px;"
        "min-height:32px;min-width:32px}"
        f"QScrollBar::handle:hover{{background:{over}}}"
        "QScrollBar::add-line,QScrollBar::sub-line{width:0;height:0}"
        "QScrollBar::add-page,QScrollBar::sub-page{background:transparent}"
    )


def widgets_of(layout: QLayout) -> list[QWidget]:
    """Return a layout's own widgets in their order, without asking it for its items.

    PySide6 keeps what ``itemAt`` returned for as long as the layout lives, while Qt deletes it with
    the widget; whatever takes its place in memory then crashes when it is deleted in turn.
    """
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    parent = layout.parentWidget()
    children = parent.findChildren(QWidget, options=direct) if parent is not None else []
    held = [(layout.indexOf(child), child) for child in children]
    return [child for place, child in sorted(held, key=lambda one: one[0]) if place >= 0]


def clear(layout: QLayout) -> None:
    """Take everything out of a layout and delete it, what its inner layouts hold too."""
    taken: QLayoutItem | None = layout.takeAt(0)
    while taken is not None:
        widget, inner = taken.widget(), taken.layout()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
        if inner is not None:
            clear(inner)
        taken = layout.takeAt(0)
