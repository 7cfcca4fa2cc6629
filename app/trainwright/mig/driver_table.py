"""The table that a driver tells of its GPU, and what in it differs from the published one."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.catalog.mig import GIB, Engine, MigTable, Profile
from trainwright.messages import Message
from trainwright.probe.nvml import Mig, MigProfile
from trainwright.probe.reading import Missing

MOST = 64
"""Slices of a GPU and instances of a profile that are believed; assumed: 7 are the most known."""
MOST_UNITS = 12
"""Units of a GPU whose layouts are looked through; the largest that is known has as many."""
SAME_GIB = 0.02
"""Tools print memory with two digits: what differs less is the same."""
MARKS = {7: "+me", 8: "+me", 0xA: "+gfx", 0xB: "+gfx", 0xC: "+gfx", 0xD: "-me", 0xE: "-me",
         0xF: "+me.all", 0x10: "+me.all", 0x11: "+gfx"}  # fmt: skip
"""What stands behind the name of a profile, by nvml.h's index (NVML_GPU_INSTANCE_PROFILE_*)."""


def table_of(
    mig: Mig, driver: str, gpu: GpuRecord, ours: MigTable | None
) -> tuple[MigTable | None, Message | None]:
    """Return the table that holds for a GPU of this computer, and why it is not all the driver's.

    Args:
        mig: what the driver told.
        driver: its version.
        gpu: the GPU's record.
        ours: the published table, where there is one.
    """
    told = mig.profiles
    if isinstance(told, Missing):
        return ours, told.reason
    if not told:
        return ours, Message.of("mig.live.no-profiles")
    if not all(_plausible(each, gpu) for each in told):
        return ours, Message.of("probe.implausible")
    units = max((start + size for each in told for start, size in _places(each)), default=0)
    if units > MOST_UNITS:
        return ours, Message.of("mig.live.too-fine", units=units, most=MOST_UNITS)
    hidden = next((each.places.reason for each in told if isinstance(each.places, Missing)), None)
    kinds = _profiles(told, gpu, ours, places=hidden is None)
    return _table(kinds, driver, gpu, ours, places=hidden is None), hidden


def _plausible(told: MigProfile, gpu: GpuRecord) -> bool:
    """Return whether a profile of this GPU can be so."""
    places = _places(told)
    return (
        1 <= told.slices <= MOST
        and 1 <= told.count <= MOST
        and told.memory <= 2 * gpu.memory_bytes.value
        and all(size >= 1 for _, size in places)
        and len({size for _, size in places}) <= 1
    )


def _places(told: MigProfile) -> tuple[tuple[int, int], ...]:
    return () if isinstance(told.places, Missing) else told.places


# Profiles


def _profiles(
    told: Sequence[MigProfile], gpu: GpuRecord, ours: MigTable | None, *, places: bool
) -> tuple[Profile, ...]:
    """Return the driver's profiles, small ones first; without places of its own, with ours."""
    found = [_profile(each, gpu, _same(each, ours), places=places) for each in told]
    return tuple(sorted(found, key=lambda each: (each.slices, each.size or 0, len(each.name))))


def _same(told: MigProfile, ours: MigTable | None) -> Profile | None:
    """Return the published profile that the driver's is: by id, or by name where it has no id."""
    for profile in ours.profiles if ours is not None else ():
        if profile.id == told.id if profile.id is not None else profile.name == told.name:
            return profile
    return None


def _profile(told: MigProfile, gpu: GpuRecord, same: Profile | None, *, places: bool) -> Profile:
    size = next((size for _, size in _places(told)), None) if places else same and same.size
    starts = tuple(start for start, _ in _places(told)) if places else same.starts if same else ()
    engines: dict[Engine, int] = {
        "nvdec": told.nvdec, "nvenc": told.nvenc, "jpeg": told.jpeg, "ofa": told.ofa,
    }  # fmt: skip
    return Profile(
        name=told.name or (same.name if same is not None else _named(told, gpu)),
        id=told.id,
        slices=told.slices,
        size=size,
        starts=tuple(sorted(starts)),
        count=told.count,
        memory_gib=told.memory / GIB or None,
        sm=told.processors or None,
        engines=engines,
    ).model_copy(update={"copy_engines": told.copy})


def _named(told: MigProfile, gpu: GpuRecord) -> str:
    """Return the name that newer drivers give: slices, and eighths of the memory rounded up.

    (NVIDIA/go-nvlib, getMigMemorySizeGB.)
    """
    total = (gpu.nvml_total_bytes or gpu.memory_bytes).value
    gib = round(ceil(8 * told.memory / total) / 8 * ceil(total / GIB))
    return f"{told.slices}g.{gib}gb{MARKS.get(told.index, '')}"


# The table


def _table(
    kinds: tuple[Profile, ...], driver: str, gpu: GpuRecord, ours: MigTable | None, *, places: bool
) -> MigTable:
    units = max((start + (kind.size or 0) for kind in kinds for start in kind.starts), default=None)
    source = f"this computer's driver {driver} (NVML)"
    found: dict[str, Any] = {
        "gpus": (gpu.id,),
        "units": units,
        "slices": max(kind.slices for kind in kinds),
        "sm_of": None,
        "told_by": driver,
        "profiles": kinds,
    }
    if ours is None:
        known = {
            "id": gpu.id,
            "name": gpu.name,
            "instances": max(kind.count for kind in kinds),
            "placements": "read" if places else "unknown",
            "source": source,
        }
        return MigTable(**found | known)
    renamed = _renamed(kinds, ours)
    found |= {
        "placements": "read" if places else ours.placements,
        "source": source if places else f"{source}; places: {ours.source}",
        "aliases": _aliases(kinds, ours, renamed),
        "since": tuple(_as_here(each, renamed) for each in ours.since),
        "disputed": tuple(_as_here(each, renamed) for each in ours.disputed),
    }
    return ours.model_copy(update=found)


def _renamed(kinds: Sequence[Profile], ours: MigTable) -> dict[str, str]:
    """Return the driver's names by the published ones."""
    names = {kind.id: kind.name for kind in kinds}
    return {each.name: names[each.id] for each in ours.profiles if each.id in names}


def _aliases(
    kinds: Sequence[Profile], ours: MigTable, renamed: Mapping[str, str]
) -> dict[str, str]:
    """Return other names of the driver's profiles: what it calls one itself is none."""
    own = {kind.name for kind in kinds}
    other = {**{name: name for name in renamed}, **ours.aliases}
    return {name: renamed.get(to, to) for name, to in other.items() if name not in own}


def _as_here(rule: Any, renamed: Mapping[str, str]) -> Any:
    return rule.model_copy(update={"together": tuple(renamed.get(n, n) for n in rule.together)})


# Against the published one


def differences(table: MigTable, ours: MigTable) -> tuple[Message, ...]:
    """Return what a driver's table has otherwise than the published one; nothing of an equal one.

    What the published one leaves open is not a difference.
    """
    return () if table.told_by is None else tuple(_differences(table, ours))


def _differences(table: MigTable, ours: MigTable) -> Iterator[Message]:
    here = {_key(each, ours): each for each in table.profiles}
    there = {_key(each, ours): each for each in ours.profiles}
    if more := [each.name for key, each in here.items() if key not in there]:
        yield Message.of("mig.live.more", names=", ".join(more))
    if fewer := [each.name for key, each in there.items() if key not in here]:
        yield Message.of("mig.live.fewer", names=", ".join(fewer))
    alike = ours.sm_of in (None, *table.gpus)
    for key, profile in here.items():
        if key in there:
            other = there[key] if alike else there[key].model_copy(update={"sm": None})
            yield from _otherwise(profile, other, places=table.placements == "read")


def _key(profile: Profile, ours: MigTable) -> int | str:
    """Return what tells profiles apart in both: the id, where the published table has them."""
    ids = all(each.id is not None for each in ours.profiles)
    return profile.name if profile.id is None or not ids else profile.id


def _otherwise(here: Profile, there: Profile, *, places: bool) -> Iterator[Message]:
    """Yield what of a profile differs."""
    if here.name != there.name:
        yield Message.of("mig.live.name", profile=here.name, published=there.name)
    if here.memory_gib and there.memory_gib and abs(here.memory_gib - there.memory_gib) > SAME_GIB:
        values = {"here": here.memory_gib * GIB, "published": there.memory_gib * GIB}
        yield Message.of("mig.live.memory", profile=here.name, **values)
    for key, one, other in (
        ("processors", here.sm, there.sm),
        ("count", here.count, there.count),
        ("slices", here.slices, there.slices),
    ):
        if one and other and one != other:
            yield Message.of(f"mig.live.{key}", profile=here.name, here=one, published=other)
    if places and there.starts and (here.size, here.starts) != (there.size, there.starts):
        shown = {"here": _shown(here), "published": _shown(there)}
        yield Message.of("mig.live.places", profile=here.name, **shown)


def _shown(profile: Profile) -> str:
    """Return places as nvidia-smi writes them: ``{0,4}:4``."""
    return f"{{{','.join(map(str, profile.starts))}}}:{profile.size}"
