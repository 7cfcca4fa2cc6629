"""The derivation of a figure as a tree: keyboard, screen reader, and rows that wrap."""

from collections import Counter
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QPainter, QResizeEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QFrame,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
)

from trainwright.explain import Quantity
from trainwright.ui import addresses, tokens
from trainwright.ui.figures import figure, sentence, sourced
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import draw_icon, draw_mark
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import slim

QUANTITY = Qt.ItemDataRole.UserRole + 1
_Index = QModelIndex | QPersistentModelIndex


class DerivationTree(QTreeView):
    """The derivation; arrow keys walk and open it."""

    def __init__(self) -> None:
        super().__init__()
        self._model = QStandardItemModel(self)
        self._open: set[str] = set()
        self.setModel(self._model)
        self.setHeaderHidden(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setItemDelegate(DerivationDelegate(self))
        self.setAccessibleName(tr("ui.explain.tree"))
        self.setVerticalScrollMode(QTreeView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setIndentation(14)
        self.setRootIsDecorated(False)
        self.setExpandsOnDoubleClick(False)
        self.setMouseTracking(True)
        slim(self.verticalScrollBar())
        self.setEditTriggers(QTreeView.EditTrigger.NoEditTriggers)
        self.clicked.connect(self._toggle)
        self.expanded.connect(self._opened)
        self.collapsed.connect(self._closed)
        self._top = ""

    def show_quantity(self, quantity: Quantity | None, heads: tuple[Quantity, ...] = ()) -> None:
        """Show another derivation, below ``heads``; what was open stays open."""
        here = self.currentIndex().data(Qt.ItemDataRole.UserRole)
        self._model.clear()
        if quantity is None:
            return
        if quantity.name.id != self._top:
            self._top = quantity.name.id
            self._open = set(_largest(quantity))
        for part, path in _paths((*heads, *(quantity.parts or (quantity,))), ""):
            self._model.appendRow(self._item(part, path))
        self._restore(here)

    def _item(self, quantity: Quantity, path: str) -> QStandardItem:
        item = QStandardItem(say(quantity.name))
        item.setData(path, Qt.ItemDataRole.UserRole)
        item.setData(quantity, QUANTITY)
        spoken = [sentence(quantity), quantity.formula, sourced(quantity)]
        item.setData(", ".join(s for s in spoken if s), Qt.ItemDataRole.AccessibleTextRole)
        item.setToolTip(plain_tip("\n".join(_about(quantity))))
        if quantity.parts:
            item.appendRow(QStandardItem())  # stands for the parts until they are asked for
        return item

    def _fill(self, item: QStandardItem) -> None:
        """Make the rows of a part when it is first opened: most never are."""
        first = item.child(0)
        if not item.hasChildren() or first.data(QUANTITY) is not None:
            return
        item.removeRows(0, 1)
        above = item.data(Qt.ItemDataRole.UserRole)
        for part, path in _paths(item.data(QUANTITY).parts, above):
            item.appendRow(self._item(part, path))

    def _restore(self, here: str | None) -> None:
        self.blockSignals(True)
        self._restore_below(QModelIndex(), here)
        self.blockSignals(False)

    def _restore_below(self, parent: QModelIndex, here: str | None) -> None:
        for row in range(self._model.rowCount(parent)):
            index = self._model.index(row, 0, parent)
            path = index.data(Qt.ItemDataRole.UserRole)
            if path == here and path is not None:
                self.setCurrentIndex(index)
            if path in self._open:
                self._fill(self._model.itemFromIndex(index))
                self.setExpanded(index, True)
                self._restore_below(index, here)

    def _toggle(self, index: QModelIndex) -> None:
        self.setExpanded(index, not self.isExpanded(index))

    def _opened(self, index: QModelIndex) -> None:
        self._fill(self._model.itemFromIndex(index))
        self._open.add(index.data(Qt.ItemDataRole.UserRole))

    def _closed(self, index: QModelIndex) -> None:
        self._open.discard(index.data(Qt.ItemDataRole.UserRole))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()  # names wrap elsewhere, so rows are as high again

    def drawBranches(self, _painter: QPainter, _rect: QRect, _index: _Index) -> None:
        """Draw nothing: the delegate draws the caret."""


def _paths(parts: Sequence[Quantity], above: str) -> Iterator[tuple[Quantity, str]]:
    """Yield parts with their paths; of several by one name, the later ones are numbered."""
    seen: Counter[str] = Counter()
    for part in parts:
        path = f"{above}/{part.name.id}:{part.role}"
        yield part, f"{path}:{seen[path]}" if seen[path] else path
        seen[path] += 1


def _largest(quantity: Quantity) -> Iterator[str]:
    """Yield the paths of the largest part and of the largest below it: opened at first."""
    path, here = "", quantity
    for _ in range(2):
        inside = [part for part in here.parts if part.parts and part.unit == here.unit]
        if not inside:
            return
        here = max(inside, key=lambda part: part.value)
        path = f"{path}/{here.name.id}:{here.role}"
        yield path


def _about(quantity: Quantity) -> list[str]:
    note = say(quantity.note) if quantity.note else ""
    kind = tr(f"ui.kind.{quantity.kind.value}")
    lines = (say(quantity.name), note, quantity.formula, sourced(quantity), kind)
    return [line for line in lines if line]


class DerivationDelegate(QStyledItemDelegate):
    """Rows: caret, colour, name, value, how it is known; formula or source below the name."""

    def __init__(self, tree: QTreeView) -> None:
        super().__init__(tree)
        self._tree = tree

    def sizeHint(self, _option: QStyleOptionViewItem, index: _Index) -> QSize:
        if index.data(QUANTITY) is None:
            return QSize(200, 1)
        return QSize(200, self._row(index, 0).height)

    def _row(self, index: _Index, y: int) -> "RowLayout":
        level, above = 0, index.parent()
        while above.isValid():
            level, above = level + 1, above.parent()
        left = level * self._tree.indentation()
        return RowLayout(index.data(QUANTITY), left, y, self._tree.viewport().width(), level == 0)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        y, full = option.rect.y(), self._tree.viewport().width()
        if index.data(QUANTITY) is None:
            return
        row = self._row(index, y)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(0, y, full, row.height, tokens.colour("sunken"))
        if self._tree.hasFocus() and index == self._tree.currentIndex():
            painter.setPen(tokens.colour("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(1, y + 1, full - 3, row.height - 3, 4, 4)
        if row.top and index.row():
            painter.setPen(tokens.colour("line"))
            painter.drawLine(0, y, full, y)
        row.paint(painter, is_open=self._tree.isExpanded(index))
        painter.restore()


class RowLayout:
    """Where the parts of one row stand; names and formulas wrap rather than be cut."""

    def __init__(self, quantity: Quantity, left: int, y: int, full: int, top: bool) -> None:
        self.quantity, self.left, self.y, self.full, self.top = quantity, left, y, full, top
        self._px = tokens.BODY if top else tokens.LABEL
        self._value = str(figure(quantity))
        self._value_width = int(tokens.width(self._value, self._px, 600)) + 1
        self._text_left = left + 15 + (16 if quantity.role in addresses.COLOURS else 0)
        room = full - 26 - self._value_width - self._text_left
        self._name = tokens.wrapped(say(quantity.name), room, self._px, 500)
        below = second_line(quantity)
        self._mono = bool(quantity.formula)
        wide = full - 8 - self._text_left
        self._below = tokens.wrapped(below, wide, tokens.MICRO, mono=self._mono)[:3]

    @property
    def height(self) -> int:
        """Pixels that the row takes."""
        return (9 if self.top else 6) + 17 * len(self._name) + 14 * len(self._below)

    def paint(self, painter: QPainter, *, is_open: bool) -> None:
        """Draw the row."""
        y = self.y + (4 if self.top else 2)
        middle = y + 9
        if self.quantity.parts:
            glyph = "caret-down" if is_open else "caret-right"
            draw_icon(painter, glyph, self.left + 1, middle - 5, 11, "text3")
        if self.quantity.role in addresses.COLOURS:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(tokens.colour(addresses.colour(self.quantity.role)))
            painter.drawRoundedRect(self.left + 16, middle - 5, 10, 10, 2.5, 2.5)
        weight = 600 if self.top and is_open else 500 if self.top else 400
        ink = "text" if self.top else "text2"
        for number, line in enumerate(self._name):
            self._line(painter, self._text_left, y + 17 * number, 18, line, self._px, weight, ink)
        value_left = self.full - 18 - self._value_width
        weight = 600 if self.top else 500
        self._line(painter, value_left, y, 18, self._value, self._px, weight, "text")
        draw_mark(painter, self.full - 12, middle, self.quantity.kind)
        below = y + 17 * len(self._name)
        for number, line in enumerate(self._below):
            self._line(painter, self._text_left, below + 14 * number, 14, line, tokens.MICRO, 400,
                       "text3", mono=self._mono)  # fmt: skip

    def _line(
        self, painter: QPainter, x: int, y: int, height: int, text: str, px: int, weight: int,
        ink: str, *, mono: bool = False,
    ) -> None:  # fmt: skip
        painter.setFont(tokens.font(px, weight, mono))
        painter.setPen(tokens.colour(ink))
        rect = QRect(x, y, self.full - x, height)
        painter.drawText(rect, int(Qt.AlignmentFlag.AlignVCenter), text)


def second_line(quantity: Quantity) -> str:
    """Return the formula of a quantity, or where it comes from."""
    return quantity.formula or sourced(quantity) or (say(quantity.note) if quantity.note else "")
