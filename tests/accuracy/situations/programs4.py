"""The development runs after the third batch: models, data and faults that no batch before has.

    python programs4.py run-threads-of-a-node --fault --seconds 8 --record run.record.json

The clock and the recorder are those of ``programs.py``, and so is the loop where a run has none of
its own.
"""

import gc
import gzip
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
        num_attention_heads=4,
        intermediate_size=4 * width,
        max_position_embeddings=1024,
        **settings,
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
}


def main() -> None:
    ordinary = programs.train

    def train(made: Any, seconds: float) -> float:
        return made.run(seconds) if isinstance(made, Script) else ordinary(made, seconds)

    random.seed(0)
    programs.train = train
    programs.SITUATIONS.update(FOURTH)  # type: ignore[arg-type]
    programs.main()


if __name__ == "__main__":
    main()
