"""Device memory of a training step: what lives when, what the allocator reserves, who holds it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainwright.explain import Quantity


@dataclass(frozen=True, slots=True)
class Curve:
    """Live bytes over one steady step, by term; for the chart."""

    position: NDArray[np.int64]
    """Event number; (n,)."""
    live: NDArray[np.int64]
    """Bytes of each term after each event; (terms, n), rows as ``terms``."""
    terms: tuple[str, ...]
    """Categories, in stacking order."""
    phases: tuple[tuple[str, int, int], ...]
    """(phase, first event, event after the last)."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """The memory side of a report; every figure is of one GPU."""

    allocated_peak: Quantity
    """torch.cuda.max_memory_allocated; its parts are the terms and sum to it exactly."""
    reserved_peak: Quantity
    """torch.cuda.max_memory_reserved, by replay."""
    device_used: Quantity
    """Reserved, context, and what the display and other programs hold."""
    device_used_p95: Quantity
    """The verdict is decided on this."""
    device_total: Quantity
    free: Quantity
    """Total less used; negative when it does not fit."""
    out_of_memory: bool
    """Whether the replay with the capacity as limit failed, as torch would."""
    curve: Curve
    derivation: Quantity
    """The textbook line with this model's numbers, and below it every term."""

    @property
    def terms(self) -> tuple[Quantity, ...]:
        """What the allocated peak is made of."""
        return self.allocated_peak.parts
