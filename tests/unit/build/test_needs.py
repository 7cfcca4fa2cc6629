"""What the computer around some cards must have, as people who build such machines ask."""

from types import SimpleNamespace

import pytest

from trainwright.build import Wishes
from trainwright.build.offers import Market
from trainwright.build.shelves import Shelves
from trainwright.build.sizing import Needs, needs
from trainwright.build.speeds import Cards
from trainwright.build.stores import Stores
from trainwright.catalog import find_gpu
from trainwright.plan.file import validated
from trainwright.prices import price_book

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


def test_much_data_are_not_on_the_drive_of_the_system() -> None:
    """8 TB of pictures: solid-state drives of their own, and NVMe for the system."""
    needed = Needs(4, 32, 8000 / 0.8 + 500, 0.0, 0.0, 8e12)
    market = Market(price_book(), "USD", Wishes())
    *data, system = Stores(Shelves(market)).drives(needed)[0].records
    assert sum(drive.capacity_gb for drive in data) >= 8000
    assert system.interface == "nvme"
    assert system.id not in {drive.id for drive in data}


def test_a_large_card_is_on_a_platform_of_its_generation() -> None:
    """An expert refuses an RTX 5090 or an RTX PRO 6000 (PCIe 5.0) on a board of 2020."""
    assert around("rtx-5090", 1).generation == 5
    assert around("rtx-5060-ti-16gb", 1).generation == 0


def test_a_drive_has_room_for_more_than_the_system() -> None:
    """An expert refuses a 250 GB drive beside cards of 20,000 USD."""
    assert around("rtx-5060-ti-16gb", 1).drive_gb >= 500
