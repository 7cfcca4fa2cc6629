"""Kinds: the YAML of LitGPT and of LLM Foundry, and nanoGPT's configurations in Python."""

import re
from collections.abc import Callable
from typing import Any

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
)
from trainwright.review.kinds.lightning import PRECISION

_BITS = {"nf4": "nf4", "nf4-dq": "nf4", "fp4": "fp4", "fp4-dq": "fp4", "int8-training": "int8"}
QUANTIZED = {f"{library}{name}": bits for library in ("", "bnb.") for name, bits in _BITS.items()}
_DOUBLED = {name: name.endswith("-dq") for name in QUANTIZED}


def _name(value: Any) -> str | None:
    """Return the model of a checkpoint folder; ``checkpoints`` holds them by hub id."""
    return None if value is None else str(value).removeprefix("checkpoints/")


LITGPT = Kind(
    name="litgpt",
    tool="LitGPT",
    keys={
        "checkpoint_dir": key("model", _name),
        "model_name": key("model"),
        "precision": Key("precision", among(PRECISION)),
        "quantize": (
            Key("quantization", among(QUANTIZED)),
            Key("double_quantization", _DOUBLED.get),
        ),
        "devices": Key("devices", lambda value: None if value == "auto" else whole(value)),
        "num_nodes": key("nodes", whole),
        "lora_r": (
            key("rank", at_least_one),
            Key("adapter", lambda value: "lora" if value else None),
        ),
        "lora_query": Key("query_targets", where(("q_proj",), ())),
        "lora_key": Key("key_targets", where(("k_proj",), ())),
        "lora_value": Key("value_targets", where(("v_proj",), ())),
        "lora_projection": Key("attention_targets", where(("o_proj",), ())),
        "lora_mlp": Key("mlp_targets", where(("gate_proj", "up_proj", "down_proj"), ())),
        "lora_head": Key("head_targets", where(("lm_head",), ())),
        "lora_alpha": key("alpha", positive),
        "lora_dropout": key("dropout", real),
        "train.global_batch_size": key("global_batch", whole),
        "train.micro_batch_size": key("micro_batch", at_least_one),
        "train.max_seq_length": key("length", whole),
        "train.lr_warmup_steps": key("warmup", real),
        "train.epochs": key("epochs", positive),
        "train.max_steps": key("max_steps", whole),
        "data.init_args.num_workers": key("num_workers", count),
        "optimizer.init_args.lr": key("learning_rate", positive),
        # of branches
        "optim.optimizer": Key("low_rank_gradients", lambda value: "galore" in str(value)),
        "optim.learning_rate": key("learning_rate", positive),
        "longlora.use_longlora": Key("unplanned", truth),
    },
    marks=frozenset({"checkpoint_dir", "out_dir", "lora_query", "train.global_batch_size"}),
    # litgpt/finetune/lora.py, setup
    otherwise={
        "precision": "bf16-mixed",
        "query_targets": ("q_proj",),
        "value_targets": ("v_proj",),
    },
    open=("",),
    strict=False,
)

_FOUNDRY_OPTIMIZERS = {
    **dict.fromkeys(("decoupled_adamw", "adamw", "adam", "no_op"), "adamw"),
    **dict.fromkeys(("decoupled_lionw", "lion", "adaptive_lion"), "lion"),
    "decoupled_sgdw": "sgd",
}
_FOUNDRY_PRECISION = {
    **{"fp32": "fp32", "amp_fp16": "fp16-mixed", "amp_bf16": "bf16-mixed", "amp_fp8": "fp8"},
}
_SHARDED = {"full_shard": "fsdp2", "shard_grad_op": "fsdp2", "hybrid_shard": "hybrid",
            "no_shard": "ddp", "_hybrid_shard_zero2": "hybrid"}  # fmt: skip


def _time(unit: str) -> Callable[[Any], float | None]:
    """Return what reads Composer's ``3ep`` or ``100ba`` where it is of the unit."""

    def read(value: Any) -> float | None:
        found = re.fullmatch(r"([0-9][0-9_.e+]*)(ep|ba|tok|sp|dur)", str(value))
        return positive(found[1].replace("_", "")) if found and found[2] == unit else None

    return read


FOUNDRY = Kind(
    name="llm-foundry",
    tool="LLM Foundry",
    keys={
        "max_seq_len": key("length", whole),
        "model.pretrained_model_name_or_path": key("model"),
        "model.peft_config.r": (key("rank", whole), Key("adapter", lambda _value: "lora")),
        "model.peft_config.lora_alpha": key("alpha", positive),
        "model.peft_config.lora_dropout": key("dropout", real),
        "model.peft_config.target_modules": Key("targets", names),
        "model.use_flash_attention_2": Key("attention", where("flash")),
        "global_train_batch_size": key("global_batch", whole),
        "device_train_microbatch_size": Key(
            "micro_batch", lambda value: None if value == "auto" else whole(value)
        ),
        "precision": Key("precision", among(_FOUNDRY_PRECISION)),
        "optimizer.name": Key("optimizer", among(_FOUNDRY_OPTIMIZERS)),
        "optimizer.lr": key("learning_rate", positive),
        "train_loader.num_workers": key("num_workers", count),
        "train_loader.pin_memory": key("pin_memory", truth),
        "train_loader.prefetch_factor": key("prefetch_factor", whole),
        "train_loader.dataset.packing_ratio": Key("packing", lambda value: bool(value) or None),
        "max_duration": (Key("epochs", _time("ep")), Key("max_steps", _time("ba"))),
        "fsdp_config.sharding_strategy": Key("strategy", among(_SHARDED)),
        "fsdp_config.activation_checkpointing": Key("checkpointing", where("full", "none")),
        "fsdp_config.activation_checkpointing_reentrant": key("reentrant", truth),
        "fsdp_config.activation_cpu_offload": key("activation_offload", truth),
    },
    marks=frozenset(
        {
            *("global_train_batch_size", "device_train_microbatch_size", "max_duration"),
            *("train_loader.dataset", "fsdp_config.sharding_strategy"),
        }
    ),
    # llmfoundry/command_utils/train.py
    otherwise={"precision": "bf16-mixed", "adapter": "none", "optimizer": "adamw"},
    open=("",),
    strict=False,
)
NANOGPT = Kind(
    name="nanogpt",
    tool="nanoGPT",
    keys={
        "batch_size": key("micro_batch", whole),
        "block_size": key("length", whole),
        # train.py divides gradient_accumulation_steps by the processes
        "global_batch_size": key("global_batch", whole),
        "init_from": Key("model", lambda value: value if str(value).startswith("gpt2") else None),
        "model": key("model"),
        "dtype": Key(
            "precision",
            among({"float32": "fp32", "bfloat16": "bf16-mixed", "float16": "fp16-mixed"}),
        ),
        "compile": key("compile", truth),
        "learning_rate": key("learning_rate", positive),
        "max_iters": key("max_steps", whole),
        "warmup_iters": key("warmup", whole),
    },
    marks=frozenset(),
    # train.py
    otherwise={
        **{"precision": "bf16-mixed", "compile": True, "optimizer": "adamw", "adapter": "none"},
        **{"objective": "pretrain", "micro_batch": 12, "length": 1024, "checkpointing": "none"},
    },
    open=("",),
    strict=False,
)
"""Names that nanoGPT's train.py executes over its own; the model is GPT-2 of the sizes there."""
