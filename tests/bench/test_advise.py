"""Budget: advice over 10,000 settings within a second, once the profile is loaded."""

from statistics import median
from time import perf_counter, process_time

import pytest

from trainwright.advise import advise
from trainwright.plan.evaluate import Facts, resolve
from trainwright.plan.schema import Plan

BUDGET_S = 1.0
SHARED_BUDGET_S = 2.0
BATCH = 55_440
"""120 divisors: as many micro-batches."""


@pytest.mark.slow
def test_advice_over_ten_thousand_settings(capsys: pytest.CaptureFixture[str]) -> None:
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": "gpt2"},
            "workload": {
                "task": "pretrain",
                "effective_batch": BATCH,
                "inputs": {"sequence_length": 1024},
            },
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    facts = resolve(plan)
    if not isinstance(facts, Facts):
        pytest.skip("the profile of gpt2 is not built")
    walls, busy, considered = [], [], 0
    for _ in range(4):
        wall, cpu = perf_counter(), process_time()
        advice = advise(plan, facts)
        walls.append(perf_counter() - wall)
        busy.append(process_time() - cpu)
        considered = advice.considered
    assert considered >= 10_000
    with capsys.disabled():
        print(
            f"\nadvise over {considered:,} settings: first {walls[0]:.2f} s ({busy[0]:.2f} s CPU), "
            f"then median {median(walls[1:]):.2f} s ({median(busy[1:]):.2f} s CPU); "
            f"budget {BUDGET_S:g} s"
        )


@pytest.mark.slow
def test_advice_over_all_strategies_on_64_gpus(capsys: pytest.CaptureFixture[str]) -> None:
    gpus = [{"id": "h100-80gb", "count": 8}]
    network = {"kind": "infiniband-ndr"}
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": "llama-3.1-8b"},
            "workload": {
                "task": "full",
                "effective_batch": 512,
                "inputs": {"sequence_length": 2048},
            },
            "machine": {"gpus": gpus, "nodes": 8, "memory_gib": 1024, "network": network},
        }
    )
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    busy = []
    for _ in range(3):
        begun = process_time()
        advice = advise(plan, facts)
        busy.append(process_time() - begun)
    assert advice.choices[0].settings.strategy == "fsdp2"
    with capsys.disabled():
        print(
            f"\nadvise for 8B on 64 GPUs: first {busy[0]:.2f} s CPU, "
            f"then {median(busy[1:]):.2f} s; budget {SHARED_BUDGET_S:g} s"
        )
