"""Trace the image models of the measured rows into ``tests/accuracy/rows/ops-vision-*.npz``.

Run by hand when rows are added (a step of a model takes seconds, the zoo most of an hour); needs
torch and timm. CI reads what it wrote. A model runs twice, with batches of 2 and 3, on the
tracer's simulated accelerator, through the tracer's own cost functions: so the fit sees the
operators that a profile of the product has.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [
    str(ROOT / "app"),
    str(ROOT / "tests/accuracy"),
    str(ROOT / "app/trainwright/worker/programs"),
]

import optables  # noqa: E402
import visionrows as measured  # noqa: E402

BATCHES = (2, 3)
CLASSES = 1000
SAVED = 40
"""Tables after which the file is written: a run that is cut off goes on from there."""


def main() -> None:
    """Trace what the rows of a task need and the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("train", "infer"))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--file", type=Path, help="another file to write")
    parser.add_argument("--keys", nargs="+", help="these tables alone")
    options = parser.parse_args()
    file = options.file or optables.ROWS / f"ops-vision-{options.task}.npz"
    keys = set(options.keys or (row.key for row in measured.rows() if row.task == options.task))
    known = optables.read(file) if file.is_file() else {}
    found = {key: known[key] for key in keys & set(known)}
    wanted = sorted(keys - set(found))
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.processes, maxtasksperchild=25) as pool:
        for number, (key, table, seconds) in enumerate(pool.imap_unordered(_timed, wanted), 1):
            if isinstance(table, str):
                print(f"{key}: {table}", flush=True)
                continue
            found[key] = table
            print(
                f"{number}/{len(wanted)} {key}: {len(table.name)} rows, {seconds:.1f} s", flush=True
            )
            if number % SAVED == 0:
                optables.write(file, found)
    optables.write(file, found)


def _timed(key: str) -> tuple[str, Any, float]:
    started = time.monotonic()
    try:
        return key, trace(key), time.monotonic() - started
    except Exception as error:
        return key, f"{type(error).__name__}: {error}"[:300], 0.0


def trace(key: str) -> optables.OpRows:
    """Return the table of a key: of one forward pass, or one with loss and backward."""
    import simdevice
    import torch

    torch.set_num_threads(1)
    simdevice.install()
    task, precision, kernel = key.split("/")[1:]
    subject = _built(key)
    model = subject.model
    if task == "infer" and precision == "bf16":
        model.to(torch.bfloat16)
    model.train(task == "train")
    parameters = list(model.parameters())
    facts = (sum(one.numel() for one in parameters), len(parameters), len(list(model.buffers())))
    tally = _tally()
    with simdevice.simulate(kernel), tally:
        model.to_empty(device=simdevice.DEVICE)
        tally.name("parameter", model.parameters())
        tally.name("buffer", model.buffers())
        two, three = (_calls(tally, subject, task, precision, batch) for batch in BATCHES)
        if len(two) != len(three):  # the first forward pass filled what the model keeps
            two = _calls(tally, subject, task, precision, BATCHES[0])
    return _reduced(key, two, three, facts)


def _tally() -> Any:
    """Return a recorder that keeps operators alone."""
    from questions import Answers
    from recorder import Recorder
    from simdevice import DEVICE

    class Tally(Recorder):
        """A recorder of operators alone."""

        def log(self, code: int, a: int, b: int = 0, c: int = 0) -> None:
            """Leave events out."""

    return Tally(DEVICE, Answers())


def _built(key: str) -> Any:
    """Return the model that a key names, as the tracer builds it, with the head it was run with.

    Names meant weights for ImageNet's 1000 classes when training was measured; inference was
    measured later, with the head of timm's default weights: of other classes, or none.
    """
    import models
    import timm
    import torch

    name, _, rest = key.partition("@")
    kernel = key.rpartition("/")[2]
    pixels = int(rest.split("/")[0])
    subject = models.build({"model": {"timm": name}, "image_size": pixels, "kernel": kernel})
    usual = timm.get_pretrained_cfg(name)
    classes = CLASSES if "/train/" in key or usual is None else usual.num_classes
    if subject.model.num_classes != classes:
        with torch.device("meta"):
            subject.model.reset_classifier(classes)
    return subject


def _calls(
    tally: Any, subject: Any, task: str, precision: str, batch: int
) -> list[tuple[Any, ...]]:
    """Return the rows of all operator calls, in order; the input is on the device before."""
    import step
    import torch
    from recorder import Segment
    from simdevice import DEVICE

    model, settings = subject.model, step.StepSettings(precision)
    with tally.quiet():
        given = step.to_device(subject.batch(batch, 0), DEVICE, settings)
    tally.rows.clear()
    tally.stage, tally.segment = "forward", Segment()

    def enter_loss(*unused: Any) -> None:
        tally.stage = "loss"

    if task == "train":
        hook = model.register_forward_hook(enter_loss)
        step.micro_step(model, given, 1.0, subject.loss, settings)
        hook.remove()
    else:
        with torch.no_grad(), step.autocast(settings, DEVICE):
            model(**given.inputs)
    calls, rows = tally.segment.ops, list(tally.rows)
    with tally.quiet():
        model.zero_grad(set_to_none=True)
    return [rows[number] for number in calls]


def _reduced(
    key: str, two: list[Any], three: list[Any], facts: tuple[int, int, int]
) -> optables.OpRows:
    """Return the distinct calls with their counts, from those of the two batches.

    Raises:
        ValueError: the batches do not run the same operators.
    """
    if [call[:4] for call in two] != [call[:4] for call in three]:
        raise ValueError("another batch runs other operators")
    counted = Counter(zip(two, three, strict=True))
    names, phases, dtypes = (tuple(low[place] for low, _ in counted) for place in (0, 1, 3))
    low = np.array([_numbers(call) for call, _ in counted], dtype=np.int64)
    high = np.array([_numbers(call) for _, call in counted], dtype=np.int64)
    slope = (high - low) // (BATCHES[1] - BATCHES[0])
    pairs = np.stack([low - BATCHES[0] * slope, slope], axis=-1)
    count = np.array(list(counted.values()), dtype=np.int64)
    quantities = (pairs[:, 0], pairs[:, 1], pairs[:, 2], pairs[:, 3:])
    return optables.OpRows(key, names, phases, dtypes, *quantities, count, *facts)


def _numbers(call: tuple[Any, ...]) -> list[int]:
    flops, read, written, dims = call[4:]
    return [flops, read, written, *dims, *[0] * (optables.DIMS - len(dims))]


if __name__ == "__main__":
    main()
