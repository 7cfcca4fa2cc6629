"""Models and data of the tenth round's runs that are saved, validated and counted too often."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Houses


class Prices(nn.Module):
    """What a house costs: each number of it becomes waves, and layers that are added up."""

    def __init__(self, numbers: int = 20, waves: int = 12, width: int = 384) -> None:
        super().__init__()
        self.often = nn.Parameter(torch.randn(numbers, waves))
        self.each = nn.Parameter(torch.randn(numbers, 2 * waves, 12) / waves)
        self.enter = nn.Linear(12 * numbers, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm1d(width),
                nn.Linear(width, 2 * width),
                nn.ReLU(),
                nn.Dropout(0.1),
                nn.Linear(2 * width, width),
            )
            for _ in range(3)
        )
        self.price = nn.Linear(width, 1)

    def forward(self, house: Tensor) -> Tensor:
        turned = 2 * torch.pi * house[..., None] * self.often
        waves = torch.cat([turned.sin(), turned.cos()], 2)
        x = self.enter(torch.einsum("bnw,nwo->bno", waves, self.each).relu().flatten(1))
        for block in self.blocks:
            x = x + block(x)
        return self.price(x)[:, 0]


def houses(count: int = 16_384) -> TensorDataset:
    """Return random houses, twenty numbers of each, and the logarithms of their prices."""
    return TensorDataset(torch.rand(count, 20), 12 + torch.randn(count))


# Labels in a museum


class Label(nn.Module):
    """From which time an object is, by the letters of its label: some pass, some are changed."""

    def __init__(self, letters: int = 90, width: int = 64, times: int = 25) -> None:
        super().__init__()
        self.letter = nn.Embedding(letters, 24)
        self.spans = nn.ModuleList(nn.Conv1d(24, width, size) for size in (2, 3, 5, 7))
        self.changed = nn.ModuleList(nn.Linear(4 * width, 4 * width) for _ in range(2))
        self.passed = nn.ModuleList(nn.Linear(4 * width, 4 * width) for _ in range(2))
        self.time = nn.Linear(4 * width, times)

    def forward(self, label: Tensor) -> Tensor:
        letters = self.letter(label).transpose(1, 2)
        x = torch.cat([span(letters).tanh().amax(2) for span in self.spans], 1)
        for changed, passed in zip(self.changed, self.passed, strict=True):
            let = passed(x).sigmoid()
            x = let * x + (1 - let) * changed(x).relu()
        return self.time(x)


def labels(count: int = 4096, length: int = 160) -> TensorDataset:
    """Return random labels, letter by letter, and the times of the objects."""
    return TensorDataset(torch.randint(90, (count, length)), torch.randint(25, (count,)))


# Avalanches


class Snow(nn.Module):
    """How great the danger is: a slope's layers of snow from the top, and a week of weather."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(8, width, 5, padding=2),
            nn.Softplus(),
            nn.Conv1d(width, width, 5, padding=2, stride=2),
            nn.Softplus(),
            nn.Conv1d(width, width, 5, padding=2, stride=2),
        )
        self.weather = nn.RNN(6, width, batch_first=True)
        self.danger = nn.Linear(2 * width, 1)
        self.between = nn.Parameter(torch.linspace(-2, 2, 4))

    def forward(self, slope: Tensor) -> Tensor:
        layers = slope[:, :800].unflatten(1, (8, 100))
        weather = slope[:, 800:].unflatten(1, (28, 6))
        found = torch.cat([self.layers(layers).amax(2), self.weather(weather)[0][:, -1]], 1)
        return self.danger(found) - self.between


def above(scores: Tensor, danger: Tensor) -> Tensor:
    """Return the loss of degrees that are in order: above which of them the danger is."""
    wanted = (danger[:, None] > torch.arange(4)).float()
    return functional.binary_cross_entropy_with_logits(scores, wanted)


def slopes(count: int = 4096) -> TensorDataset:
    """Return random slopes, a hundred layers of snow and four weathers a day, and the danger."""
    return TensorDataset(torch.randn(count, 800 + 28 * 6), torch.randint(5, (count,)))


def forecast_scores(model: nn.Module, slopes: Tensor, danger: Tensor) -> dict[str, float]:
    """Return the usual scores of a forecast: agreement, Brier's score and the areas."""
    with torch.no_grad():
        above_each = torch.cat([model(part) for part in slopes.split(128)]).sigmoid()
    said = (above_each > 0.5).sum(1)
    table = torch.bincount(5 * danger + said, minlength=25).view(5, 5).float()
    apart = (torch.arange(5)[:, None] - torch.arange(5)).square()
    chance = table.sum(1)[:, None] * table.sum(0) / table.sum()
    happened = (danger[:, None] > torch.arange(4)).float()
    scores = {
        "kappa": 1 - float((apart * table).sum() / (apart * chance).sum()),
        "brier": float((above_each - happened).square().mean()),
    }
    for degree in range(4):
        order = above_each[:, degree].argsort().argsort().float() + 1
        is_above = danger > degree
        many, few = is_above.sum(), (~is_above).sum()
        scores[f"area-{degree}"] = float(
            (order[is_above].sum() - many * (many + 1) / 2) / (many * few)
        )
    return scores


# Shopping baskets


class Baskets(nn.Module):
    """What is bought next time: earlier baskets, the later the more, and what goes together."""

    def __init__(self, goods: int = 2000, width: int = 64) -> None:
        super().__init__()
        self.goods = nn.Embedding(goods, width)
        self.fading = nn.Parameter(torch.zeros(width))
        self.mixed = nn.Sequential(nn.Linear(2 * width, width), nn.Mish(), nn.Linear(width, width))
        self.usual = nn.Parameter(torch.zeros(goods))

    def forward(self, baskets: Tensor) -> Tensor:
        each = self.goods(baskets).mean(2)
        back = torch.arange(each.shape[1] - 1, -1, -1)[:, None]
        weight = (-back * functional.softplus(self.fading)).exp()
        taste = self.mixed(torch.cat([(weight * each).sum(1), each[:, -1]], 1))
        return taste @ self.goods.weight.T + self.usual


def customers(count: int = 4096, baskets: int = 10, goods: int = 2000) -> TensorDataset:
    """Return what customers bought, eight goods at a time, and one that they bought then."""
    return TensorDataset(torch.randint(goods, (count, baskets, 8)), torch.randint(goods, (count,)))


def ranks_of(model: nn.Module, baskets: Tensor, bought: Tensor) -> tuple[float, float]:
    """Return how often the goods were among the first twenty, and how high up they were."""
    model.eval()
    with torch.no_grad():
        order = model(baskets).argsort(1, descending=True)
    model.train()
    rank = (order == bought[:, None]).float().argmax(1)
    return float((rank < 20).float().mean()), float((1 / (rank + 2.0).log2()).mean())


# Trains


class Delays(nn.Module):
    """How late a train will be at its stops: those before it on the line are looked at."""

    def __init__(self, stations: int = 300, width: int = 64) -> None:
        super().__init__()
        self.station = nn.Embedding(stations, width)
        self.late = nn.Linear(3, width)
        self.others = nn.MultiheadAttention(width, 4, batch_first=True)
        self.along = nn.GRU(width, width, batch_first=True)
        self.minutes = nn.Linear(width, 1)

    def forward(self, line: Tensor) -> Tensor:
        stops, late = line[..., 0].long(), line[..., 1:]
        x = self.station(stops) + self.late(late)
        x = x + self.others(x, x, x, need_weights=False)[0]
        return self.minutes(self.along(x)[0])[..., 0]


def trains(count: int = 4096, stops: int = 30) -> TensorDataset:
    """Return lines with their stations and what was late there, and how late a train was."""
    stations = torch.randint(300, (count, stops, 1)).float()
    late = torch.randn(count, stops, 3)
    return TensorDataset(torch.cat([stations, late], 2), torch.randn(count, stops).exp())


# Football


class Passes(nn.Module):
    """To whom a ball is passed: what each of the players sees of the others, twice."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.pair = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))
        self.own = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))
        self.chosen = nn.Linear(width, 1)

    def forward(self, field: Tensor) -> Tensor:
        x = self.enter(field).relu()
        players = x.shape[1]
        for pair, own in zip(self.pair, self.own, strict=True):
            one = x[:, :, None].expand(-1, -1, players, -1)
            seen = pair(torch.cat([one, one.transpose(1, 2)], 3)).relu().mean(2)
            x = x + own(torch.cat([x, seen], 2)).relu()
        return self.chosen(x)[..., 0]


def moments_of_play(count: int = 8192) -> TensorDataset:
    """Return where 22 players are, how they move, their side and the ball; and who gets it."""
    return TensorDataset(torch.randn(count, 22, 6), torch.randint(22, (count,)))
