"""What lies on the place MIG: the GPU that is cut, what is drawn for each of them, and the jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainwright.catalog import GpuRecord, find_gpu
from trainwright.catalog.mig import MigTable, find_mig_table, mig_table, mig_tables
from trainwright.messages import UserError
from trainwright.mig.board import Drawn, Sketch
from trainwright.mig.boards import MOST_GPUS, Boards
from trainwright.mig.drawings import Drawing, drawn, placed
from trainwright.mig.live import Live
from trainwright.mig.planning import Planned
from trainwright.plan.schema import Plan
from trainwright.ui.screens.migjobs import Wanted

Lives = Mapping[str, tuple[Live, ...]]
"""This computer's GPUs that can be cut, by the id of their record."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What the screen holds; it outlives a change of language."""

    gpu: str
    lives: Lives = field(default_factory=dict)
    boards: Mapping[str, Boards] = field(default_factory=dict)
    """By the GPU's id."""
    active: int = 0
    """Which of several GPUs a clicked profile goes to."""
    wanted: Wanted = field(default_factory=Wanted)
    planned: Planned | None = None

    @property
    def untouched(self) -> bool:
        """Whether nobody has drawn anything yet."""
        return not any(boards.past for boards in self.boards.values())


def drawing_of(desk: Desk) -> Drawing:
    """Return what a file of the desk holds: what somebody drew and typed."""
    touched = {id: boards for id, boards in desk.boards.items() if boards.past}
    wanted = desk.wanted
    return Drawing(
        gpu=desk.gpu,
        boards={id: placed(boards) for id, boards in touched.items()},
        rows=wanted.rows,
        file=None if wanted.file is None else str(wanted.file.absolute()),
        needs=wanted.needs,
    )


def desk_of(drawing: Drawing, lives: Lives) -> Desk:
    """Return the desk that a file holds.

    Raises:
        UserError: a GPU or a profile is unknown, or an instance has no place.
    """
    boards = {}
    for name, instances in drawing.boards.items():
        id = _cuttable(name, lives)
        boards[id] = drawn(blank(id, lives, len(instances)), instances)
    file = None if drawing.file is None else Path(drawing.file)
    wanted = Wanted(drawing.rows or Wanted().rows, file, drawing.needs)
    return Desk(_cuttable(drawing.gpu, lives), lives, boards, wanted=wanted)


def _cuttable(name: str, lives: Lives) -> str:
    """Return the id of a GPU that can be cut."""
    return name if name in lives else find_mig_table(name)[1].id


def by_record(found: Sequence[Live]) -> Lives:
    """Return GPUs by their record's id, in the driver's order."""
    ids = dict.fromkeys(each.gpu.id for each in found)
    return {id: tuple(each for each in found if each.gpu.id == id) for id in ids}


def record_of(id: str, lives: Lives) -> GpuRecord:
    """Return the record of a GPU; one that no catalog has is known from its driver."""
    return lives[id][0].gpu if id in lives else find_gpu(id).record


def table_of(id: str, lives: Lives) -> MigTable:
    """Return the table that holds for a GPU: the driver's where it is here."""
    if id in lives:
        return lives[id][0].table
    table = mig_table(find_gpu(id).record)
    assert table is not None
    return table


def blank(id: str, lives: Lives, count: int | None = None) -> tuple[Sketch, ...]:
    """Return the sketches to begin with: of all such GPUs here, as they are cut if that was read.

    Of a GPU that is not here, an empty one.
    """
    table, here = table_of(id, lives), lives.get(id, ())
    number = min(MOST_GPUS, max(1, len(here))) if count is None else count
    layouts = [here[at].layout or () if at < len(here) else () for at in range(number)]
    return tuple(Sketch(table, Drawn(each), current=each) for each in layouts)


def with_tables(desk: Desk, lives: Lives) -> Desk:
    """Return the desk with the drivers' tables; not where they would not allow what is drawn."""
    boards = dict(desk.boards)
    for id in lives:
        kept = boards.pop(id, None)
        if kept is not None and kept.past:
            boards[id] = _with_table(kept, table_of(id, lives))
    return replace(desk, lives=lives, boards=boards)


def _with_table(boards: Boards, table: MigTable) -> Boards:
    """Return boards by another table; as they are where an instance has no place in it."""
    places = {(each.name, start) for each in table.profiles for start in each.starts}
    steps = (*boards.past, boards.sketches, *boards.ahead)
    drawn = (each for sketches in steps for sketch in sketches for each in sketch.layout)
    if not all((each.profile, each.start) in places for each in drawn):
        return boards

    def by(sketches: tuple[Sketch, ...]) -> tuple[Sketch, ...]:
        return tuple(replace(each, table=table) for each in sketches)

    return Boards(by(boards.sketches), tuple(map(by, boards.past)), tuple(map(by, boards.ahead)))


# Which GPUs


def cuttable(first: Sequence[str], lives: Lives) -> list[GpuRecord]:
    """Return the GPUs that can be cut: this computer's, those named, the others by name."""
    ids = dict.fromkeys((*lives, *(id for table in mig_tables() for id in table.gpus)))
    records = sorted((record_of(id, lives) for id in ids), key=lambda each: each.name)
    order = list(dict.fromkeys((*lives, *first)))
    return sorted(
        records, key=lambda each: order.index(each.id) if each.id in order else len(order)
    )


def of_plan(plan: Plan | None) -> str | None:
    """Return the plan's first GPU that can be cut."""
    for choice in plan.machine.gpus if plan is not None else ():
        try:
            record = find_gpu(choice.id).record
        except UserError:
            continue
        if mig_table(record) is not None:
            return record.id
    return None


def first_gpu(plan: Plan | None) -> str:
    """Return the GPU to begin with."""
    return of_plan(plan) or "a100-80gb-pcie"
