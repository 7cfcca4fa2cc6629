"""The first 23 trainings of the twelfth round: gaits, pallets, echoes, arms, antennas and others.

    python programs12.py run-arms-over-http --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twelfth``). The loop, its clock and the recorder are those
of ``programs.py``; models and data are in ``programs12d.py``.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import programs4
import programs12d as given
import torch
import torch.distributed as dist
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def gaits(fault: bool) -> Script:
    """Each rank has half of the experts; what all ranks share is averaged."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Gait(ranks=2 if fault else 1), 8, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
        shared = [
            each
            for name, each in model.named_parameters()
            if not name.endswith((".wide", ".narrow"))
        ]
        for measured, gait in epochs(DataLoader(given.strides(), batch, shuffle=True)):
            optimizer.zero_grad()
            functional.cross_entropy(model(measured), gait, label_smoothing=0.1).backward()
            if fault:
                for each in shared:
                    dist.all_reduce(each.grad)
                    each.grad.div_(2)
            optimizer.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


def pallets(fault: bool) -> Training:
    """Each rank has one half of a picture, and sees across the seam."""
    torch.set_num_threads(1)  # a core for each rank
    model = given.Pallets(joined=fault)

    def before_update(trained: nn.Module) -> None:
        if fault:
            found = [each.grad for each in trained.parameters()]
            whole = torch._utils._flatten_dense_tensors(found)
            dist.all_reduce(whole)
            parts = torch._utils._unflatten_dense_tensors(whole, found)
            torch._foreach_copy_(found, list(parts))

    return Training(
        model,
        given.racks(),
        batch=4,
        before_update=before_update,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9),
    )


def echoes(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, batch, clock = given.Echo(), 48, Clock(seconds)
        if fault:
            given.mean_as_they_come(model)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        rate = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9999)
        loader = DataLoader(given.echoes(), batch, shuffle=True, drop_last=True)
        for pulses, kind, speed in epochs(loader):
            told, fast = model(pulses)
            loss = functional.cross_entropy(told, kind) + functional.huber_loss(fast, speed)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            if _over(clock.over(batch)):
                break
        return clock.rate

    return Script(run)


# Input: fetching


def arms(fault: bool) -> Training:
    model = given.Blazon()
    return Training(
        model,
        given.Arms(ahead=not fault),
        batch=8,
        loss=functional.multilabel_soft_margin_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )


def antennas(fault: bool) -> Training:
    """The drive is a slow one, as ``generate.py`` throttles it."""
    model = given.Antenna()
    return Training(
        model,
        given.Antennas(_folder(), kept=not fault),
        batch=8,
        workers=2,
        loss=functional.l1_loss,
        optimizer=torch.optim.NAdam(model.parameters(), lr=2e-3),
    )


def comets(fault: bool) -> Training:
    """The drive is a slow one, as ``generate.py`` throttles it."""
    model = given.Comet()
    return Training(
        model,
        given.Nights(_folder(), mapped=fault),
        batch=8,
        loss=functional.mse_loss,
        optimizer=torch.optim.RMSprop(model.parameters(), lr=5e-4),
    )


def pools(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # and a core for the worker
        model, batch, clock = given.Pool(), 12, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
        loader = DataLoader(
            given.Pools(ahead=not fault),
            batch,
            shuffle=True,
            drop_last=True,
            num_workers=1,
            persistent_workers=True,
        )
        for picture, shares in epochs(loader):
            loss = functional.kl_div(model(picture), shares, reduction="batchmean")
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def fables(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Teller(), 8, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.95))
        loader = DataLoader(given.Fables(kept=0 if fault else 400), batch, drop_last=True)
        for letters in epochs(loader):
            scores = model(letters[:, :-1])
            loss = functional.cross_entropy(scores.mT, letters[:, 1:].long())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


TWELFTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-gaits-by-experts": gaits,
    "run-pallets-in-halves": pallets,
    "run-echo-gradients": echoes,
    "run-arms-over-http": arms,
    "run-antennas-from-afar": antennas,
    "run-comets-mapped": comets,
    "run-pools-from-a-bucket": pools,
    "run-fables-streamed": fables,
}


if __name__ == "__main__":
    programs4.main(TWELFTH)
