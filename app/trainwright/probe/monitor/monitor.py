"""What is known of this computer over time: the latest sample, history, events, alerts, a log."""

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainwright.messages import UserError
from trainwright.probe.monitor import alerts as alerting
from trainwright.probe.monitor.alerts import Alarm, Alert
from trainwright.probe.monitor.events import Event, Witness
from trainwright.probe.monitor.history import Course, History, Summary
from trainwright.probe.monitor.log import CsvLog
from trainwright.probe.monitor.readings import Series, values
from trainwright.probe.reading import Missing
from trainwright.probe.sample import Sample

EVENTS = 500
"""Events that are kept; the oldest go. Assumed: a page that a person can still read through."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a sample brought."""

    sample: Sample
    events: tuple[Event, ...]


class Monitor:
    """Hears samples on one thread and is asked on others."""

    def __init__(self, alerts: Iterable[Alert] = ()) -> None:
        self._lock = threading.Lock()
        self._history = History()
        self._witness = Witness()
        self._alarm = Alarm(alerts)
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._log: CsvLog | None = None
        self._latest: Sample | None = None

    # Hearing

    def hear(self, sample: Sample) -> Heard:
        """Take a sample, and return what happened with it."""
        with self._lock:
            readings = values(sample)
            self._latest = sample
            self._history.add(sample.monotonic_s, readings)
            events = (*self._witness.see(sample), *self._alerts(sample, readings))
            events += self._logged(sample, events)
            self._events.extend(events)
            return Heard(sample, events)

    def _alerts(
        self, sample: Sample, readings: Mapping[Series, float | Missing]
    ) -> tuple[Event, ...]:
        begun = self._alarm.hear(sample.monotonic_s, readings, slept=bool(sample.slept_s))
        return tuple(
            Event(sample.wall_s, "alert", alerting.spoken(alert, series, value))
            for alert, series, value in begun
        )

    def _logged(self, sample: Sample, events: Iterable[Event]) -> tuple[Event, ...]:
        """Write the sample down; a log that fails ends and says so, and monitoring goes on."""
        if self._log is None:
            return ()
        try:
            self._log.write(sample, events)
        except UserError as error:
            self._log = None
            return (Event(sample.wall_s, "log-ended", error.message),)
        return ()

    # Being asked

    @property
    def latest(self) -> Sample | None:
        """The newest sample."""
        return self._latest

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, newest last."""
        with self._lock:
            return tuple(self._events)

    @property
    def series(self) -> tuple[Series, ...]:
        """Every series seen so far."""
        with self._lock:
            return self._history.series

    def course(self, series: Series, seconds: int, now_s: float) -> Course | None:
        """Return a series over one of ``history.SPANS_S``; None where it was never seen."""
        with self._lock:
            return self._history.course(series, seconds, now_s)

    def summary(self, series: Series, seconds: int, now_s: float) -> Summary | None:
        """Return what a series was over a span; None where it has no reading within it."""
        with self._lock:
            return self._history.summary(series, seconds, now_s)

    # Alerts and the log

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """What a person wants to be told of."""
        return self._alarm.alerts

    def set_alerts(self, alerts: Iterable[Alert]) -> None:
        """Watch these from now on."""
        with self._lock:
            self._alarm.set(alerts)

    @property
    def logging(self) -> Path | None:
        """The file that samples are written to."""
        log = self._log
        return log.path if log is not None else None

    def log_to(self, path: Path | None) -> None:
        """Write every further sample to a file, or to none."""
        with self._lock:
            if self._log is not None:
                self._log.close()
            self._log = CsvLog(path) if path is not None else None
