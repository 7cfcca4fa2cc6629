"""Work off the UI thread: the newest question wins, and a long one can be cancelled."""

import atexit
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from PySide6.QtCore import QObject, QRunnable, Qt, QThreadPool, Signal
from shiboken6 import isValid

from trainwright.messages import Message, UserError

Job = Callable[[], Any]


class _Post(QObject):
    """Carries calls from other threads to the one that the window lives on.

    It is never deleted: a thread that emits a signal of an object which the window deletes at
    that moment takes the whole program down, and no check made beforehand can rule that out.
    It closes when the program ends, before Qt does: threads may outlive both.
    """

    _call = Signal(object, object)

    def __init__(self) -> None:
        super().__init__()
        self._call.connect(self._make, Qt.ConnectionType.QueuedConnection)
        self._sending = threading.Lock()
        self._open = True
        atexit.register(self.close)  # later than Qt's own, so that it runs first

    def send(self, receiver: QObject, call: Callable[[], None]) -> None:
        """Make a call on the window's thread if its receiver still lives by then."""
        with self._sending:
            if self._open:
                self._call.emit(receiver, call)

    def close(self) -> None:
        """Let what is being sent arrive, and take nothing more."""
        with self._sending:
            self._open = False

    def _make(self, receiver: QObject, call: Callable[[], None]) -> None:
        if isValid(receiver):
            call()


@cache
def _post() -> _Post:
    """Return the one post; the first to ask is an object of the window, so it lives there too."""
    return _Post()


def poster() -> Callable[[QObject, Callable[[], None]], None]:
    """Return what makes a call on the window's thread; ask for it there, send from anywhere."""
    return _post().send


class Latest(QObject):
    """Runs jobs one at a time and answers only for the newest; those between are dropped.

    ``done`` and ``failed`` are emitted on the thread that this object lives on.
    """

    done = Signal(object)
    failed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = QThreadPool(self)
        self._pool.setMaxThreadCount(1)
        self._newest = 0
        self._post = _post()

    @property
    def busy(self) -> bool:
        """Whether a job is under way or waits."""
        return self._pool.activeThreadCount() > 0

    def submit(self, job: Job) -> None:
        """Run a job in place of any that still waits."""
        self._newest += 1
        self._pool.clear()
        self._pool.start(_Run(job, self._answer_to(self._newest)))

    def forget(self) -> None:
        """Drop what waits, and the answer of what runs."""
        self._newest += 1
        self._pool.clear()

    def wait(self, milliseconds: int = 5000) -> bool:
        """Wait for the running job to end; return whether it did."""
        return self._pool.waitForDone(milliseconds)

    def _answer_to(self, number: int) -> Callable[[Any, Message | None], None]:
        post = self._post
        return lambda result, problem: post.send(
            self, lambda: self._deliver(number, result, problem)
        )

    def _deliver(self, number: int, result: object, problem: object) -> None:
        if number != self._newest:
            return
        if problem is None:
            self.done.emit(result)
        else:
            self.failed.emit(problem)


class _Run(QRunnable):
    def __init__(self, job: Job, answer: Callable[[Any, Message | None], None]) -> None:
        super().__init__()
        self._job = job
        self._answer = answer

    def run(self) -> None:
        self._answer(*attempt(self._job))


def attempt(job: Job) -> tuple[Any, Message | None]:
    """Return a job's result, or what to tell a person: no traceback reaches a user."""
    try:
        return job(), None
    except UserError as error:
        return None, error.message
    except NotImplementedError:
        return None, Message.of("ui.problem.not-here")
    except Exception as error:  # the window must outlive any fault in an estimate
        reason = f"{type(error).__name__}: {error}"
        return None, Message.of("ui.problem.unexpected", reason=reason)


class Cancellable(QObject):
    """One long job with progress and a cancel, such as tracing a model."""

    progressed = Signal(object)
    ended = Signal(object, object)
    """(result, problem): one of them is None."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.cancelled = threading.Event()
        self._thread: threading.Thread | None = None
        self._post = _post()

    @property
    def running(self) -> bool:
        """Whether the job is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, job: Callable[[Callable[[Any], None], threading.Event], Any]) -> None:
        """Start a job; it is given a function to report progress to, and the cancel event."""
        self.cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(job, self.cancelled), daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Ask the job to end."""
        self.cancelled.set()

    def wait(self, seconds: float = 10) -> None:
        """Wait for the job to end."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(
        self,
        job: Callable[[Callable[[Any], None], threading.Event], Any],
        cancelled: threading.Event,
    ) -> None:
        result, problem = attempt(lambda: job(self._progress, cancelled))
        self._post.send(self, lambda: self.ended.emit(result, problem))

    def _progress(self, progress: Any) -> None:
        self._post.send(self, lambda: self.progressed.emit(progress))
