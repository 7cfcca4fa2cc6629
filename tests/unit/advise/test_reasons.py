"""What the advice says: reasons, common mistakes, learning rate, and changes that would fit."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from trainwright.advise import (
    Advice,
    advise,
    learning_rate_advice,
    make_it_fit,
    with_whole_batch,
)
from trainwright.advise.learning_rate import factor
from trainwright.advise.report import as_json
from trainwright.messages import LANGUAGES, Message, render

NARROW = {"head": 1000}
HUGE = {"blocks": 24, "hidden": 4096, "wide": 16384, "head": 1000}


def advised(case: Any) -> Advice:
    return advise(case.plan, case.facts, sources=case.sources)


def reason(advice: Advice, setting: str) -> Any:
    return next(r for r in advice.choices[0].reasons if r.setting == setting)


def notes(advice: Advice) -> dict[str, Message]:
    return {note.id: note for note in advice.notes}


def test_every_free_setting_has_a_reason_with_a_source(make_case: Any) -> None:
    found = {r.setting: r for r in advised(make_case()).choices[0].reasons}
    assert {"precision", "micro_batch", "accumulation", "checkpointing", "optimizer"} <= set(found)
    assert {"attention", "allocator", "quantization", "compile"} <= set(found)
    assert {"loader.num_workers", "loader.pin_memory"} <= set(found)
    assert all(r.source for r in found.values())


def test_a_reason_speaks_of_the_value_that_was_chosen(make_case: Any) -> None:
    choice = advised(make_case()).choices[0]
    for found in choice.reasons:
        own = found.setting.removeprefix("loader.")
        assert found.value == getattr(choice.settings, own)


def test_a_gpu_without_fused_attention_is_said_to_have_none(make_case: Any) -> None:
    """PyTorch has no kernel to fall back to below the math kernel."""
    case = make_case()
    find = case.sources.find

    def unfused(plan: Any, facts: Any, full: Any) -> Any:
        found = find(plan, facts, full) if full.attention != "eager" else None
        return found and replace(found, kernels={"math": 2})

    advice = advise(case.plan, case.facts, sources=replace(case.sources, find=unfused))
    said = render(reason(advice, "attention").because, "en")
    assert "math kernel keeps whole attention matrices" in said
    assert "falls back" not in said


def test_heads_are_repeated_where_only_the_math_kernel_takes_them_grouped(make_case: Any) -> None:
    """As Volta and Turing do, which have no flash attention."""
    case = make_case("t4", NARROW)
    find = case.sources.find

    def grouped(plan: Any, facts: Any, full: Any) -> Any:
        if full.expanded_heads:
            return replace(find(plan, facts, full), kernels={"efficient": 2})
        slower = full.model_copy(update={"attention": "eager"})
        return replace(find(plan, facts, slower), kernels={"math": 2})

    facts = replace(case.facts, profile=grouped(case.plan, case.facts, case.facts.settings))
    advice = advise(case.plan, facts, sources=replace(case.sources, find=grouped))
    assert reason(advice, "expanded_heads").because.values["cost"] > 0.3
    assert make_it_fit(case.plan, advice).chosen["expanded_heads"].value is True


def test_the_next_larger_batch_is_said_not_to_fit(make_case: Any) -> None:
    found = reason(advised(make_case(length=4096)), "micro_batch")
    assert found.because.id == "advise.micro.largest"
    values = found.because.values
    assert values["following"] > found.value
    assert values["need"] > values["room"]
    assert found.flips.id == "advise.flip.memory-batch-same"
    said = [render(found.because, language) for language in LANGUAGES]
    # Another choice may have a larger one, with a loss in chunks.
    assert not any("largest" in each or "가장 큽니다" in each for each in said)


def test_a_share_of_one_sample_is_one_sample(make_case: Any) -> None:
    found = advised(make_case(batch=1))
    said = [render(reason(found, key).because, "en") for key in ("micro_batch", "accumulation")]
    assert said[0] == "A GPU's share of the batch is one sample."
    assert not [text for text in said if "1 samples" in text or "1 micro-batches" in text]


def test_checkpointing_that_is_not_needed_names_what_it_would_cost(make_case: Any) -> None:
    found = reason(advised(make_case("h100-80gb", NARROW, length=2048)), "checkpointing")
    assert found.value == "none"
    # A second forward pass: a third more arithmetic, a fifth to a third more time.
    assert 0.15 < found.because.values["cost"] < 0.4
    assert found.because.values["freed"] > 0


def test_checkpointing_that_is_needed_names_what_would_make_it_unnecessary(make_case: Any) -> None:
    fixed = {"micro_batch": 48, "precision": "bf16-mixed"}
    found = reason(
        advised(make_case("rtx-3060-12gb", NARROW, length=2048, settings=fixed)), "checkpointing"
    )
    assert found.because.values["need"] > found.because.values["room"]
    assert found.flips.values["more"] == pytest.approx(
        found.because.values["need"] - found.because.values["room"]
    )


def test_checkpointing_for_a_margin_is_not_said_to_be_needed(make_case: Any) -> None:
    """What needs less than tensors may take would fit, at the edge."""
    seen = []
    for length in (3100, 3400):
        fixed = {"micro_batch": 24, "precision": "bf16-mixed"}
        case = make_case("rtx-3060-12gb", NARROW, length=length, settings=fixed)
        because = reason(advised(case), "checkpointing").because
        short = because.values["need"] > because.values["room"]
        assert short == (because.id != "advise.checkpointing.edge")
        seen.append(because.id)
    assert seen == ["advise.checkpointing.edge", "advise.checkpointing.on"]


def test_a_gpu_without_tensor_cores_is_not_said_to_have_them(make_case: Any) -> None:
    """GTX 16 cards compute in fp16, with convolutions that have returned NaN."""
    found = reason(advised(make_case("gtx-1660")), "precision")
    assert found.value == "fp16-mixed"
    assert "NaN" in render(found.flips, "en")
    for language in LANGUAGES:
        said = render(found.because, language)
        assert "uses the tensor cores" not in said
        assert "텐서 코어를 사용" not in said
    turing = reason(advised(make_case("rtx-2080-ti")), "precision")
    assert turing.because.id == "advise.precision.faster"
    assert "NaN" not in render(turing.flips, "en")


def test_checkpointing_to_go_faster_is_corrected_with_numbers(make_case: Any) -> None:
    case = make_case("h100-80gb", NARROW, settings={"checkpointing": "full"})
    note = notes(advised(case))["advise.mistake.checkpointing"]
    assert 0.1 < note.values["saved"] < 0.3
    assert note.values["used"] < note.values["total"]


def test_a_batch_of_one_is_corrected_where_more_fit(make_case: Any) -> None:
    case = make_case(length=64, settings={"micro_batch": 1})
    note = notes(advised(case))["advise.mistake.batch"]
    assert note.values["better"] > 1
    assert note.values["saved"] > 0.1


def test_fp32_on_tensor_cores_is_corrected(make_case: Any) -> None:
    case = make_case("rtx-4090", length=2048, settings={"precision": "fp32"})
    note = notes(advised(case))["advise.mistake.fp32"]
    assert note.values["better"] == "bf16-mixed"


def test_too_many_workers_are_corrected(make_case: Any) -> None:
    many = {"loader": {"num_workers": 64}}
    assert "advise.mistake.workers" in notes(advised(make_case(cores=16, settings=many)))
    few = {"loader": {"num_workers": 8}}
    assert "advise.mistake.workers" not in notes(advised(make_case(cores=16, settings=few)))


def test_good_settings_are_left_in_peace(make_case: Any) -> None:
    free = make_case()
    plan = make_it_fit(free.plan, advised(free))
    taken = {key: one.value for key, one in plan.chosen.items() if not key.startswith("loader")}
    fixed = make_case(settings=taken)
    assert not [id for id in notes(advised(fixed)) if id.startswith("advise.mistake")]


def test_where_a_fixed_setting_stands_in_the_way_it_is_the_smallest_change(
    make_case: Any,
) -> None:
    fixed = {"micro_batch": 48, "checkpointing": "none", "precision": "fp32"}
    case = make_case("rtx-3060-12gb", NARROW, length=2048, settings=fixed)
    advice = advised(case)
    assert not advice.choices
    assert advice.short_by_bytes is not None
    assert advice.short_by_bytes > 0
    assert advice.nothing_fits[0].change.id == "advise.relax.setting"
    assert make_it_fit(case.plan, advice) == case.plan  # nothing is given up for a person
    facts = case.sources.resolve(advice.nothing_fits[0].plan)
    changed = [k for k, v in fixed.items() if getattr(facts.settings, k) != v]
    assert len(changed) == 1


def test_changes_that_are_offered_really_fit(make_case: Any) -> None:
    from trainwright.plan.evaluate import evaluate

    case = make_case("rtx-3060-12gb", HUGE, batch=4, length=8192)
    advice = advised(case)
    assert not advice.choices
    assert "advise.relax.gpu" in [change.change.id for change in advice.nothing_fits]
    for change in advice.nothing_fits:
        facts = case.sources.resolve(change.plan)
        assert facts is not None
        assert evaluate(change.plan, facts).fits, change.change.id


def test_a_sequence_is_shortened_no_more_than_needed(make_case: Any) -> None:
    shape = {"blocks": 4, "head": 128_000}
    case = make_case("rtx-3060-12gb", shape, batch=1, length=8192 * 4)
    found = {change.change.id: change for change in advised(case).nothing_fits}
    tokens = found["advise.relax.sequence"].change.values["tokens"]
    longer = make_case("rtx-3060-12gb", shape, batch=1, length=tokens + 128)
    assert not any(choice.estimate.roomy for choice in advised(longer).choices)


@pytest.mark.parametrize(
    ("optimizer", "task", "expected"),
    [("sgd", "full", 4.0), ("adamw", "full", 2.0), ("adamw", "lora", 2.0), ("sgd", "lora", 2.0)],
)
def test_the_learning_rate_follows_the_batch(optimizer: str, task: str, expected: float) -> None:
    # Goyal et al. 2017 for SGD, Malladi et al. 2022 for Adam.
    assert factor(optimizer, task, 64, 256) == pytest.approx(expected)


def test_a_kept_batch_needs_no_other_learning_rate() -> None:
    assert learning_rate_advice("adamw", "full", 64, 64) is None


def test_a_long_jump_of_the_batch_warms_up_longer() -> None:
    small, large = (learning_rate_advice("adamw", "full", 64, 64 * k, 1e-4) for k in (2, 16))
    assert small is not None
    assert large is not None
    assert large.values["high"] > small.values["high"]
    assert math.isclose(large.values["scaled"], 4e-4)


def test_a_batch_that_gpus_cannot_share_is_rounded_and_said(make_case: Any) -> None:
    plan = make_case(batch=64).plan
    gpus = plan.machine.model_copy(
        update={"gpus": (plan.machine.gpus[0].model_copy(update={"count": 3}),)}
    )
    rounded, said = with_whole_batch(plan.model_copy(update={"machine": gpus}))
    assert rounded.workload.effective_batch == 63
    assert [note.id for note in said] == ["advise.rounded", "advise.rate.root"]
    assert with_whole_batch(plan) == (plan, ())


def test_the_json_has_what_scripts_rely_on(make_case: Any) -> None:
    document = json.loads(json.dumps(as_json(advised(make_case())), allow_nan=False))
    first = document["choices"][0]
    assert first["settings"]["precision"] == "bf16-mixed"
    assert first["estimate"]["fits"] is True
    for found in first["reasons"]:
        assert {"setting", "value", "because", "source"} <= set(found)


def _everything(advice: Advice) -> list[Message]:
    said = [*advice.notes, *(change.change for change in advice.nothing_fits)]
    for choice in advice.choices:
        for found in choice.reasons:
            said += [found.because, *([found.flips] if found.flips else [])]
    return said


def test_everything_is_said_in_both_languages(make_case: Any) -> None:
    cases = [
        make_case(),
        make_case("rtx-2080-ti", cores=None),
        make_case("rtx-4090", count=2),
        make_case("h100-80gb", NARROW, settings={"checkpointing": "full", "micro_batch": 1}),
        make_case("rtx-3060-12gb", HUGE, batch=4, length=8192),
        make_case(settings={"loader": {"num_workers": 64}, "precision": "fp32"}),
    ]
    for message in (message for case in cases for message in _everything(advised(case))):
        for language in LANGUAGES:
            text = render(message, language)
            assert not text.startswith("advise."), message.id
            assert "{" not in text


def test_fewer_samples_than_gpus_are_left_for_the_person_to_change(make_case: Any) -> None:
    plan = make_case(batch=16).plan
    gpus = (plan.machine.gpus[0].model_copy(update={"count": 33}),)
    plan = plan.model_copy(update={"machine": plan.machine.model_copy(update={"gpus": gpus})})
    assert with_whole_batch(plan) == (plan, ())
