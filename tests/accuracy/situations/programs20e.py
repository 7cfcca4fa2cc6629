"""Models and data of the twentieth round's runs 16 to 30, from bongos to moats: see
``programs20b.py``."""

import time
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, TensorDataset

# Bongos


class Bongo(nn.Module):
    """Which rhythm bongos are played in, by a hand's state from beat to beat."""

    def __init__(self, sparing: bool, strokes: int = 12, width: int = 128) -> None:
        super().__init__()
        self.sparing = sparing
        self.start = nn.Parameter(torch.randn(width) / 8)
        self.stroke = nn.Linear(strokes, width)
        self.hand, self.skin = nn.Linear(width, width), nn.Linear(width, width)
        self.rhythm = nn.Linear(width, 10)

    def beat(self, state: Tensor, stroke: Tensor) -> Tensor:
        """Return the state after a beat."""
        return state + functional.tanh(self.skin(functional.silu(self.hand(state) + stroke)))

    def until(self, state: Tensor, strokes: Tensor, beats: int) -> Tensor:
        """Return the state after so many beats."""
        if beats > 1 and self.sparing:
            state = checkpoint(
                self.until,
                state,
                strokes,
                beats - 1,
                use_reentrant=True,
                preserve_rng_state=False,
            )
        elif beats > 1:
            state = self.until(state, strokes, beats - 1)
        return self.beat(state, strokes[:, beats - 1])

    def forward(self, loop: Tensor) -> Tensor:
        strokes = self.stroke(loop)
        start = self.start.expand(len(loop), -1)
        return self.rhythm(self.until(start, strokes, loop.shape[1]))


def bongos(count: int = 2000, beats: int = 16, strokes: int = 12) -> TensorDataset:
    """Return random loops of bongos, and their rhythms."""
    return TensorDataset(torch.rand(count, beats, strokes), torch.randint(10, (count,)))


# Domes


class Dome(nn.Module):
    """How much each ring of a dome is pushed outwards, by what lies on its stones."""

    def __init__(self, rings: int = 20, stones: int = 16, width: int = 256) -> None:
        super().__init__()
        self.lies = nn.Linear(rings * stones, width)
        self.held = nn.Linear(width, width)
        self.pushed = nn.Linear(width, rings)

    def forward(self, dome: Tensor) -> Tensor:
        x = functional.elu(self.lies(dome.flatten(1)))
        return self.pushed(x + functional.elu(self.held(x)))


def domes(count: int = 4000, rings: int = 20, stones: int = 16) -> TensorDataset:
    """Return what lies on random domes, and how much their rings are pushed."""
    return TensorDataset(torch.rand(count, rings, stones), torch.rand(count, rings))


def kept_small(model: nn.Module, path: Path) -> None:
    """Keep the weights in a file that takes little room, in place of the last one."""
    weights = {name: each.half().numpy() for name, each in model.state_dict().items()}
    np.savez_compressed(path.with_name("next.npz"), **weights)
    path.with_name("next.npz").replace(path)


# Aqueducts


class Aqueduct(nn.Module):
    """How much water an aqueduct brings, by what was measured along it."""

    def __init__(self, measured: int = 8, width: int = 64) -> None:
        super().__init__()
        self.channel = nn.Conv1d(measured, width, 5, stride=2, padding=2)
        self.arches = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.water = nn.Linear(width, 1)

    def forward(self, along: Tensor) -> Tensor:
        x = functional.relu(self.arches(functional.relu(self.channel(along))))
        return self.water(x.amax(2))[:, 0]


def aqueducts(count: int = 2000, measured: int = 8, places: int = 64) -> TensorDataset:
    """Return random measures along aqueducts, and how much water these bring."""
    return TensorDataset(torch.randn(count, measured, places), torch.rand(count))


def between(told: Tensor, brought: Tensor, draws: int = 300) -> tuple[float, float]:
    """Return between which values the ranks' correlation is, by drawing aqueducts again."""
    drawn = torch.randint(len(told), (draws, len(told)))
    ranks = [each[drawn].argsort(1).argsort(1).float() for each in (told, brought)]
    first, second = (each - each.mean(1, keepdim=True) for each in ranks)
    alike = (first * second).sum(1) / (first.norm(dim=1) * second.norm(dim=1))
    low, high = alike.quantile(torch.tensor([0.025, 0.975])).tolist()
    return low, high


# Cellos


class Cello(nn.Module):
    """How each note of a cello is bowed, by the notes, and which bowing follows which."""

    def __init__(self, known: int = 14, width: int = 128, bowings: int = 12) -> None:
        super().__init__()
        self.notes = nn.GRU(known, width, batch_first=True)
        self.bowing = nn.Linear(width, bowings)
        self.follows = nn.Parameter(torch.randn(bowings, bowings) / 8)

    def forward(self, notes: Tensor) -> Tensor:
        return self.bowing(self.notes(notes)[0])


def cellos(count: int = 1600, notes: int = 24, known: int = 14) -> TensorDataset:
    """Return random notes of cellos, and how they are bowed."""
    return TensorDataset(torch.randn(count, notes, known), torch.randint(12, (count, notes)))


def searched(told: Tensor, follows: Tensor, kept: int = 6) -> Tensor:
    """Return the best bowings found where so many beginnings are kept at each note."""
    _pieces, notes, bowings = told.shape
    worth, last = told[:, 0].topk(kept, 1)
    ways = last[..., None]
    for note in range(1, notes):
        each = worth[..., None] + follows[last] + told[:, note, None]
        worth, which = each.flatten(1).topk(kept, 1)
        before, last = which // bowings, which % bowings
        ways = ways.gather(1, before[..., None].expand(-1, -1, note))
        ways = torch.cat([ways, last[..., None]], 2)
    return ways[:, 0]


# Banjos


class Banjo(nn.Module):
    """Which strings of a banjo are plucked in a moment, by its spectrum."""

    def __init__(self, tones: int = 128, width: int = 256, strings: int = 5) -> None:
        super().__init__()
        self.heard = nn.Sequential(
            nn.Linear(tones, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Linear(width, strings),
        )

    def forward(self, moment: Tensor) -> Tensor:
        return self.heard(moment)


def banjos(count: int = 6000, tones: int = 128) -> TensorDataset:
    """Return random moments of banjo songs, and which strings are plucked."""
    return TensorDataset(torch.rand(count, tones), (torch.rand(count, 5) < 0.3).float())


def heard(model: nn.Module, song: Tensor, plucked: Tensor) -> float:
    """Return how well the strings of a song are told, by what is missed and what is too much."""
    told, there = model(song) > 0, plucked > 0.5
    both = (told & there).sum()
    return (2 * both / (told.sum() + there.sum()).clamp_min(1)).item()


# Sagas


class Saga(nn.Module):
    """Who speaks in a saga, by the words around."""

    def __init__(self, words: int = 1500, width: int = 48, depth: int = 4, who: int = 20) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.told = nn.ModuleList(nn.Linear(width, 2 * width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.who = nn.Linear(width, who)

    def forward(self, said: Tensor) -> Tensor:
        x = self.words(said)
        for told, norm in zip(self.told, self.norms, strict=True):
            x = norm(x + functional.glu(told(x + x.roll(1, 1)), 2))
        return self.who(x.mean(1))


def sagas(count: int = 2400, length: int = 20, words: int = 1500) -> TensorDataset:
    """Return random words of sagas, and who speaks."""
    return TensorDataset(torch.randint(words, (count, length)), torch.randint(20, (count,)))


class Tally(TorchDispatchMode):
    """Counts what each operation took, for each place in the program that asked for it."""

    def __init__(self) -> None:
        super().__init__()
        self.took: dict[tuple[str, str, str], list[float]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        began = time.perf_counter()
        out = func(*args, **(kwargs or {}))
        passed = time.perf_counter() - began
        shapes = str([tuple(each.shape) for each in args if isinstance(each, Tensor)])
        place = " < ".join(
            f"{each.name}:{each.lineno}" for each in reversed(traceback.extract_stack(limit=8))
        )
        self.took.setdefault((str(func), shapes, place), []).append(passed)
        return out


# Violas


class Viola(nn.Module):
    """Which finger is on a viola's string, at each of some notes."""

    def __init__(
        self, known: int = 20, notes: int = 16, width: int = 192, fingers: int = 5
    ) -> None:
        super().__init__()
        self.notes, self.fingers = notes, fingers
        self.phrase = nn.Linear(known * notes, 2 * width)
        self.hand = nn.Linear(2 * width, width)
        self.finger = nn.Linear(width, notes * fingers)

    def forward(self, phrase: Tensor) -> Tensor:
        x = functional.gelu(self.phrase(phrase.flatten(1)))
        x = functional.gelu(self.hand(x))
        return self.finger(x).unflatten(1, (self.fingers, self.notes))


def violas(count: int = 3200, notes: int = 16, known: int = 20) -> TensorDataset:
    """Return random phrases of violas, and their fingers."""
    return TensorDataset(torch.randn(count, notes, known), torch.randint(5, (count, notes)))


def mistaken(told: Tensor, fingers: Tensor, often: list[list[int]]) -> None:
    """Count which finger was told for which."""
    for one, other in zip(told.flatten(), fingers.flatten(), strict=True):
        often[one.item()][other.item()] += 1  # type: ignore[index]


# Rigging


class Rigging(nn.Module):
    """How each rope of a ship's rigging is strained, by all the others and the wind."""

    def __init__(self, known: int = 12, ropes: int = 64, width: int = 160, depth: int = 2) -> None:
        super().__init__()
        self.enter = nn.Linear(known, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.back = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(depth))
        self.knots = nn.ModuleList(nn.Linear(ropes, ropes) for _ in range(depth))
        self.strain = nn.Linear(width, 1)

    def forward(self, ropes: Tensor) -> Tensor:
        x = self.enter(ropes)
        for norm, wide, back, knots in zip(
            self.norms, self.wide, self.back, self.knots, strict=True
        ):
            x = x + knots(x.mT).mT
            x = x + back(functional.relu(wide(norm(x))))
        return self.strain(x)[..., 0]


def rigging(count: int = 1536, ropes: int = 64, known: int = 12) -> TensorDataset:
    """Return random ropes of riggings, and how they are strained."""
    return TensorDataset(torch.randn(count, ropes, known), torch.rand(count, ropes))


# Mandolins


class Mandolin(nn.Module):
    """Which tremolo a mandolin plays, by the waves of all its courses."""

    def __init__(self, courses: int = 4, width: int = 96, kinds: int = 8) -> None:
        super().__init__()
        self.pluck = nn.Conv1d(courses, width, 9, stride=4, padding=4)
        self.rings = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(3))
        self.kind = nn.Linear(width, kinds)

    def forward(self, wave: Tensor) -> Tensor:
        x = functional.relu(self.pluck(wave))
        for ring in self.rings:
            x = x + functional.relu(ring(x))
        return self.kind(x.mean(2))


def mandolins(count: int = 480, courses: int = 4, moments: int = 768) -> TensorDataset:
    """Return random waves of mandolins, and their tremolos."""
    return TensorDataset(torch.randn(count, courses, moments), torch.randint(8, (count,)))


# Arches


class Arch(nn.Module):
    """Whether an arch stands, by the joints between its stones."""

    def __init__(self, joints: int = 24, known: int = 5, width: int = 64) -> None:
        super().__init__()
        self.joint = nn.Linear(known, width)
        self.thrust = nn.GRU(width, width, batch_first=True)
        self.stands = nn.Linear(width, 1)

    def forward(self, joints: Tensor) -> Tensor:
        _, last = self.thrust(functional.relu(self.joint(joints)))
        return self.stands(last[0])[:, 0]


def arches(count: int = 3000, joints: int = 24, known: int = 5) -> TensorDataset:
    """Return random joints of arches, and which of these stand."""
    return TensorDataset(torch.randn(count, joints, known), (torch.rand(count) < 0.5).float())


# Timpani


class Timpano(nn.Module):
    """How a timpano is tuned, by the sound of a stroke."""

    def __init__(self, tones: int = 48, width: int = 32) -> None:
        super().__init__()
        self.sound = nn.Sequential(
            nn.Conv2d(1, width, 3, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1, groups=4),
            nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.SiLU(),
        )
        self.tuned = nn.Linear(2 * width * (tones // 8) * 2, 1)

    def forward(self, stroke: Tensor) -> Tensor:
        return self.tuned(self.sound(stroke).flatten(1))[:, 0]


def timpani(count: int = 3000, tones: int = 48, moments: int = 16) -> TensorDataset:
    """Return random strokes on timpani, and how these are tuned."""
    return TensorDataset(torch.rand(count, 1, tones, moments), torch.rand(count))


# Tubas


class Tuba(nn.Module):
    """Who plays a tuba, by a tone of any length."""

    def __init__(self, bands: int = 24, width: int = 112, players: int = 9) -> None:
        super().__init__()
        self.breath = nn.Conv1d(bands, width, 3, padding=1)
        self.bell = nn.Conv1d(width, width, 3, padding=2, dilation=2)
        self.heeds = nn.Linear(width, 1)
        self.player = nn.Linear(width, players)

    def forward(self, tone: Tensor, there: Tensor) -> Tensor:
        x = functional.leaky_relu(self.breath(tone.mT), 0.1)
        x = (x + functional.leaky_relu(self.bell(x), 0.1)).mT
        heeds = self.heeds(x)[..., 0].masked_fill(~there, -1e4).softmax(1)
        return self.player((heeds[..., None] * x).sum(1))


Tone = tuple[Tensor, int]


class Tones(Dataset[Tone]):
    """Random tones of tubas, of 20 to 40 moments each, and who plays."""

    def __init__(self, count: int = 2000, bands: int = 24) -> None:
        lengths: list[int] = torch.randint(20, 41, (count,)).tolist()
        self.tones = [torch.randn(length, bands) for length in lengths]
        self.players: list[int] = torch.randint(9, (count,)).tolist()

    def __len__(self) -> int:
        return len(self.tones)

    def __getitem__(self, index: int) -> Tone:
        return self.tones[index], self.players[index]


def together(tones: Sequence[Tone]) -> tuple[Tensor, Tensor, Tensor]:
    """Return tones as one batch, which of their moments are there, and who plays."""
    lengths = torch.tensor([len(tone) for tone, _ in tones])
    there = torch.arange(int(lengths.max())) < lengths[:, None]
    padded = pad_sequence([tone for tone, _ in tones], batch_first=True)
    return padded, there, torch.tensor([player for _, player in tones])


# Haiku


class Haiku(nn.Module):
    """Which season a haiku is of: each syllable asks all of them what they tell."""

    def __init__(self, in_turn: bool, sounds: int = 120, width: int = 64) -> None:
        super().__init__()
        self.in_turn = in_turn
        self.sounds = nn.Embedding(sounds, width)
        self.asks, self.told = nn.Linear(width, width), nn.Linear(width, width)
        self.heeds = nn.Linear(width, 1)
        self.line, self.more = nn.Linear(2 * width, 3 * width), nn.Linear(3 * width, 3 * width)
        self.season = nn.Linear(3 * width, 5)

    def forward(self, haiku: Tensor) -> Tensor:
        x = self.sounds(haiku)
        asks, told = self.asks(x), self.told(x)
        if self.in_turn:
            each = []
            for syllable in range(haiku.shape[1]):
                heeds = self.heeds((asks[:, syllable, None] + told).tanh()).softmax(1)
                each.append((heeds * x).sum(1))
            heard = torch.stack(each, 1)
        else:
            heeds = self.heeds((asks[:, :, None] + told[:, None]).tanh())[..., 0].softmax(2)
            heard = heeds @ x
        line = functional.relu(self.line(torch.cat([x, heard], 2)))
        return self.season(functional.relu(self.more(line)).mean(1))


def haiku(count: int = 2400, syllables: int = 17, sounds: int = 120) -> TensorDataset:
    """Return random syllables of haiku, and their seasons."""
    return TensorDataset(torch.randint(sounds, (count, syllables)), torch.randint(5, (count,)))


# Semaphores


class Semaphore(nn.Module):
    """At which angles the arms of a semaphore's flags are held, by a picture."""

    def __init__(self, width: int = 56, flags: int = 8, angles: int = 16) -> None:
        super().__init__()
        self.flags = flags
        self.sky = nn.Conv2d(3, width, 4, stride=2, padding=1)
        self.arms = nn.Conv2d(width, 2 * width, 4, stride=2, padding=1)
        self.angles = nn.Linear(2 * width * 64, flags * angles)

    def forward(self, picture: Tensor) -> Tensor:
        x = functional.relu(self.arms(functional.relu(self.sky(picture))))
        return self.angles(x.flatten(1)).unflatten(1, (self.flags, -1))


def semaphores(count: int = 1600, side: int = 32, flags: int = 8) -> TensorDataset:
    """Return random pictures of semaphores, and the angles of their flags."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.rand(count, flags) * 6.2)


def off(told: Tensor, held: Tensor) -> Tensor:
    """Return how far told angles are from those that are held, on the circle."""
    angles = torch.arange(told.shape[-1]) * (6.2832 / told.shape[-1])
    sure = told.softmax(-1)
    across, down = (sure * angles.cos()).sum(-1), (sure * angles.sin()).sum(-1)
    return (across - held.cos()).square() + (down - held.sin()).square()


def flag_by_flag(told: Tensor, held: Tensor) -> Tensor:
    """Return the mean of how far the flags of all pictures are off."""
    total = torch.zeros(())
    for flags, angles in zip(told, held, strict=True):
        for flag, angle in zip(flags, angles, strict=True):
            total = total + off(flag, angle)
    return total / held.numel()


def all_flags(told: Tensor, held: Tensor) -> Tensor:
    """Return the same at once."""
    return off(told, held).mean()


# Moats


class Moat(nn.Module):
    """How deep a moat is: each stone of its wall has a small part of its own in what is told."""

    def __init__(self, stones: int = 40, known: int = 16, width: int = 16) -> None:
        super().__init__()
        parts = [nn.Parameter(torch.randn(known, width) / 4) for _ in range(stones)]
        self.stones = nn.ParameterList(parts)
        self.rest = nn.ParameterList(nn.Parameter(torch.zeros(width)) for _ in range(stones))
        self.water = nn.Linear(stones * width, 32)
        self.deep = nn.Linear(32, 1)

    def forward(self, wall: Tensor) -> Tensor:
        stones, rest = torch.stack(list(self.stones)), torch.stack(list(self.rest))
        each = torch.baddbmm(rest[:, None], wall.transpose(0, 1), stones).relu()
        water = functional.relu(self.water(each.transpose(0, 1).flatten(1)))
        return self.deep(water)[:, 0]


def moats(count: int = 3000, stones: int = 40, known: int = 16) -> TensorDataset:
    """Return random walls of moats, and how deep these are."""
    return TensorDataset(torch.randn(count, stones, known), torch.rand(count))


class Settling(torch.optim.Optimizer):
    """Goes down as Adam does, by steps of at most a hundredth, and keeps the weights' mean.

    Each tensor of weights has an update of its own, or all of them are parts of one tensor.
    """

    def __init__(self, weights: Iterable[nn.Parameter], lr: float, as_one: bool) -> None:
        super().__init__(weights, {"lr": lr})
        self.each: list[Tensor] = self.param_groups[0]["params"]
        self.whole: Tensor | None = None
        if as_one:
            self.whole = torch.cat([each.detach().flatten() for each in self.each])
            parts = self.whole.split([each.numel() for each in self.each])
            for each, part in zip(self.each, parts, strict=True):
                each.data = part.view_as(each)
        weighed = self.each if self.whole is None else [self.whole]
        self.kept = [[torch.zeros_like(each) for _ in range(3)] for each in weighed]

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        weights = self.each if self.whole is None else [self.whole]
        slopes = [each.grad for each in self.each if each.grad is not None]
        if self.whole is not None:
            slopes = [torch.cat([slope.flatten() for slope in slopes])]
        lr = self.param_groups[0]["lr"]
        for weight, slope, (mean, square, settled) in zip(weights, slopes, self.kept, strict=True):
            mean.mul_(0.9).add_(slope, alpha=0.1)
            square.mul_(0.99).addcmul_(slope, slope, value=0.01)
            change = mean / (square.sqrt() + 1e-8)
            weight.mul_(1 - 0.01 * lr).sub_((lr * change).clamp_(-0.01, 0.01))
            settled.lerp_(weight, 0.01)
