"""A drive is measured on a nameless file of ours, and nothing stays behind, however it ends."""

import contextlib
import importlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainwright.messages import UserError, render
from trainwright.probe import benchmark_disk, benchmarks, drive, measurements
from trainwright.probe.benchmark import Choices
from trainwright.probe.drive import Drive
from trainwright.worker import client

MIB = 1 << 20
SMALL = 64 * MIB
FOUR = ["seq1m-q8t1", "seq1m-q1t1", "rnd4k-q32t1", "rnd4k-q1t1"]
linux = pytest.mark.skipif(sys.platform != "linux", reason="files without names are Linux's")
has_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
as_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root may mount, or be another user"
)


@pytest.fixture
def programs(monkeypatch):
    """Return a function that imports a module of the child programs."""
    monkeypatch.syspath_prepend(client.PROGRAMS)
    return importlib.import_module


def choices(folder: Path, **more) -> Choices:
    return Choices(folder, **({"size": SMALL, "seconds": 0.1} | more))


def question(folder: Path, **more) -> dict[str, object]:
    asked = {"folder": str(folder), "size": SMALL, "seconds": 0.1, "nvme": False}
    asked |= {"method": "own", "rounds": 1, "writes": False, "readers": []}
    return asked | more


def refused(folder: Path, **options) -> UserError:
    with pytest.raises(UserError) as caught:
        client.run("bench_disk", question(folder), **options)
    assert not folder.is_dir() or list(folder.iterdir()) == []
    return caught.value


@linux
@pytest.mark.parametrize("method", ["own", pytest.param("fio", marks=has_fio)])
def test_four_tests_small_files_and_readers_are_kept_and_nothing_else(tmp_path, method) -> None:
    outcome = benchmarks.run("disk", choices(tmp_path, method=method))
    found = {one.what: one for one in outcome.measurements}
    deep = {name for name in found if "rnd4k-q32" in name}
    assert {f"drive.read.{name}" for name in FOUR if "q32" not in name} | deep <= set(found)
    assert len(deep) == 1
    assert "drive.read.files" in found
    assert "drive.read.streams-1" in found
    assert all(one.value > 0 for one in found.values())
    assert found["drive.read.seq1m-q8t1"].conditions["method"] == method
    assert not any(".write." in name for name in found)
    assert list(tmp_path.iterdir()) == []
    assert measurements.load().measurements == outcome.measurements


@linux
def test_writing_is_measured_only_where_it_is_asked_for(tmp_path) -> None:
    outcome = benchmark_disk.run(choices(tmp_path, writes=True, method="own"))
    assert {f"drive.write.{name}" for name in ("seq1m-q8t1", "rnd4k-q1t1")} <= {
        one.what for one in outcome.measurements
    }
    assert benchmark_disk.cost(choices(tmp_path, writes=True)).disk_bytes > 8 * SMALL
    assert list(tmp_path.iterdir()) == []


@linux
def test_memory_is_not_taken_for_a_drive() -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shutil.disk_usage(shm).free < 4 * SMALL:
        pytest.skip("no room in /dev/shm")
    outcome = benchmark_disk.run(choices(shm, method="own"))
    assert all({"tmpfs", "cached"} <= set(one.flags) for one in outcome.measurements)
    assert any("say nothing of a drive" in render(note, "en") for note in outcome.notes)


def test_what_it_takes_is_known_before_and_bounded(tmp_path) -> None:
    cost = benchmarks.cost("disk", choices(tmp_path))
    assert SMALL <= cost.disk_bytes <= SMALL + 64 * MIB
    assert cost.seconds < 30
    with pytest.raises(UserError, match="may have"):
        benchmarks.cost("disk", choices(tmp_path, size=1 << 40))
    for seconds in (0.0, -1.0, float("nan"), float("inf"), 1e9):
        with pytest.raises(UserError, match="seconds"):
            benchmarks.cost("disk", choices(tmp_path, seconds=seconds))
    free = shutil.disk_usage(tmp_path).free
    assert benchmark_disk.size_of(Choices(tmp_path)) <= min(1 << 30, free * 0.05)


# Folders that will not do


@linux
def test_folders_that_are_none_or_the_systems_are_refused(tmp_path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    folder = tmp_path / "folder"
    folder.mkdir()
    link.symlink_to(folder)
    file.write_text("mine")
    assert "cannot be measured" in str(refused(tmp_path / "missing"))
    for place, reason in ((link, "is a link to"), (file, "is not a folder")):
        with pytest.raises(UserError, match=reason):
            client.run("bench_disk", question(place))
    for place in ("/dev", "/proc", "/sys/kernel", "/dev/null", "/dev/full"):
        with pytest.raises(UserError, match=r"belongs to the system|is not a folder"):
            client.run("bench_disk", question(Path(place)))
    assert file.read_text() == "mine"
    assert list(folder.iterdir()) == []


@as_root
def test_a_folder_that_may_not_be_written_is_named(tmp_path) -> None:
    with mounted(tmp_path, "size=256m") as place:
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        assert "Read-only file system" in str(refused(place))


@as_root
def test_a_drive_without_room_is_refused(tmp_path) -> None:
    with mounted(tmp_path, "size=100m") as place:
        assert "does not fill up" in str(refused(place))


# Drives and limits that give way in the middle


@linux
def test_a_limit_in_the_middle_is_said_and_leaves_nothing(tmp_path) -> None:
    error = refused(tmp_path, file_bytes=16 * MIB)
    assert error.message.id == "bench.filled-up"
    assert error.message.values["written"] == 16 * MIB


@as_root
def test_a_drive_that_fills_up_in_the_middle_is_said_and_leaves_nothing(tmp_path, programs) -> None:
    with mounted(tmp_path, "size=32m") as place:
        drivefile = programs("drivefile")
        file = drivefile.nameless(str(place))
        with pytest.raises(programs("refusal").Refusal) as caught:
            drivefile.fill(file, 64 * MIB, lambda _share: None)
        assert caught.value.id == "bench.filled-up"
        assert 30 * MIB < caught.value.values["written"] <= 32 * MIB
        os.close(file)
        assert shutil.disk_usage(place).used < MIB


# Children that end, or do not


def held_open(folder: Path) -> list[str]:
    """Return the files in a folder that a process has open, deleted ones with them."""
    found = []
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # the process may have ended, or be another user's
            found.append(os.readlink(descriptor))
    return [name for name in found if name.startswith(f"{folder}/")]


@linux
def test_cancelling_half_way_leaves_nothing(tmp_path) -> None:
    reached: list[str] = []
    with pytest.raises(UserError) as caught:
        benchmark_disk.run(
            choices(tmp_path, seconds=20.0, method="own"),
            on_progress=lambda _share, id: reached.append(id),
            cancelled=lambda: any("seq1m" in id for id in reached),
        )
    assert caught.value.message.id == "worker.cancelled"
    assert list(tmp_path.iterdir()) == []
    assert held_open(tmp_path) == []
    assert measurements.load().measurements == ()


@linux
def test_a_killed_child_leaves_nothing(tmp_path) -> None:
    program = client.PROGRAMS / "bench_disk.py"
    child = subprocess.Popen(
        [sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(question(tmp_path, seconds=20)).encode())
    child.stdin.close()
    while b"seq1m" not in child.stdout.readline():
        assert child.poll() is None
    open_files = [os.readlink(path) for path in Path(f"/proc/{child.pid}/fd").iterdir()]
    assert any(str(tmp_path) in path for path in open_files), "it measures there"
    child.kill()
    child.wait()
    child.stdout.close()
    assert list(tmp_path.iterdir()) == []


@linux
def test_a_child_killed_from_outside_is_said(tmp_path) -> None:
    def kill(_share: float, id: str) -> None:
        if "seq1m" in id:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    mine = b"bench_disk" in path.read_bytes() and _descends(int(path.parent.name))
                except OSError:
                    continue
                if mine:
                    os.kill(int(path.parent.name), signal.SIGKILL)

    with pytest.raises(UserError, match=r"ended|killed"):
        client.run("bench_disk", question(tmp_path, seconds=20), on_progress=kill)
    assert list(tmp_path.iterdir()) == []


def _descends(process: int) -> bool:
    """Whether a process is a descendant of this one, and no other user's benchmark."""
    while process > 1:
        if process == os.getpid():
            return True
        text = Path(f"/proc/{process}/stat").read_text()
        process = int(text.rpartition(")")[2].split()[1])
    return False


def fake_fio(folder: Path, monkeypatch, body: str) -> None:
    folder.mkdir()
    script = folder / "fio"
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo fio-9.9 && exit\n{body}\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@linux
@pytest.mark.parametrize(
    "body", ["echo rubbish", 'echo "{}"', "echo '{\"jobs\": [3]}'", "exit 3", "kill -9 $$"]
)
def test_a_fio_that_talks_rubbish_is_left_out_with_its_reason(tmp_path, monkeypatch, body) -> None:
    fake_fio(tmp_path / "bin", monkeypatch, body)
    place = tmp_path / "place"
    place.mkdir()
    outcome = benchmark_disk.run(choices(place))
    assert not any("seq1m" in one.what for one in outcome.measurements)
    said = [render(note, "en") for note in outcome.notes]
    assert any(text.startswith("Not measured: read.seq1m-q8t1") for text in said)


@linux
def test_a_fio_that_hangs_goes_with_the_benchmark(tmp_path, monkeypatch) -> None:
    mark = tmp_path / "pid"
    fake_fio(tmp_path / "bin", monkeypatch, f"echo $$ > {mark}; exec sleep 1000")
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(UserError) as caught:
        benchmark_disk.run(choices(place), cancelled=lambda: mark.exists() and mark.read_text())
    assert caught.value.message.id == "worker.cancelled"
    pid = int(mark.read_text())
    deadline = time.monotonic() + 5
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"tests": 3},
        {"device": 7, "filesystem": None, "options": "", "direct": 1, "tests": {"x": [{}]}},
        {
            "device": "", "filesystem": "ext4", "options": "", "direct": True, "size": 1,
            "fio": None, "engine": "aio", "skipped": {},
            "tests": {"read.seq1m-q8t1": [{"bytes_per_s": "fast"}]},
        },
    ],
)  # fmt: skip
def test_an_answer_that_is_none_is_said(answer) -> None:
    with pytest.raises(UserError, match="not a result"):
        benchmark_disk.outcome(answer, Drive("?", "unknown", None), "2026-01-01T00:00:00+00:00")


# What figures are worth

SATA = Drive("Samsung SSD 870 EVO", "sata", 600e6)


def flagged(filesystem="ext4", options="rw", at=SATA, wait=80e-6, rate=550e6, direct=True):
    tests = {
        "read.rnd4k-q1t1": [{"requests_per_s": 1 / wait, "p50_s": wait}],
        "read.seq1m-q8t1": [{"bytes_per_s": rate}],
    }
    return list(benchmark_disk.flags(filesystem, options, at, tests, direct=direct))


def test_a_plain_drive_has_no_flag() -> None:
    assert flagged() == []


def test_answers_in_no_time_or_beyond_the_interface_come_from_memory() -> None:
    assert flagged(wait=2e-6) == ["cached"]
    assert flagged(rate=1.3e9) == ["cached"]
    assert flagged(rate=1.3e9, at=Drive("x", "unknown", None)) == []


def test_filesystems_that_cache_compress_or_are_elsewhere_are_flagged() -> None:
    assert flagged("tmpfs") == ["tmpfs", "cached"]
    assert flagged("zfs") == ["cached", "compressed"]
    assert flagged("fuse") == ["cached"]
    assert flagged("btrfs", "rw,ssd,compress=zstd:3") == ["compressed"]
    assert flagged("btrfs", "rw,ssd") == []
    assert flagged("nfs") == ["network"]
    assert flagged(direct=False) == ["buffered"]


# Which drive it is


def system(root: Path, number: str, place: str, **files: str) -> None:
    folder = root / place
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    link = root / "dev" / "block" / number
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(folder)


def test_a_partition_leads_to_its_drive_and_the_link_it_hangs_on(tmp_path) -> None:
    disk = "devices/pci0000:00/0000:01:00.0/nvme/nvme0/nvme0n1"
    link = {"current_link_speed": "16.0 GT/s PCIe", "current_link_width": "4"}
    system(
        tmp_path, "259:0", disk, device__model="Samsung SSD 990 PRO 2TB  ",
        **{f"device__device__{name}": text for name, text in link.items()},
    )  # fmt: skip
    system(tmp_path, "259:2", f"{disk}/nvme0n1p2", partition="2")
    found = drive.of_device("259:2", tmp_path)
    assert found is not None
    assert (found.name, found.attachment) == ("Samsung SSD 990 PRO 2TB", "nvme")
    assert found.limit_bytes_per_s == pytest.approx(7.877e9, rel=1e-3)  # PCI-SIG: 7.88 GB/s
    system(tmp_path, "253:0", "devices/virtual/block/dm-0")
    (tmp_path / "devices/virtual/block/dm-0/slaves").mkdir()
    (tmp_path / "devices/virtual/block/dm-0/slaves/nvme0n1p2").symlink_to(
        tmp_path / disk / "nvme0n1p2"
    )
    assert drive.of_device("253:0", tmp_path) == found


def test_disks_by_their_cable_and_none_where_there_is_none(tmp_path) -> None:
    disk = "devices/pci0000:00/ata1/host0/block/sda"
    system(tmp_path, "8:0", disk, device__model="ST4000", queue__rotational="1")
    assert drive.of_device("8:0", tmp_path) == Drive("ST4000", "hdd", 600e6)
    system(tmp_path, "254:0", "devices/pci0000:00/virtio1/block/vda", queue__rotational="1")
    assert drive.of_device("254:0", tmp_path) == Drive("vda", "virtual", None)
    assert drive.of_device("0:44", tmp_path) is None


class mounted:  # noqa: N801
    """A tmpfs of a size, for as long as it is needed."""

    def __init__(self, folder: Path, options: str) -> None:
        self._place, self._options = folder / "mounted", options

    def __enter__(self) -> Path:
        self._place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", self._options, "tmpfs", self._place]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("nothing may be mounted here")
        return self._place

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", self._place], check=True)
