"""What people and drivers call a GPU leads to it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.catalog import catalog, find_gpu, instances, list_gpus
from trainwright.messages import UserError, render

GIB = 1 << 30


@pytest.mark.parametrize(
    ("typed", "id"),
    [
        ("rtx-4090", "rtx-4090"),
        ("RTX 4090", "rtx-4090"),
        ("4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("GeForceRTX4090", "rtx-4090"),
        ("지포스 RTX 4090", "rtx-4090"),
        ("엔비디아 지포스 RTX4090", "rtx-4090"),
        ("4090 24GB", "rtx-4090"),
        ("2080 ti", "rtx-2080-ti"),
        ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"),
        ("2070 슈퍼", "rtx-2070-super"),
        ("rtx-3060-12gb", "rtx-3060-12gb"),
        ("3060 12g", "rtx-3060-12gb"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx-4090-laptop"),
        ("RTX 4090 Mobile", "rtx-4090-laptop"),
        ("4090 노트북", "rtx-4090-laptop"),
        ("NVIDIA RTX A6000", "rtx-a6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("Quadro RTX 6000", "quadro-rtx-6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-workstation"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb-sxm"),
        ("NVIDIA A100-PCIE-40GB", "a100-40gb-pcie"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"),
        ("NVIDIA H100 80GB HBM3", "h100-80gb-sxm"),
        ("NVIDIA H100 PCIe", "h100-80gb-pcie"),
        ("h100-80gb-pcie", "h100-80gb-pcie"),
        ("NVIDIA H100 NVL", "h100-94gb-nvl"),
        ("NVIDIA H200", "h200-141gb-sxm"),
        ("Tesla V100-SXM2-16GB", "v100-16gb-sxm"),
        ("Tesla T4", "t4"),
        ("NVIDIA L40S", "l40s"),
        ("AMD Radeon RX 7900 XTX", "rx-7900-xtx"),
        ("라데온 RX 7900 XTX", "rx-7900-xtx"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Intel(R) Arc(TM) B580 Graphics", "arc-b580"),
        ("Intel® Arc™ B580 Graphics", "arc-b580"),
        ("Apple M3 Max", "apple-m3-max"),
        ("애플 M3 맥스", "apple-m3-max"),
    ],
)
def test_a_name_leads_to_its_gpu(typed, id):
    match = find_gpu(typed)
    assert match.record.id == id
    assert match.note is None


@pytest.mark.parametrize(
    ("family", "id"),
    [
        ("a100-40gb", "a100-40gb-sxm"),
        ("a100-80gb", "a100-80gb-sxm"),
        ("h100-80gb", "h100-80gb-sxm"),
        ("v100-16gb", "v100-16gb-sxm"),
    ],
)
def test_a_family_is_its_sxm_part_and_says_so(family, id):
    match = find_gpu(family)
    assert match.record.id == id
    assert id in render(match.note, "en")
    assert id in render(match.note, "ko")


MIG_TABLE_KEYS = [
    "A30-24GB",
    "A100-40GB",
    "A100-80GB",
    "H100-80GB",
    "H100-94GB",
    "H100-96GB",
    "GH200-144GB",
    "H200-141GB",
    "B200-180GB",
    "GB200-186GB",
    "B300-269GB",
    "GB300-278GB",
    "RTX-PRO-6000-96GB",
    "RTX-PRO-5000-48GB",
    "RTX-PRO-4500-32GB",
    "Thor-iGPU",
]


@pytest.mark.parametrize("key", MIG_TABLE_KEYS)
def test_every_key_of_the_mig_tables_is_a_gpu_that_divides(key):
    assert find_gpu(key).record.mig


def test_a_name_of_two_memory_sizes_says_which_was_taken():
    match = find_gpu("3060")
    assert match.record.id == "rtx-3060-12gb"
    assert "rtx-3060-8gb" in render(match.note, "en")


@pytest.mark.parametrize(
    ("name", "reported_mib", "id"),
    [
        ("NVIDIA GeForce RTX 3060", 8192, "rtx-3060-8gb"),
        ("NVIDIA GeForce RTX 3060", 12288, "rtx-3060-12gb"),
        ("NVIDIA GeForce RTX 4060 Ti", 16380, "rtx-4060-ti-16gb"),
        ("NVIDIA GeForce RTX 3080", 12288, "rtx-3080-12gb"),
        ("NVIDIA GeForce RTX 5060 Ti", 8151, "rtx-5060-ti-8gb"),
        ("NVIDIA GeForce RTX 4090", 24564, "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", 49140, "rtx-4090-48gb"),
        ("NVIDIA GeForce RTX 2080 Ti", 22528, "rtx-2080-ti-22gb"),
    ],
)
def test_the_driver_s_memory_tells_cards_of_one_name_apart(name, reported_mib, id):
    match = find_gpu(name, memory_bytes=reported_mib << 20)
    assert match.record.id == id
    assert match.note is None


def test_decomposed_hangul_reads_the_same():
    assert find_gpu(unicodedata.normalize("NFD", "지포스 RTX 4090")).record.id == "rtx-4090"


def test_a_typing_error_gets_the_nearest_names():
    with pytest.raises(UserError) as caught:
        find_gpu("rtx 4095")
    assert caught.value.message.id == "catalog.unknown-gpu"
    assert "rtx-4090" in str(caught.value)
    assert "rtx 4095" in render(caught.value.message, "ko")


@given(st.text(max_size=300))
def test_any_text_is_a_gpu_or_one_clear_line(text):
    found, refused = _look_up(text)
    assert found in catalog().ids or refused.startswith("No GPU named")
    assert "\n" not in refused
    assert len(refused) < 300


def _look_up(text):
    try:
        return find_gpu(text).record.id, ""
    except UserError as error:
        return None, str(error)


def test_every_record_answers_to_its_own_id_and_name():
    for id in catalog().ids:
        record = catalog().record(id)
        assert find_gpu(id).record.id == id
        assert find_gpu(record.name).record.id == id
        for alias in record.aliases:
            assert find_gpu(alias).record.id == id


def test_the_list_narrows_by_words_in_both_languages():
    english = list_gpus("geforce 40 laptop")
    assert {gpu.id for gpu in english} >= {"rtx-4090-laptop", "rtx-4060-laptop"}
    assert all(gpu.segment == "laptop" for gpu in english)
    assert list_gpus("지포스 40 노트북") == english
    assert list_gpus("no such thing") == ()


def test_the_list_sorts_largest_first():
    memory = [gpu.memory_bytes.value for gpu in list_gpus(sort="memory")]
    assert memory == sorted(memory, reverse=True)
    speed = list_gpus("geforce", vendor="NVIDIA", sort="speed")
    assert speed[0].id in {"rtx-5090", "rtx-5090-d"}
    assert all(gpu.memory_bytes.value >= 80 * GIB for gpu in list_gpus(min_memory_bytes=80 * GIB))


def test_gpus_without_the_value_come_last():
    powers = [gpu.tdp_w for gpu in list_gpus(sort="power")]
    first_missing = powers.index(None)
    assert all(power is None for power in powers[first_missing:])


def test_every_cloud_computer_has_gpus_of_the_catalog_and_none_is_taken_for_one() -> None:
    for name in instances.instances():
        one = instances.instance(name.upper())
        assert (one.name, find_gpu(one.gpu).record.id) == (name, one.gpu)
        assert 1 <= one.gpus <= 16
        with pytest.raises(UserError):
            find_gpu(name)
