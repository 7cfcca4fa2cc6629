"""A question about somebody's work, with an answer for each button; closing it is not an answer."""

import difflib
from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.messages import Message
from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Heading, Label
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.difftext import DiffText, ReadText

_ROOM = (760, 300)
"""Least size of two texts side by side, in pixels; assumed."""


class QuestionDialog(QDialog):
    """Asks; ``answer`` is that of the button pressed, or empty."""

    def __init__(self, parent: QWidget, title: Message, text: Message) -> None:
        super().__init__(parent)
        self.answer = ""
        self.setWindowTitle(say(title))
        self.setAccessibleName(say(title))
        self.setAccessibleDescription(say(text))
        self.setMinimumWidth(520)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(tokens.XL, tokens.L, tokens.XL, tokens.L)
        self.column.setSpacing(tokens.M)
        self.column.addWidget(Heading(title))
        self._said = Label(text, wrap=True, colour="text2")
        self.column.addWidget(self._said)
        self._line = QHBoxLayout()
        self._line.addStretch(1)
        self.column.addLayout(self._line)
        self.buttons: dict[str, Button] = {}

    def offer(self, answers: Sequence[str], best: str) -> None:
        """Add a button for each answer, as ``ui.ask.ANSWER`` names it; Enter gives the best."""
        for answer in answers:
            button = Button(tr(f"ui.ask.{answer}"), "primary" if answer == best else "secondary")
            button.clicked.connect(partial(self._give, answer))
            self._line.addWidget(button)
            self.buttons[answer] = button
        self.buttons[best].setFocus()

    def list_lines(self, lines: Sequence[Text]) -> None:
        """Show sentences below the text, one a paragraph, to read and to copy."""
        self.show_text(Message.of("ui.ask.list"), "\n\n".join(f"• {say(line)}" for line in lines))

    def show_text(self, name: Message, text: str) -> None:
        """Show a longer text below the first, to read and to copy."""
        self.shown = ReadText(name)
        self.shown.setPlainText(text)
        self._insert_shown()

    def _insert_shown(self) -> None:
        self.shown.setMinimumSize(*_ROOM)
        self.column.insertWidget(2, self.shown, 1)
        self.shown.show()  # a layout reckons only with what is shown
        self.column.activate()
        self.resize(self.size().expandedTo(self.sizeHint()))

    def offer_to_compare(self, mine: str, theirs: Callable[[], str]) -> None:
        """Add a button that shows in which lines two texts differ."""
        button = Button(tr("ui.ask.compare"), "ghost")
        button.clicked.connect(lambda: self._compare(mine, theirs()))
        self._line.insertWidget(0, button)
        self.buttons["compare"] = button

    def _give(self, answer: str) -> None:
        self.answer = answer
        self.accept()

    def _compare(self, mine: str, theirs: str) -> None:
        self.buttons["compare"].setEnabled(False)
        self.shown = DiffText(Message.of("ui.ask.compare"), difference(mine, theirs))
        self.buttons["compare"].hide()
        self._insert_shown()

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.fillRect(self.rect(), tokens.colour("surface"))


def difference(mine: str, theirs: str) -> list[str]:
    """Return the lines in which the file differs from what is open here."""
    names = tr("ui.ask.mine"), tr("ui.ask.theirs")
    return list(
        difflib.unified_diff(mine.splitlines(), theirs.splitlines(), *names, lineterm="", n=2)
    )
