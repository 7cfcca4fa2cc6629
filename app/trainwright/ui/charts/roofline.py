"""The operators of a step against what the GPU's arithmetic and bandwidth allow."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QWidget

from trainwright.estimate.time.roofpoints import RoofPoint, Roofs
from trainwright.messages.units import number, percent
from trainwright.ui import addresses, tokens
from trainwright.ui.charts.axis import Scale
from trainwright.ui.figures import three
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.rooftext import point_name, point_text
from trainwright.ui.widgets.base import Door, Painted

_AXIS, _RIGHT, _TOP, _BOTTOM = 42, 10, 22, 38
"""Room of the labels at each scale's left, and around the whole."""
_STRIP = 0.26
"""Share of the width for operators that only move bytes."""
_LEAST, _MOST = 2.5, 15.0
"""Radii of points."""
_SHOWN = 0.97
"""Of the time: the chart reaches down to what takes so much, the rest lies at its lower edge."""
_DECADES = (1.3, 4.0)
"""Least and most height."""
_FINE = 2.2
"""Decades up to which ticks stand between the powers of ten."""
_REACH = 12
"""Pixels from which a point is pointed at."""


@dataclass(frozen=True, slots=True)
class Spot:
    """An operator as a circle."""

    point: RoofPoint
    centre: QPointF
    radius: float


class RooflineChart(Painted):
    """Log-log; arrow keys walk the operators from the slowest on, Enter opens one."""

    opened = Signal(str)

    def __init__(self) -> None:
        super().__init__(tr("ui.chart.roofline"))
        self.setFixedHeight(252)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self._roofs: Roofs | None = None
        self._spots: tuple[Spot, ...] = ()
        self._frame: _Frame | None = None
        self._here: int | None = None

    def show_roofs(self, roofs: Roofs | None) -> None:
        """Show the operators of another answer."""
        if roofs is self._roofs:
            return
        self._roofs, self._here = roofs, None
        self._lay()
        self.setAccessibleDescription("")
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay()

    def _lay(self) -> None:
        """Find the place of every point."""
        self._frame, self._spots = None, ()
        if self._roofs is None or not self._roofs.points:
            return
        self._frame = frame = _Frame(self._roofs, self.width(), self.height())
        self._spots = tuple(frame.spots())

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if self._frame is None or self._roofs is None:
            return
        self._draw_axes(d, self._frame)
        for spot in self._spots:
            ink = tokens.colour(addresses.colour(addresses.family(spot.point.group)))
            if spot.point.bound == "launch":
                d.setBrush(tokens.colour("surface"))
                d.setPen(QPen(ink, 1.4))
            else:
                fill = tokens.colour(addresses.colour(addresses.family(spot.point.group)), 0.72)
                d.setBrush(fill)
                d.setPen(QPen(tokens.colour("surface"), 1))
            d.drawEllipse(spot.centre, spot.radius, spot.radius)
        self._draw_roofs(d, self._frame)
        if self.hasFocus():
            d.focus_ring(w, h)
        if self._here is not None:
            self._draw_here(d, self._spots[self._here], w)

    def _draw_axes(self, d: Drawing, frame: "_Frame") -> None:
        bottom, right = frame.bottom, self.width() - _RIGHT
        for value in frame.decades_of_rate():
            y = round(frame.y(value))
            d.rule(frame.left, y, right, y)
            d.write(frame.left - _AXIS, y - 8, _AXIS - 6, 16, _short(value), px=tokens.MICRO,
                    colour="text3", align="right")  # fmt: skip
        d.write(frame.left - _AXIS + 2, 3, 80, 14, "FLOP/s", px=tokens.MICRO, colour="text3")
        for value in frame.decades_of_intensity():
            x = frame.x(value)
            d.rule(round(x), bottom, round(x), bottom + 4, "line2")
            d.write(x - 30, bottom + 4, 60, 14, _short(value), px=tokens.MICRO,
                    colour="text3", align="centre")  # fmt: skip
        d.rule(round(frame.left), bottom, round(frame.right), bottom, "line2")
        d.write(frame.left, bottom + 18, frame.right - frame.left, 15, tr("ui.chart.roofline.x"),
                px=tokens.MICRO, colour="text3", align="centre")  # fmt: skip
        if frame.strip:
            self._draw_strip(d, frame)

    def _draw_strip(self, d: Drawing, frame: "_Frame") -> None:
        """Draw the axes of what has no products: shares of the bandwidth."""
        end = _AXIS + frame.strip
        for share in (1.0, 0.5, 0.1, 0.01):
            y = round(frame.y(share * frame.start))
            if y >= frame.bottom - 8:
                break
            d.rule(_AXIS, y, end, y)
            d.write(0, y - 8, _AXIS - 6, 16, f"{share * 100:g} %", px=tokens.MICRO,
                    colour="text3", align="right")  # fmt: skip
        d.rule(_AXIS, frame.bottom, round(end), frame.bottom, "line2")
        d.write(_AXIS, frame.bottom + 4, frame.strip, 15, tr("ui.chart.roofline.size"),
                px=tokens.MICRO, colour="text3", align="centre")  # fmt: skip
        d.write(_AXIS, frame.bottom + 18, frame.strip, 15, tr("ui.chart.roofline.bytes"),
                px=tokens.MICRO, colour="text3", align="centre")  # fmt: skip

    def _draw_roofs(self, d: Drawing, frame: "_Frame") -> None:
        bandwidth = frame.roofs.bandwidth.value
        level = frame.y(frame.start)
        if frame.strip:
            d.rule(_AXIS, round(level), _AXIS + frame.strip, round(level), "text", width=2)
        peaks = [peak.fact.value for peak in frame.roofs.peaks.values()]
        ridge = min(max(peaks) / bandwidth, frame.high) if peaks else frame.high
        if ridge > frame.low:
            d.setPen(QPen(tokens.colour("text"), 2))
            at = QPointF(frame.x(ridge), frame.y(ridge * bandwidth))
            d.drawLine(QPointF(frame.left, level), at)
        text = f"{number(round(bandwidth / 1e9))} GB/s"
        d.write(_AXIS + 2 if frame.strip else frame.left + 4, level - 17, 120, 15, text,
                px=tokens.MICRO, weight=600)  # fmt: skip
        taken: list[float] = []
        for peak in sorted(frame.roofs.peaks.values(), key=lambda one: -one.fact.value):
            self._draw_peak(d, frame, peak.name, peak.fact.value, taken)

    def _draw_peak(
        self, d: Drawing, frame: "_Frame", name: str, value: float, taken: list[float]
    ) -> None:
        """Draw a flat roof, with its name above it, or below where another has the place."""
        y = frame.y(value)
        start = max(frame.left, frame.x(value / frame.roofs.bandwidth.value))
        d.rule(start, y, frame.right, y, "text", width=2 if not taken else 1.2)
        text = f"{name} {three(value / 1e12)} TFLOP/s"
        wide = tokens.width(text, tokens.MICRO, 600)
        top = y - 16 if all(abs(y - 16 - other) > 15 for other in taken) else y + 2
        taken.append(top)
        d.box(frame.right - wide - 4, top, wide + 4, 14, tokens.colour("surface", 0.8), radius=2)
        d.write(frame.right - wide - 2, top - 1, wide + 2, 15, text,
                px=tokens.MICRO, weight=600)  # fmt: skip

    def _draw_here(self, d: Drawing, spot: Spot, w: int) -> None:
        assert self._roofs is not None
        d.setBrush(Qt.BrushStyle.NoBrush)
        d.setPen(QPen(tokens.colour("accent"), 2))
        d.drawEllipse(spot.centre, spot.radius + 3, spot.radius + 3)
        lines = (point_name(spot.point), *point_text(self._roofs, spot.point).split("; "))
        wide = max(tokens.width(line, tokens.MICRO, 600) for line in lines) + 18
        high = 15 * len(lines) + 8
        left = min(max(4.0, spot.centre.x() - wide / 2), w - wide - 4)
        above = spot.centre.y() - spot.radius - high - 8
        top = above if above > 0 else spot.centre.y() + spot.radius + 8
        d.box(left, top, wide, high, "text", radius=tokens.CHIP)
        for row, line in enumerate(lines):
            d.write(left + 9, top + 4 + 15 * row, wide - 16, 15, line, px=tokens.MICRO,
                    weight=600 if not row else 500, colour="surface")  # fmt: skip

    # Pointing

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point_at(self._nearest(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._point_at(self._nearest(event.position()))
        self._open()

    def leaveEvent(self, _event: QEvent) -> None:
        self._point_at(None)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason):
            self._point_at(0 if self._spots else None)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._point_at(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = Qt.Key(event.key())
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and self._spots:
            way = 1 if key == Qt.Key.Key_Right else -1
            here = self._here if self._here is not None else -way
            self._point_at((here + way) % len(self._spots))
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self._open()
        else:
            super().keyPressEvent(event)

    def _open(self) -> None:
        if self._here is not None:
            self.opened.emit(f"operator.{self._spots[self._here].point.address}")

    def _point_at(self, index: int | None) -> None:
        if index == self._here:
            return
        self._here = index
        if index is not None and self._roofs is not None:
            point = self._spots[index].point
            said = f"{point_name(point)}: {point_text(self._roofs, point)}"
            self.setAccessibleDescription(said)
        self.setCursor(
            Qt.CursorShape.ArrowCursor if index is None else Qt.CursorShape.PointingHandCursor
        )
        self.update()

    def _nearest(self, position: QPointF) -> int | None:
        """Return the point under the mouse: the smallest of those that it is within."""

        def distance(spot: Spot) -> float:
            away = spot.centre - position
            return math.hypot(away.x(), away.y())

        within = [i for i, spot in enumerate(self._spots) if distance(spot) <= spot.radius]
        if within:
            return min(within, key=lambda i: self._spots[i].radius)
        near = [i for i, spot in enumerate(self._spots) if distance(spot) < _REACH]
        return min(near, key=lambda i: distance(self._spots[i]), default=None)


class _Frame:
    """The scales of the chart: FLOP a byte to the right, FLOP/s up, both in decades.

    What has no products stands in a strip at the left, by the size of a run. Its roof is the
    bandwidth, at the height where the slope begins, so that the distance below a roof means the
    same everywhere.
    """

    def __init__(self, roofs: Roofs, width: float, height: float) -> None:
        self.roofs = roofs
        self.bottom = height - _BOTTOM
        self.right = width - _RIGHT
        plain = [point for point in roofs.points if not point.flops]
        self.strip = (width - _RIGHT) * _STRIP if plain else 0.0
        """Width for what has no products."""
        self.left = self.strip + 2 * _AXIS + 4 if plain else _AXIS
        self.low, self.high = self._intensities()
        self.start = self.low * roofs.bandwidth.value
        """FLOP/s at which the slope begins: in the strip, the whole bandwidth."""
        highest = max((peak.fact.value for peak in roofs.peaks.values()), default=0.0)
        top = 1.35 * (highest or self.high * roofs.bandwidth.value)
        self._y = Scale(math.log10(self._least(top)), math.log10(top), self.bottom - 4, _TOP)
        self._x = Scale(math.log10(self.low), math.log10(self.high), self.left, self.right)
        sizes = self._sizes(plain)
        self._size = Scale(*sizes, _AXIS + 10, _AXIS + self.strip - 12)

    @staticmethod
    def _sizes(plain: list[RoofPoint]) -> tuple[float, float]:
        """Return the sizes that the strip spans; what is smaller lies at its left end."""
        most = max(map(_size, plain), default=1.0)
        left_over = (1 - _SHOWN) * sum(point.seconds for point in plain)
        for point in sorted(plain, key=_size):
            left_over -= point.seconds
            if left_over < 0:
                return min(_size(point), most - 1), most
        return most - 1, most

    def _intensities(self) -> tuple[float, float]:
        found = [point.intensity for point in self.roofs.points if point.flops and point.bytes]
        peaks = [peak.fact.value for peak in self.roofs.peaks.values()]
        ridges = [peak / self.roofs.bandwidth.value for peak in peaks] or [100.0]
        low, high = min([*found, *ridges]), max([*found, *ridges])
        return max(low / 1.5, high / 1e5), high * 2

    def _least(self, top: float) -> float:
        """Return the lower end of the rates, so that what matters fills the chart."""
        taken, least = 0.0, self.start / 3
        for point in sorted(self.roofs.points, key=self._rate, reverse=True):
            if taken > _SHOWN * self.roofs.seconds:
                break
            taken += point.seconds
            least = min(least, self._rate(point) / 1.5)
        return max(min(least, top / 10 ** _DECADES[0]), top / 10 ** _DECADES[1])

    def _rate(self, point: RoofPoint) -> float:
        return point.rate if point.flops else self.low * point.traffic

    def x(self, intensity: float) -> float:
        """Return the place of an intensity."""
        return self._x(math.log10(max(intensity, self.low)))

    def y(self, rate: float) -> float:
        """Return the height of a rate; what is off the chart lies at its lower edge."""
        return min(self._y(math.log10(max(rate, 1e-9))), self.bottom - 4)

    def spots(self) -> Iterator[Spot]:
        """Yield the points, the slowest first."""
        for point in self.roofs.points:
            x = self.x(point.intensity)
            if not point.flops:
                x = max(self._size(_size(point)), _AXIS + 6)
            share = point.seconds / self.roofs.seconds
            radius = min(max(_LEAST, 52 * math.sqrt(share)), _MOST)
            yield Spot(point, QPointF(x, self.y(self._rate(point))), radius)

    def decades_of_rate(self) -> Iterator[float]:
        """Yield round FLOP/s."""
        fine = self._y.high - self._y.low < _FINE
        for power in range(math.floor(self._y.low), math.floor(self._y.high) + 1):
            for factor in (1, 2, 5) if fine else (1,):
                if self._y.low <= math.log10(factor) + power <= self._y.high:
                    yield factor * 10.0**power

    def decades_of_intensity(self) -> Iterator[float]:
        """Yield round FLOP a byte."""
        for power in range(math.ceil(self._x.low), math.floor(self._x.high) + 1):
            yield 10.0**power


def _size(point: RoofPoint) -> float:
    """Return the decades of bytes that a run moves."""
    return math.log10(point.size)


def _short(value: float) -> str:
    """Return 10 T, 100 G, 0.1."""
    for size, suffix in ((1e15, " P"), (1e12, " T"), (1e9, " G"), (1e6, " M")):
        if value >= size:
            return f"{value / size:g}{suffix}"
    return number(value) if value >= 1 else f"{value:g}"


class FamilyKey(Door):
    """A family's colour, name and share; opens its derivation."""

    radius = tokens.CHIP

    def __init__(self, family: str, share: str, parent: QWidget) -> None:
        super().__init__(f"family.{family}", parent)
        self._family, self._share = family, share
        self._name = tr(f"ui.family.{family}")
        self.setAccessibleName(f"{self._name}: {share}")

    def sizeHint(self) -> QSize:
        share = tokens.width(self._share, tokens.LABEL, 600)
        return QSize(int(tokens.width(self._name, tokens.LABEL) + share) + 32, 20)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.swatch(3, 5, addresses.colour(self._family))
        used = d.write(18, 0, w - 18, h, self._name, px=tokens.LABEL, colour="text2")
        d.write(18 + used + 5, 0, w - 23 - used, h, self._share, px=tokens.LABEL, weight=600)


class FamilyKeys(QWidget):
    """The families of operators by their share of the time, in as many rows as they need."""

    opened = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("ui.chart.roofline.keys"))
        self._roofs: Roofs | None = None
        self._keys: list[FamilyKey] = []

    def show_roofs(self, roofs: Roofs | None) -> None:
        """Show the families of another answer."""
        if roofs is self._roofs:
            return
        self._roofs = roofs
        for key in self._keys:
            key.hide()
            key.deleteLater()
        self._keys = []
        for family, seconds in _families(roofs).items() if roofs else ():
            assert roofs is not None
            key = FamilyKey(family, percent(seconds / roofs.seconds), self)
            key.clicked.connect(self._open)
            key.show()
            self._keys.append(key)
        self._place()

    def _open(self) -> None:
        key = self.sender()
        if isinstance(key, Door):
            self.opened.emit(key.address)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        x = y = 0
        for key in self._keys:
            size = key.sizeHint()
            if x and x + size.width() > self.width():
                x, y = 0, y + size.height() + 2
            key.setGeometry(QRectF(x, y, size.width(), size.height()).toRect())
            x += size.width() + 8
        self.setFixedHeight(y + 20)


def _families(roofs: Roofs) -> dict[str, float]:
    """Return seconds by family, the slowest first; what takes next to nothing is left out."""
    sums: dict[str, float] = {}
    for group, seconds in roofs.classes.items():
        family = addresses.family(group)
        sums[family] = sums.get(family, 0.0) + seconds
    shown = {name: value for name, value in sums.items() if value >= 0.002 * roofs.seconds}
    return dict(sorted(shown.items(), key=lambda item: -item[1]))
