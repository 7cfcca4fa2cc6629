"""Our own requests beside fio's: several runs each, in turns, on the same file."""

import os
import shutil
import statistics
from pathlib import Path

import pytest

from trainwright.probe import benchmark_disk
from trainwright.worker import client

ROUNDS = 1 if os.environ.get("CI") else 5
"""Of which the medians are printed; CI has no minutes for five, and sees that both run."""
SECONDS = 5.0
"""Of each run, as the program offers; in 2 s the first test of a shared drive swings by a half."""
SIZE = 1 << 30


def print_row(*cells: object) -> None:
    print("  ".join(f"{cell!s:>14}" for cell in cells))


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
def test_our_own_requests_and_fios(tmp_path: Path, capsys) -> None:
    answer = client.run(
        "bench_disk",
        {
            "folder": str(tmp_path),
            "size": SIZE,
            "seconds": SECONDS,
            "nvme": False,
            "method": "both",
            "rounds": ROUNDS,
            "writes": False,
            "readers": [],
        },
        file_bytes=benchmark_disk.CHOSEN_MOST,
    )
    with capsys.disabled():
        print(f"\n{answer['filesystem']}, direct {answer['direct']}, {answer['engine']}")
        print_row("requests/s", "own", "fio", "own / fio", "own spread", "fio spread")
        for name, found in answer["tests"].items():
            own, fio = (
                sorted(one["requests_per_s"] for one in found if one["method"] == method)
                for method in ("own", "fio")
            )
            assert len(own) == len(fio) == ROUNDS
            medians = statistics.median(own), statistics.median(fio)
            print_row(
                name.removeprefix("read."),
                *(f"{median:,.0f}" for median in medians),
                f"{medians[0] / medians[1]:.2f}",
                *(
                    f"{one[0] / middle:.2f}-{one[-1] / middle:.2f}"
                    for one, middle in zip((own, fio), medians, strict=True)
                ),
            )
