"""Target ``axolotl``: the YAML file of ``axolotl train``."""

from collections.abc import Mapping
from typing import Any

from trainwright.export import configs, hf_trainer
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.lost import MODEL_UNTOUCHED, Replacements, carried, lost
from trainwright.export.write import Files
from trainwright.messages import Language, Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings, Lora

made_for: Mapping[str, str] = {"torch": ">=2.11,<=2.13", "axolotl": ">=0.19,<0.20"}
FILE = "axolotl.yaml"
OWN = {"recipe": "hf-trainer", "loss_in_model": True}
KERNELS = {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}
LIGER = "axolotl.integrations.liger.LigerPlugin"


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return axolotl.yaml.

    Raises:
        UserError: the model or the task is not one of axolotl's.
    """
    configs.check_task(plan, "axolotl")
    gpus = batch(plan, settings).gpus
    launched = f" --launcher torchrun -- --nproc_per_node={gpus}" if gpus > 1 else ""
    text = configs.headed(
        plan,
        settings,
        reasons,
        language,
        arguments(plan, settings),
        commands=(f"axolotl train {FILE}{launched}",),
        made_for=made_for,
        lost=not_expressible(plan, settings),
    )
    return configs.single(FILE, text)


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the file leaves out or replaces, one message each."""
    return lost(plan, settings, _replaced(plan), OWN)


def _replaced(plan: Plan) -> Replacements:
    found: dict[str, Mapping[Any, Any]] = {
        **hf_trainer.REPLACED,
        "quantization": {"int4": "nf4", "fp8": "int8", "fp4": "nf4"},
        "optimizer_implementation": {"for-loop": "foreach"},
        "kbit_preparation": {"all": "none", "norms": "none"},
        "adapter_dtype": {"weights": "fp32"},
        "input_gradients": {True: False},
        "double_quantization": {False: True},
        "cross_entropy": {"tiled": "chunked"},
        "persistent_workers": {True: False},
        **MODEL_UNTOUCHED,
        "allocator": {"expandable": "native"},
    }
    if not plan.workload.adapts:
        # Weights are loaded in the type that is computed in: axolotl keeps no fp32 copy.
        found["precision"] = {
            **{"fp8": "bf16-mixed", "bf16-mixed": "bf16", "fp16-mixed": "fp16"},
        }
    return found


def arguments(plan: Plan, settings: FullSettings) -> dict[str, Any]:
    """Return the keys of axolotl's own file."""
    parts = batch(plan, settings)
    replaced = _replaced(plan)
    trainer = hf_trainer.training_arguments(plan, settings)
    precision = carried(settings, replaced, "precision")
    fused = carried(settings, replaced, "cross_entropy")
    checkpointed = carried(settings, replaced, "checkpointing")
    data = configs.data_name(plan)
    found: dict[str, Any] = {
        "base_model": configs.model_name(plan),
        **_adapters(plan, settings, replaced),
        "sequence_len": configs.length(plan),
        "sample_packing": plan.workload.inputs.batching == "packed",
        "micro_batch_size": parts.micro,
        "gradient_accumulation_steps": parts.accumulation,
        "num_epochs": plan.workload.epochs or 1.0,
        "optimizer": trainer["optim"],
        "learning_rate": trainer["learning_rate"],
        "lr_scheduler": "cosine",
        "weight_decay": trainer["weight_decay"],
        "max_grad_norm": 1.0,
        "bf16": precision in ("bf16-mixed", "bf16"),
        "fp16": precision in ("fp16-mixed", "fp16"),
        "tf32": bool(trainer.get("tf32", False)),
        "gradient_checkpointing": checkpointed != "none",
        "attn_implementation": KERNELS[settings.attention],
        "torch_compile": settings.compile,
        "dataloader_num_workers": settings.num_workers,
        "dataloader_pin_memory": settings.pin_memory,
        "datasets": [{"path": data, "type": "completion"}],
        "output_dir": "checkpoints",
    }
    warmup = trainer["warmup_steps"]
    found["warmup_steps" if warmup >= 1 else "warmup_ratio"] = warmup
    if checkpointed != "none":
        found["gradient_checkpointing_kwargs"] = trainer["activation_checkpointing_kwargs"]
    if settings.activation_offload:
        found["activation_offloading"] = True
    if settings.num_workers:
        found["dataloader_prefetch_factor"] = settings.prefetch_factor
    if "optim_args" in trainer:
        found["optim_args"] = trainer["optim_args"]
    if fused == "fused":
        found |= {"plugins": [LIGER], "liger_fused_linear_cross_entropy": True}
    elif fused == "chunked":
        found["chunked_cross_entropy"] = True
    if settings.strategy == "ddp":
        found["ddp_find_unused_parameters"] = False
    return found


def _adapters(plan: Plan, settings: FullSettings, replaced: Replacements) -> dict[str, Any]:
    quantization = carried(settings, replaced, "quantization")
    found: dict[str, Any] = {}
    if plan.workload.low_rank:
        lora = plan.workload.lora or Lora()
        targets = configs.adapted(plan, "axolotl", experts=False)
        found = {
            "adapter": "qlora" if quantization == "nf4" else "lora",
            "lora_r": lora.rank,
            "lora_alpha": round(lora.alpha),
            "lora_dropout": lora.dropout,
            **({"lora_target_modules": targets} if targets else {"lora_target_linear": True}),
        }
        if lora.variant != "lora":
            found[f"peft_use_{lora.variant}"] = True
    if quantization in ("nf4", "int8"):
        found["load_in_4bit" if quantization == "nf4" else "load_in_8bit"] = True
    return found
