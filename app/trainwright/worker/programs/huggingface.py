"""Models of Hugging Face transformers from their ``config.json``; no code that comes with it."""

import contextlib
import copy
import inspect
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import architectures
import asked
import blame
import boxes
import experts
import imagetext
import imaging
import known
import pairs
import speech
import step
import torch
from config import check_config, read_config, without_code
from refusal import Refusal
from subject import Subject, first_line, package
from torch import nn

CHOICES = 4
"""Assumed: of SWAG, on which the library's own script trains classes of multiple choice."""
_OF_A_SAMPLE = ("ForSequenceClassification", "ForMultipleChoice", "ForNextSentencePrediction")
"""Ends of the names of classes whose samples have one label."""
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
    kinds = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    check_config(fields, path, kinds)
    model_type = fields.get("model_type")
    if not isinstance(model_type, str) or model_type not in kinds:
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
        found = blame.of_key(error, fields, path, kinds[model_type], attempt)
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
        kind = transformers.models.auto.configuration_auto.CONFIG_MAPPING[fields["model_type"]]

        def attempt(some: dict[str, Any]) -> None:
            with torch.device("meta"):
                _run_once(_subject(transformers, some, spec | {"image_size": 0, "images": 0}, path))

        try:
            attempt(copy.deepcopy(fields))
        except Exception as same:
            found = blame.of_key(same, fields, path, kind, attempt)
            raise (
                found or Refusal("worker.class-fails", file=path, reason=first_line(same))
            ) from error
        if spec["precision"] not in ("fp32", "tf32") and _about_types(error):
            values = {"precision": spec["precision"], "reason": first_line(error)}
            raise Refusal("worker.precision-fails", file=path, **values) from error
        id = "worker.class-fails" if _of_library(error, transformers) else "worker.class-untraced"
        raise Refusal(id, file=path, reason=first_line(error)) from error


def _about_types(error: Exception) -> bool:
    """Return whether an operator of torch complains about the type of numbers that it got."""
    return isinstance(error, RuntimeError) and any(
        word in str(error) for word in ("expected scalar type", "Unsupported dtype", "same dtype")
    )


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
        moved = step.to_device(step.Batch(inputs, {}), "meta", step.StepSettings("fp32")).inputs
        subject.model(**moved)
    except RuntimeError as error:
        if not any(word in str(error) for word in ("meta tensors", "register_meta")):
            # else it ran until a value was asked for
            raise


def _subject(transformers: Any, fields: dict[str, Any], spec: dict[str, Any], path: str) -> Subject:
    kinds = transformers.models.auto.configuration_auto.CONFIG_MAPPING
    config = kinds[fields["model_type"]].from_dict(fields)
    experts.check(_text(config), path)
    rewards = bool(spec.get("method", {}).get("rewards"))
    find = architectures.scoring if rewards else architectures.find
    kind = find(transformers, config)
    eager = spec["kernel"] == "eager"
    implementation = "eager" if eager else "sdpa"
    try:
        model = kind._from_config(config, dtype=torch.float32, attn_implementation=implementation)
    except ValueError:
        if eager:
            raise
        model = kind._from_config(config, dtype=torch.float32, attn_implementation="eager")
    _be_real(transformers)
    mended = _mend(model)
    subject = _fed(model, config, spec)
    if spec.get("images"):
        subject = imagetext.added(subject, spec, path)
    subject.assumed |= {"profile.assumed.mended": 1} if mended else {}
    named = next(iter(config.architectures or ()), kind.__name__)
    if rewards:
        subject.head = architectures.score_of(model)
    elif named != kind.__name__:
        subject.facts |= {"named_class": named, "traced_class": kind.__name__}
    return subject


def _fed(model: Any, config: Any, spec: dict[str, Any]) -> Subject:
    """Return a model with the inputs and the loss of its class."""
    main = getattr(model, "main_input_name", "input_ids")
    ending = architectures.ending_of(type(model).__name__)
    second = getattr(model, "auxiliary_head", None) is not None
    if second or architectures.missing(type(model), ending):
        return asked.subject(model, spec, _facts(config, "transformers"))
    if main in architectures.SOUNDS:
        heard = speech.subject(model, config, _facts(config, "transformers"))
        return heard or asked.subject(model, spec, _facts(config, "transformers"))
    if main in architectures.PIXELS:
        sees = boxes if type(model).__name__.endswith("ForObjectDetection") else imaging
        return sees.subject(model, config, spec, _facts(config, "transformers"))
    if architectures.bare(model) and architectures.pairs(model):
        return pairs.subject(model, config, _facts(config, "transformers"))
    return _language(model, config)


def of_code(model: Any, spec: dict[str, Any], path: str) -> Subject:
    """Return what belongs to a model of the library that a user's own code built.

    Raises:
        Refusal: it takes tokens, and the plan says not how many.
    """
    _be_real(package("transformers", "python"))
    if getattr(model, "main_input_name", "") in architectures.PIXELS:
        return imaging.subject(model, model.config, spec, _facts(model.config, "transformers"))
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


def _mend(model: Any) -> bool:
    """Return whether a class was given what it asks its text part for in vain.

    So does Llama 4 of transformers 5.24, in every forward.
    """
    from transformers.modeling_outputs import MoeCausalLMOutputWithPast as Output

    if type(model).__name__ != "Llama4ForConditionalGeneration" or hasattr(Output, "image_outputs"):
        return False
    Output.image_outputs = None
    return True


def _text(config: Any) -> Any:
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def _language(model: nn.Module, config: Any) -> Subject:
    name = type(model).__name__
    text = _text(config)
    encodes = bool(getattr(config, "is_encoder_decoder", False)) and architectures.answers(model)
    generates = name.endswith(("ForCausalLM", "LMHeadModel")) or (
        name.endswith("ForConditionalGeneration") and not encodes
    )
    embeds = architectures.bare(model) and not encodes
    finds = name.endswith(("ForQuestionAnswering", "ForQuestionAnsweringSimple"))
    own = name.endswith(architectures.OWN)
    samples = embeds or finds or own or name.endswith(_OF_A_SAMPLE)
    both = encodes and not samples
    choices = (CHOICES,) if name.endswith("ForMultipleChoice") else ()
    own_labels = _own_labels(model) if own else {}
    spoken = "lang_ids" in inspect.signature(model.forward).parameters
    ends = int(text.eos_token_id) if encodes and name.endswith(_OF_A_SAMPLE) else None

    def batch(size: int, length: int) -> step.Batch:
        tokens = torch.zeros((size, *choices, length), dtype=torch.int64)
        if ends is not None:  # each sample is judged at its last such token
            tokens = known.whole([[int(ends == 0)] * (length - 1) + [ends]] * size)
        inputs = {"input_ids": tokens}
        if both:
            inputs["decoder_input_ids"] = torch.zeros((size, length), dtype=torch.int64)
        if spoken:  # its layers have an adapter for each language, here all the first
            inputs["lang_ids"] = known.whole([0] * size)
        for label, each_token in own_labels.items():
            of = (size, length) if each_token else (size,)
            inputs[label] = torch.zeros(of, dtype=torch.int64)
        shape = (size, 2) if finds else (size,) if samples else (size, length)
        return step.Batch(inputs, torch.zeros(shape, dtype=torch.int64))

    if samples and getattr(text, "pad_token_id", 0) is None:
        text.pad_token_id = 0  # a classifier looks for the last token that is not one
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return Subject(
        model,
        batch,
        step.own_loss if own else step.span_loss if finds else _loss(generates, embeds),
        facts=_facts(text, "transformers") | experts.facts(model, text),
        head=model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None,
        config=config,
        decodes=generates,
        counts=spoken or ends is not None,
        longest=_longest(model),
        assumed=_assumed(text is not config and generates, embeds, bool(choices)),
    )


def _loss(generates: bool, embeds: bool) -> step.Loss:
    if generates:
        return step.next_token_loss
    return step.embedding_loss if embeds else step.token_loss


def _own_labels(model: nn.Module) -> dict[str, bool]:
    """Return the labels of a class that computes its own loss, and whether each token has one."""
    known = {"labels": True, "next_sentence_label": False, "sentence_order_label": False}
    taken = inspect.signature(model.forward).parameters
    return {label: each_token for label, each_token in known.items() if label in taken}


def _assumed(text_alone: bool, embeds: bool, chooses: bool) -> dict[str, int]:
    """Return what is said of a model of text and images, of one that embeds or chooses."""
    said = {
        "profile.assumed.text-alone": int(text_alone),
        "profile.assumed.embeds": int(embeds),
        "profile.assumed.choices": CHOICES * chooses,
    }
    return {id: number for id, number in said.items() if number}


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
