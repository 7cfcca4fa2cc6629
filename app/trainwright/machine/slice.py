"""One instance of a GPU that is cut up (MIG), as the GPU that a program sees."""

from dataclasses import dataclass

from trainwright.catalog import Capacity, Fact, GpuRecord
from trainwright.catalog.mig import GIB, MigTable, Profile, mig_table
from trainwright.messages import Message, UserError


@dataclass(frozen=True, slots=True)
class Slice:
    """An instance as a GPU of its own, and what of it is inferred."""

    record: GpuRecord
    notes: tuple[Message, ...]


def sliced(gpu: GpuRecord, profile: str) -> Slice:
    """Return an instance of a profile as a GPU.

    Processors are the published ones; memory is what the instance offers; bandwidth and level-2
    cache are the share of the units that it occupies, since every unit has its own memory channels.
    (NVIDIA MIG User Guide, concepts.)

    Raises:
        UserError: the GPU cannot be cut, or has no such profile.
    """
    table = mig_table(gpu)
    if table is None:
        raise UserError.of("mig.not-capable", gpu=gpu.name)
    return slice_of(gpu, table, table.profile(profile))


def slice_of(gpu: GpuRecord, table: MigTable, profile: Profile) -> Slice:
    """Return an instance of a profile of the GPU's table as a GPU."""
    notes: list[Message] = []
    processors, share = _processors(gpu, table, profile, notes)
    memory = _memory(gpu, table, profile, notes)
    units = _units(table, profile)
    record = gpu.model_copy(
        update={
            "id": f"{gpu.id}-{profile.name.translate(_PLAIN)}",
            "name": f"{gpu.name} {profile.name}",
            "aliases": (),
            "shared_names": (),
            "memory_bytes": memory,
            "nvml_total_bytes": memory,
            "capacities": (Capacity(bytes=memory.value, source=memory.source),),
            "bandwidth_bytes_per_s": _share(gpu.bandwidth_bytes_per_s, units),
            "l2_bytes": gpu.l2_bytes and _share(gpu.l2_bytes, units),
            "sm_count": processors,
            "cores": gpu.cores and _share(gpu.cores, share),
            "flops": {key: _share(fact, share) for key, fact in gpu.flops.items()},
            "tdp_w": gpu.tdp_w and _share(gpu.tdp_w, share),
            "nvlink_bytes_per_s": None,
            "mig": False,
        }
    )
    return Slice(record, tuple(notes))


_PLAIN = str.maketrans({"+": "-", "_": "-"})


def _processors(
    gpu: GpuRecord, table: MigTable, profile: Profile, notes: list[Message]
) -> tuple[Fact | None, float]:
    """Return the instance's processors, and which share of the GPU's they are."""
    whole = gpu.sm_count
    published = profile.sm if table.sm_of in (None, gpu.id) else None
    if published is not None and whole is not None:
        return (
            Fact(value=published, source=table.source, confidence="medium"),
            published / whole.value,
        )
    notes.append(Message.of("mig.processors-inferred", profile=profile.name))
    share = profile.slices / table.slices
    return whole and _share(whole, share), share


def _memory(gpu: GpuRecord, table: MigTable, profile: Profile, notes: list[Message]) -> Fact:
    if profile.memory_gib:
        return Fact(value=profile.memory_gib * GIB, source=table.source, confidence="medium")
    notes.append(Message.of("mig.memory-inferred", profile=profile.name))
    alike = (one.memory_gib for one in table.profiles if one.size == profile.size)
    known = next((gib for gib in alike if gib), None) if table.units else None
    if known is not None:  # as many units of memory, whatever slices compute
        return Fact(value=known * GIB, source=table.source, confidence="low")
    total = gpu.nvml_total_bytes or gpu.memory_bytes
    return _share(total, _LEFT * _units(table, profile))


_LEFT = 0.97
"""Of a share of the memory, what the driver leaves to the instance; assumed: 0.95 to 0.99 of it on
A100, H100 and RTX PRO 6000, whose tables state it."""


def _units(table: MigTable, profile: Profile) -> float:
    """Return the share of the memory that the instance has."""
    if table.units and profile.size:
        return profile.size / table.units
    return profile.slices / table.slices


def _share(fact: Fact, share: float) -> Fact:
    if share == 1:
        return fact
    source = f"{share:.3g} of {fact.source}"
    return Fact(value=fact.value * share, source=source, confidence="low")
