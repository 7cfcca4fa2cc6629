"""Drives: how long samples take from one, what the page cache spares, and which some work needs.

An SLC cache is not a part of this: it makes writes fast, and no read.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from trainwright.catalog import DriveRecord
from trainwright.estimate.input.pipeline_calibration import Drives, load

Layout = Literal["files", "shards"]
Class = Literal["nvme5", "nvme4", "nvme3", "sata", "hdd"]
CLASSES: tuple[Class, ...] = ("nvme5", "nvme4", "nvme3", "sata", "hdd")
SIZES_GB = (128, 256, 512, 1000, 2000, 4000, 8000, 16000)
"""Sizes that are sold, decimal."""
SYSTEM_GB = 100.0
"""Operating system, drivers, environments and a model or two. Assumed."""
FREE = 0.15
"""Of a drive that is to stay empty: flash slows down when full. Assumed."""
READERS = 8
"""Workers of the loader that read at once. Assumed: the usual number for one GPU."""
YEARS = 3.0
"""That a drive is to last by its endurance, at least. Assumed."""
LANES = 4
"""PCI Express lanes of an NVMe drive (M.2 and U.2)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds to read one sample."""

    alone: float
    """That the one who asks for it waits."""
    drive: float
    """That the drive is busy with it, so that nobody reads faster than this."""


def read_from_drive(
    drive: DriveRecord, layout: str, nbytes: float, readers: int, constants: Drives
) -> Reading:
    """Return the seconds to read one sample of ``nbytes`` with so many readers at once.

    Files are looked up, then read in requests of the system's read-ahead; shards are streams,
    which a hard disk serves in turns, with a seek between.
    """
    rate = _sequential(drive, constants)
    stream = constants.stream_bytes_per_s.value
    latency = constants.latency_s[drive.interface].value
    if layout == "shards":
        seek = latency if drive.interface == "hdd" and readers > 1 else 0.0
        busy = nbytes / rate + seek * nbytes / constants.chunk_bytes.value
        return Reading(max(nbytes / min(stream, rate), busy), busy)
    before = constants.metadata_requests.value
    requests = before + math.ceil(nbytes / constants.request_bytes.value)
    busy = max(nbytes / rate, requests / _requests(drive, constants))
    # Read-ahead overlaps all requests of a file's data but the first.
    waits = (before + 1) * latency
    alone = constants.open_s.value + waits + max(nbytes / min(stream, rate), busy)
    return Reading(alone, busy)


def read_from_cache(layout: str, nbytes: float, constants: Drives) -> Reading:
    """Return the seconds to read one sample that the page cache holds."""
    opened = constants.open_s.value if layout == "files" else 0.0
    return Reading(opened + nbytes / constants.stream_bytes_per_s.value, 0.0)


def _sequential(drive: DriveRecord, constants: Drives) -> float:
    """Return bytes/s: the maker's figure, or less where the drive's own link is slower."""
    stated = drive.read_mb_s * 1e6
    if drive.pcie_generation is None:
        return stated
    lane = constants.lane_bytes_per_s[str(min(max(drive.pcie_generation, 3), 5))].value
    return min(stated, LANES * lane)


def _requests(drive: DriveRecord, constants: Drives) -> float:
    """Return requests/s at a deep queue."""
    if drive.random_read_kiops is not None:
        return drive.random_read_kiops * 1e3
    return constants.requests_per_s[drive.interface].value


def cached_share(dataset_bytes: float, free_bytes: float) -> float:
    """Return the share of samples that the page cache has from the epoch before.

    A cache that drops what was used longest ago holds less of a shuffled data set than its size
    suggests: of an item at x of one epoch and at y of the next, 1 - x(1 - y) of all items come
    between, and it is still there if they fit. With c = 1 - size, for uniform x and y, the
    share is 1 - c + c ln c: 15 % for a cache of half the data set.
    """
    missing = 1 - free_bytes / dataset_bytes
    if missing <= 0:
        return 1.0
    return 1 - missing + missing * math.log(missing) if missing < 1 else 0.0


def from_drive(
    dataset_bytes: float | None, free_bytes: float | None, epochs: float
) -> tuple[tuple[float, float], ...]:
    """Return (share of the run, share of samples that come from the drive in it).

    The first epoch reads everything. Without sizes nothing is known to be cached.
    """
    if dataset_bytes is None or free_bytes is None or epochs <= 1:
        return ((1.0, 1.0),)
    again = 1 - cached_share(dataset_bytes, max(free_bytes, 0.0))
    return ((1 / epochs, 1.0), (1 - 1 / epochs, again))


@dataclass(frozen=True, slots=True)
class Work:
    """What a drive is for."""

    dataset_gb: float
    layout: Layout
    sample_kib: float
    written_gb_a_day: float
    """Checkpoints and prepared data."""
    memory_gib: float
    samples_per_second: float | None = None
    """What the GPUs take; None where nobody says."""

    @property
    def capacity_gb(self) -> float:
        """What the drive must hold, with room to spare."""
        return (self.dataset_gb + SYSTEM_GB + 7 * self.written_gb_a_day) / (1 - FREE)

    @property
    def size_gb(self) -> float:
        """The smallest size that is sold and holds it; the largest where none does."""
        return next((size for size in SIZES_GB if size >= self.capacity_gb), SIZES_GB[-1])

    @property
    def samples(self) -> float:
        """Of the data set."""
        return self.dataset_gb * 1e9 / (self.sample_kib * 1024)

    @property
    def cached(self) -> float:
        """Share of samples that come from memory from the second epoch on."""
        return cached_share(self.dataset_gb * 1e9, max(0.0, self.memory_gib - 8) * 2**30)


@dataclass(frozen=True, slots=True)
class Suited:
    """A drive for some work."""

    drive: DriveRecord
    samples_per_second: float
    """That it reads, nothing being cached."""
    first_epoch_s: float
    later_epoch_s: float
    years: float | None
    """Until its endurance is written; None where nothing is written, or nobody states it."""
    enough: bool | None
    """Whether it feeds the GPUs; None where nobody says what those take."""

    @property
    def lasts(self) -> bool:
        """Whether its endurance speaks against it."""
        return self.years is None or self.years >= YEARS


def class_of(drive: DriveRecord) -> Class:
    """Return the class that a drive is of."""
    if drive.interface == "sata":
        return "sata"
    if drive.interface == "hdd":
        return "hdd"
    generation = min(max(drive.pcie_generation or 3, 3), 5)
    return {3: "nvme3", 4: "nvme4", 5: "nvme5"}[generation]  # type: ignore[return-value]


def suited(drive: DriveRecord, work: Work) -> Suited:
    """Return what a drive does for some work, by the rates of its data sheet."""
    reading = read_from_drive(drive, work.layout, work.sample_kib * 1024, READERS, load().drives)
    rate = 1 / max(reading.drive, reading.alone / READERS)
    first = work.samples / rate
    years = None
    if drive.endurance_tb is not None and work.written_gb_a_day > 0:
        years = drive.endurance_tb * 1000 / work.written_gb_a_day / 365
    taken = work.samples_per_second
    return Suited(
        drive=drive,
        samples_per_second=rate,
        first_epoch_s=first,
        later_epoch_s=first * (1 - work.cached),
        years=years,
        enough=None if taken is None else rate >= taken,
    )


def by_class(drives: Iterable[DriveRecord], work: Work) -> dict[Class, tuple[Suited, ...]]:
    """Return the drives that hold the work, by class; the smallest that do, fastest first."""
    large = [one for one in drives if (one.capacity_gb or 0) >= work.capacity_gb]
    found: dict[Class, tuple[Suited, ...]] = {}
    for kind in CLASSES:
        alike = [one for one in large if class_of(one) == kind]
        least = min((one.capacity_gb or 0 for one in alike), default=0)
        near = [suited(one, work) for one in alike if (one.capacity_gb or 0) <= 1.1 * least]
        found[kind] = tuple(sorted(near, key=lambda one: -one.samples_per_second))
    return found
