"""The tour of a first run: five marks, by keyboard too, never over a dialog, once."""

import pytest
import walk
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from trainwright.messages import LANGUAGES
from trainwright.ui import touring
from trainwright.ui.widgets.questiondialog import QuestionDialog
from trainwright.ui.widgets.tour import Tour


def tours(window):
    return [each for each in window.findChildren(Tour) if each.isVisible()]


def marked(tour):
    return tour._marks[tour._at].name


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("size", [(1024, 640), (1440, 900)])
def test_each_mark_has_a_whole_sentence_that_does_not_hide_it(opened, preferences, language, size):
    preferences.language = language
    window = opened(plan=None)
    window.resize(*size)
    walk.spin(50)
    window.actions_by_id["tour"].trigger()
    (tour,) = tours(window)
    seen = []
    while True:
        walk.spin(20)
        seen.append(marked(tour))
        labels = [each for each in tour.card.findChildren(QLabel) if each.isVisible()]
        assert not [problem for label in labels for problem in walk.clipped(label)]
        assert tour.rect().contains(tour.card.geometry())
        if seen[-1] != "figures":  # the whole screen, in which the card lies
            assert not tour.card.geometry().intersects(tour._marked())
        if tour.done.isVisible():
            break
        tour.next.click()
    assert seen == ["places", "figures", "search", "fit", "export"]
    tour.done.click()
    assert tours(window) == []


def test_the_keyboard_goes_on_back_and_out_and_stays_on_the_card(opened, qtbot):
    window = opened(plan=None)
    window.actions_by_id["tour"].trigger()
    (tour,) = tours(window)
    right, left, space = Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Space
    for key, name in ((right, "figures"), (space, "search"), (left, "figures")):
        QTest.keyClick(window.focusWidget(), key)
        assert marked(tour) == name
    focused = set()
    for _ in range(6):
        QTest.keyClick(window.focusWidget(), Qt.Key.Key_Tab)
        focused.add(window.focusWidget())
    assert focused == {tour.skip, tour.back, tour.next}
    QTest.keyClick(tour.back, Qt.Key.Key_Escape)
    assert tours(window) == []


def test_it_begins_by_itself_once_and_never_while_a_dialog_is_open(opened, preferences):
    window = opened(plan=None)
    window.actions_by_id["about"].trigger()
    touring.show_once(window)
    assert tours(window) == []
    window.findChild(QuestionDialog).accept()
    walk.spin(20)
    touring.show_once(window)
    (tour,) = tours(window)
    tour.skip.click()
    touring.show_once(window)
    assert tours(window) == []


def test_a_dialog_ends_it_and_another_language_takes_it_away(opened):
    window = opened(plan=None)
    touring.show(window)
    window.actions_by_id["about"].trigger()
    walk.spin(50)
    assert tours(window) == []
    assert touring.show(window) is None  # the dialog is still there
    window.findChild(QuestionDialog).accept()
    walk.spin(50)
    touring.show(window)
    assert len(tours(window)) == 1
    window.actions_by_id["language"].trigger()
    walk.spin(50)
    assert tours(window) == []
