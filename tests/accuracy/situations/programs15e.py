"""Models and data of the fifteenth round's runs from copper to slate: see ``programs15b.py``."""

import hashlib
import io
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, Sampler, TensorDataset

# Copper


class Copper(nn.Module):
    """How pure the copper of a cell gets, by its currents and how warm its bath is."""

    def __init__(self, inputs: int = 6, width: int = 48) -> None:
        super().__init__()
        self.hours = nn.GRU(inputs, width, batch_first=True)
        self.pure = nn.Sequential(
            nn.Linear(width, 560), nn.GELU(), nn.Linear(560, 560), nn.GELU(), nn.Linear(560, 1)
        )

    def forward(self, cell: Tensor) -> Tensor:
        found, _ = self.hours(cell)
        return self.pure(found[:, -1])[:, 0]


def cells(count: int = 1500, hours: int = 8) -> TensorDataset:
    """Return random hours of cells, and how pure their copper got."""
    return TensorDataset(torch.randn(count, hours, 6), torch.randn(count))


def saved(state: dict[str, Any], folder: Path) -> None:
    """Save a state so that a broken file is noticed and the last good one stays."""
    memory = io.BytesIO()
    torch.save(state, memory)
    content, new = memory.getvalue(), folder / "new.pt"
    new.write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    if hashlib.sha256(new.read_bytes()).hexdigest() != digest:
        raise OSError("what was saved is not what is in the file")
    (folder / "last.sha256").write_text(digest)
    new.replace(folder / "last.pt")


# Beans


class Bean(nn.Module):
    """Of which kind a bean is: each colour is looked at by itself before they are mixed."""

    def __init__(self, width: int = 32, depth: int = 3, kinds: int = 14) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 4, 4)
        layers: list[nn.Module] = []
        for _ in range(depth):
            layers += [nn.Conv2d(width, width, 5, padding=2, groups=width), nn.BatchNorm2d(width)]
            layers += [nn.Conv2d(width, width, 1), nn.Hardswish()]
        self.layers = nn.Sequential(*layers)
        self.kind = nn.Linear(width, kinds)

    def forward(self, bean: Tensor) -> Tensor:
        return self.kind(self.layers(self.enter(bean)).mean((2, 3)))


def beans(count: int = 600, side: int = 48) -> TensorDataset:
    """Return random pictures of beans, and their kinds."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(14, (count,)))


def resampled(right: np.ndarray, times: int = 400) -> tuple[float, float]:
    """Return between which shares of right answers the true one lies, by drawing again."""
    chance = np.random.default_rng(5)
    drawn = right[chance.integers(0, len(right), (times, len(right)))].mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


# Salt


class Salt(nn.Module):
    """How much of each salt is in brine, by the light that goes through it."""

    def __init__(self, width: int = 40, salts: int = 5) -> None:
        super().__init__()
        self.lines = nn.Sequential(
            nn.Conv1d(1, width, 9, 3, 4),
            nn.Softplus(),
            nn.Conv1d(width, width, 7, 2, 3),
            nn.Softplus(),
            nn.Conv1d(width, width, 5, 2, 2),
            nn.Softplus(),
        )
        self.much = nn.Linear(2 * width, salts)

    def forward(self, light: Tensor) -> Tensor:
        x = self.lines(light)
        return self.much(torch.cat([x.mean(2), x.amax(2)], 1)).softmax(1)


def brines(count: int = 1200, lines: int = 240) -> TensorDataset:
    """Return random light that went through brine, and the shares of its salts."""
    return TensorDataset(torch.randn(count, 1, lines), torch.rand(count, 5).softmax(1))


class Chart:
    """A picture of how the losses went and how the weights are spread, drawn anew each time."""

    def __init__(self, path: Path, wide: int = 480, high: int = 120) -> None:
        self.path, self.wide, self.high = path, wide, high
        self.losses: list[float] = []

    def draw(self, loss: float, model: nn.Module) -> None:
        """Draw one field for the losses and one for each of the model's weights."""
        self.losses.append(loss)
        fields = [("loss", np.array(self.losses[-self.wide :]))]
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                fields.append((name, np.histogram(weight.detach().numpy(), 80)[0]))
        sheet = Image.new("RGB", (self.wide, self.high * len(fields)), "white")
        pen = ImageDraw.Draw(sheet)
        for number, (name, line) in enumerate(fields):
            top, most = number * self.high, max(float(line.max()), 1e-9)
            across = np.linspace(0, self.wide - 1, len(line))
            down = top + self.high - 1 - (self.high - 20) * line / most
            pen.line(list(zip(across.tolist(), down.tolist(), strict=True)), "navy", 2)
            pen.text((4, top + 2), f"{name} {most:.4g}", "black")
        sheet.save(self.path)


# Tin


class Tin(nn.Module):
    """Which fault a plate of tin has, by what a coil feels along it."""

    def __init__(self, felt: int = 256, width: int = 384, faults: int = 8) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(felt, width), nn.Mish(), nn.Linear(width, width), nn.Mish()
        )
        self.fault = nn.Linear(width, faults)

    def forward(self, plate: Tensor) -> Tensor:
        return self.fault(self.layers(plate))


def plates(count: int = 4000) -> TensorDataset:
    """Return what a coil felt along random plates, and their faults."""
    return TensorDataset(torch.randn(count, 256), torch.randint(8, (count,)))


# Potatoes


class Potato(nn.Module):
    """How many grams a potato weighs, by three shadows of it."""

    def __init__(self, points: int = 96, width: int = 112) -> None:
        super().__init__()
        self.shadow = nn.Sequential(nn.Linear(points, width), nn.ReLU(), nn.Linear(width, width))
        self.grams = nn.Sequential(nn.ReLU(), nn.Linear(3 * width, width), nn.ReLU())
        self.last = nn.Linear(width, 1)

    def forward(self, shadows: Tensor) -> Tensor:
        return self.last(self.grams(self.shadow(shadows).flatten(1)))[:, 0]


def potatoes(count: int = 6000) -> TensorDataset:
    """Return random shadows of potatoes, their weights and their numbers."""
    return TensorDataset(torch.randn(count, 3, 96), torch.randn(count), torch.arange(count))


# Clay


class Clay(nn.Module):
    """From which pit the clay of a shard is, by a thin section of it."""

    def __init__(self, width: int = 64, depth: int = 3, pits: int = 11) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 4, 4)
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(depth))
        self.pit = nn.Linear(width, pits)

    def forward(self, section: Tensor) -> Tensor:
        x = self.enter(section)
        for layer in self.layers:
            x = x + functional.relu(layer(x))
        return self.pit(x.mean((2, 3)))


def sections(count: int = 320, side: int = 64) -> TensorDataset:
    """Return random thin sections, and their pits."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(11, (count,)))


# Octopuses


class Octopus(nn.Module):
    """What an octopus does, by where points of its eight arms are."""

    def __init__(self, width: int = 160, points: int = 8, deeds: int = 12) -> None:
        super().__init__()
        self.enter = nn.Linear(3, width)
        self.place = nn.Parameter(torch.randn(8 * points, width) / 8)
        layer = nn.TransformerEncoderLayer(
            width, 4, 3 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.deed = nn.Linear(width, deeds)

    def forward(self, arms: Tensor) -> Tensor:
        return self.deed(self.layers(self.enter(arms) + self.place).mean(1))


def arms(count: int = 600, points: int = 8) -> TensorDataset:
    """Return random points of arms, and what was done."""
    return TensorDataset(torch.randn(count, 8 * points, 3), torch.randint(12, (count,)))


# Yoghurt


class Yoghurt(nn.Module):
    """How sour, thick and sweet yoghurt gets, by what was measured while it stood."""

    def __init__(self, inputs: int = 320, width: int = 640, tastes: int = 3) -> None:
        super().__init__()
        self.stood = nn.Sequential(
            nn.Linear(inputs, width),
            nn.LeakyReLU(),
            nn.Linear(width, width),
            nn.LeakyReLU(),
            nn.Linear(width, width),
            nn.LeakyReLU(),
            nn.Linear(width, tastes),
        )

    def forward(self, measured: Tensor) -> Tensor:
        return self.stood(measured)


class Pots(Dataset[tuple[Tensor, Tensor]]):
    """Random pots of yoghurt, of which a whole batch is taken at once."""

    def __init__(self, count: int = 8192, inputs: int = 320) -> None:
        self.measured, self.tastes = torch.randn(count, inputs), torch.randn(count, 3)

    def __len__(self) -> int:
        return len(self.tastes)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.measured[index], self.tastes[index]

    def __getitems__(self, numbers: list[int]) -> tuple[Tensor, Tensor]:
        return self.measured[numbers], self.tastes[numbers]


def as_they_are(pots: Any) -> Any:
    """Return a batch that is one already."""
    return pots


# Plums


class Plum(nn.Module):
    """Draws a plum's scan anew out of little: where it differs, the stone is split."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.inwards = nn.Sequential(
            nn.Conv3d(1, width, 4, 4),
            nn.ELU(),
            nn.Conv3d(width, 2 * width, 3, padding=1),
            nn.ELU(),
            nn.Conv3d(2 * width, width, 3, padding=1),
        )
        self.outwards = nn.Sequential(
            nn.ELU(),
            nn.Conv3d(width, 2 * width, 3, padding=1),
            nn.ELU(),
            nn.ConvTranspose3d(2 * width, 1, 4, 4),
        )

    def forward(self, scan: Tensor) -> Tensor:
        return self.outwards(self.inwards(scan))


def scans(count: int = 160, side: int = 32) -> TensorDataset:
    """Return random scans of plums."""
    return TensorDataset(torch.rand(count, 1, side, side, side))


# Cedars


class Cedar(nn.Module):
    """In which valley a cedar grew, by how wide its rings are."""

    def __init__(self, width: int = 192, valleys: int = 10) -> None:
        super().__init__()
        self.rings = nn.LSTM(4, width, batch_first=True)
        self.valley = nn.Linear(width, valleys)

    def forward(self, rings: Tensor) -> Tensor:
        found, _ = self.rings(rings)
        return self.valley(found.mean(1))


def trunks(count: int = 1500, rings: int = 40) -> TensorDataset:
    """Return random rings of cedars, and their valleys."""
    return TensorDataset(torch.randn(count, rings, 4), torch.randint(10, (count,)))


# Peanuts


class Peanuts(Dataset[tuple[Tensor, Tensor]]):
    """Plants with pods, whose number differs, and what each plant yields."""

    def __init__(self, count: int = 900, most: int = 30) -> None:
        self.pods = [torch.randn(random.randint(most // 2, most), 20) for _ in range(count)]
        self.yields = torch.randn(count)

    def __len__(self) -> int:
        return len(self.pods)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.pods[index], self.yields[index]


def side_by_side(plants: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return plants as one list of pods, which plant each is of, and the plants' yields."""
    many = torch.tensor([len(pods) for pods, _ in plants])
    whose = torch.repeat_interleave(torch.arange(len(plants)), many)
    return torch.cat([pods for pods, _ in plants]), whose, torch.stack([y for _, y in plants])


class Peanut(nn.Module):
    """What a plant yields, as the sum of what is told of its pods."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.pod = nn.Sequential(
            nn.Linear(20, width), nn.CELU(), nn.Linear(width, width), nn.CELU()
        )
        self.plant = nn.Sequential(nn.Linear(width, width), nn.CELU(), nn.Linear(width, 1))

    def forward(self, pods: Tensor, whose: Tensor, plants: int) -> Tensor:
        told = self.pod(pods)
        sums = told.new_zeros(plants, told.shape[1]).index_add(0, whose, told)
        return self.plant(sums / 20)[:, 0]


# Penguins


class Nests(Sampler[list[int]]):
    """The numbers of the calls at some nests, a batch of them at a time."""

    def __init__(self, nests: int, calls: int, at_once: int) -> None:
        self.nests, self.calls, self.at_once = nests, calls, at_once

    def __len__(self) -> int:
        return self.nests // self.at_once

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(self.nests).tolist()
        for start in range(0, len(self) * self.at_once, self.at_once):
            some = order[start : start + self.at_once]
            yield [nest * self.calls + call for nest in some for call in range(self.calls)]


class Penguin(nn.Module):
    """Which penguin of a colony calls."""

    def __init__(self, width: int = 24, penguins: int = 300) -> None:
        super().__init__()
        self.heard = nn.Sequential(
            nn.Conv2d(1, width, 5, 2, 2),
            nn.GroupNorm(4, width),
            nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.GroupNorm(4, 2 * width),
            nn.SiLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 2, 1),
            nn.SiLU(),
            nn.Flatten(),
        )
        self.who = nn.Sequential(
            nn.Linear(2 * width * 15, 384), nn.SiLU(), nn.Linear(384, penguins)
        )

    def forward(self, call: Tensor) -> Tensor:
        return self.who(self.heard(call))


def calls(nests: int = 400, each: int = 4) -> TensorDataset:
    """Return random calls at nests, and who called."""
    count = nests * each
    return TensorDataset(torch.randn(count, 1, 24, 40), torch.randint(300, (count,)))


# Wax


class Wax(nn.Module):
    """How long a candle burns: each of its layers of wax has weights of its own."""

    def __init__(self, at_once: bool, layers: int = 20, inputs: int = 48, width: int = 96) -> None:
        super().__init__()
        self.at_once, sizes = at_once, (inputs, width, width)
        if at_once:
            self.weights = nn.ParameterList(
                nn.Parameter(torch.randn(layers, into, out) / into**0.5)
                for into, out in itertools.pairwise(sizes)
            )
            self.shifts = nn.ParameterList(
                nn.Parameter(torch.zeros(layers, 1, out)) for out in sizes[1:]
            )
        else:
            self.each = nn.ModuleList(
                nn.Sequential(
                    nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
                )
                for _ in range(layers)
            )
        self.burns = nn.Linear(width, 1)

    def forward(self, candle: Tensor) -> Tensor:
        if not self.at_once:
            found = [each(candle[:, layer]) for layer, each in enumerate(self.each)]
            return self.burns(torch.stack(found).mean(0))[:, 0]
        x = candle.transpose(0, 1)
        for weight, shift in zip(self.weights, self.shifts, strict=True):
            x = torch.baddbmm(shift, x, weight).tanh()
        return self.burns(x.mean(0))[:, 0]


def candles(count: int = 1500, layers: int = 20) -> TensorDataset:
    """Return random layers of candles, and how long these burnt."""
    return TensorDataset(torch.randn(count, layers, 48), torch.rand(count))


# Worms


class Muscles(nn.Module):
    """What each ring of a worm does, by what it and the rings beside it did."""

    def __init__(self, at_once: bool, width: int) -> None:
        super().__init__()
        self.at_once, self.width = at_once, width
        self.ring = nn.Linear(3 * width, width)

    def forward(self, rings: Tensor) -> Tensor:
        long = functional.pad(rings, (0, 0, 1, 1))
        if self.at_once:
            near = torch.cat([long[:, :-2], long[:, 1:-1], long[:, 2:]], 2)
            return rings + functional.relu(self.ring(near))
        moved, each = [], long.unbind(1)
        for before, here, behind in zip(each, each[1:], each[2:], strict=False):
            near = torch.cat([before, here, behind], 1)
            moved.append(here + functional.relu(self.ring(near)))
        return torch.stack(moved, 1)


class Worm(nn.Module):
    """Where a worm crawls to."""

    def __init__(self, at_once: bool, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Linear(5, width)
        self.layers = nn.Sequential(*(Muscles(at_once, width) for _ in range(depth)))
        self.where = nn.Linear(width, 2)

    def forward(self, rings: Tensor) -> Tensor:
        return self.where(self.layers(self.enter(rings)).mean(1))


def crawls(count: int = 1500, rings: int = 48) -> TensorDataset:
    """Return random rings of worms, and where these crawled to."""
    return TensorDataset(torch.randn(count, rings, 5), torch.randn(count, 2))


# Slate


class Slate(nn.Module):
    """Whether slate splits well: every two of its sheets are compared."""

    def __init__(self, at_once: bool, sheets: int = 10, inputs: int = 24, width: int = 96) -> None:
        super().__init__()
        self.at_once = at_once
        self.sheet = nn.Linear(inputs, width)
        self.two = nn.Sequential(
            nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.splits = nn.Linear(width, 2)
        self.pairs = list(itertools.combinations(range(sheets), 2))

    def forward(self, sheets: Tensor) -> Tensor:
        x = self.sheet(sheets)
        if self.at_once:
            one, other = torch.tensor(self.pairs).T
            return self.splits(self.two(torch.cat([x[:, one], x[:, other]], 2)).mean(1))
        found = torch.zeros(1)
        for one, other in self.pairs:
            found = found + self.two(torch.cat([x[:, one], x[:, other]], 1))
        return self.splits(found / len(self.pairs))


def slates(count: int = 1500, sheets: int = 10) -> TensorDataset:
    """Return random sheets of slate, and whether it split well."""
    return TensorDataset(torch.randn(count, sheets, 24), torch.randint(2, (count,)))
