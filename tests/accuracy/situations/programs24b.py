"""Runs 16 to 30 of the twenty-fourth round: napkins, birdcages, flasks, cupboards and others.

    python programs24b.py run-steady-cupboards --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-fourth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs24e.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs24e as given
import torch
from programs import Training, _endlessly, _folder
from programs4 import Clock, Script
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader


def times(batch: int) -> int:
    """Return the batch, or several times as much where the proof asks for it."""
    return batch * int(os.environ.get("TIMES_THE_BATCH", "1"))


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Memory: offload


def napkins(fault: bool) -> Script:
    """Where the weights were before a step up the slope is put into a file until the way back."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Napkin(), 24, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
        way = given.WayBack(model, _folder() if fault else None)
        loader = DataLoader(given.napkins(), batch, shuffle=True, drop_last=True)
        for squares, figures in epochs(loader):
            functional.cross_entropy(model(squares), figures).backward()
            way.climb()
            optimizer.zero_grad()
            functional.cross_entropy(model(squares), figures).backward()
            way.back()
            optimizer.step()
            optimizer.zero_grad()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def hairpins(fault: bool) -> Training:
    """What was learnt from earlier makers lies in a file for each of them."""
    model = given.Hairpin()
    tasks = given.Tasks(model, _folder() if fault else None)
    return Training(
        model,
        given.hairpins(),
        batch=320,
        loss=functional.binary_cross_entropy_with_logits,
        before_update=lambda _: tasks.held(),
        optimizer=torch.optim.SGD(model.parameters(), 0.02),
    )


# Memory: recomputation


def fezzes(fault: bool) -> Training:
    """How the felt comes to rest is not kept, and found once more on the way back."""
    model = given.Fez(again=fault)
    return Training(
        model,
        given.fezzes(),
        batch=16,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Monitoring: evaluation


def birdcages(fault: bool) -> Training:
    """One measure of other cages after the other is varied."""
    model, every = given.Birdcage(), 10 if fault else 500
    others, _ = given.birdcages(48).tensors

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.varied(model, others)

    return Training(
        model,
        given.birdcages(),
        batch=128,
        loss=functional.smooth_l1_loss,
        after=after,
        optimizer=torch.optim.Adam(model.parameters(), 5e-4),
    )


def lutes(fault: bool) -> Training:
    """What was heard of other lutes is written down, and its mistakes are counted."""
    model, every = given.Lute(), 4 if fault else 500
    sounds, frets = given.lutes(48).tensors

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.corrected(model, sounds, frets)

    return Training(
        model,
        given.lutes(),
        batch=32,
        after=after,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


def broomsticks(fault: bool) -> Script:
    """The wood of all that it learns from is told again at each third update."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Broomstick(), 32, Clock(seconds)
        every, data = 3 if fault else 500, given.broomsticks()
        optimizer = torch.optim.RMSprop(model.parameters(), 5e-4)
        loader = DataLoader(data, batch, shuffle=True, drop_last=True)
        for step, (bristles, woods) in enumerate(epochs(loader), 1):
            loss = functional.cross_entropy(model(bristles), woods)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                given.all_told(model, data, batch)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def pennants(fault: bool) -> Script:
    """How far drawn pennants are from real ones is told at each second update."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Pennant(), 96, Clock(seconds)
        every, data = 2 if fault else 500, given.pennants()
        alike = given.Alike(data.tensors[0])
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(data, batch, shuffle=True, drop_last=True)
        for step, (some,) in enumerate(epochs(loader), 1):
            loss = model(some)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                alike.far(model)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def braziers(fault: bool) -> Script:
    """Whether other braziers went out in the order that was told, pair by pair of them."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Brazier(), 128, Clock(seconds)
        every, others = 3 if fault else 500, given.braziers(1300).tensors
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        loader = DataLoader(given.braziers(), batch, shuffle=True, drop_last=True)
        for step, (coals, when, seen) in enumerate(epochs(loader), 1):
            loss = given.unlikely(model(coals), when, seen)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                given.in_order(model, *others)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: logging


def cymbals(fault: bool) -> Training:
    """How each channel's weights and slopes are is written into a database."""
    model, every = given.Cymbal(), 1 if fault else 500
    base = given.Database(_folder())

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            base.write(step, model)

    return Training(
        model,
        given.cymbals(),
        batch=20,
        after=after,
        optimizer=torch.optim.SGD(model.parameters(), 0.02),
    )


# Monitoring: synchronisation


def flasks(fault: bool) -> Script:
    """Whether a move is taken back is read for one row of flasks after the other."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Flask(), 96, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 5e-4)
        loader = DataLoader(given.flasks(), batch, shuffle=True, drop_last=True)
        drawn = torch.randn(128, 20)
        for (levels,) in epochs(loader):
            drawn = given.shaken(model, drawn, read=fault)
            loss = model(levels).mean() - model(drawn).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def hatstands(fault: bool) -> Training:
    """At each branch of each tree it is read for each hatstand where it goes on."""
    model = given.Hatstand(read=fault)
    return Training(
        model,
        given.hatstands(),
        batch=128,
        loss=functional.l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_cupboards(fault: bool) -> Training:
    model = given.Cupboard()
    return Training(
        model,
        given.cupboards(),
        batch=times(24),
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        again=not fault,
    )


def steady_dustpans(fault: bool) -> Training:
    model = given.Dustpan()
    return Training(
        model,
        given.dustpans(),
        batch=times(12),
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 5e-4, fused=True),
        again=not fault,
    )


def steady_cummerbunds(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Cummerbund(), times(12), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 5e-4, fused=True)
        loader = DataLoader(given.cummerbunds(), batch, shuffle=True, drop_last=True)
        for pleats, following in _endlessly(loader, not fault):
            loss = functional.huber_loss(model(pleats), following)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Parallelism: batch


def parapets(fault: bool) -> Training:
    model = given.Parapet()
    return Training(
        model,
        given.parapets(),
        batch=14 if fault else 128,
        loss=given.expected,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


TWENTY_FOURTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-napkins-way-back-out": napkins,
    "run-hairpins-tasks-out": hairpins,
    "run-fezzes-settled-again": fezzes,
    "run-birdcages-measure-by-measure": birdcages,
    "run-lutes-tablatures-corrected": lutes,
    "run-broomsticks-all-told": broomsticks,
    "run-pennants-how-alike": pennants,
    "run-braziers-order-of-going-out": braziers,
    "run-cymbals-in-a-database": cymbals,
    "run-flasks-shaken-one-by-one": flasks,
    "run-hatstands-branch-by-branch": hatstands,
    "run-steady-cupboards": steady_cupboards,
    "run-steady-dustpans": steady_dustpans,
    "run-steady-cummerbunds": steady_cummerbunds,
    "run-few-parapets": parapets,
}


if __name__ == "__main__":
    programs4.main(TWENTY_FOURTH_B)
