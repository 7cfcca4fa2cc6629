"""The board of instances, by mouse and by keyboard."""

from dataclasses import replace

import fakes
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from trainwright.messages import Message
from trainwright.mig.boards import Place
from trainwright.probe import nvml
from trainwright.probe.nvml import GpuReading, Instance, Memory, Mig, Nvidia
from trainwright.probe.reading import Missing
from trainwright.ui.paint import Drawing
from trainwright.ui.screens.mig import MigScreen

GIB = 1 << 30
KEY = Qt.Key


@pytest.fixture
def screen(opened) -> MigScreen:
    window = opened(plan=None)
    found = window.screen_named("mig")
    assert isinstance(found, MigScreen)
    QTest.qWait(50)
    assert found.record.name == "A100 PCIe 80GB"
    return found


def row(screen, profile):
    return next(each for each in screen.palette_rows if each.profile == profile)


def block(screen, shown):
    return next(each for each in screen.strip.blocks if each.instance.shown == shown)


def layout(screen):
    return [each.shown for each in screen.sketch.layout]


def drag(screen, piece, unit, *, grip=None, release=True):
    """Take a row or an instance by its middle or grip, and carry it to a unit."""
    start = grip or QPoint(40, piece.height() // 2)
    QTest.mousePress(piece, Qt.MouseButton.LeftButton, pos=start)
    there = QPoint(round(screen.strip.ruler.x(unit)), 120)
    goal = piece.mapFromGlobal(screen.strip.mapToGlobal(there))
    for part in (0.3, 0.7, 1.0):
        QTest.mouseMove(piece, start + (goal - start) * part)
    if release:
        QTest.mouseRelease(piece, Qt.MouseButton.LeftButton, pos=goal)


def test_a_profile_is_dragged_onto_the_strip_and_snaps(screen):
    drag(screen, row(screen, "3g.40gb"), 6.4)
    assert layout(screen) == ["3g.40gb@4"]
    drag(screen, row(screen, "1g.10gb"), 3.6)
    assert layout(screen) == ["1g.10gb@3", "3g.40gb@4"]


def test_an_illegal_drop_says_why_and_changes_nothing(screen):
    drag(screen, row(screen, "3g.40gb"), 2)
    drag(screen, row(screen, "2g.20gb"), 7.2, release=False)
    assert "0, 2, 4" in screen.says.text()
    assert not screen.strip._ghost.legal
    QTest.mouseRelease(row(screen, "2g.20gb"), Qt.MouseButton.LeftButton)
    assert layout(screen) == ["3g.40gb@0"]
    assert "0, 2, 4" in screen.says.text()
    assert screen.strip._ghost.isHidden()


def test_escape_gives_a_drag_up(screen):
    piece = row(screen, "3g.40gb")
    drag(screen, piece, 2, release=False)
    QTest.keyClick(piece, KEY.Key_Escape)
    QTest.mouseRelease(piece, Qt.MouseButton.LeftButton)
    assert layout(screen) == []


def test_a_click_places_it_where_it_leaves_most_and_a_place_takes_it_there(screen):
    piece = row(screen, "1g.10gb")
    QTest.mouseClick(piece, Qt.MouseButton.LeftButton, pos=QPoint(60, 12))
    assert layout(screen) == ["1g.10gb@6"]
    middle = round(piece._ruler.x(2.5))
    QTest.mouseClick(piece, Qt.MouseButton.LeftButton, pos=QPoint(middle, 12))
    assert layout(screen) == ["1g.10gb@2", "1g.10gb@6"]


def test_an_instance_is_dragged_elsewhere(screen):
    screen._add("2g.20gb", 0)
    piece = block(screen, "2g.20gb@0")
    drag(screen, piece, 4.2, grip=QPoint(10, 20))
    assert layout(screen) == ["2g.20gb@4"]


def test_everything_goes_by_keyboard(screen):
    piece = row(screen, "2g.20gb")
    piece.setFocus()
    QTest.keyClick(piece, KEY.Key_Return)
    assert layout(screen) == ["2g.20gb@4"]
    QTest.keyClick(block(screen, "2g.20gb@4"), KEY.Key_Left)
    assert layout(screen) == ["2g.20gb@2"]
    assert block(screen, "2g.20gb@2").hasFocus()
    QTest.keyClick(block(screen, "2g.20gb@2"), KEY.Key_Left)
    QTest.keyClick(block(screen, "2g.20gb@0"), KEY.Key_Left)
    assert "left" in screen.says.text()
    QTest.keyClick(block(screen, "2g.20gb@0"), KEY.Key_Delete)
    assert layout(screen) == []


def test_the_usual_keys_undo_and_redo_on_the_board_and_not_in_the_plan(opened):
    window = opened()
    before = window.session.plan
    window.session.set_key("name", "renamed")
    screen = window.screen_named("mig")
    screen._choose_gpu("a100-80gb-pcie")
    screen._add("3g.40gb", 0)
    screen._add("1g.10gb", 4)
    piece = block(screen, "1g.10gb@4")
    piece.setFocus()
    control = Qt.KeyboardModifier.ControlModifier
    QTest.keyClick(piece, KEY.Key_Z, control)
    assert layout(screen) == ["3g.40gb@0"]
    QTest.keyClick(QApplication.focusWidget(), KEY.Key_Z, control)
    assert layout(screen) == []
    for _ in range(2):
        again = control | Qt.KeyboardModifier.ShiftModifier
        QTest.keyClick(QApplication.focusWidget(), KEY.Key_Z, again)
    assert layout(screen) == ["3g.40gb@0", "1g.10gb@4"]
    assert window.session.plan.name == "renamed" != before.name


def test_largest_and_idle_are_always_said(screen):
    assert "7g.80gb" in screen.strip.in_view()[0]
    screen._add("3g.40gb", 0)
    screen._add("1g.10gb", 5)
    most, idle = screen.strip.in_view()
    assert "1g.20gb" in most
    assert "52 of 108" in idle
    assert most in screen.strip.accessibleDescription()


def test_jobs_arrange_themselves_and_each_instance_is_named(screen, qtbot):
    for line, (name, memory, hours) in enumerate((("eval", "33", "4"), ("embed", "6,2", "1"))):
        for field, text in zip(screen.jobs.rows[line], (name, memory, hours), strict=False):
            QTest.keyClicks(field, text)
    QTest.mouseClick(screen.jobs.arrange, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: screen._desk.planned is not None, timeout=20_000)
    named = {job: each.profile for each, job in screen.sketch.drawn.jobs.items()}
    assert set(named) == {"eval", "embed"}
    assert named["eval"][0] in "34"
    assert [each.job.name for each in screen.jobs.placed] == ["eval", "embed"]
    at = next(each for each, job in screen.sketch.drawn.jobs.items() if job == "embed")
    assert screen.jobs.placed[1].where == at.shown
    screen._remove(Place(0, at))
    assert screen.jobs.placed[1].where == "no instance"
    screen.undo.click()
    assert screen.jobs.placed[1].where == at.shown


def test_a_job_is_dropped_onto_an_instance_that_it_fits(screen, qtbot):
    for line, (name, memory) in enumerate((("eval", "33"), ("embed", "6"))):
        for field, text in zip(screen.jobs.rows[line], (name, memory), strict=False):
            QTest.keyClicks(field, text)
    screen.jobs.arrange.click()
    qtbot.waitUntil(lambda: screen._desk.planned is not None, timeout=20_000)
    screen.empty.click()
    screen._add("1g.10gb", 0)
    screen._add("3g.40gb", 4)
    large, small = screen.jobs.placed
    drag(screen, large, 0.5)
    assert screen.sketch.drawn.jobs == {}
    assert "33.0 GiB" in screen.says.text()
    drag(screen, large, 6)
    assert large.where == "3g.40gb@4"
    QTest.mouseClick(small, Qt.MouseButton.LeftButton)
    assert small.where == "1g.10gb@0"
    drag(screen, small, 6)
    assert (large.where, small.where) == ("no instance", "3g.40gb@4")
    QTest.keyClick(large, KEY.Key_Return)
    assert large.where == "no instance"
    assert "eval" in screen.says.text()
    screen.undo.click()
    assert (large.where, small.where) == ("3g.40gb@4", "1g.10gb@0")


@pytest.mark.parametrize("memory", ["", "lots", "-3", "nan", "0"])
def test_a_row_that_is_no_job_is_told(screen, memory):
    QTest.keyClicks(screen.jobs.rows[0][0], "eval")
    QTest.keyClicks(screen.jobs.rows[0][1], memory)
    screen.jobs.arrange.click()
    assert "Job 1" in screen.jobs.says.text()


def test_a_job_too_large_for_any_instance_has_none(screen, qtbot):
    QTest.keyClicks(screen.jobs.rows[0][0], "huge")
    QTest.keyClicks(screen.jobs.rows[0][1], "500")
    screen.jobs.arrange.click()
    qtbot.waitUntil(lambda: screen._desk.planned is not None, timeout=20_000)
    assert "huge" in screen.says.text()


def test_a_jobs_file_is_read_or_refused(screen, qtbot, tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("jobs:\n  - {name: notebook, memory_gib: 8, count: 3}\n")
    bad.write_text("jobs:\n  - {name: notebook}\n")
    screen.jobs.open(bad)
    assert "bad.yaml" in screen.jobs.says.text()
    screen.jobs.open(good)
    qtbot.waitUntil(lambda: screen._desk.planned is not None, timeout=20_000)
    assert len(screen.sketch.drawn.jobs) == 3


def test_commands_are_copied_and_undone_ones_too(screen):
    screen._add("3g.40gb", 4)
    screen.commands.copy.click()
    assert "-cgi 9:4 -C" in QGuiApplication.clipboard().text()
    kind = screen.commands.kind
    for key, told in (
        ("undo", "-dgi"),
        ("mig-parted", "3g.40gb: 1"),
        ("kubernetes", "nvidia.com/"),
    ):
        kind.setCurrentIndex(kind.findData(key))
        kind.activated.emit(kind.currentIndex())
        screen.commands.copy.click()
        assert told in QGuiApplication.clipboard().text()


def test_what_was_drawn_outlives_another_language(opened):
    window = opened(plan=None)
    window.screen_named("mig")._add("3g.40gb", 4)
    window.switch_language()
    assert layout(window.screen_named("mig")) == ["3g.40gb@4"]


def test_a_cut_gpu_of_this_computer_is_offered_as_the_start(opened, qtbot):
    there = Missing(Message.of("probe.not-supported"))
    parts = tuple(Instance(f"NVIDIA H100 80GB HBM3 MIG {each}") for each in ("1g.10gb", "3g.40gb"))
    reading = GpuReading(
        2, "NVIDIA H100 80GB HBM3", Memory(80 * GIB, 0, 80 * GIB), (9, 0), there,
        mig=Mig(True, True, parts),
    )  # fmt: skip
    taken = replace(fakes.snapshot(), nvidia=Nvidia("580.1", (reading,)))
    window = opened(plan=None, core=fakes.core(snapshot=lambda: taken))
    screen = window.screen_named("mig")
    qtbot.waitUntil(screen.current.isVisible)
    assert screen.record.id == "h100-80gb-sxm"
    screen.current.click()
    assert sorted(each.profile for each in screen.sketch.layout) == ["1g.10gb", "3g.40gb"]
    assert "assumed" in screen.says.text()
    piece = next(each for each in screen.strip.blocks if each.instance.profile == "1g.10gb")
    QTest.keyClick(piece, KEY.Key_Delete)
    applied = screen.commands._texts["apply"]
    assert "-i 2" in applied
    assert "-mig 1" not in applied
    assert "-dgi" in applied


def test_a_gpu_whose_places_nobody_knows_says_so(screen):
    screen._choose_gpu("rtx-pro-4500")
    row(screen, "1g.16gb").click()
    assert layout(screen) == []
    assert "not known" in screen.says.text()


# Several GPUs


@pytest.fixture
def pair(screen):
    """Return the screen with two GPUs."""
    screen.number.setFocus()
    QTest.keyClick(screen.number, KEY.Key_Up)
    QTest.qWait(20)
    assert len(screen.strips.all) == 2
    return screen


def layouts(screen):
    return [[each.shown for each in sketch.layout] for sketch in screen.boards.sketches]


def carry(screen, piece, gpu, unit, *, grip=None):
    """Drag a row, an instance or a job to a unit of one of the GPUs."""
    strip = screen.strips.all[gpu]
    start = grip or QPoint(40, piece.height() // 2)
    goal = piece.mapFromGlobal(strip.mapToGlobal(QPoint(round(strip.ruler.x(unit)), 70)))
    QTest.mousePress(piece, Qt.MouseButton.LeftButton, pos=start)
    for part in (0.3, 0.7, 1.0):
        QTest.mouseMove(piece, start + (goal - start) * part)
    QTest.mouseRelease(piece, Qt.MouseButton.LeftButton, pos=goal)


def block_of(screen, gpu, shown):
    return next(each for each in screen.strips.all[gpu].blocks if each.instance.shown == shown)


def test_a_drag_goes_to_the_gpu_below_the_pointer(pair):
    carry(pair, row(pair, "3g.40gb"), 1, 5.8)
    carry(pair, row(pair, "2g.20gb"), 0, 1.2)
    assert layouts(pair) == [["2g.20gb@0"], ["3g.40gb@4"]]


def test_an_instance_is_dragged_to_another_gpu_and_back_by_undo(pair):
    pair._add("2g.20gb", 0)
    carry(pair, block_of(pair, 0, "2g.20gb@0"), 1, 4.2, grip=QPoint(10, 20))
    assert layouts(pair) == [[], ["2g.20gb@4"]]
    pair.undo.click()
    assert layouts(pair) == [["2g.20gb@0"], []]
    pair.redo.click()
    assert layouts(pair) == [[], ["2g.20gb@4"]]


def test_it_goes_to_another_gpu_by_the_arrow_keys(pair):
    piece = row(pair, "3g.40gb")
    QTest.keyClick(piece, KEY.Key_Return)
    assert layouts(pair) == [["3g.40gb@4"], []]
    QTest.keyClick(block_of(pair, 0, "3g.40gb@4"), KEY.Key_Down)
    assert layouts(pair) == [[], ["3g.40gb@4"]]
    assert block_of(pair, 1, "3g.40gb@4").hasFocus()
    assert pair._desk.active == 1
    QTest.keyClick(block_of(pair, 1, "3g.40gb@4"), KEY.Key_Left)
    QTest.keyClick(block_of(pair, 1, "3g.40gb@0"), KEY.Key_Up)
    assert layouts(pair) == [["3g.40gb@4"], []]
    control = Qt.KeyboardModifier.ControlModifier
    QTest.keyClick(QApplication.focusWidget(), KEY.Key_Z, control)
    assert layouts(pair) == [[], ["3g.40gb@0"]]


def test_a_strip_that_has_the_focus_takes_what_is_added(pair):
    pair.strips.all[1].setFocus()
    QTest.keyClick(row(pair, "7g.80gb"), KEY.Key_Return)
    assert layouts(pair) == [[], ["7g.80gb@0"]]
    QTest.keyClick(row(pair, "7g.80gb"), KEY.Key_Return)  # full: the other has room
    assert layouts(pair) == [["7g.80gb@0"], ["7g.80gb@0"]]


def test_jobs_are_packed_on_both_and_said_where(pair, qtbot):
    for field, text in zip(pair.jobs.rows[0], ("eval", "33"), strict=False):
        QTest.keyClicks(field, text)
    pair.jobs.rows[0][3].setValue(3)
    pair.jobs._typed()
    pair.jobs.arrange.click()
    qtbot.waitUntil(lambda: pair._desk.planned is not None, timeout=20_000)
    wheres = sorted(each.where for each in pair.jobs.placed)
    assert [where[:5] for where in wheres] in (
        ["GPU 0", "GPU 0", "GPU 1"], ["GPU 0", "GPU 1", "GPU 1"],
    )  # fmt: skip
    applied = pair.commands._texts["apply"]
    assert "-i 0 -cgi" in applied
    assert "-i 1 -cgi" in applied
    assert "- devices: [1]" in pair.commands._texts["mig-parted"]
    pair.undo.click()
    assert layouts(pair) == [[], []]


def test_a_job_is_dragged_to_the_other_gpu(pair, qtbot):
    for field, text in zip(pair.jobs.rows[0], ("eval", "33"), strict=False):
        QTest.keyClicks(field, text)
    pair.jobs.arrange.click()
    qtbot.waitUntil(lambda: pair._desk.planned is not None, timeout=20_000)
    pair.empty.click()
    pair._add_to(0, "3g.40gb", 0)
    pair._add_to(1, "3g.40gb", 4)
    (job,) = pair.jobs.placed
    carry(pair, job, 1, 6)
    assert job.where == "GPU 1, 3g.40gb@4"
    carry(pair, job, 0, 1)
    assert job.where == "GPU 0, 3g.40gb@0"
    assert pair.boards.sketches[1].drawn.jobs == {}


def test_fewer_gpus_again_is_a_step_that_is_undone(pair):
    pair._add_to(1, "3g.40gb", 4)
    pair.number.setValue(1)
    assert layouts(pair) == [[]]
    pair.undo.click()
    assert layouts(pair) == [[], ["3g.40gb@4"]]
    assert pair.number.value() == 2


def opened_with(opened, qtbot, nvml_stub, monkeypatch, scenario):
    """Return the screen on a computer of the stub's."""
    for name, value in nvml_stub.variables(scenario).items():
        monkeypatch.setenv(name, value)
    taken = replace(fakes.snapshot(), nvidia=nvml.read())
    screen = opened(plan=None, core=fakes.core(snapshot=lambda: taken)).screen_named("mig")
    qtbot.waitUntil(lambda: bool(screen._lives))
    return screen


def test_this_computers_gpus_are_drawn_as_they_are_cut(opened, qtbot, nvml_stub, monkeypatch):
    screen = opened_with(opened, qtbot, nvml_stub, monkeypatch, "mig-two")
    assert layouts(screen) == [["1g.10gb@2", "1g.10gb@3", "3g.40gb@4"], []]
    assert screen.commands._texts["apply"] == ""  # nothing is to be done
    assert not screen.undo.isEnabled()
    assert "driver 580.65.06" in screen._origin.text()
    screen._add_to(1, "7g.80gb", 0)
    assert screen.commands._texts["apply"] == "sudo nvidia-smi mig -i 1 -cgi 0:0 -C"


def test_what_the_driver_tells_otherwise_is_in_the_palette(opened, qtbot, nvml_stub, monkeypatch):
    screen = opened_with(opened, qtbot, nvml_stub, monkeypatch, "mig-other")
    assert "1g.20gb" in screen._origin.text()
    assert {each.profile for each in screen.palette_rows} == {
        "1g.10gb", "1g.10gb+me", "2g.20gb", "3g.39gb", "4g.39gb", "7g.79gb",
    }  # fmt: skip
    screen._add("2g.20gb", 6)
    assert layout(screen) == ["2g.20gb@6"]


def test_a_gpu_that_no_catalog_has_is_cut_on_the_board(opened, qtbot, nvml_stub, monkeypatch):
    screen = opened_with(opened, qtbot, nvml_stub, monkeypatch, "mig-strange")
    assert screen.record.name == "Prototype 8"
    drag(screen, row(screen, "2g.50gb"), 6)
    assert layout(screen) == ["2g.50gb@4"]
    window = screen.window()
    window.switch_language()
    assert layout(window.screen_named("mig")) == ["2g.50gb@4"]


def test_a_long_name_of_a_job_is_cut_short_not_hidden(screen, qtbot, monkeypatch):
    name = "아주긴이름의임베딩작업"
    for field, text in zip(screen.jobs.rows[0], (name, "6"), strict=False):
        field.setText(text)
    screen.jobs._typed()
    screen.jobs.arrange.click()
    qtbot.waitUntil(lambda: screen._desk.planned is not None, timeout=20_000)
    written = []
    whole = Drawing.write

    def write(drawing, x, y, w, h, text, **more):
        written.append(text)
        return whole(drawing, x, y, w, h, text, **more)

    (piece,) = screen.strip.blocks
    piece.resize(56, 88)
    monkeypatch.setattr(Drawing, "write", write)
    piece.grab()
    assert any(text.startswith("아주긴") and text.endswith("…") for text in written)
