"""What ships is marked as assumed, dated, in both currencies, and at the level of 2026."""

from datetime import date

import pytest

from trainwright.catalog import (
    CpuRecord,
    DriveRecord,
    MemoryRecord,
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
