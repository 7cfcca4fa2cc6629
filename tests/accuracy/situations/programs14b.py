"""Runs 16 to 30 of the fourteenth round: looms, hazelnuts, starfish, knots, walnuts and others.

    python programs14b.py run-few-knots --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --fourteenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs14e.py``.
"""

from collections.abc import Callable, Iterable
from typing import Any

import programs4
import programs14e as given
import torch
from programs import Training, _endlessly, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


# Monitoring


def looms(fault: bool) -> Script:
    """How weights and slopes are spread is kept in a book, with what is told of each thread."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Loom(), 8, Clock(seconds)
        book, every = given.Weavers(_folder() / "book.jsonl"), 1 if fault else 500
        loader = DataLoader(given.weavings(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
        for step, (pull, broken) in enumerate(endlessly(loader), 1):
            told = model(pull)
            loss = functional.cross_entropy(told, broken)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                book.page(step, loss, model, pull, told)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def hazelnuts(fault: bool) -> Script:
    """Which kinds are taken for which is counted point by point."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Hazelnut(), 8, Clock(seconds)
        every, taken = 1 if fault else 500, [[0] * 6 for _ in range(6)]
        loader = DataLoader(given.belts(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        for step, (picture, kinds) in enumerate(endlessly(loader), 1):
            told = model(picture)
            loss = functional.cross_entropy(told, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                for kind, known in zip(told.argmax(1).flatten(), kinds.flatten(), strict=True):
                    taken[int(known)][int(kind)] += 1
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster


def steady_starfish(fault: bool) -> Training:
    model = given.Starfish()
    return Training(
        model,
        given.rocks(),
        batch=3,
        loss=given.overlapping,
        optimizer=torch.optim.Adam(model.parameters(), 3e-4),
        again=not fault,
    )


def steady_spindles(fault: bool) -> Training:
    model = given.Spindle()
    return Training(
        model,
        given.spinnings(),
        batch=6,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.AdamW(model.parameters(), 5e-4, weight_decay=0.05),
        again=not fault,
    )


def steady_barley(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Barley(), 6, Clock(seconds)
        loader = DataLoader(given.acres(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4, betas=(0.9, 0.95))
        for (spectrum,) in endlessly(loader, not fault):
            loss = model(spectrum)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_onions(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Onion(), 12, Clock(seconds)
        loader = DataLoader(given.cuts(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(model.parameters(), 3e-4)
        for (cut,) in endlessly(loader, not fault):
            told, middle, spread = model(cut)
            loss = functional.binary_cross_entropy_with_logits(told, cut)
            loss = loss + 1e-3 * (middle.square() + spread.exp() - spread - 1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_zithers(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Zither(), 4, Clock(seconds)
        loader = DataLoader(given.tunes(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
        for (tune,) in endlessly(loader, not fault):
            told = model(tune[:, :-1])
            loss = functional.cross_entropy(told.flatten(0, 1), tune[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_ladybirds(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Ladybird(), 5, Clock(seconds)
        loader = DataLoader(given.backs(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
        for back, kind, spots in endlessly(loader, not fault):
            told, many = model(back)
            loss = functional.cross_entropy(told, kind)
            loss = loss + functional.huber_loss(many, spots) / 10
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Too little at once


def few_knots(fault: bool) -> Training:
    model = given.Knot()
    optimizer = torch.optim.RAdam(model.parameters(), 1e-3)
    return Training(model, given.loops(), batch=8 if fault else 40, optimizer=optimizer)


def chestnuts(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, data, clock = given.Chestnut(), given.Chestnuts(), Clock(seconds)
        alike = given.Alike(data.sizes, budget=300 if fault else 2400)
        loader = DataLoader(data, batch_sampler=alike, collate_fn=given.filled)
        optimizer = torch.optim.Adamax(model.parameters(), 1e-3)
        for points, absent, weight in endlessly(loader):
            loss = functional.mse_loss(model(points, absent), weight)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(len(weight)):
                break
        return clock.rate

    return Script(run)


# Too little in each operation


def walnuts(fault: bool) -> Training:
    model = given.Walnut(at_once=not fault)
    return Training(
        model,
        given.shells(),
        batch=4,
        loss=functional.l1_loss,
        optimizer=torch.optim.NAdam(model.parameters(), 1e-3),
    )


def waffles(fault: bool) -> Training:
    model = given.Waffle()
    return Training(
        model,
        given.bakings(),
        batch=16,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3, fused=not fault),
    )


def eels(fault: bool) -> Training:
    model = given.Eel(sums=not fault)
    optimizer = torch.optim.Adam(model.parameters(), 5e-4)
    return Training(
        model, given.swimmings(), batch=16, loss=functional.smooth_l1_loss, optimizer=optimizer
    )


def roses(fault: bool) -> Training:
    model = given.Rose()

    def loss(told: Tensor, known: Tensor) -> Tensor:
        return given.missed(told, known, at_once=not fault)

    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    return Training(model, given.blossoms(), batch=8, loss=loss, optimizer=optimizer)


def tulips(fault: bool) -> Training:
    model = given.Tulip(at_once=not fault)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    return Training(model, given.winters(), batch=6, optimizer=optimizer)


FOURTEENTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-looms-written-down": looms,
    "run-hazelnuts-nut-by-nut": hazelnuts,
    "run-steady-starfish": steady_starfish,
    "run-steady-spindles": steady_spindles,
    "run-steady-barley": steady_barley,
    "run-steady-onions": steady_onions,
    "run-steady-zithers": steady_zithers,
    "run-steady-ladybirds": steady_ladybirds,
    "run-few-knots": few_knots,
    "run-chestnuts-by-budget": chestnuts,
    "run-walnuts-crack-by-crack": walnuts,
    "run-waffles-cell-by-cell": waffles,
    "run-eels-bend-by-bend": eels,
    "run-roses-petal-by-petal": roses,
    "run-tulips-head-by-head": tulips,
}


if __name__ == "__main__":
    programs4.main(FOURTEENTH_B)
