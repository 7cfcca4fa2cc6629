"""Where the step time goes: a row for each stage, on lanes by what works in it."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QResizeEvent

from trainwright.estimate.time.steptime import Lane
from trainwright.estimate.time.timeline import Bar, Timeline, timeline
from trainwright.explain import Unit
from trainwright.messages.units import percent
from trainwright.plan.report import Report
from trainwright.ui import addresses, tokens
from trainwright.ui.charts.axis import Scale, tick_text, ticks
from trainwright.ui.figures import bare, three
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Door, Painted

_ROW = 19
_GAP = 5
"""Between lanes."""
_AXIS = 19
_BAR = 12
_SHARE = 42
"""Width of the column of shares."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a row, in seconds."""

    start: float
    end: float
    waited: bool
    """Whether the step is longer for it; what runs beside other work is hatched."""


@dataclass(frozen=True, slots=True)
class Row:
    """A stage, or the waiting of the GPU."""

    name: str
    """Of a stage; ``idle``."""
    lane: Lane
    seconds: float
    """That it works, or that is waited."""
    spans: tuple[Span, ...]

    @property
    def idle(self) -> bool:
        """Whether the row shows that nothing works."""
        return self.name == "idle"

    @property
    def beside(self) -> bool:
        """Whether the step is no longer for it at all."""
        return not any(span.waited for span in self.spans)


class Waterfall(Painted):
    """Bars in the order of the step; what runs beside other work is hatched, idling dashed."""

    opened = Signal(str)

    def __init__(self) -> None:
        super().__init__(tr("ui.chart.time"))
        self._shown: object = ()
        self._line: Timeline | None = None
        self._rows: tuple[Row, ...] = ()
        self._doors: list[Door] = []
        self.setMinimumHeight(4 * _ROW + _AXIS)

    def show_report(self, report: Report | None) -> None:
        """Show another report."""
        stages = report.time.stages if report else ()
        if stages and stages is self._shown:
            return  # an edit's first look has the times of the plan before
        self._shown = stages
        self._line = timeline(report.time) if report and stages else None
        self._rows = tuple(rows_of(self._line)) if self._line else ()
        if [door.address for door in self._doors] != [f"stage.{row.name}" for row in self._rows]:
            self._make_doors()
        for door, row in zip(self._doors, self._rows, strict=True):
            door.setAccessibleName(self._spoken(row))
        self.setFixedHeight(int(self._bottom()) + _AXIS)
        self._place_doors()
        self.update()

    @property
    def limiting(self) -> tuple[str, str] | None:
        """Lane and stage that bound the step, in the person's words."""
        found = self._line.limiting if self._line else None
        return found and (tr(f"ui.lane.{found[0]}"), tr(f"ui.stage.{found[1]}"))

    def _spoken(self, row: Row) -> str:
        return tr(
            "ui.chart.time.spoken",
            lane=tr(f"ui.lane.{row.lane}"),
            name=tr(f"ui.stage.{row.name}"),
            value=str(bare(row.seconds, Unit.SECONDS)),
            share=self._share(row),
            beside=tr("ui.chart.hidden") if row.beside else "",
        ).strip()

    def _share(self, row: Row) -> str:
        assert self._line is not None
        share = row.seconds / self._line.step if self._line.step else 0.0
        return "<0.1 %" if 0 < share < 0.0005 else percent(share)

    # Where things stand

    def _top(self, index: int) -> float:
        lanes = [row.lane for row in self._rows[: index + 1]]
        return index * _ROW + _GAP * sum(a != b for a, b in pairwise(lanes))

    def _bottom(self) -> float:
        return self._top(len(self._rows) - 1) + _ROW + 2 if self._rows else 4.0 * _ROW

    def draw(self, d: Drawing, w: int, h: int) -> None:
        line = self._line
        if line is None:
            return
        lanes = 20 + max(
            tokens.width(tr(f"ui.lane.{one}"), tokens.MICRO, 600) for one in line.lanes
        )
        names = [tr(f"ui.stage.{row.name}") for row in self._rows]
        left = lanes + max(tokens.width(name, tokens.LABEL, 600) for name in names) + 10
        unit, size = ("ms", 1e-3) if line.step < 2 else ("s", 1.0)
        values = [_short(row.seconds / size) for row in self._rows]
        room = max(tokens.width(value, tokens.LABEL, 600) for value in values) + _SHARE + 8
        longest = max(span.end for row in self._rows for span in row.spans)
        x = Scale(0, max(longest, line.step) * 1.01, left, w - room - 8)
        self._draw_axis(d, x, h, unit, size)
        for index, (row, name, value) in enumerate(zip(self._rows, names, values, strict=True)):
            y = self._top(index)
            if not index or row.lane != self._rows[index - 1].lane:
                self._draw_lane(d, row.lane, y, w)
            ours = line.limiting is not None and line.limiting[1] == row.name
            ink = "text3" if row.beside else "text"
            d.write(lanes, y, left - lanes, _ROW, name, px=tokens.LABEL,
                    weight=600 if ours else 400, colour="text" if ours else "text2")  # fmt: skip
            for span in row.spans:
                self._draw_span(d, row, span, x, y)
            d.write(w - room, y, room - _SHARE - 4, _ROW, value, px=tokens.LABEL,
                    weight=400 if row.beside else 600 if ours else 500,
                    colour=ink, align="right")  # fmt: skip
            d.write(w - _SHARE, y, _SHARE, _ROW, self._share(row),
                    px=tokens.MICRO, colour="text3", align="right")  # fmt: skip
            self._note(d, row, x, y)

    def _draw_lane(self, d: Drawing, lane: Lane, y: float, w: int) -> None:
        assert self._line is not None
        limits = self._line.limiting is not None and self._line.limiting[0] == lane
        if y:
            d.rule(0, round(y - _GAP / 2) - 1, w, round(y - _GAP / 2) - 1)
        if limits:
            rows = sum(row.lane == lane for row in self._rows)
            d.rule(1, y + 2, 1, y + rows * _ROW - 2, "text", width=2)
        d.write(8, y, 120, _ROW, tr(f"ui.lane.{lane}"), px=tokens.MICRO,
                weight=600 if limits else 500, colour="text" if limits else "text3")  # fmt: skip

    def _draw_axis(self, d: Drawing, x: Scale, h: int, unit: str, size: float) -> None:
        values = ticks(0, x.high / size, 4)
        for value in values:
            px = round(x(value * size))
            d.rule(px, 0, px, h - _AXIS, "line" if value else "line2")
            text = tick_text(value) + (f" {unit}" if value == values[-1] else "")
            d.write(px - 40, h - _AXIS + 2, 80, 16, text,
                    px=tokens.MICRO, colour="text3", align="centre")  # fmt: skip

    def _draw_span(self, d: Drawing, row: Row, span: Span, x: Scale, y: float) -> None:
        left = x(span.start)
        wide = max(2.5, x(span.end) - left)
        top = y + (_ROW - _BAR) / 2
        if row.idle:
            d.box(left, top, wide, _BAR, "sunken", "slack", radius=2.5, dashed=True)
            return
        fill = addresses.colour(row.name)
        if span.waited:
            d.box(left, top, wide, _BAR, fill, radius=2.5)
            return
        d.box(left, top, wide, _BAR, tokens.colour(fill, 0.16), radius=2.5)
        d.hatch(QRectF(left, top, wide, _BAR), tokens.colour(fill, 0.9), step=4, width=1.2)

    def _note(self, d: Drawing, row: Row, x: Scale, y: float) -> None:
        """Say beside a bar what it means, where there is room."""
        if not row.beside:
            return
        text, end = tr("ui.chart.hidden"), x(row.spans[-1].end)
        if end + 10 + tokens.width(text, tokens.MICRO) < x.end:
            d.write(end + 8, y, x.end - end - 8, _ROW, text, px=tokens.MICRO, colour="text3")

    # Doors

    def _make_doors(self) -> None:
        for door in self._doors:
            door.deleteLater()
        self._doors = [Door(f"stage.{row.name}", self) for row in self._rows]
        for door in self._doors:
            door.radius = tokens.CHIP
            door.clicked.connect(self._open)
            door.show()

    def _open(self) -> None:
        door = self.sender()
        if isinstance(door, Door):
            self.opened.emit(door.address)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_doors()

    def _place_doors(self) -> None:
        for index, door in enumerate(self._doors):
            door.setGeometry(-4, int(self._top(index)), self.width() + 8, _ROW)


def rows_of(line: Timeline) -> Iterator[Row]:
    """Yield a row for each stage, lane by lane; the GPU's waiting comes last on its lane."""
    for lane in line.lanes:
        for bar in line.bars:
            if bar.lane == lane:
                yield Row(bar.stage.name, lane, bar.stage.works, _spans(line, bar))
        if lane == "gpu" and line.idle is not None:
            spans = tuple(Span(wait.start, wait.end, waited=True) for wait in line.waits)
            yield Row("idle", lane, line.idle.value, spans)


def _spans(line: Timeline, bar: Bar) -> tuple[Span, ...]:
    """Return a bar in two pieces where the GPU waits for a part of it."""
    if not bar.beside:
        return (Span(bar.start, bar.end, waited=True),)
    mine = [wait for wait in line.waits if wait.stage is bar.stage]
    if not mine or bar.stage.name == "launch":
        return (Span(bar.start, bar.end, waited=bool(mine)),)
    wait = mine[0]
    if wait.end >= bar.end:
        return Span(bar.start, wait.start, waited=False), Span(wait.start, bar.end, waited=True)
    return Span(bar.start, wait.end, waited=True), Span(wait.end, bar.end, waited=False)


def _short(value: float) -> str:
    """Return three figures, no more than three of them after the point."""
    if value and value < 0.001:
        return "<0.001"
    return three(value) if value >= 0.1 else f"{value:.3f}"
