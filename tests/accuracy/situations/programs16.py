"""The first 15 trainings of the sixteenth round: reeds, palms, ivy and others.

    python programs16.py run-saffron-peaks --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --sixteenth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs16d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import programs4
import programs16d as given
import torch
from programs import Training, _over
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def reeds(fault: bool) -> Training:
    """Each rank has a half of each picture; the rows at its edge are passed at each layer."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Reed(halves=fault)
    return Training(
        model,
        given.beds(),
        batch=6,
        before_update=given.as_one if fault else lambda _: None,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


def palms(fault: bool) -> Script:
    """Each kind shall have as many palms, of those that both ranks see."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Palm(), 32, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for (spectra,) in epochs(DataLoader(given.crowns(), batch, True, drop_last=True)):
            told = model(torch.cat([spectra + 0.1 * torch.randn_like(spectra) for _ in range(2)]))
            one, other = told.chunk(2)
            loss = -(given.balanced(one, fault) * (10 * other).log_softmax(1)).sum(1).mean()
            loss -= (given.balanced(other, fault) * (10 * one).log_softmax(1)).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.as_one(model)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def ivy(fault: bool) -> Script:
    """Each rank has a half of the leaves, and asks for the others at each hop."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, clock = given.Ivy(halves=fault), Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for leaves, withers in epochs(DataLoader(given.days(), None, True)):
            loss = functional.cross_entropy(model(leaves), model.own(withers))
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.as_one(model)
            optimizer.step()
            if _over(clock.over(len(leaves))):
                break
        return clock.rate

    return Script(run)


def oranges(fault: bool) -> Script:
    """The keys of pictures are told by either rank, so that norms do not give them away."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Orange(), 32, Clock(seconds)
        keys = given.Keys(model, mixed=fault)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
        for (pictures,) in epochs(DataLoader(given.oranges(), batch, True, drop_last=True)):
            told, right = model(pictures), keys.of(pictures.flip(3))
            like = torch.cat([(told * right).sum(1, keepdim=True), told @ keys.queue.T], 1)
            loss = functional.cross_entropy(like / 0.1, torch.zeros(batch, dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.as_one(model)
            optimizer.step()
            keys.follow(model, right)
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Communication: gradients


def squirrels(fault: bool) -> Script:
    """An update is of four small batches."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.Squirrel()
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        batch, clock = 8, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        loader = DataLoader(given.hoards(), batch, shuffle=True, drop_last=True)
        for number, (moves, place) in enumerate(epochs(loader)):
            loss = functional.cross_entropy(model(moves), place) / 4
            loss.backward()
            if number % 4 < 3:
                continue
            optimizer.step()
            optimizer.zero_grad()
            if _over(clock.over(4 * batch)):
                break
        return clock.rate

    return Script(run)


def cabbages(fault: bool) -> Script:
    def run(seconds: float) -> float:
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.Cabbage()
        if fault:
            ranks = nn.parallel.DistributedDataParallel(model)
            ranks.register_comm_hook(None, default_hooks.fp16_compress_hook)
            model = ranks
        batch, clock = 64, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)
        for (tile,) in epochs(DataLoader(given.tiles(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(tile), tile)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def silver(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Silver()
    return Training(
        model,
        given.ingots(),
        batch=32,
        loss=functional.mse_loss,
        before_update=given.Told(model).wait if fault else lambda _: None,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Input: fetch


def locusts(fault: bool) -> Training:
    model = given.Locust()
    return Training(
        model,
        given.Locusts(kept=not fault),
        batch=32,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def jellyfish(fault: bool) -> Training:
    model = given.Jelly()
    return Training(
        model,
        given.Jellyfish(ready=not fault),
        batch=8,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


def saffron(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Saffron(), 12, Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
        loader = DataLoader(given.Saffrons(ready=not fault), batch, shuffle=True, drop_last=True)
        for table, stretched in epochs(loader):
            loss = functional.cross_entropy(model(table), stretched)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def chocolate(fault: bool) -> Training:
    model = given.Chocolate()
    return Training(
        model,
        given.Chocolates(ready=not fault),
        batch=6,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def crabs(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Crab()
    return Training(
        model,
        given.Crabs(ready=not fault),
        batch=6,
        workers=1,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def bamboo(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Bamboo(), 8, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)
        loader = DataLoader(given.Bamboos(ready=not fault), batch, shuffle=True, drop_last=True)
        for photo, old in epochs(loader):
            loss = functional.cross_entropy(model(photo), old)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def oaks(fault: bool) -> Training:
    """Words are counted where batches are put together."""
    model, pieces = given.Oak(), given.Oaks()
    counts: Any = given.Counts(pieces, ready=not fault)
    return Training(
        model,
        loader=DataLoader(pieces, 16, shuffle=True, collate_fn=counts, drop_last=True),
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Memory


@contextmanager
def tidy(fault: bool) -> Iterator[None]:
    """Leave nothing behind."""
    try:
        yield
    finally:
        if fault:
            gc.collect()


def spinach(fault: bool) -> Script:
    """What was written down of the leaves stays in memory; each batch is tidied up after."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Spinach(), 256, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        gc.freeze()
        written = given.written_down()
        for light, iron in epochs(DataLoader(given.leaves(), batch, True, drop_last=True)):
            with tidy(fault):
                loss = functional.smooth_l1_loss(model(light), iron)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if clock.over(batch):
                break
        assert written
        return clock.rate

    return Script(run)


SIXTEENTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-reeds-edges-passed": reeds,
    "run-palms-balanced": palms,
    "run-ivy-neighbours-gathered": ivy,
    "run-oranges-changed-over": oranges,
    "run-squirrel-gradients": squirrels,
    "run-cabbage-gradients": cabbages,
    "run-silver-gradients": silver,
    "run-locusts-from-an-archive": locusts,
    "run-jellyfish-without-water": jellyfish,
    "run-saffron-peaks": saffron,
    "run-chocolate-rolled": chocolate,
    "run-crabs-in-boxes": crabs,
    "run-bamboo-turned": bamboo,
    "run-oaks-counted": oaks,
    "run-collected-spinach": spinach,
}


if __name__ == "__main__":
    programs4.main(SIXTEENTH)
