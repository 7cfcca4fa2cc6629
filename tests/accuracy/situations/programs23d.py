"""Models and data of the twenty-third round's first runs, from samovars to igloos: see
``programs23.py``."""

import gc
import multiprocessing
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import Dataset, IterableDataset, TensorDataset, get_worker_info


def added(mine: Tensor) -> Tensor:
    """Return the sum of what both ranks have."""
    both = mine.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(both)
    return both


def of_both(mine: Tensor) -> list[Tensor]:
    """Return what the first rank has and what the second one has."""
    both = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(both, mine.contiguous())
    return both


class Summed(torch.autograd.Function):
    """What both ranks have, added up."""

    @staticmethod
    def forward(context: Any, mine: Tensor) -> Tensor:
        return added(mine)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return slope


class Known(torch.autograd.Function):
    """What both ranks know and use for parts of their own; slopes are added up."""

    @staticmethod
    def forward(context: Any, known: Tensor) -> Tensor:
        return known.view_as(known)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return added(slope)


# Samovars


class Joined(torch.autograd.Function):
    """Both ranks' halves of a state, side by side."""

    @staticmethod
    def forward(context: Any, mine: Tensor) -> Tensor:
        return torch.cat(of_both(mine), 1)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> Tensor:  # type: ignore[override]
        return slope.chunk(2, 1)[dist.get_rank()].contiguous()


class Samovar(nn.Module):
    """When a samovar will boil, by 14 looks at its pipe, its lid and its tap.

    The cells of the state may be shared out, a half of them for each of two ranks.
    """

    def __init__(self, apart: bool, looks: int = 9, cells: int = 192) -> None:
        super().__init__()
        self.apart, self.cells = apart, cells
        mine = cells // 2 if apart else cells
        self.seen = nn.Linear(looks, 3 * mine)
        self.held = nn.Linear(cells, 3 * mine)
        self.boils = nn.Linear(cells, 1)

    def forward(self, looks: Tensor) -> Tensor:
        state = looks.new_zeros(len(looks), self.cells)
        for seen in self.seen(looks).unbind(1):
            state = self.after(state, seen)
        return self.boils(state)[:, 0]

    def after(self, state: Tensor, seen: Tensor) -> Tensor:
        """Return the whole state after one look more."""
        known = Known.apply(state) if self.apart else state
        mine = known.chunk(2, 1)[dist.get_rank()] if self.apart else known
        held = self.held(known).chunk(3, 1)
        look = seen.chunk(3, 1)
        keep = torch.sigmoid(held[0] + look[0])
        new = torch.tanh(torch.sigmoid(held[1] + look[1]) * held[2] + look[2])
        mine = keep * mine + (1 - keep) * new
        return Joined.apply(mine) if self.apart else mine


def samovars(count: int = 1800, times: int = 14) -> TensorDataset:
    """Return random looks at samovars, and when these boiled."""
    return TensorDataset(torch.randn(count, times, 9), torch.rand(count))


# Pestles


class Turned(torch.autograd.Function):
    """Rows are given away for columns: each rank had half the rows and has half the columns."""

    @staticmethod
    def forward(context: Any, mine: Tensor, split: int, joined: int) -> Tensor:
        context.ways = split, joined
        return turned(mine, split, joined)

    @staticmethod
    def backward(context: Any, slope: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        split, joined = context.ways
        return turned(slope, joined, split), None, None


def turned(mine: Tensor, split: int, joined: int) -> Tensor:
    """Split waves along one way, and put both ranks' together along the other."""
    parts = torch.view_as_real(torch.stack(mine.chunk(2, split)).resolve_conj()).contiguous()
    theirs = torch.empty_like(parts)
    dist.all_to_all_single(theirs, parts)
    return torch.cat(torch.view_as_complex(theirs).unbind(0), joined)


class Ground(nn.Module):
    """What is ground by waves of all lengths: each wave is weighed by itself."""

    def __init__(self, apart: bool, width: int, rows: int, columns: int) -> None:
        super().__init__()
        self.apart = apart
        mine = columns // 2 if apart else columns
        self.waves = nn.Parameter(0.3 * torch.randn(width, rows, mine, 2) / width)
        self.mixed = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        waves = torch.fft.fft(x, dim=3)
        waves = Turned.apply(waves, 3, 2) if self.apart else waves
        waves = torch.fft.fft(waves, dim=2) * torch.view_as_complex(self.waves)
        waves = torch.fft.ifft(waves, dim=2)
        waves = Turned.apply(waves, 2, 3) if self.apart else waves
        return functional.gelu(self.mixed(x) + torch.fft.ifft(waves, dim=3).real)


class Pestle(nn.Module):
    """How fine each place of a mortar is after some strokes, by what was in it before.

    The rows of the mortar may be shared out, a half of them for each of two ranks.
    """

    def __init__(self, apart: bool, width: int = 12, side: int = 32, layers: int = 3) -> None:
        super().__init__()
        self.apart = apart
        self.put = nn.Conv2d(3, width, 1)
        self.ground = nn.Sequential(*(Ground(apart, width, side, side) for _ in range(layers)))
        self.fine = nn.Conv2d(width, 1, 1)

    def forward(self, mortar: Tensor) -> Tensor:
        return self.fine(self.ground(self.put(self.own(mortar))))

    def own(self, whole: Tensor) -> Tensor:
        """Return the rows that this rank has."""
        return whole.chunk(2, 2)[dist.get_rank()] if self.apart else whole


def mortars(count: int = 500, side: int = 32) -> TensorDataset:
    """Return what was in random mortars, and how fine it became."""
    return TensorDataset(torch.randn(count, 3, side, side), torch.rand(count, 1, side, side))


def shared_slopes(model: nn.Module, names: tuple[str, ...]) -> None:
    """Add up both ranks' slopes of the parts that both have, in one piece."""
    slopes = [
        each.grad
        for name, each in model.named_parameters()
        if each.grad is not None and name.endswith(names)
    ]
    whole = added(torch.cat([each.flatten() for each in slopes]))
    for slope, part in zip(slopes, whole.split([each.numel() for each in slopes]), strict=True):
        slope.copy_(part.view_as(slope))


# Portholes


class Log(nn.Module):
    """What a ship's log says to what is asked: it holds pages that are learned.

    Each of two ranks may have a half of the pages.
    """

    def __init__(self, apart: bool, width: int, pages: int) -> None:
        super().__init__()
        self.apart = apart
        mine = pages // 2 if apart else pages
        self.heads = nn.Parameter(torch.randn(mine, width) / width**0.5)
        self.texts = nn.Parameter(torch.randn(mine, width) / width**0.5)
        self.asked = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        asked = self.asked(x)
        asked = Known.apply(asked) if self.apart else asked
        fits = asked @ self.heads.T
        best = fits.detach().amax(-1, keepdim=True)
        if self.apart:
            dist.all_reduce(best, dist.ReduceOp.MAX)
        share = (fits - best).exp()
        said = torch.cat([share @ self.texts, share.sum(-1, keepdim=True)], -1)
        said = Summed.apply(said) if self.apart else said
        return x + said[..., :-1] / said[..., -1:]


class Porthole(nn.Module):
    """What weather a porthole shows, by 16 parts of its picture and a log that is asked often."""

    def __init__(self, apart: bool, width: int = 64, pages: int = 128, asked: int = 6) -> None:
        super().__init__()
        self.parts = nn.Conv2d(3, width, 6, 6)
        self.logs = nn.Sequential(*(Log(apart, width, pages) for _ in range(asked)))
        self.weather = nn.Linear(width, 7)

    def forward(self, pictures: Tensor) -> Tensor:
        parts = self.parts(pictures).flatten(2).transpose(1, 2)
        return self.weather(self.logs(parts).mean(1))


def portholes(count: int = 1200) -> TensorDataset:
    """Return random pictures through portholes, and the weather of each."""
    return TensorDataset(torch.rand(count, 3, 24, 24), torch.randint(7, (count,)))


# Lockets


class Locket(nn.Module):
    """Who is in a locket, of 40 persons: parts of a picture are mixed by place and by kind."""

    def __init__(self, parts: int = 36, width: int = 128, layers: int = 4) -> None:
        super().__init__()
        self.parts = nn.Linear(48, width)
        self.places = nn.ModuleList(nn.Linear(parts, parts) for _ in range(layers))
        self.kinds = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.GELU())
            for _ in range(layers)
        )
        self.back = nn.ModuleList(nn.Linear(3 * width, width) for _ in range(layers))
        self.person = nn.Linear(width, 40)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.parts(functional.pixel_unshuffle(pictures, 4).flatten(2).transpose(1, 2))
        for places, kinds, back in zip(self.places, self.kinds, self.back, strict=True):
            x = x + places(x.transpose(1, 2)).transpose(1, 2)
            x = x + back(kinds(x))
        return self.person(x.mean(1))


def lockets(count: int = 1000) -> TensorDataset:
    """Return random small portraits, and of whom they are."""
    return TensorDataset(torch.rand(count, 3, 24, 24), torch.randint(40, (count,)))


def change_hands(model: nn.Module) -> None:
    """Give the model to the other rank, which has other lockets, and take that one's."""
    weights = [each.data for each in model.parameters()]
    mine = torch.cat([each.flatten() for each in weights])
    theirs, other = torch.empty_like(mine), 1 - dist.get_rank()
    going = [
        dist.P2POp(dist.isend, mine, other),
        dist.P2POp(dist.irecv, theirs, other),
    ]
    for each in dist.batch_isend_irecv(going):
        each.wait()
    for weight, part in zip(weights, theirs.split([each.numel() for each in weights]), strict=True):
        weight.copy_(part.view_as(weight))


# Whisks


class Whisk(nn.Module):
    """How stiff beaten eggs are, of five grades, by the sound of the whisk in 200 bands."""

    def __init__(self, bands: int = 200, width: int = 640) -> None:
        super().__init__()
        self.bands = nn.Linear(bands, width)
        self.wires = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.stiff = nn.Linear(width, 5)

    def forward(self, sound: Tensor) -> Tensor:
        x = functional.silu(self.bands(sound))
        for wire in self.wires:
            x = x + functional.silu(wire(x))
        return self.stiff(x)


def whisks(count: int = 3000) -> TensorDataset:
    """Return random sounds of whisks, and how stiff the eggs were."""
    return TensorDataset(torch.rand(count, 200), torch.randint(5, (count,)))


# Doormats


class Doormat(nn.Module):
    """How worn a doormat is, by what was trodden on it in 60 hours and by its weave."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.trodden = nn.GRU(8, width, batch_first=True)
        self.weave = nn.Sequential(
            nn.Conv2d(1, 24, 5, 2, 2), nn.ReLU(), nn.Conv2d(24, 48, 3, 2, 1), nn.ReLU()
        )
        self.worn = nn.Sequential(nn.Linear(width + 48, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, trodden: Tensor, weave: Tensor) -> Tensor:
        _, last = self.trodden(trodden)
        return self.worn(torch.cat([last[0], self.weave(weave).mean((2, 3))], 1))[:, 0]


def doormats(count: int = 900) -> TensorDataset:
    """Return what was trodden on random doormats, how these are woven, and how worn they are."""
    return TensorDataset(torch.randn(count, 40, 8), torch.rand(count, 1, 40, 40), torch.rand(count))


def told_at_once(model: nn.Module) -> None:
    """Let the ranks add up the slope of each weight as soon as it is there."""

    def tell(weight: Tensor) -> None:
        assert weight.grad is not None
        dist.all_reduce(weight.grad)
        weight.grad.div_(2)

    for weight in model.parameters():
        weight.register_post_accumulate_grad_hook(tell)


# Trivets


class Trivets(Dataset[Item]):
    """Pictures of trivets under pots, with the heat at 32 places; a manager may keep them."""

    def __init__(self, kept: bool, count: int = 480) -> None:
        chance = np.random.default_rng(1101)
        found = [
            (chance.random((3, 48, 48), np.float32), chance.random(32, np.float32))
            for _ in range(count)
        ]
        self.count = count
        if kept:
            self.found: Any = found
        else:
            self.manager = multiprocessing.get_context("fork").Manager()
            self.found = self.manager.list(found)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        picture, heat = self.found[index]
        return torch.from_numpy(picture), torch.from_numpy(heat)


class Trivet(nn.Module):
    """How hot a trivet is at 32 places."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.iron = nn.Conv2d(3, width, 4, 4)
        self.legs = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.heat = nn.Linear(2 * width, 32)

    def forward(self, pictures: Tensor) -> Tensor:
        return self.heat(torch.relu(self.legs(torch.relu(self.iron(pictures)))).amax((2, 3)))


# Letterboxes


ROUND = """
import os, socket, sys, threading, time
import numpy as np

threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
door = socket.socket(socket.AF_UNIX)
door.bind(sys.argv[1])
door.listen()
while True:
    box, _ = door.accept()
    number = box.recv(4)
    time.sleep(0.0005)
    chance = np.random.default_rng(int.from_bytes(number, "little"))
    box.sendall(chance.integers(0, 400, 96, np.int64).tobytes())
    box.close()
"""


class Letterboxes(Dataset[Item]):
    """Letters of letterboxes; one goes to each box for what is in it, or went there before."""

    def __init__(self, folder: Path, kept: bool, count: int = 300) -> None:
        self.count, self.door = count, str(folder / "door")
        self.postman = subprocess.Popen(
            [sys.executable, "-c", ROUND, self.door],
            stdin=subprocess.PIPE,  # who reads its end goes home with this program
            stdout=subprocess.DEVNULL,
        )
        while not (folder / "door").exists():
            time.sleep(0.01)
        time.sleep(0.05)
        self.kept = [self.emptied(number) for number in range(count)] if kept else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        return self.kept[index] if self.kept else self.emptied(index)

    def emptied(self, number: int) -> Item:
        """Return the words of the letters in a box, and in which of six streets it hangs."""
        with socket.socket(socket.AF_UNIX) as box:
            box.connect(self.door)
            box.sendall(number.to_bytes(4, "little"))
            words = b""
            while part := box.recv(4096):
                words += part
        return torch.frombuffer(bytearray(words), dtype=torch.int64), torch.tensor(number % 6)


class Letterbox(nn.Module):
    """In which of six streets a letterbox hangs, by the words of its letters."""

    def __init__(self, words: int = 400, width: int = 32) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.lines = nn.Conv1d(width, 48, 5, 2)
        self.street = nn.Linear(48, 6)

    def forward(self, words: Tensor) -> Tensor:
        return self.street(torch.relu(self.lines(self.words(words).transpose(1, 2))).amax(2))


# Shutters


class Shutters(Dataset[Item]):
    """Slats of shutters as heights over a window, and how bright the room behind is.

    Eight suns stand around the window; from each, the shadows of the slats are cast.
    """

    def __init__(self, ready: bool, count: int = 360, side: int = 40) -> None:
        self.count, self.side = count, side
        self.ready = [self.cast(number) for number in range(count)] if ready else []

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        return self.ready[index] if self.ready else self.cast(index)

    def cast(self, number: int) -> Item:
        """Return which places of a shutter are lit by each sun."""
        chance = np.random.default_rng((1109, number))
        slats = chance.random((self.side, 1)) * np.ones(self.side)
        slats += 0.2 * chance.random((self.side, self.side))
        lit = np.empty((8, self.side, self.side), np.float32)
        for sun, (down, right) in enumerate(
            ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
        ):
            edge = np.full_like(slats, -np.inf)
            for far in range(1, 7):
                moved = np.roll(slats, (far * down, far * right), (0, 1))
                np.maximum(edge, moved - 0.12 * far, out=edge)
            lit[sun] = slats >= edge
        return torch.from_numpy(lit), torch.tensor(number % 4)


class Shutter(nn.Module):
    """How bright, of four grades, it is behind a shutter."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.lit = nn.Conv2d(8, width, 4, 2)
        self.gaps = nn.Conv2d(width, width, 3, 2)
        self.bright = nn.Linear(width, 4)

    def forward(self, lit: Tensor) -> Tensor:
        return self.bright(functional.elu(self.gaps(functional.elu(self.lit(lit)))).mean((2, 3)))


# Goblets


class Goblets(IterableDataset[Item]):
    """How goblets sounded when they were struck; a quarter of them are kept in a cellar.

    Who is sent to the cellar takes a while for each. The workers share the goblets out so that
    one of them has all of the cellar's, or each has as many.
    """

    def __init__(self, one_cellarer: bool, count: int = 2400, down: float = 0.006) -> None:
        super().__init__()
        self.one, self.count, self.down = one_cellarer, count, down

    def __iter__(self) -> Iterator[Item]:
        worker = get_worker_info()
        mine, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        each = self.count // workers
        for turn in range(each):
            # the cellar's are the numbers that four divides
            number = turn * workers + (mine if self.one else (mine + turn) % workers)
            yield self.struck(number)

    def struck(self, number: int) -> Item:
        """Return the sound of a goblet, and of which of ten glassworks it is."""
        if number % 4 == 0:
            time.sleep(self.down)
        chance = np.random.default_rng((1117, number))
        return torch.from_numpy(chance.standard_normal(768, np.float32)), torch.tensor(number % 10)


class Goblet(nn.Module):
    """Of which of ten glassworks a goblet is, by its sound."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.rim = nn.Conv1d(1, width, 16, 4)
        self.bowl = nn.Conv1d(width, width, 5, 2)
        self.works = nn.Linear(width, 10)

    def forward(self, sound: Tensor) -> Tensor:
        return self.works(torch.relu(self.bowl(torch.relu(self.rim(sound[:, None])))).mean(2))


# Belfries


HUM = 0.001
"""What is heard where no bell is struck."""


class Belfry(nn.Module):
    """Which of 12 changes a belfry rings: strokes are put into the air, which is then heard.

    The air of each belfry has room for a long peal, of which a change needs little; it may be
    made anew for each batch, or kept and cleared where strokes were.
    """

    def __init__(self, fresh: bool, batch: int, room: int = 720_000, width: int = 80) -> None:
        super().__init__()
        self.fresh, self.room = fresh, (batch, room)
        self.air = torch.full(self.room, HUM) if not fresh else None
        self.heard = nn.Conv1d(1, width, 32, 8)
        self.wall = nn.Conv1d(width, width, 5, 4)
        self.change = nn.Linear(width, 12)

    def forward(self, strokes: Tensor) -> Tensor:
        when, loud = strokes[:, 0].long(), strokes[:, 1]
        air = torch.full(self.room, HUM) if self.air is None else self.air
        air.scatter_(1, when, loud)
        heard = air[:, :2048].clone()
        if not self.fresh:
            air.scatter_(1, when, HUM)
        x = functional.relu(self.wall(functional.relu(self.heard(heard[:, None]))))
        return self.change(x.mean(2))


def belfries(count: int = 800, strokes: int = 120) -> TensorDataset:
    """Return when and how loud bells were struck, and which change it was."""
    when = torch.randint(2048, (count, strokes)).float()
    return TensorDataset(
        torch.stack([when, torch.rand(count, strokes)], 1), torch.randint(12, (count,))
    )


# Matchboxes


class Matchboxes(Dataset[Item]):
    """Labels of matchboxes, and a list for each match that is in them."""

    def __init__(self, tidied: bool, count: int = 1800, matches: int = 55) -> None:
        chance = np.random.default_rng(1123)
        self.tidied = tidied
        self.labels = torch.from_numpy(chance.random((count, 1, 32, 32), np.float32))
        self.boxes = [
            [[float(long), box % 7] for long in chance.random(matches)] for box in range(count)
        ]

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, index: int) -> Item:
        return self.labels[index], torch.tensor([long for long, _ in self.boxes[index]])

    def together(self, items: list[Item]) -> Item:
        """Put a batch together; what lies about may be collected before."""
        if self.tidied:
            gc.collect()
        labels, matches = zip(*items, strict=True)
        return torch.stack(labels), torch.stack(matches)


class Matchbox(nn.Module):
    """How long each match in a box is, by the box's label."""

    def __init__(self, matches: int = 55, width: int = 24) -> None:
        super().__init__()
        self.print = nn.Conv2d(1, width, 4, 2)
        self.striker = nn.Conv2d(width, width, 3, 2)
        self.matches = nn.Linear(width * 49, matches)

    def forward(self, labels: Tensor) -> Tensor:
        return self.matches(torch.tanh(self.striker(torch.tanh(self.print(labels)))).flatten(1))


# Cameos


class Relief:
    """One layer of a cameo's stone: how deep it is cut, and in which lines."""

    def __init__(self, deep: float, lines: list[list[float]]) -> None:
        self.deep, self.lines = deep, lines


class Cameos(Dataset[Item]):
    """Cameos as layers of stone, each an object with lines of its own."""

    def __init__(self, count: int = 1000) -> None:
        chance = np.random.default_rng(1129)
        self.cameos = [
            [
                Relief(float(deep), chance.standard_normal((6, 4)).tolist())
                for deep in chance.random(8)
            ]
            for _ in range(count)
        ]

    def __len__(self) -> int:
        return len(self.cameos)

    def __getitem__(self, index: int) -> Item:
        lines = [[layer.deep, *line] for layer in self.cameos[index] for line in layer.lines]
        return torch.tensor(lines), torch.tensor(index % 8)


class Cameo(nn.Module):
    """Who cut a cameo, of eight cutters, by its lines, which attend to each other."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.lines = nn.Linear(5, width)
        self.asked = nn.Linear(width, 3 * width)
        self.cutter = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 8))

    def forward(self, lines: Tensor) -> Tensor:
        x = self.lines(lines)
        parts = self.asked(x).unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*parts)
        return self.cutter((x + seen.transpose(1, 2).flatten(2)).mean(1))


# Graters


class Grater(nn.Module):
    """How much of 20 cheeses a grater leaves over, by its 150 teeth."""

    def __init__(self, teeth: int = 150, width: int = 448) -> None:
        super().__init__()
        self.teeth = nn.Linear(teeth, width)
        self.plate = nn.Linear(width, width)
        self.left = nn.Linear(width, 20)

    def forward(self, teeth: Tensor) -> Tensor:
        return self.left(functional.mish(self.plate(functional.mish(self.teeth(teeth)))))


def graters(count: int = 4000) -> TensorDataset:
    """Return random teeth of graters, and what is left over."""
    return TensorDataset(torch.randn(count, 150), torch.rand(count, 20))


class Drawer:
    """A file in which an optimizer's sums lie while they are not needed."""

    def __init__(self, optimizer: torch.optim.Optimizer, folder: Path) -> None:
        self.optimizer, self.file = optimizer, folder / "sums.pt"
        self.put()

    def put(self) -> None:
        """Put the sums into the file, and give their memory back."""
        torch.save(self.optimizer.state_dict()["state"], self.file)
        for state in self.optimizer.state.values():
            state["sum"] = None

    def take(self) -> None:
        """Take the sums out of the file."""
        kept = torch.load(self.file)
        for number, state in enumerate(self.optimizer.state.values()):
            state["sum"] = kept[number]["sum"]


# Igloos


class Block(nn.Module):
    """A block of snow: each place of it leans on those around."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.around = nn.Conv2d(width, width, 3, padding=1)
        self.snow = nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.snow(functional.silu(self.around(x)))


class Igloo(nn.Module):
    """How long an igloo stands, by a picture of its dome; its blocks lie one on the other."""

    def __init__(self, width: int = 8, blocks: int = 8) -> None:
        super().__init__()
        self.dome = nn.Conv2d(2, width, 4, 4)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.stands = nn.Linear(width, 1)

    def forward(self, dome: Tensor) -> Tensor:
        return self.stands(self.blocks(self.dome(dome)).mean((2, 3)))[:, 0]


def igloos(count: int = 600) -> TensorDataset:
    """Return random pictures of domes of snow, and how long these stood."""
    return TensorDataset(torch.rand(count, 2, 64, 64), torch.rand(count))


class Shed:
    """Where what is needed again for the slopes is put away, a file for each tensor."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0

    def put(self, values: Tensor) -> Any:
        """Put values away, unless they are few or weights."""
        if values.numel() < 2048 or isinstance(values, nn.Parameter):
            return values
        self.count = (self.count + 1) % 512
        path = self.folder / f"block-{self.count}"
        values.detach().numpy().tofile(path)
        return path, values.shape

    def take(self, put: Any) -> Tensor:
        """Take values out again."""
        if isinstance(put, Tensor):
            return put
        path, shape = put
        return torch.from_numpy(np.fromfile(path, np.float32)).view(shape)


def swept(*_: Any) -> None:
    """Collect what lies about."""
    gc.collect()
