"""The jobs that want instances: typed in, or from a file; and where each runs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pydantic import ValidationError
from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.messages import Message, UserError
from trainwright.messages.units import duration, gib
from trainwright.mig.board import plain_name
from trainwright.mig.boards import Boards, Place
from trainwright.mig.drawings import Typed
from trainwright.mig.jobs import Need, read
from trainwright.mig.packing import MOST_JOBS
from trainwright.mig.planning import WHOLE, Planned
from trainwright.ui import asking, tokens
from trainwright.ui.i18n import language, tr
from trainwright.ui.widgets.base import Heading, Label, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Stepper
from trainwright.ui.widgets.entry import Entry
from trainwright.ui.widgets.migjobrow import JobRow, Placed

MOST_ROWS = 12
"""Rows that are typed; assumed, more are better off in a file."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Everything that a person has asked for."""

    rows: tuple[Typed, ...] = (Typed(), Typed())
    file: Path | None = None
    needs: tuple[Need, ...] = field(default=())
    """Those of the file."""


class JobsCard(Surface):
    """Rows of jobs, or a file's; and the instance of each once they are arranged."""

    arranged = Signal(object, object)
    """(needs, folder): find the best instances for them."""
    changed = Signal()
    picked = Signal(int)
    """A job was clicked: it wants an instance."""
    carried = Signal(int, QPoint)
    let_go = Signal(int)
    given_up = Signal()

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L), gap=tokens.M)
        self.wanted = wanted
        self.heading = Heading(Message.of("ui.mig.jobs"))
        self.column.addWidget(self.heading)
        lead = Label(Message.of("ui.mig.jobs.lead"), px=tokens.LABEL, colour="text2", wrap=True)
        self.column.addWidget(lead)
        self._holder = QWidget()
        self._grid = QGridLayout(self._holder)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(tokens.S)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(0, 3)
        for number in (1, 2):
            self._grid.setColumnStretch(number, 2)
        self.column.addWidget(self._holder)
        self.column.addLayout(self._buttons())
        self.says = Label("", px=tokens.LABEL, colour="no", wrap=True)
        self.says.hide()
        self.column.addWidget(self.says)
        self._placed = QVBoxLayout()
        self._placed.setSpacing(0)
        self.column.addLayout(self._placed)
        self.placed: list[JobRow] = []
        self._show_rows()

    def _buttons(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        self.arrange = Button(Message.of("ui.mig.arrange"), "primary", "magic-wand")
        self.more = Button(Message.of("ui.mig.job.add"), "secondary", "plus")
        self.file = Button(Message.of("ui.mig.job.file"), "secondary", "folder-open")
        for button, slot in (
            (self.arrange, self._arrange),
            (self.more, self._add),
            (self.file, self._open),
        ):
            button.clicked.connect(slot)
            line.addWidget(button)
        line.addStretch(1)
        return line

    def tell(self, text: Message | None, *, wrong: bool = True) -> None:
        """Say what is wrong with the jobs, or what is done with them; None takes it back."""
        self.says.paint_in("no" if wrong else "text2")
        self.says.tell(text or "")
        self.says.setVisible(text is not None)

    # Rows

    def _show_rows(self) -> None:
        clear(self._grid)
        self.rows: list[tuple[Entry, Entry, Entry, Stepper]] = []
        if self.wanted.file is not None:
            values = {
                "file": self.wanted.file.name,
                "asked": sum(n.count for n in self.wanted.needs),
            }
            self._grid.addWidget(Label(Message.of("ui.mig.job.from", **values), wrap=True), 0, 0)
            back = Button(Message.of("ui.mig.job.back"), "ghost", "x", small=True)
            back.clicked.connect(self._forget_file)
            self._grid.addWidget(back, 0, 1)
            self.more.hide()
            return
        self.more.setVisible(len(self.wanted.rows) < MOST_ROWS)
        for column, key in enumerate(("name", "memory", "hours", "number")):
            title = Label(Message.of(f"ui.mig.job.{key}"), px=tokens.MICRO, weight=600,
                          colour="text2")  # fmt: skip
            self._grid.addWidget(title, 0, column)
        for line, typed in enumerate(self.wanted.rows):
            self._add_row(line, typed)

    def _add_row(self, line: int, typed: Typed) -> None:
        def named(key: str) -> str:
            return f"{tr(f'ui.mig.job.{key}')} {line + 1}"

        fields = (
            Entry(name=named("name"), hint=Message.of("ui.mig.job.name.hint")),
            Entry(name=named("memory"), hint=Message.of("ui.mig.job.memory.hint"), least=64),
            Entry(name=named("hours"), hint=Message.of("ui.mig.job.hours.hint"), least=64),
        )
        for column, (entry, text) in enumerate(
            zip(fields, (typed.name, typed.memory, typed.hours), strict=True)
        ):
            entry.setText(text)
            entry.textEdited.connect(self._typed)
            entry.returnPressed.connect(self._arrange)
            self._grid.addWidget(entry, line + 1, column)
        number = Stepper(typed.number, name=named("number"), high=MOST_JOBS)
        number.chosen.connect(self._typed)
        self._grid.addWidget(number, line + 1, 3)
        away = Button("", "ghost", "x", name=f"{tr('ui.mig.job.remove')} {line + 1}", small=True)
        away.clicked.connect(partial(self._remove, line))
        self._grid.addWidget(away, line + 1, 4)
        self.rows.append((*fields, number))

    def _typed(self) -> None:
        rows = tuple(
            Typed(
                name=name.text(),
                memory=memory.text(),
                hours=hours.text(),
                number=number.value(),
            )
            for name, memory, hours, number in self.rows
        )
        self.wanted = Wanted(rows)
        self.changed.emit()

    def _put(self, wanted: Wanted) -> None:
        self.show_wanted(wanted)
        self.changed.emit()

    def _add(self) -> None:
        self._put(Wanted((*self.wanted.rows, Typed())))
        self.rows[-1][0].setFocus()

    def _remove(self, line: int) -> None:
        rows = self.wanted.rows
        self._put(Wanted((*rows[:line], *rows[line + 1 :]) or (Typed(),)))

    def _forget_file(self) -> None:
        self._put(Wanted(self.wanted.rows))

    def _open(self) -> None:
        path = asking.jobs_file(self)
        if path is not None:
            self.open(path)

    def show_wanted(self, wanted: Wanted) -> None:
        """Show other rows, or a file's jobs."""
        self.wanted = wanted
        self.tell(None)
        self._show_rows()

    def open(self, path: Path) -> None:
        """Take the jobs of a file, and arrange them."""
        try:
            needs = read(path)
        except UserError as error:
            self.tell(error.message)
            return
        self._put(Wanted(self.wanted.rows, path, needs))
        self._arrange()

    def _arrange(self) -> None:
        try:
            needs = self.wanted.needs or _needs(self.wanted.rows)
        except UserError as error:
            self.tell(error.message)
            return
        folder = self.wanted.file.parent if self.wanted.file is not None else Path()
        self.tell(Message.of("ui.mig.arranging"), wrong=False)
        self.arranged.emit(needs, folder)

    # Where each runs

    def show_planned(self, planned: Planned | None, drawn: Boards, labels: Sequence[str]) -> None:
        """Show each job's instance as the boards stand now; ``labels`` tell several apart."""
        rows = _placed(planned, drawn, labels) if planned is not None else []
        if [row.job.name for row in self.placed] != [job.name for job in rows]:
            clear(self._placed)
            self.placed = [JobRow(job) for job in rows]
            for number, row in enumerate(self.placed):
                self._placed.addWidget(row)
                row.clicked.connect(partial(self.picked.emit, number))
                row.dragged.connect(partial(self.carried.emit, number))
                row.dropped.connect(partial(self._dropped, number))
                row.left.connect(self.given_up)
        for row, job in zip(self.placed, rows, strict=True):
            row.show_job(job)
        found = sum(job.at is not None for job in rows)
        note = Message.of("cli.mig.placed", placed=found, jobs=len(rows)) if rows else ""
        self.heading.annotate(note)

    def _dropped(self, number: int, _at: QPoint) -> None:
        self.let_go.emit(number)


def _placed(planned: Planned, drawn: Boards, labels: Sequence[str]) -> list[Placed]:
    """Return the jobs in their order, each with an instance of its name."""
    waiting: dict[str, list[Place]] = {}
    for place, job in sorted(drawn.jobs.items(), key=lambda each: _order(each[0])):
        waiting.setdefault(job, []).append(place)
    rows = []
    for need, on in zip(planned.needs, planned.on, strict=True):
        places = waiting.get(need.name)
        at = places.pop(0) if places else None
        here = on.get(plain_name(at.instance.profile)) if at is not None else None
        memory = f"{'~' if need.plan else ''}{gib(on[WHOLE].memory_bytes)}"
        seconds = here.seconds if here is not None else None
        done = f"~{duration(seconds, language())}" if seconds else "–"
        where = None if at is None else (labels[at.gpu], at.instance.shown)
        shown = ", ".join(filter(None, where)) if where is not None else ""
        rows.append(Placed(need.name, memory, at, shown, done))
    return rows


def _order(place: Place) -> tuple[int, int]:
    return place.gpu, place.instance.start or 0


def _needs(rows: Sequence[Typed]) -> tuple[Need, ...]:
    """Return the rows that say something.

    Raises:
        UserError: a row is not a job, or there is none, or there are too many.
    """
    needs = [
        _need(line, row)
        for line, row in enumerate(rows, 1)
        if any((row.name.strip(), row.memory.strip(), row.hours.strip()))
    ]
    if not needs:
        raise UserError.of("ui.mig.job.nothing")
    total = sum(need.count for need in needs)
    if total > MOST_JOBS:
        raise UserError.of("mig.too-many-jobs", asked=total, most=MOST_JOBS)
    return tuple(needs)


def _need(line: int, row: Typed) -> Need:
    name = row.name.strip() or f"{tr('cli.mig.job')} {line}"
    try:
        return Need(
            name=name,
            count=row.number,
            memory_gib=_figure(row.memory),
            hours=_figure(row.hours),
        )
    except (ValidationError, ValueError):
        raise UserError.of("ui.mig.job.bad", line=line) from None


def _figure(text: str) -> float | None:
    """Return a number with a point or a comma; None where nothing was typed."""
    text = text.strip().replace(",", ".")
    return float(text) if text else None
