"""A layout that a person draws: what may be placed where, moved and removed, and why not.

Everything here is a value; nothing changes a GPU.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainwright.catalog import GpuRecord
from trainwright.catalog.mig import GIB, MigTable, Profile
from trainwright.machine.slice import slice_of
from trainwright.messages import Message, UserError
from trainwright.mig.layout import (
    Instance,
    Layout,
    arrange,
    beyond,
    disjoint,
    in_order,
    mask_of,
    occupied,
)

SNAP = 1.0
"""Units from a legal place within which a drag still means it; assumed, and no less than half the
instance's size."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Instances, and the jobs that run on some of them."""

    layout: Layout = ()
    jobs: Mapping[Instance, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sketch:
    """What is drawn for one GPU."""

    table: MigTable
    drawn: Drawn = Drawn()
    current: Layout = ()
    """What the GPU is cut into now, as far as it was read."""

    @property
    def layout(self) -> Layout:
        """The instances, from the first unit on."""
        return self.drawn.layout


# Edits


def add(sketch: Sketch, profile: str, start: int | None = None) -> Sketch:
    """Return the sketch with one more instance; without a start at the place that leaves most.

    Raises:
        UserError: it has no place there.
    """
    if start is None:
        start = best_start(sketch, profile)
    reason = why_not(sketch, profile, start)
    if reason is not None:
        raise UserError(reason)
    return _put(sketch, (*sketch.layout, Instance(profile, start)), sketch.drawn.jobs)


def move(sketch: Sketch, instance: Instance, start: int) -> Sketch:
    """Return the sketch with an instance elsewhere; its job goes with it.

    Raises:
        UserError: it has no place there.
    """
    if start == instance.start:
        return sketch
    reason = why_not(sketch, instance.profile, start, moving=instance)
    if reason is not None:
        raise UserError(reason)
    moved = replace(instance, start=start)
    jobs = {moved if at == instance else at: job for at, job in sketch.drawn.jobs.items()}
    others = (each for each in sketch.layout if each != instance)
    return _put(sketch, (*others, moved), jobs)


def remove(sketch: Sketch, instance: Instance) -> Sketch:
    """Return the sketch without an instance."""
    jobs = {at: job for at, job in sketch.drawn.jobs.items() if at != instance}
    return _put(sketch, tuple(each for each in sketch.layout if each != instance), jobs)


def replaced(sketch: Sketch, layout: Layout, jobs: Mapping[Instance, str]) -> Sketch:
    """Return the sketch with another layout."""
    return _put(sketch, layout, jobs)


def _put(sketch: Sketch, layout: Layout, jobs: Mapping[Instance, str]) -> Sketch:
    ordered = tuple(sorted(layout, key=lambda each: (each.start or 0, each.profile)))
    drawn = Drawn(ordered, jobs)
    return sketch if drawn == sketch.drawn else replace(sketch, drawn=drawn)


# Places


def why_not(
    sketch: Sketch, profile: str, start: int | None, *, moving: Instance | None = None
) -> Message | None:
    """Return why an instance cannot begin at a unit; None where it can.

    ``start`` None asks whether there is any place for it. ``moving`` is left out of what is there.
    """
    table, kind = sketch.table, sketch.table.profile(profile)
    if table.units is None:
        return Message.of("mig.placements-unknown", gpu=table.name)
    others = [each for each in sketch.layout if each != moving]
    counts = Counter(each.profile for each in others) + Counter([kind.name])
    if (reason := beyond(table, counts)) is not None:
        return reason
    if start is None:
        return _no_place(table, kind, others)
    if start not in kind.starts:
        starts = ", ".join(map(str, sorted(kind.starts)))
        return Message.of("mig.board.starts", profile=kind.name, starts=starts)
    wanted = mask_of(kind, start)
    taking = [each.shown for each in others if occupied(table, [each]) & wanted]
    if taking:
        last = start + (kind.size or 1) - 1
        values = {"profile": kind.name, "first": start, "last": last, "names": ", ".join(taking)}
        return Message.of("mig.board.taken", **values)
    return None


def _no_place(table: MigTable, kind: Profile, others: Sequence[Instance]) -> Message | None:
    if disjoint(kind, occupied(table, others)):
        return None
    starts = ", ".join(map(str, sorted(kind.starts)))
    left = (table.units or 0) - occupied(table, others).bit_count()
    values = {"profile": kind.name, "left": left, "size": kind.size or 0, "starts": starts}
    return Message.of("mig.board.no-place", **values)


def starts(sketch: Sketch, profile: str, *, moving: Instance | None = None) -> tuple[int, ...]:
    """Return the units at which an instance may begin now."""
    return tuple(
        start
        for start in sorted(sketch.table.profile(profile).starts)
        if why_not(sketch, profile, start, moving=moving) is None
    )


def best_start(sketch: Sketch, profile: str) -> int | None:
    """Return the start that leaves the largest profile, then most; None where there is none."""
    if why_not(sketch, profile, None) is not None:
        return None
    name = sketch.table.profile(profile).name
    found = arrange(sketch.table, [name], sketch.layout) or ()
    new = [each for each in found if each not in sketch.layout]
    return new[0].start if new else None


def nearest(
    sketch: Sketch, profile: str, at: float, *, moving: Instance | None = None
) -> tuple[int, Message | None]:
    """Return where an instance lands that is dropped at a unit, and why it cannot lie there.

    It snaps to the nearest legal start; far from all of them it stays where it is, refused.
    """
    kind = sketch.table.profile(profile)
    size = kind.size or 1
    legal = starts(sketch, profile, moving=moving)
    near = min(legal, key=lambda start: abs(start - at), default=None)
    if near is not None and abs(near - at) <= max(SNAP, size / 2):
        return near, None
    there = min(max(0, round(at)), (sketch.table.units or size) - size)
    return there, why_not(sketch, profile, there, moving=moving)


def next_start(sketch: Sketch, instance: Instance, way: int) -> int | None:
    """Return the next legal start of an instance to the right (1) or to the left (-1)."""
    here = instance.start or 0
    legal = starts(sketch, instance.profile, moving=instance)
    behind = [start for start in legal if (start - here) * way > 0]
    return min(behind, key=lambda start: abs(start - here), default=None)


def still(sketch: Sketch, profile: str) -> int:
    """Return how many more instances of a profile fit, of it alone."""
    table, kind = sketch.table, sketch.table.profile(profile)
    there = Counter(each.profile for each in sketch.layout)
    number = disjoint(kind, occupied(table, sketch.layout))
    while number and beyond(table, there + Counter({kind.name: number})) is not None:
        number -= 1
    return number


def largest(sketch: Sketch) -> Instance | None:
    """Return the largest plain instance that can still be placed, where it leaves most."""
    kinds = sorted(
        (each for each in sketch.table.profiles if each.plain),
        key=lambda each: (each.size or 0, each.slices),
        reverse=True,
    )
    for kind in kinds:
        start = best_start(sketch, kind.name)
        if start is not None:
            return Instance(kind.name, start)
    return None


# What instances have


def plain_name(profile: str) -> str:
    """Return a profile without what it takes or leaves out of engines: ``1g.10gb+me``."""
    return profile.partition("+")[0].partition("-")[0]


@dataclass(frozen=True, slots=True)
class Share:
    """What an instance of a profile offers."""

    memory_bytes: float
    processors: int | None
    memory_inferred: bool
    """Whether it is a share of the card's, not published."""
    processors_inferred: bool

    @property
    def memory_wave(self) -> str:
        """``~`` before memory that is inferred."""
        return "~" if self.memory_inferred else ""

    @property
    def processors_wave(self) -> str:
        """``~`` before processors that are inferred."""
        return "~" if self.processors_inferred else ""


def share(gpu: GpuRecord, table: MigTable, profile: str) -> Share:
    """Return what an instance of the profile offers on this card."""
    kind = table.profile(profile)
    part = slice_of(gpu, table, kind)
    fact = part.record.sm_count
    memory = kind.memory_gib * GIB if kind.memory_gib else part.record.memory_bytes.value
    inferred = {note.id for note in part.notes}
    return Share(
        memory,
        round(fact.value) if fact else None,
        "mig.memory-inferred" in inferred,
        "mig.processors-inferred" in inferred,
    )


@dataclass(frozen=True, slots=True)
class Idle:
    """Processors that no instance has."""

    processors: int
    total: int
    inferred: bool


def idle(gpu: GpuRecord, sketch: Sketch) -> Idle | None:
    """Return the processors that are left over; None where nobody knows them."""
    if gpu.sm_count is None:
        return None
    total = round(gpu.sm_count.value)
    shares = [share(gpu, sketch.table, each.profile) for each in sketch.layout]
    used = sum(each.processors or 0 for each in shares)
    return Idle(max(0, total - used), total, any(each.processors_inferred for each in shares))


# The layout of a live GPU


def from_names(table: MigTable, names: Sequence[str]) -> Layout | None:
    """Return instances of which only the profiles were read, where a driver would put them.

    None where they do not fit the table: it is of another card, or the driver is newer.

    Raises:
        UserError: ``mig.unknown-profile``.
    """
    profiles = sorted(map(table.profile, names), key=lambda each: -(each.size or 0))
    ordered = [each.name for each in profiles]
    return in_order(table, ordered) or arrange(table, ordered)
