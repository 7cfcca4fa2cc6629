"""Budget: the best computers over the whole catalog within two seconds, the profile loaded."""

from statistics import median
from time import perf_counter, process_time

import pytest

from trainwright.build import Request, money, search
from trainwright.plan.evaluate import Facts, resolve
from trainwright.plan.schema import Plan

BUDGET_S = 2.0
LORA = {
    "model": {"preset": "llama-3.1-8b"},
    "workload": {
        "task": "lora",
        "effective_batch": 64,
        "samples": 52_000,
        "inputs": {"sequence_length": 2048},
    },
}
FILES = {
    "model": {"preset": "resnet50"},
    "workload": {
        "task": "pretrain",
        "effective_batch": 256,
        "samples": 1_281_167,
        "epochs": 90,
        "dataset": {"layout": "files", "sample_kib": 110, "decode": "jpeg"},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "budget"), [(LORA, "3000000KRW"), (LORA, "8000USD"), (FILES, "3000USD")]
)
def test_the_whole_catalog(
    capsys: pytest.CaptureFixture[str], named: dict[str, object], budget: str
) -> None:
    plan = Plan.model_validate(
        {"trainwright": 1, "machine": {"gpus": [{"id": "rtx-4090"}]}, **named}
    )
    if not isinstance(resolve(plan), Facts):
        pytest.skip("the profile is not built")
    walls, busy, considered = [], [], 0
    for _ in range(4):
        wall, cpu = perf_counter(), process_time()
        considered = search(Request(plan, money(budget))).considered
        walls.append(perf_counter() - wall)
        busy.append(process_time() - cpu)
    assert considered
    with capsys.disabled():
        print(
            f"\nbuild of {plan.model.preset} for {budget}: first {walls[0]:.2f} s "
            f"({busy[0]:.2f} s CPU), then median {median(walls[1:]):.2f} s "
            f"({median(busy[1:]):.2f} s CPU); budget {BUDGET_S:g} s"
        )
