"""Records of hardware that the catalog does not know, filled in from readings."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from foreign import NAMES

from trainwright.catalog import find_cpu, find_drive, find_gpu
from trainwright.catalog.check import check
from trainwright.messages import Message, UserError
from trainwright.probe import records
from trainwright.probe.disks import DriveReading
from trainwright.probe.host import Host
from trainwright.probe.nvml import Clocks, GpuReading, Memory, Nvidia, PowerLimits
from trainwright.probe.pci import Link
from trainwright.probe.reading import Missing
from trainwright.probe.snapshot import Snapshot, machine_of
from trainwright.yamltext import parse

HOST = Host("linux", "Linux", "AMD Ryzen 9 7950X 16-Core Processor", 32, 64 << 30)
NONE = Missing(Message.of("probe.no-driver"))
GIB = 1 << 30


def like(name: str, id: str) -> GpuReading:
    """Return what a driver would tell of a catalogued GPU under another name."""
    known = find_gpu(id).record
    assert known.compute_capability
    assert known.cores
    assert known.boost_hz
    assert known.memory_bus_bits
    assert known.tdp_w
    clock = known.bandwidth_bytes_per_s.value / known.memory_bus_bits.value * 8 / 2 / 1e6
    return GpuReading(
        0, name, Memory(int(known.memory_bytes.value * 0.998), 0, 0), known.compute_capability,
        known.tdp_w.value, link=Link(4, 16, 4, 16), power=PowerLimits(known.tdp_w.value),
        clocks=Clocks(1000, 1000, round(known.boost_hz.value / 1e6), round(clock)),
        cores=int(known.cores.value), memory_bus_bits=int(known.memory_bus_bits.value),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def overlay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINWRIGHT_HARDWARE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("id", ["rtx-4090", "rtx-3090", "rtx-5090", "a100-80gb-sxm", "rtx-2080-ti"])
def test_a_gpu_under_another_name_gets_a_record_much_like_the_catalogs(id: str) -> None:
    known = find_gpu(id).record
    line = "NVIDIA GeForce" if known.segment == "consumer" else "NVIDIA"
    snapshot = Snapshot(HOST, Nvidia("580", (like(f"{line} Prototype 7", id),)))
    with pytest.raises(UserError, match="does not know"):
        machine_of(snapshot)
    [draft] = records.drafts(snapshot)
    records.write(draft)
    made = machine_of(snapshot).gpu.record
    assert records.drafts(snapshot) == ()
    assert made.memory_bytes.value == known.memory_bytes.value
    assert made.bandwidth_bytes_per_s.value == pytest.approx(
        known.bandwidth_bytes_per_s.value, rel=0.01
    )
    assert made.sm_count
    assert known.sm_count
    assert made.sm_count.value == known.sm_count.value
    for key in ("fp32", "fp16_fp32"):
        assert made.flops[key].value == pytest.approx(known.flops[key].value, rel=0.06)
        assert made.flops[key].source.startswith("assumed")
    assert check().ok


@pytest.mark.parametrize("name", NAMES)
def test_a_drive_of_any_name_has_a_record_that_everybody_reads_alike(name: str) -> None:
    link = Link(4, 4, 5, 4)
    drive = DriveReading("nvme0n1", name, "nvme", 4 * 10**12, link=link)
    [draft] = records.drafts(Snapshot(HOST, NONE, drives=(drive,)))
    data = yaml.safe_load(draft.text)
    assert data["drives"][0]["name"] == name
    assert parse(draft.text, "draft").data == data


def test_nothing_is_written_by_looking_and_nothing_is_written_over(overlay: Path) -> None:
    snapshot = Snapshot(HOST, Nvidia("580", (like("NVIDIA Prototype 7", "rtx-4090"),)))
    [draft] = records.drafts(snapshot)
    assert list(overlay.rglob("*")) == []
    records.write(draft)
    before = draft.path.read_text(encoding="utf-8")
    with pytest.raises(UserError, match=r"nvidia-prototype-7\.yaml"):
        records.write(replace(draft, text="mine\n"))
    assert draft.path.read_text(encoding="utf-8") == before


def test_what_tells_too_little_gets_no_record() -> None:
    silent = replace(like("NVIDIA Prototype 7", "rtx-4090"), memory=NONE)
    bare = replace(like("NVIDIA Prototype 8", "rtx-4090"), clocks=Clocks())
    assert records.drafts(Snapshot(HOST, Nvidia("580", (silent, bare)))) == ()


def test_an_unknown_processor_and_drive_are_found_once_they_are_kept() -> None:
    around = replace(HOST, cpu="AMD Ryzen 11 9999X 24-Core Processor", physical_cores=24,
                     logical_cores=48, most_mhz=6000.0)  # fmt: skip
    drive = DriveReading("nvme0n1", "ACME Hyper 9 4TB", "nvme", 4 * 10**12, link=Link(4, 4, 5, 4))
    snapshot = Snapshot(around, NONE, drives=(drive,))
    for draft in records.drafts(snapshot):
        records.write(draft)
    cpu, made = find_cpu("AMD Ryzen 11 9999X 24-Core Processor"), find_drive("ACME Hyper 9 4TB")
    assert cpu is not None
    assert (cpu.cores, cpu.threads, cpu.boost_ghz) == (24, 48, 6.0)
    assert made is not None
    assert made.confidence == "low"
    assert 12_000 < made.read_mb_s < 15_000  # as drives of generation 5 state
    assert check().ok


def test_a_broken_record_of_a_person_is_said_and_hides_no_other(overlay: Path) -> None:
    folder = overlay / "storage"
    folder.mkdir()
    (folder / "broken.yaml").write_text("drives: [{id: x}]\n", encoding="utf-8")
    assert find_drive("samsung-990-pro-2tb") is not None
    problems = check().problems
    assert {problem.values["file"] for problem in problems} == {"storage/broken.yaml:1"}
    assert "x.read_mb_s" in {problem.values["key"] for problem in problems}
