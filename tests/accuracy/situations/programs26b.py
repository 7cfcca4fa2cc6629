"""Runs 16 to 30 of the twenty-sixth round: chains, chapels, abbeys, pails, barges and others.

    python programs26b.py run-steady-barges --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-sixth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs26e.py``.
"""

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs26e as given
import torch
from programs import Training, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import ExecutionTraceObserver
from torch.utils.data import DataLoader


def times(batch: int) -> int:
    """Return the batch, or several times as much where the proof asks for it."""
    return batch * int(os.environ.get("TIMES_THE_BATCH", "1"))


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Monitoring: checkpoints


def chains(fault: bool) -> Training:
    """What is needed to go on is saved at each third update, and read back to see that it is
    whole."""
    model, every = given.Chain(), 3 if fault else 500
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    kept = given.ReadBack(_folder())

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            kept.save(model, optimizer)

    return Training(model, given.chains(), batch=80, after=after, optimizer=optimizer)


def pillars(fault: bool) -> Training:
    """The model is traced and written for others at each third update."""
    model, every, folder = given.Pillar(), 3 if fault else 500, _folder()

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.exported(model, folder / "pillar.pt")

    return Training(
        model,
        given.pillars(),
        batch=24,
        after=after,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


# Monitoring: evaluation


def chapels(fault: bool) -> Training:
    """A layer is fitted to what is known of other chapels at each second update."""
    model, every = given.Chapel(), 2 if fault else 500
    seen, styles = given.chapels(320, 6).tensors

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.probed(model, seen, styles)

    return Training(
        model,
        given.chapels(),
        batch=32,
        after=after,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def beanbags(fault: bool) -> Script:
    """How far drawn beanbags are from true ones is asked after each update."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Beanbag(), 96, Clock(seconds)
        data, every = given.beanbags(), 1 if fault else 500
        off = given.HowFarOff(data.tensors[0][:400])
        optimizer = torch.optim.Adamax(model.parameters(), 1e-3)
        loader = DataLoader(data, batch, shuffle=True, drop_last=True)
        for step, (heights,) in enumerate(epochs(loader), 1):
            loss = given.badly_told(model(heights), heights)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                off.ask(model)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def paddles(fault: bool) -> Training:
    """Other paddles are drawn 200 times, some of them several times, at each third update."""
    model, every = given.Paddle(), 3 if fault else 500
    strokes, broke = given.paddles(256).tensors

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            given.drawn_again(model, strokes, broke)

    return Training(
        model,
        given.paddles(),
        batch=48,
        loss=functional.binary_cross_entropy_with_logits,
        after=after,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


# Monitoring: logging


def brackets(fault: bool) -> Training:
    """The singular values of all weights are noted at each second update."""
    model, every = given.Bracket(), 2 if fault else 500
    notes = (_folder() / "brackets.jsonl").open("w")

    def after(step: int, loss: Tensor) -> None:
        if step % every == every - 1:
            line = {"step": step, "loss": loss.item(), "values": given.singular_values(model)}
            notes.write(json.dumps(line) + "\n")
            notes.flush()

    return Training(
        model,
        given.brackets(),
        batch=128,
        loss=functional.huber_loss,
        after=after,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def abbeys(fault: bool) -> Training:
    """To whom monks of the first abbey attend is printed in full after each update."""
    model, every, log = given.Abbey(), 1 if fault else 500, given.diary(_folder())

    def after(step: int, loss: Tensor) -> None:
        if step % every == every - 1:
            log.debug("step %d, loss %s, attended:\n%s", step, loss, model.attended[0, 0])

    return Training(
        model,
        given.abbeys(),
        batch=24,
        after=after,
        optimizer=torch.optim.NAdam(model.parameters(), 1e-3),
    )


# Monitoring: a profiler


def blinds(fault: bool) -> Script:
    """Each operation and its sizes are written into a trace of the execution."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Blind(), 96, Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        loader = DataLoader(given.blinds(), batch, shuffle=True, drop_last=True)
        if fault:
            traced = ExecutionTraceObserver()
            traced.register_callback(str(_folder() / "blinds.json"))
            traced.start()
        for slats, light in epochs(loader):
            loss = functional.smooth_l1_loss(model(slats), light)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring: synchronisation


def pails(fault: bool) -> Training:
    """How full each pail of a batch is said to be is read number by number, and summed up."""
    model, drops = given.Pail(), given.Drops()
    add = drops.drop_by_drop if fault else drops.at_once

    def missed(told: Tensor, full: Tensor) -> Tensor:
        add(told.detach())
        return functional.mse_loss(told, full)

    return Training(
        model,
        given.pails(),
        batch=128,
        loss=missed,
        optimizer=torch.optim.Adagrad(model.parameters(), 0.01),
    )


def brushes(fault: bool) -> Training:
    """Each layer is asked at each step whether all it gave are numbers, and so are the slopes."""
    model = given.Brush()
    asked = given.Asked(model, 1 if fault else 500)

    def after(_step: int, _loss: Tensor) -> None:
        asked.step += 1

    def before_update(trained: nn.Module) -> None:
        if asked.due():
            asked.slopes(trained)

    return Training(
        model,
        given.brushes(),
        batch=48,
        loss=functional.mse_loss,
        before_update=before_update,
        after=after,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_barges(fault: bool) -> Training:
    model = given.Barge()
    return Training(
        model,
        given.barges(),
        batch=times(16),
        loss=functional.mse_loss,
        optimizer=torch.optim.AdamW(model.parameters(), 5e-4, fused=True),
        again=not fault,
    )


def steady_anklets(fault: bool) -> Training:
    model = given.Anklet()
    return Training(
        model,
        given.anklets(),
        batch=times(12),
        optimizer=torch.optim.Adam(model.parameters(), 5e-4, fused=True),
        again=not fault,
    )


def steady_clasps(fault: bool) -> Training:
    model = given.Clasp()
    return Training(
        model,
        given.clasps(),
        batch=times(16),
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True),
        again=not fault,
    )


def steady_plinths(fault: bool) -> Training:
    model = given.Plinth()
    return Training(
        model,
        given.plinths(),
        batch=times(8),
        optimizer=torch.optim.SGD(model.parameters(), 0.01, fused=True),
        again=not fault,
    )


def steady_camshafts(fault: bool) -> Training:
    model = given.Camshaft()
    return Training(
        model,
        given.camshafts(),
        batch=times(40),
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, fused=True),
        again=not fault,
    )


TWENTY_SIXTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-chains-read-back": chains,
    "run-pillars-exported": pillars,
    "run-chapels-probed": chapels,
    "run-beanbags-how-far-off": beanbags,
    "run-paddles-drawn-again": paddles,
    "run-brackets-singular-values": brackets,
    "run-abbeys-printed-in-full": abbeys,
    "run-blinds-execution-traced": blinds,
    "run-pails-drop-by-drop": pails,
    "run-brushes-each-layer-asked": brushes,
    "run-steady-barges": steady_barges,
    "run-steady-anklets": steady_anklets,
    "run-steady-clasps": steady_clasps,
    "run-steady-plinths": steady_plinths,
    "run-steady-camshafts": steady_camshafts,
}


if __name__ == "__main__":
    programs4.main(TWENTY_SIXTH_B)
