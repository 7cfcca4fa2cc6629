"""Takes what nothing else caught: keeps the plan, writes a crash file, and says so on a page.

C++ knows no Python exceptions. PySide hands those of slots, events and overridden methods to
``sys.excepthook``, and the window goes on.
"""

import sys
import threading
from functools import partial
from traceback import format_exception, walk_tb
from types import TracebackType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from trainwright import crashes
from trainwright.ui.tasks import poster

if TYPE_CHECKING:
    from trainwright.ui.widgets.crashpage import CrashPage
    from trainwright.ui.window import Window

_INTERRUPTED = 130
"""Exit code after Ctrl+C, as shells count: 128 and the signal."""


class Faults(QObject):
    """The hooks for a window's exceptions, on whichever thread they are raised."""

    def __init__(self, window: "Window") -> None:
        super().__init__(window)
        self._window = window
        self._page: CrashPage | None = None
        self._send = poster()
        self._seen: set[tuple[type[BaseException], str, int]] = set()
        """Where exceptions came from: one that is raised at each repaint is told once."""
        sys.excepthook = self._caught
        threading.excepthook = lambda its: self._caught(
            its.exc_type, its.exc_value, its.exc_traceback
        )
        sys.unraisablehook = lambda its: self._caught(
            its.exc_type, its.exc_value, its.exc_traceback
        )

    def _caught(
        self,
        kind: type[BaseException],
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            self._send(self, self._interrupted)
            return
        place = _place(trace)
        if error is None or (kind, *place) in self._seen:
            return
        self._seen.add((kind, *place))
        if threading.current_thread() is threading.main_thread():
            self._keep_plan()
        path = crashes.record(error)
        details = "".join(format_exception(error))
        # Not from within the call that failed: Qt may be in the middle of painting.
        self._send(self, partial(self._tell, kind.__name__, str(path or ""), details))

    def _keep_plan(self) -> bool:
        """Bring the recovery copy up to date; return whether there are unsaved edits."""
        session = self._window.session
        if session is not None:
            session.keep()
        return session is not None and session.unsaved

    def _tell(self, kind: str, path: str, details: str) -> None:
        from trainwright.ui.widgets.crashpage import CrashPage

        unsaved = self._keep_plan()
        if self._page is not None or not self._window.isVisible():
            return  # one page is enough; each fault has its file
        page = self._page = CrashPage(self._window, kind, path, details, unsaved=unsaved)
        page.finished.connect(self._put_away)
        page.open()

    def _put_away(self, _result: int) -> None:
        if self._page is not None:
            close = self._page.ends
            self._page.deleteLater()
            self._page = None
            if close:
                self._window.close()

    def end_soon(self, *_signal: object) -> None:
        """Handle Ctrl+C and SIGTERM.

        It must not raise: Python runs it within whatever of ours C++ calls just then, and there
        an exception is lost, or takes the program down.
        """
        QTimer.singleShot(0, self._interrupted)

    def _interrupted(self) -> None:
        """End without a question, as Ctrl+C and SIGTERM ask for; edits stay in their copy."""
        self._window.end_work()
        QApplication.exit(_INTERRUPTED)


def _place(trace: TracebackType | None) -> tuple[str, int]:
    """Return the file and line that raised."""
    last = None
    for last in walk_tb(trace):  # noqa: B007
        pass
    return (last[0].f_code.co_filename, last[1]) if last is not None else ("", 0)
