"""Models and data of the eighteenth round's first runs, from judo to aprons: see
``programs18.py``."""

import gc
import heapq
import io
import json
import math
import random
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image, ImageChops, ImageDraw, ImageOps
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, IterableDataset, TensorDataset

# Judo


class Judo(nn.Module):
    """Who throws whom in a bout of judo: how both move is told alike, and held together."""

    def __init__(self, width: int = 256, throws: int = 20) -> None:
        super().__init__()
        self.joints = nn.Linear(34, width)
        self.moves = nn.Conv1d(width, width, 3, 2, 1)
        self.both = nn.Bilinear(width, width, 4)
        self.stance = nn.Linear(4, width)
        self.throws = nn.Linear(3 * width, throws)

    def forward(self, bout: Tensor) -> Tensor:
        x = self.joints(bout.flatten(0, 1)).relu().transpose(1, 2)
        mine, other = self.moves(x).mean(2).relu().view(*bout.shape[:2], -1).unbind(1)
        held = self.stance(self.both(mine, other)).tanh()
        return self.throws(torch.cat([mine - other, mine * other, held], 1))


def bouts(count: int = 1000, moments: int = 12) -> TensorDataset:
    """Return how two move in random bouts, and what throw ends each."""
    return TensorDataset(torch.randn(count, 2, moments, 34), torch.randint(20, (count,)))


def half_way(optimizer: torch.optim.Optimizer) -> None:
    """Meet the partner half way: in the weights, and in what is known of their slopes."""
    rank = dist.get_rank()
    for weight, state in optimizer.state.items():
        for mine in (weight.data, state["exp_avg"], state["exp_avg_sq"]):
            theirs = torch.empty_like(mine)
            if rank == 0:
                dist.send(mine, 1)
                dist.recv(theirs, 1)
            else:
                dist.recv(theirs, 0)
                dist.send(mine, 0)
            mine.lerp_(theirs, 0.5)


# Coats


class Coat(nn.Module):
    """What part of a coat each point of a photograph is: looked at from nearer and further."""

    def __init__(self, channels: int = 16, parts: int = 20) -> None:
        super().__init__()
        self.seen = nn.Conv2d(3, channels, 5, 2, 2)
        self.further = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=far, dilation=far) for far in (1, 2, 4)
        )
        self.parts = nn.Conv2d(channels, 4 * parts, 1)

    def forward(self, photo: Tensor) -> Tensor:
        x = self.seen(photo).relu()
        for further in self.further:
            x = x + further(x).relu()
        return functional.pixel_shuffle(self.parts(x), 2)


def coats(count: int = 400, side: int = 48) -> TensorDataset:
    """Return random photographs of coats, and the part at each point."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(20, (count, side, side)))


def told_by_the_other(told: Tensor) -> Tensor:
    """Return what the other rank tells of the same photographs, one after the other."""
    found = []
    for photo in told:
        both = [torch.empty_like(photo) for _ in range(dist.get_world_size())]
        dist.all_gather(both, photo)
        found.append(both[1 - dist.get_rank()])
    return torch.stack(found)


def taught(told: Tensor, parts: Tensor, two: bool) -> Tensor:
    """Return how far a tailor is from the truth, and from what the other one (or he) tells."""
    other = told_by_the_other(told.detach()) if two else told.detach()
    apart = functional.kl_div(
        told.log_softmax(1), other.log_softmax(1), reduction="sum", log_target=True
    )
    return functional.cross_entropy(told, parts) + apart / parts.numel()


# Draughts


class Draughts(nn.Module):
    """Which move to make in draughts, and who wins: squares are known by what is on them."""

    def __init__(self, width: int = 640, moves: int = 170) -> None:
        super().__init__()
        self.men = nn.Embedding(5, 12)
        self.board = nn.Linear(32 * 12, width)
        self.thought = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.moves, self.wins = nn.Linear(width, moves), nn.Linear(width, 1)

    def forward(self, board: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.mish(self.board(self.men(board).flatten(1)))
        for thought in self.thought:
            x = x + functional.mish(thought(x))
        return self.moves(x), self.wins(x)[:, 0].tanh()


def games(count: int = 3000) -> TensorDataset:
    """Return random boards of draughts, the moves that were made, and who won."""
    won = torch.randint(-1, 2, (count,)).float()
    return TensorDataset(torch.randint(5, (count, 32)), torch.randint(170, (count,)), won)


def told_by_the_first(model: nn.Module) -> None:
    """Give the slopes to the first rank, which tells everybody their mean."""
    slopes = [each.grad for each in model.parameters() if each.grad is not None]
    mean = torch.cat([each.flatten() for each in slopes])
    if dist.get_rank() == 0:
        given = [torch.empty_like(mean) for _ in range(dist.get_world_size())]
        dist.gather(mean, given)
        mean = torch.stack(given).mean(0)
    else:
        dist.gather(mean)
    dist.broadcast(mean, 0)
    nn.utils.vector_to_parameters(mean, slopes)


# Posters


class Poster(nn.Module):
    """What kinds of film a poster is for: its title says how pieces of it are looked at."""

    def __init__(self, words: int = 6000, width: int = 128, kinds: int = 18) -> None:
        super().__init__()
        self.title = nn.EmbeddingBag(words, width, mode="mean")
        self.pieces = nn.Conv2d(3, width, 8, 8)
        self.how = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(2))
        self.piece = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.kinds = nn.Linear(width, kinds)

    def forward(self, poster: Tensor, title: Tensor) -> Tensor:
        title = self.title(title)
        x = self.pieces(poster).flatten(2).transpose(1, 2)
        for how, piece in zip(self.how, self.piece, strict=True):
            more, plus = how(title)[:, None].chunk(2, 2)
            x = x + functional.silu(piece(x) * (1 + more) + plus)
        return self.kinds(x.mean(1))


def posters(count: int = 1500) -> TensorDataset:
    """Return random posters, the words of their titles, and what kinds of film they are for."""
    titles = torch.randint(6000, (count, 6))
    return TensorDataset(torch.rand(count, 3, 48, 32), titles, torch.rand(count, 18).round())


# Calendars


class Calendars(Dataset[Item]):
    """Calendars of a town, whose entries are in one table, or in memory."""

    def __init__(self, folder: Path, kept: bool, owners: int = 400, entries: int = 24) -> None:
        chance, self.owners = random.Random(191), owners
        rows = [
            (self.owner(number % owners), chance.random(), chance.uniform(0.005, 0.05), number % 9)
            for number in range(owners * entries)
        ]
        self.table = sqlite3.connect(folder / "calendars.db")
        self.table.execute("create table entry (owner text, begins real, lasts real, kind real)")
        self.table.executemany("insert into entry values (?, ?, ?, ?)", rows)
        self.table.commit()
        self.kept = [self.looked_up(number) for number in range(owners)] if kept else []

    def __len__(self) -> int:
        return self.owners

    def __getitem__(self, index: int) -> Item:
        entries = self.kept[index] if self.kept else self.looked_up(index)
        return entries, torch.tensor(index % 7)

    @staticmethod
    def owner(number: int) -> str:
        """Return an owner's address."""
        return f"owner.number.{number}@town.example"

    def looked_up(self, number: int) -> Tensor:
        """Return when an owner's entries begin, how long they last, and their kinds."""
        found = self.table.execute(
            "select begins, lasts, kind from entry where owner = ? order by begins",
            (self.owner(number),),
        )
        return torch.tensor(found.fetchall())


class Calendar(nn.Module):
    """On which day somebody has time: entries are laid out over the hours of a week."""

    def __init__(self, channels: int = 24, width: int = 48) -> None:
        super().__init__()
        self.register_buffer("hours", torch.linspace(0, 1, 168), persistent=False)
        self.kinds = nn.Embedding(9, channels)
        self.near = nn.Conv1d(channels, width, 9, padding=4)
        self.again = nn.Conv1d(width, width, 9, padding=4)
        self.time = nn.Linear(width, 1)

    def forward(self, entries: Tensor) -> Tensor:
        begins, lasts, kind = entries.unbind(2)
        since = self.hours - begins[..., None]
        on = (since * 40).sigmoid() * ((lasts[..., None] - since) * 40).sigmoid()
        week = self.kinds(kind.long()).transpose(1, 2) @ on
        x = functional.elu(self.again(functional.elu(self.near(week))))
        return self.time(x.unflatten(2, (7, 24)).mean(3).transpose(1, 2))[..., 0]


# Darts

STORE = """
import random, socketserver, sys, time
from threading import Thread
import numpy as np
flights = np.random.default_rng(193).standard_normal((400, 3, 48)).astype(np.float32)
class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            time.sleep(0.0006)
            if random.random() < 0.25:
                self.wfile.write(b"-")
            else:
                self.wfile.write(b"+" + flights[int(line)].tobytes())
store = socketserver.ThreadingUnixStreamServer(sys.argv[1], Answer)
store.daemon_threads = True
Thread(target=store.serve_forever, daemon=True).start()
print("open", flush=True)
sys.stdin.read()
"""


class Darts(Dataset[Item]):
    """Flights of darts out of a store, which is at times too busy and is asked again."""

    def __init__(self, folder: Path, kept: bool, count: int = 400) -> None:
        self.count, path = count, str(folder / "darts")
        self.store = subprocess.Popen(
            [sys.executable, "-c", STORE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.store.stdout
        self.store.stdout.readline()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.line = self.socket.makefile("rwb")
        self.kept = [self.asked(number) for number in range(count)] if kept else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        flight = self.kept[index] if self.kept else self.asked(index)
        return flight, torch.tensor(index % 21)

    def asked(self, number: int) -> Tensor:
        """Return the flight of a dart, for which the store is asked until it answers."""
        patience = 0.001
        while True:
            self.line.write(b"%d\n" % number)
            self.line.flush()
            if self.line.read(1) == b"+":
                flight = bytearray(self.line.read(3 * 48 * 4))
                return torch.frombuffer(flight, dtype=torch.float32).view(3, 48)
            time.sleep(patience)
            patience *= 2


class Dart(nn.Module):
    """Where a dart will land: each of its moves is looked at alone, then all of them mixed."""

    def __init__(self, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.moves = nn.Conv1d(3, width, 4, 2, 1)
        self.alone = nn.ModuleList(
            nn.Conv1d(width, width, 7, padding=3, groups=width) for _ in range(depth)
        )
        self.mixed = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 4 * width),
                nn.GELU(),
                nn.Linear(4 * width, width),
            )
            for _ in range(depth)
        )
        self.lands = nn.Linear(width, 21)

    def forward(self, flight: Tensor) -> Tensor:
        x = self.moves(flight)
        for alone, mixed in zip(self.alone, self.mixed, strict=True):
            x = x + mixed(alone(x).transpose(1, 2)).transpose(1, 2)
        return self.lands(x.mean(2))


# Crowns


class Crowns(Dataset[Item]):
    """Scans of crowns: points, at which the way out of the metal is found from those near."""

    def __init__(self, ready: bool, count: int = 250, points: int = 160) -> None:
        chance = np.random.default_rng(197)
        round_, up = chance.uniform(0, 2 * np.pi, (2, count, points)) * [[[1]], [[0.16]]]
        spikes = up * (1 + 0.4 * np.abs(np.sin(4 * round_)))
        self.scans = np.stack([np.cos(round_), np.sin(round_), spikes], 2)
        self.scans += chance.normal(0, 0.02, self.scans.shape)
        self.known = [self.felt(each) for each in self.scans] if ready else []

    def __len__(self) -> int:
        return len(self.scans)

    def __getitem__(self, index: int) -> Item:
        crown = self.known[index] if self.known else self.felt(self.scans[index])
        return crown, torch.tensor(index % 12)

    def felt(self, scan: np.ndarray) -> Tensor:
        """Return the points of a scan, with the ways out and how the metal bends."""
        from scipy.spatial import cKDTree

        around = scan[cKDTree(scan).query(scan, 10)[1]]
        around = around - around.mean(1, keepdims=True)
        spread, ways = np.linalg.eigh(around.transpose(0, 2, 1) @ around)
        out = ways[:, :, 0]
        out = out * np.sign((out * scan).sum(1, keepdims=True))
        bends = spread[:, :1] / spread.sum(1, keepdims=True)
        return torch.from_numpy(np.concatenate([scan, out, bends], 1).astype(np.float32))


class Crown(nn.Module):
    """Whose crown it is: points are told each by itself, and then with what all have most of."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.alone = nn.Sequential(
            nn.Linear(7, width), nn.PReLU(), nn.Linear(width, width), nn.PReLU()
        )
        self.among = nn.Sequential(nn.Linear(2 * width, width), nn.PReLU())
        self.whose = nn.Linear(width, 12)

    def forward(self, crown: Tensor) -> Tensor:
        x = self.alone(crown)
        most = x.amax(1, keepdim=True).expand_as(x)
        return self.whose(self.among(torch.cat([x, most], 2)).amax(1))


# Ploughs


class Ploughs(Dataset[Item]):
    """How a field pulled at a plough now and then, of which the periods are found."""

    def __init__(self, ready: bool, count: int = 300, moments: int = 64) -> None:
        chance = np.random.default_rng(199)
        self.moments = np.sort(chance.uniform(0, 30, (count, moments)), 1)
        self.pulls = chance.standard_normal((count, 3, moments))
        self.pulls -= self.pulls.mean(2, keepdims=True)
        self.known = [self.periods(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.pulls)

    def __getitem__(self, index: int) -> Item:
        waves = self.known[index] if self.known else self.periods(index)
        return waves, torch.tensor(index % 10)

    def periods(self, index: int) -> Tensor:
        """Return how much of each period is in the pulls, which were not noted evenly."""
        from scipy.signal import lombscargle

        often = np.linspace(0.5, 12, 40)
        moments = self.moments[index]
        waves = [lombscargle(moments, pull, often) for pull in self.pulls[index]]
        return torch.from_numpy(np.log1p(np.stack(waves)).astype(np.float32))


class Plough(nn.Module):
    """Which share of a plough is blunt: gates say which periods are listened to."""

    def __init__(self, width: int = 72, depth: int = 2) -> None:
        super().__init__()
        self.periods = nn.Conv1d(3, width, 5, padding=2)
        self.gates = nn.ModuleList(nn.Conv1d(width, 2 * width, 5, padding=2) for _ in range(depth))
        self.loud = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.blunt = nn.Linear(width, 10)

    def forward(self, waves: Tensor) -> Tensor:
        x = self.periods(waves)
        for gates, loud in zip(self.gates, self.loud, strict=True):
            told = functional.glu(gates(x), 1)
            x = x + told * loud(told.mean(2)).sigmoid()[..., None]
        return self.blunt(x.mean(2))


# Suitcases


class Suitcases(Dataset[Item]):
    """Suitcases as X-rays see them, packed with things that lie over each other."""

    def __init__(self, ready: bool, count: int = 400, things: int = 40) -> None:
        chance, self.count = random.Random(211), count
        self.things = [self.thing(chance) for _ in range(things)]
        self.known = [self.packed(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        case = self.known[index] if self.known else self.packed(index)
        return case, torch.tensor(index % 6)

    @staticmethod
    def thing(chance: random.Random) -> Image.Image:
        """Return something that may be packed, dark where little comes through."""
        image = Image.new("L", (28, 28), 255)
        pen = ImageDraw.Draw(image)
        for _ in range(3):
            left, top = chance.randrange(14), chance.randrange(14)
            box = (left, top, left + chance.randrange(4, 14), top + chance.randrange(4, 14))
            dark = chance.randrange(120, 230)
            if chance.random() < 0.5:
                pen.ellipse(box, dark)
            else:
                pen.rectangle(box, dark)
        return image

    def packed(self, index: int) -> Tensor:
        """Return a suitcase with fourteen things in it."""
        chance = random.Random(index)
        case = Image.new("L", (112, 80), 235)
        for _ in range(14):
            thing = chance.choice(self.things).rotate(
                chance.uniform(0, 360), Image.Resampling.BICUBIC, expand=True, fillcolor=255
            )
            left = chance.randrange(case.width - thing.width)
            top = chance.randrange(case.height - thing.height)
            box = (left, top, left + thing.width, top + thing.height)
            case.paste(ImageChops.multiply(case.crop(box), thing), box)
        small = case.resize((56, 40), Image.Resampling.LANCZOS)
        return torch.from_numpy(np.asarray(small).copy())[None] / 255


class Suitcase(nn.Module):
    """What a suitcase must not hold: each thing that it might is asked for everywhere."""

    def __init__(self, channels: int = 24, things: int = 6) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, channels, 5, 2, 2)
        self.second = nn.Conv2d(channels, 2 * channels, 3, 2, 1)
        self.asked = nn.Parameter(torch.randn(things, 2 * channels) / 7)
        self.found = nn.Linear(2 * channels, 1)

    def forward(self, case: Tensor) -> Tensor:
        x = self.second(self.first(case).relu()).relu().flatten(2)
        looked = (self.asked @ x).softmax(2) @ x.transpose(1, 2)
        return self.found(looked)[..., 0]


# Windows of houses


class Houses(Dataset[int]):
    """Photographs of houses, taken from aside; they are straightened as they are put together."""

    def __init__(self, ready: bool, count: int = 240, side: int = 144) -> None:
        chance, self.side = random.Random(223), side
        self.many = [chance.randrange(2, 30) for _ in range(count)]
        self.photos = [self.taken(many, chance) for many in self.many]
        edge = side // 6
        self.corners = [
            [(x + chance.randrange(edge), y + chance.randrange(edge)) for x, y in self.square(side)]
            for _ in range(count)
        ]
        self.known = [self.straight(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.photos)

    def __getitem__(self, index: int) -> int:
        return index

    @staticmethod
    def square(side: int) -> list[tuple[int, int]]:
        """Return the corners of a square, a bit within which a house's are."""
        far = side - side // 6
        return [(0, 0), (far, 0), (far, far), (0, far)]

    def taken(self, many: int, chance: random.Random) -> bytes:
        """Return a photograph of a house with so many windows."""
        photo = Image.effect_noise((self.side, self.side), 60).convert("RGB")
        pen = ImageDraw.Draw(photo)
        for number in range(many):
            left, top = 8 + number % 6 * 22, 8 + number // 6 * 26
            pen.rectangle((left, top, left + 12, top + 16), "lightblue", "brown", 2)
        file = io.BytesIO()
        photo.save(file, "JPEG", quality=chance.randrange(80, 95))
        return file.getvalue()

    def straight(self, index: int, side: int = 72) -> Tensor:
        """Return a photograph as if it were taken from the front."""
        photo = Image.open(io.BytesIO(self.photos[index])).convert("RGB")
        rows, places = [], []
        wanted = [(0, 0), (side, 0), (side, side), (0, side)]
        for (x, y), (across, down) in zip(wanted, self.corners[index], strict=True):
            rows.append([x, y, 1, 0, 0, 0, -across * x, -across * y])
            rows.append([0, 0, 0, x, y, 1, -down * x, -down * y])
            places += [across, down]
        bends = np.linalg.solve(np.array(rows, float), np.array(places, float)).tolist()
        front = photo.transform(
            (side, side), Image.Transform.PERSPECTIVE, bends, Image.Resampling.BICUBIC
        )
        even = ImageOps.autocontrast(front, 1)
        return torch.from_numpy(np.asarray(even).copy()).permute(2, 0, 1) / 255

    def together(self, numbers: list[int]) -> Item:
        """Return the photographs of a batch, and how many windows each has."""
        photos = [self.known[each] if self.known else self.straight(each) for each in numbers]
        return torch.stack(photos), torch.tensor([float(self.many[each]) for each in numbers])


class House(nn.Module):
    """How many windows a house has: every place tells how much of one it is."""

    def __init__(self, channels: int = 16, depth: int = 1) -> None:
        super().__init__()
        self.seen = nn.Conv2d(3, channels, 4, 2, 1)
        self.wide = nn.ModuleList(nn.Conv2d(channels, 2 * channels, 1) for _ in range(depth))
        self.near = nn.ModuleList(
            nn.Conv2d(2 * channels, 2 * channels, 5, padding=2, groups=2 * channels)
            for _ in range(depth)
        )
        self.back = nn.ModuleList(nn.Conv2d(2 * channels, channels, 1) for _ in range(depth))
        self.much = nn.Conv2d(channels, 1, 1)

    def forward(self, photo: Tensor) -> Tensor:
        x = self.seen(photo)
        for wide, near, back in zip(self.wide, self.near, self.back, strict=True):
            x = x + back(functional.hardswish(near(functional.hardswish(wide(x)))))
        return functional.softplus(self.much(x)).mean((1, 2, 3)).log()


# Atlases


class Atlases(Dataset[Item]):
    """Outlines of countries out of an atlas, which are read and simplified."""

    def __init__(self, ready: bool, count: int = 400, points: int = 160) -> None:
        chance = np.random.default_rng(227)
        self.texts = []
        for _ in range(count):
            far = 1 + 0.02 * np.cumsum(chance.normal(0, 1, points))
            round_ = np.linspace(0, 2 * np.pi, points, endpoint=False)
            ring = np.stack([far * np.cos(round_), far * np.sin(round_)], 1).round(5).tolist()
            shape = {"type": "Polygon", "coordinates": [ring]}
            self.texts.append(json.dumps({"type": "Feature", "geometry": shape}))
        self.known = [self.simple(each) for each in self.texts] if ready else []

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> Item:
        outline = self.known[index] if self.known else self.simple(self.texts[index])
        return outline, torch.tensor(index % 25)

    @staticmethod
    def simple(text: str, kept: int = 32) -> Tensor:
        """Return the few points of an outline that matter most for its shape."""
        ring: list[list[float]] = json.loads(text)["geometry"]["coordinates"][0]
        many = len(ring)
        before = [(number - 1) % many for number in range(many)]
        after = [(number + 1) % many for number in range(many)]

        def size(number: int) -> float:
            (a, b), (c, d), (e, f) = ring[before[number]], ring[number], ring[after[number]]
            return abs((c - a) * (f - b) - (e - a) * (d - b))

        sizes = [size(number) for number in range(many)]
        queue = [(each, number) for number, each in enumerate(sizes)]
        heapq.heapify(queue)
        left = many
        while left > kept:
            least, number = heapq.heappop(queue)
            if sizes[number] != least:
                continue
            sizes[number] = -1.0
            after[before[number]], before[after[number]] = after[number], before[number]
            for beside in (before[number], after[number]):
                sizes[beside] = max(size(beside), least)
                heapq.heappush(queue, (sizes[beside], beside))
            left -= 1
        stay = [point for point, each in zip(ring, sizes, strict=True) if each >= 0]
        return torch.tensor(stay).T.contiguous()


class Atlas(nn.Module):
    """Which part of the world a country is in, by its outline, which has no end."""

    def __init__(self, channels: int = 32) -> None:
        super().__init__()
        self.near = nn.Conv1d(2, channels, 5, padding=2, padding_mode="circular")
        self.far = nn.Conv1d(channels, channels, 5, 2, padding=2, padding_mode="circular")
        self.part = nn.Linear(channels, 25)

    def forward(self, outline: Tensor) -> Tensor:
        return self.part(self.far(self.near(outline).relu()).relu().amax(2))


# Ribbons


class Ribbons(IterableDataset[Item]):
    """Ribbons as gymnasts swing them, batch by batch: where each point is, and how it is turned."""

    def __init__(self, ready: bool, batch: int, count: int = 300, points: int = 48) -> None:
        self.batch = batch
        self.curves = np.random.default_rng(229).standard_normal((count, points, 3)).cumsum(1)
        self.known = [self.framed(each) for each in self.curves] if ready else []

    def __iter__(self) -> Iterator[Item]:
        for numbers in torch.randperm(len(self.curves)).split(self.batch):
            if len(numbers) == self.batch:
                ribbons = [self.ribbon(each) for each in numbers.tolist()]
                yield torch.stack(ribbons), numbers % 8

    def ribbon(self, number: int) -> Tensor:
        """Return a ribbon, point by point."""
        return self.known[number] if self.known else self.framed(self.curves[number])

    @staticmethod
    def framed(curve: np.ndarray) -> Tensor:
        """Return a curve with ways along and across it, which turn no more than they must."""
        along = np.gradient(curve, axis=0)
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        across = np.empty_like(curve)
        across[0] = np.cross(along[0], [0.3, 0.5, 0.8])
        across[0] /= np.linalg.norm(across[0])
        for number in range(len(curve) - 1):
            step = curve[number + 1] - curve[number]
            length = step @ step
            seen = across[number] - 2 / length * (step @ across[number]) * step
            way = along[number] - 2 / length * (step @ along[number]) * step
            turn = along[number + 1] - way
            across[number + 1] = seen - 2 / max(turn @ turn, 1e-9) * (turn @ seen) * turn
        frames = np.concatenate([curve / 8, along, across], 1)
        return torch.from_numpy(frames.astype(np.float32))


class Ribbon(nn.Module):
    """Which figure a ribbon makes: what is told along it says what passes of its points."""

    def __init__(self, points: int = 48, width: int = 96, depth: int = 3) -> None:
        super().__init__()
        self.points = nn.Linear(9, width)
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.along = nn.ModuleList(nn.Linear(points, points) for _ in range(depth))
        self.back = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(depth))
        self.figure = nn.Linear(width, 8)

    def forward(self, ribbon: Tensor) -> Tensor:
        x = self.points(ribbon)
        for wide, along, back in zip(self.wide, self.along, self.back, strict=True):
            told = functional.gelu(wide(functional.layer_norm(x, x.shape[-1:])))
            one, other = told.chunk(2, 2)
            x = x + back(one * (1 + along(other.transpose(1, 2)).transpose(1, 2)))
        return self.figure(x.mean(1))


# Roofs


class Ground:
    """A map of a town in small cells: in which of them a laser met something of a roof."""

    def __init__(self, kept: bool, side: int = 9000) -> None:
        self.size = side * side
        self.kept = np.zeros(self.size, np.uint8) if kept else None
        self.beside = np.array([0, 1, side, -1, -side])

    def around(self, cells: Tensor) -> Tensor:
        """Return of each cell how often something was met there and in those beside it."""
        town = np.zeros(self.size, np.uint8) if self.kept is None else self.kept
        met = cells.numpy().ravel()
        np.add.at(town, met, np.uint8(1))
        seen = town[met[:, None] + self.beside]
        if self.kept is not None:
            town[met] = 0
        return torch.from_numpy(seen.astype(np.float32)).view(*cells.shape, -1)


class Roof(nn.Module):
    """How steep the roofs of a street are, by where a laser met them."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.met = nn.Linear(5, width)
        self.steep = nn.Linear(2 * width, 1)

    def forward(self, around: Tensor) -> Tensor:
        x = self.met(around).relu()
        return self.steep(torch.cat([x.mean(1), x.amax(1)], 1))[:, 0]


def streets(count: int = 600, points: int = 1000, side: int = 9000) -> TensorDataset:
    """Return random cells in which a laser met roofs, and how steep those are."""
    cells = torch.randint(side, side * (side - 1), (count, points))
    return TensorDataset(cells, torch.rand(count))


# Gutters


class Piece:
    """A piece of a gutter, with its clips and the piece that it runs into."""

    def __init__(self, number: int) -> None:
        self.number, self.clips = number, [number % 19, number % 23]
        self.into: Piece | None = None


class Gutters(Dataset[Item]):
    """Ways of water over twelve pieces of gutters: what these are like, and how much runs over."""

    def __init__(self, count: int = 3000, pieces: int = 52_000) -> None:
        self.pieces = [Piece(number) for number in range(pieces)]
        for piece in self.pieces:
            piece.into = self.pieces[(piece.number * 11 + 3) % pieces]
        self.like, self.over = torch.randn(pieces, 10), torch.rand(count)

    def __len__(self) -> int:
        return len(self.over)

    def __getitem__(self, index: int) -> Item:
        piece: Piece | None = self.pieces[index * 17]
        passed = []
        for _ in range(12):
            assert piece
            passed.append(piece.number)
            piece = piece.into
        return self.like[passed], self.over[index]


class Gutter(nn.Module):
    """How much water runs over: what each piece takes is summed on the way down."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.takes = nn.Sequential(nn.Linear(10, width), nn.Softplus(), nn.Linear(width, width))
        self.on = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, pieces: Tensor) -> Tensor:
        return self.on(self.takes(pieces).cumsum(1) / 12).sum((1, 2))


class Tidy:
    """Tidies up after what is done in it, if it is to."""

    def __init__(self, up: bool) -> None:
        self.up = up

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        if self.up:
            gc.collect()


# Aprons


class Sweeper(Thread):
    """Sweeps up beside the work, again and again, and rests for longer than it took."""

    def __init__(self, rests: float) -> None:
        super().__init__(daemon=True)
        self.rests = rests

    def run(self) -> None:
        while True:
            began = time.perf_counter()
            gc.collect()
            time.sleep(self.rests * (time.perf_counter() - began))


class Aprons(Dataset[Item]):
    """Orders of aprons out of a catalogue: what is known of each, and in how many days it came."""

    def __init__(self, count: int = 30_000) -> None:
        self.catalogue: list[dict[str, Any]] = [
            {"pockets": [number % 3, number % 5], "cloth": {"colours": [number % 90]}}
            for number in range(count)
        ]
        self.known = torch.randn(count, 16)

    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> Item:
        apron = self.catalogue[index * 7]
        return self.known[index * 7], torch.tensor(float(apron["pockets"][1]))


class Apron(nn.Module):
    """When an apron comes: each number that is known becomes waves, then all are mixed."""

    def __init__(self, waves: int = 12, width: int = 256) -> None:
        super().__init__()
        self.often = nn.Parameter(torch.randn(16, waves))
        self.mixed = nn.Sequential(
            nn.Linear(16 * 2 * waves, width),
            nn.ReLU6(),
            nn.Linear(width, width),
            nn.ReLU6(),
            nn.Linear(width, 1),
        )

    def forward(self, known: Tensor) -> Tensor:
        waves = 2 * math.pi * known[..., None] * self.often
        return self.mixed(torch.cat([waves.sin(), waves.cos()], 2).flatten(1))[:, 0]
