"""The screen "This computer" on computers of every kind."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from nvmlstub import NvmlStub
from PySide6.QtWidgets import QLabel
from walk import problems

from trainwright.catalog import find_gpu
from trainwright.messages import Message
from trainwright.probe.framework import Framework
from trainwright.probe.reading import Missing
from trainwright.probe.snapshot import Snapshot, take
from trainwright.ui import i18n
from trainwright.ui.screens.computer import ComputerScreen, DraftCard

Shown = Callable[[Snapshot], ComputerScreen]
TORCH = Framework("3.12.3", "2.13.0+cu130", "13.0", None, ("NVIDIA GeForce RTX 4090",), None)

SCENARIOS = (
    "plain", "two", "nvlink", "hopper", "mig", "mig-container", "wsl", "laptop", "unified",
    "foreign-process", "garbage", "strange", "old-driver", "lost", "crash", "none", "not-loaded",
)  # fmt: skip


@pytest.fixture
def read(nvml_stub: NvmlStub, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Snapshot]:
    """Return a function that takes a snapshot of one of the stub's computers."""

    def taken(scenario: str) -> Snapshot:
        for name, value in nvml_stub.variables(scenario).items():
            monkeypatch.setenv(name, value)
        return take(patience_s=1)

    return taken


@pytest.fixture
def shown(qtbot: Any, qapp: Any) -> Shown:
    """Return a function that shows a snapshot."""

    def show(snapshot: Snapshot) -> ComputerScreen:
        core = fakes.core(snapshot=lambda: snapshot, framework=lambda: TORCH)
        screen = ComputerScreen(core)
        screen.setAccessibleName("This computer")
        screen.resize(1100, 700)
        qtbot.addWidget(screen)
        screen.show()
        screen.entered()
        qtbot.waitUntil(lambda: TORCH.torch in texts(screen), timeout=10_000)
        qtbot.wait(30)
        return screen

    return show


def texts(screen: ComputerScreen) -> list[str]:
    return [label.text() for label in screen.findChildren(QLabel) if label.isVisible()]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_computer_is_shown_whole_in_both_languages(
    read: Callable[[str], Snapshot], shown: Shown, scenario: str
) -> None:
    snapshot = read(scenario)
    for language in ("en", "ko"):
        i18n.use(language)
        screen = shown(snapshot)
        assert list(problems(screen, scenario)) == []
        screen.close()
    i18n.use("en")


def test_a_reading_that_is_absent_says_why(read: Callable[[str], Snapshot], shown: Shown) -> None:
    told = texts(shown(read("lost")))
    assert "NVIDIA GeForce RTX 4090" in told
    assert "GPU 1" in told
    assert "the GPU has fallen off the bus; restart the computer" in told


def test_a_plan_is_offered_where_one_can_be_made(
    read: Callable[[str], Snapshot], shown: Shown, qtbot: Any
) -> None:
    screen = shown(read("plain"))
    with qtbot.waitSignal(screen.chosen) as asked:
        screen.plan_here.click()
    assert asked.args == ["local", None]
    assert not shown(read("not-loaded")).plan_here.isVisible()


def test_an_unknown_gpu_is_added_where_the_person_says_so(
    read: Callable[[str], Snapshot],
    shown: Shown,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRAINWRIGHT_HARDWARE", str(tmp_path))
    screen = shown(read("strange"))
    [draft] = [
        each for each in screen.findChildren(DraftCard) if "Prototype 7" in str(texts(screen))
    ]
    assert list(tmp_path.rglob("*.yaml")) == []  # looking writes nothing
    assert not screen.plan_here.isVisible()
    draft.look.click()
    assert any("bandwidth_gb_s" in text for text in texts(screen))
    draft.keep.click()
    assert [path.name for path in tmp_path.rglob("*.yaml")] == ["nvidia-prototype-7.yaml"]
    assert find_gpu("NVIDIA Prototype 7").record.memory_bytes.value == 48 << 30
    assert screen.plan_here.isVisible()


def test_reading_again_shows_what_changed(
    read: Callable[[str], Snapshot], qtbot: Any, qapp: Any
) -> None:
    found = [read("plain"), read("lost")]
    core = fakes.core(
        snapshot=lambda: found.pop(0), framework=lambda: Missing(Message.of("probe.untold"))
    )
    screen = ComputerScreen(core)
    qtbot.addWidget(screen)
    screen.show()
    screen.entered()
    qtbot.waitUntil(lambda: "NVIDIA GeForce RTX 4090" in texts(screen), timeout=10_000)
    assert "GPU 1" not in texts(screen)
    screen.again.click()
    qtbot.waitUntil(lambda: "GPU 1" in texts(screen), timeout=10_000)
    assert screen.again.isEnabled()


def test_start_leads_to_a_plan_or_to_the_reason_why_not(
    read: Callable[[str], Snapshot], opened: Any, qtbot: Any
) -> None:
    window = opened(core=fakes.core(snapshot=lambda: read("strange")))
    window.go("start")
    start = window.screen_named("start")
    qtbot.waitUntil(lambda: start._plan_here.isVisible(), timeout=10_000)
    start._plan_here.click()
    assert window.place == "computer"
