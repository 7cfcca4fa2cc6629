"""The page after a fault of ours: what became of the plan, and where the details are."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QPaintEvent
from PySide6.QtWidgets import QDialog, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.ui import tokens
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Label
from trainwright.ui.widgets.buttons import Button

_WIDE = 560


class CrashPage(QDialog):
    """Says what happened; the work goes on, or the program ends."""

    def __init__(
        self, parent: QWidget, kind: str, path: str, details: str, *, unsaved: bool
    ) -> None:
        super().__init__(parent)
        self.ends = False
        """Whether the program is to be closed."""
        self._details = details
        self.setWindowTitle(tr("ui.crash.title"))
        self.setAccessibleName(tr("ui.crash.title"))
        self.setFixedWidth(_WIDE)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.XL, tokens.L, tokens.XL, tokens.L)
        column.setSpacing(tokens.M)
        column.addWidget(Label(tr("ui.crash.title"), px=tokens.FIGURE, weight=600))
        column.addWidget(Label(tr("ui.crash.what", kind=kind), wrap=True))
        kept = "ui.crash.kept" if unsaved else "ui.crash.saved"
        column.addWidget(Label(tr(kept), weight=500, wrap=True))
        where = tr("ui.crash.details" if path else "ui.crash.no-file")
        column.addWidget(Label(where, colour="text2", wrap=True))
        if path:
            file = Label(_breakable(path), px=tokens.LABEL, colour="text2", wrap=True, mono=True)
            file.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            column.addWidget(file)
        column.addSpacing(tokens.S)
        column.addLayout(self._buttons())
        self.on.setDefault(True)
        self.on.setFocus()

    def _buttons(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        self.copy = Button(tr("ui.crash.copy"), "ghost", "copy")
        self.copy.clicked.connect(self._copy)
        self.end = Button(tr("ui.crash.close"))
        self.end.clicked.connect(self._end)
        self.on = Button(tr("ui.crash.go-on"), "primary")
        self.on.clicked.connect(self.accept)
        line.addWidget(self.copy)
        line.addStretch(1)
        line.addWidget(self.end)
        line.addWidget(self.on)
        return line

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._details)

    def _end(self) -> None:
        self.ends = True
        self.accept()

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.fillRect(self.rect(), tokens.colour("surface"))


def _breakable(path: str) -> str:
    """Let a long path break after each folder."""
    return path.replace("/", "/\u200b").replace("\\", "\\\u200b")
