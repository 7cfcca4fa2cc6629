"""More trainings of the ninth round: soils, visits, corals, tides, moods, floods, pupils, stars.

Those of tuning, memory, communication and scheduling; ``programs9.py`` runs them. Models and data
are in ``programs9f.py``.
"""

import gc
from collections.abc import Callable

import programs9f as made
import torch
from programs import Training, _folder
from programs4 import Script
from torch import Tensor, nn

squared = nn.functional.mse_loss
either = nn.functional.binary_cross_entropy_with_logits


def as_it_is(loss: Tensor, _: Tensor) -> Tensor:
    """Return the mean of losses that a model has computed itself."""
    return loss.mean()


# Untuned


def double_soils(fault: bool) -> Training:
    """Spectra come from arrays of double precision; the model was made to fit them."""
    dtype = torch.float64 if fault else torch.float32
    return Training(made.soil().to(dtype), made.soils(dtype), batch=64, loss=squared)


def sorted_features(fault: bool) -> Training:
    return Training(made.Features(by_sorting=fault), made.thoughts(), batch=128, loss=as_it_is)


def every_visit(fault: bool) -> Training:
    loss = made.of_all if fault else made.of_hidden
    return Training(made.Visits(everywhere=fault), made.visits(), batch=16, loss=loss)


# Memory


def recomputed_corals(fault: bool) -> Training:
    """The stages are recomputed, and the blocks within them once more."""
    return Training(made.Corals(again=fault), made.reefs(), batch=16)


def tides_on_disk(fault: bool) -> Training:
    path = _folder() / "states.pkl" if fault else None
    return Training(made.Tides(path), made.gauges(), batch=16, loss=squared)


def collected_moods(fault: bool) -> Training:
    """Python's collector is called when the step is over, lest anything of its graph stays."""

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            gc.collect()

    return Training(made.Moods(), made.moments(), batch=64, after=after)


def grown_floods(fault: bool) -> Training:
    return Training(made.Floods(grown=fault), made.rains(), batch=4, loss=squared)


# Communication


def small_buckets(fault: bool) -> Training:
    """Gradients go to the other rank in buckets of a hundredth of a megabyte."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = made.Pupils()
    if fault:
        model = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.01)
    return Training(model, made.lessons(), batch=8, loss=either)


def gathered_layers(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    return Training(made.Yields(ranks=2 if fault else 1), made.fields(), batch=32, loss=squared)


def keys_passed_on(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    return Training(made.Log(ranks=fault), made.logs(), batch=2, loss=either)


# Scheduling: all put in by the generator


def pollen(_fault: bool) -> Training:
    return Training(made.pollen(), made.grains(), batch=8)


def bearings(_fault: bool) -> Training:
    return Training(made.Bearings(), made.machines(), batch=8)


def transits(_fault: bool) -> Training:
    return Training(made.Transits(), made.stars(), batch=16)


MORE: dict[str, Callable[[bool], Training | Script]] = {
    "run-double-soils": double_soils,
    "run-sorted-features": sorted_features,
    "run-every-visit": every_visit,
    "run-recomputed-corals": recomputed_corals,
    "run-tides-on-disk": tides_on_disk,
    "run-collected-moods": collected_moods,
    "run-grown-floods": grown_floods,
    "run-small-buckets": small_buckets,
    "run-gathered-layers": gathered_layers,
    "run-keys-passed-on": keys_passed_on,
    "run-pollen-quota": pollen,
    "run-beside-renders": bearings,
    "run-transits-active": transits,
}
