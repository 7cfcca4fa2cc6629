"""The model of the plan with the loss, the samples and the collation that go with it."""

import argparse
import dataclasses
import importlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import made
import step
import torch
from dataset import Text, collator, open_text
from folders import open_arrays, open_images, stacked
from freezing import UnknownNameError, frozen
from plan_file import Plan
from strict import InputError
from torch import nn

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Network:
    """A model and how it is fed."""

    model: nn.Module
    loss: step.Loss
    dataset: Any
    collate: Callable[[list[Any]], dict[str, Any]]
    save: Callable[[Path], None]
    """Writes the trained model below the folder, as its own library reads it."""


def build(plan: Plan, options: argparse.Namespace) -> Network:
    """Return the network, its weights untrained or loaded as the plan says.

    Raises:
        InputError: no dataset, no weights to adapt, or a library is missing.
    """
    if plan.data.path is None and not options.synthetic:
        raise InputError("no dataset: name one with --data PATH, or try it with --synthetic")
    makers = {
        "hf": _transformers,
        "timm": _timm,
        "diffusers": _diffusers,
        "builtin": _builtin,
        "python": _python,
    }
    try:
        network = makers[plan.model.kind](plan, options)
    except ImportError as error:
        raise InputError(f"{error}; install it: see made_for in plan.json") from error
    freeze(network.model, plan.frozen)
    return network


def freeze(model: nn.Module, names: list[str]) -> None:
    """Leave the named weights as they are.

    Raises:
        InputError: a name stands for nothing.
    """
    weights = dict(model.named_parameters(remove_duplicate=False))
    try:
        found = frozen(weights, names)
    except UnknownNameError as error:
        raise InputError(f"frozen: {error}") from None
    for path in found:
        weights[path].requires_grad_(False)


def _transformers(plan: Plan, options: argparse.Namespace) -> Network:
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(HERE / plan.model.where)
    model = _language_or_vision(plan, options, config)
    if model.main_input_name == "pixel_values":
        dataset = _pictures(plan, options, "pixel_values", config.num_labels)
        return Network(model, step.token_loss, dataset, stacked, _saver(model))
    tokenizer = None
    if plan.data.tokenizer is not None and not options.synthetic:
        tokenizer = AutoTokenizer.from_pretrained(plan.data.tokenizer)
    text = Text.of(config, tokenizer)
    length = plan.inputs.sequence_length
    if length is None:
        raise InputError("inputs.sequence_length: missing; a language model needs it")
    if options.synthetic:
        dataset = made.Tokens(text, length, plan.run.seed)
    else:
        dataset = open_text(
            Path(plan.data.path), length, text, tokenizer, packed=plan.inputs.packed
        )
    loss = _loss(plan, model, text)
    return Network(model, loss, dataset, partial(_split, collate=collator(text)), _saver(model))


def _loss(plan: Plan, model: Any, text: Text) -> step.Loss:
    if text.form != "causal":
        return step.token_loss
    if plan.settings.cross_entropy == "chunked":
        return step.ChunkedLoss(model.get_output_embeddings())
    return step.next_token_loss


def _language_or_vision(plan: Plan, options: argparse.Namespace, config: Any) -> Any:
    import hf_models

    trained = plan.model.weights is not None
    if not trained and plan.settings.quantization != "none":
        raise InputError("quantized weights are made from trained ones: name them with --weights")
    if (
        not trained
        and plan.task != "pretrain"
        and not (options.synthetic or options.random_weights)
    ):
        raise InputError(
            f"task {plan.task} starts from trained weights: name them with --weights "
            "FOLDER-OR-HUB-ID, or say --random-weights"
        )
    weights = hf_models.Weights(
        plan.model.weights,
        torch.float32 if plan.task in ("pretrain", "full") else frozen_dtype(plan),
        # The flash kernel that torch itself has: loop.py allows no other.
        "eager" if plan.settings.attention == "eager" else "sdpa",
        plan.settings.quantization,
        plan.settings.double_quantization,
        plan.settings.kbit_preparation,
    )
    model = hf_models.build(config, weights)
    if plan.virtual_tokens:
        return hf_models.prompted(model, plan.task, plan.virtual_tokens)
    if plan.lora is None:
        return model
    adapters = hf_models.Adapters(
        **dataclasses.asdict(plan.lora),
        dtype=plan.settings.adapter_dtype,
        input_gradients=plan.settings.input_gradients,
    )
    return hf_models.adapted(model, adapters)


def frozen_dtype(plan: Plan) -> torch.dtype:
    """Return the type of weights under LoRA: they need no fp32 copy, the adapters have that."""
    halves = {
        "bf16": torch.bfloat16,
        "bf16-mixed": torch.bfloat16,
        "fp16-mixed": torch.float16,
        "fp16": torch.float16,
    }
    return halves.get(plan.settings.precision, torch.float32)


def _timm(plan: Plan, options: argparse.Namespace) -> Network:
    import timm

    if plan.settings.attention == "eager":
        timm.layers.set_fused_attn(False)
    dataset = _pictures(plan, options, "x", classes=1000)
    arguments = {
        "pretrained": plan.model.weights == "pretrained",
        "num_classes": len(dataset.classes),
    }
    try:
        size = plan.inputs.image_size or 224
        model = timm.create_model(plan.model.where, img_size=size, **arguments)
    except TypeError:  # convolutional networks take any size
        model = timm.create_model(plan.model.where, **arguments)
    return Network(model, step.token_loss, dataset, stacked, _weights_saver(model))


def _pictures(plan: Plan, options: argparse.Namespace, name: str, classes: int) -> Any:
    size = plan.inputs.image_size or 224
    if options.synthetic:
        return made.Pictures(name, size, classes, plan.run.seed)
    return open_images(Path(plan.data.path), name, size, plan.run.seed)


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
        dataset: Any = made.Latents(dict(model.config), side, plan.run.seed)
    else:
        dataset = open_arrays(Path(plan.data.path))
    save = _saver(model) if plan.lora is None else _with_adapters(model, plan)
    return Network(model, step.noise_loss, dataset, stacked, save)


def _with_adapters(model: Any, plan: Plan) -> Callable[[Path], None]:
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
    return lambda folder: model.save_lora_adapter(folder / "model")


def _builtin(plan: Plan, options: argparse.Namespace) -> Network:
    import nets

    if plan.model.where == "unet":
        model, loss = nets.UNet(), step.token_loss
        samples: Any = made.Masks(plan.inputs.image_size or 256, plan.run.seed)
    else:
        model, loss = nets.NatureActorCritic(), nets.ppo_loss
        samples = made.Rollout(model.policy.out_features, plan.run.seed)
    dataset = samples if options.synthetic else open_arrays(Path(plan.data.path))
    return Network(model, loss, dataset, stacked, _weights_saver(model))


def _python(plan: Plan, options: argparse.Namespace) -> Network:
    """The factory returns a module, or the parts that Trainwright's docs/own-models.md names."""
    file, _, factory = plan.model.where.rpartition(":")
    folder, *inside = Path(file).with_suffix("").parts
    sys.path.insert(0, str(HERE / folder))
    if len(inside) > 1:
        module = importlib.import_module(".".join(inside))
    else:
        spec = importlib.util.spec_from_file_location("model_of_the_plan", HERE / file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    built = getattr(module, factory)(**plan.model.arguments)
    model, loss = built, None
    if isinstance(built, dict):
        model, loss = built["model"], built.get("loss")
    elif not isinstance(built, nn.Module):
        model, loss = built.model, getattr(built, "loss", None)
    if options.synthetic:
        raise InputError("--synthetic: unknown inputs; give samples with --data FOLDER-OF-NPZ")
    dataset = open_arrays(Path(plan.data.path))
    return Network(model, _counted(loss), dataset, stacked, _weights_saver(model))


def _counted(loss: Callable[..., Any] | None) -> step.Loss:
    """Return the factory's loss as the step calls it; cross-entropy where it has none."""
    if loss is None:
        return step.token_loss
    if len(inspect.signature(loss).parameters) >= 3:
        return loss
    return lambda output, labels, count: loss(output, labels)


def _split(samples: list[Any], collate: Callable[[list[Any]], dict[str, Any]]) -> dict[str, Any]:
    """Collate, and set the labels apart from the model's inputs."""
    inputs = collate(samples)
    return {"labels": inputs.pop("labels"), "inputs": inputs}


def _saver(model: Any) -> Callable[[Path], None]:
    return lambda folder: model.save_pretrained(folder / "model")


def _weights_saver(model: nn.Module) -> Callable[[Path], None]:
    return lambda folder: torch.save(model.state_dict(), folder / "model.pt")
