"""Shared memory is the computer's, and machines that nobody can have are refused."""

import pytest

from trainwright.catalog import GpuRecord
from trainwright.catalog.query import list_gpus
from trainwright.explain import Kind
from trainwright.machine.choice import MachineChoice
from trainwright.machine.machine import Gpu
from trainwright.machine.resolve import catalogued
from trainwright.machine.shared import sizes
from trainwright.messages import UserError
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan

GIB = 1 << 30
SHARING = [record for record in list_gpus() if record.unified_memory]


def choice(*gpus: str, **machine: object) -> MachineChoice:
    return MachineChoice.model_validate({"gpus": [{"id": id} for id in gpus], **machine})


def gpu(id: str, **machine: object) -> Gpu:
    return catalogued(choice(id, **machine)).machine.gpu


@pytest.mark.parametrize(
    ("id", "gib", "system", "low", "high"),
    [
        # recommendedMaxWorkingSetSize in llama.cpp's logs: 21845 MiB of 32, 73728 MiB of 96 GiB;
        # 96 to 107.5 GiB of 128 by version of macOS.
        ("apple-m2-max", 32, "macos", 21.33, 21.34),
        ("apple-m2-max", 96, "macos", 72.0, 72.0),
        ("apple-m4-max", 128, "macos", 96.0, 107.5),
        # "GPU 0 has a total capacity of 62.47 GiB" on Strix Halo with 128 GB; GTT 61.41 GiB.
        ("radeon-8060s", 128, "linux", 61.4, 62.5),
        ("radeon-8060s", 64, "linux", 30.0, 31.5),
        ("radeon-8060s", 122.82, "linux", 61.40, 61.42),
        # total and free memory that CUDA shows on owners' computers.
        ("gb10-dgx-spark", 128, "linux", 121.6, 121.7),
        ("jetson-agx-thor", 128, "linux", 122.8, 122.9),
        ("jetson-agx-orin-64gb", 64, "linux", 61.3, 61.4),
    ],
)
def test_a_gpu_is_offered_what_its_driver_maps_of_the_computers_memory(
    id: str, gib: float, system: str, low: float, high: float
) -> None:
    assert low <= gpu(id, memory_gib=gib, system=system).total.value / GIB <= high


@pytest.mark.parametrize("record", SHARING, ids=lambda record: record.id)
def test_without_a_size_the_smallest_that_is_sold_is_assumed_and_said(record: GpuRecord) -> None:
    found = catalogued(choice(record.id))
    smallest = catalogued(choice(record.id, memory_gib=sizes(record)[0] / GIB))
    assert (
        found.machine.gpu.total.value
        == smallest.machine.gpu.total.value
        < record.memory_bytes.value
    )
    assert found.machine.memory_bytes == smallest.machine.memory_bytes
    said = [note for note in found.notes if note.id == "machine.smallest-memory"]
    assert len(said) == (len(sizes(record)) > 1)
    assert not smallest.notes


def test_on_a_spark_the_system_holds_what_its_owners_see_missing_after_boot() -> None:
    spark = gpu("gb10-dgx-spark")
    assert (spark.total.value - spark.held.value) / GIB == pytest.approx(102.2, abs=0.1)
    assert spark.held.parts[0].kind is Kind.QUOTED
    said = MachineChoice.model_validate(
        {"gpus": [{"id": "gb10-dgx-spark", "reserved_mib": 4096}], "memory_gib": 128}
    )
    assert catalogued(said).machine.gpu.held.value == 4 * GIB


def refusal(*gpus: object, **machine: object) -> str:
    with pytest.raises(UserError) as refused:
        catalogued(MachineChoice.model_validate({"gpus": gpus, **machine}))
    return str(refused.value)


@pytest.mark.parametrize("record", SHARING, ids=lambda record: record.id)
def test_a_computer_has_one_gpu_that_shares_its_memory(record: GpuRecord) -> None:
    said = refusal({"id": record.id, "count": 2})
    assert said.startswith("machine.gpus[0].count: ")
    assert "count to 1" in said
    assert "not in one computer" in said or "such as" in said  # what can be had


def test_each_refusal_names_what_can_be_had() -> None:
    assert "apple-m3-ultra with memory_gib: 512" in refusal({"id": "apple-m4", "count": 2})
    assert "ConnectX-7" in refusal({"id": "gb10-dgx-spark", "count": 2})
    assert "rtx-5090" in refusal({"id": "rtx-5090-laptop", "count": 2})
    assert "96, 256, 512 GiB" in refusal({"id": "apple-m3-ultra"}, memory_gib=128)
    assert "128 GiB" in refusal({"id": "gb10-dgx-spark"}, memory_gib=256)
    assert "16, 24, 32 GiB" in refusal({"id": "apple-m5"}, memory_gib=8)
    desk = {"board": "asus-proart-x870e-creator-wifi", "cpu": "ryzen-9-9950x"}
    assert "h100-80gb-pcie" in refusal({"id": "h100-80gb-sxm"}, cpu=desk["cpu"])
    assert "mi210" in refusal({"id": "mi300x", "count": 4}, cpu=desk["cpu"])
    assert "machine.cpu" in refusal({"id": "gb10-dgx-spark"}, cpu=desk["cpu"])
    assert "rtx-5090" in refusal({"id": "rtx-5090-laptop"}, cpu=desk["cpu"])
    assert "count to 8" in refusal({"id": "h100-80gb-sxm", "count": 16})
    assert "id: h100-80gb-sxm, count: 8" in refusal({"id": "p5.48xlarge"})
    assert "Name one" in refusal({"id": "apple-m4"}, {"id": "rtx-5090"})
    assert "Name one" in refusal({"id": "mi300x"}, {"id": "h100-80gb-sxm"})


@pytest.mark.parametrize(
    "machine",
    [
        {"gpus": [{"id": "mi300x", "count": 8}]},
        {"gpus": [{"id": "h100-80gb-sxm", "count": 8}], "cpu": "epyc-9124"},
        {"gpus": [{"id": "v100-32gb-sxm", "count": 16}]},
        {"gpus": [{"id": "radeon-8060s"}, {"id": "rtx-3090"}]},
        {"gpus": [{"id": "rtx-4090-laptop"}], "memory_gib": 64},
        {"gpus": [{"id": "gb10-dgx-spark"}], "memory_gib": 121.7},
    ],
)
def test_machines_that_one_can_have_stay(machine: dict[str, object]) -> None:
    assert catalogued(MachineChoice.model_validate(machine)).machine.gpus


def report(model: str, workload: dict[str, object], **plan: object) -> Report:
    raw = {"trainwright": 1, "name": "x", "model": {"preset": model}, "workload": workload, **plan}
    made = Plan.model_validate(raw)
    facts = resolve(made)
    assert isinstance(facts, Facts)
    return evaluate(made, facts)


SERVE = {"task": "infer", "inputs": {"prompt_tokens": 1024, "new_tokens": 256}}
LORA = {"task": "lora", "inputs": {"sequence_length": 2048}, "effective_batch": 6}


def test_a_70b_in_bf16_does_not_fit_96_gib_and_what_would_is_named() -> None:
    machine = {"gpus": [{"id": "apple-m3-ultra"}], "memory_gib": 96}
    found = report("llama-3.1-70b", SERVE, machine=machine, settings={"precision": "bf16"})
    assert found.verdict is Verdict.NO
    [note] = [note for note in found.notes if note.id.startswith("machine.larger")]
    assert note.values["gib"] == 256


@pytest.mark.parametrize(
    ("id", "gib", "micro", "says"),
    [
        ("radeon-8060s", 128, 4, "machine.larger.ttm-limit"),
        ("radeon-8060s", 64, 4, "machine.larger.most-ttm-limit"),
        ("radeon-8060s", 32, 2, "machine.larger.memory"),
        ("arc-140v", 32, 4, "machine.larger.other"),
        ("apple-m4-max", 48, 1, "machine.larger.wired-limit"),
    ],
)
def test_a_limit_that_can_be_raised_comes_before_another_computer(
    id: str, gib: int, micro: int, says: str
) -> None:
    given = {"precision": "bf16-mixed", "micro_batch": micro, "checkpointing": "none"}
    work = LORA | {"effective_batch": 8}
    found = report(
        "llama-3.1-8b",
        work,
        machine={"gpus": [{"id": id}], "memory_gib": gib},
        settings=given,
    )
    assert [note.id for note in found.notes if note.id.startswith("machine.larger")] == [says]


def test_what_a_spark_has_free_decides() -> None:
    machine = {"gpus": [{"id": "gb10-dgx-spark"}]}
    given = {"precision": "bf16-mixed", "micro_batch": 6, "checkpointing": "none"}
    found = report("llama-3.1-8b", LORA, machine=machine, settings=given)
    assert found.verdict is Verdict.NO
    [note] = [note for note in found.notes if note.id.startswith("machine.larger")]
    assert note.id == "machine.larger.other"


def test_what_is_offloaded_to_the_same_memory_is_not_gained() -> None:
    machine = {"gpus": [{"id": "gb10-dgx-spark"}]}
    full = {"task": "full", "inputs": {"sequence_length": 512}, "effective_batch": 1}
    given = {"precision": "bf16-mixed", "micro_batch": 1, "checkpointing": "full"}
    found = report(
        "llama-3.1-8b", full, machine=machine, settings=given | {"optimizer_offload": "cpu"}
    )
    assert found.memory.device_used_p95.value < found.memory.device_total.value
    assert found.verdict is Verdict.NO
