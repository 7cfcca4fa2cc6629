"""Kinds: what follows a script's name on a command line."""

from typing import Any

from trainwright.review.kinds.accelerate import STAGES
from trainwright.review.kinds.huggingface import ATTENTION, DTYPES, MOVED, OPTIMIZERS, TRL
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
from trainwright.review.kinds.lightning import PRECISION


def _side(value: Any) -> int | None:
    """Return the longer side of ``1024`` or ``1024,768``."""
    return whole(max(map(int, str(value).split(","))))


def _restored(value: Any) -> str | None:
    """Return the model of a NeMo file; None of ``???``, which a command line is to say."""
    return None if value in (None, "???") else str(value).removesuffix(".nemo")


_RANK = (key("rank", whole), Key("adapter", lambda value: "lora" if whole(value) else None))
"""Of tools that train LoRA where a rank is given."""
_COMMON: dict[str, Key | tuple[Key, ...]] = TRL | {
    "block_size": key("length", whole),
    "max_source_length": key("length", whole),
    "model_max_length": key("length", whole),
    **dict.fromkeys(("max_seq_len", "max_sequence_length", "max_len"), key("length", whole)),
    "seq_length": key("length", whole),
    "sequence_length": key("length", whole),
    "batch_size": key("micro_batch", whole),
    "train_batch_size": key("micro_batch", whole),
    "per_gpu_train_batch_size": key("micro_batch", whole),
    "model": key("model"),
    "model_name": key("model"),
    "base_model": key("model"),
    "pretrained_model_name_or_path": key("model"),
    "zero_stage": Key("stage", among(STAGES)),
    "lr": key("learning_rate", positive),
    "epochs": key("epochs", positive),
    "num_workers": key("num_workers", count),
    "workers": key("num_workers", count),
    "lora_rank": key("rank", whole),
    "target_modules": Key("targets", names),
    "lora_target": Key("targets", names),
    "lora_dim": _RANK,
    # DeepSpeed-Chat's, of its third step
    "actor_model_name_or_path": key("model"),
    "ppo_epochs": Key("objective", lambda _value: "ppo"),
    "per_device_training_batch_size": key("micro_batch", whole),
    # LLaVA's, PEFT's, and other people's examples
    **dict.fromkeys(
        ("use_lora", "lora_enable", "use_peft_lora", "enable_lora", "lora"),
        Key("adapter", where("lora")),
    ),
    **dict.fromkeys(
        ("use_4bit_quantization", "use_bnb_4bit_quantization", "use_4bit", "q_lora", "use_qlora"),
        Key("quantization", where("nf4")),
    ),
    **dict.fromkeys(
        ("use_8bit_quantization", "use_8bit_qunatization", "use_8bit"),
        Key("quantization", where("int8")),
    ),
    "bits": Key("quantization", lambda value: {4: "nf4", 8: "int8"}.get(value)),
    **dict.fromkeys(("use_nested_quant", "double_quant"), Key("double_quantization", truth)),
    **dict.fromkeys(
        ("use_flash_attn", "use_flash_attention", "flash_attn"), Key("attention", where("flash"))
    ),
    "use_reentrant": key("reentrant", truth),
    "use_unsloth": Key("unsloth", truth),
}
_IMAGES = {
    "resolution": key("image_size", _side),
    "img_size": key("image_size", whole),
    "image_size": key("image_size", whole),
}
# timm's train.py, and scripts like it
_TIMM = {
    "amp": Key("precision", where("fp16-mixed")),
    "amp_dtype": Key("precision", among({"float16": "fp16-mixed", "bfloat16": "bf16-mixed"})),
    "opt": Key("optimizer", among(OPTIMIZERS | {"momentum": "sgd", "adam": "adamw"})),
    "grad_checkpointing": Key("checkpointing", where("full", "none")),
    "native_amp": Key("precision", where("fp16-mixed")),
    "grad_accum_steps": key("accumulation", whole),
    "torchcompile": Key("compile", lambda value: value not in (None, False)),
}
_MEGATRON = {
    "micro_batch_size": key("micro_batch", whole),
    "global_batch_size": key("global_batch", whole),
    "tensor_model_parallel_size": key("tensor", whole),
    "pipeline_model_parallel_size": key("pipeline", whole),
    "context_parallel_size": key("context_parallel", whole),
    "expert_model_parallel_size": Key("experts_elsewhere", lambda value: int(value) > 1),
    "train_iters": key("max_steps", whole),
    "fp8_format": Key("precision", among({"hybrid": "fp8", "e4m3": "fp8"})),
    "use_distributed_optimizer": Key("strategy", where("zero1")),
    "recompute_activations": Key("checkpointing", where("selective")),
    "recompute_granularity": Key("checkpointing", word),
}
"""Of ``megatron/training/arguments.py``; it builds models from sizes, which no plan does."""
_NEMO_OPTIMIZERS = dict.fromkeys(
    ("adam", "adamw", "fused_adam", "distributed_fused_adam", "mcore_distributed_optim"), "adamw"
) | {"sgd": "sgd", "adafactor": "adafactor"}
_HYDRA: dict[str, Key | tuple[Key, ...]] = {
    "trainer.devices": key("devices", whole),
    "trainer.num_nodes": key("nodes", whole),
    "trainer.precision": Key("precision", among(PRECISION)),
    "trainer.accumulate_grad_batches": key("accumulation", whole),
    "trainer.max_steps": key("max_steps", whole),
    "model.restore_from_path": key("model", _restored),
    "model.micro_batch_size": key("micro_batch", whole),
    "model.global_batch_size": key("global_batch", whole),
    "model.tensor_model_parallel_size": key("tensor", whole),
    "model.pipeline_model_parallel_size": key("pipeline", whole),
    "model.encoder_seq_length": key("length", whole),
    "model.data.max_seq_length": key("length", whole),
    "model.data.train_ds.max_seq_length": key("length", whole),
    "model.data.train_ds.num_workers": key("num_workers", count),
    "model.peft.peft_scheme": Key("adapter", among({"lora": "lora", "none": "none"})),
    "model.peft.lora_tuning.adapter_dim": key("rank", whole),
    "model.optim.lr": key("learning_rate", positive),
    "model.activations_checkpoint_granularity": Key("checkpointing", word),
    "model.optim.name": (
        Key("optimizer", among(_NEMO_OPTIMIZERS)),
        Key("strategy", lambda value: "zero1" if "distributed" in value else None),
    ),
    # Lightning's, of a module of its own
    **dict.fromkeys(("data.batch_size", "data.init_args.batch_size"), key("micro_batch", whole)),
    **dict.fromkeys(("data.num_workers", "data.init_args.num_workers"), key("num_workers", count)),
}
"""NeMo 1's and Lightning's names, as Hydra's ``key=value`` or as options."""
NEMO = Kind(
    name="nemo",
    tool="NeMo 1",
    keys={
        # trainer.accumulate_grad_batches stays 1: NeMo accumulates up to the global batch
        **{
            name: one
            for name, one in _HYDRA.items()
            if not name.startswith("data.") and name != "trainer.accumulate_grad_batches"
        },
        "model.peft.peft_scheme": (
            Key("adapter", lambda value: {"lora": "lora", None: "none"}.get(value, "other")),
            Key("adapter_type", word),
        ),
        "model.context_parallel_size": key("context_parallel", whole),
        "model.train_ds.batch_size": key("micro_batch", whole),
        "model.train_ds.num_workers": key("num_workers", count),
        "model.data.num_workers": key("num_workers", count),
        "model.fsdp": Key("strategy", where("fsdp2")),
        "model.megatron_amp_O2": Key("o2", where(True)),
        "trainer.max_epochs": key("epochs", positive),
    },
    marks=frozenset({"exp_manager", "model.restore_from_path", "model.micro_batch_size"}),
    otherwise={"adapter": "none"},
    open=("",),
    strict=False,
)
"""NeMo 1's YAML, whose keys its command lines change."""
_VERL_OPTIMIZERS = {"adamw": "adamw", "adam": "adamw", "_adamw": "adamw", "adamw8bit": "adamw-8bit"}
_ACTOR = "actor_rollout_ref.actor"
VERL = Kind(
    name="verl",
    tool="verl",
    keys={
        **dict.fromkeys(
            ("model.partial_pretrain", "model.path", "actor_rollout_ref.model.path"), key("model")
        ),
        **{
            f"{above}model.{name}": meaning
            for above in ("", "actor_rollout_ref.")
            for name, meaning in (
                ("lora_rank", _RANK),
                ("lora_alpha", key("alpha", positive)),
                ("target_modules", Key("targets", names)),
                (
                    "enable_gradient_checkpointing",
                    Key("checkpointing", where("full", "none")),
                ),
                ("use_liger", Key("liger_layers", where(True))),
            )
        },
        **{
            f"{above}optim.{name}": meaning
            for above in ("", f"{_ACTOR}.")
            for name, meaning in (
                ("lr", key("learning_rate", positive)),
                ("optimizer", Key("optimizer", among(_VERL_OPTIMIZERS))),
            )
        },
        **dict.fromkeys(
            (
                *("data.micro_batch_size_per_gpu", f"{_ACTOR}.ppo_micro_batch_size_per_gpu"),
                *("engine.micro_batch_size_per_gpu",),
            ),
            key("micro_batch", whole),
        ),
        "data.train_batch_size": key("sampled_batch", whole),
        f"{_ACTOR}.ppo_mini_batch_size": key("global_batch", whole),
        "data.max_length": key("length", whole),
        "data.max_prompt_length": Key("prompt", whole),
        "data.max_response_length": key("completion", whole),
        "data.num_workers": key("num_workers", count),
        "actor_rollout_ref.rollout.n": key("generations", whole),
        "actor_rollout_ref.rollout.gpu_memory_utilization": key("vllm_share", positive),
        "algorithm.adv_estimator": Key(
            "objective", lambda value: {"gae": "ppo", None: "ppo"}.get(value, value)
        ),
        **dict.fromkeys(
            ("trainer.n_gpus_per_node", "trainer.nproc_per_node"), key("devices", whole)
        ),
        "trainer.nnodes": key("nodes", whole),
        "trainer.total_epochs": key("epochs", positive),
        "trainer.total_training_steps": key("max_steps", whole),
        **{
            f"{above}fsdp_config.{name}": meaning
            for above in (f"{_ACTOR}.", "model.")
            for name, meaning in (
                ("param_offload", key("offload_params", truth)),
                ("optimizer_offload", Key("offload_optimizer", where("cpu"))),
            )
        },
        "ulysses_sequence_parallel_size": key("context_parallel", whole),
        f"{_ACTOR}.ulysses_sequence_parallel_size": key("context_parallel", whole),
    },
    marks=frozenset({"actor_rollout_ref", "data.train_files", "model.partial_pretrain"}),
    # verl/trainer/config: engine/fsdp.yaml, optim/fsdp.yaml, model/hf_model.yaml (0.9)
    otherwise={
        **{"precision": "bf16-mixed", "optimizer": "adamw", "adapter": "none"},
        **{"strategy": "fsdp2", "checkpointing": "full", "alpha": 16.0},
    },
    open=("",),
    strict=False,
)
_COMPUTED = {"bfloat16": "bf16-mixed", "float16": "fp16-mixed", "float32": "fp32"}
_PLAIN = {"precision": "fp32", "optimizer": "adamw", "adapter": "none"}

SCRIPT = Kind(
    name="script",
    tool="a training script's options",
    keys=_COMMON | {"config_name": key("model")},  # of a model that is trained from nothing
    marks=frozenset(
        {
            *("block_size", "dataset_config_name", "max_source_length", "train_file"),
            *("validation_file", "max_train_samples", "preprocessing_num_workers"),
        }
    ),
    listed="training-arguments",
    otherwise=_PLAIN,
    moved={name: now for name, now in MOVED.items() if name != "torch_dtype"},
    open=("",),
    strict=False,
    extended=True,
    recipe="hf-trainer",
)
"""A script that parses TrainingArguments, and options of its own."""
_TUNERS = Key("adapter", among({"lora": "lora", "full": "none", "longlora": "lora"}))
_ZERO = {"zero0": "ddp", "zero1": "zero1", "zero2": "zero2", "zero3": "zero3"}


def _linear(value: Any) -> tuple[str, ...] | None:
    """Return names of layers; ``ALL`` is ms-swift 2's word for all linear ones."""
    return ("all-linear",) if value in ("ALL", "AUTO") else names(value)


def _converted(value: Any) -> str | None:
    """Return the model of a folder of Megatron's weights: ``Qwen2.5-7B-mcore``."""
    return None if value is None else str(value).removesuffix("-mcore")


def _objective(value: Any) -> str | None:
    """Return what ``swift rlhf`` trains for."""
    return None if value is None else str(value).lower()


_SWIFT: dict[str, Key | tuple[Key, ...]] = {
    # model_name is what the model calls itself
    **{name: meaning for name, meaning in _COMMON.items() if name != "model_name"},
    **dict.fromkeys(("train_type", "tuner_type", "sft_type"), _TUNERS),
    **dict.fromkeys(("model_id_or_path", "model_type"), key("model")),
    "dtype": Key(
        "precision",
        among({"bf16": "bf16-mixed", "fp16": "fp16-mixed", "fp32": "fp32", "auto": None}),
    ),
    "rlhf_type": Key("objective", _objective),
    "lora_dropout_p": key("dropout", real),
    **dict.fromkeys(("target_modules", "lora_target_modules"), Key("targets", _linear)),
    "torch_dtype": (
        Key("weights_dtype", among(DTYPES)),
        Key("precision", among(_COMPUTED)),
    ),
    **dict.fromkeys(
        ("quant_bits", "quantization_bit"),
        Key("quantization", among({"4": "nf4", "8": "int8", "0": None})),
    ),
    "bnb_4bit_use_double_quant": key("double_quantization", truth),
    "deepspeed": (
        Key("strategy", lambda value: _ZERO.get(str(value).partition("_")[0])),
        Key("offload_optimizer", lambda value: "cpu" if "_offload" in str(value) else None),
        Key("offload_params", lambda value: True if value == "zero3_offload" else None),
    ),
    "attn_impl": Key("attention", among(ATTENTION | {"flash_attn": "flash"})),
}
SWIFT = Kind(
    name="swift",
    tool="ms-swift",
    keys=_SWIFT,
    marks=frozenset({"train_type", "tuner_type", "torch_dtype"}),
    # Instruction/Command-line-parameters.md of 3.9: LoRA of rank 8 on all linear layers, with
    # gradient checkpointing; torch_dtype is the model's, which is bf16 as a rule.
    otherwise={
        **{"precision": "bf16-mixed", "optimizer": "adamw", "adapter": "lora", "rank": 8},
        **{"alpha": 32.0, "dropout": 0.05, "targets": ("all-linear",), "checkpointing": "full"},
        **{"micro_batch": 1, "num_workers": 1},
    },
    open=("",),
    strict=False,
    extended=True,
    recipe="hf-trainer",
)
MEGATRON_SWIFT = Kind(
    name="megatron-swift",
    tool="Megatron-SWIFT",
    keys=_SWIFT
    | _MEGATRON
    | {"load": key("model", _converted), "max_epochs": key("epochs", positive)},
    marks=frozenset(),
    # Megatron-SWIFT/Command-line-parameters.md: bf16, all weights, a distributed optimizer
    otherwise={
        **{"precision": "bf16-mixed", "optimizer": "adamw", "adapter": "none", "micro_batch": 1},
        **{"global_batch": 16, "checkpointing": "selective", "strategy": "zero1"},
    },
    open=("",),
    strict=False,
    extended=True,
)
TIMM = Kind(
    name="timm",
    tool="timm's train.py",
    keys={
        **{name: one for name, one in _COMMON.items() if not name.startswith("lora")},
        **_IMAGES,
        **_TIMM,
    },
    marks=frozenset(
        {
            *("opt", "sched", "drop_path", "model_ema", "warmup_lr", "crop_pct", "aa", "reprob"),
            *("train_interpolation", "color_jitter", "smoothing", "native_amp", "clip_grad"),
            *("opt_betas", "lr_base", "pin_mem", "warmup_epochs"),
        }
    ),
    # train.py of timm 1.0
    otherwise={
        **{"precision": "fp32", "optimizer": "sgd", "adapter": "none", "micro_batch": 128},
        **{"accumulation": 1, "num_workers": 4, "checkpointing": "none"},
    },
    open=("",),
    strict=False,
)
OWN_SCRIPT = Kind(
    name="own-script",
    tool="a training script's options",
    keys=_COMMON | _IMAGES | _TIMM | _MEGATRON | _HYDRA,
    marks=frozenset(),
    otherwise=_PLAIN,
    open=("",),
    strict=False,
    extended=True,
)
"""A script whose options are its own: only what scripts usually mean by a name is read."""
OPENRLHF = Kind(
    name="openrlhf",
    tool="OpenRLHF",
    keys=_COMMON
    | {
        "stage": Key("objective", word),
        "pretrain": key("model"),
        "train_batch_size": key("global_batch", whole),
        "micro_train_batch_size": key("micro_batch", whole),
        "max_epochs": key("epochs", positive),
        "flash_attn": Key("attention", where("flash")),
        "lora_rank": (key("rank", whole), Key("adapter", lambda value: "lora" if value else None)),
        "packing_samples": key("packing", truth),
        "adam_offload": Key("offload_optimizer", where("cpu")),
        "bf16": Key("precision", where("bf16-mixed")),
        "param_dtype": Key("precision", among({"bf16": "bf16-mixed", "fp16": "fp16-mixed"})),
        "gradient_checkpointing_use_reentrant": key("reentrant", truth),
    },
    marks=frozenset({"micro_train_batch_size", "pretrain"}),
    # openrlhf/cli/train_sft.py
    otherwise=_PLAIN
    | {
        "strategy": "zero2",
        "micro_batch": 8,
        "global_batch": 128,
        "length": 2048,
        "num_workers": 0,
    },
    open=("",),
    strict=False,
    extended=True,
)
_KOHYA = {"adamw8bit": "adamw-8bit", "pagedadamw8bit": "paged-adamw-8bit", "sgdnesterov": "sgd"}
"""Optimizers of sd-scripts, whose options are those of diffusers' scripts and more."""
DIFFUSERS_SCRIPT = Kind(
    name="diffusers-script",
    tool="diffusers' example scripts, or sd-scripts",
    keys={
        "pretrained_model_name_or_path": key("model"),
        "resolution": key("image_size", _side),
        "train_batch_size": key("micro_batch", whole),
        "gradient_accumulation_steps": key("accumulation", whole),
        "gradient_checkpointing": Key("checkpointing", where("full", "none")),
        "mixed_precision": Key(
            "precision", {"no": "fp32", "bf16": "bf16-mixed", "fp16": "fp16-mixed"}.__getitem__
        ),
        "use_8bit_adam": Key("optimizer", where("adamw-8bit")),
        "rank": key("rank", whole),
        "network_dim": key("rank", whole),
        "network_alpha": key("alpha", positive),
        "network_module": Key(
            "adapter", lambda value: "lora" if str(value).startswith("networks.lora") else None
        ),
        "optimizer_type": Key("optimizer", among(OPTIMIZERS | _KOHYA)),
        "max_data_loader_n_workers": key("num_workers", count),
        "use_lora": Key("adapter", where("lora")),
        "learning_rate": key("learning_rate", positive),
        "lr_warmup_steps": key("warmup", whole),
        "num_train_epochs": key("epochs", positive),
        "max_train_steps": key("max_steps", whole),
        "dataloader_num_workers": key("num_workers", count),
    },
    marks=frozenset(),
    # examples/text_to_image/train_text_to_image_lora.py, parse_args
    otherwise=_PLAIN
    | {"micro_batch": 16, "accumulation": 1, "num_workers": 0, "image_size": 512, "rank": 4},
    open=("",),
    strict=False,
    recipe="diffusers-script",
)
