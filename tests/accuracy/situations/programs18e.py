"""Models and data of the eighteenth round's runs 16 to 30, from pumps to mirrors: see
``programs18b.py``."""

import logging
import random
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, Sampler, TensorDataset

# Pumps


class Pump(nn.Module):
    """What is wrong with a pump, by how two of its bearings shake."""

    def __init__(self, width: int = 48, faults: int = 7) -> None:
        super().__init__()
        self.slow = nn.Conv1d(2, width, 16, stride=8, padding=4)
        self.mixed = nn.Conv1d(width, 2 * width, 5, padding=2)
        self.norm = nn.BatchNorm1d(2 * width)
        self.fault = nn.Linear(4 * width, faults)

    def forward(self, shaken: Tensor) -> Tensor:
        x = functional.relu(self.slow(shaken))
        x = functional.relu(self.norm(self.mixed(x)))
        return self.fault(torch.cat([x.mean(2), x.amax(2)], 1))


def bearings(count: int = 2400, moments: int = 512) -> TensorDataset:
    """Return random shaking of bearings, and what was wrong."""
    return TensorDataset(torch.randn(count, 2, moments), torch.randint(7, (count,)))


class Visit:
    """One visit of somebody who looks after pumps."""

    def __init__(self, pump: int, found: list[str]) -> None:
        self.pump, self.found = pump, found


def visits(count: int = 55_000) -> list[Visit]:
    """Return what was written down on visits."""
    chance, words = random.Random(18), ["leaks", "hums", "drips", "runs hot", "is well"]
    return [Visit(chance.randrange(400), chance.sample(words, 2)) for _ in range(count)]


def most_in_use() -> int:
    """Return the bytes of memory that the program had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


# Sailing


class Leg(nn.Module):
    """One leg of a race: what the wind does now, and what it did around then."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.around = nn.Conv1d(width, 2 * width, 5, padding=2)
        self.back = nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        value, gate = self.around(x).chunk(2, 1)
        return x + self.back(value * gate.sigmoid())


class Halves(torch.autograd.Function):
    """Some legs of which only the start is held; the way back is found by halves."""

    @staticmethod
    def forward(context: Any, boat: "Boat", begin: int, end: int, x: Tensor) -> Tensor:
        context.boat, context.begin, context.end = boat, begin, end
        context.save_for_backward(x)
        for number in range(begin, end):
            x = boat.legs[number](x)
        return x

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Any:  # type: ignore[override]
        boat, begin, end = context.boat, context.begin, context.end
        start = context.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            if end - begin == 1:
                there = boat.legs[begin](start)
            else:
                middle = (begin + end) // 2
                there = Halves.apply(boat, begin, middle, start)
                there = Halves.apply(boat, middle, end, there)
        torch.autograd.backward(there, slope)
        return None, None, None, start.grad


class Boat(nn.Module):
    """How fast a boat sails at each moment of a race, by winds, waves and how sails were set."""

    def __init__(self, held: bool, measured: int = 9, width: int = 24, legs: int = 16) -> None:
        super().__init__()
        self.held = held
        self.enter = nn.Conv1d(measured, width, 1)
        self.legs = nn.ModuleList(Leg(width) for _ in range(legs))
        self.fast = nn.Conv1d(width, 1, 1)

    def forward(self, race: Tensor) -> Tensor:
        x = self.enter(race)
        if self.held:
            for leg in self.legs:
                x = leg(x)
        else:
            x = Halves.apply(self, 0, len(self.legs), x)
        return self.fast(x)[:, 0]


def races(count: int = 700, moments: int = 80) -> TensorDataset:
    """Return random races, and how fast boats were."""
    return TensorDataset(torch.randn(count, 9, moments), torch.rand(count, moments))


# Necklaces


class Necklace(nn.Module):
    """Where in a room of vectors a part of a necklace is, by its beads."""

    def __init__(self, beads: int = 300, width: int = 64, room: int = 32) -> None:
        super().__init__()
        self.bead = nn.Embedding(beads, width)
        self.seen = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, 128))
        self.room = nn.Linear(128, room)

    def forward(self, strung: Tensor) -> Tensor:
        x = functional.gelu(self.seen(self.bead(strung))).mean(1)
        return functional.normalize(self.room(x), dim=1)


def necklaces(count: int = 2000, beads: int = 48) -> Tensor:
    """Return random necklaces."""
    return torch.randint(300, (count, beads))


def grouped(places: Tensor, groups: int = 16, rounds: int = 10) -> Tensor:
    """Return to which group each place belongs: to the one whose middle is nearest."""
    middles = places[:groups]
    near = torch.zeros(len(places), dtype=torch.long)
    for _ in range(rounds):
        near = torch.cdist(places, middles).argmin(1)
        member = functional.one_hot(near, groups).float()
        middles = (member.T @ places) / member.sum(0).clamp(min=1)[:, None]
    return near


def pure(groups: Tensor, makers: Tensor) -> float:
    """Return which share of necklaces is by the maker of whom most are in their group."""
    table = torch.zeros(int(groups.max()) + 1, int(makers.max()) + 1)
    table.index_put_((groups, makers), torch.ones(len(groups)), accumulate=True)
    return float(table.amax(1).sum()) / len(groups)


# Globes


class Globe(nn.Module):
    """In which decade a globe was made, by the map that is on it."""

    def __init__(self, width: int = 16, decades: int = 20) -> None:
        super().__init__()
        self.coasts = nn.Conv2d(3, width, 5, stride=2, padding=2)
        self.lands = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.borders = nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1)
        self.decade = nn.Linear(2 * width, decades)

    def forward(self, maps: Tensor) -> Tensor:
        x = functional.relu(self.coasts(maps))
        x = functional.relu(self.borders(functional.relu(self.lands(x))))
        return self.decade(x.mean((2, 3)))


def globes(count: int = 800) -> TensorDataset:
    """Return random maps on globes, and their decades."""
    return TensorDataset(torch.rand(count, 3, 24, 48), torch.randint(20, (count,)))


# Barometers


class Barometer(nn.Module):
    """What a barometer shows in the next hours, by what it and others showed before."""

    def __init__(self, before: int = 48, shown: int = 6, after: int = 24, width: int = 512) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(before * shown, width),
            nn.SiLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Dropout(0.2),
            nn.Linear(width, after),
        )

    def forward(self, shown: Tensor) -> Tensor:
        return self.layers(shown)


def weather(count: int = 4000) -> TensorDataset:
    """Return random hours of barometers, and the hours that followed."""
    return TensorDataset(torch.randn(count, 48, 6), torch.randn(count, 24))


# Stickers


class Sticker(nn.Module):
    """A sticker as a few numbers, and a sticker that is drawn by them."""

    def __init__(self, width: int = 24, numbers: int = 32) -> None:
        super().__init__()
        self.numbers = numbers
        self.look = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(2 * width * 36, 2 * numbers),
        )
        self.draw = nn.Sequential(
            nn.Linear(numbers, 2 * width * 36),
            nn.Unflatten(1, (2 * width, 6, 6)),
            nn.LeakyReLU(0.2),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.ConvTranspose2d(width, 3, 4, stride=2, padding=1),
        )

    def forward(self, sticker: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        middle, spread = self.look(sticker).chunk(2, 1)
        drawn = self.draw(middle + torch.randn_like(middle) * (spread / 2).exp())
        return drawn, middle, spread


def stickers(count: int = 1200, side: int = 24) -> Tensor:
    """Return random stickers."""
    return torch.rand(count, 3, side, side)


class Critic(nn.Module):
    """What a picture looks like; nothing of it is learnt here."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(3, width // 2, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(width // 2, width, 3, stride=2, padding=1),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        return self.look(pictures).mean((2, 3))


def unlike(some: Tensor, others: Tensor) -> float:
    """Return by how much two groups differ: in their middles, and in how they spread."""
    wide, wider = torch.cov(some.T).double(), torch.cov(others.T).double()
    both = torch.linalg.eigvals(wide @ wider).real.clamp(min=0).sqrt().sum()
    apart = (some.mean(0) - others.mean(0)).square().sum()
    return float(apart + wide.trace() + wider.trace() - 2 * both)


# Ciphers


class Cipher(nn.Module):
    """The plain letter for each letter of a cipher."""

    def __init__(self, letters: int = 26, width: int = 40) -> None:
        super().__init__()
        self.letter = nn.Embedding(letters, width)
        self.beside = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(2))
        self.plain = nn.Linear(width, letters)

    def forward(self, text: Tensor) -> Tensor:
        x = self.letter(text).mT
        for beside in self.beside:
            x = x + functional.relu(beside(x))
        return self.plain(x.mT)


def ciphers(count: int = 2400, length: int = 40) -> TensorDataset:
    """Return random ciphers, and what they say."""
    return TensorDataset(*(torch.randint(26, (count, length)) for _ in range(2)))


LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Desk:
    """Writes down how each letter was read."""

    def __init__(self, file: Path) -> None:
        self.book = logging.getLogger("ciphers")
        self.book.setLevel(logging.DEBUG)
        self.book.propagate = False
        handler = logging.FileHandler(file)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self.book.addHandler(handler)

    def write(self, step: int, text: Tensor, told: Tensor, plain: Tensor) -> None:
        """Write a line for each letter of each text."""
        sure, read = told.detach().softmax(2).max(2)
        rows = zip(text.tolist(), read.tolist(), sure.tolist(), plain.tolist(), strict=True)
        for number, row in enumerate(rows):
            for place, (shown, guess, how, meant) in enumerate(zip(*row, strict=True)):
                self.book.debug(
                    "step %d text %d place %d: %s read as %s (%.3f), is %s",
                    step,
                    number,
                    place,
                    LETTERS[shown],
                    LETTERS[guess],
                    how,
                    LETTERS[meant],
                )


# Marathons


class Marathon(nn.Module):
    """When a runner passes each of the marks, by how he trained in the weeks before."""

    def __init__(self, known: int = 16, weeks: int = 12, width: int = 128, marks: int = 42) -> None:
        super().__init__()
        self.week = nn.Linear(known, width)
        self.weeks = nn.Linear(weeks * width // 8, width)
        self.less = nn.Linear(width, width // 8)
        self.marks = nn.Linear(width, marks)

    def forward(self, trained: Tensor) -> Tensor:
        weeks = self.less(functional.softplus(self.week(trained)))
        return self.marks(functional.softplus(self.weeks(weeks.flatten(1)))).cumsum(1)


def runners(count: int = 3000) -> TensorDataset:
    """Return the numbers of runners, random weeks of theirs, and when they passed the marks."""
    passed = torch.rand(count, 42).cumsum(1)
    return TensorDataset(torch.arange(count), torch.randn(count, 12, 16), passed)


def missed(worst: dict[int, float], who: Tensor, told: Tensor, passed: Tensor) -> None:
    """Keep for each runner by how much the worst of his marks was missed so far."""
    for row in range(len(who)):
        runner = int(who[row])
        for mark in range(passed.shape[1]):
            off = abs(told[row, mark].item() - passed[row, mark].item())
            if off > worst.get(runner, 0.0):
                worst[runner] = off


# Prisms


class Prism(nn.Module):
    """Of which glass a prism is, by the colours of rays that came out of it."""

    def __init__(self, bands: int = 32, width: int = 128, glasses: int = 12) -> None:
        super().__init__()
        self.ray = nn.Linear(bands, width)
        self.wider = nn.Linear(width, 2 * width)
        self.last = nn.Linear(2 * width, 2 * width)
        self.glass = nn.Linear(2 * width, glasses)

    def forward(self, rays: Tensor) -> Tensor:
        x = functional.gelu(self.wider(functional.gelu(self.ray(rays))))
        return self.glass((x + functional.gelu(self.last(x))).mean(1))


def prisms(count: int = 480, rays: int = 256, bands: int = 32) -> TensorDataset:
    """Return random colours of rays, and the glasses."""
    return TensorDataset(torch.rand(count, rays, bands), torch.randint(12, (count,)))


# Hammers


class Hammer(nn.Module):
    """How worn the face of a hammer is, by a picture of it."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(4),
            nn.Flatten(),
            nn.Linear(2 * width * 36, 1),
        )

    def forward(self, face: Tensor) -> Tensor:
        return self.layers(face)[:, 0]


def faces(count: int = 400, side: int = 48) -> TensorDataset:
    """Return random pictures of hammers, and how worn they are."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.rand(count))


# Doors


class Door(nn.Module):
    """What kind of door it is, by the points that a scanner saw of it."""

    def __init__(self, width: int = 96, kinds: int = 10) -> None:
        super().__init__()
        self.point = nn.Linear(6, width)
        self.more = nn.Linear(width, 2 * width)
        self.most = nn.Linear(2 * width, 3 * width)
        self.kind = nn.Linear(3 * width, kinds)

    def forward(self, scan: Tensor) -> Tensor:
        x = functional.relu(self.more(functional.relu(self.point(scan))))
        return self.kind(functional.relu(self.most(x)).amax(1))


def scans(count: int = 480, points: int = 320) -> TensorDataset:
    """Return random points of doors, and the kinds of doors."""
    return TensorDataset(torch.randn(count, points, 6), torch.randint(10, (count,)))


# Fences


class Slat(nn.Module):
    """Pieces of a fence heed each other, and are then seen each by itself."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.then = nn.LayerNorm(width), nn.LayerNorm(width)
        self.three, self.one = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.three(self.before(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        heard = functional.scaled_dot_product_attention(*parts.unbind(0))
        x = x + self.one(heard.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.wide(self.then(x))))


class Fence(nn.Module):
    """Where a long fence needs mending: a picture of it in pieces, each of which is judged."""

    def __init__(self, pieces: int = 64, width: int = 128, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Linear(3 * 8 * 8, width)
        self.place = nn.Parameter(torch.randn(pieces, width) / 8)
        self.slats = nn.ModuleList(Slat(width, 4) for _ in range(depth))
        self.mend = nn.Linear(width, 1)

    def forward(self, fence: Tensor) -> Tensor:
        x = self.enter(fence) + self.place
        for slat in self.slats:
            x = slat(x)
        return self.mend(x)[..., 0]


def fences(count: int = 480, pieces: int = 64) -> TensorDataset:
    """Return random pieces of fences, and which of them need mending."""
    pictures = torch.rand(count, pieces, 3 * 8 * 8)
    return TensorDataset(pictures, (torch.rand(count, pieces) < 0.1).float())


# Tennis serves


class Serve(nn.Module):
    """Where a serve lands, by what a radar heard: moments are mixed, and then tones."""

    def __init__(self, moments: int = 96, tones: int = 64, depth: int = 3) -> None:
        super().__init__()
        self.moments = nn.ModuleList(self.mixer(moments, 3 * moments) for _ in range(depth))
        self.tones = nn.ModuleList(self.mixer(tones, 4 * tones) for _ in range(depth))
        self.lands = nn.Linear(tones, 2)

    def mixer(self, width: int, wide: int) -> nn.Module:
        """Return what mixes the last of the sizes."""
        return nn.Sequential(nn.Linear(width, wide), nn.SiLU(), nn.Linear(wide, width))

    def forward(self, x: Tensor) -> Tensor:
        for moments, tones in zip(self.moments, self.tones, strict=True):
            x = x + moments(x.mT).mT
            x = x + tones(x)
        return self.lands(x.mean(1))


def serves(count: int = 720, moments: int = 96, tones: int = 64) -> TensorDataset:
    """Return random echoes of serves, and where they landed."""
    return TensorDataset(torch.randn(count, moments, tones), torch.rand(count, 2))


# Helmets


class Helmet(nn.Module):
    """Which points of a picture of a building site are of helmets, seen ever further around."""

    def __init__(self, width: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 5, padding=2)
        self.around = nn.ModuleList(
            nn.Conv2d(width, width, 3, padding=2**each, dilation=2**each) for each in range(depth)
        )
        self.helmet = nn.Conv2d(width, 1, 1)

    def forward(self, site: Tensor) -> Tensor:
        x = functional.leaky_relu(self.enter(site), 0.1)
        for around in self.around:
            x = x + functional.leaky_relu(around(x), 0.1)
        return self.helmet(x)[:, 0]


def sites(count: int = 360, side: int = 44) -> TensorDataset:
    """Return random pictures of building sites, and where helmets are on them."""
    helmets = (torch.rand(count, side, side) > 0.9).float()
    return TensorDataset(torch.rand(count, 3, side, side), helmets)


# Mirrors


class Mirror(nn.Module):
    """How much a mirror is worth, by its picture; frames of a kind have a layer of their own."""

    def __init__(self, kinds: int = 10, width: int = 40) -> None:
        super().__init__()
        self.glass = nn.Conv2d(3, width, 4, stride=2, padding=1)
        self.carved = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.norms = nn.ModuleList(nn.GroupNorm(4, width) for _ in range(2))
        self.frames = nn.ModuleList(nn.Linear(width, 32) for _ in range(kinds))
        self.worth = nn.Linear(32, 1)

    def forward(self, picture: Tensor, kind: int) -> Tensor:
        x = self.glass(picture)
        for carved, norm in zip(self.carved, self.norms, strict=True):
            x = x + carved(functional.elu(norm(x)))
        return self.worth(functional.elu(self.frames[kind](x.mean((2, 3)))))[:, 0]


class Mirrors(Dataset[tuple[Tensor, int, Tensor]]):
    """Pictures of mirrors, of which kind their frames are, and what they are worth."""

    def __init__(self, count: int = 1500, kinds: int = 10) -> None:
        chance = random.Random(30)
        self.pictures, self.worth = torch.rand(count, 3, 32, 32), torch.rand(count)
        self.kinds = [chance.randrange(kinds) for _ in range(count)]

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, number: int) -> tuple[Tensor, int, Tensor]:
        return self.pictures[number], self.kinds[number], self.worth[number]


class Kinds(Sampler[list[int]]):
    """Batches of one kind each, out of so many mirrors at hand."""

    def __init__(self, kinds: list[int], at_hand: int, most: int = 32) -> None:
        self.kinds, self.at_hand, self.most = kinds, at_hand, most

    def __iter__(self) -> Iterator[list[int]]:
        order = random.sample(range(len(self.kinds)), len(self.kinds))
        for begin in range(0, len(order), self.at_hand):
            hand = sorted(order[begin : begin + self.at_hand], key=lambda each: self.kinds[each])
            batch: list[int] = []
            for each in hand:
                if batch and (len(batch) == self.most or self.kinds[each] != self.kinds[batch[0]]):
                    yield batch
                    batch = []
                batch.append(each)
            if batch:
                yield batch
