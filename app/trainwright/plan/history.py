"""Undo and redo: a list of plans, each with what made it."""

from dataclasses import dataclass, replace

from trainwright.messages import Message
from trainwright.plan.schema import Plan


@dataclass(frozen=True, slots=True)
class Step:
    """A state of the document."""

    plan: Plan
    label: Message
    """What led to it: the undo command's name."""
    key: str = ""
    """Key that was edited, where successive edits of it may become one step."""


@dataclass(frozen=True, slots=True)
class History:
    """All states of the document since it was opened, and where in them we are."""

    steps: tuple[Step, ...]
    at: int = 0

    @classmethod
    def of(cls, plan: Plan) -> "History":
        """Return the history of a document just opened."""
        return cls((Step(plan, Message.of("plan.opened")),))

    @property
    def plan(self) -> Plan:
        """The document as it stands."""
        return self.steps[self.at].plan

    def pushed(self, plan: Plan, label: Message, *, key: str = "") -> "History":
        """Return the history with a new state; what was undone before is forgotten.

        With a key, an edit right after another of the same key takes its place, so that
        dragging a slider is one step. An edit that changes nothing leaves no step.
        """
        if plan == self.plan:
            return self
        kept = self.steps[: self.at + 1]
        if key and self.at > 0 and key == kept[-1].key:
            kept = kept[:-1]
        return History((*kept, Step(plan, label, key)), len(kept))

    def sealed(self) -> "History":
        """Return the history whose last step takes no further edits: the drag is over."""
        steps = list(self.steps)
        steps[self.at] = replace(steps[self.at], key="")
        return replace(self, steps=tuple(steps))

    @property
    def undo_label(self) -> Message | None:
        """What undo would take back; None where there is nothing."""
        return self.steps[self.at].label if self.at > 0 else None

    @property
    def redo_label(self) -> Message | None:
        """What redo would do again; None where there is nothing."""
        return self.steps[self.at + 1].label if self.at + 1 < len(self.steps) else None

    def undone(self) -> "History":
        """Return the history one state earlier; the same where there is none."""
        return replace(self, at=max(0, self.at - 1))

    def redone(self) -> "History":
        """Return the history one state later; the same where there is none."""
        return replace(self, at=min(len(self.steps) - 1, self.at + 1))
