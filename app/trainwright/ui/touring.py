"""When the tour is shown: once on the first run, and whenever a person asks for it."""

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from trainwright.ui.frame import Frame
from trainwright.ui.widgets.tour import Mark, Tour

_AGAIN_MS = 1000
"""Until it is tried again where a dialog is open; assumed."""


def show(window: Frame) -> Tour | None:
    """Begin the tour, unless it is on, or a dialog or a list is open."""
    contents = window.contents
    in_the_way = QApplication.activeModalWidget() or QApplication.activePopupWidget()
    if in_the_way is not None or contents.findChild(Tour) is not None:
        return None
    tour = Tour(
        contents,
        (
            Mark("places", window.rail),
            Mark("figures", window.body),
            Mark("search", window.top.search),
            Mark("fit", window.tools["make-it-fit"]),
            Mark("export", window.tools["go-export"]),
        ),
    )
    window.preferences.toured = True
    return tour


def show_once(window: Frame) -> None:
    """Begin the tour for somebody who has not seen it, as soon as no dialog is in the way."""
    if window.preferences.toured or not window.isVisible():
        return
    if show(window) is None:
        QTimer.singleShot(_AGAIN_MS, window, lambda: show_once(window))
