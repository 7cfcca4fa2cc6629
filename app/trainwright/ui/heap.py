"""Lets memory that is freed go back to the system.

glibc gives each thread a heap of its own and raises its limits for large blocks with use, up to
32 MiB (mallopt(3)). Searches make and free arrays of megabytes on several threads: after 2,000
random actions half of what the window held was free memory inside such heaps.
"""

import ctypes
import sys

_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1
"""Of glibc's ``malloc.h``."""


def limit() -> None:
    """Share two heaps, and give large blocks back at once; costs a search about 3 %."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(_ARENA_MAX, 2)
        mallopt(_MMAP_THRESHOLD, 1 << 20)
        mallopt(_TRIM_THRESHOLD, 4 << 20)


def give_back() -> None:
    """Return free pages inside the heaps too, which takes tens of milliseconds (malloc_trim(3))."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
