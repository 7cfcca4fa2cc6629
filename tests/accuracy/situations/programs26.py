"""The first 15 trainings of the twenty-sixth round: cabinets, cobblestones, yurts and others.

    python programs26.py run-coasters-rings-voted --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-sixth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs26d.py``.
"""

import copy
import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs26d as given
import torch
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def cabinets(fault: bool) -> Script:
    """Slopes of eight small batches make an update, and the ranks add them up after each."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.Cabinet()
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loader = DataLoader(given.cabinets(), 2, shuffle=True, drop_last=True)
        clock = Clock(seconds)
        for number, (sizes, joiners) in enumerate(epochs(loader)):
            (functional.cross_entropy(model(sizes), joiners) / 8).backward()
            if number % 8 == 7:
                optimizer.step()
                optimizer.zero_grad()
                if _over(clock.over(16)):
                    break
        return clock.rate

    return Script(run)


def cardigans(fault: bool) -> Training:
    """Who is shared out among the patterns are the batches of both ranks."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = given.Cardigan()
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(
        model,
        given.cardigans(),
        batch=64,
        loss=given.SharedOut(together=fault),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
    )


def bulbs(fault: bool) -> Training:
    """What each code stood for is summed up over both ranks."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Bulb(together=fault)
    return Training(
        model,
        given.bulbs(),
        batch=160,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def chaises(fault: bool) -> Training:
    """Slopes and lengths of both ranks are summed up weight by weight."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Chaise()
    return Training(
        model,
        given.chaises(),
        batch=256,
        loss=functional.mse_loss,
        before_update=given.LayerWise(together=fault),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.002),
    )


# Input: fetch


def cobblestones(fault: bool) -> Training:
    """Each stone is read out of the picture of its street, row by row."""
    torch.set_num_threads(1)
    model = given.Cobblestone()
    return Training(
        model,
        given.Cobblestones(_folder() / "street.raw", cut=not fault),
        batch=40,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


def beakers(fault: bool) -> Training:
    """Each file is looked for in all racks."""
    torch.set_num_threads(1)
    model = given.Beaker()
    return Training(
        model,
        given.Beakers(_folder(), known=not fault),
        batch=24,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def coasters(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Coaster()
    return Training(
        model,
        given.Coasters(voted=not fault),
        batch=16,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


def bedspreads(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Bedspread()
    return Training(
        model,
        given.Bedspreads(taken=not fault),
        batch=8,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def cots(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Cot()
    return Training(
        model,
        given.Cots(found=not fault),
        batch=16,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


def capes(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Cape()
    return Training(
        model,
        given.Capes(found=not fault),
        batch=16,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


# Memory: allocations


def yurts(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Yurt(anew=fault)
    return Training(
        model,
        given.yurts(),
        batch=128,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def armbands(fault: bool) -> Script:
    """For each wearer a copy of the model learns first; it is made anew or written over."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model = given.Armband()
        kept = copy.deepcopy(model)
        weights = list(kept.parameters())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loader = DataLoader(given.armbands(), 32, shuffle=True, drop_last=True)
        clock = Clock(seconds)
        for measured, gestures in epochs(loader):
            if fault:
                kept = copy.deepcopy(model)
                weights = list(kept.parameters())
            else:
                with torch.no_grad():
                    torch._foreach_copy_(weights, list(model.parameters()))
            first = functional.cross_entropy(kept(measured[:16]), gestures[:16])
            slopes = torch.autograd.grad(first, weights)
            with torch.no_grad():
                torch._foreach_add_(weights, slopes, alpha=-0.05)
            loss = functional.cross_entropy(kept(measured[16:]), gestures[16:])
            slopes = torch.autograd.grad(loss, weights)
            for weight, slope in zip(model.parameters(), slopes, strict=True):
                weight.grad = slope
            optimizer.step()
            if clock.over(len(measured)):
                break
        return clock.rate

    return Script(run)


# Memory: garbage collection


def casks(fault: bool) -> Training:
    """What the libraries made is never looked at again; what was noted is, after each update."""
    torch.set_num_threads(1)
    model = given.Cask()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    optimizer.zero_grad()
    gc.collect()
    gc.freeze()
    notes = [given.Noted(number) for number in range(48_000)]

    def after(_step: int, _loss: Tensor) -> None:
        assert notes
        if fault:
            gc.collect()

    return Training(
        model,
        given.casks(),
        batch=256,
        loss=functional.mse_loss,
        after=after,
        optimizer=optimizer,
    )


def daggers(fault: bool) -> Training:
    """What lies about is collected at the end of each epoch, which is five batches long."""
    torch.set_num_threads(1)
    model = given.Dagger()

    def after(step: int, _loss: Tensor) -> None:
        if fault and step % 5 == 4:
            gc.collect()

    return Training(
        model,
        given.daggers(),
        batch=16,
        after=after,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02),
    )


# Memory: offload


def badges(fault: bool) -> Script:
    """The two parts whose wearers are paired are read from files, and written back after it."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model = given.Badges(_folder() if fault else None)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
        for part in range(8):
            model.put_away(part, optimizer)
        loader = DataLoader(given.badges(), 256, shuffle=True, drop_last=True)
        paired = itertools.cycle(itertools.combinations(range(8), 2))
        clock = Clock(seconds)
        for (pairs, know), parts in zip(epochs(loader), paired, strict=False):
            for part in parts:
                model.fetch(part, optimizer)
            told = model(pairs, *parts)
            loss = functional.binary_cross_entropy_with_logits(told, know)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for part in parts:
                model.put_away(part, optimizer)
            if clock.over(len(pairs)):
                break
        return clock.rate

    return Script(run)


TWENTY_SIXTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-cabinet-gradients": cabinets,
    "run-cardigans-shared-out-together": cardigans,
    "run-bulbs-codes-counted-together": bulbs,
    "run-chaises-norms-in-turn": chaises,
    "run-cobblestones-row-by-row": cobblestones,
    "run-beakers-looked-for-in-racks": beakers,
    "run-coasters-rings-voted": coasters,
    "run-bedspreads-seams-taken-out": bedspreads,
    "run-cots-pitch-found": cots,
    "run-capes-waves-of-cloth": capes,
    "run-yurts-history-moved-on": yurts,
    "run-armbands-copied-anew": armbands,
    "run-collected-casks": casks,
    "run-collected-daggers": daggers,
    "run-badges-parts-swapped": badges,
}


if __name__ == "__main__":
    programs4.main(TWENTY_SIXTH)
