"""Which part a shop's name means; what is not sure is left to the person."""

import re
from datetime import date

import pytest

from trainwright.catalog import find_gpu, list_gpus
from trainwright.prices import own_prices
from trainwright.prices.imports import preview, read
from trainwright.prices.imports.matching import matcher

TODAY = date(2026, 7, 1)
SOLD = [
    record
    for record in list_gpus()
    if record.segment in ("consumer", "workstation") and record.form in (None, "card")
]


@pytest.mark.parametrize(
    ("name", "kind", "id"),
    [
        ("MSI GAMING TRIO OC GeForce RTX 5090 32 GB Video Card", "gpu", "rtx-5090"),
        ("Gigabyte WINDFORCE OC GeForce RTX 4060 Ti 16 GB Video Card", "gpu", "rtx-4060-ti-16gb"),
        ("Gigabyte EAGLE OC GeForce RTX 4060 Ti 8 GB Video Card", "gpu", "rtx-4060-ti-8gb"),
        ("Zotac GAMING Trinity GeForce RTX 4070 Ti SUPER 16 GB", "gpu", "rtx-4070-ti-super"),
        ("Asus TUF GAMING GeForce RTX 3090 24 GB Video Card", "gpu", "rtx-3090"),
        ("GIGABYTE 지포스 RTX 5060 Ti WINDFORCE MAX OC D7 8GB 피씨디렉트", None, "rtx-5060-ti-8gb"),
        ("이엠텍 지포스 RTX 5080 GAMEROCK D7 16GB", None, "rtx-5080"),
        ("PNY RTX 6000 Ada Generation 48 GB Video Card", "gpu", "rtx-6000-ada"),
        ("PNY VCNRTXA6000-PB RTX A6000 48 GB Video Card", "gpu", "rtx-a6000"),
        ("Sapphire NITRO+ Radeon RX 7900 XTX 24 GB Video Card", "gpu", "rx-7900-xtx"),
        ("XFX Speedster MERC 310 Radeon RX 7900 XT 20 GB", "gpu", "rx-7900-xt"),
        ("AMD Ryzen 9 9950X 4.3 GHz 16-Core Processor", "cpu", "ryzen-9-9950x"),
        ("AMD Ryzen 9 9950X3D 4.3 GHz 16-Core Processor", "cpu", "ryzen-9-9950x3d"),
        ("AMD 라이젠9-6세대 9950X (그래니트 릿지) (정품)", None, "ryzen-9-9950x"),
        ("인텔 코어i5-14세대 14600K (랩터레이크 리프레시) (정품)", None, "i5-14600k"),
        ("인텔 코어 울트라7 시리즈2 265K (애로우레이크) (정품)", None, "core-ultra-7-265k"),
        ("AMD Threadripper PRO 7965WX 4.2 GHz 24-Core Processor", "cpu", None),
        (
            "Samsung 990 Pro 2 TB M.2-2280 PCIe 4.0 X4 NVME Solid State Drive",
            None,
            "samsung-990-pro-2tb",
        ),
        ("삼성전자 990 PRO M.2 NVMe 4TB", None, "samsung-990-pro-4tb"),
        ("Western Digital WD_Black SN850X 1 TB M.2-2280 PCIe 4.0 X4", "storage", None),
    ],
)
def test_the_words_of_shops_find_the_part(name, kind, id):
    verdict = matcher().match(name, kind)
    assert verdict.part is not None, verdict
    assert verdict.how == "words"
    if id:
        assert verdict.part.id == id


@pytest.mark.parametrize(
    ("name", "kind", "id"),
    [
        ("Corsair RM1000x (2024) 1000 W 80+ Gold ATX Power Supply", "psu", "corsair-rm1000x-2024"),
        ("Noctua NH-D15 82.5 CFM CPU Cooler", "cooler", "noctua-nh-d15"),
        ("Noctua NH-D15 G2 CPU Cooler", "cooler", "noctua-nh-d15-g2"),
        ("리안리 LANCOOL 216 (블랙)", None, "lian-li-lancool-216"),
        ("Fractal Design North ATX Mid Tower Case", "case", "fractal-design-north"),
        (
            "G.Skill Flare X5 64 GB (2 x 32 GB) DDR5-6000 CL30 Memory",
            "memory",
            "gskill-flare-x5-ddr5-6000-cl30-2x32gb",
        ),
        ("MSI MAG B650 TOMAHAWK WIFI ATX AM5 Motherboard", "board", "msi-mag-b650-tomahawk-wifi"),
        ("WD BLACK SN850X M.2 NVMe 2TB", None, "wd-black-sn850x-2tb"),
        ("Crucial T705 w/Heatsink 2 TB M.2-2280 PCIe 5.0 X4", "storage", "crucial-t705-2tb"),
    ],
)
def test_other_parts_are_found_by_the_words_and_sizes_of_their_names(name, kind, id):
    verdict = matcher().match(name, kind)
    assert verdict.part is not None, verdict
    assert verdict.part.id == id


@pytest.mark.parametrize("name", ["rtx-4090", "NVIDIA GeForce RTX 4090", "ryzen-9-9950x"])
def test_an_id_or_a_name_is_sure(name):
    assert matcher().match(name).how == "exact"


@pytest.mark.parametrize(
    ("name", "kind", "some"),
    [
        ("Asus GeForce RTX 4060 Ti Video Card", "gpu", "rtx-4060-ti-16gb"),
        ("Gigabyte GeForce RTX 4060 Ti 12 GB Video Card", "gpu", "rtx-4060-ti-8gb"),
        ("Samsung 990 Pro M.2-2280 PCIe 4.0 X4 NVME", "storage", "samsung-990-pro-1tb"),
        ("Corsair RM1000x SHIFT 1000 W 80+ Gold ATX Power Supply", "psu", "corsair-rm1000x-2024"),
    ],
)
def test_what_may_be_several_is_asked(name, kind, some):
    verdict = matcher().match(name, kind)
    assert verdict.part is None
    assert some in {part.id for part in verdict.candidates}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("MSI GeForce RTX 5070 SUPER 18 GB Video Card", "gpu"),  # not the 5070
        ("ASUS GeForce GT 710 2 GB Video Card", "gpu"),
        ("Dell U2723QE 27.0 Monitor", None),
        ("RTX 3090 cooler fan replacement", None),
        ("AMD Ryzen 9 1999X3D", "cpu"),
        ("", None),
        ("★☆★", None),
    ],
)
def test_a_part_that_the_catalog_lacks_is_no_other_part(name, kind):
    assert matcher().match(name, kind).part is None


MEMORY_WORDS = ("D5", "D6", "D6X", "D7", "DDR5", "GDDR6", "GDDR6X", "GDDR7", "HBM2e", "HBM3")


@pytest.mark.parametrize("word", MEMORY_WORDS)
def test_a_kind_of_memory_makes_no_other_card(word):
    match = matcher().match
    sold = [card for card in list_gpus() if card.segment == "consumer" and card.vendor != "Intel"]
    for card in sold:
        plain, size = card.name.split(" 8GB")[0], round(card.memory_bytes.value / 2**30)
        plain = plain.removesuffix(f" {size}GB")
        # An RTX 4090 without a size is not the one of 48 GB.
        unsized = next((one for one in sold if one.name == plain), card)
        for name in (f"MSI {plain} OC {word} {size}GB", f"{plain} {word} {size} GB"):
            verdict = match(name)
            assert verdict.part in (card, None), (name, verdict.part.id)
        assert match(plain + word).part in (unsized, None), plain
        assert match(f"MSI {plain} {word} {size}GB").part == card


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("지포스 RTX 5090 D7 32GB", "rtx-5090"),
        ("MSI RTX5090D7 SUPRIM 32GB", "rtx-5090"),
        ("지포스 RTX 5090 D 32GB D7", "rtx-5090-d"),
        ("GeForce RTX 5090D 32GB GDDR7", "rtx-5090-d"),
        ("지포스 RTX 3090 D6X 24GB", "rtx-3090"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q", "rtx-pro-6000-max-q"),
        ("NVIDIA RTX PRO 4500 D7 32GB", "rtx-pro-4500"),
        ("NVIDIA RTX 6000 Ada D6 48GB", "rtx-6000-ada"),
        ("NVIDIA H200 NVL 141GB PCIe", "h200-141gb-nvl"),
        ("ASRock 인텔 아크 B580 CHALLENGER D6 12GB", "arc-b580"),
        ("MSI GeForce RTX 5080 16 Go GDDR7", "rtx-5080"),
        ("GeForce RTX 5090D V2 24GB", "rtx-5090-d-v2"),
        ("Sapphire Radeon RX 9070 GRE 12GB", "rx-9070-gre"),
        ("AMD Radeon PRO W7900 48GB Dual Slot", "radeon-pro-w7900-dual-slot"),
        ("AMD Radeon PRO W7900 48GB", "radeon-pro-w7900"),
        ("RTX 4090 blower 48 GB", "rtx-4090-48gb"),
        ("ASUS TUF GeForce RTX 4090 OC", "rtx-4090"),
        ("EVGA RTX 2080 Ti XC 11GB", "rtx-2080-ti"),
        ("RTX 2080 Ti blower 22GB", "rtx-2080-ti-22gb"),
    ],
)
def test_memory_maker_and_generation_are_evidence(name, id):
    assert matcher().match(name).part.id == id


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("NVIDIA RTX PRO 6000 Blackwell D7 96GB", "rtx-pro-6000-workstation"),
        ("RTX 4090 32GB", "rtx-4090"),  # a card that nobody sells
        ("RTX 5090 Laptop 24GB", "rtx-5090-laptop"),
        ("GeForce RTX 5090 Laptop GPU", "rtx-5090-laptop"),
        ("NVIDIA Quadro RTX 4000 8GB", "rtx-4000-ada"),
        ("NVIDIA RTX 6000 Blackwell 96GB", "rtx-6000-ada"),
        ("ASUS laptop RTX 4090 16GB", "rtx-4090-laptop"),  # the price of the whole laptop
        ("EK-Quantum Vector RTX 4090 Waterblock", "rtx-4090"),
        ("게이밍PC i9-14900K RTX 4090 64GB", "i9-14900k"),
        ("RTX 4080 SUPER or RTX 4090", "rtx-4090"),
        ("ASUS ROG Maximus Z790 Dark Hero", "asus-rog-maximus-z790-hero"),
        ("ASRock X670E Taichi Carrara", "asrock-x670e-taichi"),
        ("GIGABYTE X870E AORUS MASTER X3D ICE", "gigabyte-x870e-aorus-master"),
        ("ASRock Rack ROMED8-2T/BCM", "asrock-rack-romed8-2t"),
        ("Samsung 990 EVO 2TB", "samsung-990-evo-plus-2tb"),
        ("Crucial P3 Plus 1TB", "crucial-p3-1tb"),
        ("Noctua NH-D15 mounting kit AM5", "noctua-nh-d15"),
    ],
)
def test_what_is_near_a_part_is_asked(name, near):
    verdict = matcher().match(name)
    assert verdict.part is None
    assert near in {part.id for part in verdict.candidates}


@pytest.mark.parametrize(
    "name",
    [
        *("GeForce RTX 5080D V2 16GB", "RTX 4070S 12GB", "RX 9060 GRE 12GB", "L40G 24GB"),
        *("Intel Core i9-9900X", "Intel Core i7-7700", "Core i9-14900KS", "AMD Ryzen 7 PRO 7700"),
    ],
)
def test_a_letter_or_a_maker_makes_another_chip(name):
    assert matcher().match(name).part is None


LIST = """part_or_name,unit_price,currency
rtx-4090,2500,USD
GeForce RTX 4060 Ti,480,USD
no such part,10,USD
rtx-5090,-1,USD
"""


def test_nothing_is_kept_before_it_was_looked_at():
    preview(read(LIST, "my.csv", TODAY))
    assert own_prices.load().observations == ()


def test_a_persons_choice_settles_a_row():
    before = preview(read(LIST, "my.csv", TODAY))
    assert before.counts == {"matched": 1, "ambiguous": 1, "unmatched": 1, "refused": 1}
    after = before.chosen({1: find_gpu("rtx-4060-ti-16gb").record, 0: None})
    assert after.counts == {"matched": 1, "ambiguous": 1, "unmatched": 1, "refused": 1}
    (one,) = after.observations()
    assert (one.part, one.amount, one.source) == ("rtx-4060-ti-16gb", 480, "my.csv:3")
    assert one.name == "GeForce RTX 4060 Ti"


MEMORIES = ("D6", "D7", "GDDR6X", "DDR7", "HBM2e")


@pytest.mark.parametrize("record", SOLD, ids=lambda record: record.id)
def test_a_word_for_memory_is_never_a_letter_of_the_model(record):
    """``RTX 5090 D7 32GB`` is not an RTX 5090 D."""
    gib = round(record.memory_bytes.value / 2**30)
    plain = re.sub(r"\s*\d+ ?GB$", "", record.name)
    for word in MEMORIES:
        for name in (f"{plain} {word} {gib}GB", f"{plain} OC {gib} GB {word} Video Card"):
            found = matcher().match(name, "gpu").part
            assert found is not None, name
            assert found.id == record.id, name
