"""C, M and S: processors, memory and drives on their boards."""

from dataclasses import replace

import pytest
import real_parts as real
from real_parts import of, said, silent

from trainwright.machine.build import Build, Use
from trainwright.machine.checks import checks
from trainwright.messages import render


def test_c1_am5_does_not_fit_am4() -> None:
    """AMD: Ryzen 9 9950X is AM5; MSI: the MEG X570 UNIFY is AM4."""
    check = said(Build(cpu=real.R9_9950X, board=real.X570_UNIFY), "C1")
    assert check.verdict == "error"
    assert "AM5" in render(check.remedy, "en") if check.remedy else False
    assert said(Build(cpu=real.R9_9950X, board=real.X870E_CARBON), "C1").verdict == "ok"


def test_c2_a_chipset_that_the_processor_does_not_know() -> None:
    """AMD: Ryzen 3000 was never enabled on A320 by all makers; X370 is not in the list."""
    old = real.B450_A_PRO.model_copy(update={"chipset": "X370", "name": "X370 board"})
    assert said(Build(cpu=real.R9_3900X, board=old), "C2").verdict == "error"
    assert said(Build(cpu=real.R9_3900X, board=real.B450_A_PRO), "C2").verdict == "ok"


def test_c3_a_processor_newer_than_the_board() -> None:
    """MSI: B450-A PRO of 2018, without Flash BIOS; AMD: Ryzen 9 3900X of 2019. The X570 UNIFY
    came after it."""
    check = said(Build(cpu=real.R9_3900X, board=real.B450_A_PRO), "C3")
    assert check.verdict == "warning"
    flash = real.B450_A_PRO.model_copy(update={"bios_flashback": True})
    assert said(Build(cpu=real.R9_3900X, board=flash), "C3").verdict == "note"
    assert said(Build(cpu=real.R9_3900X, board=real.X570_UNIFY), "C3").verdict == "ok"


def test_c4_a_threadripper_that_is_no_pro() -> None:
    """AMD: WRX90 works with Threadripper PRO alone; TRX50 takes both."""
    assert said(Build(cpu=real.TR_7980X, board=real.WRX90E_SAGE), "C4").verdict == "error"
    assert said(Build(cpu=real.TR_7980X, board=real.TRX50_SAGE), "C4").verdict == "ok"


def test_c4_a_pro_on_four_memory_slots() -> None:
    """ASUS, TRX50-SAGE: four slots; AMD: eight channels of a Threadripper PRO."""
    assert said(Build(cpu=real.TR_PRO_7975WX, board=real.TRX50_SAGE), "C4").verdict == "warning"
    assert said(Build(cpu=real.TR_PRO_7975WX, board=real.WRX90E_SAGE), "C4").verdict == "ok"


def test_c5_four_cores_for_each_gpu() -> None:
    """Puget Systems: at least 4 cores a GPU, 16 for a workstation with several."""
    assert said(of(real.RTX_4090, 3, cpu=real.R7_8700G), "C5").verdict == "warning"
    assert said(of(real.RTX_4090, 2, cpu=real.R7_8700G), "C5").verdict == "note"
    assert said(of(real.RTX_4090, 4, cpu=real.R9_9950X), "C5").verdict == "ok"


def kits(kit: object, count: int = 1, **parts: object) -> Build:
    return Build(memory=((kit, count),), **parts)  # type: ignore[arg-type]


def test_m1_registered_modules_do_not_fit_am5() -> None:
    """Samsung, M321R4GA3BB6: RDIMM; MSI, X870E CARBON: UDIMM."""
    check = said(kits(real.SAMSUNG_RDIMM, 2, board=real.X870E_CARBON), "M1")
    assert check.verdict == "error"
    assert "UDIMM" in render(check.message, "en")


def test_m1_threadripper_wants_registered_modules() -> None:
    """AMD, Threadripper 7000: RDIMM; G.Skill Trident Z5: UDIMM."""
    assert said(kits(real.GSKILL_64, cpu=real.TR_7980X), "M1").verdict == "error"
    assert said(kits(real.SAMSUNG_RDIMM, 4, cpu=real.TR_7980X), "M1").verdict == "ok"


def test_m1_ddr4_does_not_fit_a_ddr5_board() -> None:
    """ASUS, MAXIMUS Z790 FORMULA: DDR5; the Core i9-14900K takes both."""
    build = kits(real.CRUCIAL_DDR4, 2, board=real.Z790_FORMULA, cpu=real.I9_14900K)
    check = said(build, "M1")
    assert (check.verdict, check.values["part"]) == ("error", real.Z790_FORMULA.name)


def test_m1_kinds_are_not_mixed() -> None:
    """JEDEC: registered beside unbuffered modules."""
    build = Build(memory=((real.GSKILL_64, 1), (real.SAMSUNG_RDIMM, 2)))
    assert said(build, "M1").verdict == "error"


def test_m2_more_modules_than_slots() -> None:
    """MSI, MEG B550 UNIFY-X: two slots."""
    check = said(kits(real.CRUCIAL_DDR4, 4, board=real.B550_UNIFY_X), "M2")
    assert (check.verdict, check.values["slots"]) == ("error", 2)


def test_m2_more_than_the_processor_takes() -> None:
    """AMD, Ryzen 9 9950X: 192 GB; MSI, X870E CARBON: 256 GB."""
    large = real.KINGSTON_48.model_copy(update={"module_gib": 64.0})
    build = kits(large, 4, board=real.X870E_CARBON, cpu=real.R9_9950X)
    check = said(build, "M2")
    assert (check.verdict, check.values["most"]) == ("error", 192)
    assert said(kits(real.KINGSTON_48, 4, cpu=real.R9_9950X), "M2").verdict == "ok"


def test_m3_all_channels() -> None:
    """AMD: two channels of Ryzen, four of Threadripper 7000, eight of EPYC."""
    assert said(kits(real.KINGSTON_48, 1, cpu=real.R9_9950X), "M3").verdict == "warning"
    assert said(kits(real.KINGSTON_48, 2, cpu=real.R9_9950X), "M3").verdict == "ok"
    assert said(kits(real.SAMSUNG_RDIMM, 6, cpu=real.TR_PRO_7975WX), "M3").verdict == "warning"
    mixed = Build(cpu=real.R9_9950X, memory=((real.KINGSTON_48, 1), (real.GSKILL_64, 1)))
    assert said(replace(mixed, memory=(*mixed.memory, (real.KINGSTON_48, 1))), "M3").verdict == (
        "warning"
    )


def test_m4_four_modules_on_am5() -> None:
    """AMD, Ryzen 7000 and 9000: DDR5-3600 with four modules (as TechSpot reports of 2022, too)."""
    check = said(kits(real.GSKILL_64, 2, cpu=real.R9_9950X), "M4")
    assert (check.verdict, check.values["official"]) == ("warning", 3600)


def test_m4_expo_is_an_overclock() -> None:
    """AMD, Ryzen 9 9950X: DDR5-5600 officially; G.Skill: 6000 by profile."""
    assert said(kits(real.GSKILL_64, cpu=real.R9_9950X), "M4").verdict == "note"
    assert said(kits(real.KINGSTON_48, 2, cpu=real.R9_9950X), "M4").verdict == "ok"


@pytest.mark.parametrize(("kits_", "verdict"), [(1, "ok"), (2, "ok")])
def test_m5_as_much_as_the_largest_gpu(kits_: int, verdict: str) -> None:
    """Dettmers: at least the memory of the largest GPU."""
    build = replace(of(real.RTX_5090), memory=((real.GSKILL_64, kits_),))
    assert said(build, "M5").verdict == verdict


def test_m5_32_gib_beside_32_leave_nothing_for_the_system() -> None:
    """NVIDIA, RTX 5090: 32 GB; people buy 32 GB of memory to go with it."""
    half = real.GSKILL_64.model_copy(update={"module_gib": 16.0})
    build = replace(of(real.RTX_5090), memory=((half, 1),))
    assert said(build, "M5").verdict == "warning"
    assert said(replace(of(real.RTX_4090), memory=((half, 1),)), "M5").verdict == "ok"


def test_m5_32_gib_under_a_96_gib_card() -> None:
    """The same guide: 32 GiB beside 96 are too little; 64 beside two of 48 hold one, not both."""
    little = replace(of(real.RTX_PRO_6000_MAX_Q), memory=((real.SAMSUNG_RDIMM, 1),))
    assert said(little, "M5").verdict == "warning"
    some = replace(of(real.RTX_A6000, 2), memory=((real.GSKILL_64, 1),))
    assert said(some, "M5").verdict == "note"


def test_m5_offloading_wants_twice_the_gpus() -> None:
    """Vendors' advice for ZeRO-Offload machines: twice the GPUs' memory."""
    build = replace(of(real.RTX_4090, 2), memory=((real.GSKILL_64, 1),))
    check = said(build, "M5", Use(offloads=True))
    assert (check.verdict, check.values["need"]) == ("warning", 96)


def test_m5_takes_what_a_person_states() -> None:
    assert said(replace(of(real.RTX_5090), stated_memory_gib=16), "M5").verdict == "warning"


def test_m6_ecc_by_platform() -> None:
    """Intel: Core with W680 alone; AMD: Ryzen by board, APUs without PRO not at all."""
    board = real.X570_UNIFY.model_copy(update={"memory_type": "ddr5", "ecc": True})
    assert said(kits(real.KINGSTON_ECC, 2, cpu=real.R9_9950X, board=board), "M6").verdict == "ok"
    z790 = real.Z790_FORMULA.model_copy(update={"ecc": False})
    assert said(kits(real.KINGSTON_ECC, 2, cpu=real.I9_14900K, board=z790), "M6").verdict == "note"
    assert said(kits(real.KINGSTON_ECC, 2, cpu=real.R7_8700G), "M6").verdict == "note"
    assert silent(kits(real.GSKILL_64, cpu=real.R9_9950X), "M6")


def stored(*drives: object, **parts: object) -> Build:
    return Build(drives=drives, **parts)  # type: ignore[arg-type]


def test_s1_a_gen_5_drive_in_a_gen_3_socket() -> None:
    """MSI, B450-A PRO: M2_1 is 3.0 x4. Samsung, 9100 PRO: 14.7 GB/s; links of 3.0 x4 read 3.5."""
    check = said(stored(real.SAMSUNG_9100, board=real.B450_A_PRO), "S1")
    assert check.verdict == "warning"
    assert check.values["capped"] == pytest.approx(3.5, abs=0.25)


def test_s1_drives_at_their_sheets_rate_fit_their_link() -> None:
    """Samsung: 990 PRO 7.45 GB/s on 4.0 x4, 9100 PRO 14.7 GB/s on 5.0 x4."""
    build = stored(real.SAMSUNG_9100, real.SAMSUNG_990, board=real.X870E_CARBON)
    assert said(build, "S1").verdict == "ok"


def test_s1_more_drives_than_sockets() -> None:
    """MSI, B450-A PRO: one M.2 socket."""
    check = said(stored(real.SAMSUNG_990, real.CRUCIAL_P310, board=real.B450_A_PRO), "S1")
    assert check.verdict == "error"


def test_s2_a_drive_that_halves_the_card() -> None:
    """Hardwareluxx, X870E CARBON: M.2_2 makes the card's slot x8."""
    build = of(
        real.RTX_5090, board=real.X870E_CARBON, cpu=real.R9_9950X, drives=(real.SAMSUNG_990,) * 4
    )
    check = said(build, "S2")
    assert check.verdict == "warning"
    assert "M2_2" in render(check.message, "en")
    assert said(replace(build, drives=build.drives[:3]), "S2").verdict == "ok"


def test_s2_a_drive_that_turns_ports_off() -> None:
    """MSI, MEG B550 UNIFY-X: M2_3 turns two SATA ports off."""
    check = said(stored(*(real.SAMSUNG_990,) * 3, board=real.B550_UNIFY_X), "S2")
    assert check.verdict == "note"
    assert "SATA" in render(check.message, "ko")


def test_s3_two_fast_drives_behind_one_uplink() -> None:
    """AMD: AM5's chipset hangs on 4.0 x4, 7.9 GB/s; two 990 PRO read 14.9. Intel: DMI 4.0 x8,
    15.8 GB/s."""
    build = stored(*(real.SAMSUNG_990,) * 3, board=real.STRIX_X870E_E)
    card = of(real.RTX_5090, board=real.STRIX_X870E_E, drives=build.drives)
    check = said(card, "S3")
    assert check.verdict == "warning"
    assert check.values["uplink"] == pytest.approx(7.9, abs=0.05)
    intel = of(
        real.RTX_5090, 2, board=real.Z790_FORMULA, cpu=real.I9_14900K,
        drives=(real.SAMSUNG_990,) * 3,
    )  # fmt: skip
    assert said(intel, "S3").values["uplink"] == pytest.approx(15.8, abs=0.1)
    assert said(intel, "S3").verdict == "ok"


def test_s4_ports_left_and_bays() -> None:
    """MSI, MEG B550 UNIFY-X: six ports, four with M2_3; Fractal Design, Torrent: two bays."""
    disks = (real.EXOS_X18,) * 5
    assert said(stored(*disks, board=real.B550_UNIFY_X), "S4").verdict == "ok"
    full = stored(*disks, *(real.SAMSUNG_990,) * 3, board=real.B550_UNIFY_X)
    check = said(full, "S4")
    assert (check.verdict, check.values["ports"]) == ("error", 4)
    assert said(stored(*disks, case=real.TORRENT), "S4").verdict == "error"
    assert said(stored(*disks, case=real.DEFINE_7_XL), "S4").verdict == "ok"


def test_s5_qlc_and_no_dram() -> None:
    """Crucial, P310: QLC, no DRAM; Samsung, 990 PRO: TLC with DRAM."""
    assert said(stored(real.CRUCIAL_P310), "S5").verdict == "warning"
    assert said(stored(real.SAMSUNG_990), "S5").verdict == "ok"


def test_s5_years_beyond_the_warranty_are_no_promise() -> None:
    """600 TB at 64 GB a day would be 25.7 years; Samsung's warranty ends after five."""
    drive = real.SAMSUNG_990.model_copy(update={"endurance_tb": 600})
    told = [each for each in checks(stored(drive), Use(written_gb_a_day=64)) if each.rule == "S5"]
    (check,) = (each for each in told if "share" in each.values)
    assert "25" not in render(check.message, "en")
    assert check.values["share"] == pytest.approx(64 * 365 * 5 / 600_000)


def test_s5_checkpoints_wear_a_drive_out() -> None:
    """Crucial, P310 2 TB: 440 TBW; at 1 TB of checkpoints a day 1.2 years. PM9A3: 7,008 TBW."""
    use = Use(written_gb_a_day=1000)
    tlc = real.CRUCIAL_P310.model_copy(update={"dram": True, "nand": "tlc"})
    check = said(stored(tlc), "S5", use)
    assert check.verdict == "warning"
    assert check.values["years"] == pytest.approx(1.2, abs=0.01)
    assert said(stored(real.PM9A3), "S5", use).verdict == "ok"


def test_s6_u2_wants_its_connector() -> None:
    """ASRock Rack, ROMED8-2T: two OCuLink; desktop boards have none."""
    assert said(stored(real.PM9A3, board=real.ROMED8_2T), "S6").verdict == "ok"
    desktop = real.X870E_CARBON.model_copy(update={"slimsas": 0})
    assert said(stored(real.PM9A3, board=desktop), "S6").verdict == "error"
