"""Kind: LLaMA-Factory's YAML."""

from trainwright.review.kinds.huggingface import MOVED, TRAINING
from trainwright.review.kinds.kind import (
    ON,
    Key,
    Kind,
    among,
    at_least_one,
    back,
    key,
    names,
    positive,
    real,
    truth,
    where,
    whole,
    word,
)

ADAPTERS = {"lora": "lora", "oft": None, "freeze": "freeze", "full": "none"}
BITS = {"4": "nf4", "8": "int8", "3": None, "2": None, "5": None, "6": None, "none": None}
KERNELS = {"auto": None, "disabled": "eager", "sdpa": "sdpa", "fa2": "flash", "fa3": "flash"}
OBJECTIVES = {word: word for word in ("pt", "sft", "rm", "ppo", "dpo", "kto")}

LLAMAFACTORY = Kind(
    name="llamafactory",
    tool="LLaMA-Factory",
    keys=TRAINING
    | {
        "model_name_or_path": key("model"),
        "stage": Key("objective", among(OBJECTIVES)),
        "finetuning_type": Key("adapter", among(ADAPTERS), back(ADAPTERS)),
        # hparams/finetuning_args.py, __post_init__: alpha is twice the rank where nobody says it.
        "lora_rank": (key("rank", at_least_one), Key("usual_alpha", lambda value: 2 * int(value))),
        "lora_alpha": key("alpha", positive),
        "lora_dropout": key("dropout", real),
        "lora_target": Key("targets", names),
        "use_rslora": Key("variant", where("rslora")),
        "use_dora": Key("variant", where("dora")),
        "quantization_bit": Key("quantization", among(BITS), {"nf4": 4, "int8": 8}.__getitem__),
        "double_quantization": key("double_quantization", truth),
        "cutoff_len": key("length", whole),
        "packing": key("packing", truth),
        "neat_packing": Key("packing", where(True)),
        "flash_attn": Key("attention", among(KERNELS)),
        "disable_gradient_checkpointing": Key(
            "checkpointing", where("none", "full"), lambda value: not ON(value)
        ),
        "use_reentrant_gc": key("reentrant", truth),
        "pure_bf16": Key("precision", where("bf16")),
        "enable_liger_kernel": (
            Key("cross_entropy", where("fused"), {"fused": True, "full": False}.__getitem__),
            Key("liger_layers", where(True)),
        ),
        "max_samples": key("samples", whole),
        "device_map": Key("device_map", word),
        "use_unsloth": Key("unsloth", truth),
        "additional_target": Key("modules_to_save", lambda value: value or None),
        **{
            f"use_{name}": Key("low_rank_gradients", truth)
            for name in ("galore", "apollo", "badam")
        },
    },
    marks=frozenset(
        {
            *("stage", "finetuning_type", "cutoff_len", "template", "dataset_dir", "lora_target"),
            *("lora_rank", "flash_attn", "quantization_bit"),
        }
    ),
    listed="llamafactory",
    otherwise={"precision": "fp32", "optimizer": "adamw", "reentrant": True},
    # LLaMA-Factory 0.9.5 runs with transformers up to 5.6, which has some of the old keys.
    moved={
        key: value
        for key, value in MOVED.items()
        if key not in ("warmup_ratio", "overwrite_output_dir")
    }
    | {
        "shift_attn": None,
        "max_length": "cutoff_len",
        "lora_r": "lora_rank",
        "checkpoint_dir": "adapter_name_or_path",
        "load_in_4bit": "quantization_bit",
        "prompt_template": "template",
    },
    # hparams/parser.py: PiSSA changes whole weights
    exclusive=(("quantization_bit", "pissa_init"),),
    open=("deepspeed", "fsdp", "fsdp_config", "lr_scheduler_kwargs", "warmup_ratio"),
    recipe="llama-factory",
)
