"""Amounts of money and prices as people read them: never a bare number."""

from collections.abc import Iterable

from trainwright.messages import Message
from trainwright.messages.units import grouped, number
from trainwright.plan.schema import Plan, PlannedRates
from trainwright.prices import Asked, Currency, Item, Price, Total
from trainwright.ui.i18n import Text, language, tr
from trainwright.ui.usual import usual


def currency_of(plan: Plan | None) -> Currency:
    """Return the currency of the plan's budget, or the usual one, or that of the language."""
    budget = plan.limits.budget if plan is not None else None
    if budget is not None:
        return "KRW" if budget.endswith("KRW") else "USD"
    return usual().currency or ("KRW" if language() == "ko" else "USD")


def rates_of(plan: Plan) -> PlannedRates:
    """Return the plan's rates; where it has none, the usual ones."""
    rates, known = plan.limits.rates, usual()
    own = {"usd_per_kwh": rates.usd_per_kwh, "household_kwh": rates.household_kwh}
    missing = {name: getattr(known, name) for name, value in own.items() if value is None}
    return rates.model_copy(update=missing)


_SIGNS: dict[Asked, str] = {"USD": "$", "KRW": "₩", "EUR": "€", "GBP": "£", "JPY": "¥"}


def amount(value: float, currency: Asked) -> str:
    """Return an amount in whole units: $1,599, ₩3,000,000, in Korean 3,000,000원."""
    return _signed(number(round(value)), currency)


def exact(value: float, currency: Asked) -> str:
    """Return an amount with the cents that it has: $129.99."""
    if currency in ("KRW", "JPY") or float(value).is_integer():
        return amount(value, currency)
    return _signed(grouped(value, 2), currency)


def _signed(digits: str, currency: Asked) -> str:
    if currency == "KRW" and language() == "ko":
        return f"{digits}원"
    return f"{_SIGNS[currency]}{digits}"


def in_short(value: float, currency: Currency) -> str:
    """Return an amount for the tick of an axis: ₩3.2 M, in Korean 320만."""
    if currency == "USD":
        return f"${value / 1000:.3g}k" if value >= 1000 else f"${value:.3g}"
    if language() == "ko":
        return f"{value / 1e4:.4g}만"
    return f"₩{value / 1e6:.3g} M"


def kind_and_day(price: Price) -> str:
    """Return how a price is known and of which day it is: "assumed, 2026-11"."""
    kind = tr(f"pc.price.{price.kind}")
    if price.condition != "new":
        condition = tr(f"pc.condition.{price.condition}")
        kind = f"{condition}, {kind}" if price.kind == "assumed" else condition
    return f"{kind}, {price.observed.isoformat()}" if price.observed else kind


def lead(prices: Iterable[Price | None]) -> str:
    """Return ≈ where any price is assumed or the maker's at launch: nobody offers it today."""
    guessed = any(price is not None and price.kind in ("assumed", "msrp") for price in prices)
    return "≈" if guessed else ""


def item_amount(item: Item) -> str:
    """Return what an item's pieces cost; an estimate by class leads with ≈."""
    if item.price is None:
        return ""
    return lead((item.price,)) + amount(item.price.times(item.count).expected, item.price.currency)


def total_text(total: Total) -> str:
    """Return what a list costs; "at least", where parts have no price."""
    if total.expected is None:
        return tr("pc.total.nothing")
    return amount(total.expected, total.currency)


def total_note(total: Total) -> Text:
    """Return the interval of a total and the day of its oldest price."""
    if total.low is None or total.high is None:
        return ""
    values = {"low": amount(total.low, total.currency), "high": amount(total.high, total.currency)}
    if total.oldest is None:
        return Message.of("pc.total.span", **values)
    return Message.of("pc.total.dated", oldest=total.oldest.isoformat(), **values)


def missing_note(total: Total) -> str:
    """Return "+ N unpriced", and what waits for a rate; empty where all is priced."""
    parts = []
    if total.unpriced:
        parts.append(tr("pc.total.unpriced", count=len(total.unpriced)))
    if total.unconverted:
        parts.append(tr("pc.total.unconverted", count=len(total.unconverted)))
    if total.expired:
        parts.append(tr("pc.total.expired", count=len(total.expired)))
    return " · ".join(parts)
