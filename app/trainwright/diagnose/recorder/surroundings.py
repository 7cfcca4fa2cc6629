"""The computer around a run, from the system's files: what it did between two moments.

It needs the standard library only, so that the recorder can take it along into a user's script.
Linux has these files; on other systems every reading is absent.
"""

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

_CORE = Path("/sys/devices/system/cpu/cpu0")
"""The first, which stands for all."""
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def observed(pid: int | None = None) -> dict[str, Any]:
    """Return counters of this moment for ``host_between``: of a process and all around it."""
    pid = pid or os.getpid()
    begun = time.perf_counter()
    processes, cores = _processes(), _cores_busy()
    scanned = (begun + time.perf_counter()) / 2  # it takes long where cores are scarce
    tree = _tree(pid, processes)
    return {
        "time": begun,
        "scanned": scanned,
        "pid": pid,
        "own": own[3:] if (own := _stat(pid)) is not None else None,
        "processes": processes,
        "tree": tree,
        "tasks_at": time.perf_counter(),
        "tasks": {task: spent for each in tree for task, spent in _tasks(each)},
        "read": {each: _numbers(f"/proc/{each}/io", ("read_bytes:",)) for each in tree},
        "asked": _numbers(f"/proc/{pid}/io", ("rchar:", "wchar:")),
        "cores": cores,
        "quota": _quota(pid),
        "pressure": {kind: _pressure(kind) for kind in ("cpu", "io", "memory")},
        "paging": _numbers("/proc/vmstat", ("pgpgin", "pswpin", "pgmajfault")),
        "meminfo": _numbers("/proc/meminfo", ("MemTotal:", "MemAvailable:")),
    }


def host_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the host's readings over the time between two observations, as a record has them."""
    wall = after["time"] - before["time"]
    if wall <= 0:
        return {}
    scanned = after["scanned"] - before["scanned"]
    load = _load(before, after, max(scanned, 1e-9))
    found = _fixed(after["pid"]) | load | _waiting(before, after, wall)
    return {key: value for key, value in found.items() if value is not None}


def _load(before: dict[str, Any], after: dict[str, Any], wall: float) -> dict[str, Any]:
    """Return who kept how many cores busy."""
    spent = {
        pid: seconds - before["processes"].get(pid, (0, "", 0.0))[2]
        for pid, (_, _, seconds) in after["processes"].items()
    }
    if not spent:
        return {}
    tree = set(after["tree"]) | set(before["tree"])
    run = sum(max(0.0, spent.get(pid, 0.0)) for pid in tree)
    others = {pid: seconds for pid, seconds in spent.items() if pid not in tree}
    found: dict[str, Any] = {
        "run_cores": run / wall,
    }
    if before["own"] and after["own"]:
        spent_own, within, faults = (
            later - earlier for earlier, later in zip(before["own"], after["own"], strict=True)
        )
        found["main_process_cores"] = max(0.0, spent_own) / wall
        found["main_minor_faults_s"] = max(0.0, faults) / wall
        if spent_own > 0:
            found["main_system_share"] = min(1.0, max(0.0, within / spent_own))
    if before["cores"] and after["cores"]:
        busy, waiting, total = (
            later - earlier for earlier, later in zip(before["cores"], after["cores"], strict=True)
        )
        found["foreign_cores"] = max(0.0, busy - run) / wall
        if total > 0:
            found["utilisation"] = {"mean": min(1.0, busy / total)}
            found["io_wait"] = min(1.0, max(0.0, waiting / total))
    top = sorted(others, key=lambda pid: -others[pid])[:3]
    names = [after["processes"][pid][1] for pid in top if others[pid] > 0.05 * wall]
    return found | ({"foreign_top": names} if names else {})


def _waiting(before: dict[str, Any], after: dict[str, Any], wall: float) -> dict[str, Any]:
    """Return for what the run and the computer waited."""
    core = delay = 0.0
    for task, (on_core, waited) in after["tasks"].items():
        earlier = before["tasks"].get(task, (0.0, 0.0))
        core, delay = core + on_core - earlier[0], delay + waited - earlier[1]
    found: dict[str, Any] = {}
    if core + delay > 0:
        found["starved_share"] = min(1.0, max(0.0, delay / (core + delay)))
        found["runnable_threads"] = (core + delay) / (after["tasks_at"] - before["tasks_at"])
    if before["quota"] and after["quota"]:
        periods, throttled, seconds = (
            later - earlier
            for earlier, later in zip(before["quota"][1:], after["quota"][1:], strict=True)
        )
        found["throttled_seconds"] = max(0.0, seconds)
        if periods > 0:
            found["throttled_periods"] = min(1.0, max(0.0, throttled / periods))
    for kind in ("cpu", "io", "memory"):
        earlier, later = before["pressure"][kind], after["pressure"][kind]
        if earlier is not None and later is not None:
            found[f"pressure_{kind}"] = min(1.0, max(0.0, (later - earlier) / wall))
    read = (
        total - before["read"].get(pid, {}).get(name, total)
        for pid, drives in after["read"].items()
        for name, total in drives.items()
    )
    found["run_read_bytes_s"] = sum(max(0.0, each) for each in read) / wall  # the dead tell 0
    for key, of, name, size in _RISING:
        if name in before[of] and name in after[of]:
            found[key] = max(0.0, after[of][name] - before[of][name]) * size / wall
    for key in ("MemTotal:", "MemAvailable:"):
        if key in after["meminfo"]:
            found[f"memory_{key[3:-1].lower()}_bytes"] = after["meminfo"][key] * 1024
    return found


_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_RISING = (
    ("main_read_bytes_s", "asked", "rchar:", 1),
    ("main_written_bytes_s", "asked", "wchar:", 1),
    ("read_bytes_s", "paging", "pgpgin", 1024),
    ("swapped_bytes_s", "paging", "pswpin", _PAGE),
    ("major_faults_s", "paging", "pgmajfault", 1),
)
"""Reading, part of an observation and name in it, and the bytes that one of it stands for."""


def _cores_in(file: Path) -> set[int]:
    """Return the logical cores of a list such as ``0-3,8``."""
    spans = [span.partition("-") for span in _text(file).strip().split(",")]
    known = [(first, last or first) for first, _, last in spans if first.isdigit()]
    return {core for first, last in known for core in range(int(first), int(last) + 1)}


def _fixed(pid: int) -> dict[str, Any]:
    """Return what the run may use, and how the computer is set."""
    cores = os.cpu_count()
    found: dict[str, Any] = {
        "cores": cores,
        "threads_per_core": len(_cores_in(_CORE / "topology/thread_siblings_list")) or None,
    }
    usable = float(cores or 0)
    with contextlib.suppress(AttributeError, OSError):
        allowed = os.sched_getaffinity(pid)
        usable = float(len(allowed))
        nodes = _nodes()
        if nodes:
            found["numa_nodes"] = len(nodes)
            found["run_numa_nodes"] = [node for node, has in nodes.items() if has & allowed]
    quota = _quota(pid)
    if quota and quota[0]:
        found["quota_cores"] = quota[0]
        usable = min(usable, quota[0])
    if usable:
        found["usable_cores"] = usable
    mains = [
        _text(each / "online").strip()
        for each in _folder("/sys/class/power_supply")
        if _text(each / "type").strip() == "Mains"
    ]
    if mains:
        found["on_battery"] = "1" not in mains
    governor = _text(_CORE / "cpufreq/scaling_governor").strip()
    if governor:  # with intel_pstate and amd-pstate, powersave is the usual one
        scaled = "pstate" in _text(_CORE / "cpufreq/scaling_driver")
        found["power_saving"] = governor == "powersave" and not scaled
    return found


def _nodes() -> dict[int, set[int]]:
    """Return the logical cores of each NUMA node."""
    folders = _folder("/sys/devices/system/node")
    nodes = (each for each in folders if re.fullmatch(r"node\d{1,4}", each.name))
    return {int(each.name[4:]): _cores_in(each / "cpulist") for each in nodes}


def _processes() -> dict[int, tuple[int, str, float]]:
    """Return each process's parent, name and seconds on a core with those of ended children."""
    numbers = (int(each.name) for each in _folder("/proc") if each.name.isdigit())
    found = ((number, _stat(number)) for number in numbers)
    return {number: stat[:3] for number, stat in found if stat is not None}


def _stat(pid: int) -> tuple[int, str, float, float, float, float] | None:
    """Return a process's parent, name, seconds and minor page faults.

    Seconds are those with ended children, its own, and of these those in the system.
    """
    start, _, rest = _text(Path(f"/proc/{pid}/stat")).rpartition(")")  # a name may hold anything
    fields = rest.split()
    if len(fields) < 15:
        return None
    user, system, *children = (int(each) / _TICKS for each in fields[11:15])
    own = user + system
    return (
        int(fields[1]),
        start.partition("(")[2],
        own + sum(children),
        own,
        system,
        float(fields[7]),
    )


def _tree(pid: int, processes: dict[int, tuple[int, str, float]]) -> list[int]:
    """Return a process and what descends from it."""
    children: dict[int, list[int]] = {}
    for number, (parent, _, _) in processes.items():
        children.setdefault(parent, []).append(number)
    found = [pid]
    for each in found:
        found += [child for child in children.get(each, ()) if child not in found]
    return found


def _tasks(pid: int) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield each thread's seconds on a core, and ready but waiting for one."""
    for folder in _folder(f"/proc/{pid}/task"):
        words = _text(folder / "schedstat").split()
        if len(words) == 3 and folder.name.isdigit():
            yield int(folder.name), (int(words[0]) / 1e9, int(words[1]) / 1e9)


def own_delay() -> float:
    """Return the seconds that this thread was ready but waited for a core.

    It is asked twice a batch, so the file stays open: the reading costs microseconds then.
    """
    try:
        words = os.pread(_own_schedstat(os.getpid(), threading.get_ident()), 100, 0).split()
    except (AttributeError, OSError):
        return 0.0
    return int(words[1]) / 1e9 if len(words) == 3 else 0.0


@lru_cache(maxsize=16)
def _own_schedstat(pid: int, thread: int) -> int:
    """Return the open file of the thread that asks; a forked process opens its own."""
    return os.open("/proc/thread-self/schedstat", os.O_RDONLY)


def _cores_busy() -> tuple[float, float, float] | None:
    """Return core seconds of the whole computer: busy, waiting for drives, all."""
    fields = _text(Path("/proc/stat")).partition("\n")[0].split()[1:9]
    if len(fields) < 8:
        return None
    user, nice, system, idle, waiting, irq, soft, stolen = (int(each) / _TICKS for each in fields)
    busy = user + nice + system + irq + soft + stolen
    return busy, waiting, busy + waiting + idle


def _quota(pid: int) -> tuple[float | None, float, float, float] | None:
    """Return the process's tightest quota in cores, and periods, throttled ones and seconds."""
    found = None
    for folder in _cgroups(pid):
        limit = _text(folder / "cpu.max").split() or [
            _text(folder / "cpu.cfs_quota_us").strip(),
            _text(folder / "cpu.cfs_period_us").strip(),
        ]
        if len(limit) != 2 or not limit[0].isdigit() or not limit[1].isdigit():
            continue
        names = ("nr_periods", "nr_throttled", "throttled_usec", "throttled_time")
        stat = _numbers(str(folder / "cpu.stat"), names)
        seconds = stat.get("throttled_usec", 0) / 1e6 + stat.get("throttled_time", 0) / 1e9
        cores = int(limit[0]) / int(limit[1])
        here = cores, stat.get("nr_periods", 0.0), stat.get("nr_throttled", 0.0), seconds
        if found is None or cores < (found[0] or cores):
            found = here
    return found


def _cgroups(pid: int) -> Iterator[Path]:
    """Yield the folders of the process's control group for cores, up to the root."""
    for line in _text(Path(f"/proc/{pid}/cgroup")).splitlines():
        _, _, controllers_path = line.partition(":")
        controllers, _, path = controllers_path.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        for root in (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup") / (controllers or "unified")):
            place = root / path.lstrip("/")
            for folder in (place, *place.parents):
                if folder.is_relative_to(root) and folder.is_dir():
                    yield folder


def _pressure(kind: str) -> float | None:
    """Return the seconds in which something waited: PSI's total of ``some``."""
    for line in _text(Path(f"/proc/pressure/{kind}")).splitlines():
        if line.startswith("some") and "total=" in line:
            return int(line.rpartition("total=")[2]) / 1e6
    return None


def _numbers(path: str, names: tuple[str, ...]) -> dict[str, float]:
    """Return the named numbers of a file of ``name number`` lines."""
    found = {}
    for line in _text(Path(path)).splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] in names and words[1].isdigit():
            found[words[0]] = float(words[1])
    return found


def _text(path: Path) -> str:
    """Return a system file's text; empty where there is none, or none for us."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def _folder(path: str) -> list[Path]:
    try:
        return sorted(Path(path).iterdir())
    except OSError:
        return []
