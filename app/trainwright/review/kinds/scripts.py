"""Kinds of calls in Python scripts: what builds a model there."""

from trainwright.review.kinds.huggingface import ATTENTION, DTYPES
from trainwright.review.kinds.kind import (
    Key,
    Kind,
    among,
    at_least_one,
    key,
    names,
    positive,
    real,
    truth,
    where,
    whole,
)

FROM_PRETRAINED = Kind(
    name="from-pretrained",
    tool="from_pretrained",
    keys={
        "pretrained_model_name_or_path": key("model"),
        "dtype": Key("weights_dtype", among(DTYPES)),
        "torch_dtype": Key("weights_dtype", among(DTYPES)),
        "attn_implementation": Key("attention", among(ATTENTION)),
        # A mapping puts each part where it says, as {"": 0} does all on one GPU.
        "device_map": Key("device_map", lambda value: value if isinstance(value, str) else None),
        "load_in_4bit": Key("quantization", where("nf4")),
        "load_in_8bit": Key("quantization", where("int8")),
        "use_cache": Key("use_cache", truth),
        "low_cpu_mem_usage": Key("low_cpu_memory", truth),
    },
    marks=frozenset(),
    # transformers 5.24, modeling_utils.py, from_pretrained
    warned=frozenset({"torch_dtype"}),
    moved={"torch_dtype": "dtype", "use_auth_token": "token",
           "use_flash_attention_2": "attn_implementation",
           "load_in_4bit": "quantization_config", "load_in_8bit": "quantization_config"},
    open=("",),
)  # fmt: skip
TRAINER = Kind(
    name="trainer",
    tool="a trainer of TRL",
    keys={
        "model": key("model", lambda value: value if isinstance(value, str) else None),
        "max_seq_length": Key("length", whole),
        "packing": Key("packing", truth),
    },
    marks=frozenset(),
    # The trainers of trl 1.16 no longer take these, but those that unsloth patches.
    moved={
        **{name: f"SFTConfig.{name}" for name in ("dataset_text_field", "packing")},
        "max_seq_length": "SFTConfig.max_length",
        "dataset_num_proc": "SFTConfig.dataset_num_proc",
        "tokenizer": "processing_class",
    },
    open=("",),
)
HF_TRAINER = Kind(
    name="hf-trainer",
    tool="transformers Trainer",
    keys={},
    marks=frozenset(),
    moved={"tokenizer": "processing_class"},  # transformers 5, trainer.py, __init__
    open=("",),
)
CHECKPOINTING_CALL = Kind(
    name="checkpointing-call",
    tool="gradient_checkpointing_enable",
    keys={
        "enabled": Key("checkpointing", where("full")),
        "gradient_checkpointing_kwargs.use_reentrant": key("reentrant", truth),
    },
    marks=frozenset(),
    open=("",),
)
KBIT = Kind(
    name="kbit",
    tool="prepare_model_for_kbit_training",
    keys={"use_gradient_checkpointing": Key("checkpointing", where("full", "none"))},
    marks=frozenset(),
    # peft 0.21, utils/other.py
    otherwise={"kbit_preparation": "all", "checkpointing": "full"},
    open=("",),
)
UNSLOTH = Kind(
    name="unsloth",
    tool="unsloth",
    keys={
        "model_name": key("model"),
        "max_seq_length": key("length", whole),
        "load_in_4bit": Key("quantization", where("nf4")),
        "load_in_8bit": Key("quantization", where("int8")),
        "full_finetuning": Key("adapter", where("none")),
        "r": (key("rank", at_least_one), Key("adapter", lambda _value: "lora")),
        "lora_alpha": key("alpha", positive),
        "lora_dropout": key("dropout", real),
        "target_modules": Key("targets", names),
        "use_rslora": Key("variant", where("rslora")),
        "use_dora": Key("variant", where("dora")),
        # "unsloth" is checkpointing whose blocks' inputs wait in system memory.
        "use_gradient_checkpointing": (
            Key("checkpointing", lambda value: "full" if value not in (False, None) else "none"),
            Key("activation_offload", lambda value: value == "unsloth"),
        ),
    },
    marks=frozenset(),
    listed="unsloth",
    # unsloth 2026.10.9, models/llama.py, _DEFAULT_TARGET_MODULES
    otherwise={
        "targets": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"),
    },
    open=("",),
)
