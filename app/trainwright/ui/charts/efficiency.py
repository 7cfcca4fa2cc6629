"""How near operators of a class come to their roof, by the size of a run."""

import math
from collections.abc import Iterator

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPen, QPolygonF

from trainwright.estimate.time.roofpoints import RoofPoint, Roofs
from trainwright.messages.units import percent
from trainwright.ui import addresses, tokens
from trainwright.ui.charts.axis import Scale
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Heading, Painted, Surface

_LEFT, _RIGHT, _TOP, _BOTTOM = 42, 8, 6, 20
_MOST_TICKS = 3


class EfficiencyChart(Painted):
    """A circle for each operator, the explained one marked; the curve of its class beside them."""

    def __init__(self) -> None:
        super().__init__(tr("ui.chart.efficiency"), height=124)
        self._points: tuple[RoofPoint, ...] = ()
        self._curve: tuple[tuple[float, float], ...] = ()
        self._here: RoofPoint | None = None
        self._roofs: Roofs | None = None

    def show_operators(
        self, roofs: Roofs, points: tuple[RoofPoint, ...], here: RoofPoint | None
    ) -> None:
        """Show other operators of one class."""
        self._roofs, self._points, self._here = roofs, points, here
        group = (here or points[0]).group
        self._curve = roofs.curves.get(group, ())
        best = max(roofs.share(point) for point in points)
        count, share = len(points), percent(best)
        self.setAccessibleName(tr("ui.chart.efficiency.spoken", operators=count, share=share))
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if self._roofs is None or not self._points:
            return
        x, y = self._scales(w, h)
        self._draw_axes(d, x, y, w)
        shown = [(at, share) for at, share in self._curve if x.low <= math.log10(at) <= x.high]
        d.setBrush(Qt.BrushStyle.NoBrush)
        d.setPen(QPen(tokens.colour("text2"), 1.6))
        line = [QPointF(x(math.log10(at)), y(min(share, 1.0))) for at, share in shown]
        d.drawPolyline(QPolygonF(line))
        for point in reversed(self._points):
            self._draw_point(d, self._roofs, point, x, y)

    def _draw_point(self, d: Drawing, roofs: Roofs, point: RoofPoint, x: Scale, y: Scale) -> None:
        centre = QPointF(x(math.log10(point.size)), y(min(roofs.share(point), 1.0)))
        d.setPen(QPen(tokens.colour("surface"), 1))
        d.setBrush(tokens.colour(addresses.colour(addresses.family(point.group)), 0.72))
        d.drawEllipse(centre, 4, 4)
        if self._here is not None and point.address == self._here.address:
            d.setBrush(Qt.BrushStyle.NoBrush)
            d.setPen(QPen(tokens.colour("accent"), 2))
            d.drawEllipse(centre, 7, 7)

    def _scales(self, w: int, h: int) -> tuple[Scale, Scale]:
        sizes = [math.log10(point.size) for point in self._points]
        middle, reach = (min(sizes) + max(sizes)) / 2, max(max(sizes) - min(sizes) + 0.6, 2.4) / 2
        x = Scale(middle - reach, middle + reach, _LEFT, w - _RIGHT)
        return x, Scale(0, 1, h - _BOTTOM, _TOP)

    def _draw_axes(self, d: Drawing, x: Scale, y: Scale, w: int) -> None:
        for share in (0.0, 0.5, 1.0):
            line = round(y(share))
            d.rule(_LEFT, line, w - _RIGHT, line, "line" if share else "line2")
            d.write(0, line - 8, _LEFT - 6, 16, f"{share:.0%}".replace("%", " %"),
                    px=tokens.MICRO, colour="text3", align="right")  # fmt: skip
        unit = "FLOP" if self._points[0].flops else "B"
        for power in _powers(x):
            at = x(power)
            d.rule(round(at), round(y(0)), round(at), round(y(0)) + 4, "line2")
            left = min(max(at - 32, 0), w - 64)
            d.write(left, y(0) + 4, 64, 15, f"{_short(power)}{unit}", px=tokens.MICRO,
                    colour="text3", align="centre")  # fmt: skip


def _powers(x: Scale) -> Iterator[int]:
    """Yield powers of ten within the scale, few enough for their labels."""
    low, high = math.ceil(x.low), math.floor(x.high)
    step = max(1, math.ceil((high - low + 1) / _MOST_TICKS))
    yield from range(low, high + 1, step)


def _short(power: int) -> str:
    """Return ``10 G`` of 10."""
    prefixes = ("", "k", "M", "G", "T", "P")
    thousands = min(max(power // 3, 0), len(prefixes) - 1)
    return f"{10 ** (power - 3 * thousands):g} {prefixes[thousands]}"


class EfficiencySection(Surface):
    """The chart with its heading; hidden where no operator is explained."""

    def __init__(self) -> None:
        super().__init__("none", padding=(0, 8, 0, 0), gap=2)
        self._chart = EfficiencyChart()
        self._heading = Heading(tr("ui.chart.efficiency"))
        self.column.addWidget(self._heading)
        self.column.addWidget(self._chart)
        self.hide()

    def show_explained(self, roofs: Roofs | None, address: str) -> None:
        """Show the operators that an explained operator or family is among."""
        points, here = _explained(roofs, address) if roofs is not None else ((), None)
        self.setVisible(bool(points))
        if roofs is not None and points:
            what = "flop" if points[0].flops else "bytes"
            self._heading.annotate(tr(f"ui.chart.efficiency.{what}"))
            self._chart.show_operators(roofs, points, here)


def _explained(roofs: Roofs, address: str) -> tuple[tuple[RoofPoint, ...], RoofPoint | None]:
    """Return the operators of the class at an address, and the one that is explained."""
    area, _, name = address.partition(".")
    here = roofs.at(name) if area == "operator" else None
    group = here.group if here is not None else ""
    if area == "family":
        group = next((one for one in roofs.classes if addresses.family(one) == name), "")
    alike = [point for point in roofs.points if point.group == group and point.bytes]
    products = bool((here or alike[0]).flops) if alike else False
    return tuple(point for point in alike if bool(point.flops) == products), here
