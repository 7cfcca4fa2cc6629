"""The builds that were found: one card each, and two of them side by side."""

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout

from trainwright.catalog.part_kinds import PartKind
from trainwright.explain import Quantity
from trainwright.messages import Message
from trainwright.messages.units import duration, number
from trainwright.ui import tokens
from trainwright.ui.figures import figure, span
from trainwright.ui.i18n import language, say, tr
from trainwright.ui.inspection import STATES
from trainwright.ui.money import amount, kind_and_day, lead, missing_note
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Hairline, Heading, Label, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.rank import Rank

if TYPE_CHECKING:
    from trainwright.build import Candidate, Part
    from trainwright.build.answer import Done
    from trainwright.build.upgrades import Upgrade

ORDER: tuple[PartKind, ...] = (
    "gpu", "cpu", "board", "memory", "storage", "psu", "case", "cooler",
)  # fmt: skip
"""In which parts are listed."""
_TOP = Qt.AlignmentFlag.AlignTop


def title_of(candidate: "Candidate") -> str:
    """Return what a build is called: by its cards."""
    cards = [part for part in candidate.parts if part.kind == "gpu"]
    return " + ".join(map(_part, cards))


def time_of(candidate: "Candidate") -> str:
    """Return how long the work takes, or how fast it goes where nobody says how much it is."""
    run = candidate.run
    if run is not None:
        id = "pc.build.all-runs" if candidate.others else "pc.build.run"
        return tr(id, time=duration(run.value, language()), span=_range(run))
    rate = candidate.rate
    return f"{figure(rate)}{_range(rate)}" if rate is not None else tr("pc.unknown")


def _range(quantity: Quantity) -> str:
    """Return the interval in brackets, where there is one."""
    between = quantity.interval
    return f" ({span(between.low, between.high, quantity.unit)})" if between else ""


def parts_of(candidate: "Candidate", kind: PartKind) -> str:
    """Return the build's parts of a kind in words."""
    return ", ".join(_part(part) for part in candidate.parts if part.kind == kind)


def price_of(candidate: "Candidate", kind: PartKind) -> str:
    """Return what the build's parts of a kind cost to buy; empty where nobody knows."""
    return " + ".join(
        lead((part.price,)) + amount(part.price.times(bought).expected, part.price.currency)
        for part in candidate.parts
        if part.kind == kind and part.price is not None and (bought := part.count - part.owned) > 0
    )


def why_of(candidate: "Candidate", kind: PartKind) -> str:
    """Return which need the build's parts of a kind answer; empty where nothing is said."""
    why = [part.why for part in candidate.parts if part.kind == kind and part.why is not None]
    return say(why[0]) if why else ""


def grounds_of(candidate: "Candidate", kind: PartKind) -> str:
    """Return what those prices rest on: how each is known, and of which day it is."""
    prices = (part.price for part in candidate.parts if part.kind == kind)
    return "\n".join(kind_and_day(price) for price in prices if price is not None)


def _part(part: "Part") -> str:
    name = f"{part.count} × {part.name}" if part.count > 1 else part.name
    if not part.owned:
        return tr("pc.build.used", part=name) if part.used else name
    all_ = part.owned >= part.count
    return tr("pc.build.yours" if all_ else "pc.build.yours-some", part=name, count=part.owned)


def _work(done: "Done") -> str:
    """Return a workload's name, the time of its run or its rate, and how often it is done."""
    known = done.report.time.run_seconds or done.rate
    said = f"{figure(known)}{_range(known)}" if known is not None else tr("pc.unknown")
    if done.run is None:
        return tr("pc.work.done-fits", name=done.plan.name, figure=said)
    return tr("pc.work.done", name=done.plan.name, figure=said, times=f"{done.times:g}")


class BuildCard(Surface):
    """One build: its figures, its parts, what limits it and what the next step buys."""

    used = Signal(object)
    compared = Signal(object, bool)

    def __init__(self, rank: int, candidate: "Candidate", *, in_plan: bool) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.M, tokens.M), gap=tokens.S)
        self.candidate = candidate
        head = QHBoxLayout()
        head.setSpacing(tokens.M)
        worst = next((v for v in ("error", "warning", "unknown")
                      if any(check.verdict == v for check in candidate.checks)), "ok")  # fmt: skip
        head.addWidget(Rank(rank, STATES[worst]), 0, _TOP)
        self.title = title_of(candidate)
        head.addWidget(Label(self.title, px=tokens.SECTION, weight=600, wrap=True), 1)
        self._add_buttons(head, rank, in_plan=in_plan)
        self.column.addLayout(head)
        self.column.addWidget(Label(self._figures(), px=tokens.LABEL, colour="text2", wrap=True))
        for done in candidate.works if candidate.others else ():
            self.column.addWidget(Label(_work(done), px=tokens.LABEL, wrap=True))
        self.column.addWidget(Hairline())
        self.column.addLayout(self._parts())
        self.column.addWidget(Label(candidate.bottleneck, px=tokens.LABEL, wrap=True))
        for said in (candidate.doubt, candidate.thrift):
            if said is not None:
                self.column.addWidget(Label(said, px=tokens.LABEL, wrap=True))
        if candidate.next_step is not None:
            self.column.addWidget(Label(self._step(candidate.next_step), px=tokens.LABEL,
                                        colour="text2", wrap=True))  # fmt: skip

    def _add_buttons(self, line: QHBoxLayout, rank: int, *, in_plan: bool) -> None:
        self.compare = Button(Message.of("pc.build.compare"), "ghost", "scales", small=True,
                              name=tr("pc.build.compare.named", name=self.title))  # fmt: skip
        self.compare.setCheckable(True)
        self.compare.toggled.connect(self._compare)
        line.addWidget(self.compare, 0, _TOP)
        self.lists = Button(Message.of("pc.list.export"), "ghost", "export", small=True,
                            name=tr("pc.list.export.named", name=self.title))  # fmt: skip
        line.addWidget(self.lists, 0, _TOP)
        text = Message.of("pc.build.in-plan" if in_plan else "pc.build.use")
        self.use = Button(text, "fix" if rank == 1 else "secondary", "check",
                          name=tr("pc.build.use.named", name=self.title))  # fmt: skip
        self.use.setEnabled(not in_plan)
        self.use.clicked.connect(self._use)
        line.addWidget(self.use, 0, _TOP)

    def _figures(self) -> str:
        candidate = self.candidate
        total = candidate.total
        price = _price(candidate)
        watts = tr("pc.build.watts", watts=round(candidate.wall_watts))
        parts = [price, missing_note(total), time_of(candidate), watts]
        return " · ".join(part for part in parts if part)

    def _parts(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.M)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        kinds = [kind for kind in ORDER if parts_of(self.candidate, kind)]
        for line, kind in zip(range(0, 2 * len(kinds), 2), kinds, strict=True):
            name = tr(f"pc.one.{kind}.title")
            grid.addWidget(Label(name, px=tokens.LABEL, colour="text3"), line, 0, _TOP)
            text = parts_of(self.candidate, kind)
            grid.addWidget(Label(text, px=tokens.LABEL, wrap=True), line, 1, _TOP)
            price = Label(price_of(self.candidate, kind), px=tokens.LABEL, colour="text2")
            price.setToolTip(plain_tip(grounds_of(self.candidate, kind)))
            grid.addWidget(price, line, 2, _TOP | Qt.AlignmentFlag.AlignRight)
            if why := why_of(self.candidate, kind):
                said = Label(why, px=tokens.LABEL, colour="text3", wrap=True)
                grid.addWidget(said, line + 1, 1, 1, 2, _TOP)
        return grid

    def _step(self, step: Any) -> str:
        more = amount(step.more, self.candidate.total.currency)
        price = amount(step.price, self.candidate.total.currency)
        id = "pc.build.next" if step.worth else "pc.build.next-poor"
        return tr(id, change=say(step.change), more=more, price=price, gain=step.gain)

    def _use(self) -> None:
        self.used.emit(self.candidate)

    def _compare(self, on: bool) -> None:
        self.compared.emit(self.candidate, on)


class UpgradeCard(Surface):
    """One change of the machine at hand: what it gains, what it costs, what goes with it."""

    used = Signal(object)

    def __init__(self, rank: int, upgrade: "Upgrade") -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.M, tokens.M), gap=tokens.S)
        self.upgrade = upgrade
        line = QHBoxLayout()
        line.setSpacing(tokens.M)
        worst = next((v for v in ("error", "warning", "unknown")
                      if any(check.verdict == v for check in upgrade.checks)), "ok")  # fmt: skip
        line.addWidget(Rank(rank, STATES[worst]), 0, _TOP)
        words = QVBoxLayout()
        words.setSpacing(2)
        title = say(upgrade.change)
        words.addWidget(Label(title, px=tokens.SECTION, weight=600, wrap=True))
        words.addWidget(Label(self._figures(), px=tokens.LABEL, colour="text2", wrap=True))
        bought = ", ".join(
            f"{p.count} × {p.name}" if p.count > 1 else p.name for p in upgrade.parts
        )
        if bought:
            text = tr("pc.upgrade.buy", parts=bought)
            words.addWidget(Label(text, px=tokens.LABEL, wrap=True))
        for said in (upgrade.idle, upgrade.replaced):
            if said is not None:
                words.addWidget(Label(said, px=tokens.LABEL, wrap=True))
        line.addLayout(words, 1)
        self.use = Button(Message.of("ui.advise.apply"), "fix" if rank == 1 else "secondary",
                          "check", name=tr("ui.advise.apply.named", name=title))  # fmt: skip
        self.use.clicked.connect(self._use)
        line.addWidget(self.use, 0, _TOP)
        self.column.addLayout(line)

    def _figures(self) -> str:
        upgrade, total = self.upgrade, self.upgrade.total
        gain = tr("pc.upgrade.fits") if upgrade.gain is None else tr(
            "pc.upgrade.gain", gain=upgrade.gain)  # fmt: skip
        price = _price(upgrade)
        return " · ".join(text for text in (gain, price, missing_note(total)) if text)

    def _use(self) -> None:
        self.used.emit(self.upgrade)


class SideBySide(Surface):
    """Two builds; what differs stands out."""

    def __init__(self) -> None:
        super().__init__(gap=6)
        self.hide()

    def show_pair(self, one: "Candidate", other: "Candidate") -> None:
        """Show two builds."""
        clear(self.column)
        self.column.addWidget(Heading(Message.of("pc.build.pair"), tr("pc.build.pair.note")))
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.M)
        grid.setVerticalSpacing(5)
        for column in (1, 2):
            grid.setColumnStretch(column, 1)
        for line, (name, first, second) in enumerate(pair_rows(one, other)):
            differs = first != second
            grid.addWidget(Label(name, px=tokens.LABEL, colour="text3"), line, 0, _TOP)
            for column, text in ((1, first), (2, second)):
                label = Label(text or "–", px=tokens.LABEL, weight=600 if differs else 400,
                              colour="text" if differs else "text2", wrap=True)  # fmt: skip
                grid.addWidget(label, line, column, _TOP)
        self.column.addLayout(grid)
        self.show()


def pair_rows(one: "Candidate", other: "Candidate") -> list[tuple[str, str, str]]:
    """Return (name, of the one, of the other) for what two builds are compared by."""

    def both(name: str, text: Any) -> tuple[str, str, str]:
        return tr(name), text(one), text(other)

    rows = [
        both("pc.build.price", _price),
        both("pc.build.time", time_of),
        both("pc.build.wall", lambda c: f"{number(round(c.wall_watts))} W"),
    ]
    rows += [(tr(f"pc.one.{k}.title"), parts_of(one, k), parts_of(other, k)) for k in ORDER]
    rows.append(both("pc.build.warnings", lambda c: str(len(c.warnings))))
    return rows


def _price(priced: "Candidate | Upgrade") -> str:
    """Return the expected total, marked where it rests on assumed prices."""
    total = priced.total
    if total.expected is None:
        return ""
    return lead(part.price for part in priced.parts) + amount(total.expected, total.currency)
