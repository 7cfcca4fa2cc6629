"""The last ten of the eleventh round's trainings: coupons, kites, moles, crosswords and others.

    python programs11c.py run-few-coupons --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``; models and data are in
``programs11f.py``.
"""

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import programs4
import programs11f as given
import torch
from programs import Training
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


def epochs(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return the batches of all epochs."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Too little at once


def few_coupons(fault: bool) -> Script:
    def run(seconds: float) -> float:
        batch, clock = 128 if fault else 1024, Clock(seconds)
        model, loader = given.Coupons(), DataLoader(given.Offers(batch), batch_size=None)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02, weight_decay=1e-6)
        for columns, opened, used in epochs(loader):
            optimizer.zero_grad()
            given.entire_space(model(columns), opened, used).backward()
            optimizer.step()
            if clock.over(len(columns)):
                break
        return clock.rate

    return Script(run)


# Scheduling: other programs and the quota are put in by the generator


def kites(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Pilot(), 6, Clock(seconds)
        loader = DataLoader(given.flights(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adamax(model.parameters(), lr=2e-3)
        for flown, steered in epochs(loader):
            loss = -model(flown).log_prob(steered).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def moles(_fault: bool) -> Script:
    """Rare kinds weigh more; an average of the weights over time is what will be used."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Mole(), 8, Clock(seconds)
        average = torch.optim.swa_utils.AveragedModel(
            model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999)
        )
        rare = nn.CrossEntropyLoss(torch.tensor([0.4, 1.2, 0.8, 2.0, 0.7, 0.2, 1.7]))
        loader = DataLoader(given.Moles(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
        rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)
        for picture, patient, kind in epochs(loader):
            loss = rare(model((picture, patient)), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            average.update_parameters(model)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def crosswords(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Solver(), 16, Clock(seconds)
        loader = DataLoader(given.clues(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98))
        for clue, crossed, answer in epochs(loader):
            scores = model(clue, crossed)
            loss = functional.cross_entropy(scores.mT, answer, ignore_index=0)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def crowded_fabrics(fault: bool) -> Training:
    if fault:
        torch.set_num_threads(4)  # the cores of the workstation beside the loom
    model = given.Weave()
    seen: list[Tensor] = []

    def watched(cloth: Tensor) -> Tensor:
        seen[:] = [cloth]
        return cloth + 0.05 * torch.randn_like(cloth)

    def loss(back: Tensor, _bale: Tensor) -> Tensor:
        return given.unlike(back, seen[0]) + functional.l1_loss(back, seen[0])

    optimizer = torch.optim.Adam(model.parameters(), lr=2e-4, weight_decay=1e-5)
    return Training(model, given.cloths(), batch=8, prepare=watched, loss=loss, optimizer=optimizer)


# Precision


def half_sails(fault: bool) -> Script:
    """Weights and sails are halved, as on the GPU that the script was written for."""

    def run(seconds: float) -> float:
        dtype = torch.float16 if fault else torch.float32
        model, batch, clock = given.Sail().to(dtype), 8, Clock(seconds)
        loader = DataLoader(given.sails(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        for panels, wind, pressure in epochs(loader):
            found = model(panels.to(dtype), wind.to(dtype))
            loss = functional.mse_loss(found.float(), pressure)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def double_muons(fault: bool) -> Training:
    """The simulation hands over doubles, and the model is made to fit them."""
    hits, muons = given.tracks()
    data = TensorDataset(torch.from_numpy(hits), torch.from_numpy(muons))
    model = given.Muon()
    if fault:
        model = model.double()
    else:
        data = TensorDataset(*(each.float() for each in data.tensors))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4, alpha=0.95)
    return Training(model, data, batch=96, loss=functional.smooth_l1_loss, optimizer=optimizer)


# Seen from outside


def parcels(_fault: bool) -> Training:
    model = given.Parcel()
    optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-3)
    return Training(model, given.parcels(), batch=8, loss=functional.l1_loss, optimizer=optimizer)


def lighthouses(_fault: bool) -> Script:
    """Each step asks for a few lighthouses, by a few nights of each."""

    def run(seconds: float) -> float:
        model, light, clock = given.Lamp(), given.nights(), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
        lamps, each = 10, 8
        while True:
            chosen = torch.randperm(len(light))[:lamps, None]
            seen = light[chosen, torch.randperm(light.shape[1])[:each]]
            points = model(seen.flatten(0, 1)).unflatten(0, (lamps, each))
            optimizer.zero_grad()
            given.nearest(points, 3).backward()
            optimizer.step()
            if clock.over(lamps * each):
                return clock.rate

    return Script(run)


def engines(_fault: bool) -> Script:
    """A teacher that follows the model slowly says what the noisier sound should be."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Engine(), 12, Clock(seconds)
        teacher = copy.deepcopy(model).requires_grad_(False)
        loader = DataLoader(given.engines(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for sound, ails in epochs(loader):
            told = model(sound + 0.1 * torch.randn_like(sound))
            with torch.no_grad():
                taught = teacher(sound).sigmoid()
            loss = functional.binary_cross_entropy_with_logits(told, ails)
            loss = loss + functional.mse_loss(told.sigmoid(), taught)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch._foreach_lerp_(list(teacher.parameters()), list(model.parameters()), 0.01)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


ELEVENTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-few-coupons": few_coupons,
    "run-kites-beside-flights": kites,
    "run-moles-beside-thumbnails": moles,
    "run-crosswords-quota": crosswords,
    "run-crowded-fabrics": crowded_fabrics,
    "run-half-sails": half_sails,
    "run-double-muons": double_muons,
    "run-seen-parcels": parcels,
    "run-seen-lighthouses": lighthouses,
    "run-seen-engines": engines,
}


if __name__ == "__main__":
    programs4.main(ELEVENTH_C)
