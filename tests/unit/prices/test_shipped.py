"""What ships is marked as assumed, dated, in both currencies, and at the level of 2026."""

from datetime import date

import pytest

from trainwright.catalog import (
    CpuRecord,
    DriveRecord,
    MemoryRecord,
    find_board,
    find_cpu,
    find_gpu,
    list_gpus,
    list_parts,
)
from trainwright.prices import PriceBook, price_of
from trainwright.prices.shipped import assumed_prices


@pytest.fixture
def shipped():
    return PriceBook(today=date(2026, 6, 30), assumed=assumed_prices())


def kit(gib=16, modules=2, **more):
    return MemoryRecord(
        **{
            "id": "kit",
            "name": "kit",
            "type": "ddr5",
            "module": "udimm",
            "mts": 6000,
            "source": "test",
            "confidence": "low",
        }
        | more,
        modules=modules,
        module_gib=gib,
    )


def drive(**more):
    return DriveRecord(
        id="drive", name="drive", read_mb_s=7000, source="test", confidence="low", **more
    )


def test_every_price_says_when_it_was_assumed_and_what_it_rests_on():
    for one in assumed_prices():
        assert one.basis
        assert one.assumed <= date(2026, 11, 22)


def test_every_price_names_only_parts_that_exist():
    known = {record.id for record in list_gpus()}
    named = {id for one in assumed_prices() if one.part == "gpu" for id in one.ids}
    assert named <= known


@pytest.mark.parametrize(
    ("part", "currency", "used", "reported"),
    [
        (kit(), "USD", False, 375),  # PCPartPicker's average, by Tom's Hardware
        (kit(32, 1), "KRW", False, 606_980),  # Danawa, like those below
        (kit(module="rdimm"), "KRW", False, 1_680_000),
        (kit(32, 1, type="ddr4"), "KRW", False, 414_960),
        (drive(interface="nvme", pcie_generation=4, capacity_gb=2000), "KRW", False, 587_990),
        (drive(interface="nvme", pcie_generation=4, capacity_gb=4000), "KRW", False, 1_160_000),
        (drive(interface="nvme", pcie_generation=4, capacity_gb=2000), "USD", False, 300),
        ("rtx-5080", "KRW", False, 2_084_550),
        ("rtx-5070", "KRW", False, 1_003_290),
        ("rtx-5090", "USD", False, 3050),
        ("rtx-3090", "USD", True, 500),
        ("rtx-3090", "USD", True, 900),
    ],
)
def test_the_interval_holds_what_was_reported_in_2026(shipped, part, currency, used, reported):
    part = find_gpu(part).record if isinstance(part, str) else part
    price = price_of(part, shipped, currency, used=used)
    assert price.kind == "assumed"
    assert price.low <= reported <= price.high


def test_moved_markets_do_not_fall_back_on_launch_prices(shipped):
    """The 980 Pro's 429 USD of 2020 say nothing of 2026."""
    old = drive(interface="nvme", pcie_generation=4, capacity_gb=2000, msrp_usd=429.99)
    assert price_of(old, shipped, "USD").kind == "assumed"
    assert price_of(find_gpu("rtx-4070").record, shipped, "USD").kind == "msrp"


def test_a_processor_has_a_first_price_in_won(shipped):
    cpu = CpuRecord(
        id="cpu",
        name="cpu",
        vendor="AMD",
        architecture="Zen 5",
        cores=16,
        threads=32,
        boost_ghz=5.7,
        msrp_usd=649,
        source="test",
        confidence="low",
    )
    assert price_of(cpu, shipped, "KRW").kind == "assumed"
    assert price_of(cpu, shipped, "USD").kind == "msrp"


@pytest.mark.parametrize(
    ("kind", "share"),
    [
        *(("memory", 1), ("storage", 1), ("psu", 1), ("case", 1), ("cooler", 1), ("board", 1)),
        ("cpu", 0.95),
    ],
)
@pytest.mark.parametrize("currency", ["USD", "KRW"])
def test_a_first_answer_is_possible_with_nearly_every_part(shipped, kind, share, currency):
    parts = list_parts(kind)
    priced = [price_of(part, shipped, currency) for part in parts]
    assert sum(price is not None for price in priced) >= share * len(parts)
    assert all(price.kind in ("msrp", "assumed") for price in priced if price)


PROCESSORS = """
    i5-12400f 109 i5-12600k 148 i5-14400f 126 i7-12700k 214 i9-12900k 286
    core-ultra-5-245k 260 core-ultra-7-265k 270 core-ultra-9-285k 560
    i5-13600k 300 i5-14600k 190 i7-13700k 390 i7-14700k 297 i9-13900k 434 i9-14900k 439
    ryzen-threadripper-1950x 850 ryzen-threadripper-3960x 1267 ryzen-threadripper-3970x 1715
    ryzen-threadripper-3990x 2700
    ryzen-5-5600 126 ryzen-5-5600g 135 ryzen-5-5600x 159 ryzen-7-5700x 155 ryzen-7-5700x3d 313
    ryzen-7-5800x 180 ryzen-7-5800x3d 705 ryzen-9-5900x 255 ryzen-9-5950x 275
    ryzen-5-7600 197 ryzen-5-7600x 170 ryzen-7-7700 294 ryzen-7-7700x 243 ryzen-7-7800x3d 340
    ryzen-7-8700g 279 ryzen-9-7900 343 ryzen-9-7900x 314 ryzen-9-7950x 450 ryzen-9-7950x3d 769
    ryzen-5-9600x 205 ryzen-7-9700x 306 ryzen-7-9800x3d 452 ryzen-9-9900x 359
    ryzen-9-9900x3d 540 ryzen-9-9950x 534 ryzen-9-9950x3d 650
"""
"""Lowest prices of US shops in July 2025, rounded. Source: docyx/pc-part-dataset of 2025-07-23."""


def test_processors_cost_what_shops_asked() -> None:
    words = PROCESSORS.split()
    then = PriceBook(today=date(2025, 7, 31), assumed=assumed_prices())
    outside = []
    for id, asked in zip(words[::2], map(float, words[1::2]), strict=True):
        price = price_of(find_cpu(id), then, "USD")
        if not price.low <= asked <= price.high:
            outside.append((id, asked, price.low, price.high))
        assert price.high <= 3.7 * price.low  # it must say something
    assert outside == []


BOARDS = {
    "asus-rog-maximus-z790-hero": 540,
    "asus-proart-x870e-creator-wifi": 518,
    "asus-rog-crosshair-x870e-hero": 650,
    "gigabyte-x870e-aorus-master": 500,
    "msi-mpg-x870e-carbon-wifi": 500,
    "asrock-x870e-taichi": 469,
    "asus-rog-strix-x870e-e-gaming-wifi": 478,
    "asus-rog-strix-z890-e-gaming-wifi": 424,
    "msi-mag-b650-tomahawk-wifi": 189,
    "asus-tuf-gaming-b650-plus-wifi": 160,
    "asus-prime-b650m-a-ax-ii": 169,
    "msi-pro-z790-a-max-wifi": 220,
    "msi-mag-b550-tomahawk": 140,
}
"""The same for boards; of the first, assumed from its launch price."""


@pytest.mark.parametrize("id", BOARDS)
def test_boards_cost_what_shops_asked(id: str, shipped: PriceBook) -> None:
    price = price_of(find_board(id), shipped, "USD")
    assert price.low <= BOARDS[id] <= price.high


def test_no_board_of_a_highest_series_is_cheap(shipped: PriceBook) -> None:
    highest = ("maximus", "crosshair", "xtreme", "extreme")
    for board in list_parts("board"):
        if any(word in board.id for word in highest):
            assert price_of(board, shipped, "USD").expected >= 400, board.id


def test_a_small_drive_costs_more_than_its_flash(shipped: PriceBook) -> None:
    small = drive(interface="sata", capacity_gb=250)
    assert price_of(small, shipped, "USD").expected >= 50
    assert price_of(small, shipped, "KRW").expected >= 80_000
    per_tb = [
        price_of(drive(interface="nvme", pcie_generation=4, capacity_gb=gb), shipped, "USD")
        for gb in (250, 1000, 4000)
    ]
    assert per_tb[1].expected == pytest.approx(per_tb[2].expected / 4)
    assert per_tb[0].expected > per_tb[1].expected / 4
