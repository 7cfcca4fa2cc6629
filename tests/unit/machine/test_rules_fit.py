"""G: what rules say of cards, boards and coolers in cases."""

from dataclasses import replace
from typing import Any

import real_parts as real
from real_parts import of, said, silent

from trainwright.machine.build import Build
from trainwright.messages import render

CARBON: dict[str, Any] = {"board": real.X870E_CARBON, "cpu": real.R9_9950X}
WRX90: dict[str, Any] = {"board": real.WRX90E_SAGE, "cpu": real.TR_PRO_7975WX}


def test_g1_a_card_of_any_maker_fits_the_torrent() -> None:
    """Fractal Design: 461 mm; the longest of 45 RTX 5090 is 370 mm (BuildCores OpenDB)."""
    assert said(of(real.RTX_5090, case=real.TORRENT), "G1").verdict == "ok"


def test_g1_the_card_decides_in_the_north() -> None:
    """Fractal Design: 355 mm; RTX 5090 are 246 to 370 mm long."""
    check = said(of(real.RTX_5090, case=real.NORTH), "G1")
    assert check.verdict == "warning"
    assert "355" in render(check.remedy, "en") if check.remedy else False


def test_g1_a_radiator_in_front_takes_its_room() -> None:
    """Fractal Design, Torrent: 461 mm, 423 mm with a front radiator; a card of 420 mm fits bare."""
    long = real.RTX_5090.model_copy(update={"longest_mm": real.fact(420)})
    assert said(of(long, case=real.TORRENT), "G1").verdict == "ok"
    liquid = of(long, case=real.TORRENT, cooler=real.FREEZER_360)
    assert said(liquid, "G1").verdict == "warning"


def test_g1_too_long_for_any_maker_is_an_error() -> None:
    """NVIDIA, RTX A6000: 267 mm; a case for 210 mm (Silverstone SG13: 270 mm is its limit)."""
    small = real.RIDGE.model_copy(update={"gpu_length_mm": 210.0, "name": "Small case"})
    check = said(of(real.RTX_A6000, case=small), "G1")
    assert check.verdict == "error"
    assert check.values["length_mm"] == 267


def test_g1_next_to_no_room_is_a_warning() -> None:
    """Fractal Design, Ridge: 335 mm; a card of 330 mm leaves 5."""
    close = real.RTX_A6000.model_copy(update={"length_mm": real.fact(330)})
    check = said(of(close, case=real.RIDGE), "G1")
    assert (check.verdict, check.values["margin_mm"]) == ("warning", 5)


def test_g2_three_thick_cards_want_nine_openings() -> None:
    """ATX, openings every 20.32 mm: the third card of three slots ends in the ninth."""
    low = of(real.RTX_3090, 3, case=real.TORRENT, **WRX90)
    check = said(low, "G2")
    assert check.verdict == "error"
    assert said(replace(low, case=real.DEFINE_7_XL), "G2").verdict != "error"


def test_g2_four_blower_cards_of_two_slots_want_eight() -> None:
    """Lambda and Puget build four two-slot cards into cases with eight openings or more."""
    four = of(real.RTX_A6000, 4, **WRX90)
    assert said(replace(four, case=real.DEFINE_7_XL), "G2").verdict == "ok"
    check = said(replace(four, case=real.TORRENT), "G2")
    assert (check.verdict, check.values["covered"]) == ("error", 8)


def test_g2_thicker_cards_of_other_makers_are_warned_of() -> None:
    """BuildCores OpenDB: RTX 5090 of 2 to 4 slots; two at openings 2 and 5 leave room for three."""
    check = said(of(real.RTX_5090, 2, case=real.TORRENT, **CARBON), "G2")
    assert check.verdict == "warning"
    assert check.remedy is not None
    assert "2" in render(check.remedy, "en")


def test_g3_two_open_cards_side_by_side() -> None:
    """Lambda, 2020: no more than two RTX 3090 with open coolers."""
    two = of(real.RTX_3090, 2, board=real.X870E_CARBON, cpu=real.R9_9950X)
    assert said(two, "G3").verdict == "warning"
    three = of(real.RTX_3090, 3, case=real.DEFINE_7_XL, **WRX90)
    assert said(three, "G3").verdict == "error"


def test_g3_blowers_may_touch() -> None:
    """Puget Systems, 2020: four RTX 3090 TURBO side by side, 'surprisingly' cool."""
    four = of(real.RTX_3090_TURBO, 4, **WRX90)
    assert said(four, "G3").verdict == "ok"


def test_g3_one_free_opening_is_air() -> None:
    """MSI, X870E CARBON: cards of two slots at openings 2 and 5 leave one free."""
    assert said(of(real.RTX_5090, 2, **CARBON), "G3").verdict == "ok"


def test_g4_a_16_pin_plug_wants_35_mm() -> None:
    """CableMod: 35 mm straight; 137 + 35 mm beside an RTX 4090 FE. Fractal Design: 170 mm for
    coolers in the North, 188 mm in the Torrent."""
    check = said(of(real.RTX_4090, case=real.NORTH), "G4")
    assert (check.verdict, check.values["need_mm"]) == ("warning", 172)
    assert said(of(real.RTX_4090, case=real.TORRENT), "G4").verdict == "ok"
    assert silent(of(real.RTX_3090_TURBO, case=real.NORTH), "G4")


def test_g5_the_spread_of_makers_is_shown() -> None:
    """BuildCores OpenDB: 61 RTX 4090 of 203 to 360 mm."""
    check = said(of(real.RTX_4090), "G5")
    assert (check.values["shortest_mm"], check.values["longest_mm"]) == (203, 360)
    assert silent(of(real.RTX_A6000), "G5")


def test_g6_an_eeb_board_wants_an_eeb_case() -> None:
    """ASUS, Pro WS WRX90E-SAGE SE is SSI EEB; the North takes ATX, the Define 7 XL EEB."""
    assert said(Build(board=real.WRX90E_SAGE, case=real.NORTH), "G6").verdict == "error"
    assert said(Build(board=real.WRX90E_SAGE, case=real.DEFINE_7_XL), "G6").verdict == "ok"


def test_g6_an_atx_supply_does_not_fit_an_sfx_case() -> None:
    """Fractal Design, Ridge: SFX and SFX-L; Corsair RM1000x: ATX."""
    check = said(Build(psu=real.RM1000X, case=real.RIDGE), "G6")
    assert check.verdict == "error"
    assert "SFX" in render(check.remedy, "ko") if check.remedy else False


def test_g6_a_long_supply_wants_room() -> None:
    """EVGA 1600 P2: 220 mm; Fractal Design, Torrent: 230 mm."""
    assert said(Build(psu=real.EVGA_1600_P2, case=real.TORRENT), "G6").verdict == "ok"
    short = real.TORRENT.model_copy(update={"psu_length_mm": 200.0})
    assert said(Build(psu=real.EVGA_1600_P2, case=short), "G6").verdict == "error"


def test_g7_threadrippers_want_a_mount_of_their_own() -> None:
    """Noctua: the NH-D15 has no mount for sTR5, the NH-U14S TR5-SP6 has."""
    assert said(Build(board=real.TRX50_SAGE, cooler=real.NH_D15), "G7").verdict == "error"
    check = said(Build(board=real.TRX50_SAGE, cooler=real.NH_U14S_TR5), "G7")
    assert check.verdict == "ok"


def test_g7_sockets_are_the_same_with_and_without_a_space() -> None:
    """Noctua writes LGA 1700, Intel LGA1700."""
    assert said(Build(board=real.Z790_FORMULA, cooler=real.NH_D15), "G7").verdict == "ok"


def test_g7_a_tower_cooler_does_not_fit_a_flat_case() -> None:
    """Noctua, NH-D15: 165 mm; Fractal Design, Ridge: 70 mm, North: 170 mm."""
    assert said(Build(cooler=real.NH_D15, case=real.RIDGE), "G7").verdict == "error"
    assert said(Build(cooler=real.NH_D15, case=real.NORTH), "G7").verdict == "ok"


def test_g7_a_radiator_wants_its_mount() -> None:
    """ARCTIC, Liquid Freezer III 360; Fractal Design, Ridge: 120 mm, Torrent: to 420 mm."""
    assert said(Build(cooler=real.FREEZER_360, case=real.RIDGE), "G7").verdict == "error"
    assert said(Build(cooler=real.FREEZER_360, case=real.TORRENT), "G7").verdict == "ok"


def test_g7_a_small_cooler_under_a_hot_processor() -> None:
    """be quiet!: Pure Rock 2 is for 150 W, Dark Rock Pro 5 for 270 W; Intel: 253 W."""
    assert said(Build(cpu=real.I9_14900K, cooler=real.PURE_ROCK_2), "G7").verdict == "warning"
    assert said(Build(cpu=real.I9_14900K, cooler=real.DARK_ROCK_PRO_5), "G7").verdict == "ok"


def test_g7_a_flat_cooler_of_no_rating_does_not_carry_a_hot_processor() -> None:
    """Noctua gives the NH-L9i (37 mm) no watts; Intel: the i9-14900K draws 253 W, the 12400 117."""
    flat = real.PURE_ROCK_2.model_copy(update={"rated_w": None, "height_mm": 37.0})
    assert said(Build(cpu=real.I9_14900K, cooler=flat), "G7").verdict == "warning"
    cool = real.I9_14900K.model_copy(update={"max_power_w": 117.0})
    assert said(Build(cpu=cool, cooler=flat), "G7").verdict == "unknown"
    tower = flat.model_copy(update={"height_mm": 158.0})
    assert said(Build(cpu=real.I9_14900K, cooler=tower), "G7").verdict == "unknown"


def test_g8_risers_of_an_open_frame() -> None:
    """mov-axbx, WOPR: PCIe 4.0 over risers failed until the cables were rated for it."""
    frame = replace(of(real.RTX_4090, 4, **WRX90), risers=True)
    assert said(frame, "G8").verdict == "warning"
    assert silent(of(real.RTX_4090, **CARBON), "G8")
