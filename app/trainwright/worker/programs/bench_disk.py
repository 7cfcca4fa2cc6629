"""Measures a drive on a nameless file of its own; nothing is left, however it ends.

Started by path. The question: ``folder``, ``size`` (bytes), ``seconds`` (of each test),
``nvme``, ``method`` (``auto``, ``own``, ``fio`` or ``both``), ``rounds``, ``writes``,
``readers`` (counts). The answer: ``filesystem``, ``device``, ``options``, ``direct``, ``size``,
``engine``, ``fio`` (its version), ``tests``: {name: [{``method``, rates}]}, ``skipped``:
{name: reason}.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

import drivefile
import drivetests
from drivequeue import _Ring
from refusal import Refusal
from saying import Say, answer

FILLING = 0.25
"""Share of the time that filling the file takes; for the progress alone."""


def main(question: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return what the drive reaches."""
    size = question["size"]
    folder = drivefile.checked(question["folder"], size)
    say(0.0, "bench.progress.filling")
    nameless = drivefile.nameless(folder)
    drivefile.fill(nameless, size, lambda share: say(FILLING * share, "bench.progress.filling"))
    file = drivetests.File.of(nameless, size)
    installed = (
        drivetests.fio() if question["method"] != "own" and sys.platform == "linux" else None
    )
    if installed is None and question["method"] in ("fio", "both"):
        raise Refusal("bench.no-fio")
    device, options = drivefile.mounted(folder)
    tests: dict[str, list[dict[str, Any]]] = {}
    skipped: dict[str, str] = {}
    steps = list(_steps(question, folder, nameless, file, installed))
    for number, (name, step) in enumerate(steps):
        say(FILLING + (1 - FILLING) * number / len(steps), f"bench.progress.{_shown(name)}")
        try:
            tests.setdefault(name, []).append(step())
        except Refusal as refusal:
            skipped[name] = str(refusal.values.get("reason", refusal.id))
        except OSError as error:
            skipped[name] = error.strerror or str(error)
    return {
        "filesystem": drivefile.filesystem(nameless),
        "device": device,
        "options": options,
        "direct": file.direct,
        "size": size,
        "engine": "aio" if _has_ring() else "threads",
        "fio": installed[1] if installed else None,
        "tests": {name: found for name, found in tests.items() if found},
        "skipped": {name: reason for name, reason in skipped.items() if not tests.get(name)},
    }


def _steps(
    question: dict[str, Any],
    folder: str,
    nameless: int,
    file: drivetests.File,
    installed: tuple[str, str] | None,
) -> Iterator[tuple[str, Any]]:
    """Yield (name of a test, what runs it once)."""
    seconds, method = question["seconds"], question["method"]
    ways = {"auto": ["fio" if installed else "own"], "both": ["fio", "own"]}.get(method, [method])
    kinds = [False, True] if question["writes"] else [False]
    for test in drivetests.named(question["nvme"]).values():
        for writes in kinds:
            name = f"{'write' if writes else 'read'}.{test.name}"
            for _ in range(question["rounds"]):
                for way in ways:
                    yield name, _run(way, installed, test, file, seconds, writes)
    if sys.platform != "linux" or not question["readers"]:
        return
    yield "read.files", lambda: drivetests.small_files(folder, lambda _share: None, seconds)
    for readers in question["readers"]:
        yield f"read.streams-{readers}", _streams(nameless, file.size, readers, seconds)


def _run(
    way: str,
    installed: tuple[str, str] | None,
    test: drivetests.Test,
    file: drivetests.File,
    seconds: float,
    writes: bool,
) -> Any:
    def run() -> dict[str, Any]:
        if way == "fio" and installed is not None:
            found = drivetests.by_fio(installed[0], test, file, seconds, writes=writes)
        else:
            found = drivetests.by_ourselves(test, file, seconds, writes=writes)
        return found | {"method": way}

    return run


def _streams(nameless: int, size: int, readers: int, seconds: float) -> Any:
    return lambda: drivetests.side_by_side(nameless, size, readers, seconds)


def _shown(name: str) -> str:
    """Return the part of a test's name that its progress is told by."""
    return "streams" if name.startswith("read.streams") else name.rpartition(".")[2]


def _has_ring() -> bool:
    ring = _Ring.open(1)
    if ring is not None:
        ring.close()
    return ring is not None


if __name__ == "__main__":
    status = answer(main, "bench.failed")
    sys.stdout.flush()
    os._exit(status)
