"""Target ``trl``: the YAML file of ``trl sft``."""

from collections.abc import Mapping
from typing import Any

from trainwright.export import configs, hf_trainer
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.lost import Replacements, carried, lost
from trainwright.export.write import Files
from trainwright.messages import Language, Message, UserError
from trainwright.plan.question import mixes_experts
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings, Lora

made_for: Mapping[str, str] = {
    "torch": ">=2.10,<2.14",
    "transformers": ">=5.23,<6",
    "trl": ">=1.16,<2",
    "peft": ">=0.17",
}
FILE = "sft.yaml"
OWN = {"recipe": "trl-sft"}


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return sft.yaml.

    Raises:
        UserError: the model or the task is not one of SFTTrainer's.
    """
    configs.check_task(plan, "trl")
    gpus = batch(plan, settings).gpus
    start = f"trl sft --config {FILE}" + (f" --num_processes {gpus}" if gpus > 1 else "")
    text = configs.headed(
        plan,
        settings,
        reasons,
        language,
        arguments(plan, settings),
        commands=(start,),
        made_for=made_for,
        lost=not_expressible(plan, settings),
    )
    return configs.single(FILE, text)


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the file leaves out or replaces, one message each."""
    return lost(plan, settings, _replaced(plan, settings), OWN)


def _replaced(plan: Plan, settings: FullSettings) -> Replacements:
    qlora = plan.workload.task == "qlora"
    own_adapters = "weights" if qlora else "fp32"
    own_gradients = plan.workload.adapts and settings.checkpointing != "none"
    return {
        **hf_trainer.REPLACED,
        # SFTTrainer's own head makes the loss, and Liger's is refused.
        "cross_entropy": dict.fromkeys(("full", "chunked", "fused"), "tiled"),
        "kbit_preparation": {"all": "none", "norms": "none"},
        "adapter_dtype": {"fp32": own_adapters, "weights": own_adapters},
        "input_gradients": {not own_gradients: own_gradients},
        "channels_last": {True: False},
        "allocator": {"expandable": "native"},
        "quantization": {"int4": "nf4", "fp8": "int8", "fp4": "nf4"},
    }


def arguments(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the keys of ScriptArguments, ModelConfig and SFTConfig."""
    replaced = _replaced(plan, settings)
    found = hf_trainer.training_arguments(plan, settings)
    found.pop("use_liger_kernel", None)
    found.pop("liger_kernel_config", None)
    found["gradient_checkpointing"] = found.pop("activation_checkpointing", False)
    if (how := found.pop("activation_checkpointing_kwargs", None)) is not None:
        found["gradient_checkpointing_kwargs"] = how
    return {
        "model_name_or_path": configs.model_name(plan),
        "dtype": hf_trainer.weights_dtype(plan, settings),
        "attn_implementation": hf_trainer.ATTENTION[settings.attention],
        **_adapters(plan, settings, replaced),
        "dataset_name": configs.data_name(plan),
        "max_length": configs.length(plan),
        "packing": plan.workload.inputs.batching == "packed",
        **found,
    }


def _adapters(plan: Plan, settings: FullSettings, replaced: Replacements) -> dict[str, Any]:
    quantization = carried(settings, replaced, "quantization")
    found: dict[str, Any] = {}
    if plan.workload.task in ("lora", "qlora"):
        lora = plan.workload.lora or Lora()
        if not lora.named and mixes_experts(plan):
            raise UserError.of("export.mixture-targets", key="workload.lora.targets")
        found = {
            "use_peft": True,
            "lora_r": lora.rank,
            "lora_alpha": round(lora.alpha),
            "lora_dropout": lora.dropout,
            "lora_target_modules": list(lora.named) or "all-linear",
        }
        if lora.variant != "lora":
            found[f"use_{lora.variant}"] = True
    if quantization in ("nf4", "int8"):
        found["load_in_4bit" if quantization == "nf4" else "load_in_8bit"] = True
    if quantization == "nf4" or not settings.double_quantization:
        found["use_bnb_nested_quant"] = settings.double_quantization
    return found
