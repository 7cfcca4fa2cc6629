"""The parts of a machine, a row each: choose, count, own, take out."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from PySide6.QtCore import QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget

from trainwright.catalog import list_parts
from trainwright.catalog.part_kinds import PartKind
from trainwright.messages.units import number
from trainwright.prices import Currency, PriceBook, Wish, item_of, price_book
from trainwright.ui import tokens
from trainwright.ui.columns import ICONS, Record, brief, searched
from trainwright.ui.i18n import tr
from trainwright.ui.inspection import Inspection, PartRow, errors_with
from trainwright.ui.money import item_amount, kind_and_day
from trainwright.ui.options import Option
from trainwright.ui.paint import STATE_ICON, Drawing
from trainwright.ui.tasks import Latest
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Painted
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Stepper
from trainwright.ui.widgets.picker import Popup

HEIGHT = 50
WATTS, PRICE, COUNT = 60, 128, 72
COUNTED = ("gpu", "memory", "storage")
"""Kinds of which a machine may have several alike."""


class RowWidget(QWidget):
    """One part."""

    chosen = Signal(str, str, str)
    """(kind, id of the new part, id of the part that it replaces)."""
    removed = Signal(str, str)
    counted = Signal(str, str, int)
    owned = Signal(str, bool)

    def __init__(self, row: PartRow, inspection: Inspection) -> None:
        super().__init__()
        self.row = row
        self.setFixedHeight(HEIGHT)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 4, 0, 4)
        line.setSpacing(tokens.S)
        self.part = PartButton(row, inspection)
        self.part.chosen.connect(self._choose)
        line.addWidget(self.part, 1)
        self._add_count(line)
        line.addWidget(Figures(row))
        have = row.record is not None or bool(row.id)
        name = row.record.name if row.record is not None else row.id
        self.own = Button("", "ghost", "house-line" if row.owned else "house",
                          name=tr("pc.machine.owned" if row.owned else "pc.machine.own", name=name),
                          tip=tr("pc.machine.own.tip"), small=True)  # fmt: skip
        self.own.setCheckable(True)
        self.own.setChecked(row.owned)
        self.own.clicked.connect(self._own)
        self.out = Button("", "ghost", "x", name=tr("pc.machine.remove", name=name), small=True)
        self.out.clicked.connect(self._remove)
        for button in (self.own, self.out):
            button.setEnabled(have)
            line.addWidget(button)

    def _add_count(self, line: QHBoxLayout) -> None:
        if self.row.kind in COUNTED and self.row.record is not None:
            name = tr("pc.machine.count", name=self.row.record.name)
            stepper = Stepper(self.row.count, name=name, low=1, high=64)
            stepper.chosen.connect(self._count)
            stepper.setFixedWidth(COUNT)
            line.addWidget(stepper)
        line.addWidget(State(self.row.state))

    def _choose(self, id: str) -> None:
        self.chosen.emit(self.row.kind, id, self.row.id)

    def _remove(self) -> None:
        self.removed.emit(self.row.kind, self.row.id)

    def _count(self, value: int) -> None:
        self.counted.emit(self.row.kind, self.row.id, value)

    def _own(self, on: bool) -> None:
        self.owned.emit(self.row.id, on)


class PartButton(QPushButton):
    """A part by name; opens the list of what may take its place."""

    chosen = Signal(str)

    def __init__(self, row: PartRow, inspection: Inspection) -> None:
        super().__init__()
        self._row = row
        self._inspection = inspection
        self._kind = tr(f"pc.one.{row.kind}.title")
        record = row.record
        if record is not None:
            self._title, below = record.name, brief(record)
        elif row.id:
            self._title, below = row.id, tr("pc.machine.not-in-catalog")
        else:
            self._title, below = tr(f"pc.machine.choose.{row.kind}"), ""
        self._below = f"{self._kind} · {below}" if below else self._kind
        state = tr(f"pc.state.{row.state}") if row.state else ""
        spoken = f"{self._kind}: {self._title}, {below}"
        self.setAccessibleName(f"{spoken}, {state}" if state else spoken)
        self.setToolTip(plain_tip(f"{self._title}\n{self._below}"))
        self.setFixedHeight(HEIGHT - 8)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self.open)

    def sizeHint(self) -> QSize:
        return QSize(260, HEIGHT - 8)

    def minimumSizeHint(self) -> QSize:
        return QSize(180, HEIGHT - 8)

    def open(self) -> None:
        """Open the list below."""
        offers = Offers(self._row, self._inspection, self)
        popup = Popup(offers.search, self._kind, tr("pc.machine.search"), self)
        popup.destroyed.connect(offers.deleteLater)
        offers.changed.connect(popup.refill)
        popup.chosen.connect(self.chosen)
        popup.resize(max(480, self.width()), popup.height())
        popup.move(self.mapToGlobal(QPoint(0, self.height() + 2)))
        popup.show()
        popup.field.setFocus()

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h, row = self.width(), self.height(), self._row
        chosen = row.record is not None
        right = Qt.TextElideMode.ElideRight
        with Drawing(self) as d:
            if not row.id:
                d.box(0, 0, w, h, None, "line2", dashed=True)
            elif self.underMouse():
                d.box(0, 0, w, h, "sunken")
            d.icon(ICONS[row.kind], 8, (h - 18) / 2, 18, "text2" if chosen else "text3")
            room = w - 36 - 24
            title = tokens.metrics(tokens.BODY, 600).elidedText(self._title, right, room)
            d.write(36, 3, room, 18, title, weight=600 if chosen else 400,
                    colour="text" if chosen else "text2")  # fmt: skip
            below = tokens.metrics(tokens.MICRO).elidedText(self._below, right, room)
            d.write(36, 21, room, 16, below, px=tokens.MICRO, colour="text3")
            d.icon("caret-down", w - 20, (h - 12) / 2, 12, "text3")
            if self.hasFocus():
                d.focus_ring(w, h)


class State(Painted):
    """The gravest that the rules say of a part; its button says it in words."""

    def __init__(self, state: str) -> None:
        super().__init__(tr(f"pc.state.{state}") if state else "", height=HEIGHT - 8)
        self._state = state
        self.setFixedWidth(18)
        self.setToolTip(plain_tip(self.accessibleName()))

    def draw(self, d: Drawing, w: int, h: int) -> None:
        if self._state:
            d.icon(STATE_ICON[self._state], 0, (h - 16) / 2, 16, f"{self._state}Fill")


class Figures(Painted):
    """Watts and price of a row; each says how it is known."""

    def __init__(self, row: PartRow) -> None:
        self._watts = f"{number(round(row.watts))} W" if row.watts else "–"
        item = row.item
        priced = item is not None and item.price is not None
        if row.owned:
            self._price, self._day = tr("pc.machine.have"), tr("pc.machine.have.note")
        elif item is not None and item.price is not None:
            self._price, self._day = item_amount(item), kind_and_day(item.price)
        elif row.record is not None:
            self._price, self._day = tr("pc.machine.no-price"), ""
        else:
            self._price, self._day = "", ""
        self._plain = not priced or row.owned
        spoken = ", ".join(text for text in (self._watts, self._price, self._day) if text)
        super().__init__(spoken, height=HEIGHT - 8)
        self.setFixedWidth(self._wide())
        if item is not None and item.price is not None:
            self.setToolTip(plain_tip("\n".join(
                text for text in (item.price.basis, item.price.source) if text
            )))  # fmt: skip

    def _wide(self) -> int:
        texts = ((self._price, tokens.BODY, 600), (self._day, tokens.MICRO, 400))
        widest = max(tokens.width(text, px, weight) for text, px, weight in texts)
        return WATTS + max(PRICE, int(widest + 1.99))

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.write(0, 3, WATTS - 8, 18, self._watts, px=tokens.LABEL, weight=500,
                colour="text" if self._watts != "–" else "text3", align="right")  # fmt: skip
        d.write(WATTS, 3, w - WATTS, 18, self._price, weight=400 if self._plain else 600,
                px=tokens.LABEL if self._plain else tokens.BODY,
                colour="text2" if self._plain else "text", align="right")  # fmt: skip
        d.write(WATTS, 21, w - WATTS, 16, self._day, px=tokens.MICRO, colour="text3",
                align="right")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """A part that may be chosen."""

    id: str
    name: str
    searched: str
    price: float
    """Expected; infinite without one, so that those come last."""
    said: str
    """The price in words."""
    wrong: bool = False
    """Whether it does not go with the other parts."""

    @property
    def note(self) -> str:
        """What stands beside its name."""
        return f"{tr('pc.machine.unfit')} · {self.said}" if self.wrong else self.said


class Offers(QObject):
    """What may stand in a row: at once by price, then those that go with the others first."""

    changed = Signal()

    def __init__(self, row: PartRow, inspection: Inspection, parent: QObject) -> None:
        super().__init__(parent)
        self._row, self._inspection = row, inspection
        self._entries = _priced(row, inspection.currency, price_book())
        self._judging = Latest(self)
        self._judging.done.connect(self._judged)
        self._judging.submit(self._judge)

    def search(self, text: str) -> Sequence[Option]:
        """Return the entries that have every word."""
        words = text.casefold().split()
        return [
            Option(entry.id, entry.name, entry.note)
            for entry in self._entries
            if all(word in entry.searched for word in words)
        ]

    def _judge(self) -> list[Entry]:
        row, inspection = self._row, self._inspection
        judged = [
            replace(entry, wrong=errors_with(inspection, row.kind, entry.id, instead=row.id) > 0)
            for entry in self._entries
        ]
        return sorted(judged, key=lambda entry: (entry.wrong, entry.price, entry.name))

    def _judged(self, entries: list[Entry]) -> None:
        self._entries = entries
        self.changed.emit()


def _priced(row: PartRow, currency: Currency, book: PriceBook) -> list[Entry]:
    found = []
    for record in list_parts(row.kind):
        if _for_slots(record, row.kind):
            item = item_of(Wish(record, 1), book, currency)
            price = item.price.expected if item.price is not None else float("inf")
            said = item_amount(item) or tr("pc.machine.no-price")
            found.append(Entry(record.id, record.name, searched(record), price, said))
    return sorted(found, key=lambda entry: (entry.price, entry.name))


def _for_slots(record: Record, kind: PartKind) -> bool:
    """Whether a part can be bought for a PC: chips of laptops and of servers' boards cannot."""
    segment = getattr(record, "segment", "")
    form = getattr(record, "form", None)
    return kind != "gpu" or (segment not in ("laptop", "integrated") and form in (None, "card"))
