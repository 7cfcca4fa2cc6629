"""The first 15 trainings of the twentieth round: waltzes, marimbas, turrets and others.

    python programs20.py run-polkas-beats-told --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twentieth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs20d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs20d as given
import torch
import torch.distributed as dist
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def waltzes(fault: bool) -> Script:
    """One rank has those who lead, the other one those who follow."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Waltz(apart=fault), 24, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for music, where in epochs(DataLoader(given.waltzes(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(music), model.own(where))
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.evened(model)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Communication: gradients


def marimbas(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = given.Marimba()
    if fault:
        model = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    return Training(
        model,
        given.bars(),
        batch=40,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


def turrets(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Turret()
    return Training(
        model,
        given.turrets(),
        batch=128,
        loss=functional.smooth_l1_loss,
        before_update=given.up_and_down if fault else lambda _: None,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    )


def carillons(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Carillon(), 12, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for strokes, tune in epochs(DataLoader(given.carillons(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(strokes), tune)
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.told_in_turn(model)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Communication: stragglers


def spires(fault: bool) -> Training:
    """The first rank has drawn its spires before, the second one has not."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = given.Spire()
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(
        model,
        given.Spires(ready=not (fault and dist.get_rank() == 1)),
        batch=8,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Input: fetch


def trombones(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the library
    model = given.Trombone()
    return Training(
        model,
        given.Trombones(kept=not fault),
        batch=8,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def chronicles(fault: bool) -> Training:
    """The drive is a slow one, as ``generate.py`` throttles it."""
    model = given.Chronicle()
    return Training(
        model,
        given.Chronicles(_folder(), kept=not fault),
        batch=6,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


def dungeons(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Dungeon(), 8, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
        rooms = given.Dungeons(_folder(), kept=not fault)
        for doors, things, danger in epochs(DataLoader(rooms, batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(doors, things), danger)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Input: preprocessing


def polkas(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Polka()
    return Training(
        model,
        given.Polkas(ready=not fault),
        batch=12,
        workers=1,
        optimizer=torch.optim.NAdam(model.parameters(), lr=1e-3),
    )


def tambourines(fault: bool) -> Training:
    """Strokes are rung by what puts a batch together."""
    model, strokes = given.Tambourine(), given.Tambourines(ready=not fault)
    return Training(
        model,
        batch=6,
        optimizer=torch.optim.AdamW(model.parameters(), lr=5e-4),
        loader=DataLoader(strokes, 6, shuffle=True, collate_fn=strokes.together, drop_last=True),
    )


def castanets(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Castanet(), 8, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        dances = given.Castanets(ready=not fault)
        for clicks, dance in epochs(DataLoader(dances, batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(clicks), dance, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Input: workers


def docks(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the workers
    model = given.Dock()
    return Training(
        model,
        given.Docks(_folder(), gate=fault),
        batch=12,
        workers=6,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Memory: allocations


def weirs(fault: bool) -> Training:
    """Each batch has a map of all gauges and minutes to itself, or they share one."""
    model = given.Weir()
    return Training(
        model,
        given.weirs(),
        batch=8,
        prepare=given.Rivers(kept=not fault).around,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Memory: garbage collection


def masts(fault: bool) -> Training:
    """A yard of spars is kept; after each update everything is tidied up."""
    model = given.Mast()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    gc.freeze()
    spars = given.yard()

    def tidied(*_: Any) -> None:
        assert spars
        if fault:
            gc.collect()

    optimizer.register_step_post_hook(tidied)
    return Training(
        model, given.masts(), batch=128, loss=functional.huber_loss, optimizer=optimizer
    )


# Memory: recomputation


def drawbridges(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Drawbridge(held=not fault), 8, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for bridge, heavy in epochs(DataLoader(given.drawbridges(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(bridge), heavy)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


TWENTIETH: dict[str, Callable[[bool], Training | Script]] = {
    "run-waltzes-by-couples": waltzes,
    "run-marimba-gradients": marimbas,
    "run-turret-gradients": turrets,
    "run-carillon-gradients": carillons,
    "run-spires-drawn-in-turn": spires,
    "run-trombones-borrowed": trombones,
    "run-chronicles-page-by-page": chronicles,
    "run-dungeons-looked-up": dungeons,
    "run-polkas-beats-told": polkas,
    "run-tambourines-rung": tambourines,
    "run-castanets-clicks-found": castanets,
    "run-docks-one-gate": docks,
    "run-weirs-fresh-rivers": weirs,
    "run-collected-masts": masts,
    "run-drawbridges-lifted-again": drawbridges,
}


if __name__ == "__main__":
    programs4.main(TWENTIETH)
