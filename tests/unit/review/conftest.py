"""The tests of this folder run on computers of any speed."""

import pytest

from trainwright.cli import review


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the search for ways out the time that it needs."""
    monkeypatch.setattr(review, "_SECONDS", 60.0)
