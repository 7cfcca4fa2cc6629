"""Models and data of the sixteenth round's runs 16 to 30, from string to clover: see
``programs16b.py``."""

import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# String


class Crossing:
    """Where a string crosses another part of itself; it knows those before and after it."""

    def __init__(self, above: float, turn: float) -> None:
        self.above, self.turn = above, turn
        self.before = self.after = self

    def joined(self, other: "Crossing") -> "Crossing":
        """Let another one follow, and return it."""
        self.after, other.before = other, self
        return other


def tied(crossings: list[list[float]]) -> Crossing:
    """Return the first crossing of a closed knot."""
    first = last = Crossing(*crossings[0])
    for each in crossings[1:]:
        last = last.joined(Crossing(*each))
    last.joined(first)
    return first


def along(first: Crossing) -> list[list[float]]:
    """Return what each crossing of a knot is, beside the two next to it."""
    told, here = list[list[float]](), first
    while not told or here is not first:
        told.append([here.above, here.turn, here.before.turn, here.after.above])
        here = here.after
    return told


class String(nn.Module):
    """Which knot a string has, by its crossings in turn."""

    def __init__(self, width: int = 96, knots: int = 24) -> None:
        super().__init__()
        self.crossings = nn.GRU(4, width, batch_first=True, bidirectional=True)
        self.knot = nn.Linear(2 * width, knots)

    def forward(self, crossings: Tensor) -> Tensor:
        return self.knot(self.crossings(crossings)[0].amax(1))


def strings(count: int = 5000, crossings: int = 20) -> list[tuple[Crossing, int]]:
    """Return random strings by their crossings, and their knots."""
    drawn = torch.randn(count, crossings, 2).tolist()
    return [
        (tied(each), int(knot))
        for each, knot in zip(drawn, torch.randint(24, (count,)), strict=True)
    ]


def crossing(strings: list[tuple[Crossing, int]]) -> tuple[Tensor, Tensor]:
    """Return a batch of the crossings of some strings, and of their knots."""
    first, knots = zip(*strings, strict=True)
    return torch.tensor([*map(along, first)]), torch.tensor(knots)


# Parrots


class Parrot(nn.Module):
    """Which word a parrot says, by a picture of its sound."""

    def __init__(self, width: int = 16, words: int = 40) -> None:
        super().__init__()
        sizes = ((1, width), (width, 2 * width), (2 * width, 3 * width))
        self.heard = nn.Sequential(
            *(
                nn.Sequential(nn.Conv2d(*each, 3, 2, 1), nn.BatchNorm2d(each[1]), nn.Hardswish())
                for each in sizes
            )
        )
        self.word = nn.Linear(3 * width, words)

    def forward(self, sound: Tensor) -> Tensor:
        return self.word(self.heard(sound).mean((2, 3)))


def squawks(count: int = 960) -> TensorDataset:
    """Return random pictures of sounds, and the words."""
    return TensorDataset(torch.randn(count, 1, 48, 64), torch.randint(40, (count,)))


# Mussels


class Mussel(nn.Module):
    """Where in a room of vectors the picture of a mussel's shell is."""

    def __init__(self, width: int = 24, room: int = 96) -> None:
        super().__init__()
        self.shell = nn.Sequential(
            nn.Conv2d(3, width, 4, 4),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 3 * width, 3, 2, 1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(3 * width, room),
        )

    def forward(self, picture: Tensor) -> Tensor:
        return functional.normalize(self.shell(picture), dim=1)


class Bank:
    """Where the shells of the last steps were, the newest in place of the oldest."""

    def __init__(self, path: Path | None, many: int, room: int = 96) -> None:
        self.path, self.at, self.shape = path, 0, (many, room)
        self.known: Tensor | None = functional.normalize(torch.randn(many, room), dim=1)
        if path:
            self.known.numpy().tofile(path)
            self.known = None

    def all(self) -> Tensor:
        """Return those of all of the last steps."""
        if self.known is not None:
            return self.known
        assert self.path
        return torch.from_numpy(np.fromfile(self.path, np.float32).reshape(self.shape))

    def take(self, found: Tensor) -> None:
        """Keep those of one step."""
        places = (self.at + torch.arange(len(found))) % self.shape[0]
        self.at = (self.at + len(found)) % self.shape[0]
        known = self.all()
        known[places] = found
        if self.path:
            known.numpy().tofile(self.path)


def shells(count: int = 800) -> TensorDataset:
    """Return random pictures of shells."""
    return TensorDataset(torch.rand(count, 3, 32, 32))


# Geese


class Goose(nn.Module):
    """Where geese fly, by what eight microphones hear of them."""

    def __init__(self, width: int = 640) -> None:
        super().__init__()
        self.heard = nn.Sequential(
            nn.Linear(8 * 64, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 3),
        )

    def forward(self, heard: Tensor) -> Tensor:
        return self.heard(heard.flatten(1))


def formations(count: int = 2000) -> TensorDataset:
    """Return random sounds at eight microphones, and where the geese were."""
    return TensorDataset(torch.randn(count, 8, 64), torch.randn(count, 3))


class Aside:
    """Puts weights and their slopes aside, in memory or in files, and brings them back."""

    def __init__(self, model: nn.Module, folder: Path | None) -> None:
        self.weights, self.folder = list(model.parameters()), folder
        self.kept: dict[str, Tensor] = {}

    def put(self, name: str, values: Tensor) -> None:
        """Put values aside."""
        if self.folder:
            with (self.folder / name).open("wb") as file:
                file.write(values.numpy().tobytes())
                os.fsync(file.fileno())
        else:
            self.kept[name] = values.clone()

    def bring(self, name: str, values: Tensor) -> Tensor:
        """Return what was put aside, which has the form of other values."""
        if not self.folder:
            return self.kept.pop(name)
        place = self.folder / name
        old = torch.frombuffer(bytearray(place.read_bytes()), dtype=values.dtype)
        place.unlink()
        return old.view_as(values)

    @torch.no_grad()
    def uphill(self, far: float = 0.05) -> None:
        """Take the weights to where the loss is larger."""
        slopes = [each.grad for each in self.weights if each.grad is not None]
        step = far / torch.stack([each.norm() for each in slopes]).norm()
        for number, (weight, slope) in enumerate(zip(self.weights, slopes, strict=True)):
            self.put(f"{number}.weight", weight.detach())
            self.put(f"{number}.slope", slope)
            weight.add_(slope * step)

    @torch.no_grad()
    def back(self, share: float = 0.3) -> None:
        """Take the weights back; a share of their slopes is that of before."""
        for number, weight in enumerate(self.weights):
            assert weight.grad is not None
            weight.copy_(self.bring(f"{number}.weight", weight))
            weight.grad.lerp_(self.bring(f"{number}.slope", weight.grad), share)


# Coconuts


class Coconut(nn.Module):
    """How ripe a coconut is, by how it sounds when it is tapped: the sound decays in modes."""

    def __init__(self, modes: int = 10, ripe: int = 4) -> None:
        super().__init__()
        self.pitch = nn.Parameter(torch.rand(modes) * 3)
        self.decay = nn.Parameter(torch.rand(modes))
        self.loud = nn.Linear(64, modes)
        self.ripe = nn.Linear(2 * modes + 1, ripe)
        self.modes = modes

    def forward(self, tapped: Tensor) -> Tensor:
        time = torch.linspace(0, 1, tapped.shape[1])
        loud, rest, parts = self.loud(tapped[:, :64]).tanh(), tapped, []
        for mode in range(self.modes):
            falls = torch.exp(-functional.softplus(self.decay[mode]) * 4 * time)
            across = torch.cos(self.pitch[mode] * 40 * time) * falls
            down = torch.sin(self.pitch[mode] * 40 * time) * falls
            a, b = (rest * across).mean(1), (rest * down).mean(1)
            rest = rest - (loud[:, mode] * a)[:, None] * across - b[:, None] * down
            parts += [torch.log1p(a * a), torch.log1p(b * b)]
        return self.ripe(torch.stack([*parts, rest.square().mean(1)], 1))


def taps(count: int = 1600, length: int = 256) -> TensorDataset:
    """Return random sounds of coconuts, and how ripe they are."""
    return TensorDataset(torch.randn(count, length), torch.randint(4, (count,)))


# Tigers


class Tiger(nn.Module):
    """Which tiger it is: near each other are pictures of the same stripes."""

    def __init__(self, width: int = 24, room: int = 64) -> None:
        super().__init__()
        self.stripes = nn.Sequential(
            nn.Conv2d(1, width, 5, 2, 2),
            nn.PReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.PReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 2, 1),
            nn.PReLU(),
        )
        self.room = nn.Linear(2 * width, room)

    def forward(self, flank: Tensor) -> Tensor:
        return functional.normalize(self.room(self.stripes(flank).mean((2, 3))), dim=1)


def flanks(count: int = 900, tigers: int = 30) -> TensorDataset:
    """Return random pictures of flanks, and whose they are."""
    return TensorDataset(torch.rand(count, 1, 40, 64), torch.arange(count) % tigers)


def met_again(found: Tensor, whose: Tensor) -> float:
    """Return how far ahead pictures of the same tiger stand, for each of all others."""
    order = torch.cdist(found, found).argsort(1)[:, 1:]
    same = (whose[order] == whose[:, None]).float()
    ahead = same.cumsum(1) / torch.arange(1, order.shape[1] + 1)
    return float(((ahead * same).sum(1) / same.sum(1)).mean())


# Quails


class Quail(nn.Module):
    """How long a quail has sat on an egg, by light that shines through it."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.light = nn.Sequential(
            nn.Conv1d(6, width, 7, padding=3),
            nn.GroupNorm(4, width),
            nn.Mish(),
            nn.Conv1d(width, 2 * width, 7, 2, 3),
            nn.GroupNorm(4, 2 * width),
            nn.Mish(),
            nn.AdaptiveMaxPool1d(4),
            nn.Flatten(),
        )
        self.days = nn.Linear(8 * width, 1)

    def forward(self, shone: Tensor) -> Tensor:
        return self.days(self.light(shone))


def eggs(count: int = 1200, length: int = 160) -> TensorDataset:
    """Return random light through eggs, and how many days they were sat on."""
    return TensorDataset(torch.randn(count, 6, length), torch.rand(count, 1) * 17)


# Gravel


class Gravel(nn.Module):
    """How much of gravel passes each of twelve sieves, by pictures of heaps."""

    def __init__(self, width: int = 16, sieves: int = 12) -> None:
        super().__init__()
        self.heap = nn.Sequential(
            nn.Conv2d(1, width, 3, 2, 1),
            nn.CELU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.CELU(),
            nn.Conv2d(2 * width, 4 * width, 3, 2, 1),
            nn.CELU(),
        )
        self.passes = nn.Linear(4 * width, sieves)

    def forward(self, heap: Tensor) -> Tensor:
        return self.passes(self.heap(heap).mean((2, 3))).softmax(1).cumsum(1)


def heaps(count: int = 960, side: int = 56) -> TensorDataset:
    """Return random pictures of heaps, and how much passes."""
    passes = torch.rand(count, 12).softmax(1).cumsum(1)
    return TensorDataset(torch.rand(count, 1, side, side), passes)


class Tables:
    """Tables in a file: how the weights and slopes lie, and how each sieve is missed."""

    def __init__(self, path: Path) -> None:
        self.base = sqlite3.connect(path)
        self.base.execute("pragma journal_mode = wal")
        self.base.execute("pragma synchronous = off")
        self.base.execute("create table lies (step, weight, kind, part, value)")
        self.base.execute("create table missed (step, heap, sieve, value)")
        self.parts = torch.linspace(0, 1, 61)

    def lies(self, step: int, model: nn.Module) -> Iterable[tuple[Any, ...]]:
        """Return the rows of the weights and their slopes."""
        for name, weight in model.named_parameters():
            for kind, values in (("weight", weight.detach()), ("slope", weight.grad)):
                assert values is not None
                for part, value in zip(
                    self.parts, values.flatten().quantile(self.parts), strict=True
                ):
                    yield step, name, kind, float(part), float(value)

    def write(self, step: int, model: nn.Module, missed: Tensor) -> None:
        """Add the rows of one step."""
        rows = [
            (step, heap, sieve, value)
            for heap, sieves in enumerate(missed.tolist())
            for sieve, value in enumerate(sieves)
        ]
        with self.base:
            self.base.executemany("insert into lies values (?, ?, ?, ?, ?)", self.lies(step, model))
            self.base.executemany("insert into missed values (?, ?, ?, ?)", rows)


# Hares


class Hare(nn.Module):
    """How many hares sit in a field, by a warmth picture of it."""

    def __init__(self, width: int = 40, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 4, 2, 1)
        self.layers = nn.Sequential(
            *(
                nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.LeakyReLU(0.1))
                for _ in range(depth)
            )
        )
        self.many = nn.Linear(width, 1)

    def forward(self, field: Tensor) -> Tensor:
        return self.many(self.layers(self.enter(field)).mean((2, 3)))[:, 0]


def fields(count: int = 640, side: int = 72) -> TensorDataset:
    """Return random warmth pictures, and how many hares are there."""
    return TensorDataset(torch.rand(count, 1, side, side), torch.randint(9, (count,)).float())


# Leeks


class Leek(nn.Module):
    """What a leek lacks, by the light that its leaves throw back."""

    def __init__(self, bands: int = 256, width: int = 1024, lacks: int = 7) -> None:
        super().__init__()
        self.leaf = nn.Sequential(
            nn.Linear(bands, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, lacks),
        )

    def forward(self, light: Tensor) -> Tensor:
        return self.leaf(light)


class Leeks(Dataset[Any]):
    """Random light of leeks; a whole batch is cut out at once."""

    def __init__(self, count: int = 16_384, bands: int = 256) -> None:
        self.light, self.lacks = torch.rand(count, bands), torch.randint(7, (count,))

    def __len__(self) -> int:
        return len(self.lacks)

    def __getitem__(self, numbers: Any) -> Any:
        return self.light[numbers], self.lacks[numbers]


# Bricks


class Brick(nn.Module):
    """Where a brick is cracked: looks wider at each layer."""

    def __init__(self, width: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=2**each, dilation=2**each) for each in range(depth)
        )
        self.crack = nn.Conv2d(width, 1, 1)

    def forward(self, face: Tensor) -> Tensor:
        x = functional.relu(self.enter(face))
        for layer in self.layers:
            x = functional.relu(layer(x)) + x
        return self.crack(x)


def faces(count: int = 320, tall: int = 40, wide: int = 80) -> TensorDataset:
    """Return random pictures of bricks, and their cracks."""
    cracks = (torch.rand(count, 1, tall, wide) < 0.02).float()
    return TensorDataset(torch.rand(count, 3, tall, wide), cracks)


# Elephants


class Elephant(nn.Module):
    """Which elephant rumbles: gated convolutions over a long sound."""

    def __init__(self, width: int = 48, depth: int = 4, elephants: int = 20) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, 16, 8, 4)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 5, padding=2 * 3**each, dilation=3**each)
            for each in range(depth)
        )
        self.who = nn.Linear(width, elephants)

    def forward(self, rumble: Tensor) -> Tensor:
        x = self.enter(rumble)
        for layer in self.layers:
            x = x + functional.glu(layer(x), 1)
        return self.who(x.mean(2))


def rumbles(count: int = 512, length: int = 6400) -> TensorDataset:
    """Return random sounds, and who made them."""
    return TensorDataset(torch.randn(count, 1, length), torch.randint(20, (count,)))


# Gold


class Gold(nn.Module):
    """How firmly a few atoms of gold hold together, by how far each is from each."""

    centres: Tensor

    def __init__(self, width: int = 96, waves: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.register_buffer("centres", torch.linspace(0, 6, waves))
        self.atom = nn.Parameter(torch.randn(width) / 8)
        self.pairs = nn.ModuleList(
            nn.Sequential(nn.Linear(waves, width), nn.Softplus(), nn.Linear(width, width))
            for _ in range(depth)
        )
        self.atoms = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.holds = nn.Linear(width, 1)

    def forward(self, places: Tensor) -> Tensor:
        far = torch.cdist(places, places)
        waves = torch.exp(-0.5 * (far[..., None] - self.centres).square())
        x = self.atom.expand(*places.shape[:2], -1)
        for pair, atom in zip(self.pairs, self.atoms, strict=True):
            seen = (pair(waves) * x[:, None]).sum(2)
            x = x + atom(seen).tanh()
        return self.holds(x).sum((1, 2))


def nuggets(count: int = 1024, atoms: int = 20) -> TensorDataset:
    """Return random atoms of gold, and how firmly they hold."""
    return TensorDataset(torch.rand(count, atoms, 3) * 4, torch.randn(count))


# Llamas


class Llama(nn.Module):
    """How a llama walks, by what hangs on its collar feels: attention over short pieces."""

    def __init__(self, width: int = 128, depth: int = 2, gaits: int = 6) -> None:
        super().__init__()
        self.enter = nn.Linear(6 * 10, width)
        self.place = nn.Parameter(torch.randn(64, width) / 8)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True
            )
            for _ in range(depth)
        )
        self.gait = nn.Linear(width, gaits)

    def forward(self, felt: Tensor) -> Tensor:
        x = self.enter(felt.view(len(felt), -1, 60)) + self.place
        for layer in self.layers:
            x = layer(x)
        return self.gait(x[:, 0])


def walks(count: int = 1024) -> TensorDataset:
    """Return random feelings of collars, and gaits."""
    return TensorDataset(torch.randn(count, 640, 6), torch.randint(6, (count,)))


# Clover


class Clover(nn.Module):
    """How many leaves a clover has, by points on it that have no order."""

    def __init__(self, width: int = 192) -> None:
        super().__init__()
        self.point = nn.Sequential(
            nn.Linear(3, width // 2),
            nn.ELU(),
            nn.Linear(width // 2, width),
            nn.ELU(),
            nn.Linear(width, 2 * width),
        )
        self.leaves = nn.Sequential(nn.Linear(2 * width, width), nn.ELU(), nn.Linear(width, 3))

    def forward(self, points: Tensor) -> Tensor:
        return self.leaves(self.point(points).amax(1))


def clovers(count: int = 1024, points: int = 192) -> TensorDataset:
    """Return random points on clovers, and how many leaves."""
    return TensorDataset(torch.randn(count, points, 3), torch.randint(3, (count,)))
