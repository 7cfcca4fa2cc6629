"""Models and data of the twelfth round's runs from gaits to pellets: see ``programs12.py``."""

import csv
import http.client
import io
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from programs import Item
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
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

    def __init__(self, ranks: int, width: int = 64, gaits: int = 9) -> None:
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

    def __init__(self, joined: bool, width: int = 24, kinds: int = 6) -> None:
        super().__init__()
        self.enter = Sliced(joined, 4, width, 1)
        self.wider = nn.ModuleList(Sliced(joined, width, width, 2**each) for each in (1, 2))
        self.kind = nn.Conv2d(width, kinds, 1)

    def forward(self, rack: Tensor) -> Tensor:
        x = self.enter(rack)
        for layer in self.wider:
            x = x + layer(x)
        return self.kind(x)


def racks(count: int = 240, high: int = 32, wide: int = 64) -> TensorDataset:
    """Return colours and depths of half racks, and what stands at each point."""
    return TensorDataset(torch.rand(count, 4, high, wide), torch.randint(6, (count, high, wide)))


# Echoes


class Echo(nn.Module):
    """What flies there, by how its echo changes from pulse to pulse: in phase and in quadrature."""

    def __init__(
        self, width: int = 256, pulses: int = 64, gates: int = 24, kinds: int = 12
    ) -> None:
        super().__init__()
        self.window = nn.Buffer(torch.hann_window(pulses)[:, None])
        self.layers = nn.Sequential(
            nn.Linear(pulses * gates, width, bias=False),
            nn.LayerNorm(width, elementwise_affine=False),
            nn.Hardswish(),
            nn.Linear(width, width, bias=False),
            nn.LayerNorm(width, elementwise_affine=False),
            nn.Hardswish(),
        )
        self.told = nn.Linear(width, kinds + 1)

    def forward(self, echo: Tensor) -> tuple[Tensor, Tensor]:
        turning = torch.fft.fft(torch.view_as_complex(echo) * self.window, dim=1)
        found = self.layers((turning.real**2 + turning.imag**2 + 1e-3).log().flatten(1))
        told = self.told(found)
        return told[:, 1:], told[:, 0]


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
    disable_nagle_algorithm = True
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

    def __init__(self, ahead: bool, count: int = 600, away: float = 0.0015) -> None:
        self.count = count
        self.roll = subprocess.Popen(
            [sys.executable, "-c", ROLL, str(away)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.roll.stdout
        port = int(self.roll.stdout.readline())
        self.web = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
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
        self.web.request("GET", f"/arms/{number}")
        return self.web.getresponse().read()


class Blazon(nn.Module):
    """Which charges a shield bears: tinctures as vectors, then convolutions that branch."""

    def __init__(self, width: int = 16, charges: int = 20) -> None:
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
        return parts[:, ::6, ::6], self.lengths[index]

    @staticmethod
    def field(path: Path) -> np.ndarray:
        """Return a file's numbers, which nobody has read lately."""
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            return np.fromfile(file, np.float32)


class Antenna(nn.Module):
    """The lengths of an antenna by its far field: waves around it, weighed, and back."""

    def __init__(self, width: int = 6, waves: int = 5, lengths: int = 6) -> None:
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

    def __init__(self, ahead: bool, count: int = 500, away: float = 0.0022) -> None:
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

    def __init__(self, kept: int, apart: float = 0.0054) -> None:
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


# Organ pipes


class Ranks(Dataset[Item]):
    """How a pipe begins to speak: recordings at 96 kHz, brought to 16 kHz and to one loudness."""

    def __init__(self, ready: bool, count: int = 320, length: int = 16_000) -> None:
        from scipy.signal import butter

        chance = np.random.default_rng(29)
        self.sounds = chance.integers(-8000, 8000, (count, length), np.int16)
        low = butter(4, [40, 7000], "bandpass", fs=96_000, output="sos")
        self.low = low
        self.known = [self.spoken(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.sounds)

    def __getitem__(self, index: int) -> Item:
        sound = self.known[index] if self.known else self.spoken(index)
        return sound, torch.tensor(index % 10)

    def spoken(self, index: int) -> Tensor:
        """Return a recording as the model takes it."""
        from scipy.signal import resample_poly, sosfilt

        sound = sosfilt(self.low, self.sounds[index] / 32768)
        slow = resample_poly(sound, 1, 6)
        return torch.from_numpy((slow / (slow.std() + 1e-6)).astype(np.float32))


class Pipe(nn.Module):
    """Which stop a pipe is of: what it speaks is cut in frames, whose cosines are learnt."""

    def __init__(self, frame: int = 256, width: int = 48, stops: int = 10) -> None:
        super().__init__()
        self.frame = frame
        self.cosines = nn.Linear(frame, width, bias=False)
        self.turn = nn.Bilinear(width, width, width // 6)
        self.later = nn.Sequential(
            nn.Linear(width + width // 6, 2 * width), nn.Tanh(), nn.Linear(2 * width, width)
        )
        self.heed, self.stop = nn.Linear(width, 1), nn.Linear(width, stops)

    def forward(self, sound: Tensor) -> Tensor:
        loud = (self.cosines(sound.unfold(1, self.frame, self.frame // 4)).square() + 1e-4).log()
        turned = self.turn(loud[:, 1:].contiguous(), loud[:, :-1].contiguous())
        x = self.later(torch.cat([loud[:, 1:], turned], 2))
        return self.stop((self.heed(x).softmax(1) * x).sum(1))


# Nebulae


class Plates(Dataset[Item]):
    """Three narrow bands of a piece of sky: background away, turned, stretched to be seen."""

    def __init__(self, ready: bool, count: int = 160, side: int = 64) -> None:
        chance = np.random.default_rng(31)
        self.counts = chance.gamma(2.0, 300.0, (count, 3, side, side)).astype(np.float32)
        self.angles = chance.uniform(0, 360, count)
        self.known = [self.seen(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, index: int) -> Item:
        seen = self.known[index] if self.known else self.seen(index)
        return seen, torch.tensor(index % 5)

    def seen(self, index: int) -> Tensor:
        """Return the bands as the model takes them."""
        from scipy.ndimage import gaussian_filter, rotate

        bands = self.counts[index]
        bands = bands - np.stack([gaussian_filter(each, 6) for each in bands])
        bands = rotate(bands, self.angles[index], (1, 2), reshape=False, order=1, mode="reflect")
        low, high = np.percentile(bands, (2, 99.5), axis=(1, 2), keepdims=True)
        bright = np.arcsinh(8 * np.clip((bands - low) / (high - low), 0, 1)) / np.arcsinh(8)
        return torch.from_numpy(bright[:, ::2, ::2].astype(np.float32))


class Nebula(nn.Module):
    """What a nebula is, by a code from which its picture can be drawn again."""

    def __init__(self, width: int = 16, code: int = 32, kinds: int = 5) -> None:
        super().__init__()
        self.narrow = nn.Sequential(
            nn.Conv2d(3, width, 4, 4),
            nn.Softplus(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.Softplus(),
            nn.Flatten(),
            nn.Linear(2 * width * 64, 2 * code),
        )
        self.kind = nn.Linear(code, kinds)
        self.wide = nn.Sequential(
            nn.Linear(code, width * 64),
            nn.Softplus(),
            nn.Unflatten(1, (width, 8, 8)),
            nn.ConvTranspose2d(width, 3, 4, 4),
        )

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        middle, spread = self.narrow(seen).chunk(2, 1)
        code = middle + torch.randn_like(middle) * (0.5 * spread).exp()
        return self.kind(middle), self.wide(code), middle, spread


def told_and_drawn(
    told: tuple[Tensor, Tensor, Tensor, Tensor], seen: Tensor, kind: Tensor
) -> Tensor:
    """Return the loss of the kind, of the picture and of a code that says too much."""
    scores, drawn, middle, spread = told
    much = (middle**2 + spread.exp() - 1 - spread).sum(1).mean() / 2
    return functional.cross_entropy(scores, kind) + (drawn - seen).square().mean() + 1e-3 * much


# Shoals of herring


class Shoals(Dataset[Item]):
    """Echoes below a ship, a row for each, and how many tonnes of herring were there."""

    def __init__(self, ready: bool, count: int = 160, rows: int = 4000) -> None:
        import pandas

        chance = np.random.default_rng(37)
        self.rows = [
            pandas.DataFrame(
                {
                    "ping": chance.integers(0, 640, rows),
                    "depth": chance.uniform(5, 200, rows),
                    "decibels": chance.normal(-60, 8, rows),
                }
            )
            for _ in range(count)
        ]
        self.tonnes = torch.rand(count)
        self.known = [self.grid(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Item:
        return self.known[index] if self.known else self.grid(index), self.tonnes[index]

    def grid(self, index: int) -> Tensor:
        """Return what comes back from each depth at each place, as a picture of 32 by 40."""
        import pandas

        rows = self.rows[index]
        rows = rows[rows["decibels"] > -80].assign(
            place=lambda each: each["ping"] // 16,
            deep=lambda each: pandas.cut(each["depth"], np.linspace(5, 200, 33), labels=False),
            power=lambda each: 10 ** (each["decibels"] / 10),
        )
        mean = rows.groupby(["deep", "place"])["power"].mean().unstack(fill_value=1e-9)
        mean = mean.reindex(index=range(32), columns=range(40), fill_value=1e-9)
        smooth = mean.T.rolling(3, min_periods=1, center=True).mean().T
        return torch.from_numpy(np.log10(smooth.to_numpy(np.float32)) / 3 + 2)[None]


class Shoal(nn.Module):
    """How many tonnes a shoal weighs: its rows and its columns are each gone through."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.columns = nn.GRU(32, width, batch_first=True)
        self.rows = nn.GRU(40, width, batch_first=True)
        self.tonnes = nn.Sequential(
            nn.Linear(4 * width, 64), nn.ReLU(), nn.Linear(64, 1), nn.Softplus()
        )

    def forward(self, grid: Tensor) -> Tensor:
        along, last = self.columns(grid[:, 0].mT)
        down, deepest = self.rows(grid[:, 0])
        found = [along.mean(1), last[0], down.mean(1), deepest[0]]
        return self.tonnes(torch.cat(found, 1))[:, 0]


# Trails of ants

Nest = tuple[np.ndarray, int]


class Nests(Dataset[Nest]):
    """Where the ants of a nest are and how they go, and what they are at."""

    def __init__(self, count: int = 600, ants: int = 68) -> None:
        chance = np.random.default_rng(41)
        self.ants = chance.uniform(0, 10, (count, ants, 6)).astype(np.float32)

    def __len__(self) -> int:
        return len(self.ants)

    def __getitem__(self, index: int) -> Nest:
        return self.ants[index], index % 7


def met(ants: np.ndarray, near: float = 1.8) -> list[tuple[int, int, float]]:
    """Return which ants are near which, and how far."""
    found = []
    for one, (x, y) in enumerate(ants[:, :2].tolist()):
        for other, (across, down) in enumerate(ants[:, :2].tolist()):
            apart = ((x - across) ** 2 + (y - down) ** 2) ** 0.5
            if one != other and apart < near:
                found.append((one, other, apart))
    return found


class Joined:
    """Puts the nests of a batch together as one graph."""

    def __init__(self, nests: Nests, ready: bool) -> None:
        self.known = {ants.tobytes(): met(ants) for ants in nests.ants} if ready else {}

    def __call__(self, nests: list[Nest]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        pairs: list[np.ndarray] = []
        for number, (ants, _) in enumerate(nests):
            found = self.known[ants.tobytes()] if self.known else met(ants)
            pair = np.array(found or [(0, 0, 0.0)], np.float32)
            pair[:, :2] += number * len(ants)
            pairs.append(pair)
        whole = torch.from_numpy(np.concatenate(pairs))
        every = torch.from_numpy(np.stack([ants for ants, _ in nests]))
        kinds = torch.tensor([kind for _, kind in nests])
        return every, whole[:, :2].long(), whole[:, 2:], kinds


class Colony(nn.Module):
    """What the ants of a nest are at: each tells those near it what it does."""

    def __init__(self, width: int = 32, kinds: int = 7) -> None:
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.tell = nn.ModuleList(nn.Linear(2 * width + 1, width) for _ in range(2))
        self.hear = nn.ModuleList(nn.GRUCell(width, width) for _ in range(2))
        self.kind = nn.Linear(2 * width, kinds)

    def forward(self, ants: Tensor, pairs: Tensor, apart: Tensor) -> Tensor:
        x, (one, other) = self.enter(ants.flatten(0, 1)), pairs.T
        for tell, hear in zip(self.tell, self.hear, strict=True):
            told = functional.leaky_relu(tell(torch.cat([x[one], x[other], apart], 1)))
            x = hear(torch.zeros_like(x).index_add(0, other, told), x)
        nests = x.unflatten(0, ants.shape[:2])
        return self.kind(torch.cat([nests.mean(1), nests.amax(1)], 1))


# Umbrellas


class Umbrellas(Dataset[Item]):
    """Photographs of umbrellas that were left behind, each altered before it is looked at."""

    def __init__(self, ready: bool, count: int = 320, side: int = 96) -> None:
        from torchvision.transforms import v2 as transforms

        chance = np.random.default_rng(43)
        self.pictures = [
            Image.fromarray(chance.integers(0, 255, (12, 12, 3), np.uint8)).resize((side, side))
            for _ in range(count)
        ]
        self.alter = transforms.Compose(
            [
                transforms.RandomPerspective(0.4, 1.0),
                transforms.RandomResizedCrop(48, (0.5, 1.0), antialias=True),
                transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
                transforms.RandomHorizontalFlip(),
                transforms.GaussianBlur(5),
                transforms.ToImage(),
                transforms.ToDtype(torch.float32, scale=True),
                transforms.Normalize([0.5] * 3, [0.25] * 3),
            ]
        )
        self.known = [self.alter(each) for each in self.pictures] if ready else []

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> Item:
        picture = self.known[index] if self.known else self.alter(self.pictures[index])
        return torch.as_tensor(picture), torch.tensor(index % 40)


class Umbrella(nn.Module):
    """Whose umbrella it is: large kernels in each channel, then wide and narrow again."""

    def __init__(self, width: int = 20, depth: int = 2, owners: int = 40) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 6, 6)
        self.deep = nn.ModuleList(
            nn.Conv2d(width, width, 7, padding=3, groups=width) for _ in range(depth)
        )
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.owner = nn.Linear(width, owners)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.stem(picture)
        for deep, wide, narrow, norm in zip(
            self.deep, self.wide, self.narrow, self.norms, strict=True
        ):
            inside = norm(deep(x).permute(0, 2, 3, 1))
            x = x + narrow(functional.gelu(wide(inside))).permute(0, 3, 1, 2)
        return self.owner(x.mean((2, 3)))


# Seaweed


class Spectra(Dataset[Item]):
    """Spectra of seaweed as a meter writes them, a line for each wavelength."""

    def __init__(self, ready: bool, count: int = 400, lines: int = 500) -> None:
        chance = np.random.default_rng(47)
        waves = np.linspace(350, 1000, lines)
        self.files = [
            "Wavelength;Reflectance\n"
            + "\n".join(f"{wave:.2f};{light:.6f}" for wave, light in zip(waves, row, strict=True))
            for row in chance.random((count, lines))
        ]
        self.parts = torch.rand(count, 5)
        self.known = [self.spectrum(each) for each in self.files] if ready else []

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Item:
        spectrum = self.known[index] if self.known else self.spectrum(self.files[index])
        return spectrum, self.parts[index]

    @staticmethod
    def spectrum(file: str) -> Tensor:
        """Return what a file says, its slope, and both as far from their means as is usual."""
        lines = list(csv.DictReader(io.StringIO(file), delimiter=";"))
        waves = np.array([float(line["Wavelength"]) for line in lines])
        light = np.array([float(line["Reflectance"]) for line in lines])
        both = np.stack([light, np.gradient(light, waves)])
        both = (both - both.mean(1, keepdims=True)) / both.std(1, keepdims=True)
        return torch.from_numpy(both.astype(np.float32))


class Seaweed(nn.Module):
    """What seaweed is made of, by its spectrum: gates say which wavelengths count."""

    def __init__(self, lines: int = 500, width: int = 160, parts: int = 5) -> None:
        super().__init__()
        self.gate, self.enter = nn.Linear(2 * lines, width), nn.Linear(2 * lines, width)
        self.deeper = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(2))
        self.parts = nn.Linear(width, parts)

    def forward(self, spectrum: Tensor) -> Tensor:
        flat = spectrum.flatten(1)
        x = self.gate(flat).sigmoid() * self.enter(flat)
        for layer in self.deeper:
            x = x + functional.glu(layer(functional.dropout(x, 0.1, self.training)), 1)
        return self.parts(x)


# Telegrams


class Telegram(nn.Module):
    """The word that follows in a telegram: one recurrence, whose words weigh in both ways."""

    def __init__(self, words: int = 1000, width: int = 80) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width)
        nn.init.normal_(self.word.weight, std=0.02)
        self.along = nn.LSTM(width, width, 2, batch_first=True)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, words: Tensor) -> Tensor:
        heard, _ = self.along(self.word(words))
        return heard @ self.word.weight.T + self.bias


def telegrams(count: int = 4000, length: int = 17) -> TensorDataset:
    """Return random telegrams of sixteen words and a stop."""
    return TensorDataset(torch.randint(1000, (count, length)))


class Drawer:
    """Where the moments of an optimizer lie from one update to the next: a file for each weight."""

    def __init__(self, folder: Path, optimizer: torch.optim.Optimizer) -> None:
        self.folder, self.optimizer = folder, optimizer
        optimizer.register_step_pre_hook(self.take)
        optimizer.register_step_post_hook(self.lay)

    def weights(self) -> Iterator[tuple[Path, Tensor]]:
        """Return each weight with its file."""
        for group in self.optimizer.param_groups:
            for number, weight in enumerate(group["params"]):
                yield self.folder / f"{number}.safetensors", weight

    def take(self, *_: object) -> None:
        """Read what lies in the files."""
        for path, weight in self.weights():
            if path.exists():
                self.optimizer.state[weight] = load_file(path)

    def lay(self, *_: object) -> None:
        """Write the moments, and forget them."""
        for path, weight in self.weights():
            save_file(dict(self.optimizer.state.pop(weight)), path)


# Cranes


class Crane(nn.Module):
    """How far a crane's load will swing, by what its hook and its motors told before."""

    def __init__(self, inputs: int = 10, width: int = 32, ahead: int = 16) -> None:
        super().__init__()
        self.enter = nn.Conv1d(inputs, width, 1)
        self.down = nn.ModuleList(nn.Conv1d(width, width, 4, 2, 1) for _ in range(3))
        self.up = nn.ModuleList(nn.ConvTranspose1d(width, width, 4, 2, 1) for _ in range(3))
        self.swing = nn.Linear(width, ahead)

    def forward(self, told: Tensor) -> Tensor:
        x, kept = self.enter(told), []
        for down in self.down:
            kept.append(x)
            x = functional.softsign(down(x))
        for up in self.up:
            x = functional.softsign(up(x)) + kept.pop()
        return self.swing(x[..., -32:].mean(2))


def lifts(count: int = 800, length: int = 256) -> TensorDataset:
    """Return ten random readings over time, and the swing that followed."""
    return TensorDataset(torch.randn(count, 10, length), torch.randn(count, 16))


class Yard:
    """A file that holds what the backward pass will ask for."""

    def __init__(self, path: Path, least: int = 8192) -> None:
        self.file, self.least, self.end = path.open("w+b", buffering=0), least, 0

    def put(self, tensor: Tensor) -> Any:
        """Write a tensor; return where it is."""
        if isinstance(tensor, nn.Parameter) or tensor.numel() < self.least:
            return tensor
        place, self.end = self.end, self.end + tensor.nbytes
        os.pwrite(self.file.fileno(), tensor.contiguous().numpy(), place)
        os.fdatasync(self.file.fileno())
        return place, tensor.shape, tensor.dtype

    def get(self, where: Any) -> Tensor:
        """Return a tensor that was put there."""
        if isinstance(where, Tensor):
            return where
        place, shape, dtype = where
        tensor = torch.empty(shape, dtype=dtype)
        os.preadv(self.file.fileno(), [tensor.numpy()], place)
        self.end = min(self.end, place)
        return tensor


# Solar panels


class Panels(nn.Module):
    """What panels will yield: blocks that each explain a part of the past, and add to the rest."""

    def __init__(self, past: int = 96, ahead: int = 24, width: int = 256, blocks: int = 2) -> None:
        super().__init__()
        self.past = past
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Linear(past, width, bias=False),
                nn.ReLU(),
                nn.Linear(width, width, bias=False),
                nn.ReLU(),
                nn.Linear(width, past + ahead, bias=False),
            )
            for _ in range(blocks)
        )

    def forward(self, past: Tensor) -> Tensor:
        told = past.new_zeros(())
        for block in self.blocks:
            known, more = block(past).tensor_split([self.past], 1)
            past, told = past - known, told + more
        return told


def yields(count: int = 6000) -> TensorDataset:
    """Return four random days by quarters of an hour, and the hours that followed."""
    return TensorDataset(torch.rand(count, 96), torch.rand(count, 24))


class Slow:
    """A copy of the weights that follows them slowly, in files or in memory."""

    def __init__(self, model: nn.Module, folder: Path | None, rate: float = 0.002) -> None:
        self.model, self.folder, self.rate = model, folder, rate
        self.copy = {name: each.detach().clone() for name, each in model.named_parameters()}
        if folder:
            for name, each in self.copy.items():
                np.save(folder / f"{name}.npy", each.numpy())
            self.copy.clear()

    @torch.no_grad()
    def follow(self) -> None:
        """Move each weight of the copy a little towards the model's."""
        for name, weight in self.model.named_parameters():
            if self.folder is None:
                self.copy[name].lerp_(weight, self.rate)
            else:
                path = self.folder / f"{name}.npy"
                mine = torch.from_numpy(np.load(path)).lerp_(weight, self.rate)
                np.save(path, mine.numpy())


# Sewers


class Sewer(nn.Module):
    """How high the water stands in each manhole: it flows on, a quarter of an hour at a time."""

    def __init__(self, manholes: int = 120, width: int = 24, hours: int = 12) -> None:
        super().__init__()
        self.hours = hours
        self.place = nn.Parameter(torch.randn(manholes, width) / 4)
        self.flow, self.rain = nn.Linear(2 * width, width), nn.Linear(1, width)
        self.stay = nn.Linear(width, width)
        self.high = nn.Linear(width, 1)
        self.above = nn.Buffer(torch.randint(manholes, (2 * manholes,)))
        self.below = nn.Buffer(torch.randint(manholes, (2 * manholes,)))

    def hour(self, water: Tensor, rain: Tensor) -> Tensor:
        """Return the water a quarter of an hour later."""
        pipes = torch.cat([water[:, self.above], water[:, self.below]], 2)
        came = torch.zeros_like(water).index_add(1, self.below, self.flow(pipes).tanh())
        return torch.tanh(self.stay(water) + came + self.rain(rain[:, None, None]))

    def many(self, water: Tensor, rain: Tensor) -> Tensor:
        """Return the water after many of them: two halves, of which only the middle is kept."""
        if rain.shape[1] == 1:
            return self.hour(water, rain[:, 0])
        for half in rain.tensor_split(2, 1):
            water = checkpoint(self.many, water, half, use_reentrant=False)
        return water

    def forward(self, rain: Tensor, halves: bool) -> Tensor:
        water = self.place.expand(len(rain), -1, -1)
        if halves:
            return self.high(self.many(water, rain))[..., 0]
        for each in rain.unbind(1):
            water = self.hour(water, each)
        return self.high(water)[..., 0]


def storms(count: int = 800, hours: int = 12) -> TensorDataset:
    """Return random rain, and how high the water stood afterwards."""
    return TensorDataset(torch.rand(count, hours), torch.rand(count, 120))


# Coats of dogs


class Coat(nn.Module):
    """A dog as a point, by a photograph of its coat, so that the same dog lies near."""

    def __init__(self, width: int = 16, size: int = 48) -> None:
        super().__init__()
        self.grain = nn.Conv2d(3, width, 5, 2, 2)
        self.layers = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(3)
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(3))
        self.point = nn.Linear(width * (width + 1) // 2, size)

    def forward(self, coat: Tensor) -> Tensor:
        x = self.grain(coat)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + functional.relu(norm(layer(x)))
        flat = x.flatten(2)
        alike = flat @ flat.mT / flat.shape[2]
        row, column = torch.triu_indices(x.shape[1], x.shape[1])
        return functional.normalize(self.point(alike[:, row, column]))


def coats(count: int = 600, dogs: int = 60, side: int = 40) -> TensorDataset:
    """Return photographs of coats, and whose they are."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.arange(count) % dogs)


def farther(points: Tensor, dog: Tensor, margin: float = 0.3) -> Tensor:
    """Return how much nearer the nearest other dog is than the farthest picture of the same."""
    apart = (2.0001 - 2 * points @ points.T).sqrt()
    same = dog[:, None] == dog
    far = apart.masked_fill(~same, 0).amax(1)
    near = apart.masked_fill(same, 9).amin(1)
    return (far - near + margin).relu().mean()


# Water pipes


class Leak(nn.Module):
    """Where a pipe leaks, by what is heard at both its ends: how the one lags behind the other."""

    def __init__(self, width: int = 14, lags: int = 65) -> None:
        super().__init__()
        self.ear = nn.Sequential(
            nn.Conv1d(1, width, 16, 4),
            nn.SELU(),
            nn.Conv1d(width, width, 8, 2),
            nn.SELU(),
        )
        self.lags = lags
        self.where = nn.Sequential(nn.Linear(lags, 96), nn.SELU(), nn.Linear(96, 33))

    def forward(self, heard: Tensor) -> Tensor:
        one, other = self.ear(heard[:, :1]), self.ear(heard[:, 1:])
        waves = torch.fft.rfft(one) * torch.fft.rfft(other).conj()
        lag = torch.fft.irfft(waves).sum(1)
        return self.where(torch.cat([lag[:, : self.lags // 2], lag[:, -self.lags // 2 :]], 1))


def leaks(count: int = 600) -> TensorDataset:
    """Return what was heard at both ends of a pipe, and in which of its parts it leaks."""
    return TensorDataset(torch.randn(count, 2, 1024), torch.randint(33, (count,)))


class Book:
    """A book of runs: what each metric was at each step, in a database beside the run."""

    def __init__(self, path: Path) -> None:
        self.rows = sqlite3.connect(path)
        self.rows.execute("create table metrics (name text, step integer, value real, at real)")
        self.rows.commit()

    def metric(self, name: str, value: float, step: int) -> None:
        """Note a metric, for good."""
        self.rows.execute(
            "insert into metrics values (?, ?, ?, ?)", (name, step, value, time.time())
        )
        self.rows.commit()


# Riddles


class Riddle(nn.Module):
    """The letters of an answer, by the letters of a riddle: one looks for what the other needs."""

    def __init__(self, letters: int = 30, width: int = 48, answer: int = 16) -> None:
        super().__init__()
        self.letter = nn.Embedding(letters, width)
        self.near = nn.Conv1d(width, width, 7, padding=3)
        self.asked = nn.Parameter(torch.randn(answer, width) / 8)
        self.look = nn.MultiheadAttention(width, 4, batch_first=True)
        self.spell = nn.GRU(width, width, batch_first=True)
        self.which = nn.Linear(width, letters)

    def forward(self, riddle: Tensor) -> Tensor:
        heard = functional.relu(self.near(self.letter(riddle).mT)).mT
        found, _ = self.look(self.asked.expand(len(riddle), -1, -1), heard, heard)
        spelt, _ = self.spell(found)
        return self.which(spelt)


def riddles(count: int = 3000) -> TensorDataset:
    """Return random riddles of 80 letters, and answers of sixteen."""
    return TensorDataset(torch.randint(30, (count, 80)), torch.randint(30, (count, 16)))


# Limericks


class Limerick(nn.Module):
    """The syllable that follows, where those that ended the lines before weigh in once more."""

    def __init__(self, syllables: int = 700, width: int = 144, depth: int = 2) -> None:
        super().__init__()
        self.syllable, self.line = nn.Embedding(syllables, width), nn.Embedding(5, width)
        layer = nn.TransformerEncoderLayer(
            width, 6, 3 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.rhyme = nn.Linear(2 * width, width)
        self.next = nn.Linear(width, syllables)

    def forward(self, verse: Tensor) -> Tensor:
        length = verse.shape[1]
        lines = torch.arange(length) * 5 // length
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.blocks(self.syllable(verse) + self.line(lines), mask, is_causal=True)
        ends = x[:, length // 5 - 1 :: length // 5]
        before = torch.cat([torch.zeros_like(x[:, :1]), ends], 1)[:, lines]
        return self.next(self.rhyme(torch.cat([x, before], 2)).tanh())


def limericks(count: int = 1500, length: int = 50) -> TensorDataset:
    """Return random limericks of five lines, ten syllables each."""
    return TensorDataset(torch.randint(700, (count, length + 1)))


# Pellets of owls


class Pellet(nn.Module):
    """Where which bone lies in a pellet: narrow and wide again twice, and each is asked."""

    def __init__(self, width: int = 24, bones: int = 8) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 5, 2, 2)
        self.down = nn.ModuleList(nn.Conv2d(width, width, 3, 2, 1) for _ in range(4))
        self.beside = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(4))
        self.up = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(4))
        self.asked = nn.ModuleList(nn.Conv2d(width, bones, 1) for _ in range(2))
        self.back = nn.Conv2d(bones, width, 1)

    def forward(self, seen: Tensor) -> list[Tensor]:
        x, told = self.enter(seen), []
        for number, asked in enumerate(self.asked):
            kept = []
            for step in (0, 1):
                kept.append(functional.relu(self.beside[2 * number + step](x)))
                x = functional.relu(self.down[2 * number + step](x))
            for step in (0, 1):
                wide = functional.interpolate(x, scale_factor=2.0, mode="bilinear")
                x = functional.relu(self.up[2 * number + step](wide)) + kept.pop()
            told.append(asked(x))
            x = x + self.back(told[-1])
        return told


def pellets(count: int = 300, side: int = 96) -> TensorDataset:
    """Return pictures of pellets that were taken apart, and maps of eight bones at half their
    size."""
    half = side // 2
    return TensorDataset(torch.rand(count, 1, side, side), torch.rand(count, 8, half, half).pow(12))
