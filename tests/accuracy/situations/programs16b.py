"""Runs 16 to 30 of the sixteenth round: string, parrots, mussels, geese, tigers, gold and others.

    python programs16b.py run-steady-gold --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --sixteenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs16e.py``.
"""

import gc
import os
from collections.abc import Callable, Iterable
from typing import Any

import programs4
import programs16e as given
import torch
from programs import Training, _endlessly, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler


def times(batch: int) -> int:
    """Return the batch, or several times as much where the proof asks for it."""
    return batch * int(os.environ.get("TIMES_THE_BATCH", "1"))


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


# Memory: garbage collection


def string(fault: bool) -> Script:
    """The crossings of each knot know each other; what was there before them is left alone."""

    def run(seconds: float) -> float:
        model, batch, clock = given.String(), 64, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        gc.freeze()
        loader = DataLoader(given.strings(), batch, True, collate_fn=given.crossing, drop_last=True)
        for crossings, kind in endlessly(loader):
            loss = functional.cross_entropy(model(crossings), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if fault:
                gc.collect()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def parrots(fault: bool) -> Training:
    """What was said is kept; once some of it is new, all that Python has is looked through."""
    model, said = given.Parrot(), list[dict[str, float]]()

    def after(step: int, loss: Tensor) -> None:
        said.extend({"step": step, "parrot": each, "missed": loss.item()} for each in range(16))
        if fault and gc.get_count()[0] > 140:
            gc.collect()

    if fault:
        gc.disable()
    return Training(
        model,
        given.squawks(),
        batch=16,
        after=after,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Memory: offload


def mussels(fault: bool) -> Script:
    """A shell is to be nearer to its own turned picture than to all of the last steps."""

    def run(seconds: float) -> float:
        model, slow, batch, clock = given.Mussel(), given.Mussel(), 24, Clock(seconds)
        slow.load_state_dict(model.state_dict())
        bank = given.Bank(_folder() / "seen.f32" if fault else None, many=32_768)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        for (picture,) in endlessly(DataLoader(given.shells(), batch, True, drop_last=True)):
            found = model(picture)
            with torch.no_grad():
                for other, own in zip(slow.parameters(), model.parameters(), strict=True):
                    other.lerp_(own, 0.01)
                turned = slow(picture.flip(3))
            own = (found * turned).sum(1, keepdim=True)
            told = torch.cat([own, found @ bank.all().T], 1) / 0.1
            loss = functional.cross_entropy(told, torch.zeros(batch, dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            bank.take(turned)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def geese(fault: bool) -> Script:
    """Each step looks uphill first; meanwhile they and their slopes are in memory or in files."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Goose(), 4, Clock(seconds)
        aside = given.Aside(model, _folder() if fault else None)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for heard, where in endlessly(DataLoader(given.formations(), batch, True, drop_last=True)):
            optimizer.zero_grad()
            functional.mse_loss(model(heard), where).backward()
            aside.uphill()
            optimizer.zero_grad()
            functional.mse_loss(model(heard), where).backward()
            aside.back()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring


def coconuts(fault: bool) -> Training:
    model = given.Coconut()
    if fault:
        torch.autograd.set_detect_anomaly(True, check_nan=True)
    return Training(
        model,
        given.taps(),
        batch=48,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def tigers(fault: bool) -> Script:
    """How well tigers that are not learnt from are known again among each other."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Tiger(), 16, Clock(seconds)
        every, others = 1 if fault else 500, DataLoader(given.flanks(300), 60)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.flanks(), batch, shuffle=True, drop_last=True)
        for step, (flank, whose) in enumerate(endlessly(loader), 1):
            found = model(flank)
            far = 1 - found @ found.T
            same = whose[:, None] == whose
            loss = (far * same).mean() + functional.relu(0.5 - far).masked_fill(same, 0).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                with torch.no_grad():
                    pairs = [(model(other), known) for other, known in others]
                    given.met_again(*map(torch.cat, zip(*pairs, strict=True)))
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def quails(fault: bool) -> Training:
    """The average of the weights is tried on eggs that are not learnt from."""
    model, every = given.Quail(), 4 if fault else 500
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    others = DataLoader(given.eggs(256), 64)

    def after(step: int, _loss: Tensor) -> None:
        average.update_parameters(model)
        if step % every == every - 1:
            with torch.inference_mode():
                sum((average(shone) - days).abs().sum().item() for shone, days in others)

    return Training(
        model,
        given.eggs(),
        batch=32,
        loss=functional.smooth_l1_loss,
        after=after,
        optimizer=torch.optim.NAdam(model.parameters(), 1e-3),
    )


def gravel(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Gravel(), 24, Clock(seconds)
        every, tables = 1 if fault else 500, given.Tables(_folder() / "run.db")
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        loader = DataLoader(given.heaps(), batch, shuffle=True, drop_last=True)
        for step, (heap, passes) in enumerate(endlessly(loader)):
            missed = (model(heap) - passes).abs()
            optimizer.zero_grad()
            missed.mean().backward()
            optimizer.step()
            if step % every == 0:
                tables.write(step, model, missed.detach())
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster, nor with a larger batch


def steady_hares(fault: bool) -> Training:
    model = given.Hare()
    return Training(
        model,
        given.fields(),
        batch=times(10),
        loss=lambda told, many: functional.poisson_nll_loss(told, many),
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        again=not fault,
    )


def steady_leeks(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Leek(), times(1024), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        leeks = given.Leeks()
        drawn = BatchSampler(RandomSampler(leeks), batch, drop_last=True)
        loader = DataLoader(leeks, batch_size=None, sampler=drawn)
        for light, lacks in endlessly(loader, not fault):
            loss = functional.cross_entropy(model(light), lacks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_bricks(fault: bool) -> Training:
    model = given.Brick()
    return Training(
        model,
        given.faces(),
        batch=times(8),
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
        again=not fault,
    )


def steady_elephants(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Elephant(), times(10), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        loader = DataLoader(given.rumbles(), batch, shuffle=True, drop_last=True)
        for rumble, who in endlessly(loader, not fault):
            loss = functional.cross_entropy(model(rumble), who, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_gold(fault: bool) -> Training:
    model = given.Gold()
    return Training(
        model,
        given.nuggets(),
        batch=times(24),
        loss=functional.huber_loss,
        optimizer=torch.optim.Adam(model.parameters(), 3e-4),
        again=not fault,
    )


def steady_llamas(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Llama(), times(32), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
        loader = DataLoader(given.walks(), batch, shuffle=True, drop_last=True)
        for felt, gait in endlessly(loader, not fault):
            loss = functional.cross_entropy(model(felt), gait)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_clover(fault: bool) -> Training:
    model = given.Clover()
    return Training(
        model,
        given.clovers(),
        batch=times(32),
        optimizer=torch.optim.Adagrad(model.parameters(), 0.01),
        again=not fault,
    )


SIXTEENTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-collected-string": string,
    "run-collected-parrots": parrots,
    "run-mussels-bank-out": mussels,
    "run-geese-weights-out": geese,
    "run-coconut-anomalies": coconuts,
    "run-tigers-known-again": tigers,
    "run-quails-averages-tried": quails,
    "run-gravel-in-tables": gravel,
    "run-steady-hares": steady_hares,
    "run-steady-leeks": steady_leeks,
    "run-steady-bricks": steady_bricks,
    "run-steady-elephants": steady_elephants,
    "run-steady-gold": steady_gold,
    "run-steady-llamas": steady_llamas,
    "run-steady-clover": steady_clover,
}


if __name__ == "__main__":
    programs4.main(SIXTEENTH_B)
