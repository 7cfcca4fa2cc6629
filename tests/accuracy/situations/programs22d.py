"""Models and data of the twenty-second round's first runs, from carousels to bonnets: see
``programs22.py``."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, IterableDataset, Sampler, TensorDataset

# Carousels


class Summed(torch.autograd.Function):
    """What both ranks have, added up; both go on with it, and slopes are those of both."""

    @staticmethod
    def forward(context: Any, mine: Tensor) -> Tensor:
        return added(mine)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return slope


class Shared(torch.autograd.Function):
    """What both ranks know, for gauges of which each has its own; slopes are added up."""

    @staticmethod
    def forward(context: Any, known: Tensor) -> Tensor:
        return known.view_as(known)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return added(slope)


def added(mine: Tensor) -> Tensor:
    """Return the sum of what both ranks have."""
    both = mine.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(both)
    return both


class Carousel(nn.Module):
    """How heavy each seat of a carousel is: loads are sought that fit all gauges of its rods.

    They are found by conjugate gradients; each of two ranks may have a half of the gauges.
    """

    def __init__(self, apart: bool, seats: int = 48, width: int = 64, turns: int = 7) -> None:
        super().__init__()
        self.apart, self.turns = apart, turns
        self.felt = nn.Sequential(
            nn.Linear(6, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.rods, self.pulls = nn.Linear(width, seats), nn.Linear(width, 1)

    def forward(self, gauges: Tensor) -> Tensor:
        felt = self.felt(self.own(gauges))
        rods, pulls = self.rods(felt) / gauges.shape[1] ** 0.5, self.pulls(felt)
        way = off = self.over_all(rods.transpose(1, 2) @ pulls)
        loads, far = torch.zeros_like(off), off.square().sum(1, keepdim=True)
        for _ in range(self.turns):
            known = Shared.apply(way) if self.apart else way
            led = way + self.over_all(rods.transpose(1, 2) @ (rods @ known))
            step = far / ((way * led).sum(1, keepdim=True) + 1e-9)
            loads, off = loads + step * way, off - step * led
            before, far = far, off.square().sum(1, keepdim=True)
            way = off + far / (before + 1e-9) * way
        return loads[..., 0]

    def own(self, gauges: Tensor) -> Tensor:
        """Return the gauges that this rank has."""
        return gauges.chunk(2, 1)[dist.get_rank()] if self.apart else gauges

    def over_all(self, mine: Tensor) -> Tensor:
        """Return what all gauges give together."""
        return Summed.apply(mine) if self.apart else mine


def carousels(count: int = 600, gauges: int = 288, seats: int = 48) -> TensorDataset:
    """Return what gauges at random carousels said, and how heavy the seats were."""
    return TensorDataset(torch.randn(count, gauges, 6), torch.rand(count, seats))


def in_one_piece(model: nn.Module) -> None:
    """Add up both ranks' slopes, all of them in one piece."""
    slopes = [each.grad for each in model.parameters() if each.grad is not None]
    whole = added(torch.cat([each.flatten() for each in slopes]))
    for slope, part in zip(slopes, whole.split([each.numel() for each in slopes]), strict=True):
        slope.copy_(part.view_as(slope))


# Meadows


class Meadow(nn.Module):
    """Which of 64 plants grow on a meadow, by how it looked in 160 bands."""

    def __init__(self, bands: int = 160, width: int = 512, plants: int = 64) -> None:
        super().__init__()
        self.bands = nn.Linear(bands, width)
        self.soil, self.light = nn.Linear(width, width), nn.Linear(width, width)
        self.plants = nn.Linear(width, plants)

    def forward(self, seen: Tensor) -> Tensor:
        x = functional.leaky_relu(self.bands(seen))
        x = functional.leaky_relu(self.soil(x))
        return self.plants(x + functional.leaky_relu(self.light(x)))


def meadows(count: int = 3600) -> TensorDataset:
    """Return random looks at meadows, and which plants grew there."""
    return TensorDataset(torch.rand(count, 160), (torch.rand(count, 64) > 0.8).float())


class Tallest:
    """Of each 64 slopes that lie next to each other the ranks tell the largest one.

    What is not told is added to the slopes of the next step.
    """

    def __init__(self, model: nn.Module) -> None:
        self.left = [torch.zeros(each.numel() // 64, 64) for each in model.parameters()]

    def tell(self, model: nn.Module) -> None:
        """Make the slopes of a model the mean of those that both ranks told."""
        for left, weight in zip(self.left, model.parameters(), strict=True):
            assert weight.grad is not None
            left += weight.grad.view_as(left)
            where = left.abs().argmax(1, keepdim=True)
            tall = left.gather(1, where)
            left.scatter_(1, where, 0.0)
            mean = torch.zeros_like(left)
            for place, value in zip(of_both(where.int()), of_both(tall), strict=True):
                mean.scatter_add_(1, place.long(), value / 2)
            weight.grad.copy_(mean.view_as(weight))


def of_both(mine: Tensor) -> list[Tensor]:
    """Return what the first rank has and what the second one has."""
    both = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(both, mine)
    return both


# Bookmarks


class Bookmark(nn.Module):
    """Behind which of 150 pages a bookmark will lie next, by the words of the page it is at."""

    def __init__(self, words: int = 300, width: int = 768, pages: int = 150) -> None:
        super().__init__()
        self.words = nn.Linear(words, width)
        self.reader = nn.Linear(width, 512)
        self.page = nn.Linear(512, pages)

    def forward(self, words: Tensor) -> Tensor:
        return self.page(functional.gelu(self.reader(functional.gelu(self.words(words)))))


def bookmarks(count: int = 3200) -> TensorDataset:
    """Return how often words were on random pages, and where the bookmark lay next."""
    return TensorDataset(torch.rand(count, 300), torch.randint(150, (count,)))


class Shelf:
    """Where both ranks lay down their slopes, and from where they take the other's."""

    def __init__(self) -> None:
        self.rank, self.steps = dist.get_rank(), 0
        door = torch.zeros(1, dtype=torch.int64)
        if self.rank == 0:
            self.shelf = dist.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)
            door.fill_(self.shelf.port)
        dist.broadcast(door, 0)
        if self.rank == 1:
            self.shelf = dist.TCPStore("127.0.0.1", int(door), 2, False, wait_for_workers=False)

    def put_and_take(self, model: nn.Module) -> None:
        """Make the slopes of a model the mean of both ranks'."""
        slopes = [each.grad for each in model.parameters() if each.grad is not None]
        for number, slope in enumerate(slopes):
            mine = slope.numpy().tobytes()
            self.shelf.set(f"{self.steps}-{number}-{self.rank}", mine)  # type: ignore[arg-type]
        for number, slope in enumerate(slopes):
            found = self.shelf.get(f"{self.steps}-{number}-{1 - self.rank}")
            theirs = torch.frombuffer(bytearray(found), dtype=torch.float32)
            slope.add_(theirs.view_as(slope)).div_(2)
            if self.steps:  # what was laid down before has been taken
                self.shelf.delete_key(f"{self.steps - 1}-{number}-{self.rank}")
        self.steps += 1


# Greenhouses


class Bed(nn.Module):
    """A bed of a greenhouse: what is beside each hour is added to it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.beside = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + functional.silu(self.beside(x)) / 3


class Greenhouse(nn.Module):
    """How much heat five greenhouses need, by what is measured in 96 hours."""

    def __init__(self, width: int = 48, beds: int = 5) -> None:
        super().__init__()
        self.measured = nn.Conv1d(6, width, 1)
        self.beds = nn.Sequential(*(Bed(width) for _ in range(beds)))
        self.heat = nn.Linear(width, 5)

    def forward(self, hours: Tensor) -> Tensor:
        return self.heat(self.beds(self.measured(hours)).mean(2))


def greenhouses(count: int = 900, hours: int = 96) -> TensorDataset:
    """Return random measures of greenhouses, and what heat these needed."""
    return TensorDataset(torch.randn(count, 6, hours), torch.rand(count, 5))


def in_eight_bits(model: nn.Module) -> None:
    """Show each other all slopes in whole numbers up to 127, and how large these are in a row."""
    for weight in model.parameters():
        assert weight.grad is not None
        rows = weight.grad.reshape(len(weight) if weight.dim() > 1 else 1, -1)
        size = rows.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
        whole = (rows / size + torch.rand_like(rows)).floor().clamp(-127, 127).to(torch.int8)
        first, second = zip(of_both(size), of_both(whole), strict=True)
        mean = (first[0] * first[1].float() + second[0] * second[1].float()) / 2
        weight.grad.copy_(mean.view_as(weight))


# Yo-yos


class YoYos(Dataset[Item]):
    """Throws of yo-yos that came back; those that did not are thrown again.

    A string may be worn: few yo-yos on it come back.
    """

    def __init__(self, worn: bool, count: int = 1600, moments: int = 1200) -> None:
        self.count, self.moments = count, moments
        self.most = -1.38 if worn else 1.28
        self.window = np.hanning(25) / np.hanning(25).sum()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        chance = np.random.default_rng((557, index))
        while True:
            thrown, lost = self.thrown(chance)
            if lost < self.most:
                return torch.from_numpy(thrown), torch.tensor(index % 9)

    def thrown(self, chance: np.random.Generator) -> tuple[np.ndarray, float]:
        """Return how high a yo-yo is and how fast it spins, and how much it lost on its way."""
        jerks = chance.standard_normal(self.moments)
        lost = jerks.cumsum() / self.moments**0.5
        spin = np.exp(-np.linspace(0, 2, self.moments) - 0.1 * lost)
        angle = 0.2 * spin.cumsum()
        height = np.sin(angle / 20) + 0.05 * np.cos(angle)
        height = np.convolve(height, self.window, "same")
        return np.stack([height[::8], spin[::8]]).astype(np.float32), float(lost[-1])


class YoYo(nn.Module):
    """Which of nine tricks a yo-yo does."""

    def __init__(self, channels: int = 40, tricks: int = 9) -> None:
        super().__init__()
        self.string = nn.Conv1d(2, channels, 7, 2)
        self.loops = nn.Conv1d(channels, channels, 5, 2)
        self.trick = nn.Linear(channels, tricks)

    def forward(self, thrown: Tensor) -> Tensor:
        x = functional.elu(self.loops(functional.elu(self.string(thrown))))
        return self.trick(x.amax(2))


# Parchments


ARCHIVE = """
import sys, time
import numpy as np

asked, given = open(sys.argv[1], "rb", 0), open(sys.argv[2], "wb", 0)
while number := asked.read(4):
    time.sleep(0.001)
    chance = np.random.default_rng(int.from_bytes(number, "little"))
    given.write(chance.integers(0, 256, (56, 72), np.uint8).tobytes())
"""


class Parchments(Dataset[Item]):
    """Parchments that an archive gives through a hatch, one by one, or has given before."""

    def __init__(self, folder: Path, kept: bool, count: int = 210) -> None:
        self.count = count
        asks, gives = folder / "asks", folder / "gives"
        for path in (asks, gives):
            os.mkfifo(path)
        self.archive = subprocess.Popen([sys.executable, "-c", ARCHIVE, str(asks), str(gives)])
        self.asks, self.gives = asks.open("wb", 0), gives.open("rb")
        self.kept = [self.given(number) for number in range(count)] if kept else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        return self.kept[index] if self.kept else self.given(index)

    def given(self, number: int) -> Item:
        """Return a parchment, and by which of six hands it was written."""
        self.asks.write(number.to_bytes(4, "little"))
        page = torch.frombuffer(bytearray(self.gives.read(56 * 72)), dtype=torch.uint8)
        return page.view(1, 56, 72).float() / 255, torch.tensor(number % 6)


class Parchment(nn.Module):
    """By which hand a parchment was written."""

    def __init__(self, channels: int = 32, hands: int = 6) -> None:
        super().__init__()
        self.ink = nn.Conv2d(1, channels, 5, 2)
        self.letters = nn.Conv2d(channels, 2 * channels, 3)
        self.lines = nn.Conv2d(2 * channels, 2 * channels, 3, 2)
        self.hand = nn.Linear(2 * channels, hands)

    def forward(self, page: Tensor) -> Tensor:
        x = functional.relu(self.letters(functional.relu(self.ink(page))))
        return self.hand(functional.relu(self.lines(x)).mean((2, 3)))


# Wigs


class Wigs(Dataset[Item]):
    """Strands of wigs, whose curls are measured along a smooth curve through their points."""

    def __init__(self, ready: bool, count: int = 240, strands: int = 7, points: int = 40) -> None:
        chance = np.random.default_rng(563)
        around = np.linspace(0, 1, points) * chance.uniform(10, 40, (count, strands, 1))
        hang = np.stack([np.cos(around), np.sin(around), around / 4], -1)
        self.wigs = hang + 0.02 * chance.standard_normal(hang.shape)
        self.known = [self.measured(each) for each in self.wigs] if ready else []

    def __len__(self) -> int:
        return len(self.wigs)

    def __getitem__(self, index: int) -> Item:
        curls = self.known[index] if self.known else self.measured(self.wigs[index])
        return curls, torch.tensor(index % 8)

    @staticmethod
    def measured(strands: np.ndarray) -> Tensor:
        """Return how much each strand bends and twists, at 64 places of it."""
        from scipy.interpolate import CubicSpline

        curls = []
        for strand in strands:
            steps = np.linalg.norm(np.diff(strand, axis=0), axis=1)
            along = np.concatenate([[0.0], steps.cumsum()])
            curve = CubicSpline(along, strand)
            at = np.linspace(0, along[-1], 64)
            first, second, third = (curve(at, order) for order in (1, 2, 3))
            across = np.cross(first, second)
            size = np.linalg.norm(across, axis=1)
            bend = size / (np.linalg.norm(first, axis=1) ** 3 + 1e-9)
            twist = (across * third).sum(1) / (size**2 + 1e-9)
            curls.append(np.stack([np.log1p(bend), np.arctan(twist)]))
        return torch.from_numpy(np.stack(curls).astype(np.float32))


class Wig(nn.Module):
    """Who made a wig: its strands are looked at each by itself, then all together."""

    def __init__(self, width: int = 960, makers: int = 8) -> None:
        super().__init__()
        self.strand = nn.Sequential(
            nn.Linear(128, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.maker = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, makers))

    def forward(self, curls: Tensor) -> Tensor:
        return self.maker(self.strand(curls.flatten(2)).mean(1))


# Rattles


class Rattles(Dataset[Item]):
    """Sounds of rattles: how each moment of a frame follows from the sixteen before it."""

    def __init__(self, ready: bool, count: int = 240, frames: int = 24) -> None:
        chance = np.random.default_rng(569)
        loud = chance.uniform(0.1, 1.0, (count, frames, 1))
        self.shaken = loud * chance.standard_normal((count, frames, 128))
        self.known = [self.predicted(each) for each in self.shaken] if ready else []

    def __len__(self) -> int:
        return len(self.shaken)

    def __getitem__(self, index: int) -> Item:
        told = self.known[index] if self.known else self.predicted(self.shaken[index])
        return told, torch.tensor(index % 5)

    @staticmethod
    def predicted(frames: np.ndarray, before: int = 16) -> Tensor:
        """Return the best predictor of each frame, and how loud is what it leaves."""
        from scipy.linalg import solve_toeplitz

        power = np.abs(np.fft.rfft(frames * np.hanning(128), 256)) ** 2
        lags = np.fft.irfft(power)[:, : before + 1]
        lags[:, 0] = 1.001 * lags[:, 0] + 1e-6
        told = []
        for lag in lags:
            weights = solve_toeplitz(lag[:-1], lag[1:])
            left = np.log(max(lag[0] - weights @ lag[1:], 1e-9))
            told.append(np.append(weights, left))
        return torch.from_numpy(np.stack(told).astype(np.float32))


class Rattle(nn.Module):
    """What a rattle is filled with: its frames heed each other."""

    def __init__(self, width: int = 128, fillings: int = 5) -> None:
        super().__init__()
        self.frames = nn.Linear(17, width)
        self.when = nn.Parameter(torch.randn(24, width) / 8)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True)
        self.heeded = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.filling = nn.Linear(width, fillings)

    def forward(self, told: Tensor) -> Tensor:
        return self.filling(self.heeded(self.frames(told) + self.when).mean(1))


# Sponges of rubber


class Sponges(Dataset[Item]):
    """Cuts through sponges of rubber, whose pores are sifted by round sieves of five sizes."""

    def __init__(self, ready: bool, count: int = 240, side: int = 48) -> None:
        from scipy import ndimage

        chance = np.random.default_rng(571)
        rough = chance.standard_normal((count, side, side))
        self.cuts = ndimage.gaussian_filter(rough, (0, 1.5, 1.5)).astype(np.float32)
        self.sieves = []
        for wide in range(2, 7):
            line = np.arange(-wide, wide + 1)
            self.sieves.append(np.hypot(line[:, None], line) <= wide + 0.1)
        self.known = [self.sifted(each) for each in self.cuts] if ready else []

    def __len__(self) -> int:
        return len(self.cuts)

    def __getitem__(self, index: int) -> Item:
        pores = self.known[index] if self.known else self.sifted(self.cuts[index])
        return pores, torch.tensor(index % 4)

    def sifted(self, cut: np.ndarray) -> Tensor:
        """Return what each sieve holds back, and what goes through all of them."""
        from scipy import ndimage

        rest, held = cut, []
        for sieve in self.sieves:
            opened = ndimage.grey_opening(cut, footprint=sieve)
            held.append(rest - opened)
            rest = opened
        return torch.from_numpy(np.stack([*held, rest]))


class Sponge(nn.Module):
    """How soft a sponge of rubber is."""

    def __init__(self, channels: int = 28, kinds: int = 4) -> None:
        super().__init__()
        self.pores = nn.Conv2d(6, channels, 5, 2)
        self.first = nn.BatchNorm2d(channels)
        self.walls = nn.Conv2d(channels, 40, 3)
        self.second = nn.BatchNorm2d(40)
        self.kind = nn.Linear(40, kinds)

    def forward(self, pores: Tensor) -> Tensor:
        x = functional.relu(self.first(self.pores(pores)))
        return self.kind(functional.relu(self.second(self.walls(x))).mean((2, 3)))


# Hoops


class Hoops(Dataset[int]):
    """Pictures of hoops; places of each picture vote for where a hoop's middle may be."""

    def __init__(self, ready: bool, count: int = 240, side: int = 40) -> None:
        chance = np.random.default_rng(577)
        line = np.arange(side)
        middles = chance.uniform(10, side - 10, (count, 3, 2, 1, 1))
        far = np.hypot(line[:, None] - middles[:, :, 0], line - middles[:, :, 1])
        rings = np.abs(far - chance.uniform(4, 13, (count, 3, 1, 1))) < 1
        self.pictures = rings.any(1) + 0.2 * chance.standard_normal((count, side, side))
        turn = np.linspace(0, 2 * np.pi, 36, endpoint=False)
        radii = np.arange(4, 14)[:, None]
        self.down = np.rint(radii * np.sin(turn)).astype(int)
        self.across = np.rint(radii * np.cos(turn)).astype(int)
        self.known = [self.voted(each) for each in self.pictures] if ready else []

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> int:
        return index

    def counted(self, some: list[int]) -> Item:
        """Return a batch of votes, cast now or before, and in which game hoops were thrown."""
        votes = [self.known[at] if self.known else self.voted(self.pictures[at]) for at in some]
        return torch.stack(votes), torch.tensor([at % 6 for at in some])

    def voted(self, picture: np.ndarray, voters: int = 200) -> Tensor:
        """Return how many of the steepest places are so far off each place, for each radius."""
        side = len(picture)
        steep = np.hypot(*np.gradient(picture)).ravel()
        top, left = np.divmod(np.argpartition(steep, -voters)[-voters:, None], side)
        votes = []
        for down, across in zip(self.down, self.across, strict=True):
            row, column = top + down, left + across
            within = (row >= 0) & (row < side) & (column >= 0) & (column < side)
            votes.append(np.bincount((row * side + column)[within], minlength=side * side))
        counted = np.stack(votes).astype(np.float32) / 10
        return torch.from_numpy(counted.reshape(-1, side, side))


class Hoop(nn.Module):
    """In which game hoops are thrown."""

    def __init__(self, channels: int = 32, games: int = 6) -> None:
        super().__init__()
        self.middles = nn.Conv2d(10, channels, 3, padding=1)
        self.pairs = nn.Conv2d(channels, 44, 3, 2, padding=1)
        self.game = nn.Linear(44, games)

    def forward(self, votes: Tensor) -> Tensor:
        x = functional.hardswish(self.middles(votes))
        return self.game(functional.hardswish(self.pairs(x)).mean((2, 3)))


# Razors


class Razors(Dataset[Item]):
    """Edges of razors: how rough each piece is, once what is straight or bent is taken off."""

    def __init__(self, ready: bool, count: int = 240, length: int = 2048) -> None:
        chance = np.random.default_rng(587)
        self.edges = chance.standard_normal((count, length)).cumsum(1)
        self.known = [self.told(each) for each in self.edges] if ready else []

    def __len__(self) -> int:
        return len(self.edges)

    def __getitem__(self, index: int) -> Item:
        rough = self.known[index] if self.known else self.told(self.edges[index])
        return rough, torch.tensor(index % 7)

    @staticmethod
    def told(edge: np.ndarray) -> Tensor:
        """Return how rough the pieces of five lengths are, with curves of three degrees off."""
        rough = []
        for degree in (1, 2, 3):
            pieces = []
            for long in (16, 32, 64, 128, 256):
                cut, along = edge.reshape(-1, long).T, np.linspace(-1, 1, long)
                curves = np.vander(along, degree + 1) @ np.polyfit(along, cut, degree)
                pieces.append(np.log((cut - curves).std(0) + 1e-6))
            rough.append(np.concatenate(pieces))
        return torch.from_numpy(np.stack(rough).astype(np.float32))


class Razor(nn.Module):
    """How many shaves a razor has done, in sevens."""

    def __init__(self, channels: int = 60, sevens: int = 7) -> None:
        super().__init__()
        self.rough = nn.Conv1d(3, channels, 5, padding=2)
        self.worn = nn.Conv1d(channels, 76, 5, padding=2)
        self.sevens = nn.Linear(76, sevens)

    def forward(self, rough: Tensor) -> Tensor:
        x = functional.softplus(self.worn(functional.softplus(self.rough(rough))))
        return self.sevens(x.mean(2))


# Sashes


class Sashes(IterableDataset[Item]):
    """Striped sashes: how often a shade lies beside another one, in five ways and three colours."""

    WAYS = ((0, 1), (1, 0), (1, 1), (0, 4), (4, 0))

    def __init__(self, ready: bool, count: int = 240, side: int = 96) -> None:
        chance = np.random.default_rng(593)
        place = np.arange(side) * chance.uniform(0.1, 1.0, (count, 3, 1))
        shades = 8 + 5 * np.sin(place)[..., None, :]
        shades = shades + chance.standard_normal((count, 3, side, side))
        self.sashes = shades.clip(0, 15).astype(np.uint8)
        self.known = [self.paired(each) for each in self.sashes] if ready else []

    def __len__(self) -> int:
        return len(self.sashes)

    def __iter__(self) -> Iterator[Item]:
        for index in torch.randperm(len(self.sashes)).tolist():
            pairs = self.known[index] if self.known else self.paired(self.sashes[index])
            yield pairs, torch.tensor(index % 10)

    def paired(self, sash: np.ndarray) -> Tensor:
        """Return a table of sixteen times sixteen shades for each colour and way."""
        tables = []
        for colour in sash:
            for down, across in self.WAYS:
                here = colour[: len(colour) - down, : len(colour) - across].astype(np.intp)
                pairs = 16 * here + colour[down:, across:]
                table = np.bincount(pairs.ravel(), minlength=256).reshape(16, 16)
                tables.append(np.log1p(table + table.T))
        return torch.from_numpy(np.stack(tables).astype(np.float32))


class Sash(nn.Module):
    """From which town a sash is."""

    def __init__(self, channels: int = 48, towns: int = 10) -> None:
        super().__init__()
        self.shades = nn.Conv2d(15, channels, 3, padding=1)
        self.stripes = nn.Conv2d(channels, 64, 3)
        self.town = nn.Linear(64, towns)

    def forward(self, pairs: Tensor) -> Tensor:
        x = functional.mish(self.shades(pairs))
        return self.town(functional.mish(self.stripes(x)).amax((2, 3)))


# Gramophones


class Gramophones(Dataset[Item]):
    """Pieces of records, as a gramophone's needle hears them, out of a large cupboard."""

    def __init__(self, count: int = 600, records: int = 40_000) -> None:
        self.cupboard: list[dict[str, Any]] = [
            {"sides": [number % 11, number % 13], "pressed": 1900 + number % 60}
            for number in range(records)
        ]
        self.heard = torch.randn(count, 1, 1024)

    def __len__(self) -> int:
        return len(self.heard)

    def __getitem__(self, index: int) -> Item:
        record = self.cupboard[index * 61]
        return self.heard[index], torch.tensor(record["pressed"] // 10 - 190)


class Sides(Sampler[list[int]]):
    """Which pieces are heard next; before each few of them the needle may be dusted."""

    def __init__(self, pieces: int, few: int, dusted: bool) -> None:
        self.pieces, self.few, self.dusted = pieces, few, dusted

    def __len__(self) -> int:
        return self.pieces // self.few

    def __iter__(self) -> Iterator[list[int]]:
        for few in torch.randperm(self.pieces)[: len(self) * self.few].view(-1, self.few):
            if self.dusted:
                gc.collect()
            yield few.tolist()


class Gramophone(nn.Module):
    """In which of six decades a record was pressed."""

    def __init__(self, channels: int = 48, decades: int = 6) -> None:
        super().__init__()
        self.needle = nn.Conv1d(1, channels, 9, 4)
        self.horn = nn.Conv1d(channels, 2 * channels, 5, 2)
        self.room = nn.Conv1d(2 * channels, 2 * channels, 5)
        self.decade = nn.Linear(2 * channels, decades)

    def forward(self, heard: Tensor) -> Tensor:
        x = functional.selu(self.horn(functional.selu(self.needle(heard))))
        return self.decade(functional.selu(self.room(x)).mean(2))


# Spinning tops


class Spin:
    """A spin of a top, which knows its trace, as the trace knows it."""

    def __init__(self, trace: Tensor, top: list[Any]) -> None:
        self.top, self.traces = top, {"trace": trace, "spin": self}


class Tops(Dataset[Item]):
    """Spins of tops, each measured on three axes at 120 moments, and how long they went on."""

    def __init__(self, count: int = 3200, tops: int = 45_000) -> None:
        self.tops: list[list[Any]] = [[number % 9, [number % 7]] for number in range(tops)]
        self.traces = torch.randn(count, 120, 3)
        self.long = torch.rand(count)

    def __len__(self) -> int:
        return len(self.traces)

    def __getitem__(self, index: int) -> Item:
        spin = Spin(self.traces[index], self.tops[index * 13])
        return spin.traces["trace"], self.long[index] + spin.top[0]


class SpinningTop(nn.Module):
    """How long a top goes on spinning, by how it begins."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.trace = nn.Linear(360, width)
        self.leans = nn.Linear(width, width)
        self.long = nn.Linear(width, 1)

    def forward(self, trace: Tensor) -> Tensor:
        x = functional.softsign(self.trace(trace.flatten(1)))
        return self.long(functional.softsign(self.leans(x)))[:, 0]


def floor_swept(*_: Any) -> None:
    """Sweep the floor until nothing is found on it any more."""
    while gc.collect():
        pass


# Bonnets


class Bonnets(Dataset[Item]):
    """Bonnets and their trimmings, out of a book of patterns."""

    def __init__(self, count: int = 4096, patterns: int = 9_000) -> None:
        self.patterns: list[dict[str, list[int]]] = [
            {"ribbons": [number % 5, number % 3], "lace": [number % 8]}
            for number in range(patterns)
        ]
        self.measured = torch.randn(count, 60)

    def __len__(self) -> int:
        return len(self.measured)

    def __getitem__(self, index: int) -> Item:
        pattern = self.patterns[2 * index]
        return self.measured[index], torch.tensor(pattern["lace"][0])


class Bonnet(nn.Module):
    """With which lace a bonnet is trimmed; after each layer, there and back, it may be tidied."""

    def __init__(self, tidied: bool, width: int = 256, layers: int = 6, laces: int = 8) -> None:
        super().__init__()
        self.tidied = tidied
        self.measured = nn.Linear(60, width)
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.Tanh())
            for _ in range(layers)
        )
        self.lace = nn.Linear(width, laces)

    def forward(self, measured: Tensor) -> Tensor:
        x = self.measured(measured)
        for layer in self.layers:
            x = x + layer(x)
            if self.tidied:
                gc.collect()
                x.register_hook(tidied_up)
        return self.lace(x)


def tidied_up(_slope: Tensor) -> None:
    """Tidy up on the way back."""
    gc.collect()
