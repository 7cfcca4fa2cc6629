"""Target ``transformers``: TrainingArguments in a file, and a script around the Trainer."""

from collections.abc import Mapping
from typing import Any

from trainwright.export import programs, sharing
from trainwright.export.batch import Batch, batch
from trainwright.export.header import Reasons, header
from trainwright.export.learning import learning_rate
from trainwright.export.lost import AFTER_BACKWARD, Replacements, carried, lost
from trainwright.export.model import FOLDER, adapting_libraries, definition
from trainwright.export.write import Files
from trainwright.messages import Language, Message, UserError
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings, Lora

made_for: Mapping[str, str] = {
    "python": ">=3.10",
    "torch": ">=2.10,<2.14",
    "transformers": ">=5.23,<6",
    "accelerate": ">=1.12",
    "peft": ">=0.17",
    "bitsandbytes": ">=0.48",
    "torchao": ">=0.15",
    "flash-attn": ">=2.3.3",
    "liger-kernel": ">=0.8",
}
"""Version ranges that the exported files were made for. The names of activation checkpointing
are those of transformers 5.23; 6 takes the old ones away."""

REPLACED: Replacements = {
    "precision": {"fp8": "bf16-mixed"},
    "quantization": {"int4": "nf4", "fp8": "int8"},
    "optimizer": {"muon": "adamw"},
    "optimizer_implementation": {"for-loop": "foreach"},
    **AFTER_BACKWARD,
    "cross_entropy": {"chunked": "fused", "tiled": "fused"},
    "checkpointing": {"selective": "full"},
}
LIGER = {
    "fused_linear_cross_entropy": True,
    **dict.fromkeys(("rope", "rms_norm", "swiglu", "cross_entropy"), False),
}
"""Of Liger's kernels the loss alone: what was counted."""
OPTIMIZERS = {
    "adamw": "adamw_torch_fused",
    "adamw-8bit": "adamw_bnb_8bit",
    "paged-adamw-8bit": "paged_adamw_8bit",
    "paged-adamw": "paged_adamw_32bit",
    "adamw-8bit-torchao": "adamw_torch_8bit",
    "adamw-4bit": "adamw_torch_4bit",
    "adafactor": "adafactor",
    "sgd": "sgd",
    "lion": "lion_32bit",
}
ATTENTION = {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}


SHARED = ("dataset", "hf_models", "made", "strict")


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return the exported files: train_hf.py, its arguments, and the model's configuration.

    Raises:
        UserError: the model is none of transformers', or its file cannot be read.
    """
    model, parts = definition(plan), batch(plan, settings)
    if model.kind != "hf":
        raise UserError.of("export.needs-transformers", model=model.title)
    rate = learning_rate(plan, settings, parts.effective)
    head = header(
        plan,
        settings.model_copy(update={"learning_rate": rate.value}),
        {"learning_rate": rate.because, **reasons},
        title=model.title,
        start=Message.of("export.header.start-trainer"),
        commands=_commands(plan, parts),
        made_for=_libraries(plan, settings),
        lost=not_expressible(plan, settings),
        remarks=_remarks(settings),
        language=language,
    )
    return {
        "train_hf.py": programs.headed(head, "transformers/train_hf.py"),
        "training_args.json": programs.configuration(training_arguments(plan, settings)),
        "script_args.json": programs.configuration(_script_arguments(plan, settings)),
        "selfcheck.py": programs.own("transformers/selfcheck.py"),
        **{f"{name}.py": programs.own(f"shared/{name}.py") for name in SHARED},
        "freezing.py": programs.program("freezing.py"),
        **model.files,
    }


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the files leave out or replace, one message each."""
    replaced = sharing.replaced(settings, REPLACED)
    return lost(plan, settings, replaced, {"recipe": "hf-trainer", "loss_in_model": True})


def training_arguments(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the keys of TrainingArguments, under the names of transformers 5."""
    parts = batch(plan, settings)
    rate = learning_rate(plan, settings, parts.effective)
    workers = settings.num_workers > 0
    precision = carried(settings, REPLACED, "precision")
    arguments: dict[str, Any] = {
        "output_dir": "checkpoints",
        "seed": 0,
        "per_device_train_batch_size": parts.micro,
        "gradient_accumulation_steps": parts.accumulation,
        "num_train_epochs": plan.workload.epochs or 1.0,
        "learning_rate": rate.value,
        "lr_scheduler_type": "cosine_with_min_lr",
        "lr_scheduler_kwargs": {"min_lr_rate": 0.1},
        # A float below 1 is a share of all steps.
        "warmup_steps": 0.03 if settings.warmup is None else settings.warmup,
        "weight_decay": 0.0 if plan.workload.adapts else 0.01,
        "max_grad_norm": 1.0,
        "optim": _optimizer(settings),
        "bf16": precision == "bf16-mixed",
        "fp16": precision == "fp16-mixed",
        "average_tokens_across_devices": True,
        "dataloader_num_workers": settings.num_workers,
        "dataloader_pin_memory": settings.pin_memory,
        "dataloader_persistent_workers": settings.persistent_workers and workers,
        "logging_steps": 10,
        "save_steps": 500,
        "save_total_limit": 2,
        "report_to": "none",
    }
    if settings.optimizer == "sgd":
        arguments["optim_args"] = f"momentum={settings.momentum:g}"
    if workers:
        arguments["dataloader_prefetch_factor"] = settings.prefetch_factor
    if precision in ("tf32", "bf16-mixed"):  # for what autocast leaves in fp32
        arguments["tf32"] = True
    if settings.compile:
        arguments["torch_compile"] = True
    if settings.checkpointing != "none" and not _recomputed_by_fsdp(settings):
        arguments["activation_checkpointing"] = True
        mode = carried(settings, REPLACED, "checkpointing")
        arguments["activation_checkpointing_kwargs"] = _checkpointing(mode)
    if settings.activation_offload:
        arguments.setdefault("activation_checkpointing_kwargs", {})["offload"] = True
    if carried(settings, REPLACED, "cross_entropy") == "fused":
        arguments["use_liger_kernel"] = True
        arguments["liger_kernel_config"] = LIGER
    if settings.strategy == "fsdp2":
        arguments |= _shared(settings, parts, images=definition(plan).images)
    if settings.strategy == "ddp":
        arguments["ddp_find_unused_parameters"] = False
    if plan.workload.inputs.padding:
        # Samples of about the same length together need the least padding.
        arguments["train_sampling_strategy"] = "group_by_length"
    return arguments


def _recomputed_by_fsdp(settings: FullSettings) -> bool:
    """Return whether FSDP's own checkpointing does what is asked; the Trainer's gathers twice."""
    full = carried(settings, REPLACED, "checkpointing") == "full"
    return settings.strategy == "fsdp2" and full and not settings.activation_offload


def _shared(settings: FullSettings, parts: Batch, *, images: bool) -> dict[str, Any]:
    """Return the arguments of weights that GPUs share."""
    found: dict[str, Any] = {"fsdp": True, "fsdp_config": _fsdp(settings, images=images)}
    if settings.shard_offload:  # gradients are clipped where the shares are
        found["ddp_backend"] = "cuda:nccl,cpu:gloo"
    if settings.shard_degree is not None:
        copies = parts.gpus // settings.shard_degree
        sizes = {"dp_replicate_size": copies, "dp_shard_size": settings.shard_degree}
        found["parallelism_config"] = sizes
    return found


def _fsdp(settings: FullSettings, *, images: bool) -> dict[str, Any]:
    return {
        "version": 2,
        "reshard_after_forward": settings.reshard_after_forward,
        "cpu_offload": settings.shard_offload,
        "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "state_dict_type": "FULL_STATE_DICT",
        # accelerate 1.15 cannot send buffers that way, which image networks have, nor the scales
        # of weights in 4 bits.
        "cpu_ram_efficient_loading": not images and settings.quantization == "none",
        "activation_checkpointing": _recomputed_by_fsdp(settings),
    }


def _remarks(settings: FullSettings) -> tuple[Message, ...]:
    usual = Message.of("export.remark.transformers")
    return (usual, Message.of("export.remark.transformers-fsdp2")) if settings.shards else (usual,)


def _optimizer(settings: FullSettings) -> str:
    """Return its name; without ``fused`` torch takes foreach on a GPU."""
    name = OPTIMIZERS[carried(settings, REPLACED, "optimizer")]
    fused = settings.optimizer_implementation in (None, "fused")
    return name if fused else name.removesuffix("_fused")


def _checkpointing(mode: str) -> dict[str, Any]:
    every = mode.removeprefix("every-")
    layers = {"every_n_layers": int(every)} if every.isdigit() else {}
    return {"use_reentrant": False, **layers}


def _script_arguments(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    workload, adapts = plan.workload, plan.workload.low_rank
    parts = batch(plan, settings)
    lora, data, model = workload.lora or Lora(), workload.dataset, definition(plan)
    return {
        "format": 1,
        "gpus": parts.gpus,
        "effective": parts.effective,
        "strategy": settings.strategy,
        "shard_degree": settings.shard_degree,
        "shard_offload": settings.shard_offload,
        "task": workload.task,
        "config": FOLDER,
        "weights": None,
        "dtype": weights_dtype(plan, settings),
        "attention": _attention(settings),
        "quantization": carried(settings, REPLACED, "quantization"),
        "double_quantization": settings.double_quantization,
        "kbit_preparation": settings.kbit_preparation,
        "adapter_dtype": settings.adapter_dtype,
        "input_gradients": settings.input_gradients,
        "lora_rank": lora.rank if adapts else None,
        "lora_alpha": lora.alpha if adapts else None,
        "lora_targets": list(lora.targets) if adapts else [],
        "lora_variant": lora.variant,
        "lora_dropout": lora.dropout,
        "virtual_tokens": workload.prompted,
        "frozen": list(workload.frozen),
        "channels_last": settings.channels_last and not settings.shards,
        "allocator": settings.allocator,
        "data": data.path if data is not None and data != "synthetic" else None,
        "tokenizer": None,
        "sequence_length": workload.inputs.sequence_length or model.sequence_length or 1024,
        "packed": workload.inputs.batching == "packed",
    }


def _attention(settings: FullSettings) -> str:
    expanded = settings.attention == "sdpa" and settings.expanded_heads
    return "sdpa_expanded" if expanded else ATTENTION[settings.attention]


def weights_dtype(plan: Plan, settings: FullSettings) -> str:
    """Return the type that the weights are loaded in."""
    precision = carried(settings, REPLACED, "precision")
    if precision in ("bf16", "fp16"):
        return {"bf16": "bfloat16", "fp16": "float16"}[precision]
    if plan.workload.adapts:
        # Frozen weights need no fp32 master copy; the adapters keep fp32 ones.
        return {"bf16-mixed": "bfloat16", "fp16-mixed": "float16"}.get(precision, "float32")
    return "float32"


def _libraries(plan: Plan, settings: FullSettings) -> Mapping[str, str]:
    needed = {"python", "torch", "transformers", "accelerate"}
    needed |= adapting_libraries(plan, settings)
    if settings.attention == "flash":
        needed.add("flash-attn")
    if carried(settings, REPLACED, "cross_entropy") == "fused":
        needed.add("liger-kernel")
    return {name: versions for name, versions in made_for.items() if name in needed}


def _commands(plan: Plan, parts: Batch) -> tuple[str, ...]:
    start = programs.torchrun(parts, "train_hf.py")
    weights = " --weights FOLDER-OR-HUB-ID" if plan.workload.task != "pretrain" else ""
    tried = weights if plan.workload.task == "qlora" else ""
    return (f"{start} --synthetic --steps 20 --selfcheck{tried}", f"{start} --data DATA{weights}")
