"""Configurations of NVIDIA's mig-parted, version v1: what many clusters describe layouts in.

``mig-configs: {name: [{device-filter, devices, mig-enabled, mig-devices}]}``, as a file or within a
ConfigMap of Kubernetes. It cannot say where an instance lies; ``1c.3g.40gb`` is a compute instance
within one. (NVIDIA/mig-parted, README and examples; NVIDIA GPU operator, custom MIG
configurations.)
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainwright.catalog.mig import MigTable
from trainwright.messages import UserError
from trainwright.mig.jobs import wrong
from trainwright.mig.layout import Layout
from trainwright.quoting import dotted
from trainwright.yamltext import Document, dump, parse

_COMPUTE = re.compile(r"(\d)c\.((\d)g\.\d{1,3}gb(?:[+-][a-z.]{1,8})?)")
"""Slices of a compute instance, and the profile of the instance around it."""
_MOST_PARTS = 64
"""Compute instances of a kind that are counted; more than any GPU has."""


def _shared(sizes: list[int], slices: int) -> int:
    """Return how many instances of so many slices hold compute instances of these sizes."""
    left: list[int] = []
    for size in sorted(sizes, reverse=True):
        at = next((at for at, room in enumerate(left) if room >= size), None)
        if at is None:
            left.append(slices - size)
        else:
            left[at] -= size
    return len(left)


class Devices(BaseModel):
    """What some GPUs of a computer are to be cut into."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    filter: Annotated[str | tuple[str, ...] | None, Field(alias="device-filter")] = None
    """PCI ids, device before vendor: ``0x20B010DE``; None: any."""
    devices: Literal["all"] | tuple[int, ...]
    enabled: Annotated[bool, Field(alias="mig-enabled")]
    instances: Annotated[dict[str, int] | None, Field(alias="mig-devices")] = None
    """Instances by profile."""

    def gpu_instances(self) -> dict[str, int]:
        """Return the instances that the GPU is cut into; compute instances share theirs.

        As mig-parted does, one goes into the first instance of its profile with slices left.
        """
        whole: Counter[str] = Counter()
        parts: dict[str, list[int]] = defaultdict(list)
        for name, count in (self.instances or {}).items():
            part = _COMPUTE.fullmatch(name)
            if part and int(part[1]) <= int(part[3]):
                parts[part[2]] += [int(part[1])] * min(count, _MOST_PARTS)
            else:
                whole[name] += count
        for profile, sizes in parts.items():
            whole[profile] += _shared(sizes, int(profile.partition("g")[0]))
        return dict(whole)

    def meant(self, table: MigTable) -> bool:
        """Return whether it is about GPUs of this table, as far as its filter says."""
        if self.filter is None:
            return True
        ids = (self.filter,) if isinstance(self.filter, str) else self.filter
        return any(id.casefold() == f"0x{pci}10de" for id in ids for pci in table.pci)


class Configurations(BaseModel):
    """A whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    version: Literal["v1"] = "v1"
    configs: Annotated[dict[str, tuple[Devices, ...]], Field(alias="mig-configs")]


def read(text: str, name: str) -> Configurations:
    """Return the configurations in a text; ``name`` is what errors call it.

    Raises:
        UserError: it is not YAML, or not of this form; names the key.
    """
    return found_in(parse(text, name), name)


def found_in(document: Document, name: str) -> Configurations:
    """Return the configurations in a document; ``name`` is what errors call it.

    Raises:
        UserError: it is not of this form; names the key.
    """
    try:
        return Configurations.model_validate(_unwrapped(document.data, name))
    except ValidationError as error:
        first: Any = error.errors()[0]
        file, key = document.where(name, first["loc"]), dotted(first["loc"]) or "mig-configs"
        raise UserError.of("mig.bad-parted", file=file, key=key, problem=wrong(first)) from None


def _unwrapped(document: object, name: str) -> object:
    """Return the configurations in a ConfigMap of Kubernetes; another document as it is."""
    if not isinstance(document, Mapping) or document.get("kind") != "ConfigMap":
        return document
    data = document.get("data")
    texts = data.items() if isinstance(data, Mapping) else ()
    found = [parse(text, f"{name}: {key}").data for key, text in texts if isinstance(text, str)]
    return next((one for one in found if isinstance(one, Mapping) and "mig-configs" in one), {})


def write(found: Configurations) -> str:
    """Return the text of configurations."""
    data = found.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dump(data, frozenset({"mig-configs", *found.configs, "mig-devices"}))


def of_layouts(
    layouts: Sequence[Layout], gpus: Sequence[int] | None = None, name: str = "trainwright"
) -> Configurations:
    """Return a configuration with an entry for each GPU; ``gpus`` are their indices, from 0."""
    numbers = range(len(layouts)) if gpus is None else gpus
    entries = tuple(_of(gpu, layout) for gpu, layout in zip(numbers, layouts, strict=True))
    return Configurations(configs={name: entries})


def _of(number: int, layout: Layout) -> Devices:
    counts: Mapping[str, int] = Counter(instance.profile for instance in layout)
    return Devices(devices=(number,), enabled=bool(counts), instances=dict(sorted(counts.items())))
