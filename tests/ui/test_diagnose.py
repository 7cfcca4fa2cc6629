"""The screen Diagnose: what was seen, what it says, and a fix that one click applies."""

import json
import pickle
from pathlib import Path
from typing import Any

import fakes
import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtWidgets import QLabel
from walk import problems, settled, spin

from trainwright.diagnose.evidence import Evidence
from trainwright.messages import LANGUAGES, UserError
from trainwright.ui import i18n
from trainwright.ui.screens.diagnose import COMMAND, DiagnoseScreen
from trainwright.ui.widgets.base import Heading
from trainwright.ui.widgets.buttons import Button

SLOW_LOADER = {
    "trainwright_record": 1,
    "steps": {"steps": 50, "seconds": 0.31, "data_wait": 0.2, "compute": 0.1},
    "loading": {"cpu_share": 0.05, "batch_seconds": 0.2},
    "gpus": [{"utilisation": {"mean": 0.3, "low": 0, "high": 1}, "idle_share": 0.6}],
    "host": {"cores": 16, "usable_cores": 16, "pressure_io": 0.4},
    "setup": {"device": "cuda", "num_workers": 0, "batch": 32},
    "unavailable": {"gpus.sm_active": "probe.not-supported"},
}
ERROR = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 23.65 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process "
    "has 22.63 GiB memory in use. Of the allocated memory 21.00 GiB is allocated by PyTorch, and "
    "150.00 MiB is reserved by PyTorch but unallocated."
)


def screen_of(window: Any) -> DiagnoseScreen:
    screen = window.screen_named("diagnose")
    assert isinstance(screen, DiagnoseScreen)
    return screen


def texts(screen: DiagnoseScreen) -> list[str]:
    return [label.text() for label in screen.findChildren(QLabel) if label.isVisible()]


def applying(screen: DiagnoseScreen) -> list[Button]:
    buttons = screen.findChildren(Button)
    return [each for each in buttons if each.isVisible() and "Apply" in each.text()]


def opened_files(screen: DiagnoseScreen, *paths: Path) -> None:
    """Open files and wait until what they say, or why they are refused, is shown."""
    ended: list[object] = []
    screen._reading.done.connect(ended.append)
    screen._reading.failed.connect(ended.append)
    screen.open_files(paths)
    for _ in range(500):
        spin(20)
        if ended:
            spin(50)
            return
    pytest.fail("the files are still being read")


@pytest.fixture
def slow_loader(tmp_path: Path) -> Path:
    path = tmp_path / "run.record.json"
    path.write_text(json.dumps(SLOW_LOADER), encoding="utf-8")
    return path


def test_the_step_stands_next_to_what_the_open_plan_predicts(
    opened: Any, slow_loader: Path, tmp_path: Path
) -> None:
    window = opened()
    screen = screen_of(window)
    opened_files(screen, slow_loader)
    assert "Measured / predicted" in texts(screen)
    assert any(text.startswith("The run had 32 samples a batch") for text in texts(screen))
    window.session.set_key("settings.micro_batch", 32)
    for _ in range(100):
        spin(20)
        if settled(window):
            break
    assert not any("samples a batch" in text for text in texts(screen))


def test_a_memory_snapshot_shows_who_held_the_peak(opened: Any, tmp_path: Path) -> None:
    frame = {"filename": "train.py", "line": 10, "name": "forward"}
    block = {"size": 2 << 20, "state": "active_allocated", "frames": [frame]}
    segment = {"device": 0, "address": 0, "total_size": 2 << 20, "blocks": [block]}
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [[]]}))
    screen = screen_of(opened(plan=None))
    opened_files(screen, path)
    assert "train.py:10 forward" in texts(screen)


def test_a_record_gets_a_verdict_whose_fix_is_one_click(opened: Any, slow_loader: Path) -> None:
    window = opened()
    screen = screen_of(window)
    opened_files(screen, slow_loader)
    assert "Input pipeline" in texts(screen)
    assert "65 %" in texts(screen)  # 0.2 s of 0.31 s
    assert any("earlier first verdicts of high confidence" in text for text in texts(screen))
    before = window.session.plan
    applying(screen)[0].click()
    assert window.session.plan.settings.loader.num_workers == 4
    assert window.session.undo_label is not None
    window.undo()
    assert window.session.plan == before


def test_without_a_plan_nothing_can_be_applied(opened: Any, slow_loader: Path) -> None:
    screen = screen_of(opened(plan=None))
    opened_files(screen, slow_loader)
    assert applying(screen)
    assert not any(button.isEnabled() for button in applying(screen))


def test_dropped_files_show_where_the_step_goes(opened: Any, tmp_path: Path, qtbot: Any) -> None:
    log = tmp_path / "train.log"
    line = "step {} data_time 0.96s batch_time 1.22s\n"
    log.write_text(line.format(10) + line.format(20), encoding="utf-8")
    screen = screen_of(opened())
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(log))])
    screen.dropEvent(
        QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
                   Qt.KeyboardModifier.NoModifier)
    )  # fmt: skip
    qtbot.waitUntil(lambda: "Waiting for data" in texts(screen))
    spin(50)
    titles = [each.accessibleName() for each in screen.findChildren(Heading)]
    assert "Where one step of 1.22 s goes" in titles
    assert "79 %" in texts(screen)
    assert any(text.endswith("train.log: training log") for text in texts(screen))


def test_a_damaged_record_is_refused_in_a_line(opened: Any, tmp_path: Path) -> None:
    path = tmp_path / "damaged.json"
    path.write_text('{"trainwright_record": 1, "stesp": {}}', encoding="utf-8")
    screen = screen_of(opened())
    opened_files(screen, path)
    assert any("steps" in text and "damaged.json" in text for text in texts(screen))


def test_a_pasted_error_gets_remedies_for_the_open_plan(opened: Any, qtbot: Any) -> None:
    window = opened()
    window.session.set_key("settings.micro_batch", 8)
    qtbot.waitUntil(lambda: window.session.settings.micro_batch == 8 and settled(window))
    screen = screen_of(window)
    screen.error.setPlainText(ERROR)
    screen.explain.click()
    qtbot.waitUntil(lambda: any("lowers the peak by" in text for text in texts(screen)))
    assert any("It lacked 0.98 GiB" in text for text in texts(screen))
    before = window.session.plan
    applying(screen)[0].click()
    assert window.session.plan != before

    # What was evaluated for another plan is never shown as this one's.
    qtbot.waitUntil(lambda: any("has changed since" in text for text in texts(screen)))
    assert not applying(screen)
    again = next(b for b in screen.findChildren(Button) if "Evaluate on" in b.text())
    again.click()
    qtbot.waitUntil(lambda: not any("has changed since" in text for text in texts(screen)))
    window.undo()
    assert window.session.plan == before
    qtbot.waitUntil(lambda: any("has changed since" in text for text in texts(screen)))


def test_an_error_of_another_gpu_says_so_above_all_else(opened: Any, qtbot: Any) -> None:
    window = opened()
    window.session.set_key("settings.micro_batch", 8)
    qtbot.waitUntil(lambda: window.session.settings.micro_batch == 8 and settled(window))
    screen = screen_of(window)
    text = ERROR.replace("23.65", "79.25").replace("22.63", "78.23").replace("21.00", "76.60")
    screen.error.setPlainText(text)
    screen.explain.click()
    qtbot.waitUntil(lambda: any("lowers the peak by" in text for text in texts(screen)))
    labels = screen.findChildren(QLabel)
    differs, error = (
        next(label for label in labels if label.text().startswith(words))
        for words in ("The message is from a GPU", "Truly too big")
    )
    assert differs.mapTo(screen, QPoint()).y() < error.mapTo(screen, QPoint()).y()
    assert not any("enough" in each.accessibleName() for each in screen.findChildren(Heading))


def test_a_pasted_error_without_a_plan_names_what_is_needed(opened: Any) -> None:
    screen = screen_of(opened(plan=None))
    screen.error.setPlainText(ERROR)
    screen.explain.click()
    spin(50)
    assert any("give the run's plan" in text for text in texts(screen))
    assert not applying(screen)


def test_watching_shows_what_was_seen(opened: Any, qtbot: Any) -> None:
    def watch(pid: int | None, seconds: float, cancelled: Any) -> Evidence:
        return Evidence.model_validate(SLOW_LOADER)

    screen = screen_of(opened(core=fakes.core(watch=watch)))
    screen.watch.click()
    qtbot.waitUntil(lambda: "Input pipeline" in texts(screen))
    assert screen.watch.isEnabled()


def test_a_run_that_is_gone_is_said(opened: Any, qtbot: Any) -> None:
    def watch(pid: int | None, seconds: float, cancelled: Any) -> Evidence:
        raise UserError.of("diagnose.no-process", pid=pid)

    screen = screen_of(opened(core=fakes.core(watch=watch)))
    screen.pid.setValue(4711)
    screen.watch.click()
    qtbot.waitUntil(lambda: any("4711" in text for text in texts(screen)))


def test_the_command_can_be_copied(opened: Any) -> None:
    screen = screen_of(opened())
    copy = next(b for b in screen.findChildren(Button) if b.accessibleName() == "Copy the command")
    copy.click()
    assert QGuiApplication.clipboard().text() == COMMAND


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_cut(
    opened: Any, slow_loader: Path, preferences: Any, language: Any, theme: Any
) -> None:
    preferences.language, preferences.theme = language, theme
    window = opened()
    window.resize(1280, 720)
    i18n.use(language)
    screen = screen_of(window)
    opened_files(screen, slow_loader)
    spin(300)
    assert list(problems(window, "diagnose")) == []
    screen.error.setPlainText(ERROR)
    screen.explain.click()
    spin(300)
    assert list(problems(window, "diagnose")) == []
