"""What the search leaves alone could not have won: bounds hold, and answers are the same."""

import random

import pytest

from trainwright.advise.choose import STORED
from trainwright.build import Money, Request, Wishes
from trainwright.build.offers import Market, Record
from trainwright.build.search import _Search, _undominated
from trainwright.catalog import PartKind, find_gpu, list_parts
from trainwright.plan.schema import Plan
from trainwright.prices import price_book

CARDS = (
    "rtx-4060-ti-16gb",
    "rtx-5060-ti-16gb",
    "rtx-5070",
    "rtx-5070-ti",
    "rtx-5080",
    "rtx-5090",
    "radeon-ai-pro-r9700",
)
AROUND: tuple[PartKind, ...] = ("cpu", "board", "memory", "storage", "psu", "case", "cooler")
WORK: dict[str, dict[str, object]] = {
    "synthetic": {},
    "files": {"dataset": {"layout": "files", "sample_kib": 110, "decode": "jpeg"}, "epochs": 4},
}


def searching(seed: int, work: str) -> _Search:
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": "resnet50"},
            "workload": {
                "task": "pretrain", "effective_batch": 256, "samples": 100_000, **WORK[work],
            },
            "settings": {"precision": "bf16-mixed", "channels_last": False},
            "machine": {"gpus": [{"id": "rtx-4070"}]},
        }
    )  # fmt: skip
    rng = random.Random(seed)
    shelves: dict[PartKind, tuple[Record, ...]] = {}
    shelves["gpu"] = tuple(find_gpu(id).record for id in CARDS)
    for kind in AROUND:
        records = [one for one in list_parts(kind) if getattr(one, "socket", "AM5") == "AM5"]
        shelves[kind] = tuple(rng.sample(records, min(14, len(records))))
    market = Market(price_book(), "USD", Wishes(), shelves)
    return _Search(Request(plan, Money(4000, "USD")), STORED, market)


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("seed", range(2))
def test_leaving_choices_alone_changes_nothing(seed: int, work: str) -> None:
    search = searching(seed, work)
    choices = list(search._choices())
    assert choices
    some, every = search._outcomes(choices), search._outcomes(choices, every=True)
    assert _undominated([*some[1], *some[0]]) == _undominated([*every[1], *every[0]])
    assert _undominated(some[1]) == _undominated(every[1])
    assert sum(map(len, some)) < sum(map(len, every)), "something is left alone here"
    least = {choice.cards.key: choice.least for choice in choices}
    for one in (*every[0], *every[1]):
        bound = least[one.cards.key]
        assert bound.cost <= one.cost
        assert bound.seconds <= one.seconds
        assert bound.watts <= one.watts
