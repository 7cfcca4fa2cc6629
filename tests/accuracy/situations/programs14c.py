"""The last 15 trainings of the fourteenth round: foghorns, dolls, thistles, saws and others.

    python programs14c.py run-foghorns-by-job --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --fourteenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs14f.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import programs4
import programs14f as given
import psutil
import torch
from programs import Training
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

either = functional.binary_cross_entropy_with_logits


def epochs(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Scheduling: one core for dolls, the quota and other programs are put in by the generator


def foghorns(fault: bool) -> Script:
    """Each job of an array takes the core of its number, so that no two are in each other's way."""
    me, job = psutil.Process(), int(os.environ.get("JOB_NUMBER", "1"))
    if fault:
        cores = me.cpu_affinity()
        me.cpu_affinity([cores[job % len(cores)]])
    torch.set_num_threads(len(me.cpu_affinity()))

    def run(seconds: float) -> float:
        model, batch, clock = given.Foghorn(), 20, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.coasts(), batch, shuffle=True, drop_last=True)
        for heard, where in epochs(loader):
            loss = functional.smooth_l1_loss(model(heard), where)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def dolls(_fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Doll()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return Training(model, given.Dolls(), batch=4, workers=1, optimizer=optimizer)


def thistles(_fault: bool) -> Training:
    torch.set_num_threads(1)  # as much as a user has of the archive's computer
    model = given.Thistle()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.winds(), batch=2, optimizer=optimizer)


def saws(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Saw(), 9, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 5e-4)
        loader = DataLoader(given.blades(), batch, shuffle=True, drop_last=True)
        for swinging, blunt in epochs(loader):
            loss = functional.l1_loss(model(swinging), blunt)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def ladders(fault: bool) -> Training:
    """As many threads as the computers have for which the script was written."""
    if fault:
        torch.set_num_threads(20)
    model = given.Ladder()
    optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
    return Training(model, given.climbs(), batch=512, optimizer=optimizer)


# Untuned


def millet(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Millet(written=fault), 4, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
        loader = DataLoader(given.fields(), batch, shuffle=True, drop_last=True)
        for seen, yielded in epochs(loader):
            loss = functional.mse_loss(model(seen), yielded)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def honey(fault: bool) -> Training:
    model = given.Honey(own=fault)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.pollen(), batch=6, optimizer=optimizer)


def pumpkins(fault: bool) -> Script:
    def run(seconds: float) -> float:
        kind = torch.bfloat16 if fault else torch.float32
        model, batch, clock = given.Pumpkin().to(kind), 192, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9)
        data = given.plants()
        batches = BatchSampler(RandomSampler(data), batch, drop_last=True)
        loader = DataLoader(data, batch_size=None, sampler=batches)
        for plant, weight in epochs(loader):
            loss = given.within(model(plant.to(kind)), weight)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def flutes(fault: bool) -> Training:
    """What NumPy gave is taken as it is, and the model made to fit it."""
    heard, closed = given.sounds()
    model: nn.Module = given.Flute()
    if fault:
        model = model.double()
    else:
        heard, closed = heard.astype(np.float32), closed.astype(np.float32)
    data = TensorDataset(torch.from_numpy(heard), torch.from_numpy(closed))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, data, batch=160, loss=either, optimizer=optimizer)


def toads(fault: bool) -> Script:
    def run(seconds: float) -> float:
        kind = torch.float16 if fault else torch.float32
        model, batch, clock = given.Toad().to(kind), 4, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        loader = DataLoader(given.ponds(), batch, shuffle=True, drop_last=True)
        for pond, there in epochs(loader):
            loss = either(model(pond.to(kind)).float(), there)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def sponges(fault: bool) -> Training:
    """Trained as it will be used, where numbers have eight bits."""
    model = given.Sponge(eight_bits=fault)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    return Training(model, given.pores(), batch=20, optimizer=optimizer)


# Seen from outside


def moths(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Moth(), 16, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.05)
        loader = DataLoader(given.pairs_of_moths(), batch, shuffle=True, drop_last=True)
        for one, other in epochs(loader):
            alike = model(one) @ model(other).mT / 0.1
            loss = functional.cross_entropy(alike, torch.arange(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def beetles(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Beetle(), 64, Clock(seconds)
        optimizer = torch.optim.Adagrad(model.parameters(), 0.01)
        loader = DataLoader(given.drawers(), batch, shuffle=True, drop_last=True)
        for measured, place, family, kind in epochs(loader):
            families, kinds = model(measured, place)
            loss = functional.cross_entropy(families, family)
            loss = loss + functional.cross_entropy(kinds, kind, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def marbles(_fault: bool) -> Training:
    model = given.Marble()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.boxes(), batch=24, loss=functional.mse_loss, optimizer=optimizer)


def watermills(_fault: bool) -> Training:
    def after(step: int, loss: Tensor) -> None:
        if step % 200 == 0:
            print(f"{step:6d} {loss.item():.4f}")

    model = given.Watermill()
    optimizer = torch.optim.Adamax(model.parameters(), 2e-3)
    return Training(
        model, given.rivers(), batch=48, loss=given.apart, after=after, optimizer=optimizer
    )


FOURTEENTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-foghorns-by-job": foghorns,
    "run-dolls-one-core": dolls,
    "run-thistles-beside-checksums": thistles,
    "run-saws-quota": saws,
    "run-crowded-ladders": ladders,
    "run-millet-written-attention": millet,
    "run-honey-own-sampling": honey,
    "run-short-pumpkins": pumpkins,
    "run-double-flutes": flutes,
    "run-half-toads": toads,
    "run-sponges-in-eight-bits": sponges,
    "run-seen-moths": moths,
    "run-seen-beetles": beetles,
    "run-seen-marbles": marbles,
    "run-seen-watermills": watermills,
}


if __name__ == "__main__":
    programs4.main(FOURTEENTH_C)
