"""Drives in sysfs trees as Linux writes them."""

import sys
from pathlib import Path

import pytest

from trainwright.probe import disks
from trainwright.probe.disks import DriveReading, Mounted
from trainwright.probe.pci import Link
from trainwright.probe.privacy import without_names
from trainwright.probe.reading import Missing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's sysfs")

NVME = "sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0/nvme/nvme0/nvme0n1"
SATA = "sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda"
USB = "sys/devices/pci0000:00/0000:00:14.0/usb1/1-2/host6/target6:0:0/6:0:0:0/block/sdb"
VIRTUAL = "sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda"
LUKS = "sys/devices/virtual/block/dm-0"


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def link(root: Path, name: str, target: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(root / target)


def block(root: Path, place: str, number: str, sectors: int) -> None:
    """Make a drive as sysfs shows it."""
    name = place.rpartition("/")[2]
    write(root, f"{place}/size", f"{sectors}\n")
    for folder in (f"sys/block/{name}", f"sys/class/block/{name}", f"sys/dev/block/{number}"):
        link(root, folder, place)


def part(root: Path, place: str, name: str, number: str) -> None:
    write(root, f"{place}/{name}/partition", "1\n")
    link(root, f"sys/class/block/{name}", f"{place}/{name}")
    link(root, f"sys/dev/block/{number}", f"{place}/{name}")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workstation: NVMe with LUKS, a hard disk, a USB stick, an empty card reader."""
    pci = "sys/devices/pci0000:00/0000:00:01.1/0000:01:00.0"
    block(tmp_path, NVME, "259:0", 3907029168)
    part(tmp_path, NVME, "nvme0n1p2", "259:2")
    part(tmp_path, NVME, "nvme0n1p3", "259:3")
    link(tmp_path, f"{NVME}/device", f"{pci}/nvme/nvme0")
    link(tmp_path, f"{pci}/nvme/nvme0/device", pci)
    write(tmp_path, f"{pci}/nvme/nvme0/model", "Samsung SSD 990 PRO 2TB                 \n")
    write(tmp_path, f"{pci}/nvme/nvme0/serial", "S7L9NJ0W000001 \n")
    write(tmp_path, f"{pci}/current_link_speed", "8.0 GT/s PCIe\n")
    write(tmp_path, f"{pci}/current_link_width", "4\n")
    write(tmp_path, f"{pci}/max_link_speed", "16.0 GT/s PCIe\n")
    write(tmp_path, f"{pci}/max_link_width", "4\n")
    write(tmp_path, f"{NVME}/queue/rotational", "0\n")
    block(tmp_path, LUKS, "253:0", 3905000000)
    write(tmp_path, f"{LUKS}/dm/name", "luks-root\n")
    link(tmp_path, f"{LUKS}/slaves/nvme0n1p3", f"{NVME}/nvme0n1p3")
    block(tmp_path, SATA, "8:0", 15628053168)
    write(tmp_path, f"{SATA}/queue/rotational", "1\n")
    write(tmp_path, f"{SATA}/device/model", "ST8000DM004-2CX1\n")
    block(tmp_path, USB, "8:16", 0)  # no card in the reader
    block(tmp_path, "sys/devices/virtual/block/loop0", "7:0", 1000)
    for folder in ("home", "boot"):
        (tmp_path / folder).mkdir()
    write(tmp_path, "proc/self/mountinfo", (
        "27 1 253:0 / / rw,relatime - ext4 /dev/mapper/luks-root rw\n"
        "28 27 259:2 / /boot rw - vfat /dev/nvme0n1p2 rw\n"
        "29 27 253:0 /etc/hosts /etc/hosts rw - ext4 /dev/mapper/luks-root rw\n"
        "30 27 0:44 /@data /media/my\\040disk rw - btrfs /dev/sda rw\n"
        "31 27 0:50 / /mnt/share rw - nfs4 server:/share rw\n"
        "32 27 7:0 / /snap/core/1 ro - squashfs /dev/loop0 ro\n"
    ))  # fmt: skip
    return tmp_path


def drives(root: Path, *, identifiers: bool = False) -> dict[str, DriveReading]:
    found = disks.read(root, identifiers=identifiers)
    assert not isinstance(found, Missing)
    return {drive.name: drive for drive in found}


def test_drives_are_found_below_encryption_and_partitions(root: Path) -> None:
    found = drives(root)
    assert list(found) == ["nvme0n1", "sda"]  # that of the user's folder first
    nvme = found["nvme0n1"]
    assert (nvme.model, nvme.kind, nvme.home) == ("Samsung SSD 990 PRO 2TB", "nvme", True)
    assert nvme.size_bytes == 2_000_398_934_016
    assert [(each.path, each.filesystem) for each in nvme.mounted] == [
        ("/", "ext4"),
        ("/boot", "vfat"),
    ]
    assert isinstance(nvme.mounted[0].free_bytes, int)


def test_an_nvme_drive_tells_its_link(root: Path) -> None:
    assert drives(root)["nvme0n1"].link == Link(3, 4, 4, 4)


def test_a_hard_disk_with_a_file_system_that_has_a_number_of_its_own(root: Path) -> None:
    disk = drives(root)["sda"]
    assert (disk.model, disk.kind, disk.link) == ("ST8000DM004-2CX1", "hdd", None)
    assert [each.path for each in disk.mounted] == ["/media/my disk"]
    assert isinstance(disk.mounted[0].free_bytes, Missing)  # the folder is not there


def test_serial_numbers_stay_out_unless_they_are_asked_for(root: Path) -> None:
    assert isinstance(drives(root)["nvme0n1"].serial, Missing)
    assert drives(root, identifiers=True)["nvme0n1"].serial == "S7L9NJ0W000001"


def test_names_of_people_stay_out_of_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/alice"))
    assert without_names("/media/alice/stick") == "/media/…/stick"
    assert without_names("/data/alices") == "/data/alices"


def test_a_drive_of_a_virtual_machine_says_that_it_is_hidden(tmp_path: Path) -> None:
    block(tmp_path, VIRTUAL, "254:0", 536870912)
    write(tmp_path, f"{VIRTUAL}/queue/rotational", "1\n")
    [drive] = drives(tmp_path).values()
    assert drive.kind == "virtual"
    assert isinstance(drive.model, Missing)
    assert drive.mounted == ()


def test_a_container_without_block_devices_is_a_reason(tmp_path: Path) -> None:
    found = disks.read(tmp_path)
    assert isinstance(found, Missing)
    assert found.reason.id == "probe.no-drives-shown"


def test_a_file_system_that_does_not_answer_is_not_waited_for() -> None:
    import threading

    stuck = threading.Event()
    found = disks.within(0.05, stuck.wait)
    stuck.set()
    assert isinstance(found, Missing)
    assert found.reason.id == "probe.no-answer"


def test_other_systems_tell_file_systems_and_why_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    class Part:
        device, mountpoint, fstype, opts = "C:\\", "/", "NTFS", "rw,fixed"

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(disks.psutil, "disk_partitions", lambda all: [Part()])
    found = disks.read()
    assert not isinstance(found, Missing)
    [drive] = found
    assert isinstance(drive.model, Missing)
    [mounted] = drive.mounted
    assert isinstance(mounted, Mounted)
    assert mounted.filesystem == "NTFS"
    assert isinstance(mounted.free_bytes, int)
