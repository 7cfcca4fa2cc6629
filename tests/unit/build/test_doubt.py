"""Which computer comes first: the surer one, or the cheaper one, where the lead is small."""

from dataclasses import replace

import pytest

from trainwright.build import Candidate, Request, Step, money, search
from trainwright.build.doubt import checked, doubted
from trainwright.build.thrift import simpler, thrifty
from trainwright.data import resources
from trainwright.explain import Interval
from trainwright.machine.build import Check
from trainwright.messages import Message, render
from trainwright.plan import file
from trainwright.plan.schema import Plan


@pytest.fixture(scope="module")
def pair() -> list[Candidate]:
    plan = file.read(resources("examples", "gpt2-rtx4070.plan.yaml"))
    return list(search(Request(plan, money("3000000KRW"))).builds[:2])


def timed(one: Candidate, hours: float, factor: float) -> Candidate:
    """Return the computer with a time that is known by a factor either way."""
    found, seconds = one.report.time.run_seconds, hours * 3600
    assert found is not None
    between = Interval(seconds / factor, seconds * factor)
    run = replace(found, value=seconds, interval=between)
    report = replace(one.report, time=replace(one.report.time, run_seconds=run))
    return replace(one, report=report, doubt=None)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ((100.0, 2.0), (104.0, 1.2), True),  # nobody knows which is faster; the second is surer
        ((100.0, 1.2), (104.0, 2.0), False),  # the first is the surer one itself
        ((100.0, 1.2), (104.0, 1.2), False),  # both are known alike: the faster guess leads
        ((100.0, 1.4), (180.0, 1.1), False),  # the second is slower whatever the errors
    ],
)
def test_the_surer_computer_leads_where_the_lead_is_within_what_is_known(
    pair: list[Candidate], first: tuple[float, float], second: tuple[float, float], told: bool
) -> None:
    leader, other = doubted([timed(pair[0], *first), timed(pair[1], *second)])
    assert (leader.doubt is not None, other.doubt) == (told, None)
    assert leader.build == pair[told].build
    if leader.doubt is not None:
        said = render(leader.doubt, "en")
        names = [f"{one.build.gpu_count} × {one.build.gpus[0].record.name}" for one in pair]
        assert f"The surer choice is {names[1]}" in said
        assert "5 d 5 h in 95 of 100 cases" in said, "104 h times 1.2"
        assert f"{names[0]} is expected to be faster" in said
        assert "up to 8 d 8 h" in said, "100 h times 2"


def test_a_guess_leads_only_where_even_a_bad_one_would() -> None:
    """Two RX 9070 XT look faster, but no time of AMD's GPUs was measured."""
    workload = {
        "task": "qlora", "inputs": {"sequence_length": 2048}, "effective_batch": 16,
        "samples": 52_000,
    }  # fmt: skip
    document = {
        "trainwright": 1, "model": {"preset": "llama-3.1-8b"}, "workload": workload,
        "machine": {"gpus": [{"id": "rtx-4090"}]},
    }  # fmt: skip
    found = search(Request(Plan.model_validate(document), money("3000USD"))).builds
    vendors = [one.build.gpus[0].record.vendor for one in found]
    assert vendors[0] == "NVIDIA"
    assert "AMD" in vendors, "it is still shown, behind what is sure"
    amd = found[vendors.index("AMD")]
    assert amd.seconds < found[0].seconds < amd.time.interval.high
    assert all(one.seconds <= amd.time.interval.high for one in found[: vendors.index("AMD")])
    assert "no measured time of AMD GPUs confirms it" in render(found[0].doubt, "en")


def test_the_first_is_the_same_however_many_are_asked_for(pair: list[Candidate]) -> None:
    plan = file.read(resources("examples", "gpt2-rtx4070.plan.yaml"))
    alone = search(Request(plan, money("3000000KRW"), top=1)).builds
    assert [one.build for one in alone] == [pair[0].build]


def costing(one: Candidate, amount: float, hours: float, factor: float = 1.2) -> Candidate:
    made = timed(replace(one, thrift=None), hours, factor)
    return replace(made, total=replace(made.total, expected=amount))


@pytest.mark.parametrize(
    ("faster", "cheaper", "swapped"),
    [
        ((5_891_000, 100), (4_000_000, 102), True),  # 2 % for half as much again
        ((4_010_000, 100), (4_000_000, 104), False),  # 4 % for next to nothing
        ((5_891_000, 100), (4_000_000, 110), False),  # 10 % is noticed
    ],
)
def test_little_speed_for_much_money_does_not_come_first(
    pair: list[Candidate], faster: tuple[float, float], cheaper: tuple[float, float], swapped: bool
) -> None:
    dear, cheap = (costing(pair[0], *each) for each in (faster, cheaper))
    first, second = thrifty([dear, cheap])
    assert first.total.expected == (cheaper if swapped else faster)[0]
    assert (first.thrift is not None, second.thrift) == (swapped, None)
    if first.thrift is not None:
        said = render(first.thrift, "en")
        assert "2.0 % faster" in said
        assert "1,891,000" in said


@pytest.mark.parametrize(("hours", "led"), [(111, True), (130, False)])
def test_an_owned_card_is_not_left_idle_for_a_little_speed(
    pair: list[Candidate], hours: float, led: bool
) -> None:
    """Who owns an RTX 3090 does not buy an RTX 3090 Ti for 11 %."""
    bought, own = costing(pair[0], 1_482, 100), costing(pair[0], 1_086, hours)
    card, *rest = own.parts
    own = replace(own, parts=(replace(card, owned=card.count), *rest))
    first, second = thrifty([bought, own])
    assert (first.total.expected == 1_086) == led
    assert (first.thrift is not None) == led
    assert second.thrift is None
    if first.thrift is not None:
        assert "leaves your own card idle" in render(first.thrift, "en")


def test_a_guess_does_not_come_first_for_being_cheap(pair: list[Candidate]) -> None:
    sure, guess = costing(pair[0], 4_000_000, 100, 1.1), costing(pair[0], 3_000_000, 100.5, 1.6)
    assert thrifty([sure, guess])[0].total.expected == 4_000_000


@pytest.mark.parametrize(
    ("before", "more", "gain", "worth"),
    [
        (4_000, 5_200, 0.057, False),  # more than twice the price for 5.7 %
        (3_500, 2_000, 0.40, True),  # a 5090 in place of a 4090
        (2_000, 2_000, 0.96, True),  # twice the cards
        (5_000, 100, 0.05, True),
    ],
)
def test_a_step_is_worth_it_by_what_its_price_grows(
    before: float, more: float, gain: float, worth: bool
) -> None:
    assert Step(Message.of("planner.fits"), more, before + more, gain).worth == worth


def test_what_cannot_be_checked_comes_after_what_passes(pair: list[Candidate]) -> None:
    """An expert buys no card of which nobody says whether it fits, while another one does."""
    hole = Check("G1", "unknown", Message.of("build.title.g1"), missing=("gpu.length_mm",))
    fast, slow = replace(pair[0], checks=(hole,)), replace(pair[1], checks=())
    system = replace(timed(pair[1], 300.0, 1.2), checks=())
    shown, said = checked([timed(fast, 10.0, 1.2), timed(slow, 200.0, 1.2)], [system])
    assert [len(one.unknown) for one in shown] == [0, 0, 1]
    [note] = said
    assert "Length of the card" in render(note, "en")
    assert checked([fast], []) == ((fast,), ()), "alone it is better than nothing"


@pytest.mark.parametrize(
    ("hours", "count", "memory", "leads"),
    [
        (11.0, 1, 1.5, True),  # a tenth slower, but one larger card
        (11.0, 1, 0.5, False),  # a smaller card does less
        (12.0, 1, 1.5, False),  # a fifth is too much to give up
        (11.0, 2, 1.5, False),  # as many cards
    ],
)
def test_one_large_card_leads_before_two_small_ones_that_are_about_as_fast(
    pair: list[Candidate], hours: float, count: int, memory: float, leads: bool
) -> None:
    cards = pair[0].build.gpus[0]
    size = cards.record.memory_bytes
    larger = cards.record.model_copy(
        update={"memory_bytes": size.model_copy(update={"value": size.value * memory})}
    )
    two = replace(pair[0], build=replace(pair[0].build, gpus=(replace(cards, count=2),)))
    other = replace(cards, record=larger, count=count)
    one = replace(pair[0], build=replace(pair[0].build, gpus=(other,)))
    found = simpler([timed(two, 10.0, 1.2), timed(one, hours, 1.2)])
    assert (found[0].build == one.build) == leads
    if leads:
        assert "10 % faster" in render(found[0].thrift, "en")
