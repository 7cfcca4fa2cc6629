"""Machines that people run: what is wrong with them is named, and nothing says they cannot be."""

import pytest

from trainwright.catalog import find_board, find_cpu, find_gpu, find_part, list_parts
from trainwright.machine.build import Build, BuildGpu, Use
from trainwright.machine.checks import checks
from trainwright.machine.placement import place

TRAINING = Use(way="data-parallel")


def rig(count, *, watts=None, gpu="rtx-3090", **parts):
    named = {kind: id for kind, id in parts.items() if isinstance(id, str) and kind != "circuit"}
    found = {kind: find_part(kind, id) for kind, id in named.items()}
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
    """Workstations with four RTX A6000 on 1,600 W were sold: 1,630 W, all parts at their most."""
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


AM5 = {"cpu": "ryzen-9-9950x", "board": "asus-proart-x870e-creator-wifi"}
DDR5, DDR4 = (
    "corsair-vengeance-ddr5-6000-cl30-2x32gb",
    "corsair-vengeance-lpx-ddr4-3200-cl16-2x16gb",
)
RDIMM = "samsung-ddr5-4800-ecc-rdimm-32gb-m321r4ga3bb6-cqk"
ROMED8 = {"cpu": "epyc-7443p", "board": "asrock-rack-romed8-2t"}
TRX50 = {"cpu": "ryzen-threadripper-7970x", "board": "asus-pro-ws-trx50-sage-wifi"}
PLANTED = {
    "the second card on two lanes": (
        "P6", "warning", "rtx-4090", 2, {"cpu": "ryzen-9-7950x",
        "board": "msi-mag-b650-tomahawk-wifi"}, (DDR5, 1), (),
    ),
    "more cards than slots": ("P3", "error", "rtx-a4000", 4, AM5, (DDR5, 1), ()),
    "thick cards next to one another": ("G3", "warning", "rtx-4090", 2, AM5, (DDR5, 1), ()),
    "twelve openings for nine": (
        "G2", "error", "rtx-3090", 4, {**ROMED8, "case": "fractal-design-define-7-xl"}, None, (),
    ),
    "a card too long for its case": (
        "G1", "warning", "rtx-5090", 1, {**AM5, "case": "fractal-design-north"}, (DDR5, 1), (),
    ),
    "a tower too high": (
        "G7", "error", "rtx-4070", 1, {"case": "fractal-design-terra", "cooler": "noctua-nh-d15"},
        None, (),
    ),
    "a cooler without the mount": (
        "G7", "error", "rtx-4090", 1, {**TRX50, "cooler": "noctua-nh-d15"}, None, (),
    ),
    "a cooler too weak": (
        "G7", "warning", "rtx-4070", 1, {"cpu": "i9-14900k", "board": "asus-prime-z790-p-wifi",
        "cooler": "id-cooling-se-214-xt"}, (DDR5, 1), (),
    ),
    "ATX in a micro-ATX case": (
        "G6", "error", "rtx-4070", 1, {**AM5, "case": "asus-prime-ap201"}, (DDR5, 1), (),
    ),
    "an ATX supply for SFX": (
        "G6", "error", "rtx-4070", 1, {"psu": "corsair-rm850x-2024",
        "case": "fractal-design-terra"}, None, (),
    ),
    "850 W of 2021 for an RTX 5090": (
        "W3", "error", "rtx-5090", 1, {"cpu": "i9-14900k", "psu": "corsair-rm850x-2021"}, None, (),
    ),
    "an adapter for an RTX 5090": (
        "W7", "warning", "rtx-5090", 1, {**AM5, "psu": "evga-supernova-1600-g2"}, None, (),
    ),
    "a supply for 200 V on 120 V": (
        "W11", "error", "rtx-4090", 2, {**TRX50, "psu": "corsair-ws3000",
        "circuit": "us-120v-20a"}, None, (),
    ),
    "two RTX 5090 on 15 A": (
        "W11", "warning", "rtx-5090", 2, {**AM5, "psu": "seasonic-prime-tx-1600-atx-3.1",
        "circuit": "us-120v-15a"}, None, (),
    ),
    "DDR4 in a DDR5 board": ("M1", "error", "rtx-4090", 1, AM5, (DDR4, 1), ()),
    "registered modules on AM5": ("M1", "error", "rtx-4090", 1, AM5, (RDIMM, 4), ()),
    "plain modules in a server": ("M1", "error", "rtx-4090", 1, ROMED8, (DDR4, 4), ()),
    "six modules in four slots": ("M2", "error", "rtx-4090", 1, AM5, (DDR5, 3), ()),
    "four modules of two ranks": ("M4", "warning", "rtx-4090", 1, AM5, (DDR5, 2), ()),
    "one module for two channels": (
        "M3", "warning", "rtx-4090", 1, AM5, ("adata-ddr5-5600-cl46-1x48gb", 1), (),
    ),
    "another socket": (
        "C1", "error", "rtx-4090", 1, {**AM5, "cpu": "i9-14900k"}, (DDR5, 1), (),
    ),
    "four drives in two sockets": (
        "S1", "error", "rtx-3090", 1, {"cpu": "ryzen-9-5950x", "board": "msi-mag-b550-tomahawk"},
        (DDR4, 1), ("samsung-980-pro-2tb",) * 4,
    ),
    "six SATA drives for four ports": (
        "S4", "error", "rtx-3090", 1, {"cpu": "ryzen-7-7700", "board": "gigabyte-b650m-ds3h"},
        (DDR5, 1), ("samsung-870-evo-4tb",) * 6,
    ),
    "a bridge for cards without NVLink": (
        "N1", "error", "rtx-4090", 2, {**TRX50, "bridge_slots": 3}, None, (),
    ),
    "a card without a fan": ("T2", "warning", "a100-80gb-pcie", 2, ROMED8, None, ()),
    "cables for a PCIe 5.0 card": (
        "G8", "warning", "rtx-5090", 4, {**ROMED8, "risers": True}, None, (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", PLANTED)
def test_the_one_fault_of_a_rig_is_named(fault):
    rule, verdict, gpu, count, parts, kit, drives = PLANTED[fault]
    memory = ((find_part("memory", kit[0]), kit[1]),) if kit else ()
    disks = tuple(find_part("storage", id) for id in drives)
    build = rig(count, gpu=gpu, memory=memory, drives=disks, **parts)
    assert verdict in verdicts(build, rule).values()


RUNS = {
    "four A6000 of blowers": ("rtx-a6000", 4, {"cpu": "ryzen-threadripper-pro-5975wx",
        "board": "asus-pro-ws-wrx80e-sage-se-wifi", "psu": "corsair-ax1600i",
        "case": "fractal-design-define-7-xl", "cooler": "noctua-nh-u14s-tr4-sp3"}),
    "four PRO 6000 Max-Q": ("rtx-pro-6000-max-q", 4, {"cpu": "ryzen-threadripper-pro-9975wx",
        "board": "asus-pro-ws-wrx90e-sage-se", "psu": "seasonic-prime-px-2200",
        "case": "phanteks-enthoo-pro-2-server-edition", "cooler": "noctua-nh-u14s-tr5-sp6",
        "circuit": "kr-220v-16a"}),
    "a small computer": ("rtx-4070", 1, {"cpu": "ryzen-7-7700",
        "board": "asrock-phantom-gaming-b650i-lightning-wifi", "psu": "corsair-sf750-2024",
        "case": "cooler-master-nr200p", "cooler": "noctua-nh-l9a-am5"}),
    "an RTX 5090 on 15 A": ("rtx-5090", 1, {"cpu": "ryzen-7-9800x3d",
        "board": "msi-mag-x870-tomahawk-wifi", "psu": "corsair-hx1200i-2025",
        "case": "fractal-design-torrent", "cooler": "thermalright-phantom-spirit-120-se",
        "circuit": "us-120v-15a"}),
    "a computer of 2017": ("gtx-1080-ti", 1, {"cpu": "i7-8700k", "board": "asus-prime-z390-a",
        "psu": "corsair-rm750x-2024", "case": "fractal-design-define-7",
        "cooler": "noctua-nh-u12a"}),
    "three 3090 in an open frame": ("rtx-3090", 3, {**ROMED8, "psu": "evga-supernova-1600-t2",
        "case": "veddha-v3d-8-gpu", "cooler": "arctic-freezer-4u-m", "risers": True,
        "watts": 280, "circuit": "us-120v-20a"}),
    "a computer of 2020": ("rtx-2070-super", 1, {"cpu": "ryzen-7-3700x",
        "board": "msi-b450-tomahawk-max", "psu": "corsair-rm750x-2024",
        "case": "nzxt-h5-flow-2024", "cooler": "amd-wraith-prism"}),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNS)
def test_rigs_that_people_run_have_no_error(name):
    gpu, count, parts = RUNS[name]
    said = checks(rig(count, gpu=gpu, **parts), TRAINING)
    assert not [(check.rule, check.message) for check in said if check.verdict == "error"]
