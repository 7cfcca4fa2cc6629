"""Models of Hugging Face transformers from their ``config.json``; no code that comes with it."""

import contextlib
import copy
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import architectures
import blame
import experts
import speech
import step
import torch
from config import check_config, read_config, without_code
from refusal import Refusal
from subject import Subject, first_line, images, package
from torch import nn

_SHORT = 32
"""Tokens of a sample that is only to show whether a model runs; assumed."""


def build(path: str, spec: dict[str, Any]) -> Subject:
    """Return the model of a ``config.json``.

    Raises:
        Refusal: it is broken, names code, or is of a kind that is not known here.
    """
    given = read_config(Path(path))
    fields = without_code(given)
    transformers = package("transformers", "hf")
    check_config(fields, path)
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    model_type = fields.get("model_type")
    if not isinstance(model_type, str) or model_type not in known:
        if fields != given:
            raise Refusal("worker.remote-code", file=path)
        name = model_type if isinstance(model_type, str) else blame.shown(model_type)
        raise Refusal("worker.model-type-unknown", file=path, model_type=name)
    fields.pop("quantization_config", None)

    def attempt(some: dict[str, Any]) -> Subject:
        return _subject(transformers, some, spec, path)

    try:
        return attempt(copy.deepcopy(fields))
    except (Refusal, MemoryError):
        raise
    except Exception as error:
        found = blame.of_key(error, fields, path, known[model_type], attempt)
        raise found or blame.of_values(error, path) from error


@contextlib.contextmanager
def blaming(spec: dict[str, Any]) -> Iterator[None]:
    """Turn what goes wrong while the model of a ``config.json`` runs into a line about a key.

    Raises:
        Refusal: in place of an exception for which the configuration is to blame: inputs of its
            own kind raise one too, and without one of its keys they do not.
    """
    try:
        yield
    except (Refusal, MemoryError):
        raise
    except Exception as error:
        if (path := spec["model"].get("hf")) is None:
            raise
        fields = without_code(read_config(Path(path)))
        fields.pop("quantization_config", None)
        transformers = package("transformers", "hf")
        known = transformers.models.auto.configuration_auto.CONFIG_MAPPING[fields["model_type"]]

        def attempt(some: dict[str, Any]) -> None:
            with torch.device("meta"):
                _run_once(_subject(transformers, some, spec | {"image_size": 0}, path))

        try:
            attempt(copy.deepcopy(fields))
        except Exception as same:
            found = blame.of_key(same, fields, path, known, attempt)
            raise (
                found or Refusal("worker.class-fails", file=path, reason=first_line(same))
            ) from error
        id = "worker.class-fails" if _of_library(error, transformers) else "worker.class-untraced"
        raise Refusal(id, file=path, reason=first_line(error)) from error


def _of_library(error: BaseException, transformers: Any) -> bool:
    """Return whether a statement of the library's own raised an error, and no operator in it."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and Path(frames[-1].filename).is_relative_to(
        Path(transformers.__file__).parent
    )


def _run_once(subject: Subject) -> None:
    """Run two short samples through a model without memory."""
    inputs = subject.batch(2, min(_SHORT, subject.longest or _SHORT)).inputs
    try:
        subject.model(**{name: value.to("meta") for name, value in inputs.items()})
    except RuntimeError as error:
        if "meta tensors" not in str(error):  # it ran until a value was asked for
            raise


def _subject(transformers: Any, fields: dict[str, Any], spec: dict[str, Any], path: str) -> Subject:
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    config = known[fields["model_type"]].from_dict(fields)
    experts.check(_text(config), path)
    kind = architectures.find(transformers, config)
    eager = spec["kernel"] == "eager"
    implementation = "eager" if eager else "sdpa"
    try:
        model = kind._from_config(config, dtype=torch.float32, attn_implementation=implementation)
    except ValueError:
        if eager:
            raise
        model = kind._from_config(config, dtype=torch.float32, attn_implementation="eager")
    _be_real(transformers)
    subject = _fed(model, config, spec)
    named = next(iter(config.architectures or ()), kind.__name__)
    if named != kind.__name__:
        subject.facts |= {"named_class": named, "traced_class": kind.__name__}
    return subject


def _fed(model: Any, config: Any, spec: dict[str, Any]) -> Subject:
    """Return a model with the inputs and the loss of its class."""
    if config.model_type in speech.AUTO:
        return speech.subject(model, config, _facts(config, "transformers"))
    images = type(model).__name__.endswith(architectures.OF_IMAGES) or (
        architectures.bare(model) and model.main_input_name == "pixel_values"
    )
    return _vision(model, config, spec) if images else _language(model, config)


def known(model: Any, spec: dict[str, Any], path: str) -> Subject:
    """Return what belongs to a model of the library that a user's own code built.

    Raises:
        Refusal: it takes tokens, and the plan says not how many.
    """
    _be_real(package("transformers", "python"))
    if getattr(model, "main_input_name", "") == "pixel_values":
        return _vision(model, model.config, spec)
    if not spec["sequence"]:
        raise Refusal("worker.needs-length", file=path)
    return _language(model, model.config)


def _be_real(transformers: Any) -> None:
    """Masks must be built as for real inputs: the library treats fakes as a trace of its own."""
    from transformers import masking_utils
    from transformers.integrations import sdpa_attention

    for module in (masking_utils, sdpa_attention):
        for name in ("is_tracing", "is_fake_tensor"):
            if hasattr(module, name):
                setattr(module, name, lambda *args, **kwargs: False)


def _text(config: Any) -> Any:
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _language(model: nn.Module, config: Any) -> Subject:
    name = type(model).__name__
    text = _text(config)
    encodes = bool(getattr(config, "is_encoder_decoder", False))
    generates = name.endswith(("ForCausalLM", "LMHeadModel")) or (
        name.endswith("ForConditionalGeneration") and not encodes
    )
    embeds = architectures.bare(model)
    finds = name.endswith("ForQuestionAnswering")
    samples = embeds or finds or name.endswith("ForSequenceClassification")
    both = encodes and not samples

    def batch(size: int, length: int) -> step.Batch:
        tokens = torch.zeros((size, length), dtype=torch.int64)
        inputs = {"input_ids": tokens}
        if both:
            inputs["decoder_input_ids"] = torch.zeros((size, length), dtype=torch.int64)
        shape = (size, 2) if finds else (size,) if samples else (size, length)
        return step.Batch(inputs, torch.zeros(shape, dtype=torch.int64))

    if samples and getattr(text, "pad_token_id", 0) is None:
        text.pad_token_id = 0  # a classifier looks for the last token that is not one
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return Subject(
        model,
        batch,
        step.span_loss if finds else _loss(generates, embeds),
        facts=_facts(text, "transformers") | experts.facts(model, text),
        head=model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None,
        config=config,
        decodes=generates,
        longest=_longest(model),
        assumed=_assumed(text is not config and generates, embeds),
    )


def _loss(generates: bool, embeds: bool) -> step.Loss:
    if generates:
        return step.next_token_loss
    return step.embedding_loss if embeds else step.token_loss


def _assumed(text_alone: bool, embeds: bool) -> dict[str, int]:
    """Return what is said of a model of text and images, and of one that embeds."""
    said = {"profile.assumed.text-alone": text_alone, "profile.assumed.embeds": embeds}
    return {id: 1 for id, holds in said.items() if holds}


def _vision(model: nn.Module, config: Any, spec: dict[str, Any]) -> Subject:
    size = spec["image_size"] or getattr(config, "image_size", 0) or 224
    pixels = int(size if isinstance(size, int) else size[0])
    channels = getattr(config, "num_channels", 3)
    make = images("pixel_values", channels, pixels)
    facts = _facts(config, "transformers") | {"image_size": pixels}
    head = getattr(model, "classifier", None)
    if getattr(config, "num_frames", 0):  # a video has a dimension more
        raise Refusal("worker.class-wants", name=type(model).__name__, inputs="frames")
    if architectures.bare(model):
        assumed = {"profile.assumed.embeds-images": 1}
        return Subject(model, make, step.embedding_loss, facts, assumed=assumed)
    if not type(model).__name__.endswith("ForSemanticSegmentation"):
        return Subject(model, make, step.token_loss, facts, head=head)
    if getattr(model, "auxiliary_head", None) is not None:
        raise Refusal("worker.class-untrained", name=f"{type(model).__name__} (auxiliary_head)")

    def marked(size: int, length: int) -> step.Batch:
        labels = torch.zeros((size, pixels, pixels), dtype=torch.int64)
        return step.Batch(make(size, length).inputs, labels)

    return Subject(model, marked, step.segmentation_loss, facts)


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
    of_layers = getattr(getattr(config, "_heterogeneity_spec", None), "per_layer_attributes", ())
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
        # Where layers differ, as Gemma 4's heads do, the library has no value of the whole.
        keys = tuple(key for key in keys if key not in of_layers)
        values = [getattr(config, key, None) for key in keys]
        value = next((value for value in values if isinstance(value, int)), None)
        if value is not None:
            found[fact] = value
    if "heads" in found:
        found.setdefault("kv_heads", found["heads"])
        if "hidden" in found and "head_dim" not in of_layers:
            found.setdefault("head_dim", found["hidden"] // found["heads"])
    return found
