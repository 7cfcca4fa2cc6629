"""Garbage is collected on the window's thread alone.

Python collects cycles on whatever thread happens to allocate. Widgets that are part of one would be
destroyed there, which Qt does not allow: the program crashes.
"""

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 500
"""Assumed: often enough that little piles up."""

_SHARE = 0.25
"""New objects by old ones from which all are looked at, as in Python's ``gcmodule.c``."""


class Collector(QObject):
    """Collects while the window's event loop runs."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._kept, self._grown = len(gc.get_objects()), 0
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.collect)
        self._timer.start(_EVERY_MS)

    def collect(self) -> None:
        """Collect what is new; everything, once there is a quarter more than after the last time.

        Python's own rule counts collections. At two a second it would take minutes to come to the
        screens that a change of theme or language leaves behind.
        """
        new = gc.get_count()[0]
        if new < gc.get_threshold()[0]:
            return
        self._grown += new
        if self._grown > self._kept * _SHARE:
            gc.collect()
            self._kept, self._grown = len(gc.get_objects()), 0
        else:
            gc.collect(1)
