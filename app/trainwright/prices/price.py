"""What a part is taken to cost today, and what several cost together."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date

from trainwright.prices.ageing import Freshness
from trainwright.prices.observation import (
    SECOND_HAND,
    Asked,
    Condition,
    Currency,
    PriceKind,
    Tax,
)


@dataclass(frozen=True, slots=True)
class Rate:
    """What one US dollar costs in won, as its owner read it on a day."""

    krw_per_usd: float
    observed: date

    def factor(self, source: Currency, goal: Currency) -> float:
        """Return what an amount is multiplied with."""
        if source == goal:
            return 1.0
        return self.krw_per_usd if goal == "KRW" else 1 / self.krw_per_usd


@dataclass(frozen=True, slots=True)
class Price:
    """The interval that one piece costs, and where it comes from; never a bare number."""

    low: float
    expected: float
    high: float
    currency: Currency
    kind: PriceKind
    observed: date | None
    """Day of the newest price that it rests on; None: its source states no date."""
    freshness: Freshness
    source: str
    condition: Condition = "new"
    region: str = ""
    tax: Tax = "unknown"
    n: int = 1
    """Observations that it rests on."""
    rate: Rate | None = None
    """That it was converted with; None where it was seen in this currency."""
    asked_in: Asked | None = None
    """Money that assumed rates made dollars of; None: it was seen in dollars or won."""
    basis: str = ""
    """Of an assumed price: the class that it is of, in words, or what it rests on."""

    @property
    def second_hand(self) -> bool:
        """Whether somebody used the part before."""
        return self.kind == "used" or self.condition in SECOND_HAND

    def times(self, count: int) -> "Price":
        """Return the price of several pieces."""
        return replace(
            self, low=self.low * count, expected=self.expected * count, high=self.high * count
        )


@dataclass(frozen=True, slots=True)
class Item:
    """Some pieces of one part, as a total counts them."""

    name: str
    """Id of the part."""
    count: int
    price: Price | None
    """Of one piece; None: nobody knows one."""
    expired: bool = False
    """Whether a price of it is too old to count."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What the parts priced in one currency cost together."""

    currency: Currency
    low: float
    expected: float
    high: float


@dataclass(frozen=True, slots=True)
class Total:
    """What a list costs: "at least" this, where ``unpriced`` or ``unconverted`` name parts."""

    currency: Currency
    low: float | None
    """None, like the next two: no part on the list has a price in the currency."""
    expected: float | None
    high: float | None
    unpriced: tuple[str, ...] = ()
    """Parts without any price: "+ N unpriced", never 0."""
    unconverted: tuple[str, ...] = ()
    """Parts with a price in another currency, for which no rate is set."""
    others: tuple[Sum, ...] = ()
    """What those cost, in their own."""
    expired: tuple[str, ...] = ()
    """Parts of which a price is too old to count."""
    oldest: date | None = None
    """Day of the oldest price in the total."""

    @property
    def complete(self) -> bool:
        """Whether every part on the list is in it."""
        return not self.unpriced and not self.unconverted


def total(items: Iterable[Item], currency: Currency) -> Total:
    """Return what the items cost together in a currency; a list of nothing costs nothing."""
    items = tuple(items)
    priced = [item for item in items if item.price is not None]
    here = [item for item in priced if item.price is not None and item.price.currency == currency]
    other: Currency = "KRW" if currency == "USD" else "USD"
    elsewhere = _sum([item for item in priced if item not in here], other)
    summed = _sum(here, currency) or (None if items else Sum(currency, 0, 0, 0))
    return Total(
        currency,
        low=summed.low if summed else None,
        expected=summed.expected if summed else None,
        high=summed.high if summed else None,
        unpriced=tuple(item.name for item in items if item.price is None),
        unconverted=tuple(item.name for item in priced if item not in here),
        others=(elsewhere,) if elsewhere else (),
        expired=tuple(item.name for item in items if item.expired),
        oldest=min(
            (item.price.observed for item in here if item.price and item.price.observed),
            default=None,
        ),
    )


def _sum(items: list[Item], currency: Currency) -> Sum | None:
    prices = [item.price.times(item.count) for item in items if item.price is not None]
    if not prices:
        return None
    return Sum(
        currency,
        low=sum(price.low for price in prices),
        expected=sum(price.expected for price in prices),
        high=sum(price.high for price in prices),
    )
