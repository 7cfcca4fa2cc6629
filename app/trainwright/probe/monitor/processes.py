"""The processes on a GPU, with their names as far as this computer shows them."""

from collections.abc import Callable, Iterable
from typing import Any, Literal

import psutil

from trainwright.messages import Message
from trainwright.probe.reading import Missing
from trainwright.probe.sample import GpuProcess, GpuSample

_CALLS: tuple[tuple[str, Literal["compute", "graphics"]], ...] = (
    ("nvmlDeviceGetGraphicsRunningProcesses", "graphics"),
    ("nvmlDeviceGetComputeRunningProcesses", "compute"),
)
_VERSIONS = ("_v3", "_v2")
"""Drivers before 510 know the second only; without a number the binding refuses such drivers."""
_ELSEWHERE = Missing(Message.of("probe.process-elsewhere"))
_UNTOLD = Missing(Message.of("probe.not-supported"))


class Names:
    """Names by process number; each is looked up once."""

    def __init__(self) -> None:
        self._names: dict[int, str | Missing] = {}

    def of(self, pid: int) -> str | Missing:
        """Return a process's name; inside a container the driver counts the host's processes."""
        if pid not in self._names:
            try:
                self._names[pid] = psutil.Process(pid).name()
            except (psutil.Error, OSError, ValueError):
                self._names[pid] = _ELSEWHERE
        return self._names[pid]

    def keep_only(self, gpus: Iterable[GpuSample]) -> None:
        """Forget the processes that none of the GPUs holds any more: numbers come back."""
        seen = {
            process.pid
            for gpu in gpus
            for processes in (gpu.processes, *(one.processes for one in gpu.slices))
            if not isinstance(processes, Missing)
            for process in processes
        }
        self._names = {pid: name for pid, name in self._names.items() if pid in seen}


def gpu_processes(
    ask: Callable[[str], list[Any] | Missing], names: Names
) -> tuple[GpuProcess, ...] | Missing:
    """Return the processes, most memory first; one that computes and draws counts once."""
    found: dict[int, GpuProcess] = {}
    answers = [(_newest(ask, call), kind) for call, kind in _CALLS]
    if isinstance(answers[-1][0], Missing):
        return answers[-1][0]
    for listed, kind in answers:
        for each in () if isinstance(listed, Missing) else listed:
            memory = _UNTOLD if each.usedGpuMemory is None else int(each.usedGpuMemory)
            found[int(each.pid)] = GpuProcess(int(each.pid), names.of(int(each.pid)), memory, kind)
    return tuple(sorted(found.values(), key=_by_memory))


def _newest(ask: Callable[[str], list[Any] | Missing], call: str) -> list[Any] | Missing:
    """Return the answer of the newest version of a call that the driver knows."""
    answer: list[Any] | Missing = _UNTOLD
    for version in _VERSIONS:
        answer = ask(call + version)
        if not isinstance(answer, Missing) or answer.reason.id != "probe.old-driver":
            return answer
    return answer


def _by_memory(process: GpuProcess) -> tuple[int, int]:
    memory = process.memory_bytes
    return (-memory if isinstance(memory, int) else 0, process.pid)
