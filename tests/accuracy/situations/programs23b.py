"""Runs 16 to 30 of the twenty-third round: brooches, parasols, kimonos, skylights and others.

    python programs23b.py run-steady-skylights --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-third``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs23e.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs23e as given
import torch
from programs import CORES, Training, _endlessly, _folder
from programs4 import Clock, Script
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader


def times(batch: int) -> int:
    """Return the batch, or several times as much where the proof asks for it."""
    return batch * int(os.environ.get("TIMES_THE_BATCH", "1"))


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Memory: offload


def brooches(fault: bool) -> Training:
    """The weights that follow slowly are put into files until they are needed."""
    model = given.Brooch()
    slow = given.Slow(model, _folder() if fault else None)

    def after(_step: int, _loss: Tensor) -> None:
        slow.followed()

    return Training(
        model,
        given.brooches(),
        batch=32,
        after=after,
        optimizer=torch.optim.SGD(model.parameters(), 0.02, momentum=0.9),
    )


# Memory: recomputation


def parasols(fault: bool) -> Script:
    """What went into a cloth is found back from what came out."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Parasol(kept=not fault), 16, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-4)
        loader = DataLoader(given.parasols(), batch, shuffle=True, drop_last=True)
        for pictures, painters in epochs(loader):
            loss = functional.cross_entropy(model(pictures), painters)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def pincushions(fault: bool) -> Training:
    """A layer is made again on the way back, and the whole model was told to be so as well."""
    model = given.Pincushion(again=fault)
    return Training(
        model,
        given.pincushions(),
        batch=16,
        loss=functional.mse_loss,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Monitoring: evaluation


def bookends(fault: bool) -> Script:
    """How many other bookends are told right whatever little is done to their sound."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Bookend(), 32, Clock(seconds)
        every, (others, made) = 8 if fault else 500, given.bookends(24).tensors
        optimizer = torch.optim.RMSprop(model.parameters(), 5e-4)
        loader = DataLoader(given.bookends(), batch, shuffle=True, drop_last=True)
        for step, (sounds, kinds) in enumerate(epochs(loader), 1):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(sounds), kinds)
            loss.backward()
            optimizer.step()
            if step % every == 0:
                given.attacked(model, others, made)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: synchronisation


def kimonos(fault: bool) -> Script:
    """The farthest of the same house and the nearest of another are read, or found at once."""
    found = given.hardest_read if fault else given.hardest

    def run(seconds: float) -> float:
        model, batch, clock = given.Kimono(), 32, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 5e-4)
        loader = DataLoader(given.kimonos(), batch, shuffle=True, drop_last=True)
        for patterns, houses in epochs(loader):
            places = model(patterns)
            same, other = found(torch.cdist(places.detach(), places.detach()), houses)
            loss = functional.triplet_margin_loss(places, places[same], places[other], 0.2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def chandeliers(fault: bool) -> Script:
    """After each time that light is passed on it is asked whether it has settled."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Chandelier(), 32, Clock(seconds)
        every = 1 if fault else 500
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        loader = DataLoader(given.chandeliers(), batch, shuffle=True, drop_last=True)
        for step, (crystals, beside, bright) in enumerate(epochs(loader), 1):
            told = model(crystals, beside, ask=step % every == 0)
            loss = functional.smooth_l1_loss(told, bright)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def medallions(fault: bool) -> Script:
    """Who was taken for whom is counted for one medallion after the other."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Medallion(), 128, Clock(seconds)
        every, seen, near = 1 if fault else 500, torch.zeros(20, 20), torch.zeros(3)
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        loader = DataLoader(given.medallions(), batch, shuffle=True, drop_last=True)
        for step, (rings, who) in enumerate(epochs(loader), 1):
            told = model(rings)
            loss = functional.cross_entropy(told, who)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                given.counted(told.detach(), who, seen, near)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_skylights(fault: bool) -> Training:
    model = given.Skylight()
    return Training(
        model,
        given.skylights(),
        batch=times(12),
        loss=functional.mse_loss,
        optimizer=torch.optim.AdamW(model.parameters(), 3e-4, fused=True),
        again=not fault,
    )


def steady_paperweights(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Paperweight(), times(10), Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 2e-4, fused=True)
        loader = DataLoader(given.paperweights(), batch, shuffle=True, drop_last=True)
        for (bubbles,) in endlessly(loader, not fault):
            loss = model(bubbles).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_epaulettes(fault: bool) -> Training:
    model = given.Epaulette()
    return Training(
        model,
        given.epaulettes(),
        batch=times(16),
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        again=not fault,
    )


# Parallelism: batch


def weathercocks(fault: bool) -> Training:
    """The batch of all is 64, and each of sixteen computers has its share; there is one."""
    model, of_all, computers = given.Weathercock(), 64, 16 if fault else 1
    return Training(
        model,
        given.weathercocks(),
        batch=of_all // computers,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def tureens(fault: bool) -> Script:
    """A batch is what is in a file, or in several of them."""

    def run(seconds: float) -> float:
        model, clock = given.Tureen(), Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        loader = DataLoader(given.Files(1 if fault else 12), batch_size=None)
        for outlines, guests in epochs(loader):
            loss = functional.l1_loss(model(outlines), guests)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(guests)):
                break
        return clock.rate

    return Script(run)


# Parallelism: small operations


def gargoyles(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Gargoyle(at_once=not fault), 32, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        loader = DataLoader(given.gargoyles(), batch, shuffle=True, drop_last=True)
        for rows, mouths in epochs(loader):
            loss = functional.cross_entropy(model(rows), mouths)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: affinity


def cufflinks(fault: bool) -> Script:
    """One core's mask was thought to be how many cores it may have."""
    torch.set_num_threads(CORES)

    def run(seconds: float) -> float:
        if fault:
            os.sched_setaffinity(0, given.cores_of(1))
        model, batch, clock = given.Cufflink(), 90, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        loader = DataLoader(given.cufflinks(), batch, shuffle=True, drop_last=True)
        for both, pair in epochs(loader):
            left, right = model(both).unbind(1)
            loss = functional.cosine_embedding_loss(left, right, pair, 0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: other programs are put in by the generator


def capstans(_fault: bool) -> Training:
    torch.set_num_threads(1)  # how hawsers are strained is computed beside it
    model = given.Capstan()
    return Training(
        model,
        given.capstans(),
        batch=12,
        loss=functional.huber_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


TWENTY_THIRD_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-brooches-slow-weights-out": brooches,
    "run-parasols-found-back": parasols,
    "run-pincushions-twice-wrapped": pincushions,
    "run-bookends-attacked": bookends,
    "run-kimonos-hardest-read": kimonos,
    "run-chandeliers-until-settled": chandeliers,
    "run-medallions-one-by-one": medallions,
    "run-steady-skylights": steady_skylights,
    "run-steady-paperweights": steady_paperweights,
    "run-steady-epaulettes": steady_epaulettes,
    "run-weathercocks-a-sixteenth": weathercocks,
    "run-tureens-file-by-file": tureens,
    "run-gargoyles-mouth-by-mouth": gargoyles,
    "run-cufflinks-by-a-mask": cufflinks,
    "run-capstans-beside-hawsers": capstans,
}


if __name__ == "__main__":
    programs4.main(TWENTY_THIRD_B)
