"""The first 12 trainings of the twenty-fifth round: crossbows, nozzles, kennels and others.

    python programs25.py run-kennels-kinship-told --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-fifth``). The loop, its clock and the recorder are
those of ``programs.py``; models and data are in ``programs25d.py``.
"""

from collections.abc import Callable

import programs4
import programs25d as given
import torch
import torch.distributed as dist
from programs import Training, _folder
from programs4 import Script
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.nn import functional
from torch.utils.data import DataLoader

# Communication


def crossbows(fault: bool) -> Training:
    """How features go together is found over the batches of both ranks, at each layer."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Crossbow(together=fault)
    return Training(
        model,
        given.crossbows(),
        batch=256,
        loss=functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    )


def jetties(fault: bool) -> Training:
    """The ranks' slopes are made half as long before they are sent."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = given.Jetty()
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
        model.register_comm_hook(None, fp16_compress_hook)
    return Training(
        model,
        given.jetties(),
        batch=4,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02),
    )


def trestles(fault: bool) -> Training:
    """The second rank has the second half of a list, in which the long trestles are."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = given.Trestle()
    second = fault and dist.get_rank() == 1
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(
        model,
        given.Trestles(second),
        batch=8,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


# Input: fetch


def nozzles(fault: bool) -> Training:
    """Each number of a file is read by itself, and nothing is read ahead."""
    torch.set_num_threads(1)
    model = given.Nozzle()
    return Training(
        model,
        given.Nozzles(_folder() / "nozzles.bin", at_once=not fault),
        batch=16,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def ravelins(fault: bool) -> Training:
    """Each plan is what a program prints that is started for it."""
    torch.set_num_threads(1)
    model = given.Ravelin()
    return Training(
        model,
        given.Ravelins(_folder(), piped=fault),
        batch=12,
        optimizer=torch.optim.AdamW(model.parameters(), lr=1e-3),
    )


# Input: preprocessing


def kennels(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Kennel()
    return Training(
        model,
        given.Kennels(told=not fault),
        batch=24,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def kerbs(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Kerb()
    return Training(
        model,
        given.Kerbs(fitted=not fault),
        batch=16,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
    )


def ringbinders(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Ringbinder()
    return Training(
        model,
        given.Ringbinders(shingled=not fault),
        batch=32,
        optimizer=torch.optim.Adagrad(model.parameters(), lr=0.01),
    )


def garlands(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Garland()
    return Training(
        model,
        given.Garlands(seen=not fault),
        batch=16,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=1e-3),
    )


# Input: workers


def girders(fault: bool) -> Training:
    """Who gives and who takes look at the tray 25 times a second."""
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Girder()
    return Training(
        model,
        batch=32,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
        loader=DataLoader(given.Girders(0.04 if fault else 0.0), None),
    )


# Memory: allocations


def earplugs(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Earplug(anew=fault)
    return Training(
        model,
        given.earplugs(),
        batch=24,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
    )


def mangles(fault: bool) -> Training:
    """What was pressed is laid out for other programs in room that is made for it each time."""
    torch.set_num_threads(1)
    model, table = given.Mangle(), given.Table(anew=fault)

    def after(_step: int, _loss: Tensor) -> None:
        table.lay(model.pressed)

    return Training(
        model,
        given.mangles(),
        batch=16,
        loss=functional.mse_loss,
        after=after,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01),
    )


TWENTY_FIFTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-crossbows-whitened-together": crossbows,
    "run-jetty-gradients": jetties,
    "run-trestles-short-and-long": trestles,
    "run-nozzles-value-by-value": nozzles,
    "run-ravelins-through-pipes": ravelins,
    "run-kennels-kinship-told": kennels,
    "run-kerbs-planes-fitted": kerbs,
    "run-ringbinders-shingled": ringbinders,
    "run-garlands-who-sees-whom": garlands,
    "run-girders-asked-now-and-then": girders,
    "run-earplugs-sums-anew": earplugs,
    "run-mangles-shared-anew": mangles,
}


if __name__ == "__main__":
    programs4.main(TWENTY_FIFTH)
