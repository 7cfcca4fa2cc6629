"""Mainboards: lanes that add up, chipsets as they are, and none of the errors of public tables."""

from collections.abc import Iterator

import pytest

from trainwright.catalog import BoardRecord, CpuRecord, find_board, list_parts

UPLINKS = {
    "X570": (4, 4),
    "B550": (3, 4),
    **dict.fromkeys(("A520", "B450", "X470", "Z390", "B460", "Z490", "B560"), (3, 4)),
    "Z590": (3, 8),
    **dict.fromkeys(("B650", "B650E", "X670", "X670E", "B840", "B850", "X870", "X870E"), (4, 4)),
    **dict.fromkeys(("B660", "B760"), (4, 4)),
    **dict.fromkeys(("Z690", "W680", "Z790"), (4, 8)),
    "B860": (4, 4),
    **dict.fromkeys(("Z890", "W880"), (4, 8)),
    "TRX40": (4, 8),
    "WRX80": (4, 8),
    **dict.fromkeys(("TRX50", "WRX90"), (4, 4)),
    "W790": (4, 8),
    "X399": (3, 4),
}
"""Generation and lanes of the chipset's link. Source: AMD's and Intel's chipset pages, and the
tables of lanes that ``hardware_db/SOURCES.md`` names as ``lane-tables``."""
USB4_LANES = {"X870": 4, "X870E": 4}
"""AMD asks for USB4 on these, and it hangs on the processor. Source: ``lane-tables``."""


def _find(name: str) -> BoardRecord:
    record = find_board(name)
    assert record, name
    return record


def _processors(board: BoardRecord) -> Iterator[CpuRecord]:
    for cpu in list_parts("cpu"):
        if cpu.socket == board.socket and board.chipset in (cpu.chipsets or ()):
            yield cpu


def test_there_are_enough_boards_of_what_people_build_on() -> None:
    boards = list_parts("board")
    assert len(boards) >= 60
    assert sum(board.lanes_complete for board in boards) >= 30
    assert {board.chipset for board in boards} >= {
        *("B550", "X570", "B650", "B650E", "X670E", "X870", "X870E", "B850"),
        *("Z690", "B760", "Z790", "Z890", "B860", "TRX50", "WRX80", "WRX90", "W790", "SoC"),
    }


def test_where_a_slot_sits_says_who_looked() -> None:
    """Makers print lanes, and seldom which of the case's openings a slot meets."""
    for board in list_parts("board"):
        if any(slot.position for slot in board.slots):
            position = board.provenance("position")
            told = position.source.startswith(("recall", "assumed"))
            assert position.confidence == ("low" if told else "medium"), board.id
            doubted = board.provenance("slots").confidence == "low"
            assert not told or doubted or "; positions" in board.provenance("slots").source


def test_what_nobody_looked_up_is_called_recalled_and_low() -> None:
    for board in list_parts("board"):
        for field in ("slots", "m2", "launch", "memory_max_gib"):
            provenance = board.provenance(field)
            source = provenance.source.split("; positions")[0]
            if "recall" in source and "agrees" not in source:
                assert provenance.confidence == "low", (board.id, field)


def test_a_complete_board_leaves_no_question_of_lanes() -> None:
    for board in list_parts("board"):
        if not board.lanes_complete:
            continue
        assert board.slots, board.id
        assert board.m2 is not None, board.id
        assert all(slot.source and slot.generation and slot.lanes for slot in board.slots), board.id
        assert all(socket.source and socket.generation and socket.lanes for socket in board.m2), (
            board.id
        )
        assert board.sata_ports is not None, board.id
        assert board.uplink or board.chipset == "SoC", board.id


def test_modes_and_conflicts_name_what_is_there() -> None:
    for board in list_parts("board"):
        ids = [slot.id for slot in board.slots] + [socket.id for socket in board.m2 or ()]
        assert len(ids) == len(set(ids)), board.id
        for mode in board.slot_modes:
            assert set(mode) <= {slot.id for slot in board.slots}, board.id
        for conflict in board.conflicts:
            assert conflict.when in {*ids, "usb4", "slimsas"}, board.id
            assert conflict.then in ids or conflict.then.startswith("sata:"), board.id


def test_a_slot_has_no_more_lanes_than_its_connector() -> None:
    for board in list_parts("board"):
        for slot in board.slots:
            assert (slot.lanes or 1) <= int(slot.length[1:]), board.id
        for mode in board.slot_modes:
            for slot in board.slots:
                assert mode.get(slot.id, 0) <= (slot.lanes or 16), board.id


def test_slots_meet_openings_of_their_own() -> None:
    for board in list_parts("board"):
        positions = [slot.position for slot in board.slots if slot.position]
        assert len(positions) == len(set(positions)), board.id
        assert all(position <= 8 for position in positions), board.id


def test_what_hangs_on_the_processor_fits_its_lanes() -> None:
    for board in list_parts("board"):
        processors = list(_processors(board))
        limit = max((cpu.lanes_usable or 0 for cpu in processors), default=0)
        if not board.lanes_complete or not limit:
            continue
        sharing = {conflict.when for conflict in board.conflicts}
        modes = board.slot_modes or ({},)
        for mode in modes:
            slots = sum(
                mode.get(slot.id, slot.lanes or 0) for slot in board.slots if slot.source == "cpu"
            )
            drives = sum(
                socket.lanes or 0
                for socket in board.m2 or ()
                if socket.source == "cpu" and socket.id not in sharing
            )
            usb4 = USB4_LANES.get(board.chipset or "", 0)
            assert slots + drives + usb4 <= limit, board.id


def test_the_chipset_is_linked_as_its_maker_says() -> None:
    for board in list_parts("board"):
        if board.uplink:
            link = (board.uplink.generation, board.uplink.lanes)
            assert link == UPLINKS[board.chipset or ""], board.id


def test_lengths_of_drives_are_not_counted_as_sockets() -> None:
    """OpenDB's 245 boards with more than six M.2 sockets list 2242, 2260 and 2280 of one."""
    for board in list_parts("board"):
        if len(board.m2 or ()) > 6:
            assert board.lanes_complete, board.id
    # An older record of it has seven, and three slots of sixteen lanes.
    assert len(_find("Gigabyte X870 AORUS ELITE X3D ICE").m2 or ()) == 4


def test_memory_is_in_gib_not_tib() -> None:
    """OpenDB writes 1 for the TRX50-SAGE, a unit of TB among figures in GB."""
    for board in list_parts("board"):
        assert (board.memory_max_gib or 32) >= 32, board.id
        assert (board.memory_max_gib or 32) <= 512 * board.memory_slots, board.id


def test_every_board_has_a_processor_in_the_catalog() -> None:
    for board in list_parts("board"):
        assert board.chipset is None or list(_processors(board)), board.id


def test_the_length_of_a_slot_says_nothing_of_its_lanes() -> None:
    """Four slots of the PRIME Z790-P look alike; one of them has the processor's lanes."""
    slots = [slot for slot in _find("ASUS PRIME Z790-P WIFI").slots if slot.length == "x16"]
    assert [slot.lanes for slot in slots] == [16, 4, 4, 4]


def test_the_second_slot_of_the_carbon_has_four_lanes() -> None:
    carbon = _find("MSI MPG X870E CARBON WIFI")
    assert carbon.slot_modes[-1] == {"PCI_E1": 8, "PCI_E2": 4}


@pytest.mark.parametrize(
    "name", ["ASUS ProArt X870E-CREATOR WIFI", "MSI MEG X670E ACE", "ASUS Pro WS W680-ACE"]
)
def test_boards_that_people_buy_for_two_cards_give_each_eight_lanes(name: str) -> None:
    halves = _find(name).slot_modes[-1]
    assert sorted(halves.values())[-2:] == [8, 8]


def test_a_drive_may_switch_the_second_slot_off() -> None:
    """Of the Z790 FORMULA a reviewer writes what its manual says of M.2_1."""
    conflicts = _find("ASUS ROG MAXIMUS Z790 FORMULA").conflicts
    lost = {conflict.then: conflict.lanes for conflict in conflicts if conflict.when == "M.2_1"}
    assert lost == {"PCIEX16(G5)_1": 8, "PCIEX16(G5)_2": 0}


def test_the_middle_slot_of_the_designare_has_four_lanes_of_generation_2() -> None:
    """An RTX 3090 in it halved the rate of four: a builder's report of 2026."""
    slots = {slot.id: slot for slot in _find("Gigabyte X399 DESIGNARE EX").slots}
    assert (slots["PCIEX4"].generation, slots["PCIEX4"].lanes) == (2, 4)
    assert slots["PCIEX4"].length == "x16"


def test_a_slot_without_known_lanes_says_so() -> None:
    """OpenDB has "4x PCIe 5.0 x16" for a board with one such slot."""
    slots = _find("MSI PRO Z890-S WIFI").slots
    assert len(slots) == 1
    assert not _find("MSI PRO Z890-S WIFI").lanes_complete


@pytest.mark.parametrize(
    ("typed", "id"),
    [
        # as DMI has it, in /sys/class/dmi/id/board_name
        ("ProArt X870E-CREATOR WIFI", "asus-proart-x870e-creator-wifi"),
        ("MPG X870E CARBON WIFI (MS-7E49)", "msi-mpg-x870e-carbon-wifi"),
        ("ROMED8-2T", "asrock-rack-romed8-2t"),
        ("proart x870e creator", "asus-proart-x870e-creator-wifi"),
        ("X570 Taichi", "asrock-x570-taichi"),
    ],
)
def test_a_board_is_found_by_what_people_and_firmware_call_it(typed: str, id: str) -> None:
    assert _find(typed).id == id
