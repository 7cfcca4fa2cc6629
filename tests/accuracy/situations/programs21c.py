"""The last 15 trainings of the twenty-first round: sunspots, lagoons, fjords, jade and others.

    python programs21c.py run-double-moraines --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-first``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs21f.py``.
"""

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import programs4
import programs21f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Scheduling: other programs and quotas are put in by the generator


def sunspots(fault: bool) -> Script:
    """Half of the cores is for the training, the other half for who looks at the sun meanwhile."""
    torch.set_num_threads(2)  # as many as the computer has cores
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[: max(1, len(cores) // 2)] if fault else cores)

    def run(seconds: float) -> float:
        model, batch, clock = given.Sunspot(), 64, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        loader = epochs(DataLoader(given.discs(), batch, True, drop_last=True))
        with ThreadPoolExecutor(1) as before:
            coming = before.submit(given.evened, loader)
            while True:
                disc, flare = coming.result()
                coming = before.submit(given.evened, loader)
                loss = functional.cross_entropy(model(disc), flare)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if clock.over(batch):
                    break
        return clock.rate

    return Script(run)


def gravel_pits(_fault: bool) -> Training:
    torch.set_num_threads(1)  # the lists of the weighbridges are added up beside it
    model = given.GravelPit()
    return Training(
        model,
        given.sieved(),
        batch=24,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


def horseshoes(_fault: bool) -> Script:
    torch.set_num_threads(1)  # as the forge's computer does other things too

    def run(seconds: float) -> float:
        model, batch, clock = given.Horseshoe(), 16, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for picture, foot, size in epochs(DataLoader(given.hooves(), batch, True, drop_last=True)):
            told, measured = model(picture)
            loss = functional.cross_entropy(told, foot) + functional.mse_loss(measured, size)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def lagoons(_fault: bool) -> Training:
    torch.set_num_threads(2)  # as many as the computer has cores
    model = given.Lagoon()
    return Training(
        model,
        given.lagoons(),
        batch=5,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def seismographs(_fault: bool) -> Script:
    torch.set_num_threads(1)  # a small computer stands beside each of them

    def run(seconds: float) -> float:
        model, batch, clock = given.Seismograph(), 16, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for written, when in epochs(DataLoader(given.shocks(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(written), when, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: threads


def fjords(fault: bool) -> Training:
    """Each section of a batch is thought to have a thread of its own."""
    batch = 4
    torch.set_num_threads(batch if fault else CORES)
    model = given.Fjord()
    return Training(
        model,
        given.sections(),
        batch=batch,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


def eclipses(fault: bool) -> Training:
    """Sums are to be the same on every computer, so that none is made in parts."""
    torch.manual_seed(1919)
    torch.set_num_threads(1 if fault else CORES)
    model = given.Eclipse()
    return Training(
        model,
        given.eclipses(),
        batch=128,
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01),
    )


@contextmanager
def with_threads(count: int) -> Iterator[None]:
    """Compute with so many threads meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


def parachutes(fault: bool) -> Script:
    """The way back has more to do than the way there, for which it gets more threads."""
    there, back = CORES, 2 * CORES if fault else CORES

    def run(seconds: float) -> float:
        torch.set_num_threads(there)
        model, batch, clock = given.Parachute(), 24, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for forces, opened in epochs(DataLoader(given.openings(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(forces), opened)
            optimizer.zero_grad()
            with with_threads(back):
                loss.backward()
                optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: attention


def balconies(fault: bool) -> Training:
    model = given.Balcony(written=fault)
    return Training(
        model,
        given.streets(),
        batch=3,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Tuning: precision


def moraines(fault: bool) -> Training:
    """Millimetres are to be told apart, thousands of metres above the sea."""
    kind = torch.float64 if fault else torch.float32
    model = given.Moraine().to(kind)
    return Training(
        model,
        given.valleys(kind),
        batch=2,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


def jade(fault: bool) -> Script:
    """What is multiplied takes half the room, and slopes are made larger for it."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Jade(), 48, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        larger = torch.amp.GradScaler("cpu", enabled=fault)
        for spectrum, mine in epochs(DataLoader(given.spectra(), batch, True, drop_last=True)):
            with torch.autocast("cpu", torch.float16, enabled=fault):
                told = model(spectrum)
            loss = functional.cross_entropy(told.float(), mine)
            optimizer.zero_grad()
            larger.scale(loss).backward()
            larger.step(optimizer)
            larger.update()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: shapes


def sawdust(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Sawdust(), 8, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        laid = functools.partial(given.on_glass, side=given.GLASS if fault else None)
        loader = DataLoader(given.sawdust(), batch, True, collate_fn=laid, drop_last=True)
        for grains, wood in epochs(loader):
            loss = functional.cross_entropy(model(grains), wood)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Seen from outside


def metronomes(_fault: bool) -> Training:
    model = given.Metronome()
    return Training(
        model,
        given.boards(),
        batch=16,
        loss=functional.l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 2e-3),
    )


def saddles(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Saddle(), 12, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
        loader = DataLoader(given.saddles(), batch, shuffle=True, drop_last=True)
        for first, weight, later in epochs(loader):
            loss = functional.smooth_l1_loss(model(first, weight), later)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def carriages(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Carriage(), 64, Clock(seconds)
        optimizer = torch.optim.Adagrad(model.parameters(), 0.02)
        for been, offered in epochs(DataLoader(given.journeys(), batch, True, drop_last=True)):
            taken, left = model(been, offered).unbind(1)
            loss = -functional.logsigmoid(taken - left).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


TWENTY_FIRST_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-sunspots-half-the-cores": sunspots,
    "run-gravel-pits-beside-weighbridges": gravel_pits,
    "run-horseshoes-beside-gaits": horseshoes,
    "run-lagoons-quota": lagoons,
    "run-seismographs-quota": seismographs,
    "run-fjords-a-thread-each": fjords,
    "run-eclipses-one-thread": eclipses,
    "run-crowded-parachutes": parachutes,
    "run-balconies-own-attention": balconies,
    "run-double-moraines": moraines,
    "run-half-jade": jade,
    "run-sawdust-filled-up": sawdust,
    "run-seen-metronomes": metronomes,
    "run-seen-saddles": saddles,
    "run-seen-carriages": carriages,
}


if __name__ == "__main__":
    programs4.main(TWENTY_FIRST_C)
