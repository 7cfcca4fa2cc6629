"""How much of a GPU's peaks each class of operators reaches: data with sources."""

import json
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

import numpy as np
from pydantic import Field

from trainwright.catalog import GpuRecord
from trainwright.data import resources
from trainwright.estimate.calibration_file import Entry, Positive
from trainwright.estimate.time.kernels import CLASSES
from trainwright.profile.profile import Floats
from trainwright.workload.settings import Framework

MOST_COMPUTE, MOST_MEMORY = 1.05, 0.95
"""Shares that no kernel exceeds: boost clocks lie a little above the data sheet's, and refresh and
row changes take their part of a memory's time (assumed; the best copies reach 0.91)."""


class ClassEfficiency(Entry):
    """What a class of operators reaches on large shapes."""

    compute: float = Field(gt=0, le=MOST_COMPUTE)
    """Share of the dense peak."""
    memory: float = Field(gt=0, le=1)
    """Share of the DRAM bandwidth."""
    half_m: float = Field(ge=0)
    """Rows of the product at which half of the compute share is reached; so for n and k."""
    half_n: float = Field(ge=0)
    half_k: float = Field(ge=0)
    odd: float = Field(default=1, gt=0, le=1)
    """Factor on the compute share where channels are not a multiple of 8."""
    again: float = Field(default=0, ge=0)
    """How often a product's activations are moved beyond once: what the cache cannot hold of
    the operands is read for several tiles."""
    source: str


class Spread(Entry):
    """What the interval of a time is made of; deviations are of its logarithm."""

    work: dict[str, float]
    """Kind of work (``spread.GROUPS``) -> deviation where a step does nothing else."""
    quantile: Positive
    """The 90th percentile of deviations over what their mix lets expect."""
    stack: Positive
    """At 90 %, for another version of the framework than the rows'."""
    evidence: dict[Literal["gpu", "generation", "none"], Positive]
    """At 90 %, for a GPU with rows, with rows of its generation, or without."""
    gpus: tuple[str, ...]
    generations: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """The efficiency table of one layout as arrays over ``CLASSES``."""

    compute: Floats
    memory: Floats
    half: Floats
    """(3, classes): m0, n0, k0."""
    odd: Floats
    again: Floats
    smoothing: float
    gap: float
    """Seconds between two kernels."""
    transposes: float
    """Share of a dense convolution's activations that is moved again."""


class Efficiency(Entry):
    """Everything that the time of a step assumes beside the data sheet."""

    version: int
    stated: str
    spread: Spread
    classes: dict[str, ClassEfficiency]
    channels_last: dict[str, ClassEfficiency]
    """Classes that reach something else in that layout."""
    ceilings: dict[str, Positive]
    """Architecture (and segment) -> factor on every compute share."""
    attention_ceilings: dict[str, Positive]
    """Architecture -> further factor on fused attention, whose kernels are for other GPUs."""
    unknown_ceiling: Positive
    kernel_gap_s: Positive
    smoothing: Positive
    """The power p of (compute^p + memory^p)^(1/p)."""
    framework: dict[Framework, Positive]
    """Factor on the kernels' time, as far as physics allows: rows that train are of the first."""
    host_s_per_kernel: Positive
    layout_traffic: dict[str, Positive]
    causal_share: Positive
    compile_memory: Positive
    compile_launches: Positive
    host_memory_bytes_per_s: Positive
    """What an optimizer on the CPU reaches."""

    def curves(self, *, channels_last: bool, framework: Framework = "torch-2.4") -> Curves:
        """Return the table of a layout."""
        return self._tables[channels_last, framework]

    @cached_property
    def _tables(self) -> dict[tuple[bool, Framework], Curves]:
        return {
            (layout, framework): _curves(self, layout, factor.value)
            for layout in (False, True)
            for framework, factor in self.framework.items()
        }

    def ceiling(self, gpu: GpuRecord) -> Positive:
        """Return the factor for the GPU's generation."""
        return _of_generation(self.ceilings, gpu) or self.unknown_ceiling

    def attention_ceiling(self, gpu: GpuRecord) -> float:
        """Return the further factor on fused attention."""
        found = _of_generation(self.attention_ceilings, gpu)
        return found.value if found is not None else 1.0


def _of_generation(known: dict[str, Positive], gpu: GpuRecord) -> Positive | None:
    family = gpu.architecture.split()[0].rstrip("0123456789") or gpu.architecture
    names = [f"{family} datacenter"] if gpu.segment == "datacenter" else []
    return next((known[name] for name in (*names, family) if name in known), None)


def _curves(efficiency: Efficiency, channels_last: bool, factor: float) -> Curves:
    known = efficiency.classes | (efficiency.channels_last if channels_last else {})
    entries = [known.get(name, known["other"]) for name in CLASSES]
    layout = efficiency.layout_traffic["channels_last" if channels_last else "channels_first"]
    return Curves(
        compute=np.minimum([entry.compute / factor for entry in entries], MOST_COMPUTE),
        memory=np.minimum([entry.memory / factor for entry in entries], MOST_MEMORY),
        half=np.array([[entry.half_m, entry.half_n, entry.half_k] for entry in entries]).T,
        odd=np.array([entry.odd for entry in entries]),
        again=np.array([entry.again for entry in entries]),
        smoothing=efficiency.smoothing.value,
        gap=efficiency.kernel_gap_s.value,
        transposes=layout.value,
    )


@cache
def load() -> Efficiency:
    """Return the shipped calibration."""
    text = resources("calibration", "steptime.json").read_text(encoding="utf-8")
    return Efficiency.model_validate(json.loads(text))
