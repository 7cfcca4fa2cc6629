"""Live readings for the window: taken only while a screen, a log or an alert needs them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from trainwright.ui.preferences import Preferences
from trainwright.ui.tasks import poster

if TYPE_CHECKING:
    from trainwright.probe.monitor.alerts import Alert
    from trainwright.probe.monitor.monitor import Heard
    from trainwright.probe.sample import Sample

_TOLD = frozenset({"alert", "log-ended"})
"""Events that are said over whichever screen is shown."""


class Live(QObject):
    """The monitor and its sampler; outlives the screens that show it."""

    heard = Signal(object)
    """``Heard``: a sample and what happened with it."""
    noticed = Signal(object)
    """``Message``: something to say at once."""
    alerted = Signal(object)
    """``Message``: what should stay marked until somebody looks."""

    def __init__(
        self,
        make_reader: "Callable[[], Callable[[], Sample]]",
        preferences: Preferences,
        parent: QObject | None = None,
    ) -> None:
        from trainwright.probe.monitor.alerts import from_text
        from trainwright.probe.monitor.monitor import Monitor
        from trainwright.probe.monitor.sampler import Sampler

        super().__init__(parent)
        self._preferences = preferences
        self._send = poster()
        self._wanted: set[int] = set()
        self.monitor = Monitor(from_text(preferences.alerts))
        self.sampler = Sampler(make_reader, self._hear, preferences.pace)
        self._settle()

    def want(self, who: QObject) -> None:
        """Take readings for somebody."""
        self._wanted.add(id(who))
        self._settle()

    def release(self, who: QObject) -> None:
        """Take none for them any more."""
        self._wanted.discard(id(who))
        self._settle()

    def set_pace(self, hz: int) -> None:
        """Take so many readings a second."""
        self._preferences.pace = hz
        self.sampler.hz = hz

    def set_alerts(self, alerts: "tuple[Alert, ...]") -> None:
        """Watch these, now and after the next start."""
        from trainwright.probe.monitor.alerts import as_text

        self._preferences.alerts = as_text(alerts)
        self.monitor.set_alerts(alerts)
        self._settle()

    def log_to(self, path: Path | None) -> None:
        """Write readings to a file, or to none."""
        self.monitor.log_to(path)
        self._settle()

    def close(self) -> None:
        """End the readings and the log."""
        self._wanted.clear()
        self.sampler.stop(wait_s=0.3)
        self.monitor.log_to(None)

    def _settle(self) -> None:
        monitor = self.monitor
        if self._wanted or monitor.alerts or monitor.logging is not None:
            self.sampler.start()
        elif self.sampler.running:
            self.sampler.stop(wait_s=0)

    def _hear(self, sample: "Sample") -> None:
        """Take a sample, on the sampler's thread."""
        heard = self.monitor.hear(sample)
        self._send(self, lambda: self._tell(heard))

    def _tell(self, heard: "Heard") -> None:
        self.heard.emit(heard)
        for event in heard.events:
            if event.kind in _TOLD:
                self.noticed.emit(event.message)
                self.alerted.emit(event.message)
        if any(event.kind == "log-ended" for event in heard.events):
            self._settle()
