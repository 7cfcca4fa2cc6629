"""Memory over the step: a stacked area with the peak named and the limit drawn."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from trainwright.estimate.memory.device_memory import Curve
from trainwright.plan.report import Report
from trainwright.ui import addresses, tokens
from trainwright.ui.charts.axis import Scale, tick_text, ticks
from trainwright.ui.charts.raster import over, stacked
from trainwright.ui.figures import gib, giga, unit_of_memory
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Painted

_BOTTOM, _LEFT, _RIGHT = 8, 30, 12
_SMALL = 0.4
"""A peak below this share of the card gets an axis of its own; the limit then lies above it."""
_COLUMN = 2
"""Pixels that one point of the curve takes."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A curve made ready to paint: levels in GiB at one event for each pixel column."""

    roles: tuple[str, ...]
    tops: NDArray[np.float64]
    """(roles, columns): upper edge of each band."""
    at: NDArray[np.int64]
    """(columns,): the event shown in each column, the fullest of those it stands for."""
    events: int
    peak: int
    """The event of the peak."""

    @property
    def total(self) -> NDArray[np.float64]:
        """Upper edge of the stack, (columns,)."""
        top: NDArray[np.float64] = self.tops[-1]
        return top


def stack(curve: Curve, fixed: tuple[tuple[str, float], ...], columns: int) -> Stack:
    """Reduce a curve to at most ``columns`` points; ``fixed`` bands are as high all through."""
    roles = tuple(sorted((*curve.terms, *(role for role, _ in fixed)), key=addresses.rank))
    outside = sum(size for _, size in fixed)
    total = (curve.live.sum(axis=0) + outside) / giga()
    at = _fullest(total, columns)
    shown = curve.live[:, at]
    bands = dict(zip(curve.terms, shown, strict=True))
    bands |= {role: np.full(len(at), size) for role, size in fixed}
    tops = np.cumsum(np.stack([bands[role] for role in roles]), axis=0) / giga()
    return Stack(roles, tops, at, len(total), int(np.argmax(total)))


def _fullest(total: NDArray[np.float64], columns: int) -> NDArray[np.int64]:
    """Return the index of the fullest event of each column."""
    n = len(total)
    if n <= columns:
        return np.arange(n, dtype=np.int64)
    each = -(-n // columns)
    padded = np.full(-(-n // each) * each, -1.0)
    padded[:n] = total
    rows = padded.reshape(-1, each)
    fullest: NDArray[np.int64] = rows.argmax(axis=1) + each * np.arange(len(rows))
    return fullest


class MemoryChart(Painted):
    """The chart; hover it, or walk it with the arrow keys, to read any moment."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("ui.chart.memory"), parent=parent)
        self.setMinimumHeight(124)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._report: Report | None = None
        self._stack: Stack | None = None
        self._columns = 0
        self._cursor: int | None = None

    def show_report(self, report: Report | None) -> None:
        """Show another report."""
        self._report = report
        self._stack = None
        self._cursor = None
        self.update()
        if report is not None:
            self.setAccessibleDescription(self._spoken_peak(report))

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if self._report is None or self._report.memory.curve.live.size == 0:
            return
        data = self._data()
        limit = self._report.memory.device_total.value / giga()
        peak = float(data.total.max())
        top = peak * 1.5 if peak < _SMALL * limit else max(limit, peak) * 1.06
        low = _cut(data, top)
        x = Scale(0, data.events - 1, _LEFT, w - _RIGHT)
        y = Scale(low, top, h - _BOTTOM, 2)
        self._draw_axis(d, w, h, y, low, top, limit)
        self._draw_bands(d, data, x, y)
        self._draw_floor(d, data, y, w, low)
        self._draw_phases(d, x, y, low, limit, data)
        self._draw_limit(d, y, limit, w)
        self._draw_peak(d, data, x, y, w)
        if self._cursor is not None:
            self._draw_cursor(d, data, x, y, w, h)

    def _data(self) -> Stack:
        columns = max(50, (self.width() - _LEFT - _RIGHT) // _COLUMN)
        report = self._report
        assert report is not None
        if self._stack is None or self._columns != columns:
            parts = [part for part in report.memory.device_used.parts if part.role != "reserved"]
            fixed = tuple((part.role, part.value) for part in parts if part.value > 0)
            self._stack = stack(report.memory.curve, fixed, columns)
            self._columns = columns
        return self._stack

    def _draw_axis(
        self, d: Drawing, w: int, h: int, y: Scale, low: float, top: float, limit: float
    ) -> None:
        for value in ticks(low, top, 4):
            if value > low or low == 0:
                d.rule(_LEFT, round(y(value)), w - _RIGHT, round(y(value)))
            room_below = h - _BOTTOM - y(value) > 8 or value == 0
            if room_below and y(value) >= 7:
                d.write(0, y(value) - 8, _LEFT - 6, 16, tick_text(value),
                        px=tokens.MICRO, colour="text3", align="right")  # fmt: skip

    def _draw_bands(self, d: Drawing, data: Stack, x: Scale, y: Scale) -> None:
        """Draw the stack in pixels of the device: each column shows one event."""
        scale = self.devicePixelRatioF()
        columns = max(1, round((x.end - x.start) * scale))
        events = np.linspace(0, data.events - 1, columns)
        each = -(-data.events // len(data.at))  # events that one of the kept stands for
        shown = np.minimum(events.astype(np.int64) // each, len(data.at) - 1)
        tops = (y.end + (y.high - data.tops[:, shown]) * _per_unit(y)) * scale
        ground = tokens.colour("surface")
        fills = [
            over(
                tokens.colour(addresses.colour(role)),
                0.45 if addresses.hatched(role) else 1.0,
                ground,
            )
            for role in data.roles
        ]
        line = over(tokens.colour("text2"), 0.75, ground)
        picture = stacked(tops, fills, line, max(1, round(y.start * scale)))
        picture.setDevicePixelRatio(scale)
        d.drawImage(QPointF(x.start, 0), picture)

    def _draw_floor(self, d: Drawing, data: Stack, y: Scale, w: int, low: float) -> None:
        """Name the lowest band inside it, and say where the axis is cut."""
        size = float(data.tops[0].max())
        height = y(low) - y(size)
        d.rule(_LEFT, y(low), w - _RIGHT, y(low), "line2")
        if low <= 0 or height < 15:
            return
        name = tr(f"ui.role.{data.roles[0]}")
        text = tr("ui.chart.cut", name=name, size=gib(size * giga()), value=tick_text(low))
        d.write(_LEFT + 8, y(low) - min(height, 18), w - _LEFT - _RIGHT - 16, min(height, 18), text,
                px=tokens.MICRO, weight=500,
                colour=tokens.ink(addresses.colour(data.roles[0])))  # fmt: skip

    def _draw_phases(
        self, d: Drawing, x: Scale, y: Scale, low: float, limit: float, data: Stack
    ) -> None:
        assert self._report is not None
        roof = max(y(limit), y.end)
        top = roof + 2
        floor = y(float(data.tops[0].max()) if low > 0 else low)
        limit_left = (
            self.width() - _RIGHT - tokens.width(self._limit_text(limit, y), tokens.MICRO, 600)
        )
        for name, first, end in _merged(self._report.memory.curve.phases):
            left, right = x(first), x(min(end, data.events - 1))
            if first > 0:
                d.rule(round(left), floor, round(left), roof, "text3", dash=(2, 3))
            text = tr(f"ui.phase.{name}")
            wide = tokens.width(text, tokens.MICRO, 500)
            middle = (left + right) / 2
            under = data.total[(data.at >= first) & (data.at < end)]
            clear = under.size == 0 or y(float(under.max())) > top + 18
            clear = clear and middle + wide / 2 < limit_left - 6
            if wide + 8 < right - left and clear and top > 0:
                plate = tokens.colour("surface")  # a gridline may pass behind
                d.box(middle - wide / 2 - 3, top + 1, wide + 6, 14, plate, radius=3)
                d.write(middle - wide / 2, top, wide + 1, 16, text,
                        px=tokens.MICRO, weight=500, colour="text3")  # fmt: skip

    def _draw_limit(self, d: Drawing, y: Scale, limit: float, w: int) -> None:
        at = y(limit)
        text = self._limit_text(limit, y)
        if limit > y.high:
            at = y.end
        else:
            d.rule(_LEFT, at, w - _RIGHT, at, "text", width=2)
        wide = tokens.width(text, tokens.MICRO, 600)
        self._tag(d, w - _RIGHT - wide - 2, at - 17 if at > 18 else at + 2, text)

    def _limit_text(self, limit: float, y: Scale) -> str:
        id = "ui.chart.limit.above" if limit > y.high else "ui.chart.limit"
        return tr(id, value=gib(limit * giga()))

    def _draw_peak(self, d: Drawing, data: Stack, x: Scale, y: Scale, w: int) -> None:
        assert self._report is not None
        peak = float(data.total.max())
        phase = _phase_at(self._report.memory.curve, data.peak)
        text = tr("ui.chart.peak", value=gib(peak * giga()), phase=tr(f"ui.phase.{phase}"))
        wide = tokens.width(text, tokens.MICRO, 600)
        left = x(data.peak) + 8
        if left + wide > w - _RIGHT - 4:
            left = x(data.peak) - wide - 8
        d.setPen(Qt.PenStyle.NoPen)
        d.setBrush(tokens.colour("text"))
        d.drawEllipse(QPointF(x(data.peak), y(peak)), 2.5, 2.5)
        limit = self._report.memory.device_total.value / giga()
        clear_of_names = y(peak) - 20 > max(y(limit), y.end) + 18
        above = clear_of_names or y(peak) > self.height() - 30
        self._tag(d, left, y(peak) - 20 if above else y(peak) + 2, text)

    def _tag(self, d: Drawing, x: float, y: float, text: str) -> None:
        """Write a label on a plate of the surface, so that it reads on any band."""
        wide = tokens.width(text, tokens.MICRO, 600)
        d.box(x - 3, y, wide + 6, 16, tokens.colour("surface", 0.86), radius=3)
        d.write(x, y, wide + 1, 16, text, px=tokens.MICRO, weight=600)

    def _draw_cursor(self, d: Drawing, data: Stack, x: Scale, y: Scale, w: int, h: int) -> None:
        assert self._cursor is not None
        column = min(self._cursor, len(data.at) - 1)
        event = int(data.at[column])
        px = round(x(event))
        d.rule(px, y(float(data.total[column])), px, h - _BOTTOM, "accent")
        text = self._spoken_at(column)
        wide = tokens.width(text, tokens.MICRO, 600) + 16
        left = min(max(_LEFT, px - wide / 2), w - _RIGHT - wide)
        d.box(left, h - _BOTTOM - 14, wide, 18, "text", radius=tokens.CHIP)
        d.write(left + 8, h - _BOTTOM - 14, wide - 14, 18, text,
                px=tokens.MICRO, weight=600, colour="surface")  # fmt: skip

    def _spoken_at(self, column: int) -> str:
        data = self._data()
        assert self._report is not None
        event = int(data.at[column])
        return tr(
            "ui.chart.moment",
            share=event / max(1, data.events - 1),
            phase=tr(f"ui.phase.{_phase_at(self._report.memory.curve, event)}"),
            value=gib(float(data.total[column]) * giga()),
            unit=unit_of_memory(),
        )

    def _spoken_peak(self, report: Report) -> str:
        peak = gib(report.memory.allocated_peak.value)
        curve = report.memory.curve
        if curve.live.size == 0:
            return ""
        phase = _phase_at(curve, int(curve.live.sum(axis=0).argmax()))
        return tr("ui.chart.peak", value=peak, phase=tr(f"ui.phase.{phase}"))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._move_to(event.position().x())

    def leaveEvent(self, _event: object) -> None:
        self._cursor = None
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        way = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if way is None or self._report is None:
            super().keyPressEvent(event)
            return
        last = len(self._data().at) - 1
        step = max(1, last // 50)
        start = self._cursor if self._cursor is not None else int(np.argmax(self._data().total))
        self._cursor = min(last, max(0, start + way * step))
        self.setAccessibleDescription(self._spoken_at(self._cursor))
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._cursor = None
        super().focusOutEvent(event)

    def _move_to(self, pixel: float) -> None:
        if self._report is None:
            return
        data = self._data()
        x = Scale(0, data.events - 1, _LEFT, self.width() - _RIGHT)
        column = int(np.searchsorted(data.at, x.value(pixel)))
        self._cursor = min(len(data.at) - 1, max(0, column))
        self.update()


def _per_unit(y: Scale) -> float:
    """Return the pixels of one GiB."""
    return (y.start - y.end) / (y.high - y.low)


def _cut(data: Stack, top: float) -> float:
    """Return where the axis starts: 0, or a round value where the lowest band is most of it."""
    floor = float(data.tops[0].min())
    if floor < 0.45 * top:
        return 0.0
    span = top - floor
    return max(0.0, float(np.floor(floor - max(1.0, 0.22 * span))))


def _merged(phases: tuple[tuple[str, int, int], ...]) -> list[tuple[str, int, int]]:
    """Join phases of one name that follow each other."""
    result: list[tuple[str, int, int]] = []
    for name, first, end in phases:
        if result and result[-1][0] == name:
            result[-1] = (name, result[-1][1], end)
        elif end > first:
            result.append((name, first, end))
    return result


def _phase_at(curve: Curve, event: int) -> str:
    return next((name for name, first, end in curve.phases if first <= event < end), "step")
