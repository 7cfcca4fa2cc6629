"""What a report says of serving speed: first token, tokens a second, and what they wait for."""

from typing import Any

import pytest

from trainwright.messages import LANGUAGES, render
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report, as_json
from trainwright.plan.schema import Plan
from trainwright.plan.serving_rows import serving_rows


def report(settings: dict[str, Any] | None = None, gpu: str = "rtx-4090", **inputs: int) -> Report:
    shape = {"prompt_tokens": 1024, "new_tokens": 256, "concurrent": 8} | inputs
    plan = Plan.model_validate(
        {
            "model": {"preset": "llama-3.1-8b"},
            "workload": {"task": "infer", "inputs": shape},
            "machine": {"gpus": [{"id": gpu}]},
            "settings": {"precision": "bf16"} | (settings or {}),
        }
    )
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    return evaluate(plan, facts)


def time_of(settings: dict[str, Any] | None = None, **inputs: int) -> dict[str, Any]:
    found: dict[str, Any] = as_json(report(settings, **inputs))["time"]
    return found


def test_an_answer_has_the_first_token_and_the_rate_of_each_request() -> None:
    time = time_of({"engine": "vllm"})
    low, high = time["serving_interval90"]["first_token_seconds"]
    assert low < time["first_token_seconds"] < high
    assert time["first_token_all_seconds"] > 5 * time["first_token_seconds"]
    assert time["decode_tokens_per_second"] == pytest.approx(
        8 * time["tokens_per_second_per_request"]
    )
    assert time["decode_limit"] == "weights"
    assert time["bottleneck"] == "gpu"


def test_a_round_is_its_two_phases() -> None:
    time = time_of({"engine": "vllm"})
    phases = sum(stage["seconds"] for stage in time["stages"])
    assert time["step_seconds"] == pytest.approx(phases)
    generating = 255 * 8 / time["decode_tokens_per_second"]
    assert time["step_seconds"] == pytest.approx(time["first_token_all_seconds"] + generating)


def test_transformers_waits_for_the_cpu_and_an_engine_does_not() -> None:
    eager = report({"engine": "transformers"}, gpu="h100-80gb-sxm", concurrent=1)
    engine = report({"engine": "vllm"}, gpu="h100-80gb-sxm", concurrent=1)
    assert eager.time.bottleneck == "launch"
    assert engine.time.bottleneck == "gpu"
    assert eager.time.serving is not None
    assert eager.time.serving.limit == "launches"
    assert eager.time.step_seconds.value > 1.5 * engine.time.step_seconds.value
    launch = next(stage for stage in eager.time.stages if stage.name == "launch")
    shown = sum(stage.seconds.value for stage in eager.time.stages if not stage.hidden)
    assert launch.seconds.value > 0
    assert eager.time.step_seconds.value == pytest.approx(shown)


def test_four_bit_weights_are_faster_for_one_request() -> None:
    plain = time_of({"engine": "vllm"}, concurrent=1)
    packed = time_of({"engine": "vllm", "quantization": "int4"}, concurrent=1)
    rate = "tokens_per_second_per_request"
    assert packed[rate] > 1.7 * plain[rate]


def test_a_prompt_without_an_answer_has_no_rate() -> None:
    time = time_of({"engine": "vllm"}, new_tokens=1)
    assert time["tokens_per_second_per_request"] is None
    assert time["first_token_seconds"] > 0
    assert time["decode_limit"] is None


def test_a_gpu_without_published_peaks_gets_a_bound_and_no_interval() -> None:
    found = report({"precision": "fp16-mixed", "quantization": "q4_k_m"}, gpu="apple-m4")
    time = as_json(found)["time"]
    assert found.time.reason is not None
    assert time["serving_interval90"] == {}
    assert found.serving is not None
    rows = serving_rows(found.serving, found.time.serving)
    said = [render(value, "en") for _, value in rows if not isinstance(value, str)]
    assert any(text.startswith("at least") for text in said)
    assert any(text.startswith("at most") for text in said)


@pytest.mark.parametrize("language", LANGUAGES)
def test_rows_are_said_in_both_languages(language: Any) -> None:
    found = report({"engine": "vllm"})
    assert found.serving is not None
    for name, value in serving_rows(found.serving, found.time.serving)[:5]:
        for said in (name, value):
            text = said if isinstance(said, str) else render(said, language)
            assert "plan.serving" not in text
            assert "{" not in text
