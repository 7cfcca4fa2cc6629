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
    truth,
    where,
    whole,
    word,
)
from trainwright.review.kinds.lightning import PRECISION


def _side(value: Any) -> int | None:
    """Return the longer side of ``1024`` or ``1024,768``."""
    return whole(max(map(int, str(value).split(","))))


def _restored(value: Any) -> str:
    """Return the model of a NeMo file."""
    return str(value).removesuffix(".nemo")


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
    "zero_stage": Key("stage", among(STAGES)),
    "lr": key("learning_rate", positive),
    "epochs": key("epochs", positive),
    "num_workers": key("num_workers", count),
    "workers": key("num_workers", count),
    "lora_rank": key("rank", whole),
    "use_lora": Key("adapter", where("lora")),
    "target_modules": Key("targets", names),
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
    "opt": Key("optimizer", among(OPTIMIZERS | {"momentum": "sgd"})),
    "grad_checkpointing": Key("checkpointing", where("full", "none")),
    "torchcompile": Key("compile", lambda value: value not in (None, False)),
}
_MEGATRON = {
    "micro_batch_size": key("micro_batch", whole),
    "global_batch_size": key("global_batch", whole),
    "tensor_model_parallel_size": key("tensor", whole),
    "pipeline_model_parallel_size": key("pipeline", whole),
    "context_parallel_size": key("context_parallel", whole),
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
_TUNERS = Key("adapter", among({"lora": "lora", "full": "none"}))
_ZERO = {"zero0": "ddp", "zero1": "zero1", "zero2": "zero2", "zero3": "zero3"}
SWIFT = Kind(
    name="swift",
    tool="ms-swift",
    keys=_COMMON
    | {
        "train_type": _TUNERS,
        "tuner_type": _TUNERS,
        "sft_type": _TUNERS,
        "torch_dtype": (
            Key("weights_dtype", among(DTYPES)),
            Key("precision", among(_COMPUTED)),
        ),
        "quant_bits": Key("quantization", among({"4": "nf4", "8": "int8"})),
        "deepspeed": Key(
            "strategy",
            lambda value: _ZERO.get(str(value).partition("_")[0]),
        ),
        "attn_impl": Key("attention", among(ATTENTION | {"flash_attn": "flash"})),
    },
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
        "gradient_checkpointing_use_reentrant": key("reentrant", truth),
    },
    marks=frozenset({"micro_train_batch_size", "pretrain"}),
    # openrlhf/cli/train_sft.py
    otherwise=_PLAIN
    | {"stage": "zero2", "micro_batch": 8, "global_batch": 128, "length": 2048, "num_workers": 0},
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
