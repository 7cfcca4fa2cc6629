"""The trainings of the seventh round: searches, roads, weather, noise, speakers, tiles, games.

    python programs7.py run-risk-sets --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``; models and data are in
``programs7b.py``.
"""

import gc
import tracemalloc
from collections.abc import Callable

import programs
import programs7b as made
import torch
from programs import Training
from torch import Tensor, nn
from torch.utils.data import TensorDataset

squared = nn.functional.mse_loss


def as_it_is(loss: Tensor, _: Tensor) -> Tensor:
    """Return the mean of losses that a model has computed itself."""
    return loss.mean()


# Input


def drawn_strokes(fault: bool) -> Training:
    return Training(made.letters(), made.Written(8192, drawn=fault), batch=32)


def whole_scenes(fault: bool) -> Training:
    tiles = made.Tiles(programs._folder(), 4096, mapped=not fault)
    return Training(made.ground(), tiles, batch=16)


# Too little at once


def risk_sets(fault: bool) -> Training:
    def loss(risk: Tensor, seen: Tensor) -> Tensor:
        return made.partial_likelihood(risk, seen, in_turn=fault)

    return Training(made.hazard(), made.patients(), batch=64, loss=loss)


def few_boards(fault: bool) -> Training:
    return Training(made.Boards(), made.games(), batch=1 if fault else 64, loss=squared)


# Untuned


def padded_pairs(fault: bool) -> Training:
    def prepare(both: Tensor) -> Tensor:
        """Leave out what is padding in every pair of the batch."""
        return both if fault else both[:, : int((both != 0).sum(1).max())]

    return Training(made.Entails(), made.pairs(), batch=8, prepare=prepare)


def double_molecules(fault: bool) -> Training:
    dtype = torch.float64 if fault else torch.float32
    data = TensorDataset(*made.molecules(dtype=dtype))
    return Training(made.Atoms().to(dtype), data, batch=8, loss=as_it_is)


# Memory


def recomputed_cells(fault: bool) -> Training:
    return Training(made.Cells(again=fault), made.seeds(side=24), batch=4, loss=squared)


def collected_poses(fault: bool) -> Training:
    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            gc.collect()

    return Training(made.Moving(96, 1), made.Captured(60), batch=16, after=after)


# Communication


def moving_gradients(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = made.Moving(256)
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(model, made.moves(frames=16), batch=4)


def split_layers(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    return Training(made.Halves(ranks=fault), made.places(), batch=16, loss=squared)


# Scheduling: all put in by the generator


def tiles(_fault: bool) -> Training:
    data = TensorDataset(torch.rand(1024, 4, 64, 64), torch.randint(8, (1024, 64, 64)))
    return Training(made.ground(), data, batch=8)


def hazards(_fault: bool) -> Training:
    def loss(risk: Tensor, seen: Tensor) -> Tensor:
        return made.partial_likelihood(risk, seen, in_turn=False)

    return Training(made.hazard(512), made.patients(), batch=256, loss=loss)


# Monitoring


def graded_lists(fault: bool) -> Training:
    gains: list[float] = []

    def loss(scores: Tensor, grades: Tensor) -> Tensor:
        if fault:  # how good each search's first ten are
            for found, good in zip(scores.detach(), grades, strict=True):
                gain, most = 0.0, 0.0
                best = good.sort(descending=True).values
                for place, document in enumerate(found.argsort(descending=True)[:10]):
                    gain += (2 ** good[document].item() - 1) / (place + 2) ** 0.5
                    most += (2 ** best[place].item() - 1) / (place + 2) ** 0.5
                gains.append(gain / most)
        return made.listwise(scores, grades)

    return Training(made.Ranker(), made.searches(), batch=16, loss=loss)


def verified_each_step(fault: bool) -> Training:
    model, (said, speaker) = made.Voice(), made.voices(96).tensors

    def after(step: int, _loss: Tensor) -> None:
        if fault or step % 500 == 499:
            with torch.no_grad():
                made.equal_errors(model.told(said), speaker)

    return Training(model, made.voices(), batch=16, after=after)


def allocations_traced(fault: bool) -> Training:
    def after(step: int, _loss: Tensor) -> None:
        if fault and step == 0:  # who allocates what, once all modules are there
            tracemalloc.start(10)

    rows = TensorDataset(torch.randn(16_384, 20), torch.zeros(16_384))
    return Training(made.Rows(), rows, batch=64, loss=as_it_is, after=after)


# Nothing


def steady_searches(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    model = made.Ranker(192)
    return Training(model, made.searches(), 32, loss=made.listwise, again=not fault)


def steady_roads(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(made.Traffic(), made.roads(), 32, loss=squared, again=not fault)


def weather(_fault: bool) -> Training:
    return Training(made.Globe(), made.grids(), batch=4, loss=squared)


SEVENTH: dict[str, Callable[[bool], Training]] = {
    "run-drawn-strokes": drawn_strokes,
    "run-whole-scenes": whole_scenes,
    "run-risk-sets": risk_sets,
    "run-few-boards": few_boards,
    "run-padded-pairs": padded_pairs,
    "run-double-molecules": double_molecules,
    "run-recomputed-cells": recomputed_cells,
    "run-collected-poses": collected_poses,
    "run-moving-gradients": moving_gradients,
    "run-split-layers": split_layers,
    "run-tiles-quota": tiles,
    "run-folds-at-once": hazards,
    "run-graded-lists": graded_lists,
    "run-verified-each-step": verified_each_step,
    "run-allocations-traced": allocations_traced,
    "run-steady-searches": steady_searches,
    "run-steady-roads": steady_roads,
    "run-seen-weather": weather,
}


if __name__ == "__main__":
    programs.SITUATIONS.update(SEVENTH)
    programs.main()
