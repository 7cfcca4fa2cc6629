"""Trace the models of the measured rows beside timm's into ``tests/accuracy/rows``.

Rows of ``llm.csv`` into ``ops-llm.npz``, rows of ``workloads.csv`` into ``ops-workloads.npz``. Run
by hand when rows are added; needs torch, transformers and torchvision. CI reads what it wrote.
Only missing tables are traced; ``--again`` traces all.
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [
    str(ROOT / "app/trainwright/worker/programs"),  # first: tests have modules of like names
    str(ROOT / "app"),
    str(ROOT / "tests/accuracy"),
]

import optables  # noqa: E402
import textrows  # noqa: E402

SAVED = 20
"""Tables after which the file is written: a run that is cut off goes on from there."""


def main() -> None:
    """Trace what the rows need and the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="trace what the file has, too")
    options = parser.parse_args()
    import text_models

    for file, tables in textrows.FILES.items():
        target = optables.ROWS / tables
        found = dict(optables.read(target)) if target.is_file() and not options.again else {}
        wanted = {row.key for row in textrows.rows(file)}
        for number, key in enumerate(sorted(wanted - set(found)), 1):
            started = time.monotonic()
            found[key] = text_models.table(key)
            seconds = time.monotonic() - started
            print(f"{key}: {len(found[key].name)} rows, {seconds:.1f} s", flush=True)
            if number % SAVED == 0:
                optables.write(target, found)
        optables.write(target, {key: found[key] for key in found if key in wanted})


if __name__ == "__main__":
    main()
