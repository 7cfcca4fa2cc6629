"""Plan, the home of the application: settings, answer, and where the answer comes from."""

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.ui import tokens
from trainwright.ui.charts.memory import MemoryChart
from trainwright.ui.charts.roofline import FamilyKeys, RooflineChart
from trainwright.ui.charts.scaling import ScalingChart
from trainwright.ui.charts.stages import StageBars
from trainwright.ui.charts.waterfall import Waterfall
from trainwright.ui.explain_pane import ExplainPane
from trainwright.ui.figures import unit_of_memory
from trainwright.ui.i18n import say, tr
from trainwright.ui.screens.planform import PlanForm
from trainwright.ui.screens.searching import SearchStrip
from trainwright.ui.session import Session
from trainwright.ui.widgets.base import Heading, Label, Scroll, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.cards import WhatIfCards
from trainwright.ui.widgets.copying import memory_rows, offer_copies, operator_rows, time_rows
from trainwright.ui.widgets.figurestrip import FigureStrip
from trainwright.ui.widgets.notice import Strip
from trainwright.ui.widgets.servingcard import ServingCard
from trainwright.ui.widgets.verdict import VerdictCard


class PlanScreen(QWidget):
    """Settings left, answer in the middle, derivation right."""

    explained = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self.form = PlanForm(session)
        self.pane = ExplainPane(session)
        self.verdict = VerdictCard()
        self.figures = FigureStrip()
        self.serving = ServingCard()
        self.memory = MemoryChart()
        self.waterfall = Waterfall()
        self.stages = StageBars()
        self.scaling = ScalingChart()
        self.whatifs = WhatIfCards(lambda: session.plan)
        self._trace = self._trace_strip()
        self._problem = Strip("warning-fill", "no")
        self.consent = self._consent_strip()
        self._memory_heading = Heading(Message.of("ui.chart.memory"))
        self._time_heading = Heading(Message.of("ui.chart.time"))
        self.roofline = RooflineChart()
        self.families = FamilyKeys()
        self._operators_heading = Heading(
            Message.of("ui.chart.roofline"), Message.of("ui.chart.roofline.note")
        )
        self._notes = Surface(gap=6)
        self._asked = False
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        line.addWidget(self.form)
        self._scroll = self._middle()
        line.addWidget(self._scroll, 1)
        self._line = line
        self.pane.setParent(self)
        sources = (self.verdict, self.figures, self.waterfall, self.roofline, self.families)
        for source in sources:
            source.opened.connect(self._open)
        shown: QWidget
        for shown in (self.verdict, self.memory):
            offer_copies(shown, lambda: memory_rows(session.report))
        for shown in (self.figures, self.waterfall):
            offer_copies(shown, lambda: time_rows(session.report))
        offer_copies(self.stages, self.stages.rows)
        offer_copies(self.scaling, self.scaling.rows)
        offer_copies(self.roofline, lambda: operator_rows(session.roofs))
        self.whatifs.applied.connect(session.apply_whatif)
        session.reported.connect(self.refresh)
        session.whatifs_found.connect(self._show_whatifs)
        session.edited.connect(self.whatifs.compare)
        self.refresh()
        self._show_whatifs()

    def _trace_strip(self) -> Strip:
        strip = Strip("spinner-gap", "na")
        cancel = Button(Message.of("ui.trace.cancel"), small=True)
        strip.offer(cancel, "cancel")
        strip.answered.connect(lambda _: self._session.cancel_trace())
        return strip

    def _consent_strip(self) -> Strip:
        strip = Strip("warning-fill")
        strip.offer(Button(Message.of("ui.code.run"), "fix", small=True), "run")
        strip.answered.connect(lambda _: self._session.allow_code())
        return strip

    def _middle(self) -> Scroll:
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.L, tokens.L, tokens.S, tokens.L)
        column.setSpacing(10)
        memory = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.S), gap=4)
        memory.column.addWidget(self._memory_heading)
        memory.column.addWidget(self.memory, 1)
        time = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.S), gap=6)
        time.column.addWidget(self._time_heading)
        time.column.addWidget(self.waterfall)
        stages = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=6)
        self._stages_heading = Heading(Message.of("ui.chart.stages"))
        stages.column.addWidget(self._stages_heading)
        stages.column.addWidget(self.stages)
        scaling = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.S), gap=6)
        scaling.column.addWidget(
            Heading(Message.of("ui.chart.scaling"), Message.of("ui.chart.scaling.note"))
        )
        scaling.column.addWidget(self.scaling)
        operators = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=6)
        operators.column.addWidget(self._operators_heading)
        operators.column.addWidget(self.roofline)
        operators.column.addWidget(self.families)
        search = SearchStrip(self._session)
        shown = (self._trace, self.consent, search, self._problem, self.verdict, self.figures)
        for widget in shown:
            column.addWidget(widget)
        column.addWidget(self.serving)
        column.addWidget(self.whatifs)
        column.addWidget(memory, 1)
        column.addWidget(stages)
        column.addWidget(time)
        column.addWidget(scaling)
        column.addWidget(operators)
        column.addWidget(self._notes)
        column.addStretch(0)
        scroll = Scroll(body)
        scroll.fitted.connect(self._fit)
        self._memory_chart, self._time_chart, self._scaling_chart = memory, time, scaling
        self._operators, self._stage_bars = operators, stages
        return scroll

    # What is shown

    def refresh(self) -> None:
        """Show the session's answer, or why there is none."""
        session = self._session
        self._trace.setVisible(session.tracing is not None)
        if session.tracing is not None:
            stage = Message.of(session.tracing.stage) if session.tracing.stage else ""
            done = round(session.tracing.fraction * 100)
            self._trace.label.tell(Message.of("ui.trace.running", percent=done, stage=stage))
        self.consent.setVisible(session.unconsented is not None)
        if session.unconsented is not None:
            self.consent.label.tell(Message.of("ui.code.needed", file=session.unconsented))
        self._problem.setVisible(session.problem is not None)
        if session.problem is not None:
            self._problem.label.tell(session.problem)
        report = session.report
        self._memory_chart.setVisible(report is not None)
        self._time_chart.setVisible(report is not None and report.time.refusal is None)
        self._show_stages(report)
        self._show_scaling(report)
        self.figures.show_report(report, session.roofs, trains=_trains(session.plan))
        self.serving.show_report(report)
        self.memory.show_report(report)
        self.waterfall.show_report(report)
        self._show_operators()
        if report is None:
            self._show_blank()
        else:
            self._show_report(report)

    def _show_stages(self, report: Report | None) -> None:
        """Show what each pipeline stage needs; nothing without a pipeline."""
        self._stage_bars.setVisible(report is not None and bool(report.stages))
        self._stages_heading.annotate(tr("ui.chart.stages.note", unit=unit_of_memory()))
        self.stages.show_report(report)

    def _show_scaling(self, report: Report | None) -> None:
        """Show the curve of a plan with several GPUs; of one, a sentence tells of a second."""
        plan, points = self._session.plan, report.time.scaling if report is not None else ()
        several = plan is not None and plan.machine.gpu_count > 1
        self._scaling_chart.setVisible(several and len(points) > 1)
        self.scaling.show_points(points)

    def _show_operators(self) -> None:
        roofs = self._session.roofs
        self._operators.setVisible(roofs is not None and bool(roofs.points))
        self.roofline.show_roofs(roofs)
        self.families.show_roofs(roofs)

    def _show_blank(self) -> None:
        session = self._session
        self._notes.hide()
        self.whatifs.hide()
        if session.tracing is not None:
            reason = Message.of("ui.trace.why")
            self.verdict.show_blank(Message.of("ui.verdict.tracing"), reason)
        elif session.problem is not None or session.unconsented is not None:
            reason = Message.of("ui.verdict.see-above")
            self.verdict.show_blank(Message.of("ui.verdict.cannot-check"), reason)
        else:
            self.verdict.show_blank(Message.of("ui.verdict.working"), "")

    def _show_report(self, report: Report) -> None:
        plan = self._session.plan
        assert plan is not None
        gpus = plan.machine.gpu_count or 1
        self.verdict.show_report(report, gpus, provisional=self._session.provisional)
        micro = report.settings.micro_batch
        serving = "" if plan.workload.trains else ".infer"
        self._memory_heading.entitle(Message.of(f"ui.chart.memory{serving}"))
        self._memory_heading.annotate(
            tr(f"ui.chart.memory.note{serving}", unit=unit_of_memory(), micro=micro)
        )
        self._time_heading.entitle(Message.of(f"ui.chart.time{serving}"))
        limiting = self.waterfall.limiting
        note = ""
        if limiting is not None:
            lane, stage = limiting
            note = tr(f"ui.chart.time.note{serving}", lane=lane, stage=stage)
        self._time_heading.annotate(note)
        self._show_notes(report)

    def _fit(self) -> None:
        """Make room for what the form and the middle need."""
        self.updateGeometry()
        self._place_pane()

    def _show_notes(self, report: Report) -> None:
        texts = [say(note) for note in report.notes]
        if texts == getattr(self, "_said", None):
            self._notes.setVisible(bool(texts))
            return
        self._said = texts
        clear(self._notes.column)
        self._notes.setVisible(bool(texts))
        if texts:
            self._notes.column.addWidget(Heading(Message.of("ui.notes.heading")))
        for text in texts:
            self._notes.column.addWidget(Label(text, px=tokens.LABEL, colour="text2", wrap=True))

    def _show_whatifs(self) -> None:
        found = self._session.whatifs
        self.whatifs.show_whatifs(found)
        self.whatifs.setVisible(bool(found) and self._session.report is not None)

    # Explain

    def _open(self, address: str) -> None:
        self._asked = True
        self._session.explain(address)
        self._place_pane()

    def explain(self) -> None:
        """Open the pane for what the keyboard is at, or move into it."""
        self._asked = True
        self._place_pane()
        self.pane.focus_tree()

    def close_pane(self) -> None:
        """Put an overlaid pane away."""
        self._asked = False
        self._place_pane()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_pane()

    def minimumSizeHint(self) -> QSize:
        return QSize(self.form.width() + self._scroll.minimumWidth(), 420)

    def _place_pane(self) -> None:
        """Dock the pane where there is room beside the figures; else lay it over them."""
        wide = self.pane.minimumWidth()
        docked = self.width() >= self.minimumSizeHint().width() + wide
        self._line.setContentsMargins(0, 0, wide if docked else 0, 0)
        self.pane.setGeometry(self.width() - wide, 0, wide, self.height())
        self.pane.setVisible(docked or self._asked)
        self.pane.raise_()


def _trains(plan: Plan | None) -> bool:
    return plan is None or plan.workload.trains
