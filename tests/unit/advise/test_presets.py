"""The search on shipped presets: no setting that is faster than the first choice fits."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from trainwright.advise import advise
from trainwright.advise.choose import STORED
from trainwright.plan.evaluate import Facts, memory_of, resolve, time_of
from trainwright.plan.schema import Plan

PRESETS = {
    "resnet18": (120, None),
    "resnet50": (120, None),
    "vit-s16": (120, None),
    "gpt2": (120, 1024),
    "bert-base": (120, 512),
    "qwen-2.5-0.5b": (120, 1024),
}
PAIRS = list(product(PRESETS, ("rtx-3060-12gb", "rtx-4090")))
CHECKPOINTINGS = ("none", "every-8", "every-6", "every-4", "every-3", "every-2", "full")


@pytest.mark.slow
@pytest.mark.parametrize(("preset", "gpu"), PAIRS)
def test_no_setting_that_is_faster_than_the_first_choice_fits(preset: str, gpu: str) -> None:
    batch, length = PRESETS[preset]
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": preset},
            "workload": {
                "task": "pretrain",
                "effective_batch": batch,
                "inputs": {"sequence_length": length} if length else {},
            },
            "machine": {"gpus": [{"id": gpu}]},
            "settings": {"optimizer": "adamw"},
        }
    )
    facts = resolve(plan)
    if not isinstance(facts, Facts):
        pytest.skip(f"the profile of {preset} is not built")
    advice = advise(plan, facts, top=1)
    first = advice.choices[0].estimate
    assert first.fits
    best = first.time.step_seconds.value * (1 - 1e-9)
    tried = 0
    for settings in _space(plan, facts, batch):
        profile = STORED.find(plan, facts, settings)
        assert profile is not None
        at = replace(facts, settings=settings, profile=profile)
        tried += 1
        if time_of(plan, at).step_seconds.value < best:
            memory = memory_of(plan, at)
            assert memory.device_used_p95.value > memory.device_total.value, settings
    assert tried >= 500
    assert advice.considered >= tried


def _space(plan: Plan, facts: Facts, batch: int) -> Any:
    blocks = facts.profile.blocks
    spaced = [
        name
        for name in CHECKPOINTINGS
        if name in ("none", "full") or int(name.removeprefix("every-")) < blocks
    ]
    micros = [micro for micro in range(1, batch + 1) if batch % micro == 0]
    values = (("bf16-mixed", "tf32", "fp32"), micros, spaced, ("native", "expandable"))
    for precision, micro, checkpointing, allocator in product(*values):
        chosen = {
            "precision": precision,
            "micro_batch": micro,
            "accumulation": batch // micro,
            "checkpointing": checkpointing,
            "allocator": allocator,
        }
        yield facts.settings.model_copy(update=chosen)
