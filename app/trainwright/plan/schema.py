"""The plan file's shape. One plan is workload x machine x settings, and nothing else."""

from typing import Annotated, Literal

from pydantic import Field

from trainwright.machine.choice import Drive, GpuChoice, MachineChoice
from trainwright.workload import ModelSource, Settings, Workload
from trainwright.workload.settings import Frozen

__all__ = ["SCHEMA", "Drive", "GpuChoice", "Limits", "MachineChoice", "Plan"]

SCHEMA: Literal[1] = 1


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
