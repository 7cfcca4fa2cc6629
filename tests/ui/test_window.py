"""What a person does in the window, and what they see then."""

import gc
import shlex
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import replace
from typing import Any

import fakes
import pytest
from packaging.requirements import Requirement
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu
from shiboken6 import isValid
from walk import SCREENS, settle, settled, spin

from trainwright.data import resources
from trainwright.export import ALL, TARGETS
from trainwright.messages import LANGUAGES, Message, UserError, render
from trainwright.plan.chosen import Chosen
from trainwright.plan.file import read
from trainwright.plan.report import Verdict
from trainwright.ui import i18n, paint, places, tokens
from trainwright.ui.actions import ACTIONS
from trainwright.ui.app import prepared
from trainwright.ui.i18n import say, tr
from trainwright.ui.preferences import Preferences
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.cards import WhatIfCard
from trainwright.ui.widgets.controls import Stepper
from trainwright.ui.widgets.verdict import LegendKey, VerdictCard


def drop(window, path):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPointF(500, 400), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    window.dropEvent(event)


def test_torch_and_charts_are_not_loaded_before_the_first_paint():
    program = (
        "import sys\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from trainwright.ui.app import prepared\n"
        "from trainwright.ui.core import Core\n"
        "from trainwright.ui.preferences import Preferences\n"
        "app = QApplication([])\n"
        "window = prepared(app, Core(), Preferences())\n"
        "window.show(); window.grab()\n"
        "heavy = {'torch', 'numpy', 'qtawesome', 'pydantic', 'transformers'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "window.wake(); app.processEvents(); window.close()\n"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert child.stdout.splitlines() == ["[]", "[]"], child.stderr


def test_every_place_is_in_the_menu_and_reached_by_a_key():
    assert {f"go-{place}" for place in places.ALL} <= {action.id for action in ACTIONS}


def test_every_action_has_a_name_a_tooltip_and_keys_of_its_own(opened):
    window = opened()
    keys = [QKeySequence(action.shortcut) for action in ACTIONS]
    assert len({key.toString() for key in keys}) == len(ACTIONS)
    for action in ACTIONS:
        bound = window.actions_by_id[action.id]
        assert bound.text()
        assert bound.toolTip()
        assert not bound.text().startswith("ui.")
        assert not bound.shortcut().isEmpty()
        # A bare letter would fire while somebody types Hangul.
        assert len(action.shortcut) > 1


def test_every_row_of_the_plan_has_a_name(opened):
    labels = opened().findChildren(QLabel)
    assert [label.text() for label in labels if label.text().startswith("ui.")] == []
    assert tr("ui.key.images") in [label.text() for label in labels]


def test_a_bad_file_keeps_the_plan_and_says_one_line(opened, tmp_path, qtbot):
    window = opened()
    before = window.session.plan
    drop(window, fakes.file_in(tmp_path, "trainwright: 1\nmodel: {preset: [1, 2]}\n"))
    assert window.session.plan == before
    assert "a.plan.yaml" in window.notice.text
    assert len(window.notice.text.splitlines()) == 1


def test_binary_junk_keeps_the_plan(opened, tmp_path):
    window = opened()
    before = window.session.plan
    junk = tmp_path / "junk.plan.yaml"
    junk.write_bytes(bytes(range(256)) * 10)
    drop(window, junk)
    assert window.session.plan == before
    assert "junk.plan.yaml" in window.notice.text


def test_dropping_a_config_plans_for_its_model(opened, tmp_path, qtbot):
    window = opened()
    folder = tmp_path / "내 모델"
    folder.mkdir()
    drop(window, fakes.file_in(folder, '{"model_type": "gpt2"}', "config.json"))
    assert window.session.plan.model.hf == str(folder / "config.json")
    window.session.undo()
    assert window.session.plan == read(fakes.EXAMPLE)


def test_undo_and_redo_go_through_every_edit(opened, qtbot):
    window = opened()
    session = window.session
    first = session.plan
    session.set_key("settings.micro_batch", 4)
    session.set_key("settings.checkpointing", "none")
    edited = session.plan
    assert edited.settings.checkpointing == "none"
    window.actions_by_id["undo"].trigger()
    window.actions_by_id["undo"].trigger()
    assert session.plan == first
    assert not window.actions_by_id["undo"].isEnabled()
    window.actions_by_id["redo"].trigger()
    window.actions_by_id["redo"].trigger()
    assert session.plan == edited


@pytest.mark.parametrize("key", ["workload.effective_batch", "learning_rate"])
def test_the_keys_of_undo_work_while_a_number_has_the_focus(opened, key):
    window = opened()
    rows = [row for group in window.screen_named("plan").form._groups for row in group.rows]
    field = next(row.control for row in rows if row.key == key)
    before = window.session.plan
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClicks(field, "2")
    QTest.keyClick(field, Qt.Key.Key_Return)
    edited = window.session.plan
    assert edited != before
    QTest.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.session.plan == before
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(field, Qt.Key.Key_Z, both)
    assert window.session.plan == edited
    QTest.keyClicks(field, "3")  # not taken yet: the field's own
    QTest.keyClick(field, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert window.session.plan == edited


def test_steps_of_one_stepper_undo_together(opened):
    window = opened()
    plan = window.screen_named("plan")
    stepper = next(r.control for g in plan.form._groups for r in g.rows
                   if r.key == "settings.micro_batch")  # fmt: skip
    first = window.session.plan
    for _ in range(3):
        stepper.stepBy(-1) if stepper.value() > 1 else stepper.stepBy(1)
    window.session.undo()
    assert window.session.plan == first


def test_an_edit_shows_figures_at_once_and_confirms_them_later(opened, qtbot):
    window = opened()
    before = window.session.report.memory.device_used.value
    window.session.set_key("workload.inputs.sequence_length", 1024)
    assert window.session.provisional
    assert window.session.report.memory.device_used.value < before
    qtbot.waitUntil(lambda: settled(window))
    assert not window.session.provisional


def test_make_it_fit_is_one_click_and_one_undo(opened, qtbot):
    window = opened(core=fakes.core("tight"))
    session = window.session
    session.set_keys({"settings.micro_batch": 4, "settings.accumulation": 16})
    qtbot.waitUntil(lambda: settled(window))
    assert session.report.verdict is Verdict.NO
    session.set_keys({"settings.micro_batch": None, "settings.accumulation": None})
    free = session.plan
    qtbot.waitUntil(lambda: settled(window))
    qtbot.mouseClick(window.tools["make-it-fit"], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: session.plan != free and settled(window))
    assert session.report.fits
    session.undo()
    assert session.plan == free


def test_where_nothing_fits_nothing_changes_until_a_way_out_is_chosen(opened, qtbot):
    window = opened(core=fakes.core("no"))
    window.session.make_it_fit()
    qtbot.waitUntil(lambda: bool(window.notice.text))
    assert window.session.plan == read(fakes.EXAMPLE)
    assert window.session.undo_label is None
    (way,) = window.session.advice.nothing_fits
    screen = window.screen_named("advise")
    assert screen.isVisible()
    take = next(b for b in screen.findChildren(Button) if say(way.change) in b.accessibleName())
    qtbot.mouseClick(take, Qt.MouseButton.LeftButton)
    assert window.session.plan == way.plan
    window.session.undo()
    assert window.session.plan == read(fakes.EXAMPLE)


def test_what_the_search_chose_stays_open_and_says_why(opened, qtbot):
    window = opened()
    reason = Message.of("advise.micro.whole", micro=1)
    chosen = Chosen(value=1, because=reason.id, values={"micro": 1})
    window.session.set_keys({"settings.micro_batch": None, "settings.accumulation": None})
    plan = window.session.plan.model_copy(update={"chosen": {"micro_batch": chosen}})
    window.session.put(plan, Message.of("ui.edit.make-it-fit"))
    qtbot.waitUntil(lambda: settled(window))
    rows = [row for group in window.screen_named("plan").form._groups for row in group.rows]
    lock = next(row.lock for row in rows if row.key == "settings.micro_batch")
    assert lock.isChecked()
    assert say(reason) in lock.toolTip()


def test_no_card_of_another_plan_is_ever_painted_as_current(opened, qtbot, monkeypatch):
    window = opened()
    session, cards = window.session, window.screen_named("plan").whatifs
    qtbot.waitUntil(lambda: bool(session.whatifs))
    window.grab()
    painted = []
    paint = WhatIfCard.paintEvent

    def noting(card, event):
        painted.append((card.current, card._base is session.plan))
        paint(card, event)

    monkeypatch.setattr(WhatIfCard, "paintEvent", noting)
    for number in range(60):
        batch = 2 ** (number % 4)
        session.set_keys({"settings.micro_batch": batch, "settings.accumulation": 64 // batch})
        window.grab()
        assert not any(card.isEnabled() and card._base is not session.plan for card in cards._cards)
        if number % 15 == 14:
            qtbot.waitUntil(lambda: session.whatifs[0].base is session.plan)
            window.grab()
    assert len(painted) > 60
    assert all(shown == belongs for shown, belongs in painted)
    assert {shown for shown, _ in painted} == {True, False}


def test_locks_free_and_fix_a_setting(opened, qtbot):
    window = opened()
    plan = window.screen_named("plan")
    row = next(r for g in plan.form._groups for r in g.rows if r.key == "settings.precision")
    assert not row.lock.isChecked()
    qtbot.mouseClick(row.lock, Qt.MouseButton.LeftButton)
    assert window.session.plan.settings.precision is None
    assert "free" in row.lock.accessibleName()
    qtbot.waitUntil(lambda: settled(window))
    qtbot.mouseClick(row.lock, Qt.MouseButton.LeftButton)
    assert window.session.plan.settings.precision == "bf16-mixed"


def test_every_figure_on_plan_opens_where_it_comes_from(opened, qtbot):
    window = opened()
    plan = window.screen_named("plan")
    for key in plan.verdict.findChildren(LegendKey):
        qtbot.mouseClick(key, Qt.MouseButton.LeftButton)
        assert window.session.explained == key.address
    shown = plan.pane._tree.model()
    assert shown.rowCount() > 0


def test_f1_opens_the_focused_figure(opened, qtbot):
    window = opened()
    plan = window.screen_named("plan")
    door = plan.figures._doors[1]
    door.setFocus()
    window.actions_by_id["explain"].trigger()
    assert window.session.explained == "time.step"


def test_the_language_switches_live_and_keeps_the_plan(opened, qtbot):
    window = opened()
    window.session.set_key("settings.micro_batch", 4)
    edited = window.session.plan
    window.go("plan")
    window.actions_by_id["language"].trigger()
    assert i18n.language() == "ko"
    qtbot.waitUntil(lambda: settled(window))
    spoken = window.screen_named("plan").verdict.accessibleName()
    assert render(Message.of(f"ui.verdict.{window.session.report.verdict}"), "ko") in spoken
    assert window.session.plan == edited
    window.session.undo()
    assert window.session.plan == read(fakes.EXAMPLE)


def test_the_theme_switches_live(opened):
    window = opened()
    window.actions_by_id["theme"].trigger()
    assert tokens.theme() == "dark"
    assert QApplication.palette().window().color() == tokens.colour("canvas")
    window.actions_by_id["theme"].trigger()
    assert tokens.theme() == "light"


def test_screens_that_a_change_of_theme_replaces_are_let_go(opened):
    window = opened()
    for place in places.ALL:
        window.go(place)
        settle(window)
    replaced = {place: weakref.ref(window._screens[place]) for place in places.ALL}
    window.go("start")
    window.actions_by_id["theme"].trigger()
    settle(window)
    gc.collect()
    assert [place for place, screen in replaced.items() if screen() is not None] == []


def test_saving_and_opening_gives_the_same_plan(opened, tmp_path, qtbot):
    window = opened()
    window.session.set_key("settings.micro_batch", 4)
    path = tmp_path / "한글 이름.plan.yaml"
    assert window.session.save(path)
    assert not window.session.unsaved
    saved = window.session.plan
    window.session.set_key("settings.micro_batch", 1)
    assert window.session.unsaved
    window.open_path(path)
    assert window.session.plan == saved
    assert window.preferences.recent[0] == path


def test_a_plan_that_nobody_named_takes_its_files_name(opened, tmp_path):
    window = opened(plan=None)
    window.start_with("new", None)
    assert window.windowTitle().startswith("Untitled plan")
    window.filing._save_plan_to(tmp_path / "four.plan.yaml")
    assert window.windowTitle().startswith("four[*]")
    assert read(tmp_path / "four.plan.yaml").name == "four"
    window.filing._save_plan_to(tmp_path / "five.plan.yaml")
    assert window.session.plan.name == "five"
    window.session.set_key("name", "mine")
    window.filing._save_plan_to(tmp_path / "six.plan.yaml")
    assert window.session.plan.name == "mine"


def test_the_plan_that_a_newcomer_starts_from_fits():
    from trainwright.ui.core import Core
    from trainwright.ui.plans import starting_plan

    core, plan = Core(), starting_plan()
    assert core.evaluate(plan, core.resolve(plan)).verdict is Verdict.FITS


def test_a_problem_is_shown_in_place_of_figures(opened, qtbot):
    problem = Message.of("ui.advise.trace-first")
    window = opened(core=fakes.core(failing=problem))
    plan = window.screen_named("plan")
    assert render(problem, "en") in plan._problem.label.text()
    assert plan.figures.isVisible()


def test_tracing_shows_progress_and_can_be_cancelled(opened, qtbot):
    import threading

    from trainwright.messages import UserError
    from trainwright.plan.evaluate import Pending

    base = fakes.core()
    stopped = threading.Event()

    def resolve(plan):
        facts = base.resolve(plan)
        return Pending(facts.machine, facts.settings, object(), facts.inputs, ())

    def trace(_spec, _at, on_progress, cancelled):
        on_progress(0.4, "")
        while not cancelled():
            stopped.wait(0.01)
        stopped.set()
        raise UserError.of("ui.notice.close")

    window = opened(plan=None, core=replace(base, resolve=resolve, trace=trace))
    window.open_path(fakes.EXAMPLE)
    plan = window.screen_named("plan")
    qtbot.waitUntil(lambda: "40 %" in plan._trace.label.text())
    assert plan._trace.isVisible()
    window.session.cancel_trace()
    qtbot.waitUntil(stopped.is_set)
    qtbot.waitUntil(lambda: not plan._trace.isVisible())


def test_a_traced_point_is_answered_and_the_fit_follows(opened, qtbot):
    from trainwright.plan.evaluate import Pending

    base = fakes.core()
    asked = []

    class Untraced(Pending):
        def answered(self, profile):
            return profile

        @property
        def point(self):
            return (2, 2048)

    def resolve(plan):
        facts = base.resolve(plan)
        return Untraced(facts.machine, facts.settings, "spec", facts.inputs, ())

    def trace(_spec, at, _on_progress, _cancelled):
        asked.append(at)
        return base.resolve(read(fakes.EXAMPLE))

    window = opened(plan=None, core=replace(base, resolve=resolve, trace=trace))
    window.open_path(fakes.EXAMPLE)
    qtbot.waitUntil(lambda: window.session.report is not None)
    qtbot.waitUntil(lambda: len(asked) == 2)
    assert asked == [(2, 2048), None]


def choose(combo, value):
    combo.setCurrentIndex(combo.findData(value))
    combo.activated.emit(combo.currentIndex())


def test_export_offers_what_the_command_line_writes(opened, tmp_path):
    window = opened()
    export = window.screen_named("export")
    assert [export.targets.itemData(i) for i in range(export.targets.count())] == [*ALL]
    for name in ("skypilot", "axolotl", "unsloth"):
        choose(export.targets, name)
        assert export.save.isEnabled()
        assert export.save_to(tmp_path)
        assert (tmp_path / f"llama-8b-lora-{name}").is_dir()
    choose(export.targets, "vllm")
    assert not export.save.isEnabled()
    assert "trains" in export._warning.label.text()


@pytest.mark.parametrize(
    ("example", "keys", "first"),
    [
        ("llama-8b-lora", {"workload.effective_batch": 32}, "plain"),
        ("llama-8b-lora", {"workload.objective": "dpo"}, "trl"),
        ("llama-8b-serve-rtx4090", {"settings.engine": "vllm"}, "vllm"),
    ],
)
def test_export_begins_with_a_target_that_can_take_the_plan(opened, example, keys, first):
    window = opened(plan=resources("examples", f"{example}.plan.yaml"))
    window.session.set_keys(keys)
    export = window.screen_named("export")
    settle(window)
    assert export.targets.currentData() == first
    assert export.save.isEnabled(), export._warning.label.text()
    choose(export.targets, "axolotl")  # what a person chose stays
    export.refresh()
    assert export.targets.currentData() == "axolotl"


def test_export_previews_and_saves_every_file(opened, tmp_path, qtbot):
    window = opened()
    export = window.screen_named("export")
    assert export._files
    for name in TARGETS:
        choose(export.targets, name)
        assert export.text.toPlainText()
        assert export.save_to(tmp_path)
        for path, text in export._files.items():
            written = tmp_path / f"llama-8b-lora-{name}" / path
            assert written.read_text(encoding="utf-8") == text
        assert export.saved.isVisible()
        export._go_on("copy")
        commands = QApplication.clipboard().text().splitlines()
        assert shlex.split(commands[0])[1] == str(tmp_path / f"llama-8b-lora-{name}")
        assert {"torch", "transformers", "peft"} <= {
            Requirement(word).name for word in shlex.split(commands[1])[2:]
        }
        assert "--synthetic" in commands[2]


def test_the_palette_finds_actions_models_and_gpus(opened, qtbot):
    from trainwright.ui.widgets.palette import search_actions

    window = opened()
    assert search_actions("undo")[0].key == "action:undo"
    keys = [option.key for option in window._find_things("4090")]
    assert "gpu:rtx-4090" in keys
    window._run_chosen("gpu:rtx-3090")
    assert window.session.plan.machine.gpus[0].id == "rtx-3090"
    window._run_chosen("model:gpt2")
    assert window.session.plan.model.preset == "gpt2"


def test_the_palette_finds_examples_files_and_parts_from_the_first_screen_on(opened):
    window = opened(plan=None)
    found = [option.key for option in window._find_things("llama 8b lora")]
    assert f"example:{fakes.EXAMPLE}" in found
    part = next(
        key for key in (o.key for o in window._find_things("990 pro 2tb")) if "storage/" in key
    )
    window._run_chosen(part)
    assert window.place == "catalog"
    assert window._screens["catalog"].tabs.value == "storage"
    window._run_chosen(f"example:{fakes.EXAMPLE}")
    assert window.session.plan == read(fakes.EXAMPLE)


def test_a_command_that_cannot_run_says_what_it_needs(opened):
    window = opened(plan=None)
    for command, words in (("make-it-fit", "open plan"), ("undo", "Nothing to undo"),
                           ("share", "figures of a plan")):  # fmt: skip
        window._run_chosen(f"action:{command}")
        assert words in window.notice.text


def test_the_menu_lists_every_command_below_five_titles(opened):
    window = opened()
    menu = window.tools["more"].menu()
    below = [title.menu() for title in menu.actions()]
    assert len(below) == 5
    listed = [action for each in below for action in each.actions()]
    assert sorted(a.text() for a in listed) == sorted(
        a.text() for a in window.actions_by_id.values()
    )


def test_models_are_found_in_korean_and_decomposed_jamo(opened):
    import unicodedata

    from trainwright.ui.names import search_models

    opened()
    composed = [option.key for option in search_models("라마")]
    assert any("llama" in key for key in composed)
    decomposed = unicodedata.normalize("NFD", "라마")
    assert [option.key for option in search_models(decomposed)] == composed


def test_a_search_can_be_stopped_and_asked_again(opened, qtbot):
    go_on = threading.Event()
    base = fakes.core()

    def slow(plan, facts, **_how):
        go_on.wait(20)
        return base.advise(plan, facts)

    window = opened(core=replace(base, advise=slow))
    session = window.session
    before = session.plan
    session.make_it_fit()
    assert session.advising
    session.cancel_advice()
    assert not session.advising
    go_on.set()
    advise = window.screen_named("advise")
    session.ask_advice()
    qtbot.waitUntil(lambda: session.advice is not None)
    assert session.plan == before
    assert advise.isVisible()


def test_an_edit_during_a_search_does_not_lose_the_next_search(opened, qtbot):
    go_on = threading.Event()
    base = fakes.core()

    def slow(plan, facts, **_how):
        go_on.wait(20)
        return base.advise(plan, facts)

    window = opened(core=replace(base, advise=slow))
    session = window.session
    session.ask_advice()
    session.set_key("workload.inputs.sequence_length", 1024)
    session.ask_advice()
    go_on.set()
    qtbot.waitUntil(lambda: session.advice is not None)
    edited = base.advise(session.plan, base.resolve(session.plan))
    used = [choice.estimate.memory.device_used.value for choice in session.advice.choices]
    assert used == [choice.estimate.memory.device_used.value for choice in edited.choices]


def test_the_learning_rate_is_typed_cleared_and_never_garbage(opened, qtbot):
    window = opened()
    form = window.screen_named("plan").form
    rate = next(r.control for g in form._groups for r in g.rows if r.key == "learning_rate")

    def typed(text):
        rate.setText(text)
        rate.editingFinished.emit()
        return window.session.plan.settings.learning_rate

    assert typed("3e-4") == 3e-4
    assert typed("fast") == 3e-4
    assert rate.text() == "0.0003"
    assert typed("-1") == 3e-4
    assert typed("") is None


def test_a_computers_memory_is_set_in_the_form(opened):
    window = opened()
    form = window.screen_named("plan").form
    memory = next(r.control for g in form._groups for r in g.rows if r.key == "memory_gib")
    form._choose_gpu("apple-m3-ultra")  # other parts and their memory are left out
    assert window.session.plan.machine.memory_gib is None
    assert "memory_gib" in window.notice.text
    memory.setValue(256)
    memory.chosen.emit(256)
    assert window.session.plan.machine.memory_gib == 256
    assert window.session.plan.machine.cpu is None
    window.undo()
    window.undo()
    assert window.session.plan.machine.memory_gib == 64


def test_a_preference_is_chosen_in_the_form_and_taken_back(opened):
    window = opened()
    form = window.screen_named("plan").form
    rows = {row.key: row for group in form._groups for row in group.rows}
    assert not rows["workload.reference"].applies(window.session.plan)
    rows["objective"].control.chosen.emit("dpo")
    assert window.session.plan.workload.objective == "dpo"
    assert rows["workload.reference"].applies(window.session.plan)
    rows["workload.reference"].control.chosen.emit("precomputed")
    assert window.session.plan.workload.compared == "precomputed"
    rows["objective"].control.chosen.emit("next-token")
    workload = window.session.plan.workload
    assert (workload.objective, workload.reference) == (None, None)


def test_who_writes_the_answers_is_chosen_where_they_are_written(opened):
    window = opened()
    form = window.screen_named("plan").form
    rows = {row.key: row for group in form._groups for row in group.rows}
    before = window.session.plan.workload.inputs

    def shown():
        keys = ("workload.inputs.sequence_length", "workload.rollout.generations", "kept",
                "settings.generation", "settings.memory_share")  # fmt: skip
        return [rows[key].applies(window.session.plan) for key in keys]

    assert shown() == [True, False, False, False, False]
    rows["objective"].control.chosen.emit("grpo")
    assert shown() == [False, True, True, True, False]
    rows["settings.generation"].control.chosen.emit("vllm-sleep")
    rows["workload.rollout.generations"].control.chosen.emit(4)
    rows["kept"].control.chosen.emit("kept")
    plan = window.session.plan
    assert shown()[-1]
    assert (plan.settings.generation, plan.workload.rollout.generations) == ("vllm-sleep", 4)
    assert plan.workload.compared == ("adapter-off" if plan.workload.adapts else "model")
    rows["objective"].control.chosen.emit("next-token")
    assert window.session.plan.workload.inputs == before


def test_a_power_limit_is_kept_with_the_gpu_and_named_by_undo(opened):
    window = opened()
    form = window.screen_named("plan").form
    limit = next(r.control for g in form._groups for r in g.rows if r.key == "power_limit")
    limit.setValue(350)
    assert window.session.plan.machine.gpus[0].power_limit_w == 350
    assert "350" in window.actions_by_id["undo"].text()
    assert "Power limit" in window.actions_by_id["undo"].text()


def test_figures_are_copied_as_text_markdown_and_image(opened, qtbot):
    window = opened()
    plan = window.screen_named("plan")
    plan.verdict.customContextMenuRequested.emit(QPoint(4, 4))
    menu = plan.verdict.findChild(QMenu)
    text, markdown, csv, image = menu.actions()
    clipboard = QApplication.clipboard()
    text.trigger()
    rows = dict(line.split("\t") for line in clipboard.text().splitlines())
    assert rows["Verdict"] == "Fits"
    assert rows["Parameters"] == "~15.0 GiB"
    markdown.trigger()
    lines = clipboard.text().splitlines()
    assert len(lines) == len(rows) + 2
    assert {line.count("|") for line in lines} == {3}
    csv.trigger()
    assert len(clipboard.text().splitlines()) == len(rows) + 1
    image.trigger()
    assert clipboard.pixmap().width() == plan.verdict.width() * plan.devicePixelRatioF()
    menu.close()
    qtbot.waitUntil(lambda: not isValid(menu))


def test_serving_speaks_of_requests_and_never_of_training(opened, qtbot):
    window = opened()
    window.session.set_keys(
        {
            "workload.task": "infer",
            "workload.effective_batch": None,
            "workload.inputs": {"prompt_tokens": 512, "new_tokens": 64, "concurrent": 4},
            "settings.micro_batch": None,
            "settings.accumulation": None,
        }
    )
    qtbot.waitUntil(lambda: settled(window))
    assert window.session.problem is None
    plan = window.screen_named("plan")
    spoken = " ".join(door.accessibleName() for door in plan.figures._doors)
    assert "Requests" in spoken
    assert "run" not in spoken
    assert plan.form._fixed_note.accessibleName() == "Serving settings"
    hidden = [r for g in plan.form._groups for r in g.rows if r.key == "settings.micro_batch"]
    assert not hidden[0].control.isVisible()


def test_opening_a_plan_leaves_the_keyboard_on_its_screen(opened, qtbot):
    window = opened(plan=None)
    window.activateWindow()
    window.open_path(fakes.EXAMPLE)
    qtbot.waitUntil(lambda: settled(window))
    focus = QApplication.focusWidget()
    assert focus is None or not window.rail.isAncestorOf(focus)


def test_export_says_whether_the_files_would_run_out_of_memory(opened, qtbot):
    window = opened(core=fakes.core("no"))
    export = window.screen_named("export")
    qtbot.waitUntil(lambda: bool(export._files))
    assert export._warning.isVisible()
    assert "does not fit" in export._warning.label.text()
    assert export.save.isEnabled()


def test_a_bar_of_the_waterfall_opens_where_it_comes_from(opened, qtbot):
    window = opened()
    waterfall = window.screen_named("plan").waterfall
    assert [door.address for door in waterfall._doors] == [
        *("stage.load", "stage.decode", "stage.transfer"),
        *("stage.forward", "stage.recompute", "stage.backward", "stage.optimizer"),
    ]
    backward = waterfall._doors[5]
    assert "GPU, Backward" in backward.accessibleName()
    assert "%" in backward.accessibleName()
    qtbot.mouseClick(backward, Qt.MouseButton.LeftButton)
    assert window.session.explained == "stage.backward"


def test_the_waterfall_names_what_limits(opened):
    window = opened()
    plan = window.screen_named("plan")
    assert plan.waterfall.limiting == ("GPU", "Backward")


def test_what_runs_beside_starts_with_the_step_and_the_gpu_follows_itself(opened):
    window = opened()
    rows = {row.name: row for row in window.screen_named("plan").waterfall._rows}
    assert rows["decode"].beside
    assert rows["decode"].spans[0].start == 0
    assert rows["recompute"].spans[0].start == rows["forward"].spans[0].end
    assert not rows["backward"].beside


def test_the_operators_are_walked_by_keys_and_opened_by_enter(opened, qtbot):
    window = opened()
    chart = window.screen_named("plan").roofline
    chart.setFocus(Qt.FocusReason.TabFocusReason)
    chart._point_at(None)
    qtbot.keyClick(chart, Qt.Key.Key_Right)
    said = chart.accessibleDescription()
    assert "of the step" in said
    qtbot.keyClick(chart, Qt.Key.Key_Right)
    assert chart.accessibleDescription() != said
    qtbot.keyClick(chart, Qt.Key.Key_Left)
    assert chart.accessibleDescription() == said
    qtbot.keyClick(chart, Qt.Key.Key_Return)
    first = window.session.roofs.points[0]
    assert window.session.explained == f"operator.{first.address}"
    assert window.session.figure(window.session.explained).value == first.seconds


def test_a_click_on_an_operator_explains_it_down_to_flop_and_bytes(opened, qtbot):
    window = opened()
    plan = window.screen_named("plan")
    spot = max(plan.roofline._spots, key=lambda one: one.radius)
    qtbot.mouseClick(plan.roofline, Qt.MouseButton.LeftButton, pos=spot.centre.toPoint())
    explained = window.session.figure(window.session.explained)
    ids = {part.name.id for _, part in explained.walk()}
    assert {"time.runs", "time.flop", "time.peak", "time.bytes", "time.floor"} <= ids
    assert plan.pane._tree.model().rowCount() == len(explained.parts)


def test_points_lie_below_the_roofs_and_within_the_chart(opened):
    window = opened()
    chart = window.screen_named("plan").roofline
    frame = chart._frame
    for spot in chart._spots:
        assert 0 <= spot.centre.x() <= chart.width()
        assert 0 <= spot.centre.y() <= frame.bottom
        if not spot.point.flops:
            assert spot.centre.x() < frame.left
            assert spot.centre.y() >= frame.y(frame.start) - 0.5


def test_a_family_of_operators_opens_to_its_classes(opened, qtbot):
    window = opened()
    plan = window.screen_named("plan")
    key = plan.families._keys[0]
    assert "Matrix products" in key.accessibleName()
    qtbot.mouseClick(key, Qt.MouseButton.LeftButton)
    explained = window.session.figure("family.products")
    assert {part.name.id for part in explained.parts} == {
        "time.class.gemm",
        "time.class.batched-gemm",
    }


def test_a_what_if_is_applied_and_undone(opened, qtbot):
    window = opened()
    qtbot.waitUntil(lambda: bool(window.session.whatifs))
    plan = window.screen_named("plan")
    before = window.session.plan
    card = next(card for card in plan.whatifs._cards if card.isVisible())
    assert card.toolTip()
    qtbot.mouseClick(card, Qt.MouseButton.LeftButton)
    assert window.session.plan != before
    window.session.undo()
    assert window.session.plan == before


def test_what_if_cards_lie_in_the_order_of_their_use(opened, qtbot):
    window = opened()
    qtbot.waitUntil(lambda: bool(window.session.whatifs))
    cards = [card for card in window.screen_named("plan").whatifs._cards if card.isVisible()]
    assert len(cards) >= 3
    places = [(card.y(), card.x()) for card in cards]
    assert places == sorted(places)


def test_an_epoch_without_samples_is_not_available(opened, qtbot):
    window = opened()
    strip = window.screen_named("plan").figures
    spoken = [door.accessibleName() for door in strip._doors]
    assert any("epoch" in text and "estimated" in text for text in spoken)
    window.session.set_key("workload.samples", None)
    qtbot.waitUntil(lambda: settled(window))
    absent = [door.accessibleName() for door in strip._doors if "epoch" in door.accessibleName()]
    assert absent == ["Time of an epoch: n/a samples are not given"]


def test_an_explained_operator_stands_among_its_class_by_size(opened):
    window = opened()
    plan = window.screen_named("plan")
    efficiency = plan.pane._efficiency
    assert efficiency.isHidden()
    point = window.session.roofs.points[0]
    window.session.explain(f"operator.{point.address}")
    assert not efficiency.isHidden()
    assert {one.group for one in efficiency._chart._points} == {point.group}
    assert "2 operators" in efficiency._chart.accessibleName()
    window.session.explain("time.step")
    assert efficiency.isHidden()


def test_operators_of_one_name_open_apart(opened, qtbot):
    window = opened()
    plan = window.screen_named("plan")
    window.session.explain("family.products")
    tree = plan.pane._tree
    gemm = tree.model().index(0, 0)
    tree.expand(gemm)
    rows = [tree.model().index(row, 0, gemm) for row in range(tree.model().rowCount(gemm))]
    for row in rows:
        tree.collapse(row)
    tree.expand(rows[0])
    window.session.explained_changed.emit()
    gemm = tree.model().index(0, 0)
    opened_rows = [tree.isExpanded(tree.model().index(row, 0, gemm)) for row in range(len(rows))]
    assert opened_rows == [True, False]


def test_how_sure_a_time_is_speaks_of_time(opened):
    window = opened()
    window.session.explain("stage.forward")
    said = window.screen_named("plan").pane._sure.accessibleName()
    assert "device use" not in said
    assert "step" in said


@pytest.mark.parametrize("language", ["en", "ko"])
def test_explain_stays_beside_the_figures_on_a_small_screen(opened, qtbot, preferences, language):
    preferences.language = language
    window = opened()
    window.resize(1280, 800)
    plan = window.screen_named("plan")
    qtbot.waitUntil(lambda: bool(window.session.whatifs))
    qtbot.waitUntil(lambda: plan.pane.x() >= plan._scroll.geometry().right())
    assert plan.pane.isVisible()


def waiting_for_decoding(report):
    """The same step, for which the GPU waits ten seconds of thirty that decoding takes."""
    time = report.time
    wait = fakes.quantity("time.waiting.decode", 10.0, fakes.Unit.SECONDS, role="decode")
    stages = tuple(
        replace(stage, seconds=wait, hidden=False, busy=30.0) if stage.name == "decode" else stage
        for stage in time.stages
    )
    return replace(report, time=replace(time, stages=stages, bottleneck="decode"))


def test_what_the_gpu_waits_for_is_a_row_of_its_own_and_the_bottleneck_is_named(opened, qtbot):
    base = fakes.core()
    slow = replace(base, evaluate=lambda *asked: waiting_for_decoding(base.evaluate(*asked)))
    window = opened(core=slow)
    waterfall = window.screen_named("plan").waterfall
    assert waterfall.limiting == ("CPU", "Decode")
    rows = {row.name: row for row in waterfall._rows}
    assert rows["idle"].lane == "gpu"
    assert rows["idle"].seconds == 10
    waited, hidden = rows["decode"].spans
    assert (waited.start, waited.end, waited.waited) == (0, 10, True)
    assert (hidden.start, hidden.end, hidden.waited) == (10, 30, False)
    assert rows["forward"].spans[0].start == 10
    door = next(door for door in waterfall._doors if door.address == "stage.idle")
    qtbot.mouseClick(door, Qt.MouseButton.LeftButton)
    explained = window.session.figure("stage.idle")
    assert [part.name.id for part in explained.parts] == ["time.waiting.decode"]


def test_a_what_if_of_an_earlier_plan_does_nothing_and_the_next_keeps_the_edit(opened, qtbot):
    window = opened()
    session = window.session
    qtbot.waitUntil(lambda: bool(session.whatifs))
    session.set_key("workload.samples", 1234)
    edited = session.plan
    session.apply_whatif([one.subject for one in session.whatifs].index("second-gpu"))
    assert session.plan is edited
    qtbot.waitUntil(lambda: session.whatifs[0].base is edited)
    session.apply_whatif([one.subject for one in session.whatifs].index("second-gpu"))
    assert session.plan.machine.gpus[0].count == 2
    assert session.plan.workload.samples == 1234


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_window_of_any_size_keeps_it_on_every_place(opened, preferences, language):
    preferences.language = language
    window = opened()
    for size in ((900, 540), (880, 480), (1024, 640)):
        window.resize(*size)
        spin(50)
        for place in SCREENS:
            window.go(place)
            spin(20)
            assert (place, window.width(), window.height()) == (place, *size)
            assert window.status.geometry().bottom() < window.height()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_title_of_a_verdict_is_whole_in_the_smallest_window(qtbot, language):
    i18n.use(language)
    plan = read(fakes.EXAMPLE)
    answered = fakes.report(plan, fakes.core().resolve(plan), 2.6)
    card = VerdictCard()
    qtbot.addWidget(card)
    card.resize(410, 216)
    with qtbot.waitExposed(card):
        card.show()
    for verdict in Verdict:
        card.show_report(replace(answered, verdict=verdict), 1)
        paint.runs = []
        card.repaint()
        runs, paint.runs = paint.runs, None
        title = i18n.tr(f"ui.verdict.{verdict.value}")
        assert [run.elided for run in runs if run.text == title] == [False], title
    i18n.use("en")


def test_the_first_window_is_no_larger_than_its_screen(qapp, preferences):
    window = prepared(qapp, fakes.core(), preferences)
    room = window.screen().availableSize()
    assert window.width() <= room.width()
    assert window.height() <= room.height()
    window.deleteLater()


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_small_window_keeps_its_size_and_every_place(
    opened: Any, preferences: Preferences, language: str
) -> None:
    preferences.language = language
    window = opened()
    window.resize(1024, 640)
    for screen in ("computer", "monitor", "verify", "diagnose", "review"):
        window.go(screen)
        spin(50)
        assert (screen, window.width(), window.height()) == (screen, 1024, 640)
    listed = [place for place in window.rail._places if not place.isHidden()]
    assert not any(place.visibleRegion().isEmpty() for place in listed)


@pytest.mark.parametrize("work", ["search", "trace"])
def test_closing_during_work_takes_no_second(opened, qtbot, work):
    from trainwright.plan.evaluate import Pending

    base, begun, over = fakes.core(), threading.Event(), threading.Event()

    def pending(plan):
        facts = base.resolve(plan)
        return Pending(facts.machine, facts.settings, object(), facts.inputs, ())

    def slow(*_, **_how):
        begun.set()
        over.wait(20)
        raise UserError.of("ui.notice.close")

    slowed = {"trace": slow, "resolve": pending} if work == "trace" else {"advise": slow}
    window = opened(plan=None, core=replace(base, **slowed))
    window.open_path(fakes.EXAMPLE)
    if work == "search":
        window.session.make_it_fit()
    qtbot.waitUntil(begun.is_set)
    began = time.monotonic()
    window.close()
    took = time.monotonic() - began
    over.set()
    assert took < 1


def test_a_stepper_that_doubles_halves_too_and_keeps_its_bounds(qtbot):
    stepper = Stepper(16, name="rank", low=1, high=2**31 - 1, doubling=True)
    qtbot.addWidget(stepper)
    stepper.resize(120, 28)
    QTest.mousePress(stepper, Qt.MouseButton.LeftButton, pos=QPoint(4, 14))
    assert stepper.value() == 8
    QTest.keyClick(stepper, Qt.Key.Key_PageDown)
    assert stepper.value() == 1
    for _ in range(5):
        QTest.keyClick(stepper, Qt.Key.Key_PageUp)
    assert stepper.value() == 2**31 - 1


def test_an_answer_that_comes_after_the_next_edit_is_not_taken_for_its_own(opened, qtbot):
    base, begun, go_on = fakes.core(), threading.Event(), threading.Event()
    plans, looked = {}, []

    def evaluate(plan, facts):
        begun.set()
        go_on.wait(20)
        plans[id(facts)] = (plan, facts)
        return base.evaluate(plan, facts)

    def whatifs(plan, facts, _report, _wanted):
        looked.append((plan, plans[id(facts)][0]))
        return ()

    window = opened(plan=None, core=replace(base, evaluate=evaluate, whatifs=whatifs))
    window.session._ask_timer.setInterval(600)
    window.open_path(fakes.EXAMPLE)
    qtbot.waitUntil(begun.is_set)
    window.session.set_key("settings.micro_batch", 2)
    go_on.set()
    qtbot.waitUntil(lambda: looked != [] and looked[-1][0] == window.session.plan)
    qtbot.waitUntil(lambda: looked[-1][1] == window.session.plan)
    assert [asked for asked, answered in looked if asked != answered] == []


def test_the_form_sets_how_many_gpus_split_a_layer(opened):
    window = opened()
    window.session.set_key("settings.strategy", "fsdp2")
    form = window.screen_named("plan").form
    name = say(Message.of("ui.key.tensor_degree"))
    stepper = next(one for one in form.findChildren(Stepper) if name in one.accessibleName())
    stepper.chosen.emit(2)
    assert window.session.plan.settings.tensor_degree == 2
    stepper.chosen.emit(0)
    assert window.session.plan.settings.tensor_degree is None
