"""Classes of transformers that no other module here feeds: what their forward takes says how.

A parameter of forward whose name says what it is has a few forms, which the configuration sizes.
The first choice of forms with which the class runs without data is taken, and its own loss where
labels of some form give one. A sequence is tokens, or what is heard: steps or frames.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice, product
from typing import Any

import step
import torch
from autocast import tensors
from detection import BOXES
from refusal import Refusal
from speech import STEPS_A_CHARACTER, ctc_loss
from subject import Subject
from torch import nn

Form = Callable[[int, int], Any]
"""(batch, sequence) -> an argument of forward, on the host."""
Forms = dict[str, Form]

SIDE = 224
"""Pixels of an image whose configuration gives no size: ImageNet's usual crop."""
HOP = 320
"""Samples a step of what hears waveforms: 20 ms at 16 kHz, as wav2vec 2.0's encoder has; assumed
where no stride of convolutions says otherwise."""
BINS = 80
"""Of a spectrogram whose configuration gives none: those of Whisper and Speech2Text."""
FRAMES = 2
"""Images of a sample that is a pair or a video whose configuration gives no number; assumed."""
WORDS = 16
"""Tokens of the text of a sample that is planned as an image; assumed: a short prompt."""
_CTC = "ForCTC"
_TRIALS = 48
"""Choices of forms that are tried; assumed."""
_SHORT = (5, 40)
"""Batch and sequence of a trial: odd, so that no wrong form has the size of a right one."""


def subject(model: nn.Module, spec: dict[str, Any], facts: dict[str, Any]) -> Subject:
    """Return a model with the inputs with which it runs, and its own loss where it has one.

    Raises:
        Refusal: it runs with none that are known here; names what it wants.
    """
    config: Any = model.config
    taken = _taken(model)
    if "return_loss" in taken:
        model.forward = partial(model.forward, return_loss=True)
    inputs, own = _found(model, config, spec)
    characters = 0 if own else _characters(model, inputs)

    def batch(size: int, length: int) -> step.Batch:
        given = {name: form(size, length) for name, form in inputs.items()}
        written = (max(1, length * characters // _SHORT[1]),) if characters else ()
        return step.Batch(given, torch.ones((size, *written), dtype=torch.int64))

    if hasattr(config, "use_cache"):
        config.use_cache = False
    return Subject(
        model,
        batch,
        step.own_loss if own else ctc_loss if characters else squares,
        facts | ({"image_size": _side(config, spec)} if _sees(inputs) else {}),
        config=config,
        fixed=tuple(p for p in model.parameters() if not p.requires_grad),
        assumed=_assumed(model, inputs, own or bool(characters)),
    )


def _assumed(model: Any, inputs: Forms, own: bool) -> dict[str, int]:
    """Return notes: a loss that stands for none, and images of a text that are not fed."""
    seen = [name for name in _taken(model) if "pixel_values" in name]
    alone = "input_ids" in inputs and bool(seen) and not _sees(inputs)
    said = {"profile.assumed.no-loss": not own, "profile.assumed.text-alone": alone}
    return {id: 1 for id, true in said.items() if true}


def _characters(model: Any, inputs: Forms) -> int:
    """Return the characters of what a short trial hears, for connectionist classification; or 0."""
    if not type(model).__name__.endswith(_CTC):
        return 0
    with torch.device("cpu"):  # where the library draws which layers it drops
        scores = getattr(_tried(model, inputs), "logits", None)
    return 0 if scores is None else max(1, scores.shape[1] // STEPS_A_CHARACTER)


def squares(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Mean square of a class's main output, in place of the loss that it does not compute."""
    found = next(each for each in tensors(_listed(output)) if each.requires_grad)
    return found.float().square().mean() * (len(labels) / count)


def _listed(output: Any) -> Any:
    return list(output.values()) if isinstance(output, dict) else output


# The search


def _found(model: Any, config: Any, spec: dict[str, Any]) -> tuple[Forms, bool]:
    """Return what a class is fed, and whether it computes a loss of that.

    Raises:
        Refusal: none of what is known here lets it run, or compute the loss that it has.
    """
    forms = dict(_forms(config, spec))
    spells = type(model).__name__.endswith(_CTC)  # torch computes its loss of known lengths only
    marks = [] if spells else list(_choices(_labels(model, config, spec)))
    choices = [
        inputs
        for names in dict.fromkeys(map(tuple, _tiers(model, forms)))
        for inputs in _choices({name: forms[name] for name in names})
    ]
    for inputs in choices:
        if not _ran(output := _tried(model, inputs)):
            continue
        if spells:
            return inputs, False
        if getattr(output, "loss", None) is not None:
            return inputs, True
        judged = [(each, _tried(model, inputs | each)) for each in marks]
        if own := [each for each, result in judged if _ran(result, "loss")]:
            return inputs | own[0], True
        lacks = any(_ran(result) or _untrained(result) for _, result in judged)
        if lacks or not (hasattr(output, "loss") or _labelled(model)):
            return inputs, False
        raise _wants(model, inputs)
    for inputs, each in product(choices, marks):  # some do not run without labels
        if _ran(_tried(model, inputs | each), "loss"):
            return inputs | each, True
    raise _wants(model, forms)


def _wants(model: Any, known: Forms | dict[str, list[Form]]) -> Refusal:
    """Return why a class is not traced: what it demands, or of what it would compute its loss."""
    wanted = [name for name in _required(model) if name not in known]
    wanted = wanted or [name for name in _targets(model) if name not in known] or _main(model)
    return Refusal("worker.class-wants", name=type(model).__name__, inputs=", ".join(wanted))


def _targets(model: Any) -> list[str]:
    """Return what forward takes that a loss may be computed of."""
    taken = _taken(model)
    return [name for name in taken if any(word in name for word in _TARGETS)]


def _labelled(model: Any) -> bool:
    """Return whether forward takes labels; those of a prompt are inputs."""
    taken = _taken(model)
    return any(name.endswith("labels") and not name.startswith("input_") for name in taken)


_TARGETS = ("label", "target", "indices", "future")
"""Words in the names of what a loss is computed of."""


def _tiers(model: Any, forms: dict[str, list[Form]]) -> Iterator[list[str]]:
    """Yield names of inputs to try: those that forward demands, then all that are known."""
    taken = _taken(model)
    needed = [name for name in dict.fromkeys((*_main(model), *_required(model))) if name in taken]
    if all(name in forms for name in needed):
        answers = [name for name in taken if name.startswith("decoder_input_") and name in forms]
        yield list(dict.fromkeys((*needed, *answers)))
        yield needed
    known = [name for name in taken if name in forms]
    if all(name in forms for name in _required(model)):
        yield known


def _main(model: Any) -> list[str]:
    main = getattr(model, "main_input_name", "input_ids")
    return [main] if isinstance(main, str) else list(main)


def _taken(model: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(model.forward).parameters


def _required(model: Any) -> list[str]:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = _taken(model).values()
    return [each.name for each in taken if each.default is each.empty and each.kind not in variable]


def _choices(forms: dict[str, list[Form]]) -> Iterator[Forms]:
    """Yield choices of one form for each name, the first forms first."""
    if forms:
        for chosen in islice(product(*forms.values()), _TRIALS):
            yield dict(zip(forms, chosen, strict=True))


def _tried(model: Any, forms: Forms) -> Any:
    """Return what a class makes of inputs without data, or what it raises."""
    try:
        with torch.no_grad():
            inputs = {name: form(*_SHORT) for name, form in forms.items()}
            moved = step.to_device(step.Batch(inputs, {}), "meta", step.StepSettings("fp32"))
            return model(**moved.inputs)
    except Exception as error:  # whatever a class raises for what it does not take
        return error


def _ran(result: Any, part: str = "") -> bool:
    """Return whether a class ran, and returned a part; until a value was asked for is enough."""
    if isinstance(result, Exception):
        return "meta" in str(result).lower()
    return not part or getattr(result, part, None) is not None


def _untrained(result: Any) -> bool:
    """Return whether a class says that it is not trained with labels."""
    return isinstance(result, (NotImplementedError, ValueError)) and bool(
        re.search(r"\btrain", str(result).lower())
    )


# The forms


def _sees(inputs: Forms) -> bool:
    return any(name.startswith("pixel_values") for name in inputs)


def _side(config: Any, spec: dict[str, Any]) -> int:
    size = spec["image_size"] or _number(config, "image_size") or SIDE
    return int(size)


def _number(config: Any, *names: str) -> int:
    """Return the first whole number under one of the names, in the configuration or its parts."""
    for name in names:
        value = getattr(config, name, None)
        value = value[0] if isinstance(value, (list, tuple)) and value else value
        if isinstance(value, int) and not isinstance(value, bool) and value:
            return value
    parts = [part for part in vars(config).values() if hasattr(part, "to_diff_dict")]
    return next((found for part in parts if (found := _number(part, *names))), 0)


def _of(*shape: int, dtype: torch.dtype = torch.float32) -> Form:
    """Return a form of one size a sample."""
    return lambda size, length: torch.zeros((size, *shape), dtype=dtype)


def _tokens(size: int, length: int) -> torch.Tensor:
    return torch.zeros((size, length or WORDS), dtype=torch.int64)


def _written(size: int, length: int) -> torch.Tensor:
    """Tokens of what is written about so many steps that are heard."""
    return _tokens(size, max(1, length // STEPS_A_CHARACTER))


def _forms(config: Any, spec: dict[str, Any]) -> Iterator[tuple[str, list[Form]]]:
    """Yield each input that is known here, and its forms."""
    side = _side(config, spec)
    channels = _number(config, "num_channels", "in_channels", "num_input_channels") or 3
    frames = _number(config, "num_frames", "frames_per_clip") or FRAMES
    picture, pictures = (channels, side, side), (frames, channels, side, side)
    yield "input_ids", [_tokens]
    for name in ("qformer_input_ids", "decoder_input_ids"):
        yield name, [_tokens, _written]
    yield "task_inputs", [_of(_number(config, "task_seq_len") or 1, dtype=torch.int64)]
    yield "pixel_values", [_of(*picture), _of(*pictures), _of(FRAMES, *picture)]
    yield "pixel_values_videos", [_of(*pictures)]
    yield "inputs", [_tokens, _of(*picture)]
    yield from _heard(config)
    context, series = _number(config, "context_length") or 1, _number(config, "num_input_channels")
    yield "past_values", [_of(context, series or 1), _of(context)]


def _heard(config: Any) -> Iterator[tuple[str, list[Form]]]:
    """Yield what is heard: waveforms, and spectra with their bins last or first."""
    bins = _number(config, "num_mel_bins", "input_feat_per_channel", "feature_projection_input_dim")
    bins = bins or BINS
    waves: list[Form] = [
        lambda size, length: torch.zeros((size, HOP * length)),
        lambda size, length: torch.zeros((size, 1, HOP * length)),
    ]
    last: Form = lambda size, length: torch.zeros((size, length, bins))  # noqa: E731
    first: Form = lambda size, length: torch.zeros((size, bins, length))  # noqa: E731
    yield "input_values", [*waves, last]
    yield "input_features", [last, first]


def _labels(model: Any, config: Any, spec: dict[str, Any]) -> dict[str, list[Form]]:
    """Return the labels that forward takes, and their forms."""
    taken = _taken(model)
    side, classes = _side(config, spec), torch.int64
    series = _number(config, "num_input_channels") or 1
    later = _number(config, "prediction_length", "horizon_length") or 1
    one, grid = _of(dtype=classes), _of(side, side, dtype=classes)
    texts: list[Form] = [_tokens, _written, one]
    targets = [_of(_number(config, "num_targets") or 1), one, _of(later, series)]
    if "Classification" in type(model).__name__:
        targets, texts = [one], [one, _tokens]
    known: dict[str, list[Form]] = {
        "labels": [*texts, grid, _of(side, side), lambda size, length: [_boxes(side)] * size],
        "start_positions": [one, _of(1, dtype=classes)],
        "end_positions": [one, _of(1, dtype=classes)],
        "target_values": targets,
        "future_values": [_of(later, series), _of(later)],
    }
    return {name: forms for name, forms in known.items() if name in taken}


def _boxes(side: int) -> dict[str, torch.Tensor]:
    """Return the labelled objects of an image, with their masks."""
    return {
        "class_labels": torch.zeros((BOXES,), dtype=torch.int64),
        "boxes": torch.full((BOXES, 4), 0.5),
        "masks": torch.zeros((BOXES, side, side)),
    }
