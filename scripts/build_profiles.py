"""Trace every preset and write ``resources/profiles``: the one command that rebuilds them.

``python scripts/build_profiles.py [PRESET ...]`` traces what is missing or made by another
tracer; ``--all`` traces everything anew. Needs the ``vision`` extra.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from trainwright.profile import codec, store
from trainwright.profile.presets import Preset, presets
from trainwright.profile.profile import Profile, evaluate
from trainwright.profile.spec import Kernel, TraceSpec

PRECISIONS = ("bf16-mixed", "fp16-mixed", "fp32")


def specs(preset: Preset) -> Iterator[TraceSpec]:
    """Yield the structures that ship: the preset's tasks in three precisions."""
    tasks = dict.fromkeys("full" if task == "pretrain" else task for task in preset.tasks)
    for task in tasks:
        for precision in PRECISIONS:
            # What scaled_dot_product_attention picks from compute capability 8.0 on.
            kernel: Kernel = "efficient" if precision == "fp32" else "flash"
            yield TraceSpec(
                model=(("preset", preset.id),),
                digest=store.digest(preset.definition()),
                task=task,  # type: ignore[arg-type]
                precision=precision,
                kernel=kernel,
                quantization="nf4" if task == "qlora" else "none",
                image_size=preset.image_size,
                sequence=bool(preset.sequence_length),
            )


def build(spec: TraceSpec) -> int:
    """Trace one structure, and batch 1 where it is another; return the bytes written."""
    path = store.shipped_path(spec)
    single = store.shipped_path(replace(spec, single=True))
    assert path is not None and single is not None
    many = store.trace(spec, keep=False)
    if not spec.sequence:
        alone = store.trace(replace(spec, single=True), at=(1, 0), keep=False)
    else:
        alone = store.trace(replace(spec, single=True), keep=False)
    covered = same_at_one(many, alone)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(codec.encode(replace(many, covers_single=covered)))
    if covered:
        single.unlink(missing_ok=True)
        return path.stat().st_size
    single.write_bytes(codec.encode(alone))
    return path.stat().st_size + single.stat().st_size


def same_at_one(many: Profile, alone: Profile) -> bool:
    """Return whether the profile of larger batches also says what batch 1 does."""
    for name, segment in many.segments.items():
        other = alone.segments[name]
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
    parser.add_argument("preset", nargs="*", choices=[*presets(), []])
    parser.add_argument("--all", action="store_true", help="trace again what is up to date")
    options = parser.parse_args()
    for preset in presets().values():
        if options.preset and preset.id not in options.preset:
            continue
        for spec in specs(preset):
            path = store.shipped_path(spec)
            assert path is not None
            if not options.all and store.load(spec) is not None and _ships(path):
                continue
            start = time.monotonic()
            size = build(spec)
            took = time.monotonic() - start
            sys.stdout.write(f"{preset.id}/{path.name}  {size:,} bytes  {took:.1f} s\n")
            sys.stdout.flush()
    total = sum(p.stat().st_size for p in Path(path).parents[1].rglob("*.profile"))
    sys.stdout.write(f"in all {total / 1e6:.1f} MB\n")
    return 0


def _ships(path: Path) -> bool:
    return path.is_file()


if __name__ == "__main__":
    raise SystemExit(main())
