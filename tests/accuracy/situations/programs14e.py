"""Models and data of the fourteenth round's runs from looms to tulips: see ``programs14b.py``."""

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, Sampler, TensorDataset

# Looms


class Crossed(nn.Module):
    """Lets the threads of a loom know of each other, and then the moments of each thread."""

    def __init__(self, threads: int, moments: int, wide: int) -> None:
        super().__init__()
        self.of_threads = nn.Sequential(
            nn.Linear(threads, wide), nn.SiLU(), nn.Linear(wide, threads)
        )
        self.of_moments = nn.Sequential(
            nn.Linear(moments, wide), nn.SiLU(), nn.Linear(wide, moments)
        )

    def forward(self, pull: Tensor) -> Tensor:
        pull = pull + self.of_threads(pull.mT).mT
        return pull + self.of_moments(pull)


class Loom(nn.Module):
    """Which of a loom's threads breaks next, by how hard each was pulled."""

    def __init__(self, threads: int = 40, moments: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(Crossed(threads, moments, 96) for _ in range(depth)))
        self.breaks = nn.Linear(moments, 1)

    def forward(self, pull: Tensor) -> Tensor:
        return self.breaks(self.layers(pull))[..., 0]


def weavings(count: int = 800, threads: int = 40, moments: int = 48) -> TensorDataset:
    """Return random pulls of threads, and which thread broke."""
    return TensorDataset(torch.randn(count, threads, moments), torch.randint(threads, (count,)))


class Weavers:
    """A book with a page for each step: how weights and gradients are spread, and what is told."""

    def __init__(self, path: Path, parts: int = 32) -> None:
        self.path, self.parts = path, parts

    def spread(self, values: Tensor) -> dict[str, object]:
        """Return how often values are where."""
        low, high = values.aminmax()
        counts = torch.histc(values, self.parts)
        return {
            "from": low.item(),
            "to": high.item(),
            "counts": counts.tolist(),
            "mean": values.mean().item(),
            "spread": values.std().item() if values.numel() > 1 else 0.0,
        }

    def page(self, step: int, loss: Tensor, model: nn.Module, pull: Tensor, told: Tensor) -> None:
        """Write what is to be kept of a step."""
        page: dict[str, object] = {"step": step, "loss": loss.item(), "told": told.tolist()}
        page["pull"] = pull[:4].tolist()
        for name, weight in model.named_parameters():
            page[name] = self.spread(weight.detach())
            if weight.grad is not None:
                page[f"{name}.grad"] = self.spread(weight.grad)
        with self.path.open("a", encoding="utf-8") as book:
            book.write(json.dumps(page) + "\n")


# Hazelnuts


class Hazelnut(nn.Module):
    """What is at each point of a picture of hazelnuts: belt, shell, kernel, worm, leaf or stone."""

    def __init__(self, width: int = 32, kinds: int = 6) -> None:
        super().__init__()
        self.near = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
        )
        self.whole = nn.Linear(width, width)
        self.kind = nn.Conv2d(width, kinds, 1)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.near(picture)
        x = x + self.whole(x.mean((2, 3)))[..., None, None]
        return self.kind(functional.relu(x))


def belts(count: int = 500, side: int = 48) -> TensorDataset:
    """Return random pictures of a belt, and what is at each second point of both directions."""
    return TensorDataset(
        torch.rand(count, 3, side, side), torch.randint(6, (count, side // 2, side // 2))
    )


# Starfish


class Twice(nn.Sequential):
    """Two convolutions, as everywhere in this network."""

    def __init__(self, inside: int, outside: int) -> None:
        layers: list[nn.Module] = []
        for into in (inside, outside):
            layers += [nn.Conv2d(into, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.ReLU()]
        super().__init__(*layers)


class Passed(nn.Module):
    """What a finer layer saw, as far as a coarser one asks for it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fine, self.coarse = nn.Conv2d(width, width // 2, 1), nn.Conv2d(width, width // 2, 1)
        self.much = nn.Conv2d(width // 2, 1, 1)

    def forward(self, fine: Tensor, coarse: Tensor) -> Tensor:
        return fine * self.much(functional.relu(self.fine(fine) + self.coarse(coarse))).sigmoid()


class Starfish(nn.Module):
    """Where on a rock starfish sit: down to a coarse picture and up again."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        sizes = [width, 2 * width, 4 * width]
        pairs = list(itertools.pairwise(sizes))
        self.enter = Twice(3, width)
        self.down = nn.ModuleList(Twice(fine, coarse) for fine, coarse in pairs)
        self.wider = nn.ModuleList(
            nn.ConvTranspose2d(coarse, fine, 2, 2) for fine, coarse in reversed(pairs)
        )
        self.passed = nn.ModuleList(Passed(fine) for fine, _ in reversed(pairs))
        self.up = nn.ModuleList(Twice(2 * fine, fine) for fine, _ in reversed(pairs))
        self.there = nn.Conv2d(width, 1, 1)

    def forward(self, rock: Tensor) -> Tensor:
        x, seen = self.enter(rock), []
        for layer in self.down:
            seen.append(x)
            x = layer(functional.max_pool2d(x, 2))
        for wider, passed, layer in zip(self.wider, self.passed, self.up, strict=True):
            x = wider(x)
            x = layer(torch.cat([passed(seen.pop(), x), x], 1))
        return self.there(x)[:, 0]


def rocks(count: int = 240, side: int = 48) -> TensorDataset:
    """Return random photographs of rocks, and where starfish sit."""
    return TensorDataset(
        torch.rand(count, 3, side, side), (torch.rand(count, side, side) < 0.2).float()
    )


def overlapping(told: Tensor, there: Tensor) -> Tensor:
    """Return how wrong the points are, and how little what is told covers what is there."""
    sure = told.sigmoid()
    both = 2 * (sure * there).sum((1, 2)) + 1
    covered = both / (sure.sum((1, 2)) + there.sum((1, 2)) + 1)
    return functional.binary_cross_entropy_with_logits(told, there) + 1 - covered.mean()


# Spindles


class Turning(nn.Module):
    """Each channel over its moments, and then each moment over its channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.along = nn.Conv1d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.much = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        found = self.norm(self.along(x).mT)
        return x + (self.much * self.narrow(functional.gelu(self.wide(found)))).mT


class Spindle(nn.Module):
    """How worn a spindle's bearing is and how many hours it has left, by how it shakes."""

    def __init__(self, width: int = 96, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv1d(3, width, 4, 4)
        self.layers = nn.Sequential(*(Turning(width) for _ in range(depth)))
        self.told = nn.Linear(width, 2)

    def forward(self, shaken: Tensor) -> Tensor:
        return self.told(self.layers(self.enter(shaken)).mean(2))


def spinnings(count: int = 400, moments: int = 384) -> TensorDataset:
    """Return how random spindles shake in three directions, and wear and hours."""
    return TensorDataset(torch.randn(count, 3, moments), torch.rand(count, 2))


# Barley


class Grown(nn.Module):
    """Bands of a spectrum look at each other."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.look = nn.MultiheadAttention(width, heads, batch_first=True)
        self.own = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        seen = self.first(x)
        x = x + self.look(seen, seen, seen, need_weights=False)[0]
        return x + self.own(self.second(x))


class Barley(nn.Module):
    """A field of barley by its spectrum from the air: what is hidden is told by what is not."""

    def __init__(self, pieces: int = 64, size: int = 12, width: int = 128, shown: int = 32) -> None:
        super().__init__()
        self.shown, self.size = shown, size
        self.enter, self.leave = nn.Linear(size, width), nn.Linear(width, size)
        self.place = nn.Parameter(torch.randn(pieces, width) / 8)
        self.hidden = nn.Parameter(torch.zeros(width))
        self.deep = nn.Sequential(Grown(width), Grown(width), Grown(width))
        self.back = Grown(width)

    def forward(self, spectrum: Tensor) -> Tensor:
        """Return how wrong the hidden pieces are told."""
        pieces = spectrum.unflatten(1, (-1, self.size))
        order = torch.randperm(pieces.shape[1])
        shown, hidden = order[: self.shown], order[self.shown :]
        known = self.deep(self.enter(pieces[:, shown]) + self.place[shown])
        asked = (self.hidden + self.place[hidden]).expand(len(pieces), -1, -1)
        told = self.leave(self.back(torch.cat([known, asked], 1))[:, self.shown :])
        return functional.mse_loss(told, pieces[:, hidden])


def acres(count: int = 1000, bands: int = 768) -> TensorDataset:
    """Return random spectra of fields."""
    return TensorDataset(torch.randn(count, bands))


# Onions


class Onion(nn.Module):
    """The cut through an onion in sixteen figures, and the cut that follows from these."""

    def __init__(self, width: int = 32, figures: int = 16) -> None:
        super().__init__()
        self.inwards = nn.Sequential(
            nn.Conv2d(3, width, 4, 2, 1),
            nn.ELU(),
            nn.Conv2d(width, 2 * width, 4, 2, 1),
            nn.ELU(),
            nn.Conv2d(2 * width, 4 * width, 4, 2, 1),
            nn.ELU(),
            nn.Flatten(),
            nn.Linear(4 * width * 36, 2 * figures),
        )
        self.outwards = nn.Sequential(
            nn.Linear(figures, 4 * width * 36),
            nn.Unflatten(1, (4 * width, 6, 6)),
            nn.ELU(),
            nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1),
            nn.ELU(),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1),
            nn.ELU(),
            nn.ConvTranspose2d(width, 3, 4, 2, 1),
        )

    def forward(self, cut: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        middle, spread = self.inwards(cut).chunk(2, 1)
        drawn = middle + (spread / 2).exp() * torch.randn_like(middle)
        return self.outwards(drawn), middle, spread


def cuts(count: int = 320, side: int = 48) -> TensorDataset:
    """Return random pictures of cut onions."""
    return TensorDataset(torch.rand(count, 3, side, side))


# Zithers


class Plucked(nn.Module):
    """A note of a tune looks at those before it; how long ago these were turns them."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.asked = nn.Linear(width, 3 * width, bias=False)
        self.told = nn.Linear(width, width, bias=False)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        parts = self.asked(self.first(x)).unflatten(2, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(
            turned(query, turns), turned(key, turns), value, is_causal=True
        )
        x = x + self.told(mixed.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.relu(self.wide(self.second(x))).square())


def turned(notes: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    """Return what notes are at their moments."""
    cosine, sine = turns
    one, other = notes.chunk(2, 3)
    return torch.cat([one * cosine - other * sine, one * sine + other * cosine], 3)


class Zither(nn.Module):
    """Which string of a zither is plucked next, and how."""

    def __init__(self, plucks: int = 256, width: int = 160, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Embedding(plucks, width)
        self.layers = nn.ModuleList(Plucked(width) for _ in range(depth))
        self.norm, self.next = nn.RMSNorm(width), nn.Linear(width, plucks, bias=False)
        self.often = nn.Buffer(100.0 ** -torch.linspace(0, 1, width // 8))

    def forward(self, tune: Tensor) -> Tensor:
        angle = torch.arange(tune.shape[1])[:, None] * self.often
        turns, x = (angle.cos(), angle.sin()), self.enter(tune)
        for layer in self.layers:
            x = layer(x, turns)
        return self.next(self.norm(x))


def tunes(count: int = 1000, length: int = 65) -> TensorDataset:
    """Return random tunes as numbers of plucks."""
    return TensorDataset(torch.randint(256, (count, length)))


# Ladybirds


class Spotted(nn.Module):
    """Layers that each see all that was found before them."""

    def __init__(self, inside: int, grows: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(inside + each * grows),
                nn.ReLU(),
                nn.Conv2d(inside + each * grows, grows, 3, padding=1, bias=False),
            )
            for each in range(depth)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return x


class Ladybird(nn.Module):
    """Which ladybird it is, by a photograph of its back, and how many spots it has."""

    def __init__(self, grows: int = 16, depth: int = 4, kinds: int = 18) -> None:
        super().__init__()
        first, second = 32 + depth * grows, 64 + depth * grows
        self.layers = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1),
            Spotted(32, grows, depth),
            nn.Conv2d(first, 64, 1),
            nn.AvgPool2d(2),
            Spotted(64, grows, depth),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.kind, self.spots = nn.Linear(second, kinds), nn.Linear(second, 1)

    def forward(self, back: Tensor) -> tuple[Tensor, Tensor]:
        found = self.layers(back)
        return self.kind(found), self.spots(found)[:, 0]


def backs(count: int = 320, side: int = 48) -> TensorDataset:
    """Return random photographs of backs, kinds, and numbers of spots."""
    return TensorDataset(
        torch.rand(count, 3, side, side),
        torch.randint(18, (count,)),
        torch.randint(2, 25, (count,)).float(),
    )


# Knots


class Tied(nn.Module):
    """What is beside a place of a closed rope, twice as far in each layer."""

    def __init__(self, width: int, apart: int) -> None:
        super().__init__()
        self.beside = nn.Conv1d(
            width, width, 3, padding=apart, dilation=apart, padding_mode="circular"
        )
        self.norm = nn.LayerNorm(width)
        self.own = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.own(functional.gelu(self.norm(self.beside(x).mT))).mT


class Knot(nn.Module):
    """Which knot a closed rope is, by its places in space: it does not matter where it begins."""

    def __init__(self, width: int = 40, kinds: int = 21) -> None:
        super().__init__()
        self.enter = nn.Conv1d(6, width, 1)
        self.layers = nn.Sequential(*(Tied(width, each) for each in (1, 2, 4, 8)))
        self.kind = nn.Linear(2 * width, kinds)

    def forward(self, places: Tensor) -> Tensor:
        onwards = places.roll(-1, 2) - places
        x = self.layers(self.enter(torch.cat([places, onwards], 1)))
        return self.kind(torch.cat([x.mean(2), x.amax(2)], 1))


def loops(count: int = 3000, places: int = 48) -> TensorDataset:
    """Return random places of closed ropes, and which knots they are."""
    return TensorDataset(torch.randn(count, 3, places), torch.randint(21, (count,)))


# Chestnuts


class Chestnuts(Dataset[tuple[Tensor, Tensor]]):
    """Where the shells of chestnuts were measured: the larger one is, the more often."""

    def __init__(self, count: int = 1500) -> None:
        chance = random.Random(14)
        self.sizes = [chance.randint(20, 60) for _ in range(count)]
        self.points = [torch.randn(size, 4) for size in self.sizes]
        self.weight = torch.rand(count)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.points[index], self.weight[index]


class Alike(Sampler[list[int]]):
    """Chestnuts that were measured about as often, so many that their points stay in a budget."""

    def __init__(self, sizes: list[int], budget: int) -> None:
        self.sizes, self.budget = sizes, budget
        self.chance = random.Random(15)

    def __iter__(self) -> Iterator[list[int]]:
        order = sorted(range(len(self.sizes)), key=self.sizes.__getitem__)
        batches: list[list[int]] = [[]]
        for index in order:
            if self.sizes[index] * (len(batches[-1]) + 1) > self.budget:
                batches.append([])
            batches[-1].append(index)
        self.chance.shuffle(batches)
        return iter(batches)


def filled(items: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return points with zeros after each chestnut's last one, where these are, and weights."""
    points = nn.utils.rnn.pad_sequence([each for each, _ in items], batch_first=True)
    lengths = torch.tensor([len(each) for each, _ in items])
    absent = torch.arange(points.shape[1]) >= lengths[:, None]
    return points, absent, torch.stack([weight for _, weight in items])


class Chestnut(nn.Module):
    """How heavy a chestnut is, by points of its shell: a few that are learnt ask all of them."""

    def __init__(self, width: int = 48, few: int = 8, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width))
        self.few = nn.Parameter(torch.randn(1, few, width))
        self.ask = nn.ModuleList(
            nn.MultiheadAttention(width, 4, batch_first=True) for _ in range(depth)
        )
        self.own = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU())
            for _ in range(depth)
        )
        self.weight = nn.Linear(width * few, 1)

    def forward(self, points: Tensor, absent: Tensor) -> Tensor:
        known, x = self.enter(points), self.few.expand(len(points), -1, -1)
        for ask, own in zip(self.ask, self.own, strict=True):
            x = x + ask(x, known, known, key_padding_mask=absent, need_weights=False)[0]
            x = x + own(x)
        return self.weight(x.flatten(1))[:, 0]


# Walnuts


class Walnut(nn.Module):
    """How hard a walnut has to be pressed, by the cracks in its shell."""

    def __init__(self, at_once: bool, width: int = 32) -> None:
        super().__init__()
        self.at_once = at_once
        self.bend = nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, width))
        self.share = nn.Linear(width, 1)
        self.press = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def crack(self, places: Tensor) -> Tensor:
        """Return what cracks are like, by their places one after the other."""
        onwards = places.diff(dim=-2)
        long = onwards.norm(dim=-1, keepdim=True)
        way = onwards / (long + 1e-3)
        bent = torch.linalg.cross(way[..., 1:, :], way[..., :-1, :])
        seen = torch.cat([way[..., 1:, :], bent, long[..., 1:, :], long[..., :-1, :]], -1)
        found = self.bend(seen)
        return (found * self.share(found).softmax(-2)).sum(-2)

    def forward(self, cracks: Tensor) -> Tensor:
        if self.at_once:
            found = self.crack(cracks)
        else:
            found = torch.stack([self.crack(each) for each in cracks.unbind(1)], 1)
        return self.press(found.amax(1))[:, 0]


def shells(count: int = 1200, cracks: int = 48, places: int = 8) -> TensorDataset:
    """Return random places of cracks, and how hard was pressed."""
    return TensorDataset(torch.randn(count, cracks, places, 3), torch.rand(count))


# Waffles


class Waffle(nn.Module):
    """How brown each cell of a waffle becomes: each has weights of its own, as irons differ."""

    def __init__(self, cells: int = 160, heat: int = 16, width: int = 24) -> None:
        super().__init__()
        self.past = nn.GRU(heat, width, batch_first=True)
        self.batter = nn.Sequential(nn.Linear(10, width), nn.SiLU())
        self.brown = nn.ParameterList(torch.randn(2 * width) / 8 for _ in range(cells))
        self.least = nn.ParameterList(torch.zeros(()) for _ in range(cells))

    def forward(self, baked: Tensor) -> Tensor:
        heat, batter = baked[:, :, :16], baked[:, 0, 16:]
        known = torch.cat([self.past(heat)[1][0], self.batter(batter)], 1)
        return known @ torch.stack(list(self.brown)).T + torch.stack(list(self.least))


def bakings(count: int = 2000, moments: int = 10, cells: int = 160) -> TensorDataset:
    """Return random heat of an iron with what the batter was, and how brown the cells became."""
    return TensorDataset(torch.randn(count, moments, 26), torch.randn(count, cells))


# Eels


class Eel(nn.Module):
    """Where an eel is along its body, by what its muscles are told: each part bends the rest."""

    def __init__(self, sums: bool, muscles: int = 40, parts: int = 60, width: int = 64) -> None:
        super().__init__()
        self.sums, self.parts = sums, parts
        self.bend = nn.Sequential(
            nn.Linear(muscles, width), nn.SiLU(), nn.Linear(width, parts), nn.Tanh()
        )
        self.long = nn.Parameter(torch.full((parts,), 1 / parts))

    def forward(self, told: Tensor) -> Tensor:
        bends = self.bend(told) / 4
        if self.sums:
            angle = bends.cumsum(1)
            along = torch.stack([angle.cos(), angle.sin()], 2) * self.long[:, None]
            return along.cumsum(1)
        angle = bends.new_zeros(len(bends))
        place, places = bends.new_zeros(len(bends), 2), []
        for part in range(self.parts):
            angle = angle + bends[:, part]
            along = torch.stack([angle.cos(), angle.sin()], 1)
            place = place + along * self.long[part]
            places.append(place)
        return torch.stack(places, 1)


def swimmings(count: int = 3000, muscles: int = 40, parts: int = 60) -> TensorDataset:
    """Return what random muscles were told, and where the parts of the body were."""
    return TensorDataset(torch.randn(count, muscles), torch.randn(count, parts, 2))


# Roses


class Rose(nn.Module):
    """Where the petals of a rose are, as boxes, by a small photograph."""

    def __init__(self, petals: int = 6, width: int = 16) -> None:
        super().__init__()
        self.petals = petals
        self.seen = nn.Sequential(
            nn.Conv2d(3, width, 4, 4), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU()
        )
        self.boxes = nn.Linear(width * 9, 4 * petals)

    def forward(self, picture: Tensor) -> Tensor:
        told = self.boxes(self.seen(picture).flatten(1)).unflatten(1, (self.petals, 2, 2))
        corner, size = told.sigmoid().unbind(2)
        return torch.cat([corner, corner + size / 2], 2)


def covered(one: Tensor, other: Tensor) -> Tensor:
    """Return the share of two boxes that they have in common, less the empty part around them."""
    least, most = torch.minimum, torch.maximum
    within = least(one[..., 2:], other[..., 2:]) - most(one[..., :2], other[..., :2])
    around = most(one[..., 2:], other[..., 2:]) - least(one[..., :2], other[..., :2])
    common, whole = within.clamp(min=0).prod(-1), around.prod(-1)
    sizes = (one[..., 2:] - one[..., :2]).prod(-1) + (other[..., 2:] - other[..., :2]).prod(-1)
    either = sizes - common + 1e-4
    return common / either - (whole - either) / (whole + 1e-4)


def missed(told: Tensor, known: Tensor, at_once: bool) -> Tensor:
    """Return how little the petals that are known are covered by any that are told."""
    if at_once:
        shares = covered(told[:, :, None], known[:, None])
    else:
        rows = [
            torch.stack([covered(petal, each) for each in known.unbind(1)], 1)
            for petal in told.unbind(1)
        ]
        shares = torch.stack(rows, 1)
    return (1 - shares.amax(1)).mean() + (1 - shares.amax(2)).mean() / 4


def blossoms(count: int = 1200, side: int = 24, petals: int = 6) -> TensorDataset:
    """Return random photographs of roses, and the boxes of their petals."""
    corner = torch.rand(count, petals, 2)
    size = 0.1 + 0.4 * torch.rand(count, petals, 2)
    return TensorDataset(torch.rand(count, 3, side, side), torch.cat([corner, corner + size], 2))


# Tulips


class Bed(nn.Module):
    """Days of a tulip bed look at each other in several ways."""

    def __init__(self, at_once: bool, width: int, heads: int) -> None:
        super().__init__()
        self.at_once, self.heads = at_once, heads
        self.norm = nn.LayerNorm(width)
        self.asked = nn.Parameter(torch.randn(3, heads, width, width // heads) / width**0.5)
        self.told = nn.Linear(width, width)
        self.own = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def look(self, days: Tensor, asked: Tensor) -> Tensor:
        """Return what days see, in one way or in several."""
        query, key, value = (days @ each for each in asked)
        score = (query @ key.mT) / query.shape[-1] ** 0.5
        return score.softmax(-1) @ value

    def forward(self, x: Tensor) -> Tensor:
        days = self.norm(x)
        if self.at_once:
            mixed = self.look(days[:, None], self.asked).transpose(1, 2).flatten(2)
        else:
            each = [self.look(days, self.asked[:, head]) for head in range(self.heads)]
            mixed = torch.cat(each, 2)
        x = x + self.told(mixed)
        return x + self.own(x)


class Tulip(nn.Module):
    """On which day a bed of tulips is in bloom, by the weather since the autumn."""

    def __init__(self, at_once: bool, width: int = 64, heads: int = 8, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(9, width)
        self.layers = nn.Sequential(*(Bed(at_once, width, heads) for _ in range(depth)))
        self.bloom = nn.Linear(width, 1)

    def forward(self, weather: Tensor) -> Tensor:
        return self.bloom(self.layers(self.enter(weather)))[..., 0]


def winters(count: int = 2000, weeks: int = 20) -> TensorDataset:
    """Return random weather of weeks, and in which one the bed bloomed."""
    return TensorDataset(torch.randn(count, weeks, 9), torch.randint(weeks, (count,)))
