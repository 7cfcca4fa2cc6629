"""Cut a GPU: a board to drag profiles onto, jobs that arrange themselves, and the commands."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from trainwright.catalog import GpuRecord, find_gpu
from trainwright.catalog.mig import mig_table, mig_tables
from trainwright.messages import Message, UserError
from trainwright.mig import board
from trainwright.mig.board import Sketch
from trainwright.mig.jobs import Need
from trainwright.mig.layout import Instance, Layout
from trainwright.mig.planning import Planned, plan_jobs
from trainwright.plan.evaluate import Facts, Pending
from trainwright.plan.schema import Plan
from trainwright.probe.nvml import Mig, Nvidia
from trainwright.probe.snapshot import Snapshot, gpu_record
from trainwright.ui import tokens
from trainwright.ui.core import Core
from trainwright.ui.screens.computer import Glyph
from trainwright.ui.screens.migcommands import CommandsCard, WaysCard
from trainwright.ui.screens.migjobs import JobsCard, Wanted
from trainwright.ui.session import Session
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import Heading, Label, Scroll, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo
from trainwright.ui.widgets.migboard import Strip
from trainwright.ui.widgets.migpalette import ProfileRow, RowHeads


@dataclass(frozen=True, slots=True)
class Live:
    """How a GPU of this computer is cut now."""

    index: int
    on: bool
    profiles: tuple[str, ...]
    """Of its instances; a driver tells where they lie to administrators only."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What the screen holds; it outlives a change of language."""

    gpu: str
    sketches: dict[str, Sketch] = field(default_factory=dict)
    wanted: Wanted = field(default_factory=Wanted)
    planned: Planned | None = None


class MigScreen(QWidget):
    """The board above, palette and jobs below it, ways and commands at the right."""

    def __init__(self, session: Session, core: Core) -> None:
        super().__init__()
        self._session, self._core = session, core
        self._live: dict[str, Live] = {}
        self._asked = False
        self._reading, self._packing = Latest(self), Latest(self)
        self._reading.done.connect(self._read)
        self._packing.done.connect(self._packed)
        self._packing.failed.connect(self._not_packed)
        kept = session.cut
        self._desk = kept if isinstance(kept, Desk) else Desk(_first(session.plan))
        self._lay_out()
        self._show_gpu()
        self._say(None)

    # What stands where

    def _lay_out(self) -> None:
        outer = QVBoxLayout(self)
        outer.setContentsMargins(tokens.L, tokens.M, tokens.L, 0)
        outer.setSpacing(tokens.M)
        outer.addLayout(self._head())
        sides = QHBoxLayout()
        sides.setSpacing(tokens.M)
        outer.addLayout(sides, 1)
        left = QVBoxLayout()
        left.setSpacing(tokens.S)
        self.strip = Strip()
        left.addWidget(self.strip)
        left.addLayout(self._says_line())
        self._below = QWidget()
        column = QVBoxLayout(self._below)
        column.setContentsMargins(0, 0, 0, tokens.L)
        column.setSpacing(tokens.M)
        self.palette_card = Surface(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=0)
        self.palette_card.column.addWidget(
            Heading(Message.of("ui.mig.palette"), Message.of("ui.mig.palette.note"))
        )
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        self.palette_card.column.addLayout(self._rows)
        self.jobs = JobsCard(self._desk.wanted)
        for card in (self.palette_card, self.jobs):
            column.addWidget(card)
        column.addStretch(1)
        left.addWidget(Scroll(self._below), 1)
        sides.addLayout(left, 5)
        sides.addWidget(self._right(), 2)
        self._connect()

    def _head(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        line.addWidget(Label(Message.of("ui.mig.title"), px=tokens.FIGURE, weight=600))
        line.addSpacing(tokens.M)
        self.gpu = Combo((), "", name=Message.of("ui.mig.gpu"))
        self.gpu.setMaximumWidth(320)
        line.addWidget(self.gpu)
        self.undo = Button("", "ghost", "arrow-u-up-left", name=Message.of("ui.mig.undo"),
                           tip=Message.of("ui.mig.undo"))  # fmt: skip
        self.redo = Button("", "ghost", "arrow-u-up-right", name=Message.of("ui.mig.redo"),
                           tip=Message.of("ui.mig.redo"))  # fmt: skip
        self.empty = Button(Message.of("ui.mig.clear"), "secondary", "eraser", small=True)
        self.current = Button(Message.of("ui.mig.current"), "secondary", "download-simple",
                              small=True)  # fmt: skip
        self.current.hide()
        for button in (self.undo, self.redo, self.empty, self.current):
            line.addWidget(button)
        line.addStretch(1)
        return line

    def _says_line(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setContentsMargins(2, 0, 2, 0)
        line.setSpacing(tokens.S)
        self._sign = QVBoxLayout()
        line.addLayout(self._sign)
        self.says = Label("", px=tokens.LABEL, wrap=True)
        self.says.setMinimumHeight(34)
        self.says.setAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        line.addWidget(self.says, 1)
        return line

    def _right(self) -> QWidget:
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, tokens.L)
        column.setSpacing(tokens.M)
        self.commands, self.ways = CommandsCard(), WaysCard()
        for card in (self.commands, self.ways):
            column.addWidget(card)
        column.addStretch(1)
        return Scroll(body)

    def _connect(self) -> None:
        self.gpu.chosen.connect(self._choose_gpu)
        self.undo.clicked.connect(lambda: self._put(board.undo(self.sketch)))
        self.redo.clicked.connect(lambda: self._put(board.redo(self.sketch)))
        self.empty.clicked.connect(lambda: self._put(board.replaced(self.sketch, (), {})))
        self.current.clicked.connect(self._start_from_current)
        self.strip.wanted.connect(self._add)
        self.strip.moved.connect(self._move)
        self.strip.removed.connect(self._remove)
        self.strip.said.connect(self._say)
        self.jobs.changed.connect(self._jobs_changed)
        self.jobs.arranged.connect(self._arrange)
        self.jobs.carried.connect(self._carry_job)
        self.jobs.let_go.connect(self._drop_job)
        self.jobs.given_up.connect(self.strip.give_up)
        self.jobs.picked.connect(self._pick_job)

    # The GPU

    def entered(self) -> None:
        """Look once which GPUs of this computer can be cut, and how they are."""
        if not self._asked:
            self._asked = True
            self._reading.submit(self._core.snapshot)

    def _read(self, snapshot: Any) -> None:
        self._live = _cut_now(snapshot)
        if not self._live:
            return
        untouched = not any(sketch.past for sketch in self._desk.sketches.values())
        if untouched and _of_plan(self._session.plan) is None:
            self._keep(replace(self._desk, gpu=next(iter(self._live))))
        self._show_gpu()

    def _choose_gpu(self, id: str) -> None:
        self._keep(replace(self._desk, gpu=id, planned=None))
        self._show_gpu()
        self._say(None)

    def _show_gpu(self) -> None:
        """Show another GPU's board and palette."""
        known = (*self._live, *filter(None, [_of_plan(self._session.plan)]))
        self.gpu.clear()
        for record in _cuttable(known):
            self.gpu.addItem(record.name, record.id)
        self.gpu.show_value(self._desk.gpu)
        clear(self._rows)
        self._rows.addWidget(RowHeads())
        self.palette_rows = [
            ProfileRow(self.strip, self.record, self.sketch, profile.name)
            for profile in reversed(self.sketch.table.profiles)
        ]
        for row in self.palette_rows:
            row.clicked.connect(self._row_clicked)
            self._rows.addWidget(row)
        live = self._live.get(self._desk.gpu)
        self.current.setVisible(live is not None and bool(live.profiles))
        self._show()

    @property
    def record(self) -> GpuRecord:
        """The GPU that is cut."""
        return find_gpu(self._desk.gpu).record

    @property
    def sketch(self) -> Sketch:
        """What is drawn for it."""
        kept = self._desk.sketches.get(self._desk.gpu)
        if kept is None:
            table = mig_table(self.record)
            assert table is not None
            kept = Sketch(table)
        return kept

    # Edits

    def _row_clicked(self) -> None:
        row = self.sender()
        if isinstance(row, ProfileRow):
            self._add(row.profile, row.clicked_at)

    def _add(self, profile: str, start: int | None) -> None:
        before = set(self.sketch.layout)
        self._try(lambda: board.add(self.sketch, profile, start))
        new = next((each for each in self.sketch.layout if each not in before), None)
        if new is not None:
            self._say(Message.of("ui.mig.added", profile=new.profile, start=new.start), good=True)

    def _move(self, instance: Instance, start: int) -> None:
        self._try(lambda: board.move(self.sketch, instance, start),
                  replace(instance, start=start))  # fmt: skip

    def _remove(self, instance: Instance) -> None:
        left = [each for each in self.sketch.layout if each != instance]
        following = next((each for each in left if (each.start or 0) > (instance.start or 0)), None)
        chosen = following or (left[-1] if left else None)
        self._try(lambda: board.remove(self.sketch, instance), chosen)
        if chosen is None and self.palette_rows:
            self.palette_rows[0].setFocus()

    def _try(self, edit: Any, chosen: Instance | None = None) -> None:
        try:
            made = edit()
        except UserError as error:
            self._say(error.message)
            return
        self._say(None)
        self._put(made, chosen)

    def _start_from_current(self) -> None:
        live = self._live[self._desk.gpu]
        try:
            layout = board.from_names(self.sketch.table, live.profiles)
        except UserError as error:
            self._say(error.message)
            return
        if layout is None:
            self._say(Message.of("ui.mig.current.unknown", names=", ".join(live.profiles)))
            return
        self._put(replace(board.replaced(self.sketch, layout, {}), current=layout))
        self._say(Message.of("ui.mig.current.assumed", number=len(layout)), good=True)

    def _put(self, sketch: Sketch, chosen: Instance | None = None) -> None:
        sketches = self._desk.sketches | {self._desk.gpu: sketch}
        self._keep(replace(self._desk, sketches=sketches))
        self._show(chosen)

    def _keep(self, desk: Desk) -> None:
        self._desk = self._session.cut = desk

    def _show(self, chosen: Instance | None = None) -> None:
        sketch, live = self.sketch, self._live.get(self._desk.gpu)
        self.strip.show_sketch(self.record, sketch, chosen)
        for row in self.palette_rows:
            row.show_sketch(sketch)
        self.undo.setEnabled(bool(sketch.past))
        self.redo.setEnabled(bool(sketch.ahead))
        self.empty.setEnabled(bool(sketch.layout))
        index, on = (live.index, live.on) if live is not None else (0, False)
        self.commands.show_sketch(sketch, gpu=index, on=on)
        self.jobs.show_planned(self._desk.planned, sketch)
        self.ways.show_planned(self._desk.planned)

    def _say(self, text: Message | None, *, good: bool = False) -> None:
        """Say why something cannot be, or what happened; None says what can be done."""
        icon, colour, ink = "info", "text3", "text2"
        if text is not None:
            icon, colour = (
                ("check-circle-fill", "fitsFill") if good else ("x-circle-fill", "noFill")
            )
            ink = "text" if good else "no"
        clear(self._sign)
        self._sign.addWidget(Glyph(icon, colour, 16), 0, Qt.AlignmentFlag.AlignVCenter)
        self.says.paint_in(ink)
        self.says.tell(text or Message.of("ui.mig.how"))

    # Jobs

    def _jobs_changed(self) -> None:
        self._keep(replace(self._desk, wanted=self.jobs.wanted))

    def _arrange(self, needs: Sequence[Need], folder: Path) -> None:
        record, sketch, core = self.record, self.sketch, self._core
        if sketch.table.units is None:
            self.jobs.tell(Message.of("mig.placements-unknown", gpu=sketch.table.name))
            return

        def facts_of(plan: Plan) -> Facts:
            found = core.resolve(plan)
            if isinstance(found, Pending):
                raise UserError.of("ui.mig.job.untraced", plan=plan.name)
            return found

        self.jobs.arrange.setEnabled(False)
        self._packing.submit(
            lambda: plan_jobs(
                record, sketch.table, needs, folder, facts_of, current=[sketch.current]
            )
        )

    def _packed(self, planned: Planned) -> None:
        self.jobs.arrange.setEnabled(True)
        self.jobs.tell(None)
        if planned.table != self.sketch.table:
            return  # another GPU was chosen meanwhile
        self._keep(replace(self._desk, planned=planned))
        layout: Layout = planned.packed.layouts[0]
        jobs = {
            place[1]: need.name
            for need, place in zip(planned.needs, planned.packed.jobs, strict=True)
            if place is not None
        }
        self._put(board.replaced(self.sketch, layout, jobs))
        left = [need.name for need, place in zip(planned.needs, planned.packed.jobs, strict=True)
                if place is None]  # fmt: skip
        if left:
            self._say(Message.of("mig.unplaced", names=", ".join(left)))
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
        self.strip.carry_job(name, at, lambda each: self._too_small(number, each.profile))

    def _drop_job(self, number: int) -> None:
        instance = self.strip.drop_job()
        if instance is not None:
            self._assign(number, self.sketch, instance)

    def _pick_job(self, number: int) -> None:
        """Put a job onto the smallest instance without one that it fits, or onto a new one."""
        if self.jobs.placed[number].job.at is not None:
            return
        table, sketch = self.sketch.table, self.sketch
        free = [each for each in sketch.layout if each not in sketch.drawn.jobs]
        kinds = sorted((each for each in table.profiles if each.plain), key=lambda each: (
            each.size or 0, each.slices))  # fmt: skip
        fitting = [each.name for each in kinds if self._too_small(number, each.name) is None]
        for name in fitting:
            here = next((each for each in free if board.plain_name(each.profile) == name), None)
            if here is not None:
                self._assign(number, sketch, here)
                return
        for name in fitting:
            start = board.best_start(sketch, name)
            if start is not None:
                made = (*sketch.layout, Instance(name, start))
                jobs = dict(sketch.drawn.jobs) | {made[-1]: self.jobs.placed[number].job.name}
                self._put(board.replaced(sketch, made, jobs))
                self._say(Message.of("ui.mig.added", profile=name, start=start), good=True)
                return
        self._say(Message.of("mig.unplaced", names=self.jobs.placed[number].job.name))

    def _assign(self, number: int, sketch: Sketch, instance: Instance) -> None:
        job = self.jobs.placed[number].job
        self._put(board.assign(sketch, instance, job.name, before=job.at))
        values = {"job": job.name, "instance": instance.shown}
        self._say(Message.of("ui.mig.job.given", **values), good=True)

    def _not_packed(self, problem: Message) -> None:
        self.jobs.arrange.setEnabled(True)
        self.jobs.tell(problem)

    # Undo by the usual keys belongs to the board while it is in use

    def event(self, event: QEvent) -> bool:
        if not isinstance(event, QKeyEvent) or event.type() != QEvent.Type.ShortcutOverride:
            return super().event(event)
        if _undoes(event) or _redoes(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if _undoes(event):
            self._put(board.undo(self.sketch))
        elif _redoes(event):
            self._put(board.redo(self.sketch))
        else:
            super().keyPressEvent(event)


def _undoes(event: QKeyEvent) -> bool:
    return event.matches(QKeySequence.StandardKey.Undo)


def _redoes(event: QKeyEvent) -> bool:
    pressed = event.modifiers() == (
        Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    )
    again = pressed and event.key() == Qt.Key.Key_Z
    return again or event.matches(QKeySequence.StandardKey.Redo)


# Which GPUs


def _cuttable(first: Sequence[str]) -> list[GpuRecord]:
    """Return the GPUs that can be cut, those named first, the others by name."""
    ids = [id for table in mig_tables() for id in table.gpus]
    records = sorted((find_gpu(id).record for id in ids), key=lambda each: each.name)
    order = list(dict.fromkeys(first))
    return sorted(
        records, key=lambda each: order.index(each.id) if each.id in order else len(order)
    )


def _of_plan(plan: Plan | None) -> str | None:
    """Return the plan's first GPU that can be cut."""
    for choice in plan.machine.gpus if plan is not None else ():
        try:
            record = find_gpu(choice.id).record
        except UserError:
            continue
        if mig_table(record) is not None:
            return record.id
    return None


def _first(plan: Plan | None) -> str:
    """Return the GPU to begin with."""
    return _of_plan(plan) or "a100-80gb-pcie"


def _cut_now(snapshot: Snapshot) -> dict[str, Live]:
    """Return this computer's GPUs that can be cut, by the id of their records."""
    found: dict[str, Live] = {}
    for reading in snapshot.nvidia.gpus if isinstance(snapshot.nvidia, Nvidia) else ():
        if not isinstance(reading.name, str):
            continue
        try:
            record = gpu_record(reading.name, reading.memory)
        except UserError:
            continue
        if mig_table(record) is None or record.id in found:
            continue
        mig = reading.mig if isinstance(reading.mig, Mig) else Mig(False, False)
        names = [each.name for each in mig.instances if isinstance(each.name, str)]
        profiles = tuple(name.rpartition("MIG ")[2] for name in names)
        found[record.id] = Live(reading.index, mig.on, profiles)
    return found
