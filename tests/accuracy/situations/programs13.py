"""The first 15 trainings of the thirteenth round: masks, magpies, vinegar, slugs and others.

    python programs13.py run-peppers-asked-for --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --thirteenth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs13d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import programs4
import programs13d as given
import psutil
import torch
import torch.distributed as dist
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def masks(fault: bool) -> Script:
    """Each rank has half of each weight, and the blocks are put together for their turn."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Mask(), 8, Clock(seconds)
        if fault:
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            ranks = init_device_mesh("cpu", (dist.get_world_size(),))
            for block in model.blocks:
                fully_shard(block, mesh=ranks)
            fully_shard(model, mesh=ranks)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for points, place in epochs(DataLoader(given.masks(), batch, shuffle=True, drop_last=True)):
            loss = functional.cross_entropy(model(points), place)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def magpies(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Magpie(together=fault)

    def before_update(trained: nn.Module) -> None:
        if fault:
            found = [each.grad for each in trained.parameters() if each.grad is not None]
            whole = torch.cat([each.flatten() for each in found])
            dist.all_reduce(whole)
            nn.utils.vector_to_parameters(whole / 2, found)

    return Training(
        model,
        given.chatters(),
        batch=8,
        before_update=before_update,
        optimizer=torch.optim.Adam(model.parameters(), lr=5e-4),
    )


def vinegar(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Vinegar()
    return Training(
        model,
        given.vinegars(),
        batch=8,
        loss=functional.huber_loss,
        before_update=lambda trained: given.mean_by_the_first(trained) if fault else None,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


def slugs(fault: bool) -> Script:
    """Each rank has the photographs of one garden; in the second one more are taken."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        garden = dist.get_rank() if fault else 0
        model: nn.Module = given.Slug()
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        batch, clock = 4, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        for bed, eaten in epochs(DataLoader(given.Bed(garden), batch, shuffle=True)):
            loss = functional.mse_loss(model(bed), eaten)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Input: fetching


def butterflies(fault: bool) -> Training:
    """The drive is a slow one, as ``generate.py`` throttles it."""
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Butterfly()
    return Training(
        model,
        given.Wings(_folder(), kept=not fault),
        batch=6,
        workers=1,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


def ginseng(fault: bool) -> Training:
    model = given.Root()
    return Training(
        model,
        given.Roots(ahead=not fault),
        batch=6,
        loss=functional.l1_loss,
        optimizer=torch.optim.Adamax(model.parameters(), lr=2e-3),
    )


def peppers(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Pepper(), 6, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loader = DataLoader(given.Peppers(ahead=not fault), batch, shuffle=True, drop_last=True)
        for seen, kind in epochs(loader):
            loss = functional.cross_entropy(model(seen), kind, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Input: preprocessing


def inkwells(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Inkwell()
    return Training(
        model,
        given.Inkwells(ready=not fault),
        batch=8,
        workers=1,
        optimizer=torch.optim.NAdam(model.parameters(), lr=1e-3),
    )


def toffee(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Tasted(), 32, Clock(seconds)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
        for found, liking in epochs(
            DataLoader(given.Toffee(ready=not fault), batch, shuffle=True, drop_last=True)
        ):
            loss = functional.cross_entropy(model(found), liking)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def sirens(fault: bool) -> Training:
    model = given.Siren()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    return Training(model, given.Sirens(ready=not fault), batch=8, optimizer=optimizer)


# Memory


def geckos(fault: bool) -> Training:
    """How worn the places are is counted on walls that are new, or that were used before."""
    model, batch = given.Gecko(), 16
    walls = given.Walls(kept=not fault, batch=batch)
    return Training(
        model,
        given.climbs(),
        batch=batch,
        prepare=walls.beside,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def quills(fault: bool) -> Script:
    """Python's collector is called when much memory is in use, which a low limit makes always."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Hand(), 16, Clock(seconds)
        most, me = (100 << 20 if fault else 100 << 30), psutil.Process()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        loader = DataLoader(given.Letters(), batch, shuffle=True, drop_last=True)
        for step, (strokes, letters) in enumerate(epochs(loader)):
            told = model(strokes[:, :-1], letters[:, 1:])
            loss = model.unlikely(told, strokes[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 5 == 0 and me.memory_info().rss > most:
                gc.collect()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def sesame(fault: bool) -> Script:
    """The blocks' weights are in files, and in memory only for their turn."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Seeds(), 96, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        sacks = given.Sacks(_folder(), model.blocks) if fault else None
        for markers, oil in epochs(DataLoader(given.seeds(), batch, shuffle=True, drop_last=True)):
            loss = functional.smooth_l1_loss(model(markers), oil)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if sacks:
                sacks.tied()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def olives(fault: bool) -> Training:
    """The stages are recomputed, and the blocks within them once more."""
    model = given.Olive(again=fault)
    learnt = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=1e-3)
    return Training(model, given.crates(), batch=4, optimizer=optimizer)


# Monitoring


def fireflies(fault: bool) -> Training:
    """Now and then a meadow that nobody learns from is looked at, with how sure the share is."""
    model, every = given.Firefly(), 4 if fault else 500
    meadow = DataLoader(given.flashes(2000), 64)

    def after(step: int, _loss: Tensor) -> None:
        if step % every != every - 1:
            return
        model.eval()
        with torch.no_grad():
            right = [model(flashes).argmax(1) == kind for flashes, kind in meadow]
        given.surely(torch.cat(right).numpy().astype(np.float64))
        model.train()

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return Training(model, given.flashes(), batch=16, after=after, optimizer=optimizer)


THIRTEENTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-masks-in-shards": masks,
    "run-magpies-heads-exchanged": magpies,
    "run-vinegar-gradients": vinegar,
    "run-slugs-of-two-gardens": slugs,
    "run-butterflies-from-afar": butterflies,
    "run-ginseng-by-ranges": ginseng,
    "run-peppers-asked-for": peppers,
    "run-inkwells-outlined": inkwells,
    "run-toffee-counted": toffee,
    "run-sirens-in-streets": sirens,
    "run-geckos-fresh-walls": geckos,
    "run-collected-quills": quills,
    "run-sesame-blocks-out": sesame,
    "run-recomputed-olives": olives,
    "run-fireflies-validated": fireflies,
}


if __name__ == "__main__":
    programs4.main(THIRTEENTH)
