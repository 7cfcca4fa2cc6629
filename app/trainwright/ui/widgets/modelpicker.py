"""The model picker: areas at the left, models with what they take of the GPU, your own file."""

from collections.abc import Callable, Iterator
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from trainwright.profile.presets import AREAS
from trainwright.ui import tokens
from trainwright.ui.glance import Glance, Model, matching
from trainwright.ui.i18n import tr
from trainwright.ui.paint import STATE_ICON, Drawing, draw_icon
from trainwright.ui.tasks import Cancellable
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Label
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.picker import Picker

WIDE, HIGH = 760, 520
ROW = 52
"""Pixels; assumed to suit."""

Glancing = Callable[[list[str]], Iterator[Glance]]
"""From ids to glances; runs off the UI thread."""

_MODEL, _GLANCE = Qt.ItemDataRole.UserRole, Qt.ItemDataRole.UserRole + 1
_NEW_FAMILY = Qt.ItemDataRole.UserRole + 2


class ModelPicker(Picker):
    """Opens the models; the palette's plain search is not enough for so many."""

    file_wanted = Signal()

    def __init__(self, glancing: Glancing, recent: Callable[[], tuple[str, ...]]) -> None:
        super().__init__(
            lambda _text: (), name=tr("ui.key.model"), icon="cube", hint=tr("ui.picker.model")
        )
        self._glancing = glancing
        self._recent = recent

    def open(self) -> None:
        """Open the models below the button, within the screen."""
        popup = ModelPopup(self._glancing, self._recent(), self)
        popup.chosen.connect(self.chosen)
        popup.file_wanted.connect(self.file_wanted)
        place = self.mapToGlobal(QPoint(0, self.height() + 4))
        room = self.screen().availableGeometry()
        high = min(HIGH, room.bottom() - 8 - max(room.top(), min(place.y(), room.bottom() - 360)))
        popup.resize(min(WIDE, room.width() - 16), high)
        x = min(place.x(), room.right() - popup.width() - 8)
        y = min(place.y(), room.bottom() - popup.height() - 8)
        popup.move(max(room.left(), x), max(room.top(), y))
        popup.show()
        popup.field.setFocus()


class ModelPopup(QFrame):
    """Search, areas, models; closes on a choice, Escape or a click elsewhere."""

    chosen = Signal(str)
    file_wanted = Signal()

    def __init__(self, glancing: Glancing, recent: tuple[str, ...], parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAccessibleName(tr("ui.picker.model"))
        self._recent = recent
        self._rows = Rows(self)
        self.field = QLineEdit()
        self.field.setPlaceholderText(tr("ui.picker.model"))
        self.field.setAccessibleName(tr("ui.picker.model"))
        self.field.setFixedHeight(34)
        self.field.setFrame(False)
        self.field.setTextMargins(8, 0, 8, 0)
        self.field.setFont(tokens.font())
        self.areas = _list(tr("ui.models.areas"))
        self.areas.setModel(Areas((*_areas(), "recent") if recent else _areas(), self))
        self.areas.setItemDelegate(AreaDelegate(self.areas))
        self.areas.setFixedWidth(self._areas_width())
        self.list = _list(tr("ui.key.model"))
        self.list.setModel(self._rows)
        self.list.setItemDelegate(ModelDelegate(self.list))
        self.list.setUniformItemSizes(True)
        self._lay_out()
        self.field.textChanged.connect(self._fill)
        self.field.installEventFilter(self)
        self.list.clicked.connect(self._choose)
        self.list.activated.connect(self._choose)
        self.areas.setCurrentIndex(self.areas.model().index(0, 0))
        self.areas.selectionModel().currentChanged.connect(lambda *_: self._fill())
        self._fill()
        self._glancer = Cancellable(self)
        self._glancer.progressed.connect(self._rows.take)
        self._glancer.start(_glance_all(glancing))

    def _lay_out(self) -> None:
        own = Button(tr("ui.models.your-file"), "secondary", "file-plus", small=True)
        own.clicked.connect(self._want_file)
        foot = QHBoxLayout()
        foot.setContentsMargins(8, 6, 8, 4)
        foot.addWidget(Label(tr("ui.models.your-file.below"), px=tokens.LABEL, colour="text3"), 1)
        foot.addWidget(own)
        sides = QHBoxLayout()
        sides.setSpacing(0)
        sides.addWidget(self.areas)
        sides.addLayout(self._list_or_nothing(), 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(6, 6, 6, 6)
        column.setSpacing(4)
        column.addWidget(self.field)
        column.addLayout(sides, 1)
        column.addLayout(foot)

    def _list_or_nothing(self) -> QVBoxLayout:
        self._nothing = Label(tr("ui.picker.nothing"), colour="text3")
        self._nothing.setContentsMargins(12, 10, 12, 0)
        found = QVBoxLayout()
        found.setSpacing(0)
        found.addWidget(self._nothing)
        found.addWidget(self.list, 1)
        return found

    def _areas_width(self) -> int:
        names = (tr(f"ui.models.area.{area}") for area in ("recent", *_areas()))
        return int(max(tokens.width(name, tokens.BODY, 500) for name in names)) + 30

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            d.fillRect(self.rect(), tokens.colour("surface"))
            d.box(0, 0, w, h, None, "line2", radius=0)
            d.rule(1, 43, w - 1, 43)
            x = self.areas.geometry().right() + 2
            d.rule(x, 44, x, self.areas.geometry().bottom())
            d.rule(1, self.areas.geometry().bottom() + 2, w - 1, self.areas.geometry().bottom() + 2)

    def closeEvent(self, event: Any) -> None:
        self._glancer.cancel()
        super().closeEvent(event)

    def _fill(self, _text: str = "") -> None:
        area = str(self.areas.currentIndex().data(_MODEL) or "all")
        text = self.field.text()
        # Typing searches all models, whatever area is shown.
        self._rows.show_models(matching(text, "all" if text.strip() else area, self._recent))
        self._nothing.setVisible(not self._rows.rowCount())
        if self._rows.rowCount():
            self.list.setCurrentIndex(self._rows.index(0, 0))

    def _choose(self, index: QModelIndex) -> None:
        model = index.data(_MODEL)
        if model is not None:
            self.close()
            self.chosen.emit(model.id)

    def _want_file(self) -> None:
        self.close()
        self.file_wanted.emit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.field and isinstance(event, QKeyEvent):
            pressed = event.type() == QEvent.Type.KeyPress
            return pressed and self._key(Qt.Key(event.key()))
        return super().eventFilter(watched, event)

    def _key(self, key: Qt.Key) -> bool:
        steps = {
            Qt.Key.Key_Down: 1,
            Qt.Key.Key_Up: -1,
            Qt.Key.Key_PageDown: 8,
            Qt.Key.Key_PageUp: -8,
        }
        if key in steps:
            row = self.list.currentIndex().row() + steps[key]
            row = min(max(0, row), self._rows.rowCount() - 1)
            self.list.setCurrentIndex(self._rows.index(row, 0))
            return True
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose(self.list.currentIndex())
            return True
        return False


def _areas() -> tuple[str, ...]:
    return ("all", *AREAS)


def _list(name: str) -> QListView:
    made = QListView()
    made.setAccessibleName(name)
    made.setFrameShape(QFrame.Shape.NoFrame)
    made.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
    made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    made.setMouseTracking(True)
    return made


def _glance_all(glancing: Glancing) -> Callable[[Callable[[Any], None], Any], None]:
    """Return a job that reports each glance as it comes, until it is cancelled."""

    def job(report: Callable[[Any], None], cancelled: Any) -> None:
        ids = [model.id for model in matching("", "all", ())]
        for glance in glancing(ids):
            if cancelled.is_set():
                return
            report(glance)

    return job


Index = QModelIndex | QPersistentModelIndex


class Areas(QAbstractListModel):
    """What models work on, and the recent ones."""

    def __init__(self, areas: tuple[str, ...], parent: QObject) -> None:
        super().__init__(parent)
        self._areas = areas

    def rowCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(self._areas)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        area = self._areas[index.row()]
        if role == _MODEL:
            return area
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return tr(f"ui.models.area.{area}")
        return None


class Rows(QAbstractListModel):
    """The models that match, each with its glance once it is known."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._models: list[Model] = []
        self._glances: dict[str, Glance] = {}

    def show_models(self, models: list[Model]) -> None:
        """Show these models."""
        self.beginResetModel()
        self._models = models
        self.endResetModel()

    def take(self, glance: Glance) -> None:
        """Show what a model takes."""
        self._glances[glance.preset] = glance
        for row, model in enumerate(self._models):
            if model.id == glance.preset:
                self.dataChanged.emit(self.index(row, 0), self.index(row, 0))

    def rowCount(self, _parent: Index = QModelIndex()) -> int:  # noqa: B008
        return len(self._models)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._models):
            return None
        model = self._models[index.row()]
        glance = self._glances.get(model.id)
        if role == _MODEL:
            return model
        if role == _GLANCE:
            return glance
        if role == _NEW_FAMILY:
            above = self._models[index.row() - 1] if index.row() else model
            return above.family != model.family
        if role == Qt.ItemDataRole.DisplayRole:
            return model.name
        if role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            known = glance.text if glance else ""
            said = filter(None, (model.name, model.parameters, known, model.description))
            shown = ", ".join(said)
            return plain_tip(shown) if role == Qt.ItemDataRole.ToolTipRole else shown
        return None


class AreaDelegate(QStyledItemDelegate):
    """One area."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: object) -> QSize:
        return QSize(80, 32)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Any) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        selected = _wash(painter, option)
        painter.setFont(tokens.font(tokens.BODY, 500 if selected else 400))
        painter.setPen(tokens.colour("text" if selected else "text2"))
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(option.rect.adjusted(12, 0, -6, 0), flags, index.data())
        painter.restore()


class ModelDelegate(QStyledItemDelegate):
    """Name and description; parameters and what it takes of the GPU; a line above each family."""

    def sizeHint(self, _option: QStyleOptionViewItem, _index: object) -> QSize:
        return QSize(200, ROW)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Any) -> None:
        model: Model = index.data(_MODEL)
        glance: Glance | None = index.data(_GLANCE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        _wash(painter, option)
        rect = option.rect.adjusted(12, 6, -12, -6)
        right = tokens.width(
            tr("ui.models.of", used="888.8", total="888.8", unit="GiB"), tokens.LABEL
        )
        right = int(max(right, tokens.width(tr("ui.models.traced-when-chosen"), tokens.LABEL))) + 26
        if index.data(_NEW_FAMILY):
            painter.setPen(tokens.colour("line"))
            painter.drawLine(option.rect.topLeft(), option.rect.topRight())
        top = rect.adjusted(0, 0, -right - 14, -rect.height() // 2)
        below = rect.adjusted(0, rect.height() // 2, -right - 14, 0)
        _text(painter, below, model.description, tokens.LABEL, "text3")
        wide = int(tokens.width(model.parameters, tokens.LABEL)) + 12
        _text(painter, top, model.parameters, tokens.LABEL, "text3", right=True)
        _text(painter, top.adjusted(0, 0, -wide, 0), model.name, tokens.BODY, "text", 500)
        if glance is not None:
            _draw_glance(painter, rect.adjusted(rect.width() - right, 0, 0, 0), glance)
        painter.restore()


def _wash(painter: QPainter, option: QStyleOptionViewItem) -> bool:
    """Draw the face of a row; return whether it is the chosen one."""
    selected = bool(option.state & QStyle.StateFlag.State_Selected)
    if selected or option.state & QStyle.StateFlag.State_MouseOver:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tokens.colour("accentWash" if selected else "sunken"))
        painter.drawRoundedRect(option.rect.adjusted(4, 1, -4, -1), 5, 5)
    return selected


def _text(
    painter: QPainter,
    rect: Any,
    text: str,
    px: int,
    colour: str,
    weight: int = 400,
    *,
    right: bool = False,
) -> None:
    painter.setFont(tokens.font(px, weight))
    painter.setPen(tokens.colour(colour))
    side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
    shown = tokens.metrics(px, weight).elidedText(
        text, Qt.TextElideMode.ElideRight, float(rect.width())
    )
    painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | side, shown)


_STATE = {
    **{"fits": "fits", "tight": "tight", "queues": "tight", "spills": "no", "no": "no"},
    "cannot-check": "na",
}


def _draw_glance(painter: QPainter, rect: Any, glance: Glance) -> None:
    """Draw state, bytes of bytes, and the share of the card as a bar that a full card ends."""
    state = _STATE[glance.verdict.value] if glance.verdict is not None else "na"
    draw_icon(painter, STATE_ICON[state], rect.left(), rect.top() + 1, 16, f"{state}Fill")
    top = rect.adjusted(22, 0, 0, -rect.height() // 2)
    _text(painter, top, glance.text, tokens.LABEL, "text2" if state != "na" else "text3")
    if glance.verdict is None:
        return
    y, wide = rect.top() + rect.height() * 3 // 4, rect.width() - 22
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(tokens.colour("line"))
    painter.drawRoundedRect(rect.left() + 22, y - 2, wide, 5, 2, 2)
    painter.setBrush(tokens.colour(f"{state}Fill"))
    painter.drawRoundedRect(rect.left() + 22, y - 2, int(wide * min(1.0, glance.share)), 5, 2, 2)
