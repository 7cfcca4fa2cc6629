"""Budgets of an edit on a preset, without a window: the first look, and the replayed verdict.

Processor time stands beside the wall's, since a busy machine only changes the latter.
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time

import pytest

from trainwright.estimate.memory.device_memory import Asked, first_look
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.schema import Plan

FIRST_S, REPLAYED_S = 0.016, 0.2
MODELS = {
    "llama-3.1-8b": ("lora", 1024, ("none", "full", "every-4", "every-2")),
    "gpt2": ("pretrain", 1024, ("none", "full", "every-4", "every-2")),
    "resnet50": ("pretrain", 0, ("none",)),
}


def planned(preset: str, micro_batch: int, checkpointing: str) -> tuple[Plan, Facts]:
    task, length, _ = MODELS[preset]
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": preset},
            "workload": {
                "task": task,
                "effective_batch": 16 * micro_batch,
                "inputs": {"sequence_length": length} if length else {},
            },
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": {"micro_batch": micro_batch, "checkpointing": checkpointing},
        }
    )
    facts = resolve(plan)
    assert isinstance(facts, Facts), "the preset ships without this profile"
    return plan, facts


def look(facts: Facts) -> int:
    length = facts.inputs.sequence_length or 0
    batch = facts.settings.micro_batch
    peak, _ = first_look(
        Asked(facts.profile, facts.machine.gpu, facts.settings, batch=batch, sequence=length)
    )
    return peak


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the wall and of the processor."""
    wall, busy = perf_counter(), process_time()
    work()
    return perf_counter() - wall, process_time() - busy


def said(what: str, runs: list[tuple[float, float]], budget: str) -> str:
    wall, busy = (1e3 * median(column) for column in zip(*runs, strict=True))
    return f"  {what:42} {wall:6.1f} ms, {busy:6.1f} ms CPU{budget}"


@pytest.mark.parametrize("preset", MODELS)
def test_an_edit_of_a_preset(capsys: pytest.CaptureFixture[str], preset: str) -> None:
    changed, again, replayed = [], [], []
    for checkpointing in MODELS[preset][2]:
        for micro_batch in (2, 3, 4):
            plan, facts = planned(preset, micro_batch, checkpointing)
            (changed if micro_batch == 2 else again).append(timed(lambda at=facts: look(at)))
            replayed.append(timed(lambda at=facts, of=plan: evaluate(of, at)))
            report = evaluate(plan, facts)
            # The first look lacks only what blocks keep unsplit.
            assert 0.9 < look(facts) / report.memory.allocated_peak.value < 1.001
    with capsys.disabled():
        print(f"\nan edit of {preset}, medians")
        print(said("first look at another structure", changed, ""))
        print(said("first look at another batch", again, f"; budget {FIRST_S * 1e3:g} ms"))
        print(said("replayed verdict", replayed, f"; budget {REPLAYED_S * 1e3:g} ms"))
