"""Models and data of the seventeenth round's last runs, from statues to thimbles: see
``programs17c.py``."""

import itertools
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Statues


class Statue(nn.Module):
    """Which workshop a statue is from: each of its points is seen with those that are nearest."""

    def __init__(self, width: int = 32, near: int = 8, workshops: int = 14) -> None:
        super().__init__()
        self.near = near
        self.edge = nn.Sequential(nn.Linear(6, width), nn.LeakyReLU(0.2), nn.Linear(width, width))
        self.more = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.LeakyReLU(0.2))
        self.workshop = nn.Linear(4 * width, workshops)

    def forward(self, points: Tensor) -> Tensor:
        nearest = torch.cdist(points, points).topk(self.near, largest=False).indices
        at = torch.arange(len(points))[:, None, None]
        x = self.edge(self.edges(points, at, nearest)).amax(2)
        x = self.more(self.edges(x, at, nearest)).amax(2)
        return self.workshop(torch.cat([x.amax(1), x.mean(1)], 1))

    def edges(self, x: Tensor, at: Tensor, nearest: Tensor) -> Tensor:
        """Return what is known of each point, and how its neighbours differ from it."""
        own = x[:, :, None].expand(-1, -1, self.near, -1)
        return torch.cat([own, x[at, nearest] - own], 3)


def statues(count: int = 500, points: int = 160) -> TensorDataset:
    """Return random points of statues, and the workshops."""
    return TensorDataset(torch.randn(count, points, 3), torch.randint(14, (count,)))


# Nails


class Nail(nn.Module):
    """What a nail is for, by a picture: blocks of a wide, a separate and a narrow layer."""

    def __init__(self, width: int = 16, times: int = 4, depth: int = 3, uses: int = 11) -> None:
        super().__init__()
        wide = times * width
        self.enter = nn.Conv2d(3, width, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, wide, 1),
                nn.ReLU6(),
                nn.Conv2d(wide, wide, 3, padding=1, groups=wide),
                nn.ReLU6(),
                nn.Conv2d(wide, width, 1),
            )
            for _ in range(depth)
        )
        self.use = nn.Linear(width, uses)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.enter(picture)
        for block in self.blocks:
            x = x + block(x)
        return self.use(x.mean((2, 3)))


def nails(count: int = 500, side: int = 40) -> TensorDataset:
    """Return random pictures of nails, and their uses."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(11, (count,)))


# Thermometers


class Thermometer(nn.Module):
    """What thermometers show tomorrow, in quantiles, by what they showed."""

    def __init__(self, shown: int = 6, width: int = 64, hours: int = 12) -> None:
        super().__init__()
        self.hours = hours
        self.past = nn.LSTM(shown, width, batch_first=True)
        self.later = nn.Linear(width, 3 * hours)

    def forward(self, readings: Tensor) -> Tensor:
        found, _ = self.past(readings)
        return self.later(found[:, -1]).unflatten(1, (self.hours, 3))


QUANTILES = torch.tensor([0.1, 0.5, 0.9])


def pinball(told: Tensor, shown: Tensor) -> Tensor:
    """Return how far quantiles are off."""
    off = shown[..., None] - told
    return torch.maximum(QUANTILES * off, (QUANTILES - 1) * off).mean()


def readings(count: int = 1500, hours: int = 36) -> TensorDataset:
    """Return random readings of thermometers, and what they showed afterwards."""
    return TensorDataset(torch.randn(count, hours, 6), torch.randn(count, 12))


# Ferries


class Ferry(nn.Module):
    """How many want to cross: each block tells a part, and takes what it explains from the past."""

    def __init__(self, past: int = 168, later: int = 24, width: int = 256, depth: int = 4) -> None:
        super().__init__()
        self.past, self.later = past, later
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Linear(past, width),
                nn.ReLU(),
                nn.Linear(width, width),
                nn.ReLU(),
                nn.Linear(width, past + later),
            )
            for _ in range(depth)
        )

    def forward(self, crossed: Tensor) -> Tensor:
        told = crossed.new_zeros(())
        for block in self.blocks:
            explained, part = block(crossed).split([self.past, self.later], 1)
            crossed, told = crossed - explained, told + part
        return told


def crossings(count: int = 4000, past: int = 168, later: int = 24) -> TensorDataset:
    """Return random crossings by the hour, and the later ones."""
    return TensorDataset(torch.randn(count, past), torch.randn(count, later))


# Valves


class Curves(Dataset[tuple[Tensor, Tensor]]):
    """Curves of the pressure at valves, with noise that a worker adds to them."""

    def __init__(self, count: int = 2000, moments: int = 256) -> None:
        chance = np.random.default_rng(35)
        self.curves = chance.standard_normal((count, 2, moments), np.float32)
        self.leaks = torch.randint(2, (count,)).float()

    def __len__(self) -> int:
        return len(self.curves)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        curve = self.curves[index]
        noise = np.random.standard_normal(curve.shape).astype(np.float32)
        return torch.from_numpy(curve + 0.05 * noise), self.leaks[index]


class Valve(nn.Module):
    """Whether a valve leaks: convolutions that look ever further, each with a way past it."""

    def __init__(self, width: int = 24, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv1d(2, width, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, padding=2**each, dilation=2**each)
            for each in range(depth)
        )
        self.leaks = nn.Linear(width, 1)

    def forward(self, curve: Tensor) -> Tensor:
        x = self.enter(curve)
        for layer in self.layers:
            x = x + functional.glu(layer(x), 1)
        return self.leaks(x.amax(2))[:, 0]


# Lasers


class Laser(nn.Module):
    """How a laser is out of line, by its beam, and what the beam would look like then."""

    def __init__(self, side: int = 32, width: int = 16, out: int = 10) -> None:
        super().__init__()
        self.seen = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.Softplus(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.Softplus(),
        )
        self.mean, self.spread = (nn.Linear(side * side // 8 * width, out) for _ in range(2))
        self.back = nn.Sequential(nn.Linear(out, 256), nn.Softplus(), nn.Linear(256, side * side))

    def forward(self, beam: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.seen(beam).flatten(1)
        mean, spread = self.mean(x), self.spread(x)
        drawn = mean + (spread / 2).exp() * torch.randn_like(mean)
        return self.back(drawn).view_as(beam), mean, spread


def beams(count: int = 1500, side: int = 32) -> TensorDataset:
    """Return random beams."""
    return TensorDataset(torch.rand(count, 1, side, side))


# Banners


class Heeding(nn.Module):
    """A layer in which the pieces of a banner heed each other."""

    def __init__(self, written: bool, width: int, heads: int) -> None:
        super().__init__()
        self.written, self.heads = written, heads
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, width)
        self.asked, self.known, self.found = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        asked, known, found = (
            layer(y).unflatten(2, (self.heads, -1))
            for layer in (self.asked, self.known, self.found)
        )
        if self.written:
            mixed = self.mix(asked, known, found)
        else:
            parts = (each.transpose(1, 2) for each in (asked, known, found))
            mixed = functional.scaled_dot_product_attention(*parts).transpose(1, 2)
        return x + self.out(mixed.flatten(2))

    @staticmethod
    def mix(asked: Tensor, known: Tensor, found: Tensor) -> Tensor:
        """Return what is found, by how much it was asked for."""
        like = torch.einsum("bqhc,bkhc->bqkh", asked, known).contiguous() / asked.shape[3] ** 0.5
        like = torch.exp(like - like.amax(2, keepdim=True))
        return torch.einsum("bqkh,bkhc->bqhc", like / like.sum(2, keepdim=True), found)


class Banner(nn.Module):
    """Whose arms a banner bears, by its pieces."""

    def __init__(self, written: bool, width: int = 32, heads: int = 4, depth: int = 1) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 4, stride=4)
        self.layers = nn.Sequential(*(Heeding(written, width, heads) for _ in range(depth)))
        self.bears = nn.Linear(width, 30)

    def forward(self, banner: Tensor) -> Tensor:
        return self.bears(self.layers(self.enter(banner).flatten(2).mT).mean(1))


def banners(count: int = 300, high: int = 80, wide: int = 64) -> TensorDataset:
    """Return random pictures of banners, and whose they are."""
    return TensorDataset(torch.rand(count, 3, high, wide), torch.randint(30, (count,)))


# Cricket scores


class Innings(nn.Module):
    """What the next ball brings, by all before it, of which the last weigh most."""

    def __init__(
        self, repeated: bool, balls: int = 240, width: int = 32, heads: int = 4, keys: int = 2
    ) -> None:
        super().__init__()
        self.repeated, self.heads, self.keys, self.size = repeated, heads, keys, width // heads
        self.ball, self.brings = nn.Embedding(16, width), nn.Linear(width, 16)
        self.norm = nn.RMSNorm(width)
        self.ask, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.both = nn.Linear(width, 2 * keys * self.size, bias=False)
        at = torch.arange(balls)
        ago = (at[:, None] - at).float()
        far = -ago * 2.0 ** -torch.arange(1, heads + 1)[:, None, None]
        self.register_buffer("far", far.masked_fill(ago < 0, -1e9))

    def forward(self, balls: Tensor) -> Tensor:
        x = self.ball(balls)
        y = self.norm(x)
        asked = self.ask(y).unflatten(2, (self.heads, -1)).transpose(1, 2)
        known, found = self.both(y).unflatten(2, (2, self.keys, -1)).permute(2, 0, 3, 1, 4)
        heed = self.heed if self.repeated else self.fused
        return self.brings(x + self.out(heed(asked, known, found).transpose(1, 2).flatten(2)))

    def heed(self, asked: Tensor, known: Tensor, found: Tensor) -> Tensor:
        """Return what earlier balls tell, each key for the questions that share it."""
        several = self.heads // self.keys
        known, found = (each.repeat_interleave(several, 1) for each in (known, found))
        scores = asked @ known.mT * self.size**-0.5 + self.far
        logs = scores - torch.logsumexp(scores, -1, keepdim=True)
        return logs.exp() @ found

    def fused(self, asked: Tensor, known: Tensor, found: Tensor) -> Tensor:
        """Return the same by the library's operator."""
        return functional.scaled_dot_product_attention(
            asked, known, found, attn_mask=self.far[None], enable_gqa=True
        )


def innings(count: int = 400, balls: int = 240) -> TensorDataset:
    """Return random innings of 40 overs, ball by ball."""
    return TensorDataset(torch.randint(16, (count, balls + 1)))


# Rowing


class Stroke(nn.Module):
    """The force of the next strokes: learned curves are fitted to the last ones."""

    def __init__(self, own: bool, curves: int = 20, width: int = 128) -> None:
        super().__init__()
        self.own = own
        self.curves = nn.Sequential(
            nn.Linear(8, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, curves),
        )

    def forward(self, felt: Tensor, force: Tensor, later: Tensor) -> Tensor:
        curves = self.curves(felt)
        same = curves.mT @ curves + 0.5 * torch.eye(curves.shape[2])
        right = curves.mT @ force[..., None]
        weights = inverse(same) @ right if self.own else torch.linalg.solve(same, right)
        return (self.curves(later) @ weights)[..., 0]


def inverse(matrices: Tensor, rounds: int = 12) -> Tensor:
    """Return inverses, which get nearer with each round."""
    most = matrices.abs().sum(2).amax(1)[:, None, None]
    found = matrices.mT / most**2
    twice = 2 * torch.eye(matrices.shape[1])
    for _ in range(rounds):
        found = found @ (twice - matrices @ found)
    return found


def strokes(count: int = 2000, moments: int = 48) -> TensorDataset:
    """Return random movements and forces of strokes, and those of the next."""
    felt, later = torch.randn(2, count, moments, 8)
    force, then = torch.randn(2, count, moments)
    return TensorDataset(felt, force, later, then)


# Murals


class Mural(nn.Module):
    """What a mural was before it faded."""

    def __init__(self, width: int = 16, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 3, padding=1)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1),
                nn.PReLU(),
                nn.Conv2d(width, width, 3, padding=1),
            )
            for _ in range(depth)
        )
        self.was = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, faded: Tensor) -> Tensor:
        x = self.enter(faded)
        for layer in self.layers:
            x = x + layer(x)
        return faded + self.was(x)


def murals(count: int = 400, side: int = 32) -> TensorDataset:
    """Return random murals, faded and as they were."""
    fresh = torch.rand(count, 3, side, side)
    return TensorDataset(0.5 * fresh + 0.25, fresh)


# Belts


EIGHTS = torch.arange(127, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
EIGHTS = torch.cat([-EIGHTS[1:].flip(0), EIGHTS])
"""What eight bits can say."""
BETWEEN = (EIGHTS[1:] + EIGHTS[:-1]) / 2


class Rounded(torch.autograd.Function):
    """Takes the nearest of what eight bits can say, each row by a scale of its own."""

    @staticmethod
    def forward(_ctx: Any, x: Tensor) -> Tensor:
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / EIGHTS[-1]
        return EIGHTS[torch.bucketize(x / scale, BETWEEN)] * scale

    @staticmethod
    def backward(_ctx: Any, *slopes: Tensor) -> Tensor:
        return slopes[0]


class Belt(nn.Module):
    """When a belt has to be mended, by how it shakes."""

    def __init__(self, rounded: bool, shakes: int = 128, width: int = 320, depth: int = 2) -> None:
        super().__init__()
        self.rounded = rounded
        wide = [shakes] + depth * [width]
        self.layers = nn.ModuleList(
            nn.Linear(before, after) for before, after in itertools.pairwise(wide)
        )
        self.mend = nn.Linear(width, 1)

    def forward(self, shakes: Tensor) -> Tensor:
        x = shakes
        for layer in self.layers:
            weight = layer.weight
            if self.rounded:
                x, weight = Rounded.apply(x), Rounded.apply(weight)
            x = functional.mish(functional.linear(x, weight, layer.bias))
        return self.mend(x)[:, 0]


def belts(count: int = 3000) -> TensorDataset:
    """Return random spectra of belts, and when they were mended."""
    return TensorDataset(torch.randn(count, 128), torch.rand(count))


# Gloves


class Glove(nn.Module):
    """How a hand is held, by the sensors of a glove: a few experts, all of them asked."""

    def __init__(self, sensors: int = 96, width: int = 256, experts: int = 4) -> None:
        super().__init__()
        self.enter, self.trust = nn.Linear(sensors, width), nn.Linear(sensors, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
            for _ in range(experts)
        )
        self.joints = nn.Linear(width, 21 * 3)

    def forward(self, felt: Tensor) -> Tensor:
        x, trust = self.enter(felt).relu(), self.trust(felt).softmax(1)
        said = torch.stack([expert(x) for expert in self.experts], 1)
        return self.joints((trust[..., None] * said).sum(1))


def gloves(count: int = 3000) -> TensorDataset:
    """Return random readings of gloves, and where the joints were."""
    return TensorDataset(torch.randn(count, 96), torch.randn(count, 63))


# Surfboards


class Surfboard(nn.Module):
    """How a board rides: its sections are seen, and their effects summed along it."""

    def __init__(self, exact: bool, width: int = 32, rides: int = 5) -> None:
        super().__init__()
        self.exact = exact
        self.seen = nn.Conv1d(12, width, 5, padding=2)
        self.along = nn.Conv1d(width, width, 9, padding=4)
        self.bends = nn.Conv1d(width, width, 9, padding=4)
        self.rides = nn.Linear(width, rides)
        if exact:
            self.along.double()
            self.bends.double()

    def forward(self, sections: Tensor) -> Tensor:
        x = functional.elu(self.seen(sections))
        if self.exact:
            x = x.double()
        bends = self.bends(functional.elu(self.along(x))).cumsum(2).tanh()
        return self.rides((x + bends).mean(2).float())


def boards(count: int = 1000, sections: int = 128) -> TensorDataset:
    """Return random sections of boards, and how these ride."""
    return TensorDataset(torch.randn(count, 12, sections), torch.rand(count, 5))


# Canoes


class Canoe(nn.Module):
    """Who paddles: the strokes are told in steps, and both ways of time are looked along."""

    def __init__(self, felt: int = 9, width: int = 48, paddlers: int = 24) -> None:
        super().__init__()
        self.enter = nn.Conv1d(felt, width, 7, stride=3)
        self.both = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.weighs, self.who = nn.Linear(2 * width, 1), nn.Linear(2 * width, paddlers)

    def forward(self, felt: Tensor) -> Tensor:
        x, _ = self.both(functional.gelu(self.enter(felt)).mT)
        return self.who((self.weighs(x).softmax(1) * x).sum(1))


def paddled(count: int = 900, moments: int = 150) -> TensorDataset:
    """Return random strokes of paddles, and whose they are."""
    return TensorDataset(torch.randn(count, 9, moments), torch.randint(24, (count,)))


# Thimbles


class Thimble(nn.Module):
    """Takes noise from pictures of thimbles, by how much of it there is."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.noisy = nn.Sequential(nn.Linear(1, 32), nn.SiLU(), nn.Linear(32, 2 * width))
        self.down = nn.Conv2d(1, width, 4, stride=2, padding=1)
        self.within = nn.Conv2d(width, width, 3, padding=1)
        self.up = nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1)

    def forward(self, picture: Tensor, much: Tensor) -> Tensor:
        scale, shift = self.noisy(much[:, None])[..., None, None].chunk(2, 1)
        x = functional.silu(self.down(picture)) * (1 + scale) + shift
        return self.up(x + functional.silu(self.within(x)))


def thimbles(count: int = 800, side: int = 32) -> TensorDataset:
    """Return random pictures of thimbles."""
    return TensorDataset(torch.rand(count, 1, side, side))
