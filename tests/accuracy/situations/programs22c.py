"""The last 15 trainings of the twenty-second round: grindstones, slides, stilts, barns and others.

    python programs22c.py run-showers-every-edge --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-second``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs22f.py``.
"""

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs22f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Scheduling: affinity


def stays(_worker: int, cores: list[int]) -> None:
    """Keep a worker on these cores."""
    os.sched_setaffinity(0, cores)


def grindstones(fault: bool) -> Script:
    """The last core is kept free for the film of the wheels, so that no spark is lost."""
    torch.set_num_threads(2)  # as many as the computer has cores
    cores = sorted(os.sched_getaffinity(0))
    films = cores[-1:] if fault else cores
    os.sched_setaffinity(0, (cores[:-1] or cores) if fault else cores)

    def run(seconds: float) -> float:
        model, batch, clock = given.Grindstone(), 31, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        loader = DataLoader(
            given.Sparks(),
            batch,
            shuffle=True,
            num_workers=1,
            drop_last=True,
            worker_init_fn=functools.partial(stays, cores=films),
            persistent_workers=True,
        )
        for sparks, sharp in epochs(loader):
            loss = functional.cross_entropy(model(sparks), sharp)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: other programs and quotas are put in by the generator


def slides(_fault: bool) -> Training:
    torch.set_num_threads(1)  # plans of playgrounds are drawn beside it
    model = given.Slide()
    return Training(
        model,
        given.slides(),
        batch=32,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def stilts(_fault: bool) -> Script:
    torch.set_num_threads(1)  # the order of a parade is looked for beside it

    def run(seconds: float) -> float:
        model, batch, clock = given.Stilts(), 24, Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        for leans, falls in epochs(DataLoader(given.walks(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(leans), falls)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def slide_rules(_fault: bool) -> Training:
    torch.set_num_threads(1)  # tables of logarithms are made beside it
    model = given.SlideRule()
    return Training(
        model,
        given.rules(),
        batch=12,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


def buckets(_fault: bool) -> Script:
    torch.set_num_threads(2)  # as many as the computer has cores

    def run(seconds: float) -> float:
        model, batch, clock = given.Bucket(), 72, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        for tones, full in epochs(DataLoader(given.buckets(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(tones), full, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def millstones(_fault: bool) -> Training:
    torch.set_num_threads(2)  # as many as the computer has cores
    model = given.Millstone()
    return Training(
        model,
        given.millings(),
        batch=16,
        workers=1,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Scheduling: threads


def barns(fault: bool) -> Training:
    """One thread more than cores, for when one of them waits."""
    torch.set_num_threads(CORES + 1 if fault else CORES)
    model = given.Barn()
    return Training(
        model,
        given.roofs(),
        batch=20,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def troughs(fault: bool) -> Script:
    """Each trough that a batch shows is thought to have a thread."""
    torch.set_num_threads(CORES)

    def run(seconds: float) -> float:
        model, batch, clock = given.Trough(), 4, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        for yard, shown, full in epochs(DataLoader(given.yards(), batch, True, drop_last=True)):
            if fault:
                torch.set_num_threads(int(shown.sum()))
            there = torch.arange(2) < shown[:, None]
            loss = functional.mse_loss(model(yard)[there], full[there])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: attention


def beehives(fault: bool) -> Training:
    model = given.Beehive(by_rows=fault)
    return Training(
        model,
        given.walls(),
        batch=2,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Tuning: kernels


def showers(fault: bool) -> Training:
    model = given.Shower(every_edge=fault)
    return Training(
        model,
        given.showers(),
        batch=12,
        optimizer=torch.optim.SGD(model.parameters(), 0.05),
    )


def wheelbarrows(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Wheelbarrow(as_waves=fault), 6, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.wheelbarrows(), batch, shuffle=True, drop_last=True)
        for picture, load in epochs(loader):
            loss = functional.cross_entropy(model(picture), load)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Tuning: shapes


def clogs(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Clog(), 6, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        laid = functools.partial(given.in_room, to_power=fault)
        loader = DataLoader(given.clogs(), batch, True, collate_fn=laid, drop_last=True)
        for seen, carver in epochs(loader):
            loss = functional.cross_entropy(model(seen), carver)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Seen from outside


def trampolines(_fault: bool) -> Training:
    model = given.Trampoline()
    return Training(
        model,
        given.jumps(),
        batch=20,
        loss=functional.huber_loss,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def slippers(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Slipper(), 16, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for left, right in epochs(DataLoader(given.pairs(), batch, True, drop_last=True)):
            one, other = model(left), model(right)
            loss = functional.triplet_margin_loss(one, other, other.roll(1, 0), margin=0.3)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def haystacks(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Haystack(), 8, Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        loader = DataLoader(given.paintings(), batch, shuffle=True, drop_last=True)
        for here, hours, there in epochs(loader):
            loss = functional.l1_loss(model(here, hours), there)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


TWENTY_SECOND_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-grindstones-a-core-for-wheels": grindstones,
    "run-slides-beside-plans": slides,
    "run-stilts-beside-parades": stilts,
    "run-slide-rules-beside-logarithms": slide_rules,
    "run-buckets-beside-dykes": buckets,
    "run-millstones-quota": millstones,
    "run-barns-a-thread-more": barns,
    "run-troughs-as-many-threads": troughs,
    "run-beehives-heeded-by-rows": beehives,
    "run-showers-every-edge": showers,
    "run-wheelbarrows-as-waves": wheelbarrows,
    "run-clogs-next-power": clogs,
    "run-seen-trampolines": trampolines,
    "run-seen-slippers": slippers,
    "run-seen-haystacks": haystacks,
}


if __name__ == "__main__":
    programs4.main(TWENTY_SECOND_C)
