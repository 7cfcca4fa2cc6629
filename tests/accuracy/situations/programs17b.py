"""Runs 16 to 30 of the seventeenth round: benches, boilers, jigsaws, mosaics, dives and others.

    python programs17b.py run-steady-ovens --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --seventeenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs17e.py``.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import programs4
import programs17e as given
import torch
from programs import Training, _endlessly
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader


def times(batch: int) -> int:
    """Return the batch, or several times as much where the proof asks for it."""
    return batch * int(os.environ.get("TIMES_THE_BATCH", "1"))


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Memory: recomputation


def benches(fault: bool) -> Training:
    model = given.Bench(sparing=fault)
    return Training(
        model,
        given.benches(),
        batch=4,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Monitoring: evaluation


def boilers(fault: bool) -> Script:
    """Some of another season is told hour by hour, each from what was told before."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Boiler(), 128, Clock(seconds)
        every, other = 2 if fault else 500, torch.randn(40, 12 + 56, 10)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.hours(), batch, shuffle=True, drop_last=True)
        for step, (shown, then) in enumerate(epochs(loader), 1):
            loss = functional.smooth_l1_loss(model(shown), then)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                model.eval()
                with torch.inference_mode():
                    told = model.on(other[:, :12], 56)
                    (told - other[:, 12:]).square().mean((0, 2)).sqrt().tolist()
                model.train()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def jigsaws(fault: bool) -> Script:
    """A jigsaw that is not learnt from is put together now and then."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Jigsaw(), 24, Clock(seconds)
        every, other = 2 if fault else 500, given.pieces(96)
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
        beside = torch.arange(batch)
        loader: Any = DataLoader(given.pieces(), batch, drop_last=True)
        for step, pieces in enumerate(epochs(loader)):
            left, right = model(pieces)
            loss = functional.cross_entropy(8 * right @ left.T, (beside + 1) % batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == every - 1:
                rows = model.rows(other)
                sum(
                    after == before + 1 for row in rows for before, after in itertools.pairwise(row)
                )
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_mosaics(fault: bool) -> Training:
    model = given.Mosaic()
    return Training(
        model,
        given.mosaics(),
        batch=times(10),
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        again=not fault,
    )


def steady_dives(fault: bool) -> Training:
    model = given.Dive()
    return Training(
        model,
        given.dives(),
        batch=times(12),
        loss=functional.huber_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
        again=not fault,
    )


def steady_dictionaries(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Dictionary(), times(48), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
        loader = DataLoader(given.entries(), batch, shuffle=True, drop_last=True)
        for said, words in endlessly(loader, not fault):
            loss = functional.cross_entropy(model(said).flatten(0, 1), words.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_ovens(fault: bool) -> Training:
    model = given.Oven()
    return Training(
        model,
        given.ovens(),
        batch=times(10),
        loss=functional.l1_loss,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
        again=not fault,
    )


def steady_billiards(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Billiard(), times(32), Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        loader = DataLoader(given.tables(), batch, shuffle=True, drop_last=True)
        for balls, rolled in endlessly(loader, not fault):
            loss = functional.mse_loss(model(balls), rolled)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Parallelism: batch


def tents(fault: bool) -> Script:
    """What was measured at one site is a batch as it is, or that of several sites together."""

    def run(seconds: float) -> float:
        model, clock, sites = given.Tent(), Clock(seconds), given.Sites()
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        loader: Any
        if fault:
            loader = DataLoader(sites, None, shuffle=True)
        else:
            loader = DataLoader(sites, 20, True, collate_fn=given.pitched, drop_last=True)
        for night, bent in epochs(loader):
            loss = functional.l1_loss(model(night), bent)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(bent)):
                break
        return clock.rate

    return Script(run)


# Parallelism: small operations


def puzzles(fault: bool) -> Training:
    model = given.Puzzle(apart=fault)
    return Training(
        model,
        given.puzzles(),
        batch=24,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def dominoes(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Domino(alone=fault), 32, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        loader = DataLoader(given.dominoes(), batch, shuffle=True, drop_last=True)
        for tiles, laid, winner in epochs(loader):
            loss = functional.cross_entropy(model((tiles, laid)), winner)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: what computes beside somersaults and socks is put in by the generator


def cores(said: str) -> set[int]:
    """Return the numbers that a text such as ``0-2,5`` has."""
    ends = [[int(end) for end in part.split("-")] for part in said.split(",")]
    return {core for each in ends for core in range(each[0], each[-1] + 1)}


def metros(fault: bool) -> Training:
    """Each line of a metro has a training of its own, whose settings say where it runs."""
    settings: dict[str, Any] = {"line": 2, "cores": "0" if fault else "0-1"}
    os.sched_setaffinity(0, cores(settings["cores"]))
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    model = given.Metro()
    return Training(
        model,
        given.rides(),
        batch=5,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def stay() -> None:
    """Let all that the program has stay on one core, so that its caches stay warm."""
    core = min(os.sched_getaffinity(0))
    for each in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(each.name), {core})


def springs(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Spring(), 192, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        loader = DataLoader(given.clocks(), batch, shuffle=True, drop_last=True)
        for step, (beats, drives) in enumerate(epochs(loader)):
            loss = functional.smooth_l1_loss(model(beats), drives)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if fault and step == 0:  # all threads are there by now
                stay()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def somersaults(_fault: bool) -> Training:
    torch.set_num_threads(1)  # on a computer that cuts films, too
    model = given.Somersault()
    return Training(
        model,
        given.somersaults(),
        batch=4,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def socks(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Sock(), 2, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.washed(), batch, shuffle=True, drop_last=True)
        for pictures in epochs(loader):
            found: tuple[Tensor, ...] = model(torch.cat(pictures)).chunk(3)
            loss = given.alike(*found)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


SEVENTEENTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-recomputed-benches": benches,
    "run-boilers-season-replayed": boilers,
    "run-jigsaws-put-together": jigsaws,
    "run-steady-mosaics": steady_mosaics,
    "run-steady-dives": steady_dives,
    "run-steady-dictionaries": steady_dictionaries,
    "run-steady-ovens": steady_ovens,
    "run-steady-billiards": steady_billiards,
    "run-tents-site-by-site": tents,
    "run-puzzles-piece-by-piece": puzzles,
    "run-dominoes-tile-by-tile": dominoes,
    "run-metros-one-core": metros,
    "run-springs-of-clocks-own-core": springs,
    "run-somersaults-beside-replays": somersaults,
    "run-socks-beside-pairing": socks,
}


if __name__ == "__main__":
    programs4.main(SEVENTEENTH_B)
