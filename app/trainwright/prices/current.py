"""The price book of now: the person's file, the rate that they set, and what ships."""

from dataclasses import replace
from datetime import date

from trainwright.prices import exchange, own_prices
from trainwright.prices.book import PriceBook, by_part
from trainwright.prices.shipped import assumed_prices


def price_book(today: date | None = None, *, accept_expired: bool = False) -> PriceBook:
    """Return all prices known on a day, by default the present one."""
    found, (rate, wrong) = own_prices.load(), exchange.load()
    book = PriceBook(
        today=today or date.today(),
        observations=by_part(found.observations),
        assumed=assumed_prices(),
        rate=rate,
        notes=tuple(note for note in (found.note, wrong) if note is not None),
    )
    return replace(book, accept_expired=accept_expired)
