"""What shops sell: a card that nobody makes any more is bought used, or where one was seen; of
boards at one price the one that nobody must flash with another processor."""

from dataclasses import replace
from datetime import date

from trainwright.build.offers import Market
from trainwright.build.request import Wishes
from trainwright.build.sites import Around
from trainwright.catalog import find_board, find_cpu, find_gpu
from trainwright.prices import Observation, price_book
from trainwright.prices.book import by_part

TODAY = date(2026, 11, 29)


def cards(wishes, *seen):
    book = replace(price_book(TODAY), observations=by_part(seen))
    market = Market(book, "USD", wishes)
    return {card.id: market.offer("gpu", card).price for card in market.cards()}


def test_a_card_out_of_sale_is_not_offered_as_new():
    new = cards(Wishes())
    for gone in ("rtx-4090", "rtx-4080-super", "rtx-3090", "rx-7900-xtx", "rtx-6000-ada"):
        assert gone not in new, gone
    for sold in ("rtx-5090", "rtx-5060-ti-16gb", "rx-9070-xt", "rtx-pro-6000-max-q"):
        assert new[sold].condition == "new"


def test_a_card_without_a_rate_is_not_timed_by_its_bandwidth_alone():
    """A person's own record may leave FLOP/s out: it would look faster than it is."""
    known = find_gpu("rtx-5070").record
    bare = known.model_copy(update={"id": "bare", "flops": {}})
    market = Market(price_book(TODAY), "USD", Wishes(), {"gpu": [known, bare]})
    assert [card.id for card in market.cards()] == ["rtx-5070"]
    assert market.unrated == {"bare"}


def test_every_card_on_sale_has_a_rate():
    market = Market(price_book(TODAY), "USD", Wishes(used=True))
    assert len(list(market.cards())) > 50
    assert not market.unrated


def test_it_is_offered_used_where_that_is_wished():
    used = cards(Wishes(used=True))
    assert used["rtx-3090"].condition == "used"
    assert used["rtx-4090"].condition == "used"


def test_a_shops_price_of_it_shows_that_it_is_sold():
    seen = Observation(
        part_kind="gpu", part="rtx-4090", amount=2400, currency="USD", kind="new", observed=TODAY
    )
    assert cards(Wishes(), seen)["rtx-4090"].expected == 2400
    assert find_gpu("rtx-4090").record.architecture == "Ada"


def test_processors_and_boards_out_of_sale_are_not_offered_as_new():
    for wishes, sold in ((Wishes(), False), (Wishes(used=True), True)):
        market = Market(price_book(TODAY), "USD", wishes)
        for cpu in ("i9-9900k", "i7-10700k", "ryzen-7-3700x", "ryzen-threadripper-1950x"):
            assert (market.offer("cpu", find_cpu(cpu)).price is not None) == sold, cpu
        for board in ("msi-z390-a-pro", "gigabyte-z490-vision-d", "gigabyte-x399-designare-ex"):
            assert (market.offer("board", find_board(board)).price is not None) == sold, board
        assert market.offer("cpu", find_cpu("ryzen-7-5700x")).price is not None


def test_of_boards_at_one_price_the_one_that_flashes_itself_comes_first():
    """A Core i5-14400F is younger than the B760, and only one of the two boards has a button."""
    boards = ("ASRock Phantom Gaming B760I Lightning WiFi", "Gigabyte B760 GAMING X AX DDR4")
    sold = {"cpu": (find_cpu("i5-14400f"),), "board": tuple(map(find_board, boards))}
    market = Market(price_book(TODAY), "USD", Wishes(), sold)
    frames = Around(market, Wishes()).frames
    assert frames[0].cost == frames[1].cost
    assert [frame.board.name for frame in frames] == [*reversed(boards)]
