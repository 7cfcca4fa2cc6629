"""Sliding windows: what the fit says far away against a trace right there."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainwright.plan.evaluate import Facts, Pending, memory_of, resolve
from trainwright.plan.schema import Plan
from trainwright.plan.trace_request import question
from trainwright.profile import store
from trainwright.profile.spec import TraceSpec, kernel_points

WINDOW = 512
GEMMA: dict[str, Any] = {
    "architectures": ["Gemma3ForCausalLM"],
    "model_type": "gemma3_text",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 512,
    "sliding_window": WINDOW,
    "sliding_window_pattern": 2,
    "max_position_embeddings": 16_384,
    "query_pre_attn_scalar": 32,
}


def plan(folder: Path, prompt: int, new: int = 1) -> Plan:
    path = folder / "config.json"
    path.write_text(json.dumps(GEMMA))
    inputs = {"prompt_tokens": prompt, "new_tokens": new, "concurrent": 2}
    return Plan.model_validate(
        {
            "model": {"hf": str(path)},
            "workload": {"task": "infer", "inputs": inputs},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )


def spec_of(asked: Plan) -> TraceSpec:
    found = resolve(asked)
    if isinstance(found, Pending):
        return found.spec
    return question(asked, found.settings, found.machine.gpu.record).spec


def facts_of(asked: Plan) -> Facts:
    found = resolve(asked)
    if isinstance(found, Facts):
        return found
    return found.answered(store.trace(found.spec))


def term(asked: Plan, facts: Facts, role: str) -> float:
    return sum(part.value for part in memory_of(asked, facts).terms if part.role == role)


def test_prompts_beyond_the_window_are_a_structure_of_their_own(tmp_path: Path) -> None:
    short, long = (spec_of(plan(tmp_path, prompt)) for prompt in (WINDOW - 1, WINDOW))
    assert short.beyond == 0
    assert long.beyond == WINDOW
    assert replace(long, beyond=0).key({"torch": "2"}) == short.key({"torch": "2"})
    for points in kernel_points(long, GEMMA["max_position_embeddings"]):
        assert min(length for _, length in points) >= WINDOW


def test_an_engine_needs_no_mask(tmp_path: Path) -> None:
    asked = plan(tmp_path, 4 * WINDOW)
    asked = asked.model_copy(
        update={"settings": asked.settings.model_copy(update={"engine": "vllm"})}
    )
    assert spec_of(asked).beyond == 0


@pytest.mark.slow
def test_far_from_the_fit_it_is_what_a_trace_there_says(tmp_path: Path) -> None:
    far = 8 * WINDOW
    asked = plan(tmp_path, far)
    facts = facts_of(asked)
    there = store.trace(spec_of(asked), at=(2, far), keep=False)
    real = replace(facts, profile=there, config="")
    assert memory_of(asked, facts).allocated_peak.value == pytest.approx(
        memory_of(asked, real).allocated_peak.value, rel=1e-3
    )


@pytest.mark.slow
def test_long_answers_to_short_prompts_fill_windows_and_no_more(tmp_path: Path) -> None:
    """As transformers 5.24's ``DynamicCache`` of this model holds it: every other layer all tokens,
    the others their window."""
    far = 8 * WINDOW
    asked = plan(tmp_path, 64, far - 64)
    token = 2 * 2 * 32 * 2  # keys of a layer: samples, heads, width, bytes
    held = 2 * 2 * token * far + 2 * 2 * token * WINDOW
    last = token * far  # a layer's keys live next to the old ones while they grow
    assert term(asked, facts_of(asked), "kv_cache") == pytest.approx(held + last, rel=0.02)
