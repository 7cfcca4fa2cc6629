"""The benchmark of a drive: what it takes, and what its figures are worth."""

import os
import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainwright.explain import Unit
from trainwright.messages import Message, UserError
from trainwright.probe import drive as drives
from trainwright.probe import host
from trainwright.probe.benchmark import Choices, Cost, Outcome, Progress
from trainwright.probe.drive import Drive
from trainwright.probe.measurements import Measurement, now
from trainwright.worker import client

MIB, GIB = 1 << 20, 1 << 30
MOST, LEAST = GIB, 64 * MIB
"""Size of the test file where nobody chooses; KDiskMark's is 1 GiB, less than 64 MiB fits into
caches of drives."""
CHOSEN_MOST = 16 * GIB
"""That a person may choose; assumed, filling it takes minutes."""
SHARE_OF_FREE = 0.05
"""Of the free space that the test file takes at most."""
FILL_BYTES_PER_S = 200e6
"""Assumed for the time that is told before: a hard disk, or random numbers on a slow core."""
LEAST_SECONDS = 1.0
"""Of one run; assumed."""
TESTS = 4
"""KDiskMark's."""

INSTANT_S = 5e-6
"""No drive answers sooner: NAND takes 40 us and more, Optane 10."""
BEYOND = 1.1
"""Of the interface's limit: what exceeds it came from memory; assumed, for clocks and rounding."""
IN_MEMORY = ("tmpfs", "ramfs")
CACHING = ("zfs", "fuse", "ntfs", "ntfs3", "9p")
"""Filesystems that answer direct requests from memory (KDiskMark #148, #122)."""
NETWORK = ("nfs", "cifs", "smb", "smb2", "ceph", "9p", "lustre", "gpfs", "fhgfs")
COMPRESSING = ("zfs", "bcachefs")
"""Those that do unless they are told not to; others say so among their options."""


def folder_of(choices: Choices) -> Path:
    """Return the folder that is measured."""
    return Path(os.path.abspath(choices.folder)) if choices.folder is not None else Path.home()


def size_of(choices: Choices) -> int:
    """Return the bytes of the test file, whole MiB.

    Raises:
        UserError: the chosen size is out of bounds, or the drive has no room for a useful one.
    """
    if choices.size is not None:
        if not LEAST <= choices.size <= CHOSEN_MOST:
            raise UserError.of("bench.size", least=LEAST, most=CHOSEN_MOST)
        return choices.size // MIB * MIB
    folder = folder_of(choices)
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError.of("bench.no-folder", folder=str(folder), reason=reason) from error
    size = min(MOST, int(free * SHARE_OF_FREE)) // MIB * MIB
    if size < LEAST:
        raise UserError.of("bench.full", folder=str(folder), free=free, need=LEAST / SHARE_OF_FREE)
    return size


def cost(choices: Choices) -> Cost:
    """Return what the benchmark takes.

    Raises:
        UserError: as ``size_of``.
    """
    size, small = size_of(choices), 64 * MIB
    tests = TESTS * (2 if choices.writes else 1)
    each = choices.seconds + 1.0 * _rounds(choices)  # the ramp, and what starting takes
    seconds = size / FILL_BYTES_PER_S + each * (tests + 1 + len(_readers()))
    written = size + small + (2 * size * TESTS if choices.writes else 0)
    return Cost(seconds, disk_bytes=written)


def run(
    choices: Choices,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Outcome:
    """Measure the drive below the folder.

    Raises:
        UserError: the folder will not do, the drive filled up, it was cancelled.
    """
    folder, size = folder_of(choices), size_of(choices)
    answer = client.run(
        "bench_disk",
        {
            "folder": str(folder),
            "size": size,
            "seconds": choices.seconds / _rounds(choices),
            "nvme": _below(folder).attachment == "nvme",
            "method": choices.method,
            "rounds": _rounds(choices),
            "writes": choices.writes,
            "readers": _readers(),
        },
        timeout_s=10 * cost(choices).seconds + 60,
        silence_s=choices.patience_s,
        file_bytes=CHOSEN_MOST,
        on_progress=on_progress,
        cancelled=cancelled,
    )
    return outcome(answer, _below(folder), now())


def _rounds(choices: Choices) -> int:
    """Return how often each test runs within its time: short runs scatter too much."""
    return 3 if choices.seconds >= 3 * LEAST_SECONDS else 1


def _below(folder: Path) -> Drive:
    """Return the drive below a folder, as far as the system says; it need not exist."""
    nothing = Drive("?", "unknown", None)
    try:
        number = os.stat(folder).st_dev
    except OSError:
        return nothing
    if not hasattr(os, "major"):
        return nothing
    return drives.of_device(f"{os.major(number)}:{os.minor(number)}") or nothing


def _readers() -> list[int]:
    """Return how many readers side by side are measured: one, and one a usable core up to 8."""
    cores = host.read().cores
    most = min(cores, 8) if isinstance(cores, int) else 4
    return sorted({1, most})


def outcome(answer: Mapping[str, Any], below: Drive, date: str) -> Outcome:
    """Return what the program's answer says, with the flags that it deserves.

    Raises:
        UserError: it is not such an answer.
    """
    try:
        drive = _mounted_on(answer["device"], below)
        filesystem, options = str(answer["filesystem"]), str(answer["options"])
        whole = tuple(flags(filesystem, options, drive, answer["tests"], direct=answer["direct"]))
        name = drive.name if drive.name != "?" else filesystem or "?"
        measurements = tuple(_measurements(answer, name, drive, whole, date))
        skipped = dict(answer["skipped"])
        return Outcome(measurements, tuple(_notes(answer, skipped, whole)))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UserError.of("bench.rubbish", program="bench_disk") from error


def _mounted_on(number: str, below: Drive) -> Drive:
    """Return the drive by its mount where the folder's own number leads nowhere (btrfs)."""
    if below.name != "?" or not number:
        return below
    return drives.of_device(number) or below


def flags(
    filesystem: str,
    options: str,
    drive: Drive,
    tests: Mapping[str, Any],
    *,
    direct: bool,
) -> Iterator[str]:
    """Yield why figures say less of the drive than they seem to.

    A filesystem that takes direct requests proves nothing: tmpfs takes them, and answers from
    memory.
    """
    if filesystem in IN_MEMORY:
        yield "tmpfs"
    waits = [one["p50_s"] for one in tests.get("read.rnd4k-q1t1", ()) if "p50_s" in one]
    rates = [
        one["bytes_per_s"]
        for name, found in tests.items()
        if name.startswith("read.seq1m")
        for one in found
    ]
    limit = drive.limit_bytes_per_s
    too_soon = any(wait < INSTANT_S for wait in waits)
    too_much = limit is not None and any(rate > BEYOND * limit for rate in rates)
    if filesystem in IN_MEMORY + CACHING or too_soon or too_much:
        yield "cached"
    if not direct and filesystem not in IN_MEMORY:
        yield "buffered"
    if filesystem in COMPRESSING or "compress" in options:
        yield "compressed"
    if filesystem in NETWORK:
        yield "network"


_RATES = {
    "streams": ("bytes_per_s", Unit.BYTES_PER_SECOND),
    "seq1m": ("bytes_per_s", Unit.BYTES_PER_SECOND),
    "rnd4k": ("requests_per_s", Unit.REQUESTS_PER_SECOND),
    "files": ("files_per_s", Unit.REQUESTS_PER_SECOND),
}


def _measurements(
    answer: Mapping[str, Any], name: str, drive: Drive, flags: tuple[str, ...], date: str
) -> Iterator[Measurement]:
    for test, found in answer["tests"].items():
        key, unit = _RATES[test.partition(".")[2].partition("-")[0]]
        rates = [float(one[key]) for one in found]
        last = found[-1]
        method = last.get("method", "own")
        conditions: dict[str, str | int | float | bool] = {
            "attachment": drive.attachment,
            "filesystem": answer["filesystem"],
            "size": int(answer["size"]),
            "direct": bool(answer["direct"]),
            "method": method,
        }
        for extra in ("p50_s", "p99_s", "readers", "file_bytes"):
            if extra in last:
                conditions[extra] = last[extra]
        yield Measurement(
            what=f"drive.{test}",
            value=statistics.median(rates),
            unit=unit,
            on=name,
            date=date,
            low=min(rates) if len(rates) > 1 else None,
            high=max(rates) if len(rates) > 1 else None,
            conditions=conditions,
            versions={"fio": str(answer["fio"])} if method == "fio" else {},
            flags=flags,
        )


def _notes(
    answer: Mapping[str, Any], skipped: Mapping[str, str], flags: tuple[str, ...]
) -> Iterator[Message]:
    if answer["fio"]:
        yield Message.of("bench.note.fio", version=answer["fio"])
    else:
        yield Message.of(f"bench.note.own-{answer['engine']}")
    for flag in flags:
        yield Message.of(f"bench.flag.{flag}")
    for name, reason in skipped.items():
        yield Message.of("bench.note.skipped", what=name, reason=reason)
