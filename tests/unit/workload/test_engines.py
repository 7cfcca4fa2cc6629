"""Which engine serves what, and what each refuses."""

from typing import Any, get_args

import pytest

from trainwright.catalog import Fact, GpuRecord
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.workload import FullSettings, Settings, Workload
from trainwright.workload.defaults import filled
from trainwright.workload.engines import CACHES, GGUF, WEIGHTS
from trainwright.workload.settings import EngineName, Quantization


def gpu(*capability: int) -> GpuRecord:
    fact = Fact(value=1.0, source="test", confidence="high")
    return GpuRecord(
        id="test",
        name="Test 1",
        vendor="NVIDIA",
        segment="consumer",
        architecture="",
        compute_capability=capability,
        memory_bytes=fact,
        bandwidth_bytes_per_s=fact,
    )


PASCAL, VOLTA, AMPERE, ADA = gpu(6, 1), gpu(7, 0), gpu(8, 6), gpu(8, 9)


def settle(record: GpuRecord = ADA, **settings: Any) -> FullSettings:
    workload = Workload.model_validate({"task": "infer"})
    return filled(Settings.model_validate(settings), workload, record)


def refusal(record: GpuRecord = ADA, **settings: Any) -> str:
    with pytest.raises(UserError) as error:
        settle(record, **settings)
    for language in LANGUAGES:
        assert len(render(error.value.message, language).splitlines()) == 1
    return str(error.value)


def test_every_engine_and_every_format_has_a_place() -> None:
    assert set(WEIGHTS) == set(CACHES) == set(get_args(EngineName))
    assert {word for formats in WEIGHTS.values() for word in formats} == set(get_args(Quantization))


@pytest.mark.parametrize(
    ("settings", "engine"),
    [
        ({}, "transformers"),
        ({"quantization": "nf4"}, "transformers"),
        ({"quantization": "int8"}, "transformers"),
        ({"quantization": "int4"}, "vllm"),
        ({"quantization": "fp8"}, "vllm"),
        ({"quantization": "q4_k_m"}, "llama.cpp"),
        ({"kv_cache": "fp8"}, "vllm"),
        ({"kv_cache": "int8"}, "vllm"),
        ({"engine": "sglang", "kv_cache": "fp8"}, "sglang"),
    ],
)
def test_the_usual_engine_serves_the_format(settings: dict[str, Any], engine: str) -> None:
    assert settle(**settings).engine == engine


@pytest.mark.parametrize("quantization", GGUF)
def test_files_of_llama_cpp_are_not_served_by_others(quantization: str) -> None:
    text = refusal(engine="vllm", quantization=quantization)
    assert "settings.quantization" in text
    assert "llama.cpp" in text
    assert "ollama" in text


def test_a_cache_that_the_engine_lacks_names_those_that_have_it() -> None:
    text = refusal(engine="llama.cpp", kv_cache="fp8")
    assert "settings.kv_cache" in text
    for engine in ("vllm", "sglang", "tensorrt-llm"):
        assert engine in text


def test_fp8_without_its_units_goes_by_engine() -> None:
    assert settle(AMPERE, kv_cache="fp8", precision="bf16").engine == "vllm"
    assert settle(AMPERE, quantization="fp8").engine == "vllm"
    assert settle(VOLTA, kv_cache="fp8").kv_cache == "fp8"
    assert "vllm" in refusal(AMPERE, kv_cache="fp8", engine="tensorrt-llm")
    assert "vllm" in refusal(AMPERE, quantization="fp8", engine="sglang")
    assert "no engine" in refusal(PASCAL, kv_cache="fp8")
    assert "no engine" in refusal(VOLTA, quantization="fp8")


def test_an_engine_without_kernels_for_the_gpu_is_refused_with_those_that_run_there() -> None:
    # vLLM: docs, GPU requirements; SGLang: docs, Install; TensorRT-LLM: docs, Supported Hardware
    metal = ADA.model_copy(
        update={"vendor": "Apple", "architecture": "Apple M3", "compute_capability": None}
    )
    cdna = metal.model_copy(update={"vendor": "AMD", "architecture": "CDNA 3"})
    for record, engine in ((PASCAL, "vllm"), (VOLTA, "sglang"), (metal, "vllm")):
        text = refusal(record, engine=engine)
        assert f"{engine} has no kernels for Test 1" in text
        assert "llama.cpp, ollama" in text
    assert "no kernels" in refusal(PASCAL, quantization="int4")
    assert "vllm, sglang, llama.cpp" in refusal(cdna, engine="tensorrt-llm")
    assert settle(cdna, engine="vllm").engine == settle(VOLTA, engine="vllm").engine == "vllm"


def test_mxfp4_goes_to_an_engine_that_runs_there() -> None:
    assert settle(ADA, quantization="mxfp4").engine == "vllm"
    assert settle(PASCAL, quantization="mxfp4").engine == "llama.cpp"


@pytest.mark.parametrize("engine", ["llama.cpp", "ollama"])
def test_files_of_llama_cpp_are_q4_k_m_unless_the_plan_says(engine: str) -> None:
    # llama.cpp, tools/server/README.md: -hf user/model[:quant], "default to Q4_K_M"
    assert settle(engine=engine).quantization == "q4_k_m"
    assert settle(engine=engine, quantization="none").quantization == "none"


def test_weights_of_files_are_not_trained() -> None:
    workload = Workload.model_validate({"task": "lora", "effective_batch": 8})
    with pytest.raises(UserError, match=r"settings\.quantization"):
        filled(Settings(quantization="q4_k_m"), workload, ADA)


def test_an_engine_takes_the_share_of_the_memory_that_the_plan_says() -> None:
    assert settle(AMPERE, engine="vllm", memory_share=0.8).memory_share == 0.8
    assert settle(AMPERE, engine="vllm").memory_share is None
    text = refusal(AMPERE, engine="llama.cpp", memory_share=0.8)
    assert "settings.memory_share" in text
    assert "vllm" in text
