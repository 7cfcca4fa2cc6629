"""Monitor: this computer live, by device; charts, events, alerts, a log and a picture."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, Qt, QTimer
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from trainwright import saving
from trainwright.messages import Message, UserError
from trainwright.probe.monitor.events import Event
from trainwright.probe.monitor.figures import device_name, reading_name
from trainwright.probe.monitor.history import SPANS_S, Course
from trainwright.probe.monitor.readings import GPU, HOST, Reading, Series
from trainwright.probe.monitor.sampler import awake_s, elapsed_s
from trainwright.probe.reading import Missing
from trainwright.probe.sample import GpuSample, Sample
from trainwright.ui import filedialogs, tokens
from trainwright.ui.charts.timeline import Line, Timeline
from trainwright.ui.i18n import tr
from trainwright.ui.live import Live
from trainwright.ui.screens.devicecards import COLOURS, GpuCard, HostCard, colour_of
from trainwright.ui.widgets.alertlist import AlertList
from trainwright.ui.widgets.base import SCROLL_BAR, Heading, Label, Scroll, Surface, clear, row
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo, Segmented
from trainwright.ui.widgets.notice import Strip

if TYPE_CHECKING:
    from trainwright.probe.monitor.monitor import Monitor

_REPAINT_MS = 200
"""Charts follow at most five times a second: a line a pixel wide shows no more."""
_SILENT_S = 5.0
"""Without a sample for so long, the screen says so. Assumed: longer than the driver's patience."""
_EVENTS = 40
"""Events that are listed; the log holds all."""
_CARD = 314
"""Least width of a card, with its gap."""
_SIDE = 320


# Long: a method for each command and each group of the screen.
class MonitorScreen(QWidget):
    """Readings left, what happened and what to be told of right."""

    def __init__(self, live: Live) -> None:
        super().__init__()
        self._live = live
        self._monitor: Monitor = live.monitor
        self._paused = False
        self._chosen = False
        """Whether the chart of the GPUs shows a reading that somebody or something chose."""
        self._shown_events: tuple[Event, ...] | None = None
        self._gpu_cards: dict[int, GpuCard] = {}
        self._heard_at = awake_s()
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        line.addWidget(self._readings(), 1)
        line.addWidget(self._side())
        self._repaint = QTimer(self, singleShot=True, interval=_REPAINT_MS)
        self._repaint.timeout.connect(self.refresh)
        self._watchdog = QTimer(self, interval=1000)
        self._watchdog.timeout.connect(self._watch)
        live.heard.connect(self._hear)
        self.refresh()

    # Parts

    def _readings(self) -> QWidget:
        body = QWidget()
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(tokens.M, tokens.L, tokens.M, tokens.L)
        self._column.setSpacing(tokens.M)
        self._column.addWidget(self._tools())
        self._warning = Strip("warning-fill", "tight")
        self._warning.hide()
        self._column.addWidget(self._warning)
        self._grid = QGridLayout()
        self._grid.setSpacing(tokens.M)
        self._columns = 0
        self._column.addLayout(self._grid)
        self._host = HostCard()
        self.gpu_reading = _choice("gpu", GPU, "utilisation")
        self.gpu_reading.chosen.connect(self._choose_reading)
        self.host_reading = _choice("host", HOST, "cpu")
        self._gpu_chart = Timeline(Message.of("ui.monitor.chart.gpu"))
        self._host_chart = Timeline(Message.of("ui.monitor.chart.host"))
        self._gpu_part = self._chart("gpu", self.gpu_reading, self._gpu_chart)
        self._column.addWidget(self._gpu_part)
        self._column.addWidget(self._chart("host", self.host_reading, self._host_chart))
        self._column.addStretch(1)
        self._picture = body
        self._scroll = Scroll(body)
        return self._scroll

    def _tools(self) -> QWidget:
        spans = [(str(span), Message.of(f"ui.monitor.span.{span}")) for span in SPANS_S]
        self.span = Segmented(spans, str(SPANS_S[0]), name=Message.of("ui.monitor.span"))
        self.span.chosen.connect(self.refresh)
        paces = [(pace, Message.of("ui.monitor.pace.value", count=int(pace)))
                 for pace in ("1", "2", "5", "10")]  # fmt: skip
        self.pace = Combo(paces, f"{self._live.sampler.hz:.0f}", name=Message.of("ui.monitor.pace"))
        self.pace.setSizePolicy(Button("x").sizePolicy())
        self.pace.chosen.connect(self._set_pace)
        self.pause = Button(Message.of("ui.monitor.pause"), "secondary", "pause",
                            tip=Message.of("ui.monitor.pause.tip"))  # fmt: skip
        self.resume = Button(Message.of("ui.monitor.resume"), "secondary", "play")
        self.log = Button(Message.of("ui.monitor.log"), "secondary", "download-simple",
                          tip=Message.of("ui.monitor.log.tip"))  # fmt: skip
        self.stop_log = Button(Message.of("ui.monitor.log.stop"), "secondary", "record-fill")
        self.picture = Button("", "secondary", "camera", name=Message.of("ui.monitor.picture"),
                              tip=Message.of("ui.monitor.picture"))  # fmt: skip
        self.pause.clicked.connect(self._pause)
        self.resume.clicked.connect(self._resume)
        self.log.clicked.connect(self._ask_log)
        self.stop_log.clicked.connect(self._stop_log)
        self.picture.clicked.connect(self._ask_picture)
        return row(self.span, self.pace, None, self.pause, self.resume, self.log, self.stop_log,
                   self.picture, gap=tokens.XS)  # fmt: skip

    def _chart(self, device: str, reading: Combo, chart: Timeline) -> Surface:
        card = Surface(gap=tokens.S)
        head = QHBoxLayout()
        head.addWidget(Heading(Message.of(f"ui.monitor.chart.{device}")), 1)
        reading.chosen.connect(self.refresh)
        head.addWidget(reading)
        card.column.addLayout(head)
        card.column.addWidget(chart)
        return card

    def _side(self) -> Surface:
        side = Surface("left", padding=(0, tokens.S, 0, 0))
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.L, tokens.S, tokens.M, tokens.L)
        column.setSpacing(tokens.S)
        column.addWidget(Heading(Message.of("ui.monitor.alerts")))
        self.alerts = AlertList(self._monitor.alerts)
        self.alerts.changed.connect(self._live.set_alerts)
        column.addWidget(self.alerts)
        column.addSpacing(tokens.M)
        column.addWidget(Heading(Message.of("monitor.events")))
        self._events = QVBoxLayout()
        self._events.setSpacing(tokens.S)
        column.addLayout(self._events)
        column.addStretch(1)
        self._side_scroll = Scroll(body)
        self._side_scroll.fitted.connect(self._fit_side)
        side.column.addWidget(self._side_scroll)
        self._side_panel = side
        self._fit_side()
        return side

    def _fit_side(self) -> None:
        self._side_panel.setFixedWidth(max(_SIDE, self._side_scroll.minimumWidth() + 1))

    # Following

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._heard_at = awake_s()
        self._live.want(self)
        self._watchdog.start()
        self.refresh()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._watchdog.stop()
        self._live.release(self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _hear(self) -> None:
        self._heard_at = awake_s()
        if self.isVisible() and not self._repaint.isActive():
            self._repaint.start()

    def _watch(self) -> None:
        silent = awake_s() - self._heard_at
        self._warning.setVisible(silent >= _SILENT_S)
        if silent >= _SILENT_S:
            self._warning.label.tell(Message.of("ui.monitor.silent", time=float(round(silent))))

    def refresh(self) -> None:
        """Show the newest readings; a paused screen stays as it is."""
        logging = self._monitor.logging is not None
        self.pause.setVisible(not self._paused)
        self.resume.setVisible(self._paused)
        self.log.setVisible(not logging)
        self.stop_log.setVisible(logging)
        self._show_events()
        sample = self._monitor.latest
        if sample is None or self._paused:
            return
        self._warning.hide()
        self._prefer_what_is_told(sample)
        self._show_cards(sample)
        self._show_charts(sample)

    def _prefer_what_is_told(self, sample: Sample) -> None:
        """Begin with the slices' activity where divided GPUs do not tell how busy they are."""
        if self._chosen or isinstance(sample.gpus, Missing) or not sample.gpus:
            return
        self._chosen = True
        if all(isinstance(gpu.utilisation, Missing) for gpu in sample.gpus):
            self.gpu_reading.show_value(
                "sm_active" if sample.gpus[0].mig is True else "memory_used"
            )

    def _show_cards(self, sample: Sample) -> None:
        gpus = () if isinstance(sample.gpus, Missing) else sample.gpus
        if {gpu.index for gpu in gpus} != set(self._gpu_cards):
            for card in self._gpu_cards.values():
                card.deleteLater()
            self._gpu_cards = {gpu.index: GpuCard(gpu.index) for gpu in gpus}
            self._columns = 0
        self._arrange()
        for gpu in gpus:
            kinds = ("utilisation", "sm_active")
            courses = {s: self._course(s, 60) for s in _all(f"gpu{gpu.index}", kinds)}
            self._gpu_cards[gpu.index].show_sample(gpu, courses)
        self._host.show_sample(
            sample.host, {s: self._course(s, 60) for s in _all("host", HostCard.KEYS)}
        )

    def _arrange(self) -> None:
        """Lay the cards out in as many columns as there is room for."""
        cards: list[QWidget] = [*self._gpu_cards.values(), self._host]
        room = self._scroll.width() - 2 * tokens.L - SCROLL_BAR
        columns = max(1, min(len(cards), room // _CARD))
        if columns == self._columns:
            return
        self._columns = columns
        while self._grid.takeAt(0) is not None:
            pass
        for place, card in enumerate(cards):
            self._grid.addWidget(card, place // columns, place % columns, Qt.AlignmentFlag.AlignTop)
        for column in range(max(columns, 4)):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)

    def _show_charts(self, sample: Sample) -> None:
        span = int(self._span())
        gpus = () if isinstance(sample.gpus, Missing) else sample.gpus
        kind = next(each for each in GPU if each.key == self.gpu_reading.currentData())
        lines = [
            line
            for place, name in enumerate(_named(gpus))
            for line in self._lines(name, kind, colour_of(place), span)
        ]
        ceiling = _gpu_ceiling(kind, gpus)
        self._gpu_chart.show_lines(lines, span, kind.unit, ceiling, _why_not(sample, kind))
        kind = next(each for each in HOST if each.key == self.host_reading.currentData())
        total = sample.host.memory_total
        ceiling = 1.0 if kind.unit == "share" else None
        if kind.key == "memory_used" and not isinstance(total, Missing):
            ceiling = float(total)
        value = kind.take(sample.host)
        nothing = value.reason if isinstance(value, Missing) else ""
        lines = self._lines("host", kind, COLOURS[2], span)
        self._host_chart.show_lines(lines, span, kind.unit, ceiling, nothing)

    def _lines(self, device: str, kind: Reading, colour: str, span: int) -> list[Line]:
        series = Series(device, kind.key)
        now = elapsed_s()
        course = self._monitor.course(series, span, now)
        summary = self._monitor.summary(series, span, now)
        if course is None or summary is None:
            return []
        return [Line(device_name(device), colour, course, summary)]

    def _course(self, series: Series, span: int) -> Course | None:
        return self._monitor.course(series, span, elapsed_s())

    def _span(self) -> str:
        return self.span.value

    def _show_events(self) -> None:
        events = self._monitor.events[-_EVENTS:]
        if events == self._shown_events:
            return
        self._shown_events = events
        clear(self._events)
        if not events:
            none = Message.of("ui.monitor.no-events")
            self._events.addWidget(Label(none, px=tokens.LABEL, colour="text3", wrap=True))
        for event in reversed(events):
            at = time.strftime("%H:%M:%S", time.localtime(event.wall_s))
            stamp = Label(at, px=tokens.LABEL, colour="text3")
            text = Label(event.message, px=tokens.LABEL, wrap=True,
                         colour="no" if event.bad else "text")  # fmt: skip
            line = row(stamp, text)
            layout = line.layout()
            if isinstance(layout, QHBoxLayout):
                layout.setAlignment(stamp, Qt.AlignmentFlag.AlignTop)
                layout.setStretch(1, 1)
            self._events.addWidget(line)

    # What people do

    def _set_pace(self, value: str) -> None:
        self._live.set_pace(int(value))

    def _choose_reading(self) -> None:
        self._chosen = True

    def _pause(self) -> None:
        self._paused = True
        self.refresh()

    def _resume(self) -> None:
        self._paused = False
        self.refresh()

    def _ask_log(self) -> None:
        name = time.strftime("readings-%Y%m%d-%H%M.csv")
        path = filedialogs.file_to_write(self, tr("ui.monitor.log"), str(Path.home() / name),
                                         "CSV (*.csv)", "csv", appends=True)  # fmt: skip
        if path is not None:
            self.log_to(path)

    def log_to(self, path: Path) -> None:
        """Write further readings to a file."""
        self._live.log_to(path)
        self.refresh()

    def _stop_log(self) -> None:
        path = self._monitor.logging
        self._live.log_to(None)
        if path is not None:
            self._live.noticed.emit(Message.of("ui.monitor.log.ended", path=str(path)))
        self.refresh()

    def _ask_picture(self) -> None:
        name = time.strftime("readings-%Y%m%d-%H%M.png")
        path = filedialogs.file_to_write(
            self, tr("ui.monitor.picture"), str(Path.home() / name), "PNG (*.png)", "png"
        )
        if path is not None:
            self.save_picture(path)

    def save_picture(self, path: Path) -> bool:
        """Save cards and charts as a picture; return whether it was written."""
        picture = QByteArray()
        buffer = QBuffer(picture)
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        self._picture.grab().save(buffer, "PNG")
        try:
            saving.write(path, bytes(picture.data()))
        except UserError as error:
            self._live.noticed.emit(error.message)
            return False
        self._live.noticed.emit(Message.of("ui.monitor.picture.saved", path=str(path)))
        return True


def _choice(device: str, kinds: tuple[Reading, ...], value: str) -> Combo:
    choices = [(each.key, reading_name(each.key)) for each in kinds]
    combo = Combo(choices, value, name=Message.of(f"ui.monitor.chart.{device}.reading"))
    combo.setSizePolicy(Button("x").sizePolicy())
    return combo


def _all(device: str, keys: tuple[str, ...]) -> list[Series]:
    return [Series(device, key) for key in keys]


def _named(gpus: tuple[GpuSample, ...]) -> list[str]:
    """Return the devices of a chart, the GPUs first, so that they keep their colours."""
    slices = [f"gpu{gpu.index}.slice{one.index}" for gpu in gpus for one in gpu.slices]
    return [*(f"gpu{gpu.index}" for gpu in gpus), *slices]


def _gpu_ceiling(kind: Reading, gpus: tuple[GpuSample, ...]) -> float | None:
    """Return the top of the scale, where the reading has one."""
    if kind.unit == "share":
        return 1.0
    whole = {"memory_used": "memory_total", "power_w": "power_limit_w"}.get(kind.key)
    known = [getattr(gpu, whole) for gpu in gpus] if whole else []
    there = [float(value) for value in known if not isinstance(value, Missing)]
    return max(there, default=None)


def _why_not(sample: Sample, kind: Reading) -> Message | str:
    """Return why the GPUs' chart is empty."""
    if isinstance(sample.gpus, Missing):
        return Message.of("ui.monitor.no-gpus", reason=sample.gpus.reason)
    if not sample.gpus:
        return Message.of("ui.monitor.no-gpus", reason=Message.of("probe.empty"))
    value = kind.take(sample.gpus[0])
    return value.reason if isinstance(value, Missing) else ""
