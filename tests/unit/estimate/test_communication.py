"""Several GPUs in one machine: what joins them, what the exchange of gradients costs."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.catalog import GpuRecord
from trainwright.catalog.query import find_gpu
from trainwright.estimate.parallel.communication import (
    PATHS,
    Link,
    buckets,
    bus_bandwidth,
    exchange,
    host_link,
    link_between,
    load,
    ring,
    straggling,
)

PCIE4 = 31.5e9
"""Bytes/s each way over 16 lanes: 16 GT/s, 128b/130b."""


def card(name: str) -> GpuRecord:
    return find_gpu(name).record


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("rtx-4090", "host"),
        ("rtx-5090", "host"),
        ("rtx-3090", "host"),
        ("rtx-2080-ti", "host"),
        ("gtx-1080-ti", "peer"),
        ("rtx-a6000", "peer"),
        ("rtx-6000-ada", "peer"),
        ("l40s", "peer"),
        ("h100-80gb-pcie", "peer"),
        ("a100-40gb-sxm", "nvlink"),
        ("h100-80gb-sxm", "nvlink"),
        ("b200", "nvlink"),
        ("mi300x", "fabric"),
    ],
)
def test_cards_are_joined_as_their_maker_lets_them(name: str, path: str) -> None:
    assert link_between(card(name), 2).path == path


def test_a_bridge_is_there_only_where_someone_says_so_and_joins_two() -> None:
    a6000, bridged = card("rtx-a6000"), link_between(card("rtx-a6000"), 2, bridged=True)
    assert bridged.path == "bridge"
    assert bridged.bytes_per_s == pytest.approx(112.5e9 / 2)
    assert link_between(a6000, 2).assumed
    assert link_between(a6000, 4, bridged=True).path == "peer"
    assert link_between(card("rtx-4090"), 2, bridged=True).path == "host"


def test_each_two_modules_of_amd_have_a_link_so_that_more_of_them_have_more() -> None:
    """AMD, MI300X platform: 7 links of 128 GB/s, 896 GB/s of both directions with eight modules."""
    assert link_between(card("mi300x"), 8).bytes_per_s == pytest.approx(896e9 / 2)
    assert link_between(card("mi300x"), 2).bytes_per_s == pytest.approx(64e9)


def test_a_narrow_card_has_a_narrow_link() -> None:
    assert host_link(card("rtx-4090")).bytes_per_s == pytest.approx(PCIE4, rel=0.01)
    # The RTX 4060 Ti has eight lanes.
    assert host_link(card("rtx-4060-ti-16gb")).bytes_per_s == pytest.approx(PCIE4 / 2, rel=0.01)


@pytest.mark.parametrize(
    ("name", "count", "bridged", "gigabytes"),
    [
        # Bus bandwidth of large all-reduces: vidur's tables of A100, the nccl issue of RTX 5090.
        ("a100-80gb-sxm", 8, False, 174),
        ("a100-80gb-pcie", 2, True, 195),
        ("a100-80gb-pcie", 4, False, 23.7),
        ("rtx-5090", 8, False, 28),
    ],
)
def test_bus_bandwidth_is_near_what_was_measured(
    name: str, count: int, bridged: bool, gigabytes: float
) -> None:
    link = link_between(card(name), count, bridged=bridged)
    assert bus_bandwidth(count, link) == pytest.approx(gigabytes * 1e9, rel=0.45)


@given(st.floats(0, 1e12))
def test_buckets_hold_all_gradients(nbytes: float) -> None:
    sizes = buckets(nbytes)
    assert sum(size * number for size, number in sizes) == pytest.approx(nbytes)
    assert all(size <= 25 << 20 for size, _ in sizes)


@settings(max_examples=100)
@given(
    nbytes=st.floats(1e3, 1e11),
    more=st.floats(1, 10),
    count=st.integers(2, 15),
    backward=st.floats(0, 10),
    path=st.sampled_from(PATHS),
)
def test_more_bytes_and_more_gpus_never_take_less_time(
    nbytes: float, more: float, count: int, backward: float, path: str
) -> None:
    link = Link(path, PCIE4, assumed=False)  # type: ignore[arg-type]
    assert ring(count, link).seconds(nbytes) <= ring(count, link).seconds(more * nbytes)
    assert ring(count, link).seconds(nbytes) <= ring(count + 1, link).seconds(nbytes)
    cost = exchange(nbytes, count, link, step=2 * backward, backward=backward, bandwidth=1e12)
    assert 0 <= cost.hidden <= backward
    assert cost.hidden < cost.wire
    assert cost.exposed >= cost.copies + cost.straggling
    assert cost.exposed <= cost.works + 1e-12


def test_backward_hides_all_but_the_last_bucket_on_nvlink_and_little_on_pcie() -> None:
    """Two RTX 3090 without a bridge lose the same 100 ms whatever their backward pass takes."""
    server = link_between(card("h100-80gb-sxm"), 8)
    cost = exchange(1e9, 8, server, step=3.0, backward=2.0, bandwidth=3.35e12)
    last = ring(8, server).seconds(1e9 % (25 << 20))
    assert cost.wire - cost.hidden == pytest.approx(last, rel=0.5)
    pair = link_between(card("rtx-3090"), 2)
    short, long = (
        exchange(498e6, 2, pair, step=2 * each, backward=each, bandwidth=936e9)
        for each in (0.03, 0.09)
    )
    for cost in (short, long):
        # 498 MB of gradients of GPT-2 (transformers issue 9371): 101.2, 101.0 and 100.8 ms.
        assert cost.exposed - cost.straggling == pytest.approx(0.101, rel=0.1)


def test_a_few_bytes_of_adapters_cost_next_to_nothing() -> None:
    link = link_between(card("rtx-4090"), 2)
    whole = exchange(32e9, 2, link, step=3.0, backward=2.0, bandwidth=1e12)
    adapters = exchange(0.17e9, 2, link, step=3.0, backward=2.0, bandwidth=1e12)
    assert whole.exposed > 3.0
    assert adapters.exposed < 0.1


def test_one_gpu_exchanges_nothing() -> None:
    cost = exchange(1e9, 1, link_between(card("rtx-4090"), 1), step=1, backward=1, bandwidth=1e12)
    assert cost.exposed == cost.works == 0


def test_all_wait_longer_for_the_slowest_of_more() -> None:
    waits = [straggling(count) for count in (1, 2, 4, 8, 64)]
    assert waits[0] == 0
    assert waits == sorted(waits)
    assert straggling(8, varied=True) > straggling(8)
    assert waits[-1] < 0.1


def test_every_constant_says_where_it_comes_from() -> None:
    calibration = load()
    groups = [calibration.bus_share, calibration.crowding, calibration.contention]
    lanes = calibration.pcie_bytes_per_s_per_lane
    for entry in [*lanes.values(), *(each for group in groups for each in group.values())]:
        assert entry.source
    assert set(calibration.bus_share) == set(PATHS)
    assert all(0 < entry.value < 1 for entry in calibration.bus_share.values())


def test_slots_of_half_the_lanes_take_twice_the_time() -> None:
    wide = link_between(card("rtx-4090"), 2)
    narrow = replace(wide, bytes_per_s=wide.bytes_per_s / 2)
    assert ring(2, narrow).seconds(1e9) == pytest.approx(2 * ring(2, wide).seconds(1e9), rel=0.01)
