"""A choice among many, with a search field: models and GPUs, English or Korean."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListView,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.options import Option
from trainwright.ui.paint import Drawing
from trainwright.ui.tips import plain_tip

Search = Callable[[str], Sequence[Option]]
"""From what was typed to the entries to show, best first."""


class Picker(QPushButton):
    """Looks like a combo box; opens a list with a search field above it."""

    chosen = Signal(str)

    def __init__(self, search: Search, *, name: Text, icon: str, hint: Text) -> None:
        super().__init__()
        self._search = search
        self._icon = icon
        self._hint = hint
        self._title = ""
        self._name = say(name)
        self.setAccessibleName(self._name)
        self.setFixedHeight(tokens.CONTROL_HEIGHT)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self.open)

    def show_value(self, title: str) -> None:
        """Show a value without telling anybody."""
        if title == self._title:
            return
        self._title = title
        self.setAccessibleName(f"{self._name}: {title}")
        self.setToolTip(plain_tip(title))
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(int(tokens.width(self._title, tokens.BODY, 500)) + 64, tokens.CONTROL_HEIGHT)

    def minimumSizeHint(self) -> QSize:
        return QSize(max(140, min(self.sizeHint().width(), 250)), tokens.CONTROL_HEIGHT)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.open()
        else:
            super().keyPressEvent(event)

    def open(self) -> None:
        """Open the list below the button."""
        popup = Popup(self._search, self._name, say(self._hint), self)
        popup.chosen.connect(self.chosen)
        popup.resize(max(340, self.width()), popup.height())
        popup.move(self.mapToGlobal(QPoint(0, self.height() + 4)))
        popup.show()
        popup.field.setFocus()

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            d.field(w, h, free=False, focus=self.hasFocus(), hover=self.underMouse())
            d.icon(self._icon, 10, (h - 16) / 2, 16, "text2")
            d.write(32, 0, w - 60, h, self._title, weight=500)
            d.icon("caret-down", w - 23, (h - 12) / 2, 12, "text3")


_ROWS = 10
"""Rows that a popup shows before it scrolls."""


class Popup(QFrame):
    """Search field and list; closes on a choice, Escape or a click elsewhere."""

    chosen = Signal(str)

    def __init__(self, search: Search, name: str, hint: str, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(name)
        self._search = search
        self.field = QLineEdit()
        self.field.setPlaceholderText(hint)
        self.field.setAccessibleName(hint)
        self.field.setFixedHeight(34)
        self.field.setFrame(False)
        self.field.setTextMargins(8, 0, 8, 0)
        self.field.setFont(tokens.font())
        self._model = QStandardItemModel(self)
        self.list = QListView()
        self.list.setModel(self._model)
        self.list.setItemDelegate(OptionDelegate(self.list))
        self.list.setAccessibleName(name)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setUniformItemSizes(True)
        self.list.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.list.setMouseTracking(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(6, 6, 6, 6)
        layout.setSpacing(4)
        layout.addWidget(self.field)
        layout.addWidget(self.list)
        self.field.textChanged.connect(self._fill)
        self.field.installEventFilter(self)
        self.list.clicked.connect(self._choose)
        self.list.activated.connect(self._choose)
        self._fill("")

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            d.fillRect(self.rect(), tokens.colour("surface"))
            d.box(0, 0, w, h, None, "line2", radius=0)
            d.rule(1, 43, w - 1, 43)

    def refill(self) -> None:
        """Search again for what is typed: the entries changed."""
        self._fill(self.field.text())

    def _fill(self, text: str) -> None:
        self._model.clear()
        for option in self._search(text):
            item = QStandardItem(option.title)
            item.setData(option.key, Qt.ItemDataRole.UserRole)
            item.setData(option.note, Qt.ItemDataRole.UserRole + 1)
            item.setData(f"{option.title}, {option.note}", Qt.ItemDataRole.AccessibleTextRole)
            item.setEditable(False)
            self._model.appendRow(item)
        if self._model.rowCount():
            self.list.setCurrentIndex(self._model.index(0, 0))
        else:
            nothing = QStandardItem(tr("ui.picker.nothing"))
            nothing.setFlags(Qt.ItemFlag.NoItemFlags)
            self._model.appendRow(nothing)
        rows = min(self._model.rowCount(), _ROWS)
        self.resize(self.width(), 54 + 32 * rows)

    def _choose(self, index: QModelIndex) -> None:
        if index.isValid():
            key = index.data(Qt.ItemDataRole.UserRole)
            if not key:
                return
            self.close()
            self.chosen.emit(key)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        pressed = event.type() == QEvent.Type.KeyPress
        if watched is self.field and pressed and isinstance(event, QKeyEvent):
            return self._key(Qt.Key(event.key()))
        return super().eventFilter(watched, event)

    def _key(self, key: Qt.Key) -> bool:
        step = {
            Qt.Key.Key_Down: 1,
            Qt.Key.Key_Up: -1,
            Qt.Key.Key_PageDown: 10,
            Qt.Key.Key_PageUp: -10,
        }.get(key)
        if step is not None:
            row = self.list.currentIndex().row() + step
            row = min(max(0, row), self._model.rowCount() - 1)
            self.list.setCurrentIndex(self._model.index(row, 0))
            return True
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose(self.list.currentIndex())
            return True
        return False


class OptionDelegate(QStyledItemDelegate):
    """Title at the left, note at the right."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: object) -> QSize:
        return QSize(100, 32)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: object) -> None:
        assert isinstance(index, QModelIndex)
        rect = option.rect
        state = option.state
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if state & (QStyle.StateFlag.State_Selected | QStyle.StateFlag.State_MouseOver):
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(tokens.colour("accentWash"))
            painter.drawRoundedRect(rect.adjusted(2, 1, -2, -1), 5, 5)
        note = index.data(Qt.ItemDataRole.UserRole + 1) or ""
        note_width = int(tokens.width(note, tokens.LABEL))
        inner = rect.adjusted(10, 0, -10, 0)
        flags = Qt.AlignmentFlag.AlignVCenter
        painter.setFont(tokens.font(tokens.LABEL))
        painter.setPen(tokens.colour("text3"))
        painter.drawText(inner, flags | Qt.AlignmentFlag.AlignRight, note)
        painter.setFont(tokens.font(tokens.BODY, 500))
        painter.setPen(tokens.colour("text"))
        title = tokens.metrics(tokens.BODY, 500).elidedText(
            index.data(), Qt.TextElideMode.ElideRight, inner.width() - note_width - 12
        )
        painter.drawText(inner, flags | Qt.AlignmentFlag.AlignLeft, title)
        painter.restore()
