"""The table of a kind's parts: virtual, filtered and sorted as one types."""

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
from PySide6.QtGui import QKeyEvent, QPainter
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
from trainwright.ui.columns import Column, Record, Shelf
from trainwright.ui.i18n import tr
from trainwright.ui.paint import draw_icon
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import slim

Index = QModelIndex | QPersistentModelIndex

ROW, HEAD = 30, 32
_PAD = 10
_MARK = 14
"""Width that the mark of a low confidence takes."""


class PartModel(QAbstractTableModel):
    """Rows of a shelf, in the order that was asked for; nothing is copied."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__()
        self.shelf = shelf
        self.column, self.descending = 0, False
        self.text = ""
        self.rows = shelf.find("", 0)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.shelf.columns)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        column, record = self.shelf.columns[index.column()], self.record(index.row())
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(record)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return self._spoken(column, record)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _align(column)
        return None

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal or section >= len(self.shelf.columns):
            return None
        column = self.shelf.columns[section]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return heading(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tip(tr("pc.catalog.sort-by", name=column.title))
        return None

    def record(self, row: int) -> Record:
        """Return the part of a row."""
        return self.shelf.records[self.rows[row]]

    def filter(self, text: str) -> None:
        """Show the parts that have every word."""
        self.text = text
        self._find()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self.column, self.descending = column, order == Qt.SortOrder.DescendingOrder
        self._find()

    def _find(self) -> None:
        self.beginResetModel()
        self.rows = self.shelf.find(self.text, self.column, descending=self.descending)
        self.endResetModel()

    def _spoken(self, column: Column, record: Record) -> str:
        value = column.text(record) or tr("pc.unknown")
        text = f"{heading(column)}: {value}"
        return f"{text}, {tr('pc.confidence.low')}" if is_low(column, record) else text


def heading(column: Column) -> str:
    """Return a column's title with its unit."""
    return f"{column.title}, {column.unit}" if column.unit else column.title


def is_low(column: Column, record: Record) -> bool:
    """Whether little speaks for a value: one database only, or somebody's memory."""
    found = column.provenance(record)
    return found is not None and found.confidence == "low"


def _first_order(shelf: Shelf) -> tuple[int, Qt.SortOrder]:
    """Return the order to begin with: the newest first, where most say when they came."""
    for number, column in enumerate(shelf.columns):
        if column.field == "launch":
            known = sum(column.value(record) is not None for record in shelf.records)
            if known > len(shelf.records) / 2:
                return number, Qt.SortOrder.DescendingOrder
    return 0, Qt.SortOrder.AscendingOrder


def _align(column: Column) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column.number else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


class PartTable(QTableView):
    """The view; a click on a heading sorts, and so does Alt+Up or Alt+Down on a cell."""

    chosen = Signal(object, int)
    """(record, column) of the cell that has the cursor; None where no row is left."""

    def __init__(self) -> None:
        super().__init__()
        self.setAccessibleName(tr("pc.catalog.table"))
        self.setAccessibleDescription(tr("pc.catalog.table.keys"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setItemDelegate(_Cells(self))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setMouseTracking(True)
        self.setTabKeyNavigation(False)
        self.setCornerButtonEnabled(False)
        self.setHorizontalHeader(_Head(self))
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(ROW)
        slim(self.verticalScrollBar())
        slim(self.horizontalScrollBar())
        self._model: PartModel | None = None

    @property
    def parts(self) -> PartModel:
        """The rows that are shown."""
        assert self._model is not None
        return self._model

    def show_shelf(self, shelf: Shelf, text: str = "") -> None:
        """Show a kind of part."""
        self._model = PartModel(shelf)
        self._model.text = text
        self.setModel(self._model)
        head = self.horizontalHeader()
        for section, column in enumerate(shelf.columns):
            title = tokens.width(heading(column), tokens.LABEL, 600) + 2 * _PAD + 14
            head.resizeSection(section, max(column.width, int(title + 0.99)))
        self.setSortingEnabled(True)
        self.sortByColumn(*_first_order(shelf))
        self._model.modelReset.connect(self._first)
        self.selectionModel().currentChanged.connect(self._moved)
        self._first()

    def filter(self, text: str) -> None:
        """Show the parts that have every word."""
        self.parts.filter(text)

    def show_part(self, id: str) -> None:
        """Put the cursor on a part, where it is in the list."""
        for row in range(self.parts.rowCount()):
            if self.parts.record(row).id == id:
                self.setCurrentIndex(self.parts.index(row, 0))
                return

    def _first(self) -> None:
        """Put the cursor on the first row, or say that there is none."""
        if self.parts.rowCount():
            self.setCurrentIndex(self.parts.index(0, 0))
            self.scrollToTop()
        else:
            self.chosen.emit(None, 0)

    def _moved(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chosen.emit(self.parts.record(index.row()), index.column())
            self.viewport().update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        column = self.currentIndex().column()
        if event.modifiers() & Qt.KeyboardModifier.AltModifier and column >= 0:
            order = {
                Qt.Key.Key_Up: Qt.SortOrder.AscendingOrder,
                Qt.Key.Key_Down: Qt.SortOrder.DescendingOrder,
            }.get(Qt.Key(event.key()))
            if order is not None:
                self.sortByColumn(column, order)
                return
        super().keyPressEvent(event)


class _Head(QHeaderView):
    """Headings in tokens, with the arrow of the order."""

    def __init__(self, parent: QTableView) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self.setSectionsClickable(True)
        self.setHighlightSections(False)
        self.setFixedHeight(HEAD)
        self.setAccessibleName(tr("pc.catalog.headings"))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def paintSection(self, painter: QPainter, rect: QRect, logical: int) -> None:
        model = self.model()
        if not isinstance(model, PartModel) or not rect.isValid():
            return
        column = model.shelf.columns[logical]
        painter.save()
        painter.fillRect(rect, tokens.colour("surface"))
        painter.setPen(tokens.colour("line2"))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        on = logical == model.column
        inner = rect.adjusted(_PAD, 0, -_PAD, 0)
        title, unit = column.title, f", {column.unit}" if column.unit else ""
        wide = tokens.width(title, tokens.LABEL, 600) + tokens.width(unit, tokens.LABEL)
        x = inner.right() - int(wide) if column.number else inner.left()
        if on and column.number:
            x -= 14
        for text, weight, ink in ((title, 600, "text"), (unit, 400, "text3")):
            painter.setFont(tokens.font(tokens.LABEL, weight))
            painter.setPen(tokens.colour(ink if on else "text2" if ink == "text" else ink))
            painter.drawText(x, inner.top(), inner.right() - x, inner.height(),
                             Qt.AlignmentFlag.AlignVCenter, text)  # fmt: skip
            x += int(tokens.width(text, tokens.LABEL, weight))
        if on:
            arrow = "caret-down" if model.descending else "caret-up"
            draw_icon(painter, arrow, x + 4, rect.center().y() - 5, 11, "accent")
        painter.restore()

    def sectionSizeFromContents(self, _logical: int) -> QSize:
        return QSize(60, HEAD)


class _Cells(QStyledItemDelegate):
    """A value as text; what is unknown, and what little speaks for, look different."""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        model = index.model()
        assert isinstance(model, PartModel)
        column, record = model.shelf.columns[index.column()], model.record(index.row())
        rect = option.rect
        painter.save()
        self._ground(painter, option, index)
        text, low = column.text(record), is_low(column, record)
        inner = rect.adjusted(_PAD, 0, -_PAD, 0)
        right = column.number
        if not text:
            painter.setFont(tokens.font(tokens.LABEL))
            painter.setPen(tokens.colour("text3"))
            painter.drawText(inner, _align(column), "–")
            painter.restore()
            return
        first = index.column() == 0
        px, weight = (tokens.BODY, 500) if first else (tokens.LABEL, 400)
        metrics = tokens.metrics(px, weight)
        room = inner.width() - (_MARK if low else 0)
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        wide = int(tokens.width(text, px, weight))
        x = inner.right() - wide if right else inner.left() + (_MARK if low else 0)
        if low:
            draw_icon(painter, "warning", x - _MARK, rect.center().y() - 5, 11, "tight")
        painter.setFont(tokens.font(px, weight))
        painter.setPen(tokens.colour("text" if first or not low else "text2"))
        painter.drawText(x, inner.top(), wide + 2, inner.height(),
                         Qt.AlignmentFlag.AlignVCenter, text)  # fmt: skip
        painter.restore()

    def _ground(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        view = self.parent()
        assert isinstance(view, PartTable)
        rect, current = option.rect, view.currentIndex()
        if index.row() == current.row():
            painter.fillRect(rect, tokens.colour("accentWash"))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, tokens.colour("sunken"))
        painter.setPen(tokens.colour("line"))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        if index.row() == current.row() and index.column() == current.column():
            painter.setPen(tokens.colour("accent" if view.hasFocus() else "accentLine"))
            painter.drawRect(rect.adjusted(1, 1, -2, -2))

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(60, ROW)
