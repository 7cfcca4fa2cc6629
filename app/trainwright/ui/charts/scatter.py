"""Memory, or money, against time: every choice a point, the best joined by a step line."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QPointF, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPen

from trainwright.ui import tokens
from trainwright.ui.charts.axis import Scale, tick_text, ticks
from trainwright.ui.figures import unit_of_memory
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Painted

_LEFT, _BOTTOM, _TOP, _RIGHT = 44, 36, 10, 16
_KEY = 26
"""Height of the line that says what the areas mean."""
_NAME = 18
"""Height of the line that names the time axis."""
LEAST, MOST = 3.0, 10.0
"""Radii of sized points; the area grows with what it stands for."""


SPOKEN = 12
"""Points that the chart's description tells, so that a reader gets through it; assumed."""


@dataclass(frozen=True, slots=True)
class Point:
    """One choice: gigabytes against seconds, and what to call it."""

    memory_gib: float
    seconds: float
    name: str
    fits: bool
    best: bool = False
    """Whether no other point is better in both."""
    yours: bool = False
    size: float = 0.0
    """What its area stands for, where the chart has such."""


@dataclass(frozen=True, slots=True)
class Axes:
    """What the chart writes at its axes, by message id."""

    title: str = "ui.chart.choices"
    across: str = "ui.chart.choices.x"
    up: str = ""
    """Where the time axis has a name of its own; else the heading names it."""
    cut: str = "ui.chart.choices.cut"
    limit: Callable[[float], str] = lambda value: tr("ui.chart.limit", value=f"{value:.1f}")
    row: Callable[[Point], str] = lambda point: (
        f"{point.memory_gib:.2f} {unit_of_memory()}, {point.seconds:.3g} s"
    )
    yours: str = "ui.chart.yours"
    sized: str = ""
    """What the areas of points stand for; empty where they are all alike."""
    spoken: Callable[[Point], str] = lambda point: point.name
    """A point in words: beside the pointer, and for those who do not see it."""
    every: bool = False
    """Whether arrow keys walk all points, not the best ones alone."""


class Scatter(Painted):
    """The chart; arrow keys walk the best points, Enter picks one."""

    picked = Signal(int)

    def __init__(self, axes: Axes | None = None) -> None:
        self._axes = axes or Axes()
        super().__init__(tr(self._axes.title))
        self.setMinimumHeight(220)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setMouseTracking(True)
        self._points: Sequence[Point] = ()
        self._limit = 0.0
        self._here: int | None = None
        self._largest = 0.0

    def relabel(self, axes: Axes) -> None:
        """Write other words at the axes."""
        self._axes = axes
        self.update()

    def show_points(self, points: Sequence[Point], limit_gib: float) -> None:
        """Show another set of choices."""
        self._points, self._limit, self._here = points, limit_gib, None
        self._largest = max((point.size for point in points), default=0.0)
        told = [self._axes.spoken(points[index]) for index in self._walked()]
        self.setAccessibleDescription("; ".join(told[:SPOKEN]))
        self.update()

    def rows(self) -> list[tuple[str, str]]:
        """Return the points as (name, memory and time), for copying."""
        return [(point.name, self._axes.row(point)) for point in self._points]

    def _scales(self) -> tuple[Scale, Scale]:
        memories = [p.memory_gib for p in self._points] + [self._limit or 0]
        seconds = [p.seconds for p in self._points]
        x = Scale(0, max(memories) * 1.06, _LEFT, self.width() - _RIGHT)
        low, high = _cut(min(seconds), max(seconds))
        return x, Scale(low, high, self.height() - _BOTTOM, self._top)

    @property
    def _top(self) -> int:
        return _TOP + (_KEY if self._axes.sized else 0) + (_NAME if self._axes.up else 0)

    def _radius(self, size: float, plain: float) -> float:
        """Return the radius of a point; ``plain`` where all are alike."""
        if not self._axes.sized or not self._largest:
            return plain
        return max(LEAST, MOST * math.sqrt(size / self._largest))

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if not self._points:
            return
        x, y = self._scales()
        self._draw_axes(d, x, y, w, h)
        if self._axes.sized and self._largest:
            self._draw_key(d, w)
        for index, point in enumerate(self._points):
            if not point.best and not point.yours:
                shade = tokens.colour("text3", 0.55 if point.fits else 0.25)
                d.setPen(Qt.PenStyle.NoPen)
                d.setBrush(shade)
                radius = self._radius(point.size, 2.8)
                d.drawEllipse(QPointF(x(point.memory_gib), y(point.seconds)), radius, radius)
            if index == self._here:
                d.setBrush(Qt.BrushStyle.NoBrush)
                d.setPen(QPen(tokens.colour("accent"), 2))
                radius = self._radius(point.size, 4) + 4
                d.drawEllipse(QPointF(x(point.memory_gib), y(point.seconds)), radius, radius)
        self._draw_front(d, x, y)
        self._draw_yours(d, x, y, w)
        if self._here is not None:
            self._draw_name(d, self._points[self._here], x, y, w)

    def _draw_key(self, d: Drawing, w: int) -> None:
        """Write what the areas stand for, with a few of them."""
        values = ticks(0, self._largest, 4)[1:4]
        right = float(w - _RIGHT)
        d.setBrush(Qt.BrushStyle.NoBrush)
        for value in reversed(values):
            text = tick_text(value)
            wide = tokens.width(text, tokens.MICRO)
            d.write(right - wide, 3, wide + 1, 16, text, px=tokens.MICRO, colour="text2")
            radius = self._radius(value, MOST)
            right -= wide + 4 + radius
            d.setPen(QPen(tokens.colour("text3"), 1.2))
            d.setBrush(Qt.BrushStyle.NoBrush)
            d.drawEllipse(QPointF(right, 11), radius, radius)
            right -= radius + 10
        text = tr(self._axes.sized)
        wide = tokens.width(text, tokens.MICRO)
        d.write(right - wide, 3, wide + 1, 16, text, px=tokens.MICRO, colour="text3")

    def _draw_axes(self, d: Drawing, x: Scale, y: Scale, w: int, h: int) -> None:
        at = x(self._limit)
        top = self._top
        beyond = round(w - _RIGHT - at)
        d.fillRect(round(at), top, beyond, h - _BOTTOM - top, tokens.colour("canvas"))
        for value in ticks(y.low, y.high, 5):
            d.rule(_LEFT, round(y(value)), w - _RIGHT, round(y(value)))
            d.write(0, y(value) - 8, _LEFT - 8, 16, tick_text(value),
                    px=tokens.MICRO, colour="text3", align="right")  # fmt: skip
        if self._axes.up:
            d.write(0, top - _NAME - 4, w, 16, tr(self._axes.up),
                    px=tokens.MICRO, colour="text3")  # fmt: skip
        for value in ticks(0, x.high, 6):
            d.write(x(value) - 30, h - _BOTTOM + 3, 60, 16, tick_text(value),
                    px=tokens.MICRO, colour="text3", align="centre")  # fmt: skip
        d.write(_LEFT, h - 17, w - _LEFT - _RIGHT, 16, tr(self._axes.across, unit=unit_of_memory()),
                px=tokens.MICRO, colour="text3", align="centre")  # fmt: skip
        if y.low > 0:
            self._draw_cut(d, tr(self._axes.cut, value=tick_text(y.low)), at, w, h)
        d.rule(round(at), top, round(at), h - _BOTTOM, "text", width=2)
        text = self._axes.limit(self._limit)
        wide = tokens.width(text, tokens.MICRO, 600)
        left = at + 6 if at + wide + 8 < w else at - wide - 6
        d.write(left, top, wide + 1, 16, text, px=tokens.MICRO, weight=600)

    def _draw_cut(self, d: Drawing, text: str, at: float, w: int, h: int) -> None:
        """Write where the time axis begins, beside the line of the limit at ``at``."""
        left, wide = float(_LEFT + 6), tokens.width(text, tokens.MICRO)
        if left < at < left + wide + 6 and at + 6 + wide < w:
            left = at + 6
        d.write(left, h - _BOTTOM - 18, w - left, 16, text, px=tokens.MICRO,
                colour="text3")  # fmt: skip

    def _draw_front(self, d: Drawing, x: Scale, y: Scale) -> None:
        front = sorted((p for p in self._points if p.best), key=lambda p: p.memory_gib)
        d.setPen(QPen(tokens.colour("accent"), 1.6))
        for first, second in pairwise(front):
            corner = QPointF(x(second.memory_gib), y(first.seconds))
            d.drawLine(QPointF(x(first.memory_gib), y(first.seconds)), corner)
            d.drawLine(corner, QPointF(x(second.memory_gib), y(second.seconds)))
        d.setPen(QPen(tokens.colour("surface"), 1))
        d.setBrush(tokens.colour("accent"))
        for point in front:
            radius = self._radius(point.size, 4)
            d.drawEllipse(QPointF(x(point.memory_gib), y(point.seconds)), radius, radius)

    def _draw_yours(self, d: Drawing, x: Scale, y: Scale, w: int) -> None:
        for point in self._points:
            if not point.yours:
                continue
            centre = QPointF(x(point.memory_gib), y(point.seconds))
            d.setPen(QPen(tokens.colour("surface"), 1.5))
            d.setBrush(tokens.colour("tightFill"))
            radius = self._radius(point.size, 6.5)
            d.drawEllipse(centre, radius, radius)
            text = tr(self._axes.yours)
            wide = tokens.width(text, tokens.LABEL, 600)
            left = centre.x() + radius + 5.5
            if left + wide > w - _RIGHT:
                left = centre.x() - wide - radius - 5.5
            plate = tokens.colour("surface", 0.86)
            top = (
                centre.y() - 18 if centre.y() > self._top + 38 else centre.y() + 6
            )  # the limit's name is there
            d.box(left - 3, top, wide + 6, 16, plate, radius=3)
            d.write(left, top, wide + 1, 16, text, px=tokens.LABEL, weight=600)

    def _draw_name(self, d: Drawing, point: Point, x: Scale, y: Scale, w: int) -> None:
        text = self._axes.spoken(point)
        wide = tokens.width(text, tokens.MICRO, 600) + 16
        left = max(0, min(max(_LEFT, x(point.memory_gib) - wide / 2), w - _RIGHT - wide))
        top = y(point.seconds) - 26 - self._radius(point.size, 4)
        top = top if top > 0 else y(point.seconds) + 12
        d.box(left, top, wide, 20, "text", radius=tokens.CHIP)
        d.write(left + 8, top, wide - 14, 20, text,
                px=tokens.MICRO, weight=600, colour="surface")  # fmt: skip

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(self._nearest(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        nearest = self._nearest(event.position())
        if nearest is not None:
            self.picked.emit(nearest)

    def leaveEvent(self, _event: object) -> None:
        self._point_at(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        best = self._walked()
        key = Qt.Key(event.key())
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and best:
            way = 1 if key == Qt.Key.Key_Right else -1
            at = best.index(self._here) + way if self._here in best else 0
            self._point_at(best[at % len(best)])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Space) and self._here is not None:
            self.picked.emit(self._here)
        else:
            super().keyPressEvent(event)

    def _walked(self) -> list[int]:
        """Return the points that arrow keys visit, from left to right."""
        known = (i for i, p in enumerate(self._points) if p.best or self._axes.every)
        return sorted(known, key=lambda i: self._points[i].memory_gib)

    def _point_at(self, index: int | None) -> None:
        if index != self._here:
            self._here = index
            if index is not None:
                self.setAccessibleDescription(self._axes.spoken(self._points[index]))
            self.update()

    def _nearest(self, position: QPointF) -> int | None:
        if not self._points:
            return None
        x, y = self._scales()

        def distance(index: int) -> float:
            point = self._points[index]
            return (x(point.memory_gib) - position.x()) ** 2 + (
                y(point.seconds) - position.y()
            ) ** 2

        nearest = min(range(len(self._points)), key=distance)
        return nearest if distance(nearest) < 20**2 else None


def _cut(least: float, most: float) -> tuple[float, float]:
    """Return the ends of the time axis: it starts at 0 only where the points reach down to it."""
    spread = max(most - least, 0.02 * most)
    high = most + 0.12 * spread
    if least < 0.35 * most:
        return 0.0, most * 1.1
    values = ticks(0, spread, 4)
    step = values[1] if len(values) > 1 else spread
    low = step * int((least - 0.25 * spread) / step)
    return max(0.0, low), high
