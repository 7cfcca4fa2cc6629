"""Models and data of the twenty-seventh round's last runs, from diadems to harnesses: see
``programs27c.py``."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

# Diadems


class Diadem(nn.Module):
    """For which of eight queens a diadem was made, by its stones; many narrow layers."""

    def __init__(self, width: int = 64, depth: int = 40) -> None:
        super().__init__()
        self.stones = nn.Linear(60, width)
        self.settings = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.queen = nn.Linear(width, 8)

    def forward(self, stones: Tensor) -> Tensor:
        x = self.stones(stones)
        for layer in self.settings:
            x = x + 0.1 * torch.relu(layer(x))
        return self.queen(x)


class Means:
    """Running means of a model's weights over a short, a middle and a long time.

    They are moved on weight by weight, or all weights of a mean at once.
    """

    def __init__(self, model: nn.Module, each: bool) -> None:
        self.model, self.each = model, each
        self.weights = [weight.detach() for weight in model.parameters()]
        first = {name: value.clone() for name, value in model.state_dict().items()}
        self.kept = {share: dict(first) for share in (0.1, 0.01, 0.001)}
        self.lists = {share: [w.clone() for w in self.weights] for share in self.kept}

    @torch.no_grad()
    def __call__(self, _step: int, _loss: Tensor) -> None:
        if not self.each:
            for share, means in self.lists.items():
                torch._foreach_lerp_(means, self.weights, share)
            return
        for share, kept in self.kept.items():
            for name, value in self.model.state_dict().items():
                kept[name] = (1 - share) * kept[name] + share * value


def diadems(count: int = 8000) -> TensorDataset:
    """Return the stones of random diadems, and who wore each."""
    return TensorDataset(torch.rand(count, 60), torch.randint(8, (count,)))


# Pipettes


class Pipette(nn.Module):
    """How much each of the channels of a pipette gave; each channel has small layers of its own.

    They are asked channel by channel, or all at once.
    """

    def __init__(self, each: bool, channels: int = 64, width: int = 32) -> None:
        super().__init__()
        self.each = each
        self.first = nn.Parameter(0.2 * torch.randn(channels, 12, width))
        self.second = nn.Parameter(0.2 * torch.randn(channels, width, width))
        self.last = nn.Parameter(0.2 * torch.randn(channels, width, 1))

    def forward(self, pressed: Tensor) -> Tensor:
        if not self.each:
            x = torch.tanh(torch.bmm(pressed.transpose(0, 1), self.first))
            x = torch.tanh(torch.bmm(x, self.second))
            return torch.bmm(x, self.last)[:, :, 0].T
        gave = []
        for channel in range(pressed.shape[1]):
            x = torch.tanh(pressed[:, channel] @ self.first[channel])
            x = torch.tanh(x @ self.second[channel])
            gave.append((x @ self.last[channel])[:, 0])
        return torch.stack(gave, 1)


def pipettes(count: int = 6000, channels: int = 64) -> TensorDataset:
    """Return how each channel was pressed, and how much it gave."""
    return TensorDataset(torch.randn(count, channels, 12), torch.rand(count, channels))


# Drills


class Drill(nn.Module):
    """How worn the drill was at each of the holes of a plate, by what is around the hole.

    What is around each hole is cut out of the picture hole by hole, or for all holes at once.
    """

    def __init__(self, each: bool, width: int = 16, side: int = 7) -> None:
        super().__init__()
        self.each, self.side = each, side
        self.plate = nn.Conv2d(1, width, 5, padding=2)
        self.hole = nn.Sequential(nn.Linear(width * side * side, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, pictures: Tensor, places: Tensor) -> Tensor:
        x = torch.relu(self.plate(pictures))
        around = self.one_by_one(x, places) if self.each else self.at_once(x, places)
        return self.hole(around.flatten(2))[:, :, 0]

    def one_by_one(self, x: Tensor, places: Tensor) -> Tensor:
        """Return what is around each hole, cut out by itself."""
        plates = []
        for plate, holes in zip(x, places.tolist(), strict=True):
            cut = [plate[:, y : y + self.side, x : x + self.side] for y, x in holes]
            plates.append(torch.stack(cut))
        return torch.stack(plates)

    def at_once(self, x: Tensor, places: Tensor) -> Tensor:
        """Return what is around each hole, looked up for all."""
        along = torch.arange(self.side)
        down = (places[..., :1] + along)[..., :, None]
        across = (places[..., 1:] + along)[..., None, :]
        plate = torch.arange(len(x))[:, None, None, None]
        return x.permute(0, 2, 3, 1)[plate, down, across]


def drills(count: int = 800, holes: int = 30, side: int = 40) -> TensorDataset:
    """Return pictures of plates, where their holes are, and how worn the drill was at each."""
    places = torch.randint(side - 7, (count, holes, 2))
    return TensorDataset(torch.rand(count, 1, side, side), places, torch.rand(count, holes))


# Goggles


class Goggle(nn.Module):
    """Where an eye behind goggles looks: bumps in six directions, each with its own weight."""

    def __init__(self, width: int = 256, bumps: int = 24) -> None:
        super().__init__()
        self.bumps = bumps
        self.lens = nn.Sequential(nn.Linear(90, width), nn.GELU(), nn.Linear(width, width))
        self.places = nn.Linear(width, 13 * bumps)

    def forward(self, seen: Tensor) -> Tensor:
        return self.places(functional.gelu(self.lens(seen))).unflatten(1, (self.bumps, 13))


def unlikely(told: Tensor, looked: Tensor) -> Tensor:
    """Return how unlikely it was to look there, for all bumps at once."""
    weights = torch.log_softmax(told[..., 0], 1)
    bumps = torch.distributions.Normal(told[..., 1:7], told[..., 7:].exp())
    return -torch.logsumexp(weights + bumps.log_prob(looked[:, None]).sum(2), 1).mean()


def unlikely_in_turn(told: Tensor, looked: Tensor) -> Tensor:
    """Return how unlikely it was to look there, bump by bump."""
    weights = torch.log_softmax(told[..., 0], 1)
    likely = []
    for number in range(told.shape[1]):
        place, spread = told[:, number, 1:7], told[:, number, 7:].exp()
        bump = torch.distributions.Normal(place, spread)
        likely.append(weights[:, number] + bump.log_prob(looked).sum(1))
    return -torch.logsumexp(torch.stack(likely, 1), 1).mean()


def goggles(count: int = 8000) -> TensorDataset:
    """Return what goggles see of random eyes, and where these look."""
    return TensorDataset(torch.randn(count, 90), torch.randn(count, 6))


# Cushions


class Cushion(nn.Module):
    """Which of nine fillings a cushion has, by how it gives way under 20 by 20 pins."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.pins = nn.Conv2d(1, width, 3)
        self.gives = nn.Conv2d(width, width, 3)
        self.back = nn.Linear(width * 16 * 16, 96)
        self.filling = nn.Linear(96, 9)

    def forward(self, pins: Tensor) -> Tensor:
        x = functional.silu(self.gives(functional.silu(self.pins(pins))))
        return self.filling(functional.silu(self.back(x.flatten(1))))


def cushions(count: int = 3000) -> TensorDataset:
    """Return how random cushions give way, and what is in them."""
    return TensorDataset(torch.rand(count, 1, 20, 20), torch.randint(9, (count,)))


# Kegs


class Keg(nn.Module):
    """How full a keg is after a night, by how it was tapped in 40 quarters of an hour."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.tapped = nn.Conv1d(5, width, 3, padding=1)
        self.night = nn.GRU(width, width, batch_first=True)
        self.full = nn.Linear(width, 1)

    def forward(self, tapped: Tensor) -> Tensor:
        x = functional.elu(self.tapped(tapped)).transpose(1, 2)
        return self.full(self.night(x)[0].mean(1))[:, 0]


def kegs(count: int = 4000) -> TensorDataset:
    """Return how random kegs were tapped, and how full they were."""
    return TensorDataset(torch.rand(count, 5, 40), torch.rand(count))


# Ewers


class Ewer(nn.Module):
    """In which of 12 workshops a ewer was thrown, by its outline; wide layers."""

    def __init__(self, width: int = 1100, depth: int = 3) -> None:
        super().__init__()
        self.outline = nn.Linear(480, width)
        self.turned = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.workshop = nn.Linear(width, 12)

    def forward(self, outline: Tensor) -> Tensor:
        x = functional.relu(self.outline(outline))
        for layer in self.turned:
            x = functional.relu(layer(x))
        return self.workshop(x)


def ewers(count: int = 6000) -> TensorDataset:
    """Return the outlines of random ewers, and where each was thrown."""
    return TensorDataset(torch.randn(count, 480), torch.randint(12, (count,)))


# Muzzles


class Muzzle(nn.Module):
    """Which of six dogs a muzzle fits, by its straps; layers within and among them."""

    def __init__(self, straps: int = 24, width: int = 96, depth: int = 4) -> None:
        super().__init__()
        self.leather = nn.Linear(20, width)
        self.within = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.among = nn.ModuleList(nn.Linear(straps, straps) for _ in range(depth))
        self.dog = nn.Linear(width, 6)

    def forward(self, straps: Tensor) -> Tensor:
        x = self.leather(straps)
        for within, among in zip(self.within, self.among, strict=True):
            x = x + functional.gelu(within(x))
            x = x + functional.gelu(among(x.transpose(1, 2))).transpose(1, 2)
        return self.dog(x.mean(1))


def muzzles(count: int = 6000, straps: int = 24) -> TensorDataset:
    """Return the straps of random muzzles, and whom each fits."""
    return TensorDataset(torch.randn(count, straps, 20), torch.randint(6, (count,)))


# Latches


class Grouped(nn.Module):
    """A convolution in groups: the library's, or one over all channels whose weights are masked."""

    def __init__(self, masked: bool, width: int, groups: int) -> None:
        super().__init__()
        self.groups = 1 if masked else groups
        self.weight = nn.Parameter(0.05 * torch.randn(width, width // self.groups, 5))
        block = torch.ones(width // groups, width // groups)
        mask = torch.block_diag(*[block] * groups)[:, :, None]
        self.register_buffer("mask", mask if masked else None)

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight if self.mask is None else self.weight * self.mask
        return functional.conv1d(x, weight, padding=2, groups=self.groups)


class Latch(nn.Module):
    """Which of five faults a latch has, by how it sounds when it falls."""

    def __init__(self, masked: bool, width: int = 256, groups: int = 8) -> None:
        super().__init__()
        self.falls = nn.Conv1d(4, width, 5, padding=2)
        self.sounds = nn.ModuleList(Grouped(masked, width, groups) for _ in range(3))
        self.fault = nn.Linear(width, 5)

    def forward(self, heard: Tensor) -> Tensor:
        x = functional.relu(self.falls(heard))
        for layer in self.sounds:
            x = functional.relu(layer(x))
        return self.fault(x.mean(2))


def latches(count: int = 2000) -> TensorDataset:
    """Return how random latches sound, and what is wrong with each."""
    return TensorDataset(torch.randn(count, 4, 64), torch.randint(5, (count,)))


# Lids


class LidBlock(nn.Module):
    """Looks around each place, then norms and mixes the channels of each place.

    For that the channels are turned to be the last, and back, or they are so throughout.
    """

    def __init__(self, turned: bool, width: int) -> None:
        super().__init__()
        self.turned = turned
        self.around = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.mixed = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        seen = self.placed(self.around(x))
        return x + self.back(self.mixed(self.norm(seen)))

    def placed(self, x: Tensor) -> Tensor:
        """Return the channels as the last dimension."""
        x = x.permute(0, 2, 3, 1)
        return x.contiguous() if self.turned else x

    def back(self, x: Tensor) -> Tensor:
        """Return the channels as the second dimension."""
        x = x.permute(0, 3, 1, 2)
        return x.contiguous() if self.turned else x


class Lid(nn.Module):
    """Of which of ten pots a lid is, by its picture."""

    def __init__(self, turned: bool, width: int = 48, depth: int = 3) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, width, 2, 2)
        self.blocks = nn.Sequential(*(LidBlock(turned, width) for _ in range(depth)))
        self.pot = nn.Linear(width, 10)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.pot(self.blocks(self.cut(pictures)).mean((2, 3)))


def lids(count: int = 800) -> TensorDataset:
    """Return pictures of random lids, and to which pots they belong."""
    return TensorDataset(torch.rand(count, 3, 48, 48), torch.randint(10, (count,)))


# Consoles


class Console(nn.Module):
    """Which of 16 moves a player makes next, by the last 24 states of the buttons.

    What tells the moves may be in half precision, as it was saved.
    """

    def __init__(self, dtype: torch.dtype, width: int = 160) -> None:
        super().__init__()
        self.dtype = dtype
        self.buttons = nn.Sequential(nn.Linear(36, width), nn.ReLU(), nn.Linear(width, width))
        self.player = nn.Linear(width, width, dtype=dtype)
        self.move = nn.Linear(width, 16, dtype=dtype)

    def forward(self, buttons: Tensor) -> Tensor:
        x = torch.relu(self.buttons(buttons)).to(self.dtype)
        x = x + torch.relu(self.player(x))
        return self.move(x.mean(1)).float()


def consoles(count: int = 4000) -> TensorDataset:
    """Return random states of buttons, and what was pressed next."""
    return TensorDataset(torch.rand(count, 24, 36), torch.randint(16, (count,)))


# Kiosks


class Kiosk(nn.Module):
    """What kiosks sell by where they are: a Gaussian process on features that are learnt.

    Returns how unlike each other the kiosks of a batch are.
    """

    def __init__(self, dtype: torch.dtype, width: int = 128) -> None:
        super().__init__()
        self.dtype = dtype
        self.street = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, width))
        self.place = nn.Linear(width, 4)
        self.noise = nn.Parameter(torch.zeros(()))

    def forward(self, streets: Tensor) -> Tensor:
        x = self.place(torch.tanh(self.street(streets))).to(self.dtype)
        squares = x.square().sum(1)
        apart = squares[:, None] + squares - 2 * x @ x.T
        alike = torch.exp(-0.5 * apart.relu()) + 1 / (1 + 0.1 * apart.relu())
        return alike + (0.5 + self.noise.exp()) * torch.eye(len(x), dtype=self.dtype)


def unlikely_sales(alike: Tensor, sold: Tensor) -> Tensor:
    """Return how unlikely what was sold is, by what was sold at kiosks that are alike."""
    lower = torch.linalg.cholesky(alike)
    white = torch.linalg.solve_triangular(lower, sold[:, None].to(alike.dtype), upper=False)
    return (0.5 * white.square().sum() + lower.diagonal().log().sum()) / len(sold)


def kiosks(count: int = 8000) -> TensorDataset:
    """Return where random kiosks are, and what they sold."""
    return TensorDataset(torch.randn(count, 64), torch.randn(count))


# Crests


class ByCodes(torch.autograd.Function):
    """A product with weights that are looked up for it, and again for its slopes."""

    @staticmethod
    def forward(context: Any, x: Tensor, looked_up: Callable[[], Tensor]) -> Tensor:
        context.looked_up = looked_up
        return x @ looked_up().T

    @staticmethod
    def backward(context: Any, slopes: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return slopes @ context.looked_up(), None


class Coded(nn.Module):
    """A layer that stays as it is, with two thin ones that learn beside it.

    Its weights are codes of four bits, two in a byte, which are looked up anew at each use.
    """

    def __init__(self, coded: bool, width: int, thin: int = 8) -> None:
        super().__init__()
        weight = torch.randn(width, width) / width**0.5
        self.down = nn.Parameter(0.02 * torch.randn(thin, width))
        self.up = nn.Parameter(torch.zeros(width, thin))
        self.shape = weight.shape
        self.register_buffer("weight", None if coded else weight)
        if coded:
            parts = weight.view(-1, 64)
            scales = parts.abs().amax(1, keepdim=True)
            levels = torch.linspace(-1, 1, 16)
            nearest = torch.bucketize(parts / scales, (levels[1:] + levels[:-1]) / 2)
            codes = nearest.view(-1, 2).to(torch.uint8)
            self.register_buffer("codes", codes[:, 0] << 4 | codes[:, 1])
            self.register_buffer("scales", scales)
            self.register_buffer("levels", levels)

    def looked_up(self) -> Tensor:
        """Return the weights that the codes stand for."""
        both = torch.stack([self.codes >> 4, self.codes & 15], 1).flatten()
        values = self.levels[both.int()].view(-1, 64) * self.scales
        return values.view(self.shape)

    def forward(self, x: Tensor) -> Tensor:
        learnt = (x @ self.down.T) @ self.up.T
        if self.weight is None:
            return ByCodes.apply(x, self.looked_up) + learnt
        return functional.linear(x, self.weight) + learnt


class Crest(nn.Module):
    """Of which of 14 houses a crest is, by what is told of it; most of it does not learn."""

    def __init__(self, coded: bool, width: int = 640, depth: int = 4) -> None:
        super().__init__()
        self.told = nn.Linear(200, width)
        self.layers = nn.ModuleList(Coded(coded, width) for _ in range(depth))
        self.house = nn.Linear(width, 14)

    def forward(self, told: Tensor) -> Tensor:
        x = self.told(told)
        for layer in self.layers:
            x = x + functional.silu(layer(x))
        return self.house(x)


def crests(count: int = 6000) -> TensorDataset:
    """Return what is told of random crests, and whose they are."""
    return TensorDataset(torch.randn(count, 200), torch.randint(14, (count,)))


# Dials


class Dial(nn.Module):
    """What a dial shows, by its picture, which may be made larger first."""

    def __init__(self, side: int | None, width: int = 24) -> None:
        super().__init__()
        self.side = side
        self.ring = nn.Conv2d(1, width, 3, padding=1)
        self.hand = nn.Conv2d(width, width, 3, padding=1)
        self.shows = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        x = pictures
        if self.side is not None:
            x = functional.interpolate(x, (self.side, self.side), mode="bilinear")
        x = functional.relu(self.hand(functional.relu(self.ring(x))))
        return self.shows(x.mean((2, 3)))[:, 0]


def dials(count: int = 3000) -> TensorDataset:
    """Return small pictures of random dials, and what each shows."""
    return TensorDataset(torch.rand(count, 1, 28, 28), torch.rand(count))


# Harnesses


class Harnesses(Dataset[tuple[Tensor, int]]):
    """Harnesses of 8 to 36 straps each."""

    def __init__(self, count: int = 3000) -> None:
        many = torch.randint(8, 37, (count,)).tolist()
        self.straps = [torch.randn(each, 16) for each in many]

    def __len__(self) -> int:
        return len(self.straps)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.straps[index], index % 7


Batch = tuple[Tensor, Tensor, Tensor]


def filled_up(room: int | None) -> Callable[[list[tuple[Tensor, int]]], Batch]:
    """Return what puts harnesses into one room, as large as told or as the most straps ask for."""

    def joined(harnesses: list[tuple[Tensor, int]]) -> Batch:
        most = room or max(len(straps) for straps, _ in harnesses)
        straps, there = torch.zeros(len(harnesses), most, 16), torch.zeros(len(harnesses), most)
        for number, (each, _) in enumerate(harnesses):
            straps[number, : len(each)] = each
            there[number, : len(each)] = 1
        return straps, there, torch.tensor([horse for _, horse in harnesses])

    return joined


class Harness(nn.Module):
    """Which of seven horses a harness is for, by its straps, which look at each other."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.strap = nn.Linear(16, width)
        self.pulls = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.horse = nn.Linear(width, 7)

    def forward(self, straps: Tensor, there: Tensor) -> Tensor:
        x = self.pulls(self.strap(straps), src_key_padding_mask=there == 0)
        return self.horse((x * there[..., None]).sum(1) / there.sum(1, keepdim=True))
