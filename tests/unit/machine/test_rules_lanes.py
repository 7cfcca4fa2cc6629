"""P, N and X: what rules say of lanes, slots, links between cards and instances."""

from dataclasses import replace
from typing import Any

import pytest
import real_parts as real
from real_parts import of, said, silent

from trainwright.machine.build import Use, Way
from trainwright.machine.rules_lanes import lanes_verdict
from trainwright.machine.wiring import gb_s
from trainwright.messages import render

CARBON: dict[str, Any] = {"board": real.X870E_CARBON, "cpu": real.R9_9950X}
UNIFY: dict[str, Any] = {"board": real.X570_UNIFY, "cpu": real.R9_3900X}


def test_p1_two_cards_share_sixteen_lanes() -> None:
    """AMD, Ryzen 9 9950X: 16 lanes for cards; a GeForce RTX 4090 takes 16."""
    one, two = said(of(real.RTX_4090, **CARBON), "P1"), said(of(real.RTX_4090, 2, **CARBON), "P1")
    assert one.verdict == "ok"
    assert (two.verdict, two.values["wanted"], two.values["lanes"]) == ("note", 32, 16)


def test_p1_cards_wired_with_eight_lanes_do_not_share() -> None:
    """NVIDIA, GeForce RTX 4060: PCIe 4.0 x8."""
    assert said(of(real.RTX_4060, 2, **UNIFY), "P1").verdict == "ok"


def test_p1_an_epyc_has_lanes_for_seven() -> None:
    """AMD, EPYC 7302P: 128 lanes."""
    build = of(real.RTX_A6000, 7, board=real.ROMED8_2T, cpu=real.EPYC_7302P)
    assert said(build, "P1").verdict == "ok"


def test_p2_usb4_that_shares_with_a_socket_is_named() -> None:
    """ComputerBase, X870E: boards give USB4 four lanes of the processor, some switch them with an
    M.2 socket; the CARBON's are its own (Hardwareluxx)."""
    assert said(of(real.RTX_5090, **CARBON), "P2").verdict == "ok"
    shared = real.X870E_CARBON.model_copy(
        update={
            "conflicts": (
                real.X870E_CARBON.conflicts[0].model_copy(
                    update={"when": "usb4", "then": "M2_2", "lanes": 2}
                ),
            )
        }
    )
    check = said(of(real.RTX_5090, board=shared, cpu=real.R9_9950X), "P2")
    assert check.verdict == "note"
    assert "M2_2" in render(check.message, "en")
    assert silent(of(real.RTX_5090, **UNIFY), "P2")


def test_p3_a_long_slot_with_four_lanes_is_called_one() -> None:
    """MSI, B450-A PRO manual p. 29: PCI_E4 is as long as x16, and PCIe 2.0 x4."""
    build = of(real.RTX_3090_TURBO, 2, board=real.B450_A_PRO, cpu=real.R9_3900X)
    check = said(build, "P3")
    assert check.verdict == "warning"
    assert (check.values["slot"], check.values["lanes"]) == ("PCI_E4", 4)
    assert "PCI_E4" in render(check.message, "ko")


def test_p3_a_server_module_fits_no_slot() -> None:
    """NVIDIA, H100 data sheet: SXM5 modules sit on HGX boards."""
    assert said(of(real.H100_SXM, **CARBON), "P3").verdict == "error"


def test_p3_a_third_card_of_three_slots_finds_no_slot() -> None:
    """MSI, X870E CARBON: three long slots at openings 2, 5 and 7; cards of three overlap."""
    build = of(real.RTX_4090, 3, **CARBON)
    check = said(build, "P3")
    assert check.verdict == "error"
    assert check.remedy is not None
    assert silent(build, "P4")
    assert silent(build, "P6")


@pytest.mark.parametrize(
    ("generation", "lanes", "rate"),
    [(3, 16, 15.8), (4, 4, 7.9), (4, 8, 15.8), (4, 16, 31.5), (5, 8, 31.5), (5, 16, 63.0)],
)
def test_p4_links_carry_what_the_standard_says(generation: int, lanes: int, rate: float) -> None:
    """PCI-SIG, as tables of PCIe generations print it: GB/s each way."""
    assert gb_s(generation, lanes) == pytest.approx(rate, abs=0.06)


def test_p4_half_the_link_says_why() -> None:
    """Hardwareluxx, X870E CARBON: x8 for the first card beside a second."""
    check = said(of(real.RTX_4090, 2, **CARBON), "P4")
    assert check.verdict == "note"
    assert said(of(real.RTX_4090, **CARBON), "P4").verdict == "ok"


def test_p5_copies_reach_nine_tenths_of_the_link() -> None:
    """voipmonitor/rtx6kpro wiki: 56 GB/s between two RTX PRO 6000 on PCIe 5.0 x16."""
    build = of(real.RTX_PRO_6000_MAX_Q, 2, board=real.WRX90E_SAGE, cpu=real.TR_PRO_7975WX)
    assert said(build, "P5").values["reached"] == pytest.approx(56, abs=0.5)


def four_on_x399(way: Way) -> str:
    """Five cards: one sits in the PCIe 2.0 x4 slot."""
    single = real.RTX_3090_TURBO.model_copy(update={"slot_width": real.fact(1)})
    build = of(single, 5, board=real.X399_DESIGNARE, cpu=real.TR_1950X)
    return said(build, "P6", Use(way)).verdict


def test_p6_a_card_in_the_slow_slot_halves_the_rate_of_all() -> None:
    """LocalLLaMA, X399 DESIGNARE EX: four RTX 3090 gave 11 tokens/s with one card in the PCIe 2.0
    x4 slot and 24.7 after moving it."""
    assert four_on_x399("sharded") == "error"
    assert four_on_x399("layer-split") == "warning"
    assert four_on_x399("data-parallel") == "warning"


def test_p6_four_cards_at_x8_are_fine_for_data_parallel_training() -> None:
    """Dettmers, A Full Hardware Guide: four GPUs at x8 cost 5 to 10 %; no warning."""
    assert lanes_verdict("data-parallel", gb_s(3, 8)) in ("ok", "note")
    build = of(real.RTX_5090, 2, **UNIFY)
    assert said(build, "P6", Use("data-parallel")).verdict == "ok"


@pytest.mark.parametrize(
    ("way", "generation", "lanes", "verdict"),
    [
        ("single", 4, 8, "ok"),
        ("single", 3, 16, "ok"),
        ("single", 3, 8, "note"),
        ("layer-split", 3, 4, "ok"),
        ("layer-split", 3, 2, "warning"),
        ("sharded", 4, 8, "ok"),
        ("sharded", 5, 4, "ok"),
        ("sharded", 3, 8, "warning"),
        ("sharded", 3, 4, "error"),
    ],
)
def test_p6_thresholds_by_use(way: Way, generation: int, lanes: int, verdict: str) -> None:
    """The policy that P6 states: PCIe 4.0 x8 for one GPU and for shards, 3.0 x4 for layers."""
    assert lanes_verdict(way, gb_s(generation, lanes)) == verdict


def test_p6_shards_over_the_chipset_do_not_work_well() -> None:
    """MSI, MEG X570 UNIFY: the third card hangs on the PCH's 4.0 x4."""
    build = of(real.RTX_3090_TURBO, 3, **UNIFY)
    assert said(build, "P6", Use("sharded")).verdict == "error"


def test_p7_x8_x8_or_the_chipset() -> None:
    """MSI manuals: the X570 UNIFY splits x8/x8, the B450-A PRO has PCIe 2.0 x4 for the second."""
    assert said(of(real.RTX_3090_TURBO, 2, **UNIFY), "P7").verdict == "ok"
    build = of(real.RTX_3090_TURBO, 2, board=real.B450_A_PRO, cpu=real.R9_3900X)
    check = said(build, "P7")
    assert (check.verdict, check.values["slot"]) == ("warning", "PCI_E4")


def test_p7_asks_nothing_of_workstations() -> None:
    """ASUS, Pro WS WRX90E-SAGE SE: every slot is the processor's."""
    assert silent(of(real.RTX_A6000, 2, board=real.WRX90E_SAGE, cpu=real.TR_PRO_7975WX), "P7")


def test_p8_geforce_cards_do_not_read_each_others_memory() -> None:
    """NVIDIA/nccl-tests issue 117: no P2P between RTX 4090; RTX A6000 has it."""
    geforce = of(real.RTX_4090, 2, **UNIFY)
    assert said(geforce, "P8", Use("sharded")).verdict == "warning"
    assert said(geforce, "P8", Use("inference")).verdict == "note"
    assert said(of(real.RTX_A6000, 2, **UNIFY), "P8").verdict == "ok"


def test_p9_names_the_command_and_what_it_should_print() -> None:
    """NVIDIA, nvidia-smi: pcie.link.gen.current and pcie.link.width.current."""
    check = said(of(real.RTX_4090, 2, **UNIFY), "P9")
    assert "pcie.link.width.current" in render(check.message, "en")
    assert (check.values["generation"], check.values["lanes"]) == (4, 8)


def test_n1_nvlink_of_30_but_not_of_40_and_50() -> None:
    """NVIDIA: GA102 whitepaper, 112.5 GB/s on RTX 3090; none on GeForce 40 and 50."""
    bridged = replace(of(real.RTX_3090_TURBO, 2, **UNIFY), bridge_slots=4)
    assert said(bridged, "N1").verdict == "ok"
    assert said(of(real.RTX_3090_TURBO, 2, **UNIFY), "N1").verdict == "note"
    assert said(replace(of(real.RTX_4090, 2, **UNIFY), bridge_slots=4), "N1").verdict == "error"


def test_n2_bridges_span_three_or_four_slots() -> None:
    """Puget Systems: NVLink bridges for the RTX 3090 are for cards 3 or 4 slots apart. Those of an
    ATX board are 3; on the ROMED8-2T, whose slots are next to each other, cards go where the
    bridge wants them."""
    three = of(real.RTX_3090_TURBO, 2, **UNIFY)
    assert said(replace(three, bridge_slots=3), "N2").verdict == "ok"
    assert said(replace(three, bridge_slots=4), "N2").verdict == "error"
    epyc = of(real.RTX_3090_TURBO, 2, board=real.ROMED8_2T, cpu=real.EPYC_7302P)
    assert said(replace(epyc, bridge_slots=4), "N2").verdict == "ok"
    known = real.RTX_3090_TURBO.model_copy(update={"nvlink_bridge_slots": (3, 4)})
    assert said(replace(of(known, 2, **UNIFY), bridge_slots=2), "N2").verdict == "error"


def test_n3_says_where_a_bridge_pays() -> None:
    """bestllmfor: 2 to 6 % for inference."""
    build = of(real.RTX_3090_TURBO, 2, **UNIFY)
    assert "2 to 6 %" in render(said(build, "N3", Use("inference")).message, "en")
    assert silent(of(real.RTX_4090, 2, **UNIFY), "N3")


@pytest.mark.parametrize(
    ("card", "wanted", "verdict"),
    [
        (real.A100_PCIE, 7, "ok"),
        (real.A100_PCIE, 8, "error"),
        (real.RTX_PRO_6000_MAX_Q, 4, "ok"),
        (real.RTX_PRO_6000_MAX_Q, 7, "error"),
        (real.RTX_4090, 2, "error"),
    ],
)
def test_x1_instances_as_the_mig_guide_lists_them(card: object, wanted: int, verdict: str) -> None:
    """NVIDIA, MIG user guide: 7 of an A100, 4 of an RTX PRO 6000, none of GeForce."""
    build = of(card, **CARBON)  # type: ignore[arg-type]
    assert said(build, "X1", Use(mig_instances=wanted)).verdict == verdict


def test_x1_mig_needs_linux() -> None:
    """NVIDIA, MIG user guide: supported on Linux."""
    use = Use(system="windows", mig_instances=2)
    assert said(of(real.A100_PCIE, **CARBON), "X1", use).verdict == "error"
