"""How much of a GPU's peaks each class of operators reaches: data with sources."""

import json
from functools import cache

from pydantic import BaseModel, ConfigDict, Field

from trainwright.catalog import GpuRecord
from trainwright.data import resources


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Constant(_Entry):
    """One number of the calibration, in base units."""

    value: float = Field(gt=0)
    source: str


class ClassEfficiency(_Entry):
    """What a class of operators reaches on large shapes."""

    compute: float = Field(gt=0, le=1)
    """Share of the dense peak."""
    memory: float = Field(gt=0, le=1)
    """Share of the DRAM bandwidth."""
    half_m: float = Field(ge=0)
    """Rows of the product at which half of the compute share is reached; so for n and k."""
    half_n: float = Field(ge=0)
    half_k: float = Field(ge=0)
    source: str


class Efficiency(_Entry):
    """Everything that the time of a step assumes beside the data sheet."""

    version: int
    stated: str
    interval_factor: Constant
    """The 90 % interval of a time is time / factor to time * factor."""
    classes: dict[str, ClassEfficiency]
    channels_last: dict[str, ClassEfficiency]
    """Classes that reach something else in that layout."""
    ceilings: dict[str, Constant]
    """Architecture (and segment) -> factor on every compute share."""
    unknown_ceiling: Constant
    kernel_floor_s: Constant
    host_s_per_kernel: Constant
    layout_traffic: dict[str, Constant]
    causal_share: Constant
    compile_memory: Constant
    compile_launches: Constant
    power_exponent: Constant
    host_memory_bytes_per_s: Constant
    """What an optimizer on the CPU reaches."""

    def ceiling(self, gpu: GpuRecord) -> Constant:
        """Return the factor for the GPU's generation."""
        family = gpu.architecture.split()[0].rstrip("0123456789") or gpu.architecture
        names = [f"{family} datacenter"] if gpu.segment == "datacenter" else []
        for name in (*names, family):
            if name in self.ceilings:
                return self.ceilings[name]
        return self.unknown_ceiling


@cache
def load() -> Efficiency:
    """Return the shipped calibration."""
    text = resources("calibration", "steptime.json").read_text(encoding="utf-8")
    return Efficiency.model_validate(json.loads(text))
