"""Twenty small CPU trainings whose fault was named before anything judged them.

    python unseen.py clip-tokens --fault --seconds 8

They are written as people write theirs, each with its own loop. A program prints the samples a
second after warm-up as JSON, and leaves what it needs in a folder that it removes.
"""

import argparse
import functools
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from PIL import Image, ImageEnhance, ImageFilter
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from unseen_parts import (
    Archives,
    Checkpointed,
    Clock,
    Decoded,
    Encoder,
    Item,
    OneHot,
    Remote,
    Reviews,
    Sentences,
    convnet,
    drawing,
    mlp,
    padded,
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


# Input


def clip_tokens(fault: bool, clock: Clock, _folder: Path) -> None:
    model = nn.Sequential(nn.EmbeddingBag(8001, 128), mlp(128, 512, 3))
    fit(model, DataLoader(Reviews(200, once=not fault), batch_size=16, shuffle=True), clock)


def npz_per_item(fault: bool, clock: Clock, folder: Path) -> None:
    """Beside it, the loss is printed at each step."""
    model, log = convnet(24), (folder / "train.log").open("w")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(Archives(folder, once=not fault), 16, shuffle=True, num_workers=1)
    for step, (images, labels) in enumerate(clock.epochs(loader)):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}", file=log, flush=True)


def remote_store(fault: bool, clock: Clock, _folder: Path) -> None:
    data = Remote(256, before=not fault)
    loader = DataLoader(data, 8, shuffle=True, num_workers=2, persistent_workers=True)
    fit(convnet(24), loader, clock)


def augment_in_loop(fault: bool, clock: Clock, _folder: Path) -> None:
    """No loader: the batch is made in the loop, by PIL or by one flip of the tensor."""
    pictures = [drawing(number, 128) for number in range(64)]
    pixels = torch.from_numpy(np.stack([np.asarray(each) for each in pictures]))
    model = convnet(12)
    optimizer = torch.optim.Adam(model.parameters())

    def augmented(picture: Image.Image) -> Image.Image:
        turned = picture.rotate(np.random.uniform(-20, 20), Image.Resampling.BICUBIC)
        blurred = turned.filter(ImageFilter.GaussianBlur(np.random.uniform(1, 3)))
        coloured = ImageEnhance.Color(blurred).enhance(np.random.uniform(0.5, 1.5))
        return ImageEnhance.Contrast(coloured).enhance(np.random.uniform(0.7, 1.3))

    while True:
        chosen = np.random.permutation(64)[:16]
        if fault:
            made = np.stack([np.asarray(augmented(pictures[k])) for k in chosen])
            images = torch.from_numpy(made)
        else:
            images = pixels[chosen].flip(2)
        loss = F.cross_entropy(model(images.permute(0, 3, 1, 2) / 255), torch.tensor(chosen % 16))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if clock.over(16):
            return


# Parallelism


def one_environment(fault: bool, clock: Clock, _folder: Path) -> None:
    """A policy gradient: 512 actions an update, in one simulated environment or in 64."""
    environments = 1 if fault else 64
    policy = mlp(4, 64, 2, classes=2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    state = np.zeros((environments, 4), np.float32)
    while True:
        seen, chosen, rewards = [], [], []
        for _ in range(512 // environments):
            observation = torch.from_numpy(state.copy())
            with torch.no_grad():
                action = torch.distributions.Categorical(logits=policy(observation)).sample()
            force = action.numpy() * 2.0 - 1.0
            state[:, :2] += 0.02 * state[:, 2:]
            state[:, 2:] += 0.02 * np.stack([force, np.sin(state[:, 1]) - force], 1)
            state[np.abs(state[:, 1]) > 0.5] = 0.0
            seen.append(observation)
            chosen.append(action)
            rewards.append(torch.from_numpy(1.0 - np.abs(state[:, 1])))
        logits = policy(torch.cat(seen))
        taken = logits.log_softmax(-1).gather(1, torch.cat(chosen)[:, None])[:, 0]
        loss = -(taken * torch.cat(rewards)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if clock.over(512):
            return


def sample_by_sample(fault: bool, clock: Clock, _folder: Path) -> None:
    """The model is called for each sample of the batch, or once."""
    model = nn.Sequential(mlp(128, 128, 6), nn.LayerNorm(16), nn.Linear(16, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for xs, ys in clock.epochs(DataLoader(table(8192, 128), batch_size=64, shuffle=True)):
        if fault:
            loss = torch.zeros(())
            for x, y in zip(xs, ys, strict=True):
                loss = loss + F.cross_entropy(model(x[None]), y[None]) / len(xs)
        else:
            loss = F.cross_entropy(model(xs), ys)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def accumulated_ones(fault: bool, clock: Clock, _folder: Path) -> None:
    """Batches of one, accumulated to 32, beside a running mean of the loss."""
    batch, mean = (1 if fault else 32), 0.0
    model = mlp(256, 384, 4)
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(table(8192, 256), batch_size=batch, shuffle=True)
    for step, (x, y) in enumerate(clock.epochs(loader), 1):
        loss = F.cross_entropy(model(x), y) * batch / 32
        loss.backward()
        mean = 0.99 * mean + 0.01 * loss.item()
        if step * batch % 32 == 0:
            optimizer.step()
            optimizer.zero_grad()


# Tuning


def padded_to_limit(fault: bool, clock: Clock, _folder: Path) -> None:
    collate = functools.partial(padded, length=256 if fault else None)
    data = Sentences([8 + number * 7 % 41 for number in range(2048)])
    loader = DataLoader(data, 16, shuffle=True, num_workers=1, collate_fn=collate)
    fit(Encoder(), loader, clock)


def half_on_processor(fault: bool, clock: Clock, _folder: Path) -> None:
    """Autocast as it is copied from a script for GPUs."""
    model = mlp(256, 384, 3)
    optimizer = torch.optim.AdamW(model.parameters())
    for x, y in clock.epochs(DataLoader(table(8192, 256), batch_size=64, shuffle=True)):
        with torch.autocast("cpu", torch.float16, enabled=fault):
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def one_hot_words(fault: bool, clock: Clock, _folder: Path) -> None:
    data = TensorDataset(torch.randint(6000, (4096, 32)), torch.randint(16, (4096,)))
    fit(OneHot(fault), DataLoader(data, batch_size=32, shuffle=True), clock)


# Memory


def checkpoint_twice(fault: bool, clock: Clock, _folder: Path) -> None:
    """The memory of the computer would hold all of it many times."""
    model = Checkpointed(fault)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in clock.epochs(DataLoader(table(4096, 768), batch_size=256, shuffle=True)):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def activations_on_disk(fault: bool, clock: Clock, folder: Path) -> None:
    """The hooks of a tutorial write what backward needs to files."""
    numbers, model = itertools.count(), convnet(32)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def pack(values: Tensor) -> Path:
        path = folder / f"{next(numbers)}.pt"
        torch.save(values, path)
        return path

    def unpack(path: Path) -> Tensor:
        values = torch.load(path)
        path.unlink()
        return values

    data = TensorDataset(torch.randn(512, 3, 64, 64), torch.randint(16, (512,)))
    for x, y in clock.epochs(DataLoader(data, batch_size=16, shuffle=True)):
        hooks = torch.autograd.graph.saved_tensors_hooks(pack, unpack) if fault else nullcontext()
        optimizer.zero_grad()
        with hooks:
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


# Communication: two ranks on gloo


def join_group(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/group", rank=rank, world_size=2)


def accumulating_rank(rank: int, fault: bool, seconds: float, folder: Path) -> None:
    join_group(rank, folder)
    clock, accumulation = Clock(seconds), 8
    model = DistributedDataParallel(mlp(512, 1536, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(table(4096, 512), batch_size=8, shuffle=True)
    for step, (x, y) in enumerate(clock.epochs(loader), 1):
        last = step % accumulation == 0
        with nullcontext() if fault or last else model.no_sync():
            (F.cross_entropy(model(x), y) / accumulation).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    if rank == 0:
        clock.report()


def ddp_without_no_sync(fault: bool, clock: Clock, folder: Path) -> None:
    """The first rank is this process."""
    arguments = (1, fault, clock.seconds, folder)
    mp.get_context("spawn").Process(target=accumulating_rank, args=arguments, daemon=True).start()
    accumulating_rank(0, fault, clock.seconds, folder)


def uneven_rank(rank: int, fault: bool, seconds: float, folder: Path) -> None:
    join_group(rank, folder)
    clock = Clock(seconds)
    short, long = torch.arange(1024), torch.arange(1024, 2048)
    if fault:  # sorted by length, and cut in the middle
        batches = (short, long)[rank].view(-1, 16)
    else:
        dealt = [half[rank::2].view(-1, 16) for half in (short, long)]
        batches = torch.stack(dealt, 1).flatten(0, 1)
    collate = functools.partial(padded, length=None)
    data = Sentences([16] * 1024 + [160] * 1024)
    loader = DataLoader(data, batch_sampler=batches.tolist(), collate_fn=collate)
    fit(DistributedDataParallel(Encoder()), loader, clock)
    if rank == 0:
        clock.report()


def ddp_uneven_lengths(fault: bool, clock: Clock, folder: Path) -> None:
    mp.spawn(uneven_rank, args=(fault, clock.seconds, folder), nprocs=2)


# Scheduling


def one_trial(number: int, parent: int, clock: Clock) -> None:
    """Train with one learning rate of a search, as long as the first trial is there."""
    model = mlp(256, 768, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=10.0**-number)
    losses = []
    for x, y in clock.epochs(DataLoader(table(8192, 256), batch_size=128, shuffle=True)):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if parent and os.getppid() != parent:
            return


def search_all_at_once(fault: bool, clock: Clock, _folder: Path) -> None:
    """Four learning rates are tried at the same time, each trial with all the threads."""
    context = mp.get_context("spawn")
    for number in (1, 2, 3) if fault else ():
        arguments = (number, os.getpid(), Clock(2 * clock.seconds + 20))
        context.Process(target=one_trial, args=arguments, daemon=True).start()
    one_trial(0, 0, clock)


# Monitoring


def finite_hooks(fault: bool, clock: Clock, _folder: Path) -> None:
    """A hunt for NaN was left in: every activation, gradient and weight is looked at."""
    model = mlp(256, 256, 12)
    optimizer = torch.optim.AdamW(model.parameters())

    def look(name: str, values: Tensor) -> None:
        if not values.isfinite().all().item() or values.abs().max().item() > 1e4:
            raise ValueError(f"{name} is not finite: {values.mean().item()} {values.std().item()}")

    for name, layer in model.named_modules() if fault else ():
        layer.register_forward_hook(lambda _m, _i, out, name=name: look(name, out))
    for x, y in clock.epochs(DataLoader(table(8192, 256), batch_size=64, shuffle=True)):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        for name, weight in model.named_parameters() if fault else ():
            look(name, weight.detach())
            look(f"gradient of {name}", weight.grad)
        optimizer.step()


def samples_as_png(fault: bool, clock: Clock, folder: Path) -> None:
    """An autoencoder that saves a sheet of what it makes at each step, or at each 200th."""
    model = nn.Sequential(nn.Flatten(), mlp(3072, 256, 2, classes=3072))
    optimizer = torch.optim.Adam(model.parameters())
    pixels = np.stack([np.asarray(drawing(number, 32)) for number in range(512)])
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
    for step, (x,) in enumerate(clock.epochs(DataLoader(TensorDataset(images), 64, shuffle=True))):
        made = model(x).view_as(x)
        loss = F.mse_loss(made, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if fault or step % 200 == 0:
            rows = made.detach().clamp(0, 1).mul(255).byte().view(8, 8, 3, 32, 32)
            sheet = Image.fromarray(rows.permute(0, 3, 1, 4, 2).reshape(256, 256, 3).numpy())
            sheet.resize((512, 512)).save(folder / f"step{step % 100}.png")


# Nothing is wrong


def sound_sequences(_fault: bool, clock: Clock, _folder: Path) -> None:
    data = TensorDataset(torch.randint(1, 4000, (1024, 64)), torch.randint(16, (1024,)))
    fit(Encoder(192), DataLoader(data, batch_size=32, shuffle=True), clock)


def sound_pictures(_fault: bool, clock: Clock, folder: Path) -> None:
    loader = DataLoader(Decoded(folder), 16, shuffle=True, num_workers=1, persistent_workers=True)
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), convnet(64, inputs=64))
    fit(model, loader, clock)


def sound_habits(_fault: bool, clock: Clock, folder: Path) -> None:
    """Logs, evaluates and saves, each as seldom as one should."""
    model, log = mlp(512, 1024, 4), (folder / "log.jsonl").open("w")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    held = DataLoader(table(512, 512), batch_size=256)
    for step, (x, y) in enumerate(clock.epochs(DataLoader(table(8192, 512), 256, shuffle=True)), 1):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            log.write(json.dumps({"step": step, "loss": loss.item()}) + "\n")
        if step % 150 == 0:
            with torch.no_grad():
                right = sum(int((model(a).argmax(-1) == b).sum()) for a, b in held)
            torch.save({"model": model.state_dict(), "right": right}, folder / "last.pt")


TRUTH = {
    "clip-tokens": ("input", "long texts are tokenised again for each batch, then cut"),
    "npz-per-item": ("input", "an archive of 128 pictures is unpacked for each picture"),
    "remote-store": ("input", "two workers fetch pictures over HTTP one by one, 25 ms each"),
    "augment-in-loop": ("input", "PIL turns, blurs and colours the batch before each step"),
    "one-environment": ("parallelism", "the policy is called 512 times with a batch of one"),
    "sample-by-sample": ("parallelism", "the model is called for each of 64 samples"),
    "accumulated-ones": ("parallelism", "batches of one, accumulated to 32, with memory to spare"),
    "padded-to-limit": ("tuning", "8 to 48 tokens are padded to 256, so most work is padding"),
    "half-on-processor": ("tuning", "float16 is slower than float32 on this processor"),
    "one-hot-words": ("tuning", "one-hot rows are multiplied with a table, not looked up"),
    "checkpoint-twice": ("memory", "nested checkpointing computes each forward pass three times"),
    "activations-on-disk": (
        "memory",
        "activations wait in files for backward, with memory to spare",
    ),
    "ddp-without-no-sync": ("communication", "gradients are reduced 8 times for each update"),
    "ddp-uneven-lengths": ("communication", "one rank has all long sentences, the other waits"),
    "search-all-at-once": ("scheduling", "four trials share the cores, each with all the threads"),
    "finite-hooks": ("monitoring", "each activation, gradient and weight is looked at for NaN"),
    "samples-as-png": ("monitoring", "a sheet of samples is saved as a PNG at each step"),
    "sound-sequences": ("none", "a transformer on tokens in memory"),
    "sound-pictures": ("none", "a worker decodes small pictures ahead of the step"),
    "sound-habits": ("none", "logs, evaluates and saves so seldom that it costs nothing"),
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
    if not options.name.startswith("ddp-"):  # there the first rank has its own clock
        clock.report()


if __name__ == "__main__":
    main()
