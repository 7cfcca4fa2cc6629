"""Trace the language models of the measured rows into ``tests/accuracy/rows/ops-llm.npz``.

Run by hand when rows are added; needs torch. CI reads what it wrote. Only missing tables are
traced; ``--again`` traces all.
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


def main() -> None:
    """Trace what the rows need and the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--again", action="store_true", help="trace what the file has, too")
    options = parser.parse_args()
    import text_models

    file = optables.ROWS / textrows.TABLES
    found = dict(optables.tables(file.name)) if file.is_file() and not options.again else {}
    for key in sorted({row.key for row in textrows.rows()} - set(found)):
        started = time.monotonic()
        found[key] = text_models.table(key)
        print(f"{key}: {len(found[key].name)} rows, {time.monotonic() - started:.1f} s", flush=True)
    optables.write(file, found)


if __name__ == "__main__":
    main()
