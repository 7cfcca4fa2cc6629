"""Layouts are counted as the literature and NVIDIA's own tables have them."""

import pytest

from trainwright.catalog.mig import mig_tables
from trainwright.mig.layout import doubled, layouts, maximal

TABLES = {table.id: table for table in mig_tables()}


def counted(table, kinds):
    found = layouts(table, kinds)
    return len(found), len(maximal(table, found, kinds))


@pytest.mark.parametrize(
    ("gpu", "all_kinds", "without_double"),
    [
        # 19 layouts of an A100: MIG-serving (arXiv 2109.11067), counted without the profile of one
        # slice with two units of memory, which came with driver R525.
        ("a100-40gb", (723, 78), (298, 19)),
        ("h100-80gb", (723, 78), (298, 19)),
        ("a30-24gb", (26, 5), (26, 5)),
        ("rtx-pro-6000-96gb", (26, 5), (26, 5)),
    ],
)
def test_layouts_are_as_many_as_published_placements_give(gpu, all_kinds, without_double):
    table = TABLES[gpu]
    kinds = [profile for profile in table.profiles if profile.plain]
    assert counted(table, kinds) == all_kinds
    double = doubled(table)
    assert counted(table, [kind for kind in kinds if kind != double]) == without_double


def test_every_gpu_that_can_is_there():
    """NVIDIA MIG User Guide, supported GPUs, and mig-parted's default configuration."""
    assert {"a30-24gb", "a100-80gb", "h200-141gb", "b300-269gb", "thor-igpu"} <= set(TABLES)
    assert len(TABLES) == 16
