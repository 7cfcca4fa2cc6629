"""The first 15 trainings of the fifteenth round: cinnamon, leather, mice and others.

    python programs15.py run-soups-read --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --fifteenth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs15d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs15d as given
import torch
from programs import Training, _over
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import ConcatDataset, DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def cinnamon(fault: bool) -> Script:
    """Each rank has half of the grades; the sums over all of them are of both."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Cinnamon(apart=fault), 48, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
        for spectrum, kinds in epochs(DataLoader(given.barks(), batch, True, drop_last=True)):
            loss = model(spectrum, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def leather(fault: bool) -> Script:
    """What is near each code is summed over both ranks, codebook by codebook."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Leather(shared=fault), 32, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for (grain,) in epochs(DataLoader(given.grains(), batch, True, drop_last=True)):
            loss = model(grain)
            optimizer.zero_grad()
            loss.backward()
            if fault:
                given.as_one([each.grad for each in model.parameters() if each.grad is not None])
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def mice(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = given.Mouse()
    return Training(
        model,
        given.mice(),
        batch=32,
        before_update=given.through_the_first if fault else lambda _: None,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def cicadas(fault: bool) -> Training:
    model = given.Cicada()
    return Training(
        model,
        given.Cicadas(ready=not fault),
        batch=8,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def soups(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Soup(), 16, Clock(seconds)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
        loader = DataLoader(given.Soups(ready=not fault), batch, shuffle=True, drop_last=True)
        for words, cuisine in epochs(loader):
            loss = functional.cross_entropy(model(words), cuisine, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def pears(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Pear()
    return Training(
        model,
        given.Pears(ready=not fault),
        batch=8,
        workers=1,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


def mustard(fault: bool) -> Training:
    model = given.Mustard()
    return Training(
        model,
        given.Mustards(ready=not fault),
        batch=16,
        loss=functional.huber_loss,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


def pancakes(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Pancake(), 24, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, nesterov=True, momentum=0.9)
        for heat, brown in epochs(DataLoader(given.Pancakes(ready=not fault), batch)):
            loss = functional.cross_entropy(model(heat), brown)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(heat)):
                break
        return clock.rate

    return Script(run)


# Input: workers


def wolves(fault: bool) -> Script:
    """One pack after the other, each from workers of its own, or all from the same ones."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model, batch, clock = given.Wolf(), 8, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        packs = given.packs()

        def tracks() -> Iterator[Any]:
            if not fault:
                every = ConcatDataset(packs)
                yield from epochs(
                    DataLoader(every, batch, True, num_workers=2, persistent_workers=True)
                )
            for pack in itertools.cycle(packs):
                yield from DataLoader(pack, batch, shuffle=True, num_workers=2)

        for track, age in tracks():
            loss = functional.cross_entropy(model(track), age)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def mites(fault: bool) -> Script:
    """The hairs of each leg come alone, from workers or not."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Mite(), 6, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        loader = DataLoader(
            given.Mites(),
            batch,
            shuffle=True,
            num_workers=2 if fault else 0,
            persistent_workers=fault,
            collate_fn=given.apart,
            drop_last=True,
        )
        for hairs, family in epochs(loader):
            loss = functional.cross_entropy(model(hairs), family)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Memory


def mosquitoes(fault: bool) -> Training:
    model, batch = given.Mosquito(), 16
    rooms = given.Rooms(kept=not fault, places=1000, batch=batch)
    return Training(
        model,
        given.hums(),
        batch=batch,
        prepare=rooms.heard,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


def foxes(fault: bool) -> Script:
    """Now and then Python's collector is called, if much memory was in use."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Fox(), 64, Clock(seconds)
        limit = 200 if fault else 1 << 20
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loader = DataLoader(given.Foxes(), batch, shuffle=True, drop_last=True)
        for step, (met, went) in enumerate(epochs(loader)):
            loss = functional.cross_entropy(model(met), went)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 8 == 0 and given.most_memory() > limit:
                gc.collect()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def butter(fault: bool) -> Training:
    """What is after each turn is made again of all turns before it."""
    model = given.Butter(again=fault)
    return Training(
        model,
        given.creams(),
        batch=32,
        loss=functional.l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def shrimps(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Shrimp(again=fault), 8, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        for seen, later in epochs(DataLoader(given.swarms(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(seen), later)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring


def sugar(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Sugar(), 32, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loader = DataLoader(given.crystals(), batch, shuffle=True, drop_last=True)
        with torch.autograd.set_detect_anomaly(fault):
            for grains, grew in epochs(loader):
                loss = functional.cross_entropy(model(grains), grew)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if clock.over(batch):
                    break
        return clock.rate

    return Script(run)


FIFTEENTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-cinnamon-grades-apart": cinnamon,
    "run-leather-codebooks-shared": leather,
    "run-mouse-gradients": mice,
    "run-cicadas-heard": cicadas,
    "run-soups-read": soups,
    "run-pears-bent": pears,
    "run-mustard-levelled": mustard,
    "run-pancakes-unpacked": pancakes,
    "run-wolves-pack-by-pack": wolves,
    "run-mites-sent-apart": mites,
    "run-mosquitoes-fresh-rooms": mosquitoes,
    "run-collected-foxes": foxes,
    "run-recomputed-butter": butter,
    "run-recomputed-shrimps": shrimps,
    "run-sugar-anomalies": sugar,
}


if __name__ == "__main__":
    programs4.main(FIFTEENTH)
