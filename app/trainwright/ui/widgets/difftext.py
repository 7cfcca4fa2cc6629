"""Lines of a difference, to read and to copy."""

from collections.abc import Sequence

from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QPlainTextEdit

from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say
from trainwright.ui.widgets.base import slim

_COLOURS = {"+": "fits", "-": "no", "@": "text3"}


class ReadText(QPlainTextEdit):
    """Text that is read and copied, and not changed."""

    def __init__(self, name: Text) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName(say(name))
        self.setTabChangesFocus(True)
        slim(self.verticalScrollBar())
        slim(self.horizontalScrollBar())


class DiffText(ReadText):
    """A unified diff, its lines in the colours of what came and went."""

    def __init__(self, name: Text, lines: Sequence[str]) -> None:
        super().__init__(name)
        self.setFont(tokens.font(tokens.LABEL, 400, mono=True))
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        cursor = QTextCursor(self.document())
        for line in lines:
            look = QTextCharFormat()
            look.setForeground(tokens.colour(_COLOURS.get(line[:1], "text")))
            cursor.insertText(line + "\n", look)
        self.moveCursor(QTextCursor.MoveOperation.Start)
