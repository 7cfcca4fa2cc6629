"""Cards of a diagnosis: the verdict with its evidence and fixes, other causes, what was unseen."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout

from trainwright.diagnose.deciding import Deciding
from trainwright.diagnose.memory_remedies import Help
from trainwright.diagnose.outofmemory import Explanation
from trainwright.diagnose.outofmemory.timeline import Timeline
from trainwright.diagnose.verdict import (
    Cause,
    Diagnosis,
    Fix,
    RuledOut,
    Unseen,
    Verdict,
    shown,
)
from trainwright.diagnose.verdict import Signal as Sign
from trainwright.messages import Message
from trainwright.ui import tokens
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.paint import STATE_ICON, Drawing
from trainwright.ui.widgets.base import Hairline, Heading, Label, Painted, Surface, row
from trainwright.ui.widgets.buttons import Button, ButtonKind

_TOP = Qt.AlignmentFlag.AlignTop
_STATES = {Cause.NONE: "fits", Cause.UNKNOWN: "na"}
"""How causes look; all others are something to put right."""
Apply = Callable[[object], None]
_ACCOUNT = ("asked", "free", "total", "process", "allocated", "unused", "others", "allowed")


class VerdictCard(Surface):
    """The main cause: how sure, what it stands on, what there is to gain, what to do."""

    applied = Signal(object)

    def __init__(self, diagnosis: Diagnosis, *, can_apply: bool) -> None:
        super().__init__(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        verdict = self.verdict = diagnosis.first
        self.column.addLayout(_head(verdict))
        self.column.addWidget(Label(verdict.says, px=tokens.SECTION, wrap=True))
        if verdict.gain is not None and verdict.faster is not None:
            gain = Message.of("diagnose.gain", share=verdict.gain, faster=verdict.faster)
            self.column.addWidget(Label(gain, colour="text2", wrap=True))
        if diagnosis.reliability is not None:
            before = diagnosis.reliability.says
            self.column.addWidget(Label(before, px=tokens.LABEL, colour="text3", wrap=True))
        if verdict.signals:
            self.column.addWidget(Hairline())
            self.column.addWidget(Heading(Message.of("diagnose.evidence")))
            self.column.addLayout(signal_table(verdict.signals))
        if verdict.against:
            self.column.addWidget(Heading(Message.of("diagnose.against")))
            self.column.addLayout(signal_table(verdict.against))
        if verdict.fixes:
            self.column.addWidget(Hairline())
            self.column.addWidget(Heading(Message.of("diagnose.what-to-do")))
            _add_fixes(self, verdict.fixes, can_apply, self.applied.emit)


def _head(verdict: Verdict) -> QHBoxLayout:
    state = _STATES.get(verdict.cause, "no")
    line = QHBoxLayout()
    line.setSpacing(tokens.S)
    line.addWidget(_Mark(state), 0, _TOP)
    line.addWidget(Label(verdict.title, px=tokens.TITLE, weight=600, wrap=True), 1)
    if verdict.cause is not Cause.UNKNOWN:
        line.addWidget(Label(verdict.sure, px=tokens.LABEL, weight=500, colour="text2"), 0, _TOP)
    return line


class _Mark(Painted):
    """The state of a verdict, as an icon; the title beside it says it."""

    def __init__(self, state: str) -> None:
        super().__init__(height=22)
        self._state = state
        self.setFixedWidth(22)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.icon(STATE_ICON[self._state], 0, 1, 20, f"{self._state}Fill")


def signal_table(signals: Sequence[Sign]) -> QGridLayout:
    """Return rows of what was seen, its value, its limit, and who says so."""
    grid = QGridLayout()
    grid.setHorizontalSpacing(tokens.L)
    grid.setVerticalSpacing(7)
    for column, stretch in enumerate((4, 0, 2, 2, 5)):
        grid.setColumnStretch(column, stretch)
    headings = ("seen", "value", "limit", "from", "source")
    for column, name in enumerate(headings):
        heading = Label(Message.of(f"diagnose.heading.{name}"), px=tokens.MICRO, colour="text3",
                        wrap=True)  # fmt: skip
        grid.addWidget(heading, 0, column, _TOP)
    for line, signal in enumerate(signals, start=1):
        limit: Text = signal.held_against or "–"
        cells: tuple[tuple[Text, int, str], ...] = (
            (signal.name, 400, "text"),
            (signal.shown, 600, "text"),
            (limit, 400, "text2"),
            (signal.origin, 400, "text2"),
            (signal.sourced, 400, "text3"),
        )
        for column, (text, weight, colour) in enumerate(cells):
            cell = Label(text, px=tokens.LABEL, weight=weight, colour=colour, wrap=column != 1)
            grid.addWidget(cell, line, column, _TOP)
    return grid


def _add_fixes(card: Surface, fixes: Sequence[Fix], can_apply: bool, apply: Apply) -> None:
    """Add a line for each fix; the first one that the plan can take stands out."""
    first = next((fix for fix in fixes if fix.patch), None)
    for fix in fixes:
        card.column.addLayout(_fix_line(fix, fix is first, can_apply, apply))


def _fix_line(fix: Fix, first: bool, can_apply: bool, apply: Apply) -> QHBoxLayout:
    """Return a fix with what it sets, and the button that applies it."""
    line = QHBoxLayout()
    line.setSpacing(tokens.M)
    words = QVBoxLayout()
    words.setSpacing(1)
    words.addWidget(Label(fix.says, wrap=True))
    if fix.patch:
        changes = ", ".join(f"{key} = {_plain(value)}" for key, value in fix.patch.items())
        words.addWidget(Label(changes, px=tokens.MICRO, colour="text3", mono=True, wrap=True))
    line.addLayout(words, 1)
    if fix.patch:
        name = tr("ui.advise.apply.named", name=say(fix.says))
        tip: Text = "" if can_apply else Message.of("ui.diagnose.no-plan")
        kind: ButtonKind = "fix" if first and can_apply else "secondary"
        button = Button(Message.of("ui.advise.apply"), kind, "check", name=name, tip=tip)
        button.setEnabled(can_apply)
        button.clicked.connect(partial(_call, apply, fix))
        line.addWidget(button, 0, _TOP)
    return line


def _call(apply: Apply, fix: Fix, *_: object) -> None:
    apply(fix)


def _plain(value: object) -> str:
    if value is None:
        return tr("ui.diagnose.freed")
    return str(value).lower() if isinstance(value, bool) else str(value)


class OthersCard(Surface):
    """What holds as well, or is suspected."""

    applied = Signal(object)

    def __init__(self, diagnosis: Diagnosis, *, can_apply: bool) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L), gap=tokens.S)
        heading = "diagnose.suspected" if diagnosis.undecided else "diagnose.also"
        self.column.addWidget(Heading(Message.of(heading)))
        for verdict in diagnosis.verdicts[1:]:
            self.column.addWidget(Hairline())
            self.column.addLayout(_head(verdict))
            self.column.addWidget(Label(verdict.says, colour="text2", wrap=True))
            self.column.addLayout(signal_table(verdict.signals))
            for fix in verdict.fixes[:1]:
                self.column.addLayout(_fix_line(fix, False, can_apply, self.applied.emit))


class DecidingCard(Surface):
    """The trial that tells the two likeliest causes apart, and what its outcomes say."""

    def __init__(self, trial: Deciding) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L))
        self.column.addWidget(Heading(Message.of("diagnose.deciding")))
        self.column.addWidget(Label(trial.how, wrap=True))
        self.column.addWidget(Label(trial.outcome, colour="text2", wrap=True))


class RuledOutCard(Surface):
    """Causes that it is not, or that too little speaks for, each with why."""

    def __init__(self, ruled_out: Sequence[RuledOut], heading: Message) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L))
        self.column.addWidget(Heading(heading))
        rows = [(Message.of(f"diagnose.cause.{each.cause}"), each.because) for each in ruled_out]
        self.column.addLayout(_pairs(rows))


class UnseenCard(Surface):
    """What could not be looked at, why, and how to see it next time."""

    def __init__(self, unseen: Sequence[Unseen]) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L))
        self.column.addWidget(Heading(Message.of("diagnose.unseen")))
        rows = []
        for each in unseen:
            because = each.because
            if each.remedy is not None:
                because = Message.of("diagnose.pair", name=because, value=each.remedy)
            rows.append((each.what, because))
        self.column.addLayout(_pairs(rows))


def _pairs(rows: Sequence[tuple[Message, Message]]) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(tokens.L)
    grid.setVerticalSpacing(6)
    grid.setColumnStretch(0, 2)
    grid.setColumnStretch(1, 5)
    for line, (name, value) in enumerate(rows):
        grid.addWidget(Label(name, px=tokens.LABEL, weight=500, wrap=True), line, 0, _TOP)
        grid.addWidget(Label(value, px=tokens.LABEL, colour="text2", wrap=True), line, 1, _TOP)
    return grid


class _Curve(Painted):
    """What was allocated over the recorded time, as columns; the text above says the peak."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline.says, height=56)
        self._heights = [each / max(1, timeline.peak_bytes) for each in timeline.curve]

    def draw(self, d: Drawing, w: int, h: int) -> None:
        wide = w / len(self._heights)
        for at, each in enumerate(self._heights):
            d.box(at * wide, h - each * h, max(1.0, wide - 1), each * h, "accent", radius=0)


class ErrorCard(Surface):
    """An out-of-memory error: what it says, the account, and what would help."""

    applied = Signal(object)
    again = Signal()
    """The plan has changed, and a person wants the remedies for the one that is open now."""

    def __init__(
        self, explanation: Explanation, found: Help | None, *, can_apply: bool, changed: bool
    ) -> None:
        """``found`` is None while remedies are evaluated; ``changed``: the plan is another now."""
        super().__init__(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        if found is not None and found.differs and not changed:
            self.column.addWidget(Heading(Message.of("diagnose.differs")))
            for message in found.differs:
                self.column.addWidget(Label(message, wrap=True))
            self.column.addWidget(Hairline())
        head = QHBoxLayout()
        head.setSpacing(tokens.S)
        head.addWidget(_Mark("na" if explanation.kind == "none" else "no"), 0, _TOP)
        head.addWidget(Label(explanation.says, px=tokens.SECTION, weight=500, wrap=True), 1)
        self.column.addLayout(head)
        account = [
            (Message.of(f"diagnose.account.{name}"), shown(value, "bytes"))
            for name in _ACCOUNT
            if (value := getattr(explanation.account, name)) is not None
        ]
        if account:
            self.column.addWidget(Hairline())
            self.column.addLayout(_pairs(account))
        if explanation.timeline is not None:
            self._add_timeline(explanation.timeline)
        if found is None:
            self.column.addWidget(Label(Message.of("ui.diagnose.evaluating"), colour="text3"))
        elif changed and found.remedies:
            self._title(found.title)
            self._add_changed()
        else:
            self._add_help(found, can_apply)

    def _title(self, title: Message) -> None:
        self.column.addWidget(Hairline())
        self.column.addWidget(Heading(title))

    def _add_help(self, found: Help, can_apply: bool) -> None:
        if found.fixes:
            self._title(Message.of("diagnose.what-to-do"))
            _add_fixes(self, found.fixes, can_apply, self.applied.emit)
        if found.remedies:
            self._title(found.title)
            fixes = [Fix(one.sentence, one.patch) for one in found.remedies]
            _add_fixes(self, fixes, can_apply, self.applied.emit)
        for name, messages in (("needs", found.needs), ("notes", found.notes)):
            if messages:
                self._title(Message.of(f"diagnose.{name}"))
                for message in messages:
                    self.column.addWidget(Label(message, colour="text2", wrap=True))

    def _add_timeline(self, timeline: Timeline) -> None:
        self._title(Message.of("diagnose.timeline.owners"))
        self.column.addWidget(Label(timeline.says, colour="text2", wrap=True))
        if timeline.events:
            self.column.addWidget(_Curve(timeline))
        self.column.addLayout(
            _pairs(
                [
                    (each.named, Message.of("diagnose.pair", name=shown(each.bytes, "bytes"),
                                            value=each.counted))
                    for each in timeline.owners
                ]
            )
        )  # fmt: skip

    def _add_changed(self) -> None:
        """Say that the remedies were for the plan before, and offer those for this one."""
        told = Message.of("ui.diagnose.changed")
        self.column.addWidget(Label(told, colour="text2", wrap=True))
        button = Button(Message.of("ui.diagnose.again"), "secondary", "question")
        button.clicked.connect(self.again.emit)
        self.column.addWidget(row(button, None))
