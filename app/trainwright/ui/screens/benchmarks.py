"""Benchmarks of this computer: what each takes, its start and its end, and what it measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.explain import Kind
from trainwright.messages import Message, UserError
from trainwright.probe.benchmark import Choices, Cost, Name
from trainwright.ui import asking, tokens
from trainwright.ui.figures import bare
from trainwright.ui.i18n import say, tr
from trainwright.ui.measuring import Measuring
from trainwright.ui.paint import Drawing
from trainwright.ui.tasks import Cancellable, Latest
from trainwright.ui.widgets.base import Heading, Label, Painted, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.notice import Strip

if TYPE_CHECKING:
    from trainwright.probe.measurements import Kept, Measurement

NAMES: tuple[Name, ...] = get_args(Name)
_ICONS: Mapping[Name, str] = {
    "disk": "hard-drive", "cpu": "image-square", "gpu": "gauge", "link": "arrows-left-right",
}  # fmt: skip
_COLUMNS = 2


@dataclass(frozen=True, slots=True)
class _Standing:
    """What the cards show while nothing runs."""

    costs: Mapping[Name, Cost | Message]
    kept: "Kept"


class BenchmarkPanel(QWidget):
    """A card each; one runs at a time, and only when it is asked for."""

    measured = Signal()
    """Something new is kept: plans for this computer change."""

    def __init__(self, asked: Measuring) -> None:
        super().__init__()
        self._asked = asked
        self._choices = Choices(folder=self._asked.home)
        self._running: Name | None = None
        self._looking = Latest(self)
        self._looking.done.connect(self._show)
        self._looking.failed.connect(self._note)
        self._job = Cancellable(self)
        self._job.progressed.connect(self._progressed)
        self._job.ended.connect(self._ended)
        program = QCoreApplication.instance()
        if program is not None:
            program.aboutToQuit.connect(self.stop)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.M)
        column.addWidget(Heading(Message.of("bench.screen.title")))
        column.addWidget(Label(Message.of("bench.screen.lead"), colour="text2", wrap=True))
        self.note = Strip("info")
        self.note.hide()
        column.addWidget(self.note)
        sides = QHBoxLayout()
        sides.setSpacing(tokens.L)
        columns = [QVBoxLayout() for _ in range(_COLUMNS)]
        for side in columns:
            side.setSpacing(tokens.L)
            sides.addLayout(side, 1)
        self.cards = {name: BenchmarkCard(name) for name in NAMES}
        for number, card in enumerate(self.cards.values()):
            columns[number % _COLUMNS].addWidget(card)
            card.started.connect(partial(self._start, card.bench))
            card.cancelled.connect(self._job.cancel)
        self.cards["disk"].chosen.connect(self._choose_folder)
        for side in columns:
            side.addStretch(1)
        column.addLayout(sides)

    def entered(self) -> None:
        """Read what is kept and what each takes."""
        asked, choices = self._asked, self._choices
        self._looking.submit(lambda: _standing(asked, choices))

    def stop(self) -> None:
        """End what runs and wait for its child to be gone."""
        self._job.cancel()
        self._job.wait()

    def _choose_folder(self) -> None:
        folder = asking.folder_to_measure(self, self._choices.folder)
        if folder is not None:
            self.measure_in(folder)

    def measure_in(self, folder: Path) -> None:
        """Take another folder for the drive."""
        self._choices = replace(self._choices, folder=folder)
        self.entered()

    def _show(self, standing: Any) -> None:
        for name, card in self.cards.items():
            card.show_cost(standing.costs[name], self._choices)
            card.show_results(_of(name, standing.kept))
        self._show_busy()
        if standing.kept.note is not None:
            self._note(standing.kept.note)

    def _note(self, message: Message) -> None:
        self.note.label.tell(message)
        self.note.show()

    def _start(self, name: Name) -> None:
        if self._running is not None:
            return
        self._running = name
        asked = self._asked
        choices = replace(self._choices, interpreter=asked.interpreter(),
                          force=self.cards[name].hindered)  # fmt: skip
        self.note.hide()
        self._show_busy()
        self._job.start(
            lambda report, cancelled: asked.run(
                name, choices, lambda share, id: report((share, id)), cancelled.is_set
            )
        )

    def _progressed(self, progress: Any) -> None:
        if self._running is not None:
            self.cards[self._running].show_progress(*progress)

    def _ended(self, outcome: Any, problem: Any) -> None:
        name, self._running = self._running, None
        if name is None:
            return
        self.cards[name].show_end(outcome.notes if outcome is not None else (), problem)
        self._show_busy()
        self.entered()
        if outcome is not None:
            self.measured.emit()

    def _show_busy(self) -> None:
        for name, card in self.cards.items():
            card.show_busy(running=name == self._running, others=self._running is not None)


def _standing(asked: Measuring, choices: Choices) -> _Standing:
    costs: dict[Name, Cost | Message] = {}
    for name in NAMES:
        try:
            costs[name] = asked.cost(name, choices)
        except UserError as error:
            costs[name] = error.message
    return _Standing(costs, asked.kept())


def _of(name: Name, kept: "Kept") -> "tuple[Measurement, ...]":
    """Return the last measurements of a benchmark: those of its last device."""
    from trainwright.probe.benchmarks import PREFIXES

    found = [one for prefix in PREFIXES[name] for one in kept.below(prefix)]
    latest: dict[str, Measurement] = {}
    for one in sorted(found, key=lambda one: one.date):
        latest[one.what] = one
    last = max((one.date for one in found), default="")
    device = next((one.on for one in found if one.date == last), "")
    return tuple(one for one in latest.values() if one.on == device)


class BenchmarkCard(Surface):
    """One benchmark."""

    started = Signal()
    cancelled = Signal()
    chosen = Signal()

    def __init__(self, name: Name) -> None:
        super().__init__(padding=(tokens.L, tokens.L, tokens.L, tokens.L), gap=tokens.S)
        self.bench = name
        self.hindered = False
        """Whether it was refused for now, so that another start means it all the same."""
        self._head = _Head(name)
        self.column.addWidget(self._head)
        self.takes = Label("", px=tokens.LABEL, colour="text2", wrap=True)
        self.column.addWidget(self.takes)
        self.column.addLayout(self._buttons())
        self.bar = _Bar()
        self.bar.hide()
        self.column.addWidget(self.bar)
        self.says = Label("", px=tokens.LABEL, colour="tight", wrap=True)
        self.says.hide()
        self.column.addWidget(self.says)
        self._results = QGridLayout()
        self._results.setHorizontalSpacing(tokens.M)
        self._results.setVerticalSpacing(6)
        self._results.setColumnStretch(0, 1)
        self.column.addLayout(self._results)
        self.dated = Label(Message.of("bench.screen.never"), px=tokens.LABEL, colour="text3",
                           wrap=True)  # fmt: skip
        self.column.addWidget(self.dated)

    def _buttons(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        title = tr(f"bench.name.{self.bench}")
        self.start = Button(Message.of("bench.screen.start"), "secondary", "play", small=True,
                            name=f"{tr('bench.screen.start')}: {title}")  # fmt: skip
        self.start.clicked.connect(self.started)
        self.start.setEnabled(False)
        self.cancel = Button(Message.of("bench.screen.cancel"), "secondary", "x", small=True,
                             name=f"{tr('bench.screen.cancel')}: {title}")  # fmt: skip
        self.cancel.clicked.connect(self.cancelled)
        self.cancel.hide()
        line.addWidget(self.start)
        line.addWidget(self.cancel)
        if self.bench == "disk":
            self.folder = Button(Message.of("bench.screen.folder"), "ghost", "folder-open",
                                 small=True)  # fmt: skip
            self.folder.clicked.connect(self.chosen)
            line.addWidget(self.folder)
        line.addStretch(1)
        return line

    def show_cost(self, cost: Cost | Message, choices: Choices) -> None:
        """Show what it takes, or why it cannot be run."""
        if isinstance(cost, Message):
            self.takes.tell(cost)
            return
        from trainwright.probe import benchmarks

        self.takes.tell(benchmarks.said(self.bench, cost, choices))

    def show_busy(self, *, running: bool, others: bool) -> None:
        """Show whether this one runs, or has to wait for another."""
        self.start.setEnabled(not others)
        self.start.setVisible(not running)
        self.cancel.setVisible(running)
        self.bar.setVisible(running)
        if self.bench == "disk":
            self.folder.setEnabled(not others)
        if running:
            self.says.hide()
            self.bar.show_progress(0.0, "")

    def show_progress(self, share: float, id: str) -> None:
        """Show how far it is."""
        self.bar.show_progress(share, tr(id))

    def show_end(self, notes: Sequence[Message], problem: Message | None) -> None:
        """Show what there is to say of the run that ended."""
        said = [problem] if problem is not None else list(notes)
        self.hindered = problem is not None and problem.id in ("bench.on-battery", "bench.gpu-busy")
        if self.hindered:
            said.append(Message.of("bench.screen.again"))
        self.says.setText("\n".join(say(each) for each in said))
        self.says.paint_in("tight" if problem is not None else "text2")
        self.says.setVisible(bool(said))

    def show_results(self, measurements: "Sequence[Measurement]") -> None:
        """Show what it measured last."""
        from trainwright.probe import measured

        clear(self._results)
        for line, one in enumerate(measurements):
            name = Label(measured.title(one), px=tokens.LABEL, colour="text2", wrap=True)
            self._results.addWidget(name, line, 0)
            figure = str(bare(one.value, one.unit))
            value = Label(figure, px=tokens.LABEL, weight=600)
            value.setAccessibleName(f"{say(measured.title(one))}: {figure}")
            self._results.addWidget(value, line, 1, Qt.AlignmentFlag.AlignRight)
        self._head.show_mark(bool(measurements))
        if not measurements:
            self.dated.tell(Message.of("bench.screen.never"))
            return
        last = max(measurements, key=lambda one: one.date)
        marks = [mark for each in measurements for mark in measured.flags(each)]
        values = {"date": last.date[:16].replace("T", " "), "source": _without_date(last)}
        id = "bench.screen.dated-marked" if marks else "bench.screen.dated"
        self.dated.tell(Message.of(id, **values, marks=list(dict.fromkeys(map(say, marks)))))


def _without_date(one: "Measurement") -> str:
    from trainwright.probe import measured

    return measured.source(one).partition(", ")[2]


class _Head(Painted):
    """Icon, name, and the sign of what is measured."""

    def __init__(self, name: Name) -> None:
        super().__init__(Message.of(f"bench.name.{name}"), height=24)
        self._icon, self._title = _ICONS[name], tr(f"bench.name.{name}")
        self._marked = False

    def show_mark(self, marked: bool) -> None:
        """Show whether there is something measured below."""
        self._marked = marked
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.icon(self._icon, 0, 3, 18, "text2")
        used = d.write(26, 0, w - 50, h, self._title, px=tokens.SECTION, weight=600)
        if self._marked:
            d.mark(26 + used + 10, h / 2, Kind.MEASURED)


class _Bar(Painted):
    """How far a run is, and with what."""

    def __init__(self) -> None:
        super().__init__(Message.of("bench.screen.progress"), height=34)
        self._share, self._text = 0.0, ""

    def show_progress(self, share: float, text: str) -> None:
        """Show another moment."""
        self._share, self._text = share, text
        self.setAccessibleName(f"{tr('bench.screen.progress')}: {share:.0%} {text}")
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.box(0, 2, w, 8, "sunken", "line", radius=4)
        if self._share > 0:
            d.box(0, 2, max(8.0, w * self._share), 8, "accent", radius=4)
        d.write(0, 13, w, 18, self._text, px=tokens.MICRO, colour="text3")
