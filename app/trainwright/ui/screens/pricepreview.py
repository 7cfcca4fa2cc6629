"""What a list would add: every row with its state, and the choice that is left to its reader."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout

from trainwright.messages import Message, UserError
from trainwright.messages.units import number
from trainwright.prices import own_prices
from trainwright.prices.history import Steps
from trainwright.prices.imports import Refused, Row, waiting
from trainwright.prices.imports.matching import matcher
from trainwright.prices.imports.preview import Preview, Previewed
from trainwright.ui import tokens
from trainwright.ui.i18n import say, tr
from trainwright.ui.money import exact
from trainwright.ui.widgets.base import Heading, Label, Surface
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo
from trainwright.ui.widgets.entry import Entry
from trainwright.ui.widgets.table import Cell, RowTable
from trainwright.ui.widgets.table import Heading as Column

_STATE = {
    "matched": ("check-circle-fill", "fitsFill"),
    "by-words": ("check-circle", "fitsFill"),
    "ambiguous": ("question-fill", "tightFill"),
    "unmatched": ("minus-circle", "text3"),
    "refused": ("x-circle-fill", "noFill"),
}
OUT, WAIT = "", "wait"
"""Choices of leaving a row out, and of letting it wait until its part is known."""


class PreviewCard(Surface):
    """Nothing is kept before its button is pressed."""

    kept = Signal()
    put_away = Signal()
    discarded = Signal(int)

    def __init__(self, steps: Steps) -> None:
        super().__init__(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        self._steps = steps
        self._preview: Preview | None = None
        self._waited = False
        """Whether the rows waited already, instead of coming in a list."""
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
        self.gone = Button(Message.of("prices.screen.waiting.discard"), "ghost", "trash")
        self.gone.clicked.connect(self._discard)
        self.all_gone = Button(Message.of("prices.screen.waiting.discard-all"), "ghost")
        self.all_gone.clicked.connect(self._discard_all)
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
        for button in (self.gone, self.all_gone, self.away):
            self._buttons.addWidget(button)
        self._buttons.addStretch(1)
        self.column.addLayout(self._buttons)

    def show_preview(self, found: Preview, *, waited: bool = False) -> None:
        """Show a list, or rows that waited."""
        self._preview, self._waited = found, waited
        self.heading.annotate(tr("prices.screen.waiting") if waited else found.name)
        self.counts.tell(self._counted(found))
        self.table.show_rows(found.rows, _cells)
        for button in (self.gone, self.all_gone):
            button.setVisible(waited)
        waits = 0 if waited else len(found.unplaced())
        self._name_button(found.counts["matched"], waits)

    def _counted(self, found: Preview) -> str:
        """Return how the rows ended, and what becomes of those without a part."""
        counts = {str(state): count for state, count in found.counts.items()}
        told = [say(Message("prices.counts", counts))]
        if found.older:
            told.append(tr("prices.older", count=found.older))
        if not self._waited and (waits := len(found.unplaced())):
            told.append(tr("prices.screen.will-wait", count=waits))
        return " ".join(told)

    def _name_button(self, count: int, waits: int) -> None:
        old = self.keep
        only_wait = waits and not count
        text = (tr("prices.screen.waiting.wait", count=waits) if only_wait
                else tr("prices.screen.keep", count=count))  # fmt: skip
        self.keep = Button(text, "primary", "check")
        self.keep.setEnabled(count > 0 or waits > 0)
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
        self.row.tell(_where(row.read))
        part = row.verdict.part
        for one in (part, *row.verdict.candidates) if part else row.verdict.candidates:
            self.which.addItem(one.name, one)
        self.which.addItem(tr("prices.screen.let-wait"), WAIT)
        if not self._waited:
            self.which.addItem(tr("prices.screen.leave-out"), OUT)
        shown = OUT if row.left_out else WAIT
        self.which.setCurrentIndex(0 if part else self.which.findData(shown))
        self.which.update()

    def _choose(self, index: int) -> None:
        part: Any = self.which.itemData(index)
        self._set(None if part in (OUT, WAIT) else part, waits=part == WAIT)

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

    def _set(self, part: Any, *, waits: bool = False) -> None:
        if self._preview is not None:
            changed = self._preview.chosen({self.table.row: part}, waits=waits)
            self.show_preview(changed, waited=self._waited)

    def _keep(self) -> None:
        if self._preview is None:
            return
        found = self._preview
        try:
            with self._steps.doing():
                own_prices.add(found.observations())
                if self._waited:
                    waiting.drop(found.matched())
                else:
                    waiting.add(found.unplaced())
        except UserError as error:
            self.row.tell(error.message)
            return
        self._preview = None
        self.kept.emit()

    def _discard(self) -> None:
        row = self._row()
        if row is not None:
            self._drop([row])

    def _discard_all(self) -> None:
        if self._preview is not None:
            self._drop(self._preview.rows)

    def _drop(self, gone: Sequence[Previewed]) -> None:
        """Let rows wait no longer; nobody wants them."""
        assert self._preview is not None, "there are rows to discard"
        try:
            with self._steps.doing():
                waiting.drop(one.read for one in gone if isinstance(one.read, Row))
        except UserError as error:
            self.row.tell(error.message)
            return
        out = set(map(id, gone))
        left = tuple(one for one in self._preview.rows if id(one) not in out)
        self.show_preview(replace(self._preview, rows=left), waited=True)
        self.discarded.emit(len(gone))


def _where(row: Row) -> str:
    """Return a row's own words; of one that waited, with its list."""
    if not row.origin:
        return row.name
    values = {"name": row.name, "list": row.origin, "line": row.line}
    return tr("prices.screen.of-list", **values, date=row.observed.isoformat())


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
        Cell(exact(row.read.amount, row.read.currency), weight=500),
        shown,
        Cell(part.id, weight=500) if part else Cell(several or "–", "text3"),
    )


def title(id: str) -> str:
    """Return the heading of a column as the window writes it."""
    text = tr(id)
    return text[:1].upper() + text[1:]
