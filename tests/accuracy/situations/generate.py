"""Runs the programs of ``programs.py`` with and without their fault, and keeps the records.

    python generate.py --into FOLDER [--rounds N] [--seconds S] [ID...]

Writes ``ID.record.json``, the record of the last run with the fault, and ``proof.json``: how many
times faster each run is without it. Runs that need a limit on cores or drives (``LIMITED``) are
left out: set the limit yourself and start ``programs.py`` in it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from programs import RANKS, SITUATIONS

PROGRAM = Path(__file__).parent / "programs.py"
LIMITED = ("run-throttled-files", "run-cpu-quota")
UNTIMED = "run-unwatched"
OTHERS = 6
"""Endless loops that run next to ``run-foreign-load``."""


def rate(name: str, seconds: float, record: Path | None) -> float:
    """Return the samples a second of one run; with a record, the fault is in."""
    with tempfile.TemporaryDirectory(prefix="situations-") as folder:
        command = [sys.executable, str(PROGRAM), name, "--seconds", str(seconds)]
        command += ["--fault"] if record else []
        kept = ["--record", str(record)] if record else []
        ranks = range(2) if record and name in RANKS else (None,)
        commands = [
            [*command, *([] if rank is None else ["--rank", str(rank)]), *([] if rank else kept)]
            for rank in ranks
        ]
        spinning = OTHERS if record and name == "run-foreign-load" else 0
        others = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(spinning)
        ]
        one_core = record is not None and name == "run-one-core"
        try:
            started = [_started(each, folder, one_core=one_core) for each in commands]
            first, *_ = [_rate(process) for process in started]
            return first
        finally:
            for other in others:
                other.kill()
                other.wait()


def _started(command: list[str], folder: str, *, one_core: bool) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"SITUATIONS_DIR": folder},
    )
    if one_core:
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
    return process


def _rate(process: "subprocess.Popen[str]") -> float:
    out, _ = process.communicate(timeout=180)
    return float(json.loads(out.strip().splitlines()[-1])["samples_a_second"])


def times_faster(name: str, rounds: int, seconds: float, record: Path) -> float:
    """Return how much faster a run is without its fault, by the medians of several rounds."""
    pairs = [(rate(name, seconds, record), rate(name, seconds, None)) for _ in range(rounds)]
    slow, fast = (statistics.median(each) for each in zip(*pairs, strict=True))
    return fast / slow


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--into", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    proofs = {}
    for name in options.names or SITUATIONS:
        if name in LIMITED or name == UNTIMED:
            continue
        record = options.into / f"{name}.record.json"
        proofs[name] = times_faster(name, options.rounds, options.seconds, record)
        print(f"{name} {proofs[name]:.3g}", flush=True)
    (options.into / "proof.json").write_text(json.dumps(proofs), encoding="utf-8")


if __name__ == "__main__":
    main()
