"""Models and data of the twenty-first round's first runs, from staircases to volcanoes: see
``programs21.py``."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Staircases


class Added(torch.autograd.Function):
    """What both ranks have, added up; on the way back slopes are added up as well."""

    @staticmethod
    def forward(context: Any, mine: Tensor) -> Tensor:
        both = mine.clone()
        dist.all_reduce(both)
        return both

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        both = slope.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(both)
        return both


class Landing(torch.autograd.Function):
    """The tread of the other flight that lies next to this one."""

    @staticmethod
    def forward(context: Any, mine: Tensor) -> Tensor:
        return changed_over(mine)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return changed_over(slope)


def changed_over(mine: Tensor) -> Tensor:
    """Return what the other rank has in this one's place."""
    mine = mine.contiguous()
    both = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(both, mine)
    return both[1 - dist.get_rank()]


class Riser(nn.Module):
    """Each tread heeds the two beside it; a staircase is then evened out over all its treads."""

    def __init__(self, width: int, apart: bool) -> None:
        super().__init__()
        self.apart = apart
        self.beside = nn.Conv1d(width, width, 3)
        self.scale = nn.Parameter(torch.ones(width, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale * self.evened(self.beside(self.with_ends(x))).relu()

    def with_ends(self, x: Tensor) -> Tensor:
        """Return a flight with what lies below it and above it."""
        nothing = torch.zeros_like(x[..., :1])
        if not self.apart:
            return torch.cat([nothing, x, nothing], 2)
        if dist.get_rank() == 0:
            return torch.cat([nothing, x, Landing.apply(x[..., -1:])], 2)
        return torch.cat([Landing.apply(x[..., :1]), x, nothing], 2)

    def evened(self, x: Tensor) -> Tensor:
        """Return the treads less their mean, by how far they are from it."""
        sums, count = torch.stack([x.sum(2), x.square().sum(2)]), x.shape[2]
        if self.apart:
            sums, count = Added.apply(sums), 2 * count
        mean, square = sums[..., None] / count
        return (x - mean) * (square - mean.square()).clamp_min(0).add(1e-5).rsqrt()


class Staircase(nn.Module):
    """How worn each tread of a staircase is; one rank may have the lower flight of all."""

    def __init__(self, apart: bool, width: int = 24, risers: int = 8) -> None:
        super().__init__()
        self.apart = apart
        self.measured = nn.Conv1d(5, width, 1)
        self.risers = nn.Sequential(*(Riser(width, apart) for _ in range(risers)))
        self.worn = nn.Conv1d(width, 1, 1)

    def forward(self, stairs: Tensor) -> Tensor:
        return self.worn(self.risers(self.measured(self.own(stairs))))

    def own(self, stairs: Tensor) -> Tensor:
        """Return the treads that this rank has."""
        return stairs.chunk(2, 2)[dist.get_rank()] if self.apart else stairs


def staircases(count: int = 800, treads: int = 32) -> TensorDataset:
    """Return random measures of treads, and how worn these are."""
    return TensorDataset(torch.randn(count, 5, treads), torch.rand(count, 1, treads))


def halved(model: nn.Module) -> None:
    """Take the mean of both ranks' slopes, all of them in one piece."""
    slopes = [each.grad for each in model.parameters() if each.grad is not None]
    whole = torch.cat([each.flatten() for each in slopes])
    dist.all_reduce(whole)
    whole /= 2
    for slope, part in zip(slopes, whole.split([each.numel() for each in slopes]), strict=True):
        slope.copy_(part.view_as(slope))


# Amber


class Amber(nn.Module):
    """Two spectra of a piece of amber are told alike, and what is told of them apart."""

    def __init__(self, apart: bool, bands: int = 120, width: int = 256, traits: int = 832) -> None:
        super().__init__()
        self.apart = apart
        self.told = nn.Sequential(
            nn.Linear(bands, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, traits),
            nn.BatchNorm1d(traits, affine=False),
        )

    def forward(self, spectra: Tensor) -> Tensor:
        first, second = (self.told(each) for each in spectra.unbind(1))
        alike = first.T @ second / len(spectra)
        if self.apart:
            alike = Added.apply(alike) / 2
        own = alike.diagonal()
        others = alike.square().sum() - own.square().sum()
        return (1 - own).square().sum() + 0.005 * others


def amber(part: int, count: int = 1200) -> TensorDataset:
    """Return two noisy spectra of each random piece of amber that a rank has."""
    chance = torch.Generator().manual_seed(503 + part)
    pieces = torch.randn(count, 1, 120, generator=chance)
    return TensorDataset(pieces + 0.3 * torch.randn(count, 2, 120, generator=chance))


# Oases


class Oasis(nn.Module):
    """How much water an oasis has, by how it looked in eight bands in each month of a year."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.months = nn.Linear(96, width)
        self.wells = nn.Linear(width, width)
        self.normed = nn.LayerNorm(width)
        self.water = nn.Linear(width, 1)

    def forward(self, seen: Tensor) -> Tensor:
        x = functional.leaky_relu(self.months(seen.flatten(1)))
        return self.water(self.normed(x + functional.leaky_relu(self.wells(x))))[:, 0]


def oases(count: int = 3000) -> TensorDataset:
    """Return random looks at oases, and how much water these had."""
    return TensorDataset(torch.rand(count, 12, 8), torch.rand(count))


# Kilns


class Kiln(nn.Module):
    """How a kiln's load comes out, by its three thermometers."""

    def __init__(self, width: int = 48, fates: int = 4) -> None:
        super().__init__()
        self.heard = nn.Conv1d(3, width, 5, 2)
        self.first = nn.GroupNorm(4, width)
        self.joined = nn.Conv1d(width, 2 * width, 5, 2)
        self.second = nn.GroupNorm(4, 2 * width)
        self.fired = nn.Sequential(
            nn.Linear(2 * width, 256), nn.SELU(), nn.Linear(256, 256), nn.SELU()
        )
        self.fate = nn.Linear(256, fates)

    def forward(self, heat: Tensor) -> Tensor:
        x = functional.silu(self.first(self.heard(heat)))
        x = functional.silu(self.second(self.joined(x)))
        return self.fate(self.fired(x.mean(2)))


def kilns(count: int = 1200, minutes: int = 128) -> TensorDataset:
    """Return random curves of kilns' heat, and how their loads came out."""
    return TensorDataset(torch.randn(count, 3, minutes).cumsum(2) / 8, torch.randint(4, (count,)))


def to_the_last_digit(model: nn.Module) -> None:
    """Show each other all slopes in double precision, and take the mean, the same on both ranks."""
    for weight in model.parameters():
        assert weight.grad is not None
        mine = weight.grad.double()
        both = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(both, mine)
        weight.grad.copy_((both[0] + both[1]) / 2)


# Snowmen


class Snowman(nn.Module):
    """How much water a snowman leaves: hour after hour, until the last one has melted."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.begins = nn.Linear(1, width)
        self.hour = nn.GRUCell(3, width)
        self.water = nn.Linear(width, 1)

    def forward(self, snow: Tensor, weather: Tensor) -> Tensor:
        state = self.begins(snow[:, None] / 24).tanh()
        for hour in weather.unbind(1):
            there = snow > 0
            if not there.any():
                break
            state = torch.where(there[:, None], self.hour(hour, state), state)
            snow = snow - hour[:, 0].clamp_min(0)
        return self.water(state)[:, 0]


def snowmen(warm: float, count: int = 1200, hours: int = 48) -> TensorDataset:
    """Return the snow of snowmen, the weather of their hours, and what water they left."""
    chance = torch.Generator().manual_seed(509)
    snow = 20 + 4 * torch.rand(count, generator=chance)
    weather = torch.rand(count, hours, 3, generator=chance)
    weather[..., 0] = warm * (0.9 + 0.2 * weather[..., 0])
    return TensorDataset(snow, weather, snow / 24 + 0.1 * torch.rand(count, generator=chance))
