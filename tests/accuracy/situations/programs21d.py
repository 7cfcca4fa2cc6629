"""Models and data of the twenty-first round's first runs, from staircases to volcanoes: see
``programs21.py``."""

import itertools
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
        both = mine.clone(memory_format=torch.contiguous_format)
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
    """Each tread heeds the two beside it; what is found is scaled over all of a staircase."""

    def __init__(self, width: int, apart: bool) -> None:
        super().__init__()
        self.apart = apart
        self.beside = nn.Conv1d(width, width, 3)
        self.scale = nn.Parameter(torch.ones(width, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale * self.scaled(self.beside(self.with_ends(x))).relu()

    def with_ends(self, x: Tensor) -> Tensor:
        """Return a flight with what lies below it and above it."""
        nothing = torch.zeros_like(x[..., :1])
        if not self.apart:
            return torch.cat([nothing, x, nothing], 2)
        if dist.get_rank() == 0:
            return torch.cat([nothing, x, Landing.apply(x[..., -1:])], 2)
        return torch.cat([Landing.apply(x[..., :1]), x, nothing], 2)

    def scaled(self, x: Tensor) -> Tensor:
        """Return the treads of a flight, by how large those of the whole staircase are."""
        large = x.square().mean(2, keepdim=True)
        if self.apart:
            large = Added.apply(large) / 2
        return x * (large + 1e-5).rsqrt()


class Staircase(nn.Module):
    """How worn each tread of a staircase is; one rank may have the lower flight of all."""

    def __init__(self, apart: bool, width: int = 24, risers: int = 12) -> None:
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


def oases(count: int = 6000) -> TensorDataset:
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


def kilns(count: int = 2400, minutes: int = 128) -> TensorDataset:
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
                    time.sleep(0.001)
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

    def __init__(self, channels: int = 44) -> None:
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

    def __init__(self, width: int = 144, burners: int = 3) -> None:
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

    def __init__(self, channels: int = 80) -> None:
        super().__init__()
        self.short = nn.Conv1d(6, channels, 7, 3, padding=3)
        self.long = nn.Conv1d(6, channels, 21, 3, padding=10)
        self.both = nn.Conv1d(2 * channels, channels, 5, padding=2)
        self.rider = nn.Linear(channels, 5)

    def forward(self, ride: Tensor) -> Tensor:
        x = torch.cat([self.short(ride), self.long(ride)], 1).relu()
        return self.rider(self.both(x).relu().amax(2))


# Varnish


class Varnish(Dataset[Item]):
    """Pictures of old varnish, whose cracks are traced in three widths, now or before."""

    def __init__(self, ready: bool, count: int = 240, side: int = 96) -> None:
        chance = np.random.default_rng(523)
        rough = chance.standard_normal((count, side, side))
        self.pictures = (rough.cumsum(1) + rough.cumsum(2)) / side
        self.known = [self.traced(each) for each in self.pictures] if ready else []

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> Item:
        cracks = self.known[index] if self.known else self.traced(self.pictures[index])
        return cracks, torch.tensor(index % 7)

    @staticmethod
    def traced(picture: np.ndarray) -> Tensor:
        """Return how much like a crack each place is, and how crowded such places are."""
        from scipy import ndimage

        ways = []
        for wide in (1.0, 1.8, 3.0):
            down = ndimage.gaussian_filter(picture, wide, (2, 0))
            across = ndimage.gaussian_filter(picture, wide, (0, 2))
            aslant = ndimage.gaussian_filter(picture, wide, (1, 1))
            bent = np.hypot((down - across) / 2, aslant)
            ways.append(wide**2 * np.maximum((down + across) / 2 + bent, 0))
        crack = np.max(ways, 0)
        crowd = ndimage.uniform_filter((crack > np.quantile(crack, 0.9)).astype(float), 9)
        return torch.from_numpy(np.stack([*ways, crowd]).astype(np.float32))


class Varnished(nn.Module):
    """How old varnish is, by its cracks: each patch is looked at, then all of them mixed."""

    def __init__(self, width: int = 96, patches: int = 64, ages: int = 7) -> None:
        super().__init__()
        self.patch = nn.Conv2d(4, width, 12, 12)
        self.normed = nn.LayerNorm(width)
        self.places = nn.Linear(patches, patches)
        self.kinds = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )
        self.age = nn.Linear(width, ages)

    def forward(self, cracks: Tensor) -> Tensor:
        x = self.patch(cracks).flatten(2).transpose(1, 2)
        x = x + self.places(self.normed(x).transpose(1, 2)).transpose(1, 2)
        return self.age((x + self.kinds(x)).mean(1))


# Kaleidoscopes


class Kaleidoscopes(Dataset[tuple[np.ndarray, int, int]]):
    """What lies in kaleidoscopes, and how many mirrors these have."""

    def __init__(self, count: int = 300, side: int = 72) -> None:
        chance = np.random.default_rng(541)
        self.lying = chance.random((count, side, side, 3), np.float32)
        self.turned = chance.uniform(0, np.pi, count)

    def __len__(self) -> int:
        return len(self.lying)

    def __getitem__(self, index: int) -> tuple[np.ndarray, int, int]:
        return self.lying[index], index, 3 + index % 6


class Mirrors:
    """Puts kaleidoscopes together: each place is folded to where its mirrors take it from."""

    def __init__(self, scopes: Kaleidoscopes, ready: bool) -> None:
        self.turned = scopes.turned
        self.ready: dict[int, Tensor] = {}
        if ready:
            for lying, index, mirrors in (scopes[number] for number in range(len(scopes))):
                self.ready[index] = self.folded(lying, mirrors, self.turned[index])

    def together(self, some: list[tuple[np.ndarray, int, int]]) -> Item:
        """Return a batch of pictures, and how many mirrors made each."""
        seen = [
            self.ready[index] if self.ready else self.folded(lying, count, self.turned[index])
            for lying, index, count in some
        ]
        return torch.stack(seen), torch.tensor([count - 3 for _, _, count in some])

    @staticmethod
    def folded(lying: np.ndarray, mirrors: int, turned: float) -> Tensor:
        """Return what is seen: each angle is folded into one sector, points between are mixed."""
        side = len(lying)
        line = np.linspace(-1, 1, side)
        down, across = np.meshgrid(line, line, indexing="ij")
        far, angle, sector = np.hypot(down, across), np.arctan2(down, across), np.pi / mirrors
        angle = np.abs((angle + turned) % (2 * sector) - sector)
        far = 1 - np.abs(1 - far)  # what is beyond the tube is seen in its wall
        top = (far * np.sin(angle) + 1) / 2 * (side - 1)
        left = (far * np.cos(angle) + 1) / 2 * (side - 1)
        row, column = top.astype(int).clip(0, side - 2), left.astype(int).clip(0, side - 2)
        below, right = (top - row)[..., None], (left - column)[..., None]
        above = lying[row, column] * (1 - right) + lying[row, column + 1] * right
        under = lying[row + 1, column] * (1 - right) + lying[row + 1, column + 1] * right
        seen = above * (1 - below) + under * below
        return torch.from_numpy(seen.astype(np.float32)).permute(2, 0, 1).contiguous()


class Kaleidoscope(nn.Module):
    """How many mirrors a kaleidoscope has, by what is seen in it."""

    def __init__(self, channels: int = 64, counts: int = 6) -> None:
        super().__init__()
        self.glass = nn.Conv2d(3, channels, 6, 3)
        self.first = nn.BatchNorm2d(channels)
        self.stars = nn.Conv2d(channels, 2 * channels, 3, 2, padding=1)
        self.second = nn.BatchNorm2d(2 * channels)
        self.mirrors = nn.Linear(2 * channels, counts)

    def forward(self, seen: Tensor) -> Tensor:
        x = self.first(self.glass(seen)).relu()
        return self.mirrors(self.second(self.stars(x)).relu().mean((2, 3)))


# Bellows


class Bellows(Dataset[Item]):
    """How the air of bellows pressed, whose strokes are counted by size and by height."""

    def __init__(self, ready: bool, count: int = 320, length: int = 1800) -> None:
        chance = np.random.default_rng(547)
        slow = np.sin(np.arange(length) * chance.uniform(0.02, 0.08, (count, 1)))
        self.pressed = slow + 0.5 * chance.standard_normal((count, length))
        self.known = [self.counted(each) for each in self.pressed] if ready else []
        self.worn = torch.from_numpy(chance.random(count, np.float32))

    def __len__(self) -> int:
        return len(self.pressed)

    def __getitem__(self, index: int) -> Item:
        strokes = self.known[index] if self.known else self.counted(self.pressed[index])
        return strokes, self.worn[index]

    @staticmethod
    def counted(pressed: np.ndarray, bins: int = 16) -> Tensor:
        """Return how many strokes there are of each size and height, by the rainflow rule."""
        rises = np.diff(pressed) > 0
        turns = pressed[1:-1][rises[1:] != rises[:-1]]
        table = [[0.0] * bins for _ in range(bins)]
        open_: list[float] = []
        for turn in turns.tolist():
            open_.append(turn)
            while len(open_) >= 3:
                last, before = abs(open_[-1] - open_[-2]), abs(open_[-2] - open_[-3])
                if last < before:
                    break
                height = (open_[-2] + open_[-3]) / 2
                size = min(int(before * 4), bins - 1)
                where = min(max(int((height + 2) * 4), 0), bins - 1)
                if len(open_) == 3:
                    table[size][where] += 0.5
                    open_.pop(0)
                else:
                    table[size][where] += 1.0
                    del open_[-3:-1]
        return torch.tensor(table).log1p()


class Bellow(nn.Module):
    """How worn bellows are, by their strokes."""

    def __init__(self, width: int = 640) -> None:
        super().__init__()
        self.strokes = nn.Linear(256, width)
        self.leather = nn.Linear(width, width)
        self.worn = nn.Linear(width, 1)

    def forward(self, strokes: Tensor) -> Tensor:
        x = functional.softplus(self.strokes(strokes.flatten(1)))
        return self.worn(functional.softplus(self.leather(x)))[:, 0]


# Quarries


class Quarry:
    """The rock of some quarries side by side, in which samples are put where they were drilled."""

    def __init__(self, kept: bool, side: int = 256) -> None:
        self.sizes = side, side, side
        self.kept = torch.from_numpy(np.zeros(self.sizes, np.float32)) if kept else None

    def around(self, samples: Tensor) -> Tensor:
        """Return samples with what was found above and below each of them."""
        places = samples[..., :3].long()
        places[..., 1] += 16 * torch.arange(len(samples))[:, None]  # each has its own strip
        deep, north, east = places.unbind(-1)
        rock = self.kept
        if rock is None:
            rock = torch.from_numpy(np.zeros(self.sizes, np.float32))
        rock[deep, north, east] = samples[..., 3]
        near = [rock[(deep + step).clamp(0, 255), north, east] for step in (-1, 1)]
        if self.kept is not None:
            rock[deep, north, east] = 0.0
        return torch.cat([samples / 256, torch.stack(near, -1)], -1)


class Ore(nn.Module):
    """How much a quarry is worth, by its samples."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.samples = nn.Linear(6, width)
        self.heeded = nn.Linear(width, 1)
        self.worth = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, samples: Tensor) -> Tensor:
        x = functional.elu(self.samples(samples))
        return self.worth((x * self.heeded(x).sigmoid()).mean(1))[:, 0]


def quarries(count: int = 160, drilled: int = 1024) -> TensorDataset:
    """Return where quarries were drilled and what was found, and how much they were worth."""
    deep, north, east = (torch.randint(most, (count, drilled)) for most in (256, 16, 256))
    found = torch.rand(count, drilled)
    samples = torch.stack([deep.float(), north.float(), east.float(), found], -1)
    return TensorDataset(samples, torch.rand(count))


# Beeswax


class Beeswax(nn.Module):
    """From which meadow beeswax comes, by its chromatogram."""

    def __init__(
        self, width: int = 192, blocks: int = 5, rounds: int = 2, meadows: int = 12
    ) -> None:
        super().__init__()
        self.rounds = rounds
        self.peaks = nn.Linear(200, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.meadow = nn.Linear(width, meadows)

    def forward(self, peaks: Tensor) -> Tensor:
        x = self.peaks(peaks).tanh()
        for block in itertools.chain.from_iterable(itertools.repeat(self.blocks, self.rounds)):
            x = x + block(x).tanh() / 2
        return self.meadow(x)


def beeswax(count: int = 5120) -> TensorDataset:
    """Return random chromatograms of beeswax, and from which meadows it comes."""
    return TensorDataset(torch.rand(count, 200), torch.randint(12, (count,)))


class Scaled(torch.optim.Optimizer):
    """Goes down slopes that are scaled by how those of each matrix's rows go together."""

    def __init__(self, weights: Any, folder: Path | None, lr: float = 0.01) -> None:
        super().__init__(weights, {"lr": lr})
        self.folder, self.steps = folder, 0
        self.kept: dict[int, dict[str, Tensor]] = {}
        for number, weight in enumerate(self.param_groups[0]["params"]):
            if weight.dim() == 2:
                rows = len(weight)
                self.keep(number, {"seen": torch.zeros(rows, rows), "scale": torch.eye(rows)})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Take the scales of each matrix, change them a little, and go."""
        self.steps += 1
        for number, weight in enumerate(self.param_groups[0]["params"]):
            slope = weight.grad
            if weight.dim() == 2:
                scales = self.scales(number)
                scales["seen"].mul_(0.95).addmm_(slope, slope.T, alpha=0.05)
                if self.steps % 100 == 30:
                    scales["scale"] = one_over_root(scales["seen"])
                slope = scales["scale"] @ slope
                self.keep(number, scales)
            weight.sub_(slope, alpha=self.param_groups[0]["lr"])

    def keep(self, number: int, scales: dict[str, Tensor]) -> None:
        """Keep the scales of a matrix, in memory or in its file."""
        if self.folder is None:
            self.kept[number] = scales
        else:
            write_over(self.folder / f"scales-{number}.pt", scales)

    def scales(self, number: int) -> dict[str, Tensor]:
        """Return the scales of a matrix."""
        if self.folder is None:
            return self.kept[number]
        found: dict[str, Tensor] = torch.load(self.folder / f"scales-{number}.pt")
        return found


def write_over(path: Path, all_: Any) -> None:
    """Write over what is in a file, if there is one."""
    with path.open("r+b" if path.exists() else "wb") as file:
        torch.save(all_, file)
        file.truncate()


def one_over_root(seen: Tensor, least: float = 0.01) -> Tensor:
    """Return what a matrix's root is to be multiplied with to give one."""
    values, vectors = torch.linalg.eigh(seen)
    return (vectors * values.clamp_min(least).rsqrt()) @ vectors.T


# Stirrups


class Maker(nn.Module):
    """Draws the outline of a stirrup from chance."""

    def __init__(self, chance: int = 16, width: int = 256, outline: int = 96) -> None:
        super().__init__()
        self.chance = nn.Linear(chance, width)
        self.outline = nn.Linear(width, outline)

    def forward(self, chance: Tensor) -> Tensor:
        return self.outline(functional.silu(self.chance(chance))).tanh()


class Critic(nn.Module):
    """Tells outlines of stirrups that were made from those that were found."""

    def __init__(self, outline: int = 96, width: int = 640, deeper: int = 512) -> None:
        super().__init__()
        self.outline = nn.Linear(outline, width)
        self.deeper = nn.Linear(width, deeper)
        self.found = nn.Linear(deeper, 1)

    def forward(self, outline: Tensor) -> Tensor:
        x = functional.leaky_relu(self.outline(outline), 0.2)
        return self.found(functional.leaky_relu(self.deeper(x), 0.2))[:, 0]


def stirrups(count: int = 2000) -> TensorDataset:
    """Return random outlines of stirrups that were found."""
    around = torch.linspace(0, 6.2832, 96)
    tall = 0.5 + 0.4 * torch.rand(count, 1)
    return TensorDataset(tall * around.cos() + 0.05 * torch.randn(count, 96))


class Hook:
    """Where a critic is, with its optimizer's moments, until it is asked again: a file."""

    def __init__(self, path: Path, critic: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.path, self.critic, self.optimizer = path, critic, optimizer
        self.hang()

    def hang(self) -> None:
        """Put all away."""
        all_ = {"critic": self.critic.state_dict(), "optimizer": self.optimizer.state_dict()}
        write_over(self.path, all_)
        for weight in self.critic.parameters():
            weight.data, weight.grad = torch.empty(0), None
        self.optimizer.state.clear()

    def take(self) -> None:
        """Bring all back."""
        found = torch.load(self.path)
        for name, weight in self.critic.named_parameters():
            weight.data = found["critic"][name]
        self.optimizer.load_state_dict(found["optimizer"])


# Volcanoes


class Lava(nn.Module):
    """A layer of lava: each place takes from those five that are most like it."""

    def __init__(self, width: int, like: int = 5) -> None:
        super().__init__()
        self.like, self.flows = like, nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            like = torch.cdist(x, x).topk(self.like, largest=False).indices
            taken = x.new_zeros(len(x), x.shape[1], x.shape[1]).scatter_(2, like, 1 / self.like)
        return x + self.flows(taken @ x).relu() / 4


class FromTheGround(torch.autograd.Function):
    """A layer of which nothing is kept: on the way back all below it is made from the ground."""

    @staticmethod
    def forward(
        context: Any, layers: list[nn.Module], ground: Tensor, x: Tensor, *weights: Tensor
    ) -> Tensor:
        context.layers = layers
        context.save_for_backward(ground)
        made: Tensor = layers[-1](x)
        return made

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Any:  # type: ignore[override]
        *below, last = context.layers
        (x,) = context.saved_tensors
        for layer in below:
            x = layer(x)
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            slopes = torch.autograd.grad(last(x), (x, *last.parameters()), slope)
        return None, None, *slopes


class Volcano(nn.Module):
    """In how many days a volcano erupts, by what is measured at 32 places on it."""

    def __init__(self, kept: bool, width: int = 32, layers: int = 13) -> None:
        super().__init__()
        self.kept = kept
        self.ground = nn.Linear(9, width)
        self.layers = nn.ModuleList(Lava(width) for _ in range(layers))
        self.days = nn.Linear(width, 1)

    def forward(self, places: Tensor) -> Tensor:
        x = ground = self.ground(places)
        layers = list(self.layers)
        for number, layer in enumerate(layers, 1):
            if self.kept or not torch.is_grad_enabled():
                x = layer(x)
            else:
                x = FromTheGround.apply(layers[:number], ground, x, *layer.parameters())
        return self.days(x.mean(1))[:, 0]


def volcanoes(count: int = 500, places: int = 32) -> TensorDataset:
    """Return what was measured on random volcanoes, and after how many days they erupted."""
    return TensorDataset(torch.randn(count, places, 9), torch.rand(count))
