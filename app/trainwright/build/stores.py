"""What a computer works from: memory and drives, cheapest first."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from trainwright.build.ruling import Rule, said
from trainwright.build.shelves import Shelves
from trainwright.build.sizing import Needs
from trainwright.catalog import BoardRecord, CpuRecord, DriveRecord, MemoryRecord
from trainwright.machine import rules_memory, rules_storage
from trainwright.machine.build import Build, Verdict
from trainwright.machine.placement import form
from trainwright.machine.power import DRIVE_W, MODULE_W

_MEMORY: tuple[Rule, ...] = (
    rules_memory.kind,
    rules_memory.amount,
    rules_memory.channels,
    rules_memory.rate,
)
MOST_MODULES = 12
"""Slots of the widest boards; source: hardware_db/board."""
MOST_DRIVES = 4
"""Of one kind in a computer; assumed: as many as most boards take."""
_FOR_SERVERS = ("u.2", "u.3", "add-in")
"""Drives that few boards have a place for."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Kits of one kind."""

    kit: MemoryRecord
    count: int
    cost: float
    gib: float
    """Of all."""

    @property
    def watts(self) -> float:
        """Of all."""
        return MODULE_W[self.kit.module] * self.kit.modules * self.count


@dataclass(frozen=True, slots=True)
class Drives:
    """Drives; the data set is on the first."""

    records: tuple[DriveRecord, ...]
    cost: float
    watts: float
    """Of all."""
    ways: tuple[tuple[object, ...], ...]
    """What of each decides where it may sit."""

    @classmethod
    def of(cls, records: tuple[DriveRecord, ...], cost: float) -> "Drives":
        """Return some drives."""
        watts = sum(DRIVE_W[drive.interface] for drive in records)
        return cls(records, cost, watts, tuple(map(plugged, records)))


class Stores:
    """Memory and drives on sale; answers are kept."""

    def __init__(self, shelves: Shelves) -> None:
        self._shelves = shelves
        self.kits = shelves.sorted("memory", MemoryRecord)
        self._drives = shelves.sorted("storage", DriveRecord)
        self._memory: dict[tuple[object, ...], tuple[Memory, ...]] = {}
        self._verdicts: dict[tuple[object, ...], set[Verdict]] = {}
        self._sets_of: dict[str, list[Memory]] = {}
        self._fast: dict[tuple[object, ...], list[Drives]] = {}
        types = {kit.type for kit in self.kits}
        self._sizes = sorted({one.gib for type in types for one in self._sets(type)})

    def size(self, gib: float) -> float:
        """Return the least that sets on sale hold and that is enough; itself where none is."""
        return next((size for size in self._sizes if size >= gib), gib)

    def memory(
        self, cpu: CpuRecord, board: BoardRecord, gib: float, *, at_rate: bool = False
    ) -> tuple[Memory, ...]:
        """Return memory of at least so many GiB, cheapest first, each larger than the one before.

        All channels are filled, at full rate, where anything on sale does so; ``at_rate``: nothing
        else is returned.
        """
        key = (takes(cpu, board), gib, at_rate)
        if key not in self._memory:
            found = tuple(self._fitting(cpu, board, gib, flawed=False))
            if not found and not at_rate:
                found = tuple(self._fitting(cpu, board, gib, flawed=True))
            self._memory[key] = found
        return self._memory[key]

    def _fitting(
        self, cpu: CpuRecord, board: BoardRecord, gib: float, *, flawed: bool
    ) -> Iterator[Memory]:
        """Yield each that no cheaper one equals in size and watts."""
        taken, kept = takes(cpu, board), list[Memory]()
        for memory in self._sets(board.memory_type):
            modules = memory.kit.modules * memory.count
            if memory.gib < gib or modules > board.memory_slots:
                continue
            if any(one.gib >= memory.gib and one.watts <= memory.watts for one in kept):
                continue
            if not flawed and modules % min(cpu.memory_channels or 1, board.memory_slots):
                continue
            if board.memory_modules is not None and not _mounts(board, memory.kit):
                continue
            key = (taken, memory.kit.id, memory.count)
            if key not in self._verdicts:
                build = Build(cpu=cpu, board=board, memory=((memory.kit, memory.count),))
                self._verdicts[key] = {check.verdict for check in said(_MEMORY, build)}
            verdicts = self._verdicts[key]
            if "error" not in verdicts and (flawed or "warning" not in verdicts):
                kept.append(memory)
                yield memory

    def _sets(self, type: str) -> list[Memory]:
        """Return all numbers of all kits of a type, cheapest first."""
        if type not in self._sets_of:
            found = [
                Memory(kit, count, self._shelves.several("memory", kit, count), kit.gib * count)
                for kit in self.kits
                if kit.type == type
                for count in range(1, MOST_MODULES // kit.modules + 1)
            ]
            found.sort(key=lambda one: (one.cost, -one.gib, one.kit.id, one.count))
            self._sets_of[type] = found
        return self._sets_of[type]

    def drives(self, needed: Needs) -> list[Drives]:
        """Return drives that hold and bear what the workload asks, cheapest first.

        The system is on NVMe, where anything is. Much data have drives of their own: hard disks
        only where no solid-state drives are large enough.
        """
        key = (needed.drive_gb, needed.endurance_tb, needed.apart_gb)
        if key not in self._fast:
            self._fast[key] = _faster(self._holding(needed))
        return self._fast[key]

    def _holding(self, needed: Needs) -> list[Drives]:
        data_gb = needed.apart_gb
        found = self._solid(replace(needed, drive_gb=needed.drive_gb - data_gb))
        found = [one for one in found if self._starts(one)] or found
        if data_gb and found:
            system = min(found, key=lambda one: one.cost)
            data = replace(needed, drive_gb=data_gb, endurance_tb=0.0)
            disks = self._solid(data) or self._enough(data, MOST_DRIVES, solid=False)
            found = [
                Drives.of((*one.records, *system.records), one.cost + system.cost) for one in disks
            ]
        return sorted(found, key=lambda one: (one.cost, [drive.id for drive in one.records]))

    def _solid(self, needed: Needs) -> list[Drives]:
        """Return solid-state drives that are enough: one, or several where none is."""
        found = list(self._enough(needed, 1, solid=True))
        found = found or list(self._enough(needed, MOST_DRIVES, solid=True))
        return [one for one in found if not self._stalls(one)] or found

    def _starts(self, drives: Drives) -> bool:
        """Return whether a new computer's system goes on such a drive."""
        first = drives.records[0]
        return first.interface == "nvme" or self._shelves.owned("storage", first) > 0

    def _enough(self, needed: Needs, most: int, *, solid: bool) -> Iterator[Drives]:
        for drive in self._drives:
            if (drive.interface == "hdd") == solid or drive.capacity_gb is None:
                continue
            if drive.form in _FOR_SERVERS and not self._shelves.owned("storage", drive):
                continue
            for count in range(1, most + 1):
                large = drive.capacity_gb * count >= needed.drive_gb
                lasts = (drive.endurance_tb or needed.endurance_tb) * count >= needed.endurance_tb
                if large and lasts:
                    cost = self._shelves.several("storage", drive, count)
                    yield Drives.of((drive,) * count, cost)
                    break

    def _stalls(self, drives: Drives) -> bool:
        """Return whether rules expect the drive to be slow once its cache is full."""
        verdicts = said((rules_storage.endurance,), Build(drives=drives.records[:1]))
        return any(check.verdict == "warning" for check in verdicts)


def lighter(memories: Iterable[Memory]) -> Iterator[Memory]:
    """Yield the first memory, and each that draws less than all before it."""
    least = math.inf
    for memory in memories:
        if memory.watts < least:
            least = memory.watts
            yield memory


def mounted_apart(sorted_by_cost: Iterable[Drives]) -> Iterator[Drives]:
    """Yield the cheapest drives of each way to be mounted, which is all that other parts see."""
    seen: set[object] = set()
    for drives in sorted_by_cost:
        if drives.ways not in seen:
            seen.add(drives.ways)
            yield drives


def _faster(sorted_by_cost: list[Drives]) -> list[Drives]:
    """Return the drives without those that are dearer and no faster than one of their form."""
    kept: list[Drives] = []
    for one in sorted_by_cost:
        first = one.records[0]
        if not any(_as_fast(other.records[0], first) for other in kept):
            kept.append(one)
    return kept


def _as_fast(one: DriveRecord, other: DriveRecord) -> bool:
    """Return whether a drive reads no slower than another that is mounted alike."""
    alike = (one.interface, one.form, one.length_mm) == (
        other.interface, other.form, other.length_mm,
    )  # fmt: skip
    generations = (one.pcie_generation or 0) >= (other.pcie_generation or 0)
    requests = (one.random_read_kiops or 0.0) >= (other.random_read_kiops or 0.0)
    return alike and generations and requests and one.read_mb_s >= other.read_mb_s


def takes(cpu: CpuRecord, board: BoardRecord) -> tuple[object, ...]:
    """Return what of processor and board decides which memory goes with them."""
    return (
        *(cpu.socket, cpu.memory_types, cpu.memory_modules, cpu.memory_channels),
        *(cpu.memory_max_gib, board.memory_type, board.memory_modules),
        *(board.memory_slots, board.memory_max_gib),
    )


def _mounts(board: BoardRecord, kit: MemoryRecord) -> bool:
    """Return whether the board has slots for such modules, as rule M1 says more fully."""
    kinds = board.memory_modules or ()
    return kit.module in kinds or (kit.module == "cudimm" and "udimm" in kinds)


def plugged(drive: DriveRecord) -> tuple[object, ...]:
    """Return what of a drive decides where it may sit."""
    return (
        *(form(drive), drive.interface, drive.pcie_generation, drive.pcie_lanes),
        drive.length_mm,
    )
