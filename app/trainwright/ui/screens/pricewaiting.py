"""Rows of lists that no part was known for: how many wait, and the way to look at them."""

from PySide6.QtCore import Qt, Signal

from trainwright.messages import Message
from trainwright.prices.imports import waiting
from trainwright.ui import tokens
from trainwright.ui.i18n import Text, tr
from trainwright.ui.widgets.base import Heading, Label, Surface
from trainwright.ui.widgets.buttons import Button


class WaitingCard(Surface):
    """Shown while rows wait, and where their file cannot be read."""

    wanted = Signal()

    def __init__(self) -> None:
        super().__init__(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        self.heading = Heading(Message.of("prices.screen.waiting"))
        self._says = Label("", px=tokens.LABEL, colour="text2", wrap=True)
        self.look = Button(
            Message.of("prices.screen.waiting.look"), icon="magnifying-glass", small=True
        )
        self.look.clicked.connect(self.wanted)
        self.column.addWidget(self.heading)
        self.column.addWidget(self._says)
        self.column.addWidget(self.look, 0, Qt.AlignmentFlag.AlignLeft)
        self.hide()

    def refresh(self) -> None:
        """Count the rows."""
        found = waiting.load()
        count = len(found.rows)
        self.heading.annotate(tr("prices.screen.waiting.count", count=count))
        self._tell(found.note or Message.of("prices.screen.waiting.says"), wrong=bool(found.note))
        self.look.setVisible(count > 0)
        self.setVisible(count > 0 or found.note is not None)

    def discarded(self, count: int) -> None:
        """Say that rows went."""
        self.refresh()
        self._tell(tr("prices.screen.waiting.discarded", count=count))
        self.show()

    def _tell(self, text: Text, *, wrong: bool = False) -> None:
        self._says.paint_in("no" if wrong else "text2")
        self._says.tell(text)
