"""More models and data of the eighth round's runs, which ``programs8.py`` has."""

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Facts


class Rotations(nn.Module):
    """How true facts are: a relation turns what it is said of into what is said of it."""

    def __init__(self, things: int = 4000, relations: int = 40, width: int = 64) -> None:
        super().__init__()
        self.things = nn.Embedding(things, 2 * width)
        self.angles = nn.Embedding(relations, width)

    def forward(self, fact: Tensor) -> Tensor:
        first, relation, others = fact[:, :1], fact[:, 1:2], fact[:, 2:]
        turned = torch.view_as_complex(self.things(first).unflatten(2, (-1, 2)))
        turned = turned * torch.polar(torch.ones(()), self.angles(relation))
        away = turned - torch.view_as_complex(self.things(others).unflatten(2, (-1, 2)))
        return 9 - torch.view_as_real(away).square().sum(-1).add(1e-9).sqrt().sum(-1)


def facts(count: int = 16_384, false: int = 32) -> TensorDataset:
    """Return facts, each with what is false of the same thing behind it; the first is true."""
    fact = torch.randint(4000, (count, 3 + false))
    fact[:, 1] %= 40
    return TensorDataset(fact, torch.zeros(count, dtype=torch.long))


# Songs


class Covers(nn.Module):
    """Which song is played, as a direction, from the notes of each moment."""

    def __init__(self, channels: int = 48, size: int = 64) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(12, channels, 9, 2, 4),
            nn.SiLU(),
            nn.Conv1d(channels, channels, 9, 2, 4),
            nn.SiLU(),
            nn.AdaptiveAvgPool1d(4),
            nn.Flatten(),
            nn.Linear(4 * channels, size),
        )

    def forward(self, notes: Tensor) -> Tensor:
        return functional.normalize(self.layers(notes), dim=1)


class Bank:
    """Directions of songs that were heard before, the oldest of which makes way."""

    def __init__(self, count: int, size: int = 64) -> None:
        self.seen = functional.normalize(torch.randn(count, size), dim=1)
        self.songs, self.at = torch.randint(500, (count,)), 0

    def rebuilt(self, seen: Tensor, song: Tensor) -> None:
        """Put new ones behind the others in a bank made anew."""
        self.seen = torch.cat([self.seen, seen])[len(seen) :]
        self.songs = torch.cat([self.songs, song])[len(song) :]

    def written(self, seen: Tensor, song: Tensor) -> None:
        """Put new ones in the place of the oldest."""
        places = (self.at + torch.arange(len(seen))) % len(self.seen)
        self.seen[places], self.songs[places] = seen, song
        self.at += len(seen)

    def told_apart(self, seen: Tensor, song: Tensor, among: int = 1024) -> Tensor:
        """Return the loss of directions beside some of the bank's and their own."""
        chosen = torch.randint(len(self.seen), (among,))
        others = torch.cat([seen, self.seen[chosen]])
        same = (song[:, None] == torch.cat([song, self.songs[chosen]])).float()
        return -((10 * seen @ others.T).log_softmax(1) * same).sum(1).div(same.sum(1)).mean()


def songs(count: int = 4096, moments: int = 200) -> TensorDataset:
    """Return the notes of each moment, and which song it is."""
    return TensorDataset(torch.rand(count, 12, moments), torch.randint(500, (count,)))


# Keyboards


class Keyboard(nn.Module):
    """The next word on somebody's telephone."""

    def __init__(self, words: int = 6000, width: int = 96) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.reader = nn.LSTM(width, 2 * width, batch_first=True)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, text: Tensor) -> Tensor:
        return self.head(self.narrow(self.reader(self.words(text))[0][:, -1]))


def typed(count: int = 8192, length: int = 10, words: int = 6000) -> TensorDataset:
    """Return what was typed and the word after it."""
    return TensorDataset(torch.randint(words, (count, length)), torch.randint(words, (count,)))


# Faces


class Faces(nn.Module):
    """Who is seen, by a score for every identity."""

    def __init__(self, identities: int = 12_000, channels: int = 16, size: int = 512) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for into, out in itertools.pairwise([3, channels, 2 * channels, 2 * channels]):
            layers += [nn.Conv2d(into, out, 3, 2, 1), nn.PReLU(out)]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(98 * channels, size))
        self.identities = nn.Linear(size, identities, bias=False)

    def forward(self, face: Tensor) -> Tensor:
        return self.identities(functional.normalize(self.layers(face), dim=1) * 30)


def faces(count: int = 1024, identities: int = 12_000) -> TensorDataset:
    """Return faces and whose they are."""
    return TensorDataset(torch.rand(count, 3, 56, 56), torch.randint(identities, (count,)))


# Ways from door to door


class Routes(nn.Module):
    """Which door a van is to call at after each, all doors looked at together."""

    def __init__(self, width: int = 192, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(3, width)
        layer = nn.TransformerEncoderLayer(width, 6, 3 * width, 0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.before, self.after = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, doors: Tensor) -> Tensor:
        x = self.blocks(self.enter(doors))
        return (self.before(x) @ self.after(x).transpose(1, 2) / 16).tanh() * 10


def each_next(scores: Tensor, way: Tensor) -> Tensor:
    """Return the cross-entropy of each next place."""
    return functional.cross_entropy(scores.flatten(0, 1), way.flatten())


def vans(count: int = 2048, doors: int = 20) -> TensorDataset:
    """Return doors with what is to be brought, and the way between them."""
    ways = torch.stack([torch.randperm(doors) for _ in range(count)])
    return TensorDataset(torch.rand(count, doors, 3), ways)


# Words under pictures


class Captions(nn.Module):
    """The words under a picture, each from those before it and from the picture's parts."""

    def __init__(self, width: int = 96, words: int = 1000) -> None:
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(2 * width, words)
        self.reader = nn.GRU(width, width, batch_first=True)

    def forward(self, both: Tensor) -> Tensor:
        parts, text = both[:, :4608].unflatten(1, (48, 96)), both[:, 4608:].long()
        told, _ = self.reader(self.words(text))
        looked = functional.scaled_dot_product_attention(told, parts, parts)
        return self.head(torch.cat([told, looked], 2))


def captions(count: int = 512, length: int = 12, words: int = 1000) -> TensorDataset:
    """Return a picture's parts with the words under it behind them, and the next words."""
    text = torch.randint(words, (count, length + 1))
    both = torch.cat([torch.randn(count, 48 * 96), text[:, :-1].float()], 1)
    return TensorDataset(both, text[:, 1:].contiguous())


# What moves, and how far away it is


class Motion(nn.Module):
    """Where each point of a picture has gone in the next, from how alike they are."""

    def __init__(self, channels: int = 32, reach: int = 3) -> None:
        super().__init__()
        self.reach = reach
        self.seen = nn.Sequential(
            nn.Conv2d(1, channels, 5, 2, 2), nn.ReLU(), nn.Conv2d(channels, channels, 3, 2, 1)
        )
        self.moved = nn.Sequential(
            nn.Conv2d((2 * reach + 1) ** 2 + channels, channels, 3, 1, 1),
            nn.ReLU(),
            nn.Conv2d(channels, 2, 3, 1, 1),
        )

    def forward(self, both: Tensor) -> Tensor:
        first, second = (self.seen(each) for each in both.chunk(2, 1))
        height, width = first.shape[2:]
        around = functional.pad(second, 4 * [self.reach])
        alike = [
            (first * around[:, :, down : down + height, right : right + width]).mean(1)
            for down in range(2 * self.reach + 1)
            for right in range(2 * self.reach + 1)
        ]
        return self.moved(torch.cat([torch.stack(alike, 1), first], 1))


def moved(count: int = 256) -> TensorDataset:
    """Return two pictures each, and how far its points have gone."""
    return TensorDataset(torch.rand(count, 2, 96, 96), torch.randn(count, 2, 24, 24))


class Stereo(nn.Module):
    """How far apart two eyes see each point, from a volume of all distances."""

    def __init__(self, channels: int = 12, most: int = 10) -> None:
        super().__init__()
        self.most = most
        self.seen = nn.Sequential(
            nn.Conv2d(3, channels, 5, 2, 2), nn.ReLU(), nn.Conv2d(channels, channels, 3, 1, 1)
        )
        self.volume = nn.Sequential(
            nn.Conv3d(2 * channels, channels, 3, 1, 1),
            nn.ReLU(),
            nn.Conv3d(channels, 1, 3, 1, 1),
        )

    def forward(self, eyes: Tensor) -> Tensor:
        left, right = (self.seen(eye) for eye in eyes.chunk(2, 1))
        width = left.shape[3]
        both = [
            torch.cat([left, functional.pad(right, [apart, 0])[..., :width]], 1)
            for apart in range(self.most)
        ]
        likely = self.volume(torch.stack(both, 2))[:, 0].softmax(1)
        return (likely * torch.arange(self.most)[:, None, None]).sum(1)


def eyes(count: int = 256) -> TensorDataset:
    """Return what two eyes see, and how far apart."""
    return TensorDataset(torch.rand(count, 6, 48, 64), 10 * torch.rand(count, 24, 32))


# Brains and bytes


def brains(channels: int = 12, electrodes: int = 22) -> nn.Module:
    """Return a network that tells from electrodes which hand somebody thinks of."""
    return nn.Sequential(
        nn.Conv2d(1, channels, (1, 33), padding=(0, 16), bias=False),
        nn.BatchNorm2d(channels),
        nn.Conv2d(channels, 2 * channels, (electrodes, 1), groups=channels, bias=False),
        nn.BatchNorm2d(2 * channels),
        nn.ELU(),
        nn.AvgPool2d((1, 4)),
        nn.Conv2d(2 * channels, 2 * channels, (1, 15), padding=(0, 7), groups=2 * channels),
        nn.Conv2d(2 * channels, 2 * channels, 1),
        nn.ELU(),
        nn.AdaptiveAvgPool2d((1, 8)),
        nn.Flatten(),
        nn.Linear(16 * channels, 4),
    )


def thoughts(count: int = 1024, moments: int = 256) -> TensorDataset:
    """Return what 22 electrodes measured, and of which hand somebody thought."""
    return TensorDataset(torch.randn(count, 1, 22, moments), torch.randint(4, (count,)))


class Bytes(nn.Module):
    """Whether a program does harm, from its bytes, by wide convolutions with gates."""

    def __init__(self, channels: int = 64, window: int = 32) -> None:
        super().__init__()
        self.bytes = nn.Embedding(257, 8)
        self.said = nn.Conv1d(8, channels, window, window)
        self.gate = nn.Conv1d(8, channels, window, window)
        self.head = nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, 2))

    def forward(self, program: Tensor) -> Tensor:
        x = self.bytes(program).transpose(1, 2)
        return self.head((self.said(x) * self.gate(x).sigmoid()).amax(2))


def programs_read(count: int = 1024, length: int = 8192) -> TensorDataset:
    """Return the bytes of programs, and which do harm."""
    return TensorDataset(torch.randint(257, (count, length)), torch.randint(2, (count,)))


# Shapes, genes and answers


class Shapes(nn.Module):
    """How far places are from the surface of a shape."""

    def __init__(self, width: int = 192, shapes: int = 50) -> None:
        super().__init__()
        self.shapes = nn.Embedding(shapes, 61)
        self.first = nn.ModuleList(nn.Linear(width if at else 64, width) for at in range(4))
        self.second = nn.ModuleList(
            nn.Linear(width if at else width + 64, width) for at in range(4)
        )
        self.head = nn.Linear(width, 1)

    def forward(self, place: Tensor) -> Tensor:
        known = torch.cat([self.shapes(place[:, 0].long()), place[:, 1:]], 1)
        x = known
        for layer in self.first:
            x = layer(x).relu()
        x = torch.cat([x, known], 1)
        for layer in self.second:
            x = layer(x).relu()
        return self.head(x)[:, 0].tanh()


def surfaces(count: int = 16_384) -> TensorDataset:
    """Return a shape's number and a place beside it each, with how far it is."""
    shape = torch.randint(50, (count, 1)).float()
    return TensorDataset(torch.cat([shape, torch.randn(count, 3)], 1), torch.rand(count) - 0.5)


class Genes(nn.Module):
    """What a cell's genes do, by few hidden causes and counts that scatter more than by chance."""

    def __init__(self, genes: int = 2000, width: int = 128, causes: int = 10) -> None:
        super().__init__()
        self.inward = nn.Sequential(nn.Linear(genes, width), nn.ReLU(), nn.Linear(width, width))
        self.mean, self.spread = nn.Linear(width, causes), nn.Linear(width, causes)
        self.outward = nn.Sequential(nn.Linear(causes, width), nn.ReLU(), nn.Linear(width, genes))
        self.scatter = nn.Parameter(torch.zeros(genes))

    def forward(self, counts: Tensor) -> Tensor:
        hidden = self.inward(counts.log1p()).relu()
        mean, spread = self.mean(hidden), self.spread(hidden)
        cause = mean + torch.randn_like(mean) * (spread / 2).exp()
        share = self.outward(cause).softmax(1) * counts.sum(1, keepdim=True)
        sure = self.scatter.exp()
        likely = (
            torch.lgamma(counts + sure)
            - torch.lgamma(sure)
            + sure * (sure / (sure + share)).log()
            + counts * (share / (sure + share)).clamp(min=1e-8).log()
        )
        apart = (mean.square() + spread.exp() - 1 - spread).sum(1) / 2
        return apart - likely.sum(1)


def tissue(count: int = 4096, genes: int = 2000) -> TensorDataset:
    """Return how often each gene of a cell was met, with nothing to tell of it."""
    return TensorDataset(torch.poisson(torch.rand(count, genes) * 3), torch.zeros(count))


class Answers(nn.Module):
    """Where the answer of a question begins and ends in a passage, each seen from the other."""

    def __init__(self, width: int = 32, words: int = 4000, question: int = 12) -> None:
        super().__init__()
        self.question, self.words = question, nn.Embedding(words, width)
        self.reader = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.again = nn.GRU(8 * width, width, batch_first=True, bidirectional=True)
        self.ends = nn.Linear(2 * width, 2)

    def forward(self, both: Tensor) -> Tensor:
        read, _ = self.reader(self.words(both))
        asked, told = read[:, : self.question], read[:, self.question :]
        alike = told @ asked.transpose(1, 2) / 8
        looked = alike.softmax(2) @ asked
        most = alike.amax(2, keepdim=True).softmax(1).transpose(1, 2) @ told
        seen = torch.cat([told, looked, told * looked, told * most], 2)
        return self.ends(self.again(seen)[0])


def passages(count: int = 2048, length: int = 40, words: int = 4000) -> TensorDataset:
    """Return a question with a passage behind it each, and where the answer is."""
    return TensorDataset(
        torch.randint(words, (count, 12 + length)), torch.randint(length, (count, 2))
    )


# What is hidden, what is kept, what is coloured


class Hidden(nn.Module):
    """The hidden three quarters of a picture's pieces, from the others."""

    def __init__(self, width: int = 192, narrow: int = 96, pieces: int = 64) -> None:
        super().__init__()
        self.pieces = pieces
        self.enter, self.narrow = nn.Linear(192, width), nn.Linear(width, narrow)
        self.places = nn.Parameter(torch.randn(pieces, width) / 8)
        self.unseen = nn.Parameter(torch.randn(pieces, narrow) / 8)

        def blocks(size: int, depth: int) -> nn.Module:
            layer = nn.TransformerEncoderLayer(size, 6, 4 * size, 0.0, batch_first=True)
            return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

        self.inward, self.outward = blocks(width, 3), blocks(narrow, 1)
        self.head = nn.Linear(narrow, 192)

    def forward(self, picture: Tensor) -> Tensor:
        pieces = functional.pixel_unshuffle(picture, 8).flatten(2).transpose(1, 2)
        order = torch.randperm(self.pieces)
        seen, hidden = order[: self.pieces // 4], order[self.pieces // 4 :]
        known = self.narrow(self.inward(self.enter(pieces[:, seen]) + self.places[seen]))
        guess = self.unseen.expand(len(picture), -1, -1).index_copy(1, seen, known)
        told = self.head(self.outward(guess)[:, hidden])
        return (told - pieces[:, hidden]).square().mean((1, 2))


class Codebook(nn.Module):
    """Pictures as numbers of a book of 256 codes, and back."""

    def __init__(self, channels: int = 48, codes: int = 256) -> None:
        super().__init__()
        self.inward = nn.Sequential(
            nn.Conv2d(3, channels, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1),
        )
        self.outward = nn.Sequential(
            nn.Conv2d(channels, channels, 3, 1, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(channels, channels, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(channels, 3, 4, 2, 1),
        )
        self.codes = nn.Parameter(torch.randn(codes, channels) / 8)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.inward(picture).permute(0, 2, 3, 1)
        code = self.codes[torch.cdist(x.flatten(0, 2), self.codes).argmin(1)].view_as(x)
        found = self.outward((x + (code - x).detach()).permute(0, 3, 1, 2))
        away = (code - x.detach()).square().mean((1, 2, 3))
        away = away + (code.detach() - x).square().mean((1, 2, 3)) / 4
        return (found - picture).square().mean((1, 2, 3)) + away


def album(count: int = 1024, side: int = 64) -> TensorDataset:
    """Return pictures with nothing to tell of them."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.zeros(count))


class Splines(nn.Module):
    """How much a building will need, by layers of sums of learnt polynomials."""

    def __init__(self, width: int = 384, degree: int = 6) -> None:
        super().__init__()
        sizes = [24, width, width, 4]
        self.weights = nn.ParameterList(
            torch.randn(degree + 1, into, out) / (into * degree) ** 0.5
            for into, out in itertools.pairwise(sizes)
        )

    def forward(self, hours: Tensor) -> Tensor:
        x = hours
        for weight in self.weights:
            x = x.tanh()
            powers = [torch.ones_like(x), x]
            while len(powers) < len(weight):
                powers.append(2 * x * powers[-1] - powers[-2])
            x = torch.einsum("dbi,dio->bo", torch.stack(powers), weight)
        return x


def buildings(count: int = 65_536) -> TensorDataset:
    """Return what is known of an hour in a building, and what it needs then."""
    return TensorDataset(torch.randn(count, 24), torch.randn(count, 4))


def painter(channels: int = 32, colours: int = 64) -> nn.Module:
    """Return a network that says which of 64 colours each point of a grey picture has."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, 1, 1),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(2 * channels, 2 * channels, 3, 1, 2, dilation=2),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * channels, colours, 2, 2),
    )


def grey(count: int = 512, side: int = 48) -> TensorDataset:
    """Return grey pictures with each point's colour."""
    return TensorDataset(torch.rand(count, 1, side, side), torch.randint(64, (count, side, side)))
