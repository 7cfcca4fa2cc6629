"""What a PC to buy must keep to: wishes of the plan, each an edit that can be undone."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.catalog import list_parts
from trainwright.catalog.part_kinds import NAMES
from trainwright.machine.power import CIRCUITS
from trainwright.messages import Message, UserError
from trainwright.plan.schema import Plan
from trainwright.ui import tokens
from trainwright.ui.columns import searched, shown
from trainwright.ui.i18n import tr
from trainwright.ui.options import Option
from trainwright.ui.screens.buildworks import OtherWork
from trainwright.ui.session import Session
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Label, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo, Stepper, Switch
from trainwright.ui.widgets.picker import Popup

FORMS = ("", "mini-itx", "micro-atx", "atx", "e-atx")
Range = tuple[int, int, int]
WATTS: Range = (600, 100, 50)
HOURS: Range = (72, 1, 12)
"""Where a limit begins, its least, and by how much it moves; assumed."""
FOUND = 40
"""Parts that a search lists; assumed, more do not help."""


class Limit(Stepper):
    """At most so much; below the least there is no limit."""

    def __init__(self, name: str, unit: str, range: Range) -> None:
        self._usual, self._least, self._step = range
        super().__init__(0, name=Message.of(name), unit=unit, low=0, high=10_000,
                         absent=Message.of(f"{name}.any"))  # fmt: skip

    def stepBy(self, steps: int) -> None:
        if self.value() == 0:
            self.setValue(self._usual if steps > 0 else 0)
            return
        value = self.value() + steps * self._step
        self.setValue(value if value >= self._least else 0)


class WishRow(QWidget):
    """The controls; every one writes a key below ``limits``."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.used, self.quiet, self.expired = (
            self._switch(key) for key in ("used", "quiet", "expired")
        )
        forms = [(form, _form_name(form)) for form in FORMS]
        self.form = Combo(forms, "", name=Message.of("pc.wish.form"))
        self.form.chosen.connect(self._choose_form)
        circuits = [("", Message.of("pc.wish.circuit.any"))]
        circuits += [(one, Message.of(f"pc.circuit.{one}")) for one in CIRCUITS]
        self.circuit = Combo(circuits, "", name=Message.of("pc.wish.circuit"))
        self.circuit.chosen.connect(self._choose_circuit)
        self.gpus = Stepper(0, name=Message.of("pc.wish.gpus"), unit="GPU", low=0, high=8,
                            absent=Message.of("pc.wish.gpus.any"))  # fmt: skip
        self.gpus.chosen.connect(self._choose_gpus)
        self.power = Limit("pc.wish.power", "W", WATTS)
        self.power.chosen.connect(self._choose_power)
        self.deadline = Limit("pc.wish.deadline", "h", HOURS)
        self.deadline.setToolTip(plain_tip(tr("pc.wish.deadline.tip")))
        self.deadline.chosen.connect(self._choose_deadline)
        self.owned = OwnedParts(session)
        self.works = OtherWork(session)
        self._lay_out()

    def _switch(self, key: str) -> Switch:
        name = Message.of(f"pc.wish.{key}")
        switch = Switch(False, name=name, on=name, off=name)
        switch.setProperty("key", key)
        switch.setToolTip(plain_tip(tr(f"pc.wish.{key}.tip")))
        switch.chosen.connect(self._turn)
        return switch

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.S)
        choices, switches = QHBoxLayout(), QHBoxLayout()
        for line in (choices, switches):
            line.setSpacing(tokens.L)
            column.addLayout(line)
        for choice in (self.form, self.gpus, self.power, self.deadline, self.circuit):
            choice.setMinimumWidth(148)
            choices.addWidget(choice)
        choices.addStretch(1)
        for switch in (self.used, self.quiet, self.expired):
            switches.addWidget(switch)
        switches.addStretch(1)
        column.addWidget(self.owned)
        column.addWidget(self.works)

    def show_plan(self, plan: Plan) -> None:
        """Show a plan's wishes."""
        wishes = plan.limits.wishes
        self.used.show_value(bool(wishes.used))
        self.quiet.show_value(bool(wishes.quiet))
        self.expired.show_value(bool(wishes.expired))
        if self.form.findData(wishes.form or "") < 0:
            self.form.addItem(_form_name(wishes.form or ""), wishes.form)
        self.form.show_value(wishes.form or "")
        self.circuit.show_value(wishes.circuit or "")
        self.gpus.show_value(wishes.gpus or 0)
        self.power.show_value(_whole(plan.limits.power_w))
        self.deadline.show_value(_whole(plan.limits.deadline_h))
        self.owned.show_parts(wishes.owned)
        self.works.show_works(plan.limits.also)

    def _turn(self, on: bool) -> None:
        key = self.sender().property("key")
        said = Message.of("pc.wish.on" if on else "pc.wish.off", name=Message.of(f"pc.wish.{key}"))
        self._session.set_keys({f"limits.wishes.{key}": on or None}, label=said)

    def _choose_form(self, form: str) -> None:
        self._set("form", "wishes.form", form, _form_name(form))

    def _choose_circuit(self, circuit: str) -> None:
        self._set("circuit", "wishes.circuit", circuit, self.circuit.currentText())

    def _choose_gpus(self, count: int) -> None:
        self._set("gpus", "wishes.gpus", count, count or tr("pc.wish.gpus.any"), merge=True)

    def _choose_power(self, watts: int) -> None:
        shown = f"{watts} W" if watts else tr("pc.wish.power.any")
        self._set("power", "power_w", watts, shown, merge=True)

    def _choose_deadline(self, hours: int) -> None:
        shown = f"{hours} h" if hours else tr("pc.wish.deadline.any")
        self._set("deadline", "deadline_h", hours, shown, merge=True)

    def _set(self, name: str, key: str, value: Any, shown: Any, *, merge: bool = False) -> None:
        label = Message.of("ui.edit.set", name=Message.of(f"pc.wish.{name}"), value=shown)
        key = f"limits.{key}"
        self._session.set_keys({key: value or None}, key=key if merge else "", label=label)


class OwnedParts(QWidget):
    """Parts that are there already: a button each that takes it out, and one that adds."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._parts: tuple[str, ...] | None = None
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(tokens.S)
        self._grid.setVerticalSpacing(tokens.XS)
        self.parts: list[Button] = []

    def show_parts(self, parts: tuple[str, ...]) -> None:
        """Show other parts."""
        if parts == self._parts:
            return
        self._parts = parts
        clear(self._grid)
        self._grid.addWidget(Label(Message.of("pc.wish.owned"), px=tokens.LABEL, colour="text2"))
        self.parts = [self._part(text) for text in parts]
        self.add = Button(Message.of("pc.wish.owned.add"), "ghost", "plus", small=True)
        self.add.clicked.connect(self._open)
        for place, button in enumerate((*self.parts, self.add)):
            self._grid.addWidget(button, place // PER_LINE, 1 + place % PER_LINE)
        self._grid.setColumnStretch(PER_LINE + 1, 1)

    def _part(self, text: str) -> Button:
        name = part_text(text)
        button = Button(name, "secondary", "x", small=True, name=tr("pc.wish.owned.out", name=name))
        button.setProperty("part", text)
        button.clicked.connect(self._take_out)
        return button

    def _open(self) -> None:
        popup = Popup(search_parts, tr("pc.wish.owned.add"), tr("pc.wish.owned.hint"), self.add)
        popup.chosen.connect(self._take)
        popup.resize(420, popup.height())
        popup.move(self.add.mapToGlobal(self.add.rect().bottomLeft()))
        popup.show()
        popup.field.setFocus()

    def _take(self, part: str) -> None:
        """Add a part, or one more of it."""
        from trainwright.build.owning import counted

        left, found = [], 0
        for text in self._parts or ():
            count, name = counted(text)
            if name == part:
                found += count
            else:
                left.append(text)
        text = f"{found + 1}x {part}" if found else part
        self._put([*left, text], Message.of("pc.wish.owned.added", name=part_text(part)))

    def _take_out(self) -> None:
        gone = self.sender().property("part")
        left = [text for text in self._parts or () if text != gone]
        self._put(left, Message.of("pc.wish.owned.removed", name=part_text(gone)))

    def _put(self, parts: Sequence[str], label: Message) -> None:
        self._session.set_keys({"limits.wishes.owned": list(parts) or None}, label=label)


PER_LINE = 4
"""Owned parts in a line; assumed, names of this many fit."""


@lru_cache(maxsize=256)
def part_text(text: str) -> str:
    """Return what an owned part is called; its own words where the catalog has no such."""
    from trainwright.build.owning import owned
    from trainwright.catalog import find_part

    try:
        (part,) = owned([text])
    except UserError:
        return text
    name = find_part(part.kind, part.id).name
    return f"{part.count} × {name}" if part.count > 1 else name


@lru_cache(maxsize=1)
def _shelves() -> tuple[tuple[str, Option], ...]:
    """Return every part of the catalog with the words that find it."""
    parts = [(kind, record) for kind in NAMES for record in list_parts(kind)]
    times = Counter(record.id for _, record in parts)
    return tuple(
        (
            searched(one),
            Option(one.id if times[one.id] == 1 else f"{kind}:{one.id}", one.name, kind),
        )
        for kind, one in parts
    )


def search_parts(text: str) -> list[Option]:
    """Return parts of all kinds that hold every word."""
    words = text.casefold().split()
    found = [option for known, option in _shelves() if all(word in known for word in words)]
    return [Option(one.key, one.title, tr(f"pc.one.{one.note}.title")) for one in found[:FOUND]]


def _whole(limit: float | None) -> int:
    """Return a limit in whole units; 0 where there is none."""
    return max(1, round(limit)) if limit is not None else 0


def _form_name(form: str) -> str:
    return shown(form) if form else tr("pc.wish.form.any")
