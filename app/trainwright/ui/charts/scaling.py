"""How the rate of training grows with the GPUs, beside what it would be were nothing lost."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPen, QPolygonF

from trainwright.estimate.time.scaling import ScalingPoint
from trainwright.messages.units import percent
from trainwright.ui import tokens
from trainwright.ui.charts.axis import Scale, tick_text, ticks
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Painted

_LEFT, _RIGHT, _TOP, _BOTTOM = 36, 96, 14, 20
_TICKS = 4
_WHISKER = 4
"""Half the width of the ends of a range."""


class ScalingChart(Painted):
    """A circle with its range for each number of GPUs, against one; what is ideal, dashed."""

    def __init__(self) -> None:
        super().__init__(tr("ui.chart.scaling"), height=150)
        self._points: tuple[ScalingPoint, ...] = ()

    def show_points(self, points: tuple[ScalingPoint, ...]) -> None:
        """Show another curve."""
        if points == self._points:
            return
        self._points = points
        if points:
            last = points[-1]
            share = percent(last.efficiency.value)
            factor = tick_text(round(1 + last.gain, 2))
            spoken = tr("ui.chart.scaling.spoken", gpus=last.gpus, factor=factor, share=share)
            self.setAccessibleName(spoken)
        self.update()

    def rows(self) -> Sequence[tuple[str, str]]:
        """Return what is drawn, as rows to copy."""
        return [
            (
                tr("ui.chart.scaling.gpus", gpus=point.gpus),
                f"{tick_text(round(1 + point.gain, 3))}× ({percent(point.efficiency.value)})"
                + ("" if point.fits else f" – {tr('cli.scaling.too-few')}"),
            )
            for point in self._points
        ]

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if not self._points:
            return
        most = max(point.gpus for point in self._points)
        x = Scale(0, max(len(self._points) - 1, 1), _LEFT + 16, w - _RIGHT)
        y = Scale(0, most * 1.05, h - _BOTTOM, _TOP)
        self._draw_axes(d, x, y, w)
        self._draw_line(d, [point.gpus for point in self._points], x, y, ideal=True)
        self._draw_line(d, [1 + point.gain for point in self._points], x, y)
        for index, point in enumerate(self._points):
            self._draw_point(d, point, x(index), y)
        last = self._points[-1]
        label = f"{tick_text(round(1 + last.gain, 2))}× · {percent(last.efficiency.value)}"
        end = round(y(1 + last.gain))
        d.write(w - _RIGHT + 10, end - 8, _RIGHT - 10, 16, label, px=tokens.LABEL, weight=600)

    def _draw_axes(self, d: Drawing, x: Scale, y: Scale, w: int) -> None:
        for value in ticks(0, y.high, _TICKS):
            line = round(y(value))
            d.rule(_LEFT, line, w - _RIGHT, line, "line" if value else "line2")
            d.write(0, line - 8, _LEFT - 6, 16, f"{tick_text(value)}×",
                    px=tokens.MICRO, colour="text3", align="right")  # fmt: skip
        for index, point in enumerate(self._points):
            d.write(x(index) - 24, y.start + 4, 48, 14, str(point.gpus),
                    px=tokens.MICRO, colour="text3" if point.fits else "no",
                    align="centre")  # fmt: skip
        d.write(w - _RIGHT + 10, y.start + 4, _RIGHT - 10, 14, "GPU", px=tokens.MICRO,
                colour="text3")  # fmt: skip

    def _draw_line(
        self, d: Drawing, values: Sequence[float], x: Scale, y: Scale, *, ideal: bool = False
    ) -> None:
        pen = QPen(tokens.colour("text3" if ideal else "accent"), 1.2 if ideal else 2)
        if ideal:
            pen.setStyle(Qt.PenStyle.DashLine)
        d.setPen(pen)
        d.setBrush(Qt.BrushStyle.NoBrush)
        line = [QPointF(x(index), y(value)) for index, value in enumerate(values)]
        d.drawPolyline(QPolygonF(line))

    def _draw_point(self, d: Drawing, point: ScalingPoint, at: float, y: Scale) -> None:
        low, high = (y(1 + gain) for gain in point.gains)
        d.setPen(QPen(tokens.colour("accent"), 1.2))
        if low != high:
            d.drawLine(QPointF(at, low), QPointF(at, high))
            for end in (low, high):
                d.drawLine(QPointF(at - _WHISKER, end), QPointF(at + _WHISKER, end))
        d.setPen(QPen(tokens.colour("surface"), 1))
        d.setBrush(tokens.colour("accent"))
        d.drawEllipse(QPointF(at, y(1 + point.gain)), 4, 4)
