"""Garbage is collected on the window's thread alone.

Python collects cycles on whatever thread happens to allocate. Widgets that are part of one would be
destroyed there, which Qt does not allow: the program crashes.
"""

import gc

from PySide6.QtCore import QObject, QTimer

_EVERY_MS = 500
"""Assumed: often enough that little piles up."""


class Collector(QObject):
    """Collects while the window's event loop runs, as often as Python itself would."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.collect)
        self._timer.start(_EVERY_MS)

    def collect(self) -> None:
        """Collect the oldest generation that is due."""
        due = zip(gc.get_count(), gc.get_threshold(), strict=True)
        generations = [n for n, (count, most) in enumerate(due) if 0 < most < count]
        if generations:
            gc.collect(max(generations))
