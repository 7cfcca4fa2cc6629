"""The plan file's shape. One plan is workload x machine x settings, and nothing else."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator
from pydantic_core import PydanticCustomError

from trainwright.catalog.part_records import FormFactor
from trainwright.machine.build import CircuitName
from trainwright.machine.choice import Drive, GpuChoice, MachineChoice
from trainwright.plan.chosen import Chosen, check
from trainwright.workload import ModelSource, Settings, Workload
from trainwright.workload.settings import Frozen

__all__ = [
    "SCHEMA",
    "Drive",
    "GpuChoice",
    "Limits",
    "MachineChoice",
    "Plan",
    "PlannedRates",
    "PlannedWishes",
]

SCHEMA: Literal[1] = 1


class PlannedWishes(Frozen):
    """What a computer to buy must keep to, beside the money; a missing key is free."""

    used: bool | None = None
    """Whether used parts may be chosen. Default: false."""
    form: FormFactor | None = None
    """Largest form factor of the board. Default: any."""
    quiet: bool | None = None
    """Whether it stands beside somebody: little heat, and no blowers. Default: false."""
    gpus: Annotated[int, Field(ge=1, le=8)] | None = None
    """Exactly so many cards. Default: as many as serve best."""
    circuit: CircuitName | None = None
    """Of the room's wall outlet. Default: the usual one of the currency's country."""
    owned: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = ()
    """Parts that are there already, beside ``machine.owned``: an id, or ``2x ID`` for two."""
    only: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = ()
    """Parts of whose kind no others are chosen: an id. Default: any."""
    without: tuple[Annotated[str, Field(min_length=1, max_length=100)], ...] = ()
    """Parts that are not chosen: an id, or a maker of GPUs. Default: none."""
    expired: bool | None = None
    """Whether prices that are too old count nevertheless. Default: false."""


_RATE = r"^[0-9]{1,9}(\.[0-9]{1,4})? ?(USD|KRW)(/GPU)?$"


class PlannedRates(Frozen):
    """What the use of a computer costs, here and in a cloud."""

    cloud: Annotated[str, Field(pattern=_RATE)] | None = None
    """Of an hour of a like computer in a cloud, or of each of its GPUs: ``0.79 USD/GPU``. Default:
    nothing is compared."""
    usd_per_kwh: Annotated[float, Field(ge=0, le=10)] | None = None
    """Where the budget is in dollars. Default: 0.17, assumed."""
    household_kwh: Annotated[float, Field(ge=0, le=100_000)] | None = None
    """That the household uses a month without the computer: Korean tiers start from it.
    Default: 300, assumed."""


class PlannedWork(Frozen):
    """Another plan, whose work the same computer must do."""

    plan: Annotated[str, Field(min_length=1, max_length=4096)]
    """Its file."""
    times: Annotated[float, Field(ge=0, le=1e6)] = 1.0
    """How often its run is done for one of this plan; 0: it has to fit, and no more. Default: 1."""


class Limits(Frozen):
    """What the search must stay within."""

    budget: Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,2})? ?(USD|KRW)$")] | None = None
    power_w: Annotated[float, Field(gt=0, le=1e7)] | None = None
    deadline_h: Annotated[float, Field(gt=0, le=1e6)] | None = None
    wishes: PlannedWishes = PlannedWishes()
    """Of ``build`` and ``upgrade``."""
    rates: PlannedRates = PlannedRates()
    """By which ``build`` tells what a run costs."""
    also: Annotated[tuple[PlannedWork, ...], Field(max_length=8)] = ()
    """Other work for the computer that ``build`` looks for."""


def _not_blank(name: str) -> str:
    if not name.strip():
        raise PydanticCustomError("plan.problem.blank", "blank")
    return name


class Plan(Frozen):
    """The one document of the application."""

    trainwright: Literal[1] = SCHEMA
    name: Annotated[str, Field(max_length=200), AfterValidator(_not_blank)] = "untitled"
    made_with: dict[str, str] = Field(default_factory=dict)
    model: ModelSource
    workload: Workload
    machine: MachineChoice
    settings: Settings = Settings()
    chosen: dict[Annotated[str, Field(max_length=60)], Chosen] = Field(default_factory=dict)
    """What the search chose for open settings: ``checkpointing``, ``loader.num_workers``."""
    limits: Limits = Limits()

    @field_validator("chosen")
    @classmethod
    def _are_settings(cls, found: dict[str, Chosen]) -> dict[str, Chosen]:
        check(found)
        return found
