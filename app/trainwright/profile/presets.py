"""The shipped models: what they are, where they come from, and their usual inputs."""

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from trainwright.data import resources
from trainwright.messages import Message, UserError
from trainwright.messages.nearest import nearest

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

AREAS = ("vision", "language", "generation", "speech", "control")
"""Files of presets; parameter counts in them are the published ones."""

Task = Literal["pretrain", "full", "lora", "qlora", "infer"]


class Preset(BaseModel):
    """A model that ships with its profiles."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=r"^[a-z0-9]+([-.][a-z0-9]+)*$")]
    area: str
    """What it works on: one of ``AREAS``."""
    name: str
    family: str
    """Presets of one family differ in size; a smaller one is offered when nothing fits."""
    aliases: tuple[str, ...] = ()
    """What people type, Korean included."""
    hf: str | None = None
    """Name of a ``config.json`` folder below ``resources/presets``."""
    timm: str | None = None
    torchvision: str | None = None
    diffusers: str | None = None
    builtin: str | None = None
    parameters: int
    """As published."""
    source: str
    """Where the architecture and the parameter count are published."""
    sequence_length: int = 0
    """Usual tokens a sample; 0 where the model has no sequence."""
    image_size: int = 0
    """Usual pixels a side; 0 where the model has no image."""
    packed: Literal["mxfp4"] | None = None
    """How its weights are published, where not in 16 bits: engines serve them as they are."""
    frames: int = 0
    """Usual frames of a video; 0 where the model has none."""
    notes: tuple[str, ...] = ()
    """What every estimate of it takes for granted: ``preset.note.<name>``."""
    image_least: int = 32
    """Fewest pixels a side that it takes; 32 is the total stride of most networks."""
    image_step: int = 1
    """What its sides are multiples of: patches, windows, or levels that must meet again."""
    tasks: tuple[Task, ...]

    @property
    def stack(self) -> Literal["transformers", "plain"]:
        """Whose training code the profile stands for."""
        return "transformers" if self.hf else "plain"

    @property
    def description(self) -> Message:
        """What the model is, in a line."""
        return Message.of(f"preset.{self.id}")

    def takes(self, task: str) -> bool:
        """Return whether a plan may give the preset this task; not all of them ship traced."""
        if task in ("prompt", "prefix"):
            return bool(self.hf and self.sequence_length) and "lora" in self.tasks
        return task in self.tasks

    def model(self) -> dict[str, str]:
        """Return the source as the tracer takes it, with real paths."""
        for kind in ("hf", "diffusers"):
            if (folder := getattr(self, kind)) is not None:
                return {kind: str(resources("presets", folder, "config.json"))}
        for kind in ("timm", "torchvision"):
            if (name := getattr(self, kind)) is not None:
                return {kind: name}
        return {"builtin": str(self.builtin)}

    def definition(self) -> bytes:
        """Return what the digest of the model is made from."""
        (kind, value), *_ = self.model().items()
        if kind in ("hf", "diffusers"):
            return Path(value).read_bytes()
        return f"{kind}:{value}".encode()


@cache
def presets() -> dict[str, Preset]:
    """Return all presets by id, in the order of the areas and of their files."""
    found = {}
    for area in AREAS:
        with resources("presets", f"{area}.yaml").open("rb") as file:
            for entry in _LOADER(file).get_single_data():
                found[entry["id"]] = Preset(area=area, **entry)
    return found


def find(text: str) -> Preset:
    """Return the preset with this id or alias.

    Raises:
        UserError: there is none; names the nearest.
    """
    known = presets()
    if text in known:
        return known[text]
    wanted = _plain(text)
    for preset in known.values():
        if wanted in map(_plain, (preset.id, preset.name, *preset.aliases)):
            return preset
    if candidates := nearest(text, known):
        raise UserError.of("profile.unknown-preset", preset=text, candidates=candidates)
    raise UserError.of("profile.no-preset", preset=text, known=list(known))


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
