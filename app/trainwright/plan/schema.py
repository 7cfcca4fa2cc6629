"""The plan file's shape. One plan is workload x machine x settings, and nothing else."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from trainwright.workload import ModelSource, Settings, Workload
from trainwright.workload.settings import Frozen

SCHEMA: Literal[1] = 1


class GpuChoice(Frozen):
    """A GPU by catalog id, name or alias."""

    id: str
    count: Annotated[int, Field(ge=1, le=64)] = 1
    power_limit_w: Annotated[float, Field(gt=0, le=10_000)] | None = None
    reserved_mib: Annotated[float, Field(ge=0, le=10_000_000)] | None = None
    """Held by the display and other programs. Default: by system and segment, assumed."""
    mig: str | None = None


class Drive(Frozen):
    """A drive by catalog id."""

    id: str


class MachineChoice(Frozen):
    """The machine as a person names it: ids, or ``local: true``."""

    local: bool = False
    gpus: tuple[GpuChoice, ...] = ()
    cpu: str | None = None
    board: str | None = None
    psu: str | None = None
    case: str | None = None
    cooler: str | None = None
    owned: tuple[str, ...] = ()
    memory_gib: Annotated[float, Field(gt=0, le=1_000_000)] | None = None
    drives: tuple[Drive, ...] = ()
    system: Literal["linux", "windows", "macos"] = "linux"

    @model_validator(mode="after")
    def _local_or_gpus(self) -> Self:
        if self.local == bool(self.gpus):
            raise PydanticCustomError(
                "plan.problem.local-or-gpus", "either GPUs under gpus, or local: true"
            )
        return self


class Limits(Frozen):
    """What the search must stay within."""

    budget: Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,2})? ?(USD|KRW)$")] | None = None
    power_w: Annotated[float, Field(gt=0)] | None = None
    deadline_h: Annotated[float, Field(gt=0)] | None = None


class Plan(Frozen):
    """The one document of the application."""

    trainwright: Literal[1] = SCHEMA
    name: Annotated[str, Field(max_length=200)] = "untitled"
    made_with: dict[str, str] = Field(default_factory=dict)
    model: ModelSource
    workload: Workload
    machine: MachineChoice
    settings: Settings = Settings()
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _training_needs_a_batch(self) -> Self:
        if self.workload.trains and self.workload.effective_batch is None:
            raise PydanticCustomError(
                "plan.problem.effective-batch", "workload.effective_batch is required"
            )
        return self
