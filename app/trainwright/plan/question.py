"""The question that a plan puts to the tracer: which structure, of which model, at what inputs."""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from trainwright import ranges, reading
from trainwright.catalog import GpuRecord
from trainwright.estimate import kv
from trainwright.estimate.kv import CacheShape
from trainwright.estimate.optimizers import traced_as
from trainwright.messages import Message, UserError
from trainwright.plan.granted import taken_for_granted
from trainwright.plan.images import sees_images
from trainwright.plan.method import method
from trainwright.plan.mixture import speaks_of_experts
from trainwright.plan.schema import Plan
from trainwright.profile import presets, store, windows
from trainwright.profile.presets import Preset
from trainwright.profile.spec import (
    LONG,
    OPTIMIZERS,
    SHORTEST,
    Kernel,
    TraceSpec,
)
from trainwright.workload import FullSettings, Inputs, Lora, ModelSource, PythonSource
from trainwright.workload.sourcefiles import CONFIG_BYTES, program_hash, python_sources
from trainwright.workload.weightfiles import config_of

USUAL_LENGTH = 2048
USUAL_IMAGE = 224
USUAL_PROMPT = 512
USUAL_ANSWER = 128
"""What is assumed where neither plan nor preset says; the report tells."""

LATENT_PIXELS, CODE_PIXELS = 8, 16
"""Pixels a latent or a code stands for, in whose numbers a denoiser's config gives its size."""
USUAL_CANVAS = 1024
"""Pixels a side of denoisers that give none: FLUX's own default."""

COUNT_FROM_PADDING = ("camembert", "longformer", "roberta", "xlm-roberta")
"""Model types whose position table has a padding entry (``create_position_ids_from_input_ids``)."""

CODE_NOT_RUN = Message.of("plan.note.code-not-run")


@dataclass(frozen=True, slots=True)
class Model:
    """A model as the tracer takes it, and the inputs that it can take."""

    pairs: tuple[tuple[str, str], ...]
    digest: str
    has_sequence: bool
    has_image: bool
    usual: Inputs
    """Usual length or size; the defaults of a plan that leaves them out."""
    longest: int | None
    """Positions that the model has; None where they have no end, or nobody says."""
    assumed: bool
    """Whether the usual inputs are only ours, and not the preset's."""
    rotates: bool = False
    """Whether its positions have no end, whatever it was trained for."""
    mixed: bool = False
    """Whether it may be a mixture of experts."""
    reads_images: bool = False
    """Whether images may be a part of its text."""
    image_least: int = 0
    image_step: int = 1
    """Of presets: the fewest pixels a side, and what the pixels are multiples of."""
    config: str = ""
    """The text of its ``config.json``; empty where it has none."""

    @property
    def generates(self) -> bool:
        """Whether it may generate: all but encoders, as far as a configuration tells."""
        return not self.config or not self.has_sequence or kv.generates(json.loads(self.config))

    notes: tuple[Message, ...] = ()
    """What every estimate of the model takes for granted."""

    @property
    def has_frames(self) -> bool:
        """Whether it takes videos."""
        return self.usual.frames is not None


@dataclass(frozen=True, slots=True)
class Question:
    """What must be known of the model, and at which inputs it is evaluated."""

    spec: TraceSpec
    inputs: Inputs
    """With every key that the model and the task have; the others are None."""
    notes: tuple[Message, ...]
    config: str = ""
    """The text of the model's ``config.json``; empty where it has none."""
    longest: int | None = None
    """Positions that the model has."""


def question(plan: Plan, settings: FullSettings, record: GpuRecord) -> Question:
    """Return the structure to trace and the inputs to evaluate it at.

    Raises:
        UserError: the model is unknown, its file is missing or no model, or the task or
            the inputs do not suit it.
    """
    model = _model(plan.model, plan.workload.task, plan.workload.inputs)
    inputs, notes = _inputs(plan, model)
    if plan.workload.routing is not None and not model.mixed:
        raise UserError.of("plan.no-experts", key="workload.routing")
    workload = plan.workload
    adapters = (workload.lora if workload.task in ("lora", "qlora") else None) or Lora()
    asked = traced_as(settings.update)
    spec = TraceSpec(
        model=model.pairs,
        digest=model.digest,
        task="full" if workload.task == "pretrain" else workload.task,
        precision=_traced_precision(settings, workload.trains),
        kernel=kernel(settings, record),
        channels_last=settings.channels_last,
        checkpointing="selective" if settings.checkpointing == "selective" else "none",
        quantization=_traced_quantization(settings, workload.trains),
        lora=(adapters.rank, adapters.targets if model.mixed else adapters.named),
        image_size=inputs.image_size or 0,
        frames=inputs.frames or 0,
        images=inputs.images or 0,
        sequence=model.has_sequence,
        routing=workload.routing or "balanced",
        single=settings.micro_batch == 1,
        beyond=_window_below(model, settings, inputs, workload.trains),
        in_backward=asked if settings.optimizer_in_backward else "",
        optimizers=tuple(dict.fromkeys((*OPTIMIZERS, asked))),
        asked=asked,
        method=method(
            workload,
            settings,
            model.config,
            inputs.sequence_length or 0 if model.has_sequence else None,
        ),
    )
    return Question(spec, inputs, (*model.notes, *notes), model.config, model.longest)


@lru_cache(maxsize=128)
def cache_shape(config: str) -> CacheShape | None:
    """Return what the layers of a configuration keep; None for encoders and what is not known."""
    return kv.read(json.loads(config)) if config else None


def _window_below(model: Model, settings: FullSettings, inputs: Inputs, trains: bool) -> int:
    """Return the window that a sequence reaches; 0 where it reaches none, or it does not matter.

    transformers then hand attention a mask of all pairs (``masking_utils.py``), and torch
    takes another kernel; engines have kernels of their own for windows. A step without a
    fused kernel has masks anyway.
    """
    config = json.loads(model.config) if model.config and model.has_sequence else {}
    masked = trains and (settings.attention == "eager" or windows.always_masked(config))
    if masked or not (trains or settings.engine == "transformers"):
        return 0
    window = windows.first_partial(config)
    length = inputs.sequence_length or inputs.prompt_tokens or 0
    return window if SHORTEST <= window <= length else 0


def _traced_quantization(settings: FullSettings, trains: bool) -> str:
    """Return the weights of the structure; engines hold theirs by rule, run as 16 bits.

    fp4 has the sizes of nf4.
    """
    if not trains and settings.engine != "transformers":
        return "none"
    return "nf4" if settings.quantization == "fp4" else settings.quantization


def _traced_precision(settings: FullSettings, trains: bool) -> str:
    """Return the precision whose events are the same.

    tf32 only changes how matrix products run; serving has no master copy in any precision.
    """
    if settings.precision == "tf32":
        return "fp32"
    if settings.shards and settings.precision.endswith("-mixed"):
        # fully_shard's MixedPrecisionPolicy and DeepSpeed compute in 16 bits without autocast.
        return settings.precision.removesuffix("-mixed")
    return "bf16-mixed" if settings.precision == "bf16" and not trains else settings.precision


def kernel(settings: FullSettings, record: GpuRecord) -> Kernel:
    """Return the attention kernel that torch takes first on the GPU.

    Flash for 16-bit operands from compute capability 8.0 on, else memory-efficient
    (``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp``); the tracer still steps on to
    the next where the model's shapes rule one out.
    """
    if settings.attention == "eager":
        return "eager"
    capability = record.compute_capability
    recent = capability is None or capability >= (8, 0)
    return "flash" if recent and settings.precision not in ("fp32", "tf32") else "efficient"


def usual_inputs(source: ModelSource, task: str) -> Inputs:
    """Return the inputs that a model has, with its usual sizes.

    Raises:
        UserError: as ``question`` does.
    """
    return _model(source, task, Inputs()).usual


def _model(source: ModelSource, task: str, given: Inputs) -> Model:
    if source.preset is not None:
        return _preset(source.preset, task)
    if source.hf is not None:
        return _hf(Path(source.hf))
    if source.timm is not None:
        definition = store.digest(f"timm:{source.timm}".encode())
        usual = Inputs(image_size=USUAL_IMAGE)
        return Model((("timm", source.timm),), definition, False, True, usual, None, True)
    if source.pt2 is not None:
        sha256 = program_hash(Path(source.pt2), "model.pt2")
        pairs = (("pt2", source.pt2), ("sha256", sha256))
        return _of_code(pairs, sha256.encode(), given)
    assert source.python is not None, "the schema requires one source"
    return _python(source.python, given)


@lru_cache(maxsize=128)
def _preset(id: str, task: str) -> Model:
    try:
        preset = presets.find(id)
    except UserError as error:
        raise UserError.of("plan.at-key", key="model.preset", problem=error.message) from None
    if not preset.takes(task):
        raise UserError.of(
            "plan.task-of-preset", preset=preset.id, task=task, tasks=list(preset.tasks)
        )
    config = _preset_config(preset)
    usual = Inputs(
        sequence_length=preset.sequence_length or None,
        image_size=preset.image_size or None,
        frames=preset.frames or None,
    )
    return Model(
        pairs=(("preset", preset.id),),
        digest=store.digest(preset.definition()),
        has_sequence=bool(preset.sequence_length),
        has_image=bool(preset.image_size),
        usual=usual,
        longest=_longest(config),
        rotates=windows.rotates(config),
        assumed=False,
        mixed=speaks_of_experts(config),
        config=json.dumps(config) if config else "",
        notes=taken_for_granted(config, preset.notes),
        image_least=preset.image_least,
        image_step=preset.image_step,
    )


def _preset_config(preset: Preset) -> dict[str, Any]:
    (kind, value), *_ = preset.model().items()
    return model_config(Path(value))[0] if kind in ("hf", "diffusers") else {}


def _hf(path: Path) -> Model:
    file = config_of(path)
    config, text = model_config(file)
    if "_class_name" in config:
        return _denoiser(file, config, text)
    longest = _longest(config)
    images = sees_images(config)
    size = config.get("image_size")
    usual = (
        Inputs(image_size=size if isinstance(size, int) and 8 <= size <= 16_384 else USUAL_IMAGE)
        if images
        else Inputs(sequence_length=min(longest or USUAL_LENGTH, USUAL_LENGTH))
    )
    pairs = (("hf", str(file)),)
    return Model(
        pairs=pairs,
        digest=store.digest(text),
        has_sequence=not images,
        has_image=images,
        usual=usual,
        longest=longest,
        rotates=windows.rotates(config),
        assumed=not images,
        mixed=speaks_of_experts(config),
        reads_images=not images and isinstance(config.get("vision_config"), dict),
        config=json.dumps(config),
        notes=taken_for_granted(config) + ((CODE_NOT_RUN,) if b'"auto_map"' in text else ()),
    )


def _denoiser(file: Path, config: dict[str, Any], text: bytes) -> Model:
    """Return a model of diffusers, whose config says how many latents it was made for."""
    unit = CODE_PIXELS if config["_class_name"] == "UVit2DModel" else LATENT_PIXELS
    side = config.get("sample_height", config.get("sample_size"))
    pixels = side * unit if isinstance(side, int) and 1 <= side <= 2048 else USUAL_CANVAS
    frames = config.get("sample_frames")
    usual = Inputs(
        image_size=pixels,
        frames=frames if isinstance(frames, int) and 1 <= frames <= 10_000 else None,
    )
    return Model(
        pairs=(("diffusers", str(file)),),
        digest=store.digest(text),
        has_sequence=False,
        has_image=True,
        usual=usual,
        longest=None,
        assumed=False,
        notes=taken_for_granted(config),
    )


def model_config(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return a model's ``config.json`` and its text, with nothing in it believed yet.

    Raises:
        UserError: it cannot be read, or is not a model's configuration.
    """
    key, name = "model.hf", str(path)
    text = reading.content(path, CONFIG_BYTES, f"{key}: {path}")
    try:
        config = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise UserError.of("plan.config-broken", key=key, file=name) from None
    if (odd := ranges.first_odd(config, whole_only=True)) is not None:
        raise reading.odd_number(f"{key}: {name}", *odd)
    known = ("model_type", "architectures", "_class_name")
    if not isinstance(config, dict) or not any(key in config for key in known):
        raise UserError.of("plan.config-of-what", key=key, file=name)
    return config, text


def _longest(config: dict[str, Any]) -> int | None:
    """Return the positions that a configuration speaks of, where it does and they make sense."""
    for key in (
        "max_position_embeddings",
        "n_positions",
        "max_sequence_length",
        "max_target_positions",
    ):
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return max(value - _skipped(config), 1)
    return None


def _skipped(config: dict[str, Any]) -> int:
    """Return the positions that never hold a token: RoBERTa counts on from its padding."""
    padding = config.get("pad_token_id")
    if config.get("model_type") not in COUNT_FROM_PADDING or not isinstance(padding, int):
        return 0
    return padding + 1


def mixes_experts(plan: Plan) -> bool:
    """Return whether a plan's model may be a mixture of experts."""
    return _model(plan.model, plan.workload.task, plan.workload.inputs).mixed


def _python(source: PythonSource, given: Inputs) -> Model:
    """Return the model of a user's file: it has the inputs that the plan names."""
    path = Path(source.file)
    sources = python_sources(path, "model.python.file")
    hashes = json.dumps(sources.hashes, sort_keys=True)
    pairs = (
        ("python", str(path)),
        ("factory", source.factory),
        ("args", json.dumps(source.args, sort_keys=True)),
        ("root", str(sources.root)),
        ("sources", hashes),
    )
    return _of_code(pairs, hashes.encode(), given)


def _of_code(pairs: tuple[tuple[str, str], ...], definition: bytes, given: Inputs) -> Model:
    """Return a model that only its own code knows: the plan says which inputs it has."""
    length = given.sequence_length or given.prompt_tokens
    if length is not None and length < LONG:
        pairs = (*pairs, ("longest", str(length)))
    return Model(
        pairs=pairs,
        digest=store.digest(definition),
        has_sequence=length is not None,
        has_image=given.image_size is not None,
        usual=Inputs(),
        longest=None,
        assumed=False,
        mixed=True,
    )


def _inputs(plan: Plan, model: Model) -> tuple[Inputs, tuple[Message, ...]]:
    """Return the inputs with the model's usual ones filled in, and what was assumed."""
    given = plan.workload.inputs
    if given.images is not None and not model.reads_images:
        raise UserError.of("plan.no-images", key="workload.inputs.images")
    if given.images is not None and not plan.workload.trains:
        raise UserError.of("plan.images-served", key="workload.inputs.images")
    sees = model.has_image or given.images is not None
    if given.image_size is not None and not sees:
        id = "plan.images-of-text" if model.reads_images else "plan.no-images"
        raise UserError.of(id, key="workload.inputs.image_size")
    lengths = ("sequence_length", "mean_tokens", "batching", "prompt_tokens", "new_tokens")
    if given.frames is not None and not model.has_frames:
        raise UserError.of("plan.no-frames", key="workload.inputs.frames")
    for name in lengths if not model.has_sequence else ():
        if getattr(given, name) is not None:
            raise UserError.of("plan.no-sequence", key=f"workload.inputs.{name}")
    if given.new_tokens is not None and not model.generates:
        raise UserError.of("plan.no-generation", key="workload.inputs.new_tokens")
    filled: dict[str, Any] = {}
    if model.has_image:
        filled["image_size"] = given.image_size or model.usual.image_size
    if given.images is not None:
        filled |= {"images": given.images, "image_size": given.image_size}
    if model.has_frames:
        filled["frames"] = given.frames or model.usual.frames
    if model.has_sequence:
        filled |= _served(given, model) if not plan.workload.trains else _trained(given, model)
    inputs = Inputs.model_validate(filled)
    _check_length(plan, inputs, model)
    _check_image(inputs, model)
    length = _positions(plan, inputs)
    beyond = model.longest is not None and length > model.longest
    note = Message.of("plan.note.beyond-positions", length=length, longest=model.longest)
    notes = _assumptions(given, inputs, model)
    return inputs, (*notes, note) if beyond else tuple(notes)


def _positions(plan: Plan, inputs: Inputs) -> int:
    """Return the positions that a sample takes."""
    length = inputs.sequence_length or (inputs.prompt_tokens or 0) + (inputs.new_tokens or 0)
    return length + plan.workload.prompted


def _trained(given: Inputs, model: Model) -> dict[str, Any]:
    length = given.sequence_length or model.usual.sequence_length
    if given.batching == "packed" and given.mean_tokens is None:
        raise UserError.of("plan.packed-of-what", key="workload.inputs.mean_tokens")
    if given.mean_tokens is not None and length is not None and given.mean_tokens > length:
        raise UserError.of(
            "plan.mean-too-long",
            key="workload.inputs.mean_tokens",
            mean=given.mean_tokens,
            length=length,
        )
    return {
        "sequence_length": length,
        "mean_tokens": given.mean_tokens,
        "batching": given.batching,
    }


def _served(given: Inputs, model: Model) -> dict[str, int | None]:
    return {
        "prompt_tokens": given.prompt_tokens or USUAL_PROMPT,
        "new_tokens": (given.new_tokens or USUAL_ANSWER) if model.generates else None,
    }


def _check_length(plan: Plan, inputs: Inputs, model: Model) -> None:
    length = _positions(plan, inputs)
    if model.longest is not None and length > model.longest and not model.rotates:
        key = "sequence_length" if plan.workload.trains else "prompt_tokens"
        raise UserError.of(
            "plan.too-long", key=f"workload.inputs.{key}", length=length, longest=model.longest
        )


def _check_image(inputs: Inputs, model: Model) -> None:
    size, step = inputs.image_size, model.image_step
    if size is None or (size >= model.image_least and size % step == 0):
        return
    least = -(-model.image_least // step) * step
    below = max(least, size // step * step)
    raise UserError.of(
        "plan.image-size" if step == 1 else "plan.image-step",
        key="workload.inputs.image_size",
        size=size,
        least=least,
        step=step,
        near=list(dict.fromkeys((below, max(least, below + step if size > below else below)))),
    )


def _assumptions(given: Inputs, inputs: Inputs, model: Model) -> list[Message]:
    """Return a note for each input that is our guess and neither plan's nor preset's."""
    ours = {"prompt_tokens", "new_tokens"} | (
        {"sequence_length", "image_size"} if model.assumed else set()
    )
    return [
        Message.of("plan.note.assumed-input", key=f"workload.inputs.{name}", value=value)
        for name, value in inputs.model_dump(exclude_none=True).items()
        if name in ours and getattr(given, name) is None
    ]
