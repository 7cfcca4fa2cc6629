"""Layouts of a GPU that is cut into instances: which are possible, and what still fits.

An instance that begins at unit ``start`` occupies ``[start, start + size)``. A layout is possible
if every instance begins where its profile may, no two overlap, no profile is there more often
than its count, and the engines suffice. (NVIDIA MIG User Guide; the driver's own rules.)
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainwright.catalog.mig import MigTable, Profile
from trainwright.messages import Message


@dataclass(frozen=True, slots=True, order=True)
class Instance:
    """One instance."""

    profile: str
    start: int | None = None
    """First unit; None where nobody knows where the GPU's instances lie."""

    @property
    def shown(self) -> str:
        """As the command line writes it: ``3g.20gb@4``."""
        return self.profile if self.start is None else f"{self.profile}@{self.start}"


Layout = tuple[Instance, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether instances can be had together."""

    valid: bool
    reason: Message | None
    """Why not."""
    instances: Layout
    """Where each lies, the ones that were there included."""
    notes: tuple[Message, ...] = ()
    """What is inferred, disputed or depends on the driver."""


def check(
    table: MigTable,
    wanted: Mapping[str, int],
    *,
    existing: Sequence[Instance] = (),
    driver: str | None = None,
) -> Verdict:
    """Return whether so many instances of each profile fit beside those that exist.

    Placements are chosen such that the largest profile remains possible.

    Raises:
        UserError: ``mig.unknown-profile``.
    """
    counts: Counter[str] = Counter()
    for name, count in wanted.items():
        profile = table.profile(name)
        if count < 1:
            return _refused("mig.zero-count", profile=profile.name)
        counts[profile.name] += count
    everything = counts + Counter(instance.profile for instance in existing)
    reason = _too_many(table, everything) or _too_new(table, everything, driver)
    if reason is not None:
        return Verdict(False, reason, ())
    placed = arrange(table, list(counts.elements()), existing)
    if placed is None:
        alone = existing and arrange(table, list(counts.elements()), ()) is not None
        return _refused("mig.fragmented" if alone else "mig.no-placement", gpu=table.name)
    if (reason := _engines_short(table, everything)) is not None:
        return Verdict(False, reason, ())
    return Verdict(True, None, placed, tuple(_notes(table, everything)))


def _refused(id: str, **values: str) -> Verdict:
    return Verdict(False, Message.of(id, **values), ())


def beyond(table: MigTable, counts: Counter[str]) -> Message | None:
    """Return why a GPU holds no such instances wherever they lie; None where it does."""
    return _too_many(table, counts) or _engines_short(table, counts)


def _too_many(table: MigTable, counts: Counter[str]) -> Message | None:
    for name, count in counts.items():
        most = table.profile(name).count
        if count > most:
            return Message.of("mig.over-count", profile=name, asked=count, most=most)
    if counts.total() > table.instances:
        values = {"asked": counts.total(), "most": table.instances}
        return Message.of("mig.over-instances", gpu=table.name, **values)
    return _more_than_one_of_each(table, counts)


def _engines_short(table: MigTable, counts: Counter[str]) -> Message | None:
    there = table.engines or table.whole.engines
    if there is None:
        return None
    for engine, total in there.items():
        taken = sum(
            (table.profile(name).engines or {}).get(engine, 0) * count
            for name, count in counts.items()
        )
        if taken > total:
            return Message.of("mig.engines", engine=engine.upper(), taken=taken, total=total)
    return None


def _more_than_one_of_each(table: MigTable, counts: Counter[str]) -> Message | None:
    if not table.one_of_each:
        return None
    graphics = sum(count for name, count in counts.items() if "+gfx" in name)
    if graphics > 1 or counts.total() - graphics > 1:
        return Message.of("mig.one-of-each", gpu=table.name)
    return None


def _too_new(table: MigTable, counts: Counter[str], driver: str | None) -> Message | None:
    """Return why this driver does not allow what a later one does."""
    for rule in table.since:
        older = driver and rule.driver and version(driver) < version(rule.driver)
        if older and set(rule.together) <= set(counts):
            together = " + ".join(rule.together)
            return Message.of("mig.driver", together=together, driver=driver, needs=rule.driver)
    return None


def version(text: str) -> tuple[int, ...]:
    """Return a driver's version such that later ones are greater."""
    return tuple(int(part) for part in text.removeprefix("R").split(".") if part.isdigit())


def _notes(table: MigTable, counts: Counter[str]) -> Iterator[Message]:
    if not table.certain:
        yield Message.of(f"mig.placements-{table.placements}", gpu=table.name)
    for rule in table.since:
        if set(rule.together) <= set(counts):
            yield Message.of("mig.since", together=" + ".join(rule.together), driver=rule.driver)
    for rule in table.disputed:
        if set(rule.together) <= set(counts):
            together = " + ".join(rule.together)
            yield Message.of("mig.disputed", together=together, source=rule.source)


# Placement


def arrange(
    table: MigTable, names: Sequence[str], existing: Sequence[Instance] = ()
) -> Layout | None:
    """Return where the instances may lie beside the existing ones; None where they cannot.

    Of all ways, the one that leaves the largest profile, then the most units in one piece.
    """
    if table.units is None:
        return _counted(table, names, existing)
    ways = list(_ways(table, names, existing))
    return max(ways, key=lambda way: room(table, way)) if ways else None


def _counted(table: MigTable, names: Sequence[str], existing: Sequence[Instance]) -> Layout | None:
    """Return the instances without places, where slices suffice."""
    together = [*existing, *(Instance(name) for name in names)]
    taken = sum(table.profile(instance.profile).slices for instance in together)
    return tuple(together) if taken <= table.slices else None


def _ways(table: MigTable, names: Sequence[str], existing: Sequence[Instance]) -> Iterator[Layout]:
    profiles = sorted(
        (table.profile(name) for name in names), key=lambda each: (-(each.size or 0), each.name)
    )
    for new in _placed(profiles, (), occupied(table, existing)):
        yield tuple(sorted((*existing, *new), key=lambda each: (each.start or 0, each.profile)))


def _placed(profiles: Sequence[Profile], placed: Layout, taken: int) -> Iterator[Layout]:
    """Yield where the profiles may lie, largest first, that come after what is placed."""
    if not profiles:
        yield placed
        return
    first, *rest = profiles
    last = placed[-1] if placed else None
    for start in first.starts:
        mask = mask_of(first, start)
        # Of two alike the later lies behind: each layout comes once.
        again = last is not None and last.profile == first.name and start < (last.start or 0)
        if not taken & mask and not again:
            yield from _placed(rest, (*placed, Instance(first.name, start)), taken | mask)


def mask_of(profile: Profile, start: int) -> int:
    """Return the units of an instance that begins at ``start``, a bit each."""
    return ((1 << (profile.size or 0)) - 1) << start


def occupied(table: MigTable, layout: Iterable[Instance]) -> int:
    """Return the units that are taken, a bit each."""
    taken = 0
    for instance in layout:
        if instance.start is not None:
            taken |= mask_of(table.profile(instance.profile), instance.start)
    return taken


def room(table: MigTable, layout: Sequence[Instance]) -> tuple[int, int, int]:
    """Return how much can still be placed: units of the largest profile, of all, free units."""
    left = free(table, layout)
    sizes = [(table.profile(name).size or 0, count) for name, count in left.items()]
    units = table.units or 0
    return (
        max((size for size, count in sizes if count), default=0),
        sum(size * count for size, count in sizes),
        units - occupied(table, layout).bit_count(),
    )


def free(table: MigTable, layout: Sequence[Instance]) -> dict[str, int]:
    """Return how many instances of each plain profile could be added, of one kind alone."""
    if table.units is None:
        return {}
    taken, there = occupied(table, layout), Counter(instance.profile for instance in layout)
    return {
        profile.name: min(disjoint(profile, taken), profile.count - there[profile.name])
        for profile in table.profiles
        if profile.plain
    }


def disjoint(profile: Profile, taken: int) -> int:
    """Return how many instances of a profile find a place, one behind the other."""
    found = 0
    for start in sorted(profile.starts):
        if not taken & mask_of(profile, start):
            taken |= mask_of(profile, start)
            found += 1
    return found


# All of them


def layouts(table: MigTable, profiles: Sequence[Profile] | None = None) -> list[Layout]:
    """Return every layout of the profiles, the empty one included; plain ones by default."""
    kinds = [each for each in table.profiles if each.plain] if profiles is None else profiles
    places = [(kind, start) for kind in kinds for start in kind.starts]
    found: list[Layout] = []

    def go_on(at: int, placed: Layout, taken: int, counts: Counter[str]) -> None:
        found.append(placed)
        for number in range(at, len(places)):
            kind, start = places[number]
            mask = mask_of(kind, start)
            if not taken & mask and counts[kind.name] < kind.count:
                more = counts + Counter([kind.name])
                go_on(number + 1, (*placed, Instance(kind.name, start)), taken | mask, more)

    go_on(0, (), 0, Counter())
    return found


def maximal(table: MigTable, found: Iterable[Layout], kinds: Sequence[Profile]) -> list[Layout]:
    """Return the layouts to which nothing of these kinds can be added."""
    names = {kind.name for kind in kinds}
    return [
        layout
        for layout in found
        if not any(count for name, count in free(table, layout).items() if name in names)
    ]


def doubled(table: MigTable) -> Profile | None:
    """Return the profile of one slice with twice the memory, which drivers before R525 lack."""
    single = [each for each in table.profiles if each.plain and each.slices == 1]
    sizes = {each.size for each in single}
    return max(single, key=lambda each: each.size or 0) if len(sizes) > 1 else None


# The driver's own choice

DRIVER_PREFERS = {
    (8, 1): (6, 4, 5, 0, 1, 2, 3),
    (8, 2): (4, 0, 2, 6),
    (8, 4): (4, 0),
}
"""By units of the GPU and of the profile, the starts that a driver tries, first to last. Inferred
from instance ids in public transcripts on A100 and H100, and no contract: NVIDIA's own guide shows
a first 3g at 0 in one listing and at 4 in another."""


def in_order(table: MigTable, names: Sequence[str]) -> Layout | None:
    """Return where instances land that are created one by one, without saying where.

    None where one of them finds no place, as far as the driver's preference is known.
    """
    taken, placed = 0, []
    for name in names:
        profile = table.profile(name)
        prefers = DRIVER_PREFERS.get((table.units or 0, profile.size or 0), profile.starts)
        starts = [start for start in prefers if start in profile.starts]
        start = next((each for each in starts if not taken & mask_of(profile, each)), None)
        if start is None:
            return None
        taken |= mask_of(profile, start)
        placed.append(Instance(profile.name, start))
    return tuple(placed)
