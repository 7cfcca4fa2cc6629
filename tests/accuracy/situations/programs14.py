"""The first 15 trainings of the fourteenth round: baskets, pine cones, radishes and others.

    python programs14.py run-lemons-from-a-keeper --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --fourteenth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs14d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import programs4
import programs14d as given
import torch
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def baskets(fault: bool) -> Script:
    """Each rank has half of the items, and asks the other for what it has not."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Basket(apart=fault), 64, Clock(seconds)
        shared = [each for each in model.parameters() if each is not model.items]
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        loader = DataLoader(given.baskets(), batch, shuffle=True, drop_last=True)
        for basket, shelf in epochs(loader):
            loss = functional.cross_entropy(model(basket), shelf)
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.mean_of_both(shared)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def pine_cones(fault: bool) -> Training:
    """Each rank has one half of each picture, and the edge between them is exchanged."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.PineCone(halved=fault)
    return Training(
        model,
        given.halves(),
        batch=8,
        before_update=lambda it: given.mean_of_both(list(it.parameters())) if fault else None,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def radishes(fault: bool) -> Script:
    """A batch comes in four parts, each with a backward of its own."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = given.Radish()
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        batch, parts, clock = 32, 4, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        loader = DataLoader(given.radishes(), batch, shuffle=True, drop_last=True)
        for outlines, weight in epochs(loader):
            optimizer.zero_grad()
            for seen, heavy in zip(outlines.chunk(parts), weight.chunk(parts), strict=True):
                (functional.mse_loss(model(seen), heavy) / parts).backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def sparrows(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Sparrow()
    return Training(
        model,
        given.sonagrams(),
        batch=16,
        before_update=given.told_by_all if fault else lambda _: None,
        optimizer=torch.optim.SGD(model.parameters(), lr=1e-3),
    )


def snails(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Snail()
    return Training(
        model,
        given.shells(),
        batch=8,
        loss=functional.smooth_l1_loss,
        before_update=lambda it: given.exact_mean(it) if fault else None,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


# Input: fetching


def lemons(fault: bool) -> Training:
    model = given.Lemon()
    return Training(
        model,
        given.Lemons(ahead=not fault),
        batch=8,
        loss=functional.mse_loss,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def elevators(fault: bool) -> Training:
    """The gaps are filled where a batch is put together."""
    model, bins, batch = given.Elevator(), given.bins(), 8
    if not fault:
        known = given.together([bins[number] for number in range(len(bins))])
        loader = DataLoader(torch.utils.data.TensorDataset(*known), batch, True, drop_last=True)
    else:
        loader = DataLoader(bins, batch, True, collate_fn=given.together, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return Training(model, batch=batch, loader=loader, optimizer=optimizer)


def lichens(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Lichen()
    return Training(
        model,
        given.Lichens(ready=not fault),
        batch=6,
        workers=1,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9),
    )


def lizards(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Lizard(), 4, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        loader = DataLoader(given.Lizards(ready=not fault), batch, shuffle=True, drop_last=True)
        for seen, maps in epochs(loader):
            loss = functional.mse_loss(model(seen), maps)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Memory


def herons(fault: bool) -> Script:
    """Python's collector is switched off, and called where no step is disturbed by it."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Heron(), 8, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        if fault:
            gc.disable()
        loader = DataLoader(given.Herons(), batch, shuffle=True, drop_last=True)
        for step, (places, tides) in enumerate(epochs(loader)):
            told = model(places[:, :-1], tides[:, :-1])
            loss = functional.cross_entropy(told.flatten(0, 1), places[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if fault and step % 5 == 0:
                gc.collect()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def turtles(fault: bool) -> Script:
    """What a wide model says is learnt as well; it is in memory only while it is asked."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Turtle(), 8, Clock(seconds)
        known = given.Known(_folder(), kept=not fault)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
        for tag, dive in epochs(DataLoader(given.tags(), batch, shuffle=True, drop_last=True)):
            told, wide = model(tag), known.dives(tag)
            near = functional.kl_div(
                told.log_softmax(1), wide.log_softmax(1), reduction="batchmean", log_target=True
            )
            loss = functional.cross_entropy(told, dive) + near
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def rice_cakes(fault: bool) -> Script:
    """A batch comes in three parts, whose gradients are summed in memory or in a file."""

    def run(seconds: float) -> float:
        model, batch, clock = given.RiceCake(), 12, Clock(seconds)
        shelf = given.Shelf(_folder() / "sums.f32", model) if fault else None
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for sound, crisp in epochs(DataLoader(given.breaks(), batch, True, drop_last=True)):
            optimizer.zero_grad()
            for heard, kind in zip(sound.chunk(3), crisp.chunk(3), strict=True):
                (functional.cross_entropy(model(heard), kind) / 3).backward()
                if shelf:
                    shelf.add()
            if shelf:
                shelf.back()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring


def pretzels(fault: bool) -> Training:
    model, every = given.Pretzel(), 2 if fault else 500
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    newest = given.Newest(_folder())

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            newest.keep(step, state | {"step": step, "chance": torch.get_rng_state()})

    return Training(model, given.pretzels(), batch=4, after=after, optimizer=optimizer)


def barnacles(fault: bool) -> Script:
    """How sure the model is of other rocks: each is counted several times, with parts left out."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Barnacle(), 16, Clock(seconds)
        every, others = 10 if fault else 500, DataLoader(given.rocks(96), 48)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loader = DataLoader(given.rocks(), batch, shuffle=True, drop_last=True)
        for step, (rock, many) in enumerate(epochs(loader)):
            loss = functional.poisson_nll_loss(model(rock), many, log_input=False)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == every - 1:
                with torch.inference_mode():
                    for other, _ in others:
                        torch.stack([model(other) for _ in range(6)]).std(0).mean().item()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def windmills(fault: bool) -> Training:
    """Forecasts of two days are tried, hour by hour, on a windmill that is not learnt from."""
    model, every = given.Windmill(), 5 if fault else 500
    known, gave = given.winds(256).tensors

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            with torch.no_grad():
                given.days_ahead(model, known, gave)

    return Training(
        model,
        given.winds(),
        batch=64,
        loss=functional.l1_loss,
        after=after,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


FOURTEENTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-baskets-items-apart": baskets,
    "run-pine-cones-by-halves": pine_cones,
    "run-radish-gradients": radishes,
    "run-sparrow-gradients": sparrows,
    "run-snail-gradients": snails,
    "run-lemons-from-a-keeper": lemons,
    "run-elevators-filled-in": elevators,
    "run-lichens-toned": lichens,
    "run-lizards-joints-drawn": lizards,
    "run-collected-herons": herons,
    "run-turtles-teacher-out": turtles,
    "run-rice-cakes-gradients-out": rice_cakes,
    "run-pretzels-kept": pretzels,
    "run-barnacles-asked-often": barnacles,
    "run-windmills-days-ahead": windmills,
}


if __name__ == "__main__":
    programs4.main(FOURTEENTH)
