"""A plan that names board, power supply, case or cooler is judged; its time follows the board."""

import pytest
from pydantic import ValidationError

from trainwright.catalog import find_board, list_parts
from trainwright.catalog.query import find_gpu
from trainwright.estimate.parallel.communication import host_link, link_between
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.checks import checks
from trainwright.machine.choice import MachineChoice
from trainwright.machine.placement import place
from trainwright.machine.resolve import catalogued
from trainwright.messages import render

PROART, STRIX = "asus-proart-x870e-creator-wifi", "asus-rog-strix-x870e-e-gaming-wifi"


def machine(**values: object) -> MachineChoice:
    usual = {"gpus": [{"id": "rtx-4090", "count": 2}], "cpu": "ryzen-9-9950x"}
    return MachineChoice.model_validate(usual | values)


def test_without_a_board_nothing_changes() -> None:
    found = catalogued(machine()).machine
    assert found.parts is None
    assert found.gpu.slots == ()


@pytest.mark.parametrize("key", ["board", "psu", "case", "cooler"])
def test_an_unknown_part_is_a_question_with_near_ones(key: str) -> None:
    """The plan goes on without it: what would be checked with it is not said to be fine."""
    asked = catalogued(machine(**{key: "nobody-makes-this"}))
    assert [note.values["key"] for note in asked.notes] == [f"machine.{key}"]
    assert asked.machine.parts is not None
    assert getattr(asked.machine.parts, key) is None
    near = {"board": "asus proart x870e", "psu": "corsair rm1000", "case": "fractal torent",
            "cooler": "noctua nh-d1"}[key]  # fmt: skip
    for language in ("en", "ko"):
        (told,) = (render(note, language) for note in catalogued(machine(**{key: near})).notes)
        assert near.split()[0] in told.casefold()


def test_two_cards_on_the_proart_have_eight_lanes_each() -> None:
    """ASUS, ProArt X870E-CREATOR: x16, x8/x8, or x8/x4/x4 with M.2_2."""
    gpu = catalogued(machine(board=PROART)).machine.gpu
    assert [link.lanes for link in gpu.slots] == [16, 8]
    assert host_link(gpu.record, 1, slots=gpu.slots).lanes == 16
    two = host_link(gpu.record, 2, slots=gpu.slots)
    assert (two.lanes, two.assumed) == (8, False)
    assert two.bytes_per_s == pytest.approx(8 * 1.969e9)


def test_the_second_card_of_a_strix_waits_for_the_chipset() -> None:
    """Hardwareluxx, ROG STRIX X870E-E: the second slot is the chipset's 4.0 x4."""
    gpu = catalogued(machine(board=STRIX)).machine.gpu
    if not gpu.slots:
        pytest.skip("the board's lanes are not in the catalog")
    assert gpu.slots[1].lanes == 4
    assert host_link(gpu.record, 2, slots=gpu.slots).bytes_per_s < (
        host_link(gpu.record, 2).bytes_per_s
    )


def test_a_plan_may_name_its_outlet_and_its_bridge() -> None:
    """NVIDIA, RTX 3090: 112.5 GB/s over a bridge; US outlets carry 1,440 W for hours."""
    bridged = machine(
        gpus=[{"id": "rtx-3090", "count": 2}], psu="evga-supernova-1600-t2",
        circuit="us-120v-15a", bridge_slots=3,
    )  # fmt: skip
    found = catalogued(bridged).machine
    assert found.gpu.bridged
    assert link_between(found.gpu.record, 2, bridged=found.gpu.bridged).path == "bridge"
    assert found.parts is not None
    rules = {check.rule: check for check in checks(found.parts)}
    assert rules["W11"].values["continuous"] == 1440
    with pytest.raises(ValidationError):
        machine(circuit="mars-12v")


def test_every_board_that_claims_to_be_complete_seats_a_card() -> None:
    boards = [board for board in list_parts("board") if board.lanes_complete]
    assert len(boards) >= 30
    card = find_gpu("rtx-4060").record
    for board in boards:
        placed = place(Build(gpus=(BuildGpu(card),), board=board))
        assert placed.slowest is not None, board.id
        assert placed.slowest.lanes == 8, board.id


def test_the_links_of_a_board_are_what_its_modes_say() -> None:
    """With two cards, the best mode in which both slots have lanes."""
    board = find_board(PROART)
    assert board is not None
    both = [mode for mode in board.slot_modes if all(mode.values())]
    card = find_gpu("rtx-4060").record.model_copy(update={"pcie_lanes": 16, "slot_width": None})
    placed = place(Build(gpus=(BuildGpu(card, 2),), board=board))
    assert sorted(gpu.lanes or 0 for gpu in placed.gpus) == sorted(both[0].values())
