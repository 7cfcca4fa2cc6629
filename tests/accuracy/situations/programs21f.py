"""Models and data of the twenty-first round's last runs, from sunspots to carriages: see
``programs21c.py``."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Sunspots


class Sunspot(nn.Module):
    """How large a flare follows, by the strips into which the disc of the sun is cut."""

    def __init__(self, points: int = 512, width: int = 512, flares: int = 6) -> None:
        super().__init__()
        self.strip, self.flare = nn.Linear(points, width), nn.Linear(width, flares)

    def forward(self, disc: Tensor) -> Tensor:
        return self.flare(self.strip(disc).tanh().mean(1))


def discs(count: int = 800, strips: int = 12, points: int = 512) -> TensorDataset:
    """Return random strips of discs, and the flares that followed."""
    return TensorDataset(torch.randn(count, strips, points), torch.randint(6, (count,)))


def evened(discs: Iterator[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return the next discs, each strip with the same light in all, and the flares."""
    disc, flare = next(discs)
    return (disc - disc.mean(2, keepdim=True)) / disc.std(2, keepdim=True), flare


# Gravel pits


class GravelPit(nn.Module):
    """From which pit gravel is, by what each of its lorries left on the sieves."""

    def __init__(self, sieves: int = 14, width: int = 128, pits: int = 20) -> None:
        super().__init__()
        self.lorry = nn.Sequential(
            nn.Linear(sieves, width),
            nn.Hardswish(),
            nn.Linear(width, width),
            nn.Hardswish(),
            nn.Linear(width, width),
        )
        self.pit = nn.Linear(2 * width, pits)

    def forward(self, left: Tensor) -> Tensor:
        x = self.lorry(left)
        return self.pit(torch.cat([x.mean(1), x.std(1)], 1))


def sieved(count: int = 1600, lorries: int = 24, sieves: int = 14) -> TensorDataset:
    """Return random parts of gravel that are left on sieves, and the pits."""
    parts = torch.rand(count, lorries, sieves)
    return TensorDataset(parts / parts.sum(2, keepdim=True), torch.randint(20, (count,)))


# Horseshoes


class Horseshoe(nn.Module):
    """Which foot a horseshoe is for and how long and wide it is, by the picture of a hoof."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.hoof = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.foot, self.size = nn.Linear(4 * width, 4), nn.Linear(4 * width, 2)

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor]:
        x = self.hoof(picture)
        return self.foot(x), self.size(x)


def hooves(count: int = 600, side: int = 56) -> TensorDataset:
    """Return random pictures of hooves, which feet they are, and the sizes of their shoes."""
    return TensorDataset(
        torch.rand(count, 1, side, side), torch.randint(4, (count,)), torch.rand(count, 2)
    )


# Lagoons


class Lagoon(nn.Module):
    """How salty each place of a lagoon becomes, by tide, wind, rain and depth."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.enter = nn.Conv2d(4, width, 3, padding=1)
        self.near = nn.Conv2d(width, width, 3, padding=1)
        self.far = nn.Conv2d(width, width, 3, padding=3, dilation=3)
        self.salt = nn.Conv2d(width, 1, 1)

    def forward(self, weather: Tensor) -> Tensor:
        x = functional.relu(self.enter(weather))
        x = x + functional.relu(self.near(x)) + functional.relu(self.far(x))
        return self.salt(x)


def lagoons(count: int = 400, down: int = 32, across: int = 48) -> TensorDataset:
    """Return random weather over lagoons, and how salty these became."""
    return TensorDataset(torch.randn(count, 4, down, across), torch.rand(count, 1, down, across))


# Seismographs


class Seismograph(nn.Module):
    """When a shock arrives, by what a seismograph wrote in three directions."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.written = nn.Conv1d(3, width, 11, stride=3, padding=5)
        self.around = nn.Conv1d(width, width, 9, padding=4)
        self.further = nn.Conv1d(width, width, 9, padding=16, dilation=4)
        self.arrives = nn.Conv1d(width, 1, 1)

    def forward(self, written: Tensor) -> Tensor:
        x = functional.silu(self.written(written))
        x = x + functional.silu(self.around(x))
        x = x + functional.silu(self.further(x))
        return self.arrives(x)[:, 0]


def shocks(count: int = 900, moments: int = 600) -> TensorDataset:
    """Return random recordings, and in which third moment a shock arrived."""
    return TensorDataset(torch.randn(count, 3, moments), torch.randint(moments // 3, (count,)))


# Fjords


class Fjord(nn.Module):
    """Which water a fjord holds, by its sections as an echo sounder sees them."""

    def __init__(self, width: int = 28, waters: int = 7) -> None:
        super().__init__()
        self.surface = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.ground = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.norm = nn.BatchNorm2d(2 * width)
        self.water = nn.Linear(2 * width * 8, waters)

    def forward(self, section: Tensor) -> Tensor:
        x = functional.relu(self.middle(functional.relu(self.surface(section))))
        x = x + functional.relu(self.norm(self.ground(x)))
        return self.water(functional.adaptive_avg_pool2d(x, (4, 2)).flatten(1))


def sections(count: int = 400, deep: int = 96, long: int = 128) -> TensorDataset:
    """Return random sections of fjords, and which water they hold."""
    return TensorDataset(torch.rand(count, 1, deep, long), torch.randint(7, (count,)))


# Eclipses


class Eclipse(nn.Module):
    """Where a shadow falls at 24 times of an eclipse, by what is told of the sun and the moon."""

    def __init__(self, told: int = 64, width: int = 704, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Linear(told, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.falls = nn.Linear(width, 48)

    def forward(self, told: Tensor) -> Tensor:
        x = self.enter(told)
        for layer in self.layers:
            x = x + functional.relu(layer(x))
        return self.falls(x)


def eclipses(count: int = 4000) -> TensorDataset:
    """Return what is told of random eclipses, and where the shadows fall."""
    return TensorDataset(torch.randn(count, 64), torch.rand(count, 48))


# Parachutes


class Parachute(nn.Module):
    """How a parachute opens, by the forces in its cords as it does so."""

    def __init__(self, cords: int = 8, width: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.cords = nn.Conv1d(cords, width, 7, stride=2, padding=3)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(depth))
        self.opens = nn.Linear(2 * width, 5)

    def forward(self, forces: Tensor) -> Tensor:
        x = functional.elu(self.cords(forces))
        for layer in self.layers:
            x = x + functional.elu(layer(x))
        return self.opens(torch.cat([x.mean(2), x.amax(2)], 1))


def openings(count: int = 900, moments: int = 256) -> TensorDataset:
    """Return random forces in cords, and how the parachutes opened."""
    return TensorDataset(torch.randn(count, 8, moments), torch.randint(5, (count,)))


# Balconies


class Balcony(nn.Module):
    """Which plants thrive on the balconies of a street, by what is told of all of them."""

    def __init__(
        self, written: bool, told: int = 8, width: int = 48, heads: int = 4, plants: int = 12
    ) -> None:
        super().__init__()
        self.written, self.heads = written, heads
        self.enter = nn.Linear(told, width)
        self.asks, self.offers, self.gives = (nn.Linear(width, width) for _ in range(3))
        self.plants = nn.Linear(width, plants)

    def forward(self, street: Tensor) -> Tensor:
        x = functional.relu(self.enter(street))
        asks, offers, gives = (
            layer(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer in (self.asks, self.offers, self.gives)
        )
        if self.written:
            given = self.by_pairs(asks, offers, gives)
        else:
            given = functional.scaled_dot_product_attention(asks, offers, gives)
        return self.plants(x + given.transpose(1, 2).flatten(2))

    @staticmethod
    def by_pairs(asks: Tensor, offers: Tensor, gives: Tensor) -> Tensor:
        """Return what balconies give each other, as it stands in the formula."""
        pairs = asks[..., :, None, :] * offers[..., None, :, :]
        heed = (pairs.sum(4) / math.sqrt(asks.shape[3])).softmax(3)
        return (heed[..., None] * gives[..., None, :, :]).sum(3)


def streets(count: int = 500, balconies: int = 80) -> TensorDataset:
    """Return random balconies of streets, and which plants thrive there."""
    thrive = torch.randint(2, (count, balconies, 12)).float()
    return TensorDataset(torch.randn(count, balconies, 8), thrive)


# Moraines


class Moraine(nn.Module):
    """In which age a moraine was left, by the heights of its valley in five years."""

    def __init__(self, width: int = 8, depth: int = 1, ages: int = 8) -> None:
        super().__init__()
        self.heights = nn.Conv3d(1, width, 3, stride=(1, 2, 2), padding=1)
        self.layers = nn.ModuleList(nn.Conv3d(width, width, 3, padding=1) for _ in range(depth))
        self.age = nn.Linear(width, ages)

    def forward(self, valley: Tensor) -> Tensor:
        x = functional.relu(self.heights(valley))
        for layer in self.layers:
            x = x + functional.relu(layer(x))
        return self.age(x.mean((2, 3, 4)))


def valleys(kind: torch.dtype, count: int = 300, years: int = 5, side: int = 64) -> TensorDataset:
    """Return random heights of valleys, and the ages of their moraines."""
    heights = torch.randn(count, 1, years, side, side, dtype=kind)
    return TensorDataset(heights, torch.randint(8, (count,)))


# Jade


class Jade(nn.Module):
    """In which mine jade was found, by its spectrum."""

    def __init__(self, bands: int = 256, width: int = 256, mines: int = 20) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(bands, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, mines),
        )

    def forward(self, spectrum: Tensor) -> Tensor:
        return self.layers(spectrum)


def spectra(count: int = 3000, bands: int = 256) -> TensorDataset:
    """Return random spectra of jade, and the mines."""
    return TensorDataset(torch.rand(count, bands), torch.randint(20, (count,)))


# Sawdust


class Sawdust(nn.Module):
    """Of which wood sawdust is, by one of its grains, around which the picture is black."""

    def __init__(self, width: int = 16, woods: int = 10) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 5, stride=2, padding=2)
        self.within = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.again = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.wood = nn.Linear(2 * width, woods)

    def forward(self, grains: Tensor) -> Tensor:
        inside = functional.max_pool2d((grains > 0).float(), 4)
        x = functional.relu(self.within(functional.relu(self.enter(grains))))
        x = (x + functional.relu(self.again(x))) * inside
        return self.wood(x.sum((2, 3)) / inside.sum((2, 3)))


GLASS = 112
"""Points of each side of what the microscope sees at once."""


def on_glass(grains: Sequence[tuple[Tensor, int]], side: int | None) -> tuple[Tensor, Tensor]:
    """Return a batch of grains on as much glass as the longest needs, or on ``side`` points."""
    longest = max(max(grain.shape) for grain, _ in grains)
    room = side if side is not None else math.ceil(longest / 16) * 16
    glass = torch.zeros(len(grains), 1, room, room)
    for place, (grain, _) in zip(glass, grains, strict=True):
        high, wide = grain.shape
        place[0, :high, :wide] = grain
    return glass, torch.tensor([wood for _, wood in grains])


def sawdust(count: int = 800) -> list[tuple[Tensor, int]]:
    """Return random grains of sawdust, long and short, and the woods."""
    chance = np.random.default_rng(2142)
    high = chance.gamma(6.0, 4.5, count).clip(12, GLASS)
    wide = (high * chance.uniform(0.3, 0.9, count)).clip(6, GLASS)
    sizes = zip(high.astype(int).tolist(), wide.astype(int).tolist(), strict=True)
    return [(0.1 + 0.9 * torch.rand(*size), number % 10) for number, size in enumerate(sizes)]


# Metronomes


class Metronome(nn.Module):
    """How fast each of the metronomes on a board swings next, as the others push it."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.pushed = nn.Sequential(
            nn.Linear(4, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.next = nn.Linear(width + 2, 1)

    def forward(self, swings: Tensor) -> Tensor:
        one, other = swings[:, :, None], swings[:, None]
        both = torch.cat(torch.broadcast_tensors(one, other), 3)
        pushed = self.pushed(both).mean(2)
        return self.next(torch.cat([pushed, swings], 2))[..., 0]


def boards(count: int = 1500, metronomes: int = 24) -> TensorDataset:
    """Return where random metronomes are in their swings, and how fast they are next."""
    turn = 2 * math.pi * torch.rand(count, metronomes)
    return TensorDataset(torch.stack([turn.sin(), turn.cos()], 2), torch.rand(count, metronomes))


# Saddles


class Saddle(nn.Module):
    """Where a saddle presses after an hour, by where it presses at first, and a rider's weight."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, width, 4, stride=2, padding=1)
        self.weight = nn.Linear(1, width)
        self.middle = nn.Conv2d(width, width, 3, padding=1)
        self.up = nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1)

    def forward(self, first: Tensor, weight: Tensor) -> Tensor:
        x = functional.gelu(self.down(first) + self.weight(weight)[..., None, None])
        return first + self.up(x + functional.gelu(self.middle(x)))


def saddles(count: int = 600, long: int = 32, wide: int = 24) -> TensorDataset:
    """Return random presses of saddles, weights of riders, and the presses an hour later."""
    first, later = torch.rand(2, count, 1, long, wide)
    return TensorDataset(first, torch.randn(count, 1), later)


# Carriages


class Carriage(nn.Module):
    """How much a guest would like a carriage, by those in which he has been."""

    def __init__(self, carriages: int = 2000, width: int = 64) -> None:
        super().__init__()
        self.carriage = nn.Embedding(carriages, width)
        self.guest = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )

    def forward(self, been: Tensor, offered: Tensor) -> Tensor:
        guest = self.guest(self.carriage(been).mean(1))
        return (self.carriage(offered) * guest[:, None]).sum(2)


def journeys(count: int = 4000, been: int = 12) -> TensorDataset:
    """Return random carriages of guests, and two more: the one that was taken comes first."""
    return TensorDataset(torch.randint(2000, (count, been)), torch.randint(2000, (count, 2)))
