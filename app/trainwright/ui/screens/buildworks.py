"""Other plans whose work the same PC must do: each with its number of runs."""

from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QGridLayout, QWidget

from trainwright.messages import Message
from trainwright.plan.schema import PlannedWork
from trainwright.ui import asking, tokens
from trainwright.ui.i18n import tr
from trainwright.ui.session import Session
from trainwright.ui.widgets.base import Label, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Stepper

MOST = 8
"""Plans, as ``limits.also`` takes them."""


class OtherWork(QWidget):
    """A line for each plan, and a button that adds one; every control writes ``limits.also``."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._works: tuple[PlannedWork, ...] | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(tokens.S)
        self._grid.setVerticalSpacing(tokens.XS)
        self.times: list[Stepper] = []
        self.plans: list[Button] = []

    def show_works(self, works: tuple[PlannedWork, ...]) -> None:
        """Show other plans."""
        before, self._works = self._works, works
        if before is None or [one.plan for one in before] != [one.plan for one in works]:
            self._lay_out(works)
        for stepper, work in zip(self.times, works, strict=True):
            stepper.show_value(round(work.times))

    def _lay_out(self, works: tuple[PlannedWork, ...]) -> None:
        clear(self._grid)
        self._grid.addWidget(Label(Message.of("pc.work.also"), px=tokens.LABEL, colour="text2"))
        self.times = [self._stepper(work) for work in works]
        self.plans = [self._button(work) for work in works]
        for line, (button, stepper) in enumerate(zip(self.plans, self.times, strict=True)):
            self._grid.addWidget(button, line, 1)
            self._grid.addWidget(stepper, line, 2)
        self.add = Button(Message.of("pc.work.add"), "ghost", "plus", small=True)
        self.add.clicked.connect(self._add)
        self.add.setEnabled(len(works) < MOST)
        self._grid.addWidget(self.add, len(works), 1)
        self._grid.setColumnStretch(3, 1)

    def _stepper(self, work: PlannedWork) -> Stepper:
        name = tr("pc.work.times", name=named(work.plan))
        stepper = Stepper(1, name=name, unit="×", low=0, high=1000,
                          absent=Message.of("pc.work.fits"))  # fmt: skip
        stepper.setProperty("plan", work.plan)
        stepper.setMinimumWidth(148)
        stepper.chosen.connect(self._weigh)
        return stepper

    def _button(self, work: PlannedWork) -> Button:
        name = named(work.plan)
        button = Button(name, "secondary", "x", small=True, name=tr("pc.work.out", name=name))
        button.setProperty("plan", work.plan)
        button.clicked.connect(self._take_out)
        return button

    def _add(self) -> None:
        path = asking.plan_to_add(self)
        if path is not None and str(path) not in {one.plan for one in self._works or ()}:
            added = Message.of("pc.work.added", name=named(str(path)))
            self._put([*self._entries(), {"plan": str(path)}], added)

    def _take_out(self) -> None:
        gone = self.sender().property("plan")
        left = [entry for entry in self._entries() if entry["plan"] != gone]
        self._put(left, Message.of("pc.work.removed", name=named(gone)))

    def _weigh(self, times: int) -> None:
        path = self.sender().property("plan")
        entries = [
            entry | ({"times": times} if entry["plan"] == path else {}) for entry in self._entries()
        ]
        name = Message.of("pc.work.times", name=named(path))
        self._put(entries, Message.of("ui.edit.set", name=name, value=times), f"also {path}")

    def _entries(self) -> list[dict[str, Any]]:
        return [one.model_dump() for one in self._works or ()]

    def _put(self, entries: list[dict[str, Any]], label: Message, key: str = "") -> None:
        self._session.set_keys({"limits.also": entries or None}, key=key, label=label)


def named(path: str) -> str:
    """Return what a plan's file is called."""
    return Path(path).name.removesuffix(".plan.yaml")
