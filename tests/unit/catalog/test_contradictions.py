"""Planted contradictions are found, each named by part and key; the shipped parts have none."""

from itertools import product
from pathlib import Path

import pytest

from trainwright.catalog import find_gpu
from trainwright.catalog.check import check, implausible
from trainwright.messages import render

AM5 = "socket: AM5, chipset: B650, form_factor: micro-atx, memory_type: ddr5"
RYZEN = "vendor: AMD, architecture: Zen 5, cores: 8, threads: 16, boost_ghz: 5"
PLANTED = {
    "an M.2 SATA drive with a generation": (
        "storage", "drives", "pcie_generation",
        "interface: sata, form: m.2, capacity_gb: 500, pcie_generation: 4, read_mb_s: 550",
    ),
    "a hard disk on an M.2 card": (
        "storage", "drives", "form", "interface: hdd, form: m.2, capacity_gb: 500, read_mb_s: 200",
    ),
    "faster than SATA": (
        "storage", "drives", "read_mb_s", "interface: sata, capacity_gb: 500, read_mb_s: 3500",
    ),
    "faster than its link": (
        "storage", "drives", "read_mb_s",
        "interface: nvme, pcie_generation: 3, capacity_gb: 500, read_mb_s: 7000",
    ),
    "faster behind its cache": (
        "storage", "drives", "written_after_cache_mb_s",
        "interface: nvme, read_mb_s: 7000, write_mb_s: 1000, written_after_cache_mb_s: 2000",
    ),
    "terabytes for gigabytes": (
        "storage", "drives", "capacity_gb", "interface: nvme, capacity_gb: 2, read_mb_s: 7000",
    ),
    "gigabytes written for terabytes": (
        "storage", "drives", "endurance_tb",
        "interface: nvme, capacity_gb: 1000, endurance_tb: 600000, read_mb_s: 7000",
    ),
    "plugs without watts": (
        "psu", "psus", "connectors.pcie_16", "watts: 1050, connectors: {pcie_16: 3}",
    ),
    "a plug past its rating": (
        "psu", "psus", "connectors.pcie_16_w", "watts: 1500, connectors: {pcie_16_w: 675}",
    ),
    "a plug before its time": (
        "psu", "psus", "connectors.pcie_16_plug",
        "watts: 1500, atx_version: 2.x, connectors: {pcie_16: 1, pcie_16_plug: 12v-2x6}",
    ),
    "registered without ECC": (
        "memory", "memory", "ecc",
        "type: ddr5, module: rdimm, modules: 1, module_gib: 64, mts: 4800, ecc: false",
    ),
    "DDR5 at the pace of DDR4": (
        "memory", "memory", "mts",
        "type: ddr5, module: udimm, modules: 2, module_gib: 16, mts: 3200",
    ),
    "a module as high as a coin": (
        "memory", "memory", "height_mm",
        "type: ddr4, module: udimm, modules: 2, module_gib: 16, mts: 3200, height_mm: 14.9",
    ),
    "a card longer than its case": (
        "case", "cases", "gpu_length_mm", "gpu_length_mm: 600, depth_mm: 450, height_mm: 480",
    ),
    "a case's dimensions in another order": (
        "case", "cases", "cooler_height_mm", "cooler_height_mm: 185, width_mm: 180",
    ),
    "a big board in few openings": ("case", "cases", "slots", "boards: [atx], slots: 4"),
    "an air cooler with a radiator": ("cooler", "coolers", "radiator_mm",
                                      "type: air, radiator_mm: 240"),
    "a radiator of no size": ("cooler", "coolers", "radiator_mm", "type: liquid, radiator_mm: 250"),
    "terabytes of memory on a board": (
        "board", "boards", "memory_max_gib",
        "socket: sTR5, form_factor: eeb, memory_type: ddr5, memory_slots: 8, memory_max_gib: 2",
    ),
    "a conflict with a slot that is not there": (
        "board", "boards", "conflicts.then",
        "socket: AM5, form_factor: atx, memory_type: ddr5, memory_slots: 4,"
        " m2: [{id: M2_1}], conflicts: [{when: M2_1, then: PCIEX16_2, lanes: 0}]",
    ),
    "six modules on AM5": ("board", "boards", "memory_slots", f"{AM5}, memory_slots: 6"),
    "more memory than AM5 takes": (
        "board", "boards", "memory_max_gib", f"{AM5}, memory_slots: 4, memory_max_gib: 512",
    ),
    "eight SATA ports on a B650": (
        "board", "boards", "sata_ports", f"{AM5}, memory_slots: 4, sata_ports: 8",
    ),
    "a chipset's link twice as wide": (
        "board", "boards", "uplink.lanes",
        f"{AM5}, memory_slots: 4, uplink: {{generation: 4, lanes: 8}}",
    ),
    "DDR4 on AM5": ("board", "boards", "memory_type",
                    f"{AM5.replace('ddr5', 'ddr4')}, memory_slots: 4"),
    "a chipset of another socket": ("board", "boards", "socket",
                                    f"{AM5.replace('B650', 'Z790')}, memory_slots: 4"),
    "more lanes than its connector": (
        "board", "boards", "slots.lanes",
        f"{AM5}, memory_slots: 4, slots: [{{id: P1, length: x4, source: chipset, lanes: 8}}]",
    ),
    "more lanes than the processor": (
        "board", "boards", "slot_modes",
        f"{AM5}, memory_slots: 4, slots: [{{id: P1, length: x16, source: cpu, lanes: 16}},"
        " {id: P2, length: x16, source: cpu, lanes: 16}], slot_modes: [{P1: 16, P2: 16}]",
    ),
    "a generation before its time": (
        "board", "boards", "slots.generation",
        "socket: AM4, form_factor: atx, memory_type: ddr4, memory_slots: 4,"
        " slots: [{id: P1, length: x16, source: cpu, generation: 5, lanes: 16}]",
    ),
    "a desktop processor with 64 lanes": (
        "cpu", "cpus", "slot_lanes", f"{RYZEN}, socket: AM5, slot_lanes: 64",
    ),
    "a desktop processor with four channels": (
        "cpu", "cpus", "memory_channels", f"{RYZEN}, socket: AM5, memory_channels: 4",
    ),
    "a processor with another's chipset": (
        "cpu", "cpus", "socket", f"{RYZEN}, socket: AM5, chipsets: [B650, B550]",
    ),
    "a processor with older memory": (
        "cpu", "cpus", "memory_types", f"{RYZEN}, socket: AM5, memory_types: [ddr4, ddr5]",
    ),
    "fewer threads than cores": (
        "cpu", "cpus", "threads",
        "vendor: AMD, architecture: Zen, cores: 8, threads: 4, boost_ghz: 5",
    ),
    "a processor of 51 GHz": ("cpu", "cpus", "boost_ghz", f"{RYZEN}1"),
    "three threads a core": (
        "cpu", "cpus", "threads", RYZEN.replace("threads: 16", "threads: 24"),
    ),
    "more slow cores than cores": (
        "cpu", "cpus", "efficient_cores", f"{RYZEN}, efficient_cores: 12",
    ),
    "slots with more lanes than there are": (
        "cpu", "cpus", "slot_lanes", f"{RYZEN}, slot_lanes: 24, lanes_usable: 20",
    ),
    "a processor before its socket": (
        "cpu", "cpus", "launch", f'{RYZEN}, socket: AM5, launch: "2019-07-07"',
    ),
    "a module of 20 GiB": (
        "memory", "memory", "module_gib",
        "type: ddr5, module: udimm, modules: 2, module_gib: 20, mts: 5600",
    ),
    "memory that answers at once": (
        "memory", "memory", "cas",
        "type: ddr5, module: udimm, modules: 2, module_gib: 16, mts: 8000, cas: 16",
    ),
    "memory at 12 volts": (
        "memory", "memory", "volts",
        "type: ddr5, module: udimm, modules: 2, module_gib: 16, mts: 5600, volts: 12",
    ),
    "writing faster than the link": (
        "storage", "drives", "write_mb_s", "interface: sata, read_mb_s: 550, write_mb_s: 3000",
    ),
    "requests beyond the rate": (
        "storage", "drives", "random_read_kiops",
        "interface: nvme, capacity_gb: 500, read_mb_s: 3500, random_read_kiops: 3000",
    ),
    "an M.2 drive of no length": (
        "storage", "drives", "length_mm",
        "interface: nvme, form: m.2, length_mm: 85, read_mb_s: 3500",
    ),
    "a hard disk of flash cells": (
        "storage", "drives", "nand", "interface: hdd, nand: qlc, capacity_gb: 8000, read_mb_s: 250",
    ),
    "a supply of 12 kW": ("psu", "psus", "watts", "watts: 12000"),
    "a supply in centimetres": ("psu", "psus", "length_mm", "watts: 850, length_mm: 16"),
    "plugs for a rack on a small supply": (
        "psu", "psus", "connectors.pcie_8", "watts: 650, connectors: {pcie_8: 12}",
    ),
    "a case in centimetres": ("case", "cases", "width_mm", "width_mm: 24"),
    "a supply deeper than its case": (
        "case", "cases", "psu_length_mm", "psu_length_mm: 500, depth_mm: 450, height_mm: 460",
    ),
    "a radiator longer than its case": (
        "case", "cases", "radiators_mm", "radiators_mm: [240, 420], depth_mm: 380, height_mm: 390",
    ),
    "an air cooler as high as a case": (
        "cooler", "coolers", "height_mm", "type: air, height_mm: 1540",
    ),
    "a cooler for a rack": ("cooler", "coolers", "rated_w", "type: air, rated_w: 2500"),
    "two slots in one place": (
        "board", "boards", "slots.position",
        f"{AM5}, memory_slots: 4, slots: [{{id: P1, length: x16, position: 2}},"
        " {id: P2, length: x16, position: 2}]",
    ),
    "a small board with three slots": (
        "board", "boards", "slots",
        f"{AM5.replace('micro-atx', 'mini-itx')}, memory_slots: 2, slots: [{{id: P1, length: x16}},"
        " {id: P2, length: x16}, {id: P3, length: x1}]",
    ),
    "an M.2 socket of eight lanes": (
        "board", "boards", "m2.lanes", f"{AM5}, memory_slots: 4, m2: [{{id: M1, lanes: 8}}]",
    ),
    "a two-slot board with the memory of four": (
        "board", "boards", "memory_max_gib", f"{AM5}, memory_slots: 2, memory_max_gib: 256",
    ),
}  # fmt: skip
"""Folder, list, key that the message names, and values."""


def plant(own: Path, folder: str, key: str, values: str, name: str = "Planted") -> None:
    (own / folder).mkdir(parents=True, exist_ok=True)
    entry = f"id: planted, name: {name}, source: mine, confidence: low, {values}"
    (own / folder / "mine.yaml").write_text(f"{key}: [{{{entry}}}]\n", encoding="utf-8")


def test_every_planted_contradiction_is_found(tmp_path: Path) -> None:
    lists: dict[tuple[str, str], list[str]] = {}
    for number, (folder, key, _, values) in enumerate(PLANTED.values()):
        entry = (
            f"id: planted-{number}, name: Planted {number}, source: mine, confidence: low, {values}"
        )
        lists.setdefault((folder, key), []).append(f"{{{entry}}}")
    for (folder, key), entries in lists.items():
        path = tmp_path / "hardware" / folder / f"{key}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{key}: [{', '.join(entries)}]\n", encoding="utf-8")
    found = check()
    assert (found.problems, found.ok) == ((), False)
    said = [(message.values["part"], message.values["key"]) for message in found.implausible]
    fields = [(f"planted-{n}", field) for n, (_, _, field, _) in enumerate(PLANTED.values())]
    assert sorted(said) == sorted(fields)
    for message, language in product(found.implausible, ("en", "ko")):
        start = f"{message.values['part']}: {message.values['key']}"
        assert render(message, language).startswith(start)


NAMED = {
    "Planted 2TB": ("storage", "drives", "interface: nvme, capacity_gb: 1000, read_mb_s: 5000"),
    "Planted 850W": ("psu", "psus", "watts: 750"),
    "Planted 32GB (2x16GB)": (
        "memory", "memory", "type: ddr5, module: udimm, modules: 1, module_gib: 32, mts: 5600",
    ),
    "Planted Registered": (
        "memory", "memory", "type: ddr5, module: udimm, modules: 1, module_gib: 32, mts: 5600",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "planted"), NAMED.items(), ids=NAMED)
def test_a_value_that_its_name_contradicts_is_found(
    tmp_path: Path, name: str, planted: tuple[str, str, str]
) -> None:
    plant(tmp_path / "hardware", *planted, name=name)
    [message] = check().implausible
    assert name in render(message, "en")


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("bandwidth_gb_s", {"bandwidth_bytes_per_s": 2}),
        ("tflops.fp32", {"boost_hz": 2}),
        ("cores", {"sm_count": 0.3}),
        ("tdp_w", {"tdp_w": 3}),
    ],
)
def test_physics_refuses_a_value_of_a_card(key: str, change: dict[str, float]) -> None:
    card = find_gpu("rtx-4090").record
    assert list(implausible(card)) == []
    ((name, factor),) = change.items()
    fact = getattr(card, name)
    wrong = fact.model_copy(update={"value": fact.value * factor})
    found = list(implausible(card.model_copy(update={name: wrong})))
    assert key in {message.values["key"] for message in found}


def test_the_shipped_parts_contradict_nothing_and_are_counted_by_kind() -> None:
    found = check()
    assert [render(message, "en") for message in (*found.problems, *found.implausible)] == []
    assert set(found.by_kind) == {
        "gpu", "cpu", "board", "memory", "storage", "psu", "case", "cooler",
    }  # fmt: skip
    for kind, counted in found.by_kind.items():
        assert counted.values == sum(counted.by_confidence.values()), kind
    assert found.values == sum(counted.values for counted in found.by_kind.values())
