"""The numbers that are believed wherever they come from: what is measured, counted or paid."""

import math
from typing import Any

LEAST, MOST = 1e-24, 1e24
"""Magnitudes of numbers other than 0: the SI prefixes yocto and yotta, far beyond any quantity of
a computer. Products and quotients of a dozen of them stay finite."""
MOST_WHOLE = (1 << 63) - 1
"""Largest whole number: what 64 bits hold with a sign."""


def believed(value: float) -> bool:
    """Return whether a number is one that any quantity of ours may have."""
    if isinstance(value, int):
        return abs(value) <= MOST_WHOLE
    return value == 0 or (math.isfinite(value) and LEAST <= abs(value) <= MOST)


def first_odd(data: Any, *, whole_only: bool = False) -> tuple[tuple[str | int, ...], float] | None:
    """Return the place and value of a number in plain data that is not believed; None: all are.

    ``whole_only``: of fractions nothing is asked, as in a model's configuration, where they are
    any masks and limits.
    """
    waiting: list[tuple[tuple[str | int, ...], Any]] = [((), data)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [((*place, key), each) for key, each in value.items()]
        elif isinstance(value, list):
            waiting += [((*place, index), each) for index, each in enumerate(value)]
        elif isinstance(value, int if whole_only else int | float) and not believed(value):
            return place, value
    return None
