"""Runs 16 to 30 of the thirteenth round: corks, tofu, doorbells, puppets, sausages and others.

    python programs13b.py run-corks-graded --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py --thirteenth``). The clock and the recorder are those of
``programs.py``; models and data are in ``programs13e.py``.
"""

import logging
from collections.abc import Callable, Iterable
from logging.handlers import RotatingFileHandler
from typing import Any

import programs4
import programs13e as given
import torch
from programs import Training, _endlessly, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

either = functional.binary_cross_entropy_with_logits


def endlessly(loader: DataLoader[Any], again: bool = False) -> Iterable[Any]:
    """Return the batches of all epochs, or the first of them again and again."""
    return _endlessly(loader, again)


# Monitoring


def corks_graded(fault: bool) -> Script:
    """Corks that were kept back are graded as they lie and upside down."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Cork(), 16, Clock(seconds)
        every = 8 if fault else 500
        loader = DataLoader(given.corks(), batch, shuffle=True, drop_last=True)
        kept_back = DataLoader(given.corks(256), 32)
        optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=1e-4)
        best = -1.0
        for step, (side, grade) in enumerate(endlessly(loader), 1):
            optimizer.zero_grad()
            given.at_least(model(side), grade).backward()
            optimizer.step()
            if step % every == 0:
                model.eval()
                told, known = [], []
                with torch.no_grad():
                    for other, truth in kept_back:
                        sure = model(other).sigmoid() + model(other.flip(2)).sigmoid()
                        told.append((sure > 1).sum(1))
                        known.append(truth)
                best = max(best, given.agreement(torch.cat(told), torch.cat(known)))
                model.train()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


class Tasting:
    """Fits a model to what people felt, epoch by epoch, until nothing is gained any more."""

    def __init__(self, model: nn.Module, every: int, patience: int = 10_000) -> None:
        self.model, self.every, self.patience = model, every, patience
        self.optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        self.history: list[dict[str, float]] = []

    @torch.no_grad()
    def evaluate(self, loader: DataLoader[Any]) -> float:
        """Return by how much the model is wrong on average."""
        self.model.eval()
        wrong, count = 0.0, 0
        for force, making, felt in loader:
            wrong += float((self.model(force, making) - felt).abs().sum())
            count += felt.numel()
        return wrong / count

    def fit(
        self, train: DataLoader[Any], valid: DataLoader[Any], over: Callable[[int], bool]
    ) -> None:
        """Train; after an epoch, see how well both sets are known."""
        best, since, epoch = float("inf"), 0, 0
        while since < self.patience:
            self.model.train()
            for force, making, felt in train:
                loss = functional.smooth_l1_loss(self.model(force, making), felt)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if over(len(felt)):
                    return
            epoch += 1
            if epoch % self.every == 0:
                found = {"train": self.evaluate(train), "valid": self.evaluate(valid)}
                self.history.append(found)
                since = 0 if found["valid"] < best else since + 1
                best = min(best, found["valid"])


def tofu_each_epoch(fault: bool) -> Script:
    def run(seconds: float) -> float:
        clock = Clock(seconds)
        train = DataLoader(given.pressings(96), 16, shuffle=True)
        valid = DataLoader(given.pressings(960), 16)
        every = 1 if fault else 500 // len(train)
        Tasting(given.Tofu(), every).fit(train, valid, clock.over)
        return clock.rate

    return Script(run)


def doorbells_swept(fault: bool) -> Training:
    """Now and then the threshold is looked for with which most rings are found, none too many."""
    model, every = given.Doorbell(), 8 if fault else 500
    held = DataLoader(given.streets(80), 16)
    chosen: list[float] = []

    def f_score(threshold: float, sure: Tensor, truth: Tensor) -> float:
        right = told = known = 0
        for told_clip, known_clip in zip(sure, truth, strict=True):
            for bell in range(sure.shape[2]):
                rings = given.rung(told_clip[:, bell], threshold)
                wanted = given.rung(known_clip[:, bell], 0.5)
                right += sum(any(abs(a - b) < 3 for b, _ in wanted) for a, _ in rings)
                told, known = told + len(rings), known + len(wanted)
        return 2 * right / max(told + known, 1)

    def after(step: int, _loss: Tensor) -> None:
        if step % every != every - 1:
            return
        model.eval()
        with torch.inference_mode():
            sure = torch.cat([model(tones).sigmoid() for tones, _ in held])
        model.train()
        truth = torch.cat([rings for _, rings in held])
        thresholds = [each / 20 for each in range(1, 20)]
        chosen.append(max(thresholds, key=lambda each: f_score(each, sure, truth)))

    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return Training(model, given.streets(), batch=6, loss=either, after=after, optimizer=optimizer)


def puppets_told(fault: bool) -> Script:
    """A line for each joint of the three puppets furthest off, and for each layer's slopes."""

    def run(seconds: float) -> float:
        log = logging.getLogger("theatre")
        log.setLevel(logging.DEBUG)
        log.propagate = False
        file = RotatingFileHandler(_folder() / "theatre.log", maxBytes=1 << 20, backupCount=3)
        file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(funcName)s: %(message)s"))
        log.addHandler(file)
        model, batch, clock = given.Puppet(), 32, Clock(seconds)
        every = 1 if fault else 500
        loader = DataLoader(given.plays(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.AdamW(model.parameters(), 5e-4)
        for step, (strings, places) in enumerate(endlessly(loader), 1):
            told = model(strings)
            far = (told - places).norm(dim=2)
            loss = far.mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % every == 0:
                log.info("step %d loss %.5f", step, loss.item())
                for worst in far.sum(1).topk(3).indices.tolist():
                    for joint in range(model.joints):
                        is_at, was_at = told[worst, joint].tolist(), places[worst, joint].tolist()
                        log.debug("puppet %d joint %d: %s for %s", worst, joint, is_at, was_at)
                for name, weight in model.named_parameters():
                    slopes = weight.grad
                    log.debug(
                        "%s: slopes %.3g of %.3g", name, slopes.norm(), weight.detach().norm()
                    )
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def sausages_unit_by_unit(fault: bool) -> Script:
    """Units that answer nothing to a film are counted, to see whether they become more."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Sausage(), 12, Clock(seconds)
        every, silent = 1 if fault else 500, [0, 0, 0]
        loader = DataLoader(given.grills(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(model.parameters(), 3e-4)
        for step, (film, deed) in enumerate(endlessly(loader), 1):
            told, layers = model(film)
            loss = functional.cross_entropy(told, deed)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                for number, found in enumerate(layers):
                    for one in found:
                        silent[number] += sum(1 for unit in one if unit.max() == 0)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster


def steady_squid(fault: bool) -> Training:
    model = given.Squid()
    return Training(
        model,
        given.mantles(),
        batch=6,
        optimizer=torch.optim.AdamW(model.parameters(), 5e-4, weight_decay=0.05),
        again=not fault,
    )


def steady_swallows(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Swallow(), 64, Clock(seconds)
        loader = DataLoader(given.flights(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(model.parameters(), 5e-4)
        for (flight,) in endlessly(loader, not fault):
            moved = flight[:, 1:, :3] - flight[:, :-1, :3]
            loss = given.way_taken(model(flight[:, :-1]), moved)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_pheasants(fault: bool) -> Training:
    model = given.Pheasants()
    return Training(
        model,
        given.fields(),
        batch=3,
        loss=given.counted,
        optimizer=torch.optim.Adam(model.parameters(), 1e-4),
        again=not fault,
    )


def steady_garlic(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Bulb(), 4, Clock(seconds)
        loader = DataLoader(given.bulbs(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, nesterov=True)
        for scan, kind, cloves in endlessly(loader, not fault):
            told, many = model(scan)
            loss = functional.cross_entropy(told, kind)
            loss = loss + functional.poisson_nll_loss(many, cloves) / 10
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_dragonflies(fault: bool) -> Training:
    model = given.Wing()
    return Training(
        model,
        given.wings(),
        batch=96,
        loss=given.together,
        optimizer=torch.optim.AdamW(model.parameters(), 3e-4, fused=True),
        again=not fault,
    )


def steady_melons(fault: bool) -> Training:
    model = given.Melon()
    return Training(
        model,
        given.melons(),
        batch=6,
        loss=functional.huber_loss,
        optimizer=torch.optim.NAdam(model.parameters(), 3e-4),
        again=not fault,
    )


def steady_wasps(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Face(), 16, Clock(seconds)
        loader = DataLoader(given.faces(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
        rate = torch.optim.lr_scheduler.LambdaLR(optimizer, given.cosine)
        for face, wasp in endlessly(loader, not fault):
            loss = given.angle(model(face), wasp)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def steady_anvils(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Anvil(), 8, Clock(seconds)
        loader = DataLoader(given.blows(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        rate = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9999)
        for blow, points, moved in endlessly(loader, not fault):
            loss = functional.mse_loss(model(blow, points), moved)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            rate.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Too little at once


def few_ropes(fault: bool) -> Training:
    model = given.Rope()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01)
    batch = 8 if fault else 32
    return Training(model, given.ropes(), batch=batch, loss=either, optimizer=optimizer)


def few_figs(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Fig(), 16 if fault else 64, Clock(seconds)
        loader = DataLoader(given.orchards(), batch, shuffle=True, drop_last=True)
        optimizer = torch.optim.Adamax(model.parameters(), 2e-3)
        for weather, tree, ripe in endlessly(loader):
            loss = functional.poisson_nll_loss(model(weather, tree), ripe)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


THIRTEENTH_B: dict[str, Callable[[bool], Training | Script]] = {
    "run-corks-graded": corks_graded,
    "run-tofu-each-epoch": tofu_each_epoch,
    "run-doorbells-swept": doorbells_swept,
    "run-puppets-told": puppets_told,
    "run-sausages-unit-by-unit": sausages_unit_by_unit,
    "run-steady-squid": steady_squid,
    "run-steady-swallows": steady_swallows,
    "run-steady-pheasants": steady_pheasants,
    "run-steady-garlic": steady_garlic,
    "run-steady-dragonflies": steady_dragonflies,
    "run-steady-melons": steady_melons,
    "run-steady-wasps": steady_wasps,
    "run-steady-anvils": steady_anvils,
    "run-few-ropes": few_ropes,
    "run-few-figs": few_figs,
}


if __name__ == "__main__":
    programs4.main(THIRTEENTH_B)
