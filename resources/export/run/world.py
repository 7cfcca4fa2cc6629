"""This process among those that train together."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class World:
    """Its number, how many there are, and the device of this one."""

    rank: int
    size: int
    device: torch.device
