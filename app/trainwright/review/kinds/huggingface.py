"""Kinds: TrainingArguments of transformers, and the configs of TRL that extend it."""

from collections.abc import Mapping
from types import MappingProxyType

from trainwright.review.kinds.kind import (
    ON,
    Key,
    Kind,
    among,
    amount,
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

OPTIMIZERS = {
    "adamw_torch_fused": "adamw",
    "adamw_torch": "adamw",
    "adamw_hf": "adamw",
    "adamw": "adamw",
    "adamw_apex_fused": "adamw",
    "adamw_bnb_8bit": "adamw-8bit",
    "adamw_8bit": "adamw-8bit",
    "paged_adamw_8bit": "paged-adamw-8bit",
    "paged_adamw_32bit": "paged-adamw",
    "paged_adamw": "paged-adamw",
    "adamw_torch_8bit": "adamw-8bit-torchao",
    "adamw_torch_4bit": "adamw-4bit",
    "sgd": "sgd",
    "adafactor": "adafactor",
    "lion_32bit": "lion",
    "lion": "lion",
    "muon": "muon",
}
"""``training_args.py``, OptimizerNames -> ours. The others are not planned."""
ATTENTION = {
    "eager": "eager",
    "sdpa": "sdpa",
    "flash_attention_2": "flash",
    "flash_attention_3": "flash",
    "kernels-community/flash-attn2": "flash",
    "kernels-community/flash-attn3": "flash",
    "kernels-community/vllm-flash-attn3": "flash",
    "flex_attention": "sdpa",  # keeps no scores either
}


def strategy(value: object) -> str | None:
    """Return the strategy of ``fsdp``: a switch, or a list of words up to version 4."""
    if value in (None, False, "", []):
        return None
    return "fsdp2"


_IN_BF16 = {"bf16-mixed": True, "fp16-mixed": False, "fp32": False, "tf32": False}.__getitem__
_IN_FP16 = {"fp16-mixed": True, "bf16-mixed": False, "fp32": False, "tf32": False}.__getitem__
"""Write autocast's switches; weights that train in 16 bits are not theirs to say."""
_SCHEDULES = (
    *("linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup"),
    *("inverse_sqrt", "reduce_lr_on_plateau", "cosine_with_min_lr", "cosine_warmup_with_min_lr"),
    *("warmup_stable_decay", "greedy"),
)
"""``trainer_utils.py``, SchedulerType (transformers 5.24)."""
TRAINING: dict[str, Key | tuple[Key, ...]] = {
    "per_device_train_batch_size": key("micro_batch", at_least_one),
    "gradient_accumulation_steps": key("accumulation", at_least_one),
    "bf16": Key("precision", where("bf16-mixed"), _IN_BF16),
    "fp16": Key("precision", where("fp16-mixed"), _IN_FP16),
    "tf32": Key("tf32", truth),
    "optim": Key("optimizer", among(OPTIMIZERS), back(OPTIMIZERS)),
    "gradient_checkpointing": Key("checkpointing", where("full", "none"), ON),
    "activation_checkpointing": Key("checkpointing", where("full", "none"), ON),
    "gradient_checkpointing_kwargs.use_reentrant": key("reentrant", truth),
    "activation_checkpointing_kwargs.use_reentrant": key("reentrant", truth),
    "activation_checkpointing_kwargs.every_n_layers": key("every", whole),
    "activation_checkpointing_kwargs.offload": key("activation_offload", truth),
    "dataloader_num_workers": key("num_workers", count),
    "dataloader_prefetch_factor": key("prefetch_factor", whole),
    "dataloader_pin_memory": key("pin_memory", truth),
    "dataloader_persistent_workers": key("persistent_workers", truth),
    "torch_compile": key("compile", truth),
    "learning_rate": key("learning_rate", positive),
    "weight_decay": Key("weight_decay", real),
    "max_grad_norm": Key("clipping", real),
    "lr_scheduler_type": Key("schedule", among(dict.fromkeys(_SCHEDULES, True))),
    "warmup_steps": key("warmup", amount),
    "num_train_epochs": key("epochs", positive),
    "max_steps": key("max_steps", whole),
    "use_liger_kernel": (
        Key("cross_entropy", where("fused"), {"fused": True, "full": False}.__getitem__),
        Key("liger_layers", where(True)),
    ),
    "deepspeed": Key("deepspeed", lambda value: value or None),
    "fsdp": Key("strategy", strategy),
    # training_args.py, _process_fsdp_args: names may begin with fsdp_, as accelerate's do.
    **{
        f"fsdp_config.{prefix}{name}": meaning
        for prefix in ("", "fsdp_")
        for name, meaning in (
            ("version", Key("fsdp_version", whole)),
            ("activation_checkpointing", Key("fsdp_checkpointing", truth)),
            ("cpu_offload", Key("offload_params", truth)),
            ("reshard_after_forward", Key("reshard", truth)),
            ("transformer_layer_cls_to_wrap", Key("wrapped", names, str)),
        )
    },
    "parallelism_config.dp_replicate_size": Key("replicate", whole),
    "parallelism_config.dp_shard_size": Key("shard", whole),
    "group_by_length": key("grouping", truth),
    "train_sampling_strategy": Key("grouping", lambda value: value == "group_by_length" or None),
    "auto_find_batch_size": key("auto_find_batch", truth),
    **dict.fromkeys(("eval_strategy", "evaluation_strategy"), Key("eval_strategy", word)),
    "save_strategy": Key("save_strategy", word),
    "eval_steps": Key("eval_steps", real),
    "save_steps": Key("save_steps", real),
    "load_best_model_at_end": Key("load_best", truth),
    "ddp_find_unused_parameters": key("find_unused", truth),
}
"""Of transformers 5; what earlier versions called otherwise is in ``MOVED``."""

MOVED = {
    "evaluation_strategy": "eval_strategy",
    "warmup_ratio": "warmup_steps",
    "group_by_length": "train_sampling_strategy",
    "no_cuda": "use_cpu",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "torch_dtype": "dtype",
    "use_auth_token": "hub_token",
    "push_to_hub_token": "hub_token",
    "push_to_hub_model_id": "hub_model_id",
    "push_to_hub_organization": "hub_model_id",
    "include_tokens_per_second": "include_num_input_tokens_seen",
    "overwrite_output_dir": None,
    "logging_dir": None,
    "fp16_opt_level": None,
    "half_precision_backend": None,
    "fp16_backend": None,
    "use_mps_device": None,
    "save_safetensors": None,
    "xpu_backend": "ddp_backend",
    "tpu_metrics_debug": "debug",
    "sharded_ddp": "fsdp",
    "fsdp_min_num_params": "fsdp_config.min_num_params",
    "fsdp_transformer_layer_cls_to_wrap": "fsdp_config.transformer_layer_cls_to_wrap",
    "include_inputs_for_metrics": "include_for_metrics",
    "jit_mode_eval": None,
    "use_ipex": None,
    "past_index": None,
    "mp_parameters": None,
    "ray_scope": None,
    "dispatch_batches": "accelerator_config.dispatch_batches",
    "split_batches": "accelerator_config.split_batches",
    "torchdynamo": "torch_compile_backend",
    "adafactor": "optim",
    "tpu_num_cores": None,
    "use_legacy_prediction_loop": None,
}
"""Keys that were arguments up to some version; one that is declared still counts as it is."""

_EXCLUSIVE = (("deepspeed", "fsdp"),)
"""``trainer.py``, __init__."""
_GONE_VALUES = {"optim": {"adamw_hf": "adamw_torch", "adamw_apex_fused": "adamw_torch_fused"}}
"""``OptimizerNames`` of earlier versions."""

_KWARGS = (
    *("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs", "fsdp_config"),
    *("lr_scheduler_kwargs", "accelerator_config", "liger_kernel_config", "parallelism_config"),
    *("optim_args", "deepspeed", "model_init_kwargs", "dataset_kwargs", "trackio_space_id"),
    *("report_to", "debug", "fsdp", "label_names", "include_for_metrics", "quantization_config"),
    *("ref_model_init_kwargs", "chat_template_kwargs", "generation_kwargs", "datasets", "config"),
)
_LAUNCHED = ("num_processes", "num_machines", "accelerate_config")
"""What ``trl sft --config`` hands on to accelerate (trl/cli, and TrlParser)."""
_SHIPPED = {
    **{name: name for name in ("zero1", "zero2", "zero3")},
    **{"fsdp1": "fsdp2", "fsdp2": "fsdp2", "multi_gpu": "ddp", "single_gpu": "single"},
}
"""``trl/accelerate_configs``; another is a file of somebody's own."""

TRAINING_ARGUMENTS = Kind(
    name="training-arguments",
    tool="transformers TrainingArguments",
    keys=TRAINING,
    marks=frozenset(TRAINING) - {"use_cache", "deepspeed", "learning_rate", "fsdp"}
    | {"output_dir", "per_gpu_train_batch_size", "evaluation_strategy"},
    listed="training-arguments",
    otherwise={"precision": "fp32", "optimizer": "adamw", "adapter": "none"},
    moved=MOVED,
    open=_KWARGS,
    exclusive=_EXCLUSIVE,
    gone_values=_GONE_VALUES,
    recipe="hf-trainer",
)

DTYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "auto": None,
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.float32": "fp32",
}
MODEL = {
    "model_name_or_path": key("model"),
    "dtype": Key("weights_dtype", among(DTYPES), back(DTYPES)),
    "torch_dtype": Key("weights_dtype", among(DTYPES)),
    "attn_implementation": Key("attention", among(ATTENTION)),
    "use_flash_attention_2": Key("attention", where("flash")),
    "use_peft": Key("adapter", where("lora"), {"lora": True, "none": False}.__getitem__),
    "lora_r": key("rank", at_least_one),
    "lora_alpha": key("alpha", positive),
    "lora_dropout": key("dropout", real),
    "lora_target_modules": Key("targets", names),
    "use_rslora": Key("variant", where("rslora")),
    "use_dora": Key("variant", where("dora")),
    "load_in_4bit": Key("quantization", where("nf4"), {"nf4": True}.__getitem__),
    "load_in_8bit": Key("quantization", where("int8")),
    "use_bnb_nested_quant": Key("double_quantization", truth),
    "model_init_kwargs.dtype": Key("weights_dtype", among(DTYPES)),
    "model_init_kwargs.torch_dtype": Key("weights_dtype", among(DTYPES)),
    "model_init_kwargs.attn_implementation": Key("attention", among(ATTENTION)),
    "model_init_kwargs.use_cache": Key("use_cache", truth),
    "model_init_kwargs.device_map": Key("device_map", word),
    "model_init_kwargs.load_in_4bit": Key("quantization", where("nf4")),
    "model_init_kwargs.load_in_8bit": Key("quantization", where("int8")),
}
TRL = TRAINING | MODEL | {
    # base_config.py, __post_init__: bf16 is on where neither is said.
    "bf16": (Key("precision", where("bf16-mixed"), _IN_BF16),
             Key("no_autocast", lambda value: True if truth(value) is False else None)),
    "max_length": key("length", whole),
    "max_seq_length": key("length", whole),
    "packing": key("packing", truth),
    "padding_free": key("padding_free", truth),
    "activation_offloading": key("activation_offload", truth),
    "num_processes": key("processes", whole),
    "num_machines": key("nodes", whole),
    "accelerate_config": Key("strategy", lambda value: _SHIPPED.get(str(value))),
}  # fmt: skip
_TRL_MOVED = MOVED | {
    "max_seq_length": "max_length",
    "tokenizer": "processing_class",
    "dataset_batch_size": None,
    "num_of_sequences": None,
    "chars_per_token": None,
    "max_prompt_length": None,
    "max_target_length": None,
    "is_encoder_decoder": None,
    "model_adapter_name": None,
    "ref_adapter_name": None,
    "force_use_ref_model": None,
    "use_num_logits_to_keep": None,
    "rpo_alpha": None,
    "label_pad_token_id": None,
    "generate_during_eval": None,
    "use_logits_to_keep": None,
    "torch_dtype": "dtype",
    "use_flash_attention_2": "attn_implementation",
}
_TRL_OTHERWISE = {"precision": "bf16-mixed", "optimizer": "adamw", "adapter": "none"}
"""``base_config.py``, __post_init__: bf16 is on where fp16 is not set."""


def _trl(
    name: str,
    tool: str,
    marks: set[str],
    objective: str,
    further: Mapping[str, Key | tuple[Key, ...]] = MappingProxyType({}),
) -> Kind:
    return Kind(
        name=name,
        tool=tool,
        keys={**TRL, **further},
        marks=frozenset(marks),
        listed=name,
        otherwise=_TRL_OTHERWISE | {"objective": objective},
        moved=_TRL_MOVED,
        open=(*_KWARGS, *_LAUNCHED),
        extended=True,
        exclusive=(
            *_EXCLUSIVE,
            ("generation_batch_size", "steps_per_generation"),
            ("precompute_ref_log_probs", "sync_ref_model"),
        ),
        gone_values=_GONE_VALUES,
        recipe="trl-sft",
    )


TRL_SFT = _trl(
    "trl-sft",
    "TRL SFTConfig",
    {
        *("max_seq_length", "max_length", "packing", "dataset_text_field", "completion_only_loss"),
        *("assistant_only_loss", "padding_free", "packing_strategy", "use_peft", "dataset_name"),
        *("model_name_or_path", "lora_r", "lora_target_modules", "eos_token"),
    },
    "sft",
)
TRL_DPO = _trl(
    "trl-dpo",
    "TRL DPOConfig",
    {
        *("beta", "label_smoothing", "precompute_ref_log_probs", "max_prompt_length"),
        *("rpo_alpha", "sync_ref_model", "ref_model_init_kwargs", "f_divergence_type"),
        "loss_weights",
    },
    "dpo",
    {"precompute_ref_log_probs": Key("precomputed", truth)},
)
TRL_REWARD = _trl("trl-reward", "TRL RewardConfig", {"center_rewards_coefficient"}, "reward")
_GRPO: dict[str, Key | tuple[Key, ...]] = {
    "max_completion_length": key("completion", whole),
    "max_prompt_length": Key("prompt", whole),
    "num_generations": key("generations", whole),
    "use_vllm": key("uses_vllm", truth),
    "vllm_mode": Key("vllm_mode", word),
    "steps_per_generation": Key("generation_steps", whole),
    "generation_batch_size": Key("generation_batch", whole),
    "vllm_gpu_memory_utilization": key("vllm_share", positive),
    "vllm_enable_sleep_mode": Key("vllm_sleeps", truth),
    "num_iterations": Key("iterations", whole),
    "beta": Key("beta", real),
}
TRL_GRPO = _trl(
    "trl-grpo",
    "TRL GRPOConfig",
    {
        *("num_generations", "max_completion_length", "reward_weights", "use_vllm", "vllm_mode"),
        *("epsilon_high", "scale_rewards", "num_iterations", "vllm_gpu_memory_utilization"),
        *("reward_funcs",),
    },
    "grpo",
    _GRPO,
)
TRL_KTO = _trl(
    "trl-kto",
    "TRL KTOConfig",
    {"desirable_weight", "undesirable_weight"},
    "kto",
    {"loss_type": Key("kto_loss", word)},
)
TRL_RLOO = _trl("trl-rloo", "TRL RLOOConfig", {"normalize_advantages"}, "rloo", _GRPO)
TRL_KINDS = tuple(kind.name for kind in (TRL_SFT, TRL_DPO, TRL_REWARD, TRL_GRPO, TRL_KTO, TRL_RLOO))
