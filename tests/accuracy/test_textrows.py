"""Rows and op tables of language models against what their sources publish."""

import pytest
from optables import tables
from textrows import TABLES, rows

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


def test_every_row_has_its_table_and_its_gpu() -> None:
    known = set(catalog().ids)
    assert {row.key for row in rows()} == set(tables(TABLES))
    assert {row.gpu for row in rows()} <= known


def test_the_tables_have_the_parameters_that_the_sources_publish() -> None:
    stated = [row for row in rows() if row.parameters]
    assert len(stated) > 200
    for row in stated:
        assert tables(TABLES)[row.key].parameters == row.parameters, row.id


@pytest.mark.parametrize("key", [key for key in tables(TABLES) if key.startswith("mpt")])
def test_forward_flops_are_those_by_which_the_source_counts_utilisation(key: str) -> None:
    # Source: README of llm-foundry's benchmarks: 2 per parameter and token, and of attention
    # 4 · layers · width · length² per sequence. Its parameters have the positions too.
    table = tables(TABLES)[key]
    name, _, rest = key.partition("@")
    (width, layers), length = MPT[name], int(rest.split("/")[0])
    forward = [place for place, phase in enumerate(table.phase) if phase == "forward"]
    traced = int((table.flops[forward, 1] * table.count[forward]).sum())
    stated = 2 * (table.parameters - length * width) * length + 4 * layers * width * length**2
    assert traced == pytest.approx(stated, rel=2e-3)


def test_a_second_forward_pass_is_the_blocks_of_the_first() -> None:
    for key, table in tables(TABLES).items():
        if not key.startswith("mpt"):
            continue
        width, layers = MPT[key.partition("@")[0]]
        length = int(key.partition("@")[2].split("/")[0])
        again = [place for place, phase in enumerate(table.phase) if phase.startswith("recompute")]
        traced = int((table.flops[again, 1] * table.count[again]).sum())
        products = 12 * width**2 * 2 * length
        assert traced == layers * (products + 4 * width * length**2)
