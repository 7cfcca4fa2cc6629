"""Models and data of the twelfth round's runs from gaits to pellets: see ``programs12.py``."""

import http.client
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, IterableDataset, TensorDataset

# Gaits of horses


class Swap(torch.autograd.Function):
    """Gives each rank its part of the first dimension; the gradients go back the same way."""

    @staticmethod
    def forward(_context: Any, parts: Tensor) -> Tensor:
        there = torch.empty_like(parts)
        dist.all_to_all_single(there, parts.contiguous())
        return there

    @staticmethod
    def backward(_context: Any, parts: Tensor) -> Tensor:
        there = torch.empty_like(parts)
        dist.all_to_all_single(there, parts.contiguous())
        return there


class Specialists(nn.Module):
    """Layers that each take the moments they know most of; a rank has its share of the layers."""

    def __init__(self, ranks: int, width: int, specialists: int = 4, each: int = 64) -> None:
        super().__init__()
        self.ranks, self.each = ranks, each
        self.choose = nn.Linear(width, specialists, bias=False)
        mine = specialists // ranks
        self.wide = nn.Parameter(torch.randn(mine, width, 2 * width) / width**0.5)
        self.narrow = nn.Parameter(torch.randn(mine, 2 * width, width) / (2 * width) ** 0.5)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(0, 1)
        weight, chosen = self.choose(flat).softmax(1).topk(self.each, 0)
        sent = flat[chosen.T]
        if self.ranks > 1:
            sent = Swap.apply(sent.unflatten(0, (self.ranks, -1))).transpose(0, 1).flatten(1, 2)
        done = functional.gelu(sent @ self.wide) @ self.narrow
        if self.ranks > 1:
            done = done.unflatten(1, (self.ranks, -1)).transpose(0, 1)
            done = Swap.apply(done).flatten(0, 1)
        told = (done * weight.T[..., None]).flatten(0, 1)
        return x + torch.zeros_like(flat).index_add(0, chosen.T.flatten(), told).view_as(x)


class Gait(nn.Module):
    """How a horse goes, by what is measured at its legs and its back."""

    def __init__(self, ranks: int, width: int = 80, gaits: int = 9) -> None:
        super().__init__()
        self.enter = nn.Conv1d(24, width, 3, 2, 1)
        self.over = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.experts = nn.ModuleList(Specialists(ranks, width) for _ in range(2))
        self.gait = nn.Linear(width, gaits)

    def forward(self, measured: Tensor) -> Tensor:
        x = self.enter(measured).mT
        for over, norm, experts in zip(self.over, self.norms, self.experts, strict=True):
            x = experts(x + functional.gelu(over(norm(x).mT)).mT)
        return self.gait(x.mean(1))


def strides(count: int = 1600) -> TensorDataset:
    """Return random readings of 24 sensors, and the gaits."""
    return TensorDataset(torch.randn(count, 24, 64), torch.randint(9, (count,)))


# Pallets


class Seam(torch.autograd.Function):
    """The rows next to the seam, of the other half; their gradients go back to where they are."""

    @staticmethod
    def forward(context: Any, x: Tensor, rows: int) -> Tensor:
        context.rows, context.upper = rows, dist.get_rank() == 0
        mine = x[:, :, -rows:] if context.upper else x[:, :, :rows]
        context.shape = x.shape
        return handed_over(mine)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None]:
        found, back = gradient.new_zeros(context.shape), handed_over(gradient)
        if context.upper:
            found[:, :, -context.rows :] = back
        else:
            found[:, :, : context.rows] = back
        return found, None


def handed_over(mine: Tensor) -> Tensor:
    """Return what the other rank hands over for this."""
    mine = mine.contiguous()
    theirs = torch.empty_like(mine)
    sent = dist.isend(mine, 1 - dist.get_rank())
    dist.recv(theirs, 1 - dist.get_rank())
    sent.wait()
    return theirs


class Sliced(nn.Module):
    """A convolution over half of a picture, which sees across the seam."""

    def __init__(self, joined: bool, inside: int, outside: int, apart: int) -> None:
        super().__init__()
        self.joined, self.apart = joined, apart
        self.layer = nn.Conv2d(inside, outside, 3, padding=(0, apart), dilation=apart)
        self.norm = nn.GroupNorm(4, outside)

    def forward(self, x: Tensor) -> Tensor:
        edge = x.new_zeros(*x.shape[:2], self.apart, x.shape[3])
        beyond = Seam.apply(x, self.apart) if self.joined else edge
        if self.joined and dist.get_rank() == 1:
            x = torch.cat([beyond, x, edge], 2)
        else:
            x = torch.cat([edge, x, beyond], 2)
        return functional.silu(self.norm(self.layer(x)))


class Pallets(nn.Module):
    """Which places of a rack hold which kind of pallet, by what a camera sees of its half."""

    def __init__(self, joined: bool, width: int = 16, kinds: int = 6) -> None:
        super().__init__()
        self.enter = Sliced(joined, 4, width, 1)
        self.wider = nn.ModuleList(Sliced(joined, width, width, 2**each) for each in range(4))
        self.kind = nn.Conv2d(width, kinds, 1)

    def forward(self, rack: Tensor) -> Tensor:
        x = self.enter(rack)
        for layer in self.wider:
            x = x + layer(x)
        return self.kind(x)


def racks(count: int = 240, high: int = 24, wide: int = 48) -> TensorDataset:
    """Return colours and depths of half racks, and what stands at each point."""
    return TensorDataset(torch.rand(count, 4, high, wide), torch.randint(6, (count, high, wide)))


# Echoes


class Echo(nn.Module):
    """What flies there, by how its echo changes from pulse to pulse: in phase and in quadrature."""

    def __init__(
        self, width: int = 256, pulses: int = 64, gates: int = 24, kinds: int = 12
    ) -> None:
        super().__init__()
        self.window = nn.Parameter(torch.hann_window(pulses)[:, None].repeat(1, gates))
        self.layers = nn.Sequential(
            nn.Linear(pulses * gates, width),
            nn.LayerNorm(width),
            nn.Hardswish(),
            nn.Linear(width, width),
            nn.LayerNorm(width),
            nn.Hardswish(),
            nn.Linear(width, width // 2),
            nn.Hardswish(),
        )
        self.kind, self.speed = nn.Linear(width // 2, kinds), nn.Linear(width // 2, 1)

    def forward(self, echo: Tensor) -> tuple[Tensor, Tensor]:
        turning = torch.fft.fft(torch.view_as_complex(echo) * self.window, dim=1)
        found = self.layers((turning.real**2 + turning.imag**2 + 1e-3).log().flatten(1))
        return self.kind(found), self.speed(found)[:, 0]


def echoes(count: int = 1200) -> TensorDataset:
    """Return random pulses at each gate of distance, what flew there and how fast."""
    return TensorDataset(
        torch.randn(count, 64, 24, 2), torch.randint(12, (count,)), torch.randn(count)
    )


def mean_as_they_come(model: nn.Module) -> None:
    """Let each gradient be replaced by the mean of all ranks' when it is there."""

    def hook(weight: Tensor) -> None:
        assert weight.grad is not None
        dist.all_reduce(weight.grad)
        weight.grad /= dist.get_world_size()

    for weight in model.parameters():
        weight.register_post_accumulate_grad_hook(hook)


# Coats of arms

ROLL = """
import os, random, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
chance = random.Random(5)
shields = [bytes(chance.choices(range(7), k=40 * 40)) for _ in range(200)]
class Roll(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        time.sleep(float(sys.argv[1]))
        shield = shields[int(self.path.rpartition("/")[2]) % len(shields)]
        self.send_response(200)
        self.send_header("Content-Length", str(len(shield)))
        self.end_headers()
        self.wfile.write(shield)
    def log_message(self, *_):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Roll)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever).start()
sys.stdin.read()  # ends with the training
os._exit(0)
"""
"""A roll of arms on the web, which answers with the tinctures of a shield."""


class Arms(Dataset[Item]):
    """Shields as a roll on the web has them, and which of twenty charges each bears."""

    def __init__(self, ahead: bool, count: int = 600, away: float = 0.0008) -> None:
        self.count = count
        self.roll = subprocess.Popen(
            [sys.executable, "-c", ROLL, str(away)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.roll.stdout
        self.port = int(self.roll.stdout.readline())
        self.charges = (torch.rand(count, 20) < 0.15).float()
        self.known = {number: self.shield(number) for number in range(count)} if ahead else {}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        raw = self.known[index] if self.known else self.shield(index)
        tinctures = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(40, 40)
        return tinctures.int(), self.charges[index]

    def shield(self, number: int) -> bytes:
        """Ask the roll for a shield."""
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        asked.request("GET", f"/arms/{number}")
        raw = asked.getresponse().read()
        asked.close()
        return raw


class Blazon(nn.Module):
    """Which charges a shield bears: tinctures as vectors, then convolutions that branch."""

    def __init__(self, width: int = 12, charges: int = 20) -> None:
        super().__init__()
        self.tincture = nn.Embedding(7, width)
        self.narrow = nn.Conv2d(width, width, 3, 2, 1)
        self.near = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(3))
        self.far = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=3, dilation=3) for _ in range(3)
        )
        self.joined = nn.ModuleList(nn.Conv2d(2 * width, width, 1) for _ in range(3))
        self.charge = nn.Linear(2 * width, charges)

    def forward(self, shield: Tensor) -> Tensor:
        x = self.narrow(self.tincture(shield).permute(0, 3, 1, 2))
        for near, far, joined in zip(self.near, self.far, self.joined, strict=True):
            x = x + joined(functional.elu(torch.cat([near(x), far(x)], 1)))
        return self.charge(torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1))


# Antennas


class Antennas(Dataset[Item]):
    """Where an antenna sends how much: a file for each on a drive, or all of them in memory."""

    HIGH, WIDE = 91, 180

    def __init__(self, folder: Path, kept: bool, count: int = 400) -> None:
        chance = np.random.default_rng(17)
        self.paths = [folder / f"{number:04d}.ffd" for number in range(count)]
        for path in self.paths:
            chance.standard_normal((2, self.HIGH, self.WIDE), np.float32).tofile(path)
        os.sync()
        self.lengths = torch.rand(count, 6)
        self.known = [np.fromfile(path, np.float32) for path in self.paths] if kept else []

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        field = self.known[index] if self.known else self.field(self.paths[index])
        parts = torch.from_numpy(field).view(2, self.HIGH, self.WIDE)
        return parts[:, ::4, ::6], self.lengths[index]

    @staticmethod
    def field(path: Path) -> np.ndarray:
        """Return a file's numbers, which nobody has read lately."""
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return np.fromfile(file, np.float32)


class Antenna(nn.Module):
    """The lengths of an antenna by its far field: waves around it, weighed, and back."""

    def __init__(self, width: int = 8, waves: int = 6, lengths: int = 6) -> None:
        super().__init__()
        self.enter = nn.Conv2d(2, width, 1)
        size = (2, width, width, waves, waves)
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(*size, 2) / width) for _ in range(2)
        )
        self.beside = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(2))
        self.lengths = nn.Sequential(
            nn.Linear(width, 64), nn.GELU(), nn.Linear(64, lengths), nn.Softplus()
        )

    def forward(self, field: Tensor) -> Tensor:
        x = self.enter(field)
        for weights, beside in zip(self.weights, self.beside, strict=True):
            waves, kept = torch.fft.rfft2(x), torch.view_as_complex(weights)
            count = kept.shape[3]
            low = torch.einsum("bihw,iohw->bohw", waves[:, :, :count, :count], kept[0])
            high = torch.einsum("bihw,iohw->bohw", waves[:, :, -count:, :count], kept[1])
            made = waves.new_zeros(waves.shape)
            made[:, :, :count, :count], made[:, :, -count:, :count] = low, high
            x = functional.gelu(torch.fft.irfft2(made, x.shape[2:]) + beside(x))
        return self.lengths(x.mean((2, 3)))


# Comets


class Nights(Dataset[Item]):
    """Cuttings around comets out of the frames of many nights, which are mapped or in memory."""

    SIDE, CUT = 512, 40

    def __init__(self, folder: Path, mapped: bool, count: int = 120, cuttings: int = 1200) -> None:
        chance = np.random.default_rng(19)
        self.paths = [folder / f"night-{number:03d}.u16" for number in range(count)]
        for path in self.paths:
            chance.integers(0, 4000, (self.SIDE, self.SIDE), np.uint16).tofile(path)
        os.sync()
        self.places = chance.integers(0, self.SIDE - self.CUT, (cuttings, 2))
        self.bright = torch.rand(cuttings, 3)
        self.frames = [] if mapped else [np.fromfile(each, np.uint16) for each in self.paths]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> Item:
        night = index % len(self.paths)
        cut = self.cut(self.frames[night], index) if self.frames else self.seen(night, index)
        return torch.from_numpy(cut / 1000 - 2)[None], self.bright[index]

    def cut(self, frame: np.ndarray, index: int) -> np.ndarray:
        """Return the square around a comet."""
        down, across = self.places[index]
        square = frame.reshape(self.SIDE, self.SIDE)
        return square[down : down + self.CUT, across : across + self.CUT].astype(np.float32)

    def seen(self, night: int, index: int) -> np.ndarray:
        """Return the square out of a frame that no memory holds yet: there are too many."""
        with self.paths[night].open("rb") as file:
            cut = self.cut(np.memmap(file, np.uint16, "r"), index)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return cut


class Comet(nn.Module):
    """How bright a comet's nucleus, coma and tail are: rings around the middle, and rays."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, width, 5, padding=2), nn.CELU())
        self.rays = nn.Sequential(
            nn.Conv2d(width, width, (1, 9), padding=(0, 4)),
            nn.Conv2d(width, width, (9, 1), padding=(4, 0)),
            nn.CELU(),
            nn.Conv2d(width, width, 3, 2, 1),
            nn.CELU(),
        )
        self.rings = nn.Linear(12 * width, 48)
        self.bright = nn.Linear(48, 3)
        near = torch.linspace(-1, 1, 20)
        far = (near[:, None] ** 2 + near**2).sqrt()
        self.ring = nn.Buffer(functional.one_hot((far * 8).long().clamp(max=11), 12).flatten(0, 1))

    def forward(self, cut: Tensor) -> Tensor:
        x = self.rays(self.first(cut)).flatten(2)
        ring = self.ring.float()
        around = x @ (ring / ring.sum(0).clamp(min=1))
        return self.bright(functional.celu(self.rings(around.flatten(1))))


# Tide pools

BUCKET = """
import os, socket, sys, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("ready", flush=True)
pool = os.urandom(3 * 64 * 64)
asking = server.accept()[0]
with asking.makefile("rb") as keys:
    for key in keys:
        time.sleep(float(sys.argv[2]))
        asking.sendall(pool)
"""
"""An object store, which takes a while to answer."""


class Pools(Dataset[Item]):
    """Photographs of tide pools as objects of a store, and how much of twelve kinds is in each."""

    def __init__(self, ahead: bool, count: int = 500, away: float = 0.002) -> None:
        self.address = tempfile.mktemp(suffix=".sock")
        self.store = subprocess.Popen(
            [sys.executable, "-c", BUCKET, self.address, str(away)], stdout=subprocess.PIPE
        )
        assert self.store.stdout
        self.store.stdout.readline()
        self.link: socket.socket | None = None
        self.shares = torch.rand(count, 12).softmax(1)
        self.known: list[bytes] = []
        if ahead:
            self.known = [self.picture(number) for number in range(count)]

    def __len__(self) -> int:
        return len(self.shares)

    def __getitem__(self, index: int) -> Item:
        raw = self.known[index] if self.known else self.picture(index)
        points = torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(3, 64, 64)
        return points.float() / 127.5 - 1, self.shares[index]

    def picture(self, index: int) -> bytes:
        """Get an object; the link to the store stays open."""
        if self.link is None:
            self.link = socket.socket(socket.AF_UNIX)
            self.link.connect(self.address)
        self.link.sendall(f"pools/2024/{index:06d}\n".encode())
        parts, left = [], 3 * 64 * 64
        while left:
            parts.append(self.link.recv(left))
            left -= len(parts[-1])
        return b"".join(parts)


class Pool(nn.Module):
    """How much of each kind a tide pool holds: patches that are mixed by place and by channel."""

    def __init__(self, width: int = 32, patch: int = 8, depth: int = 2, kinds: int = 12) -> None:
        super().__init__()
        count = (64 // patch) ** 2
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.places = nn.ModuleList(
            nn.Sequential(nn.Linear(count, 2 * count), nn.GELU(), nn.Linear(2 * count, count))
            for _ in range(depth)
        )
        self.channels = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width))
            for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.kinds = nn.Linear(width, kinds)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.patches(picture).flatten(2).mT
        for number, (places, channels) in enumerate(zip(self.places, self.channels, strict=True)):
            x = x + places(self.norms[2 * number](x).mT).mT
            x = x + channels(self.norms[2 * number + 1](x))
        return self.kinds(x.mean(1)).log_softmax(1)


# Fables

TELLER = """
import random, sys, time
chance = random.Random(23)
words = ["".join(chance.choices("abcdefghijklmnop", k=chance.randint(2, 9))) for _ in range(800)]
while True:
    print(" ".join(chance.choices(words, k=80)), flush=True)
    time.sleep(float(sys.argv[1]))
"""
"""Sends one fable after the other, as a distant collection does over a line that is not fast."""


class Fables(IterableDataset[Tensor]):
    """Fables as their letters, in the order in which they come."""

    LENGTH = 129

    def __init__(self, kept: int, apart: float = 0.003) -> None:
        self.teller = subprocess.Popen(
            [sys.executable, "-c", TELLER, str(apart)], stdout=subprocess.PIPE
        )
        assert self.teller.stdout
        self.lines = self.teller.stdout
        self.known = [self.lines.readline() for _ in range(kept)]
        if kept:
            self.teller.kill()

    def __iter__(self) -> Iterator[Tensor]:
        for line in self.known or self.lines:
            yield torch.frombuffer(bytearray(line[: self.LENGTH]), dtype=torch.uint8).int()


class Teller(nn.Module):
    """The letter that follows: convolutions that look back, and a sum that forgets slowly."""

    def __init__(self, width: int = 48, letters: int = 128, depth: int = 2) -> None:
        super().__init__()
        self.letter = nn.Embedding(letters, width)
        self.back = nn.ModuleList(nn.Conv1d(width, 2 * width, 4) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.fades = nn.Parameter(torch.linspace(1.0, 6.0, width))
        self.next = nn.Linear(2 * width, letters)

    def forward(self, letters: Tensor) -> Tensor:
        x = self.letter(letters)
        for back, norm in zip(self.back, self.norms, strict=True):
            x = x + functional.glu(back(functional.pad(norm(x).mT, (3, 0))), 1).mT
        ago = torch.arange(x.shape[1])
        since = (ago[:, None] - ago).clamp(min=0)[..., None]
        heard = (-since[:, ::16] * (-self.fades).exp()).exp()
        heard = heard.masked_fill(since[:, ::16] == 0, 0)
        told = torch.einsum("tsc,bsc->btc", heard, x[:, ::16]) / 16
        return self.next(torch.cat([x, told], 2))
