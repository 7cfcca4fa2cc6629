"""Weights, gradients and state shared out over GPUs: what a person sees of it."""

from typing import Any

import pytest

from trainwright.advise import advise, make_it_fit
from trainwright.messages import UserError
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.limits import with_limits
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.workload.settings import Effect


def plan(
    preset: str = "llama-3.2-1b", memory_gib: int | None = 256, gpus: int = 2, **settings: Any
) -> Plan:
    machine = {"gpus": [{"id": "rtx-4090", "count": gpus}], "memory_gib": memory_gib}
    inputs = {"sequence_length": 512}
    return Plan.model_validate(
        {
            "model": {"preset": preset},
            "workload": {"task": "full", "inputs": inputs, "effective_batch": 16},
            "machine": {key: value for key, value in machine.items() if value is not None},
            "settings": {"precision": "tf32"} | settings,
        }
    )


def facts(asked: Plan) -> Facts:
    found = resolve(asked)
    assert isinstance(found, Facts)
    return found


def report(**settings: Any) -> Report:
    asked = plan(strategy="fsdp2", **settings)
    return evaluate(asked, facts(asked))


def test_shares_in_system_memory_leave_the_gpu_and_cost_time() -> None:
    there, aside = report(), report(shard_offload=True)
    terms = {term.role: term.value for term in aside.memory.terms}
    assert terms.get("parameters", 0) < 1 << 20
    parameters = 1_235_814_400  # of the model card; embeddings are tied
    host = aside.memory.host
    assert host is not None
    assert 16 * parameters < host.value < 1.5 * 16 * parameters  # pinned in powers of two
    assert there.memory.host is None
    saved = there.memory.allocated_peak.value - aside.memory.allocated_peak.value
    # A half of the weights and of two moments; the peak lies before the first gradient.
    assert saved == pytest.approx(6 * parameters, rel=1e-3)
    assert there.time.step_seconds is not None
    assert aside.time.step_seconds is not None
    assert aside.time.step_seconds.value > there.time.step_seconds.value


def test_numbers_of_gpus_whose_shares_are_too_large_say_so() -> None:
    asked = plan(strategy="fsdp2", gpus=4, micro_batch=4)
    whole = with_limits(asked, facts(asked), evaluate(asked, facts(asked)))
    there = {one.gpus: one.fits for one in whole.time.scaling}
    for gpus, fits in there.items():
        fewer = plan(strategy="fsdp2", gpus=gpus, micro_batch=4) if gpus in (2, 4) else None
        if fewer is not None:
            memory = evaluate(fewer, facts(fewer)).memory
            assert (not memory.out_of_memory) is fits
    assert not there[1]
    assert there[4]


@pytest.mark.parametrize(
    ("settings", "id"),
    [
        ({"strategy": "fsdp2", "optimizer": "adamw-8bit"}, "workload.sharded-optimizer"),
        ({"strategy": "zero2", "optimizer": "muon"}, "workload.sharded-optimizer"),
        ({"strategy": "ddp", "shard_offload": True}, "workload.offload-of-shards"),
        ({"strategy": "zero3", "shard_degree": 2}, "workload.degree-of-shards"),
        ({"strategy": "fsdp2", "shard_degree": 4}, "workload.shard-degree"),
    ],
)
def test_what_shares_cannot_go_with_is_refused(settings: dict[str, Any], id: str) -> None:
    with pytest.raises(UserError) as caught:
        resolve(plan(**settings))
    assert caught.value.message.id == id


def test_where_shares_do_not_fit_either_they_wait_in_system_memory() -> None:
    """8B in fp32: 128 GB of state. Two cards of 24 GB hold it in no other way."""
    asked = plan("llama-3.1-8b")
    found = advise(asked, facts(asked), top=1)
    best = found.choices[0]
    assert (best.settings.strategy, best.settings.shard_offload) == ("fsdp2", True)
    assert facts(make_it_fit(asked, found)).settings.shard_offload
    assert [reason.setting for reason in best.reasons[:2]] == ["strategy", "shard_offload"]


def test_a_system_memory_that_nobody_stated_makes_it_a_way_out_with_its_need() -> None:
    asked = plan("llama-3.1-8b", memory_gib=None)
    found = advise(asked, facts(asked), top=1)
    assert not found.choices
    way = next(way for way in found.nothing_fits if "settings.shard_offload" in way.changes)
    assert way.changes["settings.strategy"] == "fsdp2"
    assert dict(way.change.values)["need"] > 16 * 8e9


@pytest.mark.slow
def test_the_same_result_from_system_memory_wins_over_weights_without_an_fp32_copy() -> None:
    """Shares of pure bf16 weights fit on four cards of 24 GB, and train differently."""
    asked = plan("llama-3.1-8b", gpus=4, precision=None)
    best = advise(asked, facts(asked), top=1).choices[0]
    assert (best.effect, best.settings.precision) == (Effect.SAME, "bf16-mixed")
    assert best.settings.shard_offload
