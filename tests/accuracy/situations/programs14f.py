"""Models and data of the fourteenth round's runs from foghorns to watermills: see
``programs14c.py``."""

import math

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Foghorns


class Foghorn(nn.Module):
    """Where a foghorn is and how far, by what three microphones hear: learnt waves, their power."""

    def __init__(self, frame: int = 256, waves: int = 128, width: int = 256) -> None:
        super().__init__()
        self.frame = frame
        self.waves = nn.Linear(frame, 2 * waves, bias=False)
        self.both = nn.Sequential(
            nn.LayerNorm(3 * waves),
            nn.Linear(3 * waves, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
        )
        self.where = nn.Linear(width, 3)

    def forward(self, heard: Tensor) -> Tensor:
        real, other = self.waves(heard.unfold(2, self.frame, self.frame // 4)).chunk(2, 3)
        power = (real.square() + other.square() + 1e-3).log()
        return self.where(self.both(power.transpose(1, 2).flatten(2)).mean(1))


def coasts(count: int = 600, moments: int = 2048) -> TensorDataset:
    """Return random sound of three microphones, the direction as two numbers and how far."""
    angle = 2 * math.pi * torch.rand(count)
    where = torch.stack([angle.sin(), angle.cos(), torch.rand(count)], 1)
    return TensorDataset(torch.randn(count, 3, moments), where)


# Dolls


class Dolls(Dataset[tuple[Tensor, Tensor]]):
    """Faces of dolls, turned a little each time and made smaller, lighter or darker."""

    def __init__(self, count: int = 300, side: int = 104, seen: int = 48) -> None:
        chance = np.random.default_rng(71)
        rows = chance.integers(0, 256, (count, side, side, 3), np.uint8)
        self.faces = [Image.fromarray(each) for each in rows]
        self.chance, self.seen = np.random.default_rng(73), seen

    def __len__(self) -> int:
        return len(self.faces)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        turned = self.faces[index].rotate(self.chance.uniform(-9, 9), Image.Resampling.BICUBIC)
        small = turned.resize((self.seen, self.seen), Image.Resampling.LANCZOS)
        light = np.float32(self.chance.uniform(0.7, 1.3) / 128)
        face = np.asarray(small, np.float32).transpose(2, 0, 1) * light - np.float32(1)
        return torch.from_numpy(face), torch.tensor(index % 11)


class Doll(nn.Module):
    """Who made a doll: narrow convolutions whose outputs are all kept for those after them."""

    def __init__(self, start: int = 24, growth: int = 16, depth: int = 4, makers: int = 11) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, start, 4, stride=2, padding=1)
        self.layers = nn.ModuleList(
            nn.Conv2d(start + each * growth, growth, 3, padding=1) for each in range(depth)
        )
        self.maker = nn.Linear(start + depth * growth, makers)

    def forward(self, face: Tensor) -> Tensor:
        x = functional.relu(self.enter(face))
        for layer in self.layers:
            x = torch.cat([x, functional.relu(layer(x))], 1)
        return self.maker(x.mean((2, 3)))


# Thistles


class Thistle(nn.Module):
    """Where the seeds of a thistle come down, by the wind around it: narrowed, and wide again."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(4, width, 3, padding=1), nn.ELU())
        self.deep = nn.Sequential(
            nn.AvgPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ELU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ELU(),
            nn.ConvTranspose2d(2 * width, width, 2, stride=2),
        )
        self.seeds = nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, wind: Tensor) -> Tensor:
        x = self.down(wind)
        return self.seeds(torch.cat([x, self.deep(x)], 1)).flatten(1)


def winds(count: int = 500, side: int = 32) -> TensorDataset:
    """Return random winds and heights of the land, and the place of most of the seeds."""
    return TensorDataset(torch.randn(count, 4, side, side), torch.randint(side**2, (count,)))


# Saws


class Saw(nn.Module):
    """How blunt the teeth of a saw are, by its swinging: each tooth's turn is a row."""

    def __init__(self, turn: int = 64, width: int = 96, depth: int = 2) -> None:
        super().__init__()
        self.turn = turn
        self.tooth = nn.Linear(2 * turn, width)
        self.along = nn.ModuleList(nn.Linear(24, 24) for _ in range(depth))
        self.across = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.blunt = nn.Linear(width, 1)

    def forward(self, swinging: Tensor) -> Tensor:
        x = self.tooth(swinging.unflatten(2, (-1, self.turn)).transpose(1, 2).flatten(2))
        for along, across in zip(self.along, self.across, strict=True):
            x = x + functional.silu(along(x.mT).mT)
            x = x + functional.silu(across(x))
        return self.blunt(x)[..., 0]


def blades(count: int = 1500, teeth: int = 24, turn: int = 64) -> TensorDataset:
    """Return random swinging in two ways, and how blunt each tooth is."""
    return TensorDataset(torch.randn(count, 2, teeth * turn), torch.rand(count, teeth))


# Ladders


class Ladder(nn.Module):
    """Which rung comes next, by a shoe's movements: what is kept fades as the movements say."""

    def __init__(self, width: int = 136, rungs: int = 12) -> None:
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.fades, self.new = nn.Linear(width, width), nn.Linear(width, width)
        self.rung = nn.Linear(width, rungs)

    def forward(self, moved: Tensor) -> Tensor:
        x = self.enter(moved).tanh()
        fades, new = self.fades(x).sigmoid().unbind(1), self.new(x).unbind(1)
        kept = torch.zeros_like(new[0])
        for share, each in zip(fades, new, strict=True):
            kept = torch.lerp(kept, each, share)
        return self.rung(kept)


def climbs(count: int = 4000, moments: int = 12) -> TensorDataset:
    """Return random movements of shoes, and the rungs."""
    return TensorDataset(torch.randn(count, moments, 6), torch.randint(12, (count,)))


# Millet


class Heeding(nn.Module):
    """Lets each day of a field look at the days before it."""

    def __init__(self, written: bool, width: int, heads: int) -> None:
        super().__init__()
        self.written, self.heads = written, heads
        self.asked, self.told = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        asked, held, told = (
            each.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for each in self.asked(self.norm(x)).chunk(3, 2)
        )
        if self.written:
            days = torch.arange(x.shape[1])
            later = days[:, None] < days
            scores = torch.einsum("bhqd,bhkd->bhqk", asked, held) / asked.shape[3] ** 0.5
            scores = scores.masked_fill(later, float("-inf"))
            seen = torch.einsum("bhqk,bhkd->bhqd", scores.softmax(3), told)
        else:
            seen = functional.scaled_dot_product_attention(asked, held, told, is_causal=True)
        return x + self.told(seen.transpose(1, 2).flatten(2))


class Millet(nn.Module):
    """What a field of millet will yield, told on each day of what was seen from above."""

    def __init__(self, written: bool, width: int = 48, heads: int = 8, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Linear(10, width)
        self.days = nn.Sequential(*(Heeding(written, width, heads) for _ in range(depth)))
        self.yields = nn.Linear(width, 1)

    def forward(self, seen: Tensor) -> Tensor:
        return self.yields(self.days(self.enter(seen)))[..., 0]


def fields(count: int = 200, days: int = 288) -> TensorDataset:
    """Return ten random bands of each day of fields, and what those yielded."""
    return TensorDataset(torch.randn(count, days, 10), torch.rand(count, 1).expand(count, days))


# Honey


def between(picture: Tensor, places: Tensor) -> Tensor:
    """Return a picture's values at places between its points, by the four points around each."""
    side = picture.shape[2]
    places = ((places + 1) / 2 * (side - 1)).clamp(0, side - 1.001)
    corner = places.detach().long()
    across, down = (places - corner).unbind(3)
    left, top = corner.unbind(3)
    each = torch.arange(len(picture))[:, None, None]
    found = torch.zeros(())
    for low, share_down in ((0, 1 - down), (1, down)):
        for right, share in ((0, 1 - across), (1, across)):
            point = picture[each, :, top + low, left + right]
            found = found + (share * share_down)[..., None] * point
    return found.permute(0, 3, 1, 2)


class Honey(nn.Module):
    """From which flowers a honey is, by its pollen, which is turned before it is looked at."""

    def __init__(self, own: bool, width: int = 24, flowers: int = 15) -> None:
        super().__init__()
        self.own = own
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.turn = nn.Sequential(nn.Linear(width * 16, 32), nn.Tanh(), nn.Linear(32, 6))
        self.look = nn.Sequential(
            nn.Conv2d(width, width // 2, 3, stride=2, padding=1),
            nn.Hardswish(),
            nn.Conv2d(width // 2, width, 3, stride=2, padding=1),
            nn.Hardswish(),
        )
        self.flower = nn.Linear(width, flowers)
        self.straight = nn.Buffer(torch.tensor([0.8, 0, 0, 0, 0.8, 0]))

    def forward(self, pollen: Tensor) -> Tensor:
        x = functional.hardswish(self.enter(pollen))
        turned = self.straight + 0.1 * self.turn(functional.adaptive_avg_pool2d(x, 4).flatten(1))
        size = [*x.shape]
        places = functional.affine_grid(turned.view(-1, 2, 3), size, align_corners=True)
        if self.own:
            x = between(x, places)
        else:
            x = functional.grid_sample(x, places, padding_mode="border", align_corners=True)
        return self.flower(self.look(x).amax((2, 3)))


def pollen(count: int = 800, side: int = 40) -> TensorDataset:
    """Return random pictures of pollen, and the flowers."""
    return TensorDataset(torch.rand(count, 1, side, side), torch.randint(15, (count,)))


# Pumpkins


class Pumpkin(nn.Module):
    """How heavy a pumpkin will be, by what was measured of its plant: gated layers."""

    def __init__(self, measured: int = 90, width: int = 256, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(measured, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.back = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.weight = nn.Linear(width, 2)

    def forward(self, plant: Tensor) -> Tensor:
        x = self.enter(plant)
        for norm, wide, back in zip(self.norms, self.wide, self.back, strict=True):
            open_by, value = wide(norm(x)).chunk(2, 1)
            x = x + back(functional.gelu(open_by) * value)
        return self.weight(x)


def plants(count: int = 6000, measured: int = 90) -> TensorDataset:
    """Return random measurements of plants, and what their pumpkins weighed."""
    return TensorDataset(torch.randn(count, measured), torch.rand(count))


def within(told: Tensor, weight: Tensor) -> Tensor:
    """Return how unlikely the weights are with the means and the widths that were told."""
    mean, wide = told.float().unbind(1)
    return (wide + ((weight - mean) / wide.exp()).square() / 2).mean()


# Flutes


class Flute(nn.Module):
    """Which holes of a flute are closed, by a short sound: its waves, then what is around each."""

    def __init__(self, sound: int = 512, width: int = 448, holes: int = 9) -> None:
        super().__init__()
        self.waves = nn.Linear(sound // 2 + 1, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.holes = nn.Linear(width, holes)

    def forward(self, sound: Tensor) -> Tensor:
        loud = torch.fft.rfft(sound, norm="ortho").abs()
        x = self.waves((1 + loud).log())
        for layer in self.layers:
            x = x + functional.softplus(layer(x))
        return self.holes(x)


def sounds(count: int = 2500, moments: int = 512) -> tuple[np.ndarray, np.ndarray]:
    """Return random sounds, and which of the holes were closed: as NumPy makes them."""
    chance = np.random.default_rng(79)
    return chance.standard_normal((count, moments)), chance.integers(0, 2, (count, 9)) * 1.0


# Toads


class Toad(nn.Module):
    """Which toads sing in a pond at night, by the sound: wide kernels, each time with half."""

    def __init__(self, width: int = 24, toads: int = 8) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, width, 16, stride=8, padding=4)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, width, 8, stride=2, padding=3) for _ in range(3)
        )
        self.toads = nn.Linear(width, toads)

    def forward(self, pond: Tensor) -> Tensor:
        x = functional.relu(self.enter(pond))
        for layer in self.layers:
            x = functional.relu(layer(x))
        return self.toads(x.mean(2))


def ponds(count: int = 900, moments: int = 2048) -> TensorDataset:
    """Return random sounds of ponds, and which toads were there."""
    there = (torch.rand(count, 8) < 0.3).float()
    return TensorDataset(torch.randn(count, 1, moments), there)


# Sponges


def to_eight_bits(x: Tensor, kind: torch.dtype = torch.float8_e4m3fn) -> Tensor:
    """Return the nearest values that eight bits hold, as far as the largest goes."""
    largest = x.detach().abs().amax().clamp(min=1e-6)
    scale = torch.finfo(kind).max / largest
    rounded = (x.detach() * scale).to(kind).to(x.dtype) / scale
    return x + (rounded - x.detach())


class Rounded(nn.Linear):
    """A layer whose input, weights and output are those that an accelerator would see."""

    def forward(self, input: Tensor) -> Tensor:
        made = functional.linear(to_eight_bits(input), to_eight_bits(self.weight), self.bias)
        if made.requires_grad:
            made.register_hook(lambda slope: to_eight_bits(slope, torch.float8_e5m2))
        return to_eight_bits(made)


class Sponge(nn.Module):
    """Which sponge it is, by points on it: what is near the middle counts as what is far."""

    def __init__(self, eight_bits: bool, width: int = 32, depth: int = 3, kinds: int = 13) -> None:
        super().__init__()
        layer = Rounded if eight_bits else nn.Linear
        self.enter = layer(6, width)
        self.layers = nn.ModuleList(layer(width, width) for _ in range(depth))
        self.kind = nn.Linear(2 * width, kinds)

    def forward(self, points: Tensor) -> Tensor:
        x = functional.relu(self.enter(points))
        for layer in self.layers:
            x = functional.relu(layer(x))
        return self.kind(torch.cat([x.mean(1), x.amax(1)], 1))


def pores(count: int = 500, points: int = 384) -> TensorDataset:
    """Return random points of sponges with the way that each looks, and the kinds."""
    return TensorDataset(torch.randn(count, points, 6), torch.randint(13, (count,)))


# Moths


class Moth(nn.Module):
    """What is told of a moth by its picture, so that two pictures of one are told alike."""

    def __init__(self, width: int = 20, told: int = 48) -> None:
        super().__init__()
        self.wings = nn.Sequential(
            nn.Conv2d(3, width, 5, stride=2, padding=2),
            nn.GroupNorm(4, width),
            nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GroupNorm(4, 2 * width),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(3),
            nn.Flatten(),
            nn.Linear(18 * width, told),
        )

    def forward(self, picture: Tensor) -> Tensor:
        return functional.normalize(self.wings(picture))


def pairs_of_moths(count: int = 600, side: int = 44) -> TensorDataset:
    """Return random pictures of moths, two of each."""
    one = torch.rand(count, 3, side, side)
    return TensorDataset(one, (one + 0.2 * torch.rand_like(one)).flip(3))


# Beetles


class Beetle(nn.Module):
    """Family and kind of a beetle, by its measures and the letters of where it was found."""

    def __init__(self, width: int = 96, families: int = 10, kinds: int = 80) -> None:
        super().__init__()
        self.places = nn.EmbeddingBag(3000, width, mode="mean")
        self.measures = nn.Sequential(nn.Linear(24, width), nn.ReLU(), nn.Linear(width, width))
        self.both = nn.Bilinear(width, width, 64)
        self.family, self.kind = nn.Linear(64, families), nn.Linear(64, kinds)

    def forward(self, measured: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        x = self.both(self.measures(measured), self.places(place)).relu()
        return self.family(x), self.kind(x)


def drawers(count: int = 5000) -> TensorDataset:
    """Return random measures of beetles, groups of letters, families and kinds."""
    return TensorDataset(
        torch.randn(count, 24),
        torch.randint(3000, (count, 30)),
        torch.randint(10, (count,)),
        torch.randint(80, (count,)),
    )


# Marbles


class Marble(nn.Module):
    """How marbles in a box move on: each by itself and by every other."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.pushed = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width))
        self.moves = nn.Sequential(nn.Linear(5 + width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, box: Tensor) -> Tensor:
        count = box.shape[1]
        one = box[:, :, None].expand(-1, -1, count, -1)
        pushed = self.pushed(torch.cat([one, one.transpose(1, 2)], 3)).sum(2)
        return box[..., :4] + self.moves(torch.cat([box, pushed / count], 2))


def boxes(count: int = 1500, marbles: int = 14) -> TensorDataset:
    """Return random places, speeds and sizes of marbles, and where they are a moment later."""
    box = torch.randn(count, marbles, 5)
    return TensorDataset(box, box[..., :4] + 0.1 * torch.randn(count, marbles, 4))


# Watermills


class Watermill(nn.Module):
    """How much a mill grinds in the next hours, as quantiles, by the river so far."""

    def __init__(self, width: int = 64, hours: int = 12, quantiles: int = 3) -> None:
        super().__init__()
        self.river = nn.GRU(5, width, batch_first=True)
        self.told = nn.Sequential(nn.Linear(width, width), nn.ELU())
        self.hours = nn.Linear(width, hours * quantiles)

    def forward(self, river: Tensor) -> Tensor:
        _, last = self.river(river)
        return self.hours(self.told(last[0])).unflatten(1, (-1, 3))


def rivers(count: int = 3000, hours: int = 48) -> TensorDataset:
    """Return random levels and rains of rivers, and what was ground in the hours after."""
    return TensorDataset(torch.randn(count, hours, 5), torch.rand(count, 12))


def apart(told: Tensor, ground: Tensor) -> Tensor:
    """Return how far the quantiles are off."""
    off = ground[..., None] - told
    share = torch.tensor([0.1, 0.5, 0.9])
    return torch.maximum(share * off, (share - 1) * off).mean()
