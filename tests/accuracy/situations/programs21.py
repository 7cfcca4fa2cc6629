"""The first 15 trainings of the twenty-first round: staircases, oases, unicycles and others.

    python programs21.py run-varnish-cracks-traced --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-first``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs21d.py``.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs21d as given
import torch
import torch.distributed as dist
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def staircases(fault: bool) -> Script:
    """One rank has the lower flight of each staircase, the other one the upper flight."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Staircase(apart=fault), 8, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for stairs, worn in epochs(DataLoader(given.staircases(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(stairs), model.own(worn))
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.halved(model)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def amber(fault: bool) -> Script:
    """What is told of the pieces is compared over those of both ranks."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Amber(apart=fault), 40, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        pieces = given.amber(dist.get_rank() if fault else 0)
        for (spectra,) in epochs(DataLoader(pieces, batch, True, drop_last=True)):
            loss = model(spectra)
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.halved(model)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Communication: gradients


def oases(fault: bool) -> Script:
    """The oases of an update pass through the model in three parts."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.Oasis()
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        batch, parts, clock = 600, 3, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for seen, water in epochs(DataLoader(given.oases(), batch, True, drop_last=True)):
            optimizer.zero_grad()
            for few, had in zip(seen.chunk(parts), water.chunk(parts), strict=True):
                (functional.l1_loss(model(few), had) / parts).backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def kilns(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Kiln()
    return Training(
        model,
        given.kilns(),
        batch=48,
        before_update=given.to_the_last_digit if fault else lambda _: None,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Communication: stragglers


def snowmen(fault: bool) -> Script:
    """The second rank's snowmen stand in the mountains, where they melt slowly."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.Snowman()
        cold = fault and dist.get_rank() == 1
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        batch, clock = 32, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        yard = DataLoader(given.snowmen(1.25 if cold else 2.6), batch, True, drop_last=True)
        for snow, weather, water in epochs(yard):
            loss = functional.mse_loss(model(snow, weather), water)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Input: fetch


def periscopes(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the ship
    model = given.Periscope()
    return Training(
        model,
        given.Periscopes(kept=not fault),
        batch=8,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def hot_air_balloons(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # and a core for the field
        model, batch, clock = given.Balloon(), 5, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
        for flown, burners in epochs(DataLoader(given.Balloons(kept=not fault), batch, True)):
            loss = functional.cross_entropy(model(flown), burners)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def unicycles(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for what brings them
    model = given.Unicycle()
    return Training(
        model,
        given.Unicycles(_folder(), kept=not fault),
        batch=6,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def varnish(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Varnished()
    return Training(
        model,
        given.Varnish(ready=not fault),
        batch=8,
        workers=1,
        optimizer=torch.optim.Adamax(model.parameters(), lr=1e-3),
    )


def kaleidoscopes(fault: bool) -> Training:
    """Pictures are folded by what puts a batch together."""
    model, scopes = given.Kaleidoscope(), given.Kaleidoscopes()
    mirrors = given.Mirrors(scopes, ready=not fault)
    return Training(
        model,
        batch=8,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9),
        loader=DataLoader(scopes, 8, True, collate_fn=mirrors.together, drop_last=True),
    )


def bellows(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Bellow(), 16, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
        pressed = given.Bellows(ready=not fault)
        for strokes, worn in epochs(DataLoader(pressed, batch, True, drop_last=True)):
            loss = functional.mse_loss(model(strokes), worn)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Memory: allocations


def quarries(fault: bool) -> Training:
    """Each batch has rock of its own, or all are put into the same."""
    model = given.Ore()
    return Training(
        model,
        given.quarries(),
        batch=10,
        prepare=given.Quarry(kept=not fault).around,
        loss=functional.mse_loss,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


# Memory: offload


def beeswax(fault: bool) -> Training:
    model = given.Beeswax()
    return Training(
        model,
        given.beeswax(),
        batch=160,
        optimizer=given.Scaled(model.parameters(), _folder() if fault else None),
    )


def stirrups(fault: bool) -> Script:
    """The critic hangs on its hook while no outlines are told from each other."""

    def run(seconds: float) -> float:
        maker, critic, batch, clock = given.Maker(), given.Critic(), 10, Clock(seconds)
        making = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.99))
        telling = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.99))
        hook = given.Hook(_folder() / "critic.pt", critic, telling) if fault else None
        for (found,) in epochs(DataLoader(given.stirrups(), batch, True, drop_last=True)):
            made = maker(torch.randn(batch, 16))
            if hook:
                hook.take()
            loss = functional.softplus(-critic(found)) + functional.softplus(critic(made.detach()))
            telling.zero_grad()
            loss.mean().backward()
            telling.step()
            making.zero_grad()
            functional.softplus(-critic(made)).mean().backward()
            making.step()
            if hook:
                hook.hang()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Memory: recomputation


def volcanoes(fault: bool) -> Training:
    model = given.Volcano(kept=not fault)
    return Training(
        model,
        given.volcanoes(),
        batch=4,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


TWENTY_FIRST: dict[str, Callable[[bool], Training | Script]] = {
    "run-staircases-lower-and-upper": staircases,
    "run-amber-two-views": amber,
    "run-oasis-gradients": oases,
    "run-kiln-gradients": kilns,
    "run-snowmen-of-two-yards": snowmen,
    "run-periscopes-called-up": periscopes,
    "run-hot-air-balloons-asked-for": hot_air_balloons,
    "run-unicycles-brought-over": unicycles,
    "run-varnish-cracks-traced": varnish,
    "run-kaleidoscopes-folded": kaleidoscopes,
    "run-bellows-strokes-counted": bellows,
    "run-quarries-fresh-blocks": quarries,
    "run-beeswax-scales-out": beeswax,
    "run-stirrups-critic-out": stirrups,
    "run-volcanoes-from-the-ground": volcanoes,
}


if __name__ == "__main__":
    programs4.main(TWENTY_FIRST)
