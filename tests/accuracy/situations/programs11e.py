"""Models and data of the eleventh round's runs from allergies to canopies (``programs11b.py``)."""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Allergies


class Allergies(nn.Module):
    """What a patient is allergic to: some questions are asked of all the codes in his file."""

    def __init__(self, codes: int = 1500, width: int = 64, asked: int = 8, to: int = 24) -> None:
        super().__init__()
        self.code = nn.Embedding(codes, width, padding_idx=0)
        self.since = nn.Linear(1, width)
        self.questions = nn.Parameter(torch.randn(1, asked, width) / 10)
        self.answers = nn.ModuleList(
            nn.MultiheadAttention(width, 4, batch_first=True) for _ in range(2)
        )
        self.within = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU())
            for _ in range(2)
        )
        self.back = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))
        self.person = nn.Linear(6, width)
        self.allergic = nn.Linear((asked + 1) * width, to)

    def forward(self, codes: Tensor, years: Tensor, person: Tensor) -> Tensor:
        file = self.code(codes) + self.since(years[..., None])
        asked = self.questions.expand(len(codes), -1, -1)
        for answer, within, back in zip(self.answers, self.within, self.back, strict=True):
            asked = asked + answer(asked, file, file, codes == 0, need_weights=False)[0]
            asked = asked + back(within(asked))
        return self.allergic(torch.cat([asked.flatten(1), self.person(person)], 1))


def patients(count: int = 6000, length: int = 48, to: int = 24) -> TensorDataset:
    """Return random files: codes (0 where none is left), years ago, the person, allergies."""
    codes = torch.randint(1, 1500, (count, length))
    codes[torch.arange(length) >= torch.randint(20, length + 1, (count, 1))] = 0
    years, person = 20 * torch.rand(count, length), torch.randn(count, 6)
    return TensorDataset(codes, years, person, (torch.rand(count, to) < 0.15).float())


def area(score: Tensor, is_so: Tensor) -> float:
    """Return the area under the curve of one allergy."""
    rank = torch.empty_like(score).scatter_(0, score.argsort(), torch.arange(len(score)) + 1.0)
    many, few = is_so.sum(), (1 - is_so).sum()
    return float((rank @ is_so - many * (many + 1) / 2) / (many * few))


# Recipes


class Recipe(nn.Module):
    """Writes a recipe word by word for what is in the kitchen, which it looks at each time."""

    def __init__(self, words: int = 1500, goods: int = 800, width: int = 96) -> None:
        super().__init__()
        self.goods, self.words = nn.Embedding(goods, width), nn.Embedding(words, width)
        self.kitchen = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.written = nn.LSTM(width, width, 2, batch_first=True)
        self.asked = nn.Linear(width, width, bias=False)
        self.next = nn.Sequential(nn.Linear(2 * width, width), nn.Tanh(), nn.Linear(width, words))

    def forward(
        self, goods: Tensor, words: Tensor, state: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        kitchen = self.kitchen(self.goods(goods))
        so_far, state = self.written(self.words(words), state)
        looked = (self.asked(so_far) @ kitchen.mT).softmax(2) @ kitchen
        return self.next(torch.cat([so_far, looked], 2)), state

    @torch.no_grad()
    def write(self, goods: Tensor, length: int, warmth: float = 0.8) -> Tensor:
        """Return the words of a recipe for each kitchen, drawn one after the other."""
        word, state, text = torch.ones(len(goods), 1, dtype=torch.long), None, []
        for _ in range(length):
            scores, state = self(goods, word, state)
            word = (scores[:, -1] / warmth).softmax(1).multinomial(1)
            text.append(word)
        return torch.cat(text, 1)


def recipes(count: int = 3000, goods: int = 12, length: int = 40) -> TensorDataset:
    """Return what random recipes take, and their words."""
    return TensorDataset(
        torch.randint(800, (count, goods)), torch.randint(2, 1500, (count, length + 1))
    )


# Catches of fish


class Scale(nn.Module):
    """What is to come at one scale of time, and what it explains of what was."""

    def __init__(self, every: int, past: int, ahead: int, width: int) -> None:
        super().__init__()
        self.every, self.past, self.ahead = every, past, ahead
        knots = past // every + max(ahead // every, 1)
        self.layers = nn.Sequential(
            nn.Linear(past // every, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, knots),
        )

    def forward(self, weeks: Tensor) -> tuple[Tensor, Tensor]:
        coarse = functional.max_pool1d(weeks[:, None], self.every)[:, 0]
        knots = self.layers(coarse)[:, None].split(
            [self.past // self.every, max(self.ahead // self.every, 1)], 2
        )
        was = functional.interpolate(knots[0], self.past, mode="linear")
        will = functional.interpolate(knots[1], self.ahead, mode="linear")
        return was[:, 0], will[:, 0]


class Catches(nn.Module):
    """How much is landed in the weeks to come: years, seasons and weeks, each of what is left."""

    def __init__(self, past: int = 208, ahead: int = 26, width: int = 256) -> None:
        super().__init__()
        self.scales = nn.ModuleList(
            Scale(every, past, ahead, width) for every in (26, 13, 8, 4, 2, 1)
        )

    def forward(self, weeks: Tensor) -> Tensor:
        level = weeks.mean(1, keepdim=True)
        rest, found = weeks - level, level
        for scale in self.scales:
            was, will = scale(rest)
            rest, found = rest - was, found + will
        return found


class Landings(Dataset[tuple[Tensor, Tensor]]):
    """Windows of what harbours landed, week by week."""

    def __init__(self, harbours: int, windows: int, past: int = 208, ahead: int = 26) -> None:
        self.landed = torch.randn(harbours, past + ahead + windows).cumsum(1)
        self.windows, self.past, self.ahead = windows, past, ahead

    def __len__(self) -> int:
        return len(self.landed) * self.windows

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        harbour, begin = divmod(index, self.windows)
        window = self.landed[harbour, begin : begin + self.past + self.ahead]
        return window[: self.past], window[self.past :]


# Eye movements


class Gaze(nn.Module):
    """Whether a reader understood a text, from where his eyes rested and how long."""

    def __init__(self, words: int = 2000, width: int = 48) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.moved = nn.Linear(5, width)
        self.spans = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 5, padding=2 * wide, dilation=wide) for wide in (1, 2, 4)
        )
        self.order = nn.GRU(width, width, batch_first=True)
        self.weight = nn.Linear(width, 1)
        self.understood = nn.Linear(width, 1)

    def forward(self, words: Tensor, moves: Tensor) -> Tensor:
        x = (self.word(words) + self.moved(moves)).mT
        for span in self.spans:
            x = x + functional.glu(span(x), 1)
        seen = self.order(x.mT)[0]
        return self.understood((self.weight(seen).softmax(1) * seen).sum(1))[:, 0]


def readings(count: int = 2400, rests: int = 32) -> TensorDataset:
    """Return random readings: the words looked at, how the eyes moved, whether it was got."""
    return TensorDataset(
        torch.randint(2000, (count, rests)),
        torch.randn(count, rests, 5),
        (torch.rand(count) < 0.6).float(),
    )


def readers(count: int, texts: int = 4) -> Iterator[list[tuple[Tensor, Tensor, float]]]:
    """Yield what each of some readers read; no two texts took as many rests of the eyes."""
    for reader in range(count):
        yield [
            (
                torch.randint(2000, (1, 24 + 6 * text + reader % 6)),
                torch.randn(1, 24 + 6 * text + reader % 6, 5),
                float(text % 2),
            )
            for text in range(texts)
        ]


# Springs


class Springs(nn.Module):
    """How masses on springs move: an energy of what they tell each other, and its slopes."""

    def __init__(self, width: int = 64, rounds: int = 2) -> None:
        super().__init__()
        self.mass = nn.Linear(4, width)
        self.pair = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(rounds))
        self.told = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.kept = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(rounds))
        self.energy = nn.Sequential(nn.Linear(width, width), nn.Softplus(), nn.Linear(width, 1))

    def forward(self, state: Tensor) -> Tensor:
        state = state.requires_grad_()
        masses = state.shape[1]
        x = functional.softplus(self.mass(state))
        for pair, told, kept in zip(self.pair, self.told, self.kept, strict=True):
            one = x[:, :, None].expand(-1, -1, masses, -1)
            both = torch.cat([one, one.transpose(1, 2)], 3)
            heard = told(functional.softplus(pair(both))).mean(2)
            x = x + functional.softplus(kept(torch.cat([x, heard], 2)))
        (slopes,) = torch.autograd.grad(self.energy(x).sum(), state, create_graph=True)
        place, speed = slopes.chunk(2, 2)
        return torch.cat([speed, -place], 2)


def springs(count: int = 8192, masses: int = 6) -> TensorDataset:
    """Return random places and speeds of masses, and how both change."""
    return TensorDataset(torch.randn(count, masses, 4), torch.randn(count, masses, 4))


# Anchors


class Anchors(nn.Module):
    """Where anchors lie in pictures of the sea floor: boxes of three shapes at each place."""

    def __init__(self, width: int = 16, shapes: int = 3) -> None:
        super().__init__()
        sizes = [1, width, 2 * width, 4 * width]
        self.seen = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(into, out, 3, stride=2, padding=1),
                    nn.GroupNorm(4, out),
                    nn.LeakyReLU(0.1),
                )
                for into, out in pairwise(sizes)
            )
        )
        self.boxes = nn.Conv2d(4 * width, 5 * shapes, 1)

    def forward(self, floor: Tensor) -> Tensor:
        found = self.boxes(self.seen(floor))
        return found.flatten(2).unflatten(1, (5, -1)).flatten(2).mT


def prior_boxes(side: int, shapes: tuple[float, ...] = (0.1, 0.2, 0.4)) -> Tensor:
    """Return the boxes that a network begins with, as corners."""
    at = (torch.arange(side) + 0.5) / side
    middle = torch.stack(torch.meshgrid(at, at, indexing="xy"), 2).flatten(0, 1)
    half = torch.tensor(shapes)[:, None, None] / 2
    return torch.cat([middle - half, middle + half], 2).flatten(0, 1)


def overlap(one: Tensor, other: Tensor) -> Tensor:
    """Return how much each box of one overlaps each of the other."""
    first, last = (
        torch.maximum(one[:, None, :2], other[:, :2]),
        torch.minimum(one[:, None, 2:], other[:, 2:]),
    )
    both = (last - first).clamp(min=0).prod(2)
    areas = [(each[:, 2:] - each[:, :2]).prod(1) for each in (one, other)]
    return both / (areas[0][:, None] + areas[1] - both)


def matched(found: Tensor, there: Tensor, prior: Tensor) -> Tensor:
    """Return the loss of one picture: which prior boxes hold an anchor, and where it is."""
    best, which = overlap(prior, there).max(1)
    holds = best > 0.35
    holds[overlap(prior, there).argmax(0)] = True
    loss = functional.binary_cross_entropy_with_logits(found[:, 0], holds.float())
    apart = there[which][holds] - prior[holds]
    return loss + functional.smooth_l1_loss(found[holds, 1:], apart)


def sea_floors(count: int = 512, side: int = 96) -> TensorDataset:
    """Return random pictures of the sea floor, and four boxes in each."""
    corner = 0.7 * torch.rand(count, 4, 2)
    boxes = torch.cat([corner, corner + 0.05 + 0.25 * torch.rand(count, 4, 2)], 2)
    return TensorDataset(torch.rand(count, 1, side, side), boxes)
