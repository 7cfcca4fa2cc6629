"""Models and data of the eighteenth round's last runs, from sextants to scissors: see
``programs18c.py``."""

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, IterableDataset, TensorDataset

# Sextants


class Regarding(nn.Module):
    """A layer in which the stars of a sight regard each other."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.each = nn.Sequential(
            nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = self.all(self.before(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts.unbind(0))
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.each(self.after(x))


class Sextant(nn.Module):
    """Where a ship is, as a direction from the middle of the earth, by the heights of stars."""

    def __init__(self, width: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.star = nn.Linear(6, width)
        self.layers = nn.Sequential(*(Regarding(width, 4) for _ in range(depth)))
        self.where = nn.Linear(width, 3)

    def forward(self, stars: Tensor) -> Tensor:
        return functional.normalize(self.where(self.layers(self.star(stars)).mean(1)), dim=1)


class Voyages(IterableDataset[tuple[Tensor, Tensor]]):
    """Sights as they stand in the log books of ships, one after the other and again."""

    def __init__(self, sights: int = 3000, stars: int = 24) -> None:
        self.stars = torch.randn(sights, stars, 6)
        self.places = functional.normalize(torch.randn(sights, 3), dim=1)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        while True:
            yield from zip(self.stars, self.places, strict=True)


# Mittens


class Mitten(nn.Module):
    """Where a mitten was knitted, by how near its best patch is to each of learned motifs."""

    def __init__(self, one_by_one: bool, motifs: int = 48, width: int = 24) -> None:
        super().__init__()
        self.one_by_one = one_by_one
        self.enter = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, width, 6, stride=6),
        )
        self.motifs = nn.Parameter(torch.randn(motifs, width))
        self.region = nn.Linear(motifs, 9)

    def forward(self, picture: Tensor) -> Tensor:
        patches = self.enter(picture).flatten(2).mT
        if self.one_by_one:
            near = torch.stack([self.nearest(patches, each) for each in self.motifs.unbind()], 1)
        else:
            near = self.nearest(patches[:, None], self.motifs[:, None])
        return self.region(near)

    @staticmethod
    def nearest(patches: Tensor, motif: Tensor) -> Tensor:
        """Return how near the patch is that is the nearest."""
        apart = (patches - motif).square().mean(-1)
        return ((apart + 1) / (apart + 1e-3)).log().amax(-1)


def mittens(count: int = 800, side: int = 36) -> TensorDataset:
    """Return random pictures of mittens, and the regions that they are from."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(9, (count,)))


# Microscopes


class Microscope(nn.Module):
    """How far a microscope is out of focus: the sharpest parts of a picture weigh most."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.Hardswish(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.Hardswish(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        )
        self.weighs, self.off = nn.Conv2d(2 * width, 1, 1), nn.Linear(2 * width, 1)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.hardswish(self.seen(picture))
        weight = self.weighs(x).flatten(2).softmax(2)
        return self.off((x.flatten(2) * weight).sum(2))[:, 0]


def focused(count: int = 600, side: int = 64) -> TensorDataset:
    """Return random pictures of slides, and how far the microscope was off."""
    return TensorDataset(torch.rand(count, 1, side, side), torch.randn(count))


# Trophies


class Trophy(nn.Module):
    """What a trophy was won in: what it looks like, and what is engraved on it."""

    def __init__(self, width: int = 24, letters: int = 40, sports: int = 18) -> None:
        super().__init__()
        self.looks = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=2),
            nn.ELU(),
            nn.Conv2d(width, 2 * width, 3, stride=2),
            nn.ELU(),
            nn.AdaptiveAvgPool2d(3),
            nn.Flatten(),
        )
        self.letter = nn.Embedding(letters, 4 * width)
        self.reads = nn.Conv1d(4 * width, 4 * width, 5, padding=2)
        self.sport = nn.Linear(22 * width, sports)

    def forward(self, picture: Tensor, engraved: Tensor) -> Tensor:
        said = functional.elu(self.reads(self.letter(engraved).mT)).amax(2)
        return self.sport(torch.cat([self.looks(picture), said], 1))


def trophies(count: int = 600, side: int = 48, letters: int = 60) -> TensorDataset:
    """Return random pictures of trophies, what is engraved on them, and their sports."""
    return TensorDataset(
        torch.rand(count, 3, side, side),
        torch.randint(40, (count, letters)),
        torch.randint(18, (count,)),
    )


# Gates


class Gate(nn.Module):
    """Whether somebody may pass: the steps to a gate, as learned gates let them through."""

    def __init__(self, felt: int = 10, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Linear(felt, width)
        self.within = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.moments = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.passes = nn.Linear(width, 1)

    def forward(self, steps: Tensor) -> Tensor:
        x = self.enter(steps)
        layers = zip(self.norms, self.moments, self.within, self.out, strict=True)
        for norm, moments, within, out in layers:
            first, second = within(moments(norm(x).mT).mT).chunk(2, 2)
            x = x + out(first * second.sigmoid())
        return self.passes(x.amax(1))[:, 0]


def passers(count: int = 1200, moments: int = 48) -> TensorDataset:
    """Return random steps to gates, and who may pass."""
    return TensorDataset(torch.randn(count, moments, 10), torch.randint(2, (count,)).float())


# Pyjamas


class Asking(nn.Module):
    """A block whose channels are weighed by what the whole picture shows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.weighs = nn.Sequential(
            nn.Linear(width, width // 4), nn.ReLU(), nn.Linear(width // 4, width), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(self.first(x).relu())
        return (x + y * self.weighs(y.mean((2, 3)))[..., None, None]).relu()


class Pyjama(nn.Module):
    """Which size pyjamas are, by a picture of them on a line."""

    def __init__(self, width: int = 20, depth: int = 2, sizes: int = 8) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=2, padding=1),
            *(Asking(width) for _ in range(depth)),
        )
        self.size = nn.Linear(width, sizes)

    def forward(self, picture: Tensor) -> Tensor:
        return self.size(self.layers(picture).mean((2, 3)))


def pyjamas(count: int = 500, side: int = 32) -> TensorDataset:
    """Return random pictures of pyjamas, and their sizes."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(8, (count,)))


# Almanacs


class Almanac(nn.Module):
    """What an almanac says of a day at a place: sines of sums of sines."""

    often: Tensor

    def __init__(self, width: int = 256, depth: int = 3, says: int = 9) -> None:
        super().__init__()
        self.register_buffer("often", torch.randn(5, width // 2) * 4)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.says = nn.Linear(width, says)
        for layer in self.layers:
            nn.init.uniform_(layer.weight, -math.sqrt(6 / width), math.sqrt(6 / width))

    def forward(self, day: Tensor) -> Tensor:
        turned = day @ self.often
        x = torch.cat([turned.sin(), turned.cos()], 1)
        for layer in self.layers:
            x = layer(x).sin()
        return self.says(x)


def days(count: int = 20_000) -> TensorDataset:
    """Return random days and places, and what stands there."""
    return TensorDataset(torch.randn(count, 5), torch.randn(count, 9))


# Archery


class Archer(nn.Module):
    """Where an arrow goes: the joints of an archer move each other, and along the time."""

    def __init__(self, joints: int = 17, width: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(3, width)
        self.moves = nn.Parameter(torch.eye(joints).repeat(depth, 1, 1))
        self.each = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.along = nn.ModuleList(
            nn.Conv2d(width, width, (5, 1), padding=(2, 0)) for _ in range(depth)
        )
        self.goes = nn.Linear(width, 2)

    def forward(self, shot: Tensor) -> Tensor:
        x = self.enter(shot)
        for moves, each, along in zip(self.moves.unbind(), self.each, self.along, strict=True):
            y = functional.gelu(each(moves @ x))
            x = x + along(y.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return self.goes(x.mean((1, 2)))


def shots(count: int = 1000, moments: int = 32) -> TensorDataset:
    """Return random joints of archers over the time, and where the arrows went."""
    return TensorDataset(torch.randn(count, moments, 17, 3), torch.randn(count, 2))


# Tractors


class Tractor(nn.Module):
    """How a tractor is to steer, by cameras that each have eyes of their own."""

    def __init__(self, cameras: int, width: int = 12) -> None:
        super().__init__()
        self.eyes = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(3, width, 5, stride=2),
                nn.LeakyReLU(0.1),
                nn.Conv2d(width, 2 * width, 3, stride=2),
                nn.LeakyReLU(0.1),
                nn.AdaptiveMaxPool2d(3),
                nn.Flatten(),
            )
            for _ in range(cameras)
        )
        self.steer = nn.Sequential(
            nn.Linear(18 * width * cameras, 128), nn.LeakyReLU(0.1), nn.Linear(128, 2)
        )

    def forward(self, seen: Tensor) -> Tensor:
        views = [eye(view) for eye, view in zip(self.eyes, seen.unbind(1), strict=True)]
        return self.steer(torch.cat(views, 1))


def fields(cameras: int, count: int = 300, side: int = 48) -> TensorDataset:
    """Return random pictures of all cameras, and how it was steered."""
    return TensorDataset(torch.rand(count, cameras, 3, side, side), torch.randn(count, 2))


# Bracelets


class Bracelet(nn.Module):
    """How a bracelet is worn: maps of its beads are made soft, and the most of each is taken."""

    def __init__(self, beads: int = 32, rounds: int = 7) -> None:
        super().__init__()
        self.rounds = rounds
        self.layer = nn.Conv2d(beads, beads, 1)
        self.worn = nn.Linear(beads, 6)

    def forward(self, maps: Tensor) -> Tensor:
        soft = maps = self.layer(maps).relu()
        for _ in range(self.rounds):
            soft = functional.avg_pool2d(soft, 3, 1, 1)
        most = functional.max_pool2d(maps - soft, 3, 1, 1)
        return self.worn(most.mean((2, 3)))


def bracelets(count: int = 300, beads: int = 32, side: int = 28) -> TensorDataset:
    """Return random maps of beads, and how the bracelets are worn."""
    return TensorDataset(torch.randn(count, beads, side, side), torch.randint(6, (count,)))


# Flags


class Mixing(nn.Module):
    """A layer that mixes the pieces of a flag, and then what is known of each."""

    def __init__(self, pieces: int, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.among = nn.Linear(pieces, pieces)
        self.within = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.among(self.first(x).mT).mT
        return x + self.within(self.second(x))


class Flag(nn.Module):
    """Whose flag it is that waves."""

    def __init__(self, width: int = 64, pieces: int = 24, depth: int = 1, lands: int = 60) -> None:
        super().__init__()
        self.enter = nn.Linear(3 * 8 * 8, width)
        self.layers = nn.Sequential(*(Mixing(pieces, width) for _ in range(depth)))
        self.land = nn.Linear(width, lands)

    def forward(self, flag: Tensor) -> Tensor:
        pieces = functional.pixel_unshuffle(flag, 8).flatten(2).mT
        return self.land(self.layers(self.enter(pieces)).mean(1))


def flags(count: int = 800, high: int = 32, wide: int = 48) -> TensorDataset:
    """Return random pictures of flags, and whose they are."""
    return TensorDataset(torch.rand(count, 3, high, wide), torch.randint(60, (count,)))


# Trams


class Tram(nn.Module):
    """How late trams are at their stops: each measure is looked at alone, then all together."""

    def __init__(self, measures: int = 6, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv2d(measures, width, 1)
        self.alone, self.again = (
            nn.ModuleList(nn.Conv2d(width, width, 3, padding=1, groups=width) for _ in range(depth))
            for _ in range(2)
        )
        self.together = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(depth))
        self.late = nn.Conv2d(width, 1, 1)

    def forward(self, line: Tensor) -> Tensor:
        x = self.enter(line)
        layers = zip(self.alone, self.again, self.together, strict=True)
        for alone, again, together in layers:
            x = x + together(again(functional.relu(alone(x))))
        return self.late(x)[:, 0, :, -1]


class Lines(Dataset[tuple[Tensor, Tensor]]):
    """What was measured at each stop and minute, kept in the type that is usual."""

    def __init__(self, count: int = 500, stops: int = 16, minutes: int = 24) -> None:
        chance, usual = np.random.default_rng(42), torch.get_default_dtype()
        self.lines = torch.from_numpy(chance.normal(size=(count, 6, stops, minutes))).to(usual)
        self.late = torch.from_numpy(chance.gamma(2.0, size=(count, stops))).to(usual)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.lines[index], self.late[index]


# Screws


class Screw(nn.Module):
    """Which screws are faulty, by their profiles: the lower waves are changed and go back."""

    def __init__(self, width: int = 16, waves: int = 48, depth: int = 2) -> None:
        super().__init__()
        self.waves = waves
        self.enter = nn.Conv1d(2, width, 1)
        self.changes = nn.Parameter(0.1 * torch.randn(depth, width, width, waves, 2))
        self.points = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(depth))
        self.faulty = nn.Linear(width, 4)

    def forward(self, profile: Tensor) -> Tensor:
        x, points = self.enter(profile), profile.shape[2]
        layers = torch.view_as_complex(self.changes).unbind()
        for changes, point in zip(layers, self.points, strict=True):
            waves = torch.fft.rfft(x, dim=2, norm="ortho")[..., : self.waves]
            waves = torch.einsum("biw,iow->bow", waves, changes)
            back = torch.fft.irfft(waves, points, dim=2, norm="ortho")
            x = functional.relu(back + point(x))
        return self.faulty(x.mean(2))


def screws(filled: int, count: int = 500, points: int = 1511) -> TensorDataset:
    """Return random profiles of screws, with zeros behind them, and what is wrong with each."""
    profiles = functional.pad(torch.randn(count, 2, points), (0, filled))
    return TensorDataset(profiles, torch.randint(4, (count,)))


# Compasses


class Compass(nn.Module):
    """Where north is, by what a compass felt while it was carried."""

    def __init__(self, felt: int = 9, width: int = 72) -> None:
        super().__init__()
        self.past = nn.LSTM(felt, width, num_layers=2, batch_first=True)
        self.north = nn.Linear(width, 2)

    def forward(self, felt: Tensor) -> Tensor:
        found, _ = self.past(felt)
        return functional.normalize(self.north(found[:, -1]), dim=1)


def turned(told: Tensor, north: Tensor) -> Tensor:
    """Return how far directions are off."""
    return (1 - functional.cosine_similarity(told, north)).mean()


def carried(count: int = 1000, moments: int = 40) -> TensorDataset:
    """Return random readings of compasses, and where north was."""
    north = 2 * math.pi * torch.rand(count)
    return TensorDataset(torch.randn(count, moments, 9), torch.stack([north.cos(), north.sin()], 1))


# Scissors


class Scissors(nn.Module):
    """Where to cut: a picture is made small and large again, with what was seen before."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.near = nn.Conv2d(1, width, 3, padding=1)
        self.far = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.back = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.cut = nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, paper: Tensor) -> Tensor:
        near = functional.silu(self.near(paper))
        far = functional.silu(self.back(functional.silu(self.far(near))))
        return self.cut(torch.cat([near, far], 1))


def overlap(told: Tensor, cut: Tensor) -> Tensor:
    """Return how little what is told and what was cut have in common."""
    told = told.sigmoid()
    return 1 - 2 * (told * cut).sum() / (told.sum() + cut.sum() + 1)


def papers(count: int = 500, side: int = 40) -> TensorDataset:
    """Return random pictures of papers, and where these were cut."""
    return TensorDataset(
        torch.rand(count, 1, side, side), torch.randint(2, (count, 1, side, side)).float()
    )
