"""A loss in chunks, derived from a trace, must be what a traced run of that loss does."""

import json
from dataclasses import replace

import numpy as np
import pytest

from trainwright.advise.whatif import answered as evaluated
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.profile.chunked import chunked
from trainwright.profile.expand import op_counts, training_events
from trainwright.profile.profile import evaluate
from trainwright.profile.spec import Method, TraceSpec

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 1000,
    "hidden_size": 128,
    "intermediate_size": 448,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 1024,
}
GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 1000,
    "n_positions": 512,
    "n_embd": 128,
    "n_layer": 2,
    "n_head": 4,
}
TIED = LLAMA | {"tie_word_embeddings": True}
CASES = {
    "frozen-head": (LLAMA, "lora", "bf16-mixed", False),
    "trained-head": (LLAMA, "full", "bf16-mixed", False),
    "pure-16-bit": (LLAMA, "full", "bf16", False),
    "tied-embeddings": (TIED, "full", "bf16-mixed", False),
    "batch-1": (LLAMA, "lora", "bf16-mixed", True),
    "layer-norm-in-fp32": (GPT2, "lora", "bf16-mixed", False),
    "quantised": (LLAMA, "qlora", "bf16-mixed", False),
}


def profiles(folder, config, task, precision, single):
    """The profile derived from the whole loss, and the traced one."""
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    spec = TraceSpec(
        model=(("hf", str(path)),),
        digest="",
        task=task,
        precision=precision,
        kernel="flash",
        single=single,
        optimizers=("adamw",),
    )
    in_chunks = replace(spec, method=Method(cross_entropy="chunked"))
    derived = chunked(store.trace(spec, keep=False))
    return derived, store.trace(in_chunks, keep=False)


def births(events):
    """Sizes in order of birth, and the bytes alive before each."""
    live = np.cumsum(events.signed)
    born = events.storage > 0
    return events.size[born].tolist(), (live - events.signed)[born].tolist()


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=name, marks=pytest.mark.slow) for name, case in CASES.items()],
)
def test_the_derived_chunks_are_those_of_a_traced_run(case, tmp_path):
    derived, traced = profiles(tmp_path, *case)
    batch = 1 if case[3] else 2
    for accumulation, checkpointing in ((1, "none"), (2, "full")):
        how = {"accumulation": accumulation, "checkpointing": checkpointing, "optimizer": "adamw"}
        for ours, theirs in zip(
            *(training_events(one, batch, 96, **how) for one in (derived, traced)), strict=True
        ):
            assert births(ours) == births(theirs)
        for stage, counts in op_counts(traced, **how).items():
            ours = op_counts(derived, **how)[stage]
            assert ours.sum() == counts.sum(), stage
            for cost in ("flops", "bytes_read", "bytes_written"):
                costs = [
                    times @ evaluate(getattr(one.ops, cost), batch, 96)
                    for one, times in ((derived, ours), (traced, counts))
                ]
                assert costs[0] == pytest.approx(costs[1], rel=1e-6), (stage, cost)


@pytest.mark.slow
def test_a_step_within_backward_is_not_cut(tmp_path):
    """The head is updated as soon as its gradient is there; the optimizer's segment is empty."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    spec = TraceSpec((("hf", str(path)),), "", "full", "bf16", "flash", optimizers=("adamw",))
    assert chunked(store.trace(replace(spec, in_backward="adamw"), keep=False)) is None


@pytest.mark.slow
def test_scores_that_are_changed_after_the_head_are_not_cut(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({
        **LLAMA, "architectures": ["GraniteForCausalLM"], "model_type": "granite",
        "logits_scaling": 2.0,
    }), encoding="utf-8")  # fmt: skip
    spec = TraceSpec((("hf", str(path)),), "", "lora", "bf16-mixed", "flash", optimizers=("adamw",))
    assert chunked(store.trace(spec, at=(2, 96), keep=False)) is None


def test_a_preset_answers_for_a_loss_in_chunks_without_a_trace():
    plan = Plan.model_validate({
        "trainwright": 1,
        "model": {"preset": "llama-3.2-1b"},
        "workload": {"task": "lora", "effective_batch": 8, "inputs": {"sequence_length": 4096}},
        "machine": {"gpus": [{"id": "rtx-4090"}]},
        "settings": {"micro_batch": 4, "checkpointing": "full"},
    })  # fmt: skip
    whole, parts = (
        evaluated(plan.model_copy(update={
            "settings": plan.settings.model_copy(update={"cross_entropy": value})
        }))
        for value in ("full", "chunked")
    )  # fmt: skip
    assert parts.memory.allocated_peak.value < whole.memory.allocated_peak.value / 2
    assert parts.time.step_seconds.value > whole.time.step_seconds.value
