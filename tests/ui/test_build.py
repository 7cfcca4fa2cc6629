"""Which PC to buy: from Start to the best build, by real clicks."""

import json
import time
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import fakes
import pytest
import walk
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QRadioButton

from trainwright.build import Owned
from trainwright.build.answer import Done, Part
from trainwright.build.upgrades import Declined
from trainwright.messages import Message, UserError
from trainwright.prices import Price
from trainwright.ui import asking, paint
from trainwright.ui.buying import STEPS, nearest_step, request
from trainwright.ui.core import Core
from trainwright.ui.i18n import say
from trainwright.ui.money import amount
from trainwright.ui.screens import buildlists
from trainwright.ui.screens.buildwishes import search_parts
from trainwright.ui.widgets.base import widgets_of
from trainwright.ui.widgets.buildcards import UpgradeCard, grounds_of, price_of, why_of


def test_each_part_of_a_build_has_its_price_and_what_it_rests_on(qapp):
    dear = priced("ssd", 165.0, "assumed")
    owned = replace(dear, owned=1, kind="cpu")
    build = SimpleNamespace(parts=(replace(dear, count=2), owned))
    assert price_of(build, "storage") == "≈$330"
    assert "2026-06-30" in grounds_of(build, "storage")
    assert price_of(build, "cpu") == "", "what is there costs nothing"


def test_each_part_of_a_build_says_why_it_is_this_one(qapp):
    why = Message.of("planner.why.psu", drawn=408.0, share=0.63, watts=650.0)
    build = SimpleNamespace(parts=(replace(priced("supply", 85.0, "assumed"), why=why),))
    assert why_of(build, "storage") == "Carries 408 W at 63 % of its 650 W, short peaks too."
    assert why_of(build, "psu") == ""


def priced(id, each, kind):
    price = Price(each, each, each, "USD", kind, date(2026, 6, 30), "fresh", "a page")
    return Part("storage", id, id, 1, price)


def _lora_8b(screen):
    """Whether the answer for the model and the currency has come."""
    found = screen.builds
    return (
        found is not None
        and found.currency == "KRW"
        and bool(found.builds)
        and found.builds[0].plan.model.preset == "llama-3.1-8b"
        and not screen.strip.isVisible()
    )


def cards(screen):
    return screen.cards()


def said(widget):
    QApplication.processEvents()
    return " ".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def answered(qtbot, window):
    window.go("build")
    screen = window.screen_named("build")
    qtbot.waitUntil(lambda: screen.builds is not None)
    return screen


@pytest.mark.parametrize("planner", [fakes.builds, Core().builds], ids=["made-up", "real"])
def test_from_start_to_the_best_build_for_lora_on_8b_under_three_million_won(
    opened, qtbot, planner, tmp_path, monkeypatch
):
    window = opened(plan=None, core=fakes.core(builds=planner))
    mouse = walk.Mouse()
    mouse.click(window.screen_named("start").buy)
    screen = window.screen_named("build")
    mouse.pick(screen.question.model, "Llama 3.1 8B")
    won = next(
        one for one in screen.question.currency.findChildren(QRadioButton) if "KRW" in one.text()
    )
    mouse.click(won)
    qtbot.waitUntil(lambda: _lora_8b(screen), timeout=300_000)
    plan = window.session.plan
    assert plan.model.preset == "llama-3.1-8b"
    assert plan.workload.task == "lora"
    assert plan.limits.budget == "3000000 KRW"
    best = cards(screen)[0]
    assert amount(best.candidate.total.expected, "KRW") in said(best)
    assert best.candidate.total.expected <= 3_000_000
    assumed = [part for part in best.candidate.parts if part.price is not None]
    assert ("≈₩" in said(best)) == any(part.price.kind == "assumed" for part in assumed)
    if planner is not fakes.builds:
        lists_are_written(screen, best.candidate, tmp_path, monkeypatch)
    mouse.click(best.use)
    assert window.session.plan.machine == best.candidate.plan.machine
    assert window.place == "machine"
    assert mouse.clicks <= 5


def lists_are_written(screen, build, folder, monkeypatch):
    """Save the list in every format, and look for the card in each."""
    card = next(part for part in build.parts if part.kind == "gpu")
    for kind, suffix in buildlists.SUFFIXES.items():
        target = folder / f"a{suffix}"
        monkeypatch.setattr(asking, "list_to_save", lambda *_, at=target: at)
        buildlists.save(screen._session, build, screen, kind)
        assert (card.id if kind == "csv" else card.name) in target.read_text(encoding="utf-8")
    parts = json.loads((folder / "a.json").read_text(encoding="utf-8"))["parts"]
    assert [part["id"] for part in parts] == [part.id for part in build.parts]


def test_a_build_is_used_in_one_step_that_undo_takes_back(opened, qtbot):
    window = opened()
    before = window.session.plan
    screen = answered(qtbot, window)
    cards(screen)[1].use.click()
    assert window.session.plan.machine.gpus[0].id == "rtx-3090"
    assert window.session.plan.machine.psu == "be-quiet-straight-power-12-1200w"
    window.undo()
    assert window.session.plan == before


def test_two_builds_stand_side_by_side_with_what_differs_in_bold(opened, qtbot):
    screen = answered(qtbot, opened())
    for card in cards(screen)[:2]:
        card.compare.click()
    text = said(screen.pair)
    assert "2 × GeForce RTX 3090" in text
    assert "900 W" in text
    assert "520 W" in text
    cards(screen)[2].compare.click()
    assert [card.compare.isChecked() for card in cards(screen)] == [False, True, True]
    QApplication.processEvents()
    assert not list(walk.overlapping(screen.pair)), "the comparison before is gone"
    assert "900 W" not in said(screen.pair)


def test_a_budget_that_reaches_nothing_shows_the_cheapest_that_does_the_work(opened, qtbot):
    window = opened()
    screen = answered(qtbot, window)
    window.session.set_key("limits.budget", "1000 USD")
    qtbot.waitUntil(lambda: screen.builds.cheapest is not None)
    assert "No PC within $1,000 does this work." in said(screen)
    assert len(cards(screen)) == 1


def test_the_slider_sets_the_plans_budget_and_a_drag_is_one_step(opened, qtbot):
    window = opened()
    screen = answered(qtbot, window)
    before = window.session.plan
    for step in (10, 11, 12):
        screen.question.slider.setValue(step)
    assert window.session.plan.limits.budget == f"{STEPS['USD'][12]} USD"
    window.undo()
    assert window.session.plan.limits == before.limits


@pytest.mark.parametrize(
    ("typed", "budget"),
    [("2,750", "2750 USD"), ("$2750", "2750 USD"), ("300만원", "3000000 KRW")],
)
def test_a_budget_is_typed_as_people_write_it(opened, qtbot, typed, budget):
    window = opened()
    field = answered(qtbot, window).question.amount
    field.selectAll()
    field.insert(typed)  # QTest.keyClicks ends the process at a letter that is not ASCII
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert window.session.plan.limits.budget == budget
    assert field.text() == amount(float(budget[:-3]), budget[-3:])
    window.undo()
    assert window.session.plan.limits.budget != budget


def test_a_budget_that_is_none_stays_to_be_corrected_and_changes_nothing(opened, qtbot):
    window = opened()
    screen = answered(qtbot, window)
    before, field = window.session.plan, screen.question.amount
    field.selectAll()
    QTest.keyClicks(field, "much")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert window.session.plan == before
    assert field.text() == "much"
    assert "much" in said(screen.question)
    screen.question.presets[0].click()
    assert field.text() == amount(1500, "USD")
    assert not screen.question.problem.isVisible()


def test_the_search_can_be_stopped_and_says_what_goes_wrong(opened, qtbot):
    def slow(*_):
        time.sleep(0.3)
        raise UserError.of("ui.fit.nothing")

    window = opened(core=fakes.core(builds=slow))
    window.go("build")
    screen = window.screen_named("build")
    qtbot.waitUntil(lambda: screen.strip.isVisible())
    screen.strip.answered.emit("cancel")
    assert "The search was stopped." in said(screen)
    assert not screen.strip.isVisible()
    screen._again("")
    qtbot.waitUntil(lambda: not screen.strip.isVisible())
    assert "The search was stopped." not in said(screen)


def test_the_sliders_stops_hold_every_amount_within_them():
    for currency, stops in STEPS.items():
        assert list(stops) == sorted(set(stops))
        assert all(stops[nearest_step(stop, currency)] == stop for stop in stops)
        assert nearest_step(1e12, currency) == len(stops) - 1


def test_an_upgrade_changes_the_plans_machine_and_nothing_is_an_answer_too(opened, qtbot):
    window = opened()
    screen = answered(qtbot, window)
    window.session.set_key("limits.budget", "100 USD")
    screen.question.way.show_value("upgrade")
    screen.refresh()
    qtbot.waitUntil(lambda: "No change within the budget pays" in said(screen))
    assert not screen._chart.isVisible()


def test_the_real_planner_finds_upgrades_of_the_plans_machine(opened, qtbot):
    window = opened(core=fakes.core(upgrades=Core().upgrades))
    screen = answered(qtbot, window)
    window.session.set_key("limits.budget", "5000 USD")
    screen.question.way.show_value("upgrade")
    screen.refresh()

    def found():
        return [card for card in widgets_of(screen._list) if isinstance(card, UpgradeCard)]

    qtbot.waitUntil(lambda: bool(found()), timeout=300_000)
    wanted = found()[0].upgrade.plan.machine
    found()[0].use.click()
    assert window.session.plan.machine == wanted


def test_what_a_part_would_bring_is_asked_and_answered(opened, qtbot):
    asked = []

    def planner(_plan, _budget, _currency, part):
        asked.append(part)
        reason = Message.of("planner.upgrade.why.above")
        return SimpleNamespace(upgrades=(), declined=(Declined("gpu", reason),), notes=())

    window = opened(core=fakes.core(added=planner))
    screen = answered(qtbot, window)
    assert not screen.question.ask.isVisible(), "a new PC has nothing to add to"
    screen.question.way.show_value("upgrade")
    screen.question._turn("upgrade")
    qtbot.waitUntil(lambda: "No change within the budget pays" in said(screen))
    screen.question.ask.click()
    popup = QApplication.activePopupWidget()
    popup.field.setText("rtx 3090")
    QTest.keyClick(popup.field, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "costs more than the budget" in said(screen))
    assert asked == ["rtx-3090"]


WISHES = (
    (lambda row: row.used.click(), "used", True),
    (lambda row: row.quiet.click(), "quiet", True),
    (lambda row: row.expired.click(), "expired", True),
    (lambda row: row.form.activated.emit(1), "form", "mini-itx"),
    (lambda row: row.circuit.activated.emit(3), "circuit", "kr-220v-16a"),
    (lambda row: row.gpus.stepBy(2), "gpus", 2),
    (lambda row: row.owned._take("rtx-3090"), "owned", ("rtx-3090",)),
)


@pytest.mark.parametrize(("act", "key", "value"), WISHES, ids=[key for _, key, _ in WISHES])
def test_a_wish_is_an_edit_of_the_plan_that_undo_takes_back(opened, qtbot, act, key, value):
    window = opened()
    screen = answered(qtbot, window)
    before = window.session.plan
    act(screen.question.wishes)
    assert getattr(window.session.plan.limits.wishes, key) == value
    assert "pc." not in say(window.session.undo_label)
    window.undo()
    assert window.session.plan == before
    assert screen.question.wishes.gpus.value() == 0
    assert not screen.question.wishes.used.isChecked()


def test_other_plans_are_added_weighed_and_taken_out(opened, qtbot, tmp_path, monkeypatch):
    other = fakes.file_in(tmp_path, fakes.EXAMPLE.read_text(encoding="utf-8"))
    asked = []

    def planner(plan, budget, currency):
        asked.append(request(plan, budget, currency).also)
        return fakes.builds(plan, budget, currency)

    window = opened(core=fakes.core(builds=planner))
    screen = answered(qtbot, window)
    row = screen.question.wishes.works
    monkeypatch.setattr(asking, "plan_to_add", lambda _parent: other)
    before = window.session.plan
    row.add.click()
    row.times[0].stepUp()
    qtbot.waitUntil(lambda: [[one.times for one in also] for also in asked][-1:] == [[2]])
    assert window.session.plan.limits.also[0].plan == str(other)
    other.unlink()
    row.times[0].stepUp()
    qtbot.waitUntil(lambda: other.name in said(screen))
    row.plans[0].click()
    assert window.session.plan == before
    assert row.plans == []


def test_a_build_for_several_plans_shows_each(opened, qtbot):
    def planner(plan, budget, currency):
        found = fakes.builds(plan, budget, currency)
        for one in found.builds:
            one.works = tuple(Done(one.plan, one.report, times) for times in (1.0, 3.0, 0.0))
            one.others = one.works[1:]
        return found

    screen = answered(qtbot, opened(core=fakes.core(builds=planner)))
    text = said(cards(screen)[0])
    assert text.count(f"{cards(screen)[0].candidate.plan.name}: fits") == 3
    assert "3 ×" in text
    assert "for all runs" in text


def test_wishes_are_shown_from_the_file_saved_to_it_and_asked_of_the_planner(
    opened, qtbot, tmp_path
):
    asked = []

    def planner(plan, budget, currency):
        asked.append(request(plan, budget, currency).wishes)
        return fakes.builds(plan, budget, currency)

    wishes = "limits: {power_w: 750, wishes: {used: true, form: eeb, owned: [2x rtx-3090]}}\n"
    text = fakes.EXAMPLE.read_text(encoding="utf-8").partition("limits:")[0]
    window = opened(plan=fakes.file_in(tmp_path, text + wishes), core=fakes.core(builds=planner))
    row = answered(qtbot, window).question.wishes
    assert asked[-1].used
    assert asked[-1].power_w == 750
    assert asked[-1].owned == (Owned("gpu", "rtx-3090", 2),)
    assert (row.used.isChecked(), row.form.currentData(), row.power.value()) == (True, "eeb", 750)
    assert row.owned.parts[0].text() == "2 × GeForce RTX 3090"
    assert "2 × GeForce RTX 3090 (1 of them yours)" in said(window.screen_named("build"))
    row.used.click()
    row.owned.parts[0].click()
    row.power.stepBy(1)
    row.deadline.stepBy(1)
    window.session.save(tmp_path / "a.plan.yaml")
    saved = (tmp_path / "a.plan.yaml").read_text(encoding="utf-8")
    assert "power_w: 800" in saved
    assert "deadline_h: 72" in saved
    assert "wishes: {form: eeb}" in saved
    qtbot.waitUntil(lambda: asked[-1].power_w == 800)
    assert not asked[-1].used
    assert asked[-1].owned == ()


def test_wishes_that_contradict_are_said_in_place_of_builds(opened, qtbot):
    window = opened(core=fakes.core(builds=Core().builds))
    window.session.set_keys({"limits.power_w": 900, "limits.wishes.quiet": True})
    window.go("build")
    screen = window.screen_named("build")
    qtbot.waitUntil(lambda: "A quiet computer draws at most 600 W" in said(screen))


def test_a_part_that_one_has_is_found_by_typing(qapp):
    assert search_parts("rtx 3090")[0].key.startswith("rtx-3090")
    assert [one.key for one in search_parts("mx500 1tb")] == ["crucial-mx500-1tb"]
    assert search_parts("no such part") == []


def test_the_chart_tells_watts_by_area_and_in_words(opened, qtbot):
    screen = answered(qtbot, opened())
    chart = screen.scatter
    radii = {point.size: chart._radius(point.size, 0) for point in chart._points}
    assert list(radii) == [900.0, 520.0, 310.0]
    areas = [radius**2 / watts for watts, radius in radii.items()]
    assert areas == pytest.approx([areas[0]] * 3)
    told = dict(chart.rows())
    assert told["2 × GeForce RTX 3090"] == "$2,700 · ~40 h 0 min · at most 900 W at the wall"
    assert "at most 310 W at the wall" in chart.accessibleDescription()
    QTest.keyClick(chart, Qt.Key.Key_Right)
    assert chart.accessibleDescription().startswith("GeForce RTX 4060 Ti 16GB · $1,500")
    QTest.keyClick(chart, Qt.Key.Key_Return)
    assert cards(screen)[2].use.hasFocus()


def exported(card, section):
    """Return the menu's entries by text below a section."""
    found, here = {}, False
    for entry in card.lists.menu().actions():
        here = entry.text() == section if entry.isSeparator() else here
        if here and not entry.isSeparator():
            found[entry.text()] = entry
    return found


def test_the_charts_time_axis_names_its_unit(opened, qtbot):
    """Made-up runs of many hours; the axis says days, or hours, and what is timed."""
    screen = answered(qtbot, opened())
    hours = max(point.seconds for point in screen.builds.front) / 3600
    paint.runs = []
    screen.scatter.repaint()
    runs, paint.runs = paint.runs, None
    written = {run.text for run in runs}
    assert ("whole run, in days" if hours >= 72 else "whole run, in hours") in written


def test_a_build_is_saved_as_a_list_and_copied_from_its_menu(opened, qtbot, tmp_path, monkeypatch):
    window = opened()
    card = cards(answered(qtbot, window))[0]
    target = tmp_path / "my pc.md"
    monkeypatch.setattr(asking, "list_to_save", lambda *_: target)
    saving = exported(card, "Save the list of parts as")
    assert list(saving) == ["Markdown table…", "CSV…", "Text as PCPartPicker's…", "JSON…"]
    saving["Markdown table…"].trigger()
    assert "| **Video Card** | GeForce RTX 3090 | 2 | unpriced |" in target.read_text()
    assert "my pc.md is saved" in said(window.notice)
    exported(card, "Copy the list of parts as")["Text as PCPartPicker's"].trigger()
    assert "CPU: AMD Ryzen 9 7950X" in QApplication.clipboard().text()


def test_a_list_that_cannot_be_written_says_so(opened, qtbot, tmp_path, monkeypatch):
    window = opened()
    card = cards(answered(qtbot, window))[0]
    monkeypatch.setattr(asking, "list_to_save", lambda *_: tmp_path / "gone" / "a.md")
    exported(card, "Save the list of parts as")["Markdown table…"].trigger()
    assert "cannot be written" in said(window.notice)
    assert list(tmp_path.glob("**/a.md")) == []


def test_costs_of_a_run_are_those_of_the_tariff_and_the_clouds_rate(opened, qtbot):
    window = opened()
    screen = answered(qtbot, window)
    costs = screen.costs
    assert "In the cloud" not in said(costs)
    assert "~$6" in said(costs)  # 40 h of 900 W at 0.17 $/kWh: 6.12
    costs.cloud.setText("$1.153")
    costs.cloud.editingFinished.emit()
    assert window.session.plan.limits.rates.cloud == "1.153 USD"
    assert "~$46" in said(costs)  # 40 h
    assert "~2700 h" in said(costs) or "112 d 12 h" in said(costs)  # 2700 $ / (1.153 - 0.153)
    costs.energy.setText("9")
    costs.energy.editingFinished.emit()
    assert "never" in said(costs)
    window.undo()
    window.undo()
    assert "In the cloud" not in said(costs)
    costs.cloud.setText("a lot")
    costs.cloud.editingFinished.emit()
    assert window.session.plan.limits.rates.cloud is None
    costs.cloud.setText("1100원")
    costs.cloud.editingFinished.emit()
    assert window.session.plan.limits.rates.cloud == "1100 KRW"
    assert "set an exchange rate" in said(costs)
    costs.cloud.setText("1.153 usd / gpu")
    costs.cloud.editingFinished.emit()
    assert window.session.plan.limits.rates.cloud == "1.153 USD/GPU"
    assert "~$92" in said(costs), "40 h of two GPUs"


def test_rates_do_not_search_again(opened, qtbot):
    asked = []

    def planner(*question):
        asked.append(question)
        return fakes.builds(*question)

    window = opened(core=fakes.core(builds=planner))
    answered(qtbot, window)
    window.session.set_key("limits.rates.cloud", "2 USD")
    qtbot.wait(500)
    assert len(asked) == 1


def test_a_part_that_one_has_stays_ones_own_in_the_plan(opened, qtbot):
    window = opened()
    window.session.set_key("limits.wishes.owned", ["samsung-990-pro-2tb", "rtx-3090"])
    screen = answered(qtbot, window)
    cards(screen)[0].use.click()  # two cards, of which one is there
    assert window.session.plan.machine.owned == ("samsung-990-pro-2tb",)
    window.go("build")
    qtbot.waitUntil(lambda: "In the plan" in cards(screen)[0].use.text())
    window.undo()
    qtbot.waitUntil(lambda: "Use this build" in cards(screen)[0].use.text())
