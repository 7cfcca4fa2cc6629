"""Runs 16 to 30 of the fifteenth round: copper, beans, salt, cedars, peanuts, wax and others.

    python programs15b.py run-few-cedars --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --fifteenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs15e.py``.
"""

import heapq
import os
from collections.abc import Callable, Iterable
from typing import Any

import programs4
import programs15e as given
import torch
from programs import Training, _endlessly, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, RandomSampler


def times(batch: int) -> int:
    """Return the batch, or several times as much where the proof asks for it."""
    return batch * int(os.environ.get("TIMES_THE_BATCH", "1"))


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


# Monitoring


def copper(fault: bool) -> Training:
    model, every, folder = given.Copper(), 1 if fault else 500, _folder()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def after(step: int, loss: Tensor) -> None:
        if step % every == every - 1:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            given.saved(state | {"step": step, "loss": loss.detach()}, folder)

    return Training(
        model, given.cells(), 24, loss=functional.mse_loss, after=after, optimizer=optimizer
    )


def beans(fault: bool) -> Script:
    """How well other beans are told, and between which bounds that surely lies."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Bean(), 24, Clock(seconds)
        every, others = 2 if fault else 500, DataLoader(given.beans(320), 64)
        optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
        loader = DataLoader(given.beans(), batch, shuffle=True, drop_last=True)
        for step, (bean, kind) in enumerate(endlessly(loader), 1):
            loss = functional.cross_entropy(model(bean), kind, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                model.eval()
                with torch.no_grad():
                    right = torch.cat([model(other).argmax(1) == known for other, known in others])
                given.resampled(right.numpy())
                model.train()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def salt(fault: bool) -> Training:
    """A chart shows in a browser how it goes."""
    model, every = given.Salt(), 1 if fault else 500
    chart = given.Chart(_folder() / "chart.png")

    def after(step: int, loss: Tensor) -> None:
        if step % every == 0:
            chart.draw(loss.item(), model)

    return Training(
        model,
        given.brines(),
        batch=32,
        loss=functional.l1_loss,
        after=after,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def tin(fault: bool) -> Script:
    """How large the slopes of each unit are beside its weights: those that stand still count."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Tin(), 64, Clock(seconds)
        every, still = 1 if fault else 500, 0
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
        loader = DataLoader(given.plates(), batch, shuffle=True, drop_last=True)
        for step, (plate, known) in enumerate(endlessly(loader), 1):
            loss = functional.cross_entropy(model(plate), known)
            optimizer.zero_grad()
            loss.backward()
            if step % every == 0:
                for weight in model.parameters():
                    if weight.dim() == 2 and weight.grad is not None:
                        for slope in weight.grad:
                            if slope.abs().max().item() < 1e-6:
                                still += 1
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def potatoes(fault: bool) -> Script:
    """The potatoes that were told worst are kept, to be looked at by eye."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Potato(), 256, Clock(seconds)
        every, worst = 1 if fault else 500, list[tuple[float, int, float]]()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        known = given.potatoes()
        drawn = BatchSampler(RandomSampler(known), batch, drop_last=True)
        loader = DataLoader(known, batch_size=None, sampler=drawn)
        for step, (shadows, grams, number) in enumerate(endlessly(loader), 1):
            told = model(shadows)
            missed = (told - grams).square()
            optimizer.zero_grad()
            missed.mean().backward()
            optimizer.step()
            if step % every == 0:
                for potato in range(batch):
                    found = (missed[potato].item(), number[potato].item(), told[potato].item())
                    worst = heapq.nlargest(20, [*worst, found]) if len(worst) < 20 else worst
                    if found > worst[-1]:
                        worst = sorted([*worst[:-1], found], reverse=True)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_clay(fault: bool) -> Training:
    model = given.Clay()
    return Training(
        model,
        given.sections(),
        batch=times(40),
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        again=not fault,
    )


def steady_octopuses(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Octopus(), times(20), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
        loader = DataLoader(given.arms(), batch, shuffle=True, drop_last=True)
        for arms, deed in endlessly(loader, not fault):
            loss = functional.cross_entropy(model(arms), deed)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_yoghurt(fault: bool) -> Training:
    model, pots, batch = given.Yoghurt(), given.Pots(), times(1024)
    return Training(
        model,
        batch=batch,
        loader=DataLoader(pots, batch, True, collate_fn=given.as_they_are, drop_last=True),
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01),
        again=not fault,
    )


def steady_plums(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Plum(), times(8), Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.scans(), batch, shuffle=True, drop_last=True)
        for (scan,) in endlessly(loader, not fault):
            loss = functional.mse_loss(model(scan), scan)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Too little at once


def few_cedars(fault: bool) -> Training:
    model = given.Cedar()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.trunks(), batch=4 if fault else 32, optimizer=optimizer)


def peanuts(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Peanut(), 1 if fault else 4, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
        plants = given.Peanuts()
        loader = DataLoader(plants, batch, True, collate_fn=given.side_by_side, drop_last=True)
        for pods, whose, known in endlessly(loader):
            loss = functional.smooth_l1_loss(model(pods, whose, len(known)), known)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(known)):
                break
        return clock.rate

    return Script(run)


def penguins(fault: bool) -> Training:
    model, data = given.Penguin(), given.calls()
    nests = given.Nests(400, 4, at_once=1 if fault else 5)
    return Training(
        model,
        loader=DataLoader(data, batch_sampler=nests),
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Too little in each operation


def wax(fault: bool) -> Training:
    model = given.Wax(at_once=not fault)
    return Training(
        model,
        given.candles(),
        batch=64,
        loss=functional.huber_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def worms(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Worm(at_once=not fault), 16, Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        loader = DataLoader(given.crawls(), batch, shuffle=True, drop_last=True)
        for rings, where in endlessly(loader):
            loss = functional.mse_loss(model(rings), where)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def slate(fault: bool) -> Training:
    model = given.Slate(at_once=not fault)
    optimizer = torch.optim.Adagrad(model.parameters(), 1e-2)
    return Training(model, given.slates(), batch=32, optimizer=optimizer)


FIFTEENTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-copper-saved": copper,
    "run-beans-resampled": beans,
    "run-salt-charted": salt,
    "run-tin-weight-by-weight": tin,
    "run-potatoes-worst-told": potatoes,
    "run-steady-clay": steady_clay,
    "run-steady-octopuses": steady_octopuses,
    "run-steady-yoghurt": steady_yoghurt,
    "run-steady-plums": steady_plums,
    "run-few-cedars": few_cedars,
    "run-peanuts-plant-by-plant": peanuts,
    "run-penguins-nest-by-nest": penguins,
    "run-wax-layer-by-layer": wax,
    "run-worms-ring-by-ring": worms,
    "run-slate-pair-by-pair": slate,
}


if __name__ == "__main__":
    programs4.main(FIFTEENTH_B)
