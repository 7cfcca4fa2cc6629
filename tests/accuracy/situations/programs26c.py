"""The last 15 trainings of the twenty-sixth round: clamps, bibs, alcoves, bridles and others.

    python programs26c.py run-double-tongs --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-sixth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs26f.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs26f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch.nn import functional
from torch.utils.data import DataLoader


def times(batch: int) -> int:
    """Return the batch, or as many times that as the one who proves a healthy run asks for."""
    return batch * int(os.environ.get("TIMES_THE_BATCH", "1"))


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Nothing wrong: without the loader they are no faster


def steady_clamps(fault: bool) -> Training:
    model = given.Clamp()
    return Training(
        model,
        given.clamps(),
        batch=times(16),
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.02, fused=True),
        again=not fault,
    )


def steady_jackets(fault: bool) -> Training:
    layout = torch.channels_last
    model = given.Jacket().to(memory_format=layout)
    return Training(
        model,
        given.jackets(),
        batch=times(12),
        prepare=lambda x: x.to(memory_format=layout),
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True),
        again=not fault,
    )


def steady_mugs(fault: bool) -> Training:
    model = given.Mug()
    return Training(
        model,
        given.mugs(),
        batch=times(8),
        optimizer=torch.optim.AdamW(model.parameters(), 3e-4, fused=True),
        again=not fault,
    )


# Parallelism: small operations


def bibs(fault: bool) -> Training:
    """What is missed is told bib by bib, and kind by kind of stain."""
    torch.set_num_threads(1)
    model = given.Bib()
    return Training(
        model,
        given.bibs(),
        batch=8,
        loss=given.missed_one_by_one if fault else given.missed_at_once,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def parkas(fault: bool) -> Script:
    """Each parka goes through the layers by itself, as each has a number of chambers of its own."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model, batch, clock = given.Parka(), 64, Clock(seconds)
        told = model.one_by_one if fault else model.all_at_once
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        loader = DataLoader(
            given.parkas(), batch, shuffle=True, drop_last=True, collate_fn=given.hung_up
        )
        for down, cold in epochs(loader):
            loss = functional.cross_entropy(told(down), cold)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: affinity


def alcoves(fault: bool) -> Training:
    """A library that is loaded keeps the process on its first core; the threads stay as many."""
    torch.set_num_threads(CORES)
    if fault:
        given.bind_to_first()
    model = given.Alcove()
    return Training(
        model,
        given.alcoves(),
        batch=120,
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, fused=True),
    )


# Scheduling: other programs and quotas are put in by the generator


def berets(_fault: bool) -> Training:
    torch.set_num_threads(1)  # felt is made in other programs beside it
    model = given.Beret()
    return Training(
        model,
        given.berets(),
        batch=24,
        optimizer=torch.optim.NAdam(model.parameters(), 1e-3),
    )


def cakestands(_fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Cakestand()
    return Training(
        model,
        given.cakestands(),
        batch=64,
        optimizer=torch.optim.Adagrad(model.parameters(), 0.02),
    )


def cisterns(_fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Cistern()
    return Training(
        model,
        given.cisterns(),
        batch=32,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 2e-3),
    )


# Tuning: attention


def bridles(fault: bool) -> Training:
    """The layer of attention is asked for its weights too, which nobody uses."""
    torch.set_num_threads(1)
    model = given.Bridle(wanted=fault)
    return Training(
        model,
        given.bridles(),
        batch=1,
        loss=functional.huber_loss,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Tuning: kernels


def amulets(fault: bool) -> Training:
    """Equations are solved by a pseudo-inverse, which takes a singular value decomposition."""
    torch.set_num_threads(1)
    model = given.Amulet(pseudo=fault)
    return Training(
        model,
        given.amulets(),
        batch=8,
        optimizer=torch.optim.SGD(model.parameters(), 1e-3),
    )


# Tuning: precision


def basins(fault: bool) -> Training:
    """A layer from elsewhere is kept in brain floats, as it was saved."""
    torch.set_num_threads(1)
    model = given.Basin(kept=fault)
    return Training(
        model,
        given.basins(),
        batch=32,
        loss=functional.l1_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01),
    )


def tongs(fault: bool) -> Training:
    """What was measured is of double precision, and so are the waves and the layer on it."""
    torch.set_num_threads(1)
    measured = torch.float64 if fault else torch.float32
    model = given.Tong(measured)
    return Training(
        model,
        given.tongs(measured),
        batch=32,
        optimizer=torch.optim.SGD(model.parameters(), 0.02, momentum=0.9),
    )


# Seen from outside


def bungalows(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Bungalow(), 64, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for rooms, weather, costs in epochs(DataLoader(given.bungalows(), batch, True)):
            loss = functional.smooth_l1_loss(model(rooms, weather), costs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(costs)):
                break
        return clock.rate

    return Script(run)


def fenders(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Fender(), 16, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        for light, dents, deep in epochs(DataLoader(given.fenders(), batch, True)):
            where, guessed = model(light)
            loss = functional.binary_cross_entropy_with_logits(where, dents)
            loss = loss + functional.l1_loss(guessed * dents, deep * dents)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(light)):
                break
        return clock.rate

    return Script(run)


TWENTY_SIXTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-steady-clamps": steady_clamps,
    "run-steady-jackets": steady_jackets,
    "run-steady-mugs": steady_mugs,
    "run-bibs-stain-by-stain": bibs,
    "run-parkas-one-by-one": parkas,
    "run-alcoves-bound-when-loaded": alcoves,
    "run-berets-beside-felters": berets,
    "run-cakestands-quota": cakestands,
    "run-cisterns-quota": cisterns,
    "run-bridles-weights-wanted": bridles,
    "run-amulets-pseudo-inverted": amulets,
    "run-basins-brain-floats": basins,
    "run-double-tongs": tongs,
    "run-seen-bungalows": bungalows,
    "run-seen-fenders": fenders,
}


if __name__ == "__main__":
    programs4.main(TWENTY_SIXTH_C)
