"""The computer around the GPUs: system, cores and memory that a program may use here."""

import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from trainwright.machine.machine import System
from trainwright.messages import Message
from trainwright.probe.reading import Missing

_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Host:
    """What is there, as far as this process may use it."""

    system: System
    description: str
    """Name and version of the operating system."""
    cpu: str | Missing
    cores: int | Missing
    """Logical cores that this process may run on, container limits included."""
    memory_bytes: int | Missing
    """RAM, or the container's limit where that is less."""


def read() -> Host:
    """Return the readings of this computer."""
    return Host(_system(), platform.platform(terse=True), _cpu(), _cores(), _memory())


def _system() -> System:
    match sys.platform:
        case "win32":
            return "windows"
        case "darwin":
            return "macos"
        case _:
            return "linux"


def _cpu() -> str | Missing:
    if sys.platform == "linux":
        try:
            lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            return Missing(Message.of("probe.other", reason=error.strerror or "/proc/cpuinfo"))
        for line in lines.splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    name = platform.processor()
    return name or Missing(Message.of("probe.not-told", what="CPU"))


def _cores() -> int | Missing:
    allowed = _affinity()
    if allowed is None:
        return Missing(Message.of("probe.not-told", what="CPU"))
    quota = _quota()
    return allowed if quota is None else max(1, min(allowed, quota))


def _affinity() -> int | None:
    """Return the cores that the process may run on; macOS has no such mask."""
    if sys.platform == "darwin":
        return os.cpu_count()
    try:
        return len(psutil.Process().cpu_affinity() or ()) or os.cpu_count()
    except (psutil.Error, OSError):
        return os.cpu_count()


def _quota() -> int | None:
    """Return the container's cores, rounded up; only Linux has cgroups."""
    words = _cgroup_words("cpu.max")
    if len(words) != 2 or words[0] == "max":
        return None
    return -(-int(words[0]) // int(words[1]))


def _memory() -> int | Missing:
    try:
        installed = int(psutil.virtual_memory().total)
    except (psutil.Error, OSError) as error:
        return Missing(Message.of("probe.other", reason=str(error)))
    limit = _cgroup_words("memory.max")
    return min(installed, int(limit[0])) if limit and limit[0].isdigit() else installed


def _cgroup_words(name: str) -> list[str]:
    """Return the words of a cgroup v2 file of this container, none where there is none."""
    try:
        return (_CGROUP / name).read_text(encoding="ascii").split()
    except (OSError, UnicodeError):
        return []
