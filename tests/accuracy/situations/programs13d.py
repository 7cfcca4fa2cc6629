"""Models and data of the thirteenth round's first runs, from masks to fireflies: see
``programs13.py``."""

import os
import socket
import subprocess
import sys
import tarfile
import urllib.request
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, TensorDataset

# Masks


class Carved(nn.Module):
    """What a point of a mask is like, beside what the whole mask is like."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mine, self.whole = nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.norm(x)
        return x + functional.mish(self.mine(seen) + self.whole(seen.amax(1, keepdim=True)))


class Mask(nn.Module):
    """Where a mask was carved, by points of its surface with their normals and colours."""

    def __init__(self, width: int = 96, depth: int = 3, places: int = 14) -> None:
        super().__init__()
        self.enter = nn.Linear(9, width)
        self.blocks = nn.ModuleList(Carved(width) for _ in range(depth))
        self.place = nn.Linear(width, places)

    def forward(self, points: Tensor) -> Tensor:
        x = self.enter(points)
        for block in self.blocks:
            x = block(x)
        return self.place(x.amax(1))


def masks(count: int = 900, points: int = 40) -> TensorDataset:
    """Return random points of masks, and where those were carved."""
    return TensorDataset(torch.randn(count, points, 9), torch.randint(14, (count,)))


# Magpies


class Turned(torch.autograd.Function):
    """Gives the other rank what it is to have: parts of the first dimension."""

    @staticmethod
    def forward(_context: Any, parts: Tensor) -> Tensor:
        return turned(parts)

    @staticmethod
    def backward(_context: Any, parts: Tensor) -> Tensor:
        return turned(parts)


def turned(parts: Tensor) -> Tensor:
    """Return the parts that are for this rank."""
    mine = list(parts.contiguous().unbind())
    theirs = [torch.empty_like(each) for each in mine]
    dist.all_to_all(theirs, mine)
    return torch.stack(theirs)


class Chatter(nn.Module):
    """A block that lets each moment of a recording look at all others."""

    def __init__(self, together: bool, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.swap = heads, Turned.apply if together else nn.Identity()
        self.asked, self.told = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        batch, moments, width = x.shape
        asked = self.asked(self.first(x)).view(batch, moments, 3, 2, self.heads // 2, -1)
        # half of the moments and all heads here become all moments and half of the heads
        asked = self.swap(asked.permute(3, 2, 0, 4, 1, 5)).permute(1, 2, 3, 0, 4, 5).flatten(3, 4)
        heard = functional.scaled_dot_product_attention(*asked.unbind())
        heard = self.swap(heard.unflatten(2, (2, moments)).permute(2, 0, 1, 3, 4))
        x = x + self.told(heard.permute(1, 3, 0, 2, 4).reshape(batch, moments, width))
        return x + self.narrow(functional.gelu(self.wide(self.second(x))))


class Magpie(nn.Module):
    """Which magpie chatters: each rank has half of the recording."""

    def __init__(self, together: bool, width: int = 64, depth: int = 2, birds: int = 25) -> None:
        super().__init__()
        self.enter = nn.Conv1d(32, width, 3, padding=1)
        self.blocks = nn.ModuleList(Chatter(together, width, 4) for _ in range(depth))
        self.bird = nn.Linear(width, birds)

    def forward(self, heard: Tensor) -> Tensor:
        x = self.enter(heard).mT
        for block in self.blocks:
            x = block(x)
        return self.bird(x.mean(1))


def chatters(count: int = 500, moments: int = 48) -> TensorDataset:
    """Return bands of random recordings, and who it was."""
    return TensorDataset(torch.randn(count, 32, moments), torch.randint(25, (count,)))


# Vinegar


class Vinegar(nn.Module):
    """How sour and how old a vinegar is, by how much light of each colour goes through it."""

    def __init__(self, width: int = 20, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, 11, 4, 5)
        self.slopes = nn.ModuleList(
            nn.Conv1d(width, width, 5, padding=2, groups=4) for _ in range(depth)
        )
        self.mixed = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(depth))
        self.told = nn.Sequential(nn.Linear(width * 32, 512), nn.PReLU(), nn.Linear(512, 2))

    def forward(self, light: Tensor) -> Tensor:
        x = self.enter(light)
        for slope, mixed in zip(self.slopes, self.mixed, strict=True):
            x = x + mixed(functional.softsign(slope(x)))
        return self.told(functional.avg_pool1d(x, 2).flatten(1))


def vinegars(count: int = 1500) -> TensorDataset:
    """Return random spectra of 256 colours, and two figures of the vinegar."""
    return TensorDataset(torch.randn(count, 1, 256), torch.rand(count, 2))


def mean_by_the_first(model: nn.Module) -> None:
    """Let the first rank have all gradients, take their mean and give it to all."""
    first, ranks = dist.get_rank() == 0, dist.get_world_size()
    for weight in model.parameters():
        found = weight.grad
        assert found is not None
        every = [torch.empty_like(found) for _ in range(ranks)] if first else None
        dist.gather(found, every)
        if every:
            found.copy_(torch.stack(every).mean(0))
        dist.broadcast(found, 0)


# Slugs


class Bed(Dataset[tuple[Tensor, Tensor]]):
    """The photographs of a bed of a garden in one night, and how much the slugs ate there."""

    def __init__(self, garden: int, count: int = 120, side: int = 40) -> None:
        nights = (2, 12)[garden]
        self.beds = torch.rand(count, nights, 3, side, side)
        self.eaten = torch.rand(count)

    def __len__(self) -> int:
        return len(self.beds)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.beds[index], self.eaten[index]


class Slug(nn.Module):
    """How much was eaten in a bed, by its photographs, of which some say more than others."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(3, width, 5, 2, 2),
            nn.Hardswish(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.Hardswish(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.Hardswish(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.heed = nn.Sequential(nn.Linear(8 * width, 32), nn.Tanh(), nn.Linear(32, 1))
        self.eaten = nn.Linear(8 * width, 1)

    def forward(self, bed: Tensor) -> Tensor:
        seen = self.seen(bed.flatten(0, 1)).unflatten(0, bed.shape[:2])
        return self.eaten((self.heed(seen).softmax(1) * seen).sum(1))[:, 0]


# Butterflies


class Wings(Dataset[Item]):
    """Scans of butterflies in one archive, which lies on a drive or in memory."""

    SIDE = 144

    def __init__(self, folder: Path, kept: bool, count: int = 500) -> None:
        chance = np.random.default_rng(41)
        self.path = folder / "wings.tar"
        with tarfile.open(self.path, "w") as made:
            for number in range(count):
                member = tarfile.TarInfo(f"wing-{number:04d}.raw")
                member.size = 3 * self.SIDE**2
                made.addfile(member, BytesIO(chance.bytes(member.size)))
        os.sync()
        with tarfile.open(self.path) as made:
            self.places = [(each.offset_data, each.size) for each in made.getmembers()]
        self.kept = self.path.read_bytes() if kept else b""

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> Item:
        start, size = self.places[index]
        raw = self.kept[start : start + size] if self.kept else self.member(start, size)
        scan = torch.frombuffer(bytearray(raw), dtype=torch.uint8)
        scan = scan.view(3, self.SIDE, self.SIDE)[:, ::3, ::3]
        return scan.float() / 255, torch.tensor(index % 18)

    def member(self, start: int, size: int) -> bytes:
        """Return a scan from the archive, of which no memory holds anything yet."""
        with self.path.open("rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            file.seek(start)
            return file.read(size)


class Butterfly(nn.Module):
    """Which butterfly it is: its left and its right are seen by the same eyes."""

    def __init__(self, width: int = 16, kinds: int = 18) -> None:
        super().__init__()
        self.eyes = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 4, 2, 1),
            nn.LeakyReLU(0.1),
            nn.Flatten(),
        )
        self.same = nn.Linear(width * 12 * 6, 64)
        self.kind = nn.Linear(128, kinds)

    def forward(self, scan: Tensor) -> Tensor:
        left, right = scan.chunk(2, 3)
        both = self.same(self.eyes(torch.cat([left, right.flip(3)])))
        one, other = both.chunk(2)
        return self.kind(torch.cat([one + other, (one - other).abs()], 1))


# Ginseng

SHELF = """
import os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
roots = os.urandom(6_400_000)
class Shelf(BaseHTTPRequestHandler):
    def do_GET(self):
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        part = roots[int(first):int(last) + 1]
        time.sleep(float(sys.argv[1]))
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)
    def log_message(self, *_):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Shelf)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever).start()
sys.stdin.read()  # ends with the training
os._exit(0)
"""
"""A shelf of the web with one large file, of which parts can be asked for."""


class Roots(Dataset[Item]):
    """How roots of ginseng bend X-rays: rows of one file that is elsewhere."""

    ROW = 80 * 80

    def __init__(self, ahead: bool, count: int = 600, away: float = 0.0005) -> None:
        self.shelf = subprocess.Popen(
            [sys.executable, "-c", SHELF, str(away)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.shelf.stdout
        self.address = f"http://127.0.0.1:{int(self.shelf.stdout.readline())}/roots.u8"
        self.years = torch.rand(count)
        self.known = [self.row(number) for number in range(count)] if ahead else []

    def __len__(self) -> int:
        return len(self.years)

    def __getitem__(self, index: int) -> Item:
        raw = self.known[index] if self.known else self.row(index)
        picture = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(1, 80, 80)
        return picture.float() / 128 - 1, self.years[index]

    def row(self, index: int) -> bytes:
        """Ask for a root's part of the file."""
        part = f"bytes={index * self.ROW}-{(index + 1) * self.ROW - 1}"
        asked = urllib.request.Request(self.address, headers={"Range": part})
        with urllib.request.urlopen(asked) as answer:
            return bytes(answer.read())


class Root(nn.Module):
    """How old a root is: what is seen at each size is weighed by all sizes."""

    def __init__(self, width: int = 12, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 7, 2, 3)
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth))
        self.squeezed = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.years = nn.Linear(width * depth, 1)

    def forward(self, picture: Tensor) -> Tensor:
        x, told = self.enter(picture), []
        for layer, squeezed in zip(self.layers, self.squeezed, strict=True):
            x = functional.softplus(layer(x))
            x = x * squeezed(x.mean((2, 3))).sigmoid()[..., None, None]
            told.append(x.mean((2, 3)))
            x = functional.avg_pool2d(x, 2)
        return self.years(torch.cat(told, 1))[:, 0]


# Peppers

PANTRY = """
import socket, struct, sys, time, os
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
answers = {b"bands": os.urandom(16 * 20 * 20), b"white": os.urandom(16), b"kind": b"\\x07"}
asking = server.accept()[0]
asking.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
with asking.makefile("rb") as keys:
    for key in keys:
        time.sleep(float(sys.argv[1]))
        answer = answers[key.rstrip().rpartition(b":")[2]]
        asking.sendall(struct.pack("<I", len(answer)) + answer)
"""
"""Holds values by their keys, at some distance."""


class Peppers(Dataset[Item]):
    """Peppers in sixteen colours of light: what was seen, the white beside it, and the kind."""

    def __init__(self, ahead: bool, count: int = 400, away: float = 0.001) -> None:
        self.pantry = subprocess.Popen(
            [sys.executable, "-c", PANTRY, str(away)], stdout=subprocess.PIPE, text=True
        )
        assert self.pantry.stdout
        self.link = socket.create_connection(("127.0.0.1", int(self.pantry.stdout.readline())))
        self.link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers = self.link.makefile("rb")
        self.count = count
        self.known = [self.pepper(number) for number in range(count)] if ahead else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        bands, white, kind = self.known[index] if self.known else self.pepper(index)
        seen = torch.frombuffer(bytearray(bands), dtype=torch.uint8).view(1, 16, 20, 20)
        light = torch.frombuffer(bytearray(white), dtype=torch.uint8).view(16, 1, 1)
        return seen.float() / (64.0 + light), torch.tensor((kind[0] + index) % 8)

    def pepper(self, index: int) -> tuple[bytes, bytes, bytes]:
        """Get all there is of a pepper."""
        return self.value(index, "bands"), self.value(index, "white"), self.value(index, "kind")

    def value(self, index: int, name: str) -> bytes:
        """Get the value of a key."""
        self.link.sendall(f"pepper:{index}:{name}\n".encode())
        size = int.from_bytes(self.answers.read(4), "little")
        return self.answers.read(size)


class Pepper(nn.Module):
    """What kind a pepper is: colours and places are looked at together."""

    def __init__(self, width: int = 6, kinds: int = 8) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(1, width, (5, 3, 3), 2, 1),
            nn.GroupNorm(3, width),
            nn.ELU(),
            nn.Conv3d(width, 2 * width, 3, 2, 1),
            nn.GroupNorm(3, 2 * width),
            nn.ELU(),
        )
        self.kind = nn.Linear(2 * width * 4 * 25, kinds)

    def forward(self, seen: Tensor) -> Tensor:
        return self.kind(self.layers(seen).flatten(1))


# Inkwells


class Inkwells(Dataset[Item]):
    """Inkwells as how far each point is from their edge, and which way the edge runs there."""

    def __init__(self, ready: bool, count: int = 300, side: int = 96) -> None:
        chance = np.random.default_rng(43)
        grey = chance.integers(0, 255, (count, side // 8, side // 8), np.uint8)
        self.grey = grey.repeat(8, 1).repeat(8, 2)
        self.known = [self.outlined(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.grey)

    def __getitem__(self, index: int) -> Item:
        drawn = self.known[index] if self.known else self.outlined(index)
        return drawn, torch.tensor(index % 11)

    def outlined(self, index: int) -> Tensor:
        """Return the three pictures of an inkwell that the model takes."""
        from scipy import ndimage

        smooth = ndimage.gaussian_filter(self.grey[index].astype(np.float32) / 255, 1.5)
        down, across = ndimage.sobel(smooth, 0), ndimage.sobel(smooth, 1)
        edge = np.hypot(down, across) > 0.4
        edge = ndimage.binary_opening(edge, iterations=1)
        far = ndimage.distance_transform_edt(~edge) / len(edge)
        drawn = np.stack([far, np.sin(np.arctan2(down, across)), smooth])
        return torch.from_numpy(drawn[:, ::2, ::2].astype(np.float32))


class Inkwell(nn.Module):
    """Whose workshop an inkwell is of: it is read in rings from its middle, and these in turn."""

    def __init__(self, width: int = 16, rings: int = 8, workshops: int = 11) -> None:
        super().__init__()
        self.rings = rings
        self.near = nn.Sequential(
            nn.Conv2d(3, width, 5, 2, 2),
            nn.Hardtanh(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.Hardtanh(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
        )
        self.turns = nn.GRU(2 * width, 48, batch_first=True)
        self.workshop = nn.Linear(48, workshops)
        side = torch.linspace(-1, 1, 24)
        self.order = nn.Buffer((side[:, None] ** 2 + side**2).flatten().argsort())

    def forward(self, drawn: Tensor) -> Tensor:
        points = self.near(drawn).flatten(2).mT[:, self.order]
        read, _ = self.turns(points.unflatten(1, (self.rings, -1)).mean(2))
        return self.workshop(read[:, -1])


# Toffee


class Toffee(Dataset[Item]):
    """What people say of toffees: how often each group of letters is in it, in 2048 drawers."""

    def __init__(self, ready: bool, count: int = 2000, length: int = 260) -> None:
        chance = np.random.default_rng(47)
        letters = np.frombuffer(b"abcdefghijklmnoprstuvwy    ", np.uint8)
        self.said = [chance.choice(letters, length).tobytes().decode() for _ in range(count)]
        self.known = [self.counted(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.said)

    def __getitem__(self, index: int) -> Item:
        found = self.known[index] if self.known else self.counted(index)
        return found, torch.tensor(index % 5)

    def counted(self, index: int) -> Tensor:
        """Return the counts of the groups of three and four letters of each word."""
        found = np.zeros(2048, np.float32)
        for word in self.said[index].split():
            told = f"<{word}>"
            for length in (3, 4):
                for start in range(len(told) - length + 1):
                    found[zlib.crc32(told[start : start + length].encode()) % 2048] += 1.0
        return torch.from_numpy(np.log1p(found))


class Tasted(nn.Module):
    """How a toffee was liked: layers with a way past each of them that the text opens."""

    def __init__(self, width: int = 256, depth: int = 3, likings: int = 5) -> None:
        super().__init__()
        self.enter = nn.Linear(2048, width)
        self.layers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.liking = nn.Linear(width, likings)

    def forward(self, found: Tensor) -> Tensor:
        x = self.enter(found).tanh()
        for layer in self.layers:
            made, past = layer(x).chunk(2, 1)
            x = torch.lerp(x, made.tanh(), past.sigmoid())
        return self.liking(x)


# Sirens


class Sirens(Dataset[Item]):
    """Sirens as they sound in a street, among what else is heard, in 40 bands."""

    def __init__(self, ready: bool, count: int = 240, length: int = 14_000) -> None:
        chance = np.random.default_rng(53)
        times = np.arange(length) / 16_000
        pitch = chance.uniform(400, 900, (count, 1)) + 300 * np.sin(
            2 * np.pi * chance.uniform(0.3, 4, (count, 1)) * times
        )
        self.sirens = np.sin(2 * np.pi * np.cumsum(pitch, 1) / 16_000).astype(np.float32)
        fading = np.exp(-np.arange(4_000) / 1_000)
        self.streets = (chance.standard_normal((12, 4_000)) * fading).astype(np.float32)
        self.noises = chance.standard_normal((12, length)).astype(np.float32)
        edges = 700 * (10 ** (np.linspace(0, 2840, 42) / 2595) - 1)
        lines = np.linspace(0, 8_000, 129)[:, None]
        up = (lines - edges[:-2]) / np.diff(edges)[:-1]
        down = (edges[2:] - lines) / np.diff(edges)[1:]
        self.bands = np.clip(np.minimum(up, down), 0, None).astype(np.float32)
        self.known = [self.heard(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.sirens)

    def __getitem__(self, index: int) -> Item:
        heard = self.known[index] if self.known else self.heard(index)
        return heard, torch.tensor(index % 6)

    def heard(self, index: int) -> Tensor:
        """Return the bands of a siren in some street."""
        from scipy.signal import fftconvolve, stft

        street, noise = self.streets[index % 12], self.noises[index * 7 % 12]
        sound = fftconvolve(self.sirens[index], street)[: len(noise)]
        loud = np.sqrt(np.mean(sound**2) / np.mean(noise**2))
        _, _, waves = stft(sound + 0.3 * loud * noise, 16_000, nperseg=256, noverlap=192)
        bands = np.log(self.bands.T @ np.abs(waves) ** 2 + 1e-6)
        return torch.from_numpy(bands[:, ::5].astype(np.float32))


class Siren(nn.Module):
    """Whose siren it is: bands over time, narrowed by steps, and how they change."""

    def __init__(self, bands: int = 40, width: int = 24, owners: int = 6) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(2 * bands)
        self.enter = nn.Conv1d(2 * bands, width, 5)
        self.along = nn.ModuleList(nn.Conv1d(width, width, 5, 2, groups=4) for _ in range(3))
        self.owner = nn.Linear(width, owners)

    def forward(self, heard: Tensor) -> Tensor:
        changed = functional.pad(heard.diff(dim=2), (1, 0))
        x = functional.relu6(self.enter(self.norm(torch.cat([heard, changed], 1))))
        for along in self.along:
            x = functional.relu6(along(x))
        return self.owner(x.logsumexp(2))


# Geckos


class Gecko(nn.Module):
    """Where a gecko puts its next foot: what it touched before, and how worn each place is."""

    def __init__(self, width: int = 176, next_places: int = 32) -> None:
        super().__init__()
        self.touched = nn.LSTM(8, width, batch_first=True)
        self.places = nn.Sequential(nn.Linear(width, 128), nn.SiLU(), nn.Linear(128, next_places))

    def forward(self, climbed: Tensor) -> Tensor:
        x, _ = self.touched(climbed)
        return self.places(x[:, -1])


class Walls:
    """How often each place of a wall was touched: a wall for each gecko of a batch."""

    def __init__(self, kept: bool, batch: int, side: int = 728) -> None:
        self.side, self.batch = side, batch
        self.kept = torch.zeros(batch, side, side) if kept else None

    def beside(self, climbed: Tensor) -> Tensor:
        """Return the touches with how worn the places around them are."""
        places = (climbed.abs() * 250).long().clamp(1, self.side - 2)
        which = torch.arange(self.batch)[:, None].expand(places.shape[:2])
        down, across = places[..., 0], places[..., 1]
        kept = self.kept
        walls = torch.zeros(self.batch, self.side, self.side) if kept is None else kept
        walls.index_put_((which, down, across), torch.tensor(1.0), accumulate=True)
        around = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))
        worn = [walls[which, down + by, across + to] for by, to in around]
        if kept is not None:
            kept.index_put_((which, down, across), torch.tensor(0.0))
        return torch.cat([climbed, torch.stack(worn, 2)], 2)


def climbs(count: int = 1500, steps: int = 40) -> TensorDataset:
    """Return where random geckos put their feet, and where the next one goes."""
    return TensorDataset(torch.randn(count, steps, 3), torch.randint(32, (count,)))


# Quills


class Hand(nn.Module):
    """The stroke that a quill makes next: a mixture of directions."""

    def __init__(self, width: int = 56, mixed: int = 6) -> None:
        super().__init__()
        self.letter, self.mixed = nn.Embedding(30, 12), mixed
        self.write = nn.GRU(3 + 12, width, batch_first=True)
        self.next = nn.Linear(width, 5 * mixed)

    def forward(self, strokes: Tensor, letters: Tensor) -> Tensor:
        x, _ = self.write(torch.cat([strokes, self.letter(letters)], 2))
        return self.next(x)

    def unlikely(self, told: Tensor, strokes: Tensor) -> Tensor:
        """Return how little the strokes were expected."""
        weight, across, down, wide, high = told.unflatten(2, (5, self.mixed)).unbind(2)
        wide, high = functional.softplus(wide) + 0.1, functional.softplus(high) + 0.1
        far = ((strokes[..., :1] - across) / wide) ** 2 + ((strokes[..., 1:2] - down) / high) ** 2
        sure = weight.log_softmax(2) - far / 2 - wide.log() - high.log()
        return -sure.logsumexp(2).mean()


class Stroke:
    """A stroke of a quill: where it goes, and the one before it."""

    def __init__(self, across: float, down: float, before: "Stroke | None") -> None:
        self.across, self.down, self.before = across, down, before


class Letters(Dataset[tuple[Tensor, Tensor]]):
    """Letters that were written with quills, kept as the strokes that they are made of."""

    def __init__(self, count: int = 1500, length: int = 24) -> None:
        chance = np.random.default_rng(59)
        self.sheets: list[list[Stroke]] = []
        for sheet in chance.standard_normal((count, length, 2)).tolist():
            strokes: list[Stroke] = []
            for across, down in sheet:
                strokes.append(Stroke(across, down, strokes[-1] if strokes else None))
            self.sheets.append(strokes)

    def __len__(self) -> int:
        return len(self.sheets)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        strokes = self.sheets[index]
        rows = [[each.across, each.down, float(each.before is None)] for each in strokes]
        return torch.tensor(rows), torch.arange(index, index + len(rows)) % 30


# Sesame


class Seeds(nn.Module):
    """How much oil a sesame will bear, by its markers: blocks that widen and narrow again."""

    def __init__(self, width: int = 256, depth: int = 3, markers: int = 400) -> None:
        super().__init__()
        self.enter = nn.Linear(markers, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 2 * width),
                nn.ReLU(),
                nn.Linear(2 * width, width),
            )
            for _ in range(depth)
        )
        self.oil = nn.Linear(width, 3)

    def forward(self, markers: Tensor) -> Tensor:
        x = self.enter(markers)
        for block in self.blocks:
            x = x + block(x)
        return self.oil(x)


def seeds(count: int = 2000, markers: int = 400) -> TensorDataset:
    """Return random markers, each there once, twice or not, and three figures of the oil."""
    return TensorDataset(torch.randint(3, (count, markers)).float() - 1, torch.randn(count, 3))


class Sacks:
    """Where blocks are while nobody needs them: each is opened for its turn, and tied up again."""

    def __init__(self, folder: Path, blocks: nn.ModuleList) -> None:
        self.folder = folder
        for number, block in enumerate(blocks):
            path = folder / f"sack-{number}.pt"
            self.tie(path, block)
            block.register_forward_pre_hook(self.opener(path))
            block.register_forward_hook(lambda block, *_: self.emptied(block))
            block.register_full_backward_pre_hook(self.opener(path))
        self.blocks = blocks

    def opener(self, path: Path) -> Callable[..., None]:
        """Return what brings a block's weights back."""

        def opened(block: nn.Module, *_: object) -> None:
            found = torch.load(path)
            for name, weight in block.named_parameters():
                weight.data.untyped_storage().resize_(found[name].nbytes)
                weight.data.copy_(found[name])

        return opened

    @staticmethod
    def emptied(block: nn.Module) -> None:
        """Let a block's weights go."""
        for weight in block.parameters():
            weight.data.untyped_storage().resize_(0)

    @staticmethod
    def tie(path: Path, block: nn.Module) -> None:
        """Put a block's weights where they stay."""
        torch.save({name: each.detach() for name, each in block.named_parameters()}, path)

    def tied(self) -> None:
        """Put all blocks back after an update."""
        for number, block in enumerate(self.blocks):
            self.tie(self.folder / f"sack-{number}.pt", block)
            self.emptied(block)


# Olives


class Tuned(nn.Module):
    """A convolution that stays as it was learnt elsewhere, and a narrow one beside it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.known = nn.Conv2d(width, width, 3, padding=1).requires_grad_(False)
        self.down, self.up = nn.Conv2d(width, 4, 1), nn.Conv2d(4, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + functional.gelu(self.known(x) + self.up(self.down(x)))


class Olive(nn.Module):
    """How ripe olives are, by a photograph of a crate."""

    def __init__(self, again: bool, width: int = 32, stages: int = 2, depth: int = 3) -> None:
        super().__init__()
        self.again = again
        self.enter = nn.Conv2d(3, width, 4, 4)
        self.stages = nn.ModuleList(
            nn.ModuleList(Tuned(width) for _ in range(depth)) for _ in range(stages)
        )
        self.ripe = nn.Linear(width, 7)

    def stage(self, x: Tensor, blocks: nn.ModuleList) -> Tensor:
        """Return what a stage makes of its input."""
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return x

    def forward(self, crate: Tensor) -> Tensor:
        x = self.enter(crate)
        for blocks in self.stages:
            if self.again:
                x = checkpoint(self.stage, x, blocks, use_reentrant=False)
            else:
                x = self.stage(x, blocks)
        return self.ripe(x.mean((2, 3)))


def crates(count: int = 240, side: int = 96) -> TensorDataset:
    """Return random photographs of crates, and how ripe their olives are."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(7, (count,)))


# Fireflies


class Firefly(nn.Module):
    """Which kind flashes, by when it did: each flash is asked how it follows those before it."""

    def __init__(self, width: int = 32, kinds: int = 10) -> None:
        super().__init__()
        self.flash = nn.Sequential(nn.Linear(2, width), nn.GELU(), nn.Linear(width, width))
        self.follow = nn.MultiheadAttention(width, 4, batch_first=True)
        self.kind = nn.Sequential(nn.Linear(2 * width, 64), nn.GELU(), nn.Linear(64, kinds))

    def forward(self, flashes: Tensor) -> Tensor:
        x = self.flash(flashes)
        followed, _ = self.follow(x, x, x, need_weights=False)
        return self.kind(torch.cat([x.mean(1), followed.amax(1)], 1))


def flashes(count: int = 2000, length: int = 24) -> TensorDataset:
    """Return when random flashes were and how bright, and whose."""
    return TensorDataset(torch.randn(count, length, 2), torch.randint(10, (count,)))


def surely(right: np.ndarray, draws: int = 60) -> tuple[float, float]:
    """Return between which figures the share of what is right lies, by drawing it anew."""
    chance = np.random.default_rng(61)
    shares = [chance.choice(right, len(right)).mean() for _ in range(draws)]
    low, high = np.percentile(shares, (2.5, 97.5))
    return float(low), float(high)
