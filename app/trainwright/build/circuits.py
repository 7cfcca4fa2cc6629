"""The wall circuit that a computer is planned for where nobody names one."""

import math

from trainwright.machine.build import CircuitName
from trainwright.prices import Currency

_HOUSE: dict[Currency, CircuitName] = {"USD": "us-120v-15a", "KRW": "kr-220v-16a"}
"""Usual circuit of a room in the currency's country."""
LAID: CircuitName = "us-240v-20a"
LAID_FROM = 20_000.0
"""USD from which a circuit of 240 V is laid for the computer; assumed: an electrician costs a
twentieth of it."""


def usual(currency: Currency, limit: float) -> CircuitName:
    """Return the circuit for a budget, infinite where there is none, in a currency's country."""
    return LAID if currency == "USD" and LAID_FROM <= limit < math.inf else _HOUSE[currency]
