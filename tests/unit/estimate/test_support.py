"""Whether PyTorch or an engine runs on a GPU under a system, as published lists say."""

from typing import Any

import pytest

from trainwright.catalog import find_gpu, list_gpus
from trainwright.estimate.support import pytorch, support, widening
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report, as_json
from trainwright.plan.schema import Plan


def state(gpu: str, system: Any) -> str:
    return pytorch(find_gpu(gpu).record, system).state


@pytest.mark.parametrize(
    ("gpu", "system", "expected"),
    [
        ("rtx-4090", "linux", "supported"),
        ("rtx-4090", "windows", "supported"),
        ("rtx-4090", "macos", "unsupported"),
        ("gtx-1080", "linux", "older"),
        ("v100-16gb-sxm", "linux", "older"),
        ("gtx-1650", "linux", "supported"),
        ("rx-7900-xtx", "linux", "supported"),
        ("rx-7900-xtx", "windows", "preview"),
        ("rx-6800-xt", "linux", "unlisted"),
        ("radeon-pro-w6800", "linux", "supported"),
        ("rx-6800-xt", "windows", "unsupported"),
        ("rx-6700-xt", "linux", "unsupported"),
        ("mi300x", "linux", "supported"),
        ("mi300x", "windows", "unsupported"),
        ("arc-b580", "windows", "prototype"),
        ("arc-b580", "macos", "unsupported"),
        ("apple-m2-max", "macos", "supported"),
        ("apple-m2-max", "linux", "unsupported"),
    ],
)
def test_published_lists(gpu: str, system: str, expected: str) -> None:
    assert state(gpu, system) == expected


@pytest.mark.parametrize("system", ["linux", "windows", "macos"])
def test_every_card_of_the_catalog_is_answered_with_a_source(system: Any) -> None:
    for record in list_gpus():
        found = pytorch(record, system)
        assert found.source
        for language in LANGUAGES:
            said = render(found.because, language)
            assert record.name in said
            assert "{" not in said


def report(gpu: str, settings: dict[str, Any], **machine: str) -> Report:
    plan = Plan.model_validate(
        {
            "model": {"preset": "gpt2"},
            "workload": {
                "task": "infer",
                "inputs": {"prompt_tokens": 64, "new_tokens": 8, "concurrent": 1},
            },
            "machine": {"gpus": [{"id": gpu}], **machine},
            "settings": settings,
        }
    )
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    return evaluate(plan, facts)


def test_an_engine_of_linux_does_not_run_on_windows_but_llama_cpp_does() -> None:
    vllm = report("rtx-4090", {"engine": "vllm"}, system="windows")
    assert not vllm.runs
    assert as_json(vllm)["support"]["state"] == "unsupported"
    assert vllm.notes[0].id == "machine.support.engine"
    llama = report("rtx-4090", {"engine": "llama.cpp"}, system="windows")
    assert llama.runs


def test_tensorrt_is_nvidias() -> None:
    settings = {"engine": "tensorrt-llm", "precision": "bf16"}
    with pytest.raises(UserError, match=r"no kernels for Radeon RX 7900 XTX.*vllm"):
        report("rx-7900-xtx", settings)
    assert report("rtx-4090", settings).runs


def test_an_apple_gpu_means_macos() -> None:
    assert report("apple-m2-ultra", {"precision": "fp16-mixed"}).runs
    assert not report("apple-m2-ultra", {"precision": "fp16-mixed"}, system="windows").runs


def test_what_runs_without_doubt_needs_no_note() -> None:
    notes = [note.id for note in report("rtx-4090", {"engine": "vllm"}).notes]
    assert not any(id.startswith("machine.support") for id in notes)
    assert as_json(report("rtx-4090", {}))["support"]["source"]


def test_times_of_other_makers_are_less_certain() -> None:
    assert widening(find_gpu("rtx-4090").record) == 1
    assert widening(find_gpu("mi210").record) > 1
    settings = {"engine": "llama.cpp", "quantization": "q4_k_m", "precision": "fp16-mixed"}

    def width(gpu: str) -> float:
        interval = report(gpu, settings).time.samples_per_second.interval
        assert interval is not None
        return interval.high / interval.low

    assert width("rx-7900-xtx") > width("rtx-4090")


def test_settings_do_not_change_what_pytorch_runs_on() -> None:
    found = report("rtx-4090", {"engine": "transformers"})
    assert found.support == pytorch(find_gpu("rtx-4090").record, "linux")
    assert support(find_gpu("rtx-4090").record, "linux", found.settings) == found.support


@pytest.mark.parametrize("engine", ["transformers", "vllm", "llama.cpp"])
def test_gaudi_is_known_and_not_promised(engine: str) -> None:
    """PyTorch's own builds have no code for it, and llama.cpp has no backend."""
    for id in ("gaudi-2", "gaudi-3"):
        assert not report(id, {"engine": engine, "precision": "bf16"}).runs
