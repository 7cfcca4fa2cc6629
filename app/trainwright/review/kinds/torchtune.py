"""Kind: torchtune's recipe configs."""

import re
from typing import Any

from trainwright.review.kinds.kind import (
    ON,
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

DTYPES = {"bf16": "bf16", "fp32": "fp32", "fp16": "fp16"}


def _optimizer(value: Any) -> str:
    name = str(value).rpartition(".")[2].lower()
    known = {
        "adamw": "adamw",
        "adam": "adamw",
        "sgd": "sgd",
        "adamw8bit": "adamw-8bit",
        "pagedadamw8bit": "paged-adamw-8bit",
        "pagedadamw": "paged-adamw",
        "lion": "lion",
        "adafactor": "adafactor",
    }
    if name not in known:
        raise ValueError(value)
    return known[name]


def _model(value: Any) -> str | None:
    """Return the model of a builder: ``torchtune.models.llama3_1.lora_llama3_1_8b``."""
    name = str(value).rpartition(".")[2]
    name = re.sub(r"^(q?lora|q?dora)_", "", name)
    return name.replace("_", "-")


def _adapter(value: Any) -> str:
    name = str(value).rpartition(".")[2]
    found = re.match(r"(q?)(lora|dora)_", name)
    return "none" if found is None else f"{found[1]}lora"


def _attention(value: Any) -> tuple[str, ...]:
    """Return transformers' names of the layers that are adapted."""
    return tuple("o_proj" if name == "output_proj" else name for name in names(value) or ())


def _objective(value: Any) -> str | None:
    """Return what a loss of ``torchtune.rlhf.loss`` trains for."""
    name = str(value).rpartition(".")[2].removesuffix("Loss").lower()
    return name if ".rlhf." in str(value) else None


TORCHTUNE = Kind(
    name="torchtune",
    tool="torchtune",
    keys={
        "model._component_": (Key("model", _model), Key("adapter", _adapter)),
        "model.lora_rank": key("rank", at_least_one),
        "model.lora_alpha": key("alpha", positive),
        "model.lora_dropout": key("dropout", real),
        "model.lora_attn_modules": Key("attention_targets", _attention),
        "model.apply_lora_to_mlp": Key("mlp_targets", where(("gate_proj", "up_proj", "down_proj"))),
        "model.apply_lora_to_output": Key("head_targets", where(("lm_head",))),
        "model.use_dora": Key("variant", where("dora")),
        "model.quantize_base": Key("quantization", where("nf4")),
        "policy_model._component_": Key("model", _model),
        **{
            part: Key("unplanned", lambda value: bool(value) or None)
            for part in ("teacher_model", "reward_and_value_model", "ac_mode")
        },
        "tokenizer.max_seq_len": key("length", whole),
        "batch_size": key("micro_batch", at_least_one),
        "gradient_accumulation_steps": key("accumulation", at_least_one),
        "epochs": key("epochs", positive),
        "dtype": Key("precision", among(DTYPES), lambda value: value),
        "enable_activation_checkpointing": Key("checkpointing", where("full", "none"), ON),
        "enable_activation_offloading": key("activation_offload", truth),
        "optimizer._component_": Key("optimizer", _optimizer),
        "optimizer.lr": key("learning_rate", positive),
        "optimizer.fused": Key("fused", truth),
        "optimizer_in_bwd": key("optimizer_in_backward", truth),
        "compile": key("compile", truth),
        "dataset.packed": key("packing", truth),
        "lr_scheduler.num_warmup_steps": key("warmup", real),
        "fsdp_cpu_offload": key("offload_params", truth),
        "tensor_parallel_dim": key("tensor", whole),
        "data_parallel_shard_dim": Key("shard", whole),
        "loss._component_": (
            Key(
                "cross_entropy",
                lambda value: "chunked" if "Linear" in value or "Chunk" in value else None,
            ),
            Key("objective", _objective),
        ),
        "num_workers": key("num_workers", count),
        "recipe": Key("strategy", lambda _value: "fsdp2"),  # the distributed ones, by tune run
    },
    marks=frozenset({"model._component_", "checkpointer._component_", "tokenizer._component_"}),
    otherwise={"num_workers": 0, "accumulation": 1, "checkpointing": "none"},
    # recipes/full_finetune_single_device.py and the others, __init__
    gone_values={"dtype": {"fp16": "bf16"}},
    open=("",),
    strict=False,
)
