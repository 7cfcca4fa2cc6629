"""How many clicks people need for what they come for. The buyer's are counted in test_build."""

import fakes
import pytest
from PySide6.QtCore import QPoint
from walk import Mouse, settled, spin

from trainwright.ui import filedialogs
from trainwright.ui.i18n import tr
from trainwright.ui.widgets.migpalette import ProfileRow


def place(window, id):
    return next(each for each in window.rail._places if each.id == id)


@pytest.fixture
def mouse():
    return Mouse()


def test_a_student_gets_a_script_for_their_own_gpu(opened, qtbot, mouse, tmp_path, monkeypatch):
    monkeypatch.setattr(filedialogs, "folder", lambda *_: tmp_path)
    window = opened(plan=None)
    mouse.click(window.screen_named("start")._plan_new)
    qtbot.waitUntil(lambda: settled(window))
    mouse.pick(window.screen_named("plan").form.gpu, "GeForce RTX 3060 12GB")
    qtbot.waitUntil(lambda: settled(window))
    mouse.click(window.tools["go-export"])
    export = window.screen_named("export")
    qtbot.waitUntil(export.save.isEnabled)
    mouse.click(export.save)
    assert list(tmp_path.glob("*/train.py"))
    assert window.session.plan.machine.gpus[0].id == "rtx-3060-12gb"
    assert mouse.clicks <= 5


def test_a_lab_places_two_instances_on_its_gpu(opened, mouse):
    window = opened(plan=None)
    mouse.click(place(window, "mig"))
    spin(50)
    board = window.screen_named("mig")
    rows = {row.profile: row for row in board.findChildren(ProfileRow)}
    for _ in range(2):
        mouse.click(rows["3g.40gb"], QPoint(60, 12))
    assert [each.shown for each in board.sketch.layout] == ["3g.40gb@0", "3g.40gb@4"]
    assert mouse.clicks <= 3


def test_someone_with_a_slow_run_has_it_watched(opened, qtbot, mouse):
    watched = []
    watch = lambda *asked: watched.append(asked)  # noqa: E731
    window = opened(plan=None, core=fakes.core(watch=watch))
    mouse.click(place(window, "diagnose"))
    mouse.click(window.screen_named("diagnose").watch)
    qtbot.waitUntil(lambda: bool(watched))
    assert mouse.clicks <= 2


def test_an_owner_of_four_gpus_compares_them_with_one(opened, qtbot, mouse):
    window = opened()
    mouse.click(place(window, "plan"))
    mouse.click(place(window, "compare"))
    compare = window.screen_named("compare")
    mouse.click(compare.keep)
    mouse.click(place(window, "plan"))
    window.screen_named("plan").form._choose_count(4)  # types 4 into the field: no click
    qtbot.waitUntil(lambda: settled(window))
    mouse.click(place(window, "compare"))
    qtbot.waitUntil(lambda: compare.table is not None)
    gpus = next(row for row in compare.table.texts() if row[0] == tr("ui.key.gpu"))
    assert gpus[1].startswith("4 ×")
    assert gpus[2].startswith("1 ×")
    assert mouse.clicks <= 5
