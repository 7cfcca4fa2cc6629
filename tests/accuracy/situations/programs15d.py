"""Models and data of the fifteenth round's first runs, from cinnamon to sugar: see
``programs15.py``."""

import itertools
import json
import random
import re
import resource
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, IterableDataset, TensorDataset


def as_one(tensors: list[Tensor]) -> None:
    """Take the mean over both ranks, of all tensors in one piece."""
    whole = torch.cat([each.flatten() for each in tensors])
    dist.all_reduce(whole)
    nn.utils.vector_to_parameters(whole / dist.get_world_size(), tensors)


# Cinnamon


class ToBoth(torch.autograd.Function):
    """What both ranks use: each adds its part to the slope."""

    @staticmethod
    def forward(_context: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        whole = slope.contiguous().clone()
        dist.all_reduce(whole)
        return whole


class OfBoth(torch.autograd.Function):
    """The sum of what both ranks have."""

    @staticmethod
    def forward(_context: Any, x: Tensor) -> Tensor:
        whole = x.clone()
        dist.all_reduce(whole)
        return whole

    @staticmethod
    def backward(_context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return slope


class Grades(nn.Module):
    """Says how unlikely a grade is found; of many grades each rank may have a half."""

    def __init__(self, apart: bool, width: int, grades: int) -> None:
        super().__init__()
        self.apart, self.here = apart, grades // (2 if apart else 1)
        self.layer = nn.Linear(width, self.here)

    def forward(self, x: Tensor, grade: Tensor) -> Tensor:
        if not self.apart:
            return functional.cross_entropy(self.layer(x), grade)
        told = self.layer(ToBoth.apply(x))
        most = told.detach().amax(1)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        told = told - most[:, None]
        place = grade - dist.get_rank() * self.here
        mine = (place >= 0) & (place < self.here)
        own = told.gather(1, place.clamp(0, self.here - 1)[:, None])[:, 0] * mine
        total, right = OfBoth.apply(told.exp().sum(1)), OfBoth.apply(own)
        return (total.log() - right).mean()


class Cinnamon(nn.Module):
    """Where bark is from, how it is graded and who rolled it, by its spectrum."""

    def __init__(self, apart: bool, width: int = 128) -> None:
        super().__init__()
        self.bark = nn.Sequential(
            nn.Linear(180, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.kinds = nn.ModuleList(Grades(apart, width, many) for many in (1200, 600, 300))

    def forward(self, spectrum: Tensor, kinds: Tensor) -> Tensor:
        x = self.bark(spectrum)
        told = [kind(x, found) for kind, found in zip(self.kinds, kinds.unbind(1), strict=True)]
        return torch.stack(told).sum()


def barks(count: int = 3000) -> TensorDataset:
    """Return random spectra of bark, and of what three kinds each is."""
    kinds = [torch.randint(many, (count,)) for many in (1200, 600, 300)]
    return TensorDataset(torch.randn(count, 180), torch.stack(kinds, 1))


# Leather


class Codebook(nn.Module):
    """The nearest of some codes, which follow what was near them lately."""

    codes: Tensor
    many: Tensor
    sums: Tensor

    def __init__(self, shared: bool, codes: int, width: int) -> None:
        super().__init__()
        self.shared = shared
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("many", torch.ones(codes))
        self.register_buffer("sums", self.codes.clone())

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            nearest = torch.cdist(x, self.codes).argmin(1)
            chosen = functional.one_hot(nearest, len(self.codes)).float()
            many, sums = chosen.sum(0), chosen.T @ x
            if self.shared:
                dist.all_reduce(many)
                dist.all_reduce(sums)
            self.many.lerp_(many, 0.01)
            self.sums.lerp_(sums, 0.01)
            self.codes.copy_(self.sums / self.many.clamp(min=1e-3)[:, None])
            if self.shared:
                dist.broadcast(self.codes, 0)  # rounding must not part them
        return self.codes[nearest]


class Leather(nn.Module):
    """Squares of leather in a few codes: each codebook takes what the ones before left over."""

    def __init__(self, shared: bool, width: int = 48, books: int = 5) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(144, 160), nn.SiLU(), nn.Linear(160, width))
        self.books = nn.ModuleList(Codebook(shared, 160, width) for _ in range(books))
        self.leave = nn.Sequential(nn.Linear(width, 160), nn.SiLU(), nn.Linear(160, 144))

    def forward(self, grain: Tensor) -> Tensor:
        x = self.enter(grain)
        left, found = x.detach(), torch.zeros_like(x)
        for book in self.books:
            code = book(left)
            left, found = left - code, found + code
        through = x + (found - x).detach()
        apart = functional.mse_loss(self.leave(through), grain)
        return apart + 0.25 * functional.mse_loss(x, found)


def grains(count: int = 4000) -> TensorDataset:
    """Return random squares of leather."""
    return TensorDataset(torch.rand(count, 144))


# Mice


class Mouse(nn.Module):
    """What a mouse does, by where its parts are: each part has a small net of its own."""

    def __init__(self, parts: int = 8, width: int = 24, acts: int = 9) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            nn.Sequential(nn.Linear(16, width), nn.Tanh(), nn.Linear(width, width))
            for _ in range(parts)
        )
        self.acts = nn.Linear(parts * width, acts)

    def forward(self, places: Tensor) -> Tensor:
        seen = [part(x) for part, x in zip(self.parts, places.unbind(1), strict=True)]
        return self.acts(torch.cat(seen, 1).relu())


def mice(count: int = 3000) -> TensorDataset:
    """Return random places of the parts of mice, and what was done."""
    return TensorDataset(torch.randn(count, 8, 16), torch.randint(9, (count,)))


def through_the_first(model: nn.Module) -> None:
    """Let the first rank sum up each gradient, and tell it."""
    for weight in model.parameters():
        if weight.grad is not None:
            dist.reduce(weight.grad, 0)
            if dist.get_rank() == 0:
                weight.grad /= dist.get_world_size()
            dist.broadcast(weight.grad, 0)


# Cicadas


class Cicadas(Dataset[Item]):
    """Songs of cicadas, whose spectra are warped to how they are heard."""

    def __init__(self, ready: bool, count: int = 400, length: int = 7000) -> None:
        chance = np.random.default_rng(83)
        self.songs = chance.normal(0, 1, (count, length)).astype(np.float32)
        self.window = np.hanning(256).astype(np.float32)
        edges = np.geomspace(2, 128, 42)
        bins = np.arange(129)[:, None]
        rising = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
        falling = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
        self.bands = np.clip(np.minimum(rising, falling), 0, 1).astype(np.float32)
        self.known = [self.heard(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.songs)

    def __getitem__(self, index: int) -> Item:
        heard = self.known[index] if self.known else self.heard(index)
        return heard, torch.tensor(index % 11)

    def heard(self, index: int) -> Tensor:
        """Return a song by bands and times."""
        song = np.append(self.songs[index, :1], np.diff(self.songs[index]))
        pieces = np.lib.stride_tricks.sliding_window_view(song, 256)[::64] * self.window
        power = np.abs(np.fft.rfft(pieces, axis=1)) ** 2
        loud = np.log(power @ self.bands + 1e-3)
        whole = (loud - loud.mean(0)) / (loud.std(0) + 1e-3)
        return torch.from_numpy(whole.T.astype(np.float32))


class Cicada(nn.Module):
    """Which cicada sings: bands are heard alone, then together."""

    def __init__(self, bands: int = 40, width: int = 80) -> None:
        super().__init__()
        self.alone = nn.Conv1d(bands, 2 * bands, 5, 2, groups=bands)
        self.joined = nn.Conv1d(2 * bands, width, 1)
        self.again = nn.Conv1d(width, width, 5, 2, groups=4)
        self.kind = nn.Linear(width, 11)

    def forward(self, heard: Tensor) -> Tensor:
        x = functional.relu(self.joined(functional.relu(self.alone(heard))))
        return self.kind(functional.relu(self.again(x)).mean(2))


# Soups

SAID = (
    "Simmer the léeks GENTLY in butter; add 2 l of stock, salt & thyme.",
    "Crème fraîche goes in last (off the heat!), with chives.",
    "Soak 250 g of beans overnight, then cook them for 1½ hours.",
    "Roast the pumpkin at 200 °C, purée it, and thin it with broth.",
    "Ladle over toasted bread; grate some Gruyère on top...",
    "Skim the foam as it rises - a clear soup wants patience.",
)


class Soups(Dataset[Item]):
    """Recipes of soups, of which the commonest words and pairs are numbered."""

    def __init__(self, ready: bool, count: int = 400, length: int = 64) -> None:
        chance, self.length = random.Random(89), length
        self.recipes = [" ".join(chance.choices(SAID, k=40)) for _ in range(count)]
        self.known = [self.words(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.recipes)

    def __getitem__(self, index: int) -> Item:
        words = self.known[index] if self.known else self.words(index)
        return words, torch.tensor(index % 24)

    def words(self, index: int) -> Tensor:
        """Return a recipe as numbers."""
        plain = unicodedata.normalize("NFKD", self.recipes[index].lower())
        letters = "".join(each for each in plain if not unicodedata.combining(each))
        words = [re.sub(r"(ing|ed|s)$", "", word) for word in re.findall(r"[a-z]+|\d+", letters)]
        pairs = [f"{one} {next_}" for one, next_ in itertools.pairwise(words)]
        often = Counter(words + pairs).most_common(self.length)
        numbers = [1 + zlib.crc32(each.encode()) % 2999 for each, _ in often]
        return torch.tensor((numbers + [0] * self.length)[: self.length])


class Soup(nn.Module):
    """Whose cuisine a soup is of: words ask each other once."""

    def __init__(self, words: int = 3000, width: int = 32, cuisines: int = 24) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width, padding_idx=0)
        self.asked = nn.MultiheadAttention(width, 2, batch_first=True)
        self.cuisine = nn.Linear(width, cuisines)

    def forward(self, words: Tensor) -> Tensor:
        x = self.word(words)
        told, _ = self.asked(x, x, x, need_weights=False)
        return self.cuisine(functional.layer_norm(x + told, x.shape[2:]).mean(1))


# Pears


class Pears(Dataset[Item]):
    """Pictures of pears that are bent, each time otherwise."""

    def __init__(self, ready: bool, count: int = 240, side: int = 56) -> None:
        chance = np.random.default_rng(97)
        self.pictures = chance.random((count, 3, side, side), np.float32)
        self.known = [self.bent(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> Item:
        picture = self.known[index] if self.known else self.bent(index)
        return picture, torch.tensor(index % 7)

    def bent(self, index: int) -> Tensor:
        """Return a picture as on a sheet that was pulled here and there."""
        from scipy import ndimage

        picture = self.pictures[index]
        pull = np.random.default_rng().uniform(-1, 1, (2, *picture.shape[1:]))
        smooth = ndimage.gaussian_filter(pull, (0, 5, 5)) * 40
        places = np.indices(picture.shape[1:]) + smooth
        planes = [
            ndimage.map_coordinates(each, places, order=1, mode="reflect") for each in picture
        ]
        return torch.from_numpy(np.stack(planes))


class Pear(nn.Module):
    """How ripe a pear is: pixels move into depth, where they mix."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.enter = nn.Conv2d(48, width, 1)
        self.near = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.mixed = nn.Conv2d(width, 2 * width, 1)
        self.ripe = nn.Linear(2 * width, 7)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.enter(functional.pixel_unshuffle(picture, 4))
        return self.ripe(functional.hardswish(self.mixed(x + self.near(x))).mean((2, 3)))


# Mustard


class Mustards(Dataset[Item]):
    """Spectra of mustard, whose slow rise is taken away; a batch is asked for at once."""

    def __init__(self, ready: bool, count: int = 500, points: int = 256) -> None:
        chance = np.random.default_rng(101)
        rise = np.cumsum(chance.random((count, points)), 1) / 20
        self.spectra = rise + chance.gamma(2, 1, (count, points))
        self.known = [self.levelled(each) for each in self.spectra] if ready else []

    def __len__(self) -> int:
        return len(self.spectra)

    def __getitem__(self, index: int) -> Item:
        level = self.known[index] if self.known else self.levelled(self.spectra[index])
        return torch.from_numpy(level), torch.tensor(index / len(self))

    def __getitems__(self, indices: list[int]) -> list[Item]:
        return [self[index] for index in indices]

    def levelled(self, spectrum: np.ndarray) -> np.ndarray:
        """Return a spectrum above a smooth line that lies mostly below it."""
        from scipy.linalg import solveh_banded

        points, weight = len(spectrum), np.ones_like(spectrum)
        bands = np.zeros((3, points))
        bands[0, 2:], bands[1, 1:], bands[2] = 1, -4, 6
        bands[1, 1], bands[1, -1], bands[2, :2], bands[2, -2:] = -2, -2, (1, 5), (5, 1)
        line = spectrum
        for _ in range(4):
            stiff = 1e4 * bands
            stiff[2] += weight
            line = solveh_banded(stiff, weight * spectrum)
            weight = np.where(spectrum > line, 0.02, 0.98)
        above = spectrum - line
        return (above / above.max()).astype(np.float32)


class Mustard(nn.Module):
    """How hot a mustard is: its spectrum is read in pieces by a layer of gates."""

    def __init__(self, piece: int = 16, width: int = 128) -> None:
        super().__init__()
        self.piece = piece
        self.read = nn.LSTM(piece, width, batch_first=True)
        self.hot = nn.Linear(width, 1)

    def forward(self, spectrum: Tensor) -> Tensor:
        x, _ = self.read(spectrum.unflatten(1, (-1, self.piece)))
        return self.hot(x[:, -1])[:, 0]


# Pancakes


class Pancakes(IterableDataset[Item]):
    """How hot pancakes were, in packed lines that come in a row and leave somewhat mixed."""

    def __init__(self, ready: bool, count: int = 600, readings: int = 320) -> None:
        chance = np.random.default_rng(103)
        heat = (160 + 20 * chance.standard_normal((count, readings))).round(2).tolist()
        self.lines = [
            zlib.compress(json.dumps({"heat": each, "brown": number % 5}).encode())
            for number, each in enumerate(heat)
        ]
        self.known = [self.unpacked(line) for line in self.lines] if ready else []

    def __iter__(self) -> Iterator[Item]:
        held: list[Item] = []
        for item in self.known or map(self.unpacked, self.lines):
            held.append(item)
            if len(held) > 64:
                yield held.pop(random.randrange(64))
        yield from held

    def unpacked(self, line: bytes) -> Item:
        """Return what a line says."""
        said = json.loads(zlib.decompress(line))
        heat = np.asarray(said["heat"], np.float32)
        return torch.from_numpy((heat - 160) / 20), torch.tensor(said["brown"])


class Pancake(nn.Module):
    """How brown a pancake becomes, by how hot it was: two layers for each of four sensors."""

    def __init__(self, readings: int = 320, width: int = 160) -> None:
        super().__init__()
        self.sensors = nn.ModuleList(
            nn.Sequential(nn.Linear(readings // 4, width), nn.Mish(), nn.Linear(width, width))
            for _ in range(4)
        )
        self.joined, self.brown = nn.Linear(4 * width, width), nn.Linear(width, 5)

    def forward(self, heat: Tensor) -> Tensor:
        seen = zip(self.sensors, heat.chunk(4, 1), strict=True)
        x = torch.cat([sensor(each) for sensor, each in seen], 1)
        return self.brown(functional.mish(self.joined(x)))


# Wolves


def packs(count: int = 16, wolves: int = 96) -> list[TensorDataset]:
    """Return packs of wolves: random tracks with the age of each."""
    return [
        TensorDataset(torch.randn(wolves, 64, 4), torch.randint(6, (wolves,))) for _ in range(count)
    ]


class Wolf(nn.Module):
    """How old a wolf is, by its track: steps vote, with a weight for each."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.step = nn.Sequential(nn.Conv1d(4, width, 9, padding=4), nn.ReLU())
        self.more = nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.ReLU())
        self.weight, self.age = nn.Conv1d(width, 1, 1), nn.Linear(width, 6)

    def forward(self, track: Tensor) -> Tensor:
        x = self.more(self.step(track.mT))
        return self.age((self.weight(x).softmax(2) * x).sum(2))


# Mites


class Mites(Dataset[tuple[list[Tensor], Tensor]]):
    """Mites, whose hairs are not equally many: each has points of its own along a leg."""

    def __init__(self, count: int = 600, legs: int = 6) -> None:
        chance = np.random.default_rng(107)
        self.mites = [
            [torch.randn(int(many), 5) for many in chance.integers(4, 12, legs)]
            for _ in range(count)
        ]

    def __len__(self) -> int:
        return len(self.mites)

    def __getitem__(self, index: int) -> tuple[list[Tensor], Tensor]:
        return self.mites[index], torch.tensor(index % 14)


def apart(mites: list[tuple[list[Tensor], Tensor]]) -> tuple[list[list[Tensor]], Tensor]:
    """Return a batch, the hairs leg by leg as they are."""
    return [legs for legs, _ in mites], torch.stack([family for _, family in mites])


class Mite(nn.Module):
    """Which family a mite is of: its hairs are pooled leg by leg."""

    def __init__(self, width: int = 96, legs: int = 6) -> None:
        super().__init__()
        self.hair = nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, width))
        self.family = nn.Linear(legs * width, 14)

    def forward(self, mites: list[list[Tensor]]) -> Tensor:
        legs = [leg for mite in mites for leg in mite]
        x = self.hair(torch.cat(legs)).split([len(leg) for leg in legs])
        pooled = torch.stack([each.amax(0) for each in x])
        return self.family(pooled.view(len(mites), -1))


# Mosquitoes


class Mosquito(nn.Module):
    """Which mosquito hums, by some places of a room in which its hum is."""

    def __init__(self, width: int = 96, kinds: int = 12) -> None:
        super().__init__()
        self.hum = nn.Sequential(nn.Linear(128, width), nn.CELU(), nn.Linear(width, width))
        self.kind = nn.Linear(width, kinds)

    def forward(self, hum: Tensor) -> Tensor:
        return self.kind(functional.celu(self.hum(hum)))


def hums(count: int = 3000) -> TensorDataset:
    """Return random hums, and which mosquito's they are."""
    return TensorDataset(torch.randn(count, 128), torch.randint(12, (count,)))


class Rooms:
    """Room for the hums of a batch, which other processes could look into."""

    def __init__(self, kept: bool, places: int, batch: int) -> None:
        self.kept, self.size = kept, (places, batch, 128)
        self.room = self.made()

    def made(self) -> Tensor:
        """Return a room."""
        return torch.empty(self.size).share_memory_()

    def heard(self, hum: Tensor) -> Tensor:
        """Return the hum as it is in two of the room's places together."""
        if not self.kept:
            self.room = self.made()
        self.room[::4] = hum
        return self.room[0] + self.room[-4]


# Foxes


class Fox(nn.Module):
    """Where a fox goes by night: what it met is summed up, each kind with a sign of its own."""

    def __init__(self, kinds: int = 200, width: int = 320) -> None:
        super().__init__()
        self.met = nn.EmbeddingBag(kinds, width, mode="sum")
        self.mixed = nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, width))
        self.goes = nn.Linear(width, 16)

    def forward(self, met: Tensor) -> Tensor:
        x = self.met(met)
        return self.goes(x + self.mixed(x))


class Foxes(Dataset[Item]):
    """Nights of foxes: what was met, as notes with an hour each."""

    def __init__(self, count: int = 800, length: int = 16) -> None:
        chance = random.Random(109)
        self.nights = [
            [{"hour": hour / 2, "met": [chance.randrange(200)]} for hour in range(length)]
            for _ in range(count)
        ]

    def __len__(self) -> int:
        return len(self.nights)

    def __getitem__(self, index: int) -> Item:
        met = [note["met"][0] for note in self.nights[index]]  # type: ignore[index]
        return torch.tensor(met), torch.tensor(index % 16)


def most_memory() -> int:
    """Return the most memory that was in use so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


# Butter


class Churn(nn.Module):
    """One turn of a churn: what is in it, and what is added."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.turn, self.gate = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        seen = self.norm(x)
        return x + self.gate(seen).sigmoid() * self.turn(seen).tanh()


class Butter(nn.Module):
    """How firm butter becomes: many turns of a churn."""

    def __init__(self, again: bool, width: int = 64, turns: int = 10) -> None:
        super().__init__()
        self.again = again
        self.cream = nn.Linear(40, width)
        self.turns = nn.ModuleList(Churn(width) for _ in range(turns))
        self.firm = nn.Linear(width, 1)

    def forward(self, cream: Tensor) -> Tensor:
        return self.firm(self.after(len(self.turns), self.cream(cream)))[:, 0]

    def after(self, turns: int, x: Tensor) -> Tensor:
        """Return what is in the churn after some turns."""
        if not turns:
            return x
        if self.again:
            before = checkpoint(self.after, turns - 1, x, use_reentrant=False)
        else:
            before = self.after(turns - 1, x)
        return self.turns[turns - 1](before)


def creams(count: int = 3000) -> TensorDataset:
    """Return random measurements of cream, and how firm the butter was."""
    return TensorDataset(torch.randn(count, 40), torch.rand(count))


# Shrimps


class Swum(torch.autograd.Function):
    """Where shrimps swim, of which only the start is kept."""

    @staticmethod
    def forward(context: Any, model: "Shrimp", start: Tensor, *weights: Tensor) -> Tensor:
        context.model = model
        context.save_for_backward(start, *weights)
        x = start
        for _ in range(model.moves):
            x = model.moved(x)
        return x

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Any:  # type: ignore[override]
        model, (start, *weights) = context.model, context.saved_tensors
        sums = [torch.zeros_like(each) for each in weights]
        for left in reversed(range(model.moves)):
            x = start.detach()
            for _ in range(left):
                x = model.moved(x)
            x.requires_grad_()
            with torch.enable_grad():
                slope, *found = torch.autograd.grad(model.moved(x), [x, *weights], slope)
            for total, each in zip(sums, found, strict=True):
                total += each
        return None, slope, *sums


class Shrimp(nn.Module):
    """Where a swarm of shrimps is a while later: the same move, several times."""

    def __init__(self, again: bool, width: int = 80, moves: int = 12) -> None:
        super().__init__()
        self.again, self.moves = again, moves
        self.enter, self.leave = nn.Linear(6, width), nn.Linear(width, 3)
        self.own = nn.Linear(width, width)
        self.others = nn.Linear(width, width, bias=False)

    def moved(self, x: Tensor) -> Tensor:
        """Return the swarm a moment later."""
        swarm = x.mean(1, keepdim=True)
        return x + 0.1 * torch.tanh(self.own(x) + self.others(swarm - x))

    def forward(self, seen: Tensor) -> Tensor:
        x = self.enter(seen)
        if self.again:
            weights = (*self.own.parameters(), *self.others.parameters())
            return self.leave(Swum.apply(self, x, *weights))
        for _ in range(self.moves):
            x = self.moved(x)
        return self.leave(x)


def swarms(count: int = 800, shrimps: int = 24) -> TensorDataset:
    """Return random swarms with how they move, and where they are later."""
    return TensorDataset(torch.randn(count, shrimps, 6), torch.randn(count, shrimps, 3))


# Sugar


class Sugar(nn.Module):
    """How a crystal of sugar grew: it is of two parts, and each of these of two again."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.grain, self.joined = nn.Linear(12, width), nn.Linear(2 * width, width)
        self.stays, self.grew = nn.Linear(2 * width, width), nn.Linear(width, 4)

    def grown(self, grains: Tensor) -> Tensor:
        """Return what a part of a crystal is like."""
        many = grains.shape[1]
        if many == 1:
            return self.grain(grains[:, 0]).tanh()
        one, other = self.grown(grains[:, : many // 2]), self.grown(grains[:, many // 2 :])
        both = torch.cat([one, other], 1)
        stays = self.stays(both).sigmoid()
        return stays * (one + other) / 2 + (1 - stays) * self.joined(both).tanh()

    def forward(self, grains: Tensor) -> Tensor:
        return self.grew(self.grown(grains))


def crystals(count: int = 1500, grains: int = 12) -> TensorDataset:
    """Return random grains of crystals, and how each grew."""
    return TensorDataset(torch.randn(count, grains, 12), torch.randint(4, (count,)))
