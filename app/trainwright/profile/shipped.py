"""The profiles that ship with the presets: an archive each, with a member a structure."""

import zipfile
from functools import cache, lru_cache
from typing import NamedTuple

from trainwright.data import resources
from trainwright.messages import UserError
from trainwright.profile import codec
from trainwright.profile.memo import KEPT
from trainwright.profile.presets import presets
from trainwright.profile.profile import Profile
from trainwright.profile.spec import (
    DEFAULT_LORA,
    TRACER_VERSION,
    Method,
    TraceSpec,
    digest_of,
)


class Place(NamedTuple):
    """Where a structure's profile ships, if it does."""

    preset: str
    name: str
    """Task, precision and kernel: ``lora-bf16-mixed-flash``."""


def place(spec: TraceSpec) -> Place | None:
    """Return the place of a preset's structure; None where the structure is none that ships."""
    source = dict(spec.model)
    preset = presets().get(source.get("preset", ""))
    plain = spec.quantization in ("none", "nf4" if spec.task == "qlora" else "none")
    if preset is None or not plain or spec.channels_last or spec.checkpointing != "none":
        return None
    if spec.in_backward or spec.method != Method() or spec.lora != DEFAULT_LORA:
        return None
    if (spec.image_size, spec.frames) != (preset.image_size, preset.frames):
        return None
    if spec.digest != digest_of(preset.definition()):
        return None
    name = f"{spec.task}-{spec.precision}-{spec.kernel}{'-single' if spec.single else ''}"
    return Place(preset.id, name + ("-beyond" if spec.beyond else ""))


@cache
def names(preset: str) -> tuple[str, ...]:
    """Return which structures of a preset ship, in their order; a damaged archive has none."""
    try:
        with zipfile.ZipFile(resources("profiles", f"{preset}.zip")) as archive:
            return tuple(sorted(archive.namelist()))
    except (OSError, zipfile.BadZipFile):
        return ()


def content(preset: str, name: str) -> bytes:
    """Return a member as it stands in the archive.

    Raises:
        KeyError: no such structure ships.
    """
    with zipfile.ZipFile(resources("profiles", f"{preset}.zip")) as archive:
        return archive.read(name)


@lru_cache(maxsize=KEPT)
def profile(preset: str, name: str) -> Profile | None:
    """Return a profile that ships; None where there is none, or it is damaged or outdated."""
    if name not in names(preset):
        return None
    try:
        found = codec.decode(content(preset, name), name)
    except (OSError, zipfile.BadZipFile, UserError):
        return None
    return found if found.versions.get("tracer") == str(TRACER_VERSION) else None
