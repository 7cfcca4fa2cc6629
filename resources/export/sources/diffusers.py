"""Denoisers of diffusers, whole or through adapters."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from folders import open_arrays, stacked
from made import Latents
from networks import Network, State, frozen_dtype
from plan_file import Plan
from step import noise_loss
from strict import HERE, InputError
from torch import nn


def _diffusers(plan: Plan, options: argparse.Namespace) -> Network:
    import diffusers

    config = json.loads((HERE / plan.model.where / "config.json").read_text(encoding="utf-8"))
    kind = getattr(diffusers, config["_class_name"])
    if plan.model.weights is not None:
        model = kind.from_pretrained(plan.model.weights)
    else:
        model = kind.from_config(config)
    if plan.settings.attention == "eager":
        model.set_attn_processor(diffusers.models.attention_processor.AttnProcessor())
    if options.synthetic:
        side = plan.inputs.image_size or 1024
        dataset: Any = Latents(dict(model.config), side, plan.run.seed)
    else:
        dataset = open_arrays(Path(plan.data.path))
    save = _whole(model) if plan.lora is None else _with_adapters(model, plan)
    return Network(model, noise_loss, dataset, stacked, save)


def _whole(model: Any) -> Callable[[Path, State], None]:
    return lambda folder, _: model.save_pretrained(folder / "model")


def _with_adapters(model: Any, plan: Plan) -> Callable[[Path, State], None]:
    """Freeze a denoiser, put fp32 adapters beside its linear layers; return what saves them."""
    if plan.settings.quantization != "none":
        raise InputError("quantization: these scripts have no quantized denoisers; take lora")
    from peft import LoraConfig

    lora = plan.lora
    linear = [name for name, part in model.named_modules() if isinstance(part, nn.Linear)]
    model.requires_grad_(False).to(frozen_dtype(plan))
    model.add_adapter(
        LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules=lora.targets or linear,
            use_rslora=lora.variant == "rslora",
            use_dora=lora.variant == "dora",
        )
    )
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.float()
    return lambda folder, _: model.save_lora_adapter(folder / "model")


MAKERS = {"diffusers": _diffusers}
"""Kind of model in plan.json -> what builds it."""
