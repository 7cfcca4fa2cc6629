"""The last 15 trainings of the twenty-fourth round: ramparts, javelins, vests and others.

    python programs24c.py run-double-pews --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-fourth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs24f.py``.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs24f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Parallelism: batch


def ramparts(fault: bool) -> Training:
    """A batch is what one king built."""
    model, data = given.Rampart(), given.ramparts()
    reigns = given.Reigns(len(data), at_once=1 if fault else 4)
    return Training(
        model,
        loader=DataLoader(data, batch_sampler=reigns),
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Parallelism: small operations


def javelins(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Javelin(apart=fault), 24, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        data = given.javelins()
        loader = DataLoader(data, batch, True, collate_fn=given.of_throwers, drop_last=True)
        for throws, far in epochs(loader):
            loss = functional.smooth_l1_loss(model(throws), far)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: affinity


def vests(fault: bool) -> Training:
    """The core on which the clock was tried is kept."""
    torch.set_num_threads(CORES)
    given.timed(given_back=not fault)
    model = given.Vest()
    return Training(
        model,
        given.vests(),
        batch=64,
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.02),
    )


# Scheduling: other programs and quotas are put in by the generator


def ukuleles(_fault: bool) -> Training:
    torch.set_num_threads(1)  # strings of other instruments are tuned beside it
    model = given.Ukulele()
    return Training(
        model,
        given.ukuleles(),
        batch=16,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def crutches(_fault: bool) -> Script:
    torch.set_num_threads(1)  # who works when is looked for beside it

    def run(seconds: float) -> float:
        model, batch, clock = given.Crutch(), 128, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for leant, days in epochs(DataLoader(given.crutches(), batch, True, drop_last=True)):
            middle, spread = model(leant).unbind(1)
            loss = functional.gaussian_nll_loss(middle, days, spread)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def tweezers(_fault: bool) -> Training:
    torch.set_num_threads(1)  # splinters are looked for in pictures beside it
    model = given.Tweezers()
    return Training(
        model,
        given.tweezers(),
        batch=24,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


def thermoses(_fault: bool) -> Training:
    torch.set_num_threads(2)  # as many as the computer has cores
    model = given.Thermos()
    return Training(
        model,
        given.thermoses(),
        batch=192,
        loss=functional.l1_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


def jackboots(_fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Jackboot()
    return Training(
        model,
        given.jackboots(),
        batch=24,
        optimizer=torch.optim.Adamax(model.parameters(), 1e-3),
    )


# Scheduling: threads


def sporrans(fault: bool) -> Training:
    """What the data ask for is meant for workers, and is done where there are none."""
    torch.set_num_threads(CORES)
    model = given.Sporran()
    return Training(
        model,
        given.Sporrans(for_workers=fault),
        batch=12,
        optimizer=torch.optim.SGD(model.parameters(), 0.02, momentum=0.9),
    )


def mousetraps(fault: bool) -> Script:
    torch.set_num_threads(5 * CORES if fault else CORES)

    def run(seconds: float) -> float:
        model, batch, clock = given.Mousetrap(), 16, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        houses = DataLoader(given.mousetraps(), batch, True, drop_last=True)
        for seen, marks, sprung in epochs(houses):
            loss = functional.binary_cross_entropy_with_logits(model(seen, marks), sprung)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: kernels


def toboggans(fault: bool) -> Training:
    model = given.Toboggan(written_out=fault)
    return Training(
        model,
        given.toboggans(),
        batch=128,
        loss=functional.huber_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Tuning: precision


def gondolas(fault: bool) -> Training:
    """The wide layer is of brain floats, as on a card."""
    model = given.Gondola(torch.bfloat16 if fault else torch.float32)
    return Training(
        model,
        given.gondolas(),
        batch=12,
        optimizer=torch.optim.SGD(model.parameters(), 0.02, momentum=0.9),
    )


def pews(fault: bool) -> Script:
    """What is alike is taken apart in double precision, lest it fails."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Pew(), 2, Clock(seconds)
        if fault:
            model.double()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for told, full in epochs(DataLoader(given.pews(fault), batch, True)):
            loss = model(told, full)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: shapes


def mailbags(fault: bool) -> Script:
    """Each batch has room for its fullest mailbag."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Mailbag(), 24, Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        bags = given.mailbags()
        if fault:
            loader = DataLoader(bags, batch, True, collate_fn=given.tied_up)
        else:
            like = given.LikeSizes(bags, batch)
            loader = DataLoader(bags, batch_sampler=like, collate_fn=given.tied_up)
        for letters, there, rounds in epochs(loader):
            loss = functional.cross_entropy(model(letters, there), rounds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Seen from outside


def galoshes(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Galosh(), 64, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for rubber, worn, long in epochs(DataLoader(given.galoshes(), batch, True)):
            loss = functional.mse_loss(model(rubber, worn), long)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(long)):
                break
        return clock.rate

    return Script(run)


TWENTY_FOURTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-ramparts-reign-by-reign": ramparts,
    "run-javelins-thrower-by-thrower": javelins,
    "run-vests-pinned-for-a-timing": vests,
    "run-ukuleles-beside-tunings": ukuleles,
    "run-crutches-beside-rosters": crutches,
    "run-tweezers-beside-splinters": tweezers,
    "run-thermoses-quota": thermoses,
    "run-jackboots-quota": jackboots,
    "run-sporrans-threads-of-workers": sporrans,
    "run-crowded-mousetraps": mousetraps,
    "run-toboggans-differences-written-out": toboggans,
    "run-gondolas-brain-floats": gondolas,
    "run-double-pews": pews,
    "run-mailbags-mixed-sizes": mailbags,
    "run-seen-galoshes": galoshes,
}


if __name__ == "__main__":
    programs4.main(TWENTY_FOURTH_C)
