"""What undo and redo do at a place that has steps of its own, instead of the plan's."""

from collections.abc import Callable
from dataclasses import dataclass

from trainwright.messages import Message


@dataclass(frozen=True, slots=True)
class History:
    """The steps as they stand; a session has the same four names."""

    undo_label: Message | None
    """What would be undone; None where there is nothing."""
    redo_label: Message | None
    undo: Callable[[], object]
    redo: Callable[[], object]
