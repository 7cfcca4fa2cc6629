"""The tests of a drive: KDiskMark's four, small files, and readers side by side."""

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import drivefile
from drivequeue import HUGE_PAGE, Clock, Count, Pattern, buffer, measure
from refusal import Refusal

KIB, MIB = 1 << 10, 1 << 20
RAMP_S = 0.5
"""Before counting starts; assumed."""
SMALL_FILE = 112 * KIB
"""Whole pages; a mean file of ImageNet has 110 KB, as most sets of photographs made small."""
SMALL_FILES = 512
"""Assumed: 55 MiB, and less than the 1024 files that a program may have open."""
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Has fio's memory ask for huge pages, as ours does (glibc 2.35 and later)."""
WRITES_OF_SIZE = 2
"""How many times the file's size a test may write at most; assumed, to spare the drive."""


@dataclass(frozen=True)
class Test:
    """One of the benchmark's patterns."""

    name: str
    block: int
    depth: int
    random: bool
    jobs: int = 1
    """Processes that each keep a queue of this depth."""

    def pattern(self, size: int, writes: bool) -> Pattern:
        """Return what each of its processes asks of a file of ``size`` bytes."""
        return Pattern(self.block, self.depth, self.random, size, writes=writes)


def named(nvme: bool) -> dict[str, Test]:
    """Return the four tests of KDiskMark (and CrystalDiskMark) by name, for a kind of drive."""
    deep = Test("rnd4k-q32t16", 4 * KIB, 32, True, 16)
    if not nvme:
        deep = Test("rnd4k-q32t1", 4 * KIB, 32, True)
    tests = (
        Test("seq1m-q8t1", MIB, 8, False),
        Test("seq1m-q1t1", MIB, 1, False),
        deep,
        Test("rnd4k-q1t1", 4 * KIB, 1, True),
    )
    return {test.name: test for test in tests}


@dataclass(frozen=True)
class File:
    """The file that is measured on."""

    descriptor: int
    size: int
    direct: bool
    """Whether its requests pass by the page cache, as far as the system says."""

    @classmethod
    def of(cls, nameless: int, size: int) -> "File":
        """Return the file for direct requests where its filesystem has them."""
        direct = getattr(os, "O_DIRECT", 0)
        if direct:
            try:
                return cls(drivefile.again(nameless, os.O_RDWR | direct), size, True)
            except OSError:
                pass
        return cls(nameless, size, False)


def by_ourselves(test: Test, file: File, seconds: float, *, writes: bool = False) -> dict[str, Any]:
    """Return what our own requests reach."""
    drivefile.forget(file.descriptor)
    budget = WRITES_OF_SIZE * file.size // test.block // test.jobs if writes else None
    pattern = test.pattern(file.size, writes)
    counts = together(
        [lambda clock: measure(file.descriptor, pattern, clock)] * test.jobs,
        lambda: Clock(_ramp(writes), seconds, budget),
    )
    return _told(test.block, counts)


def _ramp(writes: bool) -> float:
    """Return the seconds before counting starts: what is written is too little to wait for."""
    return 0.0 if writes else RAMP_S


def together(works: Sequence[Callable[[Clock], Count]], clock: Callable[[], Clock]) -> list[Count]:
    """Return what each work counted, done at once.

    Raises:
        Refusal: one of them failed.
    """
    if len(works) == 1:
        return [works[0](clock())]
    return _at_once(works, clock())


if sys.platform == "win32":

    def _at_once(works: Sequence[Callable[[Clock], Count]], clock: Clock) -> list[Count]:
        with ThreadPoolExecutor(len(works)) as threads:
            return list(threads.map(lambda work: work(clock), works))

else:

    def _at_once(works: Sequence[Callable[[Clock], Count]], clock: Clock) -> list[Count]:
        """Let each work have a process: Python's threads would wait for each other."""
        answers = []
        for pipe, pid in [_forked(work, clock) for work in works]:
            with os.fdopen(pipe, "rb") as stream:
                text = stream.read()
            os.waitpid(pid, 0)
            answers.append(json.loads(text) if text else {"error": "killed"})
        for answer in answers:
            if "error" in answer:
                raise Refusal("bench.drive-error", reason=answer["error"])
        return [Count(**answer) for answer in answers]

    def _forked(work: Callable[[Clock], Count], clock: Clock) -> tuple[int, int]:
        """Start the work in a process; return the pipe that it answers by, and its id."""
        source, goal = os.pipe()
        pid = os.fork()
        if pid:
            os.close(goal)
            return source, pid
        try:
            count = work(clock)
            text = json.dumps({"requests": count.requests, "seconds": count.seconds})
        except Exception as error:
            text = json.dumps({"error": str(error)[:200]})
        os.write(goal, text.encode())
        os._exit(0)


def _told(block: int, counts: Sequence[Count]) -> dict[str, Any]:
    rate = sum(count.requests / count.seconds for count in counts if count.seconds > 0)
    if rate <= 0:
        raise Refusal("bench.too-slow")
    waits = sorted(wait for count in counts for wait in count.waits)
    found: dict[str, Any] = {"requests_per_s": rate, "bytes_per_s": rate * block}
    if waits:
        found["p50_s"] = statistics.median(waits)
        found["p99_s"] = waits[int(0.99 * (len(waits) - 1))]
    return found


def fio() -> tuple[str, str] | None:
    """Return (path, version) of fio; None where it is not installed."""
    path = shutil.which("fio")
    if path is None:
        return None
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    version = told.stdout.strip()
    return (path, version.removeprefix("fio-")) if version.startswith("fio-") else None


def by_fio(
    path: str, test: Test, file: File, seconds: float, *, writes: bool = False
) -> dict[str, Any]:
    """Return what fio reaches with the same requests on the same file.

    Raises:
        Refusal: it failed, or wrote something else than an answer.
    """
    drivefile.forget(file.descriptor)
    kind = ("rand" if test.random else "") + ("write" if writes else "read")
    command = [
        path, "--name=trainwright", f"--filename=/proc/self/fd/{file.descriptor}",
        "--allow_file_create=0", f"--rw={kind}", f"--bs={test.block}", f"--size={file.size}",
        f"--direct={int(file.direct)}", "--ioengine=libaio", f"--iodepth={test.depth}",
        f"--numjobs={test.jobs}", "--thread", "--norandommap", "--randrepeat=0",
        "--refill_buffers", "--time_based", f"--runtime={seconds}s",
        f"--ramp_time={_ramp(writes)}s",
        # What was answered is asked again in one call, as ours is: the drive is measured, and not
        # how many calls a second the processor makes.
        f"--iodepth_batch={test.depth}", "--iodepth_batch_complete_min=1",
        f"--iodepth_batch_complete_max={test.depth}",
        # Room for a huge page to begin: see HUGE_PAGES.
        f"--mem_align={2 * HUGE_PAGE}",
        "--group_reporting", "--output-format=json",
    ]  # fmt: skip
    if writes:
        command.append(f"--io_size={WRITES_OF_SIZE * file.size // test.jobs}")
    else:
        command.append("--readonly")
    try:
        told = subprocess.run(
            command, pass_fds=[file.descriptor], capture_output=True, text=True,
            timeout=10 * seconds + 30, env=os.environ | HUGE_PAGES,
        )  # fmt: skip
        found = json.loads(told.stdout[told.stdout.index("{") :])["jobs"][0]
        side = found["write" if writes else "read"]
        rate = float(side["iops"])
        middle = float(side["clat_ns"].get("percentile", {}).get("50.000000", 0)) / 1e9
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        raise Refusal("bench.fio", reason=f"{type(error).__name__}: {error}"[:200]) from error
    if rate <= 0:
        lines = told.stderr.strip().splitlines() or ["0"]
        raise Refusal("bench.fio", reason=lines[-1][:200])
    answer = {"requests_per_s": rate, "bytes_per_s": rate * test.block}
    return answer | ({"p50_s": middle} if test.depth == 1 and middle else {})


def small_files(folder: str, done: Callable[[float], None], seconds: float) -> dict[str, Any]:
    """Return how many small files a second one reader opens and reads, in random order.

    They have no names either: each is opened again by its descriptor, which looks up no folder.
    """
    content = buffer(SMALL_FILE)
    files: list[int] = []
    try:
        for number in range(SMALL_FILES):
            files.append(drivefile.nameless(folder))
            _filled(files[-1], content)
            done(number / SMALL_FILES)
        for file in files:
            drivefile.forget(file)
        order = random.sample(files, len(files))
        began = time.perf_counter()
        waits: list[float] = []
        for file in order:
            before = time.perf_counter()
            if before - began > seconds:
                break
            opened = drivefile.again(file, os.O_RDONLY)
            try:
                while os.read(opened, MIB):
                    pass
            finally:
                os.close(opened)
            waits.append(time.perf_counter() - before)
        rate = len(waits) / (time.perf_counter() - began)
        return {"files_per_s": rate, "file_bytes": SMALL_FILE, "p50_s": statistics.median(waits)}
    finally:
        for file in files:
            os.close(file)


def _filled(file: int, content: memoryview) -> None:
    """Write a small file past the page cache, or through it: waiting for each would take long."""
    try:
        direct = drivefile.again(file, os.O_WRONLY | os.O_DIRECT)
    except OSError:
        drivefile.fill(file, len(content), lambda _share: None)
        return
    try:
        os.write(direct, content)
    finally:
        os.close(direct)


def side_by_side(nameless: int, size: int, readers: int, seconds: float) -> dict[str, Any]:
    """Return what so many readers reach together, each through its own part, as loaders read.

    They read through the page cache, from which the file was dropped: each byte once.
    """
    drivefile.forget(nameless)
    share = size // readers // MIB * MIB
    pattern = Pattern(MIB, 1, False, share)
    works = [
        _part(nameless, replace(pattern, start=number * share), share // MIB)
        for number in range(readers)
    ]
    began = time.perf_counter()
    counts = together(works, lambda: Clock(0.0, seconds))
    counted = sum(count.requests for count in counts)
    return {"bytes_per_s": counted * MIB / (time.perf_counter() - began), "readers": readers}


def _part(nameless: int, pattern: Pattern, most: int) -> Callable[[Clock], Count]:
    def work(clock: Clock) -> Count:
        clock.budget = most
        return measure(nameless, pattern, clock)

    return work
