"""Models and data of the tenth round's runs from claims to aurora, which ``programs10b.py`` has."""

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Claims of an insurance

KINDS = (24, 12, 8, 96, 6, 40, 16, 10)
"""Values of each column that is not a number."""


class Claims(nn.Module):
    """How often a policy will be claimed on: crosses of its columns beside deep layers."""

    def __init__(self, width: int = 640, numbers: int = 12) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(kinds, 16) for kinds in KINDS)
        columns = 16 * len(KINDS) + numbers
        self.crosses = nn.ModuleList(nn.Linear(columns, columns) for _ in range(3))
        self.deep = nn.Sequential(
            nn.Linear(columns, width),
            nn.BatchNorm1d(width),
            nn.SiLU(),
            nn.Dropout(0.1),
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
            nn.SiLU(),
        )
        self.head = nn.Linear(columns + width, 1)

    def forward(self, kinds: Tensor, numbers: Tensor, exposed: Tensor) -> Tensor:
        found = [table(kinds[:, each]) for each, table in enumerate(self.tables)]
        first = crossed = torch.cat([*found, numbers], 1)
        for cross in self.crosses:
            crossed = first * cross(crossed) + crossed
        joined = torch.cat([crossed, self.deep(first)], 1)
        return self.head(joined)[:, 0] + exposed.log()


def policies(count: int = 65536) -> TensorDataset:
    """Return random policies: kinds, numbers, years that they ran, and claims."""
    kinds = torch.stack([torch.randint(each, (count,)) for each in KINDS], 1)
    claims = torch.poisson(torch.full((count,), 0.1))
    return TensorDataset(kinds, torch.randn(count, 12), 0.1 + 0.9 * torch.rand(count), claims)


# Mushrooms


class Unit(nn.Module):
    """Half of the channels by convolutions of their own, then all of them shuffled."""

    def __init__(self, channels: int, smaller: bool = False) -> None:
        super().__init__()
        self.smaller = smaller
        stride, inside = (2, channels) if smaller else (1, channels // 2)
        self.main = self.branch(inside, inside, stride)
        self.side = self.branch(inside, inside, stride) if smaller else nn.Identity()

    @staticmethod
    def branch(inside: int, outside: int, stride: int) -> nn.Module:
        """Return a convolution of each channel between two of all."""
        return nn.Sequential(
            nn.Conv2d(inside, outside, 1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
            nn.Conv2d(outside, outside, 3, stride, 1, groups=outside, bias=False),
            nn.BatchNorm2d(outside),
            nn.Conv2d(outside, outside, 1, bias=False),
            nn.BatchNorm2d(outside),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        left, right = (x, x) if self.smaller else x.chunk(2, 1)
        return functional.channel_shuffle(torch.cat([self.side(left), self.main(right)], 1), 2)


class Mushroom(nn.Module):
    """Which mushroom a picture shows."""

    def __init__(self, channels: int = 32, kinds: int = 30) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, channels, 3, 2, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU(inplace=True),
        )
        self.units = nn.Sequential(
            Unit(channels, smaller=True),
            *(Unit(2 * channels) for _ in range(2)),
            Unit(2 * channels, smaller=True),
            *(Unit(4 * channels) for _ in range(3)),
        )
        self.head = nn.Linear(4 * channels, kinds)

    def forward(self, picture: Tensor) -> Tensor:
        return self.head(self.units(self.stem(picture)).mean((2, 3)))


def mushrooms(count: int = 512, side: int = 96) -> TensorDataset:
    """Return random pictures of bytes, with their kinds."""
    pictures = torch.randint(256, (count, 3, side, side), dtype=torch.uint8)
    return TensorDataset(pictures, torch.randint(30, (count,)))


# Pulsars


class Candidate(nn.Module):
    """Whether a signal is a pulsar's, from four views of it."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.lines = nn.ModuleDict({name: self.line(channels) for name in ("profile", "curve")})
        self.planes = nn.ModuleDict({name: self.plane(channels) for name in ("bands", "times")})
        self.head = nn.Sequential(nn.Linear(16 * channels, 64), nn.ELU(), nn.Linear(64, 1))

    @staticmethod
    def line(channels: int) -> nn.Module:
        """Return convolutions over phases, or over dispersions."""
        return nn.Sequential(
            nn.Conv1d(1, channels, 9, padding=4),
            nn.ELU(),
            nn.MaxPool1d(4),
            nn.Conv1d(channels, 2 * channels, 5, padding=2),
            nn.ELU(),
            nn.AdaptiveAvgPool1d(2),
            nn.Flatten(),
        )

    @staticmethod
    def plane(channels: int) -> nn.Module:
        """Return convolutions over phases and bands, or over phases and times."""
        return nn.Sequential(
            nn.Conv2d(1, channels, 5, padding=2),
            nn.ELU(),
            nn.AvgPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ELU(),
            nn.AdaptiveMaxPool2d((1, 2)),
            nn.Flatten(),
        )

    def forward(self, views: dict[str, Tensor]) -> Tensor:
        lines = [line(views[name][:, None]) for name, line in self.lines.items()]
        planes = [plane(views[name][:, None]) for name, plane in self.planes.items()]
        return self.head(torch.cat(lines + planes, 1))[:, 0]


class Folded(Dataset[dict[str, Tensor]]):
    """Random signals, folded at a period: their profile, dispersion, bands and times."""

    def __init__(self, count: int = 1024) -> None:
        shapes = {"profile": (64,), "curve": (60,), "bands": (48, 48), "times": (48, 48)}
        self.views = {name: torch.randn(count, *shape) for name, shape in shapes.items()}
        self.views["pulsar"] = (torch.rand(count) < 0.1).float()

    def __len__(self) -> int:
        return len(self.views["pulsar"])

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {name: values[index] for name, values in self.views.items()}


def focal(scores: Tensor, wanted: Tensor) -> Tensor:
    """Return the cross-entropy, in which what is told well counts little."""
    each = functional.binary_cross_entropy_with_logits(scores, wanted, reduction="none")
    return ((1 - (-each).exp()).square() * each).mean()


# Gauges of rivers


class River(nn.Module):
    """What flows in a river after a season of weather, by what its land is like."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.memory = nn.GRU(5 + 27, width, batch_first=True)
        self.dropped = nn.Dropout(0.4)
        self.head = nn.Linear(width, 1)

    def forward(self, weather: Tensor) -> Tensor:
        heard, _ = self.memory(weather)
        return self.head(self.dropped(heard[:, -1]))[:, 0]


def seasons(count: int = 4096, days: int = 120) -> TensorDataset:
    """Return random weather with what the land is like, the flow, and how much it varies."""
    land = torch.randn(count, 1, 27).expand(-1, days, -1)
    weather = torch.cat([torch.randn(count, days, 5), land], 2)
    return TensorDataset(weather, torch.rand(count, 2))


def by_its_spread(found: Tensor, flow: Tensor) -> Tensor:
    """Return the mean square, in which a river that varies little counts as much as others."""
    return ((found - flow[:, 0]) / (flow[:, 1] + 0.1)).square().mean()


# Dice


class Thrower(nn.Module):
    """What each way to go on is worth: which of five dice to keep, or which box to fill."""

    def __init__(self, width: int = 96, depth: int = 3) -> None:
        super().__init__()
        self.faces, self.filled = nn.Embedding(6, width), nn.Embedding(2, width)
        self.place = nn.Parameter(torch.randn(18, width) / 8)
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.keep, self.fill = nn.Linear(5 * width, 32), nn.Linear(width, 1)

    def forward(self, state: Tensor) -> Tensor:
        dice, boxes = state[:, :5], state[:, 5:]
        x = torch.cat([self.faces(dice), self.filled(boxes)], 1) + self.place
        dice, boxes = self.blocks(x).split([5, 13], 1)
        return torch.cat([self.keep(dice.flatten(1)), self.fill(boxes)[..., 0]], 1)


def throws(count: int = 32768) -> TensorDataset:
    """Return random throws: dice and boxes, what was done, what it won, and what came of it."""

    def state() -> Tensor:
        return torch.cat([torch.randint(6, (count, 5)), torch.randint(2, (count, 13))], 1)

    return TensorDataset(state(), torch.randint(45, (count,)), torch.rand(count), state())


# Panes of glass


class Cracked(nn.Module):
    """Where a pane is cracked: strides down, and sums with what was seen on the way up."""

    def __init__(self, channels: tuple[int, ...] = (8, 16, 32, 48)) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, channels[0], 3, padding=1)
        pairs = list(itertools.pairwise(channels))
        self.down = nn.ModuleList(self.stage(each, more, 2) for each, more in pairs)
        self.same = nn.ModuleList(self.stage(more, more, 1) for _, more in pairs)
        self.up = nn.ModuleList(self.wider(more, each) for each, more in pairs)
        self.head = nn.Conv2d(channels[0], 1, 1)

    @staticmethod
    def stage(inside: int, outside: int, stride: int) -> nn.Module:
        """Return a convolution with its norm."""
        return nn.Sequential(
            nn.Conv2d(inside, outside, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outside),
            nn.PReLU(),
        )

    @staticmethod
    def wider(inside: int, outside: int) -> nn.Module:
        """Return a step up: few channels, twice as many points, then the channels that are due."""
        few = inside // 4
        return nn.Sequential(
            nn.Conv2d(inside, few, 1, bias=False),
            nn.BatchNorm2d(few),
            nn.PReLU(),
            nn.ConvTranspose2d(few, few, 4, 2, 1, bias=False),
            nn.BatchNorm2d(few),
            nn.PReLU(),
            nn.Conv2d(few, outside, 1, bias=False),
        )

    def forward(self, pane: Tensor) -> Tensor:
        seen = [self.enter(pane)]
        for down, same in zip(self.down, self.same, strict=True):
            smaller = down(seen[-1])
            seen.append(smaller + same(smaller))
        x = seen.pop()
        for up in reversed(self.up):
            x = up(x) + seen.pop()
        return self.head(x)[:, 0]


def panes(count: int = 512, side: int = 64) -> TensorDataset:
    """Return random panes, with the points where they are cracked."""
    cracked = (torch.rand(count, side, side) < 0.05).float()
    return TensorDataset(torch.rand(count, 1, side, side), cracked)


def overlapping(scores: Tensor, cracked: Tensor) -> Tensor:
    """Return the cross-entropy and how little of the cracks is covered."""
    told = scores.sigmoid()
    covered = 2 * (told * cracked).sum() / (told.sum() + cracked.sum() + 1)
    return functional.binary_cross_entropy_with_logits(scores, cracked) + 1 - covered


# Layouts of circuits


class Layout(nn.Module):
    """Where the cells of a circuit are put, from what each is and what the circuit is."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.cell = nn.Sequential(nn.Linear(12, width), nn.Mish(), nn.Linear(width, width))
        self.whole = nn.Linear(width, width)
        self.place = nn.Sequential(
            nn.Mish(), nn.Linear(width, width), nn.Mish(), nn.Linear(width, 2), nn.Sigmoid()
        )

    def forward(self, cells: Tensor) -> Tensor:
        seen = self.cell(cells)
        return self.place(seen + self.whole(seen.mean(1, keepdim=True)))


SHARP = 0.02
"""How sharply the ends of a wire are told from what lies between them, in widths of the chip."""


def in_turn(places: Tensor, wires: Tensor) -> Tensor:
    """Return the length of all wires, measured one after the other."""
    length = places.new_zeros(())
    for circuit, pins in zip(places, wires, strict=True):
        for wire in pins:
            ends = circuit[wire[wire >= 0]] / SHARP
            length = length + (ends.logsumexp(0) + (-ends).logsumexp(0)).sum()
    return SHARP * length


def at_once(places: Tensor, wires: Tensor) -> Tensor:
    """Return the length of all wires, with places that no pin has left out by a mask."""
    circuits = torch.arange(len(places))[:, None, None]
    ends = places[circuits, wires.clamp(min=0)] / SHARP
    missing = (wires < 0)[..., None]
    most = ends.masked_fill(missing, -torch.inf).logsumexp(2)
    least = (-ends).masked_fill(missing, -torch.inf).logsumexp(2)
    return SHARP * (most + least).sum()


def crowded(places: Tensor) -> Tensor:
    """Return how much the cells lie on each other."""
    apart = (places[:, :, None] - places[:, None]).abs().amax(-1)
    return (0.05 - apart).relu().sum()


def circuits(count: int = 1024, cells: int = 96, wires: int = 24, most: int = 6) -> TensorDataset:
    """Return random circuits: cells, and the cells that each wire joins, -1 for none."""
    joined = torch.randint(cells, (count, wires, most))
    joined[torch.arange(most) >= torch.randint(2, most + 1, (count, wires, 1))] = -1
    return TensorDataset(torch.randn(count, cells, 12), joined)


# Perfumes


class Scent(nn.Module):
    """Which notes a molecule has, by sums over what its atoms are bound to."""

    def __init__(self, width: int = 224, depth: int = 4, notes: int = 60) -> None:
        super().__init__()
        self.atoms = nn.Embedding(12, width)
        self.own = nn.Parameter(torch.zeros(depth))
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
            for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.head = nn.Linear((depth + 1) * width, notes)

    def forward(self, molecule: Tensor) -> Tensor:
        atoms, bonds = molecule[:, :, 0], molecule[:, :, 1:].float()
        x = self.atoms(atoms)
        seen = [x.sum(1)]
        for own, layer, norm in zip(self.own, self.layers, self.norms, strict=True):
            x = norm(x + layer((1 + own) * x + bonds @ x))
            seen.append(x.sum(1))
        return self.head(torch.cat(seen, 1))


def scents(count: int = 4096, atoms: int = 28, notes: int = 60) -> TensorDataset:
    """Return random molecules, each atom with its bonds, and the notes that they have."""
    bonds = (torch.rand(count, atoms, atoms) < 0.08).tril(-1)
    bound = (bonds | bonds.mT).byte()
    kinds = torch.randint(12, (count, atoms, 1), dtype=torch.uint8)
    told = (torch.rand(count, notes) < 0.06).float()
    return TensorDataset(torch.cat([kinds, bound], 2).int(), told)


# Aurora


class Curtain(nn.Module):
    """Which kind of aurora a film of the sky shows: convolutions over places, then over time."""

    def __init__(self, channels: int = 16, kinds: int = 7) -> None:
        super().__init__()
        sizes = [(3, channels), (channels, 2 * channels), (2 * channels, 3 * channels)]
        self.layers = nn.Sequential(*(self.block(*each) for each in sizes))
        self.head = nn.Linear(3 * channels, kinds)

    @staticmethod
    def block(inside: int, outside: int) -> nn.Module:
        """Return a convolution over places, at half of them, and one over time."""
        return nn.Sequential(
            nn.Conv3d(inside, outside, (1, 3, 3), (1, 2, 2), (0, 1, 1)),
            nn.BatchNorm3d(outside),
            nn.LeakyReLU(0.05),
            nn.Conv3d(outside, outside, (3, 1, 1), padding=(1, 0, 0)),
            nn.BatchNorm3d(outside),
            nn.LeakyReLU(0.05),
        )

    def forward(self, film: Tensor) -> Tensor:
        return self.head(self.layers(film).mean((2, 3, 4)))


def films(count: int = 192, frames: int = 8, side: int = 48) -> TensorDataset:
    """Return random films of the sky, with the kind of their aurora."""
    return TensorDataset(torch.rand(count, 3, frames, side, side), torch.randint(7, (count,)))
