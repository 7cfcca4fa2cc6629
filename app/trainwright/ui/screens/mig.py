"""Cut a GPU: a board to drag profiles onto, jobs that arrange themselves, and the commands."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QPoint, QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from trainwright.catalog import GpuRecord
from trainwright.messages import Message, UserError
from trainwright.mig import board, boards
from trainwright.mig.board import Sketch
from trainwright.mig.boards import Boards, Place
from trainwright.mig.drawings import Drawing
from trainwright.mig.jobs import Need
from trainwright.mig.live import Live, live, now
from trainwright.mig.planning import Planned, plan_jobs
from trainwright.plan.evaluate import Facts, Pending
from trainwright.plan.schema import Plan
from trainwright.ui import tokens
from trainwright.ui.core import Core
from trainwright.ui.history import History
from trainwright.ui.i18n import say, tr
from trainwright.ui.screens.migcommands import CommandsCard, WaysCard
from trainwright.ui.screens.migdesk import (
    Desk,
    Lives,
    blank,
    by_record,
    cuttable,
    desk_of,
    drawing_of,
    first_gpu,
    of_plan,
    record_of,
    with_tables,
)
from trainwright.ui.screens.mighead import MigHead, SaysLine
from trainwright.ui.screens.migjobs import JobsCard
from trainwright.ui.session import Session
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import SCROLL_BAR, Heading, Label, Scroll, Surface, clear
from trainwright.ui.widgets.migboard import Strip
from trainwright.ui.widgets.migpalette import ProfileRow, RowHeads
from trainwright.ui.widgets.migstrips import Strips


class MigScreen(QWidget):  # Long: a method for each gesture on the boards.
    """The board above, palette and jobs below it, ways and commands at the right."""

    stepped = Signal()
    """There is something else to undo."""

    def __init__(self, session: Session, core: Core) -> None:
        super().__init__()
        self._session, self._core = session, core
        self._asked = False
        self._reading, self._packing = Latest(self), Latest(self)
        self._reading.done.connect(self._read)
        self._packing.done.connect(self._packed)
        self._packing.failed.connect(self._not_packed)
        kept = session.cut
        self._desk = kept if isinstance(kept, Desk) else Desk(first_gpu(session.plan))
        if session.board.value is None:
            session.board.open(drawing_of(self._desk), None, saved=True)
        self._lay_out()
        self._show_gpu()
        self._say(None)

    # What stands where

    def _lay_out(self) -> None:
        outer = QVBoxLayout(self)
        outer.setContentsMargins(tokens.L, tokens.M, tokens.L, 0)
        outer.setSpacing(tokens.M)
        self._head = head = MigHead(lambda: self._session.lesson_wanted.emit("sharing"))
        outer.addWidget(head)
        self.gpu, self.number = head.gpu, head.number
        self.undo, self.redo = head.undo, head.redo
        self.empty, self.current = head.empty, head.current
        sides = QHBoxLayout()
        sides.setSpacing(tokens.M)
        outer.addLayout(sides, 1)
        left = QVBoxLayout()
        left.setSpacing(tokens.S)
        self.strips = Strips()
        left.addWidget(self.strips)
        self._line = SaysLine()
        self.says = self._line.says
        left.addWidget(self._line)
        self._below = QWidget()
        column = QVBoxLayout(self._below)
        column.setContentsMargins(0, 0, 0, tokens.L)
        column.setSpacing(tokens.M)
        self.palette_card = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=0)
        self.palette_card.column.addWidget(
            Heading(Message.of("ui.mig.palette"), Message.of("ui.mig.palette.note"))
        )
        self._origin = Label("", px=tokens.LABEL, colour="text2", wrap=True)
        self.palette_card.column.addWidget(self._origin)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        self.palette_card.column.addLayout(self._rows)
        self.jobs = JobsCard(self._desk.wanted)
        for card in (self.palette_card, self.jobs):
            column.addWidget(card)
        column.addStretch(1)
        left.addWidget(Scroll(self._below), 1)
        sides.addLayout(left, 5)
        self._column, self._left = column, left
        self._aside = self._right()
        sides.addWidget(self._aside, 2)
        self._connect()

    def minimumSizeHint(self) -> QSize:
        """Return the least size: in a narrow window the right side's cards go below the others."""
        least = super().minimumSizeHint()
        wide = max(self._left.minimumSize().width(), self._head.minimumSizeHint().width())
        return QSize(wide + 2 * tokens.L, least.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Move the cards to where the width has room for them."""
        super().resizeEvent(event)
        self._fold()

    def _fold(self) -> None:
        cards = self.commands, self.ways
        aside = max(card.minimumSizeHint().width() for card in cards) + SCROLL_BAR
        narrow = self.width() < self.minimumSizeHint().width() + tokens.M + aside
        if narrow == self._aside.isHidden():
            return
        self._aside.setHidden(narrow)
        column = self._column if narrow else self._right_column
        for card in cards:
            column.insertWidget(column.count() - 1, card)  # above the stretch

    def _right(self) -> QWidget:
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, tokens.L)
        column.setSpacing(tokens.M)
        self._right_column = column
        self.commands, self.ways = CommandsCard(), WaysCard()
        for card in (self.commands, self.ways):
            column.addWidget(card)
        column.addStretch(1)
        return Scroll(body)

    def _connect(self) -> None:
        self.gpu.chosen.connect(self._choose_gpu)
        self.number.chosen.connect(self._choose_number)
        self.undo.clicked.connect(lambda: self._put(boards.undo(self.boards)))
        self.redo.clicked.connect(lambda: self._put(boards.redo(self.boards)))
        self.empty.clicked.connect(lambda: self._put(boards.cleared(self.boards)))
        self.current.clicked.connect(self._start_from_current)
        self.strips.wanted.connect(self._add_to)
        self.strips.carried.connect(self._carry)
        self.strips.crossed.connect(self._carry)
        self.strips.removed.connect(self._remove)
        self.strips.said.connect(self._say)
        self.strips.chosen.connect(self._activate)
        self.jobs.changed.connect(self._jobs_changed)
        self.jobs.arranged.connect(self._arrange)
        self.jobs.carried.connect(self._carry_job)
        self.jobs.let_go.connect(self._drop_job)
        self.jobs.given_up.connect(self.strips.give_up)
        self.jobs.picked.connect(self._pick_job)

    # The GPU

    def entered(self) -> None:
        """Look once which GPUs of this computer can be cut, and how they are."""
        if not self._asked:
            self._asked = True
            self._reading.submit(self._core.snapshot)

    def take(self, drawing: Drawing) -> Drawing:
        """Lay out what a file holds, and return it as it lies there.

        Raises:
            UserError: a GPU or a profile is unknown, or an instance has no place.
        """
        self._desk = self._session.cut = desk_of(drawing, self._lives)
        self.jobs.show_wanted(self._desk.wanted)
        self._show_gpu()
        self._say(None)
        return drawing_of(self._desk)

    def _read(self, snapshot: Any) -> None:
        found = by_record(live(snapshot.nvidia))
        if not found:
            return
        desk = with_tables(self._desk, {**self._lives, **found})
        if desk.untouched and of_plan(self._session.plan) is None:
            desk = replace(desk, gpu=next(iter(found)))
        self._keep(desk)
        self._show_gpu()

    def _choose_gpu(self, id: str) -> None:
        self._keep(replace(self._desk, gpu=id, active=0, planned=None))
        self._show_gpu()
        self._say(None)

    def _choose_number(self, number: int) -> None:
        """Cut more or fewer GPUs of the kind."""
        sketches = blank(self._desk.gpu, self._lives, number)
        self._keep(replace(self._desk, active=min(self._desk.active, number - 1), planned=None))
        self._put(boards.resized(self.boards, sketches))

    def _activate(self, number: int) -> None:
        """Let a clicked profile go to another GPU."""
        if number != self._desk.active:
            self._keep(replace(self._desk, active=number))
            self.strips.activate(number)
            for row in self.palette_rows:
                row.show_sketch(self.sketch)

    def _show_gpu(self) -> None:
        """Show another GPU's boards and palette."""
        self.gpu.clear()
        for record in cuttable(tuple(filter(None, [of_plan(self._session.plan)])), self._lives):
            local = record.id in self._lives
            name = tr("ui.mig.here", gpu=record.name) if local else record.name
            self.gpu.addItem(name, record.id)
        self.gpu.show_value(self._desk.gpu)
        self.strips.show_boards(self.record, self.boards, self._desk.active, self._labels())
        clear(self._rows)
        self._rows.addWidget(RowHeads())
        self.palette_rows = [
            ProfileRow(self.strips, self.record, self.sketch, profile.name)
            for profile in reversed(self.sketch.table.profiles)
        ]
        for row in self.palette_rows:
            row.clicked.connect(self._row_clicked)
            self._rows.addWidget(row)
        here = self._here()
        self.current.setVisible(any(each.layout or each.names for each in here))
        read = (now(each)[1] for each in here if each.layout)
        told = (here[0].origin, *here[0].differences, *filter(None, read)) if here else ()
        self._origin.setText(" ".join(say(each) for each in told))
        self._origin.setVisible(bool(told))
        self._show()

    @property
    def _lives(self) -> Lives:
        return self._desk.lives

    def _here(self) -> tuple[Live, ...]:
        """Return this computer's GPUs of the kind."""
        return self._lives.get(self._desk.gpu, ())

    def _indices(self) -> list[int]:
        """Return what ``nvidia-smi -i`` calls the GPUs, those of this computer first."""
        indices = [each.index for each in self._here()][: len(self.boards.sketches)]
        following = max(indices, default=-1) + 1
        more = len(self.boards.sketches) - len(indices)
        return [*indices, *range(following, following + more)]

    def _labels(self) -> list[str]:
        """Return what tells several GPUs apart; one alone needs nothing."""
        indices = self._indices()
        return [f"GPU {index}" if len(indices) > 1 else "" for index in indices]

    @property
    def record(self) -> GpuRecord:
        """The GPU that is cut."""
        return record_of(self._desk.gpu, self._lives)

    @property
    def boards(self) -> Boards:
        """What is drawn for all of them."""
        kept = self._desk.boards.get(self._desk.gpu)
        return kept if kept is not None else Boards(blank(self._desk.gpu, self._lives))

    @property
    def sketch(self) -> Sketch:
        """What is drawn for the one that a clicked profile goes to."""
        return self.boards.sketches[self._desk.active]

    @property
    def strip(self) -> Strip:
        """Its strip."""
        return self.strips.strip

    # Edits

    def _row_clicked(self) -> None:
        row = self.sender()
        if isinstance(row, ProfileRow):
            self._add(row.profile, row.clicked_at)

    def _add(self, profile: str, start: int | None) -> None:
        """Add an instance to the active GPU; without a start, to the next that has room for it."""
        gpu = self._desk.active
        if start is None:
            found = boards.home(self.boards, profile, gpu)
            gpu = gpu if found is None else found
        self._add_to(gpu, profile, start)

    def _add_to(self, gpu: int, profile: str, start: int | None) -> None:
        before = self.boards.sketches[gpu]
        self._try(lambda: boards.put(self.boards, {gpu: board.add(before, profile, start)}))
        new = set(self.boards.sketches[gpu].layout) - set(before.layout)
        for each in new:
            self._say(self._added(Place(gpu, each)), good=True)

    def _added(self, place: Place) -> Message:
        values = {"profile": place.instance.profile, "start": place.instance.start}
        if len(self.boards.sketches) == 1:
            return Message.of("ui.mig.added", **values)
        return Message.of("ui.mig.added-to", **values, gpu=self._labels()[place.gpu])

    def _carry(self, place: Place, gpu: int, start: int | None = None) -> None:
        before = set(self.boards.sketches[gpu].layout)
        self._try(lambda: boards.carry(self.boards, place, gpu, start))
        new = set(self.boards.sketches[gpu].layout) - before
        if new:
            self._activate(gpu)
            self._show(Place(gpu, new.pop()))

    def _remove(self, place: Place) -> None:
        gpu, instance = place.gpu, place.instance
        sketch = self.boards.sketches[gpu]
        left = [each for each in sketch.layout if each != instance]
        following = next((each for each in left if (each.start or 0) > (instance.start or 0)), None)
        chosen = following or (left[-1] if left else None)
        self._try(
            lambda: boards.put(self.boards, {gpu: board.remove(sketch, instance)}),
            Place(gpu, chosen) if chosen is not None else None,
        )
        if chosen is None and self.palette_rows:
            self.palette_rows[0].setFocus()

    def _try(self, edit: Callable[[], Boards], chosen: Place | None = None) -> None:
        try:
            made = edit()
        except UserError as error:
            self._say(error.message)
            return
        self._say(None)
        self._put(made, chosen)

    def _start_from_current(self) -> None:
        """Draw what this computer's GPUs are cut into now."""
        changed, notes = {}, []
        for number, (found, sketch) in enumerate(zip(self._here(), self.boards.sketches)):  # noqa: B905
            try:
                layout, note = now(found)
            except UserError as error:
                self._say(error.message)
                return
            changed[number] = replace(board.replaced(sketch, layout, {}), current=layout)
            notes += [note] if note is not None else []
        self._put(boards.put(self.boards, changed))
        if notes:
            self._say(notes[0], good=True)

    def _put(self, made: Boards, chosen: Place | None = None) -> None:
        active = min(self._desk.active, len(made.sketches) - 1)
        kept = {**self._desk.boards, self._desk.gpu: made}
        self._keep(replace(self._desk, boards=kept, active=active))
        self._show(chosen)

    def _keep(self, desk: Desk) -> None:
        self._desk = self._session.cut = desk
        self._session.board.changed(drawing_of(desk))

    def _show(self, chosen: Place | None = None) -> None:
        drawn, labels = self.boards, self._labels()
        self.strips.show_boards(self.record, drawn, self._desk.active, labels, chosen)
        self.number.show_value(len(drawn.sketches))
        for row in self.palette_rows:
            row.show_sketch(self.sketch)
        self.undo.setEnabled(bool(drawn.past))
        self.redo.setEnabled(bool(drawn.ahead))
        self.stepped.emit()
        self.empty.setEnabled(not drawn.empty)
        here = self._here()
        on = [at < len(here) and here[at].on for at in range(len(drawn.sketches))]
        self.commands.show_sketches(drawn.sketches, self._indices(), on)
        self.jobs.show_planned(self._desk.planned, drawn, labels)
        self.ways.show_planned(self._desk.planned)

    def _say(self, text: Message | None, *, good: bool = False) -> None:
        self._line.say(text, good=good)

    # Jobs

    def _jobs_changed(self) -> None:
        self._keep(replace(self._desk, wanted=self.jobs.wanted))

    def _arrange(self, needs: Sequence[Need], folder: Path) -> None:
        record, drawn, core, here = self.record, self.boards, self._core, self._here()
        table = self.sketch.table
        if table.units is None:
            unknown = Message.of("mig.placements-unknown", gpu=table.name)
            self.jobs.tell(here[0].origin if here else unknown)
            return

        def facts_of(plan: Plan) -> Facts:
            found = core.resolve(plan)
            if isinstance(found, Pending):
                raise UserError.of("ui.mig.job.untraced", plan=plan.name)
            return found

        self.jobs.arrange.setEnabled(False)
        self._packing.submit(
            lambda: plan_jobs(
                record,
                table,
                needs,
                folder,
                facts_of,
                count=len(drawn.sketches),
                current=[sketch.current for sketch in drawn.sketches],
                like=here[0].like if here else None,
            )
        )

    def _packed(self, planned: Planned) -> None:
        self.jobs.arrange.setEnabled(True)
        self.jobs.tell(None)
        layouts = planned.packed.layouts
        if planned.table != self.sketch.table or len(layouts) != len(self.boards.sketches):
            return  # another GPU was chosen meanwhile, or another number
        self._keep(replace(self._desk, planned=planned))
        pairs = list(zip(planned.needs, planned.packed.jobs, strict=True))
        jobs = {Place(*at): need.name for need, at in pairs if at is not None}
        self._put(boards.arranged(self.boards, layouts, jobs))
        if planned.unplaced:
            self._say(planned.unplaced[0])
        else:
            self._say(Message.of("ui.mig.arranged", number=len(planned.needs)), good=True)

    def _too_small(self, number: int, profile: str) -> Message | None:
        """Return why a job cannot run on an instance; None where it can."""
        planned = self._desk.planned
        on = planned.on[number].get(board.plain_name(profile)) if planned is not None else None
        if planned is None or on is None or on.fits:
            return None
        there = board.share(self.record, self.sketch.table, profile).memory_bytes
        values = {"needed": on.memory_bytes, "profile": profile, "memory": there}
        return Message.of("ui.mig.job.too-large", job=planned.needs[number].name, **values)

    def _carry_job(self, number: int, at: QPoint) -> None:
        name = self.jobs.placed[number].job.name
        self.strips.carry_job(name, at, lambda each: self._too_small(number, each.profile))

    def _drop_job(self, number: int) -> None:
        place = self.strips.drop_job()
        if place is not None:
            self._assign(number, place)

    def _pick_job(self, number: int) -> None:
        """Put a job onto the smallest instance without one that it fits, or onto a new one."""
        if self.jobs.placed[number].job.at is not None:
            return
        plain = (each for each in self.sketch.table.profiles if each.plain)
        kinds = sorted(plain, key=lambda each: (each.size or 0, each.slices))
        fitting = [each.name for each in kinds if self._too_small(number, each.name) is None]
        job = self.jobs.placed[number].job.name
        found = boards.seated(self.boards, job, fitting, self._desk.active)
        if found is None:
            self._say(Message.of("mig.unplaced", names=job))
            return
        made, place = found
        self._put(made)
        self._say_given(job, place)

    def _assign(self, number: int, place: Place) -> None:
        job = self.jobs.placed[number].job
        self._put(boards.assign(self.boards, place, job.name, before=job.at))
        self._say_given(job.name, place)

    def _say_given(self, job: str, place: Place) -> None:
        shown = ", ".join(filter(None, (self._labels()[place.gpu], place.instance.shown)))
        self._say(Message.of("ui.mig.job.given", job=job, instance=shown), good=True)

    def _not_packed(self, problem: Message) -> None:
        self.jobs.arrange.setEnabled(True)
        self.jobs.tell(problem)

    @property
    def history(self) -> History:
        """The steps of the board."""
        drawn, board = self.boards, Message.of("ui.history.board")
        return History(
            board if drawn.past else None,
            board if drawn.ahead else None,
            lambda: self._put(boards.undo(drawn)),
            lambda: self._put(boards.redo(drawn)),
        )

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._fold()  # least widths changed
        return super().event(event)
