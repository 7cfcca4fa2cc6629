"""Prices: enter one, read a list, look at it before it is kept, and see what is kept."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.messages import Message, UserError
from trainwright.messages.units import number
from trainwright.prices import Observation, freshness_of_own, own_prices, price_book
from trainwright.prices.history import Steps
from trainwright.prices.imports import parse, preview_rows, read, read_file, waiting
from trainwright.prices.imports.matching import Verdict, matcher
from trainwright.prices.imports.preview import Preview, preview
from trainwright.prices.observation import SECOND_HAND
from trainwright.prices.shipped import Part, part_kind
from trainwright.ui import asking, tokens
from trainwright.ui.history import History
from trainwright.ui.i18n import language, tr
from trainwright.ui.money import exact
from trainwright.ui.screens.form import row_label
from trainwright.ui.screens.pricecard import PriceCard, RateCard
from trainwright.ui.screens.pricepreview import PreviewCard, title
from trainwright.ui.screens.pricewaiting import WaitingCard
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import Label, Scroll
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo, Segmented
from trainwright.ui.widgets.entry import Entry, TextBox
from trainwright.ui.widgets.table import Cell, RowTable
from trainwright.ui.widgets.table import Heading as Column

CONDITIONS = ("new", "used", "refurbished", "overseas", "bulk")
_AGE_ICON = {
    "fresh": ("check-circle-fill", "fitsFill"),
    "ageing": ("clock", "text3"),
    "stale": ("warning-fill", "tightFill"),
    "expired": ("x-circle-fill", "noFill"),
}


class PricesScreen(Scroll):
    """What a person enters at the left, what is made of it at the right."""

    changed = Signal()
    """What parts cost is another thing now."""
    stepped = Signal()
    """There is something else to undo."""

    def __init__(self) -> None:
        body = QWidget()
        super().__init__(body)
        self._reading, self._rematching = Latest(self), Latest(self)
        self._steps = Steps()
        outer = QHBoxLayout(body)
        outer.setContentsMargins(tokens.XXL, tokens.XXL, tokens.XXL, tokens.XXL)
        inner = QWidget()
        inner.setMaximumWidth(1320)
        outer.addStretch(1)
        outer.addWidget(inner, 100)
        outer.addStretch(1)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.L)
        column.addWidget(Label(Message.of("ui.place.prices"), px=tokens.DISPLAY, weight=600))
        lead = Label(Message.of("prices.screen.lead"), px=tokens.SECTION, colour="text2", wrap=True)
        column.addWidget(lead)
        sides = QHBoxLayout()
        sides.setSpacing(tokens.L)
        column.addLayout(sides)
        column.addStretch(1)
        left, right = QVBoxLayout(), QVBoxLayout()
        for side, stretch in ((left, 2), (right, 3)):
            side.setSpacing(tokens.L)
            sides.addLayout(side, stretch)
        steps = self._steps
        self.one, self.paste, self.rate = OnePrice(steps), PasteCard(), RateCard(steps)
        self.list, self.waiting, self.kept = PreviewCard(steps), WaitingCard(), KeptCard(steps)
        for side, cards in (
            (left, (self.one, self.paste)),
            (right, (self.list, self.waiting, self.kept, self.rate)),
        ):
            for card in cards:
                side.addWidget(card)
            side.addStretch(1)
        self.list.hide()
        self._connect()

    @property
    def history(self) -> History:
        """The steps of prices, waiting rows and the rate."""
        prices = Message.of("ui.history.prices")
        return History(
            prices if self._steps.past else None,
            prices if self._steps.ahead else None,
            lambda: self._step(self._steps.undo),
            lambda: self._step(self._steps.redo),
        )

    def _step(self, take: Callable[[], None]) -> None:
        """Undo, or do again."""
        try:
            take()
        except UserError as error:
            self.kept.refuse(error.message)
        self._changed()

    def _connect(self) -> None:
        self.paste.wanted.connect(self._read)
        self._reading.done.connect(self._show_list)
        self._reading.failed.connect(self.paste.refuse)
        self.list.kept.connect(self._list_kept)
        self.list.put_away.connect(self.list.hide)
        self.list.discarded.connect(self._discarded)
        self.waiting.wanted.connect(self._look_at_waiting)
        self._rematching.done.connect(self._show_waiting)
        self._rematching.failed.connect(self.paste.refuse)
        for card in (self.one, self.rate, self.kept):
            card.changed.connect(self._changed)

    def entered(self) -> None:
        """Show what is kept now: another program may have added to it."""
        self.kept.refresh()
        self.waiting.refresh()
        self.rate.refresh()

    def _look_at_waiting(self) -> None:
        rows, name = waiting.load().rows, tr("prices.screen.waiting")
        self._rematching.submit(lambda: preview_rows(rows, name))

    def _show_waiting(self, found: Preview) -> None:
        self._show(found, waited=True)

    def _read(self, job: Any) -> None:
        self.paste.tell(Message.of("prices.screen.reading"))
        self._reading.submit(lambda: preview(job()))

    def _show_list(self, found: Preview) -> None:
        self.paste.tell("")
        self._show(found, waited=False)

    def _show(self, found: Preview, *, waited: bool) -> None:
        self.list.show_preview(found, waited=waited)
        self.list.show()
        self.ensureWidgetVisible(self.list)

    def _list_kept(self) -> None:
        self.list.hide()
        self.paste.clear()
        self._changed()

    def _discarded(self, count: int) -> None:
        self._changed()
        self.waiting.discarded(count)

    def _changed(self) -> None:
        self.entered()
        self.stepped.emit()
        self.changed.emit()


class OnePrice(PriceCard):
    """One price: part, amount, condition, shop and day."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(Message.of("prices.screen.one"), steps)
        self._verdict = Verdict()
        self.part = Entry(name=Message.of("prices.screen.part"), hint="RTX 3090")
        self.amount = Entry(name=Message.of("prices.screen.price"), hint=_example())
        self.currency = Segmented(
            (("USD", "USD"), ("KRW", "KRW")), "KRW" if _korean() else "USD",
            name=Message.of("prices.screen.currency"),
        )  # fmt: skip
        self.condition = Combo(
            [(one, Message.of(f"prices.condition.{one}")) for one in CONDITIONS], "new",
            name=Message.of("prices.screen.condition"),
        )  # fmt: skip
        self.seller = Entry(name=Message.of("prices.screen.seller"))
        self.day = Entry(name=Message.of("prices.screen.day"))
        self.which = Combo([], "", name=Message.of("prices.screen.which"))
        self.meant = Label("", px=tokens.LABEL, colour="text3", wrap=True)
        self.keep = Button(Message.of("prices.screen.keep-one"), icon="plus")
        self._lay_out()
        self.part.textChanged.connect(self._match)
        self.keep.clicked.connect(self._keep)
        for field in (self.part, self.amount, self.seller, self.day):
            field.returnPressed.connect(self._keep)
        self.day.setText(date.today().isoformat())
        self._match("")

    def _lay_out(self) -> None:
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.M)
        grid.setVerticalSpacing(tokens.S)
        grid.setColumnStretch(1, 1)
        price = QHBoxLayout()
        price.setSpacing(tokens.S)
        price.addWidget(self.amount, 1)
        price.addWidget(self.currency)
        rows: tuple[tuple[str, Any], ...] = (
            ("part", self.part),
            ("", self.meant),
            ("which", self.which),
            ("price", price),
            ("condition", self.condition),
            ("seller", self.seller),
            ("day", self.day),
        )
        self._which_label = row_label(Message.of("prices.screen.which"))
        for line, (key, field) in enumerate(rows):
            if key == "which":
                grid.addWidget(self._which_label, line, 0)
            elif key:
                grid.addWidget(row_label(Message.of(f"prices.screen.{key}")), line, 0)
            if isinstance(field, QWidget):
                grid.addWidget(field, line, 1)
            else:
                grid.addLayout(field, line, 1)
        self.column.addLayout(grid)
        self.column.addWidget(self._says)
        self.column.addWidget(self.keep)

    def _match(self, text: str) -> None:
        """Show which part the words mean, or let one be chosen."""
        self.tell("")
        self._verdict = matcher().match(text.strip()) if text.strip() else Verdict()
        several = self._verdict.candidates if self._verdict.part is None else ()
        self.which.clear()
        for one in several:
            self.which.addItem(one.name, one.id)
        self.which.setVisible(bool(several))
        self._which_label.setVisible(bool(several))
        self.meant.setVisible(not several)
        if self._verdict.part is not None:
            self.meant.tell(f"→ {self._verdict.part.name}")
        else:
            self.meant.tell(
                Message.of("prices.screen.unknown" if text.strip() else "prices.screen.any")
            )

    def _part(self) -> Part:
        if self._verdict.part is not None:
            return self._verdict.part
        for one in self._verdict.candidates:
            if one.id == self.which.currentData():
                return one
        raise UserError.of("prices.no-such-part", name=self.part.text().strip()[:60])

    def _keep(self) -> None:
        try:
            seen = self._observation(date.today())
            with self._steps.doing():
                own_prices.add([seen])
        except UserError as error:
            self.refuse(error.message)
            return
        price = exact(seen.amount, seen.currency)
        self.part.clear()
        self.amount.clear()
        self.tell(Message.of("prices.screen.added", part=seen.name, price=price))
        self.part.setFocus()
        self.changed.emit()

    def _observation(self, today: date) -> Observation:
        part = self._part()
        amount, told = parse.money(self.amount.text())
        condition = self.condition.currentData()
        return parse.observation(
            part_kind=part_kind(part),
            part=part.id,
            amount=amount,
            currency=told or self.currency.value,
            kind="used" if condition in SECOND_HAND else "new",
            observed=parse.day(self.day.text(), before=today) or today,
            condition=condition,
            seller=self.seller.text().strip()[:300],
            source="by hand",
            name=part.name,
        )


class PasteCard(PriceCard):
    """A list from elsewhere, pasted or in a file."""

    wanted = Signal(object)
    """A job that returns the list."""

    def __init__(self) -> None:
        super().__init__(Message.of("prices.screen.list"))
        column = self.column
        column.addWidget(
            Label(Message.of("prices.screen.list.says"), px=tokens.LABEL, colour="text2", wrap=True)
        )
        self.box = TextBox(name=Message.of("prices.screen.paste"), hint=tr("prices.screen.paste"))
        column.addWidget(self.box)
        column.addWidget(self._says)
        self.look = Button(Message.of("prices.screen.look"), icon="magnifying-glass")
        self.file = Button(Message.of("prices.screen.file"), icon="folder-open")
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        line.addWidget(self.look)
        line.addWidget(self.file)
        line.addStretch(1)
        column.addLayout(line)
        self.look.clicked.connect(self._look)
        self.file.clicked.connect(self._file)

    def clear(self) -> None:
        """Forget what was pasted."""
        self.box.field.clear()
        self.tell("")

    def _look(self) -> None:
        text, name, today = self.box.field.toPlainText(), tr("prices.screen.pasted"), date.today()
        self.wanted.emit(lambda: read(text, name, today))

    def _file(self) -> None:
        path = asking.price_list(self)
        if path is not None:
            self.wanted.emit(partial(read_file, path, date.today()))


class KeptCard(PriceCard):
    """The prices that are kept, newest first, each with its age."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(Message.of("prices.screen.kept"), steps)
        self.rows: list[Observation] = []
        self.table = RowTable(
            Message.of("prices.screen.kept"),
            (
                Column(title("cli.prices.part"), 120, stretch=True),
                Column(title("cli.prices.price"), 110, right=True),
                Column(title("cli.prices.condition"), 96, optional=True),
                Column(title("cli.prices.date"), 92),
                Column(title("cli.prices.age"), 104),
                Column(title("cli.prices.seller-heading"), 96, optional=True),
            ),
            height=292,
        )
        self.none = Label(Message.of("prices.screen.none"), colour="text2", wrap=True)
        self.withdraw = Button(Message.of("prices.screen.withdraw"), icon="trash", small=True)
        self.withdraw.clicked.connect(self._withdraw)
        self.still = Button(Message.of("prices.screen.still"), icon="check", small=True)
        self.still.clicked.connect(self._still_right)
        self.column.addWidget(self.none)
        self.column.addWidget(self.table)
        self.column.addWidget(self._says)
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        line.addWidget(self.still)
        line.addWidget(self.withdraw)
        line.addStretch(1)
        self.column.addLayout(line)

    def refresh(self) -> None:
        """Read what is kept."""
        book = price_book()
        states = freshness_of_own(book)
        self.rows = sorted(states, key=lambda one: one.observed, reverse=True)
        self.table.show_rows(self.rows, lambda one: _kept_cells(one, states[one]))
        self.none.setVisible(not self.rows)
        for widget in (self.table, self.still, self.withdraw):
            widget.setVisible(bool(self.rows))
        count = Message.of("prices.listed", count=len(self.rows))
        self.heading.annotate(count if self.rows else "")
        if book.notes:
            self.refuse(book.notes[0])

    def _still_right(self) -> None:
        """Keep the price with the cursor again, as one of today: that is how an old one counts."""
        if one := self._chosen():
            today = date.today()
            again = replace(one, observed=today, valid_until=None, source="by hand")
            said = Message.of("prices.screen.confirmed", part=one.part, date=today.isoformat())
            self._do(partial(own_prices.add, [again]), said)

    def _withdraw(self) -> None:
        if one := self._chosen():
            said = Message.of("prices.withdrawn", count=1, part=one.part)
            self._do(partial(own_prices.withdraw, [one]), said)

    def _chosen(self) -> Observation | None:
        return self.rows[self.table.row] if 0 <= self.table.row < len(self.rows) else None

    def _do(self, job: Callable[[], object], said: Message) -> None:
        try:
            with self._steps.doing():
                job()
        except UserError as error:
            self.refuse(error.message)
            return
        self.tell(said)
        self.changed.emit()


def _kept_cells(one: Observation, state: str) -> tuple[Cell, ...]:
    icon, ink = _AGE_ICON[state]
    return (
        Cell(one.part, weight=500),
        Cell(exact(one.amount, one.currency), weight=500),
        Cell(tr(f"prices.condition.{one.condition}"), "text2"),
        Cell(one.observed.isoformat(), "text2"),
        Cell(tr(f"prices.screen.age.{state}"), "text2", icon, ink),
        Cell(one.seller or "–", "text2"),
    )


def _korean() -> bool:
    return language() == "ko"


def _example() -> str:
    return f"90만원, {number(900_000)}" if _korean() else "$799, 799.99"
