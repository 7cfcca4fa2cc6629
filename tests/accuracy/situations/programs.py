"""Small CPU trainings, each with one fault that can be put in or left out.

    python programs.py run-slow-loader --fault --seconds 8 --record run.record.json

Prints the samples a second after warm-up as JSON. With ``--record`` the product's recorder is in
the script, in its three lines; the programs know nothing else of the product.
"""

import argparse
import gc
import io
import itertools
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

CORES = len(os.sched_getaffinity(0))
WARM_UP = 12
"""Batches before the program's own clock starts."""

Item = tuple[Tensor, Tensor]


def nothing(_step: int, _loss: Tensor) -> None:
    """Do nothing after a step."""


@dataclass
class Training:
    """What one program trains, and what it does beside the step."""

    model: nn.Module
    data: Dataset[Item] = field(default_factory=TensorDataset)
    batch: int = 32
    workers: int = 0
    prepare: Callable[[Tensor], Tensor] = field(default=lambda x: x)
    loss: Callable[[Tensor, Tensor], Tensor] = nn.functional.cross_entropy
    before_update: Callable[[nn.Module], None] = field(default=lambda _: None)
    after: Callable[[int, Tensor], None] = nothing
    around: AbstractContextManager[Any] = field(default_factory=nullcontext)
    again: bool = False
    """Whether the first batch is used again and again, without the loader."""
    optimizer: torch.optim.Optimizer | None = None
    loader: DataLoader[Any] | None = None
    """Gives the batches, in place of one that is made of ``data``."""


# Models and data


def layers(width: int, depth: int = 3, inputs: int = 256, classes: int = 16) -> nn.Module:
    """Return a multilayer perceptron."""
    sizes = [inputs, *[width] * depth]
    hidden: list[nn.Module] = []
    for into, out in itertools.pairwise(sizes):
        hidden += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*hidden, nn.Linear(sizes[-1], classes))


def convolutions(channels: int = 48) -> nn.Module:
    """Return a small image classifier."""
    blocks: list[nn.Module] = []
    for inside, outside in ((3, channels), (channels, channels), (channels, 2 * channels)):
        blocks += [nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside)]
        blocks += [nn.ReLU(), nn.MaxPool2d(2)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, 16)]
    return nn.Sequential(*blocks, *head)


def vectors(
    count: int = 4096, size: int = 256, dtype: torch.dtype = torch.float32
) -> TensorDataset:
    """Return random vectors with labels, in memory."""
    return TensorDataset(torch.randn(count, size, dtype=dtype), torch.randint(16, (count,)))


class Slow(Dataset[Item]):
    """A data set whose every item is waited for, as from a distant store."""

    def __init__(self, items: Dataset[Item], count: int, seconds: float) -> None:
        self.items, self.count, self.seconds = items, count, seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        if self.seconds:
            time.sleep(self.seconds)
        return self.items[index]


class Files(Dataset[Item]):
    """Vectors in files of their own, read past the page cache."""

    SIZE = 512 * 1024

    def __init__(self, folder: Path, count: int) -> None:
        self.paths = [folder / f"{number:05d}.bin" for number in range(count)]
        noise = np.random.default_rng(0).bytes(self.SIZE)
        for path in self.paths:
            path.write_bytes(noise)
        os.sync()

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Item:
        with self.paths[index].open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            raw = file.read()
        values = torch.frombuffer(bytearray(raw[:1024]), dtype=torch.uint8)[:256].float()
        return values / 255, torch.tensor(index % 16)


class Pictures(Dataset[Item]):
    """JPEG pictures that are decoded, cut and turned, or were so before."""

    def __init__(self, count: int, prepared: bool, side: int = 512) -> None:
        noise = np.random.default_rng(0).integers(0, 255, (side // 8, side // 8, 3), np.uint8)
        picture = Image.fromarray(noise).resize((side, side), Image.Resampling.BICUBIC)
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=90)
        self.raw, self.count = file.getvalue(), count
        self.ready = self.made(0) if prepared else None

    def made(self, index: int) -> Tensor:
        """Return the picture as a model takes it."""
        picture = Image.open(io.BytesIO(self.raw)).convert("RGB")
        turned = picture.rotate(index % 30, Image.Resampling.BILINEAR)
        cut = turned.resize((64, 64), Image.Resampling.BICUBIC)
        return torch.from_numpy(np.asarray(cut).copy()).permute(2, 0, 1).float() / 255

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        picture = self.made(index) if self.ready is None else self.ready.clone()
        return picture, torch.tensor(index % 16)


class Projected(Dataset[Item]):
    """Vectors that numpy multiplies first, with as many threads as it likes in each worker."""

    def __init__(self, count: int) -> None:
        self.count, self.matrix = count, np.random.default_rng(0).random((512, 512), np.float32)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Item:
        values = np.full((256, 512), index % 7, np.float32)
        for _ in range(2):
            values = values @ self.matrix
            values /= values.max()
        return torch.from_numpy(values[0, :256].copy()), torch.tensor(index % 16)


class Unrolled(nn.Module):
    """A recurrent cell that Python calls for each position."""

    def __init__(self, size: int = 32) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(16, size), nn.Linear(size, 16)
        self.size = size

    def forward(self, x: Tensor) -> Tensor:
        state = (x.new_zeros(len(x), self.size), x.new_zeros(len(x), self.size))
        for position in x.view(len(x), -1, 16).unbind(1):
            state = self.cell(position, state)
        return self.head(state[0])


class Attending(nn.Module):
    """Two blocks of attention, written out or fused."""

    def __init__(self, fused: bool, width: int = 128, heads: int = 8) -> None:
        super().__init__()
        self.fused, self.heads = fused, heads
        self.inputs = nn.ModuleList(nn.Linear(width, 3 * width) for _ in range(2))
        self.outputs = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.head = nn.Linear(width, 16)

    def forward(self, x: Tensor) -> Tensor:
        for into, out in zip(self.inputs, self.outputs, strict=True):
            parts = into(x).view(*x.shape[:2], 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            mixed = self.attend(*parts.unbind(0))
            x = x + out(mixed.transpose(1, 2).flatten(2))
        return self.head(x.mean(1))

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return the values, mixed."""
        if self.fused:
            return nn.functional.scaled_dot_product_attention(query, key, value)
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        return torch.softmax(scores, -1) @ value


# The situations


def _folder() -> Path:
    """Return a new folder, where the generator wants it and cleans it away."""
    return Path(tempfile.mkdtemp(prefix="situations-", dir=os.environ.get("SITUATIONS_DIR")))


def slow_loader(fault: bool) -> Training:
    return Training(layers(512), Slow(vectors(), 4096, 0.0015 if fault else 0.0))


def throttled_files(_fault: bool) -> Training:
    """The limit on the drive is set by the generator."""
    return Training(layers(512), Files(_folder(), 1024), batch=16, workers=2)


def preprocessing_main(fault: bool) -> Training:
    return Training(convolutions(16), Pictures(2048, prepared=not fault), batch=16)


def preprocessing_worker(fault: bool) -> Training:
    return Training(convolutions(16), Pictures(2048, prepared=not fault), batch=16, workers=1)


def many_workers(fault: bool) -> Training:
    return Training(layers(512), Projected(8192), batch=16, workers=24 if fault else CORES)


def tiny_batch(fault: bool) -> Training:
    return Training(layers(64), vectors(32768), batch=1 if fault else 256)


def unrolled_cell(fault: bool) -> Training:
    return Training(Unrolled(), vectors(32768, 64 * 16), batch=2 if fault else 128)


def float64(fault: bool) -> Training:
    dtype = torch.float64 if fault else torch.float32
    return Training(layers(1024).to(dtype), vectors(8192, dtype=dtype), batch=256)


def contiguous_convolution(fault: bool) -> Training:
    layout = torch.contiguous_format if fault else torch.channels_last
    data = TensorDataset(torch.randn(1024, 3, 64, 64), torch.randint(16, (1024,)))
    return Training(
        convolutions(64).to(memory_format=layout),
        data,
        batch=32,
        prepare=lambda x: x.to(memory_format=layout),
    )


def eager_attention(fault: bool) -> Training:
    data = TensorDataset(torch.randn(256, 768, 128), torch.randint(16, (256,)))
    return Training(Attending(fused=not fault), data, batch=4)


def garbage_each_step(fault: bool) -> Training:
    index = [[number] for number in range(300_000)]

    def after(_step: int, _loss: Tensor) -> None:
        assert index
        if fault:
            gc.collect()

    return Training(layers(512), vectors(), batch=64, after=after)


def optimizer_on_disk(fault: bool) -> Training:
    model = layers(1024)
    optimizer = torch.optim.Adam(model.parameters())
    folder = _folder()

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            for number, state in enumerate(optimizer.state.values()):
                for name in ("exp_avg", "exp_avg_sq"):
                    _out_and_in(folder / f"{number}-{name}.npy", state[name])

    return Training(model, vectors(), batch=64, after=after, optimizer=optimizer)


def _out_and_in(path: Path, values: Tensor) -> None:
    with path.open("wb") as file:
        file.write(values.numpy().tobytes())
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    values.copy_(torch.from_numpy(np.fromfile(path, np.float32)).view_as(values))


def gloo_gradients(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = layers(2048)
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(model, vectors(), batch=16)


def gloo_each_tensor(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = layers(256, depth=48)

    def before_update(trained: nn.Module) -> None:
        with PART("communication"):
            for parameter in trained.parameters():
                dist.all_reduce(parameter.grad)

    training = Training(model, vectors(), batch=16)
    if fault:
        training.before_update = before_update
    return training


def one_thread(fault: bool) -> Training:
    torch.set_num_threads(1 if fault else CORES)
    return Training(layers(1536), vectors(8192), batch=256)


def too_many_threads(fault: bool) -> Training:
    torch.set_num_threads(32 if fault else CORES)
    return Training(layers(384), vectors(32768), batch=128)


def compute_bound(_fault: bool) -> Training:
    """Quota, affinity and other programs are put in by the generator."""
    return Training(layers(1536), vectors(8192), batch=256)


def healthy_matrices(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(layers(1536), vectors(8192), batch=256, again=not fault)


def healthy_loader(fault: bool) -> Training:
    """Nothing is wrong: the worker is always ahead."""
    pictures = Slow(Pictures(2048, prepared=True), 2048, 0.0002)
    return Training(convolutions(64), pictures, batch=32, workers=1, again=not fault)


def log_each_step(fault: bool) -> Training:
    model = layers(512)
    log = (_folder() / "log.jsonl").open("w")

    def after(step: int, loss: Tensor) -> None:
        if fault or step % 50 == 0:
            line: dict[str, Any] = {"step": step, "loss": loss.item()}
            for name, parameter in model.named_parameters():
                counts = torch.histc(parameter.detach(), 64)
                line[name] = [counts.tolist(), parameter.norm().item(), parameter.std().item()]
            log.write(json.dumps(line) + "\n")
            log.flush()
            os.fsync(log.fileno())

    return Training(model, vectors(), batch=64, after=after)


def profiler_left_on(fault: bool) -> Training:
    training = Training(layers(128, depth=24), vectors(), batch=16)
    if fault:
        training.around = torch.profiler.profile(
            record_shapes=True, with_stack=True, profile_memory=True
        )
    return training


def anomaly_detection(fault: bool) -> Training:
    watch = torch.autograd.set_detect_anomaly(fault)
    return Training(layers(128, depth=24), vectors(), batch=16, around=watch)


def checkpoint_each_step(fault: bool) -> Training:
    model = layers(1024)
    optimizer = torch.optim.Adam(model.parameters())
    path = _folder() / "last.pt"

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)

    return Training(model, vectors(), batch=64, after=after, optimizer=optimizer)


def evaluation_each_step(fault: bool) -> Training:
    model, held = layers(512), DataLoader(vectors(2048), batch_size=64)

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            with torch.no_grad():
                sum(float((model(x).argmax(-1) == y).float().mean()) for x, y in held)

    return Training(model, vectors(), batch=64, after=after)


SITUATIONS: dict[str, Callable[[bool], Training]] = {
    "run-slow-loader": slow_loader,
    "run-throttled-files": throttled_files,
    "run-preprocessing-main": preprocessing_main,
    "run-preprocessing-worker": preprocessing_worker,
    "run-many-workers": many_workers,
    "run-tiny-batch": tiny_batch,
    "run-unrolled-cell": unrolled_cell,
    "run-float64": float64,
    "run-contiguous-convolution": contiguous_convolution,
    "run-eager-attention": eager_attention,
    "run-garbage-each-step": garbage_each_step,
    "run-optimizer-on-disk": optimizer_on_disk,
    "run-gloo-gradients": gloo_gradients,
    "run-gloo-each-tensor": gloo_each_tensor,
    "run-one-thread": one_thread,
    "run-too-many-threads": too_many_threads,
    "run-cpu-quota": compute_bound,
    "run-one-core": compute_bound,
    "run-foreign-load": compute_bound,
    "run-log-each-step": log_each_step,
    "run-profiler-left-on": profiler_left_on,
    "run-anomaly-detection": anomaly_detection,
    "run-checkpoint-each-step": checkpoint_each_step,
    "run-evaluation-each-step": evaluation_each_step,
    "run-unwatched": compute_bound,
    "run-healthy-matrices": healthy_matrices,
    "run-healthy-loader": healthy_loader,
}

RANKS = ("run-gloo-gradients", "run-gloo-each-tensor")
"""Those that run on two processes when the fault is in."""

PART: Callable[[str], AbstractContextManager[None]] = lambda _name: nullcontext()  # noqa: E731
"""Times a part of the step by name, where the recorder is on."""


def train(training: Training, seconds: float) -> float:
    """Return the samples a second after the warm-up."""
    model = training.model
    optimizer = training.optimizer or torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = training.loader or DataLoader(
        training.data,
        batch_size=training.batch,
        shuffle=True,
        num_workers=training.workers,
        persistent_workers=training.workers > 0,
        drop_last=True,
    )
    done, started = 0, time.perf_counter()
    with training.around:
        for step, (x, y) in enumerate(_endlessly(loader, training.again)):
            optimizer.zero_grad()
            loss = training.loss(model(training.prepare(x)), y)
            loss.backward()
            training.before_update(model)
            optimizer.step()
            training.after(step, loss)
            if step == WARM_UP:
                done, started = 0, time.perf_counter()
                continue
            done += len(x)
            if _over(step > WARM_UP and time.perf_counter() - started > seconds):
                break
    return done / (time.perf_counter() - started)


def _over(mine: bool) -> bool:
    """Return whether the run is over; the ranks stop together, by what the first says."""
    if not dist.is_initialized():
        return mine
    said = torch.tensor(float(mine))
    dist.broadcast(said, 0)
    return bool(said)


def _endlessly(loader: DataLoader[Item], again: bool) -> Iterable[Item]:
    if again:
        yield from itertools.repeat(next(iter(loader)))
    while True:
        yield from loader


def main() -> None:
    global PART
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=SITUATIONS)
    parser.add_argument("--fault", action="store_true")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--record")
    parser.add_argument("--rank", type=int)
    parser.add_argument("--port", default="29511")
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.rank is not None:
        dist.init_process_group(
            "gloo", f"tcp://127.0.0.1:{options.port}", rank=options.rank, world_size=2
        )
    if options.record:
        from trainwright.diagnose.callback import Recorder

        recorder = Recorder(options.record)
        recorder.start()
        PART = recorder.part
    rate = train(SITUATIONS[options.name](options.fault), options.seconds)
    if options.record:
        recorder.stop()
    print(json.dumps({"samples_a_second": rate, "threads": threading.active_count()}), flush=True)
    os._exit(0)  # workers and collectives need no farewell


if __name__ == "__main__":
    main()
