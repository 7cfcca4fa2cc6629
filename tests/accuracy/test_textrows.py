"""Rows and op tables of language models and workloads against what their sources publish."""

import csv

import pytest
from optables import ROWS, tables
from textrows import FILES, by_file, held_out_gpus, rows

from trainwright.catalog import catalog

MPT = {
    f"mpt-{name}": (width, layers)
    for name, width, layers in (
        ("125m", 768, 12), ("350m", 1024, 24), ("760m", 1536, 24), ("1b", 2048, 24),
        ("3b", 2560, 32), ("7b", 4096, 32), ("13b", 5120, 40), ("30b", 7168, 48),
        ("70b", 8192, 80),
    )
}  # fmt: skip
"""Width and layers, from ``scripts/train/yamls/mpt`` of llm-foundry."""

LLM, WORKLOADS = FILES.values()


def test_every_row_has_its_table_and_its_gpu() -> None:
    for file, found in FILES.items():
        assert {row.key for row in rows(file)} == set(tables(found))
        assert {row.gpu for row in rows(file)} <= set(catalog().ids)
    assert {row.key for row in rows("fp8.csv")} <= set(tables(LLM))


def test_the_tables_have_the_parameters_that_the_sources_publish() -> None:
    stated = [row for row in rows("llm.csv") if row.parameters]
    assert len(stated) > 200
    for row in stated:
        assert tables(LLM)[row.key].parameters == row.parameters, row.id


@pytest.mark.parametrize("key", [key for key in tables(LLM) if key.startswith("mpt")])
def test_forward_flops_are_those_by_which_the_source_counts_utilisation(key: str) -> None:
    # Source: README of llm-foundry's benchmarks: 2 per parameter and token, and of attention
    # 4 · layers · width · length² per sequence. Its parameters have the positions too.
    table = tables(LLM)[key]
    name, _, rest = key.partition("@")
    (width, layers), length = MPT[name], int(rest.split("/")[0])
    forward = [place for place, phase in enumerate(table.phase) if phase == "forward"]
    traced = int((table.flops[forward, 1] * table.count[forward]).sum())
    stated = 2 * (table.parameters - length * width) * length + 4 * layers * width * length**2
    assert traced == pytest.approx(stated, rel=2e-3)


def test_a_second_forward_pass_is_the_blocks_of_the_first() -> None:
    for key, table in tables(LLM).items():
        width, layers = MPT[key.partition("@")[0]]
        length = int(key.partition("@")[2].split("/")[0])
        again = [place for place, phase in enumerate(table.phase) if phase.startswith("recompute")]
        traced = int((table.flops[again, 1] * table.count[again]).sum())
        products = 12 * width**2 * 2 * length
        assert traced == layers * (products + 4 * width * length**2)


# Parameters and multiply-adds of one image, as torchvision publishes them with its weights
# (``num_params`` and ``_ops`` of each ``Weights`` entry, in torchvision/models).
TORCHVISION = {
    "resnet50": (25557032, 4.089),
    "resnext101_32x8d": (88791336, 16.414),
    "densenet121": (7978856, 2.834),
    "mobilenet_v2": (3504872, 0.301),
    "mnasnet1_0": (4383312, 0.314),
    "shufflenet_v2_x1_0": (2278604, 0.145),
    "squeezenet1_1": (1235496, 0.349),
    "vgg16": (138357544, 15.47),
    "wide_resnet50_2": (68883240, 11.398),
}


@pytest.mark.parametrize("name", TORCHVISION)
def test_networks_have_the_parameters_and_the_arithmetic_that_torchvision_publishes(
    name: str,
) -> None:
    parameters, gmacs = TORCHVISION[name]
    for precision in ("fp32", "fp16"):
        table = tables(WORKLOADS)[f"torchvision-{name}@224/infer/{precision}/eager"]
        assert table.parameters == parameters
        assert table.total("flops", 1) == pytest.approx(2e9 * gmacs, rel=0.02)


def test_half_networks_compute_in_half() -> None:
    for key, table in tables(WORKLOADS).items():
        arithmetic = {
            dtype for dtype, flops in zip(table.dtype, table.flops, strict=True) if flops.any()
        }
        if "/fp16/" in key:
            assert arithmetic == {"float16"}, key


def test_the_gpus_kept_out_follow_the_rule() -> None:
    with (ROWS / "held_out.csv").open(encoding="utf-8", newline="") as file:
        listed = {
            line["name"]
            for line in csv.DictReader(file)
            if line["kind"] == "gpu" and "held_out_gpus" in line["why"]
        }
    used = {row.gpu for file in FILES for row in rows(file)}
    assert set(held_out_gpus(by_file(used))) == listed
