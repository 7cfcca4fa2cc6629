"""How long a price holds, and how wide it grows meanwhile.

Markets of graphics cards, memory and drives moved by factors within months of 2025 and 2026 (a
32 GB kit of DDR5 from under 100 to 375 USD), so that their prices age twice as fast for as long
as they keep moving.
"""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Literal

from trainwright.catalog import PartKind
from trainwright.prices.observation import Observation

Freshness = Literal["fresh", "ageing", "stale", "expired"]
ORDER: tuple[Freshness, ...] = ("fresh", "ageing", "stale", "expired")

LAST_DAY: dict[Freshness, int] = {"fresh": 14, "ageing": 45, "stale": 120}
"""Age in days at which a price leaves each state; assumed."""
SPREAD: dict[Freshness, float] = {"fresh": 0.05, "ageing": 0.10, "stale": 0.25, "expired": 0.50}
"""Part of the amount that the true price may be off either way; assumed. An expired price counts
only where a person accepts it."""
MSRP_SPREAD = (1.0, 1.8)
"""A launch price in shops, as factors of it; assumed. The RTX 5090 (1999 USD) sold for 1.5 to 2.2
times as much in its first year."""

CALM_MSRP_SPREAD = (0.65, 1.3)
"""The same of processors, boards, cases, coolers and power supplies, which sell off: assumed, what
US shops asked in July 2025 for boards of 2022 to 2024."""

VOLATILE_KINDS: frozenset[PartKind] = frozenset(("gpu", "memory", "storage"))
VOLATILE = 0.20
"""Range of the prices of ninety days, over their mean, above which a market moves; assumed."""
VOLATILITY_DAYS = 90


def age_days(observed: date, today: date) -> int:
    """Return the days since a price was seen; one of tomorrow, in another time zone, is new."""
    return max(0, (today - observed).days)


def freshness(days: int, *, moving: bool = False) -> Freshness:
    """Return the state of a price of so many days, in a market that moves or rests."""
    halves = 2 if moving else 1
    for state, last in LAST_DAY.items():
        if days * halves <= last:
            return state
    return "expired"


def observed_freshness(seen: Observation, today: date, *, moving: bool) -> Freshness:
    """Return the state of an observation; an offer is fresh to its last day and then expired."""
    if seen.valid_until is not None:
        return "fresh" if today <= seen.valid_until else "expired"
    return freshness(age_days(seen.observed, today), moving=moving)


def volatility(seen: Iterable[Observation], today: date) -> float | None:
    """Return the range of the last ninety days' amounts over their mean.

    None where fewer than three prices, or less than thirty days between them, tell nothing.
    All are to be of one part, condition and currency.
    """
    since = today - timedelta(days=VOLATILITY_DAYS)
    recent = [one for one in seen if since <= one.observed <= today]
    if len(recent) < 3:
        return None
    days = [one.observed for one in recent]
    if max(days) - min(days) < timedelta(days=30):
        return None
    amounts = [one.amount for one in recent]
    return (max(amounts) - min(amounts)) / (sum(amounts) / len(amounts))


def moves(kind: PartKind, seen: Iterable[Observation], today: date) -> bool:
    """Return whether a part's market moves; of the volatile kinds, unless its prices deny it."""
    if kind not in VOLATILE_KINDS:
        return False
    measured = volatility(seen, today)
    return measured is None or measured > VOLATILE
