"""Models and data of the twenty-second round's runs 16 to 30, from bathtubs to turbans: see
``programs22b.py``."""

import io
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from scipy import optimize, special
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.utils.data import Sampler, TensorDataset

# Bathtubs


class Moment(nn.Module):
    """What flows out of a bathtub in a moment, and how warm the rest of it is then."""

    def __init__(self) -> None:
        super().__init__()
        self.drain, self.cools = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.tensor(0.05))

    def forward(self, level: Tensor, warm: Tensor, tap: Tensor) -> tuple[Tensor, Tensor]:
        out = functional.softplus(self.drain) * (level.clamp_min(0) + 0.01).sqrt()
        share = tap / (level + tap + 0.5)
        warm = warm + share * (1 - warm) - self.cools * warm
        return (level + tap - 0.1 * out).clamp(0, 4), warm


class Bathtub(nn.Module):
    """How full and how warm bathtubs are in the end, by how their taps were turned."""

    def __init__(self, turns: int = 48, moments: int = 12, width: int = 144) -> None:
        super().__init__()
        self.turned, self.hands = nn.Linear(turns, width), nn.Linear(width, width)
        self.taps = nn.Linear(width, moments)
        self.moment = Moment()
        self.rest = nn.Linear(2, 2)

    def forward(self, turned: Tensor) -> Tensor:
        x = functional.relu(self.hands(functional.relu(self.turned(turned))))
        taps = self.taps(x).sigmoid()
        level = warm = torch.zeros(len(turned))
        for tap in taps.unbind(1):
            level, warm = self.moment(level, warm, tap)
        return self.rest(torch.stack([level, warm], 1))


def bathtubs(count: int = 4800, turns: int = 48) -> TensorDataset:
    """Return how taps were turned at random, and how full and warm bathtubs were then."""
    return TensorDataset(torch.randn(count, turns), torch.rand(count, 2))


# Sandals


class Sandal(nn.Module):
    """For whom a sandal is made, by what was measured of its straps."""

    def __init__(self, measured: int = 10, width: int = 112, whose: int = 7) -> None:
        super().__init__()
        self.strap = nn.Linear(measured, width)
        self.sewn = nn.Linear(width, width)
        self.sole = nn.Linear(width, width)
        self.whose = nn.Linear(width, whose)

    def forward(self, straps: Tensor) -> Tensor:
        x = functional.gelu(self.strap(straps))
        x = functional.gelu(self.sewn(x)).mean(-2)
        return self.whose(functional.gelu(self.sole(x)))


def sandals(count: int = 2400, straps: int = 18, measured: int = 10) -> TensorDataset:
    """Return random straps of sandals, and for whom these are made."""
    return TensorDataset(torch.randn(count, straps, measured), torch.randint(7, (count,)))


def weighed(model: nn.Module, straps: Tensor, whose: Tensor, points: int = 8) -> Tensor:
    """Return how much each strap says for whom it is: slopes from no sandal to the whole one."""
    shares = (torch.arange(points) + 0.5) / points
    between = (shares[:, None, None, None] * straps).requires_grad_()
    told = model(between).gather(2, whose.expand(points, -1)[..., None]).sum()
    (slopes,) = torch.autograd.grad(told, between)
    return (slopes.mean(0) * straps).sum(2).abs().mean(0)


# Palettes


class Palette(nn.Module):
    """Who mixed a palette, by its dabs of paint: where they lie and of what colour they are."""

    def __init__(self, known: int = 6, width: int = 96, painters: int = 12) -> None:
        super().__init__()
        self.dab = nn.Linear(known, width)
        self.mixed, self.beside = nn.Linear(width, width), nn.Linear(width, width)
        self.painter = nn.Linear(2 * width, painters)

    def forward(self, dabs: Tensor) -> Tensor:
        x = functional.relu(self.dab(dabs))
        x = functional.relu(self.mixed(x) + self.beside(x.mean(1, keepdim=True)))
        return self.painter(torch.cat([x.mean(1), x.amax(1)], 1))


def palettes(count: int = 2400, dabs: int = 20, known: int = 6) -> TensorDataset:
    """Return random dabs on palettes, and who mixed them."""
    return TensorDataset(torch.randn(count, dabs, known), torch.randint(12, (count,)))


def tempered(told: np.ndarray, painters: np.ndarray) -> tuple[float, float]:
    """Return by what to divide so that it is as sure as it is right, and how far off it then is."""
    rows = np.arange(len(told))

    def unlikely(hot: float) -> float:
        return float(-special.log_softmax(told / np.exp(hot), 1)[rows, painters].mean())

    found = optimize.minimize_scalar(unlikely, bounds=(-3, 3), method="bounded")
    share = special.softmax(told / np.exp(found.x), 1)
    sure, right = share.max(1), share.argmax(1) == painters
    bins = np.minimum((sure * 12).astype(int), 11)
    off = np.bincount(bins, sure - right, 12)
    return float(np.exp(found.x)), float(np.abs(off).sum() / len(told))


# Easels


class Easel(nn.Module):
    """How far the picture on an easel is painted."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.sketch = nn.Conv2d(3, width, 4, stride=2, padding=1)
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, 2 * width, 4, stride=2, padding=1)
        self.far = nn.Linear(2 * width, 1)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.leaky_relu(self.sketch(picture), 0.1)
        x = functional.leaky_relu(self.first(x), 0.1)
        x = functional.leaky_relu(self.second(x), 0.1)
        return self.far(x.mean((2, 3)))[:, 0]


def easels(count: int = 960, side: int = 32) -> TensorDataset:
    """Return random pictures on easels, and how far they are painted."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.rand(count))


def around(model: nn.Module, others: Tensor, far: Tensor, places: int = 7) -> list[float]:
    """Return how wrong the model is at places along a random way through its weights."""
    weights = {name: each.detach() for name, each in model.named_parameters()}
    ways = {name: torch.randn_like(each) for name, each in weights.items()}
    ways = {name: way * (weights[name].norm() / way.norm()) for name, way in ways.items()}
    wrong = []
    for share in torch.linspace(-1, 1, places).tolist():
        moved = {name: each + share * ways[name] for name, each in weights.items()}
        told = functional_call(model, moved, (others,))
        wrong.append(functional.mse_loss(told, far).item())
    return wrong


# Envelopes


class Envelope(nn.Module):
    """Five figures of the place to which an envelope goes."""

    def __init__(self, width: int = 16, figures: int = 5) -> None:
        super().__init__()
        self.figures = figures
        self.seen = nn.Conv2d(1, width, 4, stride=2, padding=1)
        self.strokes = nn.Conv2d(width, width, 3, padding=1)
        self.shapes = nn.Conv2d(width, 2 * width, 4, stride=2, padding=1)
        self.place = nn.Linear(2 * width * 16, 10 * figures)

    def forward(self, envelope: Tensor) -> Tensor:
        x = functional.relu(self.strokes(functional.relu(self.seen(envelope))))
        x = functional.adaptive_avg_pool2d(functional.relu(self.shapes(x)), (2, 8))
        return self.place(x.flatten(1)).unflatten(1, (10, self.figures))


def envelopes(count: int = 960, high: int = 24, wide: int = 64) -> TensorDataset:
    """Return random envelopes, and the figures that are on them."""
    return TensorDataset(torch.rand(count, 1, high, wide), torch.randint(10, (count, 5)))


def posted(envelope: Tensor, told: Tensor, wrong: float, step: int, box: Path) -> None:
    """Put a letter about an update into a box, with three of its envelopes and what was read."""
    letter = EmailMessage()
    letter["From"], letter["To"] = "training@example.org", "sorters@example.org"
    letter["Subject"] = f"update {step}: {wrong:.4f}"
    figures = ["".join(map(str, each)) for each in told.tolist()]
    letter.set_content("\n".join(f"envelope {n}: {each}" for n, each in enumerate(figures)))
    for number, each in enumerate(envelope[:3]):
        picture = Image.fromarray((255 * each[0]).to(torch.uint8).numpy())
        file = io.BytesIO()
        picture.save(file, "PNG")
        name = f"{step}-{number}.png"
        letter.add_attachment(file.getvalue(), maintype="image", subtype="png", filename=name)
    with box.open("ab") as post:
        post.write(b"From training\n" + letter.as_bytes() + b"\n")


# Typewriters


class Typewriter(nn.Module):
    """Which keys of a typewriter were struck, by the sound of each stroke and those beside it."""

    def __init__(self, heard: int = 16, width: int = 32, keys: int = 40) -> None:
        super().__init__()
        self.stroke = nn.Conv1d(heard, width, 3, padding=1)
        self.hammer = nn.Linear(width, width)
        self.key = nn.Linear(width, keys)

    def forward(self, strokes: Tensor) -> Tensor:
        x = functional.silu(self.stroke(strokes)).transpose(1, 2)
        return self.key(functional.silu(self.hammer(x)))


def typewriters(count: int = 2400, strokes: int = 24, keys: int = 40) -> TensorDataset:
    """Return random sounds of strokes, and the keys that were struck."""
    struck = torch.randint(keys, (count, strokes))
    return TensorDataset(torch.randn(count, 16, strokes), struck)


def heeded(struck: Any, told: Any, heed: list[float]) -> None:
    """Heed keys more that were told wrong, and others a little less."""
    for line, said in zip(struck, told, strict=True):
        for key, other in zip(line, said, strict=True):
            if key == other:
                heed[int(key)] = max(0.5, 0.99 * heed[int(key)])
            else:
                heed[int(key)] = min(2.0, 1.01 * heed[int(key)])


# Hedges


class Hedge(nn.Module):
    """How a hedge was cut, by a picture of it."""

    def __init__(self, width: int = 40, cuts: int = 8) -> None:
        super().__init__()
        self.leaves = nn.Conv2d(3, width, 4, stride=2, padding=1)
        self.twigs = nn.Conv2d(width, width, 5, padding=2)
        self.gaps = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.cut = nn.Linear(2 * width, cuts)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.relu(self.leaves(picture))
        x = functional.relu(self.gaps(functional.relu(self.twigs(x))))
        return self.cut(x.mean((2, 3)))


def hedges(count: int = 320, side: int = 56) -> TensorDataset:
    """Return random pictures of hedges, and how these were cut."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(8, (count,)))


# Silos


class Silo(nn.Module):
    """How damp grain is at places of a silo, by how like each place is to many that are known."""

    def __init__(self, measured: int = 8, width: int = 160, known: int = 320) -> None:
        super().__init__()
        self.place, self.dry = nn.Linear(measured, width), nn.Linear(width, width)
        self.known = nn.Parameter(torch.randn(known, width))
        self.grain, self.damp = nn.Linear(known, width), nn.Linear(width, 1)

    def forward(self, places: Tensor) -> Tensor:
        x = self.dry(functional.relu(self.place(places)))
        like = functional.normalize(x, dim=-1) @ functional.normalize(self.known, dim=-1).T
        x = functional.relu(self.grain(torch.exp(4 * like - 4)))
        return self.damp(x)[..., 0]


def silos(count: int = 480, places: int = 320, measured: int = 8) -> TensorDataset:
    """Return random measures at places of silos, and how damp the grain is there."""
    return TensorDataset(torch.randn(count, places, measured), torch.rand(count, places))


# Taps


class Tap(nn.Module):
    """Which washer of a tap is worn, by its sound: of two answers the larger one counts."""

    def __init__(self, tones: int = 20, width: int = 176, depth: int = 2, worn: int = 6) -> None:
        super().__init__()
        self.tones = nn.Linear(tones, width)
        self.washers = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.worn = nn.Linear(width, worn)

    def forward(self, moments: Tensor) -> Tensor:
        x = self.tones(moments)
        for washer in self.washers:
            x = torch.maximum(*washer(x).chunk(2, -1))
        return self.worn(x.mean(1))


def taps(count: int = 480, moments: int = 256, tones: int = 20) -> TensorDataset:
    """Return random sounds of taps, and what is worn in them."""
    return TensorDataset(torch.randn(count, moments, tones), torch.randint(6, (count,)))


# Sickles


class Sickle(nn.Module):
    """How sharp a sickle is at points of its blade: waves, and products of them."""

    def __init__(self, known: int = 6, width: int = 192, depth: int = 2) -> None:
        super().__init__()
        self.waves = nn.ModuleList(nn.Linear(known, width) for _ in range(depth + 1))
        self.blades = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.sharp = nn.Linear(width, 1)

    def forward(self, points: Tensor) -> Tensor:
        x = self.waves[0](points).sin()
        for wave, blade in zip(list(self.waves)[1:], self.blades, strict=True):
            x = blade(x) * wave(points).sin()
        return self.sharp(x)[..., 0]


def sickles(count: int = 480, points: int = 384, known: int = 6) -> TensorDataset:
    """Return random points of sickles, and how sharp these are there."""
    return TensorDataset(torch.randn(count, points, known), torch.rand(count, points))


# Scrolls


class Scroll(nn.Module):
    """In which hand a scroll is written that nobody can unroll: by a scan of it."""

    def __init__(self, width: int = 24, hands: int = 5) -> None:
        super().__init__()
        self.scan = nn.Conv3d(1, width, 4, stride=2, padding=1)
        self.layers = nn.Conv3d(width, width, 3, padding=1)
        self.ink = nn.Conv3d(width, width, 3, padding=1)
        self.hand = nn.Linear(width, hands)

    def forward(self, scan: Tensor) -> Tensor:
        x = functional.relu(self.scan(scan))
        x = functional.relu(self.ink(functional.relu(self.layers(x))))
        return self.hand(x.mean((2, 3, 4)))


def scrolls(count: int = 240, deep: int = 16, side: int = 32) -> TensorDataset:
    """Return random scans of scrolls, and in which hand these are written."""
    return TensorDataset(torch.rand(count, 1, deep, side, side), torch.randint(5, (count,)))


# Scythes


class Scythe(nn.Module):
    """What of the strokes of a scythe is noise, by how much noise there is."""

    def __init__(self, known: int = 12, width: int = 208, depth: int = 3) -> None:
        super().__init__()
        self.stroke, self.noisy = nn.Linear(known, width), nn.Linear(1, width)
        self.sweeps = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.noise = nn.Linear(width, known)

    def forward(self, strokes: Tensor, noisy: Tensor) -> Tensor:
        x = self.stroke(strokes) + self.noisy(noisy)
        for sweep in self.sweeps:
            x = functional.silu(sweep(x))
        return self.noise(x)


def scythes(count: int = 480, strokes: int = 256, known: int = 12) -> TensorDataset:
    """Return random strokes of scythes."""
    return TensorDataset(torch.randn(count, strokes, known))


# Orchards


class Orchard(nn.Module):
    """Where in an orchard which of three trees stand, as seen from above in four colours."""

    def __init__(self, width: int = 40, trees: int = 3) -> None:
        super().__init__()
        self.above = nn.Conv2d(4, width, 4, stride=2, padding=1)
        self.crowns = nn.Conv2d(width, width, 3, padding=1)
        self.rows = nn.Conv2d(width, width, 3, padding=1)
        self.where = nn.Conv2d(width, 4 * trees, 3, padding=1)

    def forward(self, seen: Tensor) -> Tensor:
        x = functional.relu(self.above(seen))
        x = x + functional.relu(self.rows(functional.relu(self.crowns(x))))
        return functional.pixel_shuffle(self.where(x), 2)


def orchards(count: int = 288, side: int = 64) -> TensorDataset:
    """Return random pictures of orchards, and where trees stand in them."""
    trees = (torch.rand(count, 3, side, side) < 0.1).float()
    return TensorDataset(torch.rand(count, 4, side, side), trees)


# Swings


class Swing(nn.Module):
    """How high a swing goes next, by how who sits on it moved."""

    def __init__(self, moved: int = 7, width: int = 104) -> None:
        super().__init__()
        self.legs = nn.GRU(moved, width, batch_first=True)
        self.high = nn.Linear(width, 1)

    def forward(self, moments: Tensor) -> Tensor:
        return self.high(self.legs(moments)[0][:, -1])[:, 0]


def swings(count: int = 3200, moments: int = 28, moved: int = 7) -> TensorDataset:
    """Return random moves on swings, and how high these went."""
    return TensorDataset(torch.randn(count, moments, moved), torch.rand(count))


def fitting(most: int, room: int, keeps: Callable[[int], int]) -> int:
    """Return the largest batch that fits: most, or half of it, or half of that, and so on."""
    while most > 1 and keeps(most) > room:
        most //= 2
    return most


# Turbans


class Turban(nn.Module):
    """Of which place a turban is, by its windings: how wide, how steep and of what colour."""

    def __init__(self, measured: int = 9, width: int = 144, places: int = 8) -> None:
        super().__init__()
        self.winding, self.over = nn.Linear(measured, width), nn.Linear(width, width)
        self.normed = nn.LayerNorm(width)
        self.tucked, self.place = nn.Linear(width, width), nn.Linear(width, places)

    def forward(self, windings: Tensor) -> Tensor:
        x = functional.relu(self.winding(windings))
        x = self.normed(x + functional.relu(self.over(x)))
        return self.place(functional.relu(self.tucked(x.amax(1))))


def turbans(count: int = 3200, windings: int = 16, measured: int = 9) -> TensorDataset:
    """Return random windings of turbans, and of which place these are."""
    return TensorDataset(torch.randn(count, windings, measured), torch.randint(8, (count,)))


class More(Sampler[list[int]]):
    """Batches that begin small, and get one more at each so many updates."""

    def __init__(self, many: int, first: int, every: int, most: int) -> None:
        self.many, self.batch, self.every, self.most, self.given = many, first, every, most, 0

    def __iter__(self) -> Iterator[list[int]]:
        left = torch.randperm(self.many).tolist()
        while len(left) >= self.batch:
            batch, left = left[: self.batch], left[self.batch :]
            yield batch
            self.given += 1
            if self.given % self.every == 0:
                self.batch = min(self.batch + 1, self.most)
