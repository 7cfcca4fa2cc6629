"""Fields to type into: one line, and several."""

from PySide6.QtCore import QEvent, QSize
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QPlainTextEdit, QSizePolicy

from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import slim
from trainwright.ui.widgets.undokeys import left_to_window


class Entry(QLineEdit):
    """One line of text."""

    def __init__(self, *, name: Text, hint: Text = "", least: int = 80) -> None:
        super().__init__()
        self._least = least
        self.setFrame(False)
        self.setFont(tokens.font())
        self.setStyleSheet("background:transparent;border:0")
        self.setTextMargins(8, 0, 8, 0)
        self.setAccessibleName(say(name))
        self.setPlaceholderText(say(hint))
        self.setFixedHeight(tokens.CONTROL_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        return QSize(self._least, tokens.CONTROL_HEIGHT)

    def event(self, event: QEvent) -> bool:
        if left_to_window(event, typing=self.isUndoAvailable() or self.isRedoAvailable()):
            event.ignore()
            return False
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.field(self.width(), self.height(), free=False, focus=self.hasFocus(),
                    hover=self.underMouse())  # fmt: skip
        super().paintEvent(event)


class TextBox(QFrame):
    """Several lines of text, such as a list that was copied somewhere."""

    def __init__(self, *, name: Text, hint: Text = "", height: int = 120) -> None:
        super().__init__()
        self.field = QPlainTextEdit(self)
        self.field.setAccessibleName(say(name))
        self.field.setPlaceholderText(say(hint))
        self.field.setFrameShape(QFrame.Shape.NoFrame)
        self.field.setFont(tokens.font(tokens.LABEL, 400, True))
        self.field.setTabChangesFocus(True)
        self.field.setStyleSheet(
            "QPlainTextEdit{background:transparent;border:0}"
            "QPlainTextEdit::corner{background:transparent;border:0}"
        )
        self.field.viewport().setAutoFillBackground(False)
        self.field.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        slim(self.field.verticalScrollBar())
        slim(self.field.horizontalScrollBar())
        self.setFixedHeight(height)
        self.setFocusProxy(self.field)
        self.setAccessibleName(say(name))

    def resizeEvent(self, event: object) -> None:
        self.field.setGeometry(4, 3, self.width() - 8, self.height() - 6)

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.field(self.width(), self.height(), free=False, focus=self.field.hasFocus())
