"""The second half of the tenth round's trainings: claims, mushrooms, pulsars, rivers and others.

    python programs10b.py run-few-rivers --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``; models and data are in
``programs10f.py``, ``programs10g.py`` and ``programs10h.py``.
"""

import copy
import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import programs4
import programs10f as first
import programs10g as second
import programs10h as third
import torch
from programs import Training, _endlessly
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

squared = nn.functional.mse_loss
either = nn.functional.binary_cross_entropy_with_logits


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


# Nothing: without the loader it is no faster


def steady_claims(fault: bool) -> Script:
    """A table in memory, of which a batch of rows is taken at once."""

    def run(seconds: float) -> float:
        model, data, batch = first.Claims(), first.policies(), 1024
        chosen = BatchSampler(RandomSampler(data), batch, drop_last=True)
        loader = DataLoader(data, sampler=chosen, batch_size=None)
        optimizer = torch.optim.AdamW(model.parameters(), weight_decay=1e-4)
        rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, 20_000)
        deviance, clock = nn.PoissonNLLLoss(), Clock(seconds)
        for kinds, numbers, exposed, claims in endlessly(loader, not fault):
            loss = deviance(model(kinds, numbers, exposed), claims)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            rate.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_mushrooms(fault: bool) -> Training:
    def prepare(bytes_: Tensor) -> Tensor:
        pictures = bytes_.float().sub_(127.5).div_(64)
        return pictures.flip(3) if torch.rand(()) < 0.5 else pictures

    model = first.Mushroom()
    return Training(
        model,
        first.mushrooms(),
        batch=10,
        prepare=prepare,
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        again=not fault,
        optimizer=torch.optim.SGD(model.parameters(), 0.02, 0.9, weight_decay=5e-4, nesterov=True),
    )


def steady_pulsars(fault: bool) -> Script:
    """The gradients of two batches make an update."""

    def run(seconds: float) -> float:
        model, batch, clock = first.Candidate(), 16, Clock(seconds)
        loader = DataLoader(first.Folded(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(model.parameters(), 3e-4)
        for number, views in enumerate(endlessly(loader, not fault)):
            wanted = views["pulsar"]
            (first.focal(model(views), wanted) / 2).backward()
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()
                if clock.over(2 * batch):
                    break
        return clock.rate

    return Script(run)


# Too little at once


def few_rivers(fault: bool) -> Training:
    model = first.River()

    def clipped(trained: nn.Module) -> None:
        nn.utils.clip_grad_norm_(trained.parameters(), 1.0)

    return Training(
        model,
        first.seasons(),
        batch=4 if fault else 32,
        loss=first.by_its_spread,
        before_update=clipped,
        optimizer=torch.optim.Adam(model.parameters(), 5e-4),
    )


def throw_by_throw(fault: bool) -> Script:
    """What a throw is worth comes from an older copy of the model, which follows it slowly."""

    def run(seconds: float) -> float:
        model, batch, clock = first.Thrower(), 1 if fault else 8, Clock(seconds)
        older = copy.deepcopy(model).requires_grad_(False)
        loader = DataLoader(first.throws(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.RAdam(model.parameters(), 1e-4)
        for state, done, won, then in endlessly(loader):
            with torch.no_grad():
                wanted = won + 0.99 * older(then).amax(1)
            told = model(state).gather(1, done[:, None])[:, 0]
            optimizer.zero_grad()
            nn.functional.smooth_l1_loss(told, wanted).backward()
            optimizer.step()
            torch._foreach_lerp_(list(older.parameters()), list(model.parameters()), 0.005)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def few_panes(fault: bool) -> Training:
    model = first.Cracked()
    return Training(
        model,
        first.panes(),
        batch=1 if fault else 8,
        loss=first.overlapping,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-4, momentum=0.9),
    )


def wires_in_turn(fault: bool) -> Training:
    measured = first.in_turn if fault else first.at_once

    def loss(places: Tensor, wires: Tensor) -> Tensor:
        return measured(places, wires) + 4 * first.crowded(places)

    return Training(first.Layout(), first.circuits(), batch=2, loss=loss)


# Scheduling: all but the counts of threads are put in by the generator


def perfumes(_fault: bool) -> Training:
    """The script asks for a thread for each core of the computer."""
    torch.set_num_threads(os.cpu_count() or 1)
    model = first.Scent()
    optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
    return Training(model, first.scents(), 32, workers=2, loss=either, optimizer=optimizer)


def aurora(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = first.Curtain(), 4, Clock(seconds)
        loader = DataLoader(first.films(), batch, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        rate = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1000, gamma=0.5)
        for film, kind in endlessly(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(film), kind).backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            rate.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def poems(_fault: bool) -> Training:
    model = second.Poem()
    return Training(
        model,
        second.poems(),
        batch=4,
        loss=second.each_letter,
        optimizer=torch.optim.AdamW(model.parameters(), 3e-4, betas=(0.9, 0.95)),
    )


def taxis(_fault: bool) -> Training:
    model = second.Ride()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return Training(
        model, second.rides(), batch=200, loss=second.as_the_crow_flies, optimizer=optimizer
    )


def sudoku(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = second.Crooked(), 4, Clock(seconds)
        loader = DataLoader(second.grids(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), 6e-4, weight_decay=0.1)
        rate = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 500)
        for grid, digits in endlessly(loader):
            loss = second.after_each_round(model(grid), digits)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def hives(_fault: bool) -> Training:
    model = second.Hive()
    return Training(
        model, second.hums(), batch=12, optimizer=torch.optim.Adam(model.parameters(), 1e-3)
    )


def milk(fault: bool) -> Training:
    if fault:
        torch.set_num_threads(32)  # as on the computer that the script was written on
    model = second.Lactation()
    return Training(
        model,
        second.lactations(),
        batch=32,
        loss=second.quantiles,
        optimizer=torch.optim.Adam(model.parameters(), 2e-3, amsgrad=True),
    )


# Untuned


def written_coughs(fault: bool) -> Training:
    model = second.Cough(written=fault)
    return Training(
        model, second.coughs(), batch=8, optimizer=torch.optim.AdamW(model.parameters(), 1e-3)
    )


def summed_queues(fault: bool) -> Training:
    model = second.Queue(written=fault)
    return Training(
        model,
        second.queues(),
        batch=6,
        loss=nn.functional.huber_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def turned_proverbs(fault: bool) -> Training:
    """The vectors of words lie in the file as columns; they are turned when they are read."""
    columns = torch.from_numpy(np.random.standard_normal((240, 16384))).float()
    vectors = columns.T if fault else columns.T.contiguous()
    model = second.Proverbs(vectors)
    return Training(model, second.sayings(), batch=32, loss=second.its_own)


def half_locks(fault: bool) -> Training:
    model = third.Locks()
    if fault:
        model.half()

    def loss(scores: Tensor, doors: Tensor) -> Tensor:
        return third.next_door(scores.float(), doors)

    return Training(model, third.openings(), batch=16, loss=loss)


def autocast_maps(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = third.Legend(), 3, Clock(seconds)
        loader = DataLoader(third.sheets(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
        for sheet, kinds in endlessly(loader):
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=fault):
                loss = nn.functional.cross_entropy(model(sheet), kinds)
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def double_pumps(fault: bool) -> Training:
    """The measurements come from a table of doubles; all of torch was made to fit them."""
    if fault:
        torch.set_default_dtype(torch.float64)
    model = third.Pump()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, third.hours(), batch=48, loss=squared, optimizer=optimizer)


# Seen from outside


def parking(_fault: bool) -> Training:
    model = third.Parking()
    optimizer = torch.optim.Adamax(model.parameters())
    return Training(model, third.spaces(), batch=8, loss=either, optimizer=optimizer)


def knees(_fault: bool) -> Training:
    return Training(third.Knee(), third.scans(), batch=1, loss=partial(either, reduction="sum"))


TENTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-steady-claims": steady_claims,
    "run-steady-mushrooms": steady_mushrooms,
    "run-steady-pulsars": steady_pulsars,
    "run-few-rivers": few_rivers,
    "run-throw-by-throw": throw_by_throw,
    "run-few-panes": few_panes,
    "run-wires-in-turn": wires_in_turn,
    "run-perfumes-one-core": perfumes,
    "run-beside-aurora": aurora,
    "run-poems-quota": poems,
    "run-taxis-quota": taxis,
    "run-sudoku-quota": sudoku,
    "run-hives-one-thread": hives,
    "run-crowded-milk": milk,
    "run-written-coughs": written_coughs,
    "run-summed-queues": summed_queues,
    "run-turned-proverbs": turned_proverbs,
    "run-half-locks": half_locks,
    "run-autocast-maps": autocast_maps,
    "run-double-pumps": double_pumps,
    "run-seen-parking": parking,
    "run-seen-knees": knees,
}


if __name__ == "__main__":
    programs4.main(TENTH_B)
