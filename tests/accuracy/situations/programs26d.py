"""Models and data of the twenty-sixth round's first runs, from cabinets to badges: see
``programs26.py``."""

import glob
import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Cabinets


class Cabinet(nn.Module):
    """Which of ten joiners made a cabinet, by the sizes of its drawers; wide layers."""

    def __init__(self, width: int = 640) -> None:
        super().__init__()
        self.drawers = nn.Linear(400, width)
        self.inside = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.joiner = nn.Linear(width, 10)

    def forward(self, sizes: Tensor) -> Tensor:
        x = functional.leaky_relu(self.drawers(sizes))
        for layer in self.inside:
            x = x + functional.leaky_relu(layer(x))
        return self.joiner(x)


def cabinets(count: int = 4000) -> TensorDataset:
    """Return the sizes of random cabinets' drawers, and who made each."""
    return TensorDataset(torch.rand(count, 400), torch.randint(10, (count,)))


# Cardigans


class Cardigan(nn.Module):
    """How near two photographs of a cardigan are to each of 96 patterns that are learnt."""

    def __init__(self, width: int = 256, patterns: int = 96) -> None:
        super().__init__()
        self.wool = nn.Sequential(nn.Linear(120, width), nn.SiLU(), nn.Linear(width, 48))
        self.patterns = nn.Linear(48, patterns, bias=False)

    def forward(self, both: Tensor) -> Tensor:
        return self.patterns(functional.normalize(self.wool(both), dim=2))


class SharedOut:
    """Cardigans shared out among the patterns so that each gets as many, of one rank or of two.

    What one photograph is given is what the other one is to tell.
    """

    def __init__(self, together: bool, turns: int = 5) -> None:
        self.together, self.turns = together, turns

    def summed(self, values: Tensor) -> Tensor:
        """Return sums over what there is, here or on both ranks."""
        if self.together:
            dist.all_reduce(values)
        return values

    @torch.no_grad()
    def given(self, scores: Tensor) -> Tensor:
        """Return how much of each cardigan each pattern gets."""
        shares = torch.exp(scores / 0.05).T
        shares /= self.summed(shares.sum())
        for _ in range(self.turns):
            shares /= self.summed(shares.sum(1, keepdim=True)) * len(shares)
            shares /= shares.sum(0, keepdim=True) * shares.shape[1]
        return (shares * shares.shape[1]).T

    def __call__(self, scores: Tensor, _: Tensor) -> Tensor:
        one, other = scores.unbind(1)
        told = functional.log_softmax(one / 0.1, 1), functional.log_softmax(other / 0.1, 1)
        shared = self.given(other) * told[0] + self.given(one) * told[1]
        return -shared.sum(1).mean()


def cardigans(count: int = 4000) -> TensorDataset:
    """Return two random photographs of each cardigan."""
    return TensorDataset(torch.randn(count, 2, 120), torch.zeros(count))


# Bulbs


class Codes(nn.Module):
    """Codes that stand for what comes in; each moves to the middle of what it stood for.

    What it stood for may be that of the batches of both ranks.
    """

    def __init__(self, together: bool, codes: int, width: int) -> None:
        super().__init__()
        self.together = together
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("seen", torch.ones(codes))
        self.register_buffer("sums", self.codes.clone())

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            nearest = (self.codes.square().sum(1) - 2 * x @ self.codes.T).argmin(1)
            stood = self.codes[nearest]
            seen = torch.bincount(nearest, minlength=len(self.codes)).float()
            sums = torch.zeros_like(self.sums).index_add_(0, nearest, x)
            if self.together:
                dist.all_reduce(seen)
                dist.all_reduce(sums)
            self.seen.lerp_(seen, 0.02)
            self.sums.lerp_(sums, 0.02)
            self.codes.copy_(self.sums / (self.seen[:, None] + 1e-4))
        return stood


class Bulb(nn.Module):
    """The light of a bulb over its colours, told again by three codes, one after the other."""

    def __init__(self, together: bool, codes: int = 1024, width: int = 128) -> None:
        super().__init__()
        self.light = nn.Sequential(nn.Linear(320, 256), nn.Mish(), nn.Linear(256, width))
        self.codes = nn.ModuleList(Codes(together, codes, width) for _ in range(3))
        self.again = nn.Sequential(nn.Linear(width, 256), nn.Mish(), nn.Linear(256, 320))

    def forward(self, light: Tensor) -> Tensor:
        x = self.light(light)
        left, told = x.detach(), torch.zeros_like(x)
        for codes in self.codes:
            stood = codes(left)
            left, told = left - stood, told + stood
        return self.again(x + (told - x).detach())


def bulbs(count: int = 4000) -> TensorDataset:
    """Return the light of random bulbs, twice."""
    light = torch.randn(count, 320)
    return TensorDataset(light, light)


# Chaises


class Chaise(nn.Module):
    """How a chaise rides, by the road it was on; layers with a norm before each."""

    def __init__(self, width: int = 224, depth: int = 3) -> None:
        super().__init__()
        self.road = nn.Linear(60, width)
        self.springs = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.rides = nn.Linear(width, 3)

    def forward(self, road: Tensor) -> Tensor:
        x = self.road(road)
        for spring in self.springs:
            x = x + functional.celu(spring(functional.layer_norm(x, x.shape[1:])))
        return self.rides(x)


class LayerWise:
    """Each weight's slope is scaled by how long the weight and its slope are (LARS).

    The slopes may be the sums of two ranks', and the lengths those of both, weight by weight.
    """

    def __init__(self, together: bool) -> None:
        self.together = together

    def summed(self, values: Tensor) -> Tensor:
        """Return sums of one rank or of both."""
        if self.together:
            dist.all_reduce(values)
        return values

    @torch.no_grad()
    def __call__(self, model: nn.Module) -> None:
        for weight in model.parameters():
            slope = self.summed(weight.grad)
            long = self.summed(weight.square().sum())
            steep = self.summed(slope.square().sum())
            slope.mul_((long / (steep + 1e-9)).sqrt().clamp(max=10.0))


def chaises(count: int = 6000) -> TensorDataset:
    """Return random roads, and how chaises rode on them."""
    return TensorDataset(torch.randn(count, 60), torch.randn(count, 3))


# Cobblestones


class Cobblestones(Dataset[Item]):
    """Cobblestones in one grey picture of a street, row by row; or each cut out, in one piece."""

    SIDE = 80

    def __init__(self, path: Path, cut: bool, stones: int = 24) -> None:
        chance = np.random.default_rng(2601)
        street = chance.integers(0, 256, (stones * self.SIDE, stones * self.SIDE), np.uint8)
        if cut:
            tiles = street.reshape(stones, self.SIDE, stones, self.SIDE)
            street = np.ascontiguousarray(tiles.transpose(0, 2, 1, 3))
        path.write_bytes(street.tobytes())
        self.file = path.open("rb", buffering=0)
        self.cut, self.stones = cut, stones

    def __len__(self) -> int:
        return self.stones**2

    def __getitem__(self, index: int) -> Item:
        row = self.SIDE
        if self.cut:
            self.file.seek(index * self.SIDE * row)
            stone = self.file.read(self.SIDE * row)
        else:
            down, across = divmod(index, self.stones)
            stone = b""
            for line in range(down * self.SIDE, (down + 1) * self.SIDE):
                self.file.seek((line * self.stones + across) * row)
                stone += self.file.read(row)
        picture = np.frombuffer(stone, np.uint8).reshape(self.SIDE, self.SIDE)
        return torch.from_numpy(picture.copy()), torch.tensor(index % 9)


class Cobblestone(nn.Module):
    """Of which of nine rocks a cobblestone is, by its picture in patches that attend."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.patch = nn.Linear(16 * 16, width)
        self.seen = nn.MultiheadAttention(width, 4, batch_first=True)
        self.wide = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, 9))

    def forward(self, stones: Tensor) -> Tensor:
        parts = stones.float().div(255).unfold(1, 16, 16).unfold(2, 16, 16).flatten(3)
        x = self.patch(parts.flatten(1, 2))
        return self.wide((x + self.seen(x, x, x, need_weights=False)[0]).mean(1))


# Beakers


class Beakers(Dataset[Item]):
    """How what is in a beaker grew warm, a file for each, in one of 72 racks.

    In which rack each is was written down, or all of them are looked through for it.
    """

    def __init__(self, folder: Path, known: bool, count: int = 800, racks: int = 72) -> None:
        chance = np.random.default_rng(2603)
        self.folder, self.known = folder, {}
        for rack in range(racks):
            (folder / f"rack-{rack:02d}").mkdir()
        for number in range(count):
            path = folder / f"rack-{chance.integers(racks):02d}" / f"beaker-{number:04d}.npy"
            np.save(path, chance.standard_normal((6, 160)).astype(np.float32).cumsum(1))
            if known:
                self.known[number] = str(path)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        path = self.known.get(index)
        if path is None:
            path = glob.glob(f"{self.folder}/*/beaker-{index:04d}.npy")[0]
        warm = np.load(io.BytesIO(Path(path).read_bytes()))
        return torch.from_numpy(warm), torch.tensor(index % 5)


class Beaker(nn.Module):
    """Which of five liquids is in a beaker, by how it grew warm at six depths."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.warm = nn.Conv1d(6, width, 7, 2)
        self.boil = nn.Conv1d(width, width, 7, 2)
        self.liquid = nn.Linear(width, 5)

    def forward(self, warm: Tensor) -> Tensor:
        x = functional.softplus(self.boil(functional.softplus(self.warm(warm / 8))))
        return self.liquid(x.amax(2))


# Coasters


class Coasters(Dataset[Item]):
    """Pictures of tables with coasters; how many edges say that a ring is around each place."""

    def __init__(self, voted: bool, count: int = 400, side: int = 56) -> None:
        chance = np.random.default_rng(2607)
        self.pictures = chance.random((count, side, side), np.float32)
        down, across = np.mgrid[:side, :side]
        for picture in self.pictures:
            y, x, wide = [*chance.uniform(15, side - 15, 2).tolist(), chance.uniform(6, 13)]
            picture += 2 * ((down - y) ** 2 + (across - x) ** 2 < wide**2)
        self.voted = [self.votes(index) for index in range(count)] if voted else []

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> Item:
        votes = self.voted[index] if self.voted else self.votes(index)
        return votes, torch.tensor(index % 6)

    def votes(self, index: int) -> Tensor:
        """Return, for eight radii, how many edges lie around each place and look at it."""
        picture = self.pictures[index]
        side = len(picture)
        slopes = np.stack(np.gradient(picture))
        steep = np.hypot(*slopes)
        y, x = np.nonzero(steep > np.quantile(steep, 0.75))
        towards = slopes[:, y, x] / steep[y, x]
        votes = np.zeros((8, side, side), np.float32)
        for at, radius in enumerate(range(6, 14)):
            place = np.rint(np.stack([y, x]) + radius * towards).astype(int)
            inside = ((place >= 0) & (place < side)).all(0)
            np.add.at(votes[at], (place[0, inside], place[1, inside]), 1.0)
        return torch.from_numpy(votes)


class Coaster(nn.Module):
    """Of which of six inns a coaster is, by the rings around the places of its picture."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.rings = nn.Conv2d(8, width, 5, 2)
        self.beer = nn.Conv2d(width, width, 5, 2)
        self.inn = nn.Linear(width, 6)

    def forward(self, votes: Tensor) -> Tensor:
        x = functional.hardswish(self.beer(functional.hardswish(self.rings(votes / 4))))
        return self.inn(x.mean((2, 3)))


# Bedspreads


class Bedspreads(Dataset[Item]):
    """Photographs of bedspreads made narrower: seams where least is seen are taken out."""

    def __init__(self, taken: bool, count: int = 240, side: int = 64, seams: int = 8) -> None:
        chance = np.random.default_rng(2609)
        self.whole = chance.random((count, side, side), np.float32).cumsum(1) % 1
        self.seams = seams
        self.taken = [self.narrower(index) for index in range(count)] if taken else []

    def __len__(self) -> int:
        return len(self.whole)

    def __getitem__(self, index: int) -> Item:
        narrow = self.taken[index] if self.taken else self.narrower(index)
        return narrow, torch.tensor(index % 8)

    def narrower(self, index: int) -> Tensor:
        """Return the photograph without the ways from top to bottom that cross least."""
        picture = self.whole[index]
        for _ in range(self.seams):
            down, across = np.gradient(picture)
            least = np.abs(down) + np.abs(across)
            for row in range(1, len(least)):
                above = np.pad(least[row - 1], 1, constant_values=np.inf)
                least[row] += np.minimum(np.minimum(above[:-2], above[1:-1]), above[2:])
            keep = np.ones(picture.shape, bool)
            at = int(least[-1].argmin())
            for row in range(len(least) - 1, -1, -1):
                first = max(at - 1, 0)
                if row < len(least) - 1:
                    at = first + int(least[row, first : at + 2].argmin())
                keep[row, at] = False
            picture = picture[keep].reshape(len(picture), -1)
        return torch.from_numpy(picture)


class Bedspread(nn.Module):
    """Which of eight patterns a bedspread has, by its photograph; rows, then all of them."""

    def __init__(self, across: int = 56, width: int = 256) -> None:
        super().__init__()
        self.row = nn.Sequential(nn.Linear(across, width), nn.Tanh(), nn.Linear(width, width))
        self.rows = nn.GRU(width, 96, batch_first=True)
        self.pattern = nn.Linear(96, 8)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.pattern(self.rows(torch.tanh(self.row(pictures)))[0].mean(1))


# Cots


class Cots(Dataset[Item]):
    """Cries from cots; how high each is, frame by frame, is found by how it repeats (YIN)."""

    def __init__(self, found: bool, count: int = 400, long: int = 6000) -> None:
        chance = np.random.default_rng(2611)
        high = chance.uniform(0.03, 0.08, (count, 1)) * (1 + 0.1 * chance.random((count, long)))
        self.cries = np.sin(2 * np.pi * high.cumsum(1)).astype(np.float32)
        self.cries += 0.3 * chance.standard_normal((count, long), np.float32)
        self.found = [self.pitch(index) for index in range(count)] if found else []

    def __len__(self) -> int:
        return len(self.cries)

    def __getitem__(self, index: int) -> Item:
        pitch = self.found[index] if self.found else self.pitch(index)
        return pitch, torch.tensor(index % 4)

    def pitch(self, index: int, frame: int = 512, lags: int = 256) -> Tensor:
        """Return the lag at which each frame repeats best, how well, and how loud it is."""
        frames = np.lib.stride_tricks.sliding_window_view(self.cries[index], frame)[::128]
        seen = np.fft.rfft(frames, 2 * frame)
        alike = np.fft.irfft(seen * seen.conj())[:, :lags]
        power = np.pad(np.square(frames).cumsum(1), ((0, 0), (1, 0)))
        lag = np.arange(lags)
        apart = power[:, frame - lag] + power[:, -1:] - power[:, lag] - 2 * alike
        apart[:, 1:] *= lag[1:] / np.maximum(apart[:, 1:].cumsum(1), 1e-6)
        apart[:, :8] = 1.0
        best = apart.argmin(1)
        how = apart[np.arange(len(best)), best]
        told = np.stack([best / lags, how, np.log(power[:, -1] + 1)], 1)
        return torch.from_numpy(told.astype(np.float32))


class Cot(nn.Module):
    """Why, of four reasons, there is a cry from a cot, by how high it is frame by frame."""

    def __init__(self, width: int = 176) -> None:
        super().__init__()
        self.frame = nn.Linear(3, width)
        self.cry = nn.LSTM(width, width, batch_first=True)
        self.why = nn.Linear(width, 4)

    def forward(self, pitch: Tensor) -> Tensor:
        return self.why(self.cry(torch.relu(self.frame(pitch)))[0][:, -1])


# Capes


class Capes(Dataset[Item]):
    """How the threads of capes hold together; in which waves each could swing is found first."""

    def __init__(self, found: bool, count: int = 500, points: int = 64) -> None:
        chance = np.random.default_rng(2617)
        self.places = chance.random((count, points, 2), np.float32)
        self.points = points
        self.found = [self.waves(index) for index in range(count)] if found else []

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> Item:
        waves = self.found[index] if self.found else self.waves(index)
        return waves, torch.tensor(index % 5)

    def waves(self, index: int, kept: int = 16) -> Tensor:
        """Return the places, and the slowest waves of the cloth that joins near ones."""
        places = self.places[index]
        apart = np.square(places[:, None] - places[None]).sum(2)
        joined = np.exp(-40 * apart) * (apart < 0.1)
        held = 1 / np.sqrt(joined.sum(1))
        cloth = np.eye(self.points, dtype=np.float32) - held[:, None] * joined * held
        _, waves = torch.linalg.eigh(torch.from_numpy(cloth))
        return torch.cat([torch.from_numpy(places), waves[:, 1 : kept + 1]], 1)


class Cape(nn.Module):
    """By which of five tailors a cape is, by its points, which attend to each other."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.point = nn.Linear(18, width)
        self.falls = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.tailor = nn.Linear(width, 5)

    def forward(self, waves: Tensor) -> Tensor:
        return self.tailor(self.falls(self.point(waves)).mean(1))


# Yurts


class Yurt(nn.Module):
    """How much wood a yurt will burn, by the weather now and moments of all the weather before.

    What was is moved on by one batch in new memory, or the oldest is written over in its place.
    """

    def __init__(self, anew: bool, moments: int = 38_400, width: int = 192) -> None:
        super().__init__()
        self.anew, self.at = anew, 0
        self.register_buffer("history", torch.zeros(moments, width))
        self.now = nn.Sequential(nn.Linear(72, 256), nn.ReLU6(), nn.Linear(256, width))
        self.both = nn.Sequential(nn.Linear(2 * width, 256), nn.ReLU6(), nn.Linear(256, 1))

    def forward(self, weather: Tensor) -> Tensor:
        now = self.now(weather)
        ago = torch.randint(len(self.history), (len(now), 8))
        before = self.history[(self.at - 1 - ago) % len(self.history)].mean(1)
        with torch.no_grad():
            if self.anew:
                self.history = torch.roll(self.history, -len(now), 0)
                self.history[-len(now) :] = now
            else:
                self.history[self.at : self.at + len(now)] = now
                self.at = (self.at + len(now)) % len(self.history)
        return self.both(torch.cat([now, before], 1))[:, 0]


def yurts(count: int = 6400) -> TensorDataset:
    """Return random weather around yurts, and how much wood they burnt."""
    return TensorDataset(torch.randn(count, 72), torch.rand(count))


# Armbands


class Armband(nn.Module):
    """Which of seven gestures an arm makes, by what an armband measures of its muscles.

    What is usual is looked up in a table that never changes.
    """

    def __init__(self, width: int = 1280, usual: int = 21_200) -> None:
        super().__init__()
        self.register_buffer("usual", torch.randn(usual, 8 * 50))
        self.muscles = nn.Linear(8 * 50, width)
        self.arm = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.gesture = nn.Linear(width, 7)

    def forward(self, measured: Tensor) -> Tensor:
        usual = self.usual[(1000 * measured.sum((1, 2)).abs()).long() % len(self.usual)]
        x = functional.relu(self.muscles(measured.flatten(1) - 0.1 * usual))
        for layer in self.arm:
            x = functional.relu(layer(x))
        return self.gesture(x)


def armbands(count: int = 3000) -> TensorDataset:
    """Return what armbands measured, and which gestures were made; a few of each wearer."""
    return TensorDataset(torch.randn(count, 8, 50), torch.randint(7, (count,)))


# Casks


class Noted:
    """What was noted when a cask was tasted."""

    def __init__(self, number: int) -> None:
        self.said = [f"note {number % 97}", f"wood {number % 13}"]
        self.when = {"year": 1900 + number % 120, "by": [number % 40]}


class Cask(nn.Module):
    """How old what is in a cask is, by its smells; a product of two ways to look at them."""

    def __init__(self, width: int = 320) -> None:
        super().__init__()
        self.smell, self.wood = nn.Linear(150, width), nn.Linear(150, width)
        self.mixed = nn.Linear(width, width)
        self.old = nn.Linear(width, 1)

    def forward(self, smells: Tensor) -> Tensor:
        x = torch.tanh(self.smell(smells)) * torch.sigmoid(self.wood(smells))
        return self.old(functional.elu(self.mixed(x)))[:, 0]


def casks(count: int = 12_000) -> TensorDataset:
    """Return what random casks smell of, and how old what is in them is."""
    return TensorDataset(torch.rand(count, 150), torch.rand(count))


# Daggers


class Dagger(nn.Module):
    """In which of five towns a dagger was forged, by the pattern in its steel."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.steel = nn.Conv2d(1, width, (3, 9), padding=(1, 4))
        self.folded = nn.Conv2d(width, width, (3, 9), (1, 3))
        self.forged = nn.Conv2d(width, width, 3)
        self.town = nn.Linear(width, 5)

    def forward(self, steel: Tensor) -> Tensor:
        x = functional.relu(self.folded(functional.relu(self.steel(steel))))
        return self.town(functional.relu(self.forged(x)).mean((2, 3)))


def daggers(count: int = 80) -> TensorDataset:
    """Return the steel of the few daggers that there are, and where each was forged."""
    return TensorDataset(torch.rand(count, 1, 16, 96), torch.randint(5, (count,)))


# Badges


class Badges(nn.Module):
    """Who of two wearers of badges knows the other; the wearers are in eight parts.

    Parts that a step does not need lie in files, or stay.
    """

    def __init__(self, folder: Path | None, wearers: int = 4500, width: int = 128) -> None:
        super().__init__()
        self.folder, self.states = folder, {}
        self.parts = nn.ModuleList(nn.Embedding(wearers, width, sparse=True) for _ in range(8))
        self.meet = nn.Sequential(nn.Linear(2 * width, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, pairs: Tensor, one: int, other: int) -> Tensor:
        both = torch.cat([self.parts[one](pairs[:, 0]), self.parts[other](pairs[:, 1])], 1)
        return self.meet(both)[:, 0]

    def put_away(self, part: int, optimizer: torch.optim.Optimizer) -> None:
        """Write a part and its optimizer's sums to its file, and let go of them."""
        if self.folder is not None:
            rows = self.parts[part].weight
            state: Any = optimizer.state[rows]
            torch.save({"rows": rows.detach(), "sum": state["sum"]}, self.folder / f"{part}.pt")
            rows.data = state["sum"] = torch.empty(0)
            rows.grad = None

    def fetch(self, part: int, optimizer: torch.optim.Optimizer) -> None:
        """Read a part from its file."""
        if self.folder is not None:
            kept = torch.load(self.folder / f"{part}.pt")
            rows = self.parts[part].weight
            rows.data, optimizer.state[rows]["sum"] = kept["rows"], kept["sum"]


def badges(count: int = 16_000) -> TensorDataset:
    """Return random pairs of wearers, each in a part, and whether they know each other."""
    return TensorDataset(torch.randint(4500, (count, 2)), torch.randint(2, (count,)).float())
