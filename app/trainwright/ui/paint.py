"""The drawing vocabulary: text, boxes, hairlines, hatches, dimension lines, marks.

A margin is drawn as on a workshop drawing: ticks, arrows, the value in the gap.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF, QStaticText, QTransform
from PySide6.QtWidgets import QWidget

from trainwright.explain import Kind
from trainwright.ui import icons, tokens

Align = Literal["left", "centre", "right"]

_ALIGN = {
    "left": Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
    "centre": Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignVCenter,
    "right": Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
}

STATE_ICON = {
    "fits": "check-circle-fill",
    "tight": "warning-fill",
    "no": "x-circle-fill",
    "na": "question-fill",
}


@dataclass(frozen=True, slots=True)
class Run:
    """A text as it was painted; kept only while ``runs`` is a list."""

    widget: QWidget
    text: str
    rect: QRectF
    """Where the ink is, in the widget's coordinates."""
    elided: bool


runs: list[Run] | None = None
"""Set to a list to record every painted text: the tests look for clipping there."""


class Drawing(QPainter):
    """A painter on a widget that speaks in tokens; use as a context manager."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.TextAntialiasing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def write(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        text: str,
        *,
        px: int = tokens.BODY,
        weight: int = 400,
        colour: str | QColor = "text",
        align: Align = "left",
        mono: bool = False,
    ) -> float:
        """Draw one line of text in a box, cut with an ellipsis when it is wider.

        Returns:
            The width of the ink.
        """
        wide = tokens.width(text, px, weight, mono)
        elided = wide > w + 1
        shown = text
        if elided:
            shown = tokens.metrics(px, weight, mono).elidedText(
                text, Qt.TextElideMode.ElideRight, w + 1
            )
            wide = tokens.width(shown, px, weight, mono)
        self.setFont(tokens.font(px, weight, mono))
        self.setPen(_colour(colour))
        left = {"left": x, "centre": x + (w - wide) / 2, "right": x + w - wide}[align]
        laid = laid_out(shown, px, weight, mono)
        self.drawStaticText(QPointF(left, y + (h - laid.size().height()) / 2), laid)
        if runs is not None and text:
            rect = QRectF(left, y + (h - px) / 2, wide, px)
            runs.append(Run(self._widget, text, self.transform().mapRect(rect), elided))
        return wide

    def box(
        self,
        x: float,
        y: float,
        w: float,
        h: float,
        fill: str | QColor | None = None,
        line: str | QColor | None = None,
        *,
        radius: float = tokens.CONTROL,
        width: float = 1.0,
        dashed: bool = False,
    ) -> None:
        """Draw a rounded rectangle; the edge lies inside it."""
        self.setBrush(_colour(fill) if fill is not None else Qt.BrushStyle.NoBrush)
        if line is None:
            self.setPen(Qt.PenStyle.NoPen)
            self.drawRoundedRect(QRectF(x, y, w, h), radius, radius)
            return
        pen = QPen(_colour(line), width)
        if dashed:
            pen.setDashPattern([3, 2.5])
        self.setPen(pen)
        half = width / 2
        self.drawRoundedRect(QRectF(x + half, y + half, w - width, h - width), radius, radius)

    def rule(
        self,
        x1: float,
        y1: float,
        x2: float,
        y2: float,
        colour: str | QColor = "line",
        *,
        width: float = 1.0,
        dash: Sequence[float] = (),
    ) -> None:
        """Draw a line; hairlines sit in the middle of a pixel."""
        pen = QPen(_colour(colour), width)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if dash:
            pen.setDashPattern(list(dash))
        self.setPen(pen)
        shift = 0.5 if width == 1.0 else 0.0
        dx, dy = (shift if x1 == x2 else 0.0), (shift if y1 == y2 else 0.0)
        self.drawLine(QPointF(x1 + dx, y1 + dy), QPointF(x2 + dx, y2 + dy))

    def icon(
        self, name: str, x: float, y: float, size: int, colour: str | QColor = "text2"
    ) -> None:
        """Draw an icon with its box's upper left corner at (x, y)."""
        draw_icon(self, name, x, y, size, colour)

    def hatch(
        self, rect: QRectF, colour: str | QColor, *, step: float = 5, width: float = 1.0
    ) -> None:
        """Hatch a rectangle: what is free, hidden, transient or slack."""
        self.save()
        self.setClipRect(rect, Qt.ClipOperation.IntersectClip)
        self.setPen(QPen(_colour(colour), width))
        reach = rect.height()
        count = int((rect.width() + reach) / step) + 1
        starts = [rect.left() - reach + step * number for number in range(count)]
        top, bottom = rect.top(), rect.bottom()
        self.drawLines([QLineF(x, bottom, x + reach, top) for x in starts])
        self.restore()

    def swatch(self, x: float, y: float, fill: str, *, hatched: bool = False) -> None:
        """Draw the small square that ties a name to a colour."""
        self.box(x, y, 10, 10, fill, radius=2.5)
        if hatched:
            self.hatch(QRectF(x, y, 10, 10), tokens.colour("surface", 0.7), step=4)

    def dimension(
        self,
        x1: float,
        x2: float,
        y: float,
        text: str,
        colour: str | QColor = "text2",
        *,
        px: int = tokens.LABEL,
        weight: int = 600,
        behind: str = "surface",
    ) -> None:
        """Draw a dimension line with its value in the gap, or above when there is no room."""
        ink = _colour(colour)
        for x in (x1, x2):
            self.rule(x, y - 4.5, x, y + 4.5, ink)
        self.rule(x1, y, x2, y, ink)
        if x2 - x1 > 14:
            self._arrows(x1, x2, y, ink)
        wide = tokens.width(text, px, weight)
        if not text or wide + 16 > x2 - x1:
            return
        middle = (x1 + x2) / 2
        self.setPen(Qt.PenStyle.NoPen)
        self.setBrush(_colour(behind))
        self.drawRect(QRectF(middle - wide / 2 - 6, y - 7, wide + 12, 15))
        self.write(middle - wide / 2, y - 8, wide + 2, 17, text, px=px, weight=weight, colour=ink)

    def _arrows(self, x1: float, x2: float, y: float, ink: QColor) -> None:
        self.setPen(Qt.PenStyle.NoPen)
        self.setBrush(ink)
        for x, way in ((x1, 1), (x2, -1)):
            tip = QPointF(x + 0.5, y + 0.5)
            side = x + 0.5 + 5 * way
            self.drawPolygon(QPolygonF([tip, QPointF(side, y - 2), QPointF(side, y + 3)]))

    def whisker(self, low: float, high: float, y: float) -> None:
        """Draw an interval over a bar, cased so that it reads on any colour."""
        for width, colour, more in ((4.5, "surface", 1.0), (1.8, "text", 0.0)):
            self.rule(low - more, y, high + more, y, colour, width=width)
            for x in (low, high):
                self.rule(x, y - 7 - more, x, y + 7 + more, colour, width=width)

    def mark(self, x: float, cy: float, kind: Kind, colour: str | None = None) -> None:
        """Draw how a value is known; see ``draw_mark``."""
        draw_mark(self, x, cy, kind, colour)

    def focus_ring(self, w: float, h: float, radius: float = tokens.CONTROL) -> None:
        """Draw the focus ring at the inner edge of a widget."""
        self.box(0, 0, w, h, None, "accent", radius=radius, width=2)

    def field(self, w: float, h: float, *, free: bool, focus: bool, hover: bool = False) -> None:
        """Draw the face of a control: solid when fixed, dashed and washed when free."""
        if free:
            self.box(0, 0, w, h, "accentWash", "accentLine", dashed=True)
        else:
            light = tokens.theme() == "light"
            face = "surface" if light and not hover else "sunken"
            self.box(0, 0, w, h, face, "line2")
        if focus:
            self.focus_ring(w, h)


_MARK_COLOUR = {
    Kind.ESTIMATED: "text3",
    Kind.MEASURED: "fits",
    Kind.QUOTED: "accent",
    Kind.ASSUMED: "tight",
    Kind.YOURS: "text2",
}


def draw_icon(
    painter: QPainter, name: str, x: float, y: float, size: int, colour: str | QColor
) -> None:
    """Draw an icon with any painter; item delegates are given one."""
    painter.setFont(icons.font(size))
    painter.setPen(_colour(colour))
    box = QRectF(x - size, y - size, size * 3, size * 3)
    painter.drawText(box, _ALIGN["centre"], icons.glyph(name))


def draw_mark(
    painter: QPainter, x: float, cy: float, kind: Kind, colour: str | None = None
) -> None:
    """Draw how a value is known; five shapes, so that grey printing keeps them apart."""
    ink = _colour(colour or _MARK_COLOUR[kind])
    painter.setPen(QPen(ink, 1.5))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    match kind:
        case Kind.ESTIMATED:
            path = QPainterPath(QPointF(x, cy + 1.5))
            first, second = QPointF(x + 3, cy - 5), QPointF(x + 6, cy + 5)
            path.cubicTo(first, second, QPointF(x + 9, cy - 1.5))
            painter.drawPath(path)
        case Kind.MEASURED:
            painter.setBrush(ink)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.drawEllipse(QPointF(x + 4.5, cy), 4, 4)
        case Kind.QUOTED:
            draw_icon(painter, "quotes-fill", x - 2, cy - 6.5, 13, ink)
        case Kind.ASSUMED:
            tips = [(0, -4.0), (4.0, 0), (0, 4.0), (-4.0, 0)]
            painter.drawPolygon(QPolygonF([QPointF(x + 4.5 + a, cy + b) for a, b in tips]))
        case Kind.YOURS:
            draw_icon(painter, "lock-simple-fill", x - 1.5, cy - 6.5, 12, ink)


@lru_cache(maxsize=1024)
def laid_out(text: str, px: int, weight: int, mono: bool) -> QStaticText:
    """Return a text with its glyphs placed: shaping costs ten times what painting them does."""
    laid = QStaticText(text)
    laid.setTextFormat(Qt.TextFormat.PlainText)
    laid.setPerformanceHint(QStaticText.PerformanceHint.AggressiveCaching)
    laid.prepare(QTransform(), tokens.font(px, weight, mono))
    return laid


def _colour(value: str | QColor) -> QColor:
    return tokens.colour(value) if isinstance(value, str) else value
