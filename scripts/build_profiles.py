"""Trace every preset and write ``resources/profiles``: the one command that rebuilds them.

``python scripts/build_profiles.py [PRESET ...]`` traces what is missing or made by another
tracer; ``--all`` traces everything again, ``--shipped`` adds no file. Needs the ``vision``
extra. Where the system can fork, the libraries are imported once for all traces.
"""

import argparse
import io
import json
import os
import sys
import time
import zipfile
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import forking
import numpy as np

from trainwright import saving
from trainwright.data import resources
from trainwright.plan.model import USUAL_PROMPT
from trainwright.profile import codec, shipped, store, windows
from trainwright.profile.presets import Preset, presets
from trainwright.profile.profile import Profile, evaluate
from trainwright.profile.spec import OPTIMIZERS, SHORTEST, Kernel, TraceSpec, digest_of

CHECKED = "bf16-mixed"
"""Precision in which repeats are checked, and in which batch 1 ships as well."""
ALONE = frozenset({"gpt2", "resnet18"})
"""Presets whose batch 1 ships in every precision."""
PRECISIONS = ("bf16-mixed", "fp16-mixed", "fp32", "bf16")
KERNELS: tuple[Kernel, ...] = ("flash", "efficient")
TASKS = ("full", "lora", "qlora", "infer")
UPDATES = (*OPTIMIZERS, "adamw-foreach")
"""Updates that ship: the last is ``torch.optim.AdamW`` as scripts call it, without ``fused``."""


def specs(
    preset: Preset,
    precisions: Iterable[str] = PRECISIONS,
    kernels: Iterable[Kernel] = KERNELS,
    only: Container[str] = TASKS,
) -> Iterator[TraceSpec]:
    """Yield the structures that ship: the preset's tasks in each precision."""
    named = ("full" if task == "pretrain" else task for task in preset.tasks)
    tasks = dict.fromkeys(task for task in named if task in only)
    for precision, task, kernel in product(precisions, tasks, kernels):
        # scaled_dot_product_attention picks flash attention for 16 bits from compute capability
        # 8.0 on, and the memory-efficient kernel below.
        if kernel in _picked(precision, task, text=bool(preset.sequence_length)):
            spec = TraceSpec(
                model=(("preset", preset.id),),
                digest=digest_of(preset.definition()),
                task=task,  # type: ignore[arg-type]
                precision=precision,
                kernel=kernel,
                quantization="nf4" if task == "qlora" else "none",
                image_size=preset.image_size,
                frames=preset.frames,
                optimizers=UPDATES,
                sequence=bool(preset.sequence_length),
            )
            yield from (replace(spec, beyond=window) for window in reached(preset, task))


def _picked(precision: str, task: str, *, text: bool) -> tuple[Kernel, ...]:
    """Return the kernels whose profiles ship.

    Volta and Turing, which train in fp16, run the second. Weights in bf16 without an fp32 copy
    ship where they are trained: it halves what they take.
    """
    if precision == "bf16" and not (text and task == "full"):
        return ()
    if precision == "fp32":
        return ("efficient",)
    return KERNELS if precision == "fp16-mixed" else ("flash",)


def reached(preset: Preset, task: str) -> Iterable[int]:
    """Return the sliding windows that the preset's usual sequences reach; 0 for none."""
    config = json.loads(preset.definition()) if preset.hf else {}
    window = windows.first_partial(config)
    if window < SHORTEST or (task != "infer" and windows.always_masked(config)):
        return (0,)
    lengths = [preset.sequence_length, *([USUAL_PROMPT] if task == "infer" else [])]
    return dict.fromkeys(window if window <= length else 0 for length in lengths)


def forked(_program: str, document: dict[str, Any], **_options: Any) -> None:
    """Trace in forks of this process, which has imported everything already."""
    for question in store.questions(document):
        # A second step repeats the first in every precision or in none.
        spec = question | {"check_repeat": question["precision"] == CHECKED}
        if spec["optimizers"]:  # of one point, the one that is asked for; what ships has all
            spec["optimizers"] = UPDATES
        forking.in_fork(partial(traced, spec), spec["result_file"])


def traced(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the tracer's result."""
    import tracing

    result: dict[str, Any] = tracing.trace(spec, lambda _progress, _message: None)
    return result


def prepared_runner() -> Any:
    """Return what starts a trace: a fork where there is one, else a process each."""
    if not hasattr(os, "fork"):
        return None
    forking.prepare()
    return forked


def build(spec: TraceSpec, run: Any) -> int:
    """Trace one structure, and batch 1 where it is another; return the bytes written."""
    many = store.trace(spec, keep=False, run=run)
    if spec.precision != CHECKED and dict(spec.model)["preset"] not in ALONE:
        return written(spec, many)
    single = replace(spec, single=True)
    try:
        alone = store.trace(single, keep=False, run=run, at=None if spec.sequence else (1, 0))
    except forking.Refused:  # a batch norm over one value, say
        return written(spec, many)
    if same_at_one(many, alone):
        return written(spec, replace(many, covers_single=True))
    return written(spec, many) + written(single, alone)


def written(spec: TraceSpec, profile: Profile) -> int:
    """Put the profile among the shipped; return its bytes."""
    place = shipped.place(spec)
    assert place is not None
    kept = {name: shipped.content(place.preset, name) for name in shipped.names(place.preset)}
    kept[place.name] = codec.encode(profile)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:  # what it holds is compressed already
        for name in sorted(kept):  # without a date, the same profiles make the same bytes
            archive.writestr(zipfile.ZipInfo(name), kept[name])
    path = resources("profiles", f"{place.preset}.zip")
    path.parent.mkdir(parents=True, exist_ok=True)
    saving.replace(path, written.getvalue())
    shipped.names.cache_clear()
    return len(kept[place.name])


def same_at_one(many: Profile, alone: Profile) -> bool:
    """Return whether the profile of larger batches also says what batch 1 does."""
    for name, other in alone.segments.items():  # one point has the first optimizer alone
        segment = many.segments[name]
        same = np.array_equal(segment.code, other.code) and np.array_equal(segment.a, other.a)
        if not same:
            return False
        births = segment.code == 0
        for point in alone.points:
            ours = evaluate(many.sizes, *point)[segment.b[births]]
            if not np.array_equal(ours, evaluate(alone.sizes, *point)[other.b[births]]):
                return False
    return True


def main() -> int:
    """Build what is asked for; report each file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "preset", nargs="*", metavar="PRESET", help="ids; all of them if none is given"
    )
    parser.add_argument(
        "--precision", action="append", choices=PRECISIONS, help="only this one; may be repeated"
    )
    parser.add_argument(
        "--kernel", action="append", choices=KERNELS, help="only this one; may be repeated"
    )
    parser.add_argument(
        "--task", action="append", choices=TASKS, help="only this one; may be repeated"
    )
    parser.add_argument("--all", action="store_true", help="trace again what is up to date")
    parser.add_argument("--shipped", action="store_true", help="only what has a file already")
    options = parser.parse_args()
    run = prepared_runner()
    for preset in presets().values():
        if options.preset and preset.id not in options.preset:
            continue
        wanted = (options.precision or PRECISIONS, options.kernel or KERNELS, options.task or TASKS)
        for spec in specs(preset, *wanted):
            place = shipped.place(spec)
            assert place is not None
            there = place.name in shipped.names(preset.id)
            if options.shipped and not there:
                continue
            if not options.all and there and store.load(spec) is not None:
                continue
            start = time.monotonic()
            size = build(spec, run)
            took = time.monotonic() - start
            sys.stdout.write(f"{preset.id}/{place.name}  {size:,} bytes  {took:.1f} s\n")
            sys.stdout.flush()
    count = sum(len(shipped.names(preset)) for preset in presets())
    total = sum(file.stat().st_size for file in resources("profiles").glob("*.zip"))
    sys.stdout.write(f"{count} profiles, {total / 1e6:.1f} MB\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
