"""Choosing among the shipped models: by area, by typing, with what each takes of the GPU."""

import threading
from typing import Any

import fakes
import pytest
from PySide6.QtCore import QModelIndex, Qt
from walk import settled, wrong_with

from trainwright.ui import i18n
from trainwright.ui.glance import Glance, glance, matching
from trainwright.ui.widgets.modelpicker import ModelPopup


@pytest.fixture
def popup(opened: Any, qtbot: Any) -> Any:
    """Return a function that opens the picker on a window."""

    def open_popup(window: Any) -> ModelPopup:
        form = window.screen_named("plan").form
        form.model.open()
        (found,) = form.model.findChildren(ModelPopup)
        return found  # type: ignore[no-any-return]

    return open_popup


def names(popup: ModelPopup) -> list[str]:
    model = popup.list.model()
    return [model.index(row, 0).data() for row in range(model.rowCount())]


def spoken(popup: ModelPopup, name: str) -> str:
    model = popup.list.model()
    row = names(popup).index(name)
    return str(model.index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole))


def area(popup: ModelPopup, wanted: str) -> QModelIndex:
    model = popup.areas.model()
    rows = [model.index(row, 0) for row in range(model.rowCount())]
    return next(index for index in rows if index.data() == i18n.tr(f"ui.models.area.{wanted}"))


def test_models_say_what_they_take_of_the_gpu(opened, popup, qtbot):
    shown = popup(opened())
    qtbot.waitUntil(lambda: "30 of 24 GiB" in spoken(shown, "Llama 3.1 8B"))
    assert "8 of 24 GiB" in spoken(shown, "ResNet-50")
    assert "25.6 M" in spoken(shown, "ResNet-50")


def test_an_area_shows_its_models_alone(opened, popup):
    shown = popup(opened())
    everything = names(shown)
    shown.areas.setCurrentIndex(area(shown, "language"))
    assert "GPT-2" in names(shown)
    assert "ResNet-50" not in names(shown)
    shown.areas.setCurrentIndex(area(shown, "all"))
    assert names(shown) == everything


@pytest.mark.parametrize(
    ("typed", "first"),
    [("레즈넷50", "ResNet-50"), ("llama 8b", "Llama 3.1 8B"), ("sdxl", "SDXL U-Net")],
)
def test_typing_finds_a_model_in_any_area(opened, popup, typed, first):
    shown = popup(opened())
    shown.areas.setCurrentIndex(area(shown, "control"))
    shown.field.setText(typed)
    assert names(shown)[0] == first


def test_nothing_that_matches_chooses_nothing(opened, popup, qtbot):
    window = opened()
    before = window.session.plan
    shown = popup(window)
    shown.field.setText("없는 모델")
    assert names(shown) == []
    assert shown._nothing.isVisible()
    qtbot.keyClick(shown.field, Qt.Key.Key_Return)
    assert window.session.plan == before


def test_return_chooses_and_the_model_is_remembered(opened, popup, qtbot, preferences):
    window = opened()
    shown = popup(window)
    shown.field.setText("gpt2 xl")
    qtbot.keyClick(shown.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: settled(window))
    assert window.session.plan.model.preset == "gpt2-xl"
    assert preferences.recent_models == ("gpt2-xl",)
    again = popup(window)
    again.areas.setCurrentIndex(area(again, "recent"))
    assert names(again) == ["GPT-2 XL"]


def test_your_own_file_is_asked_for(opened, popup, qtbot, monkeypatch):
    asked = threading.Event()
    window = opened()
    monkeypatch.setattr("trainwright.ui.asking.file_to_open", lambda _parent: asked.set())
    popup(window)._want_file()
    qtbot.waitUntil(asked.is_set)


def test_closing_stops_the_glances(opened, popup, qtbot):
    started, go_on, told = threading.Event(), threading.Event(), []

    def slow(_plan: Any, ids: Any) -> Any:
        for id in ids:
            started.set()
            go_on.wait(5)
            told.append(id)
            yield Glance(id)

    shown = popup(opened(core=fakes.core(glances=slow)))
    assert started.wait(5)
    glancer = shown._glancer
    shown.close()
    go_on.set()
    glancer.wait(5)
    assert len(told) == 1


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_picker_looks_whole(opened, popup, language, preferences):
    preferences.language = language
    shown = popup(opened())
    assert list(wrong_with(shown.field)) == []
    assert list(wrong_with(shown.list)) == []
    wide = shown.areas.width()
    model = shown.areas.model()
    for row in range(model.rowCount()):
        text = model.index(row, 0).data()
        assert shown.areas.fontMetrics().horizontalAdvance(text) <= wide, text


def test_a_glance_says_what_the_plan_would_say_after_the_choice():
    """The figure in the list and the verdict of the Plan screen are one."""
    from trainwright.plan.evaluate import Pending, evaluate, resolve
    from trainwright.plan.file import read
    from trainwright.profile.presets import presets
    from trainwright.ui.plans import for_preset

    plan = read(fakes.EXAMPLE)
    preset = presets()["gpt2"]
    seen = glance(plan, preset, resolve)
    chosen = for_preset(plan, preset)
    facts = resolve(chosen)
    assert not isinstance(facts, Pending)
    report = evaluate(chosen, facts)
    assert seen.verdict == report.verdict
    assert seen.used_bytes == report.memory.device_used_p95.value


def test_families_stand_together():
    seen: list[str] = []
    for model in matching("", "all", ()):
        if not seen or seen[-1] != model.family:
            seen.append(model.family)
    assert len(seen) == len(set(seen))
