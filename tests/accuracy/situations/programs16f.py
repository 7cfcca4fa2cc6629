"""Models and data of the sixteenth round's last runs, from bears to ink: see
``programs16c.py``."""

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, Sampler, TensorDataset


class Together(Sampler[list[int]]):
    """Gives the samples of one group, or of several, in one batch."""

    def __init__(self, groups: Sequence[Sequence[int]], several: int) -> None:
        self.groups, self.several = list(groups), several

    def __len__(self) -> int:
        return len(self.groups) // self.several

    def __iter__(self) -> Iterator[list[int]]:
        order = random.sample(self.groups, len(self.groups))
        for at in range(0, len(order) - self.several + 1, self.several):
            yield [each for group in order[at : at + self.several] for each in group]


# Bears


class Bear(nn.Module):
    """How many salmon a bear catches: each layer keeps a part of what the one before had."""

    def __init__(self, measured: int = 48, width: int = 512, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Linear(measured, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.keep = nn.ParameterList(torch.zeros(width) for _ in range(depth))
        self.salmon = nn.Linear(width, 1)

    def forward(self, seen: Tensor) -> Tensor:
        x = functional.elu(self.enter(seen))
        for layer, keep in zip(self.layers, self.keep, strict=True):
            x = torch.lerp(functional.elu(layer(x)), x, keep.sigmoid())
        return self.salmon(x)[:, 0].exp()


def days(count: int = 400, most: int = 8) -> tuple[TensorDataset, list[range]]:
    """Return random sightings of bears with their salmon, and which are of each day."""
    chance = random.Random(31)
    ends = list(itertools.accumulate((chance.randint(2, most) for _ in range(count)), initial=0))
    groups, at = [range(*each) for each in itertools.pairwise(ends)], ends[-1]
    return TensorDataset(torch.randn(at, 48), torch.randint(9, (at,)).float()), groups


# Almonds


class Almond(nn.Module):
    """Which almonds are bitter: every layer sees what all layers before it saw."""

    def __init__(self, width: int = 16, more: int = 8, depth: int = 7) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 5, stride=2, padding=2)
        wide = range(width, width + depth * more, more)
        self.norms = nn.ModuleList(nn.GroupNorm(4, each) for each in wide)
        self.layers = nn.ModuleList(nn.Conv2d(each, more, 3, padding=1) for each in wide)
        self.bitter = nn.Linear(width + depth * more, 3)

    def forward(self, nut: Tensor) -> Tensor:
        x = self.enter(nut)
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = torch.cat([x, layer(functional.relu(norm(x)))], 1)
        return self.bitter(x.mean((2, 3)))


def almonds(count: int = 1500, side: int = 20) -> TensorDataset:
    """Return random pictures of almonds, and how they taste."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(3, (count,)))


# Giraffes


class Giraffe(nn.Module):
    """Where a giraffe goes next, by its last places: those near in time are mixed, then all."""

    def __init__(self, moments: int = 16, width: int = 96, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Linear(4, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.times = nn.ModuleList(nn.Linear(moments, moments) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(depth))
        self.next = nn.Linear(width, 2)

    def forward(self, places: Tensor) -> Tensor:
        x = self.enter(places)
        for norm, times, wide, narrow in zip(
            self.norms, self.times, self.wide, self.narrow, strict=True
        ):
            x = x + times(norm(x).mT).mT
            x = x + narrow(functional.silu(wide(x)))
        return self.next(x[:, -1])


def herds(count: int = 300, most: int = 9) -> tuple[TensorDataset, list[range]]:
    """Return random walks of giraffes and where they went, and which are of each herd."""
    chance = random.Random(33)
    ends = list(itertools.accumulate((chance.randint(3, most) for _ in range(count)), initial=0))
    groups, at = [range(*each) for each in itertools.pairwise(ends)], ends[-1]
    return TensorDataset(torch.randn(at, 16, 4), torch.randn(at, 2)), groups


# Willows


class Willow(nn.Module):
    """How old a willow is: from the trunk outwards, each branch forks into two."""

    def __init__(self, alone: bool, measured: int = 10, width: int = 80) -> None:
        super().__init__()
        self.alone = alone
        self.trunk = nn.Parameter(torch.randn(width) / 8)
        self.enter, self.on = nn.Linear(measured, width), nn.Linear(width, width)
        self.forget = nn.Linear(width, width)
        self.age = nn.Linear(width, 1)

    def forward(self, tree: Tensor) -> Tensor:
        of = self.each(tree) if self.alone else self.forks(tree)
        return self.age(of.mean(1))[:, 0]

    def each(self, tree: Tensor) -> Tensor:
        """Return what is known at every branch, from the trunk to the tips."""
        grown = [self.grown(self.trunk.expand(len(tree), -1), tree[:, 0])]
        for branch in range(1, tree.shape[1]):
            grown.append(self.grown(grown[(branch - 1) // 2], tree[:, branch]))
        return torch.stack(grown, 1)

    def forks(self, tree: Tensor) -> Tensor:
        """Return the same by what is equally far from the trunk."""
        grown = [self.grown(self.trunk.expand(len(tree), 1, -1), tree[:, :1])]
        while (done := 2 ** len(grown) - 1) < tree.shape[1]:
            before = grown[-1].repeat_interleave(2, 1)
            grown.append(self.grown(before, tree[:, done : 2 * done + 1]))
        return torch.cat(grown, 1)

    def grown(self, before: Tensor, branch: Tensor) -> Tensor:
        """Return what is known of branches, by those that bear them."""
        kept = self.forget(before).sigmoid()
        return kept * before + (1 - kept) * (self.on(before) + self.enter(branch)).tanh()


def willows(count: int = 600, branches: int = 31) -> TensorDataset:
    """Return random measurements of branches, and ages."""
    return TensorDataset(torch.randn(count, branches, 10), torch.rand(count))


# Cement


class Cement(nn.Module):
    """How hard cement gets, by the weather of its hours, which fade at speeds of their own."""

    def __init__(self, by_hour: bool, hours: int = 96, speeds: int = 4, width: int = 32) -> None:
        super().__init__()
        self.by_hour, self.speeds = by_hour, speeds
        self.enter, self.lasts = nn.Linear(12, width), nn.Parameter(torch.randn(speeds))
        self.deep, self.hard = nn.Linear(width, width), nn.Linear(width, 1)
        later = torch.arange(hours)
        self.register_buffer("ago", (later[:, None] - later).clamp(min=0).float())
        self.register_buffer("before", (later[:, None] >= later).float())

    def forward(self, weather: Tensor) -> Tensor:
        x = self.enter(weather).unflatten(2, (self.speeds, -1))
        stays = self.lasts.sigmoid()[:, None]
        if self.by_hour:
            state, states = torch.zeros_like(x[:, 0]), []
            for hour in x.unbind(1):
                state = stays * state + (1 - stays) * hour
                states.append(state)
            x = torch.stack(states, 1)
        else:
            faded = (stays.log()[..., None] * self.ago).exp() * self.before
            faded = (1 - stays[..., None]) * faded
            x = torch.einsum("gts,bsgc->btgc", faded, x)
        return self.hard(functional.gelu(self.deep(x.flatten(2))).amax(1))[:, 0]


def weathers(count: int = 800, hours: int = 96) -> TensorDataset:
    """Return random weather by the hour, and how hard the cement got."""
    return TensorDataset(torch.randn(count, hours, 12), torch.rand(count))


# Sandwiches


class Sandwich(nn.Module):
    """What a sandwich is called, by what lies in it and how thick."""

    def __init__(self, by_layer: bool, things: int = 300, width: int = 128) -> None:
        super().__init__()
        self.by_layer = by_layer
        self.thing, self.thick = nn.Embedding(things, width), nn.Linear(1, width)
        self.norm, self.taste = nn.LayerNorm(width), nn.Linear(width, width)
        self.deep, self.called = nn.Linear(width, 4 * width), nn.Linear(4 * width, 80)

    def forward(self, sandwich: tuple[Tensor, Tensor]) -> Tensor:
        things, thick = sandwich
        if self.by_layer:
            tasted = torch.zeros(())
            for each in range(things.shape[1]):
                tasted = tasted + self.of(things[:, each], thick[:, each])
        else:
            tasted = self.of(things, thick).sum(1)
        return self.called(functional.relu(self.deep(tasted)))

    def of(self, thing: Tensor, thick: Tensor) -> Tensor:
        """Return how something tastes that is so thick."""
        lies = self.thing(thing) * self.thick(thick[..., None]).sigmoid()
        return functional.relu(self.taste(self.norm(lies)))


def sandwiches(count: int = 1500, layers: int = 9) -> TensorDataset:
    """Return random things and how thick they lie, and what the sandwiches are called."""
    things, thick = torch.randint(300, (count, layers)), torch.rand(count, layers)
    return TensorDataset(things, thick, torch.randint(80, (count,)))


# Ice cream


class IceCream(nn.Module):
    """How an ice cream melts, by a picture of its heat, in which every point weighs."""

    def __init__(self, side: int = 64, width: int = 512) -> None:
        super().__init__()
        self.seen, self.melts = nn.Linear(side * side, width), nn.Linear(width, 6)

    def forward(self, heat: Tensor) -> Tensor:
        return self.melts(functional.relu(self.seen(heat.flatten(1))))


def creams(count: int = 1000, side: int = 64) -> TensorDataset:
    """Return random heat of ice creams, and how they melt."""
    return TensorDataset(torch.rand(count, side, side), torch.randint(6, (count,)))


# Monkeys


class Monkey(nn.Module):
    """Which monkey calls: its spectrum is seen in bands and in moments by turns."""

    def __init__(self, width: int = 24, depth: int = 2, monkeys: int = 20) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, stride=2, padding=1)
        self.bands = nn.ModuleList(
            nn.Conv2d(width, width, (7, 1), padding=(3, 0)) for _ in range(depth)
        )
        self.moments = nn.ModuleList(
            nn.Conv2d(width, width, (1, 9), padding=(0, 4)) for _ in range(depth)
        )
        self.monkey = nn.Linear(2 * width, monkeys)

    def forward(self, call: Tensor) -> Tensor:
        x = self.enter(call)
        for bands, moments in zip(self.bands, self.moments, strict=True):
            x = x + functional.leaky_relu(moments(functional.leaky_relu(bands(x))))
        return self.monkey(torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1))


def calls(count: int = 600, bands: int = 48, moments: int = 80) -> TensorDataset:
    """Return random spectra of calls, and whose they are."""
    return TensorDataset(torch.rand(count, 1, bands, moments), torch.randint(20, (count,)))


# Pandas


class Panda(nn.Module):
    """What a panda does, by a short film in which it moves."""

    def __init__(self, width: int = 12, does: int = 7) -> None:
        super().__init__()
        self.seen = nn.Conv3d(3, width, (1, 5, 5), (1, 2, 2), (0, 2, 2))
        self.moved = nn.Conv3d(width, 2 * width, 3, (1, 2, 2), 1)
        self.more = nn.Conv3d(2 * width, 2 * width, 3, 1, 1)
        self.does = nn.Linear(2 * width, does)

    def forward(self, film: Tensor) -> Tensor:
        x = functional.relu(self.moved(functional.relu(self.seen(film))))
        return self.does(functional.relu(x + self.more(x)).mean((2, 3, 4)))


def films(count: int = 300, frames: int = 6, side: int = 32) -> TensorDataset:
    """Return random films of pandas, and what these do."""
    return TensorDataset(torch.rand(count, 3, frames, side, side), torch.randint(7, (count,)))


# Wool


class Wool(nn.Module):
    """How fine wool is, by a ray of light along the fibre: each layer sees less of it finely."""

    def __init__(self, width: int = 16, depth: int = 3) -> None:
        super().__init__()
        wide = [2, *(width * 2**each for each in range(depth))]
        self.layers = nn.ModuleList(
            nn.Conv1d(before, after, 8, stride=4, padding=2)
            for before, after in itertools.pairwise(wide)
        )
        self.fine = nn.Sequential(nn.Linear(wide[-1], 64), nn.Hardswish(), nn.Linear(64, 2))

    def forward(self, light: Tensor) -> Tensor:
        for layer in self.layers:
            light = functional.hardswish(layer(light))
        return self.fine(light.mean(2))


def fibres(count: int = 700, places: int = 1024) -> TensorDataset:
    """Return random light along fibres, and how fine and how even these are."""
    return TensorDataset(torch.randn(count, 2, places), torch.rand(count, 2))


# Paper


class Paper(nn.Module):
    """Which mill a sheet is from: its structure in waves, some of which are let through."""

    def __init__(self, side: int = 32, width: int = 12, mills: int = 18) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 5, padding=2)
        self.through = nn.Parameter(torch.randn(width, side, side // 2 + 1) / 8)
        self.mixed = nn.Conv2d(width, 2 * width, 3, stride=2)
        self.mill = nn.Linear(2 * width, mills)

    def forward(self, sheet: Tensor) -> Tensor:
        x = self.enter(sheet)
        x = torch.fft.irfft2(torch.fft.rfft2(x) * self.through)
        return self.mill(functional.gelu(self.mixed(functional.gelu(x))).mean((2, 3)))


def sheets(count: int = 600, side: int = 32) -> TensorDataset:
    """Return random sheets, and the mills."""
    return TensorDataset(torch.rand(count, 1, side, side), torch.randint(18, (count,)))


# Silk


class Silk(nn.Module):
    """How strong silk is: what goes through each layer, and what passes it by, is learned."""

    def __init__(self, measured: int = 90, width: int = 320, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(measured, width)
        self.through = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.strong = nn.Linear(width, 1)

    def forward(self, thread: Tensor) -> Tensor:
        x = self.enter(thread)
        for through in self.through:
            new, gate = through(x).chunk(2, 1)
            x = x + gate.sigmoid() * (new.relu() - x)
        return self.strong(x)[:, 0]


def cocoons(count: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    """Return random measurements of threads and how strong they are, as a table has them."""
    chance = np.random.default_rng(42)
    return chance.standard_normal((count, 90)), chance.random(count)


# Glue


class Glue(nn.Module):
    """How well glue holds, by the sound of a knock: waves of given shape, stretched as learned."""

    def __init__(self, window: Tensor, waves: int = 64, width: int = 64) -> None:
        super().__init__()
        size = len(window)
        self.register_buffer("window", window)
        self.register_buffer("moments", torch.linspace(-1, 1, size))
        self.pitch = nn.Parameter(torch.linspace(2, 60, waves))
        self.phase = nn.Parameter(torch.zeros(waves))
        self.deep = nn.Parameter(torch.randn(width, waves, 9) / math.sqrt(9 * waves))
        self.last = nn.Parameter(torch.randn(width, width, 9) / math.sqrt(9 * width))
        self.holds = nn.Linear(width, 1)

    def forward(self, knock: Tensor) -> Tensor:
        angle = self.pitch[:, None] * self.moments + self.phase[:, None]
        shape = (angle.cos() * self.window)[:, None]
        x = functional.conv1d(knock.to(shape), shape, stride=4, padding=len(self.window) // 2)
        x = functional.conv1d(x.abs(), self.deep.to(x), padding=4).relu()
        x = functional.conv1d(x, self.last.to(x), padding=4).relu()
        return self.holds(x.mean(2).to(self.holds.weight))[:, 0]


def knocks(count: int = 600, moments: int = 600) -> TensorDataset:
    """Return random knocks, and how well the glue holds."""
    return TensorDataset(torch.randn(count, 1, moments), torch.rand(count))


# Soap


class Soap(nn.Module):
    """How long a bubble lasts, by places of its skin, each of which heeds the others."""

    def __init__(self, measured: int = 48, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.enter, self.all = nn.Linear(measured, width), nn.Linear(width, 3 * width)
        self.out, self.wide = nn.Linear(width, width), nn.Linear(width, 3 * width)
        self.narrow, self.lasts = nn.Linear(3 * width, width), nn.Linear(width, 8)

    def forward(self, skin: Tensor) -> Tensor:
        x = self.enter(skin)
        asked, known, found = self.all(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        heeded = functional.scaled_dot_product_attention(asked, known, found)
        x = x + self.out(heeded.transpose(1, 2).flatten(2))
        x = x + self.narrow(functional.relu(self.wide(x)))
        return self.lasts(x.mean(1))


def bubbles(count: int = 1200, places: int = 20) -> TensorDataset:
    """Return random places of bubbles, and how long these last."""
    return TensorDataset(torch.rand(count, places, 48), torch.randint(8, (count,)))


# Ink


class Lines(Dataset[tuple[Tensor, Tensor]]):
    """Lines written in ink, as their strokes: most are short, and few are long."""

    def __init__(self, count: int = 1200, longest: int = 240) -> None:
        chance = np.random.default_rng(45)
        lengths = (chance.gamma(4.0, 9.0, count)).clip(8, longest).astype(int)
        self.lines = [torch.randn(int(each), 5) for each in lengths]
        self.hands = torch.randint(25, (count,))

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.lines[index], self.hands[index]


class Filled:
    """Makes a batch of lines: as long as the longest of it, or as a given length."""

    def __init__(self, length: int | None) -> None:
        self.length = length

    def __call__(self, lines: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
        strokes, hands = zip(*lines, strict=True)
        lengths = torch.tensor([len(each) for each in strokes])
        filled = pad_sequence(list(strokes), batch_first=True)
        if self.length is not None:
            filled = functional.pad(filled, (0, 0, 0, self.length - filled.shape[1]))
        return filled, lengths, torch.stack(hands)


class Ink(nn.Module):
    """Whose hand a line is in: strokes heed each other, but not what only fills the line up."""

    def __init__(self, width: int = 64, hands: int = 25, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Conv1d(5, width, 5, padding=2)
        layer: Any = nn.TransformerEncoderLayer(width, 4, 3 * width, 0.0, batch_first=True)
        self.heed = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.hand = nn.Linear(width, hands)

    def forward(self, strokes: Tensor, lengths: Tensor) -> Tensor:
        outside = torch.arange(strokes.shape[1]) >= lengths[:, None]
        x = self.heed(self.enter(strokes.mT).mT, src_key_padding_mask=outside)
        return self.hand(x.masked_fill(outside[..., None], 0).sum(1) / lengths[:, None])
