"""Models and data of the ninth round's runs, which ``programs9.py`` has."""

import datetime
import itertools
from pathlib import Path

import numpy as np
import pandas
import torch
from programs import Item
from programs6b import Bases
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, Sampler, TensorDataset

# Electricity meters


class Meters(Dataset[Item]):
    """A meter's day as lines of text: when, and how much."""

    def __init__(self, count: int, before: bool) -> None:
        random, start = np.random.default_rng(0), datetime.datetime(2025, 1, 1)
        self.days = []
        for day in range(64):
            moments = [start + datetime.timedelta(day, 900 * at) for at in range(96)]
            used = random.gamma(2, 0.4, 96)
            self.days.append(
                [
                    f"{when:%d.%m.%Y %H:%M:%S};{much:.3f}"
                    for when, much in zip(moments, used, strict=True)
                ]
            )
        self.count = count
        self.kept = [self.parsed(day) for day in self.days] if before else []

    @staticmethod
    def parsed(day: list[str]) -> Tensor:
        """Return what was used at each time, with the calendar."""
        rows = []
        for line in day:
            moment, used = line.split(";")
            when = datetime.datetime.strptime(moment, "%d.%m.%Y %H:%M:%S")
            hour, weekday = when.hour + when.minute / 60, when.weekday()
            rows.append([float(used), hour / 24, weekday / 7, when.month / 12, weekday > 4])
        return torch.tensor(rows)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        day = self.kept[index % 64] if self.kept else self.parsed(self.days[index % 64])
        return day, torch.rand(24)


class Stacked(Bases):
    """The blocks of the sixth round's forecaster, for days of measurements."""

    def __init__(self) -> None:
        super().__init__(past=480)

    def forward(self, day: Tensor) -> Tensor:
        return super().forward(day.flatten(1))


# Cameras of events


class Events(Dataset[Item]):
    """What a camera of events saw: where, when and whether brighter, binned for each item."""

    def __init__(self, count: int, before: bool, events: int = 20_000, side: int = 48) -> None:
        random = np.random.default_rng(0)
        self.side, self.count = side, count
        self.seen = [
            (
                random.integers(0, side, (2, events)),
                np.sort(random.random(events)).astype(np.float32),
                random.choice(np.float32([-1, 1]), events),
            )
            for _ in range(16)
        ]
        self.kept = [self.binned(*each) for each in self.seen] if before else []

    def binned(self, place: np.ndarray, when: np.ndarray, sign: np.ndarray) -> Tensor:
        """Return a grid of five moments; each event is shared between the two next to it."""
        grid = np.zeros((5, self.side, self.side), np.float32)
        moment = (when - when.min()) / (when.max() - when.min()) * 4
        first = np.minimum(np.floor(moment).astype(int), 3)
        later = moment - first
        np.add.at(grid, (first, place[0], place[1]), sign * (1 - later))
        np.add.at(grid, (first + 1, place[0], place[1]), sign * later)
        filled = grid[grid != 0]
        grid[grid != 0] = (filled - filled.mean()) / filled.std()
        return torch.from_numpy(grid)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        if self.kept:
            return self.kept[index % 16], torch.tensor(index % 11)
        return self.binned(*self.seen[index % 16]), torch.tensor(index % 11)


class Spike(torch.autograd.Function):
    """Whether a neuron fires; its slope is that of a sigmoid."""

    @staticmethod
    def forward(context: torch.autograd.function.FunctionCtx, charge: Tensor) -> Tensor:
        context.save_for_backward(charge)
        return (charge > 0).float()

    @staticmethod
    def backward(context: torch.autograd.function.FunctionCtx, slope: Tensor) -> Tensor:
        (charge,) = context.saved_tensors  # type: ignore[attr-defined]
        return slope / (1 + 4 * charge.abs()) ** 2


class Spiking(nn.Module):
    """Two layers of neurons that charge, fire and leak, moment by moment."""

    def __init__(self, channels: int = 16, gestures: int = 11) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, channels, 5, stride=2, padding=2)
        self.second = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.head = nn.Linear(2 * channels, gestures)

    def forward(self, grid: Tensor) -> Tensor:
        one, two, found = torch.zeros(()), torch.zeros(()), torch.zeros(())
        for moment in grid.unbind(1):
            one = 0.8 * one + self.first(moment[:, None])
            fired = Spike.apply(one - 0.5)
            one = one - 0.5 * fired
            two = 0.8 * two + self.second(fired)
            again = Spike.apply(two - 0.5)
            two = two - 0.5 * again
            found = found + self.head(again.mean((2, 3)))
        return found


# Odours


class Odours(Dataset[Item]):
    """What sixteen sensors said of odours, in files of 160; the file read last is kept."""

    EACH = 160

    def __init__(self, folder: Path, shards: int = 32, moments: int = 100) -> None:
        self.paths = [folder / f"{number}.pt" for number in range(shards)]
        for path in self.paths:
            sensed = torch.randn(self.EACH, 16, moments)
            torch.save({"sensed": sensed, "odour": torch.randint(6, (self.EACH,))}, path)
        self.at, self.kept = -1, {}

    def __len__(self) -> int:
        return self.EACH * len(self.paths)

    def __getitem__(self, index: int) -> Item:
        shard, place = divmod(index, self.EACH)
        if shard != self.at:
            self.at, self.kept = shard, torch.load(self.paths[shard])
        return self.kept["sensed"][place], self.kept["odour"][place]


class ShardByShard(Sampler[int]):
    """The files in any order, and the items of each in any order."""

    def __init__(self, data: Odours) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> itertools.chain[int]:
        each = self.data.EACH
        order = torch.randperm(len(self.data.paths)).tolist()
        return itertools.chain.from_iterable(
            (each * shard + torch.randperm(each)).tolist() for shard in order
        )


class Nose(nn.Module):
    """Which odour it is: separable convolutions whose channels are weighed."""

    def __init__(self, channels: int = 64, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv1d(16, channels, 1)
        self.apart = nn.ModuleList(
            nn.Conv1d(channels, channels, 7, padding=3, groups=channels) for _ in range(depth)
        )
        self.together = nn.ModuleList(nn.Conv1d(channels, channels, 1) for _ in range(depth))
        self.weighed = nn.ModuleList(nn.Linear(channels, channels) for _ in range(depth))
        self.head = nn.Linear(channels, 6)

    def forward(self, sensed: Tensor) -> Tensor:
        x = self.enter(sensed)
        for apart, together, weighed in zip(self.apart, self.together, self.weighed, strict=True):
            found = functional.silu(together(apart(x)))
            x = x + found * weighed(found.mean(2)).sigmoid()[..., None]
        return self.head(x.amax(2))


# Intensive care


class Stays(Dataset[Item]):
    """Two days of a patient, measured now and then, brought to whole hours."""

    NAMES = ("pulse", "pressure", "oxygen", "temperature", "breaths", "glucose")

    def __init__(self, count: int, before: bool) -> None:
        random, start = np.random.default_rng(0), pandas.Timestamp("2025-01-01")
        self.stays, self.count = [], count
        for _ in range(64):
            hours = np.sort(random.uniform(0, 48, 120))
            values = np.where(random.random((120, 6)) < 0.5, random.normal(0, 1, (120, 6)), np.nan)
            moments = start + pandas.to_timedelta(hours, "h")
            self.stays.append(pandas.DataFrame(values, moments, list(self.NAMES)))
        self.kept = [self.hourly(each) for each in self.stays] if before else []

    @staticmethod
    def hourly(stay: pandas.DataFrame) -> Tensor:
        """Return the means of each hour, filled forward, and whether they were measured."""
        hours = pandas.date_range("2025-01-01", periods=48, freq="h")
        means = stay.resample("h").mean().reindex(hours)
        measured = means.notna().to_numpy(np.float32)
        filled = means.ffill().fillna(0.0).to_numpy(np.float32)
        return torch.from_numpy(np.concatenate([filled, measured], 1))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        stay = self.kept[index % 64] if self.kept else self.hourly(self.stays[index % 64])
        return stay, torch.tensor(index % 2)


class Ward(nn.Module):
    """How a stay ends: read both ways, and the hours weighed."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.both = nn.GRU(12, width, batch_first=True, bidirectional=True)
        self.weight, self.head = nn.Linear(2 * width, 1), nn.Linear(2 * width, 2)

    def forward(self, stay: Tensor) -> Tensor:
        hours, _ = self.both(stay)
        return self.head((self.weight(hours).softmax(1) * hours).sum(1))


# Gestures


class Warped(nn.Module):
    """How far a gesture is from each kind's, when time may stretch: cell by cell, or diagonals."""

    def __init__(self, cells: bool, width: int = 48, length: int = 16, kinds: int = 6) -> None:
        super().__init__()
        self.cells, self.length = cells, length
        self.moments = nn.Sequential(
            nn.Conv1d(3, width, 9, stride=2, padding=4),
            nn.ReLU(),
            nn.Conv1d(width, width, 9, stride=2, padding=4),
        )
        self.kinds = nn.Parameter(torch.randn(kinds, length, width))

    def forward(self, gesture: Tensor) -> Tensor:
        moments = self.moments(gesture).transpose(1, 2)
        apart = (moments[:, None, :, None] - self.kinds[None, :, None]).square().mean(-1)
        return -(self.by_cells(apart) if self.cells else self.by_diagonals(apart))

    def by_cells(self, apart: Tensor) -> Tensor:
        """Return the softly shortest way through the distances, one cell after the other."""
        far = torch.full(apart.shape[:2], 1e4)
        above = [torch.zeros(apart.shape[:2]), *[far] * self.length]
        for row in apart.unbind(2):
            ways = [far]
            for at, here in enumerate(row.unbind(2)):
                before = torch.stack([above[at], above[at + 1], ways[at]])
                ways.append(here - torch.logsumexp(-before, 0))
            above = ways
        return above[-1]

    def by_diagonals(self, apart: Tensor) -> Tensor:
        """Return the same, with all cells of a diagonal at once."""
        size = self.length
        row, across = torch.arange(size), torch.arange(2 * size - 1)[:, None]
        inside = (across - row >= 0) & (across - row < size)
        cells = apart[:, :, row, (across - row).clamp(0, size - 1)]
        cells = torch.where(inside, cells, 1e4)
        far = torch.full((*apart.shape[:2], 1), 1e4)
        start = functional.pad(torch.zeros_like(far), (0, size - 1), value=1e4)
        earlier, last = far.expand(-1, -1, size), torch.zeros(())
        for number, here in enumerate(cells.unbind(2)):
            if not number:
                last = start + here
                continue
            below, corner = (torch.cat([far, each[..., :-1]], 2) for each in (last, earlier))
            before = torch.stack([last, below, corner])
            earlier, last = last, here - torch.logsumexp(-before, 0)
        return last[..., -1]


def gestures(count: int = 4096) -> TensorDataset:
    """Return random accelerations of a hand, 64 moments each."""
    return TensorDataset(torch.randn(count, 3, 64), torch.randint(6, (count,)))


# Puzzles


class Sudoku(nn.Module):
    """Each cell hears of its row, its column and its square, several times."""

    def __init__(self, width: int = 64, rounds: int = 6) -> None:
        super().__init__()
        self.digit, self.rounds = nn.Embedding(10, width), rounds
        row, column = torch.arange(81) // 9, torch.arange(81) % 9
        groups = (row, column, row // 3 * 3 + column // 3)
        heard = torch.stack([(each[:, None] == each) / 9 for each in groups])
        self.register_buffer("heard", heard)
        self.think = nn.Sequential(
            nn.Linear(5 * width, width), nn.ReLU(), nn.Linear(width, width), nn.LayerNorm(width)
        )
        self.head = nn.Linear(width, 9)

    def forward(self, puzzle: Tensor) -> Tensor:
        given = self.digit(puzzle)
        state = given
        for _ in range(self.rounds):
            said = (self.heard @ state[:, None]).transpose(1, 2).flatten(2)
            state = state + self.think(torch.cat([given, state, said], 2))
        return self.head(state).flatten(0, 1)


def puzzles(count: int = 8192) -> TensorDataset:
    """Return random puzzles, most cells empty, and digits for all of them."""
    empty = torch.rand(count, 81) < 0.6
    digits = torch.randint(9, (count, 81))
    return TensorDataset(torch.where(empty, 0, digits + 1), digits)
