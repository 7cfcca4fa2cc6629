"""The machine as a plan names it; ``resolve`` looks the names up."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from trainwright.catalog.instances import instance
from trainwright.machine.build import CircuitName, System
from trainwright.machine.network import Network
from trainwright.messages import UserError
from trainwright.workload.settings import Frozen

MOST_PIECES = 64
"""Pieces of one kind of GPU, or of one kit of memory, in a computer; assumed."""


class GpuChoice(Frozen):
    """A GPU by catalog id, name or alias."""

    id: str
    count: Annotated[int, Field(ge=1, le=MOST_PIECES)] = 1
    power_limit_w: Annotated[float, Field(gt=0, le=10_000)] | None = None
    reserved_mib: Annotated[float, Field(ge=0, le=10_000_000)] | None = None
    """Held by the display and other programs. Default: by system and segment, assumed."""
    mig: str | None = None


class Drive(Frozen):
    """A drive by catalog id."""

    id: str


class Kit(Frozen):
    """Memory by catalog id: kits of modules."""

    id: str
    count: Annotated[int, Field(ge=1, le=MOST_PIECES)] = 1


_RENTED = ("cloud", "gpus", "memory_gib", "network", "nodes", "system")
"""Keys that a cloud's computer may have: all others are of parts that one chooses."""


class MachineChoice(Frozen):
    """The machine as a person names it: ids, ``cloud``, or ``local: true``."""

    local: bool = False
    cloud: str | None = None
    """A computer that a cloud rents out, by its type: ``p5.48xlarge``. It says the GPUs, memory and
    network."""
    gpus: tuple[GpuChoice, ...] = ()
    """Of one computer."""
    nodes: Annotated[int, Field(ge=1, le=64)] = 1
    """Computers alike that train together; every other key says what one of them has."""
    network: Network | None = None
    """What joins the computers; needed where there are several."""
    cpu: str | None = None
    board: str | None = None
    psu: str | None = None
    case: str | None = None
    cooler: str | None = None
    owned: tuple[str, ...] = ()
    memory_gib: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    """Default: of the kits under ``memory``, where those are named."""
    memory: tuple[Kit, ...] = ()
    drives: tuple[Drive, ...] = ()
    circuit: CircuitName | None = None
    """Of the wall outlet: what the power supply may draw is held against it."""
    risers: bool = False
    """Whether cards hang on riser cables: an open frame."""
    bridge_slots: Annotated[int, Field(ge=2, le=4)] | None = None
    """Distance of two cards that an NVLink bridge joins, in slots. Default: no bridge."""
    system: System = "linux"

    @field_validator("cloud")
    @classmethod
    def _is_rented(cls, name: str | None) -> str | None:
        try:
            return None if name is None else instance(name).name
        except UserError as error:
            said = {"problem": error.message}
            raise PydanticCustomError("machine.unknown-cloud", "no such one", said) from None

    @model_validator(mode="after")
    def _local_or_gpus(self) -> Self:
        if self.cloud is not None:
            self._take_over(self.cloud)
        elif self.local == bool(self.gpus):
            raise PydanticCustomError(
                "machine.local-or-gpus", "either GPUs under gpus, cloud, or local: true"
            )
        if self.nodes > 1 and self.network is None:
            raise PydanticCustomError("machine.network", "several nodes, and no network")
        return self

    def _take_over(self, name: str) -> None:
        """Fill in what a cloud's computer has; as what nobody set, it stays out of files."""
        rented = instance(name)
        gpus = (GpuChoice(id=rented.gpu, count=rented.gpus),)
        odd = [key for key in self.model_fields_set if key not in _RENTED and getattr(self, key)]
        if odd or self.gpus not in ((), gpus):
            keys = [f"machine.{key}" for key in sorted(odd) or ["gpus"]]
            raise PydanticCustomError(
                "machine.cloud-parts", "cloud names the parts", {"name": name, "keys": keys}
            )
        found: dict[str, object] = {"gpus": gpus}
        found["memory_gib"] = self.memory_gib or rented.memory_gib
        if self.nodes > 1 and self.network is None and rented.network is not None:
            found["network"] = Network.model_validate(rented.network.model_dump())
        for key, value in found.items():
            object.__setattr__(self, key, value)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values, which leaves the cloud where its parts change."""
        values = dict(update or {})
        changed = {key for key, value in values.items() if value != getattr(self, key)}
        if self.cloud is not None and changed - {"nodes", "network", "memory_gib", "system"}:
            own = {"gpus": self.gpus, "memory_gib": self.memory_gib, "network": self.network}
            values = {"cloud": None} | own | values
        return super().model_copy(update=values, deep=deep)

    @property
    def fixed(self) -> bool:
        """Whether nobody chooses its parts: those of this computer, or of a cloud's."""
        return self.local or self.cloud is not None

    @property
    def gpu_count(self) -> int:
        """GPUs of all computers; 0 for the computer that the program runs on."""
        return self.nodes * sum(gpu.count for gpu in self.gpus)
