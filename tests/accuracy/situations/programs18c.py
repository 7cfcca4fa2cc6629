"""The last 15 trainings of the eighteenth round: sextants, mittens, gates, trams and others.

    python programs18c.py run-double-trams --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --eighteenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs18f.py``.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs18f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Parallelism: batch


def sextants(fault: bool) -> Script:
    """Sights are learnt from as they come in the log books."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Sextant(), 1 if fault else 5, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for stars, place in DataLoader(given.Voyages(), batch):
            loss = (1 - (model(stars) * place).sum(1)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Parallelism: small operations


def mittens(fault: bool) -> Training:
    model = given.Mitten(one_by_one=fault)
    return Training(
        model,
        given.mittens(),
        batch=6,
        optimizer=torch.optim.SGD(model.parameters(), 0.05, momentum=0.9),
    )


# Scheduling: quotas and other programs are put in by the generator


def microscopes(_fault: bool) -> Training:
    torch.set_num_threads(1)  # as the computer is one of many
    model = given.Microscope()
    return Training(
        model,
        given.focused(),
        batch=5,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def trophies(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Trophy(), 16, Clock(seconds)
        optimizer = torch.optim.NAdam(model.parameters(), 1e-3)
        loader = DataLoader(given.trophies(), batch, shuffle=True, drop_last=True)
        for picture, engraved, sport in epochs(loader):
            loss = functional.cross_entropy(model(picture, engraved), sport, label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def gates(_fault: bool) -> Training:
    model = given.Gate()
    return Training(
        model,
        given.passers(),
        batch=16,
        loss=functional.binary_cross_entropy_with_logits,
        optimizer=torch.optim.RMSprop(model.parameters(), 1e-3),
    )


def pyjamas(_fault: bool) -> Training:
    model = given.Pyjama()
    return Training(
        model,
        given.pyjamas(),
        batch=3,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


def almanacs(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Almanac(), 192, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-4)
        rates = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9999)
        for day, says in epochs(DataLoader(given.days(), batch, True, drop_last=True)):
            loss = functional.l1_loss(model(day), says)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Scheduling: threads


def archery(fault: bool) -> Script:
    """The settings are those of a computer with more cores."""
    settings = {"threads": 4 if fault else CORES, "batch": 5, "slope": 5.0}

    def run(seconds: float) -> float:
        torch.set_num_threads(int(settings["threads"]))
        model, batch, clock = given.Archer(), int(settings["batch"]), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        for shot, went in epochs(DataLoader(given.shots(), batch, True, drop_last=True)):
            loss = functional.mse_loss(model(shot), went)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), settings["slope"])
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def tractors(fault: bool) -> Training:
    """There is to be a thread for each of four cameras."""
    cameras = 4
    if fault:
        torch.set_num_threads(cameras)
    model = given.Tractor(cameras)
    return Training(
        model,
        given.fields(cameras),
        batch=6,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Tuning: layout


def bracelets(fault: bool) -> Training:
    """The beads' maps one after the other, or all beads of a place side by side."""
    layout = torch.contiguous_format if fault else torch.channels_last
    model = given.Bracelet().to(memory_format=layout)

    def placed(maps: Tensor) -> Tensor:
        return maps.to(memory_format=layout)

    return Training(
        model,
        given.bracelets(),
        batch=3,
        prepare=placed,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


# Tuning: precision


def flags(fault: bool) -> Script:
    """Exact weights are kept beside those that are learnt with, which are short."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Flag(), 12, Clock(seconds)
        exact = [nn.Parameter(each.detach().clone()) for each in model.parameters()]
        kind, large = (torch.float16, 256.0) if fault else (torch.float32, 1.0)
        model.to(kind)
        optimizer = torch.optim.SGD(exact if fault else model.parameters(), 0.02, momentum=0.9)
        for flag, land in epochs(DataLoader(given.flags(), batch, True, drop_last=True)):
            loss = functional.cross_entropy(model(flag.to(kind)).float(), land)
            model.zero_grad()
            (loss * large).backward()
            if fault:
                given_out(model, exact, large)
            optimizer.step()
            if fault:
                taken_in(model, exact)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def given_out(model: nn.Module, exact: list[nn.Parameter], large: float) -> None:
    """Give the slopes of short weights to the exact ones."""
    for each, kept in zip(model.parameters(), exact, strict=True):
        assert each.grad is not None
        kept.grad = each.grad.float() / large


@torch.no_grad()
def taken_in(model: nn.Module, exact: list[nn.Parameter]) -> None:
    """Take the short weights from the exact ones."""
    for each, kept in zip(model.parameters(), exact, strict=True):
        each.copy_(kept)


def trams(fault: bool) -> Training:
    """What numpy measured is taken as it is, and so all else is made."""
    torch.set_default_dtype(torch.float64 if fault else torch.float32)
    model = given.Tram()
    return Training(
        model,
        given.Lines(),
        batch=2,
        loss=functional.huber_loss,
        optimizer=torch.optim.Adam(model.parameters(), 2e-3),
    )


# Tuning: shapes


def screws(fault: bool) -> Training:
    """Profiles have the 1511 points that were measured, or 25 zeros more."""
    model = given.Screw()
    return Training(
        model,
        given.screws(filled=0 if fault else 25),
        batch=3,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Seen from outside


def compasses(_fault: bool) -> Training:
    model = given.Compass()
    return Training(
        model,
        given.carried(),
        batch=20,
        loss=given.turned,
        optimizer=torch.optim.Adagrad(model.parameters(), 0.01),
    )


def scissors(_fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Scissors(), 10, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        for paper, cut in epochs(DataLoader(given.papers(), batch, True, drop_last=True)):
            told = model(paper)
            loss = functional.binary_cross_entropy_with_logits(told, cut) + given.overlap(told, cut)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


EIGHTEENTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-sextants-sight-by-sight": sextants,
    "run-mittens-motif-by-motif": mittens,
    "run-microscopes-beside-stacks": microscopes,
    "run-trophies-beside-engraving": trophies,
    "run-gates-beside-queries": gates,
    "run-pyjamas-quota": pyjamas,
    "run-almanacs-quota": almanacs,
    "run-crowded-archery": archery,
    "run-tractors-a-thread-each": tractors,
    "run-bracelets-beads-first": bracelets,
    "run-half-flags": flags,
    "run-double-trams": trams,
    "run-screws-as-measured": screws,
    "run-seen-compasses": compasses,
    "run-seen-scissors": scissors,
}


if __name__ == "__main__":
    programs4.main(EIGHTEENTH_C)
