"""The prices in use on a day, and what a part costs by them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from math import sqrt
from statistics import median

from trainwright.catalog import PartKind
from trainwright.messages import Message
from trainwright.prices import abroad
from trainwright.prices.ageing import (
    CALM_MSRP_SPREAD,
    MSRP_SPREAD,
    ORDER,
    SPREAD,
    VOLATILE_KINDS,
    Freshness,
    age_days,
    moves,
    observed_freshness,
)
from trainwright.prices.observation import Asked, Currency, Observation
from trainwright.prices.price import Item, Price, Rate, Total, total
from trainwright.prices.shipped import AssumedPrice, Part, msrp, part_kind

KOREAN_VAT = 0.10
"""Of a Korean price; the value-added tax act, article 30. Duty on PC parts is nil (ITA)."""
WIDENING_PER_YEAR = SPREAD["stale"]
"""How much wider an assumed price becomes each way with every year; assumed."""
_OTHER: dict[Currency, Currency] = {"USD": "KRW", "KRW": "USD"}


@dataclass(frozen=True, slots=True)
class PriceBook:
    """All prices known on a day."""

    today: date
    observations: Mapping[tuple[PartKind, str], tuple[Observation, ...]] = field(
        default_factory=dict
    )
    """A person's own, by kind and id of the part."""
    assumed: tuple[AssumedPrice, ...] = ()
    """That ship; those of named parts first."""
    rate: Rate | None = None
    """Set by the person; without one, nothing is converted."""
    accept_expired: bool = False
    """Whether prices that are too old count nevertheless."""
    notes: tuple[Message, ...] = ()
    """What is wrong with the files that it comes from."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Some pieces of a part that somebody means to buy."""

    part: Part
    count: int = 1
    used: bool = False


def by_part(
    seen: Iterable[Observation],
) -> dict[tuple[PartKind, str], tuple[Observation, ...]]:
    """Return observations by kind and id of their part, as a book holds them."""
    found: dict[tuple[PartKind, str], list[Observation]] = {}
    for one in seen:
        found.setdefault((one.part_kind, one.part), []).append(one)
    return {key: tuple(group) for key, group in found.items()}


def price_of(
    part: Part, book: PriceBook, currency: Currency, *, used: bool = False
) -> Price | None:
    """Return what one piece costs in a currency; None where the book has no price in it.

    A person's own prices come first, those from abroad behind them, then an assumed one of this
    very part, the maker's launch price, and an assumed one of its class. What is seen in the
    currency itself comes before what the person's rate converts. New and used are two candidates
    and never mixed.
    """
    other = _OTHER[currency] if book.rate is not None else None  # without a rate, nothing is asked

    def elsewhere(seen: Callable[..., Price | None]) -> Price | None:
        return other and _converted(seen(part, book, other, used=used), book.rate, currency)

    return (
        _own(part, book, currency, used=used)
        or elsewhere(_own)
        or _own_abroad(part, book, currency, used=used)
        or _shipped(part, book, currency, used=used)
        or elsewhere(_shipped)
    )


def total_of(wishes: Iterable[Wish], book: PriceBook, currency: Currency) -> Total:
    """Return what parts cost together; it names those without a price or a rate."""
    return total((item_of(wish, book, currency) for wish in wishes), currency)


def item_of(wish: Wish, book: PriceBook, currency: Currency) -> Item:
    """Return a wish with its price, in the other currency where no rate converts it."""
    found = price_of(wish.part, book, currency, used=wish.used)
    if found is None:
        found = price_of(wish.part, book, _OTHER[currency], used=wish.used)
    old = not book.accept_expired and has_expired(wish.part, book, used=wish.used)
    return Item(wish.part.id, wish.count, found, expired=old)


def has_expired(part: Part, book: PriceBook, *, used: bool = False) -> bool:
    """Return whether a person's only prices of a part are too old to count."""
    seen = _market(part, book, None, used=used)
    return bool(seen) and all(state == "expired" for state, _ in _states(part, seen, book.today))


def freshness_of_own(book: PriceBook) -> dict[Observation, Freshness]:
    """Return the state of each of a book's own prices, on the book's day."""
    found: dict[Observation, Freshness] = {}
    for (kind, _), seen in book.observations.items():
        markets: dict[tuple[Asked, bool], list[Observation]] = {}
        for one in seen:
            markets.setdefault((one.currency, one.second_hand), []).append(one)
        for same in markets.values():
            moving = moves(kind, same, book.today)
            found |= {one: observed_freshness(one, book.today, moving=moving) for one in same}
    return found


def _market(
    part: Part, book: PriceBook, currency: Asked | None, *, used: bool
) -> list[Observation]:
    """Return a person's own prices of a part, launch prices not among them."""
    return [
        one
        for one in book.observations.get((part_kind(part), part.id), ())
        if currency in (None, one.currency) and one.second_hand == used and one.kind != "msrp"
    ]


def _states(
    part: Part, seen: list[Observation], today: date
) -> list[tuple[Freshness, Observation]]:
    moving = moves(part_kind(part), seen, today)
    return [(observed_freshness(one, today, moving=moving), one) for one in seen]


def _own(part: Part, book: PriceBook, currency: Currency, *, used: bool) -> Price | None:
    """Return what the freshest of a person's own prices say; their median is expected."""
    found = _freshest(part, book, currency, used=used)
    return _price(*found, currency) if found else None


def _own_abroad(part: Part, book: PriceBook, currency: Currency, *, used: bool) -> Price | None:
    """Return what a person's own prices in euros, pounds or yen come to."""
    for money in abroad.MARKETS:
        found = _freshest(part, book, money, used=used)
        if not found:
            continue
        price = _price([abroad.in_dollars(one) for one in found[0]], found[1], "USD")
        low, high = price.low * (1 - abroad.SPREAD), price.high * (1 + abroad.SPREAD)
        price = replace(price, low=low, high=high, asked_in=money)
        return price if currency == "USD" else _converted(price, book.rate, currency)
    return None


def _freshest(
    part: Part, book: PriceBook, currency: Asked, *, used: bool
) -> tuple[list[Observation], Freshness] | None:
    states = _states(part, _market(part, book, currency, used=used), book.today)
    for state in ORDER if book.accept_expired else ORDER[:-1]:
        if seen := [one for found, one in states if found == state]:
            return seen, state
    return None


def _price(seen: list[Observation], state: Freshness, currency: Currency) -> Price:
    newest = max(seen, key=lambda one: one.observed)
    paid = [_paid(one) for one in seen]
    return Price(
        low=min(paid) * (1 - SPREAD[state]),
        expected=median(paid),
        high=max(paid) * (1 + SPREAD[state]),
        currency=currency,
        kind=newest.kind,
        observed=newest.observed,
        freshness=state,
        source=newest.source or newest.seller,
        condition=newest.condition,
        region=newest.region,
        tax="included" if newest.currency == "KRW" else newest.tax,
        n=len(seen),
    )


def _paid(seen: Observation) -> float:
    """Return an amount with its shipping, in Korea with the tax that every buyer pays."""
    amount = seen.amount + (seen.shipping or 0)
    untaxed = seen.currency == "KRW" and seen.tax == "excluded"
    return amount * (1 + KOREAN_VAT) if untaxed else amount


def _shipped(part: Part, book: PriceBook, currency: Currency, *, used: bool) -> Price | None:
    kind = part_kind(part)
    fitting = [
        one
        for one in book.assumed
        if one.part == kind  # most are of other kinds, and each search asks for every part
        and (one.condition == "used") == used
        and one.covers(part, kind)
        and one.amounts(currency)
    ]
    known = [one for one in fitting if one.ids or one.before_msrp]
    launched = None if used else _launch_price(part, book, currency)
    for found in (*_assumed(part, known, currency, book.today), launched):
        if found is not None:
            return found
    return next(_assumed(part, fitting, currency, book.today), None)


def _assumed(
    part: Part, found: Iterable[AssumedPrice], currency: Currency, today: date
) -> Iterator[Price]:
    for one in found:
        amounts = one.cost(part, currency)
        if amounts is None:
            continue
        wider = 1 + WIDENING_PER_YEAR * age_days(one.assumed, today) / 365
        yield Price(
            low=amounts[0] / wider,
            expected=amounts[1],
            high=amounts[2] * wider,
            currency=currency,
            kind="assumed",
            observed=one.assumed,
            freshness="stale",
            source=one.basis,
            condition="used" if one.condition == "used" else "new",
            region="KR" if currency == "KRW" else "US",
            tax="included" if currency == "KRW" else "excluded",
            basis=one.name,
        )


def _launch_price(part: Part, book: PriceBook, currency: Currency) -> Price | None:
    """Return the maker's price at launch as an interval of what shops ask."""
    own = [
        one
        for one in book.observations.get((part_kind(part), part.id), ())
        if one.kind == "msrp" and one.currency == currency and not one.second_hand
    ]
    known = msrp(part) if currency == "USD" else None
    day: date | None
    if own:
        newest = max(own, key=lambda one: one.observed)
        amount, source, day = newest.amount, newest.source, newest.observed
    elif known:
        amount, source, day = *known, _launch_day(part)
    else:
        return None
    # Markets that move rise over launch prices; the rest is sold for about them, or sells off.
    moving = part_kind(part) in VOLATILE_KINDS
    lowest, highest = MSRP_SPREAD if moving else CALM_MSRP_SPREAD
    usual = sqrt(lowest * highest) if moving else 1.0
    return Price(
        low=amount * lowest,
        expected=amount * usual,
        high=amount * highest,
        currency=currency,
        kind="msrp",
        observed=day,
        freshness="stale",
        source=source,
        region="KR" if currency == "KRW" else "US",
        tax="included" if currency == "KRW" else "excluded",
    )


def _launch_day(part: Part) -> date | None:
    """Return the first day of the year, month or day that the record says."""
    if not part.launch:
        return None
    year, month, day = (*map(int, part.launch.split("-")), 1, 1)[:3]
    return date(year, month, day)


def _converted(found: Price | None, rate: Rate | None, currency: Currency) -> Price | None:
    """Return a price in another currency, with the tax that its shops put on; None without a rate.

    USD x rate x 1.10 is what bringing it into Korea costs; a local premium comes on top.
    """
    if found is None or rate is None:
        return None
    factor = rate.factor(found.currency, currency)
    if currency == "KRW" and found.tax != "included":
        factor *= 1 + KOREAN_VAT
    if currency == "USD" and found.tax == "included":
        factor /= 1 + KOREAN_VAT
    return replace(
        found,
        low=found.low * factor,
        expected=found.expected * factor,
        high=found.high * factor,
        currency=currency,
        tax="included" if currency == "KRW" else "excluded",
        rate=rate,
    )
