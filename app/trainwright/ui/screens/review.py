"""Review: what is wrong with another trainer's files, what to change, and the changes as a diff."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from trainwright.advise.advice import what_becomes
from trainwright.messages import Message, UserError
from trainwright.messages.units import gib, percent
from trainwright.plan.report import Verdict
from trainwright.plan.sentences import verdict
from trainwright.quoting import dotted, json_text
from trainwright.review import Review
from trainwright.review import reviewing as reviews
from trainwright.review.apply import write
from trainwright.review.finding import Finding, Removed, Renamed
from trainwright.ui import filedialogs, foreign, tokens
from trainwright.ui.i18n import say, tr
from trainwright.ui.session import Session
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import Hairline, Heading, Label, Scroll, Surface, clear, row
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.difftext import DiffText
from trainwright.ui.widgets.notice import Strip

_TOP = Qt.AlignmentFlag.AlignTop
_LOOKS = {"error": ("x-circle-fill", "no"), "risk": ("warning-fill", "tight")}
_VERDICTS = {
    Verdict.FITS: ("check-circle-fill", "fits"),
    Verdict.TIGHT: ("warning-fill", "tight"),
}
_MOST_LINES = 24
"""Lines of a diff that are shown without scrolling; assumed."""


class ReviewScreen(Scroll):
    """The files stand at the left, what the review says of them at the right."""

    wanted = Signal(str)
    """The place to go to."""
    opened = Signal(list)
    """Paths of files to review."""

    def __init__(self, session: Session) -> None:
        body = QWidget()
        super().__init__(body)
        self._session = session
        self._taken: set[int] = set()
        self._completing = Latest(self)
        self._completing.done.connect(self._completed)
        self._completing.failed.connect(lambda _problem: self._completed(self._found))
        line = QHBoxLayout(body)
        line.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        line.setSpacing(tokens.M)
        self._files = QVBoxLayout()
        self._files.setSpacing(tokens.M)
        self._results = QVBoxLayout()
        self._results.setSpacing(tokens.M)
        line.addLayout(self._files, 2)
        line.addLayout(self._results, 5)
        self._complete = False
        found = session.reviewed
        if isinstance(found, Review):
            self.take(found)
        else:
            self._show()

    @property
    def _found(self) -> Review | None:
        found = self._session.reviewed
        return found if isinstance(found, Review) else None

    def take(self, found: Review) -> None:
        """Show a review at once, and its figures and ways out when they are there."""
        self._session.reviewed = found
        self._taken.clear()
        self._complete = False
        self._show()
        self._completing.submit(partial(foreign.completed, found))

    def _completed(self, found: object) -> None:
        self._session.reviewed = found
        self._complete = True
        self._show()

    def ask_files(self) -> None:
        """Let a person choose the files of one run."""
        if paths := filedialogs.files_to_read(self, tr("ui.review.open"), "*"):
            self.opened.emit(paths)

    # What is shown

    def _show(self) -> None:
        clear(self._files)
        clear(self._results)
        found = self._found
        self._files.addWidget(self._file_card(found))
        self._files.addStretch(1)
        if found is None:
            strip = Strip("file-text", "na")
            strip.label.tell(Message.of("ui.review.nothing-yet"))
            self._results.addWidget(strip)
        else:
            self._show_review(found)
        self._results.addStretch(1)

    def _show_review(self, found: Review) -> None:
        self._results.addWidget(self._verdict(found))
        above = found.undecided or found.wider  # it is the line above all
        others = [one for one in found.findings if not self._complete or one.message != above]
        for level in ("error", "risk"):
            if each := [one for one in others if one.level == level]:
                self._results.addWidget(_findings(level, each))
        offers = reviews.offers(found)
        for level in ("way", "gain"):
            numbered = [(n, one) for n, one in enumerate(offers, 1) if one.level == level]
            if numbered:
                self._results.addWidget(self._offers(level, numbered))
        if found.no_way is not None:
            self._results.addWidget(_sentences("ui.review.ways", [found.no_way]))
        self._show_changes(found)
        if notes := foreign.notes(found):
            self._results.addWidget(_sentences("ui.review.notes", notes))

    def _file_card(self, found: Review | None) -> Surface:
        card = Surface(gap=tokens.M)
        card.column.addWidget(Heading(Message.of("ui.review.files")))
        for source in found.run.sources if found is not None else ():
            name = Path(source.name).name if source.path is not None else source.name
            card.column.addWidget(Label(name, weight=500, wrap=True))
            card.column.addWidget(Label(source.tool, px=tokens.LABEL, colour="text2", wrap=True))
        about = Message.of("ui.review.about")
        card.column.addWidget(Label(about, px=tokens.LABEL, colour="text2", wrap=True))
        self.open = Button(Message.of("ui.review.open"), "secondary", "folder-open")
        self.open.clicked.connect(self.ask_files)
        card.column.addWidget(row(self.open, None))
        if found is not None and found.planned.plan is not None:
            plan = Button(Message.of("ui.review.plan"), "secondary", "sliders-horizontal")
            plan.clicked.connect(lambda: self.wanted.emit("plan"))
            card.column.addWidget(row(plan, None))
        return card

    def _verdict(self, found: Review) -> Strip:
        """Return the line above all: whether it fits, or why nobody knows yet."""
        if not self._complete:
            strip = Strip("info", "na")
            strip.label.tell(Message.of("ui.review.completing"))
        elif found.report is None:
            strip = Strip("info", "na")
            why = found.unestimated or Message.of("review.no-model")
            unnamed = why.id == "review.no-model"
            strip.label.tell(Message.of("ui.review.no-model") if unnamed else why)
        elif found.undecided is not None:
            strip = Strip("warning-fill", "tight")
            strip.label.tell(found.undecided)
        elif found.wider is not None:
            strip = Strip(*_LOOKS["error"])
            strip.label.tell(found.wider)
        else:
            strip = Strip(*_VERDICTS.get(found.report.verdict, _LOOKS["error"]))
            strip.label.tell(verdict(found.report))
        return strip

    def _offers(self, level: str, offers: Sequence[tuple[int, Finding]]) -> Surface:
        card = Surface(gap=tokens.M)
        card.column.addWidget(Heading(Message.of(f"ui.review.{level}s")))
        plan = self._found.planned.plan if self._found is not None else None
        trains = plan is None or plan.workload.trains
        for number, one in offers:
            line = QHBoxLayout()
            line.setSpacing(tokens.M)
            words = QVBoxLayout()
            words.setSpacing(1)
            words.addWidget(Label(one.message, wrap=True))
            words.addWidget(
                Label(_effect(one, trains=trains), px=tokens.LABEL, colour="text2", wrap=True)
            )
            if keys := _keys(one):
                words.addWidget(Label(keys, px=tokens.MICRO, colour="text3", mono=True, wrap=True))
            line.addLayout(words, 1)
            if one.changes:
                line.addWidget(self._take_button(number, one), 0, _TOP)
            card.column.addLayout(line)
        return card

    def _take_button(self, number: int, one: Finding) -> Button:
        name = Message.of("ui.review.take.named", change=one.message)
        button = Button(Message.of("ui.review.take"), "secondary", "check", name=name)
        button.setCheckable(True)
        button.setChecked(number in self._taken)
        button.clicked.connect(partial(self._toggle, number))
        return button

    def _toggle(self, number: int, *_: object) -> None:
        self._taken ^= {number}
        self._show()

    # Changing the files

    def _show_changes(self, found: Review) -> None:
        try:
            taken = reviews.taken(found, sorted(self._taken))
            lines = reviews.diff(found, taken).splitlines()
        except UserError as error:  # a change that touches more than its own line
            self._results.addWidget(_sentences("ui.review.changes", [error.message]))
            return
        if not lines:
            return
        card = Surface(gap=tokens.M)
        card.column.addWidget(Heading(Message.of("ui.review.changes")))
        text = DiffText(Message.of("ui.review.changes"), lines)
        height = text.fontMetrics().lineSpacing() * (min(len(lines), _MOST_LINES) + 2)
        text.setFixedHeight(height)
        card.column.addWidget(text)
        self.write = Button(Message.of("ui.review.write"), "primary", "floppy-disk")
        self.write.clicked.connect(self._write)
        note = Label(Message.of("ui.review.backup"), px=tokens.LABEL, colour="text2", wrap=True)
        line = QHBoxLayout()
        line.addWidget(self.write)
        line.addWidget(note, 1)
        card.column.addLayout(line)
        self._results.addWidget(card)

    def _write(self) -> None:
        """Write the changes, keep copies, and review what is written."""
        found = self._found
        assert found is not None
        try:
            taken = reviews.taken(found, sorted(self._taken))
            written = write(reviews.texts(found, taken))
        except UserError as error:
            self._session.noticed.emit(error.message)
            return
        copies = [copy.name for _, copy in written]
        said = Message.of("ui.review.written", count=len(copies), files=copies)
        self._session.noticed.emit(said)
        paths = dict.fromkeys(one.path for one in found.run.sources if one.path is not None)
        if (again := foreign.read([*paths], self._session.plan)) is not None:
            if (plan := again.planned.plan) is not None:
                self._session.put(plan, Message.of("ui.review.edit"))
            self.take(again)


def _findings(level: str, findings: Sequence[Finding]) -> Surface:
    card = Surface(gap=tokens.S)
    card.column.addWidget(Heading(Message.of(f"cli.review.{level}s", count=len(findings))))
    for one in findings:
        card.column.addWidget(Hairline())
        if one.file:
            where = f"{foreign.where(one)} {one.key}".rstrip()
            card.column.addWidget(
                Label(where, px=tokens.MICRO, colour="text3", mono=True, wrap=True)
            )
        strip = Strip(*_LOOKS[level])
        strip.label.tell(one.message)
        card.column.addWidget(strip)
    return card


def _sentences(heading: str, sentences: Sequence[Message]) -> Surface:
    card = Surface(gap=tokens.S)
    card.column.addWidget(Heading(Message.of(heading)))
    for one in sentences:
        card.column.addWidget(Label(one, px=tokens.LABEL, colour="text2", wrap=True))
    return card


def _effect(one: Finding, *, trains: bool) -> str:
    """Return what an offer does to speed, memory and result."""
    parts = []
    if one.gain is not None:
        parts.append(f"{'+' if one.gain >= 0 else '−'}{percent(abs(one.gain))}")
    if one.memory_bytes:
        parts.append(f"{'+' if one.memory_bytes >= 0 else '−'}{gib(abs(one.memory_bytes))}")
    parts.append(say(what_becomes(one.effect, trains=trains)))
    return " · ".join(parts)


def _keys(one: Finding) -> str:
    """Return what an offer sets, as the files have it."""
    plain = [c for c in one.changes if not isinstance(c.value, (Removed, Renamed))]
    said = [f"{dotted(change.place)}: {json_text(change.value)}" for change in plain]
    return "\n".join([*said, *one.beyond])
