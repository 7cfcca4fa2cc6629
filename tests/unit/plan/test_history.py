"""Undo and redo."""

from trainwright.data import resources
from trainwright.messages import Message
from trainwright.plan import file
from trainwright.plan.edit import with_key
from trainwright.plan.history import History
from trainwright.plan.schema import Plan

START = file.read(resources("examples", "llama-8b-lora.plan.yaml"))


def named(name: str) -> Plan:
    return with_key(START, "name", name)


def edit(text: str) -> Message:
    return Message.of("plan.opened", text=text)


def test_a_document_just_opened_has_nothing_to_undo() -> None:
    history = History.of(START)
    assert history.plan == START
    assert history.undo_label is None
    assert history.redo_label is None
    assert history.undone() == history
    assert history.redone() == history


def test_undo_goes_back_and_redo_forth() -> None:
    history = History.of(START).pushed(named("a"), edit("a")).pushed(named("b"), edit("b"))
    assert history.undo_label == edit("b")
    assert history.undone().plan == named("a")
    assert history.undone().redo_label == edit("b")
    assert history.undone().undone().plan == START
    assert history.undone().undone().redone().redone().plan == named("b")


def test_an_edit_after_undo_forgets_what_was_undone() -> None:
    history = History.of(START).pushed(named("a"), edit("a")).undone()
    history = history.pushed(named("c"), edit("c"))
    assert history.redo_label is None
    assert history.undone().plan == START


def test_dragging_is_one_step() -> None:
    history = History.of(START)
    for name in ("a", "b", "c"):
        history = history.pushed(named(name), edit(name), key="name")
    assert history.plan == named("c")
    assert history.undone().plan == START


def test_edits_of_two_keys_are_two_steps() -> None:
    history = History.of(START).pushed(named("a"), edit("a"), key="name")
    history = history.pushed(with_key(named("a"), "settings.micro_batch", 8), edit("m"), key="m")
    assert history.undone().plan == named("a")


def test_a_drag_that_is_over_takes_no_more_edits() -> None:
    history = History.of(START).pushed(named("a"), edit("a"), key="name").sealed()
    history = history.pushed(named("b"), edit("b"), key="name")
    assert history.undone().plan == named("a")


def test_an_edit_that_changes_nothing_leaves_no_step() -> None:
    history = History.of(START)
    assert history.pushed(START, edit("same")) is history
