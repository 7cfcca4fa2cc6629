"""Garbage is collected on the window's thread alone.

Python collects cycles on whatever thread happens to allocate. Widgets that are part of one would be
destroyed there, which Qt does not allow: the program crashes.
"""

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 500
"""Assumed: often enough that little piles up."""

_MANY = 50_000
"""New objects after which all are looked at; assumed: five to ten megabytes of widgets."""


class Collector(QObject):
    """Collects while the window's event loop runs."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._grown = 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.collect)
        self._timer.start(_EVERY_MS)

    def collect(self) -> None:
        """Collect what is new; everything, once much is new.

        Python's own rule counts collections. At two a second it would take minutes to come to the
        screens that a change of theme or language leaves behind. Objects are not counted by
        ``gc.get_objects``: it breaks tuples that another thread is making (CPython 3.11).
        """
        new = gc.get_count()[0]
        if new < gc.get_threshold()[0]:
            return
        self._grown += new
        if self._grown > _MANY:
            self._grown = 0
            gc.collect()
        else:
            gc.collect(1)
