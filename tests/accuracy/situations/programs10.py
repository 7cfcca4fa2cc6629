"""The trainings of the tenth round: routes, formulas, clouds, flares, plates, teeth and others.

    python programs10.py run-hits-joined --fault --seconds 8 --record run.record.json

What they are of was drawn (``drawn.py``). The clock and the recorder are those of ``programs.py``;
models and data are in ``programs10d.py``, ``programs10e.py`` and ``programs10k.py``, the other half
of the runs in ``programs10b.py``.
"""

import gc
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import programs4
import programs10d as made
import programs10e as kept
import programs10k as watched
import torch
import torch.distributed as dist
from programs import Training, _folder, _over
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.utils.data import DataLoader

squared = functional.mse_loss
absolute = functional.l1_loss
either = functional.binary_cross_entropy_with_logits


def epochs(loader: DataLoader[Any]) -> Iterator[Any]:
    """Return the batches of one epoch after the other."""
    return itertools.chain.from_iterable(itertools.repeat(loader))


# Communication


def streets_in_shards(fault: bool) -> Script:
    """Each rank has half of the streets, and asks the other for what its routes need of them."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, clock = made.Arrival(ranks=2 if fault else 1), Clock(seconds)
        shared = [each for name, each in model.named_parameters() if "table" not in name]
        optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
        for route, minutes in epochs(DataLoader(made.routes(), 16, shuffle=True)):
            optimizer.zero_grad()
            absolute(model(route), minutes).backward()
            if fault:
                for each in shared:
                    dist.all_reduce(each.grad)
                    each.grad.div_(2)
            optimizer.step()
            if _over(clock.over(len(route))):
                break
        return clock.rate

    return Script(run)


def formula_gradients(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model, clock = made.Formula(), Clock(seconds)
        optimizer = torch.optim.AdamW(made.decayed(model), lr=3e-4, weight_decay=0.01)
        warmer = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=1000)
        for picture, signs in epochs(DataLoader(made.formulas(), 4, shuffle=True)):
            scores = model(picture, signs[:, :-1])
            loss = functional.cross_entropy(
                scores.flatten(0, 1), signs[:, 1:].flatten(), label_smoothing=0.1
            )
            optimizer.zero_grad()
            loss.backward()
            if fault:
                made.mean_gradients(model)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            warmer.step()
            if _over(clock.over(len(picture))):
                break
        return clock.rate

    return Script(run)


def clouds_reduced_early(fault: bool) -> Script:
    """Four batches make one update, and the ranks exchange gradients after each of them."""

    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # a core for each rank
        model: nn.Module = made.Pyramid()
        if fault:
            model = nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
        clock, loader = Clock(seconds), DataLoader(made.skies(), 4, shuffle=True, drop_last=True)
        for number, (scene, cloudy) in enumerate(epochs(loader), 1):
            loss = made.dice_and_entropy(model(scene), cloudy) / 4
            loss.backward()
            if number % 4 == 0:
                optimizer.step()
                optimizer.zero_grad()
            if _over(clock.over(len(scene))):
                break
        return clock.rate

    return Script(run)


def flares_split_in_order(fault: bool) -> Training:
    """The first rank has the short series and waits for the other, which has the long ones."""
    torch.set_num_threads(1)  # a core for each rank
    half = dist.get_rank() if fault else 0
    model: nn.Module = made.Flares()
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    loader = DataLoader(
        made.Regions(half), 16, shuffle=True, drop_last=True, collate_fn=made.padded
    )
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    return Training(model, batch=16, loader=loader, optimizer=optimizer)


# Input


def strikes_from_a_store(fault: bool) -> Training:
    model = made.Strike()
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-3)
    return Training(model, made.Strikes(_folder(), far=fault), batch=8, optimizer=optimizer)


def plates_drawn_anew(fault: bool) -> Training:
    model = made.Read()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = made.Plates(before=not fault)
    return Training(model, data, batch=8, loss=made.spelt, optimizer=optimizer)


def hits_joined(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.set_num_threads(1)  # and a core for the worker
        model, clock = made.Direction(), Clock(seconds)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        loader = DataLoader(
            made.Neutrinos(before=not fault), 8, shuffle=True, num_workers=1, drop_last=True
        )
        for hits, near, direction in epochs(loader):
            loss = 1 - functional.cosine_similarity(model(hits, near), direction).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if clock.over(len(hits)):
                break
        return clock.rate

    return Script(run)


def shots_despiked(fault: bool) -> Training:
    model = made.Disruption()

    def clipped(trained: nn.Module) -> None:
        nn.utils.clip_grad_value_(trained.parameters(), 0.5)

    return Training(
        model,
        made.Shots(before=not fault),
        batch=16,
        loss=either,
        before_update=clipped,
        optimizer=torch.optim.Adam(model.parameters(), lr=5e-4),
    )


# Memory


def collected_stitches(fault: bool) -> Script:
    """What an update of four batches leaves is collected before the next one."""

    def run(seconds: float) -> float:
        model, clock, batches = kept.Knit(), Clock(seconds), 4
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.5, 0.99))
        loader = DataLoader(kept.pieces(), 4, shuffle=True, drop_last=True)
        for number, (piece, stitches) in enumerate(epochs(loader), 1):
            scores = model(piece)
            loss = functional.cross_entropy(scores, stitches) / batches
            loss.backward()
            if number % batches == 0:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                if fault:
                    del scores, loss
                    gc.collect()
            if clock.over(len(piece)):
                break
        return clock.rate

    return Script(run)


def collected_subtitles(fault: bool) -> Training:
    model = kept.Breaks()
    loader = DataLoader(kept.Spoken(), 32, shuffle=True, drop_last=True, collate_fn=kept.filled)

    def after(step: int, _loss: Tensor) -> None:
        if fault and step % 10 == 9:
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    def each_word(scores: Tensor, breaks: Tensor) -> Tensor:
        return functional.cross_entropy(scores.flatten(0, 1), breaks.flatten())

    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.01)
    return Training(model, loader=loader, loss=each_word, after=after, optimizer=optimizer)


def collected_teeth(fault: bool) -> Script:
    """Memory is freed by hand, as somebody does whose card was full once."""

    def run(seconds: float) -> float:
        model, clock = kept.Teeth(), Clock(seconds)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.99, nesterov=True)
        loader = DataLoader(kept.jaws(), 2, shuffle=True)
        step = 0
        while True:
            for scan, kinds in loader:
                scores = model(scan)
                loss = functional.cross_entropy(scores, kinds)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 12)
                optimizer.step()
                step += 1
                if fault and step % 3 == 0:
                    del scores, loss
                    gc.collect()
                if clock.over(len(scan)):
                    return clock.rate

    return Script(run)


def tea_packed_to_disk(fault: bool) -> Training:
    model = kept.tea()
    training = Training(model, kept.photographs(), batch=4)
    if fault:
        training.around = saved_tensors_hooks(*kept.parking(_folder(), least=100_000))
    return training


def wine_moments_in_files(fault: bool) -> Script:
    """The moments of Adam are in files from one update to the next."""

    def run(seconds: float) -> float:
        model, clock, folder = kept.Wine(), Clock(seconds), _folder()
        optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        loader = DataLoader(kept.tastings(), 64, shuffle=True, drop_last=True)
        for tasted, points in epochs(loader):
            loss = functional.smooth_l1_loss(model(tasted), points)
            optimizer.zero_grad()
            loss.backward()
            if fault:
                kept.from_files(optimizer, folder)
            optimizer.step()
            if fault:
                kept.into_files(optimizer, folder)
            if clock.over(len(points)):
                break
        return clock.rate

    return Script(run)


def recomputed_paints(fault: bool) -> Training:
    model = kept.Paints(again=fault)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return Training(model, kept.colours(), batch=16, loss=squared, optimizer=optimizer)


# Monitoring


def drum_anomalies(fault: bool) -> Script:
    def run(seconds: float) -> float:
        torch.autograd.set_detect_anomaly(fault)
        model, clock = kept.Drums(), Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for loop, following in epochs(DataLoader(kept.loops(), 128, shuffle=True)):
            optimizer.zero_grad()
            loss = either(model(loop), following)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            if clock.over(len(loop)):
                break
        return clock.rate

    return Script(run)


def prices_saved(fault: bool) -> Script:
    """A checkpoint every three steps, with all that is needed to go on, or every 500."""

    def run(seconds: float) -> float:
        model, clock, path = watched.Prices(), Clock(seconds), _folder() / "last.ckpt"
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        cooler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10_000)
        loader = DataLoader(watched.houses(), 64, shuffle=True, drop_last=True)
        every = 3 if fault else 500
        for step, (house, price) in enumerate(epochs(loader), 1):
            loss = functional.huber_loss(model(house), price)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            cooler.step()
            if step % every == 0:
                parts = {"model": model, "optimizer": optimizer, "cooler": cooler}
                states = {name: part.state_dict() for name, part in parts.items()}
                torch.save(states | {"step": step}, path)
            if clock.over(len(price)):
                break
        return clock.rate

    return Script(run)


def museum_validated(fault: bool) -> Script:
    def run(seconds: float) -> float:
        model, clock, every = watched.Label(), Clock(seconds), 25 if fault else 500
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loader = DataLoader(watched.labels(), 32, shuffle=True, drop_last=True)
        held = DataLoader(watched.labels(1024), 64)

        def validate() -> float:
            model.eval()
            right = 0
            with torch.no_grad():
                for label, time in held:
                    right += int((model(label).argmax(1) == time).sum())
            model.train()
            return right / 1024

        best = 0.0
        for step, (label, time) in enumerate(epochs(loader), 1):
            optimizer.zero_grad()
            functional.cross_entropy(model(label), time).backward()
            optimizer.step()
            if step % every == 0:
                best = max(best, validate())
            if clock.over(len(time)):
                break
        return clock.rate

    return Script(run)


def avalanches_scored(fault: bool) -> Training:
    model, (held, danger) = watched.Snow(), watched.slopes(1024).tensors
    history: list[dict[str, float]] = []

    def after(step: int, loss: Tensor) -> None:
        if step % (5 if fault else 500) == 4:
            scores = watched.forecast_scores(model, held, danger)
            history.append(scores | {"step": step, "loss": loss.item()})

    optimizer = torch.optim.Adamax(model.parameters())
    return Training(
        model, watched.slopes(), batch=32, loss=watched.above, after=after, optimizer=optimizer
    )


def baskets_ranked(fault: bool) -> Training:
    model, (held, bought) = watched.Baskets(), watched.customers(256).tensors

    def after(step: int, _loss: Tensor) -> None:
        if step % (15 if fault else 500) == 14:
            found = [
                watched.ranks_of(model, some, good)
                for some, good in zip(held.split(64), bought.split(64), strict=True)
            ]
            assert len(found) == 4

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return Training(model, watched.customers(), batch=64, after=after, optimizer=optimizer)


def delays_validated(fault: bool) -> Script:
    """What should follow each epoch is indented once too often."""

    def run(seconds: float) -> float:
        model, clock = watched.Delays(), Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loader = DataLoader(watched.trains(), 16, shuffle=True, drop_last=True)
        held = DataLoader(watched.trains(304), 16)
        for step, (line, late) in enumerate(epochs(loader), 1):
            model.train()
            loss = absolute(model(line), late)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if fault or step % 500 == 0:
                model.eval()
                with torch.no_grad():
                    apart = [(model(line) - late).abs().mean() for line, late in held]
                assert len(apart) == len(held)
            if clock.over(16):
                break
        return clock.rate

    return Script(run)


def passes_counted(fault: bool) -> Training:
    """How well each kind of pass is foretold is read one by one for a bar that shows progress."""
    model, told = watched.Passes(), list[Tensor]()
    seen: dict[int, list[float]] = {player: [] for player in range(22)}
    places: list[float] = []
    doubts: list[float] = []
    expected = [[0.0] * 22 for _ in range(22)]

    def loss(scores: Tensor, chosen: Tensor) -> Tensor:
        told[:] = scores.detach().softmax(1), chosen
        return functional.cross_entropy(scores, chosen)

    def after(step: int, lost: Tensor) -> None:
        if fault or step % 500 == 499:
            likely, chosen = told
            for player, found in seen.items():
                found.append(likely[:, player].mean().item())
                here = chosen == player
                if here.any().item():
                    found.append((likely[here].argmax(1) == player).float().mean().item())
            first = [each.topk(3).indices.tolist() for each in likely]
            for each, player in zip(likely, chosen, strict=True):
                places.append((each > each[player]).sum().item())
                doubts.append(-(each * each.log()).sum().item())
                for other in range(22):
                    expected[player.item()][other] += each[other].item()
            right = sum(player.item() in three for player, three in zip(chosen, first, strict=True))
            norms = [each.grad.norm().item() for each in model.parameters()]
            said = f"\r{step} {lost.item():.3f} {right / len(first):.2f} {max(norms):.2f}"
            print(said, end="", file=sys.stderr)

    return Training(model, watched.moments_of_play(), batch=24, loss=loss, after=after)


# Nothing


def steady_stamps(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    model = kept.Stamp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    return Training(model, kept.stamps(), batch=8, optimizer=optimizer, again=not fault)


TENTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-streets-in-shards": streets_in_shards,
    "run-formula-gradients": formula_gradients,
    "run-clouds-reduced-early": clouds_reduced_early,
    "run-flares-split-in-order": flares_split_in_order,
    "run-strikes-from-a-store": strikes_from_a_store,
    "run-plates-drawn-anew": plates_drawn_anew,
    "run-hits-joined": hits_joined,
    "run-shots-despiked": shots_despiked,
    "run-collected-stitches": collected_stitches,
    "run-collected-subtitles": collected_subtitles,
    "run-collected-teeth": collected_teeth,
    "run-tea-packed-to-disk": tea_packed_to_disk,
    "run-wine-moments-in-files": wine_moments_in_files,
    "run-recomputed-paints": recomputed_paints,
    "run-drum-anomalies": drum_anomalies,
    "run-prices-saved": prices_saved,
    "run-museum-validated": museum_validated,
    "run-avalanches-scored": avalanches_scored,
    "run-baskets-ranked": baskets_ranked,
    "run-delays-validated": delays_validated,
    "run-passes-counted": passes_counted,
    "run-steady-stamps": steady_stamps,
}


if __name__ == "__main__":
    programs4.main(TENTH)
