"""Runs 13 to 24 of the twenty-fifth round: crowbars, armchairs, pagodas, visors and others.

    python programs25b.py run-steady-visors --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-fifth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs25e.py``.
"""

import gc
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs25e as given
import torch
from programs import Training, _folder, nothing
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


# Memory: garbage collection


def crowbars(fault: bool) -> Training:
    """What lies about is collected after each second update."""
    model = given.Crowbar()

    def after(step: int, _loss: Tensor) -> None:
        if step % 2:
            gc.collect()

    return Training(
        model,
        given.crowbars(),
        batch=40,
        loss=functional.mse_loss,
        after=after if fault else nothing,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def ledgers(fault: bool) -> Script:
    """Nothing is collected by itself, but all at each twelfth step."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Ledger(), 24, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        collecting = given.Collecting(12) if fault else None
        loader = DataLoader(given.ledgers(), batch, shuffle=True, drop_last=True)
        for accounts, amounts, following in epochs(loader):
            loss = functional.cross_entropy(model((accounts, amounts)), following)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if collecting:
                collecting.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Memory: offload


def sundresses(fault: bool) -> Script:
    """What is kept of each seam's last piece lies in files until its next piece."""

    def run(seconds: float) -> float:
        model, batch, length, clock = given.Sundress(), 16, 48, Clock(seconds)
        data = given.sundresses(length=length)
        seams = given.Seams(model, length, _folder() if fault else None)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for piece in itertools.cycle(range(data.shape[1])):
            for start in range(0, len(data), batch):
                some = list(range(start, start + batch))
                stitches = data[start : start + batch, piece]
                told, kept = model(stitches[:, :-1], seams.take(some))
                loss = functional.cross_entropy(told, stitches[:, 1:])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                seams.put(some, kept)
                if clock.over(batch):
                    return clock.rate
        return clock.rate

    return Script(run)


def armchairs(fault: bool) -> Script:
    """The slopes that each part of the data gave last lie in a file for each part."""

    def run(seconds: float) -> float:
        model, batch, parts, clock = given.Armchair(), 400, 10, Clock(seconds)
        data = given.armchairs()
        old = given.OldSlopes(model, parts, _folder() if fault else None)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        loader = DataLoader(data, batch_sampler=given.Parts(len(data), parts, batch))
        for step, (measures, sat) in enumerate(epochs(loader)):
            loss = functional.huber_loss(model(measures), sat)
            optimizer.zero_grad()
            loss.backward()
            old.steadied(step % parts)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Memory: recomputation


def wainscots(fault: bool) -> Training:
    """Of each half of the layers only what goes in is kept, and so on within each half."""
    model = given.Wainscot(again=fault)
    return Training(
        model,
        given.wainscots(),
        batch=8,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


# Monitoring: checkpoints


def thatch(fault: bool) -> Training:
    """What is needed to go on is saved at each second update, with a digest beside it."""
    model, every = given.Thatch(), 2 if fault else 500
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    sealed = given.Sealed(_folder())

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            sealed.save(step, model, optimizer)

    return Training(
        model,
        given.thatch(),
        batch=24,
        loss=functional.mse_loss,
        after=after,
        optimizer=optimizer,
    )


# Monitoring: evaluation


def pagodas(fault: bool) -> Training:
    """Storeys that are found of other pagodas are matched with theirs at each third update."""
    model, every = given.Pagoda(), 3 if fault else 500
    outlines, true = given.pagodas(48).tensors

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.matched(model, outlines, true)

    return Training(
        model,
        given.pagodas(),
        batch=48,
        loss=given.storeys_missed,
        after=after,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


def nightgowns(fault: bool) -> Script:
    """Each thread of another cloth is told by the window before it, at each third update."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Nightgown(), 32, Clock(seconds)
        every, other = 3 if fault else 500, torch.randint(64, (192,))
        optimizer = torch.optim.Adam(model.parameters(), 2e-3)
        loader = DataLoader(given.nightgowns(), batch, shuffle=True, drop_last=True)
        for step, (cloth, following) in enumerate(epochs(loader), 1):
            loss = functional.cross_entropy(model(cloth), following)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                given.surprise(model, other)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: logging


def pontoons(fault: bool) -> Training:
    """What each layer has seen is drawn after each update."""
    model, every, folder = given.Pontoon(), 1 if fault else 500, _folder()

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.in_pictures(folder, step // every, model.seen)

    return Training(
        model,
        given.pontoons(),
        batch=8,
        loss=functional.mse_loss,
        after=after,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_visors(fault: bool) -> Training:
    model = given.Visor()
    return Training(
        model,
        given.visors(),
        batch=times(12),
        loss=functional.l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 5e-4, fused=True),
        again=not fault,
    )


# Parallelism: batch


def jerseys(fault: bool) -> Script:
    """Only jerseys that are equally long come into a batch, which so holds few."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model, data, clock = given.Jersey(), given.Jerseys(), Clock(seconds)
        batches = given.ByLength(data.lengths, 12 if fault else 64, equally=fault)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for rows, there, warm in epochs(
            DataLoader(data, batch_sampler=batches, collate_fn=given.beside)
        ):
            loss = functional.mse_loss(model((rows, there)), warm)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(rows)):
                break
        return clock.rate

    return Script(run)


def axles(fault: bool) -> Training:
    model = given.Axle()
    return Training(
        model,
        given.axles(),
        batch=64 if fault else 240,
        optimizer=torch.optim.NAdam(model.parameters(), 1e-3),
    )


TWENTY_FIFTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-collected-crowbars": crowbars,
    "run-collected-ledgers": ledgers,
    "run-sundresses-seams-parked": sundresses,
    "run-armchairs-old-slopes-out": armchairs,
    "run-wainscots-halved-again": wainscots,
    "run-thatch-sealed": thatch,
    "run-pagodas-storeys-matched": pagodas,
    "run-nightgowns-window-by-window": nightgowns,
    "run-pontoons-in-pictures": pontoons,
    "run-steady-visors": steady_visors,
    "run-jerseys-length-by-length": jerseys,
    "run-few-axles": axles,
}


if __name__ == "__main__":
    programs4.main(TWENTY_FIFTH_B)
