"""Starts the window."""

import os
import signal
import sys
from functools import partial
from pathlib import Path

from PySide6.QtCore import QLibraryInfo, Qt, QTimer
from PySide6.QtWidgets import QApplication

from trainwright import crashes
from trainwright.ui import heap, i18n, theme, touring, usual
from trainwright.ui.core import Core
from trainwright.ui.faults import Faults
from trainwright.ui.garbage import Collector
from trainwright.ui.preferences import Preferences
from trainwright.ui.warming import warm
from trainwright.ui.window import Window

_SETTLED_MS = 600
"""Until the tour of a first run and the loading of other places begin: the window is painted by
then; assumed."""


def main(path: str | None = None) -> int:
    """Open the window, with a plan or a model's config where one is named."""
    left = crashes.watch_native()
    heap.limit()
    _choose_input_method()
    preferences = Preferences()
    if preferences.scale != 100:
        os.environ.setdefault("QT_SCALE_FACTOR", f"{preferences.scale / 100:g}")
    app = QApplication(sys.argv[:1])
    window = prepared(app, Core(), preferences)
    faults = Faults(window)
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, faults.end_soon)
    if left is not None:
        window.when_awake(partial(QTimer.singleShot, 0, partial(_tell_of_crash, window, left)))
    for then in (touring.show_once, warm):
        window.when_awake(partial(QTimer.singleShot, _SETTLED_MS, partial(then, window)))
    if path is not None:
        window.when_awake(lambda: window.open_path(Path(path)))
    window.show()
    return app.exec()


def prepared(app: QApplication, core: Core, preferences: Preferences) -> Window:
    """Return a window in the preferred look and language, not yet shown."""
    app.setApplicationName("trainwright")
    app.setApplicationDisplayName("Trainwright")
    app.setDesktopFileName("trainwright")
    theme.apply(app, theme.resolve(preferences.theme, app))
    i18n.use(preferences.spoken_language())
    usual.use(preferences.usual)
    window = Window(core, preferences)
    Collector(window)

    def follow(_scheme: Qt.ColorScheme) -> None:
        if preferences.theme == "system":
            window.take_preferences()

    app.styleHints().colorSchemeChanged.connect(follow)
    return window


def _tell_of_crash(window: Window, left: Path) -> None:
    """Say that the last run ended in native code, once."""
    window.notice.say(i18n.tr("ui.crash.native", path=str(left)))


def _choose_input_method() -> None:
    """Let fcitx users type Hangul: Qt's wheels lack its plugin, and fcitx5 serves ibus too."""
    if not os.environ.get("QT_IM_MODULE", "").startswith("fcitx"):
        return
    plugins = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath))
    if not list(plugins.glob("platforminputcontexts/*fcitx*")):
        os.environ["QT_IM_MODULE"] = "ibus"
