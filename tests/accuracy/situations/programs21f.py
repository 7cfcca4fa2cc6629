"""Models and data of the twenty-first round's last runs, from sunspots to carriages: see
``programs21c.py``."""

import torch
from torch import Tensor, nn
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
