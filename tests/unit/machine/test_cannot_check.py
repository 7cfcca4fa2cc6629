"""What nobody says is named, and never passes for right."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import real_parts as real
from babel.messages.pofile import read_po
from real_parts import of, said

from trainwright.data import resources
from trainwright.machine.build import Build, BuildGpu, Use
from trainwright.machine.checks import RULES, SEVERITY, checks
from trainwright.messages import render

FULL = replace(
    of(
        real.RTX_5090, 2, 400, board=real.X870E_CARBON, cpu=real.R9_9950X, psu=real.HX1500I,
        case=real.DEFINE_7_XL, cooler=real.DARK_ROCK_PRO_5,
        drives=(real.SAMSUNG_990, real.EXOS_X18, real.QVO_870),
    ),
    memory=((real.GSKILL_64, 1),),
)  # fmt: skip
"""A machine of which everything is known."""


def without(part: str, **fields: Any) -> Build:
    """Return the machine with unknown fields of one part."""
    if part == "gpus":
        (gpu,) = FULL.gpus
        return replace(FULL, gpus=(BuildGpu(gpu.record.model_copy(update=fields), gpu.count),))
    if part == "memory":
        ((kit, count),) = FULL.memory
        return replace(FULL, memory=((kit.model_copy(update=fields), count),))
    if part == "drives":
        return replace(FULL, drives=(FULL.drives[0].model_copy(update=fields), *FULL.drives[1:]))
    return replace(FULL, **{part: getattr(FULL, part).model_copy(update=fields)})


SIZES = {"length_mm": None, "shortest_mm": None, "longest_mm": None}
PLUGS = real.HX1500I.connectors


@pytest.mark.parametrize(
    ("rule", "build", "missing"),
    [
        ("C1", without("cpu", socket=None), "cpu.socket"),
        ("C2", without("cpu", chipsets=None), "cpu.chipsets"),
        ("C2", without("board", chipset=None), "board.chipset"),
        ("C3", without("board", launch=None), "board.launch"),
        ("P1", without("cpu", slot_lanes=None), "cpu.slot_lanes"),
        ("P2", without("board", lanes_complete=False), "board.conflicts"),
        ("P3", without("board", slots=(), slot_modes=(), lanes_complete=False), "board.slots"),
        ("P4", without("board", slots=(), slot_modes=(), lanes_complete=False), "board.lanes"),
        ("P5", without("board", slots=(), slot_modes=(), lanes_complete=False), "board.lanes"),
        ("P6", without("board", lanes_complete=False), "board.lanes"),
        ("P7", without("board", lanes_complete=False), "board.lanes"),
        ("G1", without("gpus", **SIZES), "gpu.length_mm"),
        ("G1", without("case", gpu_length_mm=None), "case.gpu_length_mm"),
        ("G2", without("case", slots=None), "case.slots"),
        ("G2", without("gpus", slot_width=None), "gpu.slot_width"),
        ("G2", without("board", lanes_complete=False), "board.position"),
        ("G3", without("gpus", cooling=None), "gpu.cooling"),
        ("G3", without("board", lanes_complete=False), "board.position"),
        ("G4", without("gpus", height_mm=None), "gpu.height_mm"),
        ("G4", without("case", cooler_height_mm=None), "case.cooler_height_mm"),
        ("G6", without("case", boards=None), "case.boards"),
        ("G6", without("psu", length_mm=None), "psu.length_mm"),
        ("G6", without("case", psu_length_mm=None), "case.psu_length_mm"),
        ("G7", without("cooler", sockets=None), "cooler.sockets"),
        ("G7", without("cooler", height_mm=None), "cooler.height_mm"),
        ("G7", without("cooler", rated_w=None), "cooler.rated_w"),
        ("G7", without("cpu", max_power_w=None), "cpu.max_power_w"),
        ("W1", without("gpus", tdp_w=None), "gpu.tdp_w"),
        ("W1", without("cpu", max_power_w=None), "cpu.max_power_w"),
        ("W2", without("gpus", tdp_w=None), "gpu.tdp_w"),
        ("W3", without("gpus", tdp_w=None), "gpu.tdp_w"),
        ("W4", without("gpus", tdp_w=None), "gpu.tdp_w"),
        ("W6", without("cpu", max_power_w=None), "cpu.max_power_w"),
        ("W7", without("gpus", plugs=None), "gpu.plugs"),
        ("W7", without("psu", connectors=PLUGS.model_copy(update={"pcie_16": None})),
         "psu.pcie_16"),
        ("W9", without("psu", atx_version=None), "psu.atx_version"),
        ("W10", without("psu", efficiency=None), "psu.efficiency"),
        ("M1", without("board", memory_modules=None), "board.memory_modules"),
        ("M1", without("cpu", memory_modules=None), "cpu.memory_modules"),
        ("M2", without("board", memory_max_gib=None), "board.memory_max_gib"),
        ("M3", without("cpu", memory_channels=None), "cpu.memory_channels"),
        ("M4", without("cpu", memory_mts={}), "cpu.memory_mts"),
        ("M6", without("memory", ecc=None), "memory.ecc"),
        ("S1", without("board", m2=None, lanes_complete=False), "board.m2"),
        ("S2", without("board", lanes_complete=False), "board.conflicts"),
        ("S3", without("board", uplink=None), "board.uplink"),
        ("S4", without("board", sata_ports=None), "board.sata_ports"),
        ("S4", without("case", bays_35=None), "case.bays_35"),
        ("S5", without("drives", dram=None, nand=None), "drive.dram"),
        ("T1", without("gpus", tdp_w=None), "gpu.tdp_w"),
        ("T1", without("case", kind=None), "case.kind"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_missing_field_is_named(rule: str, build: Build, missing: str) -> None:
    unknown = [c for c in checks(build) if c.rule == rule and c.verdict == "unknown"]
    assert any(missing in check.missing for check in unknown)
    for check in unknown:
        assert render(check.message, "en") != check.message.id
        assert "build.field" not in render(check.message, "en")
        assert "build.field" not in render(check.message, "ko")


@pytest.mark.parametrize(
    ("rule", "build", "use", "missing"),
    [
        ("C4", of(real.RTX_4090, cpu=real.TR_7980X.model_copy(update={"memory_channels": None}),
                  board=real.TRX50_SAGE), Use(), "cpu.memory_channels"),
        ("W3", of(real.RTX_5090, cpu=real.R9_9950X,
                  psu=real.RM1000X.model_copy(update={"atx_version": None})),
         Use(), "psu.atx_version"),
        ("W8", of(real.RTX_4090, psu=real.psu("A", 1000, {"pcie_16": 1})), Use(),
         "psu.pcie_16_w"),
        ("S5", Build(drives=(real.SAMSUNG_990.model_copy(update={"endurance_tb": None}),)),
         Use(written_gb_a_day=100), "drive.endurance_tb"),
        ("S6", Build(drives=(real.PM9A3,), board=real.X870E_CARBON), Use(), "board.slimsas"),
        ("T2", of(real.L4.model_copy(update={"cooling": None})), Use(), "gpu.cooling"),
        ("N2", replace(of(real.RTX_3090_TURBO, 2, board=real.LISTED_ONLY), bridge_slots=3),
         Use(), "board.position"),
    ],
    ids=["C4", "W3", "W8", "S5", "S6", "T2", "N2"],
)  # fmt: skip
def test_a_missing_field_of_a_special_case(rule: str, build: Build, use: Use, missing: str) -> None:
    check = said(build, rule, use)
    assert check.verdict == "unknown"
    assert missing in check.missing


def test_of_a_machine_that_is_known_all_rules_say_something() -> None:
    found = checks(FULL)
    assert not [check.rule for check in found if check.verdict == "unknown"]
    assert [check.rule for check in found if check.verdict == "error"] == []


def test_nothing_is_said_of_what_is_not_chosen() -> None:
    assert checks(Build()) == ()
    about = {check.rule for check in checks(of(real.RTX_4090))}
    assert about <= {"W1", "W4", "W6", "W8", "W12", "G5", "T1", "T3"}


def test_a_database_without_slots_answers_nothing_about_lanes() -> None:
    """Most listings have a board's name and socket alone."""
    found = checks(of(real.RTX_5090, 2, board=real.LISTED_ONLY, cpu=real.R9_9950X))
    lanes = {check.rule: check.verdict for check in found if check.rule in ("P3", "P4", "P6")}
    assert lanes == {"P3": "unknown", "P4": "unknown", "P6": "unknown"}


def test_the_gravest_comes_first_and_every_sentence_is_whole() -> None:
    """Every text of every kind of verdict, in both languages, with a source for each finding."""
    builds = [FULL, without("gpus", tdp_w=None), replace(FULL, board=real.WRX90E_SAGE)]
    builds.append(of(real.RTX_3090, 4, psu=real.CX750M, cpu=real.R9_3900X, case=real.RIDGE))
    for build in builds:
        found = checks(build, Use("sharded", written_gb_a_day=500, mig_instances=2))
        order = [SEVERITY.index(check.verdict) for check in found]
        assert order == sorted(order)
        for check in found:
            for message in (check.message, check.title, *([check.remedy] if check.remedy else [])):
                for language in ("en", "ko"):
                    text = render(message, language)
                    assert "build." not in text
                    assert "{" not in text


def titles(language: str) -> set[str]:
    with resources("i18n", language, "build.po").open("rb") as file:
        return {str(m.id) for m in read_po(file) if str(m.id).startswith("build.title.")}


def test_every_rule_of_the_table_has_a_title() -> None:
    rules: list[Callable[..., Any]] = list(RULES)
    named = {rule.__doc__ or "" for rule in rules}
    assert all(doc[0] in "CPGWMSTNX" for doc in named)
    assert len(titles("en")) >= len(rules)
    assert titles("en") == titles("ko")
