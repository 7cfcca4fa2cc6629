"""The shipped parts beside GPUs: enough of them, sourced, and found by what a kernel calls them."""

import re

import pytest

from trainwright.catalog import (
    CpuRecord,
    PartRecord,
    find_drive,
    find_memory,
    find_part,
    find_psu,
    list_parts,
)
from trainwright.catalog.part_kinds import KINDS, OtherKind, PartKind
from trainwright.data import hardware_db

AT_LEAST: dict[OtherKind, int] = {
    "cpu": 80, "memory": 60, "storage": 80, "psu": 60, "case": 40, "cooler": 30,
}  # fmt: skip
"""Of issue 6."""
EVERY = [record for kind in AT_LEAST for record in list_parts(kind)]


@pytest.mark.parametrize("kind", AT_LEAST)
def test_there_are_enough_of_every_kind(kind: OtherKind) -> None:
    assert len(list_parts(kind)) >= AT_LEAST[kind]


def test_no_two_parts_of_any_kind_share_an_id() -> None:
    """``catalog show`` takes an id without its kind."""
    kinds: tuple[PartKind, ...] = ("gpu", *KINDS)
    ids = [record.id for kind in kinds for record in list_parts(kind)]
    assert len(ids) == len(set(ids))


def sources(record: PartRecord) -> list[str]:
    return [record.source, *(given.source for given in record.sources.values())]


def test_every_source_is_named_in_the_list_of_sources() -> None:
    text = hardware_db("SOURCES.md").read_text(encoding="utf-8")
    for record in (each for kind in KINDS for each in list_parts(kind)):
        for source in sources(record):
            key = re.split(r"[,;:(]", source)[0].strip()
            assert f"`{key}`" in text or source.startswith("https://"), (record.id, source)


def test_every_field_with_a_source_of_its_own_has_a_value() -> None:
    for record in EVERY:
        # A file's defaults may name the source of a field that one of its processors lacks.
        for field in record.sources if not isinstance(record, CpuRecord) else ():
            value: object = record
            for part in field.split("."):
                value = getattr(value, part)
            assert value is not None, (record.id, field)


def test_what_is_only_recalled_is_of_low_confidence() -> None:
    for record in EVERY:
        for given in (record.provenance("id"), *record.sources.values()):
            if given.source.startswith("recall"):
                assert given.confidence == "low", record.id


def test_no_price_is_shipped_that_is_not_the_makers_at_launch() -> None:
    # The sample prices of 2025-07-23 are of sellers: 154.99 for the 9100 Pro of 1 TB.
    drive = find_drive("samsung-9100-pro-1tb")
    assert drive is not None
    assert drive.msrp_usd == 199.99
    assert drive.provenance("msrp_usd").source == "techpowerup-9100-pro"


KERNEL_NAMES = {
    "Samsung SSD 990 PRO 2TB": "samsung-990-pro-2tb",
    "Samsung SSD 970 EVO Plus 500GB": "samsung-970-evo-plus-500gb",
    "WD_BLACK SN850X 2000GB": "wd-black-sn850x-2tb",
    "WD_BLACK SN8100 2000GB": "wd-black-sn8100-2tb",
    "CT2000T705SSD3": "crucial-t705-2tb",
    "CT1000MX500SSD1": "crucial-mx500-1tb",
    "SHPP41-2000GM": "sk-hynix-platinum-p41-2tb",
    "KINGSTON SKC3000D2048G": "kingston-kc3000-2tb",
    "WDC WD201KFGX-68BKJN0": "wd-red-pro-20tb",
    "ST8000DM004-2CX188": "seagate-barracuda-8tb",
    "ST8000DM004-2U9188": "seagate-barracuda-8tb",
    "SAMSUNG MZQL23T8HCLS-00A07": "samsung-pm9a3-3.84tb",
    "Micron_7450_MTFDKCC3T8TFR": "micron-7450-pro-3.84tb",
}
"""Model strings of ``/sys/block/*/device/model``, as people's logs print them."""


@pytest.mark.parametrize(("name", "id"), KERNEL_NAMES.items())
def test_a_drive_is_found_by_the_name_that_the_kernel_reports(name: str, id: str) -> None:
    found = find_drive(name)
    assert found is not None
    assert found.id == id


def test_memory_is_found_by_part_number_and_in_korean() -> None:
    for text in ("M323R4GA3DB0-CWM", "삼성전자 DDR5-5600 (32GB)", "삼성전자 DDR5-5600 32GB"):
        found = find_memory(text)
        assert found is not None, text
        assert (found.type, found.gib, found.mts) == ("ddr5", 32, 5600)


KOREAN_NAMES = {
    "삼성전자 990 PRO M.2 NVMe (2TB)": ("storage", "samsung-990-pro-2tb"),
    "SK하이닉스 Platinum P41 M.2 NVMe (2TB)": ("storage", "sk-hynix-platinum-p41-2tb"),
    "마이크론 Crucial T705 M.2 NVMe (2TB)": ("storage", "crucial-t705-2tb"),
    "시소닉 FOCUS GX-850 ATX 3.1": ("psu", "seasonic-focus-gx-850-atx-3.1"),
    "마이크로닉스 Classic II 850W 80PLUS GOLD": ("psu", "micronics-classic-ii-850w-gold"),
    "녹투아 NH-U12A": ("cooler", "noctua-nh-u12a"),
    "리안리 LANCOOL 216": ("case", "lian-li-lancool-216"),
    "인텔 코어 i9-14900K": ("cpu", "i9-14900k"),
    "AMD 라이젠9 9950X": ("cpu", "ryzen-9-9950x"),
}
"""As shops in Korea list them."""


@pytest.mark.parametrize(("name", "kind", "id"), [(n, *at) for n, at in KOREAN_NAMES.items()])
def test_a_part_is_found_by_its_korean_name(name: str, kind: PartKind, id: str) -> None:
    assert find_part(kind, name).id == id


def test_registered_modules_are_not_taken_for_unbuffered_ones() -> None:
    """OpenDB lists most of its registered kits as unbuffered and without ECC."""
    for record in list_parts("memory"):
        named = re.search(r"RDIMM|Registered", record.name) is not None
        assert named == (record.module == "rdimm"), record.id
        assert record.module != "rdimm" or record.ecc, record.id


def test_a_kit_s_name_counts_its_modules() -> None:
    """OpenDB has a kit of 2 x 16 GB as one module of 32."""
    counted = 0
    for record in list_parts("memory"):
        if said := re.search(r"(\d+)GB \((\d+)x(\d+)GB\)", record.name):
            total, modules, size = map(int, said.groups())
            assert (record.gib, record.modules, record.module_gib) == (total, modules, size)
            counted += 1
    assert counted > 40


def test_the_first_prime_tx_1600_is_no_atx_3_supply() -> None:
    """Seasonic itself said so (KitGuru, 2022): ATX 3.0 up to 1000 W only."""
    first, later = (
        find_psu("seasonic-prime-tx-1600-2022"),
        find_psu("seasonic-prime-tx-1600-atx-3.1"),
    )
    assert first is not None
    assert later is not None
    assert (first.atx_version, later.atx_version) == ("2.x", "3.1")


def test_the_capacity_of_a_drive_is_that_of_its_name() -> None:
    for record in list_parts("storage"):
        said = re.search(r"([\d.]+)(TB|GB)\b", record.name)
        assert said is not None, record.id
        stated = float(said[1]) * (1000 if said[2] == "TB" else 1)
        assert record.capacity_gb == pytest.approx(stated, rel=0.03), record.id  # 1024 is a "1TB"
