"""The last 15 trainings of the thirteenth round: termites, ferns, bats, fans and others.

    python programs13c.py run-few-termites --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --thirteenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs13f.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import programs4
import programs13f as given
import torch
from programs import Training
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

either = functional.binary_cross_entropy_with_logits


def epochs(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Too little at once


def few_termites(fault: bool) -> Training:
    model = given.Termite()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01)
    return Training(model, given.beams(), batch=8 if fault else 32, optimizer=optimizer)


def ferns(fault: bool) -> Script:
    """The gradients of ten fronds make an update."""

    def run(seconds: float) -> float:
        model, together, clock = given.Fern(), 10, Clock(seconds)
        batch = 1 if fault else together
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.fronds(), batch, shuffle=True, drop_last=True)
        seen = 0
        for frond, genus, species in epochs(loader):
            genera, kinds = model(frond)
            loss = functional.cross_entropy(kinds, species)
            loss = loss + 0.3 * functional.cross_entropy(genera, genus)
            (loss * batch / together).backward()
            seen += batch
            if seen % together == 0:
                optimizer.step()
                optimizer.zero_grad()
                if clock.over(together):
                    break
        return clock.rate

    return Script(run)


def bats(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, clock = given.Bat(), Clock(seconds)
        data, nights = given.calls()
        if fault:
            loader = DataLoader(data, batch_sampler=given.Nightly(nights))
        else:
            loader = DataLoader(data, 32, shuffle=True, drop_last=True)
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        for call, bat in epochs(loader):
            loss = functional.cross_entropy(model(call), bat, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(call)):
                break
        return clock.rate

    return Script(run)


def fans(fault: bool) -> Training:
    model = given.Fan(in_turn=fault)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return Training(model, given.leaves(), batch=6, optimizer=optimizer)


def badgers(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Badger(), 12, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        loader = DataLoader(
            given.Tracks(), batch, shuffle=True, drop_last=True, collate_fn=given.as_they_are
        )
        for tracks, setts in epochs(loader):
            if fault:
                scores = torch.stack([model.alone(track) for track in tracks])
            else:
                scores = model.together(tracks)
            optimizer.zero_grad()
            functional.cross_entropy(scores, setts).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: quotas and other programs are put in by the generator


def drums(fault: bool) -> Script:
    """The launcher's template gives each process of a node its share of the cores."""
    if fault:
        rank, processes = int(os.environ.get("LOCAL_RANK", "0")), 2
        cores = sorted(os.sched_getaffinity(0))
        share = len(cores) // processes
        os.sched_setaffinity(0, cores[rank * share : (rank + 1) * share])

    def run(seconds: float) -> float:
        model, batch, clock = given.Drum(), 12, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.grooves(), batch, shuffle=True, drop_last=True)
        for heard, struck in epochs(loader):
            loss = either(model(heard), struck, pos_weight=torch.tensor(5.0))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def cacti(_fault: bool) -> Training:
    model = given.Cactus()
    optimizer = torch.optim.Adam(model.parameters(), 5e-4)
    return Training(model, given.deserts(), batch=6, loss=functional.mse_loss, optimizer=optimizer)


def jars(_fault: bool) -> Script:
    """One thread, as all of the workshop are asked to use."""
    torch.set_num_threads(1)

    def run(seconds: float) -> float:
        model, batch, clock = given.Jar(), 4, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4)
        loader = DataLoader(given.profiles(), batch, shuffle=True, drop_last=True)
        for profile, age, thrower in epochs(loader):
            loss = given.aged_and_thrown(model(profile), age, thrower)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def beavers(_fault: bool) -> Training:
    model = given.Beaver()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.evenings(), batch=3, optimizer=optimizer)


def soy(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Soy(), 48, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3, betas=(0.9, 0.98))
        rate = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9999)
        for (sauce,) in epochs(DataLoader(given.sauces(), batch, shuffle=True, drop_last=True)):
            loss = given.summed_up(*model(sauce), sauce)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def otters(fault: bool) -> Training:
    """So that the same otters come out each time."""
    torch.manual_seed(11)
    torch.use_deterministic_algorithms(True, warn_only=True)
    if fault:
        torch.set_num_threads(1)  # sums in one order
    model = given.Otter()
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=5e-4)
    return Training(model, given.throats(), batch=6, loss=given.with_margin, optimizer=optimizer)


def lanterns(fault: bool) -> Script:
    chosen = given.settings()
    if fault:
        torch.set_num_threads(int(chosen["job"]["threads"]))

    def run(seconds: float) -> float:
        field = chosen["field"]
        model = given.Lantern(int(field["width"]), int(field["depth"]), field["first"])
        batch, clock = 2, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-4)
        for place, colour in epochs(DataLoader(given.lights(), batch, shuffle=True)):
            loss = functional.mse_loss(model(place), colour)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Untuned


def trout(fault: bool) -> Script:
    """All is computed with doubles, as the process may not find its root otherwise."""

    def run(seconds: float) -> float:
        kind = torch.float64 if fault else torch.float32
        model, batch, clock = given.Trout().to(kind), 320, Clock(seconds)
        data = given.trout()
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        batches = BatchSampler(RandomSampler(data), batch, drop_last=True)
        loader = DataLoader(data, batch_size=None, sampler=batches)
        for outline, weight in epochs(loader):
            loss = model.unlikely(outline.to(kind), weight.to(kind))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Seen from outside


def storks(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Stork(), 16, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.flights(), batch, shuffle=True, drop_last=True)
        for (flight,) in epochs(loader):
            loss = given.not_flown(model(flight[:, :-1]), flight[:, 1:, :2])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def nets(_fault: bool) -> Training:
    def loss(told: Tensor, gave: Tensor) -> Tensor:
        return either(told, gave, pos_weight=torch.tensor(10.0))

    model = given.Net()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return Training(model, given.hauls(), batch=2, workers=1, loss=loss, optimizer=optimizer)


THIRTEENTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-few-termites": few_termites,
    "run-ferns-frond-by-frond": ferns,
    "run-bats-night-by-night": bats,
    "run-fans-rib-by-rib": fans,
    "run-badgers-track-by-track": badgers,
    "run-drums-own-share": drums,
    "run-cacti-beside-counts": cacti,
    "run-jars-beside-kilns": jars,
    "run-beavers-quota": beavers,
    "run-soy-quota": soy,
    "run-otters-repeatable": otters,
    "run-crowded-lanterns": lanterns,
    "run-double-trout": trout,
    "run-seen-storks": storks,
    "run-seen-nets": nets,
}


if __name__ == "__main__":
    programs4.main(THIRTEENTH_C)
