"""What the parts of the window may ask of it."""

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMainWindow, QWidget

from trainwright.ui.core import Core
from trainwright.ui.preferences import Preferences
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.notice import Notice
from trainwright.ui.widgets.rail import Rail
from trainwright.ui.widgets.topbar import TopBar

if TYPE_CHECKING:
    from trainwright.ui.live import Live
    from trainwright.ui.session import Session


class Frame(QMainWindow):
    """The window as places, files, palette and tour see it. ``Window`` is the one there is."""

    core: Core
    preferences: Preferences
    session: "Session | None"
    actions_by_id: dict[str, QAction]
    tools: dict[str, Button]
    contents: QWidget
    body: QWidget
    rail: Rail
    top: TopBar
    notice: Notice

    @property
    def live(self) -> "Live":
        """Live readings; the monitor is loaded when it is first asked for."""
        raise NotImplementedError

    def go(self, place: str) -> None:
        """Show a screen; those that need a plan show Start while there is none."""
        raise NotImplementedError

    def screen_named(self, place: str) -> QWidget:
        """Return a screen, made if need be."""
        raise NotImplementedError

    def show_history(self) -> None:
        """Name what undo and redo would do."""
        raise NotImplementedError

    def start_with(self, what: str, value: object) -> None:
        """Begin as a person chose on the first screen."""
        raise NotImplementedError

    def open_path(self, path: Path, *others: Path) -> None:
        """Open a plan file, a MIG file, a model's, or those of another trainer's run."""
        raise NotImplementedError

    def ask_open(self) -> None:
        """Ask for a file and open it."""
        raise NotImplementedError

    def teach(self, lesson: str) -> None:
        """Show a lesson with the numbers of the plan."""
        raise NotImplementedError

    def take_preferences(self) -> None:
        """Apply the look and the language."""
        raise NotImplementedError
