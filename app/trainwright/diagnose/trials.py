"""Experiments on a run: one thing changed, and what that did."""

from typing import Annotated, Literal

from pydantic import Field

from trainwright.workload.settings import Frozen

Changed = Literal[
    "batch", "accumulation", "sequence-length", "model-size", "workers", "prefetch",
    "pinned-memory", "synthetic-data", "cached-data", "augmentation", "drive", "threads",
    "affinity", "quota", "other-programs", "devices", "nodes", "link", "backend", "bucket",
    "precision", "tf32", "channels-last", "compile", "graphs", "attention", "cudnn-benchmark",
    "shapes", "padding", "offloading", "checkpointing", "empty-cache", "garbage-collection",
    "allocator", "synchronisation", "logging", "checkpoints", "evaluation", "profiler",
    "anomaly-detection", "power-limit", "cooling", "slice", "gpu", "cpu",
]  # fmt: skip
"""What was changed. ``devices``: their number, with the same samples for each (factor 0.125: one in
place of eight). Without a factor ``other-programs``, ``offloading``, ``synchronisation``,
``logging``, ``checkpoints``, ``evaluation``, ``profiler``, ``empty-cache``, ``augmentation`` and
``padding`` were taken out; ``synthetic-data``, ``cached-data``, ``compile``, ``graphs``,
``channels-last`` and ``cudnn-benchmark`` were put in. ``gpu``, ``cpu``: another model of it."""


class Trial(Frozen):
    """The run with one thing changed and nothing else, against the run as it is.

    It says more than ``Experiments``: any factor, any thing, and rates where no step was timed.
    """

    changed: Changed
    factor: Annotated[float, Field(gt=0)] | None = None
    """How many times as much of it: 4, the batch four times as large; 0.5, half the workers.
    Absent: switched the other way, or taken out."""
    to: Annotated[str, Field(max_length=200)] = ""
    """What it was changed to: ``8``, ``bf16``, ``another computer``."""
    step_times: Annotated[float, Field(gt=0)] | None = None
    """Seconds a step over those of the run as it is: 0.5 is half the time."""
    rate_times: Annotated[float, Field(gt=0)] | None = None
    """Samples or tokens a second on each device, over those of the run as it is: 2 is twice as
    many."""
    utilisation: Annotated[float, Field(ge=0, le=1)] | None = None
    """The GPU's in the changed run."""
