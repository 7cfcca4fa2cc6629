"""Rows of a form: label, control, lock; columns aligned over all groups."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QWidget

from trainwright.plan.schema import Plan
from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.widgets.base import Heading, Label
from trainwright.ui.widgets.buttons import HelpMark, Lock
from trainwright.ui.widgets.controls import Combo, Control
from trainwright.workload import FullSettings

ValueOf = Callable[[Plan, FullSettings | None], Any]
"""The value to show: the plan's own, else the one that the estimate was made for."""


@dataclass(slots=True)
class Row:
    """One line of the form; ``lock`` is None where nothing can be free."""

    key: str
    label: QWidget
    """With the mark of its lesson, where it has one."""
    control: QWidget
    lock: Lock | None = None
    value: ValueOf | None = None
    applies: Callable[[Plan], bool] | None = None

    def show_plan(self, plan: Plan, settings: FullSettings | None) -> None:
        """Show a plan's value, or hide the row where it means nothing."""
        here = self.applies is None or self.applies(plan)
        for part in (self.label, self.control, self.lock):
            if part is not None:
                part.setVisible(here)
        if not here or self.value is None:
            return
        free = self.lock is not None and is_free(plan, self.key)
        if self.lock is not None:
            one = plan.chosen.get(self.key.removeprefix("settings.")) if free else None
            self.lock.set_free(free, say(one.reason) if one is not None else "")
        value = self.value(plan, settings)
        if value is not None:
            show_in(self.control, value, free=free)
        else:
            show_unknown(self.control, free=free)


def show_in(control: QWidget, value: Any, *, free: bool) -> None:
    """Show a value in any of the kit's controls."""
    shower: Any = control
    shower.show_value(value, free=free)


def show_unknown(control: QWidget, *, free: bool) -> None:
    """Show that a value is not decided yet: there are no figures that it was taken for."""
    shower: Any = control
    shower.free = free
    if isinstance(control, Combo):
        control.setCurrentIndex(-1)
    control.update()


def is_free(plan: Plan, key: str) -> bool:
    """Return whether a settings key is left to the search."""
    place: Any = plan
    for name in key.split("."):
        place = getattr(place, name)
    return place is None


class Group(QWidget):
    """A heading and its rows in a grid."""

    def __init__(self, title: Text) -> None:
        super().__init__()
        self.heading = Heading(title)
        self.rows: list[Row] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(tokens.S)
        self._grid.setVerticalSpacing(7)
        self._grid.setColumnStretch(1, 1)
        self._grid.addWidget(self.heading, 0, 0, 1, 3)
        self._next = 1

    @property
    def widest_label(self) -> int:
        """Return the width of the widest label of a row that is shown, in pixels."""
        labels = (row.label for row in self.rows if not row.label.isHidden())
        return max((label.sizeHint().width() for label in labels), default=0)

    def widen_labels(self, width: int) -> None:
        """Give the labels' column a width, so that the groups of a form stand in line."""
        self._grid.setColumnMinimumWidth(0, width)

    def add(self, row: Row) -> Row:
        """Add a row below the others."""
        self.rows.append(row)
        self._grid.addWidget(row.label, self._next, 0)
        self._grid.addWidget(row.control, self._next, 1, 1, 1 if row.lock else 2)
        if row.lock is not None:
            self._grid.addWidget(row.lock, self._next, 2)
        named = row.label if isinstance(row.label, Label) else row.label.findChild(Label)
        if named is not None:
            named.setBuddy(row.control)
        self._next += 1
        return row

    def add_wide(self, widget: QWidget, *, from_column: int = 0) -> None:
        """Add a widget over the columns."""
        self._grid.addWidget(widget, self._next, from_column, 1, 3 - from_column)
        self._next += 1


def pair(first: Control, second: Control) -> QWidget:
    """Return two controls that share a row."""
    holder = QWidget()
    line = QHBoxLayout(holder)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(tokens.S)
    line.addWidget(first, 4)
    line.addWidget(second, 3)
    return holder


def taught(label: Label, teach: Callable[[], None]) -> QWidget:
    """Return a label with a mark beside it that opens a lesson."""
    holder = QWidget()
    line = QHBoxLayout(holder)
    line.setContentsMargins(0, 0, 0, 0)
    line.setSpacing(2)
    mark = HelpMark(tr("ui.form.learn", name=label.text()))
    mark.clicked.connect(teach)
    line.addWidget(label)
    line.addWidget(mark)
    line.addStretch(1)
    return holder


def row_label(text: Text) -> Label:
    """Return the label of a row."""
    return Label(say(text), colour="text2")
