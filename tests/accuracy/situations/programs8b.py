"""The models and data of the eighth round's runs, which ``programs8.py`` has."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import torch
from programs import Item
from scipy import ndimage  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, TensorDataset

# Jets of particles


class Jets(Dataset[Item]):
    """Collisions as lines of text, of which each is parsed when it is first asked for."""

    def __init__(self, count: int, before: bool, particles: int = 64) -> None:
        random = np.random.default_rng(0)
        names = ("energy", "polar", "azimuth")
        self.lines = [
            json.dumps([dict(zip(names, each, strict=True)) for each in event])
            for event in random.uniform(0.1, 3, (64, particles, 3)).tolist()
        ]
        parsed = [self.parsed(line) for line in self.lines] if before else []
        self.count, self.kept = count, {at: parsed[at % 64] for at in range(count) if before}

    def parsed(self, line: str) -> Tensor:
        """Return what is known of each particle, relative to the jet."""
        event = json.loads(line)
        energy = sum(each["energy"] for each in event)
        polar = sum(each["energy"] * each["polar"] for each in event) / energy
        azimuth = sum(each["energy"] * each["azimuth"] for each in event) / energy
        rows = []
        for each in event:
            across = each["energy"] * math.sin(each["polar"])
            away, around = each["polar"] - polar, each["azimuth"] - azimuth
            around = (around + math.pi) % (2 * math.pi) - math.pi
            rows.append([across / energy, math.log(across), away, around, math.hypot(away, around)])
        return torch.tensor(rows)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        if index not in self.kept:
            self.kept[index] = self.parsed(self.lines[index % 64])
        return self.kept[index], torch.tensor(index % 5)


class Shower(nn.Module):
    """What a jet came from: each particle by itself, in sum weighted by its energy."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.particle = nn.Sequential(
            nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.jet = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 5))

    def forward(self, jet: Tensor) -> Tensor:
        return self.jet((self.particle(jet[..., 1:]) * jet[..., :1]).sum(1))


# Heartbeats


class Beats(Dataset[tuple[object, int]]):
    """Heartbeats, as lists of numbers or as arrays."""

    def __init__(self, count: int, lists: bool, length: int = 360) -> None:
        beats = np.random.default_rng(0).normal(0, 1, (64, length)).astype(np.float32)
        self.count, self.beats = count, [each.tolist() if lists else each for each in beats]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[object, int]:
        return self.beats[index % 64], index % 5


def as_lists(batch: list[tuple[list[float], int]]) -> Item:
    """Return heartbeats of mean 0 and spread 1, worked out number by number."""
    rows = []
    for beat, _ in batch:
        mean = sum(beat) / len(beat)
        spread = math.sqrt(sum((value - mean) ** 2 for value in beat) / len(beat))
        rows.append([(value - mean) / spread for value in beat])
    return torch.tensor(rows)[:, None], torch.tensor([kind for _, kind in batch])


def as_arrays(batch: list[tuple[np.ndarray, int]]) -> Item:
    """Return heartbeats of mean 0 and spread 1."""
    beats = torch.from_numpy(np.stack([beat for beat, _ in batch]))
    beats = (beats - beats.mean(1, keepdim=True)) / beats.std(1, correction=0, keepdim=True)
    return beats[:, None], torch.tensor([kind for _, kind in batch])


class Rhythm(nn.Module):
    """Which kind of heartbeat it is, by residual convolutions over time."""

    def __init__(self, channels: int = 24, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, channels, 15, stride=3, padding=7)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm1d(channels),
                nn.ReLU(),
                nn.Conv1d(channels, channels, 9, padding=4),
            )
            for _ in range(depth)
        )
        self.head = nn.Linear(channels, 5)

    def forward(self, beat: Tensor) -> Tensor:
        x = self.enter(beat)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x.mean(2))


# Earthquakes


class Traces(Dataset[Item]):
    """What a network of stations recorded, in a file for each channel or in one for all."""

    def __init__(self, folder: Path, count: int, apart: bool, channels: int = 24) -> None:
        traces = np.random.default_rng(0).normal(0, 1, (count, channels, 400)).astype(np.float32)
        self.folder, self.apart, self.count, self.channels = folder, apart, count, channels
        if not apart:
            np.save(folder / "all.npy", traces)
            self.traces = np.load(folder / "all.npy", mmap_mode="r")
            return
        for event, recorded in enumerate(traces):
            for channel, trace in enumerate(recorded):
                np.save(folder / f"{event:04d}-{channel:02d}.npy", trace)

    def __len__(self) -> int:
        return 16 * self.count

    def __getitem__(self, index: int) -> Item:
        event = index % self.count
        if self.apart:
            paths = (self.folder / f"{event:04d}-{at:02d}.npy" for at in range(self.channels))
            recorded = np.stack([np.load(path) for path in paths])
        else:
            recorded = self.traces[event].copy()
        return torch.from_numpy(recorded), (torch.arange(400) > index % 400).long()


def picker(inputs: int = 24, channels: int = 16) -> nn.Module:
    """Return a network that says at each time whether the waves have come."""
    return nn.Sequential(
        nn.Conv1d(inputs, channels, 7, 2, 3),
        nn.ELU(),
        nn.Conv1d(channels, 2 * channels, 7, 2, 3),
        nn.ELU(),
        nn.ConvTranspose1d(2 * channels, channels, 4, 2, 1),
        nn.ELU(),
        nn.ConvTranspose1d(channels, 2, 4, 2, 1),
    )


# Fingerprints


class Prints(Dataset[Item]):
    """Fingerprints that are pulled about like skin, or were so before."""

    def __init__(self, count: int, before: bool, side: int = 96) -> None:
        place = np.linspace(0, 24, side)
        self.plain = np.sin(np.hypot(place[:, None] - 9, place - 12) * 3).astype(np.float32)
        self.places = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"))
        self.count = count
        self.ready = [self.warped(number) for number in range(32)] if before else []

    def warped(self, number: int) -> Tensor:
        """Return the print, each of its points moved with those around it."""
        random = np.random.default_rng(number)
        moves = random.uniform(-1, 1, self.places.shape)
        pulled = [ndimage.gaussian_filter(each, 6) * 40 for each in moves]
        print_ = ndimage.map_coordinates(self.plain, self.places + pulled, order=3, mode="reflect")
        return torch.from_numpy(print_.astype(np.float32))[None]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        seen = self.ready[index % 32].clone() if self.ready else self.warped(index)
        return seen, torch.tensor(index % 50)


def fingers(channels: int = 16, people: int = 50) -> nn.Module:
    """Return a network that says whose finger it is."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 7, 2, 3),
        nn.PReLU(),
        nn.Conv2d(channels, 2 * channels, 3, 2, 1),
        nn.PReLU(),
        nn.Conv2d(2 * channels, 4 * channels, 3, 2, 1),
        nn.PReLU(),
        nn.AdaptiveMaxPool2d(4),
        nn.Flatten(),
        nn.Linear(64 * channels, people),
    )


# Crystals


class Crystal(nn.Module):
    """The energy of a crystal's cell, by gated sums over each atom's neighbours."""

    def __init__(self, in_turn: bool, width: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.in_turn = in_turn
        self.kinds = nn.Embedding(90, width)
        self.gates = nn.ModuleList(nn.Linear(2 * width + 1, 2 * width) for _ in range(depth))
        self.head = nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, 1))

    def energies(self, cells: Tensor) -> Tensor:
        """Return the energies of cells: each atom's kind, its neighbours, how far they are."""
        kind, (beside, far) = cells[..., 0].long(), cells[..., 1:].chunk(2, -1)
        x, which = self.kinds(kind), torch.arange(len(cells))[:, None, None]
        for gate in self.gates:
            other = x[which, beside.long()]
            pair = torch.cat([x[:, :, None].expand_as(other), other, far[..., None]], -1)
            open_, said = gate(pair).chunk(2, -1)
            x = functional.softplus(x + (open_.sigmoid() * functional.softplus(said)).sum(2))
        return self.head(x.mean(1))[:, 0]

    def forward(self, cells: Tensor) -> Tensor:
        if self.in_turn:
            return torch.cat([self.energies(cell[None]) for cell in cells])
        return self.energies(cells)


def perovskites(count: int = 4096, atoms: int = 20, neighbours: int = 8) -> TensorDataset:
    """Return cells of twenty atoms with their energies."""
    kind = torch.randint(90, (count, atoms, 1)).float()
    beside = torch.randint(atoms, (count, atoms, neighbours)).float()
    far = torch.rand(count, atoms, neighbours)
    return TensorDataset(torch.cat([kind, beside, far], -1), torch.randn(count))


# Decisions of robots


class Head(nn.Module):
    """One head of attention that looks at what was before."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, size, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        scores = self.query(x) @ self.key(x).transpose(1, 2) * self.key.out_features**-0.5
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return scores.masked_fill(later, -torch.inf).softmax(-1) @ self.value(x)


class Heads(nn.Module):
    """The same for all heads, by one product each for queries, keys, values and scores."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.enter = heads, nn.Linear(width, 3 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.enter(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        scores = query @ key.transpose(2, 3) * key.shape[-1] ** -0.5
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        mixed = scores.masked_fill(later, -torch.inf).softmax(-1) @ value
        return mixed.transpose(1, 2).flatten(2)


class Decisions(nn.Module):
    """What a robot does next, from states, deeds and what they are to bring."""

    def __init__(self, in_turn: bool, width: int = 96, heads: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(24, width), nn.Linear(width, 6)
        self.places = nn.Parameter(torch.randn(30, width) / 8)
        size = width // heads
        self.heads = nn.ModuleList(
            nn.ModuleList(Head(width, size) for _ in range(heads))
            if in_turn
            else nn.ModuleList([Heads(width, heads)])
            for _ in range(depth)
        )
        self.outs = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.parts = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU())
            for _ in range(depth)
        )
        self.backs = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth))

    def forward(self, past: Tensor) -> Tensor:
        x = self.enter(past) + self.places
        for heads, out, part, back in zip(
            self.heads, self.outs, self.parts, self.backs, strict=True
        ):
            assert isinstance(heads, nn.ModuleList)
            x = x + out(torch.cat([head(x) for head in heads], -1))
            x = x + back(part(x))
        return self.head(x)


def trajectories(count: int = 4096, steps: int = 30) -> TensorDataset:
    """Return what robots saw and did, with what they did then."""
    return TensorDataset(torch.randn(count, steps, 24), torch.randn(count, steps, 6))


# Galaxies


class Galaxies(nn.Module):
    """How people would describe a galaxy, whichever way it is turned."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, channels, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Sequential(nn.Linear(4 * 72 * channels, 256), nn.ReLU(), nn.Linear(256, 37))

    def forward(self, seen: Tensor) -> Tensor:
        turned = torch.cat([seen.rot90(times, (2, 3)) for times in range(4)])
        parts = self.layers(turned).flatten(1).chunk(4)
        return self.head(torch.cat(parts, 1)).sigmoid()


def observed(count: int = 4096) -> TensorDataset:
    """Return pictures of galaxies with the shares of 37 answers."""
    return TensorDataset(torch.rand(count, 3, 32, 32), torch.rand(count, 37))


# Water in the ground


class Operator(nn.Module):
    """The pressure of water in the ground from how it lets water through, by waves."""

    def __init__(self, dtype: torch.dtype, channels: int = 32, modes: int = 12) -> None:
        super().__init__()
        self.modes = modes
        complex_ = torch.complex128 if dtype == torch.float64 else torch.complex64
        self.enter, self.head = nn.Conv2d(3, channels, 1), nn.Conv2d(channels, 1, 1)
        shape = (4, 2, channels, channels, modes, modes)
        self.waves = nn.Parameter(torch.randn(shape, dtype=complex_) / channels)
        self.besides = nn.ModuleList(nn.Conv2d(channels, channels, 1) for _ in range(4))
        for part in (self.enter, self.head, self.besides):
            part.to(dtype)

    def forward(self, ground: Tensor) -> Tensor:
        x, modes = self.enter(ground), self.modes
        for (low, high), beside in zip(self.waves, self.besides, strict=True):
            waves = torch.fft.rfft2(x)
            out = torch.zeros_like(waves)
            for weight, rows in ((low, slice(modes)), (high, slice(-modes, None))):
                some = waves[:, :, rows, :modes]
                out[:, :, rows, :modes] = torch.einsum("bixy,ioxy->boxy", some, weight)
            x = functional.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + beside(x))
        return self.head(x)


def grounds(dtype: torch.dtype, count: int = 256, side: int = 64) -> TensorDataset:
    """Return grounds with their places, and the pressure in them."""
    return TensorDataset(
        torch.randn(count, 3, side, side, dtype=dtype), torch.randn(count, 1, side, side)
    )


# Molecules as lines of letters


class Smiles(nn.Module):
    """How well a molecule dissolves, from its line of letters, read both ways."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.letters = nn.Embedding(40, width, padding_idx=0)
        self.reader = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 1)

    def forward(self, line: Tensor) -> Tensor:
        there = (line != 0).float()[..., None]
        read, _ = self.reader(self.letters(line))
        return self.head((read * there).sum(1) / there.sum(1))[:, 0]


def lines(count: int = 4096, length: int = 220) -> TensorDataset:
    """Return lines of 20 to 60 letters with zeros behind them, and how well each dissolves."""
    line = torch.randint(1, 40, (count, length))
    line[torch.arange(length) >= torch.randint(20, 61, (count, 1))] = 0
    return TensorDataset(line, torch.randn(count))


# Pictures with holes


class Unfolded(nn.Conv2d):
    """A convolution as a product with all windows of the picture."""

    def forward(self, x: Tensor) -> Tensor:
        windows = functional.unfold(x, self.kernel_size, padding=1)
        assert self.bias is not None
        out = self.weight.flatten(1) @ windows + self.bias[:, None]
        return out.unflatten(2, x.shape[2:])


class Holes(nn.Module):
    """Fills the holes of pictures by convolutions that see only what is there."""

    def __init__(self, unfolded: bool, channels: int = 24, depth: int = 4) -> None:
        super().__init__()
        kind = Unfolded if unfolded else nn.Conv2d
        sizes = [3, *[channels] * (depth - 1), 3]
        self.layers = nn.ModuleList(
            kind(into, out, 3, padding=1) for into, out in itertools.pairwise(sizes)
        )

    def forward(self, picture: Tensor) -> Tensor:
        there = (picture[:, :1] != 0).float()
        for number, layer in enumerate(self.layers):
            near = functional.avg_pool2d(there, 3, 1, 1)
            picture = layer(picture * there) / near.clamp(min=1 / 9)
            there = (near > 0).float()
            if number < len(self.layers) - 1:
                picture = functional.leaky_relu(picture, 0.2)
        return picture


def holed(count: int = 256, side: int = 64) -> TensorDataset:
    """Return pictures with holes, and whole ones."""
    whole = torch.rand(count, 3, side, side)
    holes = functional.interpolate((torch.rand(count, 1, 8, 8) < 0.7).float(), scale_factor=8)
    return TensorDataset(whole * holes, whole)


# Frames of what comes next


class Frames(nn.Module):
    """The next frames of moving digits, by a cell of convolutions that remembers."""

    def __init__(self, again: bool, channels: int = 16) -> None:
        super().__init__()
        self.again, self.channels = again, channels
        self.gates = nn.Conv2d(1 + channels, 4 * channels, 3, padding=1)
        self.head = nn.Conv2d(channels, 1, 1)

    def cell(self, frame: Tensor, hidden: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
        """Return what is shown and what is kept after one more frame."""
        gates = self.gates(torch.cat([frame, hidden], 1)).chunk(4, 1)
        forget, enter, out = (gate.sigmoid() for gate in gates[:3])
        kept = forget * kept + enter * gates[3].tanh()
        return out * kept.tanh(), kept

    def forward(self, frames: Tensor) -> Tensor:
        hidden = frames.new_zeros(len(frames), self.channels, *frames.shape[2:])
        kept, found = hidden, []
        for frame in frames.unsqueeze(2).unbind(1):
            if self.again:
                hidden, kept = checkpoint(self.cell, frame, hidden, kept, use_reentrant=False)
            else:
                hidden, kept = self.cell(frame, hidden, kept)
            found.append(self.head(hidden))
        return torch.cat(found, 1)


def digits(count: int = 512, frames: int = 8, side: int = 32) -> TensorDataset:
    """Return frames, and each one's next."""
    shown = torch.rand(count, frames + 1, side, side)
    return TensorDataset(shown[:, :-1].contiguous(), shown[:, 1:].contiguous())
