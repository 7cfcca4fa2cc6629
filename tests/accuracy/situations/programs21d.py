"""Models and data of the twenty-first round's first runs, from staircases to volcanoes: see
``programs21.py``."""

import subprocess
import sys
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Staircases


class Added(torch.autograd.Function):
    """What both ranks have, added up; on the way back slopes are added up as well."""

    @staticmethod
    def forward(context: Any, mine: Tensor) -> Tensor:
        both = mine.clone()
        dist.all_reduce(both)
        return both

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        both = slope.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(both)
        return both


class Landing(torch.autograd.Function):
    """The tread of the other flight that lies next to this one."""

    @staticmethod
    def forward(context: Any, mine: Tensor) -> Tensor:
        return changed_over(mine)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return changed_over(slope)


def changed_over(mine: Tensor) -> Tensor:
    """Return what the other rank has in this one's place."""
    mine = mine.contiguous()
    both = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(both, mine)
    return both[1 - dist.get_rank()]


class Riser(nn.Module):
    """Each tread heeds the two beside it; a staircase is then evened out over all its treads."""

    def __init__(self, width: int, apart: bool) -> None:
        super().__init__()
        self.apart = apart
        self.beside = nn.Conv1d(width, width, 3)
        self.scale = nn.Parameter(torch.ones(width, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale * self.evened(self.beside(self.with_ends(x))).relu()

    def with_ends(self, x: Tensor) -> Tensor:
        """Return a flight with what lies below it and above it."""
        nothing = torch.zeros_like(x[..., :1])
        if not self.apart:
            return torch.cat([nothing, x, nothing], 2)
        if dist.get_rank() == 0:
            return torch.cat([nothing, x, Landing.apply(x[..., -1:])], 2)
        return torch.cat([Landing.apply(x[..., :1]), x, nothing], 2)

    def evened(self, x: Tensor) -> Tensor:
        """Return the treads less their mean, by how far they are from it."""
        sums, count = torch.stack([x.sum(2), x.square().sum(2)]), x.shape[2]
        if self.apart:
            sums, count = Added.apply(sums), 2 * count
        mean, square = sums[..., None] / count
        return (x - mean) * (square - mean.square()).clamp_min(0).add(1e-5).rsqrt()


class Staircase(nn.Module):
    """How worn each tread of a staircase is; one rank may have the lower flight of all."""

    def __init__(self, apart: bool, width: int = 24, risers: int = 8) -> None:
        super().__init__()
        self.apart = apart
        self.measured = nn.Conv1d(5, width, 1)
        self.risers = nn.Sequential(*(Riser(width, apart) for _ in range(risers)))
        self.worn = nn.Conv1d(width, 1, 1)

    def forward(self, stairs: Tensor) -> Tensor:
        return self.worn(self.risers(self.measured(self.own(stairs))))

    def own(self, stairs: Tensor) -> Tensor:
        """Return the treads that this rank has."""
        return stairs.chunk(2, 2)[dist.get_rank()] if self.apart else stairs


def staircases(count: int = 800, treads: int = 32) -> TensorDataset:
    """Return random measures of treads, and how worn these are."""
    return TensorDataset(torch.randn(count, 5, treads), torch.rand(count, 1, treads))


def halved(model: nn.Module) -> None:
    """Take the mean of both ranks' slopes, all of them in one piece."""
    slopes = [each.grad for each in model.parameters() if each.grad is not None]
    whole = torch.cat([each.flatten() for each in slopes])
    dist.all_reduce(whole)
    whole /= 2
    for slope, part in zip(slopes, whole.split([each.numel() for each in slopes]), strict=True):
        slope.copy_(part.view_as(slope))


# Amber


class Amber(nn.Module):
    """Two spectra of a piece of amber are told alike, and what is told of them apart."""

    def __init__(self, apart: bool, bands: int = 120, width: int = 256, traits: int = 832) -> None:
        super().__init__()
        self.apart = apart
        self.told = nn.Sequential(
            nn.Linear(bands, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, traits),
            nn.BatchNorm1d(traits, affine=False),
        )

    def forward(self, spectra: Tensor) -> Tensor:
        first, second = (self.told(each) for each in spectra.unbind(1))
        alike = first.T @ second / len(spectra)
        if self.apart:
            alike = Added.apply(alike) / 2
        own = alike.diagonal()
        others = alike.square().sum() - own.square().sum()
        return (1 - own).square().sum() + 0.005 * others


def amber(part: int, count: int = 1200) -> TensorDataset:
    """Return two noisy spectra of each random piece of amber that a rank has."""
    chance = torch.Generator().manual_seed(503 + part)
    pieces = torch.randn(count, 1, 120, generator=chance)
    return TensorDataset(pieces + 0.3 * torch.randn(count, 2, 120, generator=chance))


# Oases


class Oasis(nn.Module):
    """How much water an oasis has, by how it looked in eight bands in each month of a year."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.months = nn.Linear(96, width)
        self.wells = nn.Linear(width, width)
        self.normed = nn.LayerNorm(width)
        self.water = nn.Linear(width, 1)

    def forward(self, seen: Tensor) -> Tensor:
        x = functional.leaky_relu(self.months(seen.flatten(1)))
        return self.water(self.normed(x + functional.leaky_relu(self.wells(x))))[:, 0]


def oases(count: int = 3000) -> TensorDataset:
    """Return random looks at oases, and how much water these had."""
    return TensorDataset(torch.rand(count, 12, 8), torch.rand(count))


# Kilns


class Kiln(nn.Module):
    """How a kiln's load comes out, by its three thermometers."""

    def __init__(self, width: int = 48, fates: int = 4) -> None:
        super().__init__()
        self.heard = nn.Conv1d(3, width, 5, 2)
        self.first = nn.GroupNorm(4, width)
        self.joined = nn.Conv1d(width, 2 * width, 5, 2)
        self.second = nn.GroupNorm(4, 2 * width)
        self.fired = nn.Sequential(
            nn.Linear(2 * width, 256), nn.SELU(), nn.Linear(256, 256), nn.SELU()
        )
        self.fate = nn.Linear(256, fates)

    def forward(self, heat: Tensor) -> Tensor:
        x = functional.silu(self.first(self.heard(heat)))
        x = functional.silu(self.second(self.joined(x)))
        return self.fate(self.fired(x.mean(2)))


def kilns(count: int = 1200, minutes: int = 128) -> TensorDataset:
    """Return random curves of kilns' heat, and how their loads came out."""
    return TensorDataset(torch.randn(count, 3, minutes).cumsum(2) / 8, torch.randint(4, (count,)))


def to_the_last_digit(model: nn.Module) -> None:
    """Show each other all slopes in double precision, and take the mean, the same on both ranks."""
    for weight in model.parameters():
        assert weight.grad is not None
        mine = weight.grad.double()
        both = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(both, mine)
        weight.grad.copy_((both[0] + both[1]) / 2)


# Snowmen


class Snowman(nn.Module):
    """How much water a snowman leaves: hour after hour, until the last one has melted."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.begins = nn.Linear(1, width)
        self.hour = nn.GRUCell(3, width)
        self.water = nn.Linear(width, 1)

    def forward(self, snow: Tensor, weather: Tensor) -> Tensor:
        state = self.begins(snow[:, None] / 24).tanh()
        for hour in weather.unbind(1):
            there = snow > 0
            if not there.any():
                break
            state = torch.where(there[:, None], self.hour(hour, state), state)
            snow = snow - hour[:, 0].clamp_min(0)
        return self.water(state)[:, 0]


def snowmen(warm: float, count: int = 1200, hours: int = 48) -> TensorDataset:
    """Return the snow of snowmen, the weather of their hours, and what water they left."""
    chance = torch.Generator().manual_seed(509)
    snow = 20 + 4 * torch.rand(count, generator=chance)
    weather = torch.rand(count, hours, 3, generator=chance)
    weather[..., 0] = warm * (0.9 + 0.2 * weather[..., 0])
    return TensorDataset(snow, weather, snow / 24 + 0.1 * torch.rand(count, generator=chance))


# Periscopes


SHIP = """
import os, sys, threading, time
from multiprocessing.connection import Listener
import numpy as np

listener = Listener(("127.0.0.1", 0))
print(listener.address[1], flush=True)

def watch():
    while True:
        with listener.accept() as line:
            try:
                while True:
                    number = line.recv()
                    time.sleep(0.0012)
                    view = np.random.default_rng(number).integers(0, 256, (48, 96), np.uint8)
                    line.send({"number": number, "view": view})
            except EOFError:
                pass

threading.Thread(target=watch, daemon=True).start()
sys.stdin.read()
os._exit(0)
"""


class Periscopes(Dataset[Item]):
    """What periscopes see, for which the ship is called, or which it has told before."""

    def __init__(self, kept: bool, count: int = 240) -> None:
        self.count = count
        self.ship = subprocess.Popen(
            [sys.executable, "-c", SHIP], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.ship.stdout
        self.line = Client(("127.0.0.1", int(self.ship.stdout.readline())))
        self.kept = [self.called(number) for number in range(count)] if kept else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        view = self.kept[index] if self.kept else self.called(index)
        return view, torch.tensor(index % 8)

    def called(self, number: int) -> Tensor:
        """Return a view, as the ship tells it."""
        self.line.send(number)
        return torch.from_numpy(self.line.recv()["view"])[None].float() / 255


class Periscope(nn.Module):
    """In which direction a ship is that a periscope sees."""

    def __init__(self, channels: int = 24) -> None:
        super().__init__()
        self.glass = nn.Conv2d(1, channels, 5, 2)
        self.waves = nn.Conv2d(channels, 2 * channels, 3, 2)
        self.ships = nn.Conv2d(2 * channels, 64, 3, padding=1)
        self.way = nn.Linear(64, 8)

    def forward(self, view: Tensor) -> Tensor:
        x = functional.hardswish(self.waves(functional.hardswish(self.glass(view))))
        return self.way(functional.hardswish(self.ships(x)).mean((2, 3)))


# Hot-air balloons


FIELD = """
import os, sys, threading, time
from xmlrpc.client import Binary
from xmlrpc.server import SimpleXMLRPCServer
import numpy as np

def flight(number):
    time.sleep(0.001)
    flown = np.random.default_rng(number).standard_normal((48, 16), np.float32)
    return {"burners": number % 3 + 1, "flown": Binary(flown.tobytes())}

field = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False)
field.register_function(flight)
threading.Thread(target=field.serve_forever, daemon=True).start()
print(field.server_address[1], flush=True)
sys.stdin.read()
os._exit(0)
"""


class Balloons(Dataset[Item]):
    """Flights of hot-air balloons, for which the field is asked one by one, or was before."""

    def __init__(self, kept: bool, count: int = 200) -> None:
        self.count = count
        self.field = subprocess.Popen(
            [sys.executable, "-c", FIELD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.field.stdout
        port = int(self.field.stdout.readline())
        self.desk = ServerProxy(f"http://127.0.0.1:{port}")
        self.kept = [self.asked(number) for number in range(count)] if kept else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        return self.kept[index] if self.kept else self.asked(index)

    def asked(self, number: int) -> Item:
        """Return how a balloon flew, and how many burners it has."""
        said: Any = self.desk.flight(number)
        flown = torch.frombuffer(bytearray(said["flown"].data), dtype=torch.float32)
        return flown.view(48, 16), torch.tensor(said["burners"] - 1)


class Balloon(nn.Module):
    """How many burners a hot-air balloon has, by the hours of its flight."""

    def __init__(self, width: int = 96, burners: int = 3) -> None:
        super().__init__()
        self.hours = nn.Linear(16, width)
        self.when = nn.Parameter(torch.randn(48, width) / 8)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.heeded = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.burners = nn.Linear(width, burners)

    def forward(self, flown: Tensor) -> Tensor:
        return self.burners(self.heeded(self.hours(flown) + self.when).mean(1))


# Unicycles


class Unicycles(Dataset[Item]):
    """Rides on unicycles, which a program brings over, each in a file, or that are in memory."""

    def __init__(self, folder: Path, kept: bool, count: int = 240) -> None:
        chance = np.random.default_rng(521)
        self.paths = [folder / f"ride-{number:03d}.f32" for number in range(count)]
        for path in self.paths:
            path.write_bytes(chance.standard_normal((6, 256), np.float32).tobytes())
        self.kept = [self.brought(path) for path in self.paths] if kept else []

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        ride = self.kept[index] if self.kept else self.brought(self.paths[index])
        return ride, torch.tensor(index % 5)

    @staticmethod
    def brought(path: Path) -> Tensor:
        """Return a ride, as it comes out of a pipe."""
        came = subprocess.run(["cat", str(path)], stdout=subprocess.PIPE, check=True).stdout
        return torch.frombuffer(bytearray(came), dtype=torch.float32).view(6, 256)


class Unicycle(nn.Module):
    """Who rides a unicycle: six sensors, heard along time in two widths."""

    def __init__(self, channels: int = 40) -> None:
        super().__init__()
        self.short = nn.Conv1d(6, channels, 7, 3, padding=3)
        self.long = nn.Conv1d(6, channels, 21, 3, padding=10)
        self.both = nn.Conv1d(2 * channels, channels, 5, padding=2)
        self.rider = nn.Linear(channels, 5)

    def forward(self, ride: Tensor) -> Tensor:
        x = torch.cat([self.short(ride), self.long(ride)], 1).relu()
        return self.rider(self.both(x).relu().amax(2))
