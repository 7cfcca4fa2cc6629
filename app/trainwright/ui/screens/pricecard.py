"""A card of the place Prices, and the one of the exchange rate, which Settings shows too."""

from datetime import date

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout

from trainwright.messages import Message, UserError
from trainwright.prices import Rate, exchange
from trainwright.prices.history import Steps
from trainwright.prices.imports import parse
from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say
from trainwright.ui.widgets.base import Heading, Label, Surface
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.entry import Entry


class PriceCard(Surface):
    """A card with a heading and a line for what went wrong or was done."""

    changed = Signal()

    def __init__(self, title: Text, steps: Steps | None = None) -> None:
        super().__init__(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        self._steps = steps or Steps()
        self.heading = Heading(title)
        self.column.addWidget(self.heading)
        self._says = Label("", px=tokens.LABEL, colour="text2", wrap=True)
        self._says.hide()

    def tell(self, text: Text, *, wrong: bool = False) -> None:
        """Say what was done, or what is wrong."""
        self._says.paint_in("no" if wrong else "text2")
        self._says.tell(text)
        self._says.setVisible(bool(say(text)))

    def refuse(self, problem: Message) -> None:
        """Say what is wrong."""
        self.tell(problem, wrong=True)


class RateCard(PriceCard):
    """What a dollar costs in won, and since when."""

    def __init__(self, steps: Steps | None = None) -> None:
        super().__init__(Message.of("prices.screen.rate"), steps)
        self.rate = Entry(name=Message.of("prices.screen.rate.value"), hint="1450", least=60)
        self.day = Entry(name=Message.of("prices.screen.day"), least=96)
        self.keep = Button(Message.of("prices.screen.rate.keep"), small=True)
        self.forget = Button(Message.of("prices.screen.rate.forget"), small=True)
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        for widget, stretch in (
            (Label("1 USD =", colour="text2"), 0),
            (self.rate, 1),
            (Label("KRW", colour="text2"), 0),
            (self.day, 1),
            (self.keep, 0),
        ):
            line.addWidget(widget, stretch)
        self.column.addLayout(line)
        self.column.addWidget(self._says)
        self.column.addWidget(self.forget, 0, Qt.AlignmentFlag.AlignLeft)
        self.keep.clicked.connect(self._keep)
        self.rate.returnPressed.connect(self._keep)
        self.forget.clicked.connect(self._forget)
        self.day.setText(date.today().isoformat())

    def refresh(self) -> None:
        """Show the rate that is set."""
        known, wrong = exchange.load()
        self.forget.setVisible(known is not None)
        if wrong is not None:
            self.refuse(wrong)
        elif known is None:
            self.tell(Message.of("prices.no-rate"))
        else:
            values = {"rate": known.krw_per_usd, "date": known.observed.isoformat()}
            self.tell(Message.of("prices.rate", **values))

    def _keep(self) -> None:
        today = date.today()
        try:
            amount, told = parse.money(self.rate.text())
            if told == "USD":
                raise UserError.of("prices.which-currency", text=self.rate.text())
            rate = Rate(amount, parse.day(self.day.text(), before=today) or today)
            with self._steps.doing():
                exchange.keep(rate, today)
        except UserError as error:
            self.refuse(error.message)
            return
        self.rate.clear()
        self.refresh()
        self.changed.emit()

    def _forget(self) -> None:
        try:
            with self._steps.doing():
                exchange.forget()
        except UserError as error:
            self.refuse(error.message)
            return
        self.refresh()
        self.changed.emit()
