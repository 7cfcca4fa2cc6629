"""Several GPUs of one kind beside each other: what is drawn for each, and the steps that led there.

What one GPU may hold is ``mig.board``'s; here an edit may reach over two, and is one step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trainwright.mig import board
from trainwright.mig.board import Drawn, Sketch
from trainwright.mig.layout import Instance, Layout

MOST_GPUS = 4
"""GPUs that are drawn; of more the packer cannot look through all ways (``packing.MOST_BAGS``)."""


@dataclass(frozen=True, slots=True)
class Place:
    """An instance of one of the GPUs."""

    gpu: int
    """Which of them, from 0."""
    instance: Instance


@dataclass(frozen=True, slots=True)
class Boards:
    """The sketches of all GPUs, and the steps that led there."""

    sketches: tuple[Sketch, ...]
    past: tuple[tuple[Sketch, ...], ...] = ()
    ahead: tuple[tuple[Sketch, ...], ...] = ()
    """What was undone, the next to redo last."""

    @property
    def empty(self) -> bool:
        """Whether no GPU has an instance."""
        return not any(sketch.layout for sketch in self.sketches)

    @property
    def jobs(self) -> dict[Place, str]:
        """The jobs that have an instance."""
        return {
            Place(number, at): job
            for number, sketch in enumerate(self.sketches)
            for at, job in sketch.drawn.jobs.items()
        }


def put(boards: Boards, changed: Mapping[int, Sketch]) -> Boards:
    """Return the boards with other sketches of some GPUs, as one step; as they are if alike."""
    sketches = tuple(changed.get(number, each) for number, each in enumerate(boards.sketches))
    return _step(boards, sketches)


def cleared(boards: Boards) -> Boards:
    """Return the boards without an instance."""
    return _step(boards, tuple(replace(each, drawn=Drawn()) for each in boards.sketches))


def resized(boards: Boards, sketches: tuple[Sketch, ...]) -> Boards:
    """Return boards of as many GPUs as ``sketches``, with what is drawn on those that remain."""
    kept = boards.sketches[: len(sketches)]
    return _step(boards, (*kept, *sketches[len(kept) :]))


def carry(boards: Boards, place: Place, gpu: int, start: int | None) -> Boards:
    """Return the boards with an instance elsewhere, on its GPU or another; its job goes with it.

    Without a start it lies where it leaves most.

    Raises:
        UserError: it has no place there.
    """
    source, instance = boards.sketches[place.gpu], place.instance
    if gpu == place.gpu:
        at = instance.start if start is None else start
        return put(boards, {gpu: board.move(source, instance, at or 0)})
    target = board.add(boards.sketches[gpu], instance.profile, start)
    (new,) = set(target.layout) - set(boards.sketches[gpu].layout)
    job = source.drawn.jobs.get(instance)
    if job is not None:
        target = board.replaced(target, target.layout, {**target.drawn.jobs, new: job})
    return put(boards, {place.gpu: board.remove(source, instance), gpu: target})


def assign(boards: Boards, place: Place, job: str, *, before: Place | None = None) -> Boards:
    """Return the boards with a job on an instance, in place of the one there.

    ``before`` is the instance that it ran on, which becomes free.
    """
    jobs = {at: name for at, name in boards.jobs.items() if at != before} | {place: job}
    return arranged(boards, [sketch.layout for sketch in boards.sketches], jobs)


def arranged(boards: Boards, layouts: Sequence[Layout], jobs: Mapping[Place, str]) -> Boards:
    """Return the boards with other layouts and jobs on all GPUs."""
    return put(boards, {
        number: board.replaced(
            sketch, layout, {at.instance: jobs[at] for at in jobs if at.gpu == number}
        )
        for number, (sketch, layout) in enumerate(zip(boards.sketches, layouts, strict=True))
    })  # fmt: skip


def seated(
    boards: Boards, job: str, profiles: Sequence[str], first: int
) -> tuple[Boards, Place] | None:
    """Return the boards with a job on the first of these profiles that is to be had, and where.

    An instance without a job comes before a new one, and a new one on the GPU ``first`` before
    others. None where there is neither.
    """
    layouts = [sketch.layout for sketch in boards.sketches]
    places = [Place(gpu, each) for gpu, layout in enumerate(layouts) for each in layout]
    free = [place for place in places if place not in boards.jobs]
    for name in profiles:
        for place in free:
            if board.plain_name(place.instance.profile) == name:
                return assign(boards, place, job), place
    for name in profiles:
        gpu = home(boards, name, first)
        if gpu is not None:
            new = Place(gpu, Instance(name, board.best_start(boards.sketches[gpu], name)))
            layouts[gpu] = (*layouts[gpu], new.instance)
            return arranged(boards, layouts, {**boards.jobs, new: job}), new
    return None


def home(boards: Boards, profile: str, first: int) -> int | None:
    """Return the GPU that has room for a profile: ``first`` if it does, else the next; or None."""
    others = (number for number in range(len(boards.sketches)) if number != first)
    for number in (first, *others):
        if board.why_not(boards.sketches[number], profile, None) is None:
            return number
    return None


def undo(boards: Boards) -> Boards:
    """Return the boards before their last step."""
    if not boards.past:
        return boards
    *past, last = boards.past
    return Boards(last, tuple(past), (*boards.ahead, boards.sketches))


def redo(boards: Boards) -> Boards:
    """Return the boards with the step again that was undone last."""
    if not boards.ahead:
        return boards
    *ahead, following = boards.ahead
    return Boards(following, (*boards.past, boards.sketches), tuple(ahead))


def _step(boards: Boards, sketches: tuple[Sketch, ...]) -> Boards:
    if sketches == boards.sketches:
        return boards
    return Boards(sketches, (*boards.past, boards.sketches))
