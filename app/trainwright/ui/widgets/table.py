"""The one table: rows that make their cells when they are shown, sorted where a caller can sort."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
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
from trainwright.ui.paint import draw_icon, laid_out
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import SCROLL_BAR, slim
from trainwright.ui.widgets.copying import offer_copies

Index = QModelIndex | QPersistentModelIndex
ROW, HEAD, PAD, MARK, ARROW = 30, 32, 10, 14, 14
_NO_PARENT = QModelIndex()


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in one cell."""

    text: str = ""
    colour: str = "text"
    icon: str = ""
    icon_colour: str = "text3"
    weight: int = 400
    px: int = tokens.LABEL
    spoken: str = ""
    """For screen readers, where it is more than the text."""


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
    unit: str = ""
    tip: Text = ""

    @property
    def text(self) -> str:
        """The title with its unit."""
        return f"{say(self.title)}, {self.unit}" if self.unit else say(self.title)

    @property
    def side(self) -> Qt.AlignmentFlag:
        """Where its texts stand."""
        side = Qt.AlignmentFlag.AlignRight if self.right else Qt.AlignmentFlag.AlignLeft
        return side | Qt.AlignmentFlag.AlignVCenter


Cells = Callable[[Any], Sequence[Cell]]
"""Makes the cells of a row."""
Arrange = Callable[[int, bool], Sequence[Any]]
"""Returns the rows by a column, descending or not."""
NOTHING = Cell()


class TableModel(QAbstractTableModel):
    """Rows of any kind. One model stays with its view, whatever it shows.

    Every index, column and role has an answer: Qt asks for those of what was shown before, and an
    exception in the middle of such a call leaves the view in pieces.
    """

    def __init__(self) -> None:
        super().__init__()
        self.headings: Sequence[Heading] = ()
        self.rows: Sequence[Any] = ()
        self.column, self.descending = -1, False
        self._cells: Cells = lambda _row: ()
        self._arrange: Arrange | None = None
        self._made: tuple[int, Sequence[Cell]] = (-1, ())
        """The row whose cells were made last: a view asks for all of them in turn."""

    def show(
        self,
        headings: Sequence[Heading],
        rows: Sequence[Any],
        cells: Cells,
        arrange: Arrange | None = None,
    ) -> None:
        """Show other rows, in the order given."""
        self.beginResetModel()
        self.headings, self._cells, self._arrange = headings, cells, arrange
        self.column, self.descending = -1, False
        self._take(rows)
        self.endResetModel()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        if self._arrange is not None and 0 <= column < len(self.headings):
            self.column, self.descending = column, order == Qt.SortOrder.DescendingOrder
            self.arrange()

    def arrange(self) -> None:
        """Ask for the rows again: what they depend on changed."""
        if self._arrange is not None:
            rows = self._arrange(max(0, self.column), self.descending)
            self.beginResetModel()
            self._take(rows)
            self.endResetModel()

    def _take(self, rows: Sequence[Any]) -> None:
        self.rows, self._made = rows, (-1, ())

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.rows)

    def columnCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self.headings)

    def heading(self, column: int) -> Heading | None:
        """Return a column; None where there is none."""
        return self.headings[column] if 0 <= column < len(self.headings) else None

    def row(self, number: int) -> Any:
        """Return a row; None where there is none."""
        return self.rows[number] if 0 <= number < len(self.rows) else None

    def cell(self, index: Index) -> Cell:
        """Return what stands in a cell; nothing where there is none."""
        row, column = index.row(), index.column()
        if not 0 <= row < len(self.rows):
            return NOTHING
        if self._made[0] != row:
            self._made = (row, self._cells(self.rows[row]))
        cells = self._made[1]
        return cells[column] if 0 <= column < len(cells) else NOTHING

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        heading = self.heading(index.column())
        if heading is None or self.row(index.row()) is None:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self.cell(index).text
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(self.cell(index).text)
            case Qt.ItemDataRole.AccessibleTextRole:
                cell = self.cell(index)
                return f"{heading.text}: {cell.spoken or cell.text}"
            case Qt.ItemDataRole.TextAlignmentRole:
                return heading.side
        return None

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        heading = self.heading(section)
        if heading is None or orientation != Qt.Orientation.Horizontal:
            return None
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return heading.text
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tip(say(heading.tip)) or None
        return None


class Table(QTableView):
    """The view; rows are chosen whole. Its heads sort where its rows can be sorted."""

    def __init__(self, name: Text, *, framed: bool = False) -> None:
        super().__init__()
        self.framed = framed
        """Whether the cell with the cursor has a frame, for what says more about a cell."""
        self.parts = TableModel()
        self.setModel(self.parts)
        self.setAccessibleName(say(name))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setItemDelegate(_Cells(self))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setMouseTracking(True)
        self.setCornerButtonEnabled(False)
        self.setHorizontalHeader(_Head(self))
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(ROW)
        slim(self.verticalScrollBar())
        slim(self.horizontalScrollBar())
        self.selectionModel().currentChanged.connect(self._moved)
        self.copies = offer_copies(self, self.texts, self.heads)
        """Makes the menu that copies all rows."""

    def heads(self) -> list[str]:
        """Return the titles of the columns that are shown."""
        return [self.parts.headings[section].text for section in self._shown()]

    def texts(self) -> list[list[str]]:
        """Return all rows as texts, in the order shown."""
        index, columns = self.parts.index, self._shown()
        rows = range(self.parts.rowCount())
        return [[self.parts.cell(index(row, column)).text for column in columns] for row in rows]

    def _shown(self) -> list[int]:
        return [at for at in range(len(self.parts.headings)) if not self.isColumnHidden(at)]

    def _widen(self) -> None:
        """Give each column its width, or more where its title needs it."""
        head = self.horizontalHeader()
        for section, heading in enumerate(self.parts.headings):
            title = tokens.width(heading.text, tokens.LABEL, 600) + 2 * PAD
            title += ARROW if self.isSortingEnabled() else 0
            head.resizeSection(section, max(heading.width, int(title + 1)))

    def _moved(self, _index: QModelIndex) -> None:
        self.viewport().update()  # the whole row shows that it has the cursor


class RowTable(Table):
    """A short table in a card, as high as its rows need."""

    chosen = Signal(int)
    """The row that has the cursor; -1 where there is none."""

    def __init__(self, name: Text, headings: Sequence[Heading], height: int) -> None:
        super().__init__(name)
        self._headings = headings
        self._highest = height
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.show_rows((), lambda _row: ())

    def show_rows(self, rows: Sequence[Any], cells: Cells) -> None:
        """Show other rows; the cursor stays on its row where there still is one."""
        before = max(0, self.row)
        self.parts.show(self._headings, rows, cells)
        self._widen()
        self._make_room()
        if rows:
            self.setCurrentIndex(self.parts.index(min(before, len(rows) - 1), 0))
        else:
            self.chosen.emit(-1)

    def take_room(self, height: int) -> None:
        """Take at most a height."""
        self._highest = height
        self._make_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        """Leave out optional columns, the last first, until the others have their widths.

        Where that is not enough, columns keep their widths and the table scrolls.
        """
        left = self.viewport().width() - sum(heading.width for heading in self._headings)
        for section in reversed(range(len(self._headings))):
            heading = self._headings[section]
            hidden = heading.optional and left < 0
            left += heading.width if hidden else 0
            self.setColumnHidden(section, hidden)
        fixed, stretch = QHeaderView.ResizeMode.Interactive, QHeaderView.ResizeMode.Stretch
        for section, heading in enumerate(self._headings):
            mode = stretch if heading.stretch and left >= 0 else fixed
            if self.horizontalHeader().sectionResizeMode(section) != mode:
                self.horizontalHeader().setSectionResizeMode(section, mode)
                self.setColumnWidth(section, heading.width)
        shown, scrolls = Qt.ScrollBarPolicy.ScrollBarAlwaysOn, left < 0
        self.setHorizontalScrollBarPolicy(
            shown if scrolls else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        rows = HEAD + max(1, self.parts.rowCount()) * ROW + 2 + (SCROLL_BAR if scrolls else 0)
        self.setFixedHeight(min(self._highest, rows))

    @property
    def row(self) -> int:
        """The row that has the cursor; -1 where there is none."""
        return self.currentIndex().row()

    def _moved(self, index: QModelIndex) -> None:
        super()._moved(index)
        self.chosen.emit(index.row())


class _Head(QHeaderView):
    """Headings in tokens, with the arrow of the order."""

    def __init__(self, parent: Table) -> None:
        super().__init__(Qt.Orientation.Horizontal, parent)
        self._table = parent
        self.setAccessibleName(parent.accessibleName())
        self.setHighlightSections(False)
        self.setFixedHeight(HEAD)
        self.setMinimumSectionSize(40)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def paintSection(self, painter: QPainter, rect: QRect, logical: int) -> None:
        model = self._table.parts
        heading = model.heading(logical)
        if heading is None or not rect.isValid():
            return
        painter.save()
        painter.fillRect(rect, tokens.colour("surface"))
        painter.setPen(tokens.colour("line2"))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        on = logical == model.column
        inner = rect.adjusted(PAD, 0, -PAD, 0)
        title, unit = say(heading.title), f", {heading.unit}" if heading.unit else ""
        x = inner.left()
        if heading.right:
            wide = tokens.width(title, tokens.LABEL, 600) + tokens.width(unit, tokens.LABEL)
            x = inner.right() - int(wide) - (ARROW if on else 0)
        for text, weight, ink in ((title, 600, "text2"), (unit, 400, "text3")):
            painter.setFont(tokens.font(tokens.LABEL, weight))
            painter.setPen(tokens.colour("text" if on and text is title else ink))
            room = inner.right() - x + 1
            shown = tokens.metrics(tokens.LABEL, weight).elidedText(
                text, Qt.TextElideMode.ElideRight, room
            )
            painter.drawText(x, inner.top(), room, inner.height(),
                             Qt.AlignmentFlag.AlignVCenter, shown)  # fmt: skip
            x += int(tokens.width(text, tokens.LABEL, weight))
        if on:
            arrow = "caret-down" if model.descending else "caret-up"
            draw_icon(painter, arrow, x + 4, rect.center().y() - 5, 11, "accent")
        painter.restore()

    def sectionSizeFromContents(self, _logical: int) -> QSize:
        return QSize(60, HEAD)


class _Cells(QStyledItemDelegate):
    """A text with an icon before it, cut with an ellipsis where it is wider than its column."""

    def __init__(self, parent: Table) -> None:
        super().__init__(parent)
        self._table = parent

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        heading = self._table.parts.heading(index.column())
        if heading is None:
            return
        cell, rect = self._table.parts.cell(index), option.rect
        painter.save()
        self._ground(painter, option, index)
        inner = rect.adjusted(PAD, 0, -PAD, 0)
        room = inner.width() - (MARK if cell.icon else 0)
        text, wide = cell.text, tokens.width(cell.text, cell.px, cell.weight)
        if wide > room:
            metrics = tokens.metrics(cell.px, cell.weight)
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
            wide = tokens.width(text, cell.px, cell.weight)
        if cell.icon:
            x = inner.right() - int(wide) - MARK if heading.right else inner.left()
            draw_icon(painter, cell.icon, x, rect.center().y() - 5, 11, cell.icon_colour)
            inner.setLeft(x + MARK)
        painter.setFont(tokens.font(cell.px, cell.weight))
        painter.setPen(tokens.colour(cell.colour))
        laid = laid_out(text, cell.px, cell.weight, mono=False)
        left = inner.right() + 1 - wide if heading.right else inner.left()
        top = inner.top() + (inner.height() - laid.size().height()) / 2
        painter.drawStaticText(QPointF(left, top), laid)
        painter.restore()

    def _ground(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect, current = option.rect, self._table.currentIndex()
        on, focus = index.row() == current.row(), self._table.hasFocus()
        if on:
            painter.fillRect(rect, tokens.colour("accentWash"))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, tokens.colour("sunken"))
        painter.setPen(tokens.colour("accentLine" if on and focus else "line"))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
        if self._table.framed and on and index.column() == current.column():
            painter.setPen(tokens.colour("accent" if focus else "accentLine"))
            painter.drawRect(rect.adjusted(1, 1, -2, -2))

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(60, ROW)
