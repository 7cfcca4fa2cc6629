"""More models and data of the ninth round's runs, which ``programs9.py`` has."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# A census, of whose people nothing may be learnt


class Census(nn.Module):
    """What a person earns, from the kinds that the person is of and from a few numbers."""

    def __init__(self, width: int = 64, kinds: int = 20, columns: int = 8) -> None:
        super().__init__()
        self.kinds = nn.Parameter(torch.randn(columns, kinds, 8))
        self.layers = nn.Sequential(
            nn.Linear(8 * columns + 6, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 2),
        )

    def forward(self, person: Tensor) -> Tensor:
        kinds, numbers = person[..., :8].long(), person[..., 8:]
        chosen = (kinds[..., None] == torch.arange(20)).float()
        found = torch.einsum("...ck,ckw->...cw", chosen, self.kinds).flatten(-2)
        return self.layers(torch.cat([found, numbers], -1))


def people(count: int = 8192) -> TensorDataset:
    """Return random people: eight kinds and six numbers each."""
    kinds = torch.randint(20, (count, 8)).float()
    return TensorDataset(torch.cat([kinds, torch.randn(count, 6)], 1), torch.randint(2, (count,)))


# Batteries


class Ageing(nn.Module):
    """How worn a battery is, from a charge; what it is used for scales and shifts the layers."""

    def __init__(self, channels: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv1d(3, channels, 9, stride=2, padding=4)
        self.layers = nn.ModuleList(
            nn.Conv1d(channels, channels, 9, padding=4) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(4, channels) for _ in range(depth))
        self.use = nn.Linear(3, 2 * depth * channels)
        self.head = nn.Linear(channels, 1)

    def forward(self, charge: Tensor) -> Tensor:
        uses = self.use(charge.std(2)).view(len(charge), len(self.layers), 2, -1, 1)
        x = self.enter(charge)
        for layer, norm, use in zip(self.layers, self.norms, uses.unbind(1), strict=True):
            x = x + functional.gelu(norm(layer(x)) * use[:, 0] + use[:, 1])
        return self.head(x.mean(2))[:, 0]


def charges(count: int = 4096, moments: int = 256) -> TensorDataset:
    """Return random charges: voltage, current and warmth, and what is left of the capacity."""
    return TensorDataset(torch.randn(count, 3, moments), torch.rand(count))


# Sleep


class Sleep(nn.Module):
    """Stages of sleep: convolutions within half a minute, memory between them."""

    def __init__(self, width: int = 32, stages: int = 5) -> None:
        super().__init__()
        self.within = nn.Sequential(
            nn.Conv1d(1, width, 25, stride=6),
            nn.ReLU(),
            nn.Conv1d(width, width, 7, stride=3),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(2),
            nn.Flatten(),
        )
        self.between = nn.LSTM(2 * width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, stages)

    def forward(self, night: Tensor) -> Tensor:
        found = self.within(night.flatten(0, 1)[:, None]).view(*night.shape[:2], -1)
        return self.head(self.between(found)[0])


def nights(count: int = 1024, parts: int = 20, moments: int = 200) -> TensorDataset:
    """Return random currents of brains asleep, with the stage of each part."""
    return TensorDataset(torch.randn(count, parts, moments), torch.randint(5, (count, parts)))


# What people do, as a wrist moves


class Wrist(nn.Module):
    """Two views of the same movement should be told alike, and the features apart."""

    def __init__(self, width: int = 48, features: int = 64) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(6, width, 8, stride=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, features, 8, stride=2),
            nn.BatchNorm1d(features),
            nn.ReLU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
        )
        self.projected = nn.Sequential(
            nn.Linear(features, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 128)
        )

    def forward(self, moved: Tensor) -> Tensor:
        shaken = moved + 0.1 * torch.randn_like(moved)
        scaled = moved * (1 + 0.2 * torch.randn(len(moved), 6, 1))
        one, other = (self.projected(self.encoder(each)) for each in (shaken, scaled))
        one, other = ((each - each.mean(0)) / (each.std(0) + 1e-4) for each in (one, other))
        alike = one.T @ other / len(moved)
        diagonal = alike.diagonal()
        return (1 - diagonal).square().sum() + 0.005 * (
            alike.square().sum() - diagonal.square().sum()
        )


def wrists(count: int = 4096) -> TensorDataset:
    """Return random accelerations and turns of wrists, 128 moments each."""
    return TensorDataset(torch.randn(count, 6, 128), torch.randint(8, (count,)))


def probed(features: Tensor, kinds: Tensor) -> float:
    """Return how much a linear model tells of the kinds: of the best strength, over five folds."""
    best, wanted = 0.0, functional.one_hot(kinds, 8).float()
    folds = torch.arange(len(kinds)) % 5
    for strength in (0.01, 0.1, 1.0, 10.0, 100.0):
        right = 0.0
        for fold in range(5):
            seen, held = features[folds != fold], features[folds == fold]
            products = seen.T @ seen + strength * torch.eye(features.shape[1])
            weights = torch.linalg.solve(products, seen.T @ wanted[folds != fold])
            told = (held @ weights).argmax(1) == kinds[folds == fold]
            right += float(told.float().mean()) / 5
        best = max(best, right)
    return best


# Wind turbines


class Turbine(nn.Module):
    """What is unusual in a gearbox's vibrations: they are squeezed through few channels."""

    def __init__(self, channels: int = 48) -> None:
        super().__init__()
        self.squeezed = nn.Sequential(
            nn.Conv1d(4, channels, 15, stride=2, padding=7),
            nn.LeakyReLU(0.1),
            nn.Conv1d(channels, 2 * channels, 15, stride=4, padding=7),
            nn.LeakyReLU(0.1),
            nn.Conv1d(2 * channels, 8, 1),
        )
        self.widened = nn.Sequential(
            nn.Conv1d(8, 2 * channels, 1),
            nn.LeakyReLU(0.1),
            nn.ConvTranspose1d(2 * channels, channels, 16, stride=4, padding=6),
            nn.LeakyReLU(0.1),
            nn.ConvTranspose1d(channels, 4, 16, stride=2, padding=7),
        )

    def forward(self, shaken: Tensor) -> Tensor:
        return (self.widened(self.squeezed(shaken)) - shaken).abs().mean((1, 2))


def vibrations(count: int = 512, moments: int = 2048) -> TensorDataset:
    """Return random vibrations at four places of a gearbox."""
    return TensorDataset(torch.randn(count, 4, moments), torch.zeros(count))


# Leaves


class Leaf(nn.Module):
    """Which illness a leaf has: large convolutions of each channel, then products of channels."""

    def __init__(self, width: int = 64, depth: int = 3, kinds: int = 12) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 4, stride=4)
        self.apart = nn.ModuleList(
            nn.Conv2d(width, width, 7, padding=3, groups=width) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.wider = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.back = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth))
        self.scale = nn.Parameter(torch.full((depth, width), 0.1))
        self.head = nn.Linear(width, kinds)

    def forward(self, leaf: Tensor) -> Tensor:
        x = self.enter(leaf)
        layers = zip(self.apart, self.norms, self.wider, self.back, self.scale, strict=True)
        for apart, norm, wider, back, scale in layers:
            found = scale * back(functional.gelu(wider(norm(apart(x).permute(0, 2, 3, 1)))))
            x = x + found.permute(0, 3, 1, 2)
        return self.head(x.mean((2, 3)))


def leaves(count: int = 512, side: int = 64) -> TensorDataset:
    """Return random leaves with their illnesses."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(12, (count,)))


# Cracks in bridges


class Cracks(nn.Module):
    """Where a bridge has cracks: convolutions of several widths over the same features."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(1, channels, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
        )
        self.wide = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=each, dilation=each) for each in (1, 3, 6)
        )
        self.head = nn.Conv2d(3 * channels, 2, 1)

    def forward(self, wall: Tensor) -> Tensor:
        seen = self.seen(wall)
        found = self.head(torch.cat([each(seen).relu() for each in self.wide], 1))
        return functional.interpolate(found, scale_factor=2, mode="bilinear")


def walls(count: int = 256, side: int = 64) -> TensorDataset:
    """Return random walls of bridges, with the points where they are cracked."""
    return TensorDataset(torch.rand(count, 1, side, side), torch.randint(2, (count, side, side)))
