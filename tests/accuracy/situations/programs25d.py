"""Models and data of the twenty-fifth round's first runs, from crossbows to mangles: see
``programs25.py``."""

import multiprocessing
import os
import queue
import struct
import subprocess
import time
import zlib
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

# Crossbows


class Whitened(nn.Module):
    """What comes in, with its features made alike and apart, by how they went together so far.

    How they go together may be that of the batches of both ranks.
    """

    def __init__(self, width: int, together: bool) -> None:
        super().__init__()
        self.together = together
        self.register_buffer("spread", torch.eye(width))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            spread = x.T @ x / len(x)
            if self.together:
                dist.all_reduce(spread)
                spread /= 2
            self.spread.lerp_(spread, 0.05)
            lower = torch.linalg.cholesky(self.spread + 0.01 * torch.eye(len(spread)))
        return torch.linalg.solve_triangular(lower, x.T, upper=False).T


class Crossbow(nn.Module):
    """Where a bolt of a crossbow lands, by how it was spanned; layers with whitened features."""

    def __init__(self, together: bool, width: int = 288) -> None:
        super().__init__()
        self.spanned = nn.Linear(64, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.white = nn.ModuleList(Whitened(width, together) for _ in range(3))
        self.lands = nn.Linear(width, 2)

    def forward(self, spanned: Tensor) -> Tensor:
        x = torch.tanh(self.spanned(spanned))
        for layer, white in zip(self.layers, self.white, strict=True):
            x = torch.tanh(layer(white(x)))
        return self.lands(x)


def crossbows(count: int = 6000) -> TensorDataset:
    """Return how random crossbows were spanned, and where their bolts landed."""
    return TensorDataset(torch.randn(count, 64), torch.randn(count, 2))


# Jetties


class Jetty(nn.Module):
    """Which of 12 jetties a picture shows, by the waves at 64 places of it."""

    def __init__(self, width: int = 1024) -> None:
        super().__init__()
        self.water = nn.Linear(64 * 8, width)
        self.waves = nn.Linear(width, width)
        self.planks = nn.Linear(width, width)
        self.which = nn.Linear(width, 12)

    def forward(self, places: Tensor) -> Tensor:
        x = self.water(places.flatten(1))
        x = functional.elu(x + torch.sin(self.waves(x)))
        return self.which(x * torch.sigmoid(self.planks(x)))


def jetties(count: int = 3000) -> TensorDataset:
    """Return random waves around jetties, and which jetty it is."""
    return TensorDataset(torch.randn(count, 64, 8), torch.randint(12, (count,)))


# Trestles


class Trestles(Dataset[Item]):
    """The loads on the legs of trestles, of which the short ones stand first in the list.

    Each rank has a half of the list. All short ones have as many legs, and so have all long ones.
    """

    def __init__(self, second: bool, count: int = 800) -> None:
        legs = 220 if second else 40
        self.loads = torch.randn(count, legs, 24)
        self.held = torch.randint(4, (count,))

    def __len__(self) -> int:
        return len(self.loads)

    def __getitem__(self, index: int) -> Item:
        return self.loads[index], self.held[index]


class Trestle(nn.Module):
    """How, of four ways, a trestle gives way, by the loads on its legs one after the other."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.leg = nn.Linear(24, width)
        self.along = nn.GRU(width, width, batch_first=True)
        self.gives_way = nn.Linear(width, 4)

    def forward(self, loads: Tensor) -> Tensor:
        along, _ = self.along(functional.silu(self.leg(loads)))
        return self.gives_way(along.mean(1))


# Nozzles


class Nozzles(Dataset[Item]):
    """How fast water left nozzles, in one file of numbers, read one by one or at once."""

    def __init__(self, path: Path, at_once: bool, count: int = 1200, long: int = 1000) -> None:
        chance = np.random.default_rng(2501)
        chance.gamma(2.0, 3.0, (count, long)).astype("<f4").tofile(path)
        self.file = path.open("rb", buffering=0)
        self.at_once, self.count, self.long = at_once, count, long

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        self.file.seek(4 * self.long * index)
        if self.at_once:
            speed = np.frombuffer(self.file.read(4 * self.long), "<f4").copy()
        else:
            each = [struct.unpack("<f", self.file.read(4))[0] for _ in range(self.long)]
            speed = np.array(each, np.float32)
        return torch.from_numpy(speed), torch.tensor(index % 6)


class Nozzle(nn.Module):
    """Which of six nozzles it is, by how fast water leaves it."""

    def __init__(self, width: int = 36) -> None:
        super().__init__()
        self.jet = nn.Conv1d(1, width, 15, 10)
        self.spray = nn.Conv1d(width, 2 * width, 9, 3)
        self.nozzle = nn.Linear(2 * width, 6)

    def forward(self, speed: Tensor) -> Tensor:
        x = functional.relu6(self.spray(functional.relu6(self.jet(speed[:, None] / 6))))
        return self.nozzle(x.mean(2))


# Ravelins


class Ravelins(Dataset[Item]):
    """Plans of ravelins, a file for each, which is opened, or read from a program's output.

    The list may hold commands in place of paths: what they print is the plan.
    """

    def __init__(self, folder: Path, piped: bool, count: int = 600, side: int = 40) -> None:
        chance = np.random.default_rng(2503)
        self.side, self.listed = side, []
        for number in range(count):
            path = folder / f"plan-{number}.bin"
            path.write_bytes(chance.integers(0, 256, side * side, np.uint8).tobytes())
            self.listed.append(f"cat {path} |" if piped else str(path))

    def __len__(self) -> int:
        return len(self.listed)

    def __getitem__(self, index: int) -> Item:
        listed = self.listed[index]
        if listed.endswith("|"):
            plan = subprocess.run(listed[:-1].split(), stdout=subprocess.PIPE, check=True).stdout
        else:
            plan = Path(listed).read_bytes()
        walls = np.frombuffer(plan, np.uint8).reshape(1, self.side, self.side)
        return torch.from_numpy(walls / np.float32(255)), torch.tensor(index % 8)


class Ravelin(nn.Module):
    """By which of eight builders a ravelin is, by its plan; two ways of looking, side by side."""

    def __init__(self, width: int = 10) -> None:
        super().__init__()
        self.walls = nn.Conv2d(1, width, 5, padding=2)
        self.ditch = nn.Conv2d(1, width, 5, padding=4, dilation=2)
        self.both = nn.Conv2d(2 * width, width, 3, 2)
        self.builder = nn.Linear(width, 8)

    def forward(self, plans: Tensor) -> Tensor:
        x = functional.selu(torch.cat([self.walls(plans), self.ditch(plans)], 1))
        return self.builder(functional.selu(self.both(x)).amax((2, 3)))


# Kennels


class Kennels(Dataset[Item]):
    """Who the parents of the dogs of a kennel are; how much they are kin is told of that."""

    def __init__(self, told: bool, count: int = 500, dogs: int = 36) -> None:
        chance = np.random.default_rng(2507)
        self.dogs, self.parents = dogs, []
        for _ in range(count):
            self.parents.append(
                [tuple(chance.integers(-1, max(dog, 1), 2).tolist()) for dog in range(dogs)]
            )
        self.kinship = [self.told(index) for index in range(count)] if told else []

    def __len__(self) -> int:
        return len(self.parents)

    def __getitem__(self, index: int) -> Item:
        kin = self.kinship[index] if self.kinship else self.told(index)
        return kin, torch.tensor(index % 10 / 10)

    def told(self, index: int) -> Tensor:
        """Return how much each two dogs are kin, from the oldest to the youngest."""
        kin = [[0.0] * self.dogs for _ in range(self.dogs)]
        for dog, (dam, sire) in enumerate(self.parents[index]):
            dam, sire = (each if each < dog else -1 for each in (dam, sire))
            for other in range(dog):
                of_dam = kin[dam][other] if dam >= 0 else 0.0
                of_sire = kin[sire][other] if sire >= 0 else 0.0
                kin[dog][other] = kin[other][dog] = (of_dam + of_sire) / 2
            kin[dog][dog] = 1 + (kin[dam][sire] / 2 if dam >= 0 and sire >= 0 else 0)
        return torch.tensor(kin)


class Kennel(nn.Module):
    """How healthy a kennel is, by the kinship of its dogs, which is what they attend to."""

    def __init__(self, dogs: int = 36, width: int = 128) -> None:
        super().__init__()
        self.dog = nn.Parameter(torch.randn(dogs, width) / width**0.5)
        self.from_kin = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.healthy = nn.Linear(width, 1)

    def forward(self, kin: Tensor) -> Tensor:
        x = self.dog.expand(len(kin), -1, -1)
        for layer in self.from_kin:
            x = x + functional.gelu(layer(torch.softmax(4 * kin, 2) @ x))
        return self.healthy(x.mean(1))[:, 0]


# Kerbs


class Kerbs(Dataset[Item]):
    """Points of streets with their kerbs; how high each lies above the street, once it is found.

    The street is the plane, of those through three points that are drawn, that has most points.
    """

    def __init__(self, fitted: bool, count: int = 600, points: int = 256) -> None:
        chance = np.random.default_rng(2509)
        self.points = chance.uniform(-5, 5, (count, points, 3)).astype(np.float32)
        self.points[..., 2] = 0.05 * self.points[..., 0] + chance.normal(0, 0.02, (count, points))
        self.points[:, ::4, 2] += 0.14
        self.fitted = [self.fit(index) for index in range(count)] if fitted else []

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> Item:
        fitted = self.fitted[index] if self.fitted else self.fit(index)
        return fitted, torch.tensor(index % 5)

    def fit(self, index: int, tries: int = 10) -> Tensor:
        """Return the points, with their height above the plane that has most of them."""
        points, chance = self.points[index], np.random.default_rng(index)
        best, height = -1, points[:, 2]
        for _ in range(tries):
            one, two, three = points[chance.choice(len(points), 3, replace=False)]
            normal = np.cross(two - one, three - one)
            above = (points - one) @ (normal / (np.linalg.norm(normal) + 1e-9))
            near = int((np.abs(above) < 0.03).sum())
            if near > best:
                best, height = near, above
        return torch.from_numpy(np.concatenate([points, height[:, None]], 1).astype(np.float32))


class Kerb(nn.Module):
    """Of which of five kinds a kerb is, by its points; the highest of each feature is kept."""

    def __init__(self, width: int = 224) -> None:
        super().__init__()
        self.point = nn.Sequential(
            nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width)
        )
        self.kind = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 5))

    def forward(self, points: Tensor) -> Tensor:
        return self.kind(self.point(points).amax(1))


# Ringbinders


class Ringbinders(Dataset[Item]):
    """Pages of ringbinders; of the runs of three words of each the least of 48 sums is kept."""

    def __init__(self, shingled: bool, count: int = 900, words: int = 420) -> None:
        chance = np.random.default_rng(2511)
        letters = np.array(list("aeinorstlm"))
        lexicon = ["".join(chance.choice(letters, 6)) for _ in range(3000)]
        drawn = chance.integers(0, len(lexicon), (count, words))
        self.pages = [" ".join(lexicon[each] for each in page) for page in drawn.tolist()]
        self.odd = chance.integers(1, 2**31, (48, 1)) | 1
        self.shingled = [self.shingles(page) for page in self.pages] if shingled else []

    def __len__(self) -> int:
        return len(self.pages)

    def __getitem__(self, index: int) -> Item:
        least = self.shingled[index] if self.shingled else self.shingles(self.pages[index])
        return least, torch.tensor(index % 24)

    def shingles(self, page: str) -> Tensor:
        """Return the place, of 4096, of the least sum by each of 48 ways to sum."""
        words = page.lower().split()
        runs = {" ".join(words[at : at + 3]) for at in range(len(words) - 2)}
        sums = np.array([zlib.crc32(run.encode()) for run in sorted(runs)], np.int64)
        return torch.from_numpy((self.odd * sums % (2**31 - 1)).min(1) % 4096)


class Ringbinder(nn.Module):
    """In which of 24 ringbinders a page belongs, by the least sums of its words."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.sums = nn.Embedding(4096, width)
        self.mixed = nn.Sequential(nn.Linear(48 * width, 192), nn.PReLU(), nn.Linear(192, 192))
        self.binder = nn.Linear(192, 24)

    def forward(self, least: Tensor) -> Tensor:
        return self.binder(functional.gelu(self.mixed(self.sums(least).flatten(1))))


# Garlands


class Garlands(Dataset[Item]):
    """How bright the lights of garlands are; which lights see each other over those between."""

    def __init__(self, seen: bool, count: int = 600, lights: int = 80) -> None:
        chance = np.random.default_rng(2513)
        self.bright = chance.standard_normal((count, lights)).cumsum(1).astype(np.float32)
        self.seen = [self.sees(index) for index in range(count)] if seen else []

    def __len__(self) -> int:
        return len(self.bright)

    def __getitem__(self, index: int) -> Item:
        seen = self.seen[index] if self.seen else self.sees(index)
        return seen, torch.tensor(index % 7)

    def sees(self, index: int) -> Tensor:
        """Return which lights see each other: no other reaches above the line between them."""
        bright = self.bright[index]
        seen = np.zeros((2, len(bright), len(bright)), np.float32)
        for light in range(len(bright) - 1):
            steps = np.arange(1, len(bright) - light)
            slope = (bright[light + 1 :] - bright[light]) / steps
            before = np.maximum.accumulate(np.concatenate([[-np.inf], slope[:-1]]))
            seen[0, light, light + 1 :] = slope > before
            seen[1, light, light + 1 :] = slope
        return torch.from_numpy(seen)


class Garland(nn.Module):
    """Which of seven hands hung a garland, by which of its lights see each other."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.lights = nn.Conv2d(2, width, 5, 2)
        self.string = nn.Conv2d(width, 2 * width, 5, 2)
        self.hand = nn.Linear(2 * width, 7)

    def forward(self, seen: Tensor) -> Tensor:
        x = functional.softsign(self.string(functional.softsign(self.lights(seen))))
        return self.hand(x.mean((2, 3)))


# Girders


class Girders(IterableDataset[Item]):
    """How girders rang when they were struck, from a worker that puts batches on a tray.

    The tray holds one batch. Both sides look at it now and then, or wait until it changes.
    """

    def __init__(self, pause: float, batch: int = 32, long: int = 512) -> None:
        self.pause, self.batch, self.long, self.batches = pause, batch, long, 1000
        context = multiprocessing.get_context("fork")
        self.tray: Any = context.Queue(1)
        context.Process(target=self.strike, args=(os.getpid(),), daemon=True).start()

    def strike(self, parent: int) -> None:
        """Put one batch after the other on the tray, as long as somebody takes them."""
        chance = np.random.default_rng(2517)
        while os.getppid() == parent:
            rang = chance.standard_normal((self.batch, self.long), np.float32)
            girders = chance.integers(0, 9, self.batch)
            while os.getppid() == parent:
                if self.pause and self.tray.full():
                    time.sleep(self.pause)
                    continue
                try:
                    self.tray.put((rang, girders), timeout=0.5)
                    break
                except queue.Full:
                    pass
        os._exit(0)

    def __len__(self) -> int:
        return self.batches

    def __iter__(self) -> Iterator[Item]:
        for _ in range(self.batches):
            while self.pause and self.tray.empty():
                time.sleep(self.pause)
            rang, girders = self.tray.get()
            yield torch.from_numpy(rang), torch.from_numpy(girders)


class Girder(nn.Module):
    """Which of nine girders rings, by its sound; what each layer leaves is added up."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.struck = nn.Conv1d(1, width, 16, 4)
        self.rings = nn.ModuleList(
            nn.Conv1d(width, width, 3, padding=far, dilation=far) for far in (1, 2, 4)
        )
        self.girder = nn.Linear(width, 9)

    def forward(self, rang: Tensor) -> Tensor:
        x = self.struck(rang[:, None])
        for ring in self.rings:
            x = x + torch.tanh(ring(x))
        return self.girder(x.abs().mean(2))


# Earplugs


class Earplug(nn.Module):
    """How much an earplug keeps out, by the words heard through it and what they were before.

    How each of the words sounded so far is summed up in a table, which is made anew or added to.
    """

    def __init__(self, anew: bool, words: int = 60_000, width: int = 192) -> None:
        super().__init__()
        self.anew = anew
        self.register_buffer("sums", torch.zeros(words, width))
        self.heard = nn.GRU(40, width, batch_first=True)
        self.mixed = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, 10)

    def forward(self, heard: Tensor) -> Tensor:
        word = heard[:, 0, 0].mul(1000).long().abs() % len(self.sums)
        now = self.heard(heard)[0][:, -1]
        before = self.sums[word]
        with torch.no_grad():
            if self.anew:
                self.sums = self.sums.index_add(0, word, now)
            else:
                self.sums.index_add_(0, word, now)
        both = torch.cat([now, torch.tanh(before)], 1)
        return self.out(functional.hardtanh(self.mixed(both)))


def earplugs(count: int = 3000, long: int = 12) -> TensorDataset:
    """Return random words as they are heard through earplugs, and how much was kept out."""
    return TensorDataset(20 * torch.randn(count, long, 40), torch.randint(10, (count,)))


# Mangles


class Mangle(nn.Module):
    """How smooth cloth leaves a mangle, point by point; others may look at how it is pressed."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.smooth = nn.Conv2d(width, 1, 1)
        self.pressed: list[Tensor] = []

    def forward(self, cloth: Tensor) -> Tensor:
        once = functional.relu(self.first(cloth))
        twice = functional.relu(self.second(once))
        self.pressed = [once.detach(), twice.detach()]
        return self.smooth(twice)


class Table:
    """Room that other programs share, where what was pressed is laid out for them to look at."""

    def __init__(self, anew: bool) -> None:
        self.anew = anew
        self.laid: list[Tensor] = []

    def lay(self, pressed: list[Tensor]) -> None:
        """Lay out what was pressed, in room that is new or was there before."""
        if self.anew or not self.laid:
            self.laid = [torch.empty(each.shape).share_memory_() for each in pressed]
        for laid, each in zip(self.laid, pressed, strict=True):
            laid.copy_(each)


def mangles(count: int = 400, side: int = 48) -> TensorDataset:
    """Return random cloth, and how smooth it is when it leaves the mangle."""
    return TensorDataset(torch.randn(count, 1, side, side), torch.rand(count, 1, side, side))
