"""Bytes of quantised weights against the tables of those who make the files."""

import json
from typing import Any

import pytest

from trainwright.data import resources
from trainwright.estimate.serving import weights
from trainwright.estimate.serving.weights import GGML, Inventory, quantized

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
    ("file", "nbytes"),
    [
        ("q2_k", 3_179_131_168),
        ("q3_k_s", 3_664_498_976),
        ("q3_k_m", 4_018_917_664),
        ("q3_k_l", 4_321_956_128),
        ("q4_k_s", 4_692_668_704),
        ("q4_k_m", 4_920_733_984),
    ],
)
def test_files_of_llama_3_differ_by_their_header_alone(
    llama: Inventory, file: str, nbytes: int
) -> None:
    # huggingface.co/ddh0/UnquantizedEmbeddingTesting: sizes.txt, of Meta-Llama-3-8B-Instruct
    header = 7_835_936  # the same for each: the vocabulary and the tensors' names
    assert quantized(llama, file).nbytes + header == nbytes


PUBLISHED = {
    # huggingface.co/starble-dev/Meta-Llama-3.1-8B-Instruct-GGUF
    ("llama-3.1-8b", LLAMA): {
        "q2_k": 3.18,
        "q3_k_m": 4.02,
        "q4_k_m": 4.92,
        "q5_k_s": 5.60,
        "q5_k_m": 5.73,
        "q6_k": 6.60,
        "q8_0": 8.54,
        # huggingface.co/hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4: 4.68 + 1.05
        "int4": 5.73,
        # huggingface.co/neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8: 5 + 4.08
        "fp8": 9.08,
    },
    # huggingface.co/gobean/Mixtral-8x7B-Instruct-v0.1-GGUF
    ("mixtral-8x7b", 46_702_792_704): {
        "q3_k_m": 22.5,
        "q4_0": 26.4,
        "q4_k_m": 28.4,
        "q5_k_m": 33.2,
        "q6_k": 38.4,
    },
    # huggingface.co/ggml-org/gpt-oss-20b-GGUF; openai/gpt-oss-20b: 4.79 + 4.80 + 4.17
    ("gpt-oss-20b", 20_914_757_184): {"mxfp4_moe": 12.1, "mxfp4": 13.76},
    # huggingface.co/mradermacher/DeepSeek-V2-Lite-GGUF, q4_0: second-state's of the chat model
    ("deepseek-v2-lite", 15_706_484_224): {
        "q2_k": 6.43,
        "q3_k_s": 7.49,
        "q3_k_m": 8.13,
        "q3_k_l": 8.46,
        "q4_0": 8.91,
        "q4_k_s": 9.53,
        "q4_k_m": 10.4,
        "q5_k_s": 11.1,
        "q5_k_m": 11.9,
        "q6_k": 14.1,
        "q8_0": 16.7,
    },
}


@pytest.mark.parametrize(
    ("preset", "parameters", "format", "gigabytes"),
    [(*model, *file) for model, files in PUBLISHED.items() for file in files.items()],
)
def test_published_files_are_within_half_a_percent(
    preset: str, parameters: int, format: str, gigabytes: float
) -> None:
    found = weights.inventory(config(preset), parameters)
    assert found is not None
    assert quantized(found, format).nbytes / 1e9 == pytest.approx(gigabytes, rel=0.005)


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
        ("mixtral-8x7b", 46_702_792_704, False),
        ("deepseek-v2-lite", 15_706_484_224, False),
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
