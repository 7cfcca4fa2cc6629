"""Kind: LitGPT's YAML."""

from typing import Any

from trainwright.review.kinds.kind import (
    Key,
    Kind,
    among,
    at_least_one,
    count,
    key,
    positive,
    real,
    where,
    whole,
)
from trainwright.review.kinds.lightning import PRECISION

QUANTIZED = {"nf4": "nf4", "nf4-dq": "nf4", "fp4": "fp4", "fp4-dq": "fp4", "int8-training": "int8"}


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
        "quantize": Key("quantization", among(QUANTIZED)),
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
