"""Verify: the plan's own step, run here; predicted against measured."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.advise.advice import Relaxation
from trainwright.explain import Quantity
from trainwright.messages import Message, UserError
from trainwright.messages.keys import value_name
from trainwright.messages.units import percent, signed
from trainwright.plan import verifying
from trainwright.plan.trial import SECONDS, STEPS, Limits, Wanted
from trainwright.plan.verified import Outcome, Row, counted, loader_notes, memory_notes, verdict
from trainwright.ui import filedialogs, tokens
from trainwright.ui.figures import figure, span
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.preferences import Preferences
from trainwright.ui.session import Session
from trainwright.ui.tasks import Cancellable
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Hairline, Heading, Label, Painted, Scroll, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Stepper, Switch
from trainwright.ui.widgets.notice import Strip

GIB = 1 << 30
_SIDE = 340
_TOP = 8
"""Operators that are shown."""


class VerifyScreen(QWidget):
    """What will run at the left, what came of it at the right."""

    def __init__(self, session: Session, preferences: Preferences) -> None:
        super().__init__()
        self._session, self._preferences = session, preferences
        self._outcome: Outcome | None = None
        self._problem: Message | None = None
        self._fitting: tuple[Relaxation, ...] = ()
        self._folder: Path | None = None
        self._plan: Any = None
        self._job = Cancellable(self)
        self._job.progressed.connect(self._told)
        self._job.ended.connect(self._ended)
        self._began = 0.0
        self._stage = (0.0, "worker.starting")
        self._clock = QTimer(self, interval=500)
        self._clock.timeout.connect(self._tell)
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        line.addWidget(self._side())
        line.addWidget(self._results(), 1)
        session.edited.connect(self.refresh)
        session.reported.connect(self.refresh)
        self.refresh()

    # What will run

    def _side(self) -> QWidget:
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.XL, tokens.L, tokens.L, tokens.L)
        column.setSpacing(tokens.M)
        column.addWidget(Heading(Message.of("verify.heading")))
        self._about = Label(px=tokens.LABEL, colour="text2", wrap=True)
        column.addWidget(self._about)
        column.addWidget(Hairline())
        self.steps = Stepper(STEPS, name=Message.of("verify.steps"), high=10_000)
        minutes = Message.of("verify.minutes")
        self.minutes = Stepper(
            int(SECONDS // 60),
            name=Message.of("verify.time-limit"),
            unit=minutes,
            high=1440,
        )
        self.memory = Stepper(
            0,
            name=Message.of("verify.memory-limit"),
            unit="GiB",
            low=0,
            high=65_536,
            absent=Message.of("verify.memory-free"),
        )
        self.trace = Switch(
            False,
            name=Message.of("verify.record"),
            on=Message.of("verify.record.on"),
            off=Message.of("verify.record.off"),
        )
        for field, name in (
            (self.steps, "steps"),
            (self.minutes, "time-limit"),
            (self.memory, "memory-limit"),
            (self.trace, "record"),
        ):
            label = Label(Message.of(f"verify.{name}"), px=tokens.LABEL, colour="text2")
            label.setBuddy(field)
            column.addWidget(label)
            column.addWidget(field)
        self.start = Button(Message.of("verify.start"), "primary", "play")
        self.start.clicked.connect(self.begin)
        self.cancel = Button(Message.of("verify.cancel"), "secondary", "x")
        self.cancel.clicked.connect(self._job.cancel)
        column.addWidget(self.start)
        column.addWidget(self.cancel)
        self.progress = Progress()
        column.addWidget(self.progress)
        column.addStretch(1)
        side = Surface("right", padding=(0, 0, 1, 0), gap=0)
        side.column.addWidget(Scroll(body))
        side.setFixedWidth(_SIDE)
        return side

    def _results(self) -> Scroll:
        body = QWidget()
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        self._column.setSpacing(tokens.M)
        return Scroll(body)

    def entered(self) -> None:
        """Show what came last, in the present language."""
        self.refresh()

    def refresh(self) -> None:
        """Show the state."""
        if not self.isVisible():
            return
        session, running = self._session, self._job.running
        plan = session.plan
        waits = session.unconsented is not None
        self._about.tell(self._what_runs())
        self.start.setVisible(not running)
        self.cancel.setVisible(running)
        self.progress.setVisible(running)
        self.start.setEnabled(plan is not None and plan.workload.trains and not waits)
        clear(self._column)
        if running:
            self._column.addWidget(Label(Message.of("verify.busy"), colour="text2", wrap=True))
        elif self._problem is not None:
            self._column.addWidget(_strip("warning-fill", "tight", self._problem))
        elif self._outcome is not None:
            self._show(self._outcome)
        else:
            self._column.addWidget(Label(Message.of("verify.empty"), colour="text2", wrap=True))
        self._column.addStretch(1)

    def _what_runs(self) -> Message:
        plan, settings = self._session.plan, self._session.settings
        if plan is not None and not plan.workload.trains:
            return Message.of("verify.only-training")
        if self._session.unconsented is not None:
            return Message.of("verify.consent")
        if settings is None:
            return Message.of("verify.what-plain")
        return Message.of(
            "verify.what",
            micro=settings.micro_batch,
            steps=settings.accumulation,
            precision=settings.precision,
            optimizer=value_name("optimizer", settings.optimizer),
        )

    # The run

    def begin(self) -> None:
        """Run the plan as it stands."""
        plan = self._session.plan
        if plan is None or self._job.running:
            return
        if self.trace.isChecked() and not self._ask_folder():
            return
        wanted = Wanted(
            steps=self.steps.value(),
            limits=Limits(
                seconds=60.0 * self.minutes.value(),
                memory_bytes=self.memory.value() * GIB or None,
            ),
            folder=str(self._folder) if self.trace.isChecked() else None,
        )
        self._plan, self._outcome, self._problem = plan, None, None
        self._began, self._stage = time.monotonic(), (0.0, "worker.starting")
        self._job.start(_job(self._session.core, plan, wanted))
        self._clock.start()
        self._tell()
        self.refresh()

    def _ask_folder(self) -> bool:
        start = self._folder or self._preferences.export_folder or Path.home()
        folder = filedialogs.folder(self, tr("verify.record"), start)
        self._folder = folder or self._folder
        return folder is not None

    def _told(self, stage: tuple[float, str]) -> None:
        self._stage = stage
        self._tell()

    def _tell(self) -> None:
        share, stage = self._stage
        seconds = int(time.monotonic() - self._began)
        self.progress.show_share(share, tr("verify.progress", stage=tr(stage), seconds=seconds))

    def _ended(self, result: Any, problem: Message | None) -> None:
        self._clock.stop()
        self._outcome, self._fitting = result if result is not None else (None, ())
        self._problem = problem
        self._job.wait(2)  # the thread has only to return
        self.refresh()

    # What came of it

    def _show(self, outcome: Outcome) -> None:
        if self._plan != self._session.plan:
            stale = _strip("info", "na", Message.of("verify.stale"))
            self._column.addWidget(stale)
        icon, state = ("check-circle-fill", "fits") if outcome.holds else ("x-circle-fill", "no")
        if outcome.ran_out is None and not outcome.holds:
            icon, state = "warning-fill", "tight"
        self._column.addWidget(_strip(icon, state, verdict(outcome)))
        if self._fitting:
            self._column.addWidget(self._plans())
        if outcome.measured is not None:
            self._column.addWidget(self._rows(outcome))
            self._column.addWidget(self._about_run(outcome))
            if outcome.measured.profile:
                self._column.addWidget(self._profile(outcome.measured.profile))
        notes = Surface(gap=6)
        for note in outcome.trial.notes:
            notes.column.addWidget(Label(note, px=tokens.LABEL, colour="text2", wrap=True))
        if outcome.trial.notes:
            self._column.addWidget(notes)

    def _rows(self, outcome: Outcome) -> Surface:
        card = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=tokens.M)
        where = Message.of(
            f"verify.where.{outcome.trial.here.device}",
            name=outcome.trial.here.name or "CPU",
            torch=outcome.trial.here.torch,
        )
        card.column.addWidget(Heading(Message.of("verify.compared"), where))
        for row in outcome.rows:
            card.column.addWidget(Compared(row))
        return card

    def _about_run(self, outcome: Outcome) -> Surface:
        card, measured = Surface(gap=tokens.S), outcome.measured
        assert measured is not None
        counts = counted(outcome, measured)
        card.column.addWidget(Label(counts, px=tokens.LABEL, colour="text2", wrap=True))
        for message in (*memory_notes(measured), *loader_notes(measured)):
            card.column.addWidget(Label(message, px=tokens.LABEL, colour="text2", wrap=True))
        line = QHBoxLayout()
        keep = Button(
            Message.of("verify.keep"), "secondary", "check", tip=Message.of("verify.keep.tip")
        )
        keep.clicked.connect(lambda: self._keep(keep))
        line.addWidget(keep)
        if measured.profile and self._folder is not None:
            show = Button(Message.of("verify.open-trace"), "secondary", "folder-open")
            show.clicked.connect(self._open_folder)
            line.addWidget(show)
        line.addStretch(1)
        card.column.addLayout(line)
        return card

    def _keep(self, button: Button) -> None:
        assert self._outcome is not None
        try:
            self._session.core.keep_correction(self._outcome)
        except UserError as error:
            self._session.noticed.emit(error.message)
            return
        button.setEnabled(False)
        self._session.noticed.emit(Message.of("verify.is-kept"))
        self._session.ask()

    def _open_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._folder)))

    def _plans(self) -> Surface:
        card = Surface(padding=(tokens.L, tokens.M, tokens.M, tokens.M), gap=tokens.S)
        card.column.addWidget(Heading(Message.of("verify.nearest")))
        for relaxation in self._fitting:
            line = QHBoxLayout()
            line.addWidget(Label(relaxation.change, wrap=True), 1)
            name = tr("ui.advise.apply.named", name=say(relaxation.change))
            button = Button(Message.of("ui.advise.apply"), "fix", "check", name=name)
            button.clicked.connect(self._applier(relaxation))
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
            card.column.addLayout(line)
        return card

    def _applier(self, relaxation: Relaxation) -> Callable[[], None]:
        return lambda: self._session.apply_relaxation(relaxation)

    def _profile(self, profile: Any) -> Surface:
        card = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=tokens.S)
        title = Message.of("verify.profile", steps=profile["steps"])
        card.column.addWidget(Heading(title, Message.of("verify.idle", share=profile["idle"])))
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.M)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(0, 1)
        for line, one in enumerate(profile["operators"][:_TOP]):
            grid.addWidget(Label(one["name"], px=tokens.LABEL, mono=True, wrap=True), line, 0)
            grid.addWidget(Bar(one["share"]), line, 1)
        card.column.addLayout(grid)
        card.column.addWidget(Label(Message.of("verify.trace-how"), px=tokens.LABEL,
                                    colour="text2", wrap=True))  # fmt: skip
        command = Label(verifying.NSYS, px=tokens.LABEL, colour="text2", wrap=True, mono=True)
        command.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        card.column.addWidget(Label(Message.of("verify.nsys"), px=tokens.LABEL, colour="text2",
                                    wrap=True))  # fmt: skip
        card.column.addWidget(command)
        return card


def _job(core: Any, plan: Any, wanted: Wanted) -> Callable[[Callable[[Any], None], Event], Any]:
    """Return the work off the window's thread: the run, and what would fit where it did not."""

    def work(
        report: Callable[[Any], None], cancelled: Event
    ) -> tuple[Outcome, tuple[Relaxation, ...]]:
        outcome = core.verify(
            plan, wanted, lambda share, stage: report((share, stage)), cancelled.is_set
        )
        return outcome, core.nearest(outcome)

    return work


def _strip(icon: str, state: str, message: Message) -> Strip:
    strip = Strip(icon, state)
    strip.label.tell(message)
    return strip


class Progress(Painted):
    """A bar with what is being done."""

    def __init__(self) -> None:
        super().__init__(height=44)
        self._share, self._text = 0.0, ""

    def show_share(self, share: float, text: str) -> None:
        """Show how far it is."""
        self._share, self._text = share, text
        self.setAccessibleName(text)
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.write(0, 0, w, 20, self._text, px=tokens.LABEL, colour="text2")
        d.box(0, 26, w, 6, "sunken", radius=3)
        d.box(0, 26, max(6.0, w * min(self._share, 1.0)), 6, "accent", radius=3)


class Bar(Painted):
    """A share as a bar with its percentage."""

    def __init__(self, share: float) -> None:
        super().__init__(percent(share), height=18)
        self._share = share
        self.setFixedWidth(220)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        room = w - 56
        d.box(0, 5, room, 8, "sunken", radius=4)
        d.box(0, 5, max(2.0, room * min(self._share, 1.0)), 8, "accent", radius=4)
        d.write(w - 52, 0, 52, h, percent(self._share), px=tokens.MICRO, colour="text2",
                align="right")  # fmt: skip


class Compared(Painted):
    """One figure: bars of what was predicted, with its interval, and of what was measured."""

    def __init__(self, row: Row) -> None:
        super().__init__(height=74)
        self._row = row
        self._title = tr(f"verify.row.{row.name}")
        because = say(row.because) if row.because is not None else tr("verify.not-read")
        self._texts = [
            str(figure(one)) if one is not None else because
            for one in (row.predicted, row.measured)
        ]
        words = (tr("verify.column.predicted"), tr("verify.column.measured"))
        pairs = zip(words, self._texts, strict=True)
        spoken = ", ".join(f"{word} {text}" for word, text in pairs)
        self.setAccessibleName(f"{self._title}: {spoken}. {self._verdict}")
        if row.predicted is not None and row.predicted.interval is not None:
            interval = row.predicted.interval
            expected = span(interval.low, interval.high, row.predicted.unit)
            self.setToolTip(plain_tip(f"{tr('verify.column.interval')}: {expected}"))

    @property
    def _verdict(self) -> str:
        row = self._row
        if row.difference is None:
            return ""
        id = {True: "verify.row-inside", False: "verify.row-outside", None: "verify.row-plain"}
        return tr(id[row.inside], difference=signed(row.difference))

    def draw(self, d: Drawing, w: int, h: int) -> None:
        row = self._row
        d.write(0, 0, w * 0.6, 20, self._title, weight=600)
        state = {True: "fits", False: "no", None: "text2"}[row.inside]
        d.write(w * 0.4, 0, w * 0.6, 20, self._verdict, px=tokens.LABEL, colour=state,
                align="right")  # fmt: skip
        widest = max(_end(row.predicted), _end(row.measured)) or 1.0
        words = (tr("verify.column.predicted"), tr("verify.column.measured"))
        left = max(tokens.width(word, tokens.LABEL) for word in words) + 14
        right = max(tokens.width(text, tokens.LABEL, 600) for text in self._texts) + 8
        wide = max(40.0, min(w - left - right - 16, w * 0.6))
        for number, one in enumerate((row.predicted, row.measured)):
            y = 24 + 22 * number
            d.write(0, y, left, 20, words[number], px=tokens.LABEL, colour="text2")
            x = left
            if one is not None:
                fill = "accent" if number else "accentLine"
                d.box(left, y + 5, max(2.0, wide * one.value / widest), 10, fill, radius=3)
                if not number and one.interval is not None:
                    low, high = one.interval.low, one.interval.high
                    d.whisker(left + wide * low / widest, left + wide * high / widest, y + 10)
                x = left + wide + 12
            weight, ink = (600, "text") if one is not None else (400, "text3")
            d.write(x, y, w - x, 20, self._texts[number], px=tokens.LABEL,
                    weight=weight, colour=ink)  # fmt: skip


def _end(quantity: Quantity | None) -> float:
    if quantity is None:
        return 0.0
    return max(quantity.value, quantity.interval.high if quantity.interval else 0.0)
