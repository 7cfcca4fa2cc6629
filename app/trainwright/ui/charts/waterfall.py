"""Where the step time goes: one bar for each stage, in the order they run."""

from PySide6.QtCore import QRectF, Signal
from PySide6.QtGui import QResizeEvent

from trainwright.estimate.steptime import Stage
from trainwright.plan.report import Report
from trainwright.ui import doors, tokens
from trainwright.ui.charts.axis import Scale, tick_text, ticks
from trainwright.ui.figures import sentence, three
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Door, Painted

_ROW = 17
_AXIS = 19


class Waterfall(Painted):
    """Bars that start where the last one ended; hidden stages are hatched and start at 0."""

    opened = Signal(str)

    def __init__(self) -> None:
        super().__init__(tr("ui.chart.time"))
        self._stages: tuple[Stage, ...] = ()
        self._step = 0.0
        self._doors: list[Door] = []
        self.setMinimumHeight(5 * _ROW + _AXIS)

    def show_report(self, report: Report | None) -> None:
        """Show another report."""
        stages = report.time.stages if report else ()
        if stages and stages is self._stages:
            return  # an edit's first look has the times of the plan before
        self._step = report.time.step_seconds.value if report else 0.0
        if [s.name for s in stages] != [s.name for s in self._stages]:
            self._make_doors(stages)
        self._stages = stages
        for door, stage in zip(self._doors, stages, strict=True):
            door.setAccessibleName(sentence(stage.seconds))
        self.setFixedHeight(max(4, len(stages)) * _ROW + _AXIS)
        self._place_doors()
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if not self._stages:
            return
        names = [tr(f"ui.stage.{stage.name}") for stage in self._stages]
        left = max(tokens.width(name, tokens.LABEL) for name in names) + 12
        unit, size = ("ms", 1e-3) if self._step < 2 else ("s", 1.0)
        ends, longest = _spans(self._stages)
        x = Scale(0, max(longest, self._step) * 1.01, left, w - 56)
        self._draw_axis(d, x, h, unit, size)
        for index, (stage, name) in enumerate(zip(self._stages, names, strict=True)):
            y = index * _ROW
            d.write(0, y, left, _ROW, name, px=tokens.LABEL, colour="text2")
            self._draw_bar(d, stage, x, ends[index], y)
            d.write(w - 54, y, 54, _ROW, _short(stage.seconds.value / size),
                    px=tokens.LABEL, weight=400 if stage.hidden else 500, align="right",
                    colour="text3" if stage.hidden else "text")  # fmt: skip

    def _draw_axis(self, d: Drawing, x: Scale, h: int, unit: str, size: float) -> None:
        values = ticks(0, x.high / size, 5)
        for value in values:
            px = round(x(value * size))
            d.rule(px, 0, px, h - _AXIS, "line" if value else "line2")
            text = tick_text(value) + (f" {unit}" if value == values[-1] else "")
            d.write(px - 40, h - _AXIS + 2, 80, 16, text,
                    px=tokens.MICRO, colour="text3", align="centre")  # fmt: skip

    def _draw_bar(self, d: Drawing, stage: Stage, x: Scale, start: float, y: float) -> None:
        left = x(start)
        wide = max(2.5, x(start + stage.seconds.value) - left)
        fill = doors.colour(stage.name)
        top = y + (_ROW - 12) / 2
        if not stage.hidden:
            d.box(left, top, wide, 12, fill, radius=2.5)
            return
        d.box(left, top, wide, 12, tokens.colour(fill, 0.16), radius=2.5)
        d.hatch(QRectF(left, top, wide, 12), tokens.colour(fill, 0.9), step=4, width=1.2)
        text = tr("ui.chart.hidden")
        if left + wide + 10 + tokens.width(text, tokens.MICRO) < x.end:
            d.write(left + wide + 8, y, x.end - left - wide - 8, _ROW, text,
                    px=tokens.MICRO, colour="text3")  # fmt: skip

    def _make_doors(self, stages: tuple[Stage, ...]) -> None:
        for door in self._doors:
            door.deleteLater()
        self._doors = [Door(f"stage.{stage.name}", self) for stage in stages]
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
            door.setGeometry(-4, index * _ROW, self.width() + 4, _ROW)


def _short(value: float) -> str:
    """Return three figures, no more than three of them after the point."""
    if value and value < 0.001:
        return "<0.001"
    return three(value) if value >= 0.1 else f"{value:.3f}"


def _spans(stages: tuple[Stage, ...]) -> tuple[list[float], float]:
    """Return the start of each stage, and the end of the latest."""
    starts: list[float] = []
    shown, hidden, longest = 0.0, 0.0, 0.0
    for stage in stages:
        start = hidden if stage.hidden else shown
        starts.append(start)
        end = start + stage.seconds.value
        if stage.hidden:
            hidden = end
        else:
            shown = end
        longest = max(longest, end)
    return starts, longest
