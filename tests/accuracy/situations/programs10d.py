"""Models and data of the tenth round's runs that talk, and of those that read and prepare."""

import io
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image, ImageDraw, ImageFilter, ImageFont
from programs import Item
from scipy.signal import medfilt  # type: ignore[import-untyped]
from scipy.spatial.distance import cdist  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Routes on a map


class Handed(torch.autograd.Function):
    """What each rank has found for every other, handed over; the gradients go back likewise."""

    @staticmethod
    def forward(_context: object, found: Tensor) -> Tensor:
        return handed(found)

    @staticmethod
    def backward(_context: object, gradient: Tensor) -> Tensor:
        return handed(gradient)


def handed(mine: Tensor) -> Tensor:
    """Give each rank its part, and return the parts that are for this one."""
    theirs = torch.empty_like(mine)
    dist.all_to_all_single(theirs, mine.detach().contiguous())
    return theirs


class Streets(nn.Module):
    """A vector for each street; every rank keeps those that its number leaves over."""

    def __init__(self, ranks: int, streets: int = 60_000, width: int = 96) -> None:
        super().__init__()
        self.ranks = ranks
        self.table = nn.Embedding(streets // ranks, width, sparse=True)

    def forward(self, route: Tensor) -> Tensor:
        if self.ranks == 1:
            return self.table(route)
        asked = [torch.empty_like(route) for _ in range(self.ranks)]
        dist.all_gather(asked, route)
        every = torch.stack(asked)
        mine = (every % self.ranks == dist.get_rank())[..., None]
        return Handed.apply(self.table(every // self.ranks) * mine).sum(0)


class Arrival(nn.Module):
    """How long a route takes: each street's part of it, with those before and after in view."""

    def __init__(self, ranks: int, width: int = 80) -> None:
        super().__init__()
        self.streets = Streets(ranks)
        self.enter = nn.Linear(96, width)
        self.hour = nn.Embedding(24, width)
        self.gated = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, padding=each, dilation=each) for each in (1, 2)
        )
        self.minutes = nn.Linear(width, 1)

    def forward(self, route: Tensor) -> Tensor:
        x = (self.enter(self.streets(route[:, 1:])) + self.hour(route[:, :1])).transpose(1, 2)
        for layer in self.gated:
            x = x + functional.glu(layer(x), 1)
        return functional.softplus(self.minutes(x.transpose(1, 2))).sum((1, 2))


def routes(count: int = 4096, length: int = 64) -> TensorDataset:
    """Return random routes, the hour before their streets, and how many minutes they took."""
    hours = torch.randint(24, (count, 1))
    ways = torch.randint(60_000, (count, length))
    return TensorDataset(torch.cat([hours, ways], 1), 60 * torch.rand(count))


# Formulas that somebody wrote


class Formula(nn.Module):
    """Writes down what a picture of a formula says: columns are looked at, sign after sign."""

    def __init__(self, width: int = 320, signs: int = 120) -> None:
        super().__init__()
        blocks: list[nn.Module] = []
        for into, out in ((1, 16), (16, 32), (32, 64)):
            blocks += [nn.Conv2d(into, out, 3, padding=1), nn.SiLU(), nn.MaxPool2d(2)]
        self.columns = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d((1, None)))
        self.keys = nn.Linear(64, 2 * width)
        self.sign = nn.Embedding(signs, width)
        self.written = nn.GRU(width, width, batch_first=True)
        self.next = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, signs))

    def forward(self, picture: Tensor, signs: Tensor) -> Tensor:
        keys, values = self.keys(self.columns(picture)[:, :, 0].transpose(1, 2)).chunk(2, 2)
        written, _ = self.written(self.sign(signs))
        seen = functional.scaled_dot_product_attention(written, keys, values)
        return self.next(torch.cat([written, seen], 2))


def formulas(count: int = 1024, signs: int = 24) -> TensorDataset:
    """Return random pictures, 32 by 128 points, and the signs of their formulas."""
    return TensorDataset(torch.rand(count, 1, 32, 128), torch.randint(120, (count, signs + 1)))


def mean_gradients(model: nn.Module) -> None:
    """Replace every gradient by its mean over the ranks, all of them in one vector."""
    found = [each.grad for each in model.parameters() if each.grad is not None]
    whole = torch.cat([each.flatten() for each in found])
    dist.all_reduce(whole)
    whole /= dist.get_world_size()
    for each, mean in zip(found, whole.split([each.numel() for each in found]), strict=True):
        each.copy_(mean.view_as(each))


# Clouds from above


class Pyramid(nn.Module):
    """Where clouds are: what is seen at four scales is brought to the finest and summed."""

    def __init__(self, bands: int = 10, width: int = 16) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(into, out, 3, stride=2, padding=1),
                nn.GroupNorm(4, out),
                nn.GELU(),
                nn.Conv2d(out, out, 3, padding=1),
                nn.GELU(),
            )
            for into, out in zip([bands, *widths], widths, strict=False)
        )
        self.aside = nn.ModuleList(nn.Conv2d(each, width, 1) for each in widths)
        self.mask = nn.Conv2d(width, 1, 3, padding=1)

    def forward(self, scene: Tensor) -> Tensor:
        x, found = scene, []
        for down, aside in zip(self.down, self.aside, strict=True):
            x = down(x)
            found.append(functional.interpolate(aside(x), size=scene.shape[2:]))
        return self.mask(torch.stack(found).sum(0))[:, 0]


def skies(count: int = 512, side: int = 48) -> TensorDataset:
    """Return random scenes in ten bands, and where they are cloudy."""
    return TensorDataset(torch.rand(count, 10, side, side), torch.rand(count, side, side).round())


def dice_and_entropy(scores: Tensor, cloudy: Tensor) -> Tensor:
    """Return the usual loss of masks: cross-entropy, and how little they overlap."""
    said = scores.sigmoid()
    dice = 1 - 2 * (said * cloudy).sum() / (said.sum() + cloudy.sum() + 1)
    return functional.binary_cross_entropy_with_logits(scores, cloudy) + dice


# Flares of the sun


class Regions(Dataset[Item]):
    """Active regions of the sun, of as many hours as they were seen; one rank's half of them.

    They are in the order of their length, as their files are; a rank takes the half behind
    another's.
    """

    def __init__(self, half: int, count: int = 1024, measured: int = 18) -> None:
        random = np.random.default_rng(3)
        hours = np.sort(random.lognormal(4.6, 0.33, count).clip(24, 320).astype(int))
        mine = hours[half * count // 2 : (half + 1) * count // 2]
        self.regions = [
            torch.from_numpy(random.normal(size=(each, measured)).astype(np.float32))
            for each in mine
        ]

    def __len__(self) -> int:
        return len(self.regions)

    def __getitem__(self, index: int) -> Item:
        return self.regions[index], torch.tensor(index % 4)


def padded(regions: list[Item]) -> Item:
    """Return a batch as long as its longest."""
    series, flares = zip(*regions, strict=True)
    return nn.utils.rnn.pad_sequence(list(series), batch_first=True), torch.stack(flares)


class Flares(nn.Module):
    """Which flares a region will have, from its past: convolutions that look back ever farther."""

    def __init__(self, measured: int = 18, width: int = 64, kinds: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv1d(measured, width, 1)
        self.back = nn.ModuleList(nn.Conv1d(width, width, 3, dilation=2**at) for at in range(5))
        self.mixed = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(5))
        self.head = nn.Linear(2 * width, kinds)

    def forward(self, series: Tensor) -> Tensor:
        x = self.enter(series.transpose(1, 2))
        for at, (back, mixed) in enumerate(zip(self.back, self.mixed, strict=True)):
            x = x + mixed(back(functional.pad(x, (2 * 2**at, 0))).relu())
        return self.head(torch.cat([x[..., -1], x.mean(2)], 1))


# Lightning

STORE = """
import http.server, os, pathlib, sys, threading, time

class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(float(sys.argv[2]))
        found = pathlib.Path(sys.argv[1], self.path[1:]).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)

    def log_message(self, *said):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
os._exit(0)
"""
"""Gives files out, each after the time that a distant store takes to find it."""


class Strikes(Dataset[Item]):
    """What antennas heard of strikes of lightning, a file for each, beside the run or far away."""

    def __init__(self, folder: Path, far: bool, count: int = 400, away: float = 0.001) -> None:
        random = np.random.default_rng(5)
        self.count, self.folder, self.address = count, folder, ""
        for number in range(count):
            np.save(folder / f"{number}.npy", random.normal(size=(4, 2048)).astype(np.float16))
        if far:
            self.store = subprocess.Popen(
                [sys.executable, "-c", STORE, str(folder), str(away)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert self.store.stdout
            self.address = f"http://127.0.0.1:{self.store.stdout.readline().strip()}"

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        if self.address:
            with urllib.request.urlopen(f"{self.address}/{index}.npy") as answer:
                heard = np.load(io.BytesIO(answer.read()))
        else:
            heard = np.load(self.folder / f"{index}.npy")
        return torch.from_numpy(heard).float(), torch.tensor(index % 5)


class Strike(nn.Module):
    """Which kind of strike it is: filters of several lengths side by side, twice."""

    def __init__(self, width: int = 28, kinds: int = 5) -> None:
        super().__init__()
        self.first = nn.ModuleList(
            nn.Conv1d(4, width, size, stride=2, padding=size // 2) for size in (5, 11, 23)
        )
        self.second = nn.ModuleList(
            nn.Conv1d(3 * width, width, size, stride=4, padding=size // 2) for size in (5, 11, 23)
        )
        self.norm, self.head = nn.BatchNorm1d(3 * width), nn.Linear(3 * width, kinds)

    def forward(self, heard: Tensor) -> Tensor:
        x = torch.cat([each(heard) for each in self.first], 1).relu()
        x = torch.cat([each(self.norm(x)) for each in self.second], 1).relu()
        return self.head(x.amax(2))


# Licence plates


class Plates(Dataset[Item]):
    """Plates with letters on them, drawn as a camera would see them: now, or before the run."""

    SIGNS = "ABCDEFGHJKLMNPRSTUVWXYZ0123456789"

    def __init__(self, before: bool, count: int = 4096, kept: int = 256) -> None:
        self.font = ImageFont.load_default(52)
        self.count = count
        self.kept = [self.drawn(each) for each in range(kept)] if before else []

    def drawn(self, index: int) -> Item:
        """Return a plate that is tilted, seen from aside, out of focus and noisy."""
        random = np.random.default_rng(index)
        letters = random.integers(len(self.SIGNS), size=7)
        plate = Image.new("L", (384, 96), int(random.integers(150, 255)))
        draw = ImageDraw.Draw(plate)
        draw.rectangle((4, 4, 379, 91), outline=20, width=4)
        draw.text((40, 16), "".join(self.SIGNS[each] for each in letters), 10, self.font)
        plate = plate.rotate(random.uniform(-6, 6), Image.Resampling.BICUBIC, fillcolor=90)
        seen = [1, random.uniform(-0.1, 0.1), 0, random.uniform(-0.03, 0.03), 1, 0, 3e-4, 6e-4]
        plate = plate.transform(
            (384, 96), Image.Transform.PERSPECTIVE, seen, Image.Resampling.BICUBIC
        )
        plate = plate.filter(ImageFilter.GaussianBlur(random.uniform(0.4, 2.5)))
        points = np.asarray(plate.resize((128, 32), Image.Resampling.BILINEAR), np.float32) / 255
        points = (points + random.normal(0, 0.05, points.shape)).astype(np.float32)
        return torch.from_numpy(points)[None], torch.from_numpy(letters + 1)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        return self.kept[index % len(self.kept)] if self.kept else self.drawn(index)


class Read(nn.Module):
    """Letters along a plate: convolutions, then a memory that runs both ways."""

    def __init__(self, width: int = 32, signs: int = 34) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d((4, 2)),
            nn.Conv2d(2 * width, 2 * width, (4, 3), padding=(0, 1)),
            nn.ReLU(),
        )
        self.along = nn.LSTM(2 * width, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, signs)

    def forward(self, plate: Tensor) -> Tensor:
        columns = self.seen(plate)[:, :, 0].transpose(1, 2)
        return self.head(self.along(columns)[0]).log_softmax(2)


def spelt(said: Tensor, letters: Tensor) -> Tensor:
    """Return the loss of letters whose places nobody knows."""
    across = torch.full((len(said),), said.shape[1])
    return functional.ctc_loss(
        said.transpose(0, 1), letters, across, torch.full((len(said),), letters.shape[1])
    )


# Neutrinos


class Neutrinos(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Where and when modules in the ice saw light, and each hit's nearest ones."""

    def __init__(self, before: bool, count: int = 4096, hits: int = 460, near: int = 6) -> None:
        random = np.random.default_rng(11)
        self.count, self.near = count, near
        self.seen = [random.normal(size=(hits, 5)).astype(np.float32) for _ in range(64)]
        self.kept = [self.joined(each) for each in self.seen] if before else []

    def joined(self, hits: np.ndarray) -> Tensor:
        """Return the numbers of the hits that are nearest to each in space and time."""
        apart = cdist(hits[:, :4], hits[:, :4])
        return torch.from_numpy(np.argsort(apart, 1)[:, 1 : self.near + 1].copy())

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        hits = self.seen[index % 64]
        near = self.kept[index % 64] if self.kept else self.joined(hits)
        return torch.from_numpy(hits), near, torch.randn(3)


class Direction(nn.Module):
    """Where a neutrino came from: each hit looks at what its nearest ones have that it has not."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.rounds = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * into, width), nn.LeakyReLU(0.2), nn.Linear(width, width))
            for into in (5, width)
        )
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 3))

    def forward(self, hits: Tensor, near: Tensor) -> Tensor:
        event = torch.arange(len(hits))[:, None, None]
        x = hits
        for layers in self.rounds:
            here = x[:, :, None].expand(-1, -1, near.shape[2], -1)
            x = layers(torch.cat([here, x[event, near] - here], 3)).amax(2)
        return self.head(torch.cat([x.mean(1), x.amax(1)], 1))


# Plasma


class Shots(Dataset[Item]):
    """A shot of a tokamak: diagnostics with a clock each, freed of spikes and put on one clock."""

    def __init__(self, before: bool, count: int = 4096, signals: int = 8) -> None:
        random = np.random.default_rng(7)
        self.count, self.moments = count, np.linspace(0.05, 0.95, 128)
        self.shots: list[list[tuple[np.ndarray, np.ndarray]]] = []
        for _ in range(48):
            sizes = random.integers(500, 1500, signals)
            self.shots.append(
                [(np.sort(random.random(each)), random.normal(size=each)) for each in sizes]
            )
        self.kept = [self.cleaned(each) for each in self.shots] if before else []

    def cleaned(self, shot: list[tuple[np.ndarray, np.ndarray]]) -> Tensor:
        """Return all signals at the same moments, without spikes, in like units."""
        rows = []
        for when, measured in shot:
            smooth = medfilt(measured, 9)
            low, high = np.percentile(smooth, [1, 99])
            even = np.interp(self.moments, when, smooth.clip(low, high))
            rows.append((even - even.mean()) / even.std())
        return torch.from_numpy(np.stack(rows, 1).astype(np.float32))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        shot = self.kept[index % 48] if self.kept else self.cleaned(self.shots[index % 48])
        return shot, torch.tensor(index % 2).float()


class Disruption(nn.Module):
    """Whether a plasma breaks down, said at each moment; the worst that was said counts."""

    def __init__(self, signals: int = 8, width: int = 96) -> None:
        super().__init__()
        self.past = nn.LSTM(signals, width, 2, batch_first=True)
        self.alarm = nn.Linear(width, 1)

    def forward(self, shot: Tensor) -> Tensor:
        alarms: Tensor = self.alarm(self.past(shot)[0])[..., 0]
        return torch.logsumexp(alarms, 1)


def decayed(model: nn.Module) -> list[dict[str, Any]]:
    """Return groups for an optimizer: what decays, and biases and norms that do not."""
    every = list(model.parameters())
    return [
        {"params": [each for each in every if each.ndim > 1]},
        {"params": [each for each in every if each.ndim < 2], "weight_decay": 0.0},
    ]
