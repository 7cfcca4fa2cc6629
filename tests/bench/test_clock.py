"""Speed of whole time estimates and of the search's terms; printed, never asserted."""

from time import perf_counter, process_time

import pytest

from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.operator_clock import Situation
from trainwright.estimate.time.steptime import estimate_time
from trainwright.plan.evaluate import Facts, resolve
from trainwright.plan.schema import Plan
from trainwright.workload import Workload

BUDGET = 500
"""Evaluations a second."""


def planned(preset: str, length: int) -> tuple[Facts, Workload]:
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": preset},
            "workload": {
                "task": "pretrain",
                "effective_batch": 256,
                "inputs": {"sequence_length": length} if length else {},
            },
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    return facts, plan.workload


@pytest.mark.parametrize(("preset", "length"), [("resnet50", 0), ("gpt2", 1024)])
def test_terms_of_new_batches_and_whole_estimates(preset: str, length: int) -> None:
    """Every batch is new to the clock: nothing that it keeps helps."""
    facts, workload = planned(preset, length)
    settings, situation = facts.settings, Situation(facts.machine.gpu, 1, workload, length)
    clock = Clock(situation)
    batches = range(1, 257)
    terms = _rate(lambda batch: clock.terms(facts.profile, settings, batch), batches)
    whole = _rate(
        lambda batch: estimate_time(facts.profile, Clock(situation), settings, batch),
        range(1, 33),
    )
    print(
        f"\n{preset}: times of a new batch {terms[0]:,.0f} a second of processor "
        f"({terms[1]:,.0f} of the wall; budget {BUDGET}); with derivation {whole[0]:,.0f}"
    )
    assert clock.terms(facts.profile, settings, 8).step > 0


def _rate(work, batches) -> tuple[float, float]:
    wall, busy = perf_counter(), process_time()
    for batch in batches:
        work(batch)
    return (
        len(batches) / (process_time() - busy),
        len(batches) / (perf_counter() - wall),
    )
