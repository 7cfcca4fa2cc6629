"""The first 15 trainings of the twenty-third round: samovars, whisks, trivets and others.

    python programs23.py run-shutters-shadows-cast --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-third``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs23d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import programs4
import programs23d as given
import torch
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def samovars(fault: bool) -> Training:
    """Each rank has a half of the cells; after each look the whole state is put together."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Samovar(apart=fault)
    return Training(
        model,
        given.samovars(),
        batch=64,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def pestles(fault: bool) -> Script:
    """Each rank has a half of the rows; for waves along the columns these change over."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Pestle(apart=fault), 8, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        shared = ("mixed.weight", "mixed.bias", "put.weight", "put.bias", "fine.weight")
        for mortar, fine in epochs(DataLoader(given.mortars(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(mortar), model.own(fine))
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.shared_slopes(model, (*shared, "fine.bias"))
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def portholes(fault: bool) -> Training:
    """Each rank has a half of every log's pages, and what both say is put together."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Porthole(apart=fault)
    return Training(
        model,
        given.portholes(),
        batch=8,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
    )


def lockets(fault: bool) -> Training:
    """After each step the ranks change over their models."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Locket()
    return Training(
        model,
        given.lockets(),
        batch=10,
        after=(lambda _step, _loss: given.change_hands(model)) if fault else (lambda *_: None),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02),
    )


# Communication: gradients


def whisks(fault: bool) -> Script:
    """Four small batches make a step; slopes are added up over the ranks after each of them."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.Whisk()
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        batch, clock = 8, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        for sound, stiff in epochs(DataLoader(given.whisks(), batch, True, drop_last=True)):
            optimizer.zero_grad()
            for heard, grade in zip(sound.chunk(4), stiff.chunk(4), strict=True):
                (functional.cross_entropy(model(heard), grade) / 4).backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def doormats(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Doormat(), 24, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        if fault:
            given.told_at_once(model)
        trodden = DataLoader(given.doormats(), batch, True, drop_last=True)
        for steps, weave, worn in epochs(trodden):
            loss = functional.mse_loss(model(steps, weave), worn)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Input: fetch


def trivets(fault: bool) -> Training:
    """Pictures lie in a list of a manager, which is a process of its own."""
    torch.set_num_threads(1)  # and a core for the manager
    data = given.Trivets(kept=not fault)
    model = given.Trivet()
    return Training(
        model,
        data,
        batch=12,
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9),
    )


def letterboxes(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the postman
    model = given.Letterbox()
    return Training(
        model,
        given.Letterboxes(_folder(), kept=not fault),
        batch=10,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def shutters(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Shutter()
    return Training(
        model,
        given.Shutters(ready=not fault),
        batch=6,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Input: workers


def goblets(fault: bool) -> Script:
    """Of four workers one has all goblets that are kept in the cellar."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # and a core for the workers
        model, batch, clock = given.Goblet(), 8, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        struck = DataLoader(
            given.Goblets(one_cellarer=fault),
            batch,
            num_workers=4,
            drop_last=True,
            persistent_workers=True,
        )
        for sound, works in epochs(struck):
            loss = functional.cross_entropy(model(sound), works)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Memory: allocations


def belfries(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Belfry(fresh=fault, batch=12)
    return Training(
        model,
        given.belfries(),
        batch=12,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02),
    )


# Memory: garbage collection


def matchboxes(fault: bool) -> Training:
    """What lies about is collected by what puts a batch together."""
    torch.set_num_threads(1)
    model = given.Matchbox()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    gc.freeze()
    boxes = given.Matchboxes(tidied=fault)
    return Training(
        model,
        batch=10,
        loss=functional.l1_loss,
        optimizer=optimizer,
        loader=DataLoader(boxes, 10, True, collate_fn=boxes.together, drop_last=True),
    )


def cameos(fault: bool) -> Training:
    """After each update the optimizer has what lies about collected."""
    torch.set_num_threads(1)
    model = given.Cameo()
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    gc.freeze()
    data = given.Cameos()
    if fault:
        optimizer.register_step_post_hook(given.swept)
    return Training(model, data, batch=16, optimizer=optimizer)


# Memory: offload


def graters(fault: bool) -> Script:
    """The sums of squared slopes lie in a file from one update to the next."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model, batch, clock = given.Grater(), 48, Clock(seconds)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
        drawer = given.Drawer(optimizer, _folder()) if fault else None
        for teeth, left in epochs(DataLoader(given.graters(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(teeth), left)
            optimizer.zero_grad()
            loss.backward()
            if drawer:
                drawer.take()
            optimizer.step()
            if drawer:
                drawer.put()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def igloos(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Igloo()
    shed = given.Shed(_folder())
    return Training(
        model,
        given.igloos(),
        batch=8,
        loss=functional.smooth_l1_loss,
        around=saved_tensors_hooks(shed.put, shed.take) if fault else nullcontext(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    )


TWENTY_THIRD: dict[str, Callable[[bool], Training | Script]] = {
    "run-samovars-cells-in-halves": samovars,
    "run-pestles-waves-turned-over": pestles,
    "run-portholes-two-logs": portholes,
    "run-lockets-changing-hands": lockets,
    "run-whisk-gradients": whisks,
    "run-doormat-gradients": doormats,
    "run-trivets-from-a-manager": trivets,
    "run-letterboxes-emptied-one-by-one": letterboxes,
    "run-shutters-shadows-cast": shutters,
    "run-goblets-one-cellarer": goblets,
    "run-belfries-fresh-air": belfries,
    "run-collected-matchboxes": matchboxes,
    "run-collected-cameos": cameos,
    "run-graters-sums-out": graters,
    "run-igloos-blocks-put-away": igloos,
}


if __name__ == "__main__":
    programs4.main(TWENTY_THIRD)
