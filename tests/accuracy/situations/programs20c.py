"""The last 15 trainings of the twentieth round: hulls, piers, palindromes, altars and others.

    python programs20c.py run-half-ballads --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twentieth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs20f.py``.
"""

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs20f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Parallelism: small operations


def beacons(fault: bool) -> Training:
    model = given.Beacon(apart=fault)
    return Training(
        model,
        given.ships(),
        batch=48,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


# Scheduling: the core of hulls, other programs and the quota are put in by the generator


def hulls(_fault: bool) -> Training:
    torch.set_num_threads(2)  # as many as the computer has cores
    model = given.Hull()
    return Training(
        model,
        given.hulls(),
        batch=8,
        loss=functional.mse_loss,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


def tongue_twisters(fault: bool) -> Script:
    """Each training that this program starts takes the next core; it starts one."""
    cores = itertools.cycle(sorted(os.sched_getaffinity(0)))

    def run(seconds: float) -> float:
        if fault:
            os.sched_setaffinity(0, {next(cores)})
        model, batch, clock = given.Twister(), 128, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        for said, slips in epochs(DataLoader(given.twisters(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(said), slips)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def piers(_fault: bool) -> Training:
    torch.set_num_threads(1)  # the tides are computed beside it
    model = given.Pier()
    return Training(
        model,
        given.waves(),
        batch=12,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def palindromes(_fault: bool) -> Training:
    torch.set_num_threads(1)  # as much as each of us has
    model = given.Palindrome()
    return Training(
        model,
        given.palindromes(),
        batch=64,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def minuets(_fault: bool) -> Script:
    torch.set_num_threads(1)  # a tune is short

    def run(seconds: float) -> float:
        model, batch, clock = given.Minuet(), 16, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 2e-3)
        for (notes,) in epochs(DataLoader(given.minuets(), batch, True, drop_last=True)):
            told = model(notes[:, :-1])
            loss = functional.cross_entropy(told.flatten(0, 1), notes[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def anagrams(_fault: bool) -> Script:
    torch.set_num_threads(1)  # the letters of other books are put in order meanwhile

    def run(seconds: float) -> float:
        model, batch, clock = given.Anagram(), 64, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for words in epochs(DataLoader(given.anagrams(), batch, True, drop_last=True)):
            one, other = model(torch.cat(words)).chunk(2)
            loss = functional.cross_entropy(10 * one @ other.mT, torch.arange(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def xylophones(_fault: bool) -> Training:
    torch.set_num_threads(1)  # one is enough for a toy
    model = given.Xylophone()
    return Training(
        model,
        given.strokes(),
        batch=12,
        loss=functional.mse_loss,
        optimizer=torch.optim.NAdam(model.parameters(), 1e-3),
    )


# Scheduling: threads


def altars(fault: bool) -> Training:
    """Three threads for each core are thought to be never idle."""
    torch.set_num_threads(3 * CORES if fault else CORES)
    model = given.Altar()
    return Training(
        model,
        given.altars(),
        batch=6,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True),
    )


def frescoes(fault: bool) -> Script:
    """The number of threads is the one of the museum's computer, or this one's."""
    threads = {"museum": 6, "here": CORES}

    def run(seconds: float) -> float:
        torch.set_num_threads(threads["museum" if fault else "here"])
        model, batch, clock = given.Fresco(), 6, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for picture, fallen in epochs(DataLoader(given.frescoes(), batch, True, drop_last=True)):
            loss = ((model(picture, fallen) - picture).abs() * fallen).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: attention


def rugs(fault: bool) -> Training:
    model = given.Rug(written=fault)
    return Training(
        model,
        given.rugs(),
        batch=2,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Tuning: kernels


def doilies(fault: bool) -> Training:
    model = given.Doily(own=fault)
    return Training(
        model,
        given.doilies(),
        batch=8,
        optimizer=torch.optim.SGD(model.parameters(), 0.02, momentum=0.9),
    )


# Tuning: precision


def ballads(fault: bool) -> Script:
    """Weights take half the room, as they do on a card."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Ballad(), 4, Clock(seconds)
        if fault:
            model.half()
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        for (verse,) in epochs(DataLoader(given.ballads(), batch, True, drop_last=True)):
            told = model(verse[:, :-1]).float()
            loss = functional.cross_entropy(told.flatten(0, 1), verse[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: shapes


def keels(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Keel(), 8, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        laid = functools.partial(given.laid, most=given.MOST if fault else None)
        loader = DataLoader(given.keels(), batch, True, collate_fn=laid, drop_last=True)
        for lines, points, yards in epochs(loader):
            loss = functional.cross_entropy(model(lines, points), yards)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Seen from outside


def shuttles(_fault: bool) -> Training:
    model = given.Shuttle()
    return Training(
        model,
        given.throws(),
        batch=96,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


TWENTIETH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-beacons-beam-by-beam": beacons,
    "run-hulls-one-core": hulls,
    "run-tongue-twisters-next-core": tongue_twisters,
    "run-piers-beside-tides": piers,
    "run-palindromes-beside-dictionaries": palindromes,
    "run-minuets-beside-scores": minuets,
    "run-anagrams-beside-letters": anagrams,
    "run-xylophones-quota": xylophones,
    "run-crowded-altars": altars,
    "run-frescoes-many-threads": frescoes,
    "run-rugs-own-attention": rugs,
    "run-doilies-own-norms": doilies,
    "run-half-ballads": ballads,
    "run-keels-filled-up": keels,
    "run-seen-shuttles": shuttles,
}


if __name__ == "__main__":
    programs4.main(TWENTIETH_C)
