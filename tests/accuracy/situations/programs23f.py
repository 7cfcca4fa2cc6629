"""Models and data of the twenty-third round's last runs, from tin soldiers to tepees: see
``programs23c.py``."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Tin soldiers


class TinSoldier(nn.Module):
    """What a tin soldier is worth, by what a list tells of it and by its colours."""

    def __init__(self, told: int = 40, width: int = 256) -> None:
        super().__init__()
        self.regiment = nn.Embedding(300, 24)
        self.told = nn.Sequential(
            nn.Linear(told + 24, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU()
        )
        self.worth = nn.Linear(width, 3)

    def forward(self, told: Tensor) -> Tensor:
        regiment = self.regiment(told[:, 0].long())
        return self.worth(self.told(torch.cat([told[:, 1:], regiment], 1)))


def soldiers(count: int = 4000, told: int = 40) -> TensorDataset:
    """Return random soldiers, each with the number of its regiment first, and their worth."""
    regiments = torch.randint(300, (count, 1)).float()
    return TensorDataset(torch.cat([regiments, torch.randn(count, told)], 1), torch.rand(count, 3))


# Dormers


class Dormer(nn.Module):
    """Which kind of dormer a roof has, by a picture of it."""

    def __init__(self, width: int = 16, kinds: int = 7) -> None:
        super().__init__()
        self.tiles = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.roof = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.norm = nn.GroupNorm(4, 2 * width)
        self.edges = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.kind = nn.Linear(2 * width, kinds)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.gelu(self.norm(self.roof(functional.gelu(self.tiles(picture)))))
        x = x + functional.gelu(self.edges(x))
        return self.kind(x.mean((2, 3)))


def dormers(count: int = 600, side: int = 48) -> TensorDataset:
    """Return random pictures of roofs, and the kinds of their dormers."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(7, (count,)))


# Tiaras


class Tiara(nn.Module):
    """Whether a tiara's stones are of one mine: each is told by the light that it lets through."""

    def __init__(self, lights: int = 32, width: int = 48) -> None:
        super().__init__()
        self.stone = nn.Sequential(nn.Linear(lights, width), nn.Tanh(), nn.Linear(width, width))
        self.beside = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.mine = nn.Linear(2 * width, 1)

    def forward(self, stones: Tensor) -> Tensor:
        around, _ = self.beside(self.stone(stones))
        return self.mine(around.amax(1))[:, 0]


def tiaras(count: int = 900, stones: int = 21, lights: int = 32) -> TensorDataset:
    """Return random tiaras, and which have stones of one mine."""
    lit = torch.rand(count, stones, lights)
    return TensorDataset(lit, torch.randint(2, (count,)).float())


# Dollhouses


class Dollhouse(nn.Module):
    """Which room of a dollhouse each piece of furniture belongs to, by all that was found."""

    def __init__(self, told: int = 12, width: int = 64, rooms: int = 8) -> None:
        super().__init__()
        self.piece = nn.Linear(told, width)
        self.all = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.room = nn.Linear(width, rooms)

    def forward(self, pieces: Tensor) -> Tensor:
        return self.room(self.all(self.piece(pieces))).transpose(1, 2)


def dollhouses(count: int = 800, pieces: int = 24, told: int = 12) -> TensorDataset:
    """Return what is told of random pieces of dollhouses, and their rooms."""
    return TensorDataset(torch.randn(count, pieces, told), torch.randint(8, (count, pieces)))


# Decanters


class Decanter(nn.Module):
    """What is in a decanter, by the colours of the light on the cloth behind it."""

    def __init__(self, lights: int = 400, width: int = 192, kinds: int = 14) -> None:
        super().__init__()
        self.light = nn.Conv1d(3, 24, 7, stride=4, padding=3)
        self.near = nn.Conv1d(24, 24, 5, padding=2)
        self.cloth = nn.Linear(24 * lights // 4, width)
        self.kind = nn.Linear(width, kinds)

    def forward(self, lights: Tensor) -> Tensor:
        x = functional.relu(self.light(lights))
        x = x + functional.relu(self.near(x))
        return self.kind(functional.relu(self.cloth(x.flatten(1))))


def decanters(count: int = 1500, lights: int = 400) -> TensorDataset:
    """Return the light behind random decanters, and what is in them."""
    return TensorDataset(torch.rand(count, 3, lights), torch.randint(14, (count,)))


# Figureheads


class Figurehead(nn.Module):
    """Whose ship a figurehead was on: patches of its picture attend to those of their window."""

    def __init__(
        self,
        masked: bool,
        patches: int = 384,
        window: int = 32,
        width: int = 64,
        heads: int = 4,
        ships: int = 20,
    ) -> None:
        super().__init__()
        self.masked, self.window, self.heads = masked, window, heads
        self.patch = nn.Linear(48, width)
        self.all = nn.Linear(width, 3 * width)
        self.heard = nn.Linear(width, width)
        self.further = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.ship = nn.Linear(width, ships)
        lies_in = torch.arange(patches) // window
        self.register_buffer("inside", lies_in[:, None] == lies_in)

    def forward(self, patches: Tensor) -> Tensor:
        x = self.patch(patches)
        x = x + self.heard(self.attended(self.all(x)))
        return self.ship((x + self.further(x)).mean(1))

    def attended(self, every: Tensor) -> Tensor:
        """Return what each patch takes from its window."""
        if self.masked:
            parts = every.unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
            inside = self.get_buffer("inside")
            heard = functional.scaled_dot_product_attention(*parts, attn_mask=inside)
            return heard.transpose(1, 2).flatten(2)
        apart = every.reshape(-1, self.window, 3, self.heads, every.shape[2] // 3 // self.heads)
        heard = functional.scaled_dot_product_attention(*apart.permute(2, 0, 3, 1, 4).unbind(0))
        return heard.transpose(1, 2).reshape(len(every), every.shape[1], -1)


def figureheads(count: int = 300, patches: int = 384) -> TensorDataset:
    """Return patches of random figureheads, window by window, and their ships."""
    return TensorDataset(torch.rand(count, patches, 48), torch.randint(20, (count,)))


# Ladles


class Ladle(nn.Module):
    """How heavy each next ladle of molten iron will be, by those that were poured before it."""

    def __init__(self, own: bool, ladles: int = 320, width: int = 96, heads: int = 4) -> None:
        super().__init__()
        self.own, self.heads = own, heads
        self.poured = nn.Linear(5, width)
        self.all, self.heard = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.further = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.heavy = nn.Linear(width, 1)
        later = torch.ones(ladles, ladles, dtype=torch.bool).triu(1)
        self.register_buffer("later", later)

    def forward(self, ladles: Tensor) -> Tensor:
        x = self.poured(ladles)
        parts = self.all(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        asked, offered, given = parts.unbind(0)
        if self.own:
            alike = asked @ offered.mT / math.sqrt(asked.shape[3])
            alike = alike.masked_fill(self.get_buffer("later"), float("-inf"))
            heard = alike.softmax(3) @ given
        else:
            heard = functional.scaled_dot_product_attention(asked, offered, given, is_causal=True)
        x = x + self.heard(heard.transpose(1, 2).flatten(2))
        return self.heavy(x + self.further(x))[..., 0]


def ladles(count: int = 400, poured: int = 320) -> TensorDataset:
    """Return random days of a foundry, ladle by ladle, and how heavy each next one was."""
    return TensorDataset(torch.randn(count, poured, 5), torch.rand(count, poured))


# Candlesticks


class OwnGelu(nn.Module):
    """The activation as its paper writes it."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


class Candlestick(nn.Module):
    """Where a picture's candlestick stands and how large it is."""

    def __init__(self, own: bool, width: int = 16) -> None:
        super().__init__()
        kind = OwnGelu if own else nn.GELU
        self.seen = nn.Sequential(
            nn.Conv2d(3, width, 2, stride=2),
            kind(),
            nn.Conv2d(width, width, 1),
            kind(),
            nn.Conv2d(width, width, 1),
            kind(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(16 * width, 4),
        )

    def forward(self, picture: Tensor) -> Tensor:
        return self.seen(picture).sigmoid()


def candlesticks(count: int = 400, side: int = 64) -> TensorDataset:
    """Return random pictures, and the boxes of their candlesticks."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.rand(count, 4))


# Ropewalks


class Ropewalk(nn.Module):
    """Which strand of a net gives way: each knot sums what the knots tied to it tell."""

    def __init__(self, dense: bool, width: int = 48) -> None:
        super().__init__()
        self.dense = dense
        self.knot = nn.Linear(6, width)
        self.tied = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))
        self.gives = nn.Linear(width, 1)

    def forward(self, knots: Tensor, ties: Tensor) -> Tensor:
        x = functional.relu(self.knot(knots))
        beside = self.dense_of(len(knots), ties) if self.dense else None
        for layer in self.tied:
            told = self.summed(x, ties) if beside is None else beside @ x
            x = x + functional.relu(layer(torch.cat([x, told], 1)))
        return self.gives(x)[:, 0]

    @staticmethod
    def dense_of(knots: int, ties: Tensor) -> Tensor:
        """Return which knots are tied, as a matrix of all of them."""
        beside = torch.zeros(knots, knots)
        beside[ties[0], ties[1]] = 1.0
        return beside

    @staticmethod
    def summed(x: Tensor, ties: Tensor) -> Tensor:
        """Return the sum over the knots that are tied to each."""
        return torch.zeros_like(x).index_add(0, ties[0], x[ties[1]])


def nets(count: int = 120, knots: int = 300) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Return random nets: their knots, which of these are tied, and which give way."""
    chance = np.random.default_rng(2339)
    made = []
    for _ in range(count):
        first = torch.arange(knots - 1)
        some = torch.from_numpy(chance.integers(0, knots, (2, knots)))
        some = some[:, (some[0] - some[1]).abs() > 1].unique(dim=1)
        there = torch.cat([torch.stack([first, first + 1]), some], 1)
        ties = torch.cat([there, there.flip(0)], 1).unique(dim=1)
        made.append((torch.randn(knots, 6), ties, torch.randint(2, (knots,)).float()))
    return made


def together(nets: Sequence[tuple[Tensor, Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return several nets as one that has no tie between them."""
    knots, ties, gives = zip(*nets, strict=True)
    begins = np.cumsum([0, *map(len, knots[:-1])]).tolist()
    moved = [tie + begin for tie, begin in zip(ties, begins, strict=True)]
    return torch.cat(knots), torch.cat(moved, 1), torch.cat(gives)


# Mortars


class Ground(nn.Module):
    """A layer that looks around each channel by itself, and then at all of a place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.around = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.wide, self.back = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        placed = self.norm(self.around(x).permute(0, 2, 3, 1))
        return x + self.back(functional.gelu(self.wide(placed))).permute(0, 3, 1, 2)


class Mortar(nn.Module):
    """What was ground in a mortar, by a picture of its bottom."""

    def __init__(self, width: int = 48, spices: int = 11) -> None:
        super().__init__()
        self.bottom = nn.Conv2d(3, width, 4, stride=4)
        self.layers = nn.Sequential(Ground(width), Ground(width))
        self.spice = nn.Linear(width, spices)

    def forward(self, picture: Tensor) -> Tensor:
        return self.spice(self.layers(self.bottom(picture)).mean((2, 3)))


def mortars(count: int = 300, side: int = 96) -> TensorDataset:
    """Return random pictures of mortars, and what was ground in them."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(11, (count,)))


# Awnings


class Awning(nn.Module):
    """How warm a shop gets behind its awning, hour by hour, by the sun, the wind and the cloth."""

    def __init__(self, told: int = 24, width: int = 192, hours: int = 12) -> None:
        super().__init__()
        self.cloth = nn.Embedding(40, told)
        self.day = nn.Conv1d(told, width, 5, padding=2)
        self.norm = nn.LayerNorm(width)
        self.warm = nn.Sequential(nn.Linear(width, width), nn.ELU(), nn.Linear(width, 1))
        self.hours = hours

    def forward(self, told: Tensor, cloth: Tensor) -> Tensor:
        x = functional.elu(self.day(told + self.cloth(cloth)[..., None]))
        x = functional.adaptive_avg_pool1d(x, self.hours).transpose(1, 2)
        return self.warm(self.norm(x))[..., 0]


def awnings(exact: bool, count: int = 900, told: int = 24, moments: int = 48) -> TensorDataset:
    """Return random days behind awnings, as numpy makes them or in single precision."""
    chance = np.random.default_rng(2341)
    kind = np.float64 if exact else np.float32
    days = torch.from_numpy(chance.normal(size=(count, told, moments)).astype(kind))
    cloths = torch.from_numpy(chance.integers(0, 40, count))
    return TensorDataset(days, cloths, torch.from_numpy(chance.random((count, 12)).astype(kind)))


# Colanders


class Colander(nn.Module):
    """How fast a colander empties, by where its holes are and how wide each is."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.hole = nn.Sequential(
            nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 2 * width), nn.ReLU()
        )
        self.empties = nn.Linear(4 * width, 2)

    def forward(self, holes: Tensor) -> Tensor:
        there = (holes[..., 2:] > 0).float()
        x = self.hole(holes) * there
        return self.empties(torch.cat([x.sum(1) / there.sum(1), x.amax(1)], 1))


def filled_up(colanders: Sequence[tuple[Tensor, Tensor]], to: int | None) -> tuple[Tensor, Tensor]:
    """Return a batch of colanders with as many holes as ``to``, or as the most of them have."""
    holes = [each for each, _ in colanders]
    room = torch.zeros(len(holes), to or max(map(len, holes)), 3)
    for place, each in zip(room, holes, strict=True):
        place[: len(each)] = each
    return room, torch.stack([fast for _, fast in colanders])


def colanders(count: int = 800, most: int = 900) -> list[tuple[Tensor, Tensor]]:
    """Return the holes of random colanders, few of which have the most, and how these empty."""
    chance = np.random.default_rng(2342)
    many = chance.integers(150, 400, count)
    many[:4] = most
    return [(torch.rand(each, 3) + 0.01, torch.rand(2)) for each in many.tolist()]


# Earmuffs


class Earmuff(nn.Module):
    """How much of each tone earmuffs keep out, by what is heard outside and inside."""

    def __init__(self, tones: int = 128, width: int = 160) -> None:
        super().__init__()
        self.heard = nn.Sequential(nn.Linear(2 * tones, width), nn.PReLU(), nn.LayerNorm(width))
        self.keeps = nn.Sequential(nn.Linear(width, width), nn.PReLU(), nn.Linear(width, tones))

    def forward(self, heard: Tensor) -> Tensor:
        return self.keeps(self.heard(heard)).sigmoid()


def earmuffs(count: int = 1500, tones: int = 128) -> TensorDataset:
    """Return random tones on both sides of earmuffs, and how much of each is kept out."""
    return TensorDataset(torch.randn(count, 2 * tones), torch.rand(count, tones))


# Umbrella stands


class UmbrellaStand(nn.Module):
    """How many umbrellas are in a stand at the end of a day, by who came and went in which rain."""

    def __init__(self, events: int = 60, width: int = 32) -> None:
        super().__init__()
        self.event = nn.Embedding(events, width)
        self.day = nn.LSTM(width, width, batch_first=True)
        self.many = nn.Linear(width, 16)

    def forward(self, events: Tensor) -> Tensor:
        return self.many(self.day(self.event(events))[1][0][0])


def stands(count: int = 1200, moments: int = 28) -> TensorDataset:
    """Return random days of a hall, and how many umbrellas were left."""
    return TensorDataset(torch.randint(60, (count, moments)), torch.randint(16, (count,)))


# Tepees


class Tepee(nn.Module):
    """A tepee's outline as it was, by points of what is left, and what its poles lean like."""

    def __init__(self, width: int = 40, points: int = 48) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width))
        self.seen = nn.Linear(width, 12)
        self.was = nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, 3 * points))

    def forward(self, left: Tensor) -> Tensor:
        return self.was(self.seen(self.left(left).amax(1))).unflatten(1, (-1, 3))


def tepees(count: int = 700, left: int = 96, points: int = 48) -> TensorDataset:
    """Return points of what is left of random tepees, and those of their outlines."""
    return TensorDataset(torch.randn(count, left, 3), torch.randn(count, points, 3))
