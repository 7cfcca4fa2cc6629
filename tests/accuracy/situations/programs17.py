"""The first 15 trainings of the seventeenth round: hinges, lenses, gears and others.

    python programs17.py run-needles-measured --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --seventeenth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs17d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs17d as given
import torch
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def hinges(fault: bool) -> Script:
    """Each rank has a half of each plate's rows; its waves are turned from rows to columns."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Hinge(halves=fault), 8, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for loads, bends in epochs(DataLoader(given.plates(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(loads), model.own(bends))
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.as_one(model)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Communication: gradients


def lenses(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Lens()
    return Training(
        model,
        given.spots(),
        batch=48,
        loss=functional.mse_loss,
        before_update=given.summed_exactly if fault else lambda _: None,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


def gears(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Gear()
    return Training(
        model,
        given.turns(),
        batch=8,
        before_update=given.agreed if fault else lambda _: None,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9),
    )


def grammars(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.Grammar()
        if fault:
            model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        batch, clock = 12, Clock(seconds)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
        for (words,) in epochs(DataLoader(given.examples(), batch, True, drop_last=True)):
            told = model(words[:, :-1])
            loss = functional.cross_entropy(told.flatten(0, 1), words[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Input: fetch


def harvesters(fault: bool) -> Training:
    """The drive is a slow one, as ``generate.py`` throttles it."""
    model = given.Harvester()
    return Training(
        model,
        given.Harvesters(_folder(), kept=not fault),
        batch=6,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def stoves(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for those who ask
    model = given.Stove()
    return Training(
        model,
        given.Stoves(kept=not fault),
        batch=16,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


def lorries(fault: bool) -> Script:
    """A worker reads what comes over the line, which is a slow one."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # and a core for the worker
        model, batch, clock = given.Lorry(), 32, Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
        routes = given.Lorries(kept=not fault, bytes_s=6.5e6)
        loader = DataLoader(routes, batch, num_workers=1, persistent_workers=True, drop_last=True)
        for route, carries in epochs(loader):
            loss = functional.cross_entropy(model(route), carries)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Input: preprocessing


def needles(fault: bool) -> Training:
    model = given.Needle()
    return Training(
        model,
        given.Needles(ready=not fault),
        batch=8,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def sundials(fault: bool) -> Training:
    model = given.Sundial()
    return Training(
        model,
        given.Sundials(ready=not fault),
        batch=16,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


def curling(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Curl()
    return Training(
        model,
        given.Curling(ready=not fault),
        batch=12,
        workers=1,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True),
    )


def fountains(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Fountain(), 6, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
        rates = torch.optim.lr_scheduler.OneCycleLR(optimizer, 5e-4, total_steps=100_000)
        loader = DataLoader(given.Fountains(ready=not fault), batch, shuffle=True, drop_last=True)
        for photo, which in epochs(loader):
            loss = functional.cross_entropy(model(photo), which, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Memory: allocations


def earrings(fault: bool) -> Script:
    """Earrings are looked for around boxes, in room that is new, or that was used before."""

    def run(seconds: float) -> float:
        model, clock = given.Earring(), Clock(seconds)
        boxes = given.Boxes(kept=not fault, earrings=800)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for shop, place in epochs(DataLoader(given.shops(), 1, shuffle=True)):
            near = boxes.near(place[0])
            loss = functional.binary_cross_entropy_with_logits(model(shop)[0], near)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(1):
                break
        return clock.rate

    return Script(run)


def snowboards(fault: bool) -> Training:
    """The room that windows are in is given back after each batch, so that little is in use."""
    batch, window = 12, 96
    model = given.Snowboard(window)
    return Training(
        model,
        given.rides(),
        batch=batch,
        prepare=given.Room(not fault, batch, 512, window).windows,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


# Memory: garbage collection


def hammocks(fault: bool) -> Training:
    """A book of guests is kept; after each pass through the model everything is tidied up."""
    gc.freeze()
    model, book = given.Hammock(), given.guests()

    def tidied(*_: Any) -> None:
        assert book
        if fault:
            gc.collect()

    model.register_forward_hook(tidied)
    return Training(
        model,
        given.stays(),
        batch=256,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def pulleys(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Pulley(), 48, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loader = DataLoader(given.Pulleys(tidied=fault), batch, shuffle=True, drop_last=True)
        for wheels, bears in epochs(loader):
            loss = functional.huber_loss(model(wheels), bears)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


SEVENTEENTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-hinges-bent-in-halves": hinges,
    "run-lens-gradients": lenses,
    "run-gear-gradients": gears,
    "run-grammar-gradients": grammars,
    "run-harvesters-from-afar": harvesters,
    "run-stoves-asked-for": stoves,
    "run-lorries-over-a-line": lorries,
    "run-needles-measured": needles,
    "run-sundials-read": sundials,
    "run-curling-drawn-anew": curling,
    "run-fountains-altered": fountains,
    "run-earrings-fresh-boxes": earrings,
    "run-snowboards-given-back": snowboards,
    "run-collected-hammocks": hammocks,
    "run-collected-pulleys": pulleys,
}


if __name__ == "__main__":
    programs4.main(SEVENTEENTH)
