"""What the computer around some cards must have, as people who build such machines ask."""

from types import SimpleNamespace

import pytest

from trainwright.build.sizing import needs
from trainwright.build.speeds import Cards
from trainwright.catalog import find_gpu
from trainwright.plan.file import validated

SERVING = {
    "trainwright": 1,
    "name": "serving",
    "model": {"preset": "llama-3.1-8b"},
    "workload": {
        "task": "infer",
        "inputs": {"prompt_tokens": 1024, "new_tokens": 256, "concurrent": 1},
    },
    "machine": {"gpus": [{"id": "rtx-3090"}]},
}


def around(id: str, count: int):
    plan = validated(SERVING, str)
    facts = SimpleNamespace(profile=SimpleNamespace(model={"parameters": 8e9}))
    settings = SimpleNamespace(optimizer_offload=None, activation_offload=False)
    return needs(plan, facts, Cards(find_gpu(id).record, count), SimpleNamespace(settings=settings))


@pytest.mark.parametrize(
    ("id", "count", "least"), [("rtx-3090", 2, 48), ("rtx-pro-6000-max-q", 4, 384)]
)
def test_memory_holds_what_all_cards_hold(id: str, count: int, least: float) -> None:
    assert around(id, count).memory_gib >= least


def test_a_drive_has_room_for_more_than_the_system() -> None:
    """An expert refuses a 250 GB drive beside cards of 20,000 USD."""
    assert around("rtx-5060-ti-16gb", 1).drive_gb >= 500
