"""Lessons: one page each, with the numbers of the open plan."""

from functools import partial

from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.explain import Quantity
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts
from trainwright.plan.lessons import LESSONS, Cell, Figures, Line
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.ui import tokens
from trainwright.ui.figures import figure
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import Label, Scroll, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.table import PAD, Heading, RowTable
from trainwright.ui.widgets.table import Cell as Shown

_SIZE = (860, 560)
"""Of the page, in pixels; assumed: lines of some 90 characters."""


class LessonPage(QDialog):
    """The list of lessons, and the one that is read; figures are worked out on another thread."""

    def __init__(self, parent: QWidget, answer: tuple[Plan, Facts, Report], lesson: str) -> None:
        super().__init__(parent)
        self._answer = answer
        self.setWindowTitle(tr("ui.action.learn"))
        self.setAccessibleName(tr("ui.action.learn"))
        self._written = Latest(self)
        self._written.done.connect(self._show)
        self._written.failed.connect(lambda why: self._show([why]))
        body = QWidget()
        self._page = QVBoxLayout(body)
        self._page.setContentsMargins(tokens.L, tokens.S, tokens.L, tokens.S)
        self._page.setSpacing(tokens.M)
        line = QHBoxLayout()
        line.setSpacing(tokens.L)
        line.addLayout(self._list())
        line.addWidget(Scroll(body), 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.XL, tokens.L, tokens.XL, tokens.L)
        column.addLayout(line, 1)
        close = QHBoxLayout()
        close.addWidget(Label(Message.of("lesson.live"), px=tokens.LABEL, colour="text3"), 1)
        self.done_reading = Button(tr("ui.close"), "primary")
        self.done_reading.clicked.connect(self.accept)
        close.addWidget(self.done_reading)
        column.addLayout(close)
        room = parent.size()
        self.resize(min(_SIZE[0], room.width() - 40), min(_SIZE[1], room.height() - 40))
        self.open_lesson(lesson)
        self.lessons[lesson].setFocus()

    def _list(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(tokens.XS)
        self.lessons: dict[str, Button] = {}
        for name in LESSONS:
            button = Button(Message.of(f"lesson.{name}"), "ghost", "graduation-cap", small=True)
            button.setCheckable(True)
            button.clicked.connect(partial(self.open_lesson, name))
            self.lessons[name] = button
            column.addWidget(button)
        column.addStretch(1)
        return column

    def open_lesson(self, name: str) -> None:
        """Show a lesson."""
        self.lesson = name
        for each, button in self.lessons.items():
            button.setChecked(each == name)
        self._show([Message.of("ui.compare.answering")])
        self._written.submit(lambda: list(LESSONS[name](*self._answer)))

    def _show(self, lines: list[Line]) -> None:
        clear(self._page)
        title = Label(Message.of(f"lesson.{self.lesson}"), px=tokens.TITLE, weight=600, wrap=True)
        self._page.addWidget(title)
        for line in lines:
            if isinstance(line, Message):
                self._page.addWidget(Label(line, colour="text", wrap=True))
            elif line.rows:
                self._page.addWidget(_table(line))
        self._page.addStretch(1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.fillRect(self.rect(), tokens.colour("surface"))


def _table(figures: Figures) -> RowTable:
    rows = [[_text(cell) for cell in row] for row in figures.rows]
    headings = []
    for place, title in enumerate(figures.headings):
        texts = [say(title), *(row[place] for row in rows)]
        wide = max(tokens.width(text, tokens.LABEL, 600) for text in texts)
        headings.append(Heading(title, int(wide) + 2 * PAD + 2, stretch=place == 0))
    table = RowTable(figures.headings[0], headings, 1000)
    table.show_rows(rows, lambda row: [Shown(text) for text in row])
    return table


def _text(cell: Cell) -> str:
    return str(figure(cell)) if isinstance(cell, Quantity) else say(cell)
