"""A place in a list of answers."""

from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QWidget

from trainwright.ui import tokens
from trainwright.ui.i18n import tr
from trainwright.ui.paint import STATE_ICON, Drawing


class Rank(QWidget):
    """The rank in the list, with the state of the verdict."""

    def __init__(self, rank: int, state: str) -> None:
        super().__init__()
        self._rank, self._state = rank, state
        self.setFixedSize(40, 36)
        self.setAccessibleName(tr("ui.advise.rank", rank=rank))

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.write(0, 0, 18, 36, str(self._rank), px=tokens.FIGURE, weight=600, colour="text3")
            d.icon(STATE_ICON[self._state], 20, 9, 18, f"{self._state}Fill")
