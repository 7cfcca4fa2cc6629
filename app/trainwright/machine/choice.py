"""The machine as a plan names it; ``resolve`` looks the names up."""

from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from trainwright.machine.build import CircuitName, System
from trainwright.machine.network import Network
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


class MachineChoice(Frozen):
    """The machine as a person names it: ids, or ``local: true``."""

    local: bool = False
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

    @model_validator(mode="after")
    def _local_or_gpus(self) -> Self:
        if self.local == bool(self.gpus):
            raise PydanticCustomError(
                "machine.local-or-gpus", "either GPUs under gpus, or local: true"
            )
        if self.nodes > 1 and self.network is None:
            raise PydanticCustomError("machine.network", "several nodes, and no network")
        return self

    @property
    def gpu_count(self) -> int:
        """GPUs of all computers; 0 for the computer that the program runs on."""
        return self.nodes * sum(gpu.count for gpu in self.gpus)
