"""Drives: what they are, how they are connected, and the file systems on them."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import psutil

from trainwright.messages import Message
from trainwright.probe import cgroup
from trainwright.probe.pci import Link, link, text
from trainwright.probe.privacy import without_names
from trainwright.probe.reading import Missing
from trainwright.probe.sample import NOT_READ

T = TypeVar("T")
DriveKind = Literal["nvme", "sata", "hdd", "usb", "memory-card", "virtual"]
"""``sata``: without moving parts; ``hdd``: with."""

PATIENCE_S = 2.0
"""Seconds that a file system may take to tell its free space; assumed, it takes microseconds."""
SECTOR = 512
"""Bytes of a block in ``/sys/block/*/size``, whatever the drive's own are."""
NO_DRIVES = ("loop", "ram", "zram", "sr", "fd", "dm-", "md", "nbd")
"""Names of block devices that are none, or lie on others."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """A file system of a drive."""

    path: str
    """A person's name in it is left out."""
    filesystem: str
    free_bytes: int | Missing = NOT_READ
    """For this user."""
    total_bytes: int | Missing = NOT_READ
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class DriveReading:
    """One drive."""

    name: str
    """As the system calls it: ``nvme0n1``."""
    model: str | Missing
    kind: DriveKind | Missing
    size_bytes: int | Missing
    mounted: tuple[Mounted, ...] = ()
    link: Link | None = None
    """Of an NVMe drive."""
    home: bool = False
    """Whether the user's own folder is on it: where data sets are by default."""
    serial: str | Missing = NOT_READ


def read(
    root: Path = Path("/"), *, identifiers: bool = False
) -> tuple[DriveReading, ...] | Missing:
    """Return the drives, that of the user's folder first; or why none can be told.

    Args:
        root: where Linux's ``proc`` and ``sys`` are found.
        identifiers: whether serial numbers and the names of people in paths are told.
    """
    if sys.platform == "linux":
        drives = tuple(_linux(root, identifiers=identifiers))
    else:
        drives = tuple(_elsewhere(identifiers=identifiers))
    if not drives:
        return Missing(Message.of("probe.no-drives-shown"))
    return tuple(sorted(drives, key=lambda drive: (not drive.home, not drive.mounted, drive.name)))


def _linux(root: Path, *, identifiers: bool) -> Iterator[DriveReading]:
    on: dict[str, list[cgroup.Mount]] = {}
    for mount in cgroup.mounts(root):
        for drive in _drives_below(mount, root):
            on.setdefault(drive, []).append(mount)
    home = _holding(Path.home(), [mount for each in on.values() for mount in each])
    for block in sorted((root / "sys/block").glob("*")):
        if block.name.startswith(NO_DRIVES):
            continue
        size = text(block / "size") or ""
        if not size.isdigit() or int(size) == 0:  # an empty card reader
            continue
        mounts = on.get(block.name, [])
        kind = _kind(block)
        yield DriveReading(
            name=block.name,
            model=_model(block),
            kind=kind,
            size_bytes=int(size) * SECTOR,
            mounted=tuple(_mounted(mounts, root, identifiers=identifiers)),
            link=link(_controller(block)) if kind == "nvme" else None,
            home=home in mounts,
            serial=_serial(block) if identifiers else NOT_READ,
        )


def _drives_below(mount: cgroup.Mount, root: Path) -> set[str]:
    """Return the drives that a file system is on: through partitions, LVM, LUKS and RAID.

    File systems of several drives (btrfs) have a device number of their own: there the device
    that was mounted says it.
    """
    numbered = root / "sys/dev/block" / mount.device
    named = root / "sys/class/block" / mount.source.removeprefix("/dev/").replace("/", "!")
    if mount.source.startswith("/dev/mapper/"):
        named = _mapped(mount.source.removeprefix("/dev/mapper/"), root) or named
    if numbered.exists():
        return set(_bottom(numbered.resolve()))
    if mount.source.startswith("/dev/") and named.exists():
        return set(_bottom(named.resolve()))
    return set()


def _mapped(name: str, root: Path) -> Path | None:
    """Return the device-mapper device of a name."""
    devices = (root / "sys/block").glob("dm-*")
    return next((each for each in devices if text(each / "dm/name") == name), None)


def _bottom(device: Path) -> Iterator[str]:
    """Yield the names of whole drives below a block device."""
    below = sorted((device / "slaves").glob("*"))
    if below:
        for each in below:
            yield from _bottom(each.resolve())
    elif (device / "partition").exists():
        yield from _bottom(device.parent)
    else:
        yield device.name


def _kind(block: Path) -> DriveKind | Missing:
    place = str(block.resolve())
    if block.name.startswith("nvme"):
        return "nvme"
    if block.name.startswith("mmcblk"):
        return "memory-card"
    if block.name.startswith(("vd", "xvd")) or "/virtio" in place or "/vmbus" in place.casefold():
        return "virtual"
    if "/usb" in place:
        return "usb"
    match text(block / "queue/rotational"):
        case "1":
            return "hdd"
        case "0":
            return "sata"
    return Missing(Message.of("probe.untold"))


def _controller(block: Path) -> Path:
    """Return the PCI device of an NVMe drive; with multipath, a subsystem lies between."""
    direct = block / "device/device"
    if direct.exists():
        return direct.resolve()
    controllers = sorted((block / "device").glob("nvme[0-9]*/device"))
    return controllers[0].resolve() if controllers else direct


def _model(block: Path) -> str | Missing:
    """Return the model; SCSI's own field cuts those of SATA drives at 16 characters."""
    model = text(block / "device/model") or text(block / "device/name")
    if not model:
        return Missing(Message.of("probe.untold"))
    return " ".join(model.split())


def _serial(block: Path) -> str | Missing:
    found = text(block / "device/serial") or text(block / "serial")
    return found or Missing(Message.of("probe.untold"))


def _mounted(mounts: list[cgroup.Mount], root: Path, *, identifiers: bool) -> Iterator[Mounted]:
    """Yield each file system once: where it is mounted whole, or with the shortest path."""
    first: dict[str, cgroup.Mount] = {}
    for mount in sorted(mounts, key=lambda each: (each.root != "/", len(each.point))):
        first.setdefault(mount.device, mount)
    for mount in first.values():
        total, free = _space(str(root / mount.point.lstrip("/")))
        path = mount.point if identifiers else without_names(mount.point)
        yield Mounted(path, mount.filesystem, free, total, mount.read_only)


def _space(path: str) -> tuple[int | Missing, int | Missing]:
    """Return total and free bytes; a file system that does not answer is not waited for."""
    found = within(PATIENCE_S, lambda: shutil.disk_usage(path))
    return (found, found) if isinstance(found, Missing) else (found.total, found.free)


def within(seconds: float, ask: Callable[[], T]) -> T | Missing:
    """Return an answer, or why there is none after so many seconds; its thread is left behind."""
    found: list[T | Missing] = []

    def asked() -> None:
        try:
            found.append(ask())
        except (OSError, psutil.Error) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            found.append(Missing(Message.of("probe.other", reason=reason)))

    thread = threading.Thread(target=asked, daemon=True)
    thread.start()
    thread.join(seconds)
    return found[0] if found else Missing(Message.of("probe.no-answer", seconds=seconds))


def _holding(folder: Path, mounts: list[cgroup.Mount]) -> cgroup.Mount | None:
    """Return the mount that a folder is on."""
    holding = [mount for mount in mounts if folder.is_relative_to(mount.point)]
    return max(holding, key=lambda mount: len(mount.point), default=None)


def _elsewhere(*, identifiers: bool) -> Iterator[DriveReading]:
    """Yield file systems as drives: the other systems tell models to their own tools only."""
    found = within(PATIENCE_S, lambda: psutil.disk_partitions(all=False))
    untold = Missing(Message.of("probe.linux-only"))
    parts: list[Any] = [] if isinstance(found, Missing) else found
    for part in parts:
        if not part.fstype:  # an empty card reader on Windows
            continue
        total, free = _space(part.mountpoint)
        path = part.mountpoint if identifiers else without_names(part.mountpoint)
        read_only = "ro" in part.opts.split(",")
        yield DriveReading(
            name=part.device if identifiers else without_names(part.device),
            model=untold,
            kind=untold,
            size_bytes=total,
            mounted=(Mounted(path, part.fstype, free, total, read_only),),
            home=_same_drive(part.mountpoint),
        )


def _same_drive(mountpoint: str) -> bool:
    try:
        return os.path.samefile(Path.home().anchor, mountpoint)
    except OSError:
        return False
