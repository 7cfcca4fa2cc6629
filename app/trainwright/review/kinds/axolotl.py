"""Kind: axolotl's YAML."""

from trainwright.review.kinds.huggingface import ATTENTION, OPTIMIZERS
from trainwright.review.kinds.kind import (
    ON,
    Key,
    Kind,
    among,
    at_least_one,
    back,
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

WORDS = ATTENTION | {"xformers": "sdpa", "flash_attention_4": "flash"}
ADAPTERS = {"lora": "lora", "qlora": "qlora", "": "none", "none": "none", "llama-adapter": None}


def _checkpointing(value: object) -> str | None:
    """``gradient_checkpointing`` is a switch, or the word ``offload`` in earlier versions."""
    return (
        "full" if value in ("offload", "offload_disk", "unsloth") else where("full", "none")(value)
    )


def _bf16(value: object) -> str | None:
    """``auto`` asks torch (``utils/config/__init__.py``), which counts GPUs that emulate bf16."""
    return "bf16-mixed" if value == "auto" else where("bf16-mixed")(value)


def _device_map(value: object) -> str | None:
    """``{"": 0}`` puts the whole model on one GPU, as a run without the key does."""
    return None if value == {"": 0} else word(value)


def _loss_of_plugins(value: object) -> str | None:
    """``integrations/cut_cross_entropy/args.py``: on where its plugin is there."""
    names = value if isinstance(value, list) else []
    return "fused" if any("CutCrossEntropyPlugin" in str(name) for name in names) else None


_UNPLANNED = (
    *("quantize_moe_experts", "lora_target_parameters", "unfrozen_parameters", "gptq", "qat"),
    *("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel", "tiled_mlp", "relora"),
    *("lisa_n_layers", "model_quantization_config", "ple_cpu_offload", "process_reward_model"),
    # Of its plug-ins, ``integrations/*/args.py``.
    *("use_scattermoe", "use_sonicmoe", "use_kernels", "use_dsv4_kernels", "use_glm_dsa_kernels"),
    *("liger_rms_norm_gated", "diffusion", "llmcompressor", "kd_trainer"),
)
"""Keys that change memory or time, and that no plan says."""


AXOLOTL = Kind(
    name="axolotl",
    tool="axolotl",
    keys={
        "base_model": key("model"),
        "adapter": Key("adapter", among(ADAPTERS), {"lora": "lora", "qlora": "qlora"}.__getitem__),
        "load_in_4bit": Key("quantization", where("nf4"), lambda value: value == "nf4"),
        "load_in_8bit": Key("quantization", where("int8"), lambda value: value == "int8"),
        "rl": Key("objective", word),
        "pretraining_dataset": Key("objective", lambda value: "pretrain" if value else None),
        "sequence_len": key("length", whole),
        "sample_packing": key("packing", truth),
        "pad_to_sequence_len": key("padded", truth),
        "group_by_length": key("grouping", truth),
        "micro_batch_size": key("micro_batch", at_least_one),
        "gradient_accumulation_steps": key("accumulation", at_least_one),
        "optimizer": Key("optimizer", among(OPTIMIZERS), back(OPTIMIZERS)),
        "learning_rate": key("learning_rate", positive),
        "warmup_steps": key("warmup", real),
        "num_epochs": key("epochs", positive),
        "max_steps": key("max_steps", whole),
        "bf16": Key("precision", _bf16, lambda value: value == "bf16-mixed"),
        "bfloat16": Key("precision", where("bf16")),
        "fp16": Key("precision", where("fp16-mixed"), lambda value: value == "fp16-mixed"),
        "float16": Key("precision", where("fp16")),
        "tf32": Key("tf32", truth),
        "fp8": Key("precision", where("fp8")),
        "gradient_checkpointing": (
            Key("checkpointing", _checkpointing, ON),
            Key("activation_offload", lambda value: value in ("offload", "unsloth") or None),
        ),
        "gradient_checkpointing_kwargs.use_reentrant": key("reentrant", truth),
        "activation_offloading": Key(
            "activation_offload", lambda v: True if isinstance(v, str) and v else truth(v)
        ),
        "flash_attention": Key("attention", where("flash")),
        "sdp_attention": Key("attention", where("sdpa")),
        "eager_attention": Key("attention", where("eager")),
        "xformers_attention": Key("attention", where("sdpa")),
        "attn_implementation": Key("attention", among(WORDS)),
        "torch_compile": key("compile", truth),
        "lora_r": key("rank", at_least_one),
        "lora_alpha": key("alpha", positive),
        "lora_dropout": key("dropout", real),
        "lora_target_modules": Key("targets", names),
        "lora_target_linear": Key("targets", lambda value: ("all-linear",) if value else None),
        "lora_modules_to_save": Key("modules_to_save", lambda value: value or None),
        "peft_use_rslora": Key("variant", where("rslora")),
        "peft_use_dora": Key("variant", where("dora")),
        "dataloader_num_workers": key("num_workers", count),
        "dataloader_prefetch_factor": key("prefetch_factor", whole),
        "dataloader_pin_memory": key("pin_memory", truth),
        "deepspeed": Key("deepspeed", lambda value: value or None),
        "fsdp": Key("strategy", lambda value: "fsdp2" if value else None),
        "fsdp_version": key("fsdp_version", whole),
        "fsdp_config": Key("strategy", lambda value: "fsdp2" if value else None),
        "fsdp_config.offload_params": key("offload_params", truth),
        "fsdp_config.fsdp_offload_params": key("offload_params", truth),
        **{
            f"fsdp_config.{prefix}{name}": meaning
            for prefix in ("", "fsdp_")  # the second up to FSDP 1
            for name, meaning in (
                ("reshard_after_forward", key("reshard", truth)),
                ("activation_checkpointing", Key("fsdp_checkpointing", truth)),
                ("transformer_layer_cls_to_wrap", Key("wrapped", names, str)),
            )
        },
        "dp_shard_size": Key("shard", whole),
        "dp_replicate_size": Key("replicate", whole),
        "tensor_parallel_size": key("tensor", whole),
        "sequence_parallel_degree": key("context_parallel", whole),
        "context_parallel_size": key("context_parallel", whole),
        "device_map": Key("device_map", _device_map),
        "liger_fused_linear_cross_entropy": Key("cross_entropy", where("fused")),
        "cut_cross_entropy": Key("cross_entropy", where("fused")),
        "plugins": Key("cross_entropy", _loss_of_plugins),
        **{
            f"liger_{layer}": Key("liger_layers", where(True))
            for layer in ("rope", "rms_norm", "glu_activation", "layer_norm")
        },
        "chunked_cross_entropy": Key(
            "cross_entropy", where("chunked"), {"chunked": True, "full": False}.__getitem__
        ),
        "eval_strategy": Key("eval_strategy", word),
        "save_strategy": Key("save_strategy", word),
        "eval_steps": Key("eval_steps", real),
        "save_steps": Key("save_steps", real),
        "load_best_model_at_end": Key("load_best", truth),
        **{name: Key("unplanned", lambda value: bool(value) or None) for name in _UNPLANNED},
        "expert_parallel_size": Key("unplanned", lambda value: int(value or 1) > 1 or None),
        "reward_model": Key("objective", where("reward")),
    },
    marks=frozenset({"base_model", "sequence_len", "sample_packing", "micro_batch_size"}),
    listed="axolotl",
    # loaders/model.py: weights are loaded in the type that is computed in.
    otherwise={
        **{"optimizer": "adamw", "adapter": "none", "micro_batch": 1, "accumulation": 1},
        **{"weights_dtype": "compute", "precision": "bf16-mixed"},
    },
    moved={
        "max_packed_sequence_len": "sample_packing",
        "rope_scaling": None,
        "noisy_embedding_alpha": "neftune_noise_alpha",
        "evaluation_strategy": "eval_strategy",
        "eval_table_size": None,
        "eval_max_new_tokens": None,
        "dpo_use_logits_to_keep": None,
        "base_model_ignore_patterns": None,
        "fsdp": "fsdp_config",
        "sequence_parallel_degree": "context_parallel_size",
        "load_4bit": "load_in_4bit",
        "load_8bit": "load_in_8bit",
        "num_train_epochs": "num_epochs",
        "per_device_train_batch_size": "micro_batch_size",
        "max_seq_length": "sequence_len",
        "cutoff_len": "sequence_len",
        "lora_rank": "lora_r",
        **dict.fromkeys(
            f"unsloth_{name}"
            for name in ("cross_entropy_loss", "lora_mlp", "lora_qkv", "lora_o", "rms_norm", "rope")
        ),
    },
    open=(
        *("datasets", "test_datasets", "pretraining_dataset", "fsdp_config", "special_tokens"),
        *("overrides_of_model_config", "overrides_of_model_kwargs", "lr_scheduler_kwargs"),
        *("optim_args", "plugins", "tokens", "added_tokens_overrides", "trl", "vllm", "qat"),
        *("gradient_checkpointing_kwargs", "peft", "deepspeed", "fsdp", "wandb_run_id", "ddp"),
        *("lora_target_linear", "debug", "model_kwargs", "bnb_config_kwargs"),
    ),
    strict=False,
    # utils/schemas/validation.py of 0.19
    exclusive=(
        ("gradient_accumulation_steps", "batch_size"),
        ("warmup_steps", "warmup_ratio"),
        ("save_steps", "saves_per_epoch"),
        ("eval_steps", "evals_per_epoch"),
        ("val_set_size", "test_datasets"),
        ("deepspeed", "fsdp"),
        ("deepspeed", "fsdp_config"),
        ("rl", "sample_packing"),
    ),
    recipe="axolotl",
)
