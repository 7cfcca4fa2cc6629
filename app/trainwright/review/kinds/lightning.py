"""Kind: Lightning CLI's YAML."""

from typing import Any

from trainwright.review.kinds.kind import Key, Kind, among, count, key, positive, truth, whole

PRECISION = {
    "bf16-mixed": "bf16-mixed",
    "bf16": "bf16-mixed",
    "16-mixed": "fp16-mixed",
    "16": "fp16-mixed",
    "32-true": "fp32",
    "32": "fp32",
    "bf16-true": "bf16",
    "16-true": "fp16",
    "transformer-engine": "fp8",
    "64-true": None,
    "64": None,
}


def _strategy(value: Any) -> str | None:
    name = str(value.get("class_path", "") if isinstance(value, dict) else value).lower()
    if name.startswith(("ddp", "auto")) or name.endswith("ddpstrategy"):
        return None if name == "auto" else "ddp"
    for mark, found in (
        ("deepspeed_stage_1", "zero1"),
        ("deepspeed_stage_2", "zero2"),
        ("deepspeed_stage_3", "zero3"),
        ("deepspeed", "zero3"),
        ("fsdp", "fsdp2"),
        ("modelparallel", "fsdp2"),
    ):
        if mark in name:
            return found
    raise ValueError(value)


def _devices(value: Any) -> int | None:
    """A number, a list of GPUs, or "auto" and -1 for all that there are."""
    if value in ("auto", -1, "-1"):
        return None
    if isinstance(value, str) and "," in value:
        value = [part for part in value.split(",") if part.strip()]
    if value == []:
        raise ValueError(value)
    return len(value) if isinstance(value, list) else whole(value)


LIGHTNING = Kind(
    name="lightning",
    tool="Lightning",
    keys={
        "trainer.precision": Key(
            "precision",
            among(PRECISION),
            lambda value: {"fp16-mixed": "16-mixed", "fp32": "32-true"}.get(value, value),
        ),
        "trainer.devices": key("devices", _devices),
        "trainer.num_nodes": key("nodes", whole),
        "trainer.strategy": Key("strategy", _strategy),
        "trainer.accumulate_grad_batches": key("accumulation", whole),
        "trainer.max_epochs": key("epochs", positive),
        "trainer.max_steps": key("max_steps", whole),
        "data.init_args.batch_size": key("micro_batch", whole),
        "data.batch_size": key("micro_batch", whole),
        "data.init_args.num_workers": key("num_workers", count),
        "data.num_workers": key("num_workers", count),
        "data.init_args.pin_memory": key("pin_memory", truth),
        "data.init_args.image_size": key("image_size", whole),
        "data.init_args.max_length": key("length", whole),
        "data.init_args.max_seq_length": key("length", whole),
        "model.init_args.model_name": key("model"),
        "model.init_args.model_name_or_path": key("model"),
        "model.init_args.backbone": key("model"),
        "model.init_args.lr": key("learning_rate", positive),
        "model.init_args.learning_rate": key("learning_rate", positive),
        "optimizer.init_args.lr": key("learning_rate", positive),
    },
    marks=frozenset({"trainer"}),
    listed="lightning",
    # trainer.py: precision "32-true"; one batch a step.
    otherwise={"precision": "fp32", "accumulation": 1},
    moved={
        "trainer.gpus": "trainer.devices",
        "trainer.tpu_cores": "trainer.devices",
        "trainer.num_processes": "trainer.devices",
        "trainer.amp_backend": "trainer.precision",
        "trainer.amp_level": None,
        "trainer.resume_from_checkpoint": "ckpt_path",
        "trainer.progress_bar_refresh_rate": "trainer.enable_progress_bar",
        "trainer.auto_select_gpus": None,
        "trainer.auto_scale_batch_size": None,
        "trainer.auto_lr_find": None,
        "trainer.replace_sampler_ddp": "trainer.use_distributed_sampler",
        "trainer.weights_summary": "trainer.enable_model_summary",
        "trainer.checkpoint_callback": "trainer.enable_checkpointing",
        "trainer.flush_logs_every_n_steps": None,
        "trainer.ipus": None,
        "trainer.track_grad_norm": None,
        "trainer.multiple_trainloader_mode": None,
        "trainer.terminate_on_nan": "trainer.detect_anomaly",
    },
    open=(
        *("model", "data", "optimizer", "lr_scheduler", "seed_everything", "ckpt_path", "fit"),
        *("trainer.strategy", "trainer.callbacks", "trainer.logger", "trainer.plugins"),
        *("trainer.profiler", "class_path", "init_args", "config"),
    ),
    recipe="lightning",
)
