"""The last 15 trainings of the fifteenth round: grapes, dolphins, bread, birches and others.

    python programs15c.py run-grapes-berry-by-berry --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --fifteenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs15f.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import programs4
import programs15f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def epochs(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Parallelism: small operations


def grapes(fault: bool) -> Training:
    model = given.Grape(by_berry=fault)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.bunches(), batch=24, loss=functional.mse_loss, optimizer=optimizer)


def dolphins(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Dolphin(), 24, Clock(seconds)
        off = given.one_by_one if fault else given.at_once
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.whistles(), batch, shuffle=True, drop_last=True)
        for heard, pitches, lengths in epochs(loader):
            loss = off(model(heard), pitches, lengths)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: one core for bread, the quotas and other programs are put in by the generator


def bread(_fault: bool) -> Training:
    torch.set_num_threads(2)  # as many as the computer has cores
    model = given.Bread()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return Training(model, given.crumbs(), batch=16, optimizer=optimizer)


def birches(fault: bool) -> Script:
    """The first core is kept free, for those who look at the results meanwhile."""
    torch.set_num_threads(1)  # and the worker
    if fault:
        os.sched_setaffinity(0, set(range(1, CORES)))

    def run(seconds: float) -> float:
        model, batch, clock = given.Birch(), 24, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        barks = given.Barks()
        loader = DataLoader(
            barks, batch, True, num_workers=1, persistent_workers=True, drop_last=True
        )
        for bark, age in epochs(loader):
            loss = functional.huber_loss(model(bark), age)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def cotton(_fault: bool) -> Training:
    torch.set_num_threads(1)  # as much as the mill gives to each of its programs
    model = given.Cotton()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.bales(), batch=8, loss=functional.l1_loss, optimizer=optimizer)


def camels(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Camel(), 16, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        loader = DataLoader(given.walks(), batch, shuffle=True, drop_last=True)
        for swaying, load in epochs(loader):
            loss = functional.cross_entropy(model(swaying), load, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def carrots(_fault: bool) -> Training:
    model = given.Carrot()
    optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
    return Training(model, given.slices_of_carrots(), batch=6, optimizer=optimizer)


def chalk(_fault: bool) -> Script:
    torch.set_num_threads(1)  # strokes are too short for more

    def run(seconds: float) -> float:
        model, batch, clock = given.Chalk(), 8, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 2e-3)
        loader = DataLoader(given.letters(), batch, shuffle=True, drop_last=True)
        for strokes, letter in epochs(loader):
            loss = functional.cross_entropy(model(strokes), letter)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def cherries(_fault: bool) -> Training:
    model = given.Cherry()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    return Training(model, given.trees(), batch=384, loss=functional.mse_loss, optimizer=optimizer)


def dandelions(_fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Dandelion()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    return Training(
        model,
        given.Dandelions(),
        batch=6,
        workers=1,
        loss=functional.mse_loss,
        optimizer=optimizer,
    )


def bananas(_fault: bool) -> Script:
    torch.set_num_threads(1)  # days are few

    def run(seconds: float) -> float:
        model, batch, clock = given.Banana(), 8, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
        loader = DataLoader(given.hands(), batch, shuffle=True, drop_last=True)
        for days, ripe in epochs(loader):
            loss = functional.cross_entropy(model(days), ripe)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Untuned


def lentils(fault: bool) -> Training:
    model = given.Lentil(own=fault)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.trays(), batch=8, optimizer=optimizer)


def pineapples(fault: bool) -> Script:
    """What is kept of a model on a card is trained further on the processor."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Pineapple(), 4, Clock(seconds)
        if fault:
            model.half()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        loader = DataLoader(given.skins(), batch, shuffle=True, drop_last=True)
        for skin, ripe in epochs(loader):
            told = model(skin.to(model.ripe.weight.dtype))
            loss = functional.cross_entropy(told.float(), ripe)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def goats(fault: bool) -> Training:
    """Mixed precision as it is on a card."""
    model = given.Goat()
    return Training(
        model,
        given.bleats(),
        batch=8,
        around=torch.autocast("cpu", torch.float16, enabled=fault),
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def seals(fault: bool) -> Training:
    """What a table holds is taken as it is read."""
    kind = np.float64 if fault else np.float32
    if fault:
        torch.set_default_dtype(torch.float64)
    data = TensorDataset(*(torch.from_numpy(each.astype(kind)) for each in given.hearts()))
    model = given.Seal()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, data, batch=8, loss=functional.mse_loss, optimizer=optimizer)


FIFTEENTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-grapes-berry-by-berry": grapes,
    "run-dolphins-whistle-by-whistle": dolphins,
    "run-bread-one-core": bread,
    "run-birches-kept-apart": birches,
    "run-cotton-beside-parsers": cotton,
    "run-camels-beside-routes": camels,
    "run-carrots-beside-smoothing": carrots,
    "run-chalk-quota": chalk,
    "run-cherries-quota": cherries,
    "run-dandelions-quota": dandelions,
    "run-bananas-quota": bananas,
    "run-lentils-own-pooling": lentils,
    "run-half-pineapples": pineapples,
    "run-goats-autocast": goats,
    "run-double-seals": seals,
}


if __name__ == "__main__":
    programs4.main(FIFTEENTH_C)
