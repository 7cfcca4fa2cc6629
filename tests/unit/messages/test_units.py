"""Units at the edge: the two ends of a range can be compared at a glance."""

import pytest

from trainwright.messages.units import durations

HOUR, DAY = 3600.0, 86400.0


@pytest.mark.parametrize(
    ("low", "high", "told"),
    [
        (37.5 * HOUR, 2 * DAY + 17 * HOUR, ("1 d 14 h", "2 d 17 h")),
        (5 * HOUR, 2 * DAY + 1 * HOUR, ("5 h 0 min", "2 d 1 h")),
        (12.5 * HOUR, 21.6 * HOUR, ("12 h 30 min", "21 h 36 min")),
        (18.6, 31.5, ("18.6 s", "31.5 s")),
    ],
)
def test_both_ends_are_told_in_days_where_both_are_days(
    low: float, high: float, told: tuple[str, str]
) -> None:
    assert durations(low, high) == told
