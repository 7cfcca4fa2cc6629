"""The key figures in a strip of one row or two; each is a door to its derivation."""

from dataclasses import dataclass
from itertools import zip_longest

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QSizePolicy

from trainwright.estimate.time.roofpoints import Roofs
from trainwright.estimate.time.steptime import TimeEstimate
from trainwright.estimate.time.timeline import timeline
from trainwright.explain import Quantity
from trainwright.messages import Message
from trainwright.messages.units import percent
from trainwright.plan.report import Report
from trainwright.ui import tokens
from trainwright.ui.figures import Figure, figure, sentence, span
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Door, Surface

_CELL = 68
"""Height of a figure."""
_FEW = 5
"""Figures from which there may be two rows."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one place of the strip shows."""

    title: str
    figure: Figure
    below: str
    address: str
    spoken: str


class FigureDoor(Door):
    """Title, large value, and one line below."""

    def __init__(self) -> None:
        super().__init__()
        self.first = True
        """Whether it stands at the left end of its row."""
        self._shown: Shown | None = None
        self.setFixedHeight(_CELL)
        self.setSizePolicy(QSizePolicy.Policy.MinimumExpanding, QSizePolicy.Policy.Fixed)

    def show_figure(self, shown: Shown) -> None:
        """Show another figure."""
        self._shown = shown
        self.address = shown.address
        self.setEnabled(bool(shown.address))
        self.setAccessibleName(shown.spoken)
        self.updateGeometry()
        self.update()

    def minimumSizeHint(self) -> QSize:
        if self._shown is None:
            return QSize(80, _CELL)
        shown = self._shown
        value = tokens.width(shown.figure.value, tokens.FIGURE, 600)
        unit = tokens.width(shown.figure.unit, tokens.BODY, 500) + 6 if shown.figure.unit else 0
        title = tokens.width(shown.title, tokens.LABEL, 500)
        below = tokens.width(shown.below, tokens.MICRO)
        return QSize(int(max(value + unit, title, below)) + 26, _CELL)

    sizeHint = minimumSizeHint

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if not self.first:
            d.rule(0, 12, 0, h - 10)
        if self._shown is None:
            return
        shown, room = self._shown, w - 22
        d.write(16, 6, room, 18, shown.title, px=tokens.LABEL, weight=500, colour="text2")
        used = d.write(16, 22, room, 30, shown.figure.value, px=tokens.FIGURE, weight=600)
        d.write(16 + used + 6, 24, room - used - 6, 28, shown.figure.unit,
                weight=500, colour="text2")  # fmt: skip
        d.write(16, 49, room, 18, shown.below, px=tokens.MICRO, colour="text3")


class FigureStrip(Surface):
    """Throughput, times of a step, an epoch and the run, how busy the GPU is, what limits."""

    opened = Signal(str)

    def __init__(self) -> None:
        super().__init__(padding=(1, 2, 1, 2), gap=0)
        self._known: tuple[TimeEstimate | None, Roofs | None, bool] | None = None
        self._grid = QGridLayout()
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(0)
        self.column.addLayout(self._grid)
        self._doors = [FigureDoor() for _ in _TITLES]
        self._columns = 0
        for door in self._doors:
            door.setParent(self)
            door.clicked.connect(self._open)

    def _open(self) -> None:
        door = self.sender()
        if isinstance(door, Door) and door.address:
            self.opened.emit(door.address)

    def show_report(
        self, report: Report | None, roofs: Roofs | None = None, *, trains: bool = True
    ) -> None:
        """Show another report."""
        known = (report.time if report else None, roofs, trains)
        if known == self._known and report is not None:
            return  # an edit's first look has the times of the plan before
        self._known = known
        titles = _TITLES if trains else _SERVING
        shown = [_nothing(title) for title in titles]
        if report is not None:
            shown = _shown(report, roofs) if trains else _served(report)
        for door, figure_ in zip(self._doors, shown, strict=False):
            door.show_figure(figure_)
        for door in self._doors[len(shown) :]:
            door.setAccessibleName("")
            door.hide()
        self._place(len(shown))

    def minimumSizeHint(self) -> QSize:
        wide = [door.minimumSizeHint().width() for door in self._doors if not door.isHidden()]
        half = -(-len(wide) // 2)
        rows = (wide,) if len(wide) < _FEW else (wide[:half], wide[half:])
        columns = zip_longest(*rows, fillvalue=0)
        return QSize(sum(max(column) for column in columns) + 2, _CELL * len(rows) + 4)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place(sum(not door.isHidden() for door in self._doors))

    def _place(self, count: int) -> None:
        """Lay the figures in one row where there is room, else in two."""
        wide = sum(door.minimumSizeHint().width() for door in self._doors[:count])
        columns = count if wide + 2 <= self.width() or count < _FEW else -(-count // 2)
        shown = [door for door in self._doors[:count] if not door.isHidden()]
        if columns == self._columns and len(shown) == count:
            return
        self._columns = columns
        for index in range(len(self._doors)):
            self._grid.setColumnStretch(index, 1 if index < columns else 0)
        for index, door in enumerate(self._doors[:count]):
            door.first = not index % columns
            self._grid.removeWidget(door)
            self._grid.addWidget(door, index // columns, index % columns)
            door.show()
        self.setFixedHeight(_CELL * -(-count // columns) + 4)


_TITLES = (
    *("ui.figure.throughput", "ui.figure.step", "ui.figure.bottleneck"),
    *("ui.figure.epoch", "ui.figure.run", "ui.figure.busy"),
)
_SERVING = ("ui.figure.requests", "ui.figure.tokens", "ui.figure.batch", "ui.figure.bottleneck")


def _nothing(title: str, reason: Text = "") -> Shown:
    name, value = tr(title), tr("ui.figure.absent") if reason else "—"
    return Shown(name, Figure(value), say(reason), "", f"{name}: {value} {say(reason)}".strip())


def _shown(report: Report, roofs: Roofs | None) -> list[Shown]:
    time = report.time
    step, rate = time.step_seconds, time.samples_per_second
    if step is None or rate is None:
        return [_nothing(title, Message.of("ui.figure.unpredicted")) for title in _TITLES]
    return [
        _of("ui.figure.throughput", rate, "time.samples", _rate_below(report)),
        _of("ui.figure.step", step, "time.step", _span(step)),
        _bottleneck(report),
        _whole("ui.figure.epoch", time.epoch_seconds, "time.epoch"),
        _whole("ui.figure.run", time.run_seconds, "time.run"),
        _busy(report, roofs),
    ]


def _whole(title: str, quantity: Quantity | None, address: str) -> Shown:
    if quantity is None:
        return _nothing(title, Message.of("ui.figure.run.missing"))
    return _of(title, quantity, address, _span(quantity))


def _busy(report: Report, roofs: Roofs | None) -> Shown:
    """Return the share of the step in which the GPU computes, and what it reaches over all."""
    line = timeline(report.time)
    title, idle = tr("ui.figure.busy"), line.idle.value if line.idle else 0.0
    value = f"~{percent(1 - idle / line.step)}" if line.step else "—"
    below = ""
    if roofs is not None and roofs.work and line.step:
        below = tr("ui.figure.busy.below", share=percent(roofs.work / line.step))
    address = "stage.idle" if line.idle else "time.step"
    return Shown(title, Figure(value), below, address, f"{title}: {value} {below}".strip())


def _served(report: Report) -> list[Shown]:
    """Return the figures of serving: there are requests and tokens, no steps and no run."""
    time = report.time
    step, rate = time.step_seconds, time.samples_per_second
    if step is None or rate is None:
        return [_nothing(title, Message.of("ui.figure.unpredicted")) for title in _SERVING]
    return [
        _of("ui.figure.requests", rate, "time.samples", _span(rate)),
        _of(
            "ui.figure.tokens", time.tokens_per_second, "time.tokens", _span(time.tokens_per_second)
        )
        if time.tokens_per_second is not None
        else _nothing("ui.figure.tokens"),
        _of("ui.figure.batch", step, "time.step", _span(step)),
        _bottleneck(report),
    ]


def _bottleneck(report: Report) -> Shown:
    name = report.time.bottleneck
    title, limits = tr("ui.figure.bottleneck"), tr(f"ui.bottleneck.{name}")
    below = tr(f"ui.bottleneck.{name}.below")
    return Shown(title, Figure(limits), below, "time.step", f"{title}: {limits}")


def _of(title: str, quantity: Quantity, address: str, below: str) -> Shown:
    name = tr(title)
    return Shown(
        name, figure(quantity), below, address, sentence(quantity.named(Message.of(title)))
    )


def _rate_below(report: Report) -> str:
    tokens_rate = report.time.tokens_per_second
    if tokens_rate is not None:
        return str(figure(tokens_rate))
    return _span(report.time.samples_per_second)


def _span(quantity: Quantity | None) -> str:
    if quantity is None or quantity.interval is None:
        return ""
    return span(quantity.interval.low, quantity.interval.high, quantity.unit)
