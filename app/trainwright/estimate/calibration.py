"""Constants of the memory estimate that no source gives: assumed, or fitted on measured rows."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from trainwright.data import resources

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Range:
    """A middle value with the ends of its 90 % range, in bytes."""

    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class Context:
    """What a process takes outside the allocator, by threads that the GPU can hold."""

    base: float
    """Bytes."""
    per_thread: float
    """Bytes."""
    least: float
    most: float
    """Ends of the 90 % range, relative to the middle."""


@dataclass(frozen=True, slots=True)
class MemoryCalibration:
    """What ``resources/calibration/memory.json`` holds."""

    source: str
    context_source: str
    context: Context
    """CUDA context and loaded kernels."""
    context_elsewhere: Range
    """The same of other makers' GPUs."""
    nccl: Range
    """Buffers of one communicator."""
    convolution_workspace: dict[str, float]
    """Workspace of a cuDNN convolution as a share of the bytes that it reads and writes."""
    relative_sigma: dict[str, float]
    """Residual standard deviation of each term, relative to the term; ``cached`` is what the
    allocator holds beyond blocks in use, ``whole`` is of the whole allocated peak."""
    compile_kept: float
    """Share that torch.compile saves of what it may compute again."""
    z95: float
    """Standard deviations between the estimate and its p95."""


@cache
def memory_calibration() -> MemoryCalibration:
    """Return the constants in use."""
    document = json.loads(resources("calibration", "memory.json").read_text("utf-8"))
    return MemoryCalibration(
        source=document["source"],
        context_source=document["context_source"],
        context=Context(
            base=document["context"]["base_mib"] * MIB,
            per_thread=document["context"]["bytes_per_thread"],
            least=document["context"]["least"],
            most=document["context"]["most"],
        ),
        context_elsewhere=_range(document["context_elsewhere_mib"]),
        nccl=_range(document["nccl_mib"]),
        convolution_workspace=document["convolution_workspace"],
        relative_sigma=document["relative_sigma"],
        compile_kept=document["compile_kept"],
        z95=document["z95"],
    )


def _range(mib: list[Any]) -> Range:
    low, middle, high = (float(value) * MIB for value in mib)
    return Range(low, middle, high)
