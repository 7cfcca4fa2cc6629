"""Runs 16 to 30 of the twentieth round: bongos, domes, cellos, rigging, tubas, moats and others.

    python programs20b.py run-steady-rigging --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twentieth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs20e.py``.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import programs4
import programs20e as given
import torch
from programs import Training, _folder
from programs4 import Clock, Script
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Memory: recomputation


def bongos(fault: bool) -> Training:
    model = given.Bongo(sparing=fault)
    return Training(
        model,
        given.bongos(),
        batch=48,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Monitoring: checkpoints


def domes(fault: bool) -> Training:
    """What is kept of a dome takes little room."""
    model, folder, every = given.Dome(), _folder(), 1 if fault else 500

    def after(step: int, _loss: Tensor) -> None:
        if step % every == 0:
            given.kept_small(model, folder / "dome.npz")

    return Training(
        model,
        given.domes(),
        batch=128,
        loss=functional.mse_loss,
        after=after,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


# Monitoring: evaluation


def aqueducts(fault: bool) -> Script:
    """How sure it is that other aqueducts are told in their order."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Aqueduct(), 48, Clock(seconds)
        every, (other, brought) = 4 if fault else 500, given.aqueducts(200).tensors
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.aqueducts(), batch, shuffle=True, drop_last=True)
        for step, (along, water) in enumerate(epochs(loader), 1):
            loss = functional.mse_loss(model(along), water)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                model.eval()
                with torch.no_grad():
                    given.between(model(other), brought)
                model.train()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def cellos(fault: bool) -> Training:
    """Bowings of other pieces are searched for and held against those that were played."""
    model, every = given.Cello(), 2 if fault else 500
    others, bowed = given.cellos(80).tensors

    def loss(told: Tensor, bowings: Tensor) -> Tensor:
        each = functional.cross_entropy(told.flatten(0, 1), bowings.flatten())
        next_one = model.follows[bowings[:, :-1].flatten()]
        return each + functional.cross_entropy(next_one, bowings[:, 1:].flatten())

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            with torch.inference_mode():
                found = given.searched(model(others), model.follows)
                (found == bowed).all(1).float().mean().item()

    return Training(
        model,
        given.cellos(),
        batch=32,
        loss=loss,
        after=after,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def banjos(fault: bool) -> Script:
    """Each of eight other songs is told from its beginning to its end."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Banjo(), 128, Clock(seconds)
        every, songs = 2 if fault else 500, [given.banjos(500) for _ in range(8)]
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        loader = DataLoader(given.banjos(), batch, shuffle=True, drop_last=True)
        for step, (moments, plucked) in enumerate(epochs(loader), 1):
            loss = functional.binary_cross_entropy_with_logits(model(moments), plucked)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                model.eval()
                with torch.no_grad():
                    [given.heard(model, *song.tensors) for song in songs]
                model.train()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: profiler


def sagas(fault: bool) -> Script:
    """What each operation takes is tallied, by the place that asked for it."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Saga(), 64, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        tally = given.Tally() if fault else nullcontext()
        for said, who in epochs(DataLoader(given.sagas(), batch, True, drop_last=True)):
            with tally:
                loss = functional.cross_entropy(model(said), who)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: synchronisation


def violas(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Viola(), 80, Clock(seconds)
        every, often = 1 if fault else 500, [[0] * 5 for _ in range(5)]
        optimizer = torch.optim.NAdam(model.parameters(), 5e-4)
        loader = DataLoader(given.violas(), batch, shuffle=True, drop_last=True)
        for step, (phrase, fingers) in enumerate(epochs(loader), 1):
            told = model(phrase)
            loss = functional.cross_entropy(told, fingers, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                given.mistaken(told.argmax(1), fingers, often)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


TWENTIETH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-bongos-from-the-first-beat": bongos,
    "run-domes-kept-small": domes,
    "run-aqueducts-drawn-again": aqueducts,
    "run-cellos-bows-searched": cellos,
    "run-banjos-other-songs": banjos,
    "run-sagas-each-operation": sagas,
    "run-violas-finger-by-finger": violas,
}


if __name__ == "__main__":
    programs4.main(TWENTIETH_B)
