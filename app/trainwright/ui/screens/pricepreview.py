"""What a list would add: every row with its state, and the choice that is left to its reader."""

from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout

from trainwright.messages import Message, UserError
from trainwright.messages.units import number
from trainwright.prices import Currency, kept
from trainwright.prices.imports import Refused
from trainwright.prices.imports.matching import matcher
from trainwright.prices.imports.preview import Preview, Previewed
from trainwright.ui import tokens
from trainwright.ui.i18n import say, tr
from trainwright.ui.widgets.base import Heading, Label, Surface
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo
from trainwright.ui.widgets.entry import Entry
from trainwright.ui.widgets.rowtable import Cell, RowTable
from trainwright.ui.widgets.rowtable import Heading as Column

_STATE = {
    "matched": ("check-circle-fill", "fitsFill"),
    "by-words": ("check-circle", "fitsFill"),
    "ambiguous": ("question-fill", "tightFill"),
    "unmatched": ("minus-circle", "text3"),
    "refused": ("x-circle-fill", "noFill"),
}
OUT = ""
"""Choice of leaving a row out."""


class PreviewCard(Surface):
    """Nothing is kept before its button is pressed."""

    kept = Signal()
    put_away = Signal()

    def __init__(self) -> None:
        super().__init__(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        self._preview: Preview | None = None
        self.heading = Heading(Message.of("prices.screen.preview"))
        self.counts = Label("", colour="text2", wrap=True)
        self.table = RowTable(
            Message.of("prices.screen.preview"),
            (
                Column(title("cli.prices.line"), 44, right=True),
                Column(title("cli.prices.name"), 160, stretch=True),
                Column(title("cli.prices.price"), 104, right=True),
                Column(title("cli.prices.row-state"), 138),
                Column(title("cli.prices.part"), 150),
            ),
            height=302,
        )
        self.table.chosen.connect(self._show_row)
        self.row = Label("", px=tokens.LABEL, wrap=True)
        self.which = Combo([], "", name=Message.of("prices.screen.which"))
        self.which.activated.connect(self._choose)
        self.other = Entry(
            name=Message.of("prices.screen.other"), hint=Message.of("prices.screen.other")
        )
        self.other.returnPressed.connect(self._choose_other)
        self.keep = Button(tr("prices.screen.keep", count=0), "primary", "check")
        self.keep.clicked.connect(self._keep)
        self.away = Button(Message.of("prices.screen.away"), "ghost")
        self.away.clicked.connect(self.put_away)
        self._lay_out()

    def _lay_out(self) -> None:
        self.column.addWidget(self.heading)
        self.column.addWidget(self.counts)
        self.column.addWidget(self.table)
        self.column.addWidget(self.row)
        choice = QHBoxLayout()
        choice.setSpacing(tokens.S)
        choice.addWidget(self.which, 1)
        choice.addWidget(self.other, 1)
        self.column.addLayout(choice)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(tokens.S)
        self._buttons.addWidget(self.keep)
        self._buttons.addWidget(self.away)
        self._buttons.addStretch(1)
        self.column.addLayout(self._buttons)

    def show_preview(self, found: Preview) -> None:
        """Show a list."""
        self._preview = found
        self.heading.annotate(found.name)
        counts = {str(state): count for state, count in found.counts.items()}
        older = " " + tr("prices.older", count=found.older) if found.older else ""
        self.counts.tell(say(Message("prices.counts", counts)) + older)
        self.table.show_rows(found.rows, _cells)
        self._name_button(found.counts["matched"])

    def _name_button(self, count: int) -> None:
        old = self.keep
        self.keep = Button(tr("prices.screen.keep", count=count), "primary", "check")
        self.keep.setEnabled(count > 0)
        self.keep.clicked.connect(self._keep)
        self._buttons.replaceWidget(old, self.keep)
        old.hide()
        old.deleteLater()

    def _row(self) -> Previewed | None:
        if self._preview is None or not 0 <= self.table.row < len(self._preview.rows):
            return None
        return self._preview.rows[self.table.row]

    def _show_row(self, _index: int) -> None:
        """Show the choice that the row with the cursor leaves."""
        row = self._row()
        self.which.clear()
        refused = row is None or isinstance(row.read, Refused)
        self.which.setVisible(not refused)
        self.other.setVisible(not refused)
        self.other.clear()
        if row is None:
            self.row.tell("")
            return
        if isinstance(row.read, Refused):
            self.row.tell(row.read.reason)
            return
        self.row.tell(row.read.name)
        part = row.verdict.part
        for one in (part, *row.verdict.candidates) if part else row.verdict.candidates:
            self.which.addItem(one.name, one)
        self.which.addItem(tr("prices.screen.leave-out"), OUT)
        self.which.setCurrentIndex(0 if part else self.which.count() - 1)
        self.which.update()

    def _choose(self, index: int) -> None:
        part: Any = self.which.itemData(index)
        self._set(None if part == OUT else part)

    def _choose_other(self) -> None:
        """Take the part that was typed."""
        text = self.other.text().strip()
        verdict = matcher().match(text)
        if verdict.part is not None:
            self._set(verdict.part)
            return
        near = [one.id for one in verdict.candidates]
        id = "prices.several" if near else "prices.no-such-part"
        self.row.tell(say(Message.of(id, name=text, parts=near)))

    def _set(self, part: Any) -> None:
        if self._preview is not None:
            self.show_preview(self._preview.chosen({self.table.row: part}))

    def _keep(self) -> None:
        if self._preview is None:
            return
        try:
            kept.add(self._preview.observations())
        except UserError as error:
            self.row.tell(error.message)
            return
        self._preview = None
        self.kept.emit()


def _cells(row: Previewed) -> tuple[Cell, ...]:
    state = "by-words" if row.state == "matched" and row.verdict.how == "words" else row.state
    icon, ink = _STATE[state]
    shown = Cell(tr(f"prices.state.{state}"), "text2", icon, ink)
    line = Cell(number(row.line), "text3")
    if isinstance(row.read, Refused):
        return line, Cell(row.read.text, "text2"), Cell("–", "text3"), shown, Cell("–", "text3")
    part = row.verdict.part
    several = ", ".join(one.id for one in row.verdict.candidates)
    return (
        line,
        Cell(row.read.name),
        Cell(money(row.read.amount, row.read.currency), weight=500),
        shown,
        Cell(part.id, weight=500) if part else Cell(several or "–", "text3"),
    )


def title(id: str) -> str:
    """Return the heading of a column as the window writes it."""
    text = tr(id)
    return text[:1].upper() + text[1:]


def money(amount: float, currency: Currency) -> str:
    """Return an amount with its sign: ₩3 000 000, $1 599, $129.99."""
    if currency == "KRW":
        return f"₩{number(round(amount))}"
    if float(amount).is_integer():
        return f"${number(amount)}"
    return f"${amount:,.2f}".replace(",", "\u202f")
