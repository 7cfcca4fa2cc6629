"""The key figures in one strip; each is a door to its derivation."""

from dataclasses import dataclass, replace

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy

from trainwright.estimate.steptime import TimeEstimate
from trainwright.explain import Quantity
from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.ui import tokens
from trainwright.ui.figures import Figure, figure, sentence, span
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Door, Surface


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

    def __init__(self, *, first: bool) -> None:
        super().__init__()
        self._first = first
        self._shown: Shown | None = None
        self.setFixedHeight(78)
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
            return QSize(80, 78)
        shown = self._shown
        value = tokens.width(shown.figure.value, tokens.FIGURE, 600)
        unit = tokens.width(shown.figure.unit, tokens.BODY, 500) + 6 if shown.figure.unit else 0
        title = tokens.width(shown.title, tokens.LABEL, 500)
        below = tokens.width(shown.below, tokens.MICRO)
        return QSize(int(max(value + unit, title, below)) + 26, 78)

    sizeHint = minimumSizeHint

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if not self._first:
            d.rule(0, 14, 0, h - 14)
        if self._shown is None:
            return
        shown, room = self._shown, w - 22
        d.write(16, 8, room, 18, shown.title, px=tokens.LABEL, weight=500, colour="text2")
        used = d.write(16, 25, room, 30, shown.figure.value, px=tokens.FIGURE, weight=600)
        d.write(16 + used + 6, 27, room - used - 6, 28, shown.figure.unit,
                weight=500, colour="text2")  # fmt: skip
        d.write(16, 53, room, 18, shown.below, px=tokens.MICRO, colour="text3")


class FigureStrip(Surface):
    """Throughput, time of a step, time of the run, and what limits."""

    opened = Signal(str)

    def __init__(self) -> None:
        super().__init__(padding=(1, 0, 1, 0), gap=0)
        self._time: TimeEstimate | None = None
        self.setFixedHeight(78)
        layout = QHBoxLayout()
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        self.column.addLayout(layout)
        self._doors = [FigureDoor(first=index == 0) for index in range(4)]
        for door in self._doors:
            layout.addWidget(door, 1)
            door.clicked.connect(self._open)

    def _open(self) -> None:
        door = self.sender()
        if isinstance(door, Door) and door.address:
            self.opened.emit(door.address)

    def show_report(self, report: Report | None, *, trains: bool = True) -> None:
        """Show another report, or that there is none."""
        time = report.time if report else None
        if time is not None and time is self._time:
            return  # an edit's first look has the times of the plan before
        self._time = time
        titles = _TITLES if trains else _SERVING
        shown = (
            (_shown if trains else _served)(report)
            if report
            else [_nothing(title) for title in titles]
        )
        for door, figure_ in zip(self._doors, shown, strict=True):
            door.show_figure(figure_)


_TITLES = ("ui.figure.throughput", "ui.figure.step", "ui.figure.run", "ui.figure.bottleneck")
_SERVING = ("ui.figure.requests", "ui.figure.tokens", "ui.figure.batch", "ui.figure.bottleneck")


def _nothing(title: str, reason: Text = "") -> Shown:
    name = tr(title)
    return Shown(name, Figure("—"), say(reason), "", f"{name}: {say(reason) or '—'}")


def _shown(report: Report) -> list[Shown]:
    time = report.time
    step = time.step_seconds
    return [
        _of("ui.figure.throughput", time.samples_per_second, "time.samples", _rate_below(report)),
        _of("ui.figure.step", step, "time.step", _span(step)),
        _of("ui.figure.run", time.run_seconds, "time.run", _span(time.run_seconds))
        if time.run_seconds is not None
        else _nothing("ui.figure.run", Message.of("ui.figure.run.missing")),
        _bottleneck(report),
    ]


def _served(report: Report) -> list[Shown]:
    """Return the figures of serving: there are requests and tokens, no steps and no run."""
    time = report.time
    rate = time.samples_per_second
    requests = replace(
        _of("ui.figure.requests", rate, "time.samples", _span_of_requests(rate)),
        figure=Figure(figure(rate).value, tr("ui.unit.requests-per-second")),
    )
    return [
        requests,
        _of(
            "ui.figure.tokens", time.tokens_per_second, "time.tokens", _span(time.tokens_per_second)
        )
        if time.tokens_per_second is not None
        else _nothing("ui.figure.tokens"),
        _of("ui.figure.batch", time.step_seconds, "time.step", _span(time.step_seconds)),
        _bottleneck(report),
    ]


def _span_of_requests(rate: Quantity) -> str:
    return _span(rate).replace(tr("ui.unit.samples-per-second"), tr("ui.unit.requests-per-second"))


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
