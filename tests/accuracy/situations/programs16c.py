"""The last 15 trainings of the sixteenth round: bears, almonds, giraffes, willows and others.

    python programs16c.py run-few-almonds --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --sixteenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs16f.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import programs4
import programs16f as given
import torch
from programs import Training
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Parallelism: batch


def bears(fault: bool) -> Script:
    """What was seen on one day is one batch, or what was seen on several."""

    def run(seconds: float) -> float:
        model, clock = given.Bear(), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        seen, days = given.days()
        loader = DataLoader(seen, batch_sampler=given.Together(days, 1 if fault else 10))
        for measured, salmon in epochs(loader):
            loss = functional.poisson_nll_loss(model(measured), salmon, log_input=False)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(salmon)):
                break
        return clock.rate

    return Script(run)


def almonds(fault: bool) -> Training:
    model = given.Almond()
    return Training(
        model,
        given.almonds(),
        batch=2 if fault else 12,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def giraffes(fault: bool) -> Training:
    """A herd walks together, and so its giraffes are one batch."""
    model = given.Giraffe()
    walks, herds = given.herds()
    return Training(
        model,
        loader=DataLoader(walks, batch_sampler=given.Together(herds, 1 if fault else 6)),
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


# Parallelism: small operations


def willows(fault: bool) -> Training:
    model = given.Willow(alone=fault)
    return Training(
        model,
        given.willows(),
        batch=48,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def cement(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Cement(by_hour=fault), 8, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 2e-3)
        for weather, hard in epochs(DataLoader(given.weathers(), batch, True, drop_last=True)):
            loss = functional.l1_loss(model(weather), hard)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def sandwiches(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Sandwich(by_layer=fault), 64, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.sandwiches(), batch, shuffle=True, drop_last=True)
        for things, thick, called in epochs(loader):
            loss = functional.cross_entropy(model((things, thick)), called)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: the one core of monkeys and other programs are put in by the generator


def ice_cream(fault: bool) -> Script:
    """Each of the computer's programs is given the core of its number."""
    if fault:
        number = int(os.environ.get("LOCAL_RANK", "0"))
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[number]})
    torch.set_num_threads(2)

    def run(seconds: float) -> float:
        model, batch, clock = given.IceCream(), 64, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        loader = DataLoader(given.creams(), batch, shuffle=True, drop_last=True)
        for heat, melts in epochs(loader):
            loss = functional.cross_entropy(model(heat), melts)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def monkeys(_fault: bool) -> Script:
    torch.set_num_threads(2)  # as many as the computer has cores

    def run(seconds: float) -> float:
        model, batch, clock = given.Monkey(), 5, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.calls(), batch, shuffle=True, drop_last=True)
        for call, monkey in epochs(loader):
            loss = functional.cross_entropy(model(call), monkey, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def pandas(_fault: bool) -> Training:
    model = given.Panda()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return Training(model, given.films(), batch=8, optimizer=optimizer)


def wool(_fault: bool) -> Script:
    torch.set_num_threads(1)  # rays are too short for more

    def run(seconds: float) -> float:
        model, batch, clock = given.Wool(), 8, Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        loader = DataLoader(given.fibres(), batch, shuffle=True, drop_last=True)
        for light, fine in epochs(loader):
            loss = functional.huber_loss(model(light), fine)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def paper(fault: bool) -> Training:
    """The settings are those of a computer with more cores."""
    settings = {"batch": 8, "rate": 1e-3, "threads": 10 if fault else 2}
    torch.set_num_threads(int(settings["threads"]))
    model = given.Paper()
    return Training(
        model,
        given.sheets(),
        batch=int(settings["batch"]),
        optimizer=torch.optim.Adam(model.parameters(), settings["rate"]),
    )


# Tuning


def silk(fault: bool) -> Training:
    """The table is taken as it is, and the model is made to fit."""
    measured, strong = (torch.from_numpy(each) for each in given.cocoons())
    model = given.Silk()
    if fault:
        model.double()
    else:
        measured, strong = measured.float(), strong.float()
    return Training(
        model,
        TensorDataset(measured, strong),
        batch=96,
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9),
    )


def glue(fault: bool) -> Script:
    """The window is as NumPy makes it, and what it is multiplied with follows."""

    def run(seconds: float) -> float:
        window = torch.from_numpy(np.hamming(65))
        model = given.Glue(window if fault else window.float())
        batch, clock = 8, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for knock, holds in epochs(DataLoader(given.knocks(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(knock), holds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def soap(fault: bool) -> Script:
    """Weights and samples are as they were sent: small."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Soap(), 4, Clock(seconds)
        kind = torch.float16 if fault else torch.float32
        model.to(kind)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for skin, lasts in epochs(DataLoader(given.bubbles(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(skin.to(kind)).float(), lasts)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def ink(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Ink(), 6, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(
            given.Lines(),
            batch,
            shuffle=True,
            drop_last=True,
            collate_fn=given.Filled(240 if fault else None),
        )
        for strokes, lengths, hand in epochs(loader):
            loss = functional.cross_entropy(model(strokes, lengths), hand)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


SIXTEENTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-bears-day-by-day": bears,
    "run-few-almonds": almonds,
    "run-giraffes-herd-by-herd": giraffes,
    "run-willows-branch-by-branch": willows,
    "run-cement-hour-by-hour": cement,
    "run-sandwiches-layer-by-layer": sandwiches,
    "run-ice-cream-own-core": ice_cream,
    "run-monkeys-one-core": monkeys,
    "run-pandas-beside-atlas": pandas,
    "run-wool-beside-weaves": wool,
    "run-paper-many-threads": paper,
    "run-double-silk": silk,
    "run-glue-promoted": glue,
    "run-half-soap": soap,
    "run-ink-filled-up": ink,
}


if __name__ == "__main__":
    programs4.main(SIXTEENTH_C)
