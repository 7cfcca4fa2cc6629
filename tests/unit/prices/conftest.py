from datetime import date, timedelta

import pytest

from trainwright.prices import Observation

TODAY = date(2026, 7, 1)


@pytest.fixture
def today():
    return TODAY


@pytest.fixture
def seen():
    """An observation of so many days ago."""

    def make(amount=1000.0, days=0, *, part="rm1000x", part_kind="psu", currency="USD", **more):
        return Observation(
            part_kind=part_kind,
            part=part,
            amount=amount,
            currency=currency,
            kind=more.pop("kind", "new"),
            observed=TODAY - timedelta(days=days),
            **more,
        )

    return make
