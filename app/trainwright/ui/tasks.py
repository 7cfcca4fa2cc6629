"""Work off the UI thread: the newest question wins, and a long one can be cancelled."""

import atexit
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

from PySide6.QtCore import QObject, Qt, Signal
from shiboken6 import isValid

from trainwright import crashes
from trainwright.messages import Message, UserError
from trainwright.ui import heap

LONG_S = 0.2
"""Work of more than this leaves much free memory behind; assumed."""

Job = Callable[[], Any]
Answer = Callable[[Any, Message | None], None]
"""Takes the job's result, or what went wrong."""


class _Post(QObject):
    """Carries calls from other threads to the one that the window lives on.

    It is never deleted: a thread that emits a signal of an object which the window deletes at
    that moment takes the whole program down, and no check made beforehand can rule that out.
    It closes when the program ends, before Qt does: threads may outlive both.
    """

    _call = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._call.connect(self._make, Qt.ConnectionType.QueuedConnection)
        self._sending = threading.Lock()
        self._open = True
        atexit.register(self.close)  # later than Qt's own, so that it runs first

    def send(self, call: Callable[[], None]) -> None:
        """Make a call on the window's thread."""
        with self._sending:
            if self._open:
                self._call.emit(call)

    def close(self) -> None:
        """Let what is being sent arrive, and take nothing more."""
        with self._sending:
            self._open = False

    def _make(self, call: Callable[[], None]) -> None:
        call()


@cache
def _post() -> _Post:
    """Return the one post; the first to ask is an object of the window, so it lives there too."""
    return _Post()


def poster() -> Callable[[QObject, Callable[[], None]], None]:
    """Return what makes a call on the window's thread if its receiver still lives by then.

    Ask for it there, send from anywhere. The receiver must outlive the thread that sends.
    """
    post = _post()
    return lambda receiver, call: post.send(lambda: call() if isValid(receiver) else None)


class _Errand:
    """A job on its way through another thread, and its answer on the way back.

    What they refer to may be the last that keeps widgets alive, and Qt does not allow that these
    are destroyed on another thread. So that thread holds nothing but the errand, and the
    window's thread empties it.
    """

    def __init__(self, receiver: QObject, job: Job, answer: Answer) -> None:
        self._held: tuple[QObject, Job, Answer] | None = (receiver, job, answer)
        self._post = _post()

    def run(self) -> None:
        """Do the job and send the answer home."""
        began = time.monotonic()
        self._post.send(partial(self._arrive, *attempt(self._do)))
        if time.monotonic() - began > LONG_S:
            heap.give_back()

    def _do(self) -> Any:
        assert self._held is not None
        return self._held[1]()

    def _arrive(self, result: Any, problem: Message | None) -> None:
        assert self._held is not None
        receiver, _, answer = self._held
        self._held = None
        if isValid(receiver):
            answer(result, problem)


class _Line:
    """A thread that does one errand after another, and ends where none waits."""

    def __init__(self) -> None:
        self._next: _Errand | None = None
        self._working = False
        self._turn = threading.Condition()

    @property
    def working(self) -> bool:
        """Whether an errand is under way or waits."""
        return self._working

    def put(self, errand: _Errand | None) -> None:
        """Let an errand wait in place of the one that does; None: let none wait."""
        with self._turn:
            self._next = errand
            if errand is not None and not self._working:
                self._working = True
                threading.Thread(target=self._work, daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is left to do; return whether it came to that."""
        with self._turn:
            return self._turn.wait_for(lambda: not self._working, seconds)

    def _work(self) -> None:
        while (errand := self._take()) is not None:
            errand.run()

    def _take(self) -> _Errand | None:
        with self._turn:
            errand, self._next = self._next, None
            if errand is None:
                self._working = False
                self._turn.notify_all()
            return errand


class Latest(QObject):
    """Runs jobs one at a time and answers only for the newest; those between are dropped.

    ``done`` and ``failed`` are emitted on the thread that this object lives on.
    """

    done = Signal(object)
    failed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._line = _Line()
        self._newest = 0

    @property
    def busy(self) -> bool:
        """Whether a job is under way or waits."""
        return self._line.working

    def submit(self, job: Job) -> None:
        """Run a job in place of any that still waits."""
        self._newest += 1
        self._line.put(_Errand(self, job, partial(self._deliver, self._newest)))

    def forget(self) -> None:
        """Drop what waits, and the answer of what runs."""
        self._newest += 1
        self._line.put(None)

    def wait(self, seconds: float = 5) -> bool:
        """Wait for the running job to end; return whether it did."""
        return self._line.wait(seconds)

    def _deliver(self, number: int, result: object, problem: object) -> None:
        if number != self._newest:
            return
        if problem is None:
            self.done.emit(result)
        else:
            self.failed.emit(problem)


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
        path = crashes.record(error)
        if path is None:
            return None, Message.of("ui.problem.unexpected", reason=reason)
        return None, Message.of("ui.problem.recorded", reason=reason, path=str(path))


class Cancellable(QObject):
    """One long job with progress and a cancel, such as tracing a model."""

    progressed = Signal(object)
    ended = Signal(object, object)
    """(result, problem): one of them is None."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.cancelled = threading.Event()
        self._thread: threading.Thread | None = None
        self._send = poster()

    @property
    def running(self) -> bool:
        """Whether the job is under way."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, job: Callable[[Callable[[Any], None], threading.Event], Any]) -> None:
        """Start a job; it is given a function to report progress to, and the cancel event."""
        cancelled = self.cancelled = threading.Event()
        errand = _Errand(self, lambda: job(self._progress, cancelled), self.ended.emit)
        self._thread = threading.Thread(target=errand.run, daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Ask the job to end."""
        self.cancelled.set()

    def wait(self, seconds: float = 10) -> None:
        """Wait for the job to end."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _progress(self, progress: Any) -> None:
        self._send(self, lambda: self.progressed.emit(progress))


def end_below(roots: Iterable[QObject], seconds: float) -> None:
    """End all work of these objects and their children; wait for it so long in all.

    What has not ended by then is left behind: its thread ends with the program.
    """
    owners = list(roots)
    waiting = [one for root in owners for one in root.findChildren(Latest)]
    running = [one for root in owners for one in root.findChildren(Cancellable)]
    for asked in waiting:
        asked.forget()
    for job in running:
        job.cancel()
    until = time.monotonic() + seconds
    jobs: list[Latest | Cancellable] = [*running, *waiting]
    for each in jobs:
        each.wait(max(0, until - time.monotonic()))
