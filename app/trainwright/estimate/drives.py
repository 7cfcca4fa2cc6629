"""Which drive some work needs: what each class of drive reads, and how long it lasts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from trainwright.catalog import DriveRecord
from trainwright.estimate.pipeline_calibration import load
from trainwright.estimate.storage import cached_share, read_from_drive

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
