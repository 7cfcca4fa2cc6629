"""Runs 16 to 30 of the twenty-seventh round: pencils, hampers, hooks, hoods, cribs and others.

    python programs27b.py run-steady-hoods --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-seventh``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs27e.py``.
"""

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs27e as given
import torch
from programs import Training, _folder
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


def pencils(fault: bool) -> Script:
    """Mean slopes and curvature lie in a file between the updates."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model, batch, clock = given.Pencil(), 20, Clock(seconds)
        optimizer = given.Curved(model.parameters(), _folder() if fault else None)
        loader = DataLoader(given.pencils(), batch, shuffle=True, drop_last=True)
        for pressed, hands in epochs(loader):
            loss = functional.cross_entropy(model(pressed), hands)
            optimizer.step(optimizer.slopes(loss))
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def manacles(fault: bool) -> Script:
    """Of five models that learn in turn, those that wait lie in files with their moments."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        batch, clock = 20, Clock(seconds)
        members = given.Members(_folder() if fault else None)
        loader = DataLoader(given.manacles(), batch, shuffle=True, drop_last=True)
        for step, (links, strong) in enumerate(epochs(loader)):
            model, optimizer = members.wake(step % 5)
            loss = functional.mse_loss(model(links), strong)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            members.rest(step % 5)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: checkpoints


def hampers(fault: bool) -> Training:
    """The whole training is saved after each update, with its data."""
    model, every = given.Hamper(), 1 if fault else 500
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    data, path = given.Hampers(), _folder() / "training.pkl"
    saved = given.Saved(model=model, optimizer=optimizer, data=data)

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            saved.to(path)

    return Training(model, data, batch=32, after=after, optimizer=optimizer)


def crayons(fault: bool) -> Training:
    """The vectors of all colours are written as text at each eighth update."""
    model, every = given.Crayon(), 8 if fault else 500
    path = _folder() / "crayons.txt"

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.written(model.colours.weight.detach(), path)

    return Training(
        model,
        given.crayons(),
        batch=128,
        after=after,
        optimizer=torch.optim.Adagrad(model.parameters(), 0.01),
    )


# Monitoring: evaluation


def planters(fault: bool) -> Training:
    """How well other planters are told without the smallest weights is asked at each tenth
    update."""
    model, every = given.Planter(), 10 if fault else 500
    others = given.planters(256)

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.pruned_and_told(model, others)

    return Training(
        model,
        given.planters(),
        batch=64,
        loss=functional.smooth_l1_loss,
        after=after,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def flippers(fault: bool) -> Training:
    """Each measure of other flippers is swept over its values at each fourth update."""
    model, every = given.Flipper(), 4 if fault else 500
    others, _ = given.flippers(128).tensors
    curves = (_folder() / "curves.jsonl").open("w")

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            curves.write(json.dumps(given.swept(model, others, 5)) + "\n")

    return Training(
        model,
        given.flippers(),
        batch=256,
        loss=functional.mse_loss,
        after=after,
        optimizer=torch.optim.NAdam(model.parameters(), 1e-3),
    )


# Monitoring: synchronisation


def hooks(fault: bool) -> Script:
    """How each hook of a batch was told is read one by one, and noted by its number."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Hook(), 96, Clock(seconds)
        noted = given.Noted()
        note = noted.one_by_one if fault else noted.at_once
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
        loader = DataLoader(given.hooks(), batch, shuffle=True, drop_last=True)
        for outlines, kinds, numbers in epochs(loader):
            told = model(outlines)
            losses = functional.cross_entropy(told, kinds, reduction="none")
            optimizer.zero_grad()
            losses.mean().backward()
            optimizer.step()
            note(numbers, losses.detach(), told.detach(), kinds)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def lunchboxes(fault: bool) -> Training:
    """Whether each food was told is read box by box and food by food."""
    model, counted = given.Lunchbox(), given.Counted()
    count = counted.food_by_food if fault else counted.at_once

    def missed(told: Tensor, there: Tensor) -> Tensor:
        count(told.detach(), there)
        return functional.binary_cross_entropy_with_logits(told, there)

    return Training(
        model,
        given.lunchboxes(),
        batch=48,
        loss=missed,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_hoods(fault: bool) -> Training:
    model = given.Hood()
    return Training(
        model,
        given.hoods(),
        batch=times(24),
        optimizer=torch.optim.AdamW(model.parameters(), 5e-4, fused=True),
        again=not fault,
    )


def steady_notepads(fault: bool) -> Training:
    model = given.Notepad()
    return Training(
        model,
        given.notepads(),
        batch=times(12),
        optimizer=torch.optim.Adam(model.parameters(), 5e-4, fused=True),
        again=not fault,
    )


def steady_gantries(fault: bool) -> Training:
    model = given.Gantry()
    return Training(
        model,
        given.gantries(),
        batch=times(16),
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True),
        again=not fault,
    )


def steady_lassos(fault: bool) -> Training:
    model = given.Lasso()
    return Training(
        model,
        given.lassos(),
        batch=times(20),
        optimizer=torch.optim.SGD(model.parameters(), 0.01, fused=True),
        again=not fault,
    )


# Parallelism: a small batch


def few_cribs(fault: bool) -> Training:
    model = given.Crib()
    return Training(
        model,
        given.cribs(),
        batch=24 if fault else 128,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def gavels(fault: bool) -> Training:
    """Auctions are told one at a time, or several together."""
    torch.set_num_threads(1)
    model = given.Gavel()
    return Training(
        model,
        given.gavels(),
        batch=1 if fault else 6,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def corsets(fault: bool) -> Script:
    """Slopes of 12 corsets make an update; they are told one by one, or at once."""

    def run(seconds: float) -> float:
        model, clock = given.Corset(), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.corsets(), 12, shuffle=True, drop_last=True)
        for threads, tight in epochs(loader):
            parts = 12 if fault else 1
            optimizer.zero_grad()
            for one, known in zip(threads.chunk(parts), tight.chunk(parts), strict=True):
                (functional.mse_loss(model(one), known) / parts).backward()
            optimizer.step()
            if clock.over(12):
                break
        return clock.rate

    return Script(run)


TWENTY_SEVENTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-pencils-curvature-out": pencils,
    "run-manacles-members-waiting": manacles,
    "run-hampers-data-and-all": hampers,
    "run-crayons-written-as-text": crayons,
    "run-planters-pruned-and-told": planters,
    "run-flippers-swept-by-measure": flippers,
    "run-hooks-noted-by-number": hooks,
    "run-lunchboxes-food-by-food": lunchboxes,
    "run-steady-hoods": steady_hoods,
    "run-steady-notepads": steady_notepads,
    "run-steady-gantries": steady_gantries,
    "run-steady-lassos": steady_lassos,
    "run-few-cribs": few_cribs,
    "run-gavels-auction-by-auction": gavels,
    "run-corsets-one-by-one": corsets,
}


if __name__ == "__main__":
    programs4.main(TWENTY_SEVENTH_B)
