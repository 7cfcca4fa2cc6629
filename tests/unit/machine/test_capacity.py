"""What CUDA offers of a card, against public readings of such cards."""

import numpy as np
import pytest

from trainwright.catalog import Capacity, GpuRecord, catalog
from trainwright.explain import Kind
from trainwright.machine.capacity import (
    KEPT_BYTES,
    KEPT_RANGE,
    KEPT_SHARE,
    capacity,
    nominal_total,
)
from trainwright.machine.slice import sliced

GIB = 1 << 30
MIB = 1 << 20


def records() -> list[GpuRecord]:
    known = catalog()
    return [known.record(id) for id in known.ids]


def read_on(record: GpuRecord, system: str) -> list[Capacity]:
    return [one for one in record.capacities if one.system == system and one.ecc is None]


def by_rule(record: GpuRecord) -> bool:
    return record.vendor == "NVIDIA" and not record.unified_memory


def without(record: GpuRecord, reading: Capacity) -> GpuRecord:
    left = tuple(one for one in record.capacities if one is not reading)
    return record.model_copy(update={"capacities": left})


def test_sixty_cards_have_been_read_and_no_reading_is_beyond_its_card() -> None:
    read = [record for record in records() if record.capacities]
    assert len(read) >= 60
    for record in read:
        for one in record.capacities:
            assert 0.9 < one.bytes / record.memory_bytes.value <= 1, (record.id, one)


@pytest.mark.parametrize(
    ("id", "torch_gib"),
    [
        # "GPU 0 has a total capacity of ..." in torch's out-of-memory errors of users.
        ("t4", 14.56),
        ("rtx-3060-12gb", 11.76),
        ("a10g", 21.99),
        ("rtx-3090", 23.69),
        ("v100-16gb-sxm", 15.78),
        ("rtx-a6000", 47.46),
        ("h100-80gb-sxm", 79.22),
        ("h200-141gb-sxm", 139.72),
        ("rtx-3080-10gb", 9.65),  # 9.78 with drivers of 2023
        ("rtx-4090", 23.64),
        ("rtx-5090", 31.36),
    ],
)
def test_what_torch_reports_on_a_card_is_expected_of_it(id: str, torch_gib: float) -> None:
    found = capacity(catalog().record(id), "linux")
    assert found.kind is Kind.QUOTED
    assert found.note is not None
    assert found.source
    assert found.interval is not None
    assert found.interval.low <= torch_gib * GIB <= found.interval.high
    assert found.value / GIB == pytest.approx(torch_gib, rel=0.0125)


def test_readings_left_out_one_at_a_time_lie_where_the_others_say() -> None:
    inside = []
    for record in filter(by_rule, records()):
        for one in read_on(record, "linux"):
            interval = capacity(without(record, one), "linux").interval
            assert interval is not None
            inside.append(interval.low <= one.bytes <= interval.high)
    print(f"readings within their interval, left out one at a time: {np.mean(inside):.1%}")
    assert len(inside) >= 100
    assert np.mean(inside) >= 0.95


def test_the_rule_holds_for_cards_that_it_was_not_fitted_on() -> None:
    cards = [one for one in records() if by_rule(one) and read_on(one, "linux")]
    cards = [one for one in cards if (one.compute_capability or (0, 0)) >= (7, 5)]
    newest = [max(read_on(one, "linux"), key=lambda each: each.seen).bytes for one in cards]
    totals = np.array([nominal_total(one).value for one in cards])
    kept = totals - np.array(newest)

    share, base = np.polyfit(totals, kept, 1)
    assert base == pytest.approx(KEPT_BYTES, rel=0.02)
    assert share == pytest.approx(KEPT_SHARE, rel=0.02)
    inside = []
    for row, card in enumerate(cards):
        others = np.arange(len(cards)) != row
        expected = np.polyval(np.polyfit(totals[others], kept[others], 1), totals[row])
        for one in read_on(card, "linux"):
            ratio = (totals[row] - one.bytes) / expected
            inside.append(KEPT_RANGE[0] <= ratio <= KEPT_RANGE[1])
    print(
        f"readings within the rule's interval, cards left out one at a time: {np.mean(inside):.1%}"
    )
    assert np.mean(inside) >= 0.95


def test_windows_reports_all_that_the_driver_does() -> None:
    for record in filter(by_rule, records()):
        for one in read_on(record, "windows"):
            apart = abs(capacity(without(record, one), "windows").value / one.bytes - 1)
            assert apart < 0.002, (record.id, one)


def test_a_card_that_nobody_read_says_so() -> None:
    found = capacity(catalog().record("rtx-4500-ada"), "linux")
    assert found.kind is Kind.ASSUMED
    assert found.note is not None
    assert found.note.id == "machine.capacity-by-rule"
    assert found.interval is not None
    assert found.interval.low < found.value < found.interval.high < 24 * GIB


def test_cards_are_taken_as_they_come_where_somebody_turned_ecc_on() -> None:
    card = catalog().record("rtx-a5000")
    on = Capacity(bytes=22721 * MIB, source="a public log", seen="2026-12", ecc=True)
    read = card.model_copy(update={"capacities": (*card.capacities, on)})
    assert capacity(read, "linux") == capacity(card, "linux")


@pytest.mark.parametrize(
    ("id", "profile", "torch_mib"),
    [
        # torch's total_memory on instances.
        ("a100-80gb-pcie", "1g.10gb", 9728),
        ("h100-80gb-sxm", "1g.10gb", 9.75 * 1024),
        ("h100-80gb-sxm", "4g.40gb", 39.5 * 1024),
    ],
)
def test_an_instance_offers_what_its_table_says(id: str, profile: str, torch_mib: float) -> None:
    found = capacity(sliced(catalog().record(id), profile).record, "linux")
    assert found.value / MIB == pytest.approx(torch_mib, rel=0.002)
