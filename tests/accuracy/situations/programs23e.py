"""Models and data of the twenty-third round's runs 16 to 30, from brooches to capstans: see
``programs23b.py``."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import IterableDataset, TensorDataset

# Brooches


class Brooch(nn.Module):
    """In which years a brooch was made, by what was measured of its pin, frame and stones."""

    def __init__(self, measured: int = 52, width: int = 448, years: int = 14) -> None:
        super().__init__()
        self.pin, self.frame = nn.Linear(measured, width), nn.Linear(width, width)
        self.normed = nn.LayerNorm(width)
        self.stones, self.years = nn.Linear(width, width), nn.Linear(width, years)

    def forward(self, brooch: Tensor) -> Tensor:
        x = functional.hardswish(self.pin(brooch))
        x = self.normed(x + functional.hardswish(self.frame(x)))
        return self.years(functional.hardswish(self.stones(x)))


def brooches(count: int = 4800, measured: int = 52) -> TensorDataset:
    """Return random measures of brooches, and in which years these were made."""
    return TensorDataset(torch.randn(count, measured), torch.randint(14, (count,)))


class Slow:
    """Weights that follow those of a model slowly: at each so many updates they go half of the way
    to where it is, and it goes back to them. They lie in memory or in files."""

    def __init__(self, model: nn.Module, folder: Path | None, every: int = 5) -> None:
        self.model, self.folder, self.every, self.steps = model, folder, every, 0
        self.kept: dict[str, Tensor] = {}
        for name, weight in model.named_parameters():
            self.keep(name, weight.detach().clone())

    def followed(self) -> None:
        """Count an update, and follow if it is time."""
        self.steps += 1
        if self.steps % self.every == 0:
            for name, weight in self.model.named_parameters():
                slow = self.of(name).lerp_(weight.detach(), 0.5)
                weight.data.copy_(slow)
                self.keep(name, slow)

    def keep(self, name: str, slow: Tensor) -> None:
        """Keep the slow one of a weight."""
        if self.folder:
            np.save(self.folder / f"{name}.npy", slow.numpy())
        else:
            self.kept[name] = slow

    def of(self, name: str) -> Tensor:
        """Return the slow one of a weight."""
        if self.folder:
            return torch.from_numpy(np.load(self.folder / f"{name}.npy"))
        return self.kept[name]


# Parasols


class FoundBack(torch.autograd.Function):
    """What a layer adds to what goes into it, of which only the sum is kept: on the way back it is
    found again what went in, by taking away what the layer adds to the last guess."""

    @staticmethod
    def forward(ctx: Any, layer: nn.Module, turns: int, x: Tensor, *weights: Tensor) -> Tensor:
        ctx.layer, ctx.turns, ctx.weights = layer, turns, weights
        out = x + layer(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:  # type: ignore[override]
        (out,) = ctx.saved_tensors
        x = out
        for _ in range(ctx.turns):
            x = out - ctx.layer(x)
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            added = ctx.layer(x)
        into, *slopes = torch.autograd.grad(added, (x, *ctx.weights), slope)
        return None, None, slope + into, *slopes


class Cloth(nn.Module):
    """What is painted on cloth, less than doubled by what is next to it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        with torch.no_grad():
            self.second.weight.mul_(0.3)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(functional.elu(self.first(x)))


class Parasol(nn.Module):
    """Who painted a parasol; what goes into its cloths is kept, or found back."""

    def __init__(self, kept: bool, width: int = 24, cloths: int = 4, painters: int = 9) -> None:
        super().__init__()
        self.kept = kept
        self.seen = nn.Conv2d(3, width, 4, stride=4)
        self.cloths = nn.ModuleList(Cloth(width) for _ in range(cloths))
        self.painter = nn.Linear(width, painters)

    def forward(self, picture: Tensor) -> Tensor:
        x = self.seen(picture)
        for cloth in self.cloths:
            x = x + cloth(x) if self.kept else FoundBack.apply(cloth, 2, x, *cloth.parameters())
        return self.painter(functional.elu(x).mean((2, 3)))


def parasols(count: int = 960, side: int = 64) -> TensorDataset:
    """Return random pictures of open parasols, and who painted these."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(9, (count,)))


# Pincushions


class Stuffed(nn.Module):
    """What heads of pins have from those that are most like them."""

    def __init__(self, known: int, width: int, near: int) -> None:
        super().__init__()
        self.near = near
        self.here, self.there = nn.Linear(known, width), nn.Linear(known, width)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            near = torch.cdist(x, x).topk(self.near, largest=False).indices
        others = self.there(x)
        many, pins, width = others.shape
        rows = (near + pins * torch.arange(many)[:, None, None]).flatten()
        others = others.flatten(0, 1).index_select(0, rows).view(many, pins, self.near, width)
        return functional.relu(self.here(x) + others.amax(2))


class Pincushion(nn.Module):
    """How full a pincushion is; each layer may be made again on the way back, and all may."""

    def __init__(self, again: bool, width: int = 32, near: int = 6) -> None:
        super().__init__()
        self.again = again
        self.layers = nn.ModuleList([Stuffed(3, width, near), Stuffed(width, width, near)])
        self.layers.append(Stuffed(width, width, near))
        self.full = nn.Linear(width, 1)

    def whole(self, pins: Tensor) -> Tensor:
        """Return what comes out of all layers."""
        x = pins
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.again else layer(x)
        return x

    def forward(self, pins: Tensor) -> Tensor:
        x = checkpoint(self.whole, pins, use_reentrant=False) if self.again else self.whole(pins)
        return self.full(x.amax(1))[:, 0]


def pincushions(count: int = 1200, pins: int = 96) -> TensorDataset:
    """Return random places of pins on round pincushions, and how full these are."""
    places = functional.normalize(torch.randn(count, pins, 3), dim=-1)
    return TensorDataset(places, torch.rand(count))


# Bookends


class Bookend(nn.Module):
    """Of what a bookend is, by the sound when it is knocked at."""

    def __init__(self, width: int = 32, made: int = 6) -> None:
        super().__init__()
        self.knock = nn.Conv1d(1, width, 16, stride=4)
        self.ring = nn.Conv1d(width, width, 5, padding=2)
        self.fade = nn.Conv1d(width, 2 * width, 4, stride=4)
        self.made = nn.Linear(2 * width, made)

    def forward(self, sound: Tensor) -> Tensor:
        x = functional.relu(self.ring(functional.relu(self.knock(sound))))
        return self.made(functional.relu(self.fade(x)).mean(2))


def bookends(count: int = 1600, moments: int = 1024) -> TensorDataset:
    """Return random sounds of bookends, and of what these are."""
    return TensorDataset(torch.randn(count, 1, moments), torch.randint(6, (count,)))


def attacked(model: nn.Module, others: Tensor, made: Tensor, turns: int = 4) -> float:
    """Return how many are still told right after the worst small change of their sounds."""
    change = torch.empty_like(others).uniform_(-0.05, 0.05)
    for _ in range(turns):
        change.requires_grad_()
        wrong = functional.cross_entropy(model(others + change), made)
        (slope,) = torch.autograd.grad(wrong, change)
        change = (change.detach() + 0.02 * slope.sign()).clamp_(-0.05, 0.05)
    with torch.no_grad():
        return float((model(others + change).argmax(1) == made).float().mean())


# Kimonos


class Kimono(nn.Module):
    """Where a kimono is among others, by its pattern: those of one house lie together."""

    def __init__(self, width: int = 24, place: int = 32) -> None:
        super().__init__()
        self.dyed = nn.Conv2d(3, width, 4, stride=4)
        self.woven = nn.Conv2d(width, width, 3, padding=1)
        self.place = nn.Linear(width, place)

    def forward(self, pattern: Tensor) -> Tensor:
        x = functional.mish(self.woven(functional.mish(self.dyed(pattern))))
        return functional.normalize(self.place(x.mean((2, 3))), dim=1)


def kimonos(count: int = 1600, side: int = 32) -> TensorDataset:
    """Return random patterns of kimonos, and of which of eight houses these are."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(8, (count,)))


def hardest_read(far: Tensor, houses: Tensor) -> tuple[Tensor, Tensor]:
    """Return the farthest of the same house and the nearest of another one, one by one."""
    same, other = list(range(len(far))), list(range(len(far)))
    for one in range(len(far)):
        most, least = -1.0, 9.0
        for two in range(len(far)):
            apart = far[one, two].item()
            if houses[one] == houses[two]:
                if apart > most:
                    same[one], most = two, apart
            elif apart < least:
                other[one], least = two, apart
    return torch.tensor(same), torch.tensor(other)


def hardest(far: Tensor, houses: Tensor) -> tuple[Tensor, Tensor]:
    """Return the farthest of the same house and the nearest of another one."""
    one_house = houses[:, None] == houses
    same = far.masked_fill(~one_house, -1.0).argmax(1)
    return same, far.masked_fill(one_house, 9.0).argmin(1)


# Chandeliers


class Chandelier(nn.Module):
    """How bright a room is under a chandelier, by light that goes from crystal to crystal."""

    def __init__(self, known: int = 6, width: int = 32, bounces: int = 10) -> None:
        super().__init__()
        self.bounces = bounces
        self.lit, self.passed = nn.Linear(known, width), nn.Linear(width, width)
        self.bright = nn.Linear(width, 1)

    def forward(self, crystals: Tensor, beside: Tensor, ask: bool) -> Tensor:
        lit = self.lit(crystals)
        light = lit.tanh()
        for _ in range(self.bounces):
            before, light = light, (lit + self.passed(beside @ light)).tanh()
            if ask and settled(before, light):
                break
        return self.bright(light.mean(1))[:, 0]


@torch.no_grad()
def settled(before: Tensor, light: Tensor, least: float = 1e-7) -> bool:
    """Return whether the light of every chandelier has settled."""
    changes = (light - before).abs().amax((1, 2))
    return sum(change.item() < least for change in changes) == len(changes)


def chandeliers(count: int = 1600, crystals: int = 20, known: int = 6) -> TensorDataset:
    """Return random crystals of chandeliers, which are beside which, and how bright it is."""
    beside = (torch.rand(count, crystals, crystals) < 0.2).float()
    beside = beside / beside.sum(2, keepdim=True).clamp_min(1)
    return TensorDataset(torch.randn(count, crystals, known), beside, torch.rand(count))


# Medallions


class Medallion(nn.Module):
    """Who is on a medallion, by how high it is around its rim, ring by ring."""

    def __init__(self, rings: int = 8, width: int = 20, who: int = 20) -> None:
        super().__init__()
        self.relief = nn.Conv1d(rings, width, 5, padding=2, padding_mode="circular")
        self.coarser = nn.Conv1d(width, width, 4, stride=4)
        self.who = nn.Linear(width, who)

    def forward(self, rings: Tensor) -> Tensor:
        x = functional.gelu(self.relief(rings))
        return self.who(functional.gelu(self.coarser(x)).amax(2))


def medallions(count: int = 2560, around: int = 32) -> TensorDataset:
    """Return random reliefs of medallions, and who is on these."""
    return TensorDataset(torch.randn(count, 8, around), torch.randint(20, (count,)))


def counted(told: Tensor, who: Tensor, seen: Tensor, near: Tensor) -> None:
    """Count who was taken for whom, and how often the first, second or third guess was right."""
    guesses = told.topk(3).indices
    for number in range(len(who)):
        seen[who[number], guesses[number, 0]] += 1
        for place in range(3):
            if guesses[number, place] == who[number]:
                near[place] += 1


# Skylights


class Pane(nn.Module):
    """What parts of the sky have from each other: attention, and a layer."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.asked, self.answered = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wider, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        many, parts, width = x.shape
        asked = self.asked(self.first(x)).view(many, parts, 3, self.heads, width // self.heads)
        q, k, v = asked.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.answered(seen)
        return x + self.back(functional.relu(self.wider(self.second(x))))


class Skylight(nn.Module):
    """How light a room is below a skylight, by a picture of the sky."""

    def __init__(self, width: int = 160, panes: int = 2, parts: int = 64) -> None:
        super().__init__()
        self.parts = nn.Linear(3 * 8 * 8, width)
        self.where = nn.Parameter(0.02 * torch.randn(parts, width))
        self.panes = nn.Sequential(*(Pane(width) for _ in range(panes)))
        self.light = nn.Linear(width, 1)

    def forward(self, sky: Tensor) -> Tensor:
        x = self.panes(self.parts(sky) + self.where)
        return self.light(x.mean(1))[:, 0]


def skylights(count: int = 480, parts: int = 64) -> TensorDataset:
    """Return random skies in parts of 8 by 8 points, and how light it is below."""
    return TensorDataset(torch.rand(count, parts, 3 * 8 * 8), torch.rand(count))


# Paperweights


class Paperweight(nn.Module):
    """How likely places of bubbles in a paperweight are: half of what is known of a bubble moves
    and stretches the other half, in turns."""

    def __init__(self, known: int = 8, width: int = 224, turns: int = 3) -> None:
        super().__init__()
        half = known // 2
        self.glass = nn.ModuleList(
            nn.Sequential(
                nn.Linear(half, width),
                nn.ReLU(),
                nn.Linear(width, width),
                nn.ReLU(),
                nn.Linear(width, known),
            )
            for _ in range(turns)
        )

    def forward(self, bubbles: Tensor) -> Tensor:
        one, other = bubbles.chunk(2, -1)
        stretched = torch.zeros(())
        for glass in self.glass:
            move, stretch = glass(one).chunk(2, -1)
            stretch = stretch.tanh()
            one, other = other * stretch.exp() + move, one
            stretched = stretched + stretch.sum(-1)
        return 0.5 * (one.square() + other.square()).sum(-1) - stretched


def paperweights(count: int = 480, bubbles: int = 256, known: int = 8) -> TensorDataset:
    """Return random bubbles in paperweights."""
    return TensorDataset(torch.randn(count, bubbles, known))


# Epaulettes


class Epaulette(nn.Module):
    """Of which rank an epaulette is, thread by thread of its fringe, by those around it."""

    def __init__(self, measured: int = 12, width: int = 96, ranks: int = 7) -> None:
        super().__init__()
        self.thread = nn.Conv1d(measured, width, 5, padding=2)
        self.cords = nn.ModuleList(
            nn.Conv1d(width, width, 5, padding=2 * far, dilation=far) for far in (2, 4)
        )
        self.rank = nn.Conv1d(width, ranks, 1)

    def forward(self, fringe: Tensor) -> Tensor:
        x = functional.relu(self.thread(fringe))
        for cord in self.cords:
            x = x + functional.relu(cord(x))
        return self.rank(x)


def epaulettes(count: int = 480, threads: int = 256, measured: int = 12) -> TensorDataset:
    """Return random fringes of epaulettes, and the rank at each thread."""
    return TensorDataset(torch.randn(count, measured, threads), torch.randint(7, (count, threads)))


# Weathercocks


class Weathercock(nn.Module):
    """Where a weathercock points next, by how the wind was at places around it."""

    def __init__(self, known: int = 8, width: int = 176) -> None:
        super().__init__()
        self.wind, self.gusts = nn.Linear(known, width), nn.Linear(width, width)
        self.points = nn.Linear(width, 2)

    def forward(self, wind: Tensor) -> Tensor:
        x = functional.silu(self.gusts(functional.silu(self.wind(wind))))
        return functional.normalize(self.points(x.mean(1)), dim=1)


def weathercocks(count: int = 6400, places: int = 24, known: int = 8) -> TensorDataset:
    """Return random winds at places, and where weathercocks pointed then."""
    pointed = functional.normalize(torch.randn(count, 2), dim=1)
    return TensorDataset(torch.randn(count, places, known), pointed)


# Tureens


class Tureen(nn.Module):
    """For how many guests a tureen is, by its outline, from its foot to the knob of its lid."""

    def __init__(self, known: int = 4, width: int = 64) -> None:
        super().__init__()
        self.belly = nn.LSTM(known, width, batch_first=True)
        self.guests = nn.Linear(width, 1)

    def forward(self, outline: Tensor) -> Tensor:
        return self.guests(self.belly(outline)[0].mean(1))[:, 0]


class Files(IterableDataset[tuple[Tensor, Tensor]]):
    """Tureens as they were filed: six in a file, and some files in a batch."""

    def __init__(self, in_batch: int, files: int = 480, points: int = 18) -> None:
        self.in_batch = in_batch
        self.files = [(torch.randn(6, points, 4), torch.rand(6)) for _ in range(files)]

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        order = iter(torch.randperm(len(self.files)).tolist())
        while taken := [self.files[each] for each in itertools.islice(order, self.in_batch)]:
            outlines, guests = zip(*taken, strict=True)
            yield torch.cat(outlines), torch.cat(guests)


# Gargoyles


class Gargoyle(nn.Module):
    """Through which mouth rain goes, by what each one of a row of gargoyles is like; each has a
    layer of its own."""

    def __init__(self, at_once: bool, mouths: int = 12, known: int = 24, width: int = 48) -> None:
        super().__init__()
        self.at_once = at_once
        self.stone = nn.Linear(known, width)
        self.mouths = nn.Parameter(torch.randn(mouths, width, width) / width**0.5)
        self.edges = nn.Parameter(torch.zeros(mouths, 1, width))
        self.rain = nn.Linear(width, 1)

    def forward(self, row: Tensor) -> Tensor:
        x = functional.relu(self.stone(row)).transpose(0, 1)
        if self.at_once:
            x = torch.baddbmm(self.edges, x, self.mouths)
        else:
            each = zip(x.unbind(), self.mouths.unbind(), self.edges.unbind(), strict=True)
            x = torch.stack([torch.addmm(edge, one, mouth) for one, mouth, edge in each])
        return self.rain(functional.relu(x))[..., 0].T


def gargoyles(count: int = 6400, mouths: int = 12, known: int = 24) -> TensorDataset:
    """Return random rows of gargoyles, and through which mouth most rain goes."""
    return TensorDataset(torch.randn(count, mouths, known), torch.randint(mouths, (count,)))


# Cufflinks


class Cufflink(nn.Module):
    """Where a cufflink is among others, by all points of a picture of it: pairs lie together."""

    def __init__(self, side: int = 64, place: int = 160) -> None:
        super().__init__()
        self.place = nn.Linear(side * side, place)

    def forward(self, picture: Tensor) -> Tensor:
        return torch.tanh(self.place(picture.flatten(-2)))


def cufflinks(count: int = 900, side: int = 64) -> TensorDataset:
    """Return random pictures of left and right cufflinks, and whether these are a pair."""
    pairs = 2.0 * torch.randint(2, (count,)) - 1
    return TensorDataset(torch.randn(count, 2, side, side), pairs)


def cores_of(mask: int) -> set[int]:
    """Return the cores whose bits are set in a mask."""
    return {core for core in range(mask.bit_length()) if mask >> core & 1}


# Capstans


class Capstan(nn.Module):
    """How much rope a capstan hauls next, by how fast it was turned and how hard it was to turn."""

    def __init__(self, known: int = 5, width: int = 96) -> None:
        super().__init__()
        self.turned = nn.Conv1d(known, width, 5, padding=2)
        self.hauled = nn.Conv1d(width, width, 3, padding=1)
        self.rope = nn.Linear(width, 1)

    def forward(self, turned: Tensor) -> Tensor:
        x = functional.softplus(self.hauled(functional.softplus(self.turned(turned))))
        return self.rope(x[..., -8:].mean(2))[:, 0]


def capstans(count: int = 1600, moments: int = 80, known: int = 5) -> TensorDataset:
    """Return random turns of capstans, and how much rope came in next."""
    return TensorDataset(torch.randn(count, known, moments), torch.rand(count))
