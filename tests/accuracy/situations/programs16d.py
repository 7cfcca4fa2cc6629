"""Models and data of the sixteenth round's first runs, from reeds to spinach: see
``programs16.py``."""

import random
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image, ImageEnhance
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset


def as_one(model: nn.Module) -> None:
    """Take the mean of all slopes over both ranks, in one piece."""
    slopes = [each.grad for each in model.parameters() if each.grad is not None]
    whole = torch.cat([each.flatten() for each in slopes])
    dist.all_reduce(whole)
    nn.utils.vector_to_parameters(whole / dist.get_world_size(), slopes)


class OfBoth(torch.autograd.Function):
    """The sum of what both ranks have."""

    @staticmethod
    def forward(_context: Any, x: Tensor) -> Tensor:
        whole = x.clone()
        dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(_context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return slope


# Reeds


def passed(row: Tensor) -> Tensor:
    """Return the other rank's row for one's own."""
    other = 1 - dist.get_rank()
    row, found = row.contiguous(), torch.empty_like(row)
    sent, got = dist.isend(row, other), dist.irecv(found, other)
    for each in (sent, got):
        if each is not None:
            each.wait()
    return found


class Beside(torch.autograd.Function):
    """The row of the other rank that is beside one's own rows."""

    @staticmethod
    def forward(context: Any, x: Tensor) -> Tensor:
        context.save_for_backward(x)
        return passed(x[:, :, -1:] if dist.get_rank() == 0 else x[:, :, :1])

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = context.saved_tensors
        own = torch.zeros_like(x)
        edge = own[:, :, -1:] if dist.get_rank() == 0 else own[:, :, :1]
        edge.copy_(passed(slope))
        return own


class Stalks(nn.Module):
    """Looks at a picture's rows, which end at zeros or where the other rank's begin."""

    def __init__(self, halves: bool, channels: int) -> None:
        super().__init__()
        self.halves = halves
        self.near = nn.Conv2d(channels, channels, 3, padding=(0, 1))

    def forward(self, x: Tensor) -> Tensor:
        if not self.halves:
            return x + self.near(functional.pad(x, (0, 0, 1, 1))).relu()
        none, beside = torch.zeros_like(x[:, :, :1]), Beside.apply(x)
        rows = [none, x, beside] if dist.get_rank() == 0 else [beside, x, none]
        return x + self.near(torch.cat(rows, 2)).relu()


class Reed(nn.Module):
    """How dense a bed of reeds stands, by a picture of which each rank may see a half."""

    def __init__(self, halves: bool, channels: int = 8, depth: int = 8) -> None:
        super().__init__()
        self.halves = halves
        self.enter = nn.Conv2d(3, channels, 1)
        self.stalks = nn.Sequential(*(Stalks(halves, channels) for _ in range(depth)))
        self.dense = nn.Linear(channels, 6)

    def forward(self, picture: Tensor) -> Tensor:
        if self.halves:
            picture = picture.chunk(2, 2)[dist.get_rank()]
        seen = self.stalks(self.enter(picture)).mean((2, 3))
        return self.dense(OfBoth.apply(seen) / 2 if self.halves else seen)


def beds(count: int = 600, side: int = 24) -> TensorDataset:
    """Return random pictures of reeds."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(6, (count,)))


# Palms


class Palm(nn.Module):
    """How alike a crown's spectrum and some typical ones are."""

    def __init__(self, width: int = 96, kinds: int = 30) -> None:
        super().__init__()
        self.crown = nn.Sequential(nn.Linear(64, width), nn.ELU(), nn.Linear(width, 32))
        self.kinds = nn.Linear(32, kinds, bias=False)

    def forward(self, spectra: Tensor) -> Tensor:
        return self.kinds(functional.normalize(self.crown(spectra), dim=1))


@torch.no_grad()
def balanced(told: Tensor, shared: bool, rounds: int = 16) -> Tensor:
    """Return of what kind each is, so that all kinds have as many; of both ranks where shared."""
    share = (told / 0.05).exp()
    ranks = dist.get_world_size() if shared else 1
    for _ in range(rounds):
        kinds = share.sum(0)
        if shared:
            dist.all_reduce(kinds)
        share = share / kinds * ranks * len(share) / len(kinds)
        share = share / share.sum(1, keepdim=True)
    return share


def crowns(count: int = 3000) -> TensorDataset:
    """Return random spectra of the crowns of palms."""
    return TensorDataset(torch.randn(count, 64))


# Ivy


class Gathered(torch.autograd.Function):
    """What all leaves know, where each rank has a half of them."""

    @staticmethod
    def forward(_context: Any, x: Tensor) -> Tensor:
        halves = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(halves, x.contiguous())
        return torch.cat(halves)

    @staticmethod
    def backward(_context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        whole = slope.contiguous().clone()
        dist.all_reduce(whole)
        return whole.chunk(dist.get_world_size())[dist.get_rank()]


class Ivy(nn.Module):
    """Which leaves of an ivy wither: each tells its neighbours, and they theirs."""

    near: Tensor

    def __init__(self, halves: bool, leaves: int = 400, width: int = 12, hops: int = 10) -> None:
        super().__init__()
        self.halves, self.hops = halves, hops
        starts = torch.randint(leaves, (4 * leaves,))
        ends = torch.arange(leaves).repeat(4)
        near = torch.sparse_coo_tensor(
            torch.stack([ends, starts]), torch.full((4 * leaves,), 0.25), (leaves, leaves)
        ).coalesce()
        if halves:
            own = dist.get_rank() * leaves // 2
            near = near.index_select(0, torch.arange(own, own + leaves // 2)).coalesce()
        self.near = near
        self.leaf = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, leaves: Tensor) -> Tensor:
        told = self.leaf(self.own(leaves))
        x = told
        for _ in range(self.hops):
            every = Gathered.apply(x) if self.halves else x
            x = 0.9 * torch.sparse.mm(self.near, every) + 0.1 * told
        return x

    def own(self, leaves: Tensor) -> Tensor:
        """Return what is of this rank's leaves."""
        return leaves.chunk(2)[dist.get_rank()] if self.halves else leaves


def days(count: int = 300, leaves: int = 400) -> TensorDataset:
    """Return random states of an ivy's leaves, by the day, and which of them wither."""
    return TensorDataset(torch.randn(count, leaves, 10), torch.randint(4, (count, leaves)))


# Oranges


class Orange(nn.Module):
    """A picture of an orange as a direction."""

    def __init__(self, channels: int = 12) -> None:
        super().__init__()
        self.peel = nn.Sequential(
            nn.Conv2d(3, channels, 6, 6),
            nn.BatchNorm2d(channels),
            nn.LeakyReLU(),
            nn.Conv2d(channels, 3 * channels, 3, 2, 1),
            nn.BatchNorm2d(3 * channels),
            nn.LeakyReLU(),
        )
        self.way = nn.Linear(3 * channels, 32)

    def forward(self, picture: Tensor) -> Tensor:
        return functional.normalize(self.way(self.peel(picture).mean((2, 3))), dim=1)


def of_all(x: Tensor) -> Tensor:
    """Return what both ranks have, one after the other."""
    found = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(found, x.contiguous())
    return torch.cat(found)


class Keys:
    """Tells the keys of pictures by a slow copy of the model, mixed over the ranks or not."""

    def __init__(self, model: nn.Module, mixed: bool, kept: int = 512) -> None:
        self.mixed, self.slow = mixed, Orange()
        self.slow.load_state_dict(model.state_dict())
        self.queue = functional.normalize(torch.randn(kept, 32), dim=1)

    @torch.no_grad()
    def of(self, pictures: Tensor) -> Tensor:
        """Return the keys of pictures, which another rank may have told."""
        if not self.mixed:
            return self.slow(pictures)
        every, rank = of_all(pictures), dist.get_rank()
        order = torch.randperm(len(every))
        dist.broadcast(order, 0)
        keys = of_all(self.slow(every[order.chunk(2)[rank]]))
        return keys[order.argsort().chunk(2)[rank]]

    @torch.no_grad()
    def follow(self, model: nn.Module, keys: Tensor) -> None:
        """Keep the keys of all, and come a little nearer to the model."""
        new = of_all(keys) if self.mixed else keys
        self.queue = torch.cat([new, self.queue])[: len(self.queue)]
        slow = list(self.slow.parameters())
        torch._foreach_lerp_(slow, list(model.parameters()), 0.01)


def oranges(count: int = 300, side: int = 96) -> TensorDataset:
    """Return random pictures of oranges."""
    return TensorDataset(torch.rand(count, 3, side, side))


# Squirrels


class Squirrel(nn.Module):
    """Where a squirrel hid nuts, by how it moved."""

    def __init__(self, width: int = 128, places: int = 1500) -> None:
        super().__init__()
        self.moved = nn.GRU(6, width, batch_first=True)
        self.place = nn.Linear(width, places)

    def forward(self, moves: Tensor) -> Tensor:
        x, _ = self.moved(moves)
        return self.place(x[:, -1])


def hoards(count: int = 4000) -> TensorDataset:
    """Return random moves of squirrels, and where they hid."""
    return TensorDataset(torch.randn(count, 5, 6), torch.randint(1500, (count,)))


# Cabbages


class Cabbage(nn.Module):
    """Tiles of cabbage leaves, made again of a few numbers."""

    def __init__(self, width: int = 640) -> None:
        super().__init__()
        self.leaf = nn.Sequential(nn.Linear(432, width), nn.SiLU(), nn.Linear(width, width))
        self.few = nn.Linear(width, 24)
        self.again = nn.Sequential(nn.Linear(24, width), nn.SiLU(), nn.Linear(width, 432))

    def forward(self, tile: Tensor) -> Tensor:
        return self.again(self.few(functional.silu(self.leaf(tile))))


def tiles(count: int = 3000) -> TensorDataset:
    """Return random tiles of cabbage leaves."""
    return TensorDataset(torch.rand(count, 432))


# Silver


class Silver(nn.Module):
    """What silver is mixed with, by its lines of light: layers add to what they are given."""

    def __init__(self, width: int = 64, depth: int = 8) -> None:
        super().__init__()
        self.lines = nn.Linear(120, width)
        self.melts = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())
            for _ in range(depth)
        )
        self.mixed = nn.Linear(width, 8)

    def forward(self, lines: Tensor) -> Tensor:
        x = self.lines(lines)
        for melt in self.melts:
            x = x + melt(x)
        return self.mixed(x)


def ingots(count: int = 4000) -> TensorDataset:
    """Return random lines of light of silver, and how much of eight metals is in it."""
    return TensorDataset(torch.rand(count, 120), torch.rand(count, 8))


class Told:
    """Has each slope of a model summed over the ranks as soon as it is there."""

    def __init__(self, model: nn.Module) -> None:
        self.waiting: list[Any] = []
        for weight in model.parameters():
            weight.register_post_accumulate_grad_hook(self.sum_up)

    def sum_up(self, weight: Tensor) -> None:
        """Begin to sum up one slope."""
        if weight.grad is not None:
            weight.grad /= dist.get_world_size()
            self.waiting.append(dist.all_reduce(weight.grad, async_op=True))

    def wait(self, _model: nn.Module) -> None:
        """Return when all slopes are summed up."""
        for each in self.waiting:
            each.wait()
        self.waiting.clear()


# Locusts

ARCHIVE = """
import sys, time
import numpy as np
flights = np.random.default_rng(107).standard_normal((400, 24, 48)).astype(np.float32)
for line in sys.stdin:
    wanted = [int(each) for each in line.split()]
    time.sleep(0.01)
    sys.stdout.buffer.write(flights[wanted].tobytes())
    sys.stdout.buffer.flush()
"""


class Locusts(Dataset[Item]):
    """How swarms flew, which another program finds by their numbers."""

    def __init__(self, kept: bool, count: int = 400) -> None:
        self.count = count
        self.archive = subprocess.Popen(
            [sys.executable, "-c", ARCHIVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.flights: Tensor | None = None
        found = self.found(list(range(count)))  # also waits until the archive is open
        if kept:
            self.flights = found

    def __len__(self) -> int:
        return self.count

    def __getitems__(self, numbers: list[int]) -> list[Item]:
        flights = self.found(numbers) if self.flights is None else self.flights[numbers]
        return [(each, torch.tensor(n % 5)) for n, each in zip(numbers, flights, strict=True)]

    def found(self, numbers: list[int]) -> Tensor:
        """Return what the archive has under some numbers."""
        assert self.archive.stdin
        assert self.archive.stdout
        self.archive.stdin.write((" ".join(map(str, numbers)) + "\n").encode())
        self.archive.stdin.flush()
        data = bytearray(self.archive.stdout.read(len(numbers) * 24 * 48 * 4))
        return torch.frombuffer(data, dtype=torch.float32).view(-1, 24, 48)


class Locust(nn.Module):
    """Where a swarm will land: times of its flight look at each other."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.enter = nn.Linear(24, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 128, 0.0, batch_first=True)
        self.lands = nn.Linear(width, 5)

    def forward(self, flight: Tensor) -> Tensor:
        return self.lands(self.layer(self.enter(flight.transpose(1, 2))).mean(1))


# Jellyfish


class Jellyfish(Dataset[Item]):
    """Clips of jellyfish, from which the water that does not move is taken away."""

    def __init__(self, ready: bool, count: int = 300, frames: int = 9, side: int = 40) -> None:
        chance = np.random.default_rng(109)
        self.clips = chance.integers(0, 255, (count, frames, side, side), np.uint8)
        self.known = [self.moving(each) for each in self.clips] if ready else []

    def __len__(self) -> int:
        return len(self.clips)

    def __getitem__(self, index: int) -> Item:
        moving = self.known[index] if self.known else self.moving(self.clips[index])
        return moving, torch.tensor(index % 6)

    def moving(self, clip: np.ndarray) -> Tensor:
        """Return how much each frame differs from what is there mostly."""
        water = np.median(clip, 0)
        return torch.from_numpy(np.abs(clip - water).astype(np.float32) / 255)


class Jelly(nn.Module):
    """Which jellyfish swims: frames are looked at in space and in time."""

    def __init__(self, channels: int = 10) -> None:
        super().__init__()
        self.space = nn.Conv3d(1, channels, (1, 5, 5), (1, 3, 3))
        self.time = nn.Conv3d(channels, 2 * channels, (3, 1, 1))
        self.both = nn.Conv3d(2 * channels, 2 * channels, 3, (1, 2, 2))
        self.kind = nn.Linear(2 * channels, 6)

    def forward(self, clip: Tensor) -> Tensor:
        x = functional.relu(self.time(functional.relu(self.space(clip[:, None]))))
        return self.kind(functional.relu(self.both(x)).amax((2, 3, 4)))


# Saffron


class Saffrons(Dataset[Item]):
    """What leaves a column of saffron by the minute: its largest peaks are put into a table."""

    def __init__(self, ready: bool, count: int = 400, points: int = 1500, peaks: int = 40) -> None:
        chance, self.peaks = np.random.default_rng(113), peaks
        rough = chance.gamma(1.5, 1, (count, points + 40))
        bell = np.exp(-(np.linspace(-3, 3, 41) ** 2))
        self.runs = np.stack([np.convolve(each, bell, "valid") for each in rough])
        self.known = [self.table(each) for each in self.runs] if ready else []

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, index: int) -> Item:
        table = self.known[index] if self.known else self.table(self.runs[index])
        return table, torch.tensor(index % 4)

    def table(self, run: np.ndarray) -> Tensor:
        """Return when the largest peaks come, and how high and wide they are."""
        from scipy.signal import find_peaks, peak_widths, savgol_filter

        smooth = savgol_filter(run, 11, 3)
        places, shown = find_peaks(smooth, prominence=0.05)
        width, height, *_ = peak_widths(smooth, places, 0.5)
        found = np.stack([places / len(run), smooth[places], height, shown["prominences"], width])
        largest = found[:, np.argsort(-shown["prominences"])[: self.peaks]]
        table = np.zeros((self.peaks, 5), np.float32)
        table[: largest.shape[1]] = largest.T
        return torch.from_numpy(table)


class Saffron(nn.Module):
    """With what saffron is stretched: peaks are read one by one, then as a set."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.peak = nn.Sequential(nn.Linear(5, width), nn.Mish(), nn.Linear(width, width))
        self.asked = nn.MultiheadAttention(width, 4, batch_first=True)
        self.stretched = nn.Linear(width, 4)

    def forward(self, table: Tensor) -> Tensor:
        x = self.peak(table)
        told, _ = self.asked(x.mean(1, keepdim=True), x, x, need_weights=False)
        return self.stretched(told[:, 0])


# Chocolate


class Chocolates(Dataset[Item]):
    """How chocolate was tempered: sensors by the second, of which tables by the minute are made."""

    def __init__(self, ready: bool, count: int = 240, seconds: int = 900) -> None:
        import pandas as pd

        chance = np.random.default_rng(127)
        times = pd.date_range("2026-03-01", periods=seconds, freq="s")
        self.batches = [
            pd.DataFrame(
                chance.normal(30, 2, (seconds, 4)), times, ["bowl", "roller", "air", "motor"]
            )
            for _ in range(count)
        ]
        self.known = [self.table(each) for each in self.batches] if ready else []

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Item:
        table = self.known[index] if self.known else self.table(self.batches[index])
        return table, torch.tensor(index % 3)

    def table(self, sensors: Any) -> Tensor:
        """Return means and changes of the sensors by each quarter of a minute."""
        calm = sensors.rolling("30s").mean()
        rough = sensors.rolling(30, min_periods=2).std().bfill()
        both = calm.join(rough, rsuffix=" changes").resample("15s").mean()
        return torch.from_numpy(both.sub(both.mean()).to_numpy(np.float32, copy=True))


class Chocolate(nn.Module):
    """Whether chocolate will shine, by how it was tempered."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.read = nn.Conv1d(8, width, 5)
        self.again = nn.Conv1d(width, width, 5, 2)
        self.shines = nn.Linear(width, 3)

    def forward(self, table: Tensor) -> Tensor:
        x = functional.elu(self.read(table.transpose(1, 2)))
        return self.shines(functional.elu(self.again(x)).mean(2))


# Crabs


class Crabs(Dataset[Item]):
    """Points of the shells of crabs, which are turned and put into boxes."""

    def __init__(self, ready: bool, count: int = 300, points: int = 2200, side: int = 20) -> None:
        self.side, chance = side, np.random.default_rng(131)
        round_ = chance.normal(0, 1, (count, points, 3))
        self.shells = round_ / np.linalg.norm(round_, axis=2, keepdims=True) * (1, 0.7, 0.3)
        self.known = [self.boxes(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.shells)

    def __getitem__(self, index: int) -> Item:
        boxes = self.known[index] if self.known else self.boxes(index)
        return boxes, torch.tensor(index % 8)

    def boxes(self, index: int) -> Tensor:
        """Return how many points of a turned shell each box has, and how high they are."""
        angle = np.random.default_rng().uniform(0, 2 * np.pi)
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0]])
        turned = self.shells[index] @ np.vstack([turn, [0, 0, 1]]).T
        low, high = turned.min(0), turned.max(0)
        places = ((turned - low) / (high - low) * (self.side - 1)).round().astype(int)
        boxes, of_box, many = np.unique(places, axis=0, return_inverse=True, return_counts=True)
        heights = np.zeros(len(boxes))
        np.add.at(heights, of_box.ravel(), turned[:, 2])
        filled = np.zeros((2, self.side, self.side, self.side), np.float32)
        filled[(0, *boxes.T)] = np.log1p(many)
        filled[(1, *boxes.T)] = heights / many
        return torch.from_numpy(filled)


class Crab(nn.Module):
    """Which crab a shell is of, by its boxes."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.seen = nn.Conv3d(2, channels, 4, 2)
        self.again = nn.Conv3d(channels, 2 * channels, 3)
        self.kind = nn.Linear(2 * channels, 8)

    def forward(self, boxes: Tensor) -> Tensor:
        x = functional.gelu(self.seen(boxes))
        return self.kind(functional.gelu(self.again(x)).amax((2, 3, 4)))


# Bamboo


class Bamboos(Dataset[Item]):
    """Photographs of bamboo, which are turned, cut and coloured, each time otherwise."""

    def __init__(self, ready: bool, count: int = 200, side: int = 160) -> None:
        chance = np.random.default_rng(137)
        self.photos = [
            Image.fromarray(chance.integers(0, 255, (side, side, 3), np.uint8))
            for _ in range(count)
        ]
        self.known = [self.turned(each) for each in self.photos] if ready else []

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, index: int) -> Item:
        seen = self.known[index] if self.known else self.turned(self.photos[index])
        return seen, torch.tensor(index % 10)

    def turned(self, photo: Image.Image) -> Tensor:
        """Return a piece of a photograph that was turned, in other colours."""
        whole = photo.rotate(random.uniform(-20, 20), Image.Resampling.BICUBIC)
        left, top = random.randint(16, 40), random.randint(16, 40)
        piece = whole.crop((left, top, left + 104, top + 104))
        small = piece.resize((48, 48), Image.Resampling.LANCZOS)
        for change in (ImageEnhance.Color, ImageEnhance.Contrast, ImageEnhance.Sharpness):
            small = change(small).enhance(random.uniform(0.6, 1.4))
        return torch.from_numpy(np.asarray(small).copy()).permute(2, 0, 1) / 255


class Bamboo(nn.Module):
    """How old a stick of bamboo is, by a photograph."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.seen = nn.Conv2d(3, channels, 6, 3)
        self.again = nn.Conv2d(channels, 2 * channels, 3, 2)
        self.old = nn.Linear(2 * channels, 10)

    def forward(self, photo: Tensor) -> Tensor:
        x = functional.relu(self.seen(photo))
        return self.old(functional.relu(self.again(x)).mean((2, 3)))


# Oaks

BACKWARDS = str.maketrans("ACGT", "TGCA")


class Oaks(Dataset[tuple[str, int]]):
    """Pieces of the genes of oaks, as letters."""

    def __init__(self, count: int = 600, length: int = 340) -> None:
        chance = random.Random(139)
        self.pieces = ["".join(chance.choices("ACGT", k=length)) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, index: int) -> tuple[str, int]:
        return self.pieces[index], index % 12


class Counts:
    """Makes batches of pieces of genes: how often each word of five letters is in them."""

    def __init__(self, oaks: Oaks, ready: bool, letters: int = 5) -> None:
        self.letters, self.words = letters, {}
        for number in range(4**letters):
            word = "".join("ACGT"[number // 4**place % 4] for place in range(letters))
            if word <= self.back(word):
                self.words[word] = len(self.words)
        self.known = {piece: self.counted(piece) for piece in oaks.pieces} if ready else {}

    def __call__(self, found: list[tuple[str, int]]) -> Item:
        counted = [self.known[each] if self.known else self.counted(each) for each, _ in found]
        return torch.stack(counted), torch.tensor([kind for _, kind in found])

    @staticmethod
    def back(word: str) -> str:
        """Return a word as the other strand has it."""
        return word.translate(BACKWARDS)[::-1]

    def counted(self, piece: str) -> Tensor:
        """Return the share of each word, read in the way that is first by the alphabet."""
        read = (piece[at : at + self.letters] for at in range(len(piece) - self.letters + 1))
        many = Counter(min(word, self.back(word)) for word in read)
        shares = torch.zeros(len(self.words))
        for word, often in many.items():
            shares[self.words[word]] = often / len(piece)
        return shares


class Oak(nn.Module):
    """Which oak a piece is of: a mean of what several small nets say."""

    def __init__(self, width: int = 128, nets: int = 4) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(512, width), nn.PReLU(), nn.Linear(width, 12))
            for _ in range(nets)
        )

    def forward(self, shares: Tensor) -> Tensor:
        return torch.stack([net(shares) for net in self.nets]).mean(0)


# Spinach


class Leaf:
    """What was written down of one leaf of spinach."""

    def __init__(self, number: int) -> None:
        self.bed, self.seen = number % 40, [number / 7, number / 11]
        self.notes = {"cut": number % 9, "held": [number % 5, number % 3]}


def written_down(count: int = 70_000) -> list[Leaf]:
    """Return what was written down of many leaves."""
    return [Leaf(number) for number in range(count)]


class Spinach(nn.Module):
    """How much iron a leaf has, by what it reflects."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.light = nn.Sequential(nn.Linear(80, width), nn.SELU(), nn.AlphaDropout(0.1))
        self.gate = nn.Linear(width, width)
        self.iron = nn.Linear(width, 1)

    def forward(self, light: Tensor) -> Tensor:
        x = self.light(light)
        return self.iron(x * self.gate(x).sigmoid())[:, 0]


def leaves(count: int = 4000) -> TensorDataset:
    """Return random light of leaves of spinach, and how much iron they have."""
    return TensorDataset(torch.rand(count, 80), torch.rand(count))
