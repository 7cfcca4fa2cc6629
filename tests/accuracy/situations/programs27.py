"""The first 15 trainings of the twenty-seventh round: dynamos, mobiles, epergnes and others.

    python programs27.py run-epergnes-thinned --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-seventh``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs27d.py``.
"""

import gc
from collections.abc import Callable

import programs4
import programs27d as given
import torch
import torch.distributed as dist
from programs import Training, _folder
from programs4 import Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

# Communication


def dynamos(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = given.Dynamo()
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(
        model,
        given.dynamos(),
        batch=32,
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    )


def flagons(fault: bool) -> Training:
    """All slopes of both ranks are gathered, and each rank takes their mean."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Flagon()
    training = Training(
        model,
        given.flagons(),
        batch=160,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
    )
    if fault:
        training.before_update = given.averaged
    return training


def cornices(fault: bool) -> Training:
    """The second rank has the carved cornices, whose pictures are wider."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = given.Cornice()
    second = fault and dist.get_rank() == 1
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(
        model,
        given.Cornices(carved=second),
        batch=8,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


# Input: fetch


def mobiles(fault: bool) -> Training:
    """Each part is looked for in the file by halving it."""
    torch.set_num_threads(1)
    model = given.Mobile()
    return Training(
        model,
        given.Mobiles(_folder() / "parts.bin", known=not fault),
        batch=24,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def joists(fault: bool) -> Training:
    """What was measured at each place of a joist lies in a file of its own."""
    torch.set_num_threads(1)
    model = given.Joist()
    return Training(
        model,
        given.Joists(_folder(), apart=fault),
        batch=24,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


def girdles(fault: bool) -> Training:
    """Each scan is copied into a near folder, read in part and thrown away."""
    torch.set_num_threads(1)
    model = given.Girdle()
    return Training(
        model,
        given.Girdles(_folder(), copied=fault),
        batch=24,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


# Input: preprocessing


def epergnes(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Epergne()
    return Training(
        model,
        given.Epergnes(ready=not fault),
        batch=8,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def hoists(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Hoist()
    return Training(
        model,
        given.Hoists(ready=not fault),
        batch=12,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


def mantelpieces(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Mantelpiece()
    return Training(
        model,
        given.Mantelpieces(ready=not fault),
        batch=24,
        optimizer=torch.optim.Adagrad(model.parameters(), lr=0.01),
    )


def peepholes(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Peephole()
    return Training(
        model,
        given.Peepholes(ready=not fault),
        batch=16,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    )


def fryers(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Fryer()
    return Training(
        model,
        given.Fryers(ready=not fault),
        batch=16,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def headbands(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Headband()
    return Training(
        model,
        given.Headbands(ready=not fault),
        batch=24,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


# Input: workers


def collars(fault: bool) -> Training:
    """The two workers are ended and started again with each epoch, which is 20 batches long."""
    torch.set_num_threads(1)  # and a core for the workers
    model = given.Collar()
    return Training(
        model,
        batch=24,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
        loader=DataLoader(
            given.Collars(),
            24,
            True,
            num_workers=2,
            drop_last=True,
            persistent_workers=not fault,
        ),
    )


# Memory: garbage collection


def platters(fault: bool) -> Training:
    """What lies about is collected after each update, where much that was served is held.

    What the libraries made is never looked at again, with the fault and without it.
    """
    torch.set_num_threads(1)
    model = given.Platter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    optimizer.zero_grad()
    gc.collect()
    gc.freeze()
    served: list[given.Served] = []
    for number in range(64_000):
        served.append(given.Served(number, served[-1] if number % 50 else None))

    def after(_step: int, _loss: Tensor) -> None:
        assert served
        if fault:
            gc.collect()

    return Training(
        model,
        given.platters(),
        batch=256,
        loss=functional.l1_loss,
        after=after,
        optimizer=optimizer,
    )


# Memory: offload


def plugs(fault: bool) -> Training:
    """The factors of each weight are read from a file for the update, and written back."""
    torch.set_num_threads(1)
    model = given.Plug()
    return Training(
        model,
        given.plugs(),
        batch=96,
        before_update=given.Factors(model, _folder() if fault else None),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    )


TWENTY_SEVENTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-dynamo-gradients": dynamos,
    "run-flagon-gradients": flagons,
    "run-cornices-plain-and-carved": cornices,
    "run-mobiles-found-by-halving": mobiles,
    "run-joists-file-by-file": joists,
    "run-girdles-copied-first": girdles,
    "run-epergnes-thinned": epergnes,
    "run-hoists-smoothed-there-and-back": hoists,
    "run-mantelpieces-patterns-counted": mantelpieces,
    "run-peepholes-smoothed-to-edges": peepholes,
    "run-fryers-curves-fitted": fryers,
    "run-headbands-likeness-counted": headbands,
    "run-collars-workers-anew": collars,
    "run-collected-platters": platters,
    "run-plugs-factors-put-away": plugs,
}


if __name__ == "__main__":
    programs4.main(TWENTY_SEVENTH)
