"""Models and data of the twenty-first round's last runs, from sunspots to carriages: see
``programs21c.py``."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Sunspots


class Sunspot(nn.Module):
    """How large a flare follows, by the strips into which the disc of the sun is cut."""

    def __init__(self, points: int = 512, width: int = 256, flares: int = 6) -> None:
        super().__init__()
        self.strip, self.flare = nn.Linear(points, width), nn.Linear(width, flares)

    def forward(self, disc: Tensor) -> Tensor:
        return self.flare(self.strip(disc).tanh().mean(1))


def discs(count: int = 800, strips: int = 12, points: int = 512) -> TensorDataset:
    """Return random strips of discs, and the flares that followed."""
    return TensorDataset(torch.randn(count, strips, points), torch.randint(6, (count,)))


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

    def __init__(self, width: int = 16, waters: int = 7) -> None:
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


def sections(count: int = 500, deep: int = 64, long: int = 96) -> TensorDataset:
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

    def __init__(self, cords: int = 8, width: int = 32, depth: int = 3) -> None:
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
