"""The serving side on the Plan screen: the real core, a shipped profile."""

from typing import Any

import fakes
import pytest
from PySide6.QtWidgets import QLabel

from trainwright.data import resources
from trainwright.ui.core import Core


@pytest.fixture
def window(opened: Any, qtbot: Any) -> Any:
    """A window on the serving example, with everything searched."""
    plan = resources("examples", "llama-8b-serve-rtx4090.plan.yaml")
    found = opened(plan=plan, core=Core(snapshot=fakes.snapshot))
    qtbot.waitUntil(lambda: found.session.report is not None, timeout=60_000)
    qtbot.waitUntil(lambda: found.session.report.serving.limits is not None, timeout=60_000)
    return found


def said(window: Any) -> list[str]:
    card = window.screen_named("plan").serving
    return [label.text() for label in card.findChildren(QLabel)]


def test_the_card_says_what_fits_at_most(window: Any) -> None:
    card = window.screen_named("plan").serving
    assert card.isVisibleTo(window)
    limits = window.session.report.serving.limits
    assert f"{limits.largest_context:,}" in said(window)
    assert "Largest context, requests 8" in said(window)


def test_an_engine_is_chosen_and_explained(window: Any, qtbot: Any) -> None:
    window.session.set_key("settings.engine", "vllm")
    qtbot.waitUntil(
        lambda: (
            window.session.report is not None
            and not window.session.provisional
            and window.session.report.serving.served.engine.id == "vllm"
        ),
        timeout=60_000,
    )
    assert "Taken at its start" in said(window)
    notes = " ".join(str(note.id) for note in window.session.report.notes)
    assert "plan.note.engine-takes" in notes


def test_training_has_no_card(opened: Any) -> None:
    window = opened()
    assert not window.screen_named("plan").serving.isVisibleTo(window)


def test_advice_on_serving_speaks_of_requests_not_of_steps(window: Any, qtbot: Any) -> None:
    window.go("advise")
    qtbot.waitUntil(lambda: window.session.advice is not None, timeout=60_000)
    screen = window.screen_named("advise")
    told = " ".join(label.text() for label in screen.findChildren(QLabel))
    assert "requests/s" in told
    assert "a round of requests" in told
    assert "samples/s" not in told
    assert "micro-batch" not in told
    assert not screen.scatter.isVisible(), "one point against nothing"
