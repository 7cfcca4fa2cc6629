"""Kinds: LLaMA-Factory's YAML, and that of its version 1."""

from trainwright.review.kinds.huggingface import ATTENTION, MOVED, OPTIMIZERS, TRAINING
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

ADAPTERS = {"lora": "lora", "oft": "other", "freeze": "freeze", "full": "none"}
BITS = {"4": "nf4", "8": "int8", "3": None, "2": None, "5": None, "6": None, "none": None}
KERNELS = {"auto": None, "disabled": "eager", "sdpa": "sdpa", "fa2": "flash", "fa3": "flash"}
OBJECTIVES = {word: word for word in ("pt", "sft", "rm", "ppo", "dpo", "kto")}

_OF_MEGATRON = (
    *("sequence_parallel", "bias_activation_fusion", "apply_rope_fusion", "overlap_param_gather"),
    *("overlap_grad_reduce", "moe_grouped_gemm", "moe_token_dispatcher_type", "recompute_method"),
    *(
        "recompute_num_layers",
        "virtual_pipeline_model_parallel_size",
        "expert_tensor_parallel_size",
    ),
    *("account_for_loss_in_pipeline_split", "account_for_embedding_in_pipeline_split"),
    *("gradient_accumulation_fusion", "moe_permute_fusion", "moe_shared_expert_overlap"),
    *("tp_comm_overlap", "moe_router_dtype", "moe_aux_loss_coeff", "distributed_timeout_minutes"),
    *("delay_wgrad_compute", "overlap_p2p_comm", "use_precision_aware_optimizer"),
    *("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"),
    *("expert_model_parallel_size", "use_distributed_optimizer", "recompute_granularity"),
)
"""Arguments of mcore_adapter, which trains with USE_MCA=1."""

LLAMAFACTORY = Kind(
    name="llamafactory",
    tool="LLaMA-Factory",
    keys=TRAINING
    | {
        "model_name_or_path": key("model"),
        "stage": Key("objective", among(OBJECTIVES)),
        "finetuning_type": (
            Key("adapter", among(ADAPTERS), back(ADAPTERS)),
            Key("adapter_type", word),
            # model/patcher.py: loaded in the model's own type, and what is trained then in fp32
            Key("weights_dtype", lambda value: "bf16" if value == "lora" else None),
        ),
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
            for name in ("galore", "apollo", "adam_mini")
        },
        # model/adapter.py: BAdam trains the weights in half precision
        "use_badam": (Key("low_rank_gradients", truth), Key("weights_dtype", where("bf16"))),
        "use_muon": Key("optimizer", where("muon")),
        "use_kt": Key("experts_elsewhere", truth),
        "expert_model_parallel_size": Key("experts_elsewhere", lambda value: int(value) > 1),
        **{
            name: Key("unplanned", lambda value: value or None)
            for name in ("use_asft_loss", "fp8", "mixture_of_depths")
        },
        # With USE_MCA=1 Megatron trains: mcore_adapter's arguments
        "tensor_model_parallel_size": key("tensor", whole),
        "pipeline_model_parallel_size": key("pipeline", whole),
        "context_parallel_size": key("context_parallel", whole),
        "use_distributed_optimizer": Key("strategy", where("zero1")),
        "recompute_granularity": Key("checkpointing", word),
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
    open=(
        *("deepspeed", "fsdp", "fsdp_config", "lr_scheduler_kwargs", "warmup_ratio"),
        *_OF_MEGATRON,
    ),
    recipe="llama-factory",
)

_PLUGINS = {"fsdp2": "fsdp2", "deepspeed": None, "ddp": "ddp"}
LLAMAFACTORY_V1 = Kind(
    name="llamafactory-v1",
    tool="LLaMA-Factory v1",
    keys={
        "model": key("model"),
        "flash_attn": Key("attention", among(ATTENTION)),
        "peft_config.name": (
            Key("adapter", among({"lora": "lora", "freeze": "freeze", "oft": "other"})),
            Key("adapter_type", word),
        ),
        "peft_config.r": key("rank", at_least_one),
        "peft_config.lora_alpha": key("alpha", positive),
        "peft_config.lora_dropout": key("dropout", real),
        "peft_config.target_modules": Key("targets", names),
        "peft_config.use_dora": Key("variant", where("dora")),
        "quant_config.quantization_bit": Key("quantization", among(BITS)),
        "quant_config.double_quantization": key("double_quantization", truth),
        "dist_config.name": Key("strategy", among(_PLUGINS)),
        "dist_config.config_file": Key("deepspeed", word),
        "dist_config.cp_size": key("context_parallel", whole),
        "dist_config.offload_params": key("offload_params", truth),
        "optim_config.name": Key("optimizer", among(OPTIMIZERS)),
        "micro_batch_size": key("micro_batch", at_least_one),
        "global_batch_size": key("global_batch", whole),
        "cutoff_len": key("length", whole),
        "learning_rate": key("learning_rate", positive),
        "num_train_epochs": key("epochs", positive),
        "max_steps": key("max_steps", whole),
        "bf16": Key("precision", where("bf16-mixed", "fp32")),
        "enable_activation_checkpointing": Key("checkpointing", where("full", "none"), ON),
        "batching_strategy": Key(
            "packing", lambda value: True if "padding_free" in str(value) else None
        ),
        "batching_workers": key("num_workers", count),
    },
    marks=frozenset({"model_class", "train_dataset", "dist_config", "kernel_config"}),
    # llamafactory/v1/config/training_args.py, model_args.py
    otherwise={
        **{"precision": "bf16-mixed", "optimizer": "adamw", "adapter": "none", "micro_batch": 1},
        **{"length": 2048, "checkpointing": "full", "epochs": 3.0, "num_workers": 16},
        **{"reentrant": False, "attention": "sdpa", "objective": "sft"},
    },
    open=("",),
    strict=False,
)
