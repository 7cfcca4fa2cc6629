"""Advise: the choices of the search with their reasons; the trade of memory and time."""

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from trainwright.advise.advice import Advice, Choice, Reason, Relaxation, what_becomes
from trainwright.messages import Message
from trainwright.messages.keys import key_name, value_name
from trainwright.quoting import json_text
from trainwright.ui import tokens
from trainwright.ui.charts.scatter import Point, Scatter
from trainwright.ui.figures import figure, gib, giga, unit_of_memory
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.screens.searching import SearchStrip
from trainwright.ui.session import Session
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Hairline, Heading, Label, Scroll, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.copying import offer_copies
from trainwright.ui.widgets.notice import Strip
from trainwright.ui.widgets.rank import Rank
from trainwright.ui.widgets.verdict import STATE


class AdviseScreen(Scroll):
    """Asks when it is entered; every Apply is one undoable step."""

    def __init__(self, session: Session) -> None:
        body = QWidget()
        super().__init__(body)
        self._session = session
        line = QHBoxLayout(body)
        line.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        line.setSpacing(tokens.M)
        self._list = QVBoxLayout()
        self._list.setSpacing(tokens.M)
        left = QVBoxLayout()
        left.setSpacing(tokens.M)
        left.addWidget(SearchStrip(session))
        left.addLayout(self._list, 1)
        line.addLayout(left, 3)
        line.addLayout(self._right_side(), 2)
        session.advised.connect(self.refresh)
        session.reported.connect(self._ask_if_shown)
        self.refresh()

    def _right_side(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(tokens.M)
        card = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.S))
        self._chart_title = Heading(Message.of("ui.chart.choices"))
        card.column.addWidget(self._chart_title)
        self.scatter = Scatter()
        self.scatter.setFixedHeight(320)
        offer_copies(self.scatter, self.scatter.rows)
        card.column.addWidget(self.scatter)
        column.addWidget(card)
        self._chart = card
        self._notes = Surface(gap=6)
        column.addWidget(self._notes)
        column.addStretch(1)
        return column

    def entered(self) -> None:
        """Search, where the answer is not at hand yet."""
        self._session.ask_advice()
        self.refresh()

    def _ask_if_shown(self) -> None:
        session = self._session
        if self.isVisible() and session.report is not None and session.advice_problem is None:
            session.ask_advice()

    def refresh(self) -> None:
        """Show the advice, or what keeps it."""
        session = self._session
        if not self.isVisible():
            return
        clear(self._list)
        advice = session.advice
        self._chart.setVisible(advice is not None and bool(advice.pareto))
        self._notes.setVisible(advice is not None and bool(advice.other_notes))
        if session.advice_problem is not None:
            waits = session.advice_problem.id in ("ui.advise.cancelled", "ui.advise.trace-first")
            strip = Strip("info", "na") if waits else Strip("warning-fill", "no")
            strip.label.tell(session.advice_problem)
            strip.offer(Button(Message.of("ui.advise.again"), small=True), "again")
            strip.answered.connect(lambda _: session.ask_advice())
            self._list.addWidget(strip)
        elif advice is not None:
            self._show_advice(advice)
        self._list.addStretch(1)

    def _show_advice(self, advice: Advice) -> None:
        for message in advice.first_notes:
            strip = Strip("info", "na")
            strip.label.tell(message)
            self._list.addWidget(strip)
        if advice.choices:
            note = tr("ui.advise.considered", count=advice.considered)
            timed = advice.choices[0].estimate.time.refusal is None
            title = Message.of(f"ui.advise.heading{'' if timed else '.by-memory'}")
            self._list.addWidget(Heading(title, note))
            for rank, choice in enumerate(advice.choices, start=1):
                card = ChoiceCard(rank, choice, self._is_plan(choice))
                card.applied.connect(self._session.apply_choice)
                self._list.addWidget(card)
        else:
            self._show_relaxations(advice)
        self._show_chart(advice)
        clear(self._notes.column)
        if advice.other_notes:
            self._notes.column.addWidget(Heading(Message.of("ui.advise.notes")))
        for message in advice.other_notes:
            self._notes.column.addWidget(Label(message, px=tokens.LABEL, colour="text2", wrap=True))

    def _show_relaxations(self, advice: Advice) -> None:
        strip = Strip("x-circle-fill", "no")
        if short := advice.short_by_bytes:
            strip.label.tell(Message.of("ui.advise.short-by", short=short))
        else:
            strip.label.tell(Message.of("ui.fit.nothing"))
        self._list.addWidget(strip)
        if advice.nothing_fits:
            self._list.addWidget(Heading(Message.of("ui.advise.relax")))
        for relaxation in advice.nothing_fits:
            card = Surface(padding=(tokens.L, tokens.M, tokens.M, tokens.M))
            line = QHBoxLayout()
            line.addLayout(_told(relaxation), 1)
            name = tr("ui.advise.apply.named", name=say(relaxation.change))
            button = Button(Message.of("ui.advise.apply"), "secondary", "check", name=name)
            button.clicked.connect(self._relaxer(relaxation))
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
            card.column.addLayout(line)
            self._list.addWidget(card)

    def _relaxer(self, relaxation: Any) -> Any:
        def relax() -> None:
            self._session.apply_relaxation(relaxation)

        return relax

    def _is_plan(self, choice: Choice) -> bool:
        report = self._session.report
        return report is not None and report.settings == choice.settings

    def _show_chart(self, advice: Advice) -> None:
        report = self._session.report
        step = report.time.step_seconds if report is not None else None
        if report is None or step is None or not advice.pareto:
            return
        served = report.serving is not None
        self._chart_title.annotate(tr(f"ui.chart.choices.{'round' if served else 'note'}"))
        points = [
            Point(
                p.allocated_bytes / giga(),
                p.step_seconds,
                brief(p.settings, served=served),
                p.fits,
                best=True,
            )
            for p in advice.pareto
        ]
        yours = Point(
            report.memory.allocated_peak.value / giga(), step.value,
            tr("ui.chart.yours"), report.fits, yours=True,
        )  # fmt: skip
        different = {(f"{p.memory_gib:.2f}", f"{p.seconds:.3g}") for p in (*points, yours)}
        self._chart.setVisible(len(different) > 1)  # a single point trades nothing
        outside = report.memory.device_used.value - report.memory.reserved_peak.value
        limit = (report.memory.device_total.value - outside) / giga()
        self.scatter.show_points([*points, yours], limit)


def _told(way: Relaxation) -> QVBoxLayout:
    """Return what a way out is, what it costs, and everything that it changes."""
    column = QVBoxLayout()
    column.setSpacing(3)
    column.addWidget(Label(way.change, weight=600, wrap=True))
    effect, speed = say(what_becomes(way.effect, trains=way.plan.workload.trains)), ""
    if way.estimate is not None and way.estimate.time.samples_per_second is not None:
        speed = str(figure(way.estimate.time.samples_per_second))
    cost = " · ".join(text for text in (effect, speed) if text)
    column.addWidget(Label(cost, px=tokens.LABEL, colour="text2", wrap=True))
    if way.caution is not None:
        column.addWidget(Label(way.caution, px=tokens.LABEL, colour="text2", wrap=True))
    changes = [f"{key} = {json_text(value)}" for key, value in way.changes.items()]
    if changes:
        text = "\n".join(changes)
        column.addWidget(Label(text, px=tokens.MICRO, colour="text3", mono=True, wrap=True))
    return column


def brief(settings: Any, *, served: bool = False) -> str:
    """Return settings in a few words, for a point of the chart."""
    if served:  # which has no batch of its own, and recomputes nothing
        return tr("ui.advise.title.served", precision=settings.precision, engine=settings.engine)
    return tr(
        "ui.advise.title",
        precision=settings.precision,
        micro=settings.micro_batch,
        steps=settings.accumulation,
        checkpointing=value_name("checkpointing", settings.checkpointing),
    )


class ChoiceCard(Surface):
    """One choice: its figures, its settings, and why each has its value."""

    applied = Signal(object)

    def __init__(self, rank: int, choice: Choice, is_plan: bool) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.M, tokens.M), gap=tokens.S)
        self._choice = choice
        head = QHBoxLayout()
        head.setSpacing(tokens.M)
        served = choice.estimate.serving is not None
        title = brief(choice.settings, served=served)
        head.addWidget(Rank(rank, STATE[choice.estimate.verdict]))
        names = QVBoxLayout()
        names.setSpacing(1)
        names.addWidget(Label(title, px=tokens.SECTION, weight=600))
        effect = say(what_becomes(choice.effect, trains=not served))
        figures = f"{self._figures()} · {effect}" if choice.effect else self._figures()
        names.addWidget(Label(figures, px=tokens.LABEL, colour="text2", wrap=True))
        head.addLayout(names, 1)
        head.addWidget(self._button(rank, title, is_plan), 0, Qt.AlignmentFlag.AlignTop)
        self.column.addLayout(head)
        self.column.addWidget(Hairline())
        self.column.addLayout(self._reasons(rank == 1))

    def _button(self, rank: int, title: str, is_plan: bool) -> Button:
        kind: Any = "fix" if rank == 1 else "secondary"
        name = tr("ui.advise.apply.named", name=title)
        text = Message.of("ui.advise.applied" if is_plan else "ui.advise.apply")
        button = Button(text, kind, "check", name=name)
        button.setEnabled(not is_plan)
        button.clicked.connect(lambda: self.applied.emit(self._choice))
        return button

    def _figures(self) -> str:
        report = self._choice.estimate
        memory = {
            "used": str(figure(report.memory.device_used)),
            "total": gib(report.memory.device_total.value),
            "unit": unit_of_memory(),
        }
        step, speed = report.time.step_seconds, report.time.samples_per_second
        if step is None or speed is None:
            return tr("ui.advise.figures.untimed", **memory)
        id = "ui.advise.figures" if report.serving is None else "ui.advise.figures.served"
        return tr(id, speed=str(figure(speed)), step=str(figure(step)), **memory)

    def _reasons(self, all_of_them: bool) -> QGridLayout:
        grid = QGridLayout()
        grid.setContentsMargins(0, 2, 0, 0)
        grid.setHorizontalSpacing(tokens.M)
        grid.setVerticalSpacing(7)
        grid.setColumnStretch(2, 1)
        shown = self._choice.reasons if all_of_them else self._choice.reasons[:3]
        for line, reason in enumerate(shown):
            name = Label(_name(reason), px=tokens.LABEL, colour="text2")
            value = Label(_value(reason), px=tokens.LABEL, weight=600)
            top = Qt.AlignmentFlag.AlignTop
            grid.addWidget(name, line, 0, top)
            grid.addWidget(value, line, 1, top)
            grid.addWidget(self._because(reason), line, 2, top)
        return grid

    def _because(self, reason: Reason) -> QWidget:
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(Label(reason.because, px=tokens.LABEL, wrap=True))
        more = say(reason.flips) if reason.flips is not None else ""
        if more:
            column.addWidget(Label(more, px=tokens.MICRO, colour="text3", wrap=True))
        estimated = reason.source == "estimate"
        holder.setToolTip(plain_tip(tr("ui.kind.estimated") if estimated else reason.source))
        return holder


def _name(reason: Reason) -> Text:
    return key_name(reason.setting) or reason.setting


def _value(reason: Reason) -> Text:
    value = value_name(reason.setting, reason.value)
    return value if isinstance(value, Message) else str(value)
