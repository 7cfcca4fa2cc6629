"""The trainings of the ninth round: meters, odours, stays, gestures, puzzles, sleep and others.

    python programs9.py run-stamped-meters --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``; models and data are in
``programs9d.py`` and ``programs9e.py``, the other half of the runs in ``programs9b.py``.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pandas
import programs4
import programs9d as more
import programs9e as made
import torch
from programs import Training, _folder
from programs4 import Clock, Script
from programs9b import MORE
from torch import Tensor, nn
from torch.utils.data import DataLoader

squared = nn.functional.mse_loss


def as_it_is(loss: Tensor, _: Tensor) -> Tensor:
    """Return the mean of losses that a model has computed itself."""
    return loss.mean()


# Input


def stamped_meters(fault: bool) -> Training:
    return Training(made.Stacked(), made.Meters(8192, before=not fault), batch=16, loss=squared)


def binned_events(fault: bool) -> Training:
    return Training(made.Spiking(), made.Events(4096, before=not fault), batch=16, workers=1)


def shards_for_one(fault: bool) -> Training:
    """Items in any order, each of another file than the last, or one file after the other."""
    data = made.Odours(_folder())
    order: dict[str, Any] = {"shuffle": True} if fault else {"sampler": made.ShardByShard(data)}
    return Training(made.Nose(), batch=16, loader=DataLoader(data, 16, drop_last=True, **order))


def resampled_vitals(fault: bool) -> Training:
    return Training(made.Ward(), made.Stays(8192, before=not fault), batch=16)


# Too little at once


def warped_gestures(fault: bool) -> Training:
    return Training(made.Warped(cells=fault), made.gestures(), batch=16)


def private_gradients(fault: bool) -> Script:
    """Each person's gradient is clipped before they are summed: in turn, or all at once."""

    def run(seconds: float) -> float:
        model, clock, batch = more.Census(), Clock(seconds), 32
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        loader = DataLoader(more.people(), batch, shuffle=True)
        private = _in_turn if fault else _at_once
        for person, earns in itertools.chain.from_iterable(itertools.repeat(loader)):
            for parameter, total in zip(
                model.parameters(), private(model, person, earns), strict=True
            ):
                parameter.grad = (total + torch.randn_like(total)) / batch
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def _in_turn(model: nn.Module, people: Tensor, earn: Tensor) -> list[Tensor]:
    totals = [torch.zeros_like(each) for each in model.parameters()]
    for person, earns in zip(people, earn, strict=True):
        model.zero_grad()
        nn.functional.cross_entropy(model(person[None]), earns[None]).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        assert norm >= 0
        for total, parameter in zip(totals, model.parameters(), strict=True):
            total += parameter.grad
    return totals


def _at_once(model: nn.Module, people: Tensor, earn: Tensor) -> list[Tensor]:
    def loss(weights: dict[str, Tensor], person: Tensor, earns: Tensor) -> Tensor:
        scores = torch.func.functional_call(model, weights, (person[None],))
        return nn.functional.cross_entropy(scores, earns[None])

    weights = {name: each.detach() for name, each in model.named_parameters()}
    found = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(weights, people, earn)
    norms = torch.stack([each.flatten(1).norm(dim=1) for each in found.values()]).norm(dim=0)
    scale = (1 / norms).clamp(max=1)
    return [torch.tensordot(scale, each, 1) for each in found.values()]


def single_puzzles(fault: bool) -> Training:
    def each_cell(scores: Tensor, digits: Tensor) -> Tensor:
        return nn.functional.cross_entropy(scores, digits.flatten())

    return Training(made.Sudoku(), made.puzzles(), batch=1 if fault else 32, loss=each_cell)


# Monitoring


def history_rewritten(fault: bool) -> Training:
    """The run goes on where it ended after 2000 steps, whose history is written with each row."""
    names = ("step", "loss", "rate", "seconds", "worst")
    history = pandas.DataFrame(torch.rand(2000, 5).numpy(), columns=list(names))
    path, rows = _folder() / "history.csv", []

    def after(step: int, loss: Tensor) -> None:
        nonlocal history
        rows.append(dict(zip(names, (2000 + step, loss.item(), 1e-3, 0.1, 1.0), strict=True)))
        if fault or step % 500 == 499:
            history = pandas.concat([history, pandas.DataFrame(rows)], ignore_index=True)
            history.to_csv(path, index=False)
            rows.clear()

    return Training(more.Ageing(), more.charges(), batch=16, loss=squared, after=after)


def stages_counted(fault: bool) -> Training:
    """Which stage was held for which is counted one by one, as it is read in a book."""
    told: tuple[Tensor, Tensor] = (torch.zeros(0), torch.zeros(0))
    table = torch.zeros(5, 5, dtype=torch.long)

    def loss(scores: Tensor, stages: Tensor) -> Tensor:
        nonlocal told
        told = scores.detach().argmax(2).flatten(), stages.flatten()
        return nn.functional.cross_entropy(scores.flatten(0, 1), told[1])

    def after(step: int, _loss: Tensor) -> None:
        if fault:
            for found, stage in zip(*told, strict=True):
                table[stage.item(), found.item()] += 1
        elif step % 500 == 499:
            table.add_(torch.bincount(5 * told[1] + told[0], minlength=25).view(5, 5))

    return Training(more.Sleep(), more.nights(), batch=32, loss=loss, after=after)


def probed_each_fifth(fault: bool) -> Training:
    model, (moved, kinds) = more.Wrist(), more.wrists(2048).tensors

    def after(step: int, _loss: Tensor) -> None:
        if step % (5 if fault else 500) == 4:
            model.eval()
            with torch.no_grad():
                assert more.probed(model.encoder(moved), kinds) > 0
            model.train()

    return Training(model, more.wrists(), batch=64, loss=as_it_is, after=after)


# Nothing


def steady_turbines(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(more.Turbine(), more.vibrations(), 16, loss=as_it_is, again=not fault)


def steady_leaves(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(more.Leaf(), more.leaves(), 8, again=not fault)


def cracks(_fault: bool) -> Training:
    return Training(more.Cracks(), more.walls(), batch=8)


NINTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-stamped-meters": stamped_meters,
    "run-binned-events": binned_events,
    "run-shards-for-one": shards_for_one,
    "run-resampled-vitals": resampled_vitals,
    "run-warped-gestures": warped_gestures,
    "run-private-gradients": private_gradients,
    "run-single-puzzles": single_puzzles,
    "run-history-rewritten": history_rewritten,
    "run-stages-counted": stages_counted,
    "run-probed-each-fifth": probed_each_fifth,
    "run-steady-turbines": steady_turbines,
    "run-steady-leaves": steady_leaves,
    "run-seen-cracks": cracks,
}
NINTH |= MORE


if __name__ == "__main__":
    programs4.main(NINTH)
