"""Benchmark cards: nothing starts by itself, one runs at a time, every end is told."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fakes
import pytest
from PySide6.QtWidgets import QLabel
from walk import problems

from trainwright.messages import Message, UserError
from trainwright.probe.benchmark import Choices, Cost, Outcome
from trainwright.probe.measurements import Kept
from trainwright.ui import i18n
from trainwright.ui.screens.benchmarks import BenchmarkPanel
from trainwright.ui.widgets.base import Scroll

Shown = Callable[..., BenchmarkPanel]


@pytest.fixture
def shown(qtbot: Any, qapp: Any) -> Iterator[Shown]:
    """Return a function that shows the cards; named parts of the core are made up."""

    scrolls: list[Scroll] = []

    def show(**others: Any) -> BenchmarkPanel:
        panel = BenchmarkPanel(fakes.measuring(**others))
        scroll = Scroll(panel)
        scroll.setAccessibleName("Benchmarks")
        scroll.resize(1000, 900)
        qtbot.addWidget(scroll)
        scrolls.append(scroll)  # lives as long as the panel
        scroll.show()
        panel.entered()
        qtbot.waitUntil(panel.cards["disk"].start.isEnabled)
        return panel

    yield show
    scrolls.clear()


def texts(panel: BenchmarkPanel) -> list[str]:
    return [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]


class Held:
    """A run that goes on until it is let go, or cancelled."""

    def __init__(self, outcome: Outcome | None = None) -> None:
        self.asked: list[tuple[str, Choices]] = []
        self.let_go = threading.Event()
        self.outcome = outcome or Outcome(())

    def __call__(self, name: str, choices: Choices, progress: Any, cancelled: Any) -> Outcome:
        self.asked.append((name, choices))
        progress(0.5, "bench.progress.seq1m-q8t1")
        while not self.let_go.wait(0.01):
            if cancelled():
                raise UserError.of("worker.cancelled")
        return self.outcome


def test_what_each_takes_stands_there_before_it_is_started(shown: Shown) -> None:
    told = texts(shown())
    assert any("Writes 1.00 GiB" in text and "/data" in text and "48 s" in text for text in told)
    assert any("Keeps every core busy" in text for text in told)
    assert told.count("Not measured yet.") == 3


def test_what_was_measured_stands_there_with_its_date(shown: Shown, qtbot: Any) -> None:
    panel = shown()
    qtbot.waitUntil(lambda: "7.1 GB/s" in texts(panel))
    assert "Measured 2026-03-01 10:20 UTC: Samsung SSD 990 PRO 2TB, fio 3.36." in texts(panel)


def test_one_runs_at_a_time_and_shows_how_far_it_is(shown: Shown, qtbot: Any) -> None:
    held = Held(Outcome((), (Message.of("bench.flag.tmpfs"),)))
    panel = shown(run=held)
    card, other = panel.cards["cpu"], panel.cards["gpu"]
    with qtbot.waitSignal(panel.measured):
        card.start.click()
        qtbot.waitUntil(lambda: "50%" in card.bar.accessibleName())
        assert "SEQ1M" in card.bar.accessibleName()
        assert card.cancel.isVisible()
        assert not other.start.isEnabled()
        other.start.click()
        held.let_go.set()
    qtbot.waitUntil(card.start.isVisible)
    assert [name for name, _ in held.asked] == ["cpu"]
    assert "memory (tmpfs)" in card.says.text()
    assert other.start.isEnabled()
    assert not card.bar.isVisible()


def test_cancelling_is_told_and_measures_nothing(shown: Shown, qtbot: Any) -> None:
    panel = shown(run=Held())
    told: list[None] = []
    panel.measured.connect(lambda: told.append(None))
    card = panel.cards["disk"]
    card.start.click()
    qtbot.waitUntil(card.cancel.isVisible)
    card.cancel.click()
    qtbot.waitUntil(card.start.isVisible)
    assert card.says.text() == "Cancelled."
    assert told == []


def test_a_refusal_is_told_and_a_second_start_means_it(shown: Shown, qtbot: Any) -> None:
    asked: list[bool] = []

    def run(_name: str, choices: Choices, *_: Any) -> Outcome:
        asked.append(choices.force)
        if not choices.force:
            raise UserError.of("bench.on-battery")
        return Outcome(())

    panel = shown(run=run)
    card = panel.cards["disk"]
    card.start.click()
    qtbot.waitUntil(lambda: "battery" in card.says.text())
    card.start.click()
    qtbot.waitUntil(lambda: asked == [False, True])
    qtbot.waitUntil(card.start.isVisible)
    assert not card.hindered


def test_a_drive_without_room_says_so_in_place_of_its_cost(shown: Shown) -> None:
    def cost(name: str, choices: Choices) -> Cost:
        if name == "disk":
            raise UserError.of("bench.full", folder=str(choices.folder), free=1 << 20, need=1 << 30)
        return Cost(1.0)

    assert any("does not fill up" in text for text in texts(shown(cost=cost)))


def test_another_folder_is_what_is_measured(shown: Shown, qtbot: Any, monkeypatch: Any) -> None:
    from trainwright.ui import asking

    held = Held()
    panel = shown(run=held)
    monkeypatch.setattr(asking, "folder_to_measure", lambda *_: Path("/elsewhere"))
    panel.cards["disk"].folder.click()
    qtbot.waitUntil(lambda: any("/elsewhere" in text for text in texts(panel)))
    panel.cards["disk"].start.click()
    qtbot.waitUntil(lambda: bool(held.asked))
    assert held.asked[0][1].folder == Path("/elsewhere")
    panel.stop()


def test_a_damaged_file_is_told(shown: Shown) -> None:
    note = Message.of("kept.damaged", file="/x", aside="/x.damaged")
    assert any("set aside" in text for text in texts(shown(kept=lambda: Kept((), note))))


def test_ending_the_program_ends_the_run(shown: Shown, qtbot: Any) -> None:
    panel = shown(run=Held())
    panel.cards["disk"].start.click()
    qtbot.waitUntil(panel.cards["disk"].cancel.isVisible)
    panel.stop()
    assert not panel._job.running


@pytest.mark.parametrize("language", ["en", "ko"])
def test_nothing_is_cut_in_either_language(shown: Shown, qtbot: Any, language: Any) -> None:
    i18n.use(language)
    panel = shown(run=Held())
    panel.cards["disk"].start.click()
    qtbot.waitUntil(panel.cards["disk"].cancel.isVisible)
    qtbot.wait(30)
    assert list(problems(panel.window(), "benchmarks")) == []
    panel.stop()
    i18n.use("en")
