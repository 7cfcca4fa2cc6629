"""Traces off the UI thread: the one that somebody waits for, and the fit that follows it."""

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from trainwright.plan.evaluate import Pending
from trainwright.profile.spec import TraceSpec
from trainwright.ui.core import Core
from trainwright.ui.tasks import Cancellable


@dataclass(frozen=True, slots=True)
class Tracing:
    """How far a trace is."""

    fraction: float
    stage: str


class Traces(QObject):
    """Starts and ends traces; only the newest is listened to."""

    progressed = Signal(object)
    """``Tracing``."""
    ended = Signal(object, object)
    """(facts, problem): one of them is None."""
    fitted = Signal()
    """The profile for all batches and lengths is there, or cannot be."""

    def __init__(self, core: Core, parent: QObject) -> None:
        super().__init__(parent)
        self._core = core
        self._waited: Cancellable | None = None
        self._fit = Cancellable(self)
        self._fitted: TraceSpec | None = None
        self._pending: Pending | None = None

    def start(self, pending: Pending) -> None:
        """Trace at the point that is asked about; the fit for all others follows."""
        self.stop()
        trace = self._core.trace
        self._pending = pending
        self._waited = self._new()
        self._waited.progressed.connect(self.progressed)
        self._waited.ended.connect(self.ended)
        self._waited.start(
            lambda report, cancelled: pending.answered(
                trace(
                    pending.spec,
                    pending.point,
                    lambda done, stage: report(Tracing(done, stage)),
                    cancelled.is_set,
                )
            )
        )

    def _new(self) -> Cancellable:
        for old in self.findChildren(Cancellable):
            if not old.running and old not in (self._waited, self._fit):
                old.deleteLater()
        return Cancellable(self)

    def stop(self) -> None:
        """End the trace that somebody waits for; nobody listens to it any more."""
        if self._waited is not None:
            self._waited.cancel()
            self._waited.progressed.disconnect()
            self._waited.ended.disconnect()
            self._waited = None

    def cancel(self) -> None:
        """End the trace that somebody waits for, and tell that it was ended."""
        if self._waited is not None:
            self._waited.cancel()

    def fit(self) -> None:
        """Trace what other batches and lengths need; where it fails, they are traced singly."""
        pending, trace = self._pending, self._core.trace
        if pending is None or (self._fit.running and self._fitted == pending.spec):
            return
        self._fit.cancel()
        self._fitted = pending.spec
        self._fit = self._new()
        self._fit.ended.connect(lambda _profile, _problem: self.fitted.emit())
        self._fit.start(
            lambda _report, cancelled: trace(
                pending.spec, None, lambda _done, _stage: None, cancelled.is_set
            )
        )
