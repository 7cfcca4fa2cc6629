"""Layouts are counted as the literature and NVIDIA's own tables have them."""

import re

import pytest

from trainwright.catalog.mig import mig_tables
from trainwright.mig.commands import commands, kubernetes
from trainwright.mig.layout import Instance, check, doubled, layouts, maximal

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


A100 = TABLES["a100-40gb"]


def test_instances_are_created_largest_first_at_their_places():
    layout = check(A100, {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}).instances
    (line,) = [line for line in commands(A100, layout).apply if "-cgi" in line]
    places = re.search(r"-cgi (\S+) -C", line).group(1).split(",")
    assert all(re.fullmatch(r"\d+:\d+", place) for place in places)
    sizes = {"9": 4, "14": 2, "19": 1}
    ordered = [sizes[place.split(":")[0]] for place in places]
    assert ordered == sorted(ordered, reverse=True) == [4, 2, 1, 1]


def test_what_is_undone_ends_where_it_began():
    before = (Instance("3g.20gb", 4),)
    after = (Instance("3g.20gb", 4), Instance("4g.20gb", 0))
    found = commands(A100, after, current=before)
    assert not any("-mig" in line for line in (*found.apply, *found.undo))
    assert found.apply == ("sudo nvidia-smi mig -i 0 -cgi 5:0 -C",)
    assert any("<4g.20gb@0>" in line for line in found.undo)
    assert not any("3g.20gb" in line for line in found.undo)


def test_an_a100_is_reset_and_an_h100_is_not():
    """NVIDIA MIG User Guide, enabling MIG mode: from Hopper on no reset is needed."""
    told = {
        gpu: {warning.id for warning in commands(TABLES[gpu], ()).warnings}
        for gpu in ("a100-40gb", "h100-80gb", "rtx-pro-6000-96gb")
    }
    assert "mig.apply.resets" in told["a100-40gb"]
    assert "mig.apply.resets" not in told["h100-80gb"]
    assert "mig.apply.display" in told["rtx-pro-6000-96gb"]


def test_a_pod_asks_by_the_device_plugins_name():
    """NVIDIA/k8s-device-plugin, README: ``nvidia.com/mig-1g.5gb`` and, with media, ``.me``."""
    assert "nvidia.com/mig-1g.5gb.me: 1" in kubernetes("1g.5gb+me")
