"""Kind: torchtitan's TOML."""

from typing import Any

from trainwright.review.kinds.kind import (
    Key,
    Kind,
    among,
    at_least_one,
    count,
    key,
    positive,
    truth,
    where,
    whole,
)

DTYPES = {"bfloat16": "bf16-mixed", "float32": "fp32"}
WEIGHTS = {"bfloat16": "bf16", "float32": None}
MODES = {"none": "none", "full": "full", "selective": "selective", "memory_budget": None}
RESHARD = {"always": True, "never": False, "default": None}
OPTIMIZERS = {"adam": "adamw", "adamw": "adamw"}


def _every(value: Any) -> int | None:
    """``selective_ac_option``: each k-th layer, or ``op``."""
    return int(value) if str(value).isdigit() else None


TORCHTITAN = Kind(
    name="torchtitan",
    tool="torchtitan",
    keys={
        "model.name": key("model_family"),
        "model.flavor": key("flavor"),
        "model.hf_assets_path": key("model"),
        "config": key("model"),  # a function's name: llama3_8b
        "training.local_batch_size": key("micro_batch", at_least_one),
        "training.batch_size": key("micro_batch", at_least_one),
        "training.global_batch_size": key("global_batch", whole),
        "training.seq_len": key("length", whole),
        "training.steps": key("max_steps", whole),
        "training.mixed_precision_param": Key("precision", among(DTYPES)),
        "training.dtype": Key("weights_dtype", among(WEIGHTS)),
        "training.enable_cpu_offload": key("offload_params", truth),
        "training.compile": key("compile", truth),
        "training.dataloader.num_workers": key("num_workers", count),
        "training.dataloader.prefetch_factor": key("prefetch_factor", whole),
        "training.dataloader.pin_memory": key("pin_memory", truth),
        "training.dataloader.persistent_workers": key("persistent_workers", truth),
        # Who loads trained weights goes on with them.
        "checkpoint.initial_load_in_hf": Key("objective", where("sft")),
        "compile.enable": key("compile", truth),
        "optimizer.name": Key("optimizer", among(OPTIMIZERS)),
        "optimizer.lr": key("learning_rate", positive),
        "optimizer.implementation": Key("optimizer_implementation", str),
        "optimizer.early_step_in_backward": key("optimizer_in_backward", truth),
        "lr_scheduler.warmup_steps": key("warmup", count),
        "activation_checkpoint.mode": Key("checkpointing", among(MODES), lambda value: value),
        "activation_checkpoint.selective_ac_option": Key("every", _every),
        "parallelism.data_parallel_replicate_degree": Key("replicate", whole),
        "parallelism.data_parallel_shard_degree": (
            Key("shard", whole),
            Key("shard_rest", lambda value: value == -1 or None),
            Key("strategy", lambda value: "ddp" if value == 1 else None),
        ),
        "parallelism.fsdp_reshard_after_forward": Key("reshard", among(RESHARD)),
        "parallelism.tensor_parallel_degree": key("tensor", whole),
        "parallelism.pipeline_parallel_degree": key("pipeline", whole),
        "parallelism.context_parallel_degree": key("context_parallel", whole),
        "quantize.linear.float8.enable_fsdp_float8_all_gather": Key("fp8_gather", truth),
        "model.converters": Key(
            "precision",
            lambda value: "fp8" if any("float8" in str(v) for v in value or ()) else None,
        ),
    },
    marks=frozenset(
        {
            *("training.seq_len", "training.local_batch_size", "training.steps", "model.flavor"),
            *("parallelism.data_parallel_shard_degree", "activation_checkpoint.mode"),
            *("training.batch_size", "training.dataset"),
        }
    ),
    listed="torchtitan",
    otherwise={"strategy": "fsdp2", "adapter": "none", "objective": "pretrain"},
    moved={
        "training.batch_size": "training.local_batch_size",
        "training.data_parallel_shard_degree": "parallelism.data_parallel_shard_degree",
        "training.data_parallel_replicate_degree": "parallelism.data_parallel_replicate_degree",
        "training.tensor_parallel_degree": "parallelism.tensor_parallel_degree",
        "experimental.pipeline_parallel_degree": "parallelism.pipeline_parallel_degree",
        "experimental.context_parallel_degree": "parallelism.context_parallel_degree",
        "training.warmup_steps": "lr_scheduler.warmup_steps",
        "training.compile": "compile.enable",
        "training.enable_fp8_linear": "model.converters",
        "training.seed": "debug.seed",
        "training.deterministic": "debug.deterministic",
        "optimizer.fused": "optimizer.implementation",
        "model.tokenizer_path": "model.hf_assets_path",
        "model.norm_type": None,
        "checkpoint.enable_checkpoint": "checkpoint.enable",
        "checkpoint.interval_type": None,
        "float8.enable_float8_linear": "model.converters",
    },
    open=("module", "config", "training.dataloader", "experimental.custom_args", "quantize"),
)
"""Of 0.2. From 0.3 on its configs are Python, which ``python_script`` reads."""
