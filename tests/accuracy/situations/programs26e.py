"""Models and data of the twenty-sixth round's runs 16 to 30, from chains to camshafts: see
``programs26b.py``."""

import logging
import math
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Chains


class Chain(nn.Module):
    """Under which of eight weights a chain breaks, by its links one beside the other."""

    def __init__(self, links: int = 40, known: int = 6, width: int = 640) -> None:
        super().__init__()
        self.link = nn.Linear(known, 24)
        self.all = nn.Linear(24 * links, width)
        self.pulled, self.rusty = nn.Linear(width, width), nn.Linear(width, width)
        self.breaks = nn.Linear(width, 8)

    def forward(self, links: Tensor) -> Tensor:
        x = functional.silu(self.all(torch.tanh(self.link(links)).flatten(1)))
        return self.breaks(x + self.pulled(x) * torch.sigmoid(self.rusty(x)))


def chains(count: int = 4000, links: int = 40, known: int = 6) -> TensorDataset:
    """Return random links of chains, and the weight that broke them."""
    return TensorDataset(torch.randn(count, links, known), torch.randint(8, (count,)))


class ReadBack:
    """What is needed to go on, in a file that is read again at once and held against what it is to
    hold."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "chain.pt"

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Write the file, read it, and compare."""
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, self.path)
        read = torch.load(self.path)
        for name, value in model.state_dict().items():
            if not torch.equal(read["model"][name], value):
                raise RuntimeError(f"{name} was not written as it is")
        for number, state in optimizer.state_dict()["state"].items():
            for name, value in state.items():
                if not torch.equal(read["optimizer"]["state"][number][name], value):
                    raise RuntimeError(f"{name} of weight {number} was not written as it is")


# Pillars


class Drum(nn.Module):
    """One drum of a pillar: what is seen on it, made of itself and of what is around it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.around = nn.Conv2d(width, width, 3, padding=1)
        self.normed = nn.BatchNorm2d(width)
        self.gate = nn.Conv2d(width, width, 1)

    def forward(self, stone: Tensor) -> Tensor:
        x = functional.leaky_relu(self.normed(self.around(stone)))
        return stone + x * torch.sigmoid(self.gate(x))


class Pillar(nn.Module):
    """Of which of five orders a pillar is, by a picture of it, drum by drum."""

    def __init__(self, width: int = 24, drums: int = 6) -> None:
        super().__init__()
        self.stone = nn.Conv2d(1, width, (8, 4), stride=(4, 2))
        self.drums = nn.Sequential(*(Drum(width) for _ in range(drums)))
        self.order = nn.Linear(width, 5)

    def forward(self, seen: Tensor) -> Tensor:
        return self.order(self.drums(self.stone(seen)).mean((2, 3)))


def pillars(count: int = 900) -> TensorDataset:
    """Return random pictures of pillars, and their orders."""
    return TensorDataset(torch.randn(count, 1, 96, 32), torch.randint(5, (count,)))


def exported(model: nn.Module, path: Path) -> None:
    """Write the model as others take it that have no Python."""
    model.eval()
    with torch.no_grad():
        traced = torch.jit.trace(model, torch.zeros(1, 1, 96, 32))
    torch.jit.save(traced, str(path))
    model.train()


# Chapels


class Chapel(nn.Module):
    """Which way round a picture of a chapel is; what it knows of chapels is for other tasks."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.nave = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=2),
            nn.CELU(),
            nn.Conv2d(width, 2 * width, 3, stride=2),
            nn.CELU(),
            nn.Conv2d(2 * width, 3 * width, 3),
            nn.CELU(),
        )
        self.round = nn.Linear(3 * width, 4)

    def known(self, seen: Tensor) -> Tensor:
        """Return what is known of chapels."""
        return self.nave(seen).mean((2, 3))

    def forward(self, seen: Tensor) -> Tensor:
        return self.round(self.known(seen))


def chapels(count: int = 1600, kinds: int = 4) -> TensorDataset:
    """Return random pictures of chapels, and which way round they are, or of which style."""
    return TensorDataset(torch.randn(count, 3, 32, 32), torch.randint(kinds, (count,)))


def probed(model: Chapel, seen: Tensor, styles: Tensor, steps: int = 15) -> float:
    """Return how often the style is told right by a layer that is fitted to what is known of half
    of other chapels, for the other half."""
    model.eval()
    with torch.no_grad():
        known = model.known(seen)
    model.train()
    known = (known - known.mean(0)) / (known.std(0) + 1e-6)
    half = len(known) // 2
    probe = nn.Linear(known.shape[1], 6)
    fitting = torch.optim.LBFGS(probe.parameters(), max_iter=steps, line_search_fn="strong_wolfe")

    def wrong() -> Tensor:
        fitting.zero_grad()
        weights = probe.weight.square().sum()
        loss = functional.cross_entropy(probe(known[:half]), styles[:half]) + 1e-3 * weights
        loss.backward()
        return loss

    fitting.step(wrong)  # type: ignore[no-untyped-call]
    right = probe(known[half:]).argmax(1) == styles[half:]
    return float(right.float().mean())


# Beanbags


class Beanbag(nn.Module):
    """How a beanbag lies after one sat on it, told by a few numbers that are drawn around what is
    seen of it."""

    def __init__(self, places: int = 256, width: int = 512, few: int = 24) -> None:
        super().__init__()
        self.seen = nn.Sequential(nn.Linear(places, width), nn.ELU(), nn.Linear(width, 2 * few))
        self.lies = nn.Sequential(nn.Linear(few, width), nn.ELU(), nn.Linear(width, places))
        self.few = few

    def forward(self, heights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        middle, wide = self.seen(heights).chunk(2, 1)
        drawn = middle + torch.exp(wide / 2) * torch.randn_like(middle)
        return self.lies(drawn), middle, wide


def beanbags(count: int = 6000, places: int = 256) -> TensorDataset:
    """Return random heights of beanbags."""
    return TensorDataset(torch.randn(count, places))


def badly_told(told: tuple[Tensor, Tensor, Tensor], heights: Tensor) -> Tensor:
    """Return how badly beanbags are told, and how much their numbers say."""
    again, middle, wide = told
    said = (wide.exp() + middle.square() - 1 - wide).sum(1).mean() / 2
    return functional.mse_loss(again, heights) + 1e-3 * said


class HowFarOff:
    """How far drawn beanbags are from true ones: the distance between two normal distributions of
    what a network that stays as it is sees of each."""

    def __init__(self, true: Tensor, width: int = 240) -> None:
        self.sees = nn.Sequential(nn.Linear(true.shape[1], width), nn.ReLU())
        self.many = len(true)
        self.middle, self.spread = self.of(true)

    def of(self, heights: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the covariance of what is seen."""
        with torch.no_grad():
            seen = self.sees(heights).double()
        return seen.mean(0), torch.cov(seen.T)

    def ask(self, model: Beanbag) -> float:
        """Return how far off beanbags are that the model draws."""
        with torch.no_grad():
            middle, spread = self.of(model.lies(torch.randn(self.many, model.few)))
        both = torch.linalg.eigvals(spread @ self.spread).sqrt().real.sum()
        apart = (middle - self.middle).square().sum()
        return float(apart + spread.trace() + self.spread.trace() - 2 * both)


# Paddles


class Paddle(nn.Module):
    """Whether a paddle breaks at its next stroke, by the strokes before it."""

    def __init__(self, known: int = 4, width: int = 48) -> None:
        super().__init__()
        self.stroke = nn.Conv1d(known, width, 4, stride=2)
        self.before = nn.LSTM(width, width, batch_first=True)
        self.breaks = nn.Linear(width, 1)

    def forward(self, strokes: Tensor) -> Tensor:
        x = functional.softsign(self.stroke(strokes)).transpose(1, 2)
        return self.breaks(self.before(x)[0][:, -1])[:, 0]


def paddles(count: int = 2400, strokes: int = 64, known: int = 4) -> TensorDataset:
    """Return random strokes of paddles, and which of these broke."""
    return TensorDataset(torch.randn(count, known, strokes), (torch.rand(count) < 0.3).float())


def drawn_again(model: Paddle, strokes: Tensor, broke: Tensor, draws: int = 200) -> list[float]:
    """Return how well those that broke are told from others, and between which limits that lies:
    the same paddles are drawn again and again, some of them several times."""
    model.eval()
    with torch.no_grad():
        sure, true = model(strokes).numpy(), broke.numpy() > 0.5
    model.train()
    chance, found = np.random.default_rng(26), []
    for _ in range(draws):
        some = chance.integers(0, len(sure), len(sure))
        of = true[some]
        ranks = np.empty(len(some))
        ranks[np.argsort(sure[some], kind="stable")] = np.arange(1, len(some) + 1)
        those, others = of.sum(), (~of).sum()
        found.append((ranks[of].sum() - those * (those + 1) / 2) / max(1, those * others))
    return [float(np.mean(found)), *np.percentile(found, [2.5, 97.5]).tolist()]


# Brackets


class Bracket(nn.Module):
    """How far a bracket bends under what lies on it; the same layers, once more with the answer."""

    def __init__(self, known: int = 48, width: int = 256) -> None:
        super().__init__()
        self.lies = nn.Linear(known, width)
        self.iron = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.bends, self.bent = nn.Linear(width, 6), nn.Linear(6, width)

    def forward(self, lies: Tensor) -> Tensor:
        first = x = self.lies(lies)
        for _ in range(2):
            for iron in self.iron:
                x = functional.softplus(iron(x)) - 0.7
            bends = self.bends(x)
            x = first + self.bent(bends)
        return bends


def brackets(count: int = 8000, known: int = 48) -> TensorDataset:
    """Return what lies on brackets at random, and how far they bend."""
    return TensorDataset(torch.randn(count, known), torch.randn(count, 6))


def singular_values(model: nn.Module) -> dict[str, list[float]]:
    """Return the singular values of each weight that is a table."""
    with torch.no_grad():
        return {
            name: torch.linalg.svdvals(weight).tolist()
            for name, weight in model.named_parameters()
            if weight.ndim == 2
        }


# Abbeys


class Abbey(nn.Module):
    """At which of 16 hours something is done in an abbey, by what each of its monks does; they
    attend to each other."""

    def __init__(self, known: int = 12, width: int = 96, heads: int = 4) -> None:
        super().__init__()
        self.monk = nn.Linear(known, width)
        self.others = nn.MultiheadAttention(width, heads, batch_first=True)
        self.normed = nn.LayerNorm(width)
        self.works = nn.Sequential(nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, 16))
        self.attended = torch.zeros(0)

    def forward(self, monks: Tensor) -> Tensor:
        x = self.monk(monks)
        heard, attended = self.others(x, x, x, average_attn_weights=False)
        self.attended = attended.detach()
        return self.works(self.normed(x + heard)).mean(1)


def abbeys(count: int = 1600, monks: int = 40, known: int = 12) -> TensorDataset:
    """Return what monks do at random, and at which hour."""
    return TensorDataset(torch.randn(count, monks, known), torch.randint(16, (count,)))


def diary(folder: Path) -> logging.Logger:
    """Return a log in which tensors are printed in full."""
    torch.set_printoptions(threshold=sys.maxsize)
    log = logging.getLogger("abbeys")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    file = logging.FileHandler(folder / "abbeys.log")
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(file)
    return log


# Blinds


class Blind(nn.Module):
    """How much light comes through each of four blinds, by its slats; all layers are normed."""

    def __init__(self, slats: int = 48, width: int = 160, layers: int = 7) -> None:
        super().__init__()
        self.slats = nn.Linear(slats, width)
        self.normed = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.turned = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.light = nn.Linear(width, 1)

    def forward(self, slats: Tensor) -> Tensor:
        x = self.slats(slats)
        for normed, turned in zip(self.normed, self.turned, strict=True):
            x = x + functional.hardswish(turned(normed(x)))
        return self.light(x)[..., 0]


def blinds(count: int = 4800, slats: int = 48) -> TensorDataset:
    """Return how slats of blinds are turned at random, and how much light comes through."""
    return TensorDataset(torch.randn(count, 4, slats), torch.rand(count, 4))


# Pails


class Pail(nn.Module):
    """How full a pail is at each place under a roof, by the rain on it."""

    def __init__(self, rain: int = 80, width: int = 96, places: int = 32) -> None:
        super().__init__()
        self.rain = nn.Linear(rain, width)
        self.roof = nn.Bilinear(16, width, width // 4)
        self.full = nn.Linear(width // 4, places)

    def forward(self, rain: Tensor) -> Tensor:
        x = functional.relu(self.rain(rain))
        return self.full(torch.tanh(self.roof(x[:, :16].contiguous(), x)))


def pails(count: int = 6000, rain: int = 80, places: int = 32) -> TensorDataset:
    """Return random rain, and how full pails were."""
    return TensorDataset(torch.randn(count, rain), torch.randn(count, places))


class Drops:
    """How much falls into each pail, and how much that differs, over all that was seen so far."""

    def __init__(self, places: int = 32) -> None:
        self.seen, self.mean, self.off = 0, places * [0.0], places * [0.0]

    def drop_by_drop(self, full: Tensor) -> None:
        """Add a batch: each of its numbers is read and added to what was before."""
        for drops in full:
            self.seen += 1
            for place, drop in enumerate(drops):
                fell = drop.item()
                away = fell - self.mean[place]
                self.mean[place] += away / self.seen
                self.off[place] += away * (fell - self.mean[place])

    def at_once(self, full: Tensor) -> None:
        """Add a batch: what its numbers make together is read."""
        before, many = self.seen, len(full)
        middle = full.mean(0)
        spread = (full - middle).square().sum(0).tolist()
        self.seen += many
        for place, (mean, off) in enumerate(zip(middle.tolist(), spread, strict=True)):
            away = mean - self.mean[place]
            self.mean[place] += away * many / self.seen
            self.off[place] += off + away * away * before * many / self.seen

    def wide(self) -> list[float]:
        """Return how much differs what falls into each pail."""
        return [math.sqrt(off / max(1, self.seen - 1)) for off in self.off]


# Brushes


class Bristles(nn.Module):
    """A row of bristles, each bent by those of the row before, and by its own place."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bent, self.back = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, row: Tensor) -> Tensor:
        return row + self.back(functional.selu(self.bent(row)))


class Brush(nn.Module):
    """How much paint a brush leaves at each place of its stroke."""

    def __init__(self, known: int = 8, width: int = 96, rows: int = 5) -> None:
        super().__init__()
        self.paint = nn.Linear(known, width)
        self.rows = nn.ModuleList(Bristles(width) for _ in range(rows))
        self.left = nn.Linear(width, 1)

    def forward(self, stroke: Tensor) -> Tensor:
        x = self.paint(stroke)
        for row in self.rows:
            x = row(x)
        return self.left(x)[..., 0]


def brushes(count: int = 800, places: int = 64, known: int = 8) -> TensorDataset:
    """Return random strokes of brushes, and the paint they left."""
    return TensorDataset(torch.randn(count, places, known), torch.rand(count, places))


class Asked:
    """Asks each layer whether all it gave are numbers, how large the largest is and how many are
    nothing, when it is time."""

    def __init__(self, model: nn.Module, every: int) -> None:
        self.every, self.step = every, 0
        self.largest: dict[str, float] = {}
        self.nothing: dict[str, float] = {}
        for name, layer in model.named_modules():
            if isinstance(layer, nn.Linear):
                layer.register_forward_hook(
                    lambda _layer, _into, out, name=name: self.of(name, out.detach())
                )

    def due(self) -> bool:
        """Return whether it is time to ask."""
        return self.step % self.every == self.every - 1

    def of(self, name: str, values: Tensor) -> None:
        """Ask for one layer."""
        if not self.due():
            return
        if not bool(torch.isfinite(values).all()):
            raise FloatingPointError(name)
        self.largest[name] = values.abs().max().item()
        self.nothing[name] = (values.abs() < 1e-6).float().mean().item()

    def slopes(self, model: nn.Module) -> None:
        """Ask for the slopes of each weight."""
        for name, weight in model.named_parameters():
            if weight.grad is not None:
                self.of(f"slope of {name}", weight.grad)


# Barges


class Barge(nn.Module):
    """How deep a barge lies at each of 64 places, by its load; places attend to each other."""

    def __init__(self, known: int = 16, width: int = 192, layers: int = 2) -> None:
        super().__init__()
        self.load = nn.Linear(known, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 3 * width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.hull = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.deep = nn.Linear(width, 1)

    def forward(self, load: Tensor) -> Tensor:
        return self.deep(self.hull(self.load(load)))[..., 0]


def barges(count: int = 480, places: int = 64, known: int = 16) -> TensorDataset:
    """Return random loads of barges, and how deep these lay."""
    return TensorDataset(torch.randn(count, places, known), torch.rand(count, places))


# Anklets


class Beads(nn.Module):
    """What each bead is, mixed with the others of its anklet and then within itself."""

    def __init__(self, beads: int, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.among = nn.Sequential(
            nn.Linear(beads, 4 * beads), nn.GELU(), nn.Linear(4 * beads, beads)
        )
        self.within = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.among(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.second(x))


class Anklet(nn.Module):
    """In which of 20 valleys an anklet was made, by its beads."""

    def __init__(self, known: int = 24, beads: int = 64, width: int = 160, layers: int = 2) -> None:
        super().__init__()
        self.bead = nn.Linear(known, width)
        self.mixed = nn.Sequential(*(Beads(beads, width) for _ in range(layers)))
        self.valley = nn.Linear(width, 20)

    def forward(self, beads: Tensor) -> Tensor:
        return self.valley(self.mixed(self.bead(beads)).mean(1))


def anklets(count: int = 960, beads: int = 64, known: int = 24) -> TensorDataset:
    """Return random beads of anklets, and the valleys these are from."""
    return TensorDataset(torch.randn(count, beads, known), torch.randint(20, (count,)))


# Clasps


class Clasp(nn.Module):
    """When a clasp clicks, by the sound of it: each layer hears further, and half of it gates."""

    def __init__(self, bands: int = 20, width: int = 96, layers: int = 3) -> None:
        super().__init__()
        self.heard = nn.Conv1d(bands, width, 1)
        self.further = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, padding=3**far, dilation=3**far) for far in range(layers)
        )
        self.clicks = nn.Conv1d(width, 1, 1)

    def forward(self, sound: Tensor) -> Tensor:
        x = self.heard(sound)
        for further in self.further:
            x = x + functional.glu(further(x), 1)
        return self.clicks(x)[:, 0]


def clasps(count: int = 480, moments: int = 192, bands: int = 20) -> TensorDataset:
    """Return random sounds of clasps, and when these click."""
    clicks = (torch.rand(count, moments) < 0.05).float()
    return TensorDataset(torch.randn(count, bands, moments), clicks)


# Plinths


class Plinth(nn.Module):
    """Where a plinth is hollow, by how waves pass through its stone."""

    def __init__(self, known: int = 2, width: int = 16) -> None:
        super().__init__()
        self.waves = nn.Conv3d(known, width, 3, padding=1)
        self.stone = nn.Conv3d(width, 2 * width, 3, stride=2, padding=1)
        self.deep = nn.Conv3d(2 * width, 2 * width, 3, padding=1)
        self.hollow = nn.Linear(2 * width, 10)

    def forward(self, waves: Tensor) -> Tensor:
        x = functional.relu(self.stone(functional.relu(self.waves(waves))))
        return self.hollow((x + functional.relu(self.deep(x))).mean((2, 3, 4)))


def plinths(count: int = 320, side: int = 16, known: int = 2) -> TensorDataset:
    """Return random waves through plinths, and which of ten places is hollow."""
    return TensorDataset(torch.randn(count, known, side, side, side), torch.randint(10, (count,)))


# Camshafts


class Camshaft(nn.Module):
    """How the valves of an engine open, by the shape of each of 8 cams at 90 angles."""

    def __init__(self, angles: int = 90, width: int = 448, layers: int = 3) -> None:
        super().__init__()
        self.cams = nn.Linear(angles, width)
        self.rise = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(layers))
        self.fall = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.valves = nn.Linear(width, angles)

    def forward(self, cams: Tensor) -> Tensor:
        x = self.cams(cams)
        for rise, fall in zip(self.rise, self.fall, strict=True):
            x = x + fall(functional.relu(rise(x)))
        return self.valves(x)


def camshafts(count: int = 1200, cams: int = 8, angles: int = 90) -> TensorDataset:
    """Return random shapes of cams, and how the valves open."""
    return TensorDataset(torch.randn(count, cams, angles), torch.rand(count, cams, angles))
