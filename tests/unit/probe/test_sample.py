"""Samples survive being written and read; what is missing stays missing, with its reason."""

import json
from dataclasses import replace

import pytest

from trainwright.messages import Message
from trainwright.probe.reading import Missing
from trainwright.probe.sample import (
    Activity,
    GpuProcess,
    GpuSample,
    HostSample,
    Sample,
    SliceSample,
)
from trainwright.probe.samplejson import as_document, sample_of

LOST = Missing(Message.of("probe.gpu-lost"))
SAMPLE = Sample(
    monotonic_s=12.5,
    wall_s=1.8e9,
    host=HostSample(cpu=0.25, cores=(0.5, 0.0), memory_used=1 << 30, throttled_periods=3),
    gpus=(
        GpuSample(
            0,
            name="NVIDIA H100",
            utilisation=0.0,
            power_w=Missing(Message.of("probe.other", reason="busy")),
            throttle=frozenset({"thermal", "power-cap"}),
            processes=(GpuProcess(7, "python", 5 << 30), GpuProcess(8, LOST, LOST, "graphics")),
            activity=Activity(sm_active=0.5),
            slices=(SliceSample(0, "1g.10gb", activity=Activity(tensor_active=LOST)),),
            mig=True,
        ),
        GpuSample(1, LOST, LOST),
    ),
)


@pytest.mark.parametrize("sample", [SAMPLE, replace(SAMPLE, gpus=LOST), replace(SAMPLE, gpus=())])
def test_a_sample_comes_back_from_json(sample: Sample) -> None:
    assert sample_of(json.loads(json.dumps(as_document(sample)))) == sample


def test_an_idle_gpu_and_one_that_cannot_tell_differ() -> None:
    gpus = as_document(SAMPLE)["gpus"]
    assert gpus[0]["utilisation"] == 0.0
    assert gpus[1]["utilisation"] == {"missing": "probe.gpu-lost"}
    assert "temperature_c" not in gpus[0]


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], "sample"),
        ({"wall_s": 1.0}, "monotonic_s"),
        ({"monotonic_s": 0.0, "wall_s": "now"}, "sample.wall_s"),
        ({"monotonic_s": 0, "wall_s": 0, "gpus": [3]}, "sample.gpus"),
        ({"monotonic_s": 0, "wall_s": 0, "host": {"cpu": True}}, "sample.host.cpu"),
        ({"monotonic_s": 0, "wall_s": 0, "host": {"cores": {"0": 1}}}, "sample.host.cores"),
    ],
)
def test_what_is_no_sample_says_where(document: object, where: str) -> None:
    with pytest.raises(ValueError, match=where):
        sample_of(document)  # type: ignore[arg-type]
