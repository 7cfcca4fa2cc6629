"""The models and data of those runs of the ninth round that ``programs9b.py`` has."""

import pickle
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import TensorDataset

# Soils and features


def soil(inputs: int = 1050, width: int = 512) -> nn.Module:
    """Return a network that says from what light a soil throws back what it holds."""
    return nn.Sequential(
        nn.Unflatten(1, (1, inputs)),
        nn.Conv1d(1, 8, 21, 3),
        nn.Mish(),
        nn.Flatten(),
        nn.Linear(8 * 344, width),
        nn.Mish(),
        nn.Linear(width, width),
        nn.Mish(),
        nn.Linear(width, 9),
    )


def soils(dtype: torch.dtype, count: int = 4096, inputs: int = 1050) -> TensorDataset:
    """Return spectra of soils and nine things that they hold."""
    return TensorDataset(torch.rand(count, inputs).to(dtype), torch.rand(count, 9).to(dtype))


class Features(nn.Module):
    """What another model thinks, by the few of many features that answer most."""

    def __init__(self, by_sorting: bool, width: int = 192, count: int = 3072, few: int = 24):
        super().__init__()
        self.by_sorting, self.few = by_sorting, few
        self.inward, self.outward = nn.Linear(width, count), nn.Linear(count, width)

    def forward(self, thought: Tensor) -> Tensor:
        answers = self.inward(thought - self.outward.bias).relu()
        if self.by_sorting:
            ranked, places = answers.sort(dim=1, descending=True)
            most, where = ranked[:, : self.few], places[:, : self.few]
        else:
            most, where = answers.topk(self.few, 1)
        kept = torch.zeros_like(answers).scatter(1, where, most)
        return (self.outward(kept) - thought).square().mean(1)


def thoughts(count: int = 16_384, width: int = 192) -> TensorDataset:
    """Return what a model had in its middle, with nothing to tell of it."""
    return TensorDataset(torch.randn(count, width), torch.zeros(count))


# Visits


class Visits(nn.Module):
    """What was found at hidden visits to a doctor, from the others; 0 stands for hidden."""

    def __init__(self, everywhere: bool, codes: int = 3000, width: int = 96, depth: int = 2):
        super().__init__()
        self.everywhere = everywhere
        self.codes, self.head = nn.Embedding(codes, width), nn.Linear(width, codes)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

    def forward(self, seen: Tensor) -> Tensor:
        x = self.blocks(self.codes(seen))
        return self.head(x.flatten(0, 1) if self.everywhere else x[seen == 0])


def of_all(scores: Tensor, found: Tensor) -> Tensor:
    """Return the loss of scores for all places, of which only the hidden ones count."""
    return functional.cross_entropy(scores, found.flatten(), ignore_index=-100)


def of_hidden(scores: Tensor, found: Tensor) -> Tensor:
    """Return the loss of scores for the hidden places alone."""
    return functional.cross_entropy(scores, found[found != -100])


def visits(count: int = 4096, length: int = 48, codes: int = 3000) -> TensorDataset:
    """Return visits with an eighth of them hidden, and what was found at those."""
    found = torch.randint(1, codes, (count, length))
    hidden = torch.rand(count, length) < 0.125
    hidden[:, 0] = True
    return TensorDataset(found.masked_fill(hidden, 0), found.masked_fill(~hidden, -100))


# Corals


class Reef(nn.Module):
    """One block: what is beside each point, then what each point is; added to what was."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.beside = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.wide, self.narrow = (
            nn.Linear(channels, 4 * channels),
            nn.Linear(4 * channels, channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.beside(x).permute(0, 2, 3, 1))
        y = self.narrow(functional.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


class Stage(nn.Module):
    """Some blocks, each of which may be recomputed."""

    def __init__(self, channels: int, again: bool, depth: int = 2) -> None:
        super().__init__()
        self.again = again
        self.blocks = nn.ModuleList(Reef(channels) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return x


class Corals(nn.Module):
    """Which corals a picture of the sea's ground shows; its stages may be recomputed too."""

    def __init__(self, again: bool, channels: int = 48) -> None:
        super().__init__()
        self.again = again
        self.enter = nn.Conv2d(3, channels, 4, 4)
        self.stages = nn.ModuleList(Stage(channels, again) for _ in range(2))
        self.head = nn.Linear(channels, 20)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.enter(picture)
        for stage in self.stages:
            x = checkpoint(stage, x, use_reentrant=False) if self.again else stage(x)
        return self.head(x.mean((2, 3)))


def reefs(count: int = 512, side: int = 64) -> TensorDataset:
    """Return pictures of the sea's ground and their corals."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(20, (count,)))


# Tides


class Tides(nn.Module):
    """The next levels of gauges, each of which goes on from where it was left."""

    def __init__(self, path: Path | None, gauges: int = 300, width: int = 128) -> None:
        super().__init__()
        self.reader = nn.GRU(6, width, 2, batch_first=True)
        self.head, self.path = nn.Linear(width, 1), path
        self.states = {f"gauge-{number:05d}": torch.zeros(2, width) for number in range(gauges)}
        if path:
            path.write_bytes(pickle.dumps(self.states))

    def forward(self, seen: Tensor) -> Tensor:
        names = [f"gauge-{number:05d}" for number in seen[:, 0, 0].int().tolist()]
        states = pickle.loads(self.path.read_bytes()) if self.path else self.states
        told, left = self.reader(seen[..., 1:], torch.stack([states[name] for name in names], 1))
        states |= zip(names, left.detach().clone().unbind(1), strict=True)
        if self.path:
            self.path.write_bytes(pickle.dumps(states))
        return self.head(told)[..., 0]


def gauges(count: int = 4096, hours: int = 24) -> TensorDataset:
    """Return a gauge's number with what it measured in a day, and the next levels."""
    number = torch.randint(300, (count, 1, 1)).expand(-1, hours, 1).float()
    return TensorDataset(
        torch.cat([number, torch.randn(count, hours, 6)], 2), torch.randn(count, hours)
    )


# Moods


class Moods(nn.Module):
    """How somebody feels, from the voice, the face and the words."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.voice = nn.GRU(40, width, batch_first=True)
        self.face = nn.Sequential(
            nn.Conv2d(1, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten()
        )
        self.seen, self.said = nn.Linear(32 * 64, width), nn.EmbeddingBag(5000, width)
        self.head = nn.Sequential(nn.Linear(3 * width, width), nn.ReLU(), nn.Linear(width, 7))

    def forward(self, moment: Tensor) -> Tensor:
        voice, face, words = moment.split((2000, 1600, 20), 1)
        heard = self.voice(voice.unflatten(1, (50, 40)))[0][:, -1]
        seen = self.seen(self.face(face.unflatten(1, (1, 40, 40))))
        return self.head(torch.cat([heard, seen, self.said(words.long())], 1))


def moments(count: int = 2048) -> TensorDataset:
    """Return voice, face and words behind each other, and how somebody feels."""
    words = torch.randint(5000, (count, 20)).float()
    return TensorDataset(
        torch.cat([torch.randn(count, 3600), words], 1), torch.randint(7, (count,))
    )


# Floods


class Floods(nn.Module):
    """How high water stands at each place, hour after hour, from the hour before."""

    def __init__(self, grown: bool, hours: int = 120) -> None:
        super().__init__()
        self.grown, self.hours = grown, hours
        self.flow = nn.Conv2d(2, 1, 3, padding=1)

    def forward(self, ground: Tensor) -> Tensor:
        land, levels = ground[:, :1], ground[:, 1:]
        if self.grown:
            for _ in range(self.hours):
                water = levels[:, -1:]
                levels = torch.cat(
                    [levels, water + self.flow(torch.cat([land, water], 1)).tanh()], 1
                )
            return levels
        kept = [levels]
        for _ in range(self.hours):
            kept.append(kept[-1] + self.flow(torch.cat([land, kept[-1]], 1)).tanh())
        return torch.cat(kept, 1)


def rains(count: int = 64, hours: int = 120, side: int = 40) -> TensorDataset:
    """Return land with the water on it, and the levels of the hours after."""
    return TensorDataset(torch.rand(count, 2, side, side), torch.rand(count, hours + 1, side, side))


# Pupils, fields and lines of a log: on two ranks


class Pupils(nn.Module):
    """Whether a pupil will answer each question rightly, from those answered before."""

    def __init__(self, questions: int = 2000, width: int = 160, depth: int = 3) -> None:
        super().__init__()
        self.answered, self.asked = (
            nn.Embedding(2 * questions, width),
            nn.Embedding(questions, width),
        )
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head, self.questions = nn.Linear(2 * width, 1), questions

    def forward(self, lesson: Tensor) -> Tensor:
        x = self.blocks(self.answered(lesson))
        asked = self.asked(lesson[:, 1:] % self.questions)
        return self.head(torch.cat([x[:, :-1], asked], 2))[..., 0]


def lessons(count: int = 2048, length: int = 25) -> TensorDataset:
    """Return questions with how they were answered, and whether the next ones are rightly."""
    answered = torch.randint(4000, (count, length))
    return TensorDataset(answered, (answered[:, 1:] >= 2000).float())


class Whole(torch.autograd.Function):
    """A weight of which every rank keeps its part, put together for as long as it is needed."""

    @staticmethod
    def forward(_context: object, part: Tensor) -> Tensor:
        parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, part.detach())
        return torch.cat(parts)

    @staticmethod
    def backward(_context: object, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient.chunk(dist.get_world_size())[dist.get_rank()] / dist.get_world_size()


class Layer(nn.Module):
    """A layer whose weight is kept in parts, one on each rank."""

    def __init__(self, into: int, out: int, ranks: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out // ranks, into) / into**0.5)
        self.bias, self.ranks = nn.Parameter(torch.zeros(out)), ranks

    def forward(self, x: Tensor) -> Tensor:
        weight = Whole.apply(self.weight) if self.ranks > 1 else self.weight
        return functional.linear(x, weight, self.bias)


class Yields(nn.Module):
    """How much a field will bear, from what satellites saw of it in a year."""

    def __init__(self, ranks: int, inputs: int = 360, width: int = 640, depth: int = 4) -> None:
        super().__init__()
        self.enter, self.head = nn.Linear(inputs, width), nn.Linear(width, 1)
        self.layers = nn.ModuleList(Layer(width, width, ranks) for _ in range(depth))

    def forward(self, year: Tensor) -> Tensor:
        x = self.enter(year).relu()
        for layer in self.layers:
            x = x + layer(x).relu()
        return self.head(x)[:, 0]


def fields(count: int = 8192) -> TensorDataset:
    """Return what was seen of fields on 36 days in ten colours, and what they bore."""
    return TensorDataset(torch.rand(count, 360), torch.rand(count))


class Passed(torch.autograd.Function):
    """What the other rank has, for what this one has; the gradients go back likewise."""

    @staticmethod
    def forward(_context: object, mine: Tensor) -> Tensor:
        return exchanged(mine)

    @staticmethod
    def backward(_context: object, gradient: Tensor) -> Tensor:
        return exchanged(gradient)


def exchanged(mine: Tensor) -> Tensor:
    """Send something to the other rank, and return what that one sends."""
    mine, other = mine.detach().contiguous(), 1 - dist.get_rank()
    theirs = torch.empty_like(mine)
    for work in (dist.isend(mine, other), dist.irecv(theirs, other)):
        assert work is not None
        work.wait()
    return theirs


class Looking(nn.Module):
    """Attention over lines that lie on two ranks: keys and values are passed on."""

    def __init__(self, width: int, ranks: bool, heads: int = 4) -> None:
        super().__init__()
        self.ranks, self.heads = ranks, heads
        self.enter, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.enter(self.norm(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, both = parts[0], parts[1:]
        if self.ranks:
            both = torch.cat([both, Passed.apply(both)], 3)
        mixed = functional.scaled_dot_product_attention(query, both[0], both[1])
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.silu(self.wide(self.after(x))))


class Log(nn.Module):
    """Which lines of a server's log are out of the ordinary."""

    def __init__(self, ranks: bool, kinds: int = 800, width: int = 128, depth: int = 4) -> None:
        super().__init__()
        self.kinds, self.head = nn.Embedding(kinds, width), nn.Linear(width, 1)
        self.blocks = nn.Sequential(*(Looking(width, ranks) for _ in range(depth)))

    def forward(self, lines: Tensor) -> Tensor:
        return self.head(self.blocks(self.kinds(lines)))[..., 0]


def logs(count: int = 1024, length: int = 96, kinds: int = 800) -> TensorDataset:
    """Return the kinds of lines that follow each other, and which are out of the ordinary."""
    return TensorDataset(
        torch.randint(kinds, (count, length)), (torch.rand(count, length) < 0.02).float()
    )


# Pollen, bearings and stars


def pollen(channels: int = 24) -> nn.Module:
    """Return a network that says from which plant a grain of pollen is."""
    blocks: list[nn.Module] = [nn.Conv2d(3, channels, 3, 2, 1), nn.Hardswish()]
    for _ in range(3):
        blocks += [
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
            nn.BatchNorm2d(channels),
            nn.Conv2d(channels, 2 * channels, 1),
            nn.Hardswish(),
            nn.AvgPool2d(2),
        ]
        channels *= 2
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 30))


def grains(count: int = 512, side: int = 64) -> TensorDataset:
    """Return pictures of grains and their plants."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(30, (count,)))


class Bearings(nn.Module):
    """What is worn of a machine, from how it shakes, by the strengths of its tones."""

    def __init__(self, tones: int = 128, width: int = 192) -> None:
        super().__init__()
        self.window = nn.Parameter(torch.hann_window(2 * tones), requires_grad=False)
        self.layers = nn.Sequential(
            nn.Conv1d(tones + 1, width, 3, padding=1),
            nn.ELU(),
            nn.Conv1d(width, width, 3, padding=1),
            nn.ELU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
            nn.Linear(width, 10),
        )

    def forward(self, shaken: Tensor) -> Tensor:
        size = len(self.window)
        tones = torch.stft(shaken, size, size // 2, window=self.window, return_complex=True)
        return self.layers(tones.abs().log1p())


def machines(count: int = 1024, length: int = 8192) -> TensorDataset:
    """Return how machines shook, and what is worn."""
    return TensorDataset(torch.randn(count, length), torch.randint(10, (count,)))


class Transits(nn.Module):
    """Whether a planet went before a star, from how bright it was."""

    def __init__(self, width: int = 96, piece: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, piece, piece)
        layer = nn.TransformerEncoderLayer(width, 4, 3 * width, 0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, bright: Tensor) -> Tensor:
        return self.head(self.blocks(self.enter(bright[:, None]).transpose(1, 2)).mean(1))


def stars(count: int = 2048, length: int = 1024) -> TensorDataset:
    """Return how bright stars were, and which have a planet."""
    return TensorDataset(torch.randn(count, length), torch.randint(2, (count,)))
