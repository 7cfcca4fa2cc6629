"""Alerts that a person sets: a reading beyond a bound for a while."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from trainwright.messages import Message
from trainwright.probe.monitor.readings import GPU, HOST, Series
from trainwright.probe.reading import Missing
from trainwright.ranges import believed

LONGEST_S = 3600
"""Longest time that an alert may wait for; the window offers no more. Assumed."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A bound on a reading."""

    device: str
    """``host``; ``gpu`` for any of them."""
    key: str
    """Of the reading."""
    beyond: Literal["above", "below"]
    threshold: float
    """In the reading's unit."""
    for_s: float = 0.0
    """How long it must hold without a break; a reading that is missing breaks it."""

    def concerns(self, series: Series) -> bool:
        """Return whether a series is one that the alert watches."""
        return series.key == self.key and series.device.rstrip("0123456789") == self.device

    def holds(self, value: float) -> bool:
        """Return whether a value is beyond the bound."""
        return value > self.threshold if self.beyond == "above" else value < self.threshold


class Alarm:
    """Watches the alerts; each speaks once, and again after its reading came back."""

    def __init__(self, alerts: Iterable[Alert] = ()) -> None:
        self.alerts = tuple(alerts)
        self._since: dict[tuple[Alert, str], float] = {}
        self._told: set[tuple[Alert, str]] = set()

    def set(self, alerts: Iterable[Alert]) -> None:
        """Watch these from now on."""
        self.alerts = tuple(alerts)
        self._since = {key: at for key, at in self._since.items() if key[0] in self.alerts}
        self._told = {key for key in self._told if key[0] in self.alerts}

    def hear(
        self, at_s: float, values: Mapping[Series, float | Missing], *, slept: bool = False
    ) -> list[tuple[Alert, Series, float]]:
        """Return the alerts that begin to hold, with the series and its value."""
        if slept:
            self._since.clear()
        return [
            (alert, series, value)
            for alert in self.alerts
            for series, value in values.items()
            if alert.concerns(series)
            and self._begins(alert, series.device, at_s, value)
            and not isinstance(value, Missing)
        ]

    def _begins(self, alert: Alert, device: str, at_s: float, value: float | Missing) -> bool:
        key = alert, device
        if isinstance(value, Missing) or not alert.holds(value):
            self._since.pop(key, None)
            self._told.discard(key)
            return False
        since = self._since.setdefault(key, at_s)
        if key in self._told or at_s - since < alert.for_s:
            return False
        self._told.add(key)
        return True


def spoken(alert: Alert, series: Series, value: float) -> Message:
    """Return what an alert says when it begins to hold."""
    from trainwright.probe.monitor.figures import device_name, figure, reading_name

    return Message.of(
        f"monitor.alert.{alert.beyond}",
        device=device_name(series.device),
        reading=reading_name(series.key),
        value=figure(series, value),
        threshold=figure(series, alert.threshold),
    )


def as_text(alerts: Iterable[Alert]) -> str:
    """Return the alerts as they are kept."""
    return json.dumps([asdict(alert) for alert in alerts])


def from_text(text: str) -> tuple[Alert, ...]:
    """Return the alerts of a text; what is damaged or unknown is left out."""
    try:
        listed = json.loads(text or "[]")
    except (ValueError, RecursionError):
        return ()
    read = (_alert(each) for each in listed) if isinstance(listed, list) else ()
    return tuple(alert for alert in read if alert is not None)


def _alert(document: Any) -> Alert | None:
    keys = {"host": {each.key for each in HOST}, "gpu": {each.key for each in GPU}}
    match document:
        case {
            "device": str(device),
            "key": str(key),
            "beyond": ("above" | "below") as beyond,
            "threshold": int() | float() as threshold,
            "for_s": int() | float() as for_s,
        } if key in keys.get(device, ()) and believed(threshold) and 0 <= for_s <= LONGEST_S:
            return Alert(device, key, beyond, float(threshold), float(for_s))
    return None
