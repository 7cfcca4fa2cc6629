"""Measures how many pictures a second this computer's cores decode, by the number of workers.

Started by path. The question: ``seconds`` (of each run), ``workers`` (counts). The
answer: ``picture``: {width, height, bytes}, ``libraries``: {name: {version, rates: {workers:
pictures/s}}}, ``skipped``: {name: reason, empty where it is not installed}.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pictures
from decoder import LIBRARIES
from refusal import Refusal
from saying import Say, answer


class Worker:
    """A decoding process."""

    def __init__(self, library: str, files: list[bytes]) -> None:
        program = str(Path(__file__).with_name("decoder.py"))
        self._process = subprocess.Popen(
            [sys.executable, "-s", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        try:
            sizes = [len(file) for file in files]
            self._input.write(json.dumps({"library": library, "sizes": sizes}).encode() + b"\n")
            self._input.write(b"".join(files))
            self._input.flush()
        except BrokenPipeError:
            pass  # what it says, or that it says nothing, tells

    def said(self) -> list[Any]:
        """Return its next line.

        Raises:
            Refusal: it cannot decode, or ended.
        """
        try:
            said = list(json.loads(self._output.readline()))
        except ValueError as error:
            raise Refusal("bench.library", reason="the process ended") from error
        if said[0] == "absent":
            raise Refusal("bench.library", reason=said[1])
        return said

    def start(self, seconds: float) -> None:
        """Let it decode for so long."""
        self._input.write(f"{seconds}\n".encode())
        self._input.flush()

    def end(self) -> None:
        """End it, and close its pipes."""
        self._process.kill()
        self._process.wait()
        self._input.close()
        self._output.close()


def main(question: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return the rates."""
    say(0.0, "bench.progress.pictures")
    files = pictures.photographs()
    found: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    counts = question["workers"]
    for number, name in enumerate(LIBRARIES):
        # Other libraries scale as the first does; one worker shows how they compare.
        asked = counts if name == "pillow" else [1]
        begin = 0.05 if name == "pillow" else 0.7 + 0.07 * number
        span = 0.65 if name == "pillow" else 0.07
        say(begin, f"bench.progress.{name}")
        try:
            found[name] = _rates(name, files, asked, question["seconds"], say, begin, span)
        except Refusal as refusal:
            skipped[name] = refusal.values["reason"]
    mean = statistics.fmean(len(file) for file in files)
    return {
        "picture": {"width": pictures.WIDTH, "height": pictures.HEIGHT, "bytes": mean},
        "libraries": found,
        "skipped": skipped,
    }


def _rates(
    name: str, files: list[bytes], counts: list[int], seconds: float,
    say: Say, begin: float, span: float,
) -> dict[str, Any]:  # fmt: skip
    workers: list[Worker] = []
    try:
        workers = [Worker(name, files)]
        version = workers[0].said()[1]
        rates = {}
        for number, count in enumerate(counts):
            say(begin + span * number / len(counts), f"bench.progress.{name}")
            more = [Worker(name, files) for _ in range(count - len(workers))]
            workers += more
            for worker in more:
                worker.said()
            for worker in workers[:count]:
                worker.start(seconds)
            told = [worker.said() for worker in workers[:count]]
            rates[str(count)] = sum(made / taken for made, taken in told)
        return {"version": version, "rates": rates}
    finally:
        for worker in workers:
            worker.end()


if __name__ == "__main__":
    status = answer(main, "bench.failed")
    sys.stdout.flush()
    os._exit(status)
