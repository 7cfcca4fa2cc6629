"""The keys that undo and redo, for places with a history of their own and fields without one."""

from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence


def undoes(event: QKeyEvent) -> bool:
    """Return whether a key undoes, as the system has it."""
    return event.matches(QKeySequence.StandardKey.Undo)


def redoes(event: QKeyEvent) -> bool:
    """Return whether a key does again what was undone; Ctrl+Shift+Z on every system."""
    pressed = event.modifiers() == (
        Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    )
    again = pressed and event.key() == Qt.Key.Key_Z
    return again or event.matches(QKeySequence.StandardKey.Redo)


def left_to_window(event: QEvent, *, typing: bool) -> bool:
    """Return whether a field leaves this key to the window's undo and redo.

    Qt's text fields claim both keys even where they have nothing to undo, by accepting the event
    that asks whether a shortcut may run. A field with text that is not taken yet keeps its own.
    """
    if typing or event.type() != QEvent.Type.ShortcutOverride:
        return False
    assert isinstance(event, QKeyEvent)
    return undoes(event) or redoes(event)
