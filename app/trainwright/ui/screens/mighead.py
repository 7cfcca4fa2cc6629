"""The head of the MIG screen, and the line below its board that says what happened."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from trainwright.messages import Message
from trainwright.mig.boards import MOST_GPUS
from trainwright.ui import tokens
from trainwright.ui.screens.computer import Glyph
from trainwright.ui.widgets.base import Label, clear
from trainwright.ui.widgets.buttons import Button, HelpMark
from trainwright.ui.widgets.controls import Combo, Stepper


class MigHead(QWidget):
    """Title, GPU, number of GPUs, and the buttons beside them."""

    def __init__(self, teach: Callable[[], None]) -> None:
        super().__init__()
        self.gpu = Combo((), "", name=Message.of("ui.mig.gpu"))
        self.gpu.setMaximumWidth(320)
        self.number = Stepper(1, name=Message.of("ui.mig.gpus"), high=MOST_GPUS)
        self.number.setFixedWidth(92)
        self.undo = _sign("arrow-u-up-left", Message.of("ui.mig.undo"))
        self.redo = _sign("arrow-u-up-right", Message.of("ui.mig.redo"))
        self.empty = Button(Message.of("ui.mig.clear"), "secondary", "eraser", small=True)
        current = Message.of("ui.mig.current")
        self.current = Button(current, "secondary", "download-simple", small=True)
        self.current.hide()
        self.learn = HelpMark(Message.of("lesson.sharing"))
        self.learn.clicked.connect(teach)
        self._lay_out()

    def _lay_out(self) -> None:
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(tokens.S)
        line.addWidget(Label(Message.of("ui.place.mig"), px=tokens.FIGURE, weight=600))
        line.addSpacing(tokens.M)
        line.addWidget(self.gpu)
        line.addWidget(Label(Message.of("ui.mig.gpus"), px=tokens.LABEL, colour="text2"))
        for control in (self.number, self.undo, self.redo, self.empty, self.current, self.learn):
            line.addWidget(control)
        line.addStretch(1)


def _sign(icon: str, says: Message) -> Button:
    return Button("", "ghost", icon, name=says, tip=says)


class SaysLine(QWidget):
    """What can be done, what happened, or why something cannot be."""

    def __init__(self) -> None:
        super().__init__()
        line = QHBoxLayout(self)
        line.setContentsMargins(2, 0, 2, 0)
        line.setSpacing(tokens.S)
        self._sign = QVBoxLayout()
        line.addLayout(self._sign)
        self.says = Label("", px=tokens.LABEL, wrap=True)
        self.says.setMinimumHeight(34)
        self.says.setAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        line.addWidget(self.says, 1)

    def say(self, text: Message | None, *, good: bool = False) -> None:
        """Say why something cannot be, or what happened; None says what can be done."""
        icon, colour, ink = "info", "text3", "text2"
        if text is not None and good:
            icon, colour, ink = "check-circle-fill", "fitsFill", "text"
        elif text is not None:
            icon, colour, ink = "x-circle-fill", "noFill", "no"
        clear(self._sign)
        self._sign.addWidget(Glyph(icon, colour, 16), 0, Qt.AlignmentFlag.AlignVCenter)
        self.says.paint_in(ink)
        self.says.tell(text or Message.of("ui.mig.how"))
