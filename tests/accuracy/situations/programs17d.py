"""Models and data of the seventeenth round's first runs, from hinges to pulleys: see
``programs17.py``."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, IterableDataset, TensorDataset



def as_one(model: nn.Module) -> None:
    """Take the mean of all slopes over both ranks, in one piece."""
    slopes = [each.grad for each in model.parameters() if each.grad is not None]
    whole = torch.cat([each.flatten() for each in slopes])
    dist.all_reduce(whole)
    nn.utils.vector_to_parameters(whole / dist.get_world_size(), slopes)


# Hinges


def turned(x: Tensor, split: int, joined: int) -> Tensor:
    """Return a rank's part of what was split along one side, split along the other."""
    ranks = dist.get_world_size()
    mine = torch.stack(torch.view_as_real(x).chunk(ranks, split))
    theirs = torch.empty_like(mine)
    dist.all_to_all_single(theirs, mine)
    return torch.view_as_complex(torch.cat(theirs.unbind(0), joined).contiguous())


class Turned(torch.autograd.Function):
    """Waves that were whole along one side, and are whole along the other."""

    @staticmethod
    def forward(context: Any, x: Tensor, split: int, joined: int) -> Tensor:
        context.sides = split, joined
        return turned(x, split, joined)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Any:  # type: ignore[override]
        split, joined = context.sides
        return turned(slope.contiguous(), joined, split), None, None


class Waves(nn.Module):
    """Weighs the long waves of a plate, of whose rows each rank may have a half."""

    def __init__(self, halves: bool, channels: int, side: int) -> None:
        super().__init__()
        self.halves = halves
        self.long = nn.Parameter(torch.randn(channels, channels, side, side // 2, 2) / channels)
        self.here = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.view_as_complex(self.long)
        waves = torch.fft.rfft(x, dim=3)[..., : weights.shape[3]]
        if self.halves:
            waves = Turned.apply(waves, 3, 2)
            weights = weights.chunk(2, 3)[dist.get_rank()]
        waves = torch.einsum("bihw,iohw->bohw", torch.fft.fft(waves, dim=2), weights)
        waves = torch.fft.ifft(waves, dim=2)
        if self.halves:
            waves = Turned.apply(waves, 2, 3)
        told = torch.fft.irfft(waves, n=x.shape[3], dim=3)
        return x + functional.gelu(told + self.here(x))


class Hinge(nn.Module):
    """How far the plate of a hinge bends under a door, point by point."""

    def __init__(self, halves: bool, channels: int = 12, side: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.halves = halves
        self.loads = nn.Conv2d(3, channels, 1)
        self.waves = nn.Sequential(*(Waves(halves, channels, side) for _ in range(depth)))
        self.bends = nn.Conv2d(channels, 1, 1)

    def forward(self, loads: Tensor) -> Tensor:
        return self.bends(self.waves(self.loads(self.own(loads))))

    def own(self, rows: Tensor) -> Tensor:
        """Return this rank's rows."""
        return rows.chunk(2, 2)[dist.get_rank()] if self.halves else rows


def plates(count: int = 400, side: int = 32) -> TensorDataset:
    """Return random loads on plates of hinges, and how they bend."""
    return TensorDataset(torch.randn(count, 3, side, side), torch.randn(count, 1, side, side))


# Lenses


class Lens(nn.Module):
    """The errors of a lens, by the spots that it makes of points at several places."""

    def __init__(self, width: int = 448, errors: int = 21) -> None:
        super().__init__()
        self.spot = nn.Sequential(nn.Conv2d(9, 32, 4, 4), nn.BatchNorm2d(32), nn.ReLU())
        self.all = nn.Linear(32 * 16, width)
        self.again = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.errors = nn.Linear(width, errors)

    def forward(self, spots: Tensor) -> Tensor:
        x = self.all(self.spot(spots).flatten(1)).relu()
        for again in self.again:
            x = x + again(x).relu()
        return self.errors(x)


def spots(count: int = 1500) -> TensorDataset:
    """Return random spots of lenses at nine places, and 21 errors of each."""
    return TensorDataset(torch.rand(count, 9, 16, 16), torch.randn(count, 21))


def summed_exactly(model: nn.Module, piece: int = 1 << 15) -> None:
    """Take the mean of all slopes over both ranks, piece by piece and in double precision."""
    for weight in model.parameters():
        assert weight.grad is not None
        exact = weight.grad.double().flatten()
        for each in exact.split(piece):
            dist.all_reduce(each)
        weight.grad.copy_((exact / dist.get_world_size()).view_as(weight))


# Gears


class Gear(nn.Module):
    """Which tooth of a gear is worn, by how it shakes: convolutions that look further back."""

    def __init__(self, channels: int = 40, depth: int = 5, teeth: int = 24) -> None:
        super().__init__()
        self.shakes = nn.Conv1d(3, channels, 3, padding=1)
        self.back = nn.ModuleList(
            nn.Conv1d(channels, 2 * channels, 2, dilation=2**each) for each in range(depth)
        )
        self.tooth = nn.Linear(channels, teeth)

    def forward(self, shakes: Tensor) -> Tensor:
        x = self.shakes(shakes)
        for back in self.back:
            told = functional.glu(back(functional.pad(x, (back.dilation[0], 0))), 1)
            x = (x + told) * 0.7
        return self.tooth(x.mean(2))


def turns(count: int = 1500) -> TensorDataset:
    """Return how random gears shake while they turn, and which tooth is worn."""
    return TensorDataset(torch.randn(count, 3, 64), torch.randint(24, (count,)))


def agreed(model: nn.Module) -> None:
    """Add both ranks' slopes, without what they have in common: weight by weight."""
    for weight in model.parameters():
        assert weight.grad is not None
        both = [torch.empty_like(weight) for _ in range(dist.get_world_size())]
        dist.all_gather(both, weight.grad)
        one, other = both
        common = (one * other).sum() / 2
        one = one * (1 - common / one.square().sum().clamp_min(1e-12))
        other = other * (1 - common / other.square().sum().clamp_min(1e-12))
        weight.grad.copy_(one + other)


# Grammars


class Grammar(nn.Module):
    """Which word comes next in a sentence out of a grammar, by what was said before."""

    def __init__(self, words: int = 2500, width: int = 96) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.said = nn.LSTM(width, width, 2, batch_first=True)
        self.few = nn.Linear(width, width)

    def forward(self, words: Tensor) -> Tensor:
        x, _ = self.said(self.words(words))
        return functional.linear(self.few(x), self.words.weight)


def examples(count: int = 3000, length: int = 13) -> TensorDataset:
    """Return random sentences out of grammars."""
    return TensorDataset(torch.randint(2500, (count, length)))


# Harvesters


class Harvesters(Dataset[Item]):
    """What harvesters measured in a field, a file for each, on a drive or in memory."""

    VALUES = 16 * 1024

    def __init__(self, folder: Path, kept: bool, count: int = 400) -> None:
        chance = np.random.default_rng(149)
        self.paths = [folder / f"field-{number:04d}.npy" for number in range(count)]
        for path in self.paths:
            np.save(path, chance.standard_normal((16, self.VALUES // 16), np.float32))
        os.sync()
        self.kept = [np.load(path) for path in self.paths] if kept else []

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        field = self.kept[index] if self.kept else self.read(self.paths[index])
        return torch.from_numpy(field), torch.tensor(index % 5)

    def read(self, path: Path) -> np.ndarray:
        """Return a field's file, of which no memory holds anything yet."""
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            field: np.ndarray = np.load(file)
        return field


class Harvester(nn.Module):
    """What a harvester cuts: its sensors are mixed, then looked at as they go on."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.sensors = nn.Conv1d(16, width, 8, 8)
        self.on = nn.Conv1d(width, 2 * width, 5, 2, groups=4)
        self.mixed = nn.Conv1d(2 * width, width, 1)
        self.cuts = nn.Linear(width, 5)

    def forward(self, field: Tensor) -> Tensor:
        x = functional.silu(self.on(functional.silu(self.sensors(field))))
        return self.cuts(functional.silu(self.mixed(x)).mean(2))


# Stoves

COUNTER = """
import random, socketserver, sys, threading, time
import numpy as np
stoves = np.random.default_rng(151).standard_normal((500, 40, 12)).astype(np.float32)
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            time.sleep(random.expovariate(300))
            self.wfile.write(stoves[int(line)].tobytes())
class Counter(socketserver.ThreadingTCPServer):
    daemon_threads = True
with Counter(("127.0.0.1", 0), Answer) as counter:
    threading.Thread(target=counter.serve_forever, daemon=True).start()
    print(counter.server_address[1], flush=True)
    sys.stdin.read()
    counter.shutdown()
"""


class Stoves(Dataset[Item]):
    """How stoves heated, which is asked for at a counter by a few that wait in line."""

    def __init__(self, kept: bool, count: int = 500, askers: int = 4) -> None:
        self.count, self.each = count, local()
        self.counter = subprocess.Popen(
            [sys.executable, "-c", COUNTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.counter.stdout
        self.port = int(self.counter.stdout.readline())
        self.askers = ThreadPoolExecutor(askers)
        self.kept = list(self.askers.map(self.asked, range(count))) if kept else []

    def __len__(self) -> int:
        return self.count

    def __getitems__(self, numbers: list[int]) -> list[Item]:
        if self.kept:
            found = [self.kept[number] for number in numbers]
        else:
            found = list(self.askers.map(self.asked, numbers))
        return [(heat, torch.tensor(n % 7)) for n, heat in zip(numbers, found, strict=True)]

    def asked(self, number: int) -> Tensor:
        """Return how a stove heated, as the counter knows it."""
        if not hasattr(self.each, "line"):
            self.each.line = socket.create_connection(("127.0.0.1", self.port)).makefile("rwb")
        self.each.line.write(b"%d\n" % number)
        self.each.line.flush()
        return torch.frombuffer(bytearray(self.each.line.read(40 * 12 * 4)), dtype=torch.float32)


class Stove(nn.Module):
    """How a stove is fired: its heat goes into a state, forwards and backwards."""

    def __init__(self, width: int = 112) -> None:
        super().__init__()
        self.heat = nn.GRU(12, width, batch_first=True, bidirectional=True)
        self.fired = nn.Linear(2 * width, 7)

    def forward(self, heat: Tensor) -> Tensor:
        x, _ = self.heat(heat.view(-1, 40, 12))
        return self.fired(x.amax(1))


# Lorries

YARD = """
import sys, time
import numpy as np
chance = np.random.default_rng(157)
routes = chance.standard_normal((300, 48, 24)).astype(np.float32)
due = time.perf_counter()
while True:
    for route in routes:
        sys.stdout.buffer.write(route.tobytes())
        due += route.nbytes / float(sys.argv[1])
        time.sleep(max(0.0, due - time.perf_counter()))
"""


class Lorries(IterableDataset[Item]):
    """Routes of lorries, as they come over a line out of the yard."""

    def __init__(self, kept: bool, bytes_s: float, count: int = 300) -> None:
        self.bytes_s = bytes_s
        self.kept = [next(each) for each in [self.come(1e12)] for _ in range(count)] if kept else []

    def __iter__(self) -> Iterator[Item]:
        routes = iter(self.kept) if self.kept else self.come(self.bytes_s)
        for number, route in enumerate(routes):
            yield route, torch.tensor(number % 9)

    @staticmethod
    def come(bytes_s: float) -> Iterator[Tensor]:
        """Yield routes as fast as the line is."""
        yard = subprocess.Popen(
            [sys.executable, "-c", YARD, str(bytes_s)], stdout=subprocess.PIPE, bufsize=0
        )
        assert yard.stdout
        while True:
            route = bytearray()
            while len(route) < 48 * 24 * 4:
                route += yard.stdout.read(48 * 24 * 4 - len(route)) or b""
            yield torch.frombuffer(route, dtype=torch.float32).view(48, 24)


class Lorry(nn.Module):
    """What a lorry carries: its stops are told each by itself, then weighed and summed."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.stop = nn.Sequential(nn.Linear(24, width), nn.Hardswish(), nn.Linear(width, width))
        self.weight = nn.Linear(width, 6)
        self.carries = nn.Sequential(nn.Linear(6 * width, width), nn.Hardswish())
        self.what = nn.Linear(width, 9)

    def forward(self, route: Tensor) -> Tensor:
        x = self.stop(route)
        weighed = self.weight(x).softmax(1).transpose(1, 2) @ x
        return self.what(self.carries(weighed.flatten(1)))
