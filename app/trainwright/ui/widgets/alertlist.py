"""The alerts on live readings: those that are set, and a form for one more."""

from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QAbstractButton, QVBoxLayout, QWidget

from trainwright.messages import Message
from trainwright.messages.units import duration, number
from trainwright.probe.monitor.alerts import LONGEST_S, Alert
from trainwright.probe.monitor.figures import SCALE, device_name, reading_name
from trainwright.probe.monitor.readings import GPU, HOST, Reading, readings_of
from trainwright.ui import tokens
from trainwright.ui.i18n import language, say, tr
from trainwright.ui.widgets.base import Label, clear, row
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo, Segmented, Stepper

_START = ("gpu.temperature_c", 80)
"""What the form offers first: a bound below the slowdown temperatures of most cards. Assumed."""


class AlertList(QWidget):
    """Shows alerts, takes them away, and adds some."""

    changed = Signal(object)
    """The alerts as they now stand, a tuple."""

    def __init__(self, alerts: tuple[Alert, ...]) -> None:
        super().__init__()
        self._alerts = alerts
        self._kinds = {
            f"{device}.{each.key}": (device, each)
            for device, kinds in (("gpu", GPU), ("host", HOST))
            for each in kinds
        }
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.S)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(tokens.XS)
        column.addLayout(self._rows)
        choices = [
            (key, f"{say(device_name(device))}: {say(reading_name(each.key))}")
            for key, (device, each) in self._kinds.items()
        ]
        name = Message.of("ui.monitor.alert.reading")
        self.reading = Combo(choices, _START[0], name=name)
        self.reading.chosen.connect(self._fit_unit)
        sides = [(side, Message.of(f"ui.monitor.alert.{side}")) for side in ("above", "below")]
        self.beyond = Segmented(sides, "above", name=Message.of("ui.monitor.alert.beyond"))
        self._bound = QVBoxLayout()
        name, unit = (Message.of(f"ui.monitor.alert.{key}") for key in ("for", "seconds"))
        self.seconds = Stepper(10, name=name, unit=unit, low=0, high=LONGEST_S)
        self.add = Button(Message.of("ui.monitor.alert.add"), "secondary", "plus", small=True)
        self.add.clicked.connect(self._add)
        column.addWidget(self.reading)
        column.addWidget(self.beyond)
        column.addLayout(self._bound)
        column.addWidget(self.seconds)
        column.addWidget(row(self.add, None))
        self._fit_unit()
        self.threshold.show_value(_START[1])
        self._show()

    def _fit_unit(self) -> None:
        """Ask for the bound in the unit of the chosen reading."""
        clear(self._bound)
        _, each = self._kinds[self.reading.currentData()]
        high = 100 if each.unit == "share" else 1_000_000
        name = Message.of("ui.monitor.alert.bound")
        self.threshold = Stepper(
            min(90, high), name=name, unit=SCALE[each.unit][1], low=0, high=high
        )
        self._bound.addWidget(self.threshold)
        # Made last, it would else be the last that Tab reaches.
        QWidget.setTabOrder(self.beyond.findChildren(QAbstractButton)[-1], self.threshold)

    def _add(self) -> None:
        device, each = self._kinds[self.reading.currentData()]
        beyond: Literal["above", "below"] = "below" if self.beyond.value == "below" else "above"
        threshold = self.threshold.value() * SCALE[each.unit][0]
        alert = Alert(device, each.key, beyond, threshold, self.seconds.value())
        if alert not in self._alerts:
            self._set((*self._alerts, alert))

    def remove(self, alert: Alert) -> None:
        """Take an alert away."""
        self._set(tuple(each for each in self._alerts if each != alert))

    def _set(self, alerts: tuple[Alert, ...]) -> None:
        self._alerts = alerts
        self._show()
        self.changed.emit(alerts)

    def _show(self) -> None:
        clear(self._rows)
        if not self._alerts:
            none = Message.of("ui.monitor.alert.none")
            self._rows.addWidget(Label(none, px=tokens.LABEL, colour="text3", wrap=True))
        for place, alert in enumerate(self._alerts):
            text = sentence(alert)
            label = Label(text, px=tokens.LABEL, wrap=True)
            name = Message.of("ui.monitor.alert.remove", alert=text)
            button = Button("", "ghost", "trash", name=name, tip=name, small=True)
            button.setProperty("place", place)
            button.clicked.connect(self._remove_clicked)
            line = row(label, button)
            line.layout().setStretch(0, 1)  # type: ignore[union-attr]
            self._rows.addWidget(line)

    def _remove_clicked(self) -> None:
        self.remove(self._alerts[int(self.sender().property("place"))])


def sentence(alert: Alert) -> str:
    """Return an alert as people read it."""
    each: Reading = next(each for each in readings_of(alert.device) if each.key == alert.key)
    size, unit = SCALE[each.unit]
    return tr(
        f"ui.monitor.alert.sentence.{alert.beyond}",
        device=device_name(alert.device),
        reading=reading_name(alert.key),
        threshold=f"{number(alert.threshold / size)} {unit}",
        time=duration(alert.for_s, language()),
    )
