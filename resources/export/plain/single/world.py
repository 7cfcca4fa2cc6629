"""The one process that trains, and its device."""

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class World:
    """Plans for several GPUs have a number of each process here, and how many there are."""

    device: torch.device
    rank: int = 0
    size: int = 1
    group: int = 0
    groups: int = 1

    def total(self, *values: float) -> list[float]:
        """Return the values: there is nothing to add up."""
        return [*values]

    def gathered(self, own: Any) -> list[Any]:
        """Return the object of each process."""
        return [own]

    def wait(self) -> None:
        """There is nobody to wait for."""

    def leave(self) -> None:
        """There is nobody to take leave of."""
