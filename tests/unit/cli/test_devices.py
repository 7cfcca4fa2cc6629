"""What ``doctor`` says of the computer's devices."""

import json

import pytest
from nvmlstub import NvmlStub

from trainwright.cli.devices import findings
from trainwright.messages import Message, render
from trainwright.probe.host import Host, SharedMemory
from trainwright.probe.reading import Missing
from trainwright.probe.snapshot import Snapshot


@pytest.mark.parametrize(
    ("scenario", "driver", "plans", "says"),
    [
        ("two", True, True, "RTX 4090, NVIDIA GeForce RTX 3060; driver 580"),
        ("lost", False, True, "GPU 1 is not read: the GPU has fallen off the bus"),
        ("garbage", False, False, "GPU 0 is not read: the driver's answer"),
        ("not-loaded", False, False, "not loaded"),
        ("none", False, False, "lists no GPU"),
    ],
)
def test_doctor_says_which_gpu_works_and_why_not(
    nvml_stub: NvmlStub, monkeypatch: pytest.MonkeyPatch, inside, scenario, driver, plans, says
):
    for name, value in nvml_stub.variables(scenario).items():
        monkeypatch.setenv(name, value)
    found = {each["check"]: each for each in json.loads(inside("doctor", "--json").out)["checks"]}
    assert (found["driver"]["works"], found["plans"]["works"]) == (driver, plans)
    assert says in found["driver"]["because"]


@pytest.mark.parametrize(("mib", "works"), [(64, False), (8192, True)])
def test_a_container_with_dockers_own_shared_memory_is_too_small_for_loaders(mib, works):
    host = Host("linux", "Linux", "CPU", 8, 1 << 34, shared_memory=SharedMemory(mib << 20, 0))
    nothing = Snapshot(host, Missing(Message.of("probe.no-driver")))
    [found] = [each for each in findings(nothing) if each.check == "loaders"]
    assert found.works is works
    assert ("--shm-size" in render(found.because, "ko")) is not works
