"""Models and data of the tenth round's runs from poems to knees, which ``programs10b.py`` has."""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Poems


class Poem(nn.Module):
    """The next letter: blocks over letters, over every fourth of them, and over letters again."""

    def __init__(self, width: int = 96, letters: int = 72, length: int = 128) -> None:
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        self.first, self.last = self.block(width), self.block(width)
        self.shorter = nn.Linear(4 * width, 2 * width)
        self.middle = nn.ModuleList(self.block(2 * width) for _ in range(2))
        self.longer = nn.Linear(2 * width, 4 * width)
        self.head = nn.Linear(width, letters)

    @staticmethod
    def block(width: int) -> nn.TransformerEncoderLayer:
        """Return attention and two layers, each normed before."""
        return nn.TransformerEncoderLayer(
            width, 4, 3 * width, 0.0, functional.gelu, batch_first=True, norm_first=True
        )

    def forward(self, poem: Tensor) -> Tensor:
        count, length = poem.shape
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        fine = self.first(self.letters(poem) + self.place, mask, is_causal=True)
        seen = functional.pad(fine, (0, 0, 3, 0))[:, :length]  # none sees what comes after it
        coarse = self.shorter(seen.reshape(count, length // 4, -1))
        for block in self.middle:
            coarse = block(coarse, mask[: length // 4, : length // 4], is_causal=True)
        fine = fine + self.longer(coarse).view(count, length, -1)
        return self.head(self.last(fine, mask, is_causal=True))


def poems(count: int = 2048, length: int = 128) -> TensorDataset:
    """Return random letters, with the next of each."""
    written = torch.randint(72, (count, length + 1))
    return TensorDataset(written[:, :-1], written[:, 1:])


def each_letter(scores: Tensor, letters: Tensor) -> Tensor:
    """Return the cross-entropy of every letter."""
    return functional.cross_entropy(scores.flatten(0, 1), letters.flatten())


# Rides in a taxi


class Ride(nn.Module):
    """Where a ride will end: a mean of known places, weighed by how it began."""

    def __init__(self, width: int = 512, places: int = 1500) -> None:
        super().__init__()
        sizes = {"driver": 448, "client": 2000, "quarter": 96, "day": 7, "week": 52}
        self.tables = nn.ModuleDict({name: nn.Embedding(n, 10) for name, n in sizes.items()})
        self.deep = nn.Sequential(
            nn.Linear(20 + 50, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, places)
        self.register_buffer("places", torch.rand(places, 2))

    def forward(self, began: Tensor) -> Tensor:
        path, told = began[:, :20], began[:, 20:].long()
        found = [table(told[:, each]) for each, table in enumerate(self.tables.values())]
        weights = self.head(self.deep(torch.cat([path, *found], 1))).softmax(1)
        return weights @ self.places


def rides(count: int = 32768) -> TensorDataset:
    """Return random rides: ten points of the path, who, for whom and when, and the end."""
    told = [torch.randint(each, (count, 1)) for each in (448, 2000, 96, 7, 52)]
    began = torch.cat([torch.rand(count, 20), *(each.float() for each in told)], 1)
    return TensorDataset(began, torch.rand(count, 2))


def as_the_crow_flies(found: Tensor, wanted: Tensor) -> Tensor:
    """Return the mean way between places that are given as angles."""
    one, other = found.unbind(1), wanted.unbind(1)
    across = ((one[0] - other[0]) / 2).sin().square()
    along = one[0].cos() * other[0].cos() * ((one[1] - other[1]) / 2).sin().square()
    return 2 * (across + along).clamp(1e-9, 1).sqrt().asin().mean()


# Sudoku with crooked regions


class Crooked(nn.Module):
    """One block of attention over the cells, again and again; it answers after each time."""

    def __init__(self, width: int = 96, rounds: int = 5) -> None:
        super().__init__()
        self.digit, self.region = nn.Embedding(10, width), nn.Embedding(9, width)
        self.row, self.column = nn.Embedding(9, width), nn.Embedding(9, width)
        self.rounds = rounds
        self.asked, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(
            nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.head = nn.Linear(width, 9)

    def forward(self, grid: Tensor) -> Tensor:
        cells = torch.arange(81)
        x = self.digit(grid[:, 0]) + self.region(grid[:, 1])
        x = x + self.row(cells // 9) + self.column(cells % 9)
        answers = []
        for _ in range(self.rounds):
            parts = self.asked(self.before(x)).unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
            heard = functional.scaled_dot_product_attention(*parts.unbind(0))
            x = x + self.mixed(heard.transpose(1, 2).flatten(2))
            x = x + self.think(self.between(x))
            answers.append(self.head(x))
        return torch.stack(answers, 1)


def grids(count: int = 4096) -> TensorDataset:
    """Return random grids, digits (0 where none is given) and regions, with all digits."""
    told = torch.randint(10, (count, 81))
    regions = torch.stack([torch.randperm(81) % 9 for _ in range(count)])
    return TensorDataset(torch.stack([told, regions], 1), torch.randint(9, (count, 81)))


def after_each_round(scores: Tensor, digits: Tensor) -> Tensor:
    """Return the cross-entropy of every cell, after every round."""
    wanted = digits[:, None].expand(-1, scores.shape[1], -1)
    return functional.cross_entropy(scores.flatten(0, 2), wanted.flatten())


# Hives


class Hive(nn.Module):
    """Whether a hive has its queen, from its hum: its course in bands whose ends are learnt."""

    def __init__(self, bands: int = 48, width: int = 251) -> None:
        super().__init__()
        ends = torch.linspace(0.01, 0.4, bands + 1)
        self.low, self.wide = nn.Parameter(ends[:-1].clone()), nn.Parameter(ends.diff())
        self.register_buffer("times", torch.arange(width) - width // 2 + 0.0)
        self.register_buffer("window", torch.hamming_window(width, periodic=False))
        self.norm = nn.BatchNorm1d(bands)
        self.course = nn.Sequential(
            nn.Conv1d(bands, 96, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(96, 96, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(96, 96, 5, padding=4, dilation=2),
            nn.ReLU(),
        )
        self.head = nn.Linear(96, 2)

    def filters(self) -> Tensor:
        """Return a filter for each band, (bands, width)."""
        low = self.low.abs()
        high = low + self.wide.abs()
        ends = torch.stack([low, high])[..., None]
        waves = 2 * ends * torch.sinc(2 * ends * self.times)
        return (waves[1] - waves[0]) * self.window

    def forward(self, hum: Tensor) -> Tensor:
        moments = hum.unfold(1, len(self.times), 12)
        heard = (moments @ self.filters().T).mT
        loud = functional.avg_pool1d(heard.abs(), 3, 2)
        return self.head(self.course(self.norm((1 + 10 * loud).log())).mean(2))


def hums(count: int = 512, samples: int = 6000) -> TensorDataset:
    """Return random sounds of hives, with and without queens."""
    return TensorDataset(torch.randn(count, samples), torch.randint(2, (count,)))


# Milk


class Gated(nn.Module):
    """What two layers make of something, as far as their gate lets it pass."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, width), nn.ELU(), nn.Linear(width, 2 * width))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + functional.glu(self.layers(x), -1))


class Lactation(nn.Module):
    """How much milk a cow will give, from her last days: what matters of each day, weighed."""

    def __init__(self, width: int = 64, columns: int = 7, ahead: int = 14) -> None:
        super().__init__()
        self.ahead = ahead
        self.columns = nn.Parameter(torch.randn(columns, 2, width) / 8)
        self.each, self.joined = Gated(width), Gated(width)
        self.weights = nn.Linear(columns * width, columns)
        self.days = nn.Conv1d(width, width, 7, stride=2, groups=width)
        self.head = nn.Linear(width, 3 * ahead)

    def forward(self, days: Tensor) -> Tensor:
        seen = self.each(days[..., None] * self.columns[:, 0] + self.columns[:, 1])
        weights = self.weights(seen.flatten(2)).softmax(2)
        day = self.joined((weights[..., None] * seen).sum(2))
        return self.head(self.days(day.mT).amax(2)).unflatten(1, (3, self.ahead))


def lactations(count: int = 4096, days: int = 40, ahead: int = 14) -> TensorDataset:
    """Return random days of cows, with the yields of the days that come."""
    return TensorDataset(torch.randn(count, days, 7), 30 * torch.rand(count, ahead))


def quantiles(found: Tensor, wanted: Tensor) -> Tensor:
    """Return how far a tenth, a half and nine tenths of the yields are from the told ones."""
    missed = wanted[:, None] - found
    share = torch.tensor([0.1, 0.5, 0.9])[:, None]
    return torch.maximum(share * missed, (share - 1) * missed).mean()


# Coughs


class Cough(nn.Module):
    """What a cough is of; its spectra come from a convolution with waves, or from torch."""

    def __init__(self, written: bool, size: int = 2048, hop: int = 480, bands: int = 32) -> None:
        super().__init__()
        self.written, self.size, self.hop = written, size, hop
        self.register_buffer("window", torch.hann_window(size))
        angles = 2 * torch.pi / size * torch.arange(size // 2 + 1)[:, None] * torch.arange(size)
        waves = torch.cat([angles.cos(), -angles.sin()]) * self.window
        self.register_buffer("waves", waves[:, None])
        self.register_buffer("bands", torch.rand(bands, size // 2 + 1) / size)
        self.seen = nn.Sequential(
            nn.Conv2d(1, 8, (5, 3), (2, 2), (2, 1)),
            nn.BatchNorm2d(8),
            nn.Hardswish(),
            nn.Conv2d(8, 16, 3, 2, 1),
            nn.BatchNorm2d(16),
            nn.Hardswish(),
        )
        self.head = nn.Linear(16 * bands // 4, 5)

    def strength(self, sound: Tensor) -> Tensor:
        """Return how strong each tone is at each time, (sounds, tones, times)."""
        if self.written:
            found = functional.conv1d(sound[:, None], self.waves, stride=self.hop)
            real, imaginary = found.chunk(2, 1)
            return real.square() + imaginary.square()
        found = torch.stft(
            sound, self.size, self.hop, window=self.window, center=False, return_complex=True
        )
        return torch.view_as_real(found).square().sum(3)

    def forward(self, sound: Tensor) -> Tensor:
        bands = (self.bands @ self.strength(sound)).clamp(min=1e-6).log()
        return self.head(self.seen(bands[:, None]).mean(3).flatten(1))


def coughs(count: int = 512, samples: int = 22050) -> TensorDataset:
    """Return random sounds of half a second, with what they are of."""
    return TensorDataset(torch.randn(count, samples), torch.randint(5, (count,)))


# Queues


class Queue(nn.Module):
    """How long queues become: who comes and who is served, summed over the minutes of a day."""

    def __init__(self, written: bool, minutes: int = 720, width: int = 64, lanes: int = 8) -> None:
        super().__init__()
        self.written = written
        self.register_buffer("before", torch.ones(minutes, minutes).tril())
        self.hours = nn.Sequential(
            nn.Linear(10, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.comes, self.served = nn.Linear(width, width), nn.Linear(width, width)
        self.minutes = nn.Sequential(nn.Linear(2 * width, width), nn.GELU())
        self.lanes = nn.Linear(width, lanes)

    def until(self, flow: Tensor) -> Tensor:
        """Return the sums of (days, minutes, width) over all minutes before each."""
        return self.before @ flow if self.written else flow.cumsum(1)

    def forward(self, day: Tensor) -> Tensor:
        seen = self.hours(day)
        waiting = self.until(functional.softplus(self.comes(seen)))
        gone = self.until(functional.softplus(self.served(seen)))
        queue = functional.softplus(waiting - gone)
        return self.lanes(self.minutes(torch.cat([queue.log1p(), seen], 2)))


def queues(count: int = 512, minutes: int = 720) -> TensorDataset:
    """Return random days of an airport, with how long its queues were."""
    return TensorDataset(torch.randn(count, minutes, 10), torch.rand(count, minutes, 8))


# Proverbs


class Proverbs(nn.Module):
    """Which saying means the same in another language, by what their words mean on average."""

    def __init__(self, vectors: Tensor, width: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding.from_pretrained(vectors, freeze=False)
        self.weight = nn.Linear(vectors.shape[1], 1)
        self.meant = nn.Sequential(
            nn.Linear(vectors.shape[1], width), nn.Tanh(), nn.Linear(width, width)
        )

    def meaning(self, saying: Tensor) -> Tensor:
        """Return a direction for each saying."""
        words = self.words(saying)
        weights = self.weight(words).softmax(1)
        return functional.normalize(self.meant((weights * words).sum(1)), dim=1)

    def forward(self, pair: Tensor) -> Tensor:
        one, other = (self.meaning(saying) for saying in pair.unbind(1))
        return 20 * one @ other.T


def sayings(count: int = 8192, length: int = 16, words: int = 16384) -> TensorDataset:
    """Return random pairs of sayings."""
    return TensorDataset(torch.randint(words, (count, 2, length)), torch.zeros(count))


def its_own(alike: Tensor, _: Tensor) -> Tensor:
    """Return the cross-entropy of each saying's own pair among all of the batch."""
    own = torch.arange(len(alike))
    return (functional.cross_entropy(alike, own) + functional.cross_entropy(alike.T, own)) / 2
