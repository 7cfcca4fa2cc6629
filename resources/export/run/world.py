"""This process among those that train together."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class World:
    """Its number, how many there are, and the device of this one."""

    rank: int
    size: int
    device: torch.device
    parts: int = 1
    """Processes that split every layer, or have a stage each; they take the same samples."""
    apart: bool = False
    """Whether these lie apart, as stages do, and next to each other those that add up gradients."""

    @property
    def group(self) -> int:
        """Number of this process's samples among those that are taken at once."""
        return self.rank % self.groups if self.apart else self.rank // self.parts

    @property
    def groups(self) -> int:
        """Processes, or groups of them, that take samples of their own."""
        return self.size // self.parts

    def total(self, *values: float) -> list[float]:
        """Return each value, added up over all processes."""
        if self.size == 1:
            return [*values]
        sums = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(sums)
        return sums.tolist()

    def gathered(self, own: Any) -> list[Any]:
        """Return the object of each process, in the order of their numbers."""
        objects = [own] * self.size
        if self.size > 1:
            dist.all_gather_object(objects, own)
        return objects

    def wait(self) -> None:
        """Wait until all processes have come here."""
        if self.size > 1:
            dist.barrier()

    def leave(self) -> None:
        """Take leave of the others."""
        if self.size > 1:
            dist.destroy_process_group()
