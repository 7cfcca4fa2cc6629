"""The last 15 trainings of the seventeenth round: statues, nails, ferries, banners and others.

    python programs17c.py run-double-murals --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --seventeenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs17f.py``.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs17f as given
import torch
from programs import Training, _folder
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Scheduling: quotas and other programs are put in by the generator


def statues(_fault: bool) -> Training:
    model = given.Statue()
    return Training(
        model,
        given.statues(),
        batch=2,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def nails(_fault: bool) -> Script:
    torch.set_num_threads(2)

    def run(seconds: float) -> float:
        model, batch, clock = given.Nail(), 6, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, nesterov=True)
        for picture, use in epochs(DataLoader(given.nails(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(picture), use)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def thermometers(_fault: bool) -> Training:
    torch.set_num_threads(1)  # as one of many small trainings
    model = given.Thermometer()
    return Training(
        model,
        given.readings(),
        batch=24,
        loss=given.pinball,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def ferries(_fault: bool) -> Training:
    model = given.Ferry()
    return Training(
        model,
        given.crossings(),
        batch=32,
        loss=functional.l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def valves(_fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Valve()
    return Training(
        model,
        given.Curves(),
        batch=8,
        workers=1,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.AdamW(model.parameters(), 2e-3),
    )


def lasers(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Laser(), 24, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for (beam,) in epochs(DataLoader(given.beams(), batch, True, drop_last=True)):
            again, mean, spread = model(beam)
            known = (mean**2 + spread.exp() - spread - 1).sum(1).mean() / 2
            loss = functional.mse_loss(again, beam, reduction="sum") / batch + known
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: attention


def banners(fault: bool) -> Training:
    model = given.Banner(written=fault)
    return Training(
        model,
        given.banners(),
        batch=2,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


def cricket(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Innings(repeated=fault), 2, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for (balls,) in epochs(DataLoader(given.innings(), batch, True, drop_last=True)):
            told = model(balls[:, :-1])
            loss = functional.cross_entropy(told.flatten(0, 1), balls[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: kernels


def rowing(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Stroke(own=fault), 12, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.strokes(), batch, shuffle=True, drop_last=True)
        for felt, force, later, then in epochs(loader):
            loss = functional.mse_loss(model(felt, force, later), then)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: precision


def murals(fault: bool) -> Script:
    """The training goes on from weights as they were once kept, and is done as they are."""
    path = _folder() / "weights.pt"
    first = given.Mural()
    torch.save((first.double() if fault else first).state_dict(), path)

    def run(seconds: float) -> float:
        model, batch, clock = given.Mural(), 4, Clock(seconds)
        model.load_state_dict(torch.load(path), assign=True)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for pair in epochs(DataLoader(given.murals(), batch, True, drop_last=True)):
            faded, fresh = (each.to(model.was.weight.dtype) for each in pair)
            loss = functional.l1_loss(model(faded), fresh)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def belts(fault: bool) -> Training:
    """What is multiplied is rounded as the small computers at the belts do it."""
    model = given.Belt(rounded=fault)
    return Training(
        model,
        given.belts(),
        batch=12,
        loss=functional.huber_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


def gloves(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Glove(), 128, Clock(seconds)
        if fault:
            model.bfloat16()
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        for felt, joints in epochs(DataLoader(given.gloves(), batch, True, drop_last=True)):
            told = model(felt.bfloat16() if fault else felt)
            loss = functional.mse_loss(told.float(), joints)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def surfboards(fault: bool) -> Training:
    """Small effects are not to be lost in the sums along a board."""
    model = given.Surfboard(exact=fault)
    return Training(
        model,
        given.boards(),
        batch=24,
        loss=functional.mse_loss,
        optimizer=torch.optim.NAdam(model.parameters(), 1e-3),
    )


# Seen from outside


def canoes(_fault: bool) -> Training:
    model = given.Canoe()
    return Training(
        model,
        given.paddled(),
        batch=32,
        optimizer=torch.optim.RAdam(model.parameters(), 1e-3),
    )


def thimbles(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Thimble(), 16, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for (picture,) in epochs(DataLoader(given.thimbles(), batch, True, drop_last=True)):
            much, noise = torch.rand(batch), torch.randn_like(picture)
            noisy = torch.lerp(picture, noise, much[:, None, None, None])
            loss = functional.mse_loss(model(noisy, much), noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


SEVENTEENTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-statues-beside-scans": statues,
    "run-nails-quota": nails,
    "run-thermometers-quota": thermometers,
    "run-ferries-quota": ferries,
    "run-valves-quota": valves,
    "run-lasers-quota": lasers,
    "run-banners-own-attention": banners,
    "run-cricket-keys-repeated": cricket,
    "run-rowing-own-inverse": rowing,
    "run-double-murals": murals,
    "run-belts-in-float8": belts,
    "run-short-gloves": gloves,
    "run-surfboards-exact": surfboards,
    "run-seen-canoes": canoes,
    "run-seen-thimbles": thimbles,
}


if __name__ == "__main__":
    programs4.main(SEVENTEENTH_C)
