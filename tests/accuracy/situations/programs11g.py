"""Models and data of the eleventh round's bakeries, dunes, alloys, hail and retinas."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import TensorDataset

# Bakeries


class Orders(nn.Module):
    """How many loaves a bakery sells in the week to come: by days, by kinds of bread, by both."""

    def __init__(self, days: int = 56, breads: int = 24, width: int = 640) -> None:
        super().__init__()
        self.bakery = nn.Embedding(2000, breads)
        self.days = nn.Sequential(nn.Linear(days, 96), nn.SELU(), nn.Linear(96, days))
        self.breads = nn.Sequential(nn.Linear(breads, 96), nn.SELU(), nn.Linear(96, breads))
        self.week = nn.Sequential(
            nn.Linear(days * breads, width), nn.SELU(), nn.Linear(width, 7 * breads)
        )

    def forward(self, sold: Tensor) -> Tensor:
        bakery, x = sold[:, 0, 0].long(), sold[:, 1:]
        x = x + self.bakery(bakery)[:, None]
        x = x + self.days(x.transpose(1, 2)).transpose(1, 2)
        x = x + self.breads(x)
        return self.week(x.flatten(1)).unflatten(1, (7, -1))


def bakeries(count: int = 4096) -> TensorDataset:
    """Return which bakery it is and what it sold in eight weeks, and what in the next."""
    sold = torch.rand(count, 57, 24)
    sold[:, 0, 0] = torch.randint(2000, (count,)).float()
    return TensorDataset(sold, torch.rand(count, 7, 24))


class SwappedAdamW(torch.optim.Optimizer):
    """AdamW whose moments are in a file, of which those of one weight are in memory at a time."""

    def __init__(self, weights: Iterator[Tensor], path: Path, lr: float) -> None:
        super().__init__(weights, {"lr": lr})
        self.updates, self.every = 0, self.param_groups[0]["params"]
        path.write_bytes(bytes(8 * sum(weight.numel() for weight in self.every)))
        self.file = path.open("r+b", buffering=0)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update one weight after the other, with the moments that the file holds of it."""
        self.updates += 1
        lr, slow, slower = self.param_groups[0]["lr"], 0.9, 0.999
        place = 0
        for weight in self.every:
            moments = torch.empty(2, *weight.shape)
            os.preadv(self.file.fileno(), [moments.numpy()], place)
            mean, square = moments
            mean.lerp_(weight.grad, 1 - slow)
            square.mul_(slower).addcmul_(weight.grad, weight.grad, value=1 - slower)
            spread = (square / (1 - slower**self.updates)).sqrt_().add_(1e-8)
            weight.mul_(1 - 0.01 * lr)
            weight.addcdiv_(mean, spread, value=-lr / (1 - slow**self.updates))
            place += os.pwrite(self.file.fileno(), moments.numpy(), place)
        os.fdatasync(self.file.fileno())  # what waits in the cache counts as the run's memory
        os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# Dunes


class Crests(nn.Module):
    """Where the crests of dunes are, by the heights around: nearer and wider looks, added up."""

    def __init__(self, width: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv2d(2, width, 3, padding=1)
        self.looks = nn.ModuleList(
            nn.Sequential(
                nn.GroupNorm(4, width),
                nn.SiLU(),
                nn.Conv2d(width, width, 2 * apart + 1, padding=apart),
            )
            for apart in range(1, depth + 1)
        )
        self.crest = nn.Conv2d(width, 1, 1)

    def forward(self, heights: Tensor) -> Tensor:
        x = self.enter(heights)
        for look in self.looks:
            x = x + look(x)
        return self.crest(x)


def deserts(count: int = 512, side: int = 48) -> TensorDataset:
    """Return heights and slopes of squares of desert, and where the crests are."""
    return TensorDataset(
        torch.randn(count, 2, side, side), torch.rand(count, 1, side, side).round()
    )


def spilling(folder: Path) -> tuple[Callable[[Tensor], Any], Callable[[Any], Tensor]]:
    """Return what writes an activation to a file and what reads it again."""
    numbers = iter(range(10**9))

    def spill(tensor: Tensor) -> Any:
        if isinstance(tensor, nn.Parameter) or tensor.numel() < 4096:
            return tensor
        path = folder / f"act-{next(numbers)}.npy"
        with path.open("wb") as file:
            np.save(file, tensor.numpy())
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return path

    def fill(spilt: Any) -> Tensor:
        if isinstance(spilt, Tensor):
            return spilt
        tensor = torch.from_numpy(np.load(spilt))
        spilt.unlink()
        return tensor

    return spill, fill


# Alloys


class Angles(nn.Module):
    """What an atom hears of its neighbours: how far they are, and how the others lie about them."""

    def __init__(self, width: int, reach: float, powers: int = 5) -> None:
        super().__init__()
        self.reach, self.powers = reach, powers
        self.weigh = nn.Sequential(nn.Linear(powers + 8, width), nn.SiLU(), nn.Linear(width, width))
        self.after = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        weights = self.weigh(self.described(places))
        return x + self.after((weights * x[:, None]).mean(2))

    @torch.no_grad()
    def described(self, places: Tensor) -> Tensor:
        """Return numbers of each pair of atoms, which do not change when the alloy is turned."""
        apart = places[:, :, None] - places[:, None]
        far = apart.norm(dim=3) + 1e-3
        felt = 0.5 * (torch.pi * far / self.reach).cos() + 0.5
        felt = felt * (far < self.reach)
        cosine = torch.einsum("bijx,bikx->bijk", apart / far[..., None], apart / far[..., None])
        turned = [
            ((0.5 + 0.5 * cosine) ** 2**each * felt[:, :, None]).sum(3)
            for each in range(self.powers)
        ]
        shells = (-4 * (far[..., None] - torch.linspace(0, self.reach, 8)).square()).exp()
        return torch.cat([torch.stack(turned, 3), shells * felt[..., None]], 3)


class Alloy(nn.Module):
    """The energy of an alloy by its atoms; each layer may be recomputed, and all of them too."""

    def __init__(self, again: bool, width: int = 24, depth: int = 3) -> None:
        super().__init__()
        self.again, self.metal = again, nn.Embedding(12, width)
        self.layers = nn.ModuleList(Angles(width, 3.0 + each) for each in range(depth))
        self.energy = nn.Linear(width, 1)

    def forward(self, atoms: Tensor) -> Tensor:
        x, places = self.metal(atoms[..., 0].long()), atoms[..., 1:]
        if self.again:
            x = checkpoint(self.heard, x, places, use_reentrant=False)
        else:
            x = self.heard(x, places)
        return self.energy(x)[..., 0].sum(1)

    def heard(self, x: Tensor, places: Tensor) -> Tensor:
        """Return what each atom has heard after all layers."""
        for layer in self.layers:
            x = (
                checkpoint(layer, x, places, use_reentrant=False)
                if self.again
                else layer(x, places)
            )
        return x


def alloys(count: int = 1024, atoms: int = 32) -> TensorDataset:
    """Return metals and places of atoms, and the energies."""
    metals = torch.randint(12, (count, atoms, 1)).float()
    return TensorDataset(
        torch.cat([metals, 8 * torch.rand(count, atoms, 3)], 2), torch.randn(count)
    )


# Hail


class Hail(nn.Module):
    """How large hailstones will be, by what a radar sees at each height above the ground."""

    def __init__(self, heights: int = 18, width: int = 1024) -> None:
        super().__init__()
        self.columns = nn.Sequential(
            nn.Conv2d(heights, 24, 1), nn.LeakyReLU(0.1), nn.Conv2d(24, 24, 3, 2, 1)
        )
        self.storm = nn.Sequential(
            nn.Flatten(),
            nn.Linear(24 * 64, width),
            nn.LeakyReLU(0.1),
            nn.Dropout(0.1),
            nn.Linear(width, width),
            nn.LeakyReLU(0.1),
        )
        self.size, self.spread = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, seen: Tensor) -> Tensor:
        storm = self.storm(functional.leaky_relu(self.columns(seen), 0.1))
        return torch.cat([self.size(storm), self.spread(storm)], 1)


def storms(count: int = 2048) -> TensorDataset:
    """Return what a radar saw at 18 heights, 16 by 16 places, and how large the stones were."""
    return TensorDataset(torch.rand(count, 18, 16, 16), 5 * torch.rand(count))


# Retinas


class Retina(nn.Module):
    """How far a disease of the retina is: two eyes through the same layers, then compared."""

    def __init__(self, width: int = 16, grades: int = 5) -> None:
        super().__init__()
        sizes = (3, width, 2 * width, 4 * width, 8 * width)
        self.eye = nn.Sequential(
            *(
                nn.Sequential(nn.Conv2d(into, out, 3, 2, 1), nn.BatchNorm2d(out), nn.ReLU())
                for into, out in itertools.pairwise(sizes)
            ),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.compare = nn.Sequential(
            nn.Linear(64 * width, 1024), nn.ELU(), nn.Dropout(0.3), nn.Linear(1024, 2 * grades)
        )

    def forward(self, eyes: Tensor) -> Tensor:
        both = self.eye(eyes.flatten(0, 1)).view(len(eyes), -1)
        return self.compare(both).unflatten(1, (-1, 2))


def patients(count: int = 512, side: int = 32) -> TensorDataset:
    """Return pictures of both eyes, and the grades of both."""
    return TensorDataset(torch.rand(count, 2, 3, side, side), torch.randint(5, (count, 2)))
