"""Two columns that stand side by side where there is room for both, else one below the other."""

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QLayout, QWidget

from trainwright.ui import tokens


class Sides(QWidget):
    """Holds the columns; its least width is that of the wider one."""

    def __init__(self, left: QLayout, right: QLayout, shares: tuple[int, int] = (1, 1)) -> None:
        super().__init__()
        self._columns = left, right
        self._line = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self._line.setSpacing(tokens.M)
        for column, share in zip(self._columns, shares, strict=True):
            self._line.addLayout(column, share)

    def minimumSizeHint(self) -> QSize:
        return QSize(max(self._widths()), self._line.minimumSize().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Turn where the width asks for it."""
        super().resizeEvent(event)
        beside = self.width() >= sum(self._widths()) + tokens.M
        way = QBoxLayout.Direction.LeftToRight if beside else QBoxLayout.Direction.TopToBottom
        if way is not self._line.direction():
            self._line.setDirection(way)
            self.updateGeometry()

    def _widths(self) -> tuple[int, ...]:
        return tuple(column.minimumSize().width() for column in self._columns)
