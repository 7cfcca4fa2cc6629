"""AMD GPUs as Linux's amdgpu driver shows them in sysfs (Documentation/gpu/amdgpu)."""

import sys
from dataclasses import dataclass
from pathlib import Path

from trainwright.messages import Message
from trainwright.probe.nvml import Memory
from trainwright.probe.pci import NO_LINK, Link, link, number, text
from trainwright.probe.reading import Missing
from trainwright.probe.sample import NOT_READ

VENDOR = "0x1002"
BRIDGE_CLASS = "0x0604"
"""First digits of the class of a PCI bridge."""
NAMES = "usr/share/libdrm/amdgpu.ids"
"""Marketing names by device and revision, a file of libdrm."""


@dataclass(frozen=True, slots=True)
class AmdGpu:
    """One GPU."""

    index: int
    name: str | Missing
    memory: Memory | Missing
    """Its own; of an APU the part that firmware sets aside."""
    bus: str | Missing = NOT_READ
    link: Link = NO_LINK
    busy: float | Missing = NOT_READ
    """Share of the last moment in which it worked."""
    power_limit_w: float | Missing = NOT_READ
    shared_bytes: int | Missing = NOT_READ
    """System memory that it may map (GTT)."""
    partition: str | Missing = NOT_READ
    """Of Instinct: SPX, DPX, QPX or CPX."""
    serial: str | Missing = NOT_READ


def read(root: Path = Path("/"), *, identifiers: bool = False) -> tuple[AmdGpu, ...] | Missing:
    """Return AMD's GPUs, or why there are none to see."""
    if sys.platform != "linux":
        return Missing(Message.of("probe.amd-linux-only"))
    cards = sorted((root / "sys/class/drm").glob("card[0-9]*"))
    devices = [card / "device" for card in cards if "-" not in card.name]
    found = [device for device in devices if text(device / "vendor") == VENDOR]
    if not found:
        return Missing(Message.of("probe.no-amd"))
    return tuple(
        _gpu(index, device, root, identifiers=identifiers) for index, device in enumerate(found)
    )


def _gpu(index: int, device: Path, root: Path, *, identifiers: bool) -> AmdGpu:
    place = device.resolve()
    return AmdGpu(
        index=index,
        name=_name(device, root),
        memory=_memory(device),
        bus=place.name if ":" in place.name else NOT_READ,
        link=link(_outermost(place)),
        busy=_share(number(device / "gpu_busy_percent")),
        power_limit_w=_power(device),
        shared_bytes=number(device / "mem_info_gtt_total"),
        partition=text(device / "current_compute_partition")
        or Missing(Message.of("probe.not-supported")),
        serial=(text(device / "unique_id") or Missing(Message.of("probe.not-supported")))
        if identifiers
        else NOT_READ,
    )


def _name(device: Path, root: Path) -> str | Missing:
    """Return the name: server boards tell it, of others libdrm's list knows it."""
    if told := text(device / "product_name"):
        return told
    id = (text(device / "device") or "").removeprefix("0x").casefold()
    revision = (text(device / "revision") or "").removeprefix("0x").casefold()
    for line in (text(root / NAMES) or "").splitlines():
        parts = [part.strip() for part in line.split(",", 2)]
        if len(parts) == 3 and (parts[0].casefold(), parts[1].casefold()) == (id, revision):
            return parts[2]
    return Missing(Message.of("probe.unnamed-amd", id=id or "?", revision=revision or "?"))


def _memory(device: Path) -> Memory | Missing:
    whole = number(device / "mem_info_vram_total")
    used = number(device / "mem_info_vram_used")
    if isinstance(whole, Missing):
        return whole
    if isinstance(used, Missing):
        return used
    return Memory(whole, 0, used)


def _outermost(place: Path) -> Path:
    """Return the card's side of the slot: bridges on the card lie between it and the GPU."""
    outermost = place
    for parent in place.parents:
        bridge = (text(parent / "class") or "").startswith(BRIDGE_CLASS)
        if not bridge or text(parent / "vendor") != VENDOR:
            break
        outermost = parent
    return outermost


def _share(percent: int | Missing) -> float | Missing:
    return percent if isinstance(percent, Missing) else percent / 100


def _power(device: Path) -> float | Missing:
    for folder in sorted((device / "hwmon").glob("hwmon*")):
        if not isinstance(watts := number(folder / "power1_cap"), Missing):
            return watts / 1e6  # microwatts
    return Missing(Message.of("probe.not-supported"))
