"""How long samples take from a drive, and what the page cache spares.

An SLC cache is not a part of this: it makes writes fast, and no read.
"""

import math
from dataclasses import dataclass

from trainwright.catalog import DriveRecord
from trainwright.estimate.pipeline_calibration import Drives

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
