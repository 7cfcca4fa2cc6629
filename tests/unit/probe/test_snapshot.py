"""This computer as a machine: readings, or reasons why there are none."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from nvmlstub import NvmlStub

from trainwright.catalog import find_gpu
from trainwright.estimate.parallel.communication import host_link
from trainwright.machine.machine import Machine
from trainwright.messages import Message, UserError, render
from trainwright.probe.amd import AmdGpu
from trainwright.probe.apple import AppleGpu
from trainwright.probe.disks import DriveReading
from trainwright.probe.host import Host
from trainwright.probe.nvml import GpuReading, Memory, Mig, Nvidia, NvLink
from trainwright.probe.pci import Link
from trainwright.probe.reading import Missing
from trainwright.probe.snapshot import Snapshot, machine_of, resolved, take

CHILD = """
import json
from trainwright.messages import UserError, render
from trainwright.probe import snapshot
from trainwright.probe.reading import Missing
taken = snapshot.take()
try:
    gpu = snapshot.machine_of(taken).gpu
    said = [gpu.record.id, gpu.count, gpu.total.value, gpu.total.kind, gpu.held.value,
            [part.value for part in gpu.held.parts], gpu.power_limit_w]
except UserError as error:
    said = str(error)
found = taken.nvidia
reasons = [found.reason.id] if isinstance(found, Missing) else [
    reading.name.reason.id for reading in found.gpus if isinstance(reading.name, Missing)]
print(json.dumps([said, reasons]))
"""
MIB = 1 << 20


def probed(stub: NvmlStub, scenario: str) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        env=stub.environment(scenario),
        capture_output=True,
        text=True,
        check=True,
    )
    answer: list[object] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize(("scenario", "kept"), [("plain", 357), ("old-driver", 0)])
def test_a_gpu_is_the_catalogs_with_measured_memory(
    nvml_stub: NvmlStub, scenario: str, kept: int
) -> None:
    said, reasons = probed(nvml_stub, scenario)
    assert reasons == []
    id, count, total, kind, held, parts, power = said  # type: ignore[misc]
    assert (id, count, kind, power) == ("rtx-4090", 1, "measured", 450.0)
    # torch's total_memory lacks what the driver reserves; old drivers do not say how much.
    assert total == (24564 - kept) * MIB
    assert total - held == (24564 - 1200) * MIB
    assert sum(parts) == held


@pytest.mark.parametrize(
    ("scenario", "reason", "says"),
    [
        ("not-loaded", "probe.driver-not-loaded", "not loaded"),
        ("updated", "probe.driver-updated", "restart"),
    ],
)
def test_a_driver_in_trouble_is_a_reason(
    nvml_stub: NvmlStub, scenario: str, reason: str, says: str
) -> None:
    said, reasons = probed(nvml_stub, scenario)
    assert reasons == [reason]
    assert says in str(said)
    assert "machine.gpus" in str(said)


def test_no_gpu_and_an_unknown_one_say_what_to_do(nvml_stub: NvmlStub) -> None:
    assert "lists no GPU" in str(probed(nvml_stub, "none")[0])
    assert "does not know NVIDIA Prototype 7" in str(probed(nvml_stub, "strange")[0])


HOST = Host("linux", "Linux", "CPU", 16, 64 << 30)


def reading(name: str, used: int, memory: Memory | Missing | None = None) -> GpuReading:
    memory = memory or Memory(24564 * MIB, 357 * MIB, used)
    return GpuReading(0, name, memory, (8, 9), 450.0)


def machine(*gpus: GpuReading, around: Host = HOST) -> Machine:
    return machine_of(Snapshot(around, Nvidia("580", gpus)))


def test_equal_gpus_are_counted_and_the_fullest_stands_for_them() -> None:
    name = "NVIDIA GeForce RTX 4090"
    found = machine(reading(name, 10 * MIB), reading(name, 2000 * MIB))
    assert found.gpu_count == 2
    assert len(found.gpus) == 1
    assert found.gpu.held.value == 2000 * MIB
    assert found.gpu.total.value == (24564 - 357) * MIB
    assert found.local


def test_on_windows_cuda_reports_what_the_driver_keeps_and_nobody_gets_it() -> None:
    found = machine(
        reading("NVIDIA GeForce RTX 4090", 900 * MIB), around=replace(HOST, system="windows")
    )
    assert found.gpu.total.value == 24564 * MIB
    assert found.gpu.held.value == (900 + 357) * MIB


def test_memory_that_is_not_told_is_taken_from_the_catalog() -> None:
    silent = Missing(Message.of("probe.not-supported"))
    found = machine(reading("NVIDIA GeForce RTX 4090", 0, silent))
    assert found.gpu.total.kind == "quoted"
    assert found.gpu.held.kind == "assumed"


def test_what_the_host_does_not_tell_is_none() -> None:
    missing = Missing(Message.of("probe.not-told", what="CPU"))
    around = Host("linux", "Linux", missing, missing, missing)
    found = machine(reading("NVIDIA GeForce RTX 4090", 0), around=around)
    assert (found.cpu, found.cores, found.memory_bytes) == (None, None, None)


def test_without_a_driver_there_is_a_reason_in_both_languages() -> None:
    nothing = Snapshot(HOST, Missing(Message.of("probe.no-driver")))
    with pytest.raises(UserError) as error:
        machine_of(nothing)
    assert "no NVIDIA driver found" in str(error.value)
    assert "드라이버" in render(error.value.message, "ko")


def test_this_computer_has_readings() -> None:
    found = take().host
    assert isinstance(found.cores, int)
    assert 1 <= found.cores <= (os.cpu_count() or 1)
    assert isinstance(found.memory_bytes, int)
    assert found.memory_bytes > 256 * MIB


def test_a_lost_gpu_is_left_out_and_said_so() -> None:
    lost = Missing(Message.of("probe.gpu-lost"))
    good = reading("NVIDIA GeForce RTX 4090", 0)
    found = resolved(Snapshot(HOST, Nvidia("580", (good, GpuReading(1, *[lost] * 4)))))
    assert found.machine.gpu_count == 1
    assert [render(note, "en") for note in found.notes] == [
        "GPU 1 cannot be planned for (the GPU has fallen off the bus; restart the computer); "
        "choose it from the catalog instead (machine.gpus in place of machine.local)."
    ]


def test_a_divided_gpu_is_not_planned_for_as_a_whole() -> None:
    divided = replace(reading("NVIDIA H100 80GB HBM3", 0), mig=Mig(on=True, pending=True))
    with pytest.raises(UserError, match="divided into MIG instances"):
        machine(divided)


def test_the_slot_decides_how_fast_the_link_is() -> None:
    # An x16 card of generation 4 that idles in an x4 slot of generation 3; the driver tells the
    # card's own lanes as the most.
    link = Link(generation=1, width=4, most_generation=3, most_width=16)
    [gpu] = machine(replace(reading("NVIDIA GeForce RTX 4090", 0), link=link)).gpus
    assert (gpu.record.pcie_generation, gpu.record.pcie_lanes) == (3, 4)
    assert host_link(gpu.record).bytes_per_s < host_link(find_gpu("rtx-4090").record).bytes_per_s


def test_two_wide_slots_are_believed_and_a_bridge_is_seen() -> None:
    # Nobody says which processor it is: catalogued cards would be taken to share 16 lanes.
    link = Link(generation=4, width=16, most_generation=4, most_width=16)
    bridge = NvLink(links=4, active=4, version=3, peers=("0000:41:00.0",))
    card = replace(reading("NVIDIA GeForce RTX 3090", 0), link=link, nvlink=bridge)
    [pair] = machine(card, replace(card, index=1)).gpus
    assert (pair.count, pair.link_read, pair.bridged) == (2, True, True)
    assert host_link(pair.record, 2, read=pair.link_read).lanes == 16
    assert host_link(find_gpu("rtx-3090").record, 2).lanes == 8


def test_a_gpu_that_hung_is_not_waited_for_at_every_edit(
    nvml_stub: NvmlStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in nvml_stub.variables("hang").items():
        monkeypatch.setenv(name, value)
    first = take(patience_s=1)
    began = time.monotonic()
    second = take(patience_s=30, anew=False)
    assert time.monotonic() - began < 20
    assert isinstance(first.nvidia, Nvidia)
    assert isinstance(second.nvidia, Nvidia)
    assert second.nvidia.gpus[0].memory == first.nvidia.gpus[0].memory
    assert isinstance(second.nvidia.gpus[1].memory, Missing)
    assert second.nvidia.gpus[1].memory.reason.id == "probe.no-answer"


def test_amds_and_apples_gpus_are_machines_too() -> None:
    none = Missing(Message.of("probe.no-driver"))
    radeon = AmdGpu(0, "AMD Radeon RX 7900 XTX", Memory(24560 * MIB, 0, 900 * MIB))
    found = machine_of(Snapshot(HOST, none, amd=(radeon,)))
    assert found.gpu.record.id == "rx-7900-xtx"
    assert (found.gpu.total.kind, found.gpu.held.value) == ("measured", 900 * MIB)
    apple = machine_of(Snapshot(HOST, none, apple=AppleGpu("Apple M2 Max", 32 << 30)))
    assert apple.gpu.record.id == "apple-m2-max"
    assert apple.gpu.total.kind == "assumed"
    # Such a Mac shows "recommendedMaxWorkingSetSize = 21845.34 MB".
    assert apple.gpu.total.value == pytest.approx(21845.34 * MIB)


def test_memory_that_the_driver_does_not_tell_is_the_computers() -> None:
    host = replace(HOST, installed_bytes=127_600_748 << 10, memory_bytes=8 << 30)  # in a container
    for told in (Missing(Message.of("probe.not-supported")), Memory(0, 0, 0)):
        spark = replace(reading("NVIDIA GB10", 0), memory=told)
        found = machine_of(Snapshot(host, Nvidia("580", (spark,))))
        assert found.gpu.total.value == pytest.approx(121.69 * 1024 * MIB, rel=1e-3)
        assert (found.gpu.total.value - found.gpu.held.value) / (1024 * MIB) < 103
    card = replace(reading("NVIDIA GeForce RTX 4090", 0), memory=Memory(0, 0, 0))
    assert machine_of(Snapshot(host, Nvidia("580", (card,)))).gpu.total.value > 23 * 1024 * MIB


def test_an_apu_has_what_the_kernel_lets_it_map_and_not_its_carve_out() -> None:
    none = Missing(Message.of("probe.no-driver"))
    carved = Memory(512 * MIB, 0, 100 * MIB)
    halo = AmdGpu(0, "AMD Radeon 8060S Graphics", carved, shared_bytes=63969 * MIB)
    host = replace(HOST, installed_bytes=127_938 * MIB)
    found = machine_of(Snapshot(host, none, amd=(halo,)))
    assert (found.gpu.total.kind, found.gpu.total.value) == ("measured", 63969 * MIB)
    untold = machine_of(Snapshot(host, none, amd=(replace(halo, shared_bytes=none),)))
    assert untold.gpu.total.value == 127_938 * MIB / 2


def test_drives_are_the_catalogs_where_it_knows_them() -> None:
    known = DriveReading("nvme0n1", "Samsung SSD 990 PRO 2TB", "nvme", 2_000_398_934_016)
    sized = DriveReading("nvme1n1", "Crucial T705", "nvme", 1_000_204_886_016)
    strange = DriveReading("sda", "ACME 9", "hdd", 10**12)
    around = Snapshot(HOST, Nvidia("580", (reading("NVIDIA GeForce RTX 4090", 0),)),
                      drives=(known, sized, strange))  # fmt: skip
    found = machine_of(around)
    assert found.drives == ("Samsung SSD 990 PRO 2TB", "Crucial T705", "ACME 9")
    assert [record and record.id for record in found.storage] == [
        "samsung-990-pro-2tb",
        "crucial-t705-1tb",
        None,
    ]
