"""The drive below a folder: what it calls itself, how it is attached, what that lets through."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Attachment = Literal["nvme", "sata", "hdd", "usb", "virtual", "unknown"]

SATA_BYTES_PER_S = 600e6
"""Of SATA 3: 6 Gb/s, of which 8b/10b leaves 4.8."""
ENCODING = 128 / 130
"""Of PCI Express from generation 3 on."""
_SPEED = re.compile(r"([0-9.]+) GT/s")


@dataclass(frozen=True, slots=True)
class Drive:
    """One drive; its serial number is not read."""

    name: str
    """What the maker calls it, or the system where the maker says nothing."""
    attachment: Attachment
    limit_bytes_per_s: float | None
    """What its interface lets through; None where that is not known."""


def of_device(number: str, root: Path = Path("/sys")) -> Drive | None:
    """Return the drive with a device number (``259:0``); None where the system has none.

    Partitions, encrypted and logical volumes lead to the drive that they lie on; one that lies
    on several has their names, and no limit.
    """
    found = _whole(root / "dev" / "block" / number)
    return _described(found) if found is not None else None


def _whole(node: Path) -> Path | None:
    """Return the folder of the whole device that a partition or volume is part of."""
    try:
        place = node.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    if (place / "partition").exists():
        place = place.parent
    below = sorted((place / "slaves").glob("*"))
    return _whole(below[0]) if len(below) == 1 else place


def _described(place: Path) -> Drive:
    below = sorted((place / "slaves").glob("*"))
    if below:
        parts = [part for each in below if (part := _whole(each)) is not None]
        names = " + ".join(_described(part).name for part in parts)
        return Drive(f"{place.name} ({names})", "unknown", None)
    name = _text(place / "device" / "model") or place.name
    attachment = _attachment(place)
    limit = {"sata": SATA_BYTES_PER_S, "hdd": SATA_BYTES_PER_S}.get(attachment)
    if attachment == "nvme":
        limit = _pcie(place / "device" / "device")
    return Drive(name, attachment, limit)


def _attachment(place: Path) -> Attachment:
    path = os.fspath(place)
    if place.name.startswith("nvme"):
        return "nvme"
    if "/virtio" in path or place.name.startswith(("vd", "xvd")):
        return "virtual"
    if "/usb" in path:
        return "usb"
    if "/ata" in path:
        return "hdd" if _text(place / "queue" / "rotational") == "1" else "sata"
    return "unknown"


def _pcie(device: Path) -> float | None:
    """Return the bytes/s of a PCI Express link as it is now."""
    speed = _SPEED.match(_text(device / "current_link_speed"))
    width = _text(device / "current_link_width")
    if speed is None or not width.isdigit() or not int(width):
        return None
    return float(speed[1]) * 1e9 * int(width) * ENCODING / 8


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
