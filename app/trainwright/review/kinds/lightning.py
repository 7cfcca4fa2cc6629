"""Kind: Lightning CLI's YAML."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainwright.review.kinds.huggingface import ATTENTION, DTYPES
from trainwright.review.kinds.kind import (
    Key,
    Kind,
    among,
    at_least_one,
    count,
    key,
    names,
    positive,
    real,
    truth,
    where,
    whole,
    word,
)

PRECISION = {
    "bf16-mixed": "bf16-mixed",
    "bf16": "bf16-mixed",
    "16-mixed": "fp16-mixed",
    "16": "fp16-mixed",
    "32-true": "fp32",
    "32": "fp32",
    "bf16-true": "bf16",
    "16-true": "fp16",
    "transformer-engine": "fp8",
    "64-true": None,
    "64": None,
}


def _within(value: Any) -> dict[str, Any]:
    """Return the arguments of a strategy that is written out as a class."""
    found = value.get("init_args") if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _stage(value: Any) -> str:
    """Return the stage of ``DeepSpeedStrategy``, 2 by itself (lightning 2.6, deepspeed.py)."""
    stage = int(_within(value).get("stage", 2))
    if not 0 <= stage <= 3:
        raise ValueError(value)
    return f"zero{stage}" if stage else "ddp"


def _wraps(value: Any) -> str | None:
    """``FSDPStrategy`` checkpoints the layers that it is given."""
    given = _within(value)
    named = given.get("activation_checkpointing_policy") or given.get("activation_checkpointing")
    return "full" if named else None


def _keeps(value: Any) -> bool | None:
    """``SHARD_GRAD_OP`` keeps gathered weights until the backward pass has used them."""
    kept = str(_within(value).get("sharding_strategy", "")).upper() in ("SHARD_GRAD_OP", "2")
    return False if kept else None


def _offloads(*names: str, said: Any = True) -> Callable[[Any], Any]:
    """Return what reads whether a strategy's class keeps something in system memory."""
    return lambda value: said if any(_within(value).get(name) for name in names) else None


def _bucket(value: Any) -> int | None:
    """Return the elements of a bucket of ``DeepSpeedStrategy`` (lightning 2.6, deepspeed.py)."""
    name = str(value.get("class_path", "") if isinstance(value, dict) else value).lower()
    return whole(_within(value).get("reduce_bucket_size", 2e8)) if "deepspeed" in name else None


def _degree(value: Any, name: str) -> int | None:
    """Return over how many GPUs ``ModelParallelStrategy`` splits; None for "auto"."""
    degree = _within(value).get(name)
    return None if degree == "auto" else whole(degree)


def lightning_strategy(value: Any) -> str | None:
    """Return how a strategy's name, or its class, shares the work; None for a choice of its own."""
    name = str(value.get("class_path", "") if isinstance(value, dict) else value).lower()
    if name.startswith(("ddp", "auto")) or name.endswith("ddpstrategy"):
        return None if name == "auto" else "ddp"
    for mark, found in (
        ("deepspeed_stage_1", "zero1"),
        ("deepspeed_stage_2", "zero2"),
        ("deepspeed_stage_3", "zero3"),
        ("deepspeed", _stage(value)),
        ("fsdp", "fsdp2"),
        ("modelparallel", "fsdp2"),
    ):
        if mark in name:
            return found
    raise ValueError(value)


def _devices(value: Any) -> int | None:
    """A number, a list of GPUs, or "auto" and -1 for all that there are."""
    if value in ("auto", -1, "-1"):
        return None
    if isinstance(value, str) and "," in value:
        value = [part for part in value.split(",") if part.strip()]
    if value == []:
        raise ValueError(value)
    return len(value) if isinstance(value, list) else whole(value)


OPTIMIZERS = {
    **{"adamw": "adamw", "adam": "adamw", "sgd": "sgd", "adafactor": "adafactor"},
    **{"adamw8bit": "adamw-8bit", "pagedadamw8bit": "paged-adamw-8bit", "lion": "lion"},
    **{"pagedadamw": "paged-adamw", "adamw4bit": "adamw-4bit"},
}


def _optimizer(value: Any) -> str:
    """Return the optimizer of a class; torchao and bitsandbytes have one of the same name."""
    module, _, name = str(value).lower().rpartition(".")
    if name not in OPTIMIZERS:
        raise ValueError(value)
    own = "-torchao" * (module.startswith("torchao") and name == "adamw8bit")
    return OPTIMIZERS[name] + own


def _quantization(value: Any) -> str | None:
    return None if value == "none" else word(value)


_MODEL: Mapping[str, Key | tuple[Key, ...]] = {
    **dict.fromkeys(("model_name", "model_name_or_path", "backbone"), key("model")),
    **dict.fromkeys(("lr", "learning_rate"), key("learning_rate", positive)),
    "random_weights": Key("objective", where("pretrain")),
    "dtype": Key("weights_dtype", among(DTYPES)),
    "attn_implementation": Key("attention", among(ATTENTION)),
    "quantization": Key("quantization", _quantization),
    "double_quantization": key("double_quantization", truth),
    "kbit_preparation": key("kbit_preparation"),
    "gradient_checkpointing": Key("checkpointing", where("full", "none")),
    "torch_compile": key("compile", truth),
    "tf32": Key("tf32", truth),
    "warmup_steps": key("warmup", real),
    "lora.rank": (key("rank", at_least_one), Key("adapter", lambda _value: "lora")),
    "lora.alpha": key("alpha", positive),
    "lora.dropout": key("dropout", real),
    "lora.targets": Key("targets", lambda value: names(value) or None),
    "lora.variant": Key("variant", lambda value: None if value == "lora" else word(value)),
}
_DATA: Mapping[str, Key] = {
    "batch_size": key("micro_batch", at_least_one),
    "num_workers": key("num_workers", count),
    "prefetch_factor": key("prefetch_factor", whole),
    "pin_memory": key("pin_memory", truth),
    "persistent_workers": key("persistent_workers", truth),
    "image_size": key("image_size", whole),
    "packed": key("packing", truth),
    **dict.fromkeys(("max_length", "max_seq_length"), key("length", whole)),
}
"""Names that modules of models and data usually have; some are those of our own export."""


def _in_both_forms() -> Iterator[tuple[str, Key | tuple[Key, ...]]]:
    """Yield keys as a class that is fixed has them, and as one that the file names."""
    for section, keys in (("model", _MODEL), ("data", _DATA)):
        for name, meaning in keys.items():
            yield f"{section}.init_args.{name}", meaning
            yield f"{section}.{name}", meaning


LIGHTNING = Kind(
    name="lightning",
    tool="Lightning",
    keys={
        "trainer.precision": Key(
            "precision",
            among(PRECISION),
            lambda value: {"fp16-mixed": "16-mixed", "fp32": "32-true"}.get(value, value),
        ),
        "trainer.devices": key("devices", _devices),
        "trainer.num_nodes": key("nodes", whole),
        "trainer.strategy": (
            Key("strategy", lightning_strategy),
            Key("checkpointing", _wraps),
            Key("reshard", _keeps),
            Key("offload_params", _offloads("cpu_offload", "offload_parameters")),
            Key("offload_optimizer", _offloads("offload_optimizer", said="cpu")),
            Key("bucket_size", _bucket),
            Key("tensor", lambda value: _degree(value, "tensor_parallel_size")),
            Key("shard", lambda value: _degree(value, "data_parallel_size")),
        ),
        "trainer.accumulate_grad_batches": key("accumulation", at_least_one),
        "trainer.max_epochs": key("epochs", positive),
        "trainer.max_steps": key("max_steps", whole),
        **dict(_in_both_forms()),
        "optimizer.class_path": Key("optimizer", _optimizer),
        "optimizer.init_args.fused": Key("fused", truth),
        "optimizer.init_args.foreach": Key("foreach", truth),
        "optimizer.init_args.lr": key("learning_rate", positive),
    },
    marks=frozenset({"trainer"}),
    listed="lightning",
    # trainer.py: precision "32-true"; one batch a step.
    otherwise={"precision": "fp32", "accumulation": 1},
    moved={
        "trainer.gpus": "trainer.devices",
        "trainer.tpu_cores": "trainer.devices",
        "trainer.num_processes": "trainer.devices",
        "trainer.amp_backend": "trainer.precision",
        "trainer.amp_level": None,
        "trainer.resume_from_checkpoint": "ckpt_path",
        "trainer.progress_bar_refresh_rate": "trainer.enable_progress_bar",
        "trainer.auto_select_gpus": None,
        "trainer.auto_scale_batch_size": None,
        "trainer.auto_lr_find": None,
        "trainer.replace_sampler_ddp": "trainer.use_distributed_sampler",
        "trainer.weights_summary": "trainer.enable_model_summary",
        "trainer.checkpoint_callback": "trainer.enable_checkpointing",
        "trainer.flush_logs_every_n_steps": None,
        "trainer.ipus": None,
        "trainer.track_grad_norm": None,
        "trainer.multiple_trainloader_mode": None,
        "trainer.terminate_on_nan": "trainer.detect_anomaly",
    },
    # accelerator_connector.py of 2.0: strategies are not accelerators, and DP is gone.
    gone_values={
        "trainer.accelerator": dict.fromkeys(("ddp", "ddp_spawn", "ddp2", "dp"), "gpu"),
        "trainer.strategy": dict.fromkeys(("dp", "ddp2", "horovod", "bagua"), "ddp")
        | dict.fromkeys(("ddp_sharded", "ddp_sharded_spawn", "fsdp_native"), "fsdp"),
    },
    open=(
        *("model", "data", "optimizer", "lr_scheduler", "seed_everything", "ckpt_path", "fit"),
        *("trainer.strategy", "trainer.callbacks", "trainer.logger", "trainer.plugins"),
        *("trainer.profiler", "class_path", "init_args", "config"),
    ),
    recipe="lightning",
)
