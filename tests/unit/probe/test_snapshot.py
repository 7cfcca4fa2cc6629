"""This computer as a machine: readings, or reasons why there are none."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainwright.machine.machine import Machine
from trainwright.messages import Message, UserError, render
from trainwright.probe import host
from trainwright.probe.host import Host
from trainwright.probe.nvml import GpuReading, Memory, Nvidia
from trainwright.probe.reading import Missing
from trainwright.probe.snapshot import Snapshot, machine_of, take

# A driver library with the few entry points that are asked, by the public NVML interface:
# structures and error numbers are the interface's; $NVML_STUB says what it should be like.
STUB = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef int Status;
typedef void *Device;
static int is(const char *what) {
  const char *like = getenv("NVML_STUB");
  return like && !strcmp(like, what);
}
static int one;
Status nvmlInitWithFlags(unsigned flags) { return is("not-loaded") ? 9 : is("updated") ? 18 : 0; }
Status nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Status nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(Status status) { return "error"; }
Status nvmlSystemGetDriverVersion(char *to, unsigned n) { snprintf(to, n, "580.65.06"); return 0; }
Status nvmlDeviceGetCount_v2(unsigned *n) { *n = is("none") ? 0 : is("lost") ? 2 : 1; return 0; }
Status nvmlDeviceGetHandleByIndex_v2(unsigned i, Device *d) { *d = &one; return i ? 15 : 0; }
Status nvmlDeviceGetName(Device d, char *to, unsigned n) {
  snprintf(to, n, is("strange") ? "NVIDIA Prototype 7" : "NVIDIA GeForce RTX 4090");
  return 0;
}
typedef struct { unsigned long long total, free, used; } Memory1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
Status nvmlDeviceGetMemoryInfo(Device d, Memory1 *m) {
  m->total = 24564ULL << 20; m->used = 1200ULL << 20; m->free = m->total - m->used;
  return 0;
}
#ifndef OLD
Status nvmlDeviceGetMemoryInfo_v2(Device d, Memory2 *m) {
  if (is("silent")) return 3;
  m->total = 24564ULL << 20; m->reserved = 357ULL << 20; m->used = 843ULL << 20;
  m->free = m->total - m->reserved - m->used;
  return 0;
}
#endif
Status nvmlDeviceGetCudaComputeCapability(Device d, int *major, int *minor) {
  *major = 8; *minor = 9;
  return 0;
}
Status nvmlDeviceGetEnforcedPowerLimit(Device d, unsigned *mw) { *mw = 450000; return 0; }
"""

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


@pytest.fixture(scope="module", params=["", "-DOLD"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler, and a loader that LD_LIBRARY_PATH guides (Linux)")
    folder = tmp_path_factory.mktemp("nvml")
    source = folder / "stub.c"
    source.write_text(STUB, encoding="utf-8")
    target = folder / "libnvidia-ml.so.1"
    options = ["-shared", "-fPIC", "-w", *filter(None, [request.param])]
    subprocess.run([compiler, *options, str(source), "-o", str(target)], check=True)
    return folder


def probed(library: Path, like: str) -> list[object]:
    around = os.environ | {"LD_LIBRARY_PATH": str(library), "NVML_STUB": like}
    done = subprocess.run(
        [sys.executable, "-c", CHILD], env=around, capture_output=True, text=True, check=True
    )
    answer: list[object] = json.loads(done.stdout)
    return answer


def test_a_gpu_is_the_catalogs_with_measured_memory(library: Path) -> None:
    said, reasons = probed(library, "plain")
    assert reasons == []
    id, count, total, kind, held, parts, power = said  # type: ignore[misc]
    assert (id, count, kind, power) == ("rtx-4090", 1, "measured", 450.0)
    assert total == 24564 * MIB
    # Old drivers count their own share among what is used; either way it is the same.
    assert held == 1200 * MIB
    assert sum(parts) == held


@pytest.mark.parametrize(
    ("like", "reason", "says"),
    [
        ("not-loaded", "probe.driver-not-loaded", "not loaded"),
        ("updated", "probe.driver-updated", "restart"),
        ("lost", "probe.gpu-lost", "GPU 1 does not answer"),
    ],
)
def test_a_driver_in_trouble_is_a_reason(library: Path, like: str, reason: str, says: str) -> None:
    said, reasons = probed(library, like)
    assert reasons == [reason]
    assert says in str(said)
    assert "machine.gpus" in str(said)


def test_no_gpu_and_an_unknown_one_say_what_to_do(library: Path) -> None:
    assert "lists no GPU" in str(probed(library, "none")[0])
    assert "does not know NVIDIA Prototype 7" in str(probed(library, "strange")[0])


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
    assert found.gpu.held.value == 2357 * MIB
    assert found.local


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


def test_a_containers_limits_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n", encoding="ascii")
    (tmp_path / "memory.max").write_text(f"{512 * MIB}\n", encoding="ascii")
    monkeypatch.setattr(host, "_CGROUP", tmp_path)
    found = host.read()
    assert found.cores == 1
    assert found.memory_bytes == 512 * MIB
    (tmp_path / "cpu.max").write_text("max 100000\n", encoding="ascii")
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert host.read().memory_bytes != 512 * MIB
