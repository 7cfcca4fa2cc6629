"""Machines that people run: what is wrong with them is named, and nothing says they cannot be."""

import pytest

from trainwright.catalog import find_board, find_cpu, find_gpu, find_part, list_parts
from trainwright.machine.build import Build, BuildGpu, Use
from trainwright.machine.checks import checks
from trainwright.machine.placement import place

TRAINING = Use(way="data-parallel")


def rig(count, *, watts=None, gpu="rtx-3090", **parts):
    found = {kind: find_part(kind, id) for kind, id in parts.items() if isinstance(id, str)}
    cards = (BuildGpu(find_gpu(gpu).record, count, watts),)
    return Build(gpus=cards, **{**parts, **found})


def verdicts(build, rule):
    return {
        check.message.id: check.verdict for check in checks(build, TRAINING) if check.rule == rule
    }


@pytest.mark.parametrize("count", [4, 7])
def test_cards_on_riser_cables_cover_no_slots_of_the_board(count):
    """Open frames with four to seven RTX 3090 on an ASRock Rack ROMED8-2T are common."""
    build = rig(count, board="asrock-rack-romed8-2t", cpu="epyc-7443p", risers=True)
    assert all(gpu.slot for gpu in place(build).gpus)
    assert "error" not in verdicts(build, "P3").values()
    upright = rig(count, board="asrock-rack-romed8-2t", cpu="epyc-7443p")
    assert not all(gpu.slot for gpu in place(upright).gpus)


def test_four_3090_at_280_w_stay_on_with_1600_w():
    """Puget Systems, Quad RTX 3090, 2020: they ran so for days with an EVGA of 1,600 W."""
    board, cpu = "asus-pro-ws-wrx80e-sage-se-wifi", "ryzen-threadripper-pro-3975wx"
    build = rig(4, watts=280, board=board, cpu=cpu, psu="evga-supernova-1600-t2")
    assert not [check for check in checks(build, TRAINING) if check.verdict == "error"]
    assert "error" in verdicts(rig(4, psu="evga-supernova-1600-t2", cpu=cpu), "W3").values()


@pytest.mark.parametrize("span", [3, 4])
def test_bridges_for_the_3090_span_three_and_four_slots(span):
    """Puget Systems, NVLink on RTX 30."""
    build = rig(2, board="asus-pro-ws-wrx80e-sage-se-wifi", bridge_slots=span)
    assert "build.n2.none" not in verdicts(build, "N2")


def test_a_board_whose_bmc_writes_the_firmware_needs_no_older_processor():
    wanting = [board for board in list_parts("board") if board.ipmi or board.bios_flashback]
    assert len(wanting) > 40
    later = find_cpu("epyc-7443p").model_copy(update={"launch": "2026-01-01", "socket": None})
    for board in wanting:
        (verdict,) = verdicts(Build(gpus=(), cpu=later, board=board), "C3").values()
        assert verdict in ("note", "unknown"), board.id


def test_the_known_faults_of_rigs_are_named():
    cpu, four = "ryzen-9-7950x", find_part("memory", "corsair-vengeance-ddr5-6000-cl30-2x48gb")
    board = find_board("asus-proart-x670e-creator-wifi")
    slow = Build(gpus=(), cpu=find_cpu(cpu), board=board, memory=((four, 2),))
    assert "warning" in verdicts(slow, "M4").values()  # AMD: 3600 MT/s with four modules
    other = Build(gpus=(), cpu=find_cpu(cpu), board=find_board("msi-mag-b550-tomahawk"))
    assert verdicts(other, "C1") == {"build.c1.error": "error"}
    behind = rig(2, gpu="rtx-5090", board="gigabyte-x870e-aorus-master", cpu="ryzen-9-9950x")
    assert verdicts(behind, "P7") == {"build.p7.warning": "warning"}  # x4 behind the chipset
    seven = rig(7, board="asrock-rack-romed8-2t", psu="evga-supernova-1600-g2", risers=True)
    assert "error" in verdicts(seven, "W2").values()
    assert "error" in verdicts(seven, "W7").values()  # nine plugs for fourteen sockets


SOUND = {
    "an RTX 4090 with three drives": (
        "rtx-4090", 1, "i9-14900k", "asus-rog-maximus-z790-hero", "seasonic-focus-gx-1000-atx-3.1",
        "antec-c8", "corsair-dominator-titanium-ddr5-6600-cl32-2x32gb",
    ),
    "four modules on AM5": (
        "rtx-4090", 1, "ryzen-9-7950x", "asus-proart-x670e-creator-wifi", "corsair-rm1000x-2024",
        "fractal-design-meshify-2", "corsair-vengeance-ddr5-6000-cl30-2x48gb",
    ),
    "two RTX 5090 on a desktop board": (
        "rtx-5090", 2, "ryzen-9-9950x", "gigabyte-x870e-aorus-master",
        "seasonic-prime-tx-1600-atx-3.1", "fractal-design-meshify-2-xl",
        "corsair-vengeance-ddr5-6000-cl30-2x32gb",
    ),
}  # fmt: skip


@pytest.mark.parametrize("parts", SOUND.values(), ids=SOUND)
def test_a_rig_that_runs_is_not_said_to_be_impossible(parts):
    gpu, count, cpu, board, psu, case, kit = parts
    memory = ((find_part("memory", kit), 2 if gpu == "rtx-4090" else 1),)
    build = rig(count, gpu=gpu, cpu=cpu, board=board, psu=psu, case=case, memory=memory)
    assert not [check for check in checks(build, TRAINING) if check.verdict == "error"]


def remedies(build, *rules):
    found = [one.remedy for one in checks(build, TRAINING) if one.rule in rules and one.remedy]
    return [dict(remedy.values) for remedy in found]


def test_a_rig_beyond_one_supply_is_given_a_power_limit_and_several_supplies():
    """Four 3090 on 1,600 W run at a lower limit; open frames join two supplies by an adapter."""
    board, cpu = "asrock-rack-romed8-2t", "epyc-7443p"
    build = rig(4, board=board, cpu=cpu, psu="evga-supernova-1600-g2", risers=True)
    for values in remedies(build, "W2", "W3", "W6"):
        assert 210 <= values["limit"] < 350
        assert values["number"] * values["each"] >= values["need"]
        assert values["each"] <= 1600
        limited = rig(4, watts=values["limit"], board=board, cpu=cpu, psu="evga-supernova-1600-g2")
        assert "error" not in {**verdicts(limited, "W2"), **verdicts(limited, "W3")}.values()
    seven = rig(7, board=board, cpu=cpu, psu="evga-supernova-1600-g2", risers=True)
    assert all(values["number"] >= 3 for values in remedies(seven, "W2"))


def test_lanes_are_no_fault_where_the_plan_says_that_the_cards_hardly_wait():
    """QLoRA sends 0.16 GiB a step: over x4 the second card still adds 93 %."""
    build = rig(2, gpu="rtx-5090", board="gigabyte-x870e-aorus-master", cpu="ryzen-9-9950x")
    for waits, verdict in ((None, "warning"), (0.03, "note"), (0.5, "warning")):
        use = Use(way="data-parallel", waits=waits)
        said = {one.rule: one.verdict for one in checks(build, use)}
        assert (said["P6"], said["P7"]) == (verdict, verdict), waits


def test_a_supply_that_is_two_hundredths_short_on_paper_is_not_said_to_switch_off():
    """Workstations with four RTX A6000 on 1,600 W were sold: 1,630 W with every part at its most."""
    board, cpu = "asus-pro-ws-wrx80e-sage-se-wifi", "ryzen-threadripper-pro-5975wx"
    build = rig(4, gpu="rtx-a6000", board=board, cpu=cpu, psu="corsair-ax1600i")
    said = [check for check in checks(build, TRAINING) if check.rule in ("W2", "W3")]
    assert {check.verdict for check in said} == {"warning"}


@pytest.mark.parametrize(
    ("cooler", "cpu", "board"),
    [
        ("noctua-nh-u12a", "i7-8700k", "asus-prime-z390-a"),
        ("noctua-nh-u14s-tr4-sp3", "ryzen-threadripper-2990wx", "gigabyte-x399-designare-ex"),
    ],
)
def test_a_cooler_fits_every_socket_with_the_same_holes(cooler, cpu, board):
    """Noctua's list: LGA1151 as LGA1200, TR4 as sTRX4."""
    mount = verdicts(rig(1, cooler=cooler, cpu=cpu, board=board), "G7")
    assert "build.g7.mount" in mount
    assert (
        verdicts(
            rig(
                1,
                cooler="noctua-nh-d15",
                cpu="ryzen-threadripper-7970x",
                board="asus-pro-ws-trx50-sage-wifi",
            ),
            "G7",
        )["build.g7.no-mount"]
        == "error"
    )


def test_an_open_frame_takes_a_larger_board_on_a_tray_of_its_own():
    frame = {"case": "veddha-v3d-8-gpu", "board": "asrock-rack-genoad8x-2t-bcm"}
    assert verdicts(rig(4, cpu="epyc-9354p", **frame), "G6")["build.g6.error"] == "warning"
