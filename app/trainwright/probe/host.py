"""The computer around the GPUs: system, cores and memory that a program may use here."""

import math
import os
import platform
import shutil
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from trainwright.machine.machine import System
from trainwright.messages import Message
from trainwright.probe import cgroup
from trainwright.probe.reading import Missing
from trainwright.probe.sample import NOT_READ

Around = Literal["docker", "podman", "kubernetes", "lxc", "container", "wsl"]
"""What a Linux runs inside of."""


@dataclass(frozen=True, slots=True)
class NumaNode:
    """Cores and memory that are near each other."""

    index: int
    cores: int
    """Logical."""
    memory_bytes: int | Missing


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """``/dev/shm``, through which loader processes hand over batches."""

    total_bytes: int
    free_bytes: int


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
    logical_cores: int | Missing = NOT_READ
    """Of the computer."""
    physical_cores: int | Missing = NOT_READ
    """Of the computer."""
    allowed_cores: int | Missing = NOT_READ
    """That the process's mask names (affinity)."""
    quota_cores: float | Missing | None = NOT_READ
    """That control groups leave; None: they leave all."""
    most_mhz: float | Missing = NOT_READ
    """Highest clock of the fastest core."""
    installed_bytes: int | Missing = NOT_READ
    limit_bytes: int | Missing | None = NOT_READ
    """Of memory, by control groups; None: there is none."""
    swap_bytes: int | Missing = NOT_READ
    shared_memory: SharedMemory | Missing = NOT_READ
    numa: tuple[NumaNode, ...] | Missing = NOT_READ
    around: Around | None = None
    """What the system runs inside of, by its hints; None: nothing that shows."""
    name: str | Missing = NOT_READ
    """The computer's own; read only where it is asked for."""


def read(root: Path = Path("/"), *, identifiers: bool = False) -> Host:
    """Return the readings of this computer.

    Args:
        root: where Linux's ``proc``, ``sys`` and ``dev`` are found.
        identifiers: whether the computer's name is read too.
    """
    limits = cgroup.read(root) if sys.platform == "linux" else cgroup.Limits()
    allowed, installed = _affinity(), _installed()
    return Host(
        system=_system(),
        description=platform.platform(terse=True),
        cpu=_cpu(root),
        cores=_usable(allowed, limits.cores),
        memory_bytes=_within(installed, limits.memory_bytes),
        logical_cores=os.cpu_count() or _untold("CPU"),
        physical_cores=psutil.cpu_count(logical=False) or _untold("CPU"),
        allowed_cores=_untold("CPU") if allowed is None else allowed,
        quota_cores=limits.cores,
        most_mhz=_most_mhz(root),
        installed_bytes=installed,
        limit_bytes=limits.memory_bytes,
        swap_bytes=_swap(),
        shared_memory=_shared_memory(root),
        numa=_numa(root),
        around=_around(root),
        name=socket.gethostname() if identifiers else NOT_READ,
    )


def _system() -> System:
    match sys.platform:
        case "win32":
            return "windows"
        case "darwin":
            return "macos"
        case _:
            return "linux"


def _untold(what: str) -> Missing:
    return Missing(Message.of("probe.not-told", what=what))


def _cpu(root: Path) -> str | Missing:
    if sys.platform == "linux":
        try:
            lines = (root / "proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            return Missing(Message.of("probe.other", reason=error.strerror or "/proc/cpuinfo"))
        for line in lines.splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    if sys.platform == "darwin":
        from trainwright.probe.apple import chip

        return chip()
    return platform.processor() or _untold("CPU")


def _usable(allowed: int | None, quota: float | None) -> int | Missing:
    """Return whole cores: a program starts as many workers as it would on a rounded-up share."""
    if allowed is None:
        return _untold("CPU")
    return allowed if quota is None else max(1, min(allowed, math.ceil(quota)))


def _affinity() -> int | None:
    """Return the cores that the process may run on; macOS has no such mask."""
    if sys.platform == "darwin":
        return os.cpu_count()
    try:
        return len(psutil.Process().cpu_affinity() or ()) or os.cpu_count()
    except (psutil.Error, OSError):
        return os.cpu_count()


def _most_mhz(root: Path) -> float | Missing:
    if sys.platform == "linux":
        files = (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/cpuinfo_max_freq")
        found = [int(text) for file in files if (text := _line(file)).isdigit()]
        return max(found) / 1000 if found else Missing(Message.of("probe.untold"))
    try:
        most = psutil.cpu_freq()
    except (psutil.Error, OSError, NotImplementedError, RuntimeError):
        return Missing(Message.of("probe.untold"))
    return most.max if most is not None and most.max else Missing(Message.of("probe.untold"))


def _installed() -> int | Missing:
    try:
        return int(psutil.virtual_memory().total)
    except (psutil.Error, OSError) as error:
        return Missing(Message.of("probe.other", reason=str(error)))


def _within(installed: int | Missing, limit: int | None) -> int | Missing:
    if limit is None or isinstance(installed, Missing):
        return installed
    return min(installed, limit)


def _swap() -> int | Missing:
    try:
        return int(psutil.swap_memory().total)
    except (psutil.Error, OSError, RuntimeWarning) as error:
        return Missing(Message.of("probe.other", reason=str(error)))


def _shared_memory(root: Path) -> SharedMemory | Missing:
    if sys.platform != "linux":
        return Missing(Message.of("probe.linux-only"))
    try:
        found = shutil.disk_usage(root / "dev/shm")
    except OSError as error:
        return Missing(Message.of("probe.other", reason=error.strerror or "/dev/shm"))
    return SharedMemory(found.total, found.free)


def _numa(root: Path) -> tuple[NumaNode, ...] | Missing:
    if sys.platform != "linux":
        return Missing(Message.of("probe.linux-only"))
    folders = sorted((root / "sys/devices/system/node").glob("node[0-9]*"))
    if not folders:
        return Missing(Message.of("probe.untold"))
    nodes = [
        NumaNode(int(folder.name[4:]), len(listed(_line(folder / "cpulist"))), _node_bytes(folder))
        for folder in folders
    ]
    return tuple(sorted(nodes, key=lambda node: node.index))


def listed(text: str) -> tuple[int, ...]:
    """Return the numbers of a kernel list such as ``0-3,8``; none where it is malformed."""
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        if low.isdigit() and (not high or high.isdigit()):
            found.extend(range(int(low), int(high or low) + 1))
    return tuple(found)


def _node_bytes(folder: Path) -> int | Missing:
    try:
        text = (folder / "meminfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return Missing(Message.of("probe.untold"))
    for line in text.splitlines():  # Node 0 MemTotal:       32768 kB
        words = line.split()
        if "MemTotal:" in words and words[-1] == "kB":
            return int(words[-2]) << 10
    return Missing(Message.of("probe.untold"))


_MARKS: tuple[tuple[str, Around], ...] = (
    ("kubepods", "kubernetes"), ("docker", "docker"), ("libpod", "podman"), ("lxc", "lxc"),
)  # fmt: skip


def _around(root: Path) -> Around | None:
    """Return what the hints say: marker files, the kernel's name, names of control groups."""
    if sys.platform != "linux":
        return None
    if "microsoft" in _line(root / "proc/sys/kernel/osrelease").casefold():
        return "wsl"
    if (root / "var/run/secrets/kubernetes.io").is_dir():
        return "kubernetes"
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    groups = _text(root / "proc/self/cgroup")
    named = next((around for mark, around in _MARKS if mark in groups), None)
    marked = _text(root / "run/systemd/container").strip()
    return named or ("container" if marked else None)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _line(path: Path) -> str:
    return _text(path).strip()
