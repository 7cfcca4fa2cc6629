"""Models and data of the seventeenth round's first runs, from hinges to pulleys: see
``programs17.py``."""

import gc
import math
import mmap
import os
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from threading import local
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image, ImageDraw
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

    def __init__(self, halves: bool, channels: int = 6, side: int = 16, depth: int = 5) -> None:
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


def plates(count: int = 800, side: int = 16) -> TensorDataset:
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
            time.sleep(random.expovariate(250))
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
    """How a stove is fired: its heat goes into a state, moment by moment."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.heat = nn.GRU(12, width, batch_first=True)
        self.fired = nn.Linear(width, 7)

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


# Needles


class Needles(Dataset[Item]):
    """Photographs of needles, which are found, measured and laid straight."""

    def __init__(self, ready: bool, count: int = 300, side: int = 72) -> None:
        chance = np.random.default_rng(163)
        down, across = np.mgrid[:side, :side] - side / 2
        self.photos = []
        for _ in range(count):
            angle = chance.uniform(0, np.pi)
            along = across * np.cos(angle) + down * np.sin(angle)
            aside = across * np.sin(angle) - down * np.cos(angle)
            bright = np.exp(-((aside / 2) ** 2) - (along / 20) ** 8)
            self.photos.append((bright + chance.normal(0, 0.15, bright.shape)).astype(np.float32))
        self.known = [self.straight(each) for each in self.photos] if ready else []

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, index: int) -> Item:
        needle = self.known[index] if self.known else self.straight(self.photos[index])
        return needle, torch.tensor(index % 6)

    def straight(self, photo: np.ndarray) -> Tensor:
        """Return the largest thing of a photograph, laid straight, with its edges."""
        from scipy import ndimage

        smooth = ndimage.gaussian_filter(photo, 1.2)
        things, many = ndimage.label(smooth > smooth.mean() + smooth.std())
        sizes = ndimage.sum_labels(things > 0, things, range(1, many + 1))
        places = np.argwhere(things == 1 + int(np.argmax(sizes)))
        middle = places.mean(0)
        _, ways = np.linalg.eigh(np.cov((places - middle).T))
        turn = np.stack([ways[:, 0], ways[:, 1]], 1)
        start = middle - turn @ np.array([12.0, 32.0])
        seen = ndimage.affine_transform(photo, turn, start, (24, 64), order=3, mode="nearest")
        edges = ndimage.gaussian_gradient_magnitude(seen, 1)
        return torch.from_numpy(np.stack([seen, edges]).astype(np.float32))


class Needle(nn.Module):
    """What is wrong with a needle: looked at by rows, then by columns."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.rows = nn.Conv2d(2, channels, (1, 9), (1, 3))
        self.columns = nn.Conv2d(channels, channels, (7, 1), (3, 1))
        self.norm = nn.GroupNorm(4, channels)
        self.wrong = nn.Linear(channels, 6)

    def forward(self, needle: Tensor) -> Tensor:
        x = functional.leaky_relu(self.rows(needle))
        x = functional.leaky_relu(self.norm(self.columns(x)))
        return self.wrong(x.flatten(2).logsumexp(2))


# Sundials


class Sundials(Dataset[Item]):
    """Notes of a sundial's shadow over a day, of which the sun's place is told anew."""

    def __init__(self, ready: bool, count: int = 600, moments: int = 32) -> None:
        chance, self.days = random.Random(167), []
        for _ in range(count):
            time = datetime(2024, 1, 1, 6) + timedelta(days=chance.randrange(700))
            notes = []
            for _ in range(moments):
                time += timedelta(minutes=chance.randrange(5, 25))
                notes.append(f"{time:%d.%m.%Y %H:%M} {chance.uniform(0, 90):.2f}")
            self.days.append((chance.uniform(-60, 60), notes))
        self.known = [self.read(*day) for day in self.days] if ready else []

    def __len__(self) -> int:
        return len(self.days)

    def __getitem__(self, index: int) -> Item:
        day = self.known[index] if self.known else self.read(*self.days[index])
        return day, torch.tensor(index % 90 / 90)

    def read(self, north: float, notes: list[str]) -> Tensor:
        """Return where the sun stood at each note, and where the shadow fell."""
        rows = []
        for note in notes:
            day, clock, shadow = note.split()
            time = datetime.strptime(f"{day} {clock}", "%d.%m.%Y %H:%M")
            year = 2 * math.pi * (time.timetuple().tm_yday - 81) / 365
            lean = math.radians(23.45) * math.sin(year)
            late = 9.87 * math.sin(2 * year) - 7.53 * math.cos(year) - 1.5 * math.sin(year)
            hour = math.radians(15 * (time.hour - 12 + (time.minute + late) / 60))
            place = math.radians(north)
            height = math.sin(place) * math.sin(lean)
            height += math.cos(place) * math.cos(lean) * math.cos(hour)
            falls = math.atan2(math.sin(place) * math.sin(hour), math.cos(hour))
            rows.append([height, lean, hour, falls, math.radians(float(shadow))])
        return torch.tensor(rows)


class Sundial(nn.Module):
    """How far a sundial is turned from the north: notes look at each other."""

    def __init__(self, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.waves = nn.Linear(5, width // 2)
        self.looks = nn.ModuleList(
            nn.MultiheadAttention(width, 4, batch_first=True) for _ in range(depth)
        )
        self.mixed = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU())
            for _ in range(depth)
        )
        self.back = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(depth))
        self.far = nn.Linear(width, 1)

    def forward(self, day: Tensor) -> Tensor:
        waves = self.waves(day)
        x = torch.cat([waves.sin(), waves.cos()], 2)
        for look, mixed, back in zip(self.looks, self.mixed, self.back, strict=True):
            x = x + look(x, x, x, need_weights=False)[0]
            x = x + back(mixed(x))
        return self.far(x.mean(1))[:, 0]


# Curling


class Curling(Dataset[Item]):
    """Ends of curling, drawn from above: where the stones lie, and how they came."""

    def __init__(self, ready: bool, count: int = 400, stones: int = 16) -> None:
        chance = np.random.default_rng(173)
        self.lies = chance.uniform((15, 30), (105, 210), (count, stones, 2))
        self.bends = chance.normal(0, 12, (count, stones))
        self.known = [self.drawn(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.lies)

    def __getitem__(self, index: int) -> Item:
        sheet = self.known[index] if self.known else self.drawn(index)
        return sheet, torch.tensor(index % 9)

    def drawn(self, index: int) -> Tensor:
        """Return a sheet of ice from above, in smooth colours."""
        sheet = Image.new("RGB", (120, 240), "white")
        pen = ImageDraw.Draw(sheet)
        for far, colour in ((45, "navy"), (30, "white"), (15, "red"), (4, "white")):
            pen.ellipse((60 - far, 60 - far, 60 + far, 60 + far), colour)
        for number, ((x, y), bend) in enumerate(
            zip(self.lies[index], self.bends[index], strict=True)
        ):
            way = [(x + bend * (at / 12) ** 2, y + (240 - y) * at / 12) for at in range(13)]
            pen.line(way, "grey", 1)
            pen.ellipse((x - 4, y - 4, x + 4, y + 4), "yellow" if number % 2 else "crimson")
        small = sheet.resize((40, 80), Image.Resampling.LANCZOS)
        return torch.from_numpy(np.asarray(small).copy()).permute(2, 0, 1) / 255


class Curl(nn.Module):
    """Who wins an end: the sheet is seen in steps, each of which skips to the last."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, channels, 5, 2, 2)
        self.second = nn.Conv2d(channels, channels, 3, 2, 1)
        self.third = nn.Conv2d(channels, channels, 3, 2, 1)
        self.wins = nn.Linear(3 * channels, 9)

    def forward(self, sheet: Tensor) -> Tensor:
        first = self.first(sheet).relu()
        second = self.second(first).relu()
        third = self.third(second).relu()
        return self.wins(torch.cat([each.mean((2, 3)) for each in (first, second, third)], 1))


# Fountains


class Fountains(Dataset[Item]):
    """Photographs of fountains, which are altered each time, or were so before."""

    def __init__(self, ready: bool, count: int = 240, side: int = 96) -> None:
        from torchvision.transforms import v2

        self.photos = torch.randint(256, (count, 3, side, side), dtype=torch.uint8)
        self.altered = v2.Compose(
            [
                v2.RandomResizedCrop(56, scale=(0.4, 1.0), antialias=True),
                v2.RandomHorizontalFlip(),
                v2.RandomPerspective(0.3, 1.0),
                v2.ColorJitter(0.3, 0.3, 0.3),
                v2.ToDtype(torch.float32, scale=True),
            ]
        )
        self.known = [self.altered(each) for each in self.photos] if ready else []

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, index: int) -> Item:
        photo = self.known[index] if self.known else self.altered(self.photos[index])
        return photo, torch.tensor(index % 11)


class Fountain(nn.Module):
    """Which fountain it is: pieces of a photograph are mixed, and so are their numbers."""

    def __init__(self, width: int = 128, pieces: int = 49, depth: int = 4) -> None:
        super().__init__()
        self.pieces = nn.Conv2d(3, width, 8, 8)
        self.among = nn.ModuleList(nn.Linear(pieces, pieces) for _ in range(depth))
        self.within = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))
            for _ in range(depth)
        )
        self.which = nn.Linear(width, 11)

    def forward(self, photo: Tensor) -> Tensor:
        x = self.pieces(photo).flatten(2).transpose(1, 2)
        for among, within in zip(self.among, self.within, strict=True):
            x = x + among(x.transpose(1, 2)).transpose(1, 2)
            x = x + within(functional.layer_norm(x, x.shape[-1:]))
        return self.which(x.mean(1))


# Earrings


class Earring(nn.Module):
    """Which boxes of a shop's picture hold an earring."""

    def __init__(self, channels: int = 16, width: int = 48) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(3, channels, 5, 2, 2), nn.ReLU(), nn.Conv2d(channels, width, 3, 2, 1)
        )
        self.hold = nn.Conv2d(width, 16, 1)

    def forward(self, shop: Tensor) -> Tensor:
        return self.hold(self.seen(shop).relu()).flatten(1)


class Boxes:
    """Says which boxes of a picture are near an earring."""

    def __init__(self, kept: bool, earrings: int, side: int = 16, shapes: int = 16) -> None:
        places = torch.linspace(0, 1, side)
        middle = torch.cartesian_prod(places, places).repeat_interleave(shapes, 0)
        self.down, self.across = middle[:, :1].contiguous(), middle[:, 1:].contiguous()
        self.far = torch.linspace(0.01, 0.05, shapes).repeat(side * side)
        self.size = 3, len(middle), earrings
        self.kept = torch.empty(self.size) if kept else None

    @torch.no_grad()
    def near(self, place: Tensor) -> Tensor:
        """Return of each box whether it is near one of the earrings."""
        room = torch.empty(self.size) if self.kept is None else self.kept
        down, across, apart = room.unbind(0)
        torch.sub(self.down, place[:, 0], out=down)
        torch.sub(self.across, place[:, 1], out=across)
        torch.mul(down, down, out=apart).addcmul_(across, across)
        return (apart.amin(1) < self.far.square()).float()


def shops(count: int = 200, side: int = 64) -> TensorDataset:
    """Return random pictures of shops, and where their earrings are."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.rand(count, 800, 2))


# Snowboards


class Room:
    """A room for the windows of a batch's rides; what was in it may be given back."""

    def __init__(self, kept: bool, batch: int, moments: int, window: int) -> None:
        self.kept, self.window, size = kept, window, (batch, 6, moments - window + 1, window)
        self.pages = mmap.mmap(-1, 4 * math.prod(size))
        self.floats = torch.frombuffer(self.pages, dtype=torch.float32).view(size)

    def windows(self, rides: Tensor) -> Tensor:
        """Return the windows of rides."""
        if not self.kept:
            self.pages.madvise(mmap.MADV_DONTNEED)
        return self.floats.copy_(rides.unfold(2, self.window, 1))


class Snowboard(nn.Module):
    """What trick is done on a snowboard: windows are told by a few waves."""

    def __init__(self, window: int, width: int = 4, tricks: int = 14) -> None:
        super().__init__()
        self.waves = nn.Linear(window, width)
        self.trick = nn.Linear(6 * width, tricks)

    def forward(self, windows: Tensor) -> Tensor:
        return self.trick(self.waves(windows).relu().mean(2).flatten(1))


def rides(count: int = 500, moments: int = 512) -> TensorDataset:
    """Return random rides on snowboards, and the trick in each."""
    return TensorDataset(torch.randn(count, 6, moments), torch.randint(14, (count,)))


# Hammocks


class Hammock(nn.Module):
    """Whether a guest will like a hammock: what is known of both, two by two."""

    def __init__(self, values: int = 3000, width: int = 48) -> None:
        super().__init__()
        self.alone = nn.Embedding(values, 1)
        self.pairs = nn.Embedding(values, width)
        self.deep = nn.Sequential(nn.Linear(12 * width, 192), nn.ReLU(), nn.Linear(192, 1))

    def forward(self, known: Tensor) -> Tensor:
        x = self.pairs(known)
        both = 0.5 * (x.sum(1).square() - x.square().sum(1)).sum(1)
        return self.alone(known).sum((1, 2)) + both + self.deep(x.flatten(1))[:, 0]


def stays(count: int = 6000) -> TensorDataset:
    """Return what is known of random guests and hammocks, and whether they were liked."""
    return TensorDataset(torch.randint(3000, (count, 12)), torch.randint(2, (count,)).float())


def guests(count: int = 30_000) -> dict[str, dict[str, Any]]:
    """Return a book of guests, as a file of JSON would be read."""
    return {
        f"guest {number}": {"nights": [number % 7, number % 11], "from": {"town": number % 90}}
        for number in range(count)
    }


# Pulleys


class Wheel:
    """A wheel of a pulley, with the ropes that run over it."""

    def __init__(self, number: int) -> None:
        self.number, self.ropes = number, [number % 13, number % 17]
        self.next: Wheel | None = None


def blocks(count: int = 60_000) -> list[Wheel]:
    """Return wheels, each with the next one on its rope."""
    wheels = [Wheel(number) for number in range(count)]
    for wheel in wheels:
        wheel.next = wheels[(wheel.number * 7 + 1) % count]
    return wheels


class Pulleys(Dataset[Item]):
    """Ropes over six wheels each: what the wheels are like, and what load the ropes bear."""

    def __init__(self, tidied: bool, count: int = 2000) -> None:
        self.tidied, self.wheels, self.asked = tidied, blocks(), 0
        self.like, self.bear = torch.randn(len(self.wheels), 20), torch.randn(count)

    def __len__(self) -> int:
        return len(self.bear)

    def __getitems__(self, numbers: list[int]) -> list[Item]:
        found = [(self.like[self.over(number)], self.bear[number]) for number in numbers]
        self.asked += 1
        if self.tidied and self.asked % 10 == 0:
            gc.collect()
        return found

    def over(self, number: int) -> list[int]:
        """Return the wheels that a rope runs over."""
        wheel: Wheel | None = self.wheels[number * 29]
        passed = []
        for _ in range(6):
            assert wheel
            passed.append(wheel.number)
            wheel = wheel.next
        return passed


class Pulley(nn.Module):
    """What load a rope bears: each wheel tells the next one."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.like = nn.Linear(20, width)
        self.tells = nn.Linear(2 * width, width)
        self.bears = nn.Linear(width, 1)

    def forward(self, wheels: Tensor) -> Tensor:
        x = self.like(wheels)
        for _ in range(4):
            x = self.tells(torch.cat([x, x.roll(1, 1)], 2)).tanh() + x
        return self.bears(x.mean(1))[:, 0]
