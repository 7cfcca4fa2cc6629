"""Builds the model that a spec names, without data, and the batches that it takes."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nets
import step
import torch
from refusal import Refusal
from torch import nn

CONFIG_BYTES = 4 * 2**20
"""Assumed: no honest ``config.json`` is larger."""
LARGEST = {"layers": 2048, "number": 10**9}
"""Assumed bounds on what is built: blocks, and any integer of a configuration."""

Make = Callable[[int, int], step.Batch]
"""(batch, sequence) -> a batch on the host."""


@dataclass
class Subject:
    """A model to trace, still without memory, and how it is fed."""

    model: nn.Module
    batch: Make
    loss: step.Loss
    facts: dict[str, Any] = field(default_factory=dict)
    head: nn.Module | None = None
    config: Any = None
    decodes: bool = False
    """Whether it generates with a cache of keys and values."""
    longest: int = 0
    """Largest sequence that its position table has, 0 where there is none."""


def build(spec: dict[str, Any]) -> Subject:
    """Return the model on ``meta``, in fp32, and what belongs to it.

    Raises:
        Refusal: the source cannot be used; says why.
    """
    source, name = next(iter(spec["model"].items()))
    builders = {"hf": _hugging_face, "timm": _timm, "diffusers": _diffusers, "builtin": _builtin}
    if source not in builders:
        raise Refusal("worker.unknown-source", source=source)
    with torch.device("meta"):
        subject = builders[source](name, spec)
    subject.model.requires_grad_(True)
    return subject


# Hugging Face transformers


def _hugging_face(path: str, spec: dict[str, Any]) -> Subject:
    fields = read_config(Path(path))
    transformers = _package("transformers", "hf")
    check_config(fields, path)
    model_type = fields.get("model_type")
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    if model_type not in known:
        raise Refusal("worker.model-type-unknown", file=path, model_type=str(model_type))
    fields.pop("quantization_config", None)
    eager = spec["kernel"] == "eager"
    try:
        config = known[model_type].from_dict(fields)
        auto = _auto_class(transformers, config)
        implementation = "eager" if eager else "sdpa"
        try:
            model = auto.from_config(
                config, dtype=torch.float32, attn_implementation=implementation
            )
        except ValueError:
            if eager:
                raise
            model = auto.from_config(config, dtype=torch.float32, attn_implementation="eager")
    except Refusal:
        raise
    except Exception as error:
        raise Refusal("worker.config-invalid", file=path, reason=first_line(error)) from error
    _be_real(transformers)
    return (
        _language(model, config) if hasattr(config, "vocab_size") else _vision(model, config, spec)
    )


def read_config(path: Path) -> dict[str, Any]:
    """Return the fields of a ``config.json``, given as the file or its folder.

    Raises:
        Refusal: it is missing, too large, not JSON, not an object, or names code.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        if file.stat().st_size > CONFIG_BYTES:
            raise Refusal("worker.config-too-large", file=str(file))
        fields = json.loads(file.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise Refusal("worker.config-missing", file=str(file)) from error
    except (ValueError, RecursionError) as error:
        raise Refusal("worker.config-unreadable", file=str(file)) from error
    if not isinstance(fields, dict):
        raise Refusal("worker.config-unreadable", file=str(file))
    if _mentions(fields, "auto_map"):
        raise Refusal("worker.remote-code", file=str(file))
    return fields


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _mentions(value: Any, key: str) -> bool:
    if isinstance(value, dict):
        return key in value or any(_mentions(item, key) for item in value.values())
    return isinstance(value, list) and any(_mentions(item, key) for item in value)


_POSITIVE = {
    "hidden_size", "d_model", "n_embd", "num_hidden_layers", "num_layers", "n_layer",
    "num_attention_heads", "num_heads", "n_head", "num_key_value_heads", "vocab_size",
    "intermediate_size", "d_ff", "d_kv", "head_dim", "image_size", "patch_size",
    "num_channels", "max_position_embeddings", "n_positions",
}  # fmt: skip


def check_config(fields: dict[str, Any], file: str) -> None:
    """Check what libraries do not: sizes are sane, and heads divide.

    Raises:
        Refusal: names the field and what it must be.
    """
    for key, value in fields.items():
        if key in _POSITIVE and value is not None and not isinstance(value, (list, dict)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise Refusal("worker.config-field", file=file, field=key, value=str(value)[:40])
            limit = LARGEST["layers"] if key.endswith(("layers", "layer")) else LARGEST["number"]
            if value > limit:
                raise Refusal("worker.config-absurd", file=file, field=key, value=value)
        elif isinstance(value, dict):
            check_config(value, file)
    width = fields.get("hidden_size") or fields.get("n_embd")
    heads = fields.get("num_attention_heads") or fields.get("n_head")
    shared = fields.get("num_key_value_heads")
    free = "head_dim" in fields or "qk_nope_head_dim" in fields
    if _ints(width, heads) and not free and width % heads:
        raise Refusal("worker.heads-divide", file=file, width=width, heads=heads)
    if _ints(heads, shared) and heads % shared:
        raise Refusal("worker.kv-heads-divide", file=file, heads=heads, kv_heads=shared)


def _ints(*values: Any) -> bool:
    return all(isinstance(value, int) for value in values)


def _auto_class(transformers: Any, config: Any) -> Any:
    names = {
        "ForCausalLM": "AutoModelForCausalLM",
        "LMHeadModel": "AutoModelForCausalLM",
        "ForMaskedLM": "AutoModelForMaskedLM",
        "ForPreTraining": "AutoModelForMaskedLM",
        "ForSequenceClassification": "AutoModelForSequenceClassification",
        "ForTokenClassification": "AutoModelForTokenClassification",
        "ForImageClassification": "AutoModelForImageClassification",
        "WithLMHeadModel": "AutoModelForSeq2SeqLM",
        "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
    }
    architecture = next(iter(getattr(config, "architectures", None) or ()), "")
    for ending in sorted(names, key=len, reverse=True):
        auto = getattr(transformers, names[ending])
        if architecture.endswith(ending) and type(config) in auto._model_mapping:
            return auto
    for name in ("Seq2SeqLM", "MaskedLM", "CausalLM", "ImageClassification"):
        auto = getattr(transformers, f"AutoModelFor{name}")
        if type(config) in auto._model_mapping:
            return auto
    raise Refusal(
        "worker.architecture-unknown", architecture=architecture or str(config.model_type)
    )


def _be_real(transformers: Any) -> None:
    """Masks must be built as for real inputs: the library treats fakes as a trace of its own."""
    from transformers import masking_utils
    from transformers.integrations import sdpa_attention

    for module in (masking_utils, sdpa_attention):
        for name in ("is_tracing", "is_fake_tensor"):
            if hasattr(module, name):
                setattr(module, name, lambda *args, **kwargs: False)


def _language(model: nn.Module, config: Any) -> Subject:
    name = type(model).__name__
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    generates = name.endswith(("ForCausalLM", "LMHeadModel"))
    samples = name.endswith("ForSequenceClassification")
    both = bool(getattr(config, "is_encoder_decoder", False)) and not samples

    def batch(size: int, length: int) -> step.Batch:
        tokens = torch.zeros((size, length), dtype=torch.int64)
        inputs = {"input_ids": tokens}
        if both:
            inputs["decoder_input_ids"] = torch.zeros((size, length), dtype=torch.int64)
        labels = torch.zeros((size,) if samples else (size, length), dtype=torch.int64)
        return step.Batch(inputs, labels)

    if hasattr(config, "use_cache"):
        config.use_cache = False
    return Subject(
        model,
        batch,
        step.next_token_loss if generates else step.token_loss,
        facts=_facts(text, "transformers"),
        head=model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None,
        config=config,
        decodes=generates,
        longest=_longest(model),
    )


def _vision(model: nn.Module, config: Any, spec: dict[str, Any]) -> Subject:
    size = spec["image_size"] or getattr(config, "image_size", 0) or 224
    pixels = int(size if isinstance(size, int) else size[0])
    channels = getattr(config, "num_channels", 3)
    make = _images("pixel_values", channels, pixels)
    facts = _facts(config, "transformers") | {"image_size": pixels}
    return Subject(model, make, step.token_loss, facts, head=getattr(model, "classifier", None))


def _longest(model: nn.Module) -> int:
    for name, module in model.named_modules():
        last = name.rpartition(".")[2]
        if isinstance(module, nn.Embedding) and (
            last in ("wpe", "embed_positions") or last == "position_embeddings"
        ):
            # RoBERTa counts positions from its padding index on.
            return module.num_embeddings - (
                0 if module.padding_idx is None else module.padding_idx + 1
            )
    return 0


def _facts(config: Any, stack: str) -> dict[str, Any]:
    found: dict[str, Any] = {"stack": stack, "family": getattr(config, "model_type", "")}
    names = {
        "layers": ("num_hidden_layers", "num_layers", "n_layer"),
        "vocabulary": ("vocab_size",),
        "hidden": ("hidden_size", "d_model", "n_embd"),
        "heads": ("num_attention_heads", "num_heads", "n_head"),
        "kv_heads": ("num_key_value_heads",),
        "head_dim": ("head_dim", "d_kv"),
    }
    for fact, keys in names.items():
        values = [getattr(config, key, None) for key in keys]
        value = next((value for value in values if isinstance(value, int)), None)
        if value is not None:
            found[fact] = value
    if "heads" in found:
        found.setdefault("kv_heads", found["heads"])
        if "hidden" in found:
            found.setdefault("head_dim", found["hidden"] // found["heads"])
    return found


# timm, diffusers, our own


def _timm(name: str, spec: dict[str, Any]) -> Subject:
    timm = _package("timm", "timm")
    if ":" in name or not timm.is_model(name):
        raise Refusal("worker.timm-unknown", name=name)
    timm.layers.set_fused_attn(spec["kernel"] != "eager")
    size = spec["image_size"]
    usual = timm.get_pretrained_cfg(name)
    default = usual.input_size[-1] if usual is not None else 224
    model = None
    if size and size != default:
        try:
            model = timm.create_model(name, pretrained=False, img_size=size)
        except TypeError:
            model = None  # a convolutional network takes any size
    try:
        model = model or timm.create_model(name, pretrained=False)
    except Exception as error:
        raise Refusal("worker.build-failed", name=name, reason=first_line(error)) from error
    pixels = size or default
    head = model.get_classifier() if hasattr(model, "get_classifier") else None
    facts = {"stack": "timm", "family": name, "image_size": pixels}
    head = head if isinstance(head, nn.Module) else None
    return Subject(model, _images("x", 3, pixels), step.token_loss, facts, head)


def _images(name: str, channels: int, pixels: int) -> Make:
    def batch(size: int, length: int) -> step.Batch:
        images = torch.zeros((size, channels, pixels, pixels))
        return step.Batch({name: images}, torch.zeros((size,), dtype=torch.int64))

    return batch


TEXT_TOKENS = 77
"""Length of CLIP's text context, which the diffusion models here are given."""


def _diffusers(path: str, spec: dict[str, Any]) -> Subject:
    fields = read_config(Path(path))
    diffusers = _package("diffusers", "diffusers")
    name = str(fields.get("_class_name", "UNet2DConditionModel"))
    if name != "UNet2DConditionModel":
        raise Refusal("worker.architecture-unknown", architecture=name)
    try:
        model = diffusers.UNet2DConditionModel.from_config(fields)
    except Exception as error:
        raise Refusal("worker.config-invalid", file=path, reason=first_line(error)) from error
    if spec["kernel"] == "eager":
        from diffusers.models.attention_processor import AttnProcessor

        model.set_attn_processor(AttnProcessor())
    config = model.config
    side = (spec["image_size"] or config.sample_size * 8) // 8
    pooled = int(config.projection_class_embeddings_input_dim or 0)
    times = int(config.addition_time_embed_dim or 0)

    def batch(size: int, length: int) -> step.Batch:
        latents = (size, config.in_channels, side, side)
        inputs: dict[str, Any] = {
            "sample": torch.zeros(latents),
            "timestep": torch.zeros((size,), dtype=torch.int64),
            "encoder_hidden_states": torch.zeros((size, TEXT_TOKENS, config.cross_attention_dim)),
        }
        if config.addition_embed_type == "text_time":
            inputs["added_cond_kwargs"] = {
                "text_embeds": torch.zeros((size, pooled - 6 * times)),
                "time_ids": torch.zeros((size, 6)),
            }
        return step.Batch(inputs, torch.zeros(latents))

    facts = {"stack": "diffusers", "family": name, "image_size": side * 8}
    return Subject(model, batch, step.noise_loss, facts)


def _builtin(name: str, spec: dict[str, Any]) -> Subject:
    if name == "unet":
        pixels = spec["image_size"] or 256

        def pictures(size: int, length: int) -> step.Batch:
            images = torch.zeros((size, 3, pixels, pixels))
            masks = torch.zeros((size, pixels, pixels), dtype=torch.int64)
            return step.Batch({"x": images}, masks)

        facts = {"stack": "plain", "family": "unet", "image_size": pixels}
        return Subject(nets.UNet(), pictures, step.token_loss, facts)
    if name == "nature-cnn-ppo":

        def rollout(size: int, length: int) -> step.Batch:
            names = ("log_probabilities", "advantages", "returns")
            labels = {"actions": torch.zeros((size,), dtype=torch.int64)}
            labels |= {key: torch.zeros((size,)) for key in names}
            frames = torch.zeros((size, 4, 84, 84), dtype=torch.uint8)
            return step.Batch({"x": frames}, labels)

        facts = {"stack": "plain", "family": "nature-cnn", "image_size": 84}
        return Subject(nets.NatureActorCritic(), rollout, nets.ppo_loss, facts)
    raise Refusal("worker.builtin-unknown", name=name)


def _package(name: str, source: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Refusal("worker.package-missing", package=name, source=source) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, shortened."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{type(error).__name__}: {lines[0]}"[:300]
