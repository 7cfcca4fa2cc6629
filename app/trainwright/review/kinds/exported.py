"""Kinds: what our own exports read, beside the files of their launchers."""

from typing import Any

from trainwright.review.kinds.huggingface import ATTENTION, DTYPES
from trainwright.review.kinds.kind import (
    Key,
    Kind,
    among,
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

ADAPTERS = {
    **dict.fromkeys(("pretrain", "full"), "none"),
    **{task: task for task in ("lora", "qlora", "prompt", "prefix")},
}
_TASK = (
    Key("adapter", among(ADAPTERS)),
    Key("objective", lambda value: "pretrain" if value == "pretrain" else None),
)


def _quantization(value: Any) -> str | None:
    return None if value == "none" else word(value)


def _lora(value: Any) -> str | None:
    """Return the variant of adapters; None for the plain one."""
    return None if value == "lora" else word(value)


_SHARES: dict[str, Key | tuple[Key, ...]] = {
    "strategy": key("strategy"),
    "shard_degree": Key("shard", whole),
    "shard_offload": Key("offload_params", truth),
    "quantization": Key("quantization", _quantization),
    "double_quantization": key("double_quantization", truth),
    "kbit_preparation": key("kbit_preparation"),
    "channels_last": key("channels_last", truth),
    "allocator": key("allocator"),
}
PLAN = Kind(
    name="exported",
    tool="plan.json of an export",
    keys={
        "task": _TASK,
        "model.where": key("model"),
        "inputs.sequence_length": key("length", whole),
        "inputs.image_size": key("image_size", whole),
        "inputs.packed": key("packing", truth),
        "lora.rank": key("rank", whole),
        "lora.alpha": key("alpha", positive),
        "lora.dropout": key("dropout", real),
        "lora.targets": Key("targets", names),
        "lora.variant": Key("variant", _lora),
        "virtual_tokens": key("virtual_tokens", whole),
        "batch.effective": key("global_batch", whole),
        "batch.micro": key("micro_batch", whole),
        "batch.accumulation": key("accumulation", whole),
        "batch.gpus": key("processes", whole),
        **{f"settings.{name}": meaning for name, meaning in _SHARES.items()},
        **{
            f"settings.{name}": key(name)
            for name in (
                *("precision", "checkpointing", "optimizer", "optimizer_implementation"),
                *("cross_entropy", "optimizer_offload", "attention"),
            )
        },
        **{
            f"settings.{name}": key(name, truth)
            for name in ("activation_offload", "optimizer_in_backward", "compile")
        },
        "settings.reshard_after_forward": key("reshard", truth),
        "schedule.learning_rate": key("learning_rate", positive),
        "schedule.warmup_steps": key("warmup", count),
        "schedule.epochs": key("epochs", positive),
        "data.num_workers": key("num_workers", count),
        "data.prefetch_factor": key("prefetch_factor", whole),
        "data.pin_memory": key("pin_memory", truth),
        "data.persistent_workers": key("persistent_workers", truth),
    },
    marks=frozenset({"made_for", "schedule.clip_norm", "run.save_every", "batch.effective"}),
    strict=False,
    recipe="plain",
)
SCRIPT_ARGUMENTS = Kind(
    name="exported-arguments",
    tool="script_args.json of an export",
    keys={
        "task": _TASK,
        "config": key("model"),
        "dtype": Key("weights_dtype", among(DTYPES)),
        "attention": Key("attention", among(ATTENTION)),
        "gpus": key("processes", whole),
        "effective": key("global_batch", whole),
        "sequence_length": key("length", whole),
        "packed": Key("packing", where(True)),
        "lora_rank": key("rank", whole),
        "lora_alpha": key("alpha", positive),
        "lora_dropout": key("dropout", real),
        "lora_targets": Key("targets", lambda value: names(value) or None),
        "lora_variant": Key("variant", _lora),
        "virtual_tokens": key("virtual_tokens", whole),
        **_SHARES,
    },
    marks=frozenset({"kbit_preparation", "lora_targets", "shard_offload", "virtual_tokens"}),
    strict=False,
)
