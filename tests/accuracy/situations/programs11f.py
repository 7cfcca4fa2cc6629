"""Models and data of the eleventh round's runs from coupons to engines: see ``programs11c.py``."""

import itertools
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, IterableDataset, TensorDataset

# Coupons

COLUMNS = (900, 120, 48, 31, 12, 7, 400, 64, 20, 5)
"""Values of each column of a shopper and of a coupon."""


class Coupons(nn.Module):
    """Whether a coupon is opened, and used once it is: two towers over pairs of columns."""

    def __init__(self, size: int = 12, width: int = 256) -> None:
        super().__init__()
        starts = np.cumsum([0, *COLUMNS[:-1]])
        self.register_buffer("starts", torch.from_numpy(starts))
        self.table = nn.Embedding(sum(COLUMNS), size)
        nn.init.normal_(self.table.weight, std=0.02)
        pairs = len(COLUMNS) * (len(COLUMNS) - 1) // 2
        self.opened = self.tower(len(COLUMNS) * size + pairs, width)
        self.used = self.tower(len(COLUMNS) * size + pairs, width)

    @staticmethod
    def tower(inputs: int, width: int) -> nn.Module:
        """Return the layers of one task."""
        return nn.Sequential(
            nn.Linear(inputs, width),
            nn.PReLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width // 2),
            nn.PReLU(),
            nn.Linear(width // 2, width // 4),
            nn.PReLU(),
            nn.Linear(width // 4, 1),
        )

    def forward(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        found = self.table(columns + self.starts)
        like = found @ found.mT
        row, column = torch.triu_indices(len(COLUMNS), len(COLUMNS), 1)
        joined = torch.cat([found.flatten(1), like[:, row, column]], 1)
        opened = functional.logsigmoid(self.opened(joined)[:, 0])
        return opened, opened + functional.logsigmoid(self.used(joined)[:, 0])


class Offers(IterableDataset[tuple[Tensor, Tensor, Tensor]]):
    """Columns of offers, whether each was opened and used: in memory, whole batches at a time."""

    def __init__(self, batch: int, count: int = 64_000) -> None:
        self.batch = batch
        self.columns = torch.stack([torch.randint(each, (count,)) for each in COLUMNS], 1)
        self.opened = torch.rand(count) < 0.2
        self.used = self.opened & (torch.rand(count) < 0.3)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        for chosen in torch.randperm(len(self.columns)).split(self.batch):
            yield self.columns[chosen], self.opened[chosen], self.used[chosen]


def entire_space(told: tuple[Tensor, Tensor], opened: Tensor, used: Tensor) -> Tensor:
    """Return the loss of both tasks over every offer that was shown."""
    return sum(
        -(torch.where(wanted, log, torch.log1p(-log.exp() + 1e-6))).mean()
        for log, wanted in zip(told, (opened, used), strict=True)
    )


# Kites


class Pilot(nn.Module):
    """How a pilot steers a kite: several ways at each moment, by what was measured until then."""

    def __init__(self, inputs: int = 14, width: int = 128, ways: int = 5) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.back = nn.ModuleList(nn.Conv1d(width, width, 3, dilation=2**each) for each in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in self.back)
        self.ways = nn.Linear(width, ways * 5)

    def forward(self, flown: Tensor) -> torch.distributions.MixtureSameFamily:
        heard = self.enter(flown)
        for back, norm in zip(self.back, self.norms, strict=True):
            before = functional.pad(norm(heard).mT, (2 * back.dilation[0], 0))
            heard = heard + functional.gelu(back(before)).mT
        chance, middle, spread = self.ways(heard).unflatten(2, (-1, 5)).split([1, 2, 2], 3)
        each = torch.distributions.Normal(middle, functional.softplus(spread) + 1e-3)
        return torch.distributions.MixtureSameFamily(
            torch.distributions.Categorical(logits=chance[..., 0]),
            torch.distributions.Independent(each, 1),
        )


def flights(count: int = 600, moments: int = 40) -> TensorDataset:
    """Return random flights, fourteen readings at each moment, with both lines' commands."""
    return TensorDataset(torch.randn(count, moments, 14), torch.randn(count, moments, 2).tanh())


# Moles


class Squeezed(nn.Module):
    """Wider, each channel by itself, weighed by what the whole picture is like, narrow again."""

    def __init__(self, inside: int, outside: int, stride: int, wider: int = 3) -> None:
        super().__init__()
        wide = wider * inside
        self.enter = nn.Sequential(
            nn.Conv2d(inside, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.SiLU(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.SiLU(),
        )
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(wide, inside // 2, 1),
            nn.SiLU(),
            nn.Conv2d(inside // 2, wide, 1),
            nn.Sigmoid(),
        )
        self.leave = nn.Sequential(nn.Conv2d(wide, outside, 1, bias=False), nn.BatchNorm2d(outside))
        self.added = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        wide = self.enter(x)
        left = self.leave(wide * self.weigh(wide))
        return x + left if self.added else left


class Mole(nn.Module):
    """What a mole is, by its picture, the patient's age and sex, and where it is."""

    def __init__(self, kinds: int = 7) -> None:
        super().__init__()
        self.picture = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.SiLU(),
            Squeezed(16, 24, 2),
            Squeezed(24, 24, 1),
            Squeezed(24, 40, 2),
            Squeezed(40, 40, 1),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.patient = nn.Sequential(nn.Linear(18, 24), nn.SiLU())
        self.kind = nn.Sequential(nn.Dropout(0.3), nn.Linear(64, kinds))

    def forward(self, seen: tuple[Tensor, Tensor]) -> Tensor:
        picture, patient = seen
        return self.kind(torch.cat([self.picture(picture), self.patient(patient)], 1))


class Moles(Dataset[tuple[Tensor, Tensor, int]]):
    """Pictures as bytes, cut by hand long ago, with what is known of the patient."""

    def __init__(self, count: int = 800, side: int = 64) -> None:
        self.pictures = torch.randint(256, (count, 3, side, side), dtype=torch.uint8)
        self.patients = torch.rand(count, 18)
        self.kinds = torch.randint(7, (count,)).tolist()

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, int]:
        picture = self.pictures[index].float().div_(255).sub_(0.6)
        return picture, self.patients[index], self.kinds[index]


# Crosswords


class Solver(nn.Module):
    """The letters of an answer: the clue's words, and the letters that crossings have given."""

    def __init__(self, words: int = 4000, letters: int = 28, width: int = 128) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(words, width, mode="mean", padding_idx=0)
        self.letters = nn.Embedding(letters, width)
        self.place = nn.Parameter(torch.randn(15, width) / 16)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "along": nn.Conv1d(width, 2 * width, 5, padding=2),
                    "clue": nn.Linear(width, 2 * width),
                    "norm": nn.GroupNorm(8, width),
                }
            )
            for _ in range(4)
        )
        self.answer = nn.Linear(width, letters)

    def forward(self, clue: Tensor, crossed: Tensor) -> Tensor:
        meant = self.words(clue)
        x = (self.letters(crossed) + self.place).mT
        for block in self.blocks:
            both = block["along"](block["norm"](x)) + block["clue"](meant)[..., None]
            x = x + functional.glu(both, 1)
        return self.answer(x.mT)


def clues(count: int = 5000) -> TensorDataset:
    """Return random clues of up to twelve words, what crossings give, and the answers."""
    answers = torch.randint(2, 28, (count, 15))
    lengths = torch.randint(3, 16, (count, 1))
    answers[torch.arange(15) >= lengths] = 0
    hidden = (torch.rand(count, 15) < 0.7) & (answers > 0)
    return TensorDataset(torch.randint(4000, (count, 12)), answers.masked_fill(hidden, 1), answers)


# Fabrics


class Weave(nn.Module):
    """Woven cloth through a narrow code and back: where it comes back badly, it is torn."""

    def __init__(self, channels: int = 12, code: int = 48) -> None:
        super().__init__()
        sizes = [1, channels, 2 * channels, 2 * channels, 4 * channels]
        self.narrow = nn.Sequential(
            *(
                layer
                for inside, outside in itertools.pairwise(sizes)
                for layer in (nn.Conv2d(inside, outside, 4, 2, 1), nn.LeakyReLU(0.2))
            ),
            nn.Conv2d(sizes[-1], code, 1),
        )
        back = [code, *reversed(sizes[:-1])]
        self.wide = nn.Sequential(
            *(
                layer
                for inside, outside in itertools.pairwise(back)
                for layer in (nn.LeakyReLU(0.2), nn.ConvTranspose2d(inside, outside, 4, 2, 1))
            ),
            nn.Sigmoid(),
        )

    def forward(self, cloth: Tensor) -> Tensor:
        return self.wide(self.narrow(cloth))


def cloths(count: int = 1024, side: int = 64) -> TensorDataset:
    """Return random threads that cross, and the number of each bale."""
    across = torch.rand(count, 1, 1, side).expand(-1, -1, side, -1)
    down = torch.rand(count, 1, side, 1).expand(-1, -1, -1, side)
    return TensorDataset((across + down) / 2, torch.arange(count))


def unlike(one: Tensor, other: Tensor, window: int = 11) -> Tensor:
    """Return how unlike two pictures are in their structure, from none to one."""

    def mean(x: Tensor) -> Tensor:
        return functional.avg_pool2d(x, window, 1)

    first, second = mean(one), mean(other)
    spread, also = mean(one * one) - first**2, mean(other * other) - second**2
    shared = mean(one * other) - first * second
    light = (2 * first * second + 1e-4) / (first**2 + second**2 + 1e-4)
    return (1 - light * (2 * shared + 9e-4) / (spread + also + 9e-4)).mean() / 2


# Sails


class Sail(nn.Module):
    """The pressure on a sail's panels: each feels the others by how near they are, twice."""

    def __init__(self, width: int = 24, wide: int = 160, told: int = 9) -> None:
        super().__init__()
        self.enter = nn.Linear(3 + told, width)
        self.near = nn.Parameter(torch.linspace(-2, 3, width).repeat(2, 1))
        self.strength = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.changed = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * width, wide), nn.SiLU(), nn.Linear(wide, width))
            for _ in range(2)
        )
        self.leave = nn.Linear(width, 2)

    def forward(self, panels: Tensor, wind: Tensor) -> Tensor:
        apart = (panels[:, :, None] - panels[:, None]).square().sum(3, keepdim=True)
        x = self.enter(torch.cat([panels, wind[:, None].expand(-1, panels.shape[1], -1)], 2))
        for near, strength, changed in zip(self.near, self.strength, self.changed, strict=True):
            felt = ((-apart * functional.softplus(near)).exp() * strength(x)[:, None]).mean(2)
            x = x + changed(torch.cat([x, felt], 2))
        return self.leave(x)


def sails(count: int = 1024, panels: int = 60) -> TensorDataset:
    """Return where the panels of random sails are, wind and trim, and the pressures."""
    return TensorDataset(
        torch.randn(count, panels, 3), torch.randn(count, 9), torch.randn(count, panels, 2)
    )


# Muons


class Muon(nn.Module):
    """Charge over momentum and direction of a muon: layers that each take the best of several."""

    def __init__(self, inputs: int = 24 * 7, width: int = 320, pieces: int = 3) -> None:
        super().__init__()
        sizes = [inputs, width, width, width]
        self.layers = nn.ModuleList(
            nn.Linear(inside, pieces * outside) for inside, outside in itertools.pairwise(sizes)
        )
        self.pieces = pieces
        self.head = nn.Linear(width, 5)

    def forward(self, hits: Tensor) -> Tensor:
        x = hits.flatten(1)
        for layer in self.layers:
            x = layer(x).unflatten(1, (-1, self.pieces)).amax(2)
        return self.head(x)


def tracks(count: int = 12_000, layers: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Return random hits in each layer of tubes, seven numbers of each, and five of the track."""
    chance = np.random.default_rng(11)
    return chance.normal(size=(count, layers, 7)), chance.normal(size=(count, 5))


# Parcels


class Parcel(nn.Module):
    """Three lengths of a parcel, the longest first, by what two depth cameras see of it."""

    def __init__(self, channels: int = 20) -> None:
        super().__init__()
        self.camera = nn.Sequential(
            nn.Conv2d(1, channels, 7, 2, 3),
            nn.ELU(),
            nn.AvgPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ELU(),
            nn.AvgPool2d(2),
            nn.Conv2d(2 * channels, 3 * channels, 3, padding=1),
            nn.ELU(),
            nn.AdaptiveMaxPool2d(2),
            nn.Flatten(),
        )
        self.lengths = nn.Bilinear(12 * channels, 12 * channels, 6)
        self.steps = nn.Linear(6, 3)

    def forward(self, views: Tensor) -> Tensor:
        above, aside = views.unbind(1)
        told = self.lengths(self.camera(above), self.camera(aside)).tanh()
        return functional.softplus(self.steps(told)).flip(1).cumsum(1).flip(1)


def parcels(count: int = 400) -> TensorDataset:
    """Return random depths from above and from aside, and lengths in metres."""
    lengths = torch.rand(count, 3).sort(1, descending=True).values
    return TensorDataset(torch.rand(count, 2, 1, 96, 96), lengths)


# Lighthouses


class Lamp(nn.Module):
    """A lighthouse as a point, by the rhythm of its light, so that its own nights lie together."""

    def __init__(self, width: int = 48, size: int = 32) -> None:
        super().__init__()
        self.slow = nn.Conv1d(1, width, 64, stride=16)
        self.fast = nn.Conv1d(1, width, 16, stride=16, padding=24)
        self.both = nn.Sequential(
            nn.BatchNorm1d(2 * width),
            nn.ReLU6(),
            nn.Conv1d(2 * width, 2 * width, 3, padding=1, groups=4),
            nn.ReLU6(),
            nn.Conv1d(2 * width, 2 * width, 1),
        )
        self.point = nn.Linear(4 * width, size)

    def forward(self, light: Tensor) -> Tensor:
        slow, fast = self.slow(light), self.fast(light)
        x = self.both(torch.cat([slow, fast[..., : slow.shape[2]]], 1))
        return self.point(torch.cat([x.mean(2), x.std(2)], 1))


def nights(lamps: int = 120, each: int = 20, length: int = 1024) -> Tensor:
    """Return how bright each lighthouse was in some of its nights."""
    return torch.rand(lamps, each, 1, length).pow_(8)


def nearest(points: Tensor, known: int) -> Tensor:
    """Return the loss of knowing the other nights by the middle of a few, as prototypes do."""
    middles, asked = points[:, :known].mean(1), points[:, known:].flatten(0, 1)
    wanted = torch.arange(len(points)).repeat_interleave(points.shape[1] - known)
    return functional.cross_entropy(-torch.cdist(asked, middles).square(), wanted)


# Engines


class Engine(nn.Module):
    """What ails an engine, by its sound: bands that adapt to how loud it is, then recurrence."""

    def __init__(self, bands: int = 64, width: int = 72, ailments: int = 11) -> None:
        super().__init__()
        self.bands = nn.Linear(257, bands, bias=False)
        self.power = nn.Parameter(torch.full((bands,), 0.5))
        self.along = nn.GRU(bands, width, batch_first=True, bidirectional=True)
        self.heed = nn.Linear(2 * width, ailments)
        self.ails = nn.Linear(2 * width, ailments)

    def forward(self, sound: Tensor) -> Tensor:
        window = torch.hann_window(512)
        heard = torch.stft(sound, 512, 256, window=window, return_complex=True).abs().mT
        bands = self.bands(heard).relu()
        loud = functional.avg_pool1d(bands.mT, 9, 1, 4).mT
        x, _ = self.along((bands / (loud + 1e-3) + 1e-3) ** self.power.sigmoid())
        return (self.heed(x).softmax(1) * self.ails(x)).sum(1)


def engines(count: int = 512, length: int = 16_384) -> TensorDataset:
    """Return a second of random noise each, and which of eleven ailments it has."""
    return TensorDataset(torch.randn(count, length), (torch.rand(count, 11) < 0.1).float())
