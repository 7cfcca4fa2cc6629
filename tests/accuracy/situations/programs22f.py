"""Models and data of the twenty-second round's last runs, from grindstones to haystacks: see
``programs22c.py``."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Grindstones


class Grindstone(nn.Module):
    """How sharp a blade becomes, by the strips of a film of its sparks."""

    def __init__(self, points: int = 5120, width: int = 128) -> None:
        super().__init__()
        self.strip = nn.Linear(points, width)
        self.sharp = nn.Linear(width, 10)

    def forward(self, sparks: Tensor) -> Tensor:
        return self.sharp(self.strip(sparks).tanh().mean(1))


class Sparks(Dataset[Item]):
    """Films of sparks, whose strips are made equally bright when they are asked for."""

    def __init__(self, count: int = 400, strips: int = 8, points: int = 5120) -> None:
        chance = np.random.default_rng(2231)
        self.films = chance.random((count, strips, points), np.float32)
        self.sharp = torch.from_numpy(chance.integers(0, 10, count))

    def __len__(self) -> int:
        return len(self.films)

    def __getitem__(self, index: int) -> Item:
        film = self.films[index]
        even = (film - film.mean(1, keepdims=True)) / film.std(1, keepdims=True)
        return torch.from_numpy(even), self.sharp[index]


# Slides


class Slide(nn.Module):
    """How fast a child leaves a slide, by how high and how smooth each piece of it is."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.pieces = nn.Conv1d(2, width, 7, padding=3)
        self.around = nn.Conv1d(width, width, 7, padding=3)
        self.further = nn.Conv1d(width, width, 5, padding=8, dilation=4)
        self.fast = nn.Linear(2 * width, 2)

    def forward(self, slide: Tensor) -> Tensor:
        x = functional.relu(self.pieces(slide))
        x = x + functional.relu(self.around(x))
        x = x + functional.relu(self.further(x))
        return self.fast(torch.cat([x.mean(2), x[:, :, -1]], 1))


def slides(count: int = 1200, pieces: int = 96) -> TensorDataset:
    """Return random slides, and how fast a small and a large child leave them."""
    return TensorDataset(torch.rand(count, 2, pieces), torch.rand(count, 2))


# Stilts


class Stilts(nn.Module):
    """In which of the next moments somebody on stilts falls, by how both of them lean."""

    def __init__(self, leans: int = 6, width: int = 64, moments: int = 12) -> None:
        super().__init__()
        self.walk = nn.LSTM(leans, width, batch_first=True)
        self.falls = nn.Sequential(
            nn.Linear(2 * width, width), nn.Tanh(), nn.Linear(width, moments)
        )

    def forward(self, leans: Tensor) -> Tensor:
        walked, _ = self.walk(leans)
        return self.falls(torch.cat([walked[:, -1], walked.amax(1)], 1))


def walks(count: int = 1000, moments: int = 36, leans: int = 6) -> TensorDataset:
    """Return random walks on stilts, and when they end."""
    return TensorDataset(torch.randn(count, moments, leans), torch.randint(12, (count,)))


# Slide rules


class SlideRule(nn.Module):
    """Which three digits a slide rule shows, by the picture around its line."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.scales = nn.Conv2d(1, width, (5, 9), stride=(2, 3), padding=(2, 4))
        self.strokes = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.near = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.digits = nn.Linear(2 * width * 6, 30)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.silu(self.strokes(functional.silu(self.scales(picture))))
        x = x + functional.silu(self.near(x))
        x = functional.adaptive_max_pool2d(x, (1, 6)).flatten(1)
        return self.digits(x).unflatten(1, (10, 3))


def rules(count: int = 700, high: int = 24, wide: int = 192) -> TensorDataset:
    """Return random pictures of slide rules, and the digits."""
    return TensorDataset(torch.rand(count, 1, high, wide), torch.randint(10, (count, 3)))


# Buckets


class Bucket(nn.Module):
    """What is in a bucket and how full it is, by the tones when it is struck."""

    def __init__(self, tones: int = 2048, width: int = 448) -> None:
        super().__init__()
        self.struck = nn.Linear(tones, width)
        self.first = nn.Linear(width, width)
        self.full = nn.Linear(width, 24)

    def forward(self, tones: Tensor) -> Tensor:
        x = functional.relu(self.struck(tones))
        x = x + functional.relu(self.first(x))
        return self.full(x)


def buckets(count: int = 2160, tones: int = 2048) -> TensorDataset:
    """Return random tones of buckets, and which of six things fills a quarter of them or more."""
    return TensorDataset(torch.rand(count, tones), torch.randint(24, (count,)))


# Millstones


class Millstone(nn.Module):
    """How fine the flour is and how warm it has become, by how a millstone shakes."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.shakes = nn.Conv1d(3, width, 9, stride=2, padding=4)
        self.turns = nn.ModuleList(nn.Conv1d(width, width, 9, padding=4) for _ in range(2))
        self.flour = nn.Linear(2 * width, 2)

    def forward(self, shakes: Tensor) -> Tensor:
        x = functional.gelu(self.shakes(shakes))
        for turn in self.turns:
            x = x + functional.gelu(turn(x))
        return self.flour(torch.cat([x.mean(2), x.std(2)], 1))


def millings(count: int = 900, moments: int = 512) -> TensorDataset:
    """Return how random millstones shake, and what becomes of the flour."""
    return TensorDataset(torch.randn(count, 3, moments), torch.rand(count, 2))


# Barns


class Barn(nn.Module):
    """What a barn is used for, by its roof as a plane sees it."""

    def __init__(self, width: int = 16, uses: int = 9) -> None:
        super().__init__()
        self.roof = nn.Conv2d(3, width, 5, stride=2, padding=2)
        self.yard = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.near = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.use = nn.Linear(2 * width * 4, uses)

    def forward(self, roof: Tensor) -> Tensor:
        x = functional.hardswish(self.yard(functional.hardswish(self.roof(roof))))
        x = x + functional.hardswish(self.near(x))
        return self.use(functional.adaptive_avg_pool2d(x, 2).flatten(1))


def roofs(count: int = 500, side: int = 64) -> TensorDataset:
    """Return random roofs of barns, and their uses."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(9, (count,)))


# Troughs


class Trough(nn.Module):
    """How full each of a yard's two troughs is, by a picture of the yard."""

    def __init__(self, width: int = 28, depth: int = 1) -> None:
        super().__init__()
        self.yard = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.corners = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.layers = nn.ModuleList(
            nn.Conv2d(2 * width, 2 * width, 3, padding=1) for _ in range(depth)
        )
        self.full = nn.Linear(2 * width, 2)

    def forward(self, yard: Tensor) -> Tensor:
        x = functional.leaky_relu(self.corners(functional.leaky_relu(self.yard(yard))))
        for layer in self.layers:
            x = x + functional.leaky_relu(layer(x))
        return self.full(x.amax((2, 3)))


def yards(count: int = 400, high: int = 64, wide: int = 96) -> TensorDataset:
    """Return random yards, how many troughs each has, one or two, and how full they are."""
    troughs = torch.randint(1, 3, (count,))
    return TensorDataset(torch.rand(count, 3, high, wide), troughs, torch.rand(count, 2))


# Beehives of clay


class Beehive(nn.Module):
    """Which hives of a wall of clay swarm next: each heeds the others, the less the further."""

    def __init__(
        self, by_rows: bool, rows: int = 40, across: int = 8, width: int = 64, heads: int = 4
    ) -> None:
        super().__init__()
        self.by_rows, self.across, self.heads = by_rows, across, heads
        self.enter, self.all = nn.Linear(6, width), nn.Linear(width, 3 * width)
        self.swarms = nn.Linear(width, 1)
        place = torch.cartesian_prod(torch.arange(rows), torch.arange(across)).float()
        less = 0.5 ** torch.arange(1, heads + 1)
        self.register_buffer("less", -less[:, None, None] * torch.cdist(place, place))

    def forward(self, wall: Tensor) -> Tensor:
        x = functional.elu(self.enter(wall))
        every = self.all(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        asks, offers, gives = every.unbind(0)
        less = self.get_buffer("less")
        if self.by_rows:
            heard = self.each_row(asks, offers, gives, less)
        else:
            heard = functional.scaled_dot_product_attention(asks, offers, gives, less[None])
        return self.swarms(x + heard.transpose(1, 2).flatten(2))[..., 0]

    def each_row(self, asks: Tensor, offers: Tensor, gives: Tensor, less: Tensor) -> Tensor:
        """Return what hives hear of all others, for one row of the wall after the other."""
        heard = []
        for row, away in zip(asks.split(self.across, 2), less.split(self.across, 1), strict=True):
            like = torch.einsum("bhqd,bhkd->bhqk", row, offers) / math.sqrt(row.shape[3])
            heeds = (like + away).log_softmax(3).exp()
            heard.append(torch.einsum("bhqk,bhkd->bhqd", heeds, gives))
        return torch.cat(heard, 2)


def walls(count: int = 400, hives: int = 320) -> TensorDataset:
    """Return what is told of random hives of walls, and which of them swarm."""
    return TensorDataset(torch.randn(count, hives, 6), torch.randint(2, (count, hives)).float())


# Showers


class Shower(nn.Module):
    """How a shower feels, by the sizes of the drops that a light barrier met."""

    def __init__(self, every_edge: bool, edges: int = 650, width: int = 8, feels: int = 8) -> None:
        super().__init__()
        self.every_edge = every_edge
        self.register_buffer("edges", torch.linspace(-3.0, 3.0, edges))
        self.size = nn.EmbeddingBag(edges + 1, width, mode="mean")
        self.feels = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, feels))

    def forward(self, drops: Tensor) -> Tensor:
        edges = self.get_buffer("edges")
        if self.every_edge:
            sizes = (drops[..., None] > edges).sum(2)
        else:
            sizes = torch.bucketize(drops, edges)
        return self.feels(self.size(sizes))


def showers(count: int = 1200, drops: int = 500) -> TensorDataset:
    """Return random drops of showers, and how these felt."""
    return TensorDataset(torch.randn(count, drops), torch.randint(8, (count,)))


# Wheelbarrows


class Waves(nn.Conv2d):
    """A convolution as a product of waves: the kernel is as large as the picture for it."""

    def forward(self, input: Tensor) -> Tensor:
        (high, wide), (down, across) = input.shape[2:], self.kernel_size
        size = (high + down - 1, wide + across - 1)
        kernel = torch.fft.rfft2(self.weight.flip(2, 3), size)
        made = torch.einsum("bihw,oihw->bohw", torch.fft.rfft2(input, size), kernel)
        top, left = (down - 1) // 2, (across - 1) // 2
        kept = torch.fft.irfft2(made, size)[:, :, top : top + high, left : left + wide]
        return kept if self.bias is None else kept + self.bias[:, None, None]


class Wheelbarrow(nn.Module):
    """With what a wheelbarrow is loaded, by its picture."""

    def __init__(self, as_waves: bool, width: int = 20, loads: int = 12) -> None:
        super().__init__()
        kind = Waves if as_waves else nn.Conv2d
        self.enter = nn.Conv2d(3, width, 4, stride=2, padding=1)
        self.layers = nn.ModuleList(kind(width, width, 3, padding=1) for _ in range(2))
        self.load = nn.Linear(width, loads)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.relu(self.enter(picture))
        for layer in self.layers:
            x = x + functional.relu(layer(x))
        return self.load(x.mean((2, 3)))


def wheelbarrows(count: int = 500, side: int = 60) -> TensorDataset:
    """Return random pictures of wheelbarrows, and their loads."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(12, (count,)))


# Clogs


class Clog(nn.Module):
    """Who carved a clog, by its shape seen from above, around which the picture is black."""

    def __init__(self, width: int = 12, carvers: int = 15) -> None:
        super().__init__()
        self.wood = nn.Conv2d(1, width, 3, padding=1)
        self.shape = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.whole = nn.Conv2d(2 * width, 2 * width, 5, padding=2)
        self.carver = nn.Linear(2 * width, carvers)

    def forward(self, clogs: Tensor) -> Tensor:
        inside = functional.max_pool2d((clogs > 0).float(), 2)
        x = functional.relu(self.shape(functional.relu(self.wood(clogs))))
        x = (x + functional.relu(self.whole(x))) * inside
        return self.carver(x.sum((2, 3)) / inside.sum((2, 3)))


def upwards(points: int, to_power: bool) -> int:
    """Return how many points there is room for: a power of two, or the next eight."""
    return 1 << (points - 1).bit_length() if to_power else math.ceil(points / 8) * 8


def in_room(clogs: Sequence[tuple[Tensor, int]], to_power: bool) -> tuple[Tensor, Tensor]:
    """Return a batch of clogs with room for the longest and the widest of them."""
    long = upwards(max(clog.shape[0] for clog, _ in clogs), to_power)
    wide = upwards(max(clog.shape[1] for clog, _ in clogs), to_power)
    room = torch.zeros(len(clogs), 1, long, wide)
    for place, (clog, _) in zip(room, clogs, strict=True):
        place[0, : clog.shape[0], : clog.shape[1]] = clog
    return room, torch.tensor([carver for _, carver in clogs])


def clogs(count: int = 600) -> list[tuple[Tensor, int]]:
    """Return random clogs, small and large, and their carvers."""
    chance = np.random.default_rng(2242)
    sizes = zip(
        chance.integers(82, 105, count).tolist(),
        chance.integers(36, 49, count).tolist(),
        strict=True,
    )
    return [(0.1 + 0.9 * torch.rand(*size), number % 15) for number, size in enumerate(sizes)]


# Trampolines


class Trampoline(nn.Module):
    """How high the next three jumps are, by how the cloth was stretched in those before."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.stretched = nn.Conv1d(4, width, 8, stride=4)
        self.jumps = nn.GRU(width, width, batch_first=True)
        self.high = nn.Linear(width, 3)

    def forward(self, stretched: Tensor) -> Tensor:
        x = functional.softplus(self.stretched(stretched)).transpose(1, 2)
        return self.high(self.jumps(x)[1][0])


def jumps(count: int = 900, moments: int = 120) -> TensorDataset:
    """Return how random cloths were stretched at four sides, and the next jumps."""
    return TensorDataset(torch.rand(count, 4, moments), torch.rand(count, 3))


# Slippers


class Slipper(nn.Module):
    """Where a slipper lies among all, so that the two of a pair are near each other."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=4),
            nn.GroupNorm(4, width),
            nn.Mish(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.Mish(),
            nn.AdaptiveMaxPool2d(2),
            nn.Flatten(),
            nn.Linear(8 * width, 32),
        )

    def forward(self, slipper: Tensor) -> Tensor:
        return functional.normalize(self.seen(slipper), dim=1)


def pairs(count: int = 500, side: int = 48) -> TensorDataset:
    """Return random left slippers, and the right ones."""
    left, right = torch.rand(2, count, 3, side, side)
    return TensorDataset(left, right)


# Haystacks


class Haystack(nn.Module):
    """A field with haystacks at another hour, by its painting and the two hours."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.painted = nn.Conv2d(3, width, 3, padding=1)
        self.hours = nn.Linear(4, 2 * width)
        self.light = nn.Conv2d(width, width, 3, padding=2, dilation=2)
        self.paints = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, painting: Tensor, hours: Tensor) -> Tensor:
        more, less = self.hours(hours)[..., None, None].chunk(2, 1)
        x = functional.celu(self.painted(painting) * (1 + more) + less)
        return self.paints(x + functional.celu(self.light(x))).sigmoid()


def paintings(count: int = 400, high: int = 32, wide: int = 48) -> TensorDataset:
    """Return random paintings of a field, from which hour and to which, and those of that hour."""
    here, there = torch.rand(2, count, 3, high, wide)
    turns = 2 * math.pi * torch.rand(count, 2)
    return TensorDataset(here, torch.cat([turns.sin(), turns.cos()], 1), there)
