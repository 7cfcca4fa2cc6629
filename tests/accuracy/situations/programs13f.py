"""Models and data of the thirteenth round's runs from termites to nets: see ``programs13c.py``."""

import itertools
import math
import random
import tomllib
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Sampler, TensorDataset

# Termites


class Tremble(nn.Module):
    """Convolutions along time, whose channels are weighed by what all of the time holds."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(width, width, 9, padding=4),
            nn.BatchNorm1d(width),
            nn.Hardswish(),
            nn.Conv1d(width, width, 9, padding=4),
            nn.BatchNorm1d(width),
        )
        self.weigh = nn.Sequential(
            nn.Linear(width, width // 4), nn.ReLU(), nn.Linear(width // 4, width), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        found = self.layers(x)
        return functional.hardswish(x + found * self.weigh(found.mean(2))[..., None])


class Termite(nn.Module):
    """Which caste of which termites is at work in a beam, by how it trembles in three ways."""

    def __init__(self, width: int = 32, castes: int = 9) -> None:
        super().__init__()
        self.enter = nn.Conv1d(3, width, 8, stride=4, padding=2)
        self.layers = nn.Sequential(*(Tremble(width) for _ in range(3)))
        self.caste = nn.Linear(2 * width, castes)

    def forward(self, beam: Tensor) -> Tensor:
        x = self.layers(self.enter(beam))
        return self.caste(torch.cat([x.mean(2), x.amax(2)], 1))


def beams(count: int = 3000, moments: int = 640) -> TensorDataset:
    """Return random trembling of beams, and who is in them."""
    return TensorDataset(torch.randn(count, 3, moments), torch.randint(9, (count,)))


# Ferns


class Fern(nn.Module):
    """Genus and species of a fern, by the outline of a frond."""

    def __init__(self, width: int = 16, genera: int = 12, species: int = 60) -> None:
        super().__init__()
        sizes = [1, width, 2 * width, 3 * width, 4 * width]
        self.outline = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(inside, outside, 3, stride=2, padding=1),
                    nn.GroupNorm(4, outside),
                    nn.ELU(),
                )
                for inside, outside in itertools.pairwise(sizes)
            ),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.genus = nn.Linear(4 * width, genera)
        self.species = nn.Linear(4 * width + genera, species)

    def forward(self, frond: Tensor) -> tuple[Tensor, Tensor]:
        x = self.outline(frond)
        genus = self.genus(x)
        return genus, self.species(torch.cat([x, genus.softmax(1)], 1))


def fronds(count: int = 1600, side: int = 40) -> TensorDataset:
    """Return random outlines of fronds, with their genera and species."""
    genus, species = torch.randint(12, (count,)), torch.randint(60, (count,))
    return TensorDataset(torch.rand(count, 1, side, side), genus, species)


# Bats


class Nightly(Sampler[list[int]]):
    """The calls of a night together, as the recorders stand elsewhere each night."""

    def __init__(self, nights: Tensor, fewest: int = 2) -> None:
        self.nights = [
            found.tolist()
            for night in nights.unique()
            if len(found := (nights == night).nonzero()[:, 0]) >= fewest
        ]

    def __len__(self) -> int:
        return len(self.nights)

    def __iter__(self) -> Iterator[list[int]]:
        yield from random.sample(self.nights, len(self.nights))


class Bat(nn.Module):
    """Which bat called, by a spectrogram: bands and moments are looked at in turns."""

    def __init__(self, width: int = 24, bats: int = 14) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 4, stride=4)
        self.bands = nn.ModuleList(nn.Conv2d(width, width, (7, 1), padding=(3, 0)) for _ in "ab")
        self.moments = nn.ModuleList(nn.Conv2d(width, width, (1, 9), padding=(0, 4)) for _ in "ab")
        self.own = nn.ModuleList(
            nn.Sequential(nn.Conv2d(width, 2 * width, 1), nn.Mish(), nn.Conv2d(2 * width, width, 1))
            for _ in "ab"
        )
        self.bat = nn.Sequential(nn.Dropout(0.1), nn.Linear(width, bats))

    def forward(self, call: Tensor) -> Tensor:
        x = self.enter(call)
        for bands, moments, own in zip(self.bands, self.moments, self.own, strict=True):
            x = x + own(bands(x) + moments(x))
        return self.bat(x.amax(3).mean(2))


def calls(count: int = 1800, nights: int = 480) -> tuple[TensorDataset, Tensor]:
    """Return random calls and their bats, and the night of each."""
    data = TensorDataset(torch.rand(count, 1, 48, 80), torch.randint(14, (count,)))
    return data, torch.randint(nights, (count,))


# Fans


class Fan(nn.Module):
    """In which town a folding fan was painted: its leaf is seen rib by rib, then as a whole."""

    def __init__(self, in_turn: bool, width: int = 16, ribs: int = 10, towns: int = 7) -> None:
        super().__init__()
        self.in_turn = in_turn
        self.rib = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.SiLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.SiLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * width * 16, 64),
        )
        self.place = nn.Parameter(torch.randn(ribs, 64) / 8)
        self.whole = nn.MultiheadAttention(64, 4, batch_first=True)
        self.town = nn.Linear(64, towns)

    def forward(self, leaf: Tensor) -> Tensor:
        if self.in_turn:
            seen = torch.stack([self.rib(leaf[:, rib]) for rib in range(leaf.shape[1])], 1)
        else:
            seen = self.rib(leaf.flatten(0, 1)).unflatten(0, leaf.shape[:2])
        x = seen + self.place
        return self.town((x + self.whole(x, x, x, need_weights=False)[0]).mean(1))


def leaves(count: int = 600, ribs: int = 10) -> TensorDataset:
    """Return random leaves of fans, cut at their ribs, and the towns."""
    return TensorDataset(torch.rand(count, ribs, 3, 32, 8), torch.randint(7, (count,)))


# Badgers


class Tracks(Dataset[tuple[Tensor, Tensor]]):
    """Where badgers went in a night, each for as long as its collar sent, and which sett is its."""

    def __init__(self, count: int = 1500, shortest: int = 24, longest: int = 60) -> None:
        lengths = torch.randint(shortest, longest, (count,)).tolist()
        self.tracks = [torch.randn(length, 5) for length in lengths]
        self.setts = torch.randint(11, (count,))

    def __len__(self) -> int:
        return len(self.tracks)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.tracks[index], self.setts[index]


def as_they_are(items: list[tuple[Tensor, Tensor]]) -> tuple[list[Tensor], Tensor]:
    """Return the tracks of a batch, which are not of one length, and their setts."""
    tracks, setts = zip(*items, strict=True)
    return list(tracks), torch.stack(setts)


class Badger(nn.Module):
    """Which sett a badger lives in, by the way that it went."""

    def __init__(self, width: int = 64, setts: int = 11) -> None:
        super().__init__()
        self.way = nn.Conv1d(5, width, 5, padding=2)
        self.bend = nn.Conv1d(width, width, 5, padding=2)
        self.sett = nn.Linear(width, setts)

    def alone(self, track: Tensor) -> Tensor:
        """Return the scores of one badger."""
        x = functional.gelu(self.way(track.mT[None]))
        x = x + functional.gelu(self.bend(x))
        return self.sett(x.mean(2))[0]

    def together(self, tracks: list[Tensor]) -> Tensor:
        """Return the scores of badgers whose tracks are filled up to the longest."""
        lengths = torch.tensor([len(track) for track in tracks])
        filled = pad_sequence(tracks, batch_first=True).mT
        there = (torch.arange(filled.shape[2]) < lengths[:, None])[:, None].float()
        x = functional.gelu(self.way(filled)) * there
        x = x + functional.gelu(self.bend(x)) * there
        return self.sett(x.sum(2) / lengths[:, None])


# Drums


class Drum(nn.Module):
    """Which of eight drums are struck in each moment, by the moments around it."""

    def __init__(self, bands: int = 64, near: int = 7, width: int = 64, drums: int = 8) -> None:
        super().__init__()
        self.near = near
        self.struck = nn.Sequential(
            nn.Linear(near * bands, width), nn.ReLU(), nn.Linear(width, drums)
        )

    def forward(self, heard: Tensor) -> Tensor:
        return self.struck(heard.unfold(1, self.near, 1).flatten(2))


def grooves(count: int = 500, moments: int = 262, bands: int = 64) -> TensorDataset:
    """Return random loudness of bands in each moment, and the drums that are struck."""
    struck = (torch.rand(count, moments - 6, 8) < 0.1).float()
    return TensorDataset(torch.rand(count, moments, bands), struck)


# Cacti


class Cactus(nn.Module):
    """How many cacti stand at each place of a picture from above, as a density."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.near = nn.Sequential(
            nn.Conv2d(4, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
        )
        self.far = nn.Sequential(
            *(
                layer
                for apart in (2, 3)
                for layer in (
                    nn.Conv2d(2 * width, 2 * width, 3, padding=apart, dilation=apart),
                    nn.ReLU(),
                )
            )
        )
        self.density = nn.Conv2d(2 * width, 1, 1)

    def forward(self, above: Tensor) -> Tensor:
        return functional.softplus(self.density(self.far(self.near(above))))[:, 0]


def deserts(count: int = 400, side: int = 48) -> TensorDataset:
    """Return random pictures in four colours from above, and where cacti stand in them."""
    stand = (torch.rand(count, side // 2, side // 2) < 0.02).float()
    return TensorDataset(torch.rand(count, 4, side, side), stand)


# Jars


class Jar(nn.Module):
    """How old a jar is and who threw it, by its profile: each point asks a few that are learnt."""

    def __init__(self, width: int = 96, asked: int = 12, throwers: int = 10) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(4, width), nn.GELU(), nn.Linear(width, width))
        self.asked = nn.Parameter(torch.randn(asked, width) / width**0.5)
        self.gather = nn.MultiheadAttention(width, 4, batch_first=True)
        self.spread = nn.MultiheadAttention(width, 4, batch_first=True)
        self.own = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.told = nn.Linear(width, 1 + throwers)

    def forward(self, profile: Tensor) -> Tensor:
        x = self.enter(profile)
        asked = self.asked.expand(len(x), -1, -1)
        few = self.gather(asked, x, x, need_weights=False)[0]
        x = x + self.spread(x, few, few, need_weights=False)[0]
        return self.told((x + self.own(x)).mean(1))


def profiles(count: int = 1500, points: int = 48) -> TensorDataset:
    """Return random profiles: radius, height, slope and thickness; the age and the thrower."""
    return TensorDataset(
        torch.randn(count, points, 4), torch.rand(count), torch.randint(10, (count,))
    )


def aged_and_thrown(told: Tensor, age: Tensor, thrower: Tensor) -> Tensor:
    """Return how far the age is off, and how unlikely the thrower is."""
    return functional.l1_loss(told[:, 0], age) + functional.cross_entropy(told[:, 1:], thrower)


# Beavers


class Remembered(nn.Module):
    """A map that is kept from one picture to the next, as far as the new one lets it."""

    def __init__(self, inside: int, width: int) -> None:
        super().__init__()
        self.gates = nn.Conv2d(inside + width, 2 * width, 3, padding=1)
        self.new = nn.Conv2d(inside + width, width, 3, padding=1)

    def forward(self, x: Tensor, kept: Tensor) -> Tensor:
        forget, write = self.gates(torch.cat([x, kept], 1)).sigmoid().chunk(2, 1)
        new = self.new(torch.cat([x, forget * kept], 1)).tanh()
        return kept + write * (new - kept)


class Beaver(nn.Module):
    """What a beaver does in front of a camera, by a few pictures in a row."""

    def __init__(self, width: int = 24, deeds: int = 6) -> None:
        super().__init__()
        self.width = width
        self.seen = nn.Sequential(nn.Conv2d(1, width, 5, stride=4, padding=2), nn.ReLU())
        self.remembered = Remembered(width, width)
        self.deed = nn.Linear(width, deeds)

    def forward(self, pictures: Tensor) -> Tensor:
        seen = self.seen(pictures.flatten(0, 1)).unflatten(0, pictures.shape[:2])
        kept = torch.zeros_like(seen[:, 0])
        for moment in seen.unbind(1):
            kept = self.remembered(moment, kept)
        return self.deed(kept.mean((2, 3)))


def evenings(count: int = 500, pictures: int = 3, side: int = 40) -> TensorDataset:
    """Return random pictures of a camera at a dam, a few in a row, and what was done."""
    return TensorDataset(torch.rand(count, pictures, 1, side, side), torch.randint(6, (count,)))


# Soy sauce


class Soy(nn.Module):
    """Which ferments a soy sauce holds how much of, so that their spectra add up to its own."""

    def __init__(self, masses: int = 1200, width: int = 256, ferments: int = 24) -> None:
        super().__init__()
        self.shares = nn.Sequential(
            nn.Linear(masses, width),
            nn.LeakyReLU(),
            nn.Linear(width, width),
            nn.LeakyReLU(),
            nn.Linear(width, ferments),
        )
        self.spectra = nn.Parameter(torch.randn(ferments, masses) / 4)

    def forward(self, sauce: Tensor) -> tuple[Tensor, Tensor]:
        shares = self.shares(sauce.sqrt()).softmax(1)
        return shares @ functional.softplus(self.spectra), shares


def sauces(count: int = 2500, masses: int = 1200) -> TensorDataset:
    """Return random mass spectra of sauces."""
    return TensorDataset(torch.rand(count, masses))


def summed_up(made: Tensor, shares: Tensor, sauce: Tensor) -> Tensor:
    """Return how far the sum is off; few ferments are better than many."""
    many = -(shares * (shares + 1e-6).log()).sum(1).mean()
    return functional.poisson_nll_loss(made + 1e-4, sauce, log_input=False) + 0.01 * many


# Otters


class Otter(nn.Module):
    """Which otter is in a picture, by its throat: as an angle to that of every known one."""

    def __init__(self, width: int = 24, otters: int = 90) -> None:
        super().__init__()
        self.throat = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.PReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.PReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.PReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(32 * width, 64),
        )
        self.known = nn.Parameter(torch.randn(otters, 64))

    def forward(self, picture: Tensor) -> Tensor:
        return functional.normalize(self.throat(picture)) @ functional.normalize(self.known).mT


def throats(count: int = 900, side: int = 56) -> TensorDataset:
    """Return random pictures of throats, and whose they are."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(90, (count,)))


def with_margin(cosines: Tensor, otter: Tensor, margin: float = 0.2) -> Tensor:
    """Return the loss of angles, where the right one must be smaller than the others by more."""
    right = functional.one_hot(otter, cosines.shape[1])
    return functional.cross_entropy(16 * (cosines - margin * right), otter)


# Lanterns

SETTINGS = """
[field]
width = 128
depth = 3
first = 12.0

[job]
name = "lanterns"
threads = 8
"""
"""As they are handed in for the larger computers."""


def settings() -> dict[str, dict[str, float]]:
    """Return the settings of the fields and of the job."""
    return tomllib.loads(SETTINGS)


class Lantern(nn.Module):
    """The colour of a paper lantern's light at a place, as waves of waves."""

    def __init__(self, width: int, depth: int, first: float) -> None:
        super().__init__()
        self.first = first
        sizes = [3, *[width] * depth]
        self.layers = nn.ModuleList(nn.Linear(*each) for each in itertools.pairwise(sizes))
        self.colour = nn.Linear(width, 3)

    def forward(self, place: Tensor) -> Tensor:
        x = (self.first * self.layers[0](place)).sin()
        for layer in self.layers[1:]:
            x = layer(x).sin()
        return self.colour(x).sigmoid()


def lights(count: int = 400, places: int = 512) -> TensorDataset:
    """Return random places around lanterns, and the colours that a camera saw there."""
    return TensorDataset(torch.rand(count, places, 3), torch.rand(count, places, 3))


# Trout


class Trout(nn.Module):
    """How heavy trout are by their outlines: a Gaussian process over what a network makes of it."""

    def __init__(self, points: int = 64, features: int = 6) -> None:
        super().__init__()
        self.outline = nn.Sequential(
            nn.Linear(2 * points, 640),
            nn.ReLU(),
            nn.Linear(640, 640),
            nn.ReLU(),
            nn.Linear(640, features),
            nn.BatchNorm1d(features),
        )
        self.long = nn.Parameter(torch.ones(features))
        self.high, self.noise = nn.Parameter(torch.zeros(())), nn.Parameter(torch.tensor(-1.0))

    def unlikely(self, outline: Tensor, weight: Tensor) -> Tensor:
        """Return how unlikely the weights are, all at once, by the process."""
        found = self.outline(outline) / self.long
        length = found.square().sum(1)
        apart = (length[:, None] + length - 2 * found @ found.mT).clamp(min=0)
        alike = self.high.exp() * (-apart / 2).exp()
        alike = alike + (self.noise.exp() + 1e-3) * torch.eye(len(weight), dtype=weight.dtype)
        root = torch.linalg.cholesky(alike)
        solved = torch.cholesky_solve(weight[:, None], root)[:, 0]
        fits = (weight * solved).sum() / 2
        return (fits + root.diagonal().log().sum()) / len(weight) + math.log(2 * math.pi) / 2


def trout(count: int = 4000, points: int = 64) -> TensorDataset:
    """Return random outlines of trout, and their weights."""
    return TensorDataset(torch.randn(count, 2 * points), torch.randn(count))


# Storks


class Stork(nn.Module):
    """Where a stork flies next, by its flight so far and the wind: several ways with chances."""

    def __init__(self, width: int = 96, depth: int = 4, ways: int = 5) -> None:
        super().__init__()
        self.ways = ways
        self.enter = nn.Linear(7, width)
        self.back = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, dilation=2**each) for each in range(depth)
        )
        self.next = nn.Linear(width, 5 * ways)

    def forward(self, flight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.enter(flight).mT
        for back in self.back:
            before = 2 * back.dilation[0]
            x = x + functional.glu(back(functional.pad(x, (before, 0))), 1)
        told = self.next(x.mT).unflatten(2, (self.ways, 5))
        return told[..., 0], told[..., 1:3], functional.softplus(told[..., 3:]) + 0.05


def flights(count: int = 1500, moments: int = 65) -> TensorDataset:
    """Return random flights: place, height, speed, and the wind."""
    return TensorDataset(torch.randn(count, moments, 7))


def not_flown(told: tuple[Tensor, Tensor, Tensor], ahead: Tensor) -> Tensor:
    """Return how unlikely the moves are among the ways."""
    chance, middle, spread = told
    each = torch.distributions.Normal(middle, spread).log_prob(ahead[:, :, None]).sum(3)
    return -(chance.log_softmax(2) + each).logsumexp(2).mean()


# Nets


class Net(nn.Module):
    """Which knots of a fishing net will give way, by how they are pulled by those beside them."""

    def __init__(self, high: int = 20, wide: int = 24, width: int = 48, depth: int = 3) -> None:
        super().__init__()
        knots = torch.arange(high * wide).view(high, wide)
        across = torch.stack([knots[:, :-1].flatten(), knots[:, 1:].flatten()])
        down = torch.stack([knots[:-1].flatten(), knots[1:].flatten()])
        ties = torch.cat([across, down], 1)
        self.ties = nn.Buffer(torch.cat([ties, ties.flip(0)], 1))
        self.enter = nn.Linear(6, width)
        self.pull = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(depth))
        self.own = nn.ModuleList(nn.GRUCell(width, width) for _ in range(depth))
        self.gives = nn.Linear(width, 1)

    def forward(self, net: Tensor) -> Tensor:
        x, (start, end) = self.enter(net), self.ties
        for pull, own in zip(self.pull, self.own, strict=True):
            pulled = pull(torch.cat([x[:, start], x[:, end]], 2)).relu()
            summed = torch.zeros_like(x).index_add(1, end, pulled)
            x = own(summed.flatten(0, 1), x.flatten(0, 1)).view_as(x)
        return self.gives(x)[..., 0]


def hauls(count: int = 300, knots: int = 480) -> TensorDataset:
    """Return random pulls at the knots of nets, and which of them gave way."""
    return TensorDataset(torch.randn(count, knots, 6), (torch.rand(count, knots) < 0.05).float())
