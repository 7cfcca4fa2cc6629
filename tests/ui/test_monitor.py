"""The live screen: what it shows, and that readings are taken only while somebody needs them."""

import csv
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from trainwright.messages import Message
from trainwright.probe.monitor.alerts import Alert, from_text
from trainwright.probe.reading import Missing
from trainwright.probe.sample import GpuSample, HostSample, Sample
from trainwright.ui.preferences import Preferences

GIB = 1 << 30


def shown(widget: Any) -> str:
    """Return everything that the screen says to a screen reader, and its labels."""
    QApplication.processEvents()
    parts = []
    for each in widget.findChildren(QWidget):
        if each.isVisible():
            parts += [each.accessibleName(), each.accessibleDescription()]
            text = getattr(each, "text", None)
            parts.append(text() if callable(text) else "")
    return "\n".join(parts)


def entered(window: Any, qtbot: Any) -> Any:
    screen = window.screen_named("monitor")
    qtbot.waitUntil(lambda: window.live.monitor.latest is not None)
    screen.refresh()
    return screen


def test_the_screen_names_devices_readings_and_processes(opened: Any, qtbot: Any) -> None:
    screen = entered(opened(), qtbot)
    text = shown(screen)
    assert "busy 60 %, Memory 20.0 / 24.0 GiB, Power 268 / 450 W, 71 °C" in text
    assert "python (4242)" in text
    assert "CPU 40 %" in text
    assert "GPU 0 slows down: temperature." in text
    assert "GPU 0: Now 60 %, Min 60 %, Mean 60 %, Max 60 %" in text


def test_readings_are_taken_only_while_they_are_needed(
    opened: Any, qtbot: Any, tmp_path: Path
) -> None:
    window = opened()
    window.go("monitor")
    live = window.live
    assert live.sampler.running
    window.go("plan")
    assert not live.sampler.running
    live.log_to(tmp_path / "log.csv")
    assert live.sampler.running
    live.log_to(None)
    assert not live.sampler.running
    live.set_alerts((Alert("host", "cpu", "above", 0.99),))
    assert live.sampler.running
    window.go("monitor")
    window.switch_language()  # builds the screens again
    live.set_alerts(())
    qtbot.waitUntil(lambda: live.sampler.running)
    window.close()
    assert not live.sampler.running


def test_pause_holds_the_screen_and_not_the_readings(opened: Any, qtbot: Any) -> None:
    busy = [0.2]

    def read() -> Sample:
        gpu = GpuSample(0, "RTX", busy[0], GIB, 2 * GIB)
        return Sample(time.monotonic(), time.time(), HostSample(0.5), (gpu,))

    window = opened(core=fakes.core(reader=lambda: read))
    screen = entered(window, qtbot)
    window.live.set_pace(10)
    qtbot.waitUntil(lambda: "busy 20 %" in shown(screen))
    screen.pause.click()
    busy[0] = 0.7
    monitor = window.live.monitor
    qtbot.waitUntil(lambda: monitor.latest.gpus[0].utilisation == 0.7)
    qtbot.wait(400)
    assert "busy 20 %" in shown(screen)
    screen.resume.click()
    assert "busy 70 %" in shown(screen)


def test_an_alert_is_kept_told_and_taken_away(
    opened: Any, qtbot: Any, preferences: Preferences
) -> None:
    window = opened()
    screen = entered(window, qtbot)
    window.live.set_pace(10)
    form = screen.alerts
    assert form.reading.currentData() == "gpu.temperature_c"
    form.threshold.setValue(70)
    form.seconds.setValue(0)
    form.add.click()
    assert from_text(preferences.alerts) == (Alert("gpu", "temperature_c", "above", 70, 0),)
    qtbot.waitUntil(lambda: "Temperature is 71 °C, above 70 °C" in window.notice.text)
    form.remove(window.live.monitor.alerts[0])
    assert from_text(preferences.alerts) == ()


def test_alerts_are_watched_from_the_start(
    opened: Any, qtbot: Any, preferences: Preferences
) -> None:
    alert = {"device": "gpu", "key": "temperature_c", "beyond": "above", "threshold": 70}
    preferences.alerts = json.dumps([alert | {"for_s": 0}])
    window = opened()
    said = window.rail.state_of
    qtbot.waitUntil(lambda: "above 70 °C" in said("monitor"))
    assert window.place == "plan"
    window.go("monitor")
    assert said("monitor") == ""


def test_damaged_preferences_leave_the_screen_usable(
    opened: Any, qtbot: Any, preferences: Preferences
) -> None:
    preferences.alerts = "{rubbish"
    preferences._settings.setValue("pace", "fast")
    window = opened()
    entered(window, qtbot)
    assert window.live.sampler.hz == 1
    assert window.live.monitor.alerts == ()


def test_a_bound_is_asked_in_the_unit_of_its_reading(opened: Any, qtbot: Any) -> None:
    screen = entered(opened(), qtbot)
    form = screen.alerts
    form.reading.setCurrentIndex(form.reading.findData("gpu.memory_used"))
    form.reading.chosen.emit("gpu.memory_used")
    form.threshold.setValue(20)
    form.add.click()
    (alert,) = screen._monitor.alerts
    assert alert.threshold == 20 * GIB
    assert "Any GPU: Memory used above 20 GiB for 10 s" in shown(screen)


def test_the_log_and_the_picture(opened: Any, qtbot: Any, tmp_path: Path) -> None:
    window = opened()
    screen = entered(window, qtbot)
    window.live.set_pace(10)
    path = tmp_path / "log.csv"
    screen.log_to(path)
    assert screen.stop_log.isVisible()
    qtbot.waitUntil(lambda: path.exists() and path.read_text().count("\n") > 2)
    screen.stop_log.click()
    assert str(path) in window.notice.text
    with path.open(encoding="utf-8", newline="") as file:
        assert {row["gpu0.utilisation [%]"] for row in csv.DictReader(file)} == {"60"}
    assert screen.save_picture(tmp_path / "picture.png")
    assert QImage(str(tmp_path / "picture.png")).width() > 500
    assert not screen.save_picture(tmp_path / "no" / "folder" / "picture.png")
    assert "cannot be written" in window.notice.text


def test_a_log_that_cannot_be_written_says_so(opened: Any, qtbot: Any, tmp_path: Path) -> None:
    window = opened()
    screen = entered(window, qtbot)
    screen.log_to(tmp_path / "no" / "folder" / "log.csv")
    qtbot.waitUntil(lambda: "cannot be written" in window.notice.text)
    qtbot.waitUntil(lambda: screen.log.isVisible())


@pytest.mark.parametrize("language", ["en", "ko"])
def test_without_a_gpu_the_screen_says_why_and_shows_the_rest(
    opened: Any, qtbot: Any, preferences: Preferences, language: Any
) -> None:
    preferences.language = language
    missing = Missing(Message.of("probe.no-driver"))

    def read() -> Sample:
        return replace(fakes.live(), gpus=missing)

    screen = entered(opened(core=fakes.core(reader=lambda: read)), qtbot)
    why = {"en": "No GPU to show: no NVIDIA driver found", "ko": "표시할 GPU 없음"}[language]
    assert why.lower() in screen._gpu_chart._nothing.lower()
    assert "40 %" in shown(screen)


def test_a_reader_that_hangs_is_said(opened: Any, qtbot: Any, monkeypatch: Any) -> None:
    from trainwright.ui.screens import monitor as module

    window = opened()
    screen = entered(window, qtbot)
    window.live.sampler.stop()
    QApplication.processEvents()
    monkeypatch.setattr(module, "_SILENT_S", 0.2)
    qtbot.waitUntil(lambda: "No reading for" in screen._warning.label.text(), timeout=5000)


PROGRAM = """
import json, os, sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from PySide6.QtWidgets import QApplication
from trainwright.ui.app import prepared
from trainwright.ui.core import Core
from trainwright.ui.preferences import Preferences
import fakes, walk
app = QApplication([])
os.environ["TRAINWRIGHT_STATE"] = tempfile.mkdtemp()
said = {}
for scenario in sys.argv[2].split(","):
    os.environ["NVML_STUB"] = scenario
    preferences = Preferences(Path(tempfile.mkdtemp()) / "window.ini")
    preferences.language, preferences.pace = "en", 10
    window = prepared(app, fakes.core(reader=Core().reader), preferences)
    window.resize(1440, 900)
    window.show()
    while window.session is None:
        walk.spin(10)
    window.go("monitor")
    for _ in range(100):
        walk.spin(50)
        if window.live.monitor.latest is not None:
            break
    walk.spin(600)
    screen = window.screen_named("monitor")
    cards = [card.accessibleDescription() for card in screen._gpu_cards.values()]
    said[scenario] = {
        "cards": cards,
        "nothing": screen._gpu_chart._nothing,
        "host": screen._host.accessibleDescription(),
        "problems": list(walk.problems(window, "monitor")),
    }
    window.close()
print(json.dumps(said))
"""
SCENARIOS = {
    "plain": "busy",
    "two": "Power",
    "hopper": "busy",
    "mig": "Memory",
    "mig-container": "Memory –",
    "wsl": "busy –",
    "laptop": "Power",
    "unified": "Memory –",
    "throttled": "87 °C",
    "garbage": "busy",
    "lost": "fallen off the bus",
    "none": "lists no GPU",
    "not-loaded": "not loaded",
    "updated": "restart",
    "no-permission": "no access",
    "hang": "does not answer",
}


def test_sixteen_kinds_of_computers_on_the_screen(nvml_stub: Any, tmp_path: Path) -> None:
    """The real reader over the driver library: every card or a reason, and nothing cut."""
    environment = nvml_stub.environment("plain", HOME=str(tmp_path), QT_QPA_PLATFORM="offscreen")
    here = str(Path(fakes.__file__).parent)
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, here, ",".join(SCENARIOS)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    said = json.loads(run.stdout.splitlines()[-1])
    for scenario, expected in SCENARIOS.items():
        found = said[scenario]
        assert expected in "\n".join([*found["cards"], found["nothing"]]), scenario
        assert "CPU" in found["host"]
        assert found["problems"] == [], scenario


def test_tab_goes_through_an_alert_in_the_order_that_is_seen(opened: Any, qtbot: Any) -> None:
    form = entered(opened(), qtbot).alerts
    for reading in ("gpu.temperature_c", "host.memory_used"):  # the bound is made again
        form.reading.setCurrentIndex(form.reading.findData(reading))
        form._fit_unit()
        wanted, each = [form.threshold, form.seconds, form.add], form.reading
        reached = []
        while len(reached) < len(wanted):
            each = each.nextInFocusChain()
            if each in wanted:
                reached.append(each)
        assert reached == wanted
