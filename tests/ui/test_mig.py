"""The board of instances, by mouse and by keyboard."""

from dataclasses import replace

import fakes
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from trainwright.messages import Message
from trainwright.probe.nvml import GpuReading, Instance, Memory, Mig, Nvidia
from trainwright.probe.reading import Missing
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
    screen._remove(at)
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
        ("mig-parted", '"3g.40gb": 1'),
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
