"""The storage guide: NVMe, SATA SSD or disk, and how large, for a data set and its use."""

from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.catalog import list_parts
from trainwright.estimate.input.drives import CLASSES, Class, Layout, Suited, Work, by_class
from trainwright.machine.rules_storage import WARRANTY_YEARS
from trainwright.messages import Message
from trainwright.messages.units import duration, number
from trainwright.plan.report import Report
from trainwright.prices import Wish, item_of, price_book
from trainwright.ui import tokens
from trainwright.ui.i18n import language, tr
from trainwright.ui.money import currency_of, item_amount
from trainwright.ui.paint import STATE_ICON, Drawing
from trainwright.ui.session import Session
from trainwright.ui.widgets.base import Hairline, Heading, Label, Painted, Scroll, Surface, clear
from trainwright.ui.widgets.controls import Segmented, Stepper


class StorageGuide(Scroll):
    """What each class of drive does for the work that is set above."""

    def __init__(self, session: Session) -> None:
        body = QWidget()
        super().__init__(body)
        self._session = session
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        column.setSpacing(tokens.M)
        column.addWidget(self._question())
        self._answer = QVBoxLayout()
        self._answer.setSpacing(tokens.M)
        column.addLayout(self._answer)
        column.addStretch(1)

    def _question(self) -> Surface:
        card = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=tokens.M)
        card.column.addWidget(Heading(Message.of("pc.storage.title")))
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.L)
        grid.setVerticalSpacing(tokens.XS)
        self.dataset = self._stepper(grid, 0, "pc.storage.dataset", 200, "GB", 100_000)
        self.sample = self._stepper(grid, 1, "pc.storage.sample", 110, "KiB", 1_000_000)
        self.written = self._stepper(grid, 2, "pc.storage.written", 64, "GB", 100_000, low=0)
        self.memory = self._stepper(grid, 3, "pc.storage.memory", 64, "GiB", 8192)
        layouts = [("files", Message.of("pc.storage.files")),
                   ("shards", Message.of("pc.storage.shards"))]  # fmt: skip
        name = Message.of("pc.storage.layout")
        self.layout_ = Segmented(layouts, "files", name=name)
        self.layout_.chosen.connect(self.refresh)
        grid.addWidget(Label(name, px=tokens.LABEL, colour="text2"), 0, 4)
        grid.addWidget(self.layout_, 1, 4)
        card.column.addLayout(grid)
        return card

    def _stepper(
        self, grid: QGridLayout, column: int, id: str, value: int, unit: str, most: int,
        *, low: int = 1,
    ) -> Stepper:  # fmt: skip
        name = Message.of(id)
        stepper = Stepper(value, name=name, unit=unit, low=low, high=most, doubling=True)
        stepper.chosen.connect(self.refresh)
        grid.addWidget(Label(name, px=tokens.LABEL, colour="text2"), 0, column)
        grid.addWidget(stepper, 1, column)
        return stepper

    def entered(self) -> None:
        """Show the answer for what the plan takes."""
        self.refresh()

    @property
    def work(self) -> Work:
        """What the drive is for."""
        layout: Layout = "shards" if self.layout_.value == "shards" else "files"
        return Work(
            dataset_gb=self.dataset.value(),
            layout=layout,
            sample_kib=self.sample.value(),
            written_gb_a_day=self.written.value(),
            memory_gib=self.memory.value(),
            samples_per_second=taken(self._session.report),
        )

    def refresh(self, *_: object) -> None:
        """Answer again."""
        clear(self._answer)
        work = self.work
        found = by_class(list_parts("storage"), work)
        lead = tr("pc.storage.size", need=round(work.capacity_gb), size=_size(work.size_gb))
        card = Surface(gap=6)
        card.column.addWidget(Label(lead, px=tokens.TITLE, weight=600, wrap=True))
        card.column.addWidget(Label(self._second(work), px=tokens.LABEL, colour="text2", wrap=True))
        self._answer.addWidget(card)
        table = Surface(gap=0)
        for index, kind in enumerate(CLASSES):
            if index:
                table.column.addWidget(Hairline())
            table.column.addLayout(self._row(kind, found[kind]))
        self._answer.addWidget(table)

    def _second(self, work: Work) -> str:
        said = [tr("pc.storage.cached", share=work.cached)]
        if work.samples_per_second is not None:
            said.append(tr("pc.storage.taken", rate=round(work.samples_per_second, 2)))
        return " ".join(said)

    def _row(self, kind: Class, found: tuple[Suited, ...]) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setContentsMargins(0, tokens.S, 0, tokens.S)
        line.setSpacing(tokens.M)
        best = found[0] if found else None
        line.addWidget(Mark(state(best)))
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(Label(Message.of(f"pc.storage.class.{kind}"), weight=600, wrap=True))
        text = self._said(best) if best is not None else tr("pc.storage.none")
        words.addWidget(Label(text, px=tokens.LABEL, colour="text2", wrap=True))
        line.addLayout(words, 3)
        line.addWidget(Label(self._example(found), px=tokens.LABEL, wrap=True), 2)
        return line

    def _said(self, best: Suited) -> str:
        spoken = language()
        said = [
            tr("pc.storage.reads", rate=round(best.samples_per_second)),
            tr("pc.storage.epoch", first=duration(best.first_epoch_s, spoken),
               later=duration(max(best.later_epoch_s, 0.001), spoken)),
        ]  # fmt: skip
        if best.years is not None and best.years < WARRANTY_YEARS:
            said.append(tr("pc.storage.years", years=round(best.years, 1)))
        elif best.years is not None:
            said.append(tr("pc.storage.outlasts"))
        if best.enough is not None:
            said.append(tr("pc.storage.enough" if best.enough else "pc.storage.starves"))
        return " ".join(said)

    def _example(self, found: tuple[Suited, ...]) -> str:
        """Name the cheapest drive of the class that holds the work."""
        book, currency = price_book(), currency_of(self._session.plan)
        priced = [(item_of(Wish(one.drive), book, currency), one.drive) for one in found]
        known = [(item.price.expected, item, drive) for item, drive in priced if item.price]
        if not known:
            return found[0].drive.name if found else ""
        _, item, drive = min(known, key=lambda one: (one[0], one[2].name))
        return tr("pc.storage.example", name=drive.name, price=item_amount(item))


class Mark(Painted):
    """Whether a class of drive suits, as a sign; the words beside it say the same."""

    def __init__(self, state: str) -> None:
        super().__init__(tr(f"pc.storage.state.{state}"), height=24)
        self._state = state
        self.setFixedWidth(24)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.icon(STATE_ICON[self._state], 2, 3, 18, f"{self._state}Fill")


def state(best: Suited | None) -> str:
    """Return the state of a class by its fastest drive."""
    if best is None:
        return "na"
    if best.enough is False:
        return "no"
    return "fits" if best.lasts else "tight"


def taken(report: Report | None) -> float | None:
    """Return the samples a second that the plan's GPUs take; None without an answer."""
    speed = report.time.samples_per_second if report is not None else None
    return speed.value if speed is not None else None


def _size(gb: float) -> str:
    return f"{number(gb / 1000)} TB" if gb >= 1000 else f"{number(gb)} GB"
