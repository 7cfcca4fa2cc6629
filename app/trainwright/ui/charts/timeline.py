"""Readings over time: a line of means over the band between least and most, and what they were."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPen, QPolygonF

from trainwright.messages.units import duration
from trainwright.probe.monitor.figures import MISSING, formed
from trainwright.probe.monitor.history import BINS, Course, Summary
from trainwright.probe.monitor.readings import Unit
from trainwright.ui import tokens
from trainwright.ui.charts.axis import Scale, ticks
from trainwright.ui.i18n import Text, language, say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Painted

_PLOT = 116
_ROW = 20
_BELOW = 22
"""Height of the time axis."""
_TICK_S = {60: 15, 600: 120, 3600: 900, 6 * 3600: 7200, 24 * 3600: 6 * 3600}
_GAP_S = 2.5
"""Readings further apart than this are not joined: at the slowest pace one was left out."""
_FIGURES = ("now", "least", "mean", "most")
_FIGURE_WIDTH = 88


@dataclass(frozen=True, slots=True)
class Line:
    """One series as it is drawn."""

    name: Text
    colour: str
    course: Course
    summary: Summary | None


class Timeline(Painted):
    """A chart over a span up to now, with a row of figures for each line."""

    def __init__(self, name: Text) -> None:
        super().__init__(name, height=_PLOT + _BELOW)
        self._lines: Sequence[Line] = ()
        self._span = 60
        self._unit: Unit = "share"
        self._ceiling: float | None = None
        self._nothing = ""
        self.setMinimumWidth(420)

    def show_lines(
        self,
        lines: Sequence[Line],
        span_s: int,
        unit: Unit,
        ceiling: float | None,
        nothing: Text = "",
    ) -> None:
        """Show series over a span; ``nothing`` says why there is none."""
        self._lines, self._span, self._unit, self._ceiling = lines, span_s, unit, ceiling
        self._nothing = say(nothing)
        rows = _ROW * (len(lines) + 1) + tokens.XS if lines else 0
        self.setFixedHeight(_PLOT + _BELOW + rows)
        self.setAccessibleDescription("; ".join(self._spoken(line) for line in lines))
        self.update()

    def _spoken(self, line: Line) -> str:
        figures = zip(_FIGURES, self._figures(line), strict=True)
        shown = ", ".join(f"{tr(f'monitor.table.{key}')} {text}" for key, text in figures)
        return f"{say(line.name)}: {shown}"

    def _figures(self, line: Line) -> list[str]:
        found = line.summary
        if found is None:
            return [MISSING] * len(_FIGURES)
        numbers = (found.now, found.low, found.mean, found.high)
        return [MISSING if n != n else formed(n, self._unit) for n in numbers]

    def draw(self, d: Drawing, w: int, h: int) -> None:
        top = self._top()
        marks = [(value, formed(value, self._unit)) for value in (0.0, top / 2, top)]
        left = max(tokens.width(text, tokens.MICRO) for _, text in marks) + 10
        y = Scale(0, top, _PLOT, 8)
        x = Scale(-self._span, 0, left, w - 10)
        for value, text in marks:
            d.rule(left, round(y(value)), w - 10, round(y(value)), "line" if value else "line2")
            d.write(0, y(value) - 8, left - 6, 16, text, px=tokens.MICRO, colour="text3",
                    align="right")  # fmt: skip
        self._draw_times(d, x, w)
        if not self._lines:
            self._draw_nothing(d, left, w - 10 - left)
            return
        for line in reversed(self._lines):
            self._draw_line(d, line, x, y)
        self._draw_rows(d, w)

    def _draw_nothing(self, d: Drawing, x: float, wide: float) -> None:
        """Say why there is no line, between the axis and the middle."""
        lines = tokens.wrapped(self._nothing, wide - 24, tokens.LABEL)
        for number, line in enumerate(lines):
            y = 0.72 * _PLOT - 8 * len(lines) + 16 * number
            d.write(x, y, wide, 16, line, px=tokens.LABEL, colour="text2", align="centre")

    def _top(self) -> float:
        if self._ceiling is not None:
            return self._ceiling
        highs = [line.course.high for line in self._lines]
        known = [float(np.nanmax(high)) for high in highs if not np.isnan(high).all()]
        most = max(known, default=0.0)
        if most <= 0:
            return 1.0 if self._unit == "share" else float(1 << 20)
        step = (ticks(0, most * 1.1, 2) or [0.0, most])[-1]
        return max(step, most * 1.05)

    def _draw_times(self, d: Drawing, x: Scale, w: int) -> None:
        every = _TICK_S[self._span]
        for age in range(0, self._span + 1, every):
            at = x(-age)
            d.rule(round(at), _PLOT, round(at), _PLOT + 4, "line2")
            text = f"−{duration(age, language())}" if age else tr("ui.monitor.now")
            wide = tokens.width(text, tokens.MICRO)
            place = min(max(at - wide / 2, 0), w - wide - 1)
            d.write(place, _PLOT + 5, wide + 1, 15, text, px=tokens.MICRO, colour="text3")

    def _draw_line(self, d: Drawing, line: Line, x: Scale, y: Scale) -> None:
        for part in _parts(line.course, max(_GAP_S, 2.5 * self._span / BINS)):
            xs = [x(-float(age)) for age in line.course.ages_s[part]]
            lows, means, highs = (
                [y(min(float(value), y.high)) for value in values[part]]
                for values in (line.course.low, line.course.mean, line.course.high)
            )
            d.setPen(Qt.PenStyle.NoPen)
            d.setBrush(tokens.colour(line.colour, 0.2))
            around = [*zip(xs, highs, strict=True), *reversed(list(zip(xs, lows, strict=True)))]
            d.drawPolygon(QPolygonF([QPointF(*point) for point in around]))
            d.setBrush(Qt.BrushStyle.NoBrush)
            d.setPen(QPen(tokens.colour(line.colour), 1.6))
            points = [QPointF(*point) for point in zip(xs, means, strict=True)]
            if len(points) == 1:  # a reading on its own is seen too
                points.append(points[0] + QPointF(1.5, 0))
            d.drawPolyline(QPolygonF(points))

    def _draw_rows(self, d: Drawing, w: int) -> None:
        y = _PLOT + _BELOW
        wide = min(_FIGURE_WIDTH, (w - 190) // len(_FIGURES))
        for place, key in enumerate(_FIGURES):
            right = w - (len(_FIGURES) - place) * wide
            d.write(right, y, wide - 8, _ROW, tr(f"monitor.table.{key}"),
                    px=tokens.MICRO, colour="text3", align="right")  # fmt: skip
        for line in self._lines:
            y += _ROW
            d.swatch(4, y + 5, line.colour)
            d.write(20, y, w - 4 * wide - 24, _ROW, say(line.name), px=tokens.LABEL)
            for place, text in enumerate(self._figures(line)):
                right = w - (len(_FIGURES) - place) * wide
                d.write(right, y, wide - 8, _ROW, text, px=tokens.LABEL,
                        weight=600 if place == 0 else 400, align="right")  # fmt: skip


def _parts(course: Course, gap_s: float) -> Iterator[np.ndarray]:
    """Yield the indices of stretches without a gap."""
    filled = np.flatnonzero(~np.isnan(course.mean))
    if len(filled):
        apart = -np.diff(course.ages_s[filled])
        yield from np.split(filled, np.flatnonzero(apart > gap_s) + 1)


def draw_spark(
    d: Drawing, course: Course, box: tuple[float, float, float, float], colour: str, top: float
) -> None:
    """Draw the last minute of a series without axes into (x, y, width, height)."""
    left, upper, wide, high = box
    x, y = Scale(-60, 0, left, left + wide), Scale(0, top or 1.0, upper + high, upper + 1)
    d.rule(left, upper + high, left + wide, upper + high, "line2")
    for part in _parts(course, _GAP_S):
        points = [
            QPointF(x(-float(age)), y(min(float(value), y.high)))
            for age, value in zip(course.ages_s[part], course.mean[part], strict=True)
        ]
        floor = [QPointF(points[-1].x(), upper + high), QPointF(points[0].x(), upper + high)]
        d.setPen(Qt.PenStyle.NoPen)
        d.setBrush(tokens.colour(colour, 0.15))
        d.drawPolygon(QPolygonF([*points, *floor]))
        d.setBrush(Qt.BrushStyle.NoBrush)
        d.setPen(QPen(tokens.colour(colour), 1.4))
        d.drawPolyline(QPolygonF(points))
