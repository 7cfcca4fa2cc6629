"""Which engine serves which weights and caches, and on which GPUs: defaults and refusals."""

from typing import get_args

from trainwright.catalog import GpuRecord
from trainwright.messages import UserError
from trainwright.workload.settings import (
    EngineName,
    KvCache,
    Precision,
    Quantization,
    Settings,
)
from trainwright.workload.workload import Workload

PACKED: tuple[Quantization, ...] = ("none", "int8", "int4", "nf4", "fp4", "fp8", "mxfp4")
GGUF: tuple[Quantization, ...] = tuple(
    word for word in get_args(Quantization) if word not in PACKED
)
"""File types of llama.cpp."""

WEIGHTS: dict[EngineName, tuple[Quantization, ...]] = {
    "transformers": ("none", "int8", "nf4", "fp4"),
    "vllm": ("none", "int8", "int4", "nf4", "fp8", "mxfp4"),
    "sglang": ("none", "int8", "int4", "fp8", "mxfp4"),
    "tensorrt-llm": ("none", "int8", "int4", "fp8", "mxfp4"),
    "llama.cpp": ("none", "mxfp4", *GGUF),
    "ollama": ("none", "mxfp4", *GGUF),
}
"""Weights that each engine serves, as far as they are planned."""

FROM: dict[str, tuple[int, int]] = {"vllm": (7, 0), "sglang": (7, 5), "tensorrt-llm": (8, 0)}
"""Compute capability from which engines have kernels. Sources: vLLM: docs, GPU, up to 0.14; SGLang:
docs, Install; TensorRT-LLM: docs, Supported Hardware."""
_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "vllm": ("CDNA 2", "CDNA 3", "CDNA 4", "RDNA 3", "RDNA 3.5", "RDNA 4", "Intel"),
    "sglang": ("CDNA 3", "CDNA 4", "Intel"),
}
"""Architectures and makers besides NVIDIA: the same pages. vLLM-Metal, a plugin over MLX, and
SGLang on Apple's GPUs are not planned."""

CACHES: dict[EngineName, tuple[KvCache, ...]] = {
    "transformers": (),
    "vllm": ("fp8", "int8"),
    "sglang": ("fp8",),
    "tensorrt-llm": ("fp8", "int8"),
    "llama.cpp": ("int8",),
    "ollama": ("int8",),
}
"""Quantised caches that each engine has; int8 is q8_0 in the last two."""

SHARING: tuple[EngineName, ...] = ("vllm", "sglang", "tensorrt-llm")
"""Engines that take a share of the memory at their start."""

COPYING: tuple[EngineName, ...] = ("vllm", "sglang")
"""Engines whose ``--data-parallel-size`` runs a whole copy of the model on each of several GPUs.
Sources: vLLM: docs, Data Parallel Deployment; SGLang: docs, Server Arguments."""


def copies_of(engine: EngineName, requests: int, gpus: int) -> int:
    """Return how many copies of a served model share the requests: no more than there are."""
    return min(gpus, max(requests, 1)) if engine in COPYING else 1


_OWN: dict[str, KvCache] = {
    "fp32": "fp32",
    "tf32": "fp32",
    "fp16-mixed": "fp16",
    "fp16": "fp16",
    "bf16-mixed": "bf16",
    "bf16": "bf16",
}
"""Precision -> dtype in which attention keeps keys and values."""

_FP8_UNITS = (8, 9)
"""Compute capability of Ada: the first with fp8."""
_CONVERTS_FP8 = (7, 0)
"""Earlier GPUs convert fp8 by bit operations (vLLM #2279: tested on Volta and Ampere)."""
_MARLIN = (7, 5)
"""fp8 weights for 16-bit products (vLLM: docs, FP8 W8A8)."""


def served_by(
    settings: Settings,
    workload: Workload,
    quantization: Quantization,
    precision: Precision,
    record: GpuRecord,
) -> tuple[EngineName, KvCache]:
    """Return the engine and the dtype of its cache.

    Raises:
        UserError: the engine does not serve such weights or such a cache, or the GPU cannot.
    """
    own = _OWN[precision]
    if workload.trains:
        return "transformers", own
    cache = settings.kv_cache or own
    split = settings.tensor_degree is not None
    engine = settings.engine or _usual(quantization, cache, own, record, split=split)
    if quantization not in WEIGHTS[engine]:
        raise UserError.of(
            "workload.engine-weights",
            key="settings.quantization",
            engine=engine,
            value=quantization,
            formats=list(WEIGHTS[engine]),
            others=[name for name, formats in WEIGHTS.items() if quantization in formats],
        )
    if cache not in (own, *CACHES[engine]):
        raise _no_cache(engine, cache, own)
    _check_units(engine, quantization, cache, record)
    check_kernels(engine, record, "settings.engine")
    if settings.memory_share is not None and engine not in SHARING:
        raise UserError.of(
            "workload.engine-share",
            key="settings.memory_share",
            engine=engine,
            others=list(SHARING),
        )
    return engine, cache


def runs_on(engine: str, record: GpuRecord) -> bool:
    """Return whether an engine has kernels for a GPU; True where the GPU's units are not known."""
    if engine not in FROM:
        return True
    if record.vendor == "NVIDIA":
        return (record.compute_capability or FROM[engine]) >= FROM[engine]
    elsewhere = _ELSEWHERE.get(engine, ())
    return record.architecture in elsewhere or record.vendor in elsewhere


def check_kernels(engine: str, record: GpuRecord, key: str) -> None:
    """Refuse an engine that has no kernels for the GPU.

    Raises:
        UserError: it has none; names those that run there.
    """
    if runs_on(engine, record):
        return
    values = {"engine": engine, "gpu": record.name}
    others = [name for name in WEIGHTS if runs_on(name, record)]
    raise UserError.of("workload.engine-gpu", key=key, others=others, **values)


def _usual(
    quantization: Quantization, cache: KvCache, own: KvCache, record: GpuRecord, *, split: bool
) -> EngineName:
    if quantization in GGUF or (quantization == "mxfp4" and not runs_on("vllm", record)):
        return "llama.cpp"
    if quantization in ("int4", "fp8", "mxfp4") or cache in ("fp8", "int8"):
        return "vllm"
    return "vllm" if split else "transformers"


def _no_cache(engine: EngineName, cache: KvCache, own: KvCache) -> UserError:
    others = [name for name, caches in CACHES.items() if cache in caches]
    return UserError.of(
        "workload.engine-cache" if others else "workload.cache-of-weights",
        key="settings.kv_cache",
        engine=engine,
        value=cache,
        own=own,
        others=others,
    )


def caches_fp8(engine: str, record: GpuRecord) -> bool:
    """Return whether a GPU is new enough for the fp8 cache of an engine that has one."""
    return (record.compute_capability or _FP8_UNITS) >= _least(engine)


def _least(engine: str) -> tuple[int, int]:
    """Return the compute capability from which an engine keeps an fp8 cache."""
    return _FP8_UNITS if engine == "tensorrt-llm" else _CONVERTS_FP8


def _check_units(
    engine: EngineName, quantization: Quantization, cache: KvCache, record: GpuRecord
) -> None:
    """Refuse fp8 where the GPU has no units for it and the engine no way round."""
    capability = record.compute_capability
    if capability is None or capability >= _FP8_UNITS:
        return
    if cache == "fp8" and capability < _least(engine):
        raise _no_units("settings.kv_cache", record, ("vllm", "sglang"), _CONVERTS_FP8)
    least = _FP8_UNITS if engine != "vllm" else _MARLIN
    if quantization == "fp8" and capability < least:
        raise _no_units("settings.quantization", record, ("vllm",), _MARLIN)


def _no_units(
    key: str, record: GpuRecord, engines: tuple[EngineName, ...], from_capability: tuple[int, int]
) -> UserError:
    capability = record.compute_capability
    assert capability is not None, "checked by the caller"
    possible = list(engines) if capability >= from_capability else []
    return UserError.of(
        "workload.fp8-elsewhere" if possible else "workload.fp8-nowhere",
        key=key,
        gpu=record.name,
        capability=".".join(map(str, capability)),
        engines=possible,
    )
