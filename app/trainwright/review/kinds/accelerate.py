"""Kind: accelerate's ``default_config.yaml``."""

from trainwright.review.kinds.kind import (
    Key,
    Kind,
    among,
    at_least_one,
    back,
    key,
    names,
    truth,
    where,
    whole,
    word,
)

TYPES = {
    "no": "single",
    "multi_gpu": "ddp",
    "fsdp": "fsdp2",
    "deepspeed": "deepspeed",
    **dict.fromkeys(
        (
            *("multi_cpu", "multi_npu", "multi_mlu", "multi_sdaa", "multi_musa", "multi_xpu"),
            *("multi_hpu", "multi_neuron", "mps"),
        ),
    ),
    "megatron_lm": "megatron",
    "tpu": "tpu",
    "xla": "tpu",
}
PRECISION = {
    "no": "fp32",
    "bf16": "bf16-mixed",
    "fp16": "fp16-mixed",
    "fp8": "fp8",
    "false": "fp32",
}
SHARDING = {
    "full_shard": "fsdp2",
    "shard_grad_op": "fsdp2-no-reshard",
    "no_shard": "ddp",
    "hybrid_shard": "hybrid",
    "hybrid_shard_zero2": "hybrid",
    "1": "fsdp2",
    "2": "fsdp2-no-reshard",
    "3": "ddp",
    "4": "hybrid",
    "5": "hybrid",
    "true": None,
    "false": "fsdp2-no-reshard",
}
STAGES = {"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3"}

ACCELERATE = Kind(
    name="accelerate",
    tool="accelerate",
    keys={
        "distributed_type": Key("strategy", among(TYPES)),
        "mixed_precision": Key("precision", among(PRECISION), back(PRECISION)),
        "num_processes": key("processes", whole),
        "num_machines": key("nodes", whole),
        "use_cpu": Key("on_cpu", truth),
        "fsdp_config.fsdp_version": Key("fsdp_version", whole, lambda value: value),
        "fsdp_config.fsdp_sharding_strategy": Key("sharding", among(SHARDING)),
        "fsdp_config.fsdp_reshard_after_forward": Key("sharding", among(SHARDING)),
        "fsdp_config.fsdp_offload_params": key("offload_params", truth),
        "fsdp_config.fsdp_activation_checkpointing": Key("fsdp_checkpointing", truth),
        "fsdp_config.fsdp_transformer_layer_cls_to_wrap": Key("wrapped", names, str),
        "deepspeed_config.zero_stage": Key("stage", among(STAGES)),
        "deepspeed_config.offload_optimizer_device": Key("offload_optimizer", word),
        "deepspeed_config.offload_param_device": Key(
            "offload_params", lambda value: value in ("cpu", "nvme") or None
        ),
        "deepspeed_config.gradient_accumulation_steps": key("accumulation", at_least_one),
        "deepspeed_config.deepspeed_config_file": Key("deepspeed", word),
        "dynamo_config.dynamo_backend": Key(
            "compile", lambda value: str(value).lower() not in ("no", "none", "false", "eager")
        ),
        "parallelism_config.parallelism_config_dp_replicate_size": Key("replicate", whole),
        "parallelism_config.parallelism_config_dp_shard_size": Key("shard", whole),
        "parallelism_config.parallelism_config_tp_size": key("tensor", whole),
        "parallelism_config.parallelism_config_cp_size": key("context_parallel", whole),
        "megatron_lm_config.megatron_lm_tp_degree": key("tensor", whole),
        "megatron_lm_config.megatron_lm_pp_degree": key("pipeline", whole),
        "megatron_lm_config.megatron_lm_recompute_activations": Key(
            "checkpointing", where("selective")
        ),
    },
    marks=frozenset({"compute_environment", "distributed_type", "num_processes", "num_machines"}),
    listed="accelerate",
    # What accelerate launch takes where nobody says it.
    otherwise={"precision": "fp32"},
    moved={
        "fsdp_config.fsdp_sharding_strategy": "fsdp_config.fsdp_reshard_after_forward",
        "fsdp_config.fsdp_backward_prefetch_policy": "fsdp_config.fsdp_backward_prefetch",
        "fsdp_config.fsdp_use_orig_params": None,
        "fsdp_config.fsdp_sync_module_states": "fsdp_config.fsdp_cpu_ram_efficient_loading",
        "gradient_accumulation_steps": "deepspeed_config.gradient_accumulation_steps",
        "fp16": "mixed_precision",
        "bf16": "mixed_precision",
    },
    open=(
        *("fsdp_config", "deepspeed_config", "dynamo_config", "megatron_lm_config"),
        *("parallelism_config", "mpirun_config", "fp8_config", "tpu_env", "tpu_vm", "commands"),
    ),
    # utils/dataclasses.py, DistributedType; and _deepspeed_config_checks
    gone_values={"distributed_type": {"TPU": "XLA", "MPS": "NO"}},
    exclusive=tuple(
        ("deepspeed_config.deepspeed_config_file", key)
        for key in (
            "mixed_precision",
            *(
                f"deepspeed_config.{name}"
                for name in (
                    *("gradient_accumulation_steps", "gradient_clipping", "zero_stage"),
                    *("offload_optimizer_device", "offload_param_device"),
                    *("offload_optimizer_nvme_path", "offload_param_nvme_path"),
                    "zero3_save_16bit_model",
                )
            ),
        )
    ),
    recipe="accelerate",
)
"""Keys of FSDP 1 count as moved where the file asks for version 2 (see ``rules_keys``)."""
