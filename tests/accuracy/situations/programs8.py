"""The trainings of the eighth round: jets, heartbeats, crystals, songs, faces, routes, genes.

    python programs8.py run-parsed-jets --fault --seconds 8 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``; models and data are in
``programs8b.py`` and ``programs8c.py``.
"""

import gc
import itertools
from collections.abc import Callable
from typing import Any

import programs
import programs4
import programs8b as made
import programs8c as more
import torch
import torch.distributed as dist
from programs import Training, _folder
from programs4 import Clock, Script
from torch import Tensor, nn
from torch.utils.data import DataLoader

squared = nn.functional.mse_loss


def as_it_is(loss: Tensor, _: Tensor) -> Tensor:
    """Return the mean of losses that a model has computed itself."""
    return loss.mean()


# Input


def parsed_jets(fault: bool) -> Training:
    """Each line is met for the first time here: none is asked for twice."""
    return Training(made.Shower(), made.Jets(65_536, before=not fault), batch=32)


def listed_beats(fault: bool) -> Script:
    """Heartbeats are put together number by number, or as arrays."""

    def run(seconds: float) -> float:
        model, clock = made.Rhythm(), Clock(seconds)
        optimizer = torch.optim.Adam(model.parameters())
        together: Any = made.as_lists if fault else made.as_arrays
        loader = DataLoader(made.Beats(8192, lists=fault), 32, True, collate_fn=together)
        for beat, kind in itertools.chain.from_iterable(itertools.repeat(loader)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(beat), kind).backward()
            optimizer.step()
            if clock.over(len(kind)):
                break
        return clock.rate

    return Script(run)


def channel_files(fault: bool) -> Training:
    return Training(made.picker(), made.Traces(_folder(), 64, apart=fault), batch=16)


def warped_prints(fault: bool) -> Training:
    return Training(made.fingers(), made.Prints(4096, before=not fault), batch=16, workers=1)


# Too little at once


def crystal_by_crystal(fault: bool) -> Training:
    return Training(made.Crystal(in_turn=fault), made.perovskites(), batch=32, loss=squared)


def head_after_head(fault: bool) -> Training:
    return Training(made.Decisions(in_turn=fault), made.trajectories(), batch=8, loss=squared)


def two_galaxies(fault: bool) -> Training:
    return Training(made.Galaxies(), made.observed(), batch=2 if fault else 32, loss=squared)


# Untuned


def double_operators(fault: bool) -> Training:
    dtype = torch.float64 if fault else torch.float32
    return Training(made.Operator(dtype), made.grounds(dtype), batch=2, loss=squared)


def padded_smiles(fault: bool) -> Training:
    def prepare(line: Tensor) -> Tensor:
        """Leave out what is padding in every molecule of the batch."""
        return line if fault else line[:, : int((line != 0).sum(1).max())]

    return Training(made.Smiles(), made.lines(), batch=16, loss=squared, prepare=prepare)


def unfolded_holes(fault: bool) -> Training:
    return Training(made.Holes(unfolded=fault), made.holed(), batch=8, loss=nn.functional.l1_loss)


# Memory


def collected_facts(fault: bool) -> Training:
    known = {first: [[first, relation] for relation in range(40)] for first in range(800)}

    def after(_step: int, _loss: Tensor) -> None:
        assert known
        if fault:
            gc.collect()

    return Training(more.Rotations(), more.facts(), batch=128, after=after)


def recomputed_frames(fault: bool) -> Training:
    return Training(made.Frames(again=fault), made.digits(), batch=4, loss=squared)


def rebuilt_bank(fault: bool) -> Training:
    bank = more.Bank(131_072)

    def loss(seen: Tensor, song: Tensor) -> Tensor:
        apart = bank.told_apart(seen, song)
        keep = bank.rebuilt if fault else bank.written
        keep(seen.detach(), song)
        return apart

    return Training(more.Covers(), more.songs(), batch=32, loss=loss)


def clients_on_disk(fault: bool) -> Training:
    """Each step is another client's, who has weights of his own."""
    model, folder, turn = more.Keyboard(), _folder(), itertools.cycle(range(8))
    kept = {who: _copied(model) for who in range(8)}
    present = 0
    if fault:
        for who, weights in kept.items():
            torch.save(weights, folder / f"{who}.pt")
        kept = {}

    def prepare(text: Tensor) -> Tensor:
        nonlocal present
        present = next(turn)
        model.load_state_dict(torch.load(folder / f"{present}.pt") if fault else kept[present])
        return text

    def after(_step: int, _loss: Tensor) -> None:
        if fault:
            torch.save(model.state_dict(), folder / f"{present}.pt")
        else:
            kept[present] = _copied(model)

    return Training(model, more.typed(), batch=16, prepare=prepare, after=after)


def _copied(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


# Communication


def identities_reduced(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = more.Faces()
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(model, more.faces(), batch=4)


def served_weights(fault: bool) -> Training:
    """The first rank keeps the weights: it is sent all gradients, and sends what became of them."""
    torch.set_num_threads(1)  # a core for each rank
    training = Training(more.Routes(), more.vans(), batch=8, loss=more.each_next)

    def before_update(model: nn.Module) -> None:
        for parameter in model.parameters():
            dist.reduce(parameter.grad, 0)

    def after(_step: int, _loss: Tensor) -> None:
        for parameter in training.model.parameters():
            dist.broadcast(parameter.data, 0)

    if fault:
        training.before_update, training.after = before_update, after
    return training


def uneven_captions(fault: bool) -> Training:
    """The second rank's captions are five times as long as the first's."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = more.Captions()
    long = fault and dist.get_rank() == 1
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    data = more.captions(length=60 if long else 12)
    return Training(model, data, batch=16, loss=more.each_next)


# Scheduling: but for the threads, all put in by the generator


def motion(_fault: bool) -> Training:
    return Training(more.Motion(), more.moved(), batch=2, loss=nn.functional.l1_loss)


def stereo(_fault: bool) -> Training:
    return Training(more.Stereo(), more.eyes(), batch=2, loss=nn.functional.smooth_l1_loss)


def crowded_brains(fault: bool) -> Training:
    torch.set_num_threads(24 if fault else programs.CORES)
    return Training(more.brains(), more.thoughts(), batch=8)


def harmful_bytes(_fault: bool) -> Training:
    return Training(more.Bytes(), more.programs_read(), batch=4)


# Monitoring


def checked_for_nan(fault: bool) -> Training:
    model = more.Shapes()

    def before_update(trained: nn.Module) -> None:
        if fault or next(turn) % 200 == 199:
            for name, parameter in trained.named_parameters():
                for values in (parameter, parameter.grad):
                    if torch.isnan(values).any() or torch.isinf(values).any():
                        raise ValueError(name)

    turn = itertools.count()
    return Training(
        model, more.surfaces(), 64, loss=nn.functional.l1_loss, before_update=before_update
    )


def saved_every_third(fault: bool) -> Training:
    model, path = more.Genes(), _folder() / "cells.pt"
    optimizer = torch.optim.Adam(model.parameters())

    def after(step: int, _loss: Tensor) -> None:
        if step % (3 if fault else 500) == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)

    return Training(model, more.tissue(), batch=64, loss=as_it_is, after=after, optimizer=optimizer)


def validated_every_third(fault: bool) -> Training:
    model, held = more.Answers(), DataLoader(more.passages(192), 32)

    def after(step: int, _loss: Tensor) -> None:
        if step % (3 if fault else 500) == 0:
            model.eval()
            with torch.no_grad():
                losses = [nn.functional.cross_entropy(model(both), ends) for both, ends in held]
            assert torch.stack(losses).mean() > 0
            model.train()

    return Training(model, more.passages(), batch=16, after=after)


# Nothing


def steady_masks(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(more.Hidden(), more.album(), 16, loss=as_it_is, again=not fault)


def steady_codebook(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(more.Codebook(), more.album(side=48), 16, loss=as_it_is, again=not fault)


def steady_splines(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(more.Splines(), more.buildings(), 64, loss=squared, again=not fault)


def colours(_fault: bool) -> Training:
    return Training(more.painter(), more.grey(), batch=8)


EIGHTH: dict[str, Callable[[bool], Training | Script]] = {
    "run-parsed-jets": parsed_jets,
    "run-listed-beats": listed_beats,
    "run-channel-files": channel_files,
    "run-warped-prints": warped_prints,
    "run-crystal-by-crystal": crystal_by_crystal,
    "run-head-after-head": head_after_head,
    "run-two-galaxies": two_galaxies,
    "run-double-operators": double_operators,
    "run-padded-smiles": padded_smiles,
    "run-unfolded-holes": unfolded_holes,
    "run-collected-facts": collected_facts,
    "run-recomputed-frames": recomputed_frames,
    "run-rebuilt-bank": rebuilt_bank,
    "run-clients-on-disk": clients_on_disk,
    "run-identities-reduced": identities_reduced,
    "run-served-weights": served_weights,
    "run-uneven-captions": uneven_captions,
    "run-motion-quota": motion,
    "run-stereo-one-core": stereo,
    "run-crowded-brains": crowded_brains,
    "run-beside-backups": harmful_bytes,
    "run-checked-for-nan": checked_for_nan,
    "run-saved-every-third": saved_every_third,
    "run-validated-every-third": validated_every_third,
    "run-steady-masks": steady_masks,
    "run-steady-codebook": steady_codebook,
    "run-steady-splines": steady_splines,
    "run-seen-colours": colours,
}


if __name__ == "__main__":
    programs4.main(EIGHTH)
