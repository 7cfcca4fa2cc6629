"""The development runs after the seventh round: one fault each, some of them easily confused.

    python programs8dev.py run-bag-by-bag --fault --seconds 2 --record run.record.json

The loop, its clock and the recorder are those of ``programs.py``; models are in
``programs8devb.py``, data in ``programs8devc.py``.
"""

import gc
import random
from collections.abc import Callable
from contextlib import nullcontext

import programs
import programs8devb as made
import programs8devc as given
import torch
import torch.distributed as dist
from programs import Training, _folder
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

squared = nn.functional.mse_loss


# Input


def collated_lists(fault: bool) -> Training:
    collate = given.by_hand if fault else given.at_once
    loader = DataLoader(given.Listed(), 32, shuffle=True, collate_fn=collate)
    return Training(made.Jets(), loader=loader)


def listed_folder(fault: bool) -> Training:
    data = given.Scanned(_folder(), 400, each_time=fault)
    return Training(made.Hearts(), data, batch=16, workers=1)


def filtered_beats(fault: bool) -> Training:
    return Training(made.Hearts(), given.Filtered(times=40 if fault else 0), batch=16)


# Too little at once


def bag_by_bag(fault: bool) -> Training:
    data = TensorDataset(torch.randn(512, 60, 128), torch.randint(2, (512,)))
    return Training(made.Slides(in_turn=fault), data, batch=32)


def update_in_python(fault: bool) -> Training:
    model = made.Additive()
    own = made.Own(model.parameters())
    optimizer = own if fault else torch.optim.AdamW(model.parameters(), fused=True)
    rows = TensorDataset(torch.randn(8192, 48), torch.randint(2, (8192,)))
    return Training(model, rows, batch=512, optimizer=optimizer)


def two_colours(fault: bool) -> Training:
    data = TensorDataset(torch.randn(1024, 1, 16, 16), torch.randn(1024, 2, 16, 16))
    return Training(made.Colours(), data, batch=2 if fault else 64, loss=squared)


# Untuned


def double_minerals(fault: bool) -> Training:
    dtype = torch.float64 if fault else torch.float32  # numpy's, which nobody has converted
    light = torch.randn(2048, 1, 256, dtype=dtype)
    data = TensorDataset(light, torch.randint(12, (2048,)))
    return Training(made.Minerals().to(dtype), data, batch=32)


def written_stays(fault: bool) -> Training:
    stays = torch.randint(500, (512, 192))
    return Training(made.Stays(written=fault), TensorDataset(stays, stays.roll(-1, 1)), batch=4)


def unsorted_queries(fault: bool) -> Training:
    return Training(made.Queries(), loader=given.queries(sorted_by_length=not fault))


def direct_echoes(fault: bool) -> Training:
    sound = torch.randn(256, 1, 8000)
    return Training(made.Rooms(direct=fault), TensorDataset(sound, sound), 4, loss=squared)


# Memory


def recomputed_colours(fault: bool) -> Training:
    data = TensorDataset(torch.randn(1024, 1, 16, 16), torch.randn(1024, 2, 16, 16))
    return Training(made.Colours(24, again=fault), data, batch=4, loss=squared)


def recomputed_bytes(fault: bool) -> Training:
    data = TensorDataset(torch.randint(256, (512, 512)), torch.randint(9, (512,)))
    return Training(made.Bytes(again=fault), data, batch=4)


def collected_machines(fault: bool) -> Training:
    kept = [{"at": number, "said": [number % 7]} for number in range(5_000)]

    def after(step: int, loss: Tensor) -> None:
        kept[step % len(kept)] = {"at": step, "said": [float(loss.detach())]}
        if fault:
            gc.collect()

    rows = torch.randn(4096, 64)
    model = programs.layers(1024, inputs=64, classes=64)
    return Training(model, TensorDataset(rows, rows), batch=256, loss=squared, after=after)


def bank_anew(fault: bool) -> Training:
    model = made.Signatures(65536)

    def after(_step: int, _loss: Tensor) -> None:
        model.keep(anew=fault)

    return Training(model, given.signatures(), batch=8, after=after)


# Communication


def broadcast_bank(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model = made.Signatures(16384)

    def after(_step: int, _loss: Tensor) -> None:
        model.keep(anew=False)

    whole = nn.parallel.DistributedDataParallel(model) if fault else model
    return Training(whole, given.signatures(), batch=16, after=after)


def waiting_rank(fault: bool) -> Training:
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = made.Hearts(32)
    if fault:
        model = nn.parallel.DistributedDataParallel(model)
    return Training(model, given.Faraway(0.005), batch=8)


def norms_in_turn(fault: bool) -> Training:
    """The length of all gradients, as the sum of what each tensor's is on each rank."""
    torch.set_num_threads(1)  # a core for each rank
    model: nn.Module = made.Paths(64, 4)
    if fault:
        model = nn.parallel.DistributedDataParallel(model)

    def before(model: nn.Module) -> None:
        squares = [each.grad.square().sum() for each in model.parameters()]
        for each in squares if fault else ():
            dist.all_reduce(each)
        length = torch.stack(squares).sum().sqrt()
        for each in model.parameters():
            each.grad.mul_((1 / length).clamp(max=1))

    return Training(model, given.paths(), 4, loss=squared, before_update=before)


# Scheduling: quota, other programs and the core are put in by the generator


def crowded_jets(fault: bool) -> Training:
    if fault:
        torch.set_num_threads(8)  # of another computer's cores
    return Training(made.Jets(64), given.jets(), batch=32)


def filtered_quota(_fault: bool) -> Training:
    return Training(made.Hearts(), given.Filtered(times=2), batch=16, workers=1)


def plates_beside(_fault: bool) -> Training:
    return Training(made.Plates(), given.plates(), batch=8, loss=squared)


def paths_one_core(_fault: bool) -> Training:
    return Training(made.Paths(), given.paths(), batch=16, loss=squared)


def spinning_thread(fault: bool) -> Training:
    if fault:
        given.spinning([])
    return Training(made.Paths(64), given.paths(), batch=8, loss=squared)


# Monitoring


def units_clipped(fault: bool) -> Training:
    def before(model: nn.Module) -> None:
        given.clipped_by_unit(model, in_turn=fault)

    return Training(made.Paths(96, 2), given.paths(), 16, loss=squared, before_update=before)


def beats_each_third(fault: bool) -> Training:
    model, held = made.Hearts(32), DataLoader(given.beats(128), batch_size=32)

    def after(step: int, _loss: Tensor) -> None:
        if step % (3 if fault else 600) == 2:
            model.eval()
            with torch.no_grad():
                torch.cat([model(x).argmax(1) == y for x, y in held]).float().mean()
            model.train()

    return Training(model, given.beats(), batch=16, after=after)


def synced_log(fault: bool) -> Training:
    log = _folder() / "log.jsonl"

    def after(step: int, loss: Tensor) -> None:
        if fault or step % 100 == 99:
            for name in ("loss", "book", "rate"):
                given.synced(log, f'{{"step": {step}, "{name}": {float(loss.detach()):.5f}}}')

    pictures = torch.randn(512, 3, 32, 32)
    data = TensorDataset(pictures, pictures)
    return Training(made.Codes(32), data, batch=8, loss=squared, after=after)


def features_saved(fault: bool) -> Training:
    model = made.Features()
    optimizer, path = torch.optim.Adam(model.parameters()), _folder() / "last.pt"

    def after(step: int, _loss: Tensor) -> None:
        if step % (4 if fault else 500) == 3:
            torch.save({"model": model.state_dict(), "moments": optimizer.state_dict()}, path)

    said = torch.randn(4096, 256)
    data = TensorDataset(said, said)
    return Training(model, data, 64, loss=squared, after=after, optimizer=optimizer)


def counted_flops(fault: bool) -> Training:
    around = FlopCounterMode(display=False) if fault else nullcontext()
    return Training(made.Plates(16), given.plates(), 2, loss=squared, around=around)


def posted_metrics(fault: bool) -> Training:
    server, draw = given.Server(0.02), random.Random(0)

    def after(step: int, loss: Tensor) -> None:
        if fault or step % 100 == 99:
            server.told(step=step, loss=float(loss.detach()), beside=draw.random())

    return Training(made.Jets(256), given.jets(), batch=64, after=after)


# Nothing


def steady_plates(fault: bool) -> Training:
    """Nothing is wrong: without the loader it is no faster."""
    return Training(made.Plates(32), given.plates(), 8, loss=squared, again=not fault)


def steady_paths(fault: bool) -> Training:
    """Nothing is wrong: neither the loader nor a look at how it goes now and then costs much."""
    model, held = made.Paths(), given.paths(16).tensors

    def after(step: int, _loss: Tensor) -> None:
        if fault and step % 50 == 49:
            with torch.no_grad():
                squared(model(held[0]), held[1])

    optimizer = torch.optim.AdamW(model.parameters())
    again = not fault
    return Training(
        model, given.paths(), 16, loss=squared, after=after, optimizer=optimizer, again=again
    )


ALIKE: dict[str, Callable[[bool], Training]] = {
    "run-collated-lists": collated_lists,
    "run-listed-folder": listed_folder,
    "run-filtered-beats": filtered_beats,
    "run-bag-by-bag": bag_by_bag,
    "run-update-in-python": update_in_python,
    "run-two-colours": two_colours,
    "run-double-minerals": double_minerals,
    "run-written-stays": written_stays,
    "run-unsorted-queries": unsorted_queries,
    "run-direct-echoes": direct_echoes,
    "run-recomputed-colours": recomputed_colours,
    "run-recomputed-bytes": recomputed_bytes,
    "run-collected-machines": collected_machines,
    "run-bank-anew": bank_anew,
    "run-broadcast-bank": broadcast_bank,
    "run-waiting-rank": waiting_rank,
    "run-norms-in-turn": norms_in_turn,
    "run-crowded-jets": crowded_jets,
    "run-filtered-quota": filtered_quota,
    "run-plates-beside": plates_beside,
    "run-paths-one-core": paths_one_core,
    "run-spinning-thread": spinning_thread,
    "run-units-clipped": units_clipped,
    "run-beats-each-third": beats_each_third,
    "run-synced-log": synced_log,
    "run-features-saved": features_saved,
    "run-counted-flops": counted_flops,
    "run-posted-metrics": posted_metrics,
    "run-steady-plates": steady_plates,
    "run-steady-paths": steady_paths,
}


if __name__ == "__main__":
    programs.SITUATIONS.update(ALIKE)
    programs.main()
