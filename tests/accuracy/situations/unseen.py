"""Twenty small CPU trainings whose fault was named before anything judged them.

    python unseen.py sqlite-scan --fault --seconds 8

They are written as people write theirs, each with its own loop. A program prints the samples a
second after warm-up as JSON, and leaves what it needs in a folder that it removes.
"""

import argparse
import ctypes
import hashlib
import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from unseen_parts import (
    Clock,
    Ensemble,
    GraphConvolutions,
    Item,
    Purchases,
    Recordings,
    Segmenter,
    Sensors,
    adjacency,
    compress_results,
    convnet,
    mlp,
    table,
)


def fit(model: nn.Module, loader: Iterable[Item], clock: Clock) -> None:
    """Train a classifier in the plainest loop."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x, y in clock.epochs(loader):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def pictures(count: int, side: int = 64) -> TensorDataset:
    return TensorDataset(torch.randn(count, 3, side, side), torch.randint(16, (count,)))


# Input


def spectrogram_per_item(fault: bool, clock: Clock, folder: Path) -> None:
    data = Recordings(folder, before=not fault)
    fit(convnet(16, inputs=1), DataLoader(data, batch_size=16, shuffle=True), clock)


def sqlite_scan(fault: bool, clock: Clock, folder: Path) -> None:
    """A recommender that takes each customer's last purchases from a database."""
    data = Purchases(folder, indexed=not fault)
    model = nn.Sequential(nn.EmbeddingBag(5000, 96), mlp(96, 384, 3))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    for articles, kinds in clock.epochs(DataLoader(data, batch_size=32, shuffle=True)):
        loss = F.cross_entropy(model(articles), kinds, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def json_windows(fault: bool, clock: Clock, _folder: Path) -> None:
    data = Sensors(before=not fault)
    model = nn.Sequential(
        nn.Conv1d(16, 64, 7, stride=2, padding=3),
        nn.GELU(),
        nn.Conv1d(64, 96, 7, stride=2, padding=3),
        nn.GELU(),
        nn.AdaptiveMaxPool1d(1),
        nn.Flatten(),
        nn.Linear(96, 16),
    )
    loader = DataLoader(data, 32, shuffle=True, num_workers=2, persistent_workers=True)
    fit(model, loader, clock)


# Parallelism


def pairs_in_python(fault: bool, clock: Clock, _folder: Path) -> None:
    """Metric learning: the loss looks at each pair of the batch, in two loops or at once."""
    model = convnet(16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for images, labels in clock.epochs(DataLoader(pictures(512), 32, shuffle=True)):
        points = F.normalize(model(images))
        if fault:
            losses, kinds = [], labels.tolist()
            for i in range(len(points)):
                for j in range(i):
                    distance = (points[i] - points[j]).pow(2).sum()
                    same = kinds[i] == kinds[j]
                    losses.append(distance if same else F.relu(1.0 - distance))
            loss = torch.stack(losses).mean()
        else:
            i, j = torch.tril_indices(len(points), len(points), -1)
            distances = (points[i] - points[j]).pow(2).sum(1)
            same = labels[i] == labels[j]
            loss = torch.where(same, distances, F.relu(1.0 - distances)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def private_gradients(fault: bool, clock: Clock, _folder: Path) -> None:
    """Differential privacy: the gradient of each sample is clipped, one by one or all at once."""
    model = mlp(64, 96, 3)
    weights = dict(model.named_parameters())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def loss_of(values: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        scores = torch.func.functional_call(model, values, (x[None],))
        return F.cross_entropy(scores, y[None])

    for xs, ys in clock.epochs(DataLoader(table(4096, 64), batch_size=64, shuffle=True)):
        if fault:
            sums = {name: torch.zeros_like(weight) for name, weight in weights.items()}
            for x, y in zip(xs, ys, strict=True):
                model.zero_grad()
                F.cross_entropy(model(x[None]), y[None]).backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                for name, weight in weights.items():
                    sums[name] += weight.grad
        else:
            values = {name: weight.detach() for name, weight in weights.items()}
            each = torch.func.vmap(torch.func.grad(loss_of), (None, 0, 0))(values, xs, ys)
            norms = torch.stack([grads.flatten(1).norm(dim=1) for grads in each.values()]).norm(
                dim=0
            )
            scale = (1.0 / (norms + 1e-6)).clamp(max=1.0)
            sums = {name: torch.tensordot(scale, grads, 1) for name, grads in each.items()}
        for name, weight in weights.items():
            weight.grad = (sums[name] + 0.5 * torch.randn_like(weight)) / len(xs)
        optimizer.step()


def ensemble_by_member(fault: bool, clock: Clock, _folder: Path) -> None:
    """An ensemble of 48 small regressors, called one after another or as one."""
    model = Ensemble(stacked=not fault)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(8192, 32), torch.randn(8192, 1))
    for x, y in clock.epochs(DataLoader(data, batch_size=64, shuffle=True)):
        made = model(x)
        loss = F.huber_loss(made, y.expand_as(made))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# Tuning


def onednn_off(fault: bool, clock: Clock, _folder: Path) -> None:
    """A line that once went around a crash of an old version stayed in."""
    if fault:
        torch.backends.mkldnn.enabled = False
    layers: list[nn.Module] = [nn.Conv2d(3, 48, 3, stride=2, padding=1)]
    for _ in range(2):
        layers += [nn.Conv2d(48, 48, 5, padding=2, groups=48), nn.Conv2d(48, 48, 1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 16))
    fit(model, DataLoader(pictures(256), batch_size=16, shuffle=True), clock)


def dense_adjacency(fault: bool, clock: Clock, _folder: Path) -> None:
    """A graph of 3,000 nodes with six neighbours each, as a full or as a sparse matrix."""
    neighbours = adjacency(3000)
    nodes, kinds = torch.randn(3000, 128), torch.randint(16, (3000,))
    model = GraphConvolutions(neighbours.to_dense() if fault else neighbours, 128)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    while True:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(nodes), kinds)
        loss.backward()
        optimizer.step()
        if clock.over(len(nodes)):
            return


# Memory


def blocks_on_disk(fault: bool, clock: Clock, folder: Path) -> None:
    """Each block's weights wait in a file until it is their turn."""
    blocks = [mlp(768, 768, 1, classes=768) for _ in range(4)]
    head = nn.Linear(768, 16)
    weights = [weight for block in blocks for weight in block.parameters()]
    optimizer = torch.optim.SGD([*weights, *head.parameters()], lr=0.01)

    def put_away(number: int) -> None:
        torch.save([weight.data for weight in blocks[number].parameters()], folder / f"{number}.pt")
        for weight in blocks[number].parameters():
            weight.data = torch.empty(0)

    def fetch(number: int) -> None:
        values = torch.load(folder / f"{number}.pt")
        for weight, value in zip(blocks[number].parameters(), values, strict=True):
            weight.data = value

    for x, y in clock.epochs(DataLoader(table(4096, 768), batch_size=64, shuffle=True)):
        for number, block in enumerate(blocks):
            if fault and (folder / f"{number}.pt").exists():
                fetch(number)
            x = x + block(x)
        optimizer.zero_grad()
        F.cross_entropy(head(x), y).backward()
        optimizer.step()
        for number in range(len(blocks)) if fault else ():
            put_away(number)


def trim_each_step(fault: bool, clock: Clock, _folder: Path) -> None:
    """The heap is given back to the system after each step, against a leak that never was."""
    libc = ctypes.CDLL("libc.so.6")
    model = nn.Sequential(
        nn.Linear(64, 512), *[nn.Tanhshrink() for _ in range(8)], nn.Linear(512, 16)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in clock.epochs(DataLoader(table(8192, 64), batch_size=1024, shuffle=True)):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if fault:
            libc.malloc_trim(0)


# Communication: two ranks on gloo


def join_group(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/group", rank=rank, world_size=2)


def pickling_rank(rank: int, fault: bool, seconds: float, folder: Path) -> None:
    torch.manual_seed(0)
    join_group(rank, folder)
    clock, model = Clock(seconds), mlp(512, 1024, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for x, y in clock.epochs(DataLoader(table(4096, 512), batch_size=32, shuffle=True)):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        if fault:
            everyones: list[Any] = [None, None]
            dist.all_gather_object(everyones, [w.grad.numpy() for w in model.parameters()])
            for weight, *grads in zip(model.parameters(), *everyones, strict=True):
                weight.grad = torch.from_numpy(np.mean(grads, axis=0))
        else:
            flat = nn.utils.parameters_to_vector([w.grad for w in model.parameters()])
            dist.all_reduce(flat)
            nn.utils.vector_to_parameters(flat / 2, [w.grad for w in model.parameters()])
        optimizer.step()
    if rank == 0:
        clock.report()


def ranks_pickled_gradients(fault: bool, clock: Clock, folder: Path) -> None:
    """The first rank is this process."""
    arguments = (1, fault, clock.seconds, folder)
    mp.get_context("spawn").Process(target=pickling_rank, args=arguments, daemon=True).start()
    pickling_rank(0, fault, clock.seconds, folder)


def pipeline_rank(rank: int, fault: bool, seconds: float, folder: Path) -> None:
    """Half of the layers: the whole batch goes through one half after the other, or in parts."""
    join_group(rank, folder)
    clock, parts = Clock(seconds), 1 if fault else 4
    stage = mlp(512, 768, 4, classes=16 if rank else 512)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.01)
    for xs, ys in clock.epochs(DataLoader(table(4096, 512), batch_size=512)):
        sent, made = [], []
        for x, y in zip(xs.chunk(parts), ys.chunk(parts), strict=True):
            if rank == 0:
                made.append(stage(x))
                sent.append(dist.isend(made[-1].detach(), 1))
            else:
                hidden = torch.empty(len(x), 512)
                dist.recv(hidden, 0)
                hidden.requires_grad_()
                (F.cross_entropy(stage(hidden), y) / parts).backward()
                sent.append(dist.isend(hidden.grad, 0))
        for hidden in made:
            grad = torch.empty_like(hidden)
            dist.recv(grad, 1)
            hidden.backward(grad)
        for work in sent:
            work.wait()
        optimizer.step()
        optimizer.zero_grad()
    if rank == 0:
        clock.report()


def ranks_naive_pipeline(fault: bool, clock: Clock, folder: Path) -> None:
    mp.spawn(pipeline_rank, args=(fault, clock.seconds, folder), nprocs=2)


# Scheduling


def pinned_rank(rank: int, fault: bool, seconds: float, folder: Path) -> None:
    """Each rank takes the core of its LOCAL_RANK, which ``mp.spawn`` doesn't set."""
    local = int(os.environ.get("LOCAL_RANK", "0")) if fault else rank
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[local]})
    join_group(rank, folder)
    clock = Clock(seconds)
    loader = DataLoader(pictures(256), batch_size=16, shuffle=True)
    fit(DistributedDataParallel(convnet(48)), loader, clock)
    if rank == 0:
        clock.report()


def ranks_one_core(fault: bool, clock: Clock, folder: Path) -> None:
    mp.spawn(pinned_rank, args=(fault, clock.seconds, folder), nprocs=2)


def archive_meanwhile(fault: bool, clock: Clock, folder: Path) -> None:
    """The results of earlier runs are compressed in the background while this one trains."""
    context = mp.get_context("spawn")
    for _ in range(4 if fault else 0):
        arguments = (folder, os.getpid())
        context.Process(target=compress_results, args=arguments, daemon=True).start()
    fit(mlp(256, 1024, 3), DataLoader(table(8192, 256), batch_size=128, shuffle=True), clock)


# Monitoring


def confusion_by_item(fault: bool, clock: Clock, _folder: Path) -> None:
    """A confusion matrix of the training, counted value by value or at once."""
    model, matrix = mlp(64, 160, 3), torch.zeros(16, 16, dtype=torch.long)
    optimizer = torch.optim.AdamW(model.parameters())
    for x, y in clock.epochs(DataLoader(table(8192, 64), batch_size=1024, shuffle=True)):
        scores = model(x)
        loss = F.cross_entropy(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        guesses = scores.argmax(1)
        if fault:
            for k in range(len(y)):
                matrix[y[k].item(), guesses[k].item()] += 1
        else:
            matrix += torch.bincount(y * 16 + guesses, minlength=256).view(16, 16)


def weights_hashed(fault: bool, clock: Clock, folder: Path) -> None:
    """To compare two runs, a hash of weights and gradients is logged at each or each 200th step."""
    model, log = mlp(512, 1024, 3), (folder / "hashes.txt").open("w")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(clock.epochs(DataLoader(table(4096, 512), 64, shuffle=True))):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if fault or step % 200 == 0:
            digest = hashlib.md5(usedforsecurity=False)
            for weight in model.parameters():
                digest.update(weight.detach().numpy().tobytes())
                digest.update(weight.grad.numpy().tobytes())
            print(step, digest.hexdigest(), file=log, flush=True)


def tracemalloc_left_on(fault: bool, clock: Clock, folder: Path) -> None:
    """A hunt for a leak was left in: Python's allocations are traced and listed at each step."""
    if fault:
        tracemalloc.start()
    captions = [[f"word{(k * n) % 911}" for n in range(12)] for k in range(640)]
    numbers = {f"word{n}": n for n in range(911)}
    data = [(torch.tensor([numbers[w] for w in c]), k % 16) for k, c in enumerate(captions)]
    model, log = nn.Sequential(nn.EmbeddingBag(911, 192), mlp(192, 512, 3)), folder / "memory.txt"
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in clock.epochs(DataLoader(data, batch_size=64, shuffle=True)):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if fault:
            top = tracemalloc.take_snapshot().statistics("lineno")[:10]
            log.write_text("\n".join(map(str, top)), encoding="utf-8")


# Nothing is wrong


def sound_gan(_fault: bool, clock: Clock, folder: Path) -> None:
    """Two networks against each other, with a line of log at each 100th step."""
    maker, judge = mlp(64, 768, 2, classes=784), mlp(784, 768, 2, classes=1)
    makers = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
    judges = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    ones, zeros = torch.ones(256, 1), torch.zeros(256, 1)
    log = (folder / "log.jsonl").open("w")
    loader = DataLoader(TensorDataset(torch.rand(4096, 784)), batch_size=256, shuffle=True)
    for step, (real,) in enumerate(clock.epochs(loader), 1):
        made = maker(torch.randn(256, 64)).sigmoid()
        believed = F.binary_cross_entropy_with_logits(judge(real), ones)
        doubted = F.binary_cross_entropy_with_logits(judge(made.detach()), zeros)
        judges.zero_grad()
        (believed + doubted).backward()
        judges.step()
        loss = F.binary_cross_entropy_with_logits(judge(made), ones)
        makers.zero_grad()
        loss.backward()
        makers.step()
        if step % 100 == 0:
            log.write(json.dumps({"step": step, "maker": loss.item()}) + "\n")


def sound_segments(_fault: bool, clock: Clock, _folder: Path) -> None:
    data = TensorDataset(torch.randn(256, 3, 64, 64), torch.randint(16, (256, 64, 64)))
    fit(Segmenter(), DataLoader(data, batch_size=8, shuffle=True), clock)


def sound_rank(rank: int, _fault: bool, seconds: float, folder: Path) -> None:
    join_group(rank, folder)
    clock = Clock(seconds)
    loader = DataLoader(pictures(256), batch_size=32, shuffle=True)
    fit(DistributedDataParallel(convnet(32)), loader, clock)
    if rank == 0:
        clock.report()


def ranks_sound(fault: bool, clock: Clock, folder: Path) -> None:
    """Two ranks with much to compute, and with few gradients to exchange."""
    mp.spawn(sound_rank, args=(fault, clock.seconds, folder), nprocs=2)


TRUTH = {
    "spectrogram-per-item": ("input", "numpy makes each mel spectrogram in the loader, each time"),
    "sqlite-scan": ("input", "without an index, the database reads 60,000 rows for each sample"),
    "json-windows": ("input", "workers parse JSON and normalise it in Python for each sample"),
    "pairs-in-python": ("parallelism", "Python calls small operations for each of 496 pairs"),
    "private-gradients": ("parallelism", "forward and backward run with batches of one, 64 times"),
    "ensemble-by-member": ("parallelism", "48 tiny networks are called one after another"),
    "onednn-off": ("tuning", "convolutions run on slow kernels, because oneDNN is switched off"),
    "dense-adjacency": ("tuning", "a matrix that is 99.8 % zeros is multiplied in full"),
    "blocks-on-disk": ("memory", "weights wait in files between steps, with memory to spare"),
    "trim-each-step": ("memory", "the heap is given back and faulted in again at each step"),
    "ranks-pickled-gradients": ("communication", "gradients are pickled and gathered, not reduced"),
    "ranks-naive-pipeline": (
        "communication",
        "each half of the layers waits while the other works",
    ),
    "ranks-one-core": ("scheduling", "both ranks are pinned to the same core"),
    "archive-meanwhile": ("scheduling", "four processes compress old results on the same cores"),
    "confusion-by-item": (
        "monitoring",
        "a confusion matrix reads 2,048 values from tensors a step",
    ),
    "weights-hashed": ("monitoring", "all weights and gradients are hashed for a log at each step"),
    "tracemalloc-left-on": ("monitoring", "a tracer of allocations takes a snapshot at each step"),
    "sound-gan": ("none", "two networks in large batches, and little log"),
    "sound-segments": ("none", "convolutions on pictures in memory"),
    "ranks-sound": ("none", "two ranks that exchange few gradients after much work"),
}
"""Name: the cause, and why it is the cause. No second cause is as right for any of them."""

PROGRAMS: dict[str, Callable[[bool, Clock, Path], None]] = {
    name: globals()[name.replace("-", "_")] for name in TRUTH
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=PROGRAMS)
    parser.add_argument("--fault", action="store_true")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    torch.manual_seed(0)
    np.random.seed(0)
    clock = Clock(options.seconds)
    with tempfile.TemporaryDirectory(prefix="unseen-", ignore_cleanup_errors=True) as folder:
        PROGRAMS[options.name](options.fault, clock, Path(folder))
    if not options.name.startswith("ranks-"):  # there the first rank has its own clock
        clock.report()


if __name__ == "__main__":
    main()
