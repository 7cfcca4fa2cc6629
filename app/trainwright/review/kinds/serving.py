"""Kinds that serve: command lines of vLLM and SGLang, and Ollama's Modelfile."""

from typing import Any

from trainwright.review.kinds.kind import Key, Kind, among, key, positive, whole, word
from trainwright.review.kinds.lightning import PRECISION, lightning_strategy

DTYPES = {
    "auto": None,
    "half": "fp16",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float": "fp32",
    "float32": "fp32",
}
WEIGHTS = {
    "awq": "int4",
    "awq_marlin": "int4",
    "gptq": "int4",
    "gptq_marlin": "int4",
    "fp8": "fp8",
    "w8a8_int8": "int8",
    "w8a8_fp8": "fp8",
    "bitsandbytes": "nf4",
    "compressed-tensors": None,
    "none": None,
}
CACHES = {
    "auto": None,
    "fp8": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_e4m3": "fp8",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "int8": "int8",
}
_SGLANG_CACHES = {word: cache for word, cache in CACHES.items() if word not in ("fp8", "int8")}
"""``sglang/srt/server_args.py`` of 0.5.23 refuses a plain fp8."""


def length(value: Any) -> int | None:
    """Return tokens; vLLM takes ``32k`` (thousands) and ``32K`` (of 1,024) too."""
    text = str(value)
    unit = {"k": 1_000, "K": 1_024, "m": 1_000_000, "M": 1 << 20}.get(text[-1:], 1)
    return whole(float(text.rstrip("kKmM")) * unit) if text not in ("auto", "-1") else None


_MADE = {"fp8": "fp8", "nf4": "bitsandbytes"}
"""Weights that vLLM makes of whole ones."""
VLLM = Kind(
    name="vllm",
    tool="vLLM",
    keys={
        "model": key("model"),
        "dtype": Key("precision", among(DTYPES), lambda v: {"fp16": "half"}.get(v, "bfloat16")),
        "max-model-len": key("context", length),
        "gpu-memory-utilization": key("memory_share", positive),
        "tensor-parallel-size": key("tensor", whole),
        "pipeline-parallel-size": key("pipeline", whole),
        "data-parallel-size": key("replicas", whole),
        "max-num-seqs": key("most_requests", whole),
        "quantization": Key("weights", among(WEIGHTS), _MADE.__getitem__),
        "kv-cache-dtype": Key("kv_cache", among(CACHES), lambda value: value),
        "cpu-offload-gb": Key("offload_gib", positive),
        "enforce-eager": Key("eager", lambda value: value is not False),
    },
    marks=frozenset({"max-model-len", "gpu-memory-utilization", "tensor-parallel-size", "model"}),
    # vllm/config/cache.py: gpu_memory_utilization; kv_cache_dtype "auto" is the model's.
    otherwise={"memory_share": 0.9, "engine": "vllm"},
    open=("",),
    moved={
        "use-v2-block-manager": None,
        "num-lookahead-slots": None,
        "swap-space": None,
        "worker-use-ray": "distributed-executor-backend",
        "max-context-len-to-capture": None,
        "max-seq-len-to-capture": None,
        "num-scheduler-steps": None,
        "guided-decoding-backend": "structured-outputs-config.backend",
        "preemption-mode": None,
        "disable-log-requests": "enable-log-requests",
        "task": "runner",
        "device": None,
        "speculative-model": "speculative-config",
        "num-speculative-tokens": "speculative-config",
        "cuda-graph-sizes": "cudagraph-capture-sizes",
    },
)
SGLANG = Kind(
    name="sglang",
    tool="SGLang",
    keys={
        "model-path": key("model"),
        "model": key("model"),
        "dtype": Key("precision", among(DTYPES), lambda v: {"fp16": "half"}.get(v, "bfloat16")),
        "context-length": key("context", whole),
        "mem-fraction-static": key("memory_share", positive),
        **dict.fromkeys(("tp-size", "tp", "tensor-parallel-size"), key("tensor", whole)),
        **dict.fromkeys(("dp-size", "dp", "data-parallel-size"), key("replicas", whole)),
        **dict.fromkeys(("pp-size", "pp", "pipeline-parallel-size"), key("pipeline", whole)),
        "max-running-requests": key("most_requests", whole),
        "quantization": Key("weights", among(WEIGHTS), {"fp8": "fp8"}.__getitem__),
        "kv-cache-dtype": Key(
            "kv_cache", among(_SGLANG_CACHES), lambda v: {"fp8": "fp8_e4m3"}.get(v, v)
        ),
    },
    marks=frozenset({"model-path", "mem-fraction-static", "context-length"}),
    otherwise={"engine": "sglang"},
    open=("",),
)

_QUANTS = (
    *("q2_k", "q3_k_s", "q3_k_m", "q3_k_l", "q4_0", "q4_k_s", "q4_k_m", "q5_k_s", "q5_k_m"),
    *("q6_k", "q8_0"),
)


def quantization(value: Any) -> str | None:
    """Return the file type in a name: ``llama3.1:8b-instruct-q4_K_M``, ``model.Q5_K_S.gguf``.

    ollama.com's tags without one are Q4_K_M in most models, which the review says.
    """
    text = str(value).lower()
    found = [word for word in _QUANTS if word in text]
    return max(found, key=len) if found else None


def _layers(value: Any) -> int | None:
    """Return the layers on the GPU; None for all that fit."""
    return None if str(value) in ("auto", "all", "-1") else int(value)


MODELFILE = Kind(
    name="modelfile",
    tool="Ollama Modelfile",
    keys={
        "FROM": (key("model", word), Key("weights", quantization)),
        "ADAPTER": Key("adapter_file", word),
        "PARAMETER.num_ctx": key("context", whole),
        "PARAMETER.num_predict": key("new_tokens", whole),
        "PARAMETER.num_gpu": Key("layers_on_gpu", lambda value: int(value)),
        "PARAMETER.num_batch": Key("prompt_batch", whole),
    },
    marks=frozenset({"FROM"}),
    # envconfig/config.go: OLLAMA_CONTEXT_LENGTH; 4,096 below 24 GiB of GPU memory.
    otherwise={"engine": "ollama", "context": 4096},
    open=(
        *("TEMPLATE", "SYSTEM", "LICENSE", "MESSAGE", "PARAMETER.stop"),
        *(
            f"PARAMETER.{name}"
            for name in (
                *("temperature", "top_k", "top_p", "min_p", "seed", "repeat_penalty"),
                *("repeat_last_n", "num_thread", "num_keep", "presence_penalty", "use_mmap"),
                *("frequency_penalty", "typical_p", "main_gpu", "draft_num_predict"),
            )
        ),
    ),
    moved={
        "PARAMETER.mirostat": None,
        "PARAMETER.mirostat_eta": None,
        "PARAMETER.mirostat_tau": None,
        "PARAMETER.low_vram": None,
        "PARAMETER.f16_kv": None,
        "PARAMETER.vocab_only": None,
        "PARAMETER.tfs_z": None,
        "PARAMETER.num_gqa": None,
        "PARAMETER.embedding_only": None,
        "PARAMETER.rope_frequency_base": None,
        "PARAMETER.rope_frequency_scale": None,
        "PARAMETER.use_mlock": None,
        "PARAMETER.penalize_newline": None,
        "PARAMETER.numa": None,
    },
    strict=False,
    complete=True,
)


def _each_node(value: Any) -> int | None:
    """Return the processes of a node; None for one on each GPU, whose words torchrun has."""
    return None if value in ("gpu", "auto") else whole(value)


def _allotted(value: Any) -> int | None:
    """Return the GPUs of ``gpu:a100:4``, ``a100:4`` or ``4``; None where it is of other things."""
    name, _, count = str(value).rpartition(":")
    return whole(count or 1) if not name or "gpu" in name or name.isalnum() else None


def _included(value: Any) -> int | None:
    """Return the GPUs of a computer in DeepSpeed's ``host1:0,1@host2:0,1``; None for all."""
    _, _, slots = str(value).partition("@")[0].partition(":")
    return len(slots.split(",")) if slots else None


TGI = Kind(
    name="tgi",
    tool="Text Generation Inference",
    keys={
        "model-id": key("model"),
        "max-total-tokens": key("context", whole),
        "max-input-tokens": Key("prompt", whole),
        "max-input-length": Key("prompt", whole),
        "num-shard": key("tensor", whole),
        "max-batch-size": key("most_requests", whole),
        "cuda-memory-fraction": key("memory_share", positive),
        "quantize": Key("weights", among(WEIGHTS | {"eetq": "int8", "bitsandbytes-nf4": "nf4"})),
        "kv-cache-dtype": Key("kv_cache", among(CACHES), lambda value: value),
        "dtype": Key("precision", among(DTYPES), lambda v: {"fp16": "float16"}.get(v, "bfloat16")),
    },
    marks=frozenset({"model-id", "max-total-tokens", "num-shard"}),
    # launcher/src/main.rs: cuda_memory_fraction 1.0. Plans have no engine of that name, and vLLM's
    # pages of keys and values are the nearest.
    otherwise={"engine": "vllm"},
    open=("",),
)
TRTLLM = Kind(
    name="trtllm",
    tool="TensorRT-LLM",
    keys={
        "model": key("model"),
        "max-seq-len": key("context", whole),
        "max-batch-size": key("most_requests", whole),
        "tp-size": key("tensor", whole),
        "pp-size": key("pipeline", whole),
        "kv-cache-dtype": Key("kv_cache", among(CACHES), lambda value: value),
        "kv-cache-free-gpu-memory-fraction": Key("cache_share", positive),
    },
    marks=frozenset({"max-seq-len", "tp-size", "kv-cache-free-gpu-memory-fraction"}),
    otherwise={"engine": "vllm"},  # as of Text Generation Inference
    open=("",),
)
_CACHE_TYPES = {"f16": "fp16", "bf16": "bf16", "q8_0": "int8", "f32": None, "q4_0": None}
LLAMA_SERVER = Kind(
    name="llama-server",
    tool="llama.cpp",
    keys={
        **dict.fromkeys(("model", "m", "hf", "hf-repo"),
                        (key("model", word), Key("weights", quantization))),
        **dict.fromkeys(("ctx-size", "c"), key("context", whole)),
        **dict.fromkeys(("predict", "n-predict", "n"), key("new_tokens", whole)),
        **dict.fromkeys(("n-gpu-layers", "gpu-layers", "ngl"), Key("layers_on_gpu", _layers)),
        **dict.fromkeys(("parallel", "np"), key("most_requests", whole)),
        **dict.fromkeys(("cache-type-k", "ctk"), Key("kv_cache", among(_CACHE_TYPES))),
    },
    marks=frozenset({"n-gpu-layers", "ctx-size", "hf-repo"}),
    otherwise={"engine": "llama.cpp"},
    open=("",),
)  # fmt: skip


def _handed(value: Any) -> int | None:
    """Return the GPUs of ``2``, ``device=0,1`` or ``0,1``; None for all."""
    text = str(value).strip("\"'")
    if text in ("all", "-1", ""):
        return None
    ids = text.removeprefix("device=").split(",")
    return len(ids) if len(ids) > 1 or "=" in text else whole(text)


DEVICES = Kind(
    name="devices",
    tool="visible GPUs",
    keys={
        "gpus": Key("allotted", _handed),
        "CUDA_VISIBLE_DEVICES": Key("allotted", lambda value: len(str(value).split(","))),
    },
    marks=frozenset(),
)
"""What a container gets, or the environment shows."""
LAUNCH = Kind(
    name="launch",
    tool="torchrun",
    keys={
        **dict.fromkeys(("nproc_per_node", "nproc-per-node"), key("devices", _each_node)),
        "nnodes": key("nodes", lambda value: whole(str(value).rpartition(":")[2])),
        "num_processes": key("processes", whole),
        "num_machines": key("nodes", whole),
        "num_gpus": key("devices", whole),
        "include": (Key("devices", _included), Key("nodes", lambda value: 1 + value.count("@"))),
        "num_nodes": key("nodes", whole),
        "nodes": key("nodes", whole),
        "mixed_precision": Key(
            "precision",
            among({"no": "fp32", "bf16": "bf16-mixed", "fp16": "fp16-mixed", "fp8": "fp8"}),
        ),
        "use_deepspeed": Key("uses_deepspeed", lambda value: True),
        "zero_stage": Key("stage", among({"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3"})),
        "multi_gpu": Key("strategy", lambda value: "ddp"),
        "use_fsdp": Key("strategy", lambda value: "fsdp2"),
        # Lightning's fabric run
        "devices": key("devices", _each_node),
        "strategy": Key("strategy", lightning_strategy),
        "precision": Key("precision", among(PRECISION)),
        "N": key("nodes", whole),
        "gres": Key("allotted", _allotted),
        "gpus-per-node": Key("allotted", _allotted),
        **dict.fromkeys(("gpus", "G"), Key("allotted_in_all", _allotted)),  # of all nodes
    },
    marks=frozenset(),
    open=("",),
)
"""What torchrun, accelerate launch and deepspeed take before the script's name."""
