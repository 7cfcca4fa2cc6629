"""Processors and drives: what feeding a GPU depends on, looked up by what people type.

Few and seldom asked for, so that their YAML is read as it is, once.
"""

import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from trainwright.catalog.compiled import yaml_files
from trainwright.catalog.records import Confidence
from trainwright.data import hardware_db

Interface = Literal["nvme", "sata", "hdd"]
Id = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9.]+)*$")]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    id: Id
    name: str
    source: str
    """Key into ``hardware_db/SOURCES.md``, or a page."""
    confidence: Confidence


class CpuRecord(_Record):
    """A processor."""

    vendor: Literal["AMD", "Intel"]
    architecture: str
    """Of its cores, of the fast ones where there are two kinds: Zen 5, Lion Cove."""
    cores: Annotated[int, Field(ge=1)]
    """Physical, of both kinds."""
    threads: Annotated[int, Field(ge=1)]
    efficient_cores: Annotated[int, Field(ge=0)] = 0
    """Of the cores, the slow ones."""
    boost_ghz: Annotated[float, Field(gt=0)]
    pcie_generation: Annotated[int, Field(ge=1)] | None = None
    """Of the slots for cards."""
    slot_lanes: Annotated[int, Field(ge=1)] | None = None
    """PCI Express lanes that the slots for cards share."""


class DriveRecord(_Record):
    """A drive. Rates are for reading: an SLC cache makes writes fast, and no read."""

    interface: Interface
    pcie_generation: Annotated[int, Field(ge=1)] | None = None
    read_mb_s: Annotated[float, Field(gt=0)]
    """Sequential."""
    random_read_kiops: Annotated[float, Field(gt=0)] | None = None
    """Reads of 4 KiB at a deep queue; makers of hard disks state none."""


def find_cpu(text: str) -> CpuRecord | None:
    """Return the processor of an id or a name, as ``/proc/cpuinfo`` writes it too."""
    return _cpus().get(_key(text))


def find_drive(text: str) -> DriveRecord | None:
    """Return the drive of an id or a name; None where the catalog does not have it."""
    return _drives().get(_key(text))


@cache
def _cpus() -> dict[str, CpuRecord]:
    records = [CpuRecord.model_validate(data) for data in _entries("cpu", "cpus")]
    return {_key(name): record for record in records for name in (record.id, record.name)}


@cache
def _drives() -> dict[str, DriveRecord]:
    records = [DriveRecord.model_validate(data) for data in _entries("storage", "drives")]
    return {_key(name): record for record in records for name in (record.id, record.name)}


def _entries(folder: str, key: str) -> list[dict[str, Any]]:
    """Return the records of a folder's files, each file's defaults filled in."""
    from trainwright.catalog.yaml_file import read_yaml  # loads the YAML reader

    files: list[Path] = yaml_files(hardware_db(folder))
    contents = [read_yaml(path) for path in files]
    return [data.get("defaults", {}) | entry for data in contents for entry in data[key]]


_NOISE = re.compile(
    r"\((?:r|tm)\)|@.*$|\d+th gen\b|\b(?:\d+|\w+)-core\b|with radeon graphics"
    r"|\b(?:amd|intel|core|cpu|processor|western digital)\b"
)


def _key(text: str) -> str:
    """Return the name without what makers and drivers put around it."""
    plain = _NOISE.sub(" ", text[:200].casefold()).replace("wd_", "").replace("wd", "")
    return re.sub(r"[^0-9a-z.]+", "", plain)
