"""The last 23 of the twelfth round's trainings: moss, rain gauges, kettles, padlocks and others.

    python programs12b.py run-few-padlocks --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twelfth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs12e.py``.
"""

import os
from collections.abc import Callable, Iterable
from typing import Any

import programs4
import programs12e as given
import psutil
import torch
from programs import Training, _endlessly
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

either = functional.binary_cross_entropy_with_logits


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


# Nothing: without the loader it is no faster


def steady_moss(fault: bool) -> Training:
    def prepare(photos: Tensor) -> Tensor:
        return photos.float().div_(255).sub_(0.5)

    model = given.Moss()
    return Training(
        model,
        given.quadrats(),
        batch=6,
        prepare=prepare,
        loss=given.unlikely_cover,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=1e-4),
        again=not fault,
    )


def steady_rain(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Rain(), 24, Clock(seconds)
        loader = DataLoader(given.gauges(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.02)
        for past, places, ahead in endlessly(loader, not fault):
            loss = given.wet_or_dry(model(past, places), ahead)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_kettles(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Kettle(), 32, Clock(seconds)
        loader = DataLoader(given.houses(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        rate = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9999)
        for power, watts, boils in endlessly(loader, not fault):
            told, chance = model(power)
            loss = functional.mse_loss(told, watts) + 0.1 * either(chance, boils)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            rate.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Too little at once


def few_padlocks(fault: bool) -> Training:
    model = given.Key()
    optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
    return Training(model, given.keys(), batch=8 if fault else 48, optimizer=optimizer)


def few_harps(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Harp(), 6 if fault else 16, Clock(seconds)
        loader = DataLoader(given.recordings(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.RMSprop(model.parameters(), 2e-4, momentum=0.5)
        rare = torch.full((47,), 6.0)
        for pitches, sounding in endlessly(loader):
            optimizer.zero_grad()
            loss = either(model(pitches), sounding, pos_weight=rare)
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def frogs_frame_by_frame(fault: bool) -> Training:
    model = given.Frog(in_turn=fault)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.nights(), batch=4, loss=either, optimizer=optimizer)


# Scheduling: the quota and other programs are put in by the generator


def pollen(_fault: bool) -> Script:
    """As many threads as the laboratory's computer has cores."""
    torch.set_num_threads(os.cpu_count() or 1)

    def run(seconds: float) -> float:
        model, batch, clock = given.Grain(), 8, Clock(seconds)
        loader = DataLoader(given.grains(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
        for *light, plant in endlessly(loader):
            optimizer.zero_grad()
            functional.cross_entropy(model(light), plant, label_smoothing=0.1).backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def ticks(fault: bool) -> Training:
    """The last core is for the training, so that the workshop's computer stays of use."""
    if fault:
        me = psutil.Process()
        me.cpu_affinity(me.cpu_affinity()[-1:])
    model = given.Tick()
    optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
    loss = functional.huber_loss
    return Training(model, given.clocks(), batch=8, loss=loss, optimizer=optimizer)


def bagpipes(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Pipes(), 6, Clock(seconds)
        loader = DataLoader(given.piping(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(model.parameters(), 4e-4, betas=(0.9, 0.99))
        for heard, notes, cents in endlessly(loader):
            told, drones = model(heard)
            loss = functional.cross_entropy(told, notes) + functional.l1_loss(drones, cents)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def resistors(_fault: bool) -> Training:
    def loss(told: Tensor, colours: Tensor) -> Tensor:
        shown = torch.full((len(colours),), len(told))
        return functional.ctc_loss(told, colours, shown, torch.full_like(shown, 5))

    model = given.Bands()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    return Training(model, given.resistors(), batch=4, loss=loss, optimizer=optimizer)


def candles(_fault: bool) -> Training:
    model = given.Flame()
    return Training(
        model,
        given.flames(),
        batch=8,
        loss=given.wick_and_draught,
        optimizer=torch.optim.AdamW(model.parameters(), 5e-4, betas=(0.9, 0.95)),
    )


def forklifts(_fault: bool) -> Script:
    """A worker cuts the plan, beside a thread that trains."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model, batch, clock = given.Driven(), 8, Clock(seconds)
        loader = DataLoader(
            given.Hall(),
            batch,
            shuffle=True,
            drop_last=True,
            num_workers=1,
            persistent_workers=True,
        )
        optimizer = torch.optim.Adam(model.parameters(), 5e-4)
        for around, past, ahead in endlessly(loader):
            optimizer.zero_grad()
            given.nearest_way(*model(around, past), ahead).backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def shoes(_fault: bool) -> Script:
    """The gradients of two batches make an update."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Sole(), 4, Clock(seconds)
        loader = DataLoader(given.Prints(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        apart = nn.TripletMarginLoss(margin=0.3)
        for number, prints in enumerate(endlessly(loader), 1):
            points = model(prints.flatten(0, 1)).unflatten(0, (-1, 3))
            (apart(*points.unbind(1)) / 2).backward()
            if number % 2 == 0:
                optimizer.step()
                optimizer.zero_grad()
                if clock.over(2 * batch):
                    break
        return clock.rate

    return Script(run)


def noodles(_fault: bool) -> Training:
    model = given.Noodle()
    optimizer = torch.optim.Adamax(model.parameters(), 2e-3)
    loss = functional.mse_loss
    return Training(model, given.noodles(), batch=16, loss=loss, optimizer=optimizer)


def batteries(_fault: bool) -> Training:
    """One thread, as the laboratory's scripts have it."""
    torch.set_num_threads(1)
    model = given.Battery()

    def clipped(trained: nn.Module) -> None:
        nn.utils.clip_grad_norm_(trained.parameters(), 5.0)

    return Training(
        model,
        given.charges(),
        batch=8,
        loss=functional.l1_loss,
        before_update=clipped,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def accordions(_fault: bool) -> Training:
    model = given.Bellows()
    optimizer = torch.optim.Adam(model.parameters(), 3e-4)
    loss = functional.l1_loss
    return Training(model, given.Reeds(), 4, workers=2, loss=loss, optimizer=optimizer)


def pings_one_thread(fault: bool) -> Script:
    def run(seconds: float) -> float:
        data = given.Pings(readers=fault)
        model, batch, clock = given.Ping(), 12, Clock(seconds)
        loader = DataLoader(data, batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adagrad(model.parameters(), 0.01)
        for sound, far, where in endlessly(loader):
            near, told = model(sound)
            loss = functional.cross_entropy(near, far) - (told * where).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Untuned


def written_kimchi(fault: bool) -> Training:
    model = given.Jar(written=fault)
    return Training(
        model,
        given.jars(),
        batch=12,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.RAdam(model.parameters(), 1e-3),
    )


def autocast_fog(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Fog(), 2, Clock(seconds)
        loader = DataLoader(given.harbour(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, nesterov=True)
        for pictures, marks in endlessly(loader):
            dark = given.dark_channel(pictures)
            with torch.autocast("cpu", torch.float16, enabled=fault):
                loss = functional.cross_entropy(model(pictures, dark), marks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def double_sand(fault: bool) -> Training:
    """numpy made the pictures, and nobody asked of what kind."""
    data = TensorDataset(*(torch.from_numpy(each) for each in given.beaches()))
    model = given.Sand().double()
    if not fault:
        data = TensorDataset(*(each.float() for each in data.tensors))
        model = model.float()

    def loss(told: Tensor, kept: Tensor) -> Tensor:
        return functional.kl_div(told, kept, reduction="batchmean")

    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return Training(model, data, batch=3, loss=loss, optimizer=optimizer)


def square_bridges(fault: bool) -> Training:
    model = given.Span()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.05)
    return Training(model, given.bridges(square=fault), batch=4, optimizer=optimizer)


# Seen from outside


def lullabies(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Lullaby(), 8, Clock(seconds)
        loader = DataLoader(given.lullabies(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), 6e-4)
        for pitch, length in endlessly(loader):
            pitches, lengths = model(pitch[:, :-1], length[:, :-1])
            loss = functional.cross_entropy(pitches.mT, pitch[:, 1:])
            loss = loss + functional.cross_entropy(lengths.mT, length[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def submarines(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Hull(), 8, Clock(seconds)
        loader = DataLoader(
            given.Seabed(),
            batch,
            shuffle=True,
            drop_last=True,
            num_workers=1,
            persistent_workers=True,
        )
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for picture, middle, long in endlessly(loader):
            found, told = model(picture)
            loss = either(found, middle, pos_weight=torch.tensor(20.0))
            loss = loss + ((told - long).abs() * middle).sum() / middle.sum().clamp(min=1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


TWELFTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-steady-moss": steady_moss,
    "run-steady-rain": steady_rain,
    "run-steady-kettles": steady_kettles,
    "run-few-padlocks": few_padlocks,
    "run-few-harps": few_harps,
    "run-frogs-frame-by-frame": frogs_frame_by_frame,
    "run-pollen-one-core": pollen,
    "run-ticks-one-core": ticks,
    "run-beside-bagpipes": bagpipes,
    "run-resistors-beside-solvers": resistors,
    "run-candles-quota": candles,
    "run-forklifts-quota": forklifts,
    "run-shoes-quota": shoes,
    "run-noodles-quota": noodles,
    "run-batteries-quota": batteries,
    "run-accordions-quota": accordions,
    "run-pings-one-thread": pings_one_thread,
    "run-written-kimchi": written_kimchi,
    "run-autocast-fog": autocast_fog,
    "run-double-sand": double_sand,
    "run-square-bridges": square_bridges,
    "run-seen-lullabies": lullabies,
    "run-seen-submarines": submarines,
}


if __name__ == "__main__":
    programs4.main(TWELFTH_B)
