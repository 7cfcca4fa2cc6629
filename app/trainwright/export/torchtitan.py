"""Target ``torchtitan``: the TOML file of a training run from the first block to the last."""

import math
from collections.abc import Mapping
from typing import Any

from trainwright.export import configs, programs
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.lost import MODEL_UNTOUCHED, Replacements, carried, lost
from trainwright.export.write import Files
from trainwright.messages import Language, Message, UserError
from trainwright.plan.schema import Plan
from trainwright.profile import presets
from trainwright.quoting import quoted
from trainwright.workload import FullSettings

made_for: Mapping[str, str] = {"torch": ">=2.10,<2.14", "torchtitan": ">=0.2.2,<0.3"}
"""From 0.3 on its configs are Python."""
FILE = "torchtitan.toml"
FLAVORS: Mapping[str, tuple[str, str]] = {
    **{f"llama-3.1-{size}b": ("llama3", f"{size}B") for size in (8, 70)},
    **{f"qwen-3-{s}b": ("qwen3", f"{s}B") for s in ("0.6", "1.7", "4", "8", "14", "32")},
}
"""Preset -> ``model.name`` and ``model.flavor``; torchtitan 0.2.2, models/*/__init__.py."""
STEPS = 10_000
"""``training.steps`` where a plan does not say how many samples there are: torchtitan's own."""
REPLACED: Replacements = {
    "precision": {"tf32": "fp32", "fp16-mixed": "bf16-mixed", "fp16": "bf16"},
    "optimizer": dict.fromkeys(
        ("sgd", "adafactor", "lion", "muon", "adamw-8bit", "paged-adamw", "paged-adamw-8bit",
         "adamw-8bit-torchao", "adamw-4bit"),
        "adamw",
    ),
    "optimizer_offload": {"cpu": "none"},
    "cross_entropy": dict.fromkeys(("chunked", "fused", "tiled"), "full"),
    "attention": {"eager": "sdpa", "flash": "sdpa"},
    "activation_offload": {True: False},
    **MODEL_UNTOUCHED,
}  # fmt: skip
DTYPES = {"fp32": ("float32", "float32"), "bf16": ("bfloat16", "bfloat16")}
"""Precision -> ``training.dtype`` and ``mixed_precision_param``, where that is not bf16 over
weights in fp32."""


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return torchtitan.toml.

    Raises:
        UserError: the model or the task is not one of torchtitan's.
    """
    configs.check_task(plan, "torchtitan")
    if plan.workload.adapts:
        raise UserError.of("export.not-of-target", target="torchtitan", task=plan.workload.task)
    sections = document(plan, settings)
    above = configs.head(
        plan,
        settings,
        reasons,
        language,
        commands=(_command(plan, settings),),
        made_for=made_for,
        lost=not_expressible(plan, settings),
        remarks=(Message.of("export.remark.torchtitan", command=_fetching(plan)),),
    )
    return configs.single(FILE, f"{above}\n{_toml(sections)}")


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the file leaves out or replaces, one message each."""
    return lost(plan, settings, REPLACED, {})


def _command(plan: Plan, settings: FullSettings) -> str:
    """Return what starts the run; it asks for torchrun's variables on one GPU too."""
    parts = batch(plan, settings)
    program = f"-m torchtitan.train --job.config_file {FILE}"
    start = f"torchrun --standalone --nproc-per-node=1 {program}"
    if parts.gpus > 1:
        start = programs.torchrun(parts, program)
    early = "PYTORCH_ALLOC_CONF=expandable_segments:True "
    return f"{early * (settings.allocator == 'expandable')}{start}"


def _fetching(plan: Plan) -> str:
    """Return what fetches the tokenizer, and the weights where training starts from some."""
    fetch = f"hf download {configs.model_name(plan)} --local-dir {_assets(plan)}"
    alone = " --include 'tokenizer*' '*config.json'"
    return f"{fetch}{alone * (plan.workload.task == 'pretrain')}"


def _assets(plan: Plan) -> str:
    """Return the folder of the tokenizer, and of the weights where training starts from some."""
    return f"assets/{configs.model_name(plan).rpartition('/')[2]}"


def document(plan: Plan, settings: FullSettings) -> dict[str, dict[str, Any]]:
    """Return the keys of each section.

    Raises:
        UserError: torchtitan has no such model.
    """
    preset = presets.find(plan.model.preset) if plan.model.preset is not None else None
    if preset is None or preset.id not in FLAVORS:
        raise UserError.of("export.no-flavor", able=list(FLAVORS))
    name, flavor = FLAVORS[preset.id]
    precision = carried(settings, REPLACED, "precision")
    fp8 = {"converters": ["quantize.linear.float8"]} if precision == "fp8" else {}
    steps = _steps(plan, settings)
    return {
        "job": {"dump_folder": "outputs"},
        "model": {"name": name, "flavor": flavor, "hf_assets_path": _assets(plan), **fp8},
        "optimizer": {
            "name": "AdamW",
            "lr": configs.rate(plan, settings),
            "weight_decay": 0.01,
            "implementation": settings.optimizer_implementation or "fused",
            "early_step_in_backward": settings.optimizer_in_backward,
        },
        "lr_scheduler": {
            "warmup_steps": math.ceil(0.03 * steps) if settings.warmup is None else settings.warmup,
            "decay_type": "cosine",
            "min_lr_factor": 0.1,
        },
        "training": _training(plan, settings, steps),
        "training.dataloader": _loader(settings),
        "parallelism": _parallelism(plan, settings),
        "checkpoint": _checkpoint(plan),
        "activation_checkpoint": _recomputed(settings),
        "compile": {"enable": settings.compile},
    }


def _steps(plan: Plan, settings: FullSettings) -> int:
    samples = plan.workload.samples
    if samples is None:
        return STEPS
    effective = batch(plan, settings).effective
    return max(1, math.ceil(samples * (plan.workload.epochs or 1.0) / effective))


def _training(plan: Plan, settings: FullSettings, steps: int) -> dict[str, Any]:
    parts, data = batch(plan, settings), configs.data_name(plan)
    precision = carried(settings, REPLACED, "precision")
    weights, computed = DTYPES.get(precision, ("float32", "bfloat16"))
    # What torchtitan calls c4_test reads any data set that has a column "text".
    own = {"dataset": "c4_test", "dataset_path": data}
    return {
        **(own if data != configs.DATA else {"dataset": "c4"}),
        "local_batch_size": parts.micro,
        "global_batch_size": parts.effective,
        "seq_len": configs.length(plan),
        "max_norm": 1.0,
        "steps": steps,
        "dtype": weights,
        "mixed_precision_param": computed,
        "enable_cpu_offload": settings.shard_offload,
    }


def _loader(settings: FullSettings) -> dict[str, Any]:
    found: dict[str, Any] = {
        "num_workers": settings.num_workers,
        "pin_memory": settings.pin_memory,
    }
    if settings.num_workers:
        found["persistent_workers"] = settings.persistent_workers
        found["prefetch_factor"] = settings.prefetch_factor
    return found


def _parallelism(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    gpus = batch(plan, settings).gpus
    shared = (settings.shard_degree or gpus) if settings.shards else 1
    all_share = settings.shards and settings.shard_degree is None
    return {
        "data_parallel_replicate_degree": gpus // shared,
        "data_parallel_shard_degree": -1 if all_share else shared,
        "fsdp_reshard_after_forward": "always" if settings.reshard_after_forward else "never",
    }


def _checkpoint(plan: Plan) -> dict[str, Any]:
    found: dict[str, Any] = {"enable": True, "interval": 500, "keep_latest_k": 2}
    if plan.workload.task == "full":
        found |= {"initial_load_path": _assets(plan), "initial_load_in_hf": True}
    return found


def _recomputed(settings: FullSettings) -> dict[str, Any]:
    mode = settings.checkpointing
    if mode in ("none", "full"):
        return {"mode": mode}
    each = "op" if mode == "selective" else mode.removeprefix("every-")
    return {"mode": "selective", "selective_ac_option": each}


def _toml(sections: Mapping[str, Mapping[str, Any]]) -> str:
    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {_literal(value)}\n" for key, value in values.items())
        for name, values in sections.items()
    )


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return quoted(value) if isinstance(value, str) else repr(value)
