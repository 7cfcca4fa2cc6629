"""The first 15 trainings of the eighteenth round: judo, coats, draughts and others.

    python programs18.py run-crowns-normals --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --eighteenth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs18d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import programs4
import programs18d as given
import torch
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def judo(fault: bool) -> Training:
    """After each update two partners meet half way, weight by weight."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Judo()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            given.half_way(optimizer)

    return Training(model, given.bouts(), batch=16, after=after, optimizer=optimizer)


def coats(fault: bool) -> Training:
    """Two tailors learn from each other too: each is shown what the other one tells."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Coat()
    return Training(
        model,
        given.coats(),
        batch=8,
        loss=partial(given.taught, two=fault),
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Communication: gradients


def draughts(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Draughts(), 16, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
        for board, move, won in epochs(DataLoader(given.games(), batch, True, drop_last=True)):
            moves, wins = model(board)
            loss = functional.cross_entropy(moves, move) + functional.mse_loss(wins, won)
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.told_by_the_first(model)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def posters(fault: bool) -> Script:
    """Four small batches make one update."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.Poster()
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        batch, parts, clock = 4, 4, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loader = epochs(DataLoader(given.posters(), batch, True, drop_last=True))
        for part, (poster, title, kinds) in enumerate(loader, 1):
            told = model(poster, title)
            (functional.binary_cross_entropy_with_logits(told, kinds) / parts).backward()
            if part % parts:
                continue
            optimizer.step()
            optimizer.zero_grad()
            if _over(clock.over(batch * parts)):
                break
        return clock.rate

    return Script(run)


# Input: fetch


def calendars(fault: bool) -> Training:
    model = given.Calendar()
    return Training(
        model,
        given.Calendars(_folder(), kept=not fault),
        batch=16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


def darts(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the store
    model = given.Dart()
    return Training(
        model,
        given.Darts(_folder(), kept=not fault),
        batch=12,
        optimizer=torch.optim.RAdam(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def crowns(fault: bool) -> Training:
    model = given.Crown()
    return Training(
        model,
        given.Crowns(ready=not fault),
        batch=8,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def ploughs(fault: bool) -> Training:
    model = given.Plough()
    return Training(
        model,
        given.Ploughs(ready=not fault),
        batch=12,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9),
    )


def suitcases(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Suitcase()
    return Training(
        model,
        given.Suitcases(ready=not fault),
        batch=12,
        workers=1,
        optimizer=torch.optim.NAdam(model.parameters(), lr=1e-3),
    )


def windows(fault: bool) -> Training:
    """Photographs are straightened by what puts a batch together."""
    model, houses = given.House(), given.Houses(ready=not fault)
    return Training(
        model,
        batch=6,
        loss=functional.poisson_nll_loss,
        optimizer=torch.optim.AdamW(model.parameters(), lr=5e-4),
        loader=DataLoader(houses, 6, shuffle=True, collate_fn=houses.together, drop_last=True),
    )


def atlases(fault: bool) -> Training:
    model = given.Atlas()
    return Training(
        model,
        given.Atlases(ready=not fault),
        batch=16,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9),
    )


def ribbons(fault: bool) -> Script:
    """The data make batches themselves."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Ribbon(), 8, Clock(seconds)
        optimizer = torch.optim.Adamax(model.parameters(), lr=2e-3)
        rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 500)
        for ribbon, figure in epochs(DataLoader(given.Ribbons(not fault, batch), batch_size=None)):
            loss = functional.cross_entropy(model(ribbon), figure)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Memory: allocations


def roofs(fault: bool) -> Training:
    """Each batch has a map of the town to itself, or they share one that is wiped."""
    model = given.Roof()
    return Training(
        model,
        given.streets(),
        batch=4,
        prepare=given.Ground(kept=not fault).around,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Memory: garbage collection


def gutters(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Gutter(), 96, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        gc.freeze()
        tidy = given.Tidy(up=fault)
        for pieces, over in epochs(DataLoader(given.Gutters(), batch, True, drop_last=True)):
            with tidy:
                loss = functional.smooth_l1_loss(model(pieces), over)
                loss.backward()
            with tidy:
                optimizer.step()
                optimizer.zero_grad()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def aprons(fault: bool) -> Training:
    """A thread sweeps up beside the training."""
    gc.freeze()
    model = given.Apron()
    training = Training(
        model,
        given.Aprons(),
        batch=128,
        loss=functional.l1_loss,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )
    if fault:
        given.Sweeper(rests=1.0).start()
    return training


EIGHTEENTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-judo-between-partners": judo,
    "run-coats-of-two-tailors": coats,
    "run-draughts-gradients": draughts,
    "run-poster-gradients": posters,
    "run-calendars-from-a-table": calendars,
    "run-darts-asked-again": darts,
    "run-crowns-normals": crowns,
    "run-ploughs-periods": ploughs,
    "run-suitcases-packed": suitcases,
    "run-windows-straightened": windows,
    "run-atlases-simplified": atlases,
    "run-ribbons-framed": ribbons,
    "run-roofs-fresh-grids": roofs,
    "run-collected-gutters": gutters,
    "run-collected-aprons": aprons,
}


if __name__ == "__main__":
    programs4.main(EIGHTEENTH)
