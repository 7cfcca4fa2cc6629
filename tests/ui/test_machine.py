"""The machine of a plan: parts, lanes, power, price and rules as their reader sees them."""

import fakes
import pytest
from PySide6.QtWidgets import QApplication, QLabel

from trainwright.messages import Message
from trainwright.plan.file import read
from trainwright.ui import paint
from trainwright.ui.charts.lanes import seats
from trainwright.ui.inspection import errors_with, inspect
from trainwright.ui.names import search_machines
from trainwright.ui.widgets.base import widgets_of

PLAN = """\
trainwright: 1
name: two-cards
model: {preset: llama-3.1-8b}
workload: {task: lora, inputs: {sequence_length: 2048}, effective_batch: 64}
machine:
  gpus: [{id: rtx-4090, count: 2}]
  cpu: ryzen-9-7950x
  board: asus-proart-x870e-creator-wifi
  memory: [{id: crucial-pro-ddr5-5600-cl46-2x32gb}]
  drives: [{id: samsung-990-pro-2tb}]
  psu: asus-tuf-gaming-1000g
  case: antec-flux-pro
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "two.plan.yaml"
    file.write_text(PLAN)
    return file


@pytest.fixture
def shown(opened, qtbot, path):
    window = opened(plan=path)
    window.go("machine")
    screen = window.screen_named("machine")
    qtbot.waitUntil(lambda: screen.inspection is not None)
    return window, screen


def changed(qtbot, screen, act):
    before = screen.inspection
    act()
    qtbot.waitUntil(lambda: screen.inspection is not before)
    QApplication.processEvents()


def said(widget):
    QApplication.processEvents()
    return " ".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def row(screen, kind):
    return next(
        one for one in widgets_of(screen._rows) if hasattr(one, "row") and one.row.kind == kind
    )


def test_two_cards_share_the_processors_lanes(path):
    inspection = inspect(read(path), "USD")
    cards = [seat for seat in seats(inspection.build, inspection.placement) if not seat.drive]
    links = [(seat.lanes, seat.generation) for seat in cards if seat.what]
    # ASUS, ProArt X870E-Creator specifications: x16, or x8 and x8; the cards are PCIe 4.0.
    assert links == [(8, 4), (8, 4)]
    assert all("share" in seat.because for seat in cards if seat.what)


def test_a_part_of_another_socket_is_marked_before_it_is_chosen(path):
    inspection = inspect(read(path), "USD")
    assert errors_with(inspection, "cpu", "core-i9-14900k", instead="ryzen-9-7950x") > 0
    assert errors_with(inspection, "cpu", "ryzen-9-9950x", instead="ryzen-9-7950x") == 0


def test_the_screen_says_in_a_line_whether_it_works_and_what_it_costs(shown):
    _, screen = shown
    text = said(screen)
    assert "Cannot work: 2 faults" in text
    assert "Not chosen yet: cooler" in text
    assert "oldest price" in text


def test_a_machine_with_parts_to_choose_is_neither_whole_nor_priced_in_full(
    opened, qtbot, tmp_path
):
    bare = PLAN.partition("  cpu:")[0]
    window = opened(plan=fakes.file_in(tmp_path, bare.replace("count: 2", "count: 1")))
    window.go("machine")
    screen = window.screen_named("machine")
    qtbot.waitUntil(lambda: screen.inspection is not None)
    text = said(screen)
    assert "What is chosen goes together" in text
    assert "Everything goes together" not in text
    assert "at least" in text


def test_the_watts_of_several_cards_are_not_cut(opened, qtbot, tmp_path):
    text = PLAN.replace("rtx-4090, count: 2", "rtx-3090, count: 4")
    window = opened(plan=fakes.file_in(tmp_path, text))
    window.go("machine")
    screen = window.screen_named("machine")
    qtbot.waitUntil(lambda: screen.inspection is not None)
    paint.runs = []
    window.grab()
    runs, paint.runs = paint.runs, None
    (watts,) = {run.elided for run in runs if run.text.startswith("1,400")}
    assert not watts


def test_one_click_on_a_remedy_limits_the_cards_and_undo_takes_it_back(shown, qtbot):
    window, screen = shown
    changed(qtbot, screen, lambda: screen.checks.limited.emit(320.0))
    assert window.session.plan.machine.gpus[0].power_limit_w == 320
    assert screen.inspection.count("error") == 0
    assert screen.limit.value() == 320
    changed(qtbot, screen, window.undo)
    assert screen.inspection.count("error") == 2


def test_the_slider_at_its_end_is_no_limit(shown, qtbot):
    window, screen = shown
    changed(qtbot, screen, lambda: screen.limit.setValue(300))
    assert window.session.plan.machine.gpus[0].power_limit_w == 300
    changed(qtbot, screen, lambda: screen.limit.setValue(screen.limit.maximum()))
    assert window.session.plan.machine.gpus[0].power_limit_w is None


def test_what_is_owned_costs_nothing_more(shown, qtbot):
    _, screen = shown
    before = screen.inspection.total.expected
    changed(qtbot, screen, row(screen, "gpu").own.click)
    assert screen.inspection.total.expected < before
    assert "owned" in row(screen, "gpu").part.parentWidget().own.accessibleName()


def test_parts_are_chosen_counted_and_taken_out(shown, qtbot):
    window, screen = shown
    changed(qtbot, screen, lambda: row(screen, "psu").part.chosen.emit("corsair-hx1500i-2025"))
    assert window.session.plan.machine.psu == "corsair-hx1500i-2025"
    changed(qtbot, screen, row(screen, "case").out.click)
    assert window.session.plan.machine.case is None
    changed(qtbot, screen, lambda: row(screen, "memory").counted.emit(
        "memory", "crucial-pro-ddr5-5600-cl46-2x32gb", 2))  # fmt: skip
    assert screen.inspection.build.memory_gib == 128
    row(screen, "gpu").out.click()
    assert window.session.plan.machine.gpus
    assert "A plan needs a GPU" in window.notice.text


def test_what_the_catalog_lacks_is_named_and_not_guessed(tmp_path):
    file = tmp_path / "odd.plan.yaml"
    file.write_text(PLAN.replace("antec-flux-pro", "my-own-case"))
    inspection = inspect(read(file), "USD")
    assert inspection.unknown == ("my-own-case",)
    case = next(row for row in inspection.rows if row.kind == "case")
    assert case.record is None
    assert case.item is None


def test_a_plan_for_this_computer_offers_to_take_its_parts_over(opened, tmp_path):
    file = tmp_path / "here.plan.yaml"
    head, _, _ = PLAN.partition("machine:")
    file.write_text(f"{head}machine: {{local: true}}\n")
    window = opened(plan=file, core=fakes.core(failing=Message.of("probe.no-driver")))
    window.go("machine")
    assert "This plan is for this computer." in said(window.screen_named("machine"))


def test_a_clouds_computer_is_chosen_as_a_gpu_and_has_no_parts_to_choose(shown, qtbot):
    window, screen = shown
    form = window.screen_named("plan").form
    assert [option.key for option in search_machines("p5.48")] == ["p5.48xlarge"]
    form._choose_gpu("p5.48xlarge")
    assert window.session.plan.machine.cloud == "p5.48xlarge"
    window.go("machine")
    qtbot.waitUntil(lambda: "p5.48xlarge is rented: 8 × H100" in said(screen))
    assert "192 vCPUs · 2048 GiB · AWS" in said(screen)
    assert "Choose a processor" not in said(screen)
    window.session.undo()
    window.go("machine")
    qtbot.waitUntil(lambda: "rented" not in said(screen) and "Power limit" in said(screen))
