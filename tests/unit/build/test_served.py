"""Several cards for serving: copies, layers over cheap cards, and what is named but not ranked."""

import pytest

from trainwright.build import Builds, Owned, Request, Wishes, money, search
from trainwright.messages import render
from trainwright.plan.schema import Plan


def asked(budget: str, preset: str, *, concurrent: int, gpus: int | None = None, **settings: str):
    document = {
        "trainwright": 1,
        "model": {"preset": preset},
        "workload": {
            "task": "infer",
            "inputs": {"prompt_tokens": 1024, "new_tokens": 256, "concurrent": concurrent},
        },
        "machine": {"gpus": [{"id": "rtx-3090"}]},
        "settings": settings,
    }
    wishes = Wishes(used=True, gpus=gpus)
    return search(Request(Plan.model_validate(document), money(budget), wishes))


def ids(found: Builds) -> list[str]:
    return [note.id for note in found.notes]


def test_a_second_card_serves_a_copy_and_its_rate_counts() -> None:
    """vLLM, docs, Data Parallel Deployment: ranks serve requests of their own."""
    question = {"concurrent": 16, "engine": "vllm"}
    one, two = (
        search_of.builds[0]
        for search_of in (
            asked("3500USD", "llama-3.1-8b", gpus=gpus, **question) for gpus in (1, 2)
        )
    )
    assert two.build.gpu_count == 2
    assert two.rate is not None
    said = [render(note, "en") for note in two.report.notes]
    assert any("--data-parallel-size 2" in note and "8 each" in note for note in said)
    assert not any("stays idle" in note for note in said)
    if one.cards[0] == two.cards[0]:
        assert one.rate is not None
        assert two.rate.value > 1.3 * one.rate.value


@pytest.mark.slow
def test_two_small_used_cards_hold_what_one_large_one_would() -> None:
    """20 GB of Q4_K_M over two RTX 3060 of 12 GB cost less than one RTX 3090."""
    found = asked("900USD", "qwen-2.5-32b", concurrent=1, engine="llama.cpp", quantization="q4_k_m")
    assert found.cheapest is not None
    assert found.cheapest.cards == ("rtx-3060-12gb", 2)
    assert not found.cheapest.unknown


@pytest.mark.slow
def test_cards_that_split_the_layers_serve_what_none_of_them_holds() -> None:
    """64 GB of weights in 16 bits: two cards of 48 GB hold them, and no usual card alone."""
    found = asked("12000USD", "qwen-2.5-32b", concurrent=8, engine="vllm")
    assert any(one.cards[1] in (2, 4) for one in found.builds)


@pytest.mark.slow
def test_money_that_is_left_buys_a_case_with_room_and_air() -> None:
    """Two RTX 5080 in a mid-tower leave 600 USD unspent and 1 kW of heat in it."""
    document = {
        "trainwright": 1,
        "model": {"preset": "resnet50"},
        "workload": {
            "task": "pretrain", "inputs": {"image_size": 224}, "effective_batch": 512,
            "samples": 28_000_000, "epochs": 5,
            "dataset": {"layout": "files", "sample_kib": 105, "decode": "jpeg"},
        },
        "machine": {"gpus": [{"id": "rtx-5090"}]},
    }  # fmt: skip
    found = search(Request(Plan.model_validate(document), money("6000USD"), Wishes(gpus=2)))
    first = found.builds[0]
    assert not [check for check in first.warnings if check.rule == "T1"]


@pytest.mark.slow
def test_money_that_is_left_buys_a_supply_with_the_cards_own_plug() -> None:
    """A card of 140 W with a 16-pin socket: the cheapest supply feeds it by an adapter."""
    document = {
        "trainwright": 1,
        "model": {"preset": "llama-3.1-8b"},
        "workload": {
            "task": "lora", "inputs": {"sequence_length": 2048}, "effective_batch": 16,
        },
        "machine": {"gpus": [{"id": "rtx-4090"}]},
    }  # fmt: skip
    only = Wishes(only=(Owned("gpu", "rtx-pro-4000"),))
    first = search(Request(Plan.model_validate(document), money("3000USD"), only)).builds[0]
    assert first.build.psu.connectors.pcie_16
    assert not [check for check in first.warnings if check.rule == "W7"]
