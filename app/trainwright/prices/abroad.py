"""Prices of shops in Europe and Japan in dollars, by dated rates that are assumed.

Nothing is fetched: the rates ship, and their error widens the price.
"""

from dataclasses import dataclass, replace
from datetime import date

from trainwright.prices.observation import Asked, Observation


@dataclass(frozen=True, slots=True)
class Market:
    """What money is worth, and the tax in the prices that consumers see."""

    usd: float
    """Of one unit."""
    vat: float


ASSUMED = date(2025, 12, 31)
"""Day of the rates; assumed, what the ECB's reference rates were about that winter, rounded."""
MARKETS: dict[Asked, Market] = {
    "EUR": Market(usd=1.17, vat=0.20),  # VAT: assumed, Germany 19 %, France 20 %, Spain 21 %
    "GBP": Market(usd=1.34, vat=0.20),  # VAT Act 1994, section 2
    "JPY": Market(usd=1 / 156, vat=0.10),  # consumption tax since October 2019
}
SPREAD = 0.10
"""How far the rate of a day may be from these; assumed, what a year moved them by."""


def in_dollars(seen: Observation) -> Observation:
    """Return a price in dollars without tax; one in dollars or won as it is."""
    market = MARKETS.get(seen.currency)
    if market is None:
        return seen
    factor = market.usd / (1 if seen.tax == "excluded" else 1 + market.vat)
    shipping = None if seen.shipping is None else seen.shipping * factor
    return replace(
        seen, amount=seen.amount * factor, shipping=shipping, currency="USD", tax="excluded"
    )
