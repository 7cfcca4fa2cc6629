"""From ids to a machine, with memory that says how it is known."""

from pathlib import Path

import pytest

from trainwright.catalog import Fact, GpuRecord
from trainwright.explain import Kind
from trainwright.machine.capacity import MIB, held, nominal_total
from trainwright.machine.choice import GpuChoice, MachineChoice
from trainwright.machine.resolve import catalogued
from trainwright.messages import UserError

GIB = 1 << 30


def machine(**values: object) -> MachineChoice:
    return MachineChoice.model_validate({"gpus": [{"id": "rtx-4090"}], **values})


def test_ids_names_and_what_people_type_are_the_same_gpu() -> None:
    for name in ("rtx-4090", "NVIDIA GeForce RTX 4090", "4090"):
        found = catalogued(machine(gpus=[{"id": name, "count": 2}])).machine
        assert found.gpu.record.id == "rtx-4090"
        assert found.gpu_count == 2


def test_a_family_is_resolved_with_a_note() -> None:
    found = catalogued(machine(gpus=[{"id": "a100-80gb"}]))
    assert "sxm" in found.machine.gpu.record.id
    assert len(found.notes) == 1


def test_an_unknown_id_names_its_key_and_what_may_be_meant() -> None:
    with pytest.raises(UserError) as error:
        catalogued(machine(gpus=[{"id": "rtx-4090"}, {"id": "rtx-4098"}]))
    assert str(error.value).startswith("machine.gpus[1].id: ")
    assert "rtx-4090" in str(error.value)


def test_an_instance_offers_what_the_driver_lists_and_not_its_name() -> None:
    """39.25 GiB and 42 of 108 processors: ``nvidia-smi mig -lgip`` on A100-SXM4-80GB."""
    gpu = catalogued(machine(gpus=[{"id": "a100-80gb", "mig": "3g.40gb"}])).machine.gpu
    assert gpu.total.value == 39.25 * 2**30
    assert gpu.record.sm_count is not None
    assert gpu.record.sm_count.value == 42


@pytest.mark.parametrize(
    "gpu",
    [
        {"id": "a100-80gb", "mig": "9g.90gb"},
        {"id": "rtx-4090", "mig": "1g.5gb"},
        {"id": "a100-80gb", "mig": "3g.40gb", "count": 2},
    ],
)
def test_an_instance_that_cannot_be_is_refused_by_its_key(gpu: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"machine\.gpus\[0\]\.mig"):
        catalogued(machine(gpus=[gpu]))


def test_what_is_not_known_is_none_and_not_zero() -> None:
    found = catalogued(machine()).machine
    assert found.cores is None
    assert found.memory_bytes is None
    assert found.cpu is None
    assert catalogued(machine(memory_gib=64)).machine.memory_bytes == 64 * GIB


def test_a_published_total_is_quoted() -> None:
    total = catalogued(machine()).machine.gpu.total
    assert total.kind is Kind.QUOTED
    # NVML says 24564 MiB; torch's total_memory under drivers of 2026 is 23.52 GiB.
    assert total.value == pytest.approx(23.52 * GIB, rel=0.001)
    assert total.source


def record(vendor: str, segment: str, capability: tuple[int, int] | None, gib: int) -> GpuRecord:
    return GpuRecord.model_validate(
        {
            "id": "x",
            "name": "X",
            "vendor": vendor,
            "segment": segment,
            "architecture": "",
            "compute_capability": capability,
            "unified_memory": vendor == "Apple",
            "memory_bytes": Fact(value=gib * GIB, source="data sheet", confidence="high"),
            "bandwidth_bytes_per_s": Fact(value=1, source="data sheet", confidence="high"),
        }
    )


@pytest.mark.parametrize(
    ("gpu", "reported_mib"),
    [
        # nvidia-smi listings of cards of these kinds.
        (record("NVIDIA", "datacenter", (7, 5), 16), 15360),  # T4
        (record("NVIDIA", "datacenter", (8, 9), 48), 46068),  # L40S
        (record("NVIDIA", "datacenter", (9, 0), 80), 81559),  # H100 80GB
        (record("NVIDIA", "consumer", (12, 0), 32), 32607),  # RTX 5090
        (record("NVIDIA", "consumer", (8, 9), 24), 24564),  # RTX 4090
        (record("NVIDIA", "workstation", (8, 6), 48), 49140),  # RTX A6000
        (record("NVIDIA", "datacenter", (8, 0), 80), 81920),  # A100 80GB
    ],
)
def test_an_assumed_total_is_near_what_such_cards_report(gpu: GpuRecord, reported_mib: int) -> None:
    total = nominal_total(gpu)
    assert total.kind is Kind.ASSUMED
    assert total.value / MIB == pytest.approx(reported_mib, rel=0.005)
    assert [part.kind for part in total.parts] == [Kind.QUOTED, Kind.ASSUMED]


def test_what_others_hold_is_assumed_by_system_unless_the_user_says() -> None:
    card = record("NVIDIA", "consumer", (8, 9), 24)
    linux, windows = held(card, "linux", None), held(card, "windows", None)
    assert linux.kind is Kind.ASSUMED
    assert windows.value - linux.value > 500 * MIB
    assert linux.parts[0].kind is Kind.ASSUMED
    said = held(card, "windows", 100)
    assert said.parts[0].value == 100 * MIB
    assert said.parts[0].kind is Kind.YOURS
    server = held(record("NVIDIA", "datacenter", (8, 0), 80), "linux", None)
    assert server.parts[0].value == 0


def test_more_reserved_than_there_is_names_its_key() -> None:
    with pytest.raises(UserError, match=r"machine\.gpus\[0\]\.reserved_mib"):
        catalogued(machine(gpus=[GpuChoice(id="rtx-4090", reserved_mib=30_000)]))


def test_memory_is_what_the_kits_have_unless_the_plan_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "memory"
    folder.mkdir()
    (folder / "own.yaml").write_text(
        "schema: 1\nmemory:\n  - {id: own-kit, name: Own kit, vendor: Own, type: ddr5,"
        " module: udimm, modules: 2, module_gib: 32, mts: 6000, source: own, confidence: low}\n"
    )
    monkeypatch.setenv("TRAINWRIGHT_HARDWARE", str(tmp_path))
    two = [{"id": "own-kit", "count": 2}]
    assert catalogued(machine(memory=two)).machine.memory_bytes == 128 * GIB
    assert catalogued(machine(memory=two, memory_gib=96)).machine.memory_bytes == 96 * GIB
    unknown = [*two, {"id": "no-such-kit"}]
    assert catalogued(machine(memory=unknown)).machine.memory_bytes is None
