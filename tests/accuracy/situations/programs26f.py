"""Models and data of the twenty-sixth round's last runs, from clamps to fenders: see
``programs26c.py``."""

import os
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Clamps


class Clamp(nn.Module):
    """How far wood gives below a clamp, at many places, by the wood there and the whole board."""

    def __init__(self, told: int = 6, width: int = 192) -> None:
        super().__init__()
        self.place = nn.Linear(told, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.gives = nn.Linear(width, 1)

    def forward(self, wood: Tensor) -> Tensor:
        x = self.place(wood)
        for layer in self.layers:
            x = functional.relu(layer(x))
        return self.gives(x + x.mean(1, keepdim=True))[..., 0]


def clamps(count: int = 512, places: int = 400, told: int = 6) -> TensorDataset:
    """Return the wood below random clamps, and how far it gives at each place."""
    return TensorDataset(torch.randn(count, places, told), torch.rand(count, places))


# Jackets


class Jacket(nn.Module):
    """Which of 30 cuts a jacket has, by a picture of it; whole layers, with channels last."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.cloth = nn.Conv2d(3, width, 4, 2, 1)
        self.seams = nn.Conv2d(width, width, 3, padding=1)
        self.sleeves = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.cut = nn.Linear(2 * width, 30)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.relu(self.cloth(picture))
        x = functional.relu(x + self.seams(x))
        return self.cut(functional.relu(self.sleeves(x)).mean((2, 3)))


def jackets(count: int = 256, side: int = 64) -> TensorDataset:
    """Return pictures of random jackets, and their cuts."""
    return TensorDataset(torch.randn(count, 3, side, side), torch.randint(30, (count,)))


# Mugs


class Mug(nn.Module):
    """What is in a mug, by the heat at patches of its wall, which are compared by attention."""

    def __init__(self, told: int = 16, patches: int = 128, width: int = 256) -> None:
        super().__init__()
        self.patch = nn.Linear(told, width)
        self.where = nn.Parameter(torch.randn(patches, width) / 16)
        self.mixed = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.wide = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.back = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(2))
        self.inside = nn.Linear(width, 9)

    def forward(self, heat: Tensor) -> Tensor:
        x = self.patch(heat) + self.where
        for mixed, wide, back in zip(self.mixed, self.wide, self.back, strict=True):
            parts = mixed(x).unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(*parts.unbind(0))
            x = x + seen.transpose(1, 2).flatten(2)
            x = x + back(functional.relu(wide(x)))
        return self.inside(x.mean(1))


def mugs(count: int = 512, patches: int = 128, told: int = 16) -> TensorDataset:
    """Return the heat of the walls of random mugs, and what is in them."""
    return TensorDataset(torch.randn(count, patches, told), torch.randint(9, (count,)))


# Bibs

STAINS = 20


class Bib(nn.Module):
    """What stained a bib at each point of a picture of it."""

    def __init__(self, width: int = 22) -> None:
        super().__init__()
        self.cloth = nn.Conv2d(3, width, 5, padding=2)
        self.spots = nn.Conv2d(width, width, 5, padding=2)
        self.stains = nn.Conv2d(width, STAINS, 1)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.relu(self.cloth(picture))
        return self.stains(functional.relu(self.spots(x)))


def missed_one_by_one(scores: Tensor, stains: Tensor) -> Tensor:
    """Return how much of each kind of stain is missed (1 - Dice), bib by bib, kind by kind."""
    there = functional.one_hot(stains, STAINS).movedim(-1, 1).float()
    missed = []
    for said, true in zip(scores.softmax(1), there, strict=True):
        for kind in range(STAINS):
            both = (said[kind] * true[kind]).sum()
            missed.append(1 - (2 * both + 1) / (said[kind].sum() + true[kind].sum() + 1))
    return torch.stack(missed).mean()


def missed_at_once(scores: Tensor, stains: Tensor) -> Tensor:
    """Return the same of all bibs and kinds at once."""
    there = functional.one_hot(stains, STAINS).movedim(-1, 1).float()
    said = scores.softmax(1)
    both = (said * there).sum((2, 3))
    return (1 - (2 * both + 1) / (said.sum((2, 3)) + there.sum((2, 3)) + 1)).mean()


def bibs(count: int = 600, side: int = 28) -> TensorDataset:
    """Return pictures of random bibs, and what stained them at each point."""
    return TensorDataset(
        torch.rand(count, 3, side, side), torch.randint(STAINS, (count, side, side))
    )


# Parkas

Quilted = tuple[Tensor, int]


class Parka(nn.Module):
    """How cold it may be for a parka, by the down in each of its chambers, of which each parka
    has a number of its own."""

    def __init__(self, told: int = 10, width: int = 112) -> None:
        super().__init__()
        self.chamber = nn.Sequential(nn.Linear(told, width), nn.SiLU(), nn.Linear(width, width))
        self.whole = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 12))

    def one_by_one(self, down: Sequence[Tensor]) -> Tensor:
        """Return what is told of each parka, which goes through the layers by itself."""
        return torch.stack([self.whole(self.chamber(each).mean(0)) for each in down])

    def all_at_once(self, down: Sequence[Tensor]) -> Tensor:
        """Return the same, of all chambers of all parkas in one row."""
        many = torch.tensor([len(each) for each in down])
        whose = torch.repeat_interleave(torch.arange(len(down)), many)
        chambers = self.chamber(torch.cat(list(down)))
        sums = chambers.new_zeros(len(down), chambers.shape[1]).index_add(0, whose, chambers)
        return self.whole(sums / many[:, None])


def parkas(count: int = 1200, told: int = 10) -> list[Quilted]:
    """Return the down in the chambers of random parkas, and for which cold they are."""
    many = torch.randint(20, 90, (count,)).tolist()
    return [(torch.randn(each, told), each % 12) for each in many]


def hung_up(some: Sequence[Quilted]) -> tuple[list[Tensor], Tensor]:
    """Return parkas beside each other, none of them padded."""
    return [down for down, _ in some], torch.tensor([cold for _, cold in some])


# Alcoves


class Alcove(nn.Module):
    """How an alcove sounds in six ways, by all moments of how a clap comes back from it."""

    def __init__(self, moments: int = 16384, width: int = 272) -> None:
        super().__init__()
        self.clap = nn.Linear(moments, width)
        self.sounds = nn.Linear(width, 6)

    def forward(self, back: Tensor) -> Tensor:
        return self.sounds(functional.elu(self.clap(back)))


def alcoves(count: int = 720, moments: int = 16384) -> TensorDataset:
    """Return how claps come back from random alcoves, and how these sound."""
    return TensorDataset(torch.randn(count, moments), torch.rand(count, 6))


def bind_to_first() -> None:
    """Keep the process on its first core, as some libraries do when they are loaded."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


# Berets


class Beret(nn.Module):
    """Where a beret was felted, by the fibres seen at its rim, ring by ring."""

    def __init__(self, rings: int = 40, width: int = 80) -> None:
        super().__init__()
        self.fibres = nn.Conv1d(rings, width, 5, padding=2, padding_mode="circular")
        self.rim = nn.Conv1d(width, width, 5, padding=2, padding_mode="circular")
        self.where = nn.Linear(2 * width, 14)

    def forward(self, fibres: Tensor) -> Tensor:
        x = functional.mish(self.rim(functional.mish(self.fibres(fibres))))
        return self.where(torch.cat([x.mean(2), x.amax(2)], 1))


def berets(count: int = 800, rings: int = 40, around: int = 72) -> TensorDataset:
    """Return the fibres of random berets, and where these were felted."""
    return TensorDataset(torch.randn(count, rings, around), torch.randint(14, (count,)))


# Cakestands


class Cakestand(nn.Module):
    """Which cakes go next, by what stands on each tier and who sits at the table."""

    def __init__(self, cakes: int = 900, guests: int = 300, width: int = 96) -> None:
        super().__init__()
        self.cakes = nn.EmbeddingBag(cakes, width, mode="mean")
        self.guest = nn.Embedding(guests, width)
        self.tiers = nn.Sequential(nn.Linear(6 * width, 512), nn.ReLU(), nn.Linear(512, width))
        self.next = nn.Linear(width, cakes)

    def forward(self, told: Tensor) -> Tensor:
        tiers, guest = told[:, :30], told[:, 30]
        cakes = self.cakes(tiers.reshape(-1, 6)).view(len(told), -1)
        return self.next(self.tiers(torch.cat([cakes, self.guest(guest)], 1)))


def cakestands(count: int = 3000) -> TensorDataset:
    """Return six cakes on each of five tiers and a guest, and which cake goes next."""
    told = torch.cat([torch.randint(900, (count, 30)), torch.randint(300, (count, 1))], 1)
    return TensorDataset(told, torch.randint(900, (count,)))


# Cisterns


class Cistern(nn.Module):
    """How full a cistern is in the next hours, by the rain and what was drawn before."""

    def __init__(self, told: int = 5, width: int = 72, hours: int = 12) -> None:
        super().__init__()
        self.rain = nn.Linear(told, width)
        self.level = nn.RNN(width, width, 2, batch_first=True)
        self.full = nn.Linear(width, hours)

    def forward(self, rain: Tensor) -> Tensor:
        return self.full(self.level(functional.softplus(self.rain(rain)))[0][:, -1])


def cisterns(count: int = 1500, before: int = 48, told: int = 5) -> TensorDataset:
    """Return the rain of random days over cisterns, and how full these are in the next hours."""
    return TensorDataset(torch.randn(count, before, told), torch.rand(count, 12))


# Bridles


class Bridle(nn.Module):
    """How hard reins are pulled next, by the pulls before; each moment looks at those before."""

    def __init__(self, wanted: bool, told: int = 4, moments: int = 1024, width: int = 32) -> None:
        super().__init__()
        self.wanted = wanted
        self.pull = nn.Linear(told, width)
        self.before = nn.MultiheadAttention(width, 4, batch_first=True)
        self.next = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, 2))
        self.later = nn.Buffer(torch.ones(moments, moments, dtype=torch.bool).triu(1))

    def forward(self, pulls: Tensor) -> Tensor:
        x = self.pull(pulls)
        seen, _weights = self.before(
            x, x, x, attn_mask=self.later, need_weights=self.wanted, is_causal=True
        )
        return self.next(x + seen)


def bridles(count: int = 200, moments: int = 1024, told: int = 4) -> TensorDataset:
    """Return how reins were pulled in random rides, and how both are pulled next."""
    return TensorDataset(torch.randn(count, moments, told), torch.rand(count, moments, 2))


# Amulets


class Amulet(nn.Module):
    """Who wore an amulet, by the signs on it as a mixture of the signs that others bear.

    The shares of the mixture solve equations, by a pseudo-inverse or by Cholesky's decomposition.
    """

    def __init__(self, pseudo: bool, told: int = 64, signs: int = 320, others: int = 48) -> None:
        super().__init__()
        self.pseudo = pseudo
        self.sign = nn.Linear(told, others)
        self.wore = nn.Sequential(nn.Linear(others, 256), nn.ReLU(), nn.Linear(256, 18))
        self.borne = nn.Parameter(torch.randn(signs, 1))

    def forward(self, amulet: Tensor) -> Tensor:
        x = self.sign(amulet)
        if self.pseudo:
            shares = torch.linalg.pinv(x) @ self.borne
        else:
            together = x.mT @ x + 1e-6 * torch.eye(x.shape[2])
            lower = torch.linalg.cholesky(together)
            shares = torch.cholesky_solve(x.mT @ self.borne, lower)
        return self.wore(shares[..., 0])


def amulets(count: int = 600, signs: int = 320, told: int = 64) -> TensorDataset:
    """Return the signs on random amulets, and who wore these."""
    return TensorDataset(torch.randn(count, signs, told), torch.randint(18, (count,)))


# Basins


class Basin(nn.Module):
    """How fast a basin empties, by how its water turns; its first layers came from elsewhere.

    What came from elsewhere is kept as it was saved, in brain floats, or made float32.
    """

    def __init__(self, kept: bool, told: int = 24, width: int = 144) -> None:
        super().__init__()
        self.saved = torch.bfloat16 if kept else torch.float32
        turns = nn.Sequential(nn.Linear(told, 112), nn.Tanh(), nn.Linear(112, 112), nn.Tanh())
        self.turns = turns.to(self.saved)
        self.wide = nn.Linear(112, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.empties = nn.Linear(width, 1)

    def forward(self, water: Tensor) -> Tensor:
        x = self.wide(self.turns(water.to(self.saved)).float())
        for layer in self.layers:
            x = x + functional.silu(layer(x))
        return self.empties(x.mean(1))[:, 0]


def basins(count: int = 1200, places: int = 40, told: int = 24) -> TensorDataset:
    """Return how water turns in random basins, and how fast these empty."""
    return TensorDataset(torch.randn(count, places, told), torch.rand(count))


# Tongs


class Tong(nn.Module):
    """What tongs hold, by how they opened along the way; the way is told in waves.

    The waves and the layers on them are of the precision of what was measured.
    """

    def __init__(self, measured: torch.dtype, width: int = 224) -> None:
        super().__init__()
        waves = torch.logspace(-1, 2, width // 2, dtype=measured)
        self.waves = nn.Buffer(waves)
        self.opened = nn.Linear(width, width, dtype=measured)
        self.held = nn.Linear(width, 128)
        self.holds = nn.Linear(128, 22)

    def forward(self, opened: Tensor) -> Tensor:
        angles = opened[..., None] * self.waves
        x = torch.tanh(self.opened(torch.cat([angles.sin(), angles.cos()], -1))).float()
        return self.holds(torch.tanh(self.held(x)).amax(1))


def tongs(measured: torch.dtype, count: int = 1500, moments: int = 32) -> TensorDataset:
    """Return how random tongs opened, and what they hold."""
    return TensorDataset(torch.rand(count, moments, dtype=measured), torch.randint(22, (count,)))


# Bungalows


class Bungalow(nn.Module):
    """What a bungalow costs to heat each month, by its rooms and the weather of a year."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.rooms = nn.Linear(9, width)
        self.weather = nn.GRU(6, width, batch_first=True)
        self.costs = nn.Bilinear(width, width, 1)

    def forward(self, rooms: Tensor, weather: Tensor) -> Tensor:
        months, _ = self.weather(weather)
        inside = functional.relu(self.rooms(rooms)).mean(1, keepdim=True)
        return self.costs(months.contiguous(), inside.expand_as(months).contiguous())[..., 0]


def bungalows(count: int = 1500, rooms: int = 7) -> TensorDataset:
    """Return the rooms and the weather of random bungalows, and what heating costs each month."""
    return TensorDataset(
        torch.randn(count, rooms, 9), torch.randn(count, 12, 6), torch.rand(count, 12)
    )


# Fenders


class Fender(nn.Module):
    """Where a fender is dented and how deep, by a picture of light that falls along it."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.light = nn.Conv2d(1, width, 5, stride=2, padding=2)
        self.bent = nn.Conv2d(width, width, (3, 7), padding=(1, 3), groups=4)
        self.dent = nn.Conv2d(width, 2, 3, padding=1)

    def forward(self, light: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.gelu(self.light(light))
        where, deep = self.dent(x + functional.gelu(self.bent(x))).unbind(1)
        return where, functional.softplus(deep)


def fenders(count: int = 600, high: int = 32, long: int = 96) -> TensorDataset:
    """Return light along random fenders, where these are dented, and how deep."""
    dents = (torch.rand(count, high // 2, long // 2) < 0.03).float()
    return TensorDataset(torch.randn(count, 1, high, long), dents, torch.rand_like(dents))
