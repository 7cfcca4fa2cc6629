"""Models, data and the clock of the programs in ``unseen.py``."""

import itertools
import json
import lzma
import os
import sqlite3
import statistics
import time
import wave
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.data import Dataset, TensorDataset

Item = tuple[Tensor, Tensor]
WARM_UP = 6
"""Steps before a program's own clock starts."""


class Clock:
    """Counts samples after the warm-up, and says when the time is over."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.steps, self.done = seconds, 0, 0
        self.started = time.perf_counter()

    def over(self, samples: int) -> bool:
        """Return whether the training ends, after a step over so many samples."""
        self.steps, self.done = self.steps + 1, self.done + samples
        if self.steps == WARM_UP:
            self.done, self.started = 0, time.perf_counter()
        mine = self.steps > WARM_UP and time.perf_counter() - self.started > self.seconds
        if not dist.is_initialized():
            return mine
        first = torch.tensor(float(mine))
        dist.broadcast(first, 0)  # the ranks stop together
        return bool(first)

    def epochs(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches again and again until the time is over."""
        while True:
            for batch in batches:
                yield batch
                if self.over(len(batch[0])):
                    return

    def report(self) -> None:
        """Print the samples a second."""
        rate = self.done / (time.perf_counter() - self.started)
        print(json.dumps({"samples_a_second": rate}), flush=True)


def mlp(inputs: int, width: int, depth: int, classes: int = 16) -> nn.Sequential:
    sizes = [inputs, *[width] * depth]
    hidden: list[nn.Module] = []
    for into, out in itertools.pairwise(sizes):
        hidden += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(width, classes))


def convnet(channels: int, inputs: int = 3) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, 16),
    )


def table(count: int, size: int) -> TensorDataset:
    return TensorDataset(torch.randn(count, size), torch.randint(16, (count,)))


class Recordings(Dataset[Item]):
    """Sounds in WAV files, made into mel spectrograms when they are asked for, or once."""

    RATE, WINDOW, HOP, BANDS = 16_000, 1024, 160, 64

    def __init__(self, folder: Path, before: bool, count: int = 96) -> None:
        random = np.random.default_rng(0)
        self.paths = [folder / f"{number}.wav" for number in range(count)]
        for path in self.paths:
            with wave.open(str(path), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(self.RATE)
                file.writeframes(random.integers(-9000, 9000, 3 * self.RATE, np.int16).tobytes())
        self.window = np.hanning(self.WINDOW)
        self.ready = [self.spectrogram(path) for path in self.paths] if before else None

    def filters(self) -> np.ndarray[Any, Any]:
        frequencies = np.linspace(0, self.RATE / 2, self.WINDOW // 2 + 1)
        top = 2595 * np.log10(1 + self.RATE / 2 / 700)
        edges = 700 * (10 ** (np.linspace(0, top, self.BANDS + 2) / 2595) - 1)
        low, middle, high = edges[:-2, None], edges[1:-1, None], edges[2:, None]
        rising, falling = (
            (frequencies - low) / (middle - low),
            (high - frequencies) / (high - middle),
        )
        return np.maximum(0, np.minimum(rising, falling))

    def spectrogram(self, path: Path) -> Tensor:
        with wave.open(str(path), "rb") as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16) / 32768
        frames = np.lib.stride_tricks.sliding_window_view(samples, self.WINDOW)[:: self.HOP]
        power = np.abs(np.fft.rfft(frames * self.window)) ** 2
        return torch.from_numpy(np.log(self.filters() @ power.T + 1e-6)).float()[None]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        sound = self.ready[index] if self.ready else self.spectrogram(self.paths[index])
        return sound, torch.tensor(index % 16)


class Purchases(Dataset[Item]):
    """What customers bought, in a database with or without an index of the customers."""

    def __init__(self, folder: Path, indexed: bool, customers: int = 1000) -> None:
        random, self.customers = np.random.default_rng(0), customers
        rows = np.stack(
            [random.integers(customers, size=60_000), random.integers(5000, size=60_000)]
        )
        self.database = sqlite3.connect(folder / "shop.db")
        self.database.execute("CREATE TABLE bought (customer INTEGER, article INTEGER, at INTEGER)")
        self.database.executemany(
            "INSERT INTO bought VALUES (?, ?, ?)",
            ((customer, article, at) for at, (customer, article) in enumerate(rows.T.tolist())),
        )
        if indexed:
            self.database.execute("CREATE INDEX by_customer ON bought (customer)")
        self.database.commit()

    def __len__(self) -> int:
        return self.customers

    def __getitem__(self, index: int) -> Item:
        found = self.database.execute(
            "SELECT article FROM bought WHERE customer = ? ORDER BY at DESC LIMIT 20", (index,)
        )
        articles = [article for (article,) in found]
        return torch.tensor((articles + [0] * 20)[:20]), torch.tensor(index % 16)


class Sensors(Dataset[Item]):
    """Readings of sensors, a JSON text for each window, parsed and normalised in Python or once."""

    def __init__(self, before: bool, count: int = 256) -> None:
        random = np.random.default_rng(0)
        self.lines = [
            json.dumps(
                {"readings": random.random((16, 256)).round(4).tolist(), "kind": number % 16}
            )
            for number in range(count)
        ]
        self.ready = [self.parsed(line) for line in self.lines] if before else None

    def parsed(self, line: str) -> Item:
        window, channels = json.loads(line), []
        for readings in window["readings"]:
            mean, spread = statistics.fmean(readings), statistics.pstdev(readings)
            channels.append([(reading - mean) / spread for reading in readings])
        return torch.tensor(channels), torch.tensor(window["kind"])

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> Item:
        return self.ready[index] if self.ready else self.parsed(self.lines[index])


class Ensemble(nn.Module):
    """Regressors with the same shape, as many modules or as stacked weights."""

    def __init__(self, stacked: bool, members: int = 48, inputs: int = 32, width: int = 32) -> None:
        super().__init__()
        self.stacked = stacked
        sizes = [inputs, width, width, 1]
        self.members = nn.ModuleList()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        if not stacked:
            self.members.extend(mlp(inputs, width, 2, classes=1) for _ in range(members))
            return
        for into, out in itertools.pairwise(sizes):
            self.weights.append(nn.Parameter(torch.randn(members, into, out) / into**0.5))
            self.biases.append(nn.Parameter(torch.zeros(members, 1, out)))

    def forward(self, x: Tensor) -> Tensor:
        if not self.stacked:
            return torch.stack([member(x) for member in self.members])
        hidden = x.expand(len(self.weights[0]), *x.shape)
        for weight, bias in zip(self.weights, self.biases, strict=True):
            hidden = torch.baddbmm(
                bias, hidden if weight is self.weights[0] else hidden.relu(), weight
            )
        return hidden


class GraphConvolutions(nn.Module):
    """Two graph convolutions over one adjacency matrix."""

    def __init__(self, adjacency: Tensor, width: int) -> None:
        super().__init__()
        self.adjacency = adjacency
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, 16)

    def forward(self, nodes: Tensor) -> Tensor:
        hidden = torch.relu(self.adjacency @ self.first(nodes))
        return self.second(self.adjacency @ hidden)


def adjacency(count: int, degree: int = 6) -> Tensor:
    """Return a sparse matrix of random neighbours, each row with the sum one."""
    rows = torch.arange(count).repeat_interleave(degree)
    columns = torch.randint(count, (count * degree,))
    values = torch.full((count * degree,), 1 / degree)
    places = torch.stack([rows, columns])
    matrix = torch.sparse_coo_tensor(places, values, (count, count), check_invariants=True)
    return matrix.coalesce()


class Segmenter(nn.Module):
    """An encoder and a decoder that names a class for each pixel."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.into = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.middle = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.out = nn.Conv2d(2 * width, 16, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        fine = F.relu(self.into(x))
        coarse = F.relu(self.middle(F.relu(self.down(fine))))
        return self.out(torch.cat([fine, F.relu(self.up(coarse))], 1))


def compress_results(folder: Path, parent: int) -> None:
    """Compress the results of an earlier run, as long as the training is there."""
    results = np.random.default_rng(0).integers(0, 40, 500_000, np.uint8).tobytes()
    while os.getppid() == parent:
        (folder / f"old-{os.getpid()}.xz").write_bytes(lzma.compress(results, preset=6))
