"""Windows job objects: a child and all that it starts live and die together."""

import ctypes
import sys
from typing import Any


class _Basic(ctypes.Structure):
    _fields_ = (
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("minimum_working_set", ctypes.c_size_t),
        ("maximum_working_set", ctypes.c_size_t),
        ("active_processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
    )


class _Extended(ctypes.Structure):
    _fields_ = (
        ("basic", _Basic),
        ("io", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


KILL_ON_CLOSE, JOB_MEMORY, ACTIVE_PROCESS, EXTENDED = 0x2000, 0x200, 0x8, 9
"""JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOB_OBJECT_LIMIT_JOB_MEMORY,
JOB_OBJECT_LIMIT_ACTIVE_PROCESS and JobObjectExtendedLimitInformation of ``winnt.h``."""
PROCESS_ACCESS = 0x0100 | 0x0001 | 0x0800
"""PROCESS_SET_QUOTA, PROCESS_TERMINATE and PROCESS_SUSPEND_RESUME."""
PROCESSES = 256
"""Processes that may run in a job at once; assumed, a trace is one."""


class Job:
    """A job that ends its processes when it is closed, also when this process dies.

    The process was started suspended; it is resumed once it is in the job.

    Raises:
        OSError: Windows refused a step; the process has not run, and must be ended.
    """

    def __init__(self, pid: int, memory_bytes: int | None) -> None:
        if sys.platform != "win32":
            raise OSError("job objects exist on Windows only")
        self._kernel: Any = ctypes.WinDLL("kernel32", use_last_error=True)
        for name in ("CreateJobObjectW", "OpenProcess"):
            getattr(self._kernel, name).restype = ctypes.c_void_p
        self._handle: Any = ctypes.c_void_p(_done(self._kernel.CreateJobObjectW(None, None)))
        limits = _Extended()
        limits.basic.flags = KILL_ON_CLOSE | ACTIVE_PROCESS | (JOB_MEMORY if memory_bytes else 0)
        limits.basic.active_processes = PROCESSES
        limits.job_memory = memory_bytes or 0
        process = ctypes.c_void_p(_done(self._kernel.OpenProcess(PROCESS_ACCESS, False, pid)))
        try:
            _done(
                self._kernel.SetInformationJobObject(
                    self._handle, EXTENDED, ctypes.byref(limits), ctypes.sizeof(limits)
                )
            )
            _done(self._kernel.AssignProcessToJobObject(self._handle, process))
            _done(ctypes.WinDLL("ntdll").NtResumeProcess(process) == 0)
        except OSError:
            self.close()
            raise
        finally:
            self._kernel.CloseHandle(process)

    def close(self) -> None:
        """End every process of the job."""
        if self._handle is not None:
            self._kernel.CloseHandle(self._handle)
            self._handle = None


def _done(result: Any) -> Any:
    """Return what a call of Windows returned, where it succeeded.

    Raises:
        OSError: it did not.
    """
    if not result and sys.platform == "win32":
        raise ctypes.WinError(ctypes.get_last_error())
    return result
