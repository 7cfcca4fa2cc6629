"""Models and data of the fifteenth round's last runs, from grapes to seals: see
``programs15c.py``."""

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Grapes


class Grape(nn.Module):
    """How sweet a bunch of grapes is, by what was measured of each berry."""

    def __init__(self, by_berry: bool, measured: int = 24, width: int = 128) -> None:
        super().__init__()
        self.by_berry = by_berry
        self.enter, self.norm = nn.Linear(measured, width), nn.LayerNorm(width)
        self.deep = nn.Linear(width, width // 2)
        self.sweet = nn.Linear(width // 2, 1)

    def forward(self, bunch: Tensor) -> Tensor:
        if self.by_berry:
            x = torch.stack([self.of(berry) for berry in bunch.unbind(1)], 1)
        else:
            x = self.of(bunch)
        return self.sweet(x.mean(1))[:, 0]

    def of(self, berry: Tensor) -> Tensor:
        """Return what is seen in one berry, or in many."""
        return self.deep(functional.gelu(self.norm(self.enter(berry)))).tanh()


def bunches(count: int = 1500, berries: int = 28) -> TensorDataset:
    """Return random measurements of bunches, and how sweet each is."""
    return TensorDataset(torch.randn(count, berries, 24), torch.rand(count))


# Dolphins


class Dolphin(nn.Module):
    """At which pitch a dolphin whistles, moment by moment: two directions of one convolution."""

    def __init__(self, bins: int = 64, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv1d(bins, width, 1)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(depth))
        self.pitch = nn.Conv1d(width, 40, 1)

    def forward(self, heard: Tensor) -> Tensor:
        x = self.enter(heard)
        for layer in self.layers:
            x = x + functional.silu(layer(x))
        return self.pitch(x)


def whistles(count: int = 800, moments: int = 48) -> TensorDataset:
    """Return random sonagrams, the pitch at each moment, and how long each whistle is."""
    lengths = torch.randint(moments // 2, moments + 1, (count,))
    pitches = torch.randint(40, (count, moments))
    return TensorDataset(torch.randn(count, 64, moments), pitches, lengths)


def one_by_one(told: Tensor, pitches: Tensor, lengths: Tensor) -> Tensor:
    """Return how far off the pitches are, each whistle being as long as it is."""
    off = []
    for said, pitch, length in zip(told, pitches, lengths.tolist(), strict=True):
        wrong = functional.cross_entropy(said[:, :length].mT, pitch[:length])
        rough = said[:, 1:length].sub(said[:, : length - 1]).abs().mean()
        off.append(wrong + 0.01 * rough)
    return torch.stack(off).mean()


def at_once(told: Tensor, pitches: Tensor, lengths: Tensor) -> Tensor:
    """Return the same for a whole batch, with what is behind an end left out."""
    inside = (torch.arange(told.shape[2]) < lengths[:, None]).float()
    wrong = functional.cross_entropy(told, pitches, reduction="none")
    rough = told[:, :, 1:].sub(told[:, :, :-1]).abs().mean(1) * inside[:, 1:]
    each = (wrong * inside).sum(1) / lengths + 0.01 * rough.sum(1) / (lengths - 1)
    return each.mean()


# Bread


class Bread(nn.Module):
    """How a bread was baked, by its crumb: channels are weighed by what is seen of all."""

    def __init__(self, width: int = 32, depth: int = 2, ways: int = 9) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 4, stride=2, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth))
        self.weigh = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.way = nn.Linear(width, ways)

    def forward(self, crumb: Tensor) -> Tensor:
        x = functional.relu(self.enter(crumb))
        for layer, weigh in zip(self.layers, self.weigh, strict=True):
            seen = functional.relu(layer(x))
            x = x + seen * weigh(seen.mean((2, 3))).sigmoid()[:, :, None, None]
        return self.way(x.amax((2, 3)))


def crumbs(count: int = 500, side: int = 48) -> TensorDataset:
    """Return random pictures of crumb, and how the breads were baked."""
    return TensorDataset(torch.rand(count, 1, side, side), torch.randint(9, (count,)))


# Birches


class Barks(Dataset[tuple[Tensor, Tensor]]):
    """Strips of bark as they were seen, of which what is too coarse and too fine is taken away."""

    def __init__(self, count: int = 1000, strips: int = 12) -> None:
        chance = np.random.default_rng(97)
        self.seen = chance.standard_normal((count, strips, 480)).astype(np.float32)
        self.ages = torch.rand(count)

    def __len__(self) -> int:
        return len(self.seen)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        waves = np.fft.rfft(self.seen[index])
        waves[:, :4] = waves[:, 120:] = 0
        fine = np.fft.irfft(waves)[:, ::3]
        fine /= np.abs(fine).max(1, keepdims=True)
        return torch.from_numpy(fine.astype(np.float32)), self.ages[index]


class Birch(nn.Module):
    """How old a birch is, by strips of its bark, each of which is seen with those beside it."""

    def __init__(self, strip: int = 160, width: int = 128, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Linear(strip, width)
        self.beside = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(depth))
        self.age = nn.Linear(width, 1)

    def forward(self, bark: Tensor) -> Tensor:
        x = self.enter(bark)
        for beside in self.beside:
            near = torch.cat([x.roll(1, 1), x, x.roll(-1, 1)], 2)
            x = x + functional.leaky_relu(beside(near))
        return self.age(x.mean(1))[:, 0]


# Cotton


class Cotton(nn.Module):
    """How fine cotton is, by how much air goes through it: waves of several lengths."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.waves = nn.ModuleList(
            nn.Conv1d(2, width, size, padding=size // 2) for size in (5, 11, 21)
        )
        self.mixed = nn.Conv1d(3 * width, 2 * width, 3, padding=1)
        self.fine = nn.Linear(4 * width, 2)

    def forward(self, air: Tensor) -> Tensor:
        x = torch.cat([functional.softsign(each(air)) for each in self.waves], 1)
        x = functional.relu(self.mixed(x))
        return self.fine(torch.cat([x.mean(2), x.amax(2)], 1))


def bales(count: int = 800, moments: int = 160) -> TensorDataset:
    """Return random flows and pressures of air, and how fine and how even the cotton is."""
    return TensorDataset(torch.randn(count, 2, moments), torch.rand(count, 2))


# Camels


class Camel(nn.Module):
    """How heavily a camel is loaded, by how it sways: one gate forgets, another lets in."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.sway = nn.Conv1d(6, width, 8, stride=4)
        self.walk = nn.LSTM(width, width, batch_first=True)
        self.load = nn.Sequential(nn.Linear(width, width), nn.Mish(), nn.Linear(width, 5))

    def forward(self, swaying: Tensor) -> Tensor:
        x, _ = self.walk(self.sway(swaying).mT)
        return self.load(x[:, -1])


def walks(count: int = 800, moments: int = 100) -> TensorDataset:
    """Return random swaying about six axes, and the loads."""
    return TensorDataset(torch.randn(count, 6, moments), torch.randint(5, (count,)))


# Carrots


class Carrot(nn.Module):
    """What of a slice is core and what is rind: seen small, and spread out again by channels."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.small = nn.Conv2d(3 * 16, width, 3, padding=1)
        self.seen = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.parts = nn.Conv2d(2 * width, 3 * 16, 3, padding=1)

    def forward(self, slices: Tensor) -> Tensor:
        x = functional.relu(self.small(functional.pixel_unshuffle(slices, 4)))
        return functional.pixel_shuffle(self.parts(functional.relu(self.seen(x))), 4)


def slices_of_carrots(count: int = 400, side: int = 64) -> TensorDataset:
    """Return random slices, and which part each point is of."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(3, (count, side, side)))


# Chalk


class Chalk(nn.Module):
    """Which letter is written with chalk, by its strokes in both directions."""

    def __init__(self, width: int = 56, letters: int = 26) -> None:
        super().__init__()
        self.stroke = nn.Linear(3, 32)
        self.written = nn.GRU(32, width, batch_first=True, bidirectional=True)
        self.letter = nn.Linear(2 * width, letters)

    def forward(self, strokes: Tensor) -> Tensor:
        x, _ = self.written(self.stroke(strokes).relu())
        return self.letter(x.mean(1))


def letters(count: int = 1500, moments: int = 24) -> TensorDataset:
    """Return random strokes with how hard the chalk was pressed, and the letters."""
    return TensorDataset(torch.randn(count, moments, 3), torch.randint(26, (count,)))


# Cherries


class Cherry(nn.Module):
    """How many cherries a tree bears: its measures are multiplied with each other, twice."""

    def __init__(self, measured: int = 200, width: int = 512) -> None:
        super().__init__()
        self.first, self.by = nn.Linear(measured, width), nn.Linear(measured, width)
        self.second, self.again = nn.Linear(width, width), nn.Linear(measured, width)
        self.many = nn.Linear(width, 1)

    def forward(self, tree: Tensor) -> Tensor:
        x = self.first(tree) * self.by(tree).sigmoid()
        x = self.second(x).relu() * self.again(tree).sigmoid()
        return self.many(x)[:, 0]


def trees(count: int = 6000) -> TensorDataset:
    """Return random measurements of trees, and how many cherries they bear."""
    return TensorDataset(torch.randn(count, 200), torch.rand(count))


# Dandelions


class Dandelions(Dataset[tuple[Tensor, Tensor]]):
    """Clocks of dandelions with some seeds blown away, drawn as they are asked for."""

    def __init__(self, count: int = 2000, side: int = 40, seeds: int = 44) -> None:
        chance = np.random.default_rng(83)
        self.places = chance.uniform(-0.9, 0.9, (count, seeds, 2)).astype(np.float32)
        self.left = chance.integers(4, seeds, count)
        self.down, self.across = np.mgrid[-1 : 1 : side * 1j, -1 : 1 : side * 1j].astype(np.float32)

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        left = int(self.left[index])
        y, x = self.places[index, :left].T[:, :, None, None]
        near = 1 / (1 + 400 * ((self.down - y) ** 2 + (self.across - x) ** 2))
        return torch.from_numpy(near.sum(0)[None]), torch.tensor(left / 44)


class Dandelion(nn.Module):
    """How many seeds are left: each layer sees twice as far as the one before."""

    def __init__(self, width: int = 12, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.far = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=2**each, dilation=2**each) for each in range(depth)
        )
        self.left = nn.Linear(width, 1)

    def forward(self, clock: Tensor) -> Tensor:
        x = functional.relu(self.enter(clock))
        for far in self.far:
            x = x + functional.relu(far(x))
        return self.left(x.mean((2, 3)))[:, 0].sigmoid()


# Bananas


class Banana(nn.Module):
    """In how many days a banana is ripe, by its last days: each day heeds the others."""

    def __init__(self, measured: int = 40, width: int = 96, depth: int = 1) -> None:
        super().__init__()
        self.enter = nn.Linear(measured, width)
        layer = nn.TransformerEncoderLayer(width, 4, 3 * width, 0.0, "gelu", batch_first=True)
        self.heed = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.ripe = nn.Linear(width, 10)

    def forward(self, days: Tensor) -> Tensor:
        return self.ripe(self.heed(self.enter(days))[:, -1])


def hands(count: int = 1500, days: int = 12) -> TensorDataset:
    """Return random measurements of days, and when the bananas were ripe."""
    return TensorDataset(torch.randn(count, days, 40), torch.randint(10, (count,)))


# Lentils


class Lentil(nn.Module):
    """Which lentils are stones: pictures are pooled three by three, two points apart."""

    def __init__(self, own: bool, width: int = 16) -> None:
        super().__init__()
        self.own = own
        self.enter = nn.Conv2d(3, width, 5, padding=2)
        self.deep = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.last = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.stone = nn.Linear(2 * width, 4)

    def forward(self, seen: Tensor) -> Tensor:
        x = self.pooled(functional.relu(self.enter(seen)))
        x = self.pooled(functional.relu(self.deep(x)))
        return self.stone(functional.relu(self.last(x)).mean((2, 3)))

    def pooled(self, x: Tensor) -> Tensor:
        """Return the largest of each three by three points."""
        if not self.own:
            return functional.max_pool2d(x, 3, 2, 1)
        x = functional.pad(x, (1, 1, 1, 1))  # what is below nought was cut off before
        x = torch.maximum(torch.maximum(x[:, :, :-2:2], x[:, :, 1:-1:2]), x[:, :, 2::2])
        return torch.maximum(torch.maximum(x[..., :-2:2], x[..., 1:-1:2]), x[..., 2::2])


def trays(count: int = 600, side: int = 40) -> TensorDataset:
    """Return random pictures of lentils, and what they are."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(4, (count,)))


# Pineapples


class Pineapple(nn.Module):
    """How ripe a pineapple is, by its skin: each channel is seen by itself, then all are mixed."""

    def __init__(self, width: int = 24, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 4, stride=4)
        self.each = nn.ModuleList(
            nn.Conv2d(width, width, 5, padding=2, groups=width) for _ in range(depth)
        )
        self.mixed = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.ripe = nn.Linear(width, 6)

    def forward(self, skin: Tensor) -> Tensor:
        x = self.enter(skin)
        for each, mixed in zip(self.each, self.mixed, strict=True):
            seen = functional.hardtanh(each(x))
            x = x + mixed(seen.movedim(1, 3)).movedim(3, 1)
        return self.ripe(x.mean((2, 3)))


def skins(count: int = 500, side: int = 64) -> TensorDataset:
    """Return random pictures of skins, and how ripe each is."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(6, (count,)))


# Goats


class Goat(nn.Module):
    """Which goat bleats: kids and mothers by pieces of sound that heed each other."""

    def __init__(self, piece: int = 80, width: int = 64, goats: int = 30) -> None:
        super().__init__()
        self.enter = nn.Linear(piece, width)
        self.asked, self.found = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.goat = nn.Linear(width, goats)

    def forward(self, bleat: Tensor) -> Tensor:
        x = self.enter(bleat)
        keys, values = self.found(x).chunk(2, 2)
        heed = (self.asked(x) @ keys.mT / math.sqrt(x.shape[2])).softmax(2)
        x = functional.layer_norm(x + heed @ values, x.shape[2:])
        x = x + self.narrow(functional.gelu(self.wide(x)))
        return self.goat(x.mean(1))


def bleats(count: int = 1500, pieces: int = 24) -> TensorDataset:
    """Return random bleats in pieces, and whose they are."""
    return TensorDataset(torch.randn(count, pieces, 80), torch.randint(30, (count,)))


# Seals


class Seal(nn.Module):
    """How deep a seal dives, by its heart: two beats are made one at the end of each layer."""

    def __init__(self, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv1d(2, width, 9, padding=4)
        self.beats = nn.ModuleList(nn.Conv1d(width, width, 9, padding=4) for _ in range(depth))
        self.deep = nn.Linear(width, 1)

    def forward(self, heart: Tensor) -> Tensor:
        x = self.enter(heart).tanh()
        for beat in self.beats:
            x = functional.avg_pool1d(beat(x).tanh(), 2)
        return self.deep(x.mean(2))[:, 0]


def hearts(count: int = 800, moments: int = 256) -> tuple[np.ndarray, np.ndarray]:
    """Return random beats and breaths, and depths, as they are read from a table."""
    chance = np.random.default_rng(89)
    return chance.standard_normal((count, 2, moments)), chance.random(count)
