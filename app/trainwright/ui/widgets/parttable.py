"""The table of a kind's parts: filtered and sorted as one types."""

from collections.abc import Sequence
from functools import partial

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent

from trainwright.messages import Message
from trainwright.ui import tokens
from trainwright.ui.columns import Column, Record, Shelf
from trainwright.ui.i18n import tr
from trainwright.ui.widgets.table import Cell, Heading, Table


class PartTable(Table):
    """A click on a heading sorts, and so does Alt+Up or Alt+Down on a cell."""

    chosen = Signal(object, int)
    """(record, column) of the cell that has the cursor; None where no row is left."""

    def __init__(self) -> None:
        super().__init__(Message.of("pc.catalog.table"), framed=True)
        self.setAccessibleDescription(tr("pc.catalog.table.keys"))
        self.horizontalHeader().setSectionsClickable(True)
        self.setSortingEnabled(True)
        self.shelf: Shelf | None = None
        self.text = ""
        self.parts.modelReset.connect(self._first)

    def show_shelf(self, shelf: Shelf, text: str = "") -> None:
        """Show a kind of part."""
        self.shelf, self.text = shelf, text
        headings = [_heading(column) for column in shelf.columns]
        self.parts.show(headings, (), partial(_cells, shelf.columns), self._found)
        self._widen()
        self.sortByColumn(*_first_order(shelf))

    def filter(self, text: str) -> None:
        """Show the parts that have every word."""
        self.text = text
        self.parts.arrange()

    def show_part(self, id: str) -> None:
        """Put the cursor on a part, where it is in the list."""
        for row, record in enumerate(self.parts.rows):
            if record.id == id:
                self.setCurrentIndex(self.parts.index(row, 0))
                return

    def _found(self, column: int, descending: bool) -> Sequence[Record]:
        if self.shelf is None:
            return ()
        found = self.shelf.find(self.text, column, descending=descending)
        return [self.shelf.records[index] for index in found]

    def _first(self) -> None:
        """Put the cursor on the first row, or say that there is none."""
        if self.parts.rows:
            self.setCurrentIndex(self.parts.index(0, 0))
            self.scrollToTop()
        else:
            self.chosen.emit(None, 0)

    def _moved(self, index: QModelIndex) -> None:
        super()._moved(index)
        if index.isValid():
            self.chosen.emit(self.parts.row(index.row()), index.column())

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


def is_low(column: Column, record: Record) -> bool:
    """Whether little speaks for a value: one database only, or somebody's memory."""
    found = column.provenance(record)
    return found is not None and found.confidence == "low"


def _heading(column: Column) -> Heading:
    tip = Message.of("pc.catalog.sort-by", name=column.title)
    return Heading(column.title, column.width, column.number, unit=column.unit, tip=tip)


def _cells(columns: Sequence[Column], record: Record) -> tuple[Cell, ...]:
    return tuple(_cell(column, record, name=not number) for number, column in enumerate(columns))


def _cell(column: Column, record: Record, *, name: bool) -> Cell:
    """Return a value; what is unknown, and what little speaks for, look different."""
    text, low = column.text(record), is_low(column, record)
    if not text:
        return Cell("–", "text3", spoken=tr("pc.unknown"))
    px, weight = (tokens.BODY, 500) if name else (tokens.LABEL, 400)
    if not low:
        return Cell(text, weight=weight, px=px)
    spoken = f"{text}, {tr('pc.confidence.low')}"
    return Cell(text, "text" if name else "text2", "warning", "tight", weight, px, spoken)


def _first_order(shelf: Shelf) -> tuple[int, Qt.SortOrder]:
    """Return the order to begin with: the newest first, where most say when they came."""
    for number, column in enumerate(shelf.columns):
        if column.field == "launch":
            known = sum(column.value(record) is not None for record in shelf.records)
            if known > len(shelf.records) / 2:
                return number, Qt.SortOrder.DescendingOrder
    return 0, Qt.SortOrder.AscendingOrder
