"""What the tensors of each pipeline stage take at its peak, against what they may take."""

from collections.abc import Sequence

from trainwright.explain import Quantity
from trainwright.plan.report import Report
from trainwright.ui import tokens
from trainwright.ui.charts.axis import Scale
from trainwright.ui.figures import gib
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Painted

_ROW, _BAR, _TOP = 22, 12, 16
_FIGURE = 56
_GAP = 8


class StageBars(Painted):
    """A bar for each stage, in the order of the layers; a line where memory ends."""

    def __init__(self) -> None:
        super().__init__(tr("ui.chart.stages"), height=_TOP)
        self._stages: tuple[Quantity, ...] = ()
        self._limit = 0.0

    def show_report(self, report: Report | None) -> None:
        """Show the stages of another answer."""
        self._stages = report.stages if report is not None else ()
        if report is not None:
            memory = report.memory
            self._limit = memory.allocated_peak.value + memory.free.value
        self.setFixedHeight(_TOP + _ROW * len(self._stages))
        self.setAccessibleDescription("; ".join(f"{name} {value}" for name, value in self.rows()))
        self.update()

    def rows(self) -> Sequence[tuple[str, str]]:
        """Return what is drawn, as rows to copy."""
        return [(say(stage.name), f"~{gib(stage.value)}") for stage in self._stages]

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if not self._stages:
            return
        most = max(self._limit, *(stage.value for stage in self._stages))
        rows = self.rows()
        names = int(max(tokens.width(name, tokens.LABEL) for name, _ in rows)) + 2
        x = Scale(0, most, names + _GAP, w - _FIGURE)
        for row, (name, figure) in enumerate(rows):
            value, top = self._stages[row].value, _TOP + row * _ROW
            over = value > self._limit
            d.write(0, top, names, _ROW, name, px=tokens.LABEL, colour="text2")
            width = max(1.0, x(value) - x.start)
            bar = top + (_ROW - _BAR) / 2
            d.box(x.start, bar, width, _BAR, "no" if over else "weights", radius=3)
            d.write(w - _FIGURE + _GAP, top, _FIGURE - _GAP, _ROW, figure, px=tokens.LABEL,
                    weight=600, colour="no" if over else "text", align="right")  # fmt: skip
        end = round(x(self._limit))
        d.rule(end, _TOP - 2, end, h, "text", width=2)
        text = tr("ui.chart.stages.limit", value=gib(self._limit))
        wide = tokens.width(text, tokens.MICRO, 600) + 2
        d.write(min(end - wide / 2, w - wide), 0, wide, _TOP - 2, text, px=tokens.MICRO,
                weight=600)  # fmt: skip
