"""A plan's machine may be a computer that a cloud rents out, by its owner's name for it."""

import pytest

from trainwright.catalog.instances import instance, instances
from trainwright.catalog.sources import documents
from trainwright.cli.review import machine_named
from trainwright.machine.choice import MachineChoice
from trainwright.machine.machine import Machine
from trainwright.machine.parts import with_count, with_part
from trainwright.machine.resolve import catalogued
from trainwright.messages import UserError, render
from trainwright.plan import file
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.schema import Plan

GIB = 1 << 30
PLAN = """trainwright: 1
name: rented
model: {preset: llama-3.1-8b}
workload: {task: lora, inputs: {sequence_length: 2048}, effective_batch: 64}
machine: %s
"""


def plan(machine: str) -> Plan:
    return file.parsed(PLAN % machine, "rented.plan.yaml")


def machine(cloud: str, **more: object) -> Machine:
    return catalogued(MachineChoice.model_validate({"cloud": cloud, **more})).machine


@pytest.mark.parametrize(
    ("name", "gpu_gb", "vcpus", "gib"),
    [
        # GPU memory in all, threads and memory, in the tables of the owners' pages.
        ("p3.16xlarge", 128, 64, 488),
        ("p4d.24xlarge", 320, 96, 1152),
        ("p4de.24xlarge", 640, 96, 1152),
        ("p5.48xlarge", 640, 192, 2048),
        ("p5en.48xlarge", 1128, 192, 2048),
        ("g4dn.12xlarge", 64, 48, 192),
        ("g5.48xlarge", 192, 192, 768),
        ("g6e.48xlarge", 384, 192, 1536),
        ("Standard_ND96asr_v4", 320, 96, 900),
        ("Standard_ND96isr_H200_v5", 1128, 96, 1850),
        ("Standard_ND96isr_MI300X_v5", 1535, 96, 1850),
        ("Standard_NC80adis_H100_v5", 188, 80, 640),
        ("Standard_NC64as_T4_v3", 64, 64, 440),
        ("a2-megagpu-16g", 640, 96, 1360),
        ("a3-megagpu-8g", 640, 208, 1872),
        ("g2-standard-96", 192, 96, 384),
        ("g4-standard-384", 768, 384, 1440),
        ("gpu_1x_h100_pcie", 80, 26, 200),
        ("gpu_8x_a100", 320, 124, 1800),
        ("gpu_8x_a100_80gb_sxm4", 640, 240, 1800),
        ("gpu_8x_b200_sxm6", 1440, 208, 2900),
    ],
)
def test_a_clouds_computer_has_what_its_owners_page_says(
    name: str, gpu_gb: float, vcpus: int, gib: float
) -> None:
    found = machine(name)
    # Both units are printed for GPU memory: 80 GB of an A100 are GiB, 141 GB of an H200 are not.
    total = sum(gpu.count * gpu.record.memory_bytes.value for gpu in found.gpus)
    assert min(abs(total / unit - gpu_gb) for unit in (1e9, GIB)) <= 0.01 * gpu_gb
    assert found.memory_bytes == gib * GIB
    assert found.cloud is not None
    assert (found.cloud.vcpus, found.cores) == (vcpus, vcpus // 2)


@pytest.mark.parametrize("name", instances())
def test_each_can_be_planned_for_and_names_its_source(name: str) -> None:
    found = machine(name)
    assert found.gpu_count == instance(name).gpus
    assert documents(instance(name).source)


def test_nvlink_of_its_gpus_and_what_joins_several_come_with_it() -> None:
    found = machine("p5.48xlarge", nodes=2)
    assert found.gpu.record.nvlink_bytes_per_s is not None
    assert found.network is not None
    assert found.network.bytes_per_s == 3200e9 / 8
    assert (
        machine("nd96isr_h100_v5", nodes=2).network
        == machine("p5.48xlarge", nodes=2, network={"kind": "infiniband-ndr", "ports": 8}).network
    )
    with pytest.raises(UserError, match="several nodes are joined"):  # "up to 10 Gbit/s"
        plan("{cloud: g5.xlarge, nodes: 2}")


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("{cloud: p5.24xlarge}", "p5.48xlarge"),
        ("{cloud: a3-highgpu-16g}", "a3-highgpu-8g"),
        ("{cloud: my-server}", "known ones look like"),
        ("{cloud: p5.48xlarge, cpu: epyc-9124}", "leave out machine.cpu"),
        ("{cloud: p5.48xlarge, gpus: [{id: t4}]}", "leave out machine.gpus"),
        ("{cloud: p5.48xlarge, local: true}", "leave out machine.local"),
    ],
)
def test_what_is_not_known_or_contradicts_is_one_line_with_a_way_out(
    section: str, says: str
) -> None:
    with pytest.raises(UserError) as refused:
        plan(section)
    text = str(refused.value)
    assert text.startswith("rented.plan.yaml:5: machine")
    assert says in text
    assert "\n" not in text


def test_the_report_says_what_it_has_and_what_nobody_says() -> None:
    made = plan("{cloud: a2-highgpu-1g}")
    facts = resolve(made)
    assert isinstance(facts, Facts)
    [said] = [note for note in evaluate(made, facts).notes if note.id == "machine.cloud"]
    assert render(said, "en").startswith("a2-highgpu-1g of Google Cloud: 1 × A100")
    assert render(said, "en").count("not known") == 2
    assert render(said, "ko").count("알 수 없음") == 2


def test_a_file_keeps_the_name_and_nothing_that_follows_from_it() -> None:
    made = plan("{cloud: P5.48XLARGE, nodes: 2}")
    assert "machine:\n  cloud: p5.48xlarge\n  nodes: 2\n" in file.text_of(made)
    assert file.parsed(file.text_of(made), "again").machine == made.machine
    assert MachineChoice.model_validate(made.machine.model_dump()) == made.machine


def test_with_other_parts_it_is_a_machine_of_ones_own() -> None:
    rented = plan("{cloud: p5.48xlarge}").machine
    assert rented.fixed
    four = with_count(rented, "gpu", "h100-80gb-sxm", 4)
    assert (four.cloud, four.gpu_count, four.memory_gib) == (None, 4, 2048)
    kept = plan("{cloud: p5.48xlarge}").model_copy(update={"machine": four})
    assert file.parsed(file.text_of(kept), "again").machine == four
    assert rented.model_copy(update={"system": "windows"}).cloud == "p5.48xlarge"


def test_it_is_chosen_as_a_gpu_is() -> None:
    desk = plan("{gpus: [{id: rtx-4090}], cpu: i9-14900k, memory_gib: 64}").machine
    assert with_part(desk, "gpu", "g6.xlarge") == MachineChoice(cloud="g6.xlarge")
    back = with_part(MachineChoice(cloud="g6.xlarge"), "gpu", "rtx-4090")
    assert (back.cloud, back.gpus[0].id) == (None, "rtx-4090")


def test_a_review_takes_it_as_its_machine() -> None:
    section = machine_named("p5.48xlarge")
    assert MachineChoice.model_validate(section) == MachineChoice(cloud="p5.48xlarge")
