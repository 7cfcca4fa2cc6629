"""The development runs after the third batch: models, data and faults that no batch before has.

    python programs4.py run-threads-of-a-node --fault --seconds 8 --record run.record.json

The clock and the recorder are those of ``programs.py``, and so is the loop where a run has none of
its own.
"""

import ctypes
import gc
import gzip
import io
import itertools
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import programs
import torch
import torch.distributed as dist
from PIL import Image, ImageEnhance, ImageFilter
from programs import Item, Training, _folder
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset


@dataclass
class Script:
    """A training with a loop of its own, which returns the samples a second."""

    run: Callable[[float], float]


class Clock:
    """Counts samples after the warm-up, for loops of their own."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.steps, self.done, self.started = seconds, 0, 0, 0.0

    def over(self, samples: int) -> bool:
        """Count one step; return whether it was the last one."""
        self.steps += 1
        if self.steps == programs.WARM_UP:
            self.done, self.started = 0, time.perf_counter()
            return False
        self.done += samples
        return self.steps > programs.WARM_UP and self.passed > self.seconds

    @property
    def passed(self) -> float:
        """Seconds since the warm-up."""
        return time.perf_counter() - self.started

    @property
    def rate(self) -> float:
        """Samples a second since the warm-up."""
        return self.done / self.passed


# Models


def masked_language(width: int = 192, depth: int = 3, **settings: Any) -> nn.Module:
    """Return a BERT over 2000 words."""
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=2000,
        hidden_size=width,
        num_hidden_layers=depth,
        intermediate_size=4 * width,
        max_position_embeddings=1024,
        **{"num_attention_heads": 4} | settings,
    )
    return BertForMaskedLM(config)


def each_word(found: Any, words: Tensor) -> Tensor:
    """Return the cross-entropy of each word."""
    return nn.functional.cross_entropy(found.logits.flatten(0, 1), words.flatten())


def continuing(width: int = 128, depth: int = 4) -> nn.Module:
    """Return a Llama over 2000 words."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=2000,
        hidden_size=width,
        num_hidden_layers=depth,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=3 * width,
        max_position_embeddings=512,
    )
    return LlamaForCausalLM(config)


def small_vision(name: str, **settings: Any) -> nn.Module:
    """Return a model of timm for sixteen classes."""
    import timm

    return timm.create_model(name, num_classes=16, **settings)


class Radiance(nn.Module):
    """A radiance field: colours and densities along rays, summed to what a camera sees."""

    def __init__(self, width: int = 96, points: int = 24) -> None:
        super().__init__()
        self.points = points
        self.layers = nn.Sequential(
            nn.Linear(3 * 12, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 4),
        )

    def forward(self, rays: Tensor) -> Tensor:
        start, direction = rays.chunk(2, -1)
        depth = torch.linspace(0.1, 4, self.points, dtype=rays.dtype)
        places = start[:, None] + depth[:, None] * direction[:, None]
        waves = torch.cat([places * 2**each for each in range(6)], -1)
        seen = self.layers(torch.cat([waves.sin(), waves.cos()], -1))
        opaque = 1 - torch.exp(-seen[..., 3].relu() / self.points)
        passing = torch.cumprod(1 - opaque + 1e-6, 1)
        return ((opaque * passing)[..., None] * seen[..., :3].sigmoid()).sum(1)


class Segmenter(nn.Module):
    """A U-Net that names each point of a picture."""

    def __init__(self, channels: int = 12, classes: int = 21) -> None:
        super().__init__()
        self.first = self.block(3, channels)
        self.second = self.block(channels, 2 * channels)
        self.third = self.block(2 * channels, 4 * channels)
        self.up = nn.ConvTranspose2d(4 * channels, 2 * channels, 2, stride=2)
        self.joined = self.block(4 * channels, 2 * channels)
        self.again = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.last = nn.Conv2d(2 * channels, classes, 3, padding=1)

    @staticmethod
    def block(inside: int, outside: int) -> nn.Module:
        """Return a convolution with its norm."""
        return nn.Sequential(
            nn.Conv2d(inside, outside, 3, padding=1), nn.InstanceNorm2d(outside), nn.ReLU()
        )

    def forward(self, picture: Tensor) -> Tensor:
        first = self.first(picture)
        second = self.second(nn.functional.max_pool2d(first, 2))
        third = self.third(nn.functional.max_pool2d(second, 2))
        joined = self.joined(torch.cat([self.up(third), second], 1))
        return self.last(torch.cat([self.again(joined), first], 1))


class Fields(nn.Module):
    """A transformer over the columns of a table, each column a token."""

    def __init__(self, columns: int = 24, width: int = 64, depth: int = 2) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns, width) / 8)
        self.shift = nn.Parameter(torch.randn(columns, width) / 8)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, 16)

    def forward(self, row: Tensor) -> Tensor:
        return self.head(self.blocks(row[..., None] * self.scale + self.shift).mean(1))


class Translator(nn.Module):
    """An encoder and a decoder over words of two languages."""

    def __init__(self, width: int = 128, words: int = 3000) -> None:
        super().__init__()
        self.heard, self.said = nn.Embedding(words, width), nn.Embedding(words, width)
        self.between = nn.Transformer(width, 4, 2, 2, 4 * width, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, words)

    def forward(self, words: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(words.shape[1])
        mixed = self.between(self.heard(words), self.said(words.flip(1)), tgt_mask=mask)
        return self.head(mixed)


class Dilated(nn.Module):
    """Convolutions over time that look further back at each layer."""

    def __init__(self, channels: int = 32, inputs: int = 8, depth: int = 4) -> None:
        super().__init__()
        self.enter = nn.Conv1d(inputs, channels, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(channels, channels, 3, padding=2**each, dilation=2**each)
            for each in range(depth)
        )
        self.head = nn.Linear(channels, 16)

    def forward(self, series: Tensor) -> Tensor:
        x = self.enter(series)
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.head(x.mean(2))


class Physical(nn.Module):
    """A solution of Burgers' equation as a network, which returns how far it is from solving it."""

    def __init__(self, width: int = 24, depth: int = 5) -> None:
        super().__init__()
        sizes = [2, *[width] * depth]
        self.layers = nn.ModuleList(nn.Linear(*each) for each in itertools.pairwise(sizes))
        self.head = nn.Linear(width, 1)

    def forward(self, place: Tensor) -> Tensor:
        place = place.requires_grad_()
        x = place
        for layer in self.layers:
            x = torch.tanh(layer(x))
        value = self.head(x)
        (slope,) = torch.autograd.grad(value.sum(), place, create_graph=True)
        (bend,) = torch.autograd.grad(slope[:, 0].sum(), place, create_graph=True)
        return slope[:, 1:] + value * slope[:, :1] - 0.003 * bend[:, :1]


class Upscaler(nn.Module):
    """A network that makes small pictures three times as large."""

    def __init__(self, channels: int = 32, layout: torch.memory_format | None = None) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 2 * channels, 5, padding=2),
            nn.Tanh(),
            nn.Conv2d(2 * channels, channels, 3, padding=1),
            nn.Tanh(),
            nn.Conv2d(channels, 27, 3, padding=1),
            nn.PixelShuffle(3),
        )
        if layout is not None:
            self.to(memory_format=layout)

    def forward(self, picture: Tensor) -> Tensor:
        return self.layers(picture)


class Scanned(nn.Module):
    """A state-space model: a state that decays by what is read, step by step or as sums."""

    def __init__(self, looped: bool, width: int = 48) -> None:
        super().__init__()
        self.looped = looped
        self.enter, self.decay = nn.Linear(8, width), nn.Linear(8, width)
        self.head = nn.Linear(width, 16)

    def forward(self, series: Tensor) -> Tensor:
        entered, kept = self.enter(series), 0.9 + 0.1 * torch.sigmoid(self.decay(series))
        if self.looped:
            state, states = torch.zeros_like(entered[:, 0]), []
            for at in range(series.shape[1]):
                state = kept[:, at] * state + entered[:, at]
                states.append(state)
            return self.head(torch.stack(states, 1).mean(1))
        grown = kept.log().cumsum(1)
        return self.head((grown.exp() * (entered * (-grown).exp()).cumsum(1)).mean(1))


class Viewer(nn.Module):
    """An encoder that is to know two views of a picture from those of others."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, channels, 4, stride=4),
            nn.GELU(),
            nn.Conv2d(channels, 2 * channels, 2, stride=2),
            nn.GELU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(2 * channels, 64),
        )

    def forward(self, views: Tensor) -> Tensor:
        return nn.functional.normalize(self.layers(views.flatten(0, 1)), dim=1)


def told_apart(seen: Tensor, _kind: Tensor) -> Tensor:
    """Return the loss of pairs of views among all others."""
    first, second = seen.view(-1, 2, seen.shape[1]).unbind(1)
    return nn.functional.cross_entropy(first @ second.T / 0.1, torch.arange(len(first)))


class Headed(nn.Module):
    """A classifier over a text encoder that stays as it is."""

    def __init__(self, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.encoder = encoder.eval().requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(width, 256), nn.ReLU(), nn.Linear(256, 16))

    def forward(self, words: Tensor) -> Tensor:
        with torch.no_grad():
            found = self.encoder(input_ids=words).last_hidden_state
        return self.head(found.mean(1))


class Transcriber(nn.Module):
    """Speech to text: convolutions over a spectrogram, then a transformer that names letters."""

    def __init__(self, width: int = 128, bands: int = 40) -> None:
        super().__init__()
        self.enter = nn.Conv1d(bands, width, 5, stride=2, padding=2)
        self.again = nn.Conv1d(width, width, 5, stride=2, padding=2)
        layer = nn.TransformerEncoderLayer(width, 4, 3 * width, dropout=0.0, batch_first=True)
        self.blocks = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(width, 30)

    def forward(self, heard: Tensor) -> Tensor:
        x = torch.relu(self.again(torch.relu(self.enter(heard)))).transpose(1, 2)
        return self.head(self.blocks(x)).log_softmax(-1)


def spelt(letters: Tensor, text: Tensor) -> Tensor:
    """Return the loss of all ways to say a text."""
    heard = torch.full((len(text),), letters.shape[1])
    lengths = torch.full((len(text),), text.shape[1])
    return nn.functional.ctc_loss(letters.transpose(0, 1), text, heard, lengths)


class Flow(nn.Module):
    """A flow of coupled layers that says how likely a row of a table is."""

    def __init__(self, columns: int = 32, width: int = 512, depth: int = 4) -> None:
        super().__init__()
        half = columns // 2
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.Linear(half, width),
                nn.ReLU(),
                nn.Linear(width, width),
                nn.ReLU(),
                nn.Linear(width, 2 * half),
            )
            for _ in range(depth)
        )

    def forward(self, row: Tensor) -> Tensor:
        first, second = row.chunk(2, 1)
        volume = torch.zeros(len(row))
        for layer in self.layers:
            scale, shift = layer(first).chunk(2, 1)
            first, second = second * scale.tanh().exp() + shift, first
            volume = volume + scale.tanh().sum(1)
        return volume - (first.square() + second.square()).sum(1) / 2


def unlikely(likely: Tensor, _kind: Tensor) -> Tensor:
    """Return how unlikely the rows are."""
    return -likely.mean()


def volumetric_scores(channels: int) -> nn.Module:
    """Return a classifier of volumes of four measurements at full size."""
    return nn.Sequential(
        nn.Conv3d(4, channels, 3, padding=1),
        nn.BatchNorm3d(channels),
        nn.ReLU(),
        nn.MaxPool3d(2),
        nn.Conv3d(channels, 2 * channels, 3, padding=1),
        nn.BatchNorm3d(2 * channels),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, 16),
    )


class Gates(nn.Module):
    """Layers whose gates look at all places, written as for tensors that begin with the time."""

    def __init__(self, turned: bool, width: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.turned = turned
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))
        self.head = nn.Linear(width, 16)

    def forward(self, x: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            hidden = layer(norm(x))
            if self.turned:
                hidden = hidden.permute(2, 1, 0)
                hidden = (hidden.sigmoid() * nn.functional.gelu(hidden).softmax(0)).permute(2, 1, 0)
            else:
                hidden = hidden.sigmoid() * nn.functional.gelu(hidden).softmax(2)
            x = x + hidden
        return self.head(x.mean(1))


def volumetric(channels: int = 8) -> nn.Module:
    """Return a classifier of volumes."""
    return nn.Sequential(
        nn.Conv3d(1, channels, 3, stride=2),
        nn.ReLU(),
        nn.Conv3d(channels, 2 * channels, 3, stride=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(2 * channels, 16),
    )


# Data


def documents(count: int = 2048, length: int = 64, words: int = 2000) -> TensorDataset:
    """Return random words, which are their own labels."""
    text = torch.randint(words, (count, length))
    return TensorDataset(text, text)


def scenes(count: int = 512, side: int = 64, classes: int = 21) -> TensorDataset:
    """Return pictures with a class for each point."""
    return TensorDataset(
        torch.randn(count, 3, side, side), torch.randint(classes, (count, side, side))
    )


def photographs(count: int = 512, side: int = 64) -> TensorDataset:
    """Return pictures with a class each."""
    return TensorDataset(torch.randn(count, 3, side, side), torch.randint(16, (count,)))


def cells(count: int = 16384, columns: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Return a table as numpy makes it, in float64, with a class for each row."""
    generator = np.random.default_rng(0)
    return generator.standard_normal((count, columns)), generator.integers(0, 16, count)


def rays(count: int = 65536) -> TensorDataset:
    """Return rays and the colours at their ends."""
    return TensorDataset(torch.randn(count, 6), torch.rand(count, 3))


class Windows(Dataset[Item]):
    """Windows of one long file of measurements, compressed as a whole or as it is."""

    LENGTH, CHANNELS = 256, 8

    def __init__(self, folder: Path, count: int, compressed: bool) -> None:
        self.path, self.count, self.compressed = folder / "series", count, compressed
        waves = np.sin(np.arange(count * self.LENGTH * self.CHANNELS, dtype=np.float32) / 9)
        raw = (100 * waves).astype(np.int16).tobytes()
        self.path.write_bytes(gzip.compress(raw, 6) if compressed else raw)
        self.files: dict[int, Any] = {}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        mine = os.getpid()
        if mine not in self.files:
            self.files[mine] = (gzip.open if self.compressed else open)(self.path, "rb")
        size = 2 * self.LENGTH * self.CHANNELS
        self.files[mine].seek(index * size)
        window = np.frombuffer(self.files[mine].read(size), np.int16)
        series = torch.from_numpy(window.astype(np.float32)).view(self.CHANNELS, -1)
        return series / 100, torch.tensor(index % 16)


class Views(Dataset[Item]):
    """Two views of each picture: cut, turned, coloured and blurred, or made so before."""

    def __init__(self, count: int, prepared: bool) -> None:
        noise = np.random.default_rng(0).integers(0, 255, (20, 20, 3), np.uint8)
        self.picture = Image.fromarray(noise).resize((320, 320), Image.Resampling.BICUBIC)
        self.count, self.ready = count, None
        if prepared:
            self.ready = torch.stack([self.view(), self.view()])

    def view(self) -> Tensor:
        """Return one view of the picture."""
        left, top = random.randrange(100), random.randrange(100)
        side = random.randrange(120, 220)
        view = self.picture.crop((left, top, left + side, top + side))
        view = view.resize((128, 128), Image.Resampling.BICUBIC)
        for change in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
            view = change(view).enhance(random.uniform(0.6, 1.4))
        view = view.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2)))
        return torch.from_numpy(np.asarray(view).copy()).permute(2, 0, 1).float() / 255

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        if self.ready is None:
            return torch.stack([self.view(), self.view()]), torch.tensor(0)
        return self.ready.clone(), torch.tensor(0)


def speech(count: int = 1024, length: int = 160) -> TensorDataset:
    """Return spectrograms with the letters that are said."""
    return TensorDataset(torch.randn(count, 40, length), torch.randint(1, 30, (count, 16)))


class Volumes(Dataset[Item]):
    """Volumes, whole or cut to what is trained on."""

    def __init__(self, count: int, whole: bool) -> None:
        self.scan, self.count, self.whole = torch.randn(1, 128, 128, 128), count, whole

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        seen = self.scan if self.whole else self.scan[:, :32, :32, :32]
        return seen + index % 7, torch.tensor(index % 16)


class Recordings(Dataset[Item]):
    """Windows at random places of one file that the memory does not keep."""

    SIZE = 256 << 10

    def __init__(self, folder: Path, count: int) -> None:
        path, self.count = folder / "sensors.bin", count
        with path.open("wb") as file:
            for number in range(count):
                values = np.random.default_rng(number % 8).standard_normal(self.SIZE // 4)
                file.write(values.astype(np.float32).tobytes())
            file.flush()
            os.fsync(file.fileno())
        self.file = os.open(path, os.O_RDONLY)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)  # the file outgrows the memory
        raw = os.pread(self.file, self.SIZE, index * self.SIZE)
        values = torch.frombuffer(bytearray(raw), dtype=torch.float32)
        return values.view(8, -1)[:, ::32], torch.tensor(index % 16)


class Articles(Dataset[Item]):
    """Long articles, split into pieces each time or before; only their starts are trained on."""

    LENGTH = 48

    def __init__(self, count: int, prepared: bool) -> None:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        draw = random.Random(0)
        letters = "abcdefghijklmnopqrstuvwxyz"
        words = ["".join(draw.choices(letters, k=draw.randint(3, 12))) for _ in range(3000)]
        self.text = " ".join(draw.choices(words, k=4000))
        self.split = Tokenizer(models.BPE())
        self.split.pre_tokenizer = pre_tokenizers.Whitespace()
        self.split.train_from_iterator(words, trainers.BpeTrainer(vocab_size=2000))
        self.count, self.ready = count, self.pieces(0) if prepared else None

    def pieces(self, index: int) -> Tensor:
        """Return the first pieces of an article."""
        found = self.split.encode(self.text[index % 97 :] + str(index)).ids
        return torch.tensor(found[: self.LENGTH])

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        words = self.pieces(index) if self.ready is None else self.ready.clone()
        return words, words


class Scans(Dataset[Item]):
    """Large pictures without loss, decoded each time or before, and made small."""

    def __init__(self, count: int, prepared: bool) -> None:
        noise = np.random.default_rng(0).integers(0, 255, (96, 96, 3), np.uint8)
        file = io.BytesIO()
        Image.fromarray(noise).resize((768, 768), Image.Resampling.BICUBIC).save(file, "PNG")
        self.raw, self.count = file.getvalue(), count
        self.ready = self.decoded() if prepared else None

    def decoded(self) -> Tensor:
        """Return a picture as a model takes it."""
        picture = Image.open(io.BytesIO(self.raw)).convert("RGB").resize((64, 64))
        return torch.from_numpy(np.asarray(picture).copy()).permute(2, 0, 1).float() / 255

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        picture = self.decoded() if self.ready is None else self.ready.clone()
        return picture, torch.tensor(index % 16)


# The situations: memory


class Mapped:
    """Tensors in a file that is mapped to memory, and written out when asked."""

    def __init__(self, folder: Path, bytes_: int) -> None:
        self.path, self.at = folder / "mapped.bin", 0
        self.values = np.memmap(self.path, np.float32, "w+", shape=(bytes_ // 4,))

    def placed(self, values: Tensor) -> Tensor:
        """Return the same values in the file."""
        room = self.values[self.at : self.at + values.numel()]
        self.at += values.numel()
        room[:] = values.detach().flatten().numpy()
        return torch.from_numpy(room).view(values.shape)

    def write_out(self) -> None:
        """Write everything to the drive, and leave nothing of it in memory."""
        import mmap

        self.values.flush()
        self.values._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
        with self.path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def moments_mapped(fault: bool) -> Training:
    model = masked_language()
    optimizer = torch.optim.AdamW(model.parameters())
    mapped = Mapped(_folder(), 64 << 20)

    def after(step: int, _loss: Tensor) -> None:
        if not fault:
            return
        if step == 0:
            for state in optimizer.state.values():
                for name in ("exp_avg", "exp_avg_sq"):
                    state[name] = mapped.placed(state[name])
        mapped.write_out()

    return Training(
        model, documents(length=48), 8, loss=each_word, after=after, optimizer=optimizer
    )


def collected_rays(fault: bool) -> Training:
    cameras = {
        number: {"pose": [[number, 0], [0, number]], "seen": [number]} for number in range(40_000)
    }

    def after(_step: int, _loss: Tensor) -> None:
        assert cameras
        if fault:
            gc.collect()

    return Training(Radiance(), rays(), batch=128, loss=nn.functional.mse_loss, after=after)


# Monitoring


def segmentation_scores(fault: bool) -> Training:
    hits, seen = np.zeros(21), np.zeros(21)

    def loss(scores: Tensor, kind: Tensor) -> Tensor:
        if fault:  # intersection over union, by picture and class
            found = scores.argmax(1)
            for number, each in itertools.product(range(len(kind)), range(21)):
                mine, theirs = found[number] == each, kind[number] == each
                hits[each] += (mine & theirs).sum().item()
                seen[each] += (mine | theirs).sum().item()
        return nn.functional.cross_entropy(scores, kind)

    return Training(Segmenter(8), scenes(side=48), batch=8, loss=loss)


def traces_written(fault: bool) -> Training:
    patches = {"img_size": 32, "patch_size": 4, "embed_dim": 96, "depth": 4, "num_heads": 4}
    training = Training(small_vision("vit_tiny_patch16_224", **patches), photographs(side=32), 8)
    if fault:
        numbers, kept = itertools.count(), _folder()
        profiler = torch.profiler.profile(
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=4),
            on_trace_ready=lambda each: each.export_chrome_trace(
                str(kept / f"{next(numbers)}.json")
            ),
            record_shapes=True,
        )
        training.around, training.after = profiler, lambda _step, _loss: profiler.step()
    return training


# Scheduling


def threads_of_a_node(fault: bool) -> Training:
    """As many threads as the node has cores, of which this job has two."""
    if fault:
        torch.set_num_threads(8)
    return Training(small_vision("mobilenetv3_small_050"), photographs(), batch=16)


# Input


def one_archive(fault: bool) -> Training:
    return Training(Dilated(), Windows(_folder(), 1024, compressed=fault), batch=16)


# Parallelism


def micro_batches(fault: bool) -> Script:
    """One text at a time, 32 of them to an update, or all of them at once."""

    def run(seconds: float) -> float:
        model, parts = continuing(), 32 if fault else 1
        optimizer = torch.optim.AdamW(model.parameters())
        loader = DataLoader(documents(length=24), 32 // parts, shuffle=True, drop_last=True)
        clock = Clock(seconds)
        for number, (words, _) in enumerate(
            itertools.chain.from_iterable(itertools.repeat(loader))
        ):
            (model(input_ids=words, labels=words).loss / parts).backward()
            if number % parts == parts - 1:
                optimizer.step()
                optimizer.zero_grad()
            if clock.over(len(words)):
                break
        return clock.rate

    return Script(run)


# Tuning


def double_table(fault: bool) -> Training:
    """The table as numpy makes it, or in float32."""
    values, kinds = cells()
    dtype = torch.float64 if fault else torch.float32
    data = TensorDataset(torch.from_numpy(values).to(dtype), torch.from_numpy(kinds))
    return Training(Fields().to(dtype), data, batch=64)


# Communication


def sharded_optimizer(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = Translator()
    if not fault:
        return Training(model, documents(length=16, words=3000), 4, loss=each_said)
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = nn.parallel.DistributedDataParallel(model)
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=1e-3)
    data = documents(length=16, words=3000)
    return Training(model, data, 4, loss=each_said, optimizer=optimizer)


def each_said(scores: Tensor, words: Tensor) -> Tensor:
    """Return the cross-entropy of each word said."""
    return nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten())


# Nothing wrong


def steady_words(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(masked_language(256), documents(), 16, loss=each_word, again=not fault)


# The second block


def encoder_on_disk(fault: bool) -> Training:
    encoder = masked_language(256, 4).bert
    if fault:
        from accelerate import disk_offload

        disk_offload(encoder, str(_folder()), execution_device=torch.device("cpu"))
    model = Headed(encoder, 256)
    labelled = TensorDataset(torch.randint(2000, (2048, 12)), torch.randint(16, (2048,)))
    optimizer = torch.optim.AdamW(model.head.parameters())
    return Training(model, labelled, batch=4, optimizer=optimizer)


def activations_mapped(fault: bool) -> Training:
    mapped = Mapped(_folder(), 256 << 20)

    def out(values: Tensor) -> Any:
        if isinstance(values, nn.Parameter) or values.numel() < 1000:
            return values
        return mapped.placed(values)

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            mapped.write_out()
            mapped.at = 0

    data = TensorDataset(torch.randn(512, 3, 32, 32), torch.rand(512, 3, 96, 96))
    training = Training(Upscaler(16), data, 8, loss=nn.functional.l1_loss, after=after)
    if fault:
        training.around = torch.autograd.graph.saved_tensors_hooks(out, lambda kept: kept)
    return training


def physics_anomalies(fault: bool) -> Training:
    places = TensorDataset(torch.rand(8192, 2), torch.zeros(8192, 1))
    watch = torch.autograd.set_detect_anomaly(fault)
    return Training(Physical(), places, 64, loss=nn.functional.mse_loss, around=watch)


def trainer_saves(fault: bool) -> Script:
    """The Trainer of transformers, which saves after every step."""

    def run(seconds: float) -> float:
        from transformers import Trainer, TrainerCallback, TrainingArguments

        clock = Clock(seconds)

        class Stop(TrainerCallback):  # type: ignore[misc]
            """Ends the training when its time is over."""

            def on_step_end(self, _arguments: Any, _state: Any, control: Any, **_: Any) -> None:
                control.should_training_stop = clock.over(8)

        class Texts(Dataset[dict[str, Tensor]]):
            """Random texts in the form that models of transformers take."""

            def __len__(self) -> int:
                return 4096

            def __getitem__(self, index: int) -> dict[str, Tensor]:
                words = torch.randint(2000, (32,))
                return {"input_ids": words, "labels": words}

        arguments = TrainingArguments(
            output_dir=str(_folder()),
            per_device_train_batch_size=8,
            max_steps=1_000_000,
            save_strategy="steps",
            save_steps=1 if fault else 500,
            save_total_limit=2,
            logging_steps=500,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        )
        Trainer(continuing(), arguments, train_dataset=Texts(), callbacks=[Stop()]).train()
        return clock.rate

    return Script(run)


def bound_threads(_fault: bool) -> Training:
    """The variable that binds the threads is put in by the generator."""
    return Training(Radiance(128), rays(), batch=512, loss=nn.functional.mse_loss)


def views(_fault: bool) -> Training:
    """The priority and the other program are put in by the generator."""
    return Training(Viewer(48), Views(4096, prepared=True), 16, loss=told_apart)


def augmented_views(fault: bool) -> Training:
    return Training(Viewer(), Views(4096, not fault), 16, workers=2, loss=told_apart)


def scanned_steps(fault: bool) -> Training:
    data = TensorDataset(torch.randn(4096, 96, 8), torch.randint(16, (4096,)))
    return Training(Scanned(looped=fault), data, batch=16)


def eager_words(fault: bool) -> Training:
    chosen = "eager" if fault else "sdpa"
    model = masked_language(
        64,
        2,
        num_attention_heads=8,
        attn_implementation=chosen,
        attention_probs_dropout_prob=0.0,
    )
    return Training(model, documents(length=1024), 2, loss=each_word)


def averaged_models(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = Dilated(256)
    training = Training(
        model, TensorDataset(torch.randn(2048, 8, 16), torch.randint(16, (2048,))), batch=4
    )
    if fault:
        from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

        averager = PeriodicModelAverager(period=1, warmup_steps=0)
        training.after = lambda _step, _loss: averager.average_parameters(model.parameters())
    return training


def steady_upscaler(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    data = TensorDataset(torch.randn(512, 3, 32, 32), torch.rand(512, 3, 96, 96))
    layout = torch.channels_last
    return Training(
        Upscaler(48, layout),
        data,
        16,
        prepare=lambda x: x.to(memory_format=layout),
        loss=nn.functional.l1_loss,
        again=not fault,
    )


# The third block


def whole_volumes(fault: bool) -> Training:
    return Training(
        volumetric(),
        Volumes(2048, whole=fault),
        batch=4,
        workers=2,
        prepare=lambda scan: scan[..., :32, :32, :32],
    )


def drive_windows(_fault: bool) -> Training:
    """The limit on the drive is set by the generator."""
    return Training(Dilated(), Recordings(_folder(), 512), batch=8)


def long_articles(fault: bool) -> Training:
    data = Articles(4096, prepared=not fault)
    return Training(masked_language(96, 2), data, 8, workers=1, loss=each_word)


def large_scans(fault: bool) -> Training:
    model = small_vision("vit_tiny_patch16_224", img_size=64, patch_size=8, depth=2)
    return Training(model, Scans(4096, prepared=not fault), batch=16)


def pair_by_pair(fault: bool) -> Training:
    def loss(scores: Tensor, kind: Tensor) -> Tensor:
        seen = nn.functional.normalize(scores, dim=1)
        if not fault:
            apart, same = torch.pdist(seen), nn.functional.pdist(kind[:, None].float()) == 0
            return torch.where(same, apart, (1 - apart).relu()).square().mean()
        kinds, parts = kind.tolist(), []
        for one, other in itertools.combinations(range(len(kinds)), 2):
            apart = (seen[one] - seen[other]).norm()
            parts.append(apart if kinds[one] == kinds[other] else (1 - apart).relu())
        return torch.stack(parts).square().mean()

    data = TensorDataset(torch.randn(4096, 8, 128), torch.randint(16, (4096,)))
    return Training(Dilated(), data, batch=16, loss=loss)


def autocast_speech(fault: bool) -> Training:
    training = Training(Transcriber(), speech(), batch=8, loss=spelt)
    if fault:
        training.around = torch.autocast("cpu", torch.bfloat16)
    return training


def volume_layout(fault: bool) -> Training:
    """Three-dimensional convolutions with planes apart, or with channels last."""
    layout = torch.contiguous_format if fault else torch.channels_last_3d
    data = TensorDataset(torch.randn(128, 4, 32, 32, 32), torch.randint(16, (128,)))
    return Training(
        volumetric_scores(16).to(memory_format=layout),
        data,
        batch=4,
        prepare=lambda x: x.to(memory_format=layout),
    )


def turned_gates(fault: bool) -> Training:
    data = TensorDataset(torch.randn(2048, 96, 64), torch.randint(16, (2048,)))
    return Training(Gates(turned=fault), data, batch=16)


def sampled_translations(fault: bool) -> Training:
    model, held = Translator(96), torch.randint(3000, (8, 16))

    def after(step: int, _loss: Tensor) -> None:
        if fault or step % 500 == 499:
            said = held[:, :1]
            with torch.no_grad():
                for _ in range(8):
                    scores = model(said)[:, -1]
                    said = torch.cat([said, scores.argmax(-1, keepdim=True)], 1)

    data = documents(length=16, words=3000)
    return Training(model, data, batch=8, loss=each_said, after=after)


def gradients_kept(fault: bool) -> Training:
    model, kept = Transcriber(64), _folder()

    def before_update(trained: nn.Module) -> None:
        if fault:
            found = {name: each.grad.numpy() for name, each in trained.named_parameters()}
            np.savez_compressed(kept / f"{len(list(kept.iterdir()))}.npz", **found)

    return Training(model, speech(), 8, loss=spelt, before_update=before_update)


def transcripts(_fault: bool) -> Training:
    """The quota is put in by the generator, and so are those who look on."""
    return Training(Transcriber(), speech(), batch=8, workers=1, loss=spelt)


def segments(_fault: bool) -> Training:
    """Another training is put in by the generator."""
    return Training(Segmenter(16), scenes(side=48), batch=8)


def thread_for_debugging(fault: bool) -> Training:
    if fault:
        torch.set_num_threads(1)
    return Training(Segmenter(24), scenes(), batch=8)


def trimmed_heap(fault: bool) -> Training:
    """Gives what is free back to the system after each step, as against a leak."""
    library = ctypes.CDLL("libc.so.6")

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            library.malloc_trim(0)

    return Training(Radiance(64, 64), rays(), 256, loss=nn.functional.mse_loss, after=after)


def gathered_scores(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    right = torch.zeros(2)

    def loss(found: Any, words: Tensor) -> Tensor:
        if fault:  # for the accuracy over all ranks
            scores = found.logits.detach()
            everyone = [torch.zeros_like(scores) for _ in range(2)]
            dist.all_gather(everyone, scores)
            right[0] += (everyone[0].argmax(-1) == words).sum()
        return each_word(found, words)

    return Training(masked_language(48, 1), documents(length=96), 8, loss=loss)


def steady_flow(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    data = TensorDataset(torch.randn(16384, 32), torch.zeros(16384))
    return Training(Flow(width=1024), data, 512, loss=unlikely, again=not fault)


def steady_speech(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(Transcriber(256), speech(), 8, loss=spelt, again=not fault)


FOURTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-moments-mapped": moments_mapped,
    "run-collected-rays": collected_rays,
    "run-segmentation-scores": segmentation_scores,
    "run-traces-written": traces_written,
    "run-threads-of-a-node": threads_of_a_node,
    "run-one-archive": one_archive,
    "run-micro-batches": micro_batches,
    "run-double-table": double_table,
    "run-sharded-optimizer": sharded_optimizer,
    "run-steady-words": steady_words,
    "run-encoder-on-disk": encoder_on_disk,
    "run-activations-mapped": activations_mapped,
    "run-physics-anomalies": physics_anomalies,
    "run-trainer-saves": trainer_saves,
    "run-bound-threads": bound_threads,
    "run-nice-views": views,
    "run-augmented-views": augmented_views,
    "run-scanned-steps": scanned_steps,
    "run-eager-words": eager_words,
    "run-averaged-models": averaged_models,
    "run-steady-upscaler": steady_upscaler,
    "run-whole-volumes": whole_volumes,
    "run-drive-windows": drive_windows,
    "run-long-articles": long_articles,
    "run-large-scans": large_scans,
    "run-pair-by-pair": pair_by_pair,
    "run-autocast-speech": autocast_speech,
    "run-volume-layout": volume_layout,
    "run-turned-gates": turned_gates,
    "run-sampled-translations": sampled_translations,
    "run-gradients-kept": gradients_kept,
    "run-quota-above-one": transcripts,
    "run-second-training": segments,
    "run-thread-for-debugging": thread_for_debugging,
    "run-trimmed-heap": trimmed_heap,
    "run-gathered-scores": gathered_scores,
    "run-steady-flow": steady_flow,
    "run-steady-speech": steady_speech,
    "run-seen-speaking": transcripts,
    "run-seen-segmenting": segments,
}


def main(situations: dict[str, Callable[[bool], Training | Script]] = FOURTH) -> None:
    ordinary = programs.train

    def train(made: Any, seconds: float) -> float:
        return made.run(seconds) if isinstance(made, Script) else ordinary(made, seconds)

    random.seed(0)
    programs.train = train
    programs.SITUATIONS.update(situations)  # type: ignore[arg-type]
    programs.main()


if __name__ == "__main__":
    main()
