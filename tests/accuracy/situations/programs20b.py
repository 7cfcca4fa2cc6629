"""Runs 16 to 30 of the twentieth round: bongos, domes, cellos, rigging, tubas, moats and others.

    python programs20b.py run-steady-rigging --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twentieth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs20e.py``.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs20e as given
import torch
from programs import Training, _folder
from programs4 import Clock, Script
from torch import Tensor
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Memory: recomputation


def bongos(fault: bool) -> Training:
    model = given.Bongo(sparing=fault)
    return Training(
        model,
        given.bongos(),
        batch=48,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Monitoring: checkpoints


def domes(fault: bool) -> Training:
    """What is kept of a dome takes little room."""
    model, folder, every = given.Dome(), _folder(), 1 if fault else 500

    def after(step: int, _loss: Tensor) -> None:
        if step % every == 0:
            given.kept_small(model, folder / "dome.npz")

    return Training(
        model,
        given.domes(),
        batch=128,
        loss=functional.mse_loss,
        after=after,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


# Monitoring: evaluation


def aqueducts(fault: bool) -> Script:
    """How sure it is that other aqueducts are told in their order."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Aqueduct(), 48, Clock(seconds)
        every, (other, brought) = 4 if fault else 500, given.aqueducts(200).tensors
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.aqueducts(), batch, shuffle=True, drop_last=True)
        for step, (along, water) in enumerate(epochs(loader), 1):
            loss = functional.mse_loss(model(along), water)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                model.eval()
                with torch.no_grad():
                    given.between(model(other), brought)
                model.train()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


TWENTIETH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-bongos-from-the-first-beat": bongos,
    "run-domes-kept-small": domes,
    "run-aqueducts-drawn-again": aqueducts,
}


if __name__ == "__main__":
    programs4.main(TWENTIETH_B)
