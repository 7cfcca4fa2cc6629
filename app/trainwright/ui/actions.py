"""Everything that a person can do, declared once.

Menu, palette, shortcut sheet and tests read this table; the window binds the callbacks.
The text of an action is ``ui.action.<id>``, its tooltip ``ui.action.<id>.tip``. The action that
goes to a place is called as the place is: ``ui.place.<place>``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from trainwright.ui.i18n import tr
from trainwright.ui.tips import plain_tip

Group = Literal["file", "edit", "go", "view", "help"]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing to do."""

    id: str
    group: Group
    icon: str
    shortcut: str

    @property
    def text(self) -> str:
        """What menus and the palette call it."""
        place = self.id.removeprefix("go-")
        return tr(f"ui.place.{place}" if place != self.id else f"ui.action.{self.id}")

    @property
    def tip(self) -> str:
        """What it does, in a sentence."""
        return tr(f"ui.action.{self.id}.tip")


ACTIONS: tuple[Action, ...] = (
    Action("open", "file", "folder-open", "Ctrl+O"),
    Action("save", "file", "floppy-disk", "Ctrl+S"),
    Action("save-as", "file", "floppy-disk", "Ctrl+Shift+S"),
    Action("rename", "file", "pencil-simple", "Ctrl+R"),
    Action("copy-summary", "file", "copy", "Ctrl+Shift+C"),
    Action("share", "file", "share-network", "Ctrl+P"),
    Action("quit", "file", "x", "Ctrl+Q"),
    Action("undo", "edit", "arrow-u-up-left", "Ctrl+Z"),
    Action("redo", "edit", "arrow-u-up-right", "Ctrl+Shift+Z"),
    Action("make-it-fit", "edit", "magic-wand", "Ctrl+M"),
    Action("free-all", "edit", "lock-simple-open", "Ctrl+Shift+F"),
    Action("explain", "edit", "question", "F1"),
    Action("go-start", "go", "house", "Alt+1"),
    Action("go-plan", "go", "sliders-horizontal", "Alt+2"),
    Action("go-advise", "go", "magic-wand", "Ctrl+Shift+A"),
    Action("go-compare", "go", "scales", "Ctrl+Shift+D"),
    Action("go-export", "go", "export", "Ctrl+E"),
    Action("go-verify", "go", "flask", "Ctrl+Shift+V"),
    Action("go-build", "go", "shopping-cart", "Alt+3"),
    Action("go-machine", "go", "computer-tower", "Ctrl+Shift+M"),
    Action("go-catalog", "go", "books", "Ctrl+Shift+L"),
    Action("go-prices", "go", "tag", "Ctrl+Shift+P"),
    Action("go-mig", "go", "columns", "Alt+4"),
    Action("go-computer", "go", "desktop-tower", "Alt+5"),
    Action("go-monitor", "go", "activity", "Ctrl+Shift+T"),
    Action("go-diagnose", "go", "first-aid", "Alt+6"),
    Action("go-review", "go", "checks", "Ctrl+Shift+R"),
    Action("go-settings", "go", "gear-six", "Ctrl+,"),
    Action("pick-model", "go", "cube", "Ctrl+L"),
    Action("pick-gpu", "go", "cpu", "Ctrl+G"),
    Action("palette", "view", "magnifying-glass", "Ctrl+K"),
    Action("theme", "view", "moon", "F2"),
    Action("language", "view", "translate", "F3"),
    Action("full-screen", "view", "arrows-out", "F11"),
    Action("learn", "help", "graduation-cap", "Ctrl+F1"),
    Action("tour", "help", "signpost", "Ctrl+Shift+F1"),
    Action("shortcuts", "help", "keyboard", "Ctrl+/"),
    Action("diagnostics", "help", "first-aid-kit", "Ctrl+Shift+B"),
    Action("about", "help", "info", "Shift+F1"),
)

GROUPS: tuple[Group, ...] = ("file", "edit", "go", "view", "help")

Callbacks = Mapping[str, Callable[[], object]]


def bind(callbacks: Callbacks, owner: QWidget) -> dict[str, QAction]:
    """Return a QAction for each action, with shortcuts that work all over the owner."""
    bound: dict[str, QAction] = {}
    for action in ACTIONS:
        made = QAction(owner)
        made.setShortcut(QKeySequence(action.shortcut))
        made.triggered.connect(_plain(callbacks[action.id]))
        owner.addAction(made)
        bound[action.id] = made
    name(bound)
    return bound


def name(bound: Mapping[str, QAction]) -> None:
    """Give the actions their texts in the current language."""
    for action in ACTIONS:
        bound[action.id].setText(action.text.replace("&", "&&"))
        bound[action.id].setToolTip(plain_tip(action.tip))
        bound[action.id].setStatusTip(action.tip)


def menu(bound: Mapping[str, QAction], parent: QWidget) -> QMenu:
    """Return a menu of all actions, a title for each group."""
    made = QMenu(parent)
    for group in GROUPS:
        below = made.addMenu(tr(f"ui.group.{group}"))
        for action in ACTIONS:
            if action.group == group:
                below.addAction(bound[action.id])
    return made


def _plain(callback: Callable[[], object]) -> Callable[[], None]:
    def triggered() -> None:
        callback()

    return triggered
