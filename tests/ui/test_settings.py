"""Settings: what a person usually has counts where a plan says nothing, and is remembered."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from walk import texts

from trainwright.messages.units import number
from trainwright.plan.edit import with_keys
from trainwright.ui import usual
from trainwright.ui.i18n import tr
from trainwright.ui.money import currency_of, exact, rates_of
from trainwright.ui.plans import starting_plan
from trainwright.ui.preferences import Preferences
from trainwright.ui.usual import Usual


@pytest.fixture
def settings(opened):
    yield opened().screen_named("settings")
    usual.use(Usual())


def test_a_new_plan_has_the_usual_gpu(settings, opened):
    settings.gpu.chosen.emit("rtx-3060-12gb")
    window = settings.window()
    window.start_with("new", None)
    assert window.session.plan.machine.gpus[0].id == "rtx-3060-12gb"
    assert "3060" in settings.gpu.accessibleName()


def test_money_is_in_the_usual_currency_until_a_plan_says_another(settings):
    plan = starting_plan()
    assert currency_of(plan) == "USD"
    settings.currency.chosen.emit("KRW")
    assert currency_of(plan) == "KRW"
    assert currency_of(with_keys(plan, {"limits.budget": "2000 USD"})) == "USD"
    settings.currency.chosen.emit("language")
    assert currency_of(plan) == "USD"


def test_electricity_counts_where_the_plan_has_no_rate(settings):
    settings._set_energy("usd_per_kwh", 0.31)
    plan = starting_plan()
    assert rates_of(plan).usd_per_kwh == 0.31
    assert rates_of(with_keys(plan, {"limits.rates.usd_per_kwh": 0.1})).usd_per_kwh == 0.1


@pytest.mark.parametrize(
    ("digits", "text"), [("space", "1\u202f234\u202f567"), ("plain", "1234567")]
)
def test_large_numbers_are_written_as_a_person_does(settings, digits, text):
    window = settings.window()
    settings.digits.chosen.emit(digits)
    assert number(1_234_567) == text
    assert exact(1_234_567.5, "USD") == f"${text}.50"
    again = window.screen_named("settings")
    assert again.digits.value == digits
    again.reset.click()
    assert number(1_234_567) == "1,234,567"


def test_memory_is_in_the_unit_that_a_person_set_and_in_gib_again_after_a_reset(settings, qtbot):
    window = settings.window()
    total = window.session.report.memory.device_total.value
    settings.memory.chosen.emit("GB")
    window.actions_by_id["copy-summary"].trigger()
    assert f"{total / 1e9:.1f} GB" in QGuiApplication.clipboard().text()
    window.go("plan")
    assert [text for text in texts(window) if "GiB" in text] == []
    again = window.screen_named("settings")
    assert again.memory.value == "GB"
    again.reset.click()
    qtbot.waitUntil(window.actions_by_id["copy-summary"].isEnabled)
    window.actions_by_id["copy-summary"].trigger()
    assert f"{total / 2**30:.1f} GiB" in QGuiApplication.clipboard().text()


def test_all_of_it_is_remembered_and_reset(settings, preferences):
    settings.gpu.chosen.emit("rtx-3090")
    settings.currency.chosen.emit("KRW")
    settings._set_energy("household_kwh", 220.0)
    settings.memory.chosen.emit("GB")
    settings = settings.window().screen_named("settings")
    settings.scale.chosen.emit("125")
    assert tr("ui.settings.scale.next") in settings.scale_says.text()
    again = Preferences(Path(preferences._settings.fileName()))
    assert again.usual == Usual("rtx-3090", "KRW", None, 220.0, memory="GB")
    assert again.scale == 125
    settings.reset.click()
    assert preferences.usual == Usual()
    assert (preferences.scale, preferences.theme, preferences.language) == (100, "system", "system")
    assert starting_plan().machine.gpus[0].id == "rtx-4090"


def test_the_window_starts_in_the_size_that_was_chosen(tmp_path):
    program = (
        "from PySide6.QtWidgets import QApplication\n"
        "from trainwright.ui import app\n"
        "from trainwright.ui.preferences import Preferences\n"
        "Preferences().scale = 125\n"
        "QApplication.exec = lambda *_: print(QApplication.primaryScreen().devicePixelRatio())\n"
        "app.main()\n"
    )
    environment = {
        "QT_QPA_PLATFORM": "offscreen", "HOME": str(tmp_path), "PATH": os.environ["PATH"],
        "XDG_CONFIG_HOME": str(tmp_path), "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "TRAINWRIGHT_STATE": str(tmp_path),
    }  # fmt: skip
    child = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True,
                           text=True, timeout=60)  # fmt: skip
    assert child.stdout.split()[-1:] == ["1.25"], child.stderr
