"""AMD GPUs in sysfs trees as the amdgpu driver writes them."""

import sys
from pathlib import Path

import pytest

from trainwright.probe import amd
from trainwright.probe.nvml import Memory
from trainwright.probe.pci import Link
from trainwright.probe.reading import Missing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's sysfs")

ROOT_PORT = "sys/devices/pci0000:00/0000:00:01.1"
GPU = f"{ROOT_PORT}/0000:01:00.0/0000:02:00.0/0000:03:00.0"
GIB = 1 << 30


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A Radeon RX 7900 XTX in a slot of generation 3, behind the two bridges of its board."""
    write(tmp_path, {
        f"{ROOT_PORT}/vendor": "0x1022\n",
        f"{ROOT_PORT}/class": "0x060400\n",
        f"{ROOT_PORT}/0000:01:00.0/vendor": "0x1002\n",
        f"{ROOT_PORT}/0000:01:00.0/class": "0x060400\n",
        f"{ROOT_PORT}/0000:01:00.0/current_link_speed": "8.0 GT/s PCIe\n",
        f"{ROOT_PORT}/0000:01:00.0/current_link_width": "8\n",
        f"{ROOT_PORT}/0000:01:00.0/max_link_speed": "16.0 GT/s PCIe\n",
        f"{ROOT_PORT}/0000:01:00.0/max_link_width": "16\n",
        f"{ROOT_PORT}/0000:01:00.0/0000:02:00.0/vendor": "0x1002\n",
        f"{ROOT_PORT}/0000:01:00.0/0000:02:00.0/class": "0x060400\n",
        f"{GPU}/vendor": "0x1002\n",
        f"{GPU}/device": "0x744c\n",
        f"{GPU}/revision": "0xc8\n",
        f"{GPU}/current_link_speed": "16.0 GT/s PCIe\n",
        f"{GPU}/current_link_width": "16\n",
        f"{GPU}/gpu_busy_percent": "37\n",
        f"{GPU}/mem_info_vram_total": f"{24560 << 20}\n",
        f"{GPU}/mem_info_vram_used": f"{900 << 20}\n",
        f"{GPU}/mem_info_gtt_total": f"{16 * GIB}\n",
        f"{GPU}/hwmon/hwmon3/power1_cap": "303000000\n",
        f"{GPU}/unique_id": "a1b2c3d4e5f60718\n",
        "usr/share/libdrm/amdgpu.ids": (
            "# List of AMDGPU IDs\n1.0.0\n"
            "744C,\tC8,\tAMD Radeon RX 7900 XTX\n744C,\tCC,\tAMD Radeon RX 7900 XT\n"
        ),
    })  # fmt: skip
    for card in ("card0", "card1"):
        (tmp_path / "sys/class/drm" / card).mkdir(parents=True)
    (tmp_path / "sys/class/drm/card1/device").symlink_to(tmp_path / GPU)
    (tmp_path / "sys/class/drm/card1-HDMI-A-1").mkdir()
    write(tmp_path, {"sys/class/drm/card0/device/vendor": "0x8086\n"})  # integrated, Intel's
    return tmp_path


def test_a_radeon_is_read_from_sysfs(root: Path) -> None:
    found = amd.read(root)
    assert not isinstance(found, Missing)
    [gpu] = found
    assert gpu.name == "AMD Radeon RX 7900 XTX"
    assert gpu.memory == Memory(24560 << 20, 0, 900 << 20)
    assert gpu.busy == 0.37
    assert gpu.power_limit_w == 303
    assert gpu.bus == "0000:03:00.0"
    assert isinstance(gpu.partition, Missing)
    assert isinstance(gpu.serial, Missing)


def test_the_link_is_that_of_the_slot_and_not_the_one_on_the_board(root: Path) -> None:
    found = amd.read(root)
    assert not isinstance(found, Missing)
    assert found[0].link == Link(3, 8, 4, 16)


def test_without_a_name_or_readings_there_are_reasons(root: Path) -> None:
    (root / "usr/share/libdrm/amdgpu.ids").unlink()
    for name in ("mem_info_vram_used", "gpu_busy_percent"):
        (root / GPU / name).unlink()
    found = amd.read(root, identifiers=True)
    assert not isinstance(found, Missing)
    [gpu] = found
    assert isinstance(gpu.name, Missing)
    assert gpu.name.reason.values["id"] == "744c"
    assert isinstance(gpu.memory, Missing)
    assert isinstance(gpu.busy, Missing)
    assert gpu.serial == "a1b2c3d4e5f60718"


def test_no_amd_gpu_is_a_reason(tmp_path: Path) -> None:
    found = amd.read(tmp_path)
    assert isinstance(found, Missing)
    assert found.reason.id == "probe.no-amd"
