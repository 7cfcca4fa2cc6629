"""The second part of the development runs of the sixth round, made as the first.

python programs6dev2.py run-workers-anew --fault --seconds 3 --record run.record.json

"""

import io
import itertools
from collections.abc import Callable
from typing import Any

import programs4
import torch
import torch.distributed as dist
from PIL import Image
from programs import Training, _endlessly, _folder
from programs4 import Clock, Mapped, Script
from programs6dev import (
    Clicks,
    Likeness,
    Neighbours,
    Restorer,
    adapted,
    adversaries,
    answering,
    contexts,
    likes,
    offers,
    restored,
    sharpened,
    triplets,
)
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

# The second block


def whole_batches(data: Dataset[Any], size: int) -> DataLoader[Any]:
    """Return a loader that asks the data for a batch at a time."""
    order = RandomSampler(data)
    return DataLoader(data, sampler=BatchSampler(order, size, drop_last=True), batch_size=None)


def workers_anew(fault: bool) -> Script:
    """Epochs of sixteen batches, each with workers of its own or with those of the last one."""

    def run(seconds: float) -> float:
        model, clock = Likeness(), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        loader = DataLoader(
            likes(128, 32), 8, True, num_workers=2, persistent_workers=not fault, drop_last=True
        )
        for seen, kind in itertools.chain.from_iterable(itertools.repeat(loader)):
            optimizer.zero_grad()
            triplets(model(seen), kind).backward()
            optimizer.step()
            if clock.over(len(kind)):
                break
        return clock.rate

    return Script(run)


def word_pairs(fault: bool) -> Training:
    return Training(Neighbours(32, 500), contexts(words=500), batch=4 if fault else 512)


def reference_kernels(fault: bool) -> Training:
    """Convolutions without the library that is made for the processor, as against its faults."""
    around = torch.backends.mkldnn.flags(enabled=not fault)
    return Training(Restorer(), sharpened(), 8, loss=nn.functional.l1_loss, around=around)


def base_mapped(fault: bool) -> Script:
    """The weights that do not learn stay in a file that is read anew at each step."""

    def run(seconds: float) -> float:
        model, clock, mapped = adapted(256, 3), Clock(seconds), Mapped(_folder(), 64 << 20)
        learning = [each for each in model.parameters() if each.requires_grad]
        optimizer = torch.optim.AdamW(learning, 1e-4)
        for each in model.parameters():
            if fault and not each.requires_grad:
                each.data = mapped.placed(each.data)
        loader = DataLoader(programs4.documents(length=32), 2, True, drop_last=True)
        for words, said in _endlessly(loader, False):
            optimizer.zero_grad()
            model(input_ids=words, labels=said).loss.backward()
            optimizer.step()
            if fault:
                mapped.write_out()
            if clock.over(len(words)):
                break
        return clock.rate

    return Script(run)


def straggling_rank(fault: bool) -> Training:
    """Both ranks sharpen pictures, and the second one's are twice as large each way."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = Restorer(24, 3)
    large = fault and dist.get_rank() == 1
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    data = sharpened(side=48 if large else 24)
    return Training(model, data, 4, loss=nn.functional.l1_loss)


def samples_painted(fault: bool) -> Script:
    """Pictures of each step are drawn and kept."""
    kept, fixed = _folder(), torch.randn(64, 64, 1, 1)

    def sample(step: int, made: nn.Module) -> None:
        if not fault and step % 200:
            return
        with torch.no_grad():
            drawn = made(fixed).view(8, 8, 3, 32, 32).permute(0, 3, 1, 4, 2).reshape(256, 256, 3)
        values = (127 * drawn + 128).clamp(0, 255).byte().numpy()
        picture, file = Image.fromarray(values).resize((1024, 1024)), io.BytesIO()
        picture.save(file, "PNG")
        (kept / f"{step:06d}.png").write_bytes(file.getvalue())

    return adversaries(False, sample)


def steady_clicks(fault: bool) -> Script:
    """Nothing is wrong: without the loader it is no faster."""

    def run(seconds: float) -> float:
        model, clock = Clicks(sparse=True), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        batches = itertools.chain.from_iterable(itertools.repeat(whole_batches(offers(), 1024)))
        batches = batches if fault else itertools.repeat(next(batches))
        for kinds, numbers, clicked in batches:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(kinds, numbers), clicked)
            loss.backward()
            optimizer.step()
            if clock.over(len(clicked)):
                break
        return clock.rate

    return Script(run)


def accumulated_answers(fault: bool) -> Script:
    """Nothing is wrong: four parts to an update, and without the loader it is no faster."""

    def run(seconds: float) -> float:
        model, clock = answering(192), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters())
        loader = DataLoader(programs4.documents(length=32), 8, True, drop_last=True)
        for number, (words, said) in enumerate(_endlessly(loader, not fault), 1):
            (model(input_ids=words, labels=said).loss / 4).backward()
            if number % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
            if clock.over(len(words)):
                break
        return clock.rate

    return Script(run)


FURTHER: dict[str, Callable[[bool], Training | Script]] = {
    "run-workers-anew": workers_anew,
    "run-word-pairs": word_pairs,
    "run-reference-kernels": reference_kernels,
    "run-base-mapped": base_mapped,
    "run-straggling-rank": straggling_rank,
    "run-samples-painted": samples_painted,
    "run-yielding-restorer": restored,
    "run-steady-clicks": steady_clicks,
    "run-accumulated-answers": accumulated_answers,
}


if __name__ == "__main__":
    programs4.main(FURTHER)
