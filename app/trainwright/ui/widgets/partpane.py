"""Everything that is known of one part, and where each value comes from."""

from collections.abc import Iterator

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QVBoxLayout, QWidget

from trainwright.catalog import PartRecord
from trainwright.catalog.part_records import Provenance
from trainwright.catalog.sources import documents
from trainwright.messages import Message
from trainwright.prices import price_book, price_of
from trainwright.ui import tokens
from trainwright.ui.columns import Line, Record, brief, field_name, kind_of, lines
from trainwright.ui.i18n import tr
from trainwright.ui.money import amount, currency_of, kind_and_day, lead
from trainwright.ui.paint import Drawing
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Hairline, Heading, Label, Scroll, Surface, clear
from trainwright.ui.widgets.buttons import Button

WIDTH = 340
_INNER = WIDTH - 2 * tokens.L - 12
_NAME = 0.44
"""Part of a line that the field's name may take."""
CONFIDENCE = {"high": "check-circle", "medium": "circle-half", "low": "warning"}


class PartPane(Surface):
    """The pane at the table's right."""

    wanted = Signal(object)
    """The part that somebody wants in the plan."""

    def __init__(self) -> None:
        super().__init__("left", padding=(tokens.L, tokens.L, 4, tokens.L), gap=tokens.S)
        self.setFixedWidth(WIDTH)
        self._record: Record | None = None
        self._shown: dict[str, FactRow] = {}
        self._head = QVBoxLayout()
        self._head.setContentsMargins(0, 0, tokens.M, 0)
        self._head.setSpacing(4)
        self.column.addLayout(self._head)
        body = QWidget()
        self._facts = QVBoxLayout(body)
        self._facts.setContentsMargins(0, 0, 0, 0)
        self._facts.setSpacing(0)
        self.column.addWidget(Scroll(body), 1)
        self._origin = QVBoxLayout()
        self._origin.setContentsMargins(0, 0, tokens.M, 0)
        self._origin.setSpacing(4)
        self.column.addLayout(self._origin)

    @property
    def record(self) -> Record | None:
        """The part that is shown."""
        return self._record

    def show_part(self, record: Record | None, field: str = "") -> None:
        """Show a part, with the source of one of its fields."""
        if record is not self._record:
            self._record = record
            self._refill()
        self.show_field(field)

    def show_field(self, field: str) -> None:
        """Show where a field's value comes from."""
        name = field.split(".")[0]
        for row in self._shown.values():
            row.mark(row.line.field == name)
        clear(self._origin)
        record = self._record
        if record is None:
            return
        line = self._shown[name].line if name in self._shown else None
        self._origin.addWidget(Hairline())
        self._origin.addWidget(Heading(Message.of("pc.catalog.origin")))
        if line is None:
            self._show_record(record)
            return
        said = f"{field_name(line.field)}: {line.value or tr('pc.unknown')}"
        self._origin.addWidget(_low(Label(said.replace("\n", "; "), weight=500, wrap=True)))
        if not line.value:
            text = Message.of("pc.origin.unknown")
            self._origin.addWidget(_low(Label(text, px=tokens.LABEL, colour="text2", wrap=True)))
        elif line.origin is None:
            text = Message.of("pc.origin.unsaid")
            self._origin.addWidget(_low(Label(text, px=tokens.LABEL, colour="text2", wrap=True)))
        else:
            self._show_origin(line.origin)

    def _show_record(self, record: Record) -> None:
        """Say what the record as a whole rests on."""
        if isinstance(record, PartRecord):
            self._show_origin(Provenance(source=record.source, confidence=record.confidence))
        else:
            text = Message.of("pc.origin.each")
            self._origin.addWidget(_low(Label(text, px=tokens.LABEL, colour="text2", wrap=True)))

    def _show_origin(self, origin: Provenance) -> None:
        self._origin.addWidget(Sure(origin.confidence))
        self._origin.addWidget(_selectable(origin.source, "text2"))
        for document in documents(origin.source):
            self._origin.addWidget(_selectable(document, "text3"))

    def _refill(self) -> None:
        clear(self._head)
        clear(self._facts)
        self._shown = {}
        record = self._record
        if record is None:
            text = Message.of("pc.catalog.nothing")
            self._head.addWidget(_low(Label(text, colour="text2", wrap=True)))
            return
        self._head.addWidget(_low(Label(record.name, px=tokens.TITLE, weight=600, wrap=True)))
        self._head.addWidget(_low(Label(brief(record), px=tokens.LABEL, colour="text2", wrap=True)))
        for price in _prices(record):
            self._head.addWidget(_low(Label(price, px=tokens.LABEL, wrap=True)))
        if record.notes:
            self._head.addWidget(
                _low(Label(record.notes, px=tokens.LABEL, colour="text3", wrap=True))
            )
        adds = kind_of(record) in ("memory", "storage")
        text = Message.of("pc.catalog.add" if adds else "pc.catalog.use")
        button = Button(text, "primary", "plus", name=tr("pc.catalog.use.named", name=record.name))
        button.clicked.connect(self._want)
        self._head.addSpacing(4)
        self._head.addWidget(button)
        for line in lines(record):
            row = FactRow(line)
            row.clicked.connect(self._opened)
            self._shown[line.field] = row
            self._facts.addWidget(row)
        self._facts.addStretch(1)

    def _want(self) -> None:
        if self._record is not None:
            self.wanted.emit(self._record)

    def _opened(self) -> None:
        row = self.sender()
        if isinstance(row, FactRow):
            self.show_field(row.line.field)


def _prices(record: Record) -> Iterator[str]:
    """Yield what a part costs today, new and used, and how that is known."""
    book, currency = price_book(), currency_of(None)
    for used in (False, True):
        price = price_of(record, book, currency, used=used)
        if price is not None:
            cost = lead((price,)) + amount(price.expected, price.currency)
            yield tr("pc.catalog.price", price=cost, known=kind_and_day(price))


def _selectable(text: str, colour: str) -> Label:
    label = Label(_breakable(text), px=tokens.LABEL, colour=colour, wrap=True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return _low(label)


def _low(label: Label) -> Label:
    """Return a label that takes no more height than its lines."""
    label.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
    return label


def _breakable(text: str) -> str:
    """Let a long address break after its slashes."""
    return (
        text.replace("`", "")
        .replace(" | ", " · ")
        .replace("/", "/\u200b")
        .replace("_", "_\u200b")
        .replace("-", "-\u200b")
    )


class FactRow(QAbstractButton):
    """A field with its value; a click shows where it comes from."""

    def __init__(self, line: Line) -> None:
        super().__init__()
        self.line = line
        self._on = False
        low = line.origin is not None and line.origin.confidence == "low" and bool(line.value)
        self._low = low
        name = field_name(line.field)
        self._name = tokens.wrapped(name, _INNER * _NAME - 8, tokens.LABEL)
        room = _INNER * (1 - _NAME) - (16 if low else 0)
        value = line.value or tr("pc.unknown")
        self._value = [
            part
            for text in value.split("\n")
            for part in tokens.wrapped(text, room, tokens.LABEL, 500)
        ]
        spoken = f"{name}: {value.replace(chr(10), '; ')}"
        self.setAccessibleName(f"{spoken}, {tr('pc.confidence.low')}" if low else spoken)
        self.setToolTip(plain_tip(tr("pc.catalog.origin")))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(9 + 16 * max(len(self._name), len(self._value)))

    def sizeHint(self) -> QSize:
        return QSize(_INNER, self.height())

    def mark(self, on: bool) -> None:
        """Show whether this is the field whose source is shown."""
        if on != self._on:
            self._on = on
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            if self._on or self.underMouse():
                d.box(0, 0, w, h - 1, "accentWash" if self._on else "sunken", radius=tokens.CHIP)
            for number, text in enumerate(self._name):
                d.write(4, 4 + 16 * number, _INNER * _NAME, 16, text,
                        px=tokens.LABEL, colour="text3")  # fmt: skip
            x = _INNER * _NAME
            if self._low:
                d.icon("warning", x, 6, 12, "tight")
                x += 16
            known = bool(self.line.value)
            for number, text in enumerate(self._value):
                d.write(x, 4 + 16 * number, w - x, 16, text, px=tokens.LABEL,
                        weight=500 if known else 400,
                        colour="text" if known else "text3")  # fmt: skip
            d.rule(0, h - 1, w, h - 1)
            if self.hasFocus():
                d.focus_ring(w, h, tokens.CHIP)


class Sure(QWidget):
    """How sure a value is, in words with a sign."""

    def __init__(self, confidence: str) -> None:
        super().__init__()
        self._icon = CONFIDENCE[confidence]
        self._ink = {"high": "fits", "medium": "text2", "low": "tight"}[confidence]
        self._lines = tokens.wrapped(
            tr(f"pc.confidence.{confidence}.long"), _INNER - 22, tokens.LABEL, 500
        )
        self.setAccessibleName(" ".join(self._lines))
        self.setFixedHeight(2 + 16 * len(self._lines))

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.icon(self._icon, 0, 1, 14, self._ink)
            for number, text in enumerate(self._lines):
                d.write(20, 16 * number, self.width() - 20, 16, text, px=tokens.LABEL,
                        weight=500, colour=self._ink)  # fmt: skip
