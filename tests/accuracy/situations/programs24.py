"""The first 15 trainings of the twenty-fourth round: kazoos, verandas, davits and others.

    python programs24.py run-davits-cycles-counted --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-fourth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs24d.py``.
"""

import gc
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import programs4
import programs24d as given
import torch
from programs import Training, _folder, nothing
from programs4 import Clock, Script
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication: gradients


def kazoos(fault: bool) -> Training:
    """The ranks' slopes are put into one piece, which is added up after the way back."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Kazoo()
    return Training(
        model,
        given.kazoos(),
        batch=32,
        before_update=given.averaged if fault else (lambda _: None),
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def cartwheels(fault: bool) -> Training:
    """The first rank gathers the slopes of each weight, and sends their mean back."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Cartwheel()
    return Training(
        model,
        given.cartwheels(),
        batch=16,
        loss=functional.mse_loss,
        before_update=given.by_the_first if fault else (lambda _: None),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    )


def abaci(fault: bool) -> Training:
    """Of the slopes of moves only those rows are there, and added up, that a batch has."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = given.Abacus()
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(
        model,
        given.abaci(),
        batch=64,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
    )


# Input: fetch


def verandas(fault: bool) -> Training:
    """Each line of a text file is found by reading those before it."""
    torch.set_num_threads(1)
    model = given.Veranda()
    return Training(
        model,
        given.Verandas(_folder() / "verandas.csv", placed=not fault),
        batch=12,
        loss=functional.l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def gazebos(fault: bool) -> Training:
    """For each picture the whole file is read in which it lies with others."""
    torch.set_num_threads(1)
    model = given.Gazebo()
    return Training(
        model,
        given.Gazebos(_folder(), mapped=not fault),
        batch=12,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def davits(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Davit()
    return Training(
        model,
        given.Davits(counted=not fault),
        batch=16,
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


def bassinets(fault: bool) -> Training:
    """One worker looks for waves of each length in what is breathed."""
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Bassinet()
    return Training(
        model,
        given.Bassinets(found=not fault),
        batch=16,
        workers=1,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


def ottomans(fault: bool) -> Training:
    """What puts a batch together counts which shades lie beside each other."""
    torch.set_num_threads(1)
    model = given.Ottoman()
    cloth = given.Ottomans(paired=not fault)
    return Training(
        model,
        batch=16,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
        loader=DataLoader(cloth, 16, True, collate_fn=cloth.together, drop_last=True),
    )


# Input: workers


def bollards(fault: bool) -> Training:
    """The workers hand over whole records, of which a small part is looked at."""
    torch.set_num_threads(1)  # and a core for the workers
    model = given.Bollard()
    records = given.Bollards(whole=fault)
    return Training(
        model,
        batch=16,
        prepare=records.prepared,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
        loader=DataLoader(
            records,
            16,
            True,
            num_workers=2,
            collate_fn=records.together,
            drop_last=True,
            persistent_workers=True,
        ),
    )


# Memory: allocations


def scabbards(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Scabbard(rolled=fault)
    return Training(
        model,
        given.scabbards(),
        batch=48,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
    )


# Memory: garbage collection


def waistcoats(fault: bool) -> Training:
    """After each layer what lies about is collected."""
    torch.set_num_threads(1)
    model = given.Waistcoat()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    gc.freeze()
    data = given.Waistcoats()
    if fault:
        for layer in model.layers:
            layer.register_forward_hook(given.tidied)
    return Training(model, data, batch=8, optimizer=optimizer)


def chopsticks(fault: bool) -> Training:
    """A guard collects where more memory was taken than a limit, at any time before."""
    torch.set_num_threads(1)
    model = given.Chopstick()
    optimizer = torch.optim.Adamax(model.parameters(), lr=1e-3)
    gc.freeze()
    data = given.Chopsticks()
    return Training(
        model,
        data,
        batch=12,
        after=given.guarded(128 << 20) if fault else nothing,
        optimizer=optimizer,
    )


# Memory: offload


def urns(fault: bool) -> Script:
    """The half of the model that has no turn is put into a file, with its momentum."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        halves, batch, clock = [given.Half(128, 128) for _ in range(2)], 144, Clock(seconds)
        optimizers = [torch.optim.SGD(half.parameters(), 0.01, momentum=0.9) for half in halves]
        folder = _folder()
        cellars = [
            given.Cellar(half, optimizer, folder / f"half-{number}.pt")
            for number, (half, optimizer) in enumerate(zip(halves, optimizers, strict=True))
            if fault
        ]
        for urn in epochs(DataLoader(given.urns(), batch, True, drop_last=True)):
            for turn, seen in enumerate(urn):
                if fault:
                    cellars[turn].take()
                shown, hidden = seen.chunk(2, 1)
                loss = functional.mse_loss(halves[turn](shown), hidden)
                optimizers[turn].zero_grad()
                loss.backward()
                optimizers[turn].step()
                if fault:
                    cellars[turn].put()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def lorgnettes(fault: bool) -> Script:
    """A larger model that is held to is read from its file in each step."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model, batch, clock = given.Lens(256, 2), 8, Clock(seconds)
        reference = given.Reference(fault, _folder() / "reference.pt")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for answers, liked in epochs(DataLoader(given.lorgnettes(), batch, True, drop_last=True)):
            loss = given.liked_more(model(answers), reference.said(answers), liked)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def sarongs(fault: bool) -> Training:
    """What is needed again for the slopes is saved, a file for each tensor."""
    torch.set_num_threads(1)
    model = given.Sarong()
    hooks = saved_tensors_hooks(given.put_into(_folder()), given.taken)
    return Training(
        model,
        given.sarongs(),
        batch=8,
        around=hooks if fault else nullcontext(),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02),
    )


TWENTY_FOURTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-kazoo-gradients": kazoos,
    "run-cartwheel-gradients": cartwheels,
    "run-abacus-gradients": abaci,
    "run-verandas-line-by-line": verandas,
    "run-gazebos-whole-shards": gazebos,
    "run-davits-cycles-counted": davits,
    "run-bassinets-waves-looked-for": bassinets,
    "run-ottomans-shades-paired": ottomans,
    "run-bollards-whole-records": bollards,
    "run-scabbards-bank-rolled": scabbards,
    "run-collected-waistcoats": waistcoats,
    "run-collected-chopsticks": chopsticks,
    "run-urns-half-put-away": urns,
    "run-lorgnettes-reference-out": lorgnettes,
    "run-sarongs-folds-put-away": sarongs,
}


if __name__ == "__main__":
    programs4.main(TWENTY_FOURTH)
