"""Runs 16 to 30 of the twentieth round: bongos, domes, cellos, rigging, tubas, moats and others.

    python programs20b.py run-steady-rigging --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twentieth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs20e.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import programs4
import programs20e as given
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


# Memory: recomputation


def bongos(fault: bool) -> Training:
    model = given.Bongo(sparing=fault)
    return Training(
        model,
        given.bongos(),
        batch=24,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Monitoring: checkpoints


def domes(fault: bool) -> Training:
    """What is kept of a dome takes little room."""
    model, folder, every = given.Dome(), _folder(), 2 if fault else 500

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
    others, bowed = given.cellos(200).tensors

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
    """Each of fourteen other songs is told from its beginning to its end."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Banjo(), 128, Clock(seconds)
        every, songs = 2 if fault else 500, [given.banjos(500) for _ in range(14)]
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
                    sum(given.heard(model, *song.tensors) for song in songs) / len(songs)
                model.train()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: profiler


def sagas(fault: bool) -> Script:
    """What each operation takes is tallied, by the place that asked for it."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # the model is small
        model, batch, clock = given.Saga(), 24, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        tally: AbstractContextManager[Any] = given.Tally() if fault else nullcontext()
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
        torch.set_num_threads(1)  # the model is small
        model, batch, clock = given.Viola(), 96, Clock(seconds)
        every, often = 1 if fault else 500, [[0] * 5 for _ in range(5)]
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
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


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_rigging(fault: bool) -> Training:
    model = given.Rigging()
    return Training(
        model,
        given.rigging(),
        batch=times(32),
        loss=functional.mse_loss,
        optimizer=torch.optim.AdamW(model.parameters(), 5e-4, fused=True),
        again=not fault,
    )


def steady_mandolins(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Mandolin(), times(20), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        loader = DataLoader(given.mandolins(), batch, shuffle=True, drop_last=True)
        for wave, kind in endlessly(loader, not fault):
            loss = functional.cross_entropy(model(wave), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Parallelism: batch


def arches(fault: bool) -> Training:
    model = given.Arch()
    return Training(
        model,
        given.arches(),
        batch=10 if fault else 32,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def timpani(fault: bool) -> Script:
    """The strokes of an update pass through the model a few at a time, or together."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Timpano(), 48, Clock(seconds)
        few = 6 if fault else batch
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.timpani(), batch, shuffle=True, drop_last=True)
        for strokes, tuned in epochs(loader):
            optimizer.zero_grad()
            for stroke, right in zip(strokes.split(few), tuned.split(few), strict=True):
                loss = functional.smooth_l1_loss(model(stroke), right, reduction="sum")
                (loss / batch).backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def tubas(fault: bool) -> Script:
    """Tones are of any length, and so each is learnt from alone, or they are filled up."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Tuba(), 1 if fault else 20, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 5e-4)
        loader = DataLoader(given.Tones(), batch, True, collate_fn=given.together, drop_last=True)
        for tones, there, players in epochs(loader):
            loss = functional.cross_entropy(model(tones, there), players)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Parallelism: small operations


def haiku(fault: bool) -> Training:
    model = given.Haiku(in_turn=fault)
    return Training(
        model,
        given.haiku(),
        batch=16,
        optimizer=torch.optim.SGD(model.parameters(), 0.03, momentum=0.9),
    )


def semaphores(fault: bool) -> Training:
    model = given.Semaphore()
    return Training(
        model,
        given.semaphores(),
        batch=8,
        loss=given.flag_by_flag if fault else given.all_flags,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def moats(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # stones are small
        model, batch, clock = given.Moat(), 32, Clock(seconds)
        optimizer = given.Settling(model.parameters(), 1e-3, as_one=not fault)
        loader = DataLoader(given.moats(), batch, shuffle=True, drop_last=True)
        for wall, deep in epochs(loader):
            loss = functional.huber_loss(model(wall), deep)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
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
    "run-steady-rigging": steady_rigging,
    "run-steady-mandolins": steady_mandolins,
    "run-few-arches": arches,
    "run-timpani-few-strokes": timpani,
    "run-tubas-tone-by-tone": tubas,
    "run-haiku-syllable-by-syllable": haiku,
    "run-semaphores-flag-by-flag": semaphores,
    "run-moats-stone-by-stone": moats,
}


if __name__ == "__main__":
    programs4.main(TWENTIETH_B)
