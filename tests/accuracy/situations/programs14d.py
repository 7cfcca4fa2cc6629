"""Models and data of the fourteenth round's first runs, from baskets to windmills: see
``programs14.py``."""

import itertools
import os
import subprocess
import sys
from io import BytesIO
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Baskets


class Sought(torch.autograd.Function):
    """Rows of a table of which each rank holds every other row."""

    @staticmethod
    def forward(context: Any, table: Tensor, items: Tensor) -> Tensor:
        ranks, me = dist.get_world_size(), dist.get_rank()
        wanted = [torch.empty_like(items) for _ in range(ranks)]
        dist.all_gather(wanted, items)
        every = torch.stack(wanted)
        here = every % ranks == me
        rows = torch.where(here, every // ranks, 0)
        found = table[rows] * here[..., None]
        dist.all_reduce(found)  # who does not hold a row adds nothing to it
        context.save_for_backward(rows, here)
        context.size = table.shape
        return found[me]

    @staticmethod
    def backward(context: Any, slope: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        rows, here = context.saved_tensors
        every = [torch.empty_like(slope) for _ in range(dist.get_world_size())]
        dist.all_gather(every, slope.contiguous())
        mine = torch.stack(every)[here]
        return slope.new_zeros(context.size).index_add_(0, rows[here], mine), None


class Basket(nn.Module):
    """What is put into a basket next, by what is in it."""

    def __init__(self, apart: bool, items: int = 2000, width: int = 64, shelves: int = 40) -> None:
        super().__init__()
        self.apart = apart
        self.items = nn.Parameter(torch.randn(items // (2 if apart else 1), width) / 8)
        self.heed = nn.Linear(width, 1)
        self.mixed = nn.Sequential(nn.Linear(2 * width, 192), nn.ReLU(), nn.Linear(192, shelves))

    def forward(self, basket: Tensor) -> Tensor:
        x = Sought.apply(self.items, basket) if self.apart else self.items[basket]
        heeded = (self.heed(x).softmax(1) * x).sum(1)
        return self.mixed(torch.cat([heeded, x.amax(1)], 1))


def baskets(count: int = 3000, length: int = 20) -> TensorDataset:
    """Return random baskets, and the shelf of what comes next."""
    return TensorDataset(torch.randint(2000, (count, length)), torch.randint(40, (count,)))


# Pine cones


class Beyond(torch.autograd.Function):
    """The row of pixels that lies beyond the edge, which the other rank has."""

    @staticmethod
    def forward(_context: Any, row: Tensor) -> Tensor:
        return passed(row)

    @staticmethod
    def backward(_context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return passed(slope)


class Both(torch.autograd.Function):
    """The mean of what both ranks have."""

    @staticmethod
    def forward(_context: Any, mine: Tensor) -> Tensor:
        return mean_of_ranks(mine)

    @staticmethod
    def backward(_context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return mean_of_ranks(slope)


def mean_of_ranks(mine: Tensor) -> Tensor:
    """Return the mean of both ranks' tensors."""
    every = mine.clone()
    dist.all_reduce(every)
    return every / dist.get_world_size()


def passed(row: Tensor) -> Tensor:
    """Give the other rank this row and return its own."""
    other, mine = 1 - dist.get_rank(), row.contiguous()
    theirs = torch.empty_like(mine)
    sent, got = dist.isend(mine, other), dist.irecv(theirs, other)
    assert sent
    assert got
    sent.wait()
    got.wait()
    return theirs


class Scales(nn.Module):
    """A convolution of one half of a picture, which sees a row of the other half, normed as one."""

    def __init__(self, halved: bool, width: int) -> None:
        super().__init__()
        self.lower = halved and dist.get_rank() == 1
        self.beyond = Beyond.apply if halved else nn.Identity()
        self.both = Both.apply if halved else nn.Identity()
        self.layer = nn.Conv2d(width, width, 3)

    def forward(self, x: Tensor) -> Tensor:
        edge = self.beyond(x[:, :, :1] if self.lower else x[:, :, -1:])
        none = torch.zeros_like(edge)
        whole = torch.cat([edge, x, none] if self.lower else [none, x, edge], 2)
        seen = self.layer(functional.pad(whole, (1, 1, 0, 0)))
        mean, square = self.both(torch.stack([seen.mean((1, 2, 3)), seen.square().mean((1, 2, 3))]))
        spread = (square - mean**2 + 1e-5).sqrt()
        return x + functional.relu((seen - mean[:, None, None, None]) / spread[:, None, None, None])


class PineCone(nn.Module):
    """Which tree a cone is of."""

    def __init__(self, halved: bool, width: int = 8, depth: int = 6, trees: int = 9) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 4, 4)
        self.layers = nn.Sequential(*(Scales(halved, width) for _ in range(depth)))
        self.tree = nn.Linear(width, trees)

    def forward(self, half: Tensor) -> Tensor:
        return self.tree(self.layers(self.enter(half)).mean((2, 3)))


def halves(count: int = 400, side: int = 64) -> TensorDataset:
    """Return halves of random pictures of cones, and their trees."""
    return TensorDataset(torch.rand(count, 3, side // 2, side), torch.randint(9, (count,)))


def mean_of_both(weights: list[nn.Parameter]) -> None:
    """Take the mean of both ranks' gradients, all as one."""
    found = [each.grad for each in weights if each.grad is not None]
    whole = torch.cat([each.flatten() for each in found])
    dist.all_reduce(whole)
    nn.utils.vector_to_parameters(whole / dist.get_world_size(), found)


# Radishes


class Radish(nn.Module):
    """How heavy a radish is, by its outline as seen from four sides."""

    def __init__(self, width: int = 160, sides: int = 4) -> None:
        super().__init__()
        self.sides = nn.ModuleList(nn.Linear(48, width) for _ in range(sides))
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.weight = nn.Linear(width, 1)

    def forward(self, outlines: Tensor) -> Tensor:
        x = torch.zeros(len(outlines), self.weight.in_features)
        for side, outline in zip(self.sides, outlines.unbind(1), strict=True):
            x = x + functional.silu(side(outline))
        return self.weight(x + self.narrow(functional.silu(self.wide(x))))[:, 0]


def radishes(count: int = 2000) -> TensorDataset:
    """Return random outlines of radishes, and their weights."""
    return TensorDataset(torch.randn(count, 4, 48), torch.rand(count))


# Sparrows


class Sparrow(nn.Module):
    """Which strophe a sparrow sings, by all of its sonagram at once."""

    def __init__(self, bands: int = 32, times: int = 40, strophes: int = 60) -> None:
        super().__init__()
        self.heard = nn.Sequential(
            nn.Flatten(),
            nn.BatchNorm1d(bands * times),
            nn.Linear(bands * times, 320),
            nn.SELU(),
            nn.Linear(320, 300),
            nn.SELU(),
            nn.Linear(300, strophes),
        )

    def forward(self, sonagram: Tensor) -> Tensor:
        return self.heard(sonagram)


def sonagrams(count: int = 900) -> TensorDataset:
    """Return random sonagrams, and what was sung."""
    return TensorDataset(torch.randn(count, 32, 40), torch.randint(60, (count,)))


def told_by_all(model: nn.Module) -> None:
    """Tell the other rank each gradient by its name, and take the mean of what all told."""
    mine = {name: each.grad for name, each in model.named_parameters()}
    every: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(every, mine)
    for name, weight in model.named_parameters():
        weight.grad = torch.stack([told[name] for told in every]).mean(0)


# Snails


class Snail(nn.Module):
    """How a snail's shell winds: its outline runs in a ring."""

    def __init__(self, width: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv1d(2, width, 7, 2, 3, padding_mode="circular")
        self.along = nn.ModuleList(
            nn.Conv1d(width, width, 5, 2, 2, padding_mode="circular") for _ in range(depth)
        )
        self.winds = nn.Linear(2 * width, 3)

    def forward(self, outline: Tensor) -> Tensor:
        x = self.enter(outline)
        for along in self.along:
            x = along(functional.elu(x))
        return self.winds(torch.cat([x.mean(2), x.amax(2)], 1))


def shells(count: int = 1200) -> TensorDataset:
    """Return random outlines of shells, and three figures of how they wind."""
    return TensorDataset(torch.randn(count, 2, 128), torch.randn(count, 3))


def exact_mean(model: nn.Module) -> None:
    """Take the mean of the ranks' gradients, summed so that their order does not matter."""
    for weight in model.parameters():
        if weight.grad is not None:
            exact = weight.grad.double()
            dist.all_reduce(exact)
            weight.grad.copy_(exact / dist.get_world_size())


# Lemons

KEEPER = """
import os, sys, threading, time
from multiprocessing.managers import BaseManager
class Crate:
    def __init__(self):
        self.peels = os.urandom(3 * 40 * 40 + 4096)
    def peel(self, number):
        time.sleep(float(sys.argv[1]))
        start = number * 37 % 4096
        return self.peels[start:start + 3 * 40 * 40]
    def sourness(self, number):
        time.sleep(float(sys.argv[1]))
        return number * 31 % 97 / 97
crate = Crate()
class Keeper(BaseManager):
    pass
Keeper.register("crate", lambda: crate)
server = Keeper(("127.0.0.1", 0), b"lemons").get_server()
print(server.address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()  # ends with the training
os._exit(0)
"""
"""Keeps lemons for several trainings, at some distance."""


class Keeper(BaseManager):
    """What knows where the lemons are kept."""


Keeper.register("crate")


class Lemons(Dataset[Item]):
    """Lemons' peels and how sour they are, which a keeper has."""

    def __init__(self, ahead: bool, count: int = 500, away: float = 0.0008) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", KEEPER, str(away)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        keeper = Keeper(("127.0.0.1", int(self.process.stdout.readline())), b"lemons")
        keeper.connect()
        self.crate: Any = keeper.crate()  # type: ignore[attr-defined]
        self.count = count
        self.known = [self.lemon(number) for number in range(count)] if ahead else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        peel, sour = self.known[index] if self.known else self.lemon(index)
        seen = torch.frombuffer(bytearray(peel), dtype=torch.uint8).view(3, 40, 40)
        return seen.float() / 255, torch.tensor(sour)

    def lemon(self, number: int) -> tuple[bytes, float]:
        """Ask the keeper for a lemon."""
        return self.crate.peel(number), self.crate.sourness(number)


class Lemon(nn.Module):
    """How sour a lemon is: its peel is seen near and far by the same layers."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 4, 4)
        self.peel = nn.ModuleList(nn.Conv2d(width, width, 3, padding="same") for _ in range(2))
        self.sour = nn.Linear(3 * width, 1)

    def forward(self, seen: Tensor) -> Tensor:
        x, told = self.enter(seen), []
        for far in (1, 2, 4):
            for peel in self.peel:
                more = functional.conv2d(x, peel.weight, peel.bias, padding=far, dilation=far)
                x = x + functional.leaky_relu(more, 0.2)
            told.append(x.mean((2, 3)))
        return self.sour(torch.cat(told, 1))[:, 0]


# Elevators of grain


def bins(count: int = 900, cables: int = 8, hours: int = 120) -> TensorDataset:
    """Return how warm grain is along cables in bins, with gaps, and whether it heats."""
    chance = np.random.default_rng(67)
    warm = 15 + np.cumsum(chance.normal(0, 0.2, (count, cables, hours)), 2)
    warm[chance.random(warm.shape) < 0.2] = np.nan
    return TensorDataset(torch.from_numpy(warm), torch.randint(2, (count,)))


def filled_in(warm: np.ndarray) -> np.ndarray:
    """Return a bin's readings without gaps and jumps, and how fast they rise."""
    from scipy import signal

    hours = np.arange(warm.shape[1])
    whole = np.empty_like(warm)
    for cable, readings in enumerate(warm):
        there = ~np.isnan(readings)
        line = np.interp(hours, hours[there], readings[there])
        whole[cable] = signal.medfilt(line, 5)
    rising = signal.savgol_filter(whole, 9, 2, deriv=1, axis=1)
    return np.concatenate([(whole - whole.mean()) / whole.std(), rising]).astype(np.float32)


def together(bins: list[Item]) -> Item:
    """Return a batch of bins that are filled in here."""
    whole = np.stack([filled_in(warm.numpy()) for warm, _ in bins])
    return torch.from_numpy(whole), torch.stack([heats for _, heats in bins])


class Elevator(nn.Module):
    """Whether grain heats: hours see only those before them."""

    def __init__(self, inputs: int = 16, width: int = 56, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv1d(inputs, width, 1)
        self.before = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, dilation=2**each) for each in range(depth)
        )
        self.heats = nn.Linear(width, 2)

    def forward(self, warm: Tensor) -> Tensor:
        x = self.enter(warm)
        for before in self.before:
            seen = functional.pad(x, (2 * before.dilation[0], 0))
            x = x + functional.glu(before(seen), 1)
        return self.heats(x[:, :, -1])


# Lichens


class Lichens(Dataset[Item]):
    """Photographs of lichens on stone, brought to the same light, blurred a little and cut."""

    def __init__(self, ready: bool, count: int = 300, side: int = 160) -> None:
        chance = np.random.default_rng(71)
        self.files = []
        for grain in chance.integers(0, 255, (count, side // 8, side // 8, 3), np.uint8):
            file = BytesIO()
            stone = Image.fromarray(grain).resize((side, side), Image.Resampling.BICUBIC)
            stone.save(file, "JPEG", quality=88)
            self.files.append(file.getvalue())
        self.known = [self.toned(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Item:
        stone = self.known[index] if self.known else self.toned(index)
        return stone, torch.tensor(index % 13)

    def toned(self, index: int) -> Tensor:
        """Return a photograph as the model takes it."""
        stone = ImageOps.autocontrast(Image.open(BytesIO(self.files[index])).convert("RGB"), 2)
        stone = ImageEnhance.Color(stone).enhance(0.7 + index % 7 / 10)
        stone = stone.filter(ImageFilter.GaussianBlur(0.5 + index % 3 / 2))
        left = index % 17
        stone = stone.crop((left, left, left + 128, left + 128)).resize((64, 64))
        return torch.from_numpy(np.asarray(stone).copy()).permute(2, 0, 1).float() / 255


class Lichen(nn.Module):
    """Which lichen it is: each step narrows the picture by both kinds of pooling."""

    def __init__(self, width: int = 10, kinds: int = 13) -> None:
        super().__init__()
        sizes = (3, width, 2 * width, 2 * width)
        self.steps = nn.ModuleList(
            nn.Conv2d(inside, outside // 2, 3, padding=1)
            for inside, outside in itertools.pairwise(sizes)
        )
        self.kind = nn.Linear(2 * width, kinds)

    def forward(self, stone: Tensor) -> Tensor:
        x = stone
        for step in self.steps:
            x = functional.hardswish(step(x))
            x = torch.cat([functional.max_pool2d(x, 2), functional.avg_pool2d(x, 2)], 1)
        return self.kind(x.mean((2, 3)))


# Lizards

LIMBS = ((0, 1), (1, 2), (2, 3), (1, 4), (4, 5), (1, 6), (6, 7), (3, 8), (8, 9), (3, 10), (10, 11))
"""Joints of a lizard that belong together."""


class Lizards(Dataset[Item]):
    """Lizards seen from above, and maps of where each joint and each limb is."""

    def __init__(self, ready: bool, count: int = 300, side: int = 40) -> None:
        chance = np.random.default_rng(73)
        self.side = side
        self.seen = torch.rand(count, 1, side, side)
        self.joints = chance.uniform(4, side - 4, (count, 12, 2))
        self.known = [self.drawn(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.seen)

    def __getitem__(self, index: int) -> Item:
        return self.seen[index], self.known[index] if self.known else self.drawn(index)

    def drawn(self, index: int) -> Tensor:
        """Return the maps that the model is to draw."""
        side, joints = self.side, self.joints[index]
        down, across = np.mgrid[:side, :side]
        fine_down, fine_across = np.mgrid[: 2 * side, : 2 * side]
        maps = []
        for y, x in joints:
            near = np.exp(-((fine_down / 2 - y) ** 2 + (fine_across / 2 - x) ** 2) / 8)
            maps.append(near.reshape(side, 2, side, 2).mean((1, 3)))
        for one, other in LIMBS:
            (y, x), to = joints[one], joints[other] - joints[one]
            along = ((down - y) * to[0] + (across - x) * to[1]) / (to @ to)
            along = np.clip(along, 0, 1)
            far = np.hypot(down - y - along * to[0], across - x - along * to[1])
            maps.append((far < 2).astype(float))
        return torch.from_numpy(np.clip(np.stack(maps), 1e-4, None).astype(np.float32))


class Lizard(nn.Module):
    """Where a lizard's joints and limbs are: the picture is narrowed and widened once."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 4, 2, 1)
        self.inside = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.maps = nn.Conv2d(width, 12 + len(LIMBS), 1)

    def forward(self, seen: Tensor) -> Tensor:
        x = functional.gelu(self.enter(seen))
        inside = functional.gelu(self.inside(functional.gelu(self.down(x))))
        return self.maps(x + self.up(inside))


# Herons


class Heron(nn.Module):
    """Where a heron fishes next, by where it stood before: a chain of gates."""

    def __init__(self, places: int = 120, width: int = 48) -> None:
        super().__init__()
        self.place, self.tide = nn.Embedding(places, 24), nn.Linear(3, 24)
        self.stood = nn.GRU(24, width, 1, batch_first=True)
        self.next = nn.Linear(width, places)

    def forward(self, places: Tensor, tides: Tensor) -> Tensor:
        x, _ = self.stood(self.place(places) + self.tide(tides).sigmoid())
        return self.next(x)


class Herons(Dataset[tuple[Tensor, Tensor]]):
    """What was noted of herons: a place and three figures of the tide, sighting by sighting."""

    def __init__(self, count: int = 800, length: int = 20) -> None:
        chance = np.random.default_rng(79)
        self.notes = [
            [{"place": place, "tide": tide} for place, tide in zip(places, tides, strict=True)]
            for places, tides in zip(
                chance.integers(0, 120, (count, length)).tolist(),
                chance.standard_normal((count, length, 3)).tolist(),
                strict=True,
            )
        ]

    def __len__(self) -> int:
        return len(self.notes)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        notes = self.notes[index]
        places = torch.tensor([each["place"] for each in notes])
        return places, torch.tensor([each["tide"] for each in notes])


# Turtles


class Turtle(nn.Module):
    """How a turtle will dive, by what its tag measured: a few narrow layers."""

    def __init__(self, inputs: int = 96, width: int = 96, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.dive = nn.Linear(width, 20)

    def forward(self, tag: Tensor) -> Tensor:
        x = self.enter(tag)
        for layer in self.layers:
            x = functional.layer_norm(x + layer(x).relu(), x.shape[1:])
        return self.dive(x)


class Wide(Turtle):
    """A turtle's dives as a wide model knows them, which has learnt each part of the sea."""

    def __init__(self, parts: int = 64_000) -> None:
        super().__init__(width=480, depth=3)
        self.sea, self.felt = nn.Embedding(parts, 128), nn.Linear(128, 96)

    def forward(self, tag: Tensor) -> Tensor:
        part = (tag[:, 0].sigmoid() * self.sea.num_embeddings).long()
        return super().forward(tag + self.felt(self.sea(part)))


class Known:
    """What knows turtles already, in a file of its own or in memory."""

    def __init__(self, folder: Path, kept: bool) -> None:
        self.model = Wide().eval().requires_grad_(False)
        self.path, self.kept = folder / "known.pt", kept
        torch.save(self.model.state_dict(), self.path)
        if not kept:
            self.model.to("meta")

    def dives(self, tag: Tensor) -> Tensor:
        """Return what the wide model says."""
        if self.kept:
            return self.model(tag)
        self.model.load_state_dict(torch.load(self.path), assign=True)
        told = self.model(tag)
        self.model.to("meta")
        return told


def tags(count: int = 3000) -> TensorDataset:
    """Return random measurements of tags, and which dive came after them."""
    return TensorDataset(torch.randn(count, 96), torch.randint(20, (count,)))


# Rice cakes


class RiceCake(nn.Module):
    """How crisp a rice cake is, by how it sounds when it breaks."""

    def __init__(self, length: int = 300, width: int = 448) -> None:
        super().__init__()
        self.crack = nn.Linear(length, width)
        self.gate, self.shape = nn.Linear(width, width), nn.Linear(width, width)
        self.crisp = nn.Linear(width, 6)

    def forward(self, sound: Tensor) -> Tensor:
        x = functional.gelu(self.crack(sound))
        return self.crisp(x + self.gate(x).sigmoid() * self.shape(x))


def breaks(count: int = 3000) -> TensorDataset:
    """Return random sounds of breaking, and how crisp it was."""
    return TensorDataset(torch.randn(count, 300), torch.randint(6, (count,)))


class Shelf:
    """One file for the gradients of a model, which has none of its own between its parts."""

    def __init__(self, path: Path, model: nn.Module) -> None:
        self.weights = list(model.parameters())
        size = sum(each.numel() for each in self.weights)
        self.path = path
        self.sums = np.memmap(path, np.float32, "w+", shape=(size,))

    def places(self) -> list[tuple[nn.Parameter, np.ndarray]]:
        """Return where the gradient of each weight is."""
        start, found = 0, []
        for weight in self.weights:
            found.append((weight, self.sums[start : start + weight.numel()]))
            start += weight.numel()
        return found

    def add(self) -> None:
        """Add what one part of the batch gave, and let go of it."""
        for weight, place in self.places():
            assert weight.grad is not None
            place += weight.grad.numpy().ravel()
            weight.grad = None
        self.sums.flush()

    def back(self) -> None:
        """Bring all sums back, and begin anew."""
        for weight, place in self.places():
            weight.grad = torch.from_numpy(place.copy()).view_as(weight)
        self.sums[:] = 0
        self.sums.flush()


# Pretzels


class Pretzel(nn.Module):
    """How a pretzel was knotted: pieces of a photograph mix with each other, then within."""

    def __init__(self, pieces: int = 16, width: int = 224, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Linear(192, width)
        self.across = nn.ModuleList(nn.Linear(pieces, pieces) for _ in range(depth))
        self.within = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.GELU())
            for _ in range(depth)
        )
        self.narrow = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(depth))
        self.knot = nn.Linear(width, 8)

    def forward(self, pieces: Tensor) -> Tensor:
        x = self.enter(pieces)
        for across, within, narrow in zip(self.across, self.within, self.narrow, strict=True):
            x = x + across(x.mT).mT
            x = x + narrow(within(x))
        return self.knot(x.mean(1))


def pretzels(count: int = 600) -> TensorDataset:
    """Return pieces of random photographs, and the knots."""
    return TensorDataset(torch.rand(count, 16, 192), torch.randint(8, (count,)))


class Newest:
    """The newest states of a training, of which two stay."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.kept = folder, list[Path]()

    def keep(self, step: int, state: dict[str, Any]) -> None:
        """Keep a state, and let go of an old one."""
        made, path = self.folder / "making.pt", self.folder / f"step-{step:06d}.pt"
        with made.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        made.rename(path)
        self.kept.append(path)
        if len(self.kept) > 2:
            self.kept.pop(0).unlink()


# Barnacles


class Barnacle(nn.Module):
    """How many barnacles are on a square of rock: counts are summed over its places."""

    def __init__(self, width: int = 14) -> None:
        super().__init__()
        self.rock = nn.Sequential(
            nn.Conv2d(1, width, 5, 2, 2),
            nn.ReLU(),
            nn.Dropout2d(0.2),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Dropout2d(0.2),
            nn.Conv2d(width, 1, 1),
        )

    def forward(self, rock: Tensor) -> Tensor:
        return functional.softplus(self.rock(rock)).sum((1, 2, 3)) / 100


def rocks(count: int = 600, side: int = 48) -> TensorDataset:
    """Return random squares of rock, and how many barnacles are on them."""
    return TensorDataset(torch.rand(count, 1, side, side), torch.rand(count) * 3)


# Windmills


class Windmill(nn.Module):
    """What a windmill gives in the next hour, by its last day and the wind."""

    def __init__(self, hours: int = 24, width: int = 128) -> None:
        super().__init__()
        self.gave = nn.Linear(hours, width)
        self.wind = nn.Linear(4, width)
        self.mixed = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.next = nn.Linear(width, 1)

    def forward(self, known: Tensor) -> Tensor:
        x = self.gave(known[:, 4:]) + self.wind(known[:, :4])
        for mixed in self.mixed:
            x = x + functional.leaky_relu(mixed(x))
        return self.next(x)[:, 0].sigmoid()


def winds(count: int = 4000) -> TensorDataset:
    """Return random winds with what was given in the day before, and in the hour after."""
    return TensorDataset(torch.rand(count, 28), torch.rand(count))


def days_ahead(model: nn.Module, known: Tensor, given: Tensor) -> list[float]:
    """Return how far off forecasts are at each of 48 hours, each made with those before it."""
    wind, gave, off = known[:, :4], known[:, 4:], []
    for _ in range(48):
        told = model(torch.cat([wind, gave], 1))
        gave = torch.cat([gave[:, 1:], told[:, None]], 1)
        off.append(float((told - given).abs().mean()))
    return off
