"""The plan's machine: its parts, slots and lanes, power, price, and what the rules say."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPaintEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from trainwright.machine.choice import MachineChoice
from trainwright.machine.parts import (
    from_machine,
    with_count,
    with_owned,
    without_part,
)
from trainwright.messages import Message
from trainwright.prices import Total
from trainwright.ui import tokens
from trainwright.ui.charts import lanes
from trainwright.ui.charts.lanes import LaneDrawing
from trainwright.ui.charts.powerbar import PowerBar
from trainwright.ui.figures import figure
from trainwright.ui.i18n import tr
from trainwright.ui.inspection import STATES, Inspection, PartRow, inspect
from trainwright.ui.money import currency_of, lead, missing_note, total_note, total_text
from trainwright.ui.names import rented_name
from trainwright.ui.paint import STATE_ICON, Drawing
from trainwright.ui.partstaken import put_part
from trainwright.ui.session import Session
from trainwright.ui.tasks import Latest
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Hairline, Heading, Label, Scroll, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.checklist import CheckList
from trainwright.ui.widgets.copying import offer_copies
from trainwright.ui.widgets.notice import Strip
from trainwright.ui.widgets.partrows import RowWidget
from trainwright.ui.widgets.sides import Sides
from trainwright.ui.widgets.slider import Slider

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
LEAST_LIMIT = 0.4
"""Of a card's power: the lowest limit that the slider offers. Assumed: most drivers' own."""


class MachineScreen(Scroll):
    """A view of the plan's machine; every change is one undoable step."""

    wanted = Signal(str)
    """A place that somebody wants to go to."""

    def __init__(self, session: Session) -> None:
        body = QWidget()
        super().__init__(body)
        self._session = session
        self.inspection: Inspection | None = None
        self._looking = Latest(self)
        self._looking.done.connect(self._show)
        self._looking.failed.connect(self._not_looked)
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        column.setSpacing(tokens.M)
        self._says = QVBoxLayout()
        column.addLayout(self._says)
        self._verdict = VerdictLine()
        self._verdict.hide()
        column.addWidget(self._verdict)
        self._body_of_parts = Sides(self._left_side(), self._right_side())
        self._body_of_parts.hide()
        column.addWidget(self._body_of_parts)
        column.addStretch(1)
        session.edited.connect(self.refresh)
        session.reported.connect(self._show_rate)

    def _left_side(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(tokens.M)
        card = Surface(padding=(tokens.L, tokens.M, tokens.S, tokens.M), gap=0)
        self._heading = Heading(Message.of("pc.machine.parts"))
        card.column.addWidget(self._heading)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        card.column.addLayout(self._rows)
        line = QHBoxLayout()
        line.setContentsMargins(0, tokens.S, 0, 0)
        line.setSpacing(tokens.S)
        find = Button(Message.of("ui.place.build"), "primary", "shopping-cart")
        find.clicked.connect(self._find)
        browse = Button(Message.of("pc.machine.browse"), "secondary", "books")
        browse.clicked.connect(self._browse)
        line.addWidget(find)
        line.addWidget(browse)
        line.addStretch(1)
        card.column.addLayout(line)
        column.addWidget(card)
        self.checks = CheckList()
        self.checks.limited.connect(self._limit)
        column.addWidget(self.checks)
        column.addStretch(1)
        return column

    def _right_side(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(tokens.M)
        self.lanes = LaneDrawing()
        offer_copies(self.lanes, lambda: lanes.rows(self.inspection) if self.inspection else [])
        column.addWidget(self.lanes)
        card = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M))
        self._power_heading = Heading(Message.of("pc.power.title"), Message.of("pc.power.note"))
        card.column.addWidget(self._power_heading)
        self.power = PowerBar()
        offer_copies(self.power, self.power.rows)
        card.column.addWidget(self.power)
        self._power_note = Label(px=tokens.LABEL, colour="text2", wrap=True)
        card.column.addWidget(self._power_note)
        card.column.addWidget(Hairline())
        line = QHBoxLayout()
        line.setSpacing(tokens.M)
        name = Message.of("pc.power.limit")
        line.addWidget(Label(name, px=tokens.LABEL, colour="text2"))
        self.limit = Slider(0, 100, 100, name=name, step=5)
        self.limit.valueChanged.connect(self._slid)
        line.addWidget(self.limit, 1)
        self._limit_text = Label(px=tokens.LABEL, weight=600)
        line.addWidget(self._limit_text)
        card.column.addLayout(line)
        self._rate = Label(px=tokens.LABEL, colour="text2", wrap=True)
        card.column.addWidget(self._rate)
        column.addWidget(card)
        column.addStretch(1)
        return column

    # What is shown

    def showEvent(self, event: QShowEvent) -> None:
        """Look at the plan's machine; prices may be others by now."""
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Look at the machine again, off the UI thread."""
        plan = self._session.plan
        if plan is None or not self.isVisible():
            return
        self._offer_parts(plan.machine)
        if not plan.machine.fixed:
            currency = currency_of(plan)
            self._looking.submit(lambda: inspect(plan, currency))

    def _offer_parts(self, machine: MachineChoice) -> None:
        """Where the plan is for this computer, offer to take its parts over; say what is rented."""
        clear(self._says)
        known = self.inspection is not None and not machine.fixed
        self._verdict.setVisible(known)
        self._body_of_parts.setVisible(known)
        if not known and not machine.fixed:
            self._says.addWidget(Label(Message.of("pc.machine.looking"), colour="text2"))
        if machine.cloud:
            name, facts = rented_name(machine.cloud)
            strip = Strip("desktop-tower", "na")
            strip.label.tell(Message.of("pc.machine.cloud", name=name, facts=facts))
            self._says.addWidget(strip)
        if machine.local:
            strip = Strip("desktop-tower", "na")
            strip.label.tell(Message.of("pc.machine.local"))
            strip.offer(Button(Message.of("pc.machine.take-over"), "primary", small=True), "take")
            strip.answered.connect(self._take_over)
            self._says.addWidget(strip)

    def _take_over(self, _answer: str) -> None:
        facts = self._session.facts
        if facts is None:
            self._session.noticed.emit(Message.of("pc.machine.not-probed"))
        else:
            self._put(from_machine(facts.machine), Message.of("pc.edit.take-over"))

    def _not_looked(self, problem: Message) -> None:
        clear(self._says)
        strip = Strip("warning-fill", "no")
        strip.label.tell(problem)
        self._says.addWidget(strip)

    def _show(self, inspection: Inspection) -> None:
        self.inspection = inspection
        clear(self._says)
        self._verdict.show()
        self._body_of_parts.show()
        clear(self._rows)
        for number, row in enumerate(inspection.rows):
            if number:
                self._rows.addWidget(Hairline())
            self._rows.addWidget(self._row(row, inspection))
        self._heading.annotate(missing_note(inspection.total))
        self._verdict.show_inspection(inspection)
        self.lanes.show_inspection(inspection)
        self.power.show_power(inspection.power)
        self._show_power(inspection)
        self.checks.show_checks(inspection.checks)
        self._show_rate()

    def _row(self, row: PartRow, inspection: Inspection) -> RowWidget:
        widget = RowWidget(row, inspection)
        widget.chosen.connect(self._choose)
        widget.removed.connect(self._remove)
        widget.counted.connect(self._count)
        widget.owned.connect(self._own)
        return widget

    def _show_power(self, inspection: Inspection) -> None:
        drawn = inspection.power
        said = [tr("pc.power.recommended", watts=drawn.recommended_psu_w)]
        if drawn.wall_w is not None and drawn.efficiency is not None:
            said.append(tr("pc.power.wall", watts=round(drawn.wall_w), share=drawn.efficiency))
        if drawn.missing:
            said.append(tr("pc.power.missing", count=len(drawn.missing)))
        self._power_note.tell(" ".join(said))
        top, limit = self._limits(inspection)
        self.limit.setEnabled(top is not None)
        if top is None:
            self._limit_text.tell("–")
            return
        self.limit.blockSignals(True)
        self.limit.setRange(round(top * LEAST_LIMIT / 5) * 5, round(top))
        self.limit.setValue(round(limit or top))
        self.limit.blockSignals(False)
        self.limit.update()
        id = "pc.power.limited" if limit else "pc.power.unlimited"
        self._limit_text.tell(Message.of(id, watts=round(limit or top)))

    def _limits(self, inspection: Inspection) -> tuple[float | None, float | None]:
        """Return the power of the strongest card as sold, and the limit that is set."""
        known = [gpu.record.tdp_w.value for gpu in inspection.build.gpus if gpu.record.tdp_w]
        limits = [gpu.power_limit_w for gpu in inspection.build.gpus if gpu.power_limit_w]
        return max(known, default=None), max(limits, default=None)

    def _show_rate(self) -> None:
        """Say what the plan reaches with this limit, as the estimate has it."""
        report = self._session.report
        speed = report.time.samples_per_second if report is not None else None
        if report is None or speed is None:
            self._rate.tell("")
            return
        text = tr("pc.power.rate", speed=str(figure(speed)))
        self._rate.tell(text)

    # What is changed

    def _put(self, machine: MachineChoice, label: Message, *, key: str = "") -> None:
        plan = self._session.plan
        if plan is not None:
            self._session.put(plan.model_copy(update={"machine": machine}), label, key=key)

    @property
    def _machine(self) -> MachineChoice:
        plan = self._session.plan
        assert plan is not None
        return plan.machine

    def _choose(self, kind: str, id: str, instead: str) -> None:
        name = Message.of(f"pc.one.{kind}")
        label = Message.of("ui.edit.set", name=name, value=id)
        put_part(self._session, kind, id, label, instead=instead)  # type: ignore[arg-type]

    def _remove(self, kind: str, id: str) -> None:
        if kind == "gpu" and len(self._machine.gpus) == 1:
            self._session.noticed.emit(Message.of("pc.machine.last-gpu"))
            return
        label = Message.of("pc.edit.remove", name=id)
        self._put(without_part(self._machine, kind, id), label)  # type: ignore[arg-type]

    def _count(self, kind: str, id: str, count: int) -> None:
        label = Message.of("pc.edit.count", name=id, count=count)
        self._put(with_count(self._machine, kind, id, count), label, key=f"count {id}")  # type: ignore[arg-type]

    def _own(self, id: str, on: bool) -> None:
        label = Message.of("pc.edit.own" if on else "pc.edit.own-not", name=id)
        self._put(with_owned(self._machine, id, on), label)

    def _slid(self, value: int) -> None:
        inspection = self.inspection
        top = self._limits(inspection)[0] if inspection is not None else None
        self._limit(None if top is None or value >= top else float(value))

    def _limit(self, watts: float | None) -> None:
        """Limit every card; None: as it is sold."""
        machine = self._machine
        gpus = tuple(gpu.model_copy(update={"power_limit_w": watts}) for gpu in machine.gpus)
        label = (
            Message.of("pc.edit.limit", watts=watts) if watts else Message.of("pc.edit.no-limit")
        )
        self._put(machine.model_copy(update={"gpus": gpus}), label, key="power limit")

    def _find(self) -> None:
        self.wanted.emit("build")

    def _browse(self) -> None:
        self.wanted.emit("catalog")


class VerdictLine(Surface):
    """In one line: whether it works, and what it costs."""

    def __init__(self) -> None:
        super().__init__(padding=(tokens.L + 44, tokens.M, tokens.L, tokens.M), gap=0)
        self._state = "na"
        line = QHBoxLayout()
        line.setSpacing(tokens.L)
        words = QVBoxLayout()
        words.setSpacing(2)
        self._word = Label(px=tokens.FIGURE, weight=600, wrap=True)
        self._below = Label(px=tokens.LABEL, colour="text2", wrap=True)
        words.addWidget(self._word)
        words.addWidget(self._below)
        line.addLayout(words, 1)
        money = QVBoxLayout()
        money.setSpacing(2)
        self._total, self._note = Label(px=tokens.FIGURE, weight=600), Label(px=tokens.LABEL)
        self._note.paint_in("text2")
        for label in (self._total, self._note):
            label.setAlignment(_RIGHT)
            money.addWidget(label)
        line.addLayout(money)
        self.column.addLayout(line)

    def show_inspection(self, inspection: Inspection) -> None:
        """Show another machine's verdict and total."""
        verdict = inspection.verdict
        chosen = all(row.id for row in inspection.rows)
        self._state = STATES[verdict] if chosen or verdict != "ok" else "na"
        shown = verdict if chosen or verdict != "ok" else "so-far"
        self._word.tell(Message.of(f"pc.machine.verdict.{shown}", count=inspection.count(verdict)))
        self._below.tell(self._lead(inspection))
        counted = [row.item.price for row in inspection.rows if row.item and not row.owned]
        self._show_total(inspection.total, lead(counted), chosen=chosen)
        self.update()

    def _lead(self, inspection: Inspection) -> str:
        missing = [tr(f"pc.one.{row.kind}") for row in inspection.rows if not row.id]
        if inspection.unknown:
            return tr("pc.machine.unknown-parts", names=list(inspection.unknown))
        if missing:
            return tr("pc.machine.missing", parts=missing)
        return tr("pc.machine.all-chosen")

    def _show_total(self, total: Total, mark: str, *, chosen: bool) -> None:
        complete = (total.complete and chosen) or total.expected is None
        text = total_text(total) if total.expected is None else mark + total_text(total)
        self._total.tell(text if complete else tr("pc.total.at-least", amount=text))
        missing = missing_note(total)
        self._note.tell(missing or total_note(total))
        self._note.setToolTip(plain_tip(self._note.text()))

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        with Drawing(self) as d:
            d.icon(STATE_ICON[self._state], 20, (self.height() - 28) / 2, 28, f"{self._state}Fill")
