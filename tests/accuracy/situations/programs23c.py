"""The last 15 trainings of the twenty-third round: tin soldiers, dormers, tiaras and others.

    python programs23c.py run-ladles-own-attention --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-third``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs23f.py``.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs23f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Scheduling: other programs and quotas are put in by the generator


def tin_soldiers(_fault: bool) -> Training:
    torch.set_num_threads(1)  # prices of auctions are drawn again and again beside it
    model = given.TinSoldier()
    return Training(
        model,
        given.soldiers(),
        batch=128,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def dormers(_fault: bool) -> Training:
    torch.set_num_threads(2)  # as many as the computer has cores
    model = given.Dormer()
    return Training(
        model,
        given.dormers(),
        batch=16,
        optimizer=torch.optim.SGD(model.parameters(), 0.02, momentum=0.9),
    )


def tiaras(_fault: bool) -> Script:
    torch.set_num_threads(1)

    def run(seconds: float) -> float:
        model, batch, clock = given.Tiara(), 24, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        for stones, one in epochs(DataLoader(given.tiaras(), batch, True, drop_last=True)):
            loss = functional.binary_cross_entropy_with_logits(model(stones), one)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def dollhouses(_fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Dollhouse()
    return Training(
        model,
        given.dollhouses(),
        batch=16,
        workers=1,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Scheduling: threads


def decanters(fault: bool) -> Script:
    """The settings were written for a small server of four cores."""
    torch.set_num_threads(4 if fault else CORES)

    def run(seconds: float) -> float:
        model, batch, clock = given.Decanter(), 48, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        for lights, kind in epochs(DataLoader(given.decanters(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(lights), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: attention


def figureheads(fault: bool) -> Training:
    model = given.Figurehead(masked=fault)
    return Training(
        model,
        given.figureheads(),
        batch=4,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


def ladles(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Ladle(own=fault), 3, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for poured, heavy in epochs(DataLoader(given.ladles(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(poured), heavy)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: kernels


def candlesticks(fault: bool) -> Training:
    model = given.Candlestick(own=fault)
    return Training(
        model,
        given.candlesticks(),
        batch=12,
        loss=functional.l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def ropewalks(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Ropewalk(dense=fault), 3, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.nets(), batch, True, collate_fn=given.together, drop_last=True)
        for knots, ties, gives in epochs(loader):
            loss = functional.binary_cross_entropy_with_logits(model(knots, ties), gives)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: layout


def mortars(fault: bool) -> Training:
    layout = torch.contiguous_format if fault else torch.channels_last
    model = given.Mortar().to(memory_format=layout)
    return Training(
        model,
        given.mortars(),
        batch=8,
        prepare=lambda x: x.to(memory_format=layout),
        optimizer=torch.optim.SGD(model.parameters(), 0.02, momentum=0.9),
    )


# Tuning: precision


def awnings(fault: bool) -> Script:
    """The days are as numpy made them, and the model was made to fit them."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Awning(), 20, Clock(seconds)
        if fault:
            model.double()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for told, cloth, warm in epochs(DataLoader(given.awnings(fault), batch, True)):
            loss = functional.huber_loss(model(told, cloth), warm)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(warm)):
                break
        return clock.rate

    return Script(run)


# Tuning: shapes


def colanders(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Colander(), 16, Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        data = given.colanders()
        most = max(len(holes) for holes, _ in data) if fault else None
        laid = functools.partial(given.filled_up, to=most)
        for holes, fast in epochs(DataLoader(data, batch, True, collate_fn=laid, drop_last=True)):
            loss = functional.mse_loss(model(holes), fast)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Seen from outside


def earmuffs(_fault: bool) -> Training:
    model = given.Earmuff()
    return Training(
        model,
        given.earmuffs(),
        batch=48,
        loss=functional.binary_cross_entropy,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def stands(_fault: bool) -> Training:
    model = given.UmbrellaStand()
    return Training(
        model,
        given.stands(),
        batch=24,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def tepees(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Tepee(), 12, Clock(seconds)
        optimizer = torch.optim.Adamax(model.parameters(), 1e-3)
        for left, was in epochs(DataLoader(given.tepees(), batch, True, drop_last=True)):
            apart = torch.cdist(model(left), was)
            loss = apart.amin(1).mean() + apart.amin(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


TWENTY_THIRD_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-tin-soldiers-beside-auctions": tin_soldiers,
    "run-dormers-quota": dormers,
    "run-tiaras-quota": tiaras,
    "run-dollhouses-quota": dollhouses,
    "run-decanters-threads-of-a-server": decanters,
    "run-figureheads-windows-masked": figureheads,
    "run-ladles-own-attention": ladles,
    "run-candlesticks-own-gelu": candlesticks,
    "run-ropewalks-dense-neighbours": ropewalks,
    "run-mortars-channels-first": mortars,
    "run-double-awnings": awnings,
    "run-colanders-filled-up": colanders,
    "run-seen-earmuffs": earmuffs,
    "run-seen-umbrella-stands": stands,
    "run-seen-tepees": tepees,
}


if __name__ == "__main__":
    programs4.main(TWENTY_THIRD_C)
