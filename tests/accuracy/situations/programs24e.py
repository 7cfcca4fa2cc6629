"""Models and data of the twenty-fourth round's runs 16 to 30, from napkins to parapets: see
``programs24b.py``."""

import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import TensorDataset

# Napkins


class Napkin(nn.Module):
    """Into which of nine figures a napkin was folded, by squares of it that are mixed in turns:
    over the cloth, and over what is known of each."""

    def __init__(
        self, squares: int = 16, known: int = 24, width: int = 160, turns: int = 3
    ) -> None:
        super().__init__()
        self.cloth = nn.Linear(known, width)
        self.over = nn.ModuleList(nn.Linear(squares, squares) for _ in range(turns))
        self.within = nn.ModuleList(nn.Linear(width, width) for _ in range(turns))
        self.figure = nn.Linear(width, 9)

    def forward(self, squares: Tensor) -> Tensor:
        x = self.cloth(squares)
        for over, within in zip(self.over, self.within, strict=True):
            x = x + torch.relu(over(x.transpose(1, 2))).transpose(1, 2)
            x = x + torch.relu(within(x))
        return self.figure(x.mean(1))


def napkins(count: int = 2400, squares: int = 16, known: int = 24) -> TensorDataset:
    """Return random squares of napkins, and into which figures these were folded."""
    return TensorDataset(torch.randn(count, squares, known), torch.randint(9, (count,)))


class WayBack:
    """Where the weights were before a step up the slope: they lie in memory or in a file."""

    def __init__(self, model: nn.Module, folder: Path | None) -> None:
        self.model, self.path = model, folder / "before.npz" if folder else None
        self.before: dict[str, Tensor] = {}

    def climb(self, far: float = 0.05) -> None:
        """Keep where the weights are, and go up the slope."""
        slopes = [weight.grad for weight in self.model.parameters()]
        steep = torch.stack(torch._foreach_norm(slopes)).norm()
        before = {name: each.detach() for name, each in self.model.named_parameters()}
        if self.path:
            np.savez_compressed(self.path, **{name: each.numpy() for name, each in before.items()})
        else:
            self.before = {name: each.clone() for name, each in before.items()}
        with torch.no_grad():
            for weight, slope in zip(self.model.parameters(), slopes, strict=True):
                weight.add_(far * slope / (steep + 1e-9))

    def back(self) -> None:
        """Bring the weights back to where they were."""
        kept = self.before
        if self.path:
            with np.load(self.path) as found:
                kept = {name: torch.from_numpy(found[name]) for name in found.files}
        with torch.no_grad():
            for name, weight in self.model.named_parameters():
                weight.copy_(kept[name])


# Hairpins


class Hairpin(nn.Module):
    """How well a hairpin holds in five kinds of hair, by its bends."""

    def __init__(self, bends: int = 80, width: int = 288) -> None:
        super().__init__()
        self.bends, self.wire = nn.Linear(bends, width), nn.Linear(width, width)
        self.spring, self.holds = nn.Linear(width, width), nn.Linear(width, 5)

    def forward(self, bends: Tensor) -> Tensor:
        x = functional.leaky_relu(self.wire(functional.leaky_relu(self.bends(bends))))
        return self.holds(functional.leaky_relu(self.spring(x)))


def hairpins(count: int = 3600, bends: int = 80) -> TensorDataset:
    """Return random bends of hairpins, and how well these held."""
    return TensorDataset(torch.randn(count, bends), torch.rand(count, 5))


class Tasks:
    """What was learnt from earlier makers: where each weight was, and how much it mattered, which
    is forgotten slowly. It lies in memory or in a file for each maker."""

    def __init__(self, model: nn.Module, folder: Path | None, makers: int = 2) -> None:
        self.weights, self.folder = list(model.parameters()), folder
        self.kept: dict[int, list[Tensor]] = {}
        self.makers = makers
        for maker in range(makers):
            where = [weight.detach() + 0.01 * torch.randn_like(weight) for weight in self.weights]
            self.keep(maker, where + [torch.rand_like(weight) for weight in self.weights])

    def keep(self, maker: int, learnt: list[Tensor]) -> None:
        """Keep what was learnt from a maker."""
        if self.folder:
            torch.save(learnt, self.folder / f"maker-{maker}.pt")
        else:
            self.kept[maker] = learnt

    def of(self, maker: int) -> list[Tensor]:
        """Return what was learnt from a maker."""
        return torch.load(self.folder / f"maker-{maker}.pt") if self.folder else self.kept[maker]

    def held(self, strong: float = 1e-3) -> None:
        """Draw the weights' slopes to where the weights mattered, and forget a little."""
        for maker in range(self.makers):
            learnt = self.of(maker)
            where, mattered = learnt[: len(self.weights)], learnt[len(self.weights) :]
            for weight, was, much in zip(self.weights, where, mattered, strict=True):
                assert weight.grad is not None
                weight.grad.addcmul_(weight.detach() - was, much, value=strong)
                much.mul_(0.9995)
            self.keep(maker, learnt)


# Fezzes


class Felt(nn.Module):
    """What felt comes to when each place of it is pulled by those around it until it rests: that is
    found in many turns without slopes, and then one with them."""

    def __init__(self, width: int, turns: int) -> None:
        super().__init__()
        self.turns = turns
        self.around = nn.Conv1d(width, width, 5, padding=2, padding_mode="circular")
        self.normed = nn.GroupNorm(4, width)

    def forward(self, pulled: Tensor) -> Tensor:
        rest = torch.zeros_like(pulled)
        with torch.no_grad():
            for _ in range(self.turns):
                rest = self.once(rest, pulled)
        return self.once(rest, pulled)

    def once(self, rest: Tensor, pulled: Tensor) -> Tensor:
        """Return where the felt is one turn later."""
        return torch.tanh(self.normed(0.5 * self.around(rest) + pulled))


class Fez(nn.Module):
    """How tall a fez will stand and how far its tassel falls, by how its felt is pulled."""

    def __init__(self, again: bool, known: int = 6, width: int = 64, turns: int = 14) -> None:
        super().__init__()
        self.again = again
        self.pulled = nn.Conv1d(known, width, 1)
        self.felt = Felt(width, turns)
        self.stands = nn.Linear(width, 2)

    def forward(self, felt: Tensor) -> Tensor:
        x = self.pulled(felt)
        x = checkpoint(self.felt, x, use_reentrant=False) if self.again else self.felt(x)
        return self.stands(x.mean(2))


def fezzes(count: int = 1200, around: int = 64, known: int = 6) -> TensorDataset:
    """Return how the felt of fezzes is pulled, and how these stood."""
    return TensorDataset(torch.randn(count, known, around), torch.rand(count, 2))


# Birdcages


class Birdcage(nn.Module):
    """How long a bird stays in a cage, by 14 measures of it, which open and shut each other."""

    def __init__(self, measures: int = 14, width: int = 320) -> None:
        super().__init__()
        self.bars = nn.Linear(measures, width)
        self.opened = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(2))
        self.stays = nn.Linear(width, 1)

    def forward(self, cage: Tensor) -> Tensor:
        x = self.bars(cage)
        for opened in self.opened:
            x = x + functional.glu(opened(x))
        return self.stays(x)[:, 0]


def birdcages(count: int = 4000, measures: int = 14) -> TensorDataset:
    """Return random measures of birdcages, and how long birds stayed."""
    return TensorDataset(torch.rand(count, measures), torch.rand(count))


def varied(model: nn.Module, others: Tensor, values: int = 7) -> Tensor:
    """Return how long birds stay on average when one measure of all cages has a given value."""
    curves = torch.empty(others.shape[1], values)
    model.eval()
    with torch.no_grad():
        for measure in range(others.shape[1]):
            for number in range(values):
                changed = others.clone()
                changed[:, measure] = number / (values - 1)
                curves[measure, number] = model(changed).mean()
    model.train()
    return curves


# Lutes


class Lute(nn.Module):
    """Which of seven frets or none is held at each moment, by the sound of a lute."""

    def __init__(self, bands: int = 24, width: int = 64) -> None:
        super().__init__()
        self.strings = nn.Conv1d(bands, width, 5, padding=2)
        self.belly = nn.Conv1d(width, width, 5, padding=2)
        self.frets = nn.Conv1d(width, 8, 1)

    def forward(self, sound: Tensor) -> Tensor:
        return self.frets(functional.elu(self.belly(functional.elu(self.strings(sound)))))


def lutes(count: int = 1600, moments: int = 72, bands: int = 24) -> TensorDataset:
    """Return random sounds of lutes, and which fret was held at each moment."""
    frets = torch.randint(8, (count, moments // 3)).repeat_interleave(3, 1)
    return TensorDataset(torch.randn(count, bands, moments), frets)


def notes(frets: list[int]) -> list[int]:
    """Return the notes of a tablature: frets, without those that only last, or are none."""
    last, written = 0, []
    for fret in frets:
        if fret and fret != last:
            written.append(fret)
        last = fret
    return written


def corrections(one: list[int], other: list[int]) -> int:
    """Return how many notes must be changed, put in or left out to make one of the other."""
    row = list(range(len(other) + 1))
    for number, note in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, said in enumerate(other, 1):
            before, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, before + (note != said)),
            )
    return row[-1]


def corrected(model: nn.Module, sounds: Tensor, frets: Tensor) -> float:
    """Return the share of notes that must be corrected in tablatures of other lutes."""
    model.eval()
    with torch.no_grad():
        heard = model(sounds).argmax(1).tolist()
    model.train()
    right = [notes(each) for each in frets.tolist()]
    wrong = sum(corrections(notes(each), other) for each, other in zip(heard, right, strict=True))
    return wrong / sum(len(each) for each in right)


# Broomsticks


class Broomstick(nn.Module):
    """Of which of ten woods a broomstick is, by its bristles, which attend to the stick."""

    def __init__(self, known: int = 10, width: int = 64, woods: int = 10) -> None:
        super().__init__()
        self.bristle, self.weighed = nn.Linear(known, width), nn.Linear(width, 4)
        self.bound = nn.Linear(4 * width, width)
        self.wood = nn.Linear(width, woods)

    def forward(self, bristles: Tensor) -> Tensor:
        x = functional.silu(self.bristle(bristles))
        weighed = torch.softmax(self.weighed(x), 1)
        tied = torch.einsum("nbk,nbw->nkw", weighed, x).flatten(1)
        return self.wood(functional.silu(self.bound(tied)))


def broomsticks(count: int = 1600, bristles: int = 120, known: int = 10) -> TensorDataset:
    """Return random bristles of broomsticks, and of which wood these are."""
    return TensorDataset(torch.randn(count, bristles, known), torch.randint(10, (count,)))


def all_told(model: nn.Module, data: TensorDataset, batch: int) -> float:
    """Return the share of all broomsticks whose wood is told right."""
    right = 0
    model.eval()
    with torch.no_grad():
        bristles, woods = data.tensors
        for some, wood in zip(bristles.split(batch), woods.split(batch), strict=True):
            right += int((model(some).argmax(1) == wood).sum())
    model.train()
    return right / len(data)


# Pennants


class Pennant(nn.Module):
    """Pennants drawn from few numbers, which are guessed from a pennant."""

    def __init__(self, points: int = 768, width: int = 224, numbers: int = 12) -> None:
        super().__init__()
        self.numbers = numbers
        self.seen, self.guessed = nn.Linear(points, width), nn.Linear(width, 2 * numbers)
        self.sewn = nn.Sequential(nn.Linear(numbers, width), nn.ReLU(), nn.Linear(width, points))

    def forward(self, pennants: Tensor) -> Tensor:
        middle, spread = self.guessed(functional.relu(self.seen(pennants))).chunk(2, 1)
        drawn = self.sewn(middle + torch.randn_like(middle) * (0.5 * spread).exp())
        missed = (drawn - pennants).square().mean(1)
        return (missed + 1e-3 * (spread.exp() + middle.square() - 1 - spread).sum(1)).mean()


def pennants(count: int = 2400, points: int = 768) -> TensorDataset:
    """Return random pennants."""
    return TensorDataset(torch.rand(count, points))


class Alike:
    """How far drawn pennants are from real ones, by the middles and spreads of features."""

    def __init__(self, real: Tensor, features: int = 240) -> None:
        self.look = torch.randn(real.shape[1], features) / real.shape[1] ** 0.5
        self.middle, self.spread = self.told(real)

    def told(self, pennants: Tensor) -> tuple[Tensor, Tensor]:
        """Return the middle of the pennants' features, and how these vary together."""
        seen = torch.tanh(pennants @ self.look)
        return seen.mean(0), torch.cov(seen.T)

    def far(self, model: Pennant, many: int = 384) -> float:
        """Return how far pennants are that the model draws now."""
        model.eval()
        with torch.no_grad():
            middle, spread = self.told(model.sewn(torch.randn(many, model.numbers)))
        model.train()
        both = torch.linalg.eigvals(spread @ self.spread).real.clamp(min=0).sqrt().sum()
        apart = (middle - self.middle).square().sum()
        return float(apart + spread.trace() + self.spread.trace() - 2 * both)


# Braziers


class Brazier(nn.Module):
    """How likely a brazier is to go out next, by what was measured of its coals."""

    def __init__(self, coals: int = 48, width: int = 288) -> None:
        super().__init__()
        self.coals, self.glow = nn.Linear(coals, width), nn.Linear(width, width)
        self.ash, self.out = nn.LayerNorm(width), nn.Linear(width, 1)

    def forward(self, coals: Tensor) -> Tensor:
        x = torch.selu(self.coals(coals))
        return self.out(self.ash(x + torch.selu(self.glow(x))))[:, 0]


def braziers(count: int = 6000, coals: int = 48) -> TensorDataset:
    """Return random coals of braziers, when these went out, and whether that was seen."""
    return TensorDataset(
        torch.randn(count, coals), torch.rand(count), (torch.rand(count) < 0.7).float()
    )


def unlikely(risk: Tensor, when: Tensor, seen: Tensor) -> Tensor:
    """Return how unlikely it is that braziers went out in the order in which they did."""
    order = when.argsort(descending=True)
    risk, seen = risk[order], seen[order]
    return -((risk - risk.logcumsumexp(0)) * seen).sum() / seen.sum().clamp(min=1)


def in_order(model: nn.Module, coals: Tensor, when: Tensor, seen: Tensor) -> float:
    """Return the share of pairs of other braziers that are in the order of their going out."""
    model.eval()
    with torch.no_grad():
        risk = model(coals)
    model.train()
    known = (when[:, None] < when) & (seen[:, None] > 0)
    right = (risk[:, None] > risk) & known
    even = (risk[:, None] == risk) & known
    return float((right.sum() + 0.5 * even.sum()) / known.sum())


# Cymbals


class Cymbal(nn.Module):
    """With which of six sticks a cymbal was struck, by its sound."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.edge = nn.Conv1d(1, width, 25, 8)
        self.bow = nn.Conv1d(width, 2 * width, 7, 3)
        self.bell = nn.Conv1d(2 * width, 2 * width, 5, 2)
        self.stick = nn.Linear(2 * width, 6)

    def forward(self, sound: Tensor) -> Tensor:
        x = functional.mish(self.bow(functional.mish(self.edge(sound[:, None]))))
        return self.stick(functional.mish(self.bell(x)).amax(2))


def cymbals(count: int = 1600, moments: int = 384) -> TensorDataset:
    """Return random sounds of cymbals, and with which sticks these were struck."""
    return TensorDataset(torch.randn(count, moments), torch.randint(6, (count,)))


class Database:
    """A database in which each channel of each weight has a row for each step."""

    def __init__(self, folder: Path) -> None:
        self.base = sqlite3.connect(folder / "runs.db")
        self.base.execute("pragma journal_mode = wal")
        self.base.execute(
            "create table told (step integer, weight text, channel integer, what text, value real,"
            " primary key (step, weight, channel, what))"
        )

    def write(self, step: int, model: nn.Module) -> None:
        """Write down how the weights and slopes of each channel are."""
        for name, weight in model.named_parameters():
            assert weight.grad is not None
            for kind, values in (("weight", weight.detach()), ("slope", weight.grad)):
                rows = values.flatten(1) if values.dim() > 1 else values[:, None]
                both = {"middle": rows.mean(1), "norm": rows.norm(dim=1)}
                ends = {"least": rows.amin(1), "most": rows.amax(1)}
                for what, each in (both | ends).items():
                    told = f"{kind} {what}"
                    self.base.executemany(
                        "insert into told values (?, ?, ?, ?, ?)",
                        [(step, name, at, told, value) for at, value in enumerate(each.tolist())],
                    )
        self.base.commit()


# Flasks


class Flask(nn.Module):
    """How unlikely it is that what was poured into flasks of a row stands at these levels."""

    def __init__(self, flasks: int = 20, width: int = 64) -> None:
        super().__init__()
        self.glass = nn.Sequential(
            nn.Linear(flasks, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.unlikely = nn.Linear(width, 1)

    def forward(self, levels: Tensor) -> Tensor:
        return self.unlikely(self.glass(levels))[:, 0] + 0.5 * levels.square().sum(1)


def flasks(count: int = 5120, flasks: int = 20) -> TensorDataset:
    """Return random levels in rows of flasks."""
    return TensorDataset(torch.randn(count, flasks))


def shaken(model: nn.Module, levels: Tensor, read: bool, moves: int = 10) -> Tensor:
    """Return levels after some moves, each of which is taken back where it made them too unlikely;
    that is read for one row after the other, or found for all at once."""
    with torch.no_grad():
        before = model(levels)
        for _ in range(moves):
            moved = levels + 0.2 * torch.randn_like(levels)
            after, chance = model(moved), torch.rand(len(levels)).log()
            if read:
                taken = torch.tensor(
                    [
                        before[row].item() - after[row].item() > chance[row].item()
                        for row in range(len(levels))
                    ]
                )
            else:
                taken = before - after > chance
            levels = torch.where(taken[:, None], moved, levels)
            before = torch.where(taken, after, before)
    return levels


# Hatstands


class Hatstand(nn.Module):
    """How many hats a hatstand bears, by some trees: at each branch it is asked whether to go left
    or right, and what is written at the last one is weighed by how sure that was."""

    def __init__(self, read: bool, known: int = 40, trees: int = 3, high: int = 4) -> None:
        super().__init__()
        self.read, self.trees, self.high = read, trees, high
        self.wood = nn.Sequential(nn.Linear(known, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.asked = nn.Linear(256, trees * (2**high - 1))
        self.hats = nn.Parameter(torch.randn(trees, 2**high))

    def forward(self, stands: Tensor) -> Tensor:
        sure = self.asked(self.wood(stands)).view(len(stands), self.trees, -1)
        ways = self.by_branch(sure.detach()) if self.read else self.at_once(sure.detach())
        right = ways[..., 1:] - 2 * ways[..., :-1] - 1  # one to the right, none to the left
        way = sure.gather(2, ways[..., :-1]) * (2 * right - 1)
        leaf = ways[..., -1] - (2**self.high - 1)
        hats = self.hats.expand(len(stands), -1, -1).gather(2, leaf[..., None])[..., 0]
        return (hats * functional.logsigmoid(way).sum(2).exp()).mean(1)

    def at_once(self, sure: Tensor) -> Tensor:
        """Return the branches that hatstands come to in each tree."""
        at = torch.zeros(*sure.shape[:2], 1, dtype=torch.long)
        ways = [at]
        for _ in range(self.high):
            at = 2 * at + 1 + (sure.gather(2, at) > 0)
            ways.append(at)
        return torch.cat(ways, 2)

    def by_branch(self, sure: Tensor) -> Tensor:
        """Return the same, by a look at each branch."""
        return torch.tensor(
            [
                [list(self.climbed(sure, stand, tree)) for tree in range(self.trees)]
                for stand in range(len(sure))
            ]
        )

    def climbed(self, sure: Tensor, stand: int, tree: int) -> Iterator[int]:
        """Return the branches that one hatstand comes to in one tree."""
        at = 0
        yield at
        for _ in range(self.high):
            at = 2 * at + 2 if sure[stand, tree, at].item() > 0 else 2 * at + 1
            yield at


def hatstands(count: int = 4800, known: int = 40) -> TensorDataset:
    """Return what was measured of hatstands, and how many hats these bear."""
    return TensorDataset(torch.randn(count, known), torch.rand(count))


# Cupboards


class Cupboard(nn.Module):
    """What lies in each drawer of a cupboard, by layers that multiply what is known of a drawer
    with what was made of it, beside layers that do not."""

    def __init__(
        self, known: int = 192, width: int = 288, crossed: int = 2, kinds: int = 11
    ) -> None:
        super().__init__()
        self.crossed = nn.ModuleList(nn.Linear(known, known) for _ in range(crossed))
        self.deep = nn.Sequential(
            nn.Linear(known, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.kind = nn.Linear(known + width, kinds)

    def forward(self, drawers: Tensor) -> Tensor:
        x = drawers
        for crossed in self.crossed:
            x = torch.addcmul(x, drawers, crossed(x))
        return self.kind(torch.cat([x, self.deep(drawers)], -1)).transpose(1, 2)


def cupboards(count: int = 480, drawers: int = 96, known: int = 192) -> TensorDataset:
    """Return random drawers of cupboards, and what lies in each."""
    return TensorDataset(torch.randn(count, drawers, known), torch.randint(11, (count, drawers)))


# Dustpans


class Dustpan(nn.Module):
    """How much dust stays on each part of a dustpan: what all parts have in common is taken from
    what each one has, time and again."""

    def __init__(self, known: int = 7, width: int = 256, times: int = 3) -> None:
        super().__init__()
        self.dust = nn.Linear(known, width)
        self.own = nn.ModuleList(nn.Linear(width, width) for _ in range(times))
        self.common = nn.ModuleList(nn.Linear(width, width) for _ in range(times))
        self.stays = nn.Linear(width, 1)

    def forward(self, parts: Tensor) -> Tensor:
        x = functional.relu(self.dust(parts))
        for own, common in zip(self.own, self.common, strict=True):
            x = x + functional.relu(own(x) - common(x.mean(1, keepdim=True)))
        return self.stays(x)[..., 0]


def dustpans(count: int = 480, parts: int = 192, known: int = 7) -> TensorDataset:
    """Return random parts of dustpans, and how much dust stays on each."""
    return TensorDataset(torch.randn(count, parts, known), torch.rand(count, parts))


# Cummerbunds


class Cummerbund(nn.Module):
    """How a cummerbund's pleats go on: each is told by those before it, twice as far back in each
    layer, through gates."""

    def __init__(self, known: int = 16, width: int = 112, layers: int = 3) -> None:
        super().__init__()
        self.pleat = nn.Conv1d(known, width, 1)
        self.gated = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 2, dilation=2**layer) for layer in range(layers)
        )
        self.next = nn.Conv1d(width, known, 1)

    def forward(self, pleats: Tensor) -> Tensor:
        x = self.pleat(pleats)
        for layer, gated in enumerate(self.gated):
            x = x + functional.glu(gated(functional.pad(x, (2**layer, 0))), 1)
        return self.next(x)


def cummerbunds(count: int = 480, pleats: int = 200, known: int = 16) -> TensorDataset:
    """Return random pleats of cummerbunds, and the next one of each."""
    folded = torch.randn(count, known, pleats + 1)
    return TensorDataset(folded[..., :-1].contiguous(), folded[..., 1:].contiguous())


# Parapets


class Parapet(nn.Module):
    """How many arrows a parapet stops, by its merlons, each seen with its neighbours."""

    def __init__(self, known: int = 9, width: int = 48) -> None:
        super().__init__()
        self.merlon = nn.Conv1d(known, width, 3, padding=1)
        self.gaps = nn.Conv1d(width, width, 3, padding=1)
        self.stops = nn.Linear(width, 1)

    def forward(self, merlons: Tensor) -> Tensor:
        x = functional.relu(self.gaps(functional.relu(self.merlon(merlons))))
        return self.stops(x.mean(2))[:, 0].exp()


def parapets(count: int = 3200, merlons: int = 80, known: int = 9) -> TensorDataset:
    """Return random merlons of parapets, and how many arrows were stopped."""
    stopped = torch.poisson(torch.full((count,), 3.0))
    return TensorDataset(torch.randn(count, known, merlons), stopped)


def expected(stops: Tensor, stopped: Tensor) -> Tensor:
    """Return how unlikely so many stopped arrows are."""
    return (stops - stopped * (stops + math.exp(-10)).log()).mean()
