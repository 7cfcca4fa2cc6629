"""Models and data of the twenty-seventh round's first runs, from dynamos to plugs: see
``programs27.py``."""

import itertools
import shutil
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from scipy.optimize import least_squares
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Dynamos


class Dynamo(nn.Module):
    """How much power a dynamo gives, by the currents of its coils; wide layers with gates."""

    def __init__(self, width: int = 1024) -> None:
        super().__init__()
        self.coils = nn.Linear(300, width)
        self.turns = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(2))
        self.power = nn.Linear(width, 1)

    def forward(self, currents: Tensor) -> Tensor:
        x = functional.gelu(self.coils(currents))
        for turn in self.turns:
            x = x + functional.glu(turn(x))
        return self.power(x)[:, 0]


def dynamos(count: int = 4000) -> TensorDataset:
    """Return the currents in random dynamos' coils, and the power of each."""
    return TensorDataset(torch.randn(count, 300), torch.rand(count))


# Flagons


class Flagon(nn.Module):
    """Which of 20 wines was in a flagon, by the words on its label and the residue in it."""

    def __init__(self, words: int = 3000, width: int = 256) -> None:
        super().__init__()
        self.label = nn.EmbeddingBag(words, width, mode="mean")
        self.residue = nn.Linear(width, width)
        self.wine = nn.Linear(width, 20)

    def forward(self, label: Tensor) -> Tensor:
        return self.wine(functional.relu(self.residue(self.label(label))))


def flagons(count: int = 6000, words: int = 3000) -> TensorDataset:
    """Return 16 words of the label of each random flagon, and its wine."""
    return TensorDataset(torch.randint(words, (count, 16)), torch.randint(20, (count,)))


@torch.no_grad()
def averaged(model: nn.Module) -> None:
    """Put all slopes into one row, gather the rows of both ranks, and take their mean."""
    slopes = [weight.grad for weight in model.parameters()]
    mine = torch.cat([slope.flatten() for slope in slopes])
    rows = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(rows, mine)
    mean = torch.stack(rows).mean(0)
    for slope, part in zip(slopes, mean.split([each.numel() for each in slopes]), strict=True):
        slope.copy_(part.view_as(slope))


# Cornices


class Cornices(Dataset[Item]):
    """Pictures of cornices: narrow ones of the plain, wide ones of the carved."""

    def __init__(self, carved: bool, count: int = 320) -> None:
        self.pictures = torch.rand(count, 1, 32, 108 if carved else 64)
        self.styles = torch.randint(6, (count,))

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> Item:
        return self.pictures[index], self.styles[index]


class Cornice(nn.Module):
    """Of which of six styles a cornice is, by its picture; few weights, many places."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.plaster = nn.Conv2d(1, width, 5, padding=2)
        self.leaves = nn.Conv2d(width, width, 3, padding=1)
        self.eggs = nn.Conv2d(width, width, 3, stride=2)
        self.style = nn.Linear(width, 6)

    def forward(self, pictures: Tensor) -> Tensor:
        x = functional.silu(self.plaster(pictures))
        x = x + functional.silu(self.leaves(x))
        return self.style(functional.silu(self.eggs(x)).mean((2, 3)))


# Mobiles


class Mobiles(Dataset[Item]):
    """What hangs from mobiles: parts in one file that is in the order of their numbers.

    Where a part stands is found by halving the file again and again, or was noted before.
    """

    PART = np.dtype([("number", "<i8"), ("hangs", "<f4", (14,))])

    def __init__(self, path: Path, known: bool, count: int = 600, parts: int = 16) -> None:
        chance = np.random.default_rng(2701)
        rows = np.zeros(20_000, self.PART)
        rows["number"] = np.sort(chance.choice(1 << 40, len(rows), replace=False))
        rows["hangs"] = chance.standard_normal((len(rows), 14))
        rows.tofile(path)
        self.rows = len(rows)
        self.file = path.open("rb", buffering=0)
        places = chance.integers(len(rows), size=(count, parts))
        self.numbers = rows["number"][places].tolist()
        self.places = places.tolist() if known else None

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, index: int) -> Item:
        if self.places is None:
            found = [self.sought(number) for number in self.numbers[index]]
        else:
            found = [self.row(place) for place in self.places[index]]
        return torch.from_numpy(np.stack([row["hangs"] for row in found])), torch.tensor(index % 5)

    def row(self, place: int) -> np.void:
        """Return the part at a place of the file."""
        self.file.seek(place * self.PART.itemsize)
        return np.frombuffer(self.file.read(self.PART.itemsize), self.PART)[0]

    def sought(self, number: int) -> np.void:
        """Return the part with a number."""
        first, end = 0, self.rows
        while True:
            place = (first + end) // 2
            row = self.row(place)
            if row["number"] == number:
                return row
            if row["number"] < number:
                first = place + 1
            else:
                end = place


class Mobile(nn.Module):
    """Which of five winds a mobile was made for, by the set of what hangs from it."""

    def __init__(self, width: int = 272) -> None:
        super().__init__()
        self.part = nn.Sequential(nn.Linear(14, width), nn.ELU(), nn.Linear(width, width))
        self.whole = nn.Sequential(nn.Linear(2 * width, width), nn.ELU(), nn.Linear(width, 5))

    def forward(self, parts: Tensor) -> Tensor:
        x = functional.elu(self.part(parts))
        return self.whole(torch.cat([x.mean(1), x.amax(1)], 1))


# Joists


class Joists(Dataset[Item]):
    """How joists bent at 22 places, in a file for each place or in one for all."""

    def __init__(self, folder: Path, apart: bool, count: int = 240, places: int = 22) -> None:
        chance = np.random.default_rng(2702)
        self.paths: list[list[Path]] = []
        for number in range(count):
            bent = chance.standard_normal((places, 128)).astype("<f4").cumsum(1)
            own = folder / f"joist-{number:03d}"
            own.mkdir()
            paths = [own / f"place-{place:02d}.f4" for place in range(places if apart else 1)]
            for path, part in zip(paths, np.split(bent, len(paths)), strict=True):
                path.write_bytes(part.tobytes())
            self.paths.append(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        raw = b"".join(path.read_bytes() for path in self.paths[index])
        bent = np.frombuffer(bytearray(raw), "<f4").reshape(-1, 128)
        return torch.from_numpy(bent), torch.tensor(index % 3)


class Joist(nn.Module):
    """Which of three woods a joist is of, by how it bent; along time, then over its places."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.load = nn.Conv1d(22, width, 9, 2, 4)
        self.grain = nn.Conv1d(width, width, 9, 2, 4, groups=4)
        self.knots = nn.GRU(width, width, batch_first=True)
        self.wood = nn.Linear(width, 3)

    def forward(self, bent: Tensor) -> Tensor:
        x = functional.relu(self.grain(functional.relu(self.load(bent / 10))))
        return self.wood(self.knots(x.mT)[0][:, -1])


# Girdles


class Girdles(Dataset[Item]):
    """Scans of girdles in a store, a large file each, of which one strip is learnt from.

    Each file is brought into a folder of its own before it is read, or read where it lies.
    """

    STRIP = 64 * 64

    def __init__(self, folder: Path, copied: bool, count: int = 40, large: int = 416) -> None:
        self.store, self.near, self.copied = folder / "store", folder / "near", copied
        self.store.mkdir()
        self.near.mkdir()
        chance = np.random.default_rng(2703)
        self.large = large
        for number in range(count):
            strips = chance.integers(0, 256, large * self.STRIP, np.uint8)
            (self.store / f"girdle-{number:02d}.scan").write_bytes(strips.tobytes())
        self.count = count

    def __len__(self) -> int:
        return 40 * self.count

    def __getitem__(self, index: int) -> Item:
        path = self.store / f"girdle-{index % self.count:02d}.scan"
        if self.copied:
            path = Path(shutil.copy(path, self.near))
        with path.open("rb", buffering=0) as file:
            file.seek(index * 7 % self.large * self.STRIP)
            strip = file.read(self.STRIP)
        if self.copied:
            path.unlink()
        scan = torch.frombuffer(bytearray(strip), dtype=torch.uint8).view(1, 64, 64)
        return scan, torch.tensor(index % 4)


class Girdle(nn.Module):
    """Which of four knitters made a girdle, by a strip of it; convolutions that grow."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.stitch = nn.Conv2d(1, width, 4, 4)
        self.rib = nn.Conv2d(width, 2 * width, 4, 2)
        self.hem = nn.Conv2d(2 * width, 4 * width, 3)
        self.knitter = nn.Linear(4 * width, 4)

    def forward(self, scan: Tensor) -> Tensor:
        x = functional.leaky_relu(self.stitch(scan.float() / 255))
        x = functional.leaky_relu(self.hem(functional.leaky_relu(self.rib(x))))
        return self.knitter(x.mean((2, 3)))


# Epergnes


class Epergnes(Dataset[Item]):
    """Shadows of epergnes, thinned until lines are left of their arms (Zhang and Suen)."""

    def __init__(self, ready: bool, count: int = 200, side: int = 64) -> None:
        chance = np.random.default_rng(2707)
        down, across = np.mgrid[:side, :side]
        self.shadows = np.zeros((count, side, side), bool)
        for shadow in self.shadows:
            for angle in chance.uniform(0, np.pi, 4):
                off = (down - side / 2) * np.cos(angle) - (across - side / 2) * np.sin(angle)
                shadow |= np.abs(off) < 5
            shadow[[0, -1]] = shadow[:, [0, -1]] = False
        self.ready = [self.thin(index) for index in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.shadows)

    def __getitem__(self, index: int) -> Item:
        lines = self.ready[index] if self.ready else self.thin(index)
        return lines, torch.tensor(index % 6)

    def thin(self, index: int) -> Tensor:
        """Return the lines that are left when edges are taken away as long as nothing parts."""
        shadow = self.shadows[index].copy()
        ring = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)]
        sides = (((0, 2, 4), (2, 4, 6)), ((0, 2, 6), (0, 4, 6)))
        changed = True
        while changed:
            changed = False
            for one, other in sides:
                near = np.stack([np.roll(shadow, (-y, -x), (0, 1)) for y, x in ring])
                count = near.sum(0)
                turns = (~near & np.roll(near, -1, 0)).sum(0)
                gone = shadow & (count >= 2) & (count <= 6) & (turns == 1)
                gone &= ~near[list(one)].all(0) & ~near[list(other)].all(0)
                shadow &= ~gone
                changed |= bool(gone.any())
        return torch.from_numpy(shadow.astype(np.float32))[None]


class Epergne(nn.Module):
    """Of which of six tables an epergne is, by the lines of its arms."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.arms = nn.Conv2d(1, width, 7, 2, 3)
        self.bowls = nn.Conv2d(width, width, 3, 1, 1)
        self.silver = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.table = nn.Linear(2 * width, 6)

    def forward(self, lines: Tensor) -> Tensor:
        x = functional.gelu(self.bowls(functional.gelu(self.arms(lines))))
        return self.table(functional.gelu(self.silver(x)).amax((2, 3)))


# Hoists


class Hoists(Dataset[Item]):
    """Where hoists and their loads were seen; smoothed forth and back in time (Kalman, RTS)."""

    def __init__(self, ready: bool, count: int = 240, long: int = 40) -> None:
        chance = np.random.default_rng(2708)
        self.seen = chance.standard_normal((count, long, 2)).cumsum(1)
        self.seen += chance.standard_normal(self.seen.shape)
        self.moves = np.eye(4) + 0.5 * np.eye(4, k=2)
        self.ready = [self.smooth(index) for index in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.seen)

    def __getitem__(self, index: int) -> Item:
        ways = self.ready[index] if self.ready else self.smooth(index)
        return ways, torch.tensor(index % 3)

    def smooth(self, index: int) -> Tensor:
        """Return where a hoist was and how fast it went, by all that was seen of it."""
        state, unsure = np.zeros(4), np.eye(4)
        kept = []
        for seen in self.seen[index]:
            before = self.moves @ state
            spread = self.moves @ unsure @ self.moves.T + 0.05 * np.eye(4)
            gain = spread[:, :2] @ np.linalg.inv(spread[:2, :2] + np.eye(2))
            state = before + gain @ (seen - before[:2])
            unsure = spread - gain @ spread[:2]
            kept.append((before, spread, state, unsure))
        ways = [state]
        for (_, _, now, sure), (before, spread, _, _) in zip(
            reversed(kept[:-1]), reversed(kept[1:]), strict=True
        ):
            back = sure @ self.moves.T @ np.linalg.inv(spread)
            ways.append(now + back @ (ways[-1] - before))
        return torch.from_numpy(np.stack(ways[::-1]).astype(np.float32))


class Hoist(nn.Module):
    """Which of three loads a hoist carries, by its way; attention along time."""

    def __init__(self, width: int = 176) -> None:
        super().__init__()
        self.moment = nn.Linear(4, width)
        self.rope = nn.TransformerEncoderLayer(width, 4, 3 * width, 0.0, batch_first=True)
        self.load = nn.Linear(width, 3)

    def forward(self, ways: Tensor) -> Tensor:
        return self.load(self.rope(self.moment(ways / 8)).mean(1))


# Mantelpieces


class Mantelpieces(Dataset[Item]):
    """Photographs of mantelpieces; how often each pattern of lighter and darker neighbours is
    seen in each tile is counted (local binary patterns)."""

    def __init__(self, ready: bool, count: int = 240, side: int = 96) -> None:
        chance = np.random.default_rng(2709)
        self.photographs = chance.integers(0, 256, (count, side, side), np.uint8)
        self.ready = [self.counts(index) for index in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.photographs)

    def __getitem__(self, index: int) -> Item:
        counts = self.ready[index] if self.ready else self.counts(index)
        return counts, torch.tensor(index % 7)

    def counts(self, index: int, tile: int = 16) -> Tensor:
        """Return how often each of 256 patterns is seen in each tile."""
        seen = np.pad(self.photographs[index], 1, mode="reflect")
        inner = seen[1:-1, 1:-1]
        code = np.zeros(inner.shape, np.int64)
        around = [place for place in itertools.product((0, 1, 2), repeat=2) if place != (1, 1)]
        for bit, (y, x) in enumerate(around):
            beside = seen[y : y + inner.shape[0], x : x + inner.shape[1]]
            code |= (beside >= inner).astype(np.int64) << bit
        tiles = code.shape[0] // tile
        which = np.arange(code.shape[0]) // tile
        code += 256 * (tiles * which[:, None] + which)
        counts = np.bincount(code.ravel(), minlength=256 * tiles**2)
        return torch.from_numpy(counts.reshape(-1, 256).astype(np.float32))


class Mantelpiece(nn.Module):
    """Of which of seven stones a mantelpiece is, by the patterns in its tiles."""

    def __init__(self, width: int = 168) -> None:
        super().__init__()
        self.tile = nn.Sequential(nn.Linear(256, width), nn.SELU(), nn.Linear(width, width))
        self.stone = nn.Sequential(nn.SELU(), nn.Linear(width, width), nn.SELU())
        self.kind = nn.Linear(width, 7)

    def forward(self, counts: Tensor) -> Tensor:
        return self.kind(self.stone(self.tile(counts / 16)).mean(1))


# Peepholes


class Peepholes(Dataset[Item]):
    """What peepholes show, smoothed but for its edges (a bilateral filter)."""

    def __init__(self, ready: bool, count: int = 160, side: int = 48) -> None:
        chance = np.random.default_rng(2710)
        coarse = chance.random((count, 3, side // 8, side // 8), np.float32)
        self.views = coarse.repeat(8, 2).repeat(8, 3)
        self.views += 0.1 * chance.standard_normal(self.views.shape, np.float32)
        self.ready = [self.smooth(index) for index in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, index: int) -> Item:
        view = self.ready[index] if self.ready else self.smooth(index)
        return view, torch.tensor(index % 4)

    def smooth(self, index: int, reach: int = 3) -> Tensor:
        """Return the view, each point a mean of near ones that are as light as it."""
        view = self.views[index]
        side = view.shape[1]
        wide = np.pad(view, ((0, 0), (reach, reach), (reach, reach)), mode="edge")
        total, weights = np.zeros_like(view), np.zeros_like(view)
        for y, x in itertools.product(range(2 * reach + 1), repeat=2):
            beside = wide[:, y : y + side, x : x + side]
            far = ((y - reach) ** 2 + (x - reach) ** 2) / 8
            weight = np.exp(-np.square(beside - view) * 20 - np.float32(far))
            total += weight * beside
            weights += weight
        return torch.from_numpy(total / weights)


class Peephole(nn.Module):
    """Which of four callers is at the door, by what the peephole shows."""

    def __init__(self, width: int = 10) -> None:
        super().__init__()
        self.door = nn.Conv2d(3, width, 3, padding=1)
        self.deep = nn.Conv2d(width, width, 3, padding=1, groups=width)
        self.point = nn.Conv2d(width, 2 * width, 1)
        self.caller = nn.Linear(2 * width, 4)

    def forward(self, view: Tensor) -> Tensor:
        x = functional.hardtanh(self.deep(functional.hardtanh(self.door(view))))
        return self.caller(functional.relu(self.point(x)).mean((2, 3)))


# Fryers


def _cools(time: np.ndarray, falls: float, rate: float, again: float, late: float) -> np.ndarray:
    """Return how warm fat is after food was put into it."""
    return 180 - falls * np.exp(-rate * time) + again * np.tanh(late * time)


class Fryers(Dataset[Item]):
    """How the fat in fryers cools and grows warm; curves are fitted to what was measured."""

    def __init__(self, ready: bool, count: int = 200, long: int = 80) -> None:
        chance = np.random.default_rng(2711)
        self.time = np.linspace(0, 4, long)
        drawn = chance.uniform((10, 0.5, 1, 0.2), (40, 2, 8, 1), (count, 4))
        self.warm = np.stack([_cools(self.time, *each) for each in drawn])
        self.warm += 0.5 * chance.standard_normal(self.warm.shape)
        self.ready = [self.fit(index) for index in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.warm)

    def __getitem__(self, index: int) -> Item:
        fitted = self.ready[index] if self.ready else self.fit(index)
        return fitted, torch.tensor(index % 5)

    def fit(self, index: int) -> Tensor:
        """Return the constants of the curve, and what it leaves over."""
        warm = self.warm[index]
        start, ends = (25, 1, 4, 0.5), ((0, 0.01, -50, 0.01), (90, 9, 50, 9))
        fitted = least_squares(
            lambda drawn: _cools(self.time, *drawn) - warm, start, bounds=ends, max_nfev=6
        )
        found, left = fitted.x, -fitted.fun
        return torch.from_numpy(np.concatenate([found / 10, left]).astype(np.float32))


class Fryer(nn.Module):
    """Which of five foods is in a fryer, by its curve; dense layers that shrink."""

    def __init__(self, width: int = 1280) -> None:
        super().__init__()
        self.fat = nn.Linear(84, width)
        self.crust = nn.Linear(width, width)
        self.salt = nn.Linear(width, width // 2)
        self.food = nn.Linear(width // 2, 5)

    def forward(self, fitted: Tensor) -> Tensor:
        x = functional.relu(self.crust(functional.relu(self.fat(fitted))))
        return self.food(functional.relu(self.salt(x)))


# Headbands


class Headbands(Dataset[Item]):
    """Waves that headbands measure on foreheads; how often what was alike stays so is counted
    for each channel (sample entropy, on three scales)."""

    def __init__(self, ready: bool, count: int = 160, long: int = 180) -> None:
        chance = np.random.default_rng(2712)
        self.waves = chance.standard_normal((count, 4, long), np.float32)
        self.waves[..., 1:] += 0.7 * self.waves[..., :-1]
        self.ready = [self.likeness(index) for index in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.waves)

    def __getitem__(self, index: int) -> Item:
        likeness = self.ready[index] if self.ready else self.likeness(index)
        return (
            torch.cat([torch.from_numpy(self.waves[index]), likeness], 1),
            torch.tensor(index % 4),
        )

    def likeness(self, index: int) -> Tensor:
        """Return for each channel and scale how rarely what was alike goes on to be so."""
        told = np.zeros((4, 3), np.float32)
        for channel, scale in itertools.product(range(4), (1, 2, 3)):
            wave = self.waves[index, channel]
            coarse = wave[: len(wave) // scale * scale].reshape(-1, scale).mean(1)
            near = np.abs(coarse[:, None] - coarse[None]) < 0.2 * wave.std()
            two = near[:-2, :-2] & near[1:-1, 1:-1]
            three = two & near[2:, 2:]
            apart = len(two)
            alike = (two.sum() - apart + 1, three.sum() - apart + 1)
            told[channel, scale - 1] = np.log(alike[0] / alike[1])
        return torch.from_numpy(told)


class Headband(nn.Module):
    """Which of four states of sleep somebody is in, by waves and their likeness."""

    def __init__(self, width: int = 384) -> None:
        super().__init__()
        self.channel = nn.Linear(183, width)
        self.brain = nn.Linear(4 * width, width)
        self.sleep = nn.Linear(width, 4)

    def forward(self, waves: Tensor) -> Tensor:
        x = torch.tanh(self.channel(waves)).flatten(1)
        return self.sleep(torch.tanh(self.brain(x)))


# Collars


class Collars(Dataset[Item]):
    """What collars of dogs measure while these walk; turned at random."""

    def __init__(self, count: int = 480, long: int = 160) -> None:
        self.walks = torch.randn(count, long, 3)

    def __len__(self) -> int:
        return len(self.walks)

    def __getitem__(self, index: int) -> Item:
        turn, _ = torch.linalg.qr(torch.randn(3, 3))
        return self.walks[index] @ turn, torch.tensor(index % 5)


class Collar(nn.Module):
    """What, of five things, a dog does, by what its collar measures."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.step = nn.Conv1d(3, width, 8, 2)
        self.gait = nn.Conv1d(width, width, 8, 2)
        self.does = nn.Linear(width, 5)

    def forward(self, walks: Tensor) -> Tensor:
        x = functional.silu(self.gait(functional.silu(self.step(walks.mT))))
        return self.does(x.mean(2))


# Platters


class Served:
    """What was served on a platter, to whom, and who served beside."""

    def __init__(self, number: int, beside: "Served | None") -> None:
        self.beside = beside
        self.guests = {"table": number % 31, "names": [f"guest {number % 211}"]}


class Platter(nn.Module):
    """How much is left on a platter, by what lay on it; a mixture of three layers."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.which = nn.Linear(180, 3)
        self.dishes = nn.ModuleList(nn.Linear(180, width) for _ in range(3))
        self.left = nn.Linear(width, 1)

    def forward(self, lay: Tensor) -> Tensor:
        dishes = torch.stack([functional.mish(dish(lay)) for dish in self.dishes], 1)
        mixed = (self.which(lay).softmax(1)[..., None] * dishes).sum(1)
        return self.left(mixed)[:, 0]


def platters(count: int = 12_000) -> TensorDataset:
    """Return what lay on random platters, and how much was left."""
    return TensorDataset(torch.rand(count, 180), torch.rand(count))


# Plugs


class Plug(nn.Module):
    """Which of eight appliances hangs on a plug, by how it draws current; square layers."""

    def __init__(self, width: int = 192, depth: int = 8) -> None:
        super().__init__()
        self.mains = nn.Linear(200, width)
        self.wires = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(depth))
        self.appliance = nn.Linear(width, 8)

    def forward(self, current: Tensor) -> Tensor:
        x = torch.tanh(self.mains(current))
        for wire in self.wires:
            x = x + torch.tanh(wire(x))
        return self.appliance(x)


class Factors:
    """Sums of slopes times themselves on both sides of each square weight, by which the slopes
    are scaled (Shampoo with diagonal roots); in files between updates, or kept."""

    def __init__(self, model: Plug, folder: Path | None) -> None:
        self.folder = folder
        self.kept = {}
        for number, wire in enumerate(model.wires):
            self.put_away(number, torch.eye(len(wire.weight)).repeat(2, 1, 1))

    def put_away(self, number: int, factors: Tensor) -> None:
        """Write the factors of a weight to its file, or keep them."""
        if self.folder is None:
            self.kept[number] = factors
        else:
            torch.save(factors, self.folder / f"factors-{number}.pt")

    def fetch(self, number: int) -> Tensor:
        """Return the factors of a weight."""
        if self.folder is None:
            return self.kept[number]
        return torch.load(self.folder / f"factors-{number}.pt")

    @torch.no_grad()
    def __call__(self, model: nn.Module) -> None:
        for number, wire in enumerate(model.wires):
            slope = wire.weight.grad
            left, right = factors = self.fetch(number)
            left.addmm_(slope, slope.T, beta=0.99)
            right.addmm_(slope.T, slope, beta=0.99)
            slope /= left.diagonal().add(1e-6)[:, None] ** 0.25
            slope /= right.diagonal().add(1e-6) ** 0.25
            self.put_away(number, factors)


def plugs(count: int = 6000) -> TensorDataset:
    """Return how random appliances draw current, and which each is."""
    return TensorDataset(torch.randn(count, 200), torch.randint(8, (count,)))
