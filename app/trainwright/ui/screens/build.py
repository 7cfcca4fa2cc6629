"""Which PC to buy: the best builds for the plan's work and some money, and what trades for what."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from trainwright.machine.choice import MachineChoice
from trainwright.messages import Message
from trainwright.messages.units import duration
from trainwright.prices import Currency
from trainwright.ui import tokens
from trainwright.ui.charts.scatter import Axes, Point, Scatter
from trainwright.ui.i18n import language, tr
from trainwright.ui.money import amount
from trainwright.ui.names import gpu_name
from trainwright.ui.screens.buildcosts import RunCosts
from trainwright.ui.screens.buildlists import list_menu
from trainwright.ui.screens.buildquestion import Question
from trainwright.ui.session import Session
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import Heading, Label, Scroll, Surface, clear, widgets_of
from trainwright.ui.widgets.buildcards import BuildCard, SideBySide, UpgradeCard, title_of
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.copying import offer_copies
from trainwright.ui.widgets.notice import Strip
from trainwright.ui.widgets.sides import Sides

if TYPE_CHECKING:
    from trainwright.build import Builds, Candidate
    from trainwright.build.upgrades import Upgrade, Upgrades

PAUSE_MS = 350
"""After an edit, before the search begins: a slider is still moving."""


class BuildScreen(Scroll):
    """Searches whenever the work, the money or a wish changes; a build is taken by one click."""

    wanted = Signal(str)

    def __init__(self, session: Session) -> None:
        body = QWidget()
        super().__init__(body)
        self._session = session
        self._key: object = None
        """What the answer on the screen, or the search under way, is for."""
        self.builds: Builds | None = None
        self._pair: list[Candidate] = []
        self._machine: MachineChoice | None = None
        """The plan's, when the cards were made: they say which of them it is."""
        self._searching = Latest(self)
        self._searching.done.connect(self._came)
        self._searching.failed.connect(self._failed)
        self._pause = QTimer(self, singleShot=True, interval=PAUSE_MS)
        self._pause.timeout.connect(self._search)
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        column.setSpacing(tokens.M)
        self.question = Question(session)
        self.question.turned.connect(self.refresh)
        self.question.asked.connect(self._ask)
        self._asked = False
        """Whether the answer, or the one under way, is to what one part would bring."""
        column.addWidget(self.question)
        self.strip = RunStrip()
        self.strip.answered.connect(self._cancel)
        column.addWidget(self.strip)
        self._list = QVBoxLayout()
        self._list.setSpacing(tokens.M)
        column.addWidget(Sides(self._list, self._right_side(), (3, 2)))
        column.addStretch(1)
        session.edited.connect(self.refresh)

    def _right_side(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(tokens.M)
        self._chart = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.S))
        self._chart.column.addWidget(Heading(Message.of("pc.build.chart")))
        self.scatter = Scatter(_axes("USD", "h", whole=True))
        self.scatter.setFixedHeight(300)
        self.scatter.picked.connect(self._show_picked)
        offer_copies(self.scatter, self.scatter.rows)
        self._chart.column.addWidget(self.scatter)
        self._chart.hide()
        column.addWidget(self._chart)
        self.costs = RunCosts(self._session)
        column.addWidget(self.costs)
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
    def way(self) -> str:
        """``buy`` or ``upgrade``."""
        return self.question.way.value

    @property
    def searching(self) -> bool:
        """Whether the answer to the last edit is still to come."""
        return self._pause.isActive() or not self.strip.isHidden()

    def refresh(self) -> None:
        """Show the plan's work and budget, and search again where either changed."""
        plan = self._session.plan
        if plan is None or not self.isVisible():
            return
        self.question.show_plan(plan)
        self.costs.refresh()
        limits = plan.limits
        key = (plan.model, plan.workload, plan.settings, limits.wishes, limits.power_w, limits.also,
               plan.machine.owned, self.way, plan.machine if self.way == "upgrade" else None,
               self.question.money, language())  # fmt: skip
        if key != self._key:
            self._key = key
            self._searching.forget()
            self._pause.start()
        elif self.builds is not None and self.cards() and plan.machine != self._machine:
            self._show_builds(self.builds)  # another of them is in the plan now

    def _search(self) -> None:
        plan, core = self._session.plan, self._session.core
        if plan is None:
            return
        budget, currency = self.question.money
        self._asked = False
        self.strip.start()
        ask = core.upgrades if self.way == "upgrade" else core.builds
        self._searching.submit(lambda: ask(plan, budget, currency))

    def _ask(self, part: str) -> None:
        """Ask what a part would bring to the plan's machine."""
        plan, core = self._session.plan, self._session.core
        if plan is None:
            return
        budget, currency = self.question.money
        self._pause.stop()
        self._asked = True
        self.strip.start()
        self._searching.submit(lambda: core.added(plan, budget, currency, part))

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
        if self.way == "upgrade":
            self._show_upgrades(cast("Upgrades", found))
        else:
            self._show_builds(cast("Builds", found))

    def _show_upgrades(self, found: "Upgrades") -> None:
        """Show what to change of the plan's machine; to change nothing is an answer too."""
        clear(self._list)
        self.pair.hide()
        self._chart.hide()
        self.costs.show_builds(())
        if found.upgrades:
            id = "pc.upgrade.asked" if self._asked else "pc.upgrade.best"
            self._list.addWidget(Heading(Message.of(id)))
        elif self._asked:
            self._tell(found.declined[0].reason, again=True)
            return
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
        self._show_notes((*(one.message for one in found.declined), *found.notes))

    def _show_builds(self, builds: "Builds") -> None:
        self.builds, self._pair = builds, []
        plan = self._session.plan
        self._machine = plan.machine if plan is not None else None
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
        if builds.builds and builds.cheapest is not None:
            self._list.addWidget(Heading(Message.of("pc.build.beyond")))
            self._list.addWidget(self._card(len(shown) + 1, builds.cheapest))
        self._list.addStretch(1)
        self.costs.show_builds(shown)
        self._show_chart(builds)
        self._show_notes(builds.notes)

    def _show_none(self, builds: "Builds") -> None:
        strip = Strip("x-circle-fill", "no")
        budget, currency = self.question.money
        id = "pc.build.none" if builds.cheapest is not None else "pc.build.impossible"
        strip.label.tell(Message.of(id, budget=amount(budget, currency)))
        self._list.addWidget(strip)
        if builds.cheapest is not None:
            self._list.addWidget(Heading(Message.of("pc.build.cheapest")))

    def _card(self, rank: int, candidate: "Candidate") -> BuildCard:
        plan = self._session.plan
        in_plan = plan is not None and plan.machine == _machine_of(candidate)
        card = BuildCard(rank, candidate, in_plan=in_plan)
        card.used.connect(self._use)
        card.compared.connect(self._compare)
        card.lists.setMenu(list_menu(self._session, candidate, card.lists))
        return card

    def _show_chart(self, builds: "Builds") -> None:
        budget, currency = self.question.money
        scale = 1e4 if currency == "KRW" else 1.0
        unit = _time_unit([one.seconds for one in builds.front])
        best = builds.builds[0] if builds.builds else None
        points = [
            Point(
                memory_gib=one.price / scale,
                seconds=one.seconds / UNITS[unit],
                name=_point_name(one.gpu, one.count),
                fits=one.within,
                best=all(
                    one.seconds < other.seconds
                    for other in builds.front
                    if other is not one and other.price <= one.price
                ),
                yours=one.candidate is not None and one.candidate is best,
                size=one.watts,
            )
            for one in builds.front
        ]
        self._chart.setVisible(bool(points))
        if points:
            self.scatter.relabel(_axes(currency, unit, whole=_whole_run(builds)))
            self.scatter.show_points(points, budget / scale)

    def _show_picked(self, index: int) -> None:
        """Bring the card of a point into view, where it has one."""
        wanted = self.builds.front[index].candidate if self.builds is not None else None
        for card in self.cards():
            if wanted is not None and card.candidate is wanted:
                self.ensureWidgetVisible(card)
                card.use.setFocus(Qt.FocusReason.OtherFocusReason)

    def cards(self) -> list[BuildCard]:
        """Return the cards of the builds that are shown."""
        return [widget for widget in widgets_of(self._list) if isinstance(widget, BuildCard)]

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
        update = {
            "machine": _machine_of(candidate),
            "settings": candidate.plan.settings,
            "chosen": candidate.plan.chosen,
        }
        label = Message.of("pc.edit.build", name=title_of(candidate))
        self._session.put(plan.model_copy(update=update), label)
        self.wanted.emit("machine")

    def _upgrade(self, upgrade: "Upgrade") -> None:
        """Put a change into the plan; undoable."""
        plan = self._session.plan
        if plan is not None:
            update = {
                "machine": upgrade.plan.machine,
                "settings": upgrade.plan.settings,
                "chosen": upgrade.plan.chosen,
            }
            self._session.put(plan.model_copy(update=update), upgrade.change)
            self.wanted.emit("machine")

    def _compare(self, candidate: "Candidate", on: bool) -> None:
        self._pair = [one for one in self._pair if one is not candidate]
        if on:
            self._pair = [*self._pair, candidate][-2:]
        for card in self.cards():
            card.compare.blockSignals(True)
            card.compare.setChecked(any(card.candidate is one for one in self._pair))
            card.compare.blockSignals(False)
        if len(self._pair) == 2:
            self.pair.show_pair(*self._pair)
        else:
            self.pair.hide()


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


def _machine_of(candidate: "Candidate") -> MachineChoice:
    """Return the build as a plan's machine, with those parts marked that are there already."""
    owned = tuple(part.id for part in candidate.parts if part.owned >= part.count)
    return candidate.plan.machine.model_copy(update={"owned": owned})


def _point_name(gpu: str, count: int) -> str:
    name = gpu_name(gpu)[0]
    return tr("ui.machine.gpus", count=count, name=name) if count > 1 else name


UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
"""Units of the time axis, in seconds."""


def _time_unit(seconds: Sequence[float]) -> str:
    """Return the largest unit of which the longest time holds a few."""
    longest = max(seconds, default=0.0)
    return [unit for unit, size in UNITS.items() if longest >= 3 * size or unit == "s"][-1]


def _whole_run(builds: "Builds") -> bool:
    """Return whether times are of the whole run: of one step, or a round of requests, else."""
    shown = builds.builds or ((builds.cheapest,) if builds.cheapest is not None else ())
    return any(one.run is not None for one in shown)


def _axes(currency: Currency, unit: str, *, whole: bool) -> Axes:
    """Return the words of the chart: won are counted in tens of thousands."""
    scale = 1e4 if currency == "KRW" else 1.0

    def row(point: Point) -> str:
        price = amount(point.memory_gib * scale, currency)
        time = duration(point.seconds * UNITS[unit], language())
        return f"{price} · ~{time} · {tr('pc.build.watts', watts=round(point.size))}"

    return Axes(
        title="pc.build.chart",
        across=f"pc.build.chart.x.{currency.lower()}",
        cut=f"pc.build.chart.cut.{unit}",
        up=f"pc.build.chart.{'run' if whole else 'step'}.{unit}",
        limit=lambda value: tr("pc.build.chart.budget", value=value),
        row=row,
        yours="pc.build.chart.best",
        sized="pc.build.chart.watts",
        spoken=lambda point: f"{point.name} · {row(point)}",
        every=True,
    )
