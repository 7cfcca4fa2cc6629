"""The computer around the GPUs, read again and again: cores, memory, drives, waiting tasks."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from trainwright.messages import Message
from trainwright.probe.reading import Missing
from trainwright.probe.sample import HostSample

FIRST = Missing(Message.of("probe.first-sample"))
LINUX_ONLY = Missing(Message.of("probe.linux-only"))
_SECTOR = 512
"""Bytes; /proc/diskstats counts in these whatever the drive's own sectors are (iostats.rst)."""
_VIRTUAL = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd")
"""Block devices that pass on to others, which are counted themselves, or hold no drive."""


class HostReader:
    """Keeps the counters of the reading before, since most of the system's figures only grow."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        root: Path = Path("/"),
        system: str = sys.platform,
    ) -> None:
        self._clock = clock
        self._root = root
        self._linux = system == "linux"
        self._before: dict[str, tuple[float, float]] = {}
        self._cores: list[tuple[float, float]] = []
        self._drives: dict[str, bool] = {}
        self._quotas = self._quota_files() if self._linux else []

    def forget_rates(self) -> None:
        """Start counting again."""
        self._before.clear()
        self._cores = []

    def read(self) -> HostSample:
        """Return one reading; each part stands for itself."""
        now = self._clock()
        cpu, cores = self._cpu()
        memory_used, memory_total, swap_used, swap_total = self._memory()
        disk_read, disk_written = self._disks(now)
        shm_used, shm_total = self._shm()
        return HostSample(
            cpu=cpu,
            cores=cores,
            memory_used=memory_used,
            memory_total=memory_total,
            swap_used=swap_used,
            swap_total=swap_total,
            disk_read=disk_read,
            disk_written=disk_written,
            pressure_cpu=self._pressure("cpu", now),
            pressure_io=self._pressure("io", now),
            pressure_memory=self._pressure("memory", now),
            throttled_periods=self._throttled(),
            shm_used=shm_used,
            shm_total=shm_total,
            oom_kills=self._oom_kills(),
        )

    # Rates

    def _rate(self, key: str, now: float, counted: float) -> float | Missing:
        """Return the growth of a counter per second; one that fell was started again."""
        before = self._before.get(key)
        self._before[key] = now, counted
        if before is None or now <= before[0] or counted < before[1]:
            return FIRST
        return (counted - before[1]) / (now - before[0])

    # Parts

    def _cpu(self) -> tuple[float | Missing, tuple[float, ...] | Missing]:
        try:
            times = [_busy_and_all(core) for core in psutil.cpu_times(percpu=True)]
        except (psutil.Error, OSError, RuntimeError) as error:
            why = _unreadable(error)
            return why, why
        before, self._cores = self._cores, times
        if len(before) != len(times):
            return FIRST, FIRST
        changes = [(b - b0, a - a0) for (b, a), (b0, a0) in zip(times, before, strict=True)]
        together = sum(whole for _, whole in changes)
        if together <= 0:
            return FIRST, FIRST
        shares = tuple(_share(busy, whole) for busy, whole in changes)
        return _share(sum(busy for busy, _ in changes), together), shares

    def _memory(self) -> tuple[int | Missing, int | Missing, int | Missing, int | Missing]:
        if not self._linux:
            try:
                ram, swap = psutil.virtual_memory(), psutil.swap_memory()
            except (psutil.Error, OSError) as error:
                return (_unreadable(error),) * 4
            return ram.total - ram.available, ram.total, swap.used, swap.total
        try:
            found = self._table("proc/meminfo")
            total, swap_total = found["MemTotal"], found["SwapTotal"]
            used, swap_used = total - found["MemAvailable"], swap_total - found["SwapFree"]
        except (OSError, ValueError, KeyError) as error:
            return (_unreadable(error),) * 4
        return used * 1024, total * 1024, swap_used * 1024, swap_total * 1024

    def _disks(self, now: float) -> tuple[float | Missing, float | Missing]:
        """Return bytes a second (read, written) of all drives together."""
        try:
            read, written = self._linux_disks() if self._linux else _other_disks()
        except (psutil.Error, OSError, ValueError, IndexError) as error:
            return (_unreadable(error),) * 2
        if read is None or written is None:
            return (Missing(Message.of("probe.no-drives")),) * 2
        return self._rate("read", now, read), self._rate("written", now, written)

    def _linux_disks(self) -> tuple[int | None, int | None]:
        read = written = 0
        some = False
        for line in self._text("proc/diskstats").splitlines():
            words = line.split()
            if self._is_drive(words[2]):
                some = True
                read += int(words[5]) * _SECTOR
                written += int(words[9]) * _SECTOR
        return (read, written) if some else (None, None)

    def _is_drive(self, name: str) -> bool:
        """Return whether a block device is a whole drive, not a part of one or a layer above."""
        if name not in self._drives:
            whole = (self._root / "sys/block" / name).exists()
            self._drives[name] = whole and not name.startswith(_VIRTUAL)
        return self._drives[name]

    def _pressure(self, what: str, now: float) -> float | Missing:
        if not self._linux:
            return LINUX_ONLY
        try:
            some = self._text(f"proc/pressure/{what}").splitlines()[0]
            stalled = int(some.rpartition("total=")[2]) / 1e6
        except (OSError, ValueError, IndexError):  # the kernel was built or started without it
            return Missing(Message.of("probe.no-pressure"))
        share = self._rate(what, now, stalled)
        return share if isinstance(share, Missing) else min(share, 1.0)

    def _throttled(self) -> int | Missing:
        counts = []
        for path in self._quotas:
            try:
                counts.append(_pairs(path.read_text(encoding="ascii")).get("nr_throttled"))
            except (OSError, ValueError):
                continue
        found = [count for count in counts if count is not None]
        if found:
            return max(found)
        return Missing(Message.of("probe.no-quota")) if self._linux else LINUX_ONLY

    def _quota_files(self) -> list[Path]:
        """Return the statistics of this process's group and of those around it.

        A group without a quota counts 0; version 1 keeps them in a hierarchy of their own.
        """
        top = self._root / "sys/fs/cgroup"
        own = {"": "", "cpu": ""}
        try:
            for line in self._text("proc/self/cgroup").splitlines():
                _, controllers, path = line.split(":", 2)
                for each in controllers.split(","):
                    own[each] = path.strip("/")
        except (OSError, ValueError):
            pass  # then the root of what this container sees
        files = []
        for base, group in ((top, own[""]), (top / "cpu", own["cpu"])):
            here = base / group
            files += [folder / "cpu.stat" for folder in (here, *here.parents)
                      if folder == base or base in folder.parents]  # fmt: skip
        return [file for file in files if file.is_file()]

    def _shm(self) -> tuple[int | Missing, int | Missing]:
        if not self._linux:
            return LINUX_ONLY, LINUX_ONLY
        try:
            found = os.statvfs(self._root / "dev/shm")
        except OSError as error:
            return (_unreadable(error),) * 2
        total = found.f_blocks * found.f_frsize
        return total - found.f_bfree * found.f_frsize, total

    def _oom_kills(self) -> int | Missing:
        if not self._linux:
            return LINUX_ONLY
        try:
            return _pairs(self._text("proc/vmstat"))["oom_kill"]
        except (OSError, ValueError, KeyError) as error:
            return _unreadable(error)

    def _text(self, path: str) -> str:
        return (self._root / path).read_text(encoding="utf-8", errors="replace")

    def _table(self, path: str) -> dict[str, int]:
        """Return ``name: number kB`` lines as numbers."""
        lines = (line.partition(":") for line in self._text(path).splitlines())
        return {name: int(rest.split()[0]) for name, _, rest in lines if rest.strip()}


def _busy_and_all(core: Any) -> tuple[float, float]:
    """Return seconds busy and seconds in all; guest time is within user time already."""
    waiting = core.idle + getattr(core, "iowait", 0.0)
    guests = getattr(core, "guest", 0.0) + getattr(core, "guest_nice", 0.0)
    whole = sum(core) - guests
    return whole - waiting, whole


def _share(part: float, whole: float) -> float:
    return min(max(part / whole, 0.0), 1.0) if whole > 0 else 0.0


def _other_disks() -> tuple[int | None, int | None]:
    found = psutil.disk_io_counters()
    return (None, None) if found is None else (found.read_bytes, found.write_bytes)


def _pairs(text: str) -> dict[str, int]:
    """Return ``name number`` lines as numbers."""
    pairs = (line.split() for line in text.splitlines())
    return {words[0]: int(words[1]) for words in pairs if len(words) == 2}


def _unreadable(error: Exception) -> Missing:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Missing(Message.of("probe.other", reason=reason))
