"""Windows without a display, answered by made-up figures, with nothing kept between tests."""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["QT_QPA_PLATFORM"] = "offscreen"

import fakes
from walk import settled

from trainwright.ui import asking, i18n
from trainwright.ui.app import prepared
from trainwright.ui.preferences import Preferences
from trainwright.ui.window import Window

Opened = Callable[..., Window]


@pytest.fixture(autouse=True)
def collected_here() -> Iterator[None]:
    """Collect garbage on this thread alone, as the window does.

    A closed window is a cycle. Threads that outlive it, and xdist's own, would destroy its widgets,
    which takes the process down. ``tests/conftest.py`` turns collection on again for other tests.
    """
    gc.disable()
    yield
    gc.collect(1)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINWRIGHT_STATE", str(tmp_path / "state"))


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a person answers to the questions about their work; a test may change it.

    ``asked`` lists the questions; the usual answer throws edits away.
    """
    given: dict[str, Any] = {"edits": "discard", "changed": "keep", "to": None, "asked": []}

    def answer(kind: str) -> Callable[..., Any]:
        def asked(*_: Any) -> Any:
            given["asked"].append(kind)
            return given[kind]

        return asked

    monkeypatch.setattr(asking, "about_edits", answer("edits"))
    monkeypatch.setattr(asking, "about_changed_file", answer("changed"))
    monkeypatch.setattr(asking, "file_to_save", answer("to"))
    monkeypatch.setattr(asking, "board_to_save", answer("to"))
    return given


@pytest.fixture
def preferences(tmp_path: Path) -> Preferences:
    made = Preferences(tmp_path / "window.ini")
    made.language, made.theme = "en", "light"
    return made


@pytest.fixture
def opened(
    qtbot: Any, qapp: Any, preferences: Preferences, answers: dict[str, Any]
) -> Iterator[Opened]:
    """Return a function that opens a window on an example, answered by a fake core."""
    windows: list[Window] = []

    def open_window(*, plan: Path | None = fakes.EXAMPLE, core: Any = None) -> Window:
        window = prepared(qapp, core or fakes.core(), preferences)
        qtbot.addWidget(window)
        windows.append(window)
        window.resize(1440, 900)
        window.show()
        qtbot.waitUntil(lambda: window.session is not None)
        assert window.session is not None
        if plan is not None:
            window.open_path(plan)
            qtbot.waitUntil(lambda: settled(window))
        return window

    yield open_window
    i18n.lengthen(False)
    i18n.use("en")
    answers["edits"] = "discard"
    for window in windows:
        window.close()
