"""Several cards are left untimed where one of them says enough: its bound is never too high."""

import importlib

import pytest

from trainwright.advise.choose import STORED
from trainwright.build import Request, Wishes, money
from trainwright.build.offers import Market
from trainwright.build.speeds import Speeds
from trainwright.build.works import works_of
from trainwright.data import resources
from trainwright.plan import file

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
