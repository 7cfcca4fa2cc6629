"""Runs 16 to 30 of the twenty-first round: resin, cellars, plaster, garnets, attics and others.

    python programs21b.py run-steady-plaster --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-first``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs21e.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import programs4
import programs21e as given
import torch
from programs import Training, _endlessly, _folder
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


# Monitoring: anomaly detection


def resin(fault: bool) -> Script:
    """Each step is searched for a number that is none, as once when there was one."""

    def searched() -> AbstractContextManager[Any]:
        return torch.autograd.detect_anomaly() if fault else nullcontext()

    def run(seconds: float) -> float:
        model, batch, clock = given.Resin(), 32, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for places, long in epochs(DataLoader(given.resins(), batch, True, drop_last=True)):
            optimizer.zero_grad()
            with searched():
                loss = functional.huber_loss(model(places), long)
                loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: evaluation


def skateboards(fault: bool) -> Training:
    """What was learnt from skaters is tried by riding boards."""
    model, boards, every = given.Skater(), torch.randn(64, 8), 2 if fault else 500

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            with torch.inference_mode():
                given.ridden(model, boards)

    return Training(
        model,
        given.skaters(),
        batch=256,
        loss=functional.mse_loss,
        after=after,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def cellars(fault: bool) -> Script:
    """How sure it is of other cellars: parts stay hidden, as in training."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Cellar(), 64, Clock(seconds)
        every, (others, _) = 4 if fault else 500, given.cellars(80).tensors
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.cellars(), batch, shuffle=True, drop_last=True)
        for step, (bottles, years) in enumerate(epochs(loader), 1):
            loss = functional.cross_entropy(model(bottles), years)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                with torch.no_grad():
                    given.unsure(model, others)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def hourglasses(fault: bool) -> Script:
    """Other hourglasses are shaken, each time harder."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Hourglass(), 48, Clock(seconds)
        every, others = 2 if fault else 500, DataLoader(given.hourglasses(180), 60)
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
        loader = DataLoader(given.hourglasses(), batch, shuffle=True, drop_last=True)
        for step, (sand, runs) in enumerate(epochs(loader), 1):
            loss = functional.cross_entropy(model(sand), runs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                model.eval()
                with torch.no_grad():
                    sum(given.right(model, others, hard / 8) for hard in range(8)) / 8
                model.train()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: logging


def hang_gliders(fault: bool) -> Training:
    """Flights that were told are noted, to be looked at on a map."""
    model, folder, last = given.HangGlider(), _folder(), dict[str, Tensor]()

    def loss(told: Tensor, flown: Tensor) -> Tensor:
        last["told"] = told.detach()
        return functional.l1_loss(told, flown)

    def after(step: int, _loss: Tensor) -> None:
        if fault or step % 500 == 499:
            given.noted(last["told"], step, folder / f"flights-{step:06d}.gpx")

    return Training(
        model,
        given.flights(),
        batch=32,
        loss=loss,
        after=after,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Monitoring: synchronisation


def whirlpools(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Whirlpool(), 48, Clock(seconds)
        every, most = 1 if fault else 500, [float("-inf")] * 10
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        loader = DataLoader(given.whirlpools(), batch, shuffle=True, drop_last=True)
        for step, (drifters, turns) in enumerate(epochs(loader), 1):
            turned = model(drifters)
            loss = functional.mse_loss(turned, turns)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                given.furthest(turned.detach(), most)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_plaster(fault: bool) -> Training:
    model = given.Plaster()
    return Training(
        model,
        given.plaster(),
        batch=times(16),
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        again=not fault,
    )


def steady_tricycles(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Tricycle(), times(48), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
        loader = DataLoader(given.tricycles(), batch, shuffle=True, drop_last=True)
        for moments, rider in endlessly(loader, not fault):
            loss = functional.cross_entropy(model(moments), rider, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_topazes(fault: bool) -> Training:
    model = given.Topaz()
    return Training(
        model,
        given.topazes(),
        batch=times(24),
        optimizer=torch.optim.Adam(model.parameters(), 3e-4, fused=True),
        again=not fault,
    )


def steady_garnets(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Garnet(), times(24), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
        loader = DataLoader(given.garnets(), batch, shuffle=True, drop_last=True)
        for rays, bright in endlessly(loader, not fault):
            optimizer.zero_grad()
            loss = functional.l1_loss(model(rays), bright)
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_pendulums(fault: bool) -> Training:
    model = given.Pendulum()
    return Training(
        model,
        given.pendulums(),
        batch=times(40),
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.RMSprop(model.parameters(), 2e-4),
        again=not fault,
    )


# Parallelism: batch


def anemometers(fault: bool) -> Script:
    """A batch of 64 is shared by as many computers as were asked for."""
    computers = 4 if fault else 1

    def run(seconds: float) -> float:
        model, batch, clock = given.Anemometer(), 64 // computers, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.anemometers(), batch, shuffle=True, drop_last=True)
        for minutes, way in epochs(loader):
            loss = functional.cross_entropy(model(minutes), way)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Parallelism: small operations


def waterfalls(fault: bool) -> Training:
    model = given.Waterfall(in_turn=fault)
    return Training(
        model,
        given.waterfalls(),
        batch=4,
        loss=functional.mse_loss,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3, fused=True),
    )


def attics(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Attic(in_turn=fault), 32, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 5e-4)
        for boxes, use in epochs(DataLoader(given.attics(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(boxes), use)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: affinity


def hearths(fault: bool) -> Training:
    """Of cores that are two halves of one, a half is to be left alone; here none are."""
    cores = range(os.cpu_count() or 1)
    torch.set_num_threads(len(cores))
    if fault:
        os.sched_setaffinity(0, cores[::2])
    model = given.Hearth()
    return Training(
        model,
        given.hearths(),
        batch=14,
        loss=functional.huber_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


TWENTY_FIRST_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-resin-anomalies": resin,
    "run-skateboards-ridden": skateboards,
    "run-cellars-how-sure": cellars,
    "run-hourglasses-shaken": hourglasses,
    "run-hang-gliders-noted": hang_gliders,
    "run-whirlpools-drifter-by-drifter": whirlpools,
    "run-steady-plaster": steady_plaster,
    "run-steady-tricycles": steady_tricycles,
    "run-steady-topazes": steady_topazes,
    "run-steady-garnets": steady_garnets,
    "run-steady-pendulums": steady_pendulums,
    "run-few-anemometers": anemometers,
    "run-waterfalls-ledge-by-ledge": waterfalls,
    "run-attics-question-by-question": attics,
    "run-hearths-each-second-core": hearths,
}


if __name__ == "__main__":
    programs4.main(TWENTY_FIRST_B)
