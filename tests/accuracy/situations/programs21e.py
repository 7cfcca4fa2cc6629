"""Models and data of the twenty-first round's runs 16 to 30, from resin to hearths: see
``programs21b.py``."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import TensorDataset

# Resin


class Mould(nn.Module):
    """A layer of a mould, through which resin flows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.normed, self.flow = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + functional.silu(self.flow(self.normed(x)))


class Resin(nn.Module):
    """How long resin takes to set, by what was measured at places of a mould."""

    def __init__(self, measured: int = 9, width: int = 64, layers: int = 7) -> None:
        super().__init__()
        self.place = nn.Linear(measured, width)
        self.layers = nn.Sequential(*(Mould(width) for _ in range(layers)))
        self.long = nn.Linear(width, 1)

    def forward(self, places: Tensor) -> Tensor:
        return self.long(self.layers(self.place(places)).mean(1))[:, 0]


def resins(count: int = 1600, places: int = 20, measured: int = 9) -> TensorDataset:
    """Return random measures at places of moulds, and how long their resin took."""
    return TensorDataset(torch.randn(count, places, measured), torch.rand(count))


# Skateboards


class Skater(nn.Module):
    """How a skater shifts the weight, by where the board is and how it moves."""

    def __init__(self, known: int = 8, width: int = 192, shifts: int = 4) -> None:
        super().__init__()
        self.feels = nn.Linear(known, width)
        self.thinks = nn.Linear(width, width)
        self.shifts = nn.Linear(width, shifts)

    def forward(self, board: Tensor) -> Tensor:
        x = functional.relu(self.feels(board))
        return self.shifts(functional.relu(self.thinks(x))).tanh()


def skaters(count: int = 3200, known: int = 8, shifts: int = 4) -> TensorDataset:
    """Return random boards, and how skaters shifted their weight on them."""
    return TensorDataset(torch.randn(count, known), torch.rand(count, shifts) * 2 - 1)


def ridden(model: nn.Module, boards: Tensor, moments: int = 128) -> float:
    """Return for how many moments boards stay level where this skater rides them."""
    level, long = torch.ones(len(boards)), torch.zeros(len(boards))
    for _ in range(moments):
        shift = model(boards)
        faster = shift - 0.1 * boards[:, :4]
        boards = boards + 0.02 * torch.cat([boards[:, 4:], faster], 1)
        level = level * (boards[:, 1].abs() < 1.5)
        long += level
    return long.mean().item()


# Cellars


class Cellar(nn.Module):
    """For how long the wine of a cellar may lie, by what was measured of its bottles."""

    def __init__(self, measured: int = 8, width: int = 64, years: int = 6) -> None:
        super().__init__()
        self.bottle = nn.Linear(measured, width)
        self.shelf = nn.Linear(width, 2 * width)
        self.back = nn.Linear(2 * width, width)
        self.hidden = nn.Dropout(0.2)
        self.years = nn.Linear(width, years)

    def forward(self, bottles: Tensor) -> Tensor:
        x = functional.gelu(self.bottle(bottles))
        x = self.back(functional.gelu(self.shelf(x))).mean(1)
        return self.years(self.hidden(x))


def cellars(count: int = 1600, bottles: int = 48, measured: int = 8) -> TensorDataset:
    """Return random measures of bottles, and for how long they may lie."""
    return TensorDataset(torch.randn(count, bottles, measured), torch.randint(6, (count,)))


def unsure(model: nn.Module, bottles: Tensor, draws: int = 12) -> float:
    """Return how much what is told of cellars differs, where other parts are hidden each time."""
    told = torch.stack([model(bottles).softmax(1) for _ in range(draws)])
    whole = torch.special.entr(told.mean(0)).sum(1)
    return (whole - torch.special.entr(told).sum(2).mean(0)).mean().item()


# Hourglasses


class Hourglass(nn.Module):
    """How long an hourglass runs, by how its sand sounds and weighs."""

    def __init__(self, width: int = 24, classes: int = 7) -> None:
        super().__init__()
        self.falls = nn.Conv1d(2, width, 7, stride=2, padding=3)
        self.heap = nn.Conv1d(width, 2 * width, 5, stride=2, padding=2)
        self.runs = nn.Linear(2 * width, classes)

    def forward(self, sand: Tensor) -> Tensor:
        x = functional.elu(self.heap(functional.elu(self.falls(sand))))
        return self.runs(x.mean(2))


def hourglasses(count: int = 2400, moments: int = 128) -> TensorDataset:
    """Return random sounds and weights of sand, and how long it runs."""
    return TensorDataset(torch.randn(count, 2, moments), torch.randint(7, (count,)))


def right(model: nn.Module, others: Iterable[Any], hard: float) -> float:
    """Return how many of others are told right, where they are shaken so hard."""
    told_right = seen = 0
    for sand, runs in others:
        told = model(sand + hard * torch.randn_like(sand)).argmax(1)
        told_right += int((told == runs).sum())
        seen += len(runs)
    return told_right / seen


# Hang gliders


class HangGlider(nn.Module):
    """Where a hang glider flies, minute by minute, by the gusts that it meets."""

    def __init__(self, gusts: int = 6, width: int = 64) -> None:
        super().__init__()
        self.gusts = nn.GRU(gusts, width, batch_first=True)
        self.moves = nn.Linear(width, 3)

    def forward(self, gusts: Tensor) -> Tensor:
        return self.moves(self.gusts(gusts)[0]).cumsum(1)


def flights(count: int = 1600, minutes: int = 24, gusts: int = 6) -> TensorDataset:
    """Return random gusts, and where hang gliders flew: eastwards, northwards and upwards."""
    return TensorDataset(torch.randn(count, minutes, gusts), torch.randn(count, minutes, 3))


def noted(flown: Tensor, step: int, path: Path) -> None:
    """Write flights to a file, as maps take them."""
    book = ElementTree.Element("gpx", version="1.1", creator="hang gliders")
    for number, flight in enumerate(flown.tolist()):
        track = ElementTree.SubElement(book, "trk")
        ElementTree.SubElement(track, "name").text = f"flight {number} of update {step}"
        part = ElementTree.SubElement(track, "trkseg")
        for minute, (east, north, high) in enumerate(flight):
            where = {"lat": f"{46 + north / 100:.6f}", "lon": f"{7 + east / 100:.6f}"}
            point = ElementTree.SubElement(part, "trkpt", where)
            ElementTree.SubElement(point, "ele").text = f"{1500 + 100 * high:.1f}"
            ElementTree.SubElement(point, "time").text = f"2026-06-01T12:{minute:02d}:00Z"
    ElementTree.ElementTree(book).write(path, "utf-8", xml_declaration=True)


# Whirlpools


class Whirlpool(nn.Module):
    """How far a whirlpool turns each of some drifters, by what is known of them."""

    def __init__(self, known: int = 12, width: int = 96) -> None:
        super().__init__()
        self.drifter = nn.Linear(known, width)
        self.pulled = nn.Linear(width, 2 * width)
        self.around = nn.Linear(2 * width, width)
        self.turned = nn.Linear(width, 1)

    def forward(self, drifters: Tensor) -> Tensor:
        x = functional.softplus(self.drifter(drifters))
        x = functional.relu(self.around(functional.relu(self.pulled(x))))
        return self.turned(x)[..., 0]


def whirlpools(count: int = 2400, drifters: int = 10, known: int = 12) -> TensorDataset:
    """Return random drifters of whirlpools, and how far they were turned."""
    return TensorDataset(torch.randn(count, drifters, known), torch.randn(count, drifters))


def furthest(turned: Tensor, most: list[Any]) -> None:
    """Keep how far each drifter was turned at most, in any whirlpool."""
    for pool in turned:
        for drifter, turn in enumerate(pool):
            if turn > most[drifter]:
                most[drifter] = turn


# Plaster


class Plaster(nn.Module):
    """How wet plaster is, by a picture of it."""

    def __init__(self, width: int = 32, coats: int = 3) -> None:
        super().__init__()
        self.seen = nn.Conv2d(3, width, 4, stride=2, padding=1)
        self.coats = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(coats))
        self.wet = nn.Linear(width, 1)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.silu(self.seen(picture))
        for coat in self.coats:
            x = x + functional.silu(coat(x))
        return self.wet(x.mean((2, 3)))[:, 0]


def plaster(count: int = 288, side: int = 64) -> TensorDataset:
    """Return random pictures of plaster, and how wet it is."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.rand(count))


# Tricycles


class Tricycle(nn.Module):
    """Who rides a tricycle, by how it moves at many moments."""

    def __init__(self, measured: int = 24, width: int = 160, riders: int = 8) -> None:
        super().__init__()
        self.pedals = nn.Linear(measured, width)
        self.chain = nn.Linear(width, width)
        self.wheels = nn.Linear(width, width)
        self.rider = nn.Linear(width, riders)

    def forward(self, moments: Tensor) -> Tensor:
        x = functional.gelu(self.pedals(moments))
        x = functional.gelu(self.wheels(functional.gelu(self.chain(x))))
        return self.rider(x.mean(1))


def tricycles(count: int = 480, moments: int = 256, measured: int = 24) -> TensorDataset:
    """Return random moments of tricycles, and who rides."""
    return TensorDataset(torch.randn(count, moments, measured), torch.randint(8, (count,)))


# Topazes


class Topaz(nn.Module):
    """In which way a topaz is cut, by points on its facets: gates let a part of each through."""

    def __init__(self, known: int = 8, width: int = 128, depth: int = 2, cuts: int = 9) -> None:
        super().__init__()
        self.point = nn.Linear(known, width)
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.cut = nn.Linear(width, cuts)

    def forward(self, points: Tensor) -> Tensor:
        x = self.point(points)
        for gate in self.gates:
            x = x + functional.glu(gate(x), 2)
        return self.cut(x.amax(1))


def topazes(count: int = 512, points: int = 320, known: int = 8) -> TensorDataset:
    """Return random points on topazes, and how these are cut."""
    return TensorDataset(torch.randn(count, points, known), torch.randint(9, (count,)))


# Garnets


class Garnet(nn.Module):
    """How bright each ray leaves a garnet, by where and how it went in."""

    def __init__(self, known: int = 5, width: int = 112, depth: int = 3) -> None:
        super().__init__()
        self.enters = nn.Linear(known, width)
        self.bends = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.bright = nn.Linear(width, 1)

    def forward(self, rays: Tensor) -> Tensor:
        x = functional.mish(self.enters(rays))
        for bend in self.bends:
            x = x + functional.mish(bend(x))
        return self.bright(x)[..., 0]


def garnets(count: int = 480, rays: int = 384, known: int = 5) -> TensorDataset:
    """Return random rays into garnets, and how bright they come out."""
    return TensorDataset(torch.randn(count, rays, known), torch.rand(count, rays))


# Pendulums


class Pendulum(nn.Module):
    """Where pendulums are a while later, in four parts of which each goes on from the last."""

    def __init__(self, known: int = 4, width: int = 128, parts: int = 4) -> None:
        super().__init__()
        self.parts = parts
        self.pull, self.more = nn.Linear(known, width), nn.Linear(width, width)
        self.swing = nn.Linear(width, known)

    def forward(self, pendulums: Tensor) -> Tensor:
        for _ in range(self.parts):
            x = self.more(self.pull(pendulums).tanh()).tanh()
            pendulums = pendulums + self.swing(x) / self.parts
        return pendulums


def pendulums(count: int = 480, together: int = 128, known: int = 4) -> TensorDataset:
    """Return random pendulums, and where they are a while later."""
    return TensorDataset(torch.randn(count, together, known), torch.randn(count, together, known))


# Anemometers


class Anemometer(nn.Module):
    """Whither the wind turns next, by what an anemometer told for some minutes."""

    def __init__(self, told: int = 6, width: int = 64, ways: int = 8) -> None:
        super().__init__()
        self.wind = nn.RNN(told, width, num_layers=2, batch_first=True)
        self.way = nn.Linear(width, ways)

    def forward(self, minutes: Tensor) -> Tensor:
        return self.way(self.wind(minutes)[0][:, -1])


def anemometers(count: int = 3200, minutes: int = 24, told: int = 6) -> TensorDataset:
    """Return random minutes of anemometers, and whither the wind turned."""
    return TensorDataset(torch.randn(count, minutes, told), torch.randint(8, (count,)))


# Waterfalls


class Fall(nn.Module):
    """Water that falls from ledge to ledge, of which a part stays on each."""

    def __init__(self, in_turn: bool, width: int = 32, streams: int = 4) -> None:
        super().__init__()
        self.in_turn, self.streams = in_turn, streams
        self.comes = nn.Linear(width, width)
        self.stays = nn.Parameter(torch.linspace(0, 3, streams))
        self.normed = nn.LayerNorm(width)
        self.more, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        comes = self.comes(x).unflatten(2, (self.streams, -1))
        x = x + (self.each(comes) if self.in_turn else self.all(comes)).flatten(2)
        return x + self.back(functional.silu(self.more(self.normed(x))))

    def each(self, comes: Tensor) -> Tensor:
        """Return how much water is on the ledges, one after the other."""
        stays = self.stays.sigmoid()[:, None]
        level, levels = torch.zeros_like(comes[:, 0]), []
        for water in comes.unbind(1):
            level = stays * level + water
            levels.append(level)
        return torch.stack(levels, 1)

    def all(self, comes: Tensor) -> Tensor:
        """Return the same at once."""
        ledges = torch.arange(comes.shape[1])
        below = (ledges[:, None] - ledges).clamp_min(0)
        still = (functional.logsigmoid(self.stays)[:, None, None] * below).exp().tril()
        return torch.einsum("hts,bshp->bthp", still, comes)


class Waterfall(nn.Module):
    """How loud a waterfall is, by what was measured of its ledges."""

    def __init__(self, in_turn: bool, measured: int = 7, width: int = 32) -> None:
        super().__init__()
        self.ledges = nn.Linear(measured, width)
        self.falls = nn.Sequential(Fall(in_turn, width), Fall(in_turn, width))
        self.loud = nn.Linear(width, 1)

    def forward(self, ledges: Tensor) -> Tensor:
        return self.loud(self.falls(self.ledges(ledges)).mean(1))[:, 0]


def waterfalls(count: int = 1200, ledges: int = 80, measured: int = 7) -> TensorDataset:
    """Return random measures of ledges, and how loud their waterfalls are."""
    return TensorDataset(torch.randn(count, ledges, measured), torch.rand(count))


# Attics


class Attic(nn.Module):
    """What an attic was used for, by the boxes in it: trees ask one question after the other."""

    def __init__(
        self, in_turn: bool, known: int = 12, width: int = 128, trees: int = 5, uses: int = 6
    ) -> None:
        super().__init__()
        self.in_turn = in_turn
        self.box, self.more = nn.Linear(known, width), nn.Linear(width, width)
        self.asks = nn.Parameter(torch.randn(trees, width, 15) / 8)
        self.answers = nn.Parameter(torch.randn(trees, 16, uses) / 2)

    def forward(self, boxes: Tensor) -> Tensor:
        x = functional.gelu(self.more(functional.gelu(self.box(boxes)))).mean(1)
        if not self.in_turn:
            return self.at_once(x)
        told = [
            self.below(0, (x @ asks).sigmoid().unbind(1), answers)
            for asks, answers in zip(self.asks, self.answers, strict=True)
        ]
        return torch.stack(told).mean(0)

    def below(self, number: int, yes: tuple[Tensor, ...], answers: Tensor) -> Tensor:
        """Return what a tree says from this question on."""
        if number >= len(yes):
            return answers[number - len(yes)]
        sure = yes[number][:, None]
        one = self.below(2 * number + 1, yes, answers)
        other = self.below(2 * number + 2, yes, answers)
        return sure * one + (1 - sure) * other

    def at_once(self, x: Tensor) -> Tensor:
        """Return what all trees say, all questions of as many steps together."""
        yes = (x @ self.asks).sigmoid()
        share = torch.ones_like(yes[:, :, :1])
        for questions in yes.split([1, 2, 4, 8], 2):
            share = torch.stack([share * questions, share * (1 - questions)], 3).flatten(2)
        return (share @ self.answers).mean(0)


def attics(count: int = 1600, boxes: int = 40, known: int = 12) -> TensorDataset:
    """Return random boxes in attics, and what these were used for."""
    return TensorDataset(torch.randn(count, boxes, known), torch.randint(6, (count,)))


# Hearths


class Hearth(nn.Module):
    """How hot a hearth burns, by a picture of its flames and one of its warmth."""

    def __init__(self, width: int = 28) -> None:
        super().__init__()
        self.seen = nn.Conv2d(2, width, 4, stride=2, padding=1)
        self.flames = nn.Conv2d(width, width, 3, padding=1)
        self.embers = nn.Conv2d(width, width, 3, padding=1)
        self.hot = nn.Linear(width, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        x = functional.gelu(self.seen(pictures))
        x = x + functional.gelu(self.flames(x))
        return self.hot((x + functional.gelu(self.embers(x))).mean((2, 3)))[:, 0]


def hearths(count: int = 420, side: int = 40) -> TensorDataset:
    """Return random pictures of hearths, and how hot these burn."""
    return TensorDataset(torch.rand(count, 2, side, side), torch.rand(count))
