"""What fp8 would gain a training step: much for large products, less than nothing for small."""

from typing import Any

import pytest

from trainwright.catalog import find_gpu
from trainwright.estimate.time import fp8
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.operator_clock import Situation
from trainwright.messages import UserError
from trainwright.plan.evaluate import Facts, resolve
from trainwright.plan.schema import Plan


def gain(preset: str, gpu: str, micro: int, length: int, **machine: Any) -> float | None:
    plan = Plan.model_validate(
        {
            "model": {"preset": preset},
            "workload": {
                "task": "full",
                "effective_batch": micro,
                "inputs": {"sequence_length": length},
            },
            "machine": {"gpus": [{"id": gpu, **machine}]},
            "settings": {
                "precision": "bf16-mixed",
                "micro_batch": micro,
                "checkpointing": "full",
            },
        }
    )
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    clock = Clock(Situation(facts.machine.gpu, 1, plan.workload, length))
    return fp8.gain(clock, facts.profile, facts.settings, micro)


def test_torchtitans_8b_on_h100_of_500_watts() -> None:
    """8532 against 6667 tokens a second: torchtitan, llama3_h100_202412, table 1."""
    found = gain("llama-3.1-8b", "h100-80gb-sxm", 2, 8192, power_limit_w=500)
    assert found == pytest.approx(8532 / 6667, rel=0.1)


def test_small_products_lose() -> None:
    """torchao.float8's README: 0.80 times as fast at 1024 x 2048 x 1024 on an H100."""
    found = gain("gpt2", "h100-80gb-sxm", 4, 512)
    assert found is not None
    assert found < 1


def test_larger_batches_gain_more() -> None:
    gains = [gain("llama-3.2-1b", "h100-80gb-sxm", micro, 512) or 0 for micro in (1, 4, 16)]
    assert gains == sorted(gains)


def test_cards_before_ada_have_none() -> None:
    assert gain("gpt2", "rtx-3090", 4, 512) is None
    assert fp8.rate_ratio(find_gpu("a100-80gb-sxm").record) is None
    assert fp8.rate_ratio(find_gpu("rtx-4090").record) == pytest.approx(1.77, abs=0.02)


def test_a_plan_may_not_ask_for_it_and_is_told_why() -> None:
    plan = Plan.model_validate(
        {
            "model": {"preset": "gpt2"},
            "workload": {"task": "full", "effective_batch": 4},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": {"precision": "fp8"},
        }
    )
    with pytest.raises(UserError) as refused:
        resolve(plan)
    assert refused.value.message.id == "workload.fp8-training"
