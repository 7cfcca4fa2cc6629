"""Models and data of the eleventh round's openings, cones, cells, loads and violins."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from programs import Item
from scipy import sparse  # type: ignore[import-untyped]
from scipy.ndimage import percentile_filter  # type: ignore[import-untyped]
from scipy.signal import savgol_filter  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset

# Openings

BOOK = """
import random, socket, sys, time
away, chance = float(sys.argv[1]), random.Random(3)
squares = [file + rank for file in "abcdefgh" for rank in "12345678"]
games = [" ".join(chance.choice(squares) + chance.choice(squares) for _ in range(25))
         for _ in range(int(sys.argv[2]))]
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
asking = server.accept()[0]
asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
lines = asking.makefile("rw")
for number in lines:
    time.sleep(away)
    lines.write(games[int(number)] + "\\n")
    lines.flush()
"""
"""Answers with the moves of the game that it is asked for, from a database somewhere else."""


class Openings(Dataset[Tensor]):
    """How games began: each is asked for when it is needed, or all were before the training."""

    def __init__(self, asked: bool, count: int = 1000, away: float = 0.0004) -> None:
        self.count, self.known = count, {}
        self.book = subprocess.Popen(
            [sys.executable, "-c", BOOK, str(away), str(count)], stdout=subprocess.PIPE, text=True
        )
        assert self.book.stdout
        link = socket.create_connection(("127.0.0.1", int(self.book.stdout.readline())))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lines = link.makefile("rw")
        if not asked:
            self.known = {number: self.game(number) for number in range(count)}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Tensor:
        return self.known[index] if self.known else self.game(index)

    def game(self, index: int) -> Tensor:
        """Ask for a game; return its moves as numbers, from and to."""
        self.lines.write(f"{index}\n")
        self.lines.flush()
        moves = self.lines.readline().split()
        place = [
            8 * (ord(move[each]) - 97) + int(move[each + 1]) - 1
            for move in moves
            for each in (0, 2)
        ]
        return torch.tensor(place).view(-1, 2)


class Opening(nn.Module):
    """The move that follows: squares from and to, looked at with nearer moves weighing more."""

    def __init__(self, width: int = 96, heads: int = 4, depth: int = 2) -> None:
        super().__init__()
        self.start, self.end = nn.Embedding(64, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm": nn.RMSNorm(width),
                    "parts": nn.Linear(width, 3 * width, bias=False),
                    "mixed": nn.Linear(width, width, bias=False),
                    "after": nn.RMSNorm(width),
                    "wide": nn.Linear(width, 4 * width, bias=False),
                    "narrow": nn.Linear(2 * width, width, bias=False),
                }
            )
            for _ in range(depth)
        )
        self.heads, self.next = heads, nn.Linear(width, 128)
        self.slope = nn.Buffer(0.5 ** torch.arange(1.0, heads + 1)[:, None, None])

    def forward(self, moves: Tensor) -> Tensor:
        x, length = self.start(moves[..., 0]) + self.end(moves[..., 1]), moves.shape[1]
        far = torch.arange(length)[None, :] - torch.arange(length)[:, None]
        bias = (self.slope * far).masked_fill(far > 0, -torch.inf)
        for block in self.blocks:
            parts = block["parts"](block["norm"](x)).unflatten(2, (3, self.heads, -1))
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
            x = x + block["mixed"](seen.transpose(1, 2).flatten(2))
            gate, up = block["wide"](block["after"](x)).chunk(2, 2)
            x = x + block["narrow"](functional.silu(gate) * up)
        return self.next(x).unflatten(2, (2, 64))


# Hop cones


class Cones(Dataset[Item]):
    """Photographs of hop cones, on a drive that is larger than the memory, or in memory."""

    def __init__(self, folder: Path, afar: bool, count: int = 800, side: int = 128) -> None:
        chance, self.side, self.paths = np.random.default_rng(7), side, []
        for number in range(count):
            path = folder / f"cone-{number:05d}.raw"
            path.write_bytes(chance.bytes(3 * side * side))
            self.paths.append(path)
        os.sync()
        self.known = [] if afar else [path.read_bytes() for path in self.paths]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        raw = self.known[index] if self.known else self.read(self.paths[index])
        points = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(3, self.side, self.side)
        return points[:, 32:96, 32:96] / 255, torch.tensor(index % 6)

    def read(self, path: Path) -> bytes:
        """Return what a file holds; no earlier reading has left it in the cache."""
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return file.read()


def inverted(into: int, out: int, stride: int) -> nn.Module:
    """Return a layer that widens, looks around in each channel, and narrows."""
    wide = 3 * into
    return nn.Sequential(
        nn.Conv2d(into, wide, 1, bias=False),
        nn.BatchNorm2d(wide),
        nn.Hardswish(),
        nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
        nn.BatchNorm2d(wide),
        nn.Hardswish(),
        nn.Conv2d(wide, out, 1, bias=False),
        nn.BatchNorm2d(out),
    )


def cone(width: int = 8, grades: int = 6) -> nn.Module:
    """Return a model of how ripe a hop cone is."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1),
        nn.Hardswish(),
        inverted(width, 2 * width, 2),
        inverted(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(4 * width, grades),
    )


# Cells


class Expressed(Dataset[Item]):
    """Which genes a cell expresses most for its kind of gene, in order: found for each anew."""

    def __init__(self, before: bool, count: int = 600, genes: int = 25_000) -> None:
        chance = np.random.default_rng(11)
        self.counts = sparse.random(count, genes, 0.1, "csr", np.float32, chance)
        self.counts.data = np.ceil(20 * self.counts.data)
        self.usual = chance.gamma(2.0, 1.0, genes).astype(np.float32) + 0.1
        self.known = [self.ranked(number) for number in range(count)] if before else []

    def __len__(self) -> int:
        return self.counts.shape[0]

    def __getitem__(self, index: int) -> Item:
        return self.known[index] if self.known else self.ranked(index), torch.tensor(index % 14)

    def ranked(self, index: int, most: int = 192) -> Tensor:
        """Return the genes of a cell, those first that stand out most from what is usual."""
        cell = self.counts[index].toarray()[0]
        cell = np.log1p(1e4 * cell / cell.sum()) / self.usual
        return torch.from_numpy(np.argsort(-cell, kind="stable")[:most].copy())


class Cell(nn.Module):
    """What kind of cell it is: a few seeds look at families of genes, and then at each other."""

    def __init__(self, families: int = 6_000, width: int = 32, seeds: int = 8) -> None:
        super().__init__()
        self.gene, self.rank = nn.Embedding(families, width), nn.Embedding(192, width)
        self.seeds = nn.Parameter(torch.randn(seeds, width) / 8)
        self.look = nn.MultiheadAttention(width, 4, batch_first=True)
        self.think = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.kind = nn.Linear(seeds * width, 14)

    def forward(self, genes: Tensor) -> Tensor:
        genes = self.gene(genes % self.gene.num_embeddings) + self.rank.weight
        found, _ = self.look(
            self.seeds.expand(len(genes), -1, -1), genes, genes, need_weights=False
        )
        return self.kind(self.think(found).flatten(1))


# Laundry


class Loads(Dataset[Item]):
    """What a washing machine drew during a load, smoothed, and how dirty the load was."""

    def __init__(self, before: bool, count: int = 480, seconds: int = 9600) -> None:
        chance = np.random.default_rng(13)
        steps = chance.choice([5.0, 120.0, 400.0, 2000.0], (count, 30)).repeat(seconds // 30, 1)
        self.watts = (steps + chance.normal(0, 30, steps.shape)).astype(np.float32)
        self.known = [self.smoothed(number) for number in range(count)] if before else []

    def __len__(self) -> int:
        return len(self.watts)

    def __getitem__(self, index: int) -> Item:
        made = self.known[index] if self.known else self.smoothed(index)
        return made, torch.tensor(index % 8)

    def smoothed(self, index: int) -> Tensor:
        """Return the power, how fast it changes, what is drawn at least, and the energy so far."""
        watts = self.watts[index]
        power = savgol_filter(watts, 31, 3)
        change = savgol_filter(watts, 31, 3, deriv=1)
        least = percentile_filter(watts, 10, 61)
        parts = np.stack([power / 1e3, change / 1e2, least / 1e3, watts.cumsum() / 3.6e6])
        return torch.from_numpy(parts[:, ::12].astype(np.float32))


class Squeezed(nn.Module):
    """A stretch of the load in each channel, and how much each channel counts now."""

    def __init__(self, width: int, apart: int) -> None:
        super().__init__()
        self.stretch = nn.Conv1d(width, width, 7, padding=3 * apart, dilation=apart, groups=width)
        self.mix, self.norm = nn.Conv1d(width, width, 1), nn.GroupNorm(4, width)
        self.count = nn.Sequential(
            nn.Linear(width, width // 4), nn.ReLU(), nn.Linear(width // 4, width), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        found = functional.mish(self.norm(self.mix(self.stretch(x))))
        return x + found * self.count(found.mean(2))[..., None]


def laundry(width: int = 16, degrees: int = 8) -> nn.Module:
    """Return a model of how dirty a load was."""
    return nn.Sequential(
        nn.Conv1d(4, width, 9, 5, 4),
        *(Squeezed(width, 2**each) for each in range(2)),
        nn.AdaptiveMaxPool1d(4),
        nn.Flatten(),
        nn.Linear(4 * width, degrees),
    )


# Violins


class Violin(nn.Module):
    """Who made a violin: a note's partials over time, read once forwards and once backwards."""

    def __init__(self, width: int = 40, makers: int = 30) -> None:
        super().__init__()
        self.partials = nn.Sequential(
            nn.Conv2d(1, 16, (7, 3), (4, 1), (3, 1)),
            nn.PReLU(),
            nn.Conv2d(16, 24, (5, 3), (4, 1), (2, 1)),
            nn.PReLU(),
        )
        self.time = nn.GRU(24 * 6, width, bidirectional=True, batch_first=True)
        self.weigh, self.maker = nn.Linear(2 * width, 1), nn.Linear(2 * width, 32)
        self.makers = nn.Parameter(torch.randn(makers, 32))

    def forward(self, note: Tensor) -> Tensor:
        seen = self.partials(note).flatten(1, 2).transpose(1, 2)
        heard, _ = self.time(seen)
        whole = (self.weigh(heard).softmax(1) * heard).sum(1)
        near = functional.normalize(self.maker(whole)) @ functional.normalize(self.makers).T
        return 16 * near


class Notes(Dataset[Item]):
    """Notes that were played, with what is known of each."""

    def __init__(self, count: int = 2400) -> None:
        self.sounds = torch.randn(200, 1, 96, 32)
        self.known = [
            {
                "file": f"{number:06d}.wav",
                "maker": number % 30,
                "strings": {"name": "GDAE"[number % 4]},
            }
            for number in range(count)
        ]

    def __len__(self) -> int:
        return len(self.known)

    def __getitem__(self, index: int) -> tuple[Tensor, Any]:
        return self.sounds[index % 200], self.known[index]["maker"]
