"""Power limits and boards that cannot feed their own boost clock."""

from itertools import pairwise

import pytest

from trainwright.catalog import find_gpu, list_gpus
from trainwright.estimate.power import board_share, limit_share, sustained_share


def test_no_limit_takes_nothing_from_a_card_that_feeds_its_clock() -> None:
    assert sustained_share(find_gpu("rtx-4090").record) == 1
    assert sustained_share(find_gpu("rtx-3090").record, 350) == 1


def test_a_300_watt_part_sustains_less_than_its_600_watt_sibling() -> None:
    small, large = (
        find_gpu(id).record for id in ("rtx-pro-6000-max-q", "rtx-pro-6000-workstation")
    )
    assert board_share(large) == 1
    assert board_share(small) == pytest.approx(0.68, abs=0.01)


def test_the_first_watts_are_free_and_the_last_are_dear() -> None:
    record = find_gpu("rtx-3090").record
    shares = [limit_share(record, watts) for watts in (350, 300, 250, 200, 150)]
    assert shares[0] == shares[1] == 1
    lost = [before - after for before, after in pairwise(shares)]
    assert lost == sorted(lost)


def test_a_limit_above_the_boards_power_gives_nothing() -> None:
    record = find_gpu("rtx-4090").record
    assert limit_share(record, 600) == limit_share(record, 450) == 1


def test_a_server_card_needs_what_its_board_may_draw() -> None:
    assert limit_share(find_gpu("h100-80gb-sxm").record, 500) < 1
    assert limit_share(find_gpu("a100-80gb-sxm").record, 330) < 1


def test_what_the_catalog_does_not_say_bounds_nothing() -> None:
    apple = find_gpu("apple-m2-max").record
    assert apple.tdp_w is None
    assert sustained_share(apple, 30) == 1


def test_every_card_keeps_a_share_between_nothing_and_all() -> None:
    for record in list_gpus():
        for limit in (None, 50.0, 200.0, 1000.0):
            assert 0 < sustained_share(record, limit) <= 1
