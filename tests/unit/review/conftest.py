"""Lets the tests of this folder share ``trainerfiles.py``, on computers of any speed."""

import sys
from pathlib import Path

import pytest

from trainwright.cli import review

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the search for ways out the time that it needs."""
    monkeypatch.setattr(review, "_SECONDS", 60.0)
