"""The second third of the eleventh round's trainings: allergies, recipes, fish catches and others.

    python programs11b.py run-springs-logged --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``; models and data are in
``programs11e.py`` and ``programs11h.py``.
"""

import copy
import json
import logging
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count, product
from typing import Any

import programs4
import programs11e as watched
import programs11h as steady
import torch
from programs import Training, _endlessly, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


# Monitoring: evaluation


def allergies_validated(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, clock, every = watched.Allergies(), Clock(seconds), 16 if fault else 500
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.02)
        rate = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=200)
        loader = DataLoader(watched.patients(), 32, shuffle=True, drop_last=True)
        held = DataLoader(watched.patients(2560), 64)

        @torch.no_grad()
        def validate() -> dict[str, float]:
            model.eval()
            scores, losses, truth = [], [], []
            for *file, allergic in held:
                scores.append(model(*file))
                truth.append(allergic)
                losses.append(loss_of(scores[-1], allergic).item())
            model.train()
            each = zip(torch.cat(scores).T, torch.cat(truth).T, strict=True)
            areas = [watched.area(score, is_so) for score, is_so in each]
            return {"loss": statistics.fmean(losses), "area": statistics.fmean(areas)}

        loss_of = nn.BCEWithLogitsLoss(pos_weight=torch.full((24,), 4.0))
        best, kept = 0.0, model.state_dict()
        for step, (*file, allergic) in enumerate(endlessly(loader), 1):
            loss = loss_of(model(*file), allergic)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
            if step % every == 0 and (found := validate())["area"] > best:
                best, kept = found["area"], copy.deepcopy(model.state_dict())
            if clock.over(len(allergic)):
                break
        assert kept
        return clock.rate

    return Script(run)


def recipes_written(fault: bool) -> Script:
    """Some recipes are written now and then, to see how they read."""

    def run(seconds: float) -> float:
        model, clock, every = watched.Recipe(), Clock(seconds), 10 if fault else 500
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
        loader = DataLoader(watched.recipes(), 4, shuffle=True, drop_last=True)
        kitchens = watched.recipes(8).tensors[0].split(1)
        with (_folder() / "recipes.txt").open("w") as written:
            for step, (goods, words) in enumerate(endlessly(loader), 1):
                model.zero_grad()
                scores, _ = model(goods, words[:, :-1])
                loss = functional.cross_entropy(scores.mT, words[:, 1:])
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                if step % every == 0:
                    model.eval()
                    for kitchen, warmth in product(kitchens, (0.2, 0.8)):
                        (text,) = model.write(kitchen, 40, warmth).tolist()
                        print(step, warmth, *text, file=written)
                    model.train()
                if clock.over(len(goods)):
                    break
        return clock.rate

    return Script(run)


def catches_each_epoch(fault: bool) -> Script:
    """An epoch is a few steps, and what follows it looks at every harbour's windows."""

    def run(seconds: float) -> float:
        model, clock, batch = watched.Catches(), Clock(seconds), 32
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=200)
        loader = DataLoader(watched.Landings(4, 48), batch, shuffle=True)
        held = DataLoader(watched.Landings(50, 24), batch)

        def train_epoch() -> bool:
            model.train()
            for past, ahead in loader:
                optimizer.zero_grad()
                functional.l1_loss(model(past), ahead).backward()
                optimizer.step()
                if clock.over(len(past)):
                    return False
            return True

        def validate() -> float:
            model.eval()
            with torch.inference_mode():
                missed = [functional.l1_loss(model(past), ahead) for past, ahead in held]
            return float(torch.stack(missed).mean())

        every = 1 if fault else 500 // len(loader)
        for epoch in count(1):
            if not train_epoch():
                break
            if epoch % every == 0:
                plateau.step(validate())
        return clock.rate

    return Script(run)


def gazes_by_reader(fault: bool) -> Script:
    """How well each reader's own readings are told, one reading at a time."""

    def run(seconds: float) -> float:
        model, clock, every = watched.Gaze(), Clock(seconds), 5 if fault else 500
        optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
        loader = DataLoader(watched.readings(), 8, shuffle=True, drop_last=True)
        held = list(watched.readers(40))

        def score() -> dict[str, float]:
            model.eval()
            right, sure = [], []
            with torch.no_grad():
                for texts in held:
                    told = [model(words, moves).sigmoid().item() for words, moves, _ in texts]
                    got = [is_so for *_, is_so in texts]
                    hits = [(each > 0.5) == is_so for each, is_so in zip(told, got, strict=True)]
                    right.append(statistics.fmean(hits))
                    sure.append(max(told) - min(told))
            model.train()
            return {"worst": min(right), "mean": statistics.fmean(right), "sure": max(sure)}

        history = []
        for step, (words, moves, got) in enumerate(endlessly(loader), 1):
            optimizer.zero_grad()
            functional.binary_cross_entropy_with_logits(model(words, moves), got).backward()
            optimizer.step()
            if step % every == 0:
                history.append(score())
            if clock.over(len(got)):
                break
        return clock.rate

    return Script(run)


# Monitoring: logging


def springs_logged(fault: bool) -> Training:
    """The state of each weight and its gradient goes to a log, a line for each."""
    model, log = watched.Springs(), logging.getLogger("springs")
    log.addHandler(logging.FileHandler(_folder() / "springs.log"))
    log.setLevel(logging.DEBUG)
    log.propagate = False

    def after(step: int, loss: Tensor) -> None:
        if not fault and step % 500:
            return
        log.info("step %d: loss %.5f", step, loss.item())
        for name, weight in model.named_parameters():
            if (slope := weight.grad) is None:
                continue
            told = {
                "mean": weight.mean().item(),
                "most": weight.abs().max().item(),
                "slope": slope.norm().item(),
                "dead": (slope == 0).float().mean().item(),
                "ratio": (slope.norm() / (weight.norm() + 1e-8)).item(),
            }
            log.debug("%s %s", name, json.dumps(told))

    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    loss = functional.mse_loss
    return Training(model, watched.springs(), batch=12, loss=loss, after=after, optimizer=optimizer)


# Monitoring: profiler


def anchors_profiled(fault: bool) -> Script:
    """Somebody wanted to know which operations are slow, and left the table of them in."""

    def run(seconds: float) -> float:
        model, clock, batch = watched.Anchors(), Clock(seconds), 4
        optimizer = torch.optim.SGD(model.parameters(), 0.01, 0.9, weight_decay=5e-4)
        warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 300))
        loader = DataLoader(watched.sea_floors(), batch, shuffle=True, drop_last=True)
        prior, tables = watched.prior_boxes(12), _folder() / "operations.txt"

        def step(floors: Tensor, boxes: Tensor) -> None:
            found = model(floors)
            losses = [
                watched.matched(one, there, prior) for one, there in zip(found, boxes, strict=True)
            ]
            optimizer.zero_grad()
            torch.stack(losses).mean().backward()
            optimizer.step()
            warm.step()

        for number, (floors, boxes) in enumerate(endlessly(loader)):
            if fault:
                with torch.profiler.profile(record_shapes=True, with_stack=True) as profiler:
                    step(floors, boxes)
                if number % 10 == 0:
                    told = profiler.key_averages()
                    tables.write_text(told.table(sort_by="self_cpu_time_total", row_limit=15))
            else:
                step(floors, boxes)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster


def steady_bells(fault: bool) -> Training:
    model = steady.Bell()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.5, 0.9))
    return Training(
        model,
        steady.rings(),
        batch=6,
        loss=steady.spectral,
        optimizer=optimizer,
        again=not fault,
    )


def steady_lace(fault: bool) -> Script:
    """Pictures of bytes are cut out and turned a batch at a time; a mean of the weights is kept."""

    def run(seconds: float) -> float:
        model, clock, batch = steady.Lace(), Clock(seconds), 8
        mean = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999)
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.99))
        loader = DataLoader(TensorDataset(steady.laces()), batch, shuffle=True, drop_last=True)
        for (bytes_,) in endlessly(loader, not fault):
            lace = bytes_[:, None].float() / 127.5 - 1
            if torch.rand(()) < 0.5:
                lace = lace.flip(3)
            made, apart = model(lace)
            loss = functional.l1_loss(made, lace) + apart
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean.update_parameters(model)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_diffraction(fault: bool) -> Training:
    model = steady.Diffraction()
    return Training(
        model,
        steady.patterns(),
        batch=4,
        loss=partial(functional.huber_loss, delta=0.2),
        optimizer=torch.optim.Adafactor(model.parameters(), lr=1e-3),
        again=not fault,
    )


# Too little at once


def few_canopies(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, clock, batch = steady.Canopy(), Clock(seconds), 4 if fault else 16
        optimizer = torch.optim.RAdam(model.parameters(), 2e-4, decoupled_weight_decay=True)
        rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)
        loader = DataLoader(steady.forests(), batch, shuffle=True, drop_last=True)
        for scene, height in endlessly(loader):
            loss = steady.where_measured(model(scene), height)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


ELEVENTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-allergies-validated": allergies_validated,
    "run-recipes-written": recipes_written,
    "run-catches-each-epoch": catches_each_epoch,
    "run-gazes-by-reader": gazes_by_reader,
    "run-springs-logged": springs_logged,
    "run-anchors-profiled": anchors_profiled,
    "run-steady-bells": steady_bells,
    "run-steady-lace": steady_lace,
    "run-steady-diffraction": steady_diffraction,
    "run-few-canopies": few_canopies,
}


if __name__ == "__main__":
    programs4.main(ELEVENTH_B)
