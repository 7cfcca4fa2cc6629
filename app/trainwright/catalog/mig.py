"""Multi-Instance GPU: the profiles of each GPU that can be cut into instances, with their places.

The tables are NVIDIA's, from its guide and from what its tools print; a driver that answers knows
better (``mig.live``). Where placements are ``inferred``, nobody has published them.
"""

from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from trainwright.catalog.compiled import yaml_files
from trainwright.catalog.query import find_gpu
from trainwright.catalog.records import GpuRecord
from trainwright.data import hardware_db
from trainwright.messages import UserError

GIB = 1 << 30
Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
Engine = Literal["nvdec", "nvenc", "jpeg", "ofa"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Profile(_Value):
    """A kind of instance."""

    name: str
    """As ``nvidia-smi mig -lgip`` prints it; it means something only with its GPU."""
    id: Count | None = None
    """That ``nvidia-smi mig -cgi`` takes; None where nobody has published it."""
    slices: AtLeastOne
    """Of the GPU's processors."""
    size: AtLeastOne | None = None
    """Units that it occupies."""
    starts: tuple[int, ...] = ()
    """Units at which it may begin."""
    count: AtLeastOne
    """Instances of it that an empty GPU holds."""
    memory_gib: float | None = None
    sm: AtLeastOne | None = None
    copy_engines: Annotated[int | None, Field(alias="copy")] = None
    engines: dict[Engine, Count] | None = None

    @property
    def plain(self) -> bool:
        """Whether it neither takes nor leaves out engines for media and graphics."""
        return not any(mark in self.name for mark in "+-")

    @property
    def memory_bytes(self) -> float | None:
        """What its instances offer before a program starts."""
        return self.memory_gib * GIB if self.memory_gib else None


class Together(_Value):
    """A rule about profiles beside each other."""

    together: tuple[str, ...]
    source: str
    driver: str | None = None
    """First one that allows it."""


class MigTable(_Value):
    """A GPU that can be cut into instances."""

    id: str
    name: str
    gpus: tuple[str, ...]
    """Ids of its records in the catalog."""
    pci: tuple[str, ...] = ()
    """Device ids."""
    units: AtLeastOne | None = None
    """Places that instances take up; None where placements are unknown."""
    slices: AtLeastOne
    instances: AtLeastOne
    """That it holds at most."""
    driver: str | None = None
    """First one that can."""
    cuda: str | None = None
    vbios: dict[str, str] = {}
    """First one that can, by edition."""
    display_mode: bool = False
    """Whether the card must be taken out of its display mode before."""
    placements: Literal["published", "inferred", "unknown", "read"]
    """``read``: this computer's driver told them."""
    sm_of: str | None = None
    """The record whose board the processor counts are of, where others have fewer."""
    aliases: dict[str, str] = {}
    """Names that some drivers give to a profile."""
    engines: dict[Engine, Count] | None = None
    """Of the whole GPU; None: those of its largest profile."""
    one_of_each: bool = False
    """Whether at most one instance for computing stands beside at most one for graphics."""
    since: tuple[Together, ...] = ()
    disputed: tuple[Together, ...] = ()
    source: str
    told_by: str | None = None
    """Version of this computer's driver, where that told the profiles; None: published."""
    profiles: tuple[Profile, ...]

    def profile(self, text: str) -> Profile:
        """Return the profile of a name, an older name or an id.

        Raises:
            UserError: ``mig.unknown-profile`` with the names that there are.
        """
        name = text.strip().casefold().removeprefix("mig ")
        name = self.aliases.get(name, name)
        for profile in self.profiles:
            if name in (profile.name, str(profile.id)):
                return profile
        names = ", ".join(profile.name for profile in self.profiles)
        raise UserError.of("mig.unknown-profile", text=text[:60], gpu=self.name, names=names)

    def __hash__(self) -> int:
        return hash((self.id, self.source))

    @property
    def certain(self) -> bool:
        """Whether a driver or NVIDIA says where instances may lie."""
        return self.placements in ("published", "read")

    @property
    def whole(self) -> Profile:
        """The profile that is the GPU as one instance."""
        return max(self.profiles, key=lambda each: (each.slices, each.plain))


def mig_table(gpu: GpuRecord) -> MigTable | None:
    """Return the GPU's table; None where it cannot be cut."""
    return _by_gpu().get(gpu.id)


def find_mig_table(text: str) -> tuple[MigTable, GpuRecord]:
    """Return the table of what people type, and the GPU that is meant.

    Raises:
        UserError: nobody knows the GPU, or it cannot be cut into instances.
    """
    record = find_gpu(text).record
    table = mig_table(record)
    if table is None:
        raise UserError.of("mig.not-capable", gpu=record.name)
    return table, record


def mig_tables() -> tuple[MigTable, ...]:
    """Return every table, in the files' order."""
    return tuple({table.id: table for table in _by_gpu().values()}.values())


@lru_cache(maxsize=1)
def _by_gpu() -> dict[str, MigTable]:
    from trainwright.catalog.yaml_file import read_yaml  # loads the YAML reader

    tables = [
        MigTable.model_validate(entry)
        for path in yaml_files(hardware_db("mig"))
        for entry in read_yaml(path)["gpus"]
    ]
    return {gpu: table for table in tables for gpu in table.gpus}
