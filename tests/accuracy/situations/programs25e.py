"""Models and data of the twenty-fifth round's runs 13 to 24, from crowbars to axles: see
``programs25b.py``."""

import gc
import hashlib
import io
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, Sampler, TensorDataset

# Crowbars


class Crowbar(nn.Module):
    """How much a crowbar lifts and how far it bends, by the pull at each place along it, of which
    the strongest near each other are followed."""

    def __init__(self, known: int = 5, width: int = 72) -> None:
        super().__init__()
        self.pull = nn.Conv1d(known, width, 3, padding=1)
        self.along = nn.ModuleList(nn.Conv1d(width, width, 3, padding=1) for _ in range(3))
        self.lifts = nn.Linear(width, 2)

    def forward(self, pulled: Tensor) -> Tensor:
        x = self.pull(pulled)
        for along in self.along:
            x = functional.max_pool1d(functional.softplus(along(x)), 2)
        return self.lifts(x.mean(2))


def crowbars(count: int = 1600, places: int = 96, known: int = 5) -> TensorDataset:
    """Return random pulls along crowbars, and what these lifted."""
    return TensorDataset(torch.randn(count, known, places), torch.rand(count, 2))


# Ledgers


class Ledger(nn.Module):
    """Into which account the next entry of a ledger goes, by what has come into each before."""

    def __init__(self, accounts: int = 300, width: int = 128) -> None:
        super().__init__()
        self.account, self.amount = nn.Embedding(accounts, width), nn.Linear(1, width)
        self.carried, self.page = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.next = nn.Linear(width, accounts)

    def forward(self, entries: tuple[Tensor, Tensor]) -> Tensor:
        accounts, amounts = entries
        x = self.account(accounts) * torch.tanh(self.amount(amounts[..., None]))
        so_far = torch.arange(1, accounts.shape[1] + 1)[:, None]
        x = x + self.page(functional.mish(self.carried(x.cumsum(1) / so_far)))
        return self.next(x).transpose(1, 2)


def ledgers(count: int = 1600, entries: int = 48, accounts: int = 300) -> TensorDataset:
    """Return random accounts and amounts of ledgers' entries, and the accounts that follow."""
    written = torch.randint(accounts, (count, entries + 1))
    return TensorDataset(
        written[:, :-1].contiguous(), torch.randn(count, entries), written[:, 1:].contiguous()
    )


class Collecting:
    """Collects what lies about at each n-th step and at no other time."""

    def __init__(self, every: int) -> None:
        self.every, self.steps = every, 0
        gc.disable()

    def step(self) -> None:
        """Count one step, and collect if it is time."""
        self.steps += 1
        if self.steps % self.every == 0:
            gc.collect()


# Sundresses


class Stitched(nn.Module):
    """A layer in which stitches attend to those before them, in this piece of the seam and in what
    was kept of the piece before."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.asks, self.told = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out, self.normed = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        normed = self.normed(x)
        asks = self.asks(normed).unflatten(2, (self.heads, -1)).transpose(1, 2)
        known = self.told(torch.cat([before, normed], 1)).unflatten(2, (2, self.heads, -1))
        keys, values = known.permute(2, 0, 3, 1, 4)
        many, back = x.shape[1], before.shape[1]
        seen = torch.ones(many, many + back, dtype=torch.bool).tril(back)
        found = functional.scaled_dot_product_attention(asks, keys, values, attn_mask=seen)
        return x + torch.relu(self.out(found.transpose(1, 2).flatten(2)))


class Sundress(nn.Module):
    """Which stitch comes next in a sundress' seam, piece by piece of it."""

    def __init__(self, kinds: int = 40, width: int = 96, layers: int = 3) -> None:
        super().__init__()
        self.width, self.stitch = width, nn.Embedding(kinds, width)
        self.layers = nn.ModuleList(Stitched(width) for _ in range(layers))
        self.next = nn.Linear(width, kinds)

    def forward(self, stitches: Tensor, before: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        x, kept = self.stitch(stitches), []
        for layer, known in zip(self.layers, before, strict=True):
            kept.append(layer.normed(x).detach())
            x = layer(x, known)
        return self.next(x).transpose(1, 2), kept


def sundresses(count: int = 320, pieces: int = 40, length: int = 32, kinds: int = 40) -> Tensor:
    """Return random stitches of sundresses' seams, piece by piece."""
    return torch.randint(kinds, (count, pieces, length + 1))


class Seams:
    """What was kept of the last piece of each seam, for each layer: it lies in memory, or in files
    of each seam."""

    def __init__(self, model: Sundress, length: int, folder: Path | None) -> None:
        self.layers, self.folder = len(model.layers), folder
        self.nothing = torch.zeros(length, model.width)
        self.kept: dict[tuple[int, int], Tensor] = {}
        self.parked: set[tuple[int, int]] = set()

    def take(self, seams: list[int]) -> list[Tensor]:
        """Return what was kept of seams, for each layer."""
        return [
            torch.stack([self.of(seam, layer) for seam in seams]) for layer in range(self.layers)
        ]

    def of(self, seam: int, layer: int) -> Tensor:
        """Return what was kept of one seam by one layer, or nothing."""
        if self.folder and (seam, layer) in self.parked:
            found: Tensor = torch.load(self.folder / f"{seam}-{layer}.pt")
            return found
        return self.kept.get((seam, layer), self.nothing)

    def put(self, seams: list[int], kept: list[Tensor]) -> None:
        """Keep what is needed for the next piece of seams."""
        for layer, all_of in enumerate(kept):
            for seam, each in zip(seams, all_of, strict=True):
                if self.folder:
                    torch.save(each.clone(), self.folder / f"{seam}-{layer}.pt")
                    self.parked.add((seam, layer))
                else:
                    self.kept[seam, layer] = each.clone()


# Armchairs


class Armchair(nn.Module):
    """How long one sits in an armchair, by its measures: of three answers the largest counts."""

    def __init__(self, measures: int = 60, width: int = 224) -> None:
        super().__init__()
        self.frame = nn.Linear(measures, 3 * width)
        self.seat, self.sits = nn.Linear(width, 3 * width), nn.Linear(width, 1)

    def forward(self, measures: Tensor) -> Tensor:
        x = self.frame(measures).unflatten(1, (3, -1)).amax(1)
        return self.sits(self.seat(x).unflatten(1, (3, -1)).amax(1))[:, 0]


def armchairs(count: int = 6400, measures: int = 60) -> TensorDataset:
    """Return random measures of armchairs, and how long one sat."""
    return TensorDataset(torch.randn(count, measures), torch.rand(count))


class Parts(Sampler[list[int]]):
    """Batches of one part of the data after the other."""

    def __init__(self, count: int, parts: int, batch: int) -> None:
        self.size, self.parts, self.batch = count // parts, parts, batch

    def __iter__(self) -> Iterator[list[int]]:
        for part in range(self.parts):
            drawn = random.sample(range(self.size), self.batch)
            yield [part * self.size + each for each in drawn]


class OldSlopes:
    """The slopes that each part of the data gave last, and their mean, with which a new slope is
    made steadier: the parts' lie in memory or in a file each."""

    def __init__(self, model: nn.Module, parts: int, folder: Path | None) -> None:
        self.weights, self.parts, self.folder = list(model.parameters()), parts, folder
        self.mean = [torch.zeros_like(weight) for weight in self.weights]
        self.kept: dict[int, list[Tensor]] = {}
        for part in range(parts):
            self.keep(part, [torch.zeros_like(weight) for weight in self.weights])

    def keep(self, part: int, slopes: list[Tensor]) -> None:
        """Keep the slopes of a part."""
        if self.folder:
            torch.save(slopes, self.folder / f"part-{part}.pt")
        else:
            self.kept[part] = slopes

    def of(self, part: int) -> list[Tensor]:
        """Return the slopes that a part gave last."""
        return torch.load(self.folder / f"part-{part}.pt") if self.folder else self.kept[part]

    def steadied(self, part: int) -> None:
        """Take from the new slopes what this part gave last, and add the mean of all parts."""
        old, new = self.of(part), []
        for weight, was, mean in zip(self.weights, old, self.mean, strict=True):
            slope = weight.grad
            assert slope is not None
            new.append(slope.clone())
            change = slope - was
            slope.copy_(change + mean)
            mean.add_(change, alpha=1 / self.parts)
        self.keep(part, new)


# Wainscots


class Panel(nn.Module):
    """One layer over a wall's panels, each with those beside it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.beside = nn.Conv1d(width, width, 3, padding=1)
        self.normed = nn.GroupNorm(8, width)

    def forward(self, panels: Tensor) -> Tensor:
        return panels + functional.gelu(self.normed(self.beside(panels)))


def halved(layers: nn.ModuleList, panels: Tensor) -> Tensor:
    """Go through layers, and keep only what is between the halves, and so on within each half."""
    if len(layers) == 1:
        found: Tensor = layers[0](panels)
        return found
    middle = len(layers) // 2
    for half in (layers[:middle], layers[middle:]):
        panels = checkpoint(halved, half, panels, use_reentrant=False)
    return panels


class Wainscot(nn.Module):
    """Where a wainscot cracks, by its panels' measures."""

    def __init__(self, again: bool, known: int = 8, width: int = 64, layers: int = 16) -> None:
        super().__init__()
        self.again, self.wood = again, nn.Conv1d(known, width, 1)
        self.layers = nn.ModuleList(Panel(width) for _ in range(layers))
        self.cracks = nn.Conv1d(width, 1, 1)

    def forward(self, panels: Tensor) -> Tensor:
        x = self.wood(panels)
        if self.again:
            x = halved(self.layers, x)
        else:
            for layer in self.layers:
                x = layer(x)
        return self.cracks(x)[:, 0]


def wainscots(count: int = 1200, panels: int = 96, known: int = 8) -> TensorDataset:
    """Return random measures of wainscots' panels, and which of them cracked."""
    cracked = (torch.rand(count, panels) < 0.1).float()
    return TensorDataset(torch.randn(count, known, panels), cracked)


# Thatch


class Thatch(nn.Module):
    """Where it drips through thatch, by the thickness and age of its straw."""

    def __init__(self, known: int = 3, width: int = 48) -> None:
        super().__init__()
        self.straw = nn.Conv2d(known, width, 5, stride=2, padding=2)
        self.wet = nn.Conv2d(width, 3 * width, 3, stride=2, padding=1)
        self.deep = nn.Conv2d(3 * width, 4 * width, 3, stride=2, padding=1)
        self.drips = nn.Linear(4 * width * 9, 64)

    def forward(self, roof: Tensor) -> Tensor:
        x = functional.hardswish(self.wet(functional.hardswish(self.straw(roof))))
        return self.drips(functional.hardswish(self.deep(x)).flatten(1))


def thatch(count: int = 1200, side: int = 24, known: int = 3) -> TensorDataset:
    """Return random roofs of thatch, and where it drips through."""
    return TensorDataset(torch.randn(count, known, side, side), torch.rand(count, 64))


class Sealed:
    """What is needed to go on, in files with a digest beside each; the last three stay."""

    def __init__(self, folder: Path, last: int = 3) -> None:
        self.folder, self.last, self.saved = folder, last, 0

    def save(self, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Write a file, and its digest."""
        state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        packed = io.BytesIO()
        torch.save(state, packed)
        path = self.folder / f"thatch-{self.saved % self.last}.pt"
        path.write_bytes(packed.getbuffer())
        path.with_suffix(".sha256").write_text(hashlib.sha256(packed.getbuffer()).hexdigest())
        self.saved += 1


# Pagodas


class Pagoda(nn.Module):
    """Where a pagoda's storeys begin and end, by its outline: at each place along it, whether a
    storey is there, where its middle is and how high it is."""

    def __init__(self, known: int = 6, width: int = 64) -> None:
        super().__init__()
        self.outline = nn.Conv1d(known, width, 7, stride=2, padding=3)
        self.roofs = nn.Conv1d(width, width, 5, stride=2, padding=2)
        self.walls = nn.Conv1d(width, width, 5, padding=2)
        self.found = nn.Conv1d(width, 3, 1)

    def forward(self, outline: Tensor) -> Tensor:
        x = functional.relu6(self.roofs(functional.relu6(self.outline(outline))))
        return self.found(functional.relu6(self.walls(x)))


def pagodas(count: int = 2400, height: int = 128, known: int = 6) -> TensorDataset:
    """Return random outlines of pagodas, and at each fourth place whether a storey is there, how
    far its middle is and how high it is."""
    there = (torch.rand(count, 1, height // 4) < 0.2).float()
    where = torch.rand(count, 2, height // 4)
    return TensorDataset(torch.randn(count, known, height), torch.cat([there, where], 1))


def storeys_missed(found: Tensor, true: Tensor) -> Tensor:
    """Return how far found storeys are from those that are there."""
    there = true[:, 0]
    unsure = functional.binary_cross_entropy_with_logits(found[:, 0], there)
    off = (found[:, 1:] - true[:, 1:]).abs().sum(1) * there
    return unsure + off.sum() / there.sum().clamp(min=1)


def spans(places: list[list[float]]) -> list[tuple[float, float, float]]:
    """Return how sure each storey is, where it begins and where it ends; the surest come first."""
    given = [
        (sure, 4 * (place + middle) - 2 - 4 * abs(high), 4 * (place + middle) - 2 + 4 * abs(high))
        for place, (sure, middle, high) in enumerate(zip(*places, strict=True))
    ]
    return sorted(given, reverse=True)


def overlap(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """Return which share of two storeys is of both."""
    both = min(one[2], other[2]) - max(one[1], other[1])
    either = max(one[2], other[2]) - min(one[1], other[1])
    return max(0.0, both) / (either + 1e-9)


def matched(model: nn.Module, outlines: Tensor, true: Tensor) -> float:
    """Return how well the storeys of other pagodas are found, on average over ten overlaps at which
    a found one counts."""
    model.eval()
    with torch.no_grad():
        found = model(outlines).tolist()
    model.train()
    right = many = 0
    for places, really in zip(found, true.tolist(), strict=True):
        storeys = [each for each in spans(really) if each[0] > 0.5]
        shared = [[overlap(one, other) for other in storeys] for one in spans(places)]
        for least in range(50, 100, 5):
            free = set(range(len(storeys)))
            for row in shared:
                best = max(free, key=row.__getitem__, default=None)
                if best is not None and row[best] >= least / 100:
                    free.discard(best)
                    right += 1
            many += len(storeys)
    return right / max(1, many)


# Nightgowns


class Nightgown(nn.Module):
    """Which thread comes next in a nightgown's cloth, by gates along those before."""

    def __init__(self, threads: int = 64, width: int = 96) -> None:
        super().__init__()
        self.thread, self.woven = (
            nn.Embedding(threads, width),
            nn.GRU(width, width, batch_first=True),
        )
        self.next = nn.Linear(width, threads)

    def forward(self, cloth: Tensor) -> Tensor:
        return self.next(self.woven(self.thread(cloth))[0]).transpose(1, 2)


def nightgowns(count: int = 1600, length: int = 32, threads: int = 64) -> TensorDataset:
    """Return random cloth of nightgowns, and the thread after each."""
    woven = torch.randint(threads, (count, length + 1))
    return TensorDataset(woven[:, :-1].contiguous(), woven[:, 1:].contiguous())


def surprise(model: nn.Module, cloth: Tensor, window: int = 32) -> float:
    """Return how surprising each thread of a long cloth is, by the window before it."""
    unlikely = 0.0
    model.eval()
    with torch.no_grad():
        for start in range(len(cloth) - window):
            told = model(cloth[None, start : start + window])[..., -1]
            unlikely += functional.cross_entropy(told, cloth[None, start + window]).item()
    model.train()
    return math.exp(unlikely / (len(cloth) - window))


# Pontoons


class Pontoon(nn.Module):
    """How deep a pontoon lies at each place, by the waves around it."""

    def __init__(self, known: int = 2, width: int = 24, layers: int = 3) -> None:
        super().__init__()
        sizes = [known, *layers * [width]]
        self.waves = nn.ModuleList(
            nn.Conv2d(into, width, 3, padding=1, padding_mode="replicate") for into in sizes[:-1]
        )
        self.deep, self.seen = nn.Conv2d(width, 1, 1), list[Tensor]()

    def forward(self, waves: Tensor) -> Tensor:
        self.seen = []
        for layer in self.waves:
            waves = functional.elu(layer(waves))
            self.seen.append(waves.detach())
        return self.deep(waves)[:, 0]


def pontoons(count: int = 600, side: int = 32, known: int = 2) -> TensorDataset:
    """Return random waves around pontoons, and how deep these lay."""
    return TensorDataset(torch.randn(count, known, side, side), torch.rand(count, side, side))


def in_pictures(folder: Path, step: int, seen: list[Tensor], larger: int = 3) -> None:
    """Draw what each layer has seen of the first pontoon, its channels beside each other, so large
    that one can look at it."""
    for layer, channels in enumerate(seen):
        first = channels[0]
        low, high = first.amin((1, 2), keepdim=True), first.amax((1, 2), keepdim=True)
        grey = ((first - low) / (high - low + 1e-6) * 255).byte().numpy()
        rows = grey.reshape(4, -1, *grey.shape[1:]).transpose(0, 2, 1, 3)
        picture = Image.fromarray(np.ascontiguousarray(rows.reshape(4 * grey.shape[1], -1)))
        size = (larger * picture.width, larger * picture.height)
        picture = picture.resize(size, Image.Resampling.BICUBIC)
        picture.save(folder / f"{step % 40}-layer-{layer}.png")


# Visors


class Visor(nn.Module):
    """How bright each point is behind a visor: points are packed by fours, and unpacked at last."""

    def __init__(self, colours: int = 3, width: int = 96, layers: int = 3) -> None:
        super().__init__()
        self.glass = nn.Conv2d(4 * colours, width, 3, padding=1)
        self.layers = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(layers))
        self.bright = nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, seen: Tensor) -> Tensor:
        x = self.glass(functional.pixel_unshuffle(seen, 2))
        for layer in self.layers:
            x = functional.relu(x + layer(x))
        return functional.pixel_shuffle(self.bright(x), 2)[:, 0]


def visors(count: int = 480, side: int = 32, colours: int = 3) -> TensorDataset:
    """Return random views through visors, and how bright each point was."""
    return TensorDataset(torch.rand(count, colours, side, side), torch.rand(count, side, side))


# Jerseys


class Jersey(nn.Module):
    """How warm a jersey is, by its rows, of which there are more or fewer."""

    def __init__(self, known: int = 10, width: int = 64, layers: int = 4) -> None:
        super().__init__()
        self.wool = nn.Linear(known, width)
        self.rows = nn.ModuleList(
            nn.Conv1d(width, width, 5, padding=2, groups=4) for _ in range(layers)
        )
        self.normed = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.warm = nn.Linear(width, 1)

    def forward(self, jersey: tuple[Tensor, Tensor]) -> Tensor:
        rows, there = jersey
        x = self.wool(rows)
        for layer, normed in zip(self.rows, self.normed, strict=True):
            x = x + functional.silu(layer((normed(x) * there).transpose(1, 2))).transpose(1, 2)
        return self.warm((x * there).sum(1) / there.sum(1))[:, 0]


class Jerseys(Dataset[tuple[Tensor, Tensor]]):
    """Random rows of jerseys, and how warm these are."""

    def __init__(self, count: int = 2400, known: int = 10) -> None:
        drawn = random.Random(25)
        self.lengths = [drawn.randint(24, 72) for _ in range(count)]
        self.rows = [torch.randn(length, known) for length in self.lengths]
        self.warm = torch.rand(count)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.rows[index], self.warm[index]


def beside(jerseys: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return jerseys in one batch, which of their rows are there, and how warm they are."""
    rows = pad_sequence([each for each, _ in jerseys], batch_first=True)
    lengths = torch.tensor([len(each) for each, _ in jerseys])
    there = torch.arange(rows.shape[1]) < lengths[:, None]
    return rows, there[..., None].float(), torch.stack([warm for _, warm in jerseys])


class ByLength(Sampler[list[int]]):
    """Batches of jerseys that are equally long, or of those that are about as long."""

    def __init__(self, lengths: list[int], batch: int, equally: bool) -> None:
        self.lengths, self.batch, self.equally = lengths, batch, equally

    def __iter__(self) -> Iterator[list[int]]:
        order = random.sample(range(len(self.lengths)), len(self.lengths))
        pools: dict[int, list[int]] = defaultdict(list)
        if self.equally:
            for each in order:
                pools[self.lengths[each]].append(each)
        else:
            pools[0] = sorted(order, key=self.lengths.__getitem__)
        batches = [
            pool[start : start + self.batch]
            for pool in pools.values()
            for start in range(0, len(pool), self.batch)
        ]
        yield from random.sample(batches, len(batches))


# Axles


class Axle(nn.Module):
    """Which of twelve bearings of an axle is worn, by the tones of how it shakes."""

    def __init__(self, directions: int = 3, moments: int = 256, width: int = 128) -> None:
        super().__init__()
        tones = moments // 2 + 1
        self.tones, self.normed = nn.Linear(directions * tones, width), nn.LayerNorm(width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(9))
        self.worn = nn.Linear(width, 12)

    def forward(self, shaken: Tensor) -> Tensor:
        loud = torch.log1p(torch.fft.rfft(shaken).abs())
        x = self.normed(self.tones(loud.flatten(1)))
        for hidden in self.hidden:
            x = x + functional.relu(hidden(x))
        return self.worn(x)


def axles(count: int = 4800, moments: int = 256, directions: int = 3) -> TensorDataset:
    """Return how axles shake at random, and which bearing is worn."""
    return TensorDataset(torch.randn(count, directions, moments), torch.randint(12, (count,)))
