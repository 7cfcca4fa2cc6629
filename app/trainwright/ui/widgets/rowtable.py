"""A table of rows that say themselves what stands in their cells; made for long lists."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QPainter, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
)

from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say
from trainwright.ui.paint import draw_icon
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import slim

Index = QModelIndex | QPersistentModelIndex
ROW, HEAD, PAD, MARK = 30, 32, 10, 18


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one cell."""

    text: str
    colour: str = "text"
    icon: str = ""
    icon_colour: str = "text3"
    weight: int = 400


@dataclass(frozen=True, slots=True)
class Heading:
    """A column."""

    title: Text
    width: int
    right: bool = False
    """Whether its cells are numbers."""
    stretch: bool = False
    """Whether it takes what is left; never less than its width."""
    optional: bool = False
    """Whether it goes where there is no room."""


class RowModel(QAbstractTableModel):
    """Rows of any kind; their cells are made when they are shown."""

    def __init__(
        self,
        headings: Sequence[Heading],
        rows: Sequence[Any],
        cells: Callable[[Any], Sequence[Cell]],
    ) -> None:
        super().__init__()
        self.headings = headings
        self.rows = rows
        self._cells = cells

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.headings)

    def cell(self, index: Index) -> Cell:
        """Return what stands in a cell."""
        return self._cells(self.rows[index.row()])[index.column()]

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self.cell(index).text
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(self.cell(index).text)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{say(self.headings[index.column()].title)}: {self.cell(index).text}"
        return None

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        shown = (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole)
        if orientation == Qt.Orientation.Horizontal and role in shown:
            return say(self.headings[section].title)
        return None


class RowTable(QTableView):
    """The view; rows are chosen whole."""

    chosen = Signal(int)
    """The row that has the cursor; -1 where there is none."""

    def __init__(self, name: Text, headings: Sequence[Heading], height: int) -> None:
        super().__init__()
        self._headings = headings
        self._highest = height
        self.setAccessibleName(say(name))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setItemDelegate(_Cells(self))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabKeyNavigation(False)
        self.setMouseTracking(True)
        self.setCornerButtonEnabled(False)
        self.setHorizontalHeader(_Head(self))
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(ROW)
        slim(self.verticalScrollBar())
        self._model: RowModel | None = None
        self.show_rows((), lambda _row: ())

    def show_rows(self, rows: Sequence[Any], cells: Callable[[Any], Sequence[Cell]]) -> None:
        """Show other rows; the cursor stays on its row where there still is one."""
        before = max(0, self.currentIndex().row())
        self._model = RowModel(self._headings, rows, cells)
        self.setModel(self._model)
        head = self.horizontalHeader()
        for section, heading in enumerate(self._headings):
            title = tokens.width(say(heading.title), tokens.LABEL, 600) + 2 * PAD
            head.resizeSection(section, max(heading.width, int(title + 1)))
            stretch = QHeaderView.ResizeMode.Stretch
            head.setSectionResizeMode(
                section, stretch if heading.stretch else QHeaderView.ResizeMode.Interactive
            )
        self.selectionModel().currentChanged.connect(self._moved)
        self.setFixedHeight(min(self._highest, HEAD + max(1, len(rows)) * ROW + 2))
        self._make_room()
        if rows:
            self.setCurrentIndex(self._model.index(min(before, len(rows) - 1), 0))
        else:
            self.chosen.emit(-1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        """Leave out optional columns, the last first, until the others have their widths."""
        if self._model is None:
            return
        left = self.viewport().width() - sum(heading.width for heading in self._headings)
        for section in reversed(range(len(self._headings))):
            heading = self._headings[section]
            hidden = heading.optional and left < 0
            left += heading.width if hidden else 0
            self.setColumnHidden(section, hidden)

    @property
    def row(self) -> int:
        """The row that has the cursor; -1 where there is none."""
        return self.currentIndex().row()

    def _moved(self, index: QModelIndex) -> None:
        self.chosen.emit(index.row())
        self.viewport().update()


class _Head(QHeaderView):
    """Headings in tokens."""

    def __init__(self, parent: QTableView) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setHighlightSections(False)
        self.setFixedHeight(HEAD)
        self.setMinimumSectionSize(40)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def paintSection(self, painter: QPainter, rect: QRect, logical: int) -> None:
        model = self.model()
        if not isinstance(model, RowModel) or not rect.isValid():
            return
        heading = model.headings[logical]
        painter.save()
        painter.fillRect(rect, tokens.colour("surface"))
        painter.setPen(tokens.colour("line2"))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        painter.setFont(tokens.font(tokens.LABEL, 600))
        painter.setPen(tokens.colour("text2"))
        side = Qt.AlignmentFlag.AlignRight if heading.right else Qt.AlignmentFlag.AlignLeft
        inner = rect.adjusted(PAD, 0, -PAD, 0)
        painter.drawText(inner, side | Qt.AlignmentFlag.AlignVCenter, say(heading.title))
        painter.restore()

    def sectionSizeFromContents(self, _logical: int) -> QSize:
        return QSize(60, HEAD)


class _Cells(QStyledItemDelegate):
    """A text with an icon before it, cut with an ellipsis where it is wider than its column."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        model = index.model()
        assert isinstance(model, RowModel)
        cell, heading, rect = model.cell(index), model.headings[index.column()], option.rect
        painter.save()
        self._ground(painter, option, index)
        inner = rect.adjusted(PAD, 0, -PAD, 0)
        if cell.icon:
            top = rect.center().y() - 6
            draw_icon(painter, cell.icon, inner.left(), top, 13, cell.icon_colour)
            inner.adjust(MARK, 0, 0, 0)
        metrics = tokens.metrics(tokens.LABEL, cell.weight)
        text = metrics.elidedText(cell.text, Qt.TextElideMode.ElideRight, inner.width())
        painter.setFont(tokens.font(tokens.LABEL, cell.weight))
        painter.setPen(tokens.colour(cell.colour))
        side = Qt.AlignmentFlag.AlignRight if heading.right else Qt.AlignmentFlag.AlignLeft
        painter.drawText(inner, side | Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()

    def _ground(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        view = self.parent()
        assert isinstance(view, RowTable)
        rect, current = option.rect, index.row() == view.currentIndex().row()
        if current:
            painter.fillRect(rect, tokens.colour("accentWash"))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, tokens.colour("sunken"))
        painter.setPen(tokens.colour("accentLine" if current and view.hasFocus() else "line"))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(60, ROW)
