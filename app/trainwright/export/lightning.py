"""Target ``lightning``: the YAML file of Lightning's own command line, and a script around it."""

import math
from collections.abc import Mapping
from typing import Any

from trainwright.export import configs, hf_trainer, programs
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.lost import MODEL_UNTOUCHED, Replacements, carried, lost
from trainwright.export.model import definition
from trainwright.export.write import Files
from trainwright.messages import Language, Message, UserError
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings, Lora

made_for: Mapping[str, str] = {
    "torch": ">=2.10,<2.14",
    "lightning": ">=2.5,<2.7",
    "jsonargparse": ">=4.39",
    "transformers": ">=5.23,<6",
    "peft": ">=0.17",
}
FILE, SCRIPT = "lightning.yaml", "train_lightning.py"
OWN = {"recipe": "lightning", "loss_in_model": True, "gradients_cleared": "before-backward"}
PRECISION = {
    **{"fp32": "32-true", "tf32": "32-true", "bf16": "bf16-true", "fp16": "16-true"},
    **{"bf16-mixed": "bf16-mixed", "fp16-mixed": "16-mixed"},
}
OPTIMIZERS = {
    **{"adamw": "torch.optim.AdamW", "sgd": "torch.optim.SGD"},
    "adafactor": "torch.optim.Adafactor",
    "adamw-8bit": "bitsandbytes.optim.AdamW8bit",
    "paged-adamw-8bit": "bitsandbytes.optim.PagedAdamW8bit",
    "paged-adamw": "bitsandbytes.optim.PagedAdamW",
    "lion": "bitsandbytes.optim.Lion",
    "adamw-8bit-torchao": "torchao.optim.AdamW8bit",
    "adamw-4bit": "torchao.optim.AdamW4bit",
}
"""The plan's name -> the class that ``optimizer.class_path`` names."""


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return lightning.yaml, train_lightning.py, and the programs that it imports.

    Raises:
        UserError: the model is not a language model of transformers, or the task is another.
    """
    configs.check_task(plan, "lightning")
    if (model := definition(plan)).kind != "hf" or model.images:
        raise UserError.of("export.no-data-for", model=model.title)
    start = f"python {SCRIPT} fit --config {FILE}"
    text = configs.headed(
        plan,
        settings,
        reasons,
        language,
        document(plan, settings),
        commands=(f"{start} --data.synthetic true --trainer.max_steps 20", start),
        made_for=made_for,
        lost=not_expressible(plan, settings),
    )
    shared = {f"{name}.py": programs.own(f"shared/{name}.py") for name in hf_trainer.SHARED}
    return {FILE: text, SCRIPT: programs.own(f"lightning/{SCRIPT}"), **shared}


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the files leave out or replace, one message each."""
    return lost(plan, settings, _replaced(settings), OWN)


def _replaced(settings: FullSettings) -> Replacements:
    # Under mixed precision it refuses to clip for a fused optimizer, which could unscale by itself:
    # lightning 2.6.6, plugins/precision/amp.py, clip_gradients.
    mixed = settings.precision in ("bf16-mixed", "fp16-mixed", "fp8")
    return {
        **hf_trainer.REPLACED,
        "optimizer_implementation": {"fused": "foreach"} if mixed else {},
        "cross_entropy": dict.fromkeys(("chunked", "fused", "tiled"), "full"),
        "checkpointing": {"selective": "full", **{f"every-{k}": "full" for k in range(2, 100)}},
        "activation_offload": {True: False},
        **MODEL_UNTOUCHED,
        "allocator": {"expandable": "native"},
    }


def document(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the sections of Lightning's command line."""
    parts = batch(plan, settings)
    name = configs.model_name(plan)
    return {
        "seed_everything": 0,
        "trainer": {
            "accelerator": "gpu",
            "devices": parts.each,
            "num_nodes": parts.nodes,
            "strategy": "ddp" if settings.strategy == "ddp" else "auto",
            "precision": PRECISION[carried(settings, _replaced(settings), "precision")],
            "accumulate_grad_batches": parts.accumulation,
            "max_epochs": max(1, math.ceil(plan.workload.epochs or 1.0)),
            "gradient_clip_val": programs.CLIP_NORM,
            "log_every_n_steps": 10,
            "default_root_dir": "checkpoints",
            "logger": {
                "class_path": "lightning.pytorch.loggers.CSVLogger",
                "init_args": {"save_dir": "checkpoints"},
            },
        },
        "optimizer": _optimizer(plan, settings),
        "model": _model(plan, settings, name),
        "data": _data(plan, settings, name),
    }


def _optimizer(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    kind = carried(settings, _replaced(settings), "optimizer")
    arguments: dict[str, Any] = {
        "lr": configs.rate(plan, settings),
        "weight_decay": 0.0 if plan.workload.adapts else 0.01,
    }
    if kind == "sgd":
        arguments["momentum"] = settings.momentum
    if kind in ("adamw", "sgd"):
        how = settings.optimizer_implementation or "fused"
        how = _replaced(settings)["optimizer_implementation"].get(how, how)
        arguments |= {"fused": how == "fused", "foreach": how == "foreach"}
    return {"class_path": OPTIMIZERS[kind], "init_args": arguments}


def _model(plan: Plan, settings: FullSettings, name: str) -> dict[str, Any]:
    replaced = _replaced(settings)
    quantization = carried(settings, replaced, "quantization")
    return {
        "model_name_or_path": name,
        "random_weights": plan.workload.task == "pretrain",
        "dtype": hf_trainer.weights_dtype(plan, settings),
        "attn_implementation": hf_trainer.ATTENTION[settings.attention],
        "quantization": quantization,
        "double_quantization": settings.double_quantization,
        "kbit_preparation": settings.kbit_preparation,
        "lora": _lora(plan, settings),
        "gradient_checkpointing": carried(settings, replaced, "checkpointing") != "none",
        "torch_compile": settings.compile,
        "tf32": settings.precision in ("tf32", "bf16-mixed"),
        "warmup_steps": 0.03 if settings.warmup is None else settings.warmup,
    }


def _lora(plan: Plan, settings: FullSettings) -> dict[str, Any] | None:
    if not plan.workload.adapts:
        return None
    lora = plan.workload.lora or Lora()
    return {
        "rank": lora.rank,
        "alpha": lora.alpha,
        "targets": list(lora.targets),
        "variant": lora.variant,
        "dropout": lora.dropout,
        "dtype": settings.adapter_dtype,
        "input_gradients": settings.input_gradients,
    }


def _data(plan: Plan, settings: FullSettings, name: str) -> dict[str, Any]:
    data, workers = plan.workload.dataset, settings.num_workers > 0
    return {
        "model_name_or_path": name,
        "path": data.path if data is not None and data != "synthetic" else None,
        "max_length": configs.length(plan),
        "packed": plan.workload.inputs.batching == "packed",
        "batch_size": settings.micro_batch,
        "num_workers": settings.num_workers,
        "prefetch_factor": settings.prefetch_factor if workers else None,
        "pin_memory": settings.pin_memory,
        "persistent_workers": settings.persistent_workers and workers,
    }
