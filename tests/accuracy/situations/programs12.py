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
from programs import Training, _endlessly, _folder, _over
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
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
                small = [each.grad for each in shared if each.dim() == 1]
                large = [each.grad for each in shared if each.dim() > 1]
                for each in large:
                    dist.all_reduce(each)
                    each.div_(2)
                whole = torch.cat([each.flatten() for each in small])
                dist.all_reduce(whole)
                nn.utils.vector_to_parameters(whole / 2, small)
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
        model, batch, clock = given.Echo(), 112, Clock(seconds)
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
    torch.set_num_threads(1)  # and a core for the workers
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


# Input: preprocessing


def organ(fault: bool) -> Training:
    model = given.Pipe()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    return Training(model, given.Ranks(ready=not fault), batch=8, optimizer=optimizer)


def nebulae(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Nebula(), 4, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
        loader = DataLoader(given.Plates(ready=not fault), batch, shuffle=True, drop_last=True)
        for seen, kind in epochs(loader):
            loss = given.told_and_drawn(model(seen), seen, kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def shoals(fault: bool) -> Training:
    model = given.Shoal()
    return Training(
        model,
        given.Shoals(ready=not fault),
        batch=4,
        loss=functional.smooth_l1_loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True),
    )


def trails(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Colony(), 8, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        nests = given.Nests()
        joined = given.Joined(nests, ready=not fault)
        loader = DataLoader(nests, batch, shuffle=True, drop_last=True, collate_fn=joined)
        for ants, pairs, apart, kind in epochs(loader):
            loss = functional.cross_entropy(model(ants, pairs, apart), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def umbrellas(fault: bool) -> Training:
    torch.set_num_threads(1)  # and a core for the worker
    model = given.Umbrella()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    data = given.Umbrellas(ready=not fault)
    return Training(model, data, batch=8, workers=1, optimizer=optimizer)


def seaweed(fault: bool) -> Training:
    model = given.Seaweed()
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
    loss = functional.mse_loss
    return Training(model, given.Spectra(ready=not fault), batch=16, loss=loss, optimizer=optimizer)


# Memory


def telegrams(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Telegram(), 12, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        if fault:
            given.Drawer(_folder(), optimizer)
        for (words,) in epochs(DataLoader(given.telegrams(), batch, shuffle=True)):
            scores = model(words[:, :-1])
            loss = functional.cross_entropy(scores.mT, words[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def cranes(fault: bool) -> Training:
    model = given.Crane()
    training = Training(
        model,
        given.lifts(),
        batch=16,
        loss=functional.mse_loss,
        optimizer=torch.optim.Adam(model.parameters(), lr=1e-3),
    )
    if fault:
        yard = given.Yard(_folder() / "yard.bin")
        training.around = saved_tensors_hooks(yard.put, yard.get)
    return training


def panels(fault: bool) -> Script:
    """A slow copy of the weights is what will be used."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Panels(), 96, Clock(seconds)
        copy = given.Slow(model, _folder() if fault else None)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        loader = DataLoader(given.yields(), batch, shuffle=True, drop_last=True)
        for past, ahead in epochs(loader):
            loss = functional.l1_loss(model(past), ahead)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            copy.follow()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def sewers(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Sewer(), 4, Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for rain, high in epochs(DataLoader(given.storms(), batch, shuffle=True)):
            loss = functional.mse_loss(model(rain, halves=fault), high)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Monitoring


def coats(fault: bool) -> Training:
    """Now and then each photograph is looked up among those of all dogs."""
    model, every = given.Coat(), 5 if fault else 500
    known, asked = (DataLoader(given.coats(count), 30) for count in (720, 360))

    @torch.inference_mode()
    def recall() -> float:
        model.eval()
        (points, dogs), (queries, wanted) = (
            (
                torch.cat([model(coat) for coat, _ in loader]),
                torch.cat([dog for _, dog in loader]),
            )
            for loader in (known, asked)
        )
        nearest = dogs[torch.cdist(queries, points).argmin(1)]
        model.train()
        return float((nearest == wanted).float().mean())

    found: list[float] = []

    def after(step: int, _loss: Tensor) -> None:
        if step % every == every - 1:
            found.append(recall())

    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    loss = given.farther
    return Training(model, given.coats(), batch=20, loss=loss, after=after, optimizer=optimizer)


def leaks(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Leak(), 16, Clock(seconds)
        book, every = given.Book(_folder() / "runs.db"), 1 if fault else 500
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        rate = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)
        loader = DataLoader(given.leaks(), batch, shuffle=True, drop_last=True)
        for step, (heard, where) in enumerate(epochs(loader), 1):
            told = model(heard)
            loss = functional.cross_entropy(told, where)
            optimizer.zero_grad()
            loss.backward()
            steep = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
            if step % every == 0:
                book.metric("loss", float(loss), step)
                book.metric("right", float((told.argmax(1) == where).float().mean()), step)
                book.metric("gradient", float(steep), step)
                book.metric("rate", rate.get_last_lr()[0], step)
                for name, weight in model.named_parameters():
                    book.metric(f"{name}/slope", float(weight.grad.norm()), step)
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def riddles(fault: bool) -> Script:
    """How sure each letter was is added up, and how often it was right, letter after letter."""

    def run(seconds: float) -> float:
        model, batch, clock = given.Riddle(), 32, Clock(seconds)
        every = 1 if fault else 500
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        loader = DataLoader(given.riddles(), batch, shuffle=True, drop_last=True)
        sure, right = [0.0] * 30, [0] * 30
        for step, (riddle, answer) in enumerate(epochs(loader), 1):
            scores = model(riddle)
            loss = functional.cross_entropy(scores.mT, answer)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                chances, best = scores.detach().softmax(2), scores.argmax(2)
                for one in range(batch):
                    for place in range(answer.shape[1]):
                        letter = answer[one, place].item()
                        sure[letter] += chances[one, place, letter].item()
                        right[letter] += best[one, place].item() == letter
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


# Nothing: without the loader it is no faster


def limericks(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, batch, clock = given.Limerick(), 8, Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
        warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=400)
        loader = DataLoader(given.limericks(), batch, shuffle=True, drop_last=True)
        for (verse,) in _endlessly(loader, not fault):
            scores = model(verse[:, :-1])
            loss = functional.cross_entropy(scores.mT, verse[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            warm.step()
            if clock.over(batch):
                break
        return clock.rate

    return Script(run)


def pellets(fault: bool) -> Training:
    model = given.Pellet()

    def loss(told: list[Tensor], maps: Tensor) -> Tensor:
        return torch.stack([functional.mse_loss(each, maps) for each in told]).sum()

    return Training(
        model,
        given.pellets(),
        batch=3,
        loss=loss,  # type: ignore[arg-type]
        optimizer=torch.optim.RMSprop(model.parameters(), lr=2.5e-4),
        again=not fault,
    )


TWELFTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-gaits-by-experts": gaits,
    "run-pallets-in-halves": pallets,
    "run-echo-gradients": echoes,
    "run-arms-over-http": arms,
    "run-antennas-from-afar": antennas,
    "run-comets-mapped": comets,
    "run-pools-from-a-bucket": pools,
    "run-fables-streamed": fables,
    "run-organ-resampled": organ,
    "run-nebulae-stretched": nebulae,
    "run-shoals-gridded": shoals,
    "run-trails-joined": trails,
    "run-umbrellas-altered": umbrellas,
    "run-seaweed-parsed": seaweed,
    "run-telegram-moments-out": telegrams,
    "run-cranes-put-away": cranes,
    "run-panels-average-out": panels,
    "run-recomputed-sewers": sewers,
    "run-coats-looked-up": coats,
    "run-leaks-tracked": leaks,
    "run-riddles-by-letter": riddles,
    "run-steady-limericks": limericks,
    "run-steady-pellets": pellets,
}


if __name__ == "__main__":
    programs4.main(TWELFTH)
