"""Models and data of the thirteenth round's runs from corks to figs: see ``programs13b.py``."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Corks


class Around(nn.Module):
    """Convolutions over a cork's side, which goes on where the picture of it ends."""

    def __init__(self, width: int, stride: int = 1) -> None:
        super().__init__()
        inside = width // stride
        self.across = nn.Conv2d(inside, width, (3, 1), (stride, 1), (1, 0))
        self.along = nn.Conv2d(width, width, (1, 3), (1, stride), (0, 1), padding_mode="circular")
        self.norm = nn.BatchNorm2d(width)
        self.short = nn.AvgPool2d(stride) if stride > 1 else nn.Identity()
        self.wider = nn.Conv2d(inside, width, 1) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.norm(self.along(self.across(x))) + self.wider(self.short(x)))


class Cork(nn.Module):
    """How good a cork is, one of seven grades, by its unrolled side: is it at least that good?"""

    def __init__(self, width: int = 16, grades: int = 7) -> None:
        super().__init__()
        self.enter = nn.Conv2d(3, width, 4, 4)
        self.layers = nn.Sequential(
            Around(width), Around(width), Around(2 * width, 2), Around(2 * width)
        )
        self.good = nn.Linear(4 * width, 1, bias=False)
        self.steps = nn.Parameter(torch.linspace(1, -1, grades - 1))

    def forward(self, side: Tensor) -> Tensor:
        x = self.layers(self.enter(side))
        return self.good(torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1)) + self.steps


def corks(count: int = 640, high: int = 48, wide: int = 96) -> TensorDataset:
    """Return random pictures of corks' sides, and their grades."""
    return TensorDataset(torch.rand(count, 3, high, wide), torch.randint(7, (count,)))


def at_least(told: Tensor, grade: Tensor) -> Tensor:
    """Return how unlikely the grades are, each as the steps that it is above."""
    above = (torch.arange(told.shape[1]) < grade[:, None]).float()
    return functional.binary_cross_entropy_with_logits(told, above)


def agreement(told: Tensor, grade: Tensor, grades: int = 7) -> float:
    """Return Cohen's kappa, where a mistake weighs as its square."""
    table = torch.zeros(grades, grades)
    table.index_put_((grade, told), torch.ones(len(told)), accumulate=True)
    apart = torch.arange(grades)
    weights = (apart[:, None] - apart) ** 2.0
    chance = table.sum(1, keepdim=True) * table.sum(0) / table.sum()
    return float(1 - (weights * table).sum() / (weights * chance).sum())


# Tofu


class Blurred(nn.Module):
    """Every other moment, of what is smooth."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        kernel = torch.tensor([1.0, 3.0, 3.0, 1.0]) / 8
        self.kernel = nn.Buffer(kernel.expand(channels, 1, 4).clone())

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv1d(x, self.kernel, stride=2, padding=1, groups=len(self.kernel))


class Tofu(nn.Module):
    """How firm and how smooth people find tofu, by the force that pressed it and how it was made.

    What is known of the making asks the curve's moments.
    """

    def __init__(self, width: int = 48, made: int = 8) -> None:
        super().__init__()
        self.curve = nn.Sequential(
            nn.Conv1d(2, width, 7, padding=3),
            nn.PReLU(width),
            Blurred(width),
            nn.Conv1d(width, width, 5, padding=2),
            nn.PReLU(width),
            Blurred(width),
            nn.Conv1d(width, width, 5, padding=2),
            nn.PReLU(width),
        )
        self.asks = nn.Linear(made, width)
        self.felt = nn.Sequential(nn.Linear(width + made, 64), nn.PReLU(), nn.Linear(64, 2))

    def forward(self, force: Tensor, making: Tensor) -> Tensor:
        moments = self.curve(force)
        weight = torch.einsum("bct,bc->bt", moments, self.asks(making)).softmax(1)
        found = torch.einsum("bct,bt->bc", moments, weight)
        return self.felt(torch.cat([found, making], 1))


def pressings(count: int, moments: int = 128) -> TensorDataset:
    """Return random force and depth, what is known of the making, and what people felt."""
    return TensorDataset(
        torch.randn(count, 2, moments), torch.rand(count, 8), torch.rand(count, 2) * 9
    )


# Doorbells


class Doorbell(nn.Module):
    """In which moments of a street's sound which of six doorbells rings."""

    def __init__(self, width: int = 16, bells: int = 6) -> None:
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, (1, 2), 1)
        self.each = nn.ModuleList(
            nn.Conv2d(width, width, 3, (1, 2), 1, groups=width) for _ in range(2)
        )
        self.mixed = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(2))
        self.past = nn.GRU(4 * width, 32, batch_first=True, bidirectional=True)
        self.rings = nn.Linear(64, bells)

    def forward(self, tones: Tensor) -> Tensor:
        x = functional.relu(self.enter(tones[:, None]))
        for each, mixed in zip(self.each, self.mixed, strict=True):
            x = functional.relu(mixed(each(x)))
        return self.rings(self.past(x.transpose(1, 2).flatten(2))[0])


def streets(count: int = 400, moments: int = 24, tones: int = 32) -> TensorDataset:
    """Return random sounds as tones, and when which doorbell rings."""
    rings = torch.rand(count, moments // 8, 6) < 0.1
    return TensorDataset(
        torch.randn(count, moments, tones), rings.repeat_interleave(8, dim=1).float()
    )


def rung(sure: Tensor, threshold: float) -> list[tuple[int, int]]:
    """Return where a bell begins and ends to ring, by how sure each moment is."""
    found, since = [], None
    for moment, here in enumerate(sure.tolist()):
        if here > threshold and since is None:
            since = moment
        elif here <= threshold and since is not None:
            found.append((since, moment))
            since = None
    return found if since is None else [*found, (since, len(sure))]


# Puppets


class Puppet(nn.Module):
    """Where a puppet's joints are, by the lengths of its strings: each limb turns at its parent."""

    PARENTS = ((0, 0, 0), (1, 2, 3, 3), (4, 5, 6, 7), (8, 9, 10, 11))
    """Of the joints after the first, level by level."""

    def __init__(self, strings: int = 9, past: int = 24, width: int = 256) -> None:
        super().__init__()
        self.joints = 1 + sum(len(each) for each in self.PARENTS)
        self.enter = nn.Linear(strings * past, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, width), nn.Mish(), nn.Linear(width, width)
            )
            for _ in range(4)
        )
        self.turns = nn.Linear(width, 6 * self.joints)
        self.limbs = nn.Parameter(torch.randn(self.joints, 3, 1) / 4)

    def forward(self, strings: Tensor) -> Tensor:
        x = self.enter(strings.flatten(1))
        for block in self.blocks:
            x = x + block(x)
        first, second = self.turns(x).unflatten(1, (self.joints, 2, 3)).unbind(2)
        first = functional.normalize(first, dim=2)
        second = functional.normalize(second - (first * second).sum(2, True) * first, dim=2)
        turned = torch.stack([first, second, torch.linalg.cross(first, second)], 3) @ self.limbs
        places = turned[:, :1, :, 0]
        for parents in self.PARENTS:
            since = places.shape[1]
            limbs = turned[:, since : since + len(parents), :, 0]
            places = torch.cat([places, places[:, list(parents)] + limbs], 1)
        return places


def plays(count: int = 2000) -> TensorDataset:
    """Return random lengths of nine strings in 24 moments, and where sixteen joints are."""
    return TensorDataset(torch.randn(count, 24, 9), torch.randn(count, 16, 3))


# Sausages


class Sausage(nn.Module):
    """Whether a sausage on a grill is to be turned, stays or is done, by a thermal camera's film.

    Returns what each layer found beside it.
    """

    def __init__(self, width: int = 20, deeds: int = 3) -> None:
        super().__init__()
        self.film = nn.ModuleList(
            [
                nn.Conv3d(1, width, 3, 2, 1),
                nn.Conv3d(width, 2 * width, 3, 2, 1),
                nn.Conv3d(2 * width, 2 * width, 3, 1, 1),
            ]
        )
        self.deed = nn.Linear(2 * width, deeds)

    def forward(self, film: Tensor) -> tuple[Tensor, list[Tensor]]:
        found, x = [], film
        for layer in self.film:
            x = functional.relu(layer(x))
            found.append(x)
        return self.deed(x.mean((2, 3, 4))), found


def grills(count: int = 600) -> TensorDataset:
    """Return random films of eight pictures, and what was done."""
    return TensorDataset(torch.randn(count, 1, 8, 12, 16), torch.randint(3, (count,)))


# Squid


class Windows(nn.Module):
    """Pieces of a skin look at those in their window; every other layer's windows are moved."""

    def __init__(self, width: int, moved: bool, side: int = 4, heads: int = 4) -> None:
        super().__init__()
        self.side, self.heads, self.moved = side, heads, side // 2 if moved else 0
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.asked, self.told = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.own = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.near = nn.Parameter(torch.zeros(heads, side**2, side**2))

    def forward(self, x: Tensor) -> Tensor:
        across = x.shape[1] // self.side
        size = (across, self.side)
        seen = torch.roll(self.before(x), (-self.moved, -self.moved), (1, 2))
        seen = seen.unflatten(2, size).unflatten(1, size).transpose(2, 3)
        parts = self.asked(seen.flatten(3, 4)).unflatten(4, (3, self.heads, -1))
        query, key, value = parts.movedim((4, 5), (0, 4)).flatten(1, 3).unbind()
        mixed = functional.scaled_dot_product_attention(query, key, value, self.near)
        told = self.told(mixed.transpose(1, 2).flatten(2))
        told = told.view(len(x), across, across, self.side, self.side, -1).transpose(2, 3)
        x = x + torch.roll(told.flatten(3, 4).flatten(1, 2), (self.moved, self.moved), (1, 2))
        return x + self.own(self.between(x))


class Squid(nn.Module):
    """Which pattern a squid's skin shows, by a photograph of its mantle."""

    def __init__(self, width: int = 96, patterns: int = 14) -> None:
        super().__init__()
        self.pieces = nn.Conv2d(3, width, 4, 4)
        self.layers = nn.Sequential(*(Windows(width, moved=each % 2 == 1) for each in range(4)))
        self.pattern = nn.Linear(width, patterns)

    def forward(self, skin: Tensor) -> Tensor:
        return self.pattern(self.layers(self.pieces(skin).permute(0, 2, 3, 1)).mean((1, 2)))


def mantles(count: int = 400) -> TensorDataset:
    """Return random photographs of 48 points a side, and patterns."""
    return TensorDataset(torch.rand(count, 3, 48, 48), torch.randint(14, (count,)))


# Swallows


class Swallow(nn.Module):
    """Where a swallow is next, by its flight so far: a mixture of five ways to go on."""

    def __init__(self, width: int = 192, ways: int = 5) -> None:
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.flight = nn.GRU(width, width, 2, batch_first=True)
        self.ways = nn.Linear(width, 7 * ways)

    def forward(self, flight: Tensor) -> Tensor:
        return self.ways(self.flight(self.enter(flight).tanh())[0]).unflatten(2, (-1, 7))


def flights(count: int = 1200, moments: int = 17) -> TensorDataset:
    """Return random places and speeds of swallows, moment by moment."""
    return TensorDataset(torch.randn(count, moments, 6))


def way_taken(ways: Tensor, moved: Tensor) -> Tensor:
    """Return how unlikely it was to move so."""
    chance, middle, spread = ways.split((1, 3, 3), 3)
    apart = torch.distributions.Normal(middle, functional.softplus(spread) + 0.1)
    each = apart.log_prob(moved[:, :, None]).sum(3) + chance[..., 0].log_softmax(2)
    return -each.logsumexp(2).mean()


# Pheasants


class Pheasants(nn.Module):
    """How many pheasants are where in a field, seen from above: ever wider convolutions."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.near = nn.Sequential(
            nn.Conv2d(1, width, 5, 2, 2), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)
        )
        self.wide = nn.Sequential(
            *(
                nn.Sequential(nn.ReLU(), nn.Conv2d(width, width, 3, padding=each, dilation=each))
                for each in (1, 2, 2, 3)
            )
        )
        self.count = nn.Conv2d(width, 1, 1)

    def forward(self, field: Tensor) -> Tensor:
        return functional.softplus(self.count(functional.relu(self.wide(self.near(field)))))[:, 0]


def fields(count: int = 240, side: int = 72) -> TensorDataset:
    """Return random thermal pictures, and how many birds are where in a coarser one."""
    return TensorDataset(
        torch.randn(count, 1, side, side), torch.rand(count, side // 2, side // 2).pow(4)
    )


def counted(told: Tensor, birds: Tensor) -> Tensor:
    """Return how wrong each place is, and how wrong the sums are."""
    sums = (told.sum((1, 2)) - birds.sum((1, 2))).abs().mean()
    return functional.mse_loss(told, birds) + 1e-3 * sums


# Garlic


class Bulb(nn.Module):
    """How many cloves a bulb of garlic has and of which kind it is, by a scan of it."""

    def __init__(self, width: int = 24, kinds: int = 9) -> None:
        super().__init__()
        self.scan = nn.Sequential(
            nn.Conv3d(1, width, 4, 2, 1),
            nn.InstanceNorm3d(width, affine=True),
            nn.LeakyReLU(0.1),
            nn.Conv3d(width, 2 * width, 3, 1, 1),
            nn.InstanceNorm3d(2 * width, affine=True),
            nn.LeakyReLU(0.1),
            nn.MaxPool3d(2),
            nn.Conv3d(2 * width, 4 * width, 3, 1, 1),
            nn.LeakyReLU(0.1),
        )
        self.kind, self.cloves = nn.Linear(4 * width, kinds), nn.Linear(4 * width, 1)

    def forward(self, scan: Tensor) -> tuple[Tensor, Tensor]:
        found = self.scan(scan).mean((2, 3, 4))
        return self.kind(found), self.cloves(found)[:, 0]


def bulbs(count: int = 160, side: int = 24) -> TensorDataset:
    """Return random scans, kinds, and numbers of cloves."""
    return TensorDataset(
        torch.randn(count, 1, side, side, side),
        torch.randint(9, (count,)),
        torch.randint(4, 20, (count,)).float(),
    )


# Dragonflies


class Gated(nn.Module):
    """Wide layers, one of which is the other's gate."""

    def __init__(self, width: int, wide: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.both, self.back = nn.Linear(width, 2 * wide, bias=False), nn.Linear(wide, width)

    def forward(self, x: Tensor) -> Tensor:
        gate, wide = self.both(self.norm(x)).chunk(2, 1)
        return x + self.back(functional.silu(gate) * wide)


class Wing(nn.Module):
    """A dragonfly as a direction, by the crossings of its wing's veins: those of a kind alike."""

    def __init__(self, width: int = 384, wide: int = 768, depth: int = 5) -> None:
        super().__init__()
        self.enter = nn.Linear(2 * 120, width)
        self.layers = nn.Sequential(*(Gated(width, wide) for _ in range(depth)))
        self.leave = nn.Linear(width, 64)

    def forward(self, crossings: Tensor) -> Tensor:
        return functional.normalize(self.leave(self.layers(self.enter(crossings))), dim=1)


def wings(count: int = 4000) -> TensorDataset:
    """Return random places of 120 crossings, and kinds."""
    return TensorDataset(torch.randn(count, 240), torch.randint(40, (count,)))


def together(points: Tensor, kinds: Tensor) -> Tensor:
    """Return how far those of a kind are from each other, against all others."""
    itself = torch.eye(len(points), dtype=torch.bool)
    near = (points @ points.T / 0.1).masked_fill(itself, -1e4).log_softmax(1)
    same = (kinds[:, None] == kinds).masked_fill(itself, False)
    return -((near * same).sum(1) / same.sum(1).clamp(min=1)).mean()


# Melons


class Snake(nn.Module):
    """What goes up in waves, each channel with waves of its own."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.often = nn.Parameter(torch.ones(channels, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.sin(self.often * x) ** 2 / (self.often.abs() + 1e-4)


class Melon(nn.Module):
    """How ripe a melon is and how sweet, by how it sounds when it is knocked at three times."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.enter = nn.Conv1d(3, width, 16, 8, 4)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width, 2 * width, 5, padding=2 * each, dilation=each),
                Snake(2 * width),
                nn.Conv1d(2 * width, width, 5, padding=2),
            )
            for each in (1, 3, 9)
        )
        self.told = nn.Linear(width, 2)

    def forward(self, sound: Tensor) -> Tensor:
        x = self.enter(sound)
        for layer in self.layers:
            x = x + layer(x)
        return self.told(x.mean(2))


def melons(count: int = 320, moments: int = 2048) -> TensorDataset:
    """Return random sounds of three knocks, and how ripe and sweet the melons were."""
    return TensorDataset(torch.randn(count, 3, moments), torch.rand(count, 2))


# Wasps


class Face(nn.Module):
    """Which wasp of a nest it is, by her face: the angle to her own direction has to be small."""

    def __init__(self, width: int = 32, wasps: int = 150) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inside, outside in ((3, width), (width, 2 * width), (2 * width, 4 * width)):
            layers += [nn.Conv2d(inside, outside, 3, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(outside), nn.ReLU(inplace=True)]
            layers += [nn.Conv2d(outside, outside, 3, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(outside), nn.ReLU(inplace=True), nn.MaxPool2d(2)]
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4 * width * 9, 128))
        self.wasps = nn.Parameter(torch.randn(wasps, 128))

    def forward(self, face: Tensor) -> Tensor:
        return functional.linear(
            functional.normalize(self.layers(face)), functional.normalize(self.wasps)
        )


def faces(count: int = 800) -> TensorDataset:
    """Return random faces of 24 points a side, and whose they are."""
    return TensorDataset(torch.rand(count, 3, 24, 24), torch.randint(150, (count,)))


def angle(told: Tensor, wasp: Tensor, margin: float = 0.3, scale: float = 24) -> Tensor:
    """Return how unlikely the wasps are, where each angle to the right one counts as larger."""
    right = functional.one_hot(wasp, told.shape[1]).bool()
    wider = told.clamp(-0.999, 0.999).acos() + margin
    return functional.cross_entropy(scale * torch.where(right, wider.cos(), told), wasp)


# Anvils


class Anvil(nn.Module):
    """How each point of an anvil moves after a blow: a network of the blow, one of the point."""

    def __init__(self, width: int = 256, terms: int = 96) -> None:
        super().__init__()
        self.blow = nn.Sequential(
            nn.Linear(100, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.point = nn.Sequential(
            nn.Linear(4, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
        )
        self.of_blow, self.of_point = nn.Linear(width, 3 * terms), nn.Linear(width, 3 * terms)
        self.still = nn.Parameter(torch.zeros(3))

    def forward(self, blow: Tensor, points: Tensor) -> Tensor:
        blows = self.of_blow(self.blow(blow)).unflatten(1, (3, -1))
        terms = self.of_point(self.point(points)).unflatten(2, (3, -1))
        return torch.einsum("bct,bpct->bpc", blows, terms) / terms.shape[3] + self.still


def blows(count: int = 320, points: int = 256) -> TensorDataset:
    """Return random blows, points in space and time, and how these moved."""
    return TensorDataset(
        torch.randn(count, 100), torch.rand(count, points, 4), torch.randn(count, points, 3)
    )


# Ropes


class Rope(nn.Module):
    """Where a wire rope is worn, by the field of magnets along it: what counts weighs channels."""

    def __init__(self, width: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Conv1d(8, width, 5, 2, 2)
        self.over = nn.ModuleList(nn.Conv1d(width, width, 3, padding=1) for _ in range(depth))
        self.norms = nn.ModuleList(nn.GroupNorm(6, width) for _ in range(depth))
        self.few = nn.ModuleList(nn.Linear(width, width // 4) for _ in range(depth))
        self.many = nn.ModuleList(nn.Linear(width // 4, width) for _ in range(depth))
        self.worn = nn.ConvTranspose1d(width, 1, 4, 2, 1)

    def forward(self, field: Tensor) -> Tensor:
        x = self.enter(field)
        for over, norm, few, many in zip(self.over, self.norms, self.few, self.many, strict=True):
            found = functional.relu(norm(over(x)))
            weight = many(functional.relu(few(found.mean(2)))).sigmoid()
            x = x + found * weight[..., None]
        return self.worn(x)[:, 0]


def ropes(count: int = 2000, moments: int = 128) -> TensorDataset:
    """Return random fields at eight magnets, and where the rope is worn."""
    return TensorDataset(
        torch.randn(count, 8, moments), (torch.rand(count, moments) < 0.05).float()
    )


# Figs


class Fig(nn.Module):
    """How many figs ripen in each of the next weeks, by a season's weather and the tree."""

    def __init__(self, width: int = 96, trees: int = 60, weeks: int = 6) -> None:
        super().__init__()
        self.tree = nn.Embedding(trees, width)
        self.weeks = nn.Conv1d(7, width, 7, 7)
        self.season = nn.LSTM(width, width, batch_first=True)
        self.ripe = nn.Linear(width, weeks)

    def forward(self, weather: Tensor, tree: Tensor) -> Tensor:
        begin = self.tree(tree)[None]
        seen = functional.gelu(self.weeks(weather)).mT
        return self.ripe(self.season(seen, (begin, torch.zeros_like(begin)))[1][0][0])


def orchards(count: int = 3000, days: int = 140) -> TensorDataset:
    """Return random weather, trees, and how many figs were ripe."""
    return TensorDataset(
        torch.randn(count, 7, days),
        torch.randint(60, (count,)),
        torch.poisson(torch.full((count, 6), 4.0)),
    )


def cosine(step: int, warm: int = 100, whole: int = 10_000) -> float:
    """Return the share of the learning rate: up in a line, then down as a cosine."""
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * min(1.0, step / whole)))
