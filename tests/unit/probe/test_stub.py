"""The tests' driver library answers through NVIDIA's own binding as drivers do."""

import json
import subprocess
import sys

import pytest
from nvmlstub import NvmlStub

# Asks most of what a monitor asks; an error's name stands where a reading would.
ASKED = """
import json, os, pynvml as nv
def asked(call):
    try:
        return call()
    except nv.NVMLError as error:
        return type(error).__name__
def gpm(gpu):
    first, second = nv.nvmlGpmSampleAlloc(), nv.nvmlGpmSampleAlloc()
    nv.nvmlGpmSampleGet(gpu, first)
    nv.nvmlGpmSampleGet(gpu, second)
    wanted = nv.c_nvmlGpmMetricsGet_t()
    wanted.version, wanted.numMetrics = nv.NVML_GPM_METRICS_GET_VERSION, 2
    wanted.sample1, wanted.sample2 = first, second
    wanted.metrics[0].metricId, wanted.metrics[1].metricId = 2, 10
    return [round(metric.value, 3) for metric in nv.nvmlGpmMetricsGet(wanted).metrics[:2]]
def reading(gpu):
    return dict(
        name=asked(lambda: nv.nvmlDeviceGetName(gpu)),
        bus=asked(lambda: nv.nvmlDeviceGetPciInfo(gpu).busId),
        memory=asked(lambda: nv.nvmlDeviceGetMemoryInfo(gpu, version=nv.nvmlMemory_v2).used),
        memory_v1=asked(lambda: nv.nvmlDeviceGetMemoryInfo(gpu).used),
        busy=asked(lambda: nv.nvmlDeviceGetUtilizationRates(gpu).gpu),
        heat=asked(lambda: nv.nvmlDeviceGetTemperatureV(gpu, nv.NVML_TEMPERATURE_GPU)),
        energy=asked(lambda: nv.nvmlDeviceGetTotalEnergyConsumption(gpu)),
        limit=asked(lambda: nv.nvmlDeviceGetEnforcedPowerLimit(gpu)),
        reasons=asked(lambda: nv.nvmlDeviceGetCurrentClocksEventReasons(gpu)),
        received=asked(lambda: nv.nvmlDeviceGetFieldValues(gpu, [198])[0].value.ullVal),
        processes=asked(lambda: [(p.pid, p.usedGpuMemory)
                                 for p in nv.nvmlDeviceGetComputeRunningProcesses_v3(gpu)]),
        mig=asked(lambda: nv.nvmlDeviceGetMigMode(gpu)),
        slices=asked(lambda: [asked(lambda: nv.nvmlDeviceGetAttributes_v2(
            nv.nvmlDeviceGetMigDeviceHandleByIndex(gpu, slot)).memorySizeMB) for slot in range(4)]),
        gpm=asked(lambda: gpm(gpu)),
    )
nv.nvmlInit()
def handle(index):
    return asked(lambda: reading(nv.nvmlDeviceGetHandleByIndex(index)))
answers = []
for second in json.loads(os.environ["AT"]):
    os.environ["NVML_STUB_TIME"] = str(second)
    answers.append([handle(index) for index in range(nv.nvmlDeviceGetCount())])
print(json.dumps(answers))
"""


def read(stub: NvmlStub, scenario: str, *at: float) -> list[list[dict[str, object]]]:
    around = stub.environment(scenario, AT=json.dumps(at or [0]))
    done = subprocess.run([sys.executable, "-c", ASKED], env=around, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answers: list[list[dict[str, object]]] = json.loads(done.stdout)
    return answers


def test_readings_move_with_the_clock_and_energy_is_the_integral_of_power(
    nvml_stub: NvmlStub,
) -> None:
    at = [second / 4 for second in range(81)]  # two waves
    samples = [gpus[0] for gpus in read(nvml_stub, "plain", *at)]
    assert len({sample["busy"] for sample in samples}) >= 20
    energies = [int(sample["energy"]) for sample in samples]  # type: ignore[call-overload]
    assert energies == sorted(energies)
    mean_watts = (energies[-1] - energies[0]) / 1000 / 20
    assert mean_watts == pytest.approx(450 * (0.1 + 0.8 * 0.6), rel=0.01)


def test_the_two_memory_structures_agree(nvml_stub: NvmlStub) -> None:
    [[gpu]] = read(nvml_stub, "plain")
    assert int(gpu["memory_v1"]) - int(gpu["memory"]) == 357 << 20  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("scenario", "key", "error"),
    [
        ("mig", "busy", "NVMLError_NotSupported"),
        ("mig-container", "memory", "NVMLError_NoPermission"),
        ("wsl", "busy", "NVMLError_NotSupported"),
        ("laptop", "limit", "NVMLError_NotSupported"),
        ("unified", "memory", "NVMLError_NotSupported"),
        ("hidden-processes", "processes", "NVMLError_NoPermission"),
        ("plain", "mig", "NVMLError_NotSupported"),
        ("plain", "gpm", "NVMLError_NotSupported"),
        ("old-driver", "memory", "NVMLError_FunctionNotFound"),
        ("old-driver", "gpm", "NVMLError_FunctionNotFound"),
    ],
)
def test_what_a_driver_does_not_tell_is_the_error_that_drivers_give(
    nvml_stub: NvmlStub, scenario: str, key: str, error: str
) -> None:
    assert read(nvml_stub, scenario)[0][0][key] == error


def test_a_divided_gpu_has_instances_and_an_empty_slot(nvml_stub: NvmlStub) -> None:
    [[gpu]] = read(nvml_stub, "mig")
    assert gpu["slices"] == [40448, "NVMLError_NotFound", 9984, 9984]
    assert gpu["mig"] == [1, 1]


def test_hopper_tells_how_busy_its_processors_are(nvml_stub: NvmlStub) -> None:
    [[gpu]] = read(nvml_stub, "hopper", 0)
    assert gpu["gpm"] == [48.0, 30.0]


def test_a_gpu_that_is_lost_in_the_middle_leaves_the_other(nvml_stub: NvmlStub) -> None:
    before, after = read(nvml_stub, "lost-midway", 1, 3)
    assert isinstance(before[1], dict)
    assert after[1] == "NVMLError_GpuIsLost"
    assert isinstance(after[0], dict)


def test_windows_under_linux_does_not_tell_a_process_its_memory(nvml_stub: NvmlStub) -> None:
    assert read(nvml_stub, "wsl")[0][0]["processes"] == [[4242, None]]
