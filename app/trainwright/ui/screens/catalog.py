"""The catalog: every part of every kind, filtered as one types, each value with its source."""

from typing import get_args

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from trainwright.catalog import list_parts
from trainwright.catalog.part_kinds import PartKind
from trainwright.messages import Message
from trainwright.ui import tokens
from trainwright.ui.columns import ICONS, Record, Shelf, kind_of
from trainwright.ui.i18n import Text, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Label, Painted, Surface
from trainwright.ui.widgets.partpane import PartPane
from trainwright.ui.widgets.parttable import PartTable
from trainwright.ui.widgets.tabs import Tabs

KINDS: tuple[PartKind, ...] = get_args(PartKind)


class CatalogScreen(QWidget):
    """Tabs of kinds, a table, and the part with the cursor."""

    chosen = Signal(object)
    """A part that somebody wants in the plan."""

    def __init__(self, extra: tuple[tuple[str, Text, QWidget], ...] = ()) -> None:
        super().__init__()
        self._shelves: dict[PartKind, Shelf] = {}
        self._extra = {key: widget for key, _, widget in extra}
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        kinds = [(kind, Message.of(f"pc.kind.{kind}"), ICONS[kind]) for kind in KINDS]
        more = [(key, text, "") for key, text, _ in extra]
        self.tabs = Tabs((*kinds, *more), "gpu", name=Message.of("pc.catalog.kinds"))
        self.tabs.chosen.connect(self.show_tab)
        column.addWidget(self.tabs)
        self._parts = QWidget()
        column.addWidget(self._parts, 1)
        for widget in self._extra.values():
            widget.hide()
            column.addWidget(widget, 1)
        self._lay_out()
        self.show_tab("gpu")

    def _lay_out(self) -> None:
        line = QHBoxLayout(self._parts)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        left = QVBoxLayout()
        left.setContentsMargins(0, 0, 0, 0)
        left.setSpacing(0)
        line.addLayout(left, 1)
        self.field = SearchField()
        self.field.textChanged.connect(self._filter)
        self._count = Label(px=tokens.LABEL, colour="text2")
        bar = Surface("bottom", padding=(tokens.L, tokens.S, tokens.L, tokens.S))
        inner = QHBoxLayout()
        inner.setSpacing(tokens.M)
        inner.addWidget(self.field, 1)
        inner.addWidget(self._count)
        inner.addWidget(Legend())
        bar.column.addLayout(inner)
        left.addWidget(bar)
        self.table = PartTable()
        left.addWidget(self.table, 1)
        self.pane = PartPane()
        line.addWidget(self.pane)
        self.table.chosen.connect(self._show_part)
        self.pane.wanted.connect(self.chosen)

    def show_tab(self, key: str) -> None:
        """Show a kind of part, or what else the catalog offers."""
        self.tabs.show_value(key)
        self._parts.setVisible(key not in self._extra)
        for name, widget in self._extra.items():
            widget.setVisible(name == key)
        if key in self._extra:
            entered = getattr(self._extra[key], "entered", None)
            if entered is not None:
                entered()
            return
        kind = next(kind for kind in KINDS if kind == key)
        self.table.show_shelf(self._shelf(kind), self.field.text())
        self._tell_count()

    def show_part(self, record: Record) -> None:
        """Put the cursor on a part."""
        self.field.clear()
        self.show_tab(kind_of(record))
        self.table.show_part(record.id)

    def _shelf(self, kind: PartKind) -> Shelf:
        if kind not in self._shelves:
            self._shelves[kind] = Shelf(kind, list_parts(kind))
        return self._shelves[kind]

    def _filter(self, text: str) -> None:
        self.table.filter(text)
        self._tell_count()

    def _tell_count(self) -> None:
        assert self.table.shelf is not None
        shown, all = len(self.table.parts.rows), len(self.table.shelf.records)
        id = "pc.catalog.count" if shown == all else "pc.catalog.some"
        self._count.tell(Message.of(id, count=shown, all=all))

    def _show_part(self, record: Record | None, column: int) -> None:
        shelf = self.table.shelf
        field = shelf.columns[column].field if record is not None and shelf is not None else ""
        self.pane.show_part(record, field)


class SearchField(QLineEdit):
    """Filters as one types; composed or decomposed Hangul alike."""

    def __init__(self) -> None:
        super().__init__()
        self.setPlaceholderText(tr("pc.catalog.search"))
        self.setAccessibleName(tr("pc.catalog.search"))
        self.setFixedHeight(tokens.BUTTON_HEIGHT)
        self.setMinimumWidth(220)
        self.setFrame(False)
        self.setClearButtonEnabled(True)
        self.setFont(tokens.font())
        self.setStyleSheet("background:transparent;border:0")
        self.setTextMargins(30, 0, 6, 0)

    def paintEvent(self, event: object) -> None:
        with Drawing(self) as d:
            d.field(self.width(), self.height(), free=False, focus=self.hasFocus())
            d.icon("magnifying-glass", 10, (self.height() - 15) / 2, 15, "text3")
        super().paintEvent(event)  # type: ignore[arg-type]


class Legend(Painted):
    """What the marks of the table mean."""

    def __init__(self) -> None:
        self._text = tr("pc.catalog.legend")
        super().__init__(self._text, height=20)
        self.setFixedWidth(int(tokens.width(self._text, tokens.LABEL)) + 20)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.icon("warning", 0, (h - 12) / 2, 12, "tight")
        d.write(17, 0, w - 17, h, self._text, px=tokens.LABEL, colour="text2")
