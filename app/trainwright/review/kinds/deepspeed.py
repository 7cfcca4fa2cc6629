"""Kind: DeepSpeed's JSON, where "auto" leaves a value to the Trainer."""

from collections.abc import Mapping
from typing import Any

from trainwright.review.facts import AUTO
from trainwright.review.kinds.kind import Key, Kind, key, positive, real, where, whole, word

STAGES = {0: "ddp", 1: "zero1", 2: "zero2", 3: "zero3"}
OPTIMIZERS = {
    "adam": "adamw",
    "adamw": "adamw",
    "sgd": "sgd",
    "lion": "lion",
    "muon": "muon",
    "onebitadam": None,
    "lamb": None,
}


def _auto(read: Any) -> Any:
    return lambda value: AUTO if value == AUTO else read(value)


def _stage(value: Any) -> str:
    stage = int(value)
    if stage not in STAGES:
        raise ValueError(value)
    return STAGES[stage]


def _optimizer(value: Any) -> str | None:
    name = str(value).lower()
    if name not in OPTIMIZERS:
        raise ValueError(value)
    return OPTIMIZERS[name]


def _on(precision: str) -> Any:
    def read(value: Any) -> str | None:
        if value == AUTO:
            return AUTO
        return precision if value is True or str(value).lower() == "true" else None

    return read


DEEPSPEED = Kind(
    name="deepspeed",
    tool="DeepSpeed",
    keys={
        "train_micro_batch_size_per_gpu": key("micro_batch", _auto(whole)),
        "gradient_accumulation_steps": key("accumulation", _auto(whole)),
        "train_batch_size": key("global_batch", _auto(whole)),
        # Weights in 16 bits with fp32 copies: what autocast has, differently kept.
        "bf16.enabled": Key("precision", _on("bf16-mixed"), lambda v: v == "bf16-mixed"),
        "fp16.enabled": Key("precision", _on("fp16-mixed"), lambda v: v == "fp16-mixed"),
        "optimizer.type": Key("deepspeed_optimizer", _optimizer),
        "optimizer.params.lr": key("learning_rate", _auto(positive)),
        "optimizer.params.weight_decay": Key("weight_decay", _auto(real)),
        "gradient_clipping": Key("clipping", _auto(real)),
        "scheduler.params.warmup_num_steps": key("warmup", _auto(real)),
        "zero_optimization.stage": Key("strategy", _stage),
        "zero_optimization.reduce_bucket_size": key("bucket_size", _auto(whole)),
        "zero_optimization.allgather_bucket_size": key("gather_bucket_size", _auto(whole)),
        "zero_optimization.offload_optimizer.device": Key("offload_optimizer", word),
        "zero_optimization.offload_param.device": Key(
            "offload_params", lambda value: value in ("cpu", "nvme") or None
        ),
        "zero_optimization.cpu_offload": Key("offload_optimizer", lambda v: "cpu" if v else None),
        "zero_optimization.overlap_comm": Key("overlap", _auto(lambda value: bool(value))),
        **{
            f"zero_optimization.{name}": Key("zero_buffers", lambda value: value or None)
            for name in (
                *("stage3_prefetch_bucket_size", "stage3_max_live_parameters"),
                *("stage3_param_persistence_threshold", "zero_hpz_partition_size"),
                *("zero_quantized_weights", "zero_quantized_gradients"),
            )
        },
        "activation_checkpointing.cpu_checkpointing": Key("cpu_checkpointing", bool),
        "tensor_parallel.autotp_size": key("tensor", whole),
        "zero_force_ds_cpu_optimizer": Key("any_optimizer", where(False, True)),
    },
    marks=frozenset({"zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu"}),
    listed="deepspeed",
    moved={
        "zero_optimization.cpu_offload": "zero_optimization.offload_optimizer",
        "zero_optimization.cpu_offload_params": "zero_optimization.offload_param",
        "zero_optimization.cpu_offload_param": "zero_optimization.offload_param",
        "zero_optimization.cpu_offload_use_pin_memory": "zero_optimization.offload_optimizer",
        "zero_optimization.stage3_gather_fp16_weights_on_model_save": (
            "zero_optimization.stage3_gather_16bit_weights_on_model_save"
        ),
        "bfloat16": "bf16",
        "zero_optimization.prefetch_bucket_size": "zero_optimization.stage3_prefetch_bucket_size",
    },
    # DeepSpeed reads what it knows of these, and keeps the rest for its own plug-ins.
    open=(
        *("optimizer", "scheduler", "zero_optimization.offload_optimizer"),
        *("zero_optimization.offload_param", "activation_checkpointing", "flops_profiler"),
        *(
            "comms_config",
            "comms_logger",
            "aio",
            "tensorboard",
            "wandb",
            "csv_monitor",
            "compression_training",
        ),
        *("data_efficiency", "autotuning", "elasticity", "amp", "tensor_parallel", "fp16", "bf16"),
        *("gradient_clipping", "wall_clock_breakdown", "dump_state", "memory_breakdown"),
        *("torch_autocast", "data_types", "compile", "hybrid_engine", "sparse_attention"),
        *("sparse_gradients", "curriculum_learning", "checkpoint"),
        *(
            "eigenvalue",
            "progressive_layer_drop",
            "seed",
            "sequence_parallel_size",
            "monitor_config",
        ),
        *("steps_per_print", "zero_optimization.leaf_module", "zero_optimization.zenflow"),
        *(
            "use_data_before_expert_parallelism",
            "pipeline",
            "timers",
            "data_parallel_size",
            "nebula",
        ),
    ),
    strict=False,
)


def _shipped(stage: int, *offloads: str) -> Mapping[str, Any]:
    """Return the part of a file that tools ship which matters here; the Trainer fills the rest."""
    aside = {f"offload_{name}": {"device": "cpu"} for name in offloads}
    batch = ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "gradient_clipping")
    sharing: dict[str, Any] = {"stage": stage, **aside}
    sharing |= {"reduce_bucket_size": "auto"} if stage == 3 else {}
    return {"zero_optimization": sharing, **dict.fromkeys(batch, "auto")}


SHIPPED: Mapping[str, Mapping[str, Any]] = {
    "deepspeed_configs/zero1.json": _shipped(1),
    "deepspeed_configs/zero2.json": _shipped(2, "optimizer"),
    "deepspeed_configs/zero3.json": _shipped(3),
    "deepspeed_configs/zero3_bf16.json": _shipped(3),
    "deepspeed_configs/zero3_bf16_cpuoffload_params.json": _shipped(3, "param"),
    "deepspeed_configs/zero3_bf16_cpuoffload_all.json": {
        **_shipped(3, "optimizer", "param"),
        "zero_force_ds_cpu_optimizer": False,
    },
    "examples/deepspeed/ds_z0_config.json": _shipped(0),
    "examples/deepspeed/ds_z2_config.json": _shipped(2),
    "examples/deepspeed/ds_z2_offload_config.json": _shipped(2, "optimizer"),
    "examples/deepspeed/ds_z3_config.json": _shipped(3),
    "examples/deepspeed/ds_z3_offload_config.json": _shipped(3, "optimizer", "param"),
}
"""Files that axolotl and LLaMA-Factory bring, by their path there: repositories, 2025."""
