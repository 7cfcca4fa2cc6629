"""Budget: the best computers over the whole catalog within two seconds, the profile loaded."""

import os
from statistics import median
from time import perf_counter, process_time

import pytest

from trainwright.build import Request, money, search
from trainwright.data import resources
from trainwright.plan import file
from trainwright.plan.evaluate import Facts, resolve
from trainwright.plan.schema import Plan

BUDGET_S = 2.0
ROUNDS = 2 if os.environ.get("CI") else 4
"""Searches of each, of which the first loads what all need."""
FED = ("gpt2-rtx4070", "resnet50-rtx3060")
"""Examples with a data set: what stands around the cards decides there too."""
OTHERS = (
    "llama-8b-lora",
    "llama-1b-full-rtx3090",
    "llama-8b-qlora-rtx4060ti",
    "llama-8b-serve-rtx4090",
    "sdxl-lora-rtx4090",
)
MONEY = ("3000000KRW", "8000USD")


def asked(example: str, *, free: bool) -> Plan:
    """Return a shipped example; ``free``: with all settings left to the search."""
    plan = file.read(resources("examples", f"{example}.plan.yaml"))
    return plan.model_copy(update={"settings": type(plan.settings)()}) if free else plan


def printed(capsys: pytest.CaptureFixture[str], name: str, plan: Plan, budget: str) -> None:
    if not isinstance(resolve(plan), Facts):
        pytest.skip("the profile is not built")
    walls, busy, considered = [], [], 0
    for _ in range(ROUNDS):
        wall, cpu = perf_counter(), process_time()
        considered = search(Request(plan, money(budget))).considered
        walls.append(perf_counter() - wall)
        busy.append(process_time() - cpu)
    assert considered
    with capsys.disabled():
        print(
            f"\nbuild of {name} for {budget}: first {walls[0]:.2f} s "
            f"({busy[0]:.2f} s CPU), then median {median(walls[1:]):.2f} s "
            f"({median(busy[1:]):.2f} s CPU); budget {BUDGET_S:g} s"
        )


@pytest.mark.parametrize("budget", MONEY)
@pytest.mark.parametrize("example", FED)
def test_an_example_with_a_data_set(
    capsys: pytest.CaptureFixture[str], example: str, budget: str
) -> None:
    printed(capsys, example, asked(example, free=False), budget)


@pytest.mark.slow
@pytest.mark.parametrize("budget", MONEY)
@pytest.mark.parametrize("example", OTHERS)
def test_the_other_examples(capsys: pytest.CaptureFixture[str], example: str, budget: str) -> None:
    printed(capsys, example, asked(example, free=False), budget)


@pytest.mark.slow
@pytest.mark.parametrize("budget", MONEY)
@pytest.mark.parametrize("example", [*FED, *OTHERS])
def test_with_all_settings_free(
    capsys: pytest.CaptureFixture[str], example: str, budget: str
) -> None:
    printed(capsys, f"{example}, all settings free", asked(example, free=True), budget)
