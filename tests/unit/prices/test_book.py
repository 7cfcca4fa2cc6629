"""What a part costs: by its owner's prices as they age, by launch prices, by its class."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.catalog import CpuRecord, MemoryRecord, PsuRecord, find_gpu
from trainwright.prices import (
    AssumedPrice,
    PriceBook,
    Rate,
    Wish,
    has_expired,
    price_of,
    total_of,
)
from trainwright.prices.ageing import freshness
from trainwright.prices.book import by_part

PSU = PsuRecord(id="rm1000x", name="RM1000x", watts=1000, source="test", confidence="low")
CPU = CpuRecord(
    id="ryzen-9-9950x",
    name="AMD Ryzen 9 9950X",
    vendor="AMD",
    architecture="Zen 5",
    cores=16,
    threads=32,
    boost_ghz=5.7,
    launch="2024-08-15",
    msrp_usd=649,
    source="test",
    confidence="low",
)
KIT = MemoryRecord(
    id="kit-32",
    name="DDR5 kit",
    type="ddr5",
    module="udimm",
    modules=2,
    module_gib=16,
    mts=6000,
    source="test",
    confidence="low",
)


def book(*seen, **more):
    return PriceBook(today=more.pop("today", date(2026, 7, 1)), observations=by_part(seen), **more)


@pytest.mark.parametrize(
    ("days", "state", "spread"),
    [
        (0, "fresh", 0.05),
        (14, "fresh", 0.05),
        (15, "ageing", 0.10),
        (45, "ageing", 0.10),
        (46, "stale", 0.25),
        (120, "stale", 0.25),
    ],
)
def test_an_interval_widens_with_its_age(seen, days, state, spread):
    price = price_of(PSU, book(seen(200, days)), "USD")
    assert price.freshness == state
    assert (price.low, price.expected, price.high) == pytest.approx(
        (200 * (1 - spread), 200, 200 * (1 + spread))
    )


def test_an_expired_price_counts_only_where_it_is_accepted(seen):
    old = book(seen(200, 121))
    assert price_of(PSU, old, "USD") is None
    assert has_expired(PSU, old)
    accepted = book(seen(200, 121), accept_expired=True)
    assert price_of(PSU, accepted, "USD").expected == 200
    assert price_of(PSU, accepted, "USD").freshness == "expired"


@pytest.mark.parametrize(
    ("days", "state"),
    [(7, "fresh"), (8, "ageing"), (22, "ageing"), (23, "stale"), (60, "stale"), (61, "expired")],
)
def test_prices_of_moving_markets_age_twice_as_fast(days, state):
    assert freshness(days, moving=True) == state


def test_memory_moves_until_its_own_prices_say_that_it_rests(seen):
    kit = {"part": "kit-32", "part_kind": "memory"}
    assert price_of(KIT, book(seen(375, 10, **kit)), "USD").freshness == "ageing"
    calm = [seen(amount, days, **kit) for amount, days in ((370, 80), (372, 40), (375, 10))]
    assert price_of(KIT, book(*calm), "USD").freshness == "fresh"
    wild = [seen(amount, days, **kit) for amount, days in ((100, 80), (240, 40), (375, 10))]
    assert price_of(KIT, book(*wild), "USD").freshness == "ageing"


def test_an_offer_holds_to_its_last_day(seen):
    offer = seen(200, 40, kind="quote", valid_until=date(2026, 7, 1))
    assert price_of(PSU, book(offer), "USD").freshness == "fresh"
    assert price_of(PSU, book(offer, today=date(2026, 7, 2)), "USD") is None


def test_only_the_freshest_prices_count_and_their_median_is_expected(seen):
    price = price_of(PSU, book(seen(150, 100), seen(200, 3), seen(210, 2), seen(290, 1)), "USD")
    assert (price.expected, price.n) == (210, 3)
    assert price.low == pytest.approx(190)
    assert price.high == pytest.approx(304.5)


def test_new_and_used_are_two_candidates(seen):
    card = find_gpu("rtx-3090").record
    own = {"part": card.id, "part_kind": "gpu"}
    known = book(
        seen(1500, 1, **own),
        seen(700, 1, kind="used", **own),
        seen(750, 1, kind="user", condition="refurbished", **own),
    )
    assert price_of(card, known, "USD").expected == 1500
    used = price_of(card, known, "USD", used=True)
    assert (used.expected, used.n) == (725, 2)


def test_a_launch_price_alone_gives_a_wide_interval():
    """The RTX 5090's 1999 USD became 3050 (27 shops in July 2025)."""
    price = price_of(find_gpu("rtx-5090").record, book(), "USD")
    assert (price.low, price.high) == pytest.approx((1999, 1999 * 1.8))
    assert price.low < 3050 < price.high
    assert price.kind == "msrp"
    assert price.observed == date(2025, 1, 30)


def test_a_launch_price_is_no_price_of_a_used_part():
    assert price_of(CPU, book(), "USD", used=True) is None


def test_ones_own_price_comes_before_a_launch_price(seen):
    own = seen(540, 1, part=CPU.id, part_kind="cpu")
    assert price_of(CPU, book(own), "USD").kind == "new"
    assert price_of(CPU, book(), "USD").kind == "msrp"


def test_a_class_price_says_that_it_is_assumed_and_of_what():
    per_gib = AssumedPrice(
        name="DDR5 UDIMM, per GiB",
        part="memory",
        where={"type": "ddr5", "module": ("udimm", "cudimm")},
        per="gib",
        usd=(9, 12, 16),
        assumed=date(2026, 7, 1),
        basis="press",
    )
    price = price_of(KIT, book(assumed=(per_gib,)), "USD")
    assert (price.low, price.expected, price.high) == (288, 384, 512)
    assert (price.kind, price.basis) == ("assumed", "DDR5 UDIMM, per GiB")
    a_year_on = price_of(KIT, book(assumed=(per_gib,), today=date(2027, 7, 1)), "USD")
    assert a_year_on.high == pytest.approx(512 * 1.25)


def test_without_a_rate_nothing_is_converted(seen):
    dollars = seen(200, 1)
    assert price_of(PSU, book(dollars), "KRW") is None
    total = total_of([Wish(PSU, 2)], book(dollars), "KRW")
    assert total.unconverted == ("rm1000x",)
    assert total.expected is None
    assert total.others[0].expected == 400
    assert not total.complete


def test_with_a_rate_a_price_from_abroad_gets_korean_tax(seen):
    rate = Rate(1400, date(2026, 6, 30))
    price = price_of(PSU, book(seen(200, 1, tax="excluded"), rate=rate), "KRW")
    assert price.expected == pytest.approx(200 * 1400 * 1.10)
    assert price.rate == rate
    back = price_of(PSU, book(seen(308_000, 1, currency="KRW"), rate=rate), "USD")
    assert back.expected == pytest.approx(200)


def test_a_korean_quote_without_tax_is_counted_with_it(seen):
    quoted = seen(300_000, 1, currency="KRW", kind="quote", tax="excluded")
    assert price_of(PSU, book(quoted), "KRW").expected == pytest.approx(330_000)


def test_an_unpriced_part_is_named_and_never_nothing(seen):
    nameless = PsuRecord(id="no-name", name="x", watts=500, source="test", confidence="low")
    total = total_of([Wish(PSU), Wish(nameless)], book(seen(200, 1)), "USD")
    assert (total.expected, total.unpriced) == (200, ("no-name",))
    assert total_of([Wish(nameless)], book(), "USD").expected is None
    assert total_of([], book(), "USD").expected == 0


def test_a_total_is_as_old_as_its_oldest_price(seen):
    old = seen(700, 30, part=CPU.id, part_kind="cpu")
    total = total_of([Wish(PSU), Wish(CPU)], book(seen(200, 1), old), "USD")
    assert total.oldest == date(2026, 6, 1)


@given(st.integers(0, 120), st.integers(0, 120))
def test_an_older_price_is_never_surer(first, second):
    def width(days):
        from trainwright.prices import Observation

        one = Observation(
            part_kind="psu",
            part=PSU.id,
            amount=100,
            currency="USD",
            kind="new",
            observed=date(2026, 7, 1) - timedelta(days=days),
        )
        price = price_of(PSU, book(one), "USD")
        return price.high - price.low

    if first <= second:
        assert width(first) <= width(second)
