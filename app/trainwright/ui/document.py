"""The open document: a plan with its history, its file and its recovery copy."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal

from trainwright.messages import Message, UserError
from trainwright.mig import drawings
from trainwright.mig.drawings import Drawing
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.plan.history import History
from trainwright.plan.recovery import Recovered
from trainwright.plan.schema import Plan
from trainwright.ui import plans
from trainwright.ui.draft import Draft


class Document(QObject):
    """Holds the plan and the board of MIG instances, each with what no file holds yet."""

    edited = Signal()
    """The plan is another one."""
    refused = Signal()
    """An edit was not taken: fields show the plan again."""
    noticed = Signal(object)
    """A message that a person should see once."""
    warned = Signal(object)
    """Likewise, and the next edit does not take it back."""

    def __init__(self) -> None:
        super().__init__()
        self.draft: Draft[Plan] = Draft(file.text_of, file.SUFFIX)
        self.draft.warned.connect(self.warned)
        self.board: Draft[Drawing] = Draft(drawings.text_of, drawings.SUFFIX)
        self.board.warned.connect(self.warned)
        self.may_replace: Callable[[], bool] = lambda: True
        """Asks what becomes of unsaved edits before another plan is opened; the window knows how.
        Where nobody is asked they stay in their copy."""
        self._history: History | None = None

    @property
    def plan(self) -> Plan | None:
        """The document as it stands; None before one is opened."""
        return self._history.plan if self._history else None

    @property
    def path(self) -> Path | None:
        """The plan's file; None before it is saved."""
        return self.draft.path

    @property
    def unsaved(self) -> bool:
        """Whether there are edits that no file holds."""
        return self.draft.unsaved

    @property
    def undo_label(self) -> Message | None:
        """What undo would take back."""
        return self._history.undo_label if self._history else None

    @property
    def redo_label(self) -> Message | None:
        """What redo would do again."""
        return self._history.redo_label if self._history else None

    def open_plan(
        self, plan: Plan, path: Path | None, *, saved: bool = True, digest: str = ""
    ) -> bool:
        """Make a plan the document, unless a person keeps the one that is open."""
        if not self.may_replace():
            return False
        self.draft.open(plan, path, saved=saved, digest=digest)
        self._begin(plan)
        return True

    def restore(self, recovered: Recovered[Plan]) -> bool:
        """Go on with an unsaved plan that a crash left."""
        if not self.may_replace():
            return False
        if not self.draft.restore(recovered):
            self.noticed.emit(Message.of("recovery.taken"))
            return False
        self._begin(recovered.document)
        return True

    def _begin(self, plan: Plan) -> None:
        self._take(History.of(plan))

    def save(self, path: Path) -> bool:
        """Write the plan to a file; returns whether it could be written."""
        if self.plan is None:
            return False
        try:
            written = file.write(plans.named_after(self.plan, self.path, path), path)
        except UserError as error:
            self.noticed.emit(error.message)
            return False
        assert self._history is not None
        steps = list(self._history.steps)
        steps[self._history.at] = replace(steps[self._history.at], plan=written)
        self._history = History(tuple(steps), self._history.at)
        self.draft.written(written, path.absolute())
        self.edited.emit()
        return True

    def reload(self) -> bool:
        """Take what the plan's file holds now; undo brings back what was here."""
        path = self.path
        if path is None or self._history is None:
            return False
        try:
            plan = file.read(path)
        except UserError as error:
            self.noticed.emit(error.message)
            return False
        self.draft.written(plan, path)
        self._take(self._history.pushed(plan, Message.of("ui.edit.reloaded")))
        return True

    def set_key(self, key: str, value: Any, *, merge: bool = False) -> None:
        """Set one dotted key of the plan; None frees it. Successive edits may merge."""
        self.set_keys({key: value}, key=key if merge else "")

    def set_keys(
        self, values: dict[str, Any], *, key: str = "", label: Message | None = None
    ) -> None:
        """Set several dotted keys at once; ``label`` is what undo calls it."""
        if self.plan is None:
            return
        try:
            plan = with_keys(self.plan, values)
        except UserError as error:
            self.noticed.emit(error.message)
            self.refused.emit()
            return
        name, value = next(iter(values.items()))
        self.put(plan, label or plans.edit_label(name, value), key=key)

    def put(self, plan: Plan, label: Message, *, key: str = "") -> None:
        """Make a plan the next state of the document."""
        if self._history is None or plan == self.plan:
            return
        self._take(self._history.pushed(plan, label, key=key))

    def undo(self) -> None:
        """Go one state back."""
        if self._history is not None and self._history.undo_label is not None:
            self._take(self._history.undone())

    def redo(self) -> None:
        """Go one state forth."""
        if self._history is not None and self._history.redo_label is not None:
            self._take(self._history.redone())

    def _take(self, history: History) -> None:
        self._history = history
        self.draft.changed(history.plan)
        self.edited.emit()

    def keep(self) -> None:
        """Bring the recovery copies up to date."""
        self.draft.keep()
        self.board.keep()

    def close(self) -> None:
        """Let go of the files; what is unsaved stays in its recovery copy."""
        self.draft.close()
        self.board.close()
