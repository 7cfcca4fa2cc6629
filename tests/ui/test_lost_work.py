"""Nothing is lost: what is unsaved is asked about, kept through a crash, and never overwritten."""

import os
from pathlib import Path
from typing import Any

import fakes
import pytest
from PySide6.QtCore import QEvent, QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication
from walk import overlapping, spin

from trainwright.messages import LANGUAGES, Message
from trainwright.mig import drawings
from trainwright.plan import file, recovery
from trainwright.ui import draft, i18n
from trainwright.ui.draft import Draft
from trainwright.ui.widgets.questiondialog import QuestionDialog, difference

BATCH = "workload.effective_batch"


def edited(window: Any, batch: int = 48) -> Any:
    window.session.set_key(BATCH, batch)
    return window.session.plan


def drop(window: Any, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    window.dropEvent(QDropEvent(
        QPointF(500, 400), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    ))  # fmt: skip


def other(tmp_path: Path) -> Path:
    path = tmp_path / "other.plan.yaml"
    file.write(file.read(fakes.EXAMPLE).model_copy(update={"name": "other"}), path)
    return path


WAYS = {
    "file": lambda window, path: window.open_path(path),
    "recent": lambda window, path: window.start_with("file", path),
    "example": lambda window, path: window.start_with("example", fakes.EXAMPLE),
    "drop": drop,
    "new": lambda window, path: window.start_with("new", None),
    "this computer": lambda window, path: window.start_with("local", None),
    "close": lambda window, path: window.close(),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_unsaved_plan_stays_until_a_person_lets_it_go(opened, answers, tmp_path, way):
    window = opened()
    mine = edited(window)
    answers["edits"] = ""
    WAYS[way](window, other(tmp_path))
    assert answers["asked"] == ["edits"]
    assert window.session.plan == mine
    assert window.session.undo_label is not None
    assert window.isVisible()

    answers["edits"], answers["to"] = "save", None  # the file dialog is cancelled
    window.session.draft.path = None
    WAYS[way](window, other(tmp_path))
    assert answers["asked"] == ["edits", "edits", "to"]
    assert window.session.plan == mine
    assert window.isVisible()

    answers["to"] = tmp_path / "mine.plan.yaml"
    WAYS[way](window, other(tmp_path))
    assert file.read(answers["to"]).workload.effective_batch == 48
    assert window.session.plan != mine or not window.isVisible()
    assert list(recovery.folder().glob("*.plan.yaml")) == []


def test_nobody_is_asked_about_what_is_saved_or_was_never_touched(opened, answers, tmp_path):
    window = opened(plan=None)
    for what, value in (("new", None), ("example", fakes.EXAMPLE), ("file", other(tmp_path))):
        window.start_with(what, value)
    window.session.set_key(BATCH, 48)
    window.session.undo()
    window.start_with("new", None)
    assert answers["asked"] == []


def test_discarding_lets_the_copy_go_and_only_that_of_this_plan(opened, answers, tmp_path):
    one, two = opened(), opened()
    edited(one)
    kept = edited(two, 32)
    for window in (one, two):
        window.session.draft.keep()
    one.open_path(other(tmp_path))
    assert answers["asked"] == ["edits"]
    (copy,) = recovery.folder().glob("*.plan.yaml")
    assert file.read(copy).workload == kept.workload


def test_a_file_that_cannot_be_opened_asks_nothing(opened, answers, tmp_path):
    window = opened()
    mine = edited(window)
    window.open_path(fakes.file_in(tmp_path, "trainwright: 1\nmodel: 5\n"))
    assert (window.session.plan, answers["asked"]) == (mine, [])


def test_a_save_that_fails_keeps_the_plan_and_the_window(opened, answers, tmp_path, monkeypatch):
    window = opened()
    mine = edited(window)
    answers["edits"], answers["to"] = "save", tmp_path / "gone" / "a.plan.yaml"
    window.session.draft.path = None
    window.close()
    assert window.isVisible()
    assert window.session.plan == mine
    assert "cannot be written" in window.notice.text


# A crash


def crash(window: Any) -> None:
    """Let go of the copies' locks, as the end of a program does."""
    for one in (window.session.draft, window.session.board):
        one._stop()
        one._copy.release()


def test_edits_are_kept_at_least_every_second_however_fast_they_come(opened):
    window = opened()
    for batch in range(1, 6):
        edited(window, batch)
        spin(400)
    (copy,) = recovery.folder().glob("*.plan.yaml")
    assert file.read(copy).workload.effective_batch in (4, 5)


def test_the_first_edit_is_kept_at_once(opened, qtbot, monkeypatch):
    monkeypatch.setattr(draft, "_REST_S", 60)  # of the second
    window = opened()
    edited(window, 32)
    qtbot.waitUntil(lambda: list(recovery.folder().glob("*.plan.yaml")) != [])
    (copy,) = recovery.folder().glob("*.plan.yaml")
    assert file.read(copy).workload.effective_batch == 32


def test_an_unsaved_plan_is_offered_again_and_its_copy_lives_until_it_is_saved(
    opened, answers, tmp_path
):
    window = opened()
    path = other(tmp_path)
    window.open_path(path)
    mine = edited(window)
    window.session.draft.keep()
    crash(window)
    again = opened(plan=None)
    start = again.screen_named("start")
    start._offer_recovery()
    assert [one.document for one in start._recovered] == [mine]
    start._recovery_answered("restore 0")
    assert again.session.plan == mine
    assert again.session.path == path
    (copy,) = recovery.folder().glob("*.plan.yaml")
    start._offer_recovery()
    assert start._recovered == []  # it is open here
    assert again.filing.save_plan()
    assert not copy.exists()


def test_a_restored_plan_does_not_overwrite_a_file_that_changed_since(opened, answers, tmp_path):
    window = opened()
    path = other(tmp_path)
    window.open_path(path)
    edited(window)
    window.session.draft.keep()
    crash(window)
    path.write_text(path.read_text().replace("name: other", "name: theirs"))
    again = opened(plan=None)
    start = again.screen_named("start")
    start._offer_recovery()
    start._recovery_answered("restore 0")
    answers["changed"] = ""
    again.save()
    assert answers["asked"] == ["changed"]
    assert file.read(path).name == "theirs"


def test_a_folder_that_cannot_be_written_is_said_once(opened, tmp_path, monkeypatch):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    monkeypatch.setenv("TRAINWRIGHT_STATE", str(in_the_way))
    window = opened()
    said = []
    window.session.warned.connect(said.append)
    for batch in range(1, 4):
        edited(window, batch)
        spin(600)
    assert [message.id for message in said] == ["recovery.unwritable"]
    assert str(in_the_way) in window.notice.text  # an edit does not take it back


# Somebody else's changes


def changed(path: Path, name: str = "theirs") -> None:
    path.write_text(path.read_text().replace("name: other", f"name: {name}"))


def focus(window: Any) -> None:
    window.filing.look_at_files()


def test_a_file_that_an_editor_changed_is_reloaded_and_undo_brings_mine_back(
    opened, answers, tmp_path
):
    window = opened(plan=other(tmp_path))
    path = window.session.path
    mine = edited(window)
    changed(path)
    answers["changed"] = "reload"
    focus(window)
    focus(window)
    assert answers["asked"] == ["changed"]
    assert window.session.plan.name == "theirs"
    assert not window.session.unsaved
    window.session.undo()
    assert window.session.plan == mine


def test_mine_is_kept_until_it_is_saved_on_purpose(opened, answers, tmp_path):
    window = opened(plan=other(tmp_path))
    path = window.session.path
    changed(path)
    answers["changed"] = "keep"
    focus(window)
    assert (window.session.plan.name, window.session.unsaved) == ("other", True)
    focus(window)
    assert answers["asked"] == ["changed"]
    window.save()
    assert file.read(path).name == "other"


def test_save_asks_again_about_a_change_that_nobody_answered(opened, answers, tmp_path):
    window = opened(plan=other(tmp_path))
    changed(window.session.path)
    answers["changed"] = ""
    focus(window)
    focus(window)
    assert (answers["asked"], window.session.unsaved) == (["changed"], True)
    window.save()
    assert answers["asked"] == ["changed", "changed"]
    assert file.read(window.session.path).name == "theirs"


def test_a_file_that_is_no_models_configuration_changes_nothing(opened, tmp_path):
    window = opened()
    before = window.session.plan
    (tmp_path / "photos.json").write_text("[1,2")
    for path in (tmp_path / "photos.json", tmp_path / "none.json", tmp_path):
        window.open_path(path)
    assert (window.session.plan, window.session.unsaved) == (before, False)


@pytest.mark.parametrize("answer", ["", "reload", "overwrite"])
def test_save_asks_before_it_overwrites_what_a_second_window_saved(
    opened, answers, tmp_path, answer
):
    path = other(tmp_path)
    one, two = opened(plan=path), opened(plan=path)
    edited(one, 32)
    one.save()
    edited(two, 48)
    answers["changed"] = answer
    two.save()
    assert answers["asked"] == ["changed"]
    assert file.read(path).workload.effective_batch == (48 if answer == "overwrite" else 32)
    assert two.session.plan.workload.effective_batch == (32 if answer == "reload" else 48)


def test_a_deleted_file_is_said_and_the_plan_counts_as_unsaved(opened, answers, tmp_path):
    window = opened(plan=other(tmp_path))
    path = window.session.path
    path.unlink()
    focus(window)
    assert str(path) in window.notice.text
    assert window.session.unsaved
    window.save()
    assert file.read(path).name == "other"


def test_touching_a_file_or_saving_it_here_is_no_change(opened, answers, tmp_path):
    window = opened(plan=other(tmp_path))
    os.utime(window.session.path, (1, 1))
    focus(window)
    edited(window)
    window.save()
    focus(window)
    assert answers["asked"] == []


def test_coming_back_to_the_window_looks_at_the_file(opened, answers, tmp_path, qtbot, monkeypatch):
    window = opened(plan=other(tmp_path))
    changed(window.session.path)
    monkeypatch.setattr(window, "isActiveWindow", lambda: True)
    QApplication.sendEvent(window, QEvent(QEvent.Type.ActivationChange))
    qtbot.waitUntil(lambda: answers["asked"] == ["changed"])


# MIG boards


def drawn(window: Any) -> Any:
    screen = window.screen_named("mig")
    screen._choose_gpu("a100-40gb-pcie")
    screen._add("3g.20gb", 4)
    screen.jobs.rows[0][0].setText("학습 “A”\n")
    screen.jobs.rows[0][1].setText("1,5")
    screen.jobs._typed()
    return screen


def test_a_mig_board_is_asked_about_saved_and_opened_again(opened, answers, tmp_path):
    window = opened(plan=None)
    window.screen_named("mig")
    screen = drawn(window)
    board = window.session.board.value
    answers["edits"] = ""
    window.close()
    assert window.isVisible()
    answers["to"] = tmp_path / "lab.mig.yaml"
    window.save()
    assert not window.session.board.unsaved
    screen.empty.click()
    assert window.session.board.unsaved
    answers["edits"] = "discard"
    window.open_path(answers["to"])
    assert window.session.board.value == board == drawings.read(answers["to"])
    assert [each.shown for each in screen.sketch.layout] == ["3g.20gb@4"]
    assert screen.jobs.rows[0][1].text() == "1,5"
    assert not window.session.board.unsaved
    window.start_with("example", fakes.EXAMPLE)  # another plan leaves the board
    assert [each.shown for each in screen.sketch.layout] == ["3g.20gb@4"]


def test_a_crash_leaves_the_mig_board_with_its_jobs(opened):
    window = opened(plan=None)
    drawn(window)
    board = window.session.board.value
    spin(700)
    crash(window)
    again = opened(plan=None)
    start = again.screen_named("start")
    start._offer_recovery()
    start._recovery_answered("restore 0")
    assert again.place == "mig"
    assert again.session.board.value == board
    assert again.session.board.unsaved
    assert [each.shown for each in again._screens["mig"].sketch.layout] == ["3g.20gb@4"]


def test_a_mig_file_that_somebody_else_changed_is_not_overwritten(opened, answers, tmp_path):
    window = opened(plan=None)
    screen = drawn(window)
    path = answers["to"] = tmp_path / "lab.mig.yaml"
    window.save()
    theirs = path.read_text(encoding="utf-8").replace("start: 4", "start: 0")
    path.write_text(theirs, encoding="utf-8")
    screen.empty.click()
    answers["changed"] = ""
    window.save()
    assert path.read_text(encoding="utf-8") == theirs
    answers["changed"] = "reload"
    focus(window)
    assert answers["asked"] == ["to", "changed", "changed"]
    assert [each.shown for each in screen.sketch.layout] == ["3g.20gb@0"]
    assert not window.session.board.unsaved


@pytest.mark.parametrize(
    "text",
    [
        "trainwright_mig: 2\n",
        "trainwright_mig: 1\ngpu: rtx-4090\nboards: {}\n",
        "trainwright_mig: 1\ngpu: a100-40gb-pcie\n"
        "boards: {a100-40gb-pcie: [[{profile: 3g.20gb, start: 1}]]}\n",
        "jobs: []\n",
    ],
)
def test_a_mig_file_that_cannot_be_laid_out_changes_nothing(opened, tmp_path, text):
    window = opened(plan=None)
    drawn(window)
    before = window.session.board.value
    window.open_path(fakes.file_in(tmp_path, text, "bad.mig.yaml"))
    assert window.notice.text.count("\n") == 0
    assert window.session.board.value == before


# The dialogs themselves


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_dialog_answers_compares_and_closing_it_is_no_answer(qtbot, language):
    i18n.use(language)

    dialog = QuestionDialog(
        None, Message.of("ui.ask.changed", file="a"), Message.of("ui.ask.board")
    )
    qtbot.addWidget(dialog)
    dialog.offer(("keep", "reload"), "reload")
    dialog.offer_to_compare("a: 1\nb: 2\n", lambda: "a: 1\nb: 3\n")
    dialog.show()
    dialog.buttons["compare"].click()
    shown = dialog.shown.toPlainText().splitlines()
    spin(50)
    assert list(overlapping(dialog)) == []
    assert dialog.shown.width() >= 700
    assert dialog.buttons["keep"].geometry().top() > dialog.shown.geometry().bottom()
    assert [line for line in shown if line[:1] in "+-" and line[1:2] == "b"] == ["-b: 2", "+b: 3"]
    dialog.reject()
    assert dialog.answer == ""
    dialog.show()
    dialog.buttons["keep"].click()
    assert dialog.answer == "keep"
    assert difference("a", "a") == []
    i18n.use("en")


def test_a_draft_that_is_back_where_it_was_saved_has_no_copy(qtbot):
    one: Draft[str] = Draft(lambda text, _: text, ".txt")
    one.open("a", None, saved=True)
    one.changed("b")
    one.keep()
    assert len(list(recovery.folder().glob("*.txt"))) == 1
    one.changed("a")
    assert list(recovery.folder().iterdir()) == []
