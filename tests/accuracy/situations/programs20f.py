"""Models and data of the twentieth round's last runs, from beacons to shuttles: see
``programs20c.py``."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import TensorDataset

# Beacons


class Beacon(nn.Module):
    """Which beacons a ship sees, by what its mast measures: each beam has weights of its own."""

    def __init__(self, apart: bool, beams: int = 56, width: int = 176, own: int = 8) -> None:
        super().__init__()
        self.apart = apart
        self.mast = nn.Sequential(
            nn.Linear(192, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.into = nn.Parameter(torch.randn(beams, width, own) / math.sqrt(width))
        self.out = nn.Parameter(torch.randn(beams, own) / math.sqrt(own))

    def forward(self, measured: Tensor) -> Tensor:
        x = self.mast(measured)
        if self.apart:
            beams = zip(self.into.unbind(0), self.out.unbind(0), strict=True)
            return torch.stack([torch.tanh(x @ into) @ out for into, out in beams], 1)
        seen = torch.tanh(x @ self.into.transpose(0, 1).flatten(1)).unflatten(1, self.out.shape)
        return (seen * self.out).sum(2)


def ships(count: int = 3000, beams: int = 56) -> TensorDataset:
    """Return random measurements of ships, and the beacons that they see."""
    return TensorDataset(torch.randn(count, 192), torch.randint(2, (count, beams)).float())


# Hulls


class Hull(nn.Module):
    """How much the water holds back a hull, by its depth at each place."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d((2, 4)),
            nn.Flatten(),
        )
        self.held = nn.Linear(8 * width, 3)

    def forward(self, depth: Tensor) -> Tensor:
        return self.held(self.layers(depth))


def hulls(count: int = 500, high: int = 32, long: int = 80) -> TensorDataset:
    """Return random depths of hulls, and how they are held back."""
    return TensorDataset(torch.rand(count, 1, high, long), torch.rand(count, 3))


# Tongue twisters


class Twister(nn.Module):
    """Where a tongue slips, by all sounds of a twister together."""

    def __init__(self, sounds: int = 2880, width: int = 208, slips: int = 24) -> None:
        super().__init__()
        self.sounds, self.slips = nn.Linear(sounds, width), nn.Linear(width, slips)

    def forward(self, said: Tensor) -> Tensor:
        return self.slips(torch.tanh(self.sounds(said)))


def twisters(count: int = 1400, sounds: int = 2880) -> TensorDataset:
    """Return random sounds of twisters, and where the tongue slips."""
    return TensorDataset(torch.randn(count, sounds), torch.randint(24, (count,)))


# Piers


class Pier(nn.Module):
    """How far a pier sways next, by the waves at its posts."""

    def __init__(self, posts: int = 6, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv1d(posts, width, 7, padding=3)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 7, padding=3) for _ in range(depth))
        self.sways = nn.Linear(2 * width, 2)

    def forward(self, waves: Tensor) -> Tensor:
        x = functional.leaky_relu(self.enter(waves))
        for layer in self.layers:
            x = x + functional.leaky_relu(layer(x))
        return self.sways(torch.cat([x.mean(2), x.amax(2)], 1))


def waves(count: int = 900, moments: int = 192) -> TensorDataset:
    """Return random waves at posts, and how far the pier sways."""
    return TensorDataset(torch.randn(count, 6, moments), torch.randn(count, 2))


# Palindromes


class Palindrome(nn.Module):
    """Whether letters are the same from the end: both ways are read by the same layers."""

    def __init__(
        self, letters: int = 30, places: int = 20, each: int = 24, width: int = 320
    ) -> None:
        super().__init__()
        self.letter = nn.Embedding(letters, each)
        self.read = nn.Sequential(
            nn.Linear(places * each, width), nn.GELU(), nn.Linear(width, width)
        )
        self.same = nn.Linear(width, 1)

    def forward(self, word: Tensor) -> Tensor:
        there, back = (self.read(self.letter(way).flatten(1)) for way in (word, word.flip(1)))
        return self.same((there - back).square())[:, 0]


def palindromes(count: int = 5000, places: int = 20) -> TensorDataset:
    """Return random words, half of which are the same from the end."""
    words, same = torch.randint(30, (count, places)), torch.arange(count) % 2
    there = words[:, : places // 2]
    words[same == 1] = torch.cat([there, there.flip(1)], 1)[same == 1]
    return TensorDataset(words, same.float())


# Minuets


class Minuet(nn.Module):
    """Which note of a minuet is next, by those before it and where in its bar it is."""

    def __init__(self, notes: int = 60, width: int = 64) -> None:
        super().__init__()
        self.note, self.beat = nn.Embedding(notes, width), nn.Embedding(6, width)
        self.before = nn.GRU(width, width, batch_first=True)
        self.next = nn.Linear(width, notes)

    def forward(self, notes: Tensor) -> Tensor:
        beats = torch.arange(notes.shape[1]) % 6
        return self.next(self.before(self.note(notes) + self.beat(beats))[0])


def minuets(count: int = 600, notes: int = 31) -> TensorDataset:
    """Return random notes of minuets."""
    return TensorDataset(torch.randint(60, (count, notes)))


# Anagrams


class Anagram(nn.Module):
    """A direction for the letters of a word, whatever their order is."""

    def __init__(self, letters: int = 30, width: int = 128, out: int = 48) -> None:
        super().__init__()
        self.letter = nn.Embedding(letters, 48)
        self.each = nn.Sequential(nn.Linear(48, width), nn.SiLU(), nn.Linear(width, width))
        self.all = nn.Sequential(nn.SiLU(), nn.Linear(width, out))

    def forward(self, word: Tensor) -> Tensor:
        return functional.normalize(self.all(self.each(self.letter(word)).sum(1)), dim=1)


def anagrams(count: int = 4000, letters: int = 12) -> TensorDataset:
    """Return random words, and their letters in another order."""
    words = torch.randint(30, (count, letters))
    order = torch.rand(count, letters).argsort(1)
    return TensorDataset(words, torch.take_along_dim(words, order, 1))


# Xylophones


class Xylophone(nn.Module):
    """Which bars of a xylophone are struck, and how hard, by the sound."""

    def __init__(self, width: int = 32, bars: int = 32) -> None:
        super().__init__()
        self.tones = nn.Conv1d(1, width, 48, stride=6)
        self.rings = nn.Conv1d(width, width, 9, stride=2)
        self.bars = nn.Linear(width, bars)

    def forward(self, sound: Tensor) -> Tensor:
        x = functional.softplus(self.tones(sound))
        return self.bars(functional.relu(self.rings(x)).amax(2))


def strokes(count: int = 800, moments: int = 1536) -> TensorDataset:
    """Return random sounds, and how hard each bar is struck."""
    return TensorDataset(torch.randn(count, 1, moments), torch.rand(count, 32))


# Altars


class Altar(nn.Module):
    """Which workshop made an altar, by its carvings as they are lit from three sides."""

    def __init__(self, width: int = 24, workshops: int = 12) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.within = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(4, width)
        self.workshop = nn.Linear(4 * width, workshops)

    def forward(self, carvings: Tensor) -> Tensor:
        x = functional.elu(self.enter(carvings))
        x = x + functional.elu(self.norm(self.within(x)))
        return self.workshop(functional.adaptive_max_pool2d(x, 2).flatten(1))


def altars(count: int = 500, side: int = 64) -> TensorDataset:
    """Return random pictures of carvings, and who made them."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(12, (count,)))


# Frescoes


class Fresco(nn.Module):
    """Paints what has fallen off a fresco, by what is around it."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.around = nn.Conv2d(4, width, 4, stride=2, padding=1)
        self.further = nn.Conv2d(width, width, 3, padding=2, dilation=2)
        self.paint = nn.ConvTranspose2d(width, 3, 4, stride=2, padding=1)

    def forward(self, left: Tensor, fallen: Tensor) -> Tensor:
        x = functional.silu(self.around(torch.cat([left * (1 - fallen), fallen], 1)))
        x = x + functional.silu(self.further(x))
        return self.paint(x).sigmoid()


def frescoes(count: int = 500, side: int = 56) -> TensorDataset:
    """Return random frescoes, and where they have fallen off."""
    fallen = (torch.rand(count, 1, side // 8, side // 8) < 0.3).float()
    whole = fallen.repeat_interleave(8, 2).repeat_interleave(8, 3)
    return TensorDataset(torch.rand(count, 3, side, side), whole)


# Rugs


class Knots(nn.Module):
    """A layer in which knots heed each other, the less the more knots are between them."""

    def __init__(self, written: bool, knots: int, width: int, heads: int) -> None:
        super().__init__()
        self.written, self.heads = written, heads
        self.norm, self.all = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        places, slopes = torch.arange(knots).float(), 0.5 ** torch.arange(1, heads + 1)
        between = (places[:, None] - places).abs()
        self.register_buffer("less", -slopes[:, None, None] * between)

    def forward(self, x: Tensor) -> Tensor:
        every = self.all(self.norm(x)).unflatten(2, (3, self.heads, -1))
        asked, known, found = every.permute(2, 0, 3, 1, 4).unbind(0)
        less = self.get_buffer("less")
        if self.written:
            scores = asked @ known.mT / math.sqrt(asked.shape[3]) + less
            heed = (scores - scores.amax(3, keepdim=True)).exp()
            mixed = heed @ found / heed.sum(3, keepdim=True)
        else:
            mixed = functional.scaled_dot_product_attention(asked, known, found, less[None])
        return x + self.out(mixed.transpose(1, 2).flatten(2))


class Rug(nn.Module):
    """Where a rug was knotted, by its knots one after the other."""

    def __init__(self, written: bool, knots: int = 352, width: int = 48, heads: int = 4) -> None:
        super().__init__()
        self.colour = nn.Embedding(40, width)
        self.layer = Knots(written, knots, width, heads)
        self.where = nn.Linear(width, 25)

    def forward(self, knots: Tensor) -> Tensor:
        return self.where(self.layer(self.colour(knots)).mean(1))


def rugs(count: int = 500, knots: int = 352) -> TensorDataset:
    """Return random colours of knots, and where they were made."""
    return TensorDataset(torch.randint(40, (count, knots)), torch.randint(25, (count,)))


# Doilies


class Evened(nn.Module):
    """Makes the maps of each group as bright and as varied as those of the others."""

    def __init__(self, own: bool, groups: int, width: int) -> None:
        super().__init__()
        self.own, self.groups = own, groups
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        if not self.own:
            return functional.group_norm(x, self.groups, self.weight, self.bias, 1e-5)
        parts = x.unflatten(1, (self.groups, -1))
        off = parts - parts.mean((2, 3, 4), keepdim=True)
        even = off / (off.square().mean((2, 3, 4), keepdim=True) + 1e-5).sqrt()
        return even.flatten(1, 2) * self.weight[:, None, None] + self.bias[:, None, None]


class Doily(nn.Module):
    """How a doily was made, by its holes at ever wider looks."""

    def __init__(self, own: bool, width: int = 16, depth: int = 4, ways: int = 9) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 4, stride=2, padding=1)
        self.evened = nn.ModuleList(Evened(own, 4, width) for _ in range(depth))
        self.mixed = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(depth))
        self.way = nn.Linear(width, ways)

    def forward(self, doily: Tensor) -> Tensor:
        x = self.enter(doily)
        for evened, mixed in zip(self.evened, self.mixed, strict=True):
            x = mixed(functional.relu(evened(x)))
        return self.way(x.mean((2, 3)))


def doilies(count: int = 500, side: int = 64) -> TensorDataset:
    """Return random pictures of doilies, and how they were made."""
    return TensorDataset(torch.rand(count, 1, side, side), torch.randint(9, (count,)))


# Ballads


class Ballad(nn.Module):
    """Which word of a ballad is next, by the verse so far, each place of which has weights."""

    def __init__(self, words: int = 160, places: int = 32, width: int = 64) -> None:
        super().__init__()
        self.word, self.before = nn.Embedding(words, width), nn.Linear(places, places)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.next = nn.Linear(width, words)

    def forward(self, verse: Tensor) -> Tensor:
        x = self.word(verse)
        weights = self.before.weight.tril()
        x = x + functional.linear(x.mT, weights, self.before.bias).mT
        x = x + self.narrow(functional.relu(self.wide(x)))
        return self.next(x)


def ballads(count: int = 1200, words: int = 33) -> TensorDataset:
    """Return random verses."""
    return TensorDataset(torch.randint(160, (count, words)))


# Keels


class Keel(nn.Module):
    """Whose yard laid a keel, by the points of its line, whichever was measured first."""

    def __init__(self, width: int = 96, yards: int = 16) -> None:
        super().__init__()
        self.point = nn.Sequential(
            nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.among = nn.Linear(width, width)
        self.yard = nn.Linear(width, yards)

    def forward(self, lines: Tensor, points: Tensor) -> Tensor:
        measured = (torch.arange(lines.shape[1]) < points[:, None])[..., None]
        x = self.point(lines) * measured
        all_of = x.sum(1, keepdim=True) / points[:, None, None]
        x = functional.relu(self.among(x - all_of)) * measured
        return self.yard(x.amax(1))


MOST = 1024
"""Points of the longest line that is measured."""


def laid(lines: Sequence[tuple[Tensor, int]], most: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """Return a batch of lines, with room for the longest of them or for ``most`` points."""
    room = pad_sequence([line for line, _ in lines], batch_first=True)
    if most is not None:
        room = functional.pad(room, (0, 0, 0, most - room.shape[1]))
    points = torch.tensor([len(line) for line, _ in lines])
    return room, points, torch.tensor([yard for _, yard in lines])


def keels(count: int = 700) -> list[tuple[Tensor, int]]:
    """Return random lines of keels, long and short, and whose yard laid them."""
    chance = np.random.default_rng(53)
    points = chance.gamma(3.0, 30.0, count).clip(16, MOST).astype(int).tolist()
    return [(torch.randn(each, 6), number % 16) for number, each in enumerate(points)]


# Shuttles


class Shuttle(nn.Module):
    """Where a loom's shuttle gets stuck, by how it was thrown: what is odd is heard most."""

    def __init__(self, width: int = 160, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(64, width)
        self.layers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.stuck = nn.Linear(width, 5)

    def forward(self, thrown: Tensor) -> Tensor:
        x = self.enter(thrown)
        for layer in self.layers:
            x = x + functional.glu(layer(x), 1)
        return self.stuck(x)


def throws(count: int = 4000) -> TensorDataset:
    """Return random throws of shuttles, and where they got stuck."""
    return TensorDataset(torch.randn(count, 64), torch.randint(5, (count,)))
