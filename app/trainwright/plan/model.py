"""The model of a plan: what it is called, its inputs, and what its files say of it."""

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from trainwright import ranges, reading
from trainwright.estimate.serving import kv
from trainwright.estimate.serving.kv import CacheShape
from trainwright.messages import Message, UserError
from trainwright.plan.granted import taken_for_granted
from trainwright.plan.images import sees_images
from trainwright.plan.mixture import speaks_of_experts
from trainwright.plan.schema import Plan
from trainwright.profile import presets, windows
from trainwright.profile.presets import Preset
from trainwright.profile.spec import LONG, digest_of
from trainwright.workload import Inputs, ModelSource, PythonSource
from trainwright.workload.sourcefiles import CONFIG_BYTES, program_hash, python_sources
from trainwright.workload.weightfiles import config_of

USUAL_LENGTH = 2048
USUAL_IMAGE = 224
USUAL_PROMPT = 512
USUAL_ANSWER = 128
"""What is assumed where neither plan nor preset says; the report tells."""

LATENT_PIXELS = 8
OTHER_PIXELS = {"UVit2DModel": 16, "SanaTransformer2DModel": 32, "UNet2DModel": 1}
"""Pixels a latent or a code stands for, in whose numbers a denoiser's config gives its size:
of most, and by class (the pipelines of diffusers; an unconditional U-Net sees pixels)."""
USUAL_CANVAS, USUAL_FILM, USUAL_FRAMES = 1024, 512, 49
"""Pixels a side of denoisers that give none: FLUX's own default, and for videos an assumed one
with the frames of CogVideoX, which fit those that count 4, 6 or 8 frames for a latent."""
VIDEO = re.compile("3D|Video|Motion|SpatioTemporal|I2VGen")
"""Classes of diffusers that denoise videos; ``worker/programs/latents.py`` has the same."""

SOUND = re.compile("1D|Audio")
"""Classes of diffusers that denoise sounds; ``worker/programs/soundlatents.py`` has the same."""
USUAL_STEPS, MOST_STEPS = 1024, 2**20
"""Latents of a sound whose config gives none: the default of ``StableAudioDiTModel``, 47 s. The
most that is believed is assumed."""

COUNT_FROM_PADDING = ("camembert", "longformer", "roberta", "xlm-roberta")
"""Model types whose position table has a padding entry (``create_position_ids_from_input_ids``)."""

REFUSED_BY_PEFT = ("falcon_h1", "falcon_mamba", "mamba", "mamba2", "nemotron_h")
"""Model types with linear layers that PEFT refuses to adapt; ``worker/programs/adapters.py`` has
the same."""

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
    refused: bool = False
    """Whether PEFT refuses to adapt some of its linear layers."""
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


@lru_cache(maxsize=128)
def cache_shape(config: str) -> CacheShape | None:
    """Return what the layers of a configuration keep; None for encoders and what is not known."""
    return kv.read(json.loads(config)) if config else None


def usual_inputs(source: ModelSource, task: str) -> Inputs:
    """Return the inputs that a model has, with its usual sizes.

    Raises:
        UserError: as ``model_of`` does.
    """
    return model_of(source, task, Inputs()).usual


def model_of(source: ModelSource, task: str, given: Inputs) -> Model:
    """Return the model that a plan names.

    Raises:
        UserError: there is no such model, or its files are unreadable or invalid.
    """
    if source.preset is not None:
        return _preset(source.preset, task)
    if source.hf is not None:
        return _hf(Path(source.hf))
    if source.timm is not None:
        definition = digest_of(f"timm:{source.timm}".encode())
        usual = Inputs(image_size=_named_size(source.timm))
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
        digest=digest_of(preset.definition()),
        has_sequence=bool(preset.sequence_length),
        has_image=bool(preset.image_size),
        usual=usual,
        longest=_longest(config),
        rotates=windows.rotates(config),
        assumed=False,
        mixed=speaks_of_experts(config),
        refused=config.get("model_type") in REFUSED_BY_PEFT,
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
        digest=digest_of(text),
        has_sequence=not images,
        has_image=images,
        usual=usual,
        longest=longest,
        rotates=windows.rotates(config),
        assumed=not images,
        mixed=speaks_of_experts(config),
        refused=config.get("model_type") in REFUSED_BY_PEFT,
        reads_images=not images and isinstance(config.get("vision_config"), dict),
        config=json.dumps(config),
        notes=taken_for_granted(config) + ((CODE_NOT_RUN,) if b'"auto_map"' in text else ()),
    )


def _denoiser(file: Path, config: dict[str, Any], text: bytes) -> Model:
    """Return a model of diffusers, whose config says how many latents it was made for."""
    name = str(config["_class_name"])
    film = VIDEO.search(name) is not None
    unit = OTHER_PIXELS.get(name, LATENT_PIXELS)
    side = config.get("sample_height", config.get("sample_size"))
    if SOUND.search(name):
        steps = side if isinstance(side, int) and 1 <= side <= MOST_STEPS else USUAL_STEPS
        return _sounds(file, text, steps)
    size = side if isinstance(side, int) and 1 <= side <= 2048 else 0
    frames = config.get("sample_frames") if "temporal_compression_ratio" in config else None
    timed = isinstance(frames, int) and 1 <= frames <= 10_000
    usual = Inputs(
        image_size=size * unit or (USUAL_FILM if film else USUAL_CANVAS),
        frames=frames if timed else _frames(config) if film else None,
    )
    return Model(
        pairs=(("diffusers", str(file)),),
        digest=digest_of(text),
        has_sequence=False,
        has_image=True,
        usual=usual,
        longest=None,
        assumed=film and not (size and timed),
        notes=taken_for_granted(config),
    )


def _sounds(file: Path, text: bytes, steps: int) -> Model:
    """Return a denoiser of sounds, whose sequence is latents along time."""
    return Model(
        pairs=(("diffusers", str(file)),),
        digest=digest_of(text),
        has_sequence=True,
        has_image=False,
        usual=Inputs(sequence_length=steps),
        longest=None,
        assumed=False,
    )


def _named_size(name: str) -> int:
    """Return the pixels a side that a name of timm ends in, ``cait_m36_384``, else the usual ones.

    Numbers of RegNets and ResNets are of operations and layers.
    """
    found = re.search(r"_(?:\d+to)?(\d{3})$", name.partition(".")[0])
    size = int(found[1]) if found and not name.startswith(("regnet", "resnet")) else USUAL_IMAGE
    return size if size >= 160 and (size % 16 == 0 or size % 14 == 0) else USUAL_IMAGE


def _frames(config: dict[str, Any]) -> int:
    """Return the frames of a video: those of CogVideoX, or of AnimateDiff's or Latte's table."""
    tables = (config.get(key) for key in ("motion_max_seq_length", "video_length"))
    return min([USUAL_FRAMES, *(each for each in tables if isinstance(each, int) and each > 0)])


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


def model_in(plan: Plan) -> Model:
    """Return the model of a plan, as ``model_of`` does."""
    return model_of(plan.model, plan.workload.task, plan.workload.inputs)


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
        digest=digest_of(definition),
        has_sequence=length is not None,
        has_image=given.image_size is not None,
        usual=Inputs(),
        longest=None,
        assumed=False,
        mixed=True,
    )
