"""Real parts as their makers and reviewers describe them; rules are tried on these.

Made by hand and not taken from the catalog, so that a slip in its files and a slip in a rule
cannot hide each other. Where no page says at which of a case's openings a slot is, the usual
places are assumed: 2, 5 and 7 of an ATX board's long slots.
"""

from typing import Any

from trainwright.catalog import (
    BoardRecord,
    CaseRecord,
    CoolerRecord,
    CpuRecord,
    DriveRecord,
    Fact,
    GpuRecord,
    MemoryRecord,
    PsuRecord,
)
from trainwright.catalog.part_records import PowerConnectors
from trainwright.machine.build import Build, BuildGpu, Check, Use
from trainwright.machine.checks import checks

GIB = 1 << 30


def said(build: Build, rule: str, use: Use | None = None) -> Check:
    """Return the gravest thing that a rule says of a build."""
    return next(check for check in checks(build, use) if check.rule == rule)


def silent(build: Build, rule: str) -> bool:
    """Return whether a rule has nothing to say of a build."""
    return all(check.rule != rule for check in checks(build))


def part(name: str, **values: Any) -> dict[str, Any]:
    id = "".join(c if c.isalnum() else "-" for c in name.casefold()).strip("-")
    while "--" in id:
        id = id.replace("--", "-")
    return {"id": id, "name": name, "source": "maker", "confidence": "high", **values}


def fact(value: float) -> Fact:
    return Fact(value=value, source="maker", confidence="high")


# --- Cards -----------------------------------------------------------------------------------


def card(name: str, gib: float, watts: float, **values: Any) -> GpuRecord:
    facts = {
        key: fact(values.pop(key))
        for key in ("length_mm", "shortest_mm", "longest_mm", "height_mm", "slot_width",
                    "widest_slots", "nvlink_bytes_per_s")
        if key in values
    }  # fmt: skip
    return GpuRecord(
        id=values.pop("id", part(name)["id"]),
        name=name,
        vendor=values.pop("vendor", "NVIDIA"),
        segment=values.pop("segment", "consumer"),
        architecture=values.pop("architecture", "Ada"),
        memory_bytes=fact(gib * GIB),
        bandwidth_bytes_per_s=fact(1e12),
        tdp_w=fact(watts),
        pcie_generation=values.pop("pcie_generation", 4),
        pcie_lanes=values.pop("pcie_lanes", 16),
        **facts,
        **values,
    )


# Founders Edition: 313 x 138 mm, 3 slots, 350 W, 12-pin (NVIDIA, GeForce RTX 3090 page).
RTX_3090 = card(
    "GeForce RTX 3090", 24, 350, architecture="Ampere", form="card", length_mm=313,
    shortest_mm=252, longest_mm=356, height_mm=138, slot_width=3, widest_slots=4,
    cooling="open-air", plugs={"pcie_12": 1}, nvlink_bytes_per_s=112.5e9,
)  # fmt: skip
# Gigabyte GV-N3090TURBO-24GD: blower, 2 slots, 267 x 111 mm, 2 x 8-pin (Gigabyte, product page).
RTX_3090_TURBO = card(
    "GeForce RTX 3090 Turbo", 24, 350, architecture="Ampere", form="card", length_mm=267,
    height_mm=111, slot_width=2, cooling="blower", plugs={"pcie_8": 2},
    nvlink_bytes_per_s=112.5e9,
)  # fmt: skip
# Founders Edition: 304 x 137 mm, 3 slots, 450 W, one 16-pin (NVIDIA, GeForce RTX 4090 page).
RTX_4090 = card(
    "GeForce RTX 4090", 24, 450, id="rtx-4090", form="card", length_mm=304, shortest_mm=203,
    longest_mm=360, height_mm=137, slot_width=3, widest_slots=4, cooling="open-air",
    plugs={"pcie_16": 1},
)  # fmt: skip
# Founders Edition: 304 x 137 mm, 2 slots, 575 W, one 16-pin, PCIe 5.0 (NVIDIA, RTX 5090 page).
RTX_5090 = card(
    "GeForce RTX 5090", 32, 575, architecture="Blackwell", pcie_generation=5, form="card",
    length_mm=304, shortest_mm=246, longest_mm=370, height_mm=137, slot_width=2, widest_slots=4,
    cooling="open-air", plugs={"pcie_16": 1},
)  # fmt: skip
# 2 slots, 267 mm, 300 W, blower, one 8-pin EPS; NVLink 112.5 GB/s (NVIDIA, RTX A6000 data sheet).
RTX_A6000 = card(
    "RTX A6000", 48, 300, id="rtx-a6000", segment="workstation", architecture="Ampere",
    form="card", length_mm=267, height_mm=111, slot_width=2, cooling="blower",
    plugs={"eps_8": 1}, nvlink_bytes_per_s=112.5e9,
)  # fmt: skip
# 2 slots, 300 W, blower, 16-pin, PCIe 5.0, MIG (NVIDIA, RTX PRO 6000 Max-Q data sheet).
RTX_PRO_6000_MAX_Q = card(
    "RTX PRO 6000 Blackwell Max-Q", 96, 300, id="rtx-pro-6000-max-q", segment="workstation",
    architecture="Blackwell", pcie_generation=5, form="card", length_mm=267, height_mm=111,
    slot_width=2, cooling="blower", plugs={"pcie_16": 1}, mig=True,
)  # fmt: skip
# 1 slot, 169 mm, 72 W from the slot, passive (NVIDIA, L4 product brief).
L4 = card(
    "L4", 24, 72, id="l4", segment="datacenter", form="card", length_mm=169, slot_width=1,
    cooling="passive", plugs={},
)  # fmt: skip
# 1 slot, 70 W, passive, PCIe 3.0 (NVIDIA, T4 data sheet).
T4 = card(
    "T4", 16, 70, id="t4", segment="datacenter", architecture="Turing", pcie_generation=3,
    form="card", length_mm=168, slot_width=1, cooling="passive", plugs={},
)  # fmt: skip
H100_SXM = card(
    "H100 SXM5", 80, 700, id="h100-80gb-sxm", segment="datacenter", architecture="Hopper",
    pcie_generation=5, form="module", nvlink_bytes_per_s=900e9, mig=True,
)  # fmt: skip
A100_PCIE = card(
    "A100 PCIe 80GB", 80, 300, id="a100-80gb-pcie", segment="datacenter", architecture="Ampere",
    form="card", length_mm=267, slot_width=2, cooling="passive", plugs={"eps_8": 1}, mig=True,
    nvlink_bytes_per_s=600e9,
)  # fmt: skip
# 8 lanes wired on an x16 edge, 115 W (NVIDIA, GeForce RTX 4060 page).
RTX_4060 = card(
    "GeForce RTX 4060", 8, 115, pcie_lanes=8, form="card", length_mm=240, slot_width=2,
    cooling="open-air", plugs={"pcie_8": 1},
)  # fmt: skip


# --- Processors ------------------------------------------------------------------------------


def cpu(name: str, **values: Any) -> CpuRecord:
    vendor = "Intel" if name.startswith(("Core", "Xeon", "Intel")) else "AMD"
    usual = {"vendor": vendor, "architecture": "Zen", "boost_ghz": 5.0}
    return CpuRecord.model_validate(part(name, **usual) | values)


# AMD, product pages of Ryzen 9 9950X, 7 8700G, 7 5800X, 9 3900X.
R9_9950X = cpu(
    "Ryzen 9 9950X", cores=16, threads=32, socket="AM5", launch="2024-08-15", max_power_w=230,
    chipsets=("A620", "B650", "B650E", "X670", "X670E", "B840", "B850", "X870", "X870E"),
    needs_bios_update=("A620", "B650", "B650E", "X670", "X670E"), pcie_generation=5,
    slot_lanes=16, lanes_usable=24, memory_types=("ddr5",), memory_modules=("udimm",),
    memory_channels=2, memory_max_gib=192, memory_mts={"ddr5": 5600}, ecc="board",
)  # fmt: skip
R7_8700G = cpu(
    "Ryzen 7 8700G", cores=8, threads=16, socket="AM5", launch="2024-01-31", max_power_w=88,
    chipsets=("A620", "B650", "B650E", "X670", "X670E", "B850", "X870", "X870E"),
    pcie_generation=4, slot_lanes=8, lanes_usable=16, memory_types=("ddr5",),
    memory_modules=("udimm",), memory_channels=2, memory_max_gib=256,
    memory_mts={"ddr5": 5200}, ecc="no",
)  # fmt: skip
R9_3900X = cpu(
    "Ryzen 9 3900X", cores=12, threads=24, socket="AM4", launch="2019-07-07", max_power_w=142,
    chipsets=("X570", "B550", "X470", "B450"), needs_bios_update=("X470", "B450"),
    pcie_generation=4, slot_lanes=16, lanes_usable=20, memory_types=("ddr4",),
    memory_modules=("udimm",), memory_channels=2, memory_max_gib=128,
    memory_mts={"ddr4": 3200}, ecc="board",
)  # fmt: skip
# Intel ARK: Core i9-14900K, i9-7940X (44 lanes), i7-7800X (28), i7-7740X (16).
I9_14900K = cpu(
    "Core i9-14900K", cores=24, threads=32, socket="LGA1700", launch="2023-10-17",
    max_power_w=253, chipsets=("Z690", "Z790", "B660", "B760", "W680"), pcie_generation=5,
    slot_lanes=16, lanes_usable=20, memory_types=("ddr4", "ddr5"), memory_modules=("udimm",),
    memory_channels=2, memory_max_gib=192, memory_mts={"ddr4": 3200, "ddr5": 5600},
    ecc="chipset",
)  # fmt: skip
I9_7940X = cpu(
    "Core i9-7940X", cores=14, threads=28, socket="LGA2066", pcie_generation=3, slot_lanes=44,
    memory_channels=4, max_power_w=165,
)  # fmt: skip
# AMD, product pages of Threadripper 7980X, PRO 7975WX and 1950X.
TR_7980X = cpu(
    "Ryzen Threadripper 7980X", cores=64, threads=128, socket="sTR5", launch="2023-11-21",
    max_power_w=350, chipsets=("TRX50",), pcie_generation=5, slot_lanes=48, lanes_usable=80,
    memory_types=("ddr5",), memory_modules=("rdimm",), memory_channels=4, memory_max_gib=1024,
    memory_mts={"ddr5": 5200}, ecc="yes",
)  # fmt: skip
TR_PRO_7975WX = cpu(
    "Ryzen Threadripper PRO 7975WX", cores=32, threads=64, socket="sTR5", launch="2023-11-21",
    max_power_w=350, chipsets=("WRX90", "TRX50"), pcie_generation=5, slot_lanes=128,
    lanes_usable=128, memory_types=("ddr5",), memory_modules=("rdimm",), memory_channels=8,
    memory_max_gib=2048, memory_mts={"ddr5": 5200}, ecc="yes",
)  # fmt: skip
TR_1950X = cpu(
    "Ryzen Threadripper 1950X", cores=16, threads=32, socket="TR4", launch="2017-08-10",
    max_power_w=180, chipsets=("X399",), pcie_generation=3, slot_lanes=48, lanes_usable=60,
    memory_types=("ddr4",), memory_modules=("udimm",), memory_channels=4, memory_max_gib=256,
    memory_mts={"ddr4": 2667}, ecc="yes",
)  # fmt: skip
# AMD, EPYC 7302P: 128 lanes of PCIe 4.0.
EPYC_7302P = cpu(
    "EPYC 7302P", cores=16, threads=32, socket="SP3", launch="2019-08-07", max_power_w=155,
    pcie_generation=4, slot_lanes=128, lanes_usable=128, memory_types=("ddr4",),
    memory_modules=("rdimm",), memory_channels=8, memory_max_gib=4096,
    memory_mts={"ddr4": 3200}, ecc="yes",
)  # fmt: skip


# --- Boards ----------------------------------------------------------------------------------


def board(name: str, **values: Any) -> BoardRecord:
    usual = {"form_factor": "atx", "memory_type": "ddr5", "memory_slots": 4, "vendor": "maker"}
    return BoardRecord.model_validate(part(name, **usual) | values)


def slot(id: str, source: str, generation: int, lanes: int, position: int | None = None,
         length: str = "x16") -> dict[str, Any]:  # fmt: skip
    return {"id": id, "length": length, "source": source, "generation": generation,
            "lanes": lanes, "position": position}  # fmt: skip


def m2(id: str, source: str, generation: int, lanes: int = 4, **more: Any) -> dict[str, Any]:
    return {"id": id, "source": source, "generation": generation, "lanes": lanes, **more}


# Hardwareluxx, review of the MPG X870E CARBON WIFI, 2024: the table of what shares the 16 lanes.
X870E_CARBON = board(
    "MSI MPG X870E CARBON WIFI", socket="AM5", chipset="X870E", launch="2024-09-30",
    memory_modules=("udimm",), memory_max_gib=256, sata_ports=4, bios_flashback=True,
    slots=(slot("PCI_E1", "cpu", 5, 16, 2), slot("PCI_E2", "cpu", 5, 4, 5),
           slot("PCI_E3", "chipset", 4, 4, 7)),
    slot_modes=({"PCI_E1": 16, "PCI_E2": 0}, {"PCI_E1": 8, "PCI_E2": 4}),
    m2=(m2("M2_1", "cpu", 5), m2("M2_2", "cpu", 5), m2("M2_3", "chipset", 4),
        m2("M2_4", "chipset", 4)),
    conflicts=({"when": "M2_2", "then": "PCI_E1", "lanes": 8},),
    uplink={"generation": 4, "lanes": 4}, lanes_complete=True,
)  # fmt: skip
# Hardwareluxx, review of the ROG STRIX X870E-E, 2024: M.2_2 and M.2_3 each make the slot x8.
STRIX_X870E_E = board(
    "ASUS ROG STRIX X870E-E GAMING WIFI", socket="AM5", chipset="X870E", launch="2024-09-30",
    memory_modules=("udimm",), memory_max_gib=192, sata_ports=4, bios_flashback=True,
    slots=(slot("PCIEX16_1", "cpu", 5, 16, 2), slot("PCIEX16_2", "chipset", 4, 4, 7)),
    m2=(m2("M.2_1", "cpu", 5), m2("M.2_2", "cpu", 5), m2("M.2_3", "cpu", 5),
        m2("M.2_4", "chipset", 4), m2("M.2_5", "chipset", 4)),
    conflicts=({"when": "M.2_2", "then": "PCIEX16_1", "lanes": 8},
               {"when": "M.2_3", "then": "PCIEX16_1", "lanes": 8}),
    uplink={"generation": 4, "lanes": 4}, lanes_complete=True,
)  # fmt: skip
# MSI, manual of the MEG X570 UNIFY, p. 31: the PCIe bandwidth table.
X570_UNIFY = board(
    "MSI MEG X570 UNIFY", socket="AM4", chipset="X570", launch="2019-11-01",
    memory_type="ddr4", memory_modules=("udimm",), memory_max_gib=128, sata_ports=4,
    slots=(slot("PCI_E1", "cpu", 4, 16, 2), slot("PCI_E2", "chipset", 4, 1, 3, "x1"),
           slot("PCI_E3", "cpu", 4, 8, 5), slot("PCI_E4", "chipset", 4, 1, 6, "x1"),
           slot("PCI_E5", "chipset", 4, 4, 7)),
    slot_modes=({"PCI_E1": 16, "PCI_E3": 0}, {"PCI_E1": 8, "PCI_E3": 8}),
    m2=(m2("M2_1", "cpu", 4, lengths_mm=(42, 60, 80, 110)), m2("M2_2", "chipset", 4),
        m2("M2_3", "chipset", 4)),
    uplink={"generation": 4, "lanes": 4}, lanes_complete=True, ecc=True,
)  # fmt: skip
# MSI, manual of the B450-A PRO, p. 29: PCI_E4 is PCIe 2.0 x4 of the chipset, x1 beside others.
B450_A_PRO = board(
    "MSI B450-A PRO", socket="AM4", chipset="B450", launch="2018-07-31", memory_type="ddr4",
    memory_modules=("udimm",), memory_max_gib=64, sata_ports=6, bios_flashback=False,
    slots=(slot("PCI_E1", "cpu", 3, 16, 1), slot("PCI_E2", "chipset", 2, 1, 2, "x1"),
           slot("PCI_E3", "chipset", 2, 1, 3, "x1"), slot("PCI_E4", "chipset", 2, 4, 4),
           slot("PCI_E5", "chipset", 2, 1, 5, "x1"), slot("PCI_E6", "chipset", 2, 1, 6, "x1")),
    m2=(m2("M2_1", "cpu", 3, sata=True),), uplink={"generation": 3, "lanes": 4},
    lanes_complete=True,
)  # fmt: skip
# MSI, manual of the MEG B550 UNIFY-X, p. 33, chipset mode: M2_3 turns SATA5 and SATA6 off.
B550_UNIFY_X = board(
    "MSI MEG B550 UNIFY-X", socket="AM4", chipset="B550", launch="2020-11-01",
    memory_type="ddr4", memory_slots=2, memory_modules=("udimm",), memory_max_gib=64,
    sata_ports=6,
    slots=(slot("PCI_E1", "cpu", 4, 16, 2), slot("PCI_E4", "chipset", 3, 4, 6)),
    m2=(m2("M2_1", "cpu", 4), m2("M2_2", "chipset", 3, 2), m2("M2_3", "chipset", 3, 2)),
    conflicts=({"when": "M2_3", "then": "sata:2", "lanes": 0},),
    uplink={"generation": 3, "lanes": 4}, lanes_complete=True,
)  # fmt: skip
# Tom's Hardware, review of the ROG MAXIMUS Z790 FORMULA, 2024: M2_1 turns the second slot off
# and makes the first x8.
Z790_FORMULA = board(
    "ASUS ROG MAXIMUS Z790 FORMULA", socket="LGA1700", chipset="Z790", launch="2023-10-17",
    memory_modules=("udimm",), memory_max_gib=192, sata_ports=4,
    slots=(slot("PCIEX16(G5)_1", "cpu", 5, 16, 2), slot("PCIEX16(G5)_2", "cpu", 5, 8, 5),
           slot("PCIEX16(G4)", "chipset", 4, 4, 7)),
    slot_modes=({"PCIEX16(G5)_1": 16, "PCIEX16(G5)_2": 0},
                {"PCIEX16(G5)_1": 8, "PCIEX16(G5)_2": 8}),
    m2=(m2("M2_1", "cpu", 5), m2("M2_2", "cpu", 4), m2("M2_3", "chipset", 4),
        m2("M2_4", "chipset", 4), m2("M2_5", "chipset", 4)),
    conflicts=({"when": "M2_1", "then": "PCIEX16(G5)_1", "lanes": 8},
               {"when": "M2_1", "then": "PCIEX16(G5)_2", "lanes": 0}),
    uplink={"generation": 4, "lanes": 8}, lanes_complete=True,
)  # fmt: skip
# MSI, manual of the X299 CREATION, p. 34, 44-lane processors: 1-2 and 3-4 ... share lanes.
X299_CREATION = board(
    "MSI X299 CREATION", socket="LGA2066", chipset="X299", memory_type="ddr4", memory_slots=8,
    form_factor="e-atx",
    slots=(slot("PCI_E1", "cpu", 3, 16, 1), slot("PCI_E2", "cpu", 3, 8, 3),
           slot("PCI_E3", "cpu", 3, 16, 5), slot("PCI_E4", "chipset", 3, 1, 6, "x1"),
           slot("PCI_E5", "cpu", 3, 8, 7)),
    slot_modes=({"PCI_E1": 16, "PCI_E2": 0}, {"PCI_E1": 8, "PCI_E2": 8}),
    m2=(m2("M2_3", "cpu", 3),), uplink={"generation": 3, "lanes": 4}, lanes_complete=True,
)  # fmt: skip
# Gigabyte, manual of the X399 DESIGNARE EX: x16, x8, PCIe 2.0 x4 of the chipset, x16, x8. Reports
# of four RTX 3090: 11 tokens/s with one in the third slot, 24.7 after moving it.
X399_DESIGNARE = board(
    "Gigabyte X399 DESIGNARE EX", socket="TR4", chipset="X399", launch="2017-12-01",
    memory_type="ddr4", memory_slots=8, memory_modules=("udimm",), memory_max_gib=128,
    sata_ports=8,
    slots=(slot("PCIEX16_1", "cpu", 3, 16, 1), slot("PCIEX8_1", "cpu", 3, 8, 3),
           slot("PCIEX4", "chipset", 2, 4, 4), slot("PCIEX16_2", "cpu", 3, 16, 5),
           slot("PCIEX8_2", "cpu", 3, 8, 7)),
    m2=(m2("M2A", "cpu", 3), m2("M2B", "cpu", 3), m2("M2C", "cpu", 3)),
    uplink={"generation": 3, "lanes": 4}, lanes_complete=True,
)  # fmt: skip
# ASRock Rack, ROMED8-2T: seven PCIe 4.0 x16; the second shares with mini-SAS, M.2 and OCuLink.
ROMED8_2T = board(
    "ASRock Rack ROMED8-2T", socket="SP3", memory_type="ddr4", memory_slots=8,
    memory_modules=("rdimm",), memory_max_gib=2048, sata_ports=8, ecc=True, slimsas=2,
    slots=tuple(slot(f"PCIE{8 - n}", "cpu", 4, 16, n) for n in range(1, 8)),
    m2=(m2("M2_1", "cpu", 4), m2("M2_2", "cpu", 4)),
    conflicts=({"when": "M2_2", "then": "PCIE2", "lanes": 8},), lanes_complete=True,
)  # fmt: skip
# ASUS, Pro WS WRX90E-SAGE SE: seven slots of PCIe 5.0, the sixth x8, the others x16.
WRX90E_SAGE = board(
    "ASUS Pro WS WRX90E-SAGE SE", socket="sTR5", chipset="WRX90", launch="2023-12-01",
    form_factor="eeb", memory_slots=8, memory_modules=("rdimm",), memory_max_gib=2048, ecc=True,
    sata_ports=4, slimsas=2,
    slots=tuple(slot(f"PCIEX16_{n}", "cpu", 5, 8 if n == 6 else 16, n) for n in range(1, 8)),
    m2=(m2("M.2_1", "cpu", 5), m2("M.2_2", "cpu", 5)), lanes_complete=True,
)  # fmt: skip
# ASUS, Pro WS TRX50-SAGE WIFI: four RDIMM slots, PCIe 5.0 x16, x16, x8 and slower ones.
TRX50_SAGE = board(
    "ASUS Pro WS TRX50-SAGE WIFI", socket="sTR5", chipset="TRX50", launch="2023-11-21",
    form_factor="ceb", memory_modules=("rdimm",), memory_max_gib=1024, ecc=True, sata_ports=4,
    slots=(slot("PCIEX16(G5)_1", "cpu", 5, 16, 1), slot("PCIEX16(G5)_2", "cpu", 5, 16, 3),
           slot("PCIEX16(G5)_3", "cpu", 5, 8, 5)),
    m2=(m2("M.2_1", "cpu", 5), m2("M.2_2", "cpu", 5), m2("M.2_3", "cpu", 4)),
    uplink={"generation": 4, "lanes": 4}, lanes_complete=True,
)  # fmt: skip
# A listing without any electrical data, as most databases have it.
LISTED_ONLY = board("ASRock X870E Nova WiFi", socket="AM5", chipset="X870E")


# --- Around them -----------------------------------------------------------------------------


def psu(name: str, watts: float, plugs: dict[str, Any], **values: Any) -> PsuRecord:
    return PsuRecord.model_validate(
        part(name, watts=watts, connectors=PowerConnectors(**plugs)) | values
    )


# EVGA SuperNOVA 1600 P2: 1,600 W, Platinum, 9 PCIe 8-pin plugs, ATX 2.x, 220 mm (EVGA).
EVGA_1600_P2 = psu(
    "EVGA SuperNOVA 1600 P2", 1600, {"pcie_8": 9, "pcie_16": 0, "eps_8": 2},
    efficiency="platinum", atx_version="2.x", length_mm=220,
)  # fmt: skip
# Corsair RM1000x SHIFT, ATX 3.0: one 16-pin of 600 W, 180 mm; RM850e of 2023: ATX 3.0, 450 W
# rated plug is 600 W, 140 mm (Corsair, product pages).
RM1000X = psu(
    "Corsair RM1000x SHIFT", 1000, {"pcie_8": 6, "pcie_16": 1, "pcie_16_w": 600},
    efficiency="gold", atx_version="3.0", length_mm=180,
)  # fmt: skip
RM850E = psu(
    "Corsair RM850e", 850, {"pcie_8": 3, "pcie_16": 1, "pcie_16_w": 600},
    efficiency="gold", atx_version="3.0", length_mm=140,
)  # fmt: skip
# Corsair HX1500i of 2025, ATX 3.1, two 12V-2x6 plugs, Platinum, 200 mm (Corsair).
HX1500I = psu(
    "Corsair HX1500i", 1500, {"pcie_8": 8, "pcie_16": 2, "pcie_16_w": 600},
    efficiency="platinum", atx_version="3.1", length_mm=200,
)  # fmt: skip
# Corsair CX750M: Bronze, ATX 2.x, 4 PCIe 8-pin plugs, 140 mm (Corsair).
CX750M = psu(
    "Corsair CX750M", 750, {"pcie_8": 4, "pcie_16": 0}, efficiency="bronze", atx_version="2.x",
    length_mm=140,
)  # fmt: skip


def case(name: str, **values: Any) -> CaseRecord:
    return CaseRecord.model_validate(part(name) | values)


# Fractal Design: Torrent (461 mm, 423 mm with a front radiator; 7 openings; coolers to 188 mm),
# Define 7 XL (9 openings, 524 mm), North (355 mm; 170 mm; 7 openings, ATX, PSU 255 mm), Ridge
# (Mini-ITX, coolers to 70 mm, SFX).
TORRENT = case(
    "Fractal Design Torrent", kind="mid-tower",
    boards=("mini-itx", "micro-atx", "atx", "e-atx", "ceb", "eeb"),
    slots=7, gpu_length_mm=461, gpu_length_includes_radiator=False, cooler_height_mm=188,
    psu_length_mm=230, bays_35=2, bays_25=4, radiators_mm=(120, 140, 240, 280, 360, 420),
    width_mm=242,
)  # fmt: skip
DEFINE_7_XL = case(
    "Fractal Design Define 7 XL", kind="full-tower", slots=9, gpu_length_mm=524,
    gpu_length_includes_radiator=False,
    boards=("mini-itx", "micro-atx", "atx", "e-atx", "ceb", "eeb"), cooler_height_mm=185,
    psu_length_mm=250, bays_35=6, bays_25=2, radiators_mm=(240, 280, 360, 420, 480),
)  # fmt: skip
NORTH = case(
    "Fractal Design North", boards=("mini-itx", "micro-atx", "atx"), slots=7, gpu_length_mm=355,
    gpu_length_includes_radiator=False, cooler_height_mm=170, psu_length_mm=255, bays_35=2,
    bays_25=2, radiators_mm=(120, 240, 280, 360), width_mm=215,
)  # fmt: skip
RIDGE = case(
    "Fractal Design Ridge", boards=("mini-itx",), slots=3, gpu_length_mm=335,
    gpu_length_includes_radiator=True, cooler_height_mm=70, psu_length_mm=130,
    psu_forms=("sfx", "sfx-l"), bays_35=0, bays_25=4, radiators_mm=(120,),
)  # fmt: skip


def cooler(name: str, kind: str = "air", **values: Any) -> CoolerRecord:
    return CoolerRecord.model_validate(part(name, type=kind) | values)


# Noctua: NH-D15 (165 mm), NH-U14S TR5-SP6 (165 mm), NH-L9a-AM5 (37 mm).
NH_D15 = cooler("Noctua NH-D15", height_mm=165, sockets=("AM4", "AM5", "LGA 1700", "LGA 1851"))
NH_U14S_TR5 = cooler("Noctua NH-U14S TR5-SP6", height_mm=165, sockets=("sTR5", "SP6"))
# be quiet!: Pure Rock 2, 150 W, 155 mm; Dark Rock Pro 5, 270 W, 168 mm.
PURE_ROCK_2 = cooler(
    "be quiet! Pure Rock 2", height_mm=155, rated_w=150, sockets=("AM4", "AM5", "LGA1700")
)
DARK_ROCK_PRO_5 = cooler(
    "be quiet! Dark Rock Pro 5", height_mm=168, rated_w=270, sockets=("AM5", "LGA1700")
)
# ARCTIC Liquid Freezer III 360: 398 x 120 x 38 mm radiator.
FREEZER_360 = cooler(
    "ARCTIC Liquid Freezer III 360", "liquid", radiator_mm=360, sockets=("AM5", "LGA1700")
)


def memory(name: str, **values: Any) -> MemoryRecord:
    return MemoryRecord.model_validate(part(name) | values)


# G.Skill F5-6000J3040G32GX2 (2 x 32 GB, DDR5-6000), Kingston KVR56U46BD8-48 (DDR5-5600, 48 GB),
# Samsung M321R4GA3BB6-CQK (32 GB RDIMM, DDR5-4800), Crucial CT32G4DFD832A (DDR4-3200, 32 GB),
# Kingston KSM56E46BD8KM-32HA (ECC UDIMM).
GSKILL_64 = memory(
    "G.Skill Trident Z5 Neo 2x32", type="ddr5", module="udimm", modules=2, module_gib=32,
    mts=6000, ecc=False, ranks=2,
)  # fmt: skip
KINGSTON_48 = memory(
    "Kingston ValueRAM 48", type="ddr5", module="udimm", modules=1, module_gib=48, mts=5600,
    ecc=False,
)  # fmt: skip
SAMSUNG_RDIMM = memory(
    "Samsung RDIMM 32", type="ddr5", module="rdimm", modules=1, module_gib=32, mts=4800, ecc=True
)
CRUCIAL_DDR4 = memory(
    "Crucial DDR4-3200 32", type="ddr4", module="udimm", modules=1, module_gib=32, mts=3200,
    ecc=False,
)  # fmt: skip
KINGSTON_ECC = memory(
    "Kingston Server Premier ECC 32", type="ddr5", module="udimm", modules=1, module_gib=32,
    mts=5600, ecc=True,
)  # fmt: skip


def drive(name: str, **values: Any) -> DriveRecord:
    return DriveRecord.model_validate(part(name) | values)


# Samsung: 990 PRO 2 TB (7,450 MB/s, 1,200 TBW), 9100 PRO 2 TB (14,700 MB/s, 1,200 TBW),
# 870 QVO 8 TB (QLC, 560 MB/s, 2,880 TBW), PM9A3 U.2. Crucial P310 (no DRAM, QLC, 7,100 MB/s,
# 440 TBW at 2 TB). Seagate Exos X18.
SAMSUNG_990 = drive(
    "Samsung 990 PRO 2TB", interface="nvme", form="m.2", length_mm=80, capacity_gb=2000,
    pcie_generation=4, pcie_lanes=4, read_mb_s=7450, endurance_tb=1200, dram=True, nand="tlc",
)  # fmt: skip
SAMSUNG_9100 = drive(
    "Samsung 9100 PRO 2TB", interface="nvme", form="m.2", length_mm=80, capacity_gb=2000,
    pcie_generation=5, pcie_lanes=4, read_mb_s=14700, endurance_tb=1200, dram=True, nand="tlc",
)  # fmt: skip
CRUCIAL_P310 = drive(
    "Crucial P310 2TB", interface="nvme", form="m.2", length_mm=80, capacity_gb=2000,
    pcie_generation=4, pcie_lanes=4, read_mb_s=7100, endurance_tb=440, dram=False, nand="qlc",
)  # fmt: skip
QVO_870 = drive(
    "Samsung 870 QVO 8TB", interface="sata", form="2.5", capacity_gb=8000, read_mb_s=560,
    endurance_tb=2880, dram=True, nand="qlc",
)  # fmt: skip
PM9A3 = drive(
    "Samsung PM9A3 U.2 3.84TB", interface="nvme", form="u.2", capacity_gb=3840,
    pcie_generation=4, pcie_lanes=4, read_mb_s=6800, endurance_tb=7008, dram=True, nand="tlc",
)  # fmt: skip
EXOS_X18 = drive(
    "Seagate Exos X18 18TB", interface="hdd", form="3.5", capacity_gb=18000, read_mb_s=270
)


def of(record: GpuRecord, count: int = 1, limit: float | None = None, **parts: Any) -> Build:
    """Return a build with cards of one kind and other parts."""
    return Build(gpus=(BuildGpu(record, count, limit),), **parts)
