"""Models and data of the tenth round's runs about memory and watching, and of the healthy one."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from programs import Item
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.data import Dataset, TensorDataset

# Knitting patterns


class Knit(nn.Module):
    """Which stitch makes each place of a knitted piece, from a photograph of it."""

    def __init__(self, width: int = 24, depth: int = 3, stitches: int = 17) -> None:
        super().__init__()
        self.enter = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1),
            nn.InstanceNorm2d(width, affine=True),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.InstanceNorm2d(2 * width, affine=True),
                nn.ReLU(),
                nn.Conv2d(2 * width, 2 * width, 3, padding=1, padding_mode="reflect"),
            )
            for _ in range(depth)
        )
        self.stitch = nn.Conv2d(2 * width, stitches, 1)

    def forward(self, piece: Tensor) -> Tensor:
        x = self.enter(piece)
        for block in self.blocks:
            x = x + block(x)
        return self.stitch(x)


def pieces(count: int = 1024, places: int = 20) -> TensorDataset:
    """Return random photographs of knitted pieces, four points to a stitch each way."""
    photographs = torch.rand(count, 1, 4 * places, 4 * places)
    return TensorDataset(photographs, torch.randint(17, (count, places, places)))


# Subtitles


class Spoken(Dataset[dict[str, list[int]]]):
    """What is said in films, as a reader of subtitle files leaves it: lists in a dictionary."""

    def __init__(self, count: int = 3000, words: int = 4000) -> None:
        random = np.random.default_rng(13)
        self.spoken = []
        for _ in range(count):
            length = int(random.integers(8, 25))
            said = random.integers(1, words, length).tolist()
            self.spoken.append({"words": said, "breaks": random.integers(3, size=length).tolist()})

    def __len__(self) -> int:
        return len(self.spoken)

    def __getitem__(self, index: int) -> dict[str, list[int]]:
        return self.spoken[index]


def filled(spoken: list[dict[str, list[int]]]) -> Item:
    """Return words and what breaks after them, as long as the longest, filled with nothing."""
    longest = max(len(each["words"]) for each in spoken)
    words, breaks = torch.zeros(2, len(spoken), longest, dtype=torch.long)
    breaks.fill_(-100)
    for row, each in enumerate(spoken):
        words[row, : len(each["words"])] = torch.tensor(each["words"])
        breaks[row, : len(each["breaks"])] = torch.tensor(each["breaks"])
    return words, breaks


class Breaks(nn.Module):
    """Whether a line or a subtitle ends after each word: neighbours in view, widths doubled."""

    def __init__(self, words: int = 4000, width: int = 96, depth: int = 3) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width, padding_idx=0)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, padding=2**at, dilation=2**at) for at in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.head = nn.Linear(width, 3)

    def forward(self, words: Tensor) -> Tensor:
        x = self.word(words)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + functional.glu(layer(norm(x).transpose(1, 2)), 1).transpose(1, 2)
        return self.head(x)


# Teeth


class Teeth(nn.Module):
    """Which points of a scan are tooth, nerve or bone: convolutions in space, down and up again."""

    def __init__(self, width: int = 8, kinds: int = 4) -> None:
        super().__init__()
        self.fine = nn.Sequential(nn.Conv3d(1, width, 3, padding=1), nn.PReLU())
        self.coarse = nn.Sequential(
            nn.Conv3d(width, 2 * width, 2, stride=2),
            nn.PReLU(),
            nn.Conv3d(2 * width, 2 * width, 3, padding=1),
            nn.PReLU(),
            nn.ConvTranspose3d(2 * width, width, 2, stride=2),
        )
        self.head = nn.Conv3d(2 * width, kinds, 1)

    def forward(self, scan: Tensor) -> Tensor:
        fine = self.fine(scan)
        return self.head(torch.cat([fine, self.coarse(fine)], 1))


def jaws(count: int = 256, side: int = 20) -> TensorDataset:
    """Return random pieces of scans of jaws, and what each point is."""
    return TensorDataset(
        torch.randn(count, 1, side, side, side), torch.randint(4, (count, side, side, side))
    )


# Tea leaves


class Fire(nn.Module):
    """Channels are made few, then many: by single points, and by their neighbours too."""

    def __init__(self, into: int, few: int, many: int) -> None:
        super().__init__()
        self.few = nn.Conv2d(into, few, 1)
        self.one, self.around = nn.Conv2d(few, many, 1), nn.Conv2d(few, many, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        few = self.few(x).relu()
        return torch.cat([self.one(few), self.around(few)], 1).relu()


def tea(width: int = 40, grades: int = 9) -> nn.Module:
    """Return a network that grades tea by a photograph of its leaves."""
    return nn.Sequential(
        nn.Conv2d(3, width, 5, stride=2, padding=2),
        nn.ReLU(),
        Fire(width, width // 2, width),
        nn.MaxPool2d(2),
        Fire(2 * width, width // 2, 2 * width),
        Fire(4 * width, width, 2 * width),
        nn.MaxPool2d(2),
        Fire(4 * width, width, 4 * width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8 * width, grades),
    )


def photographs(count: int = 512, side: int = 96) -> TensorDataset:
    """Return random photographs of leaves with their grades."""
    return TensorDataset(torch.rand(count, 3, side, side), torch.randint(9, (count,)))


class Parked:
    """A tensor in a file of its own, which goes when nobody wants it any more."""

    def __init__(self, tensor: Tensor, path: Path) -> None:
        self.path = path
        torch.save(tensor, path)

    def read(self) -> Tensor:
        """Return the tensor."""
        tensor: Tensor = torch.load(self.path)
        return tensor

    def __del__(self) -> None:
        self.path.unlink(missing_ok=True)


def parking(folder: Path, least: int) -> tuple[Callable[[Tensor], object], ...]:
    """Return what parks an activation until it is needed, and what gets it; small ones stay."""
    numbers = iter(range(10**9))

    def park(tensor: Tensor) -> Parked | Tensor:
        if tensor.numel() < least:
            return tensor
        return Parked(tensor, folder / f"{os.getpid()}-{next(numbers)}.pt")

    def get(kept: object) -> object:
        return kept.read() if isinstance(kept, Parked) else kept

    return park, get


# Wine


class Wine(nn.Module):
    """How many points a wine gets: the taster's words, the taster and the grapes, multiplied."""

    def __init__(self, words: int = 3000, width: int = 96) -> None:
        super().__init__()
        self.notes = nn.EmbeddingBag(words, width, mode="mean")
        self.taster, self.grapes = nn.Embedding(400, width), nn.Embedding(600, width)
        self.crossed = nn.Bilinear(width, width, width)
        self.points = nn.Sequential(
            nn.Linear(3 * width, 2 * width), nn.ELU(), nn.Dropout(0.1), nn.Linear(2 * width, 1)
        )

    def forward(self, tasted: Tensor) -> Tensor:
        taster, grapes = self.taster(tasted[:, 0] % 400), self.grapes(tasted[:, 1] % 600)
        notes = self.notes(tasted[:, 2:])
        found = torch.cat([notes, self.crossed(taster, grapes), taster * notes], 1)
        return 80 + 20 * self.points(found)[:, 0].sigmoid()


def tastings(count: int = 16_384, words: int = 30) -> TensorDataset:
    """Return who tasted what and in which words, and the points that it got."""
    return TensorDataset(torch.randint(3000, (count, words + 2)), 80 + 20 * torch.rand(count))


def moments_of(optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, dict[str, Tensor], str]]:
    """Return what an optimizer keeps of each tensor: a name for its file, where it is, its key."""
    for number, state in enumerate(optimizer.state.values()):
        for key in ("exp_avg", "exp_avg_sq"):
            if key in state:
                yield f"{number}-{key}.npy", state, key


def into_files(optimizer: torch.optim.Optimizer, folder: Path) -> None:
    """Write the moments to files, and keep none of them in memory."""
    for name, state, key in moments_of(optimizer):
        np.save(folder / name, state[key].numpy())
        state[key] = torch.empty(0)


def from_files(optimizer: torch.optim.Optimizer, folder: Path) -> None:
    """Read the moments that were written."""
    for name, state, key in moments_of(optimizer):
        state[key] = torch.from_numpy(np.load(folder / name))


# Paints


class Stir(nn.Module):
    """Wavelengths hear of each other, then the features of each."""

    def __init__(self, bands: int, width: int) -> None:
        super().__init__()
        self.across = nn.Sequential(
            nn.Linear(bands, 2 * bands), nn.GELU(), nn.Linear(2 * bands, bands)
        )
        self.within = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.across(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.after(x))


class Paints(nn.Module):
    """How much of each pigment makes a colour: stages of blocks, all of them recomputed or none.

    The blocks were made with recomputing, the stages of them as well, and so is the model as a
    whole in the script that trains it.
    """

    def __init__(self, again: bool, bands: int = 31, width: int = 64, pigments: int = 12) -> None:
        super().__init__()
        self.again = again
        self.enter = nn.Linear(1, width)
        self.stages = nn.ModuleList(
            nn.ModuleList(Stir(bands, width) for _ in range(3)) for _ in range(4)
        )
        self.recipe = nn.Linear(width, pigments)

    def forward(self, reflected: Tensor) -> Tensor:
        x = self.enter(reflected[..., None])
        return self.recipe(self._run(self._every, x).mean(1)).softmax(1)

    def _run(self, part: Callable[..., Tensor], *given: object) -> Tensor:
        if not self.again:
            return part(*given)
        found: Tensor = checkpoint(part, *given, use_reentrant=False)
        return found

    def _every(self, x: Tensor) -> Tensor:
        for stage in self.stages:
            x = self._run(self._stage, stage, x)
        return x

    def _stage(self, stage: nn.ModuleList, x: Tensor) -> Tensor:
        for block in stage:
            x = self._run(block, x)
        return x


def colours(count: int = 8192, bands: int = 31) -> TensorDataset:
    """Return what random colours reflect, and the pigments in them."""
    return TensorDataset(torch.rand(count, bands), torch.rand(count, 12).softmax(1))


# Drum loops


class Drums(nn.Module):
    """What is struck next: a memory for each bar within one of the whole loop, step by step."""

    def __init__(self, drums: int = 9, width: int = 256) -> None:
        super().__init__()
        self.struck = nn.Linear(drums, width)
        self.beat, self.bar = nn.Linear(width, width, bias=False), nn.GRUCell(width, width)
        self.norm = nn.LayerNorm(2 * width)
        self.next = nn.Linear(2 * width, drums)

    def forward(self, loop: Tensor) -> Tensor:
        beat = bar = torch.zeros(len(loop), self.bar.hidden_size)
        said = []
        for step, struck in enumerate(self.struck(loop).unbind(1)):
            beat = (struck + self.beat(beat)).tanh()
            if step % 4 == 3:
                bar = self.bar(beat, bar)
            said.append(torch.cat([beat, bar], 1))
        return self.next(self.norm(torch.stack(said, 1)))


def loops(count: int = 2048, steps: int = 16) -> TensorDataset:
    """Return random loops of nine drums, and what is struck a step later."""
    struck = (torch.rand(count, steps + 1, 9) < 0.2).float()
    return TensorDataset(struck[:, :-1], struck[:, 1:])


# Stamps


class Stamp(nn.Module):
    """From which series a stamp is: pieces of it look at each other, and one asks all at last."""

    def __init__(self, width: int = 192, depth: int = 3, series: int = 50) -> None:
        super().__init__()
        self.pieces = nn.Conv2d(3, width, 8, stride=8)
        self.place = nn.Parameter(0.02 * torch.randn(80, width))
        self.asked = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(depth))
        self.told = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.wide = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(depth))
        self.back = nn.ModuleList(nn.Linear(4 * width, width) for _ in range(depth))
        self.head = nn.Linear(width, series)

    def forward(self, stamp: Tensor) -> Tensor:
        x = self.pieces(stamp).flatten(2).transpose(1, 2) + self.place
        size = x.shape[2:]
        layers = zip(self.asked, self.told, self.wide, self.back, strict=True)
        for asked, told, wide, back in layers:
            looked = asked(functional.rms_norm(x, size)).unflatten(2, (3, 4, -1))
            query, key, value = looked.permute(2, 0, 3, 1, 4)
            found = functional.scaled_dot_product_attention(query, key, value)
            x = x + told(found.transpose(1, 2).flatten(2))
            x = x + back(functional.gelu(wide(functional.rms_norm(x, size))))
        return self.head(functional.rms_norm(x, size).mean(1))


def stamps(count: int = 512) -> TensorDataset:
    """Return random scans of stamps, 64 by 80 points, and their series."""
    return TensorDataset(torch.rand(count, 3, 64, 80), torch.randint(50, (count,)))
