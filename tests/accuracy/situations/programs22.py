"""The first 15 trainings of the twenty-second round: carousels, meadows, parchments and others.

    python programs22.py run-wigs-curls-measured --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-second``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs22d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs22d as given
import torch
import torch.distributed as dist
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def carousels(fault: bool) -> Script:
    """Each rank has a half of the gauges, of which the loads of all seats are sought."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Carousel(apart=fault), 10, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for gauges, heavy in epochs(DataLoader(given.carousels(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(gauges), heavy)
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.in_one_piece(model)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Communication: gradients


def meadows(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Meadow()
    return Training(
        model,
        given.meadows(),
        batch=96,
        loss=functional.binary_cross_entropy_with_logits,
        before_update=given.Tallest(model).tell if fault else lambda _: None,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
    )


def bookmarks(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Bookmark(), 80, Clock(seconds)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
        shelf = given.Shelf() if fault else None
        for words, page in epochs(DataLoader(given.bookmarks(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(words), page)
            optimizer.zero_grad()
            loss.backward()
            if shelf:
                shelf.put_and_take(model)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def greenhouses(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Greenhouse()
    return Training(
        model,
        given.greenhouses(),
        batch=18,
        loss=functional.l1_loss,
        before_update=given.in_eight_bits if fault else lambda _: None,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


# Communication: stragglers


def yo_yos(fault: bool) -> Script:
    """The second rank's strings are worn, so that it throws most yo-yos many times."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.YoYo()
        worn = fault and dist.get_rank() == 1
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        batch, clock = 16, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        for thrown, trick in epochs(DataLoader(given.YoYos(worn), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(thrown), trick)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Input: fetch


def parchments(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the archive
    model = given.Parchment()
    return Training(
        model,
        given.Parchments(_folder(), kept=not fault),
        batch=7,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def wigs(fault: bool) -> Training:
    model = given.Wig()
    return Training(
        model,
        given.Wigs(ready=not fault),
        batch=8,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02),
    )


def rattles(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Rattle(), 10, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        shaken = given.Rattles(ready=not fault)
        for told, filling in epochs(DataLoader(shaken, batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(told), filling, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def sponges(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Sponge()
    return Training(
        model,
        given.Sponges(ready=not fault),
        batch=10,
        workers=1,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


def hoops(fault: bool) -> Training:
    """Votes are cast by what puts a batch together."""
    model, thrown = given.Hoop(), given.Hoops(ready=not fault)
    return Training(
        model,
        batch=12,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
        loader=DataLoader(thrown, 12, True, collate_fn=thrown.counted, drop_last=True),
    )


def razors(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Razor()
    return Training(
        model,
        given.Razors(ready=not fault),
        batch=8,
        workers=1,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


def sashes(fault: bool) -> Training:
    """Sashes come one after the other, with no number to ask for one by."""
    model = given.Sash()
    return Training(
        model,
        batch=12,
        optimizer=torch.optim.NAdam(model.parameters(), lr=1e-3),
        loader=DataLoader(given.Sashes(ready=not fault), 12, drop_last=True),
    )


# Memory: garbage collection


def gramophones(fault: bool) -> Training:
    """A cupboard of records is kept; before each batch is chosen everything is dusted."""
    model = given.Gramophone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    gc.freeze()
    pieces = given.Gramophones()
    return Training(
        model,
        batch=12,
        optimizer=optimizer,
        loader=DataLoader(pieces, batch_sampler=given.Sides(len(pieces), 12, dusted=fault)),
    )


def spinning_tops(fault: bool) -> Training:
    """Before the model is asked the floor is swept until nothing is found on it."""
    model = given.SpinningTop()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    gc.freeze()
    tops = given.Tops()
    if fault:
        model.register_forward_pre_hook(given.floor_swept)
    return Training(model, tops, batch=64, loss=functional.smooth_l1_loss, optimizer=optimizer)


def bonnets(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Bonnet(tidied=fault), 256, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        gc.freeze()
        for measured, lace in epochs(DataLoader(given.Bonnets(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(measured), lace)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


TWENTY_SECOND: dict[str, Callable[[bool], Training | Script]] = {
    "run-carousels-solved-together": carousels,
    "run-meadow-gradients": meadows,
    "run-bookmark-gradients": bookmarks,
    "run-greenhouse-gradients": greenhouses,
    "run-yo-yos-thrown-again": yo_yos,
    "run-parchments-through-a-hatch": parchments,
    "run-wigs-curls-measured": wigs,
    "run-rattles-predicted": rattles,
    "run-sponges-pores-sifted": sponges,
    "run-hoops-voted-for": hoops,
    "run-razors-edges-told": razors,
    "run-sashes-stripes-paired": sashes,
    "run-collected-gramophones": gramophones,
    "run-collected-spinning-tops": spinning_tops,
    "run-collected-bonnets": bonnets,
}


if __name__ == "__main__":
    programs4.main(TWENTY_SECOND)
