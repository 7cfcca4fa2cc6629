"""What control groups leave a process of cores and memory: containers, batch systems, services.

A group is held to the limits of every group above it, so that all levels are looked at; both
versions of the interface are (Linux's Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

UNLIMITED = 1 << 60
"""Bytes above which version 1 means no limit: it writes the largest page count there is."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The tightest of all levels; None where there is none."""

    cores: float | None = None
    """CPU seconds in a second: 2.5 is two and a half cores."""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of ``/proc/self/mountinfo`` (proc(5))."""

    device: str
    """``major:minor``."""
    root: str
    """Folder of the file system that is mounted."""
    point: str
    filesystem: str
    source: str
    options: tuple[str, ...]
    """Of the file system itself: a version 1 hierarchy's controllers."""
    read_only: bool


def read(root: Path = Path("/")) -> Limits:
    """Return the limits of this process.

    Args:
        root: where ``proc`` and ``sys`` are found.
    """
    own = dict(_groups(root))
    cores: list[float] = []
    memory: list[int] = []
    for mount in mounts(root):
        if mount.filesystem == "cgroup2":
            for folder in _levels(root, mount, own.get("", "/")):
                cores += _quota(_words(folder / "cpu.max"))
                memory += _bytes(_words(folder / "memory.max"))
        elif mount.filesystem == "cgroup":
            for name in {"cpu", "memory"} & set(mount.options):
                for folder in _levels(root, mount, own.get(name, "/")):
                    quota = _words(folder / "cpu.cfs_quota_us")
                    cores += _quota(quota + _words(folder / "cpu.cfs_period_us"))
                    memory += _bytes(_words(folder / "memory.limit_in_bytes"))
    return Limits(min(cores, default=None), min(memory, default=None))


def mounts(root: Path = Path("/")) -> tuple[Mount, ...]:
    """Return what is mounted where, as this process sees it; nothing where that is not told."""
    try:
        text = (root / "proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    return tuple(_mounts(text.splitlines()))


def _mounts(lines: Iterable[str]) -> Iterator[Mount]:
    for line in lines:
        ahead, _, behind = line.partition(" - ")
        left, right = ahead.split(), behind.split()
        if len(left) < 6 or len(right) < 2:
            continue
        yield Mount(
            device=left[2],
            root=_plain(left[3]),
            point=_plain(left[4]),
            filesystem=right[0],
            source=_plain(right[1]),
            options=tuple(right[2].split(",")) if len(right) > 2 else (),
            read_only="ro" in left[5].split(","),
        )


def _plain(text: str) -> str:
    """Undo the octal escapes of spaces, tabs, line ends and backslashes."""
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        text = text.replace(f"\\{code}", character)
    return text


def _groups(root: Path) -> Iterator[tuple[str, str]]:
    """Yield (controller, group); the controller of version 2 is the empty text."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in lines.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        for controller in controllers.split(","):
            yield controller, group


def _levels(root: Path, mount: Mount, group: str) -> Iterator[Path]:
    """Yield the folders of a group and all above it, as far as this mount shows them.

    In a container the mount's root is the container's own group, and so may be all of the
    group's path; then the mount point itself is the lowest level that can be seen.
    """
    top = root / mount.point.lstrip("/")
    inside = group.removeprefix(mount.root) if mount.root != "/" else group
    names = [name for name in inside.split("/") if name and name != ".."]
    for depth in range(len(names), -1, -1):
        folder = top.joinpath(*names[:depth])
        if folder.is_dir():
            yield folder


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, UnicodeError):
        return []


def _quota(words: list[str]) -> list[float]:
    """Return the cores of ``quota period``; ``max`` and -1 are not a limit."""
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return []
    return [int(words[0]) / int(words[1])]


def _bytes(words: list[str]) -> list[int]:
    """Return the bytes of one number; ``max`` is not a limit."""
    if len(words) != 1 or not words[0].isdigit() or int(words[0]) >= UNLIMITED:
        return []
    return [int(words[0])]
