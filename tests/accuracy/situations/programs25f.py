"""Models and data of the twenty-fifth round's last runs, from vises to ferrules: see
``programs25c.py``."""

import os
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Sampler, TensorDataset

# Vises


class Vise(nn.Module):
    """How firmly a vise holds after each turn of its handle, by how each turn felt."""

    def __init__(self, by_turns: bool, told: int = 12, width: int = 56) -> None:
        super().__init__()
        self.by_turns = by_turns
        self.turn = nn.Linear(told, width)
        self.jaw = nn.Linear(width, width)
        self.firm = nn.Linear(width, 1)

    def forward(self, felt: Tensor) -> Tensor:
        closed = self.one_by_one(felt) if self.by_turns else self.all_at_once(felt)
        return self.firm(functional.silu(self.jaw(closed)))[..., 0]

    def one_by_one(self, felt: Tensor) -> Tensor:
        """Return how far the jaws are after each turn, which is added to those before it."""
        closed, after = felt.new_zeros(len(felt), self.turn.out_features), []
        for each in felt.unbind(1):
            closed = closed + torch.tanh(self.turn(each)) / 16
            after.append(closed)
        return torch.stack(after, 1)

    def all_at_once(self, felt: Tensor) -> Tensor:
        """Return how far the jaws are after each turn, from one sum along all turns."""
        return (torch.tanh(self.turn(felt)) / 16).cumsum(1)


def vises(count: int = 700, turns: int = 160, told: int = 12) -> TensorDataset:
    """Return how each turn of random vises felt, and how firmly these held after it."""
    return TensorDataset(torch.randn(count, turns, told), torch.rand(count, turns))


# Wallets


class Wallet(nn.Module):
    """What somebody buys next, by what is in each pocket of the wallet."""

    def __init__(
        self, by_pockets: bool, pockets: int = 48, things: int = 30, width: int = 12
    ) -> None:
        super().__init__()
        self.by_pockets = by_pockets
        if by_pockets:
            self.things = nn.ModuleList(nn.Embedding(things, width) for _ in range(pockets))
            self.worn = nn.ModuleList(nn.LayerNorm(width) for _ in range(pockets))
        else:
            self.first = nn.Buffer(torch.arange(pockets) * things)
            self.all_things = nn.Embedding(pockets * things, width)
            self.scale = nn.Parameter(torch.ones(pockets, width))
            self.shift = nn.Parameter(torch.zeros(pockets, width))
        self.whole = nn.Sequential(nn.Linear(pockets * width, 600), nn.ReLU(), nn.Dropout(0.1))
        self.buys = nn.Sequential(nn.Linear(600, 600), nn.ReLU(), nn.Linear(600, 40))

    def forward(self, wallet: Tensor) -> Tensor:
        x = self.one_by_one(wallet) if self.by_pockets else self.all_at_once(wallet)
        return self.buys(self.whole(x))

    def one_by_one(self, wallet: Tensor) -> Tensor:
        """Return what the pockets tell, each looked up in a table of its own."""
        pockets = zip(self.things, self.worn, wallet.unbind(1), strict=True)
        return torch.cat([worn(things(inside)) for things, worn, inside in pockets], 1)

    def all_at_once(self, wallet: Tensor) -> Tensor:
        """Return what the pockets tell, looked up in one table of all of them."""
        x = self.all_things(wallet + self.first)
        return (functional.layer_norm(x, x.shape[2:]) * self.scale + self.shift).flatten(1)


def wallets(count: int = 4000, pockets: int = 48, things: int = 30) -> TensorDataset:
    """Return what is in the pockets of random wallets, and what their owners buy next."""
    return TensorDataset(torch.randint(things, (count, pockets)), torch.randint(40, (count,)))


# Pinwheels


class Pinwheel(nn.Module):
    """How hard the wind blows, by how a pinwheel turned in the last moments."""

    def __init__(self, moments: int = 1280, width: int = 2048) -> None:
        super().__init__()
        self.turned = nn.Linear(moments, width)
        self.wind = nn.Linear(width, 5)

    def forward(self, turned: Tensor) -> Tensor:
        return self.wind(functional.relu(self.turned(turned)))


def pinwheels(count: int = 2400, moments: int = 1280) -> TensorDataset:
    """Return how random pinwheels turned, and the wind at five heights."""
    return TensorDataset(torch.randn(count, moments), torch.rand(count, 5))


def bound(rank: int, of: int) -> None:
    """Keep one of several ranks on its slice of the cores."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(cores[rank::of]))


# Dartboards


class Dartboard(nn.Module):
    """Who throws, by where the darts of some turns stuck in the board."""

    def __init__(self, width: int = 72, throwers: int = 24) -> None:
        super().__init__()
        self.where = nn.Linear(2, width // 2)
        self.dart = nn.Linear(width, 2 * width)
        self.turn = nn.Linear(6 * width, 192)
        self.who = nn.Linear(2 * 192, throwers)

    def forward(self, darts: Tensor) -> Tensor:
        angles = self.where(darts)
        x = functional.elu(self.dart(torch.cat([angles.sin(), angles.cos()], -1)))
        turns = functional.elu(self.turn(x.flatten(2)))
        return self.who(torch.cat([turns.mean(1), turns.std(1)], 1))


def dartboards(count: int = 1500, turns: int = 20) -> TensorDataset:
    """Return where the three darts of each turn stuck, and who threw them."""
    return TensorDataset(torch.randn(count, turns, 3, 2), torch.randint(24, (count,)))


# Handrails


class Handrail(nn.Module):
    """How steady somebody goes, by the grip of a hand along a handrail."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.grip = nn.Conv2d(1, width, (4, 5), padding=(0, 2))
        self.along = nn.Conv1d(width, width, 9, padding=4)
        self.heard = nn.MultiheadAttention(width, 2, batch_first=True)
        self.steady = nn.Linear(width, 1)

    def forward(self, grip: Tensor) -> Tensor:
        x = functional.hardswish(self.grip(grip[:, None])[:, :, 0])
        x = functional.hardswish(self.along(x)).transpose(1, 2)
        x = x + self.heard(x, x, x, need_weights=False)[0]
        return self.steady(x.amax(1))[:, 0]


def handrails(count: int = 900, moments: int = 96) -> TensorDataset:
    """Return the grip of four fingers along random handrails, and how steady it was."""
    return TensorDataset(torch.rand(count, 4, moments), torch.rand(count))


# Ratchets


class Ratchet(nn.Module):
    """Which tooth of a ratchet is worn, by the sound of its clicks, from both ends."""

    def __init__(self, tones: int = 24, width: int = 64, teeth: int = 36) -> None:
        super().__init__()
        self.clicks = nn.LSTM(tones, width, batch_first=True, bidirectional=True)
        self.tooth = nn.Linear(2 * width, teeth)

    def forward(self, sound: Tensor) -> Tensor:
        return self.tooth(self.clicks(sound)[0].mean(1))


def ratchets(count: int = 900, clicks: int = 24, tones: int = 24) -> TensorDataset:
    """Return the sound of random ratchets, and their worn teeth."""
    return TensorDataset(torch.randn(count, clicks, tones), torch.randint(36, (count,)))


# Flints


class Flint(nn.Module):
    """How old a flint is, by the scars on it: each is a point with a direction and a size."""

    def __init__(self, told: int = 7, width: int = 112) -> None:
        super().__init__()
        self.scar = nn.Sequential(nn.Linear(told, width), nn.PReLU(), nn.Linear(width, width))
        self.struck = nn.Sequential(nn.Linear(2 * width, width), nn.PReLU())
        self.old = nn.Linear(width, 3)

    def forward(self, scars: Tensor) -> Tensor:
        x = self.scar(scars)
        beside = x.mean(1, keepdim=True).expand_as(x)
        return self.old(self.struck(torch.cat([x, beside], 2)).amax(1))


def flints(count: int = 1200, scars: int = 50, told: int = 7) -> TensorDataset:
    """Return the scars of random flints, and how old three finders thought them."""
    return TensorDataset(torch.randn(count, scars, told), torch.rand(count, 3))


# Quoits


class Quoit(nn.Module):
    """Where a quoit comes down, by how it left the hand and what its thrower did before."""

    def __init__(self, told: int = 200, width: int = 768, fields: int = 49) -> None:
        super().__init__()
        self.thrown = nn.Linear(told, width)
        self.flight = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.field = nn.Linear(width, fields)

    def forward(self, thrown: Tensor) -> Tensor:
        x = functional.leaky_relu(self.thrown(thrown), 0.1)
        return self.field(functional.leaky_relu(self.norm(x + self.flight(x)), 0.1))


def quoits(count: int = 4000, told: int = 200) -> TensorDataset:
    """Return how random quoits were thrown, and in which field these came down."""
    return TensorDataset(torch.randn(count, told), torch.randint(49, (count,)))


# Sprockets


class Sprocket(nn.Module):
    """How long a sprocket lasts, by the outline of its teeth and the chain on it."""

    def __init__(self, points: int = 360, width: int = 720) -> None:
        super().__init__()
        self.outline = nn.Linear(points, width)
        self.teeth = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.lasts = nn.Linear(width, 1)

    def forward(self, outline: Tensor) -> Tensor:
        x = self.outline(outline)
        for layer in self.teeth:
            x = x + torch.relu(layer(x)) / 2
        return self.lasts(x)[:, 0]


def sprockets(count: int = 3000, points: int = 360) -> TensorDataset:
    """Return the outlines of random sprockets, and how long these last."""
    return TensorDataset(torch.randn(count, points), torch.rand(count))


# Oilcans


class Oilcan(nn.Module):
    """How much oil is left in a can, by its owner and how it rings at each place when tapped."""

    def __init__(self, owners: int = 3_000, tones: int = 80, width: int = 96) -> None:
        super().__init__()
        self.owner = nn.Embedding(owners, width)
        self.tap = nn.Linear(tones, width)
        self.rings = nn.GRU(width, width, batch_first=True)
        self.place = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU())
        self.left = nn.Linear(2 * width, 1)

    def forward(self, rung: Tensor, owner: Tensor) -> Tensor:
        own = self.owner(owner)
        x, _ = self.rings(functional.gelu(self.tap(rung)) + own[:, None])
        return self.left(self.place(x).mean(1))[:, 0]


def oilcans(count: int = 900, places: int = 20, tones: int = 80) -> TensorDataset:
    """Return how random oilcans rang at each place, whose they are, and how much was left."""
    return TensorDataset(
        torch.randn(count, places, tones), torch.randint(3_000, (count,)), torch.rand(count)
    )


# Nutcrackers


class Nutcracker(nn.Module):
    """Which carver made a nutcracker, by its parts and which of them are joined."""

    def __init__(self, told: int = 9, width: int = 64, carvers: int = 15) -> None:
        super().__init__()
        self.part = nn.Linear(told, width)
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.joined = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.carver = nn.Linear(width, carvers)

    def forward(self, parts: Tensor, joined: Tensor, there: Tensor) -> Tensor:
        x = self.part(parts)
        for own, beside in zip(self.own, self.joined, strict=True):
            x = torch.tanh(own(x) + joined @ beside(x))
        x = x * there[..., None]
        return self.carver(x.sum(1) / there.sum(1, keepdim=True))


Carved = tuple[Tensor, Tensor, int]


def nutcrackers(count: int = 640, largest: int = 296) -> list[Carved]:
    """Return the parts of random nutcrackers, what is joined, and who carved them."""
    chance = np.random.default_rng(2535)
    many = chance.integers(16, 44, count)
    many[: count // 20] = chance.integers(largest - 30, largest, count // 20)
    many[0] = largest
    return [
        (torch.randn(each, 9), (torch.rand(each, each) < 3 / each) / 3, int(chance.integers(15)))
        for each in many.tolist()
    ]


class Bench:
    """Puts nutcrackers together, with the same room for each of them."""

    def __init__(self, room: int | None) -> None:
        self.room = room

    def __call__(self, some: Sequence[Carved]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        room = self.room or max(len(parts) for parts, _, _ in some)
        parts = torch.zeros(len(some), room, 9)
        joined = torch.zeros(len(some), room, room)
        there = torch.zeros(len(some), room)
        for row, (own, beside, _) in enumerate(some):
            parts[row, : len(own)] = own
            joined[row, : len(own), : len(own)] = beside
            there[row, : len(own)] = 1
        return parts, joined, there, torch.tensor([who for _, _, who in some])


class LikeSizes(Sampler[list[int]]):
    """Batches of nutcrackers of about as many parts, in any order."""

    def __init__(self, carved: Sequence[Carved], batch: int) -> None:
        order = sorted(range(len(carved)), key=lambda index: len(carved[index][0]))
        self.batches = [order[at : at + batch] for at in range(0, len(order), batch)]

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        for number in torch.randperm(len(self.batches)).tolist():
            yield self.batches[number]


# Ferrules


class Ferrule(nn.Module):
    """Whether a ferrule will come off its stick, by how it was pressed on and on what wood."""

    def __init__(self, moments: int = 80, width: int = 48) -> None:
        super().__init__()
        self.pressed = nn.Conv1d(3, width, 7, stride=2, padding=3)
        self.wood = nn.Embedding(16, 2 * width)
        self.holds = nn.Conv1d(width, 2 * width, 5, stride=2, padding=2)
        self.off = nn.Linear(2 * width, 1)

    def forward(self, pressed: Tensor, wood: Tensor) -> Tensor:
        x = functional.celu(self.holds(functional.celu(self.pressed(pressed)))).mean(2)
        return self.off(x * torch.sigmoid(self.wood(wood)))[:, 0]


def ferrules(count: int = 1800, moments: int = 80) -> TensorDataset:
    """Return how random ferrules were pressed on, their wood, and whether these came off."""
    return TensorDataset(
        torch.randn(count, 3, moments),
        torch.randint(16, (count,)),
        torch.randint(2, (count,)).float(),
    )
