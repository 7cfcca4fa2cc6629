"""Runs 16 to 30 of the twenty-second round: bathtubs, sandals, hedges, swings and others.

    python programs22b.py run-steady-hedges --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-second``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs22e.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs22e as given
import torch
from programs import Training, _endlessly, _folder
from programs4 import Clock, Script
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader


def times(batch: int) -> int:
    """Return the batch, or several times as much where the proof asks for it."""
    return batch * int(os.environ.get("TIMES_THE_BATCH", "1"))


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Monitoring: anomaly detection


def bathtubs(fault: bool) -> Script:
    """The third batch is spoilt: it is left out, and then it is searched for whence that came, for
    five steps or ever after."""

    def run(seconds: float) -> float:
        model, batch, clock, until = given.Bathtub(), 128, Clock(seconds), 0.0
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.bathtubs(), batch, shuffle=True, drop_last=True)
        for step, (turned, rest) in enumerate(epochs(loader)):
            if step == 2:
                turned = turned / 0
            torch.autograd.set_detect_anomaly(step < until)
            optimizer.zero_grad()
            loss = functional.mse_loss(model(turned), rest)
            if not loss.isfinite():
                until = float("inf") if fault else step + 6
                continue
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: evaluation


def sandals(fault: bool) -> Training:
    """By which straps other sandals are told is asked by slopes of their measures."""
    model, every = given.Sandal(), 4 if fault else 500
    others, whose = given.sandals(40).tensors

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.weighed(model, others, whose)

    return Training(
        model,
        given.sandals(),
        batch=64,
        after=after,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


def palettes(fault: bool) -> Script:
    """How sure it is of other palettes is set right by what it says is divided by."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Palette(), 64, Clock(seconds)
        every, (others, by) = 3 if fault else 500, given.palettes(280).tensors
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        loader = DataLoader(given.palettes(), batch, shuffle=True, drop_last=True)
        for step, (dabs, painters) in enumerate(epochs(loader), 1):
            loss = functional.cross_entropy(model(dabs), painters)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                with torch.no_grad():
                    given.tempered(model(others).numpy(), by.numpy())
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def easels(fault: bool) -> Script:
    """How steep it is around the weights is told by other easels, along a random way."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Easel(), 32, Clock(seconds)
        every, (others, distances) = 5 if fault else 500, given.easels(44).tensors
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
        loader = DataLoader(given.easels(), batch, shuffle=True, drop_last=True)
        for step, (pictures, far) in enumerate(epochs(loader), 1):
            optimizer.zero_grad()
            loss = functional.mse_loss(model(pictures), far)
            loss.backward()
            optimizer.step()
            if step % every == 0:
                with torch.inference_mode():
                    given.around(model, others, distances)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: logging


def envelopes(fault: bool) -> Script:
    """A letter about an update goes into a box, with pictures."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Envelope(), 32, Clock(seconds)
        every, box = 1 if fault else 500, _folder() / "post.mbox"
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.envelopes(), batch, shuffle=True, drop_last=True)
        for step, (envelope, figures) in enumerate(epochs(loader), 1):
            told = model(envelope)
            loss = functional.cross_entropy(told, figures)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                given.posted(envelope, told.argmax(1), loss.item(), step, box)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: synchronisation


def typewriters(fault: bool) -> Script:
    """Keys are heeded by how they were told: read one by one, or all of a batch at once."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Typewriter(), 64, Clock(seconds)
        heed = [1.0] * 40
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        loader = DataLoader(given.typewriters(), batch, shuffle=True, drop_last=True)
        for strokes, struck in epochs(loader):
            told = model(strokes).flatten(0, 1)
            loss = functional.cross_entropy(told, struck.flatten(), torch.tensor(heed))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            said = told.argmax(1).view_as(struck)
            if fault:
                given.heeded(struck, said, heed)
            else:
                given.heeded(struck.tolist(), said.tolist(), heed)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_hedges(fault: bool) -> Training:
    model = given.Hedge()
    return Training(
        model,
        given.hedges(),
        batch=times(16),
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        again=not fault,
    )


def steady_silos(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Silo(), times(24), Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 3e-4, fused=True)
        loader = DataLoader(given.silos(), batch, shuffle=True, drop_last=True)
        for places, damp in endlessly(loader, not fault):
            optimizer.zero_grad()
            loss = functional.mse_loss(model(places), damp)
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_taps(fault: bool) -> Training:
    model = given.Tap()
    return Training(
        model,
        given.taps(),
        batch=times(26),
        optimizer=torch.optim.AdamW(model.parameters(), 3e-4, fused=True),
        again=not fault,
    )


def steady_sickles(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Sickle(), times(24), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.003, momentum=0.9)
        loader = DataLoader(given.sickles(), batch, shuffle=True, drop_last=True)
        for points, sharp in endlessly(loader, not fault):
            loss = functional.l1_loss(model(points), sharp)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_scrolls(fault: bool) -> Training:
    model = given.Scroll()
    return Training(
        model,
        given.scrolls(),
        batch=times(12),
        optimizer=torch.optim.RMSprop(model.parameters(), 2e-4),
        again=not fault,
    )


def steady_scythes(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Scythe(), times(28), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
        loader = DataLoader(given.scythes(), batch, shuffle=True, drop_last=True)
        for (strokes,) in endlessly(loader, not fault):
            noise, noisy = torch.randn_like(strokes), torch.rand(len(strokes), 1, 1)
            told = model((1 - noisy).sqrt() * strokes + noisy.sqrt() * noise, noisy)
            loss = functional.mse_loss(told, noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_orchards(fault: bool) -> Training:
    model = given.Orchard()
    return Training(
        model,
        given.orchards(),
        batch=times(20),
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.Adam(model.parameters(), 3e-4),
        again=not fault,
    )


# Parallelism: batch


def swings(fault: bool) -> Training:
    """What a step keeps is to fit into the cache of a core, or into four of them."""
    model, room = given.Swing(), 2**20 if fault else 2**22
    return Training(
        model,
        given.swings(),
        batch=given.fitting(96, room, lambda batch: 4 * batch * 28 * 6 * 104),
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def turbans(fault: bool) -> Script:
    """A batch begins small, and gets one more at each 2,000 updates until it is 64."""

    def run(seconds: float) -> float:
        model, data, clock = given.Turban(), given.turbans(), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
        batches = given.More(len(data), 8 if fault else 64, every=2000, most=64)
        for windings, places in epochs(DataLoader(data, batch_sampler=batches)):
            loss = functional.cross_entropy(model(windings), places)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(windings)):
                break
        return clock.rate

    return Script(run)


TWENTY_SECOND_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-bathtub-anomalies": bathtubs,
    "run-sandals-straps-weighed": sandals,
    "run-palettes-tempered": palettes,
    "run-easels-how-steep": easels,
    "run-envelopes-posted": envelopes,
    "run-typewriters-stroke-by-stroke": typewriters,
    "run-steady-hedges": steady_hedges,
    "run-steady-silos": steady_silos,
    "run-steady-taps": steady_taps,
    "run-steady-sickles": steady_sickles,
    "run-steady-scrolls": steady_scrolls,
    "run-steady-scythes": steady_scythes,
    "run-steady-orchards": steady_orchards,
    "run-swings-halved-to-fit": swings,
    "run-turbans-slowly-more": turbans,
}


if __name__ == "__main__":
    programs4.main(TWENTY_SECOND_B)
