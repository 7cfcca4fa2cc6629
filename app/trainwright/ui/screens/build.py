"""Which PC to buy: the best builds for the plan's work and some money, and what trades for what."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.messages import Message
from trainwright.plan.edit import with_keys
from trainwright.prices import Currency
from trainwright.ui import plans, tokens
from trainwright.ui.buying import PRESETS, STEPS, Asked, budget_of, nearest_step
from trainwright.ui.charts.scatter import Axes, Point, Scatter
from trainwright.ui.columns import shown
from trainwright.ui.i18n import language, tr
from trainwright.ui.money import amount, currency_of, in_short
from trainwright.ui.names import gpu_name, model_name, search_models
from trainwright.ui.screens.choices import TASKS
from trainwright.ui.session import Session
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import Heading, Label, Scroll, Surface, clear
from trainwright.ui.widgets.buildcards import BuildCard, SideBySide, UpgradeCard, title_of
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo, Segmented, Stepper, Switch
from trainwright.ui.widgets.copying import offer_copies
from trainwright.ui.widgets.notice import Strip
from trainwright.ui.widgets.picker import Picker
from trainwright.ui.widgets.slider import Slider

if TYPE_CHECKING:
    from trainwright.build import Builds, Candidate
    from trainwright.build.upgrades import Upgrade, Upgrades

PAUSE_MS = 350
"""After an edit, before the search begins: a slider is still moving."""
FORMS = ("", "mini-itx", "micro-atx", "atx", "e-atx")


class BuildScreen(Scroll):
    """Searches whenever the work, the money or a wish changes; a build is taken by one click."""

    wanted = Signal(str)

    def __init__(self, session: Session) -> None:
        body = QWidget()
        super().__init__(body)
        self._session = session
        self._asked = Asked()
        self._key: object = None
        """What the answer on the screen, or the search under way, is for."""
        self.builds: Builds | None = None
        self._pair: list[Candidate] = []
        self._searching = Latest(self)
        self._searching.done.connect(self._came)
        self._searching.failed.connect(self._failed)
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self._search)
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        column.setSpacing(tokens.M)
        column.addWidget(self._question())
        self.strip = RunStrip()
        self.strip.answered.connect(self._cancel)
        column.addWidget(self.strip)
        sides = QHBoxLayout()
        sides.setSpacing(tokens.M)
        self._list = QVBoxLayout()
        self._list.setSpacing(tokens.M)
        sides.addLayout(self._list, 3)
        sides.addLayout(self._right_side(), 2)
        column.addLayout(sides)
        column.addStretch(1)
        session.edited.connect(self.refresh)

    # The question

    def _question(self) -> Surface:
        card = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=tokens.M)
        head = QHBoxLayout()
        head.setSpacing(tokens.M)
        head.addWidget(Heading(Message.of("pc.build.title"), Message.of("pc.build.note")), 1)
        ways = [
            ("buy", Message.of("pc.build.way.buy")),
            ("upgrade", Message.of("pc.build.way.upgrade")),
        ]
        self.way = Segmented(ways, "buy", name=Message.of("pc.build.way"))
        self.way.chosen.connect(self._choose_way)
        head.addWidget(self.way)
        card.column.addLayout(head)
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.M)
        grid.setVerticalSpacing(tokens.S)
        grid.setColumnStretch(1, 3)
        grid.setColumnStretch(3, 2)
        self.model = Picker(search_models, name=Message.of("ui.key.model"), icon="cube",
                            hint=Message.of("ui.picker.model"))  # fmt: skip
        self.model.chosen.connect(self._choose_model)
        tasks = [(task, Message.of(f"ui.task.{task}")) for task in TASKS]
        self.task = Combo(tasks, "lora", name=Message.of("ui.key.workload.task"))
        self.task.chosen.connect(self._choose_task)
        self._label(grid, 0, 0, Message.of("ui.key.model"))
        grid.addWidget(self.model, 0, 1)
        self._label(grid, 0, 2, Message.of("ui.key.workload.task"))
        grid.addWidget(self.task, 0, 3)
        self._label(grid, 1, 0, Message.of("pc.build.budget"))
        grid.addLayout(self._money(), 1, 1, 1, 3)
        self._label(grid, 2, 0, Message.of("pc.build.wishes"))
        grid.addLayout(self._wishes(), 2, 1, 1, 3)
        card.column.addLayout(grid)
        return card

    def _label(self, grid: QGridLayout, row: int, column: int, text: Message) -> None:
        grid.addWidget(Label(text, px=tokens.LABEL, colour="text2"), row, column)

    def _money(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        self.currency = Segmented([("KRW", "₩ KRW"), ("USD", "$ USD")], "USD",
                                  name=Message.of("pc.build.currency"))  # fmt: skip
        self.currency.chosen.connect(self._choose_currency)
        line.addWidget(self.currency)
        self.slider = Slider(0, len(STEPS["KRW"]) - 1, 0, name=Message.of("pc.build.budget"))
        self.slider.valueChanged.connect(self._slid)
        line.addWidget(self.slider, 1)
        self._amount = Label(px=tokens.TITLE, weight=600)
        line.addWidget(self._amount)
        self._presets = QHBoxLayout()
        self._presets.setSpacing(tokens.XS)
        line.addLayout(self._presets)
        self.presets: list[Button] = []
        return line

    def _wishes(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(tokens.L)
        used, quiet = Message.of("pc.wish.used"), Message.of("pc.wish.quiet")
        self.used = Switch(False, name=used, on=used, off=used)
        self.used.chosen.connect(self._wish_used)
        self.quiet = Switch(False, name=quiet, on=quiet, off=quiet)
        self.quiet.chosen.connect(self._wish_quiet)
        forms = [(form, _form_name(form)) for form in FORMS]
        self.form = Combo(forms, "", name=Message.of("pc.wish.form"))
        self.form.chosen.connect(self._wish_form)
        self.gpus = Stepper(0, name=Message.of("pc.wish.gpus"), low=0, high=8,
                            absent=Message.of("pc.wish.gpus.any"))  # fmt: skip
        self.gpus.chosen.connect(self._wish_gpus)
        self.gpus.setMinimumWidth(150)
        for widget in (self.used, self.quiet, self.form, self.gpus):
            line.addWidget(widget)
        line.addStretch(1)
        return line

    def _right_side(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(tokens.M)
        self._chart = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.S))
        self._chart.column.addWidget(Heading(Message.of("pc.build.chart"),
                                             Message.of("pc.build.chart.note")))  # fmt: skip
        self.scatter = Scatter(_axes("USD"))
        self.scatter.setFixedHeight(300)
        offer_copies(self.scatter, self.scatter.rows)
        self._chart.column.addWidget(self.scatter)
        self._chart.hide()
        column.addWidget(self._chart)
        self.pair = SideBySide()
        column.addWidget(self.pair)
        self._notes = Surface(gap=6)
        self._notes.hide()
        column.addWidget(self._notes)
        column.addStretch(1)
        return column

    # What is shown

    def showEvent(self, event: QShowEvent) -> None:
        """Search, where the answer is not at hand yet."""
        super().showEvent(event)
        self.refresh()

    @property
    def money(self) -> tuple[int, Currency]:
        """The budget that is asked for: the plan's, or a usual one."""
        plan = self._session.plan
        known = budget_of(plan) if plan is not None else None
        currency = currency_of(plan)
        return known if known is not None else (PRESETS[currency][1], currency)

    def refresh(self) -> None:
        """Show the plan's work and budget, and search anew where either changed."""
        plan = self._session.plan
        if plan is None or not self.isVisible():
            return
        budget, currency = self.money
        self.model.show_value(model_name(plan))
        self.task.show_value(plan.workload.task)
        self.currency.show_value(currency)
        self.slider.setRange(0, len(STEPS[currency]) - 1)
        self.slider.show_value(nearest_step(budget, currency))
        self._amount.tell(amount(budget, currency))
        self._offer_presets(budget, currency)
        key = (plan.model, plan.workload, plan.settings, plan.limits, plan.machine.owned,
               self.way.value, plan.machine if self.way.value == "upgrade" else None,
               budget, currency, self._asked, language())  # fmt: skip
        if key != self._key:
            self._key = key
            self._searching.forget()
            self._pause.start()

    def _offer_presets(self, budget: int, currency: Currency) -> None:
        if [preset.property("amount") for preset in self.presets] == list(PRESETS[currency]):
            return
        clear(self._presets)
        self.presets = []
        for value in PRESETS[currency]:
            button = Button(in_short(value, currency), "secondary", small=True,
                            name=amount(value, currency))  # fmt: skip
            button.setProperty("amount", value)
            button.clicked.connect(self._preset)
            self._presets.addWidget(button)
            self.presets.append(button)

    def _search(self) -> None:
        plan, core, asked = self._session.plan, self._session.core, self._asked
        if plan is None:
            return
        budget, currency = self.money
        self.strip.start()
        ask = core.upgrades if self.way.value == "upgrade" else core.builds
        self._searching.submit(lambda: ask(plan, budget, currency, asked))

    def _cancel(self, _answer: str) -> None:
        self._searching.forget()
        self.strip.stop()
        self._tell(Message.of("pc.build.cancelled"), again=True)

    def _failed(self, problem: Message) -> None:
        self.strip.stop()
        self._tell(problem, again=True)

    def _tell(self, text: Message, *, again: bool = False) -> None:
        clear(self._list)
        strip = Strip("info", "na")
        strip.label.tell(text)
        if again:
            strip.offer(Button(Message.of("ui.advise.again"), small=True), "again")
            strip.answered.connect(self._again)
        self._list.addWidget(strip)
        self._list.addStretch(1)

    def _again(self, _answer: str) -> None:
        self._search()

    def _came(self, found: "Builds | Upgrades") -> None:
        self.strip.stop()
        if self.way.value == "upgrade":
            self._show_upgrades(cast("Upgrades", found))
        else:
            self._show_builds(cast("Builds", found))

    def _show_upgrades(self, found: "Upgrades") -> None:
        """Show what to change of the plan's machine; to change nothing is an answer too."""
        clear(self._list)
        self.pair.hide()
        self._chart.hide()
        if found.upgrades:
            self._list.addWidget(Heading(Message.of("pc.upgrade.best")))
        else:
            strip = Strip("check-circle-fill", "fits")
            strip.label.tell(
                Message.of("pc.upgrade.nothing" if found.before else "pc.upgrade.none")
            )
            self._list.addWidget(strip)
        for rank, upgrade in enumerate(found.upgrades, start=1):
            card = UpgradeCard(rank, upgrade)
            card.used.connect(self._upgrade)
            self._list.addWidget(card)
        self._list.addStretch(1)
        self._show_notes(found.notes)

    def _show_builds(self, builds: "Builds") -> None:
        self.builds, self._pair = builds, []
        self.pair.hide()
        clear(self._list)
        if builds.builds:
            note = tr("pc.build.considered", count=builds.considered)
            self._list.addWidget(Heading(Message.of("pc.build.best"), note))
        else:
            self._show_none(builds)
        shown = builds.builds or ((builds.cheapest,) if builds.cheapest is not None else ())
        for rank, candidate in enumerate(shown, start=1):
            self._list.addWidget(self._card(rank, candidate))
        self._list.addStretch(1)
        self._show_chart(builds)
        self._show_notes(builds.notes)

    def _show_none(self, builds: "Builds") -> None:
        strip = Strip("x-circle-fill", "no")
        budget, currency = self.money
        id = "pc.build.none" if builds.cheapest is not None else "pc.build.impossible"
        strip.label.tell(Message.of(id, budget=amount(budget, currency)))
        self._list.addWidget(strip)
        if builds.cheapest is not None:
            self._list.addWidget(Heading(Message.of("pc.build.cheapest")))

    def _card(self, rank: int, candidate: "Candidate") -> BuildCard:
        plan = self._session.plan
        in_plan = plan is not None and plan.machine == candidate.plan.machine
        card = BuildCard(rank, candidate, in_plan=in_plan)
        card.used.connect(self._use)
        card.compared.connect(self._compare)
        return card

    def _show_chart(self, builds: "Builds") -> None:
        budget, currency = self.money
        scale = 1e4 if currency == "KRW" else 1.0
        best = builds.builds[0] if builds.builds else None
        points = [
            Point(
                memory_gib=one.price / scale,
                seconds=one.seconds / 3600,
                name=_point_name(one.gpu, one.count),
                fits=one.within,
                best=all(
                    one.seconds < other.seconds
                    for other in builds.front
                    if other is not one and other.price <= one.price
                ),
                yours=one.candidate is not None and one.candidate is best,
            )
            for one in builds.front
        ]
        self._chart.setVisible(bool(points))
        if points:
            self.scatter.relabel(_axes(currency))
            self.scatter.show_points(points, budget / scale)

    def _show_notes(self, notes: tuple[Message, ...]) -> None:
        clear(self._notes.column)
        self._notes.setVisible(bool(notes))
        if notes:
            self._notes.column.addWidget(Heading(Message.of("ui.advise.notes")))
        for note in notes:
            self._notes.column.addWidget(Label(note, px=tokens.LABEL, colour="text2", wrap=True))

    # What is changed

    def _use(self, candidate: "Candidate") -> None:
        """Put a build into the plan, its best settings with it; undoable."""
        plan = self._session.plan
        if plan is None:
            return
        update = {"machine": candidate.plan.machine, "settings": candidate.plan.settings}
        label = Message.of("pc.edit.build", name=title_of(candidate))
        self._session.put(plan.model_copy(update=update), label)
        self.wanted.emit("machine")

    def _upgrade(self, upgrade: "Upgrade") -> None:
        """Put a change into the plan; undoable."""
        plan = self._session.plan
        if plan is not None:
            update = {"machine": upgrade.plan.machine, "settings": upgrade.plan.settings}
            self._session.put(plan.model_copy(update=update), upgrade.change)
            self.wanted.emit("machine")

    def _choose_way(self, _way: str) -> None:
        self.refresh()

    def _compare(self, candidate: "Candidate", on: bool) -> None:
        self._pair = [one for one in self._pair if one is not candidate]
        if on:
            self._pair = [*self._pair, candidate][-2:]
        for index in range(self._list.count()):
            item = self._list.itemAt(index)
            card = item.widget() if item is not None else None
            if isinstance(card, BuildCard):
                card.compare.blockSignals(True)
                card.compare.setChecked(any(card.candidate is one for one in self._pair))
                card.compare.blockSignals(False)
        if len(self._pair) == 2:
            self.pair.show_pair(*self._pair)
        else:
            self.pair.hide()

    def _set_budget(self, value: int, currency: Currency, *, merge: bool = False) -> None:
        self._session.set_key("limits.budget", f"{value} {currency}", merge=merge)

    def _preset(self) -> None:
        self._set_budget(int(self.sender().property("amount")), self.money[1])

    def _slid(self, step: int) -> None:
        currency = self.money[1]
        self._set_budget(STEPS[currency][step], currency, merge=True)

    def _choose_currency(self, value: str) -> None:
        currency: Currency = "KRW" if value == "KRW" else "USD"
        self._set_budget(PRESETS[currency][1], currency)

    def _choose_model(self, key: str) -> None:
        from trainwright.profile.presets import presets

        plan = self._session.plan
        if plan is not None:
            preset = presets()[key]
            label = Message.of("ui.edit.model", value=preset.name)
            self._session.put(plans.for_preset(plan, preset), label)

    def _choose_task(self, task: str) -> None:
        plan = self._session.plan
        if plan is not None:
            label = plans.edit_label("workload.task", task)
            self._session.put(with_keys(plan, {"workload.task": task}), label)

    def _wish(self, asked: Asked) -> None:
        self._asked = asked
        self.refresh()

    def _wish_used(self, on: bool) -> None:
        self._wish(replace(self._asked, used=on))

    def _wish_quiet(self, on: bool) -> None:
        self._wish(replace(self._asked, quiet=on))

    def _wish_form(self, form: str) -> None:
        self._wish(replace(self._asked, form=form))

    def _wish_gpus(self, count: int) -> None:
        self._wish(replace(self._asked, gpus=count))


class RunStrip(Strip):
    """While the search runs: for how long already, and a way to stop it."""

    def __init__(self) -> None:
        super().__init__("spinner-gap", "na")
        self._since = 0.0
        self._clock = QTimer(self, interval=500)
        self._clock.timeout.connect(self._tell)
        self.offer(Button(Message.of("ui.advise.cancel"), small=True), "cancel")
        self.hide()

    def start(self) -> None:
        """Appear, and count."""
        self._since = time.monotonic()
        self._clock.start()
        self._tell()
        self.show()

    def stop(self) -> None:
        """Go."""
        self._clock.stop()
        self.hide()

    def _tell(self) -> None:
        seconds = int(time.monotonic() - self._since)
        self.label.tell(Message.of("pc.build.running", seconds=seconds))


def _form_name(form: str) -> str:
    return shown(form) if form else tr("pc.wish.form.any")


def _point_name(gpu: str, count: int) -> str:
    name = gpu_name(gpu)[0]
    return tr("ui.machine.gpus", count=count, name=name) if count > 1 else name


def _row(point: Point) -> str:
    return f"{point.memory_gib:.0f}, {point.seconds:.3g} h"


def _axes(currency: Currency) -> Axes:
    """Return the words of the chart: won are counted in tens of thousands."""
    return Axes(
        title="pc.build.chart",
        across=f"pc.build.chart.x.{currency.lower()}",
        cut="pc.build.chart.cut",
        limit=lambda value: tr("pc.build.chart.budget", value=value),
        row=_row,
        yours="pc.build.chart.best",
    )
