"""Target ``llamafactory``: the YAML file of ``llamafactory-cli train``."""

import os
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from trainwright.export import configs, hf_trainer, programs
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.lost import MODEL_UNTOUCHED, Replacements, carried, lost
from trainwright.export.write import Files
from trainwright.messages import Language, Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings, Lora

made_for: Mapping[str, str] = {
    "torch": ">=2.10,<2.14",
    "llamafactory": ">=0.9.5,<0.10",
    "transformers": ">=4.55,<=5.6",
}
FILE, INFO = "llamafactory.yaml", "dataset_info.json"
LISTED = "train"
"""What the list calls a data set of one's own."""
OWN = {"recipe": "hf-trainer", "loss_in_model": True}
KERNELS = {"eager": "disabled", "sdpa": "sdpa", "flash": "fa2"}
REPLACED: Replacements = {
    **hf_trainer.REPLACED,
    "quantization": {"int4": "nf4", "fp8": "int8"},
    "checkpointing": {"selective": "full", **{f"every-{k}": "full" for k in range(2, 100)}},
    "activation_offload": {True: False},
    "kbit_preparation": {"all": "none", "norms": "none"},
    "adapter_dtype": {"weights": "fp32"},
    "input_gradients": {True: False},
    **MODEL_UNTOUCHED,
    "allocator": {"expandable": "native"},
}
NEWER = ("activation_checkpointing", "activation_checkpointing_kwargs", "train_sampling_strategy")
"""Keys of transformers 5.23 that 5.6 does not have."""


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return llamafactory.yaml.

    Raises:
        UserError: the model or the task is not one of LLaMA-Factory's.
    """
    configs.check_task(plan, "llamafactory")
    several = "FORCE_TORCHRUN=1 " if batch(plan, settings).gpus > 1 else ""
    text = configs.headed(
        plan,
        settings,
        reasons,
        language,
        arguments(plan, settings),
        commands=(f"{several}llamafactory-cli train {FILE}",),
        made_for=made_for,
        lost=not_expressible(plan, settings),
        remarks=(Message.of("export.remark.llamafactory"),) if _own_data(plan) else (),
    )
    return {FILE: text, **_listed_data(plan)}


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the file leaves out or replaces, one message each."""
    return lost(plan, settings, REPLACED, OWN)


def _own_data(plan: Plan) -> bool:
    """Return whether the data set is a file or folder, and not a name that LLaMA-Factory lists."""
    return "/" in (name := configs.data_name(plan)) or bool(PurePath(name).suffix)


def _listed_data(plan: Plan) -> Files:
    """Return the list that names a data set of one's own: data/parser.py, get_dataset_list."""
    if not _own_data(plan):
        return {}
    columns = {"prompt": "prompt", "response": "completion"}
    if plan.workload.task == "pretrain":
        columns = {"prompt": "text"}
    path = os.path.abspath(os.path.expanduser(configs.data_name(plan)))
    return {INFO: programs.configuration({LISTED: {"file_name": path, "columns": columns}})}


def arguments(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the keys of LLaMA-Factory's own arguments, and those of its Trainer."""
    found = hf_trainer.training_arguments(plan, settings)
    for key in NEWER:
        found.pop(key, None)
    if found["warmup_steps"] < 1:  # a share of all steps
        found["warmup_ratio"] = found.pop("warmup_steps")
    fused = found.pop("use_liger_kernel", False)
    found.pop("liger_kernel_config", None)
    pure = carried(settings, REPLACED, "precision")
    checkpointed = carried(settings, REPLACED, "checkpointing") != "none"
    return {
        "model_name_or_path": configs.model_name(plan),
        "stage": "pt" if plan.workload.task == "pretrain" else "sft",
        "do_train": True,
        **_adapters(plan, settings),
        "flash_attn": KERNELS[settings.attention],
        **(
            {"dataset": LISTED, "dataset_dir": "."}
            if _own_data(plan)
            else {"dataset": configs.data_name(plan)}
        ),
        "template": "default",
        "cutoff_len": configs.length(plan),
        "packing": plan.workload.inputs.batching == "packed",
        "disable_gradient_checkpointing": not checkpointed,
        # Without checkpointing the key does nothing.
        **({} if settings.checkpointing == "none" else {"use_reentrant_gc": False}),
        "enable_liger_kernel": bool(fused),
        "pure_bf16": pure == "bf16",
        **found,
        "fp16": pure in ("fp16-mixed", "fp16"),
    }


def _adapters(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    if plan.workload.task not in ("lora", "qlora"):
        found: dict[str, Any] = {"finetuning_type": "full"}
    else:
        lora = plan.workload.lora or Lora()
        targets = configs.adapted(plan, "LLaMA-Factory", experts=False)
        found = {
            "finetuning_type": "lora",
            "lora_rank": lora.rank,
            "lora_alpha": round(lora.alpha),
            "lora_dropout": lora.dropout,
            "lora_target": ",".join(targets) or "all",
        }
        if lora.variant != "lora":
            found[f"use_{lora.variant}"] = True
    quantization = carried(settings, REPLACED, "quantization")
    if quantization != "none":
        found["quantization_bit"] = 8 if quantization == "int8" else 4
        found["quantization_type"] = "fp4" if quantization == "fp4" else "nf4"
    if quantization != "none" or not settings.double_quantization:
        found["double_quantization"] = settings.double_quantization
    return found
