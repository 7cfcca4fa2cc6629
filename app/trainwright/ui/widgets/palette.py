"""The command palette and the sheet of shortcuts: both read the one table of actions."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeySequence, QPaintEvent
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.ui import tokens
from trainwright.ui.actions import ACTIONS, Group
from trainwright.ui.i18n import tr
from trainwright.ui.options import Option, plain
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Heading, Label
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.picker import Popup

Find = Callable[[str], Sequence[Option]]


def keys(shortcut: str) -> str:
    """Return a shortcut as this system writes it."""
    return QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)


def search_actions(text: str) -> list[Option]:
    """Return the actions whose name, tooltip or id holds every word."""
    words = [plain(word) for word in text.split()]
    found: list[Option] = []
    for action in ACTIONS:
        searched = plain(f"{action.text} {action.tip} {action.id}")
        if action.id != "palette" and all(word in searched for word in words):
            found.append(Option(f"action:{action.id}", action.text, keys(action.shortcut)))
    return found


def open_palette(window: QWidget, more: Find) -> Popup:
    """Open the palette over the upper middle of the window; the caller hears what is chosen."""

    def search(text: str) -> Sequence[Option]:
        return [*search_actions(text), *(more(text) if text.strip() else ())]

    popup = Popup(search, tr("ui.action.palette"), tr("ui.palette.hint"), window)
    wide = min(560, window.width() - 80)
    popup.resize(wide, popup.height())
    popup.move(window.mapToGlobal(QPoint((window.width() - wide) // 2, 64)))
    popup.show()
    popup.field.setFocus()
    return popup


_COLUMNS: tuple[tuple[Group, ...], ...] = (("file", "edit"), ("go",), ("view", "help"))
"""Groups that stand below one another: no column is higher than a small screen."""


class ShortcutSheet(QDialog):
    """Every action with its keys, by group."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(tr("ui.action.shortcuts"))
        self.setAccessibleName(tr("ui.action.shortcuts"))
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.XL, tokens.L, tokens.XL, tokens.L)
        column.setSpacing(tokens.M)
        line = QHBoxLayout()
        line.setSpacing(tokens.XXL)
        for groups in _COLUMNS:
            below = QVBoxLayout()
            below.setSpacing(tokens.M)
            for group in groups:
                below.addWidget(self._group(group))
            below.addStretch(1)
            line.addLayout(below)
        column.addLayout(line)
        close = Button(tr("ui.close"), "primary")
        close.clicked.connect(self.accept)
        column.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)

    def _group(self, group: Group) -> QWidget:
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(tokens.L)
        grid.setVerticalSpacing(5)
        grid.addWidget(Heading(tr(f"ui.group.{group}")), 0, 0, 1, 2)
        for line, action in enumerate((a for a in ACTIONS if a.group == group), start=1):
            grid.addWidget(Label(action.text, colour="text2"), line, 0)
            label = Label(keys(action.shortcut), px=tokens.LABEL, weight=500)
            grid.addWidget(label, line, 1, Qt.AlignmentFlag.AlignRight)
        grid.setColumnStretch(0, 1)
        return holder

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.fillRect(self.rect(), tokens.colour("surface"))
