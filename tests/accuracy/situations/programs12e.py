"""Models and data of the twelfth round's runs from moss to submarines: see ``programs12b.py``."""

import itertools
import math

import numpy as np
import torch
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Moss


class Standard(nn.Conv2d):
    """A convolution whose filters have a mean of none and a spread of one."""

    def forward(self, x: Tensor) -> Tensor:
        filters = self.weight.flatten(1)
        filters = functional.layer_norm(filters, filters.shape[1:]).view_as(self.weight)
        filters = filters / math.sqrt(filters[0].numel())
        return functional.conv2d(x, filters, self.bias, self.stride, self.padding)


class Moss(nn.Module):
    """How much of a quadrat each of nine mosses covers, as a distribution of the shares."""

    def __init__(self, width: int = 48, mosses: int = 9) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, stride=4)
        self.fine = nn.ModuleList(self.block(width) for _ in range(2))
        self.down = Standard(width, 2 * width, 2, stride=2)
        self.coarse = nn.ModuleList(self.block(2 * width) for _ in range(2))
        self.cover = nn.Linear(2 * width, mosses)

    @staticmethod
    def block(width: int) -> nn.Sequential:
        """Return the layers that are added to what they are given."""
        return nn.Sequential(
            nn.GroupNorm(8, width),
            nn.ReLU(),
            Standard(width, width, 3, padding=1),
            nn.GroupNorm(8, width),
            nn.ReLU(),
            Standard(width, width, 3, padding=1),
        )

    def forward(self, photo: Tensor) -> Tensor:
        x = self.stem(photo)
        for block in self.fine:
            x = x + block(x)
        x = self.down(x)
        for block in self.coarse:
            x = x + block(x)
        return functional.softplus(self.cover(x.mean((2, 3)))) + 0.1


def quadrats(count: int = 600, side: int = 96) -> TensorDataset:
    """Return random photographs as bytes, and shares of nine mosses."""
    shares = torch.distributions.Dirichlet(torch.full((9,), 2.0)).sample((count,))
    return TensorDataset(torch.randint(256, (count, 3, side, side), dtype=torch.uint8), shares)


def unlikely_cover(strength: Tensor, shares: Tensor) -> Tensor:
    """Return how unlikely the shares are."""
    return -torch.distributions.Dirichlet(strength).log_prob(shares).mean()


# Rain gauges


class Looked(nn.Module):
    """What every gauge takes from the others, then a layer of its own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.asked, self.told = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.own = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = self.asked(self.first(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts.unbind(0))
        x = x + self.told(mixed.transpose(1, 2).flatten(2))
        return x + self.own(self.second(x))


class Rain(nn.Module):
    """Whether it will rain at each gauge in the next hours, and how much if it does."""

    def __init__(self, hours: int = 48, ahead: int = 6, width: int = 160, depth: int = 2) -> None:
        super().__init__()
        self.past, self.place = nn.Linear(hours, width), nn.Linear(3, width)
        self.layers = nn.Sequential(*(Looked(width, 5) for _ in range(depth)))
        self.norm, self.ahead = nn.LayerNorm(width), nn.Linear(width, 3 * ahead)

    def forward(self, past: Tensor, places: Tensor) -> Tensor:
        x = self.past(past.log1p()) + self.place(places)
        return self.ahead(self.norm(self.layers(x))).unflatten(2, (3, -1))


def gauges(count: int = 3000, near: int = 24) -> TensorDataset:
    """Return two days of gauges that are near each other, where they are, and six hours more."""
    past = torch.rand(count, near, 48).sub(0.7).clamp(min=0) * 20
    ahead = torch.rand(count, near, 6).sub(0.7).clamp(min=0) * 20
    return TensorDataset(past, torch.randn(count, near, 3), ahead)


def wet_or_dry(found: Tensor, ahead: Tensor) -> Tensor:
    """Return how unlikely the hours are: dry or not, and the amounts of those that are not."""
    is_wet, shape, rate = found.unbind(2)
    wet = ahead > 0
    amount = torch.distributions.Gamma(functional.softplus(shape) + 0.1, functional.softplus(rate))
    unlikely = -amount.log_prob(ahead.clamp(min=0.01))
    told = functional.binary_cross_entropy_with_logits(is_wet, wet.float())
    return told + (unlikely * wet).sum() / wet.sum()


# Kettles


class Kettle(nn.Module):
    """What the kettle alone takes in the middle of a window of a whole house's power."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.window = nn.Sequential(
            nn.Conv1d(1, width, 9, padding=4),
            nn.ReLU(),
            nn.Conv1d(width, width, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(width, 2 * width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv1d(2 * width, 2 * width, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv1d(2 * width, 16, 1),
            nn.Flatten(),
        )
        self.middle = nn.Sequential(nn.Linear(16 * 60, 96), nn.ReLU(), nn.Linear(96, 2))

    def forward(self, power: Tensor) -> tuple[Tensor, Tensor]:
        watts, boils = self.middle(self.window(power[:, None])).unbind(1)
        return watts, boils


def houses(count: int = 8000, window: int = 240) -> TensorDataset:
    """Return windows of a house's power, and the kettle's part of it in their middle."""
    boils = (torch.rand(count) < 0.3).float()
    return TensorDataset(torch.randn(count, window), boils * torch.rand(count), boils)


# Padlocks


class Key(nn.Module):
    """How deep each of five cuts of a padlock's key is, by the outline in a photograph."""

    def __init__(self, width: int = 20, cuts: int = 5, depths: int = 8) -> None:
        super().__init__()
        self.cuts = cuts
        self.outline = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Flatten(),
        )
        self.each = nn.Sequential(
            nn.Linear(2 * width * 8 * 24, 96), nn.SiLU(), nn.Linear(96, cuts * depths)
        )

    def forward(self, photo: Tensor) -> Tensor:
        return self.each(self.outline(photo)).unflatten(1, (self.cuts, -1)).mT


def keys(count: int = 2000) -> TensorDataset:
    """Return random outlines, and five depths of each."""
    return TensorDataset(torch.rand(count, 1, 32, 96), torch.randint(8, (count, 5)))


# Harps


class Harp(nn.Module):
    """Which of forty-seven strings sound in each moment of a recording."""

    def __init__(self, pitches: int = 96, width: int = 96, strings: int = 47) -> None:
        super().__init__()
        self.near = nn.Sequential(
            nn.Conv2d(1, 12, (5, 3), padding=(2, 1)),
            nn.ELU(),
            nn.Conv2d(12, 12, (13, 1), stride=(2, 1), padding=(6, 0)),
            nn.ELU(),
        )
        self.moment = nn.Linear(12 * pitches // 2, width)
        self.after = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, dilation=2**each, padding=2**each) for each in range(4)
        )
        self.strings = nn.Linear(width, strings)

    def forward(self, pitches: Tensor) -> Tensor:
        x = self.moment(self.near(pitches[:, None]).flatten(1, 2).mT).mT
        for after in self.after:
            x = x + functional.glu(after(x), 1)
        return self.strings(x.mT)


def recordings(count: int = 1200, moments: int = 48) -> TensorDataset:
    """Return random strengths of ninety-six pitches in each moment, and the strings that sound."""
    sounding = (torch.rand(count, moments, 47) < 0.06).float()
    return TensorDataset(torch.rand(count, 96, moments), sounding)


# Frog calls


class Loudness(nn.Module):
    """Bands of sound by how they stand out of what was heard in them until then."""

    def __init__(self, in_turn: bool) -> None:
        super().__init__()
        self.in_turn = in_turn
        self.keen = nn.Parameter(torch.tensor(-2.5))
        self.gain, self.bias = nn.Parameter(torch.tensor(0.9)), nn.Parameter(torch.tensor(1.5))

    def heard(self, strength: Tensor) -> Tensor:
        """Return the running mean of each band, frame after frame."""
        keen = self.keen.sigmoid()
        first, *later = strength.unbind(-1)
        means = [first]
        for frame in later:
            means.append((1 - keen) * means[-1] + keen * frame)
        return torch.stack(means, -1)

    def summed(self, strength: Tensor) -> Tensor:
        """Return the running mean of each band, as a sum that is weighted for every frame."""
        keen, frames = self.keen.sigmoid(), torch.arange(strength.shape[-1])
        since = frames[:, None] - frames
        weight = (1 - keen) ** since.clamp(min=0) * (since >= 0)
        weight = weight * torch.where(frames == 0, 1.0, keen)
        return strength @ weight.mT

    def forward(self, strength: Tensor) -> Tensor:
        mean = self.heard(strength) if self.in_turn else self.summed(strength)
        bias = functional.softplus(self.bias)
        return (strength / (mean + 1e-5) ** self.gain + bias).sqrt() - bias.sqrt()


class Frog(nn.Module):
    """Which frogs call in a stretch of a night at a pond."""

    def __init__(self, in_turn: bool, width: int = 10, frogs: int = 11) -> None:
        super().__init__()
        self.loudness = Loudness(in_turn)
        self.calls = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.Hardtanh(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(2 * width),
            nn.Hardtanh(),
            nn.Conv2d(2 * width, 3 * width, 3, stride=2, padding=1),
            nn.Hardtanh(),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
        )
        self.frogs = nn.Linear(3 * width, frogs)

    def forward(self, strength: Tensor) -> Tensor:
        return self.frogs(self.calls(self.loudness(strength)[:, None]))


def nights(count: int = 900, bands: int = 40, frames: int = 96) -> TensorDataset:
    """Return random strengths of forty bands of sound, and the frogs that call."""
    calling = (torch.rand(count, 11) < 0.15).float()
    return TensorDataset(torch.rand(count, bands, frames) ** 2, calling)


# Pollen


class Grain(nn.Module):
    """Whose pollen flew past a laser: by the light that it scattered and that it gave back."""

    def __init__(self, width: int = 12, plants: int = 16) -> None:
        super().__init__()
        self.scattered = self.seen(width)
        self.spectrum = self.seen(width)
        self.decay = nn.Sequential(nn.Flatten(), nn.Linear(4 * 24, 64), nn.Softsign())
        self.plant = nn.Sequential(
            nn.Linear(152 * width + 64, 128), nn.Softsign(), nn.Dropout(0.2), nn.Linear(128, plants)
        )

    @staticmethod
    def seen(width: int) -> nn.Sequential:
        """Return the layers for one kind of light."""
        return nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.Softsign(),
            nn.AvgPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.Softsign(),
            nn.AvgPool2d(2),
            nn.Flatten(),
        )

    def forward(self, grain: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        scattered, spectrum, decay = grain
        parts = [self.scattered(scattered), self.spectrum(spectrum), self.decay(decay)]
        return self.plant(torch.cat(parts, 1))


def grains(count: int = 3000) -> TensorDataset:
    """Return random light of grains: by angle and time, by colour and time, as it fades."""
    return TensorDataset(
        torch.rand(count, 1, 24, 40),
        torch.rand(count, 1, 32, 8),
        torch.rand(count, 4, 24),
        torch.randint(16, (count,)),
    )


# Clock ticks


class Tick(nn.Module):
    """How far a clock is out of beat and how fast it runs, by the sound of a few ticks."""

    def __init__(self, frame: int = 32, width: int = 48) -> None:
        super().__init__()
        self.frame = frame
        self.enter = nn.Sequential(nn.Linear(frame, 32), nn.Tanhshrink())
        self.after = nn.GRU(32, width)
        self.leave = nn.Linear(2 * width, 2)

    def forward(self, sound: Tensor) -> Tensor:
        frames = self.enter(sound.unflatten(1, (-1, self.frame)).transpose(0, 1))
        heard, last = self.after(frames)
        return self.leave(torch.cat([heard.amax(0), last[0]], 1))


def clocks(count: int = 1500, samples: int = 1024) -> TensorDataset:
    """Return the random sound of clocks, and what is wrong with each."""
    return TensorDataset(torch.randn(count, samples), torch.randn(count, 2))


# Bagpipes


class Pipes(nn.Module):
    """The chanter's note in each moment, and how far the three drones are out of tune."""

    def __init__(self, bins: int = 256, width: int = 128, notes: int = 10) -> None:
        super().__init__()
        self.enter = nn.Conv1d(bins, width, 5, padding=2)
        self.later = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(2))
        self.note = nn.Conv1d(width, notes, 1)
        self.heed = nn.Conv1d(width, 3, 1)
        self.drone = nn.Parameter(torch.randn(3, width) / width)

    def forward(self, heard: Tensor) -> tuple[Tensor, Tensor]:
        x = functional.leaky_relu(self.enter(heard))
        for layer in self.later:
            x = x + functional.leaky_relu(layer(x))
        drones = self.heed(x).softmax(2) @ x.mT
        return self.note(x), (drones * self.drone).sum(2)


def piping(count: int = 900, moments: int = 96) -> TensorDataset:
    """Return random spectra, the notes that were played, and three drones in cents."""
    notes = torch.randint(10, (count, moments))
    return TensorDataset(torch.rand(count, 256, moments), notes, torch.randn(count, 3))


# Resistors


class Bands(nn.Module):
    """The colours of a resistor's bands from left to right, none between them."""

    def __init__(self, width: int = 16, colours: int = 13) -> None:
        super().__init__()
        self.photo = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.CELU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.CELU(),
            nn.Conv2d(2 * width, 2 * width, 3, stride=(2, 1), padding=1),
            nn.CELU(),
        )
        self.along = nn.Conv1d(2 * width, 2 * width, 7, padding=3)
        self.colour = nn.Conv1d(2 * width, colours, 1)

    def forward(self, photo: Tensor) -> Tensor:
        along = functional.celu(self.along(self.photo(photo).mean(2)))
        return self.colour(along).permute(2, 0, 1).log_softmax(2)


def resistors(count: int = 900) -> TensorDataset:
    """Return random photographs of resistors that lie across, and the colours of five bands."""
    return TensorDataset(torch.rand(count, 3, 32, 128), torch.randint(1, 13, (count, 5)))


# Candles


class Flame(nn.Module):
    """How long a candle's wick is and whether there is a draught, by how its light flickers."""

    def __init__(self, diodes: int = 6, patch: int = 16, width: int = 160, depth: int = 2) -> None:
        super().__init__()
        self.patch = patch
        self.enter = nn.Linear(diodes * patch, width)
        self.place = nn.Parameter(torch.randn(20, width) / 16)
        layer = nn.TransformerEncoderLayer(
            width, 4, 3 * width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.leave = nn.Linear(width, 3)

    def forward(self, light: Tensor) -> Tensor:
        patches = light.unfold(1, self.patch, self.patch).flatten(2)
        return self.leave(self.layers(self.enter(patches) + self.place).mean(1))


def flames(count: int = 3000) -> TensorDataset:
    """Return the random light of candles at six diodes: wick, soot, and whether there is air."""
    told = torch.cat([torch.rand(count, 2), (torch.rand(count, 1) < 0.2).float()], 1)
    return TensorDataset(torch.rand(count, 320, 6), told)


def wick_and_draught(found: Tensor, told: Tensor) -> Tensor:
    """Return how far wick and soot are off, and how unlikely the draught is."""
    apart = functional.smooth_l1_loss(found[:, :2], told[:, :2])
    return apart + functional.binary_cross_entropy_with_logits(found[:, 2], told[:, 2])


# Forklifts


class Driven(nn.Module):
    """Six ways that a forklift may go, by how it went and what stands around it."""

    def __init__(self, width: int = 12, ways: int = 6, ahead: int = 15) -> None:
        super().__init__()
        self.ways, self.ahead = ways, ahead
        self.around = nn.Sequential(
            nn.Conv2d(2, width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.past = nn.Sequential(nn.Flatten(), nn.Linear(80, 128), nn.ReLU())
        self.both = nn.Sequential(
            nn.Linear(200 * width + 128, 192), nn.ReLU(), nn.Linear(192, ways * (2 * ahead + 1))
        )

    def forward(self, around: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        both = self.both(torch.cat([self.around(around), self.past(past)], 1))
        ways, chance = both.split([2 * self.ways * self.ahead, self.ways], 1)
        return ways.unflatten(1, (self.ways, self.ahead, 2)), chance


class Hall(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Stretches of forklifts' ways; what stands around them is cut out of the hall's plan."""

    def __init__(self, count: int = 4000, side: int = 400, cut: int = 40) -> None:
        chance = np.random.default_rng(12)
        self.plan = (chance.random((2, side, side)) < 0.3).astype(np.float32)
        self.places = chance.integers(0, side - cut, (count, 2))
        self.ways = chance.normal(size=(count, 55, 2)).cumsum(1).astype(np.float32)
        self.cut = cut

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        down, across = self.places[index]
        around = self.plan[:, down : down + self.cut, across : across + self.cut]
        past, ahead = np.split(self.ways[index] - self.ways[index, 39], [40])
        return torch.from_numpy(around.copy()), torch.from_numpy(past), torch.from_numpy(ahead)


def nearest_way(ways: Tensor, chance: Tensor, ahead: Tensor) -> Tensor:
    """Return how far the nearest way is off, and how unlikely it was held to be."""
    apart = (ways - ahead[:, None]).square().sum(3).mean(2)
    best = apart.argmin(1)
    return apart.gather(1, best[:, None]).mean() + functional.cross_entropy(chance, best)


# Shoes


class Sole(nn.Module):
    """A shoe's print as a point, so that prints of one shoe lie together."""

    def __init__(self, width: int = 14, size: int = 64) -> None:
        super().__init__()
        self.print = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.PReLU(width),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.PReLU(2 * width),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 3 * width, 3, padding=1),
            nn.PReLU(3 * width),
        )
        self.power = nn.Parameter(torch.tensor(3.0))
        self.point = nn.Linear(3 * width, size)

    def forward(self, soles: Tensor) -> Tensor:
        found = self.print(soles).clamp(min=1e-4) ** self.power
        pooled = found.mean((2, 3)) ** (1 / self.power)
        return functional.normalize(self.point(pooled))


class Prints(Dataset[Tensor]):
    """Three prints each: two of one shoe, and one of another."""

    def __init__(self, shoes: int = 150, each: int = 4) -> None:
        self.prints = torch.rand(shoes, each, 1, 64, 32)
        self.shoes, self.each = shoes, each

    def __len__(self) -> int:
        return self.shoes * self.each

    def __getitem__(self, index: int) -> Tensor:
        shoe, one = divmod(index, self.each)
        another, other = (shoe + 1 + index % (self.shoes - 1)) % self.shoes, (one + 1) % self.each
        there = torch.tensor([shoe, shoe, another]), torch.tensor([one, other, one])
        return self.prints[there]


# Noodles


class Sizes(nn.Module):
    """Several sizes of filters over a spectrum, side by side."""

    def __init__(self, inside: int, each: int) -> None:
        super().__init__()
        self.paths = nn.ModuleList(
            nn.Conv1d(inside, each, size, padding=size // 2) for size in (1, 5, 9, 15)
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.selu(torch.cat([path(x) for path in self.paths], 1))


class Noodle(nn.Module):
    """Protein, water, salt and bite of noodles, by their near infrared."""

    def __init__(self, each: int = 10) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            Sizes(1, each),
            nn.MaxPool1d(3),
            Sizes(4 * each, each),
            nn.MaxPool1d(3),
            Sizes(4 * each, each),
            nn.AdaptiveAvgPool1d(8),
            nn.Flatten(),
            nn.AlphaDropout(0.1),
            nn.Linear(4 * each * 8, 4),
        )

    def forward(self, spectrum: Tensor) -> Tensor:
        return self.layers(spectrum[:, None])


def noodles(count: int = 3000, waves: int = 480) -> TensorDataset:
    """Return random spectra, and four measures of each."""
    return TensorDataset(torch.randn(count, waves).cumsum(1) / 20, torch.randn(count, 4))


# Batteries


class Battery(nn.Module):
    """What is left of a battery and how long it will last, by how it was charged."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.charged = nn.GRU(3, width, 2, batch_first=True)
        self.left = nn.Sequential(nn.Linear(width, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, charge: Tensor) -> Tensor:
        heard, _ = self.charged(charge)
        return self.left(heard[:, -1])


def charges(count: int = 2000, moments: int = 24) -> TensorDataset:
    """Return random volts, amperes and degrees of charges, with the share left and the life."""
    return TensorDataset(torch.randn(count, moments, 3), torch.rand(count, 2))


# Accordions


class Bellows(nn.Module):
    """The sound of an accordion without that of its bellows: down three levels and up again."""

    def __init__(self, width: int = 12) -> None:
        super().__init__()
        sizes = [1, width, 2 * width, 3 * width]
        self.down = nn.ModuleList(
            nn.Conv2d(inside, outside, 5, stride=2, padding=2)
            for inside, outside in itertools.pairwise(sizes)
        )
        self.up = nn.ModuleList(
            nn.ConvTranspose2d(inside + beside, outside, 4, stride=2, padding=1)
            for inside, beside, outside in (
                (3 * width, 0, 2 * width),
                (2 * width, 2 * width, width),
                (width, width, 1),
            )
        )

    def forward(self, noisy: Tensor) -> Tensor:
        levels, x = [], noisy
        for down in self.down:
            x = functional.elu(down(x))
            levels.append(x)
        x = self.up[0](x)
        for up, beside in zip(self.up[1:], levels[-2::-1], strict=True):
            x = up(torch.cat([functional.elu(x), beside], 1))
        return noisy * x.sigmoid()


class Reeds(Dataset[Item]):
    """Spectrograms of reeds, to each of which a random bellows is added."""

    def __init__(self, count: int = 500) -> None:
        self.reeds, self.bellows = torch.rand(count, 1, 64, 96), torch.rand(40, 1, 64, 96)

    def __len__(self) -> int:
        return len(self.reeds)

    def __getitem__(self, index: int) -> Item:
        reed, loud = self.reeds[index], 0.1 + 0.5 * torch.rand(())
        return reed + loud * self.bellows[torch.randint(len(self.bellows), ())], reed


# Sonar pings


class Ping(nn.Module):
    """How far and in which direction something lies, by what eight hydrophones hear of a ping."""

    def __init__(self, phones: int = 8, width: int = 64) -> None:
        super().__init__()
        self.heard = nn.Sequential(
            nn.Conv1d(phones, width, 17, stride=2, padding=8),
            nn.Softplus(),
            nn.Conv1d(width, width, 9, padding=4),
            nn.Softplus(),
            nn.MaxPool1d(4),
            nn.Conv1d(width, 2 * width, 5, padding=2),
            nn.Softplus(),
        )
        self.near, self.where = nn.Conv1d(2 * width, 1, 1), nn.Linear(2 * width, 2)

    def forward(self, sound: Tensor) -> tuple[Tensor, Tensor]:
        x = self.heard(sound)
        return self.near(x)[:, 0], functional.normalize(self.where(x.amax(2)))


class Pings(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Sound of eight hydrophones after a ping; each reader of the tapes keeps to one thread."""

    def __init__(self, count: int = 1000, readers: bool = True) -> None:
        if readers:
            torch.set_num_threads(1)
        self.sound = torch.randn(count, 8, 512)
        self.far = torch.randint(64, (count,))
        self.where = functional.normalize(torch.randn(count, 2))

    def __len__(self) -> int:
        return len(self.far)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        return self.sound[index], self.far[index], self.where[index]


# Kimchi jars


class Evened(nn.Module):
    """Values with a mean of none and a spread of one, as the formula has it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        spread = (x - mean).pow(2).mean(-1, keepdim=True)
        return self.weight * ((x - mean) / torch.sqrt(spread + 1e-5)) + self.bias


class Bent(nn.Module):
    """The activation as the paper's formula has it."""

    def forward(self, x: Tensor) -> Tensor:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))
        return 0.5 * x * (1 + torch.tanh(inner))


class Jar(nn.Module):
    """How sour the kimchi of a jar will be: its hours are mixed, then what was measured in each."""

    def __init__(self, written: bool, hours: int = 72, width: int = 128, depth: int = 3) -> None:
        super().__init__()

        def mixed(size: int, wide: int) -> nn.Sequential:
            bent = Bent() if written else nn.GELU(approximate="tanh")
            return nn.Sequential(nn.Linear(size, wide), bent, nn.Linear(wide, size))

        def evened() -> nn.Module:
            return Evened(width) if written else nn.LayerNorm(width)

        self.enter = nn.Linear(7, width)
        self.hours = nn.ModuleList(mixed(hours, 2 * hours) for _ in range(depth))
        self.values = nn.ModuleList(mixed(width, 2 * width) for _ in range(depth))
        self.norms = nn.ModuleList(evened() for _ in range(2 * depth))
        self.sour = nn.Linear(width, 3)

    def forward(self, measured: Tensor) -> Tensor:
        x, norms = self.enter(measured), iter(self.norms)
        for hours, values in zip(self.hours, self.values, strict=True):
            x = x + hours(next(norms)(x).mT).mT
            x = x + values(next(norms)(x))
        return self.sour(x.mean(1))


def jars(count: int = 2000) -> TensorDataset:
    """Return three days of jars: acid, salt, gas and others, and three measures at the end."""
    return TensorDataset(torch.randn(count, 72, 7), torch.randn(count, 3))


# Fog


class Fog(nn.Module):
    """How far one can see in a camera's picture: a chance for each of twenty distances."""

    def __init__(self, width: int = 16, distances: int = 20) -> None:
        super().__init__()
        sizes = [width, width, 2 * width, 2 * width, 3 * width]
        self.enter = nn.Sequential(nn.Conv2d(4, width, 3, stride=2, padding=1), nn.ReLU6())
        self.layers = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(inside, outside, 3, 1 + (inside != outside), 1, bias=False),
                    nn.BatchNorm2d(outside),
                    nn.ReLU6(),
                )
                for inside, outside in itertools.pairwise(sizes)
            )
        )
        self.far = nn.Linear(sizes[-1], distances)

    def forward(self, picture: Tensor, dark: Tensor) -> Tensor:
        seen = torch.cat([picture, dark], 1)
        return self.far(self.layers(self.enter(seen)).mean((2, 3)))


def dark_channel(picture: Tensor, window: int = 7) -> Tensor:
    """Return the least of all colours near each point, which only fog makes bright."""
    least = picture.amin(1, keepdim=True)
    return -functional.max_pool2d(-least, window, 1, window // 2)


def harbour(count: int = 800, side: int = 64) -> TensorDataset:
    """Return random pictures of a harbour, and which of twenty marks was the last one seen."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(20, (count,)))


# Beach sand


class Sand(nn.Module):
    """How large the grains of sand in a picture are: the share that each of ten sieves keeps."""

    def __init__(self, width: int = 12, sieves: int = 10) -> None:
        super().__init__()
        self.scales = nn.ModuleList(
            nn.Conv2d(1, width, 5, stride=2, padding=2 * dilation, dilation=dilation)
            for dilation in (1, 2, 3)
        )
        self.joined = nn.Sequential(
            nn.Softsign(),
            nn.Conv2d(3 * width, 3 * width, 7, padding=3, groups=3 * width),
            nn.Conv2d(3 * width, 2 * width, 1),
            nn.Softsign(),
            nn.AdaptiveAvgPool2d(3),
            nn.Flatten(),
            nn.Linear(18 * width, sieves),
        )

    def forward(self, picture: Tensor) -> Tensor:
        scales = torch.cat([scale(picture) for scale in self.scales], 1)
        return self.joined(scales).log_softmax(1)


def beaches(count: int = 500, side: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Return random pictures of sand, and what ten sieves kept of it."""
    chance = np.random.default_rng(43)
    return chance.random((count, 1, side, side)), chance.dirichlet(np.ones(10), count)


# Bridges


class Span(nn.Module):
    """What kind of bridge a drawing of its side shows, and about when it was built."""

    def __init__(self, width: int = 24, kinds: int = 8) -> None:
        super().__init__()
        self.drawing = nn.Sequential(
            nn.Conv2d(1, width, 5, stride=2, padding=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
        )
        self.kind = nn.Linear(2 * width, kinds)

    def forward(self, drawing: Tensor) -> Tensor:
        return self.kind(self.drawing(drawing))


def bridges(square: bool, count: int = 600, high: int = 32, wide: int = 128) -> TensorDataset:
    """Return random drawings, four times as wide as high, or on sheets as high as they are wide."""
    drawings = torch.rand(count, 1, high, wide)
    if square:
        above = (wide - high) // 2
        drawings = functional.pad(drawings, (0, 0, above, wide - high - above), value=1.0)
    return TensorDataset(drawings, torch.randint(8, (count,)))


# Lullabies


class Lullaby(nn.Module):
    """The next note of a lullaby: its pitch and its length, by the notes so far."""

    def __init__(self, width: int = 128, depth: int = 3, most: int = 64) -> None:
        super().__init__()
        self.pitch, self.length = nn.Embedding(40, width), nn.Embedding(12, width)
        self.place = nn.Parameter(torch.randn(most, width) / 16)
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {
                    "ask": nn.MultiheadAttention(width, 4, batch_first=True),
                    "own": nn.Sequential(
                        nn.Linear(width, 3 * width), nn.ReLU(), nn.Linear(3 * width, width)
                    ),
                    "first": nn.LayerNorm(width),
                    "second": nn.LayerNorm(width),
                }
            )
            for _ in range(depth)
        )
        self.next = nn.Linear(width, 52)

    def forward(self, pitch: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        x = self.pitch(pitch) + self.length(length) + self.place[: pitch.shape[1]]
        later = torch.ones(pitch.shape[1], pitch.shape[1], dtype=torch.bool).triu(1)
        for layer in self.layers:
            seen = layer["first"](x)
            x = x + layer["ask"](seen, seen, seen, attn_mask=later, need_weights=False)[0]
            x = x + layer["own"](layer["second"](x))
        pitches, lengths = self.next(x).split([40, 12], 2)
        return pitches, lengths


def lullabies(count: int = 2000, notes: int = 65) -> TensorDataset:
    """Return the random pitches and lengths of the notes of lullabies."""
    return TensorDataset(torch.randint(40, (count, notes)), torch.randint(12, (count, notes)))


# Submarines


class Hull(nn.Module):
    """Where in a sonar's picture hulls lie, as a map of their middles, and how long they are."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.GroupNorm(4, width),
            nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GroupNorm(4, 2 * width),
            nn.SiLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.GroupNorm(4, 2 * width),
            nn.SiLU(),
        )
        self.middle, self.long = nn.Conv2d(2 * width, 1, 1), nn.Conv2d(2 * width, 1, 1)

    def forward(self, picture: Tensor) -> tuple[Tensor, Tensor]:
        found = self.down(picture)
        return self.middle(found)[:, 0], functional.softplus(self.long(found))[:, 0]


class Seabed(Dataset[tuple[Tensor, Tensor, Tensor]]):
    """Pictures of a sonar with hulls in them; speckle is laid over each when it is asked for."""

    def __init__(self, count: int = 400, side: int = 96) -> None:
        self.pictures = torch.rand(count, 1, side, side)
        self.middles = (torch.rand(count, side // 4, side // 4) < 0.005).float()
        self.lengths = torch.rand(count, side // 4, side // 4)

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        picture = self.pictures[index]
        speckled = picture * torch.empty_like(picture).exponential_()
        return speckled, self.middles[index], self.lengths[index]
