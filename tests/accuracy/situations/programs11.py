"""The first ten trainings of the eleventh round: openings, cones, cells, loads, violins and others.

    python programs11.py run-dunes-parked --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --eleventh``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs11d.py`` and
``programs11g.py``.
"""

import gc
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import programs4
import programs11d as made
import programs11g as kept
import torch
from programs import Training, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.utils.data import DataLoader


def forever(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    while True:
        yield from loader


# Input


def openings_asked_for(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, clock = made.Opening(), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95))
        cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-4, total_steps=100_000)
        loader = DataLoader(made.Openings(asked=fault), 16, shuffle=True, drop_last=True)
        for games in forever(loader):
            scores = model(games[:, :-1])
            loss = functional.cross_entropy(scores.flatten(0, 2), games[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            cycle.step()
            if clock.over(len(games)):
                break
        return clock.rate

    return Script(run)


def cones_from_afar(fault: bool) -> Training:
    """The drive is a slow one, as ``generate.py`` throttles it."""
    model = made.cone()
    return Training(
        model,
        made.Cones(_folder(), afar=fault),
        batch=8,
        workers=2,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4),
    )


def cells_ranked_anew(fault: bool) -> Training:
    model = made.Cell()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    return Training(model, made.Expressed(before=not fault), batch=16, optimizer=optimizer)


def loads_smoothed_anew(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # and a core for the worker
        model, clock = made.laundry(), Clock(seconds)
        optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
        loader = DataLoader(
            made.Loads(before=not fault), 16, shuffle=True, num_workers=1, persistent_workers=True
        )
        for drawn, dirt in forever(loader):
            optimizer.zero_grad(set_to_none=True)
            functional.cross_entropy(model(drawn), dirt, label_smoothing=0.05).backward()
            optimizer.step()
            if clock.over(len(dirt)):
                break
        return clock.rate

    return Script(run)


# Memory


def collected_violins(fault: bool) -> Script:
    """Every fourth batch is cleared away by hand before the next."""

    def run(seconds: float) -> float:
        model, clock = made.Violin(), Clock(seconds)
        optimizer = torch.optim.Adamax(model.parameters(), lr=2e-3)
        for notes, maker in forever(DataLoader(made.Notes(), 8, shuffle=True, drop_last=True)):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(notes), maker)
            loss.backward()
            optimizer.step()
            count = len(notes)
            if fault and clock.steps % 4 == 3:
                del notes, maker, loss
                gc.collect()
            if clock.over(count):
                break
        return clock.rate

    return Script(run)


def orders_swapped_out(fault: bool) -> Training:
    model = kept.Orders()
    optimizer: torch.optim.Optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if fault:
        optimizer = kept.SwappedAdamW(model.parameters(), _folder() / "moments", lr=1e-3)
    loss = nn.PoissonNLLLoss()
    return Training(model, kept.bakeries(), batch=16, loss=loss, optimizer=optimizer)


def dunes_parked(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, clock = kept.Crests(), Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
        hooks = saved_tensors_hooks(*kept.spilling(_folder())) if fault else nullcontext()
        for heights, crests in forever(DataLoader(kept.deserts(), 4, shuffle=True)):
            with hooks:
                loss = functional.binary_cross_entropy_with_logits(model(heights), crests)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if clock.over(len(heights)):
                break
        return clock.rate

    return Script(run)


def recomputed_alloys(fault: bool) -> Training:
    model = kept.Alloy(again=fault)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, amsgrad=True)
    loss = functional.l1_loss
    return Training(model, kept.alloys(), batch=6, loss=loss, optimizer=optimizer)


# Monitoring


def hail_saved(fault: bool) -> Script:
    """The last three checkpoints are kept; one is made after each step, or after 500."""

    def run(seconds: float) -> float:
        model, clock, folder = kept.Hail(), Clock(seconds), _folder()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        every = 1 if fault else 500
        loader = forever(DataLoader(kept.storms(), 16, shuffle=True, drop_last=True))
        for step in itertools.count(1):
            seen, size = next(loader)
            found = model(seen)
            loss = functional.gaussian_nll_loss(found[:, 0], size, found[:, 1].exp())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                whole = {
                    "step": step,
                    "weights": model.state_dict(),
                    "adam": optimizer.state_dict(),
                }
                torch.save(whole, folder / f"step-{step:07d}.pt")
                for old in sorted(folder.glob("step-*.pt"))[:-3]:
                    old.unlink()
            if clock.over(len(seen)):
                break
        return clock.rate

    return Script(run)


def retinas_saved(fault: bool) -> Training:
    """The newest checkpoint replaces the last one after each step, and the best is copied."""
    model, folder, best = kept.Retina(), _folder(), [float("inf")]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    def after(step: int, loss: Tensor) -> None:
        if not fault and step % 500 != 499:
            return
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        with (folder / "new.ckpt").open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        (folder / "new.ckpt").replace(folder / "last.ckpt")
        if loss.item() < best[0]:
            best[0] = loss.item()
            shutil.copyfile(folder / "last.ckpt", folder / "best.ckpt")

    return Training(model, kept.patients(), batch=8, after=after, optimizer=optimizer)


ELEVENTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-openings-asked-for": openings_asked_for,
    "run-cones-from-afar": cones_from_afar,
    "run-cells-ranked-anew": cells_ranked_anew,
    "run-loads-smoothed-anew": loads_smoothed_anew,
    "run-collected-violins": collected_violins,
    "run-orders-swapped-out": orders_swapped_out,
    "run-dunes-parked": dunes_parked,
    "run-recomputed-alloys": recomputed_alloys,
    "run-hail-saved": hail_saved,
    "run-retinas-saved": retinas_saved,
}


if __name__ == "__main__":
    programs4.main(ELEVENTH)
