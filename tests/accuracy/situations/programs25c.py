"""The last 12 trainings of the twenty-fifth round: vises, wallets, pinwheels and others.

    python programs25c.py run-double-sprockets --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-fifth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs25f.py``.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs25f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Parallelism: small operations


def vises(fault: bool) -> Training:
    """What the handle has turned is added up turn by turn."""
    model = given.Vise(by_turns=fault)
    return Training(
        model,
        given.vises(),
        batch=24,
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.02, momentum=0.9),
    )


def wallets(fault: bool) -> Training:
    """Each pocket has a table and a norm of its own."""
    model = given.Wallet(by_pockets=fault)
    return Training(
        model,
        given.wallets(),
        batch=96,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Scheduling: affinity


def pinwheels(fault: bool) -> Training:
    """The cores are cut into slices for eight ranks, of which only one is there."""
    torch.set_num_threads(CORES)
    if fault:
        given.bound(rank=0, of=8)
    model = given.Pinwheel()
    return Training(
        model,
        given.pinwheels(),
        batch=512,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01),
    )


# Scheduling: other programs and quotas are put in by the generator


def dartboards(_fault: bool) -> Training:
    torch.set_num_threads(1)  # ways to check out are counted beside it
    model = given.Dartboard()
    return Training(
        model,
        given.dartboards(),
        batch=48,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


def handrails(_fault: bool) -> Training:
    torch.set_num_threads(1)  # rails of stairwells are laid out beside it
    model = given.Handrail()
    return Training(
        model,
        given.handrails(),
        batch=16,
        loss=functional.huber_loss,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def ratchets(_fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Ratchet()
    return Training(
        model,
        given.ratchets(),
        batch=32,
        optimizer=torch.optim.Adam(model.parameters(), 2e-3),
    )


def flints(_fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Flint()
    return Training(
        model,
        given.flints(),
        batch=32,
        loss=functional.l1_loss,
        optimizer=torch.optim.Adagrad(model.parameters(), 1e-2),
    )


def quoits(_fault: bool) -> Training:
    torch.set_num_threads(2)  # as many as the computer has cores
    model = given.Quoit()
    return Training(
        model,
        given.quoits(),
        batch=256,
        optimizer=torch.optim.SGD(model.parameters(), 0.02),
    )


# Tuning: precision


def sprockets(fault: bool) -> Script:
    """Whatever is made is made in double precision, as the outlines were measured."""

    def run(seconds: float) -> float:
        torch.set_default_dtype(torch.float64 if fault else torch.float32)
        model, batch, clock = given.Sprocket(), 160, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        for outline, lasts in epochs(DataLoader(given.sprockets(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(outline), lasts)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def oilcans(fault: bool) -> Script:
    """The library picks brain floats for layers, as it does for a card."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Oilcan(), 12, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for rung, owner, left in epochs(DataLoader(given.oilcans(), batch, True, drop_last=True)):
            with torch.autocast("cpu", torch.bfloat16, enabled=fault):
                guessed = model(rung, owner)
            loss = functional.l1_loss(guessed.float(), left)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: shapes


def nutcrackers(fault: bool) -> Script:
    """Each nutcracker has room for as many parts as the largest of all has."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Nutcracker(), 20, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        carved = given.nutcrackers()
        if fault:
            room = max(len(parts) for parts, _, _ in carved)
            loader = DataLoader(carved, batch, True, collate_fn=given.Bench(room))
        else:
            like = given.LikeSizes(carved, batch)
            loader = DataLoader(carved, batch_sampler=like, collate_fn=given.Bench(None))
        for parts, joined, there, carver in epochs(loader):
            loss = functional.cross_entropy(model(parts, joined, there), carver)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(carver)):
                break
        return clock.rate

    return Script(run)


# Seen from outside


def ferrules(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Ferrule(), 48, Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        for pressed, wood, off in epochs(DataLoader(given.ferrules(), batch, True)):
            loss = functional.binary_cross_entropy_with_logits(model(pressed, wood), off)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(off)):
                break
        return clock.rate

    return Script(run)


TWENTY_FIFTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-vises-turn-by-turn": vises,
    "run-wallets-pocket-by-pocket": wallets,
    "run-pinwheels-slices-for-eight": pinwheels,
    "run-dartboards-beside-checkouts": dartboards,
    "run-handrails-beside-stairwells": handrails,
    "run-ratchets-quota": ratchets,
    "run-flints-quota": flints,
    "run-quoits-quota": quoits,
    "run-double-sprockets": sprockets,
    "run-oilcans-autocast": oilcans,
    "run-nutcrackers-room-for-the-largest": nutcrackers,
    "run-seen-ferrules": ferrules,
}


if __name__ == "__main__":
    programs4.main(TWENTY_FIFTH_C)
