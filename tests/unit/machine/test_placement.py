"""Cards and drives get the slots and lanes that manuals' tables and reviewers' say."""

import time
from dataclasses import replace

import pytest
import real_parts as real

from trainwright.catalog import GpuRecord, find_board, list_parts
from trainwright.machine.build import Build, BuildGpu
from trainwright.machine.placement import Placement, openings, place, slot_width
from trainwright.machine.wiring import seated
from trainwright.messages import render


def lanes(placement: Placement) -> list[int | None]:
    return [gpu.lanes for gpu in placement.gpus]


def slots(placement: Placement) -> list[str | None]:
    return [gpu.slot for gpu in placement.gpus]


def because(placement: Placement) -> str:
    return " ".join(render(why, "en") for gpu in placement.gpus for why in gpu.because)


def test_one_card_has_all_lanes_and_two_share_them() -> None:
    """MSI, MEG X570 UNIFY manual p. 31: single 4.0 x16; 2-way 4.0 x8 and 4.0 x8."""
    one = place(real.of(real.RTX_4090, board=real.X570_UNIFY, cpu=real.R9_3900X))
    two = place(real.of(real.RTX_5090, 2, board=real.X570_UNIFY, cpu=real.R9_3900X))
    assert (slots(one), lanes(one)) == (["PCI_E1"], [16])
    assert (slots(two), lanes(two)) == (["PCI_E1", "PCI_E3"], [8, 8])
    assert [gpu.generation for gpu in two.gpus] == [4, 4]
    assert "shares" in because(two)


def test_a_third_card_sits_behind_the_chipset() -> None:
    """The same table, 3-way: x8, x8 and 4.0 x4 of the PCH."""
    three = place(real.of(real.RTX_3090_TURBO, 3, board=real.X570_UNIFY, cpu=real.R9_3900X))
    assert slots(three) == ["PCI_E1", "PCI_E3", "PCI_E5"]
    assert lanes(three) == [8, 8, 4]
    assert three.gpus[2].source == "chipset"


def test_the_second_gen_5_socket_takes_lanes_from_the_card() -> None:
    """Hardwareluxx, MPG X870E CARBON: with M.2_2 in use the card has eight lanes, not sixteen.
    Two drives leave it empty, as the chipset's sockets serve a 4.0 drive as well."""
    two = of_carbon(2)
    assert lanes(two) == [16]
    assert {drive.socket for drive in two.drives} == {"M2_1", "M2_3"}
    four = of_carbon(4)
    assert lanes(four) == [8]
    assert {drive.socket for drive in four.drives} == {"M2_1", "M2_2", "M2_3", "M2_4"}
    assert "M2_2" in because(four)


def of_carbon(drives: int) -> Placement:
    return place(
        real.of(
            real.RTX_5090,
            board=real.X870E_CARBON,
            cpu=real.R9_9950X,
            drives=(real.SAMSUNG_990,) * drives,
        )
    )


def test_the_second_slot_has_four_lanes_there() -> None:
    """The same review's table: x16 and nothing, or x8 and x4."""
    two = place(real.of(real.RTX_5090, 2, board=real.X870E_CARBON, cpu=real.R9_9950X))
    assert (slots(two), lanes(two)) == (["PCI_E1", "PCI_E2"], [8, 4])


def test_a_processor_with_graphics_has_half_the_lanes() -> None:
    """Hardwareluxx, ROG STRIX X870E-E: PCIe 5.0 x16 with Ryzen 9000, 4.0 x8 with a Ryzen 8700G."""
    nine = place(real.of(real.RTX_5090, board=real.STRIX_X870E_E, cpu=real.R9_9950X)).gpus[0]
    eight = place(real.of(real.RTX_5090, board=real.STRIX_X870E_E, cpu=real.R7_8700G)).gpus[0]
    assert (nine.generation, nine.lanes, nine.because) == (5, 16, ())
    assert (eight.generation, eight.lanes) == (4, 8)
    assert "Ryzen 7 8700G" in " ".join(render(why, "en") for why in eight.because)


def test_a_second_drive_of_the_strix_goes_to_the_chipset_and_spares_the_card() -> None:
    """The same review: with M.2_2 or M.2_3 in use the slot is x8; M.2_4 and M.2_5 cost nothing."""
    build = real.of(
        real.RTX_5090,
        board=real.STRIX_X870E_E,
        cpu=real.R9_9950X,
        drives=(real.SAMSUNG_9100, real.SAMSUNG_990, real.SAMSUNG_990),
    )
    placed = place(build)
    assert lanes(placed) == [16]
    assert [drive.socket for drive in placed.drives] == ["M.2_1", "M.2_4", "M.2_5"]
    more = place(replace(build, drives=(*build.drives, real.SAMSUNG_990)))
    assert lanes(more) == [8]


def test_a_socket_that_turns_a_slot_off_stays_empty_for_two_cards() -> None:
    """Tom's Hardware, MAXIMUS Z790 FORMULA: with M2_1 in use the second slot is off."""
    two = real.of(real.RTX_5090, 2, board=real.Z790_FORMULA, cpu=real.I9_14900K)
    placed = place(replace(two, drives=(real.SAMSUNG_9100, real.SAMSUNG_990)))
    assert lanes(placed) == [8, 8]
    assert "M2_1" not in {drive.socket for drive in placed.drives}
    one = place(
        real.of(
            real.RTX_5090, board=real.Z790_FORMULA, cpu=real.I9_14900K,
            drives=(real.SAMSUNG_990,) * 5,
        )
    )  # fmt: skip
    assert lanes(one) == [8]
    assert any("PCIEX16(G5)_2" in render(lost, "en") for lost in one.lost)


@pytest.mark.parametrize(
    ("cards", "expected"), [(2, [16, 16]), (3, [8, 16, 16]), (4, [8, 8, 8, 16])]
)
def test_44_lanes_over_two_to_four_cards(cards: int, expected: list[int]) -> None:
    """MSI, X299 CREATION manual p. 34, 44 lanes: best are x16/x16, x16/x16/x8 and x8/x8/x16/x8."""
    placed = place(real.of(real.RTX_3090_TURBO, cards, board=real.X299_CREATION, cpu=real.I9_7940X))
    assert sorted(gpu.lanes or 0 for gpu in placed.gpus) == expected


@pytest.mark.parametrize(("cards", "expected"), [(2, [8, 16]), (3, [8, 8, 8])])
def test_28_lanes_over_two_and_three_cards(cards: int, expected: list[int]) -> None:
    """The same page, 28 lanes: best are x16/x8 and x8/x8/x8."""
    fewer = real.I9_7940X.model_copy(update={"slot_lanes": 28, "name": "Core i7-7800X"})
    placed = place(real.of(real.RTX_3090_TURBO, cards, board=real.X299_CREATION, cpu=fewer))
    assert sorted(gpu.lanes or 0 for gpu in placed.gpus) == expected


def test_the_slot_that_looks_like_x16_comes_last() -> None:
    """Gigabyte, X399 DESIGNARE EX: the third of five long slots is PCIe 2.0 x4 of the chipset.
    Two-slot cards fit beside it, so that no card need be there."""
    four = place(real.of(real.RTX_3090_TURBO, 4, board=real.X399_DESIGNARE, cpu=real.TR_1950X))
    assert "PCIEX4" not in slots(four)
    assert sorted(gpu.lanes or 0 for gpu in four.gpus) == [8, 8, 16, 16]
    single = real.RTX_3090_TURBO.model_copy(update={"slot_width": real.fact(1)})
    five = place(real.of(single, 5, board=real.X399_DESIGNARE, cpu=real.TR_1950X))
    worst = five.slowest
    assert worst is not None
    assert (worst.slot, worst.generation, worst.lanes) == ("PCIEX4", 2, 4)
    assert worst.gb_s == pytest.approx(2.0)


def test_two_slot_cards_take_every_other_slot_of_seven() -> None:
    """ASUS, Pro WS WRX90E-SAGE SE: seven slots one opening apart; Puget and others build four
    two-slot cards on it, and the x8 slot is the sixth."""
    four = place(
        real.of(real.RTX_PRO_6000_MAX_Q, 4, board=real.WRX90E_SAGE, cpu=real.TR_PRO_7975WX)
    )
    assert slots(four) == ["PCIEX16_1", "PCIEX16_3", "PCIEX16_5", "PCIEX16_7"]
    assert lanes(four) == [16, 16, 16, 16]
    five = place(
        real.of(real.RTX_PRO_6000_MAX_Q, 5, board=real.WRX90E_SAGE, cpu=real.TR_PRO_7975WX)
    )
    assert slots(five).count(None) == 1


def test_three_slot_cards_need_nine_openings_on_an_atx_board() -> None:
    """A card of three slots in the seventh slot ends in the ninth opening: a case with seven
    (Fractal Design Torrent) has no place for it, one with nine (Define 7 XL) has."""
    build = real.of(real.RTX_3090, 3, board=real.WRX90E_SAGE, cpu=real.TR_PRO_7975WX)
    wide = place(replace(build, case=real.DEFINE_7_XL))
    assert slots(wide).count(None) == 0
    assert slots(place(replace(build, case=real.TORRENT))).count(None) == 1


def test_slot_2_of_the_epyc_board_shares_with_m2() -> None:
    """ASRock Rack, ROMED8-2T: the second slot shares with M.2 and OCuLink; other slots do not."""
    single = real.RTX_A6000.model_copy(update={"slot_width": real.fact(1)})
    drives = (real.SAMSUNG_990, real.SAMSUNG_990)
    seven = place(real.of(single, 7, board=real.ROMED8_2T, cpu=real.EPYC_7302P, drives=drives))
    assert {gpu.slot: gpu.lanes for gpu in seven.gpus}["PCIE2"] == 8
    four = place(
        real.of(real.RTX_A6000, 4, board=real.ROMED8_2T, cpu=real.EPYC_7302P, drives=drives)
    )
    assert lanes(four) == [16, 16, 16, 16]


def test_a_sata_drive_in_m2_needs_a_socket_that_takes_it() -> None:
    """MSI, B450-A PRO: M2_1 takes SATA; the X570 UNIFY's first socket is not stated to."""
    sata = real.QVO_870.model_copy(update={"form": "m.2", "length_mm": 80})
    assert place(Build(board=real.B450_A_PRO, drives=(sata,))).drives[0].socket == "M2_1"
    assert place(Build(board=real.X870E_CARBON, drives=(sata,))).drives[0].socket is None


def test_ports_that_a_socket_turns_off_are_not_left() -> None:
    """MSI, MEG B550 UNIFY-X manual p. 33: SATA5 and SATA6 are gone with an SSD in M2_3."""
    two = place(Build(board=real.B550_UNIFY_X, drives=(real.SAMSUNG_990,) * 2))
    three = place(Build(board=real.B550_UNIFY_X, drives=(real.SAMSUNG_990,) * 3))
    assert (two.sata_left, three.sata_left) == (6, 4)
    assert [render(lost, "en") for lost in three.lost] == [
        "2 SATA ports are off while something is in M2_3"
    ]
    assert "SATA 포트 2개" in render(three.lost[0], "ko")


def test_a_board_of_which_only_the_name_is_known_gives_no_lanes() -> None:
    placed = place(real.of(real.RTX_5090, board=real.LISTED_ONLY))
    assert not placed.complete
    assert placed.slowest is None
    assert placed.gpus[0].lanes is None


def test_a_seating_is_found_within_a_millisecond() -> None:
    """Searches ask thousands of times; measured as processor time, the best of three."""
    builds = [
        real.of(real.RTX_PRO_6000_MAX_Q, count, board=board, drives=(real.SAMSUNG_990,) * drives)
        for board in (real.WRX90E_SAGE, real.X870E_CARBON, real.Z790_FORMULA)
        for count in (1, 2, 4)
        for drives in (1, 2, 4)
    ]
    times = []
    for _ in range(3):
        seated.cache_clear()
        start = time.process_time()
        for build in builds:
            place(build)
        times.append((time.process_time() - start) / len(builds))
    assert min(times) < 1e-3


def _gpu(id: str) -> GpuRecord:
    return next(gpu for gpu in list_parts("gpu") if gpu.id == id)


def test_a_maker_s_own_card_counts_before_those_of_others() -> None:
    assert openings(_gpu("rtx-3090")) == 3
    assert openings(_gpu("rx-7900-xtx")) == 3  # two and a half


def test_where_the_maker_sells_none_the_thinnest_of_others_counts() -> None:
    """NVIDIA sells no RTX 5070 Ti itself; others sell it two to four slots thick."""
    card = _gpu("rtx-5070-ti")
    assert card.slot_width is None
    assert slot_width(card) == 2


def test_a_laptop_s_gpu_has_no_width() -> None:
    assert openings(_gpu("rtx-4090-laptop")) is None


def test_a_board_for_two_cards_gives_each_eight_lanes_and_one_that_looks_so_does_not() -> None:
    pair = (BuildGpu(_gpu("rtx-5090"), 2),)
    lanes = {
        name: [gpu.lanes for gpu in place(Build(gpus=pair, board=find_board(name))).gpus]
        for name in ("ASUS ProArt X870E-CREATOR WIFI", "MSI MPG X870E CARBON WIFI")
    }
    assert lanes["ASUS ProArt X870E-CREATOR WIFI"] == [8, 8]
    assert lanes["MSI MPG X870E CARBON WIFI"] == [8, 4]
