"""Trainings that rules may be fitted to: faults of many kinds, in sizes that a seed draws.

    python development.py                    # makes all records, with and without the fault
    python development.py many-layers --seed 3 --fault --seconds 4 --record run.record.json

They are no situations: nothing here was held out, and no score is taken on them. ``KINDS`` says
what each fault is, and the loop, its clock and the recorder are those of ``programs.py``.
"""

import argparse
import csv
import gzip
import itertools
import json
import math
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import programs
import torch
import torch.distributed as dist
from programs import CORES, Item, Training, layers, vectors
from programs2 import Language, clips, listening, next_token, sentences
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

HERE = Path(__file__).parent
Draw = random.Random
Made = Callable[[bool, Draw], Training]


# Models and data


class Autoencoder(nn.Module):
    """Convolutions down and up again."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, channels, 5, stride=2, padding=2)
        self.inside = nn.Conv2d(channels, channels, 3, padding=1)
        self.up = nn.ConvTranspose2d(channels, 3, 4, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.relu(self.inside(torch.relu(self.down(x))))
        return self.up(hidden).flatten(2).mean(2)


def squares(values: Tensor, _labels: Tensor) -> Tensor:
    """Return a loss that asks for nothing but small values."""
    return values.square().mean()


def pictures(count: int, side: int) -> TensorDataset:
    """Return random pictures, in memory."""
    return TensorDataset(torch.randn(count, 3, side, side), torch.randint(16, (count,)))


class Deep(nn.Module):
    """Many small residual layers, one after the other."""

    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(depth))

    def forward(self, x: Tensor) -> Tensor:
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + torch.tanh(layer(norm(x)))
        return x


class Reader(nn.Module):
    """A recurrent network over vectors."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reader = nn.LSTM(64, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.reader(x)[0][:, -1])


class Attended(nn.Module):
    """One block of attention over long sequences, its scores written out or not."""

    def __init__(self, fused: bool, width: int, heads: int) -> None:
        super().__init__()
        self.fused, self.heads = fused, heads
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, 16)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.into(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.fused:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
            mixed = scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width).mean(1))


class Compressed(Dataset[Item]):
    """Vectors in compressed text, which is unpacked and parsed for each item."""

    def __init__(self, count: int, numbers: int, ready: bool) -> None:
        text = json.dumps(np.random.default_rng(0).random(numbers).tolist())
        self.raw, self.count = gzip.compress(text.encode()), count
        self.ready = self.made() if ready else None

    def made(self) -> Tensor:
        """Return what is in the text."""
        return torch.tensor(json.loads(gzip.decompress(self.raw))[:256])

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        values = self.made() if self.ready is None else self.ready.clone()
        return values, torch.tensor(index % 16)


class Spectra(Dataset[Item]):
    """Sound that numpy turns into spectra for each item."""

    def __init__(self, count: int, length: int, ready: bool) -> None:
        self.sound, self.count = np.random.default_rng(0).random(length), count
        self.ready = self.made(0) if ready else None

    def made(self, index: int) -> Tensor:
        """Return the spectrum of a shifted copy."""
        frames = np.lib.stride_tricks.sliding_window_view(np.roll(self.sound, index), 512)[::64]
        spectrum = np.log1p(np.abs(np.fft.rfft(frames * np.hanning(512))))
        return torch.from_numpy(spectrum.mean(0)[:256]).float()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        values = self.made(index) if self.ready is None else self.ready.clone()
        return values, torch.tensor(index % 16)


class Rows(Dataset[Item]):
    """Rows of a data base whose table has no index, or from memory."""

    def __init__(self, count: int, rows: int, ready: bool) -> None:
        self.path, self.count, self.rows, self.ready = folder() / "rows.db", count, rows, ready
        with sqlite3.connect(self.path) as base:
            base.execute("create table item (number integer, content blob)")
            blob = np.zeros(256, np.float32).tobytes()
            base.executemany("insert into item values (?, ?)", ((n, blob) for n in range(rows)))
        self.open: dict[int, sqlite3.Connection] = {}

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        if self.ready:
            return torch.zeros(256), torch.tensor(index % 16)
        mine = self.open.setdefault(os.getpid(), sqlite3.connect(self.path))
        question = "select content from item where number = ?"
        (blob,) = mine.execute(question, (index % self.rows,)).fetchone()
        return torch.frombuffer(bytearray(blob), dtype=torch.float32), torch.tensor(index % 16)


class Stalling(Dataset[Item]):
    """Items of which every so many is waited for, as from a store that stalls."""

    def __init__(self, seconds: float, every: int) -> None:
        self.seconds, self.every = seconds, every

    def __len__(self) -> int:
        return 8192

    def __getitem__(self, index: int) -> Item:
        if self.seconds and index % self.every == 0:
            time.sleep(self.seconds)
        return torch.randn(256), torch.tensor(index % 16)


def folder() -> Path:
    """Return a new folder."""
    return Path(tempfile.mkdtemp(prefix="development-", dir=os.environ.get("SITUATIONS_DIR")))


def _spread(draw: Draw, low: float, high: float) -> float:
    return math.exp(draw.uniform(math.log(low), math.log(high)))


# Input


def compressed_text(fault: bool, draw: Draw) -> Training:
    data = Compressed(8192, int(_spread(draw, 2000, 8000)), ready=not fault)
    return Training(layers(256), data, batch=draw.choice((8, 32)), workers=draw.choice((0, 1)))


def spectra(fault: bool, draw: Draw) -> Training:
    data = Spectra(8192, int(_spread(draw, 16000, 64000)), ready=not fault)
    return Training(layers(512), data, batch=draw.choice((8, 16)), workers=draw.choice((0, 1, 2)))


def rows_without_index(fault: bool, draw: Draw) -> Training:
    data = Rows(8192, int(_spread(draw, 3000, 12000)), ready=not fault)
    return Training(layers(256), data, batch=16, workers=draw.choice((0, 1)))


def stalling_store(fault: bool, draw: Draw) -> Training:
    every, seconds = draw.choice(((1, 0.002), (8, 0.02), (32, 0.1)))
    workers = draw.choice((0, 1, 2))
    data = Stalling(seconds if fault else 0.0, every)
    return Training(layers(256), data, batch=draw.choice((8, 16)), workers=workers)


# Too little parallel work


def single_sentence(fault: bool, draw: Draw) -> Training:
    model = Language(draw.choice((32, 48)), depth=draw.choice((2, 4)))
    data = sentences(16384, draw.choice((8, 16)))
    return Training(model, data, batch=1 if fault else 64, loss=next_token)


def many_layers(fault: bool, draw: Draw) -> Training:
    model = Deep(draw.choice((48, 96)), draw.choice((16, 32)))
    return Training(model, vectors(32768, model.layers[0].in_features), batch=8 if fault else 1024)


def short_sequences(fault: bool, draw: Draw) -> Training:
    data = TensorDataset(torch.randn(16384, 12, 64), torch.randint(16, (16384,)))
    model, few = Reader(draw.choice((16, 32))), draw.choice((1, 2))
    return Training(model, data, batch=few if fault else 256)


def loop_of_updates(fault: bool, draw: Draw) -> Training:
    model = Deep(draw.choice((80, 140)), 16)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=not fault)
    return Training(model, vectors(16384, 16), batch=16, optimizer=optimizer)


# Untuned


def double_convolution(fault: bool, draw: Draw) -> Training:
    dtype = torch.float64 if fault else torch.float32
    side, channels = draw.choice((24, 32)), draw.choice((24, 32, 48))
    data = pictures(512, side).tensors
    items = TensorDataset(data[0].to(dtype), data[1])
    model = Autoencoder(channels).to(dtype)
    return Training(model, items, batch=draw.choice((16, 32)), loss=squares)


def double_reader(fault: bool, draw: Draw) -> Training:
    dtype = torch.float64 if fault else torch.float32
    data = TensorDataset(torch.randn(1024, 32, 64, dtype=dtype), torch.randint(16, (1024,)))
    return Training(Reader(draw.choice((192, 320))).to(dtype), data, batch=64)


def written_scores(fault: bool, draw: Draw) -> Training:
    length, width = draw.choice((512, 1024)), draw.choice((64, 128))
    data = TensorDataset(torch.randn(128, length, width), torch.randint(16, (128,)))
    model = Attended(not fault, width, draw.choice((4, 8)))
    return Training(model, data, batch=draw.choice((2, 4)))


def planes_apart(fault: bool, draw: Draw) -> Training:
    channels, side = draw.choice((48, 64, 96)), draw.choice((32, 48))
    layout = torch.contiguous_format if fault else torch.channels_last
    model = programs.convolutions(channels).to(memory_format=layout)
    return Training(
        model, pictures(256, side), batch=16, prepare=lambda x: x.to(memory_format=layout)
    )


# Memory


def mapped_moments(fault: bool, draw: Draw) -> Training:
    width = draw.choice((768, 1024, 1536))
    model = layers(width)
    optimizer = torch.optim.Adam(model.parameters())
    kept = folder()

    def after(_step: int, _loss: Tensor) -> None:
        for number, state in enumerate(optimizer.state.values()):
            for name in ("exp_avg", "exp_avg_sq"):
                path = kept / f"{number}-{name}.npy"
                np.save(path, state[name].numpy())
                state[name].copy_(torch.from_numpy(np.load(path)))

    training = Training(model, vectors(), batch=draw.choice((32, 64)), optimizer=optimizer)
    if fault:
        training.after = after
    return training


def layers_from_disk(fault: bool, draw: Draw) -> Training:
    model = layers(draw.choice((512, 1024)), depth=4)
    kept = folder()

    def fetch(module: nn.Module, _inputs: Any) -> None:
        path = kept / f"{id(module)}.pt"
        if path.exists():
            module.load_state_dict(torch.load(path))

    def put(model: nn.Module) -> None:
        for module in model:
            if isinstance(module, nn.Linear):
                torch.save(module.state_dict(), kept / f"{id(module)}.pt")

    training = Training(model, vectors(), batch=draw.choice((16, 64)))
    if fault:
        for module in model:
            if isinstance(module, nn.Linear):
                module.register_forward_pre_hook(fetch)
        training.after = lambda _step, _loss: put(model)
    return training


def kept_in_files(fault: bool, draw: Draw) -> Training:
    kept, numbers = folder(), itertools.count()

    def out(values: Tensor) -> Any:
        small = values.numel() < 4000 or values.dtype != torch.float32
        if small or isinstance(values, nn.Parameter):
            return values
        path = kept / f"{next(numbers)}.raw"
        values.contiguous().numpy().tofile(path)
        return path, values.shape

    def back(packed: Any) -> Tensor:
        if isinstance(packed, Tensor):
            return packed
        path, shape = packed
        values = torch.from_numpy(np.fromfile(path, np.float32)).view(shape)
        path.unlink(missing_ok=True)
        return values

    training = Training(layers(draw.choice((512, 1024)), depth=6), vectors(), batch=256)
    if fault:
        training.around = torch.autograd.graph.saved_tensors_hooks(out, back)
    return training


def collected_often(fault: bool, draw: Draw) -> Training:
    import gc

    cache = {number: {"at": [number]} for number in range(int(_spread(draw, 80_000, 300_000)))}

    def after(_step: int, _loss: Tensor) -> None:
        assert cache
        if fault:
            gc.collect()

    return Training(Language(64), sentences(length=16), batch=8, loss=next_token, after=after)


# Communication


def gathered_gradients(fault: bool, draw: Draw) -> Training:
    torch.set_num_threads(1)
    model = layers(draw.choice((1024, 1536)))
    trained: nn.Module = nn.parallel.DistributedDataParallel(model) if fault else model
    return Training(trained, vectors(), batch=draw.choice((8, 16)))


def reduced_one_by_one(fault: bool, draw: Draw) -> Training:
    torch.set_num_threads(1)
    model = Deep(draw.choice((24, 48)), draw.choice((32, 128)))

    def before_update(trained: nn.Module) -> None:
        for parameter in trained.parameters():
            dist.all_reduce(parameter.grad)

    training = Training(model, vectors(16384, model.layers[0].in_features), batch=16)
    if fault:
        training.before_update = before_update
    return training


# Scheduling (the rest is put in by ``around`` below)


def plain(_fault: bool, draw: Draw) -> Training:
    return draw.choice(
        (
            lambda: Training(layers(1024), vectors(8192), batch=128),
            lambda: Training(Language(96), sentences(), batch=16, loss=next_token),
            lambda: Training(listening(24), clips(256, 2000), batch=16),
            lambda: Training(
                Reader(192),
                TensorDataset(torch.randn(1024, 32, 64), torch.randint(16, (1024,))),
                batch=32,
            ),
        )
    )()


def one_thread(fault: bool, draw: Draw) -> Training:
    torch.set_num_threads(1 if fault else CORES)
    return Training(layers(draw.choice((1024, 2048))), vectors(8192), batch=256)


def thread_herd(fault: bool, draw: Draw) -> Training:
    torch.set_num_threads(draw.choice((8, 16, 48)) if fault else CORES)
    return plain(fault, draw)


# Watching


def printed_each_step(fault: bool, draw: Draw) -> Training:
    model = Deep(draw.choice((16, 32)), 64)
    out = (folder() / "log.txt").open("w")

    def after(step: int, loss: Tensor) -> None:
        if fault or step % 50 == 0:
            for name, parameter in model.named_parameters():
                mean, largest = parameter.mean().item(), parameter.abs().max().item()
                norm = parameter.grad.norm().item() if parameter.grad is not None else 0.0
                print(step, name, mean, largest, norm, loss.item(), file=out, flush=True)

    return Training(model, vectors(8192, 64), batch=32, after=after)


def pictures_of_weights(fault: bool, draw: Draw) -> Training:
    from PIL import Image

    model, where = layers(draw.choice((384, 512))), folder()

    def after(step: int, _loss: Tensor) -> None:
        if fault:
            for number, parameter in enumerate(model.parameters()):
                if parameter.dim() == 2:
                    grey = (parameter.detach() * 500 + 128).clamp(0, 255).byte().numpy()
                    Image.fromarray(grey).save(where / f"{number}.png")

    return Training(model, vectors(), batch=64, after=after)


def measured_each_step(fault: bool, draw: Draw) -> Training:
    model, held = Language(64), sentences(draw.choice((64, 256)), 32).tensors[0]

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            with torch.no_grad():
                for part in held.split(32):
                    next_token(model(part), part).item()

    data = sentences(length=32)
    return Training(model, data, batch=8, loss=next_token, after=after)


def saved_each_step(fault: bool, draw: Draw) -> Training:
    model, path = layers(draw.choice((512, 768, 1024))), folder() / "model.pt"
    every = draw.choice((1, 2))

    def after(step: int, _loss: Tensor) -> None:
        if fault and step % every == 0:
            torch.save(model.state_dict(), path)

    return Training(model, vectors(), batch=32, after=after)


def checked_values(fault: bool, draw: Draw) -> Training:
    model = Deep(draw.choice((24, 48)), 48)

    def check(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        if not torch.isfinite(output).all().item() or output.abs().max().item() > 1e6:
            raise FloatingPointError

    if fault:
        for module in model.modules():
            module.register_forward_hook(check)
    return Training(model, vectors(8192, 48), batch=16)


def traced(fault: bool, draw: Draw) -> Training:
    training = Training(Language(48), sentences(length=16), batch=8, loss=next_token)
    if fault:
        training.around = torch.profiler.profile(with_stack=draw.choice((True, False)))
    return training


def anomalies(fault: bool, draw: Draw) -> Training:
    training = Training(Deep(draw.choice((24, 48)), 64), vectors(8192, 64), batch=16)
    training.around = torch.autograd.set_detect_anomaly(fault)
    return training


# Nothing wrong


def steady_layers(fault: bool, draw: Draw) -> Training:
    return Training(layers(draw.choice((1024, 1536))), vectors(), batch=256, again=not fault)


def steady_tokens(fault: bool, draw: Draw) -> Training:
    model = Language(draw.choice((160, 224)), depth=2)
    return Training(model, sentences(), batch=32, loss=next_token, again=not fault)


def steady_reader(fault: bool, draw: Draw) -> Training:
    data = TensorDataset(torch.randn(1024, 32, 64), torch.randint(16, (1024,)))
    return Training(Reader(draw.choice((256, 384))), data, batch=128, again=not fault)


def steady_pictures(fault: bool, draw: Draw) -> Training:
    layout = torch.channels_last
    return Training(
        programs.convolutions(draw.choice((48, 64))).to(memory_format=layout),
        pictures(256, 48),
        batch=32,
        prepare=lambda x: x.to(memory_format=layout),
        again=not fault,
    )


KINDS: dict[str, tuple[str, str, Made]] = {
    "compressed-text": ("input", "preprocessing", compressed_text),
    "spectra": ("input", "preprocessing", spectra),
    "rows-without-index": ("input", "preprocessing", rows_without_index),
    "stalling-store": ("input", "fetch", stalling_store),
    "single-sentence": ("parallelism", "batch", single_sentence),
    "many-layers": ("parallelism", "small operations", many_layers),
    "short-sequences": ("parallelism", "small operations", short_sequences),
    "loop-of-updates": ("parallelism", "launch", loop_of_updates),
    "double-convolution": ("tuning", "precision", double_convolution),
    "double-reader": ("tuning", "precision", double_reader),
    "written-scores": ("tuning", "attention", written_scores),
    "planes-apart": ("tuning", "layout", planes_apart),
    "mapped-moments": ("memory", "offload", mapped_moments),
    "layers-from-disk": ("memory", "offload", layers_from_disk),
    "kept-in-files": ("memory", "offload", kept_in_files),
    "collected-often": ("memory", "garbage", collected_often),
    "gathered-gradients": ("communication", "gradients", gathered_gradients),
    "reduced-one-by-one": ("communication", "gradients", reduced_one_by_one),
    "one-thread": ("scheduling", "threads", one_thread),
    "thread-herd": ("scheduling", "threads", thread_herd),
    "single-core": ("scheduling", "affinity", plain),
    "quota": ("scheduling", "quota", plain),
    "neighbours": ("scheduling", "foreign process", plain),
    "low-priority": ("scheduling", "foreign process", plain),
    "printed-each-step": ("monitoring", "logging", printed_each_step),
    "pictures-of-weights": ("monitoring", "logging", pictures_of_weights),
    "measured-each-step": ("monitoring", "evaluation", measured_each_step),
    "saved-each-step": ("monitoring", "checkpoints", saved_each_step),
    "checked-values": ("monitoring", "checks", checked_values),
    "traced": ("monitoring", "profiler", traced),
    "anomalies": ("monitoring", "anomaly detection", anomalies),
    "steady-layers": ("none", "", steady_layers),
    "steady-tokens": ("none", "", steady_tokens),
    "steady-reader": ("none", "", steady_reader),
    "steady-pictures": ("none", "", steady_pictures),
}
SHARES = 16_384
"""Against the 1024 of a session of another program."""
TOGETHER = ("gathered-gradients", "reduced-one-by-one")
"""Those that run on two processes when the fault is in."""
CROWDED = ("neighbours", "low-priority")
"""Those with other programs beside them."""


def rate(name: str, seed: int, fault: bool, seconds: float, record: Path) -> float:
    """Return the samples a second of one run; with the fault its record is kept."""
    import generate

    draw = Draw(seed * 7919 + 1)
    with ExitStack() as stack:
        settings: dict[str, object] = {"cpu__shares": SHARES}
        if fault and name == "quota":
            quota = int(1e5 * draw.uniform(0.3, 0.9))
            settings |= {"cpu__cfs_period_us": 100_000, "cpu__cfs_quota_us": quota}
        joined = [stack.enter_context(generate.group(generate.CPU, **settings))]
        where = stack.enter_context(tempfile.TemporaryDirectory(prefix="development-"))
        if fault and name in CROWDED:
            others = draw.choice((2, 4)) * [draw.choice((generate.SPIN, generate.MULTIPLY))]
            stack.enter_context(generate.foreign_load(others))
            joined.clear()
        command = [sys.executable, __file__, name, "--seed", str(seed), "--seconds", str(seconds)]
        command += ["--fault"] if fault else []
        if fault and name == "low-priority":
            command = ["nice", "-n", "10", *command]
        bound = "run-one-core" if name == "single-core" else name
        start = generate._started
        if not (fault and name in TOGETHER):
            each = start([*command, "--record", str(record)], bound, fault, joined, where)
            return generate._finished(each)
        writing = [*command, "--record", str(record), "--rank", "0"]
        ranks = [
            start(each, bound, fault, joined, where)
            for each in (writing, [*command, "--rank", "1"])
        ]
        first, _ = (generate._finished(each) for each in ranks)
        return first


def make(names: list[str], seeds: range, seconds: float, into: Path) -> None:
    """Make the records, and say how much faster each run is without its fault."""
    into.mkdir(exist_ok=True, parents=True)
    for name in names or KINDS:
        for seed in seeds:
            kept = into / f"{name}-{seed}.record.json"
            without = into / f"{name}-{seed}.without.json"
            try:
                slow = rate(name, seed, True, seconds, kept)
                fast = rate(name, seed, False, seconds, without)
            except (IndexError, ValueError):  # it printed no rate
                print(name, seed, "failed", flush=True)
                continue
            with (into / "rates.csv").open("a", newline="") as file:
                csv.writer(file).writerow((name, seed, f"{fast / slow:.3g}"))
            print(name, seed, f"{fast / slow:.3g}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", nargs="*")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--fault", action="store_true")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--record")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--into", type=Path, default=HERE / "development")
    options = parser.parse_args()
    if options.seed is None:
        seeds = range(options.first, options.first + options.seeds)
        make(options.name, seeds, options.seconds, options.into)
        return
    run = options.name[0]

    def made(fault: bool) -> Training:
        return KINDS[run][2](fault, Draw(options.seed))

    programs.SITUATIONS[run] = made
    passed = [run, "--seconds", str(options.seconds)]
    passed += ["--fault"] if options.fault else []
    passed += ["--record", options.record] if options.record else []
    passed += ["--rank", str(options.rank)] if options.rank is not None else []
    sys.argv = [sys.argv[0], *passed]
    programs.main()


if __name__ == "__main__":
    main()
