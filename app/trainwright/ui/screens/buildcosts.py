"""What a run costs on each build: electricity, the same hours in a cloud, and who wins when."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout

from trainwright.messages import Message, UserError
from trainwright.messages.units import duration
from trainwright.plan.schema import Plan, PlannedRates
from trainwright.prices import Currency
from trainwright.ui import tokens
from trainwright.ui.i18n import Text, language, tr
from trainwright.ui.money import amount, rates_of
from trainwright.ui.session import Session
from trainwright.ui.widgets.base import Heading, Label, Surface, clear
from trainwright.ui.widgets.buildcards import title_of
from trainwright.ui.widgets.entry import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainwright.build import Candidate

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop


class RunCosts(Surface):
    """Rates that the plan keeps, and a row for each build."""

    def __init__(self, session: Session) -> None:
        super().__init__(gap=tokens.S)
        self._session = session
        self._builds: Sequence[Candidate] = ()
        self.column.addWidget(Heading(Message.of("pc.cost.title"), Message.of("pc.cost.note")))
        self.cloud = Entry(name=Message.of("pc.cost.cloud"), hint="0.79 USD/GPU")
        self.cloud.editingFinished.connect(self._set_cloud)
        self.energy = Entry(name=Message.of("pc.cost.energy.usd"))
        self.energy.editingFinished.connect(self._set_energy)
        self._energy_label = Label("", px=tokens.LABEL, colour="text2", wrap=True)
        self._says = Label("", px=tokens.LABEL, colour="text2", wrap=True)
        self._lay_out()
        self.hide()

    def _lay_out(self) -> None:
        cloud = Label(Message.of("pc.cost.cloud"), px=tokens.LABEL, colour="text2", wrap=True)
        for label, field in ((cloud, self.cloud), (self._energy_label, self.energy)):
            line = QHBoxLayout()
            line.setSpacing(tokens.M)
            line.addWidget(label, 3)
            line.addWidget(field, 2)
            self.column.addLayout(line)
        self._rows = QGridLayout()
        self._rows.setHorizontalSpacing(tokens.L)
        self._rows.setVerticalSpacing(5)
        self._rows.setColumnStretch(0, 1)
        self.column.addLayout(self._rows)
        self.column.addWidget(self._says)

    def show_builds(self, builds: "Sequence[Candidate]") -> None:
        """Show what a run costs on builds; none hide the card."""
        self._builds = builds
        self.setVisible(bool(builds))
        self.refresh()

    def refresh(self) -> None:
        """Show the plan's rates, and what comes of them."""
        plan = self._session.plan
        if plan is None or not self._builds:
            return
        rates, currency = plan.limits.rates, self._builds[0].total.currency
        self.cloud.setText(rates.cloud or "")
        kind = currency.lower()
        self._energy_label.tell(Message.of(f"pc.cost.energy.{kind}"))
        self.energy.setAccessibleName(tr(f"pc.cost.energy.{kind}"))
        own = rates.household_kwh if currency == "KRW" else rates.usd_per_kwh
        self.energy.setText("" if own is None else f"{own:g}")
        self.energy.setPlaceholderText(_otherwise(plan, currency))
        self._show_rows(plan, currency)

    def _show_rows(self, plan: Plan, currency: Currency) -> None:
        from trainwright.build.wished import cloud_rate

        rates = rates_of(plan)
        cloud = cloud_rate(rates, currency, 1)
        clear(self._rows)
        columns = ("build", "energy", *(("rented", "even") if cloud is not None else ()))
        for place, name in enumerate(columns):
            self._cell(0, place, tr(f"pc.cost.column.{name}"), "text3")
        for line, one in enumerate(self._builds, start=1):
            for place, text in enumerate((title_of(one), *cells(one, rates))):
                self._cell(line, place, text, "text")
        self._says.tell(_note(rates, currency, cloud))

    def _cell(self, line: int, place: int, text: str, ink: str) -> None:
        label = Label(text, px=tokens.LABEL, colour=ink, wrap=place == 0)
        self._rows.addWidget(label, line, place, *(() if place == 0 else (_RIGHT,)))

    def _set_cloud(self) -> None:
        plan = self._session.plan
        if plan is None or self.cloud.text().strip() == (plan.limits.rates.cloud or ""):
            return
        try:
            rate = _rate(self.cloud.text(), self._builds[0].total.currency)
        except UserError as error:
            self._says.tell(error.message)
            return
        self._set("cloud", rate)

    def _set_energy(self) -> None:
        plan = self._session.plan
        if plan is None or not self._builds:
            return
        won = self._builds[0].total.currency == "KRW"
        key = "household_kwh" if won else "usd_per_kwh"
        text = self.energy.text().strip().replace(",", ".")
        try:
            value = float(text) if text else None
        except ValueError:
            self._says.tell(Message.of("pc.cost.no-number", text=text[:20]))
            return
        if value != getattr(plan.limits.rates, key):
            self._set(key, value)

    def _set(self, key: str, value: object) -> None:
        name = Message.of(f"pc.cost.{key}")
        label = Message.of("ui.edit.set", name=name, value="–" if value is None else value)
        self._session.set_keys({f"limits.rates.{key}": value}, label=label)


def cells(one: "Candidate", rates: PlannedRates) -> tuple[str, ...]:
    """Return electricity and, with a cloud's rate, the rent of a run and when buying has paid."""
    from trainwright.build.cost import break_even_hours
    from trainwright.build.report import cost_of
    from trainwright.build.wished import cloud_rate, energy_rates

    gpus = sum(part.count for part in one.parts if part.kind == "gpu")
    cloud = cloud_rate(rates, one.total.currency, gpus)
    cost = cost_of(one, **energy_rates(rates))
    if cost is None:
        return ("–", "–", "–") if cloud is not None else ("–",)
    energy = "~" + amount(cost.energy, cost.currency)
    if cloud is None:
        return (energy,)
    hours = break_even_hours(one.total.expected or 0.0, cloud, cost.per_hour)
    even = tr("pc.cost.never") if hours is None else "~" + duration(hours * 3600, language())
    return energy, "~" + amount(cloud * cost.hours, cost.currency), even


def _rate(text: str, usual: Currency) -> str | None:
    """Return a rate as the plan writes it; one without a currency is in the usual one.

    ``0.79 USD/GPU`` is of each GPU.
    """
    from trainwright.prices.imports import parse

    if not text.strip():
        return None
    hour, mark, unit = text.partition("/")
    each = mark and unit.strip().casefold() == "gpu"
    value, currency = parse.money(hour if each else text)
    ending = "/GPU" if each else ""
    return f"{value:.4f}".rstrip("0").rstrip(".") + f" {currency or usual}{ending}"


def _otherwise(plan: Plan, currency: Currency) -> str:
    """Return what counts where the plan says nothing: the usual value, or one that is assumed."""
    from trainwright.build.cost import HOUSEHOLD_KWH, USD_PER_KWH

    rates = rates_of(plan)
    won = currency == "KRW"
    known = rates.household_kwh if won else rates.usd_per_kwh
    if known is not None:
        return f"{known:g}"
    return f"{HOUSEHOLD_KWH if won else USD_PER_KWH:g} ({tr('pc.cost.assumed')})"


def _note(rates: PlannedRates, currency: Currency, cloud: float | None) -> Text:
    if rates.cloud is not None and cloud is None:
        return Message.of("pc.cost.no-exchange")
    return Message.of("pc.cost.says" if cloud is not None else f"pc.cost.tariff.{currency.lower()}")
