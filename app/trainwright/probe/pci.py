"""PCI Express links, and what sysfs tells of devices on the bus."""

from dataclasses import dataclass
from pathlib import Path

from trainwright.messages import Message
from trainwright.probe.reading import Missing
from trainwright.probe.sample import NOT_READ

GENERATION = {"2.5": 1, "5.0": 2, "5": 2, "8.0": 3, "8": 3, "16.0": 4, "16": 4,
              "32.0": 5, "32": 5, "64.0": 6, "64": 6}  # fmt: skip
"""By GT/s as sysfs writes them; the PCI Express base specifications 1.0 to 6.0."""
UNKNOWN_WIDTHS = (0, 255)
"""What sysfs writes where a device has no such link."""


@dataclass(frozen=True, slots=True)
class Link:
    """A PCI Express link. Generation, and on some computers width, fall while nothing moves."""

    generation: int | Missing = NOT_READ
    width: int | Missing = NOT_READ
    """Lanes."""
    most_generation: int | Missing = NOT_READ
    """That device and slot reach together, where the driver tells; else the device's own."""
    most_width: int | Missing = NOT_READ


NO_LINK = Link()
"""Of which nothing was read."""


def link(device: Path) -> Link:
    """Return the link of a device's folder in sysfs."""
    return Link(
        _generation(device / "current_link_speed"),
        _width(device / "current_link_width"),
        _generation(device / "max_link_speed"),
        _width(device / "max_link_width"),
    )


def numa_node(address: str, root: Path = Path("/")) -> int | Missing:
    """Return the NUMA node that a PCI address is near to; one node has no number (-1)."""
    node = text(root / "sys/bus/pci/devices" / address / "numa_node")
    if node is None or not node.lstrip("-").isdigit():
        return Missing(Message.of("probe.untold"))
    return max(0, int(node))


def text(path: Path) -> str | None:
    """Return a file's text; None where it is absent or refuses to be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def number(path: Path) -> int | Missing:
    """Return a file's whole number."""
    found = text(path)
    if found is None or not found.isdigit():
        return Missing(Message.of("probe.untold"))
    return int(found)


def _generation(path: Path) -> int | Missing:
    speed = (text(path) or "").split()  # 16.0 GT/s PCIe
    found = GENERATION.get(speed[0]) if speed else None
    return found or Missing(Message.of("probe.untold"))


def _width(path: Path) -> int | Missing:
    found = number(path)
    if isinstance(found, Missing) or found in UNKNOWN_WIDTHS:
        return Missing(Message.of("probe.untold"))
    return found
