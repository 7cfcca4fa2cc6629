"""Training on a model's own answers: who writes them, and which phase takes the most memory."""

import json
from typing import Any

import pytest

from trainwright.messages.catalogue import LANGUAGES, render
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report, Verdict, as_json
from trainwright.plan.schema import Plan
from trainwright.profile import store

LAYERS, HEADS, WIDTH, ROWS, PROMPT, ANSWER = 4, 2, 64, 256, 48, 80
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 512,
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": LAYERS,
    "num_attention_heads": 4, "num_key_value_heads": HEADS, "max_position_embeddings": 256,
}  # fmt: skip


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return what reports on the plan with further keys; all of them are one trace."""
    folder = tmp_path_factory.mktemp("own answers")
    (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"hf": str(folder)},
            "workload": {
                "task": "full",
                "objective": "grpo",
                "effective_batch": ROWS,
                "inputs": {"prompt_tokens": PROMPT, "new_tokens": ANSWER},
            },
            "machine": {"gpus": [{"id": "rtx-3060-12gb"}]},
            "settings": {"precision": "fp32", "micro_batch": 2},
        }
    )
    pending = resolve(plan)
    profile = store.trace(pending.spec, at=pending.point, keep=False)

    def report(**keys: Any) -> Report:
        asked = with_keys(plan, {name.replace("__", "."): v for name, v in keys.items()})
        found = resolve(asked)
        assert not isinstance(found, Facts)
        return evaluate(asked, found.answered(profile))

    return report


@pytest.mark.slow
def test_each_phase_is_on_the_curve_and_the_highest_is_the_peak(answered: Any) -> None:
    report = answered()
    found = as_json(report)["phases"]
    assert found["peak"] == "write"
    assert {"prefill", "decode", "forward"} <= {name for name, _, _ in report.memory.curve.phases}
    assert found["write_bytes"] == report.memory.allocated_peak.value
    live = report.memory.curve.live.sum(axis=0)
    assert live.max() == report.memory.allocated_peak.value  # what the note and the chart show
    held = 2 * LAYERS * HEADS * WIDTH * ROWS * (PROMPT + ANSWER - 1) * 4
    cache = next(term for term in report.memory.terms if term.role == "kv_cache")
    assert held <= cache.value <= 1.2 * held  # a layer's keys lie twice while one is added
    for language in LANGUAGES:
        for note in report.notes:
            assert "\n" not in render(note, language)


@pytest.mark.slow
def test_only_who_writes_the_answers_changes_what_writing_takes(answered: Any) -> None:
    base = answered()
    longer = answered(workload__inputs__new_tokens=2 * ANSWER)
    assert longer.phases.write > base.phases.write
    twice = answered(workload__rollout={"updates": 2})
    assert twice.phases.write > 1.5 * base.phases.write
    assert (base.phases.score, twice.phases.update) == (0, base.phases.update)
    assert twice.phases.score > 0
    small = answered(settings__micro_batch=1)
    # The allocator rounds what lies around the answers in another way.
    assert small.phases.write == pytest.approx(base.phases.write, rel=0.01)
    assert small.phases.update < base.phases.update
    assert longer.time.step_seconds.value > base.time.step_seconds.value


@pytest.mark.slow
def test_a_vllm_beside_takes_its_share_and_one_elsewhere_nothing(answered: Any) -> None:
    total = answered().memory.device_total.value
    asleep = answered(settings__generation="vllm-sleep", settings__memory_share=0.5)
    awake = answered(settings__generation="vllm", settings__memory_share=0.5)
    elsewhere = answered(settings__generation="vllm-server")
    assert asleep.phases.highest == "write"
    assert asleep.phases.write > 0.5 * total > asleep.phases.update
    assert awake.phases.update == pytest.approx(asleep.phases.update + 0.5 * total, rel=0.01)
    assert elsewhere.phases.write == 0
    assert elsewhere.phases.update == asleep.phases.update
    assert elsewhere.phases.score > 0
    for report in (asleep, awake, elsewhere):
        seconds = {stage.name: stage.seconds.value for stage in report.time.stages}
        assert seconds["generate"] > 0
        interval = report.time.step_seconds.interval
        assert interval.high >= 2 * report.time.step_seconds.value


@pytest.mark.slow
def test_a_vllm_whose_share_does_not_hold_the_weights_does_not_start(answered: Any) -> None:
    keys = {"settings__generation": "vllm-sleep", "settings__memory_share": 0.0005}
    report = answered(**keys)
    assert report.verdict is Verdict.NO
    note = next(note for note in report.notes if note.id == "plan.note.answers-share")
    enough = answered(**keys | {"settings__memory_share": float(note.values["least"])})
    assert enough.verdict is Verdict.FITS
