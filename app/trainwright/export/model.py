"""The plan's model as an exported program names it, with the files that it needs beside it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast

from trainwright.estimate.optimizers import RULES
from trainwright.messages import UserError
from trainwright.plan.images import sees_images
from trainwright.plan.schema import Plan
from trainwright.profile import presets
from trainwright.workload import FullSettings, PythonSource
from trainwright.workload.sourcefiles import python_sources
from trainwright.workload.weightfiles import config_of

Kind = Literal["hf", "diffusers", "timm", "builtin", "python"]

FOLDER = "model"
"""Where the model's own files lie below the export folder."""
CONFIG = f"{FOLDER}/config.json"

TAUGHT = {
    "diffusers": ("UNet2DConditionModel",),
    "builtin": ("unet", "nature-cnn-ppo"),
    "torchvision": (),
}
"""Of each kind, what the exported programs have data and a loss for."""
HEADS = (
    "ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForPreTraining", "ForImageClassification",
    "ForConditionalGeneration",
)  # fmt: skip
"""Ends of the names of transformers' classes for which they have some: ``model_class`` there."""
UNTAUGHT = ("whisper", "wav2vec2", "hubert", "wavlm")
"""Model types of transformers for which they have none."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A model by its source, without its weights."""

    kind: Kind
    where: str
    """hf, diffusers: folder of ``config.json``. timm, builtin: name. python:
    ``file.py:factory``."""
    title: str
    files: Mapping[str, str] = field(default_factory=dict)
    """Copied into the export."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    sequence_length: int | None = None
    """Usual tokens a sample, of presets."""
    image_size: int | None = None
    """Usual pixels a side, of presets."""
    images: bool = False
    """Of hf: whether its samples are images alone."""


def adapting_libraries(plan: Plan, settings: FullSettings) -> frozenset[str]:
    """Return the libraries that adapters, quantised weights and packed optimizers need."""
    needed = {"peft"} if plan.workload.adapts else set()
    rule = RULES.get(settings.optimizer)
    if settings.quantization != "none":
        needed.add("bitsandbytes")
    if rule is not None:
        needed.add(rule.library)
    if settings.optimizer_offload == "cpu":
        needed.add("torchao")
    return frozenset(needed)


def definition(plan: Plan) -> Definition:
    """Return the model's definition.

    Raises:
        UserError: no such preset or none that an export can carry, or the model's file
            cannot be read.
    """
    source = plan.model
    if source.hf is not None:
        path = config_of(Path(os.path.expanduser(source.hf)))
        title = path.parent.name if path.name == "config.json" else path.stem
        if plan.workload.inputs.images:
            raise UserError.of("export.no-data-for", model=title)
        return _configured(Definition("hf", FOLDER, title, {CONFIG: _read(path)}))
    if source.timm is not None:
        return Definition("timm", source.timm, source.timm)
    if source.python is not None:
        return _python(source.python)
    if source.pt2 is not None:
        raise UserError.of("export.no-pt2")
    return _preset(presets.find(str(source.preset)))


def _python(python: PythonSource) -> Definition:
    """Return a factory with its file and the neighbours that it imports."""
    path = Path(python.file)
    sources = python_sources(path, "model.python.file")
    files = {f"{FOLDER}/{name}": _read(sources.root / name) for name in sources.hashes}
    own = path.relative_to(sources.root).as_posix()
    return Definition("python", f"{FOLDER}/{own}:{python.factory}", path.name, files, python.args)


def _preset(preset: presets.Preset) -> Definition:
    (kind, value), *_ = preset.model().items()
    configured = kind in ("hf", "diffusers")
    if not configured and value not in TAUGHT.get(kind, (value,)):
        raise UserError.of("export.no-data-for", model=preset.name)
    found = Definition(
        cast(Kind, kind),
        FOLDER if configured else value,
        preset.name,
        {CONFIG: _read(Path(value))} if configured else {},
        sequence_length=preset.sequence_length or None,
        image_size=preset.image_size or None,
    )
    return _configured(found) if configured else found


def _configured(found: Definition) -> Definition:
    """Return a model with a ``config.json`` as what the file says it is.

    Raises:
        UserError: the exported programs have no data and loss for it.
    """
    try:
        config = json.loads(found.files[CONFIG])
    except (ValueError, RecursionError):
        return found  # whoever reads it says so
    if not isinstance(config, dict):
        return found
    denoiser = config.get("_class_name")
    if denoiser is None:
        names = config.get("architectures")
        name = names[0] if isinstance(names, list) and names else ""
        taught = not name or (isinstance(name, str) and name.endswith(HEADS))
        taught = taught and config.get("model_type") not in UNTAUGHT
    else:
        taught = denoiser in TAUGHT["diffusers"]
    if not taught:
        raise UserError.of("export.no-data-for", model=found.title)
    if denoiser is None:
        return replace(found, images=sees_images(config))
    return replace(found, kind="diffusers")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError.of("export.cannot-read", path=str(path), reason=reason) from error
