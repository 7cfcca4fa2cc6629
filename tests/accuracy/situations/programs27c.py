"""The last 15 trainings of the twenty-seventh round: diadems, cushions, latches and others.

    python programs27c.py run-half-consoles --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --twenty-seventh``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs27f.py``.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import programs4
import programs27f as given
import torch
from programs import CORES, Training
from programs4 import Clock, Script
from torch.nn import functional
from torch.utils.data import DataLoader


def epochs(loader: Iterable[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Parallelism: small operations


def diadems(fault: bool) -> Training:
    """Three running means of the weights are moved on weight by weight after each update."""
    torch.set_num_threads(1)
    model = given.Diadem()
    return Training(
        model,
        given.diadems(),
        batch=64,
        after=given.Means(model, each=fault),
        optimizer=torch.optim.SGD(model.parameters(), 0.02, foreach=True),
    )


def pipettes(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Pipette(each=fault)
    return Training(
        model,
        given.pipettes(),
        batch=36,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def drills(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model, clock = given.Drill(each=fault), Clock(seconds)
        optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
        loader = DataLoader(given.drills(), 16, shuffle=True, drop_last=True)
        for pictures, places, worn in epochs(loader):
            loss = functional.mse_loss(model(pictures, places), worn)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(worn)):
                break
        return clock.rate

    return Script(run)


def goggles(fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Goggle()
    return Training(
        model,
        given.goggles(),
        batch=64,
        loss=given.unlikely_in_turn if fault else given.unlikely,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


# Scheduling: other programs and a quota are put in by the generator


def cushions(_fault: bool) -> Training:
    torch.set_num_threads(1)  # cloth is cut in other programs beside it
    model = given.Cushion()
    return Training(
        model,
        given.cushions(),
        batch=32,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
    )


def kegs(_fault: bool) -> Training:
    torch.set_num_threads(1)
    model = given.Keg()
    return Training(
        model,
        given.kegs(),
        batch=32,
        loss=functional.mse_loss,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
    )


# Scheduling: threads


def ewers(fault: bool) -> Training:
    """A thread is kept back for all else, of the two that there are cores for."""
    torch.set_num_threads(CORES - 1 if fault else CORES)
    model = given.Ewer()
    return Training(
        model,
        given.ewers(),
        batch=256,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, fused=True),
    )


def muzzles(fault: bool) -> Training:
    """As many threads as the cores of the computer on which it was written."""
    torch.set_num_threads(24 if fault else CORES)
    model = given.Muzzle()
    return Training(
        model,
        given.muzzles(),
        batch=128,
        optimizer=torch.optim.SGD(model.parameters(), 0.01, fused=True),
    )


# Tuning: kernels


def latches(fault: bool) -> Training:
    """Groups of channels are told apart by a mask on the weights of all channels."""
    torch.set_num_threads(1)
    model = given.Latch(masked=fault)
    return Training(
        model,
        given.latches(),
        batch=16,
        optimizer=torch.optim.SGD(model.parameters(), 0.01),
    )


# Tuning: layout


def lids(fault: bool) -> Training:
    """Channels are turned to be the last for each norm, and back; or are so throughout."""
    torch.set_num_threads(1)
    layout = torch.contiguous_format if fault else torch.channels_last
    model = given.Lid(turned=fault).to(memory_format=layout)
    return Training(
        model,
        given.lids(),
        batch=16,
        prepare=lambda x: x.to(memory_format=layout),
        optimizer=torch.optim.SGD(model.parameters(), 0.01),
    )


# Tuning: precision


def consoles(fault: bool) -> Training:
    """The last layers are in half precision, for which this processor has no instructions."""
    torch.set_num_threads(1)
    model = given.Console(torch.float16 if fault else torch.float32)
    return Training(
        model,
        given.consoles(),
        batch=32,
        optimizer=torch.optim.SGD(model.parameters(), 0.01),
    )


def kiosks(fault: bool) -> Training:
    """The likelihood of a Gaussian process is computed in double precision, or in single."""
    torch.set_num_threads(1)
    model = given.Kiosk(torch.float64 if fault else torch.float32)
    return Training(
        model,
        given.kiosks(),
        batch=448,
        loss=given.unlikely_sales,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def crests(fault: bool) -> Training:
    """What does not learn is kept in codes of four bits, which are looked up at each use."""
    torch.set_num_threads(1)
    model = given.Crest(coded=fault)
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    return Training(
        model,
        given.crests(),
        batch=20,
        optimizer=torch.optim.AdamW(learning, 1e-3),
    )


# Tuning: shapes


def dials(fault: bool) -> Training:
    """Small pictures are made larger, as an example for photographs does it."""
    torch.set_num_threads(1)
    model = given.Dial(60 if fault else None)
    return Training(
        model,
        given.dials(),
        batch=16,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), 1e-3),
    )


def harnesses(fault: bool) -> Script:
    """Each harness is filled up to 128 straps, or to the most straps of its batch."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)
        model, clock = given.Harness(), Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        joined = given.filled_up(128 if fault else None)
        loader = DataLoader(given.Harnesses(), 24, True, drop_last=True, collate_fn=joined)
        for straps, there, horses in epochs(loader):
            loss = functional.cross_entropy(model(straps, there), horses)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(len(horses)):
                break
        return clock.rate

    return Script(run)


TWENTY_SEVENTH_C: dict[str, Callable[[bool], Training | Script]] = {
    "run-diadems-mean-weight-by-weight": diadems,
    "run-pipettes-channel-by-channel": pipettes,
    "run-drills-hole-by-hole": drills,
    "run-goggles-bump-by-bump": goggles,
    "run-cushions-beside-cutters": cushions,
    "run-kegs-quota": kegs,
    "run-ewers-a-thread-kept-back": ewers,
    "run-crowded-muzzles": muzzles,
    "run-latches-groups-masked": latches,
    "run-lids-turned-for-each-norm": lids,
    "run-half-consoles": consoles,
    "run-kiosks-double-likelihood": kiosks,
    "run-crests-four-bit-codes": crests,
    "run-dials-blown-up": dials,
    "run-harnesses-room-for-all-straps": harnesses,
}


if __name__ == "__main__":
    programs4.main(TWENTY_SEVENTH_C)
