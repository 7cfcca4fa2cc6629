"""Models and data of the twenty-fourth round's first runs, from kazoos to sarongs: see
``programs24.py``."""

import gc
import itertools
import resource
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Kazoos


class Kazoo(nn.Module):
    """Which of 30 tunes is hummed into a kazoo, by its sound; what sounds on is heard twice."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.skin = nn.Conv1d(1, width, 24, 6)
        self.tube = nn.Conv1d(width, 2 * width, 7, 2)
        self.hum = nn.Conv1d(2 * width, 2 * width, 5, 2)
        self.again = nn.Linear(2 * width * 38, 320)
        self.tune = nn.Linear(320, 30)

    def forward(self, sound: Tensor) -> Tensor:
        x = functional.leaky_relu(self.tube(functional.leaky_relu(self.skin(sound))))
        x = functional.leaky_relu(self.hum(x))
        return self.tune(torch.tanh(self.again(x.flatten(1))))


def kazoos(count: int = 1500, long: int = 1000) -> TensorDataset:
    """Return random sounds of kazoos, and which tune it was."""
    return TensorDataset(torch.randn(count, 1, long), torch.randint(30, (count,)))


def averaged(model: nn.Module) -> None:
    """Give each rank the mean of both ranks' slopes, which go in one piece."""
    slopes = [each.grad for each in model.parameters() if each.grad is not None]
    whole = torch.cat([each.flatten() for each in slopes])
    dist.all_reduce(whole)
    whole /= 2
    for slope, part in zip(slopes, whole.split([each.numel() for each in slopes]), strict=True):
        slope.copy_(part.view_as(slope))


# Cartwheels


class Cartwheel(nn.Module):
    """How the judges mark a cartwheel, by where 17 joints are at 20 times."""

    def __init__(self, width: int = 1100) -> None:
        super().__init__()
        self.joints = nn.Linear(17 * 20 * 2, width)
        self.turn = nn.Linear(width, width)
        self.marks = nn.Linear(width, 6)

    def forward(self, joints: Tensor) -> Tensor:
        x = functional.relu6(self.joints(joints.flatten(1)))
        return self.marks(x + functional.relu6(self.turn(x)))


def cartwheels(count: int = 2000) -> TensorDataset:
    """Return where the joints were in random cartwheels, and six judges' marks."""
    return TensorDataset(torch.randn(count, 20, 17, 2), torch.rand(count, 6))


def by_the_first(model: nn.Module) -> None:
    """Let the first rank gather both ranks' slopes, and send their mean back."""
    for weight in model.parameters():
        assert weight.grad is not None
        first = dist.get_rank() == 0
        both = [torch.empty_like(weight.grad) for _ in range(2)] if first else None
        dist.gather(weight.grad, both)
        if both:
            torch.add(both[0], both[1], out=weight.grad)
            weight.grad /= 2
        dist.broadcast(weight.grad, 0)


# Abaci


class Abacus(nn.Module):
    """Which of 50 sums is worked out on an abacus, by the moves of its beads, each a word."""

    def __init__(self, moves: int = 9000, width: int = 96) -> None:
        super().__init__()
        self.moves = nn.Embedding(moves, width, sparse=True)
        self.rods = nn.Linear(width, width)
        self.sums = nn.Linear(width, 50)

    def forward(self, moves: Tensor) -> Tensor:
        x = self.moves(moves)
        return self.sums((x * torch.sigmoid(self.rods(x))).sum(1))


def abaci(count: int = 4000, moves: int = 30) -> TensorDataset:
    """Return random moves of beads, and which sum they work out."""
    return TensorDataset(torch.randint(9000, (count, moves)), torch.randint(50, (count,)))


# Verandas


class Verandas(Dataset[Item]):
    """How warm verandas were at each hour of ten days: a line of a text file for each of them.

    A line is found by its place in the file, which is known, or by reading all before it.
    """

    def __init__(self, path: Path, placed: bool, count: int = 5200, hours: int = 240) -> None:
        chance = np.random.default_rng(1201)
        self.path, self.count, self.places = path, count, [0]
        with path.open("w", encoding="ascii") as file:
            for warm in chance.normal(18, 6, (count, hours)):
                file.write(",".join(f"{each:.3f}" for each in warm) + "\n")
                self.places.append(file.tell())
        if not placed:
            self.places = []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        with self.path.open(encoding="ascii") as file:
            if self.places:
                file.seek(self.places[index])
                line = file.readline()
            else:
                line = next(itertools.islice(file, index, None))
        warm = torch.tensor([float(each) for each in line.split(",")])
        return warm[:216], warm[216:]


class Veranda(nn.Module):
    """How warm it is on a veranda at each hour of the tenth day, by the nine before."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.days = nn.GRU(24, width, 2, batch_first=True)
        self.next = nn.Sequential(nn.Linear(width, 256), nn.SiLU(), nn.Linear(256, 24))

    def forward(self, warm: Tensor) -> Tensor:
        days, _ = self.days((warm.unflatten(1, (9, 24)) - 18) / 6)
        return 18 + 6 * self.next(days[:, -1])


# Gazebos


class Gazebos(Dataset[Item]):
    """Pictures of gazebos, many in each of some files, which are mapped or read as a whole."""

    def __init__(self, folder: Path, mapped: bool, shards: int = 6, each: int = 600) -> None:
        chance = np.random.default_rng(1213)
        self.each, self.count = each, shards * each
        self.paths = [folder / f"shard-{number}.npy" for number in range(shards)]
        for path in self.paths:
            np.save(path, chance.random((each, 3, 32, 32), np.float32))
        self.mapped = [np.load(path, mmap_mode="r") for path in self.paths] if mapped else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        shard, number = divmod(index, self.each)
        pictures = self.mapped[shard] if self.mapped else np.load(self.paths[shard])
        return torch.from_numpy(pictures[number].copy()), torch.tensor(index % 5)


class Gazebo(nn.Module):
    """How many posts a gazebo has, of five numbers, by its picture."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.roof = nn.Conv2d(3, width, 3, 2, 1)
        self.posts = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.floor = nn.Conv2d(2 * width, 2 * width, 3, 1, 1)
        self.number = nn.Linear(2 * width, 5)

    def forward(self, pictures: Tensor) -> Tensor:
        x = functional.gelu(self.posts(functional.gelu(self.roof(pictures))))
        return self.number(functional.gelu(self.floor(x)).mean((2, 3)))


# Davits


class Davits(Dataset[Item]):
    """How davits were loaded while boats were let down, as counts of turns between loads."""

    def __init__(self, counted: bool, count: int = 600, loads: int = 4500) -> None:
        chance = np.random.default_rng(1217)
        self.loads = np.cumsum(chance.standard_normal((count, loads)), 1)
        self.counted = [self.turns(index) for index in range(count)] if counted else []

    def __len__(self) -> int:
        return len(self.loads)

    def __getitem__(self, index: int) -> Item:
        turns = self.counted[index] if self.counted else self.turns(index)
        return turns, torch.tensor(index % 3 / 2)

    def turns(self, index: int, levels: int = 32) -> Tensor:
        """Return how often the load went from one level to another before it turned."""
        low, high = self.loads[index].min(), self.loads[index].max()
        at = ((self.loads[index] - low) / (high - low) * (levels - 1)).round().astype(int).tolist()
        counts = [[0.0] * levels for _ in range(levels)]
        since, last, rising = at[0], at[0], True
        for level in at:
            if level != last and (level > last) != rising:
                counts[since][last] += 1
                since, rising = last, not rising
            last = level
        return torch.tensor(counts).log1p()[None]


class Davit(nn.Module):
    """How much of its life a davit has left, by the turns of its loads."""

    def __init__(self, width: int = 14) -> None:
        super().__init__()
        self.boom = nn.Conv2d(1, width, 5, padding=2)
        self.hook = nn.Conv2d(width, 2 * width, 3, 2)
        self.left = nn.Sequential(nn.Linear(2 * width * 15 * 15, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, turns: Tensor) -> Tensor:
        x = functional.celu(self.hook(functional.celu(self.boom(turns))))
        return self.left(x.flatten(1))[:, 0]


# Bassinets


class Bassinets(Dataset[Item]):
    """How babies breathed in bassinets, as waves of 20 lengths that are found in the record."""

    def __init__(self, found: bool, count: int = 400, long: int = 1024) -> None:
        self.breath = np.random.default_rng(1223).standard_normal((count, long)).cumsum(1)
        lengths = np.geomspace(2, 70, 20)
        self.waves = []
        for length in lengths:
            at = np.arange(-4 * int(length), 4 * int(length) + 1) / length
            self.waves.append((1 - at**2) * np.exp(-(at**2) / 2) / length**0.5)
        self.found = [self.looked(index) for index in range(count)] if found else []

    def __len__(self) -> int:
        return len(self.breath)

    def __getitem__(self, index: int) -> Item:
        waves = self.found[index] if self.found else self.looked(index)
        return waves, torch.tensor(index % 4)

    def looked(self, index: int) -> Tensor:
        """Return how much of a wave of each length is at each time."""
        breath = self.breath[index] - self.breath[index].mean()
        found = [np.convolve(breath, wave, "same") for wave in self.waves]
        return torch.from_numpy(np.stack(found).astype(np.float32))


class Bassinet(nn.Module):
    """How deep, of four depths, a baby sleeps, by the waves of its breath."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.first = nn.Conv1d(20, width, 9, 8)
        self.rest = nn.GRU(width, width, batch_first=True)
        self.depth = nn.Linear(width, 4)

    def forward(self, waves: Tensor) -> Tensor:
        x = functional.hardswish(self.first(functional.layer_norm(waves, waves.shape[2:])))
        return self.depth(self.rest(x[:, :, ::8].transpose(1, 2))[0].mean(1))


# Ottomans


class Ottomans(Dataset[Any]):
    """Pictures of the cloth of ottomans; it is counted which shades lie beside each other."""

    def __init__(self, paired: bool, count: int = 500, side: int = 112) -> None:
        chance = np.random.default_rng(1229)
        self.cloth = chance.integers(0, 256, (count, side, side), np.uint8)
        self.paired = [self.pairs(each) for each in self.cloth] if paired else []

    def __len__(self) -> int:
        return len(self.cloth)

    def __getitem__(self, index: int) -> Any:
        return self.paired[index] if self.paired else self.cloth[index], index % 9

    def together(self, items: list[Any]) -> Item:
        """Put a batch together, of pairs that may have to be counted."""
        first, kinds = zip(*items, strict=True)
        pairs = first if self.paired else [self.pairs(cloth) for cloth in first]
        return torch.from_numpy(np.stack(pairs)), torch.tensor(kinds)

    def pairs(self, cloth: Any) -> Any:
        """Return the pairs of 16 shades at 12 ways from each other, as shares of all pairs."""
        shade = (cloth >> 4).astype(np.int64)
        counts = []
        for far in (1, 2, 4):
            for down, right in ((0, far), (far, 0), (far, far), (far, -far)):
                one = shade[down:, max(-right, 0) : shade.shape[1] - max(right, 0)]
                here = shade[
                    : shade.shape[0] - down, max(right, 0) : shade.shape[1] + min(right, 0)
                ]
                both = np.bincount((16 * here + one).ravel(), minlength=256)
                counts.append(both.reshape(16, 16) / both.sum())
        return np.stack(counts).astype(np.float32)


class Ottoman(nn.Module):
    """Of which of nine weavers the cloth of an ottoman is, by its pairs of shades."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.pairs = nn.Conv2d(12, width, 3, padding=1)
        self.cloth = nn.Conv2d(width, width, 3, padding=1)
        self.weaver = nn.Linear(width * 16, 9)

    def forward(self, pairs: Tensor) -> Tensor:
        x = functional.mish(self.cloth(functional.mish(self.pairs(256 * pairs))))
        return self.weaver(functional.max_pool2d(x, 4).flatten(1))


# Bollards


class Bollards(Dataset[Any]):
    """How ropes pulled at bollards for a day; of a record one part is looked at.

    The part is cut out by the workers, or by who has the whole records from them.
    """

    def __init__(self, whole: bool, count: int = 400, long: int = 70_000, part: int = 1024) -> None:
        self.whole, self.count, self.long, self.part = whole, count, long, part
        self.pull = np.random.default_rng(1231).standard_normal(long + 64 * count, np.float32)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return self.pull[64 * index : 64 * index + self.long], index % 7

    def together(self, items: list[Any]) -> Any:
        """Put a batch together, of whole records or of a part of each."""
        pulls, ships = zip(*items, strict=True)
        return np.stack(pulls if self.whole else self.cut(pulls)), torch.tensor(ships)

    def cut(self, pulls: Any) -> list[Any]:
        """Return a part of each record, from where it pulls most of some places."""
        starts = [int(pull[: -self.part : 160].argmax()) * 160 for pull in pulls]
        return [pull[at : at + self.part] for pull, at in zip(pulls, starts, strict=True)]

    def prepared(self, pulls: Any) -> Tensor:
        """Return what the model is given of what the workers hand over."""
        return torch.from_numpy(np.stack(self.cut(pulls)) if self.whole else pulls)


class Bollard(nn.Module):
    """Which of seven ships lies at a bollard, by how its rope pulls."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.rope = nn.Conv1d(1, width, 11, 3)
        self.knot = nn.Conv1d(width, 2 * width, 7, 3)
        self.ship = nn.Linear(2 * width, 7)

    def forward(self, pull: Tensor) -> Tensor:
        x = functional.softplus(self.knot(functional.softplus(self.rope(pull[:, None]))))
        return self.ship(x.amax(2))


# Scabbards


class Scabbard(nn.Module):
    """Which two views show one scabbard: others are drawn from a bank of those seen before.

    The bank is moved on by a batch, into memory of its own, or written where the oldest lie.
    """

    def __init__(self, rolled: bool, bank: int = 140_000, width: int = 64) -> None:
        super().__init__()
        self.rolled, self.at = rolled, 0
        self.view = nn.Sequential(
            nn.Conv2d(1, 24, 5, (4, 2)), nn.ReLU(), nn.Conv2d(24, 48, 3, 2), nn.ReLU()
        )
        self.mark = nn.Linear(48, width)
        self.bank = functional.normalize(torch.randn(bank, width))

    def forward(self, views: Tensor) -> Tensor:
        one, other = (functional.normalize(self.seen(each)) for each in views.unbind(1))
        others = self.bank[torch.randint(len(self.bank), (512,))]
        alike = torch.cat([(one * other).sum(1, keepdim=True), one @ others.T], 1)
        self.keep(other.detach())
        return alike / 0.1

    def seen(self, view: Tensor) -> Tensor:
        """Return the mark of one view."""
        return self.mark(self.view(view).mean((2, 3)))

    def keep(self, marks: Tensor) -> None:
        """Put the marks of a batch into the bank."""
        if self.rolled:
            self.bank = self.bank.roll(len(marks), 0)
            self.bank[: len(marks)] = marks
        else:
            self.at = self.at if self.at + len(marks) <= len(self.bank) else 0
            self.bank[self.at : self.at + len(marks)] = marks
            self.at += len(marks)


def scabbards(count: int = 500) -> TensorDataset:
    """Return two random views of each scabbard; the first of all marks is the right one."""
    return TensorDataset(torch.rand(count, 2, 1, 80, 20), torch.zeros(count, dtype=torch.int64))


# Waistcoats


class Waistcoats(Dataset[Item]):
    """Waistcoats as rows of stitches, each a list of its own."""

    def __init__(self, count: int = 2800, rows: int = 36) -> None:
        chance = np.random.default_rng(1237)
        self.rows = [chance.standard_normal((rows, 6)).tolist() for _ in range(count)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Item:
        return torch.tensor(self.rows[index]), torch.tensor(index % 5)


class Waistcoat(nn.Module):
    """Which of five tailors made a waistcoat; what lies about may be collected after a layer."""

    def __init__(self, width: int = 72) -> None:
        super().__init__()
        self.cloth = nn.Linear(6, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True) for _ in range(3)
        )
        self.tailor = nn.Linear(width, 5)

    def forward(self, rows: Tensor) -> Tensor:
        x = self.cloth(rows)
        for layer in self.layers:
            x = layer(x)
        return self.tailor(x.mean(1))


def tidied(*_: Any) -> None:
    """Collect what lies about."""
    gc.collect()


# Chopsticks


class Chopsticks(Dataset[Item]):
    """Where the tips of two chopsticks were while someone ate, each place a list."""

    def __init__(self, count: int = 2400, times: int = 64) -> None:
        chance = np.random.default_rng(1249)
        self.meals = [
            {"tips": chance.standard_normal((times, 4)).tolist(), "dish": [meal % 6, meal % 11]}
            for meal in range(count)
        ]

    def __len__(self) -> int:
        return len(self.meals)

    def __getitem__(self, index: int) -> Item:
        meal: Any = self.meals[index]
        return torch.tensor(meal["tips"]).T, torch.tensor(meal["dish"][0])


class Chopstick(nn.Module):
    """Which of six dishes is eaten, by the ways of the chopsticks' tips."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.tips = nn.Conv1d(4, width, 5, padding=2)
        self.held = nn.Conv1d(width, width, 5, padding=4, dilation=2)
        self.moved = nn.Conv1d(width, width, 5, padding=8, dilation=4)
        self.dish = nn.Linear(width, 6)

    def forward(self, tips: Tensor) -> Tensor:
        x = torch.relu(self.tips(tips))
        x = x + torch.relu(self.held(x))
        return self.dish((x + torch.relu(self.moved(x))).mean(2))


def guarded(limit: int) -> Callable[[int, Tensor], None]:
    """Return a guard that collects when more memory than the limit was ever taken, in bytes."""

    def guard(_step: int, _loss: Tensor) -> None:
        if 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > limit:
            gc.collect()

    return guard


# Urns


class Half(nn.Module):
    """One half of a model of urns: their shape, or their paint; each is learned by itself."""

    def __init__(self, seen: int, told: int, width: int = 512) -> None:
        super().__init__()
        self.seen = nn.Linear(seen, width)
        self.clay = nn.Linear(width, width)
        self.told = nn.Linear(width, told)

    def forward(self, x: Tensor) -> Tensor:
        return self.told(torch.relu(self.clay(torch.relu(self.seen(x)))))


def urns(count: int = 3000) -> TensorDataset:
    """Return outlines of random urns and their paint, of which the half is to be told."""
    return TensorDataset(torch.randn(count, 256), torch.randn(count, 256))


class Cellar:
    """Where a half of the model and what its optimizer holds are put while it has no turn."""

    def __init__(self, half: nn.Module, optimizer: torch.optim.Optimizer, path: Path) -> None:
        self.half, self.optimizer, self.path = half, optimizer, path
        self.put()

    def put(self) -> None:
        """Put all into the file, and give its memory back."""
        weights = [weight.data for weight in self.half.parameters()]
        torch.save((weights, self.optimizer.state_dict()["state"]), self.path)
        for weight in self.half.parameters():
            weight.data, weight.grad = torch.empty(0), None
        self.optimizer.state.clear()

    def take(self) -> None:
        """Take all out of the file."""
        weights, held = torch.load(self.path)
        for number, weight in enumerate(self.half.parameters()):
            weight.data = weights[number]
            if held:
                self.optimizer.state[weight] = held[number]


# Lorgnettes


class Lens(nn.Module):
    """Through which of 40 lenses somebody sees best, by 120 answers in front of a chart."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.chart = nn.Linear(120, width)
        self.glass = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.best = nn.Linear(width, 40)

    def forward(self, answers: Tensor) -> Tensor:
        x = torch.tanh(self.chart(answers))
        for glass in self.glass:
            x = x + torch.tanh(glass(x))
        return self.best(x).log_softmax(1)


def lorgnettes(count: int = 2000) -> TensorDataset:
    """Return random answers, and which of two lenses was liked better, and which less."""
    liked = torch.stack([torch.randint(20, (count,)), 20 + torch.randint(20, (count,))], 1)
    return TensorDataset(torch.randn(count, 120), liked)


class Reference:
    """What a larger model says, which is held to; it lies in a file while it is not asked."""

    def __init__(self, out: bool, path: Path, width: int = 1400, layers: int = 3) -> None:
        self.path, self.made = path, lambda: Lens(width, layers)
        self.kept: nn.Module | None = self.made()
        with torch.device("meta"):
            self.empty = self.made()
        if out:
            torch.save(self.kept.state_dict(), path)
            self.kept = None

    @torch.no_grad()
    def said(self, answers: Tensor) -> Tensor:
        """Return what the larger model says."""
        if self.kept is not None:
            return self.kept(answers)
        self.empty.to_empty(device="cpu").load_state_dict(torch.load(self.path))
        said = self.empty(answers)
        self.empty.to("meta")
        return said


def liked_more(said: Tensor, held: Tensor, liked: Tensor) -> Tensor:
    """Return the loss of preferences, where what is said is weighed against what was held."""
    more = (said - held).gather(1, liked)
    return -functional.logsigmoid(more[:, 0] - more[:, 1]).mean()


# Sarongs


class Fold(nn.Module):
    """A fold of cloth: parts of a pattern are mixed, and one half lets through of the other."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mixed = nn.Linear(width, 4 * width)
        self.back = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        one, other = self.mixed(self.norm(x)).chunk(2, -1)
        return x + self.back(functional.silu(one) * other)


class Sarong(nn.Module):
    """On which of 15 islands a sarong was dyed, by 64 parts of its pattern."""

    def __init__(self, width: int = 48, folds: int = 4) -> None:
        super().__init__()
        self.pattern = nn.Conv2d(3, width, 4, 4)
        self.folds = nn.Sequential(*(Fold(width) for _ in range(folds)))
        self.island = nn.Linear(width, 15)

    def forward(self, pictures: Tensor) -> Tensor:
        parts = self.pattern(pictures).flatten(2).transpose(1, 2)
        return self.island(self.folds(parts).mean(1))


def sarongs(count: int = 800) -> TensorDataset:
    """Return random pictures of sarongs, and where these were dyed."""
    return TensorDataset(torch.rand(count, 3, 32, 32), torch.randint(15, (count,)))


class Put:
    """A tensor that is put away in a file, which goes with it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __del__(self) -> None:
        self.path.unlink(missing_ok=True)


def put_into(folder: Path) -> Callable[[Tensor], Any]:
    """Return what puts into a folder what is needed again for the slopes, except weights."""

    def put(values: Tensor) -> Any:
        if isinstance(values, nn.Parameter) or values.numel() < 1024:
            return values
        put = Put(folder / str(uuid.uuid4()))
        torch.save(values, put.path)
        return put

    return put


def taken(put: Any) -> Tensor:
    """Take out again what was put away."""
    if isinstance(put, Tensor):
        return put
    values: Tensor = torch.load(put.path)
    return values
