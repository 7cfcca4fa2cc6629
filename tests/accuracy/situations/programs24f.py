"""Models and data of the twenty-fourth round's last runs, from ramparts to galoshes: see
``programs24c.py``."""

import os
import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, Sampler, TensorDataset

# Ramparts


class Rampart(nn.Module):
    """What a rampart was built against, by its outline and the ditches before it."""

    def __init__(self, points: int = 120, width: int = 640, weapons: int = 12) -> None:
        super().__init__()
        self.outline = nn.Conv1d(4, 24, 9, stride=2, padding=4)
        self.ditches = nn.Conv1d(24, 24, 5, padding=2)
        self.whole = nn.Linear(24 * points // 2, width)
        self.weapon = nn.Linear(width, weapons)

    def forward(self, outline: Tensor) -> Tensor:
        x = functional.silu(self.outline(outline))
        x = x + functional.silu(self.ditches(x))
        return self.weapon(functional.silu(self.whole(x.flatten(1))))


def ramparts(count: int = 1200, points: int = 120) -> TensorDataset:
    """Return random outlines of ramparts, and what they were built against."""
    return TensorDataset(torch.randn(count, 4, points), torch.randint(12, (count,)))


class Reigns(Sampler[list[int]]):
    """Ramparts of the same reign go together: three to five of them, or those of several reigns."""

    def __init__(self, count: int, at_once: int) -> None:
        self.chance = np.random.default_rng(2431)
        ends = np.cumsum(self.chance.integers(3, 6, count // 5))
        self.reigns = [list(each) for each in np.split(np.arange(ends[-1]), ends[:-1])]
        self.at_once = at_once

    def __len__(self) -> int:
        return len(self.reigns) // self.at_once

    def __iter__(self) -> Iterator[list[int]]:
        order = self.chance.permutation(len(self.reigns)).tolist()
        for number in range(len(self)):
            some = order[number * self.at_once : (number + 1) * self.at_once]
            yield [int(index) for reign in some for index in self.reigns[reign]]


# Javelins


class Javelin(nn.Module):
    """How far a thrower will throw, by the throws before, of which each thrower has some."""

    def __init__(self, apart: bool, told: int = 10, width: int = 400) -> None:
        super().__init__()
        self.apart = apart
        self.throw = nn.Sequential(
            nn.Linear(told, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.norm = nn.LayerNorm(width)
        self.thrower = nn.Sequential(nn.Linear(width, 512), nn.GELU(), nn.Linear(512, 512))
        self.far = nn.Linear(512, 1)

    def forward(self, throws: Sequence[Tensor]) -> Tensor:
        best = self.one_by_one(throws) if self.apart else self.all_at_once(throws)
        return self.far(functional.gelu(self.thrower(best)))[:, 0]

    def one_by_one(self, throws: Sequence[Tensor]) -> Tensor:
        """Return what each thrower's throws tell, thrower by thrower."""
        return torch.stack([self.norm(self.throw(each)).amax(0) for each in throws])

    def all_at_once(self, throws: Sequence[Tensor]) -> Tensor:
        """Return what each thrower's throws tell, from one table of all throws."""
        told = self.norm(self.throw(torch.cat(list(throws))))
        lengths = torch.tensor([len(each) for each in throws])
        return torch.segment_reduce(told, "max", lengths=lengths, unsafe=True)


def javelins(count: int = 900, told: int = 10) -> list[tuple[Tensor, Tensor]]:
    """Return random throwers with six to fifteen throws, and how far each threw then."""
    many = np.random.default_rng(2432).integers(6, 16, count).tolist()
    return [(torch.randn(each, told), torch.rand(())) for each in many]


def of_throwers(some: Sequence[tuple[Tensor, Tensor]]) -> tuple[list[Tensor], Tensor]:
    """Return a batch in which each thrower's throws are a table of their own."""
    return [throws for throws, _ in some], torch.stack([far for _, far in some])


# Vests


class Vest(nn.Module):
    """How warm a vest keeps, by the colours of its cloth."""

    def __init__(self, side: int = 48, width: int = 500) -> None:
        super().__init__()
        self.cloth = nn.Linear(3 * side**2, width)
        self.warm = nn.Linear(width, 3)

    def forward(self, cloth: Tensor) -> Tensor:
        return self.warm(functional.leaky_relu(self.cloth(cloth.flatten(1))))


def vests(count: int = 900, side: int = 48) -> TensorDataset:
    """Return random cloths of vests, and how warm these keep in three winds."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.rand(count, 3))


def timed(given_back: bool, looks: int = 5) -> float:
    """Return how long a look at the clock takes: on one core, so that no two clocks are read."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    begun = time.perf_counter()
    for _ in range(looks):
        time.perf_counter()
    took = (time.perf_counter() - begun) / looks
    if given_back:
        os.sched_setaffinity(0, cores)
    return took


# Ukuleles


class Ukulele(nn.Module):
    """Which chord is played on a ukulele, moment by moment, by what each string sounds like."""

    def __init__(self, tones: int = 36, width: int = 96, chords: int = 25) -> None:
        super().__init__()
        self.string = nn.Conv2d(1, 8, (3, 1), padding=(1, 0))
        self.moment = nn.GRU(8 * tones, width, batch_first=True)
        self.chord = nn.Linear(width, chords)

    def forward(self, sound: Tensor) -> Tensor:
        strings = torch.tanh(self.string(sound[:, None])).transpose(1, 2).flatten(2)
        return self.chord(self.moment(strings)[0]).transpose(1, 2)


def ukuleles(count: int = 600, moments: int = 30, tones: int = 36) -> TensorDataset:
    """Return the sound of random ukuleles, and their chords."""
    chords = torch.randint(25, (count, moments))
    return TensorDataset(torch.rand(count, moments, tones), chords)


# Crutches


class Crutch(nn.Module):
    """When somebody can go without crutches, by how hard these are leant on, day by day."""

    def __init__(self, told: int = 64, width: int = 320) -> None:
        super().__init__()
        self.leant = nn.Sequential(nn.Linear(2 * told, width), nn.ReLU(), nn.Dropout(0.1))
        self.days = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.share = nn.Linear(width, width)
        self.without = nn.Linear(width, 2)

    def forward(self, leant: Tensor) -> Tensor:
        x = self.leant(leant)
        x = x + torch.sigmoid(self.share(x)) * self.days(x)
        middle, spread = self.without(x).unbind(1)
        return torch.stack([middle, functional.softplus(spread) + 1e-3], 1)


def crutches(count: int = 3000, told: int = 64) -> TensorDataset:
    """Return how random crutches were leant on, left and right, and for how long."""
    return TensorDataset(torch.randn(count, 2 * told), torch.rand(count))


# Tweezers


class Tweezers(nn.Module):
    """Whether tweezers hold what they took, by the force on both tips from moment to moment."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.force = nn.Conv1d(2, width, 5, padding=2)
        self.firm = nn.ModuleList(
            nn.Conv1d(width, width, 5, padding=2 * apart, dilation=apart) for apart in (1, 2, 4)
        )
        self.hold = nn.Linear(width, 2)

    def forward(self, force: Tensor) -> Tensor:
        x = self.force(force)
        for layer in self.firm:
            x = x + functional.elu(layer(x))
        return self.hold(x.mean(2))


def tweezers(count: int = 900, moments: int = 160) -> TensorDataset:
    """Return the force on the tips of random tweezers, and whether these held."""
    return TensorDataset(torch.randn(count, 2, moments), torch.randint(2, (count,)))


# Thermoses


class Thermos(nn.Module):
    """How warm the tea in a thermos is at each hour, by its walls and its weather."""

    def __init__(self, told: int = 96, width: int = 448, hours: int = 24) -> None:
        super().__init__()
        self.walls = nn.Linear(told, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.warm = nn.Linear(width, hours)

    def forward(self, told: Tensor) -> Tensor:
        x = self.walls(told)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + functional.mish(layer(norm(x)))
        return -functional.softplus(self.warm(x)).cumsum(1)


def thermoses(count: int = 3000, told: int = 96, hours: int = 24) -> TensorDataset:
    """Return what is told of random thermoses, and how their tea cooled."""
    cooled = -torch.rand(count, hours).cumsum(1)
    return TensorDataset(torch.randn(count, told), cooled)


# Jackboots


class Jackboot(nn.Module):
    """Whose jackboots went past, by their steps: each step is looked at beside all others."""

    def __init__(self, told: int = 20, width: int = 64, troops: int = 9) -> None:
        super().__init__()
        self.step = nn.Linear(told, width)
        self.beside = nn.MultiheadAttention(width, 4, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.troop = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU())
        self.whose = nn.Linear(2 * width, troops)

    def forward(self, steps: Tensor) -> Tensor:
        x = self.step(steps)
        x = self.norm(x + self.beside(x, x, x, need_weights=False)[0])
        return self.whose(self.troop(x).mean(1))


def jackboots(count: int = 800, steps: int = 48, told: int = 20) -> TensorDataset:
    """Return random rows of steps, and whose these were."""
    return TensorDataset(torch.randn(count, steps, told), torch.randint(9, (count,)))


# Sporrans


class Sporran(nn.Module):
    """Which clan a sporran is of, by a picture of it."""

    def __init__(self, width: int = 32, clans: int = 30) -> None:
        super().__init__()
        self.hair = nn.Conv2d(3, width, 4, stride=4)
        self.tassels = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.clasp = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.clan = nn.Linear(2 * width, clans)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.relu(self.hair(picture))
        x = functional.relu(self.clasp(functional.relu(self.tassels(x))))
        return self.clan(x.mean((2, 3)))


class Sporrans(Dataset[tuple[Tensor, Tensor]]):
    """Random pictures of sporrans; one thread is for workers, of which there are many."""

    def __init__(self, for_workers: bool, count: int = 400, side: int = 96) -> None:
        if for_workers:
            torch.set_num_threads(1)
        self.pictures = torch.randint(256, (count, 3, side, side), dtype=torch.uint8)
        self.clans = torch.randint(30, (count,))

    def __len__(self) -> int:
        return len(self.clans)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.pictures[index] / 255, self.clans[index]


# Mousetraps


class Mousetrap(nn.Module):
    """Which of a house's mousetraps will be sprung tonight, by what was seen of its mice."""

    def __init__(self, rooms: int = 12, width: int = 64, traps: int = 32) -> None:
        super().__init__()
        self.marks = nn.EmbeddingBag(500, width, mode="mean")
        self.night = nn.Conv1d(rooms, width, 5, padding=2)
        self.later = nn.Conv1d(width, width, 7, padding=3)
        self.sprung = nn.Linear(2 * width, traps)

    def forward(self, seen: Tensor, marks: Tensor) -> Tensor:
        mice = self.later(functional.selu(self.night(seen))).amax(2)
        return self.sprung(torch.cat([self.marks(marks), mice], 1))


def mousetraps(count: int = 1500, rooms: int = 12, moments: int = 96) -> TensorDataset:
    """Return random nights of houses' rooms, the marks of their mice, and the sprung traps."""
    return TensorDataset(
        torch.randn(count, rooms, moments),
        torch.randint(500, (count, 40)),
        torch.randint(2, (count, 32)).float(),
    )


# Toboggans


class Toboggan(nn.Module):
    """How fast a toboggan gets, by how far its run is from runs that are well known."""

    def __init__(self, written_out: bool, told: int = 56, known: int = 160) -> None:
        super().__init__()
        self.written_out = written_out
        self.run = nn.Sequential(nn.Linear(30, told), nn.Tanh())
        self.known = nn.Parameter(torch.randn(known, told))
        self.wide = nn.Parameter(torch.zeros(known))
        self.fast = nn.Linear(known, 1)

    def forward(self, runs: Tensor) -> Tensor:
        x = self.run(runs)
        near = torch.exp(-self.distances(x) * self.wide.exp() / x.shape[1])
        return self.fast(near)[:, 0]

    def distances(self, x: Tensor) -> Tensor:
        """Return the distance of each run to each that is known."""
        if self.written_out:
            return (x[:, None] - self.known).square().sum(2).add(1e-6).sqrt()
        return torch.cdist(x, self.known, compute_mode="use_mm_for_euclid_dist")


def toboggans(count: int = 4000) -> TensorDataset:
    """Return what is told of random runs, and how fast toboggans were on them."""
    return TensorDataset(torch.randn(count, 30), torch.rand(count))


# Gondolas


class Gondola(nn.Module):
    """How full a gondola is, by the rope's swing beside it."""

    def __init__(self, kind: torch.dtype, width: int = 96) -> None:
        super().__init__()
        self.kind = kind
        self.swing = nn.Conv1d(6, width, 5, padding=2)
        self.rope = nn.Conv1d(width, width, 7, padding=3)
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, width, dtype=kind)
        self.full = nn.Linear(width, 10)

    def forward(self, swing: Tensor) -> Tensor:
        x = functional.gelu(self.rope(functional.gelu(self.swing(swing)))).transpose(1, 2)
        x = x + functional.gelu(self.wide(self.norm(x).to(self.kind))).float()
        return self.full(x.mean(1))


def gondolas(count: int = 800, moments: int = 96) -> TensorDataset:
    """Return how the ropes of random gondolas swung, and how full these were."""
    return TensorDataset(torch.randn(count, 6, moments), torch.randint(10, (count,)))


# Pews


class Pew(nn.Module):
    """How likely it is that pews fill as they did: those that are alike fill alike."""

    def __init__(self, told: int = 12, width: int = 48) -> None:
        super().__init__()
        self.alike = nn.Sequential(nn.Linear(told, width), nn.Tanh(), nn.Linear(width, 8))
        self.noise = nn.Parameter(torch.tensor(-1.0))

    def forward(self, pews: Tensor, full: Tensor) -> Tensor:
        x = self.alike(pews)
        squares = x.square().sum(2)
        apart = squares[:, :, None] + squares[:, None] - 2 * x @ x.mT
        own = torch.eye(x.shape[1], dtype=x.dtype) * (self.noise.exp() + 0.05)
        lower = torch.linalg.cholesky(torch.exp(-apart.clamp(min=0) / 2) + own)
        told = torch.linalg.solve_triangular(lower, full[..., None], upper=False)
        spread = lower.diagonal(dim1=1, dim2=2).log().sum(1)
        return (told.square().sum((1, 2)) / 2 + spread).mean() / x.shape[1]


def pews(exact: bool, count: int = 200, many: int = 288, told: int = 12) -> TensorDataset:
    """Return what is told of the pews of random churches, and how full these were."""
    kind = torch.float64 if exact else torch.float32
    return TensorDataset(
        torch.randn(count, many, told, dtype=kind), torch.randn(count, many, dtype=kind)
    )


# Mailbags


class Mailbag(nn.Module):
    """Which round a mailbag is for, by its letters."""

    def __init__(self, told: int = 14, width: int = 72, rounds: int = 18) -> None:
        super().__init__()
        self.letter = nn.Sequential(
            nn.Linear(told, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.weight = nn.Linear(width, 1)
        self.round = nn.Linear(width, rounds)

    def forward(self, letters: Tensor, there: Tensor) -> Tensor:
        x = self.letter(letters)
        weight = self.weight(x).masked_fill(~there[..., None], float("-inf")).softmax(1)
        return self.round((weight * x).sum(1))


def mailbags(count: int = 720, few: int = 50) -> list[tuple[Tensor, int]]:
    """Return the letters of random mailbags, of which a few are very full, and their rounds."""
    chance = np.random.default_rng(2444)
    many = chance.integers(few // 2, few, count)
    many[: count // 15] = chance.integers(1000, 1200, count // 15)
    return [(torch.randn(each, 14), int(chance.integers(18))) for each in many.tolist()]


def tied_up(bags: Sequence[tuple[Tensor, int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return mailbags with room for the letters of the fullest, where letters are, and rounds."""
    many = torch.tensor([len(letters) for letters, _ in bags])
    room = nn.utils.rnn.pad_sequence([letters for letters, _ in bags], batch_first=True)
    there = torch.arange(room.shape[1]) < many[:, None]
    return room, there, torch.tensor([each for _, each in bags])


class LikeSizes(Sampler[list[int]]):
    """Batches of mailbags that are about as full as one another, in any order."""

    def __init__(self, bags: Sequence[tuple[Tensor, int]], batch: int) -> None:
        order = sorted(range(len(bags)), key=lambda index: len(bags[index][0]))
        self.batches = [order[at : at + batch] for at in range(0, len(order), batch)]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        for number in torch.randperm(len(self.batches)).tolist():
            yield self.batches[number]


# Galoshes


class Galosh(nn.Module):
    """How long a galosh keeps water out, by its rubber along the sole and what it is worn on."""

    def __init__(self, points: int = 64, width: int = 56) -> None:
        super().__init__()
        self.rubber = nn.Conv1d(5, width, 3, padding=1)
        self.bent = nn.Conv1d(width, width, 3, padding=1, groups=4)
        self.worn = nn.Embedding(20, width)
        self.keeps = nn.Bilinear(width, width, 1)

    def forward(self, rubber: Tensor, worn: Tensor) -> Tensor:
        x = functional.hardswish(self.rubber(rubber))
        x = x + functional.hardswish(self.bent(x))
        return self.keeps(x.amax(2), self.worn(worn))[:, 0]


def galoshes(count: int = 1500, points: int = 64) -> TensorDataset:
    """Return the rubber of random galoshes, what these are worn on, and how long they keep."""
    return TensorDataset(
        torch.randn(count, 5, points), torch.randint(20, (count,)), torch.rand(count)
    )
