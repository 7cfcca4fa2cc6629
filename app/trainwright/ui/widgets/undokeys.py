"""The keys that undo and redo, for places with a history of their own."""

from PySide6.QtCore import Qt
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
