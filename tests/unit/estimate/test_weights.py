"""Bytes of quantised weights against the tables of those who make the files."""

import json
from typing import Any

import pytest

from trainwright.data import resources
from trainwright.estimate import weights
from trainwright.estimate.weights import GGML, Inventory, quantized

LLAMA = 8_030_261_248


def config(preset: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(resources("presets", preset, "config.json").read_text())
    return document


@pytest.fixture(scope="module")
def llama() -> Inventory:
    found = weights.inventory(config("llama-3.1-8b"), LLAMA)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("file", "bits"),
    [
        ("q2_k", "3.1593"),
        ("q3_k_s", "3.6429"),
        ("q3_k_l", "4.2979"),
        ("q4_k_s", "4.6672"),
        ("q4_k_m", "4.8944"),
        ("q5_k_s", "5.5704"),
        ("q5_k_m", "5.7036"),
        ("q6_k", "6.5633"),
        ("q8_0", "8.5008"),
    ],
)
def test_bits_a_weight_are_those_of_llama_quantize(llama: Inventory, file: str, bits: str) -> None:
    # llama.cpp: tools/quantize/README.md, table of Llama-3.1-8B
    assert f"{quantized(llama, file).bits_each:.4f}" == bits


@pytest.mark.parametrize(
    ("format", "gigabytes"),
    [
        # huggingface.co/bartowski/Meta-Llama-3.1-8B-Instruct-GGUF
        ("q2_k", 3.18),
        ("q3_k_m", 4.02),
        ("q4_k_m", 4.92),
        ("q5_k_m", 5.73),
        ("q6_k", 6.60),
        ("q8_0", 8.54),
        # huggingface.co/hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4, two shards
        ("int4", 5.73),
        # huggingface.co/RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic, two shards
        ("fp8", 9.08),
    ],
)
def test_published_files_are_within_one_percent(
    llama: Inventory, format: str, gigabytes: float
) -> None:
    assert quantized(llama, format).nbytes / 1e9 == pytest.approx(gigabytes, rel=0.01)


@pytest.mark.parametrize(
    ("block", "bits"),
    [("q2_K", 2.625), ("q3_K", 3.4375), ("q4_K", 4.5), ("q5_K", 5.5), ("q6_K", 6.5625)],
)
def test_blocks_have_the_bits_of_the_k_quants(block: str, bits: float) -> None:
    count, nbytes = GGML[block]  # github.com/ggml-org/llama.cpp/pull/1684
    assert 8 * nbytes / count == bits


def test_blocks_are_those_of_the_gguf_package() -> None:
    gguf = pytest.importorskip("gguf")
    for name, size in GGML.items():
        assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name.upper()]] == size


def test_embeddings_and_head_stay_in_16_bits(llama: Inventory) -> None:
    kept = {part.type: part for part in quantized(llama, "int8").parts}["16-bit"]
    assert kept.elements == 2 * 128_256 * 4096 + llama.vectors
    assert kept.nbytes == 2 * kept.elements


def test_nf4_takes_the_bytes_of_the_qlora_paper(llama: Inventory) -> None:
    part = {part.type: part for part in quantized(llama, "nf4").parts}["nf4"]
    # section 3 of arXiv 2305.14314: 4 + 8/64 + 32/(64·256) bits
    assert 8 * part.nbytes / part.elements == pytest.approx(4.127, abs=5e-4)


@pytest.mark.parametrize(
    ("preset", "parameters", "tied"),
    [
        ("gpt2", 124_439_808, True),
        ("llama-3.2-1b", 1_235_814_400, True),
        ("qwen-2.5-0.5b", 494_032_768, True),
        ("qwen-2.5-7b", 7_615_616_512, False),
        ("mistral-7b", 7_248_023_552, False),
    ],
)
def test_every_parameter_is_accounted_for(preset: str, parameters: int, tied: bool) -> None:
    found = weights.inventory(config(preset), parameters)
    assert found is not None
    assert found.elements == parameters
    assert found.tied is tied


def test_a_count_that_does_not_add_up_gives_no_answer() -> None:
    assert weights.inventory(config("llama-3.1-8b"), LLAMA * 2) is None
    assert weights.inventory(config("bert-base"), 109_514_298) is None


MIXTRAL = {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 32,
    "num_local_experts": 8,
    "vocab_size": 32000,
    "sliding_window": None,
}
DEEPSEEK_LITE = {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "first_k_dense_replace": 1,
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "kv_lora_rank": 512,
    "moe_intermediate_size": 1408,
    "moe_layer_freq": 1,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 102400,
}


def test_mixture_of_experts_is_accounted_for() -> None:
    found = weights.inventory(MIXTRAL, 46_702_792_704)  # arXiv 2401.04088: 46.7 B
    assert found is not None
    assert found.vectors == (2 * 32 + 1) * 4096
    # huggingface.co/TheBloke/Mixtral-8x7B-v0.1-GGUF: Q8_0 49.62 GB
    assert quantized(found, "q8_0").nbytes / 1e9 == pytest.approx(49.62, rel=0.01)


def test_latent_attention_is_accounted_for() -> None:
    found = weights.inventory(DEEPSEEK_LITE, 15_706_484_224)  # model card: 16 B
    assert found is not None
    assert found.vectors == 27 * (2 * 2048 + 512) + 2048
