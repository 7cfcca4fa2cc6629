"""Computers that clouds rent out: which GPUs they have, and what is around them."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from trainwright.catalog.compiled import yaml_files
from trainwright.catalog.names import name_key
from trainwright.data import hardware_db
from trainwright.messages import UserError
from trainwright.messages.nearest import nearest

AtLeastOne = Annotated[int, Field(ge=1)]
THREADS_A_CORE = 2
"""A vCPU is one thread of a core. Sources: AWS, "CPU options"; Azure, "vCPU"; Google Cloud, "CPU
platforms"."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Disks(_Value):
    """Local disks, whose content goes when the computer stops."""

    count: AtLeastOne
    gb: AtLeastOne
    """Of each, decimal."""


class Joined(_Value):
    """What joins several such computers, as ``machine.network`` of a plan names it."""

    kind: str
    ports: AtLeastOne


class InstanceType(_Value):
    """One size of computer; None where its owner's pages do not say it."""

    name: str
    gpus: AtLeastOne
    vcpus: AtLeastOne
    memory_gib: Annotated[float, Field(gt=0)]
    disks: Disks | None = None
    network: Joined | None = None


class _Family(_Value):
    gpu: str
    source: str
    types: tuple[InstanceType, ...]


class _File(_Value):
    schema_: Annotated[int, Field(alias="schema")]
    provider: str
    families: tuple[_Family, ...]


class Instance(InstanceType):
    """A computer that a cloud rents out."""

    provider: str
    gpu: str
    """Id of its GPUs in the catalog."""
    source: str

    @property
    def cores(self) -> int:
        """Cores of the threads that are rented."""
        return max(1, self.vcpus // THREADS_A_CORE)


def find_instance(text: str) -> Instance | None:
    """Return the cloud computer of a name, with or without its owner's prefix; None: not known."""
    return _by_key().get(name_key(text))


def instance(text: str) -> Instance:
    """Return the cloud computer of a name.

    Raises:
        UserError: it is not known; names the nearest.
    """
    found = find_instance(text)
    if found is None:
        near = nearest(text, instances())
        id = "catalog.unknown-instance-near" if near else "catalog.unknown-instance"
        raise UserError.of(id, name=text[:60], near=list(near))
    return found


def instances() -> tuple[str, ...]:
    """Return the names of all cloud computers, by owner."""
    return tuple({one.name: None for one in _by_key().values()})


@lru_cache(maxsize=1)
def _by_key() -> dict[str, Instance]:
    return {name_key(name): one for one in _all() for name in (one.name, _short(one.name))}


def _short(name: str) -> str:
    return name.removeprefix("Standard_")


def _all() -> Iterator[Instance]:
    from trainwright.catalog.yaml_file import read_yaml  # loads the YAML reader

    for path in yaml_files(hardware_db("cloud")):
        file = _File.model_validate(read_yaml(path))
        for family in file.families:
            same = {"provider": file.provider, "gpu": family.gpu, "source": family.source}
            for one in family.types:
                yield Instance(**one.model_dump(), **same)
