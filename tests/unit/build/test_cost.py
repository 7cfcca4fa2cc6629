"""What a run costs, by hand from the published tariff; and when buying is cheaper than renting."""

import importlib

import pytest

from trainwright.advise.choose import STORED
from trainwright.build import Request, Wishes, money
from trainwright.build.cost import break_even_hours, krw_bill, ownership, run_cost
from trainwright.build.offers import Market
from trainwright.build.speeds import Speeds
from trainwright.build.works import works_of
from trainwright.data import resources
from trainwright.plan import file


@pytest.mark.parametrize(
    ("kwh", "won"),
    [
        (0, 0),
        # 120 won for each kWh, 9 for climate and 5 for fuel; 10 % VAT and 2.7 % for the fund.
        (200, 200 * 134 * 1.127),
        (400, (200 * 134 + 200 * 228.6) * 1.127),
        (500, (200 * 134 + 200 * 228.6 + 100 * 321.3) * 1.127),
    ],
)
def test_a_months_bill_follows_the_published_tiers(kwh: float, won: float) -> None:
    assert krw_bill(kwh) == pytest.approx(won)


def test_a_run_is_paid_at_the_tiers_that_it_adds_to_the_households_use() -> None:
    """1 kW for 240 hours on top of 300 kWh: 100 kWh to the end of the second tier, 140 above."""
    cost = run_cost(1000, 240, "KRW")
    assert cost.kwh == 240
    assert cost.energy == pytest.approx((100 * 228.6 + 140 * 321.3) * 1.127)
    alone = run_cost(1000, 240, "KRW", household_kwh=0)
    assert alone.energy == pytest.approx((200 * 134 + 40 * 228.6) * 1.127)
    above = run_cost(1000, 240, "KRW", household_kwh=1000)
    assert above.per_hour == pytest.approx(321.3 * 1.127), "362 won for each kWh of the third tier"


def test_a_run_of_several_months_climbs_the_tiers_anew_in_each() -> None:
    """At 500 W for four months of 730 hours: 365 kWh in each, on top of nothing."""
    cost = run_cost(500, 4 * 730, "KRW", household_kwh=0)
    assert cost.energy == pytest.approx(4 * (200 * 134 + 165 * 228.6) * 1.127)


def test_dollars_are_paid_by_one_rate() -> None:
    assert run_cost(450, 100, "USD", usd_per_kwh=0.20).energy == pytest.approx(9.0)
    assert run_cost(450, 0, "USD").per_hour == 0


def test_buying_beats_renting_after_the_hours_that_save_its_price() -> None:
    """3,000 dollars against 1.10 an hour, of which 0.10 goes into one's own outlet."""
    assert break_even_hours(3000, 1.10, 0.10) == pytest.approx(3000)
    assert break_even_hours(3000, 0.10, 0.10) is None
    assert break_even_hours(3000, 0.05, 0.10) is None, "never, where the cloud is cheaper still"


def test_owning_costs_parts_and_energy_less_what_they_are_sold_for() -> None:
    assert ownership(3000, 0.10, 5000, resale=800) == pytest.approx(2700)


search = importlib.import_module("trainwright.build.search")


@pytest.mark.parametrize("example", ["gpt2-rtx4070", "resnet50-rtx3060"])
def test_several_cards_are_never_faster_cheaper_or_thriftier_than_one_says(example: str) -> None:
    plan = file.read(resources("examples", f"{example}.plan.yaml"))
    request = Request(plan, money("8000USD"), Wishes(used=True))
    works, run = works_of(request, [Speeds(plan, STORED)])
    found = search._Search(request, Market.of(request), works, run)
    several = [choice for choice in found._choices() if choice.work is None]
    timed = ((choice, found._timed(choice)) for choice in several)
    known = [(bound.least, real.least) for bound, real in timed if real is not None]
    assert len(known) > 50
    for bound, real in known:
        assert real.seconds >= bound.seconds * (1 - 1e-9)
        assert real.cost >= bound.cost * (1 - 1e-9)
        assert real.watts >= bound.watts * (1 - 1e-9)
