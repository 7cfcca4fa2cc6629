"""What serves a model: how each engine stores keys and values, in what pages, and how much
memory it takes at its start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

from trainwright.estimate.serving.kv import CacheShape, Layer

__all__ = ["ENGINES", "Engine", "Form", "Policy", "page_tokens", "served_bytes", "token_bytes"]


@dataclass(frozen=True, slots=True)
class Form:
    """How elements of keys and values are stored."""

    bytes_each: Fraction
    """Of one element, scales of blocks included."""
    scale: int = 0
    """Bytes of scales for each head's key, and for its value, of a token."""
    source: str = ""
    per_layer: int = 0
    """Bytes of scales that a layer keeps once."""

    def vector(self, layer: Layer) -> Fraction:
        """Return the bytes of one token's keys and values in a layer."""
        vectors = 1 if layer.latent else 2
        return layer.elements * self.bytes_each + layer.heads * vectors * self.scale


def _plain(nbytes: int) -> Form:
    return Form(Fraction(nbytes))


_WIDE = {"fp32": _plain(4), "bf16": _plain(2), "fp16": _plain(2)}
_NARROW = {"bf16": _plain(2), "fp16": _plain(2)}

_FP8_VLLM = "vLLM: docs/features/quantization/quantized_kvcache.md, a fp32 scale a tensor"
_INT8_VLLM = "vLLM: vllm/v1/kv_cache_interface.py, int8_per_token_head"
_FP8_SGLANG = "SGLang: docs/advanced_features/quantized_kv_cache, per-tensor scales"
_FP8_TRT = "TensorRT-LLM: docs/source/reference/precision.md, a fp32 scale a tensor"
_Q8_0 = "ggml: ggml-common.h, block_q8_0: 34 bytes for 32 values"


@dataclass(frozen=True, slots=True)
class Policy:
    """Memory that an engine takes at its start, whatever is needed."""

    name: str
    """The option that says how much."""
    share: float | None
    """Its default; None where the engine takes what the context needs, and no more."""
    of: Literal["total", "static", "free", "need"]
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """One program that serves models."""

    id: str
    page: int
    """Tokens of a page; 1 where each token is stored by itself."""
    forms: Mapping[str, Form]
    """dtype -> how it is stored; a dtype that is missing cannot be had."""
    chunk: int | None
    """Tokens that it computes at once; None: whole prompts of all requests."""
    policy: Policy
    state_bytes: tuple[int, int] = (2, 4)
    """Bytes of an element of a convolution's inputs, and of a recurrent state: assumed for
    every engine, no published figure was found to compare with."""
    source: str = ""
    """Of page and chunk."""
    states_in_pages: bool = False
    """Whether states lie in pages of the size of the attention's: vLLM's, as inferred from the
    page sizes that it logs for hybrid models."""
    cells: int = 1
    """The whole cache is rounded up to a multiple of so many tokens."""
    splits: bool = False
    """Whether it spreads the layers over all GPUs of a computer, unless it is told not to."""


_LLAMA_CPP = Engine(
    "llama.cpp",
    page=1,
    forms={**_WIDE, "int8": Form(Fraction(34, 32), source=_Q8_0)},
    chunk=512,
    policy=Policy("--ctx-size", None, "need", "llama.cpp: tools/server/README.md"),
    state_bytes=(4, 4),
    source="llama.cpp: src/llama-kv-cache-iswa.cpp; n_ubatch = 512, as bindings document it",
    cells=256,
    splits=True,
)

ENGINES = {
    engine.id: engine
    for engine in (
        Engine(
            "transformers",
            page=1,
            forms=_WIDE,
            chunk=None,
            policy=Policy("", None, "need", "torch: caching allocator"),
            source="transformers 5.23: cache_utils.py, DynamicCache",
        ),
        Engine(
            "vllm",
            page=16,
            forms={
                **_WIDE,
                "fp8": Form(Fraction(1), source=_FP8_VLLM, per_layer=8),
                "int8": Form(Fraction(1), scale=4, source=_INT8_VLLM),
            },
            chunk=2048,
            policy=Policy(
                "gpu_memory_utilization", 0.92, "total", "vLLM 0.26: vllm/config/cache.py"
            ),
            source="vLLM 0.26: vllm/config/cache.py, DEFAULT_BLOCK_SIZE = 16;"
            " vllm/config/scheduler.py, DEFAULT_MAX_NUM_BATCHED_TOKENS = 2048",
            states_in_pages=True,
        ),
        Engine(
            "sglang",
            page=1,
            forms={**_NARROW, "fp8": Form(Fraction(1), source=_FP8_SGLANG, per_layer=8)},
            chunk=8192,
            policy=Policy("mem_fraction_static", 0.9, "static", "SGLang: docs, server arguments"),
            source="assumed: pages of a token, 8192 tokens at once",
        ),
        Engine(
            "tensorrt-llm",
            page=32,
            forms={
                **_WIDE,
                "fp8": Form(Fraction(1), source=_FP8_TRT, per_layer=8),
                "int8": Form(Fraction(1), source=_FP8_TRT, per_layer=8),
            },
            chunk=8192,
            policy=Policy(
                "free_gpu_memory_fraction", 0.9, "free", "TensorRT-LLM: llmapi KvCacheConfig"
            ),
            source="TensorRT-LLM: llmapi, tokens_per_block 32; assumed: 8192 tokens at once",
        ),
        _LLAMA_CPP,
        Engine(
            "ollama",
            page=1,
            forms=_LLAMA_CPP.forms,
            chunk=512,
            policy=Policy("OLLAMA_CONTEXT_LENGTH", None, "need", "ollama: docs/faq.md"),
            state_bytes=(4, 4),
            source="ollama: docs/faq.md; assumed: stores what llama.cpp stores",
            cells=256,
            splits=True,
        ),
    )
}
"""Engines by the word that a plan uses; defaults as of the versions in ``source``."""


def token_bytes(shape: CacheShape, form: Form, *, lasting: bool = False) -> float:
    """Return the bytes that one more token of one request takes in all layers.

    With ``lasting``, where every sliding window is full already.
    """
    layers = (layer for layer in shape.layers if layer.window is None or not lasting)
    return float(sum(form.vector(layer) for layer in layers))


def served_bytes(shape: CacheShape, engine: Engine, dtype: str, requests: int, tokens: int) -> int:
    """Return the bytes that requests of so many tokens each hold in the engine's cache.

    Raises:
        KeyError: the engine does not store this dtype.
    """
    form = engine.forms[dtype]
    page = page_tokens(shape, engine, dtype)
    total = Fraction(0)
    for layer in shape.layers:
        if layer.heads:
            held = _tokens_held(layer, engine, requests, tokens, page)
            total += held * form.vector(layer) + form.per_layer
        total += requests * _state_bytes(layer, engine)
    return ceil(total)


def _tokens_held(layer: Layer, engine: Engine, requests: int, tokens: int, page: int) -> int:
    """Return the tokens that a layer has room for.

    A window needs, beside itself, the tokens that are computed at once (vLLM:
    ``SlidingWindowSpec.max_memory_usage_bytes``; llama.cpp: ``llama-kv-cache-iswa.cpp``).
    """
    window = layer.window
    if window is None or window >= tokens:
        return _up(requests * _up(tokens, page), engine.cells)
    if engine.chunk is None:
        return requests * window
    if engine.cells > 1:
        cells = min(requests * tokens, requests * window + engine.chunk)
        return _up(cells, engine.cells)
    rows = min(window - 1 + engine.chunk, tokens)
    return requests * (_up(rows, page) + (page if page > 1 else 0))


def page_tokens(shape: CacheShape, engine: Engine, dtype: str) -> int:
    """Return the tokens of a page.

    vLLM makes pages of attention as large as those of states: its page grows to the next
    multiple of its block that holds a state (``vllm/model_executor/models/config.py``).
    """
    form = engine.forms[dtype]
    if not engine.states_in_pages or not shape.has_state:
        return engine.page
    largest = max(_state_bytes(layer, engine) for layer in shape.layers)
    token = max(form.vector(layer) for layer in shape.layers)
    return _up(ceil(largest / token), engine.page) if token else engine.page


def _state_bytes(layer: Layer, engine: Engine) -> int:
    """Return the bytes of one request's state in a layer; engines keep kernel - 1 inputs.

    The recurrent state is fp32 (``mamba_ssm_dtype`` of the models that name it; llama.cpp
    keeps both in fp32), the convolution's inputs have the 16 bits of the activations.
    """
    inputs, state = engine.state_bytes
    width = layer.kernel if engine.chunk is None else max(layer.kernel - 1, 0)
    return layer.channels * width * inputs + layer.state * state


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
