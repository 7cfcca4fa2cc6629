"""A model to trace, without memory, and how it is fed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import step
import torch
from refusal import Refusal
from torch import nn

Make = Callable[[int, int], step.Batch]
"""(batch, sequence) -> a batch on the host."""


@dataclass
class Subject:
    """A model to trace, still without memory, and how it is fed."""

    model: nn.Module
    batch: Make
    loss: step.Loss
    facts: dict[str, Any] = field(default_factory=dict)
    head: nn.Module | None = None
    reference: nn.Module | None = None
    """A frozen copy, which only the loss runs."""
    policy: Any = None
    """What writes and scores the answers that it trains on (``policy.py``); None without one."""
    config: Any = None
    decodes: bool = False
    """Whether it generates with a cache of keys and values."""
    counts: bool = False
    """Whether what it makes depends on whole numbers of its batch."""
    longest: int = 0
    """Largest sequence that its position table has, 0 where there is none."""
    fixed: tuple[nn.Parameter, ...] = ()
    """Parameters that its training leaves as they are."""
    assumed: dict[str, int] = field(default_factory=dict)
    """Id of a message and its count: what was decided where the step depends on data."""


def images(name: str, channels: int, pixels: int) -> Make:
    """Return what makes batches of square images with a class each."""

    def batch(size: int, length: int) -> step.Batch:
        pictures = torch.zeros((size, channels, pixels, pixels))
        return step.Batch({name: pictures}, torch.zeros((size,), dtype=torch.int64))

    return batch


def check_multiple(pixels: int, unit: int) -> None:
    """Check that a size is whole in what a network divides it into.

    Raises:
        Refusal: it is not; names the nearest that are.
    """
    if pixels % unit:
        below = pixels // unit * unit
        near = ", ".join(str(size) for size in (below, below + unit) if size)
        raise Refusal("worker.image-multiple", size=pixels, unit=unit, near=near)


def package(name: str, source: str) -> Any:
    """Return the imported package.

    Raises:
        Refusal: it is not installed.
    """
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Refusal("worker.package-missing", package=name, source=source) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, shortened."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{type(error).__name__}: {lines[0]}"[:300]
